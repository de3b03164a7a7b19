//! The series of a run as plain numbers: every stream has its own interval for each slice of time,
//! and a reader wants their sum.

use std::borrow::Borrow;
use std::collections::BTreeMap;

use crate::measure::{Direction, Interval, Stretch};
use crate::units::{Bytes, Span};

/// One slice of time, the sum of the given streams.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Slice {
    /// From the start of the window to the start of the slice.
    pub start: Span,
    /// How long it is.
    pub length: Span,
    /// I/Os that completed, by direction.
    pub ios: [u64; 2],
    /// Bytes that completed, by direction.
    pub bytes: [Bytes; 2],
    /// I/Os that failed.
    pub failed: u64,
}

impl Slice {
    /// I/Os per second, of one direction or of both.
    pub fn iops(&self, direction: Option<Direction>) -> f64 {
        per_second(chosen(self.ios, direction), self.length)
    }

    /// Bytes per second, of one direction or of both.
    pub fn bandwidth(&self, direction: Option<Direction>) -> f64 {
        per_second(chosen(self.bytes.map(|bytes| bytes.0), direction), self.length)
    }
}

fn chosen(pair: [u64; 2], direction: Option<Direction>) -> u64 {
    match direction {
        Some(direction) => pair[direction as usize],
        None => pair[0] + pair[1],
    }
}

fn per_second(count: u64, length: Span) -> f64 {
    match length.0 {
        0 => 0.0,
        _ => count as f64 / length.as_secs_f64(),
    }
}

/// The stretches that belong to the same slice of time, in order of time. A stretch without a
/// length is left out.
pub(super) fn grouped<'a>(
    series: impl IntoIterator<Item = &'a Stretch>,
) -> Vec<(Span, Vec<&'a Stretch>)> {
    let mut slices: BTreeMap<Span, Vec<&Stretch>> = BTreeMap::new();
    for stretch in series.into_iter().filter(|stretch| stretch.length > Span(0)) {
        slices.entry(stretch.start).or_default().push(stretch);
    }
    slices.into_iter().collect()
}

/// Sums the intervals of several streams into one slice for each stretch of time. An interval
/// without a length is left out.
pub fn sums(series: impl IntoIterator<Item = impl Borrow<Interval>>) -> Vec<Slice> {
    let mut sums: BTreeMap<Span, Slice> = BTreeMap::new();
    for interval in series {
        let interval: &Interval = interval.borrow();
        if interval.length == Span(0) {
            continue;
        }
        let slice = sums.entry(interval.start).or_default();
        slice.start = interval.start;
        slice.length = slice.length.max(interval.length);
        slice.failed += interval.failed;
        for direction in Direction::BOTH.map(|direction| direction as usize) {
            slice.ios[direction] += interval.ios[direction];
            slice.bytes[direction].0 += interval.bytes[direction].0;
        }
    }
    sums.into_values().collect()
}

/// As [`sums`], without a last slice of less than half of the usual length, as in an interrupted
/// run: its rates would weigh as much as those of a whole slice.
pub fn slices(series: impl IntoIterator<Item = impl Borrow<Interval>>) -> Vec<Slice> {
    let mut slices = sums(series);
    let usual = usual_length(slices.iter().map(|slice| slice.length));
    if slices.last().is_some_and(|last| last.length.0 < usual.0 / 2) {
        slices.pop();
    }
    slices
}

/// The usual length: the median. A single slice may be much longer, if its intervals could not be
/// told apart during collection.
pub fn usual_length(lengths: impl Iterator<Item = Span>) -> Span {
    let mut lengths: Vec<Span> = lengths.collect();
    lengths.sort_unstable();
    lengths.get(lengths.len() / 2).copied().unwrap_or_default()
}

/// The IOPS of each slice, of one direction or of both.
pub fn iops_series(slices: &[Slice], direction: Option<Direction>) -> Vec<f64> {
    slices.iter().map(|slice| slice.iops(direction)).collect()
}

/// The bandwidth of each slice in bytes per second, of one direction or of both.
pub fn bandwidth_series(slices: &[Slice], direction: Option<Direction>) -> Vec<f64> {
    slices.iter().map(|slice| slice.bandwidth(direction)).collect()
}

/// The standard deviation of the population: the root of the mean squared deviation, as DiskSpd
/// reports it for its intervals.
pub fn standard_deviation(series: &[f64]) -> Option<f64> {
    if series.is_empty() {
        return None;
    }
    let mean = series.iter().sum::<f64>() / series.len() as f64;
    let squares: f64 = series.iter().map(|value| (value - mean).powi(2)).sum();
    Some((squares / series.len() as f64).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interval(stream: u32, start_ms: u64, length_ms: u64, ios: [u64; 2]) -> Interval {
        Interval {
            stream,
            start: Span::from_ms(start_ms),
            length: Span::from_ms(length_ms),
            bytes: ios.map(|ios| Bytes(ios * 4096)),
            failed: 1,
            ios,
            ..Interval::default()
        }
    }

    #[test]
    fn streams_are_summed_slice_by_slice() {
        let series = [
            interval(0, 0, 500, [10, 5]),
            interval(1, 0, 500, [1, 2]),
            interval(1, 500, 500, [3, 0]),
            interval(0, 500, 500, [20, 0]),
        ];
        let slices = slices(series);
        assert_eq!(iops_series(&slices, Some(Direction::Read)), [22.0, 46.0]);
        assert_eq!(iops_series(&slices, None), [36.0, 46.0]);
        assert_eq!(bandwidth_series(&slices, Some(Direction::Write)), [14.0 * 4096.0, 0.0]);
        assert_eq!(slices[0].failed, 2);
    }

    #[test]
    fn a_stump_at_the_end_is_left_out_and_nothing_divides_by_zero() {
        let series =
            [interval(0, 0, 1000, [10, 0]), interval(0, 1000, 400, [9, 0]), Interval::default()];
        assert_eq!(iops_series(&slices(series), None), [10.0]);
        assert_eq!(slices([] as [Interval; 0]), []);
        // An interval that is longer than the others does not make the others incomplete.
        let series = [(0, 500), (500, 100), (600, 100), (700, 100)]
            .map(|(start, length)| interval(0, start, length, [1, 0]));
        assert_eq!(slices(series).len(), 4);
        assert_eq!(Slice::default().iops(None), 0.0);
    }

    #[test]
    fn the_standard_deviation_is_the_population_s() {
        assert_eq!(standard_deviation(&[2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0]), Some(2.0));
        assert_eq!(standard_deviation(&[3.0]), Some(0.0));
        assert_eq!(standard_deviation(&[]), None);
    }
}
