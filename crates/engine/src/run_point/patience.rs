//! How long a run waits for workers that do not come back, and what becomes of their threads.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use fathom_core::measure::Ledger;
use fathom_core::{Instant, Span};

use super::early_end::{EarlyEnd, STOP_LEAD};
use crate::timetable::Timetable;
use crate::worker::{PATIENCE, PATIENCE_WHEN_STOPPED, STOP_CHECK};

/// How much longer than it may take a worker is waited for: each of them has the same patience, and
/// ends by itself unless it hangs.
const GRACE: Span = Span::from_ms(500);
/// How long a backend may take to be set up: to fill its buffers takes a while.
const SET_UP: Span = Span::from_secs(300);
/// How long nothing may come back in a run that ends once something is done: longer than most devices
/// take to reset themselves and to try again.
const STANDSTILL: Span = Span::from_secs(60);
/// Who looks several times a second and comes so late was stopped, and so were the workers.
const STOPPED: Span = Span::from_secs(1);

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
    /// When it was looked last, ...
    looked: Option<Instant>,
    /// ... and for how long the whole process was stopped, as by SIGSTOP: nobody hangs meanwhile.
    away: Span,
}

impl<'a> Patience<'a> {
    pub(super) fn new(stop: &'a AtomicBool) -> Self {
        Self { stop, stopped: None, hurried: None, looked: None, away: Span(0) }
    }

    /// Looks what the caller wants now. Says whether he asked to stop, if he had not before.
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

    /// When a worker that has not ended hangs.
    pub(super) fn limit(&self, table: &Timetable, end: &EarlyEnd) -> Instant {
        let end = end.get().unwrap_or(Instant(u64::MAX)).min(table.window_end);
        let usual = end + table.cool_down + PATIENCE + self.away;
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

/// Sees when nothing more comes of the workers that are to do something and then be done. Their run may
/// have no end in time that anybody waits for.
pub(super) struct Standstill {
    /// What each of them told last; none of a worker without a limit, and of one that has ended.
    told: Vec<Option<Told>>,
    /// When it was heard last that an I/O came back to one of them.
    moved: Instant,
    /// How long that may be ago.
    limit: Span,
}

/// What a worker has told.
#[derive(Clone, Copy)]
struct Told {
    at: Instant,
    /// I/Os that came back to it until then.
    back: u64,
    /// Whether it waited for others.
    waits: bool,
}

impl Standstill {
    /// For these workers, each of which has a limit or not, and tells of itself once an interval.
    pub(super) fn new(limited: impl Iterator<Item = bool>, start: Instant, interval: Span) -> Self {
        let begins = Told { at: start, back: 0, waits: false };
        Self {
            told: limited.map(|limited| limited.then_some(begins)).collect(),
            moved: start,
            limit: STANDSTILL + interval,
        }
    }

    /// A worker has told of itself.
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

    /// Whether nothing has come back for too long, and something should. A worker that says nothing
    /// is in a call that does not return. Time in which the process was stopped does not count.
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

    /// What a worker says of so many I/Os that came back, and of those that did not.
    fn ledger(completed: u64, in_flight: u64) -> Ledger {
        Ledger { completed, in_flight, ..Ledger::default() }
    }

    #[test]
    fn a_run_with_a_limit_stands_still_when_nothing_comes_back_that_should() {
        let stop = AtomicBool::new(false);
        let patience = Patience::new(&stop);
        let at = |seconds: u64| Instant(seconds * 1_000_000_000);
        // The second has no limit, and whatever it does counts for nothing.
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
        // With the last I/O of its own back it rests, or is done.
        still.heard(0, &ledger(100, 0), at(161));
        assert!(!still.is_there(at(161), &patience));
        // Who says nothing any more hangs in a call.
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
