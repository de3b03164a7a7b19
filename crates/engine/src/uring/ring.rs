//! A ring with both of its queues held open: what the crate offers opens them anew for each use,
//! which reads and writes their ends each time.

use std::io;
use std::mem::ManuallyDrop;
use std::os::fd::{AsRawFd, RawFd};
use std::ptr::NonNull;

use io_uring::types::{SubmitArgs, Timespec};
use io_uring::{CompletionQueue, SubmissionQueue, Submitter};

use super::entries::{Entries, KernelRing};

/// What cannot be otherwise.
const ROOM: &str = "the submission queue has room for as many as there are slots";

/// A ring that belongs to one thread. It stays open when this is dropped, because the kernel may
/// still write for it: to be closed with [`Ring::close`].
pub(super) struct Ring<E: Entries> {
    submitter: Submitter<'static>,
    // Dropping a queue would do nothing but tell the kernel about its ends.
    submission: ManuallyDrop<SubmissionQueue<'static, E::Submission>>,
    completion: ManuallyDrop<CompletionQueue<'static, E::Completion>>,
    ring: NonNull<KernelRing<E>>,
}

impl<E: Entries> Ring<E> {
    pub(super) fn new(ring: KernelRing<E>) -> Self {
        let ring = NonNull::from(Box::leak(Box::new(ring)));
        // SAFETY: the box is leaked, and freed by `close` only, which takes this whole value. So
        // what is borrowed here lives as long as it, and nobody else can reach the ring.
        let (mut submitter, submission, completion) = unsafe { &mut *ring.as_ptr() }.split();
        // Saves the kernel to look up the descriptor at each call. Linux 5.18.
        let _ = submitter.register_ring_fd();
        Self {
            submitter,
            submission: ManuallyDrop::new(submission),
            completion: ManuallyDrop::new(completion),
            ring,
        }
    }

    /// Closes the ring.
    ///
    /// # Safety
    ///
    /// Nothing is in flight.
    pub(super) unsafe fn close(&mut self) {
        // What is registered keeps the ring open as long as the thread.
        let _ = self.submitter.unregister_ring_fd();
        // SAFETY: made from a box, and not used again: who calls this drops the rest.
        drop(unsafe { Box::from_raw(self.ring.as_ptr()) });
    }

    pub(super) fn submitter(&self) -> &Submitter<'static> {
        &self.submitter
    }

    /// Puts an entry into the submission queue. The kernel sees it after [`Ring::publish`].
    ///
    /// # Safety
    ///
    /// The entry's buffer is neither freed nor used until it has completed.
    #[inline]
    pub(super) unsafe fn push(&mut self, entry: &E::Submission) {
        // SAFETY: see above.
        let pushed = unsafe { self.submission.push(entry) };
        assert!(pushed.is_ok(), "{ROOM}");
    }

    /// Puts entries into the submission queue, in a copy of it that can stay in registers. If one of
    /// them cannot be made the kernel sees none.
    ///
    /// # Safety
    ///
    /// As above, for each.
    #[inline]
    pub(super) unsafe fn push_all(&mut self, entries: impl Iterator<Item = E::Submission>) {
        // SAFETY: the copy takes the place of the original, of which nothing is dropped.
        let mut queue = unsafe { std::ptr::read(&raw const self.submission) };
        for entry in entries {
            // SAFETY: see above.
            let pushed = unsafe { queue.push(&entry) };
            assert!(pushed.is_ok(), "{ROOM}");
        }
        self.submission = queue;
    }

    /// Shows the kernel what was pushed, and looks what it has taken.
    #[inline]
    pub(super) fn publish(&mut self) {
        self.submission.sync();
    }

    /// How many entries were pushed and not taken by the kernel when it was last looked.
    #[inline]
    pub(super) fn queued(&self) -> usize {
        self.submission.len()
    }

    /// Whether the kernel has put off work that it does when it is entered.
    #[inline]
    pub(super) fn has_work(&self) -> bool {
        self.submission.taskrun()
    }

    /// Whether there are completions. Looks anew, and gives back the places of those that were
    /// taken.
    #[inline]
    pub(super) fn has_completions(&mut self) -> bool {
        self.completion.sync();
        !self.completion.is_empty()
    }

    /// How many completions were there when it was last looked.
    #[inline]
    pub(super) fn completed(&self) -> usize {
        self.completion.len()
    }

    /// Takes them.
    #[inline]
    pub(super) fn take_completed(&mut self, take: impl FnMut(E::Completion)) {
        // As above: what is behind a reference is read and written for each entry, and each of them
        // waits for the one before.
        // SAFETY: the copy takes the place of the original, of which nothing is dropped. If `take`
        // panics, the original still has what was there to be taken, and nobody takes it.
        let mut queue = unsafe { std::ptr::read(&raw const self.completion) };
        queue.by_ref().for_each(take);
        self.completion = queue;
    }

    /// Starts what is queued. Gives how many entries the kernel has taken.
    #[inline]
    pub(super) fn submit(&self) -> io::Result<usize> {
        self.submitter.submit()
    }

    /// Starts what is queued and waits for a completion, at most so long.
    #[inline]
    pub(super) fn submit_and_wait(&self, time: &Timespec) -> io::Result<usize> {
        self.submitter.submit_with_args(1, &SubmitArgs::new().timespec(time))
    }
}

impl<E: Entries> AsRawFd for Ring<E> {
    fn as_raw_fd(&self) -> RawFd {
        // SAFETY: open until `close`, after which nothing is used.
        unsafe { self.ring.as_ref() }.as_raw_fd()
    }
}
