//! What random access among sequential costs which drives, and whether more requests per disk make up
//! for it.

use super::drives::{Drives, best, label};
use crate::experiment::sweep::Sweep;
use crate::experiment::throughput::percent;
use crate::measure::Direction;

/// The axis of the mixes, the purest one first.
const MIXES: &str = "pattern";
/// The axis of the depth.
const DEPTHS: &str = "queue-depth";

/// A gain by depth that is worth a word.
const WORTH_SAYING: f64 = 0.1;

pub(super) fn sentences(sweep: &Sweep, drives: &[Drives]) -> Vec<String> {
    let Some(mixes) = sweep.axes().iter().find(|axis| axis.name == MIXES) else {
        return Vec::new();
    };
    let mut sentences = Vec::new();
    for direction in Direction::BOTH {
        let costs = drives.iter().filter_map(|one| costs(sweep, one, (direction, &mixes.labels)));
        sentences.extend(costs);
    }
    if 1 < drives.len() {
        for direction in Direction::BOTH {
            let ranks = mixes.labels.iter().filter_map(|mix| ranks(sweep, drives, direction, mix));
            sentences.extend(ranks);
        }
    }
    sentences
}

/// The most that a target reaches with a mix, at any depth.
fn reached(sweep: &Sweep, drives: &Drives, direction: Direction, mix: &str) -> Option<f64> {
    let mut results = drives.results(sweep, direction);
    results.retain(|(one, _)| label(one, MIXES) == Some(mix));
    best(&results).map(|(_, value)| value)
}

/// By how much the most requests per disk gain over the fewest with a mix.
fn gain(sweep: &Sweep, drives: &Drives, direction: Direction, mix: &str) -> Option<f64> {
    let depths = sweep.axes().iter().find(|axis| axis.name == DEPTHS)?;
    let at = |depth: &String| {
        let mut results = drives.results(sweep, direction);
        results.retain(|(one, _)| {
            label(one, MIXES) == Some(mix) && label(one, DEPTHS) == Some(depth.as_str())
        });
        best(&results).map(|(_, value)| value)
    };
    Some(at(depths.labels.last()?)? / at(depths.labels.first()?)? - 1.0)
}

/// "sas, writes: 333 MB/s sequential; mixed:5% costs 60 %, mixed:20% 71 %, random 72 %; depth gains up
/// to 21 % (mixed:5%)."
fn costs(
    sweep: &Sweep,
    drives: &Drives,
    (direction, mixes): (Direction, &[String]),
) -> Option<String> {
    let (first, rest) = mixes.split_first()?;
    let pure = reached(sweep, drives, direction, first)?;
    let mut losses = Vec::new();
    for mix in rest {
        let lost = 1.0 - reached(sweep, drives, direction, mix)? / pure;
        losses.push(match lost {
            lost if lost < 0.0 => format!("{mix} gains {}", percent(-lost)),
            lost => format!("{mix} costs {}", percent(lost)),
        });
    }
    let gains = mixes.iter().filter_map(|mix| Some((mix, gain(sweep, drives, direction, mix)?)));
    let most = gains.max_by(|one, other| one.1.total_cmp(&other.1));
    let depth = match most {
        Some((mix, gained)) if WORTH_SAYING <= gained => {
            format!("; more requests per disk gain up to {} ({mix})", percent(gained))
        }
        Some(_) => "; more requests per disk gain next to nothing".to_owned(),
        None => String::new(),
    };
    let what = plural(direction);
    let pure = sweep.in_words(pure);
    Some(format!("{}, {what}: {first} {pure}; {}{depth}.", drives.name, losses.join(", ")))
}

/// "Writes, mixed:5%: sata2 180 MiB/s, sas 128 MiB/s, scsi 81 MiB/s."
fn ranks(sweep: &Sweep, drives: &[Drives], direction: Direction, mix: &str) -> Option<String> {
    let known = drives
        .iter()
        .filter_map(|one| reached(sweep, one, direction, mix).map(|value| (&one.name, value)));
    let mut known: Vec<(&String, f64)> = known.collect();
    known.sort_by(|one, other| other.1.total_cmp(&one.1));
    let all: Vec<String> =
        known.iter().map(|(name, value)| format!("{name} {}", sweep.in_words(*value))).collect();
    let what = match direction {
        Direction::Read => "Reads",
        Direction::Write => "Writes",
    };
    (1 < all.len()).then(|| format!("{what}, {mix}: {}.", all.join(", ")))
}

fn plural(direction: Direction) -> &'static str {
    match direction {
        Direction::Read => "reads",
        Direction::Write => "writes",
    }
}
