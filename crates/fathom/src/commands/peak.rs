//! `fathom peak`: the search for the lowest setting that saturates the targets, or for the highest
//! load that meets an objective, and the official run at it.

use std::collections::BTreeMap;
use std::path::Path;

use fathom_core::experiment::{
    BestPractice, Circumstances, Experiment, Peak, Search, Vary, lowest, tied,
};
use fathom_core::facts::{Content, Target, TargetKind};
use fathom_core::figures::number;
use fathom_core::plan::worker_count;
use fathom_core::spec::{Point, Workers};
use fathom_core::{Bytes, Rate, Span};
use fathom_report::document::{self, Command};

use super::before::BeforeTrials;
use super::experiment::{self, Ground, Prepared, Writes};
use super::settled::Basis;
use super::{many_hosts, probe, this_machine};
use crate::cli::described::Described;
use crate::cli::rates::{self, Offer, Offered, Shares};
use crate::cli::searches::{Peak as Args, PeakArgs, VaryArg};
use crate::cli::values;
use crate::contents;
use crate::error::Error;
use crate::resolve;
use crate::workload::Asked;
use crate::workload::keys::{self, Table};

/// The default share of the best throughput that is enough.
const ENOUGH: f64 = 0.95;
/// The default tolerance of the highest load.
const TOLERANCE: f64 = 0.05;
/// The default load at which a search begins, as it is typed.
const START: &str = "1000";
/// The default queue depth of a search for the number of workers, as it is typed.
const ONE_EACH: &str = "1/worker";
/// The default limits of the queue depth, the workers and the load: as many as fit.
const DEEPEST: u32 = 1024;
const WORKERS: u32 = 256;
const LOAD: f64 = 1e7;

/// Runs it.
///
/// # Errors
///
/// When the command line, a target or the result file does not allow it.
pub fn perform(args: &Args) -> Result<u8, Error> {
    args.results.leave_stdout();
    experiment::perform(prepare(args, args.hosts.as_deref(), None)?, &args.start, &args.results)
}

/// Resolves its settings, for the hosts behind this socket if there is one, with the seed of an earlier
/// run if there is one.
///
/// # Errors
///
/// When an option contradicts another one, or a target is not there.
pub fn prepare(args: &Args, hosts: Option<&Path>, seed: Option<u64>) -> Result<Prepared, Error> {
    let asked = Asked::read_for(&args.request, Table::Peak)?;
    let args = &as_asked(args, &asked)?;
    if hosts.is_some() {
        many_hosts::refuse_what_is_local(&[("--trace", args.results.trace.is_some())])?;
    }
    settle(args, asked, (hosts, seed, false), |peak, _, _| Box::new(peak))
}

/// The typed options, completed by a `[peak]` of the workload.
fn as_asked(args: &Args, asked: &Asked) -> Result<Args, Error> {
    let search = match asked.words_of(Table::Peak, &args.request.typed) {
        Some(words) => keys::read_as::<PeakArgs>(&words)
            .map_err(|why| Error::option("[peak]", why, "change it in the workload file"))?,
        None => args.search.clone(),
    };
    Ok(Args { search, ..args.clone() })
}

/// The same by the procedure of DiskSpd's guide, with this workload unless another one was named:
/// as many threads as CPUs, small steps, and its checks.
///
/// # Errors
///
/// As [`prepare`].
pub fn prepare_best_practice(
    args: &Args,
    workload: &str,
    seed: Option<u64>,
) -> Result<Prepared, Error> {
    let mut asked = Asked::read_or(&args.request, workload)?;
    let args = &as_asked(args, &asked)?;
    let refuse = |option: &str, problem: &str| Err(Error::option(option, problem, "drop it"));
    if args.search.objective.is_some() {
        return refuse("--objective", "the guide's procedure looks for what saturates");
    }
    if args.search.vary.is_some() {
        return refuse("--vary", "the guide's procedure raises the queue depth");
    }
    let host = this_machine::this_host();
    let cpus = this_machine::machine(&host).cpus;
    if let [stream] = asked.described.streams.as_mut_slice()
        && !is_typed(args, "workers")
    {
        stream.load.workers = Workers::Total(cpus);
    }
    let official = args.search.official.0;
    let prepared = settle(args, asked, (None, seed, true), |peak, base, targets| {
        let is_simulated = targets.iter().any(|target| target.kind == TargetKind::Simulated);
        let memory = Some(host.memory).filter(|memory| !is_simulated && *memory > Bytes(0));
        let content = content(base, targets);
        let circumstances = Circumstances { cpus, memory, content, official };
        Box::new(BestPractice::new(peak, base.clone(), circumstances))
    })?;
    let point = &prepared.grounds[0].spec.points[0];
    let threads: u32 = point.streams.iter().map(worker_count).sum();
    let on = match tied(point) {
        0 => format!("{} on {}", counted(threads, "thread"), counted(cpus, "CPU")),
        tied => {
            let all = counted(cpus, "CPU");
            format!("{} tied to {tied} of {all}", counted(threads, "thread"))
        }
    };
    let mut about = prepared.about;
    about.insert(0, format!("{workload}: DiskSpd's guide, {on}"));
    let addressed: u64 =
        point.streams.iter().flat_map(|one| &one.regions).map(|one| one.length.0).sum();
    let targets = counted(prepared.targets.len() as u32, "target");
    about.insert(
        1,
        format!(
            "guide    a test file of 100 GB on each of 4 to 8 LUNs; here {targets}, {} in all",
            Bytes(addressed)
        ),
    );
    Ok(Prepared { about, ..prepared })
}

/// Resolves a search, perhaps by small steps, which may become part of something larger: that is
/// made from it, its first point and the targets.
fn settle(
    args: &Args,
    mut asked: Asked,
    (hosts, seed, small_steps): (Option<&Path>, Option<u64>, bool),
    experiment: impl FnOnce(Peak, &Point, &[Target]) -> Box<dyn Experiment>,
) -> Result<Prepared, Error> {
    contradictions(&args.search)?;
    if args.request.typed.iter().any(|typed| typed.name == "queue-depth") {
        depth_has_an_effect(&asked.described, &args.search)?;
    }
    let added = pace(&mut asked.described, &args.search)?;
    for stream in &mut asked.described.streams {
        stream.load.seed = seed.or(stream.load.seed);
    }
    let mut basis = match hosts {
        None => Basis::here(&mut asked)?,
        Some(socket) => many_hosts::basis(&args.request, &mut asked, &added, socket)?,
    };
    if small_steps && !is_typed(args, "workers") {
        a_thread_for_each_cpu(&mut basis.spec.points[0]);
    }
    let base = basis.spec.points[0].clone();
    let official = args.search.official.0;
    if let Some(window) = official {
        resolve::times::interval("--official", window, None)?;
    }
    let search = search(&args.search, &basis, official)?;
    let peak = Peak::new(base.clone(), search, official).on_hosts(basis.hosts());
    let peak = if small_steps { peak.by_small_steps() } else { peak };
    let mut about = about(&peak, &base, &search, (official, basis.hosts()));
    let Basis { host, spec, place, mut fleet } = basis;
    let (spec, refusal) = match &mut fleet {
        None => resolve::consent::permitted(spec, &asked.described),
        Some(fleet) => {
            let points = peak.forecast().points;
            let largest = Vec::from([peak.largest()]);
            about.push(many_hosts::rehearse(fleet, &args.request.consent, &largest, points)?);
            (spec, None)
        }
    };
    let refusal = refusal.map(|refusal| asked.explain_whole(refusal));
    let probes = match &place {
        Some(place) if official.is_some() && !args.search.no_probe => {
            probe::before(&base, place, spec.backend)
        }
        _ => Vec::new(),
    };
    let probed = probes.iter().map(|probe| probe.writes_at_most().0).sum();
    let time = peak.forecast().time_at_most;
    let long = Point { warm_up: Span(0), cool_down: Span(0), window: time, ..unpaced(&base) };
    let writes = Writes::of(std::iter::once((&long, 1)), &spec.targets);
    let axis = peak.axis();
    Ok(Prepared {
        command: Command::Peak,
        writes: writes.map(|writes| writes.beside(Bytes(probed))),
        probes,
        about,
        written_before: false,
        described: document::Experiment {
            name: asked.source().unwrap_or("peak").to_owned(),
            base: base.clone(),
            axes: Vec::from([axis]),
            settings: settings(&search, official),
        },
        seed: base.seed,
        targets: spec.targets.clone(),
        experiment: experiment(peak, &base, &spec.targets),
        fleet,
        before: BeforeTrials::default(),
        grounds: place.map(|place| Ground { place, spec }).into_iter().collect(),
        which: Box::new(|_| 0),
        host,
        refusal,
    })
}

/// Samples of all data that a point reads, together.
fn content(point: &Point, targets: &[Target]) -> Option<Content> {
    let points = std::slice::from_ref(point);
    let known = contents::looked_at(targets, [(targets, points)], point.seed);
    let each = known.iter().filter_map(|target| target.content.filter(|one| 0 < one.samples));
    each.reduce(|sum, one| Content {
        samples: sum.samples + one.samples,
        zeros: sum.zeros + one.zeros,
        patterned: sum.patterned + one.patterned,
        equal: sum.equal + one.equal,
        ..sum
    })
}

/// "1 CPU", "2 CPUs".
fn counted(number: u32, noun: &str) -> String {
    if number == 1 { format!("1 {noun}") } else { format!("{number} {noun}s") }
}

fn is_typed(args: &Args, option: &str) -> bool {
    args.request.typed.iter().any(|typed| typed.name == option)
}

/// By the guide there are as many threads as CPUs, or as CPUs to which they are tied.
fn a_thread_for_each_cpu(point: &mut Point) {
    if let (tied @ 1.., [stream]) = (tied(point), point.streams.as_mut_slice()) {
        stream.workers = Workers::Total(tied);
        let queue_depth = stream.pacing.queue_depth().max(tied);
        stream.pacing = stream.pacing.closed_at(queue_depth);
    }
}

/// Contradictions that do not depend on the targets.
fn contradictions(typed: &PeakArgs) -> Result<(), Error> {
    let refuse =
        |option: &str, problem: &str, remedy: &str| Err(Error::option(option, problem, remedy));
    match typed.objective {
        Some(_) if typed.vary.is_some() => {
            return refuse("--vary", "with --objective the load varies", "drop it");
        }
        Some(_) if typed.enough.is_some() => {
            return refuse(
                "--enough",
                "a search with --objective does not look for saturation",
                "use --tolerance",
            );
        }
        None if typed.tolerance.is_some() => {
            return refuse("--tolerance", "it belongs to --objective", "use --enough");
        }
        _ => {}
    }
    for (option, share) in [("--enough", typed.enough), ("--tolerance", typed.tolerance)] {
        if let Some(share) = share.filter(|share| !(0.01..=0.99).contains(share)) {
            return Err(Error::option(
                format!("{option} {share}"),
                "it must be from 1% to 99%",
                "choose another one",
            ));
        }
    }
    Ok(())
}

/// Refuses a queue depth if that is the subject of the search.
fn depth_has_an_effect(described: &Described, typed: &PeakArgs) -> Result<(), Error> {
    let varies = typed.vary.is_none_or(|vary| vary == VaryArg::QueueDepth);
    match typed.objective.is_none() && varies && described.streams.len() == 1 {
        true => Err(Error::option(
            "--queue-depth",
            "the search varies it, so this has no effect",
            "drop it, or bound it with --up-to",
        )),
        false => Ok(()),
    }
}

/// Opens the loops if there is an objective, and refuses schedules if there is none: returns what it
/// added to the description, as options.
fn pace(
    described: &mut Described,
    typed: &PeakArgs,
) -> Result<Vec<(&'static str, &'static str)>, Error> {
    let several = described.streams.len() > 1;
    let mut added = Vec::new();
    for stream in &mut described.streams {
        if typed.vary == Some(VaryArg::Workers) && stream.load.queue_depth.is_none() {
            stream.load.queue_depth = values::depth(ONE_EACH).ok();
            added.push(("queue-depth", ONE_EACH));
        }
        let whose = stream.name.as_ref().filter(|_| several);
        let whose = whose.map_or(String::new(), |name| format!("stream {name}: "));
        match (typed.objective, &stream.load.rate) {
            (None, Some(_)) => {
                return Err(Error::option(
                    format!("{whose}--rate"),
                    "a search for saturation uses a closed loop, which has no rate",
                    "drop it, or search for a load with --objective 'p99<=2ms'",
                ));
            }
            (Some(_), None) if several => {
                return Err(Error::option(
                    format!("{whose}--rate"),
                    "the streams share the load in the ratio of their rates, and this one has none",
                    "give every stream a rate",
                ));
            }
            (Some(_), Some(Offered::Course(_))) => {
                return Err(Error::option(
                    format!("{whose}--rate"),
                    "the search is for a constant load, and this one changes over time",
                    "give the rate that the search begins with",
                ));
            }
            (Some(_), None) => {
                stream.load.rate = rates::offered(START).ok();
                added.push(("rate", START));
            }
            _ => {}
        }
    }
    Ok(added)
}

/// The subject of the search, up to the typed or possible limit.
fn search(typed: &PeakArgs, basis: &Basis, official: Option<Span>) -> Result<Search, Error> {
    let base = &basis.spec.points[0];
    if let Some(objective) = typed.objective {
        let up_to = Rate(highest_load(typed, base, official)?);
        let tolerance = typed.tolerance.unwrap_or(TOLERANCE);
        return Ok(Search::Load { objective, up_to, tolerance });
    }
    let vary = typed.vary.map_or(Vary::QueueDepth, Vary::from);
    if vary == Vary::Workers && base.streams.len() > 1 {
        return Err(Error::option(
            "--vary workers",
            "there are several streams, and nothing says how many each has",
            "vary the queue depth, or search with one stream",
        ));
    }
    let enough = typed.enough.unwrap_or(ENOUGH);
    let least = lowest(base, vary);
    let with = |up_to| Search::Saturation { vary, up_to, enough };
    let fits = |up_to| {
        let peak = Peak::new(base.clone(), with(up_to), official);
        basis.fits(&peak.largest())
    };
    if let Some(text) = &typed.up_to {
        let up_to = values::count(text).map_err(|why| {
            Error::option(format!("--up-to {text}"), why, "write a whole number such as 256")
        })?;
        if up_to < least {
            return Err(Error::option(
                format!("--up-to {up_to}"),
                format!("the workers need a queue depth of {least}"),
                "choose more",
            ));
        }
        fits(up_to)?;
        return Ok(with(up_to));
    }
    let most = if vary == Vary::Workers { WORKERS } else { DEEPEST };
    let mut up_to = most.max(least);
    while least < up_to && fits(up_to).is_err() {
        up_to = (up_to / 2).max(least);
    }
    fits(up_to)?;
    Ok(with(up_to))
}

/// The typed end of a search for a load, or the usual one.
fn highest_load(typed: &PeakArgs, base: &Point, official: Option<Span>) -> Result<f64, Error> {
    let Some(text) = &typed.up_to else { return Ok(LOAD) };
    let refuse =
        |why: String| Error::option(format!("--up-to {text}"), why, "write a load such as 100k");
    let offered = rates::offered(text).map_err(refuse)?;
    let stream = &base.streams[0];
    let shares = Shares {
        workers: u64::from(worker_count(stream)),
        targets: stream.regions.len() as u64,
        block: stream.block_sizes().mean(stream.read_share()),
    };
    match offered.of_stream(shares) {
        Offer::Steady(rate) => {
            let time = base.warm_up + base.window.max(official.unwrap_or_default());
            resolve::countable("--up-to", rate, (rate.0 * time.as_secs_f64(), time))?;
            Ok(rate.0)
        }
        Offer::Course(..) => Err(refuse("it changes over time".to_owned())),
    }
}

/// The point with the pace of the usual speed of such targets, for the forecast of its writes.
fn unpaced(base: &Point) -> Point {
    let mut point = base.clone();
    for stream in &mut point.streams {
        stream.pacing = stream.pacing.closed_at(stream.pacing.queue_depth());
    }
    point
}

fn about(
    peak: &Peak,
    base: &Point,
    search: &Search,
    (official, hosts): (Option<Span>, u32),
) -> Vec<String> {
    let each = if hosts == 1 { "" } else { " on each host" };
    let what = match search {
        Search::Saturation { vary, up_to, enough } => {
            let what = match vary {
                Vary::QueueDepth => "queue depth",
                Vary::Workers => "number of workers",
            };
            format!(
                "peak: the lowest {what}{each} that gives {} % of the best, from {} to {up_to}",
                (enough * 1000.0).round() / 10.0,
                lowest(base, *vary)
            )
        }
        Search::Load { objective, up_to, .. } => {
            let up_to = number(up_to.0);
            format!("peak: the highest load{each} at which {objective}, up to {up_to}/s")
        }
    };
    let load = match base.streams.as_slice() {
        [only] => only.load_in_words(),
        several => format!("{}: {} streams", base.name, several.len()),
    };
    let last = match official {
        Some(window) => format!("then an official run of {window}"),
        None => "no official run".to_owned(),
    };
    let longer = match search {
        Search::Saturation { .. } if hosts == 1 => " or less where clearly worse",
        Search::Saturation { .. } => "",
        Search::Load { .. } => " or more, as the percentile needs",
    };
    let window = peak.point(1.0).window.min(base.window);
    Vec::from([
        what,
        format!("load     {load}"),
        format!("probes   up to {} of {window}{longer}; {last}", peak.probes_at_most()),
    ])
}

/// The settings for the result file, by the names of their options.
fn settings(search: &Search, official: Option<Span>) -> BTreeMap<String, String> {
    let official = official.map_or("none".to_owned(), |window| window.to_string());
    let mut pairs = Vec::from([("official", official)]);
    match search {
        Search::Saturation { vary, up_to, enough } => pairs.extend([
            ("vary", vary.name().to_owned()),
            ("up-to", up_to.to_string()),
            ("enough", enough.to_string()),
        ]),
        Search::Load { objective, up_to, tolerance } => pairs.extend([
            ("objective", objective.to_string()),
            ("up-to", up_to.0.to_string()),
            ("tolerance", tolerance.to_string()),
        ]),
    }
    pairs.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}
