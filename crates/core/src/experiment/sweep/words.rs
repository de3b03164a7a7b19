//! The conclusions of a sweep, in sentences: the best point and those that cannot be told from it,
//! the load from which on more gains nothing, the points that do not fit their curve, and the axis
//! that matters most.

use super::curves::{self, Curve, Saturation};
use super::{LoadCost, PassOrder, Sweep, TARGETS, payloads, scaling};
use crate::differences::{ends_of_share, ends_of_times};
use crate::experiment::Axis;
use crate::experiment::throughput::Throughput;
use crate::figures::{self, number, percent};
use crate::stats::{self, Comparison, Estimate, HighestLevel, Level, Ratio, UNREPEATED};
use crate::trial::Coordinate;

/// More points than this are counted, not listed.
const LISTED: usize = 6;
/// More curves than this are counted, not described: the table has them all.
const CURVES: usize = 12;

/// If only larger differences can be told, points that look alike may well differ.
const COARSE: f64 = 0.1;

/// A smaller difference, as a share, is none to a reader.
const SMALLEST: f64 = 0.0005;

/// A candidate that was measured.
struct MeasuredCandidate {
    place: usize,
    level: Level,
}

/// All conclusions from the trials so far; empty without any.
pub fn sentences(sweep: &Sweep) -> Vec<String> {
    let saving = payloads::saving(sweep);
    let all = || 0..sweep.candidates.len();
    let is_saved = |place: &usize| payloads::is_saved(sweep, &saving, *place);
    let known = known(sweep);
    let saved = all().filter(|place| is_saved(place) && !sweep.readings[*place].is_empty());
    let saved: Vec<usize> = saved.collect();
    let void: Vec<usize> = all().filter(|one| sweep.is_void(*one) && !is_saved(one)).collect();
    if known.is_empty() {
        return Vec::new();
    }
    let is_known = |place| known.binary_search_by_key(&place, |one| one.place).is_ok();
    let mut sentences = scaling::sentences(sweep, is_known);
    sentences.extend(the_best(sweep, &known));
    sentences.extend(saturation(sweep, &known));
    sentences.extend(most_important(sweep, &known));
    sentences.extend(payloads::sentences(sweep));
    sentences.extend(not_counted(
        sweep,
        &saved,
        "data that repeats itself was written much faster than random data",
    ));
    sentences.extend(not_counted(sweep, &void, "all of the trials are void"));
    let cut = sweep.cut_off.iter().filter(|cut| **cut).count();
    if cut > 0 {
        let them = if cut == 1 { "1 point was" } else { &format!("{cut} points were") };
        sentences.push(format!("{them} cut off early, clearly worse than the best."));
    }
    sentences.extend(unrepeated(sweep));
    sentences
}

/// The candidates that were measured. Data that the target saves says nothing about its medium, even if
/// it is fast.
fn known(sweep: &Sweep) -> Vec<MeasuredCandidate> {
    let saving = payloads::saving(sweep);
    let counts = |place: &usize| !payloads::is_saved(sweep, &saving, *place);
    let all = (0..sweep.candidates.len()).filter(counts);
    all.filter_map(|place| Some(MeasuredCandidate { place, level: sweep.levels[place]? })).collect()
}

/// The highest of these.
fn highest(sweep: &Sweep, known: &[MeasuredCandidate]) -> Option<HighestLevel> {
    let costs: Vec<LoadCost> = known.iter().map(|one| sweep.cost(one.place)).collect();
    let compared = Comparison::new(known.iter().map(|one| one.level));
    compared.highest(|one, other| costs[one].compare(&costs[other]))
}

/// Whether the trials scatter so much that no point can be told from another.
pub fn all_alike(sweep: &Sweep) -> bool {
    let known = known(sweep);
    highest(sweep, &known).is_some_and(|found| are_all_alike(&known, &found))
}

fn are_all_alike(known: &[MeasuredCandidate], highest: &HighestLevel) -> bool {
    let compared = Comparison::new(known.iter().map(|one| one.level));
    let all = || 0..known.len();
    let is_lower = |one: usize, than: usize| compared.ratio(&[one], &[than]).is_less();
    1 < known.len()
        && highest.equals.len() + 1 == known.len()
        && all().all(|one| all().all(|than| !is_lower(one, than)))
        && compared.resolution().is_some_and(|least| COARSE < least)
}

/// "No point can be told from another: 623,414 to 732,133 IOPS (1 trial each)."
fn alike(sweep: &Sweep, known: &[MeasuredCandidate]) -> String {
    let values = known.iter().map(|one| one.level.estimate.value);
    let [least, most] = [f64::min, f64::max].map(|of| values.clone().reduce(of).unwrap_or(0.0));
    let trials = known.iter().map(|one| one.level.trials);
    let trials = match (trials.clone().min(), trials.max()) {
        (Some(1), Some(1)) => "1 trial each".to_owned(),
        (Some(least), Some(most)) if least < most => format!("{least} to {most} trials each"),
        (_, most) => format!("{} trials each", most.unwrap_or(0)),
    };
    let [least, most] = [least, most].map(|value| sweep.throughput.in_words(value));
    let unit = most.split_once(' ').map_or("", |(_, unit)| unit);
    let range = match least == most {
        true => most,
        false => format!("{} to {most}", least.trim_end_matches(unit).trim_end()),
    };
    format!("No point can be told from another: {range} ({trials}).")
}

/// Whether each of several points was measured once.
fn is_unrepeated(sweep: &Sweep) -> bool {
    let mut known = sweep.levels.iter().flatten();
    1 < known.clone().count() && known.all(|level| level.trials == 1)
}

/// The consequence for all conclusions if nothing was repeated.
pub fn unrepeated(sweep: &Sweep) -> Option<String> {
    is_unrepeated(sweep).then(|| {
        format!(
            "Each point was measured once. fathom assumes that such trials differ by {} by chance, \
             and reports no difference that this can explain. Measure the chance with --repeats 3.",
            percent(UNREPEATED)
        )
    })
}

/// The highest, and those that cannot be told from it: one decision, a few sentences.
fn the_best(sweep: &Sweep, known: &[MeasuredCandidate]) -> Vec<String> {
    let compared = Comparison::new(known.iter().map(|one| one.level));
    let Some(highest) = highest(sweep, known) else { return Vec::new() };
    let costs: Vec<LoadCost> = known.iter().map(|one| sweep.cost(one.place)).collect();
    let best = &known[highest.place];
    let trials = match best.level.trials {
        1 => "1 trial".to_owned(),
        n => format!("{n} trials"),
    };
    let what = match sweep.throughput {
        Throughput::Iops => "IOPS are",
        Throughput::Bandwidth => "Bandwidth is",
    };
    let own = at(&sweep.candidates[best.place].coordinates);
    // What differs between trials, a single one does not know.
    let shown = match best.level.trials {
        1 => sweep.throughput.in_words(best.level.estimate.value),
        _ => with_uncertainty(sweep, &best.level.estimate),
    };
    let more = may_gain(sweep, known, best.place).unwrap_or_default();
    // The answer is the one that costs least of those that may be the highest.
    let value = |place: &usize| known[*place].level.estimate.value;
    let most = highest.equals.iter().map(value).fold(best.level.estimate.value, f64::max);
    let higher = (best.level.estimate.value < most).then(|| sweep.throughput.in_words(most));
    let others = others(&highest, &costs, higher);
    let is_alike = are_all_alike(known, &highest);
    let first = match is_alike {
        true => alike(sweep, known),
        false => format!("{what} highest {own}: {shown} ({trials}){more}{others}."),
    };
    let mut sentences = Vec::from([first]);
    if known.len() < 2 {
        return sentences;
    }
    let same: Vec<&MeasuredCandidate> = highest.equals.iter().map(|one| &known[*one]).collect();
    let label = |one: &&MeasuredCandidate| name(&sweep.candidates[one.place].coordinates);
    let names: Vec<String> = same.iter().take(LISTED).map(label).collect();
    sentences.extend((!is_alike).then(|| match same.len() {
        0 => "No other point can be taken for the highest.".to_owned(),
        n if n > LISTED => {
            format!(
                "These cannot be told from the highest: {}; and {} more.",
                names.join("; "),
                n - LISTED
            )
        }
        _ => format!("These cannot be told from the highest: {}.", names.join("; ")),
    }));
    // Without any scatter every difference can be told.
    let resolution = compared.resolution().filter(|least| !same.is_empty() && SMALLEST < *least);
    sentences.extend(resolution.map(|least| match least {
        least if least < 10.0 => {
            format!(
                "Here, only points that differ by {} or more can be told apart{}.",
                percent(least),
                if is_unrepeated(sweep) { ", because each was measured once" } else { "" }
            )
        }
        _ => "There are too few trials to tell any two points apart: use --repeats 3.".to_owned(),
    }));
    sentences
}

/// "; 3 more points, of up to 262 MiB/s, cannot be told from it, with a p99 up to 8 times as long as its
/// own": `higher` is the highest of their figures, if it is above that of the answer.
fn others(highest: &HighestLevel, costs: &[LoadCost], higher: Option<String>) -> String {
    let equals = &highest.equals;
    let longest = costs[highest.place].times_as_long(equals.iter().map(|one| costs[*one]));
    let (who, up_to) = match equals.len() {
        0 => return String::new(),
        1 => ("1 more point".to_owned(), ""),
        n => (format!("{n} more points"), "up to "),
    };
    let higher = higher.map_or(String::new(), |most| format!(", of {up_to}{most},"));
    let longer = longest.map_or(String::new(), |times| {
        format!(", with a p99 {up_to}{} times as long as its own", number(times))
    });
    format!("; {who}{higher} cannot be told from it{longer}")
}

/// "; it still rises at the end of queue-depth, and more may gain": if no smaller load is enough or
/// may be.
fn may_gain(sweep: &Sweep, known: &[MeasuredCandidate], best: usize) -> Option<String> {
    let along = curves::axis(sweep)?;
    let is_known = |place: usize| known.binary_search_by_key(&place, |one| one.place).is_ok();
    let curves = curves::along(sweep, along, |place, _| is_known(place));
    let curve =
        curves.iter().find(|curve| curve.dots.last().is_some_and(|dot| dot.place == best))?;
    let found = curve.saturation(sweep.settings.enough);
    let is_last = found.enough.is_some_and(|(at, _)| at + 1 == curve.dots.len());
    (is_last && found.unsure.is_empty() && 1 < curve.dots.len()).then(|| {
        format!("; it still rises at the end of {}, and more may gain", sweep.axes[along].name)
    })
}

/// "Not counted is payload zeros: data that repeats itself was written much faster than random data."
fn not_counted(sweep: &Sweep, places: &[usize], why: &str) -> Option<String> {
    let what = match places {
        [] => return None,
        [one] => format!("is {}", name(&sweep.candidates[*one].coordinates)),
        several => format!("are {} points", several.len()),
    };
    Some(format!("Not counted {what}: {why}."))
}

/// Along the axis of the load, for each combination of the others: the load from which on it is
/// enough, and the points that do not fit the curve.
fn saturation(sweep: &Sweep, known: &[MeasuredCandidate]) -> Vec<String> {
    let Some(along) = curves::axis(sweep) else { return Vec::new() };
    let axis = &sweep.axes[along].name;
    let curves = curves::along(sweep, along, |place, _| {
        known.binary_search_by_key(&place, |one| one.place).is_ok()
    });
    let mut sentences = Vec::new();
    for curve in curves.iter().take(CURVES) {
        let others: Vec<Coordinate> = curve.common.iter().map(|one| (*one).clone()).collect();
        let whose = if others.is_empty() { String::new() } else { format!("{}: ", name(&others)) };
        let found = curve.saturation(sweep.settings.enough);
        sentences.push(format!("{whose}{}", curve_in_words(sweep, axis, curve, &found)));
        let odd = odd(sweep, axis, curve);
        sentences.extend(odd.into_iter().map(|odd| format!("{whose}{odd}")));
    }
    if CURVES < curves.len() {
        sentences.push(format!("The other {} curves are in the table.", curves.len() - CURVES));
    }
    sentences
}

/// "queue-depth 2 is enough (96 % of the best, at least 93 %: 897 MiB/s); 256 costs 10 % (7 to 13 %)."
fn curve_in_words(sweep: &Sweep, axis: &str, curve: &Curve<'_>, found: &Saturation) -> String {
    let label = |at: usize| curve.dots[at].load.label.as_str();
    let list = |all: &[usize]| listed(all.iter().map(|at| label(*at)));
    let cost = cost(curve, found, "costs");
    let Some((at, share)) = found.enough else {
        return undecided(sweep, axis, curve, found, &cost);
    };
    let shown = sweep.in_words(curve.dots[at].level.estimate.value);
    let may_gain = at + 1 == curve.dots.len();
    let unsure = match found.unsure.as_slice() {
        [] => String::new(),
        some => format!("; for {} that is unknown", list(some)),
    };
    if may_gain && found.unsure.is_empty() {
        return format!("{axis} {} is the best of them ({shown}), and more may gain.", label(at));
    }
    let more = if may_gain { ", and more may gain" } else { "" };
    format!("{axis} {} is enough ({}: {shown}){more}{unsure}{cost}.", label(at), of_the_best(share))
}

/// "which queue-depth is enough (95 % of the best) is unknown: 1 and 2 are not; 4 to 256 may be."
pub fn undecided(
    sweep: &Sweep,
    axis: &str,
    curve: &Curve<'_>,
    found: &Saturation,
    cost: &str,
) -> String {
    let list = |all: &[usize]| listed(all.iter().map(|at| curve.dots[*at].load.label.as_str()));
    let not = match found.not.as_slice() {
        [] => String::new(),
        [one] => format!("{} is not; ", list(&[*one])),
        some => format!("{} are not; ", list(some)),
    };
    let may = list(&found.unsure);
    let enough = percent(sweep.settings.enough);
    format!("which {axis} is enough ({enough} of the best) is unknown: {not}{may} may be{cost}.")
}

/// "; 256 costs 10 % (7 to 13 %)".
pub fn cost(curve: &Curve<'_>, found: &Saturation, verb: &str) -> String {
    let last = curve.dots.last().zip(found.cost);
    last.map_or(String::new(), |(last, share)| {
        format!("; {} {verb} {}", last.load.label, loss(share))
    })
}

/// "96 % of the best, at least 93 %".
pub fn of_the_best(share: Ratio) -> String {
    match (percent(share.value), percent(share.low)) {
        (value, low) if value == low => format!("{value} of the best"),
        (value, low) => format!("{value} of the best, at least {low}"),
    }
}

/// "10 % (7 to 13 %)".
pub fn loss(share: Ratio) -> String {
    let [value, least, most] = [share.value, share.high, share.low].map(|share| 1.0 - share);
    format!("{}{}", percent(value), ends_of_share(value, [least, most]))
}

/// Points that do not fit a curve: a point below both its neighbors, one that seemed to be and was
/// not when it was measured again, and one whose trials differ by more than the others'.
pub fn odd(sweep: &Sweep, axis: &str, curve: &Curve<'_>) -> Vec<String> {
    let dips = curve.dips();
    let suspects = sweep.again.as_deref().unwrap_or(&[]);
    let all = curve.dots.iter().enumerate().filter_map(|(at, dot)| {
        let label = &dot.load.label;
        let is_again = suspects.contains(&dot.place);
        let shown = |at: usize| sweep.in_words(curve.dots[at].level.estimate.value);
        let (least, most) = curves::range(sweep, dot);
        let range = format!("{} to {}", sweep.in_words(least), sweep.in_words(most));
        if let Some(dip) = dips.iter().find(|dip| dip.at == at) {
            let again = if is_again { "; it was measured again and stays" } else { "" };
            return Some(format!(
                "the curve is not monotonic: {axis} {label} gives {}, {} gives {} and {} gives \
                 {}{again}.",
                shown(at),
                curve.dots[dip.before].load.label,
                shown(dip.before),
                curve.dots[dip.behind].load.label,
                shown(dip.behind),
            ));
        }
        if curves::restless(sweep, dot).is_some() {
            let again = if is_again { ", measured again," } else { "" };
            return Some(format!(
                "the trials of {axis} {label}{again} differ by more than those of the others: {range}."
            ));
        }
        is_again.then(|| {
            format!("{axis} {label} did not fit the curve and was measured again: {range}.")
        })
    });
    all.collect()
}

/// "1, 2 and 4".
pub fn listed<'l>(labels: impl Iterator<Item = &'l str>) -> String {
    let labels: Vec<&str> = labels.collect();
    match labels.as_slice() {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [rest @ .., last] => format!("{} and {last}", rest.join(", ")),
    }
}

/// By how much the throughput changes along an axis, over the mean of the others.
struct Effect<'a> {
    axis: &'a Axis,
    factor: Ratio,
}

/// The axis that matters most, if that can be told.
fn most_important(sweep: &Sweep, known: &[MeasuredCandidate]) -> Option<String> {
    let axes = || sweep.axes.iter().enumerate().filter(|(_, axis)| axis.labels.len() > 1);
    let pairs = |labels: usize| labels * (labels - 1) / 2;
    let comparisons = axes().map(|(_, axis)| pairs(axis.labels.len())).sum();
    let effects = axes().filter_map(|(place, _)| effect(sweep, known, place, comparisons));
    let mut effects: Vec<Effect<'_>> = effects.collect();
    effects.sort_by(|a, b| b.factor.value.total_cmp(&a.factor.value));
    let [first, rest @ ..] = effects.as_slice() else { return None };
    let second = rest.iter().map(|one| one.factor.high).reduce(f64::max)?;
    let factor = |one: &Effect<'_>| {
        let [value, high] = [one.factor.value, one.factor.high].map(figures::ratio);
        match one.factor.low <= 1.0 {
            true if value == high => value,
            true => format!("{value} (at most {high})"),
            false => format!("{value}{}", ends_of_times(one.factor)),
        }
    };
    let all = |some: &[Effect<'_>]| {
        let each = some.iter().map(|one| format!("{} by {}", one.axis.name, factor(one)));
        each.collect::<Vec<_>>().join(", ")
    };
    let what = match sweep.throughput {
        Throughput::Iops => "IOPS change",
        Throughput::Bandwidth => "bandwidth changes",
    };
    Some(match second < first.factor.low {
        true => format!(
            "{} matters most: on average over the others, the {what} by a factor of {} along it; \
             along {}.",
            first.axis.name,
            factor(first),
            all(rest)
        ),
        false => format!(
            "Which axis matters most is unknown: on average over the others, the {what} along {}.",
            all(&effects)
        ),
    })
}

/// The largest factor between two values of an axis, of this many pairs in all, over all settings
/// that were measured at both.
fn effect<'a>(
    sweep: &'a Sweep,
    known: &[MeasuredCandidate],
    place: usize,
    comparisons: usize,
) -> Option<Effect<'a>> {
    let axis = &sweep.axes[place];
    let by_label: Vec<Vec<(Vec<&str>, Level)>> = axis
        .labels
        .iter()
        .map(|label| {
            let here = known.iter().filter_map(|one| {
                let coordinates = &sweep.candidates[one.place].coordinates;
                (coordinates[place].label == *label)
                    .then(|| (labels_without(coordinates, place), one.level))
            });
            here.collect()
        })
        .collect();
    let by_chance = sweep.settings.order == PassOrder::Shuffled;
    let mut largest: Option<Ratio> = None;
    for (nth, one) in by_label.iter().enumerate() {
        for other in &by_label[nth + 1..] {
            let pairs = one.iter().filter_map(|(at, level)| {
                let same = other.iter().find(|(place, _)| place == at)?;
                Some((*level, same.1))
            });
            let pairs: Vec<(Level, Level)> = pairs.collect();
            let Some(ratio) = stats::contrast(&pairs, comparisons, by_chance) else { continue };
            let up = if ratio.value < 1.0 { ratio.inverse() } else { ratio };
            largest = Some(match largest {
                None => up,
                Some(known) => Ratio {
                    value: known.value.max(up.value),
                    low: known.low.max(up.low),
                    high: known.high.max(up.high),
                },
            });
        }
    }
    largest.map(|factor| Effect { axis, factor })
}

/// "queue-depth 32, block-size 64k". A target needs no name of its axis.
fn name(coordinates: &[Coordinate]) -> String {
    let each = coordinates.iter().map(|one| match is_target(one) {
        true => one.label.clone(),
        false => format!("{} {}", one.axis, one.label),
    });
    each.collect::<Vec<_>>().join(", ")
}

/// "at queue-depth 32, block-size 64k", "on sdb at queue-depth 32".
fn at(coordinates: &[Coordinate]) -> String {
    let (on, at): (Vec<Coordinate>, Vec<Coordinate>) =
        coordinates.iter().cloned().partition(is_target);
    let parts = [("on", on), ("at", at)].into_iter().filter(|(_, own)| !own.is_empty());
    parts.map(|(word, own)| format!("{word} {}", name(&own))).collect::<Vec<_>>().join(" ")
}

fn is_target(one: &Coordinate) -> bool {
    one.axis == TARGETS
}

fn labels_without(coordinates: &[Coordinate], left_out: usize) -> Vec<&str> {
    let each = coordinates.iter().enumerate().filter(|(place, _)| *place != left_out);
    each.map(|(_, one)| one.label.as_str()).collect()
}

fn with_uncertainty(sweep: &Sweep, estimate: &Estimate) -> String {
    let shown = sweep.throughput.in_words(estimate.value);
    match estimate.half_width {
        Some(half) => format!("{shown} ± {}", percent(half / estimate.value)),
        None => shown,
    }
}
