//! The shared state of the workers of a run and the collector, and their messages to each other.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError};
use std::sync::{Arc, OnceLock};
use std::thread;

use fathom_core::measure::Tally;

use super::early_end::EarlyEnd;
use super::finish::Finish;
use crate::timetable::Timetable;
use crate::trace::{Follow, TraceEntry};
use crate::worker::{Estate, Outcome, Sink};

/// The shared state of the workers and the collector. All of them own it, so that it exists as long
/// as one of them does.
pub(super) struct Shared {
    /// All wait here until the start of the run is known, or that there is none.
    pub(super) gate: OnceLock<Option<Timetable>>,
    /// Workers that are done wait here until all are: objects that the caller reads at the window's
    /// end, such as a ring's own threads, must not end before.
    pub(super) closed: OnceLock<()>,
    /// Set when the caller asked to stop.
    pub(super) stop: AtomicBool,
    /// Set when the collector or a worker panicked.
    pub(super) abandoned: AtomicBool,
    pub(super) end: EarlyEnd,
    pub(super) finish: Finish,
}

impl Shared {
    /// Whether the workers are to stop.
    pub(super) fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed) || self.abandoned.load(Ordering::Relaxed)
    }
}

/// Ends the run when its owner's thread panics: the other threads would go on to the end of the
/// window, and wait forever to hand over tallies without a receiver.
pub(super) struct Abandons<'a>(pub(super) &'a AtomicBool);

impl Drop for Abandons<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.store(true, Ordering::Relaxed);
        }
    }
}

/// Opens a gate at the latest when it is dropped, with nothing behind it: no thread waits there for
/// one that left by an error or a panic.
pub(super) struct Opens<'a, T: Default>(pub(super) &'a OnceLock<T>);

impl<T: Default> Drop for Opens<'_, T> {
    fn drop(&mut self) {
        let _ = self.0.set(T::default());
    }
}

/// A worker's message to the collector, with the worker's place.
pub(super) enum Handed {
    /// Its work in an interval.
    Tally(usize, Box<Tally>),
    /// It is done, with these results.
    Done(usize, Box<Outcome>),
    /// Its backend is dropped, and its thread is about to end.
    Gone(usize),
}

/// The channels between a worker and the collector, from the worker's side.
pub(super) struct Lines<F> {
    pub(super) worker: usize,
    pub(super) full: SyncSender<Handed>,
    pub(super) empty: Receiver<Box<Tally>>,
    pub(super) estate: Arc<Estate>,
    pub(super) follow: F,
}

impl<F: Follow + Send> Sink for Lines<F> {
    const FOLLOWS: bool = F::FOLLOWS;

    fn hand_over(&mut self, tally: &mut Box<Tally>) -> bool {
        let empty = match self.empty.try_recv() {
            Ok(empty) => empty,
            Err(TryRecvError::Empty) => return false,
            // The collector is gone, and the run with it.
            Err(TryRecvError::Disconnected) => return true,
        };
        let full = std::mem::replace(tally, empty);
        // There is room for every existing tally, so this fails only when the collector is gone.
        self.full.try_send(Handed::Tally(self.worker, full)).is_ok()
    }

    #[inline(always)]
    fn starts(&mut self, slot: u32) {
        self.follow.starts(slot);
    }

    #[inline(always)]
    fn ends(&mut self, slot: u32, entry: impl FnOnce(u64) -> TraceEntry) {
        self.follow.ends(slot, entry);
    }

    fn estate(&self) -> Option<Arc<Estate>> {
        Some(Arc::clone(&self.estate))
    }

    fn finish(&mut self) {
        self.follow.finish();
    }
}

/// Reports that a worker's backend is dropped, even in a panic.
pub(super) struct SaysGone {
    pub(super) worker: usize,
    pub(super) full: SyncSender<Handed>,
}

impl Drop for SaysGone {
    fn drop(&mut self) {
        // There is room for it, so that this fails only when the collector is gone.
        let _ = self.full.try_send(Handed::Gone(self.worker));
    }
}
