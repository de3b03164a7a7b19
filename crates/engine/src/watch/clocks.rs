//! The clock of the load generator beside the kernel's monotonic one: they run at rates that differ
//! by some millionths, and one of them may be corrected meanwhile. So both are read again and again,
//! and an instant is moved from one to the other between two such readings.

use std::collections::VecDeque;

use fathom_core::Instant;

use crate::clock::{Clock, monotonic};

/// The most readings that are kept: seven minutes of twenty a second.
const READINGS_MAX: usize = 1 << 13;

/// How often both are read for one reading, to find a moment in which nothing came between.
const TRIES: u32 = 5;

/// Both clocks at one moment.
#[derive(Clone, Copy, Debug)]
struct Reading {
    own: u64,
    kernel: u64,
}

/// The readings so far.
#[derive(Debug, Default)]
pub(super) struct Clocks {
    clock: Clock,
    readings: VecDeque<Reading>,
}

impl Clocks {
    /// Reads both.
    pub(super) fn read(&mut self) {
        let one = || {
            let before = self.clock.now().0;
            let kernel = monotonic();
            let after = self.clock.now().0;
            (after - before, Reading { own: before + (after - before) / 2, kernel })
        };
        let best = (0..TRIES).map(|_| one()).min_by_key(|(width, _)| *width);
        self.keep(best.expect("there is at least one try").1);
    }

    fn keep(&mut self, reading: Reading) {
        if self.readings.len() == READINGS_MAX {
            self.readings.pop_front();
        }
        self.readings.push_back(reading);
    }

    /// An instant of the load generator's by the kernel's clock: on the line between the readings
    /// around it, and before the first or after the last of them as far from it as by the other
    /// clock. The same instant if there are no readings.
    pub(super) fn by_kernel(&self, own: Instant) -> Instant {
        let behind = self.readings.partition_point(|reading| reading.own <= own.0);
        let before = behind.checked_sub(1).and_then(|place| self.readings.get(place));
        let after = self.readings.get(behind);
        let shifted = |reading: &Reading| {
            Instant(reading.kernel.wrapping_add(own.0.wrapping_sub(reading.own)))
        };
        match (before, after) {
            (Some(before), Some(after)) => {
                let part =
                    u128::from(own.0 - before.own) * u128::from(after.kernel - before.kernel);
                Instant(before.kernel + (part / u128::from(after.own - before.own)) as u64)
            }
            (Some(one), None) | (None, Some(one)) => shifted(one),
            (None, None) => own,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instant_moves_along_the_line_between_two_readings() {
        let mut clocks = Clocks::default();
        assert_eq!(clocks.by_kernel(Instant(7)), Instant(7));
        for (own, kernel) in [(1000, 5000), (2000, 6100), (3000, 6900)] {
            clocks.keep(Reading { own, kernel });
        }
        for (own, kernel) in
            [(900, 4900), (1000, 5000), (1500, 5550), (2000, 6100), (2500, 6500), (3010, 6910)]
        {
            assert_eq!(clocks.by_kernel(Instant(own)), Instant(kernel), "{own}");
        }
    }

    #[test]
    fn both_clocks_of_this_machine_name_the_same_moment() {
        let mut clocks = Clocks::default();
        let clock = Clock::default();
        clocks.read();
        let (before, own, after) = (monotonic(), clock.now(), monotonic());
        std::thread::sleep(std::time::Duration::from_millis(5));
        clocks.read();
        let moved = clocks.by_kernel(own).0;
        // A pause between two readings of the clocks makes the middle of them a guess: each of five
        // tries would have to be hit.
        let slack = 100_000;
        assert!(before - slack <= moved && moved <= after + slack, "{before} {moved} {after}");
    }

    #[test]
    fn readings_have_an_end() {
        let mut clocks = Clocks::default();
        for number in 0..READINGS_MAX as u64 + 5 {
            clocks.keep(Reading { own: number, kernel: number });
        }
        assert_eq!(clocks.readings.len(), READINGS_MAX);
    }
}
