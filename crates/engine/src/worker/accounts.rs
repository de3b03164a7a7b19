//! The outcome of a worker's I/Os: the ledger, in which each of them is accounted for, and those
//! that failed.
//!
//! It owns these counts alone. The times of I/Os are in the tallies of [`slices`](super::slices).

use fathom_core::measure::{ErrorKind, Errors, IoError, Ledger};
use fathom_core::{Bytes, Instant, Span};

use crate::pattern::Request;

/// A worker gives up only when this many I/Os failed in a row, without a success between them.
const GIVE_UP_FAILURES: u64 = 1000;
/// A worker gives up only when I/Os have failed for at least this long. An outage that passes is
/// measured; a device that is gone is abandoned.
const GIVE_UP_AFTER: Span = Span::from_secs(10);

/// The accounts of one worker.
pub(super) struct Accounts {
    /// The time origin of errors.
    window_start: Instant,
    /// The settled part. Completions of this phase are not entered yet.
    ledger: Ledger,
    errors: Errors,
    /// I/Os that have started.
    pub(super) started: u64,
    /// Whether the window has begun.
    in_window: bool,
    /// I/Os that completed in full in this phase: the warm-up, or the window.
    completed: u64,
    failures: Failures,
}

/// I/Os that failed in a row.
struct Failures {
    count: u64,
    /// How many I/Os had completed in this phase before them.
    completed_before: u64,
    /// When the first of them failed.
    since: Instant,
}

impl Accounts {
    /// An empty ledger, for a worker whose window is the given one and has begun or not.
    pub(super) fn new(window_start: Instant, in_window: bool) -> Self {
        Self {
            window_start,
            ledger: Ledger::default(),
            errors: Errors::with_room(),
            started: 0,
            in_window,
            completed: 0,
            failures: Failures { count: 0, completed_before: 0, since: window_start },
        }
    }

    /// This many I/Os completed in full.
    #[inline]
    pub(super) fn complete(&mut self, count: u64) {
        self.completed += count;
    }

    /// One failed before the window was over.
    pub(super) fn fail(&mut self) {
        self.ledger.failed += 1;
    }

    /// One came back that was in flight when the window ended.
    pub(super) fn come_back_late(&mut self) {
        self.ledger.in_flight += 1;
    }

    /// One that was in flight when the window ended does not come back.
    pub(super) fn lose(&mut self) {
        self.ledger.lost += 1;
    }

    /// Keeps an I/O that failed. The caller enters the I/O in the ledger.
    #[cold]
    pub(super) fn note_failure(&mut self, request: Request, kind: ErrorKind, at: Instant) {
        let failures = &mut self.failures;
        if failures.count == 0 || failures.completed_before != self.completed {
            *failures = Failures { count: 0, completed_before: self.completed, since: at };
        }
        failures.count += 1;
        self.errors.add(IoError {
            target: request.target(),
            direction: request.direction(),
            upkeep: request.upkeep(),
            offset: Bytes(request.offset),
            length: Bytes(u64::from(request.length())),
            kind,
            at_ns: at.0.wrapping_sub(self.window_start.0) as i64,
        });
    }

    /// Whether enough I/Os have failed, for long enough, that the worker gives up.
    #[inline]
    pub(super) fn is_hopeless(&self, now: Instant) -> bool {
        let Failures { count, completed_before, since } = self.failures;
        count >= GIVE_UP_FAILURES
            && completed_before == self.completed
            && now.since(since) >= GIVE_UP_AFTER
    }

    /// The warm-up is over.
    pub(super) fn begin_window(&mut self) {
        self.in_window = true;
        self.failures.count = 0;
        self.ledger.completed_in_warm_up = std::mem::take(&mut self.completed);
    }

    /// The ledger if the window ended now, with this many I/Os in flight at its end and this many
    /// that are due and have not started.
    pub(super) fn now(&self, in_flight: u64, unstarted: u64) -> Ledger {
        let mut ledger = self.ledger;
        match self.in_window {
            true => ledger.completed = self.completed,
            false => ledger.completed_in_warm_up = self.completed,
        }
        ledger.in_flight += in_flight;
        ledger.unstarted = unstarted;
        ledger.due = self.started + unstarted;
        ledger
    }

    /// The ledger and the errors once all I/Os are accounted for, of which this many had started by
    /// the end of the window, and this many were due by then and had not.
    pub(super) fn settle(&mut self, started: u64, unstarted: u64) -> (Ledger, Errors) {
        let ledger = Ledger { due: started + unstarted, ..self.now(0, unstarted) };
        assert!(ledger.balances(), "an I/O is not accounted for: {ledger:?}");
        (ledger, std::mem::replace(&mut self.errors, Errors { first: Vec::new(), count: 0 }))
    }
}
