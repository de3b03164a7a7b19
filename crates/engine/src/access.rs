//! An access in the kernel's terms: the flags with which a target is opened, the flags of each read
//! and write, the advice, and the limits of direct I/O. All three real backends use this module, so
//! that a mode means the same with each of them.

use std::fs::File;
use std::io;

use fathom_core::Bytes;
use fathom_core::facts::{AtomicWrites, Target};
use fathom_core::spec::{Access, Cache, Hint, SyncMode};
use rustix::fs::{Advice, AtFlags, CWD, FileType, StatxFlags, statx};
use rustix::io::{Errno, ReadWriteFlags};

/// The kernel's `RWF_DSYNC`, `RWF_SYNC` (both Linux 4.7) and `RWF_DONTCACHE` (Linux 6.14).
const RWF_DSYNC: u32 = 0x02;
const RWF_SYNC: u32 = 0x04;
const RWF_DONTCACHE: u32 = 0x80;
/// The kernel's `RWF_ATOMIC` and `STATX_WRITE_ATOMIC` (both Linux 6.11).
const RWF_ATOMIC: u32 = 0x40;
const WRITE_ATOMIC: StatxFlags = StatxFlags::from_bits_retain(0x1_0000);

/// The first kernel that knows RWF_DONTCACHE.
const DONTCACHE_SINCE: (u32, u32) = (6, 14);

/// The flags with which a target is opened, besides the common ones: `direct` if it has a page
/// cache to bypass.
pub(crate) fn open_flags(access: Access, writes: bool, direct: bool) -> i32 {
    let cache = match access.cache {
        Cache::Direct if direct => libc::O_DIRECT,
        Cache::Direct | Cache::Buffered => 0,
    };
    let sync = match access.sync {
        // A mapped write is flushed separately.
        _ if access.mapped => 0,
        SyncMode::Dsync if writes => libc::O_DSYNC,
        SyncMode::Sync if writes => libc::O_SYNC,
        _ => 0,
    };
    cache | sync
}

/// Asks the file or device at a target's path for its limits of direct I/O. Limits that it does not
/// report stay unknown.
pub(crate) fn ask(target: &mut Target) {
    let path = target.path.as_str();
    let Ok(found) = statx(CWD, path, AtFlags::empty(), StatxFlags::DIOALIGN | WRITE_ATOMIC) else {
        return;
    };
    // Since Linux 6.1.
    let told = found.stx_mask & StatxFlags::DIOALIGN.bits() != 0;
    let alignment = found.stx_dio_offset_align.max(found.stx_dio_mem_align);
    if told && 0 < found.stx_dio_offset_align {
        target.direct_alignment = Some(Bytes(u64::from(alignment)));
    }
    if found.stx_mask & WRITE_ATOMIC.bits() != 0 {
        let [smallest, largest] =
            [found.stx_atomic_write_unit_min, found.stx_atomic_write_unit_max];
        target.atomic_writes =
            AtomicWrites::of(Bytes(u64::from(smallest)), Bytes(u64::from(largest)));
    }
}

/// Flags of each read and of each write (RWF_*), by direction as an index.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CallFlags(pub [u32; 2]);

impl CallFlags {
    /// The flags of each call for an access.
    pub fn of(access: Access) -> Self {
        let both = if access.uncached { RWF_DONTCACHE } else { 0 };
        let sync = match access.sync {
            SyncMode::RwfDsync => RWF_DSYNC,
            SyncMode::RwfSync => RWF_SYNC,
            SyncMode::None | SyncMode::Dsync | SyncMode::Sync => 0,
        };
        let atomic = if access.atomic { RWF_ATOMIC } else { 0 };
        Self([both, both | sync | atomic])
    }
}

/// Whether a call with these flags may take its data from registered memory: the kernel refuses
/// that for an atomic write.
pub(crate) fn takes_registered(flags: u32) -> bool {
    flags & RWF_ATOMIC == 0
}

/// Whether targets that are opened for one access serve the other too: flags of calls, and modes of
/// io_uring, do not matter when a target is opened.
pub fn opens_alike(one: Access, other: Access) -> bool {
    let opened = |access: Access| {
        (open_flags(access, true, true), access.hint, access.uncached, access.mapped)
    };
    opened(one) == opened(other)
}

/// Tells the kernel how the page cache will be used.
pub(crate) fn advise(file: &File, hint: Hint) -> io::Result<()> {
    let advice = match hint {
        Hint::Normal => Advice::Normal,
        Hint::Sequential => Advice::Sequential,
        Hint::Random => Advice::Random,
        Hint::NoReuse => Advice::NoReuse,
        Hint::DontNeed => {
            // Only clean pages can be dropped.
            rustix::fs::fdatasync(file)?;
            Advice::DontNeed
        }
    };
    Ok(rustix::fs::fadvise(file, 0, None, advice)?)
}

/// How a range of a target is trimmed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrimWay {
    /// A hole is punched into a file.
    Punch,
    /// A range of a block device is discarded.
    Discard,
}

impl TrimWay {
    pub(crate) fn of(file: &File) -> io::Result<Self> {
        let kind = FileType::from_raw_mode(rustix::fs::fstat(file)?.st_mode);
        Ok(if kind.is_block_device() { Self::Discard } else { Self::Punch })
    }
}

/// Finds out by reading one byte whether I/Os can leave the page cache at once; if not, gives the
/// reason.
///
/// # Errors
///
/// With the cause, if they cannot.
pub(crate) fn probe_uncached(file: &File) -> Result<(), String> {
    let flags = ReadWriteFlags::from_bits_retain(RWF_DONTCACHE);
    let mut byte = [0];
    let read = rustix::io::retry_on_intr(|| {
        rustix::io::preadv2(file, &mut [io::IoSliceMut::new(&mut byte)], 0, flags)
    });
    match read {
        Err(Errno::OPNOTSUPP | Errno::INVAL | Errno::NOSYS) => Err(why_not_uncached(&release())),
        // An error that any read would have met is left to the run.
        _ => Ok(()),
    }
}

/// The kernel's name and version.
fn release() -> String {
    rustix::system::uname().release().to_string_lossy().into_owned()
}

/// This kernel's version.
pub(crate) fn kernel() -> (u32, u32) {
    version(&release())
}

fn version(release: &str) -> (u32, u32) {
    let mut numbers = release.split(['.', '-']).map(|part| part.parse().unwrap_or(0));
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0))
}

fn why_not_uncached(release: &str) -> String {
    match version(release) < DONTCACHE_SINCE {
        true => format!("this kernel, {release}, has no RWF_DONTCACHE, which came with Linux 6.14"),
        false => "its file system or driver has no RWF_DONTCACHE".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_mode_is_said_once_either_when_opening_or_with_each_write() {
        let of = |sync| {
            let access = Access { sync, ..Access::DIRECT };
            (open_flags(access, true, true) & !libc::O_DIRECT, CallFlags::of(access).0)
        };
        assert_eq!(of(SyncMode::None), (0, [0, 0]));
        assert_eq!(of(SyncMode::Dsync), (libc::O_DSYNC, [0, 0]));
        assert_eq!(of(SyncMode::Sync), (libc::O_SYNC, [0, 0]));
        assert_eq!(of(SyncMode::RwfDsync), (0, [0, libc::RWF_DSYNC as u32]));
        assert_eq!(of(SyncMode::RwfSync), (0, [0, libc::RWF_SYNC as u32]));
        let durable = Access { sync: SyncMode::Sync, ..Access::BUFFERED };
        assert_eq!(open_flags(durable, false, true), 0, "reads have nothing to make durable");
    }

    #[test]
    fn what_leaves_the_cache_at_once_is_said_with_reads_and_writes() {
        let access = Access { uncached: true, sync: SyncMode::RwfSync, ..Access::BUFFERED };
        assert_eq!(CallFlags::of(access).0, [RWF_DONTCACHE, RWF_DONTCACHE | RWF_SYNC]);
    }

    #[test]
    fn an_atomic_write_says_so_and_takes_no_registered_memory() {
        let [reads, writes] = CallFlags::of(Access { atomic: true, ..Access::DIRECT }).0;
        assert_eq!((reads, writes), (0, RWF_ATOMIC));
        assert!(takes_registered(reads) && !takes_registered(writes));
    }

    #[test]
    fn one_open_target_serves_what_differs_in_calls_alone() {
        let rwf = Access { sync: SyncMode::RwfSync, ..Access::DIRECT };
        assert!(opens_alike(Access::DIRECT, rwf));
        assert!(!opens_alike(Access::DIRECT, Access { sync: SyncMode::Sync, ..rwf }));
        assert!(!opens_alike(Access::DIRECT, Access::BUFFERED));
        let hinted = Access { hint: Some(Hint::Random), ..Access::BUFFERED };
        assert!(!opens_alike(Access::BUFFERED, hinted));
    }

    #[test]
    fn an_older_kernel_is_told_from_a_file_system_that_does_not_know_it() {
        for (release, part) in [
            ("6.13.12-arch1", "this kernel, 6.13.12-arch1,"),
            ("5.15.0", "this kernel"),
            ("6.14.0-rc1", "file system"),
            ("7.0", "file system"),
        ] {
            assert!(why_not_uncached(release).contains(part), "{release}");
        }
    }
}
