//! A run against real targets: a thread and a backend for each worker, started on one common
//! instant; the calling thread merges what they hand over.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TryRecvError, sync_channel};
use std::thread;
use std::time::Duration;

use fathom_core::measure::{Record, Tally};
use fathom_core::plan::WorkerPlan;
use fathom_core::spec::{Pacing, Point, Region, Rests};
use fathom_core::{Instant, Span};

use super::finish::Finish;
use super::{Observer, Phase, RunError, drive_plan, tallies, timetable};
use crate::access::CallFlags;
use crate::backend::{Mapped, RealBackend, Shape};
use crate::buffers::memory::NoLargePages;
use crate::clock::{self, Clock};
use crate::collector::{Collector, empty_tally};
use crate::host::ThreadTime;
use crate::pacer::Pace;
use crate::pattern::Pointers;
use crate::payload::Content;
use crate::realtime;
use crate::target::OpenTarget;
use crate::trace::{self, Entry, Follow, Tracer, Unfollowed};
use crate::worker::{Job, Outcome, Sink, Timetable};
use crate::workplace;

/// As small as a buffer may be.
const PAGE: u32 = 4096;

/// From the moment when all workers are ready to their common start.
const LEAD: Span = Span::from_ms(2);
/// From the moment when the first worker sees that it should stop to the end that it sets for all:
/// longer than any of them goes without looking.
const STOP_LEAD: Span = Span::from_ms(100);
/// A worker's stack. The C library keeps 40 MiB of stacks for the next threads; what is beyond is
/// unmapped, on all CPUs, and mapped again for the next point. These are enough for 80 workers.
const STACK: usize = 512 << 10;
/// A worker that has told nothing for so many intervals after a look is not waited for.
const OVERDUE: u64 = 3;
/// How long the collector sleeps at most, so that it notices the end of the last worker.
const NAP: Duration = Duration::from_millis(50);

/// A run that is ready to go.
pub(super) struct Run<'a> {
    pub(super) point: &'a Point,
    pub(super) plans: &'a [WorkerPlan],
    /// For each stream of the point, an open target for each of its regions.
    pub(super) streams: &'a [Vec<OpenTarget>],
    /// What each stream writes.
    pub(super) contents: &'a [Content],
    pub(super) stop: &'a AtomicBool,
    pub(super) pointers: Pointers,
}

/// What a worker hands over, with its place.
type Handed = (usize, Box<Tally>);

/// What passes between a worker and the collector, seen from the worker.
struct Lines<'a, F> {
    worker: usize,
    full: SyncSender<Handed>,
    empty: Receiver<Box<Tally>>,
    /// Set when the collector or another worker panicked.
    abandoned: &'a AtomicBool,
    end: &'a EarlyEnd,
    follow: F,
    finish: &'a Finish,
}

/// The end that the first worker to see that it should stop sets for all, in nanoseconds.
struct EarlyEnd(AtomicU64);

impl EarlyEnd {
    /// The end, if one was set.
    fn get(&self) -> Option<Instant> {
        Some(self.0.load(Ordering::Relaxed)).filter(|&end| end < u64::MAX).map(Instant)
    }

    /// The end that was set, or else `proposed`, which is then the one.
    fn agree(&self, proposed: Instant) -> Instant {
        let swap =
            self.0.compare_exchange(u64::MAX, proposed.0, Ordering::Relaxed, Ordering::Relaxed);
        Instant(swap.err().unwrap_or(proposed.0))
    }
}

/// Where all wait until it is known when the run starts, or that it does not.
type Gate = OnceLock<Option<Timetable>>;

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

impl<F: Follow> Sink for Lines<'_, F> {
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
        self.full.try_send((self.worker, full)).is_ok()
    }

    #[inline(always)]
    fn starts(&mut self, slot: u32) {
        self.follow.starts(slot);
    }

    #[inline(always)]
    fn ends(&mut self, slot: u32, entry: impl FnOnce(u64) -> Entry) {
        self.follow.ends(slot, entry);
    }
}

impl Run<'_> {
    /// Runs it, with a thread that hands the tracer what the workers did, if there is one.
    pub(super) fn go<B: RealBackend>(
        &self,
        observer: &mut dyn Observer,
        tracer: Option<&mut dyn Tracer>,
    ) -> Result<Record, RunError> {
        let gate = &Gate::new();
        let Some(tracer) = tracer else {
            let nobody = self.plans.iter().map(|_| Unfollowed);
            return self.follow::<B, _>(observer, gate, nobody);
        };
        let (followers, blocks) = trace::lines(self.plans);
        let write = || {
            if let Some(table) = gate.wait() {
                blocks.write(tracer, self.plans, table.window_start);
            }
        };
        thread::scope(|scope| {
            // Opened here too: without a thread to run in, nobody else would open it.
            let _starts = Opens(gate);
            let builder = thread::Builder::new().name("fathom-trace".to_owned());
            let writer = builder.spawn_scoped(scope, write).map_err(RunError::Thread)?;
            let record = self.follow::<B, _>(observer, gate, followers.into_iter())?;
            match writer.join() {
                Ok(()) => Ok(record),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        })
    }

    /// Opens the backends, runs the workers, each with one that follows its I/Os, and merges their
    /// records.
    fn follow<B: RealBackend, F: Follow + Send>(
        &self,
        observer: &mut dyn Observer,
        gate: &Gate,
        followers: impl Iterator<Item = F>,
    ) -> Result<Record, RunError> {
        let clock = Clock::default();
        let count = self.plans.len();
        let tallies = tallies(count);
        let (full, filled) = sync_channel(count * tallies);
        let (ready, readiness) = sync_channel(count);
        let abandoned = AtomicBool::new(false);
        let closed = OnceLock::new();
        let end = EarlyEnd(AtomicU64::new(u64::MAX));
        let finish = Finish::new(self.point, self.plans);
        thread::scope(|scope| {
            // Moved in here, so that a panic drops them before the workers are waited for.
            let (filled, _abandons) = (filled, Abandons(&abandoned));
            let (opens, _starts) = (Opens(&closed), Opens(gate));
            let mut returns = Vec::with_capacity(count);
            let mut threads = Vec::with_capacity(count);
            for ((worker, plan), follow) in self.plans.iter().enumerate().zip(followers) {
                let (give_back, empty) = sync_channel(tallies);
                for _ in 1..tallies {
                    give_back.try_send(empty_tally(plan)).expect("the channel has room for all");
                }
                returns.push(give_back);
                let (full, abandoned) = (full.clone(), &abandoned);
                let (end, finish) = (&end, &finish);
                let lines = Lines { worker, full, empty, abandoned, end, finish, follow };
                let (ready, closed) = (ready.clone(), &closed);
                let name = format!("fathom-{worker}");
                let builder = thread::Builder::new().name(name).stack_size(STACK);
                let work = move || self.work::<B, F>(plan, ready, gate, lines, closed);
                match builder.spawn_scoped(scope, work) {
                    Ok(thread) => threads.push(thread),
                    Err(cause) => return Err(RunError::Thread(cause)),
                }
            }
            drop((full, ready));
            if let Some(error) = readiness.iter().take(count).find_map(Result::err) {
                return Err(error);
            }
            let table = timetable(self.point, clock.now() + LEAD);
            let _ = gate.set(Some(table));
            let mut collector = Collector::new(self.plans, table);
            let mut phases = Phases { table, end: &end, next: Some(Phase::WarmUp) };
            let mut looks = Looks::new(self.point, table, &end);
            let lines = (&filled, &*returns);
            collect(&clock, (&mut phases, &mut looks), &mut collector, lines, observer);
            drop(opens);
            let outcomes = threads.into_iter().map(|thread| match thread.join() {
                Ok(outcome) => outcome.expect("the gate was opened with a timetable"),
                Err(panic) => std::panic::resume_unwind(panic),
            });
            let outcomes = outcomes.collect();
            let done = finish.is_over().then(|| end.get()).flatten();
            Ok(collector.finish(outcomes, done))
        })
    }

    /// A worker's thread, from opening its backend to its last I/O.
    fn work<B: RealBackend, F: Follow>(
        &self,
        plan: &WorkerPlan,
        ready: SyncSender<Result<(), RunError>>,
        gate: &Gate,
        mut lines: Lines<'_, F>,
        closed: &OnceLock<()>,
    ) -> Option<Outcome> {
        let (abandoned, end, finish) = (lines.abandoned, lines.end, lines.finish);
        let _abandons = Abandons(abandoned);
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
        // First of all: what is allocated from here on is near the CPU.
        let settled = workplace::settle(&stream.workplace, plan.worker);
        // The backend is made, used and dropped by this thread, which opens nothing else. The targets
        // that it was given are borrowed, so that the caller closes them.
        B::prepare_thread(&shape);
        let opened = settled.and_then(|()| self.open_backend::<B>(plan, &targets, &shape));
        let (backend, answer) = match opened {
            Ok(backend) => (Some(backend), Ok(())),
            Err(cause) => (None, Err(cause)),
        };
        // The collector waits for an answer of every worker, so it is still there.
        let _ = ready.send(answer);
        drop(ready);
        let timetable = (*gate.wait())?;
        let mut backend = backend?;
        let stopped = || self.stop.load(Ordering::Relaxed) || abandoned.load(Ordering::Relaxed);
        let job = Job {
            plan: &local,
            writes: shape.writes,
            timetable,
            cpu: || Some(ThreadTime::own()),
            ends_early: &|| stopped() || end.get().is_some(),
            stopped: &stopped,
            agree_on_end: &|now| end.agree(now + STOP_LEAD),
            done: &|at| {
                if let Some(ends) = finish.done(at, STOP_LEAD) {
                    end.agree(ends);
                    finish.announce();
                }
            },
        };
        let mut outcome = drive_plan(&job, stream, &self.pointers, &mut backend, &mut lines);
        for error in &mut outcome.errors.first {
            let same = local.regions.iter().position(|region| region.target == error.target);
            error.target = plan.regions[same.expect("it was one of its regions")].target;
        }
        // What the caller reads at the window's end, the ring's own threads among it, must not be
        // gone before.
        let Lines { follow, full, .. } = lines;
        follow.finish();
        drop(full);
        closed.wait();
        Some(Outcome { waits: Some(backend.waits()), ..outcome })
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

    /// Makes a worker's backend on the worker's own thread, and settles how it will wait.
    fn open_backend<B: RealBackend>(
        &self,
        plan: &WorkerPlan,
        targets: &[OpenTarget],
        shape: &Shape,
    ) -> Result<B, RunError> {
        let mut backend =
            B::open(targets, shape).map_err(|cause| match NoLargePages::is_why(&cause) {
                true => RunError::LargePages(cause),
                false => RunError::Backend { backend: B::KIND, cause },
            })?;
        let rests = self.point.streams[plan.stream as usize].rests != Rests::None;
        let realtime = matches!(plan.pacing, Pacing::Open { realtime: true, .. });
        // A rest ends on time, as an open loop's I/Os start on time.
        if plan.pacing.is_open() || rests {
            let share = realtime.then(realtime::request).transpose().map_err(RunError::Realtime)?;
            backend.pace(Pace {
                wake_up: Some(clock::wake_up()),
                // Somebody has to serve what is in flight: where the workers take all CPUs, one
                // that spins keeps the device's own threads from running.
                spins_in_flight: plan.pacing.is_open() && self.plans.len() < cpus(),
                realtime: share,
            });
        }
        Ok(backend)
    }
}

/// Which phase begins next, and when.
struct Phases<'a> {
    table: Timetable,
    end: &'a EarlyEnd,
    next: Option<Phase>,
}

impl Phases<'_> {
    /// The next phase and its beginning, as far as is known now.
    fn next(&self) -> Option<(Phase, Instant)> {
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
    fn cools_for(&self, now: Instant) -> Option<Span> {
        let end = self.end.get().unwrap_or(Instant(u64::MAX)).min(self.table.window_end);
        let left = (end + self.table.cool_down).since(now);
        (self.next.is_none() && left > Span(0)).then_some(left)
    }

    /// Names every phase that has begun by now.
    fn announce(&mut self, now: &dyn Fn() -> Instant, observer: &mut dyn Observer) {
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
struct Looks<'a> {
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
    fn show(
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

/// Merges until the last worker is done, names the phases as they begin, and shows what there is when
/// it is to be looked at.
fn collect(
    clock: &Clock,
    (phases, looks): (&mut Phases<'_>, &mut Looks<'_>),
    collector: &mut Collector<'_>,
    (filled, returns): (&Receiver<Handed>, &[SyncSender<Box<Tally>>]),
    observer: &mut dyn Observer,
) {
    loop {
        looks.show(&|| clock.now(), collector, observer);
        phases.announce(&|| clock.now(), observer);
        if let Some(left) = phases.cools_for(clock.now()) {
            observer.cool_down(left, phases.table.cool_down);
        }
        let nap = match phases.next() {
            Some((_, begins)) => Duration::from_nanos(begins.since(clock.now()).0).min(NAP),
            None => NAP,
        };
        match filled.recv_timeout(nap) {
            Ok((worker, mut tally)) => {
                if let Some(progress) = collector.add(worker, &mut tally) {
                    observer.progress(&progress);
                }
                // A worker that has ended takes nothing back.
                let _ = returns[worker].try_send(tally);
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    // Every worker gave up before the window's end.
    if phases.next == Some(Phase::WindowCloses) {
        observer.phase(Phase::WindowCloses, Span(0));
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
        let end = EarlyEnd(AtomicU64::new(u64::MAX));
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
        let end = EarlyEnd(AtomicU64::new(u64::MAX));
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
            pointers: Pointers::new(&point),
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
                pointers: Pointers::new(&point),
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
