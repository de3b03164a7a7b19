//! What became of a figure, in sentences.

use std::collections::BTreeSet;

use fathom_core::differences::{ends_of_share, ends_of_times};
use fathom_core::figures::{percent, significant};
use fathom_core::stats::{RESULTS_MAX, Ratio};

use super::{FEWEST, HistoryChange, HistoryGroup, HistorySeries};
use crate::comparison::{FactDifference, FactWeight};
use crate::document::Metric;
use crate::figures;

/// More facts than these are in the table.
const FACTS: usize = 3;

/// From this ratio on, "3.2 times" says more than a percentage.
const TIMES: f64 = 2.0;

/// What a folder comes to.
pub fn answer(folder: &str, groups: &[HistoryGroup]) -> String {
    let (short, tested): (Vec<&HistoryGroup>, Vec<&HistoryGroup>) =
        groups.iter().partition(|group| group.is_short());
    let all = tested.iter().flat_map(|group| group.series.iter().map(move |one| (group, one)));
    let changed: Vec<(&&HistoryGroup, &HistorySeries)> =
        all.filter(|(_, series)| !series.changes.is_empty()).collect();
    match changed.as_slice() {
        _ if groups.is_empty() => format!("There are no results in {folder} that have figures."),
        [] if tested.is_empty() => format!(
            "{} in {folder}, and too few of the same workload on the same target to tell of changes.",
            counted(results(&short), "result")
        ),
        [] => {
            let few = too_few(&short, &tested).map_or(String::new(), |few| format!("; {few}"));
            let what = counted(results(&tested), "result");
            let level = match tested.as_slice() {
                [only] => levels(only),
                _ => String::new(),
            };
            format!("No change was found in {what}{}{level}{few}.", of_what(&tested))
        }
        [(group, series), more @ ..] => {
            let whose = match groups.len() {
                1 => String::new(),
                _ => format!("{} on {}: ", group.workload, group.target),
            };
            let more = match more {
                [] => String::new(),
                [(_, only)] => format!(" One more series changed: {}.", only.figure.name()),
                many => {
                    let names: BTreeSet<String> =
                        many.iter().map(|(_, one)| one.figure.name().to_string()).collect();
                    let names = names.into_iter().collect::<Vec<_>>().join(", ");
                    let count = figures::count(many.len() as u64);
                    format!(" {count} more series changed: {names}.")
                }
            };
            let few = too_few(&short, &tested).map_or(String::new(), |few| format!(" {few}."));
            format!("{whose}{}{more}{few}", series.sentence)
        }
    }
}

/// ", on average IOPS 36,400 (a second half that is 5 % lower would very likely show), p99 1.20 ms
/// (...)": the level of a group without a change; empty if it has several
/// points.
fn levels(group: &HistoryGroup) -> String {
    let is_shown = |one: &&HistorySeries| {
        let is_shown = matches!(one.figure, Metric::Iops | Metric::Quantile(_));
        one.point.is_empty() && is_shown && !one.is_short()
    };
    let shown = group.series.iter().filter(is_shown).filter_map(|one| {
        let level = one.levels.last()?;
        let found = could_have_found(one)
            .map_or(String::new(), |half| format!(" ({half} would very likely show)"));
        Some(format!("{} {}{found}", one.figure.name(), one.figure.text(level.mean)))
    });
    let shown: Vec<String> = shown.collect();
    if shown.is_empty() { String::new() } else { format!(", on average {}", shown.join(", ")) }
}

fn results(groups: &[&HistoryGroup]) -> usize {
    groups.iter().map(|group| group.results).sum()
}

/// " of 2 workloads on 3 targets"; empty for a single group.
fn of_what(groups: &[&HistoryGroup]) -> String {
    let distinct = |of: &dyn Fn(&HistoryGroup) -> String| {
        groups.iter().map(|group| of(group)).collect::<BTreeSet<String>>().len()
    };
    let targets = distinct(&|group| group.target.clone());
    let workloads = distinct(&|group| group.workload.clone());
    match (groups.len(), workloads, targets) {
        (1, ..) => String::new(),
        (_, 1, 2..) => format!(" on {targets} targets"),
        (_, 2.., 2..) => format!(" of {workloads} workloads on {targets} targets"),
        // Some are alike in their words, and differ nevertheless.
        (many, ..) => format!(" of {} workloads", figures::count(many as u64)),
    }
}

/// "5 results of another target are too few to tell".
fn too_few(short: &[&HistoryGroup], tested: &[&HistoryGroup]) -> Option<String> {
    let shares = |of: &dyn Fn(&HistoryGroup) -> String| {
        short.iter().all(|group| tested.iter().any(|other| of(group) == of(other)))
    };
    let same_target = shares(&|group| group.target.clone());
    let same_workload = shares(&|group| group.workload.clone());
    let what = match (same_workload, same_target) {
        (_, true) => "workload",
        (true, false) => "target",
        (false, false) => "workload or target",
    };
    let (few, whose) = match (results(short), short.len()) {
        (0, _) => return None,
        (few, 1) => (few, format!("another {what}")),
        (few, _) => (few, format!("other {}s", what.replace(" or ", "s or "))),
    };
    let verb = if few == 1 { "is" } else { "are" };
    Some(format!("{} of {whose} {verb} too few to tell", counted(few, "result")))
}

/// What became of a figure.
pub fn sentence(series: &HistorySeries) -> String {
    let name = match series.point.as_str() {
        "" => series.figure.name(),
        point => format!("{point}: {}", series.figure.name()),
    };
    let results = match counted(series.values.len(), "result") {
        all if series.values.len() <= RESULTS_MAX => all,
        all => format!("the last {} of {all}", figures::count(RESULTS_MAX as u64)),
    };
    if series.is_short() {
        return match series.values.len() < FEWEST {
            true => format!("{}: {results}, too few to find a change.", capital(&name)),
            false => format!(
                "{}: no change was found in {results}, which are too few to be sure.",
                capital(&name)
            ),
        };
    }
    let scatter = series.scatter.map_or(String::new(), |share| match share {
        share if share < 1e-9 => "; the results are all equal".to_owned(),
        share => format!("; the results scatter by {}", percent(share)),
    });
    let how_often = match series.changes.len() {
        0 => {
            let could = could_have_found(series).map_or(String::new(), |half| {
                format!("; {half} would very likely have been found")
            });
            return format!(
                "{}: no change was found in {results}{scatter}{could}.",
                capital(&name)
            );
        }
        1 => "once".to_owned(),
        2 => "twice".to_owned(),
        n => format!("{n} times"),
    };
    let all = series.changes.iter().map(|change| of_change(series, change));
    let all = all.collect::<Vec<_>>().join("; ");
    format!("{} changed {how_often} in {results}: {all}.", capital(&name))
}

/// "a second half that is 5 % lower", "a second half that is 2.5 times as high": what would have been
/// found. None where results are all equal, and any would.
fn could_have_found(series: &HistorySeries) -> Option<String> {
    let share =
        series.could_have_found.filter(|_| series.scatter.is_some_and(|one| 1e-9 <= one))?;
    Some(match (series.figure.more_is_better(), 1.0 + share) {
        (true, _) => format!("a second half that is {} lower", percent(share)),
        (false, times) if TIMES <= times => {
            format!("a second half that is {} times as high", significant(times))
        }
        (false, _) => format!("a second half that is {} higher", percent(share)),
    })
}

/// "on 2026-03-01 it fell by 12 % (9 to 15 %), where the kernel changed from 6.1 to 6.6".
fn of_change(series: &HistorySeries, change: &HistoryChange) -> String {
    let when = moment(series, change);
    format!("on {when} it {}, where {}", moved(change.ratio), causes(&change.facts))
}

/// The day of a change, with the time if the result before it is of the same day.
pub(crate) fn moment(series: &HistorySeries, change: &HistoryChange) -> String {
    let day = |created: &str| created.split('T').next().unwrap_or_default().to_owned();
    let before = &series.values[change.at - 1].created;
    match day(before) == day(&change.created) {
        true => figures::moment(&change.created),
        false => day(&change.created),
    }
}

/// "fell by 12 % (9 to 15 %)", "rose to 3.2 times (3.0 to 3.4 times)".
pub(crate) fn moved(ratio: Ratio) -> String {
    let Ratio { value, low, high } = ratio;
    let verb = if value < 1.0 { "fell" } else { "rose" };
    if TIMES <= value {
        let ends = ends_of_times(ratio);
        return format!("{verb} to {} times{ends}", fathom_core::figures::ratio(value));
    }
    let share = |ratio: f64| if value < 1.0 { 1.0 - ratio } else { ratio - 1.0 };
    let (low, high) = if value < 1.0 { (high, low) } else { (low, high) };
    let ends = ends_of_share(share(value), [share(low), share(high)]);
    format!("{verb} by {}{ends}", percent(share(value)))
}

/// What changed beside a figure: "the kernel changed from 6.1 to 6.6".
pub(crate) fn causes(facts: &[FactDifference]) -> String {
    let likely: Vec<&FactDifference> =
        facts.iter().filter(|fact| fact.weight < FactWeight::Slight).collect();
    if likely.is_empty() {
        return "no known fact changed".to_owned();
    }
    let one = |fact: &&FactDifference| {
        format!("the {} changed from {} to {}", fact.name, fact.before, fact.after)
    };
    let named: Vec<String> = likely.iter().take(FACTS).map(one).collect();
    let more = match likely.len().saturating_sub(FACTS) {
        0 => String::new(),
        1 => ", and one more fact".to_owned(),
        n => format!(", and {n} more facts"),
    };
    format!("{}{more}", named.join(", "))
}

fn counted(number: usize, thing: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{} {thing}{plural}", figures::count(number as u64))
}

/// A text whose first letter is large, unless it is a percentile: "p99".
pub(crate) fn capital(text: &str) -> String {
    let is_percentile = text
        .strip_prefix('p')
        .is_some_and(|rest| rest.starts_with(|digit: char| digit.is_ascii_digit()));
    if is_percentile { text.to_owned() } else { figures::capitalized(text) }
}
