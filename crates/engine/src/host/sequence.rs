//! The number that the kernel gives a disk when it appears: another disk that gets the same device
//! number, such as the next loop device or a stick in the same port, has another one.

#![expect(unsafe_code, reason = "the number of an open disk has no safe interface")]

use std::fs::File;

use rustix::ioctl::{Getter, Opcode, ioctl, opcode};

use super::system::DeviceFolder;

/// BLKGETDISKSEQ of linux/fs.h.
const GET_SEQUENCE: Opcode = opcode::read::<u64>(0x12, 128);

/// The number of a disk, or of the disk that a partition is on; none before Linux 5.15.
pub(super) fn of_device(device: &DeviceFolder) -> Option<u64> {
    device.disk().as_ref().unwrap_or(device).parse("diskseq")
}

/// The number of an open disk, or of the disk that an open partition is on; none before Linux 5.15.
pub(crate) fn of_open(file: &File) -> Option<u64> {
    // SAFETY: the call writes one u64.
    unsafe { ioctl(file, Getter::<GET_SEQUENCE, u64>::new()) }.ok()
}
