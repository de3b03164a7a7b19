//! The same I/Os as fathom and as the block layer saw them: the time that passed outside the
//! device, and the true number in the device's queue.

use super::case::{Case, counted, share};
use super::{Judgement, Severity, machine};
use crate::facts::{DeviceCounters, LayerKind};
use crate::figures::significant;
use crate::measure::{Direction, Histogram};
use crate::spec::{Loop, Stream};
use crate::units::{Span, count};

/// A device is much faster than fathom's figures if the time outside it is more than this, and more
/// than the device's own time.
const OUTSIDE_MIN: Span = Span::from_us(50);
/// Both counts are of the same I/Os if they differ by no more than this share.
const SAME_IOS: f64 = 0.05;
/// The kernel counts in milliseconds, which may add this much at the two ends together.
const TICKS: Span = Span::from_ms(2);

/// A block layer that had completed its I/Os long before fathom saw them.
pub(super) fn slow_outside_device(case: &Case, judgement: &mut Judgement) {
    const CODE: &str = "slow-outside-device";
    if !case.is_direct() {
        return judgement.cannot(CODE, "buffered I/O reaches the device at other times than asked");
    }
    for direction in Direction::BOTH.into_iter().filter(|direction| case.does(*direction)) {
        match seen_twice(case, direction) {
            Ok(seen) => {
                if let Some(evidence) = seen.evidence(case, direction) {
                    judgement.find(CODE, Severity::Suspect, evidence, OUTSIDE_ADVICE);
                }
            }
            Err(why) => judgement.cannot(CODE, why),
        }
    }
}

const OUTSIDE_ADVICE: &str = "Take it for the time of this host and not of the device: look at the \
     CPUs (top, and mpstat -P ALL for interrupts), at the file system, and whether more is in flight \
     than the device takes.";

/// At this queue depth or more, I/Os may queue before the device.
const DEPTH_MIN: u32 = 4;
/// I/Os queue before the device if it has no more than this many at a time.
const TURNS_MAX: f64 = 1.5;
/// If a worker needed more of a CPU than this, the other I/Os may wait for that worker instead.
const WORKER_MAX: f64 = 0.5;

/// I/Os that fathom had in flight and that reached the device one after the other, such as writes
/// to a file system that admits one at a time to a file.
pub(super) fn one_after_the_other(case: &Case, judgement: &mut Judgement) {
    let asked = case.streams().iter().map(|stream| match stream.pacing.pace {
        Loop::Closed { queue_depth, .. } => Some(queue_depth),
        Loop::Open { .. } => None,
    });
    let Some(asked) = asked.sum::<Option<u32>>().filter(|asked| *asked >= DEPTH_MIN) else {
        return;
    };
    // If it cannot be compared, it is unchecked as slow-outside-device, which needs the same.
    let directions = Direction::BOTH.into_iter().filter(|direction| case.does(*direction));
    let Ok(seen) =
        directions.map(|direction| seen_twice(case, direction)).collect::<Result<Vec<_>, _>>()
    else {
        return;
    };
    // A load of trims alone reads and writes nothing that could be compared.
    let Some(first) = seen.first() else { return };
    let had_time = case.trial.record.workers.iter().all(|worker| {
        let busy = worker.cpu.map(|cpu| cpu + worker.cpu_wait.map_or(Span(0), |wait| wait.time));
        busy.is_some_and(|busy| share(busy, case.trial.record.window) < WORKER_MAX)
    });
    let under_way = seen.iter().map(SeenTwice::most_under_way).fold(Span(0), |sum, one| sum + one);
    let at_the_device = share(under_way, case.trial.record.window);
    if !case.is_direct()
        || !had_time
        || !seen.iter().all(SeenTwice::is_outside)
        || at_the_device > TURNS_MAX
    {
        return;
    }
    judgement.find(
        "depth-not-reached",
        Severity::Suspect,
        format!(
            "Of the {asked} I/Os in flight, {} had {} on average: the others waited before it.",
            first.device.name,
            significant(at_the_device),
        ),
        "Something before the device lets one through at a time, often the file system's lock of a \
         file: prepare the file so that nothing has to be allocated, use blocks that are multiples of \
         the file system's, or several files.",
    );
}

/// The I/Os of one direction as fathom and as the block layer saw them.
struct SeenTwice<'a> {
    device: &'a DeviceCounters,
    /// The mean service time.
    service: Span,
    /// The mean time in the block layer, and how much more the kernel's milliseconds can hide.
    device_time: Span,
    resolution: Span,
    ios: u64,
}

/// The same I/Os at one device and here; or why they cannot be compared.
fn seen_twice<'a>(case: &Case<'a>, direction: Direction) -> Result<SeenTwice<'a>, String> {
    let durable = |stream: &Stream| stream.access.is_durable() || stream.flush.is_some();
    if direction == Direction::Write && case.streams().iter().any(durable) {
        return Err(
            "a durable write waits for flushes, which the block layer counts apart".to_owned()
        );
    }
    let mut disks = case.disks().filter(|disk| disk.kind != LayerKind::Zram);
    let number = disks.next().and_then(|disk| disk.device);
    let alone = disks.all(|disk| disk.device == number);
    let devices = case.trial.counters.as_ref().map(|counters| &counters.devices);
    let device = devices.and_then(|all| all.iter().find(|one| Some(one.device) == number));
    let Some(device) = device.filter(|_| alone) else {
        return Err("the targets are not on one device whose counters are known".to_owned());
    };
    let mut times = Histogram::default();
    for flow in case.flows(direction) {
        times.merge(&flow.service_time);
    }
    let at_device = match direction {
        Direction::Read => device.reads,
        Direction::Write => device.writes,
    };
    let ios = times.count();
    if ios == 0 {
        return Err(format!("no {} completed", direction.name()));
    }
    if (at_device as f64 - ios as f64).abs() > SAME_IOS * ios as f64 {
        return Err(format!(
            "{} counted {} where fathom did {}: they are not the same I/Os",
            device.name,
            counted(at_device, direction.name()),
            count(ios)
        ));
    }
    let Some(under_way) = device.under_way else {
        return Err("for how long I/Os were under way at the device is not known".to_owned());
    };
    Ok(SeenTwice {
        device,
        service: Span(times.mean().unwrap_or(0.0) as u64),
        device_time: Span(under_way[direction as usize].0 / at_device.max(1)),
        resolution: Span(TICKS.0 / at_device.max(1)),
        ios: at_device,
    })
}

impl SeenTwice<'_> {
    /// The longest time that an I/O can have been in the block layer.
    fn most(&self) -> Span {
        self.device_time + self.resolution
    }

    /// The shortest time that passed outside it.
    fn outside(&self) -> Span {
        self.service - self.most()
    }

    fn is_outside(&self) -> bool {
        self.outside() > OUTSIDE_MIN.max(self.most())
    }

    /// The sum of the times of I/Os there.
    fn most_under_way(&self) -> Span {
        Span(self.most().0.saturating_mul(self.ios))
    }

    /// The finding, if the device took far less time.
    fn evidence(&self, case: &Case, direction: Direction) -> Option<String> {
        if !self.is_outside() {
            return None;
        }
        let outside = self.outside();
        let workers = &case.trial.record.workers;
        let wait =
            workers.iter().map(|one| Some(one.cpu_wait?.time)).reduce(|sum, one| Some(sum? + one?));
        let ios: u64 = workers.iter().map(|worker| machine::ios_under_way(worker).0).sum();
        let waited = match wait.flatten().map(|wait| Span(wait.0 / ios.max(1))) {
            Some(wait) if wait.0 * 10 > outside.0 => {
                format!("; the workers waited {wait} for a CPU for each I/O")
            }
            _ => String::new(),
        };
        Some(format!(
            "The block layer of {} took {} for a {} on average (it counts in milliseconds: to within \
             {}), and fathom {}. The rest is outside of the device: in the file system, in queues \
             before it, in interrupts, and until the worker ran{waited}.",
            self.device.name,
            self.device_time,
            direction.name(),
            self.resolution,
            self.service,
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::Invented;
    use super::*;
    use crate::spec::{Pacing, SyncMode};

    #[test]
    fn a_device_that_is_far_faster_than_what_was_seen_is_suspect() {
        let mut invented = Invented::reads();
        let took = |invented: &mut Invented, us: u64| {
            invented.device().under_way = Some([Span::from_us(60_000 * us), Span(0)]);
        };
        // 900 us were seen. The kernel's rounding may hide 33 ns more.
        took(&mut invented, 451);
        invented.has_none_of(&["slow-outside-device"]);
        took(&mut invented, 400);
        let finding = invented.has("slow-outside-device", Severity::Suspect);
        let expected = "The block layer of vda took 400 us for a read on average (it counts in \
                        milliseconds: to within 33 ns), and fathom 900 us.";
        assert!(finding.evidence.starts_with(expected), "{}", finding.evidence);
        assert!(!finding.evidence.contains("waited"), "{}", finding.evidence);
        invented.set_cpu_wait(Span::from_secs(24));
        let finding = invented.has("slow-outside-device", Severity::Suspect);
        let expected = "the workers waited 400 us for a CPU for each I/O";
        assert!(finding.evidence.contains(expected), "{}", finding.evidence);
        // The additional time on a fast device is less than a wake-up may take.
        invented.set_cpu_wait(Span(0));
        invented.set_times(60_000, 60_000);
        took(&mut invented, 12);
        invented.has_none_of(&["slow-outside-device"]);
    }

    #[test]
    fn milliseconds_that_hide_the_difference_say_nothing() {
        let mut invented = Invented::reads();
        invented.set_times(10, 250_000);
        invented.device().reads = 10;
        invented.device().under_way = Some([Span::from_ms(1), Span(0)]);
        invented.has_none_of(&["slow-outside-device"]);
    }

    #[test]
    fn what_cannot_be_compared_with_the_block_layer_is_unchecked() {
        let unchecked = |spoil: &dyn Fn(&mut Invented)| {
            let mut invented = Invented::reads();
            invented.device().under_way = Some([Span::from_secs(1), Span(0)]);
            spoil(&mut invented);
            invented.has_none_of(&["slow-outside-device"]);
            invented.is_unchecked("slow-outside-device");
        };
        unchecked(&|invented| invented.device().reads = 64_000);
        unchecked(&|invented| invented.device().reads = 0);
        unchecked(&|invented| invented.device().under_way = None);
        unchecked(&|invented| invented.counters().devices.clear());
        unchecked(&|invented| invented.stream().access.cache = crate::spec::Cache::Buffered);
        unchecked(&|invented| {
            let mut other = invented.disk().clone();
            other.device = Some((254, 16));
            invented.target().layers.push(other);
        });
        let mut durable = Invented::writes();
        durable.stream().access.sync = SyncMode::Dsync;
        durable.is_unchecked("slow-outside-device");
    }

    #[test]
    fn ios_that_reach_the_device_one_after_the_other_do_not_reach_their_depth() {
        let mut invented = Invented::reads();
        invented.stream().pacing = Pacing::closed(32);
        invented.worker().queue_depth = 32.0;
        invented.set_times(60_000, 32_000_000);
        let took = |invented: &mut Invented, us: u64| {
            invented.device().under_way = Some([Span::from_us(60_000 * us), Span(0)]);
        };
        took(&mut invented, 1600);
        invented.has_none_of(&["depth-not-reached"]);
        took(&mut invented, 980);
        let finding = invented.has("depth-not-reached", Severity::Suspect);
        assert_eq!(
            finding.evidence,
            "Of the 32 I/Os in flight, vda had 0.98 on average: the others waited before it."
        );
        // The I/Os wait for a worker that has no time. A few at a time are not a queue.
        invented.worker().cpu = Some(Span::from_secs(31));
        invented.has_none_of(&["depth-not-reached"]);
        invented.worker().cpu = Some(Span::from_secs(1));
        invented.has("depth-not-reached", Severity::Suspect);
        invented.stream().pacing = Pacing::closed(3);
        invented.worker().queue_depth = 3.0;
        invented.has_none_of(&["depth-not-reached"]);
    }

    #[test]
    fn trims_alone_are_not_compared_with_what_the_block_layer_saw() {
        let mut invented = Invented::reads();
        invented.stream().pacing = Pacing::closed(32);
        invented.worker().queue_depth = 32.0;
        invented.stream().trim_share = 1.0;
        invented.worker().cpu = Some(Span(0));
        invented.has_none_of(&["depth-not-reached", "slow-outside-device"]);
    }
}
