//! The I/Os of each thread at each target, and sums over them.

use fathom_core::Span;
use fathom_core::measure::{Direction, Histogram};

use super::TimeSpan;
use crate::document::{Cell, Document, Trial};

/// The I/Os of one thread at one target.
pub struct ThreadRow<'a> {
    pub thread: u32,
    pub path: &'a str,
    /// Of the target, in bytes.
    pub size: u64,
    pub cell: &'a Cell,
}

/// The rows of a trial, by thread.
pub fn rows<'a>(
    document: &'a Document,
    trial: &'a Trial,
    span: &'a TimeSpan,
) -> Vec<ThreadRow<'a>> {
    let mut rows = Vec::new();
    for worker in &trial.workers {
        let Some(stream) = span.streams.get(worker.stream as usize) else { continue };
        let regions = &trial.point.streams[worker.stream as usize].regions;
        for cell in &worker.cells {
            let target = document.header.targets.get(cell.target as usize);
            let place = regions.iter().position(|region| region.target == cell.target);
            let path = place.and_then(|place| stream.paths.get(place));
            rows.push(ThreadRow {
                thread: stream.first_thread + worker.worker,
                path: path.map_or("", String::as_str),
                size: target.map_or(0, |target| target.size.0),
                cell,
            });
        }
    }
    rows.sort_by_key(|row| row.thread);
    rows
}

/// I/Os of one direction or of both.
#[derive(Default)]
pub struct Sum {
    pub bytes: u64,
    pub ios: u64,
    pub times: Histogram,
}

/// The sum over rows.
pub fn sum<'a>(
    rows: impl IntoIterator<Item = &'a ThreadRow<'a>>,
    direction: Option<Direction>,
) -> Sum {
    let mut sum = Sum::default();
    for row in rows {
        for one in Direction::BOTH {
            if direction.is_none_or(|wanted| wanted == one) {
                let flow = row.cell.flow(one);
                sum.bytes += flow.bytes;
                sum.ios += flow.ios;
                sum.times.merge_sparse(&flow.service_time.to_sparse());
            }
        }
    }
    sum
}

impl ThreadRow<'_> {
    /// The standard deviation of its IOPS over the trial's intervals.
    pub fn iops_deviation(&self, direction: Option<Direction>, trial: &Trial) -> f64 {
        let ios = sum([self], direction).ios;
        let bucket = trial.buckets.as_ref().map(|buckets| buckets.length_ns);
        let seconds = bucket.map_or(trial.point.interval, Span).as_secs_f64();
        self.cell.spread.map_or(0.0, |spread| spread.deviation(direction, ios) / seconds)
    }
}

/// The rows of each path, in the order in which the paths come first.
pub fn by_path<'a>(rows: &'a [ThreadRow<'a>]) -> Vec<(&'a str, Vec<&'a ThreadRow<'a>>)> {
    let mut groups: Vec<(&str, Vec<&ThreadRow<'_>>)> = Vec::new();
    for row in rows {
        match groups.iter_mut().find(|(path, _)| *path == row.path) {
            Some((_, group)) => group.push(row),
            None => groups.push((row.path, Vec::from([row]))),
        }
    }
    groups
}

/// The value with the rank of this many billionths of all, rounded up. In whole numbers: a product
/// of fractions may come out above the intended rank. The last rank has the largest value, which is
/// known exactly.
pub fn percentile(times: &Histogram, billionths: u64) -> Option<u64> {
    let count = times.count();
    let rank = (u128::from(billionths) * u128::from(count)).div_ceil(1_000_000_000) as u64;
    if rank >= count { times.max() } else { times.value_at_rank(rank.max(1)) }
}

/// Nanoseconds as milliseconds.
pub fn ms(ns: f64) -> f64 {
    ns / 1e6
}
