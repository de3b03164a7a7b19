//! Which units equal one before them: exactly the requested share, spread evenly, from the first
//! on.
//!
//! All duplicates are copies of a few common units, which have been written as new ones before.
//! They are spread over these, so that duplicates close to each other differ. Because the common
//! units are few, the content that is left after most of it was overwritten has the same share of
//! duplicates.

/// The golden ratio: multiples of it spread any number of points evenly over their fractions.
pub(super) const SPREAD: f64 = 0.618_033_988_749_894_9;

/// Numbers units one after the other. Equal numbers stand for equal units.
#[derive(Clone, Debug)]
pub(crate) struct Dedup {
    commons: u64,
    /// The units so far that equal no earlier unit.
    new: u64,
    /// The units so far that equal an earlier unit.
    duplicates: u64,
}

impl Dedup {
    /// Before the first unit. Duplicates are taken from this many units, at least one.
    pub(crate) fn new(commons: u64) -> Self {
        assert!(commons > 0);
        Self { commons, new: 0, duplicates: 0 }
    }

    /// After this many units of one line.
    pub(crate) fn after(units: u64, share: f64, commons: u64) -> Self {
        let duplicates = (units as f64 * share).floor() as u64;
        Self { duplicates, new: units - duplicates, ..Self::new(commons) }
    }

    /// Whether a unit is a duplicate, of a line of units that begins at this phase, from 0 to 1.
    pub(crate) fn is_duplicate(share: f64, index: u64, phase: f64) -> bool {
        let before = |units: u64| (units as f64 * share + phase).floor();
        before(index + 1) > before(index)
    }

    /// The number of the next unit. A duplicate without any unit before it is a new one.
    pub(crate) fn next(&mut self, duplicate: bool) -> u64 {
        if !duplicate || self.new == 0 {
            self.new += 1;
            return self.new - 1;
        }
        // There is one more common unit for every two duplicates, so that they soon differ and a
        // short run has its duplicates too.
        let known = (1 + self.duplicates / 2).min(self.commons).min(self.new);
        self.duplicates += 1;
        ((self.duplicates as f64 * SPREAD).fract() * known as f64) as u64
    }

    /// Whether the unit with this number may have duplicates.
    pub(crate) fn is_common(&self, number: u64) -> bool {
        number < self.commons
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn numbers(share: f64, commons: u64, count: u64) -> Vec<u64> {
        let mut dedup = Dedup::new(commons);
        (0..count).map(|i| dedup.next(Dedup::is_duplicate(share, i, 0.0))).collect()
    }

    #[test]
    fn the_share_of_duplicates_is_exact_from_the_first_unit_on() {
        for share in [0.0, 0.01, 0.3, 0.5, 0.77, 0.99, 1.0] {
            let numbers = numbers(share, 256, 20_000);
            let mut seen = HashSet::new();
            let mut duplicates = 0;
            for (written, number) in numbers.iter().enumerate() {
                duplicates += u64::from(!seen.insert(number));
                let wanted = share * (written + 1) as f64;
                assert!((duplicates as f64 - wanted).abs() <= 1.0, "{share} {written}");
            }
        }
    }

    #[test]
    fn what_lies_close_together_differs() {
        for share in [0.1, 0.3, 0.5, 0.8] {
            // 128 KiB. At first only a few units exist that can be repeated.
            let numbers = numbers(share, 256, 32 * 100);
            for chunk in numbers.chunks(32).skip(20) {
                let different: HashSet<_> = chunk.iter().collect();
                assert!(different.len() >= 30, "{share} {chunk:?}");
            }
        }
    }

    #[test]
    fn what_is_left_after_much_was_overwritten_has_the_share_too() {
        let numbers = numbers(0.3, 128, 40_000);
        // One in three remains.
        let left: Vec<_> = numbers.iter().step_by(3).collect();
        let different: HashSet<_> = left.iter().collect();
        let share = 1.0 - different.len() as f64 / left.len() as f64;
        assert!((share - 0.3).abs() < 0.02, "{share}");
    }

    #[test]
    fn a_line_can_be_entered_anywhere() {
        for share in [0.0, 0.3, 0.9, 1.0] {
            let line = numbers(share, 64, 3000);
            for at in [0, 1, 2, 7, 100, 1999, 2999] {
                let duplicate = Dedup::is_duplicate(share, at, 0.0);
                let number = Dedup::after(at, share, 64).next(duplicate);
                assert_eq!(number, line[at as usize], "{share} {at}");
            }
        }
    }
}
