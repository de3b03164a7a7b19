//! The conclusions of a search for the peak, in sentences.

use super::highest::Highest;
use super::knee::Knee;
use super::probed::Scatter;
use super::{Peak, Search, Shown, State, Vary};
use crate::experiment::{PeakFound, Probe};
use crate::figures::{number, percent, time};
use crate::spec::Objective;
use crate::stats::Estimate;
use crate::units::Quantile;

/// From this many settings on that could be the answer as well, a remedy is given.
const MANY: usize = 3;

/// A loss above the answer that is worth reporting.
const WORTH_SAYING: f64 = 0.05;

/// All conclusions from the trials so far; empty without any.
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
    let shown = measured(peak, choice, knee);
    if best.value <= 0.0 {
        return Vec::from(["No setting moved any data.".to_owned()]);
    }
    let Some(answer) = knee.answer() else { return Vec::new() };
    let others: Vec<f64> = found.equals.iter().copied().filter(|v| *v != choice).collect();
    // As the table shows both.
    let share = (probe.throughput.value / best.value).min(1.0);
    let first = match answer.rises_at_the_end {
        true => rising(peak, up_to, &shown, &others),
        false => {
            let probes = if peak.official_shown.is_some() { "in the probes " } else { "" };
            let mut clause = format!("{probes}{} of the best", percent(share));
            // Settings above the answer that could be it as well may help.
            let end = others.iter().copied().fold(choice, f64::max);
            if found.probes.iter().any(|other| end < other.value) {
                clause += match end == choice {
                    true => "; more does not help".to_owned(),
                    false => format!("; more than {} does not help", number(end)),
                }
                .as_str();
                clause += &cost(knee).unwrap_or_default();
            }
            let subject = subject(peak, vary, choice);
            let verb = match vary == Vary::Workers && choice != 1.0 {
                // Only the scatter of the probes lets it be enough.
                _ if falls_short(&found) => "may saturate",
                true => "saturate",
                false => "saturates",
            };
            let on = on_each(peak, choice);
            format!("{subject}{on} {verb} {}: {shown} ({clause}).", targets(peak))
        }
    };
    let mut sentences = Vec::from([first]);
    sentences.extend(doubts(&found, knee.scatter()));
    sentences.extend(unproven(&knee.unproven()));
    sentences.extend(contradictions(peak, knee));
    sentences
}

/// "715,668 IOPS, p50 271 us": the figures of the answer, from its official run if there was one.
fn measured(peak: &Peak, choice: f64, knee: &Knee) -> String {
    let probe = peak.probe(choice);
    let (throughput, median, less) = match peak.official_shown {
        Some(Shown { throughput, .. }) => {
            let less = less_than_probes(&throughput, &probe, knee);
            let less = less.map(|share| format!(", {} less than in its probes", percent(share)));
            (throughput, peak.official_times[0], less.unwrap_or_default())
        }
        None => (probe.throughput, probe.response_time_ns, String::new()),
    };
    let median = median.map_or(String::new(), |median| format!(", p50 {}", time(median.value)));
    format!("{}{less}{median}", peak.throughput.in_words(throughput.value))
}

fn rising(peak: &Peak, up_to: u32, shown: &str, others: &[f64]) -> String {
    let (highest, targets) = (set(peak, f64::from(up_to)), targets(peak));
    let remedy = format!("Go on with --up-to {}.", up_to.saturating_mul(4));
    match others {
        [] => format!(
            "Nothing up to {highest} saturates {targets}: it gives {shown}, and more may gain. {remedy}"
        ),
        _ => format!(
            "Whether {highest} saturates {targets} is unknown: it gives {shown}, and more may gain. \
             {remedy}"
        ),
    }
}

/// Departures from a curve: settings that give less than lower ones and higher ones, and probes
/// that differ from others of the same setting.
fn contradictions(peak: &Peak, knee: &Knee) -> Vec<String> {
    let dip = |dip: super::knee::Dip| {
        format!(
            "Not monotonic: {} gives {} less than settings below and above it do, in {} probes.",
            set(peak, f64::from(dip.setting)),
            percent(dip.less),
            dip.probes,
        )
    };
    let disturbed = |one: super::knee::Disturbed| {
        let each: Vec<String> = one.shares.iter().map(|share| percent(*share)).collect();
        let why = match one.is_told {
            true => ": something else used the target then, or held it up",
            false => "",
        };
        format!(
            "At {} {} of {} probes gave {} of the others' throughput, and is left out{why}.",
            set(peak, f64::from(one.setting)),
            one.shares.len(),
            one.probes,
            each.join(" and "),
        )
    };
    let dips = knee.dips().into_iter().map(dip);
    dips.chain(knee.disturbed().into_iter().map(disturbed)).collect()
}

/// The cost of the highest setting, if it is beyond chance and worth reporting.
fn cost(knee: &Knee) -> Option<String> {
    let (setting, share) = knee.cost().filter(|(_, share)| share.value <= 1.0 - WORTH_SAYING)?;
    let [least, most] = [1.0 - share.high, 1.0 - share.low].map(percent);
    let ends = match least == most {
        true => most,
        false => format!("{} to {most}", least.trim_end_matches(" %")),
    };
    Some(format!(", {} costs {ends}", number(f64::from(setting))))
}

/// The settings that could be the answer as well, and why.
fn doubts(found: &PeakFound, scatter: Scatter) -> Vec<String> {
    let why = match found.equals.len() {
        ..=MANY => String::new(),
        _ => format!(
            ", because {}. Probe for longer, with --duration",
            scattered(scatter, "those of one setting")
        ),
    };
    let sentence = |clause: String| format!("{clause}: the probes cannot tell{why}.");
    as_well(found).into_iter().map(sentence).collect()
}

/// "those of one setting differ by 5 % from one to the next"; of a scatter that is only assumed, that it
/// is, beside what was seen.
fn scattered(scatter: Scatter, those: &str) -> String {
    let noise = percent(scatter.noise());
    match scatter.degrees {
        None => {
            format!("fathom assumes that {those} differ by {noise}, as long as none is repeated")
        }
        Some(_) if scatter.deviation < scatter.noise() => format!(
            "fathom assumes that {those} differ by {noise} from one to the next, also where they differ \
             by {}, as here",
            percent(scatter.deviation)
        ),
        Some(_) => format!("{those} differ by {noise} from one to the next"),
    }
}

/// "1 and 4 gave 12 % and 51 % of the best, in one probe each: the probes cannot tell whether they were
/// disturbed."
pub(super) fn unproven(settings: &[(u32, f64)]) -> Option<String> {
    let list = |all: Vec<String>| match all.as_slice() {
        [all @ .., last] if !all.is_empty() => format!("{} and {last}", all.join(", ")),
        one => one.concat(),
    };
    let names = list(settings.iter().map(|(setting, _)| number(f64::from(*setting))).collect());
    let shares = list(settings.iter().map(|(_, share)| percent(*share)).collect());
    let rest = match settings.len() {
        0 => return None,
        1 => "in one probe: the probes cannot tell whether it was disturbed",
        _ => "in one probe each: the probes cannot tell whether they were disturbed",
    };
    Some(format!("{names} gave {shares} of the best, {rest}."))
}

/// Whether the chosen setting gave less than the share of the best that is enough, so that it is the
/// answer only because its probes scatter. Never in a search for a load.
pub fn falls_short(found: &PeakFound) -> bool {
    let (Some(choice), Some(best), Some(enough)) = (found.choice, found.best, found.enough) else {
        return false;
    };
    let own = found.probes.iter().find(|probe| probe.value == choice);
    own.is_some_and(|own| own.throughput.value < enough * best.value)
}

/// The settings that could be the answer as well, those below it and those above it in a clause each:
/// "512 or 1,024 may be needed to be sure of 95 % of the best, at 2.2 to 4.8 times the p50". So a reader to whom the
/// response time matters sees what they cost. None for a search for a load.
pub fn as_well(found: &PeakFound) -> Vec<String> {
    let (Some(choice), Some(enough)) = (found.choice, found.enough) else { return Vec::new() };
    let side = |is_in: &dyn Fn(f64) -> bool, claim: &dyn Fn(String) -> String| {
        let others: Vec<f64> = found.equals.iter().copied().filter(|one| is_in(*one)).collect();
        let names: Vec<String> = others.iter().map(|value| number(*value)).collect();
        let names = match names.as_slice() {
            [] => return None,
            [all @ .., last] if !all.is_empty() => format!("{} or {last}", all.join(", ")),
            one => one.concat(),
        };
        let times = times_as_long(found, choice, &others);
        Some(format!("{}{}", claim(names), times.unwrap_or_default()))
    };
    let sides = [
        side(&|value| value < choice, &|names| format!("{names} may be enough")),
        side(&|value| choice < value, &|names| {
            format!("{names} may be needed to be sure of {} of the best", percent(enough))
        }),
    ];
    sides.into_iter().flatten().collect()
}

/// ", at 2.2 to 4.8 times the p50": the response times of some settings as multiples of that of the
/// answer. None if one of them is not known, or if chance can explain that it differs.
fn times_as_long(found: &PeakFound, choice: f64, others: &[f64]) -> Option<String> {
    let time = |value: f64| found.probes.iter().find(|one| one.value == value)?.response_time_ns;
    let own = time(choice)?;
    let half = |one: Estimate| one.half_width.unwrap_or(f64::INFINITY);
    let ratio = |value: &f64| {
        let other = time(*value)?;
        let apart = half(own) + half(other) < (own.value - other.value).abs();
        apart.then_some(other.value / own.value)
    };
    let ratios: Vec<f64> = others.iter().map(ratio).collect::<Option<_>>()?;
    let low = ratios.iter().copied().fold(f64::INFINITY, f64::min);
    let high = ratios.iter().copied().fold(0.0, f64::max);
    let [low, high] = [low, high].map(two_digits);
    let range = if low == high { low } else { format!("{low} to {high}") };
    Some(format!(", at {range} times the p50"))
}

/// "0.45", "2.2", "13".
fn two_digits(ratio: f64) -> String {
    match ratio {
        ratio if ratio < 0.95 => format!("{ratio:.2}"),
        ratio if ratio < 9.95 => format!("{ratio:.1}"),
        _ => number(ratio.round()),
    }
}

/// "2 writers", "Queue depth 8".
fn subject(peak: &Peak, vary: Vary, value: f64) -> String {
    if vary == Vary::QueueDepth {
        return format!("Queue depth {value}");
    }
    let share = peak.base.streams[0].read_share();
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

/// " on each of 3 hosts (24 in all)"; empty if one machine applies the load.
fn on_each(peak: &Peak, value: f64) -> String {
    match peak.hosts {
        1 => String::new(),
        hosts => {
            let all = number(value * f64::from(hosts));
            format!(" on each of {} hosts ({all} in all)", number(hosts.into()))
        }
    }
}

/// "queue depth 8", and on several hosts "queue depth 8 on each host".
fn set(peak: &Peak, value: f64) -> String {
    let on = if peak.hosts == 1 { "" } else { " on each host" };
    format!("{}{on}", peak.setting(value))
}

fn targets(peak: &Peak) -> &'static str {
    if 1 < peak.hosts {
        // They may share one target, or have one each.
        return "their targets";
    }
    let base = &peak.base;
    let mut targets: Vec<u32> =
        base.streams.iter().flat_map(|stream| &stream.regions).map(|one| one.target).collect();
    targets.sort_unstable();
    targets.dedup();
    if targets.len() == 1 { "this target" } else { "these targets" }
}

fn load(peak: &Peak, objective: &Objective) -> Vec<String> {
    let State::Highest(highest) = &peak.state else { return Vec::new() };
    let bracket = highest.bracket();
    let first = match (bracket.meets, peak.missed()) {
        (Some(meets), None) => {
            let is_certain = highest.told().misses == bracket.misses;
            let misses = bracket.misses.map(|load| (load, is_certain));
            highest_load(peak, objective, meets, misses)
        }
        (Some(meets), Some(official)) => below_the_official_run(peak, objective, meets, &official),
        (None, None) => {
            let (name, why) = bracket.misses.map(|load| miss(peak, objective, load)).unzip();
            let on = if peak.hosts == 1 { "" } else { " on each host" };
            format!(
                "No load meets {objective}: even {} IOPS{on} miss it ({}).",
                name.unwrap_or_default(),
                why.unwrap_or_default()
            )
        }
        (None, Some(official)) => format!(
            "No load that was probed meets {objective} for long: the lowest, {} IOPS{}, meets it in \
             its probes, but its official run misses it ({}).",
            number(official.value),
            on_each(peak, official.value),
            why_missed(peak, objective, &official)
        ),
    };
    let mut sentences = Vec::from([first]);
    sentences.extend(between(peak, highest).filter(|_| bracket.meets.is_some()));
    sentences
}

/// "The highest load at which p99 <= 2 ms is 3,670 IOPS (p99 1.8 ms); 3,830 misses it (p99 2.2 ms)." If
/// chance can explain on which side of the objective the official run is: "... is 3,670 IOPS by its probes
/// (p99 1.8 ms), and its official run leaves it open (p99 2.1 ms); ..." Of the load that misses it,
/// `misses` says as well whether that is beyond chance.
fn highest_load(
    peak: &Peak,
    objective: &Objective,
    meets: f64,
    misses: Option<(f64, bool)>,
) -> String {
    let official = peak.official_shown.and_then(|one| one.response_time);
    let in_words = |shown| quantile_of(objective, shown).map(|time| format!(" ({time})"));
    let [official, probed] = [official, peak.probe(meets).response_time_ns].map(in_words);
    let time = match (official, probed) {
        (official, probed) if peak.official_is_open() => format!(
            " by its probes{}, and its official run leaves it open{}",
            probed.unwrap_or_default(),
            official.unwrap_or_default()
        ),
        (official, probed) => official.or(probed).unwrap_or_default(),
    };
    let (name, on) = (number(meets), on_each(peak, meets));
    let first = format!("The highest load at which {objective} is {name} IOPS{on}{time}");
    match misses.map(|(load, is_certain)| (miss(peak, objective, load), is_certain)) {
        Some(((name, why), true)) => format!("{first}; {name} misses it ({why})."),
        Some(((name, why), false)) => format!("{first}; {name} misses it in its probes ({why})."),
        None => format!("{first}, the highest that was allowed: go on with --up-to."),
    }
}

/// The answer is below the load of the official run, which the probes had promised too much of.
fn below_the_official_run(
    peak: &Peak,
    objective: &Objective,
    meets: f64,
    official: &Shown,
) -> String {
    let time = quantile_of(objective, peak.probe(meets).response_time_ns);
    let time = time.map(|time| format!(" ({time})")).unwrap_or_default();
    let on = if peak.hosts == 1 { "" } else { " on each host" };
    format!(
        "The highest load at which {objective} is between {} IOPS{on}, which meets it in its \
         probes{time}, and {} IOPS, whose official run misses it ({}).",
        number(meets),
        number(official.value),
        why_missed(peak, objective, official)
    )
}

/// A load that misses the objective in its probes, and how.
fn miss(peak: &Peak, objective: &Objective, load: f64) -> (String, String) {
    let State::Highest(highest) = &peak.state else { return Default::default() };
    let probe = peak.probe(load);
    let why = match highest.is_overloaded(load) {
        true => format!("it carries {}", peak.throughput.in_words(probe.throughput.value)),
        // Too few samples for the figure, but enough to see that it is too long.
        false => {
            format!("more than {} of its I/Os took longer", percent(1.0 - objective.quantile.0))
        }
    };
    (number(load), quantile_of(objective, probe.response_time_ns).unwrap_or(why))
}

/// "p99 32 ms", or "it carries 3,100 IOPS": how the official run misses the objective.
fn why_missed(peak: &Peak, objective: &Objective, official: &Shown) -> String {
    let carries = || format!("it carries {}", peak.throughput.in_words(official.throughput.value));
    let time = quantile_of(objective, official.response_time).filter(|_| !official.overloaded);
    time.unwrap_or_else(carries)
}

/// The loads between which the answer lies, if they are further apart than the search aims for.
fn between(peak: &Peak, highest: &Highest) -> Option<String> {
    let on = if peak.hosts == 1 { "" } else { " (the load of each host)" };
    let told = highest.told();
    if told == highest.bracket() {
        return None;
    }
    let least = told.meets.map(|load| format!("is at least {} IOPS", number(load)));
    let most = told.misses.map(|load| format!("less than {} IOPS", number(load)));
    let ends = match (least, most) {
        (Some(least), Some(most)) => format!("{least} and {most}"),
        (Some(least), None) => format!("{least} and may be more than all that were probed"),
        (None, Some(most)) => format!("is {most} and may be less than all that were probed"),
        (None, None) => "may be less or more than all that were probed".to_owned(),
    };
    Some(format!(
        "As far as the probes can tell, that load{on} {ends}, because {}. Probe for longer, with \
         --duration.",
        scattered(highest.scatter(), "those of one load")
    ))
}

/// "p99 1.8 ms"; none if there are too few samples.
fn quantile_of(objective: &Objective, shown: Option<Estimate>) -> Option<String> {
    Some(format!("{} {}", objective.quantile, time(shown?.value)))
}

/// By how much the official run fell short of its probes, if that is beyond chance.
fn less_than_probes(official: &Estimate, probes: &Probe, knee: &Knee) -> Option<f64> {
    let own = official.half_width.unwrap_or(0.0) / official.value.max(f64::MIN_POSITIVE);
    // One run against several probes, which differ from one to the next.
    let spread = knee.scatter().noise() * (1.0 + 1.0 / f64::from(probes.trials.max(1))).sqrt();
    let lost = 1.0 - official.value / probes.throughput.value;
    // The answer was chosen from all because its probes were good: they promise too much.
    let certain = knee.certain(knee.known());
    (WORTH_SAYING.max(own.hypot(certain * spread)) < lost).then_some(lost)
}

/// The response time of an official run, in words.
pub(super) const OFFICIAL_QUANTILES: [Quantile; 2] = [Quantile(0.5), Quantile(0.99)];

/// " Its response time: p50 176 us ± 0.2 %, p99 2.3 ms." Empty without enough samples.
fn official_times(peak: &Peak) -> String {
    let told = OFFICIAL_QUANTILES.into_iter().zip(peak.official_times);
    let told = told.filter_map(|(quantile, shown)| {
        let Estimate { value, half_width } = shown?;
        let half = half_width.filter(|_| value > 0.0);
        let half = half.map(|half| format!(" ± {}", percent(half / value)));
        Some(format!("{quantile} {}{}", time(value), half.unwrap_or_default()))
    });
    let told: Vec<String> = told.collect();
    match told.is_empty() {
        true => String::new(),
        false => format!(" Its response time: {}.", told.join(", ")),
    }
}

/// "The official run of 5 min at queue depth 8: 856 MiB/s ± 0.5 %."
fn official(peak: &Peak) -> Option<String> {
    let official = peak.official_shown?;
    let Shown { value, throughput, response_time, overloaded } = official;
    let window = peak.official?;
    let at = set(peak, value);
    let uncertainty = throughput.half_width.filter(|_| throughput.value > 0.0);
    let uncertainty = uncertainty
        .map(|half| format!(" ± {}", percent(half / throughput.value)))
        .unwrap_or_default();
    let rate = peak.throughput.in_words(throughput.value);
    let first = format!("The official run of {window} at {at}: {rate}{uncertainty}");
    let Search::Load { objective, .. } = peak.search else {
        let less = match &peak.state {
            State::Knee(knee) => less_than_probes(&throughput, &peak.probe(value), knee),
            State::Highest(_) => None,
        };
        let less = less.map(|share| format!(", {} less than its probes", percent(share)));
        let why = less.as_ref().map_or("", |_| {
            ": for that long the target does not keep it up, or something else used it meanwhile"
        });
        let times = official_times(peak);
        return Some(format!("{first}{}{why}.{times}", less.unwrap_or_default()));
    };
    let time = quantile_of(&objective, response_time);
    let time = time.map(|time| format!(", {time}")).unwrap_or_default();
    let verdict = match (official.certainly_meets(objective.bound), response_time) {
        (Some(true), _) => "; it meets the objective",
        (Some(false), _) if overloaded => {
            "; it misses the objective: for that long the target does not carry this load"
        }
        (Some(false), _) => "; it misses the objective, which its probes met",
        (None, Some(_)) => "; that is too close to the objective to say whether it meets it",
        (None, None) => "; too few I/Os to say whether it meets the objective",
    };
    Some(format!("{first}{time}{verdict}."))
}
