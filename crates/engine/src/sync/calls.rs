//! The calls that serve I/Os: the same whether the worker makes them or a thread of its own.

use std::fs::File;
use std::io::{self, IoSlice, IoSliceMut};

use fathom_core::measure::Direction;
use rustix::io::ReadWriteFlags;

use crate::backend::{Io, Shape};
use crate::target::OpenTarget;

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
    pub(super) fn serve(&self, io: Io, buffer: &mut [u8]) -> i32 {
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
