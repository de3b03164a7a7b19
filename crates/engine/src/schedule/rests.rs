//! Closed loops that rest: think times and bursts.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use fathom_core::spec::RestFrom;
use fathom_core::{Instant, Rate, Span};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;

use super::{Growth, Schedule, exponential};

/// Each slot rests between a completion and its next start.
pub(crate) struct ThinkTime {
    /// When each slot that is not in flight may start. There is room for all of them.
    ready: BinaryHeap<Reverse<Instant>>,
    time: Span,
    /// Where each rest is drawn.
    random: Option<Xoshiro256PlusPlus>,
}

impl ThinkTime {
    /// Rests of `time`, or with a seed exponential ones with this mean, of this many slots that may
    /// all start at once at the beginning.
    pub(crate) fn new(slots: u32, time: Span, seed: Option<u64>) -> Self {
        let mut ready = BinaryHeap::with_capacity(slots as usize);
        ready.extend((0..slots).map(|_| Reverse(Instant(0))));
        let random =
            seed.map(|seed| Xoshiro256PlusPlus::seed_from_u64(seed ^ 0x7468_696e_6b74_696d));
        Self { ready, time, random }
    }
}

impl Schedule for ThinkTime {
    const OPEN: bool = false;
    const RESTS: bool = true;

    #[inline]
    fn take(&mut self, now: Instant) -> Option<Instant> {
        self.ready.peek().filter(|first| first.0 <= now)?;
        self.ready.pop();
        Some(now)
    }

    #[inline]
    fn next_due(&self) -> Instant {
        self.ready.peek().map_or(Instant(u64::MAX), |first| first.0)
    }

    fn untaken(&mut self, _end: Instant) -> u64 {
        0
    }

    fn overdue(&self, _at: Instant) -> u64 {
        0
    }

    #[inline]
    fn came_back(&mut self, at: Instant) {
        let time = match &mut self.random {
            Some(random) => Span((exponential(random) * self.time.0 as f64) as u64),
            None => self.time,
        };
        self.ready.push(Reverse(at + time));
    }
}

/// This many I/Os, and then a rest that begins when the last of them has started, or all have
/// completed.
pub(crate) struct Bursts {
    ios: u32,
    rest: Span,
    from: RestFrom,
    /// The number of I/Os of this burst that have started.
    started: u32,
    /// The number of these I/Os that have not completed.
    out: u32,
    /// When the rest before this burst ends.
    resumes: Instant,
}

impl Bursts {
    /// Bursts of this many I/Os with these rests between them; the first begins at once.
    pub(crate) fn new(ios: u32, rest: Span, from: RestFrom) -> Self {
        Self { ios, rest, from, started: 0, out: 0, resumes: Instant(0) }
    }
}

impl Schedule for Bursts {
    const OPEN: bool = false;
    const RESTS: bool = true;

    #[inline]
    fn take(&mut self, now: Instant) -> Option<Instant> {
        if self.started == self.ios || now < self.resumes {
            return None;
        }
        self.started += 1;
        self.out += 1;
        if self.started == self.ios && self.from == RestFrom::LastStart {
            self.started = 0;
            self.resumes = now + self.rest;
        }
        Some(now)
    }

    #[inline]
    fn next_due(&self) -> Instant {
        match self.started == self.ios {
            true => Instant(u64::MAX),
            false => self.resumes,
        }
    }

    fn untaken(&mut self, _end: Instant) -> u64 {
        0
    }

    fn overdue(&self, _at: Instant) -> u64 {
        0
    }

    #[inline]
    fn came_back(&mut self, at: Instant) {
        self.out -= 1;
        if self.started == self.ios && self.out == 0 {
            self.started = 0;
            self.resumes = at + self.rest;
        }
    }
}

/// A constant rate, of which only this many I/Os start in one go, a rest apart from the next: I/Os
/// that fall due in a rest start at its end. An I/O waits for the rest before its burst and for no
/// other, so that the rate is kept and each start has a closed form.
pub(crate) struct Gathered {
    period_ns: f64,
    ios: f64,
    rest_ns: f64,
}

impl Gathered {
    /// Bursts of this many I/Os of this rate. A burst's I/Os must take as long to fall due as the
    /// rest lasts, which resolving a spec ensures.
    pub(crate) fn new(rate: Rate, ios: u32, rest: Span) -> Self {
        Self { period_ns: rate.period_ns(), ios: f64::from(ios), rest_ns: rest.0 as f64 }
    }
}

impl Growth for Gathered {
    #[inline]
    fn reached(&self, ios: f64) -> f64 {
        let due = ios * self.period_ns;
        let (number, phase) = (ios.floor(), ios.fract());
        let first = (number / self.ios).floor() * self.ios;
        match first > 0.0 {
            true => due.max((first - 1.0 + phase) * self.period_ns + self.rest_ns),
            false => due,
        }
    }

    fn by(&self, ns: f64) -> f64 {
        ns / self.period_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_thinks_before_its_next_start() {
        let mut schedule = ThinkTime::new(2, Span(100), None);
        assert_eq!(schedule.take(Instant(5)), Some(Instant(5)));
        assert_eq!(schedule.take(Instant(5)), Some(Instant(5)));
        assert_eq!((schedule.take(Instant(5)), schedule.next_due()), (None, Instant(u64::MAX)));
        schedule.came_back(Instant(10));
        schedule.came_back(Instant(12));
        assert_eq!((schedule.take(Instant(109)), schedule.next_due()), (None, Instant(110)));
        assert_eq!(schedule.take(Instant(111)), Some(Instant(111)));
        assert_eq!((schedule.take(Instant(111)), schedule.next_due()), (None, Instant(112)));
    }

    #[test]
    fn a_burst_rests_when_all_of_it_came_back() {
        let mut schedule = Bursts::new(3, Span(100), RestFrom::LastCompletion);
        let take =
            |schedule: &mut Bursts, at| std::iter::from_fn(|| schedule.take(Instant(at))).count();
        assert_eq!(take(&mut schedule, 0), 3);
        (0..2).for_each(|_| schedule.came_back(Instant(10)));
        assert_eq!((take(&mut schedule, 500), schedule.next_due()), (0, Instant(u64::MAX)));
        schedule.came_back(Instant(20));
        assert_eq!((take(&mut schedule, 119), schedule.next_due()), (0, Instant(120)));
        assert_eq!(take(&mut schedule, 120), 3);
    }

    #[test]
    fn a_rest_may_begin_with_the_last_start_of_a_burst() {
        let mut schedule = Bursts::new(2, Span(100), RestFrom::LastStart);
        assert_eq!(schedule.take(Instant(0)), Some(Instant(0)));
        assert_eq!(schedule.take(Instant(30)), Some(Instant(30)));
        assert_eq!((schedule.take(Instant(129)), schedule.next_due()), (None, Instant(130)));
        // The burst starts now, whatever has come back.
        assert_eq!(schedule.take(Instant(130)), Some(Instant(130)));
        schedule.came_back(Instant(140));
        schedule.came_back(Instant(140));
        assert_eq!(schedule.take(Instant(141)), Some(Instant(141)));
        assert_eq!((schedule.take(Instant(240)), schedule.next_due()), (None, Instant(241)));
    }

    /// Computes the starts one by one: each when it is due, but not before the rest after the last
    /// burst.
    fn one_by_one(period: f64, phase: f64, ios: usize, rest: f64, count: usize) -> Vec<f64> {
        let (mut starts, mut last) = (Vec::new(), f64::NEG_INFINITY);
        for number in 0..count {
            let due = (number as f64 + phase) * period;
            let resumes = if number > 0 && number % ios == 0 { last + rest } else { 0.0 };
            let before = if number % ios == 0 { 0.0 } else { last };
            last = due.max(resumes).max(before);
            starts.push(last);
        }
        starts
    }

    #[test]
    fn what_is_due_is_gathered_into_bursts_and_the_rate_is_kept() {
        for (ios, rest_us) in
            [(1, 0), (1, 1000), (4, 0), (4, 500), (4, 2500), (4, 4000), (10, 9999)]
        {
            for phase in [0.0, 0.25, 0.999] {
                let rest = Span::from_us(rest_us);
                let gathered = Gathered::new(Rate(1000.0), ios, rest);
                let starts = one_by_one(1e6, phase, ios as usize, rest.0 as f64, 10_000);
                for (number, expected) in starts.iter().enumerate() {
                    let start = gathered.reached(number as f64 + phase);
                    assert!((start - expected).abs() < 1e-3, "{ios} {rest_us} {phase} {number}");
                    // An I/O never starts later than a burst's rest after its due time.
                    let due = (number as f64 + phase) * 1e6;
                    assert!((due..=due + rest.0 as f64).contains(&start));
                }
            }
        }
    }
}
