//! Tests the whole loop, on backends whose I/Os have the times and results that a test sets.

use std::cell::Cell;

use fathom_core::measure::Errors;
use fathom_core::plan::WorkerPlan;
use fathom_core::spec::{BlockSizes, Kind, Loop, Pacing, Region, Stream};
use fathom_core::{Bytes, Rate};

use super::*;
use crate::backend::Io;
use crate::collector::empty_tally;
use crate::pattern::{Random, Requests};
use crate::schedule::{ClosedLoop, OpenLoop, Steady, UniformArrivals};
use crate::timetable::Timetable;

const BLOCK_SIZE: u32 = 4096;

/// Every I/O takes 100 us and has the result that the test chose for its moment. Without a result
/// it never comes back.
struct Fixed<F> {
    now: Instant,
    in_flight: Vec<(Instant, u32)>,
    completed: Vec<Completion>,
    result: F,
}

impl<F: Fn(Instant) -> Option<i32>> Backend for Fixed<F> {
    fn now(&mut self) -> Instant {
        self.now
    }

    fn refresh(&mut self, _: u32, _: u32) {}

    fn push(&mut self, io: Io) {
        self.in_flight.push((self.now + Span::from_us(100), io.slot));
    }

    fn wait(&mut self, deadline: Instant) {
        let next = self.in_flight.iter().filter(|(at, _)| (self.result)(*at).is_some()).min();
        let until = next.map_or(deadline, |&(at, _)| at.min(deadline));
        self.now = self.now.max(until);
        let (now, result) = (self.now, &self.result);
        self.in_flight.retain(|&(at, slot)| match result(at) {
            Some(result) if at <= now => {
                self.completed.push(Completion { slot, result, at });
                false
            }
            _ => true,
        });
    }

    fn reap(&mut self, take: impl FnMut(Completion)) {
        self.completed.drain(..).for_each(take);
    }
}

/// Keeps the tallies, but refuses those whose number the test chose.
struct Keep<F> {
    kept: Vec<Tally>,
    asked: usize,
    refuses: F,
}

impl<F: Fn(usize) -> bool> Sink for Keep<F> {
    fn hand_over(&mut self, tally: &mut Box<Tally>) -> bool {
        self.asked += 1;
        if (self.refuses)(self.asked) {
            return false;
        }
        self.kept.push((**tally).clone());
        tally.clear();
        true
    }
}

const TABLE: Timetable = Timetable {
    start: Instant(1_000),
    window_start: Instant(250_001_000),
    window_end: Instant(1_250_001_000),
    cool_down: Span(0),
    interval: Span::from_ms(100),
    buckets: None,
};

fn run(
    pacing: Pacing,
    result: impl Fn(Instant) -> Option<i32>,
    refuses: impl Fn(usize) -> bool,
    stopped: &dyn Fn() -> bool,
    timetable: Timetable,
) -> (Outcome, Vec<Tally>) {
    let backend = Fixed { now: Instant(0), in_flight: Vec::new(), completed: Vec::new(), result };
    run_on(backend, pacing, refuses, stopped, timetable)
}

fn run_on(
    mut backend: impl Backend,
    pacing: Pacing,
    refuses: impl Fn(usize) -> bool,
    stopped: &dyn Fn() -> bool,
    timetable: Timetable,
) -> (Outcome, Vec<Tally>) {
    let region = Region { target: 3, offset: Bytes(0), length: Bytes(1 << 20) };
    let plan = WorkerPlan {
        stream: 0,
        worker: 0,
        workers: 1,
        sharers: 1,
        share: 0,
        regions: Vec::from([region]),
        pace: pacing.pace.clone(),
        seed: 1,
        stream_seed: 1,
        first_region: 0,
        flush: None,
        trims: false,
    };
    let job = Assignment {
        plan: &plan,
        writes: true,
        timetable,
        cpu: || None,
        ends_early: stopped,
        stopped,
        agree_on_end: &|now| now,
        done: &|_| {},
    };
    let mut sink = Keep { kept: Vec::new(), asked: 0, refuses };
    let block_sizes = BlockSizes::one(Bytes(u64::from(BLOCK_SIZE)));
    let stream = Stream {
        ios: Kind { block_sizes, read_share: 0.5, ..Kind::default() }.into(),
        ..Stream::reading("test", Vec::new())
    };
    let mut source = Requests::new(&plan, &stream, Random::new(&plan, &stream));
    let tally = empty_tally(&plan);
    let outcome = match pacing.pace {
        Loop::Closed { .. } => drive(&job, &mut backend, ClosedLoop, &mut source, &mut sink, tally),
        Loop::Open { load, .. } => {
            let arrivals = UniformArrivals::new(Steady::new(load.mean(Span(0))), 0.0);
            let schedule = OpenLoop::new(timetable.start, arrivals);
            drive(&job, &mut backend, schedule, &mut source, &mut sink, tally)
        }
    };
    (outcome, sink.kept)
}

const CLOSED: Pacing = Pacing::closed(4);
const WHOLE: Option<i32> = Some(BLOCK_SIZE as i32);

fn ios(tallies: &[Tally], in_window: bool) -> u64 {
    let wanted = tallies.iter().filter(|tally| tally.in_window == in_window);
    wanted.flat_map(|tally| &tally.flows).map(|flow| flow.ios()).sum()
}

#[test]
fn slices_lie_on_the_window_and_follow_each_other() {
    let (_, tallies) = run(CLOSED, |_| WHOLE, |_| false, &|| false, TABLE);
    assert_eq!(tallies.len(), 13);
    assert_eq!(tallies[0].start, TABLE.start);
    assert_eq!(tallies[3].start, TABLE.window_start);
    assert_eq!(tallies[12].end, TABLE.window_end);
    assert!(tallies.windows(2).all(|pair| pair[0].end == pair[1].start));
    assert!(tallies.iter().all(|t| t.in_window == (TABLE.window_start <= t.start)));
}

#[test]
fn a_busy_collector_makes_slices_longer_and_loses_nothing() {
    for every in [2, 3, 7] {
        let (outcome, tallies) = run(CLOSED, |_| WHOLE, |n| n % every > 0, &|| false, TABLE);
        assert_eq!(ios(&tallies, true), outcome.ledger.completed);
        let window: Vec<&Tally> = tallies.iter().filter(|tally| tally.in_window).collect();
        assert_eq!(window[0].start, TABLE.window_start);
        assert!(window.windows(2).all(|pair| pair[0].end == pair[1].start));
        assert_eq!(window.last().map(|tally| tally.end), Some(TABLE.window_end));
        let depth: u128 = window.iter().map(|tally| tally.depth_ns).sum();
        assert_eq!(depth, 4 * 1_000_000_000);
    }
}

#[test]
fn what_completes_at_the_windows_end_is_not_counted_in_it() {
    let (outcome, tallies) = run(CLOSED, |_| WHOLE, |_| false, &|| false, TABLE);
    // 100 us divides the window, so four I/Os complete at its first instant and four at its last.
    assert_eq!(outcome.ledger.completed, 40_000);
    assert_eq!(outcome.ledger.in_flight, 4);
    assert_eq!(ios(&tallies, false), outcome.ledger.completed_in_warm_up);
}

/// Hands over completions of one batch with timestamps in reverse order, as helper threads do that
/// overtake each other.
struct Overtaken<B>(B);

impl<B: Backend> Backend for Overtaken<B> {
    fn now(&mut self) -> Instant {
        self.0.now()
    }

    fn refresh(&mut self, slot: u32, length: u32) {
        self.0.refresh(slot, length);
    }

    fn push(&mut self, io: Io) {
        self.0.push(io);
    }

    fn wait(&mut self, deadline: Instant) {
        self.0.wait(deadline);
    }

    fn reap(&mut self, mut take: impl FnMut(Completion)) {
        let mut place = 0;
        self.0.reap(|completion| {
            take(Completion { at: Instant(completion.at.0 - place * 10_000), ..completion });
            place += 1;
        });
    }
}

#[test]
fn what_was_overtaken_at_the_windows_end_is_in_the_ledger_and_the_tally_or_in_neither() {
    let fixed =
        Fixed { now: Instant(0), in_flight: Vec::new(), completed: Vec::new(), result: |_| WHOLE };
    let (outcome, tallies) = run_on(Overtaken(fixed), CLOSED, |_| false, &|| false, TABLE);
    assert_eq!(ios(&tallies, true), outcome.ledger.completed);
    assert_eq!(ios(&tallies, false), outcome.ledger.completed_in_warm_up);
    assert_eq!(outcome.ledger.in_flight, 4);
}

/// Takes two I/Os at once, and records how many were queued at each wait.
struct InPairs<'a, B> {
    backend: B,
    queued: usize,
    waits: &'a Cell<[u64; 3]>,
}

impl<B: Backend> Backend for InPairs<'_, B> {
    fn now(&mut self) -> Instant {
        self.backend.now()
    }

    fn batch(&self) -> usize {
        2
    }

    fn refresh(&mut self, slot: u32, length: u32) {
        self.backend.refresh(slot, length);
    }

    fn push(&mut self, io: Io) {
        self.queued += 1;
        self.backend.push(io);
    }

    fn wait(&mut self, deadline: Instant) {
        let mut waits = self.waits.get();
        waits[self.queued] += 1;
        self.waits.set(waits);
        self.queued = 0;
        self.backend.wait(deadline);
    }

    fn reap(&mut self, take: impl FnMut(Completion)) {
        self.backend.reap(take);
    }
}

#[test]
fn a_batch_is_no_larger_than_the_backend_takes_it_and_the_depth_is_reached_all_the_same() {
    let waits = Cell::new([0; 3]);
    let fixed =
        Fixed { now: Instant(0), in_flight: Vec::new(), completed: Vec::new(), result: |_| WHOLE };
    let backend = InPairs { backend: fixed, queued: 0, waits: &waits };
    let (outcome, tallies) = run_on(backend, CLOSED, |_| false, &|| false, TABLE);
    // The same number as with batches of any size, in two batches for each four I/Os.
    assert_eq!(outcome.ledger.completed, 40_000);
    let depth: u128 = tallies.iter().filter(|t| t.in_window).map(|t| t.depth_ns).sum();
    assert_eq!(depth, 4 * 1_000_000_000);
    let [_, one, two] = waits.get();
    assert_eq!((one, two), (0, 2 * 50_000 / 4));
}

#[test]
fn stopping_while_lost_ios_are_waited_for_shortens_the_wait() {
    let waits = |stops: bool| {
        let waits = Cell::new(0);
        let hangs = |at: Instant| {
            waits.set(waits.get() + 1);
            (at.0 < 600_000_000).then_some(BLOCK_SIZE as i32)
        };
        let looks = Cell::new(0);
        let stop = || {
            // In the loop the worker looks every 50 ms or more often. The final wait begins after
            // that.
            looks.set(looks.get() + 1);
            stops && looks.get() > 6_100
        };
        let (outcome, _) = run(CLOSED, hangs, |_| false, &stop, TABLE);
        assert_eq!(outcome.ledger.lost, 4);
        assert_eq!(outcome.ended, TABLE.window_end);
        waits.get()
    };
    assert!(waits(true) + 3_000 < waits(false));
}

#[test]
fn an_outage_that_passes_is_measured_and_one_that_stays_is_left() {
    let long = Timetable { window_end: Instant(30_250_001_000), ..TABLE };
    let outage = |from: u64, to: u64| {
        move |at: Instant| Some(if (from..to).contains(&at.0) { -5 } else { BLOCK_SIZE as i32 })
    };
    let passes = outage(1_000_000_000, 9_000_000_000);
    let (outcome, _) = run(CLOSED, passes, |_| false, &|| false, long);
    assert!(!outcome.gave_up);
    assert_eq!(outcome.ledger.failed, 320_000);
    assert_eq!(outcome.errors.count, 320_000);
    assert_eq!(outcome.errors.first.len(), Errors::KEPT);
    assert_eq!(outcome.errors.first[0].kind, ErrorKind::Errno(5));
    assert_eq!(outcome.errors.first[0].target, 3);
    let stays = outage(1_000_000_000, u64::MAX);
    let (outcome, _) = run(CLOSED, stays, |_| false, &|| false, long);
    assert!(outcome.gave_up);
    assert!(outcome.ended < Instant(12_000_000_000));
}

#[test]
fn zero_bytes_are_a_failure() {
    let (outcome, tallies) = run(CLOSED, |_| Some(0), |_| false, &|| false, TABLE);
    assert_eq!(outcome.ledger.completed + ios(&tallies, true), 0);
    assert_eq!(outcome.errors.first[0].kind, ErrorKind::Short(0));
}

#[test]
fn buckets_of_any_length_count_what_the_slices_do() {
    let whole = |_: Instant| Some(BLOCK_SIZE as i32);
    for (ms, each, last) in [(70, 2800, 800), (3, 120, 40), (100, 4000, 4000), (1500, 0, 40_000)] {
        let table = Timetable { buckets: Some(Span::from_ms(ms)), ..TABLE };
        let refuses = |asked: usize| asked.is_multiple_of(3);
        let (outcome, tallies) = run(CLOSED, whole, refuses, &|| false, table);
        let buckets = outcome.buckets.expect("they were asked for");
        let counts: Vec<u64> =
            buckets.of_regions(Span::from_secs(1)).map(|(_, ios)| ios.iter().sum()).collect();
        let (end, full) = counts.split_last().unwrap();
        assert_eq!((*end, counts.iter().sum::<u64>()), (last, ios(&tallies, true)), "{ms}");
        assert!(full.iter().all(|count| *count == each), "{ms}: {counts:?}");
    }
}

#[test]
fn what_never_comes_back_is_counted_as_lost() {
    let hangs = |at: Instant| (at.0 < 600_000_000).then_some(BLOCK_SIZE as i32);
    let (outcome, _) = run(CLOSED, hangs, |_| false, &|| false, TABLE);
    assert_eq!(outcome.ledger.lost, 4);
    assert_eq!(outcome.errors.first.last().map(|error| error.kind), Some(ErrorKind::Lost));
    let open = Pacing::open(Rate(1000.0), fathom_core::spec::Arrivals::Uniform, 4);
    let (outcome, _) = run(open, hangs, |_| false, &|| false, TABLE);
    assert_eq!(outcome.ledger.due, 1250);
    assert_eq!(outcome.ledger.unstarted, 1250 - 600 - 4);
}

#[test]
fn stopping_ends_the_window_early_and_keeps_what_was_measured() {
    let looks = Cell::new(0);
    let stopped = || {
        looks.set(looks.get() + 1);
        looks.get() > 5_000
    };
    let (outcome, tallies) = run(CLOSED, |_| WHOLE, |_| false, &stopped, TABLE);
    assert!(outcome.ended < TABLE.window_end);
    assert_eq!(tallies.last().map(|tally| tally.end), Some(outcome.ended));
    assert_eq!(ios(&tallies, true), outcome.ledger.completed);
    assert!(outcome.ledger.completed > 0);
}
