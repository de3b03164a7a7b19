//! When an interleaved comparison may stop early.

/// The looks at a comparison while it runs. Each is a chance of a false alarm, so that each has a
/// small part of the level of the whole, and the last has the rest (Haybittle, British Journal of
/// Radiology 44, 1971; Peto et al., British Journal of Cancer 34, 1976). The parts add up to the
/// whole, which holds however the looks depend on each other (Bonferroni's inequality).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Looks {
    alpha: f64,
    count: u32,
}

impl Looks {
    /// The part of the level that all looks before the last share.
    const EARLY: f64 = 0.2;

    /// This many looks, the last of them included, at this level together. The number has to be
    /// settled before the first.
    pub fn new(alpha: f64, count: u32) -> Self {
        Self { alpha, count }
    }

    /// The level of each look before the last: what is decided at it may stand.
    pub fn early(self) -> f64 {
        match self.count {
            0 | 1 => self.alpha,
            count => self.alpha * Self::EARLY / f64::from(count - 1),
        }
    }

    /// The level of the last look: when all trials are there, or when somebody stopped them who did
    /// not know the results.
    pub fn last(self) -> f64 {
        match self.count {
            0 | 1 => self.alpha,
            _ => self.alpha * (1.0 - Self::EARLY),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_levels_of_all_looks_add_up() {
        for count in [1, 2, 8, 100] {
            let looks = Looks::new(0.05, count);
            let sum = f64::from(count - 1) * looks.early() + looks.last();
            assert!((sum - 0.05).abs() < 1e-12, "{count}: {sum}");
            assert!(looks.early() <= looks.last());
        }
    }
}
