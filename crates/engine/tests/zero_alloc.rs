//! Tests that the hot loop allocates nothing between the start and the end of the window.
//!
//! An allocator counts for this whole program. On real files the worker has its own thread, and the
//! collector has the caller's. Allocations of any other thread in the window are those of the loop
//! or its backend, and must be zero. In virtual time both share a thread. There a run of ten times
//! as many I/Os, in the same number of intervals, must allocate exactly as often.
//!
//! There is one test, because the allocator would count a second one too.

#![expect(unsafe_code, reason = "an allocator that counts is an unsafe trait")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{self, Duration};

use fathom_core::measure::Direction;
use fathom_core::spec::{
    Access, Active, Arrivals, BackendKind, BlockSizes, Course, Distribution, Extent, HotRange,
    Kind, Limit, Loop, OfferedLoad, Order, Pacing, Pattern, Point, Region, RestFrom, Rests, Stage,
    Stream, Workers,
};
use fathom_core::{Bytes, Instant, Rate, Span};
use fathom_engine::backend::{Backend, Io};
use fathom_engine::sim::{Options, Sim};
use fathom_engine::target::OpenTarget;
use fathom_engine::trace::{TracedIos, Tracer};
use fathom_engine::{Devices, Observer, Phase, Progress, choose, run_traced};

/// Passes calls on to the system's allocator, and counts them.
struct Counting;

/// Allocations by every thread that did not exempt itself.
static BY_OTHERS: AtomicU64 = AtomicU64::new(0);

thread_local! {
    static BY_THIS_THREAD: Cell<u64> = const { Cell::new(0) };
    static IS_EXEMPT: Cell<bool> = const { Cell::new(false) };
}

fn count() {
    // Neither value has a destructor, so both exist until the very end of the thread.
    BY_THIS_THREAD.with(|count| count.set(count.get() + 1));
    // The harness has the program's first thread, and says there that a test takes long.
    // SAFETY: both calls only return a number.
    let is_harness = unsafe { libc::gettid() == libc::getpid() };
    if !is_harness && !IS_EXEMPT.with(Cell::get) {
        BY_OTHERS.fetch_add(1, Ordering::Relaxed);
    }
}

// SAFETY: every call is passed on unchanged to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: the caller satisfies the requirements of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: the caller satisfies the requirements of `alloc_zeroed`.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count();
        // SAFETY: the caller satisfies the requirements of `realloc`.
        unsafe { System.realloc(memory, layout, size) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: the caller satisfies the requirements of `dealloc`.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Reads the others' count when the window opens and at the end of each interval, as long as the
/// window is far from its end: then the workers end, and may allocate. Its memory is allocated
/// beforehand.
struct Watch {
    /// For how long it reads.
    length: Duration,
    opened: Option<(time::Instant, u64)>,
    at_slices: Vec<u64>,
}

impl Observer for Watch {
    fn phase(&mut self, phase: Phase, ago: Span) {
        if phase == Phase::WindowOpens {
            let at = time::Instant::now() - Duration::from_nanos(ago.0);
            self.opened = Some((at, BY_OTHERS.load(Ordering::Relaxed)));
        }
    }

    fn progress(&mut self, progress: &Progress) {
        let Some((opened, _)) = self.opened.filter(|_| progress.in_window) else { return };
        let count = BY_OTHERS.load(Ordering::Relaxed);
        if opened.elapsed() < self.length {
            self.at_slices.push(count);
        }
    }
}

/// Counts the I/Os that it receives.
struct Counted(u64);

impl Tracer for Counted {
    fn take(&mut self, ios: &TracedIos<'_>) {
        self.0 += ios.iter().count() as u64;
    }
}

const BLOCK: u64 = 4096;
const SIZE: u64 = 16 << 20;

fn point(pacing: Pacing, pattern: Pattern, window: Span, interval: Span) -> Point {
    Point {
        name: "allocations".to_owned(),
        warm_up: Span::from_ms(200),
        interval,
        seed: 5,
        ..Point::of(
            Vec::from([Stream {
                ios: Kind {
                    pattern,
                    block_sizes: BlockSizes::one(Bytes(BLOCK)),
                    read_share: 0.5,
                    ..Kind::default()
                }
                .into(),
                pacing,
                ..Stream::reading(
                    "load",
                    Vec::from([Region { target: 0, offset: Bytes(0), length: Bytes(SIZE) }]),
                )
            }]),
            window,
        )
    }
}

fn pacings(offered_load: f64) -> [Pacing; 3] {
    let open = |arrivals| Pacing::open(Rate(offered_load), arrivals, 16);
    [Pacing::closed(8), open(Arrivals::Uniform), open(Arrivals::Poisson)]
}

#[test]
fn nothing_is_allocated_between_the_start_and_the_end_of_the_window() {
    IS_EXEMPT.with(|exempt| exempt.set(true));
    the_counter_counts();
    simulated_devices_allocate_nothing();
    a_longer_run_in_virtual_time_allocates_no_more();
    workers_that_share_a_device_allocate_nothing();
    workers_on_real_files_allocate_nothing();
}

/// Tests the counter: a test that cannot fail proves nothing.
fn the_counter_counts() {
    let mine = BY_THIS_THREAD.get();
    let others = BY_OTHERS.load(Ordering::Relaxed);
    drop(std::hint::black_box(Box::new(7)));
    assert_eq!(BY_THIS_THREAD.get(), mine + 1);
    assert_eq!(BY_OTHERS.load(Ordering::Relaxed), others);
    let work = || drop(std::hint::black_box(Box::new(7)));
    std::thread::spawn(work).join().expect("it does not panic");
    assert!(others < BY_OTHERS.load(Ordering::Relaxed));
}

/// Drives the devices directly, with every feature enabled, and counts exactly.
fn simulated_devices_allocate_nothing() {
    for device in [
        "queue,distribution=exponential,error=1%,short=1%,zero=1%,stall=10ms+5ms/50ms,noise=5%",
        "ssd,cache=256k,collect-every=16m,error-every=100,stall=10ms+5ms/50ms,noise=5%",
        "hdd,ncq=8,stall=10ms+5ms/50ms,noise=5%",
        "array,level=raid5,disks=5",
        "array,level=raid5,disks=5,disk=hdd,cache=4m",
        "burst,rate=5000,burst=20000,credit=1s",
        "table,run-noise=3%,compresses=0.5",
        "grid,p50-noise=4%,p95-noise=8%",
        "study-write-concurrency",
    ] {
        let options: Options = device.parse().expect(device);
        let slots = 64;
        let mut sim = Sim::open(&options, slots);
        let mut free: Vec<u32> = (0..slots).collect();
        let mut completions = Vec::with_capacity(slots as usize);
        let before = BY_THIS_THREAD.get();
        for round in 0..20_000u64 {
            for slot in free.drain(..) {
                let write = (round + u64::from(slot)).is_multiple_of(3);
                let direction = if write { Direction::Write } else { Direction::Read };
                let offset = (round * 7919 + u64::from(slot)) * 65_536 % (1 << 36);
                sim.push(Io { slot, target: 0, direction, offset, length: 65_536 });
            }
            sim.wait_and_reap(Instant(u64::MAX / 2), &mut completions);
            free.extend(completions.drain(..).map(|completion| completion.slot));
        }
        assert_eq!(BY_THIS_THREAD.get(), before, "{device}");
    }
}

/// One pattern of each kind. Without repetition, the longer run begins several passes over the
/// region.
fn patterns() -> [Pattern; 6] {
    let zipf = Distribution::Zipf { theta: 1.1, order: Order::Spread };
    let hot = HotRange { io_share: 0.9, extent: Extent::Share(0.1) };
    [
        Pattern::RANDOM,
        Pattern::SEQUENTIAL,
        Pattern::Interlocked { stride: None },
        Pattern::Shuffled,
        Pattern::Random(Distribution::Hot(Vec::from([hot]))),
        Pattern::Mixed { random_share: 0.3, distribution: zipf },
    ]
}

/// The number of allocations of a run, and the number of its I/Os.
fn virtual_run(device: &str, pacing: Pacing, pattern: Pattern, seconds: u64) -> (u64, u64) {
    let window = Span::from_secs(seconds);
    run_in_virtual_time(device, &point(pacing, pattern, window, window))
}

fn run_in_virtual_time(device: &str, point: &Point) -> (u64, u64) {
    let options: Options = device.parse().expect(device);
    let at_slices = Vec::with_capacity(16);
    let mut watch = Watch { length: Duration::ZERO, opened: None, at_slices };
    let never = AtomicBool::new(false);
    let mut tracer = Counted(0);
    let is_traced = *point.streams[0].pattern() == Pattern::SEQUENTIAL;
    let tracer = is_traced.then_some(&mut tracer as &mut dyn Tracer);
    let before = BY_THIS_THREAD.get();
    let record = run_traced(point, Devices::Simulated(&options), &never, &mut watch, tracer);
    let allocations = BY_THIS_THREAD.get() - before;
    let record = record.expect("a simulated device can always be opened");
    assert!(record.ledger().balances());
    (allocations, record.ledger().due)
}

fn a_longer_run_in_virtual_time_allocates_no_more() {
    for pacing in pacings(10e3) {
        // With a constant service time and fewer than 16 in flight, the same buckets fill up
        // however long the run is. The sparse histograms of the series then have the same size.
        // Each run has one interval.
        let device = "queue,servers=16,error-every=100";
        for pattern in patterns() {
            let (short, few) = virtual_run(device, pacing.clone(), pattern.clone(), 1);
            let (long, many) = virtual_run(device, pacing.clone(), pattern.clone(), 10);
            assert_eq!(short, long, "{pattern}, {pacing:?}: {few} and {many} I/Os");
            assert!(many > 7 * few);
        }
    }
    paces_allocate_no_more_the_longer_they_last();
    for device in ["ssd", "queue,servers=1,distribution=exponential"] {
        // A longer run uses more buckets. Two sparse histograms grow by doubling, at most 13 times
        // until they hold every possible bucket.
        for pacing in pacings(5e3) {
            let (short, few) = virtual_run(device, pacing.clone(), Pattern::RANDOM, 1);
            let (long, many) = virtual_run(device, pacing.clone(), Pattern::RANDOM, 10);
            assert!(long.abs_diff(short) <= 26, "{device}, {pacing:?}: {short} and {long}");
            assert!(many > 7 * few);
        }
    }
}

/// Two streams of four workers each, with one kind of loop each.
fn workers_that_share_a_device_allocate_nothing() {
    // The open loops have so few I/Os that none ever waits for a slot.
    let [closed, uniform, poisson] = pacings(1e3);
    for pacings in [[closed.clone(), poisson], [uniform, closed]] {
        let [(short, few), (long, many)] = [1, 10].map(|seconds| {
            let window = Span::from_secs(seconds);
            let mut point = point(pacings[0].clone(), Pattern::RANDOM, window, window);
            point.streams[0].workers = Workers::Total(4);
            point.streams.push(Stream { pacing: pacings[1].clone(), ..point.streams[0].clone() });
            run_in_virtual_time("queue,servers=32,error-every=100", &point)
        });
        assert_eq!(short, long, "{pacings:?}: {few} and {many} I/Os");
        assert!(many > 7 * few);
    }
}

/// Every way to set a pace that [`pacings`] does not have.
fn paces() -> Vec<(&'static str, Stream)> {
    let [closed, _, poisson] = pacings(10e3);
    let stage =
        |begins, ends| Stage { lasts: Span::from_ms(100), begins: Rate(begins), ends: Rate(ends) };
    let stages = [stage(5e3, 1e4), stage(1e4, 1e4), stage(0.0, 0.0), stage(3e4, 1e4)];
    let course = OfferedLoad::Course(Course::new(stages.to_vec()));
    let think = |exponential| Rests::Think { time: Span::from_us(100), exponential };
    let bursts = Rests::Bursts { ios: 5, rest: Span::from_us(100), from: RestFrom::LastCompletion };
    let late = Active { start: Some(Span::from_ms(100)), end: None };
    let stream = |pacing| {
        let region = Region { target: 0, offset: Bytes(0), length: Bytes(SIZE) };
        Stream {
            ios: Kind { read_share: 0.5, ..Kind::default() }.into(),
            pacing,
            ..Stream::reading("load", Vec::from([region]))
        }
    };
    let resting = |rests| stream(Pacing::of(Loop::Closed { queue_depth: 8, rests }));
    let changing = |arrivals| {
        let (load, queue_depth_max, realtime) = (course.clone(), 64, false);
        stream(Pacing::of(Loop::Open { load, arrivals, queue_depth_max, realtime }))
    };
    let limit = Some(Limit::Bytes(Bytes(1 << 50)));
    Vec::from([
        ("closed", stream(closed.clone())),
        ("think time", resting(think(false))),
        ("exponential think time", resting(think(true))),
        ("bursts", resting(bursts)),
        ("from a start on", stream(Pacing { active: late, ..poisson })),
        ("with a limit", stream(Pacing { limit, ..closed })),
        ("uniform course", changing(Arrivals::Uniform)),
        ("Poisson course", changing(Arrivals::Poisson)),
    ])
}

fn paces_allocate_no_more_the_longer_they_last() {
    for (pace, stream) in paces() {
        let run = |seconds| {
            let window = Span::from_secs(seconds);
            let streams = Vec::from([stream.clone()]);
            let point = Point { interval: window, ..Point::of(streams, window) };
            run_in_virtual_time("queue,servers=16,error-every=100", &point)
        };
        let ((short, few), (long, many)) = (run(1), run(10));
        assert_eq!(short, long, "{pace}: {few} and {many} I/Os");
        assert!(many > 7 * few, "{pace}");
    }
}

fn target(folder: &Path) -> OpenTarget {
    let path = folder.join("target");
    std::fs::write(&path, vec![7; SIZE as usize]).expect("a temporary folder has 16 MiB");
    let options = || {
        let mut options = std::fs::OpenOptions::new();
        options.read(true).write(true);
        options
    };
    // A temporary folder on a file system without direct I/O serves this test as well.
    let direct = options().custom_flags(libc::O_DIRECT).open(&path);
    let alignment = Bytes(if direct.is_ok() { BLOCK } else { 1 });
    let file = direct.unwrap_or_else(|_| options().open(&path).expect("it was just written"));
    OpenTarget {
        name: "target".to_owned(),
        file: file.into(),
        size: Bytes(SIZE),
        alignment,
        passthrough: None,
    }
}

fn workers_on_real_files_allocate_nothing() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let targets = [target(folder.path())];
    let access = Access::DIRECT;
    let all = [BackendKind::Uring, BackendKind::Aio, BackendKind::Sync];
    // Backends that this machine forbids cannot be measured. pread and pwrite work everywhere.
    let works = |kind: &BackendKind| choose(Some(*kind), access).is_ok();
    let backends: Vec<BackendKind> = all.into_iter().filter(works).collect();
    assert!(backends.contains(&BackendKind::Sync));
    for backend in backends {
        for pattern in [Pattern::RANDOM, Pattern::SEQUENTIAL] {
            for pacing in pacings(2e3) {
                let (window, interval) = (Span::from_ms(500), Span::from_ms(100));
                let point = point(pacing.clone(), pattern.clone(), window, interval);
                // On a busy machine the intervals may be seen too late, and say nothing.
                let is_seen = (0..100).any(|_| {
                    let length = Duration::from_nanos(window.0 - interval.0);
                    let at_slices = Vec::with_capacity(16);
                    let mut watch = Watch { length, opened: None, at_slices };
                    let devices = Devices::Real { streams: &[targets.to_vec()], backend };
                    let never = AtomicBool::new(false);
                    // Sequential runs are traced.
                    let mut tracer = Counted(0);
                    let is_traced = pattern == Pattern::SEQUENTIAL;
                    let tracer = is_traced.then_some(&mut tracer as &mut dyn Tracer);
                    let record = run_traced(&point, devices, &never, &mut watch, tracer);
                    let record = record.expect("the backend was chosen because it works");
                    let (_, opening) = watch.opened.expect("the window opened");
                    for count in &watch.at_slices {
                        assert_eq!(*count, opening, "{backend:?}, {pattern:?}, {pacing:?}");
                    }
                    watch.at_slices.len() >= 2 && record.ledger().completed > 0
                });
                assert!(is_seen, "{backend:?}: one of a hundred runs is seen in time");
            }
        }
    }
}
