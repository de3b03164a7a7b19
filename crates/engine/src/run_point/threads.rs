//! A run against real targets: a thread and a backend for each worker, started at one common
//! instant; the calling thread merges their tallies.
//!
//! A worker's thread owns nothing of the caller's, because it may hang in a call forever: then the
//! caller goes on without it.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};
use std::thread;

use fathom_core::Span;
use fathom_core::measure::Record;
use fathom_core::plan::WorkerPlan;
use fathom_core::spec::{Point, Region};

use super::Observer;
use super::crew::Crew;
use super::early_end::EarlyEnd;
use super::finish::Finish;
use super::patience::Patience;
use super::phases::{Looks, Phases};
use super::shared::{Opens, Shared};
use super::worker_task::WorkerTask;
use crate::access::CallFlags;
use crate::backend::{Mapped, RealBackend, Shape};
use crate::clock::Clock;
use crate::collector::Collector;
use crate::open_target::OpenTarget;
use crate::pattern::Pointers;
use crate::payload::Content;
use crate::run_error::RunError;
use crate::timetable::Timetable;
use crate::trace::{self, Follow, Tracer, Unfollowed};

/// As small as a buffer may be.
const PAGE: u32 = 4096;

/// From the moment when all workers are ready to their common start.
const LEAD: Span = Span::from_ms(2);

/// A run that is ready to go.
pub(super) struct RealRun<'a> {
    pub(super) point: &'a Point,
    pub(super) plans: &'a [WorkerPlan],
    /// For each stream of the point, an open target for each of its regions.
    pub(super) streams: &'a [Vec<OpenTarget>],
    /// The payload of each stream.
    pub(super) contents: &'a [Content],
    pub(super) stop: &'a AtomicBool,
    pub(super) pointers: Arc<Pointers>,
}

impl RealRun<'_> {
    /// Runs it, with a thread that hands the workers' I/Os to the tracer, if there is one.
    pub(super) fn go<B: RealBackend>(
        &self,
        observer: &mut dyn Observer,
        tracer: Option<&mut dyn Tracer>,
    ) -> Result<Record, RunError> {
        let shared = &Arc::new(Shared {
            gate: OnceLock::new(),
            closed: OnceLock::new(),
            stop: AtomicBool::new(false),
            abandoned: AtomicBool::new(false),
            end: EarlyEnd::new(),
            finish: Finish::new(self.point, self.plans),
        });
        let Some(tracer) = tracer else {
            let nobody = self.plans.iter().map(|_| Unfollowed);
            return self.follow::<B, _>(observer, shared, nobody);
        };
        let (followers, blocks) = trace::lines(self.plans);
        let ends = blocks.ends();
        let write = || {
            if let Some(table) = shared.gate.wait() {
                blocks.write(tracer, self.plans, table.window_start);
            }
        };
        thread::scope(|scope| {
            // Moved in here, so that a panic drops them before the wait for the writer. The gate is
            // opened here too: without a thread to run in, no other code would open it.
            let (ends, _starts) = (ends, Opens(&shared.gate));
            let builder = thread::Builder::new().name("fathom-trace".to_owned());
            let writer = builder.spawn_scoped(scope, write).map_err(RunError::Thread)?;
            let record = self.follow::<B, _>(observer, shared, followers.into_iter())?;
            drop(ends);
            match writer.join() {
                Ok(()) => Ok(record),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        })
    }

    /// Opens the backends, runs the workers, each with a follower of its I/Os, and merges their
    /// records.
    fn follow<B: RealBackend, F: Follow + Send + 'static>(
        &self,
        observer: &mut dyn Observer,
        shared: &Arc<Shared>,
        followers: impl Iterator<Item = F>,
    ) -> Result<Record, RunError> {
        let clock = Clock::default();
        let mut patience = Patience::new(self.stop);
        let tasks = self.plans.iter().map(|plan| Arc::new(self.task(plan, shared)));
        let (mut crew, readiness) =
            Crew::hire::<B, F>(tasks.collect(), shared, self.streams, followers)?;
        crew.get_ready(&clock, &readiness, &mut patience, observer)?;
        let begins = observer.begins(clock.now());
        let table = Timetable::of(self.point, begins.max(clock.now() + LEAD));
        let _ = shared.gate.set(Some(table));
        let mut collector = Collector::new(self.plans, table);
        let mut phases = Phases::new(table, &shared.end);
        let mut looks = Looks::new(self.point, table, &shared.end);
        crew.collect(&clock, (&mut phases, &mut looks, &mut patience), &mut collector, observer);
        let outcomes = crew.dismiss(&clock, &patience);
        let done = shared.finish.is_over().then(|| shared.end.get()).flatten();
        Ok(collector.finish(outcomes, done))
    }

    /// The data that a worker needs.
    fn task(&self, plan: &WorkerPlan, shared: &Arc<Shared>) -> WorkerTask {
        let stream = &self.point.streams[plan.stream as usize];
        let (targets, local) = self.own_targets(plan);
        let shape = Shape {
            slots: plan.pace.queue_depth(),
            // A trim moves no data, and may be much longer than any buffer.
            block_size: match stream.trims_alone() {
                true => PAGE,
                false => stream.block_sizes().largest().0 as u32,
            },
            reads: stream.read_share() > 0.0,
            writes: stream.read_share() < 1.0,
            seed: plan.seed,
            content: self.contents[plan.stream as usize].share(
                self.plans.len() as u32,
                &plan.regions,
                crate::uring::lockable(),
            ),
            flags: CallFlags::of(stream.access),
            mapped: Mapped::of(stream.access),
            ring: stream.access.ring,
            large_pages: stream.workplace.large_pages,
        };
        WorkerTask {
            plan: plan.clone(),
            local,
            stream: stream.clone(),
            targets,
            shape,
            pointers: Arc::clone(&self.pointers),
            // The I/Os in flight need CPU time too: if the workers take all CPUs, one that spins
            // keeps the device's own threads from running.
            spins_in_flight: plan.pace.is_open() && self.plans.len() < cpus(),
            shared: Arc::clone(shared),
        }
    }

    /// The targets that a worker addresses, each once, and its plan with their places in that list:
    /// a backend knows no others.
    fn own_targets(&self, plan: &WorkerPlan) -> (Vec<OpenTarget>, WorkerPlan) {
        let stream = plan.stream as usize;
        let open = &self.streams[stream];
        let regions = &self.point.streams[stream].regions;
        assert_eq!(open.len(), regions.len());
        let mut places: Vec<u32> = Vec::new();
        let mut targets = Vec::new();
        let local = plan.regions.iter().map(|region| {
            let known = places.iter().position(|place| *place == region.target);
            let target = known.unwrap_or_else(|| {
                let of_stream = regions.iter().position(|one| one.target == region.target);
                targets.push(open[of_stream.expect("a worker's regions are its stream's")].clone());
                places.push(region.target);
                places.len() - 1
            });
            Region { target: target as u32, ..*region }
        });
        let regions = local.collect();
        (targets, WorkerPlan { regions, ..plan.clone() })
    }
}

/// The CPUs that this process may use, as far as its affinity and its cgroup allow.
fn cpus() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}
