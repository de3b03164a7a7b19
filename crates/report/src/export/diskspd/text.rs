//! DiskSpd's result for people: every table, in its order, with its widths and decimals, because
//! scripts parse it by columns and words.

use std::fmt::Write as _;

use fathom_core::measure::{Direction, Histogram};
use fathom_core::printable;

use super::processors::{self, Topology};
use super::rows::{self, Sum, ThreadRow, ms};
use super::series;
use super::{Profile, RangeShares, TimeSpan, size};
use crate::document::{Document, Trial};

const STARS: &str =
    "*******************************************************************************\n";
const MIB: f64 = (1 << 20) as f64;

/// The percentiles of DiskSpd's table between the smallest and the largest value, in billionths.
const PERCENTILES: [(u64, &str); 13] = [
    (250_000_000, "25th"),
    (500_000_000, "50th"),
    (750_000_000, "75th"),
    (900_000_000, "90th"),
    (950_000_000, "95th"),
    (990_000_000, "99th"),
    (999_000_000, "3-nines"),
    (999_900_000, "4-nines"),
    (999_990_000, "5-nines"),
    (999_999_000, "6-nines"),
    (999_999_900, "7-nines"),
    (999_999_990, "8-nines"),
    (999_999_999, "9-nines"),
];

/// All of it.
pub(super) fn results(document: &Document, profile: &Profile) -> String {
    let mut out = profile.description.clone();
    system(&mut out, document);
    for (index, span) in profile.time_spans.iter().enumerate() {
        let _ = write!(out, "\nResults for timespan {}:\n{STARS}", index + 1);
        match document.trials.get(index).filter(|trial| trial.window_ns > 0) {
            Some(trial) => time_span(&mut out, document, trial, span),
            None => out.push_str(
                "The test was interrupted before the measurements began. No results are \
                 displayed.\n",
            ),
        }
    }
    if profile.time_spans.len() > 1 {
        totals(&mut out, document, profile);
    }
    out
}

fn system(out: &mut String, document: &Document) {
    let host = document.header.host.clone().unwrap_or_default();
    // "2026-11-21T09:30:00.000Z" as "2026/11/21 09:30:00 UTC".
    let start = document.header.created.get(..19).unwrap_or_default();
    let start = start.replace('-', "/").replace('T', " ");
    let _ = write!(
        out,
        "System information:\n\n\tcomputer name: {}\n\tstart time: {start} UTC\n\n\
         \tcpu count:\t\t{}\n",
        printable(&host.name),
        host.cpus,
    );
    let topology = Topology::of(&host);
    if let Some(topology) = &topology {
        let _ = writeln!(out, "\tcore count:\t\t{}", topology.cores.len());
    }
    let _ = write!(out, "\tgroup count:\t\t1\n\tnode count:\t\t{}\n", host.numa_nodes);
    if let Some(topology) = &topology {
        let _ = writeln!(out, "\tsocket count:\t\t{}", topology.sockets.len());
    }
}

fn time_span(out: &mut String, document: &Document, trial: &Trial, span: &TimeSpan) {
    let _ = write!(
        out,
        "\nactual test time:\t{:.2}s\nthread count:\t\t{}\n",
        trial.window().as_secs_f64(),
        span.threads
    );
    if let Some(requests) = span.requests {
        let _ = writeln!(out, "request count:\t\t{requests}");
    }
    let _ = writeln!(
        out,
        "proc count:\t\t{}",
        document.header.host.as_ref().map_or(0, |host| host.cpus)
    );
    cpu_table(out, trial);
    distributions(out, &span.distributions);
    let rows = rows::rows(document, trial, span);
    for (name, direction) in
        [("Total", None), ("Read", Some(Direction::Read)), ("Write", Some(Direction::Write))]
    {
        let _ = write!(out, "\n{name} IO\n");
        section(out, trial, span, &rows, direction);
    }
    if span.service_times {
        let groups = rows::by_path(&rows);
        if groups.len() > 1 {
            for (path, group) in groups {
                let _ = write!(out, "\nLatency distribution: {}\n", printable(path));
                let times = |direction| rows::sum(group.iter().copied(), direction).times;
                percentiles(out, &times(Some(Direction::Read)), &times(Some(Direction::Write)));
            }
        }
        out.push_str("\nTotal latency distribution:\n");
        let times = |direction| rows::sum(&rows, direction).times;
        percentiles(out, &times(Some(Direction::Read)), &times(Some(Direction::Write)));
    }
}

fn cpu_table(out: &mut String, trial: &Trial) {
    let Some(counters) = &trial.counters else { return };
    const LINE: &str = "----------------------------------------\n";
    out.push_str("\nCPU |  Usage |  User  | Kernel |  Idle\n");
    out.push_str(LINE);
    let (cpus, average) = processors::cpus(counters);
    let mut row = |name: String, cpu: &processors::CpuShares| {
        let _ = writeln!(
            out,
            "{name}| {:6.2}%| {:6.2}%| {:6.2}%| {:6.2}%",
            cpu.usage(),
            cpu.user,
            cpu.kernel,
            cpu.idle
        );
    };
    for cpu in &cpus {
        row(format!("{:4}", cpu.number), cpu);
    }
    row(format!("{LINE}avg."), &average);
}

fn distributions(out: &mut String, distributions: &[RangeShares]) {
    if distributions.is_empty() {
        return;
    }
    out.push_str("\nEffective IO Distributions\n--------------------------\n");
    for distribution in distributions {
        let path = printable(&distribution.path);
        let _ = writeln!(out, "target: {path} [thread:{}]", thread_list(&distribution.threads));
        for (percent, from, to) in &distribution.ranges {
            let from = match from {
                0 => "     0   ".to_owned(),
                from => format!("{:>9}", size(*from)),
            };
            let _ = writeln!(out, "   {percent:3}% of IO => [{from} - {:>9})", size(*to));
        }
    }
}

/// " 0 - 3 5": runs of three and more by their ends.
fn thread_list(threads: &[u32]) -> String {
    let mut out = String::new();
    for run in threads.chunk_by(|one, next| one + 1 == *next) {
        let _ = match run {
            [first, .., last] if run.len() > 2 => write!(out, " {first} - {last}"),
            [first, last] => write!(out, " {first} {last}"),
            _ => write!(out, " {}", run[0]),
        };
    }
    out
}

fn section(
    out: &mut String,
    trial: &Trial,
    span: &TimeSpan,
    rows: &[ThreadRow<'_>],
    direction: Option<Direction>,
) {
    let (times, deviation) = (span.service_times, span.io_bucket);
    let when = |shown: bool, text: &'static str| if shown { text } else { "" };
    let _ = writeln!(
        out,
        "thread |       bytes     |     I/Os     |    MiB/s   |  I/O per s {}{}{}|  file",
        when(times, "|  AvgLat  "),
        when(deviation.is_some(), "| IopsStdDev "),
        when(times, "| LatStdDev ")
    );
    let columns = 78 + 23 * usize::from(times) + 13 * usize::from(deviation.is_some());
    let line = "-".repeat(columns);
    let _ = writeln!(out, "{line}");
    let seconds = trial.window().as_secs_f64();
    for row in rows {
        let sum = rows::sum([row], direction);
        let unrest = deviation.map(|_| row.iops_deviation(direction, trial));
        let _ = write!(out, "{:6} | {}", row.thread, figures(&sum, seconds, times, unrest));
        let _ = writeln!(out, " | {} ({})", printable(row.path), size(row.size));
    }
    let _ = writeln!(out, "{line}");
    let unrest = deviation
        .map(|bucket| series::deviation(&series::of(direction, &series::series(trial, bucket))));
    let sum = rows::sum(rows, direction);
    let _ = writeln!(out, "total:   {}", figures(&sum, seconds, times, unrest));
}

/// A row from its bytes on.
fn figures(sum: &Sum, seconds: f64, times: bool, unrest: Option<f64>) -> String {
    let mut out = format!(
        "{:15} | {:12} | {:10.2} | {:10.2}",
        sum.bytes,
        sum.ios,
        sum.bytes as f64 / MIB / seconds,
        sum.ios as f64 / seconds
    );
    if times {
        let _ = write!(out, " | {:8.3}", ms(sum.times.mean().unwrap_or(0.0)));
    }
    if let Some(unrest) = unrest {
        let _ = write!(out, " | {unrest:10.2}");
    }
    if times {
        let _ = match sum.times.standard_deviation() {
            Some(deviation) => write!(out, " |  {:8.3}", ms(deviation)),
            None => write!(out, " |       N/A"),
        };
    }
    out
}

/// The table with all fifteen rows.
fn percentiles(out: &mut String, reads: &Histogram, writes: &Histogram) {
    let mut total = reads.clone();
    total.merge(writes);
    out.push_str("  %-ile |  Read (ms) | Write (ms) | Total (ms)\n");
    out.push_str("----------------------------------------------\n");
    let mut row = |name: &str, value: &dyn Fn(&Histogram) -> Option<u64>| {
        let shown = |times: &Histogram| {
            value(times).map_or("N/A".to_owned(), |ns| format!("{:.3}", ms(ns as f64)))
        };
        let (reads, writes, total) = (shown(reads), shown(writes), shown(&total));
        let _ = writeln!(out, "{name:>7} | {reads:>10} | {writes:>10} | {total:>10}");
    };
    row("min", &Histogram::min);
    for (share, name) in PERCENTILES {
        row(name, &|times| rows::percentile(times, share));
    }
    row("max", &Histogram::max);
}

/// The sums over all time spans.
fn totals(out: &mut String, document: &Document, profile: &Profile) {
    let spans = profile.time_spans.iter().zip(&document.trials);
    let (mut sums, mut seconds) = ([Sum::default(), Sum::default()], 0.0);
    for (span, trial) in spans.filter(|(_, trial)| trial.window_ns > 0) {
        seconds += trial.window().as_secs_f64();
        let rows = rows::rows(document, trial, span);
        for direction in Direction::BOTH {
            let sum = rows::sum(&rows, Some(direction));
            sums[direction as usize].bytes += sum.bytes;
            sums[direction as usize].ios += sum.ios;
        }
    }
    const LINE: &str =
        "-------------------------------------------------------------------------------\n";
    let _ = write!(
        out,
        "\n\nTotals:\n{STARS}\n\
         type   |       bytes     |     I/Os     |    MiB/s   |  I/O per s\n{LINE}"
    );
    let [read, write] = sums;
    let both = Sum { bytes: read.bytes + write.bytes, ios: read.ios + write.ios, ..Sum::default() };
    // Without data there is no rate.
    let time = if seconds > 0.0 { seconds } else { 1.0 };
    for (name, sum) in [("write", write), ("read", read)] {
        let _ = writeln!(out, "{name:<6} | {}", figures(&sum, time, false, None));
    }
    let _ = write!(out, "{LINE}total  | {}\n\n", figures(&both, time, false, None));
    let _ = writeln!(out, "total test time:\t{seconds:.2}s");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_threads_are_shown_as_diskspd_does() {
        for (bytes, shown) in [
            (0, "0"),
            (1000, "1000"),
            (8 << 10, "8KiB"),
            (1536, "1.50KiB"),
            (1 << 30, "1GiB"),
            (2000 << 10, "1.95MiB"),
            (12_341_234, "11.77MiB"),
            (1023, "1023"),
        ] {
            assert_eq!(size(bytes), shown);
        }
        assert_eq!(thread_list(&[0]), " 0");
        assert_eq!(thread_list(&[0, 1, 3, 4, 5, 6]), " 0 1 3 - 6");
    }

    /// The published example: percentiles of reads and of writes, in milliseconds.
    const PUBLISHED: [(&str, f64, f64, f64); 14] = [
        ("min", 0.202, 0.185, 0.185),
        ("25th", 0.391, 0.420, 0.399),
        ("50th", 0.450, 0.483, 0.460),
        ("75th", 0.553, 0.596, 0.567),
        ("90th", 0.766, 0.812, 0.781),
        ("95th", 0.936, 0.974, 0.949),
        ("99th", 1.486, 1.521, 1.497),
        ("3-nines", 2.454, 2.485, 2.464),
        ("4-nines", 8.010, 7.650, 7.870),
        ("5-nines", 24.608, 24.539, 24.551),
        ("6-nines", 42.137, 35.227, 42.052),
        ("7-nines", 42.775, 42.122, 42.775),
        ("8-nines", 42.775, 42.122, 42.775),
        ("max", 42.775, 42.122, 42.775),
    ];

    /// `count` times with the published percentiles. Between two of them, the values are in equal
    /// steps.
    fn published(count: u64, column: impl Fn(&(&str, f64, f64, f64)) -> f64) -> Histogram {
        let mut times = Histogram::default();
        let mut done = 0;
        let ns = |row| (column(row) * 1e6) as u64;
        times.record(ns(&PUBLISHED[0]));
        done += 1;
        for (place, (share, name)) in PERCENTILES[..12].iter().enumerate() {
            let row = &PUBLISHED[place + 1];
            assert_eq!(row.0, *name);
            let rank = (u128::from(*share) * u128::from(count)).div_ceil(1_000_000_000) as u64;
            let (from, to) = (ns(&PUBLISHED[place]), ns(row));
            let steps = rank.saturating_sub(done);
            for step in 1..=steps {
                times.record(from + ((to - from) as u128 * step as u128 / steps as u128) as u64);
            }
            done = done.max(rank);
        }
        let max = ns(&PUBLISHED[13]);
        times.record_many(max, count - done);
        times
    }

    #[test]
    fn the_percentiles_of_the_published_example_come_out_again() {
        let reads = published(5_078_451, |row| row.1);
        let writes = published(2_178_940, |row| row.2);
        assert_eq!(reads.count() + writes.count(), 7_257_391);
        let mut out = String::new();
        percentiles(&mut out, &reads, &writes);
        let rows: Vec<Vec<&str>> =
            out.lines().skip(2).map(|row| row.split('|').map(str::trim).collect()).collect();
        let names: Vec<&str> = rows.iter().map(|row| row[0]).collect();
        assert_eq!(
            names.join(" "),
            "min 25th 50th 75th 90th 95th 99th 3-nines 4-nines 5-nines 6-nines 7-nines 8-nines \
             9-nines max"
        );
        for (name, read, write, total) in PUBLISHED {
            let row = rows.iter().find(|row| row[0] == name).unwrap();
            // The middle of a bucket is within 0.4 % of every value in it, and the display is
            // rounded to thousandths.
            let near = |shown: &str, from: f64, to: f64| {
                let shown: f64 = shown.parse().unwrap();
                let (from, to) = (from * 0.996 - 0.0006, to * 1.004 + 0.0006);
                assert!(from <= shown && shown <= to, "{name}: {shown} is not {from} to {to}");
            };
            near(row[1], read, read);
            near(row[2], write, write);
            // The values between the published percentiles are unknown, so only bounds of the total
            // are known. It lies between reads and writes, like the published total.
            near(row[3], read.min(write), read.max(write));
            near(&total.to_string(), read.min(write), read.max(write));
        }
        assert!(out.starts_with("  %-ile |  Read (ms) | Write (ms) | Total (ms)\n-----"));
        assert!(out.contains("\n    min |      0.202 |      0.185 |      0.185\n"), "{out}");
        assert!(out.ends_with("    max |     42.775 |     42.122 |     42.775\n"), "{out}");
    }

    #[test]
    fn what_was_not_measured_is_not_zero() {
        let mut out = String::new();
        let mut reads = Histogram::default();
        reads.record(1_234_567);
        percentiles(&mut out, &reads, &Histogram::default());
        assert!(out.contains("9-nines |      1.235 |        N/A |      1.235\n"), "{out}");
    }
}
