//! A worker whose turns somebody else gives it, who waits for several workers at once in one virtual
//! time.

use fathom_core::Instant;
use fathom_core::measure::Tally;

use super::{Assignment, Loop, Outcome, Sink};
use crate::backend::Backend;
use crate::pattern::Source;
use crate::schedule::Schedule;

/// Takes its turns in halves, between which its caller waits.
pub(crate) trait InTurns<B> {
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
pub(crate) struct Stepper<'a, S, K> {
    state: Loop<'a, S, K>,
    /// When its last turn ended.
    now: Instant,
}

impl<'a, S: Schedule, K: Sink> Stepper<'a, S, K> {
    /// A worker that has had no turn yet. Its first one is at the start of its timetable.
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
        // With a free slot, an open loop waits for the next arrival and for nothing else.
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
