//! A run leaves as many files open as it found. A worker of `sync` with one slot has its own table
//! of files. If it closed the files of others there, they would stay open for the others.
//!
//! This is a program with one test, because other tests would open files too.

use std::fs::{self, File};
use std::sync::atomic::AtomicBool;

use fathom_core::spec::{Access, BackendKind, Limit, Pacing, Point, Region, Stream, Workers};
use fathom_core::{Bytes, Span};
use fathom_engine::target::OpenTarget;
use fathom_engine::{Devices, Nobody, run_point};

const BLOCKS: u64 = 64;
const IOS: u64 = 200;

/// The number of files that this process has open, including the folder itself.
fn open_files() -> usize {
    fs::read_dir("/proc/self/fd").unwrap().count()
}

fn target(file: &File) -> OpenTarget {
    OpenTarget {
        name: "file".to_owned(),
        file: file.try_clone().unwrap().into(),
        size: Bytes(BLOCKS * 4096),
        alignment: Bytes(1),
        passthrough: None,
    }
}

/// Runs two workers until they have done their I/Os, and returns the number of these: on a busy
/// machine a moment has none.
fn run(backend: BackendKind, queue_depth: u32, targets: &[OpenTarget]) -> u64 {
    let region = Region { target: 0, offset: Bytes(0), length: Bytes(BLOCKS * 4096) };
    let pacing = Pacing { limit: Some(Limit::Ios(IOS)), ..Pacing::closed(queue_depth) };
    let stream = Stream {
        pacing,
        workers: Workers::Total(2),
        access: Access::BUFFERED,
        ..Stream::reading("reads", Vec::from([region]))
    };
    let point = Point::of(Vec::from([stream]), Span::from_secs(600));
    let devices = Devices::Real { streams: &[targets.to_vec()], backend };
    let record = run_point(&point, devices, &AtomicBool::new(false), &mut Nobody).unwrap();
    record.ledger().completed
}

#[test]
fn a_run_leaves_as_many_files_open_as_it_found() {
    let path = std::env::temp_dir().join(format!("fathom-descriptors-{}", std::process::id()));
    fs::write(&path, vec![1; BLOCKS as usize * 4096]).unwrap();
    let file = File::open(&path).unwrap();
    fs::remove_file(&path).unwrap();
    let targets = [target(&file)];
    for backend in [BackendKind::Uring, BackendKind::Aio, BackendKind::Sync] {
        if fathom_engine::choose(Some(backend), Access::BUFFERED).is_err() {
            eprintln!("skipped: {backend:?} does not work here");
            continue;
        }
        // Each of the two workers has one slot, and in the second round four.
        for queue_depth in [2, 8] {
            // Files that are opened once for all runs stay open.
            run(backend, queue_depth, &targets);
            let before = open_files();
            assert_eq!(run(backend, queue_depth, &targets), IOS);
            assert_eq!(open_files(), before, "{backend:?} at queue depth {queue_depth}");
        }
    }
}
