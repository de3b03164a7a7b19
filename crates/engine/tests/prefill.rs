//! Tests what `fathom prepare` writes: all of it is there and nothing is elsewhere, and it is
//! random and durable. If something stops it, the error says how far it came.

use std::collections::HashSet;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

use fathom_core::Bytes;
use fathom_engine::prefill::{PrefillError, Prefilled, Prefilling, prefill};
use tempfile::TempDir;

const MIB: u64 = Bytes::MIB;

fn options(writers: u32, block: u64, seed: u64) -> Prefilling {
    Prefilling { writers, block: Bytes(block), seed, compressible: 0.0, dedup: 0.0 }
}

fn create(path: &Path) -> File {
    OpenOptions::new().read(true).write(true).create(true).truncate(true).open(path).unwrap()
}

fn write(
    file: &File,
    from: u64,
    to: u64,
    options: Prefilling,
) -> Result<(Prefilled, Vec<u64>), PrefillError> {
    let mut heard = Vec::new();
    let go_on = AtomicBool::new(false);
    let done =
        prefill(file, Bytes(from), Bytes(to), options, &go_on, &mut |bytes| heard.push(bytes.0))?;
    Ok((done, heard))
}

#[test]
fn a_file_has_as_many_duplicates_and_zeros_as_it_is_asked_for() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("file");
    let options = Prefilling { compressible: 0.5, dedup: 0.3, ..options(3, MIB, 7) };
    write(&create(&path), 0, 16 * MIB, options).unwrap();
    let content = std::fs::read(&path).unwrap();
    let units: HashSet<&[u8]> = content.chunks(4096).collect();
    assert!((4096 - units.len()).abs_diff(4096 * 3 / 10) <= 1, "{}", units.len());
    // The compressible part is at the end of each block, and no byte of the rest is compressible.
    assert!(
        content.chunks(4096).all(|unit| unit[2048..] == [0; 2048] && unit[..2048] != [0; 2048])
    );
    // The content follows from the seed and the offset, whatever the number of writers.
    let again = folder.path().join("again");
    let file = create(&again);
    write(&file, 0, 5 * MIB, Prefilling { writers: 1, ..options }).unwrap();
    write(&file, 5 * MIB, 16 * MIB, Prefilling { writers: 2, ..options }).unwrap();
    assert!(std::fs::read(&again).unwrap() == content);
}

#[test]
fn a_new_file_is_written_whole_with_content_of_its_own() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("file");
    let file = create(&path);
    let size = 9 * MIB + 5 * 4096 + 700;
    let (done, heard) = write(&file, 0, size, options(3, MIB, 7)).unwrap();
    assert_eq!((done.written, done.stopped), (Bytes(size), false));
    assert!(heard.is_sorted() && heard.last() == Some(&size), "{heard:?}");

    let content = std::fs::read(&path).unwrap();
    assert_eq!(content.len() as u64, size);
    // No block is only reserved, and no two blocks are alike, in the smallest unit of any device.
    assert!(file.metadata().unwrap().blocks() * 512 >= size);
    let units: HashSet<&[u8]> = content.chunks(512).collect();
    assert_eq!(units.len() as u64, size.div_ceil(512));
    let mut counts = [0u64; 256];
    content.iter().for_each(|byte| counts[usize::from(*byte)] += 1);
    let mean = size / 256;
    assert!(counts.iter().all(|count| count.abs_diff(mean) < mean / 10), "{counts:?}");
}

#[test]
fn the_content_follows_from_seed_and_offset_alone() {
    let folder = TempDir::new().unwrap();
    let size = 3 * MIB + 300;
    let content = |name: &str, parts: &[(u64, u64)], options: Prefilling| {
        let path = folder.path().join(name);
        let file = create(&path);
        for (from, to) in parts {
            write(&file, *from, *to, options).unwrap();
        }
        std::fs::read(path).unwrap()
    };
    let whole = content("whole", &[(0, size)], options(1, MIB, 7));
    assert!(content("small blocks", &[(0, size)], options(4, 8192, 7)) == whole);
    let parts = [(100, 5000), (MIB + 1, size), (5000, MIB + 1), (0, 100)];
    assert!(content("parts", &parts, options(2, 65536, 7)) == whole);
    assert!(content("other seed", &[(0, size)], options(1, MIB, 8)) != whole);
}

#[test]
fn what_is_outside_the_range_stays() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("file");
    let file = create(&path);
    file.write_all_at(&vec![1; 3 * MIB as usize], 0).unwrap();
    let (from, to) = (MIB - 100, 2 * MIB + 300);
    let (done, _) = write(&file, from, to, options(2, 65536, 7)).unwrap();
    assert_eq!(done.written, Bytes(to - from));
    let content = std::fs::read(&path).unwrap();
    assert_eq!(content.len() as u64, 3 * MIB);
    assert!(content[..from as usize].iter().all(|byte| *byte == 1));
    assert!(content[to as usize..].iter().all(|byte| *byte == 1));
    assert!(content[from as usize..to as usize].chunks(64).all(|chunk| chunk != [1; 64]));
}

#[test]
fn an_empty_range_is_no_work() {
    let folder = TempDir::new().unwrap();
    let file = create(&folder.path().join("file"));
    for (from, to) in [(0, 0), (5000, 5000), (5000, 100)] {
        let (done, _) = write(&file, from, to, options(2, 65536, 7)).unwrap();
        assert_eq!((done.written, done.stopped), (Bytes(0), false));
    }
    assert_eq!(file.metadata().unwrap().len(), 0);
}

#[test]
fn a_stop_ends_it_within_a_block() {
    let folder = TempDir::new().unwrap();
    let file = create(&folder.path().join("file"));
    let stop = AtomicBool::new(true);
    let options = options(2, 65536, 7);
    let mut ignore = |_| {};
    let done = prefill(&file, Bytes(0), Bytes(MIB), options, &stop, &mut ignore).unwrap();
    assert_eq!((done.written, done.stopped), (Bytes(0), true));

    // Far more than can be written before the first progress report. Otherwise the call completes.
    let size = 256 * MIB;
    let stop = AtomicBool::new(false);
    let mut at_stop = None;
    let mut hear = |bytes: Bytes| {
        at_stop.get_or_insert(bytes.0);
        stop.store(true, Ordering::Relaxed);
    };
    let done = prefill(&file, Bytes(0), Bytes(size), options, &stop, &mut hear).unwrap();
    assert!(at_stop.is_some());
    assert_eq!(done.stopped, done.written < Bytes(size));
}

#[test]
fn a_file_that_cannot_be_written_is_an_error() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("file");
    create(&path).set_len(MIB).unwrap();
    // Root may reopen a read-only file for writing, so the device itself has to refuse.
    let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
    let error = write(&full, 0, MIB, options(2, 65536, 7)).unwrap_err();
    assert!(error.is_full() && error.written == Bytes(0), "{error:?}");
    assert_eq!(error.to_string(), "there is no room left after 0 B");
}

/// A file system of 8 MiB in memory. Dropping it unmounts it.
struct SmallFileSystem(TempDir);

impl SmallFileSystem {
    fn mount() -> Option<Self> {
        let folder = TempDir::new().unwrap();
        let mount = Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=8m", "fathom-test"])
            .arg(folder.path())
            .output();
        match mount {
            Ok(output) if output.status.success() => Some(Self(folder)),
            _ => {
                let _ = writeln!(
                    io::stderr(),
                    "SKIPPED: a full disk, because mounting a tmpfs needs root"
                );
                None
            }
        }
    }
}

impl Drop for SmallFileSystem {
    fn drop(&mut self) {
        let unmounted = Command::new("umount").arg("-l").arg(self.0.path()).status();
        assert!(unmounted.is_ok_and(|status| status.success()));
    }
}

#[test]
fn a_disk_that_is_too_small_is_told_before_anything_is_written() {
    let Some(small) = SmallFileSystem::mount() else { return };
    let file = create(&small.0.path().join("file"));
    let error = write(&file, 0, 16 * MIB, options(2, 65536, 7)).unwrap_err();
    assert!(error.is_full(), "{error:?}");
    assert_eq!(error.written, Bytes(0));
}

#[test]
fn a_disk_that_fills_up_is_told_with_how_far_it_came() {
    let Some(small) = SmallFileSystem::mount() else { return };
    let file = create(&small.0.path().join("file"));
    // A hole of the whole length. Reserving space for it fails, and this does not count as growing.
    file.set_len(16 * MIB).unwrap();
    let error = write(&file, 0, 16 * MIB, options(2, 65536, 7)).unwrap_err();
    assert!(error.is_full(), "{error:?}");
    assert!(error.written > Bytes(4 * MIB) && error.written <= Bytes(8 * MIB), "{error:?}");
    assert!(error.to_string().starts_with("there is no room left after"), "{error}");
}
