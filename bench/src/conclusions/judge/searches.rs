//! The sentences of searches for the peak and of rounds until a steady state.

use super::{Heard, Judged, Worth, between, number, percent, rate};
use crate::conclusions::lab::{Noise, burst};

/// Half of the last digit of a percentage as the sentences round it.
const ROUNDED: f64 = 0.0051;

/// How a sentence about a steady state starts.
const STEADY: [&str; 3] = ["Steady: ", "Steady throughout: ", "Steady from round "];

/// If at least this many settings could be the answer, the sentence leaves the question open.
const MANY: usize = 4;

/// The device saturates at queue depth 8.
pub fn peak_at_8(heard: &Heard<'_>) -> Vec<Judged> {
    saturation(heard, 8.0, &[])
}

/// Each depth gives the same rate.
pub fn peak_at_1(heard: &Heard<'_>) -> Vec<Judged> {
    saturation(heard, 1.0, &[])
}

/// Depth 4 gives the highest rate, and depth 256 a fifth less.
pub fn peak_at_4(heard: &Heard<'_>) -> Vec<Judged> {
    saturation(
        heard,
        4.0,
        &[(8.0, 0.01), (16.0, 0.02), (32.0, 0.06), (64.0, 0.1), (128.0, 0.15), (256.0, 0.2)],
    )
}

/// The rate rises up to depth 256.
pub fn peak_rising(heard: &Heard<'_>) -> Vec<Judged> {
    saturation(heard, 256.0, &[])
}

fn saturation(heard: &Heard<'_>, truth: f64, losses: &[(f64, f64)]) -> Vec<Judged> {
    let mut judged = Vec::new();
    let sentences = &heard.session.sentences;
    for (place, sentence) in sentences.iter().enumerate() {
        let next: Vec<&str> = sentences[place + 1..]
            .iter()
            .map(String::as_str)
            .take_while(|one| leaves_open(one))
            .collect();
        let is_known = ["As DiskSpd's guide asks", "NOT as DiskSpd's guide asks"]
            .iter()
            .any(|start| sentence.starts_with(start));
        if is_known || leaves_open(sentence) {
            continue;
        }
        if sentence.starts_with("The official run ") {
            judged.push(official(heard, sentence));
        } else if sentence.starts_with("Nothing up to ") {
            judged.push(Judged::holds("saturates", sentence, truth == 256.0));
        } else if sentence.starts_with("Whether ") && sentence.contains("is unknown")
            || sentence.starts_with("Queue depth ") && sentence.contains(" may saturate ")
        {
            judged.push(Judged::open("saturates", sentence));
        } else if sentence.starts_with("Not monotonic: ") {
            judged.push(Judged::holds("not monotonic", sentence, false));
        } else if sentence.starts_with("At ") && sentence.ends_with(" and is left out.") {
            continue;
        } else if sentence.starts_with("At ") && sentence.contains(" left out: something else") {
            let right = heard.noise == Noise::Burst;
            judged.push(Judged::holds("a probe was disturbed", sentence, right));
        } else if let Some(choice) =
            between(sentence, "Queue depth ", " saturates").and_then(number)
        {
            let mut could_be: Vec<f64> = next.iter().flat_map(|one| others(one)).collect();
            could_be.push(choice);
            let whole = format!("{sentence} {}", next.join(" "));
            let right = could_be.contains(&truth);
            judged.push(match MANY <= could_be.len() && right {
                true => Judged::open("saturates", &whole),
                false => Judged::holds("saturates", &whole, right),
            });
            judged.extend(cost(sentence, losses));
        } else {
            judged.push(Judged::unread(sentence));
        }
    }
    judged
}

/// What a sentence about settings that could be the answer as well has behind them.
const OPEN: &str = ": the probes cannot tell";

fn leaves_open(sentence: &str) -> bool {
    sentence.contains(OPEN)
}

/// "1 or 4 may be enough, at 0.4 to 0.6 times the p50: ...", "1 and 4 gave 12 % and 51 % of the best,
/// ...", "16 or 32 may be needed to be sure of 95 % of the best: ..."
fn others(sentence: &str) -> Vec<f64> {
    let clause = sentence.split(OPEN).next().unwrap_or_default();
    let list = clause.split(" may be ").next().unwrap_or_default();
    let list = list.split(" gave ").next().unwrap_or_default().replace(" and ", ", ");
    list.replace(" or ", ", ").split(", ").filter_map(number).collect()
}

/// ", 256 costs 7 to 13 %)." or ", 256 costs 10 %)."
fn cost(sentence: &str, losses: &[(f64, f64)]) -> Option<Judged> {
    let (before, said) = sentence.rsplit_once(" costs ")?;
    let setting = number(before.rsplit_once(' ')?.1)?;
    let said = said.trim_end_matches(['.', ')']);
    let (least, most) = said.split_once(" to ").unwrap_or((said.trim_end_matches(" %"), said));
    let (Some(least), Some(most)) = (number(least), percent(most)) else {
        return Some(Judged::unread(sentence));
    };
    let least = least / 100.0;
    // A setting that is not in the list loses nothing.
    let truth = losses.iter().find(|(one, _)| *one == setting).map_or(0.0, |(_, loss)| *loss);
    let right = least - ROUNDED <= truth && truth <= most + ROUNDED;
    Some(Judged::holds("what the end costs", sentence, right))
}

/// Only the statement about the target is judged: the figure itself is the measured one.
fn official(heard: &Heard<'_>, sentence: &str) -> Judged {
    const KIND: &str = "the official run";
    let changes = matches!(heard.noise, Noise::Drift | Noise::Burst);
    let accuses = sentence.contains("does not keep it up");
    Judged::holds(KIND, sentence, changes || !accuses)
}

/// M/M/1 with 500 a second: p99 is 50 ms at 500 - ln(100) / 50 ms.
const CAPACITY: f64 = 500.0;
const HIGHEST: f64 = CAPACITY - 92.103;

/// The highest load that meets p99 <= 50 ms.
pub fn peak_load(heard: &Heard<'_>) -> Vec<Judged> {
    let mut judged = Vec::new();
    let sentences = &heard.session.sentences;
    // A device that is slower for a while carries less for a while. Where its speed varies, its
    // long response times are those of its slow periods.
    let slowest = heard.noise.slowest() * (1.0 - 1.5 * heard.noise.deviation());
    let (low, high) = ((CAPACITY * slowest - (CAPACITY - HIGHEST)).max(1.0), HIGHEST);
    for (place, sentence) in sentences.iter().enumerate() {
        let next = sentences.get(place + 1).map_or("", String::as_str);
        if sentence.starts_with("As far as the probes can tell, that load ") {
            continue;
        }
        if sentence.starts_with("The official run ") {
            judged.push(official_load(sentence, (low, high)));
            continue;
        }
        let (meets, misses) = the_two_ends(sentence);
        let Some(meets) = meets else {
            judged.push(match sentence.starts_with("No load meets") {
                true => Judged::holds("the highest load", sentence, false),
                false => Judged::unread(sentence),
            });
            continue;
        };
        let is_wide = next.starts_with("As far as the probes can tell, that load ");
        let (least, most) = match is_wide {
            true => (
                between(next, " is at least ", " IOPS").and_then(number).unwrap_or(0.0),
                between(next, "less than ", " IOPS").and_then(number).unwrap_or(f64::INFINITY),
            ),
            false => (meets, misses.unwrap_or(f64::INFINITY)),
        };
        // The accuracy that the search was asked for: --tolerance.
        let right = 0.95 * least <= high && low <= 1.05 * most;
        let whole = format!("{sentence} {next}");
        judged.push(match right && is_wide {
            true => Judged::open("the highest load", &whole),
            false => Judged::holds("the highest load", &whole, right),
        });
    }
    judged
}

/// "The highest load at which p99 <= 50 ms is 400 IOPS (p99 45 ms); 420 misses it (p99 60 ms)." or "... is
/// between 400 IOPS, which meets it in its probes (p99 45 ms), and 420 IOPS, whose official run misses it
/// (p99 60 ms)."
fn the_two_ends(sentence: &str) -> (Option<f64>, Option<f64>) {
    if let Some(meets) = between(sentence, " is between ", " IOPS") {
        return (number(meets), between(sentence, ", and ", " IOPS").and_then(number));
    }
    let misses = sentence.split_once("; ").and_then(|(_, rest)| rest.split_once(" misses"));
    let meets = between(sentence, " is ", " IOPS").and_then(number);
    (meets, misses.and_then(|(load, _)| number(load)))
}

/// "The official run of 10 s at 400 IOPS offered: ...; it meets the objective."
fn official_load(sentence: &str, (low, high): (f64, f64)) -> Judged {
    const KIND: &str = "the official run";
    let Some(load) = between(sentence, " at ", " IOPS offered").and_then(number) else {
        return Judged::unread(sentence);
    };
    if sentence.contains("; it meets the objective") {
        return Judged::holds(KIND, sentence, 0.95 * load <= high);
    }
    if sentence.contains("; it misses the objective") {
        return Judged::holds(KIND, sentence, low <= 1.05 * load);
    }
    match sentence.contains(" to say whether it meets ") {
        true => Judged::open(KIND, sentence),
        false => Judged::unread(sentence),
    }
}

/// The target is equally fast in each round.
pub fn sustain_level(heard: &Heard<'_>) -> Vec<Judged> {
    sustain(heard, None)
}

/// The target is half as fast from its sixteenth round on.
pub fn sustain_step(heard: &Heard<'_>) -> Vec<Judged> {
    sustain(heard, Some(15))
}

fn sustain(heard: &Heard<'_>, step: Option<usize>) -> Vec<Judged> {
    let speeds = speeds(heard, step);
    let mut judged = Vec::new();
    for sentence in &heard.session.sentences {
        if sentence.starts_with("A credit or a cache ")
            || sentence.starts_with("The simulated device is a new one at each point: ")
            || sentence.starts_with("Nothing was written beforehand")
            // These sentences say what was measured, and how far it may be off.
            || sentence.starts_with("The most that was measured is ")
            || sentence.starts_with("Each load was measured once: ")
        {
            continue;
        }
        if sentence.starts_with("After pauses of ") {
            // The sentence cannot see that others used the target while one pause was measured.
            let one = after_pauses(sentence);
            let is_excused = heard.noise == Noise::Burst && one.worth == Worth::Wrong;
            judged.push(if is_excused { Judged::open(one.kind, sentence) } else { one });
            continue;
        }
        if sentence.starts_with("Phase '") {
            // A target that drifts, or that others use meanwhile, may have no level.
            let may_move = matches!(heard.noise, Noise::Drift | Noise::Burst);
            let right = may_move || sentence.contains(" from its beginning");
            judged.push(match sentence.contains(" is unknown, ") {
                true => Judged::open("where a phase settles", sentence),
                false => Judged::holds("where a phase settles", sentence, right),
            });
            continue;
        }
        if STEADY.iter().any(|start| sentence.starts_with(start)) {
            judged.push(Judged::holds("steady", sentence, is_steady(&speeds)));
        } else if sentence.contains("is unknown") || sentence.starts_with("Level ") {
            judged.push(Judged::open("steady", sentence));
        } else if sentence.starts_with("Not steady ") || sentence.starts_with("No steady state") {
            judged.push(Judged::holds("steady", sentence, !is_level(&speeds)));
        } else if sentence.contains(" little by little") {
            let right = 0.1 < range(&speeds);
            judged.push(Judged::holds("a lasting change", sentence, right));
        } else if sentence.starts_with("It fell ") || sentence.starts_with("It rose ") {
            judged.push(Judged::holds(
                "a lasting change",
                sentence,
                has_changed(&speeds, sentence),
            ));
        } else {
            judged.push(Judged::unread(sentence));
        }
    }
    judged
}

/// "After pauses of 5 s, bursts of 5 s write N IOPS, 1.30 times the rate without pauses (1.20 to 1.41)." In
/// truth a pause changes nothing.
fn after_pauses(sentence: &str) -> Judged {
    const KIND: &str = "what pauses give back";
    if sentence.contains(", which cannot be distinguished from the rate without pauses") {
        return Judged::open(KIND, sentence);
    }
    let times = between(sentence, " IOPS, ", " times the rate without pauses").and_then(number);
    let ends = between(sentence, " times the rate without pauses (", ")");
    let ends = ends.and_then(|ends| ends.split_once(" to "));
    let ends = ends.and_then(|(low, high)| Some((number(low)?, number(high)?)));
    match (times, ends) {
        (Some(_), Some((low, high))) => {
            Judged::holds(KIND, sentence, low - ROUNDED <= 1.0 && 1.0 <= high + ROUNDED)
        }
        (Some(times), None) => Judged::holds(KIND, sentence, (times - 1.0).abs() <= 0.011),
        // Nothing is compared with a rate that is not steady.
        (None, _) => Judged::open(KIND, sentence),
    }
}

/// The true speed of each round, without chance.
fn speeds(heard: &Heard<'_>, step: Option<usize>) -> Vec<f64> {
    // The trials after the rounds are not rounds: "... in rounds 6 to 10, ...", "... after 25
    // rounds ...".
    let all = heard.session.trials.len();
    let said = heard.session.sentences.iter().find_map(|one| {
        let last = between(one, " in rounds ", ", ").and_then(|said| said.split_once(" to "));
        let last = last.map(|(_, last)| last).or_else(|| between(one, " after ", " rounds"));
        last.and_then(number)
    });
    let rounds = said.map_or(all, |rounds| rounds as usize).min(all);
    let length = heard.session.length.0 as f64;
    let (start, lasts) = burst(heard.session.length, heard.seed);
    let speed = |round: usize| {
        let seen = &heard.session.trials[round];
        let (from, to) = (seen.began.0 as f64, (seen.began.0 + 10_000_000_000) as f64);
        match (step, heard.noise) {
            (Some(step), _) => {
                if round < step {
                    1.0
                } else {
                    0.5
                }
            }
            (None, Noise::Drift) => heard.noise.slowest().powf((from + to) / 2.0 / length),
            (None, Noise::Burst) => {
                let (start, end) = (start.0 as f64, (start.0 + lasts.0) as f64);
                let busy = (to.min(end) - from.max(start)).max(0.0) / (to - from);
                1.0 - busy * (1.0 - heard.noise.slowest())
            }
            (None, _) => 1.0,
        }
    };
    (0..rounds).map(speed).collect()
}

fn range(speeds: &[f64]) -> f64 {
    let most = speeds.iter().copied().fold(0.0, f64::max);
    1.0 - speeds.iter().copied().fold(f64::INFINITY, f64::min) / most
}

/// The last five rounds are alike within a tenth.
fn is_steady(speeds: &[f64]) -> bool {
    speeds.len() >= 5 && range(&speeds[speeds.len() - 5..]) <= 0.1
}

/// All rounds are alike.
fn is_level(speeds: &[f64]) -> bool {
    range(speeds) < 0.02
}

/// "It fell from A to B in round N, ...": whether there is such a change, within one round and
/// within half of its size.
fn has_changed(speeds: &[f64], sentence: &str) -> bool {
    let round = between(sentence, " in round ", ",").and_then(number).unwrap_or(0.0) as usize;
    let figure = |start, end| between(sentence, start, end).and_then(rate);
    let (Some((before, _)), Some((after, _))) =
        (figure(" from ", " to "), figure(" to ", " in round"))
    else {
        return false;
    };
    let near = round.saturating_sub(2)..(round + 2).min(speeds.len());
    let steps = near.filter(|at| *at >= 1).map(|at| speeds[at] / speeds[at - 1]);
    let said = (after / before).ln();
    let mut steps = steps.map(f64::ln);
    steps.any(|step| step.signum() == said.signum() && 0.5 * said.abs() <= step.abs())
}
