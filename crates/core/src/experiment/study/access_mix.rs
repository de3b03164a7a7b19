//! The cost of random access among sequential access on each drive, and whether more requests per
//! disk make up for it.

use super::drives::{Drives, Result, any_shares, best, ends, label, points, shares};
use crate::differences::ends_of_share;
use crate::experiment::sweep::Sweep;
use crate::experiment::sweep::words::{listed, loss};
use crate::figures::percent;
use crate::measure::Direction;
use crate::stats::{Comparison, Ratio};

/// The axis of the mixes, the purest one first.
const MIXES: &str = "pattern";
/// The axis of the depth.
const DEPTHS: &str = "queue-depth";

/// By how much writes are below reads in the publication, at least, if everything is sequential.
const BELOW_READS: f64 = 0.2;

/// The most drives that one sentence compares.
const DRIVES: usize = 4;

/// A gain by depth that is worth reporting.
const WORTH_SAYING: f64 = 0.1;

pub(super) fn sentences(sweep: &Sweep, drives: &[Drives]) -> Vec<String> {
    let Some(mixes) = sweep.axes().iter().find(|axis| axis.name == MIXES) else {
        return Vec::new();
    };
    let mut sentences = Vec::new();
    // The first sentence is the answer.
    sentences.extend(answer(sweep, drives, &mixes.labels));
    if 1 < drives.len() {
        for direction in Direction::BOTH {
            let ranks = mixes.labels.iter().filter_map(|mix| ranks(sweep, drives, direction, mix));
            sentences.extend(ranks);
        }
    }
    for direction in Direction::BOTH {
        let costs = drives.iter().filter_map(|one| costs(sweep, one, (direction, &mixes.labels)));
        sentences.extend(costs);
    }
    let beside = drives.iter().filter_map(|one| beside_reads(sweep, one, &mixes.labels));
    sentences.extend(beside);
    sentences.extend(mixes.labels.first().and_then(|mix| all_below_reads(sweep, drives, mix)));
    sentences
}

/// "mixed:5% (5 % of I/Os jump) costs 34 % of sequential reads and 60 % of sequential writes; random costs 83 % and 72 %",
/// for several drives "... and 60 % of sequential writes on sas, 52 % and 23 % on sata2": what the first
/// and the last mix cost. None if a figure is missing.
fn answer(sweep: &Sweep, drives: &[Drives], mixes: &[String]) -> Option<String> {
    let (pure, rest) = mixes.split_first()?;
    let mut ends = Vec::from([1, rest.len()]);
    ends.dedup();
    let costs = |drives: &Drives, way: Direction| {
        let groups: Vec<Vec<Result<'_>>> =
            mixes.iter().map(|mix| with_mix(sweep, drives, way, mix)).collect();
        // The same family as the sentence with all mixes has, and so the same intervals.
        let shares = shares(&groups, &compared(mixes.len()));
        ends.iter().map(|nth| shares[nth - 1]).collect::<Option<Vec<Ratio>>>()
    };
    let known: Vec<[Option<Vec<Ratio>>; 2]> =
        drives.iter().map(|one| Direction::BOTH.map(|way| costs(one, way))).collect();
    let of_end = |(nth, end): (usize, &usize)| {
        let on_drive = |(at, costs): (usize, &[Option<Vec<Ratio>>; 2])| {
            let [read, write] = costs.each_ref().map(|all| Some(cost(*all.as_ref()?.get(nth)?)));
            let (read, write) = (read?, write?);
            let whose =
                if drives.len() == 1 { String::new() } else { format!(" on {}", drives[at].shown) };
            Some(match (nth, at) {
                (0, 0) => format!("{read} of {pure} reads and {write} of {pure} writes{whose}"),
                _ => format!("{read} and {write}{whose}"),
            })
        };
        let each: Vec<String> = known.iter().enumerate().map(on_drive).collect::<Option<_>>()?;
        Some(format!("{} costs {}", explained(&mixes[*end]), each.join(", ")))
    };
    let parts: Vec<String> = ends.iter().enumerate().map(of_end).collect::<Option<_>>()?;
    (!rest.is_empty() && drives.len() <= DRIVES).then(|| format!("{}.", parts.join("; ")))
}

/// "mixed:5% (5 % of I/Os jump)": the mix as it is typed, and what it means if its name does not say it.
fn explained(mix: &str) -> String {
    match mix.strip_prefix("mixed:").and_then(|share| share.strip_suffix('%')) {
        Some(share) => format!("{mix} ({share} % of I/Os jump)"),
        None => mix.to_owned(),
    }
}

/// The mixes that are compared: each with the first, and the last with the one before it.
fn compared(mixes: usize) -> Vec<(usize, usize)> {
    (1..mixes).map(|nth| (nth, 0)).chain(step(mixes)).collect()
}

/// The last mix and the one before it, if that is not the first.
fn step(mixes: usize) -> Option<(usize, usize)> {
    (2 < mixes).then(|| (mixes - 1, mixes - 2))
}

/// "34 % (32 to 36 %)"; what chance can explain may be no cost.
fn cost(share: Ratio) -> String {
    if share.is_less() { loss(share) } else { "perhaps nothing".to_owned() }
}

/// The best of a target with a mix, over all depths.
fn with_mix<'s>(
    sweep: &'s Sweep,
    drives: &Drives,
    direction: Direction,
    mix: &str,
) -> Vec<Result<'s>> {
    let mut results = drives.results(sweep, direction);
    results.retain(|(one, _)| label(one, MIXES) == Some(mix));
    results
}

/// The gain of the most requests per disk over the fewest with each mix: the intervals hold for all
/// at once.
fn gains<'m>(
    sweep: &Sweep,
    drives: &Drives,
    (direction, mixes): (Direction, &'m [String]),
) -> Vec<(&'m str, Ratio)> {
    let depths = sweep.axes().iter().find(|axis| axis.name == DEPTHS);
    let ends = depths.and_then(|axis| Some((axis.labels.first()?, axis.labels.last()?)));
    let Some((fewest, most)) = ends.filter(|(fewest, most)| fewest != most) else {
        return Vec::new();
    };
    let known = mixes.iter().filter_map(|mix| {
        let results = with_mix(sweep, drives, direction, mix);
        let at = |depth: &String| {
            let mut all = results.iter();
            all.find(|(one, _)| label(one, DEPTHS) == Some(depth)).map(|(_, level)| *level)
        };
        Some((mix.as_str(), [at(most)?, at(fewest)?]))
    });
    let known: Vec<_> = known.collect();
    let levels = known.iter().flat_map(|(_, levels)| *levels);
    let compared = Comparison::for_so_many(levels, known.len());
    let ratio = |nth: usize| compared.ratio(&[2 * nth], &[2 * nth + 1]);
    known.iter().enumerate().map(|(nth, (mix, _))| (*mix, ratio(nth))).collect()
}

/// "sas, writes: sequential 318 MiB/s (333 MB/s); mixed:5% costs 60 % (55 to 64 %), random costs 72 %
/// (70 to 74 %); from mixed:5% to random another 30 % (25 to 34 %); more requests per disk gain 21 %
/// (15 to 28 %) with mixed:5%."
fn costs(
    sweep: &Sweep,
    drives: &Drives,
    (direction, mixes): (Direction, &[String]),
) -> Option<String> {
    let (first, rest) = mixes.split_first()?;
    let groups: Vec<Vec<Result<'_>>> =
        mixes.iter().map(|mix| with_mix(sweep, drives, direction, mix)).collect();
    let (_, pure) = best(groups.first()?)?;
    let step = step(mixes.len());
    let shares = shares(&groups, &compared(mixes.len()));
    let losses: Vec<String> = rest
        .iter()
        .zip(&shares)
        .filter_map(|(mix, share)| Some(cost_in_words(mix, (*share)?)))
        .collect();
    let step = step.and_then(|(to, from)| {
        let share = (*shares.last()?)?;
        Some(step_in_words(&mixes[from], &mixes[to], share))
    });
    let what = plural(direction);
    let pure = sweep.in_both_units(pure);
    let losses = if losses.is_empty() { String::new() } else { format!("; {}", losses.join(", ")) };
    let step = step.unwrap_or_default();
    let depth = depth_in_words(&gains(sweep, drives, (direction, mixes)));
    Some(format!("{}, {what}: {first} {pure}{losses}{step}{depth}.", drives.shown))
}

/// "; from mixed:20% to random another 49 % (48 to 50 %)".
fn step_in_words(from: &str, to: &str, share: Ratio) -> String {
    match share {
        share if share.is_less() => format!("; from {from} to {to} another {}", loss(share)),
        share if share.is_more() => format!("; from {from} to {to} a gain of {}", gain(share)),
        share => {
            format!(
                "; from {from} to {to} no difference that can be told{}",
                ends(share, points, " % of it")
            )
        }
    }
}

/// Writes as a share of reads with each mix: "sas, writes beside reads: 38 % below with sequential,
/// 62 % (61 to 63 %) below with mixed:5%, cannot be told apart with random."
fn beside_reads(sweep: &Sweep, drives: &Drives, mixes: &[String]) -> Option<String> {
    let groups = mixes.iter().flat_map(|mix| {
        [Direction::Write, Direction::Read].map(|way| with_mix(sweep, drives, way, mix))
    });
    let groups: Vec<Vec<Result<'_>>> = groups.collect();
    let pairs: Vec<(usize, usize)> = (0..mixes.len()).map(|nth| (2 * nth, 2 * nth + 1)).collect();
    let shares = shares(&groups, &pairs);
    let known = mixes.iter().zip(shares).filter_map(|(mix, share)| Some((mix.as_str(), share?)));
    let (alike, apart): (Vec<_>, Vec<_>) = known.partition(|(_, share)| share.may_be_nothing());
    let parts = apart.iter().map(|(mix, share)| match share.is_less() {
        true => format!("{} below with {mix}", loss(*share)),
        false => format!("{} above with {mix}", gain(*share)),
    });
    let alike = listed(alike.iter().map(|(mix, _)| *mix));
    let alike = (!alike.is_empty()).then(|| format!("cannot be told apart with {alike}"));
    let parts: Vec<String> = parts.chain(alike).collect();
    let name = &drives.shown;
    (!parts.is_empty()).then(|| format!("{name}, writes beside reads: {}.", parts.join(", ")))
}

/// Whether writes are as far below reads as published, on all targets: for all at once.
fn all_below_reads(sweep: &Sweep, drives: &[Drives], mix: &str) -> Option<String> {
    let groups = drives.iter().flat_map(|one| {
        [Direction::Write, Direction::Read].map(|way| with_mix(sweep, one, way, mix))
    });
    let groups: Vec<Vec<Result<'_>>> = groups.collect();
    let pairs: Vec<(usize, usize)> = (0..drives.len()).map(|nth| (2 * nth, 2 * nth + 1)).collect();
    let shares = shares(&groups, &pairs);
    let known = drives.iter().zip(shares).filter_map(|(one, share)| Some((&*one.shown, share?)));
    let known: Vec<(&str, Ratio)> = known.collect();
    let most = 1.0 - BELOW_READS;
    let names = |wanted: &dyn Fn(&Ratio) -> bool| {
        let names = known.iter().filter(|(_, share)| wanted(share)).map(|(name, _)| *name);
        listed(names)
    };
    let below = names(&|share| share.high <= most);
    let not = names(&|share| most < share.low);
    let unsure = names(&|share| share.low <= most && most < share.high);
    let what = format!("at least {} below reads with {mix}", percent(BELOW_READS));
    let part = |text: &str, of: &str| (!of.is_empty()).then(|| format!("{text}{of}"));
    let parts = [
        part(&format!("Writes are {what} on "), &below),
        part(&format!("Writes are not {what} on "), &not),
        part(&format!("Whether writes are {what} is unknown for "), &unsure),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    (1 < known.len()).then(|| format!("{}.", parts.join(". ")))
}

fn cost_in_words(mix: &str, share: Ratio) -> String {
    match share {
        share if share.is_less() => format!("{mix} costs {}", loss(share)),
        share if share.is_more() => format!("{mix} gains {}", gain(share)),
        share => {
            format!("{mix} cannot be distinguished from it{}", ends(share, points, " % of it"))
        }
    }
}

fn depth_in_words(gains: &[(&str, Ratio)]) -> String {
    let most = gains.iter().max_by(|one, other| one.1.value.total_cmp(&other.1.value));
    let ends = gains.iter().map(|(_, ratio)| ratio.high).fold(0.0, f64::max) - 1.0;
    match most {
        None => String::new(),
        Some((mix, ratio)) if ratio.is_more() && WORTH_SAYING <= ratio.value - 1.0 => {
            format!("; more requests per disk gain {} with {mix}", gain(*ratio))
        }
        Some(_) if ends < WORTH_SAYING => {
            format!(
                "; more requests per disk gain next to nothing (at most {})",
                percent(ends.max(0.0))
            )
        }
        Some(_) => "; what more requests per disk gain is unknown".to_owned(),
    }
}

/// "21 % (15 to 28 %)".
fn gain(ratio: Ratio) -> String {
    let [value, least, most] = [ratio.value, ratio.low, ratio.high].map(|one| one - 1.0);
    format!("{}{}", percent(value), ends_of_share(value, [least, most]))
}

/// "Writes, mixed:5%: sata2 180 MiB/s (188 MB/s), sas 128 MiB/s (134 MB/s), scsi 127 MiB/s (133 MB/s);
/// sas and scsi cannot be told apart."
fn ranks(sweep: &Sweep, drives: &[Drives], direction: Direction, mix: &str) -> Option<String> {
    let known = drives.iter().filter_map(|one| {
        let results = with_mix(sweep, one, direction, mix);
        Some((one.shown.as_str(), best(&results)?.1, results))
    });
    let mut known: Vec<(&str, f64, Vec<Result<'_>>)> = known.collect();
    known.sort_by(|one, other| other.1.total_cmp(&one.1));
    let shown = |value: f64| sweep.in_both_units(value);
    let all: Vec<String> =
        known.iter().map(|(name, value, _)| format!("{name} {}", shown(*value))).collect();
    let groups: Vec<Vec<Result<'_>>> = known.iter().map(|one| one.2.clone()).collect();
    // The results decided which are neighbors: the intervals hold for all pairs.
    let pairs: Vec<(usize, usize)> = (1..groups.len()).map(|nth| (nth, nth - 1)).collect();
    let neighbors = any_shares(&groups, &pairs);
    let alike: Vec<String> = known
        .windows(2)
        .zip(neighbors)
        .filter(|(_, share)| share.is_none_or(Ratio::may_be_nothing))
        .map(|(pair, _)| listed([pair[0].0, pair[1].0].into_iter()))
        .collect();
    let what = match direction {
        Direction::Read => "Reads",
        Direction::Write => "Writes",
    };
    let alike = match alike.as_slice() {
        [] => String::new(),
        some => format!("; {} cannot be told apart", some.join(", nor ")),
    };
    (1 < all.len()).then(|| format!("{what}, {mix}: {}{alike}.", all.join(", ")))
}

fn plural(direction: Direction) -> &'static str {
    match direction {
        Direction::Read => "reads",
        Direction::Write => "writes",
    }
}
