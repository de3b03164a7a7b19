//! The readers of foreign bytes, a function for each kind: it reads the bytes as the program does,
//! and does with them what the program does next. Fuzzing feeds these functions, and a test feeds
//! them all the inputs that fuzzing has begun with or found.
//!
//! A function returns for any bytes, and prints nothing. It panics only because of a mistake of
//! ours. It opens no target and starts no I/O; simulated devices run for a few I/Os in virtual
//! time. Names of files in the bytes are followed for reading, as the program follows them.

use std::path::Path;
use std::sync::OnceLock;
use std::sync::atomic::AtomicBool;

use fathom_core::facts::{CpuPlace, Target, TargetKind};
use fathom_core::spec::{Kind, Limit, Pacing, Point, Region, Stream, Workers};
use fathom_core::{Bytes, Refusal, Span};
use fathom_engine::sim::{self, GridOptions, Model, StoredMap};
use fathom_engine::{Devices, Nobody, run_point};
use fathom_report::document::{self, Conclusion, Document, Ended, Header, Line};
use fathom_report::page::Level;
use fathom_report::{csv, export, html, image, markdown, page, terminal, watched};

use crate::agent::message::{self, AgentOrder};
use crate::agent::words;
use crate::cli::args::{Args, Command, SweepArgs};
use crate::cli::described::Described;
use crate::cli::options::Request;
use crate::cli::searches::{PeakArgs, SustainArgs};
use crate::cli::{axes, parts, patterns, rates, values};
use crate::dialect::Notes;
use crate::dialect::diskspd::{self, Invocation, linux, model, point, text, xml};
use crate::dialect::paths::PathMap;
use crate::error::Error;
use crate::import::{self, Imported, Output};
use crate::resolve::{self, Machine};
use crate::workload::keys::{self, Table};
use crate::workload::{Asked, Template};

/// A kind of foreign data, and its reader.
#[derive(Clone, Copy, Debug)]
pub struct Reader {
    /// The kind: the name of the fuzz target, and of the folder of its inputs.
    pub name: &'static str,
    /// Reads these bytes.
    pub read: fn(&[u8]),
}

/// All of them.
pub const ALL: [Reader; 11] = [
    Reader { name: "result", read: result },
    Reader { name: "watch", read: watch },
    Reader { name: "workload", read: workload },
    Reader { name: "command-line", read: command_line },
    Reader { name: "agent", read: agent },
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

/// Reads a result file, and shows it in every format.
pub fn result(bytes: &[u8]) {
    if let Ok(document) = document::read(bytes) {
        show(&document);
    }
}

/// Everything that is made from a document.
fn show(document: &Document) {
    let lengths = [
        terminal::document(document, Level::usual(document), &terminal::Style::default()).len(),
        terminal::document(document, Level::Full, &terminal::Style { width: 40, color: true })
            .len(),
        html::document_without_library(document).len(),
        markdown::document(document, Level::Full).len(),
        csv::document(document).len(),
        csv::series::document(document).len(),
    ];
    assert!(lengths.iter().all(|&length| length > 0), "{lengths:?}");
    let _ = (csv::cells(document), export::diskplorer::diskplorer(document));
    for illustration in page::illustrations(document) {
        assert!(image::svg(&illustration).starts_with("<svg"));
    }
    // The trials that `resume` shows to an experiment.
    for trial in &document.trials {
        let _ = trial.record();
    }
}

/// Reads the file of a watch, and shows it in every format.
pub fn watch(bytes: &[u8]) {
    let Ok(Ok(result)) = watched::read_from(&mut &*bytes) else { return };
    let page = page::watched(&result, Level::Complete);
    let lengths = [
        terminal::page(&page, &terminal::Style { width: 40, color: true }).len(),
        markdown::page(&page).len(),
        html::page_without_library(&page).len(),
    ];
    assert!(lengths.iter().all(|&length| length > 0), "{lengths:?}");
}

/// Reads what a coordinator says to an agent, line by line, and the words of its loads.
pub fn agent(bytes: &[u8]) {
    for line in bytes.split(|byte| *byte == b'\n') {
        match message::read(&String::from_utf8_lossy(line)) {
            Ok(AgentOrder::Prepare(load)) => drop(words::asked(&load)),
            Ok(_) => {}
            Err(why) => assert!(!why.is_empty()),
        }
    }
}

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

/// Reads the words of `fathom plan`, and resolves their description. A result file holds such
/// words, and `resume` reads them.
pub fn command_line(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let words = words(text);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let Some(request) = request(&words) else { return };
    let mut described = Described::typed(&request);
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
    let words = ["fathom", "plan"].iter().chain(words).map(|&word| word.to_owned());
    match Args::reread(&words.collect::<Vec<_>>()) {
        Ok(Args { command: Command::Plan(plan) }) => Some(plan.request),
        Ok(_) => None,
        Err(error) => {
            assert!(!error.to_string().is_empty(), "{error:?}");
            None
        }
    }
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

/// The most jobs that a file may have.
const JOBS_MAX: usize = 1 << 14;

/// Reads output of fio or Diskplorer, and shows it.
pub fn imported(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let read = Output::read("a.json", &text, JOBS_MAX)
        .and_then(|output| import::import(&[("a.json".to_owned(), output)], 0.05));
    let Imported { source, found, sentences } = match read {
        Ok(imported) => imported,
        Err(refusal) => return refused(&refusal),
    };
    let header = Header::imported(env!("CARGO_PKG_VERSION"), &[], 0, source);
    let last = Conclusion { ended: Ended::Completed, sentences, found: Some(found) };
    let lines = [Line::Header(Box::new(header)), Line::Conclusion(Box::new(last))];
    let lines: Vec<String> = lines.iter().map(Line::to_json).collect();
    match document::read(lines.join("\n").as_bytes()) {
        Ok(document) => show(&document),
        Err(error) => panic!("{error}\n{}", lines.join("\n")),
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
