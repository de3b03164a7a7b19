//! A run against a simulated device, in virtual time, on the calling thread.
//!
//! Several workers share the device and its time. They run one after the other, in their order,
//! while the time stands still; then it moves on to the next instant at which one of them has work:
//! one of its I/Os completed, or its deadline came. So the record depends only on the seed. A
//! worker that would only take note of completions does so at its deadline: the result is the same,
//! and it saves time. A worker that is alone drives the device by itself, which is the same and
//! faster; a test compares the two.

use std::cell::{Cell, RefCell};
use std::sync::atomic::{AtomicBool, Ordering};

use fathom_core::measure::{Record, Tally};
use fathom_core::plan::WorkerPlan;
use fathom_core::spec::Point;
use fathom_core::{Instant, Span};

use super::finish::Finish;
use super::{Observer, drive_plan};
use crate::backend::{Backend, Completion, Io, Task};
use crate::collector::{Collector, empty_tally};
use crate::pattern::{self, Pointers, Source};
use crate::schedule::{Schedule, WithSchedule, scheduled};
use crate::sim::{self, Sim};
use crate::timetable::Timetable;
use crate::trace::{AtOnce, Follow, TraceEntry, Tracer, Unfollowed};
use crate::worker::{Assignment, InTurns, Outcome, Sink, Stepper};

/// Merges on the spot: virtual time stands still meanwhile.
struct LocalSink<'a, 'b, F> {
    worker: usize,
    merging: &'a RefCell<Merging<'b>>,
    follow: F,
}

/// The collector for all workers.
struct Merging<'a> {
    collector: Collector<'a>,
    observer: &'a mut dyn Observer,
}

impl Merging<'_> {
    /// Shows the record, and returns whether it is enough.
    fn look(&mut self, at: Instant) -> bool {
        let enough = self.observer.look(&self.collector.so_far(at));
        if enough {
            self.collector.end_early(at);
        }
        enough
    }
}

impl<F: Follow> Sink for LocalSink<'_, '_, F> {
    const FOLLOWS: bool = F::FOLLOWS;

    fn hand_over(&mut self, tally: &mut Box<Tally>) -> bool {
        let merging = &mut *self.merging.borrow_mut();
        if let Some(progress) = merging.collector.add(self.worker, tally) {
            merging.observer.progress(&progress);
        }
        true
    }

    #[inline(always)]
    fn starts(&mut self, slot: u32) {
        self.follow.starts(slot);
    }

    #[inline(always)]
    fn ends(&mut self, slot: u32, entry: impl FnOnce(u64) -> TraceEntry) {
        self.follow.ends(slot, entry);
    }
}

/// Runs the point in virtual time.
pub(super) fn run(
    point: &Point,
    plans: &[WorkerPlan],
    options: &sim::Options,
    stop: &AtomicBool,
    observer: &mut dyn Observer,
    tracer: Option<&mut dyn Tracer>,
) -> Record {
    let Some(tracer) = tracer else {
        return followed(point, plans, options, stop, observer, |_| Unfollowed);
    };
    let window_start = Timetable::of(point, Instant(0)).window_start;
    let at_once = AtOnce { tracer: &RefCell::new(tracer), plans, window_start };
    followed(point, plans, options, stop, observer, |worker| at_once.follow(worker))
}

/// The same, each worker with a follower of its I/Os.
fn followed<F: Follow>(
    point: &Point,
    plans: &[WorkerPlan],
    options: &sim::Options,
    stop: &AtomicBool,
    observer: &mut dyn Observer,
    follow: impl Fn(usize) -> F,
) -> Record {
    let timetable = Timetable::of(point, Instant(0));
    let end = Cell::new(None);
    let finish = Finish::new(point, plans);
    let stopped = || stop.load(Ordering::Relaxed);
    let ends_early = || stopped() || finish.is_over();
    // The first that stops sets the end for all.
    let agree_on_end = |now| {
        end.set(end.get().or(Some(now)));
        end.get().unwrap_or(now)
    };
    let done = |at| {
        if let Some(ends) = finish.done(at, Span(1)) {
            end.set(end.get().or(Some(ends)));
            finish.announce();
        }
    };
    let job = |plan| Assignment {
        plan,
        writes: writes(point, plan),
        timetable,
        cpu: || None,
        ends_early: &ends_early,
        stopped: &stopped,
        agree_on_end: &agree_on_end,
        done: &done,
    };
    let jobs: Vec<Assignment<'_>> = plans.iter().map(job).collect();
    let merging = RefCell::new(Merging { collector: Collector::new(plans, timetable), observer });
    let slots = plans.iter().map(|plan| plan.pace.queue_depth()).sum();
    let mut device = Sim::open(&options.for_run(point.seed), slots);
    let mut first_slot = 0;
    for plan in plans {
        let slots = first_slot..first_slot + plan.pace.queue_depth();
        first_slot = slots.end;
        device.writes(slots, &point.streams[plan.stream as usize].payload);
    }
    let outcomes = match &*jobs {
        // An observer has to come between two halves of an iteration.
        [job] if point.looks.is_empty() => {
            Vec::from([alone(point, job, &mut device, &merging, follow(0))])
        }
        jobs => together(point, jobs, device, &merging, follow),
    };
    let done = finish.is_over().then(|| end.get()).flatten();
    merging.into_inner().collector.finish(outcomes, done)
}

fn writes(point: &Point, plan: &WorkerPlan) -> bool {
    point.streams[plan.stream as usize].read_share() < 1.0
}

/// Runs the only worker.
fn alone(
    point: &Point,
    job: &Assignment<'_>,
    device: &mut Sim,
    merging: &RefCell<Merging<'_>>,
    follow: impl Follow,
) -> Outcome {
    let stream = &point.streams[job.plan.stream as usize];
    let mut sink = LocalSink { worker: 0, merging, follow };
    let outcome = drive_plan(job, stream, &Pointers::new(point), device, &mut sink);
    sink.follow.finish();
    outcome
}

/// Runs several workers on one device.
fn together<F: Follow>(
    point: &Point,
    jobs: &[Assignment<'_>],
    device: Sim,
    merging: &RefCell<Merging<'_>>,
    follow: impl Fn(usize) -> F,
) -> Vec<Outcome> {
    let pointers = Pointers::new(point);
    let source = |job: &Assignment<'_>| {
        pattern::source(&point.streams[job.plan.stream as usize], job.plan, &pointers)
    };
    let mut sources: Vec<Box<dyn Source + '_>> = jobs.iter().map(source).collect();
    let sink = |worker| LocalSink { worker, merging, follow: follow(worker) };
    let mut sinks: Vec<LocalSink<'_, '_, F>> = (0..jobs.len()).map(sink).collect();
    let parts = jobs.iter().zip(&mut sources).zip(&mut sinks);
    let workers = parts.map(|((job, source), sink)| {
        let stream = &point.streams[job.plan.stream as usize];
        scheduled(stream, job.plan, job.timetable, MakeStepper { job, source: &mut **source, sink })
    });
    let looks = point.looks.iter().map(|&look| jobs[0].timetable.window_start + look);
    let enough = |at| merging.borrow_mut().look(at);
    let outcomes = SharedDevice::new(device, workers.collect(), jobs).run(looks, &enough);
    sinks.iter_mut().for_each(|sink| sink.follow.finish());
    outcomes
}

/// Makes a worker that alternates with others.
struct MakeStepper<'a, K> {
    job: &'a Assignment<'a>,
    source: &'a mut dyn Source,
    sink: &'a mut K,
}

impl<'a, K: Sink> WithSchedule for MakeStepper<'a, K> {
    // The cells of a map are open loops that share a device, hundreds of millions of I/Os.
    const TUNED: bool = !K::FOLLOWS;

    type Output = Box<dyn InTurns<DeviceView> + 'a>;

    fn with<S: Schedule + 'static>(self, schedule: S) -> Self::Output {
        let tally = empty_tally(self.job.plan);
        Box::new(Stepper::new(self.job, schedule, self.source, self.sink, tally))
    }
}

/// A worker's view of the device: the time, the I/Os that it started, and those that completed for
/// it.
struct DeviceView {
    now: Instant,
    /// The device's slot that is the worker's first.
    first_slot: u32,
    started: Vec<Io>,
    /// The tasks that it started, with their slots.
    tasks: Vec<(u32, Task)>,
    completed: Vec<Completion>,
}

impl DeviceView {
    fn new(first_slot: u32, slots: u32) -> Self {
        let slots = slots as usize;
        Self {
            now: Instant(0),
            first_slot,
            started: Vec::with_capacity(slots),
            tasks: Vec::with_capacity(slots),
            completed: Vec::with_capacity(slots),
        }
    }
}

impl Backend for DeviceView {
    fn now(&mut self) -> Instant {
        self.now
    }

    fn refresh(&mut self, _: u32, _: u32) {}

    fn push(&mut self, io: Io) {
        self.started.push(io);
    }

    fn push_task(&mut self, slot: u32, _target: u32, task: Task) {
        self.tasks.push((slot, task));
    }

    fn wait(&mut self, _: Instant) {
        unreachable!("a worker among several leaves the waiting to who gives the turns");
    }

    fn reap(&mut self, take: impl FnMut(Completion)) {
        self.completed.drain(..).for_each(take);
    }
}

/// The deadline of a worker that is done.
const NEVER: Instant = Instant(u64::MAX);

/// One device that several workers share, and the next one to run.
struct SharedDevice<'a> {
    device: Sim,
    workers: Vec<Box<dyn InTurns<DeviceView> + 'a>>,
    views: Vec<DeviceView>,
    /// By slot of the device, its owner.
    owners: Box<[u32]>,
    /// When each worker wants to run at the latest.
    deadlines: Box<[Instant]>,
    /// Which of them do not want to run before that, even if I/Os complete.
    patient: Box<[bool]>,
    /// None of them is earlier than this.
    earliest: Instant,
    /// The worker that runs.
    ready: Vec<u32>,
}

impl<'a> SharedDevice<'a> {
    fn new(
        device: Sim,
        workers: Vec<Box<dyn InTurns<DeviceView> + 'a>>,
        jobs: &[Assignment<'_>],
    ) -> Self {
        let depths = jobs.iter().map(|job| job.plan.pace.queue_depth());
        let mut first_slot = 0;
        let view = |depth| {
            let view = DeviceView::new(first_slot, depth);
            first_slot += depth;
            view
        };
        let owner = |(worker, depth)| std::iter::repeat_n(worker, depth as usize);
        Self {
            device,
            views: depths.clone().map(view).collect(),
            owners: (0..).zip(depths).flat_map(owner).collect(),
            deadlines: vec![Instant(0); workers.len()].into(),
            patient: vec![false; workers.len()].into(),
            earliest: Instant(0),
            ready: Vec::with_capacity(workers.len()),
            workers,
        }
    }

    /// Lets all workers run until the last one is done. When a look's time comes, `enough` says
    /// whether the window ends there: at an interval's end, at which every worker wants to run.
    fn run(
        mut self,
        looks: impl Iterator<Item = Instant>,
        enough: &dyn Fn(Instant) -> bool,
    ) -> Vec<Outcome> {
        let mut looks = looks.peekable();
        for worker in 0..self.workers.len() {
            self.begin(worker);
        }
        self.find_earliest();
        while self.earliest < NEVER {
            // I/Os that completed before a look are handed over before it.
            let pause = looks.peek().map(|look| Instant(look.0 - 1));
            let pause = pause.filter(|&pause| self.device.now() < pause).unwrap_or(NEVER);
            let Self { device, owners, patient, earliest, .. } = &mut self;
            let is_urgent = |slot: u32| !patient[owners[slot as usize] as usize];
            device.wait_for(pause.min(*earliest), is_urgent);
            let now = device.now();
            if let Some(look) = looks.next_if(|&look| look <= now) {
                self.catch_up(look);
                if enough(look) {
                    self.workers.iter_mut().for_each(|worker| worker.end_window(look));
                    looks.by_ref().for_each(drop);
                }
            }
            self.find_ready(now);
            for turn in 0..self.ready.len() {
                let worker = self.ready[turn] as usize;
                let view = &mut self.views[worker];
                view.now = now;
                self.workers[worker].end(view);
                self.begin(worker);
            }
            // Deadlines only move later: an earlier one that was replaced is searched for only when
            // its time has come, so that an iteration need not examine those of all the others.
            if self.earliest <= now {
                self.find_earliest();
            }
        }
        self.workers.into_iter().map(InTurns::outcome).collect()
    }

    /// Closes for all workers the intervals that ended by now, with the I/Os that completed before.
    fn catch_up(&mut self, look: Instant) {
        for (worker, view) in self.workers.iter_mut().zip(&mut self.views) {
            if !view.completed.is_empty() {
                view.now = look;
                worker.end(view);
            }
            worker.catch_up(look);
        }
    }

    /// The first half of a worker's iteration.
    fn begin(&mut self, worker: usize) {
        let view = &mut self.views[worker];
        let deadline = self.workers[worker].begin(view).unwrap_or(NEVER);
        self.deadlines[worker] = deadline;
        self.patient[worker] = self.workers[worker].is_patient();
        self.earliest = self.earliest.min(deadline);
        for io in view.started.drain(..) {
            self.device.push(Io { slot: view.first_slot + io.slot, ..io });
        }
        for (slot, task) in view.tasks.drain(..) {
            self.device.push_task(view.first_slot + slot, 0, task);
        }
    }

    fn find_earliest(&mut self) {
        self.earliest = self.deadlines.iter().min().copied().unwrap_or(NEVER);
    }

    /// Hands all workers their completions, and finds the workers with something to do, in their
    /// order.
    fn find_ready(&mut self, now: Instant) {
        let Self { device, views, owners, deadlines, patient, ready, .. } = self;
        ready.clear();
        device.reap(|completion| {
            let worker = owners[completion.slot as usize];
            // An I/O that completes after its worker has given it up is lost.
            if deadlines[worker as usize] == NEVER {
                return;
            }
            let view = &mut views[worker as usize];
            if view.completed.is_empty() && !patient[worker as usize] {
                ready.push(worker);
            }
            let slot = completion.slot - view.first_slot;
            view.completed.push(Completion { slot, ..completion });
        });
        if self.earliest <= now {
            let all = deadlines.iter().zip(patient.iter()).zip(views.iter());
            for (worker, ((deadline, patient), view)) in (0..).zip(all) {
                if *deadline <= now && (view.completed.is_empty() || *patient) {
                    ready.push(worker);
                }
            }
        }
        if ready.len() > 1 {
            ready.sort_unstable();
        }
    }
}

#[cfg(test)]
mod tests {
    use fathom_core::spec::{Arrivals, Kind, Pacing, Region, Stream};
    use fathom_core::{Bytes, Rate, plan};

    use super::*;
    use crate::run_point::Nobody;

    /// Runs the point's only worker, either alone or as the only worker of a shared device.
    fn record(device: &str, point: &Point, shared: bool) -> Record {
        let (plans, timetable) = (plan::divide(point), Timetable::of(point, Instant(0)));
        let job = Assignment {
            plan: &plans[0],
            writes: writes(point, &plans[0]),
            timetable,
            cpu: || None,
            ends_early: &|| false,
            stopped: &|| false,
            agree_on_end: &|now| now,
            done: &|_| {},
        };
        let collector = Collector::new(&plans, timetable);
        let mut nobody = Nobody;
        let merging = RefCell::new(Merging { collector, observer: &mut nobody });
        let options: sim::Options = device.parse().expect(device);
        let mut device = Sim::open(&options, point.streams[0].pacing.queue_depth());
        let outcomes = match shared {
            true => together(point, &[job], device, &merging, |_| Unfollowed),
            false => Vec::from([alone(point, &job, &mut device, &merging, Unfollowed)]),
        };
        merging.into_inner().collector.finish(outcomes, None)
    }

    #[test]
    fn a_worker_that_shares_a_device_does_what_it_does_alone() {
        let open = |arrivals| Pacing::open(Rate(20e3), arrivals, 8);
        let closed = |queue_depth| Pacing::closed(queue_depth);
        let pacings = [closed(1), closed(13), open(Arrivals::Uniform), open(Arrivals::Poisson)];
        for device in [
            "queue,servers=3,distribution=exponential",
            "queue,error=1%,short=1%,stall=100ms+50ms/200ms",
            "queue,hang-after=500ms",
            "queue,error=1",
            "ssd,noise=5%",
            "hdd",
        ] {
            for pacing in &pacings {
                let region = Region { target: 0, offset: Bytes(0), length: Bytes(1 << 30) };
                let stream = Stream {
                    ios: Kind { read_share: 0.7, ..Kind::default() }.into(),
                    pacing: pacing.clone(),
                    ..Stream::reading("one", Vec::from([region]))
                };
                let point = Point {
                    warm_up: Span::from_ms(250),
                    ..Point::of(Vec::from([stream]), Span::from_secs(1))
                };
                let [together, alone] = [true, false].map(|at| record(device, &point, at));
                assert!(together == alone, "{device}, {pacing:?}");
            }
        }
    }
}
