//! A point as it stands in the document: resolved in full, so that it can be repeated from here.

use fathom_core::measure::Direction;
use fathom_core::spec::{self, IoPriority};
use fathom_core::{Bytes, Rate, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::access::Access;
use super::pattern::Pattern;

/// All parameters of one measurement.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Point {
    /// What people call this point.
    pub name: String,
    /// The workloads that run together, at least one.
    pub streams: Vec<Stream>,
    /// Load before the window, which is not recorded.
    pub warm_up_ns: u64,
    /// The time that was to be recorded.
    pub window_ns: u64,
    /// Load after the window, which is not recorded.
    #[serde(default, skip_serializing_if = "is_none")]
    pub cool_down_ns: u64,
    /// The slices of the series.
    pub interval_ns: u64,
    /// When the window might have ended early, from its start.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub looks_ns: Vec<u64>,
    /// Repeats every offset, direction and arrival of the point.
    pub seed: u64,
    /// What its targets together were rated at, if somebody said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rated_iops: Option<f64>,
    /// The same in bytes per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rated_bandwidth: Option<u64>,
}

/// One workload with its own pattern, mix and pacing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Stream {
    /// What people call this stream.
    pub name: String,
    /// Where it reads and writes, at least one region.
    pub regions: Vec<Region>,
    /// The weights by which the region of each I/O was drawn; empty where they took turns.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub weights: Vec<f64>,
    /// What the I/Os to each region were like, where they differed; the pattern below is then that of
    /// the first region, and sizes and shares are those of all I/Os together.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kinds: Vec<Kind>,
    /// The parts that its I/Os had, each drawn by chance for each I/O, where they were not all alike; the
    /// pattern below is then that of the first part, and sizes and shares are those of all I/Os
    /// together.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<Part>,
    /// How offsets follow each other.
    pub pattern: Pattern,
    /// What offsets by chance were multiples of, counted from the region's start, where it was not
    /// the smallest block size.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub align_bytes: Option<u64>,
    /// Whether each of the workers that shared a region had a part of it to itself.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub zones: bool,
    /// Bytes moved by one I/O; the largest where there are several sizes.
    pub block_size_bytes: u64,
    /// The sizes of reads and how often they occur, where I/Os differ in size.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub read_sizes: Vec<SizeShare>,
    /// The same of writes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub write_sizes: Vec<SizeShare>,
    /// Share of reads, from 0 to 1, of the I/Os that were no trims.
    pub read_share: f64,
    /// Share of trims of all I/Os.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub trim_share: f64,
    /// What was written.
    #[serde(default)]
    pub payload: Payload,
    /// When its workers flushed what they wrote; never if none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flush: Option<Flush>,
    /// What sets the pace.
    pub pacing: Pacing,
    /// How the offered load of an open loop changed over time, stage by stage from the start of the
    /// window; after the last one it stayed as that ended, and before the window it was as the first
    /// began. Nothing where the load was the same all the time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub course: Vec<Stage>,
    /// What a closed loop waited for besides completions.
    #[serde(default, skip_serializing_if = "Rests::is_none")]
    pub rests: Rests,
    /// When its load began, from the start of the window, and with it a course; with the warm-up if
    /// nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_ns: Option<u64>,
    /// When its load ended, from the start of the window; with the window if nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end_ns: Option<u64>,
    /// How much it did, warm-up included, before it was done; nothing where only the time ended it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<Limit>,
    /// How many threads issue the load.
    pub workers: Workers,
    /// How its data reached the targets.
    pub access: Access,
    /// The CPUs that its workers were tied to, in turn; empty if they ran on any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cpus: Vec<u32>,
    /// The priority of its I/Os; none if that of the process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub io_priority: Option<IoPriority>,
    /// Whether its buffers were in large pages.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub large_pages: bool,
}

/// A part of a stream's I/Os.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Part {
    /// How often an I/O was of this part, against the other parts.
    pub weight: f64,
    /// What its I/Os were like.
    pub kind: Kind,
}

/// What the I/Os to one region of a stream, or of one part, were like.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Kind {
    /// How offsets follow each other.
    pub pattern: Pattern,
    /// What offsets by chance were multiples of, where it was not the smallest block size.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub align_bytes: Option<u64>,
    /// Bytes moved by one I/O; the largest where there are several sizes.
    pub block_size_bytes: u64,
    /// The sizes of reads and how often they occur, where I/Os differ in size.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub read_sizes: Vec<SizeShare>,
    /// The same of writes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub write_sizes: Vec<SizeShare>,
    /// Share of reads, from 0 to 1.
    pub read_share: f64,
}

/// How much a stream did before it was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    /// So many I/Os.
    Ios(u64),
    /// So many bytes.
    Bytes(u64),
    /// As much as its regions hold, so many times over.
    Passes(u32),
}

/// How a closed loop rested.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Rests {
    /// It did not: a completion started the next I/O.
    #[default]
    None,
    /// Each slot rested between a completion and its next start.
    Think {
        /// For how long, or in the mean.
        time_ns: u64,
        /// Whether each rest was drawn from the exponential distribution.
        exponential: bool,
    },
    /// Each worker started so many I/Os, had all of them complete, and rested.
    Bursts {
        /// I/Os of a burst.
        ios: u32,
        /// From the last completion of a burst to the first start of the next.
        rest_ns: u64,
        /// Whether a rest began with the last start of a burst instead.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        from_start: bool,
    },
}

impl Rests {
    fn is_none(&self) -> bool {
        *self == Self::None
    }

    fn to_core(self) -> spec::Rests {
        match self {
            Self::None => spec::Rests::None,
            Self::Think { time_ns, exponential } => {
                spec::Rests::Think { time: Span(time_ns), exponential }
            }
            Self::Bursts { ios, rest_ns, from_start } => spec::Rests::Bursts {
                ios,
                rest: Span(rest_ns),
                from: match from_start {
                    true => spec::RestFrom::LastStart,
                    false => spec::RestFrom::LastCompletion,
                },
            },
        }
    }
}

impl From<spec::Rests> for Rests {
    fn from(rests: spec::Rests) -> Self {
        match rests {
            spec::Rests::None => Self::None,
            spec::Rests::Think { time, exponential } => {
                Self::Think { time_ns: time.0, exponential }
            }
            spec::Rests::Bursts { ios, rest, from } => {
                Self::Bursts { ios, rest_ns: rest.0, from_start: from == spec::RestFrom::LastStart }
            }
        }
    }
}

/// A part of a course in which the rate stayed the same or changed in a straight line.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Stage {
    /// How long it lasted; a step to a rate that was then held lasts no time.
    pub lasts_ns: u64,
    /// I/Os per second at its beginning.
    pub begins_iops: f64,
    /// I/Os per second at its end.
    pub ends_iops: f64,
}

/// When a worker flushed what it wrote.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Flush {
    /// After so many of its writes to a target.
    pub every: u32,
    /// Whether only the data was flushed, with what is needed to find it (fdatasync), and not all
    /// that belongs to the file (fsync).
    pub data_only: bool,
    /// Whether what came after a flush started only when it had completed.
    pub barrier: bool,
}

/// A block size and how often it occurs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SizeShare {
    /// Bytes moved.
    pub size_bytes: u64,
    /// The share of the I/Os of its direction that have it.
    pub share: f64,
}

/// The range of a target that is addressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Region {
    /// The target's place in the header's list.
    pub target: u32,
    /// Where the region starts.
    pub offset_bytes: u64,
    /// How long it is.
    pub length_bytes: u64,
}

/// What was written.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Payload {
    /// Random bytes, block by block of 4 KiB.
    Random {
        /// The share of each block that a compressor saves, from 0 to 1.
        compressible: f64,
        /// The share of blocks that equal one written before, from 0 to 1.
        dedup: f64,
    },
    /// Zeros.
    Zeros,
    /// These bytes over and over, from the start of each I/O.
    Pattern {
        /// Two digits for each.
        hex: String,
    },
    /// Bytes from a random place in a pool for each I/O.
    Pool {
        /// How long the pool is.
        size_bytes: u64,
        /// The file whose beginning it held; none if it was random bytes.
        file: Option<String>,
    },
}

impl Default for Payload {
    fn default() -> Self {
        Self::from(&spec::Payload::UNIQUE)
    }
}

/// What sets the pace.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "loop", rename_all = "snake_case")]
pub enum Pacing {
    /// A new I/O starts when an old one completes: the target sets the pace.
    Closed {
        /// The most I/Os in flight for the stream, all its workers together.
        queue_depth: u32,
    },
    /// I/Os start on a schedule that does not look at completions: the load sets the pace.
    Open {
        /// I/Os per second that should start, all workers together; the mean over the window if
        /// they changed over time.
        offered_load_iops: f64,
        /// How the intended starts follow each other.
        arrivals: Arrivals,
        /// The most I/Os in flight for the stream.
        queue_depth_max: u32,
        /// Whether its workers had real-time priority (SCHED_FIFO).
        #[serde(default)]
        realtime: bool,
    },
}

/// How intended starts follow each other in an open loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Arrivals {
    /// At equal distances.
    Uniform,
    /// Independent of each other: exponential distances.
    Poisson,
}

/// How many threads issue a stream's load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Workers {
    /// So many for each region, each serving that one alone.
    PerTarget(u32),
    /// So many in all, each serving every region in turn.
    Total(u32),
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives references")]
fn is_zero(share: &f64) -> bool {
    *share == 0.0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives references")]
fn is_none(ns: &u64) -> bool {
    *ns == 0
}

impl From<&spec::Point> for Point {
    fn from(point: &spec::Point) -> Self {
        Self {
            name: point.name.clone(),
            streams: point.streams.iter().map(|stream| Stream::of(stream, point.window)).collect(),
            warm_up_ns: point.warm_up.0,
            window_ns: point.window.0,
            cool_down_ns: point.cool_down.0,
            interval_ns: point.interval.0,
            looks_ns: point.looks.iter().map(|look| look.0).collect(),
            seed: point.seed,
            rated_iops: point.rated.iops.map(|rate| rate.0),
            rated_bandwidth: point.rated.bandwidth.map(|bandwidth| bandwidth.0),
        }
    }
}

/// The sizes of a direction and how often they occur; empty where all I/Os have one.
fn sizes(sizes: &spec::BlockSizes, direction: Direction) -> Vec<SizeShare> {
    let share = |one: &spec::SizeShare| SizeShare { size_bytes: one.size.0, share: one.share };
    match sizes.only() {
        Some(_) => Vec::new(),
        None => sizes.of(direction).iter().map(share).collect(),
    }
}

impl From<&spec::Kind> for Kind {
    fn from(kind: &spec::Kind) -> Self {
        Self {
            pattern: (&kind.pattern).into(),
            align_bytes: kind.align.map(|align| align.0),
            block_size_bytes: kind.block_sizes.largest().0,
            read_sizes: sizes(&kind.block_sizes, Direction::Read),
            write_sizes: sizes(&kind.block_sizes, Direction::Write),
            read_share: kind.read_share,
        }
    }
}

impl From<&spec::Part> for Part {
    fn from(part: &spec::Part) -> Self {
        Self { weight: part.weight, kind: Kind::from(&part.kind) }
    }
}

impl Stream {
    /// Whether any of its I/Os is of that direction.
    pub fn does(&self, direction: Direction) -> bool {
        let share = match direction {
            Direction::Read => self.read_share,
            Direction::Write => 1.0 - self.read_share,
        };
        share > 0.0 && !self.trims_alone()
    }

    /// Whether it does nothing but trim.
    pub fn trims_alone(&self) -> bool {
        self.trim_share >= 1.0
    }
}

impl Stream {
    /// In a window of this length, over which an open loop's load has its mean.
    pub fn of(stream: &spec::Stream, window: Span) -> Self {
        let (pacing, block_sizes) = (&stream.pacing, stream.block_sizes());
        let region = |region: &spec::Region| Region {
            target: region.target,
            offset_bytes: region.offset.0,
            length_bytes: region.length.0,
        };
        Self {
            name: stream.name.clone(),
            regions: stream.regions.iter().map(region).collect(),
            weights: match &stream.turns {
                spec::Turns::InTurn => Vec::new(),
                spec::Turns::Weighted(weights) => weights.clone(),
            },
            kinds: match &stream.ios {
                spec::Ios::ByRegion(kinds) => kinds.iter().map(Kind::from).collect(),
                spec::Ios::Alike(_) | spec::Ios::Drawn(_) => Vec::new(),
            },
            parts: match &stream.ios {
                spec::Ios::Drawn(parts) => parts.iter().map(Part::from).collect(),
                spec::Ios::Alike(_) | spec::Ios::ByRegion(_) => Vec::new(),
            },
            pattern: stream.pattern().into(),
            align_bytes: stream.align().map(|align| align.0),
            zones: stream.zones,
            block_size_bytes: block_sizes.largest().0,
            read_sizes: sizes(&block_sizes, Direction::Read),
            write_sizes: sizes(&block_sizes, Direction::Write),
            read_share: stream.read_share(),
            trim_share: stream.trim_share,
            payload: Payload::from(&stream.payload),
            flush: stream.flush.map(|flush| Flush {
                every: flush.every,
                data_only: flush.data_only,
                barrier: flush.barrier,
            }),
            pacing: Pacing::of(pacing, window),
            course: pacing
                .course()
                .into_iter()
                .flat_map(spec::Course::stages)
                .map(|stage| Stage {
                    lasts_ns: stage.lasts.0,
                    begins_iops: stage.begins.0,
                    ends_iops: stage.ends.0,
                })
                .collect(),
            rests: pacing.rests().into(),
            start_ns: pacing.active.start.map(|start| start.0),
            end_ns: pacing.active.end.map(|end| end.0),
            limit: pacing.limit.map(|limit| match limit {
                spec::Limit::Ios(ios) => Limit::Ios(ios),
                spec::Limit::Bytes(bytes) => Limit::Bytes(bytes.0),
                spec::Limit::Passes(passes) => Limit::Passes(passes),
            }),
            workers: match stream.workers {
                spec::Workers::PerTarget(n) => Workers::PerTarget(n),
                spec::Workers::Total(n) => Workers::Total(n),
            },
            access: stream.access.into(),
            cpus: stream.workplace.cpus.clone(),
            io_priority: stream.workplace.io_priority,
            large_pages: stream.workplace.large_pages,
        }
    }
}

impl Stream {
    /// The course of the offered load as the core has it, if it changed over time. A reader has
    /// checked that its rates can be.
    pub fn course(&self) -> Option<spec::Course> {
        let stage = |stage: &Stage| spec::Stage {
            lasts: Span(stage.lasts_ns),
            begins: Rate(stage.begins_iops),
            ends: Rate(stage.ends_iops),
        };
        match self.course.is_empty() {
            true => None,
            false => Some(spec::Course::new(self.course.iter().map(stage).collect())),
        }
    }

    /// When it had load.
    fn active(&self) -> spec::Active {
        spec::Active { start: self.start_ns.map(Span), end: self.end_ns.map(Span) }
    }

    /// How it rested and when it had load, in words for the end of a sentence; nothing where a
    /// completion starts the next I/O all the time.
    pub fn rests_in_words(&self) -> String {
        let mut words = String::new();
        if self.rests != Rests::None {
            words += &format!(", {}", self.rests.to_core());
        }
        if self.active() != spec::Active::ALWAYS {
            words += &format!(", {}", self.active());
        }
        if let Some(limit) = self.limit {
            let limit = match limit {
                Limit::Ios(ios) => spec::Limit::Ios(ios),
                Limit::Bytes(bytes) => spec::Limit::Bytes(Bytes(bytes)),
                Limit::Passes(passes) => spec::Limit::Passes(passes),
            };
            words += &format!(", done after {limit}");
        }
        words
    }

    /// Whether its load changed over time, or was not there all the time.
    pub fn changes(&self) -> bool {
        !self.course.is_empty() || self.active() != spec::Active::ALWAYS
    }

    /// I/Os per second that should have started, in the mean from one time of the window to another;
    /// none in a closed loop.
    pub fn offered(&self, from: Span, to: Span) -> Option<f64> {
        let Pacing::Open { offered_load_iops, .. } = self.pacing else { return None };
        let (begins, ends) = self.active().part(from, to);
        let span = (to - from).as_secs_f64();
        if span == 0.0 {
            return Some(offered_load_iops);
        }
        let mean = match self.course() {
            None => offered_load_iops,
            Some(course) => {
                let origin = self.active().begins();
                course.mean(begins - origin, ends - origin).0
            }
        };
        Some(mean * (ends - begins).as_secs_f64() / span)
    }

    /// Its kinds or parts as streams that have no other; itself where all its I/Os are alike.
    pub fn each_kind(&self) -> Vec<Self> {
        let one = |kind: &Kind| Self {
            weights: Vec::new(),
            kinds: Vec::new(),
            parts: Vec::new(),
            pattern: kind.pattern.clone(),
            align_bytes: kind.align_bytes,
            block_size_bytes: kind.block_size_bytes,
            read_sizes: kind.read_sizes.clone(),
            write_sizes: kind.write_sizes.clone(),
            read_share: kind.read_share,
            ..self.clone()
        };
        match (self.kinds.is_empty(), self.parts.is_empty()) {
            (true, true) => Vec::from([self.clone()]),
            (true, false) => self.parts.iter().map(|part| one(&part.kind)).collect(),
            (false, _) => self.kinds.iter().map(one).collect(),
        }
    }

    /// The block sizes as the core has them. What cannot be is left out: the file may be anybody's.
    pub fn block_sizes(&self) -> spec::BlockSizes {
        let weights = |sizes: &[SizeShare]| -> Vec<(Bytes, f64)> {
            let possible = sizes
                .iter()
                .filter(|one| one.size_bytes > 0 && one.share.is_finite() && one.share > 0.0);
            possible.map(|one| (Bytes(one.size_bytes), one.share)).collect()
        };
        let (reads, writes) = (weights(&self.read_sizes), weights(&self.write_sizes));
        match reads.is_empty() || writes.is_empty() {
            true => spec::BlockSizes::one(Bytes(self.block_size_bytes.max(1))),
            false => spec::BlockSizes::weighted(&reads, &writes),
        }
    }
}

impl From<&spec::Payload> for Payload {
    fn from(payload: &spec::Payload) -> Self {
        match payload {
            &spec::Payload::Random { compressible, dedup } => Self::Random { compressible, dedup },
            spec::Payload::Zeros => Self::Zeros,
            spec::Payload::Pattern(bytes) => {
                Self::Pattern { hex: bytes.iter().map(|byte| format!("{byte:02x}")).collect() }
            }
            spec::Payload::Pool { size, file } => Self::Pool {
                size_bytes: size.0,
                file: file.as_ref().map(|path| path.display().to_string()),
            },
        }
    }
}

impl Pacing {
    fn of(pacing: &spec::Pacing, window: Span) -> Self {
        match pacing.pace {
            spec::Loop::Closed { queue_depth, .. } => Self::Closed { queue_depth },
            spec::Loop::Open { ref load, arrivals, queue_depth_max, realtime } => Self::Open {
                offered_load_iops: pacing.offered_load(window).unwrap_or(load.mean(window)).0,
                arrivals: match arrivals {
                    spec::Arrivals::Uniform => Arrivals::Uniform,
                    spec::Arrivals::Poisson => Arrivals::Poisson,
                },
                queue_depth_max,
                realtime,
            },
        }
    }

    /// The most I/Os that could be in flight.
    pub fn queue_depth(&self) -> u32 {
        match *self {
            Self::Closed { queue_depth } => queue_depth,
            Self::Open { queue_depth_max, .. } => queue_depth_max,
        }
    }

    /// Whether a schedule started the I/Os.
    pub fn is_open(&self) -> bool {
        matches!(self, Self::Open { .. })
    }
}
