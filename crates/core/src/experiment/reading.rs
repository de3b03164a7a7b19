//! What experiments read in a record: rates and quantiles with their half-widths, of one stream or of
//! all together. The same figures stand in the reports.

use crate::measure::{Cell, Direction, Interval, Record, Stretch, WorkerRecord};
use crate::stats::{self, Estimate};
use crate::units::{Bytes, Quantile, Span};

/// I/Os per second that completed in the window.
pub fn iops(
    record: &Record,
    stream: Option<u32>,
    direction: Option<Direction>,
) -> Option<Estimate> {
    let slices = stats::slices(series(record, stream));
    let total = record.sum(direction, of(stream)).ios();
    stats::rate(total, record.window, &stats::iops_series(&slices, direction))
}

/// Bytes per second that completed in the window.
pub fn bandwidth(
    record: &Record,
    stream: Option<u32>,
    direction: Option<Direction>,
) -> Option<Estimate> {
    let slices = stats::slices(series(record, stream));
    let total = record.sum(direction, of(stream)).bytes.0;
    stats::rate(total, record.window, &stats::bandwidth_series(&slices, direction))
}

/// A quantile of the response time in nanoseconds; none where its tail holds too few samples.
pub fn response_time(
    record: &Record,
    stream: Option<u32>,
    direction: Option<Direction>,
    quantile: Quantile,
) -> Option<Estimate> {
    let whole = record.sum(direction, of(stream));
    let stretches: Vec<&Stretch> =
        record.stretches.iter().filter(|one| stream.is_none_or(|s| s == one.stream)).collect();
    stats::quantile(whole.response_time(), &stretches, direction, quantile)
}

/// "893.6 MiB/s (937 MB/s)": powers of two, and those of ten that limits are given in.
pub fn bandwidth_in_words(bytes_per_second: f64) -> String {
    let bytes = Bytes(bytes_per_second as u64);
    format!("{bytes}/s ({:.0} MB/s)", bytes_per_second / 1e6)
}

/// What a trial that was to move so many bytes did, in the words of the study of concurrent writes,
/// with true units: "completed a write of 1048576 bytes after 2 seconds for 0.5 MiB/s". None of a
/// trial that moved nothing.
pub fn completed(direction: Option<Direction>, bytes: u64, took: Span) -> Option<String> {
    let seconds = took.as_secs_f64();
    if bytes == 0 || seconds <= 0.0 {
        return None;
    }
    let what = match direction {
        Some(Direction::Read) => "a read",
        Some(Direction::Write) => "a write",
        None => "reads and writes",
    };
    let rate = bytes as f64 / seconds / Bytes::MIB as f64;
    Some(format!(
        "completed {what} of {bytes} bytes after {seconds:.2} seconds for {rate:.1} MiB/s"
    ))
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
}
