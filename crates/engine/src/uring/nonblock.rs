//! Keeps I/Os from the ring's worker threads on file systems that the ring would not try.
//!
//! The ring tries an I/O at once only on files whose file system declares that it can say "not now"
//! (FMODE_NOWAIT); all I/Os on other files go to the ring's own threads (io-wq). With O_NONBLOCK on
//! the file the ring tries them too, and hands over only those that come back with EAGAIN. The flag
//! has no effect on files that declare it: measured on Linux 6.18 for ext4, xfs, btrfs, FUSE, block
//! devices and /dev/zero.
//!
//! It is set for the file systems for which it was measured to help and not to harm, and for no
//! other: one that does not declare it may block the worker instead, so that its I/Os run one after
//! the other. docs/method/access.md has the table. Only this backend sets it, because native AIO
//! would return EAGAIN to us if it finds no room.

use std::fs::{self, File};

use rustix::fs::{FileType, OFlags, fcntl_getfl, fcntl_setfl, fstat, fstatfs};

use super::Setup;
use crate::open_target::OpenTarget;

const TMPFS: u32 = 0x0102_1994;
const RAMFS: u32 = 0x8584_58f6;
const OVERLAY: u32 = 0x794c_7630;

/// Sets O_NONBLOCK if it avoids the hand-over. Before Linux 5.15 the ring returned EAGAIN for such
/// files instead of handing the I/O over, so the flag requires a setup of Linux 6.1 or later.
pub(super) fn spare_hand_over(targets: &[OpenTarget], setup: Setup) {
    if Setup::Deferred < setup {
        return;
    }
    for target in targets {
        // If this fails, the I/Os go to the ring's threads, and the verdict says so.
        let _ = try_to(&target.file);
    }
}

fn try_to(file: &File) -> rustix::io::Result<()> {
    // The magic numbers have 32 bits, in a word whose length and sign differ between systems.
    let kind = fstatfs(file)?.f_type as u32;
    // A device's node lies on a tmpfs too.
    let is_file = FileType::from_raw_mode(fstat(file)?.st_mode).is_file();
    match is_file && helps(kind, something_is_swapped) {
        true => fcntl_setfl(file, fcntl_getfl(file)? | OFlags::NONBLOCK),
        false => Ok(()),
    }
}

fn helps(kind: u32, something_is_swapped: impl Fn() -> bool) -> bool {
    match kind {
        // Reads through the ring's threads took 35 times as long at queue depth 1. Swapped data is
        // fetched while the caller waits, so that the queue depth would be 1 for it.
        TMPFS => !something_is_swapped(),
        RAMFS => true,
        // It asks the file system below, which says "not now" if it would have to wait.
        OVERLAY => true,
        _ => false,
    }
}

/// Whether any memory is swapped out: it may be a part of the target.
pub(super) fn something_is_swapped() -> bool {
    fs::read_to_string("/proc/meminfo").is_ok_and(|text| swapped(&text))
}

fn swapped(meminfo: &str) -> bool {
    let value = |name: &str| -> Option<u64> {
        let line = meminfo.lines().find_map(|line| line.strip_prefix(name))?;
        line.trim_start_matches(':').trim().trim_end_matches(" kB").parse().ok()
    };
    match (value("SwapTotal"), value("SwapFree")) {
        (Some(total), Some(free)) => free < total,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_file_systems_that_were_measured_get_it() {
        let (swap, none) = (|| true, || false);
        assert!(helps(TMPFS, none) && !helps(TMPFS, swap));
        assert!(helps(OVERLAY, swap) && helps(RAMFS, swap));
        // ext4, xfs, btrfs, FUSE, NFS.
        for kind in [0xEF53, 0x5846_5342, 0x9123_683E, 0x6573_5546, 0x6969] {
            assert!(!helps(kind, none), "{kind:#x}");
        }
    }

    #[test]
    fn swap_counts_only_while_something_is_in_it() {
        assert!(!swapped("SwapTotal:             0 kB\nSwapFree:              0 kB\n"));
        assert!(!swapped("SwapTotal:       8388604 kB\nSwapFree:        8388604 kB\n"));
        assert!(swapped("SwapTotal:       8388604 kB\nSwapFree:        8388600 kB\n"));
        assert!(!swapped(""));
    }
}
