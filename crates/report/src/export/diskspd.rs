//! A document as DiskSpd's results, for people and as XML. What DiskSpd prints and the document does
//! not hold comes in as plain data: the profile as it was typed, and which thread of DiskSpd's each
//! worker stands for.
//!
//! Times are service times, as DiskSpd's latencies are. A percentile is the smallest value whose
//! cumulative count is at least its share of all.

use std::collections::BTreeMap;

use fathom_core::Span;
use fathom_core::measure::{self, Direction, Histogram};

use super::{diskspd_text, diskspd_xml};
use crate::document::{Cell, Counters, Document, Host, Trial};

/// What was asked for, as far as DiskSpd prints it and the document does not know it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Profile {
    /// What the result begins with: the command line and the input parameters of the text, the
    /// `<Profile>` element of the XML. It ends with a newline.
    pub description: String,
    /// One for each time span; each trial of the document is one of them, in this order.
    pub time_spans: Vec<TimeSpan>,
}

/// One measurement of a profile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimeSpan {
    /// Whether times are printed (`-L`).
    pub service_times: bool,
    /// The intervals over which IOPS are compared (`-D`), in a whole number of milliseconds above 0;
    /// none if they are not.
    pub io_bucket: Option<Span>,
    /// How many threads it has.
    pub threads: u32,
    /// I/Os in flight of each thread, where that is for all targets together (`-O`).
    pub requests: Option<u32>,
    /// What each stream of the point stands for.
    pub streams: Vec<Stream>,
    /// Shares of I/Os by place (`-rd`), with what they came to on the targets.
    pub distributions: Vec<Distribution>,
}

/// What a stream stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stream {
    /// The number of the thread that its first worker is; the others follow.
    pub first_thread: u32,
    /// The path of the target of each of its regions, as it was typed.
    pub paths: Vec<String>,
}

/// Which parts of a target got which share of the random I/Os.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Distribution {
    /// The target's path, as it was typed.
    pub path: String,
    /// The threads that used it, rising.
    pub threads: Vec<u32>,
    /// Percent of the I/Os, and from which to below which byte they went; without holes.
    pub ranges: Vec<(u32, u64, u64)>,
}

/// The result as DiskSpd prints it for people, with all of its tables in its order.
pub fn text(document: &Document, profile: &Profile) -> String {
    diskspd_text::results(document, profile)
}

/// The result as DiskSpd prints it with `-Rxml`.
pub fn xml(document: &Document, profile: &Profile) -> String {
    diskspd_xml::results(document, profile)
}

/// What one thread did to one target.
pub(super) struct Row<'a> {
    pub thread: u32,
    pub path: &'a str,
    /// Of the target, in bytes.
    pub size: u64,
    pub cell: &'a Cell,
}

/// The rows of a trial, by thread.
pub(super) fn rows<'a>(
    document: &'a Document,
    trial: &'a Trial,
    span: &'a TimeSpan,
) -> Vec<Row<'a>> {
    let mut rows = Vec::new();
    for worker in &trial.workers {
        let Some(stream) = span.streams.get(worker.stream as usize) else { continue };
        let regions = &trial.point.streams[worker.stream as usize].regions;
        for cell in &worker.cells {
            let target = document.header.targets.get(cell.target as usize);
            let place = regions.iter().position(|region| region.target == cell.target);
            let path = place.and_then(|place| stream.paths.get(place));
            rows.push(Row {
                thread: stream.first_thread + worker.worker,
                path: path.map_or("", String::as_str),
                size: target.map_or(0, |target| target.size_bytes),
                cell,
            });
        }
    }
    rows.sort_by_key(|row| row.thread);
    rows
}

/// I/Os of one direction or of both.
#[derive(Default)]
pub(super) struct Sum {
    pub bytes: u64,
    pub ios: u64,
    pub times: Histogram,
}

/// The sum over rows.
pub(super) fn sum<'a>(
    rows: impl IntoIterator<Item = &'a Row<'a>>,
    direction: Option<Direction>,
) -> Sum {
    let mut sum = Sum::default();
    for row in rows {
        for one in Direction::BOTH {
            if direction.is_none_or(|wanted| wanted == one) {
                let flow = row.cell.flow(one);
                sum.bytes += flow.bytes;
                sum.ios += flow.ios;
                sum.times.merge_sparse(&flow.service_time.to_sparse());
            }
        }
    }
    sum
}

impl Row<'_> {
    /// The standard deviation of its IOPS over the trial's intervals.
    pub fn iops_deviation(&self, direction: Option<Direction>, trial: &Trial) -> f64 {
        let ios = sum([self], direction).ios;
        let bucket = trial.buckets.as_ref().map(|buckets| buckets.length_ns);
        let seconds = Span(bucket.unwrap_or(trial.point.interval_ns)).as_secs_f64();
        self.cell.spread.map_or(0.0, |spread| spread.deviation(direction, ios) / seconds)
    }
}

/// The rows of each path, in the order in which the paths come first.
pub(super) fn by_path<'a>(rows: &'a [Row<'a>]) -> Vec<(&'a str, Vec<&'a Row<'a>>)> {
    let mut groups: Vec<(&str, Vec<&Row<'_>>)> = Vec::new();
    for row in rows {
        match groups.iter_mut().find(|(path, _)| *path == row.path) {
            Some((_, group)) => group.push(row),
            None => groups.push((row.path, Vec::from([row]))),
        }
    }
    groups
}

/// IOPS of an interval, by direction: I/Os of the interval over its full length, although the last
/// one of an interrupted run may be shorter.
pub(super) type Iops = [f64; 2];

/// The IOPS of all threads in each interval of so long.
pub(super) fn series(trial: &Trial, bucket: Span) -> Vec<Iops> {
    if let Some(buckets) = &trial.buckets {
        let iops = |ios: &u64| *ios as f64 / bucket.as_secs_f64();
        let both = buckets.reads.iter().zip(&buckets.writes);
        return both.map(|(reads, writes)| [iops(reads), iops(writes)]).collect();
    }
    let mut buckets: BTreeMap<u64, Iops> = BTreeMap::new();
    for interval in trial.intervals() {
        // A worker that could not tell of each interval by itself told of several at once.
        let several = (interval.length.0 / bucket.0).max(1);
        for place in 0..several {
            let at = interval.start.0 / bucket.0 + place;
            let sums = buckets.entry(at).or_default();
            for (sum, ios) in sums.iter_mut().zip(interval.ios) {
                *sum += ios as f64 / several as f64 / bucket.as_secs_f64();
            }
        }
    }
    let last = buckets.keys().next_back().map_or(0, |last| last + 1);
    (0..last).map(|at| buckets.get(&at).copied().unwrap_or_default()).collect()
}

/// What is told of the service times of an interval, in nanoseconds.
#[derive(Clone, Debug, Default)]
pub(super) struct BucketTimes {
    pub min: u64,
    pub max: u64,
    pub mean: f64,
    /// None where the interval's distribution was not kept.
    pub deviation: Option<f64>,
}

/// The service times of reads and of writes in each interval of so long, of all threads; nothing where
/// they were not kept so: of a schedule only the response times are, of buckets only the I/Os.
pub(super) fn bucket_times(trial: &Trial, bucket: Span) -> Vec<[BucketTimes; 2]> {
    let is_whole = |interval: &measure::Interval| interval.length <= bucket;
    if trial.buckets.is_some() || trial.is_open() || !trial.intervals().all(|one| is_whole(&one)) {
        return Vec::new();
    }
    let mut sums: BTreeMap<u64, [(u64, measure::Times); 2]> = BTreeMap::new();
    for interval in trial.intervals() {
        let both = sums.entry(interval.start.0 / bucket.0).or_default();
        for (place, (count, sum)) in both.iter_mut().enumerate() {
            let (ios, times) = (interval.ios[place], interval.times[place]);
            if ios > 0 {
                sum.min = if *count == 0 { times.min } else { sum.min.min(times.min) };
                sum.max = sum.max.max(times.max);
                sum.sum += times.sum;
                *count += ios;
            }
        }
    }
    let deviations = bucket_deviations(trial, bucket);
    let last = sums.keys().next_back().map_or(0, |last| last + 1);
    let told = |at: u64| {
        let both = sums.get(&at).copied().unwrap_or_default();
        [0, 1].map(|place| {
            let (count, times) = both[place];
            BucketTimes {
                min: times.min,
                max: times.max,
                mean: times.sum as f64 / count.max(1) as f64,
                deviation: deviations
                    .as_ref()
                    .map(|all| all.get(&at).map_or(0.0, |one| one[place])),
            }
        })
    };
    (0..last).map(told).collect()
}

/// The standard deviations by place, where the distribution of every interval was kept.
fn bucket_deviations(trial: &Trial, bucket: Span) -> Option<BTreeMap<u64, [f64; 2]>> {
    if !trial.intervals.is_empty() {
        return None;
    }
    let mut times: BTreeMap<u64, [Histogram; 2]> = BTreeMap::new();
    for stretch in trial.stretches() {
        let both = times.entry(stretch.start.0 / bucket.0).or_default();
        for (sum, own) in both.iter_mut().zip(&stretch.response_time) {
            sum.merge_sparse(own);
        }
    }
    let deviation = |times: &Histogram| times.standard_deviation().unwrap_or(0.0);
    Some(times.into_iter().map(|(at, both)| (at, both.each_ref().map(deviation))).collect())
}

/// The standard deviation of a population; 0 of nothing.
pub(super) fn deviation(values: &[f64]) -> f64 {
    let count = values.len().max(1) as f64;
    let mean = values.iter().sum::<f64>() / count;
    (values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / count).sqrt()
}

/// The IOPS of one direction or of both.
pub(super) fn of(direction: Option<Direction>, series: &[Iops]) -> Vec<f64> {
    let pick = |iops: &Iops| match direction {
        Some(direction) => iops[direction as usize],
        None => iops.iter().sum(),
    };
    series.iter().map(pick).collect()
}

/// How a CPU spent the window, in percent. What a hypervisor took for others counts for neither.
pub(super) struct Cpu {
    pub number: u32,
    pub user: f64,
    pub kernel: f64,
    pub idle: f64,
}

impl Cpu {
    pub fn usage(&self) -> f64 {
        self.user + self.kernel
    }
}

/// Which CPUs are in which socket, node and core, each by its place in a list.
pub(super) struct Topology {
    /// By their packages' numbers.
    pub sockets: Vec<Group>,
    /// By their numbers.
    pub nodes: Vec<Group>,
    /// By their packages' and their own numbers.
    pub cores: Vec<Group>,
}

/// CPUs that are together somewhere.
pub(super) struct Group {
    /// What the system calls it: for a core its package first.
    name: (u32, u32),
    pub cpus: Vec<u32>,
}

impl Topology {
    /// None where it is not known of every CPU.
    pub fn of(host: &Host) -> Option<Self> {
        let mut topology = Self { sockets: Vec::new(), nodes: Vec::new(), cores: Vec::new() };
        for place in &host.cpu_places {
            let (package, core) = (place.package?, place.core?);
            for (groups, name) in [
                (&mut topology.sockets, (package, 0)),
                (&mut topology.nodes, (place.node.unwrap_or(0), 0)),
                (&mut topology.cores, (package, core)),
            ] {
                match groups.iter_mut().find(|group| group.name == name) {
                    Some(group) => group.cpus.push(place.number),
                    None => groups.push(Group { name, cpus: Vec::from([place.number]) }),
                }
            }
        }
        let lists = [&mut topology.sockets, &mut topology.nodes, &mut topology.cores];
        lists.into_iter().for_each(|groups| groups.sort_by_key(|group| group.name));
        (!topology.cores.is_empty()).then_some(topology)
    }

    /// The places of the socket, the node and the core that hold this CPU.
    pub fn place(&self, cpu: u32) -> Option<[usize; 3]> {
        let of = |groups: &[Group]| groups.iter().position(|group| group.cpus.contains(&cpu));
        Some([of(&self.sockets)?, of(&self.nodes)?, of(&self.cores)?])
    }
}

/// Every CPU, and the mean of all.
pub(super) fn cpus(counters: &Counters) -> (Vec<Cpu>, Cpu) {
    let share = |part: u64, all: u64| if all == 0 { 0.0 } else { part as f64 * 100.0 / all as f64 };
    let cpus: Vec<Cpu> = counters
        .cpus
        .iter()
        .map(|cpu| {
            let all = cpu.user_ns + cpu.kernel_ns + cpu.idle_ns;
            Cpu {
                number: cpu.cpu,
                user: share(cpu.user_ns, all),
                kernel: share(cpu.kernel_ns, all),
                idle: share(cpu.idle_ns, all),
            }
        })
        .collect();
    let mean =
        |part: fn(&Cpu) -> f64| cpus.iter().map(part).sum::<f64>() / cpus.len().max(1) as f64;
    let average = Cpu {
        number: 0,
        user: mean(|cpu| cpu.user),
        kernel: mean(|cpu| cpu.kernel),
        idle: mean(|cpu| cpu.idle),
    };
    (cpus, average)
}

/// The value whose rank is so many billionths of all, rounded up. In whole numbers: a product of
/// fractions may come out above the rank that is meant. What has the last rank is the largest value,
/// which is known exactly.
pub(super) fn percentile(times: &Histogram, billionths: u64) -> Option<u64> {
    let count = times.count();
    let rank = (u128::from(billionths) * u128::from(count)).div_ceil(1_000_000_000) as u64;
    if rank >= count { times.max() } else { times.value_at_rank(rank.max(1)) }
}

/// Nanoseconds as milliseconds.
pub(super) fn ms(ns: f64) -> f64 {
    ns / 1e6
}

/// A size for people, as DiskSpd prints it: `64KiB` where a unit fits, two decimals where none does
/// (`1.50KiB`), and below 1 KiB the bytes alone.
pub fn size(bytes: u64) -> String {
    const UNITS: [(u32, &str); 5] =
        [(50, "PiB"), (40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")];
    let Some((shift, name)) = UNITS.into_iter().find(|(shift, _)| bytes >> shift > 0) else {
        return bytes.to_string();
    };
    match bytes.trailing_zeros() >= shift {
        true => format!("{}{name}", bytes >> shift),
        false => format!("{:.2}{name}", bytes as f64 / (1u64 << shift) as f64),
    }
}
