//! `fathom ab`: two targets, or one with two settings, whose trials alternate until it is clear which
//! is better, or that there is no difference.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use fathom_core::experiment::ab::{SIDE, SIDES};
use fathom_core::experiment::{self as core, AbSettings, AbSide, Axis, Scale};
use fathom_core::figures::percent;
use fathom_core::spec::Point;
use fathom_core::trial::{Coordinate, Role};
use fathom_core::typed_word;
use fathom_engine::target::Overwrite;
use fathom_report::document::{self, Command};

use super::before::BeforeTrials;
use super::experiment::{self, Prepared, Writes};
use super::sites::{Grounds, Settled, Sites};
use super::this_machine;
use crate::cli::args::{self, Ab, Args};
use crate::cli::options::{Request, Typed};
use crate::error::Error;
use crate::hanging::{Role as Kind, patiently};
use crate::resolve::{Machine, Spec};
use crate::workload::{Template, keys};

/// Runs it.
///
/// # Errors
///
/// When the command line, a target or the result file does not allow it.
pub fn perform(args: &Ab) -> Result<u8, Error> {
    args.results.leave_stdout();
    experiment::perform(prepare(args, None)?, &args.start, &args.results)
}

/// A side as it was asked for.
pub struct AskedSide {
    /// What the user calls it.
    name: String,
    /// Its request: the common one with its own target and options.
    pub request: Request,
    /// Its own options.
    own: Vec<Typed>,
}

/// Resolves its settings, with the seed of an earlier run if there is one.
///
/// # Errors
///
/// When a side cannot be, or a target is not there.
pub fn prepare(args: &Ab, seed: Option<u64>) -> Result<Prepared, Error> {
    if args.margin <= 0.0 {
        let problem = "no two figures are exactly alike, so that nothing would be the same";
        return Err(Error::option("--margin 0%", problem, "choose 5%"));
    }
    let asked = sides(args)?;
    let host = this_machine::this_host();
    let machine = this_machine::machine(&host);
    let machine = Machine { fresh_seed: seed.unwrap_or(machine.fresh_seed), ..machine };
    let mut sites = Sites::default();
    let mut settled: Vec<Settled> = Vec::new();
    for (asked, label) in asked.iter().zip(SIDES) {
        settled.push(settle(&mut sites, asked, machine).map_err(|error| of_side(error, label))?);
    }
    let (consent, refusal) = match sites.consent(&settled.iter().collect::<Vec<_>>(), 0) {
        Ok(consent) => (consent, None),
        Err(refusal) => (Overwrite::default(), Some(refusal)),
    };
    let mut grounds = Grounds::default();
    let mut points: Vec<Point> = Vec::new();
    for (Settled { site, spec, .. }, label) in settled.into_iter().zip(SIDES) {
        let name = format!("{label}: {}", spec.points[0].name);
        let point = Point { name, ..spec.points[0].clone() };
        let spec = Spec { points: Vec::new(), consent: consent.clone(), ..spec };
        let at = Coordinate { axis: SIDE.to_owned(), label: label.to_owned(), value: None };
        grounds.add((site, sites.place(site)), &spec, point.clone(), (Role::Result, &[at]));
        points.push(sites.in_union(site, point));
    }
    let before = before(args);
    let settings = AbSettings { repeats: args.repeats, margin: args.margin };
    let writes = Writes::of(points.iter().map(|point| (point, args.repeats)), &sites.union);
    let described = document::Experiment {
        name: "ab".to_owned(),
        base: points[0].clone(),
        axes: Vec::from([Axis {
            name: SIDE.to_owned(),
            scale: Scale::Categories,
            labels: SIDES.map(str::to_owned).to_vec(),
        }]),
        settings: settings_in_words(args, &asked),
    };
    let about = about(args, &asked, &points);
    let seed = points[0].seed;
    let differs = differs(&asked, &args.request);
    let sides = named(args, &asked, points);
    let (grounds, which) = grounds.divided();
    Ok(Prepared {
        command: Command::Ab,
        experiment: Box::new(core::Ab::new(sides, differs, settings)),
        host,
        targets: sites.union,
        fleet: None,
        grounds,
        which,
        before,
        described,
        seed,
        about,
        written_before: false,
        writes: writes.map(Writes::or_less),
        probes: Vec::new(),
        refusal,
    })
}

/// The sides with their points: each by its word, and the command before its trials.
fn named(args: &Ab, asked: &[AskedSide; 2], points: Vec<Point>) -> [AbSide; 2] {
    let mut points = points.into_iter();
    [0, 1].map(|place| {
        let command = commands(args)[place];
        let after = command.map_or(String::new(), |it| format!(" after {}", typed_word(it)));
        let point = points.next().expect("each side has a point");
        AbSide { name: format!("{}{after}", asked[place].name), point }
    })
}

fn settle(sites: &mut Sites, asked: &AskedSide, machine: Machine<'_>) -> Result<Settled, Error> {
    let template = Template::read(&asked.request)?;
    template.is_of(None)?;
    sites.settle(template.describe(&[])?, machine)
}

/// Why a side was refused, with its label.
fn of_side(error: Error, label: &str) -> Error {
    match error {
        Error::Refusal(refusal) => {
            fathom_core::Refusal { about: format!("{label}: {}", refusal.about), ..refusal }.into()
        }
        other => other,
    }
}

/// The commands before the trials of each side.
fn commands(args: &Ab) -> [Option<&str>; 2] {
    [args.before_a.as_deref(), args.before_b.as_deref()]
}

fn before(args: &Ab) -> BeforeTrials {
    let commands = SIDES.into_iter().zip(commands(args));
    BeforeTrials::new(commands.filter_map(|(side, command)| Some((side, command?))))
}

/// Refuses to run other commands than those that were typed now: a result file must not have a
/// command run.
///
/// # Errors
///
/// When a command of the earlier command line was not typed again.
pub fn same_commands(recorded: &Ab, typed: [Option<&str>; 2]) -> Result<(), Error> {
    let both = commands(recorded).into_iter().zip(typed).zip(["--before-a", "--before-b"]);
    let Some(((then, now), option)) = both.into_iter().find(|((then, now), _)| then != now) else {
        return Ok(());
    };
    let (about, problem) = match (then, now) {
        (Some(then), None) => (
            option.to_owned(),
            format!(
                "it was begun with the command {}, and fathom runs no command from a result file",
                typed_word(then)
            ),
        ),
        (_, Some(now)) => (
            format!("{option} {}", typed_word(now)),
            "it was not begun with this command".to_owned(),
        ),
        (None, None) => return Ok(()),
    };
    let words = before(recorded).in_words();
    let remedy = match words.trim() {
        "" => "leave it out".to_owned(),
        words => format!("read the commands, and if you want to run them, add {words}"),
    };
    Err(Error::option(about, problem, remedy))
}

/// Both sides: the targets behind the workload, if one is named, each alone or in one word with
/// options of its own.
///
/// # Errors
///
/// When there are not two, or the options of a side cannot be read.
pub fn sides(args: &Ab) -> Result<[AskedSide; 2], Error> {
    let template = Template::read(&args.request)?;
    let targets = template.targets();
    let workload = &args.request.targets[..args.request.targets.len() - targets.len()];
    let has_command = commands(args).iter().any(Option::is_some);
    let pair = match targets {
        [a, b] => [a, b],
        [only] if has_command => [only, only],
        [only] => {
            return Err(Error::option(
                only.display().to_string(),
                "it is the only side, and nothing differs",
                "name B as well, or say with --before-b what to run before each trial of B",
            ));
        }
        [] => {
            return Err(Error::option(
                "A",
                "there is none",
                "name A and B: `fathom ab /dev/sda /dev/sdb`",
            ));
        }
        [_, _, third, ..] => {
            return Err(Error::option(
                third.display().to_string(),
                "it is a third side",
                "compare two: 'TARGET --option value' in quotes gives a side options of its own; \
                 `fathom sweep --axis targets=a,b,c` measures more",
            ));
        }
    };
    let [a, b] = pair.map(|typed| side(typed, workload, &args.request));
    Ok([a?, b?])
}

/// A side from its word: a target, or a target with options.
fn side(typed: &Path, workload: &[PathBuf], common: &Request) -> Result<AskedSide, Error> {
    let name = typed.display().to_string();
    let targets = |own: &Path| workload.iter().cloned().chain([own.to_owned()]).collect();
    let is_plain =
        !name.contains(char::is_whitespace) || patiently(typed, Kind::Target, || typed.exists());
    if is_plain {
        let request = Request { targets: targets(typed), ..common.clone() };
        return Ok(AskedSide { name, request, own: Vec::new() });
    }
    let refuse =
        |problem: String, remedy: &str| Err(Error::option(typed_word(&name), problem, remedy));
    let Some(words) = shlex::split(&name) else {
        return refuse("its quotes do not match".to_owned(), "write it as a shell would read it");
    };
    let alone = run_request(words).map_err(|why| {
        Error::option(typed_word(&name), why, "write a target and options of `fathom run`")
    })?;
    let [target] = alone.targets.as_slice() else {
        let many = alone.targets.len();
        return refuse(format!("it names {many} targets"), "name one, and options for it");
    };
    let known = keys::names();
    if let Some(other) = alone.typed.iter().find(|one| !known.contains(&one.name)) {
        let problem = format!("--{} is no option of the load or the access", other.name);
        return refuse(problem, "give it for both sides, outside of the quotes");
    }
    let is_own = |one: &&Typed| alone.typed.iter().any(|own| own.name == one.name);
    let of_both = common.typed.iter().filter(|one| known.contains(&one.name) && !is_own(one));
    let mut words: Vec<String> = of_both.chain(&alone.typed).map(Typed::word).collect();
    words.extend(common.set.iter().map(|set| format!("--set={set}")));
    words.extend(common.workload.iter().map(|name| format!("--workload={name}")));
    words.extend(common.across_mounts.then(|| "--across-mounts".to_owned()));
    let whole = run_request(words).map_err(|why| {
        Error::option(typed_word(&name), why, "give each side options that go with those of both")
    })?;
    let request = Request { targets: targets(target), consent: common.consent.clone(), ..whole };
    Ok(AskedSide { name, own: alone.typed, request })
}

/// Words of `fathom run` as a request; otherwise what is wrong with them, in one line.
fn run_request(words: Vec<String>) -> Result<Request, String> {
    let line: Vec<String> = ["fathom", "run"].map(str::to_owned).into_iter().chain(words).collect();
    match Args::reread(&line) {
        Ok(Args { command: args::Command::Run(run) }) => Ok(run.request),
        Ok(_) => Err("it is no command line of `fathom run`".to_owned()),
        Err(error) => Err(args::in_one_line(&error)),
    }
}

/// The options in which the sides differ, with both values.
fn differs(asked: &[AskedSide; 2], common: &Request) -> Vec<String> {
    let mut names: Vec<&str> = Vec::new();
    for own in asked.iter().flat_map(|side| &side.own) {
        if !names.contains(&own.name.as_str()) {
            names.push(&own.name);
        }
    }
    let values = |side: &AskedSide, name: &str| -> Vec<Option<String>> {
        let own = || side.own.iter().filter(|one| one.name == name);
        let all = if own().next().is_some() { &side.own } else { &common.typed };
        all.iter().filter(|one| one.name == name).map(|one| one.value.clone()).collect()
    };
    let in_words = |values: &[Option<String>], label: &str| match values {
        [] => format!("not given in {label}"),
        [None, ..] => format!("given in {label}"),
        some => {
            let each = some.iter().flatten().map(String::as_str).collect::<Vec<_>>();
            format!("{} in {label}", each.join(", "))
        }
    };
    let difference = |name: &&str| {
        let [a, b] = [0, 1].map(|place| values(&asked[place], name));
        (a != b).then(|| {
            let [a, b] = [in_words(&a, SIDES[0]), in_words(&b, SIDES[1])];
            format!("{name} {a}, {b}")
        })
    };
    names.iter().filter_map(difference).collect()
}

/// The settings for the result file, by the names of their options.
fn settings_in_words(args: &Ab, asked: &[AskedSide; 2]) -> BTreeMap<String, String> {
    let mut pairs = Vec::from([
        ("repeats", args.repeats.to_string()),
        ("margin", percent(args.margin)),
        ("a", asked[0].name.clone()),
        ("b", asked[1].name.clone()),
    ]);
    let commands = ["before-a", "before-b"].into_iter().zip(commands(args));
    pairs.extend(commands.filter_map(|(name, command)| Some((name, command?.to_owned()))));
    pairs.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// What will be done, in lines.
fn about(args: &Ab, asked: &[AskedSide; 2], points: &[Point]) -> Vec<String> {
    let mut lines = Vec::from([format!(
        "ab: A and B by turns, at most {} pairs; ends when every figure is decided, where {} counts \
         as no difference",
        args.repeats,
        percent(args.margin)
    )]);
    for ((asked, point), label) in asked.iter().zip(points).zip(SIDES) {
        let load = point.name.trim_start_matches(label).trim_start_matches(": ");
        lines.push(format!("{label}        {}: {load}", asked.name));
    }
    for (label, command) in SIDES.into_iter().zip(commands(args)) {
        let line =
            |command| format!("before   each trial of {label}: sh -c {}", typed_word(command));
        lines.extend(command.map(line));
    }
    lines
}
