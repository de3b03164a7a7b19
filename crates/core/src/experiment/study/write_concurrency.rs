//! How many writers saturate a target, by block size; whether it is faster than its rating; whether
//! zeros are faster than random data.

use super::drives::{self, Result, against_first, ends, points};
use crate::experiment::Candidate;
use crate::experiment::sweep::curves::{self, Curve};
use crate::experiment::sweep::words::{cost, listed, odd, of_the_best};
use crate::experiment::sweep::{Sweep, is_unique, payloads};
use crate::experiment::throughput::bandwidth_in_words;
use crate::figures::{number, percent};
use crate::measure::Direction;
use crate::stats::{Comparison, Level, Ratio};
use crate::units::{Bytes, Span};

/// The axis of the concurrency.
const CONCURRENCY: &str = "queue-depth";
/// The axis of the blocks.
const BLOCKS: &str = "block-size";

/// The axis of the threads.
const WORKERS: &str = "workers";

pub(super) fn sentences(sweep: &Sweep, full_stripe: Option<Bytes>) -> Vec<String> {
    let random = sweep.results().filter(|(one, _)| is_unique(&one.point));
    let random: Vec<Result<'_>> = random.collect();
    // The first sentence is the answer.
    let mut sentences: Vec<String> = answer(sweep, &random).into_iter().collect();
    sentences.extend(blocks(sweep, &random, full_stripe));
    if let Some(along) = along(sweep) {
        let name = &sweep.axes()[along].name;
        for curve in &curves::along(sweep, along, |_, one| is_unique(&one.point)) {
            let whose = whose(sweep, curve);
            sentences.push(format!("{whose}{}", saturation(sweep, name, curve)));
            let odd = odd(sweep, name, curve);
            sentences.extend(odd.into_iter().map(|odd| format!("{whose}{odd}")));
        }
    }
    sentences.extend(rated(&random));
    sentences.extend(payloads::sentences(sweep));
    let repeats = sweep.results().any(|(one, _)| !is_unique(&one.point));
    if !random.is_empty() && !repeats {
        sentences.push(
            "Whether the target compresses is unknown: only random data was written. To find \
             out, write zeros, too: --axis payload=random,zeros --once payload=zeros."
                .to_owned(),
        );
    }
    sentences
}

/// "The target is saturated (90 % of the best) by 8 writers (queue-depth 8) with blocks of 256k, by 2
/// with 1m and by 2 with 12.8MB; the highest is 894 MiB/s (937 MB/s) with 12.8MB while all
/// writers wrote; zeros are too fast
/// at block-size 12.8MB." None if the curves differ in more than their blocks: then each has a sentence.
fn answer(sweep: &Sweep, random: &[Result<'_>]) -> Option<String> {
    let along = along(sweep)?;
    let name = &sweep.axes()[along].name;
    let curves = curves::along(sweep, along, |_, one| is_unique(&one.point));
    let size = |curve: &Curve<'_>| {
        let common = curve.common.iter().filter(|one| one.axis != "payload");
        let blocks = curve.common.iter().find(|one| one.axis == BLOCKS)?;
        let is_alone = common.clone().all(|one| one.axis == BLOCKS || !varies(sweep, &one.axis));
        is_alone.then(|| blocks.label.clone())
    };
    let sizes: Vec<String> = curves.iter().map(size).collect::<Option<_>>()?;
    if sizes.len() < 2 {
        return None;
    }
    let part = |(nth, (curve, size)): (usize, (&Curve<'_>, &String))| {
        let found = curve.saturation(sweep.enough_share());
        let who = match found.enough {
            Some((at, _)) if at + 1 < curve.dots.len() || !found.unsure.is_empty() => {
                let label = curve.dots[at].load.label.as_str();
                if nth == 0 { first(name, label) } else { label.to_owned() }
            }
            Some(_) => "more writers than were measured".to_owned(),
            None => "an unknown number of writers".to_owned(),
        };
        let blocks = if nth == 0 { "blocks of " } else { "" };
        format!("by {who} with {blocks}{size}")
    };
    let parts: Vec<String> = curves.iter().zip(&sizes).enumerate().map(part).collect();
    let is_open = |curve: &Curve<'_>| curve.saturation(sweep.enough_share()).enough.is_none();
    let saturated = match curves.iter().all(is_open) {
        true => {
            "How many writers saturate the target is unknown with all sizes of blocks".to_owned()
        }
        false => format!(
            "The target is saturated ({} of the best) {}",
            percent(sweep.enough_share()),
            listed(parts.iter().map(String::as_str))
        ),
    };
    let (best, value) = drives::best(random)?;
    let highest = sweep.in_both_units(value);
    let with = drives::label(best, BLOCKS)?;
    let saving = payloads::saving(sweep).into_iter().filter(payloads::PayloadSaving::is_much);
    let saved = saving.map(|one| match one.payload.as_str() {
        "zeros" => format!("; zeros are too fast{}", one.place()),
        other => format!("; payload {other} is too fast{}", one.place()),
    });
    // The tables have the rate of whole runs, in whose end fewer and fewer writers are left.
    let drained = if sweep.ends_with_an_amount() { " while all writers wrote" } else { "" };
    let saved: String = saved.collect();
    Some(format!("{saturated}; the highest is {highest} with {with}{drained}{saved}."))
}

/// Whether an axis has several values.
fn varies(sweep: &Sweep, axis: &str) -> bool {
    sweep.axes().iter().any(|known| known.name == axis && 1 < known.labels.len())
}

/// "8 writers (queue-depth 8)": as in tables, where the axis has its own name.
fn first(axis: &str, label: &str) -> String {
    match writers(axis, label) {
        who if axis == CONCURRENCY && !who.starts_with(axis) => format!("{who} ({axis} {label})"),
        who => who,
    }
}

/// "8 writers". Workers that each have several in flight are not writers, and 8/worker is not a number.
fn writers(axis: &str, label: &str) -> String {
    match label {
        "1" => "1 writer".to_owned(),
        label if label.parse::<u32>().is_ok() => format!("{label} writers"),
        label => format!("{axis} {label}"),
    }
}

/// The axis along which the number of writers rises: the I/Os in flight, or the threads if these
/// vary.
fn along(sweep: &Sweep) -> Option<usize> {
    let axis = |name: &str| sweep.axes().iter().position(|axis| axis.name == name);
    let varies = |at: &usize| 1 < sweep.axes()[*at].labels.len();
    let axes = [axis(CONCURRENCY), axis(WORKERS)];
    axes.iter().flatten().find(|at| varies(at)).or(axes.iter().flatten().next()).copied()
}

/// "12.8MB blocks, workers 4: ": what all results of a curve have in common, besides random data.
fn whose(sweep: &Sweep, curve: &Curve<'_>) -> String {
    let blocks = curve.common.iter().find(|one| one.axis == BLOCKS);
    let blocks = blocks.map(|one| format!("{} blocks", one.label));
    let others = curve.common.iter().filter(|one| one.axis != BLOCKS && one.axis != "payload");
    let others = others.filter(|one| one.axis == WORKERS || varies(sweep, &one.axis));
    let others = others.map(|one| format!("{} {}", one.axis, one.label));
    let all: Vec<String> = blocks.into_iter().chain(others).collect();
    if all.is_empty() { String::new() } else { format!("{}: ", all.join(", ")) }
}

/// "Blocks of 12.8MB reach the most: 894 MiB/s (937 MB/s); 1m 93 % of it (91 to 95 %), 256k 75 % of it
/// (74 to 76 %); the full stripe is 2 MiB, of which they are 6.1, 0.5 and 0.13."
fn blocks(sweep: &Sweep, random: &[Result<'_>], full_stripe: Option<Bytes>) -> Option<String> {
    let labels = &sweep.axes().iter().find(|axis| axis.name == BLOCKS)?.labels;
    let of = |label: &str| {
        let own = random.iter().filter(|(one, _)| drives::label(one, BLOCKS) == Some(label));
        own.copied().collect::<Vec<Result<'_>>>()
    };
    let known = labels.iter().map(|label| (label.as_str(), of(label)));
    let mut known: Vec<(&str, Vec<Result<'_>>)> =
        known.filter(|(_, own)| !own.is_empty()).collect();
    let value = |own: &[Result<'_>]| drives::best(own).map_or(0.0, |(_, value)| value);
    known.sort_by(|one, other| value(&other.1).total_cmp(&value(&one.1)));
    let groups: Vec<Vec<Result<'_>>> = known.iter().map(|(_, own)| own.clone()).collect();
    let shares: Vec<Ratio> = against_first(&groups).into_iter().flatten().collect();
    let [(first, own), rest @ ..] = known.as_slice() else { return None };
    let [_, shares @ ..] = shares.as_slice() else { return None };
    let parts: Vec<String> = rest
        .iter()
        .zip(shares)
        .map(|((label, _), share)| match share.is_less() {
            true => format!("{label} {} of it{}", percent(share.value), ends(*share, points, " %")),
            false => format!(
                "{label} cannot be distinguished from it{}",
                ends(*share, points, " % of it")
            ),
        })
        .collect();
    let stripe = full_stripe.map_or(String::new(), |full| {
        let size = |own: &[Result<'_>]| own[0].0.point.streams[0].block_sizes().mean(0.0);
        let parts = known.iter().map(|(_, own)| format!("{:.2}", size(own) / full.0 as f64));
        let parts: Vec<String> = parts.collect();
        let parts = listed(parts.iter().map(String::as_str));
        format!("; in full stripes of {full} they are {parts}")
    });
    let most = if shares.iter().all(|share| share.is_less()) { "most" } else { "highest" };
    let shown = sweep.in_both_units(value(own));
    (!parts.is_empty()).then(|| {
        format!("Blocks of {first} reach the {most}: {shown}; {}{stripe}.", parts.join(", "))
    })
}

/// "12.8MB blocks: 2 writers saturate the target (96 % of the best, at least 93 %: 855 MiB/s); 1 does
/// not; 256 cost 10 % (8 to 12 %)."
fn saturation(sweep: &Sweep, axis: &str, curve: &Curve<'_>) -> String {
    let found = curve.saturation(sweep.enough_share());
    let cost = cost(curve, &found, "cost");
    let list = |all: &[usize]| listed(all.iter().map(|at| curve.dots[*at].load.label.as_str()));
    let Some((at, share)) = found.enough else {
        let not = match found.not.as_slice() {
            [] => String::new(),
            some => format!("{} do not; ", list(some)),
        };
        let enough = percent(sweep.enough_share());
        return format!(
            "how many writers saturate the target ({enough} of the best) is unknown: {not}{} \
             may{cost}.",
            list(&found.unsure)
        );
    };
    let label = curve.dots[at].load.label.as_str();
    let is_several = label != "1" && label.parse::<u32>().is_ok();
    let (who, verb) = (writers(axis, label), if is_several { "saturate" } else { "saturates" });
    let shown = sweep.in_words(curve.dots[at].level.estimate.value);
    if at + 1 == curve.dots.len() && found.unsure.is_empty() {
        return format!("nothing up to {who} saturates the target ({shown}).");
    }
    let unsure = match found.unsure.as_slice() {
        [] => String::new(),
        some => format!("; for {} that is unknown", list(some)),
    };
    format!("{who} {verb} the target ({}: {shown}){unsure}{cost}.", of_the_best(share))
}

/// The best of random data against the rating of the target, in I/Os and in bytes.
fn rated(random: &[Result<'_>]) -> Vec<String> {
    let Some((first, _)) = random.first() else { return Vec::new() };
    let limits = first.point.rated;
    // The sweep compares bytes, because its blocks differ.
    let bandwidth = limits.bandwidth.map(|limit| {
        let levels = random.iter().map(|(_, level)| *level);
        against(levels.collect(), limit.0 as f64, &bandwidth_in_words)
    });
    let iops = limits.iops.map(|limit| {
        let block = |one: &Candidate| one.point.streams[0].block_sizes().mean(0.0);
        let levels = random.iter().map(|(one, level)| level.divided_by(block(one)));
        against(levels.collect(), limit.0, &|value| format!("{} IOPS", number(value)))
    });
    bandwidth.into_iter().chain(iops).collect()
}

/// "Random data reaches 894 MiB/s (937 MB/s), 17 % more (15 to 19 %) than the ... that the target is
/// rated at."
fn against(levels: Vec<Level>, limit: f64, words: &dyn Fn(f64) -> String) -> String {
    let all: Vec<usize> = (0..levels.len()).collect();
    let reached = levels.iter().map(|level| level.estimate.value).fold(0.0, f64::max);
    let ratio = Comparison::new(levels).against(&all, limit);
    let (reached, limit) = (words(reached), words(limit));
    match ratio.value - 1.0 {
        more if 1.0 + TOLERANCE < ratio.low => format!(
            "Random data reaches {reached}, {} more{} than the {limit} that the target is rated at.",
            percent(more),
            ends(ratio, |one| points(one - 1.0), " %")
        ),
        _ => format!(
            "Random data reaches {reached}, {}{} of the {limit} that the target is rated at.",
            percent(ratio.value),
            ends(ratio, points, " %")
        ),
    }
}

/// The same rule as the verdict on a trial.
const TOLERANCE: f64 = 0.03;

/// The result of a trial with a fixed number of bytes, in the words of the study of concurrent
/// writes, with true units: "completed a write of 1048576 bytes after 2 seconds for 0.5 MiB/s".
/// None for a trial that moved no bytes.
pub fn completed(direction: Option<Direction>, bytes: u64, took: Span) -> Option<String> {
    let seconds = took.as_secs_f64();
    if bytes == 0 || seconds <= 0.0 {
        return None;
    }
    let what = match direction {
        Some(Direction::Read) => "a read",
        Some(Direction::Write) => "a write",
        None => "reads and writes",
    };
    let rate = bytes as f64 / seconds / Bytes::MIB as f64;
    Some(format!(
        "completed {what} of {bytes} bytes after {seconds:.2} seconds for {rate:.1} MiB/s"
    ))
}
