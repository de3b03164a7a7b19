//! Where a stream's workers run, with which priority their I/Os do, and in which memory.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a stream's workers have around them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Workplace {
    /// The CPUs that the workers are tied to, in turn; any if empty.
    #[serde(default, skip_serializing_if = "super::is_usual")]
    pub cpus: Vec<u32>,
    /// The priority of the stream's I/Os; that of the process if none.
    #[serde(default, skip_serializing_if = "super::is_usual")]
    pub io_priority: Option<IoPriority>,
    /// Whether the buffers are in large pages.
    #[serde(default, skip_serializing_if = "super::is_usual")]
    pub large_pages: bool,
}

impl Workplace {
    /// The CPU of the worker with this number in its stream.
    pub fn cpu(&self, worker: u32) -> Option<u32> {
        let place = (worker as usize).checked_rem(self.cpus.len())?;
        Some(self.cpus[place])
    }
}

/// The priority of I/Os, for schedulers that look at it. Levels go from 0, the first, to 7.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum IoPriority {
    /// Before all others.
    RealTime(u8),
    /// Beside all others, as usual: level 4 is what programs have.
    BestEffort(u8),
    /// When nobody else has anything to do.
    Idle,
}

impl IoPriority {
    /// The last level.
    pub const LAST: u8 = 7;
}

impl fmt::Display for IoPriority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::RealTime(level) => write!(f, "realtime:{level}"),
            Self::BestEffort(level) => write!(f, "best-effort:{level}"),
            Self::Idle => f.write_str("idle"),
        }
    }
}

/// Reads "realtime:0", "best-effort:7" and "idle", as it is shown.
impl FromStr for IoPriority {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let level = |text: &str| text.parse::<u8>().ok().filter(|level| *level <= Self::LAST);
        let found = match text.trim().split_once(':') {
            Some(("realtime", typed)) => level(typed).map(Self::RealTime),
            Some(("best-effort", typed)) => level(typed).map(Self::BestEffort),
            None if text.trim() == "idle" => Some(Self::Idle),
            _ => None,
        };
        found.ok_or_else(|| {
            format!(
                "'{text}' is no priority: write realtime:0 to realtime:7, best-effort:0 to \
                 best-effort:7, or idle"
            )
        })
    }
}
