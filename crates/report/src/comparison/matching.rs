//! Which results of two documents belong together: the places of a document, and the one of another
//! that measured the same workload.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use fathom_core::experiment::ROUND;
use fathom_core::facts::TargetKind;
use fathom_core::spec::Region;
use fathom_core::{Bytes, Quantile, Span};
use serde_json::Value;

use super::model::RefusedPoint;
use crate::document::{
    Coordinate, Document, Found, Job, MapCell, MapFound, Point, Role, SustainFound, Trial, Verdict,
};
use crate::figures;
use crate::results::{Numbered, Results};

/// What a document measured at one place: trials that repeat each other, or figures of another
/// program.
#[derive(Clone, Debug)]
pub struct MeasuredPlace<'a> {
    /// Its name: that of its coordinates in an experiment, otherwise of its point.
    pub name: String,
    /// Its place in the experiment; empty without one.
    pub coordinates: Vec<Coordinate>,
    /// The purpose of its trials.
    pub role: Role,
    /// The trials that count, in their order, with their numbers from 1.
    pub trials: Numbered<'a>,
    /// The numbers of the void ones, which do not count.
    pub void: Vec<usize>,
    /// The figures that another program told; none where fathom measured.
    pub told: Option<ToldFigures<'a>>,
}

/// Figures of another program: they are one trial, of which no distribution is known.
#[derive(Clone, Copy, Debug)]
pub enum ToldFigures<'a> {
    /// Of a job.
    Job(&'a Job),
    /// Of a cell of a map with these quantiles.
    Cell(&'a MapCell, &'a [Quantile]),
}

/// How places are matched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Match {
    /// The same coordinates and the same workload; anything else is refused.
    #[default]
    Workload,
    /// The same name; the workloads may differ.
    Name,
    /// The first with the first, the second with the second; the workloads may differ.
    Order,
}

impl Match {
    /// All ways, with the names on the command line.
    pub const ALL: [(&'static str, Self); 3] =
        [("workload", Self::Workload), ("name", Self::Name), ("order", Self::Order)];
}

/// Two places that belong together, the first side's and the second side's.
#[derive(Clone, Debug)]
pub struct Pair<'a> {
    /// What both are called.
    pub name: String,
    /// Of the first side.
    pub before: MeasuredPlace<'a>,
    /// Of the other.
    pub after: MeasuredPlace<'a>,
    /// What is not the same in their loads, in words; empty where nothing is.
    pub differs: Vec<String>,
}

/// The places of two sides: those that belong together, and why the others do not.
#[derive(Clone, Debug, Default)]
pub struct Matched<'a> {
    /// The pairs, in the order of the first side.
    pub pairs: Vec<Pair<'a>>,
    /// Why others are not compared: the place, and the reason.
    pub refused: Vec<RefusedPoint>,
}

/// Everything that a document measured, in its order.
pub fn measured(document: &Document) -> Vec<MeasuredPlace<'_>> {
    let found = document.found();
    match found {
        Some(Found::Jobs(found)) => return found.jobs.iter().map(of_job).collect(),
        Some(Found::Map(found)) if document.trials.is_empty() => return of_map(found),
        _ => {}
    }
    if !document.is_experiment() {
        return of_run(document);
    }
    let steady = match found {
        Some(Found::Sustain(found)) => Some(found),
        _ => None,
    };
    let roles = [Role::Result, Role::Probe, Role::Official];
    let mut all: Vec<MeasuredPlace<'_>> = Vec::new();
    for role in roles {
        let wanted = |trial: &Trial| {
            trial.place.role == role && steady.is_none_or(|found| is_steady(found, trial))
        };
        let spots = Results::of_those(document, wanted).spots;
        all.extend(spots.into_iter().map(|spot| {
            let name = match role {
                Role::Official => format!("the answer, {}", spot.name()),
                _ => spot.name(),
            };
            MeasuredPlace::of_trials(name, spot.coordinates.clone(), role, spot.trials)
        }));
        all.extend(unplaced(document, wanted));
    }
    if steady.is_some() {
        all = rounds_together(all);
    }
    // By their values: a search did not measure them in this order.
    all.sort_by(|one, other| {
        let values = |it: &MeasuredPlace<'_>| -> Vec<f64> {
            it.coordinates.iter().filter_map(|at| at.value).collect()
        };
        let order = values(one).partial_cmp(&values(other)).unwrap_or(Ordering::Equal);
        one.role.cmp(&other.role).then(order)
    });
    all
}

/// The rounds of each workload as its trials.
fn rounds_together(rounds: Vec<MeasuredPlace<'_>>) -> Vec<MeasuredPlace<'_>> {
    let mut all: Vec<MeasuredPlace<'_>> = Vec::new();
    for mut round in rounds {
        round.coordinates.retain(|at| at.axis != ROUND);
        if round.coordinates.is_empty() {
            round.name = round.point().map_or(round.name, |point| point.name.clone());
        } else {
            round.name = round.place_name();
        }
        match all.iter_mut().find(|one| one.is_at_the_place_of(&round)) {
            Some(one) => {
                one.trials.append(&mut round.trials);
                one.void.append(&mut round.void);
            }
            None => all.push(round),
        }
    }
    all
}

/// The trials of an experiment that have no coordinates, such as the rounds of one workload.
fn unplaced<'a>(
    document: &'a Document,
    wanted: impl Fn(&Trial) -> bool,
) -> Option<MeasuredPlace<'a>> {
    let numbered = (1..).zip(&document.trials);
    let trials: Numbered<'_> =
        numbered.filter(|(_, trial)| wanted(trial) && trial.place.coordinates.is_empty()).collect();
    let (_, first) = trials.first()?;
    Some(MeasuredPlace::of_trials(first.point.name.clone(), Vec::new(), first.place.role, trials))
}

/// Whether a round belongs to the steady state. Without one, all rounds count.
fn is_steady(found: &SustainFound, trial: &Trial) -> bool {
    found.steady_from.is_none_or(|first| first <= trial.place.repeat + 1)
}

/// The trials of a run: those of the same workload are repeats of each other.
fn of_run(document: &Document) -> Vec<MeasuredPlace<'_>> {
    let mut all: Vec<(Value, String, Numbered<'_>)> = Vec::new();
    for (number, trial) in (1..).zip(&document.trials) {
        let workload = workload(&trial.point);
        match all.iter_mut().find(|(known, _, _)| *known == workload) {
            Some((_, _, trials)) => trials.push((number, trial)),
            None => all.push((workload, trial.point.name.clone(), Vec::from([(number, trial)]))),
        }
    }
    let of = |(_, name, trials)| MeasuredPlace::of_trials(name, Vec::new(), Role::Result, trials);
    all.into_iter().map(of).collect()
}

fn of_job(job: &Job) -> MeasuredPlace<'_> {
    MeasuredPlace {
        name: job.name.clone(),
        coordinates: Vec::new(),
        role: Role::Result,
        trials: Vec::new(),
        void: Vec::new(),
        told: Some(ToldFigures::Job(job)),
    }
}

fn of_map(found: &MapFound) -> Vec<MeasuredPlace<'_>> {
    let coordinate = |axis: &str, value: f64| Coordinate {
        axis: axis.to_owned(),
        label: figures::significant(value),
        value: Some(value),
    };
    let of = |cell: &'_ MapCell| {
        let write = found.write_bandwidths.get(cell.write as usize)?;
        let read = found.read_rates.get(cell.read as usize)?;
        let name = format!(
            "{} MB/s written, {} reads per second",
            figures::significant(write / 1e6),
            figures::significant(*read)
        );
        Some((name, Vec::from([coordinate("writes", *write), coordinate("reads", *read)])))
    };
    let cells = found.cells.iter().filter(|cell| cell.response_time_ns.iter().any(Option::is_some));
    let known = cells.filter_map(|cell| Some((cell, of(cell)?)));
    known
        .map(|(cell, (name, coordinates))| MeasuredPlace {
            name,
            coordinates,
            role: Role::Result,
            trials: Vec::new(),
            void: Vec::new(),
            told: Some(ToldFigures::Cell(cell, &found.quantiles)),
        })
        .collect()
}

impl<'a> MeasuredPlace<'a> {
    /// Of trials that repeat each other.
    fn of_trials(
        name: String,
        coordinates: Vec<Coordinate>,
        role: Role,
        trials: Numbered<'a>,
    ) -> Self {
        let is_void = |trial: &Trial| trial.verdict_on_result() == Verdict::Void;
        let (void, trials): (Vec<_>, Vec<_>) =
            trials.into_iter().partition(|(_, trial)| is_void(trial));
        let void = void.into_iter().map(|(number, _)| number).collect();
        Self { name, coordinates, role, trials, void, told: None }
    }

    /// Its load; none where another program measured.
    pub fn point(&self) -> Option<&'a Point> {
        self.trials.first().map(|(_, trial)| &trial.point)
    }

    /// The number of its trials that count; the figures of another program are one.
    pub fn count(&self) -> usize {
        self.trials.len() + usize::from(self.told.is_some())
    }

    /// "queue-depth 8, block-size 4k".
    pub(super) fn place_name(&self) -> String {
        Coordinate::in_words(&self.coordinates)
    }

    pub(super) fn is_at_the_place_of(&self, other: &Self) -> bool {
        let same = |(one, other): (&Coordinate, &Coordinate)| {
            let near = one.value.zip(other.value).is_some_and(|(one, other)| is_near(one, other));
            one.axis == other.axis && (one.label == other.label || near)
        };
        self.role == other.role
            && self.coordinates.len() == other.coordinates.len()
            && self.coordinates.iter().zip(&other.coordinates).all(same)
    }
}

/// Matches the places of two sides.
pub fn matched<'a>(
    before: Vec<MeasuredPlace<'a>>,
    after: Vec<MeasuredPlace<'a>>,
    targets: [&'a Document; 2],
    way: Match,
) -> Matched<'a> {
    let mut left: Vec<Option<MeasuredPlace<'a>>> = after.into_iter().map(Some).collect();
    let mut all = Matched::default();
    let mut alone = Vec::new();
    for (nth, one) in before.into_iter().enumerate() {
        let belongs = |other: &MeasuredPlace<'_>| match way {
            Match::Workload => is_same(&one, other),
            Match::Name => one.name == other.name && one.role == other.role,
            Match::Order => true,
        };
        let place = match way {
            Match::Order => (nth < left.len()).then_some(nth),
            _ => left.iter().position(|other| other.as_ref().is_some_and(belongs)),
        };
        match place.and_then(|place| left[place].take()) {
            Some(other) => all.add(one, other, targets),
            None => alone.push(one),
        }
    }
    let rest: Vec<MeasuredPlace<'a>> = left.into_iter().flatten().collect();
    all.refuse(alone, rest, way);
    all
}

/// Whether two places are the same: the same coordinates in experiments, and the same workload.
fn is_same(one: &MeasuredPlace<'_>, other: &MeasuredPlace<'_>) -> bool {
    // The answers of two searches are compared even if they are at different places.
    if one.role == Role::Official && other.role == Role::Official {
        return true;
    }
    // A run has no place. It may have the workload of a point of an experiment.
    let has_place = !one.coordinates.is_empty() && !other.coordinates.is_empty();
    if has_place && !one.is_at_the_place_of(other) {
        return false;
    }
    match (one.point(), other.point()) {
        (Some(own), Some(others)) => is_alike(&workload(own), &workload(others)),
        // Of another program's results no more is known than the names of its jobs; all trials of a
        // place may be void as well.
        _ => has_place || one.name == other.name,
    }
}

impl<'a> Matched<'a> {
    /// Adds two places, unless nothing of one of them counts.
    fn add(
        &mut self,
        before: MeasuredPlace<'a>,
        after: MeasuredPlace<'a>,
        targets: [&Document; 2],
    ) {
        let name = before.name.clone();
        for (one, which) in [(&before, "first"), (&after, "second")] {
            if one.count() == 0 {
                let trials =
                    if one.void.len() == 1 { "its trial is" } else { "all its trials are" };
                self.refused
                    .push(RefusedPoint::of(name, format!("{trials} void on the {which} side")));
                return;
            }
        }
        let differs = match (before.trials.first(), after.trials.first()) {
            (Some((_, one)), Some((_, other))) => {
                differences((one, targets[0]), (other, targets[1]))
            }
            _ => Vec::new(),
        };
        self.pairs.push(Pair { name, before, after, differs });
    }

    /// Says why these places have no partner.
    fn refuse(
        &mut self,
        before: Vec<MeasuredPlace<'a>>,
        after: Vec<MeasuredPlace<'a>>,
        way: Match,
    ) {
        if let ([one], [other], Match::Workload) = (before.as_slice(), after.as_slice(), way)
            && let (Some((_, first)), Some((_, second))) =
                (one.trials.first(), other.trials.first())
        {
            let why = unlike(first, second);
            let why = format!("the workloads differ: {why}");
            self.refused.push(RefusedPoint::of(one.name.clone(), why));
            return;
        }
        for one in &before {
            let partner = after
                .iter()
                .find(|other| !one.coordinates.is_empty() && one.is_at_the_place_of(other));
            let why = match partner
                .and_then(|other| Some((one.trials.first()?, other.trials.first()?)))
            {
                Some(((_, first), (_, second))) => {
                    format!("the workloads differ: {}", unlike(first, second))
                }
                None => "it is only on the first side".to_owned(),
            };
            self.refused.push(RefusedPoint::of(one.name.clone(), why));
        }
        for other in &after {
            let told = before
                .iter()
                .any(|one| !one.coordinates.is_empty() && one.is_at_the_place_of(other));
            if !told {
                let why = "it is only on the second side".to_owned();
                let only = RefusedPoint::of(other.name.clone(), why);
                self.refused.push(RefusedPoint { is_expected: false, ..only });
            }
        }
    }
}

/// What makes a workload: a point without its names, its random seed, its times, the place of its
/// regions, and what was promised of its targets.
pub fn workload(point: &Point) -> Value {
    let mut point = point.clone();
    point.name.clear();
    point.seed = 0;
    (point.warm_up, point.window, point.cool_down) = (Span(0), Span(0), Span(0));
    (point.interval, point.buckets) = (Span(0), None);
    point.looks.clear();
    point.rated = Default::default();
    for stream in &mut point.streams {
        stream.name.clear();
        stream.workplace = Default::default();
        for region in &mut stream.regions {
            *region = Region { offset: Bytes(0), length: Bytes(0), ..*region };
        }
    }
    serde_json::to_value(&point).expect("a point is plain data")
}

/// Rates that a map or a search derives from what the target carried differ by chance. Within this share
/// they are the same load.
const NEAR: f64 = 0.01;

fn is_near(one: f64, other: f64) -> bool {
    (one - other).abs() <= NEAR * one.abs().max(other.abs())
}

/// Whether two workloads are the same, but for rates next to each other.
fn is_alike(one: &Value, other: &Value) -> bool {
    first_difference(one, other, "").is_none()
}

/// Why two workloads are not the same, in words: both, or the first property that differs if the words
/// are the same.
fn unlike(before: &Trial, after: &Trial) -> String {
    let words = |trial: &Trial| {
        let streams = trial.point.streams.iter();
        let each = streams.map(|stream| figures::stream_in_words(trial, stream));
        let access = figures::same_access(trial).map_or(String::new(), |way| format!("; {way}"));
        format!("{}{access}", each.collect::<Vec<_>>().join(" + "))
    };
    let (one, other) = (words(before), words(after));
    if one != other {
        let (own, others): (Vec<&str>, Vec<&str>) =
            (one.split("; ").collect(), other.split("; ").collect());
        if own.len() != others.len() {
            return format!("{one}, against {other}");
        }
        let both = own.into_iter().zip(others).filter(|(own, others)| own != others);
        let (own, others): (Vec<&str>, Vec<&str>) = both.unzip();
        return format!("{}, against {}", own.join("; "), others.join("; "));
    }
    match first_difference(&workload(&before.point), &workload(&after.point), "") {
        Some((field, own, others)) => format!("{field} is {own}, against {others}"),
        None => "they are not at the same place".to_owned(),
    }
}

/// The first value that is not the same in two trees, with its path.
fn first_difference(one: &Value, other: &Value, path: &str) -> Option<(String, String, String)> {
    let below = |key: &str| if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") };
    match (one, other) {
        (Value::Object(own), Value::Object(others)) => {
            let keys: BTreeMap<&String, ()> =
                own.keys().chain(others.keys()).map(|k| (k, ())).collect();
            keys.into_keys().find_map(|key| {
                let (own, others) = (own.get(key), others.get(key));
                first_difference(
                    own.unwrap_or(&Value::Null),
                    others.unwrap_or(&Value::Null),
                    &below(key),
                )
            })
        }
        (Value::Array(own), Value::Array(others)) if own.len() == others.len() => {
            let both = own.iter().zip(others).enumerate();
            both.into_iter().find_map(|(place, (own, others))| {
                first_difference(own, others, &below(&place.to_string()))
            })
        }
        _ if one == other => None,
        (Value::Number(own), Value::Number(others))
            if path.ends_with("iops")
                && own.as_f64().zip(others.as_f64()).is_some_and(|(a, b)| is_near(a, b)) =>
        {
            None
        }
        _ => Some((path.to_owned(), one.to_string(), other.to_string())),
    }
}

/// What is not the same in the loads of two trials that are compared, in words.
fn differences(before: (&Trial, &Document), after: (&Trial, &Document)) -> Vec<String> {
    let mut all = Vec::new();
    let ((one, first), (other, second)) = (before, after);
    if !is_alike(&workload(&one.point), &workload(&other.point)) {
        all.push(format!("workload: {}", unlike(one, other)));
    }
    let mut differ = |what: &str, own: String, others: String| {
        if own != others {
            all.push(format!("{what}: {own}, against {others}"));
        }
    };
    let times = |point: &Point| format!("{} after a warm-up of {}", point.window, point.warm_up);
    differ("window", times(&one.point), times(&other.point));
    differ("region", regions(one, first), regions(other, second));
    let place = |trial: &Trial| {
        let own = trial.point.streams.iter().filter_map(figures::workplace);
        let words: Vec<String> = own.collect();
        if words.is_empty() { "no setting".to_owned() } else { words.join(" + ") }
    };
    differ("workers", place(one), place(other));
    all
}

/// Which bytes a trial addressed, in words.
fn regions(trial: &Trial, document: &Document) -> String {
    // What is left at the end is less than a block.
    let blocks = trial.point.streams.iter().map(|stream| stream.block_sizes().largest());
    let block = blocks.max().unwrap_or(Bytes(0));
    let whole = |region: &Region| {
        let target = document.header.targets.get(region.target as usize);
        let left = |size: Bytes| size.0.saturating_sub(region.length.0);
        target.is_some_and(|it| region.offset == Bytes(0) && left(it.size) < block.0.max(1))
    };
    let mut words: Vec<String> = Vec::new();
    for region in trial.point.streams.iter().flat_map(|stream| &stream.regions) {
        let simulated = document
            .header
            .targets
            .get(region.target as usize)
            .is_some_and(|it| it.kind == TargetKind::Simulated);
        let text = match (whole(region), region.offset) {
            (true, _) if simulated => "the whole target".to_owned(),
            (true, _) => format!("the whole target of {}", region.length),
            (false, Bytes(0)) => region.length.to_string(),
            (false, offset) => format!("{} from {offset} on", region.length),
        };
        if !words.contains(&text) {
            words.push(text);
        }
    }
    words.join(", ")
}
