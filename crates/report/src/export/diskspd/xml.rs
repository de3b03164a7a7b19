//! DiskSpd's result as XML. Scripts add up the figures of threads and targets, divide them by
//! `TestTimeSeconds`, and find a percentile by the exact text of its number.

use std::fmt::{Display, Write as _};

use fathom_core::markup;
use fathom_core::measure::{Direction, Histogram};

use super::processors::{self, CpuShares, Topology};
use super::rows::{self, ThreadRow, ms};
use super::series::{self, BucketTimes, Iops};
use super::{Profile, TimeSpan};
use crate::document::{Document, Trial};

/// All of it, without a declaration at the beginning, as in DiskSpd.
pub(super) fn results(document: &Document, profile: &Profile) -> String {
    let mut out = Out { text: String::new(), depth: 0 };
    out.within("Results", |out| {
        system(out, document);
        out.text.push_str(&profile.description);
        for (index, span) in profile.time_spans.iter().enumerate() {
            let trial = document.trials.get(index).filter(|trial| trial.window_ns > 0);
            out.within("TimeSpan", |out| match trial {
                Some(trial) => time_span(out, document, trial, span),
                None => out.value(
                    "Error",
                    "The test was interrupted before the measurements began. No results are \
                     displayed.",
                ),
            });
        }
    });
    out.text
}

fn system(out: &mut Out, document: &Document) {
    let header = &document.header;
    let host = header.host.clone().unwrap_or_default();
    out.within("System", |out| {
        out.value("ComputerName", markup(&host.name));
        out.within("Tool", |out| {
            out.value("Version", format!("fathom {}", markup(&header.fathom_version)));
        });
        let start = header.created.get(..19).unwrap_or_default();
        let start = start.replace('-', "/").replace('T', " ");
        out.value("RunTime", format!("{} UTC", markup(&start)));
        out.within("ProcessorTopology", |out| {
            let cpus = host.cpus;
            // A mask has room for the 64 CPUs of a group of Windows.
            let mask = match cpus {
                0..64 => format!(" ActiveProcessorMask=\"0x{:x}\"", (1u64 << cpus) - 1),
                _ => String::new(),
            };
            out.line(&format!(
                "<Group Group=\"0\" MaximumProcessors=\"{cpus}\" ActiveProcessors=\"{cpus}\"{mask}/>"
            ));
            if let Some(topology) = Topology::of(&host) {
                self::topology(out, &topology);
            }
        });
    });
}

/// The nodes, sockets and cores, each with the CPUs that it holds as a mask.
fn topology(out: &mut Out, topology: &Topology) {
    // Only the CPUs of the first group of Windows, which has 64, are in its mask.
    let group = |cpus: &[u32]| {
        let mask = cpus.iter().filter(|&&cpu| cpu < 64).fold(0_u64, |mask, cpu| mask | 1 << cpu);
        format!("Group=\"0\" Processors=\"0x{mask:x}\"")
    };
    for (number, node) in topology.nodes.iter().enumerate() {
        out.line(&format!("<Node Node=\"{number}\" {}/>", group(&node.cpus)));
    }
    for socket in &topology.sockets {
        out.within("Socket", |out| out.line(&format!("<Group {}/>", group(&socket.cpus))));
    }
    for (number, core) in topology.cores.iter().enumerate() {
        out.line(&format!("<Core Core=\"{number}\" {}/>", group(&core.cpus)));
    }
}

fn time_span(out: &mut Out, document: &Document, trial: &Trial, span: &TimeSpan) {
    out.value("TestTimeSeconds", format!("{:.2}", trial.window().as_secs_f64()));
    out.value("ThreadCount", span.threads);
    out.value("RequestCount", span.requests.unwrap_or(0));
    out.value("ProcCount", document.header.host.as_ref().map_or(0, |host| host.cpus));
    let host = document.header.host.as_ref();
    cpu_utilization(out, trial, host.and_then(Topology::of).as_ref());
    let rows = rows::rows(document, trial, span);
    if span.service_times {
        service_times(out, &rows);
    }
    if let Some(bucket) = span.io_bucket {
        let series = series::series(trial, bucket);
        let unrest = |direction| series::deviation(&series::of(direction, &series));
        out.within("Iops", |out| {
            deviations(out, &rows.iter().collect::<Vec<_>>(), &unrest);
            let times = series::bucket_times(trial, bucket);
            buckets(out, &series, &times, bucket.0 / 1_000_000);
        });
    }
    for thread in rows.chunk_by(|one, next| one.thread == next.thread) {
        out.within("Thread", |out| {
            out.value("Id", thread[0].thread);
            for row in thread {
                out.within("Target", |out| target(out, trial, span, row));
            }
        });
    }
}

fn cpu_utilization(out: &mut Out, trial: &Trial, topology: Option<&Topology>) {
    let Some(counters) = &trial.counters else { return };
    let percent = |out: &mut Out, cpu: &CpuShares| {
        for (name, share) in [
            ("UsagePercent", cpu.usage()),
            ("UserPercent", cpu.user),
            ("KernelPercent", cpu.kernel),
            ("IdlePercent", cpu.idle),
        ] {
            out.value(name, format!("{share:.2}"));
        }
    };
    let (cpus, average) = processors::cpus(counters);
    out.within("CpuUtilization", |out| {
        for cpu in &cpus {
            out.within("CPU", |out| {
                let place = topology.and_then(|topology| topology.place(cpu.number));
                if let Some([socket, node, _]) = place {
                    out.value("Socket", socket);
                    out.value("Node", node);
                }
                out.value("Group", 0);
                if let Some([.., core]) = place {
                    out.value("Core", core);
                }
                out.value("Id", cpu.number);
                percent(out, cpu);
            });
        }
        out.within("Average", |out| percent(out, &average));
    });
}

/// Reads, writes and all, each with the word in the names of its elements.
const PARTS: [(&str, Option<Direction>); 3] =
    [("Read", Some(Direction::Read)), ("Write", Some(Direction::Write)), ("", None)];

fn service_times(out: &mut Out, rows: &[ThreadRow<'_>]) {
    let times = PARTS.map(|(name, direction)| (name, rows::sum(rows, direction).times));
    let counts: String = times
        .iter()
        .map(|(name, times)| {
            let of = if name.is_empty() { "Total" } else { name };
            format!(" {of}HistoBuckets=\"{}\"", times.to_sparse().buckets().count())
        })
        .collect();
    out.within_with("Latency", &counts, |out| {
        for (name, times) in &times {
            let of = if name.is_empty() { "Total" } else { name };
            mean_and_deviation(out, times, &format!("Average{of}Milliseconds"), name);
        }
        let whole = (1..=99).map(|percent| (percent.to_string(), percent * 10_000_000));
        let nines = (1..=7).map(|nines| {
            (format!("99.{}", "9".repeat(nines)), 1_000_000_000 - 10u64.pow(7 - nines as u32))
        });
        percentile(out, "0", &times, &Histogram::min);
        for (text, share) in whole.chain(nines) {
            percentile(out, &text, &times, &|times| rows::percentile(times, share));
        }
        percentile(out, "100", &times, &Histogram::max);
    });
}

fn percentile(
    out: &mut Out,
    text: &str,
    times: &[(&str, Histogram)],
    value: &dyn Fn(&Histogram) -> Option<u64>,
) {
    out.within("Bucket", |out| {
        out.value("Percentile", text);
        for (name, times) in times {
            let of = if name.is_empty() { "Total" } else { name };
            if let Some(ns) = value(times) {
                out.value(&format!("{of}Milliseconds"), format!("{:.3}", ms(ns as f64)));
            }
        }
    });
}

fn mean_and_deviation(out: &mut Out, times: &Histogram, mean_name: &str, name: &str) {
    if let (Some(mean), Some(deviation)) = (times.mean(), times.standard_deviation()) {
        out.value(mean_name, format!("{:.3}", ms(mean)));
        out.value(&format!("{name}LatencyStdev"), format!("{:.3}", ms(deviation)));
    }
}

/// The standard deviations of the IOPS of the existing directions.
fn deviations(out: &mut Out, rows: &[&ThreadRow<'_>], unrest: &dyn Fn(Option<Direction>) -> f64) {
    for (name, direction) in PARTS {
        if rows::sum(rows.iter().copied(), direction).ios > 0 {
            out.value(&format!("{name}IopsStdDev"), format!("{:.3}", unrest(direction)));
        }
    }
}

fn buckets(out: &mut Out, series: &[Iops], times: &[[BucketTimes; 2]], bucket_ms: u64) {
    for (index, [read, write]) in series.iter().enumerate() {
        out.line(&format!(
            "<Bucket SampleMillisecond=\"{}\" Read=\"{read:.0}\" Write=\"{write:.0}\" \
             Total=\"{:.0}\"{}/>",
            bucket_ms * (index as u64 + 1),
            read + write,
            times.get(index).map_or(String::new(), in_attributes)
        ));
    }
}

/// The times of an interval as attributes, for reads and for writes.
fn in_attributes(times: &[BucketTimes; 2]) -> String {
    let mut out = String::new();
    for (name, times) in ["Read", "Write"].iter().zip(times) {
        for (what, ns) in [
            ("MinLatencyMilliseconds", Some(times.min as f64)),
            ("MaxLatencyMilliseconds", Some(times.max as f64)),
            ("AvgLatencyMilliseconds", Some(times.mean)),
            ("LatencyStdDev", times.deviation),
        ] {
            if let Some(ns) = ns {
                let _ = write!(out, " {name}{what}=\"{:.3}\"", ms(ns));
            }
        }
    }
    out
}

fn target(out: &mut Out, trial: &Trial, span: &TimeSpan, row: &ThreadRow<'_>) {
    let (read, write) = (&row.cell.read, &row.cell.write);
    out.value("Path", markup(row.path));
    for (name, value) in [
        ("BytesCount", read.bytes + write.bytes),
        ("FileSize", row.size),
        ("IOCount", read.ios + write.ios),
        ("ReadBytes", read.bytes),
        ("ReadCount", read.ios),
        ("WriteBytes", write.bytes),
        ("WriteCount", write.ios),
    ] {
        out.value(name, value);
    }
    distribution(out, span, row);
    if span.service_times {
        for (name, direction) in PARTS {
            let times = rows::sum([row], direction).times;
            mean_and_deviation(out, &times, &format!("Average{name}LatencyMilliseconds"), name);
        }
    }
    if span.io_bucket.is_some() {
        let unrest = |direction| row.iops_deviation(direction, trial);
        out.within("Iops", |out| deviations(out, &[row], &unrest));
    }
}

/// The effective ranges of the thread's distribution (`-rd`) on the target, holes included.
fn distribution(out: &mut Out, span: &TimeSpan, row: &ThreadRow<'_>) {
    let own = span.distributions.iter().find(|distribution| {
        distribution.path == row.path && distribution.threads.contains(&row.thread)
    });
    let Some(own) = own else { return };
    out.within("Distribution", |out| {
        out.within("Absolute", |out| {
            let mut reached = 0;
            for &(percent, from, to) in &own.ranges {
                if reached < from {
                    out.line(&format!("<Range IO=\"0\">{}</Range>", from - reached));
                }
                out.line(&format!("<Range IO=\"{percent}\">{}</Range>", to.saturating_sub(from)));
                reached = to;
            }
        });
    });
}

/// XML, indented as DiskSpd does.
struct Out {
    text: String,
    depth: usize,
}

impl Out {
    fn line(&mut self, line: &str) {
        let _ = writeln!(self.text, "{:1$}{line}", "", 2 * self.depth);
    }

    /// An element; its text needs no escaping.
    fn value(&mut self, name: &str, value: impl Display) {
        self.line(&format!("<{name}>{value}</{name}>"));
    }

    fn within(&mut self, name: &str, content: impl FnOnce(&mut Self)) {
        self.within_with(name, "", content);
    }

    /// The same with attributes, each with a space before it.
    fn within_with(&mut self, name: &str, attributes: &str, content: impl FnOnce(&mut Self)) {
        self.line(&format!("<{name}{attributes}>"));
        self.depth += 1;
        content(self);
        self.depth -= 1;
        self.line(&format!("</{name}>"));
    }
}
