//! A time span in the resolver's terms: each target becomes a stream, with the facts about
//! DiskSpd's threads that the result needs. Refusals use DiskSpd's names for settings.

use std::path::PathBuf;

use fathom_core::facts::{self, TargetKind};
use fathom_core::spec::{
    BlockSizes, Distribution as Places, Extent, Hint, HotRange, IoPriority, Kind, Pattern,
    Payload as Content, Region, RestFrom, Rests, Sequence, Starts, SyncMode, Workers,
};
use fathom_core::{Bytes, Span};
use fathom_core::{Refusal, RefusalKind};
use fathom_report::export::diskspd as export;

use super::draft::Speech;
use super::model::{
    Access, Affinity, Burst, Cache, Distribution, Flush, Hints, Mapping, Order, Payload, Priority,
    SpanUnit, Target, Threads, Throttle, TimeSpan,
};
use crate::cli::described::{Aim, Described, ONLY, StreamArgs};
use crate::cli::options::{AccessArgs, ArrivalsArg, LoadArgs, PayloadArgs};
use crate::cli::rates::Offered;
use crate::cli::values::{Cpus, Depth, Sizes, Weights};
use crate::dialect::Notes;
use crate::error::Error;
use crate::limits::{MOST, MOST_BUCKET_BYTES, MOST_INTERVALS, SHORTEST_INTERVAL};
use crate::resolve::{self, Blame, Machine, Spec};
use crate::spoken;

/// A time span that can run.
#[derive(Clone, Debug, PartialEq)]
pub struct Mapped {
    /// The point to measure.
    pub spec: Spec,
    /// Its description for the result.
    pub result: export::TimeSpan,
}

/// Settings of a time span that cannot run on this machine, with any targets, and differences from
/// DiskSpd.
pub fn gaps(
    span: &TimeSpan,
    speech: &Speech,
    machine: Machine<'_>,
    notes: &mut Notes,
) -> Vec<Refusal> {
    let mut gaps = Gaps { speech, refusals: Vec::new() };
    gaps.span(span);
    match span.threads {
        Threads::PerTarget => {}
        Threads::Total(_) => notes.add(
            "-F without -O: each target has its threads for itself, so that a slow target cannot \
             hold up the others; in the result they are one thread",
        ),
        Threads::Pool { .. } => {
            gaps.pool(span);
        }
    }
    for target in &span.targets {
        tell_about_the_cache(target, notes);
        let default = target.payload == Payload::Pattern && !span.random_write_data;
        if target.write_percent > 0 && default {
            notes.add(
                "written is random data, other in every block, where DiskSpd writes the bytes 0 \
                 to 255 again and again",
            );
        }
    }
    if gaps.refusals.is_empty() {
        gaps.refusals.extend(refused_anywhere(span, speech, machine));
    }
    gaps.refusals
}

/// Settings that the resolver refuses even for the largest targets.
fn refused_anywhere(span: &TimeSpan, speech: &Speech, machine: Machine<'_>) -> Option<Refusal> {
    let any = |target: &Target| facts::Target {
        kind: TargetKind::File,
        ..facts::Target::simulated(&target.path, Bytes(i64::MAX as u64))
    };
    let targets: Vec<facts::Target> = span.targets.iter().map(any).collect();
    let place = |path: &str| span.targets.iter().position(|one| one.path == path).unwrap_or(0);
    let file = |path: &str| PathBuf::from(path);
    let here = Here { targets: &targets, place: &place, file: &file, machine, speech };
    match map(span, here).err()? {
        Error::Refusal(refusal) if refusal.kind == RefusalKind::Usage => Some(refusal),
        other => Some(Refusal::usage("this time span", other.to_string(), "change it")),
    }
}

/// Surprising effects of hints and of mapped files.
fn tell_about_the_cache(target: &Target, notes: &mut Notes) {
    let Hints { random, sequential, .. } = target.hints;
    if (random || sequential) && target.cache != Cache::Cached && target.mapping == Mapping::Off {
        notes.add("-fr, -fs have no effect where the cache is bypassed");
    } else if random && sequential {
        notes
            .add("-fr and -fs: a file is read at random or in its order, so that only -fr is said");
    }
    if target.mapping == Mapping::On(Flush::None) && target.write_through {
        notes.add(
            "-Smw: as with DiskSpd no write to a mapped file waits until it is durable: -Nv has each \
             flushed",
        );
    }
}

struct Gaps<'a> {
    speech: &'a Speech,
    refusals: Vec<Refusal>,
}

impl Gaps<'_> {
    fn refuse(&mut self, thing: String, problem: &str, remedy: &str) {
        let refusal = Refusal::usage(thing, problem, remedy);
        if !self.refusals.contains(&refusal) {
            self.refusals.push(refusal);
        }
    }

    fn span(&mut self, span: &TimeSpan) {
        let (bucket, duration) = (u64::from(span.io_bucket_ms), u64::from(span.duration_s) * 1000);
        let threads = |target: &Target| u64::from(span.threads.total().unwrap_or(target.threads));
        let counted: u64 = span.targets.iter().map(threads).sum();
        let buckets = duration.div_ceil(bucket);
        let bytes = counted.saturating_mul(buckets).saturating_mul(16);
        if span.iops_deviation && (MOST_INTERVALS < buckets || MOST_BUCKET_BYTES < bytes) {
            self.refuse(
                self.speech.said("D", "IoBucketDuration", bucket),
                &format!(
                    "there would be {buckets} intervals for each of {counted} threads and targets"
                ),
                "choose longer ones",
            );
        }
    }

    fn pool(&mut self, span: &TimeSpan) {
        let targets = &span.targets;
        let writer = writer(targets);
        let unlike = |target: &&Target| manner(target, writer) != manner(&targets[0], writer);
        if let Some(target) = targets.iter().find(unlike) {
            self.refuse(
                format!("{}: <RequestCount>", target.path),
                "a thread that draws the target of each I/O has one kind of cache, hints, priority \
                 and content for all of them, and this target has another",
                "give each target threads of its own, with -g or <Throughput> for its share",
            );
        }
        let groups = groups(span);
        if let Some(group) = groups.iter().find(|group| group.targets.is_empty()) {
            self.refuse(
                format!("<ThreadTargets> without thread {}", group.lanes.first),
                "it has no target",
                "name it at one, or lower <ThreadCount>",
            );
        }
        if groups.len() > 1 && targets.iter().any(is_interlocked) {
            self.refuse(
                "<InterlockedSequential> with <ThreadTargets>".to_owned(),
                "only threads with the same targets in the same shares can have one pointer",
                "drop one of the two",
            );
        }
    }
}

/// The map of paths.
#[derive(Clone, Copy)]
pub struct Here<'a> {
    /// The facts about the targets.
    pub targets: &'a [facts::Target],
    /// The place of a path among them.
    pub place: &'a dyn Fn(&str) -> usize,
    /// The local path of a file that is not a target.
    pub file: &'a dyn Fn(&str) -> PathBuf,
    /// The facts about the machine.
    pub machine: Machine<'a>,
    /// The names of settings.
    pub speech: &'a Speech,
}

/// The time span on the targets of this machine.
///
/// # Errors
///
/// When the resolver refuses it.
pub fn map(span: &TimeSpan, here: Here<'_>) -> Result<Mapped, Error> {
    let groups = groups(span);
    let bucket = span.iops_deviation.then(|| Span::from_ms(u64::from(span.io_bucket_ms)));
    let window = Span::from_secs(u64::from(span.duration_s));
    // If the intervals of a series can have this length, they do.
    let fits = |bucket: &Span| SHORTEST_INTERVAL <= *bucket && window.0.is_multiple_of(bucket.0);
    let run = LoadArgs {
        warm_up: Some(Span::from_secs(u64::from(span.warm_up_s))),
        duration: Some(window),
        cool_down: Some(Span::from_secs(u64::from(span.cool_down_s))),
        interval: bucket.filter(fits),
        seed: Some(u64::from(span.seed)),
        cpus: cpus(&span.affinity, here.machine),
        ..LoadArgs::default()
    };
    let streams = groups.iter().map(|group| stream(group, &run, here));
    let described = Described {
        buckets: bucket.filter(|bucket| !fits(bucket)),
        ..Described::of(streams.collect())
    };
    let spec = resolve::settle(&described, here.targets.to_vec(), here.machine)
        .map_err(|blame| in_diskspds_words(blame, &groups, (span, here.speech)))?;
    let mut distributions = Vec::new();
    for (group, stream) in groups.iter().zip(spec.streams()) {
        let each = group.targets.iter().zip(&stream.regions);
        distributions.extend(each.filter_map(|(one, region)| effective(one, region, group.lanes)));
    }
    let result = |group: &Group| export::ThreadGroup {
        first_thread: group.lanes.first,
        paths: group.targets.iter().map(|target| target.path.clone()).collect(),
    };
    let threads = |group: &Group| group.lanes.first.saturating_add(group.lanes.threads);
    Ok(Mapped {
        result: export::TimeSpan {
            service_times: span.service_times,
            io_bucket: bucket,
            threads: groups.iter().map(threads).max().unwrap_or(0),
            requests: match span.threads {
                Threads::Pool { outstanding, .. } => Some(outstanding),
                _ => None,
            },
            streams: groups.iter().map(result).collect(),
            distributions,
        },
        spec,
    })
}

/// A refusal with DiskSpd's names for settings. A remedy without a setting in DiskSpd is left out.
fn in_diskspds_words(
    blame: Blame,
    groups: &[Group],
    (span, speech): (&TimeSpan, &Speech),
) -> Error {
    let Error::Refusal(refusal) = blame.error else { return blame.error };
    if refusal.kind != RefusalKind::Usage {
        return refusal.into();
    }
    let Refusal { about: option, problem, remedy, .. } = refusal;
    let group = &groups[blame.stream.unwrap_or(0)];
    let target = writer(&group.targets);
    let bare = |name: &str| match name {
        "buffered" => Some("-Sb".to_owned()),
        _ => setting(name, span, group).map(|(option, element, _)| speech.bare(option, element)),
    };
    let name = option.strip_prefix("--").unwrap_or(&option);
    let name = name.split([' ', '=']).next().unwrap_or(name);
    let thing = match setting(name, span, group) {
        Some((option, element, Some(value))) => speech.said(option, element, value),
        Some((option, element, None)) => speech.name(option, element),
        None => option,
    };
    let thing = match blame.stream {
        Some(_) => format!("{}: {thing}", target.path),
        None => thing,
    };
    let clauses =
        remedy.split_inclusive([',', ';']).filter_map(|clause| spoken::renamed(clause, &bare));
    let remedy = clauses.collect::<String>();
    let problem = spoken::renamed(&problem, &bare).unwrap_or(problem);
    Error::option(thing, problem, remedy.trim_end_matches([',', ';']))
}

/// DiskSpd's counterpart of an option of fathom: its option, its element, and the given value, if
/// it has one.
fn setting(
    option: &str,
    span: &TimeSpan,
    group: &Group,
) -> Option<(&'static str, &'static str, Option<u64>)> {
    let target = writer(&group.targets);
    let is_pool = matches!(span.threads, Threads::Pool { .. });
    let threads = Some(u64::from(group.lanes.threads));
    let depth = Some(u64::from(group.depth));
    Some(match option {
        "block-size" => ("b", "BlockSize", Some(u64::from(target.block_size))),
        "offset" => ("B", "BaseFileOffset", Some(target.base)),
        "size" => ("f", "MaxFileSize", target.max_offset),
        "align" | "pattern" => match target.access {
            Access::Sequential { order: Order::Interlocked, .. } => ("si", "StrideSize", None),
            Access::Sequential { .. } => ("s", "StrideSize", None),
            Access::Random { .. } => ("r", "Random", None),
        },
        "start-distance" => ("T", "ThreadStride", Some(thread_stride(target))),
        "queue-depth" if is_pool => ("O", "RequestCount", depth),
        "queue-depth" => ("o", "RequestCount", depth),
        "workers" if span.threads.total().is_some() => ("F", "ThreadCount", threads),
        "workers" => ("t", "ThreadsPerFile", threads),
        "rate" => ("g", "Throughput", None),
        "burst" => ("i", "BurstSize", None),
        "payload" => match target.payload {
            Payload::Pool { size, .. } => ("Z<size>", "SizeInBytes", Some(size)),
            _ => ("Z", "WriteBufferContent", None),
        },
        "cpus" => ("a", "Affinity", None),
        "duration" => ("d", "Duration", Some(u64::from(span.duration_s))),
        "interval" => ("D", "IoBucketDuration", Some(u64::from(span.io_bucket_ms))),
        "read-share" => ("w", "WriteRatio", None),
        _ => return None,
    })
}

/// Threads that do the same.
#[derive(Clone, Copy)]
struct Lanes {
    threads: u32,
    /// The number of the first.
    first: u32,
}

/// Consecutive threads that do I/Os on the same targets: a stream.
struct Group {
    lanes: Lanes,
    /// I/Os in flight of each thread.
    depth: u32,
    targets: Vec<Target>,
    /// One for each target.
    weights: Vec<f64>,
}

/// The threads, in their order.
fn groups(span: &TimeSpan) -> Vec<Group> {
    let mut next = 0;
    let alone = |target: &Target| {
        let lanes = match span.threads.total() {
            Some(threads) => Lanes { threads, first: 0 },
            None => Lanes { threads: target.threads, first: next },
        };
        // Too many of them are refused once it is known what each does.
        next = u32::saturating_add(next, target.threads);
        let targets = Vec::from([target.clone()]);
        Group { lanes, depth: target.outstanding, targets, weights: Vec::from([1.0]) }
    };
    match span.threads {
        Threads::Pool { threads, outstanding } => pool(&span.targets, threads, outstanding),
        Threads::PerTarget | Threads::Total(_) => span.targets.iter().map(alone).collect(),
    }
}

/// The threads of a pool, grouped: consecutive ones that draw from the same targets by the same
/// weights.
fn pool(all: &[Target], threads: u32, depth: u32) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    // More than these are refused, whatever they do.
    for thread in 0..threads.min(MOST) {
        let (mut targets, mut weights) = (Vec::new(), Vec::new());
        for target in all {
            let own = target.thread_targets.iter().find(|one| one.thread == thread);
            if own.is_none() && !target.thread_targets.is_empty() {
                continue;
            }
            // As in DiskSpd, a weight of 0 is not a weight.
            let weight = own.and_then(|own| own.weight).filter(|&weight| weight > 0);
            targets.push(target.clone());
            weights.push(f64::from(weight.unwrap_or(target.weight)));
        }
        match groups.last_mut() {
            Some(last) if (&last.targets, &last.weights) == (&targets, &weights) => {
                last.lanes.threads += 1;
            }
            _ => {
                let lanes = Lanes { threads: 1, first: thread };
                groups.push(Group { lanes, depth, targets, weights });
            }
        }
    }
    if let Some(last) = groups.last_mut() {
        last.lanes.threads += threads.saturating_sub(MOST);
    }
    groups
}

/// The common part of all targets of a pool's threads: the access and the payload. For threads that
/// only read, the payload and its durability do not matter.
fn manner(target: &Target, writer: &Target) -> Target {
    let writes = target.write_percent > 0;
    let of = if writes { target } else { writer };
    Target {
        cache: target.cache,
        hints: target.hints,
        large_pages: target.large_pages,
        priority: target.priority,
        mapping: target.mapping,
        write_through: of.write_through,
        payload: of.payload.clone(),
        ..writer.clone()
    }
}

/// The first of the targets that is written to, or the first.
fn writer(targets: &[Target]) -> &Target {
    targets.iter().find(|target| target.write_percent > 0).unwrap_or(&targets[0])
}

fn is_interlocked(target: &Target) -> bool {
    matches!(target.access, Access::Sequential { order: Order::Interlocked, .. })
}

/// The I/Os to a target.
fn kind(target: &Target, group: &Group) -> Kind {
    Kind {
        pattern: pattern(target, group.lanes.threads, group.depth),
        align: align(target),
        block_sizes: BlockSizes::one(Bytes(u64::from(target.block_size))),
        read_share: read_share(target),
    }
}

/// The work of threads, given the settings of the whole run.
fn stream(group: &Group, run: &LoadArgs, here: Here<'_>) -> StreamArgs {
    let target = writer(&group.targets);
    let kinds: Vec<Kind> = group.targets.iter().map(|target| kind(target, group)).collect();
    let alike = kinds.iter().all(|kind| *kind == kinds[0]);
    let aim = |(target, kind): (&Target, &Kind)| Aim {
        target: (here.place)(&target.path) as u32,
        offset: Some(Bytes(target.base)),
        // An existing file that is larger than the size in -c is used in part.
        end: Some(Bytes(
            target.max_offset.unwrap_or(u64::MAX).min(target.create_size.unwrap_or(u64::MAX)),
        )),
        kind: (!alike).then(|| kind.clone()),
        ..Aim::at(PathBuf::from(&target.path))
    };
    let rate = per_thread(target).map(Offered::by_each_worker);
    StreamArgs {
        name: None,
        aims: group.targets.iter().zip(&kinds).map(aim).collect(),
        load: LoadArgs {
            block_size: Sizes::one(Bytes(u64::from(target.block_size))),
            read_share: read_share(target),
            pattern: pattern(target, group.lanes.threads, group.depth),
            align: align(target),
            payload: payload(target, here.file),
            queue_depth: Some(Depth::PerWorker(group.depth)),
            workers: Workers::Total(group.lanes.threads),
            weights: (group.targets.len() > 1).then(|| Weights(group.weights.clone())),
            // Like DiskSpd's limit, a schedule that starts with the load catches up after late
            // I/Os.
            arrivals: rate.as_ref().map(|_| ArrivalsArg::Uniform),
            rate,
            burst: rests(target),
            io_priority: match target.priority {
                Priority::Normal => None,
                Priority::Low => Some(IoPriority::BestEffort(IoPriority::LAST)),
                Priority::VeryLow => Some(IoPriority::Idle),
            },
            large_pages: target.large_pages,
            ..run.clone()
        },
        access: access(target),
        copy: ONLY,
        first_worker: Some(group.lanes.first),
    }
}

/// The CPUs to which threads are tied, one after the other; none if they run on any.
fn cpus(affinity: &Affinity, machine: Machine<'_>) -> Option<Cpus> {
    let allowed = machine.cpu_places.iter().map(|place| place.number);
    let list: Vec<u32> = match affinity {
        Affinity::Off => Vec::new(),
        Affinity::RoundRobin => allowed.collect(),
        // A caller that asks about any machine knows of no CPUs.
        Affinity::Explicit(_) if machine.cpu_places.is_empty() => Vec::new(),
        Affinity::Explicit(list) => list.iter().map(|cpu| u32::from(cpu.number)).collect(),
    };
    (!list.is_empty()).then_some(Cpus::List(list))
}

/// The stride of sequential I/Os, or the alignment of random ones.
fn step(target: &Target) -> u64 {
    match target.access {
        Access::Sequential { stride, .. } => stride,
        Access::Random { alignment, .. } => alignment,
    }
}

/// The distance between the starts of threads: 0 if all start at the same place.
fn thread_stride(target: &Target) -> u64 {
    match target.access {
        Access::Sequential { thread_stride, .. } => thread_stride,
        Access::Random { .. } => 0,
    }
}

/// The order of the offsets of this many threads with this many I/Os in flight.
fn pattern(target: &Target, workers: u32, depth: u32) -> Pattern {
    let block = u64::from(target.block_size);
    let stride = Some(Bytes(step(target))).filter(|&stride| stride != Bytes(block));
    match &target.access {
        Access::Sequential { order: Order::Interlocked, .. } => Pattern::Interlocked { stride },
        Access::Sequential { order, .. } => {
            let visits = (*order == Order::Parallel && depth > 1).then_some(depth);
            let starts = match workers {
                1 => Starts::default(),
                _ => Starts::Apart(Bytes(thread_stride(target))),
            };
            Pattern::Sequential(Sequence { stride, visits, starts, ..Sequence::default() })
        }
        Access::Random { percent, distribution, .. } => {
            let places = distribution.as_ref().map_or(Places::Uniform, places);
            Pattern::mixed(f64::from(*percent) / 100.0, places)
        }
    }
}

/// A distribution for the core, which gives the rest of the target the remaining share.
fn places(distribution: &Distribution) -> Places {
    let ranges = distribution.ranges.iter().filter(|range| range.span > 0);
    let extent = |span: u64| match distribution.unit {
        SpanUnit::Percent => Extent::Share(span as f64 / 100.0),
        SpanUnit::Bytes => Extent::Size(Bytes(span)),
    };
    let range = ranges.map(|range| HotRange {
        io_share: f64::from(range.io) / 100.0,
        extent: extent(range.span),
    });
    Places::Hot(range.collect())
}

/// The ranges of a distribution in a region, as DiskSpd prints them.
fn effective(target: &Target, region: &Region, lanes: Lanes) -> Option<export::RangeShares> {
    let Access::Random { distribution: Some(distribution), alignment, .. } = &target.access else {
        return None;
    };
    let length = region.length.0;
    let mut ranges = Vec::new();
    let (mut from, mut spans) = (0, 0_u64);
    for range in &distribution.ranges {
        spans = spans.saturating_add(range.span);
        let end = match distribution.unit {
            SpanUnit::Bytes if range.span == 0 => length,
            SpanUnit::Bytes => spans,
            SpanUnit::Percent => (u128::from(length) * u128::from(spans) / 100) as u64,
        };
        // Every range has whole steps, and the last one gets the rest.
        let end = if end < length { end - end % alignment } else { length };
        if range.io > 0 && from < end {
            ranges.push((range.io, region.offset.0 + from, region.offset.0 + end));
        }
        from = end;
    }
    // The part beyond the target is cut off, and the others get its I/Os.
    let total: u32 = ranges.iter().map(|(io, ..)| io).sum();
    ranges.iter_mut().for_each(|(io, ..)| *io = (*io * 100 + total / 2) / total.max(1));
    let threads = (lanes.first..lanes.first + lanes.threads).collect();
    Some(export::RangeShares { path: target.path.clone(), threads, ranges })
}

/// The limit of a thread in I/Os per second, if it has one: at most as many as its bursts allow.
fn per_thread(target: &Target) -> Option<f64> {
    let limit = match target.throttle {
        Throttle::Off => return None,
        Throttle::BytesPerMs(bytes) => bytes as f64 * 1e3 / f64::from(target.block_size),
        Throttle::Iops(iops) => iops as f64,
    };
    Some(limit.min(target.burst.map_or(f64::INFINITY, |burst| in_bursts(&burst))))
}

/// The most I/Os per second that bursts of this size with these pauses allow.
fn in_bursts(burst: &Burst) -> f64 {
    f64::from(burst.ios) * 1e3 / f64::from(burst.think_time_ms)
}

/// How a thread pauses. As DiskSpd's, its pause begins when the last I/O of a burst starts.
fn rests(target: &Target) -> Option<Rests> {
    target.burst.map(|burst| Rests::Bursts {
        ios: burst.ios,
        rest: Span::from_ms(u64::from(burst.think_time_ms)),
        from: RestFrom::LastStart,
    })
}

fn read_share(target: &Target) -> f64 {
    1.0 - f64::from(target.write_percent) / 100.0
}

/// The alignment of random I/Os, if it is not the block.
fn align(target: &Target) -> Option<Bytes> {
    match target.access {
        Access::Random { alignment, .. } => {
            Some(Bytes(alignment)).filter(|align| align.0 != u64::from(target.block_size))
        }
        Access::Sequential { .. } => None,
    }
}

/// The payload, if the target is written to.
fn payload(target: &Target, file: &dyn Fn(&str) -> PathBuf) -> PayloadArgs {
    let content = match &target.payload {
        _ if target.write_percent == 0 => None,
        Payload::Pattern => None,
        Payload::Zero => Some(Content::Zeros),
        Payload::Pool { size, file: name } => {
            Some(Content::Pool { size: Bytes(*size), file: name.as_deref().map(file) })
        }
    };
    PayloadArgs { payload: content, ..PayloadArgs::default() }
}

/// The access to a target.
fn access(target: &Target) -> AccessArgs {
    let mapped = target.mapping != Mapping::Off;
    AccessArgs {
        buffered: target.cache == Cache::Cached && !mapped,
        mmap: mapped,
        sync: is_durable(target).then_some(SyncMode::Dsync),
        fadvise: hint(target),
        ..AccessArgs::default()
    }
}

/// Whether a write is durable when it completes. This does not matter for reads, and a write to a
/// mapped file is durable only when it is flushed.
fn is_durable(target: &Target) -> bool {
    let durable = match target.mapping {
        Mapping::Off => target.write_through,
        Mapping::On(flush) => flush != Flush::None,
    };
    durable && target.write_percent > 0
}

/// The hint to the system about the use of its cache, if the cache is used.
fn hint(target: &Target) -> Option<Hint> {
    let cached = target.cache == Cache::Cached || target.mapping != Mapping::Off;
    match target.hints {
        _ if !cached => None,
        Hints { random: true, .. } => Some(Hint::Random),
        Hints { sequential: true, .. } => Some(Hint::Sequential),
        Hints { .. } => None,
    }
}

#[cfg(test)]
mod tests {
    use fathom_core::facts::CpuPlace;
    use fathom_core::spec::{
        Access as SpecAccess, Arrivals, Cache as SpecCache, Ios, Loop, Pacing, Stream, Turns,
    };

    use super::*;
    use crate::dialect::diskspd::{read, tests::words};

    fn span(line: &str) -> TimeSpan {
        let request = read(&words(line), 7, &mut |_| unreachable!("no profile is named"));
        request.unwrap().profile.time_spans.remove(0)
    }

    const CPUS: [CpuPlace; 3] = [cpu(0), cpu(1), cpu(3)];
    const MACHINE: Machine<'_> =
        Machine { memory: Bytes(8 << 30), fresh_seed: 1, cpus: 3, cpu_places: &CPUS };

    const fn cpu(number: u32) -> CpuPlace {
        CpuPlace { number, core: None, package: None, node: None }
    }

    /// A file of 1 MiB.
    fn file(name: &str) -> facts::Target {
        facts::Target {
            kind: TargetKind::File,
            direct_alignment: Some(Bytes(512)),
            ..facts::Target::simulated(name, Bytes(1 << 20))
        }
    }

    /// The streams on files of 1 MiB each.
    fn streams(line: &str) -> Vec<Stream> {
        mapped(line).unwrap().spec.points.remove(0).streams
    }

    /// Maps a line with files of 1 MiB each.
    fn mapped(line: &str) -> Result<Mapped, Error> {
        let span = span(line);
        let names: Vec<&str> = span.targets.iter().map(|target| target.path.as_str()).collect();
        let facts: Vec<facts::Target> = names.iter().map(|name| file(name)).collect();
        let place = |path: &str| names.iter().position(|name| *name == path).unwrap();
        let pool = |path: &str| PathBuf::from(path);
        map(
            &span,
            Here {
                targets: &facts,
                place: &place,
                file: &pool,
                machine: MACHINE,
                speech: &Speech::Elements,
            },
        )
    }

    /// For each stream: the first thread, the workers, the I/Os in flight, and the regions in KiB.
    fn shape(line: &str) -> Vec<String> {
        let Mapped { mut spec, result } = mapped(line).unwrap();
        let point = spec.points.remove(0);
        let shown = |(stream, threads): (&Stream, &export::ThreadGroup)| {
            let regions = stream.regions.iter().map(|region| {
                format!(" {}:{}+{}", region.target, region.offset.0 >> 10, region.length.0 >> 10)
            });
            format!(
                "{}: {:?}, {} in flight,{}",
                threads.first_thread,
                stream.workers,
                stream.pacing.queue_depth(),
                regions.collect::<String>()
            )
        };
        point.streams.iter().zip(&result.streams).map(shown).collect()
    }

    #[test]
    fn each_target_is_a_stream_with_its_threads() {
        assert_eq!(
            shape("-b4K -r -t2 -o4 a b"),
            ["0: Total(2), 8 in flight, 0:0+1024", "2: Total(2), 8 in flight, 1:0+1024"]
        );
        assert_eq!(
            shape("-b4K -r -F3 -o4 a b"),
            ["0: Total(3), 12 in flight, 0:0+1024", "0: Total(3), 12 in flight, 1:0+1024"]
        );
        assert_eq!(shape("-b4K -r -F3 -O5 a b"), ["0: Total(3), 15 in flight, 0:0+1024 1:0+1024"]);
        let drawn = streams("-b4K -r -F3 -O5 a b").remove(0).turns;
        assert_eq!(drawn, Turns::Weighted(Vec::from([1.0, 1.0])));
        assert_eq!(streams("-r -F3 -O5 a")[0].turns, Turns::InTurn);
        assert_eq!(shape("-b64K -r -B100K -f500K a"), ["0: Total(1), 2 in flight, 0:100+384"]);
        // A file that is larger than the size of -c is used in part.
        assert_eq!(shape("-b64K -r -c256K a"), ["0: Total(1), 2 in flight, 0:0+256"]);
    }

    #[test]
    fn sequential_threads_share_a_region_and_start_where_they_are_told() {
        assert_eq!(shape("-b4K -t2 a"), ["0: Total(2), 4 in flight, 0:0+1024"]);
        assert_eq!(shape("-b4K -t2 -T512K a"), ["0: Total(2), 4 in flight, 0:0+1024"]);
        for (line, pattern) in [
            ("-b4K -t2 a", "sequential (starts together)"),
            ("-b4K -t2 -T512K a", "sequential (starts 512 KiB apart)"),
            ("-b4K -s8K -F2 -T512K a b", "strided 8 KiB (starts 512 KiB apart)"),
            ("-b4K a", "sequential"),
        ] {
            let stream = streams(line).remove(0);
            assert_eq!(stream.pattern().to_string(), pattern, "{line}");
            assert_eq!(fathom_core::spec::check_pattern(&stream), Ok(()), "{line}");
        }
        let refusal = mapped("-b4K -t3 -T512K a").unwrap_err().to_string();
        assert!(refusal.contains("<ThreadStride> 524288: the last of 3 workers"), "{refusal}");
    }

    /// A pool of two threads over two targets with these elements: its streams, or the reason for
    /// its refusal.
    fn pool(one: &str, other: &str, threads: &str) -> Result<Vec<Stream>, String> {
        let target = |path: &str, said: &str| format!("<Target><Path>{path}</Path>{said}</Target>");
        let profile = format!(
            "<Profile><TimeSpans><TimeSpan><RandSeed>1</RandSeed><ThreadCount>2</ThreadCount>\
             <RequestCount>4</RequestCount><Targets>{}{}</Targets></TimeSpan></TimeSpans></Profile>",
            target("a", one),
            target("b", &format!("{other}{threads}"))
        );
        let request = read(&words("-Xp"), 7, &mut |_| Ok(profile.clone().into_bytes()));
        let span = request.map_err(|why| why.to_string())?.profile.time_spans.remove(0);
        let mut gaps = gaps(&span, &Speech::Elements, MACHINE, &mut Notes::default());
        if !gaps.is_empty() {
            return Err(gaps.remove(0).to_string());
        }
        let facts = ["a", "b"].map(file);
        let place = |path: &str| usize::from(path == "b");
        let pool = |path: &str| PathBuf::from(path);
        let here = Here {
            targets: &facts,
            place: &place,
            file: &pool,
            machine: MACHINE,
            speech: &Speech::Elements,
        };
        map(&span, here)
            .map(|mut mapped| mapped.spec.points.remove(0).streams)
            .map_err(|why| why.to_string())
    }

    #[test]
    fn a_pool_draws_from_targets_whose_ios_differ() {
        let data = "<BlockSize>8192</BlockSize><Random>8192</Random><WriteRatio>30</WriteRatio>\
                    <Weight>7</Weight>";
        let log = "<BlockSize>65536</BlockSize><WriteRatio>100</WriteRatio><Weight>3</Weight>";
        let streams = pool(data, log, "").unwrap();
        assert_eq!(streams.len(), 1);
        for stream in &streams {
            assert_eq!(stream.turns, Turns::Weighted(Vec::from([7.0, 3.0])));
            assert_eq!(
                stream.load_in_words(),
                "random 70/30 read/write 8 KiB and sequential (starts together) write 64 KiB"
            );
            assert_eq!(stream.pacing, Pacing::closed(8));
            assert_eq!(fathom_core::spec::check_pattern(stream), Ok(()));
        }
        let one = "<ThreadTargets><ThreadTarget><Thread>1</Thread></ThreadTarget></ThreadTargets>";
        let streams = pool(data, data, one).unwrap();
        assert_eq!(streams.len(), 2);
        assert_eq!((streams[0].regions.len(), &streams[0].turns), (1, &Turns::InTurn));
        assert!(streams[1].regions.len() == 2 && matches!(streams[1].ios, Ios::Alike(_)));
        // A target that only reads does not affect the properties of writes.
        let durable = "<WriteThrough>true</WriteThrough>";
        let reads = "<BlockSize>4096</BlockSize><Random>4096</Random>";
        let streams = pool(reads, &format!("{log}{durable}"), "").unwrap();
        assert_eq!(streams[0].access.sync, SyncMode::Dsync);
        for (one, other, threads, told) in [
            (data, &*format!("{log}{durable}"), "", "b: <RequestCount>: a thread that draws"),
            (data, "<DisableOSCache>true</DisableOSCache>", "", "this target has another"),
            (
                data,
                data,
                "<ThreadTargets><ThreadTarget><Thread>2</Thread></ThreadTarget>\
                </ThreadTargets>",
                "there are 2 threads",
            ),
            (data, "<InterlockedSequential>true</InterlockedSequential>", one, "one pointer"),
        ] {
            let refusal = pool(one, other, threads).unwrap_err();
            assert!(refusal.contains(told), "{refusal}");
        }
    }

    #[test]
    fn every_way_through_a_target_is_a_pattern() {
        for (line, pattern) in [
            ("-b4K -r a", "random"),
            ("-b4K -rs30 a", "mixed (30 % random)"),
            ("-b4K -r -rdpct90/10:0/40 a", "hot (90 % in 10 %, 0 % in 40 %, 10 % in 50 %)"),
            ("-b4K -rs10 -rdpct50/50:50/50 a", "mixed (10 % hot (50 % in 50 %, 50 % in 50 %))"),
            ("-b4K -r -rdabs90/64K a", "hot (90 % in 64 KiB)"),
            ("-b4K -s16K a", "strided 16 KiB"),
            ("-b4K -si -t3 a", "interlocked"),
            ("-b4K -p -o8 a", "sequential (each place 8 times)"),
        ] {
            let stream = streams(line).remove(0);
            assert_eq!(stream.pattern().to_string(), pattern, "{line}");
            assert_eq!(fathom_core::spec::check_pattern(&stream), Ok(()), "{line}");
        }
        assert_eq!(shape("-b4K -si -t3 a"), ["0: Total(3), 6 in flight, 0:0+1024"]);
        // With an explicit step, the last block need not end at a multiple of the block size.
        assert_eq!(shape("-b64K -r4K -B100K a"), ["0: Total(1), 2 in flight, 0:100+924"]);
        let aligned = streams("-b64K -r4K a").remove(0);
        assert_eq!(aligned.align(), Some(Bytes(4096)));
    }

    #[test]
    fn distributions_are_told_as_what_they_come_to() {
        let told = |line: &str| {
            let parts = mapped(line).unwrap().result.distributions;
            let shown = |one: &export::RangeShares| format!("{:?} {:?}", one.threads, one.ranges);
            parts.iter().map(shown).collect::<Vec<_>>().join("; ")
        };
        assert_eq!(told("-b4K -r a"), "");
        assert_eq!(
            told("-b4K -r -t2 -rdpct90/10:0/40 a"),
            "[0, 1] [(90, 0, 102400), (10, 524288, 1048576)]"
        );
        // A range beyond the target is cut off, and its share goes to the others.
        assert_eq!(
            told("-b4K -r -rdabs50/512K:25/1M:25/1G a"),
            "[0] [(67, 0, 524288), (33, 524288, 1048576)]"
        );
        assert_eq!(
            told("-b4K -r -B512K -rdabs50/4K a"),
            "[0] [(50, 524288, 528384), (50, 528384, 1048576)]"
        );
    }

    #[test]
    fn a_limit_is_a_schedule_of_exactly_that_rate() {
        for (line, rate) in [
            ("-b4K -r -t2 -g1i a", 2.0),
            ("-b64K -r -g70000i a", 70_000.0),
            ("-b4K -r -t3 -g4096 a", 3000.0),
            ("-b512 -r -g1 a", 1000.0 / 512.0),
        ] {
            let stream = streams(line).remove(0);
            let Loop::Open { load, arrivals, queue_depth_max, .. } = &stream.pacing.pace else {
                panic!("{line}: {:?}", stream.pacing)
            };
            assert!((load.mean(Span(0)).0 / rate - 1.0).abs() < 1e-12, "{line}: {load:?}");
            assert_eq!(*arrivals, Arrivals::Uniform);
            assert_eq!(queue_depth_max % 2, 0);
        }
    }

    #[test]
    fn files_are_mapped_and_the_cache_is_told_what_will_be_read() {
        let access = |line: &str| streams(line).remove(0).access;
        let on = SpecAccess { mapped: true, ..SpecAccess::BUFFERED };
        assert_eq!(access("-b4K -Sm a"), on);
        assert_eq!(access("-b4K -Sm -Nv a"), on);
        assert_eq!(access("-b4K -Smw -w50 a"), on);
        assert_eq!(access("-b4K -Sm -Nv -w50 a"), SpecAccess { sync: SyncMode::Dsync, ..on });
        for (line, hint) in [
            ("-fr a", Some(Hint::Random)),
            ("-fs a", Some(Hint::Sequential)),
            ("-frs a", Some(Hint::Random)),
            ("-fs -Sm a", Some(Hint::Sequential)),
            ("-fr -Su a", None),
            ("-b4K a", None),
        ] {
            assert_eq!(access(line).hint, hint, "{line}");
        }
    }

    #[test]
    fn bursts_are_each_threads_own_and_hold_beside_a_limit() {
        let stream = |line: &str| streams(line).remove(0);
        let burst =
            |ios, ms| Rests::Bursts { ios, rest: Span::from_ms(ms), from: RestFrom::LastStart };
        let closed = stream("-b4K -r -t4 -i10 -j5 a");
        let (rests, depth) = (closed.pacing.rests(), closed.pacing.queue_depth());
        assert_eq!((rests, depth, closed.pacing.is_open()), (burst(10, 5), 8, false));
        for (line, rests, rate) in [
            // Both the limit and the pauses are kept: ten I/Os at 1000 per second take 10 ms.
            ("-b4K -r -t2 -g1000i -i10 -j5 a", burst(10, 5), 2000.0),
            // Ten I/Os per 20 ms are at most 500 per second.
            ("-b4K -r -g1000i -i10 -j20 a", burst(10, 20), 500.0),
            ("-b4K -r -g4096 -i1 -j1 a", burst(1, 1), 1000.0),
        ] {
            let stream = stream(line);
            let offered = stream.pacing.offered_load(Span(0)).expect("an open loop");
            assert_eq!((stream.pacing.rests(), offered.0), (rests, rate), "{line}");
        }
    }

    #[test]
    fn what_is_written_is_what_was_said() {
        let payload = |line: &str| streams(line).remove(0).payload;
        assert_eq!(payload("-b4K -w10 a"), Content::UNIQUE);
        assert_eq!(payload("-b4K -w10 -Z a"), Content::Zeros);
        let file = Some(PathBuf::from("words"));
        assert_eq!(payload("-b4K -w10 -Z1M,words a"), Content::Pool { size: Bytes(1 << 20), file });
    }

    #[test]
    fn times_mixes_and_the_cache_are_what_was_said() {
        let Mapped { mut spec, result } =
            mapped("-b4K -r -d20 -W3 -C2 -w30 -Sh -z9 -L -D500 a").unwrap();
        let point = spec.points.remove(0);
        let stream = &point.streams[0];
        assert_eq!((point.window, point.warm_up), (Span::from_secs(20), Span::from_secs(3)));
        assert_eq!((point.cool_down, point.time()), (Span::from_secs(2), Span::from_secs(25)));
        assert_eq!((point.interval, point.seed), (Span::from_ms(500), 9));
        assert!((stream.read_share() - 0.7).abs() < 1e-12);
        assert_eq!(stream.access.cache, SpecCache::Direct);
        assert!(result.service_times && result.io_bucket == Some(Span::from_ms(500)));
        assert_eq!(point.buckets, None);
        for (line, interval, bucket) in [("-d10 -D50 a", 100, 50), ("-d60 -D7000 a", 1000, 7000)] {
            let Mapped { mut spec, result } = mapped(line).unwrap();
            let point = spec.points.remove(0);
            let bucket = Some(Span::from_ms(bucket));
            assert_eq!((point.interval, point.buckets), (Span::from_ms(interval), bucket));
            assert_eq!(result.io_bucket, bucket);
        }
        let cached = mapped("-b4K -r -d60 -z9 a").unwrap();
        assert_eq!(cached.spec.points[0].streams[0].access.cache, SpecCache::Buffered);
        assert_eq!(cached.spec.points[0].interval, Span::from_secs(1));
    }

    #[test]
    fn threads_are_tied_to_cpus_in_turn_over_all_targets() {
        let cpus = |line: &str| -> Vec<Vec<u32>> {
            let streams = streams(line);
            let of = |stream: &Stream| {
                let workers = fathom_core::plan::worker_count(stream);
                (0..workers).filter_map(|worker| stream.workplace.cpu(worker)).collect()
            };
            streams.iter().map(of).collect()
        };
        assert_eq!(cpus("-r -t2 a b"), [[0, 1], [3, 0]]);
        assert_eq!(cpus("-r -ag -t4 a"), [[0, 1, 3, 0]]);
        assert_eq!(cpus("-r -a3,1 -t1 a b"), [[3], [1]]);
        assert_eq!(cpus("-r -F2 a b"), [[0, 1], [0, 1]]);
        assert_eq!(cpus("-r -n -t2 a"), [[]; 1] as [[u32; 0]; 1]);
        let refusal = mapped("-r -a0,2 a").unwrap_err().to_string();
        assert!(refusal.contains("not CPU 2"), "{refusal}");
    }

    #[test]
    fn priorities_and_large_pages_are_the_streams() {
        let workplace = |line: &str| streams(line).remove(0).workplace;
        assert_eq!(workplace("-r -I1 a").io_priority, Some(IoPriority::Idle));
        assert_eq!(workplace("-r -I2 a").io_priority, Some(IoPriority::BestEffort(7)));
        assert_eq!(workplace("-r -I3 a").io_priority, None);
        assert!(workplace("-r -l a").large_pages && !workplace("-r a").large_pages);
    }

    #[test]
    fn refusals_have_diskspds_names_and_no_option_that_it_lacks() {
        for (line, parts) in [
            ("-r -o40000 a", &["a: <RequestCount> 40000: ", "fewer, or more <ThreadsPerFile>"][..]),
            ("-r -F1 -O40000 a", &["a: <RequestCount> 40000: ", "fewer, or more <ThreadCount>"]),
            ("-b4K -r100 -Su a", &["a: <Random>: ", "a multiple of its sector", "with -Sb"]),
            ("-b1000 -Su a", &["a: <BlockSize> 1000: ", "choose 1024 bytes"]),
            ("-B2M a", &["a: <BaseFileOffset> 2097152: ", "ends at 1 MiB"]),
            ("-B1020K a", &["a: <BlockSize> 65536: ", "larger than the region of 4 KiB"]),
            ("-w10 -Z2T a", &["a: <SizeInBytes> 2199023255552: ", "from one block of 64 KiB"]),
        ] {
            let refusal = mapped(line).unwrap_err().to_string();
            assert!(!refusal.contains("--"), "{line}: {refusal}");
            for part in parts {
                assert!(refusal.contains(part), "{line}: '{part}' is missing in: {refusal}");
            }
        }
    }

    #[test]
    fn what_cannot_be_run_yet_is_named() {
        let gaps = |line: &str| {
            let mut notes = Notes::default();
            let refusals = gaps(&span(line), &Speech::Options(words(line)), MACHINE, &mut notes);
            refusals.iter().map(|one| one.about.clone()).collect::<Vec<_>>().join("; ")
        };
        assert_eq!(gaps("-b4K -r -t2 -o4 -w30 -Sh -L -D a"), "");
        assert_eq!(gaps("-b4K -p -o2 -l -I1 -a0,1 a"), "");
        assert_eq!(gaps("-g1024 -i3 -j4 a"), "");
        assert_eq!(gaps("-w10 -Z2G a"), "");
        assert_eq!(gaps("-w10 -Z2T a"), "a: -Z2T");
        assert_eq!(gaps("-r -o40000 a"), "a: -o40000");
        assert_eq!(gaps("-r -F1 -O40000 a"), "a: -O40000");
        assert_eq!(gaps("-r -t65536 -o2 a"), "a: -o2");
        assert_eq!(gaps("-r -t60000 -o1 a b"), "-t60000");
        assert_eq!(gaps("-r -a2 a"), "a: -a2");
        assert_eq!(gaps("-b1M -o8000 -t1 a"), "a: -o8000");
        assert_eq!(gaps("-b2G -c8G a"), "a: -b2G");
        assert_eq!(gaps("-D300 -C3 a"), "");
        assert_eq!(gaps("-D1 -d1000 a"), "");
        assert_eq!(gaps("-D1 -d1001 a"), "-D1");
        assert_eq!(gaps("-D1 -d1000 -t17 a"), "-D1");
    }
}
