//! The hot loop: starts what is due, stamps it, waits, and records what came back.
//!
//! Generic over the backend and the schedule, so that no choice is left in it; what to read and write
//! is drawn for a whole batch by a [`Source`]. Between the start and the end of the window it does not
//! allocate, lock, log or format; a test with a counting allocator proves it. The loop knows no wall
//! clock: the backend owns the time.
//!
//! When the window is over, a worker that is to cool down goes on with the same load for a while, in
//! a loop of its own that records nothing: so the window's loop need not know of it.
//!
//! What can be done once for all I/Os that came back together is not done for each: time moves on,
//! slices are closed and the depth is integrated when a new stamp comes, not when an I/O does.
//!
//! A turn of the loop has two halves, and the wait is between them: the first starts what is due and
//! says until when to wait, the second takes what came back. [`drive`] gives one worker its turns on
//! its own thread; a [`Seat`] leaves them to somebody who has several workers in one virtual time.

mod buckets;
mod estate;
mod flushing;

use std::ops::Range;
use std::sync::Arc;

use fathom_core::measure::{Direction, ErrorKind, Errors, IoError, Ledger, Tally, Upkeep, Waits};
use fathom_core::plan::WorkerPlan;
use fathom_core::spec::Flush;
use fathom_core::{Bytes, Instant, Span};

use crate::backend::{Backend, Completion, Io, Task, failure};
use crate::host::ThreadTime;
use crate::pattern::{Request, Source, What};
use crate::schedule::Schedule;
use crate::trace::{Entry, TracePhase};
pub(crate) use buckets::Buckets;
pub(crate) use estate::{Claimed, Estate, Leaves, claim, for_any_thread};
use flushing::{Flushing, State};

/// How often an idle loop looks whether it should stop.
pub(crate) const STOP_CHECK: Span = Span::from_ms(50);
/// How long I/Os that are in flight at the end are waited for.
pub(crate) const PATIENCE: Span = Span::from_secs(30);
/// The same after the user asked to stop.
pub(crate) const PATIENCE_WHEN_STOPPED: Span = Span::from_secs(3);
/// A worker gives up when this many I/Os failed in a row, none succeeding between, ...
const GIVE_UP_FAILURES: u64 = 1000;
/// ... for at least this long: an outage that passes is measured, a device that is gone is left.
const GIVE_UP_AFTER: Span = Span::from_secs(10);

/// The instants of a run, the same for all its workers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Timetable {
    /// The first I/O may start.
    pub(crate) start: Instant,
    /// The warm-up ends, the window begins.
    pub(crate) window_start: Instant,
    /// The window ends.
    pub(crate) window_end: Instant,
    /// How long the load goes on after it.
    pub(crate) cool_down: Span,
    /// The length of the series' slices.
    pub(crate) interval: Span,
    /// The length of the buckets whose I/Os are counted besides, if they are.
    pub(crate) buckets: Option<Span>,
}

impl Timetable {
    /// When the last I/O may start, if the window ends there.
    pub(crate) fn load_end(&self) -> Instant {
        self.window_end + self.cool_down
    }

    /// The boundary between two intervals that comes after `at`, or the end. Boundaries lie at whole
    /// intervals from the start of the window, in both directions.
    pub(crate) fn boundary_after(&self, at: Instant) -> Instant {
        let interval = self.interval.0;
        if at >= self.window_start {
            let passed = (at.0 - self.window_start.0) / interval;
            return Instant(self.window_start.0 + (passed + 1) * interval).min(self.window_end);
        }
        let left = (self.window_start.0 - at.0 - 1) / interval;
        Instant(self.window_start.0 - left * interval)
    }
}

/// Takes what an interval left, and gives back an empty tally of the same shape.
pub(crate) trait Sink {
    /// Whether somebody follows the I/Os one by one.
    const FOLLOWS: bool = false;

    /// Hands the tally over. When the sink cannot take it now, the tally stays as it is and goes on
    /// counting, so that the next interval's slice is longer and nothing is lost.
    fn hand_over(&mut self, tally: &mut Box<Tally>) -> bool;

    /// An I/O of this slot starts. For who follows them one by one; it costs nothing where nobody does.
    #[inline(always)]
    fn starts(&mut self, _slot: u32) {}

    /// It ended: `entry` makes of its number what is to be known of it.
    #[inline(always)]
    fn ends(&mut self, _slot: u32, _entry: impl FnOnce(u64) -> Entry) {}

    /// Where the worker's state is for others while it waits; none where nobody could claim it.
    fn estate(&self) -> Option<Arc<Estate>> {
        None
    }

    /// Nothing comes any more.
    fn finish(&mut self) {}
}

/// What a worker needs besides its backend, schedule and pattern.
pub(crate) struct Job<'a> {
    pub(crate) plan: &'a WorkerPlan,
    /// Whether there will be writes.
    pub(crate) writes: bool,
    pub(crate) timetable: Timetable,
    /// What this thread had of the CPUs, where that means anything.
    pub(crate) cpu: fn() -> Option<ThreadTime>,
    /// Whether the window is to end before its time, because the user asked to stop or enough is
    /// known.
    pub(crate) ends_early: &'a dyn Fn() -> bool,
    /// Whether the user asked to stop.
    pub(crate) stopped: &'a dyn Fn() -> bool,
    /// When all workers end if the window is to end before its time, given that it is now. Asked
    /// once.
    pub(crate) agree_on_end: &'a dyn Fn(Instant) -> Instant,
    /// Told once, by a worker that may be done before its time, when its last I/O came back.
    pub(crate) done: &'a dyn Fn(Instant),
}

/// What a worker leaves besides its tallies.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) ledger: Ledger,
    pub(crate) errors: Errors,
    /// What its thread had of the CPUs in the window.
    pub(crate) cpu: Option<ThreadTime>,
    pub(crate) gave_up: bool,
    /// When the window really ended.
    pub(crate) ended: Instant,
    /// How it waited, where time is real.
    pub(crate) waits: Option<Waits>,
    /// How far an open loop was behind at the end.
    pub(crate) lag: Option<Span>,
    /// The I/Os of each bucket, if they were counted.
    pub(crate) buckets: Option<Buckets>,
    /// Whether some of its I/Os never came back, so that the kernel may still have them.
    pub(crate) leaves_ios: bool,
}

/// How many requests are drawn at once, at least: at queue depth 1 to draw them one by one would cost
/// more than what is drawn.
const DRAWN_AHEAD: usize = 64;
/// What no result of an I/O differs from its length by.
const NEVER: i64 = 1 << 40;

#[derive(Clone, Copy, Default)]
struct Slot {
    intended: Instant,
    submitted: Instant,
    request: Request,
}

/// What one look at the completions has found so far. It lives for that look only, so that it can
/// stay in registers.
///
/// I/Os of one flow that started at one stamp and came back at one stamp, as do all that were started
/// by one system call and had completed by the time it returned, took the same time: one entry in the
/// histogram counts them all.
struct Back {
    /// The slots that are free.
    free: usize,
    /// When the latest completions came back, ...
    at: Instant,
    /// ... what else they have in common, ...
    what: What,
    submitted: Instant,
    /// ... and how many of them are not recorded yet.
    count: u64,
}

/// The state of the loop.
struct Loop<'a, S, K> {
    job: &'a Job<'a>,
    /// The job's, until the user asks to stop: then the window ends earlier. In the cool-down its
    /// window ends with that.
    timetable: Timetable,
    stopping: bool,
    schedule: S,
    source: &'a mut dyn Source,
    /// What is drawn, at the end, ...
    requests: Box<[Request]>,
    /// ... and the place of the first that is not started.
    next: usize,
    /// How many are drawn at once, unless more are started.
    ahead: usize,
    sink: &'a mut K,
    slots: Box<[Slot]>,
    /// When the I/Os that are about to start were due, in their order. Open loops only.
    dues: Box<[Instant]>,
    /// The first `free_count` are free; what was started last lies behind them.
    free: Box<[u32]>,
    free_count: usize,
    tally: Box<Tally>,
    /// Where the slice of the series ends, ...
    slice_end: Instant,
    /// ... and where that or the bucket does, whichever comes first.
    boundary: Instant,
    buckets: Option<Buckets>,
    in_window: bool,
    /// What the thread had had of the CPUs when the window began.
    cpu_before: Option<ThreadTime>,
    /// When the window really ended, once it has.
    ended: Instant,
    gave_up: bool,
    /// Whether it has told that it is done.
    done: bool,
    /// Whether the last of a limited number of I/Os has started.
    drains: bool,
    /// The time that the loop has come to: the latest stamp. The depth is integrated until then.
    at: Instant,
    /// What the result of an I/O exceeds its length by if it completes in full within the window:
    /// nothing, and what cannot be once the window is over. So one comparison tells the usual case
    /// from all others.
    excess: i64,
    /// When a slot last became free after none was: what fell due before it had to wait for the
    /// target, not for us. Open loops only.
    full_until: Instant,
    started: u64,
    /// How many I/Os may start before it has to be looked whether a flush is due.
    gate: usize,
    /// Whether the last batch was as large as the backend takes them, so that more may be due.
    more: bool,
    flushing: Option<Flushing>,
    /// I/Os that completed in full in this phase: the warm-up, or the window.
    completed: u64,
    /// I/Os that failed since this many had completed.
    failures_in_row: u64,
    completed_before_failures: u64,
    /// When the first of them failed.
    failing_since: Instant,
    ledger: Ledger,
    errors: Errors,
    /// By slot, whether its I/O was in flight when the window ended and has not come back since.
    /// Empty until then.
    overdue: Box<[bool]>,
    /// What there was at the window's end, if a cool-down followed.
    at_end: Option<AtEnd>,
}

/// What a cool-down would make unrecognizable.
#[derive(Clone, Copy)]
struct AtEnd {
    /// I/Os that had started by the window's end.
    started: u64,
    lag: Option<Span>,
    /// I/Os that fell due before it and started in the cool-down.
    late: u64,
}

/// Runs a worker from the start to the end of its timetable and waits for what is in flight.
pub(crate) fn drive<B: Backend, S: Schedule, K: Sink>(
    job: &Job<'_>,
    backend: &mut B,
    schedule: S,
    source: &mut dyn Source,
    sink: &mut K,
    tally: Box<Tally>,
) -> Outcome {
    let estate = sink.estate();
    let mut state = Loop::new(job, schedule, source, sink, tally);
    let start = job.timetable.start;
    while backend.now() < start {
        backend.wait(start);
    }
    state.set_off();
    let mut now = backend.now();
    while let Some(deadline) = state.begin(now, backend) {
        state.wait(estate.as_deref(), || backend.wait(deadline));
        now = state.end(backend);
    }
    let cpu = state.cpu_used();
    let mut rest = state.close(backend.now());
    while let Some(deadline) = state.go_on(&mut rest, backend) {
        state.wait(estate.as_deref(), || backend.wait(deadline));
        backend.reap(|completion| state.come_back_late(completion));
    }
    Outcome { cpu, ..state.settle() }
}

/// A worker that is given its turns by somebody who waits for several of them at once.
pub(crate) trait Turns<B> {
    /// The first half of a turn: starts what is due, and says until when to wait for what it has in
    /// flight. Nothing when the worker is done.
    fn begin(&mut self, backend: &mut B) -> Option<Instant>;

    /// The second half: takes what came back.
    fn end(&mut self, backend: &mut B);

    /// Whether what comes back before the deadline may be taken at the deadline: it starts nothing, and
    /// has a stamp of its own.
    fn is_patient(&self) -> bool;

    /// Closes the intervals that ended by now, before what came back now is taken.
    fn catch_up(&mut self, now: Instant);

    /// Has the window end there, which is now, unless it ended before.
    fn end_window(&mut self, end: Instant);

    /// What it leaves, once it is done.
    fn outcome(self: Box<Self>) -> Outcome;
}

/// A worker between its turns.
pub(crate) struct Seat<'a, S, K> {
    state: Loop<'a, S, K>,
    /// When its last turn ended.
    now: Instant,
    /// What it does after its window; none while that lasts.
    rest: Option<Rest>,
}

impl<'a, S: Schedule, K: Sink> Seat<'a, S, K> {
    /// A worker that has had no turn yet. Its first one is at the start of its timetable.
    pub(crate) fn new(
        job: &'a Job<'a>,
        schedule: S,
        source: &'a mut dyn Source,
        sink: &'a mut K,
        tally: Box<Tally>,
    ) -> Self {
        let state = Loop::new(job, schedule, source, sink, tally);
        Self { state, now: job.timetable.start, rest: None }
    }
}

impl<B: Backend, S: Schedule, K: Sink> Turns<B> for Seat<'_, S, K> {
    fn begin(&mut self, backend: &mut B) -> Option<Instant> {
        let state = &mut self.state;
        if self.rest.is_none() {
            match state.begin(self.now, backend) {
                Some(deadline) => return Some(deadline),
                None => self.rest = Some(state.close(backend.now())),
            }
        }
        state.go_on(self.rest.as_mut()?, backend)
    }

    fn end(&mut self, backend: &mut B) {
        match self.rest {
            None => self.now = self.state.end(backend),
            Some(_) => backend.reap(|completion| self.state.come_back_late(completion)),
        }
    }

    fn is_patient(&self) -> bool {
        let state = &self.state;
        // With a free slot, an open loop waits for the next arrival and for nothing else.
        let is_free = S::OPEN && !S::BOUNDED && !S::RESTS && state.free_count > 0;
        is_free && state.flushing.is_none() && self.rest.is_none()
    }

    fn catch_up(&mut self, now: Instant) {
        if self.rest.is_none() && self.state.boundary <= now {
            self.state.roll_over(now);
        }
    }

    fn end_window(&mut self, end: Instant) {
        if self.rest.is_none() {
            self.state.end_window(end);
        }
    }

    fn outcome(mut self: Box<Self>) -> Outcome {
        // The thread is not its own, so what that used of the CPU says nothing.
        self.state.settle()
    }
}

/// What a worker does when its window is over: it goes on with its load while it cools down, and then
/// waits for what is in flight.
struct Rest {
    /// Until when the load goes on.
    cools_until: Instant,
    /// How long it waits.
    limit: Instant,
    /// Whether that became short because the user asked to stop.
    shortened: bool,
}

/// What the worker cannot do itself, because it is in a call that does not return.
impl<S: Schedule, K: Sink> Leaves for Loop<'_, S, K> {
    fn leave(&mut self, end: Option<Instant>) -> Outcome {
        // Before its window is over it has not counted what is in flight at the end.
        if self.overdue.is_empty() {
            if let Some(end) = end {
                self.end_window(end.max(self.at.max(self.tally.start + Span(1))));
            }
            self.ended = self.timetable.window_end;
            self.roll_over(self.ended);
            self.close(self.ended);
        }
        let outcome = self.settle();
        self.sink.finish();
        outcome
    }
}

impl<'a, S: Schedule, K: Sink> Loop<'a, S, K> {
    /// Waits, and lets others have what is here meanwhile.
    #[inline(always)]
    fn wait(&mut self, estate: Option<&Estate>, wait: impl FnOnce()) {
        match estate {
            None => wait(),
            Some(estate) => estate.lend(self, wait),
        }
    }

    fn new(
        job: &'a Job<'a>,
        schedule: S,
        source: &'a mut dyn Source,
        sink: &'a mut K,
        tally: Box<Tally>,
    ) -> Self {
        let depth = job.plan.pacing.queue_depth();
        let most = DRAWN_AHEAD.max(depth as usize);
        let table = job.timetable;
        let flushing = job.plan.flush;
        let flushing =
            flushing.map(|flush| Flushing::new(flush, job.plan.regions.len(), depth as usize));
        let mut state = Self {
            job,
            timetable: table,
            stopping: false,
            schedule,
            ahead: if source.ahead() { most } else { 0 },
            source,
            requests: vec![Request::default(); most].into(),
            next: most,
            sink,
            slots: vec![Slot::default(); depth as usize].into(),
            dues: vec![Instant(0); if S::OPEN { depth as usize } else { 0 }].into(),
            free: (0..depth).rev().collect(),
            free_count: depth as usize,
            slice_end: table.boundary_after(table.start),
            boundary: table.boundary_after(table.start),
            buckets: table.buckets.map(|length| {
                let window = table.window_end.since(table.window_start);
                Buckets::new(length, window, tally.flows.len())
            }),
            tally,
            in_window: table.window_start <= table.start,
            cpu_before: None,
            ended: table.window_end,
            gave_up: false,
            done: false,
            drains: false,
            at: table.start,
            excess: 0,
            full_until: table.start,
            started: 0,
            more: false,
            gate: flushing.as_ref().map_or(usize::MAX, Flushing::allows),
            flushing,
            completed: 0,
            failures_in_row: 0,
            completed_before_failures: 0,
            failing_since: table.start,
            ledger: Ledger::default(),
            errors: Errors::with_room(),
            overdue: Box::default(),
            at_end: None,
        };
        state.tally.start = table.start;
        state.tally.in_window = state.in_window;
        state.set_boundary(table.start);
        state
    }

    /// Looks where the next slice or bucket ends after this instant.
    fn set_boundary(&mut self, at: Instant) {
        let table = &self.timetable;
        self.slice_end = table.boundary_after(at);
        self.boundary = match &self.buckets {
            Some(buckets) if at >= table.window_start => {
                let ends = buckets.end_after(at.since(table.window_start));
                self.slice_end.min(table.window_start + ends)
            }
            _ => self.slice_end,
        };
    }

    /// Counts what completed since the last time into the bucket that ends there or goes on.
    fn count_bucket(&mut self, at: Instant) {
        if let Some(buckets) = self.buckets.as_mut().filter(|_| self.in_window) {
            buckets.count(&self.tally, at.since(self.timetable.window_start));
        }
    }

    /// The time has come to the start, on the thread of the worker.
    fn set_off(&mut self) {
        self.cpu_before = (self.job.cpu)();
    }

    /// What the thread had of the CPUs since the window began.
    fn cpu_used(&self) -> Option<ThreadTime> {
        Some((self.job.cpu)()?.since(self.cpu_before?))
    }

    /// The first half of a turn: closes what ended by now, starts what is due, and says until when to
    /// wait if nothing completes. Nothing once the window is over.
    #[inline(always)]
    fn begin<B: Backend>(&mut self, now: Instant, backend: &mut B) -> Option<Instant> {
        if self.boundary <= now {
            self.roll_over(now);
        }
        if self.timetable.window_end <= now {
            self.ended = self.timetable.window_end;
            return None;
        }
        // Not at the very start of a slice: one without a length could not be handed over, and
        // what completed at this instant would be in the ledger alone.
        if self.is_hopeless(now) && self.tally.start < now {
            self.gave_up = true;
            self.ended = now;
            // Nobody waits for what it will never do.
            if S::BOUNDED && !self.done && self.schedule.is_limited() {
                self.done = true;
                (self.job.done)(now);
            }
            return None;
        }
        self.start_due(now, backend);
        Some(self.deadline::<B>(now))
    }

    /// The second half of a turn: takes what came back, and says what time it is.
    // By itself, so that what the loop over the completions needs has all registers.
    #[inline(never)]
    fn end<B: Backend>(&mut self, backend: &mut B) -> Instant {
        // Before the completions are looked at: a worker that a call held up comes back after
        // the end that the others have agreed on, and so do its I/Os.
        if !self.stopping && (self.job.ends_early)() {
            self.stop(backend.now());
        }
        let before = self.free_count;
        // Like no I/O: one that was seen at the start of time has nothing to bring up to date.
        let (at, what, submitted) = (Instant(0), What::NOTHING, Instant(0));
        let mut back = Back { free: before, at, what, submitted, count: 0 };
        backend.reap(|completion| self.complete(completion, &mut back));
        self.record_back(&mut back);
        let free = back.free;
        self.free_count = free;
        if S::BOUNDED && !self.done && self.in_flight() == 0 && self.schedule.is_done() {
            self.tell_done();
        }
        // What came back has just been stamped, which is now for a closed loop. For an open one
        // the time that it took to look at it all would make the next I/O late.
        match free == before || S::OPEN {
            true => backend.now(),
            false => self.at,
        }
    }

    /// All that was asked for is done. The last worker to be done ends the run with its last I/O.
    #[cold]
    fn tell_done(&mut self) {
        self.done = true;
        (self.job.done)(self.at);
        if !self.stopping && (self.job.ends_early)() {
            self.stop(self.at + Span(1));
        }
    }

    /// Has the window end early, at the same instant for all workers, so that the rates of all are
    /// over the same time.
    #[cold]
    fn stop(&mut self, now: Instant) {
        self.stopping = true;
        // A slice has a length, and what was counted stays in the window.
        let earliest = self.at.max(self.tally.start + Span(1));
        let end = (self.job.agree_on_end)(now).max(earliest);
        self.end_window(end);
    }

    /// Ends the window there, unless it ends earlier anyway.
    fn end_window(&mut self, end: Instant) {
        self.timetable.window_end = self.timetable.window_end.min(end);
        self.slice_end = self.slice_end.min(self.timetable.window_end);
        self.boundary = self.boundary.min(self.timetable.window_end);
        if self.timetable.window_end <= self.at {
            self.excess = NEVER;
        }
    }

    /// Starts every I/O that is due while a slot is free.
    #[inline]
    fn start_due<B: Backend>(&mut self, now: Instant, backend: &mut B) {
        match self.flushing {
            None => self.start_batch(now, backend),
            Some(_) => self.start_between_flushes(now, backend),
        }
    }

    /// The same, as far as it may start before the next flush, and the flush when it is due.
    #[inline(never)]
    fn start_between_flushes<B: Backend>(&mut self, now: Instant, backend: &mut B) {
        loop {
            if self.gate == 0 {
                self.flush(now, backend);
            }
            let before = self.started;
            if self.gate > 0 {
                self.start_batch(now, backend);
            }
            let Some(flushing) = &mut self.flushing else { return };
            let count = (self.started - before) as usize;
            flushing.count(&self.requests[self.next - count..self.next]);
            self.gate = flushing.allows();
            if count == 0 {
                return;
            }
        }
    }

    /// Starts the flush that is due once the writes before it have completed, and lets other I/Os
    /// start again when they may.
    fn flush<B: Backend>(&mut self, now: Instant, backend: &mut B) {
        let Some(flushing) = &mut self.flushing else { return };
        flushing.look(&self.free[..self.free_count]);
        let busy = || self.slots.iter().zip(&flushing.busy).filter(|(_, busy)| **busy);
        match flushing.state {
            State::Counting => {}
            State::InFlight { slot } if flushing.busy[slot as usize] => {}
            State::InFlight { .. } => {
                flushing.state = State::Counting;
                // What fell due meanwhile had to wait for the target, not for us.
                self.full_until = self.full_until.max(now);
            }
            State::Due { region, since } => {
                let writes = |slot: &Slot| {
                    slot.request.upkeep().is_none() && slot.request.direction() == Direction::Write
                };
                if busy().any(|(slot, _)| writes(slot)) {
                    return;
                }
                let since = since.unwrap_or(self.at);
                flushing.state = State::Due { region, since: Some(since) };
                if self.free_count == 0 {
                    return;
                }
                let Flush { data_only, barrier, .. } = flushing.flush;
                let slot = self.free[self.free_count - 1];
                flushing.state = match barrier {
                    true => State::InFlight { slot },
                    false => State::Counting,
                };
                let target = self.job.plan.regions[region].target;
                backend.push_task(slot, target, Task::Flush { data_only });
                let submitted = backend.now();
                self.advance(submitted);
                self.free_count -= 1;
                self.started += 1;
                self.full_until = self.full_until.max(submitted);
                let request = Request::flush(target, region);
                self.slots[slot as usize] = Slot { intended: since, submitted, request };
                self.sink.starts(slot);
            }
        }
        self.gate = self.flushing.as_ref().map_or(usize::MAX, Flushing::allows);
    }

    /// Starts as many of the I/Os that are due as there are free slots, and as may start before it
    /// has to be looked for a flush.
    #[inline]
    fn start_batch<B: Backend>(&mut self, now: Instant, backend: &mut B) {
        let mut free = self.free_count;
        let batch = backend.batch();
        let least = free.saturating_sub(self.gate.min(batch));
        let mut not_before = Instant(0);
        if let Some(intended) = self.take_early::<B>(now) {
            free -= 1;
            self.dues[0] = intended;
            not_before = intended;
        }
        while free > least {
            let Some(intended) = self.schedule.take(now) else { break };
            if S::OPEN {
                self.dues[self.free_count - free] = intended;
            }
            free -= 1;
        }
        let count = self.free_count - free;
        self.more = count >= batch && free > 0;
        if count == 0 {
            return;
        }
        if self.requests.len() - self.next < count {
            self.draw(count);
        }
        let drawn = self.next..self.next + count;
        let (free, drawn) = match S::BOUNDED {
            true => {
                let count = self.schedule.grant(&self.requests[drawn.clone()]);
                (self.free_count - count, drawn.start..drawn.start + count)
            }
            false => (free, drawn),
        };
        self.next = drawn.end;
        if S::BOUNDED && drawn.is_empty() {
            return;
        }
        self.push(free, drawn.clone(), backend);
        if S::OPEN {
            while backend.now() < not_before {
                std::hint::spin_loop();
            }
        }
        // One stamp for the batch, after it was prepared and before the kernel sees it: the time in
        // the submitting call belongs to the service time.
        let submitted = backend.now();
        // Until then the batch was not in flight.
        self.advance(submitted);
        let batch = free..self.free_count;
        self.free_count = free;
        self.started += drawn.len() as u64;
        for (&slot, &request) in self.free[batch.clone()].iter().zip(&self.requests[drawn]) {
            self.sink.starts(slot);
            let slot = &mut self.slots[slot as usize];
            slot.request = request;
            slot.submitted = submitted;
        }
        if S::OPEN {
            self.note_dues(batch, submitted);
        }
        if S::BOUNDED && !self.drains && self.schedule.is_done() {
            self.drains = true;
            self.tally.note_last_start(self.at);
        }
    }

    /// Keeps when the I/Os in these free slots, which start now, were due.
    #[inline]
    fn note_dues(&mut self, batch: Range<usize>, submitted: Instant) {
        for (&slot, &intended) in self.free[batch].iter().zip(&self.dues) {
            self.slots[slot as usize].intended = intended;
            if let Some(late) = &mut self.tally.start_delay {
                let delay = submitted.since(intended).0;
                let whose = match self.full_until <= intended {
                    true => &mut late.generator,
                    false => &mut late.target,
                };
                whose.record(delay);
            }
        }
    }

    /// Takes the next I/O shortly before it is due, if nothing is in flight whose completion could
    /// be missed meanwhile: preparing it then does not make it late.
    #[inline]
    fn take_early<B: Backend>(&mut self, now: Instant) -> Option<Instant> {
        if !S::OPEN || B::PREPARES_EARLY == Span(0) || self.in_flight() > 0 {
            return None;
        }
        // What falls due at the end of the window or later is never started.
        let last = Instant(self.timetable.window_end.0 - 1);
        self.schedule.take((now + B::PREPARES_EARLY).min(last))
    }

    /// Draws as many requests as are started now, or else as many as there is room for.
    #[inline(never)]
    fn draw(&mut self, count: usize) {
        let first = self.requests.len() - self.ahead.max(count);
        let left = self.requests.len() - self.next;
        self.requests.copy_within(self.next.., first);
        self.source.draw(&mut self.requests[first + left..]);
        self.next = first;
    }

    /// Queues what was drawn in the free slots from this one on.
    #[inline]
    fn push(&mut self, free: usize, drawn: Range<usize>, backend: &mut impl Backend) {
        if self.job.plan.trims {
            return self.push_with_trims(free, drawn, backend);
        }
        let requests = &self.requests[drawn];
        let batch = || self.free[free..self.free_count].iter().zip(requests);
        if self.job.writes {
            for (&slot, request) in batch() {
                if request.direction() == Direction::Write {
                    backend.refresh(slot, request.length());
                }
            }
        }
        backend.push_all(batch().map(|(&slot, request)| {
            let (offset, length) = (request.offset, request.length());
            let (target, direction) = (request.target(), request.direction());
            Io { slot, target, direction, offset, length }
        }));
    }

    /// The same where some of it are trims.
    #[inline(never)]
    fn push_with_trims(&mut self, free: usize, drawn: Range<usize>, backend: &mut impl Backend) {
        let slots = &self.free[free..self.free_count];
        for (&slot, request) in slots.iter().zip(&self.requests[drawn]) {
            let (target, offset, length) = (request.target(), request.offset, request.length());
            if request.upkeep().is_some() {
                backend.push_task(slot, target, Task::Trim { offset, length });
                continue;
            }
            let direction = request.direction();
            if direction == Direction::Write {
                backend.refresh(slot, length);
            }
            backend.push(Io { slot, target, direction, offset, length });
        }
    }

    /// Until when to wait if nothing completes.
    fn deadline<B: Backend>(&self, now: Instant) -> Instant {
        if self.more {
            // What was queued is started, and what completed meanwhile taken, before the next batch.
            return now;
        }
        // A bucket ends when what comes after it does: nobody wakes up for it.
        let look = self.slice_end.min(now + STOP_CHECK);
        if self.free_count == 0 || self.gate == 0 {
            return look;
        }
        let due = self.schedule.next_due();
        match S::OPEN && self.in_flight() == 0 {
            true => look.min(Instant(due.0.saturating_sub(B::PREPARES_EARLY.0))),
            false => look.min(due),
        }
    }

    /// Moves on to a later stamp: closes the slices that ended by then. An earlier one changes
    /// nothing: helper threads stamp what they did before they queue up to hand it over, so that one
    /// may be overtaken by a later one, and belongs to where the time of this loop has come to.
    #[inline]
    fn advance(&mut self, to: Instant) {
        if to <= self.at {
            return;
        }
        if self.boundary <= to {
            return self.cross_boundary(to);
        }
        // The window is not over: its end is a boundary, too.
        self.tally.depth_ns += u128::from(self.in_flight()) * u128::from(to.0 - self.at.0);
        self.at = to;
    }

    /// Moves on to a stamp that ends a slice, a bucket or the window.
    #[cold]
    fn cross_boundary(&mut self, to: Instant) {
        self.roll_over(to);
        self.integrate_depth(to);
        if self.timetable.window_end <= to {
            self.excess = NEVER;
        }
    }

    /// How many I/Os are in flight.
    fn in_flight(&self) -> u64 {
        (self.slots.len() - self.free_count) as u64
    }

    /// Counts what was in flight from the last stamp to this one, but not after the window.
    fn integrate_depth(&mut self, to: Instant) {
        let passed = to.min(self.timetable.window_end).since(self.at).0;
        self.tally.depth_ns += u128::from(self.in_flight()) * u128::from(passed);
        self.at = self.at.max(to);
    }

    // A call for each I/O would cost more than what it does.
    #[inline(always)]
    fn complete(&mut self, completion: Completion, back: &mut Back) {
        let Completion { slot, result, at } = completion;
        if at != back.at {
            self.record_back(back);
            self.free_count = back.free;
            self.advance(at);
            back.at = at;
        }
        if S::OPEN && back.free == 0 {
            self.full_until = self.at;
        }
        self.free[back.free] = slot;
        back.free += 1;
        let phase = match (self.excess == NEVER, self.in_window) {
            (true, _) => TracePhase::After,
            (false, true) => TracePhase::Window,
            (false, false) => TracePhase::WarmUp,
        };
        self.follow(slot, Some((at, result)), phase);
        let place = &self.slots[slot as usize];
        let (what, submitted) = (place.request.what(), place.submitted);
        // The schedule did not give the flushes, and knows nothing of them.
        if S::RESTS && place.request.upkeep() != Some(Upkeep::Flush) {
            self.schedule.came_back(self.at);
        }
        if i64::from(result) != i64::from(what.length()) + self.excess {
            self.record_back(back);
            return self.put_aside(slot, result, at);
        }
        if S::OPEN
            && let Some(response_time) = &mut self.tally.flow_mut(what.flow()).response_time
        {
            response_time.record(at.since(place.intended).0);
        }
        if what != back.what || submitted != back.submitted {
            self.record_back(back);
            (back.what, back.submitted) = (what, submitted);
        }
        back.count += 1;
    }

    /// Records what came back so far and was alike.
    #[inline(always)]
    fn record_back(&mut self, back: &mut Back) {
        if back.count > 0 {
            self.record(back.what, back.submitted, back.at, std::mem::take(&mut back.count));
        }
    }

    /// Tells who follows the I/Os, if anybody does, that this one ended.
    #[inline(always)]
    fn follow(&mut self, slot: u32, completed: Option<(Instant, i32)>, phase: TracePhase) {
        let slots = &self.slots;
        self.sink.ends(slot, |number| {
            let Slot { intended, submitted, request } = slots[slot as usize];
            let intended = if S::OPEN { intended } else { submitted };
            Entry { number, request, intended, submitted, completed, phase, left_out: 0 }
        });
    }

    /// Records so many I/Os that were alike. Given as values, because what a call could change would be
    /// read and written anew for each I/O.
    #[inline(never)]
    fn record(&mut self, what: What, submitted: Instant, completed: Instant, count: u64) {
        self.completed += count;
        // One that seems to have ended before it began was stamped by another processor, whose clock
        // is behind by less than an I/O takes.
        let ns = completed.0.saturating_sub(submitted.0);
        let flow = self.tally.flow_mut(what.flow());
        flow.bytes.0 += u64::from(what.length()) * count;
        flow.service_time.record_many(ns, count);
    }

    /// An I/O came back that did not do what it should, or not in the window. Given as values, too.
    #[cold]
    fn put_aside(&mut self, slot: u32, result: i32, at: Instant) {
        let completion = Completion { slot, result, at };
        let whole = self.is_whole(completion);
        if whole && self.excess == 0 {
            return self.count_trim(completion);
        }
        if !whole {
            self.note_failure(slot, failure(result), self.at);
            if self.excess != NEVER {
                self.ledger.failed += 1;
                self.tally.failed += 1;
            }
        }
        if self.excess == NEVER {
            self.ledger.in_flight += 1;
        }
    }

    /// A trim came back. Of one that did all of it the kernel says 0, so that it comes here and not
    /// where reads and writes are counted.
    fn count_trim(&mut self, completion: Completion) {
        let Slot { intended, submitted, request } = self.slots[completion.slot as usize];
        let what = request.what();
        if let Some(response_time) = &mut self.tally.flow_mut(what.flow()).response_time {
            response_time.record(completion.at.since(intended).0);
        }
        self.record(what, submitted, completion.at, 1);
    }

    /// Whether all was moved that should be, or trimmed.
    fn is_whole(&self, completion: Completion) -> bool {
        let request = self.slots[completion.slot as usize].request;
        u32::try_from(completion.result) == Ok(request.length())
            || completion.result == 0 && request.upkeep() == Some(Upkeep::Trim)
    }

    /// Keeps an I/O that failed. Who calls it enters the I/O in the ledger.
    #[cold]
    fn note_failure(&mut self, slot: u32, kind: ErrorKind, at: Instant) {
        let request = self.slots[slot as usize].request;
        if self.failures_in_row == 0 || self.completed_before_failures != self.completed {
            self.failures_in_row = 0;
            self.completed_before_failures = self.completed;
            self.failing_since = at;
        }
        self.failures_in_row += 1;
        self.errors.add(IoError {
            target: request.target(),
            direction: request.direction(),
            upkeep: request.upkeep(),
            offset: Bytes(request.offset),
            length: Bytes(u64::from(request.length())),
            kind,
            at_ns: at.0.wrapping_sub(self.job.timetable.window_start.0) as i64,
        });
    }

    fn is_hopeless(&self, now: Instant) -> bool {
        self.failures_in_row >= GIVE_UP_FAILURES
            && self.completed_before_failures == self.completed
            && now.since(self.failing_since) >= GIVE_UP_AFTER
    }

    /// Closes every interval that ended by `at`. An interval in which nothing completed is handed
    /// over like any other: a stall has to show as intervals without I/Os.
    #[cold]
    fn roll_over(&mut self, at: Instant) {
        let table = self.timetable;
        while self.boundary <= at && self.tally.start < table.window_end {
            let boundary = self.boundary;
            self.integrate_depth(boundary);
            self.count_bucket(boundary);
            if boundary < self.slice_end {
                self.set_boundary(boundary);
                continue;
            }
            self.tally.end = boundary;
            let opens = boundary == table.window_start;
            if self.hand_over() {
                self.tally.start = boundary;
            } else if opens {
                // The warm-up is not recorded anyway, and must not leak into the window.
                self.tally.clear();
                self.tally.start = boundary;
            }
            if opens && let Some(buckets) = &mut self.buckets {
                buckets.begin_anew();
            }
            if opens {
                self.in_window = true;
                self.cpu_before = (self.job.cpu)();
                self.failures_in_row = 0;
                self.ledger.completed_in_warm_up = std::mem::take(&mut self.completed);
            }
            self.tally.in_window = self.in_window;
            self.set_boundary(boundary);
            if boundary == table.window_end {
                break;
            }
        }
    }

    /// Gives the sink the tally, if it can take it.
    fn hand_over(&mut self) -> bool {
        let end = self.tally.end;
        self.tally.lag = self.lag(end);
        self.tally.ledger = self.ledger_now(self.schedule.overdue(end));
        let taken = self.sink.hand_over(&mut self.tally);
        if taken && let Some(buckets) = &mut self.buckets {
            buckets.begin_anew();
        }
        taken
    }

    /// How long the oldest I/O that is due and not started has been due.
    fn lag(&self, at: Instant) -> Option<Span> {
        S::OPEN.then(|| Span(at.0.saturating_sub(self.schedule.next_due().0)))
    }

    /// The ledger if the window ended now with so many I/Os unstarted: what is in flight is then in
    /// flight at its end.
    fn ledger_now(&self, unstarted: u64) -> Ledger {
        let mut ledger = self.ledger;
        match self.in_window {
            true => ledger.completed = self.completed,
            false => ledger.completed_in_warm_up = self.completed,
        }
        ledger.in_flight += self.in_flight();
        ledger.unstarted = unstarted;
        ledger.due = self.started + unstarted;
        ledger
    }

    /// Closes the last interval.
    fn close(&mut self, now: Instant) -> Rest {
        if self.ended < self.timetable.window_end {
            self.integrate_depth(self.ended);
            self.tally.end = self.ended;
        }
        self.overdue = vec![true; self.slots.len()].into();
        self.free[..self.free_count].iter().for_each(|&slot| self.overdue[slot as usize] = false);
        let cool_down = self.timetable.cool_down;
        // Who has done all that was asked for has no load that could go on.
        let is_done = S::BOUNDED && self.schedule.is_done();
        let cools_until = match cool_down > Span(0) && !self.gave_up && !is_done {
            true => self.ended + cool_down,
            false => self.ended,
        };
        if self.ended < cools_until {
            self.begin_cool_down(cools_until);
        }
        Rest { cools_until, limit: now.max(cools_until) + PATIENCE, shortened: false }
    }

    /// Hands over all that is recorded, so that nothing of what follows gets into it.
    #[cold]
    fn begin_cool_down(&mut self, end: Instant) {
        self.hand_over_last();
        let lag = self.lag(self.ended);
        self.at_end = Some(AtEnd { started: self.started, lag, late: 0 });
        self.timetable.window_end = end;
        (self.boundary, self.slice_end) = (Instant(u64::MAX), Instant(u64::MAX));
        self.excess = NEVER;
    }

    /// The first half of a turn after the window: goes on with the load while it cools down, and then
    /// waits for what is in flight. Nothing once all came back, or when what did not is lost.
    fn go_on<B: Backend>(&mut self, rest: &mut Rest, backend: &mut B) -> Option<Instant> {
        let now = backend.now();
        match now < rest.cools_until && !(self.job.stopped)() {
            true => Some(self.cool_down(now, backend).min(rest.cools_until)),
            false => self.still_waits(rest, now),
        }
    }

    /// Starts what is due in the cool-down, and says until when to wait.
    #[inline(never)]
    fn cool_down<B: Backend>(&mut self, now: Instant, backend: &mut B) -> Instant {
        let before = self.free_count;
        self.start_due(now, backend);
        if S::OPEN
            && let Some(at_end) = &mut self.at_end
        {
            // What fell due in the window had not started when it ended.
            let started = self.free[self.free_count..before].iter();
            let late = started.map(|&slot| &self.slots[slot as usize]).filter(|slot| {
                slot.request.upkeep() != Some(Upkeep::Flush) && slot.intended < self.ended
            });
            at_end.late += late.count() as u64;
        }
        self.deadline::<B>(now)
    }

    /// Until when to wait for what is in flight after the load. Nothing once all came back, or when
    /// what did not is lost.
    fn still_waits(&self, rest: &mut Rest, now: Instant) -> Option<Instant> {
        if self.in_flight() == 0 {
            return None;
        }
        if !rest.shortened && (self.job.stopped)() {
            rest.shortened = true;
            rest.limit = rest.limit.min(now + PATIENCE_WHEN_STOPPED);
        }
        (now < rest.limit).then(|| rest.limit.min(now + STOP_CHECK))
    }

    /// Hands over the last slice, which must not be lost: the collector will take it soon.
    fn hand_over_last(&mut self) {
        self.count_bucket(self.ended);
        while self.tally.start < self.tally.end && !self.hand_over() {
            std::thread::yield_now();
        }
        self.tally.start = self.tally.end;
    }

    /// Balances the ledger and hands over the last slice.
    fn settle(&mut self) -> Outcome {
        self.count_lost();
        match self.in_window {
            true => self.ledger.completed = self.completed,
            false => self.ledger.completed_in_warm_up = self.completed,
        }
        let (started, lag, late) = match self.at_end {
            Some(AtEnd { started, lag, late }) => (started, lag, late),
            None => (self.started, self.lag(self.ended), 0),
        };
        let unstarted = late + self.schedule.untaken(self.ended);
        self.ledger.unstarted = unstarted;
        self.ledger.due = started + unstarted;
        assert!(self.ledger.balances(), "an I/O is not accounted for: {:?}", self.ledger);
        self.hand_over_last();
        Outcome {
            ledger: self.ledger,
            errors: std::mem::replace(&mut self.errors, Errors { first: Vec::new(), count: 0 }),
            cpu: None,
            gave_up: self.gave_up,
            ended: self.ended,
            waits: None,
            lag,
            buckets: self.buckets.take(),
            leaves_ios: self.in_flight() > 0,
        }
    }

    /// An I/O came back after the window. If it was in flight at its end it is accounted for, and in
    /// no distribution; if it started in the cool-down it is the trace's alone.
    fn come_back_late(&mut self, completion: Completion) {
        self.free[self.free_count] = completion.slot;
        self.free_count += 1;
        let was_in_flight = std::mem::take(&mut self.overdue[completion.slot as usize]);
        let phase = if was_in_flight { TracePhase::After } else { TracePhase::CoolDown };
        self.follow(completion.slot, Some((completion.at, completion.result)), phase);
        if was_in_flight {
            self.ledger.in_flight += 1;
            if !self.is_whole(completion) {
                self.note_failure(completion.slot, failure(completion.result), completion.at);
            }
        }
        let request = self.slots[completion.slot as usize].request;
        if S::RESTS && request.upkeep() != Some(Upkeep::Flush) {
            self.schedule.came_back(completion.at);
        }
    }

    fn count_lost(&mut self) {
        if self.in_flight() == 0 {
            return;
        }
        let mut is_out = vec![true; self.slots.len()];
        self.free[..self.free_count].iter().for_each(|&slot| is_out[slot as usize] = false);
        for slot in (0..self.slots.len()).filter(|&slot| is_out[slot]) {
            let was_in_flight = self.overdue[slot];
            let phase = if was_in_flight { TracePhase::After } else { TracePhase::CoolDown };
            self.follow(slot as u32, None, phase);
            if was_in_flight {
                // When it started tells how long it has been away.
                let submitted = self.slots[slot].submitted;
                self.note_failure(slot as u32, ErrorKind::Lost, submitted);
                self.ledger.lost += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use fathom_core::spec::{BlockSizes, Pacing, Region, Stream};

    use super::*;
    use crate::collector::empty_tally;
    use crate::pattern::{Random, Requests};
    use crate::schedule::{ClosedLoop, OpenLoop, Steady, Uniform};
    use fathom_core::Rate;

    const BLOCK_SIZE: u32 = 4096;

    /// Every I/O takes 100 us and gives the result that the test chose for its moment; without a
    /// result it never comes back.
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

    /// Keeps the tallies, and refuses those whose number the test chose.
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
        let backend =
            Fixed { now: Instant(0), in_flight: Vec::new(), completed: Vec::new(), result };
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
            pacing,
            seed: 1,
            stream_seed: 1,
            first_region: 0,
            flush: None,
            trims: false,
        };
        let job = Job {
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
        let stream = Stream { block_sizes, read_share: 0.5, ..Stream::reading("test", Vec::new()) };
        let mut source = Requests::new(&plan, &stream, Random::new(&plan, &stream));
        let tally = empty_tally(&plan);
        let outcome = match pacing {
            Pacing::Closed { .. } => {
                drive(&job, &mut backend, ClosedLoop, &mut source, &mut sink, tally)
            }
            Pacing::Open { offered_load, .. } => {
                let arrivals = Uniform::new(Steady::new(offered_load), 0.0);
                let schedule = OpenLoop::new(timetable.start, arrivals);
                drive(&job, &mut backend, schedule, &mut source, &mut sink, tally)
            }
        };
        (outcome, sink.kept)
    }

    const CLOSED: Pacing = Pacing::Closed { queue_depth: 4 };
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
        // 100 us divides the window, so four I/Os complete at its first and four at its last instant.
        assert_eq!(outcome.ledger.completed, 40_000);
        assert_eq!(outcome.ledger.in_flight, 4);
        assert_eq!(ios(&tallies, false), outcome.ledger.completed_in_warm_up);
    }

    /// Hands over what completed together as if each had been stamped before the one ahead of it, as
    /// helper threads do that overtake each other.
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
        let fixed = Fixed {
            now: Instant(0),
            in_flight: Vec::new(),
            completed: Vec::new(),
            result: |_| WHOLE,
        };
        let (outcome, tallies) = run_on(Overtaken(fixed), CLOSED, |_| false, &|| false, TABLE);
        assert_eq!(ios(&tallies, true), outcome.ledger.completed);
        assert_eq!(ios(&tallies, false), outcome.ledger.completed_in_warm_up);
        assert_eq!(outcome.ledger.in_flight, 4);
    }

    /// Takes two I/Os at once, and keeps how many were queued whenever it was waited.
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
        let fixed = Fixed {
            now: Instant(0),
            in_flight: Vec::new(),
            completed: Vec::new(),
            result: |_| WHOLE,
        };
        let backend = InPairs { backend: fixed, queued: 0, waits: &waits };
        let (outcome, tallies) = run_on(backend, CLOSED, |_| false, &|| false, TABLE);
        // As many as with batches of any size, in two batches for each four.
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
                // In the loop it looks each 50 ms or more often; the wait begins after that.
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
        for (ms, each, last) in
            [(70, 2800, 800), (3, 120, 40), (100, 4000, 4000), (1500, 0, 40_000)]
        {
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
        let open = Pacing::Open {
            offered_load: Rate(1000.0),
            arrivals: fathom_core::spec::Arrivals::Uniform,
            queue_depth_max: 4,
            realtime: false,
        };
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
}
