//! The figures of a record: rates and quantiles with their half-widths, of one stream or of all
//! together. Experiments, verdicts and reports show the same figures.

use super::Estimate;
use super::batches;
use super::series::{Slice, bandwidth_series, iops_series, slices};
use crate::measure::{Cell, Direction, Interval, Record, Stretch, Whole, WorkerRecord};
use crate::units::{Quantile, Span};

/// I/Os per second that completed in the window; for a limited load, in the time before its drain.
pub fn iops(
    record: &Record,
    stream: Option<u32>,
    direction: Option<Direction>,
) -> Option<Estimate> {
    let counted = |whole: &Whole| chosen(whole.ios, direction);
    if let Some(estimate) = while_whole(record, stream, counted, |slice| slice.iops(direction)) {
        return Some(estimate);
    }
    let slices = slices(series(record, stream));
    let total = record.sum(direction, of(stream)).ios();
    batches::rate(total, record.window, &iops_series(&slices, direction))
}

/// Bytes per second that completed in the window; for a limited load, in the time before its drain.
pub fn bandwidth(
    record: &Record,
    stream: Option<u32>,
    direction: Option<Direction>,
) -> Option<Estimate> {
    let counted = |whole: &Whole| chosen(whole.bytes.map(|bytes| bytes.0), direction);
    let rate = |slice: &Slice| slice.bandwidth(direction);
    if let Some(estimate) = while_whole(record, stream, counted, rate) {
        return Some(estimate);
    }
    let slices = slices(series(record, stream));
    let total = record.sum(direction, of(stream)).bytes.0;
    batches::rate(total, record.window, &bandwidth_series(&slices, direction))
}

fn chosen(pair: [u64; 2], direction: Option<Direction>) -> u64 {
    direction.map_or(pair[0] + pair[1], |direction| pair[direction as usize])
}

/// If the workers' last starts are this close together, as a share of the time before the first,
/// each worker has a rate until its own last start: they shared the target evenly.
const TOGETHER: f64 = 0.05;
/// Otherwise this many whole intervals have to lie before the first.
const INTERVALS_MIN: usize = 5;

/// The rate of a limited load while it was complete. None if it went on until the window's end, or
/// was complete for too short a time.
fn while_whole(
    record: &Record,
    stream: Option<u32>,
    counted: impl Fn(&Whole) -> u64,
    rate: impl Fn(&Slice) -> f64,
) -> Option<Estimate> {
    let is_own = |worker: &WorkerRecord| stream.is_none_or(|stream| stream == worker.stream);
    let first = record.whole(is_own).filter(|first| *first > Span(0))?;
    let wholes = || {
        let own = record.workers.iter().filter(|worker| is_own(worker));
        own.filter_map(|worker| worker.whole.as_ref()).filter(|whole| whole.length > Span(0))
    };
    let last = wholes().map(|whole| whole.length).max()?;
    let before: Vec<&Interval> =
        series(record, stream).filter(|one| one.start + one.length <= first).collect();
    let slices = slices(before);
    let rates: Vec<f64> = slices.iter().map(rate).collect();
    let of_slices = batches::mean(&rates);
    let half_width = of_slices.and_then(|mean| mean.half_width);
    if (last - first).0 as f64 <= TOGETHER * first.0 as f64 {
        let each = |whole: &Whole| counted(whole) as f64 / whole.length.as_secs_f64();
        return Some(Estimate { value: wholes().map(each).sum(), half_width });
    }
    of_slices.filter(|_| INTERVALS_MIN <= slices.len())
}

/// A quantile of the response time in nanoseconds; none if its tail holds too few samples.
pub fn response_time(
    record: &Record,
    stream: Option<u32>,
    direction: Option<Direction>,
    quantile: Quantile,
) -> Option<Estimate> {
    let whole = record.sum(direction, of(stream));
    let stretches: Vec<&Stretch> =
        record.stretches.iter().filter(|one| stream.is_none_or(|s| s == one.stream)).collect();
    batches::quantile(whole.response_time(), &stretches, direction, quantile)
}

fn of(stream: Option<u32>) -> impl Fn(&WorkerRecord, &Cell) -> bool {
    move |worker, _| stream.is_none_or(|stream| stream == worker.stream)
}

fn series(record: &Record, stream: Option<u32>) -> impl Iterator<Item = &Interval> {
    record.series.iter().filter(move |one| stream.is_none_or(|stream| stream == one.stream))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Bytes;
    use crate::verdict::testing::Invented;

    #[test]
    fn a_clean_trial_is_read_as_what_it_is() {
        let record = Invented::reads().trial.record;
        let rate = iops(&record, Some(0), None).unwrap();
        assert_eq!((rate.value, rate.half_width), (1000.0, Some(0.0)));
        assert_eq!(bandwidth(&record, None, Some(Direction::Read)).unwrap().value, 4_096_000.0);
        assert_eq!(iops(&record, Some(0), Some(Direction::Write)).unwrap().value, 0.0);
        assert_eq!(iops(&record, Some(1), None).unwrap().value, 0.0);
        let p50 = response_time(&record, None, None, Quantile(0.5)).unwrap().value;
        assert!((p50 / 900_000.0 - 1.0).abs() < 0.01, "{p50}");
        assert_eq!(response_time(&record, Some(1), None, Quantile(0.5)), None);
    }

    #[test]
    fn the_drain_of_a_limited_load_is_in_no_rate() {
        let mut invented = Invented::reads();
        let until = |seconds: u64, reads: u64| Whole {
            length: Span::from_secs(seconds),
            ios: [reads, 0],
            bytes: [Bytes(reads * 4096), Bytes(0)],
            queue_depth: 1.0,
        };
        // 1000 per second for 50 s, then 10 s with very little left.
        invented.set_series((0..60).map(|second| if second < 50 { 1000 } else { 10 }));
        invented.worker().whole = Some(until(50, 50_000));
        let record = &invented.trial.record;
        let rate = iops(record, Some(0), Some(Direction::Read)).unwrap();
        assert_eq!((rate.value, rate.half_width), (1000.0, Some(0.0)));
        assert_eq!(bandwidth(record, None, None).unwrap().value, 4_096_000.0);
        // Workers end at different times. Only the intervals before the first end count.
        let other =
            WorkerRecord { worker: 1, whole: Some(until(20, 4000)), ..invented.worker().clone() };
        invented.trial.record.workers.push(other);
        assert_eq!(iops(&invented.trial.record, None, None).unwrap().value, 1000.0);
        // The load is whole as long as one worker continues to the end.
        invented.worker().whole = None;
        let full = 2.0 * 60_000.0 / 60.0;
        assert_eq!(iops(&invented.trial.record, None, None).unwrap().value, full);
    }
}
