//! The threads that make blocking calls for a worker, and how I/Os reach them and come back.
//!
//! A hand-over locks a mutex that no thread holds for longer than a few instructions, and never
//! allocates: places for all slots exist from the beginning.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use fathom_core::{Instant, Span};

use super::calls::{Calls, Work};
use crate::backend::Completion;
use crate::buffers::Buffers;
use crate::clock::Clock;

/// A helper makes only one call, and there may be thousands.
const STACK: usize = 128 * 1024;

/// An I/O on its way to a helper, with its buffer.
pub(super) struct Job {
    pub(super) work: Work,
    pub(super) buffer: Buffers,
}

/// An I/O on its way back.
struct Done {
    slot: u32,
    buffer: Buffers,
    result: i32,
    at: Instant,
}

/// An order for a helper.
#[expect(clippy::large_enum_variant, reason = "there is one for each helper, and none is kept")]
enum Order {
    Nothing,
    Serve(Job),
    End,
}

/// The mailbox of a helper for its orders.
struct Inbox {
    order: Mutex<Order>,
    came: Condvar,
}

/// The place where all helpers of a backend put their results.
pub(super) struct Outbox {
    done: Mutex<Vec<Done>>,
    came: Condvar,
    /// Whether there is a result, so that a spinning worker need not take the mutex.
    some: AtomicBool,
}

/// A thread that serves one slot.
pub(super) struct Helper {
    inbox: Arc<Inbox>,
    thread: JoinHandle<()>,
}

/// A helper cannot panic while it holds a lock, so that the locked data is always consistent.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Inbox {
    fn put(&self, order: Order) {
        *lock(&self.order) = order;
        self.came.notify_one();
    }

    fn take(&self) -> Order {
        let mut order = lock(&self.order);
        loop {
            match std::mem::replace(&mut *order, Order::Nothing) {
                Order::Nothing => {
                    order = self.came.wait(order).unwrap_or_else(PoisonError::into_inner);
                }
                other => return other,
            }
        }
    }
}

impl Outbox {
    pub(super) fn new(slots: u32) -> Self {
        Self {
            done: Mutex::new(Vec::with_capacity(slots as usize)),
            came: Condvar::new(),
            some: AtomicBool::new(false),
        }
    }

    fn put(&self, done: Done) {
        lock(&self.done).push(done);
        self.some.store(true, Ordering::Release);
        self.came.notify_one();
    }

    /// Takes all results, returns the buffers, and reports whether there were any.
    pub(super) fn reap(
        &self,
        buffers: &mut [Option<Buffers>],
        completions: &mut Vec<Completion>,
    ) -> bool {
        if !self.some.swap(false, Ordering::Acquire) {
            return false;
        }
        let mut reaped = false;
        for Done { slot, buffer, result, at } in lock(&self.done).drain(..) {
            let place = &mut buffers[slot as usize];
            assert!(place.is_none());
            *place = Some(buffer);
            completions.push(Completion { slot, result, at });
            reaped = true;
        }
        reaped
    }

    /// Sleeps until there is a result, at most `span`.
    pub(super) fn sleep(&self, span: Span) {
        let done = lock(&self.done);
        if done.is_empty() {
            // A spurious wake-up is harmless: the caller checks again.
            drop(self.came.wait_timeout(done, Duration::from_nanos(span.0)));
        }
    }
}

impl Helper {
    fn start(slot: u32, calls: Arc<Calls>, outbox: Arc<Outbox>, clock: Clock) -> io::Result<Self> {
        let inbox = Arc::new(Inbox { order: Mutex::new(Order::Nothing), came: Condvar::new() });
        let orders = Arc::clone(&inbox);
        let thread = std::thread::Builder::new()
            .name(format!("slot {slot}"))
            .stack_size(STACK)
            .spawn(move || {
                while let Order::Serve(Job { work, mut buffer }) = orders.take() {
                    let result = calls.serve(&work, &mut buffer);
                    // Stamped here, because the call ends here. The worker may be busy for a while.
                    outbox.put(Done { slot: work.slot(), buffer, result, at: clock.now() });
                }
            })?;
        Ok(Self { inbox, thread })
    }

    /// Gives an idle helper an I/O.
    #[inline]
    pub(super) fn hand_over(&self, job: Job) {
        self.inbox.put(Order::Serve(job));
    }
}

/// Starts a helper for each slot, or none.
pub(super) fn start_all(
    slots: u32,
    calls: &Arc<Calls>,
    outbox: &Arc<Outbox>,
    clock: &Clock,
) -> io::Result<Vec<Helper>> {
    let mut helpers = Vec::with_capacity(slots as usize);
    for slot in 0..slots {
        match Helper::start(slot, Arc::clone(calls), Arc::clone(outbox), clock.clone()) {
            Ok(helper) => helpers.push(helper),
            Err(error) => {
                stop_all(helpers.into_iter().map(|helper| (helper, true)));
                let message = format!(
                    "only {slot} of {slots} threads could be started ({error}): lower the queue \
                     depth, or raise the limit of processes (ulimit -u, pids.max)"
                );
                return Err(io::Error::new(error.kind(), message));
            }
        }
    }
    Ok(helpers)
}

/// Ends helpers and waits for those that are idle.
pub(super) fn stop_all(helpers: impl Iterator<Item = (Helper, bool)>) {
    let mut ending = Vec::new();
    for (helper, idle) in helpers {
        // A busy helper has taken its order already, so that this one does not replace it. If it
        // has not yet woken up, its I/O never starts.
        helper.inbox.put(Order::End);
        if idle {
            ending.push(helper.thread);
        }
    }
    for thread in ending {
        // A helper that panicked has reported it on standard error.
        let _ = thread.join();
    }
}
