//! Closed loops that rest: think times and bursts.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use fathom_core::{Instant, Span};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;

use super::{Schedule, exponential};

/// Each slot rests between a completion and its next start.
pub(crate) struct ThinkTime {
    /// When each slot that is not in flight may start. There is room for all of them.
    ready: BinaryHeap<Reverse<Instant>>,
    time: Span,
    /// Where each rest is drawn.
    random: Option<Xoshiro256PlusPlus>,
}

impl ThinkTime {
    /// Rests of `time`, or with a seed exponential ones with this mean, of so many slots that may all
    /// start at once at the beginning.
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

/// So many I/Os, and then a rest that begins when all of them have completed.
pub(crate) struct Bursts {
    ios: u32,
    rest: Span,
    /// How many of this burst have started, ...
    started: u32,
    /// ... and how many of these have not come back.
    out: u32,
    /// When the rest before this burst ends.
    resumes: Instant,
}

impl Bursts {
    /// Bursts of so many I/Os with such rests between them; the first begins at once.
    pub(crate) fn new(ios: u32, rest: Span) -> Self {
        Self { ios, rest, started: 0, out: 0, resumes: Instant(0) }
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
        let mut schedule = Bursts::new(3, Span(100));
        let take =
            |schedule: &mut Bursts, at| std::iter::from_fn(|| schedule.take(Instant(at))).count();
        assert_eq!(take(&mut schedule, 0), 3);
        (0..2).for_each(|_| schedule.came_back(Instant(10)));
        assert_eq!((take(&mut schedule, 500), schedule.next_due()), (0, Instant(u64::MAX)));
        schedule.came_back(Instant(20));
        assert_eq!((take(&mut schedule, 119), schedule.next_due()), (0, Instant(120)));
        assert_eq!(take(&mut schedule, 120), 3);
    }
}
