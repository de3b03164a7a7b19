//! Merges the tallies of the workers into the record, and makes the series from them.
//!
//! The workers fill a tally for each interval and hand it over whole, so merging, sparse encoding
//! and the live view cost the hot loop one exchange of pointers an interval.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use fathom_core::measure::{
    Buckets, Cell, Errors, Flow, Histogram, LastStart, Ledger, Record, Series, Spread, Stretch,
    Tally, Upkeep, Whole, WorkerRecord,
};
use fathom_core::plan::WorkerPlan;
use fathom_core::spec::Region;
use fathom_core::{Bytes, Instant, Span};

use crate::recent::{LastSecond, Recent};
use crate::timetable::Timetable;
use crate::worker::Outcome;

/// A slice of a stream's series is complete at the latest when a slice this many intervals later
/// is: this many are open for each stream.
const OPEN_SLICES: usize = 16;

/// The number of tallies of each of this many workers: they wait for the collector, are merged, or
/// are empty and ready. Enough for the collector to be away for several of the shortest intervals,
/// and few enough for thousands of workers to start quickly: each tally is some 100 KB, cleared.
pub(crate) fn tallies(workers: usize) -> usize {
    (TALLIES / workers.max(1)).clamp(3, 8)
}

/// The tallies of all workers together, if each worker has no fewer than it needs.
const TALLIES: usize = 128;

/// The progress of a run, and the figures of its last second.
#[derive(Clone, Debug, PartialEq)]
pub struct Progress {
    /// Whether the window has begun.
    pub in_window: bool,
    /// Time since the run began, warm-up included.
    pub elapsed: Span,
    /// Warm-up, window and cool-down together.
    pub total: Span,
    /// What it did in its last second, all streams together.
    pub last_second: LastSecond,
    /// I/Os that failed so far.
    pub failed: u64,
}

/// The merged work of one worker so far.
#[derive(Clone)]
struct Merged {
    tally: Tally,
    depth_ns: u128,
    /// For each region.
    spreads: Vec<Spread>,
    /// Its work until it started its last I/O, as far as is known.
    whole: LastStart,
    /// Whether it has started its last I/O.
    drains: bool,
}

impl Merged {
    /// Adds the part of an interval before the last start.
    fn add_whole(&mut self, tally: &Tally) {
        if self.drains {
            return;
        }
        self.drains = tally.last_start.is_some();
        let all = tally.last_start.unwrap_or_else(|| tally.sums(tally.end));
        self.whole.at = all.at;
        self.whole.depth_ns += all.depth_ns;
        for direction in 0..2 {
            self.whole.ios[direction] += all.ios[direction];
            self.whole.bytes[direction].0 += all.bytes[direction].0;
        }
    }

    /// Its result if it ended then, as far as it has reported.
    fn outcome(&self, end: Instant) -> Outcome {
        Outcome {
            ledger: self.tally.ledger,
            errors: Errors { first: Vec::new(), count: self.tally.ledger.failed },
            cpu: None,
            gave_up: false,
            ended: end,
            waits: None,
            lag: self.tally.lag,
            buckets: None,
            leaves_ios: false,
        }
    }

    /// Its work while its load was complete, in a window of that length; none if the load was
    /// complete until its end.
    fn whole(&self, window_start: Instant, window: Span) -> Option<Whole> {
        let length = self.whole.at.since(window_start);
        (self.drains && length < window).then(|| Whole {
            length,
            ios: self.whole.ios,
            bytes: self.whole.bytes,
            queue_depth: match length {
                Span(0) => 0.0,
                Span(ns) => self.whole.depth_ns as f64 / ns as f64,
            },
        })
    }
}

/// A slice of the series to which some workers have not contributed yet.
#[derive(Clone)]
struct Slice {
    end: Instant,
    in_window: bool,
    /// The time that its workers have reported, in worker nanoseconds.
    covered: u64,
    bytes: [Bytes; 2],
    trims: u64,
    failed: u64,
    response_time: [Histogram; 2],
    /// The lag at its end, of the worker that is furthest behind.
    lag: Option<Span>,
}

/// Merges tallies.
#[derive(Clone)]
pub(crate) struct Collector<'a> {
    plans: &'a [WorkerPlan],
    timetable: Timetable,
    merged: Vec<Merged>,
    /// How many workers each stream has.
    contributors: BTreeMap<u32, u64>,
    /// By start and stream.
    open: BTreeMap<(Instant, u32), Slice>,
    series: Series,
    recent: Recent,
    failed: u64,
    /// The end of the window if the observer has seen enough.
    early_end: Option<Instant>,
}

impl<'a> Collector<'a> {
    /// A collector for these workers.
    pub(crate) fn new(plans: &'a [WorkerPlan], timetable: Timetable) -> Self {
        let merged = plans.iter().map(|plan| Merged {
            tally: tally(plan, Tally::new),
            depth_ns: 0,
            spreads: Vec::from_iter(plan.regions.iter().map(|_| Spread::default())),
            whole: LastStart::default(),
            drains: false,
        });
        let mut contributors = BTreeMap::new();
        for plan in plans {
            *contributors.entry(plan.stream).or_default() += 1;
        }
        Self {
            plans,
            timetable,
            merged: merged.collect(),
            contributors,
            open: BTreeMap::new(),
            series: Series::new(timetable.interval),
            recent: Recent::default(),
            failed: 0,
            early_end: None,
        }
    }

    /// The window ends there because the observer has seen enough.
    pub(crate) fn end_early(&mut self, end: Instant) {
        self.early_end = Some(end);
    }

    /// The time until which every worker has reported.
    pub(crate) fn told_until(&self) -> Instant {
        let ends = self.merged.iter().map(|merged| merged.tally.end);
        ends.min().unwrap_or(self.timetable.start)
    }

    /// The record as it would be if the window had ended then.
    pub(crate) fn so_far(&self, end: Instant) -> Record {
        let outcomes = self.merged.iter().map(|merged| merged.outcome(end)).collect();
        let mut collector = self.clone();
        collector.open.retain(|_, slice| slice.end <= end);
        collector.timetable.window_end = end;
        collector.finish(outcomes, None)
    }

    /// The figures of a worker that can no longer be asked: its I/Os that were in flight at its
    /// last report are lost, and its work since then is not counted.
    pub(crate) fn last_known(&self, worker: usize, end: Option<Instant>) -> Outcome {
        let window_end = self.timetable.window_end;
        let outcome = self.merged[worker].outcome(end.unwrap_or(window_end).min(window_end));
        let Ledger { in_flight, lost, .. } = outcome.ledger;
        let ledger = Ledger { in_flight: 0, lost: lost + in_flight, ..outcome.ledger };
        let errors = Errors { count: outcome.errors.count + in_flight, ..outcome.errors };
        Outcome { ledger, errors, gave_up: true, leaves_ios: true, ..outcome }
    }

    /// Adds the work of a worker in an interval, and empties the tally for its next use. Returns
    /// the progress when a slice of the series became complete, and is the first of its time.
    pub(crate) fn add(&mut self, worker: usize, tally: &mut Tally) -> Option<Progress> {
        let stream = self.plans[worker].stream;
        let contributors = self.contributors[&stream];
        self.failed += tally.failed;
        if tally.in_window {
            let merged = &mut self.merged[worker];
            let sums = merged.tally.flows.iter_mut().chain(&mut merged.tally.upkeep);
            let flows = tally.flows.iter().chain(&tally.upkeep);
            sums.zip(flows).for_each(|(sum, flow)| sum.merge(flow));
            if let (Some(sum), Some(late)) = (&mut merged.tally.start_delay, &tally.start_delay) {
                sum.merge(late);
            }
            merged.depth_ns += tally.depth_ns;
            merged.add_whole(tally);
            (merged.tally.ledger, merged.tally.lag) = (tally.ledger, tally.lag);
            merged.tally.end = tally.end;
            let length = tally.end.since(tally.start).0;
            let intervals = (length + self.timetable.interval.0 / 2) / self.timetable.interval.0;
            for (spread, flows) in merged.spreads.iter_mut().zip(tally.flows.chunks_exact(2)) {
                spread.add(intervals, [flows[0].ios(), flows[1].ios()]);
            }
        }
        let (key, mut slice) = self.take_overlapping(stream, tally);
        slice.add(tally);
        tally.clear();
        if slice.covered == contributors * slice.end.since(key.0).0 {
            return self.close(key, slice);
        }
        self.open.insert(key, slice);
        if self.open.len() <= OPEN_SLICES * self.contributors.len() {
            return None;
        }
        let (key, slice) = self.open.pop_first()?;
        self.close(key, slice)
    }

    /// The slice of the stream to which the tally belongs. A worker that could not hand over in
    /// time leaves one tally for several slices of the others: those become one, so that no two
    /// slices of a stream overlap and each holds the I/Os of its time.
    fn take_overlapping(&mut self, stream: u32, tally: &Tally) -> ((Instant, u32), Slice) {
        let overlaps = |(key, slice): (&(Instant, u32), &Slice)| {
            (key.1 == stream && key.0 < tally.end && tally.start < slice.end).then_some(*key)
        };
        let mut start = tally.start;
        let mut whole: Option<Slice> = None;
        while let Some(key) = self.open.iter().find_map(overlaps) {
            let Some(part) = self.open.remove(&key) else { break };
            start = start.min(key.0);
            match &mut whole {
                Some(whole) => whole.merge(&part),
                None => whole = Some(part),
            }
        }
        ((start, stream), whole.unwrap_or_else(|| Slice::new(tally)))
    }

    /// Moves a slice into the series.
    fn close(&mut self, (start, stream): (Instant, u32), slice: Slice) -> Option<Progress> {
        let table = &self.timetable;
        let stretch = Stretch {
            stream,
            start: start.since(table.window_start),
            length: slice.end.since(start),
            bytes: slice.bytes,
            failed: slice.failed,
            lag: slice.lag,
            response_time: slice.response_time.map(|histogram| histogram.to_sparse()),
        };
        let is_new = self.recent.add(slice.end, slice.trims, stretch.clone());
        if slice.in_window {
            self.series.add(stretch);
        }
        is_new.then(|| Progress {
            in_window: slice.in_window,
            elapsed: slice.end.since(table.start),
            total: table.load_end().since(table.start),
            last_second: self.recent.figures(),
            failed: self.failed,
        })
    }

    /// The record, once every worker has ended, and the run's end if it came because all requested
    /// I/Os were done.
    pub(crate) fn finish(mut self, outcomes: Vec<Outcome>, done: Option<Instant>) -> Record {
        while let Some((key, slice)) = self.open.pop_first() {
            self.close(key, slice);
        }
        let (mut series, mut stretches) = self.series.finish();
        let table = self.timetable;
        let last = outcomes.iter().map(|outcome| outcome.ended).max().unwrap_or(table.start);
        let ended = done.unwrap_or(last).min(last);
        let window = ended.since(table.window_start);
        // A worker that had nothing left to do went on with empty slices until it knew of the end.
        series.retain(|interval| interval.start < window);
        stretches.retain(|stretch| stretch.start < window);
        let cut = |start: Span, length: Span| length.min(window - start);
        series.iter_mut().for_each(|one| one.length = cut(one.start, one.length));
        stretches.iter_mut().for_each(|one| one.length = cut(one.start, one.length));
        let buckets = table.buckets.and_then(|length| {
            let workers = self.merged.iter_mut().map(|merged| &mut *merged.spreads).zip(&outcomes);
            in_buckets(length, window, workers)
        });
        let workers = self.plans.iter().zip(self.merged).zip(outcomes);
        let workers = workers.map(|((plan, mut merged), outcome)| WorkerRecord {
            whole: merged.whole(table.window_start, window),
            stream: plan.stream,
            worker: plan.worker,
            start_delay: merged.tally.start_delay.take(),
            cells: cells(plan, merged.tally, merged.spreads),
            ledger: outcome.ledger,
            errors: outcome.errors,
            queue_depth: match window {
                Span(0) => 0.0,
                Span(ns) => merged.depth_ns as f64 / ns as f64,
            },
            cpu: outcome.cpu.map(|time| time.cpu),
            cpu_wait: outcome.cpu.and_then(|time| time.wait),
            gave_up: outcome.gave_up,
            waits: outcome.waits,
            lag: outcome.lag,
        });
        let ended_early = self.early_end == Some(ended) && ended < table.window_end;
        Record {
            window,
            interrupted: ended < table.window_end && !ended_early && done.is_none(),
            ended_early,
            workers: workers.collect(),
            series,
            stretches,
            buckets,
        }
    }
}

/// The I/Os of each bucket, all workers together; the spread of each worker's I/Os over its regions
/// is then computed over buckets instead of intervals. None if they were not counted until here.
fn in_buckets<'a>(
    length: Span,
    window: Span,
    workers: impl Iterator<Item = (&'a mut [Spread], &'a Outcome)>,
) -> Option<Buckets> {
    let count = window.0.div_ceil(length.0) as usize;
    let mut all = Buckets { length, ios: vec![[0; 2]; count] };
    for (spreads, outcome) in workers {
        let counts = outcome.buckets.as_ref()?;
        spreads.fill(Spread::default());
        for (place, (region, ios)) in counts.of_regions(window).enumerate() {
            spreads[region].add(1, ios);
            let sum = &mut all.ios[place % count];
            *sum = [sum[0] + ios[0], sum[1] + ios[1]];
        }
    }
    Some(all)
}

impl Slice {
    /// An empty one as long as the tally.
    fn new(tally: &Tally) -> Self {
        Self {
            end: tally.end,
            in_window: tally.in_window,
            covered: 0,
            bytes: [Bytes(0); 2],
            trims: 0,
            failed: 0,
            response_time: [(); 2].map(|()| Histogram::default()),
            lag: None,
        }
    }

    /// Takes the lag of the later of two ends, and of two equal ends the longer lag.
    fn be_behind(&mut self, end: Instant, lag: Option<Span>) {
        self.lag = match end.cmp(&self.end) {
            Ordering::Less => self.lag,
            Ordering::Equal => self.lag.max(lag),
            Ordering::Greater => lag,
        };
    }

    fn merge(&mut self, other: &Self) {
        self.be_behind(other.end, other.lag);
        self.end = self.end.max(other.end);
        self.covered += other.covered;
        self.trims += other.trims;
        self.failed += other.failed;
        for index in 0..2 {
            self.bytes[index].0 += other.bytes[index].0;
            self.response_time[index].merge(&other.response_time[index]);
        }
    }

    fn add(&mut self, tally: &Tally) {
        self.be_behind(tally.end, tally.lag);
        self.end = self.end.max(tally.end);
        self.covered += tally.end.since(tally.start).0;
        self.failed += tally.failed;
        let trims = tally.upkeep.iter().skip(Upkeep::Trim as usize).step_by(2);
        self.trims += trims.map(Flow::ios).sum::<u64>();
        for (index, flow) in tally.flows.iter().enumerate() {
            self.bytes[index % 2].0 += flow.bytes.0;
            self.response_time[index % 2].merge(flow.response_time());
        }
    }
}

/// An empty tally of the shape that a worker needs, which it fills in its loop.
pub(crate) fn empty_tally(plan: &WorkerPlan) -> Box<Tally> {
    Box::new(tally(plan, Tally::ready))
}

fn tally(plan: &WorkerPlan, new: fn(usize, bool, bool) -> Tally) -> Tally {
    new(plan.regions.len(), plan.pace.is_open(), plan.flush.is_some() || plan.trims)
}

/// The worker's I/Os in each of its regions.
fn cells(plan: &WorkerPlan, tally: Tally, spreads: Vec<Spread>) -> Vec<Cell> {
    let pairs = |flows: Vec<Flow>| {
        let mut flows = flows.into_iter();
        std::iter::from_fn(move || Some([flows.next()?, flows.next()?]))
    };
    let mut upkeep = pairs(tally.upkeep);
    let regions = plan.regions.iter().zip(pairs(tally.flows)).zip(spreads);
    let cell = |((region, flows), spread): ((&Region, _), _)| Cell {
        target: region.target,
        flows,
        spread,
        upkeep: upkeep.next().map(Box::new),
    };
    regions.map(cell).collect()
}

#[cfg(test)]
mod tests {
    use fathom_core::measure::Interval;
    use fathom_core::spec::Pacing;

    use super::*;

    const TABLE: Timetable = Timetable {
        start: Instant(0),
        window_start: Instant(0),
        window_end: Instant(400_000_000),
        cool_down: Span(0),
        interval: Span::from_ms(100),
        buckets: None,
    };

    fn plan(worker: u32) -> WorkerPlan {
        plan_of(0, worker)
    }

    fn plan_of(stream: u32, worker: u32) -> WorkerPlan {
        WorkerPlan {
            stream,
            worker,
            workers: 2,
            sharers: 2,
            share: worker,
            regions: Vec::from([Region { target: 0, offset: Bytes(0), length: Bytes(4096) }]),
            pace: Pacing::closed(1).pace,
            seed: 1,
            stream_seed: 1,
            first_region: 0,
            flush: None,
            trims: false,
        }
    }

    /// Hands over what each worker did between two tenths of a second, with one I/O in each.
    /// Returns the series: start, length and I/Os of each interval.
    fn series(handed: &[(usize, u64, u64)]) -> Vec<(u64, u64, u64)> {
        const TENTH: u64 = 100_000_000;
        let plans = [plan(0), plan(1)];
        let mut collector = Collector::new(&plans, TABLE);
        for &(worker, from, to) in handed {
            let mut tally = *empty_tally(&plans[worker]);
            (tally.start, tally.end) = (Instant(from * TENTH), Instant(to * TENTH));
            tally.in_window = true;
            (from..to).for_each(|_| tally.flows[0].service_time.record(1000));
            collector.add(worker, &mut tally);
        }
        while let Some((key, slice)) = collector.open.pop_first() {
            collector.close(key, slice);
        }
        let shown = |interval: &Interval| {
            (interval.start.0 / TENTH, interval.length.0 / TENTH, interval.ios[0])
        };
        collector.series.finish().0.iter().map(shown).collect()
    }

    #[test]
    fn the_spread_over_the_intervals_is_counted_for_each_region() {
        const TENTH: u64 = 100_000_000;
        let plans = [plan(0)];
        let mut collector = Collector::new(&plans, TABLE);
        for (from, to, ios) in [(0, 1, 3), (1, 3, 10)] {
            let mut tally = *empty_tally(&plans[0]);
            (tally.start, tally.end) = (Instant(from * TENTH), Instant(to * TENTH));
            tally.in_window = true;
            tally.flows[0].service_time.record_many(1000, ios);
            tally.flows[1].service_time.record_many(1000, 2 * ios);
            collector.add(0, &mut tally);
        }
        // 3, 5 and 5 reads.
        let spread = collector.merged[0].spreads[0];
        assert_eq!(spread.intervals, 3);
        assert_eq!(spread.squares, [59.0, 4.0 * 59.0, 9.0 * 59.0]);
    }

    #[test]
    fn workers_in_step_make_an_interval_each() {
        let handed = [(0, 0, 1), (1, 0, 1), (1, 1, 2), (0, 1, 2)];
        assert_eq!(series(&handed), [(0, 1, 2), (1, 1, 2)]);
    }

    #[test]
    fn many_streams_wait_for_their_late_workers_side_by_side() {
        let plans: Vec<WorkerPlan> = (0..2 * OPEN_SLICES as u32)
            .flat_map(|stream| [0, 1].map(|w| plan_of(stream, w)))
            .collect();
        let mut collector = Collector::new(&plans, TABLE);
        // First one worker of every stream, then the other.
        for late in [0, 1] {
            for worker in (late..plans.len()).step_by(2) {
                let mut tally = *empty_tally(&plans[worker]);
                (tally.end, tally.in_window) = (Instant(100_000_000), true);
                collector.add(worker, &mut tally);
            }
        }
        assert!(collector.open.is_empty());
        assert_eq!(collector.series.finish().0.len(), 2 * OPEN_SLICES);
    }

    #[test]
    fn a_tally_of_several_intervals_makes_one_of_those_of_all_workers() {
        for handed in [
            [(0, 0, 2), (1, 0, 1), (1, 1, 2), (0, 2, 3), (1, 2, 3)],
            [(1, 0, 1), (1, 1, 2), (0, 0, 2), (1, 2, 3), (0, 2, 3)],
            [(1, 0, 1), (0, 0, 2), (1, 1, 2), (0, 2, 3), (1, 2, 3)],
        ] {
            assert_eq!(series(&handed), [(0, 2, 4), (2, 1, 2)], "{handed:?}");
        }
        // Both workers are late, but at different times.
        let handed = [(0, 0, 1), (1, 0, 2), (0, 1, 3), (1, 2, 4), (0, 3, 4)];
        assert_eq!(series(&handed), [(0, 4, 8)]);
    }
}
