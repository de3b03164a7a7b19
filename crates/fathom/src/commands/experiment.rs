//! The common part of all experiments: the announcement before they start, the question to the
//! user, the way to the outcome, and the way on from a result file that was interrupted.

use fathom_core::calibration::Ceiling;
use fathom_core::experiment::{Experiment, Forecast, Planned};
use fathom_core::facts::{Host, Target, TargetKind};
use fathom_core::spec::{Point, Stream};
use fathom_core::trial::Trial;
use fathom_core::verdict::{self};
use fathom_core::{Bytes, Span, typed_path};
use fathom_engine::target::Overwrite;
use fathom_report::document;
use fathom_report::figures;

use super::before::{self, BeforeTrials};
use super::measure;
use super::opened::{self, Opened};
use super::outputs::{self, Outputs};
use super::place::Place;
use super::probe::Probing;
use super::{preview, rehearsal};
use crate::cli::options::{Consent, Results, StartArgs};
use crate::error::{Error, exit};
use crate::hosts::Fleet;
use crate::journal::Journal;
use crate::live::{Live, clock};
use crate::resolve::Spec;
use crate::session::{self, Carried, Carrier, Course, Machines, Outcome, Session};
use crate::{contents, output, signals};

/// More lines of a kind than this are counted, not shown.
const SHOWN: usize = 8;

/// A part of an experiment's points: all that run on the same open targets.
pub struct Ground {
    /// The targets as they were found.
    pub place: Place,
    /// Its points, by the places of these targets alone.
    pub spec: Spec,
}

/// Returns a point's ground, by its place in the list of grounds.
pub type Which = Box<dyn Fn(&Planned) -> usize>;

/// An experiment that may start.
pub struct Prepared {
    /// The command.
    pub command: document::Command,
    /// The machine.
    pub host: Host,
    /// All targets, as the result file lists them.
    pub targets: Vec<Target>,
    /// The hosts, if several apply its points; then there are no grounds here.
    pub fleet: Option<Fleet>,
    /// The grounds of its points, at least one.
    pub grounds: Vec<Ground>,
    /// The ground of a point.
    pub which: Which,
    /// The commands before trials.
    pub before: BeforeTrials,
    /// The experiment.
    pub experiment: Box<dyn Experiment>,
    /// Its settings for the result file.
    pub described: document::Experiment,
    /// Repeats it.
    pub seed: u64,
    /// Its description, in lines: the settings that vary, the goal of the search.
    pub about: Vec<String>,
    /// Whether everything that it addresses is written before it is read.
    pub written_before: bool,
    /// The most that it writes; none if it only reads.
    pub writes: Option<Writes>,
    /// The probe before it: whether targets of the first ground save on data.
    pub probes: Vec<Probing>,
    /// Why it may not start: the missing consent.
    pub refusal: Option<Error>,
}

impl Prepared {
    /// Whether it uses no real target.
    fn is_simulated(&self) -> bool {
        self.targets.iter().all(|target| target.kind == TargetKind::Simulated)
    }

    fn name(&self) -> &str {
        &self.targets[0].name
    }

    /// Whether the user has consented, and the targets allow it.
    fn allowed(&mut self) -> Result<(), Error> {
        if let Some(refusal) = self.refusal.take() {
            return Err(refusal);
        }
        let mut points = self.grounds.iter().flat_map(|ground| &ground.spec.points);
        if points.any(|point| point.streams.iter().all(Stream::trims_alone)) {
            return Err(Error::option(
                "--trim-share 100%",
                "an experiment compares reads and writes, and there would be none",
                "use `fathom run`, or have a stream that reads or writes beside it",
            ));
        }
        self.grounds.iter().try_for_each(|ground| opened::judge(&ground.place, &ground.spec))
    }
}

/// How many bytes are written, and how this is known.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Writes {
    /// Bytes that are written at most.
    bytes: f64,
    known: Known,
    /// The bandwidths that were assumed for devices, without repetition.
    reckoned: Vec<&'static str>,
    /// The size of the targets that are written to.
    written: u64,
}

/// How the number of bytes is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Known {
    /// A schedule or a limit says so.
    #[default]
    Exactly,
    /// From a schedule whose points may not all run.
    AtMost,
    /// From the usual speed of such devices.
    Reckoned,
}

impl Writes {
    /// The writes of these points, each this many times; none if they only read. A caller that does
    /// not know its points gives one like them with a window as long as all of them may take.
    pub fn of<'p>(
        points: impl Iterator<Item = (&'p Point, u32)>,
        targets: &[Target],
    ) -> Option<Self> {
        let mut sum = Self::default();
        let mut written: Vec<u32> = Vec::new();
        for (point, times) in points {
            sum.add((point, times), targets, &mut written);
        }
        written.sort_unstable();
        written.dedup();
        let size = |target: &u32| targets[*target as usize].size.0;
        sum.written = written.iter().map(size).sum();
        (!written.is_empty()).then_some(sum)
    }

    /// Bytes that are written at most.
    pub fn bytes(&self) -> f64 {
        self.bytes
    }

    /// The same if not all of it may run.
    pub fn or_less(self) -> Self {
        Self { known: self.known.max(Known::AtMost), ..self }
    }

    /// The same with this much more, which is known exactly.
    pub fn beside(mut self, bytes: Bytes) -> Self {
        self.bytes += bytes.0 as f64;
        self
    }

    /// The same if it ends after an amount, which is checked after each of these points.
    pub fn until(self, bytes: Bytes, each: &Self) -> Self {
        Self { bytes: self.bytes.min(bytes.0 as f64 + each.bytes), ..self }
    }

    /// This much on these targets, even if other targets are only read.
    pub fn exactly(bytes: Bytes, targets: &[Target]) -> Self {
        let written = targets.iter().map(|target| target.size.0).sum();
        Self { bytes: bytes.0 as f64, written, ..Self::default() }
    }

    /// At most this much on these targets.
    pub fn at_most(bytes: Bytes, targets: &[Target]) -> Self {
        Self { known: Known::AtMost, ..Self::exactly(bytes, targets) }
    }

    fn add(&mut self, (point, times): (&Point, u32), targets: &[Target], written: &mut Vec<u32>) {
        let seconds = point.time().as_secs_f64() * f64::from(times);
        for stream in point.streams.iter().filter(|stream| stream.destroys()) {
            written.extend(stream.regions.iter().map(|region| region.target));
            if let Some(bytes) = preview::scheduled(point, stream) {
                self.bytes += bytes * f64::from(times);
                continue;
            }
            let sizes = &stream.block_sizes();
            let share =
                (1.0 - stream.read_share()) * sizes.mean(0.0) / sizes.mean(stream.read_share());
            self.known = Known::Reckoned;
            for region in &stream.regions {
                let (bandwidth, name) = ordinary(&targets[region.target as usize]);
                self.bytes += bandwidth * seconds * share;
                if !self.reckoned.contains(&name) {
                    self.reckoned.push(name);
                }
            }
        }
    }

    /// "writes at most 3.4 TiB, 1.7 drive writes: reckoned at 600 MB/s, as much as SATA carries".
    fn in_words(&self) -> String {
        let drives = match self.written {
            0 => String::new(),
            size => format!(", {:.2} times what the targets hold", self.bytes / size as f64),
        };
        let bytes = Bytes(self.bytes as u64);
        match self.known {
            Known::Exactly => format!("writes {bytes}{drives}"),
            Known::AtMost => format!("writes at most {bytes}{drives}"),
            Known::Reckoned => format!(
                "writes at most about {bytes}{drives}: reckoned at {}, as fast as such a target \
                 could be",
                self.reckoned.join(" and ")
            ),
        }
    }
}

/// The most that a target of this kind writes, in bytes per second.
fn ordinary(target: &Target) -> (f64, &'static str) {
    let disks = target.layers.iter().filter_map(|layer| layer.disk.as_ref());
    let nvme = disks.clone().any(|disk| disk.transport.as_deref() == Some("nvme"));
    match disks.clone().count() {
        _ if nvme => (8e9, "8 GB/s for NVMe (PCIe 4.0 x4)"),
        1 if target.turns() => (3e8, "300 MB/s for a rotating disk"),
        _ => (2e9, "2 GB/s"),
    }
}

/// Starts a prepared experiment, or shows its plan.
///
/// # Errors
///
/// When the user, the machine or the result file does not allow it.
pub fn perform(mut prepared: Prepared, start: &StartArgs, results: &Results) -> Result<u8, Error> {
    if start.plan {
        // Shown before the refusal, so that the user sees what needs consent.
        announce(&prepared)?;
        prepared.allowed()?;
        output::say("nothing was opened for writing, and nothing started")?;
        return Ok(exit::MEASURED);
    }
    prepared.allowed()?;
    announce(&prepared)?;
    let ceiling = open_first(&prepared)?;
    may_start(&prepared, start.yes)?;
    let command = prepared.command.name();
    let (mut outputs, mut journal) = Outputs::create(command, prepared.name(), results, false)?;
    signals::be_orderly();
    let host = Host { ceiling, ..prepared.host.clone() };
    if let Err(error) = probe(&mut prepared) {
        outputs::after_failure(journal);
        return Err(error);
    }
    let points = prepared.experiment.forecast().points;
    let specs = prepared.grounds.iter().map(|one| (&*one.spec.targets, &*one.spec.points));
    prepared.targets = contents::looked_at(&prepared.targets, specs, prepared.seed);
    let hosts = prepared.fleet.as_ref().map(Fleet::described).unwrap_or_default();
    let header = match hosts.is_empty() {
        true => Machines::one(&host, &prepared.targets),
        false => Machines { host: None, hosts: &hosts, targets: &prepared.targets },
    };
    let described = Some(&prepared.described);
    session::begin(&mut journal, prepared.command, header, prepared.seed, points, described)?;
    let course = Course::of_experiment(outputs.trace(), points);
    let outcome = run(&mut prepared, &host, (None, course), &mut journal);
    finish(outcome, (&prepared, &outputs), journal)
}

/// Finds out by writing whether targets save on data.
fn probe(prepared: &mut Prepared) -> Result<(), Error> {
    for probing in std::mem::take(&mut prepared.probes) {
        let (target, consent) = (probing.target(), prepared.grounds[0].spec.consent.clone());
        prepared.targets[target].reduction = Some(probing.perform(consent)?);
    }
    Ok(())
}

/// Continues an experiment whose trials so far are in the file: the last of them, which it has not
/// seen yet, and the summary of all.
///
/// # Errors
///
/// When the machine or the result file does not allow it.
pub fn go_on(
    mut prepared: Prepared,
    so_far: (Option<Trial>, Course<'_>),
    outputs: &Outputs,
    mut journal: Journal,
) -> Result<u8, Error> {
    prepared.allowed()?;
    let ceiling = match prepared.grounds.is_empty() {
        true => None,
        false => open_each(&prepared.grounds)?.ceiling(),
    };
    signals::be_orderly();
    let host = Host { ceiling, ..prepared.host.clone() };
    let outcome = run(&mut prepared, &host, so_far, &mut journal);
    finish(outcome, (&prepared, outputs), journal)
}

fn run(
    prepared: &mut Prepared,
    host: &Host,
    (last, mut course): (Option<Trial>, Course<'_>),
    journal: &mut Journal,
) -> Result<Outcome, Error> {
    let Prepared { fleet, grounds, which, before, experiment, targets, described, .. } = prepared;
    let mut live = Live::of_experiment(described);
    live.resumed(course.trials());
    let mut opener = Opener { grounds, which, before, open: None };
    let carrier: &mut dyn Carrier = match fleet {
        Some(fleet) => fleet,
        None => &mut opener,
    };
    let mut session = Session { host, targets, carrier };
    let ended = session.trials(experiment.as_mut(), last, &mut course, journal, &mut live);
    live.finish();
    let (ended, concluded) = ended?;
    course.conclude(ended, &concluded, journal)
}

fn finish(
    outcome: Result<Outcome, Error>,
    (prepared, outputs): (&Prepared, &Outputs),
    mut journal: Journal,
) -> Result<u8, Error> {
    let consent = prepared.grounds.first().map(|ground| &ground.spec.consent);
    let tell_how_to_go_on = |journal: &Journal| match consent {
        _ if !journal.is_saved() => Ok(()),
        Some(consent) => resumable(journal, (consent, &prepared.before), outputs),
        None => {
            let path = typed_path(&journal.path().display().to_string());
            output::say(&format!(
                "resume  `fathom-hosts resume {path}` with the same hosts goes on"
            ))
        }
    };
    match outcome {
        Ok(outcome) => {
            outputs.finish(&mut journal, |journal| match outcome.signal.is_some() {
                true => tell_how_to_go_on(journal),
                false => Ok(()),
            })?;
            Ok(measure::exit_code(&outcome))
        }
        Err(error) => {
            if journal.holds_results() {
                tell_how_to_go_on(&journal)?;
            }
            outputs::after_failure(journal);
            Err(error)
        }
    }
}

fn resumable(
    journal: &Journal,
    (consent, before): (&Overwrite, &BeforeTrials),
    outputs: &Outputs,
) -> Result<(), Error> {
    let path = typed_path(&journal.path().display().to_string());
    let consent = Consent {
        overwrite: consent.allowed,
        destroy: consent.destroy.clone(),
        destroy_in_use: consent.destroy_in_use.clone(),
    };
    let (consent, outputs) = (consent.in_words(), outputs.in_words());
    let before = before.in_words();
    output::say(&format!(
        "resume  `fathom resume {path}{consent}{before}{outputs}` goes on from here"
    ))
}

/// Opens everything once, and says how: returns the ceiling of the load generator there. Many hosts
/// open their own targets. Each point opens its own: a device that is claimed can be open only once.
fn open_first(prepared: &Prepared) -> Result<Option<Ceiling>, Error> {
    if prepared.grounds.is_empty() {
        return Ok(None);
    }
    let first = open_each(&prepared.grounds)?;
    if !first.is_simulated() {
        output::say_folded(&preview::backend(&first))?;
    }
    Ok(first.ceiling())
}

/// Opens everything once, so that a target that cannot be opened is refused before the first point:
/// returns the first ground, open.
fn open_each(grounds: &[Ground]) -> Result<Opened, Error> {
    for ground in grounds.iter().skip(1) {
        opened::open(&ground.place, &ground.spec)?;
    }
    opened::open(&grounds[0].place, &grounds[0].spec)
}

/// Opens the targets of each point, one ground at a time.
struct Opener<'a> {
    grounds: &'a [Ground],
    which: &'a Which,
    before: &'a BeforeTrials,
    open: Option<(usize, Opened)>,
}

impl Carrier for Opener<'_> {
    fn carry(&mut self, planned: &Planned) -> Result<Carried<'_>, Error> {
        let place = (self.which)(planned);
        // Closed before the next is opened, which may be the same device with another access.
        let kept = self.open.take().filter(|(open, _)| *open == place);
        let opened = match kept {
            Some((_, opened)) => opened,
            None => opened::open(&self.grounds[place].place, &self.grounds[place].spec)?,
        };
        let (_, opened) = self.open.insert((place, opened));
        Ok(Carried::Here(opened.carried()))
    }

    fn before(&mut self, planned: &Planned, live: &mut Live) -> Result<(), Error> {
        let Some((side, command)) = self.before.of(planned) else { return Ok(()) };
        // What it does may need the target to itself.
        self.open = None;
        live.preparation(&format!("before {side}: {command}"));
        before::run(side, command)
    }
}

/// Announces its plan, its cost, and the doubts that it will have.
fn announce(prepared: &Prepared) -> Result<(), Error> {
    let say = |text: String| output::say_folded(&text);
    prepared.about.iter().cloned().try_for_each(say)?;
    for target in prepared.targets.iter().take(SHOWN) {
        say(format!("target   {}: {}", target.name, figures::stack(target)))?;
    }
    if SHOWN < prepared.targets.len() {
        say(format!("         and {} more", prepared.targets.len() - SHOWN))?;
    }
    say(format!("takes    {}; seed {}", forecast(&prepared.experiment.forecast()), prepared.seed))?;
    let probes = prepared.probes.iter();
    probes.map(Probing::announcement).try_for_each(say)?;
    if prepared.is_simulated() {
        let time = prepared.experiment.forecast().time;
        let ground = prepared.grounds.first();
        let line =
            |ground: &Ground| rehearsal::forecast(&ground.place, &ground.spec.points[0], time);
        if let Some(line) = ground.and_then(line) {
            output::say_folded(&line)?;
        }
        return output::say(
            "needs    nothing: the target is simulated, in virtual time, and new at each point",
        );
    }
    announce_writes(prepared)?;
    match prepared.fleet {
        None => doubts(prepared),
        // Each host knows its own, and tells them with its trials.
        Some(_) => Ok(()),
    }
}

/// Announces the targets that it overwrites.
fn announce_writes(prepared: &Prepared) -> Result<(), Error> {
    announce_writes_to(prepared, &targets(prepared))
}

/// Announces the targets that it overwrites with their paths, and leaves nothing out: the user has
/// not typed the names in a result file, and these may begin in any folder.
///
/// # Errors
///
/// When stdout accepts no more output.
pub fn announce_all_writes(prepared: &Prepared) -> Result<(), Error> {
    announce_writes_to(prepared, &written(prepared, |target| &target.path).join(", "))
}

fn announce_writes_to(prepared: &Prepared, targets: &str) -> Result<(), Error> {
    if prepared.is_simulated() {
        return Ok(());
    }
    opened::tell_users(prepared.grounds.iter().map(|ground| (&ground.place, &ground.spec)));
    let each = if prepared.fleet.is_some() { "on each host " } else { "" };
    output::say_folded(&match &prepared.writes {
        Some(writes) => format!("OVERWRITES {targets}: {each}{}", writes.in_words()),
        None => "writes   nothing".to_owned(),
    })
}

/// The names of the targets that are written to, or the number of the remaining ones.
fn targets(prepared: &Prepared) -> String {
    let mut names = written(prepared, |target| &target.name);
    let more = names.len().saturating_sub(SHOWN);
    names.truncate(SHOWN);
    match more {
        0 => names.join(", "),
        more => format!("{} and {more} more", names.join(", ")),
    }
}

/// The names of the targets that are written to.
pub fn written(prepared: &Prepared, called: impl Fn(&Target) -> &str) -> Vec<&str> {
    let mut names: Vec<&str> = Vec::new();
    if prepared.fleet.is_some() {
        // Each host has its own, of which these are the first one's.
        names.extend(prepared.targets.iter().map(&called));
    }
    for ground in &prepared.grounds {
        for stream in ground.spec.streams().filter(|stream| stream.destroys()) {
            let written = stream.regions.iter();
            names.extend(written.map(|r| called(&ground.spec.targets[r.target as usize])));
        }
    }
    names.sort_unstable();
    names.dedup();
    names
}

/// "once", "twice", "3 times".
pub fn times(passes: u32) -> String {
    match passes {
        1 => "once".to_owned(),
        2 => "twice".to_owned(),
        n => format!("{n} times"),
    }
}

/// "60 points, at most 75; 33:00 min, at most 41:15 min".
pub fn forecast(ahead: &Forecast) -> String {
    let points = match ahead.points {
        1 => "1 point".to_owned(),
        n => format!("{n} points"),
    };
    match (ahead.points, ahead.time) == (ahead.points_at_most, ahead.time_at_most) {
        true => format!("{points}, {}", clock(ahead.time)),
        false => format!(
            "{points}, {}; at most {} and {}",
            clock(ahead.time),
            ahead.points_at_most,
            clock(ahead.time_at_most)
        ),
    }
}

/// The doubts that there will be in any case, without repetition.
fn doubts(prepared: &Prepared) -> Result<(), Error> {
    let mut found: Vec<verdict::Finding> = Vec::new();
    for Ground { spec, .. } in &prepared.grounds {
        for finding in preview::foreseen(spec, &prepared.host) {
            // Ranges that were never written are written by then.
            let is_past = prepared.written_before
                && matches!(finding.code, "unwritten-reads" | "allocating-writes");
            // If the payload varies, data that repeats itself is intended.
            let meant = finding.code == "repeating-payload"
                && prepared.described.axes.iter().any(|axis| axis.name.ends_with("payload"));
            if !(meant || is_past) && found.iter().all(|known| known.code != finding.code) {
                found.push(finding);
            }
        }
    }
    if found.is_empty() {
        return output::say("doubts   none that can be foreseen");
    }
    preview::say_foreseen(&found)
}

/// The longest time for which an experiment that writes nothing starts without a question.
const UNASKED: Span = Span::from_secs(300);

/// Asks for permission to start, if there is a user to ask and something to ask about.
fn may_start(prepared: &Prepared, yes: bool) -> Result<(), Error> {
    let harmless =
        prepared.writes.is_none() && prepared.experiment.forecast().time_at_most < UNASKED;
    if yes || harmless || prepared.is_simulated() {
        return Ok(());
    }
    match output::ask("start?") {
        Some(true) => Ok(()),
        Some(false) => Err(Error::option(
            "nothing was started",
            "the answer was not y",
            "start it again, or without a question with --yes",
        )),
        None => match &prepared.writes {
            None => Ok(()),
            Some(_) => Err(Error::option(
                "--yes",
                format!("it writes to {}, and there is no terminal to ask at", targets(prepared)),
                "start it with --yes, or see with --plan what it would do",
            )),
        },
    }
}
