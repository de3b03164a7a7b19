//! How throughput grows with the number of hosts.

use super::Sweep;
use super::curves::{self, Curve};
use crate::differences::{ends_of_share, ends_of_times};
use crate::figures::{percent, ratio as times};
use crate::trial::Coordinate;

/// The axis of the number of hosts that apply the load together.
const HOSTS: &str = "hosts";

/// More curves than this are counted, not described: the table has them all.
const CURVES: usize = 12;

/// For each combination of the other axes how much more the most hosts reach than the fewest, and what
/// that is for each host; the curve of the highest throughput first. Empty without such an axis.
pub fn sentences(sweep: &Sweep, is_known: impl Fn(usize) -> bool) -> Vec<String> {
    let Some(along) = sweep.axes.iter().position(|axis| axis.name == HOSTS) else {
        return Vec::new();
    };
    let mut curves = curves::along(sweep, along, |place, _| is_known(place));
    let highest = |curve: &Curve<'_>| {
        curve.dots.iter().map(|dot| dot.level.estimate.value).fold(0.0, f64::max)
    };
    curves.sort_by(|one, other| highest(other).total_cmp(&highest(one)));
    let mut sentences: Vec<String> =
        curves.iter().take(CURVES).filter_map(|curve| sentence(sweep, curve)).collect();
    if CURVES < curves.len() {
        sentences.push(format!("The other {} curves are in the table.", curves.len() - CURVES));
    }
    sentences
}

/// "queue-depth 8: from 1 to 5 hosts throughput rises 4.8 times (4.2 to 5.5), to 428,211 IOPS: each of
/// 5 does 96 % of what 1 does (84 to 110 %)."
fn sentence(sweep: &Sweep, curve: &Curve<'_>) -> Option<String> {
    let (first, last) = (curve.dots.first()?, curve.dots.last()?);
    let (few, many) = (first.load.value?, last.load.value?);
    if many <= few {
        return None;
    }
    let ratio = curve.compared.ratio(&[curve.dots.len() - 1], &[0]);
    let others: Vec<&Coordinate> = curve.common.clone();
    let whose = match others.as_slice() {
        [] => String::new(),
        some => {
            let names = some.iter().map(|one| format!("{} {}", one.axis, one.label));
            format!("{}: ", names.collect::<Vec<_>>().join(", "))
        }
    };
    let changes = match (ratio.is_more(), ratio.is_less()) {
        (true, _) => "rises",
        (_, true) => "falls to",
        // Chance can explain it.
        _ => "may not rise: it changes to",
    };
    let share = |times: f64| times * few / many;
    let reached = sweep.in_words(last.level.estimate.value);
    Some(format!(
        "{whose}{} {} to {} hosts throughput {changes} {} times{}, to {reached}: each of \
         {} does {} of what {}{}.",
        if whose.is_empty() { "From" } else { "from" },
        first.load.label,
        last.load.label,
        times(ratio.value),
        ends_of_times(ratio),
        last.load.label,
        percent(share(ratio.value)),
        if few == 1.0 {
            "1 does alone".to_owned()
        } else {
            format!("each of {} does", first.load.label)
        },
        ends_of_share(share(ratio.value), [share(ratio.low), share(ratio.high)]),
    ))
}
