//! A log-linear histogram of nanoseconds over the full range of u64.
//!
//! Each power of two is cut into 128 buckets, so a bucket is at most 1/128 of its lower bound wide
//! and its middle is within 0.4 % of every value in it. Below 256 ns every value has its own bucket.
//!
//! There is memory only for the powers of two that hold a value: with a folder of thousands of
//! files, each file has its own distributions. Where allocation is not allowed there is memory for
//! all of them from the start.

use super::SparseHistogram;
use crate::units::Quantile;

/// 2^7 = 128 buckets for each power of two.
const SUB_BITS: u32 = 7;
const SUB: u64 = 1 << SUB_BITS;
const BUCKETS: usize = ((64 - SUB_BITS) as usize + 1) << SUB_BITS;

/// The distribution of a time. Recording is a shift, an addition and two increments; merging is
/// addition, so the order in which histograms are merged does not matter.
#[derive(Clone)]
pub struct Histogram {
    /// The first bucket that has memory.
    first: usize,
    /// The counts from this bucket on; all other buckets are empty.
    buckets: Vec<u64>,
    count: u64,
    sum: u128,
    min: u64,
    max: u64,
}

impl Default for Histogram {
    fn default() -> Self {
        Self { first: 0, buckets: Vec::new(), count: 0, sum: 0, min: u64::MAX, max: 0 }
    }
}

impl PartialEq for Histogram {
    /// Two histograms with different amounts of memory may be equal.
    fn eq(&self, other: &Self) -> bool {
        let figures = |one: &Self| (one.count, one.sum, one.min, one.max);
        figures(self) == figures(other)
            && self.occupied().all(|index| self.at(index) == other.at(index))
    }
}

impl Eq for Histogram {}

impl std::fmt::Debug for Histogram {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Histogram")
            .field("count", &self.count)
            .field("min", &self.min())
            .field("p50", &self.quantile(Quantile(0.5)))
            .field("max", &self.max())
            .finish_non_exhaustive()
    }
}

#[inline]
fn index_of(value: u64) -> usize {
    // With the highest set bit at b >= 7, the top eight bits name the bucket: the octave is
    // b - 7 + 1 and the seven bits below the top one are the place in it.
    let high = 63 - (value | SUB).leading_zeros();
    let shift = high - SUB_BITS;
    ((shift as usize) << SUB_BITS) + (value >> shift) as usize
}

fn lower_bound(index: usize) -> u64 {
    let octave = index >> SUB_BITS;
    if octave <= 1 {
        return index as u64;
    }
    (SUB + (index as u64 & (SUB - 1))) << (octave - 1)
}

/// The number of the bucket that holds a value: the value itself below 256, and from there on 128
/// buckets for each power of two.
pub fn bucket_of(value: u64) -> u64 {
    index_of(value) as u64
}

/// The smallest value that a bucket of this number holds; none if there is no such bucket.
pub fn bucket_start(number: u64) -> Option<u64> {
    (number < BUCKETS as u64).then(|| lower_bound(number as usize))
}

fn middle(index: usize) -> u64 {
    let octave = index >> SUB_BITS;
    let width = if octave <= 1 { 1 } else { 1u64 << (octave - 1) };
    lower_bound(index) + (width - 1) / 2
}

impl Histogram {
    /// An empty histogram that never allocates again: 58 KiB.
    pub fn roomy() -> Self {
        Self { buckets: vec![0; BUCKETS], ..Self::default() }
    }

    /// The count of a bucket.
    fn at(&self, index: usize) -> u64 {
        self.buckets.get(index.wrapping_sub(self.first)).copied().unwrap_or(0)
    }

    #[inline]
    fn add(&mut self, index: usize, times: u64) {
        match self.buckets.get_mut(index.wrapping_sub(self.first)) {
            Some(bucket) => *bucket += times,
            None => self.grow(index, times),
        }
    }

    /// Makes room for the whole power of two that the bucket is in, and adds to it.
    #[cold]
    fn grow(&mut self, index: usize, times: u64) {
        let octave = index >> SUB_BITS << SUB_BITS;
        let (mut from, mut to) = (octave, octave + SUB as usize);
        if !self.buckets.is_empty() {
            from = from.min(self.first);
            to = to.max(self.first + self.buckets.len());
        }
        let mut buckets = vec![0; to - from];
        if !self.buckets.is_empty() {
            buckets[self.first - from..][..self.buckets.len()].copy_from_slice(&self.buckets);
        }
        (self.first, self.buckets) = (from, buckets);
        self.buckets[index - from] += times;
    }

    /// Adds one value.
    #[inline]
    pub fn record(&mut self, value: u64) {
        self.add(index_of(value), 1);
        self.count += 1;
        self.sum += u128::from(value);
        // Branches, because they are rarely taken: most values change neither.
        if value < self.min {
            self.min = value;
        }
        if value > self.max {
            self.max = value;
        }
    }

    /// Adds the same value this many times, at the cost of one.
    #[inline]
    pub fn record_many(&mut self, value: u64, times: u64) {
        if times == 0 {
            return;
        }
        self.add(index_of(value), times);
        self.count += times;
        self.sum += u128::from(value) * u128::from(times);
        self.min = self.min.min(value);
        self.max = self.max.max(value);
    }

    /// Adds everything that `other` holds.
    pub fn merge(&mut self, other: &Self) {
        for index in other.occupied() {
            match other.at(index) {
                0 => {}
                times => self.add(index, times),
            }
        }
        self.count += other.count;
        self.sum += other.sum;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
    }

    /// Adds everything that `other` holds. A value of a foreign resolution counts in the bucket of
    /// its lower bound.
    pub fn merge_sparse(&mut self, other: &SparseHistogram) {
        let mut count = 0;
        for (lower, n) in other.buckets() {
            self.add(index_of(lower), n);
            count += n;
        }
        if count == 0 {
            return;
        }
        self.count += count;
        self.sum += other.sum;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
    }

    /// Removes all values. Touches only the buckets between the smallest and the largest value.
    pub fn clear(&mut self) {
        let occupied = self.occupied();
        // Only a histogram that was read from a file can have a largest value without a bucket.
        let end = self.buckets.len();
        let place = |index: usize| index.saturating_sub(self.first).min(end);
        let range = place(occupied.start)..place(occupied.end);
        self.buckets[range].fill(0);
        self.count = 0;
        self.sum = 0;
        self.min = u64::MAX;
        self.max = 0;
    }

    /// The buckets that may hold values.
    fn occupied(&self) -> std::ops::Range<usize> {
        match self.count {
            0 => 0..0,
            _ => index_of(self.min)..index_of(self.max) + 1,
        }
    }

    /// The number of values.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The sum of all values, exact.
    pub fn sum(&self) -> u128 {
        self.sum
    }

    /// The smallest value, exact.
    pub fn min(&self) -> Option<u64> {
        (self.count > 0).then_some(self.min)
    }

    /// The largest value, exact.
    pub fn max(&self) -> Option<u64> {
        (self.count > 0).then_some(self.max)
    }

    /// The mean, exact.
    pub fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum as f64 / self.count as f64)
    }

    /// The standard deviation of the population, from the buckets' middles.
    pub fn standard_deviation(&self) -> Option<f64> {
        let mean = self.mean()?;
        let squares: f64 = self
            .occupied()
            .map(|index| {
                let middle = middle(index).clamp(self.min, self.max) as f64;
                self.at(index) as f64 * (middle - mean).powi(2)
            })
            .sum();
        Some((squares / self.count as f64).sqrt())
    }

    /// The smallest value whose cumulative count is at least q of all, within 0.4 %. The caller has
    /// to check whether enough values lie beyond it (see `stats`).
    pub fn quantile(&self, quantile: Quantile) -> Option<u64> {
        if self.count == 0 {
            return None;
        }
        let rank = (quantile.0 * self.count as f64).ceil().clamp(1.0, self.count as f64) as u64;
        self.value_at_rank(rank)
    }

    /// The value with `rank - 1` values before it, from rank 1 to the count, within 0.4 %.
    pub fn value_at_rank(&self, rank: u64) -> Option<u64> {
        if rank == 0 || rank > self.count {
            return None;
        }
        let mut seen = 0;
        let index = self.occupied().find(|&index| {
            seen += self.at(index);
            seen >= rank
        });
        index.map(|index| middle(index).clamp(self.min, self.max))
    }

    /// The buckets that hold values.
    pub fn to_sparse(&self) -> SparseHistogram {
        let holds = self.occupied().filter(|&index| self.at(index) > 0);
        let buckets = holds.map(|index| (lower_bound(index), self.at(index)));
        SparseHistogram::new(buckets, (self.min().unwrap_or(0), self.max), self.sum)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn buckets_are_contiguous_over_the_full_range() {
        let mut last = 0;
        for index in 1..BUCKETS {
            let lower = lower_bound(index);
            assert!(lower > last);
            assert_eq!(index_of(lower), index);
            assert_eq!(index_of(lower - 1), index - 1);
            last = lower;
        }
        assert_eq!(index_of(u64::MAX), BUCKETS - 1);
    }

    #[test]
    fn a_bucket_has_a_number_and_the_number_its_start() {
        for (value, number, start) in
            [(0, 0, 0), (255, 255, 255), (256, 256, 256), (257, 256, 256), (258, 257, 258)]
        {
            assert_eq!((bucket_of(value), bucket_start(number)), (number, Some(start)));
        }
        assert_eq!(bucket_start(bucket_of(u64::MAX)), Some(255 << 56));
        assert_eq!(bucket_start(bucket_of(u64::MAX) + 1), None);
    }

    #[test]
    fn an_empty_histogram_has_no_figures() {
        let empty = Histogram::default();
        assert_eq!(empty.quantile(Quantile(0.5)), None);
        assert_eq!(empty.mean(), None);
        assert_eq!(empty.min(), None);
        assert_eq!(empty.to_sparse().count(), 0);
    }

    #[test]
    fn there_is_memory_for_what_it_holds_or_for_everything_from_the_start() {
        let mut histogram = Histogram::default();
        assert_eq!(histogram.buckets.capacity(), 0);
        (90_000..110_000).for_each(|value| histogram.record(value));
        assert!(histogram.buckets.len() <= 2 * SUB as usize);
        histogram.record(1);
        assert!(histogram.buckets.len() < BUCKETS / 2);
        histogram.clear();
        assert!(histogram == Histogram::default());
        let mut roomy = Histogram::roomy();
        let place = roomy.buckets.as_ptr();
        [0, 300, 1 << 40, u64::MAX].into_iter().for_each(|value| roomy.record(value));
        roomy.clear();
        assert_eq!((roomy.buckets.as_ptr(), roomy.buckets.len()), (place, BUCKETS));
    }

    fn of(values: &[u64]) -> Histogram {
        let mut histogram = Histogram::default();
        values.iter().for_each(|&value| histogram.record(value));
        histogram
    }

    /// Values of every magnitude, not only near the largest.
    fn times() -> impl Strategy<Value = Vec<u64>> {
        prop::collection::vec((0u32..64, any::<u64>()).prop_map(|(s, v)| v >> s), 1..300)
    }

    proptest! {
        #[test]
        fn a_quantile_is_within_the_bound_of_the_sorted_value(
            mut values in times(), q in 0.0f64..=1.0
        ) {
            let histogram = of(&values);
            values.sort_unstable();
            let rank = ((q * values.len() as f64).ceil() as usize).clamp(1, values.len());
            let exact = values[rank - 1] as f64;
            let shown = histogram.quantile(Quantile(q)).unwrap() as f64;
            prop_assert!((shown - exact).abs() <= exact * 0.004 + 0.5, "{shown} for {exact}");
        }

        #[test]
        fn merging_is_associative_and_commutative(a in times(), b in times(), c in times()) {
            let (mut left, mut right) = (of(&a), of(&c));
            left.merge(&of(&b));
            left.merge(&of(&c));
            right.merge(&of(&b));
            right.merge(&of(&a));
            prop_assert!(left == right);
            let all: Vec<u64> = a.into_iter().chain(b).chain(c).collect();
            prop_assert!(left == of(&all));
        }

        #[test]
        fn recording_many_is_recording_one_so_often(
            runs in prop::collection::vec((any::<u64>(), 0u64..5), 0..50)
        ) {
            let (mut at_once, mut one_by_one) = (Histogram::default(), Histogram::default());
            for (value, times) in runs {
                at_once.record_many(value, times);
                (0..times).for_each(|_| one_by_one.record(value));
            }
            prop_assert!(at_once == one_by_one);
        }

        #[test]
        fn sparse_and_back_loses_nothing(values in times()) {
            let histogram = of(&values);
            let mut back = Histogram::default();
            back.merge_sparse(&histogram.to_sparse());
            prop_assert!(back == histogram);
        }

        #[test]
        fn clearing_leaves_nothing(values in times()) {
            let mut histogram = of(&values);
            histogram.clear();
            prop_assert!(histogram == Histogram::default());
        }
    }
}
