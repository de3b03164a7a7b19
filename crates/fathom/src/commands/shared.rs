//! What `quick` and `run` share: finding and opening targets, the outputs, and the way from a spec
//! to an outcome.

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};

use fathom_core::Bytes;
use fathom_core::calibration::Ceiling;
use fathom_core::experiment::{Conclusion, Experiment, Planned, PointSequence};
use fathom_core::facts::{Host, Target, TargetKind};
use fathom_core::spec::{Access, BackendKind, Payload, RingMode, Stream};
use fathom_core::typed_path;
use fathom_core::verdict::Verdict;
use fathom_engine::calibrate;
use fathom_engine::clock::Clock;
use fathom_engine::target::{self, OpenTarget, Opening};
use fathom_engine::{Choice, Devices, Way, access, choose_for, host, sim};
use fathom_report::document::{self, Document, Ended};
use fathom_report::page::Level;
use fathom_report::terminal;

use super::folder;
use super::place::Place;
use crate::cli::options::{Reports, Results};
use crate::cli::values::Backend;
use crate::error::{Error, exit, plain};
use crate::foreign::Foreign;
use crate::hanging::{Role, patiently};
use crate::journal::{self, Journal};
use crate::live::Live;
use crate::resolve::{self, Machine, Spec};
use crate::scratch::{self, Leftover};
use crate::session::{self, Carried, Carrier, Course, Outcome, Session};
use crate::trace::TraceFile;
use crate::users::{self, Written};
use crate::workload::Asked;
use crate::{contents, hanging, output, room, signals};

/// What is known about this machine, its clock included.
pub fn this_host() -> Host {
    Host { clock: Clock::default().measure(), ..host::host() }
}

/// What the resolver has to know about the machine.
pub fn machine(host: &Host) -> Machine<'_> {
    let known = [Some(host.memory).filter(|memory| *memory > Bytes(0)), host.memory_limit];
    let memory = known.into_iter().flatten().min().unwrap_or(Bytes(u64::MAX));
    // A limit of the cgroup is a share of time, of which a part is no CPU to run on.
    let limit = host.cpu_limit.map_or(u32::MAX, |limit| limit as u32);
    let (cpus, cpu_places) = (host.cpus.min(limit), &host.cpu_places);
    Machine { memory, fresh_seed: fresh_seed(), cpus, cpu_places }
}

/// A seed that nobody has chosen. It is short enough to be typed again.
pub fn fresh_seed() -> u64 {
    use std::hash::{BuildHasher, Hasher, RandomState};
    RandomState::new().build_hasher().finish() & 0xFFFF_FFFF
}

/// Looks at what is to be measured, and settles what that means here. Nothing may be written yet.
///
/// # Errors
///
/// When a target is not there, or what was asked for does not fit.
pub fn settle(asked: &mut Asked) -> Result<(Place, Host, Spec), Error> {
    let paths = folder::locate(&mut asked.described)?;
    let place = Place::find(&paths)?;
    folder::stay_inside(&asked.described, &place)?;
    let host = this_host();
    let spec = resolve::settle(&asked.described, place.facts(), machine(&host));
    let spec = spec.map_err(|blame| asked.explain(blame))?;
    folder::no_names_outside(&asked.described, &place, &written_targets(&spec))?;
    readable(&spec)?;
    Ok((place, host, spec))
}

/// Refuses a file to write from that cannot be read, before anything begins.
///
/// # Errors
///
/// When there is one.
pub fn readable(spec: &Spec) -> Result<(), Error> {
    for stream in spec.streams() {
        let Payload::Pool { file: Some(path), .. } = &stream.payload else { continue };
        let refuse = |problem: String| {
            let option = format!("--payload pool:...,{}", path.display());
            Err(Error::option(option, problem, "name a file with content that you may read"))
        };
        // Opening a pipe would wait for somebody who writes to it.
        match patiently(path, Role::Input, || path.metadata()) {
            Ok(facts) if !facts.is_file() => return refuse("it is no file".to_owned()),
            Ok(facts) if facts.len() == 0 => return refuse("it is empty".to_owned()),
            Ok(_) => {}
            Err(cause) => return refuse(plain(&cause)),
        }
        if let Err(cause) = patiently(path, Role::Input, || File::open(path)) {
            return refuse(plain(&cause));
        }
    }
    Ok(())
}

/// Open targets, and what carries the I/Os to them.
#[derive(Debug)]
pub enum Opened {
    /// A simulated device.
    Simulated(Box<sim::Options>),
    /// Files and devices.
    Real {
        /// For each stream, an open target for each of its regions.
        streams: Vec<Vec<OpenTarget>>,
        /// What works here.
        choice: Choice,
        /// Whether io_uring is asked for no more than it does by itself.
        usual: bool,
        /// Those that are written to.
        written: Written,
    },
}

impl Opened {
    /// What `run_point` takes.
    pub fn devices(&self) -> Devices<'_> {
        match self {
            Self::Simulated(options) => Devices::Simulated(options),
            Self::Real { streams, choice, .. } => Devices::Real { streams, backend: choice.kind },
        }
    }

    /// The same, with what a session says of it and looks at before each trial.
    pub fn carried(&self) -> Carried<'_> {
        let written = match self {
            Self::Simulated(_) => None,
            Self::Real { written, .. } => Some(written),
        };
        Carried { devices: self.devices(), backend_reason: self.backend().1, written }
    }

    /// What the load generator itself can do with this backend; none where nobody knows. Measured
    /// right before the first I/O, when nothing else of ours runs.
    pub fn ceiling(&self) -> Option<Ceiling> {
        self.is_usual().then(|| calibrate::ceiling(self.backend().0)).flatten()
    }

    /// Whether nothing real is behind it.
    pub fn is_simulated(&self) -> bool {
        matches!(self, Self::Simulated(_))
    }

    /// Whether the backend works as it does by itself: the ceiling of a ring that polls, has a thread
    /// submit, or sends commands of the device is another one, and not known.
    fn is_usual(&self) -> bool {
        match self {
            Self::Simulated(_) => false,
            Self::Real { streams, usual, .. } => {
                *usual && streams.iter().flatten().all(|one| one.passthrough.is_none())
            }
        }
    }

    /// The backend's name and why it was chosen.
    pub fn backend(&self) -> (BackendKind, &str) {
        match self {
            Self::Simulated(_) => (BackendKind::Sim, "the target is simulated, in virtual time"),
            Self::Real { choice, .. } => (choice.kind, &choice.reason),
        }
    }
}

impl Carrier for &Opened {
    fn carry(&mut self, _: &Planned) -> Result<Carried<'_>, Error> {
        Ok(self.carried())
    }
}

/// Tells who else has a target open or locked that is to be written to.
pub fn tell_users<'a>(works: impl IntoIterator<Item = (&'a Place, &'a Spec)>) {
    let mut written: BTreeMap<&str, &Target> = BTreeMap::new();
    for (place, spec) in works {
        let Place::Real(facts) = place else { continue };
        let targets = written_targets(spec).into_iter().map(|at| &facts[at as usize]);
        written.extend(targets.map(|target| (target.path.as_str(), target)));
    }
    users::tell(&written.into_values().collect::<Vec<_>>());
}

/// Opens what a spec names.
///
/// # Errors
///
/// When a target must not or cannot be opened this way, or no backend works.
pub fn open(place: &Place, spec: &Spec) -> Result<Opened, Error> {
    let Place::Real(facts) = place else { return open_here(place, spec) };
    // A file system or a device that hangs must not take us with it.
    let name = facts.first().map_or_else(String::new, |target| target.name.clone());
    let (place, spec) = (place.clone(), spec.clone());
    hanging::waited_for(&name, "it was opened", move || open_here(&place, &spec))
}

fn open_here(place: &Place, spec: &Spec) -> Result<Opened, Error> {
    let facts = match place {
        Place::Simulated { options, .. } => return Ok(Opened::Simulated(options.clone())),
        Place::Real(facts) => facts,
    };
    let requested = match spec.backend {
        Backend::Auto => None,
        Backend::Named(kind) => Some(kind),
    };
    let room = |kind| spec.points.iter().try_for_each(|point| room::check(&point.streams, kind));
    room(requested.unwrap_or(BackendKind::Uring))?;
    let streams = open_each_way(facts, spec)?;
    let described = &spec.points[0].streams;
    let mut ways = Vec::with_capacity(described.len());
    for (stream, open) in described.iter().zip(&streams) {
        let facts = stream.regions.iter().map(|region| &facts[region.target as usize]);
        ways.push(Way { access: stream.access, targets: facts.zip(open).collect() });
    }
    let choice = choose_for(requested, &ways)?;
    let choice = with_trims(described, &ways, choice)?;
    room(choice.kind)?;
    let usual = described.iter().all(|stream| stream.access.ring == RingMode::USUAL);
    let written = Written::of(facts, (described, &streams), spec.consent.clone());
    Ok(Opened::Real { streams, choice, usual, written })
}

/// Sees that what carries the I/Os can trim where a stream does.
fn with_trims(streams: &[Stream], ways: &[Way<'_>], choice: Choice) -> Result<Choice, Error> {
    let trimming = || streams.iter().zip(ways).filter(|(stream, _)| stream.trims());
    if trimming().next().is_none() {
        return Ok(choice);
    }
    let choice = match choice.kind {
        BackendKind::Aio => Choice {
            kind: BackendKind::Sync,
            reason: format!("{}, but it has no trims: using calls", choice.reason),
        },
        _ => choice,
    };
    for (_, open) in trimming().flat_map(|(_, way)| &way.targets) {
        target::probe_trim(open, choice.kind).map_err(|(cause, remedy)| {
            let problem = format!("it does not work with {}: {cause}", open.name);
            Error::target("--trim-share", problem, remedy)
        })?;
    }
    Ok(choice)
}

/// A way to open a target: its place, and how it is accessed.
#[derive(Clone, Copy)]
struct Key {
    target: u32,
    access: Access,
}

impl PartialEq for Key {
    fn eq(&self, other: &Self) -> bool {
        self.target == other.target && access::opens_alike(self.access, other.access)
    }
}

fn key(target: u32, access: Access) -> Key {
    Key { target, access }
}

/// The ways in which targets are opened that are written to.
fn written(spec: &Spec) -> Vec<Key> {
    let writing = spec.streams().filter(|stream| stream.destroys());
    writing.flat_map(|stream| stream.regions.iter().map(|r| key(r.target, stream.access))).collect()
}

/// The places of the targets that are written to.
pub fn written_targets(spec: &Spec) -> BTreeSet<u32> {
    written(spec).into_iter().map(|key| key.target).collect()
}

/// Refuses to overwrite what a fathom is measuring at this moment: who allows a file to be overwritten
/// means what it was, and not what it is becoming.
///
/// # Errors
///
/// When there is such a file.
pub fn no_result_at_work(path: &str, name: &str) -> Result<(), Error> {
    let path = Path::new(path);
    match patiently(path, Role::Target, || journal::is_being_written(path)) {
        true => Err(Error::target(
            name,
            "it is a result that a fathom is writing",
            "wait for its end, or name another file",
        )),
        false => Ok(()),
    }
}

fn no_results_at_work(facts: &[Target], written: &[Key]) -> Result<(), Error> {
    written.iter().map(|key| &facts[key.target as usize]).try_for_each(|target| match target.kind {
        TargetKind::File => no_result_at_work(&target.path, &target.name),
        _ => Ok(()),
    })
}

/// Refuses, by what is known and without opening anything, what must not be touched.
///
/// # Errors
///
/// When a target must not be touched, or cannot be opened in the way that a stream wants.
pub fn judge(place: &Place, spec: &Spec) -> Result<(), Error> {
    let Place::Real(facts) = place else { return Ok(()) };
    let written = written(spec);
    no_results_at_work(facts, &written)?;
    for stream in spec.streams() {
        for region in &stream.regions {
            let opening = Opening {
                access: stream.access,
                writes: written.contains(&key(region.target, stream.access)),
                claimed: false,
                overwrite: spec.consent.clone(),
            };
            target::judge(&facts[region.target as usize], &opening)?;
        }
    }
    Ok(())
}

/// Opens every target once for each way in which streams access it: for each stream, an open target
/// for each of its regions. All points have the same streams on the same targets.
fn open_each_way(facts: &[Target], spec: &Spec) -> Result<Vec<Vec<OpenTarget>>, Error> {
    let written = written(spec);
    no_results_at_work(facts, &written)?;
    let mut open: Vec<(Key, OpenTarget)> = Vec::new();
    let mut get = |target: u32, access: Access| -> Result<OpenTarget, Error> {
        let key = key(target, access);
        if let Some((_, known)) = open.iter().find(|(known, _)| *known == key) {
            return Ok(known.clone());
        }
        let opening = Opening {
            access,
            writes: written.contains(&key),
            claimed: open
                .iter()
                .any(|(other, _)| other.target == target && written.contains(other)),
            overwrite: spec.consent.clone(),
        };
        let new = target::open(&facts[target as usize], &opening)?;
        open.push((key, new.clone()));
        Ok(new)
    };
    let each =
        |stream: &Stream| stream.regions.iter().map(|r| get(r.target, stream.access)).collect();
    spec.points[0].streams.iter().map(each).collect()
}

/// Everything that a session needs.
pub struct Work<'a> {
    /// The command, for the document.
    pub command: document::Command,
    /// The machine.
    pub host: &'a Host,
    /// What is to be done.
    pub spec: &'a Spec,
    /// On what.
    pub opened: &'a Opened,
    /// In which order.
    pub experiment: &'a mut dyn Experiment,
    /// Repeats it.
    pub seed: u64,
    /// Where every I/O goes, if that was asked for.
    pub trace: Option<&'a mut TraceFile>,
}

/// Measures: from the header to the conclusion.
///
/// # Errors
///
/// When the machine or the result file does not allow it.
pub fn measure(work: Work<'_>, journal: &mut Journal, live: &mut Live) -> Result<Outcome, Error> {
    let Work { command, host, spec, mut opened, experiment, seed, trace } = work;
    signals::be_orderly();
    let host = Host { ceiling: opened.ceiling(), ..host.clone() };
    let points = experiment.forecast().points;
    let targets = contents::looked_at(&spec.targets, [(&*spec.targets, &*spec.points)], seed);
    session::begin(journal, command, (&host, &targets), seed, points, None)?;
    let mut session = Session { host: &host, targets: &targets, carrier: &mut opened };
    let outcome = session.run(experiment, Course::new(trace), journal, live);
    live.finish();
    outcome
}

/// Measures one spec after the other into one result, each on targets that are opened for it.
///
/// # Errors
///
/// When the machine or the result file does not allow it.
pub fn measure_each(
    command: document::Command,
    host: &Host,
    (place, specs): (&Place, &[Spec]),
    (journal, trace): (&mut Journal, Option<&mut TraceFile>),
    live: &mut Live,
) -> Result<Outcome, Error> {
    signals::be_orderly();
    let mut course = Course::new(trace);
    let mut ended = (Ended::Completed, Conclusion::default());
    for (index, spec) in specs.iter().enumerate() {
        let opened = match open(place, spec) {
            Ok(opened) => opened,
            Err(error) if index == 0 => return Err(error),
            Err(error) => {
                let sentences = Vec::from([error.to_string()]);
                let concluded = Conclusion { sentences, found: None };
                session::conclude(journal, Ended::Failed, &concluded)?;
                return Err(error);
            }
        };
        let seed = spec.points[0].seed;
        let targets = contents::looked_at(&spec.targets, [(&*spec.targets, &*spec.points)], seed);
        if index == 0 {
            let host = Host { ceiling: opened.ceiling(), ..host.clone() };
            let points = specs.len() as u32;
            session::begin(journal, command, (&host, &targets), seed, points, None)?;
        }
        let mut carrier = &opened;
        let mut session = Session { host, targets: &targets, carrier: &mut carrier };
        let mut experiment = PointSequence::new(spec.points.clone());
        ended = session.trials(&mut experiment, None, &mut course, journal, live)?;
        if ended.0 != Ended::Completed {
            break;
        }
    }
    live.finish();
    let (ended, concluded) = ended;
    course.conclude(ended, &concluded, journal)
}

/// How a process ends that has measured.
pub fn exit_code(outcome: &Outcome) -> u8 {
    match (outcome.signal, outcome.verdict) {
        (Some(signal), _) => exit::SIGNAL + signal as u8,
        (None, Verdict::Void) => exit::VOID,
        (None, Verdict::Suspect | Verdict::Sound) => exit::MEASURED,
    }
}

/// How the terminal report looks here.
pub fn style() -> terminal::Style {
    terminal::Style { width: output::width(), color: output::color() }
}

/// Where the results go, settled before anything is measured.
#[derive(Debug)]
pub struct Outputs {
    written: Reports,
    trace: Option<TraceFile>,
}

/// Refuses results that cannot be written, long before there are any.
///
/// # Errors
///
/// When a file exists or cannot be created.
pub fn check_outputs(
    command: &str,
    target: &str,
    typed: &Results,
    html_beside: bool,
) -> Result<(), Error> {
    let (_, journal) = Outputs::create(command, target, typed, html_beside)?;
    journal.discard();
    Ok(())
}

impl Outputs {
    /// Settles the names and creates the result file.
    ///
    /// # Errors
    ///
    /// When a file exists or cannot be created.
    pub fn create(
        command: &str,
        target: &str,
        typed: &Results,
        html_beside: bool,
    ) -> Result<(Self, Journal), Error> {
        let beside = typed.out.as_deref().filter(|_| html_beside).map(html_name);
        let html = typed.written.html.clone().or(beside);
        let written = Reports { html, ..typed.written.clone() };
        let others = typed.out.iter().chain(&typed.trace).map(PathBuf::as_path);
        distinct(written.paths().chain(others))?;
        written.paths().try_for_each(free)?;
        let (out, journal) = match &typed.out {
            Some(path) => (path.clone(), Journal::create(path, typed.json)?),
            None => create_named(command, target, typed.json)?,
        };
        let html = written.html.or_else(|| html_beside.then(|| html_name(&out)));
        let written = Reports { html, ..written };
        let html = written.html.as_deref();
        let trace = html
            .map_or(Ok(()), free)
            .and_then(|()| typed.trace.as_deref().map(TraceFile::create).transpose());
        match trace {
            Ok(trace) => Ok((Self { written, trace }, journal)),
            Err(taken) => {
                journal.discard();
                Err(taken)
            }
        }
    }

    /// Where every I/O goes, if that was asked for.
    pub fn trace(&mut self) -> Option<&mut TraceFile> {
        self.trace.as_mut()
    }

    /// Where the results of a run go on that was interrupted. Its result file is there; of a report
    /// that is there too it is said how to write it anew.
    pub fn resumed(typed: &Results) -> Self {
        let free = |path: &Path| {
            if free(path).is_ok() {
                return Ok::<_, Infallible>(Some(path.to_owned()));
            }
            output::note(&format!(
                "{} cannot be written anew: `fathom report` writes it to another place",
                path.display()
            ));
            Ok(None)
        };
        let written = typed.written.each_as(free).unwrap_or_default();
        Self { written, trace: None }
    }

    /// The options that ask for the reports, as they are typed, each with a space before it.
    pub fn in_words(&self) -> String {
        self.written.in_words()
    }

    /// Shows and writes what was measured. Each output gets it whatever has become of the others.
    ///
    /// # Errors
    ///
    /// When the result is not where it was to be, or a report cannot be written.
    pub fn finish(
        &self,
        journal: &mut Journal,
        render: &dyn Fn(&Document) -> String,
    ) -> Result<(), Error> {
        let document = document(journal)?;
        let shown = output::say_text(render(&document).trim_end_matches('\n'));
        self.write(journal, &document).and(shown)
    }

    /// Says where the result file is, and writes what was asked for beside it.
    ///
    /// # Errors
    ///
    /// As [`Self::finish`].
    pub fn write(&self, journal: &mut Journal, document: &Document) -> Result<(), Error> {
        let result = format!("result  {}", journal.path().display());
        let said = match journal.is_saved() {
            true => output::say("").and_then(|()| output::say(&result)),
            false => Ok(()),
        };
        let reports = self.written.write(document, Level::usual(document));
        let trace = self.trace.as_ref().map_or(Ok(()), |trace| output::say(&trace.close()?));
        journal.outcome().and(said).and(reports).and(trace)
    }
}

/// Says where what was measured before a failure is to be found, or removes a file without a result.
pub fn after_failure(journal: Journal) {
    if !journal.holds_results() {
        journal.discard();
    } else if journal.is_saved() {
        let path = journal.path().display().to_string();
        output::note(&format!(
            "what was measured until then is in {}: show it with `fathom report {}`",
            path,
            typed_path(&path)
        ));
    }
}

/// Refuses two results in the same file, however its name is written.
///
/// # Errors
///
/// When there are two.
pub fn distinct<'p>(paths: impl IntoIterator<Item = &'p Path>) -> Result<(), Error> {
    let place = |path: &Path| {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let folder = folder.unwrap_or(Path::new("."));
        // A folder that is not there is refused when the file is created.
        let found = patiently(path, Role::Output, || folder.canonicalize());
        let folder = found.unwrap_or(folder.to_owned());
        (folder, path.file_name().map(ToOwned::to_owned))
    };
    let paths: Vec<&Path> = paths.into_iter().collect();
    let twice = paths.iter().enumerate().find(|(index, path)| {
        let before = &paths[..*index];
        before.iter().any(|earlier| place(earlier) == place(path))
    });
    let Some((_, path)) = twice else { return Ok(()) };
    Err(Error::option(
        path.display().to_string(),
        "two of --out, --html, --csv and the others name this file",
        "give each a file of its own",
    ))
}

/// Refuses a file that exists before a measurement is wasted on it.
///
/// # Errors
///
/// When it exists, or its folder does not.
pub fn free(path: &Path) -> Result<(), Error> {
    match patiently(path, Role::Output, || path.symlink_metadata()) {
        Ok(_) => Err(Error::write(
            path,
            io::ErrorKind::AlreadyExists.into(),
            "choose another name: results are never overwritten",
        )),
        Err(_) => {
            let folder = match path.parent() {
                Some(folder) if folder.as_os_str().is_empty() => Path::new("."),
                Some(folder) => folder,
                None => Path::new("/"),
            };
            match patiently(path, Role::Output, || folder.metadata()) {
                Ok(metadata) if metadata.is_dir() => Ok(()),
                Ok(_) => Err(Error::write(
                    path,
                    io::ErrorKind::NotADirectory.into(),
                    "name a file in a folder",
                )),
                Err(cause) => Err(Error::write(path, cause, "create its folder first")),
            }
        }
    }
}

/// Creates a result file under its default name; two of one second are told apart by a number.
fn create_named(command: &str, target: &str, echo: bool) -> Result<(PathBuf, Journal), Error> {
    let name = journal::default_name(command, target, session::unix_ns() / 1_000_000_000);
    let stem = name.trim_end_matches(journal::SUFFIX).to_owned();
    let mut path = PathBuf::from(&name);
    for number in 2.. {
        match Journal::create(&path, echo) {
            Ok(journal) => return Ok((path, journal)),
            Err(error) => match patiently(&path, Role::Output, || path.symlink_metadata()) {
                Ok(_) if number < 1000 => {
                    path = PathBuf::from(format!("{stem}-{number}{}", journal::SUFFIX));
                }
                _ => return Err(error),
            },
        }
    }
    unreachable!("the last number returns")
}

/// The HTML report beside a result file.
fn html_name(out: &Path) -> PathBuf {
    let text = out.to_string_lossy();
    let stem = text.strip_suffix(journal::SUFFIX).or_else(|| text.strip_suffix(".jsonl"));
    PathBuf::from(format!("{}.html", stem.unwrap_or(&text)))
}

/// Names files that killed runs have left, and removes them if the user agrees.
///
/// # Errors
///
/// When one that was to be removed cannot be.
pub fn offer_to_remove(found: &[Leftover], remove: bool) -> Result<(), Error> {
    if found.is_empty() {
        if remove {
            output::note("no leftover was found");
        }
        return Ok(());
    }
    for leftover in found {
        output::note(&format!(
            "a run that was killed has left {} ({})",
            leftover.path.display(),
            leftover.size
        ));
    }
    if !remove && !agrees(found.len()) {
        output::note("it stays; --remove-leftovers removes it");
        return Ok(());
    }
    for leftover in found {
        match scratch::remove(leftover) {
            Ok(()) => output::note(&format!("removed {}", leftover.path.display())),
            Err(cause) => {
                return Err(Error::target(
                    leftover.path.display().to_string(),
                    format!("it cannot be removed ({})", crate::error::plain(&cause)),
                    "remove it by hand, or leave out --remove-leftovers",
                ));
            }
        }
    }
    Ok(())
}

/// Asks, if there is somebody to ask.
fn agrees(count: usize) -> bool {
    let what = if count == 1 { "it" } else { "them" };
    output::ask(&format!("remove {what}?")).unwrap_or(false)
}

/// Reads a result file.
///
/// # Errors
///
/// When it cannot be read or is none.
pub fn read(path: &Path) -> Result<Document, Error> {
    let file = Foreign::open(path, PIPE_LIMIT).map_err(|why| Error::file(path, why, NAME))?;
    read_from(path, &mut BufReader::with_capacity(READ_BUFFER, file))
}

/// What a run has written, whatever has its file's name by now.
///
/// # Errors
///
/// When it cannot be read.
pub fn document(journal: &mut Journal) -> Result<Document, Error> {
    let path = journal.path().to_owned();
    let mut reader = journal.reader().map_err(|cause| unreadable(&path, &cause))?;
    read_from(&path, &mut reader)
}

/// Reads a result file that was claimed.
///
/// # Errors
///
/// As [`read`].
pub fn read_claimed(path: &Path, file: &File) -> Result<Document, Error> {
    read_from(path, &mut BufReader::with_capacity(READ_BUFFER, file))
}

fn read_from(path: &Path, reader: &mut dyn BufRead) -> Result<Document, Error> {
    let outcome = document::read_from(reader).map_err(|cause| unreadable(path, &cause))?;
    outcome.map_err(|error| Error::file(path, error.problem(), error.remedy()))
}

fn unreadable(path: &Path, cause: &io::Error) -> Error {
    Error::file(path, format!("it cannot be read ({})", plain(cause)), NAME)
}

/// The way out where a result cannot be read.
const NAME: &str = "name a result file";

/// No result comes near it; a pipe may have no end.
const PIPE_LIMIT: Bytes = Bytes(Bytes::GIB);

/// How much is read at once.
const READ_BUFFER: usize = 256 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claimed_result_is_read_and_not_what_has_taken_its_name() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.jsonl");
        std::fs::write(&path, "").unwrap();
        let claimed = Journal::claim(&path).unwrap();
        let before = read_claimed(&path, &claimed).unwrap_err().to_string();
        std::fs::remove_file(&path).unwrap();
        std::fs::write(&path, "somebody's").unwrap();
        assert_ne!(read(&path).unwrap_err().to_string(), before);
        assert_eq!(read_claimed(&path, &claimed).unwrap_err().to_string(), before);
    }
}
