//! How long a run waits for workers that do not come back, and the handling of their threads.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use fathom_core::measure::Ledger;
use fathom_core::{Instant, Span};

use super::early_end::{EarlyEnd, STOP_LEAD};
use crate::timetable::Timetable;
use crate::worker::{PATIENCE, PATIENCE_WHEN_STOPPED, STOP_CHECK};

/// How much longer than its own patience the caller waits for a worker: each worker has the same
/// patience, and ends by itself unless it hangs.
const GRACE: Span = Span::from_ms(500);
/// How long a backend may take to be set up: filling its buffers takes a while.
const SET_UP: Span = Span::from_secs(300);
/// How long a run that ends after an amount may go without a completion: longer than most devices
/// take to reset themselves and to try again.
const STANDSTILL: Span = Span::from_secs(60);
/// The caller checks several times a second. If it comes this late, the process was stopped, and so
/// were the workers.
const STOPPED: Span = Span::from_secs(1);

/// Threads that were abandoned in calls that do not return.
static LEFT_BEHIND: AtomicUsize = AtomicUsize::new(0);

/// Whether I/Os were left to the kernel.
static LEAVES_IOS: AtomicBool = AtomicBool::new(false);

/// How many threads of this process hang in a call to a target and were abandoned. They end when
/// the kernel lets them go, and the process may not end before.
pub fn left_behind() -> usize {
    LEFT_BEHIND.load(Ordering::Relaxed)
}

/// Whether the kernel may still have I/Os of a run that ended, so that the end of the process may
/// have to wait for them.
pub fn leaves_ios() -> bool {
    LEAVES_IOS.load(Ordering::Relaxed)
}

/// The kernel did not give back all I/Os of a worker.
pub(super) fn leave_ios() {
    LEAVES_IOS.store(true, Ordering::Relaxed);
}

/// This many more are abandoned.
pub(super) fn leave_behind(threads: usize) {
    LEFT_BEHIND.fetch_add(threads, Ordering::Relaxed);
}

/// The caller's requests, and their times.
pub(super) struct Patience<'a> {
    stop: &'a AtomicBool,
    /// When the request to stop was seen.
    stopped: Option<Instant>,
    /// When the request not to wait any more was seen.
    hurried: Option<Instant>,
    /// The time of the last check.
    looked: Option<Instant>,
    /// The time for which the whole process was stopped, as by SIGSTOP. A worker that does nothing
    /// in that time does not hang.
    away: Span,
}

impl<'a> Patience<'a> {
    pub(super) fn new(stop: &'a AtomicBool) -> Self {
        Self { stop, stopped: None, hurried: None, looked: None, away: Span(0) }
    }

    /// Checks the caller's requests. Returns whether a request to stop is new.
    pub(super) fn look(&mut self, now: Instant, hurries: bool) -> bool {
        let since = now.since(self.looked.replace(now).unwrap_or(now));
        if STOPPED <= since {
            self.away = Span(self.away.0.saturating_add(since.0));
        }
        if hurries {
            self.hurried.get_or_insert(now);
        }
        let stops = self.stopped.is_none() && self.stop.load(Ordering::Relaxed);
        if stops {
            self.stopped = Some(now);
        }
        stops
    }

    /// The time at which a worker that has not ended counts as hanging.
    pub(super) fn limit(&self, table: &Timetable, end: &EarlyEnd) -> Instant {
        let end = end.get().unwrap_or(Instant(u64::MAX)).min(table.window_end);
        let usual = end + table.cool_down + PATIENCE + self.away;
        let usual = match self.stopped {
            None => usual,
            Some(at) => usual.min(at + STOP_LEAD + STOP_CHECK + PATIENCE_WHEN_STOPPED),
        };
        self.hurried.unwrap_or(usual).min(usual) + GRACE
    }

    /// The time at which a worker counts as hanging that is being set up since then.
    pub(super) fn limit_of_set_up(&self, since: Instant) -> Instant {
        let usual = match self.stopped {
            None => since + SET_UP,
            Some(stopped) => stopped + PATIENCE_WHEN_STOPPED,
        };
        self.hurried.unwrap_or(usual).min(usual)
    }

    /// How long a worker that has reported its results may take to leave. For a worker with I/Os
    /// that hang, the wait is over already.
    pub(super) fn for_leaving(&self, hangs: bool) -> Span {
        match (self.hurried.is_some() || hangs, self.stopped) {
            (true, _) => GRACE,
            (false, Some(_)) => PATIENCE_WHEN_STOPPED,
            (false, None) => PATIENCE,
        }
    }
}

/// Detects when there is no more progress of workers with a limit. Their run may have no end in
/// time that is worth waiting for.
pub(super) struct Standstill {
    /// The last report of each; none for a worker without a limit, and for one that has ended.
    told: Vec<Option<Told>>,
    /// The time of the last report with a completed I/O.
    moved: Instant,
    /// The longest time since then.
    limit: Span,
}

/// The report of a worker.
#[derive(Clone, Copy)]
struct Told {
    at: Instant,
    /// I/Os that completed for it until then.
    back: u64,
    /// Whether it waited for other workers.
    waits: bool,
}

impl Standstill {
    /// For these workers, each of which has a limit or not, and reports once an interval.
    pub(super) fn new(limited: impl Iterator<Item = bool>, start: Instant, interval: Span) -> Self {
        let begins = Told { at: start, back: 0, waits: false };
        Self {
            told: limited.map(|limited| limited.then_some(begins)).collect(),
            moved: start,
            limit: STANDSTILL + interval,
        }
    }

    /// A worker has reported.
    pub(super) fn heard(&mut self, worker: usize, ledger: &Ledger, now: Instant) {
        let Some(told) = &mut self.told[worker] else { return };
        let back = ledger.completed_in_warm_up + ledger.completed + ledger.failed;
        if told.back != back {
            self.moved = now;
        }
        *told = Told { at: now, back, waits: ledger.in_flight > 0 };
    }

    /// A worker has ended.
    pub(super) fn ended(&mut self, worker: usize) {
        self.told[worker] = None;
    }

    /// Whether no I/O has completed for too long, although one should have. A worker that does not
    /// report is in a call that does not return. Time in which the process was stopped does not
    /// count.
    pub(super) fn is_there(&self, now: Instant, patience: &Patience<'_>) -> bool {
        let late = |at: Instant| at + self.limit + patience.away <= now;
        late(self.moved) && self.told.iter().flatten().any(|told| told.waits || late(told.at))
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
    fn time_in_which_the_whole_process_was_stopped_is_nobodys() {
        let stop = AtomicBool::new(false);
        let end = EarlyEnd::new();
        let mut patience = Patience::new(&stop);
        let before = patience.limit(&TABLE, &end);
        patience.look(Instant(1_000_000_000), false);
        patience.look(Instant(1_050_000_000), false);
        assert_eq!(patience.limit(&TABLE, &end), before);
        let hour = Span::from_secs(3600);
        patience.look(Instant(1_050_000_000) + hour, false);
        assert_eq!(patience.limit(&TABLE, &end), before + hour);
    }

    /// A worker's ledger with these numbers of I/Os completed and in flight.
    fn ledger(completed: u64, in_flight: u64) -> Ledger {
        Ledger { completed, in_flight, ..Ledger::default() }
    }

    #[test]
    fn a_run_with_a_limit_stands_still_when_nothing_comes_back_that_should() {
        let stop = AtomicBool::new(false);
        let patience = Patience::new(&stop);
        let at = |seconds: u64| Instant(seconds * 1_000_000_000);
        // The second worker has no limit, and its actions do not count.
        let limited = || [true, false, true].into_iter();
        let mut still = Standstill::new(limited(), at(0), Span::from_secs(1));
        assert!(!still.is_there(at(60), &patience) && still.is_there(at(61), &patience));
        for second in 1..=100 {
            still.heard(0, &ledger(second, 4), at(second));
            still.heard(1, &ledger(second, 4), at(second));
            still.heard(2, &ledger(7, 0), at(second));
            assert!(!still.is_there(at(second), &patience));
        }
        for second in 101..=161 {
            assert!(!still.is_there(at(second - 1), &patience), "{second}");
            still.heard(0, &ledger(100, 4), at(second));
            still.heard(1, &ledger(second, 4), at(second));
            still.heard(2, &ledger(7, 0), at(second));
        }
        assert!(still.is_there(at(161), &patience));
        // A worker rests or is done when its own last I/O is back.
        still.heard(0, &ledger(100, 0), at(161));
        assert!(!still.is_there(at(161), &patience));
        // A worker that reports nothing any more hangs in a call.
        assert!(still.is_there(at(222), &patience));
        still.ended(0);
        still.ended(2);
        assert!(!still.is_there(at(1000), &patience));
    }

    #[test]
    fn a_time_table_without_an_end_has_no_limit_until_somebody_stops() {
        let stop = AtomicBool::new(false);
        let table = Timetable { window_end: Instant(u64::MAX), ..TABLE };
        let patience = Patience::new(&stop);
        assert_eq!(patience.limit(&table, &EarlyEnd::new()), Instant(u64::MAX));
    }
}
