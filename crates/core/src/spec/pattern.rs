//! How the offsets of a stream follow each other. What exactly each pattern generates stands in
//! docs/method/patterns.md.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::units::Bytes;

/// How offsets follow each other.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Pattern {
    /// One I/O after the other, around the region, each worker by itself.
    Sequential(Sequence),
    /// The same with one pointer in each region, which all workers of the stream move on together:
    /// each place is taken by one of them.
    Interlocked {
        /// From the start of an I/O to that of the next one; if none, each starts where the one
        /// before it ends.
        #[serde(rename = "stride_bytes", default, skip_serializing_if = "super::is_usual")]
        stride: Option<Bytes>,
    },
    /// By chance, each I/O independently of the others.
    Random(Distribution),
    /// By chance, but no place again before all of them had their turn: every pass over the region is
    /// in a new order.
    Shuffled,
    /// Some I/Os by chance, and the others each where the one before it ended. Such a run is of reads
    /// or of writes alone.
    Mixed {
        /// The share of I/Os that are placed by chance, above 0 and below 1.
        random_share: f64,
        /// Where they go.
        distribution: Distribution,
    },
}

/// How sequential workers go through their region.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Sequence {
    /// From the start of an I/O to that of the next one; if none, each starts where the one before
    /// it ends.
    #[serde(rename = "stride_bytes", default, skip_serializing_if = "super::is_usual")]
    pub stride: Option<Bytes>,
    /// Where workers that share a region start in it.
    #[serde(default, skip_serializing_if = "super::is_usual")]
    pub starts: Starts,
    /// Whether they go from the end of the region towards its start.
    #[serde(default, skip_serializing_if = "super::is_usual")]
    pub backward: bool,
    /// How many I/Os a worker does at each place before it moves on; one if none. With as many as it
    /// has slots it is as if each slot went through the region by itself.
    #[serde(default, skip_serializing_if = "super::is_usual")]
    pub visits: Option<u32>,
}

/// Where workers that share a region start in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Starts {
    /// At equal distances over the whole region.
    #[default]
    Spread,
    /// At this distance from each other, the first one at the region's start; at 0 all workers do
    /// the same I/Os, as DiskSpd's threads do.
    #[serde(rename = "apart_bytes")]
    Apart(Bytes),
}

/// How often each place of a region is chosen.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "OffsetDistribution")]
pub enum Distribution {
    /// Equally often.
    Uniform,
    /// The place of rank k with a probability that is proportional to k^-theta.
    Zipf {
        /// From 0, which is uniform, to 10.
        theta: f64,
        /// Which place has which rank.
        order: Order,
    },
    /// A part h of the places gets a part 1 - h of the I/Os, and so on within that part.
    Pareto {
        /// Above 0 and below 1.
        h: f64,
        /// Which place has which rank.
        order: Order,
    },
    /// A bell around a center, without what would lie outside of the region.
    Normal {
        /// In shares of the region, above 0 and at most 1.
        #[serde(rename = "deviation_share")]
        deviation: f64,
        /// In shares of the region, from 0 to 1.
        #[serde(rename = "center_share")]
        center: f64,
    },
    /// Ranges from the region's start on, each uniform in itself; the rest of the region gets the
    /// rest of the I/Os.
    Hot(Vec<HotRange>),
}

/// Which place has which rank.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    /// Places are ranked by chance: what is used often lies everywhere. The seed decides, and all
    /// workers agree.
    #[default]
    Spread,
    /// From the region's start on: what is used often lies together.
    Clustered,
}

/// A part of a region, and how much of the I/Os it gets.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HotRange {
    /// The share of the I/Os, from 0 (a hole) to 1.
    pub io_share: f64,
    /// How long the range is.
    pub extent: Extent,
}

/// The length of a range.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Extent {
    /// As a share of the region, above 0 and at most 1.
    #[serde(rename = "region_share")]
    Share(f64),
    /// In bytes. What lies beyond the region's end is cut off, and the shares of the I/Os of what is
    /// left are raised in proportion.
    #[serde(rename = "bytes")]
    Size(Bytes),
}

impl Pattern {
    /// One after the other, from separate starts, around the region.
    pub const SEQUENTIAL: Self = Self::Sequential(Sequence {
        stride: None,
        starts: Starts::Spread,
        backward: false,
        visits: None,
    });
    /// Uniform over the region, with repetition.
    pub const RANDOM: Self = Self::Random(Distribution::Uniform);

    /// So large a share of I/Os by chance and the others sequential, where 0 is sequential and 1 is
    /// random.
    pub fn mixed(random_share: f64, distribution: Distribution) -> Self {
        if random_share <= 0.0 {
            Self::SEQUENTIAL
        } else if random_share >= 1.0 {
            Self::Random(distribution)
        } else {
            Self::Mixed { random_share, distribution }
        }
    }

    /// Whether I/Os are placed by chance, at multiples of an alignment.
    pub fn is_aligned(&self) -> bool {
        matches!(self, Self::Random(_) | Self::Shuffled | Self::Mixed { .. })
    }

    /// The distance between two starts, where there is one that does not depend on the block size.
    pub fn stride(&self) -> Option<Bytes> {
        match *self {
            Self::Sequential(Sequence { stride, .. }) | Self::Interlocked { stride } => stride,
            Self::Random(_) | Self::Shuffled | Self::Mixed { .. } => None,
        }
    }

    /// The distance between the starts of two workers, where it was given.
    pub fn start_distance(&self) -> Option<Bytes> {
        match *self {
            Self::Sequential(Sequence { starts: Starts::Apart(distance), .. }) => Some(distance),
            _ => None,
        }
    }
}

/// A share that was set: "30 %", "0.0125 %". It has every digit that was typed, unlike a share that was
/// measured (`figures::percent`), so that two settings never look alike.
fn as_typed(share: f64) -> String {
    format!("{} %", (share * 1e8).round() / 1e6)
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let strided = |stride: Bytes| format!("strided {stride}");
        let (name, notes) = match self {
            Self::Sequential(Sequence { stride, starts, backward, visits }) => {
                let (name, stride) = match (backward, stride) {
                    (true, stride) => ("backward".to_owned(), stride.map(strided)),
                    (false, Some(stride)) => (strided(*stride), None),
                    (false, None) => ("sequential".to_owned(), None),
                };
                let apart = match starts {
                    Starts::Spread => None,
                    Starts::Apart(Bytes(0)) => Some("starts together".to_owned()),
                    Starts::Apart(distance) => Some(format!("starts {distance} apart")),
                };
                let visits = visits.map(|visits| format!("each place {visits} times"));
                (name, [stride, apart, visits])
            }
            Self::Interlocked { stride } => {
                ("interlocked".to_owned(), [stride.map(strided), None, None])
            }
            Self::Random(distribution) => return distribution.fmt(f),
            Self::Shuffled => ("non-repeating random".to_owned(), [None, None, None]),
            Self::Mixed { random_share, distribution } => {
                let share = format!("{} {distribution}", as_typed(*random_share));
                ("mixed".to_owned(), [Some(share), None, None])
            }
        };
        let notes: Vec<String> = notes.into_iter().flatten().collect();
        match notes.is_empty() {
            true => f.write_str(&name),
            false => write!(f, "{name} ({})", notes.join(", ")),
        }
    }
}

impl fmt::Display for Distribution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let order = |order: &Order| match order {
            Order::Spread => "",
            Order::Clustered => "clustered ",
        };
        match self {
            Self::Uniform => f.write_str("random"),
            Self::Zipf { theta, order: by } => write!(f, "{}zipf {theta}", order(by)),
            Self::Pareto { h, order: by } => write!(f, "{}pareto {h}", order(by)),
            Self::Normal { deviation, center } => {
                write!(f, "normal ({} around {})", as_typed(*deviation), as_typed(*center))
            }
            Self::Hot(ranges) => {
                let range =
                    |one: &HotRange| format!("{} in {}", as_typed(one.io_share), one.extent);
                let ranges: Vec<String> = ranges.iter().map(range).collect();
                write!(f, "hot ({})", ranges.join(", "))
            }
        }
    }
}

impl fmt::Display for Extent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Share(share) => f.write_str(&as_typed(*share)),
            Self::Size(size) => size.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hot(ranges: &[(f64, f64)]) -> Pattern {
        let range = |&(io_share, part)| HotRange { io_share, extent: Extent::Share(part) };
        Pattern::Random(Distribution::Hot(ranges.iter().map(range).collect()))
    }

    fn sized(ranges: &[(f64, u64)]) -> Pattern {
        let range = |&(io_share, size)| HotRange { io_share, extent: Extent::Size(Bytes(size)) };
        Pattern::Random(Distribution::Hot(ranges.iter().map(range).collect()))
    }

    fn zipf(theta: f64) -> Pattern {
        Pattern::Random(Distribution::Zipf { theta, order: Order::Spread })
    }

    fn visiting(visits: u32) -> Pattern {
        Pattern::Sequential(Sequence { visits: Some(visits), ..Sequence::default() })
    }

    #[test]
    fn a_pattern_is_called_by_what_sets_it_apart() {
        let order = Order::Clustered;
        let starts = Starts::Apart(Bytes(1 << 30));
        let stride = Some(Bytes(65_536));
        for (pattern, name) in [
            (Pattern::SEQUENTIAL, "sequential"),
            (Pattern::RANDOM, "random"),
            (Pattern::Shuffled, "non-repeating random"),
            (Pattern::Interlocked { stride: None }, "interlocked"),
            (Pattern::Interlocked { stride }, "interlocked (strided 64 KiB)"),
            (Pattern::mixed(0.0, Distribution::Uniform), "sequential"),
            (Pattern::mixed(1.0, Distribution::Uniform), "random"),
            (Pattern::mixed(0.05, Distribution::Uniform), "mixed (5 % random)"),
            (zipf(1.1), "zipf 1.1"),
            (Pattern::Random(Distribution::Pareto { h: 0.2, order }), "clustered pareto 0.2"),
            (hot(&[(0.9, 0.1), (0.0, 0.4)]), "hot (90 % in 10 %, 0 % in 40 %)"),
            (sized(&[(0.9, 1 << 30)]), "hot (90 % in 1 GiB)"),
            (
                Pattern::Random(Distribution::Normal { deviation: 0.1, center: 0.5 }),
                "normal (10 % around 50 %)",
            ),
            (
                Pattern::Sequential(Sequence { stride, starts, ..Sequence::default() }),
                "strided 64 KiB (starts 1 GiB apart)",
            ),
            (
                Pattern::Sequential(Sequence { stride, backward: true, ..Sequence::default() }),
                "backward (strided 64 KiB)",
            ),
            (visiting(8), "sequential (each place 8 times)"),
        ] {
            assert_eq!(pattern.to_string(), name);
        }
    }
}
