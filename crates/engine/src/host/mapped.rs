//! Where the bytes of a device mapper's volume are: its table, which only an ioctl gives. No popular
//! crate wraps it, so this file does, and contains no other unsafe code.
#![expect(unsafe_code, reason = "the device mapper's ioctl has no safe wrapper")]

use std::fs::File;

use fathom_core::Bytes;
use rustix::ioctl::{Opcode, Updater, ioctl, opcode};

/// The driver's control device.
const CONTROL: &str = "/dev/mapper/control";

/// The room for a table: some hundred segments.
const ROOM: usize = 64 << 10;

/// The version of the interface, which has stayed the same since Linux 2.6.
const VERSION: [u32; 3] = [4, 0, 0];

/// Asks for the table, not for the status of its targets.
const TABLE: u32 = 1 << 4;

/// The table did not fit.
const FULL: u32 = 1 << 8;

/// A part of a volume that lies on another device in one piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Segment {
    /// Where it begins in the volume.
    pub(crate) start: Bytes,
    /// How long it is.
    pub(crate) length: Bytes,
    /// The device, by major and minor number.
    pub(crate) device: (u32, u32),
    /// Where it begins on that device.
    pub(crate) on_device: Bytes,
}

/// `struct dm_ioctl`.
#[repr(C)]
struct TableHeader {
    version: [u32; 3],
    data_size: u32,
    data_start: u32,
    target_count: u32,
    open_count: i32,
    flags: u32,
    event: u32,
    padding: u32,
    device: u64,
    name: [u8; 128],
    uuid: [u8; 129],
    data: [u8; 7],
}

/// `struct dm_ioctl` with room for a table.
#[repr(C)]
struct Question {
    header: TableHeader,
    data: [u8; ROOM],
}

/// DM_TABLE_STATUS, _IOWR(0xfd, 12, struct dm_ioctl).
const GET_TABLE: Opcode = opcode::read_write::<TableHeader>(0xfd, 12);

/// The segments of a volume, in their order.
///
/// # Errors
///
/// The reason in words if there is no table, or if it has other targets than linear ones: only those
/// leave each byte where the table says.
pub(crate) fn segments((major, minor): (u32, u32)) -> Result<Vec<Segment>, String> {
    let control = File::open(CONTROL).map_err(|cause| format!("{CONTROL}: {cause}"))?;
    let size = size_of::<Question>();
    let mut question = Box::new(Question {
        header: TableHeader {
            version: VERSION,
            data_size: size as u32,
            data_start: size_of::<TableHeader>() as u32,
            target_count: 0,
            open_count: 0,
            flags: TABLE,
            event: 0,
            padding: 0,
            // As the kernel's huge_encode_dev does.
            device: u64::from(minor & 0xff | major << 8 | (minor & !0xff) << 12),
            name: [0; 128],
            uuid: [0; 129],
            data: [0; 7],
        },
        data: [0; ROOM],
    });
    // SAFETY: the kernel reads the header, and writes at most `data_size` bytes from its start on,
    // which is the size of the whole.
    unsafe { ioctl(&control, Updater::<GET_TABLE, Question>::new(&mut *question)) }
        .map_err(|cause| format!("the device mapper does not tell its table ({cause})"))?;
    let TableHeader { data_start, target_count, flags, .. } = question.header;
    if flags & FULL != 0 {
        return Err("its table is too long".to_owned());
    }
    let start = (data_start as usize).saturating_sub(size_of::<TableHeader>());
    parse(question.data.get(start..).unwrap_or_default(), target_count)
}

/// Reads targets: `struct dm_target_spec`, each with its parameters as text behind it.
fn parse(data: &[u8], targets: u32) -> Result<Vec<Segment>, String> {
    const SPEC: usize = 40;
    let torn = || "its table cannot be read".to_owned();
    let mut segments = Vec::new();
    let mut at = 0;
    for _ in 0..targets {
        let spec = data.get(at..at + SPEC).ok_or_else(torn)?;
        let long = |from: usize| u64::from_ne_bytes(spec[from..from + 8].try_into().expect("8"));
        let next = u32::from_ne_bytes(spec[20..24].try_into().expect("4")) as usize;
        let kind = text(&spec[24..]);
        if kind != "linear" {
            return Err(format!("its data is {kind}, not linear"));
        }
        let words = text(data.get(at + SPEC..).unwrap_or_default());
        let (device, sector) = words.split_once(' ').ok_or_else(torn)?;
        let (major, minor) = device.split_once(':').ok_or_else(torn)?;
        let [major, minor] = [major, minor].map(|number| number.parse().ok());
        let bytes = |sectors: u64| sectors.checked_mul(512).map(Bytes).ok_or_else(torn);
        segments.push(Segment {
            start: bytes(long(0))?,
            length: bytes(long(8))?,
            device: major.zip(minor).ok_or_else(torn)?,
            on_device: bytes(sector.parse().map_err(|_| torn())?)?,
        });
        // Counted from the first one.
        if next <= at && segments.len() < targets as usize {
            return Err(torn());
        }
        at = next;
    }
    Ok(segments)
}

/// The text up to the first zero.
fn text(bytes: &[u8]) -> &str {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    std::str::from_utf8(&bytes[..end]).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(start: u64, length: u64, next: u32, kind: &str, words: &str) -> Vec<u8> {
        let mut bytes = [start.to_ne_bytes(), length.to_ne_bytes()].concat();
        bytes.extend([0_u32.to_ne_bytes(), next.to_ne_bytes()].concat());
        bytes.extend(kind.bytes().chain(std::iter::repeat(0)).take(16));
        bytes.extend(words.bytes().chain(std::iter::repeat(0)).take(24));
        bytes
    }

    #[test]
    fn a_table_of_linear_targets_is_read() {
        let first = target(0, 2048, 64, "linear", "254:0 4096");
        let second = target(2048, 16, 128, "linear", "8:17 0");
        let data = [first, second].concat();
        let segment = |start: u64, length: u64, device, on_device: u64| Segment {
            start: Bytes(start * 512),
            length: Bytes(length * 512),
            device,
            on_device: Bytes(on_device * 512),
        };
        assert_eq!(
            parse(&data, 2),
            Ok(Vec::from([segment(0, 2048, (254, 0), 4096), segment(2048, 16, (8, 17), 0)]))
        );
        assert_eq!(parse(&data, 0), Ok(Vec::new()));
    }

    #[test]
    fn what_is_not_linear_or_torn_is_refused() {
        let crypt = target(0, 8, 64, "crypt", "aes-xts-plain64 0 0 8:1 0");
        assert_eq!(parse(&crypt, 1), Err("its data is crypt, not linear".to_owned()));
        for (data, count) in [
            (target(0, 8, 64, "linear", "8:1"), 1),
            (target(0, 8, 64, "linear", "8:x 1"), 1),
            (target(u64::MAX, 8, 64, "linear", "8:1 1"), 1),
            (target(0, 8, 0, "linear", "8:1 1"), 2),
            (target(0, 8, u32::MAX, "linear", "8:1 1"), 2),
            (Vec::new(), 1),
        ] {
            assert_eq!(parse(&data, count), Err("its table cannot be read".to_owned()));
        }
    }

    #[test]
    fn the_header_is_as_long_as_the_kernels() {
        assert_eq!(size_of::<TableHeader>(), 312);
    }
}
