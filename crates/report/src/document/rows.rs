//! The intervals of a long run as they stand in the document: rows of numbers, because there are
//! hundreds of thousands of them.

use fathom_core::measure::{self, Direction, Times};
use fathom_core::{Bytes, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The most intervals of a row: as many as make a row of some hundred kilobytes, so that rows can
/// be written one by one.
pub(super) const ROW_MAX: usize = 4096;

/// Intervals of one stream that are equally long and follow each other without a gap, in plain
/// numbers: interval k starts at `start_ns` + k x `length_ns`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct IntervalRow {
    /// The stream's place in the point.
    pub stream: u32,
    /// From the start of the window to the start of the first interval.
    pub start_ns: u64,
    /// How long each is.
    pub length_ns: u64,
    /// How many there are.
    pub count: u64,
    /// I/Os that failed in each; empty if none did in any.
    pub failed: Vec<u64>,
    /// The reads; none if there was none.
    pub read: Option<FlowRow>,
    /// The writes; none if there was none.
    pub write: Option<FlowRow>,
    /// How long the oldest I/O that was due and not started had been due at the end of each; empty in
    /// a closed loop, and in results of versions that did not look.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lag_ns: Vec<u64>,
}

/// I/Os of one direction, a number for each interval. Where nothing completed, all are zero.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FlowRow {
    /// I/Os that completed.
    pub ios: Vec<u64>,
    /// Bytes that completed.
    pub bytes: Vec<u64>,
    /// The smallest response time; in a closed loop the service time.
    pub min_ns: Vec<u64>,
    /// The largest one.
    pub max_ns: Vec<u64>,
    /// The sum of all, exact.
    pub sum_ns: Vec<u128>,
}

impl FlowRow {
    fn push(&mut self, interval: &measure::Interval, direction: usize) {
        self.ios.push(interval.ios[direction]);
        self.bytes.push(interval.bytes[direction].0);
        self.min_ns.push(interval.times[direction].min);
        self.max_ns.push(interval.times[direction].max);
        self.sum_ns.push(interval.times[direction].sum);
    }

    /// Whether every column has this many numbers.
    pub(super) fn has(&self, count: u64) -> bool {
        let lengths = [
            self.ios.len(),
            self.bytes.len(),
            self.min_ns.len(),
            self.max_ns.len(),
            self.sum_ns.len(),
        ];
        lengths.iter().all(|&length| length as u64 == count)
    }
}

impl IntervalRow {
    fn new(intervals: &[measure::Interval]) -> Self {
        let flow = |direction: Direction| {
            let direction = direction as usize;
            intervals.iter().any(|interval| interval.ios[direction] > 0).then(|| {
                let mut row = FlowRow::default();
                intervals.iter().for_each(|interval| row.push(interval, direction));
                row
            })
        };
        let failed: Vec<u64> = intervals.iter().map(|interval| interval.failed).collect();
        Self {
            stream: intervals[0].stream,
            start_ns: intervals[0].start.0,
            length_ns: intervals[0].length.0,
            count: intervals.len() as u64,
            failed: if failed.iter().any(|&failed| failed > 0) { failed } else { Vec::new() },
            read: flow(Direction::Read),
            write: flow(Direction::Write),
            lag_ns: intervals.iter().filter_map(|interval| interval.lag).map(|lag| lag.0).collect(),
        }
    }

    /// The intervals as the core has them.
    pub fn intervals(&self) -> impl Iterator<Item = measure::Interval> + '_ {
        (0..self.count as usize).map(|k| {
            let flows = [&self.read, &self.write].map(Option::as_ref);
            let times = |flow: Option<&FlowRow>| {
                flow.map_or_else(Times::default, |flow| Times {
                    min: flow.min_ns[k],
                    max: flow.max_ns[k],
                    sum: flow.sum_ns[k],
                })
            };
            measure::Interval {
                stream: self.stream,
                start: Span(self.start_ns + k as u64 * self.length_ns),
                length: Span(self.length_ns),
                failed: self.failed.get(k).copied().unwrap_or(0),
                ios: flows.map(|flow| flow.map_or(0, |flow| flow.ios[k])),
                bytes: flows.map(|flow| Bytes(flow.map_or(0, |flow| flow.bytes[k]))),
                times: flows.map(times),
                lag: self.lag_ns.get(k).copied().map(Span),
            }
        })
    }
}

/// The rows of intervals that are in order, stream after stream. One row exists at a time.
pub(super) fn rows(intervals: &[measure::Interval]) -> impl Iterator<Item = IntervalRow> + '_ {
    let mut streams: Vec<u32> = intervals.iter().map(|interval| interval.stream).collect();
    streams.sort_unstable();
    streams.dedup();
    streams.into_iter().flat_map(|stream| {
        let mut own = intervals.iter().filter(move |interval| interval.stream == stream).peekable();
        std::iter::from_fn(move || {
            let mut row = Vec::from([*own.next()?]);
            let follows = |last: &measure::Interval, next: &measure::Interval| {
                next.length == last.length
                    && next.start == last.start + last.length
                    && next.lag.is_some() == last.lag.is_some()
            };
            while row.len() < ROW_MAX
                && let Some(next) = own.next_if(|next| follows(&row[row.len() - 1], next))
            {
                row.push(*next);
            }
            Some(IntervalRow::new(&row))
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interval(stream: u32, start: u64, length: u64, ios: [u64; 2]) -> measure::Interval {
        let times = ios.map(|ios| match ios {
            0 => Times::default(),
            n => Times { min: n, max: 10 * n, sum: u128::from(5 * n * n) },
        });
        measure::Interval {
            stream,
            start: Span(start),
            length: Span(length),
            failed: u64::from(start == 30),
            ios,
            bytes: ios.map(|ios| Bytes(4096 * ios)),
            times,
            lag: (length == 30).then_some(Span(start / 10)),
        }
    }

    #[test]
    fn rows_hold_what_was_put_in_and_break_where_time_does() {
        let intervals = [
            interval(0, 0, 10, [1, 0]),
            interval(1, 0, 10, [0, 0]),
            interval(0, 10, 10, [0, 0]),
            interval(1, 10, 10, [0, 4]),
            interval(0, 20, 10, [3, 0]),
            // An interval that is longer than the others, and then a gap.
            interval(0, 30, 30, [5, 5]),
            interval(0, 70, 30, [6, 6]),
        ];
        let rows: Vec<IntervalRow> = rows(&intervals).collect();
        let shape = |row: &IntervalRow| (row.stream, row.start_ns, row.length_ns, row.count);
        let shapes: Vec<_> = rows.iter().map(shape).collect();
        assert_eq!(shapes, [(0, 0, 10, 3), (0, 30, 30, 1), (0, 70, 30, 1), (1, 0, 10, 2)]);
        assert!(rows[0].failed.is_empty() && rows[0].write.is_none() && rows[3].read.is_none());
        let mut back: Vec<measure::Interval> =
            rows.iter().flat_map(IntervalRow::intervals).collect();
        back.sort_by_key(|interval| (interval.start, interval.stream));
        assert_eq!(back, intervals);
    }

    #[test]
    fn a_row_ends_before_it_is_large() {
        let count = 2 * ROW_MAX as u64 + 1;
        let intervals: Vec<measure::Interval> =
            (0..count).map(|k| interval(0, k * 10, 10, [k, 0])).collect();
        let counts: Vec<u64> = rows(&intervals).map(|row| row.count).collect();
        assert_eq!(counts, [ROW_MAX as u64, ROW_MAX as u64, 1]);
    }
}
