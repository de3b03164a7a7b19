//! What the kernel counts: CPU time, the devices' I/Os, this process's own time.

use std::collections::BTreeMap;

use fathom_core::facts::{Counters, CpuTime, DeviceCounters, Target};
use fathom_core::{Bytes, Span};
use rustix::time::{ClockId, clock_gettime};

use super::cgroup::Groups;
use super::system::{Device, Number, System};

/// The counters now, with those of the devices of these targets.
pub(crate) fn counters(system: &System, targets: &[Target]) -> Counters {
    let (process_user, process_kernel) = process_time(system);
    Counters {
        cpus: cpus(system),
        devices: wanted(targets)
            .into_iter()
            .filter_map(|(number, name)| device(&system.device(number)?, name))
            .collect(),
        process_user,
        process_kernel,
        throttled: Groups::read(system).throttled(),
        realtime_wait: None,
        io_wq: None,
    }
}

/// How long the threads of this process that have real-time priority (SCHED_FIFO) were ready to run
/// and did not, since they began. None where there is no such thread, or the kernel does not say.
pub(super) fn realtime_wait(system: &System) -> Option<Span> {
    let waits = system.names("proc/self/task").into_iter().filter_map(|id| {
        // The name in brackets may contain anything; the fields begin behind its end.
        let stat = system.text(format!("proc/self/task/{id}/stat"))?;
        let policy = stat.rsplit_once(')')?.1.split_whitespace().nth(POLICY)?.parse();
        (policy == Ok(libc::SCHED_FIFO)).then_some(id)
    });
    waits.map(|id| waited(system, &id)).reduce(|sum, one| Some(sum? + one?)).flatten()
}

/// Where a thread's `stat` has its policy, behind its name.
const POLICY: usize = 38;

/// Time that a thread waited for a CPU while it was ready to run.
fn waited(system: &System, id: &str) -> Option<Span> {
    let text = system.text(format!("proc/self/task/{id}/schedstat"))?;
    // Time on a CPU, time that it waited for one, how often it ran. All are zero where the kernel
    // was built without them.
    let mut fields = text.split_whitespace().map(|field| field.parse().ok());
    let (used, waited): (u64, u64) = (fields.next()??, fields.next()??);
    (used > 0).then_some(Span(waited))
}

/// The device that each target is or lies on, and the disks at the bottom.
fn wanted(targets: &[Target]) -> BTreeMap<Number, String> {
    let tops = targets.iter().filter_map(|target| target.layers.first());
    let bottoms = targets.iter().flat_map(Target::disks);
    tops.chain(bottoms).filter_map(|layer| Some((layer.device?, layer.name.clone()))).collect()
}

fn device(device: &Device, name: String) -> Option<DeviceCounters> {
    // reads, merged, sectors, ms; writes, merged, sectors, ms; in flight, ms, weighted ms;
    // discards, merged, sectors, ms; flushes, ms. Older kernels end earlier.
    let fields: Vec<u64> =
        device.text("stat")?.split_whitespace().map_while(|field| field.parse().ok()).collect();
    if fields.len() < 11 {
        return None;
    }
    Some(DeviceCounters {
        name,
        device: device.number,
        reads: fields[0],
        read_bytes: Bytes(fields[2].wrapping_mul(512)),
        writes: fields[4],
        written_bytes: Bytes(fields[6].wrapping_mul(512)),
        flushes: fields.get(15).copied().unwrap_or(0),
    })
}

/// Nanoseconds of one tick of /proc's CPU times.
fn tick() -> u64 {
    1_000_000_000 / rustix::param::clock_ticks_per_second().max(1)
}

pub(super) fn cpus(system: &System) -> Vec<(u32, CpuTime)> {
    let tick = tick();
    let text = system.text("proc/stat").unwrap_or_default();
    let cpu = |line: &str| {
        // "cpu0 user nice system idle iowait irq softirq steal guest guest_nice"; the guest's
        // time is in the user's already.
        let (number, rest) = line.strip_prefix("cpu")?.split_once(' ')?;
        let fields: Vec<u64> =
            rest.split_whitespace().map_while(|field| field.parse().ok()).collect();
        let sum = |places: &[usize]| {
            let ticks: u64 = places.iter().filter_map(|place| fields.get(*place)).sum();
            Span(ticks.saturating_mul(tick))
        };
        let time = CpuTime {
            user: sum(&[0, 1]),
            kernel: sum(&[2, 5, 6]),
            idle: sum(&[3, 4]),
            steal: sum(&[7]),
        };
        Some((number.parse().ok()?, time))
    };
    text.lines().filter_map(cpu).collect()
}

/// User and kernel time of this process. The clock is exact; the split is in ticks, as all the
/// kernel keeps.
fn process_time(system: &System) -> (Span, Span) {
    let now = clock_gettime(ClockId::ProcessCPUTime);
    let total = now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64;
    let text = system.text("proc/self/stat").unwrap_or_default();
    // The name in brackets may contain anything; the fields begin behind its end.
    let rest = text.rsplit_once(')').map_or("", |(_, rest)| rest);
    let ticks = |place: usize| rest.split_whitespace().nth(place)?.parse::<u64>().ok();
    let kernel = ticks(12).unwrap_or(0).saturating_mul(tick()).min(total);
    (Span(total - kernel), Span(kernel))
}
