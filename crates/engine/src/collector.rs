//! Merges what the workers hand over into the record, and makes the series from it.
//!
//! The workers fill a tally for each interval and hand it over whole, so merging, sparse encoding
//! and the live view cost the hot loop one exchange of pointers an interval.

use std::collections::BTreeMap;

use fathom_core::measure::{Histogram, Interval, Record, StartDelay, Tally, WorkerRecord};
use fathom_core::plan::WorkerPlan;
use fathom_core::{Bytes, Instant, Span};

use crate::run_point::Progress;
use crate::worker::{Outcome, Timetable};

/// A slice of a stream's series is complete at the latest when a slice so many intervals later is.
const OPEN_SLICES: usize = 16;

/// What has been merged of one worker so far.
struct Merged {
    tally: Tally,
    start_delay: StartDelay,
    depth_ns: u128,
}

/// A slice of the series to which not every worker has contributed yet.
struct Slice {
    end: Instant,
    in_window: bool,
    contributions: usize,
    bytes: [Bytes; 2],
    failed: u64,
    response_time: [Histogram; 2],
}

/// Merges tallies.
pub(crate) struct Collector<'a> {
    plans: &'a [WorkerPlan],
    timetable: Timetable,
    merged: Vec<Merged>,
    /// By start and stream.
    open: BTreeMap<(Instant, u32), Slice>,
    series: Vec<Interval>,
    failed: u64,
}

impl<'a> Collector<'a> {
    /// A collector for these workers.
    pub(crate) fn new(plans: &'a [WorkerPlan], timetable: Timetable) -> Self {
        let merged = plans.iter().map(|plan| Merged {
            tally: *empty_tally(plan),
            start_delay: StartDelay::default(),
            depth_ns: 0,
        });
        Self {
            plans,
            timetable,
            merged: merged.collect(),
            open: BTreeMap::new(),
            series: Vec::new(),
            failed: 0,
        }
    }

    /// Adds what a worker did in an interval, and empties the tally for its next use. Gives the
    /// progress when a slice of the series became complete.
    pub(crate) fn add(&mut self, worker: usize, tally: &mut Tally) -> Option<Progress> {
        let stream = self.plans[worker].stream;
        let contributors = self.plans.iter().filter(|plan| plan.stream == stream).count();
        self.failed += tally.failed;
        if tally.in_window {
            let merged = &mut self.merged[worker];
            for (sum, cell) in merged.tally.cells.iter_mut().zip(&tally.cells) {
                sum.flows.iter_mut().zip(&cell.flows).for_each(|(sum, flow)| sum.merge(flow));
            }
            merged.start_delay.merge(&tally.start_delay);
            merged.depth_ns += tally.depth_ns;
        }
        let key = (tally.start, stream);
        let slice = self.open.entry(key).or_insert_with(|| Slice {
            end: tally.end,
            in_window: tally.in_window,
            contributions: 0,
            bytes: [Bytes(0); 2],
            failed: 0,
            response_time: [(); 2].map(|()| Histogram::default()),
        });
        slice.add(tally);
        let complete = slice.contributions == contributors;
        tally.clear();
        if !complete && self.open.len() <= OPEN_SLICES {
            return None;
        }
        let key = if complete { key } else { *self.open.first_key_value()?.0 };
        let slice = self.open.remove(&key)?;
        Some(self.close(key, slice))
    }

    /// Moves a slice into the series.
    fn close(&mut self, (start, stream): (Instant, u32), slice: Slice) -> Progress {
        let length = slice.end.since(start);
        let seconds = length.as_secs_f64();
        let ios: u64 = slice.response_time.iter().map(Histogram::count).sum();
        let table = &self.timetable;
        let progress = Progress {
            in_window: slice.in_window,
            elapsed: slice.end.since(table.start),
            total: table.window_end.since(table.start),
            iops: ios as f64 / seconds,
            bandwidth: (slice.bytes[0].0 + slice.bytes[1].0) as f64 / seconds,
            failed: self.failed,
        };
        if slice.in_window {
            self.series.push(Interval {
                stream,
                start: start.since(table.window_start),
                length,
                bytes: slice.bytes,
                failed: slice.failed,
                response_time: slice.response_time.map(|histogram| histogram.to_sparse()),
            });
        }
        progress
    }

    /// The record, once every worker has ended.
    pub(crate) fn finish(mut self, outcomes: Vec<Outcome>) -> Record {
        while let Some((key, slice)) = self.open.pop_first() {
            self.close(key, slice);
        }
        self.series.sort_by_key(|interval| (interval.start, interval.stream));
        let table = self.timetable;
        let ended = outcomes.iter().map(|outcome| outcome.ended).max().unwrap_or(table.start);
        let window = ended.since(table.window_start);
        let workers = self.plans.iter().zip(self.merged).zip(outcomes);
        let workers = workers.map(|((plan, merged), outcome)| WorkerRecord {
            stream: plan.stream,
            worker: plan.worker,
            cells: merged.tally.cells,
            ledger: outcome.ledger,
            errors: outcome.errors,
            queue_depth: match window {
                Span(0) => 0.0,
                Span(ns) => merged.depth_ns as f64 / ns as f64,
            },
            start_delay: merged.start_delay,
            cpu: outcome.cpu,
            gave_up: outcome.gave_up,
        });
        Record {
            window,
            interrupted: ended < table.window_end,
            workers: workers.collect(),
            series: self.series,
        }
    }
}

impl Slice {
    fn add(&mut self, tally: &Tally) {
        self.end = self.end.max(tally.end);
        self.contributions += 1;
        self.failed += tally.failed;
        for cell in &tally.cells {
            for (index, flow) in cell.flows.iter().enumerate() {
                self.bytes[index].0 += flow.bytes.0;
                self.response_time[index].merge(flow.response_time());
            }
        }
    }
}

/// A tally of the shape that a worker needs.
pub(crate) fn empty_tally(plan: &WorkerPlan) -> Box<Tally> {
    let targets: Vec<u32> = plan.regions.iter().map(|region| region.target).collect();
    Box::new(Tally::new(&targets, plan.pacing.is_open()))
}
