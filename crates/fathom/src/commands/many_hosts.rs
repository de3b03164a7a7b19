//! `--hosts`: loads on many hosts at the same time. `run`, `sweep` and `plan` over them are here, and what
//! the searches need of them.

use std::path::{Path, PathBuf};

use fathom_core::experiment::{Candidate, Experiment, Forecast, PointSequence};
use fathom_core::facts::Target;
use fathom_core::figures::time;
use fathom_core::spec::{Point, Stream};
use fathom_core::trial::Coordinate;
use fathom_report::document::Command;
use fathom_report::figures;

use super::experiment::{self, Prepared};
use super::measure;
use super::outputs::Outputs;
use super::settled::Basis;
use super::sweep;
use super::this_machine;
use crate::agent::message::PreparedHere;
use crate::cli::args::{Plan, Run, Sweep};
use crate::cli::axes::{ALL_HOSTS, AxisArg, HOSTS};
use crate::cli::options::{Consent, Request};
use crate::error::{Error, exit};
use crate::hosts::{Fleet, HostLoad, Router};
use crate::live::Live;
use crate::resolve::{self, Machine};
use crate::session::{self, Course, Machines, Session};
use crate::workload::{Asked, Template};
use crate::{output, signals};

/// Runs it.
///
/// # Errors
///
/// When the command line, a host, a target or the result file does not allow it.
pub fn run(args: &Run, socket: &Path) -> Result<u8, Error> {
    refuse_what_is_local(&[("--watch", args.watch), ("--trace", args.results.trace.is_some())])?;
    args.results.leave_stdout();
    let here = this_machine::this_host();
    let template = Template::read(&args.request)?;
    template.is_of(None)?;
    let load = load(&args.request, &template, this_machine::machine(&here).fresh_seed)?;
    let seed = load.seed();
    signals::be_orderly();
    let repeats = args.repeated.repeats;
    let mut fleet = Fleet::gather(Router::connect(socket)?, load, repeats)?;
    let prepared = fleet.plan(&[])?;
    announce(&fleet, &prepared, repeats)?;
    let targets = facts(&prepared[0]);
    let mut experiment = PointSequence::new(vec![prepared[0].point.clone()]).repeated(repeats);
    let Forecast { points, time, .. } = experiment.forecast();
    let (outputs, mut journal) = Outputs::create("run", &targets[0].name, &args.results, false)?;
    let mut live = Live::new(points as usize, time);
    let hosts = fleet.described();
    let machines = Machines { host: None, hosts: &hosts, targets: &targets };
    session::begin(&mut journal, Command::Run, machines, seed, points, None)?;
    let first = fleet.facts(0).clone();
    let mut session = Session { host: &first, targets: &targets, carrier: &mut fleet };
    let outcome = session.run(&mut experiment, Course::new(None), &mut journal, &mut live);
    live.finish();
    measure::finish(outcome, &outputs, journal, |_| Ok(()))
}

/// Shows what every host would do: reaches each of them, compares versions and clocks, and has each look
/// at its targets. Nothing is written.
///
/// # Errors
///
/// When a host cannot be reached, or would refuse.
pub fn plan(args: &Plan, socket: &Path) -> Result<u8, Error> {
    let (request, repeats) = (&args.request, args.repeated.repeats);
    let here = this_machine::this_host();
    let template = Template::read(request)?;
    template.is_of(None)?;
    let load = load(request, &template, this_machine::machine(&here).fresh_seed)?;
    signals::be_orderly();
    let mut fleet = Fleet::gather(Router::connect(socket)?, load, repeats)?;
    let prepared = fleet.plan(&[])?;
    announce(&fleet, &prepared, repeats)?;
    let bytes = fleet.bytes();
    for (host, one) in prepared.iter().enumerate() {
        let clock = fleet.offset(host).map_or(String::new(), |offset| {
            let ahead = if offset.ns < 0 { "behind" } else { "ahead" };
            let by = time(offset.ns.unsigned_abs() as f64);
            format!("; clock {by} {ahead}, known to within {}", time(offset.bound.0 as f64))
        });
        output::say("")?;
        output::say_folded(&format!(
            "{}: {}{clock}",
            fleet.names()[host],
            figures::host(fleet.facts(host))
        ))?;
        for (number, target) in one.targets.iter().enumerate() {
            let writes = if target.is_overwritten { "; OVERWRITTEN" } else { "" };
            let stack = figures::stack(&target.facts);
            output::say_folded(&format!("  target {}: {stack}{writes}", target.facts.name))?;
            if let Some(own) = bytes_of(&bytes, host, number) {
                output::say_folded(&format!("    only {own}"))?;
            }
        }
    }
    output::say("")?;
    output::say("nothing was written, and nothing started: all hosts are ready")?;
    Ok(exit::MEASURED)
}

/// Sweeps over settings, and over the number of hosts.
///
/// # Errors
///
/// When the command line, a combination, a host, a target or the result file does not allow it.
pub fn sweep(args: &Sweep, socket: &Path) -> Result<u8, Error> {
    args.results.leave_stdout();
    experiment::perform(prepare_sweep(args, socket, None)?, &args.start, &args.results)
}

/// Resolves its settings on the hosts, with the seed of an earlier run if there is one.
///
/// # Errors
///
/// As [`sweep`].
pub fn prepare_sweep(args: &Sweep, socket: &Path, seed: Option<u64>) -> Result<Prepared, Error> {
    let template = Template::read(&args.request)?;
    let (axes, course) = sweep::asked(args, &template)?;
    refuse_what_is_local(&[
        ("--trace", args.results.trace.is_some()),
        ("--prepare", course.prepare.is_some()),
    ])?;
    let own = Request::load_options();
    let is_possible =
        |axis: &&AxisArg| axis.name == HOSTS || (own.contains(&axis.name) && axis.name != "seed");
    if let Some(axis) = axes.iter().find(|axis| !is_possible(axis)) {
        return Err(Error::option(
            format!("--axis {}", axis.name),
            "with --hosts only options of `fathom run` and hosts can vary",
            "choose one of those",
        ));
    }
    let here = this_machine::this_host();
    let fresh_seed = seed.unwrap_or_else(|| this_machine::machine(&here).fresh_seed);
    let load = load(&args.request, &template, fresh_seed)?.of_experiment(&[]);
    signals::be_orderly();
    let points = axes.iter().map(|axis| axis.labels.len()).product::<usize>() as u32;
    let mut fleet = Fleet::gather(Router::connect(socket)?, load, points)?;
    let axes = axes
        .into_iter()
        .map(|axis| counted(axis, fleet.names().len()))
        .collect::<Result<Vec<_>, Error>>()?;
    let mut candidates = Vec::new();
    let mut written: Option<(Vec<PreparedHere>, Vec<Vec<String>>)> = None;
    let mut targets: Vec<Target> = Vec::new();
    for named in sweep::combinations(&axes)? {
        let coordinates: Vec<Coordinate> = named.iter().map(sweep::coordinate).collect();
        let prepared = fleet.plan(&coordinates).map_err(|error| sweep::at(error, &named))?;
        if prepared.iter().any(writes) {
            let bytes = fleet.undivided_bytes();
            match &mut written {
                None => written = Some((prepared.clone(), bytes)),
                // No bytes are named then, as those of one point are not those of all.
                Some((_, known)) if *known != bytes => known.clear(),
                Some(_) => {}
            }
        }
        targets = facts(&prepared[0]);
        let point = Point { name: sweep::name(&named), ..prepared[0].point.clone() };
        let once = course
            .once
            .iter()
            .any(|(axis, label)| named.contains(&(axis.as_str(), label.as_str())));
        candidates.push(Candidate { point, coordinates, once });
    }
    has_effect(&args.request.consent, candidates.iter().map(|one| &one.point))?;
    if let Some((prepared, bytes)) = written {
        overwritten(&fleet, &prepared, &bytes)?;
    }
    let name = template.name().unwrap_or("sweep").to_owned();
    let first = (fleet.facts(0).clone(), targets);
    let mut prepared = sweep::on_hosts((name, axes, course), candidates, first);
    prepared.about.push(hosts_in_a_line(&fleet));
    Ok(Prepared { fleet: Some(fleet), ..prepared })
}

/// The load for the hosts, once the workload is known to be one here.
fn load(request: &Request, template: &Template<'_>, fresh_seed: u64) -> Result<HostLoad, Error> {
    let described = template.describe(&[])?.described;
    let seed = described.streams.iter().find_map(|stream| stream.load.seed);
    HostLoad::new(request, seed, fresh_seed)
}

/// The load that an experiment makes its points of, resolved here for the targets of the first host, as
/// it would be there. Every host gets each point in full, and these options beside the typed ones, so
/// that its words describe all that such a point may do.
///
/// # Errors
///
/// When the command line, a host or a target does not allow it.
pub fn basis(
    request: &Request,
    asked: &mut Asked,
    options: &[(&str, &str)],
    socket: &Path,
) -> Result<Basis, Error> {
    resolve::by_host::refuse_with_points(&asked.described).map_err(|blame| asked.explain(blame))?;
    let here = this_machine::this_host();
    let fresh_seed = this_machine::machine(&here).fresh_seed;
    let described_seed = asked.described.streams.iter().find_map(|stream| stream.load.seed);
    let load = HostLoad::new(request, described_seed, fresh_seed)?.of_experiment(options);
    let seed = load.seed();
    signals::be_orderly();
    let mut fleet = Fleet::gather(Router::connect(socket)?, load, 1)?;
    let prepared = fleet.plan(&[])?;
    let targets = facts(&prepared[0]);
    let first = &fleet.names()[0];
    let found: Vec<&str> = targets.iter().map(|target| &*target.name).collect();
    asked.described.locate(|path| {
        let named = HostLoad::here(&path.to_string_lossy(), first, 0);
        let within = |name: &&&str| Path::new(name).starts_with(&named) && **name != named;
        let files: Vec<PathBuf> = found.iter().filter(within).map(PathBuf::from).collect();
        Ok(Some(files).filter(|files| !files.is_empty()))
    })?;
    let host = fleet.facts(0).clone();
    let machine = Machine { fresh_seed: seed, ..this_machine::machine(&host) };
    let spec = resolve::settle(&asked.described, targets, machine);
    let spec = spec.map_err(|blame| asked.explain(blame))?;
    Ok(Basis { host, spec, place: None, fleet: Some(fleet) })
}

/// Has every host prepare these points, so that one that refuses any of them does so before the first;
/// says what is overwritten, and how many points there are. Returns a line about the hosts.
///
/// # Errors
///
/// When a host refuses, or a consent has no effect.
pub fn rehearse(
    fleet: &mut Fleet,
    consent: &Consent,
    points: &[Point],
    planned: u32,
) -> Result<String, Error> {
    has_effect(consent, points.iter())?;
    let mut is_told = false;
    for point in points {
        let prepared = fleet.plan_made(point)?;
        if !is_told && prepared.iter().any(writes) {
            overwritten(fleet, &prepared, &[])?;
            is_told = true;
        }
    }
    fleet.plans(planned);
    Ok(hosts_in_a_line(fleet))
}

/// Whether a host would write.
fn writes(prepared: &PreparedHere) -> bool {
    prepared.targets.iter().any(|target| target.is_overwritten)
}

fn hosts_in_a_line(fleet: &Fleet) -> String {
    format!("hosts    {}: {}", fleet.names().len(), fleet.names().join(", "))
}

/// Refuses a consent that none of an experiment's points needs.
fn has_effect<'p>(
    consent: &Consent,
    mut points: impl Iterator<Item = &'p Point>,
) -> Result<(), Error> {
    let writes = |point: &Point| point.streams.iter().any(Stream::destroys);
    match consent.first() {
        Some(option) if !points.any(writes) => Err(Error::option(
            option,
            "all I/Os are reads, so this has no effect",
            "drop it, or ask for writes with --read-share",
        )),
        _ => Ok(()),
    }
}

/// An axis of hosts with as many as there are in the place of "N".
fn counted(axis: AxisArg, hosts: usize) -> Result<AxisArg, Error> {
    if axis.name != HOSTS {
        return Ok(axis);
    }
    let option = format!("--axis {HOSTS}={}", axis.labels.join(","));
    let labels: Vec<String> =
        axis.labels.iter().map(|label| label.replace(ALL_HOSTS, &hosts.to_string())).collect();
    let labels: Vec<&str> = labels.iter().map(String::as_str).collect();
    let axis = AxisArg::new(HOSTS, &labels)
        .map_err(|why| Error::option(&option, why, "write hosts=1,2,4..N"))?;
    let is_possible = |label: &String| label.parse::<usize>().is_ok_and(|n| 1 <= n && n <= hosts);
    match axis.labels.iter().find(|label| !is_possible(label)) {
        None => Ok(axis),
        Some(label) => Err(Error::option(
            option,
            format!("{label} is no number of hosts from 1 to {hosts}"),
            "name more hosts, or choose fewer",
        )),
    }
}

fn facts(prepared: &PreparedHere) -> Vec<Target> {
    prepared.targets.iter().map(|target| target.facts.clone()).collect()
}

/// Refuses the first of these options that was typed: only one machine can do what it asks for.
///
/// # Errors
///
/// When there is one.
pub fn refuse_what_is_local(typed: &[(&str, bool)]) -> Result<(), Error> {
    match typed.iter().find(|(_, typed)| *typed) {
        None => Ok(()),
        Some((option, _)) => {
            let problem = "it is for one machine, and --hosts is for several";
            Err(Error::option(*option, problem, "leave it out"))
        }
    }
}

/// Says what all hosts are about to do.
fn announce(fleet: &Fleet, prepared: &[PreparedHere], repeats: u32) -> Result<(), Error> {
    let names = fleet.names();
    output::say_folded(&format!("{} hosts: {}", names.len(), names.join(", ")))?;
    for line in &prepared[0].plan {
        output::say_folded(line)?;
    }
    if 1 < repeats {
        // The agents plan one trial at a time.
        output::say(&format!("all of this {repeats} times, as {repeats} trials"))?;
    }
    overwritten(fleet, prepared, &fleet.bytes())?;
    let bound = time(fleet.clock_bound().0 as f64);
    output::say_folded(&format!(
        "begins on all hosts together; their clocks are known to within {bound}"
    ))
}

/// Names every target of every host that would be overwritten, and which bytes of it if hosts divide
/// them.
fn overwritten(
    fleet: &Fleet,
    prepared: &[PreparedHere],
    bytes: &[Vec<String>],
) -> Result<(), Error> {
    for (place, (host, one)) in fleet.names().iter().zip(prepared).enumerate() {
        for (number, target) in one.targets.iter().enumerate() {
            if target.is_overwritten {
                let own = bytes_of(bytes, place, number);
                let own = own.map_or(String::new(), |bytes| format!(", {bytes}"));
                let stack = figures::stack(&target.facts);
                let path = &target.facts.path;
                output::say_folded(&format!("OVERWRITES on {host}: {path}{own}: {stack}"))?;
            }
        }
    }
    Ok(())
}

/// The bytes of a host's target, if the hosts divide any.
fn bytes_of(bytes: &[Vec<String>], host: usize, target: usize) -> Option<&str> {
    let own = bytes.get(host)?.get(target)?;
    (!own.is_empty()).then_some(own)
}
