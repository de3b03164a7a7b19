//! A worker whose iterations run under a caller, which waits for several workers at once in one
//! virtual time.

use fathom_core::Instant;
use fathom_core::measure::Tally;

use super::{Assignment, Loop, Outcome, Sink};
use crate::backend::Backend;
use crate::pattern::Source;
use crate::schedule::Schedule;

/// Runs its iterations in halves, between which its caller waits.
pub(crate) trait InTurns<B> {
    /// The first half of an iteration: starts the I/Os that are due, and says until when to wait
    /// for those in flight. None when the worker is done.
    fn begin(&mut self, backend: &mut B) -> Option<Instant>;

    /// The second half: takes the completions.
    fn end(&mut self, backend: &mut B);

    /// Whether completions before the deadline may be taken at the deadline: they start nothing,
    /// and have their own stamps.
    fn is_patient(&self) -> bool;

    /// Closes the intervals that ended by now, before the completions of now are taken.
    fn catch_up(&mut self, now: Instant);

    /// Ends the window there, which is now, unless it ended before.
    fn end_window(&mut self, end: Instant);

    /// Its results, once it is done.
    fn outcome(self: Box<Self>) -> Outcome;
}

/// A worker between its iterations.
pub(crate) struct Stepper<'a, S, K> {
    state: Loop<'a, S, K>,
    /// When its last iteration ended.
    now: Instant,
}

impl<'a, S: Schedule, K: Sink> Stepper<'a, S, K> {
    /// A worker before its first iteration, which is at the start of its timetable.
    pub(crate) fn new(
        job: &'a Assignment<'a>,
        schedule: S,
        source: &'a mut dyn Source,
        sink: &'a mut K,
        tally: Box<Tally>,
    ) -> Self {
        let state = Loop::new(job, schedule, source, sink, tally);
        Self { state, now: job.timetable.start }
    }
}

impl<B: Backend, S: Schedule, K: Sink> InTurns<B> for Stepper<'_, S, K> {
    fn begin(&mut self, backend: &mut B) -> Option<Instant> {
        if !self.state.is_after()
            && let Some(deadline) = self.state.begin(self.now, backend)
        {
            return Some(deadline);
        }
        self.state.go_on(backend)
    }

    fn end(&mut self, backend: &mut B) {
        match self.state.is_after() {
            false => self.now = self.state.end(backend),
            true => backend.reap(|completion| self.state.come_back_late(completion)),
        }
    }

    fn is_patient(&self) -> bool {
        // With a free slot, an open loop waits only for the next arrival.
        let waits_for_arrivals = S::OPEN && !S::BOUNDED && !S::RESTS;
        waits_for_arrivals && self.state.is_free() && !self.state.is_after()
    }

    fn catch_up(&mut self, now: Instant) {
        if !self.state.is_after() {
            self.state.catch_up(now);
        }
    }

    fn end_window(&mut self, end: Instant) {
        if !self.state.is_after() {
            self.state.end_window(end);
        }
    }

    fn outcome(mut self: Box<Self>) -> Outcome {
        self.state.settle()
    }
}
