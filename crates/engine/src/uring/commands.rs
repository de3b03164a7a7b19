//! NVMe read and write commands as the kernel takes them in an io_uring entry (IORING_OP_URING_CMD,
//! Linux 5.19; with registered buffers Linux 6.1). They reach the device directly: no scheduler, no
//! merging, no splitting, and no page cache.

#![expect(unsafe_code, reason = "the entry's layout is the kernel's")]

use fathom_core::measure::Direction;
use io_uring::{cqueue, opcode, squeue, types::Fixed};

use super::Facts;
use super::entries::{Buffer, BufferFields, Entries};
use crate::access::TrimWay;
use crate::backend::{Io, Task, nvme_failure};
use crate::open_target::{OpenTarget, Passthrough};

/// `NVME_URING_CMD_IO`: _IOWR('N', 0x80, struct nvme_uring_cmd).
const PASS_THROUGH: u32 = 3 << 30 | (size_of::<Command>() as u32) << 16 | (b'N' as u32) << 8 | 0x80;
const _: () = assert!(PASS_THROUGH == 0xC048_4E80);

/// The opcodes of the NVM command set.
const FLUSH: u8 = 0x00;
const WRITE: u8 = 0x01;
const READ: u8 = 0x02;

/// In command dword 12: the write completes only when it is durable.
const FORCE_UNIT_ACCESS: u32 = 1 << 30;

/// `struct nvme_uring_cmd`.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
struct Command {
    opcode: u8,
    flags: u8,
    reserved1: u16,
    namespace: u32,
    dword2: u32,
    dword3: u32,
    metadata: u64,
    address: u64,
    metadata_length: u32,
    length: u32,
    /// The first logical block, its low half.
    dword10: u32,
    /// Its high half.
    dword11: u32,
    /// How many logical blocks, less one, and flags.
    dword12: u32,
    dword13: u32,
    dword14: u32,
    dword15: u32,
    timeout_ms: u32,
    reserved2: u32,
}

const _: () = assert!(size_of::<Command>() == 72);

/// The kernel's submission queue entry of 128 bytes with an NVMe command in it.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct CommandEntry {
    opcode: u8,
    flags: u8,
    ioprio: u16,
    fd: i32,
    kernel: [u64; 4],
    buffer: BufferFields,
    command: Command,
    rest: u64,
}

const _: () = assert!(size_of::<CommandEntry>() == size_of::<squeue::Entry128>());
const _: () = assert!(align_of::<CommandEntry>() == align_of::<squeue::Entry128>());
const _: () = assert!(std::mem::offset_of!(CommandEntry, command) == 48);

impl CommandEntry {
    fn of(entry: squeue::Entry128) -> Self {
        // SAFETY: a submission queue entry is plain data in the kernel's layout, of which this type
        // is a description, and any bits are valid in it.
        unsafe { std::mem::transmute(entry) }
    }

    /// Makes the command take its data from another place.
    #[inline]
    fn move_to(&mut self, address: *mut u8, area: u16) {
        self.command.address = address as u64;
        self.buffer.index = area;
    }

    #[inline]
    fn into_entry(self) -> squeue::Entry128 {
        // SAFETY: as above, in the other direction.
        unsafe { std::mem::transmute(self) }
    }
}

/// The common part of every command in one direction to one target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Aim {
    /// Its number for the ring.
    target: i32,
    namespace: u32,
    block_shift: u32,
    /// The flags in command dword 12, by direction.
    flags: [u32; 2],
}

impl Aim {
    fn new(target: &Passthrough, number: i32) -> Self {
        let write = if target.force_unit_access { FORCE_UNIT_ACCESS } else { 0 };
        Self {
            target: number,
            namespace: target.namespace,
            block_shift: target.block_shift,
            flags: [0, write],
        }
    }

    /// The entry for an I/O at this target.
    #[inline]
    fn at(&self, prepared: CommandEntry, io: Io) -> CommandEntry {
        let mut entry = prepared;
        // The command has 16 bits for the number of blocks; its device accepts less.
        let blocks = (io.length >> self.block_shift) - 1;
        assert!(blocks <= 0xFFFF && io.length.trailing_zeros() >= self.block_shift);
        let first = io.offset >> self.block_shift;
        entry.fd = self.target;
        entry.command.namespace = self.namespace;
        entry.command.dword10 = first as u32;
        entry.command.dword11 = (first >> 32) as u32;
        entry.command.dword12 = blocks | self.flags[io.direction as usize];
        entry.command.length = io.length;
        entry
    }
}

/// The common part of every command with this buffer.
fn prepare(buffer: &Buffer, facts: Facts) -> CommandEntry {
    let &Buffer { slot, direction, address, length, area, .. } = buffer;
    // A write takes its data from anywhere in a large registered area, and kernels before 6.4
    // refuse a command that takes a part of one with EINVAL; a read goes to a separate buffer.
    let registered = facts.registered_buffers && direction == Direction::Read;
    let area = registered.then_some(area);
    let entry = opcode::UringCmd80::new(Fixed(0), PASS_THROUGH).buf_index(area).build();
    let entry = match facts.registered_files {
        true => entry,
        false => entry.clear_flags(),
    };
    let mut entry = CommandEntry::of(entry.user_data(u64::from(slot)));
    entry.command = Command {
        opcode: match direction {
            Direction::Read => READ,
            Direction::Write => WRITE,
        },
        address: address as u64,
        length,
        ..Command::default()
    };
    entry
}

/// The command that makes the content of the device's volatile cache durable.
fn flush(aim: &Aim, slot: u32, facts: Facts) -> CommandEntry {
    let entry = opcode::UringCmd80::new(Fixed(0), PASS_THROUGH).build();
    let entry = match facts.registered_files {
        true => entry,
        false => entry.clear_flags(),
    };
    let mut entry = CommandEntry::of(entry.user_data(u64::from(slot)));
    entry.fd = aim.target;
    entry.command = Command { opcode: FLUSH, namespace: aim.namespace, ..Command::default() };
    entry
}

/// NVMe commands to an NVMe generic device.
pub enum Commands {}

impl Entries for Commands {
    type Submission = squeue::Entry128;
    type Completion = cqueue::Entry32;
    type Prepared = CommandEntry;
    type Aim = Aim;

    fn aim_at(target: &OpenTarget, number: i32) -> Aim {
        let passthrough = target.passthrough.as_ref();
        let passthrough = passthrough.expect("only such targets are given to this ring");
        Aim::new(passthrough, number)
    }

    fn prepare(buffer: &Buffer, facts: Facts) -> CommandEntry {
        prepare(buffer, facts)
    }

    #[inline]
    fn move_to(prepared: &mut CommandEntry, address: *mut u8, area: u16) {
        prepared.move_to(address, area);
    }

    #[inline]
    fn entry(prepared: &CommandEntry, aim: &Aim, io: Io) -> squeue::Entry128 {
        aim.at(*prepared, io).into_entry()
    }

    fn task(aim: &Aim, slot: u32, task: Task, _: TrimWay, facts: Facts) -> squeue::Entry128 {
        match task {
            // A namespace has only data, no metadata.
            Task::Flush { .. } => flush(aim, slot, facts).into_entry(),
            Task::Trim { .. } => unreachable!("trims of such targets are refused"),
        }
    }

    #[inline]
    fn slot(completion: &cqueue::Entry32) -> u32 {
        completion.user_data() as u32
    }

    #[inline]
    fn result(completion: &cqueue::Entry32, length: u32) -> i32 {
        match completion.result() {
            // A command that succeeds does not report the bytes that it moved: all of them.
            0 => length as i32,
            status @ 1.. => nvme_failure(status as u16),
            errno => errno,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::uring::setup::Setup;

    /// The bytes of an entry, as the kernel reads them.
    fn bytes(entry: &squeue::Entry128) -> [u8; 128] {
        // SAFETY: an entry is 128 bytes of plain data.
        unsafe { std::ptr::from_ref(entry).cast::<[u8; 128]>().read() }
    }

    fn word(bytes: &[u8; 128], at: usize) -> u32 {
        u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap())
    }

    #[test]
    fn a_command_lies_in_its_entry_where_the_kernel_looks_for_it() {
        let mut data = [0u8; 8192];
        let facts = Facts {
            setup: Setup::Plain,
            registered_buffers: true,
            registered_files: true,
            timed_wait: true,
        };
        let buffer = Buffer {
            slot: 7,
            direction: Direction::Write,
            address: data.as_mut_ptr(),
            length: 8192,
            area: 9,
            rw_flags: 0,
        };
        let target = Passthrough::invented(3, 12, true);
        let aim = Aim::new(&target, 5);
        let offset = 0x12_3456_7800_0000;
        let io = Io { slot: 7, target: 0, direction: Direction::Write, offset, length: 8192 };
        let raw = bytes(&Commands::entry(&prepare(&buffer, facts), &aim, io));
        // IORING_OP_URING_CMD to a registered file, from memory that need not be registered.
        assert_eq!((raw[0], raw[1], word(&raw, 4)), (46, 1, 5));
        assert_eq!((word(&raw, 8), word(&raw, 28)), (0xC048_4E80, 0));
        assert_eq!(raw[32], 7);
        assert_eq!((raw[48], word(&raw, 52)), (WRITE, 3));
        assert_eq!(raw[72..80], (data.as_ptr() as u64).to_le_bytes());
        assert_eq!(word(&raw, 84), 8192);
        let first = offset >> 12;
        assert_eq!((word(&raw, 88), word(&raw, 92)), (first as u32, (first >> 32) as u32));
        assert_eq!(word(&raw, 96), FORCE_UNIT_ACCESS | 1);

        let raw = bytes(&Commands::task(
            &aim,
            6,
            Task::Flush { data_only: true },
            TrimWay::Discard,
            facts,
        ));
        assert_eq!((raw[0], raw[1], word(&raw, 4)), (46, 1, 5));
        assert_eq!((word(&raw, 8), word(&raw, 28), raw[32]), (0xC048_4E80, 0, 6));
        assert_eq!((raw[48], word(&raw, 52)), (FLUSH, 3));
        assert!(raw[56..].iter().all(|&byte| byte == 0));

        // A read goes into a registered buffer.
        let prepared = prepare(&Buffer { direction: Direction::Read, ..buffer }, facts);
        let read = Io { direction: Direction::Read, ..io };
        let raw = bytes(&Commands::entry(&prepared, &aim, read));
        assert_eq!((word(&raw, 28), raw[40], raw[48]), (1, 9, READ));

        // Without registered files or buffers.
        let facts = Facts { registered_buffers: false, registered_files: false, ..facts };
        let prepared = prepare(&Buffer { direction: Direction::Read, ..buffer }, facts);
        let raw = bytes(&Commands::entry(&prepared, &aim, read));
        assert_eq!((raw[1], word(&raw, 28), raw[48], word(&raw, 96)), (0, 0, READ, 1));
    }
}
