//! The series of a run: the figures over time, in bounded memory.
//!
//! Every requested interval keeps its plain numbers. Full distributions are kept for at most
//! [`STRETCHES_MAX`] stretches of the window: when there are more, neighbors are merged, which
//! loses only resolution in time. So a run of a day needs as much memory for its distributions as a
//! run of ten minutes, and no percentile is ever averaged.

use std::collections::BTreeMap;

use super::SparseHistogram;
use crate::units::{Bytes, Span};

/// The most stretches that a stream has. Windows below a minute have at most this many intervals of
/// 100 ms, and windows of ten minutes have this many intervals of a second: up to there each
/// interval is a stretch.
pub const STRETCHES_MAX: usize = 600;

/// One interval of a stream's series in plain numbers, all its workers together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Interval {
    /// The stream's place in the point.
    pub stream: u32,
    /// From the start of the window to the start of the interval.
    pub start: Span,
    /// How long it is.
    pub length: Span,
    /// I/Os that failed.
    pub failed: u64,
    /// I/Os that completed, by direction.
    pub ios: [u64; 2],
    /// Bytes that completed, by direction.
    pub bytes: [Bytes; 2],
    /// Their response times, by direction.
    pub times: [Times; 2],
    /// How long the oldest I/O that was due and not started had been due at its end, of the worker
    /// that was furthest behind; none in a closed loop.
    pub lag: Option<Span>,
}

/// The figures about times that need no distribution; all zero if there is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Times {
    /// The smallest.
    pub min: u64,
    /// The largest.
    pub max: u64,
    /// The sum of all, exact.
    pub sum: u128,
}

/// One or several contiguous intervals of a stream, with the distributions of all of it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Stretch {
    /// The stream's place in the point.
    pub stream: u32,
    /// From the start of the window to the start of the stretch.
    pub start: Span,
    /// How long it is.
    pub length: Span,
    /// I/Os that failed.
    pub failed: u64,
    /// Bytes that completed, by direction.
    pub bytes: [Bytes; 2],
    /// The response time, by direction.
    pub response_time: [SparseHistogram; 2],
    /// As in [`Interval`].
    pub lag: Option<Span>,
}

impl Stretch {
    /// The same in plain numbers.
    pub fn interval(&self) -> Interval {
        let times =
            |times: &SparseHistogram| Times { min: times.min, max: times.max, sum: times.sum };
        Interval {
            stream: self.stream,
            start: self.start,
            length: self.length,
            failed: self.failed,
            ios: [0, 1].map(|index| self.response_time[index].count()),
            bytes: self.bytes,
            times: [0, 1].map(|index| times(&self.response_time[index])),
            lag: self.lag,
        }
    }

    /// Adds a stretch beside this one, or a part of it.
    pub fn merge(&mut self, other: &Self) {
        let ends = |one: &Self| one.start + one.length;
        if ends(self) <= ends(other) {
            self.lag = other.lag;
        }
        let end = ends(self).max(ends(other));
        self.start = self.start.min(other.start);
        self.length = end - self.start;
        self.failed += other.failed;
        for index in 0..2 {
            self.bytes[index].0 += other.bytes[index].0;
            self.response_time[index].merge(&other.response_time[index]);
        }
    }
}

/// Collects a series.
#[derive(Clone, Debug)]
pub struct Series {
    /// The usual length of an interval.
    interval: Span,
    /// How many of them a stretch holds: a power of two, so that pairs of stretches are stretches.
    together: u64,
    intervals: Vec<Interval>,
    /// By place in the window, in units of a stretch, and by stream.
    stretches: BTreeMap<(u64, u32), Stretch>,
    /// How many of them each stream has.
    counts: Vec<usize>,
}

impl Series {
    /// An empty one.
    ///
    /// # Panics
    ///
    /// When the interval has no length.
    pub fn new(interval: Span) -> Self {
        assert!(interval > Span(0), "an interval has a length");
        Self {
            interval,
            together: 1,
            intervals: Vec::new(),
            stretches: BTreeMap::new(),
            counts: Vec::new(),
        }
    }

    /// Adds an interval of a stream.
    pub fn add(&mut self, interval: Stretch) {
        self.intervals.push(interval.interval());
        let stream = interval.stream as usize;
        self.insert(interval);
        while self.counts[stream] > STRETCHES_MAX {
            self.coarsen();
        }
    }

    /// Puts a stretch in its place. Intervals of a stream do not overlap; a long one, in which
    /// intervals could not be told apart, has the place of its beginning.
    fn insert(&mut self, stretch: Stretch) {
        let stream = stretch.stream;
        let place = stretch.start.0 / (self.interval.0.saturating_mul(self.together));
        if self.counts.len() <= stream as usize {
            self.counts.resize(stream as usize + 1, 0);
        }
        match self.stretches.get_mut(&(place, stream)) {
            Some(there) => there.merge(&stretch),
            None => {
                self.counts[stream as usize] += 1;
                self.stretches.insert((place, stream), stretch);
            }
        }
    }

    /// Merges each two neighbors into one stretch, for all streams alike, so that the streams stay
    /// aligned.
    fn coarsen(&mut self) {
        self.together *= 2;
        self.counts.fill(0);
        for (_, stretch) in std::mem::take(&mut self.stretches) {
            self.insert(stretch);
        }
    }

    /// Every interval, and the stretches that hold the distributions; both by start and stream.
    pub fn finish(self) -> (Vec<Interval>, Vec<Stretch>) {
        let mut intervals = self.intervals;
        intervals.sort_unstable_by_key(|interval| (interval.start, interval.stream));
        let mut stretches: Vec<Stretch> = self.stretches.into_values().collect();
        stretches.sort_by_key(|stretch| (stretch.start, stretch.stream));
        (intervals, stretches)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::Histogram;

    const SECOND: Span = Span::from_secs(1);

    fn sparse(values: &[u64]) -> SparseHistogram {
        let mut histogram = Histogram::default();
        values.iter().for_each(|&value| histogram.record(value));
        histogram.to_sparse()
    }

    fn second(stream: u32, start: u64, length: u64, reads: &[u64]) -> Stretch {
        Stretch {
            stream,
            start: Span::from_secs(start),
            length: Span::from_secs(length),
            failed: 1,
            bytes: [Bytes(reads.len() as u64 * 4096), Bytes(0)],
            response_time: [sparse(reads), SparseHistogram::default()],
            lag: None,
        }
    }

    #[test]
    fn until_the_bound_each_interval_is_a_stretch() {
        let mut series = Series::new(SECOND);
        for start in 0..STRETCHES_MAX as u64 {
            series.add(second(0, start, 1, &[1000 + start]));
        }
        let (intervals, stretches) = series.finish();
        assert_eq!(intervals.len(), STRETCHES_MAX);
        let plain: Vec<Interval> = stretches.iter().map(Stretch::interval).collect();
        assert_eq!(plain, intervals);
    }

    #[test]
    fn beyond_it_neighbors_are_added_up_and_every_interval_keeps_its_numbers() {
        let seconds = 5 * STRETCHES_MAX as u64 + 3;
        let mut series = Series::new(SECOND);
        for start in 0..seconds {
            for stream in [1, 0] {
                let reads = [1000 * (start + 1), 7];
                series.add(second(stream, start, 1, &reads[..2 - stream as usize]));
            }
        }
        let (intervals, stretches) = series.finish();
        assert_eq!(intervals.len() as u64, 2 * seconds);
        assert!(intervals.is_sorted_by_key(|interval| (interval.start, interval.stream)));
        let stall = intervals[2 * 1234];
        assert_eq!((stall.start, stall.ios), (Span::from_secs(1234), [2, 0]));
        assert_eq!(stall.times[0], Times { min: 7, max: 1_235_000, sum: 1_235_007 });
        // Each stretch has eight seconds; those of both streams are adjacent; the rest is at the
        // end.
        assert_eq!(stretches.len() as u64, 2 * seconds.div_ceil(8));
        for (place, pair) in stretches.chunks(2).enumerate() {
            let start = 8 * place as u64;
            let length = (seconds - start).min(8);
            for (stream, stretch) in pair.iter().enumerate() {
                assert_eq!(stretch.stream, stream as u32);
                assert_eq!(stretch.start, Span::from_secs(start));
                assert_eq!(stretch.length, Span::from_secs(length));
                assert_eq!(stretch.failed, length);
                let ios = length * (2 - stream as u64);
                assert_eq!(stretch.response_time[0].count(), ios);
                assert_eq!(stretch.bytes[0], Bytes(ios * 4096));
                assert_eq!(stretch.response_time[0].max, 1000 * (start + length));
            }
        }
    }

    #[test]
    fn intervals_that_could_not_be_told_apart_overlap_nothing() {
        let mut series = Series::new(SECOND);
        let lengths = [1, 3, 1, 2, 5, 1, 1];
        let mut start = 0;
        for round in 0..1000 {
            let length = lengths[round % lengths.len()];
            series.add(second(0, start, length, &[5]));
            start += length;
        }
        let (intervals, stretches) = series.finish();
        assert_eq!(intervals.len(), 1000);
        assert!((STRETCHES_MAX / 4..=STRETCHES_MAX).contains(&stretches.len()));
        assert!(stretches.windows(2).all(|pair| pair[0].start + pair[0].length == pair[1].start));
        assert_eq!(stretches.iter().map(|one| one.response_time[0].count()).sum::<u64>(), 1000);
        assert_eq!(stretches.iter().map(|one| one.length.0).sum::<u64>(), start * SECOND.0);
    }

    #[test]
    fn what_came_late_joins_its_stretch() {
        let mut series = Series::new(SECOND);
        series.add(second(0, 1, 1, &[5]));
        series.add(second(0, 0, 1, &[6]));
        series.add(second(0, 1, 1, &[7]));
        let (intervals, stretches) = series.finish();
        assert_eq!(intervals.len(), 3);
        assert_eq!(stretches.len(), 2);
        assert_eq!(stretches[1].response_time[0], sparse(&[5, 7]));
    }
}
