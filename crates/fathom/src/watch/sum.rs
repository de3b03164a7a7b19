//! What happened from the beginning to the end, for the last lines of `fathom watch`.

use std::collections::BTreeMap;

use fathom_core::figures::{number, percent, time};
use fathom_core::watch::{Busiest, Caused, Counted, Observed, ObservedFlow};
use fathom_core::{Bytes, Quantile, Span};
use fathom_engine::watch::{DiskWatch, WatchedInterval};
use fathom_report::watched::{WatchEnd, WatchHeader, WatchedDisk, WatchedResult};

/// The programs that are named; the others are counted together.
const PROGRAMS: usize = 5;

/// Everything since the beginning.
#[derive(Clone, Debug, Default)]
pub struct Sum {
    disks: Vec<(Option<Counted>, Option<Observed>)>,
    busiest_minutes: Vec<Busiest>,
    length: Span,
    lost: u64,
    own_cpu: Span,
}

impl Sum {
    /// Adds an interval.
    pub fn add(&mut self, interval: &WatchedInterval) {
        let (start, end) = (self.length, self.length + interval.length);
        self.disks.resize(interval.disks.len(), (None, None));
        self.busiest_minutes
            .resize_with(interval.disks.len(), || Busiest::new(Span::from_secs(60)));
        for (busiest, slice) in self.busiest_minutes.iter_mut().zip(&interval.disks) {
            if let Some(new) = &slice.counted {
                busiest.push(start, end, *new);
            }
        }
        for ((counted, observed), slice) in self.disks.iter_mut().zip(&interval.disks) {
            if let Some(new) = &slice.counted {
                counted.get_or_insert_default().add(new);
            }
            if let Some(new) = &slice.observed {
                observed.get_or_insert_default().merge(new);
            }
        }
        self.length += interval.length;
        self.lost += interval.lost;
        self.own_cpu += interval.own_cpu;
    }

    /// The same as the file of a watch would tell it, without what happened when.
    pub fn result(&self, header: WatchHeader, watch: &DiskWatch) -> WatchedResult {
        let disk =
            |((counted, observed), busiest): (&(Option<Counted>, Option<Observed>), &Busiest)| {
                let mut programs: BTreeMap<String, Caused> = BTreeMap::new();
                for (program, caused) in observed.iter().flat_map(|one| &one.programs) {
                    programs.entry(watch.program(*program).to_owned()).or_default().add(caused);
                }
                WatchedDisk {
                    counted: *counted,
                    observed: observed.clone(),
                    busiest_minute: busiest.clone(),
                    programs,
                    end: self.length,
                    ..WatchedDisk::default()
                }
            };
        WatchedResult {
            disks: self.disks.iter().zip(&self.busiest_minutes).map(disk).collect(),
            end: Some(WatchEnd { length_ns: self.length.0, exit_code: None }),
            lost_events: self.lost,
            own_cpu: self.own_cpu,
            conditions: Vec::new(),
            header,
        }
    }

    /// The lines that say it, disk by disk.
    pub fn lines(&self, watch: &DiskWatch) -> Vec<String> {
        let mut lines = Vec::new();
        for (disk, (counted, observed)) in watch.disks().iter().zip(&self.disks) {
            let Some(counted) = counted else { continue };
            if counted.ios() + counted.flushes.ios + counted.discards.ios == 0 {
                lines.push(format!("{}: no I/O", disk.name));
                continue;
            }
            let flow = |flow: fn(&Observed) -> &ObservedFlow| observed.as_ref().map(flow);
            let seen = observed.as_ref().and_then(|observed| counted.seen_by(observed));
            let seen = seen.map_or(String::new(), |seen| {
                format!("; events saw {} of its requests", percent(seen))
            });
            lines.push(format!("{}: {}{seen}", disk.name, used(counted)));
            for (name, counted, observed) in [
                ("reads", counted.reads, flow(|it| &it.reads)),
                ("writes", counted.writes, flow(|it| &it.writes)),
                ("discards", counted.discards, flow(|it| &it.discards)),
                ("flushes", counted.flushes, flow(|it| &it.flushes)),
            ] {
                if counted.ios > 0 {
                    let size = Bytes(counted.bytes.0);
                    let moved = if size.is_zero() { String::new() } else { format!(", {size}") };
                    let ios = number(counted.ios as f64);
                    let times = observed
                        .and_then(times)
                        .or_else(|| counted.mean_time().map(|mean| format!("mean {}", time(mean))));
                    let times = times.map(|times| format!(", {times}")).unwrap_or_default();
                    lines.push(format!("  {name:<8} {ios}{moved}{times}"));
                }
            }
            let programs = observed.as_ref().map(|it| by_share(&it.programs)).unwrap_or_default();
            if !programs.is_empty() {
                let named = programs.iter().take(PROGRAMS).map(|(program, share)| {
                    format!("{} {}", watch.program(*program), percent(*share))
                });
                let named: Vec<String> = named.collect();
                lines.push(format!("  by       {}", named.join(", ")));
            }
        }
        if self.lost > 0 {
            lines.push(format!(
                "the kernel dropped {} events: counts and bytes are exact, times and programs lack \
                 these",
                number(self.lost as f64)
            ));
        }
        let share = self.own_cpu.0 as f64 / self.length.0.max(1) as f64;
        lines.push(format!("watching took {} of a CPU", percent(share)));
        lines
    }
}

/// "busy 34 %, 1.2 in flight on average".
fn used(counted: &Counted) -> String {
    format!(
        "busy {}, {} in flight on average",
        percent(counted.utilization()),
        number(counted.mean_queue())
    )
}

/// "mean 0.210 ms (queue 0.010, device 0.200), p50 ..., p99 ..., longest ...".
fn times(flow: &ObservedFlow) -> Option<String> {
    let all = &flow.response_time;
    let mut words = format!("mean {}", time(all.mean()?));
    if let (Some(queue), Some(device)) = (flow.queue_time.mean(), flow.device_time.mean()) {
        words += &format!(" (queue {}, device {})", time(queue), time(device));
    }
    for (name, quantile) in [("p50", 0.5), ("p99", 0.99), ("p99.9", 0.999)] {
        let carries = all.count() as f64 * (1.0 - quantile) >= 10.0;
        if let Some(value) = all.quantile(Quantile(quantile)).filter(|_| carries) {
            words += &format!(", {name} {}", time(value as f64));
        }
    }
    Some(words + &format!(", longest {}", time(all.max()? as f64)))
}

/// The programs by their share of all I/Os, the largest first.
pub fn by_share(programs: &BTreeMap<u32, Caused>) -> Vec<(u32, f64)> {
    let all: u64 = programs.values().map(Caused::ios).sum();
    let share =
        |(program, caused): (&u32, &Caused)| (*program, caused.ios() as f64 / all.max(1) as f64);
    let mut shares: Vec<(u32, f64)> = programs.iter().map(share).collect();
    shares.sort_by(|one, other| other.1.total_cmp(&one.1));
    shares
}
