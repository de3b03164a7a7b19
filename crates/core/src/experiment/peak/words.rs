//! What a search for the peak concludes, in sentences.

use super::knee::Knee;
use super::{Objective, Peak, Search, Shown, State, Vary};
use crate::experiment::Probe;
use crate::experiment::throughput::{number, percent, time};
use crate::spec::Point;
use crate::stats::Estimate;

/// A loss above the answer that is worth a word.
const WORTH_SAYING: f64 = 0.05;

/// Everything that follows from the trials so far; empty without any.
pub fn sentences(peak: &Peak) -> Vec<String> {
    if peak.probes.is_empty() {
        return Vec::new();
    }
    let mut sentences = match (&peak.search, &peak.state) {
        (Search::Saturation { vary, up_to, .. }, State::Knee(knee)) => {
            saturation(peak, *vary, *up_to, knee)
        }
        (Search::Load { objective, .. }, _) => load(peak, objective),
        (Search::Saturation { .. }, State::Highest(_)) => Vec::new(),
    };
    sentences.extend(official(peak));
    sentences
}

fn saturation(peak: &Peak, vary: Vary, up_to: u32, knee: &Knee) -> Vec<String> {
    let found = peak.found();
    let (Some(choice), Some(best)) = (found.choice, found.best) else { return Vec::new() };
    let probe = peak.probe(choice);
    let shown = peak.throughput.in_words(probe.throughput.value);
    if best.value <= 0.0 {
        return Vec::from(["Nothing was moved at any setting.".to_owned()]);
    }
    if knee.answer().is_some_and(|answer| answer.rises_at_the_end) {
        return Vec::from([format!(
            "Nothing up to {} saturates {}: it gives {shown}, and more may gain. Go on with \
             --up-to {}.",
            peak.setting(f64::from(up_to)),
            targets(&peak.base),
            up_to.saturating_mul(4),
        )]);
    }
    let share = probe.throughput.value / best.value;
    let mut clause = format!("{} of the best, {shown}", percent(share));
    if found.probes.iter().any(|other| choice < other.value) {
        clause += "; more does not help";
        clause += &cost(knee).unwrap_or_default();
    }
    let subject = subject(peak, vary, choice);
    let verb = if vary == Vary::Workers && choice != 1.0 { "saturate" } else { "saturates" };
    let mut sentences =
        Vec::from([format!("{subject} {verb} {} ({clause}).", targets(&peak.base))]);
    let others: Vec<f64> = found.equals.iter().copied().filter(|v| *v != choice).collect();
    sentences.extend(doubt(&others));
    sentences
}

/// What the highest setting costs, where that is no chance and worth a word.
fn cost(knee: &Knee) -> Option<String> {
    let (setting, lost) = knee.cost().filter(|(_, lost)| WORTH_SAYING <= *lost)?;
    Some(format!(", {} costs {}", number(f64::from(setting)), percent(lost)))
}

fn doubt(others: &[f64]) -> Option<String> {
    let values: Vec<String> = others.iter().map(|value| number(*value)).collect();
    match values.as_slice() {
        [] => None,
        [one] => Some(format!("It could be {one} as well: the probes cannot tell them apart.")),
        [all @ .., last] => Some(format!(
            "It could be {} or {last} as well: the probes cannot tell them apart.",
            all.join(", ")
        )),
    }
}

/// "2 writers", "Queue depth 8".
fn subject(peak: &Peak, vary: Vary, value: f64) -> String {
    if vary == Vary::QueueDepth {
        return format!("Queue depth {value}");
    }
    let share = peak.base.streams[0].read_share;
    let who = match share {
        0.0 => "writer",
        1.0 => "reader",
        _ => "worker",
    };
    let per_target = match peak.base.streams[0].workers {
        crate::spec::Workers::PerTarget(_) if 1 < peak.base.streams[0].regions.len() => {
            " for each target"
        }
        _ => "",
    };
    format!("{value} {who}{}{per_target}", if value == 1.0 { "" } else { "s" })
}

fn targets(base: &Point) -> &'static str {
    let mut targets: Vec<u32> =
        base.streams.iter().flat_map(|stream| &stream.regions).map(|one| one.target).collect();
    targets.sort_unstable();
    targets.dedup();
    if targets.len() == 1 { "this target" } else { "these targets" }
}

fn load(peak: &Peak, objective: &Objective) -> Vec<String> {
    let State::Highest(highest) = &peak.state else { return Vec::new() };
    let bracket = highest.bracket();
    let shown = |value: f64| {
        let probe = peak.probe(value);
        let reached = probe.throughput.value;
        let name = number(value);
        (name, time_of(objective, &probe), peak.throughput.in_words(reached))
    };
    let miss = bracket.misses.map(|value| {
        let (name, time, reached) = shown(value);
        let too_many = percent(1.0 - objective.quantile.0);
        let why = match highest.is_overloaded(value) {
            true => format!("it carries {reached}"),
            // Too few samples for the figure, and enough to see that it is too long.
            false => format!("more than {too_many} of its I/Os took longer"),
        };
        (name, time.unwrap_or(why))
    });
    let Some(meets) = bracket.meets else {
        let (name, why) = miss.unwrap_or_default();
        return Vec::from([format!(
            "No load meets {objective}: even {name} IOPS miss it ({why})."
        )]);
    };
    let (name, time, _) = shown(meets);
    let time = time.map(|time| format!(" ({time})")).unwrap_or_default();
    let first = format!("The highest load at which {objective} is {name} IOPS{time}");
    let mut sentences = Vec::from([match miss {
        Some((name, why)) => format!("{first}; {name} misses it ({why})."),
        None => format!("{first}, the highest that was allowed: go on with --up-to."),
    }]);
    let equals = peak.found().equals;
    let others: Vec<f64> = equals.into_iter().filter(|value| *value != meets).collect();
    sentences.extend(doubt(&others));
    sentences
}

/// "p99 1.8 ms"; none where too few samples carry it.
fn time_of(objective: &Objective, probe: &Probe) -> Option<String> {
    let shown = probe.response_time_ns?;
    Some(format!("{} {}", objective.quantile, time(shown.value)))
}

/// By how much the official run fell short of what its probes promised, where that is no chance.
fn less_than_probes(official: &Estimate, probes: &Estimate) -> Option<f64> {
    let half = |one: &Estimate| one.half_width.unwrap_or(0.0);
    let lost = probes.value - official.value;
    let is_one = half(official).hypot(half(probes)) < lost && WORTH_SAYING * probes.value < lost;
    is_one.then(|| lost / probes.value)
}

/// "The official run of 5 min at queue depth 8: 856 MiB/s ± 0.5 %."
fn official(peak: &Peak) -> Option<String> {
    let Shown { value, throughput, response_time, meets } = peak.official_shown?;
    let window = peak.official?;
    let at = peak.setting(value);
    let uncertainty = throughput.half_width.filter(|_| throughput.value > 0.0);
    let uncertainty = uncertainty
        .map(|half| format!(" ± {}", percent(half / throughput.value)))
        .unwrap_or_default();
    let rate = peak.throughput.in_words(throughput.value);
    let first = format!("The official run of {window} at {at}: {rate}{uncertainty}");
    let Search::Load { objective, .. } = peak.search else {
        let less = less_than_probes(&throughput, &peak.probe(value).throughput);
        let less = less.map(|share| format!(", {} less than its probes", percent(share)));
        let why = less.as_ref().map_or("", |_| {
            ": for that long the target does not keep it up, or something else used it meanwhile"
        });
        return Some(format!("{first}{}{why}.", less.unwrap_or_default()));
    };
    let time = response_time
        .map(|shown| format!(", {} {}", objective.quantile, time(shown.value)))
        .unwrap_or_default();
    let verdict = match meets {
        Some(false) => {
            "; it misses the objective: for that long the target does not carry this load"
        }
        Some(true) => "; it meets the objective",
        None => "; too few I/Os to say whether it meets the objective",
    };
    Some(format!("{first}{time}{verdict}."))
}
