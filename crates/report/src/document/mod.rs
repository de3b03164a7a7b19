//! The document: what a run leaves, in a versioned form of its own.
//!
//! A result file is an append-only journal in JSON Lines: a header, a line for each trial as it
//! ended, a conclusion. Nothing else is written and read. Points, facts and the findings of
//! experiments are core's own types, and what was measured has types of its own here; a test
//! compares all of them with docs/schema. Every time ends in `_ns`, every size in `_bytes`, every
//! rate in `_iops`; what is not known is `null`. Distributions are kept whole: the reader chooses
//! the percentile, and no percentile is ever stored.

mod calibration;
mod conditions;
mod distribution;
mod experiment;
mod gamma;
mod import;
mod measure;
mod point;
mod read;
mod record;
mod rows;
mod summary;
mod timeless;
mod version1;
mod write;

use fathom_core::measure::Direction;
use fathom_core::trial as core_trial;
use fathom_core::watch::Breakdown;
use fathom_core::{Span, Utc, count, facts as core_facts, verdict};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use calibration::{
    CALIBRATION_FORMAT, CALIBRATION_FORMAT_VERSION, Calibration, CalibrationInput, CalibrationRow,
    LeftOut, WakeUp, calibration_schema,
};
pub use conditions::{Condition, Metric, Threshold};
pub use distribution::{Distribution, DistributionForm};
pub use experiment::{Experiment, Found};
pub use fathom_core::calibration::{Ceiling, Cost, NullTarget};
pub use fathom_core::experiment::{
    AbFound, Axis, CellDoubt, CellKind, ComparedFigure, MapCell, MapFound, PeakFound, Probe, Round,
    Scale, SideAnswer, SustainFound, SweepFound, Validation,
};
pub use fathom_core::facts::{
    Answer, Clock, Content, CpuPlace, Disk, Extents, FileSystem, Host, InUse, IoLimit, Layer,
    LayerKind, Queue, Rank, Reduction, Saving, Stripe, Target, TargetKind,
};
pub use fathom_core::hosts::{HostStart, HostTrial, LostHost};
pub use fathom_core::spec::{BackendKind, IoPriority, Point, Stream};
pub use fathom_core::stats::SteadyState;
pub use fathom_core::stats::{Estimate, Ratio};
pub use fathom_core::trial::{Coordinate, Place, Role, Traced};
use fathom_core::verdict::concerns_result;
pub use fathom_core::verdict::{Severity, Verdict};
pub use import::{Job, JobFlow, JobTimes, JobsFound, Source};
pub use measure::{
    Buckets, Cell, Counters, Cpu, Device, Flow, Interval, IntervalFlow, IoWq, Spread, StartDelay,
    Worker,
};
pub use read::{ReadError, START, read, read_from, read_timeless};
pub use rows::{FlowRow, IntervalRow};
pub use summary::{
    ResultSummary, SUMMARY_VERSION, SummaryCondition, SummaryFigures, SummaryHost, SummaryPromise,
    SummaryResult,
};
pub use write::write_trial;

/// What the first line of every result file says it is.
pub const FORMAT: &str = "fathom-result";

/// The format that this version writes. It rises with every change that an older reader would
/// misunderstand; a field that is added is none.
pub const FORMAT_VERSION: u32 = 2;

/// The way of measuring. It rises with every change after which numbers cannot be compared with
/// those of before.
pub const MEASUREMENT_VERSION: u32 = 1;

/// One line of the journal.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(tag = "line", rename_all = "snake_case")]
pub enum Line {
    /// The first line.
    Header(Box<Header>),
    /// One for each trial, written when it ended.
    Trial(Box<Trial>),
    /// The line after the last trial; absent when the run was killed.
    Conclusion(Box<Conclusion>),
    /// The last line: what the others come to, for programs.
    Summary(Box<ResultSummary>),
}

/// What was to be done, by what, with what, on what.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Header {
    /// "fathom-result".
    pub format: String,
    /// The version of this format.
    pub format_version: u32,
    /// The version of the way of measuring: numbers of different ones cannot be compared.
    pub measurement_version: u32,
    /// The version of fathom that ran.
    pub fathom_version: String,
    /// The command that ran.
    pub command: Command,
    /// The command line, word by word, as it was typed.
    pub command_line: Vec<String>,
    /// When the run began, in RFC 3339, UTC.
    pub created: String,
    /// The same in nanoseconds since 1970.
    pub created_unix_ns: u64,
    /// Repeats every random choice of the run; none where another program measured.
    pub seed: Option<u64>,
    /// The machine that generated the load; none where several hosts did, and where another program
    /// measured, which does not say.
    pub host: Option<Host>,
    /// The hosts that applied the load together; empty if one machine did, which is `host` then.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<HostOfMany>,
    /// Where the results are from, if another program measured them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub imported: Option<Source>,
    /// The targets; everything else names them by their place here.
    pub targets: Vec<Target>,
    /// How many points were planned; of an experiment that decides as it goes, how many it expected.
    pub planned_points: u32,
    /// The experiment that was asked for; none where the points say everything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub experiment: Option<Experiment>,
    /// Where relative paths of the command line begin; none where nothing can be resumed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub working_directory: Option<String>,
    /// What makes each target itself, beyond its name: inode, serial number, identifiers. Empty where
    /// nothing can be resumed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub identities: Vec<String>,
}

/// One of several hosts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HostOfMany {
    /// Its name.
    pub name: String,
    /// The machine.
    pub host: Host,
    /// Its targets, in the order of those of the header, which are the first host's.
    pub targets: Vec<Target>,
    /// What makes each of them itself, beyond its name.
    pub identities: Vec<String>,
    /// Its own result file, on that host.
    pub result: String,
}

/// The command that ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Command {
    /// A portrait of a storage in about a minute.
    Quick,
    /// One workload.
    Run,
    /// All combinations of several settings.
    Sweep,
    /// Two sides by turns.
    Ab,
    /// A search for the lowest load that saturates, or the highest that meets an objective.
    Peak,
    /// A latency map: the response time of reads beside writes.
    Map,
    /// Rounds until a steady state.
    Sustain,
    /// A classic study: a sweep, a search or a map with settings and conclusions of its own.
    Study,
    /// Nothing was measured: the results are another program's.
    Import,
}

/// What a header is made of.
#[derive(Clone, Copy, Debug)]
pub struct HeaderInput<'a> {
    /// The version of fathom.
    pub fathom_version: &'a str,
    /// The command.
    pub command: Command,
    /// The command line, as it was typed.
    pub command_line: &'a [String],
    /// When the run begins, in nanoseconds since 1970.
    pub created_unix_ns: u64,
    /// Repeats every random choice of the run.
    pub seed: u64,
    /// The machine; none if there are several.
    pub host: Option<&'a core_facts::Host>,
    /// The hosts, if there are several.
    pub hosts: &'a [HostOfMany],
    /// The targets.
    pub targets: &'a [core_facts::Target],
    /// How many points there will be.
    pub planned_points: u32,
    /// The experiment, if it is one.
    pub experiment: Option<&'a Experiment>,
    /// Where relative paths begin, if that has to be known again.
    pub working_directory: Option<&'a str>,
    /// What makes each target itself, if that has to be known again.
    pub identities: &'a [String],
}

/// One execution of a point.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Trial {
    /// What was to be measured, resolved in full, so that it can be repeated from here.
    #[serde(deserialize_with = "point::of_either_version")]
    pub point: Point,
    /// Where it stands in its experiment.
    #[serde(default, skip_serializing_if = "Place::is_plain")]
    pub place: Place,
    /// What carried the I/Os.
    pub backend: BackendKind,
    /// Why that one.
    pub backend_reason: String,
    /// When the window began, in RFC 3339, UTC.
    pub started: String,
    /// The same in nanoseconds since 1970.
    pub started_unix_ns: u64,
    /// The window as it was; shorter than asked when the run was interrupted, ended early, or done
    /// before.
    pub window_ns: u64,
    /// Whether it ended before its time without having come to what it was for.
    pub interrupted: bool,
    /// Whether it ended before its time because enough was known.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ended_early: bool,
    /// What the numbers are worth.
    pub verdict: Verdict,
    /// What was found about them, the gravest first.
    pub findings: Vec<Finding>,
    /// What could not be checked.
    pub unchecked: Vec<Unchecked>,
    /// One for each worker.
    pub workers: Vec<Worker>,
    /// What the host counted during the window; none for a simulated target.
    pub counters: Option<Counters>,
    /// Where every I/O is to be found; none unless that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traced: Option<Traced>,
    /// Where the time of its I/Os went; none unless that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub breakdown: Option<Breakdown>,
    /// What each host did; empty if one machine applied the load. The workers are those of all hosts,
    /// in this order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<HostTrial>,
    /// The I/Os of each bucket, where they were counted besides the series.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub buckets: Option<Buckets>,
    /// The window in slices with their distributions, by start and stream: an interval each, or in
    /// a long run the sum of several, so that a stream has a few hundred at most.
    pub series: Vec<Interval>,
    /// Every interval in plain numbers, where the slices of the series are longer; empty where each
    /// of them is an interval.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub intervals: Vec<IntervalRow>,
}

/// Something that a reader of the numbers has to know.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Finding {
    /// A stable name for programs.
    pub code: String,
    /// How much it weighs.
    pub severity: Severity,
    /// What was found, with the figures it was judged by.
    pub evidence: String,
    /// What to do about it.
    pub advice: String,
}

/// A check that could not be made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Unchecked {
    /// The code that its finding would have had.
    pub code: String,
    /// Why it could not be made.
    pub why: String,
    /// Whether it could have been made on another machine, so that it is missing here.
    #[serde(default)]
    pub missing: bool,
}

/// How the run ended and what it found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Conclusion {
    /// How the run ended.
    pub ended: Ended,
    /// What it found, in words; empty when the trials speak for themselves.
    pub sentences: Vec<String>,
    /// What it found, in figures.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub found: Option<Found>,
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Ended {
    /// Every planned point was run.
    Completed,
    /// Somebody stopped it.
    Interrupted,
    /// It could not go on.
    Failed,
}

/// A whole result file.
#[derive(Clone, Debug, PartialEq)]
pub struct Document {
    /// The first line.
    pub header: Header,
    /// The trials, in the order in which they ended.
    pub trials: Vec<Trial>,
    /// The last line; none when the run was killed or still goes on.
    pub conclusion: Option<Conclusion>,
    /// Whether the last line was torn, and was left out.
    pub torn: bool,
    /// The conditions under which it fails. They are not in the file, except on its command line: who
    /// reads it says which there are.
    pub conditions: Vec<Threshold>,
}

impl Document {
    /// Whether it is of an experiment, so that its trials have places rather than only an order.
    pub fn is_experiment(&self) -> bool {
        let placed = || self.trials.iter().any(|trial| !trial.place.coordinates.is_empty());
        self.header.experiment.is_some() || self.found().is_some() || placed()
    }

    /// The answer of its experiment, if it has come to one.
    pub fn found(&self) -> Option<&Found> {
        self.conclusion.as_ref()?.found.as_ref()
    }

    /// "3 of 20 points", "15 points": how far it came. A search does not know in advance where it
    /// ends, and may need more points than it had planned.
    pub fn done_in_words(&self) -> String {
        let (done, planned) = (self.trials.len() as u64, u64::from(self.header.planned_points));
        let what = if self.is_repeated() { "trial" } else { "point" };
        let (of, number) = match done < planned {
            true => (format!("{} of ", count(done)), planned),
            false => (String::new(), done),
        };
        format!("{of}{} {what}{}", count(number), if number == 1 { "" } else { "s" })
    }

    /// Whether it is of points that belong to no experiment and were measured several times.
    pub fn is_repeated(&self) -> bool {
        !self.is_experiment() && self.trials.iter().any(|trial| 0 < trial.place.repeat)
    }
}

impl Command {
    /// The name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Quick => "quick",
            Self::Run => "run",
            Self::Sweep => "sweep",
            Self::Ab => "ab",
            Self::Peak => "peak",
            Self::Map => "map",
            Self::Sustain => "sustain",
            Self::Study => "study",
            Self::Import => "import",
        }
    }
}

impl Line {
    /// The line, without a newline at its end.
    pub fn to_json(&self) -> String {
        let json = serde_json::to_string(self);
        harmless(json.expect("these types have string keys and no failing parts"))
    }
}

/// JSON in which nothing steers a terminal that shows it. A parser reads the same text from it.
/// Only characters in strings are escaped; JSON itself escapes the control characters before 128.
pub(crate) fn harmless(json: String) -> String {
    let steers = |c: char| fathom_core::steers(c) && c != '\n';
    if !json.contains(steers) {
        return json;
    }
    let mut out = String::with_capacity(json.len() + 16);
    for c in json.chars() {
        match steers(c) {
            true => out.push_str(&format!("\\u{:04x}", u32::from(c))),
            false => out.push(c),
        }
    }
    out
}

impl Header {
    /// The header of a run that begins.
    pub fn new(input: HeaderInput<'_>) -> Self {
        Self {
            format: FORMAT.to_owned(),
            format_version: FORMAT_VERSION,
            measurement_version: MEASUREMENT_VERSION,
            fathom_version: input.fathom_version.to_owned(),
            command: input.command,
            command_line: input.command_line.to_vec(),
            created: rfc3339(input.created_unix_ns),
            created_unix_ns: input.created_unix_ns,
            seed: Some(input.seed),
            host: input.host.cloned(),
            hosts: input.hosts.to_vec(),
            imported: None,
            targets: input.targets.to_vec(),
            planned_points: input.planned_points,
            experiment: input.experiment.cloned(),
            working_directory: input.working_directory.map(ToOwned::to_owned),
            identities: input.identities.to_vec(),
        }
    }

    /// The header of results that another program has measured.
    pub fn imported(
        fathom_version: &str,
        command_line: &[String],
        created_unix_ns: u64,
        source: Source,
    ) -> Self {
        Self {
            format: FORMAT.to_owned(),
            format_version: FORMAT_VERSION,
            measurement_version: MEASUREMENT_VERSION,
            fathom_version: fathom_version.to_owned(),
            command: Command::Import,
            command_line: command_line.to_vec(),
            created: rfc3339(created_unix_ns),
            created_unix_ns,
            seed: None,
            host: None,
            hosts: Vec::new(),
            imported: Some(source),
            targets: Vec::new(),
            planned_points: 0,
            experiment: None,
            working_directory: None,
            identities: Vec::new(),
        }
    }
}

impl Trial {
    /// A trial with what was found about it.
    pub fn new(trial: &core_trial::Trial, judgement: &verdict::Judgement) -> Self {
        Self {
            series: trial.record.stretches.iter().map(Interval::from).collect(),
            intervals: write::plain_rows(&trial.record).collect(),
            ..Self::without_series(trial, judgement)
        }
    }

    /// The same without what it did over time.
    fn without_series(trial: &core_trial::Trial, judgement: &verdict::Judgement) -> Self {
        let record = &trial.record;
        Self {
            point: trial.point.clone(),
            place: trial.place.clone(),
            backend: trial.backend,
            backend_reason: trial.backend_reason.clone(),
            started: rfc3339(trial.started_unix_ns),
            started_unix_ns: trial.started_unix_ns,
            window_ns: record.window.0,
            interrupted: record.interrupted,
            ended_early: record.ended_early,
            verdict: judgement.verdict(),
            findings: judgement.findings.iter().map(Finding::from).collect(),
            unchecked: judgement.unchecked.iter().map(Unchecked::from).collect(),
            workers: record.workers.iter().map(|one| worker(&trial.point, one)).collect(),
            counters: trial.counters.as_ref().map(Counters::from),
            traced: trial.traced.clone(),
            breakdown: trial.breakdown.clone(),
            hosts: trial.hosts.clone(),
            buckets: record.buckets.as_ref().map(Buckets::from),
            series: Vec::new(),
            intervals: Vec::new(),
        }
    }

    /// Whether it ran to its end, on all hosts: an experiment that goes on measures others again.
    pub fn is_whole(&self) -> bool {
        !self.interrupted && self.hosts.iter().all(|host| host.lost.is_none())
    }

    /// How many machines applied the load and have a trial. What a point asks for, each of them did.
    pub fn machines(&self) -> usize {
        self.hosts.iter().filter(|host| host.lost.is_none()).count().max(1)
    }

    /// Each host with a trial, and the places of its workers; empty if one machine applied the load.
    pub fn by_host(&self) -> Vec<(&HostTrial, std::ops::Range<usize>)> {
        let mut next = 0_usize;
        let mut own = |host: &HostTrial| {
            // A file can say anything.
            let first = next.min(self.workers.len());
            next = next.saturating_add(host.workers as usize);
            first..next.min(self.workers.len())
        };
        let hosts = self.hosts.iter().filter(|host| host.lost.is_none());
        hosts.map(|host| (host, own(host))).collect()
    }

    /// The window as it was.
    pub fn window(&self) -> Span {
        Span(self.window_ns)
    }

    /// Whether any of its streams was an open loop.
    pub fn is_open(&self) -> bool {
        self.point.streams.iter().any(|stream| stream.pacing.is_open())
    }

    /// The sum over the cells that `keep` names, of one direction or of both, with distributions
    /// from which percentiles can be read.
    pub fn flow(
        &self,
        direction: Option<Direction>,
        keep: impl Fn(&Worker, &Cell) -> bool,
    ) -> fathom_core::measure::Flow {
        let mut sum = fathom_core::measure::Flow::new(self.tells_response_time(&keep));
        for worker in &self.workers {
            for cell in worker.cells.iter().filter(|cell| keep(worker, cell)) {
                for one in Direction::BOTH {
                    if direction.is_none_or(|wanted| wanted == one) {
                        cell.flow(one).add_to(&mut sum);
                    }
                }
            }
        }
        sum
    }

    /// The sum of one kind of upkeep over the cells that `keep` names.
    pub fn upkeep(
        &self,
        what: fathom_core::measure::Upkeep,
        keep: impl Fn(&Worker, &Cell) -> bool,
    ) -> fathom_core::measure::Flow {
        let mut sum = fathom_core::measure::Flow::new(self.tells_response_time(&keep));
        for worker in &self.workers {
            let cells = worker.cells.iter().filter(|cell| keep(worker, cell));
            cells.filter_map(|cell| cell.upkeep(what)).for_each(|flow| flow.add_to(&mut sum));
        }
        sum
    }

    /// Whether there is an open loop among the cells that `keep` names.
    fn tells_response_time(&self, keep: impl Fn(&Worker, &Cell) -> bool) -> bool {
        let open = |worker: &Worker| self.point.streams[worker.stream as usize].pacing.is_open();
        let kept = |worker: &Worker| worker.cells.iter().any(|cell| keep(worker, cell));
        match self.workers.is_empty() {
            true => self.is_open(),
            false => self.workers.iter().any(|worker| open(worker) && kept(worker)),
        }
    }

    /// The sum over everything, of one direction or of both.
    pub fn total(&self, direction: Option<Direction>) -> fathom_core::measure::Flow {
        self.flow(direction, |_, _| true)
    }

    /// Every interval of every stream in plain numbers, in no particular order.
    pub fn intervals(&self) -> impl Iterator<Item = fathom_core::measure::Interval> + '_ {
        self.intervals_of(|_| true)
    }

    /// The same of some streams alone. Intervals of others are not made: that would be work for the
    /// square of the number of streams.
    pub fn intervals_of(
        &self,
        is_own: impl Fn(u32) -> bool + Copy,
    ) -> impl Iterator<Item = fathom_core::measure::Interval> {
        let from_series = self.intervals.is_empty().then_some(&self.series);
        let from_series = from_series.into_iter().flatten();
        let own = from_series.filter(move |interval| is_own(interval.stream)).map(Interval::plain);
        let rows = self.intervals.iter().filter(move |row| is_own(row.stream));
        own.chain(rows.flat_map(IntervalRow::intervals))
    }

    /// The series with its distributions, as the core has it.
    pub fn stretches(&self) -> Vec<fathom_core::measure::Stretch> {
        self.stretches_of(|_| true)
    }

    /// The same of some streams alone. Distributions of others are not unpacked: that would be work
    /// for the square of the number of streams.
    pub fn stretches_of(&self, is_own: impl Fn(u32) -> bool) -> Vec<fathom_core::measure::Stretch> {
        let own = self.series.iter().filter(|interval| is_own(interval.stream));
        own.map(Interval::to_core).collect()
    }

    /// The ledger of all workers.
    pub fn ledger(&self) -> fathom_core::measure::Ledger {
        self.workers
            .iter()
            .fold(fathom_core::measure::Ledger::default(), |sum, w| sum.plus(&w.ledger))
    }

    /// I/Os that failed, at any time.
    pub fn errors(&self) -> u64 {
        self.workers.iter().map(|worker| worker.errors.count).sum()
    }

    /// I/Os in flight, averaged over the window, all workers together.
    pub fn queue_depth(&self) -> f64 {
        self.workers.iter().map(|worker| worker.queue_depth).sum()
    }

    /// How late the I/Os of open loops started, of the workers that `keep` names; none when there is
    /// no open loop among them.
    pub fn start_delay(
        &self,
        keep: impl Fn(&Worker) -> bool,
    ) -> Option<fathom_core::measure::StartDelay> {
        let mut sum: Option<fathom_core::measure::StartDelay> = None;
        let kept = self.workers.iter().filter(|worker| keep(worker));
        for delay in kept.filter_map(|worker| worker.start_delay.as_ref()) {
            let sum = sum.get_or_insert_default();
            sum.generator.merge_sparse(&delay.generator.to_sparse());
            sum.target.merge_sparse(&delay.target.to_sparse());
        }
        sum
    }
}

/// What a worker did, and where.
fn worker(point: &fathom_core::spec::Point, record: &fathom_core::measure::WorkerRecord) -> Worker {
    let stream = point.streams.get(record.stream as usize);
    let pinned_cpu = stream.and_then(|stream| stream.workplace.cpu(record.worker));
    Worker { pinned_cpu, ..Worker::new(record) }
}

impl From<&verdict::Finding> for Finding {
    fn from(finding: &verdict::Finding) -> Self {
        Self {
            code: finding.code.to_owned(),
            severity: finding.severity,
            evidence: finding.evidence.clone(),
            advice: finding.advice.clone(),
        }
    }
}

impl From<&verdict::Unchecked> for Unchecked {
    fn from(unchecked: &verdict::Unchecked) -> Self {
        Self {
            code: unchecked.code.to_owned(),
            why: unchecked.why.clone(),
            missing: unchecked.obstacle == verdict::Obstacle::Machine,
        }
    }
}

/// The finding about a trial whose data, which repeats itself, the target saved.
const SAVED: &str = "repeating-data-faster";

impl Document {
    /// Judges trials by the conclusion of their experiment as well: those whose data the target saved
    /// are void whenever they ran. When the first of them ended, too few were known to say so. The
    /// readers do this, so that everything that counts or shows verdicts has the same.
    pub fn judge_by_conclusion(&mut self) {
        let found = self.conclusion.as_ref().and_then(|last| last.found.as_ref());
        let Some(Found::Sweep(SweepFound { saved, .. })) = found else { return };
        let is_saved = |trial: &Trial| {
            let labels = || trial.place.coordinates.iter().map(|one| &one.label);
            trial.place.role == Role::Result && saved.iter().any(|one| one.iter().eq(labels()))
        };
        for trial in self.trials.iter_mut().filter(|trial| is_saved(trial)) {
            trial.verdict = Verdict::Void;
            if trial.findings.iter().all(|one| one.code != SAVED) {
                trial.findings.push(Finding {
                    code: SAVED.to_owned(),
                    severity: Severity::Void,
                    evidence:
                        "Data that repeats itself was written much faster than random data at \
                               the same settings. All pairs of trials together show it; when this \
                               trial ended, too few were known."
                            .to_owned(),
                    advice: "Measure with random data.".to_owned(),
                });
                trial.findings.sort_by_key(|one| std::cmp::Reverse(one.severity));
            }
        }
    }

    /// The gravest verdict of all trials on the result; none without a trial.
    pub fn verdict(&self) -> Option<Verdict> {
        self.trials.iter().map(Trial::verdict_on_result).max()
    }
}

impl Trial {
    /// The verdict on the result that the trial is part of: without findings that an experiment is
    /// there to make.
    pub fn verdict_on_result(&self) -> Verdict {
        let sought = |finding: &&Finding| !concerns_result(&finding.code);
        if self.findings.iter().filter(sought).count() == 0 {
            return self.verdict;
        }
        let own = self.findings.iter().filter(|finding| concerns_result(&finding.code));
        own.map(|finding| finding.severity).max().into()
    }
}

/// The JSON Schema of one line of the journal, as it is kept in `docs/schema`.
pub fn schema() -> String {
    let schema = schemars::schema_for!(Line);
    let mut text = serde_json::to_string_pretty(&schema).expect("a schema is plain JSON");
    text.push('\n');
    text
}

/// A moment as RFC 3339 writes it, in UTC, to the millisecond.
pub fn rfc3339(unix_ns: u64) -> String {
    let Utc { year, month, day, hour, minute, second } = Utc::from_unix(unix_ns / 1_000_000_000);
    let millis = unix_ns / 1_000_000 % 1000;
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{millis:03}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_written_as_rfc_3339_has_it() {
        for (seconds, text) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_400, "2000-02-29T00:00:00.000Z"),
            (1_709_251_199, "2024-02-29T23:59:59.000Z"),
            (1_795_245_669, "2026-11-21T07:21:09.000Z"),
            (4_107_542_400, "2100-03-01T00:00:00.000Z"),
        ] {
            assert_eq!(rfc3339(seconds * 1_000_000_000), text);
        }
        assert_eq!(rfc3339(1_234_567_891), "1970-01-01T00:00:01.234Z");
    }
}
