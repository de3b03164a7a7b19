//! The inputs of a worker, and the receiver of its tallies.

use std::sync::Arc;

use fathom_core::Instant;
use fathom_core::measure::Tally;
use fathom_core::plan::WorkerPlan;

use super::estate::Estate;
use crate::host::ThreadTime;
use crate::timetable::Timetable;
use crate::trace::TraceEntry;

/// The inputs of a worker besides its backend, schedule and pattern.
pub(crate) struct Assignment<'a> {
    pub(crate) plan: &'a WorkerPlan,
    /// Whether there will be writes.
    pub(crate) writes: bool,
    pub(crate) timetable: Timetable,
    /// The CPU time of this thread, if it has a meaning.
    pub(crate) cpu: fn() -> Option<ThreadTime>,
    /// Whether the window is to end before its time, because the user asked to stop or the observer
    /// has seen enough.
    pub(crate) ends_early: &'a dyn Fn() -> bool,
    /// Whether the user asked to stop.
    pub(crate) stopped: &'a dyn Fn() -> bool,
    /// The common end of all workers if the window is to end before its time, given the present
    /// time. Asked once.
    pub(crate) agree_on_end: &'a dyn Fn(Instant) -> Instant,
    /// Called once, by a worker that may be done before its time, when its last I/O came back.
    pub(crate) done: &'a dyn Fn(Instant),
}

/// Takes the tally of an interval, and returns an empty tally of the same shape.
pub(crate) trait Sink {
    /// Whether there is a follower of the single I/Os.
    const FOLLOWS: bool = false;

    /// Hands the tally over. If the sink cannot take it now, the tally stays and goes on counting,
    /// so that the next interval's slice is longer and nothing is lost.
    fn hand_over(&mut self, tally: &mut Box<Tally>) -> bool;

    /// An I/O of this slot starts. For a follower of single I/Os; it costs nothing without one.
    #[inline(always)]
    fn starts(&mut self, _slot: u32) {}

    /// It ended: `entry` makes its data from its number.
    #[inline(always)]
    fn ends(&mut self, _slot: u32, _entry: impl FnOnce(u64) -> TraceEntry) {}

    /// The place where other threads can claim the worker's state while it waits; none if no thread
    /// could claim it.
    fn estate(&self) -> Option<Arc<Estate>> {
        None
    }

    /// No more tallies will come.
    fn finish(&mut self) {}
}
