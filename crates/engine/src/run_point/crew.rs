//! The workers' threads: how they are started, heard and waited for, and how the run goes on
//! without threads that hang.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use fathom_core::measure::Tally;
use fathom_core::{Instant, Span};

use super::early_end::STOP_LEAD;
use super::patience::{self, Patience, Standstill};
use super::phases::{Looks, Phases};
use super::shared::{Handed, Lines, Shared};
use super::worker_task::WorkerTask;
use super::{Observer, Phase};
use crate::backend::RealBackend;
use crate::clock::Clock;
use crate::collector::{Collector, empty_tally, tallies};
use crate::open_target::OpenTarget;
use crate::run_error::RunError;
use crate::trace::Follow;
use crate::worker::{self, Claimed, Estate, Outcome};

/// A worker's stack. The C library keeps 40 MiB of stacks for later threads; stacks beyond that are
/// unmapped, on all CPUs, and mapped again for the next point. With this size 40 MiB suffice for 80
/// workers.
const STACK: usize = 512 << 10;
/// How long the collector sleeps at most, so that it notices the caller's requests.
const NAP: Duration = Duration::from_millis(50);
/// How long to wait for a worker that left by an error or a panic.
const LEAVING: Span = Span::from_secs(3);
/// How long the threads may take that end the work of workers that hang.
const HEIRS: Span = Span::from_secs(1);

/// Whether a backend could be set up.
pub(super) type Answer = Result<(), RunError>;

/// The workers of a run, until it ends: then it waits for all of them except those that hang.
pub(super) struct Crew {
    members: Vec<WorkerThread>,
    /// The owner of the open targets.
    streams: Vec<Vec<OpenTarget>>,
    shared: Arc<Shared>,
    filled: Receiver<Handed>,
    full: SyncSender<Handed>,
    /// When the work of workers that hang was handed to other threads.
    bequeathed: Option<Instant>,
    /// Whether workers with a limit still make progress; none before the start.
    standstill: Option<Standstill>,
}

/// One of them.
struct WorkerThread {
    task: Arc<WorkerTask>,
    estate: Arc<Estate>,
    /// The way back for empty tallies; none once it does not listen any more.
    give_back: Option<SyncSender<Box<Tally>>>,
    thread: Option<JoinHandle<()>>,
    outcome: Option<Outcome>,
    is_gone: bool,
}

impl WorkerThread {
    /// Whether it has nothing more to report.
    fn is_through(&self) -> bool {
        self.outcome.is_some() || self.is_gone
    }

    /// Whether the kernel may still have I/Os of it, so that its thread may hang when it ends.
    fn leaves_ios(&self) -> bool {
        self.outcome.as_ref().is_some_and(|outcome| outcome.leaves_ios)
    }
}

impl Crew {
    /// Starts a thread for each task. Returns the receiver of the results of their setup.
    pub(super) fn hire<B: RealBackend, F: Follow + Send + 'static>(
        tasks: Vec<Arc<WorkerTask>>,
        shared: &Arc<Shared>,
        streams: &[Vec<OpenTarget>],
        followers: impl Iterator<Item = F>,
    ) -> Result<(Self, Receiver<Answer>), RunError> {
        let count = tasks.len();
        let tallies = tallies(count);
        // Besides its tallies each reports that it is done, and that it has ended.
        let (full, filled) = sync_channel(count * (tallies + 2));
        let (ready, readiness) = sync_channel(count);
        let mut crew = Self {
            members: Vec::with_capacity(count),
            streams: streams.to_vec(),
            shared: Arc::clone(shared),
            filled,
            full,
            bequeathed: None,
            standstill: None,
        };
        for ((worker, task), follow) in tasks.into_iter().enumerate().zip(followers) {
            let (give_back, empty) = sync_channel(tallies);
            for _ in 1..tallies {
                let tally = empty_tally(&task.plan);
                give_back.try_send(tally).expect("the channel has room for all");
            }
            let estate = Arc::new(worker::for_any_thread());
            let full = crew.full.clone();
            let lines = Lines { worker, full, empty, estate: Arc::clone(&estate), follow };
            let (own, ready) = (Arc::clone(&task), ready.clone());
            let builder = thread::Builder::new().name(format!("fathom-{worker}"));
            let thread = builder
                .stack_size(STACK)
                .spawn(move || own.perform::<B, F>(ready, lines))
                .map_err(RunError::Thread)?;
            crew.members.push(WorkerThread {
                task,
                estate,
                give_back: Some(give_back),
                thread: Some(thread),
                outcome: None,
                is_gone: false,
            });
        }
        Ok((crew, readiness))
    }

    /// Waits until all are set up.
    pub(super) fn get_ready(
        &mut self,
        clock: &Clock,
        readiness: &Receiver<Answer>,
        patience: &mut Patience<'_>,
        observer: &mut dyn Observer,
    ) -> Result<(), RunError> {
        let begun = clock.now();
        let mut missing = self.members.len();
        while missing > 0 {
            match readiness.recv_timeout(NAP) {
                Ok(answer) => answer?,
                // A thread panicked, which is reported when all is over.
                Err(RecvTimeoutError::Disconnected) => return Ok(()),
                Err(RecvTimeoutError::Timeout) => {
                    self.heed(clock.now(), patience, observer);
                    let now = clock.now();
                    match now < patience.limit_of_set_up(begun) {
                        true => continue,
                        false => return Err(RunError::Hangs(now.since(begun))),
                    }
                }
            }
            missing -= 1;
        }
        Ok(())
    }

    /// Checks the caller's requests, and informs the workers. All workers may be in calls, so that
    /// no other thread sets the end.
    fn heed(&self, now: Instant, patience: &mut Patience<'_>, observer: &dyn Observer) {
        if patience.look(now, observer.hurries()) {
            self.shared.stop.store(true, std::sync::atomic::Ordering::Relaxed);
            if self.shared.gate.get().is_some() {
                self.shared.end.agree(now + STOP_LEAD);
            }
        }
    }

    /// Merges until the last worker is done, names the phases as they begin, and shows the record
    /// at its looks.
    pub(super) fn collect(
        &mut self,
        clock: &Clock,
        (phases, looks, patience): (&mut Phases<'_>, &mut Looks<'_>, &mut Patience<'_>),
        collector: &mut Collector<'_>,
        observer: &mut dyn Observer,
    ) {
        let limited = self.members.iter().map(|member| member.task.is_limited());
        let table = phases.table;
        self.standstill = Some(Standstill::new(limited, table.start, table.interval));
        while !self.members.iter().all(WorkerThread::is_through) {
            looks.show(&|| clock.now(), collector, observer);
            phases.announce(&|| clock.now(), observer);
            if let Some(left) = phases.cools_for(clock.now()) {
                observer.cool_down(left, phases.table.cool_down);
            }
            self.heed(clock.now(), patience, observer);
            if self.standstill.as_ref().is_some_and(|it| it.is_there(clock.now(), patience)) {
                self.shared.end.agree(clock.now() + STOP_LEAD);
            }
            self.go_on_without(
                clock.now(),
                patience.limit(&phases.table, &self.shared.end),
                collector,
            );
            let nap = match phases.next() {
                Some((_, begins)) => Duration::from_nanos(begins.since(clock.now()).0).min(NAP),
                None => NAP,
            };
            if let Ok(handed) = self.filled.recv_timeout(nap) {
                self.take(handed, clock.now(), collector, observer);
            }
        }
        // Every worker gave up before the window's end.
        if phases.next == Some(Phase::WindowCloses) {
            observer.phase(Phase::WindowCloses, Span(0));
        }
    }

    fn take(
        &mut self,
        handed: Handed,
        now: Instant,
        collector: &mut Collector<'_>,
        observer: &mut dyn Observer,
    ) {
        match handed {
            Handed::Tally(worker, mut tally) => {
                if let Some(standstill) = &mut self.standstill {
                    standstill.heard(worker, &tally.ledger, now);
                }
                // A worker that is not waited for any more is not heard any more either.
                let Some(give_back) = &self.members[worker].give_back else { return };
                if let Some(progress) = collector.add(worker, &mut tally) {
                    observer.progress(&progress);
                }
                // A worker that has ended takes nothing back.
                let _ = give_back.try_send(tally);
            }
            Handed::Done(worker, outcome) => {
                if let Some(standstill) = &mut self.standstill {
                    standstill.ended(worker);
                }
                let member = &mut self.members[worker];
                if member.give_back.take().is_some() {
                    member.outcome = Some(*outcome);
                }
            }
            Handed::Gone(worker) => self.members[worker].is_gone = true,
        }
    }

    /// Once the wait is over, has other threads end the work of workers that hang; if even that
    /// does not finish, takes the figures that the workers have reported.
    fn go_on_without(&mut self, now: Instant, limit: Instant, collector: &Collector<'_>) {
        if now < limit || self.bequeathed.is_some_and(|at| now < at + HEIRS) {
            return;
        }
        let end = self.shared.end.get();
        let hang: Vec<usize> =
            (0..self.members.len()).filter(|&one| !self.members[one].is_through()).collect();
        if self.bequeathed.is_none() && self.bequeath(&hang, end) {
            self.bequeathed = Some(now);
            return;
        }
        for worker in hang {
            let member = &mut self.members[worker];
            member.give_back = None;
            member.outcome = Some(collector.last_known(worker, end));
        }
    }

    /// Gives the counts of these workers to a thread that ends their work in their place, because
    /// that work has to wait for the collector at times.
    fn bequeath(&self, hang: &[usize], end: Option<Instant>) -> bool {
        let estates: Vec<&Estate> = hang.iter().map(|&one| &*self.members[one].estate).collect();
        let claimed = worker::claim(&estates).into_iter().zip(hang);
        let heirs: Vec<(usize, Arc<WorkerTask>, Claimed)> = claimed
            .filter_map(|(claimed, &one)| {
                Some((one, Arc::clone(&self.members[one].task), claimed?))
            })
            .collect();
        let full = self.full.clone();
        let work = move || {
            for (worker, task, claimed) in heirs {
                let mut outcome = claimed.leave(end);
                task.name_targets(&mut outcome);
                // There is room for it.
                let _ = full.try_send(Handed::Done(worker, Box::new(outcome)));
            }
        };
        let builder = thread::Builder::new().name("fathom-heir".to_owned());
        builder.stack_size(STACK).spawn(work).is_ok()
    }

    /// Has all workers leave, waits for those that do, and returns their results.
    pub(super) fn dismiss(mut self, clock: &Clock, patience: &Patience<'_>) -> Vec<Outcome> {
        let hangs = self.bequeathed.is_some() || self.members.iter().any(WorkerThread::leaves_ios);
        self.leave(clock, patience.for_leaving(hangs));
        self.members.iter_mut().filter_map(|member| member.outcome.take()).collect()
    }

    /// Waits this long for workers that leave, and abandons the others.
    fn leave(&mut self, clock: &Clock, patience: Span) {
        let shared = &self.shared;
        let _ = shared.gate.set(None);
        let _ = shared.closed.set(());
        // A thread that hands over a tally without a receiver would wait forever.
        self.members.iter_mut().for_each(|member| member.give_back = None);
        let limit = clock.now() + patience;
        while self.members.iter().any(|member| !member.is_gone) && clock.now() < limit {
            let left = Duration::from_nanos(limit.since(clock.now()).0);
            if let Ok(Handed::Gone(worker)) = self.filled.recv_timeout(left.min(NAP)) {
                self.members[worker].is_gone = true;
            }
        }
        let hang = self.members.iter().filter(|member| !member.is_gone).count();
        patience::leave_behind(hang);
        if self.members.iter().any(WorkerThread::leaves_ios) {
            patience::leave_ios();
        }
        if hang > 0 {
            // Closing a file may hang as well: these stay open until the process ends.
            std::mem::forget(std::mem::take(&mut self.streams));
        }
        for member in &mut self.members {
            let Some(thread) = member.thread.take() else { continue };
            // A thread whose I/Os the kernel still has may hang when it ends.
            if !member.is_gone || member.leaves_ios() {
                continue;
            }
            if let Err(panic) = thread.join()
                && !thread::panicking()
            {
                std::panic::resume_unwind(panic);
            }
        }
    }
}

impl Drop for Crew {
    fn drop(&mut self) {
        if self.members.iter().all(|member| member.thread.is_none()) {
            return;
        }
        if thread::panicking() {
            self.shared.abandoned.store(true, std::sync::atomic::Ordering::Relaxed);
        }
        self.leave(&Clock::default(), LEAVING);
    }
}
