//! The sentences of the studies, each compared with the true rates of its settings.

use super::sweeps::{Curve, is_about_the_run, odd, payloads, saved};
use super::{Heard, Judged, between, labels, percent, span};

/// Rates that differ by less than this are alike: half of the last digit of a percentage, plus the
/// error of noiseless trials.
const ALIKE: f64 = 0.01;

/// The share of the best that is enough in the study of concurrent writes, as set in the bench.
const ENOUGH: f64 = 0.9;

/// Whether it is the answer to a study's question, which says in short what other sentences say. Those are
/// judged.
fn is_in_short(sentence: &str) -> bool {
    let is_speed = sentence.starts_with("Beside ") && sentence.contains(" times as fast");
    let is_cost = sentence.contains(" costs ") && sentence.contains(" of sequential reads and ");
    let is_saturation = [
        "The target is saturated (90 % of the best) by ",
        "How many writers saturate the target is ",
    ]
    .iter()
    .any(|start| sentence.starts_with(start));
    is_saturation || is_speed || is_cost
}

/// The study of concurrent writes on a device that treats all data alike.
pub fn write_concurrency(heard: &Heard<'_>) -> Vec<Judged> {
    writers(heard, false)
}

/// The same study on a device that compresses.
pub fn write_concurrency_compressed(heard: &Heard<'_>) -> Vec<Judged> {
    writers(heard, true)
}

fn writers(heard: &Heard<'_>, compresses: bool) -> Vec<Judged> {
    let mut judged = Vec::new();
    for sentence in heard.session.sentences.iter().filter(|one| !is_in_short(one)) {
        let one = payloads(sentence, compresses).map(|one| Vec::from([one]));
        let one = one.or_else(|| blocks(heard, sentence)).or_else(|| sizes(heard, sentence));
        judged.extend(one.unwrap_or_else(|| Vec::from([Judged::unread(sentence)])));
    }
    judged.extend(saved(heard, compresses));
    judged
}

/// "1m blocks: 8 writers saturate the target (96 % of the best, ...)...", "1m blocks: how many writers
/// saturate the target (90 % of the best) is unknown: ..."
fn blocks(heard: &Heard<'_>, sentence: &str) -> Option<Vec<Judged>> {
    let (size, rest) = sentence.split_once(" blocks: ")?;
    if let Some(judged) = odd(heard, rest, sentence) {
        return Some(judged);
    }
    let size = format!("block-size {size}");
    let curve = Curve::of(heard, "queue-depth", &["payload random", &size], ENOUGH);
    if rest.starts_with("how many writers saturate the target (90 % of the best) is unknown: ") {
        return curve.undecided(rest);
    }
    if rest.starts_with("nothing up to 64 writers saturates the target (") {
        return curve.rises(sentence);
    }
    let (label, said) = rest.split_once(" writer")?;
    let said = said.strip_prefix('s').unwrap_or(said).trim_start();
    let is_it = ["saturate the target (", "saturates the target ("];
    is_it.iter().any(|one| said.starts_with(one)).then(|| curve.enough(rest, label))?
}

/// "Blocks of 1m reach the most: V; 512k 93 % of it (91 to 95 %), 256k cannot be distinguished from it (97 to 105 %
/// of it)."
fn sizes(heard: &Heard<'_>, sentence: &str) -> Option<Vec<Judged>> {
    const KIND: &str = "which blocks are faster";
    let (first, rest) = sentence.strip_prefix("Blocks of ")?.split_once(" reach the ")?;
    let truth = |size: &str| {
        let start = format!("payload random, block-size {size}, ");
        let all = heard.truth.settings.iter().filter(|(name, _)| name.starts_with(&start));
        all.map(|(_, (_, bandwidth))| *bandwidth).fold(0.0, f64::max)
    };
    let (_, parts) = rest.trim_end_matches('.').split_once("; ")?;
    let part = |said: &str| {
        let (size, share) = said.split_once(' ')?;
        let share = share.replace(" of it", "");
        ratio(KIND, said, &share, truth(size) / truth(first))
    };
    parts.split(", ").map(part).collect()
}

/// A ratio as a sentence states it, "93 % (91 to 95 %)" or "cannot be distinguished ... (97 to 105 %)":
/// whether it is true.
fn ratio(kind: &'static str, sentence: &str, said: &str, truth: f64) -> Option<Judged> {
    const OPEN: [&str; 4] = [
        "cannot be distinguished",
        "cannot be told apart",
        "is unknown",
        "no difference that can be told",
    ];
    let is_open = OPEN.iter().any(|words| said.contains(words));
    let (low, high) = match said.contains('(') || !is_open {
        true => span(said)?,
        // Without an interval, the sentence states nothing.
        false => (0.0, f64::INFINITY),
    };
    let is_within = low - ALIKE <= truth && truth <= high + ALIKE;
    Some(match is_open && is_within {
        true => Judged::open(kind, sentence),
        false => Judged::holds(kind, sentence, is_within),
    })
}

/// The study of arrays under several streams.
pub fn multi_stream(heard: &Heard<'_>) -> Vec<Judged> {
    let mut judged = Vec::new();
    let sentences = heard.session.sentences.iter();
    for sentence in sentences.filter(|one| !(is_about_the_run(one) || is_in_short(one))) {
        let one = fastest(heard, sentence)
            .or_else(|| array(heard, sentence))
            .or_else(|| one_request(heard, sentence))
            .or_else(|| array_beside_reads(heard, sentence));
        judged.extend(one.unwrap_or_else(|| Vec::from([Judged::unread(sentence)])));
    }
    judged
}

/// The true maximum of a target in one direction, over the settings that `wanted` selects.
fn most(heard: &Heard<'_>, target: &str, read: bool, wanted: impl Fn(&str) -> bool) -> f64 {
    let share = if read { "read-share 100%" } else { "read-share 0%" };
    let start = format!("targets {target}, {share}, ");
    let all = heard.truth.settings.iter();
    let all = all.filter(|(name, _)| name.strip_prefix(start.as_str()).is_some_and(&wanted));
    all.map(|(_, (_, bandwidth))| *bandwidth).fold(0.0, f64::max)
}

/// "raid0 reads fastest: V.", "Which of raid0 and raid5 reads fastest is unknown: the highest is V."
fn fastest(heard: &Heard<'_>, sentence: &str) -> Option<Vec<Judged>> {
    const KIND: &str = "the fastest array";
    let verbs = [(" reads fastest", true), (" writes fastest", false)];
    let (verb, read) = verbs.into_iter().find(|(verb, _)| sentence.contains(verb))?;
    let reached = |name: &str| most(heard, name, read, |_| true);
    let best = ["disk", "raid0", "raid5"].map(reached).into_iter().fold(0.0, f64::max);
    let is_best = |name: &str| (1.0 - ALIKE) * best <= reached(name);
    let judged = match between(sentence, "Which of ", verb) {
        Some(list) if labels(list).into_iter().any(is_best) => Judged::open(KIND, sentence),
        Some(_) => Judged::holds(KIND, sentence, false),
        None => Judged::holds(KIND, sentence, is_best(sentence.split_once(' ')?.0)),
    };
    Some(Vec::from([judged]))
}

/// "raid0 (raid0, 4 disks): reads V, at least 90 % of that already with workers 2 and queue-depth
/// 8/worker, 4.0 times disk (3.8 to 4.2), 100 % of 4 disks, 4 workers reach 88 % of what one does
/// (80 to 95 %); writes ..."
fn array(heard: &Heard<'_>, sentence: &str) -> Option<Vec<Judged>> {
    let (name, rest) = sentence.split_once(" (")?;
    let (_, rest) = rest.split_once("): ")?;
    let mut judged = Vec::new();
    for part in rest.trim_end_matches('.').split("; ") {
        let read = part.starts_with("reads ");
        (read || part.starts_with("writes ")).then_some(())?;
        judged.extend(next_to_all(heard, (name, read), part)?);
        judged.extend(scaling(heard, (name, read), part)?);
        judged.extend(crowd(heard, (name, read), part)?);
    }
    Some(judged)
}

fn next_to_all(heard: &Heard<'_>, (name, read): (&str, bool), part: &str) -> Option<Vec<Judged>> {
    const KIND: &str = "from where on";
    if part.contains(", the setting that reaches 90 % is unknown") {
        return Some(Vec::from([Judged::open(KIND, part)]));
    }
    let Some((_, place)) = part.split_once(", at least 90 % of that already with ") else {
        return Some(Vec::new());
    };
    let place = place.split(", ").next().unwrap_or_default();
    let (workers, each) = place.split_once(" and ")?;
    let at = most(heard, name, read, |one| one == format!("{workers}, {each}"));
    let right = 0.9 * (1.0 - ALIKE) * most(heard, name, read, |_| true) <= at;
    Some(Vec::from([Judged::holds(KIND, part, right)]))
}

fn scaling(heard: &Heard<'_>, (name, read): (&str, bool), part: &str) -> Option<Vec<Judged>> {
    const KIND: &str = "how it scales";
    if part.contains(", the ratio to disk is unknown") {
        return Some(Vec::from([Judged::open(KIND, part)]));
    }
    let Some((before, ends)) = part.split_once(" times disk") else { return Some(Vec::new()) };
    let (low, high) = match ends.strip_prefix(" (") {
        Some(ends) => ends.split_once(')')?.0.split_once(" to ")?,
        None => (before.rsplit_once(", ")?.1, before.rsplit_once(", ")?.1),
    };
    let (low, high): (f64, f64) = (low.parse().ok()?, high.parse().ok()?);
    let truth = most(heard, name, read, |_| true) / most(heard, "disk", read, |_| true);
    let right = low - 0.051 <= truth && truth <= high + 0.051;
    Some(Vec::from([Judged::holds(KIND, part, right)]))
}

/// "raid5, reads with one request each, in multiples of disk: 1 worker V, 4.0 times (3.9 to 4.1); 2
/// workers V, the ratio is unknown; the second worker costs 45 % (43 to 47 %)."
fn one_request(heard: &Heard<'_>, sentence: &str) -> Option<Vec<Judged>> {
    let (who, said) = sentence.split_once(" with one request each")?;
    let (name, verb) = who.split_once(", ")?;
    let (_, parts) = said.split_once(": ")?;
    let truth = |name: &str, workers: &str| {
        most(heard, name, verb == "reads", |one| {
            one == format!("workers {workers}, queue-depth 1/worker")
        })
    };
    let second = || truth(name, "2") / truth(name, "1");
    let mut judged = Vec::new();
    for part in parts.trim_end_matches('.').split("; ") {
        if part.contains("second worker") || part.starts_with("two reach ") {
            judged.push(second_worker(part, second())?);
            continue;
        }
        if part.starts_with("the ratio") && part.ends_with(" unknown") {
            judged.push(Judged::open(TIMES, part));
            continue;
        }
        let (workers, figures) = part.split_once(" worker")?;
        let Some((_, times)) = figures.split_once(", ") else { continue };
        judged.push(scaled(part, times, truth(name, workers) / truth("disk", workers))?);
    }
    Some(judged)
}

const TIMES: &str = "times at one request";

/// "4.0 times (3.9 to 4.1)", "the ratio is unknown".
fn scaled(sentence: &str, said: &str, truth: f64) -> Option<Judged> {
    if said == "the ratio is unknown" {
        return Some(Judged::open(TIMES, sentence));
    }
    let (value, ends) = said.split_once(" times")?;
    let (low, high) = match ends.trim().strip_prefix('(') {
        Some(ends) => ends.strip_suffix(')')?.split_once(" to ")?,
        None => (value, value),
    };
    let (low, high): (f64, f64) = (low.parse().ok()?, high.parse().ok()?);
    Some(Judged::holds(TIMES, sentence, low - 0.051 <= truth && truth <= high + 0.051))
}

/// The cost or the gain of the second worker.
fn second_worker(said: &str, truth: f64) -> Option<Judged> {
    const KIND: &str = "the second worker";
    if let Some(loss) = said.strip_prefix("the second worker costs ") {
        return ratio(KIND, said, loss, 1.0 - truth);
    }
    if let Some(times) = said.strip_prefix("two reach ") {
        let times = times.replace(" what one does", "");
        return Some(Judged { kind: KIND, ..scaled(said, &times, truth)? });
    }
    said.contains("is unknown").then(|| Judged::open(KIND, said))
}

/// "raid5, writes beside reads: 25 % of them (24 to 26 %)."
fn array_beside_reads(heard: &Heard<'_>, sentence: &str) -> Option<Vec<Judged>> {
    let (name, said) = sentence.split_once(", writes beside reads: ")?;
    let truth = most(heard, name, false, |_| true) / most(heard, name, true, |_| true);
    let said = said.trim_end_matches('.').replace(" of them", "");
    Some(Vec::from([ratio(BESIDE_READS, sentence, &said, truth)?]))
}

const BESIDE_READS: &str = "writes beside reads";

fn crowd(heard: &Heard<'_>, (name, read): (&str, bool), part: &str) -> Option<Vec<Judged>> {
    let Some((_, said)) = part.split_once("4 workers reach ") else { return Some(Vec::new()) };
    let said = said.replace(" of what one does", "");
    let (low, high) = span(&said)?;
    let with = |workers: &str| most(heard, name, read, |one| one.starts_with(workers));
    let truth = with("workers 4, ") / with("workers 1, ");
    let right = low - ALIKE <= truth && truth <= high + ALIKE;
    Some(Vec::from([Judged::holds("crowded", part, right)]))
}

/// The study of access mixes.
pub fn access_mix(heard: &Heard<'_>) -> Vec<Judged> {
    let mut judged = Vec::new();
    let sentences = heard.session.sentences.iter();
    for sentence in sentences.filter(|one| !(is_about_the_run(one) || is_in_short(one))) {
        let one = ranks(heard, sentence)
            .or_else(|| costs(heard, sentence))
            .or_else(|| mixes_beside_reads(heard, sentence))
            .or_else(|| below_reads(heard, sentence));
        judged.extend(one.unwrap_or_else(|| Vec::from([Judged::unread(sentence)])));
    }
    judged
}

/// The true maximum of drives with a mix.
fn reached(heard: &Heard<'_>, drives: &str, read: bool, mix: &str) -> f64 {
    let start = format!("pattern {mix}, ");
    most(heard, drives, read, |one| one.starts_with(&start))
}

/// "sas, writes: sequential V; mixed:5% costs 60 % (55 to 64 %), random cannot be distinguished from it (90 % to
/// 120 % of it); more requests per disk gain 21 % (15 to 28 %) with mixed:5%."
fn costs(heard: &Heard<'_>, sentence: &str) -> Option<Vec<Judged>> {
    let (drives, rest) = sentence.split_once(", ")?;
    let (direction, rest) = rest.split_once(": sequential ")?;
    let read = direction == "reads";
    let pure = reached(heard, drives, read, "sequential");
    let mut judged = Vec::new();
    let mut parts = rest.trim_end_matches('.').split("; ");
    parts.next()?;
    for part in parts {
        if part.contains("more requests per disk") {
            judged.push(gain(heard, (drives, read), part)?);
            continue;
        }
        if let Some(step) = part.strip_prefix("from ") {
            judged.push(further(step, |mix| reached(heard, drives, read, mix))?);
            continue;
        }
        for one in part.split(", ") {
            judged.push(cost(one, |mix| reached(heard, drives, read, mix) / pure)?);
        }
    }
    Some(judged)
}

/// One mix compared with the pure one.
fn cost(said: &str, share: impl Fn(&str) -> f64) -> Option<Judged> {
    const KIND: &str = "what a mix costs";
    let within =
        |(low, high): (f64, f64), truth: f64| low - ALIKE <= truth && truth <= high + ALIKE;
    if let Some((mix, loss)) = said.split_once(" costs ") {
        return Some(Judged::holds(KIND, said, within(span(loss)?, 1.0 - share(mix))));
    }
    if let Some((mix, gain)) = said.split_once(" gains ") {
        return Some(Judged::holds(KIND, said, within(span(gain)?, share(mix) - 1.0)));
    }
    let (mix, ends) = said.split_once(" cannot be distinguished from it")?;
    let ends = ends.replace(" of it", "");
    ratio(KIND, said, &format!("cannot be distinguished{ends}"), share(mix))
}

/// "mixed:5% to random another 49 % (48 to 50 %)", "... a gain of 10 % (5 to 15 %)", "... no difference that can
/// be told (90 to 105 % of it)".
fn further(said: &str, reached: impl Fn(&str) -> f64) -> Option<Judged> {
    const KIND: &str = "what a mix costs further";
    let (from, rest) = said.split_once(" to ")?;
    let (to, rest) = rest.split_once(' ')?;
    let truth = reached(to) / reached(from);
    if let Some(loss) = rest.strip_prefix("another ") {
        return ratio(KIND, said, loss, 1.0 - truth);
    }
    if let Some(gain) = rest.strip_prefix("a gain of ") {
        return ratio(KIND, said, gain, truth - 1.0);
    }
    ratio(KIND, said, &rest.replace(" of it", ""), truth)
}

/// "sas, writes beside reads: 38 % below with sequential, 62 % (61 to 63 %) below with mixed:5%, cannot be
/// told apart with random."
fn mixes_beside_reads(heard: &Heard<'_>, sentence: &str) -> Option<Vec<Judged>> {
    let (drives, said) = sentence.split_once(", writes beside reads: ")?;
    let truth = |mix: &str| reached(heard, drives, false, mix) / reached(heard, drives, true, mix);
    let (apart, alike) = match said.split_once("cannot be told apart with ") {
        Some((apart, alike)) => (apart, labels(alike.trim_end_matches('.'))),
        None => (said, Vec::new()),
    };
    let mut judged: Vec<Judged> =
        alike.iter().map(|_| Judged::open(BESIDE_READS, sentence)).collect();
    for part in apart.trim_end_matches(['.', ' ', ',']).split(", ").filter(|one| !one.is_empty()) {
        judged.push(match part.split_once(" below with ") {
            Some((loss, mix)) => ratio(BESIDE_READS, part, loss, 1.0 - truth(mix))?,
            None => {
                let (gain, mix) = part.split_once(" above with ")?;
                ratio(BESIDE_READS, part, gain, truth(mix) - 1.0)?
            }
        });
    }
    Some(judged)
}

/// "Writes are at least 20 % below reads with sequential on sas. Writes are not at least ... on scsi.
/// Whether writes are at least ... is unknown for sata."
fn below_reads(heard: &Heard<'_>, sentence: &str) -> Option<Vec<Judged>> {
    const KIND: &str = "writes below reads";
    let mut judged = Vec::new();
    for part in sentence.trim_end_matches('.').split(". ") {
        let (share, rest) = between(part, "at least ", " below reads")
            .zip(part.split_once(" below reads with ").map(|(_, rest)| rest))?;
        if part.starts_with("Whether writes are ") {
            judged.push(Judged::open(KIND, part));
            continue;
        }
        let (mix, drives) = rest.split_once(" on ")?;
        let most = 1.0 - percent(share)?;
        let is_below = !part.starts_with("Writes are not ");
        let right = labels(drives).into_iter().all(|drives| {
            let truth = reached(heard, drives, false, mix) / reached(heard, drives, true, mix);
            (truth <= most) == is_below
        });
        judged.push(Judged::holds(KIND, part, right));
    }
    Some(judged)
}

/// The gain from more requests per disk.
fn gain(heard: &Heard<'_>, (drives, read): (&str, bool), said: &str) -> Option<Judged> {
    const KIND: &str = "what depth gains";
    let truth = |mix: &str| {
        let at = |depth: &str| {
            most(heard, drives, read, |one| {
                one == format!("pattern {mix}, queue-depth {depth}/disk")
            })
        };
        at("3") / at("1") - 1.0
    };
    if said.contains("is unknown") {
        return Some(Judged::open(KIND, said));
    }
    if let Some(most) = between(said, "next to nothing (at most ", ")") {
        let mixes = ["sequential", "mixed:5%", "mixed:20%", "random"];
        let right = mixes.into_iter().all(|mix| truth(mix) <= percent(most).unwrap_or(0.0) + ALIKE);
        return Some(Judged::holds(KIND, said, right));
    }
    let (figures, mix) = said.strip_prefix("more requests per disk gain ")?.split_once(" with ")?;
    let (low, high) = span(figures)?;
    let right = low - ALIKE <= truth(mix) && truth(mix) <= high + ALIKE;
    Some(Judged::holds(KIND, said, right))
}

/// "Writes, mixed:5%: sas V, scsi V[; sas and scsi cannot be told apart].": whether the first is the
/// faster one.
fn ranks(heard: &Heard<'_>, sentence: &str) -> Option<Vec<Judged>> {
    const KIND: &str = "which drives are faster";
    let (direction, rest) = sentence.split_once(", ")?;
    let read = match direction {
        "Reads" => true,
        "Writes" => false,
        _ => return None,
    };
    if sentence.contains(" cannot be told apart") {
        return Some(Vec::from([Judged::open(KIND, sentence)]));
    }
    let (mix, values) = rest.rsplit_once(": ")?;
    let (first, _) = values.split_once(' ')?;
    let other = if first == "sas" { "scsi" } else { "sas" };
    let right = reached(heard, other, read, mix) < reached(heard, first, read, mix);
    Some(Vec::from([Judged::holds(KIND, sentence, right)]))
}
