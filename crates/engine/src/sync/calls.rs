//! The calls that serve I/Os: the same for the worker's own thread and for a helper thread.

#![expect(unsafe_code, reason = "a discard has no safe wrapper, nor has a table of files")]

use std::fs::File;
use std::io::{self, IoSlice, IoSliceMut};

use fathom_core::measure::Direction;
use rustix::fs::FallocateFlags;
use rustix::io::ReadWriteFlags;
use rustix::ioctl::{Opcode, Setter, ioctl};
use rustix::thread::UnshareFlags;

use super::mapping::Mapping;
use crate::access::TrimWay;
use crate::backend::{Io, Mapped, Shape, Task};
use crate::buffers::Buffers;
use crate::open_target::OpenTarget;

/// The request of a slot.
#[derive(Clone, Copy)]
pub(super) enum Work {
    /// A read or a write.
    Move(Io),
    /// A task.
    Task { slot: u32, target: u32, task: Task },
}

impl Work {
    /// The slot that it occupies.
    #[inline]
    pub(super) fn slot(&self) -> u32 {
        match self {
            Self::Move(io) => io.slot,
            Self::Task { slot, .. } => *slot,
        }
    }
}

/// The objects of the calls, and their flags.
pub(super) struct Calls {
    files: Box<[File]>,
    /// How to trim each target.
    trims: Box<[TrimWay]>,
    /// By direction.
    flags: [ReadWriteFlags; 2],
    /// Each target as memory, if I/Os are copies; none if they are calls.
    mappings: Box<[Mapping]>,
    /// Whether each write to it waits until it is durable.
    flushes: bool,
}

/// Gives this thread its own table of open files, with the files that are open now. A call by
/// number then need not count itself as a user of its file, which is a tenth of a short call: as in
/// a program with one thread. If this is forbidden, nothing changes.
pub(super) fn own_table_of_files() {
    // SAFETY: files that this thread opens from here on are used and closed by it alone, it never
    // uses files that other threads open from here on, and other threads also close the files that
    // it was given: see `RealBackend::prepare_thread`.
    let _ = unsafe { rustix::thread::unshare_unsafe(UnshareFlags::FILES) };
}

impl Calls {
    pub(super) fn new(targets: &[OpenTarget], shape: &Shape) -> io::Result<Self> {
        let files = targets.iter().map(|target| target.file.try_clone());
        let trims = targets.iter().map(|target| TrimWay::of(&target.file));
        let mapped = |target: &OpenTarget, hint| {
            Mapping::new(&target.file, target.size.0, shape.writes, hint)
        };
        let mappings = match shape.mapped {
            Some(Mapped { hint, .. }) => targets.iter().map(|one| mapped(one, hint)).collect(),
            None => Ok(Box::default()),
        };
        Ok(Self {
            mappings: mappings?,
            flushes: shape.mapped.is_some_and(|mapped| mapped.flushes),
            trims: trims.collect::<io::Result<_>>()?,
            files: files.collect::<io::Result<_>>()?,
            flags: shape.flags.0.map(ReadWriteFlags::from_bits_retain),
        })
    }

    /// Makes the call and waits for it. Returns the bytes that moved, or a negative errno.
    #[inline]
    pub(super) fn serve(&self, work: &Work, buffer: &mut Buffers) -> i32 {
        match work {
            Work::Move(io) => match io.direction {
                Direction::Read => self.read(io, buffer.get(Direction::Read, 0)),
                Direction::Write => self.write(io, buffer.content(0)),
            },
            &Work::Task { target, task, .. } => self.do_task(target, task),
        }
    }

    fn do_task(&self, target: u32, task: Task) -> i32 {
        let file = &self.files[target as usize];
        let result = rustix::io::retry_on_intr(|| match task {
            Task::Flush { data_only: true } => rustix::fs::fdatasync(file),
            Task::Flush { data_only: false } => rustix::fs::fsync(file),
            Task::Trim { offset, length } => match self.trims[target as usize] {
                TrimWay::Punch => punch(file, offset, u64::from(length)),
                TrimWay::Discard => discard(file, offset, u64::from(length)),
            },
        });
        match result {
            Ok(()) => task.whole() as i32,
            Err(errno) => -errno.raw_os_error(),
        }
    }

    #[inline]
    fn read(&self, io: &Io, buffer: &mut [u8]) -> i32 {
        let buffer = &mut buffer[..io.length as usize];
        if let Some(mapping) = self.mappings.get(io.target as usize) {
            return mapping.read(io.offset, buffer);
        }
        let (file, flags) = (&self.files[io.target as usize], self.flags[Direction::Read as usize]);
        moved(rustix::io::retry_on_intr(|| match flags.is_empty() {
            true => rustix::io::pread(file, &mut *buffer, io.offset),
            false => rustix::io::preadv2(file, &mut [IoSliceMut::new(buffer)], io.offset, flags),
        }))
    }

    #[inline]
    fn write(&self, io: &Io, buffer: &[u8]) -> i32 {
        let buffer = &buffer[..io.length as usize];
        if let Some(mapping) = self.mappings.get(io.target as usize) {
            return mapping.write(io.offset, buffer, self.flushes);
        }
        let (file, flags) =
            (&self.files[io.target as usize], self.flags[Direction::Write as usize]);
        moved(rustix::io::retry_on_intr(|| match flags.is_empty() {
            true => rustix::io::pwrite(file, buffer, io.offset),
            false => rustix::io::pwritev2(file, &[IoSlice::new(buffer)], io.offset, flags),
        }))
    }
}

/// Punches a hole into a file, whose length does not change.
pub(crate) fn punch(file: &File, offset: u64, length: u64) -> rustix::io::Result<()> {
    let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    rustix::fs::fallocate(file, flags, offset, length)
}

/// The kernel's `BLKDISCARD`.
const BLKDISCARD: Opcode = 0x1277;

/// Discards a range of a block device.
pub(crate) fn discard(file: &File, offset: u64, length: u64) -> rustix::io::Result<()> {
    // SAFETY: the kernel reads two words, which exist.
    unsafe { ioctl(file, Setter::<BLKDISCARD, [u64; 2]>::new([offset, length])) }
}

/// The bytes that moved, or a negative errno.
#[inline]
fn moved(result: rustix::io::Result<usize>) -> i32 {
    match result {
        // The kernel moves at most 2 GiB less a page at once.
        Ok(bytes) => bytes as i32,
        Err(errno) => -errno.raw_os_error(),
    }
}
