//! How many writers saturate a target, by the size of their blocks; whether it is faster than it is
//! rated at; whether zeros are faster than random data.

use super::curve::{self, Curve};
use crate::experiment::sweep::{Sweep, is_repeating, is_unique};
use crate::experiment::throughput::{number, percent};
use crate::experiment::{Candidate, bandwidth_in_words};
use crate::stats::Estimate;

/// The axis of the concurrency.
const CONCURRENCY: &str = "queue-depth";
/// The axis of the blocks.
const BLOCKS: &str = "block-size";

pub(super) fn sentences(sweep: &Sweep) -> Vec<String> {
    let random = || sweep.results().filter(|(one, _)| is_unique(&one.point));
    let curves = curve::along(random(), CONCURRENCY);
    let mut sentences: Vec<String> =
        curves.iter().filter_map(|curve| saturation(sweep, curve)).collect();
    sentences.extend(rated(random()));
    sentences.extend(zeros(sweep, random().collect()));
    sentences
}

/// "12.8MB blocks: 2 writers saturate the target (96 % of the best, 855 MiB/s); more does not help,
/// 256 cost 10 %."
fn saturation(sweep: &Sweep, curve: &Curve<'_>) -> Option<String> {
    let knee = curve.knee(sweep.enough_share())?;
    let blocks = curve.label(BLOCKS).map(|size| format!("{size} blocks: ")).unwrap_or_default();
    let label = knee.enough.load.label.as_str();
    let (who, verb) = if label == "1" { ("writer", "saturates") } else { ("writers", "saturate") };
    let shown = sweep.in_words(knee.enough.throughput.value);
    if knee.is_last {
        return Some(format!(
            "{blocks}nothing up to {label} {who} saturates the target ({shown})."
        ));
    }
    let cost = knee.cost.map(|(load, lost)| format!(", {} cost {}", load.label, percent(lost)));
    Some(format!(
        "{blocks}{label} {who} {verb} the target ({} of the best, {shown}); more does not help{}.",
        percent(knee.share),
        cost.unwrap_or_default()
    ))
}

/// What random data reached of what the target is rated at, in I/Os and in bytes.
fn rated<'a>(random: impl Iterator<Item = (&'a Candidate, Estimate)>) -> Vec<String> {
    let all: Vec<(&Candidate, Estimate)> = random.collect();
    let Some((first, _)) = all.first() else { return Vec::new() };
    let limits = first.point.rated;
    let block = |one: &Candidate| one.point.streams[0].block_sizes.mean(0.0);
    // The sweep compares bytes, because its blocks differ.
    let highest =
        |of: &dyn Fn(&(&Candidate, Estimate)) -> f64| all.iter().map(of).fold(0.0, f64::max);
    let said = |reached: f64, limit: f64, words: &dyn Fn(f64) -> String| {
        let (reached_in_words, limit_in_words) = (words(reached), words(limit));
        match reached / limit - 1.0 {
            more if TOLERANCE < more => format!(
                "Random data reaches {reached_in_words}, {} more than the {limit_in_words} that the \
                 target is rated at.",
                percent(more)
            ),
            _ => format!(
                "Random data reaches {reached_in_words}, {} of the {limit_in_words} that the target \
                 is rated at.",
                percent(reached / limit)
            ),
        }
    };
    let bandwidth = limits
        .bandwidth
        .map(|limit| said(highest(&|(_, shown)| shown.value), limit.0 as f64, &bandwidth_in_words));
    let iops = limits.iops.map(|limit| {
        let reached = highest(&|(one, shown)| shown.value / block(one));
        said(reached, limit.0, &|value| format!("{} IOPS", number(value)))
    });
    bandwidth.into_iter().chain(iops).collect()
}

/// As the verdict on a trial has it.
const TOLERANCE: f64 = 0.03;

/// Differences below this are nothing.
const ALIKE: f64 = 0.1;

/// How much faster zeros are than random data at the same settings.
fn zeros(sweep: &Sweep, random: Vec<(&Candidate, Estimate)>) -> Option<String> {
    let mut most: Option<(f64, &Candidate, f64, f64)> = None;
    for (one, shown) in sweep.results().filter(|(one, _)| is_repeating(&one.point)) {
        let place = |of: &Candidate, axis: &str| {
            of.coordinates.iter().find(|c| c.axis == axis).map(|c| c.label.clone())
        };
        let same = |other: &Candidate| {
            [CONCURRENCY, BLOCKS].iter().all(|axis| place(one, axis) == place(other, axis))
        };
        let Some((_, other)) = random.iter().find(|(other, _)| same(other)) else { continue };
        let ratio = shown.value / other.value;
        if 0.0 < other.value && most.is_none_or(|(known, ..)| known < ratio) {
            most = Some((ratio, one, shown.value, other.value));
        }
    }
    let (ratio, at, fast, slow) = most?;
    let labels = at.coordinates.iter().filter(|one| one.axis != "payload");
    let labels: Vec<String> = labels.map(|one| format!("{} {}", one.axis, one.label)).collect();
    Some(match ratio - 1.0 {
        more if more <= ALIKE => {
            "Zeros are written no faster than random data: nothing on the way saves on them."
                .to_owned()
        }
        _ => format!(
            "Zeros are written up to {ratio:.2} times as fast as random data ({}: {} against {}): \
             the target, or something on the way to it, compresses, deduplicates or leaves them \
             out, and their figures say nothing about its medium.",
            labels.join(", "),
            sweep.in_words(fast),
            sweep.in_words(slow)
        ),
    })
}
