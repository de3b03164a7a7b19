//! A run needs memory for its intervals, workers and targets, whatever the number of I/Os. A long
//! series needs little more memory for its distributions than a short one.
//!
//! An allocator counts the bytes in use. This is a program with one test, because the allocator
//! would count other tests too.

#![expect(unsafe_code, reason = "an allocator is unsafe by definition")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use fathom_core::measure::{Interval, Record};
use fathom_core::spec::{Pacing, Point, Region, Stream};
use fathom_core::{Bytes, Span};
use fathom_engine::{Devices, Nobody, replay, run_point, sim};

static IN_USE: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

struct Counting;

// SAFETY: the system's allocator does all the work.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let now = IN_USE.fetch_add(layout.size(), Ordering::Relaxed) + layout.size();
        PEAK.fetch_max(now, Ordering::Relaxed);
        // SAFETY: the caller's guarantees hold for this call too.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        IN_USE.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's guarantees hold for this call too.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The highest number of bytes in use at once during some work, beyond those in use before it.
fn peak_of<T>(work: impl FnOnce() -> T) -> (usize, T) {
    let before = IN_USE.load(Ordering::Relaxed);
    PEAK.store(before, Ordering::Relaxed);
    let result = work();
    (PEAK.load(Ordering::Relaxed) - before, result)
}

fn point(window: Span, interval: Span) -> Point {
    let stream = Stream {
        pacing: Pacing::closed(8),
        ..Stream::reading(
            "random read 4 KiB",
            Vec::from([Region { target: 0, offset: Bytes(0), length: Bytes(1 << 30) }]),
        )
    };
    Point { interval, ..Point::of(Vec::from([stream]), window) }
}

/// A run of ten intervals, however long the window is.
fn simulated(seconds: u64) -> (usize, Record) {
    let options: sim::Options =
        "queue,servers=8,service-time=100us,distribution=exponential".parse().unwrap();
    let point = point(Span::from_secs(seconds), Span::from_ms(seconds * 100));
    let never = AtomicBool::new(false);
    peak_of(|| run_point(&point, Devices::Simulated(&options), &never, &mut Nobody).unwrap())
}

/// A replay of `seconds` intervals of a second, each with 100 different times.
fn replayed(seconds: u64) -> (usize, Record) {
    let point = point(Span::from_secs(seconds), Span::from_secs(1));
    peak_of(|| {
        replay(&point, &mut |_, start, tally| {
            let flow = &mut tally.flows[0];
            (0..100).for_each(|k| flow.service_time.record(100_000 + 1_000 * k + start.0 % 977));
            flow.bytes.0 += 409_600;
        })
    })
}

#[test]
fn memory_grows_with_neither_the_ios_nor_the_distributions_over_time() {
    let (few, short) = simulated(2);
    let (many, long) = simulated(20);
    assert!(long.ledger().completed > 9 * short.ledger().completed);
    assert_eq!((short.series.len(), long.series.len()), (10, 10));
    // More I/Os occupy a few more buckets.
    assert!(many < few + 64 * 1024, "{few} and {many} bytes");

    let (some, hour) = replayed(3_600);
    let (most, day) = replayed(36_000);
    assert_eq!((hour.series.len(), day.series.len()), (3_600, 36_000));
    assert!(day.stretches.len() <= 600);
    // The plain numbers are in a vector that doubles as it grows, and is copied each time.
    let plain = 3 * 36_000 * size_of::<Interval>();
    assert!(most < some + plain, "{some} and {most} bytes");
    assert!(size_of::<Interval>() <= 144);
}
