//! A schedule of which the loop knows only whether it is open.
//!
//! The loop is compiled anew for each type of schedule, for each backend, and with and without a
//! follower of the I/Os: two hundred times, if every schedule had its own loops. So only those have
//! their own whose cost is compared with other tools'. The others share two loops, at the cost of a
//! call for each I/O.

use fathom_core::Instant;

use super::Schedule;
use crate::pattern::Request;

/// Any schedule, open or not. It receives every call that some schedule needs: schedules that do
/// not need a call ignore it.
pub(crate) struct Any<const OPEN: bool>(Box<dyn AsSchedule>);

impl<const OPEN: bool> Any<OPEN> {
    /// The same schedule.
    pub(super) fn new<S: Schedule + 'static>(schedule: S) -> Self {
        assert!(S::OPEN == OPEN);
        Self(Box::new(schedule))
    }
}

/// The behavior of a schedule, without the properties that are known when the loop is compiled.
trait AsSchedule: Send {
    fn take(&mut self, now: Instant) -> Option<Instant>;
    fn next_due(&self) -> Instant;
    fn untaken(&mut self, end: Instant) -> u64;
    fn overdue(&self, at: Instant) -> u64;
    fn came_back(&mut self, at: Instant);
    fn grant(&mut self, requests: &[Request]) -> usize;
    fn is_limited(&self) -> bool;
    fn is_done(&self) -> bool;
}

impl<S: Schedule> AsSchedule for S {
    fn take(&mut self, now: Instant) -> Option<Instant> {
        Schedule::take(self, now)
    }

    fn next_due(&self) -> Instant {
        Schedule::next_due(self)
    }

    fn untaken(&mut self, end: Instant) -> u64 {
        Schedule::untaken(self, end)
    }

    fn overdue(&self, at: Instant) -> u64 {
        Schedule::overdue(self, at)
    }

    fn came_back(&mut self, at: Instant) {
        Schedule::came_back(self, at);
    }

    fn grant(&mut self, requests: &[Request]) -> usize {
        Schedule::grant(self, requests)
    }

    fn is_limited(&self) -> bool {
        Schedule::is_limited(self)
    }

    fn is_done(&self) -> bool {
        Schedule::is_done(self)
    }
}

impl<const OPEN: bool> Schedule for Any<OPEN> {
    const OPEN: bool = OPEN;
    // The I/Os that are due in an open loop do not depend on completions.
    const RESTS: bool = !OPEN;
    const BOUNDED: bool = true;

    #[inline]
    fn take(&mut self, now: Instant) -> Option<Instant> {
        self.0.take(now)
    }

    #[inline]
    fn next_due(&self) -> Instant {
        self.0.next_due()
    }

    fn untaken(&mut self, end: Instant) -> u64 {
        self.0.untaken(end)
    }

    fn overdue(&self, at: Instant) -> u64 {
        self.0.overdue(at)
    }

    #[inline]
    fn came_back(&mut self, at: Instant) {
        self.0.came_back(at);
    }

    #[inline]
    fn grant(&mut self, requests: &[Request]) -> usize {
        self.0.grant(requests)
    }

    fn is_limited(&self) -> bool {
        self.0.is_limited()
    }

    #[inline]
    fn is_done(&self) -> bool {
        self.0.is_done()
    }
}
