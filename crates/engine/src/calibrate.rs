//! What the engine itself can do on this host: the ceiling of every measurement made here.
//!
//! It is found with the real loop, the real histograms and the real backend, on targets that cost
//! nothing or next to nothing: a ring that does nothing, and /dev/zero. Nothing is written anywhere.

use std::sync::atomic::AtomicBool;

use fathom_core::measure::Record;
use fathom_core::spec::{BackendKind, Pacing, Pattern, Point, Region, Stream, Workers};
use fathom_core::{Bytes, Span};

use crate::run_point::{Observer, Phase, Progress, RunError, run_on};
use crate::uring::{NopRing, no_target};

/// How much of a target is addressed: as offsets cost the same everywhere, only that there are many.
const SIZE: Bytes = Bytes(1 << 30);
/// Bytes of one I/O.
const BLOCK: Bytes = Bytes(4096);

/// Runs the engine's loop on rings that do nothing: closed loops of random reads of 4 KiB, so many
/// in flight for each worker.
///
/// # Errors
///
/// When a ring or a thread cannot be set up.
///
/// # Panics
///
/// Without a worker, a queue depth or a window.
pub fn nop_ring(queue_depth: u32, workers: u32, window: Span) -> Result<Record, RunError> {
    assert!(queue_depth > 0 && workers > 0 && window > Span(0));
    let nothing = no_target(SIZE)
        .map_err(|cause| RunError::Backend { backend: BackendKind::Uring, cause })?;
    let point = point(queue_depth, workers, window);
    let stop = AtomicBool::new(false);
    run_on::<NopRing>(&point, std::slice::from_ref(&nothing), &stop, &mut Nobody)
}

/// A closed loop of random reads on one target, in one interval.
fn point(queue_depth: u32, workers: u32, window: Span) -> Point {
    let stream = Stream {
        name: "calibration".to_owned(),
        regions: Vec::from([Region { target: 0, offset: Bytes(0), length: SIZE }]),
        pattern: Pattern::Random,
        block_size: BLOCK,
        read_share: 1.0,
        pacing: Pacing::Closed { queue_depth: queue_depth * workers },
        workers: Workers::Total(workers),
    };
    Point {
        name: stream.name.clone(),
        streams: Vec::from([stream]),
        warm_up: Span(0),
        window,
        interval: window,
        seed: 1,
    }
}

/// Nobody watches.
struct Nobody;

impl Observer for Nobody {
    fn phase(&mut self, _: Phase) {}

    fn progress(&mut self, _: &Progress) {}
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn a_ring_that_does_nothing_carries_every_io_of_every_worker() {
        if let Err(error) = crate::uring::probe() {
            // Past the harness, which keeps to itself what a test that passes has printed.
            let _ = writeln!(std::io::stderr(), "SKIPPED: io_uring does not work here: {error}");
            return;
        }
        for (depth, workers) in [(1, 1), (32, 1), (3, 2)] {
            let record = nop_ring(depth, workers, Span::from_ms(5)).unwrap();
            let ledger = record.ledger();
            assert_eq!(record.errors(), 0);
            assert!(ledger.balances() && ledger.completed > 0, "{ledger:?}");
            let total = record.total(None);
            assert_eq!(total.ios(), ledger.completed);
            assert_eq!(total.bytes.0, ledger.completed * BLOCK.0);
            assert_eq!(record.workers.len(), workers as usize);
        }
    }
}
