//! How arrays scale with their disks when one to four workers read or write, each in its own zone,
//! with a few requests in flight.

use super::drives::{
    Drives, Result, against_first, best, coordinate, ends, is_guess, label, points, shares,
};
use crate::experiment::Candidate;
use crate::experiment::sweep::Sweep;
use crate::experiment::sweep::words::{listed, loss};
use crate::figures::percent;
use crate::measure::Direction;
use crate::stats::{Comparison, Ratio};

/// The share of the best that counts as next to all.
const NEXT_TO_ALL: f64 = 0.9;

/// The most arrays that one sentence compares.
const ARRAYS: usize = 3;

/// Workers that reach a smaller share of the throughput of one worker are worth reporting.
const WORTH_SAYING: f64 = 0.1;

pub(super) fn sentences(sweep: &Sweep, arrays: &[Drives]) -> Vec<String> {
    let single = arrays.iter().find(|array| array.disks == 1);
    let mut sentences = Vec::new();
    // The first sentence is the answer.
    sentences.extend(answer(sweep, arrays, single));
    if 1 < arrays.len() {
        sentences
            .extend(Direction::BOTH.map(|way| fastest(sweep, arrays, way)).into_iter().flatten());
    }
    sentences.extend(arrays.iter().filter_map(|array| of_array(sweep, array, single)));
    let one_request = |array| {
        let each = Direction::BOTH.map(|way| one_request(sweep, array, single, way));
        each.into_iter().flatten()
    };
    sentences.extend(arrays.iter().flat_map(one_request));
    sentences.extend(arrays.iter().filter_map(|array| beside_reads(sweep, array)));
    sentences
}

/// "Beside /dev/sdb, /dev/md0 with 4 disks reads 3.9 times as fast (3.8 to 4) and writes 1.0 times as
/// fast": whether arrays scale with their disks. None without an array and a single disk, or if there are more
/// arrays than a sentence can hold.
fn answer(sweep: &Sweep, arrays: &[Drives], single: Option<&Drives>) -> Option<String> {
    let single = single?;
    let several: Vec<&Drives> = arrays.iter().filter(|array| 1 < array.disks).collect();
    let of = |array: &&Drives| {
        let parts = Direction::BOTH.map(|way| {
            let groups = [single.results(sweep, way), array.results(sweep, way)];
            let ratio = shares(&groups, &[(1, 0)])[0]?;
            let verb = verb(way);
            Some(match is_guess(ratio) {
                true => format!("{verb} at an unknown multiple"),
                false => {
                    format!("{verb} {} times as fast{}", times(ratio.value), ends(ratio, times, ""))
                }
            })
        });
        let [Some(reads), Some(writes)] = parts else { return None };
        Some(format!("{} with {} disks {reads} and {writes}", array.name, array.disks))
    };
    let parts: Vec<String> = several.iter().map(of).collect::<Option<_>>()?;
    let is_short = (1..=ARRAYS).contains(&several.len());
    is_short.then(|| format!("Beside {}, {}.", single.name, parts.join("; ")))
}

/// "/dev/md0 (raid0, 4 disks, chunk 64 KiB, full stripe 256 KiB): reads 1.9 GiB/s, at least 90 % of
/// that already with workers 2 and queue-depth 4/worker, 3.9 times /dev/sdb (3.8 to 4), 98 % of 4
/// disks; writes ..."
fn of_array(sweep: &Sweep, array: &Drives, single: Option<&Drives>) -> Option<String> {
    let parts = Direction::BOTH.map(|direction| {
        let results = array.results(sweep, direction);
        let (_, value) = best(&results)?;
        let mut part = format!("{} {}", verb(direction), sweep.in_words(value));
        part += &next_to_all(&results);
        part += &scaling(sweep, array, single, (direction, value));
        part += &crowd(&results).unwrap_or_default();
        Some(part)
    });
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    (!parts.is_empty())
        .then(|| format!("{} ({}): {}.", array.name, array.geometry, parts.join("; ")))
}

/// The fewest workers and requests that give next to all, if that can be told.
fn next_to_all(results: &[Result<'_>]) -> String {
    let all: Vec<usize> = (0..results.len()).collect();
    let compared = Comparison::new(results.iter().map(|(_, level)| *level));
    let place = |at: usize| {
        let place = ["workers", "queue-depth"]
            .map(|axis| label(results[at].0, axis).map(|label| format!("{axis} {label}")));
        place.into_iter().flatten().collect::<Vec<String>>().join(" and ")
    };
    let at = all.iter().find(|at| NEXT_TO_ALL <= compared.ratio(&[**at], &all).low);
    match at.map(|at| place(*at)) {
        _ if all.len() < 2 => String::new(),
        Some(place) if place.is_empty() => String::new(),
        Some(place) => format!(", at least {} of that already with {place}", percent(NEXT_TO_ALL)),
        None => format!(", the setting that reaches {} is unknown", percent(NEXT_TO_ALL)),
    }
}

/// The result as a multiple of a single disk; without a single disk to compare with, the share of
/// each disk.
fn scaling(
    sweep: &Sweep,
    array: &Drives,
    single: Option<&Drives>,
    (direction, value): (Direction, f64),
) -> String {
    if array.disks == 1 {
        return String::new();
    }
    let disks = f64::from(array.disks);
    let alone = single.and_then(|single| {
        let groups = [single.results(sweep, direction), array.results(sweep, direction)];
        shares(&groups, &[(1, 0)])[0].map(|ratio| (&single.name, ratio))
    });
    match alone {
        Some((name, ratio)) if is_guess(ratio) => {
            format!(", the ratio to {name} is unknown")
        }
        Some((name, ratio)) => format!(
            ", {} times {name}{}, {} of {} disks",
            times(ratio.value),
            ends(ratio, times, ""),
            percent(ratio.value / disks),
            array.disks
        ),
        None => {
            format!(", {} for each of its {} disks", sweep.in_words(value / disks), array.disks)
        }
    }
}

/// The throughput of the most workers as a share of that of one worker, each with any number in
/// flight, if it is less.
fn crowd(results: &[Result<'_>]) -> Option<String> {
    let workers = |one: &Candidate| coordinate(one, "workers")?.value;
    let counts = results.iter().filter_map(|(one, _)| workers(one));
    let most = counts.fold(0.0, f64::max);
    let with = |count: f64| {
        let own = results.iter().filter(|(one, _)| workers(one) == Some(count));
        own.copied().collect::<Vec<Result<'_>>>()
    };
    let share = shares(&[with(1.0), with(most)], &[(1, 0)])[0]?;
    (is_repeated(results) && share.is_less() && share.value <= 1.0 - WORTH_SAYING).then(|| {
        let value = percent(share.value);
        format!(", {most} workers reach {value} of what one does{}", ends(share, points, " %"))
    })
}

/// Whether each was measured more than once: one trial against one trial does not show what else
/// affected either of them.
fn is_repeated(results: &[Result<'_>]) -> bool {
    results.iter().all(|(_, level)| 1 < level.trials)
}

/// "4.0", "0.67".
fn times(ratio: f64) -> String {
    match ratio < 0.95 {
        true => format!("{ratio:.2}"),
        false => format!("{ratio:.1}"),
    }
}

/// Results with one request of each worker in flight, by the number of workers.
fn by_workers<'s>(
    sweep: &'s Sweep,
    array: &Drives,
    direction: Direction,
) -> Vec<(u32, Vec<Result<'s>>)> {
    let mut known: Vec<(u32, Vec<Result<'s>>)> = Vec::new();
    for result in array.results(sweep, direction) {
        let workers = coordinate(result.0, "workers").and_then(|one| one.value);
        let workers = workers.unwrap_or(1.0) as u32;
        let is_one = match label(result.0, "queue-depth") {
            Some("1/worker") => true,
            Some("1") => workers == 1,
            _ => false,
        };
        match known.iter_mut().find(|(known, _)| *known == workers) {
            _ if !is_one => {}
            Some((_, own)) => own.push(result),
            None => known.push((workers, Vec::from([result]))),
        }
    }
    known.sort_by_key(|(workers, _)| *workers);
    known
}

/// Scaling by the definition of the study, with one request of each worker, by the number of
/// workers, and the cost of the second worker: "/dev/md5, reads with one request each: 1 worker 4.0
/// times /dev/sdb (3.9 to 4.1), 2 workers 2.1 times (2 to 2.2); the second worker costs 45 % (43 to
/// 47 %)."
fn one_request(
    sweep: &Sweep,
    array: &Drives,
    single: Option<&Drives>,
    direction: Direction,
) -> Option<String> {
    let own = by_workers(sweep, array, direction);
    let alone = single.filter(|single| single.name != array.name);
    let alone = alone.map_or(Vec::new(), |single| by_workers(sweep, single, direction));
    let count = own.len();
    let groups = own.iter().chain(&alone).map(|(_, results)| results.clone());
    let groups: Vec<Vec<Result<'_>>> = groups.collect();
    // Each against the single disk with the same number of workers, then each against one worker.
    let pairs = (0..count).map(|nth| {
        let same = alone.iter().position(|(workers, _)| *workers == own[nth].0);
        (nth, same.map_or(usize::MAX, |at| count + at))
    });
    let pairs: Vec<(usize, usize)> = pairs.chain((1..count).map(|nth| (nth, 0))).collect();
    let tell = |(pair, share): (&(usize, usize), Option<Ratio>)| match share {
        Some(ratio) if is_repeated(&groups[pair.0]) && is_repeated(&groups[pair.1]) => Some(ratio),
        Some(ratio) => Some(Ratio { low: 0.0, high: f64::INFINITY, ..ratio }),
        None => None,
    };
    let shares: Vec<Option<Ratio>> = pairs.iter().zip(shares(&groups, &pairs)).map(tell).collect();
    let (against, falls) = shares.split_at(count);
    // What is true of all is said once.
    let none_is_known =
        against.iter().any(Option::is_some) && against.iter().flatten().all(|one| is_guess(*one));
    let parts: Vec<String> = own
        .iter()
        .zip(against)
        .map(|((workers, results), share)| {
            let who = if *workers == 1 { "worker" } else { "workers" };
            let level = best(results).map_or(0.0, |(_, value)| value);
            let shown = sweep.in_words(level);
            match share {
                Some(_) if none_is_known => format!("{workers} {who} {shown}"),
                Some(ratio) if is_guess(*ratio) => {
                    format!("{workers} {who} {shown}, the ratio is unknown")
                }
                Some(ratio) => {
                    let ends = ends(*ratio, times, "");
                    format!("{workers} {who} {shown}, {} times{ends}", times(ratio.value))
                }
                None => format!("{workers} {who} {shown}"),
            }
        })
        .collect();
    let second = own.iter().position(|(workers, _)| *workers == 2).filter(|at| 0 < *at);
    let second = second.filter(|_| own[0].0 == 1).and_then(|at| falls[at - 1]);
    let second = second.map_or(String::new(), |share| match share {
        share if share.is_less() => format!("; the second worker costs {}", loss(share)),
        share if share.is_more() => {
            format!(
                "; two reach {} times what one does{}",
                times(share.value),
                ends(share, times, "")
            )
        }
        _ => "; what the second worker costs or gains is unknown".to_owned(),
    });
    let of = alone.first().and(single).map(|single| &single.name);
    let (of, unknown) = match of {
        None => (String::new(), String::new()),
        Some(single) if none_is_known => {
            let (ratios, are) = if parts.len() == 1 { ("ratio", "is") } else { ("ratios", "are") };
            (String::new(), format!("; the {ratios} to {single} {are} unknown"))
        }
        Some(single) => (format!(", in multiples of {single}"), String::new()),
    };
    let (name, verb) = (&array.name, verb(direction));
    (!parts.is_empty()).then(|| {
        let parts = parts.join("; ");
        format!("{name}, {verb} with one request each{of}: {parts}{unknown}{second}.")
    })
}

/// The best of writes as a share of the best of reads: "/dev/md5, writes beside reads: 25 % of them
/// (24 to 26 %)."
fn beside_reads(sweep: &Sweep, array: &Drives) -> Option<String> {
    let groups = [Direction::Write, Direction::Read].map(|way| array.results(sweep, way));
    let share = shares(&groups, &[(0, 1)])[0]?;
    let name = &array.name;
    Some(match share.may_be_nothing() {
        true => format!(
            "{name}, writes beside reads: cannot be told apart{}.",
            ends(share, points, " % of them")
        ),
        false => format!(
            "{name}, writes beside reads: {} of them{}.",
            percent(share.value),
            ends(share, points, " %")
        ),
    })
}

fn fastest(sweep: &Sweep, arrays: &[Drives], direction: Direction) -> Option<String> {
    let reached = arrays.iter().filter_map(|array| {
        let results = array.results(sweep, direction);
        Some((array, best(&results)?.1, results))
    });
    let mut reached: Vec<(&Drives, f64, Vec<Result<'_>>)> = reached.collect();
    reached.sort_by(|one, other| other.1.total_cmp(&one.1));
    let groups: Vec<Vec<Result<'_>>> = reached.iter().map(|one| one.2.clone()).collect();
    let shares = against_first(&groups);
    // Every target that cannot be told from the first may be the fastest as well.
    let first = reached.iter().zip(&shares).enumerate();
    let first =
        first.filter(|(nth, (_, share))| *nth == 0 || share.is_none_or(|one| !one.is_less()));
    let names: Vec<&str> = first.map(|(_, (one, _))| one.0.name.as_str()).collect();
    let verb = verb(direction);
    let shown = sweep.in_words(reached.first()?.1);
    match names.as_slice() {
        [] => None,
        [one] => Some(format!("{one} {verb} fastest: {shown}.")),
        all => {
            let verb = verb.trim_end_matches('s');
            Some(format!(
                "Which of {} {verb}s fastest is unknown: the highest is {shown}.",
                listed(all.iter().copied())
            ))
        }
    }
}

fn verb(direction: Direction) -> &'static str {
    match direction {
        Direction::Read => "reads",
        Direction::Write => "writes",
    }
}
