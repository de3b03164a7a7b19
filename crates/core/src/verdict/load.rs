//! Whether the load was what was asked, and whether it lasted long enough and stayed the same.

use std::collections::{BTreeMap, BTreeSet};

use super::case::{Case, counted, figure, listed, percent};
use super::{Judgement, Severity};
use crate::experiment::Role;
use crate::facts::Layer;
use crate::measure::{Direction, Ledger, Upkeep};
use crate::spec::{Active, Pacing, Rests, Stream};
use crate::stats::{
    EXCURSION_MAX, MSER_MIN, RANGE_MAX, ROUNDS, Slice, WarmUp, carries, iops_series, linear_trend,
    mean, mser5, rounds, slices, steady_state,
};
use crate::units::{Quantile, Span, count};

/// An achieved load this much below the offered one is no longer the one that was asked.
const SHORTFALL_MAX: f64 = 0.03;
/// More than this share of the offered I/Os still waiting at the end: the backlog grows.
const UNSTARTED_MAX: f64 = 0.01;
/// How far the achieved depth may be below the asked one, or the asked one above the admitted one.
const DEPTH_TOLERANCE: f64 = 0.05;
/// The range of five independent values of variance 1 stays below this in 99.9 % of cases (the
/// studentized range's table, five groups). A map asks this of hundreds of cells: what one in
/// twenty has by chance would stand under every map.
const CHANCE_RANGE: f64 = 5.484;
/// The same for the excursion of their best-fit line: 3.291 x 4 / sqrt(10).
const CHANCE_EXCURSION: f64 = 4.163;
/// Fewer I/Os in a fifth of the window tell nothing about its rate: their counts are not even spread
/// as the limits above take them to be.
const FEW: f64 = 10.0;

/// A beginning that differs from the rest by less than this share of it does not matter, ...
const BEGINNING_MAX: f64 = 0.05;
/// ... and neither does one within this many half-widths: the place of the cut was chosen, of many,
/// where the two differ most, so it takes more than the one that suffices for a place that was given.
const BEGINNING_CHANCE: f64 = 2.0;
/// From this share of the window on the result is that of the warm-up as much as of the rest.
const BEGINNING_SHARE_MAX: f64 = 0.2;
/// ... and differs by more than this share: what a trend may be before it is no steady state.
const BEGINNING_GRAVE: f64 = 0.1;

/// An open loop whose target is slower than the offered load.
pub(super) fn overload(case: &Case, judgement: &mut Judgement) {
    let seconds = case.trial.record.window.as_secs_f64();
    for (index, stream) in case.streams().iter().enumerate() {
        let Some(offered) = stream.offered(Span(0), case.trial.record.window) else { continue };
        // A stream that was done before the others offered nothing more.
        let was_done = stream.limit.is_some() && case.streams().len() > 1;
        if offered <= 0.0 || seconds <= 0.0 || was_done {
            continue;
        }
        let completed: u64 = case.workers(index).map(|worker| worker.ledger.completed).sum();
        // Flushes come with the writes, and are not what was offered.
        let flushes = case.upkeep(Upkeep::Flush, |worker| worker.stream as usize == index);
        let completed = completed.saturating_sub(flushes);
        let unstarted: u64 = case.workers(index).map(|worker| worker.ledger.unstarted).sum();
        let shortfall = 1.0 - completed as f64 / offered;
        // Random arrivals are as many as chance will have: two standard deviations of a count.
        let chance = 2.0 / offered.sqrt();
        // And one run in forty has fewer by chance than that: what the target did not carry was left
        // over, or failed, at least for the better part.
        let left = case.workers(index).map(|worker| left_over(&worker.ledger)).sum::<u64>() as f64;
        let fell_short = shortfall > SHORTFALL_MAX.max(chance) && shortfall * offered <= 2.0 * left;
        let backlog = unstarted as f64 > (UNSTARTED_MAX * offered).max(2.0 * offered.sqrt());
        if fell_short || backlog {
            let (severity, advice) = match case.trial.place.role {
                // How it found where the target's limit is.
                Role::Probe => (
                    Severity::Note,
                    "A search for the highest load has to go beyond it: its answer is below this.",
                ),
                _ => (
                    Severity::Suspect,
                    "The response times grow with the length of the run: offer less, or raise the \
                     queue depth if the target can do more.",
                ),
            };
            judgement.find(
                "overload",
                severity,
                format!(
                    "Offered{} were {}/s and achieved {}/s ({} less); {} that were due never started.",
                    case.of_stream(stream),
                    figure(offered / seconds),
                    figure(completed as f64 / seconds),
                    percent(shortfall.max(0.0)),
                    counted(unstarted, "I/O"),
                ),
                advice,
            );
        }
    }
}

/// The I/Os that were due and did not complete.
fn left_over(ledger: &Ledger) -> u64 {
    ledger.unstarted + ledger.in_flight + ledger.lost + ledger.failed
}

/// A closed loop that did not keep as many I/Os in flight as it should.
pub(super) fn depth_not_reached(case: &Case, judgement: &mut Judgement) {
    for (index, stream) in case.streams().iter().enumerate() {
        let Pacing::Closed { queue_depth } = stream.pacing else { continue };
        // The queue empties before each flush, and in a rest, as was asked.
        if stream.flush.is_some() || stream.rests != Rests::None || !stream.is_always_active() {
            continue;
        }
        let mut workers = case.workers(index).peekable();
        if workers.peek().is_none() || case.workers(index).any(|worker| worker.gave_up) {
            continue;
        }
        let achieved: f64 = workers.map(|worker| worker.queue_depth).sum();
        let asked = f64::from(queue_depth);
        if achieved < (1.0 - DEPTH_TOLERANCE) * asked {
            judgement.find(
                "depth-not-reached",
                Severity::Suspect,
                format!(
                    "{} I/Os{} were in flight on average, {} below the queue depth of {queue_depth}.",
                    figure(achieved),
                    case.of_stream(stream),
                    percent(1.0 - achieved / asked),
                ),
                "The load generator or a submission that blocks holds the load back: use direct \
                 access, more workers or larger blocks.",
            );
        }
    }
}

/// The steady-state rule over five equal parts of the window, by IOPS.
pub(super) fn not_steady(case: &Case, judgement: &mut Judgement) {
    let record = &case.trial.record;
    for (index, stream) in case.streams().iter().enumerate() {
        let own = record.series.iter().filter(|interval| interval.stream as usize == index);
        let slices = slices(own);
        let series = iops_series(&slices, None);
        if changes_by_itself(case, stream, "not-steady", judgement) {
            continue;
        }
        let Some(state) = rounds(&series).as_ref().and_then(|rounds| steady_state(rounds)) else {
            judgement.cannot(
                "not-steady",
                format!(
                    "the window{} has {}, and a steady state shows in no less than {ROUNDS}",
                    case.of_stream(stream),
                    counted(slices.len() as u64, "interval"),
                ),
            );
            continue;
        };
        let seconds: f64 = slices.iter().map(|slice| slice.length.as_secs_f64()).sum();
        let round_seconds = seconds / ROUNDS as f64;
        if state.mean <= 0.0 || round_seconds <= 0.0 {
            continue;
        }
        let each = state.mean * round_seconds;
        if each < FEW {
            too_few(case, stream, (each * ROUNDS as f64).round() as u64, judgement);
            continue;
        }
        // Few I/Os differ from round to round by chance alone, as a count's root does.
        let chance = (state.mean / round_seconds).sqrt();
        let ranges = state.range > (RANGE_MAX * state.mean).max(CHANCE_RANGE * chance);
        let drifts = state.excursion > (EXCURSION_MAX * state.mean).max(CHANCE_EXCURSION * chance);
        let trend = linear_trend(&series).filter(|trend| drifts && trend.is_significant());
        let of_stream = case.of_stream(stream);
        if let Some(trend) = trend {
            judgement.find(
                "trend",
                Severity::Suspect,
                format!(
                    "IOPS{of_stream} {} from {} to {} over the window: {} of the mean, and more than \
                     {} is no steady state.",
                    if trend.slope < 0.0 { "fell" } else { "rose" },
                    figure(trend.first.max(0.0)),
                    figure(trend.last.max(0.0)),
                    percent(state.excursion / state.mean),
                    percent(EXCURSION_MAX),
                ),
                "Warm up longer, precondition the target, or let it rest if it is throttled or out of \
                 burst credit; then measure longer.",
            );
        } else if ranges || drifts {
            judgement.find(
                "not-steady",
                Severity::Suspect,
                format!(
                    "IOPS{of_stream} over {ROUNDS} parts of the window differ by {} of their mean {} \
                     (at most {}), and their line drifts by {} (at most {}).",
                    percent(state.range / state.mean),
                    figure(state.mean),
                    percent(RANGE_MAX),
                    percent(state.excursion / state.mean),
                    percent(EXCURSION_MAX),
                ),
                "Measure longer, warm up longer, and see whether somebody else uses the device.",
            );
        }
    }
}

/// So few I/Os do not tell whether their rate was steady.
fn too_few(case: &Case, stream: &Stream, ios: u64, judgement: &mut Judgement) {
    judgement.cannot(
        "not-steady",
        format!(
            "{}{} completed in the window, which is too few for its parts to be compared",
            counted(ios, "I/O"),
            case.of_stream(stream),
        ),
    );
}

/// A first part of the window that still belongs to the warm-up, by MSER-5 over IOPS.
pub(super) fn warm_up_too_short(case: &Case, judgement: &mut Judgement) {
    let record = &case.trial.record;
    for (index, stream) in case.streams().iter().enumerate() {
        let own = record.series.iter().filter(|interval| interval.stream as usize == index);
        let slices = slices(own);
        let series = iops_series(&slices, None);
        let of_stream = case.of_stream(stream);
        if changes_by_itself(case, stream, "warm-up-too-short", judgement) {
            continue;
        }
        let Some(warm_up) = mser5(&series) else {
            judgement.cannot(
                "warm-up-too-short",
                format!(
                    "the window{of_stream} has {}, and a warm-up shows in no less than {MSER_MIN}",
                    counted(slices.len() as u64, "interval"),
                ),
            );
            continue;
        };
        let Some((beginning, rest)) = beginning(&series, warm_up) else { continue };
        let seconds = |slices: &[Slice]| slices.iter().map(|s| s.length.as_secs_f64()).sum::<f64>();
        let (lasted, window) = (seconds(&slices[..warm_up.truncate]), seconds(&slices));
        let is_long = !warm_up.settled || lasted > BEGINNING_SHARE_MAX * window;
        let grave = is_long && (beginning - rest).abs() > BEGINNING_GRAVE * rest;
        let settled = match warm_up.settled {
            true => "settled only then",
            false => "had not settled even then",
        };
        judgement.find(
            "warm-up-too-short",
            if grave { Severity::Suspect } else { Severity::Note },
            format!(
                "IOPS{of_stream} were {} in the first {} s of the {} s and {} after them, and \
                 {settled} (MSER-5).",
                figure(beginning),
                figure(lasted),
                figure(window),
                figure(rest),
            ),
            match warm_up.settled {
                true => format!("Warm up for at least {} s more.", lasted.ceil()),
                false => "Warm up longer, or measure longer if the target changes for ever.".into(),
            },
        );
    }
}

/// Whether a stream's load changes over time because that is what was asked for: then what its IOPS
/// did says nothing about the target.
fn changes_by_itself(
    case: &Case,
    stream: &Stream,
    code: &'static str,
    judgement: &mut Judgement,
) -> bool {
    let was_done = stream.limit.is_some() && case.streams().len() > 1;
    let changes = stream.course.is_some() || stream.active != Active::ALWAYS || was_done;
    if changes {
        let of_stream = case.of_stream(stream);
        judgement.cannot(code, format!("the load{of_stream} changes over time as asked"));
    }
    changes
}

/// What the part that MSER-5 leaves out and the rest come to, where they really differ.
fn beginning(series: &[f64], warm_up: WarmUp) -> Option<(f64, f64)> {
    let (left_out, kept) = series.split_at(warm_up.truncate);
    let (beginning, rest) = (mean(left_out)?.value, mean(kept)?);
    let ratio = kept.len() as f64 / left_out.len() as f64;
    // Of the beginning's own mean, which rests on fewer intervals, and of the rest's.
    let chance = rest.half_width? * (1.0 + ratio).sqrt() * BEGINNING_CHANCE;
    let differs = (beginning - rest.value).abs() > (BEGINNING_MAX * rest.value).max(chance);
    differs.then_some((beginning, rest.value))
}

/// A window too short for its tails.
pub(super) fn few_samples(case: &Case, judgement: &mut Judgement) {
    let p99 = Quantile(0.99);
    for direction in Direction::BOTH {
        let flow = case.trial.record.total(Some(direction));
        if flow.ios() == 0 || !case.does(direction) || carries(&flow.service_time, p99) {
            continue;
        }
        judgement.find(
            "few-samples",
            Severity::Note,
            format!(
                "Only {} completed, and a p99 needs 1,000: it is withheld, and so is all beyond it.",
                counted(flow.ios(), direction.name())
            ),
            format!(
                "Choose a window of at least {} s for a p99.",
                count((case.trial.record.window.as_secs_f64() * 1000.0 / flow.ios() as f64).ceil() as u64)
            ),
        );
    }
}

/// The disks that several targets may share, and how many requests are sent to them at once.
struct Queued<'a> {
    disks: Vec<&'a Layer>,
    requests: f64,
}

/// More I/Os in flight than the disks or their queues admit: the rest waits in the kernel.
pub(super) fn queue_too_deep(case: &Case, judgement: &mut Judgement) {
    let mut groups: BTreeMap<BTreeSet<&str>, Queued> = BTreeMap::new();
    for (place, target) in case.used() {
        let names: BTreeSet<&str> = target.disks().map(|disk| disk.name.as_str()).collect();
        let group = groups
            .entry(names)
            .or_insert_with(|| Queued { disks: target.disks().collect(), requests: 0.0 });
        for (index, stream) in case.streams().iter().enumerate() {
            group.requests +=
                depth_at(case, index, stream, place) * requests_for_one(&group.disks, stream);
        }
    }
    let mut known = false;
    for group in groups.values() {
        let limits = [
            ("the device", device_depth as fn(&Layer) -> Option<u64>),
            ("the request queue", queued_requests),
        ];
        let told = limits.iter().filter_map(|(whose, limit)| {
            // An array takes what its disks take together.
            let sum: Option<u64> = group.disks.iter().map(|disk| limit(disk)).sum();
            sum.filter(|sum| *sum > 0).map(|sum| (*whose, sum))
        });
        let Some((whose, limit)) = told.min_by_key(|(_, limit)| *limit) else { continue };
        known = true;
        if group.requests > limit as f64 * (1.0 + DEPTH_TOLERANCE) {
            judgement.find(
                "queue-too-deep",
                Severity::Suspect,
                format!(
                    "{} requests were kept in flight where {whose} of {} admits {limit}: the rest \
                     waited in the kernel, and its wait counts as service time.",
                    figure(group.requests),
                    listed(group.disks.iter().map(|disk| disk.name.as_str())),
                ),
                "Lower the queue depth or the block size to what the device admits.",
            );
        }
    }
    if !known {
        judgement.cannot("queue-too-deep", "no disk below tells how many commands it admits");
    }
}

/// The I/Os that a stream keeps in flight at a target: what a closed loop asks for, what an open one
/// came to.
fn depth_at(case: &Case, index: usize, stream: &Stream, target: u32) -> f64 {
    let depth = match stream.pacing {
        Pacing::Closed { queue_depth } => f64::from(queue_depth),
        Pacing::Open { .. } => case.workers(index).map(|worker| worker.queue_depth).sum(),
    };
    let here = stream.regions.iter().filter(|region| region.target == target).count();
    depth * here as f64 / stream.regions.len().max(1) as f64
}

/// How many requests the kernel makes of one I/O, in the mean.
fn requests_for_one(disks: &[&Layer], stream: &Stream) -> f64 {
    let largest = disks
        .iter()
        .filter_map(|disk| disk.queue.as_ref()?.max_request)
        .map(|request| request.0)
        .filter(|request| *request > 0)
        .min();
    let Some(largest) = largest else { return 1.0 };
    let mean = |direction| -> f64 {
        let sizes = stream.block_sizes.of(direction).iter();
        sizes.map(|one| one.size.0.div_ceil(largest).max(1) as f64 * one.share).sum()
    };
    mean(Direction::Read) * stream.read_share + mean(Direction::Write) * (1.0 - stream.read_share)
}

fn device_depth(disk: &Layer) -> Option<u64> {
    Some(u64::from(disk.disk.as_ref()?.device_queue_depth?))
}

fn queued_requests(disk: &Layer) -> Option<u64> {
    let queue = disk.queue.as_ref()?;
    Some(u64::from(queue.nr_requests?) * u64::from(queue.hardware_queues?))
}

#[cfg(test)]
mod tests {
    use super::super::testing::Invented;
    use super::*;
    use crate::stats::testing::Chance;
    use crate::units::Span;

    #[test]
    fn an_overloaded_target_is_suspect() {
        // 1000/s over 60 s, of which 97.5 % or 95 % were achieved.
        let mut invented = Invented::open_reads(1000.0);
        invented.worker().ledger.completed = 58_500;
        invented.has_none_of(&["overload"]);
        invented.worker().ledger.completed = 57_000;
        invented.worker().ledger.unstarted = 3000;
        let finding = invented.has("overload", Severity::Suspect);
        assert_eq!(
            finding.evidence,
            "Offered were 1,000/s and achieved 950/s (5 % less); 3,000 I/Os that were due never \
             started."
        );
        // A search finds its answer by that.
        invented.trial.place.role = Role::Probe;
        invented.has("overload", Severity::Note);
    }

    #[test]
    fn a_backlog_that_grows_is_an_overload_before_the_rate_shows_it() {
        let mut invented = Invented::open_reads(1000.0);
        invented.worker().ledger.unstarted = 590;
        invented.has_none_of(&["overload"]);
        invented.worker().ledger.unstarted = 610;
        invented.has("overload", Severity::Suspect);
    }

    #[test]
    fn few_random_arrivals_are_no_overload() {
        // 60 expected, 50 came: within two standard deviations.
        let mut invented = Invented::open_reads(1.0);
        invented.worker().ledger.completed = 50;
        invented.has_none_of(&["overload"]);
        // 40 came by a rare chance, and were all carried.
        invented.worker().ledger.completed = 40;
        invented.has_none_of(&["overload"]);
        invented.worker().ledger.in_flight = 12;
        invented.has("overload", Severity::Suspect);
    }

    #[test]
    fn a_depth_below_the_one_asked_is_suspect() {
        let mut invented = Invented::reads();
        invented.stream().pacing = Pacing::Closed { queue_depth: 4 };
        invented.worker().queue_depth = 3.81;
        invented.has_none_of(&["depth-not-reached"]);
        invented.worker().queue_depth = 3.79;
        let finding = invented.has("depth-not-reached", Severity::Suspect);
        assert!(finding.evidence.contains("3.79 I/Os were in flight"), "{}", finding.evidence);
        // A worker that gave up has its own finding, and an open loop asks for no depth.
        invented.worker().gave_up = true;
        invented.has_none_of(&["depth-not-reached"]);
        let mut open = Invented::open_reads(1000.0);
        open.worker().queue_depth = 0.1;
        open.has_none_of(&["depth-not-reached"]);
    }

    #[test]
    fn a_drift_is_a_trend_and_a_jump_is_not_steady() {
        let mut invented = Invented::reads();
        // 9 % over the five rounds, then 14 %.
        invented.set_series((0..60).map(|k| 10_000 + k * 18));
        invented.has_none_of(&["trend", "not-steady"]);
        invented.set_series((0..60).map(|k| 10_000 - k * 30));
        let finding = invented.has("trend", Severity::Suspect);
        assert!(
            finding.evidence.starts_with("IOPS fell from 10,000 to 8,230"),
            "{}",
            finding.evidence
        );
        invented.has_none_of(&["not-steady"]);
        // A dip in the third of five rounds: no slope, but a range of 19 % or of 25 %.
        let dip = |depth: u64| (0..60).map(move |k| if k / 12 == 2 { depth } else { 10_000 });
        invented.set_series(dip(8200));
        invented.has_none_of(&["trend", "not-steady"]);
        invented.set_series(dip(7600));
        invented.has("not-steady", Severity::Suspect);
        invented.has_none_of(&["trend"]);
    }

    #[test]
    fn chance_alone_is_not_unsteady() {
        // 5 I/Os a second: rounds of 60 that differ by 30 % are what chance gives.
        let mut invented = Invented::reads();
        invented.set_series((0..60).map(|k| if k / 12 == 2 { 4 } else { 5 }));
        invented.has_none_of(&["trend", "not-steady"]);
        invented.set_series((0..60).map(|k| if k / 12 == 2 { 1 } else { 5 }));
        invented.has("not-steady", Severity::Suspect);
        // None in the first fifth and twenty in the last are no rise, if there are 40 in all.
        invented.set_series((0..60).map(|k| u64::from(k % 12 < k / 12 * 4)));
        invented.has_none_of(&["trend", "not-steady"]);
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
            invented.set_series(wiggly(&mut ramp(30, from)));
            let finding = invented.has("warm-up-too-short", Severity::Suspect);
            assert!(finding.evidence.contains("in the first 30.0 s of the 100 s"));
        }
        // One that differs by 7 % is worth knowing, however long it is, and one by 3 % is none.
        invented.set_series(wiggly(&mut ramp(30, 9200)));
        invented.has("warm-up-too-short", Severity::Note);
        invented.set_series(wiggly(&mut ramp(30, 9700)));
        invented.has_none_of(&["warm-up-too-short"]);
        // One that takes more than half.
        invented.set_series(wiggly(&mut (0..100u64).map(|k| 100_000 / (1 + k / 10))));
        let finding = invented.has("warm-up-too-short", Severity::Suspect);
        assert!(finding.evidence.contains("had not settled even then"), "{}", finding.evidence);
    }

    #[test]
    fn noise_is_no_warm_up() {
        let found = |correlation: f64, length: usize| {
            let runs = 2000;
            let innovation = (1.0 - correlation * correlation).sqrt();
            let found = (0..runs).filter(|&seed| {
                let mut chance = Chance(seed * 7919 + 3);
                let mut state = chance.normal();
                let mut next = || {
                    state = correlation * state + innovation * chance.normal();
                    1000.0 + 150.0 * state
                };
                let series: Vec<f64> = (0..length).map(|_| next()).collect();
                mser5(&series).and_then(|warm_up| beginning(&series, warm_up)).is_some()
            });
            found.count() as f64 / runs as f64
        };
        for length in [20, 60, 100, 300] {
            let independent = found(0.0, length);
            assert!(independent < 0.01, "{independent} of {length}");
            let correlated = found(0.5, length);
            assert!(correlated < 0.03, "{correlated} of {length}");
        }
    }

    #[test]
    fn four_intervals_say_nothing_about_a_steady_state() {
        let mut invented = Invented::reads();
        invented.set_series([10, 20, 30, 40]);
        invented.has_none_of(&["trend", "not-steady"]);
        invented.is_unchecked("not-steady");
        invented.is_unchecked("warm-up-too-short");
        invented.set_series([10, 20, 30, 40, 50]);
        assert!(invented.judge().unchecked.iter().all(|one| one.code != "not-steady"));
        invented.set_series([1000; 20]);
        assert!(invented.judge().unchecked.is_empty());
    }

    #[test]
    fn a_thousand_ios_carry_a_p99() {
        let mut invented = Invented::reads();
        invented.set_times(1000, 100_000);
        invented.has_none_of(&["few-samples"]);
        invented.set_times(900, 100_000);
        let finding = invented.has("few-samples", Severity::Note);
        assert_eq!(finding.advice, "Choose a window of at least 67 s for a p99.");
    }

    #[test]
    fn a_queue_deeper_than_the_device_s_is_suspect() {
        let mut invented = Invented::reads();
        invented.disk().disk.as_mut().unwrap().device_queue_depth = Some(32);
        invented.stream().pacing = Pacing::Closed { queue_depth: 33 };
        invented.worker().queue_depth = 33.0;
        invented.has_none_of(&["queue-too-deep"]);
        invented.stream().pacing = Pacing::Closed { queue_depth: 64 };
        invented.worker().queue_depth = 64.0;
        let finding = invented.has("queue-too-deep", Severity::Suspect);
        assert!(finding.evidence.contains("the device of vda admits 32"), "{}", finding.evidence);
        // The request queue: 256 requests in one hardware queue.
        invented.disk().disk.as_mut().unwrap().device_queue_depth = None;
        invented.has_none_of(&["queue-too-deep"]);
        invented.stream().pacing = Pacing::Closed { queue_depth: 300 };
        invented.worker().queue_depth = 300.0;
        invented.has("queue-too-deep", Severity::Suspect);
        invented.disk().queue = None;
        invented.has_none_of(&["queue-too-deep"]);
        invented.is_unchecked("queue-too-deep");
    }

    #[test]
    fn large_blocks_are_several_requests() {
        let mut invented = Invented::reads();
        invented.stream().pacing = Pacing::Closed { queue_depth: 32 };
        invented.worker().queue_depth = 32.0;
        invented.set_block_size(1 << 20);
        invented.has_none_of(&["queue-too-deep"]);
        // 32 I/Os of eight requests are 256; of sixteen they are 512.
        invented.disk().queue.as_mut().unwrap().max_request = Some(crate::Bytes(128 << 10));
        invented.has_none_of(&["queue-too-deep"]);
        invented.disk().queue.as_mut().unwrap().max_request = Some(crate::Bytes(64 << 10));
        invented.has("queue-too-deep", Severity::Suspect);
    }

    #[test]
    fn an_interrupted_window_is_judged_by_its_real_length() {
        let mut invented = Invented::open_reads(1000.0);
        invented.trial.record.window = Span::from_secs(6);
        invented.worker().ledger.completed = 6000;
        invented.has_none_of(&["overload"]);
    }
}
