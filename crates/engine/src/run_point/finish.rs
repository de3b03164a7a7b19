//! When a run is done before its time: when every stream that has a limit is.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use fathom_core::plan::WorkerPlan;
use fathom_core::spec::Point;
use fathom_core::{Instant, Span};

/// The workers' agreement on the end when one of them has done all of a limited number of I/Os.
pub(super) struct Finish {
    /// Workers with a limit that are not done.
    left: AtomicUsize,
    /// When the last I/O of those that are done came back.
    last: AtomicU64,
    over: AtomicBool,
    /// Whether there are no other workers, so that the run ends with the last of these I/Os.
    alone: bool,
}

impl Finish {
    pub(super) fn new(point: &Point, plans: &[WorkerPlan]) -> Self {
        let limited =
            |plan: &&WorkerPlan| point.streams[plan.stream as usize].pacing.limit.is_some();
        let left = plans.iter().filter(limited).count();
        Self {
            left: AtomicUsize::new(left),
            last: AtomicU64::new(0),
            over: AtomicBool::new(false),
            alone: left == plans.len(),
        }
    }

    /// A worker was done at this time. Returns the end of the run if it was the last one: right
    /// after the last I/O if there are no other workers, and otherwise as soon as every worker can
    /// know of it.
    pub(super) fn done(&self, at: Instant, lead: Span) -> Option<Instant> {
        self.last.fetch_max(at.0, Ordering::Relaxed);
        if self.left.fetch_sub(1, Ordering::AcqRel) > 1 {
            return None;
        }
        let last = Instant(self.last.load(Ordering::Relaxed));
        Some(if self.alone { last + Span(1) } else { at + lead })
    }

    /// Has every worker check for the agreed end.
    pub(super) fn announce(&self) {
        self.over.store(true, Ordering::Release);
    }

    /// Whether the run is done.
    pub(super) fn is_over(&self) -> bool {
        self.over.load(Ordering::Acquire)
    }
}
