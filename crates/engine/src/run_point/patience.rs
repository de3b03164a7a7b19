//! How long a run waits for workers that do not come back, and what becomes of their threads.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use fathom_core::{Instant, Span};

use super::early_end::{EarlyEnd, STOP_LEAD};
use crate::timetable::Timetable;
use crate::worker::{PATIENCE, PATIENCE_WHEN_STOPPED, STOP_CHECK};

/// How much longer than it may take a worker is waited for: each of them has the same patience, and
/// ends by itself unless it hangs.
const GRACE: Span = Span::from_ms(500);
/// How long a backend may take to be set up: to fill its buffers takes a while.
const SET_UP: Span = Span::from_secs(300);

/// Threads that were left behind in calls that do not return.
static LEFT_BEHIND: AtomicUsize = AtomicUsize::new(0);

/// Whether I/Os were left to the kernel.
static LEAVES_IOS: AtomicBool = AtomicBool::new(false);

/// How many threads of this process hang in a call to a target, so that nobody waits for them. They
/// end when the kernel lets them go, and the process may not end before.
pub fn left_behind() -> usize {
    LEFT_BEHIND.load(Ordering::Relaxed)
}

/// Whether the kernel may still have I/Os of a run that ended, for which the end of the process may
/// have to wait.
pub fn leaves_ios() -> bool {
    LEAVES_IOS.load(Ordering::Relaxed)
}

/// The kernel did not give back all I/Os of a worker.
pub(super) fn leave_ios() {
    LEAVES_IOS.store(true, Ordering::Relaxed);
}

/// So many more are left behind.
pub(super) fn leave_behind(threads: usize) {
    LEFT_BEHIND.fetch_add(threads, Ordering::Relaxed);
}

/// What the caller wants, and since when.
pub(super) struct Patience<'a> {
    stop: &'a AtomicBool,
    /// When it was seen that the user asked to stop.
    stopped: Option<Instant>,
    /// When it was seen that he does not want to wait any more.
    hurried: Option<Instant>,
}

impl<'a> Patience<'a> {
    pub(super) fn new(stop: &'a AtomicBool) -> Self {
        Self { stop, stopped: None, hurried: None }
    }

    /// Looks what the caller wants now. Says whether he asked to stop, if he had not before.
    pub(super) fn look(&mut self, now: Instant, hurries: bool) -> bool {
        if hurries {
            self.hurried.get_or_insert(now);
        }
        let stops = self.stopped.is_none() && self.stop.load(Ordering::Relaxed);
        if stops {
            self.stopped = Some(now);
        }
        stops
    }

    /// When a worker that has not ended hangs.
    pub(super) fn limit(&self, table: &Timetable, end: &EarlyEnd) -> Instant {
        let end = end.get().unwrap_or(Instant(u64::MAX)).min(table.window_end);
        let usual = end + table.cool_down + PATIENCE;
        let usual = match self.stopped {
            None => usual,
            Some(at) => usual.min(at + STOP_LEAD + STOP_CHECK + PATIENCE_WHEN_STOPPED),
        };
        self.hurried.unwrap_or(usual).min(usual) + GRACE
    }

    /// When a worker that is being set up since then hangs.
    pub(super) fn limit_of_set_up(&self, since: Instant) -> Instant {
        let usual = match self.stopped {
            None => since + SET_UP,
            Some(stopped) => stopped + PATIENCE_WHEN_STOPPED,
        };
        self.hurried.unwrap_or(usual).min(usual)
    }

    /// How long a worker that has told what it did may take to leave. Who has I/Os that hang has been
    /// waited for already.
    pub(super) fn for_leaving(&self, hangs: bool) -> Span {
        match (self.hurried.is_some() || hangs, self.stopped) {
            (true, _) => GRACE,
            (false, Some(_)) => PATIENCE_WHEN_STOPPED,
            (false, None) => PATIENCE,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: Timetable = Timetable {
        start: Instant(0),
        window_start: Instant(0),
        window_end: Instant(100_000_000_000),
        cool_down: Span::from_secs(5),
        interval: Span::from_secs(1),
        buckets: None,
    };

    #[test]
    fn a_worker_is_waited_for_as_long_as_it_waits_itself_and_a_little_more() {
        let stop = AtomicBool::new(false);
        let end = EarlyEnd::new();
        let mut patience = Patience::new(&stop);
        assert!(!patience.look(Instant(1), false));
        assert_eq!(patience.limit(&TABLE, &end), TABLE.window_end + Span::from_ms(35_500));
        stop.store(true, Ordering::Relaxed);
        let at = Instant(2_000_000_000);
        assert!(patience.look(at, false) && !patience.look(at, false));
        assert_eq!(patience.limit(&TABLE, &end), at + Span::from_ms(3_650));
        let later = at + Span::from_ms(100);
        patience.look(later, true);
        patience.look(later + Span::from_ms(100), true);
        assert_eq!(patience.limit(&TABLE, &end), later + Span::from_ms(500));
        assert_eq!(patience.for_leaving(false), Span::from_ms(500));
    }

    #[test]
    fn a_time_table_without_an_end_has_no_limit_until_somebody_stops() {
        let stop = AtomicBool::new(false);
        let table = Timetable { window_end: Instant(u64::MAX), ..TABLE };
        let patience = Patience::new(&stop);
        assert_eq!(patience.limit(&table, &EarlyEnd::new()), Instant(u64::MAX));
    }
}
