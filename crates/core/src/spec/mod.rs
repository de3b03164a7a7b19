//! What to measure, resolved: after this there is no option that means "default".
//!
//! These types are the description of a load in a result file, too. There a field has its unit in its
//! name, and a property that is as usual is left out.

mod access;
mod check;
mod course;
mod ios;
mod limit;
mod pacing;
mod pattern;
mod payload;
mod possible;
mod rests;
mod workplace;

use std::fmt;

pub use access::{Access, Cache, Hint, RingMode, SubmissionThread, SyncMode};
pub use check::check as check_pattern;
pub use course::{Course, Stage};
pub use ios::{Ios, Kind, Part};
pub use limit::Limit;
pub use pacing::{Arrivals, Loop, OfferedLoad, Pacing};
pub use pattern::{Distribution, Extent, HotRange, Order, Pattern, Sequence, Starts};
pub use payload::{Payload, hex};
pub use rests::{Active, RestFrom, Rests};

pub use workplace::{IoPriority, Workplace};

use schemars::JsonSchema;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};

use crate::figures::number;
use crate::measure::Direction;
use crate::units::{Bytes, Quantile, Rate, Span};

/// Whether a property is what it is unless somebody says otherwise.
fn is_usual<T: Default + PartialEq>(property: &T) -> bool {
    *property == T::default()
}

/// All parameters of one measurement.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Point {
    /// What people call this point, such as "random read 4 KiB, queue depth 32".
    pub name: String,
    /// The workloads that run together, at least one.
    pub streams: Vec<Stream>,
    /// Load before the window, which is not recorded.
    #[serde(rename = "warm_up_ns")]
    pub warm_up: Span,
    /// The time that is recorded.
    #[serde(rename = "window_ns")]
    pub window: Span,
    /// Load after the window, which is not recorded: a stream that has not done all that it is to do
    /// goes on, so that what was in flight at the window's end ends under the load that it began under.
    #[serde(rename = "cool_down_ns", default, skip_serializing_if = "is_usual")]
    pub cool_down: Span,
    /// The slices of the series, from 100 ms up. The window is a whole number of them.
    #[serde(rename = "interval_ns")]
    pub interval: Span,
    /// Buckets of the window whose I/Os are counted besides, of any length above 0: they need not fit
    /// the intervals, and the last one may be shorter. None if they are not.
    #[serde(rename = "buckets_ns", default, skip_serializing_if = "is_usual")]
    pub buckets: Option<Span>,
    /// When the window may end early, because its observer then sees what it has come to: times from
    /// its start, each a whole number of intervals, rising. None for a window that always lasts to its
    /// end.
    #[serde(rename = "looks_ns", default, skip_serializing_if = "is_usual")]
    pub looks: Vec<Span>,
    /// Repeats every offset, direction and arrival of the point.
    pub seed: u64,
    /// What all its targets together are rated at, as far as somebody said.
    #[serde(default, skip_serializing_if = "is_usual")]
    pub rated: Rated,
}

/// The most that targets do, as their maker or their operator says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Rated {
    /// I/Os per second.
    pub iops: Option<Rate>,
    /// Bytes per second.
    #[serde(rename = "bandwidth_bytes_per_second")]
    pub bandwidth: Option<Bytes>,
    /// The response time that a share of the I/Os stays within.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_time: Option<Objective>,
}

/// A bound on a quantile of the response time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Objective {
    /// The quantile.
    pub quantile: Quantile,
    /// Its bound.
    #[serde(rename = "bound_ns")]
    pub bound: Span,
}

impl fmt::Display for Objective {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} <= {}", self.quantile, self.bound)
    }
}

impl Point {
    /// A point that is named after its first stream and measures at once: no warm-up, no
    /// cool-down, intervals of 100 ms (or one that is as long as a shorter window), no looks, seed 1.
    pub fn of(streams: Vec<Stream>, window: Span) -> Self {
        Self {
            name: streams.first().map(|stream| stream.name.clone()).unwrap_or_default(),
            streams,
            warm_up: Span(0),
            window,
            cool_down: Span(0),
            interval: window.min(Span::from_ms(100)),
            buckets: None,
            looks: Vec::new(),
            seed: 1,
            rated: Rated::default(),
        }
    }

    /// How long it takes, if nothing ends it before its time.
    pub fn time(&self) -> Span {
        self.warm_up + self.window + self.cool_down
    }
}

/// One workload with its own pattern, mix and pacing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Stream {
    /// What people call this stream.
    pub name: String,
    /// Where it reads and writes, at least one region; each names its target.
    pub regions: Vec<Region>,
    /// Which of its regions an I/O goes to, where a worker serves several.
    #[serde(default, skip_serializing_if = "is_usual")]
    pub turns: Turns,
    /// What its I/Os are like.
    pub ios: Ios,
    /// Whether each of the workers that share a region has a part of it to itself, which is then its
    /// region.
    #[serde(default, skip_serializing_if = "is_usual")]
    pub zones: bool,
    /// Share of trims of all I/Os, from 0 to 1.
    #[serde(default, skip_serializing_if = "is_usual")]
    pub trim_share: f64,
    /// What is written.
    pub payload: Payload,
    /// When its workers flush what they wrote; never if none.
    #[serde(default, skip_serializing_if = "is_usual")]
    pub flush: Option<Flush>,
    /// What sets the pace.
    pub pacing: Pacing,
    /// How many threads issue the load.
    pub workers: Workers,
    /// How its data reaches the targets.
    pub access: Access,
    /// Where its workers run.
    #[serde(default, skip_serializing_if = "is_usual")]
    pub workplace: Workplace,
}

impl Stream {
    /// What a stream does unless it is told otherwise: random reads of 4 KiB in these regions, one
    /// after the other, by one worker.
    pub fn reading(name: impl Into<String>, regions: Vec<Region>) -> Self {
        Self {
            name: name.into(),
            regions,
            turns: Turns::InTurn,
            ios: Kind::default().into(),
            zones: false,
            trim_share: 0.0,
            payload: Payload::UNIQUE,
            flush: None,
            pacing: Pacing::closed(1),
            workers: Workers::Total(1),
            access: Access::DIRECT,
            workplace: Workplace::default(),
        }
    }

    /// What people call it in a window of this length, such as "random read 4 KiB, queue depth 32".
    pub fn description(&self, window: Span) -> String {
        let rests = match self.pacing.rests() {
            Rests::None => String::new(),
            rests => format!(", {rests}"),
        };
        let pace = match self.pacing.offered_load(window) {
            None => format!("queue depth {}{rests}", self.pacing.queue_depth()),
            Some(load) => {
                let average =
                    if self.pacing.course().is_some() { " on average" } else { rests.as_str() };
                let load = match 1000.0 <= load.0 {
                    true => format!("{}/s", number(load.0)),
                    false => load.to_string(),
                };
                format!("offered {load}{average}")
            }
        };
        format!("{}, {pace}", self.load_in_words())
    }

    /// The same without its pace, such as "random read 4 KiB".
    pub fn load_in_words(&self) -> String {
        let mut each: Vec<String> = match &self.ios {
            Ios::Alike(kind) => return self.kind_in_words(kind),
            Ios::ByRegion(kinds) => kinds.iter().map(|kind| self.kind_in_words(kind)).collect(),
            Ios::Drawn(parts) => {
                let total: f64 = parts.iter().map(|part| part.weight).sum();
                let each = parts.iter().map(|part| {
                    let percent = (part.weight / total * 1e4).round() / 100.0;
                    format!("{percent} % {}", self.kind_in_words(&part.kind))
                });
                return each.collect::<Vec<_>>().join(", ");
            }
        };
        each.dedup();
        let last = each.pop().unwrap_or_default();
        if each.is_empty() { last } else { format!("{} and {last}", each.join(", ")) }
    }

    fn kind_in_words(&self, kind: &Kind) -> String {
        let percent = kind.read_share * 100.0;
        let mix = if self.trims_alone() {
            "trim".to_owned()
        } else if kind.read_share == 1.0 {
            "read".to_owned()
        } else if kind.read_share == 0.0 {
            "write".to_owned()
        } else {
            let round = |share: f64| (share * 100.0).round() / 100.0;
            format!("{}/{} read/write", round(percent), round(100.0 - percent))
        };
        format!("{} {mix} {}", kind.pattern, kind.block_sizes)
    }

    /// Whether it changes what its targets hold: by writes or by trims.
    pub fn destroys(&self) -> bool {
        self.read_share() < 1.0 || self.trims()
    }

    /// The direction of all its I/Os, where they have one.
    pub fn only_direction(&self) -> Option<Direction> {
        match self.read_share() {
            _ if self.trims_alone() => None,
            0.0 => Some(Direction::Write),
            1.0 => Some(Direction::Read),
            _ => None,
        }
    }

    /// Whether any of its I/Os is of that direction.
    pub fn does(&self, direction: Direction) -> bool {
        let share = match direction {
            Direction::Read => self.read_share(),
            Direction::Write => 1.0 - self.read_share(),
        };
        share > 0.0 && !self.trims_alone()
    }

    /// How many workers share each of its regions.
    pub fn sharers(&self) -> u32 {
        match self.workers {
            Workers::PerTarget(n) | Workers::Total(n) => n,
        }
    }

    /// Whether it does nothing but trim.
    pub fn trims_alone(&self) -> bool {
        self.trim_share >= 1.0
    }

    /// Whether it trims.
    pub fn trims(&self) -> bool {
        self.trim_share > 0.0
    }
}

/// How many bytes one I/O moves: always the same, or one of several sizes by chance, independently of
/// everything else. Reads and writes may differ.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BlockSizes {
    /// The sizes of reads, at least one.
    #[serde(deserialize_with = "possible_sizes")]
    reads: Vec<SizeShare>,
    /// The sizes of writes, at least one.
    #[serde(deserialize_with = "possible_sizes")]
    writes: Vec<SizeShare>,
}

/// A block size and how often it occurs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SizeShare {
    /// Bytes moved, at least 1.
    #[serde(rename = "size_bytes")]
    pub size: Bytes,
    /// The share of the I/Os of its direction that have it, above 0; all together are 1.
    pub share: f64,
}

/// Reads the sizes of a direction, and refuses what [`BlockSizes::weighted`] could not have made.
fn possible_sizes<'de, D: Deserializer<'de>>(file: D) -> Result<Vec<SizeShare>, D::Error> {
    /// What the sum of many shares may lack.
    const ROUNDING: f64 = 1e-6;
    let sizes = Vec::<SizeShare>::deserialize(file)?;
    let each = sizes.iter().all(|one| one.size > Bytes(0) && one.share > 0.0);
    let sum: f64 = sizes.iter().map(|one| one.share).sum();
    match each && (sum - 1.0).abs() < ROUNDING {
        true => Ok(sizes),
        false => Err(D::Error::custom("block sizes are above 0, and their shares come to 1")),
    }
}

impl BlockSizes {
    /// Every I/O has this size.
    pub fn one(size: Bytes) -> Self {
        Self::weighted(&[(size, 1.0)], &[(size, 1.0)])
    }

    /// Sizes by weight; only the proportions of the weights matter.
    ///
    /// # Panics
    ///
    /// Without a size, or when a size or a weight is not above 0, which resolving a spec rules out.
    pub fn weighted(reads: &[(Bytes, f64)], writes: &[(Bytes, f64)]) -> Self {
        let shares = |weights: &[(Bytes, f64)]| {
            let total: f64 = weights.iter().map(|(_, weight)| weight).sum();
            assert!(total > 0.0 && weights.iter().all(|&(size, w)| size > Bytes(0) && w > 0.0));
            weights.iter().map(|&(size, w)| SizeShare { size, share: w / total }).collect()
        };
        Self { reads: shares(reads), writes: shares(writes) }
    }

    /// The sizes of one direction, at least one.
    pub fn of(&self, direction: Direction) -> &[SizeShare] {
        match direction {
            Direction::Read => &self.reads,
            Direction::Write => &self.writes,
        }
    }

    /// The size of every I/O, where there is only one.
    pub fn only(&self) -> Option<Bytes> {
        let first = self.smallest();
        self.all().all(|size| size == first).then_some(first)
    }

    /// The smallest size of all. Random offsets are multiples of it, counted from the region's start.
    pub fn smallest(&self) -> Bytes {
        self.all().min().expect("there is at least one size")
    }

    /// The largest size of all.
    pub fn largest(&self) -> Bytes {
        self.all().max().expect("there is at least one size")
    }

    /// Bytes that an I/O moves on average, when this share of the I/Os are reads.
    pub fn mean(&self, read_share: f64) -> f64 {
        let mean = |sizes: &[SizeShare]| -> f64 {
            sizes.iter().map(|one| one.size.0 as f64 * one.share).sum()
        };
        mean(&self.reads) * read_share + mean(&self.writes) * (1.0 - read_share)
    }

    /// Every size that occurs, some perhaps twice.
    pub fn all(&self) -> impl Iterator<Item = Bytes> {
        self.reads.iter().chain(&self.writes).map(|one| one.size)
    }
}

impl fmt::Display for BlockSizes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |f: &mut fmt::Formatter<'_>, sizes: &[SizeShare]| match sizes {
            [one] => write!(f, "{}", one.size),
            several => several.iter().enumerate().try_for_each(|(place, one)| {
                let comma = if place > 0 { ", " } else { "" };
                let percent = (one.share * 1e4).round() / 1e2;
                write!(f, "{comma}{percent} % {}", one.size)
            }),
        };
        list(f, &self.reads)?;
        if self.reads != self.writes {
            f.write_str(" (writes ")?;
            list(f, &self.writes)?;
            f.write_str(")")?;
        }
        Ok(())
    }
}

/// The range of a target that is addressed. Offset and length are multiples of the block size's
/// alignment; the length is at least one block, the largest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Region {
    /// The target's place in the list of targets of the run.
    pub target: u32,
    /// Where the region starts.
    #[serde(rename = "offset_bytes")]
    pub offset: Bytes,
    /// How long it is.
    #[serde(rename = "length_bytes")]
    pub length: Bytes,
}

/// Which of its regions the next I/O of a worker goes to.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Turns {
    /// One after the other, so that each gets as many.
    #[default]
    InTurn,
    /// One by chance for each I/O, independently of everything else: each region has a weight above 0,
    /// in their order, and only the proportions matter.
    Weighted(Vec<f64>),
}

/// When a worker has its target make durable what it wrote. A flush starts when the writes before it
/// have completed, and until then nothing after it starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Flush {
    /// After this number of its writes to a target, at least 1.
    pub every: u32,
    /// Whether only the data is flushed, with what is needed to find it (fdatasync), and not all that
    /// belongs to the file (fsync).
    pub data_only: bool,
    /// Whether what comes after it starts only when it has completed.
    pub barrier: bool,
}

impl Flush {
    /// The data after each write, and nothing else meanwhile.
    pub const DATA: Self = Self { every: 1, data_only: true, barrier: true };
}

/// How many threads issue a stream's load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Workers {
    /// This number for each region, each serving that one alone.
    PerTarget(u32),
    /// This number in all, each serving every region.
    Total(u32),
}

/// What carries I/Os to a real target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum BackendKind {
    /// io_uring.
    Uring,
    /// Linux native AIO.
    Aio,
    /// pread and pwrite, one thread for each slot.
    Sync,
    /// A simulated target, in virtual time.
    Sim,
}

impl BackendKind {
    /// The name on the command line and in the document.
    pub fn name(self) -> &'static str {
        match self {
            Self::Uring => "uring",
            Self::Aio => "aio",
            Self::Sync => "sync",
            Self::Sim => "sim",
        }
    }
}
