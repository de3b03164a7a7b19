//! The one primitive: a point and its targets become a record.

use std::fmt;
use std::io;
use std::sync::atomic::AtomicBool;

use fathom_core::Span;
use fathom_core::measure::Record;
use fathom_core::spec::{BackendKind, Point};

use crate::sim;
use crate::target::OpenTarget;

/// What a point is run against.
#[derive(Clone, Copy, Debug)]
pub enum Devices<'a> {
    /// Open files and devices; a region's `target` is a place in this list.
    Real {
        /// The targets.
        targets: &'a [OpenTarget],
        /// What carries the I/Os to them.
        backend: BackendKind,
    },
    /// One simulated device, in virtual time. Its points have one worker.
    Simulated(&'a sim::Options),
}

/// A moment of a run at which the session may want to read the host's counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// The warm-up begins.
    WarmUp,
    /// The window begins.
    WindowOpens,
    /// The window ends.
    WindowCloses,
}

/// How far a run is, and what happened in its last interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Progress {
    /// Whether the window has begun.
    pub in_window: bool,
    /// Time since the run began, warm-up included.
    pub elapsed: Span,
    /// Warm-up and window together.
    pub total: Span,
    /// Completed I/Os per second in the last interval.
    pub iops: f64,
    /// Bytes per second in the last interval.
    pub bandwidth: f64,
    /// I/Os that failed so far.
    pub failed: u64,
}

/// Told about a run while it goes on, on the thread that called [`run_point`].
pub trait Observer {
    /// A phase began. It is called within a few milliseconds of the moment it names.
    fn phase(&mut self, phase: Phase);

    /// An interval ended.
    fn progress(&mut self, progress: &Progress);
}

/// Why a point could not be run at all.
#[derive(Debug)]
pub enum RunError {
    /// A backend could not be set up.
    Backend {
        /// Which.
        backend: BackendKind,
        /// Why.
        cause: io::Error,
    },
    /// A thread could not be started.
    Thread(io::Error),
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Backend { backend, cause } => {
                write!(f, "the {} backend could not be set up: {cause}", backend.name())
            }
            Self::Thread(cause) => write!(f, "a worker thread could not be started: {cause}"),
        }
    }
}

impl std::error::Error for RunError {}

/// Runs a point and records what every I/O did.
///
/// `stop` ends the run early; its record then covers the time until then and says so.
///
/// # Errors
///
/// When a backend or a thread cannot be set up. I/Os that fail are in the record.
pub fn run_point(
    _point: &Point,
    _devices: Devices<'_>,
    _stop: &AtomicBool,
    _observer: &mut dyn Observer,
) -> Result<Record, RunError> {
    Ok(Record { window: Span(0), interrupted: false, workers: Vec::new(), series: Vec::new() })
}
