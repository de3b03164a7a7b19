//! Whether the machine let the load generator run: other programs that had the CPUs, a process that
//! was stopped, a machine that was. A worker sees completions late while it does not run, and the
//! delay looks like the target's time.

use super::case::{Case, counted, share};
use super::{Judgement, Severity};
use crate::facts::{Pause, PauseKind, Pauses, Rank};
use crate::figures::{percent, time};
use crate::measure::{CpuWait, WorkerRecord};
use crate::spec::{IoPriority, Stream};
use crate::units::{Bytes, Span, count};

/// From this share of the window on, waiting for a CPU shows in the figures.
const WAIT_MAX: f64 = 0.03;
/// For loads with few I/Os at a time, waiting for a CPU shows in the figures if it was more than
/// this share of the time in which I/Os were under way, and more than `WAIT_PER_IO` for each I/O.
const SERVICE_SHARE_MAX: f64 = 0.25;
/// The wait for each I/O that is always allowed.
const WAIT_PER_IO: Span = Span::from_us(50);

/// How long each wake-up may wait on its way to an idle CPU; longer waits are caused by others.
const WAY: Span = Span::from_us(5);

/// The waiting of a thread for a CPU, compared with the time in which it had I/Os to handle.
#[derive(Clone, Copy, Debug, Default)]
struct Waited {
    wait: Span,
    /// As a share of the window.
    of_window: f64,
    /// As a share of the time in which I/Os were under way, without counting simultaneous ones
    /// twice.
    of_service: f64,
    per_io: Span,
}

impl Waited {
    fn new(wait: Span, window: Span, under_way: Span, ios: u64) -> Self {
        Self {
            wait,
            of_window: share(wait, window).min(1.0),
            of_service: share(wait, under_way.min(window).max(Span(1))).min(1.0),
            per_io: Span(wait.0 / ios.max(1)),
        }
    }

    fn matters(&self) -> bool {
        self.of_window > WAIT_MAX
            || (self.of_service > SERVICE_SHARE_MAX && self.per_io > WAIT_PER_IO)
    }
}

/// Threads of the process that others kept off the CPUs.
struct Contention {
    /// The number of these workers.
    workers: usize,
    /// The worker that waited longest; none if only the rings' threads waited.
    worst: Option<Waited>,
    /// The rings' own threads, if they waited for too long.
    ring: Option<Waited>,
    /// The shares of the CPUs that others used, and fathom itself.
    others: f64,
    own: f64,
}

/// Waiting for a CPU that others had. Threads of the process that wait for one another do not
/// count: of all waiting, at most the CPU time that others used is attributed to them.
fn contention(case: &Case) -> Result<Option<Contention>, &'static str> {
    let window = case.trial.record.window;
    let workers = &case.trial.record.workers;
    if window == Span(0) || workers.is_empty() {
        return Ok(None);
    }
    let Some(counters) = &case.trial.counters else {
        return Err("the CPUs' times in the window are not known");
    };
    let tied: Option<Vec<u32>> = case.tied_cpus().collect();
    let chosen = |cpu| tied.as_ref().is_none_or(|tied| tied.contains(&cpu));
    let Some(cpu) = counters.cpu_time(chosen) else {
        return Err("the CPUs' times in the window are not known");
    };
    let beyond_way = |wait: CpuWait| wait.time - Span(WAY.0.saturating_mul(wait.runs));
    let waits: Option<Vec<Span>> =
        workers.iter().map(|worker| worker.cpu_wait.map(beyond_way)).collect();
    let Some(waits) = waits else {
        return Err("the kernel does not tell how long ready threads wait for a CPU \
                    (/proc/self/schedstat)");
    };
    let used = cpu.others(counters.process());
    let sum = waits.iter().fold(Span(0), |sum, wait| sum + *wait);
    let theirs = |wait: Span, sum: Span| match used < sum {
        true => Span((wait.0 as f64 * share(used, sum)) as u64),
        false => wait,
    };
    let waited = workers.iter().zip(waits).map(|(worker, wait)| {
        let (ios, under_way) = ios_under_way(worker);
        Waited::new(theirs(wait, sum), window, under_way, ios)
    });
    let kept: Vec<Waited> = waited.filter(Waited::matters).collect();
    let ring = counters.io_wq.as_ref().and_then(|ring| {
        let wait = ring.wait()?;
        let threads = ring.waits.as_ref().map_or(0, Vec::len).max(1) as u64;
        let all = workers.iter().map(ios_under_way).reduce(|(a, b), (c, d)| (a + c, b + d));
        let (ios, under_way) = all.unwrap_or_default();
        let wait = wait - Span(WAY.0.saturating_mul(ios));
        let whole = Span(window.0.saturating_mul(threads));
        Some(Waited::new(theirs(wait, wait), whole, under_way, ios)).filter(Waited::matters)
    });
    let found = Contention {
        workers: kept.len(),
        worst: kept.into_iter().max_by_key(|one| one.wait),
        ring,
        others: share(used, cpu.total()),
        own: share(counters.process(), cpu.total()).min(1.0),
    };
    Ok((found.workers > 0 || found.ring.is_some()).then_some(found))
}

/// How many I/Os of a worker completed in the window, and the sum of their times.
pub(super) fn ios_under_way(worker: &WorkerRecord) -> (u64, Span) {
    let flows = worker.cells.iter().flat_map(|cell| &cell.flows);
    flows.fold((0, Span(0)), |(ios, time), flow| {
        let sum = u64::try_from(flow.response_time().sum()).unwrap_or(u64::MAX);
        (ios + flow.ios(), time + Span(sum))
    })
}

/// Whether something other than the target kept the load generator from running, so that service
/// times are inflated too.
pub(super) fn keeps_from_running(case: &Case) -> bool {
    let stopped = pauses(case).is_some_and(|pauses| !pauses.found.is_empty());
    stopped || matches!(contention(case), Ok(Some(_)))
}

fn pauses<'a>(case: &Case<'a>) -> Option<&'a Pauses> {
    case.trial.counters.as_ref()?.pauses.as_ref()
}

/// Other programs that had the CPUs while workers, or the rings' own threads, were ready to run.
pub(super) fn cpu_contention(case: &Case, judgement: &mut Judgement) {
    const CODE: &str = "cpu-contention";
    let found = match contention(case) {
        Ok(Some(found)) => found,
        Ok(None) => return,
        Err(why) => return judgement.cannot(CODE, why),
    };
    let workers = case.trial.record.workers.len() as u64;
    let longest = |waited: &Waited| {
        format!("{} of {}, {} for each I/O", waited.wait, case.trial.record.window, waited.per_io,)
    };
    let worst = found.worst.as_ref().map(|worst| {
        let who = format!("{} of {}", found.workers, counted(workers, "worker"));
        format!("{who} waiting for a CPU for {}", longest(worst))
    });
    let ring = found
        .ring
        .as_ref()
        .map(|ring| format!("the rings' own threads waiting, all together, for {}", longest(ring)));
    let who: Vec<String> = worst.into_iter().chain(ring).collect();
    judgement.find(
        CODE,
        Severity::Suspect,
        format!(
            "Others kept {}: they used {} of the CPUs' time and fathom {}. I/Os that completed \
             meanwhile were seen late, so the service time is inflated too.",
            who.join(", and "),
            percent(found.others),
            percent(found.own),
        ),
        "Stop the other programs, or give the workers CPUs that no other program uses (--cpus, a \
         cpuset); top shows who runs.",
    );
}

/// A process that was stopped in the window, or whose threads a tracer stops.
pub(super) fn process_stopped(case: &Case, judgement: &mut Judgement) {
    const CODE: &str = "process-stopped";
    let Some(pauses) = pauses(case) else {
        return judgement.cannot(CODE, "stops of the process were not recorded");
    };
    let tracer = case.trial.counters.as_ref().and_then(|counters| counters.tracer.as_deref());
    if let Some(times) = times(pauses, |kind| kind == PauseKind::Process) {
        let by = tracer.map_or(String::new(), |tracer| format!("; {tracer} traces it"));
        judgement.find(
            CODE,
            Severity::Suspect,
            format!(
                "fathom was stopped {times}: none of its threads ran, and none waited for a CPU{by}."
            ),
            "Find out who stops it (kill -STOP, Ctrl-Z, a freezer of its cgroup, a debugger), and \
             measure again: the I/Os in flight seem to have taken as long.",
        );
    } else if let Some(tracer) = tracer {
        judgement.find(
            CODE,
            Severity::Suspect,
            format!("{tracer} traces fathom, and stops its threads at system calls or signals."),
            "Measure without strace, a debugger and the like.",
        );
    }
}

/// A machine that stood still in the window.
pub(super) fn machine_paused(case: &Case, judgement: &mut Judgement) {
    const CODE: &str = "machine-paused";
    let Some(pauses) = pauses(case) else {
        return judgement.cannot(CODE, "pauses of the machine were not recorded");
    };
    let throttled = case.trial.counters.as_ref().and_then(|counters| counters.throttled);
    if let Some(times) = times(pauses, |kind| kind == PauseKind::Suspended) {
        judgement.find(
            CODE,
            Severity::Suspect,
            format!("The machine slept {times}, as the kernel itself reports."),
            "Keep it from suspending while it measures (systemd-inhibit), and measure again.",
        );
    }
    match times(pauses, |kind| kind == PauseKind::Machine) {
        // A cgroup that keeps threads off the CPUs looks the same.
        Some(_) if throttled.is_some_and(|throttled| throttled > Span(0)) => judgement
            .cannot(CODE, "the cgroup kept the process off the CPUs, which looks the same from here"),
        Some(times) => judgement.find(
            CODE,
            Severity::Suspect,
            format!(
                "The machine stood still {times}: a timer came late by that, though no thread waited \
                 for a CPU and the process was not stopped."
            ),
            "A virtual machine that is paused, moved or kept off its CPUs does so: measure again when \
             it is left alone.",
        ),
        None if !pauses.tells_waiting => judgement.cannot(
            CODE,
            "the kernel does not tell how long ready threads wait for a CPU, and a busy machine looks \
             the same without",
        ),
        None => {}
    }
}

/// The times and lengths of the pauses of a kind, in words; none if there were none.
fn times(pauses: &Pauses, of: impl Fn(PauseKind) -> bool) -> Option<String> {
    let found: Vec<&Pause> = pauses.found.iter().filter(|pause| of(pause.kind)).collect();
    let longest = found.iter().max_by_key(|pause| pause.length)?;
    let [length, after] = [longest.length, longest.after].map(|span| time(span.0 as f64));
    let one = format!("for at least {length}, {after} into the window");
    let all = time(found.iter().map(|pause| pause.length.0 as f64).sum());
    // Of those that were not kept, only the time of all kinds together is known.
    let (more, known) = match pauses.others {
        Span(0) => ("", ""),
        _ => (" or more", "known "),
    };
    match found.len() {
        1 => Some(one),
        n => Some(format!("{n} times or more, {all}{more} in all, the longest {known}time {one}")),
    }
}

/// Pages that had to be read for the process, each second: at 0.1 to 10 ms each up to a hundredth
/// of it.
const MAJOR_FAULTS_MAX: f64 = 1.0;
/// Fewer of them are code that runs for the first time.
const MAJOR_FAULTS_MIN: u64 = 20;
/// Swapped bytes of each second, from which on they are a load themselves.
const SWAPPED_MAX: Bytes = Bytes(Bytes::MIB);
/// The largest share of the window for which a thread may have waited for memory.
const STALLED_MAX: f64 = 0.02;

/// A shortage of memory: the machine swapped, pages of the process had to be read, or threads
/// waited for memory.
pub(super) fn memory_pressure(case: &Case, judgement: &mut Judgement) {
    const CODE: &str = "memory-pressure";
    let window = case.trial.record.window;
    let Some(memory) = case.trial.counters.as_ref().map(|counters| &counters.memory) else {
        return judgement.cannot(CODE, "the cost of memory in the window is not known");
    };
    if window == Span(0) {
        return;
    }
    let seconds = window.as_secs_f64();
    let mut found = Vec::new();
    let swapped = |bytes: Option<Bytes>| {
        bytes.filter(|bytes| bytes.0 as f64 > SWAPPED_MAX.0 as f64 * seconds)
    };
    if let Some(bytes) = swapped(memory.swapped_in) {
        found.push(format!("the machine read {bytes} from swap"));
    }
    if let Some(bytes) = swapped(memory.swapped_out) {
        found.push(format!("the machine wrote {bytes} to swap"));
    }
    let faults = memory.major_faults.unwrap_or(0);
    if MAJOR_FAULTS_MIN <= faults && faults as f64 > MAJOR_FAULTS_MAX * seconds {
        found.push(format!(
            "{} pages of fathom had to be read before it could go on",
            count(faults)
        ));
    }
    // Buffered I/O itself waits for memory, because its data stays there.
    let stalled = memory.stalled.filter(|_| case.is_direct());
    if let Some(stalled) = stalled.filter(|stalled| share(*stalled, window) > STALLED_MAX) {
        found.push(format!("threads waited for memory for {stalled}"));
    }
    if !found.is_empty() {
        judgement.find(
            CODE,
            Severity::Suspect,
            format!("In the window of {window} {}.", found.join(", and ")),
            "Free memory or raise the cgroup's limit: swap is traffic on a disk, and a thread that \
             waits for memory sees its I/Os late.",
        );
    } else if memory.major_faults.is_none() && memory.stalled.is_none() {
        judgement.cannot(CODE, "the kernel tells neither major faults nor pressure on memory");
    }
}

/// Weights below this share of the default are far from it.
const CPU_WEIGHT_MIN: f64 = 0.5;
/// The level of I/O that the kernel uses if none was set.
const IO_LEVEL: u8 = 4;

/// A process that yields to others, by its own priority or its group's.
pub(super) fn low_priority(case: &Case, judgement: &mut Judgement) {
    let rank = &case.host.rank;
    let asks = |stream: &Stream| stream.workplace.io_priority.is_some();
    let io = io_rank(rank).filter(|_| !case.streams().iter().all(asks));
    let cpu = cpu_rank(rank);
    let found: Vec<String> = cpu.iter().cloned().chain(io).collect();
    if found.is_empty() {
        return;
    }
    // By itself it changes nothing; it matters if others wanted the CPUs.
    let severity = match matches!(contention(case), Ok(Some(_))) && !cpu.is_empty() {
        true => Severity::Suspect,
        false => Severity::Note,
    };
    judgement.find(
        "low-priority",
        severity,
        format!("fathom gives way to others: {}.", found.join(", ")),
        "Start it with the usual priority (nice 0, no ionice, a cgroup of the usual weight), or keep \
         the machine free of others.",
    );
}

/// The settings that make the process yield on CPUs.
fn cpu_rank(rank: &Rank) -> Vec<String> {
    let nice = (rank.nice > 0).then(|| format!("its nice value is {}", rank.nice));
    let policy = rank.policy.as_ref().map(|policy| format!("its scheduling policy is {policy}"));
    let session = rank.session_nice.filter(|nice| *nice > 0);
    let session =
        session.map(|nice| format!("the nice value of its session (autogroup) is {nice}"));
    let weight = rank.cpu_weight.filter(|weight| *weight < CPU_WEIGHT_MIN);
    let weight = weight.map(|weight| {
        format!("its cgroup's weight for CPU time is {} of the default", percent(weight))
    });
    [nice, policy, session, weight].into_iter().flatten().collect()
}

/// The settings that make its I/Os yield.
fn io_rank(rank: &Rank) -> Option<String> {
    match rank.io? {
        IoPriority::Idle => {}
        IoPriority::BestEffort(level) if IO_LEVEL < level => {}
        IoPriority::BestEffort(_) | IoPriority::RealTime(_) => return None,
    }
    Some(format!("the priority of its I/Os (ionice) is {}", rank.io?))
}

#[cfg(test)]
mod tests;
