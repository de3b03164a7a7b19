//! The readers of foreign bytes, a function for each kind: it reads the bytes as the program does,
//! and does with them what the program does next. Fuzzing feeds these functions, and a test feeds
//! them all the inputs that fuzzing has begun with or found.
//!
//! A function returns for any bytes, and prints nothing. It panics only because of a mistake of
//! ours. It opens no target and starts no I/O; simulated devices run for a few I/Os in virtual
//! time. Names of files in the bytes are followed for reading, as the program follows them.

mod conversations;
mod results;

use std::path::Path;
use std::sync::OnceLock;
use std::sync::atomic::AtomicBool;

use fathom_core::facts::{CpuPlace, Target, TargetKind};
use fathom_core::spec::{Kind, Limit, Pacing, Point, Region, Stream, Workers};
use fathom_core::{Bytes, Refusal, Span};
use fathom_engine::sim::{self, GridOptions, Model, StoredMap};
use fathom_engine::{Devices, Nobody, run_point};

use crate::cli::args::{Args, Command, SweepArgs};
use crate::cli::described::Described;
use crate::cli::options::Request;
use crate::cli::searches::{PeakArgs, SustainArgs};
use crate::cli::{axes, comparing, parts, patterns, rates, thresholds, values};
use crate::commands::ab;
use crate::dialect::Notes;
use crate::dialect::diskspd::{self, Invocation, linux, model, point, text, xml};
use crate::dialect::paths::PathMap;
use crate::error::Error;
use crate::resolve::{self, Machine};
use crate::workload::keys::{self, Table};
use crate::workload::{Asked, Template};

pub use conversations::{agent, router};
pub use results::{imported, result, watch};

/// A kind of foreign data, and its reader.
#[derive(Clone, Copy, Debug)]
pub struct Reader {
    /// The kind: the name of the fuzz target, and of the folder of its inputs.
    pub name: &'static str,
    /// Reads these bytes.
    pub read: fn(&[u8]),
}

/// All of them.
pub const ALL: [Reader; 12] = [
    Reader { name: "result", read: result },
    Reader { name: "watch", read: watch },
    Reader { name: "workload", read: workload },
    Reader { name: "command-line", read: command_line },
    Reader { name: "agent", read: agent },
    Reader { name: "router", read: router },
    Reader { name: "quantities", read: quantities },
    Reader { name: "diskspd-line", read: diskspd_line },
    Reader { name: "diskspd-profile", read: diskspd_profile },
    Reader { name: "import", read: imported },
    Reader { name: "simulated", read: simulated },
    Reader { name: "latency-grid", read: cells },
];

/// The machine for which descriptions are resolved.
const MACHINE: Machine<'_> = Machine {
    memory: Bytes(8 * Bytes::GIB),
    fresh_seed: 4711,
    cpus: 2,
    cpu_places: &[
        CpuPlace { number: 0, package: Some(0), core: Some(0), node: Some(0) },
        CpuPlace { number: 1, package: Some(0), core: Some(1), node: Some(0) },
    ],
};

/// Reads a workload file, and resolves its description.
pub fn workload(bytes: &[u8]) {
    static TYPED: OnceLock<Request> = OnceLock::new();
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let typed = TYPED.get_or_init(|| request(&["f"]).expect("a file is a target"));
    let template = match Template::of_text(typed, "/nowhere/w.toml", text) {
        Ok(template) => template,
        Err(error) => return told(&error),
    };
    if let Some(sweep) = template.sweep() {
        let words: Vec<String> = sweep.words.values().flatten().cloned().collect();
        let _ = keys::read_as::<SweepArgs>(&words);
        let first: Vec<(&str, &str)> =
            sweep.axes.iter().map(|axis| (axis.name.as_str(), axis.labels[0].as_str())).collect();
        settle(template.describe(&first));
    }
    let asked = template.describe(&[]);
    if let Ok(asked) = &asked {
        for table in Table::ALL {
            let Some(words) = asked.words_of(table, &[]) else { continue };
            match table {
                Table::Map => drop(keys::read_map(&words, Path::new("sim:ssd"))),
                Table::Peak => drop(keys::read_as::<PeakArgs>(&words)),
                Table::Sustain => drop(keys::read_as::<SustainArgs>(&words)),
            }
        }
    }
    settle(asked);
}

/// Resolves a description for the targets that it names: files of 1 TiB, and simulated devices.
fn settle(asked: Result<Asked, Error>) {
    let settled = asked.and_then(|mut asked| {
        let paths = asked.described.locate(|_| Ok(None))?;
        let targets = paths.iter().map(|path| target(&path.to_string_lossy())).collect();
        let spec = resolve::settle(&asked.described, targets, MACHINE);
        let spec = spec.map_err(|blame| asked.explain(blame))?;
        resolve::consent::permit(spec, &asked.described).map_err(|error| asked.explain_whole(error))
    });
    if let Err(error) = settled {
        told(&error);
    }
}

fn target(name: &str) -> Target {
    let simulated = Target::simulated(name, Bytes(1 << 40));
    if name.starts_with("sim:") {
        return simulated;
    }
    Target { kind: TargetKind::File, direct_alignment: Some(Bytes(512)), ..simulated }
}

/// An error has a message.
fn told(error: &Error) {
    assert!(!error.to_string().is_empty(), "{error:?}");
}

/// Reads the words of `fathom plan`, or of any command behind its name, and resolves what they
/// describe. A result file holds such words, and `resume` and `report` read them.
pub fn command_line(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let words = words(text);
    let of_plan: Vec<&str> = words.iter().map(String::as_str).collect();
    if let Some(request) = request(&of_plan) {
        settle_typed(&request);
    }
    let Some(mut args) = reread(words.iter().map(String::as_str)) else { return };
    match &args.command {
        Command::Plan(plan) => settle_typed(&plan.request),
        Command::Run(run) => settle_typed(&run.request),
        Command::Sweep(sweep) => settle_typed(&sweep.request),
        Command::Peak(peak) => settle_typed(&peak.request),
        Command::Sustain(sustain) => settle_typed(&sustain.request),
        Command::Ab(ab) => match ab::sides(ab) {
            Ok(sides) => sides.iter().for_each(|side| settle_typed(&side.request)),
            Err(error) => told(&error),
        },
        _ => {}
    }
    if let Some((consent, results)) = args.of_experiment() {
        let _ = (consent.in_words(), results.written.in_words());
    }
    let _ = args.fail_if();
}

/// Resolves typed options, for the same targets.
fn settle_typed(request: &Request) {
    let mut described = Described::typed(request);
    let settled = described.locate(|_| Ok(None)).and_then(|paths| {
        let targets = paths.iter().map(|path| target(&path.to_string_lossy())).collect();
        let spec = resolve::settle(&described, targets, MACHINE).map_err(|blame| blame.error)?;
        resolve::consent::permit(spec, &described)
    });
    if let Err(error) = settled {
        told(&error);
    }
}

/// The words of a line: spaces separate them, except between single quotes.
fn words(line: &str) -> Vec<String> {
    let (mut words, mut word, mut quoted) = (Vec::new(), None::<String>, false);
    for c in line.chars() {
        match c {
            '\'' => {
                quoted = !quoted;
                word.get_or_insert_default();
            }
            ' ' | '\n' if !quoted => words.extend(word.take()),
            c => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}

/// The words as those of `fathom plan`, if they are valid.
fn request(words: &[&str]) -> Option<Request> {
    match reread(["plan"].into_iter().chain(words.iter().copied()))?.command {
        Command::Plan(plan) => Some(plan.request),
        _ => None,
    }
}

/// The words behind the program's name, if they are valid.
fn reread<'a>(words: impl Iterator<Item = &'a str>) -> Option<Args> {
    let line: Vec<String> = ["fathom"].into_iter().chain(words).map(str::to_owned).collect();
    let args = Args::reread(&line);
    if let Err(error) = &args {
        assert!(!error.to_string().is_empty(), "{error:?}");
    }
    args.ok()
}

/// Reads a text as every kind of value that an option may have.
pub fn quantities(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if let Ok(span) = text.parse::<Span>() {
        assert!(span.to_string().parse::<Span>().is_ok(), "{text} is shown as {span}");
    }
    if let Ok(size) = values::size(text) {
        assert!(values::size(&size.to_string()).is_ok(), "{text} is shown as {size}");
    }
    let _ = (values::sizes(text), values::weights(text), values::count(text), values::seed(text));
    let _ = (values::depth(text), values::workers(text), values::share(text), values::grid(text));
    let _ = (values::percentile(text), values::think_time(text), values::bursts(text));
    let _ = (values::stop_after(text), values::payload(text), values::backend(text));
    let _ = (values::sync_mode(text), values::hint(text), values::official(text));
    let _ = (values::passes(text), values::objective(text), values::test(text));
    let _ = (values::watch(text), values::submission_thread(text), values::cpus(text));
    let _ = (values::io_priority(text), patterns::pattern(text), parts::part(text));
    let _ = (rates::rated_iops(text), rates::rated_bandwidth(text), axes::value(text));
    let _ = (axes::copies(text), axes::pattern_of(text), axes::axis(text));
    let _ = (axes::number("block-size", text), axes::number("duration", text));
    let _ = (values::watch_interval(text), values::lease(text), values::time_limit(text));
    let _ = (values::percentile_of(text), values::whole::<u32>(1, 9)(text));
    let _ = (thresholds::threshold(text), thresholds::metric(text));
    let _ = (comparing::margin(text), comparing::figure(text), comparing::requirement(text));
    if let Ok(offered) = rates::offered(text) {
        let _ = (offered.figure(), offered.length());
    }
}

/// The seed of offsets if none is given.
const FRESH_SEED: u32 = 4242;

/// Reads a command line of DiskSpd, and finds the settings that cannot run here.
pub fn diskspd_line(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let mut no_profile = |path: &str| Err(Refusal::usage(path, "it is not there", "name another"));
    match diskspd::read(&words(text), FRESH_SEED, &mut no_profile) {
        Ok(request) => invoked(&request),
        Err(refusal) => refused(&refusal),
    }
}

/// Reads an XML profile of DiskSpd, and finds the settings that cannot run here.
pub fn diskspd_profile(bytes: &[u8]) {
    let words = ["-Rp", "-Xp.xml"].map(str::to_owned);
    match diskspd::read(&words, FRESH_SEED, &mut |_| Ok(bytes.to_vec())) {
        Ok(request) => invoked(&request),
        Err(refusal) => {
            refused(&refusal);
            assert!(refusal.about.starts_with("p.xml"), "{refusal}");
        }
    }
}

fn refused(refusal: &Refusal) {
    assert!(!refusal.problem.is_empty() && !refusal.remedy.is_empty(), "{refusal:?}");
}

/// Everything that happens to DiskSpd's words before a target is opened. Checks that the profile is
/// the same after it is written and read again.
fn invoked(request: &Invocation) {
    linux::judge(request, &PathMap::default()).refusals.iter().for_each(refused);
    let mut notes = Notes::default();
    for span in &request.profile.time_spans {
        point::gaps(span, &request.speech, MACHINE, &mut notes).iter().for_each(refused);
    }
    let _ = text::profile(&request.profile, "");
    let written = xml::write::profile(&request.profile, 0);
    let again = || -> Result<model::Profile, Refusal> {
        let words = ["-Rp", "-Xagain.xml"].map(str::to_owned);
        // Another seed: a seed that is not written would show.
        let read = diskspd::read(&words, FRESH_SEED + 1, &mut |_| Ok(written.clone().into_bytes()));
        Ok(read?.profile)
    };
    match again() {
        Ok(profile) => {
            // What XML cannot say is written as a replacement character.
            if !written.contains('\u{fffd}') {
                assert_eq!(profile, request.profile, "{written}");
            }
        }
        Err(refusal) => panic!("{refusal}\n{written}"),
    }
}

/// Reads the parameters of a simulated device as they are typed after `sim:`, and does a few I/Os.
pub fn simulated(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let options = match text.parse::<sim::Options>() {
        Ok(options) => options,
        Err(problem) => return assert!(!problem.is_empty()),
    };
    for typed in [options.to_string(), format!("{options:#}")] {
        assert_eq!(typed.parse(), Ok(options.clone()), "{text} is shown as {typed}");
    }
    let _ = options.layers();
    work(&options);
}

/// Reads the cells of a latency map for a simulated device, and does a few I/Os.
pub fn cells(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let map = match StoredMap::parse(Path::new("cells.csv"), text) {
        Ok(map) => map,
        Err(problem) => return assert!(!problem.is_empty()),
    };
    let options: sim::Options = "grid".parse().expect("it is a device");
    work(&sim::Options {
        model: Model::Grid(GridOptions { map, ..GridOptions::default() }),
        ..options
    });
}

/// How many I/Os a simulated device does.
const IOS: u64 = 64;

/// Reads and writes of 4 KiB, for at most 10 ms of virtual time.
fn work(options: &sim::Options) {
    let regions = Vec::from([Region { target: 0, offset: Bytes(0), length: Bytes(Bytes::MIB) }]);
    let stream = Stream {
        ios: Kind { read_share: 0.5, ..Kind::default() }.into(),
        pacing: Pacing { limit: Some(Limit::Ios(IOS)), ..Pacing::closed(4) },
        workers: Workers::PerTarget(1),
        ..Stream::reading("load", regions)
    };
    let point = Point::of(Vec::from([stream]), Span::from_ms(10));
    let never = AtomicBool::new(false);
    let record = run_point(&point, Devices::Simulated(options), &never, &mut Nobody);
    let ledger = record.expect("a simulated device can always be opened").ledger();
    assert!(ledger.balances(), "{ledger:?}");
}
