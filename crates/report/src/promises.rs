//! Promises: what the maker or the operator of the targets says that they do, and whether a result
//! keeps it.

use fathom_core::Span;
use fathom_core::experiment::ROUND;
use fathom_core::facts::Answer;
use fathom_core::spec::{BackendKind, Rated};
use fathom_core::stats::Estimate;

use crate::document::{
    Command, Coordinate, Document, Found, Metric, Role, Severity, SustainFound, Trial, Verdict,
};
use crate::figures;
use crate::results::Results;
use crate::thresholds::{Measured, measured, of_spots};

/// After less time than this, a burst credit or a cache may still answer.
const SHORT: Span = Span::from_secs(600);

/// Suspect findings after which a target is not to blame for a figure that is too low or a response
/// time that is too long: other programs or fathom itself held the load up.
const HELD_UP: [&str; 12] = [
    "concurrent-fathom",
    "cpu-contention",
    "cpu-steal",
    "cpu-throttled",
    "depth-not-reached",
    "foreign-io",
    "generator-ceiling",
    "generator-late",
    "low-priority",
    "machine-paused",
    "memory-pressure",
    "process-stopped",
];

/// A promise beside the result.
#[derive(Clone, Debug, PartialEq)]
pub struct Promise {
    /// The figure, what was promised, and whether it was kept, without a full stop.
    pub text: String,
    /// Whether it was kept; unknown where the result does not decide it.
    pub kept: Answer,
    /// Whether more I/Os in flight may keep it: it is about throughput, and the load was a closed loop of
    /// one depth.
    pub more_may_keep_it: bool,
}

/// What was promised: a figure, and its bound.
#[derive(Clone, Copy)]
struct Bound {
    metric: Metric,
    value: f64,
}

/// The promises that the user named, each with the result that speaks for it: of several results the
/// highest throughput, and the longest response time. None for a map, a study or a result of another
/// program, which answer other questions.
pub fn promises(document: &Document) -> Vec<Promise> {
    let is_other = |command| matches!(command, Command::Map | Command::Study | Command::Import);
    if is_other(document.header.command) {
        return Vec::new();
    }
    let mut bounds: Vec<Bound> = Vec::new();
    for trial in &document.trials {
        for bound in bounds_of(trial.point.rated) {
            if !bounds.iter().any(|known| known.metric == bound.metric) {
                bounds.push(bound);
            }
        }
    }
    bounds.into_iter().map(|bound| judge(document, bound)).collect()
}

/// What tells more: whether a promise that was not kept is kept with more I/Os in flight, and whether one
/// that was kept for a short time is kept for long. Empty if the result leaves neither open.
pub fn advice(document: &Document, promises: &[Promise]) -> Vec<String> {
    let deeper = promises.iter().any(|one| one.kept == Answer::No && one.more_may_keep_it);
    let deeper = deeper.then(|| {
        "More I/Os in flight may reach more, with longer response times: `fathom peak` with the same \
         target, load and promise, but without --queue-depth, tells how many saturate the target."
            .to_owned()
    });
    let measured = document.trials.iter().fold(Span(0), |sum, trial| sum + trial.window());
    let short = document.header.command != Command::Sustain && measured < SHORT;
    let kept = promises.iter().any(|one| one.kept == Answer::Yes);
    // A simulated device is a new one at each point, so that rounds do not add up.
    let is_simulated = document.trials.iter().all(|trial| trial.backend == BackendKind::Sim);
    let longer = (short && kept).then(|| {
        let how = match is_simulated {
            true => "a longer --duration",
            false => "`fathom sustain` with the same options",
        };
        format!(
            "A cache or a burst credit may have answered for these {measured}: {how} tells what is kept \
             for long."
        )
    });
    deeper.into_iter().chain(longer).collect()
}

/// The results that count: of rounds until a steady state those that are steady, or else the last; of
/// a search for the peak each point, because it chooses one that is not the fastest, except for
/// response times, which are those of the point that it chose.
fn judged(document: &Document, bound: Bound) -> Vec<Measured<'_>> {
    match document.found() {
        Some(Found::Sustain(found)) => steady(document, found),
        Some(Found::Peak(_)) if !bound.is_a_time() => {
            let roles = [Role::Result, Role::Probe, Role::Official];
            of_spots(Results::of(document, &roles).spots)
        }
        _ => measured(document),
    }
}

/// The steady rounds of each point together, or the last that was finished; all that was measured
/// where no round was. What some tests do after their rounds is no round: the rounds of these tests
/// have no other place than their number.
fn steady<'a>(document: &'a Document, found: &SustainFound) -> Vec<Measured<'a>> {
    let counts = match found.rounds.last() {
        Some(last) => found.steady_from.unwrap_or(last.number)..=last.number,
        // A test of phases has no rounds, and others were stopped in their first.
        None => 0..=u32::MAX,
    };
    let is_alone = |trial: &Trial| trial.place.coordinates.iter().any(|one| one.axis == ROUND);
    let are_alone = document.trials.iter().any(is_alone);
    let mut all: Vec<(Vec<&Coordinate>, Measured<'_>)> = Vec::new();
    for trial in document.trials.iter().filter(|trial| trial.place.role == Role::Result) {
        let round = trial.place.repeat.saturating_add(1);
        if !counts.contains(&round) || is_alone(trial) != are_alone {
            continue;
        }
        let place = trial.place.coordinates.iter().filter(|one| one.axis != ROUND).collect();
        match all.iter_mut().find(|(known, _)| *known == place) {
            Some((_, one)) => one.trials.push(trial),
            None => {
                let prefix = format!("{ROUND} {round}: ");
                let name = trial.point.name.strip_prefix(&prefix).unwrap_or(&trial.point.name);
                all.push((place, Measured { name: name.to_owned(), trials: Vec::from([trial]) }));
            }
        }
    }
    all.into_iter().map(|(_, one)| one).collect()
}

fn rated(measured: &Measured<'_>) -> Option<Rated> {
    measured.trials.first().map(|trial| trial.point.rated)
}

fn bounds_of(rated: Rated) -> impl Iterator<Item = Bound> {
    let bound = |metric, value| Bound { metric, value };
    let iops = rated.iops.map(|rate| bound(Metric::Iops, rate.0));
    let bandwidth = rated.bandwidth.map(|bytes| bound(Metric::Bandwidth, bytes.0 as f64));
    let time = rated
        .response_time
        .map(|promised| bound(Metric::Quantile(promised.quantile), promised.bound.0 as f64));
    [iops, bandwidth, time].into_iter().flatten()
}

/// A promise beside the results for which it was made.
fn judge(document: &Document, bound: Bound) -> Promise {
    let all = judged(document, bound);
    let promised = |one: &&Measured<'_>| {
        rated(one).is_some_and(|own| bounds_of(own).any(|o| o.metric == bound.metric))
    };
    let own: Vec<&Measured<'_>> = all.iter().filter(promised).collect();
    let is_void = |one: &Measured<'_>| one.trials.iter().all(|trial| says_nothing(trial));
    let known = own.iter().filter(|one| !is_void(one));
    let known = known.filter_map(|one| {
        let (shown, estimate) = bound.shown(&one.trials)?;
        Some((*one, shown, estimate))
    });
    // The highest throughput speaks for a target, and the longest response time against it: first one
    // that is certainly too long.
    let breaks = |estimate| bound.is_a_time() && bound.holds(estimate) == Answer::No;
    let decides = known.max_by(|one, other| {
        let both = breaks(one.2).cmp(&breaks(other.2));
        both.then(one.2.value.total_cmp(&other.2.value))
    });
    let Some((one, shown, estimate)) = decides else {
        let why = match own.as_slice() {
            [] => "nothing was measured for it",
            all if all.iter().all(|one| is_void(one)) => "the result is void",
            _ => "too few I/Os",
        };
        let text = format!("{}: unknown ({why})", bound.alone());
        return Promise { text, kept: Answer::Unknown, more_may_keep_it: false };
    };
    // Of several loads only a name tells which one is meant.
    let with = if all.len() > 1 { format!(" with {}", one.name) } else { String::new() };
    let text = bound.beside(shown, estimate.value, &with);
    let is_credible = one.trials.iter().any(|trial| trial.verdict != Verdict::Void);
    let (kept, words) = match bound.holds(estimate) {
        _ if one.trials.iter().any(|trial| trial.hosts.iter().any(|host| host.lost.is_some())) => {
            (Answer::Unknown, "not tested, because a host was lost")
        }
        Answer::Yes if !is_credible => (Answer::Unknown, "too fast to be true"),
        Answer::Yes if has_no_steady_state(document) => {
            (Answer::Unknown, "kept so far, without a steady state")
        }
        Answer::Yes => (Answer::Yes, "kept"),
        Answer::No if bound.is_out_of_reach(&one.trials) => {
            (Answer::Unknown, "not tested, because the load asked for less")
        }
        Answer::No if one.trials.iter().any(|trial| was_held_up(trial)) => {
            (Answer::Unknown, "missed, in a result that was disturbed")
        }
        Answer::No => (Answer::No, "not kept"),
        Answer::Unknown if estimate.half_width.is_none() => {
            (Answer::Unknown, "too short to decide")
        }
        Answer::Unknown => (Answer::Unknown, "too close to decide"),
    };
    let is_closed =
        |trial: &&Trial| trial.point.streams.iter().all(|stream| !stream.pacing.is_open());
    let more_may_keep_it = matches!(document.header.command, Command::Run | Command::Quick)
        && !bound.is_a_time()
        && one.trials.iter().all(is_closed);
    Promise { text: format!("{text}: {words}"), kept, more_may_keep_it }
}

/// Whether nothing can be learned from it. One that is void because it was faster than the rating is
/// not slower than it.
fn says_nothing(trial: &Trial) -> bool {
    let mut void = trial.findings.iter().filter(|one| one.severity == Severity::Void);
    trial.verdict == Verdict::Void && void.any(|one| one.code != "faster-than-rated")
}

fn was_held_up(trial: &Trial) -> bool {
    let suspect = trial.findings.iter().filter(|one| one.severity == Severity::Suspect);
    suspect.into_iter().any(|one| HELD_UP.contains(&one.code.as_str()))
}

fn has_no_steady_state(document: &Document) -> bool {
    matches!(document.found(), Some(Found::Sustain(found)) if found.steady_from.is_none())
}

impl Bound {
    fn is_a_time(self) -> bool {
        matches!(self.metric, Metric::Quantile(_))
    }

    /// The figure that shows whether it is kept: its own, or, where the result is too short for that, a
    /// lower percentile that is too long already.
    fn shown(self, trials: &[&Trial]) -> Option<(Metric, Estimate)> {
        let own = self.metric.of(trials).map(|own| (self.metric, own));
        match own {
            Some((_, Estimate { half_width: Some(_), .. })) => own,
            _ => self.metric.lower_above(trials, self.value).or(own),
        }
    }

    /// Whether a figure keeps it, at both ends of its interval. Without one nothing is known.
    fn holds(self, figure: Estimate) -> Answer {
        let Some(half) = figure.half_width else { return Answer::Unknown };
        let (low, high) = (figure.value - half, figure.value + half);
        let (surely, perhaps) = match self.is_a_time() {
            true => (high <= self.value, low <= self.value),
            false => (self.value <= low, self.value <= high),
        };
        match (surely, perhaps) {
            (true, _) => Answer::Yes,
            (false, true) => Answer::Unknown,
            (false, false) => Answer::No,
        }
    }

    /// Whether the load was an open loop that asked for less throughput than was promised.
    fn is_out_of_reach(self, trials: &[&Trial]) -> bool {
        let Some(trial) = trials.first() else { return false };
        let offered = |of: &dyn Fn(f64, f64) -> f64| -> Option<f64> {
            let streams = trial.point.streams.iter().map(|stream| {
                let rate = stream.pacing.offered_rate(Span(0), trial.window())?.0;
                let rate = rate * trial.machines() as f64;
                Some(of(rate, stream.block_sizes().largest().0 as f64))
            });
            streams.sum()
        };
        let offered = match self.metric {
            Metric::Iops => offered(&|rate, _| rate),
            Metric::Bandwidth => offered(&|rate, size| rate * size),
            Metric::Mean | Metric::Max | Metric::Quantile(_) => None,
        };
        offered.is_some_and(|offered| offered < self.value)
    }

    /// "58 % of the promised 500,000 IOPS", "p99 4.80 ms, promised 1.00 ms at most", "p50 12.4 ms, promised
    /// p99 of 1.00 ms at most"; `with` says with which load.
    fn beside(self, shown: Metric, value: f64, with: &str) -> String {
        match self.is_a_time() {
            true if shown != self.metric => {
                format!("{} {}{with}, {}", shown.name(), shown.text(value), self.alone())
            }
            true => format!(
                "{} {}{with}, promised {} at most",
                self.metric.name(),
                self.metric.text(value),
                self.metric.text(self.value)
            ),
            false => {
                format!("{} of the {}{with}", figures::percent(value / self.value), self.alone())
            }
        }
    }

    /// "promised 500,000 IOPS", "promised p99 of 1.00 ms at most".
    fn alone(self) -> String {
        let bound = self.metric.text(self.value);
        match self.metric {
            Metric::Iops => format!("promised {bound} IOPS"),
            Metric::Quantile(quantile) => format!("promised {quantile} of {bound} at most"),
            Metric::Bandwidth | Metric::Mean | Metric::Max => format!("promised {bound}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use fathom_core::Rate;
    use fathom_core::verdict::is_code;

    use super::*;
    use crate::document::{self, Finding};

    /// The portrait of the golden tests, whose target is promised these IOPS, with this finding about
    /// each step.
    fn told(iops: f64, code: &str, severity: Severity) -> Promise {
        let bytes = include_bytes!("../tests/data/quick.jsonl");
        let mut document = document::read(bytes).unwrap();
        for trial in &mut document.trials {
            trial.point.rated.iops = Some(Rate(iops));
            let (evidence, advice) = (String::new(), String::new());
            let code = code.to_owned();
            trial.findings = Vec::from([Finding { code, severity, evidence, advice }]);
        }
        promises(&document).remove(0)
    }

    #[test]
    fn the_steady_rounds_together_decide_what_is_sustained() {
        let bytes = include_bytes!("../tests/data/restless.jsonl");
        let mut document = document::read(bytes).unwrap();
        for trial in &mut document.trials {
            trial.point.rated.iops = Some(Rate(100.0));
        }
        // Of six rounds without a steady state the last one counts.
        let of_the_last = promises(&document).remove(0);
        assert_eq!(of_the_last.kept, Answer::Unknown);
        let found = document.conclusion.as_mut().and_then(|last| last.found.as_mut());
        let Some(Found::Sustain(found)) = found else { panic!("it is no sustained load") };
        let rounds: Vec<f64> = found.rounds.iter().map(|one| one.value.value).collect();
        found.steady_from = Some(2);
        let share = |of: &[f64]| {
            let mean = of.iter().sum::<f64>() / of.len() as f64;
            format!("{} of the promised 100 IOPS", figures::percent(mean / 100.0))
        };
        let so_far = format!("{}: kept so far, without a steady state", share(&rounds[5..]));
        assert_eq!(of_the_last.text, so_far);
        let steady = promises(&document).remove(0);
        assert_eq!(steady.kept, Answer::Yes);
        assert_eq!(steady.text, format!("{}: kept", share(&rounds[1..])));
        // A void round is left out where there are others.
        let of_the_second = |trial: &&mut Trial| trial.place.repeat == 1;
        let second = document.trials.iter_mut().filter(of_the_second);
        second.for_each(|trial| trial.verdict = Verdict::Void);
        assert_eq!(promises(&document)[0].text, format!("{}: kept", share(&rounds[2..])));
    }

    #[test]
    fn only_rounds_on_a_real_target_add_up() {
        let mut document = document::read(include_bytes!("../tests/data/quick.jsonl")).unwrap();
        let mut said = |backend| {
            for trial in &mut document.trials {
                (trial.point.rated.iops, trial.backend) = (Some(Rate(1.0)), backend);
            }
            advice(&document, &promises(&document)).concat()
        };
        let (real, simulated) = (said(BackendKind::Uring), said(BackendKind::Sim));
        assert!(real.contains(": `fathom sustain` with the same options tells "), "{real}");
        assert!(simulated.contains(": a longer --duration tells "), "{simulated}");
    }

    #[test]
    fn a_target_is_not_blamed_for_what_held_the_load_up() {
        assert!(HELD_UP.into_iter().all(is_code));
        let kept = |iops, code, severity| told(iops, code, severity).kept;
        for (code, severity, answer) in [
            ("foreign-io", Severity::Suspect, Answer::Unknown),
            ("foreign-io", Severity::Note, Answer::No),
            ("overload", Severity::Suspect, Answer::No),
        ] {
            assert_eq!(kept(1e9, code, severity), answer, "{code}");
        }
        assert!(told(1e9, "cpu-steal", Severity::Suspect).text.ends_with("that was disturbed"));
        // What was reached in spite of it was reached.
        assert_eq!(kept(1.0, "foreign-io", Severity::Suspect), Answer::Yes);
    }
}
