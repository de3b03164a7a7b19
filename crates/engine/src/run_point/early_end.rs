//! The end that all workers of a run agree on, when it comes before its time.

use std::sync::atomic::{AtomicU64, Ordering};

use fathom_core::{Instant, Span};

/// From the moment when the first worker sees that it should stop to the end that it sets for all:
/// longer than the time between two checks of any worker.
pub(super) const STOP_LEAD: Span = Span::from_ms(100);

/// The end that the first worker to see that it should stop sets for all, in nanoseconds.
#[derive(Debug)]
pub(super) struct EarlyEnd(AtomicU64);

impl EarlyEnd {
    /// No end yet.
    pub(super) fn new() -> Self {
        Self(AtomicU64::new(u64::MAX))
    }

    /// The end, if one was set.
    pub(super) fn get(&self) -> Option<Instant> {
        Some(self.0.load(Ordering::Relaxed)).filter(|&end| end < u64::MAX).map(Instant)
    }

    /// The end that was set, or otherwise `proposed`, which then becomes the end.
    pub(super) fn agree(&self, proposed: Instant) -> Instant {
        let swap =
            self.0.compare_exchange(u64::MAX, proposed.0, Ordering::Relaxed, Ordering::Relaxed);
        Instant(swap.err().unwrap_or(proposed.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_worker_that_stops_sets_the_end_for_all() {
        let end = EarlyEnd::new();
        assert_eq!(end.get(), None);
        assert_eq!(end.agree(Instant(70)), Instant(70));
        assert_eq!(end.agree(Instant(90)), Instant(70));
        assert_eq!(end.get(), Some(Instant(70)));
    }
}
