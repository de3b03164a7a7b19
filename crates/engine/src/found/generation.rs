//! The generation number that a file system counts up, or draws, each time it gives an inode's
//! number to another file. It is part of the handle by which an NFS server would find the file
//! again, so it is available for a file that is open neither for reading nor for writing.

#![expect(unsafe_code, reason = "a file's handle has no safe interface")]

use std::fs::File;
use std::os::fd::AsRawFd;

/// The longest handle.
const LONGEST: usize = 128;

/// The handle as the kernel fills it in.
#[repr(C)]
struct Handle {
    bytes: u32,
    kind: i32,
    content: [u32; LONGEST / 4],
}

/// The generation of an inode with this number, from the file systems whose handles are known to
/// have one: ext2 to ext4, f2fs and others in one form, XFS in another. A handle of another form
/// does not have the number in the expected place; FUSE's, for example, changes with each mount.
pub(super) fn of(file: &File, inode: u64) -> Option<u32> {
    let mut handle = Handle { bytes: LONGEST as u32, kind: 0, content: [0; LONGEST / 4] };
    let mut mount = 0;
    // SAFETY: the path is an empty string with its terminator; the handle is a `file_handle` with
    // as much room behind it as it says, aligned as required; both outlive the call.
    let result = unsafe {
        libc::name_to_handle_at(
            file.as_raw_fd(),
            c"".as_ptr(),
            (&raw mut handle).cast(),
            &raw mut mount,
            libc::AT_EMPTY_PATH,
        )
    };
    (result == 0).then_some(())?;
    generation((handle.kind, &handle.content[..handle.bytes as usize / 4]), inode)
}

fn generation((kind, content): (i32, &[u32]), inode: u64) -> Option<u32> {
    /// FILEID_INO32_GEN.
    const SHORT: i32 = 1;
    /// The same with XFS's flag for 64 bits.
    const LONG: i32 = 0x81;
    let whole = |parts: [u32; 2]| match cfg!(target_endian = "little") {
        true => u64::from(parts[1]) << 32 | u64::from(parts[0]),
        false => u64::from(parts[0]) << 32 | u64::from(parts[1]),
    };
    match (kind, content) {
        (SHORT, &[number, generation]) if number == inode as u32 => Some(generation),
        (LONG, &[one, other, generation]) if whole([one, other]) == inode => Some(generation),
        _ => None,
    }
    // A file system without a counter always gives the same number.
    .filter(|generation| *generation != 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt;

    #[test]
    fn only_a_handle_with_the_inodes_own_number_tells() {
        assert_eq!(generation((1, &[12, 7]), 12), Some(7));
        assert_eq!(generation((1, &[12, 7]), 13), None);
        assert_eq!(generation((1, &[12, 0]), 12), None);
        assert_eq!(generation((1, &[7, 12, 0]), 12), None, "as tmpfs has it");
        assert_eq!(generation((0x81, &[12, 0, 7]), 12), Some(7));
        assert_eq!(generation((0x81, &[0, 12, 7]), 12), None, "as FUSE has it");
        assert_eq!(generation((0x4d, &[12, 0, 5, 0, 7]), 12), None);
    }

    #[test]
    fn a_number_that_comes_again_has_another_generation() {
        let folder = tempfile::tempdir_in("/var/tmp").unwrap();
        let path = folder.path().join("a");
        let look = || {
            let file = File::create(&path).unwrap();
            let inode = file.metadata().unwrap().ino();
            (inode, of(&file, inode))
        };
        let first = look();
        assert_eq!(look(), first);
        std::fs::remove_file(&path).unwrap();
        let next = look();
        if first.1.is_some() && first.0 == next.0 {
            assert_ne!(first.1, next.1);
        } else {
            println!("skipped: this file system tells no generation, or gives another number");
        }
    }
}
