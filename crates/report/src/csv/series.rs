//! The series as a table: a row for each trial, stream, interval and direction, for programs that
//! draw or judge figures over time. Intervals without completions have rows with zeros; times that
//! do not exist are empty fields. Figures without a direction are in the rows that cover a whole
//! stream: those of its only direction, or otherwise `total`.

use fathom_core::Span;
use fathom_core::measure::{Direction, Interval, Times};

use super::{axis_names, optional, place_on, push};
use crate::document::{Document, Stream, Trial};
use crate::figures;

/// The subject of a row.
struct SeriesRow<'a> {
    /// From 1.
    number: usize,
    trial: &'a Trial,
    stream: &'a Stream,
    interval: Interval,
    /// None when the row is of both.
    direction: Option<Direction>,
    /// Whether it covers all I/Os of the stream.
    whole: bool,
}

impl SeriesRow<'_> {
    /// The sums over its directions.
    fn sum(&self, of: impl Fn(usize) -> u64) -> u64 {
        match self.direction {
            Some(direction) => of(direction as usize),
            None => of(0) + of(1),
        }
    }

    fn ios(&self) -> u64 {
        self.sum(|direction| self.interval.ios[direction])
    }

    fn bytes(&self) -> u64 {
        self.sum(|direction| self.interval.bytes[direction].0)
    }

    /// A time of the I/Os that there were.
    fn time(&self, of: impl Fn(&Times) -> u128, join: impl Fn(u128, u128) -> u128) -> Option<u128> {
        let mut found: Option<u128> = None;
        for direction in Direction::BOTH {
            let own = self.direction.is_none_or(|only| only == direction);
            if own && self.interval.ios[direction as usize] > 0 {
                let time = of(&self.interval.times[direction as usize]);
                found = Some(found.map_or(time, |known| join(known, time)));
            }
        }
        found
    }

    fn per_second(&self, amount: u64) -> String {
        let rate = figures::per_second(amount, self.interval.length);
        optional(rate.map(|rate| format!("{rate:.3}")))
    }
}

/// A column: its name, its content, and its field.
type SeriesColumn = (&'static str, &'static str, fn(&SeriesRow<'_>) -> String);

const COLUMNS: [SeriesColumn; 19] = [
    ("trial", "The trial's number, from 1", |row| row.number.to_string()),
    ("point", "What people call the point", |row| row.trial.point.name.clone()),
    ("role", "As in the table of figures", |row| super::role(row.trial)),
    ("repeat", "Which of the trials at the same place it is, from 0", |row| {
        row.trial.place.repeat.to_string()
    }),
    ("stream", "The stream", |row| row.stream.name.clone()),
    ("direction", "read, write, or total where the stream does both", |row| {
        figures::direction_name(row.direction).to_owned()
    }),
    ("verdict", "sound, suspect or void, of the trial", |row| row.trial.verdict.name().to_owned()),
    ("started", "When the trial's window began, RFC 3339, UTC", |row| row.trial.started.clone()),
    ("start_ns", "From the start of the window to that of the interval", |row| {
        row.interval.start.0.to_string()
    }),
    ("length_ns", "How long the interval is", |row| row.interval.length.0.to_string()),
    ("bytes", "Bytes that completed in it", |row| row.bytes().to_string()),
    ("ios", "I/Os that completed in it", |row| row.ios().to_string()),
    ("bandwidth_bytes_per_second", "Bytes per second", |row| row.per_second(row.bytes())),
    ("throughput_iops", "I/Os per second", |row| row.per_second(row.ios())),
    (
        "response_time_min_ns",
        "The smallest response time; in a closed loop, the service time",
        |row| optional(row.time(|times| times.min.into(), u128::min)),
    ),
    ("response_time_mean_ns", "The mean of all", |row| {
        let sum = row.time(|times| times.sum, |one, other| one + other);
        optional(sum.map(|sum| format!("{:.1}", sum as f64 / row.ios() as f64)))
    }),
    ("response_time_max_ns", "The largest", |row| {
        optional(row.time(|times| times.max.into(), u128::max))
    }),
    ("failed", "I/Os that failed in it; in rows of all that a stream did", |row| {
        optional(row.whole.then_some(row.interval.failed))
    }),
    (
        "lag_ns",
        "How long the oldest I/O that was due and not started had been due at its end; open loop, in \
         rows of all that a stream did",
        |row| optional(row.interval.lag.filter(|_| row.whole).map(|Span(ns)| ns)),
    ),
];

/// The series of a document as a table.
pub fn document(document: &Document) -> String {
    let axes = axis_names(document);
    let heads = COLUMNS.iter().map(|(name, ..)| (*name).to_owned());
    let mut out = String::new();
    push(&mut out, heads.chain(axes.iter().map(|axis| super::axis_head(axis))));
    for (place, trial) in document.trials.iter().enumerate() {
        for interval in trial.intervals() {
            let Some(stream) = trial.point.streams.get(interval.stream as usize) else { continue };
            for (direction, whole) in directions(trial, stream, interval.stream) {
                let row =
                    SeriesRow { number: place + 1, trial, stream, interval, direction, whole };
                let fields = COLUMNS.iter().map(|(_, _, field)| field(&row));
                push(&mut out, fields.chain(axes.iter().map(|axis| place_on(trial, axis))));
            }
        }
    }
    out
}

/// Every column's name and content, in order: for the manual. Those of axes follow, as in the table
/// of figures.
pub fn columns() -> impl Iterator<Item = (&'static str, &'static str)> {
    COLUMNS.iter().map(|(name, about, _)| (*name, *about))
}

/// The rows of an interval of a stream, and whether each covers the whole stream.
fn directions(trial: &Trial, stream: &Stream, place: u32) -> Vec<(Option<Direction>, bool)> {
    let part = figures::TrialPart { trial, stream: Some(place) };
    match part.directions().as_slice() {
        [] if stream.trims_alone() => Vec::new(),
        [only] => Vec::from([(Some(*only), true)]),
        both => {
            let each = both.iter().map(|direction| (Some(*direction), false));
            each.chain([(None, true)]).collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_column_has_a_name_of_its_own() {
        let names: std::collections::BTreeSet<&str> = columns().map(|(name, _)| name).collect();
        assert_eq!(names.len(), COLUMNS.len());
        assert!(columns().all(|(_, about)| !about.is_empty()));
    }
}
