//! Thresholds: the conditions under which a result counts as failed, such as a p99 above 2 ms.

mod watched;

pub use watched::outcomes_of_watch;

use fathom_core::experiment::ab::SIDE;
use fathom_core::facts::Answer;
use fathom_core::stats::Estimate;
use fathom_core::typed_word;

use crate::comparison::{self, Question, Requirement, RequirementOutcome};
use crate::document::{Condition, Document, Ended, Found, Metric, Role, Threshold, Trial, Verdict};
use crate::figures::{self, plus_minus};
use crate::results::{QUANTILES, Results, Spot, chosen, counted, mean_and_max, pooled};

/// What was measured at one place.
pub(crate) struct Measured<'a> {
    /// The name of its point.
    pub name: String,
    /// Its trials.
    pub trials: Vec<&'a Trial>,
}

/// What became of the conditions of a result, in their order: with `yes` it fails. None of a result that
/// is void or was not finished, which says more than they do.
pub fn outcomes(document: &Document) -> Vec<RequirementOutcome> {
    if !is_judged(document) {
        return Vec::new();
    }
    let lost = lacks_a_host(document);
    let results = measured(document);
    let mut of_sides = judged(document, of_two_sides(&document.conditions)).into_iter().flatten();
    let of = |threshold: &Threshold| {
        let option = format!("--fail-if {}", typed_word(&threshold.typed));
        let outcome = |holds: Answer, text: String| RequirementOutcome {
            typed: threshold.typed.clone(),
            holds,
            text,
        };
        if lost {
            // Nothing shows that it does not apply.
            return outcome(Answer::Yes, format!("{option}: unknown, because a host was lost"));
        }
        if matches!(threshold.condition, Condition::Worse(..)) {
            let undecided = format!("{option} is not decided, because there are no two sides");
            return match of_sides.next() {
                Some(one) => RequirementOutcome { text: format!("--fail-if {}", one.text), ..one },
                None => outcome(Answer::Unknown, undecided),
            };
        }
        let why = match results.as_slice() {
            [] => Some("there is no result".to_owned()),
            all => of_all(all, threshold.condition),
        };
        match why {
            Some(why) => outcome(Answer::Yes, format!("{option}: {why}")),
            None => {
                let nearest = nearest(&results, threshold.condition);
                let nearest = nearest.map_or(String::new(), |figure| format!(": {figure}"));
                outcome(Answer::No, format!("{option} is not the case{nearest}"))
            }
        }
    };
    document.conditions.iter().map(of).collect()
}

/// Whether conditions and promises decide about a result: it was finished, and is not void.
pub fn is_judged(document: &Document) -> bool {
    let finished = document.conclusion.as_ref().is_some_and(|end| end.ended == Ended::Completed);
    finished && document.verdict() != Some(Verdict::Void)
}

/// Whether one of many hosts was lost, so that figures lack its part.
pub fn lacks_a_host(document: &Document) -> bool {
    document.trials.iter().any(|trial| trial.hosts.iter().any(|host| host.lost.is_some()))
}

/// What an answer says of the conditions: those by which it fails, and those that are undecided.
pub(crate) fn in_answer(outcomes: &[RequirementOutcome]) -> impl Iterator<Item = String> {
    outcomes.iter().filter_map(|one| match one.holds {
        Answer::Yes => Some(format!("fails by {}", one.text)),
        Answer::Unknown => Some(format!("undecided: {}", one.text)),
        Answer::No => None,
    })
}

/// The thresholds that say how much worse one side may be than the other.
pub fn of_two_sides(thresholds: &[Threshold]) -> Vec<Requirement> {
    let of = |one: &Threshold| match one.condition {
        Condition::Worse(figure, bound) => {
            Some(Requirement { typed: one.typed.clone(), figure, bound })
        }
        _ => None,
    };
    thresholds.iter().filter_map(of).collect()
}

/// What became of these conditions on the sides of a result; none if it has no two sides.
fn judged(document: &Document, requirements: Vec<Requirement>) -> Option<Vec<RequirementOutcome>> {
    if requirements.is_empty() {
        return None;
    }
    let sides = comparison::by_axis(document, "side")?;
    let figures = requirements.iter().map(|one| one.figure).collect();
    let question = Question { figures, margin: 0.05, requirements };
    Some(comparison::compare(sides, &question).comparison.requirements)
}

/// The first of these results that fails, and how many others do. A figure that is unknown counts as one
/// that fails, because nothing shows that it does not.
fn of_all(all: &[Measured<'_>], condition: Condition) -> Option<String> {
    let fails = |one: &Measured<'_>| {
        failure(&one.trials, condition).map(|figure| format!("{figure} with {}", one.name))
    };
    let mut failing = all.iter().filter_map(fails);
    let first = failing.next()?;
    Some(match failing.count() {
        0 => first,
        more => format!("{first}, and {more} more of {} results fail", all.len()),
    })
}

/// The figure that comes nearest to a condition that none of these results meets.
fn nearest(all: &[Measured<'_>], condition: Condition) -> Option<String> {
    let (watched, sign) = match condition {
        Condition::Verdict(_) => {
            let verdicts = all.iter().flat_map(|one| &one.trials).map(|trial| trial.verdict);
            return Some(format!("the verdict is {}", verdicts.max()?.name()));
        }
        Condition::Worse(..) => return None,
        Condition::Above(watched, _) => (watched, 1.0),
        Condition::Below(watched, _) => (watched, -1.0),
    };
    let known = all.iter().filter_map(|one| Some((one, watched.of(&one.trials)?)));
    let (one, figure) =
        known.max_by(|one, other| (sign * one.1.value).total_cmp(&(sign * other.1.value)))?;
    let with = if all.len() > 1 { format!(" with {}", one.name) } else { String::new() };
    Some(format!("{}{with}", watched.in_words(&figure)))
}

/// The figure that fails, in words.
fn failure(trials: &[&Trial], condition: Condition) -> Option<String> {
    let (watched, fails): (Metric, &dyn Fn(f64) -> bool) = match &condition {
        Condition::Verdict(least) => {
            let verdict = trials.iter().map(|trial| trial.verdict).max()?;
            return (*least <= verdict).then(|| format!("the verdict is {}", verdict.name()));
        }
        Condition::Worse(..) => return None,
        Condition::Above(watched, bound) => (*watched, &move |value| *bound < value),
        Condition::Below(watched, bound) => (*watched, &move |value| value < *bound),
    };
    match (watched.of(trials), &condition) {
        (None, Condition::Above(_, bound)) => Some(match watched.lower_above(trials, *bound) {
            Some((lower, one)) => {
                format!("too few I/Os for {}, but {}", watched.name(), lower.in_words(&one))
            }
            None => format!("{} is unknown", watched.name()),
        }),
        (None, _) => Some(format!("{} is unknown", watched.name())),
        (Some(one), _) => fails(one.value).then(|| watched.in_words(&one)),
    }
}

impl Metric {
    /// What it is of trials of one point together.
    pub(crate) fn of(self, trials: &[&Trial]) -> Option<Estimate> {
        let trials = &counted(trials);
        let exact = |value: f64| Estimate { value, half_width: None };
        match self {
            Self::Iops => pooled(trials, &[]).iops,
            Self::Bandwidth => pooled(trials, &[]).bandwidth,
            Self::Mean => mean_and_max(trials).map(|(mean, _)| exact(mean)),
            Self::Max => mean_and_max(trials).map(|(_, max)| exact(max as f64)),
            Self::Quantile(quantile) => pooled(trials, &[quantile]).quantiles.pop().flatten(),
        }
    }

    /// A lower percentile that is above a bound beyond chance: where a run is too short for a p99, its p50
    /// may show that the p99 is above the bound as well.
    pub(crate) fn lower_above(self, trials: &[&Trial], bound: f64) -> Option<(Self, Estimate)> {
        let Self::Quantile(own) = self else { return None };
        let lower = QUANTILES.into_iter().rev().filter(|lower| lower.0 < own.0);
        let mut known = lower.filter_map(|lower| {
            let lower = Self::Quantile(lower);
            Some((lower, lower.of(trials)?))
        });
        known.find(|(_, one)| one.half_width.is_some_and(|half| bound < one.value - half))
    }

    /// "p99 is 4.80 ms ±3%".
    fn in_words(self, figure: &Estimate) -> String {
        let half = plus_minus(Some(figure));
        let half = if half.is_empty() { half } else { format!(" {half}") };
        format!("{} {} {}{half}", self.name(), self.verb(), self.text(figure.value))
    }

    /// Whether a higher value is a better one.
    pub(crate) fn more_is_better(self) -> bool {
        matches!(self, Self::Iops | Self::Bandwidth)
    }

    /// The name as it is typed: "iops", "p99".
    pub(crate) fn typed(self) -> String {
        match self {
            Self::Iops => "iops".to_owned(),
            Self::Bandwidth => "bandwidth".to_owned(),
            Self::Mean => "mean".to_owned(),
            Self::Max => "max".to_owned(),
            Self::Quantile(quantile) => quantile.to_string(),
        }
    }

    pub(crate) fn name(self) -> String {
        match self {
            Self::Iops => "IOPS".to_owned(),
            Self::Bandwidth => "the bandwidth".to_owned(),
            Self::Mean => "the mean response time".to_owned(),
            Self::Max => "the longest response time".to_owned(),
            Self::Quantile(quantile) => quantile.to_string(),
        }
    }

    fn verb(self) -> &'static str {
        if self == Self::Iops { "are" } else { "is" }
    }

    pub(crate) fn text(self, value: f64) -> String {
        match self {
            Self::Iops => figures::significant(value),
            Self::Bandwidth => format!("{} MB/s", figures::significant(value / 1e6)),
            Self::Mean | Self::Max | Self::Quantile(_) => figures::time(value),
        }
    }
}

/// The results to compare: every point with its repeats, or the point that a search chose.
pub(crate) fn measured<'a>(document: &'a Document) -> Vec<Measured<'a>> {
    if !document.is_experiment() {
        return of_spots(Results::of_points(document).spots);
    }
    let found = document.found();
    let spots = match found {
        Some(Found::Peak(_)) => chosen(document).into_iter().collect(),
        _ => Results::of(document, &[Role::Result]).spots,
    };
    of_spots(spots)
}

/// The trials of each of these points.
pub(crate) fn of_spots<'a>(spots: Vec<Spot<'a>>) -> Vec<Measured<'a>> {
    let of = |spot: Spot<'a>| spot.trials.into_iter().map(|(_, trial)| trial);
    spots.into_iter().filter_map(|spot| Measured::of(of(spot))).collect()
}

impl<'a> Measured<'a> {
    /// These trials of one point; none without a trial.
    pub fn of(trials: impl IntoIterator<Item = &'a Trial>) -> Option<Self> {
        let trials: Vec<&Trial> = trials.into_iter().collect();
        let first = trials.first()?;
        // The sides of a comparison have the same point, or nearly.
        let side = first.place.coordinates.iter().find(|at| at.axis == SIDE);
        let name = side.map_or(&first.point.name, |side| &side.label).clone();
        Some(Self { name, trials })
    }
}
