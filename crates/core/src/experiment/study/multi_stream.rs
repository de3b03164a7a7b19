//! How arrays scale with their disks when one to four workers read or write a zone of their own, each
//! with a few requests in flight.

use super::drives::{Drives, best, coordinate, label};
use crate::experiment::sweep::Sweep;
use crate::experiment::throughput::percent;
use crate::measure::Direction;
use crate::stats::Estimate;

/// What is called next to all.
const NEXT_TO_ALL: f64 = 0.98;

/// Workers that reach less of what one does are worth a word.
const WORTH_SAYING: f64 = 0.1;

pub(super) fn sentences(sweep: &Sweep, arrays: &[Drives]) -> Vec<String> {
    let single = arrays.iter().find(|array| array.disks == 1);
    let mut sentences: Vec<String> =
        arrays.iter().filter_map(|array| of_array(sweep, array, single)).collect();
    if 1 < arrays.len() {
        sentences
            .extend(Direction::BOTH.map(|way| fastest(sweep, arrays, way)).into_iter().flatten());
    }
    sentences
}

/// "/dev/md0 (raid0, 4 disks, chunk 64 KiB, full stripe 256 KiB): reads 1.9 GiB/s from workers 2 and
/// queue-depth 4/worker on, 3.9 times /dev/sdb, 98 % of 4 disks; writes ..."
fn of_array(sweep: &Sweep, array: &Drives, single: Option<&Drives>) -> Option<String> {
    let parts = Direction::BOTH.map(|direction| {
        let results = array.results(sweep, direction);
        let (_, value) = best(&results)?;
        // The fewest workers and requests that give next to all of it.
        let (at, _) = results.iter().find(|(_, shown)| NEXT_TO_ALL * value <= shown.value)?;
        let mut part = format!("{} {}", verb(direction), sweep.in_words(value));
        let place = ["workers", "queue-depth"]
            .map(|axis| label(at, axis).map(|label| format!("{axis} {label}")));
        let place: Vec<String> = place.into_iter().flatten().collect();
        if !place.is_empty() {
            part += &format!(" from {} on", place.join(" and "));
        }
        part += &scaling(sweep, array, single, (direction, value));
        part += &crowd(&results).unwrap_or_default();
        Some(part)
    });
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    (!parts.is_empty())
        .then(|| format!("{} ({}): {}.", array.name, array.geometry, parts.join("; ")))
}

/// How many times a single disk that is; without one to compare with, how much of it is each disk's.
fn scaling(
    sweep: &Sweep,
    array: &Drives,
    single: Option<&Drives>,
    (direction, value): (Direction, f64),
) -> String {
    if array.disks == 1 {
        return String::new();
    }
    let alone = single.and_then(|single| {
        best(&single.results(sweep, direction)).map(|(_, value)| (&single.name, value))
    });
    let disks = f64::from(array.disks);
    match alone {
        Some((name, alone)) => format!(
            ", {:.1} times {name}, {} of {} disks",
            value / alone,
            percent(value / alone / disks),
            array.disks
        ),
        None => {
            format!(", {} for each of its {} disks", sweep.in_words(value / disks), array.disks)
        }
    }
}

/// What the most workers reach of what one does, whatever they have in flight, where that is less.
fn crowd(results: &[(&crate::experiment::Candidate, Estimate)]) -> Option<String> {
    let workers = |one: &crate::experiment::Candidate| coordinate(one, "workers")?.value;
    let counts = results.iter().filter_map(|(one, _)| workers(one));
    let most = counts.fold(0.0, f64::max);
    let with = |count: f64| {
        let own: Vec<_> =
            results.iter().filter(|(one, _)| workers(one) == Some(count)).copied().collect();
        best(&own).map(|(_, value)| value)
    };
    let share = with(most)? / with(1.0)?;
    (share <= 1.0 - WORTH_SAYING)
        .then(|| format!(", {most} workers reach {} of what one does", percent(share)))
}

fn fastest(sweep: &Sweep, arrays: &[Drives], direction: Direction) -> Option<String> {
    let reached = arrays.iter().filter_map(|array| {
        best(&array.results(sweep, direction)).map(|(_, value)| (array, value))
    });
    let reached: Vec<(&Drives, f64)> = reached.collect();
    let most = reached.iter().map(|(_, value)| *value).fold(0.0, f64::max);
    let first = reached.iter().filter(|(_, value)| NEXT_TO_ALL * most <= *value);
    let names: Vec<&str> = first.map(|(array, _)| array.name.as_str()).collect();
    let verb = verb(direction);
    let reached = sweep.in_words(most);
    match names.as_slice() {
        [] => None,
        [one] => Some(format!("{one} {verb} fastest: {reached}.")),
        [all @ .., last] => {
            let verb = verb.trim_end_matches('s');
            Some(format!("{} and {last} {verb} fastest, alike: {reached}.", all.join(", ")))
        }
    }
}

fn verb(direction: Direction) -> &'static str {
    match direction {
        Direction::Read => "reads",
        Direction::Write => "writes",
    }
}
