//! Turns an experiment and `run_point` into trials, each of which is in the result file as soon as
//! it ends. Decides nothing: the experiment says what to run, the verdict judges the result.

mod ahead;
mod following;

use std::any::Any;
use std::collections::VecDeque;
use std::panic::{self, AssertUnwindSafe};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use fathom_core::Span;
use fathom_core::experiment::{
    Conclusion as Concluded, Experiment, Foreseen, Planned, ReductionProbe, Step, completed,
};
use fathom_core::facts::{Counters, Host, Reduction, Target, TargetKind};
use fathom_core::figures::number;
use fathom_core::measure::{Record, Upkeep};
use fathom_core::spec::{BackendKind, Point, Stream};
use fathom_core::stats::batched;
use fathom_core::trial::Trial;
use fathom_core::verdict::{Judgement, Verdict, judge};
use fathom_engine::host::{self, IoWqWatch, PauseWatch, Presence};
use fathom_engine::{Devices, Observer, Phase, Progress, run_traced, sim};
use fathom_report::document::{
    self, Conclusion, DistributionForm, Ended, Found, Header, HeaderInput, HostOfMany, Line,
};
use fathom_report::page::TRIALS_DRAWN;

use crate::contents::Contents;
use crate::error::Error;
use crate::hanging;
use crate::identity;
use crate::journal::Journal;
use crate::live::{Live, bandwidth};
use crate::room;
use crate::signals;
use crate::trace::TraceFile;
use crate::users::Overwritten;
use ahead::{Ahead, Runner, Task};
use following::Following;

/// How soon a rest ends after a request to stop.
const NAP: Duration = Duration::from_millis(50);

/// The targets and the backend of points.
pub trait Carrier {
    /// Opens the targets of a point.
    ///
    /// # Errors
    ///
    /// When they cannot be opened for it.
    fn carry(&mut self, planned: &Planned) -> Result<Carried<'_>, Error>;

    /// Does what the user wants to have done before a point, and nothing else.
    ///
    /// # Errors
    ///
    /// When that fails, or the user stopped it.
    fn before(&mut self, _: &Planned, _: &mut Live) -> Result<(), Error> {
        Ok(())
    }

    /// Whether the targets are on other hosts, so that nothing here can look at them.
    fn is_elsewhere(&self) -> bool {
        false
    }
}

/// Several hosts that apply a load together.
pub trait ManyHosts {
    /// Applies a point on all of them.
    ///
    /// # Errors
    ///
    /// When none of them did, or they cannot be reached any more.
    fn trial(&mut self, planned: Planned, live: &mut Live) -> Result<Trial, Error>;
}

/// What carries a point.
pub enum Carried<'a> {
    /// This machine.
    Here(CarriedHere<'a>),
    /// Several hosts, which open their own targets.
    Hosts(&'a mut dyn ManyHosts),
}

/// The open targets of a point.
pub struct CarriedHere<'a> {
    /// The input of `run_point`.
    pub devices: Devices<'a>,
    /// The reason for their backend.
    pub backend_reason: &'a str,
    /// The targets that are written to; none if no target is real.
    pub written: Option<&'a Overwritten>,
}

/// The machines whose targets are measured, for the header of a result.
#[derive(Clone, Copy)]
pub struct Machines<'a> {
    /// The machine; none if there are several.
    pub host: Option<&'a Host>,
    /// The hosts, if there are several.
    pub hosts: &'a [HostOfMany],
    /// The targets; of several hosts, those of the first one.
    pub targets: &'a [Target],
}

impl<'a> Machines<'a> {
    /// One machine with its targets.
    pub fn one(host: &'a Host, targets: &'a [Target]) -> Self {
        Self { host: Some(host), hosts: &[], targets }
    }
}

/// The inputs of a session.
pub struct Session<'a> {
    /// The machine.
    pub host: &'a Host,
    /// The targets, as they are in the document.
    pub targets: &'a [Target],
    /// Opens the targets.
    pub carrier: &'a mut dyn Carrier,
}

/// How a session ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The gravest verdict of all trials.
    pub verdict: Verdict,
    /// The signal that ended it early, if one did.
    pub signal: Option<i32>,
}

/// Nanoseconds since 1970.
pub fn unix_ns() -> u64 {
    // A clock before 1970 is not worth a failure: only names and dates come from it.
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_nanos() as u64)
}

/// The words that this process was started with. The path of the binary says nothing about the
/// measurement.
pub fn command_line() -> Vec<String> {
    let words = std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned());
    std::iter::once("fathom".to_owned()).chain(words).collect()
}

/// Writes the header: from here on the result file can be read.
///
/// # Errors
///
/// When the result file cannot accept it.
pub fn begin(
    journal: &mut Journal,
    command: document::Command,
    machines: Machines<'_>,
    seed: u64,
    points: u32,
    experiment: Option<&document::Experiment>,
) -> Result<(), Error> {
    let command_line = command_line();
    let Machines { host, hosts, targets } = machines;
    let identities = experiment.map(|_| targets.iter().map(identity::of).collect::<Vec<_>>());
    let identities = identities.unwrap_or_default();
    // A resume has to find relative paths again.
    let working_directory = std::env::current_dir().ok().map(|path| path.display().to_string());
    let header = Header::new(HeaderInput {
        fathom_version: env!("CARGO_PKG_VERSION"),
        command,
        command_line: &command_line,
        created_unix_ns: unix_ns(),
        seed,
        host,
        hosts,
        targets,
        planned_points: points,
        experiment,
        working_directory: experiment.and(working_directory.as_deref()),
        identities: &identities,
    });
    journal.append(&Line::Header(Box::new(header)).to_json())
}

impl Session<'_> {
    /// Runs an experiment to its end, or to the first signal.
    ///
    /// # Errors
    ///
    /// When the machine cannot run a point, the result file cannot accept a trial, or a signal came
    /// before there was one. Earlier trials are in the file.
    pub fn run(
        &mut self,
        experiment: &mut dyn Experiment,
        mut course: Course<'_>,
        journal: &mut Journal,
        live: &mut Live,
    ) -> Result<Outcome, Error> {
        let (ended, concluded) = self.trials(experiment, None, &mut course, journal, live)?;
        course.conclude(ended, &concluded, journal)
    }

    /// Runs an experiment that others in the same result file may follow, and that may have begun
    /// already, with this trial as its last: returns how it ended and its findings, and writes no
    /// conclusion unless it failed.
    ///
    /// # Errors
    ///
    /// As [`Session::run`].
    pub fn trials(
        &mut self,
        experiment: &mut dyn Experiment,
        mut last: Option<Trial>,
        course: &mut Course<'_>,
        journal: &mut Journal,
        live: &mut Live,
    ) -> Result<(Ended, Concluded), Error> {
        let mut io_wq = IoWqWatch::default();
        let is_elsewhere = self.carrier.is_elsewhere();
        let mut contents = Contents::new(if is_elsewhere { &[] } else { self.targets });
        if self.is_simulated() {
            live.simulated();
        }
        // Beside a real target no other work may use the CPUs, and a trace has its trials in order.
        let mut ahead = match self.is_simulated() && !is_elsewhere && course.trace.is_none() {
            true => Ahead::on_all_cpus(),
            false => Ahead::new(1),
        };
        loop {
            if signals::came().is_some() {
                return Ok((Ended::Interrupted, experiment.so_far()));
            }
            // Only until the experiment has seen it: a trial with many workers takes megabytes.
            let planned = match experiment.next(last.take().as_ref()) {
                Step::Run(planned) => planned,
                Step::Done(conclusion) => return Ok((Ended::Completed, conclusion)),
            };
            if hanging::threads() > 0 {
                return Ok((Ended::Failed, hangs(experiment.so_far())));
            }
            if let Err(error) = self.carrier.before(&planned, live) {
                return self.without_trial(error, experiment, journal);
            }
            let Planned { point, rest, .. } = &*planned;
            live.open_ended = point.streams.iter().any(|stream| stream.pacing.limit.is_some());
            live.ahead(&experiment.forecast());
            live.about_to_run(&planned, &|| experiment.so_far());
            live.step(&point.name, *rest + point.time());
            if !self.rest(*rest, point.time(), live) {
                return Ok((Ended::Interrupted, experiment.so_far()));
            }
            let looked = contents.look(&planned.point);
            let means = Means {
                io_wq: &mut io_wq,
                trace: course.trace.as_deref_mut(),
                watches: course.watches,
                begins_unix_ns: course.begins_unix_ns.take(),
                ahead: &mut ahead,
            };
            let ran = looked
                .and_then(|()| self.trial(*planned, experiment, (means, course.loaded), live));
            let mut trial = match ran {
                Ok(trial) => trial,
                Err(error) => return self.without_trial(error, experiment, journal),
            };
            let gave_up = trial.record.workers.iter().any(|worker| worker.gave_up);
            if trial.record.interrupted && trial.record.window == Span(0) && !gave_up {
                // It was stopped in its warm-up: there is nothing to keep.
                live.done(&in_a_few_words(&trial));
                return Ok((Ended::Interrupted, experiment.so_far()));
            }
            if course.batched {
                trial.record.stretches = batched(&trial.record.stretches);
            }
            self.keep(&mut trial, &mut contents, experiment, course, journal);
            // After the trial is kept: printing may block.
            live.done(&in_a_few_words(&trial));
            live.tried(&trial);
            if !journal.is_saved() {
                // More measurements would be lost.
                return Ok((Ended::Failed, unsaved(experiment.so_far())));
            }
            let (interrupted, lost) = (trial.record.interrupted, trial.has_lost_hosts());
            last = Some(trial);
            if interrupted {
                return Ok((ended_by_signal(), experiment.so_far()));
            }
            if lost {
                return Ok(without_a_host(experiment, last.as_ref()));
            }
        }
    }

    /// How an experiment ends where a point has no trial.
    fn without_trial(
        &self,
        error: Error,
        experiment: &dyn Experiment,
        journal: &mut Journal,
    ) -> Result<(Ended, Concluded), Error> {
        let concluded = experiment.so_far();
        if matches!(error, Error::Interrupted { .. }) {
            // A signal that came before the load of this point began.
            return Ok((Ended::Interrupted, concluded));
        }
        // The cause goes to the user; the file says that no more will come.
        let sentences = Vec::from([error.to_string()]);
        conclude(journal, Ended::Failed, &Concluded { sentences, ..concluded })?;
        Err(error)
    }

    /// Judges a trial and writes it to the result file, even if its judgment panics.
    fn keep(
        &self,
        trial: &mut Trial,
        contents: &mut Contents,
        experiment: &dyn Experiment,
        course: &mut Course<'_>,
        journal: &mut Journal,
    ) {
        let (judgement, mistake) = or_a_mistake(|| judged(trial, self.host, contents, experiment));
        contents.ran(&trial.point);
        // Without a host it is no trial of its point, whatever its figures are worth.
        trial.is_void = judgement.verdict() == Verdict::Void || trial.has_lost_hosts();
        trial.doubt = judgement.doubt();
        course.take(judgement.verdict_on_result(), trial.point.time());
        let form = course.form();
        journal.append_result(&|out| document::write_trial(out, trial, &judgement, form));
        if let Some(mistake) = mistake {
            panic::resume_unwind(mistake);
        }
    }

    /// Runs a probe whose trials are in no result file, only their result.
    ///
    /// # Errors
    ///
    /// When an open target does not accept its I/Os, or the user stopped it.
    pub fn probe(
        &mut self,
        probe: &mut ReductionProbe,
        live: &mut Live,
    ) -> Result<Reduction, Error> {
        let (mut io_wq, mut ahead) = (IoWqWatch::default(), Ahead::new(1));
        let mut loaded = Span(0);
        let mut last = None;
        while let Step::Run(planned) = probe.next(last.as_ref()) {
            let time = planned.point.time();
            let means = Means {
                io_wq: &mut io_wq,
                trace: None,
                watches: false,
                begins_unix_ns: None,
                ahead: &mut ahead,
            };
            let trial = self.trial(*planned, probe, (means, loaded), live)?;
            if let Some(signal) = signals::came() {
                return Err(Error::nothing_measured(signal));
            }
            loaded += time;
            last = Some(trial);
        }
        Ok(probe.found())
    }

    /// Whether it uses no real target.
    fn is_simulated(&self) -> bool {
        self.targets.iter().all(|target| target.kind == TargetKind::Simulated)
    }

    /// Lets the targets rest for this long before a point that takes this long; false if the user
    /// stopped it meanwhile. Simulated ones have their own time.
    fn rest(&self, rest: Span, point: Span, live: &mut Live) -> bool {
        let until = Instant::now() + Duration::from_nanos(rest.0);
        while !self.is_simulated() && signals::came().is_none() {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return true;
            }
            live.rest(Span(left.as_nanos() as u64), rest, point);
            std::thread::sleep(left.min(NAP));
        }
        signals::came().is_none()
    }

    fn trial(
        &mut self,
        planned: Planned,
        experiment: &dyn Experiment,
        (means, loaded): (Means<'_>, Span),
        live: &mut Live,
    ) -> Result<Trial, Error> {
        let Means { io_wq, trace, watches, begins_unix_ns, ahead } = means;
        let runner = self.look_ahead(&planned, loaded, experiment, ahead)?;
        let CarriedHere { devices, backend_reason, written } = match self.carrier.carry(&planned)? {
            Carried::Here(here) => here,
            Carried::Hosts(fleet) => return fleet.trial(planned, live),
        };
        written.map_or(Ok(()), Overwritten::look_again)?;
        let backend = match devices {
            Devices::Real { backend, .. } => backend,
            Devices::Simulated(_) => BackendKind::Sim,
        };
        room::check(&planned.point.streams, backend)?;
        let Planned { point, place, .. } = planned;
        let presence = match devices {
            Devices::Real { .. } => presence(self.targets, &point)?,
            Devices::Simulated(_) => Presence::default(),
        };
        let mut watcher = Watcher {
            experiment,
            targets: self.targets,
            presence,
            io_wq: (backend == BackendKind::Uring).then_some(io_wq),
            live,
            started_unix_ns: unix_ns(),
            begins_unix_ns,
            opened: None,
            pauses: None,
            counted: None,
        };
        let mut following = Following::begin(trace, watches, self.targets, (&point, &devices))?;
        let tracer = following.tracer();
        let record = match devices {
            Devices::Simulated(device) if tracer.is_none() => {
                ahead.run(runner, (&point, &device.at(loaded)), &mut watcher)
            }
            Devices::Simulated(device) => {
                let device = device.at(loaded);
                let devices = Devices::Simulated(&device);
                run_traced(&point, devices, signals::stop(), &mut watcher, tracer)
            }
            devices => run_traced(&point, devices, signals::stop(), &mut watcher, tracer),
        };
        let (traced, breakdown) = following.end();
        let record = record?;
        let (started_unix_ns, counters) = (watcher.started_unix_ns, watcher.counted);
        if watcher.presence.hangs() {
            hanging::leave();
        }
        Ok(Trial {
            backend_reason: backend_reason.to_owned(),
            point,
            place,
            backend,
            started_unix_ns,
            record,
            counters,
            traced,
            breakdown,
            hosts: Vec::new(),
            is_void: false,
            doubt: None,
        })
    }

    /// Announces the points after this one, so that they may run before their turn; returns the one
    /// that runs this point already.
    fn look_ahead(
        &mut self,
        planned: &Planned,
        loaded: Span,
        experiment: &dyn Experiment,
        ahead: &mut Ahead,
    ) -> Result<Option<Runner>, Error> {
        let most = ahead.most();
        if most == 0 {
            return Ok(None);
        }
        let Some(device) = self.device(planned)? else { return Ok(None) };
        let runner = ahead.take(&planned.point, &device.at(loaded));
        let mut tasks = VecDeque::new();
        let (mut loaded, begun) = (loaded + planned.point.time(), ahead.begun());
        for (place, Foreseen { planned, enough }) in
            experiment.foreseen(most).into_iter().enumerate()
        {
            let began = loaded;
            loaded += planned.point.time();
            if place < begun {
                continue;
            }
            let Some(device) = self.device(&planned)? else { break };
            let device = device.at(began);
            tasks.push_back(Task { point: planned.point, device, enough });
        }
        ahead.expect(tasks);
        Ok(runner)
    }

    /// The simulated device of a point, if it has one.
    fn device(&mut self, planned: &Planned) -> Result<Option<sim::Options>, Error> {
        match self.carrier.carry(planned)? {
            Carried::Here(CarriedHere { devices: Devices::Simulated(device), .. }) => {
                Ok(Some(device.clone()))
            }
            Carried::Here(_) | Carried::Hosts(_) => Ok(None),
        }
    }
}

/// The summary of a result file's trials so far.
#[derive(Debug)]
pub struct Course<'a> {
    /// The trace, if one was requested.
    trace: Option<&'a mut TraceFile>,
    /// Whether the requests of its I/Os are watched.
    watches: bool,
    /// When the load of the next trial begins, in nanoseconds since 1970; at once if none.
    pub begins_unix_ns: Option<u64>,
    verdict: Verdict,
    /// The number of trials.
    trials: usize,
    /// Whether trials keep no more of their distributions over time than half-widths need.
    batched: bool,
    /// How long they load the targets, as planned: the time of the session in which a simulated
    /// device drifts. Not the actual time, so that a point before its turn knows its own.
    loaded: Span,
}

/// The objects around a trial.
struct Means<'a> {
    /// The watch of the ring's threads.
    io_wq: &'a mut IoWqWatch,
    /// The trace, if one was requested.
    trace: Option<&'a mut TraceFile>,
    /// Whether the requests of its I/Os are watched.
    watches: bool,
    /// When the load begins.
    begins_unix_ns: Option<u64>,
    /// The points before their turn.
    ahead: &'a mut Ahead,
}

impl<'a> Course<'a> {
    /// The beginning, before any trial.
    pub fn new(trace: Option<&'a mut TraceFile>) -> Self {
        let (verdict, loaded) = (Verdict::Sound, Span(0));
        Self {
            trace,
            watches: false,
            begins_unix_ns: None,
            verdict,
            trials: 0,
            batched: false,
            loaded,
        }
    }

    /// The same, with the requests of its I/Os watched if this is true.
    pub fn watching(self, watches: bool) -> Self {
        Self { watches, ..self }
    }

    /// The beginning of an experiment of this many points. If they are too many to be drawn over
    /// time, distributions over time would only make the result file larger.
    pub fn of_experiment(trace: Option<&'a mut TraceFile>, points: u32) -> Self {
        Self { batched: TRIALS_DRAWN < points as usize, ..Self::new(trace) }
    }

    /// How the distributions of whole windows are written: readable for every program where there
    /// are few of them.
    fn form(&self) -> DistributionForm {
        if self.batched { DistributionForm::Coded } else { DistributionForm::Pairs }
    }

    /// Takes a trial that is in the file, whose point was planned to load the targets for this
    /// long.
    pub fn take(&mut self, verdict: Verdict, planned: Span) {
        self.loaded += planned;
        self.verdict = self.verdict.max(verdict);
        self.trials += 1;
    }

    /// The number of trials.
    pub fn trials(&self) -> usize {
        self.trials
    }

    /// Writes the conclusion.
    ///
    /// # Errors
    ///
    /// When the result file cannot accept it, or a signal came before there was a trial.
    pub fn conclude(
        self,
        ended: Ended,
        concluded: &Concluded,
        journal: &mut Journal,
    ) -> Result<Outcome, Error> {
        conclude(journal, ended, concluded)?;
        let signal = signals::came().filter(|_| ended == Ended::Interrupted);
        match signal {
            Some(signal) if self.trials == 0 => Err(Error::nothing_measured(signal)),
            signal => Ok(Outcome { verdict: self.verdict, signal }),
        }
    }
}

/// Ends a result file.
///
/// # Errors
///
/// When it cannot take the line.
pub fn conclude(journal: &mut Journal, ended: Ended, concluded: &Concluded) -> Result<(), Error> {
    let Concluded { sentences, found } = concluded;
    let found = found.as_ref().map(Found::from);
    let line = Conclusion { ended, sentences: sentences.clone(), found };
    journal.append(&Line::Conclusion(Box::new(line)).to_json())
}

/// Shows other fathom processes that this point runs, and finds out which of them are there.
fn presence(targets: &[Target], point: &Point) -> Result<Presence, Error> {
    let name = targets.first().map_or_else(String::new, |target| target.name.clone());
    let (targets, point) = (targets.to_vec(), point.clone());
    hanging::waited_for(&name, "it was marked as in use", move || {
        let use_of = |place| {
            hanging::come_through();
            use_of(&point, place)
        };
        Ok(Presence::take(&targets, &use_of))
    })
}

/// How a session ends whose trial was interrupted: by a signal, or else by a failure.
fn ended_by_signal() -> Ended {
    if signals::came().is_some() { Ended::Interrupted } else { Ended::Failed }
}

/// The findings, and why no more will come.
fn hangs(concluded: Concluded) -> Concluded {
    let why = "It ended here, because a target hangs: a thread of the last trial is still in a call to \
               it. Look at the kernel's log (dmesg).";
    let Concluded { mut sentences, found } = concluded;
    sentences.push(why.to_owned());
    Concluded { sentences, found }
}

/// How an experiment ends whose last trial lacks a host: points before and after it would not be
/// comparable.
fn without_a_host(experiment: &mut dyn Experiment, last: Option<&Trial>) -> (Ended, Concluded) {
    if let Step::Done(concluded) = experiment.next(last) {
        return (Ended::Completed, concluded);
    }
    let why = "It ended here, because a host was lost: `fathom-hosts resume` with all hosts measures this \
               point again, and goes on.";
    let Concluded { mut sentences, found } = experiment.so_far();
    sentences.push(why.to_owned());
    (Ended::Failed, Concluded { sentences, found })
}

/// The findings, and that they are nowhere but here.
fn unsaved(concluded: Concluded) -> Concluded {
    let why = "It ended here, because no file takes what was measured: what is shown is all of it.";
    let Concluded { mut sentences, found } = concluded;
    sentences.push(why.to_owned());
    Concluded { sentences, found }
}

/// Judges a trial. If that panics, returns a void judgment and the panic: the trial must not be lost.
fn or_a_mistake(
    judge: impl FnOnce() -> Judgement,
) -> (Judgement, Option<Box<dyn Any + Send + 'static>>) {
    match panic::catch_unwind(AssertUnwindSafe(judge)) {
        Ok(judgement) => (judgement, None),
        Err(mistake) => (Judgement::of_a_mistake(), Some(mistake)),
    }
}

/// The judgment of a trial, by itself and by its experiment.
fn judged(
    trial: &Trial,
    host: &Host,
    contents: &mut Contents,
    experiment: &dyn Experiment,
) -> Judgement {
    let mut judgement = judge(trial, host, contents.targets());
    judgement.add(contents.of_pools(&trial.point));
    judgement.add(experiment.doubts(trial));
    if let Some(why) = experiment.meant_to_overload(trial) {
        judgement.excuse_overload(why);
    }
    if let Some(why) = experiment.meant_to_change(trial) {
        judgement.excuse_change(why);
    }
    if let Some(why) = experiment.meant_to_repeat(trial) {
        judgement.excuse_repetition(why);
    }
    judgement
}

fn in_a_few_words(trial: &Trial) -> String {
    let record = &trial.record;
    let seconds = record.window.as_secs_f64();
    if seconds == 0.0 {
        return "nothing was measured".to_owned();
    }
    let total = record.total(None);
    let rate = |count: u64| count as f64 / seconds;
    let trims = record.upkeep(Upkeep::Trim, |_, _| true).ios();
    let mut text = match trial.point.streams.iter().all(Stream::trims_alone) {
        true => String::new(),
        false => format!("{} IOPS, {}", number(rate(total.ios())), bandwidth(rate(total.bytes.0))),
    };
    if trims > 0 {
        let beside = if text.is_empty() { "" } else { ", " };
        text += &format!("{beside}{} trims/s", number(rate(trims)));
    }
    match record.errors() {
        0 => {}
        errors => text += &format!(", {} failed", number(errors as f64)),
    }
    let streams = &trial.point.streams;
    if let [stream] = streams.as_slice()
        && stream.pacing.limit.is_some()
    {
        let bytes = record.total(None).bytes.0;
        text += &completed(stream.only_direction(), bytes, record.window)
            .map(|line| format!("; {line}"))
            .unwrap_or_default();
    }
    text
}

/// Whether a point uses the target at a place, and then whether it writes to it.
fn use_of(point: &Point, place: usize) -> Option<bool> {
    let uses = |stream: &&Stream| stream.regions.iter().any(|r| r.target as usize == place);
    let users = || point.streams.iter().filter(uses);
    users().next().map(|_| users().any(Stream::destroys))
}

/// Reads the host's counters at both ends of the window, and feeds the live view.
struct Watcher<'a> {
    /// Answers at a look whether the point has shown enough.
    experiment: &'a dyn Experiment,
    targets: &'a [Target],
    /// The marks for other fathom processes, and the observations of them.
    presence: Presence,
    /// The counter of the ring's threads, if io_uring carries the I/Os.
    io_wq: Option<&'a mut IoWqWatch>,
    live: &'a mut Live,
    started_unix_ns: u64,
    /// When the load has to begin, if that is not at once.
    begins_unix_ns: Option<u64>,
    opened: Option<Counters>,
    /// Detects when no thread of this process runs, during the window.
    pauses: Option<PauseWatch>,
    counted: Option<Counters>,
}

impl Watcher<'_> {
    /// The counters now, for an end of the window that was `ago`.
    fn counters(&mut self, ago: Span) -> Counters {
        let begun = Instant::now();
        let counted = host::counters(self.targets);
        let late = ago + Span(begun.elapsed().as_nanos() as u64);
        let io_wq = self.io_wq.as_ref().map(|watch| watch.read());
        let targets = self.presence.seen();
        Counters { late, io_wq, targets, ..counted }
    }
}

impl Observer for Watcher<'_> {
    fn begins(&mut self, now: fathom_core::Instant) -> fathom_core::Instant {
        let wait = self.begins_unix_ns.map_or(0, |begins| begins.saturating_sub(unix_ns()));
        now + Span(wait)
    }

    fn phase(&mut self, phase: Phase, ago: Span) {
        match phase {
            // The workers and their rings are there, and the first I/Os have started.
            Phase::WarmUp => {
                self.live.began(unix_ns() - ago.0);
                if let Some(watch) = &mut self.io_wq {
                    watch.aim();
                }
            }
            Phase::WindowOpens => {
                self.started_unix_ns = unix_ns() - ago.0;
                self.opened = Some(self.counters(ago));
                // Without it a check reports that it cannot be made.
                self.pauses = PauseWatch::start().ok();
            }
            Phase::WindowCloses => {
                // Before anything that may wait.
                let counted = self.counters(ago);
                let pauses = self.pauses.take().and_then(PauseWatch::end);
                let now = Counters { pauses, ..counted };
                self.counted = self.opened.take().map(|then| now.since(&then));
            }
        }
    }

    fn progress(&mut self, progress: &Progress) {
        self.presence.look();
        self.live.progress(progress);
    }

    fn cool_down(&mut self, left: Span, whole: Span) {
        self.live.cool_down(left, whole);
    }

    fn look(&mut self, so_far: &Record) -> bool {
        self.experiment.enough(so_far)
    }

    fn hurries(&self) -> bool {
        signals::hurries()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trial_whose_judging_panics_is_void_and_the_panic_goes_on_later() {
        let (judgement, mistake) = or_a_mistake(Judgement::default);
        assert!(mistake.is_none() && judgement.verdict() == Verdict::Sound);
        let (judgement, mistake) = or_a_mistake(|| panic!("on purpose"));
        assert_eq!(judgement.verdict(), Verdict::Void);
        assert_eq!(mistake.unwrap().downcast_ref(), Some(&"on purpose"));
    }
}
