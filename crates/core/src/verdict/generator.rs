//! Whether the load generator and its host, rather than the target, set the numbers.

use std::collections::BTreeSet;

use super::case::{Case, counted, listed, share};
use super::{Judgement, Severity, machine};
use crate::calibration::Demand;
use crate::facts::{Counters, CpuTime};
use crate::figures::{percent, significant};
use crate::measure::{Flow, Histogram, StartDelay};
use crate::plan::worker_count;
use crate::spec::Stream;
use crate::stats::carries;
use crate::units::{Quantile, Span};

/// The largest share of the response time that the generator's own lateness may have.
const LATE_SHARE_MAX: f64 = 0.1;
/// A worker with a smaller share of its CPU left than this sets the pace itself.
const WORKER_BUSY: f64 = 0.9;
/// A closed loop that does more than this share of the generator's ceiling spends at least as much
/// of each I/O's time in the generator as elsewhere.
const CEILING_SHARE_MAX: f64 = 0.5;
const STEAL_MAX: f64 = 0.01;
const THROTTLED_MAX: f64 = 0.001;
/// Each wake-up is a wait of some microseconds, and together they take less than this share at any
/// rate. The kernel's limit for real-time threads makes 5 % if it applies.
const REALTIME_WAIT_MAX: f64 = 0.01;
/// Above this share of all CPUs little is left for the application that the load stands for.
const CPU_SHARE_MAX: f64 = 0.25;

/// An open loop whose I/Os started late although a slot was free.
pub(super) fn generator_late(case: &Case, judgement: &mut Judgement) {
    for (index, stream) in case.streams().iter().enumerate() {
        if !stream.pacing.is_open() {
            continue;
        }
        let mut delay = StartDelay::default();
        let mut service = Histogram::default();
        let mut response_sum = 0;
        for worker in case.workers(index) {
            worker.start_delay.iter().for_each(|late| delay.merge(late));
            for flow in worker.cells.iter().flat_map(|cell| &cell.flows) {
                service.merge(&flow.service_time);
                response_sum += flow.response_time().sum();
            }
        }
        let late = &delay.generator;
        let (Some(mean), Some(mean_service)) = (late.mean(), service.mean()) else { continue };
        let share = match response_sum {
            0 => 0.0,
            sum => late.sum() as f64 / sum as f64,
        };
        let p99 = |histogram: &Histogram| {
            let quantile = Quantile(0.99);
            histogram.quantile(quantile).filter(|_| carries(histogram, quantile))
        };
        let tail = p99(late).zip(p99(&service)).is_some_and(|(late, service)| service < late);
        if share > LATE_SHARE_MAX || tail {
            judgement.find(
                "generator-late",
                Severity::Suspect,
                format!(
                    "I/Os{} started {} late on average and {} at the p99 although a slot was free, \
                     against a mean service time of {}: {} of the response time is the load \
                     generator's.",
                    case.of_stream(stream),
                    Span(mean as u64),
                    late.quantile(Quantile(0.99))
                        .map_or("?".to_owned(), |p99| Span(p99).to_string()),
                    Span(mean_service as u64),
                    percent(share),
                ),
                if machine::keeps_from_running(case) {
                    "Find out first what kept fathom from running: the service time is inflated too, \
                     because an I/O that was back waited until the worker saw it."
                } else {
                    "Use more workers, leave a CPU free for each, or trust the service time only."
                },
            );
        }
    }
}

/// A worker of a closed loop that had no CPU time left: it sets the pace, whether it used its CPU
/// itself or waited while others did. In an open loop lateness is seen directly.
pub(super) fn worker_busy(case: &Case, judgement: &mut Judgement) {
    let window = case.trial.record.window.as_secs_f64();
    let polls = |stream: &Stream| {
        let ring = stream.access.ring;
        ring.polled && ring.submission_thread.is_none()
    };
    let closed = case.streams().iter().enumerate().filter(|(_, stream)| !stream.pacing.is_open());
    let (polling, closed): (Vec<_>, Vec<_>) = closed.partition(|(_, stream)| polls(stream));
    let workers = closed.into_iter().flat_map(|(index, _)| case.workers(index));
    let workers: Vec<(Option<Span>, Span)> = workers
        .map(|worker| (worker.cpu, worker.cpu_wait.map_or(Span(0), |wait| wait.time)))
        .collect();
    if window <= 0.0 {
        return;
    }
    if !polling.is_empty() {
        judgement.cannot_ever(
            "worker-busy",
            "looking for completions takes all of a worker's CPU, however little it has to do",
        );
    }
    if workers.iter().any(|(cpu, _)| cpu.is_none()) {
        judgement.cannot("worker-busy", "this backend cannot tell its workers' CPU time");
        return;
    }
    let share = |time: Span| (time.as_secs_f64() / window).min(1.0);
    let shares = workers.iter().map(|&(cpu, wait)| (cpu.unwrap_or(Span(0)), wait));
    let busy = shares.clone().filter(|&(cpu, wait)| share(cpu + wait) > WORKER_BUSY).count();
    let busiest = shares.max_by_key(|&(cpu, wait)| cpu + wait);
    if let Some((cpu, wait)) = busiest.filter(|_| busy > 0) {
        judgement.find(
            "worker-busy",
            Severity::Suspect,
            format!(
                "{busy} of {} ran or waited for a CPU for more than {} of the window, the busiest used \
                 {} of a CPU and waited for one for {}: the load generator may have set the pace, not the target.",
                counted(workers.len() as u64, "worker"),
                percent(WORKER_BUSY),
                percent(share(cpu)),
                percent(share(wait)),
            ),
            "Use more workers, on CPUs that no other program uses.",
        );
    }
}

/// A closed loop that came near to the generator's ceiling. In an open loop lateness is seen
/// directly.
pub(super) fn generator_ceiling(case: &Case, judgement: &mut Judgement) {
    const CODE: &str = "generator-ceiling";
    let closed = case.streams().iter().enumerate().filter(|(_, stream)| !stream.pacing.is_open());
    let indices: Vec<usize> = closed.map(|(index, _)| index).collect();
    let workers: usize = indices.iter().map(|&index| case.workers(index).count()).sum();
    let window = case.trial.record.window.as_secs_f64();
    if workers == 0 || window <= 0.0 {
        return;
    }
    let ceiling = case.host.ceiling.as_ref();
    let Some(ceiling) = ceiling.filter(|ceiling| ceiling.backend == case.trial.backend) else {
        judgement.cannot(CODE, "the load generator's ceiling was not measured");
        return;
    };
    let demands: Vec<Demand> = indices.iter().map(|&index| demand(case, index)).collect();
    let Some(most) = ceiling.iops(&demands, case.host.cpu_time()) else {
        let why = "the load generator's ceiling with this queue depth was not measured";
        judgement.cannot(CODE, why);
        return;
    };
    let ios: u64 = indices.iter().map(|&index| ios(case, index)).sum();
    let iops = ios as f64 / window;
    if iops > CEILING_SHARE_MAX * most {
        judgement.find(
            CODE,
            Severity::Suspect,
            format!(
                "{} IOPS are {} of the {} that {} can do here with nothing behind it ({}; more than \
                 {} is near): the load generator may have set the pace, not the target.",
                significant(iops),
                percent(iops / most),
                significant(most),
                counted(workers as u64, "worker"),
                ceiling.target.name(),
                percent(CEILING_SHARE_MAX),
            ),
            "Use more workers, on CPUs without other programs, or a larger queue depth for each.",
        );
    }
}

/// I/Os of a stream that completed in the window.
fn ios(case: &Case, stream: usize) -> u64 {
    let flows = case.workers(stream).flat_map(|worker| &worker.cells).flat_map(|cell| &cell.flows);
    flows.map(Flow::ios).sum()
}

/// The part of a stream's load that the generator's ceiling depends on.
fn demand(case: &Case, index: usize) -> Demand {
    let pacing = &case.streams()[index].pacing;
    let cpu = case.workers(index).map(|worker| worker.cpu);
    let cpu = cpu.reduce(|sum, one| Some(sum? + one?)).flatten();
    let ios = ios(case, index);
    Demand {
        workers: case.workers(index).count() as u32,
        queue_depth: pacing.queue_depth(),
        open: pacing.is_open(),
        spent_ns: cpu.filter(|_| ios > 0).map(|cpu| cpu.0 as f64 / ios as f64),
    }
}

/// All CPUs' time in the window.
fn cpu_time(case: &Case) -> Option<CpuTime> {
    case.trial.counters.as_ref()?.cpu_time(|_| true)
}

const NO_CPU_TIME: &str = "the CPUs' times in the window are not known";

/// CPU time that the hypervisor gave to other guests.
pub(super) fn cpu_steal(case: &Case, judgement: &mut Judgement) {
    let Some(cpu) = cpu_time(case) else {
        judgement.cannot("cpu-steal", NO_CPU_TIME);
        return;
    };
    let stolen = share(cpu.steal, cpu.total());
    if stolen > STEAL_MAX {
        judgement.find(
            "cpu-steal",
            Severity::Suspect,
            format!(
                "The hypervisor took {} of the CPU time for other guests (more than {} disturbs).",
                percent(stolen),
                percent(STEAL_MAX)
            ),
            "Measure when the host is quiet, or on a machine with CPUs of its own.",
        );
    }
}

/// A total load of all CPUs that would leave too little for an application.
pub(super) fn cpu_share(case: &Case, judgement: &mut Judgement) {
    let Some(cpu) = cpu_time(case) else {
        judgement.cannot("cpu-share", NO_CPU_TIME);
        return;
    };
    let busy = share(cpu.user + cpu.kernel, cpu.total());
    if busy > CPU_SHARE_MAX {
        let own = case.trial.counters.as_ref().map(Counters::process).unwrap_or_default();
        let others = share(cpu.others(own), cpu.total());
        let own = share(own, cpu.total()).min(busy);
        judgement.find(
            "cpu-share",
            Severity::Note,
            format!(
                "{} of all CPUs' time was used, {} by fathom and {} by others ({} in programs, {} in \
                 the kernel, all together).",
                percent(busy),
                percent(own),
                percent(others),
                percent(share(cpu.user, cpu.total())),
                percent(share(cpu.kernel, cpu.total()))
            ),
            if own < others {
                "Most of it is not the load's: measure when the others are quiet, or tie the workers \
                 to CPUs that they leave alone (--cpus)."
            } else {
                "An application on this machine would have less CPU to do this I/O with."
            },
        );
    }
}

/// A cgroup that kept the process off the CPUs.
pub(super) fn cpu_throttled(case: &Case, judgement: &mut Judgement) {
    let throttled = case.trial.counters.as_ref().and_then(|counters| counters.throttled);
    let window = case.trial.record.window;
    match throttled {
        None => judgement
            .cannot("cpu-throttled", "the cgroup does not tell how long it held the process back"),
        Some(throttled) if window > Span(0) && share(throttled, window) > THROTTLED_MAX => {
            let limit = case.host.cpu_limit.map_or(String::new(), |cpus| {
                format!(", whose limit is {} CPUs", significant(cpus))
            });
            judgement.find(
                "cpu-throttled",
                Severity::Suspect,
                format!(
                    "The cgroup{limit} kept the process off the CPUs for {throttled} of {window}."
                ),
                "Raise the cgroup's CPU limit, or offer less load.",
            );
        }
        Some(_) => {}
    }
}

/// Workers that had real-time priority and still did not get the CPUs: the kernel stops such
/// threads when they use more than their share, or other threads had that priority.
pub(super) fn realtime_stopped(case: &Case, judgement: &mut Judgement) {
    const CODE: &str = "realtime-stopped";
    let realtime = |stream: &&Stream| stream.pacing.is_realtime();
    let workers: u32 = case.streams().iter().filter(realtime).map(worker_count).sum();
    let window = case.trial.record.window;
    if workers == 0 || window <= Span(0) {
        return;
    }
    let ours = case.streams().iter().enumerate().filter(|(_, stream)| realtime(stream));
    let waits =
        ours.flat_map(|(index, _)| case.workers(index)).map(|worker| Some(worker.cpu_wait?.time));
    let Some(wait) = waits.reduce(|sum, one| Some(sum? + one?)).flatten() else {
        judgement.cannot(CODE, "the kernel does not tell how long ready threads wait for a CPU");
        return;
    };
    if share(wait, window) <= REALTIME_WAIT_MAX * f64::from(workers) {
        return;
    }
    let who = counted(u64::from(workers), "worker");
    judgement.find(
        CODE,
        Severity::Suspect,
        format!(
            "{who} with real-time priority waited {wait} of {window} for a CPU (more than {} of it \
             is not the wake-ups): the kernel stopped them, as it does with real-time threads that \
             use more than their share of a second, or other real-time threads had the CPU.",
            percent(REALTIME_WAIT_MAX),
        ),
        "Use fewer workers than CPUs, or offer less load for each; see kernel.sched_rt_runtime_us, \
         and who else has real-time priority (ps -eo rtprio,comm).",
    );
}

pub(super) fn more_workers_than_cpus(case: &Case, judgement: &mut Judgement) {
    let workers: u64 = case.streams().iter().map(|stream| u64::from(worker_count(stream))).sum();
    match u64::from(case.host.cpus) {
        0 => judgement.cannot("more-workers-than-cpus", "the number of CPUs is not known"),
        cpus if cpus < workers => judgement.find(
            "more-workers-than-cpus",
            Severity::Note,
            format!("{workers} workers shared {}.", counted(cpus, "CPU")),
            "Use at most one worker for each CPU: the queue depth does not need more.",
        ),
        _ => share_cpus(case, judgement),
    }
}

/// Workers that are tied to the same CPU while others may be free.
fn share_cpus(case: &Case, judgement: &mut Judgement) {
    let tied: Vec<u32> = case.tied_cpus().flatten().collect();
    let cpus = tied.iter().collect::<BTreeSet<_>>().len();
    if cpus < tied.len() {
        judgement.find(
            "more-workers-than-cpus",
            Severity::Note,
            format!("{} workers were tied to {}.", tied.len(), counted(cpus as u64, "CPU")),
            "Name a CPU for each worker: two on one take turns.",
        );
    }
}

/// Submission threads that had to share CPUs with the workers that they serve: each polls its queue
/// all the time, and while one of the two runs the other cannot.
pub(super) fn submission_threads_crowded(case: &Case, judgement: &mut Judgement) {
    let served = case.streams().iter().filter(|s| s.access.ring.submission_thread.is_some());
    let threads: u64 = served.map(|stream| u64::from(worker_count(stream))).sum();
    if threads == 0 {
        return;
    }
    let workers: u64 = case.streams().iter().map(|stream| u64::from(worker_count(stream))).sum();
    if case.host.cpus == 0 {
        judgement.cannot("submission-threads-crowded", "the number of CPUs is not known");
        return;
    }
    let cpus = f64::from(case.host.cpus);
    let allowed = case.host.cpu_limit.map_or(cpus, |limit| limit.min(cpus));
    if allowed < (workers + threads) as f64 {
        judgement.find(
            "submission-threads-crowded",
            Severity::Suspect,
            format!(
                "{} and {} of the kernel shared {}.",
                counted(workers, "worker"),
                match threads {
                    n if n == workers => "as many submission threads".to_owned(),
                    n => counted(n, "submission thread"),
                },
                match allowed {
                    1.0 => "1 CPU".to_owned(),
                    // A limit may be a part of a CPU.
                    _ => format!("{} CPUs", (allowed * 100.0).round() / 100.0),
                },
            ),
            "Leave a CPU for each worker and one for its submission thread, or drop --sqpoll: without \
             a CPU of its own such a thread makes everything slower, often many times.",
        );
    }
}

/// On a machine with several nodes, workers that are tied to other nodes than the disks' nodes; if
/// workers may run on any node, their distance is not known.
pub(super) fn numa_remote(case: &Case, judgement: &mut Judgement) {
    const CODE: &str = "numa-remote";
    if case.host.numa_nodes <= 1 {
        return;
    }
    let nodes: Vec<u32> = case.disks().filter_map(|disk| disk.disk.as_ref()?.numa_node).collect();
    let named =
        || listed(nodes.iter().map(u32::to_string).collect::<Vec<_>>().iter().map(|s| &**s));
    if nodes.is_empty() {
        return judgement.cannot(CODE, "the disks do not tell their NUMA node");
    }
    let node = |cpu: u32| case.host.cpu_places.iter().find(|place| place.number == cpu)?.node;
    let known: Option<Vec<u32>> = case.tied_cpus().map(|cpu| node(cpu?)).collect();
    let Some(known) = known else {
        let why = format!(
            "the disks are at NUMA node {} of {}, and workers run on any: tie them to it with --cpus \
             device for the shortest way",
            named(),
            case.host.numa_nodes
        );
        return judgement.cannot(CODE, why);
    };
    let remote = known.iter().filter(|node| !nodes.contains(node)).count() as u64;
    if remote > 0 {
        judgement.find(
            CODE,
            Severity::Note,
            format!(
                "{remote} of {} ran on another NUMA node than {}, which the disks are at.",
                counted(known.len() as u64, "worker"),
                named()
            ),
            "Tie the workers to the node of the disks with --cpus device for the shortest way.",
        );
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::Invented;
    use super::*;
    use crate::calibration::Cost;
    use crate::facts::CpuPlace;
    use crate::spec::{BackendKind, Loop, Pacing, SubmissionThread, Workers};

    /// An open loop of 1000 I/Os per second of 1 ms, of which `count` started late by `delay_ns`.
    fn late(count: u64, delay_ns: u64) -> Invented {
        let mut invented = Invented::open_reads(1000.0);
        invented.set_times(10_000, 1_000_000);
        let delays = &mut invented.worker().start_delay.get_or_insert_default().generator;
        (0..10_000 - count).for_each(|_| delays.record(1000));
        (0..count).for_each(|_| delays.record(delay_ns));
        invented
    }

    #[test]
    fn a_late_generator_is_suspect() {
        late(10_000, 90_000).has_none_of(&["generator-late"]);
        late(10_000, 120_000).has("generator-late", Severity::Suspect);
        // Few I/Os, but in the tail, where their delay looks like the target's.
        late(150, 900_000).has_none_of(&["generator-late"]);
        let finding = late(150, 2_000_000).has("generator-late", Severity::Suspect);
        assert!(finding.evidence.contains("2 ms at the p99"), "{}", finding.evidence);
        Invented::open_reads(1000.0).has_none_of(&["generator-late"]);
    }

    #[test]
    fn a_worker_without_cpu_left_is_suspect() {
        let mut invented = Invented::reads();
        invented.worker().cpu = Some(Span::from_secs(53));
        invented.has_none_of(&["worker-busy"]);
        invented.worker().cpu = Some(Span::from_secs(55));
        invented.has("worker-busy", Severity::Suspect);
        invented.worker().cpu = None;
        invented.has_none_of(&["worker-busy"]);
        invented.is_unchecked("worker-busy");
    }

    #[test]
    fn a_worker_that_waits_for_the_rest_of_its_cpu_is_saturated() {
        let mut invented = Invented::reads();
        invented.worker().cpu = Some(Span::from_secs(40));
        invented.set_cpu_wait(Span::from_secs(13));
        invented.has_none_of(&["worker-busy"]);
        invented.set_cpu_wait(Span::from_secs(19));
        let finding = invented.has("worker-busy", Severity::Suspect);
        let expected = "1 of 1 worker ran or waited for a CPU for more than 90 % of the window, the \
                        busiest used 67 % of a CPU and waited for one for 32 %";
        assert!(finding.evidence.starts_with(expected), "{}", finding.evidence);
        invented.worker().cpu_wait = None;
        invented.has_none_of(&["worker-busy"]);
    }

    #[test]
    fn what_others_used_is_told_apart_from_fathoms_own() {
        let mut invented = Invented::reads();
        let busy = CpuTime {
            user: Span::from_secs(50),
            kernel: Span::from_secs(9),
            idle: Span::from_secs(1),
            steal: Span(0),
        };
        invented.counters().cpus = Vec::from([(0, busy), (1, busy)]);
        invented.counters().process_kernel = Span::from_ms(1200);
        let finding = invented.has("cpu-share", Severity::Note);
        let expected = "98 % of all CPUs' time was used, 1 % by fathom and 97 % by others";
        assert!(finding.evidence.starts_with(expected), "{}", finding.evidence);
        assert!(finding.advice.starts_with("Most of it is not the load's"), "{}", finding.advice);
        invented.counters().process_kernel = Span::from_secs(90);
        let finding = invented.has("cpu-share", Severity::Note);
        assert!(finding.advice.starts_with("An application"), "{}", finding.advice);
    }

    #[test]
    fn a_closed_loop_near_the_generators_ceiling_is_suspect() {
        // 1000 IOPS with one worker. 400 us per I/O allow at most 2500, and 600 us allow 1667.
        let mut invented = Invented::reads();
        invented.worker().cpu = None;
        let set = |invented: &mut Invented, per_io_us: f64| {
            let ceiling = invented.host.ceiling.as_mut().unwrap();
            ceiling.costs = Vec::from([Cost { queue_depth: 1, per_io_ns: per_io_us * 1e3 }]);
        };
        set(&mut invented, 400.0);
        invented.has_none_of(&["generator-ceiling"]);
        set(&mut invented, 600.0);
        let finding = invented.has("generator-ceiling", Severity::Suspect);
        let expected = "1,000 IOPS are 60 % of the 1,667 that 1 worker can do here with nothing \
                        behind it (NOP ring; more than 50 % is near)";
        assert!(finding.evidence.starts_with(expected), "{}", finding.evidence);
        // The CPU time per I/O shows that the worker can do more than the calibration found.
        invented.worker().cpu = Some(Span::from_secs(6));
        invented.has_none_of(&["generator-ceiling"]);
        // Half a CPU equals half a worker.
        invented.worker().cpu = None;
        set(&mut invented, 400.0);
        invented.host.cpu_limit = Some(0.5);
        invented.has("generator-ceiling", Severity::Suspect);
    }

    #[test]
    fn a_ceiling_that_is_not_known_is_not_taken_for_a_high_one() {
        let mut open = Invented::open_reads(1000.0);
        open.host.ceiling = None;
        assert!(open.judge().unchecked.is_empty());
        let mut invented = Invented::reads();
        invented.trial.backend = BackendKind::Sync;
        invented.is_unchecked("generator-ceiling");
        invented.host.ceiling.as_mut().unwrap().backend = BackendKind::Sync;
        assert!(invented.judge().unchecked.is_empty());
        invented.stream().pacing = Pacing::closed(64);
        invented.is_unchecked("generator-ceiling");
        invented.host.ceiling = None;
        invented.is_unchecked("generator-ceiling");
    }

    #[test]
    fn cpu_times_are_judged_together() {
        let mut invented = Invented::reads();
        let cpu = |user, kernel, idle, steal| CpuTime {
            user: Span::from_ms(user),
            kernel: Span::from_ms(kernel),
            idle: Span::from_ms(idle),
            steal: Span::from_ms(steal),
        };
        let mut set = |one: CpuTime, other: CpuTime| {
            invented.counters().cpus = Vec::from([(0, one), (1, other)]);
            invented.codes()
        };
        assert_eq!(set(cpu(200, 300, 495, 5), cpu(0, 0, 1000, 0)), [""; 0]);
        assert_eq!(set(cpu(200, 300, 460, 40), cpu(0, 0, 1000, 0)), ["cpu-steal"]);
        assert_eq!(set(cpu(200, 300, 500, 0), cpu(100, 0, 900, 0)), ["cpu-share"]);
    }

    #[test]
    fn a_throttled_process_is_suspect() {
        let mut invented = Invented::reads();
        invented.counters().throttled = Some(Span::from_ms(50));
        invented.has_none_of(&["cpu-throttled"]);
        invented.counters().throttled = Some(Span::from_ms(70));
        invented.host.cpu_limit = Some(1.5);
        let finding = invented.has("cpu-throttled", Severity::Suspect);
        assert!(finding.evidence.contains("whose limit is 1.50 CPUs"), "{}", finding.evidence);
        invented.counters().throttled = None;
        invented.is_unchecked("cpu-throttled");
    }

    #[test]
    fn real_time_priority_that_does_not_help_is_suspect() {
        let mut invented = Invented::open_reads(1000.0);
        let window = invented.trial.record.window;
        invented.has_none_of(&["realtime-stopped"]);
        assert!(invented.judge().unchecked.is_empty());
        invented.worker().cpu_wait = None;
        if let Loop::Open { realtime, .. } = &mut invented.stream().pacing.pace {
            *realtime = true;
        }
        invented.is_unchecked("realtime-stopped");
        invented.set_cpu_wait(Span(window.0 / 101));
        invented.has_none_of(&["realtime-stopped"]);
        invented.set_cpu_wait(Span(window.0 / 20));
        let finding = invented.has("realtime-stopped", Severity::Suspect);
        assert!(finding.evidence.contains("1 worker with"), "{}", finding.evidence);
        assert!(finding.evidence.contains("waited 3 s of 60 s"), "{}", finding.evidence);
        // With several workers, the wait is the sum over all of them.
        invented.set_cpu_wait(Span(window.0 / 60));
        invented.has("realtime-stopped", Severity::Suspect);
        invented.stream().workers = Workers::Total(2);
        invented.has_none_of(&["realtime-stopped"]);
    }

    #[test]
    fn without_counters_the_host_is_unchecked() {
        let mut invented = Invented::reads();
        invented.trial.counters = None;
        assert!(invented.codes().is_empty());
        for code in ["cpu-steal", "cpu-share", "cpu-throttled", "cached-below", "foreign-io"] {
            invented.is_unchecked(code);
        }
    }

    #[test]
    fn more_workers_than_cpus_is_a_note() {
        let mut invented = Invented::reads();
        invented.stream().workers = Workers::PerTarget(4);
        invented.has_none_of(&["more-workers-than-cpus"]);
        invented.stream().workers = Workers::Total(5);
        invented.has("more-workers-than-cpus", Severity::Note);
        invented.host.cpus = 0;
        invented.is_unchecked("more-workers-than-cpus");
    }

    #[test]
    fn a_submission_thread_needs_a_cpu_beside_its_worker() {
        let mut invented = Invented::reads();
        invented.stream().workers = Workers::Total(3);
        invented.has_none_of(&["submission-threads-crowded"]);
        invented.stream().access.ring.submission_thread = Some(SubmissionThread { cpu: None });
        let finding = invented.has("submission-threads-crowded", Severity::Suspect);
        assert_eq!(
            finding.evidence,
            "3 workers and as many submission threads of the kernel shared 4 CPUs."
        );
        invented.stream().workers = Workers::Total(2);
        invented.has_none_of(&["submission-threads-crowded"]);
        invented.host.cpu_limit = Some(1.5);
        let finding = invented.has("submission-threads-crowded", Severity::Suspect);
        assert!(finding.evidence.ends_with("shared 1.5 CPUs."), "{}", finding.evidence);
        invented.stream().workers = Workers::Total(60);
        (invented.host.cpus, invented.host.cpu_limit) = (100, None);
        let finding = invented.has("submission-threads-crowded", Severity::Suspect);
        assert!(finding.evidence.ends_with("shared 100 CPUs."), "{}", finding.evidence);
        invented.host.cpus = 0;
        invented.is_unchecked("submission-threads-crowded");
    }

    #[test]
    fn a_worker_that_polls_is_busy_by_itself() {
        let mut invented = Invented::reads();
        let window = invented.trial.record.window;
        invented.worker().cpu = Some(window);
        invented.has("worker-busy", Severity::Suspect);
        invented.stream().access.ring.polled = true;
        invented.has_none_of(&["worker-busy"]);
        invented.is_unchecked("worker-busy");
        // In this mode the kernel's thread polls.
        invented.stream().access.ring.submission_thread = Some(SubmissionThread { cpu: None });
        invented.has("worker-busy", Severity::Suspect);
    }

    #[test]
    fn distance_is_unknown_on_several_nodes_only() {
        let mut invented = Invented::reads();
        invented.disk().disk.as_mut().unwrap().numa_node = Some(1);
        assert!(invented.judge().unchecked.is_empty());
        invented.host.numa_nodes = 2;
        invented.is_unchecked("numa-remote");
        let place = |number| CpuPlace { number, package: None, core: None, node: Some(number / 2) };
        invented.host.cpu_places = (0..4).map(place).collect();
        invented.stream().workplace.cpus = Vec::from([2, 1]);
        invented.has_none_of(&["numa-remote"]);
        assert!(invented.judge().unchecked.is_empty());
        invented.stream().workers = Workers::Total(2);
        let finding = invented.has("numa-remote", Severity::Note);
        assert!(finding.evidence.starts_with("1 of 2 workers"), "{}", finding.evidence);
    }

    #[test]
    fn workers_that_are_tied_to_one_cpu_are_a_note() {
        let mut invented = Invented::reads();
        invented.stream().workplace.cpus = Vec::from([2, 3]);
        invented.stream().workers = Workers::Total(2);
        invented.has_none_of(&["more-workers-than-cpus"]);
        invented.stream().workers = Workers::Total(3);
        let finding = invented.has("more-workers-than-cpus", Severity::Note);
        assert!(finding.evidence.contains("3 workers were tied to 2 CPUs"), "{}", finding.evidence);
    }
}
