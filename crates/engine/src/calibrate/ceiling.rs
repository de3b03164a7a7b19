//! The ceiling of one worker, found in some milliseconds before a run: the cost of an I/O with
//! nothing behind the backend.
//!
//! Each run measures it anew instead of reading an earlier result: a clock rate, a mitigation or a
//! neighbor may have changed. It is CPU time for each I/O and not a rate, so that a thread that was
//! kept off its CPU for a while does not look slower than it is.

use std::io;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

use fathom_core::calibration::{Ceiling, Cost, NullTarget};
use fathom_core::measure::Tally;
use fathom_core::spec::BackendKind;
use fathom_core::{Instant, Span, plan};

use super::{SIZE, open_zeros, point};
use crate::aio::Aio;
use crate::backend::{RealBackend, Shape};
use crate::host::{ThreadTime, own_cpu};
use crate::open_target::OpenTarget;
use crate::pattern::Pointers;
use crate::run_point::drive_plan;
use crate::sync::Sync;
use crate::timetable::Timetable;
use crate::uring::{NopRing, no_target};
use crate::worker::{Assignment, Sink};

/// Until the caches, the branch predictor and the pages of the histogram are warm.
const WARM_UP: Span = Span::from_us(500);
/// Some thousand I/Os at every depth.
const WINDOW: Span = Span::from_ms(2);

/// Fewer I/Os mean that the thread was kept off its CPU for nearly all of the window.
const ENOUGH: u64 = 100;
/// How often this is tried again.
const ATTEMPTS: u32 = 5;
/// How long to wait for it at most. A host that does not give some milliseconds of CPU time within
/// this time is measured without a ceiling.
const PATIENCE: Duration = Duration::from_secs(2);

/// Measures the ceiling of one worker of a backend. Takes some milliseconds; none if the backend
/// cannot be measured, or has no ceiling, like simulated ones.
pub fn ceiling(backend: BackendKind) -> Option<Ceiling> {
    let (target, opened) = match backend {
        BackendKind::Uring => (NullTarget::NopRing, no_target(SIZE)),
        BackendKind::Aio | BackendKind::Sync => (NullTarget::Zeros, open_zeros()),
        BackendKind::Sim => return None,
    };
    let targets = [opened.ok()?];
    let (sender, costs) = sync_channel(1);
    let work = move || match backend {
        BackendKind::Uring => measure::<NopRing>(&targets, &[1, 32], &sender),
        BackendKind::Aio => measure::<Aio>(&targets, &[1, 32], &sender),
        // With more in flight other threads do the work, and the worker's CPU time says nothing.
        BackendKind::Sync | BackendKind::Sim => measure::<Sync>(&targets, &[1], &sender),
    };
    // On a separate thread, so that the preparation that a backend needs for its thread ends with
    // it.
    thread::Builder::new().name("fathom-ceiling".to_owned()).spawn(work).ok()?;
    let costs = costs.recv_timeout(PATIENCE).ok()?;
    (!costs.is_empty()).then_some(Ceiling { backend, target, costs })
}

/// Sends the cost of an I/O at each depth.
fn measure<B: RealBackend>(targets: &[OpenTarget], depths: &[u32], costs: &SyncSender<Vec<Cost>>) {
    let mut backends = Vec::new();
    let found = depths.iter().map(|&depth| {
        let (cost, backend) = cost::<B>(targets, depth).ok()?;
        backends.push(backend);
        cost
    });
    // All or none: the cost of one in flight must not stand for that of many.
    let found: Option<Vec<Cost>> = found.collect();
    if B::KIND == BackendKind::Uring {
        // So that the run's own rings find the lockable memory that these have taken.
        backends.clear();
    }
    // The caller may have given up.
    let _ = costs.send(found.unwrap_or_default());
    // The kernel needs tens of milliseconds to destroy a context of native AIO. The run begins in
    // the meantime.
    drop(backends);
}

/// The cost of an I/O for a worker with this many in flight, none if no I/O completed; and the
/// backend, whose end takes time.
fn cost<B: RealBackend>(targets: &[OpenTarget], queue_depth: u32) -> io::Result<(Option<Cost>, B)> {
    let point = point(queue_depth, 1, WINDOW);
    let plans = plan::divide(&point);
    let (plan, stream) = (&plans[0], &point.streams[0]);
    let block_size = stream.block_sizes().largest().0 as u32;
    let shape =
        Shape { slots: queue_depth, block_size, writes: false, seed: plan.seed, ..Shape::USUAL };
    let mut backend = B::open(targets, &shape)?;
    let pointers = Pointers::new(&point);
    let mut found = None;
    for _ in 0..ATTEMPTS {
        let start = backend.now();
        let window_start = start + WARM_UP;
        let window_end = window_start + WINDOW;
        let job = Assignment {
            plan,
            writes: false,
            timetable: Timetable {
                start,
                window_start,
                window_end,
                cool_down: Span(0),
                interval: WINDOW,
                buckets: None,
            },
            // Its waiting is not recorded, and these milliseconds are its own.
            cpu: || Some(ThreadTime { cpu: own_cpu(), wait: None }),
            ends_early: &|| false,
            stopped: &|| false,
            agree_on_end: &|now: Instant| now,
            done: &|_| {},
        };
        let outcome = drive_plan(&job, stream, &pointers, &mut backend, &mut Forget);
        let ios = outcome.ledger.completed;
        let per_io_ns = outcome.cpu.filter(|_| ios > 0).map(|cpu| cpu.cpu.0 as f64 / ios as f64);
        found = per_io_ns.map(|per_io_ns| Cost { queue_depth, per_io_ns }).or(found);
        if ios >= ENOUGH {
            break;
        }
    }
    Ok((found, backend))
}

/// Takes every interval and keeps none: the ledger counts.
struct Forget;

impl Sink for Forget {
    fn hand_over(&mut self, tally: &mut Box<Tally>) -> bool {
        tally.clear();
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_backend_that_works_here_has_a_ceiling() {
        let works = |backend| match backend {
            BackendKind::Uring => crate::uring::probe().is_ok(),
            BackendKind::Aio => crate::aio::probe().is_ok(),
            BackendKind::Sync | BackendKind::Sim => true,
        };
        for backend in [BackendKind::Uring, BackendKind::Aio, BackendKind::Sync] {
            if !works(backend) {
                continue;
            }
            // A busy machine may leave no time for it, but not forever.
            let ceiling = (0..100).find_map(|_| ceiling(backend)).unwrap();
            assert_eq!(ceiling.backend, backend);
            assert!(ceiling.costs.is_sorted_by_key(|cost| cost.queue_depth));
            assert!(ceiling.costs.iter().all(|cost| cost.per_io_ns > 0.0), "{ceiling:?}");
        }
        assert_eq!(ceiling(BackendKind::Sim), None);
    }
}
