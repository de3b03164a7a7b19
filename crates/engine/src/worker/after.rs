//! A worker after its window: it continues its load while it cools down, and then waits for the
//! I/Os in flight.
//!
//! It owns the state at the window's end, which a cool-down would change, and how long the worker
//! waits. Other parts start I/Os and take completions.

use fathom_core::measure::Upkeep;
use fathom_core::{Instant, Span};

use super::slots::{Slots, Started};
use super::{PATIENCE, PATIENCE_WHEN_STOPPED, STOP_CHECK};
use crate::host::ThreadTime;

/// The data that a worker keeps when its window is over.
pub(super) struct After {
    /// The actual end of the window.
    pub(super) ended: Instant,
    pub(super) gave_up: bool,
    /// The CPU time of its thread in the window.
    pub(super) cpu: Option<ThreadTime>,
    /// By slot, whether its I/O was in flight when the window ended and has not come back since.
    overdue: Box<[bool]>,
    /// I/Os that had started by the window's end.
    pub(super) started: u64,
    /// How far an open loop was behind at the window's end.
    pub(super) lag: Option<Span>,
    /// I/Os that fell due before the window's end and started in the cool-down.
    pub(super) late: u64,
    /// The end of the load.
    pub(super) cools_until: Instant,
    /// The end of its wait.
    limit: Instant,
    /// Whether that became short because the user asked to stop.
    is_short: bool,
}

/// The state when the window is over.
pub(super) struct End {
    /// Its end.
    pub(super) at: Instant,
    /// Whether it ended because the worker gave up.
    pub(super) gave_up: bool,
    /// The CPU time of the thread in it.
    pub(super) cpu: Option<ThreadTime>,
    /// How long the load goes on.
    pub(super) cool_down: Span,
    /// I/Os that have started.
    pub(super) started: u64,
    /// How far an open loop is behind.
    pub(super) lag: Option<Span>,
}

impl After {
    /// The time after that end, which was seen `now`.
    pub(super) fn new(end: End, slots: &Slots, now: Instant) -> Self {
        let cools_until = end.at + end.cool_down;
        Self {
            ended: end.at,
            gave_up: end.gave_up,
            cpu: end.cpu,
            overdue: slots.busy(),
            started: end.started,
            lag: end.lag,
            late: 0,
            cools_until,
            limit: now.max(cools_until) + PATIENCE,
            is_short: false,
        }
    }

    /// Counts those of the I/Os that just started in the cool-down that had been due in the window.
    pub(super) fn count_late(&mut self, just_started: usize, slots: &Slots) {
        let is_late = |Started { intended, request, .. }: &&Started| {
            request.upkeep() != Some(Upkeep::Flush) && *intended < self.ended
        };
        let started = slots.latest(just_started).iter().map(|&slot| slots.get(slot));
        self.late += started.filter(is_late).count() as u64;
    }

    /// Until when to wait for the I/Os in flight after the load. None once all came back, or when
    /// the rest is lost.
    pub(super) fn deadline(
        &mut self,
        now: Instant,
        in_flight: u64,
        stopped: &dyn Fn() -> bool,
    ) -> Option<Instant> {
        if in_flight == 0 {
            return None;
        }
        if !self.is_short && stopped() {
            self.is_short = true;
            self.limit = self.limit.min(now + PATIENCE_WHEN_STOPPED);
        }
        (now < self.limit).then(|| self.limit.min(now + STOP_CHECK))
    }

    /// The I/O of this slot came back. Returns whether it was in flight at the window's end.
    pub(super) fn come_back(&mut self, slot: u32) -> bool {
        std::mem::take(&mut self.overdue[slot as usize])
    }
}
