//! The description of a load as it stood in files of version 1, to read them: the format is described in
//! docs/schema/result-1.json. Nothing writes it any more.
//!
//! What version 1 computed for its reader is left out here: the mean of an offered load that changed, and
//! the pattern, sizes and shares of streams whose I/Os differed.

use fathom_core::spec::{
    self, Access, Active, Arrivals, BlockSizes, Cache, Course, Distribution, Flush, Hint, HotRange,
    IoPriority, Ios, Limit, Loop, OfferedLoad, Order, RestFrom, RingMode, Sequence, SizeShare,
    Stage, Starts, SubmissionThread, SyncMode, Turns, Workplace,
};
use fathom_core::{Bytes, Rate, Span};
use serde::Deserialize;

/// Why it cannot be told by core's types.
type Impossible = String;

#[derive(Deserialize)]
pub(super) struct Point {
    name: String,
    streams: Vec<Stream>,
    warm_up_ns: Span,
    window_ns: Span,
    #[serde(default)]
    cool_down_ns: Span,
    interval_ns: Span,
    #[serde(default)]
    looks_ns: Vec<Span>,
    seed: u64,
    rated_iops: Option<Rate>,
    rated_bandwidth: Option<Bytes>,
}

#[derive(Deserialize)]
struct Stream {
    name: String,
    regions: Vec<spec::Region>,
    #[serde(default)]
    weights: Vec<f64>,
    #[serde(default)]
    kinds: Vec<Kind>,
    #[serde(default)]
    parts: Vec<Part>,
    pattern: Pattern,
    align_bytes: Option<Bytes>,
    #[serde(default)]
    zones: bool,
    block_size_bytes: Bytes,
    #[serde(default)]
    read_sizes: Vec<SizeShare>,
    #[serde(default)]
    write_sizes: Vec<SizeShare>,
    read_share: f64,
    #[serde(default)]
    trim_share: f64,
    #[serde(default)]
    payload: Payload,
    flush: Option<Flush>,
    pacing: Pacing,
    #[serde(default)]
    course: Vec<Stage>,
    #[serde(default)]
    rests: Rests,
    start_ns: Option<Span>,
    end_ns: Option<Span>,
    limit: Option<Limit>,
    workers: spec::Workers,
    access: OldAccess,
    #[serde(default)]
    cpus: Vec<u32>,
    io_priority: Option<IoPriority>,
    #[serde(default)]
    large_pages: bool,
}

#[derive(Deserialize)]
struct Part {
    weight: f64,
    kind: Kind,
}

#[derive(Deserialize)]
struct Kind {
    pattern: Pattern,
    align_bytes: Option<Bytes>,
    block_size_bytes: Bytes,
    #[serde(default)]
    read_sizes: Vec<SizeShare>,
    #[serde(default)]
    write_sizes: Vec<SizeShare>,
    read_share: f64,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Pattern {
    Sequential,
    Sequence {
        stride_bytes: Option<Bytes>,
        start_distance_bytes: Option<Bytes>,
        #[serde(default)]
        backward: bool,
        visits: Option<u32>,
    },
    Interlocked {
        stride_bytes: Option<Bytes>,
    },
    Random,
    Distributed(OffsetDistribution),
    Shuffled,
    Mixed {
        random_share: f64,
        distribution: OffsetDistribution,
    },
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum OffsetDistribution {
    Uniform,
    Zipf {
        theta: f64,
        #[serde(default)]
        clustered: bool,
    },
    Pareto {
        h: f64,
        #[serde(default)]
        clustered: bool,
    },
    Normal {
        deviation_share: f64,
        center_share: f64,
    },
    Hot {
        ranges: Vec<HotRange>,
    },
}

#[derive(Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum Payload {
    Random { compressible: f64, dedup: f64 },
    Zeros,
    Pattern { hex: String },
    Pool { size_bytes: Bytes, file: Option<String> },
}

#[derive(Deserialize)]
#[serde(tag = "loop", rename_all = "snake_case")]
enum Pacing {
    Closed {
        queue_depth: u32,
    },
    Open {
        offered_load_iops: Rate,
        arrivals: Arrivals,
        queue_depth_max: u32,
        #[serde(default)]
        realtime: bool,
    },
}

#[derive(Default, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum Rests {
    #[default]
    None,
    Think {
        time_ns: Span,
        exponential: bool,
    },
    Bursts {
        ios: u32,
        rest_ns: Span,
        #[serde(default)]
        from_start: bool,
    },
}

#[derive(Deserialize)]
struct OldAccess {
    cache: Cache,
    #[serde(default)]
    mapped: bool,
    write_through: bool,
    sync: Option<SyncMode>,
    hint: Option<Hint>,
    #[serde(default)]
    uncached: bool,
    #[serde(default)]
    atomic: bool,
    #[serde(default)]
    polled: bool,
    submission_thread: Option<SubmissionThread>,
}

impl Default for Payload {
    fn default() -> Self {
        Self::Random { compressible: 0.0, dedup: 0.0 }
    }
}

impl Point {
    /// As core has it.
    ///
    /// # Errors
    ///
    /// When core has no such value.
    pub(super) fn into_core(self) -> Result<spec::Point, Impossible> {
        let streams = self.streams.into_iter().map(Stream::into_core).collect::<Result<_, _>>()?;
        Ok(spec::Point {
            name: self.name,
            streams,
            warm_up: self.warm_up_ns,
            window: self.window_ns,
            cool_down: self.cool_down_ns,
            interval: self.interval_ns,
            // A trial tells of them, where there are any.
            buckets: None,
            looks: self.looks_ns,
            seed: self.seed,
            rated: spec::Rated {
                iops: self.rated_iops,
                bandwidth: self.rated_bandwidth,
                response_time: None,
            },
        })
    }
}

impl Stream {
    fn into_core(self) -> Result<spec::Stream, Impossible> {
        let load = match self.course.is_empty() {
            true => None,
            false if Course::can_be(&self.course) => {
                Some(OfferedLoad::Course(Course::new(self.course)))
            }
            false => return Err("a stage has a rate that cannot be".to_owned()),
        };
        let pace = self.pacing.into_core(load, self.rests.into_core());
        let all = Kind {
            pattern: self.pattern,
            align_bytes: self.align_bytes,
            block_size_bytes: self.block_size_bytes,
            read_sizes: self.read_sizes,
            write_sizes: self.write_sizes,
            read_share: self.read_share,
        };
        Ok(spec::Stream {
            name: self.name,
            regions: self.regions,
            turns: match self.weights.is_empty() {
                true => Turns::InTurn,
                false => Turns::Weighted(self.weights),
            },
            ios: ios(all, self.kinds, self.parts)?,
            zones: self.zones,
            trim_share: self.trim_share,
            payload: self.payload.into_core()?,
            flush: self.flush,
            pacing: spec::Pacing {
                pace,
                active: Active { start: self.start_ns, end: self.end_ns },
                limit: self.limit,
            },
            workers: self.workers,
            access: self.access.into_core(),
            workplace: Workplace {
                cpus: self.cpus,
                io_priority: self.io_priority,
                large_pages: self.large_pages,
            },
        })
    }
}

fn ios(all: Kind, kinds: Vec<Kind>, parts: Vec<Part>) -> Result<Ios, Impossible> {
    let part = |part: Part| Ok(spec::Part { weight: part.weight, kind: part.kind.into_core()? });
    match (kinds.is_empty(), parts.is_empty()) {
        (true, true) => Ok(Ios::Alike(all.into_core()?)),
        (true, false) => parts.into_iter().map(part).collect::<Result<_, _>>().map(Ios::Drawn),
        (false, _) => {
            kinds.into_iter().map(Kind::into_core).collect::<Result<_, _>>().map(Ios::ByRegion)
        }
    }
}

impl Kind {
    fn into_core(self) -> Result<spec::Kind, Impossible> {
        Ok(spec::Kind {
            block_sizes: self.block_sizes()?,
            pattern: self.pattern.into_core(),
            align: self.align_bytes,
            read_share: self.read_share,
        })
    }

    fn block_sizes(&self) -> Result<BlockSizes, Impossible> {
        let [reads, writes] = [&self.read_sizes, &self.write_sizes]
            .map(|sizes| sizes.iter().map(|one| (one.size, one.share)).collect::<Vec<_>>());
        let only = [(self.block_size_bytes, 1.0)];
        let (reads, writes) = match reads.is_empty() || writes.is_empty() {
            true => (&only[..], &only[..]),
            false => (&reads[..], &writes[..]),
        };
        let mut all = reads.iter().chain(writes);
        match all.all(|&(size, share)| size > Bytes(0) && 0.0 < share && share <= 1.0) {
            true => Ok(BlockSizes::weighted(reads, writes)),
            false => Err("a block size or its share is none".to_owned()),
        }
    }
}

impl Pattern {
    fn into_core(self) -> spec::Pattern {
        match self {
            Self::Sequential => spec::Pattern::SEQUENTIAL,
            Self::Sequence { stride_bytes, start_distance_bytes, backward, visits } => {
                let starts = start_distance_bytes.map_or(Starts::Spread, Starts::Apart);
                let stride = stride_bytes;
                spec::Pattern::Sequential(Sequence { stride, starts, backward, visits })
            }
            Self::Interlocked { stride_bytes } => {
                spec::Pattern::Interlocked { stride: stride_bytes }
            }
            Self::Random => spec::Pattern::RANDOM,
            Self::Distributed(distribution) => spec::Pattern::Random(distribution.into_core()),
            Self::Shuffled => spec::Pattern::Shuffled,
            Self::Mixed { random_share, distribution } => {
                spec::Pattern::Mixed { random_share, distribution: distribution.into_core() }
            }
        }
    }
}

impl OffsetDistribution {
    fn into_core(self) -> Distribution {
        let order = |clustered| if clustered { Order::Clustered } else { Order::Spread };
        match self {
            Self::Uniform => Distribution::Uniform,
            Self::Zipf { theta, clustered } => {
                Distribution::Zipf { theta, order: order(clustered) }
            }
            Self::Pareto { h, clustered } => Distribution::Pareto { h, order: order(clustered) },
            Self::Normal { deviation_share, center_share } => {
                Distribution::Normal { deviation: deviation_share, center: center_share }
            }
            Self::Hot { ranges } => Distribution::Hot(ranges),
        }
    }
}

impl Payload {
    fn into_core(self) -> Result<spec::Payload, Impossible> {
        Ok(match self {
            Self::Random { compressible, dedup } => spec::Payload::Random { compressible, dedup },
            Self::Zeros => spec::Payload::Zeros,
            Self::Pattern { hex } => {
                let bytes = spec::hex::bytes(&hex);
                spec::Payload::Pattern(bytes.ok_or("a byte is two hexadecimal digits")?)
            }
            Self::Pool { size_bytes, file } => {
                spec::Payload::Pool { size: size_bytes, file: file.map(Into::into) }
            }
        })
    }
}

impl Pacing {
    /// With the course that its load has, if it changes.
    fn into_core(self, course: Option<OfferedLoad>, rests: spec::Rests) -> Loop {
        match self {
            Self::Closed { queue_depth } => Loop::Closed { queue_depth, rests },
            Self::Open { offered_load_iops: rate, arrivals, queue_depth_max, realtime } => {
                let steady = match rests {
                    spec::Rests::Bursts { ios, rest, .. } => {
                        OfferedLoad::Bursts { rate, ios, rest }
                    }
                    spec::Rests::None | spec::Rests::Think { .. } => OfferedLoad::Steady(rate),
                };
                let load = course.unwrap_or(steady);
                Loop::Open { load, arrivals, queue_depth_max, realtime }
            }
        }
    }
}

impl Rests {
    fn into_core(self) -> spec::Rests {
        match self {
            Self::None => spec::Rests::None,
            Self::Think { time_ns, exponential } => {
                spec::Rests::Think { time: time_ns, exponential }
            }
            Self::Bursts { ios, rest_ns, from_start } => {
                let from = if from_start { RestFrom::LastStart } else { RestFrom::LastCompletion };
                spec::Rests::Bursts { ios, rest: rest_ns, from }
            }
        }
    }
}

impl OldAccess {
    fn into_core(self) -> Access {
        let opened = if self.write_through { SyncMode::Dsync } else { SyncMode::None };
        Access {
            cache: self.cache,
            mapped: self.mapped,
            sync: self.sync.unwrap_or(opened),
            hint: self.hint,
            uncached: self.uncached,
            atomic: self.atomic,
            ring: RingMode { polled: self.polled, submission_thread: self.submission_thread },
        }
    }
}
