//! What a sweep concludes, in sentences: the best point and what cannot be told from it, from where
//! on more load gains nothing, and which axis matters most.

use super::{Sweep, payloads};
use crate::experiment::throughput::{Throughput, percent};
use crate::experiment::{Axis, Coordinate, Scale};
use crate::stats::Estimate;

/// More points than this are counted, not listed.
const LISTED: usize = 6;
/// More curves than this are counted, not described: the table has them all.
const CURVES: usize = 12;
/// A loss at the end of a curve that is worth a word.
const WORTH_SAYING: f64 = 0.05;
/// The axes along which a load rises, so that it makes sense to ask where it is enough.
const LOADS: [&str; 2] = ["queue-depth", "workers"];

/// A candidate that was measured.
struct Known {
    place: usize,
    estimate: Estimate,
}

/// Everything that follows from the trials so far; empty without any.
pub fn sentences(sweep: &Sweep) -> Vec<String> {
    let known = (0..sweep.candidates.len()).filter_map(|place| {
        Some(Known { place, estimate: sweep.estimate(place).filter(|one| one.value > 0.0)? })
    });
    // Data that the target saves says nothing about it, however fast it is.
    let (saved, known): (Vec<Known>, Vec<Known>) =
        known.partition(|one| payloads::is_saved(sweep, one.place));
    let best = known.iter().max_by(|a, b| a.estimate.value.total_cmp(&b.estimate.value));
    let Some(best) = best else { return Vec::new() };
    let mut sentences = Vec::from([the_best(sweep, best), equals(sweep, best, &known)]);
    sentences.extend(saturation(sweep, &known));
    sentences.extend(most_important(sweep, &known));
    sentences.extend(not_counted(sweep, &saved));
    let cut = sweep.cut_off.iter().filter(|cut| **cut).count();
    if cut > 0 {
        let them = if cut == 1 { "1 point was" } else { &format!("{cut} points were") };
        sentences.push(format!("{them} cut off early, clearly worse than the best."));
    }
    sentences.retain(|sentence| !sentence.is_empty());
    sentences
}

fn the_best(sweep: &Sweep, best: &Known) -> String {
    let trials = match sweep.readings[best.place].len() {
        1 => "1 trial".to_owned(),
        n => format!("{n} trials"),
    };
    let name = name(&sweep.candidates[best.place].coordinates);
    format!("The best is {name}: {} ({trials}).", with_uncertainty(sweep, &best.estimate))
}

/// "Not counted is payload zeros: data that repeats itself was written much faster than random data."
fn not_counted(sweep: &Sweep, saved: &[Known]) -> Option<String> {
    let what = match saved {
        [] => return None,
        [one] => format!("is {}", name(&sweep.candidates[one.place].coordinates)),
        several => format!("are {} points", several.len()),
    };
    Some(format!(
        "Not counted {what}: data that repeats itself was written much faster there than random data."
    ))
}

/// The points whose difference from the best may be chance, each compared by itself.
fn equals(sweep: &Sweep, best: &Known, known: &[Known]) -> String {
    if known.len() < 2 {
        return String::new();
    }
    if known.iter().any(|one| one.estimate.half_width.is_none()) {
        return "How sure that is cannot be told: measure for longer, or with --repeats 3.".into();
    }
    let mut same: Vec<&Known> = known
        .iter()
        .filter(|one| one.place != best.place && may_equal(&one.estimate, &best.estimate))
        .collect();
    same.sort_by(|a, b| b.estimate.value.total_cmp(&a.estimate.value));
    let label = |one: &&Known| name(&sweep.candidates[one.place].coordinates);
    let names: Vec<String> = same.iter().take(LISTED).map(label).collect();
    match same.len() {
        0 => "No other point can be taken for it.".to_owned(),
        n if n > LISTED => {
            format!("These cannot be told from it: {}; and {} more.", names.join("; "), n - LISTED)
        }
        _ => format!("These cannot be told from it: {}.", names.join("; ")),
    }
}

fn may_equal(one: &Estimate, other: &Estimate) -> bool {
    let half = |estimate: &Estimate| estimate.half_width.unwrap_or(f64::INFINITY);
    (one.value - other.value).abs() <= half(one).hypot(half(other))
}

/// Along the axis of the load, for each combination of the others: from where on it is enough.
fn saturation(sweep: &Sweep, known: &[Known]) -> Vec<String> {
    let along = LOADS.iter().find_map(|load| {
        sweep.axes.iter().position(|axis| {
            let name = axis.name.rsplit('.').next().unwrap_or_default();
            name == *load && axis.scale != Scale::Categories && axis.labels.len() > 2
        })
    });
    let Some(along) = along else { return Vec::new() };
    let mut curves: Vec<(Vec<&str>, Vec<&Known>)> = Vec::new();
    for one in known {
        let family = labels_without(&sweep.candidates[one.place].coordinates, along);
        match curves.iter_mut().find(|(known, _)| *known == family) {
            Some((_, curve)) => curve.push(one),
            None => curves.push((family, Vec::from([one]))),
        }
    }
    let value = |one: &Known| sweep.candidates[one.place].coordinates[along].value.unwrap_or(0.0);
    let mut sentences = Vec::new();
    for (_, curve) in curves.iter_mut().take(CURVES) {
        curve.sort_by(|a, b| value(a).total_cmp(&value(b)));
        sentences.push(curve_in_words(sweep, along, curve));
    }
    if CURVES < curves.len() {
        sentences.push(format!("The other {} curves are in the table.", curves.len() - CURVES));
    }
    sentences
}

/// "block-size 12.8MB: queue-depth 2 is enough (96 % of the best, 897 MiB/s); 256 costs 10 %."
fn curve_in_words(sweep: &Sweep, along: usize, curve: &[&Known]) -> String {
    let axis = &sweep.axes[along].name;
    let coordinates = |one: &Known| &sweep.candidates[one.place].coordinates;
    let others: Vec<Coordinate> = coordinates(curve[0])
        .iter()
        .enumerate()
        .filter(|(place, _)| *place != along)
        .map(|(_, one)| one.clone())
        .collect();
    let whose = if others.is_empty() { String::new() } else { format!("{}: ", name(&others)) };
    let label = |one: &Known| coordinates(one)[along].label.clone();
    let best = curve.iter().map(|one| one.estimate.value).fold(0.0, f64::max);
    let first = curve.iter().position(|one| one.estimate.value >= sweep.settings.enough * best);
    let (Some(first), Some(last)) = (first, curve.last()) else { return String::new() };
    let enough = curve[first];
    let shown = sweep.throughput.in_words(enough.estimate.value);
    if first + 1 == curve.len() {
        let label = label(enough);
        return format!("{whose}{axis} {label} is the best of them ({shown}), and more may gain.");
    }
    let share = enough.estimate.value / best;
    let lost = 1.0 - last.estimate.value / best;
    let end = match lost >= WORTH_SAYING && !may_equal_best(last, curve) {
        true => format!("; {} costs {}", label(last), percent(lost)),
        false => String::new(),
    };
    format!(
        "{whose}{axis} {} is enough ({} of the best, {shown}); more does not help{end}.",
        label(enough),
        percent(share),
    )
}

fn may_equal_best(one: &Known, curve: &[&Known]) -> bool {
    let best = curve.iter().max_by(|a, b| a.estimate.value.total_cmp(&b.estimate.value));
    best.is_some_and(|best| may_equal(&one.estimate, &best.estimate))
}

/// By how much the throughput changes along each axis, averaged over the others.
fn most_important(sweep: &Sweep, known: &[Known]) -> Option<String> {
    let mut effects: Vec<(&Axis, f64, Option<f64>)> = Vec::new();
    for (place, axis) in sweep.axes.iter().enumerate().filter(|(_, axis)| axis.labels.len() > 1) {
        let levels = axis.labels.iter().filter_map(|label| {
            let at = |one: &&Known| sweep.candidates[one.place].coordinates[place].label == *label;
            level(known.iter().filter(at))
        });
        let levels: Vec<(f64, Option<f64>)> = levels.collect();
        let highest = levels.iter().max_by(|a, b| a.0.total_cmp(&b.0))?;
        let lowest = levels.iter().min_by(|a, b| a.0.total_cmp(&b.0))?;
        let half = highest.1.zip(lowest.1).map(|(one, other)| one.hypot(other));
        effects.push((axis, (highest.0 - lowest.0).exp(), half));
    }
    effects.sort_by(|a, b| b.1.total_cmp(&a.1));
    let [first, rest @ ..] = effects.as_slice() else { return None };
    if rest.is_empty() {
        return None;
    }
    let factor = |(_, factor, half): &(&Axis, f64, Option<f64>)| match half {
        Some(half) => format!("{factor:.2} ± {:.2}", factor * half),
        None => format!("{factor:.2}"),
    };
    let others: Vec<String> =
        rest.iter().map(|one| format!("{} by {}", one.0.name, factor(one))).collect();
    Some(format!(
        "{} matters most: in the mean of the others the {} by a factor of {} along it; along {}.",
        first.0.name,
        match sweep.throughput {
            Throughput::Iops => "IOPS change",
            Throughput::Bandwidth => "bandwidth changes",
        },
        factor(first),
        others.join(", ")
    ))
}

/// The mean of the logarithms, and its half-width.
fn level<'a>(known: impl Iterator<Item = &'a Known>) -> Option<(f64, Option<f64>)> {
    let (mut sum, mut squares, mut n) = (0.0, Some(0.0), 0.0);
    for one in known {
        let half = one.estimate.half_width.map(|half| (half / one.estimate.value).powi(2));
        squares = squares.zip(half).map(|(sum, half)| sum + half);
        sum += one.estimate.value.ln();
        n += 1.0;
    }
    (n > 0.0).then(|| (sum / n, squares.map(|squares: f64| squares.sqrt() / n)))
}

/// "queue-depth 32, block-size 64k".
fn name(coordinates: &[Coordinate]) -> String {
    let each = coordinates.iter().map(|one| format!("{} {}", one.axis, one.label));
    each.collect::<Vec<_>>().join(", ")
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
