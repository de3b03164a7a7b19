//! The conclusions of rounds until a steady state, in sentences.

use super::steady::{Lack, change, gradual, scatter};
use super::{ScriptResult, Sustain, Until, Watch};
use crate::differences::ends_of_times;
use crate::experiment::throughput::Throughput;
use crate::figures::{self, number, percent, time};
use crate::stats::{self, Comparison, EXCURSION_MAX, Estimate, RANGE_MAX, ROUNDS, Ratio};
use crate::units::{Bytes, Span};

/// How close to its last level a phase is when it has recovered.
const RECOVERED: f64 = 0.1;

/// Or this many standard deviations of its trials, if that is more: few lie further away by chance.
const SCATTERS: f64 = 4.0;

/// If the scatter is more than this share of its level, it cannot be told when a phase has
/// recovered.
const TELLS_NOTHING: f64 = 0.25;

/// Rounds and bursts do not alternate: a target that drifts by this much meanwhile must not look
/// like one that pauses help or harm.
const DRIFTED: f64 = 0.25;

/// The share of the highest throughput that is nearly as much.
const NEARLY: f64 = 0.95;

/// All conclusions from the trials so far; empty without any.
pub fn sentences(sustain: &Sustain) -> Vec<String> {
    let mut sentences = Vec::new();
    if !sustain.rounds.is_empty() {
        sentences.push(steadiness(sustain));
        sentences.extend(fall(sustain));
        sentences.extend(caution(sustain));
    }
    if !sustain.script.is_empty() {
        match sustain.plan.test.as_str() {
            "host-idle-recovery" => sentences.extend(idle(sustain)),
            "cross-stimulus-recovery" => sentences.extend(phases(sustain)),
            _ => sentences.extend(demand(sustain)),
        }
        if 1 < sustain.hosts {
            let hosts = number(sustain.hosts.into());
            sentences
                .push(format!("Rates are those of {hosts} hosts together, loads those of each."));
        }
    }
    sentences
}

fn shown(watch: Watch, value: f64) -> String {
    match watch {
        Watch::Iops => format!("{} IOPS", number(value)),
        Watch::Bandwidth => Throughput::Bandwidth.in_words(value),
        Watch::MeanTime | Watch::Time(_) => time(value),
    }
}

fn steadiness(sustain: &Sustain) -> String {
    let standing = sustain.standing();
    let done = sustain.rounds.len();
    let (Some(state), what) = (standing.state, sustain.watched_in_words()) else {
        return format!("No steady state: {done} of the at least {ROUNDS} rounds were run.");
    };
    let mean = shown(sustain.plan.watch, state.mean);
    let share = |value: f64| percent(if state.mean > 0.0 { value / state.mean } else { 0.0 });
    let (range, excursion) = (share(state.range), share(state.excursion));
    let last = format!("rounds {} to {done}", done - ROUNDS + 1);
    let after = load_time(sustain, done);
    if let Some(scatter) = scatter(&sustain.values())
        && scatter <= RANGE_MAX
        && is_about_scatter(standing.lacks)
    {
        return format!(
            "Whether it is steady is unknown after {done} rounds ({after}): they differ by {} from \
             one to the next (a standard deviation) without a lasting change or a trend, and SNIA's \
             rule wants five in a row within {}. Make rounds longer with --duration; {what}, last \
             {mean}.",
            percent(scatter),
            percent(RANGE_MAX),
        );
    }
    let why = match standing.lacks {
        None => {
            let since = since(standing.unbroken_from(&sustain.values()));
            return format!(
                "Steady{since}: {what}, {mean} in {last}, after {after} of this load (largest minus \
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
        Some(Lack::Time) => {
            let young = too_young(standing.level_from, sustain.plan.at_least);
            return format!("Level {young}; {what}, last {mean} after {done} rounds ({after}).");
        }
    };
    format!("Not steady after {done} rounds ({after}): {why}; {what}, last {mean}.")
}

/// "so far, and not called steady yet: ...": rounds that lack nothing but time.
fn too_young(level_from: usize, at_least: Span) -> String {
    let since = match level_from {
        0 => "so far".to_owned(),
        before => format!("since round {}", before + 1),
    };
    format!(
        "{since}, and not called steady yet: the load has to go on for {at_least}, because a burst \
         credit or a cache may last nearly as long"
    )
}

/// " throughout", " from round 41 on"; empty if a round is off.
fn since(from: Option<usize>) -> String {
    match from {
        None => String::new(),
        Some(0) => " throughout".to_owned(),
        Some(from) => format!(" from round {} on", from + 1),
    }
}

/// Whether chance can explain the missing condition.
fn is_about_scatter(lacks: Option<Lack>) -> bool {
    use Lack::{Age, Drift, Excursion, Nothing, Range, Rounds, Scatter, Time};
    match lacks {
        Some(Range | Excursion | Age | Scatter) => true,
        Some(Rounds | Nothing | Drift | Time) | None => false,
    }
}

/// How long this many rounds load the targets.
fn load_time(sustain: &Sustain, rounds: usize) -> Span {
    Span(sustain.round_time().0.saturating_mul(rounds as u64))
}

/// "It fell from 3,000 IOPS to 500 IOPS in round 31, after 30 min and 43 GiB written."
fn fall(sustain: &Sustain) -> Option<String> {
    let (watch, values) = (sustain.plan.watch, sustain.values());
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
        Some(written) if sustain.hosts == 1 => format!(" and {} written", Bytes(*written)),
        Some(written) => format!(" and {} written by each host", Bytes(*written)),
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
    let lasting = load_time(sustain, done);
    if sustain.is_simulated {
        let longest = sustain.plan.round.iter().map(|one| one.point.time()).max();
        cautions.push(format!(
            "The simulated device is a new one at each point: a credit or a cache that lasts for \
             longer than {} does not show.",
            longest.unwrap_or_default()
        ));
    } else if sustain.standing().lacks.is_none() {
        cautions.push(format!(
            "A credit or a cache that lasts for longer than {lasting} would not show."
        ));
    }
    let all: u64 =
        sustain.plan.round[0].point.streams[0].regions.iter().map(|region| region.length.0).sum();
    let written = sustain.written.last().copied().unwrap_or(0);
    let fills = matches!(sustain.plan.until, Until::Over { .. });
    if 0 < written && written < all && sustain.plan.passes == 0 && !fills {
        let wrote = percent(written as f64 / all as f64);
        let rounds = match sustain.hosts {
            1 => format!("the rounds wrote {wrote} of the addressed region"),
            _ => format!("the rounds of each host wrote {wrote} of the region that it addresses"),
        };
        cautions.push(format!(
            "Nothing was written beforehand, and {rounds}: a drive that was never full is faster than \
             it will be."
        ));
    }
    cautions
}

/// The mean of the trials with this label in the first place, by labels in their order.
fn groups(script: &[ScriptResult]) -> Vec<(String, Vec<&ScriptResult>)> {
    let mut groups: Vec<(String, Vec<&ScriptResult>)> = Vec::new();
    for one in script {
        let label = one.labels.first().cloned().unwrap_or_default();
        match groups.iter_mut().find(|(known, _)| *known == label) {
            Some((_, group)) => group.push(one),
            None => groups.push((label, Vec::from([one]))),
        }
    }
    groups
}

fn mean(group: &[&ScriptResult], of: impl Fn(&ScriptResult) -> f64) -> f64 {
    group.iter().map(|one| of(one)).sum::<f64>() / group.len() as f64
}

/// The effect of pauses on the steady state: the intervals hold for all pauses at once, from the
/// scatter of bursts and rounds.
fn idle(sustain: &Sustain) -> Vec<String> {
    let values = sustain.values();
    let is_known = sustain.standing().state.is_some() && sustain.plan.watch == Watch::Iops;
    let steady = values.len().checked_sub(ROUNDS).filter(|_| is_known);
    let steady = steady.map_or(Vec::new(), |from| exact(values[from..].iter().copied()));
    let groups = groups(&sustain.script);
    let bursts = groups.iter().map(|(_, group)| exact(group.iter().map(|one| one.iops)));
    let settings: Vec<Vec<Estimate>> = std::iter::once(steady).chain(bursts).collect();
    let levels = stats::levels(&settings);
    let against = |nth: usize| {
        let (steady, bursts) = (levels[0]?, levels[nth + 1]?);
        let compared = Comparison::for_so_many([steady, bursts], groups.len());
        Some(against_steady(compared.ratio(&[1], &[0])))
    };
    let sentence = |(nth, (idle, group)): (usize, &(String, Vec<&ScriptResult>))| {
        let (mean, against) = (mean(group, |one| one.iops), against(nth).unwrap_or_default());
        format!("After pauses of {idle}, bursts of 5 s write {} IOPS{against}.", number(mean))
    };
    groups.iter().enumerate().map(sentence).collect()
}

/// ", 1.30 times the rate without pauses (1.20 to 1.41)".
fn against_steady(ratio: Ratio) -> String {
    let [value, low, high] = [ratio.value, ratio.low, ratio.high].map(figures::ratio);
    let is_told = ratio.high < 1.0 - DRIFTED || 1.0 + DRIFTED < ratio.low;
    match is_told || low == high {
        true => format!(", {value} times the rate without pauses{}", ends_of_times(ratio)),
        false => format!(
            ", which cannot be distinguished from the rate without pauses ({low} to {high} times it)"
        ),
    }
}

/// Figures without knowledge of their errors.
fn exact(values: impl Iterator<Item = f64>) -> Vec<Estimate> {
    values.map(|value| Estimate { value, half_width: None }).collect()
}

/// The level of each phase, and the time until it was reached.
fn phases(sustain: &Sustain) -> Vec<String> {
    let length = sustain.plan.script[0].point.window;
    let sentence = |(name, group): (String, Vec<&ScriptResult>)| {
        let tail = &group[group.len() - group.len().div_ceil(4)..];
        let level = mean(tail, |one| one.bandwidth);
        if level <= 0.0 {
            return format!("Phase '{name}': nothing was written at its end.");
        }
        // The approach to a level must not count as scatter of the trials.
        let near = RECOVERED.max(SCATTERS * scatter_of(&group, level));
        let is_there = |one: &&ScriptResult| (one.bandwidth - level).abs() <= near * level;
        let settled = group.iter().rposition(|one| !is_there(one)).map_or(0, |last| last + 1);
        let level_in_words = Throughput::Bandwidth.in_words(level);
        if near > TELLS_NOTHING {
            return format!(
                "Phase '{name}': {level_in_words}; how long it takes to get there is unknown, because \
                 its trials differ by {} from one to the next.",
                percent(near / SCATTERS)
            );
        }
        let within = match near > RECOVERED {
            true => format!(", within {}", percent(near)),
            false => String::new(),
        };
        match settled {
            0 => format!("Phase '{name}': {level_in_words} from its beginning{within}."),
            n if n >= group.len() => format!("Phase '{name}': {level_in_words}, not settled."),
            n => format!(
                "Phase '{name}': {level_in_words}, which it takes {} to settle at{within}.",
                Span(length.0.saturating_mul(n as u64))
            ),
        }
    };
    groups(&sustain.script).into_iter().map(sentence).collect()
}

/// The scatter of a phase's trials, as a standard deviation and a share of its level, independent
/// of its approach to the level: from the median difference of neighbors, of which a step changes
/// one, or from the differences in its last third, whichever is more.
fn scatter_of(group: &[&ScriptResult], level: f64) -> f64 {
    let neighbors = group.windows(2);
    let mut steps: Vec<f64> =
        neighbors.map(|pair| (pair[1].bandwidth - pair[0].bandwidth).abs() / level).collect();
    steps.sort_unstable_by(f64::total_cmp);
    // Differences of normal values have sqrt(2) times their deviation, and a median of 0.6745 times
    // that.
    let neighbors =
        steps.get(steps.len() / 2).map_or(0.0, |median| median / (0.6745 * 2f64.sqrt()));
    // The end is at its level, and slower changes show there.
    let tail = &group[group.len() - group.len().div_ceil(3)..];
    let squares: f64 = tail.iter().map(|one| (one.bandwidth / level - 1.0).powi(2)).sum();
    neighbors.max((squares / (tail.len() as f64 - 1.0).max(1.0)).sqrt())
}

/// The highest throughput, its response time, and the smallest number in flight with nearly as much
/// throughput. Each load was measured once, and the sentence after this one says what that means.
fn demand(sustain: &Sustain) -> Vec<String> {
    let best = sustain.script.iter().max_by(|a, b| a.iops.total_cmp(&b.iops));
    let is_one = |best: &&ScriptResult| best.labels.len() == 2 && 0.0 < best.iops;
    let Some(best) = best.filter(is_one) else { return Vec::new() };
    // The load with the least in flight that is nearly as fast is the one to choose.
    let demand = |one: &&ScriptResult| -> f64 {
        let value = |label: &str| label.split('/').next().and_then(|n| n.parse::<f64>().ok());
        one.labels.iter().filter_map(|label| value(label)).product()
    };
    let enough = sustain.script.iter().filter(|one| one.iops >= NEARLY * best.iops);
    let least = enough.min_by(|a, b| demand(a).total_cmp(&demand(b))).unwrap_or(best);
    let p99 =
        |one: &ScriptResult| one.p99_ns.map(|ns| format!(", p99 {}", time(ns))).unwrap_or_default();
    let load = |one: &ScriptResult| {
        let each = one.labels[1].split('/').next().unwrap_or_default();
        match one.labels[0].as_str() {
            "1" => format!("1 worker with {each} in flight"),
            many => format!("{many} workers with {each} in flight each"),
        }
    };
    let first = format!(
        "The most that was measured is {} IOPS, by {}{}",
        number(best.iops),
        load(best),
        p99(best)
    );
    let first = match least == best {
        true => format!("{first}."),
        false => format!(
            "{first}; the least in flight with {} of it or more is {}: {} IOPS ({}){}.",
            percent(NEARLY),
            load(least),
            number(least.iops),
            percent(least.iops / best.iops),
            p99(least)
        ),
    };
    let each = sustain.script.iter().map(|one| exact(std::iter::once(one.iops)));
    let levels = stats::levels(&each.collect::<Vec<_>>());
    let least = Comparison::new(levels.into_iter().flatten()).resolution();
    let chance = least.map(|least| {
        format!(
            "Each load was measured once: what differs by less than {} may differ by chance.",
            percent(least)
        )
    });
    std::iter::once(first).chain(chance).collect()
}
