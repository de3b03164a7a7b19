//! Whether the load was the requested one, and whether it lasted long enough.

use std::collections::{BTreeMap, BTreeSet};

use super::case::{Case, counted, is_buffered, listed};
use super::{Judgement, Severity};
use crate::facts::{Layer, Target};
use crate::figures::{percent, significant, time};
use crate::measure::{Direction, Ledger, Upkeep, WorkerRecord};
use crate::spec::{Active, Loop, Rests, Stream};
use crate::stats::carries;
use crate::trial::Role;
use crate::units::{Quantile, Span, count};

/// An achieved load that is this much below the offered one is no longer the requested load.
const SHORTFALL_MAX: f64 = 0.03;
/// If more than this share of the offered I/Os still waits at the end, the backlog grows.
const UNSTARTED_MAX: f64 = 0.01;
/// How far the achieved depth may be below the requested one, or the requested one above the
/// admitted one.
const DEPTH_TOLERANCE: f64 = 0.05;
/// If the load began so late that in more than this share of the window no long I/O can have
/// completed, the short percentiles are too short.
const BEGINS_NOTE: f64 = 0.2;
/// From this share of the window on, all percentiles are too short.
const BEGINS_SUSPECT: f64 = 0.5;
/// A load that is complete for a shorter time has no meaningful depth.
const WHOLE_MIN: Span = Span::from_ms(1);
/// Whether more of the offered I/Os never started than chance explains: the backlog grows, and the
/// response times with it.
pub fn backlog_grows(unstarted: u64, offered: f64) -> bool {
    (UNSTARTED_MAX * offered).max(2.0 * offered.sqrt()) < unstarted as f64
}

/// An open loop whose target is slower than the offered load.
pub(super) fn overload(case: &Case, judgement: &mut Judgement) {
    let seconds = case.trial.record.window.as_secs_f64();
    for (index, stream) in case.streams().iter().enumerate() {
        let Some(offered) = stream.pacing.offered(Span(0), case.trial.record.window) else {
            continue;
        };
        // A stream that was done before the others offered no more I/Os.
        let was_done = stream.pacing.limit.is_some() && case.streams().len() > 1;
        if offered <= 0.0 || seconds <= 0.0 || was_done {
            continue;
        }
        let completed: u64 = case.workers(index).map(|worker| worker.ledger.completed).sum();
        // Flushes come with the writes, and are not part of the offered load.
        let flushes = case.upkeep(Upkeep::Flush, |worker| worker.stream as usize == index);
        let completed = completed.saturating_sub(flushes);
        let unstarted: u64 = case.workers(index).map(|worker| worker.ledger.unstarted).sum();
        let shortfall = 1.0 - completed as f64 / offered;
        // Random arrivals vary by chance: two standard deviations of a count.
        let chance = 2.0 / offered.sqrt();
        // One run in forty has fewer by chance than that. So at least the larger part of the
        // missing I/Os has to be left over or failed, which shows that the target did not carry
        // them.
        let left = case.workers(index).map(|worker| left_over(&worker.ledger)).sum::<u64>() as f64;
        let fell_short = shortfall > SHORTFALL_MAX.max(chance) && shortfall * offered <= 2.0 * left;
        if fell_short || backlog_grows(unstarted, offered) {
            let (severity, advice) = match case.trial.place.role {
                // This trial served to find the target's limit.
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
                    "The load{} offered {}/s, and {}/s were achieved ({} less); {} that were due \
                     never started.",
                    case.of_stream(stream),
                    significant(offered / seconds),
                    significant(completed as f64 / seconds),
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

/// A closed loop that did not keep as many I/Os in flight as it should, while its load was
/// complete: at the end of a limited load fewer and fewer are left.
pub(super) fn depth_not_reached(case: &Case, judgement: &mut Judgement) {
    for (index, stream) in case.streams().iter().enumerate() {
        let Loop::Closed { queue_depth, .. } = stream.pacing.pace else { continue };
        // The queue empties before each flush, and during a rest, as requested.
        if stream.flush.is_some()
            || stream.pacing.rests() != Rests::None
            || stream.pacing.active != Active::ALWAYS
        {
            continue;
        }
        let mut workers = case.workers(index).peekable();
        if workers.peek().is_none() || case.workers(index).any(|worker| worker.gave_up) {
            continue;
        }
        let whole = case.trial.record.whole(|worker| worker.stream as usize == index);
        let of_stream = case.of_stream(stream);
        // Results of versions that did not record it have no drain.
        let is_known = stream.pacing.limit.is_none() || whole.is_some();
        if !is_known || whole.is_some_and(|whole| whole < WHOLE_MIN) {
            judgement.cannot_ever(
                "depth-not-reached",
                format!("all that the load{of_stream} was to do was started at once, or it is not known when"),
            );
            continue;
        }
        let depth =
            |worker: &WorkerRecord| worker.whole.map_or(worker.queue_depth, |w| w.queue_depth);
        let achieved: f64 = workers.map(depth).sum();
        let asked = f64::from(queue_depth);
        if achieved < (1.0 - DEPTH_TOLERANCE) * asked {
            let when = match whole {
                Some(whole) => format!(" in the {whole} until the last ones were started"),
                None => String::new(),
            };
            judgement.find(
                "depth-not-reached",
                Severity::Suspect,
                format!(
                    "{} I/Os{of_stream} were in flight on average{when}, {} below the queue depth of \
                     {queue_depth}.",
                    significant(achieved),
                    percent(1.0 - achieved / asked),
                ),
                format!(
                    "The load generator or a submission that blocks holds the load back: use {}more \
                     workers or larger blocks.",
                    if is_buffered(stream) { "direct access, " } else { "" }
                ),
            );
        }
    }
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

/// A load that began too late before the end of the window for the times of its I/Os: only short ones
/// can have completed. By Little's law an I/O takes the I/Os in flight over those that complete in a
/// second, and until the load has run for that long no I/O can have taken longer than the load has run.
pub(super) fn window_too_short(case: &Case, judgement: &mut Judgement) {
    let (window, warm_up) = (case.trial.record.window, case.trial.point.warm_up);
    for (index, stream) in case.streams().iter().enumerate() {
        let of = |count: fn(&Ledger) -> u64| -> u64 {
            case.workers(index).map(|worker| count(&worker.ledger)).sum()
        };
        let (completed, left) = (of(|ledger| ledger.completed), of(|ledger| ledger.in_flight));
        // If no I/O is left at the end, none of them is missing, however long it took.
        if completed == 0 || left == 0 || window == Span(0) {
            continue;
        }
        let in_flight: f64 = case.workers(index).map(|worker| worker.queue_depth).sum();
        let takes = in_flight * window.0 as f64 / completed as f64;
        let begins = (takes - warm_up.0 as f64) / window.0 as f64;
        if begins <= BEGINS_NOTE {
            continue;
        }
        let severity = match case.trial.place.role {
            // A search tries settings beyond its answer, and looks at their throughput.
            Role::Probe => Severity::Note,
            _ if begins < BEGINS_SUSPECT => Severity::Note,
            _ => Severity::Suspect,
        };
        let seconds = |ns: f64| count((ns / 1e9).ceil() as u64);
        judgement.find(
            "window-too-short",
            severity,
            format!(
                "With {} I/Os{} in flight and {} completed in the window of {window}, an I/O takes \
                 {} on average by Little's law. But the load began only {} before the end of the \
                 window: I/Os that take longer are missing, {} were still in flight, and the recorded \
                 times are too short.",
                significant(in_flight),
                case.of_stream(stream),
                count(completed),
                time(takes),
                warm_up + window,
                count(left),
            ),
            format!(
                "Choose a warm-up of at least {} s (--warm-up), or a window of at least {} s.",
                seconds(takes),
                seconds(takes / BEGINS_NOTE)
            ),
        );
    }
}

/// The disks that several targets may share, and how many requests are sent to them at once.
struct Queued<'a> {
    disks: Vec<&'a Layer>,
    requests: f64,
}

/// More I/Os in flight than the disks or their queues accept: the rest waits in the kernel.
pub(super) fn queue_too_deep(case: &Case, judgement: &mut Judgement) {
    let mut groups: BTreeMap<BTreeSet<&str>, Queued> = BTreeMap::new();
    for (place, target) in case.used() {
        let narrowest = narrowest(target);
        let names: BTreeSet<&str> = narrowest.iter().map(|layer| layer.name.as_str()).collect();
        let group =
            groups.entry(names).or_insert_with(|| Queued { disks: narrowest, requests: 0.0 });
        for (index, stream) in case.streams().iter().enumerate() {
            group.requests +=
                depth_at(case, index, stream, place) * requests_for_one(&group.disks, stream);
        }
    }
    let mut known = false;
    for group in groups.values() {
        let Some((whose, limit)) = admitted(&group.disks) else { continue };
        known = true;
        if group.requests > limit as f64 * (1.0 + DEPTH_TOLERANCE) {
            judgement.find(
                "queue-too-deep",
                Severity::Suspect,
                format!(
                    "{} requests were kept in flight where {whose} of {} admits {limit}: the rest \
                     waited in the kernel, and its wait counts as service time.",
                    significant(group.requests),
                    listed(group.disks.iter().map(|disk| disk.name.as_str())),
                ),
                "Lower the queue depth or the block size to the device's limit.",
            );
        }
    }
    if !known {
        judgement.cannot("queue-too-deep", "no disk below tells how many commands it admits");
    }
}

/// The place with the smallest limit on requests of a target: its disks together, or one layer
/// above them that everything passes through, such as a loop device.
fn narrowest(target: &Target) -> Vec<&Layer> {
    let mut narrowest: Vec<&Layer> = target.disks().collect();
    let mut layer = target.layers.first();
    for _ in &target.layers {
        let Some((one, &[member])) = layer.map(|one| (one, one.members.as_slice())) else { break };
        let admits = |layers: &[&Layer]| admitted(layers).map(|(_, limit)| limit);
        if let Some(own) = admits(&[one])
            && admits(&narrowest).is_none_or(|limit| own < limit)
        {
            narrowest = Vec::from([one]);
        }
        layer = target.layers.get(member);
    }
    narrowest
}

/// How many requests parallel layers accept together, and the limit that decides this; none if no
/// layer reports one.
fn admitted(layers: &[&Layer]) -> Option<(&'static str, u64)> {
    let limits = [
        ("the device", device_depth as fn(&Layer) -> Option<u64>),
        ("the request queue", queued_requests),
    ];
    let told = limits.iter().filter_map(|(whose, limit)| {
        let sum: Option<u64> = layers.iter().map(|layer| limit(layer)).sum();
        sum.filter(|sum| *sum > 0).map(|sum| (*whose, sum))
    });
    told.min_by_key(|(_, limit)| *limit)
}

/// The I/Os that a stream keeps in flight at a target: the queue depth of a closed loop, the
/// achieved depth of an open one.
fn depth_at(case: &Case, index: usize, stream: &Stream, target: u32) -> f64 {
    let depth = match stream.pacing.pace {
        Loop::Closed { queue_depth, .. } => f64::from(queue_depth),
        Loop::Open { .. } => case.workers(index).map(|worker| worker.queue_depth).sum(),
    };
    let here = stream.regions.iter().filter(|region| region.target == target).count();
    depth * here as f64 / stream.regions.len().max(1) as f64
}

/// How many requests the kernel makes of one I/O, on average.
fn requests_for_one(disks: &[&Layer], stream: &Stream) -> f64 {
    let largest = disks
        .iter()
        .filter_map(|disk| disk.queue.as_ref()?.max_request)
        .map(|request| request.0)
        .filter(|request| *request > 0)
        .min();
    let Some(largest) = largest else { return 1.0 };
    let block_sizes = stream.block_sizes();
    let mean = |direction| -> f64 {
        let sizes = block_sizes.of(direction).iter();
        sizes.map(|one| one.size.0.div_ceil(largest).max(1) as f64 * one.share).sum()
    };
    mean(Direction::Read) * stream.read_share()
        + mean(Direction::Write) * (1.0 - stream.read_share())
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
    use crate::facts::Queue;
    use crate::measure::Whole;
    use crate::spec::Pacing;
    use crate::units::Span;

    #[test]
    fn an_overloaded_target_is_suspect() {
        // 1000/s over 60 s, of which 97.5 % and then 95 % were achieved.
        let mut invented = Invented::open_reads(1000.0);
        invented.worker().ledger.completed = 58_500;
        invented.has_none_of(&["overload"]);
        invented.worker().ledger.completed = 57_000;
        invented.worker().ledger.unstarted = 3000;
        let finding = invented.has("overload", Severity::Suspect);
        assert_eq!(
            finding.evidence,
            "The load offered 1,000/s, and 950/s were achieved (5 % less); 3,000 I/Os that were \
             due never started."
        );
        // A search needs overloaded trials to find its answer.
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
        // 60 were expected and 50 came: within two standard deviations.
        let mut invented = Invented::open_reads(1.0);
        invented.worker().ledger.completed = 50;
        invented.has_none_of(&["overload"]);
        // Only 40 came by a rare chance, and all of them were carried.
        invented.worker().ledger.completed = 40;
        invented.has_none_of(&["overload"]);
        invented.worker().ledger.in_flight = 12;
        invented.has("overload", Severity::Suspect);
    }

    #[test]
    fn a_depth_below_the_one_asked_is_suspect() {
        let mut invented = Invented::reads();
        invented.stream().pacing = Pacing::closed(4);
        invented.worker().queue_depth = 3.81;
        invented.has_none_of(&["depth-not-reached"]);
        invented.worker().queue_depth = 3.79;
        let finding = invented.has("depth-not-reached", Severity::Suspect);
        assert!(finding.evidence.contains("3.79 I/Os were in flight"), "{}", finding.evidence);
        // A worker that gave up has its own finding. An open loop asks for no depth.
        invented.worker().gave_up = true;
        invented.has_none_of(&["depth-not-reached"]);
        let mut open = Invented::open_reads(1000.0);
        open.worker().queue_depth = 0.1;
        open.has_none_of(&["depth-not-reached"]);
    }

    #[test]
    fn a_limited_load_is_judged_while_it_is_whole() {
        let mut invented = Invented::reads();
        invented.stream().pacing = Pacing::closed(256);
        invented.stream().pacing.limit = Some(crate::spec::Limit::Ios(1000));
        // In such results the time at which the last I/O started is unknown.
        invented.worker().queue_depth = 42.7;
        invented.has_none_of(&["depth-not-reached"]);
        invented.is_unchecked("depth-not-reached");
        let whole = |queue_depth| {
            Some(Whole { length: Span::from_secs(2), queue_depth, ..Whole::default() })
        };
        invented.worker().whole = whole(255.9);
        invented.has_none_of(&["depth-not-reached"]);
        invented.worker().whole = whole(42.7);
        let finding = invented.has("depth-not-reached", Severity::Suspect);
        assert_eq!(
            finding.evidence,
            "42.7 I/Os were in flight on average in the 2 s until the last ones were started, 83 % \
             below the queue depth of 256."
        );
        invented.worker().whole = Some(Whole::default());
        invented.is_unchecked("depth-not-reached");
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
    fn a_window_that_is_short_for_its_times_misses_the_long_ones() {
        // 256 in flight and 65 a second take 3.94 s. In one second only those that took less complete.
        let mut invented = Invented::reads();
        invented.stream().pacing = Pacing::closed(256);
        invented.worker().queue_depth = 256.0;
        invented.set_times(65, 500_000_000);
        invented.set_series([65]);
        invented.trial.record.window = Span::from_secs(1);
        invented.trial.point.warm_up = Span(0);
        let ledger = &mut invented.worker().ledger;
        (ledger.completed, ledger.in_flight, ledger.due) = (65, 256, 65 + 256);
        let finding = invented.has("window-too-short", Severity::Suspect);
        assert_eq!(
            finding.evidence,
            "With 256 I/Os in flight and 65 completed in the window of 1 s, an I/O takes 3.94 s on \
             average by Little's law. But the load began only 1 s before the end of the window: I/Os \
             that take longer are missing, 256 were still in flight, and the recorded times are too \
             short."
        );
        assert_eq!(
            finding.advice,
            "Choose a warm-up of at least 4 s (--warm-up), or a window of at least 20 s."
        );
        // A search goes beyond its answer.
        invented.trial.place.role = Role::Probe;
        invented.has("window-too-short", Severity::Note);
        invented.trial.place.role = Role::Result;
        // Load that began before the window leaves no I/O out: those of the warm-up complete in it.
        for (ms, severity) in
            [(3400, Some(Severity::Suspect)), (3500, Some(Severity::Note)), (3800, None)]
        {
            invented.trial.point.warm_up = Span::from_ms(ms);
            match severity {
                Some(severity) => drop(invented.has("window-too-short", severity)),
                None => invented.has_none_of(&["window-too-short"]),
            }
        }
        // A load that ran to its end leaves none out either.
        invented.trial.point.warm_up = Span(0);
        invented.worker().ledger.in_flight = 0;
        invented.has_none_of(&["window-too-short"]);
    }

    #[test]
    fn a_queue_deeper_than_the_device_s_is_suspect() {
        let mut invented = Invented::reads();
        invented.disk().disk.as_mut().unwrap().device_queue_depth = Some(32);
        invented.stream().pacing = Pacing::closed(33);
        invented.worker().queue_depth = 33.0;
        invented.has_none_of(&["queue-too-deep"]);
        invented.stream().pacing = Pacing::closed(64);
        invented.worker().queue_depth = 64.0;
        let finding = invented.has("queue-too-deep", Severity::Suspect);
        assert!(finding.evidence.contains("the device of vda admits 32"), "{}", finding.evidence);
        // The request queue: 256 requests in one hardware queue.
        invented.disk().disk.as_mut().unwrap().device_queue_depth = None;
        invented.has_none_of(&["queue-too-deep"]);
        invented.stream().pacing = Pacing::closed(300);
        invented.worker().queue_depth = 300.0;
        invented.has("queue-too-deep", Severity::Suspect);
        invented.disk().queue = None;
        invented.has_none_of(&["queue-too-deep"]);
        invented.is_unchecked("queue-too-deep");
    }

    #[test]
    fn a_layer_above_the_disks_may_be_the_narrowest() {
        let mut invented = Invented::reads();
        invented.stream().pacing = Pacing::closed(64);
        invented.worker().queue_depth = 64.0;
        invented.has_none_of(&["queue-too-deep"]);
        // A loop device that takes 4 requests, above the disk with 256. Everything passes the loop
        // device.
        let disk = invented.disk().clone();
        let queue = disk.queue.clone().map(|queue| Queue { nr_requests: Some(4), ..queue });
        invented.target().layers[0] =
            Layer { name: "loop0".to_owned(), queue, disk: None, members: Vec::from([1]), ..disk };
        let finding = invented.has("queue-too-deep", Severity::Suspect);
        assert!(finding.evidence.contains("queue of loop0 admits 4"), "{}", finding.evidence);
        // It has no queue of its own, like a layer that only passes I/Os on.
        invented.target().layers[0].queue = None;
        invented.has_none_of(&["queue-too-deep"]);
    }

    #[test]
    fn large_blocks_are_several_requests() {
        let mut invented = Invented::reads();
        invented.stream().pacing = Pacing::closed(32);
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
