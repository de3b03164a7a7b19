//! Invented calibrations, for the golden tests of the output of `fathom calibrate`.

use fathom_core::Span;
use fathom_core::calibration::{Calibration, LeftOut, NullTarget, Row, WakeUp};
use fathom_core::measure::Histogram;
use fathom_core::spec::BackendKind;
use fathom_report::document;

use crate::samples;

/// 2026-11-21 09:30:00 UTC.
const CREATED_NS: u64 = 1_795_253_400_000_000_000;

/// `count` times around `base`. One in fifty is much longer.
fn times(base: u64, count: u64) -> Histogram {
    let mut times = Histogram::default();
    for nth in 0..count {
        let tail = if nth % 50 == 0 { 2 } else { 1 };
        times.record(base * tail * (950 + nth % 100) / 1000);
    }
    times
}

/// Possible results of a calibration: with io_uring, and where it is forbidden.
pub fn all() -> Vec<(&'static str, document::Calibration)> {
    let row = |target, queue_depth, workers, per_io_ns: u64, cpu: bool| {
        let service_time = times(per_io_ns * u64::from(queue_depth), 20_000);
        let window = Span(20_000 * per_io_ns / u64::from(workers));
        let cpu = cpu.then_some(Span(20_000 * per_io_ns));
        Row { target, queue_depth, workers, window, cpu, service_time }
    };
    let (nop, zeros) = (NullTarget::NopRing, NullTarget::Zeros);
    let wake_up = Some(WakeUp { asked: Span::from_us(300), late: times(34_000, 1000) });
    let uring = Calibration {
        rows: Vec::from([
            row(nop, 1, 1, 247, true),
            row(nop, 8, 1, 106, true),
            row(nop, 32, 1, 87, true),
            row(zeros, 1, 1, 410, true),
            row(zeros, 32, 1, 203, true),
            row(nop, 32, 8, 91, true),
            row(zeros, 32, 8, 214, true),
        ]),
        wake_up,
        left_out: Vec::new(),
    };
    let sync = Calibration {
        rows: Vec::from([row(zeros, 1, 1, 320, true), row(zeros, 32, 1, 6_100, false)]),
        wake_up: None,
        left_out: Vec::from([LeftOut {
            what: "a ring that does nothing".to_owned(),
            why: "it needs io_uring, and the backend is sync".to_owned(),
        }]),
    };
    let host = samples::host();
    let document = |found, backend, backend_reason| {
        document::Calibration::new(document::CalibrationInput {
            fathom_version: "0.1.0",
            created_unix_ns: CREATED_NS,
            host: &host,
            backend,
            backend_reason,
            found,
        })
    };
    let works = "io_uring works here (single issuer, deferred task work, no index array)";
    let forbidden = "io_uring is forbidden here by a seccomp filter, as in many containers; native \
                     AIO is forbidden here by a seccomp filter: using pread and pwrite";
    Vec::from([
        ("calibration", document(&uring, BackendKind::Uring, works)),
        ("calibration-sync", document(&sync, BackendKind::Sync, forbidden)),
    ])
}
