//! What rounds until a steady state conclude, in sentences.

use super::steady::{Lack, change, gradual, scatter};
use super::{Shown, Sustain, Until, Watch};
use crate::experiment::throughput::{number, percent, time};
use crate::stats::{EXCURSION_MAX, RANGE_MAX, ROUNDS};
use crate::units::{Bytes, Span};

/// How near to its last level a phase has come when it has recovered.
const RECOVERED: f64 = 0.1;

/// Everything that follows from the trials so far; empty without any.
pub fn sentences(sustain: &Sustain) -> Vec<String> {
    let mut sentences = Vec::new();
    if !sustain.rounds.is_empty() {
        sentences.push(steadiness(sustain));
        sentences.extend(fall(sustain));
        sentences.extend(caution(sustain));
    }
    if !sustain.script.is_empty() {
        match sustain.course.test.as_str() {
            "host-idle-recovery" => sentences.extend(idle(sustain)),
            "cross-stimulus-recovery" => sentences.extend(phases(sustain)),
            _ => sentences.extend(demand(sustain)),
        }
    }
    sentences
}

fn shown(watch: Watch, value: f64) -> String {
    match watch {
        Watch::Iops => format!("{} IOPS", number(value)),
        Watch::Bandwidth => format!("{}/s", Bytes(value as u64)),
        Watch::MeanTime | Watch::Time(_) => time(value),
    }
}

fn steadiness(sustain: &Sustain) -> String {
    let standing = sustain.standing();
    let done = sustain.rounds.len();
    let (Some(state), what) = (standing.state, sustain.watched_in_words()) else {
        return format!("No steady state: {done} of the at least {ROUNDS} rounds were run.");
    };
    let mean = shown(sustain.course.watch, state.mean);
    let share = |value: f64| percent(if state.mean > 0.0 { value / state.mean } else { 0.0 });
    let (range, excursion) = (share(state.range), share(state.excursion));
    let last = format!("rounds {} to {done}", done - ROUNDS + 1);
    let after = load_time(sustain, done);
    if let Some(scatter) = scatter(&sustain.values())
        && scatter <= RANGE_MAX
        && is_about_scatter(standing.lacks)
    {
        return format!(
            "Whether it is steady cannot be told after {done} rounds ({after}): they differ by {} from \
             one to the next (a standard deviation) without a lasting change or a trend, and SNIA's \
             rule wants five in a row within {}. Make rounds longer with --duration; {what}, last \
             {mean}.",
            percent(scatter),
            percent(RANGE_MAX),
        );
    }
    let why = match standing.lacks {
        None => {
            return format!(
                "Steady: {what}, {mean} in {last}, after {after} of this load (largest minus \
                 smallest {range}, trend {excursion} of the mean)."
            );
        }
        Some(Lack::Nothing) => {
            return format!(
                "No steady state: nothing completed in {last}, after {after} of this load."
            );
        }
        Some(Lack::Rounds) => format!("there are fewer than {ROUNDS} rounds"),
        Some(Lack::Range) => format!(
            "in {last} the largest and the smallest are {range} of their mean apart, more than {}",
            percent(RANGE_MAX)
        ),
        Some(Lack::Excursion) => format!(
            "over {last} it rises or falls by {excursion} of the mean, more than {}",
            percent(EXCURSION_MAX)
        ),
        Some(Lack::Age) => format!(
            "it has been at this level only since round {}, which is not yet as long as what was \
             before it",
            standing.level_from + 1
        ),
        Some(Lack::Drift) => format!(
            "from round {} on it rises or falls by more than {} in all",
            standing.level_from + 1,
            percent(EXCURSION_MAX)
        ),
        Some(Lack::Scatter) => format!(
            "from round {} on they scatter so much that they may rise or fall by more than {} in all",
            standing.level_from + 1,
            percent(RANGE_MAX)
        ),
        Some(Lack::Time) => format!(
            "the load has not gone on for {}, and what is called steady before may be a credit or \
             a cache",
            sustain.course.at_least
        ),
    };
    format!("Not steady after {done} rounds ({after}): {why}; {what}, last {mean}.")
}

/// Whether what is missing may be missing by chance.
fn is_about_scatter(lacks: Option<Lack>) -> bool {
    use Lack::{Age, Drift, Excursion, Nothing, Range, Rounds, Scatter, Time};
    match lacks {
        Some(Range | Excursion | Age | Scatter) => true,
        Some(Rounds | Nothing | Drift | Time) | None => false,
    }
}

/// How long so many rounds load the targets.
fn load_time(sustain: &Sustain, rounds: usize) -> Span {
    Span(sustain.round_time().0.saturating_mul(rounds as u64))
}

/// "It fell from 3,000 IOPS to 500 IOPS in round 31, after 30 min and 43 GiB written."
fn fall(sustain: &Sustain) -> Option<String> {
    let (watch, values) = (sustain.course.watch, sustain.values());
    let Some(found) = change(&values) else {
        let (first, last) = gradual(&values)?;
        return Some(format!(
            "It {} little by little, from {} to {} in {} rounds.",
            if last < first { "fell" } else { "rose" },
            shown(watch, first.max(0.0)),
            shown(watch, last.max(0.0)),
            values.len(),
        ));
    };
    let verb = if found.after < found.before { "fell" } else { "rose" };
    let written = match sustain.written.get(found.at - 1) {
        Some(0) | None => String::new(),
        Some(written) => format!(" and {} written", Bytes(*written)),
    };
    Some(format!(
        "It {verb} from {} to {} in round {}, after {}{written}.",
        shown(watch, found.before),
        shown(watch, found.after),
        found.at + 1,
        load_time(sustain, found.at),
    ))
}

/// What a steady state does not rule out.
fn caution(sustain: &Sustain) -> Vec<String> {
    let mut cautions = Vec::new();
    let done = sustain.rounds.len();
    if sustain.standing().lacks.is_none() {
        cautions.push(format!(
            "A credit or a cache that lasts for longer than {} would not have shown.",
            load_time(sustain, done)
        ));
    }
    let all: u64 =
        sustain.course.round[0].point.streams[0].regions.iter().map(|region| region.length.0).sum();
    let written = sustain.written.last().copied().unwrap_or(0);
    let fills = matches!(sustain.course.until, Until::Over { .. });
    if 0 < written && written < all && sustain.course.passes == 0 && !fills {
        cautions.push(format!(
            "Nothing was written beforehand, and the rounds wrote {} of what is addressed: a drive \
             that was never full is faster than it will be.",
            percent(written as f64 / all as f64)
        ));
    }
    cautions
}

/// The mean of what trials showed that bear this label first, by labels in their order.
fn groups(script: &[Shown]) -> Vec<(String, Vec<&Shown>)> {
    let mut groups: Vec<(String, Vec<&Shown>)> = Vec::new();
    for one in script {
        let label = one.labels.first().cloned().unwrap_or_default();
        match groups.iter_mut().find(|(known, _)| *known == label) {
            Some((_, group)) => group.push(one),
            None => groups.push((label, Vec::from([one]))),
        }
    }
    groups
}

fn mean(group: &[&Shown], of: impl Fn(&Shown) -> f64) -> f64 {
    group.iter().map(|one| of(one)).sum::<f64>() / group.len() as f64
}

/// What pauses give back, against the steady state.
fn idle(sustain: &Sustain) -> Vec<String> {
    let steady = sustain.standing().state.map(|state| state.mean).filter(|mean| *mean > 0.0);
    let sentence = |(idle, group): (String, Vec<&Shown>)| {
        let mean = mean(&group, |one| one.iops);
        let against = steady
            .filter(|_| sustain.course.watch == Watch::Iops)
            .map(|steady| format!(", {:.2} times the rate without pauses", mean / steady))
            .unwrap_or_default();
        format!("After pauses of {idle}, bursts of 5 s write {} IOPS{against}.", number(mean))
    };
    groups(&sustain.script).into_iter().map(sentence).collect()
}

/// What each phase came to, and how long it took to get there.
fn phases(sustain: &Sustain) -> Vec<String> {
    let length = sustain.course.script[0].point.window;
    let sentence = |(name, group): (String, Vec<&Shown>)| {
        let tail = &group[group.len() - group.len().div_ceil(4)..];
        let level = mean(tail, |one| one.bandwidth);
        let is_there = |one: &&Shown| (one.bandwidth - level).abs() <= RECOVERED * level;
        let settled = group.iter().rposition(|one| !is_there(one)).map_or(0, |last| last + 1);
        let level_in_words = format!("{}/s", Bytes(level as u64));
        match settled {
            0 => format!("Phase '{name}': {level_in_words} from its beginning."),
            n if n >= group.len() => format!("Phase '{name}': {level_in_words}, not settled."),
            n => format!(
                "Phase '{name}': {level_in_words}, which it takes {} to settle at.",
                Span(length.0.saturating_mul(n as u64))
            ),
        }
    };
    groups(&sustain.script).into_iter().map(sentence).collect()
}

/// Where the most comes of it, and at what response time.
fn demand(sustain: &Sustain) -> Option<String> {
    let best = sustain.script.iter().max_by(|a, b| a.iops.total_cmp(&b.iops))?;
    let [workers, depth] = best.labels.as_slice() else { return None };
    // What is nearly as much with the least in flight is what one wants.
    let demand = |one: &&Shown| -> f64 {
        let value = |label: &str| label.split('/').next().and_then(|n| n.parse::<f64>().ok());
        one.labels.iter().filter_map(|label| value(label)).product()
    };
    let enough = sustain.script.iter().filter(|one| one.iops >= 0.95 * best.iops);
    let least = enough.min_by(|a, b| demand(a).total_cmp(&demand(b)))?;
    let p99 = |one: &Shown| one.p99_ns.map(|ns| format!(", p99 {}", time(ns))).unwrap_or_default();
    let load = |workers: &str, depth: &str| {
        let each = depth.split('/').next().unwrap_or(depth);
        match workers {
            "1" => format!("1 worker with {each} in flight"),
            many => format!("{many} workers with {each} in flight each"),
        }
    };
    let first =
        format!("The most is {} IOPS, by {}{}", number(best.iops), load(workers, depth), p99(best));
    match least == best {
        true => Some(format!("{first}.")),
        false => Some(format!(
            "{first}; {} IOPS ({}) come of {}{}.",
            number(least.iops),
            percent(least.iops / best.iops),
            load(&least.labels[0], &least.labels[1]),
            p99(least)
        )),
    }
}
