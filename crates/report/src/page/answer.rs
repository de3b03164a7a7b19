//! The answer of a result: one sentence with its figures, its verdict, and what speaks against it.

use fathom_core::Span;
use fathom_core::experiment::falls_short;
use fathom_core::facts::Answer;
use fathom_core::figures::number;
use fathom_core::measure::{Direction, Upkeep};
use fathom_core::stats::Estimate;
use fathom_core::verdict::concerns_result;

use super::{Sentence, Tone, ab, hosts};
use crate::document::{AbFound, Command, Document, Ended, Found, Severity, Stream, Trial, Verdict};
use crate::figures::{self, TrialPart, plus_minus};
use crate::promises::{Promise, promises};
use crate::results::{QUANTILES, Results, Spot, refuted};
use crate::thresholds::{in_answer, outcomes};

/// The percentile that an answer names: its place among [`QUANTILES`].
const TAIL: usize = 1;

/// The answer: "random read 4 KiB, queue depth 32: 36,420 IOPS ±0.4% (142 MiB/s, 149 MB/s), p99 4.80
/// ms ±3%; suspect: other programs used the disk (and 1 more doubt)".
pub fn answer(document: &Document) -> Sentence {
    let verdict = document.verdict();
    let promises = promises(document);
    let conditions = outcomes(document);
    let fails = conditions.iter().any(|one| one.holds == Answer::Yes);
    let tone = match verdict {
        None => Tone::Strong,
        Some(_) if fails || promises.iter().any(|one| one.kept == Answer::No) => Tone::Bad,
        // Good trials without a complete answer are no good answer, nor are those that refute it.
        Some(Verdict::Sound)
            if ended(document).is_some()
                || refuted(document).is_some()
                || is_open(document)
                || conditions.iter().any(|one| one.holds == Answer::Unknown) =>
        {
            Tone::Doubtful
        }
        Some(Verdict::Sound) => compared(document).map_or(Tone::Good, ab::answer_tone),
        Some(Verdict::Suspect) => Tone::Doubtful,
        Some(Verdict::Void) => Tone::Bad,
    };
    // What a promise asked comes first, if it is answered.
    let (answered, open): (Vec<Promise>, Vec<Promise>) =
        promises.into_iter().partition(|one| one.kept != Answer::Unknown);
    let [answered, open] = [answered, open].map(|all| all.into_iter().map(|one| one.text));
    let first = match answered.len() {
        0 => found(document),
        _ => found_later(document),
    };
    let found = answered.chain([first]).chain(unlike(document)).chain(open);
    let found = found.chain(in_answer(&conditions));
    let parts: Vec<String> = found.chain(ended(document)).chain(worth(document, tone)).collect();
    Sentence { tone, text: parts.join("; ") }
}

/// What was found, behind the answer to a promise: a sentence goes on with "queue depth 8 saturates".
/// "IOPS", the sides A and B, and the names of points stay as they are.
fn found_later(document: &Document) -> String {
    let found = found(document);
    let is_sentence = document.header.command == Command::Quick
        || document.conclusion.as_ref().is_some_and(|last| !last.sentences.is_empty());
    let mut letters = found.chars();
    match (letters.next(), letters.clone().next()) {
        (Some(first), Some(second)) if is_sentence && second.is_lowercase() => {
            format!("{}{}", first.to_lowercase(), letters.as_str())
        }
        _ => found,
    }
}

/// Whether sound trials leave the answer of an experiment open: a search for the peak whose official
/// run or whose probes do not decide it, a load that did not become steady, a map that is doubted.
fn is_open(document: &Document) -> bool {
    match document.found() {
        Some(Found::Peak(found)) => found.official_is_open || falls_short(found),
        Some(Found::Sustain(found)) => !found.rounds.is_empty() && found.steady_from.is_none(),
        Some(Found::Map(map)) => !map.doubts.is_empty(),
        Some(Found::Sweep(found)) => found.all_alike,
        _ => false,
    }
}

/// What it found if it compared two sides.
fn compared(document: &Document) -> Option<&AbFound> {
    match document.conclusion.as_ref()?.found.as_ref()? {
        Found::Ab(found) => Some(found),
        _ => None,
    }
}

/// The host that is unlike the others, in a result of one trial.
fn unlike(document: &Document) -> Option<String> {
    let [only] = document.trials.as_slice() else { return None };
    hosts::unlike(only)
}

/// What was found: the first sentence of an experiment, or the figures.
fn found(document: &Document) -> String {
    let sentences = document.conclusion.iter().flat_map(|last| &last.sentences);
    let first = sentences.map(|one| one.trim_end_matches('.')).next();
    if let Some(first) = first {
        return format!("{first}{}", as_well(document));
    }
    let points = match document.is_experiment() {
        true => Vec::new(),
        false => Results::of_points(document).spots,
    };
    match (points.as_slice(), document.trials.as_slice()) {
        (_, []) => match document.header.imported {
            Some(_) => "imported".to_owned(),
            None => "no figures, because no trial was finished".to_owned(),
        },
        (points, _) if document.header.command == Command::Quick => portrait(points),
        ([only], _) => of_point(only),
        ([], trials) => {
            let iops = |trial| figures::summary(trial, None, &[]).iops;
            range(trials.len(), trials.iter().filter_map(iops))
        }
        (points, _) => range(points.len(), points.iter().filter_map(|point| point.summary.iops)),
    }
}

/// "random read 4 KiB, queue depth 32, 5 trials: 36,420 IOPS ±2%".
fn of_point(point: &Spot<'_>) -> String {
    let first = point.first();
    let trials = point.trials_in_words().map_or(String::new(), |trials| format!(", {trials}"));
    format!("{}{}{trials}: {}", first.point.name, hosts::on_each(first), figures_of(point))
}

/// The most characters of the two sides of a comparison that its answer has room for.
const SIDES_LONG: usize = 80;

/// "; 512 may be needed to be sure of 95 % of the best, at 2.2 times the p50": the settings that a search for the peak
/// cannot distinguish from the one that it chose. "; A is sim:ssd, B is sim:hdd": the sides of a
/// comparison, if they are short. Otherwise empty.
fn as_well(document: &Document) -> String {
    if let Some(AbFound { sides, .. }) = compared(document)
        && let [a, b] = sides.as_slice()
        && a.len() + b.len() <= SIDES_LONG
    {
        return format!("; A is {a}, B is {b}");
    }
    let Some(Found::Peak(found)) = document.found() else { return String::new() };
    if found.objective.is_none() {
        let clauses = fathom_core::experiment::as_well(found).into_iter();
        return clauses.map(|clause| format!("; {clause}")).collect();
    }
    let others = found.equals.iter().filter(|value| Some(**value) != found.choice);
    let names: Vec<String> = others.map(|value| number(*value)).collect();
    let names = match names.as_slice() {
        [] => return String::new(),
        [one] => one.clone(),
        [one, other] => format!("{one} or {other}"),
        [first, .., last] => format!("any probed load from {first} to {last}"),
    };
    format!("; as far as the probes can tell, {names} could be it as well")
}

/// The end of a run, if it is not as planned.
fn ended(document: &Document) -> Option<String> {
    let ended = match document.conclusion.as_ref().map(|last| last.ended) {
        Some(Ended::Completed) => return None,
        Some(Ended::Interrupted) => "interrupted",
        Some(Ended::Failed) => "failed",
        None => "cut off",
    };
    Some(format!("{ended} after {}", document.done_in_words()))
}

/// The verdict, and what it rests on; none behind an answer that is open, where "sound" would read as
/// praise.
fn worth(document: &Document, tone: Tone) -> Option<String> {
    let verdict = document.verdict()?;
    let severity = match verdict {
        Verdict::Sound if compared(document).is_some_and(AbFound::is_undecided) => return None,
        Verdict::Sound => {
            let but = match document.found() {
                Some(Found::Map(map)) => doubted(&map.doubts),
                _ => String::new(),
            };
            // Behind bad news "sound" alone would read as praise for the target.
            let is_bad = tone == Tone::Bad || is_open(document) && but.is_empty();
            let what = if is_bad { "the measurement is sound" } else { "sound" };
            return Some(format!("{what}{but}{}", figures::left_open(&document.trials)));
        }
        Verdict::Suspect => Severity::Suspect,
        Verdict::Void => Severity::Void,
    };
    let mut doubts = figures::doubts(&document.trials);
    doubts.retain(|doubt| concerns_result(&doubt.finding.code));
    let of = |severity| doubts.iter().filter(move |one| one.finding.severity == severity);
    let mut codes: Vec<&str> =
        of(Severity::Void).chain(of(Severity::Suspect)).map(|one| &*one.finding.code).collect();
    let gravest = of(severity).next().map(|one| one.words.as_str());
    codes.sort_unstable();
    codes.dedup();
    let more = more_doubts(codes.len());
    let why = gravest.map_or(String::new(), |words| format!(": {words}{more}"));
    Some(format!("{}{why}", verdict.name()))
}

/// ", but 5 of 16 measured cells are not as precise as asked for (and 1 more doubt)": the first doubt
/// about a map, without its remedy.
fn doubted(doubts: &[String]) -> String {
    let Some(first) = doubts.first() else { return String::new() };
    let end = first.find([':', '(']).unwrap_or(first.len());
    let first = first[..end].trim_end_matches([' ', '.']);
    let mut letters = first.chars();
    let small: String = letters.next().into_iter().flat_map(char::to_lowercase).collect();
    format!(", but {small}{}{}", letters.as_str(), more_doubts(doubts.len()))
}

/// " (and 2 more doubts)" behind the first of them.
fn more_doubts(all: usize) -> String {
    match all {
        0 | 1 => String::new(),
        2 => " (and 1 more doubt)".to_owned(),
        n => format!(" (and {} more doubts)", n - 1),
    }
}

/// "read 256 MiB in 2.27 s, ": of a run that ends with an amount.
fn amount(point: &Spot<'_>) -> Option<String> {
    let [(_, trial)] = point.trials.as_slice() else { return None };
    let (direction, bytes, took) = figures::fixed_amount(trial)?;
    let verb = match direction {
        Some(Direction::Read) => "read",
        Some(Direction::Write) => "wrote",
        None => "moved",
    };
    Some(format!("{verb} {bytes} in {took}, "))
}

/// "36,420 IOPS ±0.4% (142 MiB/s, 149 MB/s), p99 4.80 ms ±3%".
fn figures_of(point: &Spot<'_>) -> String {
    let summary = &point.summary;
    let Some(iops) = summary.iops.filter(|iops| 0.0 < iops.value) else { return upkeep(point) };
    let half = spaced(plus_minus(Some(&iops)));
    let bytes = summary.bandwidth.map_or(0.0, |one| one.value);
    let moved = match bytes {
        0.0 => String::new(),
        bytes => format!(
            " ({} MiB/s, {} MB/s)",
            figures::significant(figures::mib(bytes)),
            figures::significant(bytes / 1e6)
        ),
    };
    let amount = amount(point).unwrap_or_default();
    let (iops, share) = (figures::significant(iops.value), of_offered(point));
    format!("{amount}{iops} IOPS{half}{moved}{share}{}", tail(point))
}

/// "1,200 trims per second": of a point that neither reads nor writes.
fn upkeep(point: &Spot<'_>) -> String {
    let trials = point.counted_trials();
    let window = trials.iter().fold(Span(0), |sum, trial| sum + trial.window());
    let mut counts: Vec<(Upkeep, u64)> = Vec::new();
    for (what, flow) in trials.iter().flat_map(|trial| TrialPart::whole(trial).upkeep()) {
        match counts.iter_mut().find(|(known, _)| *known == what) {
            Some((_, count)) => *count += flow.ios(),
            None => counts.push((what, flow.ios())),
        }
    }
    let rate = |(what, count): (Upkeep, u64)| {
        let rate = figures::per_second(count, window)?;
        let plural = if what == Upkeep::Flush { "flushes" } else { "trims" };
        Some(format!("{} {plural} per second", figures::significant(rate)))
    };
    let all: Vec<String> = counts.into_iter().filter_map(rate).collect();
    if all.is_empty() { "no I/O completed".to_owned() } else { all.join(", ") }
}

/// ", 49 % of the offered load": of open loops that offered more than the target can do. Empty beside a
/// closed loop, which offers no load, and beside a stream that was done before the others.
fn of_offered(point: &Spot<'_>) -> String {
    let share = |trial: &Trial| {
        let streams = &trial.point.streams;
        let is_whole = |one: &Stream| one.pacing.limit.is_none() || streams.len() == 1;
        let load = TrialPart::whole(trial).offered()?;
        let share = load.achieved? / load.offered;
        let all = streams.iter().all(|one| one.pacing.is_open() && is_whole(one));
        (all && share.is_finite()).then_some(share)
    };
    let trials = point.counted_trials();
    let shares: Option<Vec<f64>> = trials.iter().map(|trial| share(trial)).collect();
    match shares {
        Some(all) if point.is_overloaded() && !all.is_empty() => {
            let mean = all.iter().sum::<f64>() / all.len() as f64;
            format!(", {} of the offered load", figures::percent(mean))
        }
        _ => String::new(),
    }
}

/// ", p99 4.80 ms ±3%", ", p99 1.12 s while overloaded"; empty if too few samples carry it.
fn tail(point: &Spot<'_>) -> String {
    let Some(time) = point.summary.quantiles[TAIL] else { return String::new() };
    let end = match point.is_overloaded() {
        true => " while overloaded".to_owned(),
        false => spaced(plus_minus(Some(&time))),
    };
    format!(", {} {}{end}", QUANTILES[TAIL], figures::time(time.value))
}

fn spaced(text: String) -> String {
    if text.is_empty() { text } else { format!(" {text}") }
}

/// Several points that nobody compares: "3 points, 12,300 to 36,420 IOPS".
fn range(many: usize, iops: impl Iterator<Item = Estimate>) -> String {
    let all: Vec<f64> = iops.map(|one| one.value).collect();
    let (least, most) = all
        .iter()
        .fold((f64::INFINITY, 0.0_f64), |(least, most), one| (least.min(*one), most.max(*one)));
    match all.is_empty() {
        true => format!("{many} points, no I/O completed"),
        false => {
            let [least, most] = [least, most].map(figures::significant);
            format!("{many} points, {least} to {most} IOPS")
        }
    }
}

/// "Reads 3,194 MB/s in sequence, 11,474 IOPS at random (one at a time: 1,105, p99 1.93 ms); writes
/// 1,409 MB/s in sequence, 8,307 IOPS at random".
fn portrait(points: &[Spot<'_>]) -> String {
    let sides = [("reads", 1.0), ("writes", 0.0)].map(|(name, share)| {
        let own = |random: bool| {
            let steps = points.iter().filter(move |step| is_step(step.first(), share, random));
            steps.filter(|step| !step.is_void() || points.len() == 1)
        };
        let bandwidth = |step: &Spot<'_>| step.summary.bandwidth.map(|one| one.value);
        let sequential = own(false).filter_map(bandwidth).reduce(f64::max);
        let sequential = sequential
            .map(|bytes| format!("{} MB/s in sequence", figures::significant(bytes / 1e6)));
        let random = at_random(&own(true).collect::<Vec<_>>());
        let parts: Vec<String> = [sequential, random].into_iter().flatten().collect();
        (!parts.is_empty()).then(|| format!("{name} {}", parts.join(", ")))
    });
    let sides: Vec<String> = sides.into_iter().flatten().collect();
    let found = match sides.is_empty() {
        true => range(points.len(), points.iter().filter_map(|step| step.summary.iops)),
        false => figures::capitalized(&sides.join("; ")),
    };
    match points.iter().map(|step| step.trials.len()).max() {
        Some(trials @ 2..) => format!("{found}; {trials} trials of each step"),
        _ => found,
    }
}

/// Whether a step only reads (1) or only writes (0), at random or in sequence.
pub fn is_step(trial: &Trial, share: f64, random: bool) -> bool {
    let [Stream { ios, .. }] = trial.point.streams.as_slice() else { return false };
    let kinds = ios.kinds();
    kinds.iter().all(|kind| kind.read_share == share && figures::is_random(&kind.pattern) == random)
}

/// "11,474 IOPS at random (one at a time: 1,105, p99 1.93 ms)".
fn at_random(steps: &[&Spot<'_>]) -> Option<String> {
    let depth = |step: &&Spot<'_>| figures::queue_depth(step.first());
    let mut steps = steps.to_vec();
    steps.sort_by_key(depth);
    let iops = |step: &Spot<'_>| step.summary.iops.map(|one| figures::significant(one.value));
    let most = iops(steps.last()?)?;
    let alone = match steps.as_slice() {
        [first, _, ..] if depth(first) == 1 => iops(first)
            .map(|one| format!(" (one at a time: {one}{})", tail(first)))
            .unwrap_or_default(),
        _ => String::new(),
    };
    Some(format!("{most} IOPS at random{alone}"))
}
