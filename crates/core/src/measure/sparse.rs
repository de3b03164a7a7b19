//! A histogram as its occupied buckets, packed: a series keeps one for each of its stretches, of
//! which thousands are in memory at once.

use super::leb128;

/// The occupied buckets, each as the distance of its lower bound from the one before it and its
/// count, in bytes of seven bits: 3 to 4 bytes for most, instead of 16 for two numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SparseHistogram {
    packed: Box<[u8]>,
    /// The smallest value, if there is one.
    pub min: u64,
    /// The largest value.
    pub max: u64,
    /// The sum of all values.
    pub sum: u128,
}

impl SparseHistogram {
    /// Packs buckets: their lower bounds in rising order, and how many values each holds.
    pub fn new(
        buckets: impl IntoIterator<Item = (u64, u64)>,
        (min, max): (u64, u64),
        sum: u128,
    ) -> Self {
        let mut packed = Vec::new();
        let mut last = 0;
        for (lower, count) in buckets {
            assert!(last <= lower, "buckets are in rising order");
            leb128::push(&mut packed, lower - last);
            leb128::push(&mut packed, count);
            last = lower;
        }
        Self { packed: packed.into_boxed_slice(), min, max, sum }
    }

    /// The lower bound of each occupied bucket and its count, in rising order.
    pub fn buckets(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        let (mut rest, mut lower) = (&*self.packed, 0);
        std::iter::from_fn(move || {
            lower += leb128::take(&mut rest)?;
            Some((lower, leb128::take(&mut rest)?))
        })
    }

    /// Whether there is no value.
    pub fn is_empty(&self) -> bool {
        self.packed.is_empty()
    }

    /// The number of values.
    pub fn count(&self) -> u64 {
        self.buckets().map(|(_, n)| n).sum()
    }

    /// Adds everything that `other` holds.
    pub fn merge(&mut self, other: &Self) {
        if other.is_empty() {
            return;
        }
        *self = match self.is_empty() {
            true => other.clone(),
            false => self.plus(other),
        };
    }

    /// The sum of two histograms that are not empty.
    fn plus(&self, other: &Self) -> Self {
        let (mut mine, mut theirs) = (self.buckets().peekable(), other.buckets().peekable());
        let both = std::iter::from_fn(|| {
            let lower = match (mine.peek(), theirs.peek()) {
                (Some(one), Some(two)) => one.0.min(two.0),
                (Some(one), None) | (None, Some(one)) => one.0,
                (None, None) => return None,
            };
            let one = mine.next_if(|bucket| bucket.0 == lower).map_or(0, |bucket| bucket.1);
            let two = theirs.next_if(|bucket| bucket.0 == lower).map_or(0, |bucket| bucket.1);
            Some((lower, one + two))
        });
        let range = (self.min.min(other.min), self.max.max(other.max));
        Self::new(both, range, self.sum + other.sum)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::Histogram;
    use proptest::prelude::*;

    fn sparse(values: &[u64]) -> SparseHistogram {
        let mut histogram = Histogram::default();
        values.iter().for_each(|&value| histogram.record(value));
        histogram.to_sparse()
    }

    #[test]
    fn a_usual_bucket_takes_few_bytes() {
        let values: Vec<u64> = (0..300).map(|k| 100_000 + k * 1_000).collect();
        let sparse = sparse(&values);
        let buckets = sparse.buckets().count();
        assert!(buckets > 100 && sparse.packed.len() <= 4 * buckets, "{}", sparse.packed.len());
        assert!(SparseHistogram::default().is_empty() && !sparse.is_empty());
        assert_eq!(SparseHistogram::default().buckets().next(), None);
    }

    proptest! {
        #[test]
        fn what_was_packed_comes_out_again(
            steps in prop::collection::vec((0u32..58, any::<u64>(), 0u32..64, any::<u64>()), 0..40)
        ) {
            let mut last = 0;
            let buckets: Vec<(u64, u64)> = steps
                .into_iter()
                .map(|(step_shift, step, count_shift, count)| {
                    last += step >> 6 >> step_shift;
                    (last, count >> count_shift)
                })
                .collect();
            let packed = SparseHistogram::new(buckets.iter().copied(), (0, last), 7);
            prop_assert_eq!(packed.buckets().collect::<Vec<_>>(), buckets);
        }

        #[test]
        fn sparse_histograms_merge_as_full_ones_do(
            a in prop::collection::vec(any::<u64>(), 0..50),
            b in prop::collection::vec(any::<u64>(), 0..50),
        ) {
            let mut sum = sparse(&a);
            sum.merge(&sparse(&b));
            let all: Vec<u64> = a.into_iter().chain(b).collect();
            prop_assert_eq!(sum, sparse(&all));
        }
    }
}
