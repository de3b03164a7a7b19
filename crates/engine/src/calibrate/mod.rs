//! The ceiling of the engine on this host: the limit of every measurement made here.
//!
//! It is found with the real loop, the real histograms and the real backend, on targets that cost
//! nothing or next to nothing: a ring whose entries do nothing, and /dev/zero. Nothing is written
//! anywhere.

mod ceiling;

use std::fs::File;
use std::io;
use std::sync::atomic::AtomicBool;

use fathom_core::calibration::{NullTarget, Row, WakeUp};
use fathom_core::measure::Record;
use fathom_core::spec::{BackendKind, BlockSizes, Kind, Pacing, Point, Region, Stream, Workers};
use fathom_core::{Bytes, Span};

use crate::aio::Aio;
use crate::clock;
use crate::open_target::OpenTarget;
use crate::run_error::RunError;
use crate::run_point::{Nobody, run_on};
use crate::sync::Sync;
use crate::uring::{NopRing, Uring, no_target};

pub use ceiling::ceiling;

/// How much of a target is addressed: offsets cost the same everywhere.
const SIZE: Bytes = Bytes(1 << 30);
/// Bytes of one I/O.
const BLOCK: Bytes = Bytes(4096);
/// A file that can always be read, and whose reads cost the kernel as little as possible.
const ZEROS: &str = "/dev/zero";
/// The queue depths on a ring whose entries do nothing: they show the gain from sharing a call.
const NOP_DEPTHS: [u32; 5] = [1, 4, 8, 16, 32];
/// The queue depths elsewhere, and with all CPUs.
const DEPTHS: [u32; 2] = [1, 32];

/// One run of a calibration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// The target of the reads.
    pub target: NullTarget,
    /// I/Os in flight for each worker.
    pub queue_depth: u32,
    /// Threads.
    pub workers: u32,
}

/// The runs of a calibration of a backend, on a host with this many usable CPUs: with one worker,
/// and with one for each CPU.
pub fn steps(backend: BackendKind, cpus: u32) -> Vec<Step> {
    let mut steps = Vec::new();
    let mut add = |target, depths: &[u32], workers| {
        steps.extend(depths.iter().map(|&queue_depth| Step { target, queue_depth, workers }));
    };
    if backend == BackendKind::Uring {
        add(NullTarget::NopRing, &NOP_DEPTHS, 1);
    }
    add(NullTarget::Zeros, &DEPTHS, 1);
    if cpus > 1 {
        if backend == BackendKind::Uring {
            add(NullTarget::NopRing, &DEPTHS, cpus);
        }
        add(NullTarget::Zeros, &DEPTHS, cpus);
    }
    steps
}

/// Makes one run.
///
/// # Errors
///
/// When a backend, a thread or /dev/zero is not available, or reading it fails.
///
/// # Panics
///
/// When a step has no worker, no queue depth or no window, or is a simulated one.
pub fn run(step: Step, backend: BackendKind, window: Span) -> Result<Row, RunError> {
    let Step { target, queue_depth, workers } = step;
    let record = match target {
        NullTarget::NopRing => nop_ring(queue_depth, workers, window)?,
        NullTarget::Zeros => zeros(queue_depth, workers, window, backend)?,
    };
    let alone = backend != BackendKind::Sync || queue_depth == 1;
    let cpu = record.workers.iter().map(|worker| worker.cpu);
    let cpu = cpu.reduce(|sum, one| Some(sum? + one?)).flatten().filter(|_| alone);
    if let Some(error) = record.workers.iter().find_map(|worker| worker.errors.first.first()) {
        let cause = io::Error::other(format!("an I/O of the calibration failed: {:?}", error.kind));
        return Err(RunError::Backend { backend, cause });
    }
    let service_time = record.total(None).service_time;
    Ok(Row { target, queue_depth, workers, window: record.window, cpu, service_time })
}

/// Sleeps this many times like an idle worker of an open loop, and returns how late these sleeps
/// ended. None if no sleep came to its end.
pub fn wake_up(sleeps: u32) -> Option<WakeUp> {
    let late = clock::late_sleeps(sleeps);
    (late.count() > 0).then_some(WakeUp { asked: clock::TRIAL_SLEEP, late })
}

/// Runs the engine's loop on rings whose entries do nothing: closed loops of random reads of 4 KiB,
/// this many in flight for each worker.
///
/// # Errors
///
/// When a ring or a thread cannot be set up.
///
/// # Panics
///
/// Without a worker, a queue depth or a window.
pub fn nop_ring(queue_depth: u32, workers: u32, window: Span) -> Result<Record, RunError> {
    let nothing = no_target(SIZE)
        .map_err(|cause| RunError::Backend { backend: BackendKind::Uring, cause })?;
    let point = point(queue_depth, workers, window);
    let stop = AtomicBool::new(false);
    run_on::<NopRing>(&point, std::slice::from_ref(&nothing), &stop, &mut Nobody)
}

/// The same on /dev/zero.
fn zeros(
    queue_depth: u32,
    workers: u32,
    window: Span,
    backend: BackendKind,
) -> Result<Record, RunError> {
    let target = open_zeros().map_err(|cause| RunError::Backend { backend, cause })?;
    let targets = std::slice::from_ref(&target);
    let point = point(queue_depth, workers, window);
    let stop = AtomicBool::new(false);
    match backend {
        BackendKind::Uring => run_on::<Uring>(&point, targets, &stop, &mut Nobody),
        BackendKind::Aio => run_on::<Aio>(&point, targets, &stop, &mut Nobody),
        BackendKind::Sync => run_on::<Sync>(&point, targets, &stop, &mut Nobody),
        BackendKind::Sim => unreachable!("a simulated device is as fast as it says it is"),
    }
}

fn open_zeros() -> io::Result<OpenTarget> {
    let file = File::open(ZEROS)
        .map_err(|cause| io::Error::new(cause.kind(), format!("{ZEROS}: {cause}")))?;
    Ok(OpenTarget {
        name: ZEROS.to_owned(),
        file: file.into(),
        size: SIZE,
        alignment: Bytes(1),
        passthrough: None,
    })
}

/// A closed loop of random reads on one target, in one interval.
fn point(queue_depth: u32, workers: u32, window: Span) -> Point {
    assert!(queue_depth > 0 && workers > 0 && window > Span(0));
    let stream = Stream {
        ios: Kind { block_sizes: BlockSizes::one(BLOCK), ..Kind::default() }.into(),
        pacing: Pacing::closed(queue_depth * workers),
        workers: Workers::Total(workers),
        ..Stream::reading(
            "calibration",
            Vec::from([Region { target: 0, offset: Bytes(0), length: SIZE }]),
        )
    };
    Point { interval: window, ..Point::of(Vec::from([stream]), window) }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn uring_works() -> bool {
        match crate::uring::probe() {
            Ok(_) => true,
            Err(error) => {
                // Writes past the test harness, which hides the output of tests that pass.
                let _ =
                    writeln!(std::io::stderr(), "SKIPPED: io_uring does not work here: {error}");
                false
            }
        }
    }

    /// On a busy machine nothing may complete in 5 ms, but this does not last forever.
    fn windows() -> impl Iterator<Item = Span> {
        (0..14).map(|doublings| Span::from_ms(5 << doublings))
    }

    #[test]
    fn a_ring_that_does_nothing_carries_every_io_of_every_worker() {
        if !uring_works() {
            return;
        }
        for (depth, workers) in [(1, 1), (32, 1), (3, 2)] {
            let mut records = windows().map(|window| nop_ring(depth, workers, window).unwrap());
            let record = records.find(|record| record.ledger().completed > 0).unwrap();
            let ledger = record.ledger();
            assert_eq!(record.errors(), 0);
            assert!(ledger.balances(), "{ledger:?}");
            let total = record.total(None);
            assert_eq!(total.ios(), ledger.completed);
            assert_eq!(total.bytes.0, ledger.completed * BLOCK.0);
            assert_eq!(record.workers.len(), workers as usize);
        }
    }

    #[test]
    fn every_step_of_every_backend_runs_at_a_tiny_size() {
        for backend in [BackendKind::Uring, BackendKind::Aio, BackendKind::Sync] {
            let works = match backend {
                BackendKind::Uring => uring_works(),
                BackendKind::Aio => crate::aio::probe().is_ok(),
                _ => true,
            };
            if !works {
                continue;
            }
            for step in steps(backend, 2) {
                let mut rows = windows().map(|window| run(step, backend, window).unwrap());
                let row = rows.find(|row| row.ios() > 0).unwrap();
                let helped = backend == BackendKind::Sync && step.queue_depth > 1;
                assert_eq!(row.cpu.is_none(), helped, "{row:?}");
                assert_eq!((row.target, row.workers), (step.target, step.workers));
            }
        }
    }

    #[test]
    fn sleeps_that_end_are_told_and_none_is_no_figure() {
        let found = wake_up(2).unwrap();
        assert_eq!((found.asked, found.late.count()), (clock::TRIAL_SLEEP, 2));
        assert_eq!(wake_up(0), None);
    }

    #[test]
    fn only_io_uring_has_a_ring_and_only_several_cpus_have_more_than_one_worker() {
        let uring = steps(BackendKind::Uring, 1);
        assert!(uring.iter().all(|step| step.workers == 1));
        assert_eq!(uring.len(), NOP_DEPTHS.len() + DEPTHS.len());
        let sync = steps(BackendKind::Sync, 8);
        assert!(sync.iter().all(|step| step.target == NullTarget::Zeros));
        assert_eq!(sync.iter().filter(|step| step.workers == 8).count(), DEPTHS.len());
    }
}
