//! A run leaves as many files open as it found. A worker of `sync` with one slot has its own table
//! of files. If it closed the files of others there, they would stay open for the others.
//!
//! This is a program with one test, because other tests would open files too.

use std::fs::{self, File};
use std::sync::atomic::AtomicBool;

use fathom_core::spec::{Access, BackendKind, Pacing, Point, Region, Stream, Workers};
use fathom_core::{Bytes, Span};
use fathom_engine::target::OpenTarget;
use fathom_engine::{Devices, Observer, Phase, Progress, run_point};

const BLOCKS: u64 = 64;

struct Nobody;

impl Observer for Nobody {
    fn phase(&mut self, _: Phase, _: Span) {}
    fn progress(&mut self, _: &Progress) {}
}

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

/// Runs two workers for a moment and returns the number of their I/Os.
fn run(backend: BackendKind, queue_depth: u32, targets: &[OpenTarget]) -> u64 {
    let region = Region { target: 0, offset: Bytes(0), length: Bytes(BLOCKS * 4096) };
    let stream = Stream {
        pacing: Pacing::closed(queue_depth),
        workers: Workers::Total(2),
        access: Access::BUFFERED,
        ..Stream::reading("reads", Vec::from([region]))
    };
    let window = Span::from_ms(20);
    let point = Point { interval: window, ..Point::of(Vec::from([stream]), window) };
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
            assert!(run(backend, queue_depth, &targets) > 0);
            assert_eq!(open_files(), before, "{backend:?} at queue depth {queue_depth}");
        }
    }
}
