//! The one primitive: a point and its targets become a record.

#[cfg(test)]
mod as_described;
mod crew;
mod early_end;
mod finish;
mod patience;
mod phases;
mod shared;
mod simulated;
#[cfg(test)]
mod tests;
mod threads;
mod worker_task;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use fathom_core::measure::Record;
use fathom_core::plan;
use fathom_core::spec::{self, BackendKind, Point};
use fathom_core::{Instant, Span};

use crate::aio::Aio;
use crate::backend::{Backend, RealBackend};
use crate::collector::{Progress, empty_tally};
use crate::memory::no_large_pages;
use crate::pattern::{self, Pointers, Source};
use crate::payload::Content;
use crate::run_error::RunError;
use crate::schedule::{Schedule, WithSchedule, scheduled};
use crate::sim;
use crate::sync::Sync;
use crate::target::OpenTarget;
use crate::trace::Tracer;
use crate::uring::{CommandUring, Uring};
use crate::worker::{self, Assignment, Outcome, Sink};

/// The devices of a point.
#[derive(Clone, Copy, Debug)]
pub enum Devices<'a> {
    /// Open files and devices.
    Real {
        /// For each stream of a point, an open target for each of its regions, opened for the
        /// stream's access.
        streams: &'a [Vec<OpenTarget>],
        /// The backend.
        backend: BackendKind,
    },
    /// One simulated device, in virtual time.
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

/// The observer of a run, called during the run on the thread that called [`run_point`].
pub trait Observer {
    /// Everything is ready now, and the load begins at this instant, or as soon as possible after
    /// it. Never asked for a simulated device.
    fn begins(&mut self, now: Instant) -> Instant {
        now
    }

    /// A phase began, and that was `ago`: a few milliseconds at most, if the workers leave a CPU to
    /// the thread that calls this. A simulated device has no such moments: this is never called for
    /// it.
    fn phase(&mut self, phase: Phase, ago: Span) {
        let _ = (phase, ago);
    }

    /// An interval ended.
    fn progress(&mut self, progress: &Progress) {
        let _ = progress;
    }

    /// The window is over, and the load goes on for this long, of a whole cool-down. Called again
    /// and again; on a simulated device never.
    fn cool_down(&mut self, left: Span, whole: Span) {
        let _ = (left, whole);
    }

    /// The time of one of the point's looks has come. Shows the record as it would be if the window
    /// had ended then, except for the errors, which are counted and not listed, and for the I/Os in
    /// flight, which may still come back. Returns whether this is enough: then the window ends at
    /// once on a simulated device, and otherwise at an interval's end soon after.
    ///
    /// With several workers on a real target the record may hold a little more than the time until
    /// the look, because some of them have already reported the time after it.
    fn look(&mut self, so_far: &Record) -> bool {
        let _ = so_far;
        false
    }

    /// Whether the user does not want to wait any longer, not even for I/Os in flight. Asked again
    /// and again on real targets.
    fn hurries(&self) -> bool {
        false
    }
}

/// Nobody watches.
#[derive(Debug)]
pub struct Nobody;

impl Observer for Nobody {}

pub use patience::{leaves_ios, left_behind};

/// Runs a point and records the outcome of every I/O.
///
/// `stop` ends the run early; its record then covers the time until then and says so.
///
/// # Errors
///
/// When a backend or a thread cannot be set up. I/Os that fail are in the record.
///
/// # Panics
///
/// When the point contradicts itself or its devices, which resolving a spec rules out.
pub fn run_point(
    point: &Point,
    devices: Devices<'_>,
    stop: &AtomicBool,
    observer: &mut dyn Observer,
) -> Result<Record, RunError> {
    run_traced(point, devices, stop, observer, None)
}

/// The same, with a tracer that gets every I/O, if there is one.
///
/// # Errors
///
/// As [`run_point`].
///
/// # Panics
///
/// As [`run_point`].
pub fn run_traced(
    point: &Point,
    devices: Devices<'_>,
    stop: &AtomicBool,
    observer: &mut dyn Observer,
    tracer: Option<&mut dyn Tracer>,
) -> Result<Record, RunError> {
    let plans = plan::divide(point);
    match devices {
        Devices::Simulated(options) => {
            Ok(simulated::run(point, &plans, options, stop, observer, tracer))
        }
        Devices::Real { streams, backend } => {
            let contents = &contents(point)?;
            let pointers = Arc::new(Pointers::new(point));
            let run = threads::RealRun { point, plans: &plans, streams, contents, stop, pointers };
            let commands = streams.iter().flatten().any(|target| target.passthrough.is_some());
            match backend {
                BackendKind::Uring if commands => run.go::<CommandUring>(observer, tracer),
                BackendKind::Uring => run.go::<Uring>(observer, tracer),
                BackendKind::Aio => run.go::<Aio>(observer, tracer),
                BackendKind::Sync => run.go::<Sync>(observer, tracer),
                BackendKind::Sim => unreachable!("a simulated device is no real target"),
            }
        }
    }
}

/// Runs a point of one stream on a backend that no user can name, such as a ring with empty
/// operations.
pub(crate) fn run_on<B: RealBackend>(
    point: &Point,
    targets: &[OpenTarget],
    stop: &AtomicBool,
    observer: &mut dyn Observer,
) -> Result<Record, RunError> {
    let plans = plan::divide(point);
    let contents = &contents(point)?;
    let (streams, pointers) = (&[targets.to_vec()], Arc::new(Pointers::new(point)));
    threads::RealRun { point, plans: &plans, streams, contents, stop, pointers }
        .go::<B>(observer, None)
}

/// The payload of each stream.
fn contents(point: &Point) -> Result<Vec<Content>, RunError> {
    let load = |stream: &spec::Stream| {
        let large_pages = stream.workplace.large_pages;
        Content::load(&stream.payload, point.seed, large_pages).map_err(|cause| {
            match (no_large_pages(&cause), &stream.payload) {
                (Some(refusal), _) => RunError::Refused(refusal.clone()),
                (None, spec::Payload::Pool { file: Some(path), .. }) => {
                    RunError::Payload { path: path.display().to_string(), cause }
                }
                (None, _) => RunError::Payload { path: "memory".to_owned(), cause },
            }
        })
    };
    let mut contents: Vec<Content> = Vec::with_capacity(point.streams.len());
    for (place, stream) in point.streams.iter().enumerate() {
        let alike = |one: &&spec::Stream| {
            one.payload == stream.payload
                && one.workplace.large_pages == stream.workplace.large_pages
                && one.read_share() < 1.0
        };
        // A pool may be large, so that streams that write from the same one share it.
        let known = point.streams[..place].iter().position(|one| alike(&one));
        contents.push(match known {
            // A worker that only reads needs no payload, even if its stream has one.
            _ if stream.read_share() == 1.0 => Content::RANDOM,
            Some(known) => contents[known].clone(),
            None => load(stream)?,
        });
    }
    Ok(contents)
}

/// Runs a worker with the pattern and the pacing of its plan.
pub(crate) fn drive_plan<B: Backend, K: Sink>(
    job: &Assignment<'_>,
    stream: &spec::Stream,
    pointers: &Pointers,
    backend: &mut B,
    sink: &mut K,
) -> Outcome {
    let source = &mut *pattern::source(stream, job.plan, pointers);
    scheduled(stream, job.plan, job.timetable, DriveToEnd { job, backend, source, sink })
}

/// A worker that is about to run on its own thread.
struct DriveToEnd<'a, B, K> {
    job: &'a Assignment<'a>,
    backend: &'a mut B,
    source: &'a mut dyn Source,
    sink: &'a mut K,
}

impl<B: Backend, K: Sink> WithSchedule for DriveToEnd<'_, B, K> {
    // Following every I/O would cost more than it gains.
    const TUNED: bool = !K::FOLLOWS;

    type Output = Outcome;

    fn with<S: Schedule + 'static>(self, schedule: S) -> Outcome {
        let tally = empty_tally(self.job.plan);
        worker::drive(self.job, self.backend, schedule, self.source, self.sink, tally)
    }
}
