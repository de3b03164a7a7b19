//! A run against real targets: a thread and a backend for each worker, started on one common
//! instant; the calling thread merges what they hand over.
//!
//! A worker's thread has nothing of the caller's, because it may hang in a call for ever: then the
//! caller goes on without it.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError};
use std::sync::{Arc, OnceLock};
use std::thread;

use fathom_core::measure::{Record, Tally};
use fathom_core::plan::WorkerPlan;
use fathom_core::spec::{Pacing, Point, Region, Rests, Stream};
use fathom_core::{Instant, Span};

use super::crew::Crew;
use super::finish::Finish;
use super::patience::Patience;
use super::{Observer, Phase, RunError, drive_plan, timetable};
use crate::access::CallFlags;
use crate::backend::{Mapped, RealBackend, Shape};
use crate::clock::{self, Clock};
use crate::collector::Collector;
use crate::host::ThreadTime;
use crate::memory::NoLargePages;
use crate::pacer::Pace;
use crate::pattern::Pointers;
use crate::payload::Content;
use crate::realtime;
use crate::target::OpenTarget;
use crate::trace::{self, Entry, Follow, Tracer, Unfollowed};
use crate::worker::{Estate, Job, Outcome, Sink, Timetable};
use crate::workplace;

/// As small as a buffer may be.
const PAGE: u32 = 4096;

/// From the moment when all workers are ready to their common start.
const LEAD: Span = Span::from_ms(2);
/// From the moment when the first worker sees that it should stop to the end that it sets for all:
/// longer than any of them goes without looking.
pub(super) const STOP_LEAD: Span = Span::from_ms(100);
/// A worker that has told nothing for so many intervals after a look is not waited for.
const OVERDUE: u64 = 3;

/// A run that is ready to go.
pub(super) struct Run<'a> {
    pub(super) point: &'a Point,
    pub(super) plans: &'a [WorkerPlan],
    /// For each stream of the point, an open target for each of its regions.
    pub(super) streams: &'a [Vec<OpenTarget>],
    /// What each stream writes.
    pub(super) contents: &'a [Content],
    pub(super) stop: &'a AtomicBool,
    pub(super) pointers: Arc<Pointers>,
}

/// What a worker tells the collector, each with its place.
pub(super) enum Handed {
    /// What it did in an interval.
    Tally(usize, Box<Tally>),
    /// It is done, and this is what it leaves.
    Done(usize, Box<Outcome>),
    /// Its backend is gone, and its thread about to be.
    Gone(usize),
}

/// What passes between a worker and the collector, seen from the worker.
pub(super) struct Lines<F> {
    pub(super) worker: usize,
    pub(super) full: SyncSender<Handed>,
    pub(super) empty: Receiver<Box<Tally>>,
    pub(super) estate: Arc<Estate>,
    pub(super) follow: F,
}

/// The end that the first worker to see that it should stop sets for all, in nanoseconds.
pub(super) struct EarlyEnd(AtomicU64);

impl EarlyEnd {
    /// No end yet.
    pub(super) fn new() -> Self {
        Self(AtomicU64::new(u64::MAX))
    }

    /// The end, if one was set.
    pub(super) fn get(&self) -> Option<Instant> {
        Some(self.0.load(Ordering::Relaxed)).filter(|&end| end < u64::MAX).map(Instant)
    }

    /// The end that was set, or else `proposed`, which is then the one.
    pub(super) fn agree(&self, proposed: Instant) -> Instant {
        let swap =
            self.0.compare_exchange(u64::MAX, proposed.0, Ordering::Relaxed, Ordering::Relaxed);
        Instant(swap.err().unwrap_or(proposed.0))
    }
}

/// What the workers and the collector have together. It belongs to all of them, so that it is there
/// for as long as one of them is.
pub(super) struct Shared {
    /// Where all wait until it is known when the run starts, or that it does not.
    pub(super) gate: OnceLock<Option<Timetable>>,
    /// Where workers that are done wait until all are: what the caller reads at the window's end, a
    /// ring's own threads among it, must not be gone before.
    pub(super) closed: OnceLock<()>,
    /// Set when the caller asked to stop.
    pub(super) stop: AtomicBool,
    /// Set when the collector or a worker panicked.
    pub(super) abandoned: AtomicBool,
    pub(super) end: EarlyEnd,
    finish: Finish,
}

impl Shared {
    fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed) || self.abandoned.load(Ordering::Relaxed)
    }
}

/// Ends the run when the thread that has it panics: the others would go on to the end of the window,
/// and wait for ever to hand over what nobody takes any more.
struct Abandons<'a>(&'a AtomicBool);

impl Drop for Abandons<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.store(true, Ordering::Relaxed);
        }
    }
}

/// Opens a gate at the latest when it is dropped, with nothing behind it: nobody waits there for one
/// who left by an error or a panic.
struct Opens<'a, T: Default>(&'a OnceLock<T>);

impl<T: Default> Drop for Opens<'_, T> {
    fn drop(&mut self) {
        let _ = self.0.set(T::default());
    }
}

/// Says that a worker's backend is gone, in a panic too.
struct SaysGone {
    worker: usize,
    full: SyncSender<Handed>,
}

impl Drop for SaysGone {
    fn drop(&mut self) {
        // There is room for it, so that this fails only when the collector is gone.
        let _ = self.full.try_send(Handed::Gone(self.worker));
    }
}

impl<F: Follow + Send> Sink for Lines<F> {
    const FOLLOWS: bool = F::FOLLOWS;

    fn hand_over(&mut self, tally: &mut Box<Tally>) -> bool {
        let empty = match self.empty.try_recv() {
            Ok(empty) => empty,
            Err(TryRecvError::Empty) => return false,
            // The collector is gone, and the run with it.
            Err(TryRecvError::Disconnected) => return true,
        };
        let full = std::mem::replace(tally, empty);
        // There is room for every tally that exists, so this fails only when the collector is gone.
        self.full.try_send(Handed::Tally(self.worker, full)).is_ok()
    }

    #[inline(always)]
    fn starts(&mut self, slot: u32) {
        self.follow.starts(slot);
    }

    #[inline(always)]
    fn ends(&mut self, slot: u32, entry: impl FnOnce(u64) -> Entry) {
        self.follow.ends(slot, entry);
    }

    fn estate(&self) -> Option<Arc<Estate>> {
        Some(Arc::clone(&self.estate))
    }

    fn finish(&mut self) {
        self.follow.finish();
    }
}

impl Run<'_> {
    /// Runs it, with a thread that hands the tracer what the workers did, if there is one.
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
            // Moved in here, so that a panic drops them before the writer is waited for. The gate is
            // opened here too: without a thread to run in, nobody else would open it.
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

    /// Opens the backends, runs the workers, each with one that follows its I/Os, and merges their
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
        let table = timetable(self.point, clock.now() + LEAD);
        let _ = shared.gate.set(Some(table));
        let mut collector = Collector::new(self.plans, table);
        let mut phases = Phases { table, end: &shared.end, next: Some(Phase::WarmUp) };
        let mut looks = Looks::new(self.point, table, &shared.end);
        crew.collect(&clock, (&mut phases, &mut looks, &mut patience), &mut collector, observer);
        let outcomes = crew.dismiss(&clock, &patience);
        let done = shared.finish.is_over().then(|| shared.end.get()).flatten();
        Ok(collector.finish(outcomes, done))
    }

    /// What a worker has to know.
    fn task(&self, plan: &WorkerPlan, shared: &Arc<Shared>) -> Task {
        let stream = &self.point.streams[plan.stream as usize];
        let (targets, local) = self.own_targets(plan);
        let shape = Shape {
            slots: plan.pacing.queue_depth(),
            // A trim moves no data, and may be much longer than what could have a buffer.
            block_size: match stream.trims_alone() {
                true => PAGE,
                false => stream.block_sizes.largest().0 as u32,
            },
            reads: stream.read_share > 0.0,
            writes: stream.read_share < 1.0,
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
        Task {
            plan: plan.clone(),
            local,
            stream: stream.clone(),
            targets,
            shape,
            pointers: Arc::clone(&self.pointers),
            // Somebody has to serve what is in flight: where the workers take all CPUs, one that spins
            // keeps the device's own threads from running.
            spins_in_flight: plan.pacing.is_open() && self.plans.len() < cpus(),
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

/// What a worker has to know, as its own: it may outlive the run.
pub(super) struct Task {
    pub(super) plan: WorkerPlan,
    /// The same with its targets' places in the list below.
    local: WorkerPlan,
    stream: Stream,
    targets: Vec<OpenTarget>,
    shape: Shape,
    pointers: Arc<Pointers>,
    spins_in_flight: bool,
    shared: Arc<Shared>,
}

impl Task {
    /// Whether it is to do something and then be done.
    pub(super) fn is_limited(&self) -> bool {
        self.stream.limit.is_some()
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
        // First of all: what is allocated from here on is near the CPU.
        let settled = workplace::settle(&self.stream.workplace, self.plan.worker);
        // The backend is made, used and dropped by this thread, which opens nothing else. The targets
        // that it was given are the caller's too, who closes them.
        B::prepare_thread(&self.shape);
        let opened = settled.and_then(|()| self.open_backend::<B>());
        let (backend, answer) = match opened {
            Ok(backend) => (Some(backend), Ok(())),
            Err(cause) => (None, Err(cause)),
        };
        // Nobody takes it when another worker could not be set up.
        let _ = ready.try_send(answer);
        drop(ready);
        let (Some(timetable), Some(mut backend)) = (*shared.gate.wait(), backend) else { return };
        let job = Job {
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
        // As with what it says last.
        let _ = full.try_send(Handed::Done(worker, outcome));
        shared.closed.wait();
    }

    /// Has errors name the run's targets instead of the worker's.
    pub(super) fn name_targets(&self, outcome: &mut Outcome) {
        for error in &mut outcome.errors.first {
            let same = self.local.regions.iter().position(|region| region.target == error.target);
            error.target = self.plan.regions[same.expect("it was one of its regions")].target;
        }
    }

    /// Makes a worker's backend on the worker's own thread, and settles how it will wait.
    fn open_backend<B: RealBackend>(&self) -> Result<B, RunError> {
        let mut backend = B::open(&self.targets, &self.shape).map_err(|cause| {
            match NoLargePages::is_why(&cause) {
                true => RunError::LargePages(cause),
                false => RunError::Backend { backend: B::KIND, cause },
            }
        })?;
        let pacing = &self.plan.pacing;
        let rests = self.stream.rests != Rests::None;
        let realtime = matches!(pacing, Pacing::Open { realtime: true, .. });
        // A rest ends on time, as an open loop's I/Os start on time.
        if pacing.is_open() || rests {
            let share = realtime.then(realtime::request).transpose().map_err(RunError::Realtime)?;
            backend.pace(Pace {
                wake_up: Some(clock::wake_up()),
                spins_in_flight: self.spins_in_flight,
                realtime: share,
            });
        }
        Ok(backend)
    }
}

/// Which phase begins next, and when.
pub(super) struct Phases<'a> {
    pub(super) table: Timetable,
    end: &'a EarlyEnd,
    pub(super) next: Option<Phase>,
}

impl Phases<'_> {
    /// The next phase and its beginning, as far as is known now.
    pub(super) fn next(&self) -> Option<(Phase, Instant)> {
        let end = self.end.get().unwrap_or(Instant(u64::MAX)).min(self.table.window_end);
        match self.next? {
            Phase::WarmUp => Some((Phase::WarmUp, self.table.start)),
            // A window that would begin at the end or later never does.
            Phase::WindowOpens if end <= self.table.window_start => None,
            Phase::WindowOpens => Some((Phase::WindowOpens, self.table.window_start)),
            Phase::WindowCloses => Some((Phase::WindowCloses, end)),
        }
    }

    /// How long the load still goes on after the window, while it does.
    pub(super) fn cools_for(&self, now: Instant) -> Option<Span> {
        let end = self.end.get().unwrap_or(Instant(u64::MAX)).min(self.table.window_end);
        let left = (end + self.table.cool_down).since(now);
        (self.next.is_none() && left > Span(0)).then_some(left)
    }

    /// Names every phase that has begun by now.
    pub(super) fn announce(&mut self, now: &dyn Fn() -> Instant, observer: &mut dyn Observer) {
        while let Some((phase, begins)) = self.next() {
            // Read anew for each, because an observer takes its time.
            let now = now();
            if now < begins {
                break;
            }
            observer.phase(phase, now.since(begins));
            self.next = match phase {
                Phase::WarmUp => Some(Phase::WindowOpens),
                Phase::WindowOpens => Some(Phase::WindowCloses),
                Phase::WindowCloses => None,
            };
        }
    }
}

/// When the observer is shown the record so far.
pub(super) struct Looks<'a> {
    table: Timetable,
    end: &'a EarlyEnd,
    /// Those to come, the last one first.
    left: Vec<Instant>,
}

impl<'a> Looks<'a> {
    fn new(point: &Point, table: Timetable, end: &'a EarlyEnd) -> Self {
        let left = point.looks.iter().rev().map(|&look| table.window_start + look).collect();
        Self { table, end, left }
    }

    /// Shows what there is for every look whose time has come, as soon as everybody has told of the
    /// time until then, or should have long ago. If it is enough, the window ends at an interval's
    /// end that every worker will hear of in time.
    pub(super) fn show(
        &mut self,
        now: &dyn Fn() -> Instant,
        collector: &mut Collector<'_>,
        observer: &mut dyn Observer,
    ) {
        let patience = Span(OVERDUE * self.table.interval.0);
        while let Some(look) =
            self.left.pop_if(|look| *look <= collector.told_until() || *look + patience <= now())
        {
            if self.end.get().is_some() || !observer.look(&collector.so_far(look)) {
                continue;
            }
            let end = self.table.boundary_after(now() + STOP_LEAD);
            if end < self.table.window_end && self.end.agree(end) == end {
                collector.end_early(end);
            }
        }
    }
}

/// The CPUs that this process may use, as far as its affinity and its cgroup allow.
fn cpus() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::Mutex;

    use fathom_core::measure::Waits;
    use fathom_core::spec::{Arrivals, BackendKind, Region, Stream};
    use fathom_core::{Bytes, Rate};

    use super::*;
    use crate::backend::{Backend, Completion, Io};
    use crate::run_point::Progress;
    use crate::schedule::{OpenLoop, Poisson, Schedule, Steady};
    use crate::sync::Sync;

    /// A backend that keeps when each I/O was pushed.
    struct Spy {
        inner: Sync,
        pushed: Vec<Instant>,
    }

    /// Where a spy leaves what it has seen: backends are opened and dropped by their workers.
    static PUSHED: Mutex<Vec<Instant>> = Mutex::new(Vec::new());

    impl Backend for Spy {
        const PREPARES_EARLY: Span = Sync::PREPARES_EARLY;

        fn now(&mut self) -> Instant {
            self.inner.now()
        }

        fn refresh(&mut self, slot: u32, length: u32) {
            self.inner.refresh(slot, length);
        }

        fn push(&mut self, io: Io) {
            self.pushed.push(self.inner.now());
            self.inner.push(io);
        }

        fn wait(&mut self, deadline: Instant) {
            self.inner.wait(deadline);
        }

        fn reap(&mut self, take: impl FnMut(Completion)) {
            self.inner.reap(take);
        }
    }

    impl RealBackend for Spy {
        const KIND: BackendKind = BackendKind::Sync;

        fn open(targets: &[OpenTarget], shape: &Shape) -> io::Result<Self> {
            Ok(Self { inner: Sync::open(targets, shape)?, pushed: Vec::with_capacity(10_000) })
        }

        fn write_buffer(&mut self, slot: u32) -> &mut [u8] {
            self.inner.write_buffer(slot)
        }

        fn read_buffer(&mut self, slot: u32) -> &mut [u8] {
            self.inner.read_buffer(slot)
        }

        fn pace(&mut self, pace: Pace) {
            self.inner.pace(pace);
        }

        fn waits(&self) -> Waits {
            self.inner.waits()
        }
    }

    impl Drop for Spy {
        fn drop(&mut self) {
            *PUSHED.lock().unwrap() = std::mem::take(&mut self.pushed);
        }
    }

    #[test]
    fn the_first_worker_that_stops_sets_the_end_for_all() {
        let end = EarlyEnd::new();
        assert_eq!(end.get(), None);
        assert_eq!(end.agree(Instant(70)), Instant(70));
        assert_eq!(end.agree(Instant(90)), Instant(70));
        assert_eq!(end.get(), Some(Instant(70)));
    }

    #[test]
    fn a_window_that_is_cut_off_closes_at_its_early_end_and_one_never_reached_never_opens() {
        let table = Timetable {
            start: Instant(10),
            window_start: Instant(20),
            window_end: Instant(100),
            cool_down: Span(0),
            interval: Span(10),
            buckets: None,
        };
        let begun = |end: u64, now: u64| {
            let end = EarlyEnd(AtomicU64::new(end));
            let mut phases = Phases { table, end: &end, next: Some(Phase::WarmUp) };
            let mut seen = Seen(Vec::new());
            phases.announce(&|| Instant(now), &mut seen);
            seen.0.into_iter().map(|(phase, _)| phase).collect::<Vec<_>>()
        };
        let all = [Phase::WarmUp, Phase::WindowOpens, Phase::WindowCloses];
        assert_eq!(begun(u64::MAX, 99), all[..2]);
        assert_eq!(begun(u64::MAX, 100), all);
        assert_eq!(begun(50, 50), all);
        assert_eq!(begun(15, 100), all[..1]);
        assert_eq!(begun(u64::MAX, 9), []);
    }

    #[test]
    fn each_phase_is_told_how_long_ago_it_began_when_it_is_told() {
        let table = Timetable {
            start: Instant(10),
            window_start: Instant(20),
            window_end: Instant(100),
            cool_down: Span(0),
            interval: Span(10),
            buckets: None,
        };
        let end = EarlyEnd::new();
        let mut phases = Phases { table, end: &end, next: Some(Phase::WarmUp) };
        let mut seen = Seen(Vec::new());
        // The observer takes 15 of them for each phase.
        let readings = std::cell::Cell::new(10);
        let now = || Instant(readings.replace(readings.get() + 15));
        phases.announce(&now, &mut seen);
        assert_eq!(seen.0, [(Phase::WarmUp, Span(0)), (Phase::WindowOpens, Span(5))]);
    }

    struct Seen(Vec<(Phase, Span)>);

    impl Observer for Seen {
        fn phase(&mut self, phase: Phase, ago: Span) {
            self.0.push((phase, ago));
        }

        fn progress(&mut self, _progress: &Progress) {}
    }

    struct Silent;

    impl Observer for Silent {
        fn phase(&mut self, _: Phase, _: Span) {}
        fn progress(&mut self, _progress: &Progress) {}
    }

    /// The greatest distance between the distribution of the gaps and the exponential one, in units
    /// of the 1 % limit of Kolmogorov and Smirnov.
    fn distance_from_exponential(pushed: &[Instant], rate: f64) -> f64 {
        let gap = |pair: &[Instant]| pair[1].since(pair[0]).as_secs_f64() * rate;
        let mut gaps: Vec<f64> = pushed.windows(2).map(gap).collect();
        gaps.sort_by(f64::total_cmp);
        let n = gaps.len() as f64;
        let distances = gaps.iter().enumerate();
        let distances =
            distances.map(|(i, gap)| ((i as f64 + 0.5) / n - (1.0 - (-gap).exp())).abs());
        distances.fold(0.0, f64::max) / (1.63 / n.sqrt())
    }

    /// How late every I/O was pushed, against the one that was the least late. A schedule that was
    /// not followed would lie a hundred milliseconds apart from this one in the end.
    fn lateness(pushed: &[Instant], intended: &[Instant]) -> Vec<u64> {
        let late = |(pushed, intended): (&Instant, &Instant)| pushed.0 as i64 - intended.0 as i64;
        let late: Vec<i64> = pushed.iter().zip(intended).map(late).collect();
        let least = late.iter().min().copied().unwrap_or_default();
        let mut late: Vec<u64> = late.into_iter().map(|one| (one - least) as u64).collect();
        late.sort_unstable();
        late
    }

    /// However busy the machine is, some I/Os start on time, and all keep the order of the schedule,
    /// whose gaps are exponential.
    #[test]
    fn poisson_arrivals_reach_a_real_file_as_exponential_gaps() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("target");
        std::fs::write(&path, vec![1; 1 << 20]).unwrap();
        let file = std::fs::File::open(&path).unwrap();
        let (size, alignment) = (Bytes(1 << 20), Bytes(1));
        let target = OpenTarget {
            name: "target".to_owned(),
            file: file.into(),
            size,
            alignment,
            passthrough: None,
        };
        let rate = 200.0;
        let point = poisson_point(rate, 1);
        let plans = fathom_core::plan::divide(&point);
        let run = Run {
            contents: &[Content::RANDOM],
            point: &point,
            pointers: Arc::new(Pointers::new(&point)),
            plans: &plans,
            streams: &[Vec::from([target.clone()])],
            stop: &AtomicBool::new(false),
        };
        run.go::<Spy>(&mut Silent, None).unwrap();
        let pushed = PUSHED.lock().unwrap().clone();
        let mut schedule =
            OpenLoop::new(Instant(0), Poisson::new(Steady::new(Rate(rate)), plans[0].seed));
        let end = Instant(0) + point.window;
        let intended: Vec<Instant> = std::iter::from_fn(|| schedule.take(end)).collect();
        // What a worker came too late for at the end was never started.
        assert!((intended.len() / 2..=intended.len()).contains(&pushed.len()));
        assert!(pushed.is_sorted());
        assert!(distance_from_exponential(&intended, rate) < 1.0);
        // In a run of this length 400 gaps of 5 ms scatter by 100 ms.
        let late = lateness(&pushed, &intended);
        assert!(late[late.len() / 10] < 2_000_000, "{late:?}");
    }

    /// The first of them to be opened serves so many I/Os, and then a call of its never returns.
    struct Stuck {
        inner: Sync,
        left: u64,
    }

    /// How many were opened.
    static STUCK: AtomicU64 = AtomicU64::new(0);
    const BEFORE_IT_HANGS: u64 = 500;

    impl Backend for Stuck {
        fn now(&mut self) -> Instant {
            self.inner.now()
        }

        fn refresh(&mut self, slot: u32, length: u32) {
            self.inner.refresh(slot, length);
        }

        fn push(&mut self, io: Io) {
            self.left = self.left.wrapping_sub(1);
            self.inner.push(io);
        }

        fn wait(&mut self, deadline: Instant) {
            if self.left == u64::MAX {
                loop {
                    thread::park();
                }
            }
            self.inner.wait(deadline);
        }

        fn reap(&mut self, take: impl FnMut(Completion)) {
            self.inner.reap(take);
        }
    }

    impl RealBackend for Stuck {
        const KIND: BackendKind = BackendKind::Sync;

        fn open(targets: &[OpenTarget], shape: &Shape) -> io::Result<Self> {
            let is_first = STUCK.fetch_add(1, Ordering::Relaxed) == 0;
            let left = if is_first { BEFORE_IT_HANGS } else { u64::MAX / 2 };
            Ok(Self { inner: Sync::open(targets, shape)?, left })
        }

        fn write_buffer(&mut self, slot: u32) -> &mut [u8] {
            self.inner.write_buffer(slot)
        }

        fn read_buffer(&mut self, slot: u32) -> &mut [u8] {
            self.inner.read_buffer(slot)
        }

        fn pace(&mut self, pace: Pace) {
            self.inner.pace(pace);
        }

        fn waits(&self) -> Waits {
            self.inner.waits()
        }
    }

    /// Asks to stop after a while, and then wants to wait no longer.
    struct Impatient<'a> {
        stop: &'a AtomicBool,
        asked: std::cell::Cell<u32>,
    }

    impl Observer for Impatient<'_> {
        fn phase(&mut self, _: Phase, _: Span) {}
        fn progress(&mut self, _: &Progress) {}

        fn hurries(&self) -> bool {
            self.asked.set(self.asked.get() + 1);
            self.stop.store(20 <= self.asked.get(), Ordering::Relaxed);
            40 <= self.asked.get()
        }
    }

    #[test]
    fn what_a_worker_did_until_a_call_of_its_hung_is_in_the_record_with_the_io_that_is_lost() {
        let file = tempfile::tempfile().unwrap();
        file.set_len(1 << 20).unwrap();
        let target = OpenTarget {
            name: "target".to_owned(),
            file: file.into(),
            size: Bytes(1 << 20),
            alignment: Bytes(1),
            passthrough: None,
        };
        let region = Region { target: 0, offset: Bytes(0), length: Bytes(1 << 20) };
        let stream = Stream {
            pacing: Pacing::Closed { queue_depth: 2 },
            workers: fathom_core::spec::Workers::Total(2),
            ..Stream::reading("test", Vec::from([region]))
        };
        let day = Span::from_secs(86_400);
        let point =
            Point { interval: Span::from_ms(100), seed: 1, ..Point::of(Vec::from([stream]), day) };
        let stop = AtomicBool::new(false);
        let mut observer = Impatient { stop: &stop, asked: std::cell::Cell::new(0) };
        let targets = std::slice::from_ref(&target);
        let record =
            crate::run_point::run_on::<Stuck>(&point, targets, &stop, &mut observer).unwrap();
        assert!(record.interrupted && crate::left_behind() == 1);
        let [hung, other] = &*record.workers else { panic!("two workers") };
        let (hung, other) = match hung.ledger.lost {
            0 => (other, hung),
            _ => (hung, other),
        };
        // The other one goes on until the end, and its calls come back.
        assert!(other.ledger.lost == 0 && other.ledger.completed > 0);
        assert_eq!((hung.ledger.lost, hung.ledger.completed), (1, BEFORE_IT_HANGS));
        assert_eq!(hung.cells[0].flows[0].ios(), BEFORE_IT_HANGS);
        assert!(hung.ledger.balances() && other.ledger.balances());
        let lost = hung.errors.first[0];
        assert_eq!((lost.kind, lost.target), (fathom_core::measure::ErrorKind::Lost, 0));
        assert!(lost.offset.0 < 1 << 20 && lost.at_ns < record.window.0 as i64);
    }

    /// Panics at the first interval's end, as a mistake in a view would.
    struct Faulty;

    impl Observer for Faulty {
        fn phase(&mut self, _: Phase, _: Span) {}

        fn progress(&mut self, _: &Progress) {
            panic!("a mistake in the view");
        }
    }

    #[test]
    fn a_panic_of_the_caller_ends_the_run_at_once() {
        let file = tempfile::tempfile().unwrap();
        file.set_len(1 << 20).unwrap();
        let name = "target".to_owned();
        let target = OpenTarget {
            name,
            file: file.into(),
            size: Bytes(1 << 20),
            alignment: Bytes(1),
            passthrough: None,
        };
        // Nobody would wait a day for this test.
        let point = Point { window: Span::from_secs(86_400), ..poisson_point(100.0, 1) };
        let plans = fathom_core::plan::divide(&point);
        let outcome = std::panic::catch_unwind(|| {
            let run = Run {
                contents: &[Content::RANDOM],
                point: &point,
                pointers: Arc::new(Pointers::new(&point)),
                plans: &plans,
                streams: &[Vec::from([target.clone()])],
                stop: &AtomicBool::new(false),
            };
            run.go::<Sync>(&mut Faulty, None).map(|_| ())
        });
        assert_eq!(outcome.unwrap_err().downcast_ref::<&str>(), Some(&"a mistake in the view"));
    }

    #[test]
    #[should_panic(expected = "is_multiple_of")]
    fn a_point_that_contradicts_itself_panics_and_does_not_hang() {
        let file = tempfile::tempfile().unwrap();
        file.set_len(1 << 20).unwrap();
        let name = "target".to_owned();
        let target = OpenTarget {
            name,
            file: file.into(),
            size: Bytes(1 << 20),
            alignment: Bytes(1),
            passthrough: None,
        };
        let point = Point { interval: Span::from_ms(300), ..poisson_point(100.0, 1) };
        let stop = AtomicBool::new(false);
        let _ = crate::run_point::run_on::<Sync>(
            &point,
            std::slice::from_ref(&target),
            &stop,
            &mut Silent,
        );
    }

    fn poisson_point(rate: f64, seed: u64) -> Point {
        let pacing = Pacing::Open {
            offered_load: Rate(rate),
            arrivals: Arrivals::Poisson,
            queue_depth_max: 1,
            realtime: false,
        };
        Point {
            name: "test".to_owned(),
            interval: Span::from_ms(100),
            seed,
            ..Point::of(
                Vec::from([Stream {
                    pacing,
                    ..Stream::reading(
                        "test",
                        Vec::from([Region { target: 0, offset: Bytes(0), length: Bytes(1 << 20) }]),
                    )
                }]),
                Span::from_secs(2),
            )
        }
    }
}
