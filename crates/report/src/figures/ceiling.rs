//! The load generator's share of a result: its ceiling, and the CPU time of others.

use fathom_core::calibration::Demand;
use fathom_core::count;
use fathom_core::figures::{percent, time};

use super::workload::counted_workers;
use super::{per_second, short_rate};
use crate::document::{Counters, Document, NullTarget, Trial, Worker};

/// The findings of a trial whose workers did not have the CPUs to themselves. They could not have
/// reached a ceiling that was measured on idle CPUs.
const CONTENDED: [&str; 3] = ["cpu-contention", "cpu-steal", "cpu-throttled"];

/// CPU time of io_uring's own threads, where they used any.
pub fn io_wq_cpu(counters: &Counters) -> Option<String> {
    let cpu = counters.io_wq?.cpu_ns.filter(|&ns| ns > 0)?;
    Some(time(cpu as f64))
}

/// Other users of the CPUs, and how long the workers waited for a CPU, if the result has these
/// figures.
pub fn others_cpu(counters: &Counters, workers: &[Worker]) -> Option<String> {
    let busy: u64 = counters.cpus.iter().map(|cpu| cpu.user_ns + cpu.kernel_ns).sum();
    let idle: u64 = counters.cpus.iter().map(|cpu| cpu.idle_ns + cpu.steal_ns).sum();
    let others = busy.saturating_sub(counters.process_user_ns + counters.process_kernel_ns);
    let waits = workers.iter().map(|worker| worker.cpu_wait_ns);
    let wait = waits.reduce(|sum, one| Some(sum? + one?)).flatten()?;
    let share = others as f64 / (busy + idle).max(1) as f64;
    Some(format!(
        "others had {} of the CPUs' time, and the workers waited {} for a CPU",
        percent(share),
        time(wait as f64)
    ))
}

/// The load generator's ceiling for a trial.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ceiling {
    /// I/Os per second with nothing behind the backend.
    pub iops: f64,
    /// The ceiling as a multiple of the trial's rate; none if the trial did no I/O.
    pub times: Option<f64>,
    /// The target of the calibration.
    pub target: NullTarget,
}

/// Whether the workers of a trial did not have the CPUs to themselves.
pub fn is_contended(trial: &Trial) -> bool {
    trial.findings.iter().any(|finding| CONTENDED.contains(&finding.code.as_str()))
}

/// The load generator's ceiling with a trial's workers and queue depth; none if it is not known.
pub fn ceiling(document: &Document, trial: &Trial) -> Option<Ceiling> {
    let host = document.header.host.as_ref()?;
    let ceiling = host.ceiling.as_ref().filter(|ceiling| ceiling.backend == trial.backend)?;
    let demands: Vec<Demand> = trial
        .point
        .streams
        .iter()
        .zip(0..)
        .map(|(stream, index)| {
            let workers: Vec<_> =
                trial.workers.iter().filter(|worker| worker.stream == index).collect();
            let cells = workers.iter().flat_map(|worker| &worker.cells);
            let ios: u64 = cells.map(|cell| cell.read.ios + cell.write.ios).sum();
            let cpu = workers.iter().map(|worker| worker.cpu_ns.map(|ns| ns as f64));
            let cpu = cpu.reduce(|sum, one| Some(sum? + one?)).flatten();
            Demand {
                workers: workers.len() as u32,
                queue_depth: stream.pacing.queue_depth(),
                open: stream.pacing.is_open(),
                spent_ns: cpu.filter(|_| ios > 0).map(|cpu| cpu / ios as f64),
            }
        })
        .collect();
    let cpus = f64::from(host.cpus);
    let cpus = host.cpu_limit.map_or(cpus, |limit| limit.min(cpus));
    let iops = ceiling.iops(&demands, cpus).filter(|iops| iops.is_finite())?;
    let done = per_second(trial.total(None).ios(), trial.window()).filter(|done| *done > 0.0);
    Some(Ceiling { iops, times: done.map(|done| iops / done), target: ceiling.target })
}

/// "42 times as many: 8.77M IOPS from 1 worker on a ring that does nothing".
pub fn ceiling_in_words(ceiling: &Ceiling, trial: &Trial) -> String {
    format!(
        "{}{} IOPS from {} on {}",
        ceiling.times.map_or(String::new(), |times| format!("{}: ", times_as_many(times))),
        short_rate(ceiling.iops),
        counted_workers(trial.workers.len() as u64),
        null_target(ceiling.target)
    )
}

/// "42 times as many", "1.3 times as many"; two digits are all that its precision allows.
pub fn times_as_many(times: f64) -> String {
    let text = match times {
        t if t < 9.95 => format!("{t:.1}"),
        t if t < 99.5 => format!("{t:.0}"),
        t => {
            let unit = 10_f64.powi(t.log10().floor() as i32 - 1);
            count(((t / unit).round() * unit) as u64)
        }
    };
    format!("{text} times as many")
}

/// The stand-in for a device when the generator is measured by itself.
pub fn null_target(target: NullTarget) -> &'static str {
    match target {
        NullTarget::NopRing => "a ring that does nothing",
        NullTarget::Zeros => "/dev/zero",
    }
}
