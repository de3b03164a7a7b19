//! Tests which I/Os are durable when they complete: every write in each sync mode, and none without
//! one. The kernel counts them as flushes of a loop device.

#![expect(unsafe_code, reason = "whether a page is cached is asked of a mapping")]

mod loops;

use std::fs;
use std::os::unix::fs::FileExt;
use std::sync::atomic::AtomicBool;

use fathom_core::measure::{Direction, Record, Upkeep};
use fathom_core::spec::{
    Access, BackendKind, Flush, Hint, Kind, Pacing, Pattern, Point, Region, Stream, SyncMode,
};
use fathom_core::{Bytes, Span};
use fathom_engine::access::CallFlags;
use fathom_engine::aio::Aio;
use fathom_engine::backend::{Io, RealBackend, Shape, Task};
use fathom_engine::host;
use fathom_engine::sync::Sync;
use fathom_engine::target::{self, OpenTarget, Opening, Overwrite, probe_trim};
use fathom_engine::uring::Uring;
use fathom_engine::{Devices, Nobody, choose, run_point};
use loops::Loop;
use rustix::fs::SeekFrom;

const WRITES: u64 = 16;

/// The flushes that the kernel has counted for a device.
fn flushes(device: &Loop) -> u64 {
    let name = device.name().trim_start_matches("/dev/");
    let counters = fs::read_to_string(format!("/sys/block/{name}/stat")).unwrap();
    counters.split_whitespace().nth(15).expect("Linux 5.5 counts them").parse().unwrap()
}

fn opened(target: &fathom_core::facts::Target, access: Access) -> OpenTarget {
    let destroy = Vec::from([target.name.clone()]);
    let overwrite = Overwrite { allowed: true, destroy, ..Overwrite::default() };
    target::open(target, &Opening { access, writes: true, claimed: false, overwrite }).unwrap()
}

/// The result of the next completion.
fn one(backend: &mut impl RealBackend) -> i32 {
    let mut completions = Vec::with_capacity(1);
    let hang = backend.now() + Span::from_secs(60);
    while completions.is_empty() {
        assert!(backend.now() < hang);
        backend.wait_and_reap(hang, &mut completions);
    }
    completions[0].result
}

/// Does I/Os one after the other and returns the result of each.
fn one_by_one<B: RealBackend>(
    target: OpenTarget,
    access: Access,
    direction: Direction,
) -> Vec<i32> {
    let shape = Shape { flags: CallFlags::of(access), ..Shape::USUAL };
    let mut backend = B::open(&[target], &shape).unwrap();
    let mut results = Vec::new();
    for number in 0..WRITES {
        if direction == Direction::Write {
            backend.refresh(0, 4096);
        }
        backend.push(Io { slot: 0, target: 0, direction, offset: number * 4096, length: 4096 });
        results.push(one(&mut backend));
    }
    results
}

fn each_mode_flushes<B: RealBackend>() {
    let Some(device) = Loop::new(1 << 20, &[]) else { return };
    if let Err(error) = choose(Some(B::KIND), Access::DIRECT) {
        println!("skipped: {error}");
        return;
    }
    for sync in SyncMode::ALL {
        let access = Access { sync, ..Access::DIRECT };
        let before = flushes(&device);
        let results = one_by_one::<B>(opened(&device.look(), access), access, Direction::Write);
        assert!(results.iter().all(|&result| result == 4096), "{results:?}");
        let expected = if access.is_durable() { WRITES } else { 0 };
        let counted = flushes(&device) - before;
        // For a blocking call the kernel flushes twice: with the write, and once more after it.
        let twice = B::KIND == BackendKind::Sync && counted == 2 * expected;
        assert!(counted == expected || twice, "{counted}: {} by {}", sync.name(), B::KIND.name());
    }
}

fn tasks_flush<B: RealBackend>() {
    let Some(device) = Loop::new(1 << 20, &[]) else { return };
    if let Err(error) = choose(Some(B::KIND), Access::DIRECT) {
        println!("skipped: {error}");
        return;
    }
    let target = opened(&device.look(), Access::DIRECT);
    let mut backend = B::open(&[target], &Shape { slots: 4, ..Shape::USUAL }).unwrap();
    let before = flushes(&device);
    for number in 0..WRITES {
        let data_only = number % 2 == 0;
        let slot = number as u32 % 4;
        backend.refresh(slot, 4096);
        let direction = Direction::Write;
        backend.push(Io { slot, target: 0, direction, offset: number * 4096, length: 4096 });
        assert_eq!(one(&mut backend), 4096);
        backend.push_task(slot, 0, Task::Flush { data_only });
        assert_eq!(one(&mut backend), 0);
    }
    assert_eq!(flushes(&device) - before, WRITES, "by {}", B::KIND.name());
}

#[test]
fn a_flush_is_a_flush_by_io_uring() {
    tasks_flush::<Uring>();
}

#[test]
fn a_flush_is_a_flush_by_native_aio() {
    tasks_flush::<Aio>();
}

#[test]
fn a_flush_is_a_flush_by_calls() {
    tasks_flush::<Sync>();
}

/// A worker flushes after every four writes, on every backend. The device counts as many flushes as
/// the record has, including those around the window.
#[test]
fn a_run_flushes_as_often_as_its_ledger_says() {
    let Some(device) = Loop::new(1 << 20, &[]) else { return };
    for kind in [BackendKind::Uring, BackendKind::Aio, BackendKind::Sync] {
        if let Err(error) = choose(Some(kind), Access::DIRECT) {
            println!("skipped: {error}");
            continue;
        }
        let region = Region { target: 0, offset: Bytes(0), length: Bytes(1 << 20) };
        let stream = Stream {
            ios: Kind { read_share: 0.0, ..Kind::default() }.into(),
            flush: Some(Flush { every: 4, data_only: false, barrier: true }),
            pacing: Pacing::closed(4),
            ..Stream::reading("log", Vec::from([region]))
        };
        let point = Point::of(Vec::from([stream]), Span::from_secs(2));
        let target = opened(&device.look(), Access::DIRECT);
        let before = flushes(&device);
        let streams = &[Vec::from([target])];
        let devices = Devices::Real { streams, backend: kind };
        let record = run_point(&point, devices, &AtomicBool::new(false), &mut Nobody).unwrap();
        let ledger = record.ledger();
        let seen = record.upkeep(Upkeep::Flush, |_, _| true).ios();
        let writes = record.total(Some(Direction::Write)).ios();
        assert!(ledger.balances() && ledger.failed == 0, "{ledger:?}");
        assert_eq!(ledger.completed, writes + seen);
        // One may be in flight when the window ends.
        let counted = flushes(&device) - before;
        assert!(counted == seen || counted == seen + 1, "{counted} and {seen} by {}", kind.name());
        assert!(seen > 0 && (writes / 4).abs_diff(seen) <= 1, "{writes} writes, {seen} flushes");
    }
}

/// A run of trims with only a few reads, on a full target.
fn trims(target: OpenTarget, kind: BackendKind) -> Record {
    let region = Region { target: 0, offset: Bytes(0), length: Bytes(1 << 20) };
    let stream = Stream {
        ios: Kind { pattern: Pattern::SEQUENTIAL, ..Kind::default() }.into(),
        trim_share: 0.9,
        pacing: Pacing::closed(4),
        ..Stream::reading("trims", Vec::from([region]))
    };
    let point = Point::of(Vec::from([stream]), Span::from_secs(2));
    let streams = &[Vec::from([target])];
    let devices = Devices::Real { streams, backend: kind };
    let record = run_point(&point, devices, &AtomicBool::new(false), &mut Nobody).unwrap();
    let ledger = record.ledger();
    assert!(ledger.balances() && record.errors() == 0, "{ledger:?} by {}", kind.name());
    let trims = record.upkeep(Upkeep::Trim, |_, _| true);
    assert_eq!(ledger.completed, record.total(None).ios() + trims.ios());
    assert_eq!(trims.bytes.0, trims.ios() * 4096);
    record
}

/// Each trim has emptied its block. In the first pass no two trims have the same block, and the
/// first pass has about 230 of them.
fn all_are_empty(record: &Record, holes: u64) {
    let trims = record.upkeep(Upkeep::Trim, |_, _| true).ios();
    assert!(trims > 0 && holes >= trims.min(200) * 4096, "{trims} trims, {holes} bytes in holes");
}

/// The bytes of a file that lie in holes, as lseek reports them.
fn holes(file: &fs::File, size: u64) -> u64 {
    let mut at = 0;
    let mut holes = 0;
    while at < size {
        let hole = rustix::fs::seek(file, SeekFrom::Hole(at)).unwrap();
        let data = match rustix::fs::seek(file, SeekFrom::Data(hole)) {
            Ok(data) => data,
            Err(_) => size,
        };
        holes += data.min(size) - hole.min(size);
        at = data;
    }
    holes
}

#[test]
fn trims_of_a_file_leave_holes_and_nothing_is_shorter() {
    let folder = tempfile::tempdir().unwrap();
    for kind in [BackendKind::Uring, BackendKind::Sync] {
        if let Err(error) = choose(Some(kind), Access::DIRECT) {
            println!("skipped: {error}");
            continue;
        }
        let path = folder.path().join(kind.name());
        fs::write(&path, vec![7; 1 << 20]).unwrap();
        fs::File::open(&path).unwrap().sync_all().unwrap();
        let open = opened(&host::target(&path).unwrap(), Access::BUFFERED);
        if let Err((cause, _)) = probe_trim(&open, kind) {
            println!("skipped: {cause}");
            continue;
        }
        assert_eq!(holes(&open.file, 1 << 20), 0, "trying it out trims nothing");
        let record = trims(open.clone(), kind);
        all_are_empty(&record, holes(&open.file, 1 << 20));
        assert_eq!(fs::metadata(&path).unwrap().len(), 1 << 20);
    }
}

#[test]
fn trims_of_a_device_discard_its_blocks() {
    for kind in [BackendKind::Uring, BackendKind::Sync] {
        if let Err(error) = choose(Some(kind), Access::DIRECT) {
            println!("skipped: {error}");
            continue;
        }
        let Some(device) = Loop::new(1 << 20, &[]) else { return };
        let open = opened(&device.look(), Access::DIRECT);
        let file = fs::File::options().write(true).read(true).open(device.file()).unwrap();
        file.write_all_at(&vec![7; 1 << 20], 0).unwrap();
        file.sync_all().unwrap();
        if let Err((cause, _)) = probe_trim(&open, kind) {
            println!("skipped: {cause}");
            continue;
        }
        assert_eq!(holes(&file, 1 << 20), 0, "trying it out discards nothing");
        let record = trims(open, kind);
        all_are_empty(&record, holes(&file, 1 << 20));
    }
}

#[test]
fn every_write_of_a_sync_mode_is_flushed_by_io_uring() {
    each_mode_flushes::<Uring>();
}

#[test]
fn every_write_of_a_sync_mode_is_flushed_by_native_aio() {
    each_mode_flushes::<Aio>();
}

#[test]
fn every_write_of_a_sync_mode_is_flushed_by_calls() {
    each_mode_flushes::<Sync>();
}

/// The pages of a file that are in the page cache.
fn cached_pages(file: &fs::File, size: u64) -> usize {
    use std::os::fd::AsRawFd;
    let pages = size.div_ceil(4096) as usize;
    let mut states = vec![0u8; pages];
    // SAFETY: the code maps the whole file, only queries the mapping, and then removes it.
    unsafe {
        let (read, shared) = (libc::PROT_READ, libc::MAP_SHARED);
        let at = libc::mmap(std::ptr::null_mut(), size as usize, read, shared, file.as_raw_fd(), 0);
        assert!(at != libc::MAP_FAILED);
        assert_eq!(libc::mincore(at, size as usize, states.as_mut_ptr()), 0);
        libc::munmap(at, size as usize);
    }
    states.iter().filter(|&&state| state & 1 == 1).count()
}

#[test]
fn hints_are_taken_and_dontneed_leaves_nothing_in_the_cache() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("data");
    fs::write(&path, vec![7; 1 << 20]).unwrap();
    let target = host::target(&path).unwrap();
    for hint in Hint::ALL {
        let open = opened(&target, Access { hint: Some(hint), ..Access::BUFFERED });
        if hint == Hint::DontNeed
            && target.file_system.as_ref().is_some_and(|it| it.kind != "tmpfs")
        {
            assert_eq!(cached_pages(&open.file, 1 << 20), 0);
        }
    }
}

#[test]
fn what_leaves_the_cache_at_once_is_tried_before_and_refused_with_the_reason() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("data");
    fs::write(&path, vec![7; 1 << 20]).unwrap();
    let target = host::target(&path).unwrap();
    assert_eq!(target.size, Bytes(1 << 20));
    let access = Access { uncached: true, ..Access::BUFFERED };
    let destroy = Vec::from([target.name.clone()]);
    let overwrite = Overwrite { allowed: true, destroy, ..Overwrite::default() };
    let opening = Opening { access, writes: true, claimed: false, overwrite };
    match target::open(&target, &opening) {
        Err(refusal) => {
            let text = refusal.to_string();
            assert!(text.contains("--dontcache") && text.contains("RWF_DONTCACHE"), "{text}");
        }
        Ok(open) => {
            for direction in Direction::BOTH {
                let results = one_by_one::<Sync>(open.clone(), access, direction);
                assert!(results.iter().all(|&result| result == 4096), "{results:?}");
            }
        }
    }
}
