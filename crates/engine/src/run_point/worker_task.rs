//! A worker's thread, from opening its backend to its last I/O.
//!
//! It owns nothing of the caller's, because it may hang in a call forever.

use std::sync::Arc;
use std::sync::mpsc::SyncSender;

use fathom_core::plan::WorkerPlan;
use fathom_core::spec::{Rests, Stream};

use super::drive_plan;
use super::early_end::STOP_LEAD;
use super::shared::{Abandons, Handed, Lines, SaysGone, Shared};
use crate::backend::{RealBackend, Shape};
use crate::clock;
use crate::host::ThreadTime;
use crate::memory::no_large_pages;
use crate::open_target::OpenTarget;
use crate::pacer::Pace;
use crate::pattern::Pointers;
use crate::realtime;
use crate::run_error::RunError;
use crate::trace::Follow;
use crate::worker::{Assignment, Outcome, Sink};
use crate::workplace;

/// The data that a worker needs, which it owns: it may outlive the run.
pub(super) struct WorkerTask {
    pub(super) plan: WorkerPlan,
    /// The same with its targets' places in the list below.
    pub(super) local: WorkerPlan,
    pub(super) stream: Stream,
    pub(super) targets: Vec<OpenTarget>,
    pub(super) shape: Shape,
    pub(super) pointers: Arc<Pointers>,
    pub(super) spins_in_flight: bool,
    pub(super) shared: Arc<Shared>,
}

impl WorkerTask {
    /// Whether it has a limited number of I/Os to do.
    pub(super) fn is_limited(&self) -> bool {
        self.stream.pacing.limit.is_some()
    }

    /// A worker's thread, from opening its backend to its last I/O.
    pub(super) fn perform<B: RealBackend, F: Follow + Send>(
        &self,
        ready: SyncSender<Result<(), RunError>>,
        mut lines: Lines<F>,
    ) {
        let shared = &*self.shared;
        let (worker, full) = (lines.worker, lines.full.clone());
        let _gone = SaysGone { worker, full: full.clone() };
        let _abandons = Abandons(&shared.abandoned);
        // First of all: memory that is allocated from here on is near the CPU.
        let settled = workplace::settle(&self.stream.workplace, self.plan.worker);
        // The backend is made, used and dropped by this thread, which opens no other files. The
        // targets that it was given also belong to the caller, who closes them.
        B::prepare_thread(&self.shape);
        let opened = settled.and_then(|()| self.open_backend::<B>());
        let (backend, answer) = match opened {
            Ok(backend) => (Some(backend), Ok(())),
            Err(cause) => (None, Err(cause)),
        };
        // There is no receiver if another worker could not be set up.
        let _ = ready.try_send(answer);
        drop(ready);
        let (Some(timetable), Some(mut backend)) = (*shared.gate.wait(), backend) else { return };
        let job = Assignment {
            plan: &self.local,
            writes: self.shape.writes,
            timetable,
            cpu: || Some(ThreadTime::own()),
            ends_early: &|| shared.stopped() || shared.end.get().is_some(),
            stopped: &|| shared.stopped(),
            agree_on_end: &|now| shared.end.agree(now + STOP_LEAD),
            done: &|at| {
                if let Some(ends) = shared.finish.done(at, STOP_LEAD) {
                    shared.end.agree(ends);
                    shared.finish.announce();
                }
            },
        };
        let mut outcome = drive_plan(&job, &self.stream, &self.pointers, &mut backend, &mut lines);
        lines.finish();
        self.name_targets(&mut outcome);
        let outcome = Box::new(Outcome { waits: Some(backend.waits()), ..outcome });
        // As with its last message.
        let _ = full.try_send(Handed::Done(worker, outcome));
        shared.closed.wait();
    }

    /// Makes errors name the run's targets instead of the worker's.
    pub(super) fn name_targets(&self, outcome: &mut Outcome) {
        for error in &mut outcome.errors.first {
            let same = self.local.regions.iter().position(|region| region.target == error.target);
            error.target = self.plan.regions[same.expect("it was one of its regions")].target;
        }
    }

    /// Makes a worker's backend on the worker's own thread, and settles how it will wait.
    fn open_backend<B: RealBackend>(&self) -> Result<B, RunError> {
        let mut backend =
            B::open(&self.targets, &self.shape).map_err(|cause| match no_large_pages(&cause) {
                Some(refusal) => RunError::Refused(refusal.clone()),
                None => RunError::Backend { backend: B::KIND, cause },
            })?;
        let own = &self.plan.pace;
        // A rest ends on time, as an open loop's I/Os start on time.
        if own.is_open() || own.rests() != Rests::None {
            let share =
                own.is_realtime().then(realtime::request).transpose().map_err(RunError::Refused)?;
            backend.pace(Pace {
                wake_up: Some(clock::wake_up()),
                spins_in_flight: self.spins_in_flight,
                realtime: share,
            });
        }
        Ok(backend)
    }
}
