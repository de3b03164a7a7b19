//! The state that a worker leaves to another thread while it is in a call that may never return.
//!
//! A device that hangs holds the worker's own thread in every call that is not asynchronous. The
//! worker's counts, and the list of its I/Os in flight, must not be lost with it. So the worker
//! lends its state for the time of each call. A thread that claims it meanwhile keeps it: the
//! worker stops for good if its call does return.
//!
//! For the worker this costs a few plain stores and a load for each call, and no fence: the
//! claiming thread has the kernel put one into every running thread (membarrier).

#![expect(unsafe_code, reason = "the state is reached from another thread while its owner is away")]

use std::cell::UnsafeCell;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, Ordering, compiler_fence, fence};
use std::time::{Duration, Instant as Time};

use fathom_core::Instant;

use super::Outcome;

/// How long to wait for a worker that is not in a call to reach the next one.
const PATIENCE: Duration = Duration::from_millis(500);
/// The time between two checks.
const NAP: Duration = Duration::from_millis(1);

/// The kernel's `MEMBARRIER_CMD_GLOBAL`, `..._PRIVATE_EXPEDITED` and its registration.
const BARRIER_EVERYWHERE: libc::c_int = 1;
const BARRIER_HERE: libc::c_int = 8;
const REGISTER: libc::c_int = 16;

/// Ends a worker's work in its place.
pub(crate) trait Leaves {
    /// Ends the window by then at the latest, counts the I/Os in flight as lost, hands over the
    /// rest, and returns the worker's results.
    fn leave(&mut self, end: Option<Instant>) -> Outcome;
}

/// The state of one worker as other threads can reach it.
pub(crate) struct Estate {
    /// Lent during a call.
    state: UnsafeCell<Option<NonNull<dyn Leaves>>>,
    /// Whether it is lent.
    is_lent: AtomicBool,
    /// Whether it belongs to another thread from the next moment on at which it is lent.
    is_claimed: AtomicBool,
}

// SAFETY: its worker uses the state while it is not lent, and a thread that claimed it uses it
// while it is lent: `lend` and `claimed` ensure that. It may be used on another thread: see
// `Estate::new`.
unsafe impl Send for Estate {}
// SAFETY: as above.
unsafe impl Sync for Estate {}

impl Estate {
    /// An estate that lends nothing yet.
    ///
    /// # Safety
    ///
    /// The state that it will be given may be used by another thread while its own is away.
    pub(crate) unsafe fn new() -> Self {
        Self {
            state: UnsafeCell::new(None),
            is_lent: AtomicBool::new(false),
            is_claimed: AtomicBool::new(false),
        }
    }

    /// Makes a call that may never return, with the state lent meanwhile. If another thread claims
    /// the state, this does not return either.
    #[inline(always)]
    pub(super) fn lend<'a, R>(
        &self,
        state: &'a mut (dyn Leaves + 'a),
        call: impl FnOnce() -> R,
    ) -> R {
        let state = std::ptr::from_mut(state);
        // SAFETY: only the lifetime changes. A thread that uses it has claimed it before this
        // returns, and then this never does, so that the borrowed data stays borrowed for good.
        let state: *mut (dyn Leaves + 'static) = unsafe { std::mem::transmute(state) };
        // SAFETY: no thread reads there while nothing is lent.
        unsafe { *self.state.get() = NonNull::new(state) };
        self.is_lent.store(true, Ordering::Release);
        // Even if the call panics: a claimed state must not be dropped.
        let _returns = Returns(self);
        call()
    }

    /// Stops for good: the state belongs to another thread.
    #[cold]
    fn stop(&self) -> ! {
        self.is_lent.store(true, Ordering::Release);
        loop {
            std::thread::park();
        }
    }

    /// Takes the state, if it can be claimed.
    fn claimed(&self) -> Option<Claimed> {
        if !self.is_lent.load(Ordering::Acquire) {
            return None;
        }
        // SAFETY: it is claimed and lent, so that the worker has stopped, or will when it comes
        // back and before it touches the state. It was stored before it was lent.
        unsafe { *self.state.get() }.map(Claimed)
    }
}

/// An estate of a worker's loop.
pub(crate) fn for_any_thread() -> Estate {
    // SAFETY: of a loop's parts, its schedule, its source and its slots may go to another thread,
    // as their traits say. So may a sink that has an estate: it consists of channels. Of its job
    // the heir uses the plan and plain numbers, and the CPU time of a thread, which it may ask for.
    unsafe { Estate::new() }
}

/// The end of a call.
struct Returns<'a>(&'a Estate);

impl Drop for Returns<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        self.0.is_lent.store(false, Ordering::Relaxed);
        // The load comes after the store: for the compiler by this, and for the processor by the
        // barrier of the claiming thread. Miri knows no such barrier, and gets a fence on both
        // sides instead.
        match cfg!(miri) {
            true => fence(Ordering::SeqCst),
            false => compiler_fence(Ordering::SeqCst),
        }
        if self.0.is_claimed.load(Ordering::Relaxed) {
            self.0.stop();
        }
    }
}

/// The state of a worker that has stopped.
pub(crate) struct Claimed(NonNull<dyn Leaves>);

// SAFETY: see `Estate::new`.
unsafe impl Send for Claimed {}

impl Claimed {
    /// As [`Leaves::leave`].
    pub(crate) fn leave(mut self, end: Option<Instant>) -> Outcome {
        // SAFETY: it is there for good and belongs to no other thread: its worker has stopped, and
        // it can be claimed once.
        unsafe { self.0.as_mut() }.leave(end)
    }
}

/// Claims the states of these workers, which are in calls or reach one soon; none for a worker for
/// which this is impossible. To be called once for each.
pub(crate) fn claim(estates: &[&Estate]) -> Vec<Option<Claimed>> {
    for estate in estates {
        let before = estate.is_claimed.swap(true, Ordering::SeqCst);
        assert!(!before, "a worker has one heir");
    }
    if !barrier() {
        return estates.iter().map(|_| None).collect();
    }
    let begun = Time::now();
    let is_lent = |estate: &&Estate| estate.is_lent.load(Ordering::SeqCst);
    while !estates.iter().all(is_lent) && begun.elapsed() < PATIENCE {
        std::thread::sleep(NAP);
    }
    estates.iter().map(|estate| estate.claimed()).collect()
}

/// Makes every thread of this process see earlier stores, and publish its own.
fn barrier() -> bool {
    fence(Ordering::SeqCst);
    if cfg!(miri) {
        return true;
    }
    // SAFETY: takes numbers only.
    let ask =
        |command: libc::c_int| unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) } == 0;
    // The first is not available if some CPUs have no timer ticks.
    ask(BARRIER_EVERYWHERE) || (ask(REGISTER) && ask(BARRIER_HERE))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::mpsc::channel;

    use fathom_core::measure::{Errors, Ledger};

    use super::*;

    /// Counts in a way that two threads at once would corrupt.
    struct Counts(u64);

    impl Leaves for Counts {
        fn leave(&mut self, _: Option<Instant>) -> Outcome {
            Outcome {
                ledger: Ledger { completed: self.0, ..Ledger::default() },
                errors: Errors::with_room(),
                cpu: None,
                gave_up: false,
                ended: Instant(0),
                waits: None,
                lag: None,
                buckets: None,
                leaves_ios: false,
            }
        }
    }

    fn estate() -> Arc<Estate> {
        // SAFETY: any thread may use numbers.
        Arc::new(unsafe { Estate::new() })
    }

    #[test]
    fn what_a_worker_counted_is_had_while_its_call_does_not_return() {
        let estate = estate();
        let (began, begins) = channel();
        let (return_it, returns) = channel::<()>();
        let (came_back, comes_back) = channel();
        let worker = Arc::clone(&estate);
        std::thread::spawn(move || {
            let mut state = Counts(0);
            for _ in 0..1000 {
                worker.lend(&mut state, || ());
                state.0 += 1;
            }
            worker.lend(&mut state, || {
                began.send(()).unwrap();
                returns.recv().unwrap();
            });
            state.0 += 1;
            came_back.send(state.0).unwrap();
        });
        begins.recv().unwrap();
        let claimed = claim(&[&estate]).pop().unwrap().unwrap();
        // The call returns now, but the worker still does not return.
        return_it.send(()).unwrap();
        let waited = comes_back.recv_timeout(Duration::from_millis(200));
        assert_eq!(waited, Err(std::sync::mpsc::RecvTimeoutError::Timeout));
        assert_eq!(claimed.leave(None).ledger.completed, 1000);
    }

    #[test]
    fn a_worker_that_is_at_work_stops_at_its_next_call_and_nothing_is_counted_after() {
        // Miri tries another interleaving of threads each time, and is slow.
        for _ in 0..if cfg!(miri) { 10 } else { 200 } {
            let estate = estate();
            let (began, begins) = channel();
            let worker = Arc::clone(&estate);
            std::thread::spawn(move || {
                let mut state = Counts(0);
                began.send(()).unwrap();
                loop {
                    worker.lend(&mut state, std::hint::spin_loop);
                    state.0 += 1;
                }
            });
            begins.recv().unwrap();
            // On a busy machine the worker may not reach a call in time. Then its state cannot be
            // claimed.
            let Some(mut claimed) = claim(&[&estate]).pop().unwrap() else { continue };
            let counted = || {
                // SAFETY: as in `leave`.
                unsafe { claimed.0.as_mut() }.leave(None).ledger.completed
            };
            let counts: Vec<u64> = std::iter::repeat_with(counted).take(100).collect();
            assert!(counts.windows(2).all(|pair| pair[0] == pair[1]), "{counts:?}");
        }
    }
}
