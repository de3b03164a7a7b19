//! Runs against real files, with backends that report what they saw, or that hang.

use std::io;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use fathom_core::measure::Waits;
use fathom_core::spec::{Arrivals, Pacing, Region, Stream};
use fathom_core::{Bytes, Instant, Rate};

use super::threads::RealRun;
use super::*;
use crate::backend::{Completion, Io, Shape};
use crate::pacer::Pace;
use crate::schedule::{OpenLoop, PoissonArrivals, Steady};

/// A backend that records when each I/O was pushed.
struct Spy {
    inner: Sync,
    pushed: Vec<Instant>,
}

/// Where a spy leaves its records. Workers open and drop the backends, so the records need a place
/// outside.
static PUSHED: Mutex<Vec<Instant>> = Mutex::new(Vec::new());

impl Backend for Spy {
    const PREPARES_EARLY: Span = Sync::PREPARES_EARLY;

    fn now(&mut self) -> Instant {
        self.inner.now()
    }

    fn refresh(&mut self, slot: u32, length: u32) {
        self.inner.refresh(slot, length);
    }

    fn push(&mut self, io: Io) {
        self.pushed.push(self.inner.now());
        self.inner.push(io);
    }

    fn wait(&mut self, deadline: Instant) {
        self.inner.wait(deadline);
    }

    fn reap(&mut self, take: impl FnMut(Completion)) {
        self.inner.reap(take);
    }
}

impl RealBackend for Spy {
    const KIND: BackendKind = BackendKind::Sync;

    fn open(targets: &[OpenTarget], shape: &Shape) -> io::Result<Self> {
        Ok(Self { inner: Sync::open(targets, shape)?, pushed: Vec::with_capacity(10_000) })
    }

    fn write_buffer(&mut self, slot: u32) -> &mut [u8] {
        self.inner.write_buffer(slot)
    }

    fn read_buffer(&mut self, slot: u32) -> &mut [u8] {
        self.inner.read_buffer(slot)
    }

    fn pace(&mut self, pace: Pace) {
        self.inner.pace(pace);
    }

    fn waits(&self) -> Waits {
        self.inner.waits()
    }
}

impl Drop for Spy {
    fn drop(&mut self) {
        *PUSHED.lock().unwrap() = std::mem::take(&mut self.pushed);
    }
}

/// The largest distance between the distribution of the gaps and the exponential distribution, in
/// units of the 1 % limit of Kolmogorov and Smirnov.
fn distance_from_exponential(pushed: &[Instant], rate: f64) -> f64 {
    let gap = |pair: &[Instant]| pair[1].since(pair[0]).as_secs_f64() * rate;
    let mut gaps: Vec<f64> = pushed.windows(2).map(gap).collect();
    gaps.sort_by(f64::total_cmp);
    let n = gaps.len() as f64;
    let distances = gaps.iter().enumerate();
    let distances = distances.map(|(i, gap)| ((i as f64 + 0.5) / n - (1.0 - (-gap).exp())).abs());
    distances.fold(0.0, f64::max) / (1.63 / n.sqrt())
}

/// How late every I/O was pushed, relative to the one that was the least late. By the end, a
/// schedule that was not followed would differ from this one by a hundred milliseconds.
fn lateness(pushed: &[Instant], intended: &[Instant]) -> Vec<u64> {
    let late = |(pushed, intended): (&Instant, &Instant)| pushed.0 as i64 - intended.0 as i64;
    let late: Vec<i64> = pushed.iter().zip(intended).map(late).collect();
    let least = late.iter().min().copied().unwrap_or_default();
    let mut late: Vec<u64> = late.into_iter().map(|one| (one - least) as u64).collect();
    late.sort_unstable();
    late
}

/// However busy the machine is, some I/Os start on time. All keep the order of the schedule, whose
/// gaps are exponential.
#[test]
fn poisson_arrivals_reach_a_real_file_as_exponential_gaps() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("target");
    std::fs::write(&path, vec![1; 1 << 20]).unwrap();
    let file = std::fs::File::open(&path).unwrap();
    let (size, alignment) = (Bytes(1 << 20), Bytes(1));
    let target = OpenTarget {
        name: "target".to_owned(),
        file: file.into(),
        size,
        alignment,
        passthrough: None,
    };
    let rate = 200.0;
    let point = poisson_point(rate, 1);
    let plans = fathom_core::plan::divide(&point);
    let run = RealRun {
        contents: &[Content::RANDOM],
        point: &point,
        pointers: Arc::new(Pointers::new(&point)),
        plans: &plans,
        streams: &[Vec::from([target.clone()])],
        stop: &AtomicBool::new(false),
    };
    run.go::<Spy>(&mut Nobody, None).unwrap();
    let pushed = PUSHED.lock().unwrap().clone();
    let mut schedule =
        OpenLoop::new(Instant(0), PoissonArrivals::new(Steady::new(Rate(rate)), plans[0].seed));
    let end = Instant(0) + point.window;
    let intended: Vec<Instant> = std::iter::from_fn(|| schedule.take(end)).collect();
    // I/Os for which a worker was too late at the end were never started.
    assert!((intended.len() / 2..=intended.len()).contains(&pushed.len()));
    assert!(pushed.is_sorted());
    assert!(distance_from_exponential(&intended, rate) < 1.0);
    // In a run of this length the sum of 400 gaps of 5 ms has a spread of 100 ms.
    let late = lateness(&pushed, &intended);
    assert!(late[late.len() / 10] < 2_000_000, "{late:?}");
}

/// The first backend of this type that is opened serves `left` I/Os. Then one of its calls never
/// returns.
struct Stuck {
    inner: Sync,
    left: u64,
}

/// The number of backends that were opened.
static STUCK: AtomicU64 = AtomicU64::new(0);
const BEFORE_IT_HANGS: u64 = 500;

impl Backend for Stuck {
    fn now(&mut self) -> Instant {
        self.inner.now()
    }

    fn refresh(&mut self, slot: u32, length: u32) {
        self.inner.refresh(slot, length);
    }

    fn push(&mut self, io: Io) {
        self.left = self.left.wrapping_sub(1);
        self.inner.push(io);
    }

    fn wait(&mut self, deadline: Instant) {
        if self.left == u64::MAX {
            loop {
                thread::park();
            }
        }
        self.inner.wait(deadline);
    }

    fn reap(&mut self, take: impl FnMut(Completion)) {
        self.inner.reap(take);
    }
}

impl RealBackend for Stuck {
    const KIND: BackendKind = BackendKind::Sync;

    fn open(targets: &[OpenTarget], shape: &Shape) -> io::Result<Self> {
        let is_first = STUCK.fetch_add(1, Ordering::Relaxed) == 0;
        let left = if is_first { BEFORE_IT_HANGS } else { u64::MAX / 2 };
        Ok(Self { inner: Sync::open(targets, shape)?, left })
    }

    fn write_buffer(&mut self, slot: u32) -> &mut [u8] {
        self.inner.write_buffer(slot)
    }

    fn read_buffer(&mut self, slot: u32) -> &mut [u8] {
        self.inner.read_buffer(slot)
    }

    fn pace(&mut self, pace: Pace) {
        self.inner.pace(pace);
    }

    fn waits(&self) -> Waits {
        self.inner.waits()
    }
}

/// Asks to stop after a while, and after that refuses to wait any longer.
struct Impatient<'a> {
    stop: &'a AtomicBool,
    asked: std::cell::Cell<u32>,
}

impl Observer for Impatient<'_> {
    fn hurries(&self) -> bool {
        self.asked.set(self.asked.get() + 1);
        self.stop.store(20 <= self.asked.get(), Ordering::Relaxed);
        40 <= self.asked.get()
    }
}

#[test]
fn what_a_worker_did_until_a_call_of_its_hung_is_in_the_record_with_the_io_that_is_lost() {
    let file = tempfile::tempfile().unwrap();
    file.set_len(1 << 20).unwrap();
    let target = OpenTarget {
        name: "target".to_owned(),
        file: file.into(),
        size: Bytes(1 << 20),
        alignment: Bytes(1),
        passthrough: None,
    };
    let region = Region { target: 0, offset: Bytes(0), length: Bytes(1 << 20) };
    let stream = Stream {
        pacing: Pacing::closed(2),
        workers: fathom_core::spec::Workers::Total(2),
        ..Stream::reading("test", Vec::from([region]))
    };
    let day = Span::from_secs(86_400);
    let point =
        Point { interval: Span::from_ms(100), seed: 1, ..Point::of(Vec::from([stream]), day) };
    let stop = AtomicBool::new(false);
    let mut observer = Impatient { stop: &stop, asked: std::cell::Cell::new(0) };
    let targets = std::slice::from_ref(&target);
    let record = crate::run_point::run_on::<Stuck>(&point, targets, &stop, &mut observer).unwrap();
    assert!(record.interrupted && crate::left_behind() == 1);
    let [hung, other] = &*record.workers else { panic!("two workers") };
    let (hung, other) = match hung.ledger.lost {
        0 => (other, hung),
        _ => (hung, other),
    };
    // The other worker continues to the end, and its calls return.
    assert!(other.ledger.lost == 0 && other.ledger.completed > 0);
    assert_eq!((hung.ledger.lost, hung.ledger.completed), (1, BEFORE_IT_HANGS));
    assert_eq!(hung.cells[0].flows[0].ios(), BEFORE_IT_HANGS);
    assert!(hung.ledger.balances() && other.ledger.balances());
    let lost = hung.errors.first[0];
    assert_eq!((lost.kind, lost.target), (fathom_core::measure::ErrorKind::Lost, 0));
    assert!(lost.offset.0 < 1 << 20 && lost.at_ns < record.window.0 as i64);
}

/// Panics at the end of the first interval, as a mistake in a view would.
struct Faulty;

impl Observer for Faulty {
    fn progress(&mut self, _: &Progress) {
        panic!("a mistake in the view");
    }
}

#[test]
fn a_panic_of_the_caller_ends_the_run_at_once() {
    let file = tempfile::tempfile().unwrap();
    file.set_len(1 << 20).unwrap();
    let name = "target".to_owned();
    let target = OpenTarget {
        name,
        file: file.into(),
        size: Bytes(1 << 20),
        alignment: Bytes(1),
        passthrough: None,
    };
    // The test must not take a day.
    let point = Point { window: Span::from_secs(86_400), ..poisson_point(100.0, 1) };
    let plans = fathom_core::plan::divide(&point);
    let outcome = std::panic::catch_unwind(|| {
        let run = RealRun {
            contents: &[Content::RANDOM],
            point: &point,
            pointers: Arc::new(Pointers::new(&point)),
            plans: &plans,
            streams: &[Vec::from([target.clone()])],
            stop: &AtomicBool::new(false),
        };
        run.go::<Sync>(&mut Faulty, None).map(|_| ())
    });
    assert_eq!(outcome.unwrap_err().downcast_ref::<&str>(), Some(&"a mistake in the view"));
}

#[test]
#[should_panic(expected = "is_multiple_of")]
fn a_point_that_contradicts_itself_panics_and_does_not_hang() {
    let file = tempfile::tempfile().unwrap();
    file.set_len(1 << 20).unwrap();
    let name = "target".to_owned();
    let target = OpenTarget {
        name,
        file: file.into(),
        size: Bytes(1 << 20),
        alignment: Bytes(1),
        passthrough: None,
    };
    let point = Point { interval: Span::from_ms(300), ..poisson_point(100.0, 1) };
    let stop = AtomicBool::new(false);
    let _ =
        crate::run_point::run_on::<Sync>(&point, std::slice::from_ref(&target), &stop, &mut Nobody);
}

fn poisson_point(rate: f64, seed: u64) -> Point {
    let pacing = Pacing::open(Rate(rate), Arrivals::Poisson, 1);
    Point {
        name: "test".to_owned(),
        interval: Span::from_ms(100),
        seed,
        ..Point::of(
            Vec::from([Stream {
                pacing,
                ..Stream::reading(
                    "test",
                    Vec::from([Region { target: 0, offset: Bytes(0), length: Bytes(1 << 20) }]),
                )
            }]),
            Span::from_secs(2),
        )
    }
}
