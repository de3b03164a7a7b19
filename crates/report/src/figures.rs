//! The figures that every renderer reads out of a document, and their formats: in one place, so
//! that the same number looks the same in the terminal, in the table and in the chart.

use fathom_core::calibration::Demand;
pub use fathom_core::count;
use fathom_core::errno::{self, Meaning};
pub use fathom_core::figures::{percent, significant, time};
use fathom_core::measure::{Direction, Flow, Histogram, StartDelay, Stretch, Upkeep};
use fathom_core::spec::{Arrivals, Ios, Loop, Payload, Turns, Workers, hex};
use fathom_core::stats::{self, Estimate};
use fathom_core::{Bytes, Quantile, Span, nvme, typed_word};

use crate::document::{
    BackendKind, Clock, Coordinate, Counters, Document, Failure, Finding, Host, IoPriority,
    LayerKind, NullTarget, Source, Stream, Target, Trial, Worker,
};

/// A text whose first letter is large.
pub fn capitalized(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(|letter| letter.to_uppercase().to_string());
    format!("{}{}", first.unwrap_or_default(), letters.as_str())
}

/// A rate as the label of an axis: zero is 0 and not 0.00.
pub fn axis_rate(value: f64) -> String {
    if value == 0.0 { "0".to_owned() } else { short_rate(value) }
}

/// The text for a value that may be unknown.
pub fn or_unknown(text: Option<String>) -> String {
    text.unwrap_or_else(|| "–".to_owned())
}

/// A point in time to the second: "2026-11-21 09:30:00 UTC".
pub fn moment(created: &str) -> String {
    let text = created.replacen('T', " ", 1);
    match text.split('.').next() {
        Some(seconds) if text.ends_with('Z') => format!("{} UTC", seconds.trim_end_matches('Z')),
        _ => text,
    }
}

/// A rate for a narrow column: 812, 12.3k, 1.23M.
pub fn short_rate(value: f64) -> String {
    match value {
        v if v >= 999.5e6 => format!("{}G", significant(v / 1e9)),
        v if v >= 999.5e3 => format!("{}M", significant(v / 1e6)),
        v if v >= 999.5 => format!("{}k", significant(v / 1e3)),
        v => significant(v),
    }
}

/// A half-width in percent of its value: "±3%"; empty if there is none.
pub fn plus_minus(estimate: Option<&Estimate>) -> String {
    let share = estimate.and_then(|e| Some(e.half_width? / e.value * 100.0));
    match share {
        Some(p) if !p.is_finite() => String::new(),
        Some(0.0) => "±0%".to_owned(),
        Some(p) if p < 0.05 => "±<0.1%".to_owned(),
        Some(p) if p < 0.95 => format!("±{p:.1}%"),
        Some(p) if p <= 100.0 => format!("±{p:.0}%"),
        // It means that the value is not known; the digits do not matter.
        Some(_) => "±>100%".to_owned(),
        None => String::new(),
    }
}

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

/// Events per second over a window, and none over an empty one.
pub fn per_second(amount: u64, window: Span) -> Option<f64> {
    (window.0 > 0).then(|| amount as f64 / window.as_secs_f64())
}

/// Bytes per second as MiB/s.
pub fn mib(bytes_per_second: f64) -> f64 {
    bytes_per_second / Bytes::MIB as f64
}

/// A quantile, if enough values lie beyond it.
pub fn carried(times: &Histogram, quantile: Quantile) -> Option<u64> {
    match stats::carries(times, quantile) {
        true => times.quantile(quantile),
        false => None,
    }
}

/// The results of a trial: of one of its streams, or of all together.
#[derive(Clone, Copy, Debug)]
pub struct TrialPart<'a> {
    /// The trial.
    pub trial: &'a Trial,
    /// The stream's place; none for all.
    pub stream: Option<u32>,
}

impl<'a> TrialPart<'a> {
    /// All of a trial.
    pub fn whole(trial: &'a Trial) -> Self {
        Self { trial, stream: None }
    }

    /// Each stream of a trial by itself, where there are several.
    pub fn streams(trial: &'a Trial) -> impl Iterator<Item = Self> {
        let count = match trial.point.streams.len() {
            1 => 0,
            several => several as u32,
        };
        (0..count).map(move |stream| Self { trial, stream: Some(stream) })
    }

    /// The stream's name; "all streams" for all.
    pub fn name(&self) -> &'a str {
        match self.stream {
            Some(stream) => &self.trial.point.streams[stream as usize].name,
            None => "all streams",
        }
    }

    /// Whether a stream is in it.
    pub fn has(&self, stream: u32) -> bool {
        self.stream.is_none_or(|own| own == stream)
    }

    /// The point.
    pub fn loads(&self) -> impl Iterator<Item = &'a Stream> {
        let part = *self;
        let streams = (0u32..).zip(&self.trial.point.streams);
        streams.filter(move |(place, _)| part.has(*place)).map(|(_, stream)| stream)
    }

    /// Its workers.
    pub fn workers(&self) -> impl Iterator<Item = &'a Worker> {
        let part = *self;
        self.trial.workers.iter().filter(move |worker| part.has(worker.stream))
    }

    /// Whether there is an open loop in it.
    pub fn is_open(&self) -> bool {
        self.loads().any(|stream| stream.pacing.is_open())
    }

    /// The directions of its load: those that were asked for, and those that happened.
    pub fn directions(&self) -> Vec<Direction> {
        let asked = |direction| self.loads().any(|stream| stream.does(direction));
        let happened = |direction| {
            let mut cells = self.workers().flat_map(|worker| &worker.cells);
            cells.any(|cell| cell.flow(direction).ios > 0)
        };
        Direction::BOTH.into_iter().filter(|&d| asked(d) || happened(d)).collect()
    }

    /// The columns of a table of distributions: each direction, and their total if there are two. None
    /// where there are only trims.
    pub fn columns(&self) -> Vec<Option<Direction>> {
        let directions = self.directions();
        let trims = directions.is_empty() && self.loads().any(Stream::trims_alone);
        let total = (directions.len() != 1 && !trims).then_some(None);
        directions.into_iter().map(Some).chain(total).collect()
    }

    /// The sum over it, of one direction or of both.
    pub fn flow(&self, direction: Option<Direction>) -> Flow {
        self.trial.flow(direction, |worker, _| self.has(worker.stream))
    }

    /// The sums of its I/Os that move no data, of each kind that there was.
    pub fn upkeep(&self) -> Vec<(Upkeep, Flow)> {
        let sum = |what| (what, self.trial.upkeep(what, |worker, _| self.has(worker.stream)));
        Upkeep::ALL.into_iter().map(sum).filter(|(_, flow)| flow.ios() > 0).collect()
    }

    /// How late the I/Os of its open loops started.
    pub fn start_delay(&self) -> Option<StartDelay> {
        self.trial.start_delay(|worker| self.has(worker.stream))
    }

    /// Its series with distributions.
    pub fn stretches(&self) -> Vec<Stretch> {
        let mut stretches = self.trial.stretches();
        stretches.retain(|stretch| self.has(stretch.stream));
        stretches
    }

    /// Its figures, of one direction or of both together.
    pub fn summary(&self, direction: Option<Direction>, quantiles: &[Quantile]) -> Summary {
        let own = self.trial.intervals().filter(|interval| self.has(interval.stream));
        let slices = stats::slices(own);
        let flow = self.flow(direction);
        let iops = stats::iops_series(&slices, direction);
        let bandwidth = stats::bandwidth_series(&slices, direction);
        let window = self.trial.window();
        Summary {
            iops: stats::rate(flow.ios(), window, &iops),
            bandwidth: stats::rate(flow.bytes.0, window, &bandwidth),
            quantiles: quantile_estimates(&flow, &self.stretches(), direction, quantiles),
        }
    }
}

/// The directions of a trial's load.
pub fn directions(trial: &Trial) -> Vec<Direction> {
    TrialPart::whole(trial).directions()
}

/// The columns of a table of a whole trial's distributions.
pub fn columns(trial: &Trial) -> Vec<Option<Direction>> {
    TrialPart::whole(trial).columns()
}

/// The name of a column or row of a direction.
pub fn direction_name(direction: Option<Direction>) -> &'static str {
    direction.map_or("total", Direction::name)
}

/// A trial's figures with their half-widths.
#[derive(Clone, Debug)]
pub struct Summary {
    /// I/Os per second.
    pub iops: Option<Estimate>,
    /// Bytes per second.
    pub bandwidth: Option<Estimate>,
    /// Response time at the requested quantiles; in a closed loop the service time.
    pub quantiles: Vec<Option<Estimate>>,
}

/// Summarizes one direction of a trial, or both together.
pub fn summary(trial: &Trial, direction: Option<Direction>, quantiles: &[Quantile]) -> Summary {
    TrialPart::whole(trial).summary(direction, quantiles)
}

/// Quantiles of the response time with their half-widths, as far as the samples carry them.
pub fn quantile_estimates(
    flow: &Flow,
    series: &[Stretch],
    direction: Option<Direction>,
    quantiles: &[Quantile],
) -> Vec<Option<Estimate>> {
    let series: Vec<&Stretch> = series.iter().collect();
    stats::quantiles(flow.response_time(), &series, direction, quantiles)
}

/// The standard deviation over the intervals of I/Os per second.
pub fn iops_deviation(trial: &Trial, direction: Option<Direction>) -> Option<f64> {
    let slices = stats::slices(trial.intervals());
    match slices.len() {
        0 | 1 => None,
        _ => stats::standard_deviation(&stats::iops_series(&slices, direction)),
    }
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

/// "reads", "writes", "70 % reads, 30 % writes".
pub fn mix(read_share: f64) -> String {
    match read_share {
        share if share >= 1.0 => "reads".to_owned(),
        share if share <= 0.0 => "writes".to_owned(),
        share => format!("{} reads, {} writes", percent(share), percent(1.0 - share)),
    }
}

/// The loop in a window of this length: every output says it.
pub fn pacing(stream: &Stream, window: Span) -> String {
    let rests = stream.pacing.rests_in_words();
    match stream.pacing.pace {
        Loop::Closed { queue_depth, .. } => {
            format!("closed loop at queue depth {queue_depth}{rests}")
        }
        Loop::Open { arrivals, queue_depth_max, realtime, .. } => {
            let realtime = if realtime { ", real-time priority" } else { "" };
            let arrivals = match arrivals {
                Arrivals::Uniform => "uniform",
                Arrivals::Poisson => "Poisson",
            };
            let course = match stream.pacing.course() {
                Some(course) => format!(" in the mean ({course})"),
                None => String::new(),
            };
            format!(
                "open loop, {} IOPS offered{course}, {arrivals} arrivals, queue depth up to \
                 {queue_depth_max}{realtime}{rests}",
                significant(offered(stream, window))
            )
        }
    }
}

/// I/Os per second that an open loop offers in a window of this length, in the mean; 0 in a closed one.
fn offered(stream: &Stream, window: Span) -> f64 {
    stream.pacing.offered_load(window).map_or(0.0, |load| load.0)
}

/// "1 worker", "4 workers per target", "2 workers".
pub fn workers(stream: &Stream) -> String {
    let plural = |n: u32| counted_workers(u64::from(n));
    match stream.workers {
        Workers::PerTarget(n) if stream.regions.len() > 1 => format!("{} per target", plural(n)),
        Workers::PerTarget(n) | Workers::Total(n) => plural(n),
    }
}

/// "1 worker", "2 workers".
pub fn counted_workers(number: u64) -> String {
    if number == 1 { "1 worker".to_owned() } else { format!("{number} workers") }
}

/// The work of a stream, in one sentence without its pace.
pub fn load(stream: &Stream) -> String {
    let mut each: Vec<String> = stream.each_kind().iter().map(shape).collect();
    match &stream.ios {
        Ios::Alike(_) | Ios::ByRegion(_) => each.dedup(),
        Ios::Drawn(parts) => {
            let total: f64 = parts.iter().map(|part| part.weight).sum();
            for (shape, part) in each.iter_mut().zip(parts) {
                *shape = format!("{} %: {shape}", (part.weight * 1000.0 / total).round() / 10.0);
            }
        }
    }
    let load = format!("{}{}", each.join("; "), weights(&stream.turns));
    let load = match payload(&stream.payload) {
        Some(payload) if stream.does(Direction::Write) => format!("{load}, {payload}"),
        _ => load,
    };
    let load = match stream.trim_share > 0.0 && !stream.trims_alone() {
        true => format!("{load}, {} trims", percent(stream.trim_share)),
        false => load,
    };
    match flush(stream) {
        Some(flush) => format!("{load}, {flush}"),
        None => load,
    }
}

/// The pattern, the directions and the sizes of its I/Os.
fn shape(stream: &Stream) -> String {
    let align = stream.align().map(|align| format!(", aligned to {align}"));
    let zones = if stream.zones { ", in a zone for each worker" } else { "" };
    format!(
        "{} {} of {}{}{zones}",
        stream.pattern(),
        if stream.trims_alone() { "trims".to_owned() } else { mix(stream.read_share()) },
        stream.block_sizes(),
        align.unwrap_or_default()
    )
}

/// The names of its patterns: one, or one for each region or part if they differ.
pub fn pattern_names(stream: &Stream) -> String {
    let kinds = stream.ios.kinds().into_iter();
    let mut names: Vec<String> = kinds.map(|kind| kind.pattern.to_string()).collect();
    names.dedup();
    names.join(" + ")
}

/// ", targets drawn 70 % / 30 %"; empty if they alternate.
fn weights(turns: &Turns) -> String {
    /// A longer sentence would not be read.
    const SHOWN: usize = 8;
    let Turns::Weighted(weights) = turns else { return String::new() };
    let total: f64 = weights.iter().sum();
    let share = |weight: &f64| format!("{} %", (weight * 1000.0 / total).round() / 10.0);
    match weights.len() {
        ..=SHOWN => {
            let shares: Vec<String> = weights.iter().map(share).collect();
            format!(", targets drawn {}", shares.join(" / "))
        }
        _ => ", targets drawn by weight".to_owned(),
    }
}

/// "50 % compressible, 30 % duplicates", "zeros", "the bytes 00ff"; empty for the default, which is
/// unique random bytes.
pub fn payload(payload: &Payload) -> Option<String> {
    let percent = |share: f64| (share * 1e4).round() / 1e2;
    let compressible = |share| format!("{} % compressible", percent(share));
    let duplicates = |share| format!("{} % duplicates", percent(share));
    Some(match payload {
        Payload::Random { compressible: 0.0, dedup: 0.0 } => return None,
        Payload::Random { compressible: share, dedup: 0.0 } => compressible(*share),
        Payload::Random { compressible: 0.0, dedup } => duplicates(*dedup),
        Payload::Random { compressible: share, dedup } => {
            format!("{}, {}", compressible(*share), duplicates(*dedup))
        }
        Payload::Zeros => "zeros".to_owned(),
        Payload::Pattern(bytes) if bytes.len() <= 16 => format!("the bytes {}", hex::digits(bytes)),
        Payload::Pattern(bytes) => format!("a pattern of {} bytes", bytes.len()),
        Payload::Pool { size, file: None } => format!("a random pool of {size}"),
        Payload::Pool { size, file: Some(file) } => {
            format!("a pool of {size} from {}", file.display())
        }
    })
}

/// "fdatasync after 4 writes"; none if there were no flushes.
pub fn flush(stream: &Stream) -> Option<String> {
    let flush = stream.flush?;
    let call = if flush.data_only { "fdatasync" } else { "fsync" };
    let after = match flush.every {
        1 => "each write".to_owned(),
        many => format!("{many} writes"),
    };
    let barrier = if flush.barrier { "" } else { " without a barrier" };
    Some(format!("{call} after {after}{barrier}"))
}

/// Where a stream's workers ran: "workers tied to CPUs 0-3, 8, I/O priority idle, large pages";
/// empty if nothing was set.
pub fn workplace(stream: &Stream) -> Option<String> {
    let place = &stream.workplace;
    let workers = match stream.workers {
        Workers::PerTarget(each) => each as usize * stream.regions.len(),
        Workers::Total(all) => all as usize,
    };
    // Fewer workers than CPUs have the first of them.
    let used = &place.cpus[..place.cpus.len().min(workers)];
    let cpus = |cpus: &[u32]| match cpus {
        [] => None,
        [one] => Some(format!("workers tied to CPU {one}")),
        several => Some(format!("workers tied to CPUs {}", in_a_row(several))),
    };
    let priority = place.io_priority.map(|priority| match priority {
        IoPriority::RealTime(level) => format!("I/O priority realtime:{level}"),
        IoPriority::BestEffort(level) => format!("I/O priority best-effort:{level}"),
        IoPriority::Idle => "I/O priority idle".to_owned(),
    });
    let pages = place.large_pages.then(|| "large pages".to_owned());
    let parts: Vec<String> = [cpus(used), priority, pages].into_iter().flatten().collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

/// Numbers in their order, consecutive ones as a range: "0-3, 8, 10".
fn in_a_row(numbers: &[u32]) -> String {
    let rows = numbers.chunk_by(|one, next| one.checked_add(1) == Some(*next));
    let shown = |row: &[u32]| match row {
        [first, .., last] if 2 < row.len() => format!("{first}-{last}"),
        few => few.iter().map(u32::to_string).collect::<Vec<_>>().join(", "),
    };
    rows.map(shown).collect::<Vec<_>>().join(", ")
}

/// The text after the window's length if it is not the requested one: " of 30 s, interrupted", " of
/// at most 30 s".
pub fn asked(trial: &Trial) -> String {
    let asked = trial.point.window;
    match (trial.interrupted, trial.ended_early) {
        (true, _) => format!(" of {asked}, interrupted"),
        (false, true) => format!(" of at most {asked}"),
        (false, false) if trial.window() < asked => ", until all was done".to_owned(),
        (false, false) => String::new(),
    }
}

/// "after a warm-up of 5 s", "without a warm-up", "after a warm-up of 5 s and before a cool-down of
/// 2 s".
pub fn before_and_after(trial: &Trial) -> String {
    let before = match trial.point.warm_up {
        Span(0) => "without a warm-up".to_owned(),
        time => format!("after a warm-up of {time}"),
    };
    match trial.point.cool_down {
        Span(0) => before,
        time => format!("{before} and before a cool-down of {time}"),
    }
}

/// The access of the I/Os to the target, and their backend.
pub fn way(trial: &Trial) -> String {
    match trial.backend {
        BackendKind::Sim => trial.backend_reason.clone(),
        backend => {
            let way = match same_access(trial) {
                Some(way) => format!("{way} "),
                // Then each of them has it.
                None => String::new(),
            };
            format!("{way}through {} ({})", backend.name(), trial.backend_reason)
        }
    }
}

/// The access of the I/Os of all streams to their targets, if it is the same.
pub fn same_access(trial: &Trial) -> Option<String> {
    let streams = &trial.point.streams;
    let first = streams.first()?.access;
    streams.iter().all(|stream| stream.access == first).then(|| first.to_string())
}

/// The work of a stream and its access, in a sentence; the access only if it differs from the
/// others'.
pub fn stream_in_words(trial: &Trial, stream: &Stream) -> String {
    let access = match same_access(trial) {
        Some(_) => String::new(),
        None => format!("; {}", stream.access),
    };
    let place = workplace(stream).map(|place| format!("; {place}")).unwrap_or_default();
    let pacing = pacing(stream, trial.point.window);
    format!("{}; {pacing}; {}{access}{place}", load(stream), workers(stream))
}

/// The work of a step, and its queue depth.
pub fn names(trial: &Trial) -> (String, String) {
    match trial.point.streams.as_slice() {
        [stream] => {
            let pattern = pattern_names(stream);
            let mix = match stream.read_share() {
                _ if stream.trims_alone() => "trim".to_owned(),
                share if share >= 1.0 => "read".to_owned(),
                share if share <= 0.0 => "write".to_owned(),
                share => format!("{:.0}/{:.0}", share * 100.0, (1.0 - share) * 100.0),
            };
            let block = stream.block_sizes();
            let depth = match stream.pacing.offered_load(trial.point.window) {
                None => format!("queue depth {}", stream.pacing.queue_depth()),
                Some(load) => format!("{} IOPS offered", short_rate(load.0)),
            };
            (format!("{pattern} {mix} {block}"), depth)
        }
        streams => (trial.point.name.clone(), format!("{} streams", streams.len())),
    }
}

/// A finding of one or several trials.
#[derive(Clone, Debug)]
pub struct Doubt<'a> {
    /// In the words of the first of them.
    pub finding: &'a Finding,
    /// Its trials, in words before the evidence; empty if there is only one trial.
    pub whose: String,
}

/// The codes of the checks that this machine could not make and another one could, without
/// repetition.
pub fn missing_checks<'t>(trials: impl IntoIterator<Item = &'t Trial>) -> Vec<&'t str> {
    let missing = |trial: &'t Trial| trial.unchecked.iter().filter(|one| one.missing);
    let mut codes: Vec<&str> =
        trials.into_iter().flat_map(missing).map(|one| one.code.as_str()).collect();
    codes.sort_unstable();
    codes.dedup();
    codes
}

/// ", 4 checks not made": the checks that a verdict of sound leaves open because this machine could
/// not make them; empty if there are none. One check that is missing in several trials counts once.
pub fn left_open<'t>(trials: impl IntoIterator<Item = &'t Trial>) -> String {
    match missing_checks(trials).len() {
        0 => String::new(),
        1 => ", 1 check not made".to_owned(),
        n => format!(", {n} checks not made"),
    }
}

/// Every finding once, with the trials that have it; the gravest first. A finding with a different
/// severity in some trials is reported separately for each severity: void is not the same as
/// suspect.
pub fn doubts<'t>(trials: &'t [Trial]) -> Vec<Doubt<'t>> {
    let mut groups: Vec<Vec<(usize, &'t Finding)>> = Vec::new();
    for (place, trial) in trials.iter().enumerate() {
        for one in &trial.findings {
            let same = |other: &Finding| (&other.code, other.severity) == (&one.code, one.severity);
            match groups.iter_mut().find(|group| same(group[0].1)) {
                Some(group) => group.push((place + 1, one)),
                None => groups.push(Vec::from([(place + 1, one)])),
            }
        }
    }
    let one = trial_word(trials);
    let doubt = |group: Vec<(usize, &'t Finding)>| {
        let &(step, finding) = group.first()?;
        let alike = group.iter().all(|(_, one)| one.evidence == finding.evidence);
        let mut steps: Vec<usize> = group.iter().map(|(step, _)| *step).collect();
        steps.dedup();
        let whose = match (whose(one, &steps, trials.len()), alike) {
            (whose, _) if whose.is_empty() => whose,
            (whose, true) => format!("{whose}: "),
            (whose, false) => format!("{whose}; in {one} {step}: "),
        };
        Some(Doubt { finding, whose })
    };
    let mut doubts: Vec<Doubt<'_>> = groups.into_iter().filter_map(doubt).collect();
    doubts.sort_by_key(|doubt| std::cmp::Reverse(doubt.finding.severity));
    doubts
}

/// The name of one of several trials: an experiment's trials have their places, the steps of others
/// follow each other.
pub fn trial_word(trials: &[Trial]) -> &'static str {
    let placed = trials.iter().any(|trial| !trial.place.coordinates.is_empty());
    if placed { "trial" } else { "step" }
}

/// More steps than this are not named one by one.
const NAMED: usize = 8;

/// "step 2", "steps 1, 3 and 4", "trials 1, 2, 3, 5, 6, 7, 8 and 60 more", "every step".
fn whose(one: &str, steps: &[usize], all: usize) -> String {
    let names: Vec<String> = steps.iter().map(usize::to_string).collect();
    match names.as_slice() {
        _ if all == 1 => String::new(),
        _ if steps.len() == all => format!("every {one}"),
        [only] => format!("{one} {only}"),
        [first @ .., _] if NAMED < names.len() => {
            let first = &first[..NAMED - 1];
            format!("{one}s {} and {} more", first.join(", "), names.len() - first.len())
        }
        [rest @ .., last] => format!("{one}s {} and {last}", rest.join(", ")),
        [] => String::new(),
    }
}

/// A target's name by its place in the header.
pub fn target_name(document: &Document, target: u32) -> &str {
    document.header.targets.get(target as usize).map_or("?", |target| target.name.as_str())
}

/// The name of a target's place: its folder, if the target is a scratch file that is gone by the
/// time of reading. The folder has its whole path, because "." means nothing to a reader elsewhere.
pub fn place_name(target: &Target) -> &str {
    match target.path.rsplit_once('/') {
        Some((folder, file)) if file.starts_with(".fathom-scratch") => match folder {
            "" => "/",
            folder => folder,
        },
        _ => &target.name,
    }
}

/// The names of the targets, as in titles.
pub fn place_names(document: &Document) -> Vec<&str> {
    let header = &document.header;
    match &header.imported {
        None => header.targets.iter().map(place_name).collect(),
        Some(source) if source.targets.is_empty() => Vec::from(["an unknown target"]),
        Some(source) => source.targets.iter().map(String::as_str).collect(),
    }
}

/// The facts about results of another program, in a sentence.
pub fn source(source: &Source) -> String {
    let when = source.measured.as_ref().map_or(String::new(), |when| format!(", {when}"));
    format!(
        "Measured by {}{when}, and imported from {}. What its result does not tell is not known: \
         the machine, how the targets are made, half-widths and doubts.",
        source.program,
        source.files.join(", ")
    )
}

/// A target and what is below it, in one line.
pub fn stack(target: &Target) -> String {
    let mut parts = vec![format!("{} of {}", target.kind.name(), target.size)];
    if let Some(fs) = &target.file_system {
        let free = fs.available;
        parts.push(format!("{} on {} at {}, {free} free", fs.kind, fs.source, fs.mount_point));
    }
    let middle: Vec<String> = target
        .layers
        .iter()
        .filter(|layer| !layer.members.is_empty())
        .map(|layer| match geometry(layer).as_slice() {
            [] => format!("{} {}", layer.kind.name(), layer.name),
            parts => format!("{} {} ({})", layer.kind.name(), layer.name, parts.join(", ")),
        })
        .collect();
    parts.extend(middle);
    let disks: Vec<String> = target.disks().map(disk).collect();
    match disks.as_slice() {
        [first, second, .., last] => parts.push(format!(
            "{} disks: {first}; {second}{} {last}",
            disks.len(),
            if disks.len() > 3 { "; ...;" } else { ";" }
        )),
        few => parts.extend(few.iter().cloned()),
    }
    parts.join("; ")
}

/// How a layer spreads data: "raid5, 4 disks", "chunk 64 KiB", "full stripe 192 KiB".
fn geometry(layer: &crate::document::Layer) -> Vec<String> {
    let mut parts: Vec<String> = layer.detail.iter().cloned().collect();
    // The detail of an md array counts its disks, and says whether one is missing.
    let is_counted = layer.detail.as_ref().is_some_and(|detail| detail.contains(" disks"));
    if !is_counted && (layer.kind == LayerKind::Md || layer.stripe.is_some()) {
        parts.push(format!("{} members", layer.members.len()));
    }
    if let Some(stripe) = &layer.stripe {
        parts.push(format!("chunk {}", stripe.chunk));
        parts.push(format!("full stripe {}", stripe.full));
    }
    parts
}

/// The result of a trial with a fixed amount, in a line; none for any other.
pub fn completed(trial: &Trial) -> Option<String> {
    let [stream] = trial.point.streams.as_slice() else { return None };
    stream.pacing.limit?;
    if stream.trims_alone() {
        return None;
    }
    let direction = stream.only_direction();
    fathom_core::experiment::completed(direction, trial.total(None).bytes.0, trial.window())
}

/// The lines of all trials with a fixed amount, in the order in which they ran, each with the
/// number of the trial and its place: "7: random, 256k, 1/worker, 8 workers".
pub fn runs(document: &Document) -> Vec<(String, String)> {
    let label = |one: &Coordinate| match (one.axis.as_str(), one.label.as_str()) {
        ("workers", "1") => "1 worker".to_owned(),
        ("workers", label) => format!("{label} workers"),
        (_, label) => label.to_owned(),
    };
    let line = |(nth, trial): (usize, &Trial)| {
        let labels = trial.place.coordinates.iter().map(label);
        let place = labels.collect::<Vec<_>>().join(", ");
        Some((format!("{}: {place}", nth + 1), completed(trial)?))
    };
    document.trials.iter().enumerate().filter_map(line).collect()
}

fn disk(layer: &crate::document::Layer) -> String {
    let facts = layer.disk.as_ref();
    let model = facts.and_then(|disk| disk.model.as_deref()).map(|model| format!(" {model}"));
    let turns = match facts.and_then(|disk| disk.rotational) {
        Some(true) => ", rotational",
        Some(false) | None => "",
    };
    let transport = facts.and_then(|disk| disk.transport.as_deref());
    let transport = transport.map(|transport| format!(", {transport}")).unwrap_or_default();
    format!(
        "{} {}{}, {}{transport}{turns}",
        layer.kind.name(),
        layer.name,
        model.unwrap_or_default(),
        layer.size
    )
}

/// How an I/O failed, in words.
pub fn failure(failure: Failure) -> String {
    match failure {
        Failure::Errno(errno) => match errno::meaning(errno) {
            Meaning { name: Some(name), words, .. } => format!("{name} (errno {errno}): {words}"),
            Meaning { name: None, .. } => format!("errno {errno}"),
        },
        Failure::NvmeStatus(status) => {
            let name = nvme::meaning(status).name.unwrap_or("without a name here");
            format!("NVMe status {name} ({})", nvme::numbers(status))
        }
        Failure::ShortBytes(0) => {
            "0 bytes moved: the end of the target, or it was unplugged".to_owned()
        }
        Failure::ShortBytes(moved) => format!("short: only {} moved", Bytes(u64::from(moved))),
        Failure::Lost => {
            "lost: it started then and did not come back while we waited for it".to_owned()
        }
    }
}

/// A host in a line.
pub fn host(host: &Host) -> String {
    let mut facts =
        Vec::from([format!("{}: Linux {}, {} CPUs", host.name, host.kernel, host.cpus)]);
    facts.extend(host.cpu_model.clone());
    facts.push(memory(host.memory));
    facts.extend(host.virtualization.clone());
    facts.join(", ")
}

/// The clock that stamped the I/Os, in a line.
pub fn clock(clock: &Clock) -> String {
    format!(
        "{}: a reading costs {}, its smallest step is {}",
        clock.source,
        time(clock.cost_ns),
        time(clock.resolution_ns)
    )
}

/// The kind of times in the tables of a part.
pub fn time_name(part: TrialPart<'_>) -> &'static str {
    if part.is_open() { "response time" } else { "service time" }
}

/// How much memory a host has.
pub fn memory(bytes: Bytes) -> String {
    match bytes {
        Bytes(0) => "an unknown amount of memory".to_owned(),
        bytes => format!("{bytes} of memory"),
    }
}

/// The command line in a form that can be typed again.
pub fn command_line(words: &[String]) -> String {
    words.iter().map(|word| typed_word(word)).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_for_a_narrow_column_has_the_letter_of_its_magnitude() {
        assert_eq!(short_rate(812.34), "812");
        assert_eq!(short_rate(12_345.0), "12.3k");
        assert_eq!(short_rate(999_700.0), "1.00M");
    }

    #[test]
    fn a_ceiling_is_told_with_two_digits() {
        for (times, text) in [(0.94, "0.9"), (1.26, "1.3"), (41.7, "42"), (999.0, "1,000")] {
            assert_eq!(times_as_many(times), format!("{text} times as many"));
        }
        assert_eq!(times_as_many(12_345.0), "12,000 times as many");
    }

    #[test]
    fn half_widths_are_shown_in_percent_of_their_value() {
        let shown = |value, half_width| plus_minus(Some(&Estimate { value, half_width }));
        assert_eq!(shown(100.0, Some(3.2)), "±3%");
        assert_eq!(shown(100.0, Some(0.42)), "±0.4%");
        assert_eq!(shown(100.0, Some(0.0)), "±0%");
        assert_eq!(shown(100.0, Some(100.0)), "±100%");
        assert_eq!(shown(100.0, Some(100.1)), "±>100%");
        assert_eq!(shown(100.0, Some(1e6)), "±>100%");
        assert_eq!(shown(0.0, Some(0.0)), "");
        assert_eq!(shown(100.0, None), "");
    }

    #[test]
    fn a_command_line_can_be_typed_again() {
        let words = ["fathom", "run", "/data/my file", "it's", ""].map(str::to_owned);
        assert_eq!(command_line(&words), r"fathom run '/data/my file' 'it'\''s' ''");
    }
}
