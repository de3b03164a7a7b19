//! Whether a limit that somebody has set was measured, rather than the capability of the storage.

use super::case::Case;
use super::{Judgement, Severity};
use crate::facts::{IoLimit, IoLimitKind, TargetKind};
use crate::figures::{percent, significant};
use crate::measure::{Direction, Interval, WorkerRecord};
use crate::spec::{Loop, Rests, Stream};
use crate::units::{Bytes, Span};

/// The achieved rate is this close to a limit, or closer: the limit governs. The kernel lets I/Os
/// through in slices, and a window begins and ends in the middle of one.
const GOVERNS_WITHIN: f64 = 0.1;

/// A rate whose parts differ from their median by no more than this is set by a clock, not by a
/// device.
const CONSTANT_WITHIN: f64 = 0.001;
/// The least number of parts of the window that are compared.
const PARTS_MIN: usize = 8;
/// The least number of I/Os in each part, so that one I/O more or less is no more than the
/// difference to detect.
const PART_IOS_MIN: u64 = 1000;
/// The parts are also compared with that many I/Os for each I/O in flight, up to this depth: a
/// limit may let all waiting I/Os pass at once.
const TOGETHER_MAX: f64 = 64.0;
/// This share of the parts has to be constant: a part that a stall emptied, and one that made up
/// for it, do not rule out a limit.
const CONSTANT_PARTS_MIN: f64 = 0.8;
/// The mean time is the depth over the rate within this: the target sets the pace, not the
/// generator.
const LITTLE_WITHIN: f64 = 0.05;
/// The target also sets the pace if no worker ran, or waited for a CPU, for more than this share of
/// the window. I/Os that were not in flight were then delayed in the call that starts them, as FUSE
/// does from 13 I/Os on.
const IDLE_MAX: f64 = 0.5;
/// At least this share of the depth has to be in flight then. With far less in flight the cause is
/// not a limit.
const HELD_UP_MIN: f64 = 0.3;

/// Limits that control groups of this process set on devices below the targets, and, if none of
/// them governs, a rate that is too constant for a device.
pub(super) fn limits(case: &Case, judgement: &mut Judgement) {
    let governed = cgroup_limits(case, judgement);
    if !governed {
        rate_limited(case, judgement);
    }
}

/// The same before the trial, when only the limits are known.
pub(super) fn foreseen(case: &Case, judgement: &mut Judgement) {
    cgroup_limits(case, judgement);
}

/// The limits of control groups; true if one of them governs.
fn cgroup_limits(case: &Case, judgement: &mut Judgement) -> bool {
    let mut limits: Vec<&IoLimit> = Vec::new();
    for limit in case.used().flat_map(|(_, target)| &target.limits) {
        if !limits.contains(&limit) {
            limits.push(limit);
        }
    }
    let concerns = |limit: &&IoLimit| match direction(limit.kind) {
        Some(direction) => case.does(direction),
        None => true,
    };
    let governs = |limit: &IoLimit| {
        let achieved = achieved(case, limit)?;
        let share = achieved / limit.value.max(1) as f64;
        ((1.0 - GOVERNS_WITHIN)..=(1.0 + GOVERNS_WITHIN)).contains(&share).then_some(achieved)
    };
    let mut others = Vec::new();
    let mut governed = false;
    for limit in limits.into_iter().filter(concerns) {
        match governs(limit) {
            Some(achieved) => {
                governed = true;
                found_limit(judgement, limit, achieved);
            }
            None => others.push(in_words(limit)),
        }
    }
    if !others.is_empty() {
        judgement.find(
            "cgroup-limit",
            Severity::Note,
            format!("A control group of fathom's allows it {}.", others.join(", and ")),
            "It did not decide this result, as far as can be seen; start fathom in another group to be \
             sure.",
        );
    }
    governed
}

fn found_limit(judgement: &mut Judgement, limit: &IoLimit, achieved: f64) {
    judgement.find(
        "cgroup-limit",
        Severity::Suspect,
        format!(
            "A control group of fathom's allows it {}, and {} were achieved: {} of the limit.",
            in_words(limit),
            amount(limit.kind, achieved),
            percent(achieved / limit.value.max(1) as f64)
        ),
        "The limit was measured, not the device: lift it in that file, or start fathom in another group.",
    );
}

/// A limit in words: "10 MiB/s of reads at sda (/sys/fs/cgroup/blkio/a/...)".
fn in_words(limit: &IoLimit) -> String {
    let value = limit.value as f64;
    let what = match limit.kind {
        IoLimitKind::ReadBandwidth => format!("{} of reads", amount(limit.kind, value)),
        IoLimitKind::WriteBandwidth => format!("{} of writes", amount(limit.kind, value)),
        IoLimitKind::ReadIops | IoLimitKind::WriteIops => amount(limit.kind, value),
        IoLimitKind::TargetTime => format!("a target response time of {} us", limit.value),
        IoLimitKind::Weight => format!("a weight of {}", limit.value),
    };
    format!("{what} at {} ({})", limit.device, limit.file)
}

fn amount(kind: IoLimitKind, value: f64) -> String {
    match kind {
        IoLimitKind::ReadBandwidth | IoLimitKind::WriteBandwidth => {
            format!("{}/s", Bytes(value as u64))
        }
        IoLimitKind::ReadIops => format!("{} reads/s", significant(value)),
        IoLimitKind::WriteIops => format!("{} writes/s", significant(value)),
        IoLimitKind::TargetTime | IoLimitKind::Weight => significant(value),
    }
}

fn direction(kind: IoLimitKind) -> Option<Direction> {
    match kind {
        IoLimitKind::ReadBandwidth | IoLimitKind::ReadIops => Some(Direction::Read),
        IoLimitKind::WriteBandwidth | IoLimitKind::WriteIops => Some(Direction::Write),
        IoLimitKind::TargetTime | IoLimitKind::Weight => None,
    }
}

/// The achieved share of a limit, per second; none if it cannot be told. The kernel's count at the
/// device, or the requests to the targets above it if that is more: not every device counts, and
/// the limit counts an I/O before the block layer merges it with its neighbor.
fn achieved(case: &Case, limit: &IoLimit) -> Option<f64> {
    let direction = direction(limit.kind)?;
    let seconds = case.trial.record.window.as_secs_f64();
    let counts_bytes =
        matches!(limit.kind, IoLimitKind::ReadBandwidth | IoLimitKind::WriteBandwidth);
    let counted = case.trial.counters.as_ref().and_then(|counters| {
        let device = counters.devices.iter().find(|device| device.name == limit.device)?;
        Some(match (direction, counts_bytes) {
            (Direction::Read, true) => device.read_bytes.0,
            (Direction::Read, false) => device.reads,
            (Direction::Write, true) => device.written_bytes.0,
            (Direction::Write, false) => device.writes,
        })
    });
    let asked = case.is_direct().then(|| {
        let above = case.used().filter(|(_, target)| {
            // Each disk of an array carries a part of the requests.
            let layers = &target.layers;
            layers.iter().any(|layer| layer.name == limit.device)
                && layers.iter().all(|layer| layer.members.len() <= 1)
        });
        let of = |place| match counts_bytes {
            true => case.bytes(place, direction),
            false => case.ios(place, direction),
        };
        above.map(|(place, _)| of(place)).sum::<u64>()
    });
    let most = counted.max(asked)?;
    (0.0 < seconds).then(|| most as f64 / seconds)
}

/// A quantity that is counted in each interval.
type Quantity = fn(&Interval) -> u64;

/// A rate that is as constant as only a clock makes it.
fn rate_limited(case: &Case, judgement: &mut Judgement) {
    let is_memory = |kind| matches!(kind, TargetKind::CharacterDevice | TargetKind::Simulated);
    if case.used().any(|(_, target)| is_memory(target.kind)) {
        return;
    }
    let steady = |stream: &Stream| {
        stream.flush.is_none()
            && stream.pacing.rests() == Rests::None
            && stream.pacing.is_always_active()
    };
    let closed = |stream: &Stream| match stream.pacing.pace {
        Loop::Closed { queue_depth, .. } if steady(stream) => Some(f64::from(queue_depth)),
        _ => None,
    };
    let depth: Option<f64> = case.streams().iter().map(closed).sum();
    let Some(depth) = depth.filter(|depth| 0.0 < *depth) else { return };
    let record = &case.trial.record;
    let seconds = record.window.as_secs_f64();
    let total = record.total(None);
    if seconds <= 0.0 || total.ios() == 0 {
        return;
    }
    let in_flight = total.service_time.sum() as f64 / 1e9 / seconds;
    let is_whole = (in_flight / depth - 1.0).abs() <= LITTLE_WITHIN;
    // A single I/O is in flight during that call.
    let may_be = 1.0 < depth && HELD_UP_MIN <= in_flight / depth;
    let is_held_up = may_be && workers_idle(case, seconds);
    if !is_whole && !is_held_up {
        return;
    }
    let quantities: [(&str, Quantity); 3] = [
        ("I/Os", |interval| interval.ios[0] + interval.ios[1]),
        ("reads", |interval| interval.ios[0]),
        ("writes", |interval| interval.ios[1]),
    ];
    let Some((what, rate, parts)) = quantities
        .into_iter()
        .flat_map(|quantity| [1.0, depth.min(TOGETHER_MAX)].map(|together| (quantity, together)))
        .find_map(|((what, of), together)| {
            let part_ios = (PART_IOS_MIN as f64 * together) as u64;
            constant(&record.series, of, part_ios).map(|(rate, parts)| (what, rate, parts))
        })
    else {
        return;
    };
    let pace = match is_whole {
        true => {
            let mean = total.service_time.sum() as f64 / total.ios() as f64 / 1e6;
            format!("their mean time, {mean:.3} ms, is the queue depth over that rate")
        }
        false => "the workers waited for the target for most of the time".to_owned(),
    };
    judgement.find(
        "rate-limited",
        Severity::Suspect,
        format!(
            "{} {what}/s were done in each of {parts} parts of the window, within {}, and {pace}: a \
             limit sets it, not a device at work.",
            significant(rate),
            percent(CONSTANT_WITHIN),
        ),
        "Look for a quota of the volume, the hypervisor, the controller or the link; more queue depth \
         only adds waiting.",
    );
}

/// Whether no worker was busy, by the CPU time that each had and waited for.
fn workers_idle(case: &Case, seconds: f64) -> bool {
    let idle = |worker: &WorkerRecord| {
        let waited = worker.cpu_wait.map_or(Span(0), |wait| wait.time);
        worker.cpu.is_some_and(|cpu| (cpu + waited).as_secs_f64() <= IDLE_MAX * seconds)
    };
    case.trial.record.workers.iter().all(idle)
}

/// The rate of a quantity, if it is constant over the window, and the number of its parts and of
/// I/Os in each.
fn constant(series: &[Interval], of: Quantity, part_ios: u64) -> Option<(f64, usize)> {
    // All streams together, by the time at which an interval began.
    let mut intervals = std::collections::BTreeMap::new();
    for interval in series {
        let at: &mut (u64, u64) = intervals.entry(interval.start).or_default();
        at.0 += of(interval);
        at.1 = at.1.max(interval.length.0);
    }
    let total: u64 = intervals.values().map(|(count, _)| count).sum();
    let together = (part_ios * intervals.len() as u64).div_ceil(total.max(1)) as usize;
    let all: Vec<(u64, u64)> = intervals.into_values().collect();
    let mut rates: Vec<f64> = all
        .chunks_exact(together.max(1))
        .map(|part| {
            let sum = part.iter().fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
            sum.0 as f64 * 1e9 / sum.1.max(1) as f64
        })
        .collect();
    let parts = rates.len();
    if parts < PARTS_MIN {
        return None;
    }
    rates.sort_by(f64::total_cmp);
    let median = rates[parts / 2];
    let near = |rate: &&f64| (*rate - median).abs() <= CONSTANT_WITHIN * median;
    let constant = rates.iter().filter(near).count();
    (0.0 < median && CONSTANT_PARTS_MIN * parts as f64 <= constant as f64)
        .then_some((median, parts))
}

#[cfg(test)]
mod tests {
    use super::super::testing::Invented;
    use super::*;
    use crate::spec::Pacing;

    fn limit(kind: IoLimitKind, value: u64) -> IoLimit {
        let file = "/sys/fs/cgroup/blkio/lab/blkio.throttle.read_iops_device".to_owned();
        IoLimit { device: "vda".to_owned(), kind, value, file }
    }

    #[test]
    fn a_limit_of_the_control_group_is_named_and_suspect_where_it_governs() {
        // 1000 reads per second of 4 KiB.
        let mut invented = Invented::reads();
        invented.target().limits = Vec::from([limit(IoLimitKind::ReadIops, 1010)]);
        let finding = invented.has("cgroup-limit", Severity::Suspect);
        assert_eq!(
            finding.evidence,
            "A control group of fathom's allows it 1,010 reads/s at vda \
             (/sys/fs/cgroup/blkio/lab/blkio.throttle.read_iops_device), and 1,000 reads/s were \
             achieved: 99 % of the limit."
        );
        for (kind, value, severity) in [
            (IoLimitKind::ReadBandwidth, 4_096_000, Severity::Suspect),
            (IoLimitKind::ReadBandwidth, 8_192_000, Severity::Note),
            (IoLimitKind::ReadIops, 2000, Severity::Note),
            (IoLimitKind::ReadIops, 500, Severity::Note),
            (IoLimitKind::TargetTime, 75_000, Severity::Note),
            (IoLimitKind::Weight, 50, Severity::Note),
        ] {
            invented.target().limits = Vec::from([limit(kind, value)]);
            invented.has("cgroup-limit", severity);
        }
        // A limit does not matter if the load does not have that kind of I/O.
        invented.target().limits = Vec::from([limit(IoLimitKind::WriteIops, 1000)]);
        invented.has_none_of(&["cgroup-limit"]);
        // A device that counts fewer I/Os because the block layer merges them, or none at all.
        invented.target().limits = Vec::from([limit(IoLimitKind::ReadIops, 1000)]);
        invented.device().reads = 3;
        invented.has("cgroup-limit", Severity::Suspect);
    }

    /// One second for each number of I/Os. The service times give the queue depth.
    fn at_rate(ios: &[u64]) -> Invented {
        let mut invented = Invented::reads();
        let total: u64 = ios.iter().sum();
        invented.trial.record.window = crate::Span::from_secs(ios.len() as u64);
        invented.set_times(total, 1_000_000_000 * ios.len() as u64 / total);
        invented.set_series(ios.iter().copied());
        invented
    }

    #[test]
    fn a_rate_that_is_constant_to_a_thousandth_is_a_limit() {
        let mut invented = at_rate(&[2000, 2001, 1999, 2000, 2000, 2001, 2000, 2000, 1500, 2500]);
        let finding = invented.has("rate-limited", Severity::Suspect);
        assert!(finding.evidence.starts_with("2,000 I/Os/s were done in each of 10 parts"));
        assert!(finding.evidence.contains("time, 0.500 ms,"), "{}", finding.evidence);
        // The finding names the known limit, not the one that is inferred.
        invented.target().limits = Vec::from([limit(IoLimitKind::ReadIops, 2000)]);
        invented.has_none_of(&["rate-limited"]);
        // Slow loads need longer parts, and enough of them.
        at_rate(&[120; 100]).has("rate-limited", Severity::Suspect);
        at_rate(&[120; 50]).has_none_of(&["rate-limited"]);
        at_rate(&[2000; 7]).has_none_of(&["rate-limited"]);
    }

    #[test]
    fn a_limit_that_lets_all_that_wait_pass_at_once_shows_in_longer_parts() {
        let in_turns = |seconds: usize| {
            let ios: Vec<u64> = (0..seconds).map(|n| 3000 + 8 * (n as u64 % 2)).collect();
            let mut invented = at_rate(&ios);
            let total: u64 = ios.iter().sum();
            invented.trial.point.streams[0].pacing = Pacing::closed(8);
            invented.set_times(total, 8_000_000_000 * seconds as u64 / total);
            invented.set_series(ios.iter().copied());
            invented
        };
        in_turns(40).has("rate-limited", Severity::Suspect);
        in_turns(20).has_none_of(&["rate-limited"]);
    }

    #[test]
    fn a_steady_device_is_no_limit() {
        // A device is rarely quieter than half a percent to both sides.
        let quiet: Vec<u64> = (0..60).map(|n| 9950 + n * 37 % 101).collect();
        at_rate(&quiet).has_none_of(&["rate-limited"]);
        // The service times leave a tenth of the time to the generator, which is busy during that
        // time.
        let mut busy = at_rate(&[2000; 10]);
        busy.set_times(20_000, 450_000);
        busy.has_none_of(&["rate-limited"]);
        busy.trial.point.streams[0].pacing = Pacing::closed(2);
        busy.set_times(20_000, 900_000);
        busy.worker().cpu = Some(crate::Span::from_secs(6));
        busy.has_none_of(&["rate-limited"]);
        busy.worker().cpu = None;
        busy.has_none_of(&["rate-limited"]);
        // Or that time goes to the call that starts an I/O, in which the worker sleeps.
        busy.worker().cpu = Some(crate::Span::from_secs(4));
        let finding = busy.has("rate-limited", Severity::Suspect);
        assert!(finding.evidence.contains("the workers waited for the target"));
        busy.set_cpu_wait(crate::Span::from_secs(2));
        busy.has_none_of(&["rate-limited"]);
        // A requested rate is constant by definition.
        let mut open = Invented::open_reads(1000.0);
        open.set_times(60_000, 1_000_000);
        open.has_none_of(&["rate-limited"]);
        let mut simulated = at_rate(&[2000; 10]);
        simulated.simulate();
        simulated.has_none_of(&["rate-limited"]);
    }
}
