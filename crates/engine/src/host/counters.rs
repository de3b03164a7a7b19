//! The kernel's counters: CPU time, the devices' I/Os, this process's own time.

use std::collections::{BTreeMap, BTreeSet};

use fathom_core::facts::{
    ArrayState, Counters, CpuTime, DeviceCounters, Journal, LayerKind, Memory, Target,
};
use fathom_core::watch::DiskStat;
use fathom_core::{Bytes, Span};
use rustix::time::{ClockId, clock_gettime};

use super::cgroup::Groups;
use super::stack::array_state;
use super::system::{DeviceFolder, Number, System};

/// The counters now, with those of the devices of these targets.
pub(crate) fn counters(system: &System, targets: &[Target]) -> Counters {
    let (process_user, process_kernel) = process_time(system);
    Counters {
        late: Span(0),
        cpus: cpus(system),
        devices: wanted(targets)
            .into_iter()
            .filter_map(|(number, name)| device(&system.device(number)?, name))
            .collect(),
        process_user,
        process_kernel,
        throttled: Groups::read(system).throttled(),
        io_wq: None,
        arrays: arrays(system, targets),
        journals: journals(system, targets),
        targets: Vec::new(),
        memory: memory(system),
        tracer: tracer(system),
        pauses: None,
    }
}

/// The software RAID arrays of all stacks.
fn arrays(system: &System, targets: &[Target]) -> Vec<ArrayState> {
    let layers = targets.iter().flat_map(|target| &target.layers);
    let numbers: BTreeSet<Number> =
        layers.filter(|l| l.kind == LayerKind::Md).filter_map(|layer| layer.device).collect();
    numbers.into_iter().filter_map(|number| array_state(&system.device(number)?)).collect()
}

/// The journals of the file systems that hold the targets, if they have figures.
fn journals(system: &System, targets: &[Target]) -> Vec<Journal> {
    let mut found: Vec<Journal> = Vec::new();
    for target in targets {
        let (Some(fs), Some(top)) = (&target.file_system, target.layers.first()) else { continue };
        let known = found.iter().any(|journal| journal.device == top.name);
        let (commits, bytes) = match fs.kind.as_str() {
            _ if known => continue,
            "ext3" | "ext4" => match jbd2(system, &top.name) {
                Some(told) => told,
                None => continue,
            },
            "xfs" => match xfs_log(system, &top.name) {
                Some(told) => told,
                None => continue,
            },
            _ => continue,
        };
        let (file_system, device) = (fs.kind.clone(), top.name.clone());
        found.push(Journal { file_system, device, commits, bytes: Bytes(bytes) });
    }
    found
}

/// A block of ext4's journal, as nearly every file system has them.
const JOURNAL_BLOCK: u64 = 4096;

/// Transactions of the journal on a device, and the bytes that it wrote: each transaction ends with
/// one block more than was logged. "/proc/fs/jbd2/sda1-8/info".
fn jbd2(system: &System, device: &str) -> Option<(u64, u64)> {
    let inside = format!("{device}-");
    let folder = system.names("proc/fs/jbd2").into_iter().find(|n| n.starts_with(&inside))?;
    let text = system.text(format!("proc/fs/jbd2/{folder}/info"))?;
    let before = |words: &str| {
        let line = text.lines().find_map(|line| line.split_once(words))?;
        line.0.trim().parse::<u64>().ok()
    };
    let commits = before(" transactions (")?;
    let logged = before(" logged blocks per transaction").unwrap_or(0);
    Some((commits, commits.saturating_mul(logged + 1).saturating_mul(JOURNAL_BLOCK)))
}

/// Writes of the log of an xfs, and their bytes: "log 2 128 0 1 2" in its statistics.
fn xfs_log(system: &System, device: &str) -> Option<(u64, u64)> {
    let text = system.text(format!("sys/fs/xfs/{device}/stats/stats"))?;
    let line = text.lines().find_map(|line| line.strip_prefix("log "))?;
    let mut fields = line.split_whitespace().map(|field| field.parse::<u64>().ok());
    Some((fields.next()??, fields.next()??.saturating_mul(512)))
}

/// The cost of memory so far.
fn memory(system: &System) -> Memory {
    let vmstat = system.text("proc/vmstat").unwrap_or_default();
    Memory {
        major_faults: own_stat(system, MAJOR_FAULTS),
        swapped_in: pages(&vmstat, "pswpin"),
        swapped_out: pages(&vmstat, "pswpout"),
        stalled: Groups::read(system).memory_stalled(system),
    }
}

/// The size of some pages in the kernel's statistics of the memory.
fn pages(vmstat: &str, name: &str) -> Option<Bytes> {
    let line = vmstat.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '))?;
    let pages: u64 = line.trim().parse().ok()?;
    Some(Bytes(pages.saturating_mul(rustix::param::page_size() as u64)))
}

/// The data that is being written from the page cache to disks now.
pub(crate) fn writeback(system: &System) -> Bytes {
    let vmstat = system.text("proc/vmstat").unwrap_or_default();
    pages(&vmstat, "nr_writeback").unwrap_or_default()
}

/// The process that traces this one, if one does.
fn tracer(system: &System) -> Option<String> {
    let status = system.text("proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("TracerPid:"))?;
    let id: u32 = line.trim().parse().ok().filter(|id| *id > 0)?;
    let name = system.text(format!("proc/{id}/comm")).unwrap_or_else(|| "a process".to_owned());
    Some(format!("{name} ({id})"))
}

/// The place in a process's `stat`, counted behind the name, of the number of pages that had to be
/// read for it.
const MAJOR_FAULTS: usize = 9;
/// The place there of the ticks that it was in the kernel.
const KERNEL_TICKS: usize = 12;

/// A number of this process's `stat`, by its place behind the name.
fn own_stat(system: &System, place: usize) -> Option<u64> {
    let text = system.text("proc/self/stat")?;
    // The name in brackets may contain anything; the fields begin behind its end.
    text.rsplit_once(')')?.1.split_whitespace().nth(place)?.parse().ok()
}

/// The device that each target is or lies on, and the disks at the bottom.
fn wanted(targets: &[Target]) -> BTreeMap<Number, String> {
    let tops = targets.iter().filter_map(|target| target.layers.first());
    let bottoms = targets.iter().flat_map(Target::disks);
    tops.chain(bottoms).filter_map(|layer| Some((layer.device?, layer.name.clone()))).collect()
}

fn device(device: &DeviceFolder, name: String) -> Option<DeviceCounters> {
    let stat = DiskStat::parse(&device.text("stat")?)?;
    // orig_data_size, compr_data_size, ...: only zram has it.
    let held = device
        .text("mm_stat")
        .and_then(|text| text.split_whitespace().nth(1)?.parse().ok().map(Bytes));
    Some(DeviceCounters {
        name,
        device: device.number,
        reads: stat.reads.ios,
        read_bytes: Bytes(stat.reads.bytes),
        writes: stat.writes.ios,
        written_bytes: Bytes(stat.writes.bytes),
        under_way: Some([stat.reads.time, stat.writes.time]),
        merged: Some([stat.reads.merged, stat.writes.merged]),
        flushes: stat.flushes.ios,
        held,
    })
}

/// Nanoseconds of one tick of /proc's CPU times.
fn tick() -> u64 {
    1_000_000_000 / rustix::param::clock_ticks_per_second().max(1)
}

/// The CPUs that are online, and the time that each spent.
pub(crate) fn cpus(system: &System) -> Vec<(u32, CpuTime)> {
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

/// The numbers of the CPUs of this machine that are online.
pub(crate) fn online_cpus() -> Vec<u32> {
    cpus(&System::real()).into_iter().map(|(cpu, _)| cpu).collect()
}

/// The CPU time of this process since it began.
pub(crate) fn process_cpu() -> Span {
    let now = clock_gettime(ClockId::ProcessCPUTime);
    Span(now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64)
}

/// User and kernel time of this process. The clock is exact; the split is in ticks, like all the
/// kernel's splits.
fn process_time(system: &System) -> (Span, Span) {
    let total = process_cpu().0;
    let kernel = own_stat(system, KERNEL_TICKS).unwrap_or(0).saturating_mul(tick()).min(total);
    (Span(total - kernel), Span(kernel))
}
