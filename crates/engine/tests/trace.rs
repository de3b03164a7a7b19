//! Tests that the trace of a run has every I/O that the record counts, and that the same seed
//! issues the same I/Os.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::atomic::AtomicBool;

use fathom_core::measure::{Direction, ErrorKind, Histogram, Ledger, Record};
use fathom_core::spec::{
    Arrivals, BackendKind, BlockSizes, Distribution, Extent, HotRange, Kind, Limit, Order, Pacing,
    Pattern, Point, Region, Sequence, Stream, Workers,
};
use fathom_core::{Bytes, Rate, Span};
use fathom_engine::sim::Options;
use fathom_engine::target::OpenTarget;
use fathom_engine::trace::{TracePhase, TracedIo, TracedIos, Tracer};
use fathom_engine::{Devices, Nobody, run_traced};

const BLOCK: u64 = 4096;
const SIZE: u64 = 16 << 20;

/// Keeps the I/Os of each worker of each stream.
#[derive(Default)]
struct Keep(BTreeMap<(u32, u32), Vec<TracedIo>>);

impl Tracer for Keep {
    fn take(&mut self, ios: &TracedIos<'_>) {
        self.0.entry((ios.stream(), ios.worker())).or_default().extend(ios.iter());
    }
}

/// An I/O as it was issued: target, direction, offset and length.
type Issued = (u32, Direction, u64, u32);

impl Keep {
    fn all(&self) -> impl Iterator<Item = &TracedIo> {
        self.0.values().flatten()
    }

    /// The I/Os of each worker, in the order of issue.
    fn issued(&self) -> BTreeMap<(u32, u32), Vec<Issued>> {
        let of_worker = |ios: &Vec<TracedIo>| {
            let mut ios = ios.clone();
            ios.sort_by_key(|io| io.number);
            assert!(ios.iter().zip(0..).all(|(io, number)| io.number == number));
            ios.iter().map(|io| (io.target, io.direction, io.offset, io.length)).collect()
        };
        self.0.iter().map(|(worker, ios)| (*worker, of_worker(ios))).collect()
    }
}

fn stream(pattern: Pattern, pacing: Pacing, workers: Workers, targets: u32) -> Stream {
    let region = |target| Region { target, offset: Bytes(BLOCK), length: Bytes(SIZE - BLOCK) };
    let sizes = [(Bytes(BLOCK), 2.0), (Bytes(2 * BLOCK), 1.0)];
    Stream {
        ios: Kind {
            pattern,
            block_sizes: BlockSizes::weighted(&sizes, &sizes),
            read_share: 0.7,
            ..Kind::default()
        }
        .into(),
        pacing,
        workers,
        ..Stream::reading("test", (0..targets).map(region).collect())
    }
}

fn point(stream: Stream, window: Span) -> Point {
    Point {
        warm_up: Span::from_ms(20),
        interval: window,
        seed: 7,
        ..Point::of(Vec::from([stream]), window)
    }
}

fn traced(point: &Point, devices: Devices<'_>) -> (Record, Keep) {
    let mut keep = Keep::default();
    let never = AtomicBool::new(false);
    let record = run_traced(point, devices, &never, &mut Nobody, Some(&mut keep)).unwrap();
    (record, keep)
}

const CLOSED: Pacing = Pacing::closed(16);

fn open(arrivals: Arrivals) -> Pacing {
    Pacing::open(Rate(3000.0), arrivals, 64)
}

/// Checks that a trace shows the same figures as a record.
#[track_caller]
fn assert_same(record: &Record, trace: &Keep) {
    assert!(
        trace.all().all(|io| io.left_out == 0),
        "a tracer that keeps them in memory is fast enough"
    );
    let count = |keep: &dyn Fn(&TracedIo) -> bool| trace.all().filter(|io| keep(io)).count() as u64;
    let counted = Ledger {
        due: trace.all().count() as u64 + record.ledger().unstarted,
        completed_in_warm_up: count(&|io| io.phase == TracePhase::WarmUp && io.failure.is_none()),
        completed: count(&|io| io.phase == TracePhase::Window && io.failure.is_none()),
        failed: count(&|io| io.phase != TracePhase::After && io.failure.is_some()),
        in_flight: count(&|io| {
            io.phase == TracePhase::After && io.failure != Some(ErrorKind::Lost)
        }),
        lost: count(&|io| io.failure == Some(ErrorKind::Lost)),
        unstarted: record.ledger().unstarted,
    };
    assert_eq!(counted, record.ledger());
    assert_eq!(count(&|io| io.failure.is_some()), record.errors());
    for direction in Direction::BOTH {
        let flow = record.total(Some(direction));
        let (mut bytes, mut service, mut response) =
            (0, Histogram::default(), Histogram::default());
        for io in trace.all().filter(|io| io.direction == direction) {
            if io.phase == TracePhase::Window && io.failure.is_none() {
                bytes += u64::from(io.length);
                service.record(io.service_time.unwrap().0);
                response.record(io.response_time.unwrap().0);
            }
        }
        assert_eq!(bytes, flow.bytes.0);
        assert_eq!(service, flow.service_time);
        assert_eq!(&response, flow.response_time());
    }
}

fn patterns() -> Vec<Pattern> {
    let hot = HotRange { io_share: 0.9, extent: Extent::Share(0.1) };
    let zipf = Distribution::Zipf { theta: 1.1, order: Order::Spread };
    Vec::from([
        Pattern::RANDOM,
        Pattern::SEQUENTIAL,
        Pattern::Sequential(Sequence { backward: true, ..Sequence::default() }),
        Pattern::Random(zipf.clone()),
        Pattern::Random(Distribution::Pareto { h: 0.2, order: Order::Spread }),
        Pattern::Random(Distribution::Normal { deviation: 0.1, center: 0.5 }),
        Pattern::Random(Distribution::Hot(Vec::from([hot]))),
        Pattern::Mixed { random_share: 0.3, distribution: zipf },
    ])
}

#[test]
fn the_trace_of_a_simulated_device_counts_as_its_record_does() {
    for device in [
        "queue,servers=4,distribution=exponential,error=1%,short=1%,zero=1%",
        "queue,servers=2,service-time=3ms",
        "ssd,error-every=100",
    ] {
        let options: Options = device.parse().expect(device);
        for pacing in [CLOSED, open(Arrivals::Uniform), open(Arrivals::Poisson)] {
            let stream = stream(Pattern::RANDOM, pacing.clone(), Workers::Total(2), 1);
            let point = point(stream, Span::from_ms(500));
            let (record, trace) = traced(&point, Devices::Simulated(&options));
            assert!(record.ledger().completed > 0);
            assert_same(&record, &trace);
            // In virtual time everything repeats to the nanosecond.
            let (_, again) = traced(&point, Devices::Simulated(&options));
            assert_eq!(trace.0, again.0, "{device}, {pacing:?}");
        }
    }
}

#[test]
fn a_closed_loop_starts_when_it_submits() {
    let options: Options = "queue,servers=1,service-time=1ms".parse().unwrap();
    let stream = stream(Pattern::RANDOM, Pacing::closed(1), Workers::Total(1), 1);
    let (_, trace) = traced(&point(stream, Span::from_ms(100)), Devices::Simulated(&options));
    let starts = trace.all().map(|io| io.start_ns);
    // From the beginning of the warm-up, one I/O after the other.
    assert!(starts.eq((0..120).map(|ms| (ms - 20) * 1_000_000)));
    assert!(trace.all().all(|io| io.service_time == Some(Span::from_ms(1))));
    assert!(trace.all().all(|io| io.response_time == io.service_time));
}

#[test]
fn what_falls_due_first_is_issued_first() {
    // All I/Os in flight come back at the end of a stall, so the same number start at once.
    let options: Options = "queue,servers=8,service-time=1ms,stall=50ms+100ms".parse().unwrap();
    for arrivals in [Arrivals::Uniform, Arrivals::Poisson] {
        let stream = stream(Pattern::SEQUENTIAL, open(arrivals), Workers::Total(1), 1);
        let (_, trace) = traced(&point(stream, Span::from_ms(500)), Devices::Simulated(&options));
        let mut ios: Vec<&TracedIo> = trace.all().collect();
        ios.sort_by_key(|io| io.number);
        assert!(ios.windows(2).all(|pair| pair[0].start_ns <= pair[1].start_ns), "{arrivals:?}");
        let together = |pair: &[&TracedIo]| {
            let submitted = |io: &TracedIo| {
                let waited = io.response_time.unwrap() - io.service_time.unwrap();
                io.start_ns + waited.0 as i64
            };
            submitted(pair[0]) == submitted(pair[1])
        };
        assert!(ios.windows(2).filter(|pair| together(pair)).count() > 50, "{arrivals:?}");
    }
}

#[test]
fn the_load_goes_on_in_the_cool_down_and_no_longer() {
    let options: Options = "queue,servers=4,service-time=1ms".parse().unwrap();
    let limit = |ios| Some(Limit::Ios(ios));
    for (pacing, limit, cooling) in [
        // Four per millisecond, and the number that was due.
        (CLOSED, None, 200),
        (open(Arrivals::Uniform), None, 150),
        // 492 I/Os start before the window's end. One load is done before that, and the other
        // continues to its limit.
        (CLOSED, limit(400), 0),
        (CLOSED, limit(500), 8),
    ] {
        let pacing = Pacing { limit, ..pacing };
        let stream = stream(Pattern::RANDOM, pacing.clone(), Workers::Total(2), 1);
        let point = Point { cool_down: Span::from_ms(50), ..point(stream, Span::from_ms(100)) };
        let (record, trace) = traced(&point, Devices::Simulated(&options));
        let (window, end) = (record.window.0 as i64, (record.window + point.cool_down).0 as i64);
        let cooled: Vec<&TracedIo> =
            trace.all().filter(|io| io.phase == TracePhase::CoolDown).collect();
        assert_eq!(cooled.len(), cooling, "{pacing:?}");
        assert!(cooled.iter().all(|io| (window..end).contains(&io.start_ns)));
        let recorded = trace.all().filter(|io| io.phase != TracePhase::CoolDown).count() as u64;
        assert_eq!(record.ledger().due, recorded + record.ledger().unstarted);
    }
}

#[test]
fn the_load_goes_on_after_the_window_on_files() {
    for backend in [BackendKind::Sync, BackendKind::Aio] {
        for pacing in [CLOSED, open(Arrivals::Poisson)] {
            let folder = tempfile::tempdir().unwrap();
            let streams = &[Vec::from([target(folder.path(), "a")])];
            let stream = stream(Pattern::RANDOM, pacing.clone(), Workers::Total(2), 1);
            let point =
                Point { cool_down: Span::from_ms(300), ..point(stream, Span::from_ms(100)) };
            // A busy machine may leave the cool-down without a worker that runs.
            let (record, trace) = (0..100)
                .map(|_| traced(&point, Devices::Real { streams, backend }))
                .find(|(_, trace)| trace.all().any(|io| io.phase == TracePhase::CoolDown))
                .expect("one of a hundred cool-downs has load");
            let end = (record.window + point.cool_down).0 as i64;
            let (cooled, recorded): (Vec<&TracedIo>, Vec<&TracedIo>) =
                trace.all().partition(|io| io.phase == TracePhase::CoolDown);
            // A worker may be delayed between its last look at the clock and the start of the I/Os
            // that are due then. It starts one more batch late, all at once.
            let late: BTreeSet<i64> =
                cooled.iter().map(|io| io.start_ns).filter(|&start| start >= end).collect();
            assert!(late.len() <= 2, "{backend:?}, {late:?}");
            assert_eq!(record.ledger().due, recorded.len() as u64 + record.ledger().unstarted);
        }
    }
}

fn target(folder: &Path, name: &str) -> OpenTarget {
    let path = folder.join(name);
    std::fs::write(&path, vec![7; SIZE as usize]).unwrap();
    let file = std::fs::OpenOptions::new().read(true).write(true).open(&path).unwrap();
    OpenTarget {
        name: name.to_owned(),
        file: file.into(),
        size: Bytes(SIZE),
        alignment: Bytes(1),
        passthrough: None,
    }
}

/// Several workers on files, with pread and pwrite, which work everywhere.
fn on_files(stream: Stream) -> (Record, Keep) {
    let folder = tempfile::tempdir().unwrap();
    let names = ["a", "b"].into_iter().take(stream.regions.len());
    let streams = &[names.map(|name| target(folder.path(), name)).collect()];
    // On a busy machine a worker may get no CPU in time, and then it issues nothing.
    for _ in 0..100 {
        let devices = Devices::Real { streams, backend: BackendKind::Sync };
        let (record, trace) = traced(&point(stream.clone(), Span::from_ms(100)), devices);
        if record.workers.iter().all(|worker| 0 < worker.ledger.due) {
            return (record, trace);
        }
    }
    panic!("in none of a hundred windows did all workers work");
}

#[test]
fn the_same_seed_issues_the_same_ios_on_files() {
    for pattern in patterns() {
        for workers in [Workers::PerTarget(2), Workers::Total(3)] {
            let run = || on_files(stream(pattern.clone(), CLOSED, workers, 2));
            let (record, one) = run();
            assert_same(&record, &one);
            let (one, other) = (one.issued(), run().1.issued());
            assert_eq!(one.keys().collect::<Vec<_>>(), other.keys().collect::<Vec<_>>());
            for (worker, ios) in &one {
                // How far a worker gets depends on the machine. Its I/Os do not.
                let both = ios.len().min(other[worker].len());
                assert!(both > 0);
                assert_eq!(ios[..both], other[worker][..both], "{pattern}, worker {worker:?}");
            }
        }
    }
}

#[test]
fn interlocked_workers_issue_what_one_pointer_gives() {
    let one_size = |mut stream: Stream| {
        stream.kind_mut().block_sizes = BlockSizes::one(Bytes(BLOCK));
        stream
    };
    let pattern = Pattern::Interlocked { stride: None };
    let (record, trace) = on_files(one_size(stream(pattern, CLOSED, Workers::Total(3), 1)));
    assert_same(&record, &trace);
    let blocks = SIZE / BLOCK - 1;
    let mut issued = vec![0_u64; blocks as usize];
    trace.all().for_each(|io| issued[(io.offset / BLOCK - 1) as usize] += 1);
    let count: u64 = issued.iter().sum();
    for (block, times) in (0..).zip(issued) {
        let whole_passes = count / blocks;
        assert_eq!(times, whole_passes + u64::from(block < count % blocks), "block {block}");
    }
}

#[test]
fn an_open_loop_on_files_is_traced_with_its_intended_starts() {
    let (record, trace) =
        on_files(stream(Pattern::RANDOM, open(Arrivals::Uniform), Workers::Total(1), 1));
    assert_same(&record, &trace);
    let mut ios: Vec<&TracedIo> = trace.all().collect();
    ios.sort_by_key(|io| io.start_ns);
    let step = 1_000_000_000 / 3000;
    assert!(ios.windows(2).all(|pair| (pair[1].start_ns - pair[0].start_ns - step).abs() <= 1));
    assert!(ios.iter().all(|io| io.service_time <= io.response_time));
}
