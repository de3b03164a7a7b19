//! Writes a trial as a line of the journal, piece by piece: a run of a day leaves a line of many
//! megabytes, and nothing of it exists twice.

use std::io::{self, Write};

use fathom_core::measure::{Interval as Plain, Record, Stretch};
use fathom_core::{trial, verdict};
use serde::Serialize;

use super::rows::rows;
use super::{DistributionForm, Interval, IntervalRow, Line, Trial, Worker};

/// Writes the line that [`Line::to_json`] would give for the whole trial, without a newline, with the
/// distributions of the whole window in this form.
///
/// # Errors
///
/// When it cannot be written.
pub fn write_trial(
    out: &mut dyn Write,
    trial: &trial::Trial,
    judgement: &verdict::Judgement,
    form: DistributionForm,
) -> io::Result<()> {
    let mut whole = Trial::without_series(trial, judgement);
    whole.workers.iter_mut().flat_map(Worker::distributions).for_each(|one| one.form = form);
    let line = Line::Trial(Box::new(whole)).to_json();
    // The series stands last, so that it can be put in here; a test compares with the whole line.
    let head = line.strip_suffix("[]}").expect("a trial ends with its series, and that is empty");
    out.write_all(head.as_bytes())?;
    list(out, trial.record.stretches.iter().map(Interval::from))?;
    let mut rows = plain_rows(&trial.record).peekable();
    if rows.peek().is_some() {
        out.write_all(b",\"intervals\":")?;
        list(out, rows)?;
    }
    out.write_all(b"}")
}

fn list(out: &mut dyn Write, parts: impl Iterator<Item = impl Serialize>) -> io::Result<()> {
    out.write_all(b"[")?;
    for (place, part) in parts.enumerate() {
        if place > 0 {
            out.write_all(b",")?;
        }
        serde_json::to_writer(&mut *out, &part)?;
    }
    out.write_all(b"]")
}

/// The intervals in plain numbers; none where they follow from the series.
pub(super) fn plain_rows(record: &Record) -> impl Iterator<Item = IntervalRow> + '_ {
    let alike = |(plain, stretch): (&Plain, &Stretch)| {
        (plain.stream, plain.start, plain.length) == (stretch.stream, stretch.start, stretch.length)
    };
    let follow = record.series.len() == record.stretches.len()
        && record.series.iter().zip(&record.stretches).all(alike);
    rows(if follow { &[] } else { &record.series })
}
