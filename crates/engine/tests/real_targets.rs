//! Tests the whole engine on real files: every backend, several workers and targets, and balanced
//! ledgers. No test depends on the speed of the machine.

use std::fs::OpenOptions;
use std::io::ErrorKind::PermissionDenied;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use fathom_core::measure::{Direction, ErrorKind, Record};
use fathom_core::spec::{
    Access, Arrivals, BackendKind, BlockSizes, Flush, Kind, Pacing, Point, Region, RingMode,
    Stream, SubmissionThread, SyncMode, Workers,
};
use fathom_core::{Bytes, Rate, Span};
use fathom_engine::target::OpenTarget;
use fathom_engine::{Devices, Observer, Phase, Progress, RunError, run_point};

const BACKENDS: [BackendKind; 3] = [BackendKind::Uring, BackendKind::Aio, BackendKind::Sync];
const SIZE: u64 = 16 << 20;
const BLOCK: u64 = 4096;

#[derive(Default)]
struct Log {
    phases: Vec<Phase>,
    intervals: Vec<Progress>,
}

impl Observer for Log {
    fn phase(&mut self, phase: Phase, _: Span) {
        self.phases.push(phase);
    }

    fn progress(&mut self, progress: &Progress) {
        self.intervals.push(progress.clone());
    }
}

fn target(folder: &Path, name: &str, size: u64) -> OpenTarget {
    let path = folder.join(name);
    std::fs::write(&path, vec![7; size as usize]).unwrap();
    let options = || {
        let mut options = OpenOptions::new();
        options.read(true).write(true);
        options
    };
    // A temporary folder on a file system without direct I/O serves these tests as well.
    let direct = options().custom_flags(libc::O_DIRECT).open(&path);
    let alignment = Bytes(if direct.is_ok() { BLOCK } else { 1 });
    let file = direct.unwrap_or_else(|_| options().open(&path).unwrap());
    OpenTarget {
        name: name.to_owned(),
        file: file.into(),
        size: Bytes(size),
        alignment,
        passthrough: None,
    }
}

fn point(targets: u32, pacing: Pacing, workers: Workers, read_share: f64) -> Point {
    let region = |target| Region { target, offset: Bytes(BLOCK), length: Bytes(SIZE - BLOCK) };
    Point {
        name: "test".to_owned(),
        warm_up: Span::from_ms(100),
        interval: Span::from_ms(100),
        seed: 11,
        ..Point::of(
            Vec::from([Stream {
                ios: Kind {
                    block_sizes: BlockSizes::one(Bytes(BLOCK)),
                    read_share,
                    ..Kind::default()
                }
                .into(),
                pacing,
                workers,
                ..Stream::reading("test", (0..targets).map(region).collect())
            }]),
            Span::from_ms(400),
        )
    }
}

fn run(point: &Point, targets: &[OpenTarget], backend: BackendKind) -> (Record, Log) {
    let mut log = Log::default();
    let devices = Devices::Real { streams: &[targets.to_vec()], backend };
    let record = run_point(point, devices, &AtomicBool::new(false), &mut log).unwrap();
    assert!(record.ledger().balances());
    (record, log)
}

/// Runs it until the record has what a busy machine may keep out of a short window.
fn run_until(
    point: &Point,
    targets: &[OpenTarget],
    backend: BackendKind,
    has: impl Fn(&Record) -> bool,
) -> (Record, Log) {
    let mut runs = (0..100).map(|_| run(point, targets, backend));
    runs.find(|(record, _)| has(record)).expect("one of a hundred windows has it")
}

/// Whether there were reads and writes.
fn has_both(record: &Record) -> bool {
    Direction::BOTH.iter().all(|direction| 0 < record.total(Some(*direction)).ios())
}

#[test]
fn every_backend_runs_a_mixed_closed_loop_on_several_targets() {
    let folder = tempfile::tempdir().unwrap();
    let targets = [target(folder.path(), "a", SIZE), target(folder.path(), "b", SIZE)];
    for backend in BACKENDS {
        for workers in [Workers::PerTarget(2), Workers::Total(3)] {
            let point = point(2, Pacing::closed(16), workers, 0.5);
            let on =
                |record: &Record, place| record.sum(None, |_, cell| cell.target == place).ios();
            let (record, log) = run_until(&point, &targets, backend, |record| {
                has_both(record) && 0 < on(record, 0) && 0 < on(record, 1)
            });
            assert_eq!(
                log.phases,
                [Phase::WarmUp, Phase::WindowOpens, Phase::WindowCloses],
                "{backend:?}"
            );
            assert_eq!(record.window, point.window);
            assert_eq!(record.errors(), 0);
            let (reads, writes) =
                (record.total(Some(Direction::Read)), record.total(Some(Direction::Write)));
            assert_eq!(reads.bytes.0, reads.ios() * BLOCK);
            assert_eq!(reads.ios() + writes.ios(), record.ledger().completed);
            let series: u64 = record.series.iter().map(|i| i.bytes[0].0 + i.bytes[1].0).sum();
            assert_eq!(series, reads.bytes.0 + writes.bytes.0);
            assert!(record.queue_depth() <= 16.0 + 1e-9);
        }
    }
}

#[test]
fn mapped_files_are_read_and_written_by_copies() {
    let folder = tempfile::tempdir().unwrap();
    let targets = [target(folder.path(), "a", SIZE), target(folder.path(), "b", SIZE)];
    for (sync, flush, depth) in [
        (SyncMode::None, None, 3),
        (SyncMode::Dsync, None, 9),
        (SyncMode::None, Some(Flush::DATA), 9),
    ] {
        let pacing = Pacing::closed(depth);
        let mut point = point(2, pacing, Workers::Total(3), 0.5);
        point.streams[0].access = Access { mapped: true, sync, ..Access::BUFFERED };
        point.streams[0].flush = flush;
        let (record, _) = run_until(&point, &targets, BackendKind::Sync, has_both);
        assert_eq!(record.errors(), 0);
        for direction in Direction::BOTH {
            let flow = record.total(Some(direction));
            assert_eq!(flow.bytes.0, flow.ios() * BLOCK);
        }
    }
    // The first block is outside the region. Blocks inside it were written.
    let now = std::fs::read(folder.path().join("a")).unwrap();
    let (first, rest) = now.split_at(BLOCK as usize);
    assert!(first.iter().all(|&byte| byte == 7) && rest.iter().any(|&byte| byte != 7));
}

#[test]
fn a_mapped_file_that_is_cut_off_gives_counted_errors() {
    let folder = tempfile::tempdir().unwrap();
    let targets = [target(folder.path(), "a", SIZE)];
    let file = OpenOptions::new().write(true).open(folder.path().join("a")).unwrap();
    file.set_len(SIZE / 2).unwrap();
    for depth in [1, 4] {
        let pacing = Pacing::closed(depth);
        let mut point = point(1, pacing, Workers::Total(1), 0.5);
        point.streams[0].access = Access { mapped: true, ..Access::BUFFERED };
        let (record, _) = run_until(&point, &targets, BackendKind::Sync, |record| {
            let ledger = record.ledger();
            0 < ledger.completed && 0 < ledger.failed
        });
        for worker in &record.workers {
            for error in &worker.errors.first {
                assert_eq!(error.kind, ErrorKind::Short(0));
                assert!(SIZE / 2 <= error.offset.0);
            }
        }
    }
    assert_eq!(file.metadata().unwrap().len(), SIZE / 2, "no copy makes it longer");
}

#[test]
fn every_backend_moves_blocks_of_several_sizes_in_their_shares() {
    let folder = tempfile::tempdir().unwrap();
    let targets = [target(folder.path(), "a", SIZE)];
    let sizes = BlockSizes::weighted(
        &[(Bytes(BLOCK), 3.0), (Bytes(4 * BLOCK), 1.0)],
        &[(Bytes(2 * BLOCK), 1.0)],
    );
    for backend in BACKENDS {
        let mut point = point(1, Pacing::closed(8), Workers::Total(2), 0.5);
        point.streams[0].kind_mut().block_sizes = sizes.clone();
        let (record, _) = run_until(&point, &targets, backend, has_both);
        assert_eq!(record.errors(), 0, "{backend:?}");
        let (reads, writes) =
            (record.total(Some(Direction::Read)), record.total(Some(Direction::Write)));
        assert_eq!(writes.bytes.0, writes.ios() * 2 * BLOCK);
        // A read has 1 block, or 4 with a probability of a quarter: 1.75 on average, with a
        // standard deviation of 1.3. The tolerance for the mean of all reads is five standard
        // deviations.
        let blocks = reads.bytes.0 as f64 / BLOCK as f64;
        let n = reads.ios() as f64;
        assert!((blocks - 1.75 * n).abs() < 5.0 * 1.3 * n.sqrt(), "{backend:?}: {blocks} in {n}");
    }
}

#[test]
fn every_backend_keeps_an_open_loops_count() {
    let folder = tempfile::tempdir().unwrap();
    let targets = [target(folder.path(), "a", SIZE)];
    for backend in BACKENDS {
        let pacing = Pacing::open(Rate(2000.0), Arrivals::Uniform, 64);
        let (record, _) = run(&point(1, pacing, Workers::Total(2), 1.0), &targets, backend);
        let ledger = record.ledger();
        // The schedule alone determines the due I/Os: 2000/s for half a second.
        assert_eq!(ledger.due, 1000, "{backend:?}: {ledger:?}");
        let late = record.workers.iter().filter_map(|worker| worker.start_delay.as_ref());
        let started: u64 = late.map(|late| late.generator.count() + late.target.count()).sum();
        assert!(started <= 1000);
        let flow = record.total(None);
        assert_eq!(flow.response_time().count(), flow.service_time.count());
    }
}

#[test]
fn reads_beyond_the_end_are_counted_as_short_with_their_offset() {
    let folder = tempfile::tempdir().unwrap();
    // The region has 16 MiB but the file has only one, as after a device was unplugged.
    let targets = [target(folder.path(), "shrunk", 1 << 20)];
    for backend in BACKENDS {
        let point = point(1, Pacing::closed(4), Workers::Total(1), 1.0);
        let (record, _) =
            run_until(&point, &targets, backend, |record| 0 < record.workers[0].errors.count);
        let errors = &record.workers[0].errors;
        for error in &errors.first {
            assert_eq!((error.target, error.kind), (0, ErrorKind::Short(0)));
            assert!(error.offset.0 >= 1 << 20);
        }
    }
}

#[test]
fn a_run_that_is_stopped_at_once_ends_and_balances() {
    let folder = tempfile::tempdir().unwrap();
    let targets = [target(folder.path(), "a", SIZE)];
    for backend in BACKENDS {
        let point = point(1, Pacing::closed(4), Workers::Total(2), 1.0);
        let devices = Devices::Real { streams: &[targets.to_vec()], backend };
        let record =
            run_point(&point, devices, &AtomicBool::new(true), &mut Log::default()).unwrap();
        assert!(record.interrupted && record.ledger().balances());
    }
}

#[test]
fn a_backend_that_cannot_be_opened_is_an_error_and_ends_every_worker() {
    let folder = tempfile::tempdir().unwrap();
    let targets = [target(folder.path(), "a", SIZE)];
    let mut point = point(1, Pacing::closed(64), Workers::Total(4), 0.0);
    // 40,000 for each worker: more than a ring can have.
    point.streams[0].pacing = Pacing::closed(160_000);
    let devices = Devices::Real { streams: &[targets.to_vec()], backend: BackendKind::Uring };
    let error = run_point(&point, devices, &AtomicBool::new(false), &mut Log::default());
    let text = error.unwrap_err().to_string();
    assert!(text.contains("uring") && text.contains("32768"), "{text}");
}

#[test]
fn a_submission_thread_serves_a_real_file() {
    let folder = tempfile::tempdir().unwrap();
    let targets = [target(folder.path(), "a", SIZE)];
    let submission_thread = Some(SubmissionThread { cpu: None });
    let ring = RingMode { polled: false, submission_thread };
    for read_share in [1.0, 0.5] {
        let mut point = point(1, Pacing::closed(8), Workers::Total(1), read_share);
        point.streams[0].access.ring = ring;
        // Runs until an I/O has completed, because the two threads may have to share a CPU with
        // others.
        point.window = Span::from_secs(60);
        let stop = AtomicBool::new(false);
        let mut log = Stopper { log: Log::default(), stop: &stop };
        let devices = Devices::Real { streams: &[targets.to_vec()], backend: BackendKind::Uring };
        let record = match run_point(&point, devices, &stop, &mut log) {
            Err(RunError::Backend { cause, .. }) if cause.kind() == PermissionDenied => {
                // Writes past the test harness, which hides the output of tests that pass.
                let _ = writeln!(std::io::stderr(), "SKIPPED: no submission thread here: {cause}");
                return;
            }
            outcome => outcome.unwrap(),
        };
        let ledger = record.ledger();
        assert!(ledger.balances() && ledger.completed > 0, "{ledger:?}");
        assert_eq!(record.errors(), 0, "{:?}", record.workers[0].errors);
        let total = record.total(None);
        assert_eq!((total.ios(), total.bytes.0), (ledger.completed, ledger.completed * BLOCK));
    }
}

#[test]
fn a_run_that_is_stopped_in_its_window_ends_for_all_workers_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let targets = [target(folder.path(), "a", SIZE)];
    for backend in BACKENDS {
        let mut point = point(1, Pacing::closed(4), Workers::Total(3), 1.0);
        point.window = Span::from_secs(60);
        let stop = AtomicBool::new(false);
        let mut log = Stopper { log: Log::default(), stop: &stop };
        let devices = Devices::Real { streams: &[targets.to_vec()], backend };
        let record = run_point(&point, devices, &stop, &mut log).unwrap();
        assert!(record.interrupted && record.ledger().balances());
        assert!(record.window > Span(0) && record.window < point.window);
        // The last interval ends with the window, and every worker had a part in it. If workers
        // ended at different times, intervals with fewer workers would follow.
        let last = record.series.last().unwrap();
        assert_eq!(last.start + last.length, record.window, "{backend:?}");
        assert!(record.series.windows(2).all(|p| p[0].start + p[0].length == p[1].start));
        assert_eq!(log.log.phases.last(), Some(&Phase::WindowCloses));
        assert!(record.queue_depth() <= 4.0 + 1e-9);
    }
}

/// Asks to stop as soon as a measurement was made.
struct Stopper<'a> {
    log: Log,
    stop: &'a AtomicBool,
}

impl Observer for Stopper<'_> {
    fn phase(&mut self, phase: Phase, ago: Span) {
        self.log.phase(phase, ago);
    }

    fn progress(&mut self, progress: &Progress) {
        if progress.in_window && progress.last_second.iops > 0.0 {
            self.stop.store(true, std::sync::atomic::Ordering::Relaxed);
        }
    }
}

/// Two streams. A worker opens its own targets and its failures name its own targets, not those
/// with the same indexes in another stream.
#[test]
fn each_stream_has_its_own_targets_and_its_own_results() {
    let folder = tempfile::tempdir().unwrap();
    let files = ["a", "b", "c"].map(|name| target(folder.path(), name, SIZE));
    let read_only = OpenTarget {
        file: std::fs::File::open(folder.path().join("c")).unwrap().into(),
        alignment: Bytes(1),
        ..files[2].clone()
    };
    let region = |target| Region { target, offset: Bytes(0), length: Bytes(SIZE) };
    let readers = Stream {
        pacing: Pacing::closed(6),
        workers: Workers::PerTarget(2),
        ..Stream::reading("readers", Vec::from([region(2), region(0)]))
    };
    let writer = Stream {
        ios: Kind {
            read_share: 0.0,
            block_sizes: BlockSizes::one(Bytes(2 * BLOCK)),
            ..Kind::default()
        }
        .into(),
        ..Stream::reading("writer", Vec::from([region(1), region(2)]))
    };
    for backend in BACKENDS {
        let streams = Vec::from([readers.clone(), writer.clone()]);
        let point = Point { seed: 5, ..Point::of(streams, Span::from_ms(300)) };
        let open = [
            Vec::from([files[2].clone(), files[0].clone()]),
            Vec::from([files[1].clone(), read_only.clone()]),
        ];
        let never = AtomicBool::new(false);
        let run = || {
            let devices = Devices::Real { streams: &open, backend };
            run_point(&point, devices, &never, &mut Log::default()).unwrap()
        };
        // On a busy machine its first write may take all of a window.
        let record = (0..100).map(|_| run()).find(|record| 0 < record.errors());
        let record = record.expect("one of a hundred windows has a failure");
        assert!(record.ledger().balances());
        let cells = |stream| {
            let workers = record.workers.iter().filter(move |worker| worker.stream == stream);
            workers.flat_map(|worker| &worker.cells).map(|cell| cell.target).collect::<Vec<_>>()
        };
        assert_eq!((cells(0), cells(1)), (Vec::from([2, 2, 0, 0]), Vec::from([1, 2])));
        let writer = record.workers.iter().find(|worker| worker.stream == 1).unwrap();
        // Every second I/O goes to a file that is open only for reading.
        assert!(writer.errors.count > 0, "{backend:?}");
        assert!(writer.errors.first.iter().all(|error| error.target == 2), "{backend:?}");
        assert_eq!(record.errors(), writer.errors.count, "{backend:?}");
        let written = writer.cells[0].flows[Direction::Write as usize].clone();
        assert_eq!(written.bytes.0, written.ios() * 2 * BLOCK);
    }
}

/// Ends the window at its first look, and keeps the record that it saw.
struct Looker {
    seen: Option<Record>,
}

impl Observer for Looker {
    fn look(&mut self, so_far: &Record) -> bool {
        assert!(self.seen.is_none(), "it had enough");
        self.seen = Some(so_far.clone());
        true
    }
}

#[test]
fn a_window_of_which_enough_is_seen_ends_at_an_intervals_end_for_all_workers() {
    let folder = tempfile::tempdir().unwrap();
    let targets = [target(folder.path(), "a", SIZE)];
    for backend in BACKENDS {
        let mut point = point(1, Pacing::closed(4), Workers::Total(3), 1.0);
        point.window = Span::from_secs(60);
        point.looks = Vec::from([200, 30_000].map(Span::from_ms));
        let mut looker = Looker { seen: None };
        let devices = Devices::Real { streams: &[targets.to_vec()], backend };
        let record = run_point(&point, devices, &AtomicBool::new(false), &mut looker).unwrap();
        assert!(record.ended_early && !record.interrupted && record.ledger().balances());
        assert!(record.window.0.is_multiple_of(point.interval.0), "{}", record.window);
        let seen = looker.seen.unwrap();
        assert_eq!(seen.window, Span::from_ms(200));
        assert!(seen.window < record.window && record.window < point.window);
        assert!(seen.total(None).ios() <= record.total(None).ios());
        assert!(seen.workers.iter().all(|worker| worker.ledger.balances()));
        let last = record.series.last().unwrap();
        assert_eq!(last.start + last.length, record.window, "{backend:?}");
        assert_eq!(record.total(None).ios(), record.ledger().completed);
    }
}
