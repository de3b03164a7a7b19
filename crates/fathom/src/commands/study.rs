//! `fathom study`: the classic studies. Each is a sweep, a search or a map with settings from a
//! spec that ships with fathom, and answers the question of the study.

use fathom_core::experiment::{Drives, Question, Study};
use fathom_report::document::{self, Command};

use super::experiment::{self, Prepared};
use super::place;
use super::{map, peak, sweep};
use crate::cli::args::{Map, Study as Args, StudyMap, StudyOf, Sweep};
use crate::cli::axes::{AxisArg, TARGETS};
use crate::cli::options::{Results, StartArgs, Typed};
use crate::error::{Error, exit};
use crate::workload::keys::Table;
use crate::workload::load::Loaded;
use crate::workload::{Template, keys};
use crate::{output, shipped};

/// Runs one, or lists them.
///
/// # Errors
///
/// When the command line, a target or the result file does not allow it.
pub fn perform(args: &Args) -> Result<u8, Error> {
    let Some(which) = &args.which else { return list() };
    let (start, results) = common(which);
    results.leave_stdout();
    let (start, results) = (start.clone(), results.clone());
    let (prepared, _) = prepare(args, None)?;
    experiment::perform(prepared, &start, &results)
}

fn list() -> Result<u8, Error> {
    let longest = shipped::studies().map(str::len).max().unwrap_or_default();
    for name in shipped::studies() {
        output::say_folded(&format!("{name:<longest$}  {}", shipped::about(name)))?;
    }
    output::say("")?;
    output::say_folded(
        "`fathom study NAME TARGET --plan` shows what the study would do. `fathom workloads NAME > \
         my.toml` is a start for your own: `fathom study NAME my.toml TARGET`.",
    )?;
    Ok(exit::MEASURED)
}

/// The options of all of them.
fn common(which: &StudyOf) -> (&StartArgs, &Results) {
    match which {
        StudyOf::WriteConcurrency(sweep)
        | StudyOf::MultiStream(sweep)
        | StudyOf::AccessMix(sweep) => (&sweep.start, &sweep.results),
        StudyOf::Map(study) => (&study.map.start, &study.map.results),
        StudyOf::BestPractice(peak) => (&peak.start, &peak.results),
    }
}

/// Resolves a study's settings, with the seed of an earlier run if there is one.
///
/// # Errors
///
/// When none was named, one of its points is impossible, or a target does not exist.
pub fn prepare(args: &Args, seed: Option<u64>) -> Result<(Prepared, Results), Error> {
    let Some(which) = &args.which else {
        return Err(Error::option("fathom study", "no study was named", "see `fathom study`"));
    };
    on_one_machine(which)?;
    let prepared = match which {
        StudyOf::WriteConcurrency(sweep) => {
            let sweep = by_threads(sweep)?;
            let template = Template::read_or(&sweep.request, Some("write-concurrency"))?;
            let settled = sweep::settle(&sweep, &template, None, seed)?;
            settled.prepared(|sweep, targets| {
                let study = Study::new(sweep, Question::WriteConcurrency);
                let stripes = targets.first().and_then(|target| target.array()?.stripe);
                Box::new(study.over_stripes(stripes.map(|stripe| stripe.full)))
            })
        }
        StudyOf::MultiStream(sweep) => {
            side_by_side("multi-stream", sweep, seed, Question::MultiStream)?
        }
        StudyOf::AccessMix(sweep) => side_by_side("access-mix", sweep, seed, Question::AccessMix)?,
        StudyOf::Map(study) => map_of_a_spec(study, seed)?,
        StudyOf::BestPractice(args) => peak::prepare_best_practice(args, "best-practice", seed)?,
    };
    promises_nothing(&prepared)?;
    let (_, results) = common(which);
    Ok((Prepared { command: Command::Study, ..prepared }, results.clone()))
}

/// Refuses hosts: the studies are about the targets of one machine.
fn on_one_machine(which: &StudyOf) -> Result<(), Error> {
    let hosts = match which {
        StudyOf::WriteConcurrency(sweep)
        | StudyOf::MultiStream(sweep)
        | StudyOf::AccessMix(sweep) => &sweep.hosts,
        StudyOf::BestPractice(peak) => &peak.hosts,
        StudyOf::Map(_) => &None,
    };
    match hosts {
        None => Ok(()),
        Some(_) => {
            let problem = "the studies are about the targets of one machine";
            let remedy = "use `run`, `sweep`, `peak` or `sustain`";
            Err(Error::option("--hosts", problem, remedy))
        }
    }
}

/// The same, with one I/O of each thread in flight if the number of threads varies.
fn by_threads(args: &Sweep) -> Result<Sweep, Error> {
    let mut args = args.clone();
    let has = |name: &str| args.axis.iter().any(|axis| axis.name == name);
    if has("workers") && !has("queue-depth") {
        let each = AxisArg::new("queue-depth", &["1/worker"]);
        let each =
            each.map_err(|why| Error::option("--axis workers", why, "give queue-depth as well"))?;
        args.axis.push(each);
    }
    Ok(args)
}

/// Refuses a promise about the response time: a study compares settings, and which of them the promise
/// is about is open.
fn promises_nothing(prepared: &Prepared) -> Result<(), Error> {
    let mut points = prepared.grounds.iter().flat_map(|ground| &ground.spec.points);
    match points.find_map(|point| point.rated.response_time) {
        None => Ok(()),
        Some(promised) => Err(Error::option(
            format!("--promised-latency '{promised}'"),
            "a study compares settings, and the promise is about one of them",
            "drop it, or take `fathom run`, `fathom quick`, `fathom peak` or `fathom sustain`",
        )),
    }
}

/// A sweep over each of the named targets, one after the other.
fn side_by_side(
    name: &str,
    args: &Sweep,
    seed: Option<u64>,
    question: impl FnOnce(Vec<Drives>) -> Question,
) -> Result<Prepared, Error> {
    let template = Template::read_or(&args.request, Some(name))?;
    let paths: Vec<String> =
        template.targets().iter().map(|path| path.display().to_string()).collect();
    let targets = match paths.as_slice() {
        [] => None,
        _ => {
            let labels: Vec<&str> = paths.iter().map(String::as_str).collect();
            let axis = AxisArg::new(TARGETS, &labels);
            Some(axis.map_err(|why| Error::option("TARGET", why, "name every target once"))?)
        }
    };
    let settled = sweep::settle(args, &template, targets, seed)?;
    Ok(settled
        .prepared(|sweep, targets| Box::new(Study::new(sweep, question(Drives::all(targets))))))
}

/// A latency map with options from a spec, as far as they were not typed.
fn map_of_a_spec(args: &StudyMap, seed: Option<u64>) -> Result<Prepared, Error> {
    let name = args.workload.as_deref().unwrap_or("latency-map");
    let loaded = Loaded::read(name, &[])?;
    let Some(table) = loaded.table(Table::Map) else {
        let remedy = "give it a [map], as `fathom workloads latency-map` shows one";
        return Err(Error::option(name, "it describes no latency map", remedy));
    };
    let typed = |key: &str| args.typed.iter().any(|typed| typed.name == key);
    let mut words: Vec<String> = Vec::new();
    words.extend(table.iter().filter(|(key, _)| !typed(key)).flat_map(|(_, own)| own.clone()));
    let known = Table::Map.keys();
    let is_of_the_map = |name: &str| known.iter().any(|arg| arg.get_long() == Some(name));
    let own = args.typed.iter().filter(|typed| is_of_the_map(&typed.name));
    words.extend(own.map(Typed::word));
    let map = keys::read_map(&words, &args.map.target)
        .map_err(|why| Error::option("[map]", why, "change it in the spec"))?;
    // Diskplorer reads logical blocks of any size.
    let is_diskplorers = args.workload.is_none() && !typed("block-size");
    let block = place::logical_block(&args.map.target).filter(|_| is_diskplorers);
    let block_size = block.unwrap_or(map.block_size);
    let map = Map { block_size, consent: args.map.consent.clone(), ..map };
    let prepared = map::prepare(&map, seed)?;
    let described = document::Experiment { name: loaded.title().to_owned(), ..prepared.described };
    Ok(Prepared { described, ..prepared })
}
