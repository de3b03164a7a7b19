//! The time during which a disk had at least one request in flight, from the requests' own times.
//!
//! The kernel's own counter of it is an estimate by ticks of the timer. On a CPU that sleeps between
//! I/Os, the tick comes when none is in flight, and a disk that is busy a third of the time has 0 %
//! (Linux 6.18). Before Linux 6.9 it counted a whole tick for each of a few I/Os, which is too much.

use crate::units::{Instant, Span};

/// As many stretches are kept apart. If there are more, the gaps between the older half are final,
/// although a request that began before them may still be in flight.
const KEPT: usize = 8192;

/// Adds up the time, interval by interval.
#[derive(Debug)]
pub struct Busy {
    /// Before it, everything is settled.
    settled: Instant,
    /// What it came to before that, in this interval.
    sum: Span,
    /// The stretches since then: in order, none of them touching another one.
    stretches: Vec<(Instant, Instant)>,
}

impl Busy {
    /// Begins an interval.
    pub fn begin(now: Instant) -> Self {
        Self { settled: now, sum: Span(0), stretches: Vec::new() }
    }

    /// A request was in flight in this time. Requests come in the order of their ends.
    pub fn add(&mut self, from: Instant, to: Instant) {
        let mut from = from.max(self.settled);
        while let Some(last) = self.stretches.pop_if(|last| from <= last.1) {
            from = from.min(last.0);
        }
        if from < to {
            if self.stretches.len() == KEPT {
                self.settle(KEPT / 2);
            }
            self.stretches.push((from, to));
        }
    }

    /// Ends the interval and begins the next. `in_flight_since` is the start of the oldest request
    /// that is in flight now.
    pub fn cut(&mut self, now: Instant, in_flight_since: Option<Instant>) -> Span {
        if let Some(since) = in_flight_since {
            self.add(since, now);
        }
        self.settle(self.stretches.len());
        self.settled = now;
        std::mem::take(&mut self.sum)
    }

    fn settle(&mut self, first: usize) {
        for (from, to) in self.stretches.drain(..first) {
            self.sum += to.since(from);
            self.settled = to;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn requests_at_the_same_time_count_once() {
        let mut busy = Busy::begin(Instant(100));
        for (from, to) in [(110, 120), (130, 140), (135, 150), (160, 161), (105, 170)] {
            busy.add(Instant(from), Instant(to));
        }
        assert_eq!(busy.cut(Instant(200), None), Span(65));
        busy.add(Instant(190), Instant(230));
        assert_eq!(busy.cut(Instant(300), Some(Instant(290))), Span(40));
        assert_eq!(busy.cut(Instant(400), Some(Instant(290))), Span(100));
        assert_eq!(busy.cut(Instant(500), None), Span(0));
    }

    #[test]
    fn more_stretches_than_are_kept_add_up() {
        let mut busy = Busy::begin(Instant(0));
        let many = 3 * KEPT as u64;
        for nth in 0..many {
            busy.add(Instant(nth * 10), Instant(nth * 10 + 3));
        }
        assert!(busy.stretches.len() <= KEPT);
        assert_eq!(busy.cut(Instant(many * 10), None), Span(3 * many));
    }

    proptest! {
        #[test]
        fn it_is_the_number_of_moments_with_a_request_in_flight(
            mut requests in prop::collection::vec((0_u64..400, 1_u64..60), 0..40),
            cut in 100_u64..300,
        ) {
            requests.sort_by_key(|(from, length)| from + length);
            let mut busy = Busy::begin(Instant(50));
            let (before, after): (Vec<_>, Vec<_>) =
                requests.iter().partition(|(from, length)| from + length <= cut);
            for (from, length) in before {
                busy.add(Instant(from), Instant(from + length));
            }
            let in_flight = after.iter().map(|(from, _)| *from).filter(|from| *from < cut).min();
            let first = busy.cut(Instant(cut), in_flight.map(Instant));
            for (from, length) in after {
                busy.add(Instant(from), Instant(from + length));
            }
            let second = busy.cut(Instant(460), None);
            let is_busy = |at: &u64| {
                requests.iter().any(|(from, length)| (*from..from + length).contains(at))
            };
            prop_assert_eq!(first.0, (50..cut).filter(is_busy).count() as u64);
            prop_assert_eq!(second.0, (cut..460).filter(is_busy).count() as u64);
        }
    }
}
