//! The signatures that file systems, arrays, volumes and partition tables leave on a device. A
//! device with one of them holds somebody's data, whether it is mounted or not.

use std::cell::Cell;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// A signature at a fixed place.
struct Mark {
    kind: &'static str,
    offset: u64,
    bytes: &'static [u8],
}

const fn mark(kind: &'static str, offset: u64, bytes: &'static [u8]) -> Mark {
    Mark { kind, offset, bytes }
}

/// The magic of bcache and of the first bcachefs.
const BCACHE: &[u8] = b"\xc6\x85\x73\xf6\x4e\x1a\x45\xca\x82\x65\xf5\x7f\x48\xba\x6d\x81";
/// The magic of bcachefs.
const BCACHEFS: &[u8] = b"\xc6\x85\x73\xf6\x66\xce\x90\xa9\xd9\x6a\x60\xcf\x80\x3d\xf7\xef";
/// The magic of md's superblocks, in little endian, as in all but ancient ones.
const MD: &[u8] = &[0xfc, 0x4e, 0x2b, 0xa9];

/// Signatures of four bytes and more, which data does not contain by chance.
const MARKS: &[Mark] = &[
    mark("xfs", 0, b"XFSB"),
    mark("btrfs", 65536 + 64, b"_BHRfS_M"),
    mark("f2fs", 1024, &[0x10, 0x20, 0xf5, 0xf2]),
    mark("bcache", 4096 + 24, BCACHE),
    mark("bcachefs", 4096 + 24, BCACHEFS),
    mark("LUKS encryption", 0, b"LUKS\xba\xbe"),
    mark("BitLocker encryption", 3, b"-FVE-FS-"),
    mark("NTFS", 3, b"NTFS    "),
    mark("exFAT", 3, b"EXFAT   "),
    mark("ReFS", 3, b"\0\0\0\0\0ReFS"),
    mark("FAT", 82, b"FAT32   "),
    mark("FAT", 54, b"FAT16   "),
    mark("FAT", 54, b"FAT12   "),
    mark("ISO 9660", 32769, b"CD001"),
    mark("UDF", 32769, b"BEA01"),
    mark("squashfs", 0, b"hsqs"),
    mark("erofs", 1024, &[0xe2, 0xe1, 0xf5, 0xe0]),
    mark("APFS", 32, b"NXSB"),
    mark("HFS+", 1024, b"H+\0\x04"),
    mark("jfs", 32768, b"JFS1"),
    mark("reiserfs", 65536 + 52, b"ReIsEr"),
    mark("gfs2", 65536, &[0x01, 0x16, 0x19, 0x70]),
    mark("ocfs2", 8192, b"OCFSV2"),
    mark("Stratis", 512 + 4, b"!Stra0tis\x86\xff\x02"),
    mark("ceph bluestore", 0, b"bluestore block device"),
    mark("Oracle ASM", 32, b"ORCLDISK"),
    mark("VMFS member", 1 << 20, &[0x0d, 0xd0, 0x01, 0xc0]),
    mark("VMFS", 2 << 20, &[0x5e, 0xf1, 0xab, 0x2f]),
    mark("md array member", 0, MD),
    mark("md array member", 4096, MD),
    mark("LVM physical volume", 512, b"LABELONE"),
    mark("LVM physical volume", 0, b"LABELONE"),
    mark("LVM physical volume", 1024, b"LABELONE"),
    mark("LVM physical volume", 1536, b"LABELONE"),
    mark("GPT partition table", 512, b"EFI PART"),
    mark("GPT partition table", 4096, b"EFI PART"),
    mark("swap", 4086, b"SWAPSPACE2"),
    mark("swap", 4086, b"SWAP-SPACE"),
    mark("swap", 8182, b"SWAPSPACE2"),
    mark("swap", 16374, b"SWAPSPACE2"),
    mark("swap", 65526, b"SWAPSPACE2"),
    mark("hibernation image", 4086, b"S1SUSPEND"),
];

/// Every kind of signature on the device, without repetition, and the reason why there may be more:
/// an error that kept some place from being read.
pub(crate) fn signatures(file: &File, size: u64) -> (Vec<&'static str>, Option<io::Error>) {
    let device = Reader { file, size, failure: Cell::new(None) };
    let mut found: Vec<&'static str> = Vec::new();
    let fixed = MARKS.iter().filter(|mark| device.is_at(mark.offset, mark.bytes));
    let computed = [ext(&device), zfs(&device), partition_table(&device), nilfs(&device)];
    let kinds =
        fixed.map(|mark| mark.kind).chain(computed.into_iter().flatten()).chain(at_end(&device));
    for kind in kinds {
        if !found.contains(&kind) {
            found.push(kind);
        }
    }
    (found, device.failure.into_inner())
}

struct Reader<'a> {
    file: &'a File,
    size: u64,
    /// Why a place within the device could not be read.
    failure: Cell<Option<io::Error>>,
}

impl Reader<'_> {
    fn read<const N: usize>(&self, offset: u64) -> Option<[u8; N]> {
        let mut bytes = [0; N];
        self.fill(&mut bytes, offset).then_some(bytes)
    }

    /// Reads the bytes at an offset; false if the device ends before, or cannot be read.
    fn fill(&self, bytes: &mut [u8], offset: u64) -> bool {
        let fits = offset.checked_add(bytes.len() as u64).is_some_and(|end| end <= self.size);
        if !fits {
            return false;
        }
        match self.file.read_exact_at(bytes, offset) {
            Ok(()) => true,
            Err(cause) => {
                self.failure.set(Some(cause));
                false
            }
        }
    }

    fn is_at(&self, offset: u64, expected: &[u8]) -> bool {
        let mut bytes = [0; 32];
        let bytes = &mut bytes[..expected.len()];
        self.fill(bytes, offset) && bytes == expected
    }

    fn u32(&self, offset: u64) -> Option<u32> {
        self.read(offset).map(u32::from_le_bytes)
    }

    /// The offset of a place at this distance from the end.
    fn before_end(&self, distance: u64) -> Option<u64> {
        self.size.checked_sub(distance)
    }
}

/// ext's signature has two bytes only, so neighboring fields with few possible values are checked
/// too.
fn ext(device: &Reader<'_>) -> Option<&'static str> {
    let block = device.read::<256>(1024)?;
    let u32_at =
        |at: usize| u32::from_le_bytes([block[at], block[at + 1], block[at + 2], block[at + 3]]);
    let plausible = block[0x38..0x3a] == [0x53, 0xef]
        && u32_at(0x18) <= 6
        && u32_at(0x4c) <= 1
        && u32_at(0x04) != 0;
    if !plausible {
        return None;
    }
    let (compatible, incompatible) = (u32_at(0x5c), u32_at(0x60));
    Some(match (incompatible, compatible) {
        (features, _) if features & 0x8 != 0 => "ext journal",
        (features, _) if features & 0x2c0 != 0 => "ext4",
        (_, features) if features & 0x4 != 0 => "ext3",
        _ => "ext2",
    })
}

/// nilfs2's signature has two bytes only; its revision and block size say more.
fn nilfs(device: &Reader<'_>) -> Option<&'static str> {
    let revision = device.u32(1024)?;
    let magic = device.read::<2>(1030)?;
    let log_block_size = device.u32(1024 + 20)?;
    (magic == [0x34, 0x34] && revision == 2 && log_block_size <= 6).then_some("nilfs2")
}

/// A label of ZFS has an array of uberblocks; those at the start are at 128 KiB.
fn zfs(device: &Reader<'_>) -> Option<&'static str> {
    let magic = 0x0000_0000_00ba_b10cu64;
    (0..128).find_map(|place| {
        let bytes = device.read::<8>((128 << 10) + place * 1024)?;
        let found = u64::from_le_bytes(bytes) == magic || u64::from_be_bytes(bytes) == magic;
        found.then_some("zfs")
    })
}

/// An MBR, by its signature and four plausible entries: FAT and boot loaders share the signature.
fn partition_table(device: &Reader<'_>) -> Option<&'static str> {
    let sector = device.read::<512>(0)?;
    if sector[510..] != [0x55, 0xaa] {
        return None;
    }
    let entries = sector[446..510].chunks_exact(16);
    let possible = entries.clone().all(|entry| matches!(entry[0], 0x00 | 0x80));
    let used = entries.clone().any(|entry| entry[4] != 0 && entry[12..16] != [0; 4]);
    (possible && used).then_some("MBR partition table")
}

/// Signatures at the end of the device.
fn at_end(device: &Reader<'_>) -> Vec<&'static str> {
    let mut found = Vec::new();
    // md 0.90: the last whole 64 KiB but one. md 1.0: at least 8 KiB from the end, on 4 KiB.
    let old = device.before_end(65536).map(|offset| offset & !65535);
    let one = device.before_end(8192).map(|offset| offset & !4095);
    if [old, one].into_iter().flatten().any(|offset| device.is_at(offset, MD)) {
        found.push("md array member");
    }
    let backup = [512, 4096].into_iter().filter_map(|sector| device.before_end(sector));
    if backup.into_iter().any(|offset| device.is_at(offset, b"EFI PART")) {
        found.push("GPT partition table");
    }
    let intel = device.before_end(1024);
    if intel.is_some_and(|offset| device.is_at(offset, b"Intel Raid ISM Cfg Sig. ")) {
        found.push("Intel RAID member");
    }
    let ddf = device.before_end(512);
    if ddf.is_some_and(|offset| device.is_at(offset, &[0xde, 0x11, 0xde, 0x11])) {
        found.push("DDF RAID member");
    }
    // DRBD's magic, in big endian, 60 bytes into the last 4 KiB; version 8, 9.
    let drbd = device.before_end(4096).map(|offset| (offset & !4095) + 60);
    let is_drbd = |offset: u64| {
        device.is_at(offset, &[0x83, 0x74, 0x02, 0x6b])
            || device.is_at(offset, &[0x83, 0x74, 0x02, 0x6d])
    };
    if drbd.is_some_and(is_drbd) {
        found.push("DRBD");
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: u64 = 4 << 20;

    fn found(marks: &[(u64, &[u8])]) -> Vec<&'static str> {
        let file = tempfile::tempfile().unwrap();
        file.set_len(SIZE).unwrap();
        for (offset, bytes) in marks {
            file.write_all_at(bytes, *offset).unwrap();
        }
        let (kinds, failure) = signatures(&file, SIZE);
        assert!(failure.is_none(), "{failure:?}");
        kinds
    }

    #[test]
    fn every_mark_of_the_table_is_found_and_an_empty_device_has_none() {
        assert_eq!(found(&[]), Vec::<&str>::new());
        for mark in MARKS {
            assert_eq!(found(&[(mark.offset, mark.bytes)]), [mark.kind]);
        }
    }

    #[test]
    fn marks_at_the_end_are_found() {
        assert_eq!(found(&[(SIZE - 65536, MD)]), ["md array member"]);
        assert_eq!(found(&[(SIZE - 8192, MD)]), ["md array member"]);
        assert_eq!(found(&[(SIZE - 512, b"EFI PART")]), ["GPT partition table"]);
        assert_eq!(found(&[(SIZE - 4096 + 60, &[0x83, 0x74, 0x02, 0x6b])]), ["DRBD"]);
    }

    #[test]
    fn short_marks_need_plausible_neighbors() {
        assert_eq!(found(&[(1080, &[0x53, 0xef])]), Vec::<&str>::new());
        let ext2: [(u64, &[u8]); 2] = [(1080, &[0x53, 0xef]), (1028, &[1, 0, 0, 0])];
        assert_eq!(found(&ext2), ["ext2"]);
        let random: [(u64, &[u8]); 3] =
            [(1080, &[0x53, 0xef]), (1028, &[1, 0, 0, 0]), (1024 + 0x18, &[0x99, 1, 2, 3])];
        assert_eq!(found(&random), Vec::<&str>::new());
        // The mark of the boot sector alone is not a partition table.
        assert_eq!(found(&[(510, &[0x55, 0xaa])]), Vec::<&str>::new());
        let entry = [0x80, 0, 0, 0, 0x83, 0, 0, 0, 0, 8, 0, 0, 0, 8, 0, 0];
        assert_eq!(found(&[(510, &[0x55, 0xaa]), (446, &entry)]), ["MBR partition table"]);
    }

    #[test]
    fn several_marks_are_all_told_and_a_tiny_device_is_no_error() {
        let both: [(u64, &[u8]); 2] =
            [(0, b"XFSB"), ((128 << 10) + 1024, &[0x0c, 0xb1, 0xba, 0, 0, 0, 0, 0])];
        assert_eq!(found(&both), ["xfs", "zfs"]);
        let tiny = tempfile::tempfile().unwrap();
        tiny.write_all_at(b"XFSB", 0).unwrap();
        assert!(matches!(signatures(&tiny, 4), (kinds, None) if kinds == ["xfs"]));
        assert!(matches!(signatures(&tiny, 0), (kinds, None) if kinds.is_empty()));
    }

    #[test]
    fn what_cannot_be_read_is_told_beside_what_was_found() {
        let file = tempfile::NamedTempFile::new().unwrap();
        file.as_file().write_all_at(b"XFSB", 0).unwrap();
        file.as_file().set_len(64 << 10).unwrap();
        // The file is shorter than its superblock says.
        assert!(matches!(signatures(file.as_file(), SIZE), (kinds, Some(_)) if kinds == ["xfs"]));
        // The file cannot be read at all.
        let deaf = File::options().write(true).open(file.path()).unwrap();
        let (kinds, failure) = signatures(&deaf, SIZE);
        assert_eq!(kinds, Vec::<&str>::new());
        assert_eq!(failure.and_then(|cause| cause.raw_os_error()), Some(libc::EBADF));
    }
}
