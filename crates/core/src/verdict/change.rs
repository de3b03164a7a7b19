//! Whether the target stayed the same over the window: stalls, steps, a warm-up that reaches into
//! it, a drift. Each change is reported by one of these findings only.

use super::case::{Case, counted};
use super::level::{at, stalls, steps};
use super::{Judgement, Severity};
use crate::figures::{percent, significant};
use crate::spec::{Active, Rests, Stream};
use crate::stats::{
    Changes, EXCURSION_MAX, MSER_MIN, Noise, RANGE_MAX, ROUNDS, Slice, SteadyState, WarmUp,
    iops_series, linear_trend, mean, mser5, rounds, steady_state,
};
use crate::units::Span;

/// The range of five independent values of variance 1 stays below this in 99.9 % of cases (the
/// studentized range's table, five groups). A map makes this check in hundreds of cells: a limit
/// that one in twenty exceeds by chance would flag every map.
const CHANCE_RANGE: f64 = 5.484;
/// The same for the excursion of their best-fit line, in its standard errors.
const CHANCE_EXCURSION: f64 = 3.291;
/// With fewer I/Os than this in a fifth of the window its rate is not known: the counts do not have
/// the spread that the limits above assume.
const FEW: f64 = 10.0;
/// Fewer intervals than this cannot have two levels.
const STEPS_MIN: usize = 6;

/// A beginning that differs from the rest by less than this share of it does not matter.
const BEGINNING_MAX: f64 = 0.05;
/// A beginning within this many half-widths of the rest does not matter, either. The cut was chosen
/// at the place, of many, where the two differ most, so it takes more than the one half-width that
/// suffices for a given place.
const BEGINNING_CHANCE: f64 = 2.0;
/// A beginning within this many standard errors of the assumed noise does not matter, either.
const BEGINNING_ERRORS: f64 = 3.5;
/// A beginning is long if it takes more than this share of the window: the result then reflects the
/// warm-up as much as the rest.
const BEGINNING_SHARE_MAX: f64 = 0.2;
/// A long beginning is grave if it differs from the rest by more than this share: the drift that a
/// steady state may have.
const BEGINNING_GRAVE: f64 = 0.1;

/// The changes over the window, by stream.
pub(super) fn changes(case: &Case, judgement: &mut Judgement) {
    let record = &case.trial.record;
    for (index, stream) in case.streams().iter().enumerate() {
        if changes_by_itself(case, stream, judgement) {
            continue;
        }
        // Changes after the last start of a limited load belong to its drain.
        let whole = record.whole(|worker| worker.stream as usize == index);
        let own = record.series.iter().filter(|interval| {
            let end = interval.start + interval.length;
            interval.stream as usize == index && whole.is_none_or(|whole| end <= whole)
        });
        let flow = record.sum(None, |worker, _| worker.stream as usize == index);
        let mut changes = Changes::of(own, flow.response_time(), stream.pacing.is_open());
        if stream.pacing.rests() != Rests::None && changes.stalls.to_the_end {
            // It may have been a rest.
            changes = Changes { stalls: Default::default(), ..changes };
        }
        let of_stream = case.of_stream(stream);
        stalls(&changes.stalls, &of_stream, record.window, judgement);
        between_stalls(case, stream, &changes, judgement);
    }
}

/// Changes besides stalls: the first of these that explains them.
fn between_stalls(case: &Case, stream: &Stream, changes: &Changes, judgement: &mut Judgement) {
    let of_stream = case.of_stream(stream);
    let slices = &changes.kept;
    if slices.len() < STEPS_MIN {
        judgement.cannot_ever("level-change", too_short(&of_stream, slices, "a step", STEPS_MIN));
    }
    let noise = changes.noise();
    let warm_up = mser5(&iops_series(slices, None));
    if warm_up.is_none() {
        let why = too_short(&of_stream, slices, "a warm-up", MSER_MIN);
        judgement.cannot_ever("warm-up-too-short", why);
    }
    let beginning = warm_up.and_then(|warm_up| Beginning::of(slices, warm_up, noise));
    let short = changes.levels.first().is_some_and(|first| {
        let window = slices.last().map_or(Span(0), |last| last.start + last.length);
        first.end.0 as f64 <= BEGINNING_SHARE_MAX * window.0 as f64
    });
    let whole = match Steadiness::of(slices, noise) {
        Ok(steadiness) => steadiness,
        Err(ios) => {
            too_few(case, stream, slices, ios, judgement);
            Steadiness::UNKNOWN
        }
    };
    match beginning {
        // A short beginning with its own level is a warm-up that should have been longer.
        Some(beginning) if short && changes.levels.len() == 2 && !changes.is_credit() => {
            beginning.tell(&of_stream, judgement);
        }
        _ if steps(changes, &of_stream, judgement) => {}
        Some(beginning) if beginning.explains(slices, noise) => {
            beginning.tell(&of_stream, judgement);
        }
        _ if whole.drifts_steadily => whole.tell_trend(slices, &of_stream, judgement),
        _ if whole.is_unsteady => whole.tell_unsteady(slices, &of_stream, judgement),
        Some(beginning) => beginning.tell(&of_stream, judgement),
        None => {}
    }
}

fn too_short(of_stream: &str, slices: &[Slice], what: &str, least: usize) -> String {
    let intervals = counted(slices.len() as u64, "interval");
    format!("the window{of_stream} has {intervals}, and {what} shows in no less than {least}")
}

/// Why the steady state cannot be checked: too few intervals, or too few I/Os.
fn too_few(case: &Case, stream: &Stream, slices: &[Slice], ios: u64, judgement: &mut Judgement) {
    let of_stream = case.of_stream(stream);
    let why = match slices.len() < ROUNDS {
        true => too_short(&of_stream, slices, "a steady state", ROUNDS),
        false => format!(
            "{}{of_stream} completed in the window, which is too few for its parts to be compared",
            counted(ios, "I/O"),
        ),
    };
    judgement.cannot_ever("not-steady", why);
}

/// The result of the steady-state rule for the IOPS over five equal parts of the window.
struct Steadiness {
    rounds: [f64; ROUNDS],
    state: SteadyState,
    slope: f64,
    /// The line drifts by more than a steady state allows, and by more than noise explains.
    drifts_steadily: bool,
    /// The parts differ by more than a steady state allows, and by more than noise explains.
    is_unsteady: bool,
}

impl Steadiness {
    const UNKNOWN: Self = Self {
        rounds: [0.0; ROUNDS],
        state: SteadyState { mean: 0.0, range: 0.0, excursion: 0.0 },
        slope: 0.0,
        drifts_steadily: false,
        is_unsteady: false,
    };

    /// If there are too few, the number of I/Os.
    fn of(slices: &[Slice], noise: Noise) -> Result<Self, u64> {
        let series = iops_series(slices, None);
        let seconds: f64 = slices.iter().map(|slice| slice.length.as_secs_f64()).sum();
        let ios = || slices.iter().map(|slice| slice.ios[0] + slice.ios[1]).sum();
        let rounds = rounds(&series).ok_or_else(ios)?;
        let state = steady_state(&rounds).ok_or_else(ios)?;
        let trend = linear_trend(&series).ok_or_else(ios)?;
        if state.mean <= 0.0 || seconds <= 0.0 {
            return Ok(Self { rounds, state, ..Self::UNKNOWN });
        }
        if state.mean * seconds / (ROUNDS as f64) < FEW {
            return Err(ios());
        }
        let range = CHANCE_RANGE * noise.of_round(seconds);
        let excursion = CHANCE_EXCURSION * noise.of_excursion(seconds);
        let ranges = state.range > RANGE_MAX.max(range) * state.mean;
        let drifts = state.excursion > EXCURSION_MAX.max(excursion) * state.mean;
        let slope = trend.slope;
        Ok(Self { rounds, state, slope, drifts_steadily: drifts, is_unsteady: ranges || drifts })
    }

    /// The beginning and the end of a fifth.
    fn times(slices: &[Slice], round: usize) -> String {
        let edge = |k: usize| k * slices.len() / ROUNDS;
        let (first, last) = (slices[edge(round)], slices[edge(round + 1) - 1]);
        format!("from {} to {}", at(first.start), at(last.start + last.length))
    }

    fn tell_trend(&self, slices: &[Slice], of_stream: &str, judgement: &mut Judgement) {
        let last = ROUNDS - 1;
        judgement.find(
            "trend",
            Severity::Suspect,
            format!(
                "IOPS{of_stream} {}, without a step: {} {} of the window, {} {}; the drift over \
                 the window is {} of the mean, and more than {} is no steady state.",
                if self.slope < 0.0 { "fell" } else { "rose" },
                significant(self.rounds[0]),
                Self::times(slices, 0),
                significant(self.rounds[last]),
                Self::times(slices, last),
                percent(self.state.excursion / self.state.mean),
                percent(EXCURSION_MAX),
            ),
            "Warm up longer, precondition the target, or let it rest if it is throttled; then measure \
             longer.",
        );
    }

    fn tell_unsteady(&self, slices: &[Slice], of_stream: &str, judgement: &mut Judgement) {
        let place = |better: fn(f64, f64) -> bool| {
            (1..ROUNDS).fold(0, |best, k| match better(self.rounds[k], self.rounds[best]) {
                true => k,
                false => best,
            })
        };
        let (low, high) = (place(|a, b| a < b), place(|a, b| a > b));
        judgement.find(
            "not-steady",
            Severity::Suspect,
            format!(
                "IOPS{of_stream} over {ROUNDS} parts of the window were between {} ({}) and {} ({}): \
                 they differ by {} of their mean (at most {} is steady).",
                significant(self.rounds[low]),
                Self::times(slices, low),
                significant(self.rounds[high]),
                Self::times(slices, high),
                percent(self.state.range / self.state.mean),
                percent(RANGE_MAX),
            ),
            "Measure longer, warm up longer, and see whether another program uses the device.",
        );
    }
}

/// A first part of the window that differs from the rest, by MSER-5 over IOPS.
struct Beginning {
    warm_up: WarmUp,
    before: f64,
    after: f64,
    lasted: f64,
    window: f64,
}

impl Beginning {
    /// The means of the part that MSER-5 leaves out and of the rest, if they really differ.
    fn of(slices: &[Slice], warm_up: WarmUp, noise: Noise) -> Option<Self> {
        let series = iops_series(slices, None);
        let (before, after) = beginning(&series, warm_up)?;
        let seconds = |slices: &[Slice]| slices.iter().map(|s| s.length.as_secs_f64()).sum::<f64>();
        let (lasted, window) = (seconds(&slices[..warm_up.truncate]), seconds(slices));
        let chance = BEGINNING_ERRORS * noise.of_difference(lasted, window - lasted);
        let differs = (before - after).abs() > chance * after;
        differs.then_some(Self { warm_up, before, after, lasted, window })
    }

    /// Whether the rest is steady, so that the beginning explains everything.
    fn explains(&self, slices: &[Slice], noise: Noise) -> bool {
        let rest = Steadiness::of(&slices[self.warm_up.truncate..], noise);
        self.warm_up.settled && rest.is_ok_and(|rest| !rest.is_unsteady)
    }

    fn tell(&self, of_stream: &str, judgement: &mut Judgement) {
        let settled = self.warm_up.settled;
        let is_long = !settled || self.lasted > BEGINNING_SHARE_MAX * self.window;
        let grave = is_long && (self.before - self.after).abs() > BEGINNING_GRAVE * self.after;
        judgement.find(
            "warm-up-too-short",
            if grave { Severity::Suspect } else { Severity::Note },
            format!(
                "IOPS{of_stream} were {} in the first {} s of the {} s and {} after them, and \
                 {} (MSER-5).",
                significant(self.before),
                significant(self.lasted),
                significant(self.window),
                significant(self.after),
                if settled { "settled only then" } else { "had not settled even then" },
            ),
            match settled {
                true => format!("Warm up for at least {} s more.", self.lasted.ceil()),
                false => "Warm up longer, or measure longer if the target keeps changing.".into(),
            },
        );
    }
}

/// Whether a stream's load changes over time because the user asked for it: then its IOPS say
/// nothing about the target.
fn changes_by_itself(case: &Case, stream: &Stream, judgement: &mut Judgement) -> bool {
    let was_done = stream.pacing.limit.is_some() && case.streams().len() > 1;
    let changes =
        stream.pacing.course().is_some() || stream.pacing.active != Active::ALWAYS || was_done;
    if changes {
        let of_stream = case.of_stream(stream);
        for code in ["not-steady", "level-change", "stall", "warm-up-too-short"] {
            judgement.cannot_ever(code, format!("the load{of_stream} changes over time as asked"));
        }
    }
    changes
}

/// The means of the part that MSER-5 leaves out and of the rest, if they really differ.
fn beginning(series: &[f64], warm_up: WarmUp) -> Option<(f64, f64)> {
    let (left_out, kept) = series.split_at(warm_up.truncate);
    let (beginning, rest) = (mean(left_out)?.value, mean(kept)?);
    let ratio = kept.len() as f64 / left_out.len() as f64;
    // The errors of the beginning's own mean, which rests on fewer intervals, and of the rest's
    // mean.
    let chance = rest.half_width? * (1.0 + ratio).sqrt() * BEGINNING_CHANCE;
    let differs = (beginning - rest.value).abs() > (BEGINNING_MAX * rest.value).max(chance);
    differs.then_some((beginning, rest.value))
}

#[cfg(test)]
mod tests {
    use super::super::testing::Invented;
    use super::*;
    use crate::SplitMix64;
    use crate::measure::{Interval, Times};
    use crate::spec::Pacing;
    use crate::units::Bytes;

    const OF_CHANGE: [&str; 7] = [
        "credit-exhausted",
        "level-change",
        "not-steady",
        "periodic-stalls",
        "stall",
        "trend",
        "warm-up-too-short",
    ];

    /// The codes of the changes.
    fn codes(invented: &Invented) -> Vec<&'static str> {
        let codes = invented.codes().into_iter();
        codes.filter(|code| OF_CHANGE.contains(code)).collect()
    }

    fn found(series: impl IntoIterator<Item = u64>) -> Vec<&'static str> {
        let mut invented = Invented::reads();
        invented.set_series(series);
        codes(&invented)
    }

    #[test]
    fn a_drift_is_a_trend_with_the_levels_of_its_ends() {
        let mut invented = Invented::reads();
        // First 9 % over the five rounds, then 14 %.
        assert_eq!(found((0..60).map(|k| 10_000 + k * 18)), [""; 0]);
        invented.set_series((0..60).map(|k| 10_000 - k * 30));
        let finding = invented.has("trend", Severity::Suspect);
        assert_eq!(
            finding.evidence,
            "IOPS fell, without a step: 9,835 from 0.00 s to 12.0 s of the window, 8,395 from 48.0 s \
             to 60.0 s; the drift over the window is 16 % of the mean, and more than 10 % is no steady \
             state."
        );
        assert_eq!(codes(&invented), ["trend"]);
    }

    #[test]
    fn a_step_is_told_once_with_its_levels_and_times() {
        let step = |at: u64, before: u64, after: u64| {
            (0..60).map(move |k| if k < at { before } else { after } + k * 7919 % 30)
        };
        let mut invented = Invented::reads();
        invented.set_series(step(25, 3000, 2400));
        let finding = invented.has("level-change", Severity::Suspect);
        assert_eq!(
            finding.evidence,
            "IOPS were 3,017 until 25.0 s of the window and 2,413 from there on; the lowest level is \
             20 % below the highest."
        );
        assert_eq!(codes(&invented), ["level-change"]);
        invented.set_series(step(25, 3000, 500));
        let finding = invented.has("credit-exhausted", Severity::Suspect);
        assert_eq!(
            finding.evidence,
            "IOPS were 3,017 until 25.0 s of the window and 513 from there to its end, 83 % less."
        );
        assert_eq!(codes(&invented), ["credit-exhausted"]);
        // A step early or late, and a step upward: one step never causes five doubts.
        for (at, before, after) in [(5, 3000, 500), (50, 3000, 900)] {
            assert_eq!(found(step(at, before, after)), ["credit-exhausted"]);
        }
        assert_eq!(found(step(25, 500, 3000)), ["level-change"]);
        // A dip, and a load that rises and falls all the time.
        assert_eq!(
            found((0..60).map(|k| if k / 12 == 2 { 7600 } else { 10_000 })),
            ["level-change"]
        );
        assert_eq!(found((0..60).map(|k| if k / 12 == 2 { 9500 } else { 10_000 })), [""; 0]);
        invented.set_series((0..60).map(|k| if k / 10 % 2 == 0 { 2000 } else { 1000 }));
        let finding = invented.has("level-change", Severity::Suspect);
        assert!(finding.evidence.contains("changed their level 5 times"), "{}", finding.evidence);
    }

    #[test]
    fn what_wanders_is_not_steady() {
        // A wave: no step, and no drift from one end to the other.
        let wave =
            |k: u64| 10_000.0 * (1.0 + 0.4 * (k as f64 / 60.0 * std::f64::consts::TAU).cos());
        let mut invented = Invented::reads();
        invented.set_series((0..60).map(|k| wave(k) as u64));
        let finding = invented.has("not-steady", Severity::Suspect);
        assert!(finding.evidence.contains("from 24.0 s to 36.0 s"), "{}", finding.evidence);
        assert_eq!(codes(&invented), ["not-steady"]);
    }

    #[test]
    fn chance_alone_is_not_unsteady() {
        // At 5 I/Os per second, chance makes rounds of 60 differ by 30 %.
        assert_eq!(found((0..60).map(|k| if k / 12 == 2 { 4 } else { 5 })), [""; 0]);
        assert_eq!(found((0..60).map(|k| if k / 12 == 2 { 1 } else { 5 })).len(), 1);
        // Zero I/Os in the first fifth and twenty in the last are no rise, with 40 in all.
        assert_eq!(found((0..60).map(|k| u64::from(k % 12 < k / 12 * 4))), [""; 0]);
    }

    #[test]
    fn a_beginning_that_is_slower_or_faster_is_a_warm_up() {
        let ramp = |end: u64, from: u64| (0..100).map(move |k| if k < end { from } else { 10_000 });
        let wiggly = |series: &mut dyn Iterator<Item = u64>| -> Vec<u64> {
            series.enumerate().map(|(k, ios)| ios + k as u64 * 7919 % 300).collect()
        };
        let mut invented = Invented::reads();
        for from in [7000, 13_000] {
            invented.set_series(wiggly(&mut ramp(10, from)));
            let finding = invented.has("warm-up-too-short", Severity::Note);
            assert_eq!(finding.advice, "Warm up for at least 10 s more.");
            assert_eq!(codes(&invented), ["warm-up-too-short"]);
            // A third of the window is a separate level.
            assert_eq!(found(wiggly(&mut ramp(30, from))), ["level-change"]);
        }
        // A ramp that differs by 8 % deserves a note, however long it is. One that differs by 3 %
        // does not.
        invented.set_series(wiggly(&mut ramp(30, 9200)));
        invented.has("warm-up-too-short", Severity::Note);
        assert_eq!(found(wiggly(&mut ramp(30, 9700))), [""; 0]);
        // A rate that falls gradually and then stays.
        let settles = |k: u64| 10_000 + (30_000.0 * (-(k as f64) / 4.0).exp()) as u64;
        invented.set_series(wiggly(&mut (0..100).map(settles)));
        let finding = invented.has("warm-up-too-short", Severity::Suspect);
        assert!(finding.evidence.contains("settled only then"), "{}", finding.evidence);
        assert_eq!(codes(&invented), ["warm-up-too-short"]);
    }

    /// The number of windows, of `runs` with noise of this kind, in which a change is found.
    fn false_alarms(
        runs: u64,
        length_ms: u64,
        values: impl Fn(&mut SplitMix64) -> Vec<f64>,
    ) -> u64 {
        let mut invented = Invented::reads();
        let one = |seed: u64| {
            let values = values(&mut SplitMix64(seed * 7919 + 3));
            let series = values.iter().enumerate().map(|(k, value)| Interval {
                start: Span::from_ms(k as u64 * length_ms),
                length: Span::from_ms(length_ms),
                ios: [(value * length_ms as f64 / 1000.0).round() as u64, 0],
                ..Interval::default()
            });
            invented.trial.record.series = series.collect();
            invented.trial.record.window = Span::from_ms(values.len() as u64 * length_ms);
            // A note makes no trial suspect.
            let findings = invented.judge().findings.into_iter();
            let suspect = findings.filter(|finding| finding.severity > Severity::Note);
            u64::from(suspect.filter(|finding| OF_CHANGE.contains(&finding.code)).count() > 0)
        };
        (0..runs).map(one).sum()
    }

    #[test]
    fn noise_is_no_change() {
        const RUNS: u64 = 150;
        let windows =
            [(100, 20), (100, 50), (100, 100), (100, 300), (100, 590), (1000, 60), (1000, 600)];
        for (length_ms, count) in windows {
            for (correlation, deviation) in
                [(0.0, 0.03), (0.0, 0.1), (0.5, 0.05), (0.5, 0.1), (0.8, 0.03), (0.8, 0.1)]
            {
                let innovation = (1.0f64 - correlation * correlation).sqrt();
                let found = false_alarms(RUNS, length_ms, |chance| {
                    let mut state = chance.normal();
                    let mut next = || {
                        state = correlation * state + innovation * chance.normal();
                        50_000.0 * (1.0 + deviation * state)
                    };
                    (0..count).map(|_| next()).collect()
                });
                let what = format!("{count} of {length_ms} ms, {correlation}, {deviation}");
                assert!(found * 50 <= RUNS, "{what}: {found} of {RUNS}");
            }
        }
        // A device whose speed differs from second to second, with ten intervals per second.
        for seconds in [2, 5, 10, 30] {
            let found = false_alarms(RUNS, 100, |chance| {
                let each: Vec<f64> =
                    (0..seconds).map(|_| 50_000.0 * (1.0 + 0.1 * chance.normal())).collect();
                (0..seconds * 10).map(|k| each[k / 10]).collect()
            });
            assert!(found * 50 <= RUNS, "{seconds} s: {found} of {RUNS}");
        }
    }

    /// A clean trial of 10 s at 1000 I/Os per second. Some intervals have the given longest time.
    fn with_times(invented: &mut Invented, longest: impl Fn(u64) -> Option<u64>) {
        let interval = |k: u64| {
            let held = longest(k).unwrap_or(0);
            let sum = 100 * 900_000 + u128::from(held) * u128::from(held) / 2_000_000;
            Interval {
                start: Span::from_ms(k * 100),
                length: Span::from_ms(100),
                ios: [100, 0],
                bytes: [Bytes(409_600), Bytes(0)],
                times: [Times { min: 900_000, max: held.max(900_000), sum }, Times::default()],
                ..Interval::default()
            }
        };
        invented.trial.record.series = (0..100).map(interval).collect();
        invented.trial.record.window = Span::from_secs(10);
    }

    #[test]
    fn stalls_of_an_open_loop_have_their_codes() {
        let mut invented = Invented::open_reads(1000.0);
        assert!(invented.stream().pacing.is_open());
        with_times(&mut invented, |k| (k == 43).then_some(90_000_000));
        let finding = invented.has("stall", Severity::Suspect);
        assert_eq!(
            finding.evidence,
            "Nothing completed for 90 ms from about 4.26 s of the window on, 0.9 % of it."
        );
        assert_eq!(codes(&invented), ["stall"]);
        with_times(&mut invented, |k| (k % 10 == 3).then_some(90_000_000));
        let finding = invented.has("periodic-stalls", Severity::Suspect);
        assert!(finding.evidence.contains("each 1 s"), "{}", finding.evidence);
        assert_eq!(codes(&invented), ["periodic-stalls"]);
    }

    #[test]
    fn a_slower_target_shows_in_the_times_of_an_open_loop() {
        let mut invented = Invented::open_reads(1000.0);
        with_times(&mut invented, |_| None);
        assert_eq!(codes(&invented), [""; 0]);
        for one in &mut invented.trial.record.series[40..] {
            one.times[0].sum *= 5;
        }
        let finding = invented.has("level-change", Severity::Suspect);
        assert!(
            finding
                .evidence
                .starts_with("Mean response times were 900 us until 4.00 s of the window"),
            "{}",
            finding.evidence
        );
        assert_eq!(codes(&invented), ["level-change"]);
    }

    #[test]
    fn four_intervals_say_nothing_about_a_steady_state() {
        let mut invented = Invented::reads();
        invented.set_series([10, 20, 30, 40]);
        assert_eq!(codes(&invented), [""; 0]);
        for code in ["not-steady", "warm-up-too-short", "level-change"] {
            invented.is_unchecked(code);
        }
        invented.set_series([10, 20, 30, 40, 50]);
        assert!(invented.judge().unchecked.iter().all(|one| one.code != "not-steady"));
        invented.set_series([1000; 20]);
        assert!(invented.judge().unchecked.is_empty());
        invented.stream().pacing = Pacing::closed(1);
        invented.stream().pacing.active =
            Active { start: Some(Span::from_secs(1)), ..Active::ALWAYS };
        for code in ["not-steady", "warm-up-too-short", "level-change", "stall"] {
            invented.is_unchecked(code);
        }
    }
}
