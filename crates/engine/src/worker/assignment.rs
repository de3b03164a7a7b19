//! What a worker is given, and whom it hands over to.

use std::sync::Arc;

use fathom_core::Instant;
use fathom_core::measure::Tally;
use fathom_core::plan::WorkerPlan;

use super::estate::Estate;
use crate::host::ThreadTime;
use crate::timetable::Timetable;
use crate::trace::TraceEntry;

/// What a worker needs besides its backend, schedule and pattern.
pub(crate) struct Assignment<'a> {
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
    fn ends(&mut self, _slot: u32, _entry: impl FnOnce(u64) -> TraceEntry) {}

    /// Where the worker's state is for others while it waits; none where nobody could claim it.
    fn estate(&self) -> Option<Arc<Estate>> {
        None
    }

    /// Nothing comes any more.
    fn finish(&mut self) {}
}
