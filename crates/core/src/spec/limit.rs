//! When a stream is done by itself: after a number of I/Os, bytes, or passes over its regions.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Stream;
use crate::units::Bytes;

/// How much a stream does, all its workers together and counted from its first I/O, before it is
/// done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    /// This number of I/Os, at least 1.
    Ios(u64),
    /// This number of bytes, at least 1: it is done with the I/O that reaches them.
    Bytes(Bytes),
    /// This number of times as much as its regions hold, at least 1.
    Passes(u32),
}

impl Limit {
    /// About how many bytes a stream moves until it is done.
    pub fn bytes(self, stream: &Stream) -> Bytes {
        match self {
            Self::Ios(ios) => {
                Bytes((ios as f64 * stream.block_sizes().mean(stream.read_share())) as u64)
            }
            Self::Bytes(bytes) => bytes,
            Self::Passes(passes) => {
                let all: u64 = stream.regions.iter().map(|region| region.length.0).sum();
                Bytes(all.saturating_mul(u64::from(passes)))
            }
        }
    }
}

impl fmt::Display for Limit {
    /// "1000 I/Os", "10 GiB", "2 passes".
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ios(1) => f.write_str("1 I/O"),
            Self::Ios(ios) => write!(f, "{ios} I/Os"),
            Self::Bytes(bytes) => write!(f, "{bytes}"),
            Self::Passes(1) => f.write_str("1 pass"),
            Self::Passes(passes) => write!(f, "{passes} passes"),
        }
    }
}
