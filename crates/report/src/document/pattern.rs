//! A pattern as it stands in the document.

use fathom_core::Bytes;
use fathom_core::spec;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How offsets followed each other.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Pattern {
    /// Block after block, from a start that is separate for each worker, around the region.
    Sequential,
    /// The same in another way.
    Sequence(Sequence),
    /// One after the other, with one pointer in each region for all workers of the stream.
    Interlocked {
        /// From the start of an I/O to that of the next one, where it was not the length of the I/O.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        stride_bytes: Option<u64>,
    },
    /// Uniform over the region's places, with repetition.
    Random,
    /// Over a distribution, with repetition.
    Distributed(OffsetDistribution),
    /// Uniform, and no place again before all of them had their turn.
    Shuffled,
    /// Some I/Os by chance, the others each where the one before it ended.
    Mixed {
        /// The share of I/Os by chance, from 0 to 1.
        random_share: f64,
        /// Where they went.
        distribution: OffsetDistribution,
    },
}

/// How sequential workers went through their region.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Sequence {
    /// From the start of an I/O to that of the next one, where it was not the length of the I/O.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stride_bytes: Option<u64>,
    /// From the start of a worker to that of the next one, where they were not spread over the
    /// region.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_distance_bytes: Option<u64>,
    /// Whether they went towards the region's start.
    #[serde(default)]
    pub backward: bool,
    /// How many I/Os a worker did at each place before it moved on, where it was not one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub visits: Option<u32>,
}

/// How often each place of a region was chosen.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OffsetDistribution {
    /// Equally often.
    Uniform,
    /// The place of rank k with a probability proportional to k^-theta.
    Zipf {
        /// From 0, which is uniform.
        theta: f64,
        /// Whether ranks went from the region's start on, and not anywhere.
        #[serde(default)]
        clustered: bool,
    },
    /// A part h of the places got a part 1 - h of the I/Os, and so on within that part.
    Pareto {
        /// From 0 to 1.
        h: f64,
        /// Whether ranks went from the region's start on, and not anywhere.
        #[serde(default)]
        clustered: bool,
    },
    /// A bell around a center.
    Normal {
        /// In shares of the region.
        deviation_share: f64,
        /// In shares of the region.
        center_share: f64,
    },
    /// Ranges from the region's start on; the rest of the region got the rest of the I/Os.
    Hot {
        /// One after the other.
        ranges: Vec<HotRange>,
    },
}

/// A part of a region, and how much of the I/Os it got.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HotRange {
    /// The share of the I/Os.
    pub io_share: f64,
    /// How long the range was.
    pub extent: Extent,
}

/// The length of a range.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Extent {
    /// As a share of the region.
    RegionShare(f64),
    /// In bytes.
    Bytes(u64),
}

impl From<&spec::Pattern> for Pattern {
    fn from(pattern: &spec::Pattern) -> Self {
        let bytes = |size: Option<Bytes>| size.map(|size| size.0);
        match pattern {
            spec::Pattern::Sequential(sequence) if *sequence == spec::Sequence::default() => {
                Self::Sequential
            }
            spec::Pattern::Sequential(sequence) => Self::Sequence(Sequence {
                stride_bytes: bytes(sequence.stride),
                start_distance_bytes: bytes(pattern.start_distance()),
                backward: sequence.backward,
                visits: sequence.visits,
            }),
            spec::Pattern::Interlocked { stride } => {
                Self::Interlocked { stride_bytes: bytes(*stride) }
            }
            spec::Pattern::Random(spec::Distribution::Uniform) => Self::Random,
            spec::Pattern::Random(distribution) => Self::Distributed(distribution.into()),
            spec::Pattern::Shuffled => Self::Shuffled,
            spec::Pattern::Mixed { random_share, distribution } => {
                Self::Mixed { random_share: *random_share, distribution: distribution.into() }
            }
        }
    }
}

impl From<&spec::Distribution> for OffsetDistribution {
    fn from(distribution: &spec::Distribution) -> Self {
        let is_clustered = |order: &spec::Order| *order == spec::Order::Clustered;
        match distribution {
            spec::Distribution::Uniform => Self::Uniform,
            spec::Distribution::Zipf { theta, order } => {
                Self::Zipf { theta: *theta, clustered: is_clustered(order) }
            }
            spec::Distribution::Pareto { h, order } => {
                Self::Pareto { h: *h, clustered: is_clustered(order) }
            }
            spec::Distribution::Normal { deviation, center } => {
                Self::Normal { deviation_share: *deviation, center_share: *center }
            }
            spec::Distribution::Hot(ranges) => {
                let extent = |extent| match extent {
                    spec::Extent::Share(share) => Extent::RegionShare(share),
                    spec::Extent::Size(size) => Extent::Bytes(size.0),
                };
                let range = |range: &spec::HotRange| HotRange {
                    io_share: range.io_share,
                    extent: extent(range.extent),
                };
                Self::Hot { ranges: ranges.iter().map(range).collect() }
            }
        }
    }
}

impl Pattern {
    /// As the core has it.
    pub fn to_core(&self) -> spec::Pattern {
        match self {
            Self::Sequential => spec::Pattern::SEQUENTIAL,
            Self::Sequence(sequence) => spec::Pattern::Sequential(spec::Sequence {
                stride: sequence.stride_bytes.map(Bytes),
                starts: match sequence.start_distance_bytes {
                    None => spec::Starts::Spread,
                    Some(distance) => spec::Starts::Apart(Bytes(distance)),
                },
                backward: sequence.backward,
                visits: sequence.visits,
            }),
            Self::Interlocked { stride_bytes } => {
                spec::Pattern::Interlocked { stride: stride_bytes.map(Bytes) }
            }
            Self::Random => spec::Pattern::RANDOM,
            Self::Distributed(distribution) => spec::Pattern::Random(distribution.to_core()),
            Self::Shuffled => spec::Pattern::Shuffled,
            Self::Mixed { random_share, distribution } => spec::Pattern::Mixed {
                random_share: *random_share,
                distribution: distribution.to_core(),
            },
        }
    }
}

impl OffsetDistribution {
    fn to_core(&self) -> spec::Distribution {
        let order = |clustered| match clustered {
            true => spec::Order::Clustered,
            false => spec::Order::Spread,
        };
        match self {
            Self::Uniform => spec::Distribution::Uniform,
            Self::Zipf { theta, clustered } => {
                spec::Distribution::Zipf { theta: *theta, order: order(*clustered) }
            }
            Self::Pareto { h, clustered } => {
                spec::Distribution::Pareto { h: *h, order: order(*clustered) }
            }
            Self::Normal { deviation_share, center_share } => {
                spec::Distribution::Normal { deviation: *deviation_share, center: *center_share }
            }
            Self::Hot { ranges } => {
                let extent = |extent| match extent {
                    Extent::RegionShare(share) => spec::Extent::Share(share),
                    Extent::Bytes(size) => spec::Extent::Size(Bytes(size)),
                };
                let range = |range: &HotRange| spec::HotRange {
                    io_share: range.io_share,
                    extent: extent(range.extent),
                };
                spec::Distribution::Hot(ranges.iter().map(range).collect())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pattern_comes_back_from_the_document() {
        let order = spec::Order::Clustered;
        let zipf = spec::Distribution::Zipf { theta: 1.1, order };
        let hot = [
            spec::HotRange { io_share: 0.9, extent: spec::Extent::Share(0.1) },
            spec::HotRange { io_share: 0.0, extent: spec::Extent::Size(Bytes(1 << 30)) },
        ];
        let apart = spec::Starts::Apart(Bytes(1 << 20));
        for pattern in [
            spec::Pattern::SEQUENTIAL,
            spec::Pattern::RANDOM,
            spec::Pattern::Shuffled,
            spec::Pattern::Interlocked { stride: None },
            spec::Pattern::Interlocked { stride: Some(Bytes(65_536)) },
            spec::Pattern::Sequential(spec::Sequence {
                stride: Some(Bytes(65_536)),
                starts: apart,
                backward: true,
                visits: Some(8),
            }),
            spec::Pattern::Random(zipf.clone()),
            spec::Pattern::Mixed { random_share: 0.3, distribution: zipf },
            spec::Pattern::Mixed { random_share: 0.3, distribution: spec::Distribution::Uniform },
            spec::Pattern::Random(spec::Distribution::Pareto { h: 0.2, order }),
            spec::Pattern::Random(spec::Distribution::Normal { deviation: 0.1, center: 0.5 }),
            spec::Pattern::Random(spec::Distribution::Hot(hot.into())),
        ] {
            let json = serde_json::to_string(&Pattern::from(&pattern)).expect("it is plain data");
            let read: Pattern = serde_json::from_str(&json).expect(&json);
            assert_eq!(read.to_core(), pattern, "{json}");
        }
        // What documents have said from the first.
        let plain = [("\"random\"", Pattern::Random), ("\"sequential\"", Pattern::Sequential)];
        for (json, pattern) in plain {
            assert_eq!(serde_json::from_str::<Pattern>(json).expect(json), pattern);
            assert_eq!(serde_json::to_string(&pattern).expect("it is plain data"), json);
        }
    }
}
