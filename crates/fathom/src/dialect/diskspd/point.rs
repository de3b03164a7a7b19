//! A time span as the core has it: each target becomes a stream, and what the result has to know of
//! DiskSpd's threads stands beside it. What cannot be described yet is refused.

use fathom_core::facts;
use fathom_core::spec::{
    Access as SpecAccess, BlockSizes, Cache as SpecCache, Pacing, Pattern, Point, Region, RingMode,
    Stream, Workers,
};
use fathom_core::{Bytes, Span};
use fathom_report::export::diskspd as export;

use super::model::{
    Access, Affinity, Cache, Mapping, Order, Payload, Priority, Target, Threads, Throttle, TimeSpan,
};
use super::numbers::shown;
use crate::dialect::{Notes, Refusal};

/// The shortest interval of a series.
const SHORTEST_INTERVAL_MS: u32 = 100;
/// The most threads, and the most I/Os in flight of a stream.
const MOST: u64 = 1 << 16;
/// What one io_uring holds.
const RING: u32 = 1 << 15;
/// The largest block.
const LARGEST_BLOCK: u32 = 1 << 30;

/// A time span that can run.
#[derive(Clone, Debug, PartialEq)]
pub struct Mapped {
    /// What is measured.
    pub point: Point,
    /// What the result says about it.
    pub result: export::TimeSpan,
}

/// What of a time span cannot be run yet, and what is done otherwise than DiskSpd does.
pub fn gaps(span: &TimeSpan, notes: &mut Notes) -> Vec<Refusal> {
    let mut gaps = Gaps { refusals: Vec::new() };
    gaps.span(span);
    if span.affinity == Affinity::RoundRobin {
        notes.add("the threads run where Linux puts them: DiskSpd ties each to a CPU (-ag)");
    }
    match span.threads {
        Threads::PerTarget => {}
        Threads::Total(_) => notes.add(
            "-F without -O: each target has its threads for itself, so that a slow target cannot \
             hold up the others; in the result they are one thread",
        ),
        Threads::Pool { .. } => {
            notes.add("-O: targets take turns, where DiskSpd draws the target of each I/O");
            gaps.pool(&span.targets);
        }
    }
    for target in &span.targets {
        gaps.target(target);
        let default = target.payload == Payload::Pattern && !span.random_write_data;
        if target.write_percent > 0 && default {
            notes.add(
                "written is random data, other in every block, where DiskSpd writes the bytes 0 \
                 to 255 again and again",
            );
        }
    }
    gaps.refusals
}

struct Gaps {
    refusals: Vec<Refusal>,
}

impl Gaps {
    fn add(&mut self, thing: String, remedy: &str) {
        let refusal = Refusal::new(thing, "this cannot be run yet", remedy);
        if !self.refusals.contains(&refusal) {
            self.refusals.push(refusal);
        }
    }

    fn span(&mut self, span: &TimeSpan) {
        if span.cool_down_s > 0 {
            self.add(format!("-C{}", span.cool_down_s), "drop it");
        }
        if matches!(span.affinity, Affinity::Explicit(_)) {
            self.add("-a with CPUs".to_owned(), "tie the whole of fathom to them with taskset");
        }
        let (bucket, duration) = (span.io_bucket_ms, u64::from(span.duration_s) * 1000);
        let fits = bucket >= SHORTEST_INTERVAL_MS && duration.is_multiple_of(u64::from(bucket));
        if span.iops_deviation && !fits {
            self.add(
                format!("-D{bucket}"),
                "choose 100 ms or more, of which the duration is a whole number",
            );
        }
    }

    fn pool(&mut self, targets: &[Target]) {
        let alike = |one: &Target| Target { path: String::new(), ..one.clone() };
        if targets.iter().any(|target| alike(target) != alike(&targets[0])) {
            self.add(
                "<RequestCount> with targets that differ in more than their path".to_owned(),
                "give each target threads of its own",
            );
        }
        if targets.iter().any(|target| !target.thread_targets.is_empty()) {
            self.add("<ThreadTargets>".to_owned(), "give each target threads of its own");
        }
    }

    fn target(&mut self, target: &Target) {
        let path = &target.path;
        let mut gap = |option: &str, remedy: &str| self.add(format!("{path}: {option}"), remedy);
        match &target.access {
            Access::Sequential { stride, order, .. } => {
                match order {
                    Order::PerThread => {}
                    Order::Interlocked => gap("-si", "use -s"),
                    Order::Parallel => gap("-p", "use -s"),
                }
                if *stride != u64::from(target.block_size) {
                    gap("-s with a stride that is not the block size", "use -s without one");
                }
            }
            Access::Random { percent, alignment, distribution } => {
                if *percent < 100 {
                    gap("-rs", "use -r or -s");
                }
                if *alignment != u64::from(target.block_size) {
                    gap("-r with an alignment that is not the block size", "use -r without one");
                }
                if distribution.is_some() {
                    gap("-rd", "use -r");
                }
            }
        }
        let hinted = target.hints.sequential || target.hints.random;
        if hinted && target.cache == Cache::Cached {
            gap("-fs, -fr", "drop them, or bypass the cache with -Su");
        }
        if target.large_pages {
            gap("-l", "drop it");
        }
        if target.mapping != Mapping::Off {
            gap("-Sm", "use -Sb");
        }
        if target.write_percent > 0 && target.payload != Payload::Pattern {
            gap("-Z", "use -Zr, which writes new random data in every block");
        }
        if target.burst.is_some() {
            gap("-i, -j", "drop them");
        }
        if target.throttle != Throttle::Off {
            gap("-g", "describe the load to `fathom run --rate`");
        }
        if target.priority != Priority::Normal {
            gap("-I", "run fathom under ionice");
        }
        if target.block_size > LARGEST_BLOCK {
            gap("-b above 1 GiB", "choose a smaller block");
        }
        if target.outstanding > RING {
            gap("-o above 32768", "use more threads");
        }
    }
}

/// The time span on these targets, of which `place` gives the place in the list for a path.
///
/// # Errors
///
/// When the targets have no room for it, or it has more threads than can be.
pub fn map(
    span: &TimeSpan,
    targets: &[facts::Target],
    place: &dyn Fn(&str) -> usize,
) -> Result<Mapped, Refusal> {
    let mut mapper = Mapper { targets, place, streams: Vec::new(), result: Vec::new() };
    let mut threads = 0;
    match span.threads {
        Threads::PerTarget => {
            for target in &span.targets {
                let each = Lanes { threads: target.threads, first: threads };
                mapper.streams(std::slice::from_ref(target), each, target.outstanding)?;
                threads += target.threads;
            }
        }
        Threads::Total(n) => {
            threads = n;
            for target in &span.targets {
                let each = Lanes { threads: n, first: 0 };
                mapper.streams(std::slice::from_ref(target), each, target.outstanding)?;
            }
        }
        Threads::Pool { threads: n, outstanding } => {
            threads = n;
            mapper.streams(&span.targets, Lanes { threads: n, first: 0 }, outstanding)?;
        }
    }
    let bucket = span.iops_deviation.then(|| Span::from_ms(u64::from(span.io_bucket_ms)));
    let window = Span::from_secs(u64::from(span.duration_s));
    Ok(Mapped {
        point: Point {
            warm_up: Span::from_secs(u64::from(span.warm_up_s)),
            interval: bucket.unwrap_or(interval(window)),
            seed: u64::from(span.seed),
            ..Point::of(mapper.streams, window)
        },
        result: export::TimeSpan {
            service_times: span.service_times,
            io_bucket: bucket,
            threads,
            requests: match span.threads {
                Threads::Pool { outstanding, .. } => Some(outstanding),
                _ => None,
            },
            streams: mapper.result,
            distributions: Vec::new(),
        },
    })
}

/// As `fathom run` chooses it: from a minute on, a second is fine enough.
fn interval(window: Span) -> Span {
    match window >= Span::from_secs(60) {
        true => Span::from_secs(1),
        false => Span::from_ms(u64::from(SHORTEST_INTERVAL_MS)),
    }
}

/// Threads that do the same.
#[derive(Clone, Copy)]
struct Lanes {
    threads: u32,
    /// The number of the first.
    first: u32,
}

struct Mapper<'a> {
    targets: &'a [facts::Target],
    place: &'a dyn Fn(&str) -> usize,
    streams: Vec<Stream>,
    result: Vec<export::Stream>,
}

impl Mapper<'_> {
    /// Threads that all use these targets, which differ in their paths alone. Sequential threads
    /// have a stream each: they start where DiskSpd's do, mostly all at the same place.
    fn streams(&mut self, group: &[Target], lanes: Lanes, depth: u32) -> Result<(), Refusal> {
        let target = &group[0];
        if u64::from(lanes.threads) * u64::from(depth) > MOST {
            return Err(Refusal::new(
                &target.path,
                format!("{} threads with {depth} I/Os each are too much", lanes.threads),
                format!("stay at {MOST} I/Os in flight or below"),
            ));
        }
        let paths: Vec<String> = group.iter().map(|target| target.path.clone()).collect();
        let mut add = |first_thread, workers, start| -> Result<(), Refusal> {
            let regions =
                group.iter().map(|one| self.region(one, start)).collect::<Result<_, _>>()?;
            let mut stream = stream(target, regions);
            stream.workers = Workers::Total(workers);
            stream.pacing = Pacing::Closed { queue_depth: workers * depth };
            self.streams.push(stream);
            self.result.push(export::Stream { first_thread, paths: paths.clone() });
            Ok(())
        };
        match target.access {
            Access::Random { .. } => add(lanes.first, lanes.threads, 0),
            Access::Sequential { thread_stride, .. } => (0..lanes.threads)
                .try_for_each(|k| add(lanes.first + k, 1, thread_stride * u64::from(k))),
        }
    }

    /// Where I/Os go, from `start` behind the target's base.
    fn region(&self, target: &Target, start: u64) -> Result<Region, Refusal> {
        let index = (self.place)(&target.path);
        let facts = &self.targets[index];
        let block = u64::from(target.block_size);
        // A file that was there and is larger than what -c asks for is used in part.
        let bounds = [Some(facts.size.0), target.max_offset, target.create_size];
        let end = bounds.into_iter().flatten().min().unwrap_or(0);
        let offset = target.base.saturating_add(start);
        let length = end.saturating_sub(offset);
        let length = length - length % block;
        if length == 0 {
            return Err(Refusal::new(
                &target.path,
                format!(
                    "there is no room for a block of {} from offset {} to {}",
                    shown(block),
                    shown(offset),
                    shown(end)
                ),
                "write a larger file with -c, or choose another -b, -B, -f or -T",
            ));
        }
        aligned(target, facts, offset)?;
        Ok(Region { target: index as u32, offset: Bytes(offset), length: Bytes(length) })
    }
}

/// Refuses what direct I/O cannot do on this target.
fn aligned(target: &Target, facts: &facts::Target, offset: u64) -> Result<(), Refusal> {
    let sector = facts.direct_alignment.map_or(1, |alignment| alignment.0.max(1));
    if target.cache == Cache::Cached {
        return Ok(());
    }
    for (what, value) in [("-b", u64::from(target.block_size)), ("the offset (-B, -T)", offset)] {
        if !value.is_multiple_of(sector) {
            return Err(Refusal::new(
                format!("{}: {what} {value}", target.path),
                format!("without the cache (-Su, -Sh, -Sr) it has to be a multiple of {sector}"),
                format!("choose {}, or use the cache with -Sb", value.next_multiple_of(sector)),
            ));
        }
    }
    Ok(())
}

/// What a target's I/Os are like, by one worker with one in flight.
fn stream(target: &Target, regions: Vec<Region>) -> Stream {
    Stream {
        pattern: match target.access {
            Access::Sequential { .. } => Pattern::SEQUENTIAL,
            Access::Random { .. } => Pattern::RANDOM,
        },
        block_sizes: BlockSizes::one(Bytes(u64::from(target.block_size))),
        read_share: 1.0 - f64::from(target.write_percent) / 100.0,
        access: SpecAccess {
            cache: match target.cache {
                Cache::Cached => SpecCache::Buffered,
                Cache::LocalOff | Cache::Off => SpecCache::Direct,
            },
            // To reads it means nothing.
            write_through: target.write_through && target.write_percent > 0,
            ring: RingMode::USUAL,
        },
        ..Stream::reading(String::new(), regions)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect::diskspd::{read, tests::words};

    fn span(line: &str) -> TimeSpan {
        let request = read(&words(line), 7, &mut |_| unreachable!("no profile is named"));
        request.unwrap().profile.time_spans.remove(0)
    }

    /// On targets of 1 MiB each.
    fn mapped(line: &str) -> Result<Mapped, Refusal> {
        let span = span(line);
        let names: Vec<&str> = span.targets.iter().map(|target| target.path.as_str()).collect();
        let facts: Vec<facts::Target> =
            names.iter().map(|name| facts::Target::simulated(name, Bytes(1 << 20))).collect();
        map(&span, &facts, &|path| names.iter().position(|name| *name == path).unwrap())
    }

    /// Each stream: the first thread, workers, I/Os in flight, and its regions in KiB.
    fn shape(line: &str) -> Vec<String> {
        let Mapped { point, result } = mapped(line).unwrap();
        let shown = |(stream, threads): (&Stream, &export::Stream)| {
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
        assert_eq!(shape("-b64K -r -B100K -f500K a"), ["0: Total(1), 2 in flight, 0:100+384"]);
        // A file that is larger than what -c asks for is used in part.
        assert_eq!(shape("-b64K -r -c256K a"), ["0: Total(1), 2 in flight, 0:0+256"]);
    }

    #[test]
    fn sequential_threads_have_a_stream_each() {
        assert_eq!(
            shape("-b4K -t2 a"),
            ["0: Total(1), 2 in flight, 0:0+1024", "1: Total(1), 2 in flight, 0:0+1024"]
        );
        assert_eq!(
            shape("-b4K -t2 -T512K a"),
            ["0: Total(1), 2 in flight, 0:0+1024", "1: Total(1), 2 in flight, 0:512+512"]
        );
        let refusal = mapped("-b4K -t3 -T512K a").unwrap_err().to_string();
        assert!(refusal.contains("no room for a block of 4KiB from offset 1MiB"), "{refusal}");
    }

    #[test]
    fn times_mixes_and_the_cache_are_what_was_said() {
        let Mapped { point, result } = mapped("-b4K -r -d20 -W3 -w30 -Sh -z9 -L -D500 a").unwrap();
        let stream = &point.streams[0];
        assert_eq!((point.window, point.warm_up), (Span::from_secs(20), Span::from_secs(3)));
        assert_eq!((point.interval, point.seed), (Span::from_ms(500), 9));
        assert!((stream.read_share - 0.7).abs() < 1e-12);
        assert_eq!(stream.access.cache, SpecCache::Direct);
        assert!(result.service_times && result.io_bucket == Some(Span::from_ms(500)));
        let cached = mapped("-b4K -r -d60 -z9 a").unwrap();
        assert_eq!(cached.point.streams[0].access.cache, SpecCache::Buffered);
        assert_eq!(cached.point.interval, Span::from_secs(1));
    }

    #[test]
    fn what_cannot_be_run_yet_is_named() {
        let gaps = |line: &str| {
            let mut notes = Notes::default();
            let refusals = gaps(&span(line), &mut notes);
            refusals.iter().map(|one| one.thing.clone()).collect::<Vec<_>>().join("; ")
        };
        assert_eq!(gaps("-b4K -r -t2 -o4 -w30 -Sh -L -D a"), "");
        assert_eq!(gaps("-b4K -p -o2 -l a"), "a: -p; a: -l");
        assert_eq!(gaps("-g1024 -i3 -j4 a"), "a: -i, -j; a: -g");
        assert_eq!(gaps("-D300 a"), "-D300");
        assert_eq!(gaps("-D50 -C3 a"), "-C3; -D50");
    }
}
