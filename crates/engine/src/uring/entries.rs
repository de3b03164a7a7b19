//! The entries of a ring: reads and writes of files, or NVMe commands to a device.
//!
//! NVMe commands need submission and completion entries of twice the usual size. So a ring is made
//! for one kind or the other, and the code that fills and reaps it is compiled for each: there is
//! no decision for each I/O.

#![expect(unsafe_code, reason = "the entries' layout is the kernel's")]

use std::fmt;

use fathom_core::measure::Direction;
use io_uring::{IoUring, cqueue, opcode, squeue, types::Fixed};

use super::Facts;
use crate::access::{self, TrimWay};
use crate::backend::{Io, Task};
use crate::open_target::OpenTarget;

/// A kind of entries.
pub trait Entries: 'static {
    /// The submission entry.
    type Submission: squeue::EntryMarker + 'static;
    /// The completion entry.
    type Completion: cqueue::EntryMarker + 'static;
    /// The common part of every entry with the same buffer.
    type Prepared: Copy + fmt::Debug;
    /// The facts about its target that an entry needs.
    type Aim;

    /// The facts about the target that the ring knows by this number.
    fn aim_at(target: &OpenTarget, number: i32) -> Self::Aim;

    /// The common part of every I/O with this buffer.
    fn prepare(buffer: &Buffer, facts: Facts) -> Self::Prepared;

    /// Makes entries with this part take their data from another place, in this registered area; 0
    /// if none is registered.
    fn move_to(prepared: &mut Self::Prepared, address: *mut u8, area: u16);

    /// The entry for an I/O, which is not longer than the buffer.
    fn entry(prepared: &Self::Prepared, aim: &Self::Aim, io: Io) -> Self::Submission;

    /// The entry for a task in this slot.
    fn task(aim: &Self::Aim, slot: u32, task: Task, way: TrimWay, facts: Facts)
    -> Self::Submission;

    /// The slot of the completion.
    fn slot(completion: &Self::Completion) -> u32;

    /// How many of the I/O's bytes moved, or how it failed.
    fn result(completion: &Self::Completion, length: u32) -> i32;
}

/// The ring itself, with entries of one kind.
pub(super) type KernelRing<E> = IoUring<<E as Entries>::Submission, <E as Entries>::Completion>;

/// A buffer that an entry is made for.
pub struct Buffer {
    /// The slot it belongs to.
    pub(super) slot: u32,
    /// Whether it is for reads or for writes.
    pub(super) direction: Direction,
    /// Its address.
    pub(super) address: *mut u8,
    /// Its length.
    pub(super) length: u32,
    /// The area that contains it, by which it is registered.
    pub(super) area: u16,
    /// The flags of a read or write (RWF_*).
    pub(super) rw_flags: u32,
}

/// The kernel's `IOSQE_FIXED_FILE` and `IORING_FSYNC_DATASYNC`.
const FIXED_FILE: u8 = 1;
const FSYNC_DATASYNC: u32 = 1;
/// Its `FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE`.
const PUNCH_HOLE: u32 = 0x03;
/// Its `BLOCK_URING_CMD_DISCARD`, Linux 6.12: start and length lie where a command's own data
/// would.
const BLOCK_DISCARD: u64 = 0x1200;

/// Reads and writes of files and block devices.
pub enum Files {}

/// The kernel's submission queue entry, as far as reads and writes use it. The crate's own type has
/// private fields, and building an entry with it writes all of them twice.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
struct RawEntry {
    opcode: Opcode,
    target: i32,
    offset: u64,
    address: u64,
    length: Length,
    user_data: u64,
    buffer: BufferFields,
    rest: [u64; 2],
}

/// The operation. Aligned, so that its parts are copied together.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(4))]
pub(super) struct Opcode {
    pub(super) code: u8,
    flags: u8,
    ioprio: u16,
}

/// The length. Aligned, so that its parts are copied together.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(8))]
pub(super) struct Length {
    bytes: u32,
    pub(super) rw_flags: u32,
}

/// The buffer. Aligned, so that its parts are copied together.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(8))]
pub(super) struct BufferFields {
    /// The registered area.
    pub(super) index: u16,
    personality: u16,
    splice_fd: i32,
}

const _: () = assert!(size_of::<RawEntry>() == size_of::<squeue::Entry>());
const _: () = assert!(align_of::<RawEntry>() == align_of::<squeue::Entry>());

impl RawEntry {
    fn of(entry: squeue::Entry) -> Self {
        // SAFETY: a submission queue entry is plain data in the kernel's layout, of which this type
        // is a description, and any bits are valid in it.
        unsafe { std::mem::transmute(entry) }
    }

    #[inline]
    fn into_entry(self) -> squeue::Entry {
        // SAFETY: as above, in the other direction.
        unsafe { std::mem::transmute(self) }
    }
}

/// The common part of every read or every write of a slot, in the order of the entry.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct PreparedFile {
    address: u64,
    pub(super) length: Length,
    buffer: BufferFields,
    pub(super) opcode: Opcode,
}

impl Entries for Files {
    type Submission = squeue::Entry;
    type Completion = cqueue::Entry;
    type Prepared = PreparedFile;
    type Aim = i32;

    fn aim_at(_: &OpenTarget, number: i32) -> i32 {
        number
    }

    fn prepare(buffer: &Buffer, facts: Facts) -> PreparedFile {
        let &Buffer { direction, address, length, area, rw_flags, .. } = buffer;
        let file = Fixed(0);
        let registered = facts.registered_buffers && access::takes_registered(rw_flags);
        let entry = match (direction, registered) {
            (Direction::Read, true) => opcode::ReadFixed::new(file, address, length, area).build(),
            (Direction::Write, true) => {
                opcode::WriteFixed::new(file, address, length, area).build()
            }
            (Direction::Read, false) => opcode::Read::new(file, address, length).build(),
            (Direction::Write, false) => opcode::Write::new(file, address, length).build(),
        };
        let entry = match facts.registered_files {
            true => entry,
            false => entry.clear_flags(),
        };
        let RawEntry { opcode, address, length, buffer, .. } = RawEntry::of(entry);
        let length = Length { rw_flags, ..length };
        PreparedFile { address, length, buffer, opcode }
    }

    #[inline]
    fn move_to(prepared: &mut PreparedFile, address: *mut u8, area: u16) {
        prepared.address = address as u64;
        prepared.buffer.index = area;
    }

    #[inline]
    fn entry(prepared: &PreparedFile, target: &i32, io: Io) -> squeue::Entry {
        let PreparedFile { address, length, buffer, opcode } = *prepared;
        let entry = RawEntry {
            opcode,
            target: *target,
            offset: io.offset,
            address,
            length: Length { bytes: io.length, ..length },
            user_data: u64::from(io.slot),
            buffer,
            rest: [0; 2],
        };
        entry.into_entry()
    }

    fn task(target: &i32, slot: u32, task: Task, way: TrimWay, facts: Facts) -> squeue::Entry {
        let nop = opcode::Nop::new().build().user_data(u64::from(slot));
        let mut entry = RawEntry { target: *target, ..RawEntry::of(nop) };
        entry.opcode.flags = if facts.registered_files { FIXED_FILE } else { 0 };
        match task {
            Task::Flush { data_only } => {
                entry.opcode.code = opcode::Fsync::CODE;
                entry.length.rw_flags = if data_only { FSYNC_DATASYNC } else { 0 };
            }
            Task::Trim { offset, length } if way == TrimWay::Punch => {
                entry.opcode.code = opcode::Fallocate::CODE;
                entry.offset = offset;
                entry.address = u64::from(length);
                entry.length.bytes = PUNCH_HOLE;
            }
            Task::Trim { offset, length } => {
                entry.opcode.code = opcode::UringCmd16::CODE;
                entry.offset = BLOCK_DISCARD;
                entry.address = offset;
                entry.rest = [u64::from(length), 0];
            }
        }
        entry.into_entry()
    }

    #[inline]
    fn slot(completion: &cqueue::Entry) -> u32 {
        completion.user_data() as u32
    }

    #[inline]
    fn result(completion: &cqueue::Entry, _: u32) -> i32 {
        completion.result()
    }
}
