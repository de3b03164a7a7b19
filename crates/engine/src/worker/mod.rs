//! The hot loop: starts the I/Os that are due, stamps them, waits, and records completions.
//!
//! Generic over the backend and the schedule, so that it makes no choices; a [`Source`] draws the
//! requests for a whole batch. Between the start and the end of the window it does not allocate,
//! lock, log or format; a test with a counting allocator proves it. The loop knows no wall clock:
//! the backend owns the time.
//!
//! It is made of parts, each of which owns its state and knows only the parts below it:
//!
//! - [`slots`]: the I/Os in flight, and the free slots
//! - [`starter`]: the next I/Os of the schedule ([`drawn`] ahead), and the time for a flush
//!   ([`flushing`])
//! - [`slices`]: the time that the loop has reached, and the tally of its slice, with the
//!   [`buckets`] beside it
//! - [`accounts`]: the ledger and the errors
//! - [`after`]: the state that a worker keeps and the I/Os that it waits for once its window is
//!   over
//! - [`estate`]: how other threads reach all of it while the worker is in a call that does not
//!   return
//!
//! The code here brings them together: an iteration of the loop. It has two halves, with the wait
//! between them: the first ([`Loop::begin`]) starts the I/Os that are due and says until when to
//! wait, the second ([`Loop::end`]) takes the completions. [`drive`] runs the iterations of one
//! worker on its own thread; a [`Stepper`] leaves this to a caller with several workers in one
//! virtual time.
//!
//! When the window is over, a worker that is to cool down continues the same load for a while, in
//! iterations of another kind that record nothing ([`Loop::go_on`], [`Loop::come_back_late`]): so
//! those of the window need not know of it.
//!
//! Work that can be done once for all I/Os of a batch of completions is not done for each: time
//! moves on, slices are closed and the depth is integrated when a new stamp comes, not for each
//! I/O.

mod accounts;
mod after;
mod assignment;
mod buckets;
mod drawn;
mod estate;
mod flushing;
mod outcome;
mod slices;
mod slots;
mod starter;
mod stepper;
#[cfg(test)]
mod tests;

use fathom_core::measure::{ErrorKind, Tally, Upkeep};
use fathom_core::{Instant, Span};

use crate::backend::{Backend, Completion, failure};
use crate::host::ThreadTime;
use crate::pattern::{Request, Source, What};
use crate::schedule::Schedule;
use crate::trace::{TraceEntry, TracePhase};
use accounts::Accounts;
use after::{After, End};
pub(crate) use assignment::{Assignment, Sink};

pub(crate) use estate::{Claimed, Estate, Leaves, claim, for_any_thread};
use flushing::Next;
pub(crate) use outcome::Outcome;
use slices::{Begins, Slices};
use slots::{Slots, Started};
use starter::Starter;
pub(crate) use stepper::{InTurns, Stepper};

/// The time between two checks of an idle loop for a request to stop.
pub(crate) const STOP_CHECK: Span = Span::from_ms(50);
/// How long to wait for I/Os that are in flight at the end.
pub(crate) const PATIENCE: Span = Span::from_secs(30);
/// The same after the user asked to stop.
pub(crate) const PATIENCE_WHEN_STOPPED: Span = Span::from_secs(3);

/// The state of the loop.
struct Loop<'a, S, K> {
    job: &'a Assignment<'a>,
    sink: &'a mut K,
    slots: Slots,
    starter: Starter<'a, S>,
    slices: Slices,
    accounts: Accounts,
    /// The CPU time of the thread when the window began.
    cpu_before: Option<ThreadTime>,
    /// Whether all workers have agreed on an earlier end.
    is_ending: bool,
    /// None until the window is over.
    after: Option<After>,
}

/// The results of one check of the completions so far. It exists for that check only, so that it
/// can stay in registers.
///
/// I/Os of one flow that started at one stamp and came back at one stamp, as do all that one system
/// call started and that had completed by the time it returned, took the same time: one entry in
/// the histogram counts them all.
struct Back {
    /// The slots that are free.
    free: usize,
    /// The time at which the latest completions came back.
    at: Instant,
    /// The other properties that these completions have in common.
    what: What,
    submitted: Instant,
    /// The number of these completions that are not yet recorded.
    count: u64,
}

/// Runs a worker from the start to the end of its timetable and waits for the I/Os in flight.
pub(crate) fn drive<B: Backend, S: Schedule, K: Sink>(
    job: &Assignment<'_>,
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
    while let Some(deadline) = state.go_on(backend) {
        state.wait(estate.as_deref(), || backend.wait(deadline));
        backend.reap(|completion| state.come_back_late(completion));
    }
    state.settle()
}

/// The work that the worker cannot do itself, because it is in a call that does not return.
impl<S: Schedule, K: Sink> Leaves for Loop<'_, S, K> {
    fn leave(&mut self, end: Option<Instant>) -> Outcome {
        if !self.is_after() {
            if let Some(end) = end {
                self.end_window(end.max(self.slices.earliest_end()));
            }
            let ended = self.slices.window_end();
            self.roll_over(ended);
            self.close(ended, ended, false);
        }
        let outcome = self.settle();
        self.sink.finish();
        // The CPU time of this thread is not that of the worker.
        Outcome { cpu: None, ..outcome }
    }
}

impl<'a, S: Schedule, K: Sink> Loop<'a, S, K> {
    fn new(
        job: &'a Assignment<'a>,
        schedule: S,
        source: &'a mut dyn Source,
        sink: &'a mut K,
        tally: Box<Tally>,
    ) -> Self {
        let slices = Slices::new(job.timetable, tally);
        let in_window = slices.phase() == TracePhase::Window;
        Self {
            job,
            sink,
            slots: Slots::new(job.plan.pace.queue_depth()),
            starter: Starter::new(job, schedule, source),
            slices,
            accounts: Accounts::new(job.timetable.window_start, in_window),
            cpu_before: None,
            is_ending: false,
            after: None,
        }
    }

    /// Waits, and lends the state meanwhile.
    #[inline(always)]
    fn wait(&mut self, estate: Option<&Estate>, wait: impl FnOnce()) {
        match estate {
            None => wait(),
            Some(estate) => estate.lend(self, wait),
        }
    }

    /// The start has come, on the thread of the worker.
    fn set_off(&mut self) {
        self.cpu_before = (self.job.cpu)();
    }

    /// Whether the window is over and closed.
    fn is_after(&self) -> bool {
        self.after.is_some()
    }

    /// Whether the next I/Os start as soon as they are due.
    fn is_free(&self) -> bool {
        self.slots.free() > 0 && !self.starter.flushes()
    }

    /// The first half of an iteration: closes the intervals that ended by now, starts the I/Os that
    /// are due, and says until when to wait if none completes. None once the window is over.
    #[inline(always)]
    fn begin<B: Backend>(&mut self, now: Instant, backend: &mut B) -> Option<Instant> {
        self.catch_up(now);
        let window_end = self.slices.window_end();
        if window_end <= now {
            self.close(window_end, now, false);
            return None;
        }
        // Not at the very start of a slice: one without a length could not be handed over, and
        // completions at this instant would be in the ledger alone.
        if self.accounts.is_hopeless(now) && self.slices.tally.start < now {
            self.close(now, now, true);
            return None;
        }
        self.start_due(now, backend);
        Some(self.starter.deadline::<B>(now, &self.slots, self.slices.slice_end()))
    }

    /// The second half of an iteration: takes the completions, and returns the time.
    // A separate function, so that the loop over the completions has all registers.
    #[inline(never)]
    fn end<B: Backend>(&mut self, backend: &mut B) -> Instant {
        // Before the completions are taken: a worker that a call delayed comes back after the end
        // that the others have agreed on, and so do its I/Os.
        if !self.is_ending && (self.job.ends_early)() {
            self.stop(backend.now());
        }
        let before = self.slots.free();
        // The same as without I/Os: there is nothing to update at the start of time.
        let (at, what, submitted) = (Instant(0), What::NOTHING, Instant(0));
        let mut back = Back { free: before, at, what, submitted, count: 0 };
        backend.reap(|completion| self.complete(completion, &mut back));
        self.record_back(&mut back);
        let free = back.free;
        self.slots.set_free(free);
        if self.starter.becomes_done(self.slots.in_flight()) {
            self.tell_done();
        }
        // The completions have just been stamped, and that stamp is the present time for a closed
        // loop. For an open one the time to handle them all would make the next I/O late.
        match free == before || S::OPEN {
            true => backend.now(),
            false => self.slices.at(),
        }
    }

    /// All requested I/Os are done. The last worker to be done ends the run with its last I/O.
    #[cold]
    fn tell_done(&mut self) {
        (self.job.done)(self.slices.at());
        if !self.is_ending && (self.job.ends_early)() {
            self.stop(self.slices.at() + Span(1));
        }
    }

    /// Ends the window early, at the same instant for all workers, so that the rates of all are
    /// over the same time.
    #[cold]
    fn stop(&mut self, now: Instant) {
        self.is_ending = true;
        let earliest = self.slices.earliest_end();
        self.end_window((self.job.agree_on_end)(now).max(earliest));
    }

    /// Ends the window there, unless it ends earlier anyway.
    fn end_window(&mut self, end: Instant) {
        self.slices.end_window(end);
    }

    /// Starts every I/O that is due while a slot is free.
    #[inline]
    fn start_due<B: Backend>(&mut self, now: Instant, backend: &mut B) {
        match self.starter.flushes() {
            false => _ = self.start_batch(now, backend),
            true => self.start_between_flushes(now, backend),
        }
    }

    /// The same, as far as it may start before the next flush, and the flush when it is due.
    #[inline(never)]
    fn start_between_flushes<B: Backend>(&mut self, now: Instant, backend: &mut B) {
        loop {
            if self.starter.is_shut() {
                self.start_flush(now, backend);
            }
            if self.starter.is_shut() {
                return;
            }
            let count = self.start_batch(now, backend);
            self.starter.count_for_flush(count);
            if count == 0 {
                return;
            }
        }
    }

    /// Starts the flush that is due once the writes before it have completed, and lets other I/Os
    /// start again when they may.
    fn start_flush<B: Backend>(&mut self, now: Instant, backend: &mut B) {
        let next = self.starter.next_flush(now, &self.slots, self.slices.at());
        let Next::Flush { region, since } = next else { return };
        let (slot, target) = (self.slots.next(1)[0], self.job.plan.regions[region].target);
        self.starter.queue_flush(slot, target, backend);
        let submitted = backend.now();
        self.advance(submitted);
        self.accounts.started += 1;
        self.starter.note_full(submitted);
        self.slots.start(&[Request::flush(target, region)], submitted, |slot| {
            self.sink.starts(slot);
        });
        self.slots.note_intended(&[since]);
    }

    /// Starts as many of the I/Os that are due as there are free slots, and as may start before the
    /// next check for a flush. Returns how many.
    #[inline]
    fn start_batch<B: Backend>(&mut self, now: Instant, backend: &mut B) -> usize {
        let (most, window_end) = (backend.batch(), self.slices.window_end());
        let batch = self.starter.take_due::<B>(now, &self.slots, window_end, most);
        let count = batch.count;
        if count == 0 {
            return 0;
        }
        self.starter.queue(count, &self.slots, backend);
        if S::OPEN {
            while backend.now() < batch.not_before {
                std::hint::spin_loop();
            }
        }
        // One stamp for the batch, after it was prepared and before the kernel sees it: the time in
        // the submitting call belongs to the service time.
        let submitted = backend.now();
        // Until then the batch was not in flight.
        self.advance(submitted);
        self.accounts.started += count as u64;
        self.slots.start(self.starter.taken(count), submitted, |slot| self.sink.starts(slot));
        if S::OPEN {
            self.slots.note_intended(self.starter.dues(count));
            if let Some(late) = &mut self.slices.tally.start_delay {
                self.starter.note_delays(count, submitted, late);
            }
        }
        if self.starter.begins_to_drain() {
            self.slices.tally.note_last_start(self.slices.at());
        }
        count
    }

    /// Moves on to a later stamp: closes the slices that ended by then. An earlier one changes
    /// nothing: helper threads stamp their results before they queue up to hand them over, so that
    /// a later one may overtake an earlier one, which then belongs to the time that this loop has
    /// reached.
    #[inline]
    fn advance(&mut self, to: Instant) {
        if to <= self.slices.at() {
            return;
        }
        if self.slices.ends_by(to) {
            return self.cross_boundary(to);
        }
        self.slices.move_on(to, self.slots.in_flight());
    }

    /// Moves on to a stamp that ends a slice, a bucket or the window.
    #[cold]
    fn cross_boundary(&mut self, to: Instant) {
        self.roll_over(to);
        self.slices.move_beyond(to, self.slots.in_flight());
    }

    // A call for each I/O would cost more than its work.
    #[inline(always)]
    fn complete(&mut self, completion: Completion, back: &mut Back) {
        let Completion { slot, result, at } = completion;
        if at != back.at {
            self.record_back(back);
            self.slots.set_free(back.free);
            self.advance(at);
            back.at = at;
        }
        if S::OPEN && back.free == 0 {
            self.starter.note_full(self.slices.at());
        }
        self.slots.put_back(back.free, slot);
        back.free += 1;
        self.follow(slot, Some((at, result)), self.slices.phase());
        let &Started { intended, submitted, request } = self.slots.get(slot);
        let what = request.what();
        self.starter.come_back(request, self.slices.at());
        if i64::from(result) != i64::from(what.length()) || self.slices.is_over() {
            self.record_back(back);
            return self.put_aside(slot, result, at);
        }
        if S::OPEN
            && let Some(response_time) = &mut self.slices.tally.flow_mut(what.flow()).response_time
        {
            response_time.record(at.since(intended).0);
        }
        if what != back.what || submitted != back.submitted {
            self.record_back(back);
            (back.what, back.submitted) = (what, submitted);
        }
        back.count += 1;
    }

    /// Records the completions so far that were alike.
    #[inline(always)]
    fn record_back(&mut self, back: &mut Back) {
        if back.count > 0 {
            self.record(back.what, back.submitted, back.at, std::mem::take(&mut back.count));
        }
    }

    /// Tells the follower of the I/Os, if there is one, that this one ended.
    #[inline(always)]
    fn follow(&mut self, slot: u32, completed: Option<(Instant, i32)>, phase: TracePhase) {
        let slots = &self.slots;
        self.sink.ends(slot, |number| {
            let Started { intended, submitted, request } = *slots.get(slot);
            let intended = if S::OPEN { intended } else { submitted };
            TraceEntry { number, request, intended, submitted, completed, phase, left_out: 0 }
        });
    }

    /// Records this many I/Os that were alike. Given as values, because fields that a call could
    /// change would be read and written anew for each I/O.
    #[inline(never)]
    fn record(&mut self, what: What, submitted: Instant, completed: Instant, count: u64) {
        self.accounts.complete(count);
        // One that seems to have ended before it began was stamped by another processor, whose clock
        // is behind by less than an I/O takes.
        let ns = completed.0.saturating_sub(submitted.0);
        let flow = self.slices.tally.flow_mut(what.flow());
        flow.bytes.0 += u64::from(what.length()) * count;
        flow.service_time.record_many(ns, count);
    }

    /// An I/O came back that failed, or not in the window. Given as values, too.
    #[cold]
    fn put_aside(&mut self, slot: u32, result: i32, at: Instant) {
        let started = *self.slots.get(slot);
        let (whole, is_over) = (is_whole(started.request, result), self.slices.is_over());
        if whole && !is_over {
            return self.count_trim(started, at);
        }
        if !whole {
            self.accounts.note_failure(started.request, failure(result), self.slices.at());
            if !is_over {
                self.accounts.fail();
                self.slices.tally.failed += 1;
            }
        }
        if is_over {
            self.accounts.come_back_late();
        }
    }

    /// A trim came back. The kernel returns 0 for a complete one, so that it comes here and not
    /// where reads and writes are counted.
    fn count_trim(&mut self, trim: Started, at: Instant) {
        let Started { intended, submitted, request } = trim;
        let what = request.what();
        if let Some(response_time) = &mut self.slices.tally.flow_mut(what.flow()).response_time {
            response_time.record(at.since(intended).0);
        }
        self.record(what, submitted, at, 1);
    }

    /// Closes the slices and buckets that ended by now, if any did.
    #[inline(always)]
    fn catch_up(&mut self, now: Instant) {
        if self.slices.ends_by(now) {
            self.roll_over(now);
        }
    }

    /// Closes every interval that ended by `at`. An interval without completions is handed over
    /// like any other: a stall has to show as intervals without I/Os.
    #[cold]
    fn roll_over(&mut self, at: Instant) {
        while self.slices.close_next(at, self.slots.in_flight()) {
            let is_handed_over = self.hand_over();
            match self.slices.begin_next(is_handed_over) {
                Begins::Slice => {}
                Begins::Window => {
                    self.cpu_before = (self.job.cpu)();
                    self.accounts.begin_window();
                }
                Begins::Nothing => break,
            }
        }
    }

    /// Gives the sink the tally, if it can take it.
    fn hand_over(&mut self) -> bool {
        let end = self.slices.tally.end;
        self.slices.tally.lag = self.starter.lag(end);
        let unstarted = self.starter.overdue(end);
        self.slices.tally.ledger = self.accounts.now(self.slots.in_flight(), unstarted);
        let taken = self.sink.hand_over(&mut self.slices.tally);
        if taken {
            self.slices.empty_buckets();
        }
        taken
    }

    /// Hands over the last slice, which must not be lost: the collector will take it soon.
    fn hand_over_last(&mut self, end: Instant) {
        self.slices.count_bucket(end);
        while self.slices.tally.start < self.slices.tally.end && !self.hand_over() {
            std::thread::yield_now();
        }
        self.slices.tally.start = self.slices.tally.end;
    }

    /// The window ended, as was seen `now`, by its time or because the worker gave up: closes the
    /// last interval.
    #[cold]
    fn close(&mut self, ended: Instant, now: Instant, gave_up: bool) {
        let cpu = (self.job.cpu)().zip(self.cpu_before).map(|(now, before)| now.since(before));
        if gave_up && self.starter.give_up() {
            // No worker waits for the I/Os that it will never do.
            (self.job.done)(now);
        }
        if ended < self.slices.window_end() {
            self.slices.cut_off(ended, self.slots.in_flight());
        }
        // A worker that has done all requested I/Os has no load that could go on.
        let cool_down = match gave_up || self.starter.is_exhausted() {
            true => Span(0),
            false => self.job.timetable.cool_down,
        };
        let (started, lag) = (self.accounts.started, self.starter.lag(ended));
        let end = End { at: ended, gave_up, cpu, cool_down, started, lag };
        let after = After::new(end, &self.slots, now);
        if cool_down > Span(0) {
            // So that no later I/O gets into the record.
            self.hand_over_last(ended);
            self.slices.cool_down(after.cools_until);
        }
        self.after = Some(after);
    }

    /// The first half of an iteration after the window: continues the load while it cools down, and
    /// then waits for the I/Os in flight. None once all came back, or when the rest is lost.
    fn go_on<B: Backend>(&mut self, backend: &mut B) -> Option<Instant> {
        let now = backend.now();
        let after = self.after.as_mut()?;
        let cools_until = after.cools_until;
        match now < cools_until && !(self.job.stopped)() {
            true => Some(self.cool_down(now, backend).min(cools_until)),
            false => after.deadline(now, self.slots.in_flight(), self.job.stopped),
        }
    }

    /// Starts the I/Os that are due in the cool-down, and says until when to wait.
    #[inline(never)]
    fn cool_down<B: Backend>(&mut self, now: Instant, backend: &mut B) -> Instant {
        let before = self.slots.free();
        self.start_due(now, backend);
        if S::OPEN
            && let Some(after) = &mut self.after
        {
            after.count_late(before - self.slots.free(), &self.slots);
        }
        self.starter.deadline::<B>(now, &self.slots, self.slices.slice_end())
    }

    /// An I/O came back after the window. If it was in flight at the window's end it is accounted
    /// for, and in no distribution; if it started in the cool-down it is only in the trace.
    fn come_back_late(&mut self, completion: Completion) {
        let Completion { slot, result, at } = completion;
        self.slots.free_one(slot);
        let request = self.slots.get(slot).request;
        let was_in_flight = self.after.as_mut().is_some_and(|after| after.come_back(slot));
        self.follow(slot, Some((at, result)), late_phase(was_in_flight));
        if was_in_flight {
            self.accounts.come_back_late();
            if !is_whole(request, result) {
                self.accounts.note_failure(request, failure(result), at);
            }
        }
        self.starter.come_back(request, at);
    }

    /// Counts I/Os that never came back as lost.
    fn count_lost(&mut self, after: &mut After) {
        if self.slots.in_flight() == 0 {
            return;
        }
        for slot in (0..).zip(self.slots.busy()).filter_map(|(slot, busy)| busy.then_some(slot)) {
            let was_in_flight = after.come_back(slot);
            self.follow(slot, None, late_phase(was_in_flight));
            if was_in_flight {
                // The time of its start shows how long it has been away.
                let Started { submitted, request, .. } = *self.slots.get(slot);
                self.accounts.note_failure(request, ErrorKind::Lost, submitted);
                self.accounts.lose();
            }
        }
    }

    /// Balances the ledger and hands over the last slice.
    fn settle(&mut self) -> Outcome {
        let mut after = self.after.take().expect("a worker settles once, after its window");
        self.count_lost(&mut after);
        let After { ended, gave_up, cpu, started, lag, late, .. } = after;
        let unstarted = late + self.starter.unstarted(ended);
        let (ledger, errors) = self.accounts.settle(started, unstarted);
        self.hand_over_last(ended);
        Outcome {
            ledger,
            errors,
            cpu,
            gave_up,
            ended,
            waits: None,
            lag,
            buckets: self.slices.take_buckets(),
            leaves_ios: self.slots.in_flight() > 0,
        }
    }
}

/// Whether all bytes moved, or were trimmed.
fn is_whole(request: Request, result: i32) -> bool {
    u32::try_from(result) == Ok(request.length())
        || result == 0 && request.upkeep() == Some(Upkeep::Trim)
}

/// The phase of an I/O that ended after the window.
fn late_phase(was_in_flight: bool) -> TracePhase {
    match was_in_flight {
        true => TracePhase::After,
        false => TracePhase::CoolDown,
    }
}
