//! The last second of a run, all streams together: what the live view shows.

use std::collections::{BTreeMap, VecDeque};

use fathom_core::measure::{Histogram, SparseHistogram, Stretch};
use fathom_core::stats::carries;
use fathom_core::{Instant, Quantile, Span};

/// How far back the figures reach, or one interval if that is longer.
const REACH: Span = Span::from_secs(1);

/// The percentile of the view.
const TAIL: Quantile = Quantile(0.99);

/// What a run did in its last second.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LastSecond {
    /// Reads and writes that completed per second.
    pub iops: f64,
    /// Bytes per second.
    pub bandwidth: f64,
    /// Trims that completed per second.
    pub trims: f64,
    /// The mean response time in nanoseconds; none without a read or a write.
    pub mean: Option<f64>,
    /// The 99th percentile of the response time in nanoseconds; none if too few samples carry it.
    pub p99: Option<u64>,
    /// The longest response time in nanoseconds; none without a read or a write.
    pub longest: Option<u64>,
    /// The response times of all reads and writes, so that those of several hosts can be added up.
    pub times: SparseHistogram,
}

impl LastSecond {
    /// The same with these response times, and the figures that follow from them.
    pub fn with_times(self, times: &Histogram) -> Self {
        let p99 = carries(times, TAIL).then(|| times.quantile(TAIL)).flatten();
        let (mean, longest) = (times.mean(), times.max());
        Self { mean, p99, longest, times: times.to_sparse(), ..self }
    }
}

/// The latest slices of each stream's series.
#[derive(Clone, Debug, Default)]
pub(crate) struct Recent {
    /// With their ends and their trims, as they came: nearly in order.
    slices: VecDeque<(Instant, u64, Stretch)>,
    newest: Instant,
}

impl Recent {
    /// Adds a slice that ended then, with its trims, and forgets those that are too old. Returns
    /// whether it is the first of its time: one of several streams is enough to draw the view anew.
    pub(crate) fn add(&mut self, end: Instant, trims: u64, slice: Stretch) -> bool {
        let is_new = self.newest < end;
        self.newest = self.newest.max(end);
        self.slices.push_back((end, trims, slice));
        while self.slices.front().is_some_and(|(end, ..)| *end + REACH <= self.newest) {
            self.slices.pop_front();
        }
        is_new
    }

    /// The figures. A stream's rates are those of the time that its own slices cover, so that a
    /// stream which reports late is not taken for an idle one.
    pub(crate) fn figures(&self) -> LastSecond {
        let mut sum = LastSecond::default();
        let mut times = Histogram::default();
        let mut covered: BTreeMap<u32, Span> = BTreeMap::new();
        for (.., slice) in &self.slices {
            *covered.entry(slice.stream).or_default() += slice.length;
        }
        for (_, trims, slice) in &self.slices {
            let seconds = covered[&slice.stream].as_secs_f64().max(f64::MIN_POSITIVE);
            let ios: u64 = slice.response_time.iter().map(SparseHistogram::count).sum();
            sum.iops += ios as f64 / seconds;
            sum.bandwidth += (slice.bytes[0].0 + slice.bytes[1].0) as f64 / seconds;
            sum.trims += *trims as f64 / seconds;
            slice.response_time.iter().for_each(|one| times.merge_sparse(one));
        }
        sum.with_times(&times)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fathom_core::Bytes;

    /// A slice of a stream in which an I/O of 4 KiB took each of these times.
    fn slice(stream: u32, length: Span, times: impl IntoIterator<Item = u64>) -> Stretch {
        let mut all = Histogram::default();
        times.into_iter().for_each(|time| all.record(time));
        Stretch {
            stream,
            length,
            bytes: [Bytes(all.count() * 4096), Bytes(0)],
            response_time: [all.to_sparse(), SparseHistogram::default()],
            ..Stretch::default()
        }
    }

    #[test]
    fn the_figures_are_those_of_the_last_second_of_all_streams() {
        let mut recent = Recent::default();
        assert_eq!(recent.figures(), LastSecond::default());
        let tenth = Span::from_ms(100);
        for k in 1..=30_u64 {
            let end = Instant(k * tenth.0);
            // The first stream does 1,000 I/Os a second and gets slower; the other one begins late,
            // and does 100.
            recent.add(end, 2, slice(0, tenth, (0..100).map(|_| k * 1000)));
            if 26 <= k {
                recent.add(end, 0, slice(1, tenth, (0..10).map(|_| 900_000)));
            }
        }
        let figures = recent.figures();
        assert!((figures.iops - 1100.0).abs() < 1e-6, "{figures:?}");
        assert!((figures.bandwidth - 1100.0 * 4096.0).abs() < 1e-3, "{figures:?}");
        assert!((figures.trims - 20.0).abs() < 1e-9, "{figures:?}");
        let mean = (100.0 * (21..=30).sum::<u64>() as f64 * 1000.0 + 50.0 * 900_000.0) / 1050.0;
        assert!((figures.mean.unwrap() / mean - 1.0).abs() < 1e-9, "{figures:?}");
        assert_eq!(figures.longest, Some(900_000));
        assert!(890_000 < figures.p99.unwrap(), "{figures:?}");
    }

    #[test]
    fn long_intervals_count_alone_and_few_samples_carry_no_percentile() {
        let mut recent = Recent::default();
        let long = Span::from_secs(10);
        recent.add(Instant(10_000_000_000), 0, slice(0, long, [5_000; 50]));
        recent.add(Instant(20_000_000_000), 0, slice(0, long, [7_000; 20]));
        let figures = recent.figures();
        assert!((figures.iops - 2.0).abs() < 1e-9, "{figures:?}");
        assert_eq!((figures.p99, figures.longest), (None, Some(7_000)));
    }
}
