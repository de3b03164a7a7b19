//! The calls that serve I/Os: the same whether the worker makes them or a thread of its own.

use std::fs::File;
use std::io::{self, IoSlice, IoSliceMut};

use fathom_core::measure::Direction;
use rustix::io::ReadWriteFlags;

use crate::backend::{Io, Shape, Task};
use crate::buffers::Buffers;
use crate::target::OpenTarget;

/// What a slot does.
#[derive(Clone, Copy)]
pub(super) enum Work {
    /// A read or a write.
    Move(Io),
    /// Something else.
    Task { slot: u32, target: u32, task: Task },
}

impl Work {
    /// The slot that it occupies.
    #[inline]
    pub(super) fn slot(self) -> u32 {
        match self {
            Self::Move(io) => io.slot,
            Self::Task { slot, .. } => slot,
        }
    }
}

/// What the calls are made on, and what they say besides.
pub(super) struct Calls {
    files: Box<[File]>,
    /// By direction.
    flags: [ReadWriteFlags; 2],
}

impl Calls {
    pub(super) fn new(targets: &[OpenTarget], shape: &Shape) -> io::Result<Self> {
        let files = targets.iter().map(|target| target.file.try_clone());
        Ok(Self {
            files: files.collect::<io::Result<_>>()?,
            flags: shape.flags.0.map(ReadWriteFlags::from_bits_retain),
        })
    }

    /// Makes the call and waits for it. Returns the bytes that moved, or a negative errno.
    #[inline]
    pub(super) fn serve(&self, work: Work, buffer: &mut Buffers) -> i32 {
        match work {
            Work::Move(io) => self.move_data(io, buffer.get(io.direction, 0)),
            Work::Task { target, task, .. } => self.do_task(target, task),
        }
    }

    fn do_task(&self, target: u32, task: Task) -> i32 {
        let file = &self.files[target as usize];
        let result = rustix::io::retry_on_intr(|| match task {
            Task::Flush { data_only: true } => rustix::fs::fdatasync(file),
            Task::Flush { data_only: false } => rustix::fs::fsync(file),
        });
        match result {
            Ok(()) => task.whole() as i32,
            Err(errno) => -errno.raw_os_error(),
        }
    }

    #[inline]
    fn move_data(&self, io: Io, buffer: &mut [u8]) -> i32 {
        let file = &self.files[io.target as usize];
        let buffer = &mut buffer[..io.length as usize];
        let flags = self.flags[io.direction as usize];
        let plain = flags.is_empty();
        let result = rustix::io::retry_on_intr(|| match io.direction {
            Direction::Read if plain => rustix::io::pread(file, &mut *buffer, io.offset),
            Direction::Write if plain => rustix::io::pwrite(file, &*buffer, io.offset),
            Direction::Read => {
                rustix::io::preadv2(file, &mut [IoSliceMut::new(buffer)], io.offset, flags)
            }
            Direction::Write => {
                rustix::io::pwritev2(file, &[IoSlice::new(buffer)], io.offset, flags)
            }
        });
        match result {
            // The kernel moves at most 2 GiB less a page at once.
            Ok(bytes) => bytes as i32,
            Err(errno) => -errno.raw_os_error(),
        }
    }
}
