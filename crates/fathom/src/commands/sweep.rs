//! `fathom sweep`: every combination of several settings. Each goes through the same resolver as a
//! run, and an impossible one is refused by its name before anything starts.

use std::collections::BTreeMap;

use fathom_core::Refusal;
use fathom_core::Span;
use fathom_core::experiment::{
    Axis, Candidate, Experiment, PassOrder, Precondition, Sweep, SweepSettings, again_at_most,
};
use fathom_core::facts::{Host, Target};
use fathom_core::spec::Point;
use fathom_core::trial::{Coordinate, Role};
use fathom_engine::target::Overwrite;
use fathom_report::document::{self, Command};

use super::before::BeforeTrials;
use super::experiment::{self, Prepared, Writes};
use super::sites::{Grounds, Settled, Sites};
use super::this_machine;
use crate::cli::args::{OrderArg, Sweep as Args, SweepArgs};
use crate::cli::axes::{self, AxisArg};
use crate::error::Error;
use crate::resolve::{Machine, Spec};
use crate::workload::{Template, keys};

/// The largest number of combinations: more than anybody waits for.
const COMBINATIONS_MAX: usize = 10_000;
/// The default share of the best throughput that is enough.
const ENOUGH: f64 = 0.95;

/// Runs it.
///
/// # Errors
///
/// When the command line, a combination, a target or the result file does not allow it.
pub fn perform(args: &Args) -> Result<u8, Error> {
    args.results.leave_stdout();
    experiment::perform(prepare(args, None)?, &args.start, &args.results)
}

/// Resolves its settings, with the seed of an earlier run if there is one.
///
/// # Errors
///
/// When a combination cannot be, or a target is not there.
pub fn prepare(args: &Args, seed: Option<u64>) -> Result<Prepared, Error> {
    let template = Template::read(&args.request)?;
    let settled = settle(args, &template, None, seed)?;
    Ok(settled.prepared(|sweep, _| Box::new(sweep)))
}

/// A sweep whose combinations are all possible.
pub struct SettledSweep {
    name: String,
    axes: Vec<AxisArg>,
    course: SweepArgs,
    host: Host,
    targets: Vec<Target>,
    candidates: Vec<Candidate>,
    grounds: Grounds,
    refusal: Option<Error>,
}

/// Resolves every combination of the values of this axis, which varies slowest, with those of the
/// others.
///
/// # Errors
///
/// When one is impossible, or a target does not exist.
pub fn settle(
    args: &Args,
    template: &Template<'_>,
    slowest: Option<AxisArg>,
    seed: Option<u64>,
) -> Result<SettledSweep, Error> {
    let (mut axes, course) = asked(args, template)?;
    if let Some(slowest) = slowest.filter(|own| axes.iter().all(|axis| axis.name != own.name)) {
        axes.insert(0, slowest);
    }
    let host = this_machine::this_host();
    let machine = this_machine::machine(&host);
    let machine = Machine { fresh_seed: seed.unwrap_or(machine.fresh_seed), ..machine };
    let mut sites = Sites::default();
    let mut settled = Vec::new();
    let all = combinations(&axes)?;
    for named in &all {
        match settled_at(&mut sites, template, named, machine) {
            Ok(one) => settled.push((one, named.clone())),
            Err(error) => {
                let mut refusal = |named: &Named<'_>| {
                    let settled = settled_at(&mut sites, template, named, machine);
                    settled.err().map(|error| error.to_string())
                };
                let refusals: Vec<Option<String>> = all.iter().map(&mut refusal).collect();
                return Err(at(error, &decisive(named, &all, &refusals)));
            }
        }
    }
    let passes = passes(&course);
    let points: Vec<&Settled> = settled.iter().map(|(one, _)| one).collect();
    let (consent, refusal) = match sites.consent(&points, passes) {
        Ok(consent) => (consent, None),
        Err(refusal) => (Overwrite::default(), Some(refusal)),
    };
    let mut grounds = Grounds::default();
    let mut candidates = Vec::with_capacity(settled.len());
    for (Settled { site, spec, .. }, named) in settled {
        let point = Point { name: name(&named), ..spec.points[0].clone() };
        let coordinates: Vec<Coordinate> = named.iter().map(coordinate).collect();
        let once = course
            .once
            .iter()
            .any(|(axis, label)| named.contains(&(axis.as_str(), label.as_str())));
        let spec = Spec { points: Vec::new(), consent: consent.clone(), ..spec };
        let place = (site, sites.place(site));
        if let Some(preparation) = Precondition::new(&point, passes).next() {
            grounds.add(place, &spec, preparation, (Role::Preparation, &coordinates));
        }
        grounds.add(place, &spec, point.clone(), (Role::Result, &coordinates));
        candidates.push(Candidate { point: sites.in_union(site, point), coordinates, once });
    }
    let name = template.name().unwrap_or("sweep").to_owned();
    let targets = sites.union;
    Ok(SettledSweep { name, axes, course, host, targets, candidates, grounds, refusal })
}

/// A sweep over combinations that were resolved on hosts, which open their own targets.
pub(super) fn on_hosts(
    (name, axes, course): (String, Vec<AxisArg>, SweepArgs),
    candidates: Vec<Candidate>,
    (host, targets): (Host, Vec<Target>),
) -> Prepared {
    let grounds = Grounds::default();
    SettledSweep { name, axes, course, host, targets, candidates, grounds, refusal: None }
        .prepared(|sweep, _| Box::new(sweep))
}

impl SettledSweep {
    /// The experiment, which may be more than the sweep: it is made from the sweep and the targets.
    pub fn prepared(
        self,
        experiment: impl FnOnce(Sweep, &[Target]) -> Box<dyn Experiment>,
    ) -> Prepared {
        let Self { name, axes, course, host, targets, candidates, grounds, refusal } = self;
        let base = candidates[0].point.clone();
        let settings = settings(&course, base.seed);
        let once: Vec<String> =
            course.once.iter().map(|(axis, label)| format!("{axis} {label}")).collect();
        let axes: Vec<Axis> = axes.iter().map(AxisArg::described).collect();
        let about = about(&name, &axes, &settings, &once);
        let described = document::Experiment {
            name,
            base: base.clone(),
            axes: axes.to_vec(),
            settings: settings_in_words(&settings, &once),
        };
        let writes = writes((&axes, &candidates), &settings, &targets);
        let (grounds, which) = grounds.divided();
        Prepared {
            command: Command::Sweep,
            experiment: experiment(Sweep::new(axes, candidates, settings), &targets),
            host,
            targets,
            fleet: None,
            before: BeforeTrials::default(),
            grounds,
            which,
            described,
            seed: base.seed,
            about,
            written_before: 0 < settings.prepare,
            writes,
            probes: Vec::new(),
            refusal,
        }
    }
}

/// The writes of all trials, and of the preparation before each, including trials that may be
/// measured again, which are assumed to be the ones that write most.
pub(super) fn writes(
    (axes, candidates): (&[Axis], &[Candidate]),
    settings: &SweepSettings,
    targets: &[Target],
) -> Option<Writes> {
    let pass = |one: &Candidate| Precondition::new(&one.point, settings.prepare).next();
    let passes: Vec<Option<Point>> = candidates.iter().map(pass).collect();
    let alone = |place: usize| {
        let before = passes[place].iter().map(|pass| (pass, settings.prepare));
        let all = before.chain(std::iter::once((&candidates[place].point, 1)));
        Writes::of(all, targets).map_or(0.0, |writes| writes.bytes())
    };
    let mut most: Vec<(f64, usize)> = (0..candidates.len())
        .filter(|place| !candidates[*place].once)
        .map(|place| (alone(place), place))
        .collect();
    most.sort_by(|one, other| other.0.total_cmp(&one.0));
    let mut times: Vec<u32> =
        candidates.iter().map(|one| if one.once { 1 } else { settings.repeats }).collect();
    let (count, again) = again_at_most(axes, candidates);
    most.iter().take(count).for_each(|(_, place)| times[*place] += again);
    let measured = candidates.iter().zip(&times).map(|(one, times)| (&one.point, *times));
    let prepared = passes.iter().zip(&times);
    let prepared =
        prepared.filter_map(|(pass, times)| Some((pass.as_ref()?, settings.prepare * times)));
    let all = Writes::of(measured.chain(prepared), targets)?;
    Some(if count > 0 { all.or_less() } else { all })
}

/// Resolves a combination.
fn settled_at(
    sites: &mut Sites,
    template: &Template<'_>,
    named: &[(&str, &str)],
    machine: Machine,
) -> Result<Settled, Error> {
    sites.settle(template.describe(named)?, machine)
}

/// The axes and the course: from the workload, replaced by the typed ones.
pub(super) fn asked(
    args: &Args,
    template: &Template<'_>,
) -> Result<(Vec<AxisArg>, SweepArgs), Error> {
    let mut table = template.sweep().cloned().unwrap_or_default();
    let mut typed: Vec<&str> = Vec::new();
    for axis in &args.axis {
        if typed.contains(&axis.name.as_str()) {
            let option = format!("--axis {}", axis.name);
            return Err(Error::option(option, "it is there twice", "give all its values in one"));
        }
        typed.push(&axis.name);
        table.put(axis.clone());
    }
    if table.axes.is_empty() {
        return Err(Error::option(
            "--axis",
            "nothing varies",
            "say what does, such as --axis queue-depth=1,2,4..256",
        ));
    }
    let words: Vec<String> = table.words.into_values().flatten().collect();
    let file = keys::read_as::<SweepArgs>(&words)
        .map_err(|why| Error::option("[sweep]", why, "change it in the workload file"))?;
    let course = SweepArgs {
        repeats: args.course.repeats.or(file.repeats),
        order: args.course.order.or(file.order),
        rest: args.course.rest.or(file.rest),
        prepare: args.course.prepare.or(file.prepare),
        cut_off: args.course.cut_off || file.cut_off,
        enough: args.course.enough.or(file.enough),
        once: match args.course.once.is_empty() {
            // A typed axis may have replaced the file's axis, so that a value is missing.
            true => file.once.into_iter().filter(|once| !is_taken_away(args, once)).collect(),
            false => args.course.once.clone(),
        },
    };
    for (name, value) in &course.once {
        let has = |axis: &AxisArg| axis.name == *name && axis.labels.contains(value);
        if !table.axes.iter().any(has) {
            return Err(Error::option(
                format!("--once {name}={value}"),
                "no axis has this value",
                "name an axis and one of its values, as they are written there",
            ));
        }
    }
    if let Some(enough) = course.enough.filter(|share| *share <= 0.0) {
        let option = format!("--enough {enough}");
        return Err(Error::option(option, "every throughput would be enough", "choose 95%"));
    }
    Ok((table.axes, course))
}

/// Whether an axis was typed that does not have this value any more.
fn is_taken_away(args: &Args, (name, value): &(String, String)) -> bool {
    args.axis.iter().any(|axis| axis.name == *name && !axis.labels.contains(value))
}

pub(super) fn settings(course: &SweepArgs, seed: u64) -> SweepSettings {
    SweepSettings {
        repeats: course.repeats.unwrap_or(1),
        order: match course.order.unwrap_or(OrderArg::Shuffled) {
            OrderArg::Shuffled => PassOrder::Shuffled,
            OrderArg::AsGiven => PassOrder::AsGiven,
        },
        seed,
        rest: course.rest.unwrap_or(Span(0)),
        prepare: passes(course),
        cut_off: course.cut_off,
        enough: course.enough.unwrap_or(ENOUGH),
    }
}

/// How often everything is written before a point.
pub(super) fn passes(course: &SweepArgs) -> u32 {
    course.prepare.map_or(0, |typed| typed.0)
}

/// The settings for the result file, by the names of their options.
pub(super) fn settings_in_words(
    settings: &SweepSettings,
    once: &[String],
) -> BTreeMap<String, String> {
    let order = match settings.order {
        PassOrder::Shuffled => "shuffled",
        PassOrder::AsGiven => "as-given",
    };
    let mut pairs = Vec::from([
        ("repeats", settings.repeats.to_string()),
        ("order", order.to_owned()),
        ("rest", settings.rest.to_string()),
        ("cut-off", settings.cut_off.to_string()),
        ("enough", settings.enough.to_string()),
    ]);
    if 0 < settings.prepare {
        pairs.push(("prepare", settings.prepare.to_string()));
    }
    if !once.is_empty() {
        pairs.push(("once", once.join(", ")));
    }
    pairs.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// "sweep: 9 x 2 combinations", and a line for each axis.
pub(super) fn about(
    name: &str,
    axes: &[Axis],
    settings: &SweepSettings,
    once: &[String],
) -> Vec<String> {
    let counts: Vec<String> = axes.iter().map(|axis| axis.labels.len().to_string()).collect();
    let repeats = match settings.repeats {
        1 => String::new(),
        n if once.is_empty() => format!(", {n} times each"),
        n => format!(", {n} times each; once {}, beside the others", once.join(" and ")),
    };
    let order = match settings.order {
        PassOrder::Shuffled => "in shuffled order",
        PassOrder::AsGiven => "in the order of their values",
    };
    let several = if counts.iter().all(|count| count == "1") { "" } else { "s" };
    let mut lines = Vec::from([format!(
        "{name}: {} combination{several}{repeats}, {order}",
        counts.join(" x ")
    )]);
    let line = |axis: &Axis| format!("axis     {}: {}", axis.name, axis.labels.join(", "));
    lines.extend(axes.iter().map(line));
    match settings.prepare {
        0 => {}
        n => lines.push(format!(
            "before   each point all that it addresses is written {} in blocks of 128 KiB",
            experiment::times(n)
        )),
    }
    if settings.cut_off {
        lines.push("cut off  what is clearly worse than the best".to_owned());
    }
    lines
}

/// A combination: each axis with its value.
pub(super) type Named<'a> = Vec<(&'a str, &'a str)>;

/// Every combination of the axes' values, the first axis varying slowest.
pub(super) fn combinations(axes: &[AxisArg]) -> Result<Vec<Named<'_>>, Error> {
    let count = axes.iter().try_fold(1usize, |count, axis| count.checked_mul(axis.labels.len()));
    if count.is_none_or(|count| COMBINATIONS_MAX < count) {
        return Err(Error::option(
            "--axis",
            format!("there are more than {COMBINATIONS_MAX} combinations"),
            "choose fewer values",
        ));
    }
    let mut all: Vec<Named<'_>> = Vec::from([Vec::new()]);
    for axis in axes {
        let mut next = Vec::with_capacity(all.len() * axis.labels.len());
        for start in &all {
            for label in &axis.labels {
                let mut one = start.clone();
                one.push((axis.name.as_str(), label.as_str()));
                next.push(one);
            }
        }
        all = next;
    }
    Ok(all)
}

/// The part of a combination that matters for its refusal: the axes on which another value would
/// have been possible, or refused in other words. Empty if every combination is refused alike.
fn decisive<'a>(refused: &Named<'a>, all: &[Named<'_>], refusals: &[Option<String>]) -> Named<'a> {
    let known = all.iter().position(|named| named == refused);
    let Some(own) = known.and_then(|place| refusals[place].as_ref()) else {
        return refused.clone();
    };
    let mut left = refused.clone();
    for axis in refused {
        let others: Named<'_> = left.iter().copied().filter(|one| one != axis).collect();
        let alike = |(named, refusal): (&Named<'_>, &Option<String>)| {
            let is_meant = others.iter().all(|one| named.contains(one));
            !is_meant || refusal.as_ref() == Some(own)
        };
        if all.iter().zip(refusals).all(alike) {
            left = others;
        }
    }
    // The message about a target names it.
    left.retain(|(axis, label)| *axis != axes::TARGETS || !own.contains(label));
    left
}

/// Why a combination was refused, with the relevant part of it.
pub(super) fn at(error: Error, named: &[(&str, &str)]) -> Error {
    if named.is_empty() {
        return error;
    }
    let name = name(named);
    match error {
        Error::Refusal(refusal) => {
            Refusal { about: format!("at {name}: {}", refusal.about), ..refusal }.into()
        }
        Error::Workload(text) => Error::Workload(format!("{text}\n(at {name})")),
        other => other,
    }
}

/// "queue-depth 4, block-size 64k".
pub(super) fn name(named: &[(&str, &str)]) -> String {
    named.iter().map(|(axis, label)| format!("{axis} {label}")).collect::<Vec<_>>().join(", ")
}

pub(super) fn coordinate(&(axis, label): &(&str, &str)) -> Coordinate {
    let key = axis.rsplit('.').next().unwrap_or(axis);
    Coordinate { axis: axis.to_owned(), label: label.to_owned(), value: axes::number(key, label) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_is_told_with_the_axes_that_it_has_to_do_with() {
        let axis = |name: &str, labels: &[&str]| AxisArg::new(name, labels).unwrap();
        let axes = [axis(axes::TARGETS, &["a", "b"]), axis("queue-depth", &["1", "2"])];
        let all = combinations(&axes).unwrap();
        let decided = |refusal: &dyn Fn(&Named<'_>) -> Option<&'static str>| {
            let refusals: Vec<Option<String>> =
                all.iter().map(|named| refusal(named).map(str::to_owned)).collect();
            let first = refusals.iter().position(Option::is_some).unwrap();
            name(&decisive(&all[first], &all, &refusals))
        };
        assert_eq!(decided(&|_| Some("nothing works")), "");
        let deep = |named: &Named<'_>| named.contains(&("queue-depth", "2"));
        assert_eq!(decided(&|named| deep(named).then_some("too deep")), "queue-depth 2");
        let second = |named: &Named<'_>| named.contains(&(axes::TARGETS, "b"));
        assert_eq!(decided(&|named| second(named).then_some("it is full")), "targets b");
        assert_eq!(decided(&|named| second(named).then_some("b: it is not there")), "");
        let both = |named: &Named<'_>| deep(named) && second(named);
        assert_eq!(decided(&|named| both(named).then_some("no")), "targets b, queue-depth 2");
    }
}
