//! Which extents of a file were written: only an ioctl has the answer, FIEMAP. No popular crate
//! wraps it, so this file does, and contains no other unsafe code.
#![expect(unsafe_code, reason = "FIEMAP has no safe wrapper")]

use std::fs::File;

use rustix::io::{Errno, Result};
use rustix::ioctl::{Opcode, Updater, ioctl, opcode};

/// Extents that one call returns.
const BATCH: usize = 512;

/// Writes dirty pages first, so that data that is only in memory counts as written.
const FLAG_SYNC: u32 = 1;

/// The last extent of the file.
const EXTENT_LAST: u32 = 0x1;

/// Reserved, and never written.
const EXTENT_UNWRITTEN: u32 = 0x800;

/// It is shared with another file, a snapshot or another place of the file.
const EXTENT_SHARED: u32 = 0x2000;

/// An extent of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Extent {
    /// Where it begins in the file.
    pub(crate) start: u64,
    /// How long it is.
    pub(crate) length: u64,
    /// Where it begins on the device of its file system, if that has only one.
    pub(crate) physical: u64,
    /// Whether it was ever written.
    pub(crate) written: bool,
    /// Whether it is shared with others.
    pub(crate) shared: bool,
    /// Whether the file system says that it is the file's last.
    pub(crate) last: bool,
}

/// `struct fiemap_extent`.
#[derive(Clone, Copy, Default)]
#[repr(C)]
struct RawExtent {
    logical: u64,
    physical: u64,
    length: u64,
    reserved64: [u64; 2],
    flags: u32,
    reserved: [u32; 3],
}

/// `struct fiemap`, whose size without extents the ioctl's number contains.
#[repr(C)]
struct Header {
    start: u64,
    length: u64,
    flags: u32,
    mapped_extents: u32,
    extent_count: u32,
    reserved: u32,
}

/// `struct fiemap` with room for a batch.
#[repr(C)]
struct Fiemap {
    header: Header,
    extents: [RawExtent; BATCH],
}

/// FS_IOC_FIEMAP, _IOWR('f', 11, struct fiemap).
const GET_EXTENTS: Opcode = opcode::read_write::<Header>(b'f', 11);

/// A batch of the extents from `start` on, in order; empty when there are no more.
///
/// # Errors
///
/// `EOPNOTSUPP` or `ENOTTY` if the file system cannot tell.
pub(crate) fn extents(file: &File, start: u64) -> Result<Vec<Extent>> {
    let mut map = Box::new(Fiemap {
        header: Header {
            start,
            length: u64::MAX - start,
            flags: if start == 0 { FLAG_SYNC } else { 0 },
            mapped_extents: 0,
            extent_count: BATCH as u32,
            reserved: 0,
        },
        extents: [RawExtent::default(); BATCH],
    });
    // SAFETY: the kernel reads the header, and writes at most `extent_count` extents behind it,
    // which is the length of the array.
    unsafe { ioctl(file, Updater::<GET_EXTENTS, Fiemap>::new(&mut *map)) }?;
    let mapped = map.extents.get(..map.header.mapped_extents as usize).ok_or(Errno::INVAL)?;
    let extent = |raw: &RawExtent| Extent {
        start: raw.logical,
        length: raw.length,
        physical: raw.physical,
        written: raw.flags & EXTENT_UNWRITTEN == 0,
        shared: raw.flags & EXTENT_SHARED != 0,
        last: raw.flags & EXTENT_LAST != 0,
    };
    Ok(mapped.iter().map(extent).collect())
}
