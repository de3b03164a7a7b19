//! Where a stream's workers run, with which priority their I/Os do, and in which memory.

use std::fmt;

/// What a stream's workers have around them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Workplace {
    /// The CPUs that the workers are tied to, in turn; any if empty.
    pub cpus: Vec<u32>,
    /// The priority of the stream's I/Os; that of the process if none.
    pub io_priority: Option<IoPriority>,
    /// Whether the buffers are in large pages.
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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
