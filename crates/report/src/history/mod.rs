//! Results of the same workload on the same target over time: their figures, where these changed, and
//! what else changed there.
//!
//! Everything follows from the result files. A result is taken apart into an [`HistoryEntry`], which holds
//! its figures and its header, so that thousands of results fit into memory.

mod entry;
mod words;

use std::collections::BTreeMap;

use fathom_core::stats::{ChangePoint, RESULTS_MIN, Ratio, change_points, could_have_found};
use schemars::JsonSchema;
use serde::Serialize;

use crate::comparison::{FactDifference, FactWeight, header_differences};
use crate::document::Metric;
use crate::document::harmless;
pub use entry::{HistoryEntry, HistoryRequest};
pub(crate) use words::{capital, moment, moved};

/// The version of the form of a history in JSON.
pub const HISTORY_VERSION: u32 = 1;

/// The same random orders for everyone who searches the same results.
const SEED: u64 = 1;

/// Fewer results than two levels of the fewest results are not searched.
const FEWEST: usize = 2 * RESULTS_MIN;

/// The results of a folder over time.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct History {
    /// The version of this form.
    pub history_version: u32,
    /// The folder, as it was named.
    pub folder: String,
    /// What it comes to, in one sentence.
    pub answer: String,
    /// The results that have figures.
    pub results: usize,
    /// The results of the same workload on the same target; those with a change first.
    pub groups: Vec<HistoryGroup>,
    /// The trials that do not count, because their verdict is void or they were interrupted.
    pub left_out: Vec<NotUsed>,
    /// The files that are no results, or none that can be used.
    pub skipped: Vec<NotUsed>,
}

/// A file, or a trial of it, that is not used.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
pub struct NotUsed {
    /// The file, relative to the folder.
    pub file: String,
    /// Why: a clause about "it".
    pub why: String,
}

/// The results of the same workload on the same target.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct HistoryGroup {
    /// The workload in words.
    pub workload: String,
    /// The target in words.
    pub target: String,
    /// The number of results.
    pub results: usize,
    /// A series for each figure of each point.
    pub series: Vec<HistorySeries>,
}

/// A figure of a point over time.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct HistorySeries {
    /// The point, if the workload has several; otherwise empty.
    pub point: String,
    /// The figure: "iops", "bandwidth", "mean", "max", "p99".
    pub metric: String,
    /// What became of it, in one sentence.
    pub sentence: String,
    /// The figure of each result in the order of time: I/Os or bytes per second, or nanoseconds.
    pub values: Vec<HistoryValue>,
    /// The levels between the changes: at least one, if there is a value.
    pub levels: Vec<HistoryLevel>,
    /// The changes, each before the level of the same place plus one.
    pub changes: Vec<HistoryChange>,
    /// The standard deviation of the results around their level, as a share; null if there are fewer
    /// than two.
    pub scatter: Option<f64>,
    /// A lasting change for the worse, as a share of the level, that is found in 8 of 10 such series or
    /// more if it begins halfway: null where a change was found, and where the results are too few for
    /// any.
    pub could_have_found: Option<f64>,
    /// The figure itself.
    #[serde(skip)]
    pub(crate) figure: Metric,
}

/// The figure of one result.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct HistoryValue {
    /// The result file, relative to the folder.
    pub file: String,
    /// When the run began, in RFC 3339, UTC.
    pub created: String,
    /// The same in nanoseconds since 1970.
    pub created_unix_ns: u64,
    /// The figure.
    pub value: f64,
}

/// Results without a change between them.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct HistoryLevel {
    /// The place of the first one among the values, from 0.
    pub first: usize,
    /// Their number.
    pub results: usize,
    /// Their geometric mean.
    pub mean: f64,
}

/// A change between two results.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct HistoryChange {
    /// The place of the first result after it among the values, from 0.
    pub at: usize,
    /// When that run began, in RFC 3339, UTC.
    pub created: String,
    /// The level after it divided by the level before it, with its 95 % interval.
    pub ratio: Ratio,
    /// How often a series without this change looks as if it had one: the highest probability.
    pub p: f64,
    /// Whether it is for the better.
    pub better: bool,
    /// What differs between the last result before it and the first one after it, the most likely
    /// reason first.
    pub facts: Vec<FactDifference>,
}

impl History {
    /// The history of these results. They may come in any order.
    pub fn of(folder: &str, mut entries: Vec<HistoryEntry>, mut skipped: Vec<NotUsed>) -> Self {
        entries.sort_by(|one, other| one.order().cmp(&other.order()));
        let entries = usable(entries, &mut skipped);
        let mut left_out: Vec<NotUsed> =
            entries.iter().flat_map(|entry| entry.left_out.clone()).collect();
        left_out.sort();
        skipped.sort();
        let mut grouped: BTreeMap<&str, Vec<&HistoryEntry>> = BTreeMap::new();
        for entry in entries.iter().filter(|entry| !entry.points.is_empty()) {
            grouped.entry(&entry.key).or_default().push(entry);
        }
        let mut groups: Vec<HistoryGroup> =
            grouped.values().map(|entries| HistoryGroup::of(entries)).collect();
        // The sort keeps the order of equals.
        groups.sort_by_key(|group| (!group.has_changed(), usize::MAX - group.results));
        let results = groups.iter().map(|group| group.results).sum();
        let answer = words::answer(folder, &groups);
        Self {
            history_version: HISTORY_VERSION,
            folder: folder.to_owned(),
            answer,
            results,
            groups,
            left_out,
            skipped,
        }
    }

    /// The history as JSON, without a newline at its end.
    pub fn to_json(&self) -> String {
        let json = serde_json::to_string_pretty(self);
        harmless(json.expect("these types have string keys and no failing parts"))
    }
}

/// The results that are no copies and were measured in the same way as the latest one. The others
/// are added to those that are skipped.
fn usable(entries: Vec<HistoryEntry>, skipped: &mut Vec<NotUsed>) -> Vec<HistoryEntry> {
    let version = entries.iter().map(|entry| entry.header.measurement_version).max();
    let mut kept: Vec<HistoryEntry> = Vec::with_capacity(entries.len());
    for entry in entries {
        let own = entry.header.measurement_version;
        let why = match kept.last() {
            _ if Some(own) != version => Some(format!(
                "it has measurement version {own}, whose figures cannot be compared with those of \
                 version {}",
                version.unwrap_or_default()
            )),
            Some(last) if last.is_copy(&entry) => {
                Some(format!("it is the same result as {}", last.file))
            }
            _ => None,
        };
        match why {
            Some(why) => skipped.push(NotUsed { file: entry.file, why }),
            None => kept.push(entry),
        }
    }
    kept
}

impl HistoryGroup {
    /// The group of these results, which are in the order of time.
    fn of(entries: &[&HistoryEntry]) -> Self {
        let mut names: Vec<(&str, Metric)> = Vec::new();
        for point in entries.iter().flat_map(|entry| &entry.points) {
            for (figure, _) in &point.figures {
                if !names.contains(&(&point.name, *figure)) {
                    names.push((&point.name, *figure));
                }
            }
        }
        let several = names.iter().any(|(name, _)| *name != names[0].0);
        let count = names.len();
        let series = names.into_iter().map(|(name, figure)| {
            let mut series = HistorySeries::of(entries, name, figure, count);
            if !several {
                series.point.clear();
            }
            series.sentence = words::sentence(&series);
            series
        });
        let series = series.filter(|series| !series.values.is_empty()).collect();
        let last = entries.last().expect("a group has a result");
        Self {
            workload: last.workload.clone(),
            target: last.target.clone(),
            results: entries.len(),
            series,
        }
    }

    /// Whether no series has enough results to find a change for sure, and none was found.
    pub(crate) fn is_short(&self) -> bool {
        self.series.iter().all(HistorySeries::is_short)
    }

    /// Whether one of its series has changed.
    pub fn has_changed(&self) -> bool {
        self.series.iter().any(|series| !series.changes.is_empty())
    }
}

impl HistorySeries {
    /// A figure of a point in these results, one of `count` series that are searched together.
    fn of(entries: &[&HistoryEntry], point: &str, figure: Metric, count: usize) -> Self {
        let value =
            |entry: &&HistoryEntry| entry.figure(point, figure).filter(|value| 0.0 < *value);
        let known: Vec<(&HistoryEntry, f64)> =
            entries.iter().filter_map(|entry| Some((*entry, value(entry)?))).collect();
        let figures: Vec<f64> = known.iter().map(|(_, value)| *value).collect();
        let found = change_points(&figures, count, SEED);
        let levels = levels(&figures, &found);
        let could = could_have_found(&figures, count).filter(|_| found.is_empty());
        let share = |change: f64| match figure.more_is_better() {
            true => 1.0 - (-change).exp(),
            false => change.exp_m1(),
        };
        let change = |change: &ChangePoint| {
            let (before, after) = (known[change.at - 1].0, known[change.at].0);
            let ChangePoint { at, ratio, p } = *change;
            let created = after.header.created.clone();
            let better = (1.0 < ratio.value) == figure.more_is_better();
            HistoryChange { at, created, ratio, p, better, facts: facts(before, after) }
        };
        let value = |(entry, value): &(&HistoryEntry, f64)| HistoryValue {
            file: entry.file.clone(),
            created: entry.header.created.clone(),
            created_unix_ns: entry.header.created_unix_ns,
            value: *value,
        };
        Self {
            point: point.to_owned(),
            metric: figure.typed(),
            sentence: String::new(),
            values: known.iter().map(value).collect(),
            changes: found.iter().map(change).collect(),
            scatter: scatter(&figures, &levels),
            levels,
            could_have_found: could.map(share),
            figure,
        }
    }

    /// Whether there are too few results to find a change for sure, and none was found.
    pub(crate) fn is_short(&self) -> bool {
        self.changes.is_empty() && self.could_have_found.is_none()
    }
}

/// What differs between two results, without the time, which is known.
fn facts(before: &HistoryEntry, after: &HistoryEntry) -> Vec<FactDifference> {
    let mut facts = header_differences(&before.header, &after.header);
    facts.retain(|fact| fact.name != "time");
    if before.backend != after.backend {
        let likely = facts.partition_point(|fact| fact.weight <= FactWeight::Likely);
        let (before, after) = (before.backend.clone(), after.backend.clone());
        let name = "backend".to_owned();
        facts.insert(likely, FactDifference { name, before, after, weight: FactWeight::Likely });
    }
    facts
}

fn levels(figures: &[f64], changes: &[ChangePoint]) -> Vec<HistoryLevel> {
    let starts = [0].into_iter().chain(changes.iter().map(|change| change.at));
    let starts: Vec<usize> = starts.chain([figures.len()]).collect();
    let level = |pair: &[usize]| {
        let own = &figures[pair[0]..pair[1]];
        let mean = own.iter().map(|one| one.ln()).sum::<f64>() / own.len() as f64;
        HistoryLevel { first: pair[0], results: own.len(), mean: mean.exp() }
    };
    starts.windows(2).filter(|pair| pair[0] < pair[1]).map(level).collect()
}

/// The standard deviation of the logarithms around the level of each, all levels together.
fn scatter(figures: &[f64], levels: &[HistoryLevel]) -> Option<f64> {
    let squares = levels.iter().map(|level| {
        let own = &figures[level.first..level.first + level.results];
        own.iter().map(|one| (one / level.mean).ln().powi(2)).sum::<f64>()
    });
    let degrees = figures.len().checked_sub(levels.len()).filter(|degrees| 0 < *degrees)?;
    Some((squares.sum::<f64>() / degrees as f64).sqrt())
}

/// The schema of a history in JSON.
pub fn history_schema() -> String {
    let text = serde_json::to_string_pretty(&schemars::schema_for!(History));
    text.expect("a schema has string keys and no failing parts") + "\n"
}

#[cfg(test)]
mod tests;
