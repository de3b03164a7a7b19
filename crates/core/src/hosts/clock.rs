//! How far another host's clock is from this one, by questions for the time (Cristian, "Probabilistic
//! clock synchronization", 1989).

use crate::units::Span;

/// A question for the time, and its answer. All in nanoseconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exchange {
    /// When it was asked, by the clock here.
    pub asked: u64,
    /// What the other host said.
    pub told: u64,
    /// When the answer came, by the clock here.
    pub answered: u64,
}

/// The difference of two clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockOffset {
    /// The other host's clock minus the one here, in nanoseconds.
    pub ns: i64,
    /// How far that may be wrong.
    pub bound: Span,
}

impl Exchange {
    /// The difference that it shows: the answer was given between question and arrival, so the middle
    /// is wrong by half of that time at most.
    pub fn offset(self) -> ClockOffset {
        let round_trip = self.answered.saturating_sub(self.asked);
        let middle = self.asked + round_trip / 2;
        ClockOffset {
            ns: self.told.wrapping_sub(middle) as i64,
            bound: Span(round_trip.div_ceil(2)),
        }
    }
}

impl ClockOffset {
    /// A time here, by the other host's clock.
    pub fn there(self, here: u64) -> u64 {
        here.saturating_add_signed(self.ns)
    }

    /// A time of the other host, by the clock here.
    pub fn here(self, there: u64) -> u64 {
        there.saturating_add_signed(self.ns.saturating_neg())
    }
}

/// The difference by the exchange with the shortest round trip.
pub fn best(exchanges: impl IntoIterator<Item = Exchange>) -> Option<ClockOffset> {
    exchanges.into_iter().map(Exchange::offset).min_by_key(|offset| offset.bound)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SplitMix64;

    #[test]
    fn the_true_difference_is_always_within_the_bound() {
        let mut random = SplitMix64(5);
        let base = 1_795_000_000_000_000_000_u64;
        for k in 0..10_000_u64 {
            let offset = (random.draw() % 10_000_000_000) as i64 - 5_000_000_000;
            let delays = [random.draw() % 3_000_000, random.draw() % 3_000_000];
            let asked = base + k;
            let told = (asked + delays[0]).saturating_add_signed(offset);
            let one = Exchange { asked, told, answered: asked + delays[0] + delays[1] };
            let found = one.offset();
            assert!(found.ns.abs_diff(offset) <= found.bound.0, "{one:?} {found:?} {offset}");
            assert!(found.here(found.there(base)) == base);
        }
    }

    #[test]
    fn the_shortest_round_trip_counts() {
        let exchange = |asked, told, answered| Exchange { asked, told, answered };
        let all = [exchange(100, 1150, 200), exchange(300, 1305, 310), exchange(400, 1900, 900)];
        assert_eq!(best(all), Some(ClockOffset { ns: 1000, bound: Span(5) }));
        assert_eq!(best([]), None);
    }
}
