//! A ring with both of its queues held open: the crate's own interface opens them anew for each
//! use, which reads and writes their ends each time.

use std::io;
use std::mem::ManuallyDrop;
use std::os::fd::{AsRawFd, RawFd};
use std::ptr::NonNull;

use io_uring::types::{SubmitArgs, Timespec};
use io_uring::{CompletionQueue, SubmissionQueue, Submitter, cqueue};

use super::entries::{Entries, KernelRing};

/// An invariant.
const ROOM: &str = "the submission queue has room for as many as there are slots";

/// A ring that belongs to one thread. It is closed when this is dropped: while the kernel may still
/// write for it, [`Lent`](crate::buffers::lent::Lent) prevents that.
pub(super) struct Ring<E: Entries> {
    submitter: Submitter<'static>,
    // Dropping a queue would only tell the kernel about its ends.
    submission: ManuallyDrop<SubmissionQueue<'static, E::Submission>>,
    completion: ManuallyDrop<CompletionQueue<'static, E::Completion>>,
    ring: NonNull<KernelRing<E>>,
}

impl<E: Entries> Ring<E> {
    pub(super) fn new(ring: KernelRing<E>) -> Self {
        let ring = NonNull::from(Box::leak(Box::new(ring)));
        // SAFETY: the box is leaked, and freed only when this whole value is dropped. So the
        // borrowed queues live as long as it, and no other code can reach the ring.
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

    /// Puts entries into the submission queue, through a copy of it that can stay in registers. If
    /// one of them cannot be made, the kernel sees none.
    ///
    /// # Safety
    ///
    /// As above, for each.
    #[inline]
    pub(super) unsafe fn push_all(&mut self, entries: impl Iterator<Item = E::Submission>) {
        // SAFETY: the copy takes the place of the original, of which no part is dropped.
        let mut queue = unsafe { std::ptr::read(&raw const self.submission) };
        for entry in entries {
            // SAFETY: see above.
            let pushed = unsafe { queue.push(&entry) };
            assert!(pushed.is_ok(), "{ROOM}");
        }
        self.submission = queue;
    }

    /// Shows the pushed entries to the kernel, and reads how many it has taken.
    #[inline]
    pub(super) fn publish(&mut self) {
        self.submission.sync();
    }

    /// How many entries were pushed and not taken by the kernel at the last check.
    #[inline]
    pub(super) fn queued(&self) -> usize {
        self.submission.len()
    }

    /// Whether the kernel has deferred work that it does when it is entered.
    #[inline]
    pub(super) fn has_work(&self) -> bool {
        self.submission.taskrun()
    }

    /// Whether there are completions. Reads the queue anew, and releases the places of those that
    /// were taken.
    #[inline]
    pub(super) fn has_completions(&mut self) -> bool {
        self.completion.sync();
        !self.completion.is_empty()
    }

    /// How many completions were there at the last check.
    #[inline]
    pub(super) fn completed(&self) -> usize {
        self.completion.len()
    }

    /// Takes them, and subtracts each from the number of I/Os that the kernel has, even if `take`
    /// panics: then the remaining ones stay in place.
    #[inline]
    pub(super) fn take_completed(
        &mut self,
        in_kernel: &mut usize,
        take: impl FnMut(E::Completion),
    ) {
        let before = self.completion.len();
        assert!(before <= *in_kernel);
        // As above: data behind a reference is read and written for each entry, and each of these
        // waits for the one before.
        // SAFETY: the copy takes the place of the original when it is dropped, even if `take`
        // panics, and no other code can reach the original until then. No part of the two is
        // dropped otherwise.
        let queue = unsafe { std::ptr::read(&raw const self.completion) };
        let mut taking = Taking { queue, original: &mut self.completion, before, in_kernel };
        taking.queue.by_ref().for_each(take);
    }

    /// Starts the queued entries. Returns how many entries the kernel has taken.
    #[inline]
    pub(super) fn submit(&self) -> io::Result<usize> {
        self.submitter.submit()
    }

    /// Starts the queued entries and waits for a completion, at most this long.
    #[inline]
    pub(super) fn submit_and_wait(&self, time: &Timespec) -> io::Result<usize> {
        self.submitter.submit_with_args(1, &SubmitArgs::new().timespec(time))
    }
}

impl<E: Entries> AsRawFd for Ring<E> {
    fn as_raw_fd(&self) -> RawFd {
        // SAFETY: open until this is dropped.
        unsafe { self.ring.as_ref() }.as_raw_fd()
    }
}

impl<E: Entries> Drop for Ring<E> {
    fn drop(&mut self) {
        // The kernel takes a closed ring apart later. Until then a file system could not be
        // unmounted, and the memory would count against the limit of the next ring.
        let _ = self.submitter.unregister_files();
        let _ = self.submitter.unregister_buffers();
        // Registered resources keep the ring open as long as the thread.
        let _ = self.submitter.unregister_ring_fd();
        // SAFETY: made from a box, and not used again: dropping the queues does nothing, and the
        // submitter has nothing to drop.
        drop(unsafe { Box::from_raw(self.ring.as_ptr()) });
    }
}

/// Completions that are being taken: the rest of them, and the count to update.
struct Taking<'a, C: cqueue::EntryMarker + 'static> {
    queue: ManuallyDrop<CompletionQueue<'static, C>>,
    original: &'a mut ManuallyDrop<CompletionQueue<'static, C>>,
    before: usize,
    in_kernel: &'a mut usize,
}

impl<C: cqueue::EntryMarker + 'static> Drop for Taking<'_, C> {
    #[inline]
    fn drop(&mut self) {
        *self.in_kernel -= self.before - self.queue.len();
        // SAFETY: moved back to where it was copied from, and not used again.
        *self.original = unsafe { std::ptr::read(&raw const self.queue) };
    }
}
