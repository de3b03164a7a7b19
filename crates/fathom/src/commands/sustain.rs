//! `fathom sustain`: preconditioning, then rounds until a steady state: of any workload, or of the
//! SNIA performance tests.

use std::collections::BTreeMap;
use std::path::Path;

use fathom_core::experiment::{
    Axis, Experiment, Scale, Sustain, Test, TestSettings, Until, Watch, test_plan,
};
use fathom_core::facts::{Target, TargetKind};
use fathom_core::spec::{Access, Cache, Point, Stream};
use fathom_core::{Bytes, Span, typed_path};
use fathom_report::document::{self, Command};

use super::before::BeforeTrials;
use super::experiment::{self, Ground, Prepared, Writes};
use super::many_hosts;
use super::place::{self, Place};
use super::settled::Basis;
use crate::cli::described::Described;
use crate::cli::searches::{Sustain as Args, SustainArgs};
use crate::error::Error;
use crate::hosts::Fleet;
use crate::resolve::{self, Spec};
use crate::workload::Asked;
use crate::workload::keys::{self, Table};

/// The settings that a test fixes, so that they cannot be typed.
const OF_THE_TEST: [&str; 13] = [
    "block-size",
    "write-block-size",
    "read-share",
    "pattern",
    "align",
    "no-repeat",
    "part",
    "zones",
    "weights",
    "start-distance",
    "rate",
    "arrivals",
    "realtime",
];

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
    let mut asked = Asked::read_for(&args.request, Table::Sustain)?;
    let args = &as_asked(args, &asked)?;
    let test = args.course.test;
    contradictions(args, &asked)?;
    for stream in &mut asked.described.streams {
        stream.load.seed = seed.or(stream.load.seed);
        if test != Test::Workload {
            // The points of a test write, even if the load itself does not.
            stream.load.read_share = 0.0;
        }
    }
    let basis = match hosts {
        None => Basis::here(&mut asked)?,
        Some(socket) => on_hosts(args, &mut asked, socket)?,
    };
    if basis.spec.streams().any(|stream| stream.access.atomic) {
        return Err(Error::option(
            "--atomic",
            "writes beforehand and the rounds of a test have blocks of other sizes",
            "drop it, or measure with `fathom run`",
        ));
    }
    let settings = settings(&args.course, &basis);
    let base = basis.spec.points[0].clone();
    let sustain = Sustain::new(test_plan(test, &base, settings)).on_hosts(basis.hosts());
    let points = sustain.points();
    points.iter().try_for_each(|point| basis.fits(point))?;
    let mut about = about(&sustain, test, &settings, basis.hosts());
    let Basis { host, spec, place, mut fleet } = basis;
    let spec = Spec { points, ..spec };
    let (spec, refusal) = match &mut fleet {
        None => permitted(test, spec, &asked),
        Some(fleet) => {
            let each = one_of_each(&spec.points);
            let planned = sustain.forecast().points;
            about.push(many_hosts::rehearse(fleet, &args.request.consent, &each, planned)?);
            (spec, None)
        }
    };
    let (grounds, layouts) = place.map_or_else(Default::default, |place| grounds(&place, &spec));
    Ok(Prepared {
        command: Command::Sustain,
        writes: writes(&sustain, &spec.targets),
        about,
        written_before: 0 < settings.passes,
        described: document::Experiment {
            name: test.name().to_owned(),
            base: base.clone(),
            axes: axes(&sustain),
            settings: in_words(&settings, test),
        },
        seed: base.seed,
        targets: spec.targets,
        fleet,
        before: BeforeTrials::default(),
        grounds,
        which: Box::new(move |planned| {
            let layout = layout(&planned.point);
            layouts.iter().position(|known| *known == layout).unwrap_or(0)
        }),
        experiment: Box::new(sustain),
        host,
        probes: Vec::new(),
        refusal,
    })
}

/// The load on many hosts. Those hear from its words that a test writes.
fn on_hosts(args: &Args, asked: &mut Asked, socket: &Path) -> Result<Basis, Error> {
    many_hosts::refuse_what_is_local(&[("--trace", args.results.trace.is_some())])?;
    let test = args.course.test;
    let target = args.request.targets.first();
    let is_simulated = target.is_some_and(|path| place::simulated(path).is_some());
    if test != Test::Workload && !is_simulated && args.request.consent.first().is_none() {
        return Err(Error::target(
            target.map_or_else(|| "TARGET".to_owned(), |path| path.display().to_string()),
            writes_in_words(test),
            "allow it with --overwrite, or a device with --destroy HOST:DEVICE for each host, or sustain \
             reads with --test workload",
        ));
    }
    let added = [("read-share", "0%")];
    let added = if test == Test::Workload { &[][..] } else { &added };
    many_hosts::basis(&args.request, asked, added, socket)
}

/// The spec with its consent, and the refusal if there is none.
fn permitted(test: Test, spec: Spec, asked: &Asked) -> (Spec, Option<Error>) {
    let (spec, refusal) = resolve::consent::permitted(spec, &asked.described);
    let refusal = refusal.map(|refusal| asked.explain_whole(refusal));
    let refusal = consent(test, &spec, &asked.described).err().or(refusal);
    (spec, refusal)
}

/// One of the points for each way in which targets are opened, and written to.
fn one_of_each(points: &[Point]) -> Vec<Point> {
    let mut each: Vec<Point> = Vec::new();
    let way = |point: &Point| (layout(point), point.streams.iter().any(Stream::destroys));
    for point in points {
        if each.iter().all(|known| way(known) != way(point)) {
            each.push(point.clone());
        }
    }
    each
}

/// The typed options, completed by a `[sustain]` of the workload.
fn as_asked(args: &Args, asked: &Asked) -> Result<Args, Error> {
    let course = match asked.words_of(Table::Sustain, &args.request.typed) {
        Some(words) => keys::read_as::<SustainArgs>(&words)
            .map_err(|why| Error::option("[sustain]", why, "change it in the workload file"))?,
        None => args.course.clone(),
    };
    Ok(Args { course, ..args.clone() })
}

/// Contradictions that do not depend on the targets.
fn contradictions(args: &Args, asked: &Asked) -> Result<(), Error> {
    let (course, test) = (&args.course, args.course.test);
    if test == Test::Workload {
        if course.length.is_some() {
            return Err(Error::option(
                "--for",
                "rounds of a workload end when they are steady",
                "drop it, or set their shortest time with --at-least",
            ));
        }
        return Ok(());
    }
    if let Some(name) = asked.source() {
        return Err(Error::option(
            name,
            format!("the test {} has a load of its own", test.name()),
            "drop it, or use --test workload",
        ));
    }
    let typed = |name: &&str| args.request.typed.iter().any(|typed| typed.name == **name);
    if let Some(name) = OF_THE_TEST.iter().find(|name| typed(name)) {
        return Err(Error::option(
            format!("--{name}"),
            format!("the test {} sets it", test.name()),
            "drop it, or use --test workload",
        ));
    }
    if course.length.is_some() && !test.has_length() {
        return Err(Error::option(
            "--for",
            format!("the test {} ends when its rounds are steady", test.name()),
            "drop it",
        ));
    }
    Ok(())
}

/// The settings of a test: the typed ones, completed by those of the test and the targets.
fn settings(typed: &SustainArgs, basis: &Basis) -> TestSettings {
    let spec = &basis.spec;
    let reads_only = !spec.writes();
    let passes = match typed.test {
        // A load that only reads should read the existing data.
        Test::Workload if reads_only => 0,
        test => test.passes(),
    };
    let direct = spec.streams().any(|stream| stream.access.cache == Cache::Direct);
    let alignment = |target: &Target| target.direct_alignment.filter(|_| direct);
    let of_hosts = basis.fleet.iter().flat_map(Fleet::targets);
    let coarsest = spec.targets.iter().chain(of_hosts).filter_map(alignment).max();
    TestSettings {
        passes: typed.precondition.map_or(passes, |typed| typed.0),
        watch: typed.watch.unwrap_or(typed.test.watch()),
        at_least: typed.at_least,
        rounds: typed.rounds,
        length: typed.length,
        smallest_block: coarsest.unwrap_or(Bytes(512)),
    }
}

/// Refuses a test that writes without consent, in words about the test.
fn consent(test: Test, spec: &Spec, described: &Described) -> Result<(), Error> {
    let typed = &described.consent;
    let is_simulated = spec.targets.iter().any(|one| one.kind == TargetKind::Simulated);
    if test == Test::Workload || is_simulated || typed.first().is_some() {
        return Ok(());
    }
    let target = &spec.targets[0];
    let allow = match resolve::consent::is_device(target) {
        true => format!("allow it by repeating its name in --destroy {}", typed_path(&target.name)),
        false => "allow it with --overwrite".to_owned(),
    };
    Err(Error::target(
        &target.name,
        writes_in_words(test),
        format!("{allow}, or sustain reads with --test workload"),
    ))
}

fn writes_in_words(test: Test) -> String {
    format!("the test {} writes to it, and its data would be lost", test.name())
}

/// The access of a point's streams to their targets, which decides what is opened for it.
type Layout = Vec<(Access, Vec<u32>)>;

fn layout(point: &Point) -> Layout {
    let streams = point
        .streams
        .iter()
        .map(|stream| (stream.access, stream.regions.iter().map(|region| region.target).collect()));
    streams.collect()
}

/// The points, grouped by the targets that are opened for them.
fn grounds(place: &Place, spec: &Spec) -> (Vec<Ground>, Vec<Layout>) {
    let mut layouts: Vec<Layout> = Vec::new();
    let mut grounds: Vec<Ground> = Vec::new();
    for point in &spec.points {
        let layout = layout(point);
        match layouts.iter().position(|known| *known == layout) {
            Some(known) => grounds[known].spec.points.push(point.clone()),
            None => {
                let points = Vec::from([point.clone()]);
                let spec = Spec { points, ..spec.clone() };
                grounds.push(Ground { place: place.clone(), spec });
                layouts.push(layout);
            }
        }
    }
    (grounds, layouts)
}

/// The bytes of preconditioning, and the forecast for the rest of the time.
fn writes(sustain: &Sustain, targets: &[Target]) -> Option<Writes> {
    let course = sustain.plan();
    let before = sustain.preconditioning();
    let rounds = sustain.rounds_at_most();
    let round = course.round.iter().map(|cell| (&cell.point, rounds));
    let script = course.script.iter().map(|planned| (&planned.point, 1));
    // Independently of the speed of a target, the rounds end when they have written enough.
    let capped = |writes: Writes| match course.until {
        Until::Steady { .. } => writes,
        Until::Over { bytes, .. } => {
            let once = course.round.iter().map(|cell| (&cell.point, 1));
            let each = Writes::of(once, targets).unwrap_or_default();
            writes.until(bytes, &each)
        }
    };
    Writes::of(round.chain(script), targets)
        .map(|writes| capped(writes).beside(before))
        .or_else(|| (before > Bytes(0)).then(|| Writes::exactly(before, targets)))
}

fn about(sustain: &Sustain, test: Test, settings: &TestSettings, hosts: u32) -> Vec<String> {
    let on_each = if hosts == 1 { "" } else { " on each host" };
    let course = sustain.plan();
    let mut lines = Vec::from([format!("sustain: {}", in_a_line(test))]);
    if settings.passes > 0 {
        lines.push(format!(
            "before   everything is written {} in blocks of 128 KiB, {} in all{on_each}",
            experiment::times(settings.passes),
            sustain.preconditioning()
        ));
    }
    if let Some(cell) = course.round.get(course.watched) {
        let points = match course.round.len() {
            1 => "1 point".to_owned(),
            n => format!("{n} points"),
        };
        let end = match course.until {
            Until::Steady { .. } => format!(
                "until they are steady and took at least {}, at most {}",
                settings.at_least,
                sustain.rounds_at_most()
            ),
            Until::Over { time, bytes } => {
                format!("for {time} or until {bytes} are written{on_each}")
            }
        };
        let each = if course.round.len() == 1 { "" } else { " each" };
        lines.push(format!("rounds   {points} of {}{each}, {end}", cell.point.window));
        lines.push(format!("watched  {}", sustain.watched_in_words()));
    }
    if !course.script.is_empty() {
        lines.push(format!("then     {} points", course.script.len()));
    }
    lines
}

fn in_a_line(test: Test) -> &'static str {
    match test {
        Test::Workload => "rounds of a workload until they are steady",
        Test::Iops => "SNIA IOPS, 8 block sizes by 7 mixes",
        Test::Throughput => "SNIA throughput, 128 KiB sequential reads and writes",
        Test::ResponseTime => "SNIA latency, 3 block sizes by 3 mixes with one I/O at a time",
        Test::WriteSaturation => "SNIA write saturation, random writes of 4 KiB",
        Test::DemandIntensity => "SNIA demand intensity, threads by queue depth",
        Test::HostIdleRecovery => "SNIA host idle recovery, bursts of writes with pauses that grow",
        Test::CrossStimulusRecovery => {
            "SNIA cross stimulus recovery, large sequential and small random writes in turn"
        }
    }
}

/// The axes of the round, or of the script if the round has none.
fn axes(sustain: &Sustain) -> Vec<Axis> {
    let course = sustain.plan();
    let of_round = course.round.iter().map(|cell| cell.coordinates.as_slice());
    let of_script = course.script.iter().map(|planned| planned.place.coordinates.as_slice());
    let mut axes: Vec<Axis> = Vec::new();
    for coordinate in of_round.chain(of_script).flatten() {
        let axis = match axes.iter().position(|axis| axis.name == coordinate.axis) {
            Some(known) => &mut axes[known],
            None => {
                let scale = match coordinate.axis.as_str() {
                    "block-size" | "workers" | "queue-depth" => Scale::Log2,
                    "phase" => Scale::Categories,
                    _ => Scale::Linear,
                };
                axes.push(Axis { name: coordinate.axis.clone(), scale, labels: Vec::new() });
                axes.last_mut().expect("one was just added")
            }
        };
        if !axis.labels.contains(&coordinate.label) {
            axis.labels.push(coordinate.label.clone());
        }
    }
    axes
}

/// The settings for the result file, by the names of their options.
fn in_words(settings: &TestSettings, test: Test) -> BTreeMap<String, String> {
    let watch = match settings.watch {
        Watch::Iops => "iops".to_owned(),
        Watch::Bandwidth => "bandwidth".to_owned(),
        Watch::MeanTime => "mean".to_owned(),
        Watch::Time(quantile) => quantile.to_string(),
    };
    let mut pairs = Vec::from([
        ("test", test.name().to_owned()),
        ("precondition", settings.passes.to_string()),
        ("watch", watch),
        ("at-least", settings.at_least.to_string()),
        ("rounds", settings.rounds.to_string()),
    ]);
    pairs.extend(settings.length.map(|length: Span| ("for", length.to_string())));
    pairs.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}
