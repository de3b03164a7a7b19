//! The seam between the hot loop and the code that serves its I/Os.

use std::io;

use fathom_core::measure::{Direction, ErrorKind, Waits};
use fathom_core::spec::{Access, BackendKind, Hint, RingMode, SyncMode};
use fathom_core::{Instant, Span};

use crate::access::CallFlags;
use crate::open_target::OpenTarget;
use crate::pacer::Pace;
pub use crate::payload::{Content, RandomContent};

/// An I/O to start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Io {
    /// The slot that it occupies until it completes: the number of its buffer, which its completion
    /// also carries.
    pub slot: u32,
    /// The target's place in the list that the backend was opened with.
    pub target: u32,
    /// Whether it reads into the slot's buffer or writes from it.
    pub direction: Direction,
    /// Its offset, in bytes from the target's start.
    pub offset: u64,
    /// Its length in bytes: at least one, and at most the buffer's length.
    pub length: u32,
}

/// A request to a target that is neither a read nor a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Task {
    /// Makes earlier writes durable: their data alone, or all metadata of the file as well.
    Flush {
        /// The data alone, with the metadata that is needed to find it.
        data_only: bool,
    },
    /// Discards the content of a range.
    Trim {
        /// The range's start, in bytes from the target's start.
        offset: u64,
        /// Its length.
        length: u32,
    },
}

impl Task {
    /// The result of its completion if it succeeded.
    pub fn whole(self) -> u32 {
        match self {
            Self::Flush { .. } => 0,
            Self::Trim { length, .. } => length,
        }
    }
}

/// An I/O that completed or failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// The slot that is free again.
    pub slot: u32,
    /// The bytes that moved, or a negative errno, or a result of [`nvme_failure`].
    pub result: i32,
    /// When its completion was seen.
    pub at: Instant,
}

/// No errno is this large: lower results are NVMe statuses.
const NVME_FAILURE: i32 = -0x1_0000;

/// A completion's result that stands for the status of an NVMe command that failed.
pub fn nvme_failure(status: u16) -> i32 {
    NVME_FAILURE - i32::from(status)
}

/// The meaning of a result that is not the whole block.
pub fn failure(result: i32) -> ErrorKind {
    match u32::try_from(result) {
        Ok(bytes) => ErrorKind::Short(bytes),
        Err(_) if result <= NVME_FAILURE => ErrorKind::Nvme((NVME_FAILURE - result) as u16),
        Err(_) => ErrorKind::Errno(-result),
    }
}

/// The shape of a real backend when a worker opens it.
#[derive(Clone, Debug, PartialEq)]
pub struct Shape {
    /// The most I/Os in flight; slots are numbered from 0.
    pub slots: u32,
    /// The length of each slot's buffer: that of the largest I/O.
    pub block_size: u32,
    /// Whether there will be reads.
    pub reads: bool,
    /// Whether there will be writes. With both, each slot has two buffers, so that data from a read
    /// is never written: the old content of a target may be all zeros.
    pub writes: bool,
    /// Repeats the buffers' random content.
    pub seed: u64,
    /// The payload.
    pub content: Content,
    /// The flags of each read and each write.
    pub flags: CallFlags,
    /// How the targets are mapped, if I/Os are copies; only `sync` is opened in this way.
    pub mapped: Option<Mapped>,
    /// The modes of io_uring; the other backends are only opened without any.
    pub ring: RingMode,
    /// Whether the buffers are in large pages.
    pub large_pages: bool,
}

/// How targets are mapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mapped {
    /// Whether each write waits until it is durable (msync).
    pub flushes: bool,
    /// The advice to the kernel on how the mapping will be used.
    pub hint: Option<Hint>,
}

impl Mapped {
    /// The mapping of an access, if its targets are mapped.
    pub fn of(access: Access) -> Option<Self> {
        let flushes = access.sync != SyncMode::None;
        access.mapped.then_some(Self { flushes, hint: access.hint })
    }
}

impl Shape {
    /// One slot that reads and writes blocks of 4 KiB, random bytes.
    pub const USUAL: Self = Self {
        slots: 1,
        block_size: 4096,
        reads: true,
        writes: true,
        seed: 1,
        content: Content::RANDOM,
        flags: CallFlags([0; 2]),
        mapped: None,
        ring: RingMode::USUAL,
        large_pages: false,
    };
}

/// Serves I/Os and owns the clock: a simulated target has simulated time.
///
/// None of the calls allocates, locks or logs after the backend was opened.
pub trait Backend {
    /// How long before its due time an I/O may be prepared while no I/O is in flight. Zero if the
    /// time stands still unless somebody waits.
    const PREPARES_EARLY: Span = Span(0);

    /// The current time of this backend.
    fn now(&mut self) -> Instant;

    /// How many I/Os to queue at most before it gets a chance to start them.
    #[inline]
    fn batch(&self) -> usize {
        usize::MAX
    }

    /// Prepares a write of this many bytes by a slot that is not in flight: gives its buffer
    /// content that was not written before, unless another payload was requested. A simulated
    /// target has none.
    fn refresh(&mut self, slot: u32, length: u32);

    /// Queues an I/O. It starts at the next `wait`.
    fn push(&mut self, io: Io);

    /// Queues a batch of I/Os.
    #[inline]
    fn push_all(&mut self, ios: impl Iterator<Item = Io>) {
        ios.for_each(|io| self.push(io));
    }

    /// Queues a task for a target, in a free slot. Not called on a backend without tasks.
    fn push_task(&mut self, _slot: u32, _target: u32, task: Task) {
        unreachable!("{task:?} is asked of a backend that has no tasks");
    }

    /// Starts every queued I/O, then waits for a completion or until `deadline`. May return earlier
    /// without a completion, when a signal came.
    ///
    /// If the deadline is not after now, it starts the queued I/Os and checks for completions
    /// without waiting.
    fn wait(&mut self, deadline: Instant);

    /// Hands over the I/Os that had completed when the last wait ended.
    fn reap(&mut self, take: impl FnMut(Completion));

    /// Waits and appends the completions. So that this does not allocate, `completions` has room
    /// for as many as there are slots.
    fn wait_and_reap(&mut self, deadline: Instant, completions: &mut Vec<Completion>) {
        self.wait(deadline);
        self.reap(|completion| completions.push(completion));
    }
}

/// A backend that carries I/Os to real targets.
pub trait RealBackend: Backend + Sized {
    /// Its kind.
    const KIND: BackendKind;

    /// Makes a backend of this shape. An [`Io`] names its target by the place in `targets`.
    ///
    /// To be called on the thread that will use it: a backend does not move to another.
    ///
    /// # Errors
    ///
    /// When the kernel refuses a resource that it needs, or there is too little memory.
    fn open(targets: &[OpenTarget], shape: &Shape) -> io::Result<Self>;

    /// Prepares the calling thread for a backend of this shape. The thread exists for that alone:
    /// it makes, uses and drops the backend, shares no other descriptor that it opens, and other
    /// threads close the targets, too.
    fn prepare_thread(_shape: &Shape) {}

    /// The data that a slot writes next, while it is not in flight and before [`Backend::refresh`]
    /// is called for it once more.
    fn write_buffer(&mut self, slot: u32) -> &mut [u8];

    /// The buffer that a slot reads into, while it is not in flight.
    fn read_buffer(&mut self, slot: u32) -> &mut [u8];

    /// Sets how to wait from now on. Until then it sleeps whenever there is nothing to do.
    fn pace(&mut self, pace: Pace);

    /// How it waits now.
    fn waits(&self) -> Waits;
}

/// Why a backend does not work, and the remedy.
#[derive(Clone, Debug)]
pub(crate) struct Unusable {
    pub(crate) cause: String,
    pub(crate) remedy: String,
}

impl Unusable {
    pub(crate) fn new(cause: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { cause: cause.into(), remedy: remedy.into() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_result_that_is_not_the_whole_block_is_one_kind_of_failure() {
        assert_eq!(failure(0), ErrorKind::Short(0));
        assert_eq!(failure(512), ErrorKind::Short(512));
        assert_eq!(failure(-5), ErrorKind::Errno(5));
        for status in [0x0001, 0x4281, u16::MAX] {
            assert_eq!(failure(nvme_failure(status)), ErrorKind::Nvme(status));
        }
    }
}
