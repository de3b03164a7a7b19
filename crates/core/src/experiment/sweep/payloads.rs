//! Whether data that repeats itself is written faster than random data: this shows a target that
//! compresses, deduplicates or leaves out zeros, once both were measured.
//!
//! One ratio of many is large by chance. So the mean over all pairs of trials of a curve counts,
//! with an interval from the scatter of the pairs. Each pair has two trials at the same settings
//! that ran close to each other.

use super::{Sweep, TrialThroughput, curves};
use crate::differences::ends_of_times;
use crate::experiment::Axis;
use crate::facts::{Answer, MUCH};
use crate::figures::{self, percent};
use crate::spec::{Payload, Point, Stream};
use crate::stats::{self, Ratio};
use crate::trial::{Coordinate, Trial};
use crate::verdict::{Finding, Severity};

/// The result for a payload that repeats itself.
#[derive(Clone, Debug, PartialEq)]
pub struct PayloadSaving {
    /// The payload, as it was typed.
    pub payload: String,
    /// The common part of the pairs: the labels on the axes that are not loads, if there is a load.
    common: Vec<Coordinate>,
    /// The number of pairs of trials.
    pub pairs: usize,
    /// How much faster it is than random data, on average; none if there are too few pairs.
    pub ratio: Option<Ratio>,
}

impl PayloadSaving {
    /// Whether it is much faster, beyond chance.
    pub fn is_much(&self) -> bool {
        Answer::is_much(self.ratio) == Answer::Yes
    }

    /// " at block-size 12.8MB": what its pairs have in common; empty if it is about all of them.
    pub fn place(&self) -> String {
        let each = self.common.iter().map(|one| format!("{} {}", one.axis, one.label));
        let whose = each.collect::<Vec<_>>().join(", ");
        if whose.is_empty() { String::new() } else { format!(" at {whose}") }
    }

    /// "2.0 times as fast (1.9 to 2.2)".
    pub fn in_words(ratio: Ratio) -> String {
        let times = figures::ratio(ratio.value);
        format!("{times} times as fast as random data{}", ends_of_times(ratio))
    }
}

/// The result for each payload that repeats itself.
pub fn saving(sweep: &Sweep) -> Vec<PayloadSaving> {
    let groups = repeating(sweep);
    let looks = groups.len();
    let known = groups.into_iter().map(|(payload, common)| {
        let pairs = pairs(sweep, &(payload.clone(), common.clone()));
        PayloadSaving { pairs: pairs.len(), ratio: stats::of_pairs(&pairs, looks), payload, common }
    });
    known.collect()
}

/// The finding about a trial with data that repeats itself, if such data is much faster than random data
/// by all pairs so far.
pub(super) fn saved(sweep: &Sweep, place: usize, trial: &Trial) -> Option<Finding> {
    let group = group(sweep, place)?;
    let mut pairs = pairs(sweep, &group);
    if let Some(reading) = sweep.read(&trial.record) {
        pairs.extend(pair(sweep, place, reading));
    }
    // This is checked after each pair: the n-th check may be wrong with a share of 1 / (n (n + 1))
    // of the total, which adds up to the total.
    let looks = pairs.len() * (pairs.len() + 1) * repeating(sweep).len();
    let ratio = stats::of_pairs(&pairs, looks);
    let (payload, common) = group;
    let found = PayloadSaving { pairs: pairs.len(), ratio, payload, common };
    let ratio = found.ratio.filter(|_| found.is_much())?;
    Some(Finding {
        code: "repeating-data-faster",
        severity: Severity::Void,
        evidence: format!(
            "Data that repeats itself ({}) was written {} at the same settings, over {} pairs of \
             trials.",
            found.payload,
            PayloadSaving::in_words(ratio),
            found.pairs,
        ),
        advice:
            "The target, or something on the way to it, compresses, deduplicates or leaves such \
                 data out: measure with random data."
                .to_owned(),
    })
}

/// Whether the figures of a candidate come from data that the target saves.
pub(super) fn is_saved(sweep: &Sweep, saving: &[PayloadSaving], place: usize) -> bool {
    let Some((payload, common)) = group(sweep, place) else { return false };
    let own = |one: &&PayloadSaving| one.payload == payload && one.common == common;
    saving.iter().find(own).is_some_and(PayloadSaving::is_much)
}

/// The sentence about each payload that repeats itself.
pub fn sentences(sweep: &Sweep) -> Vec<String> {
    saving(sweep).iter().filter(|one| 0 < one.pairs).map(in_words).collect()
}

fn in_words(one: &PayloadSaving) -> String {
    let PayloadSaving { payload, pairs, ratio, .. } = one;
    let at = one.place();
    let over = if *pairs == 1 { "1 pair".to_owned() } else { format!("{pairs} pairs") };
    let over = format!("{over} of trials{at}");
    let name = if payload == "zeros" { "Zeros" } else { &format!("Data of payload {payload}") };
    let are = if payload == "zeros" { "are" } else { "is" };
    let much = percent(MUCH - 1.0);
    match ratio {
        Some(ratio) if one.is_much() => format!(
            "{name} {are} written {} on average over {over}: the target, or something on the way to \
             it, compresses, deduplicates or leaves them out, and their figures say nothing about its \
             medium.",
            PayloadSaving::in_words(*ratio)
        ),
        Some(ratio) if ratio.high <= MUCH => format!(
            "{name} {are} not written much faster: {} on average over {over}, and nothing shows that \
             anything on the way saves on them.",
            PayloadSaving::in_words(*ratio)
        ),
        Some(ratio) => format!(
            "Whether {} {are} written much faster (by {much}) is unknown: {} on average over \
             {over}.",
            name.to_lowercase(),
            PayloadSaving::in_words(*ratio)
        ),
        None => format!(
            "Whether {} {are} written much faster is unknown after {over}: compare \
             several settings, or repeat them.",
            name.to_lowercase()
        ),
    }
}

/// A payload that repeats itself, and the labels on the axes that are no load.
type Group = (String, Vec<Coordinate>);

/// The payloads that repeat themselves, separately for each combination of the settings that are
/// not loads: a target may save on large blocks and not on small ones.
fn repeating(sweep: &Sweep) -> Vec<Group> {
    let mut all: Vec<Group> = Vec::new();
    for group in (0..sweep.candidates.len()).filter_map(|place| group(sweep, place)) {
        if !all.contains(&group) {
            all.push(group);
        }
    }
    all
}

/// The group of a candidate, if its payload repeats itself.
fn group(sweep: &Sweep, place: usize) -> Option<Group> {
    let one = &sweep.candidates[place];
    let own = one.coordinates.iter().find(|one| is_payload(&one.axis))?;
    let load = curves::axis(sweep);
    let others = one.coordinates.iter().enumerate();
    let others =
        others.filter(|(at, one)| load.is_some_and(|load| load != *at) && !is_payload(&one.axis));
    let common: Vec<Coordinate> = others.map(|(_, one)| one.clone()).collect();
    is_repeating(&one.point).then(|| (own.label.clone(), common))
}

/// The logarithms of how much faster it was than random data, for each trial of a group.
fn pairs(sweep: &Sweep, wanted: &Group) -> Vec<f64> {
    let places = 0..sweep.candidates.len();
    let places = places.filter(|place| group(sweep, *place).as_ref() == Some(wanted));
    let each = places.flat_map(|place| {
        sweep.readings[place].iter().filter_map(move |one| pair(sweep, place, *one))
    });
    each.collect()
}

/// A trial compared with that of random data at the same settings: in the same pass, or the one
/// that ran closest to it.
fn pair(sweep: &Sweep, place: usize, reading: TrialThroughput) -> Option<f64> {
    let others = &sweep.readings[counterpart(sweep, place)?];
    let closest = others.iter().min_by_key(|one| {
        let is_other_pass = !sweep.candidates[place].once && one.repeat != reading.repeat;
        (is_other_pass, one.turn.abs_diff(reading.turn))
    })?;
    let ratio = reading.value / closest.value;
    (0.0 < ratio && ratio.is_finite()).then(|| ratio.ln())
}

/// The same settings with data of which nothing can be saved.
fn counterpart(sweep: &Sweep, place: usize) -> Option<usize> {
    let others = |coordinates: &[Coordinate]| {
        let others = coordinates.iter().filter(|one| !is_payload(&one.axis));
        others.map(|one| (one.axis.clone(), one.label.clone())).collect::<Vec<_>>()
    };
    let wanted = others(&sweep.candidates[place].coordinates);
    let mut all = sweep.candidates.iter();
    all.position(|one| is_unique(&one.point) && others(&one.coordinates) == wanted)
}

/// Why a trial may write data that repeats itself: because the payload varies, and other payloads
/// are measured as well.
pub(super) fn varies(axes: &[Axis], trial: &Trial) -> Option<&'static str> {
    let varies = |axis: &&Axis| is_payload(&axis.name) && 1 < axis.labels.len();
    let varied: Vec<&Axis> = axes.iter().filter(varies).collect();
    let mut coordinates = trial.place.coordinates.iter();
    coordinates.any(|one| varied.iter().any(|axis| axis.name == one.axis)).then_some(
        "The payload is what this experiment varies: compare it with what the others came to.",
    )
}

/// Whether an axis is that of the payload, of one stream or of all.
fn is_payload(axis: &str) -> bool {
    axis.rsplit('.').next() == Some("payload")
}

fn written(point: &Point) -> impl Iterator<Item = &Stream> {
    point.streams.iter().filter(|stream| stream.read_share() < 1.0)
}

/// Whether all data that a point writes repeats itself.
fn is_repeating(point: &Point) -> bool {
    let repeats = |stream: &Stream| matches!(stream.payload, Payload::Zeros | Payload::Pattern(_));
    written(point).next().is_some() && written(point).all(repeats)
}

/// Whether nothing can be saved of any data that a point writes.
pub(in crate::experiment) fn is_unique(point: &Point) -> bool {
    written(point).next().is_some() && written(point).all(|one| one.payload == Payload::UNIQUE)
}
