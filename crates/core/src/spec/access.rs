//! How a stream's data reaches its targets: through the page cache or past it, durable at once or
//! later, with which hints to the kernel. What each of these is in flags is the engine's business.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How a stream's data reaches its targets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Access {
    /// Whether the page cache is in between.
    pub cache: Cache,
    /// Whether I/Os are copies from and to the mapped target rather than system calls. The page cache
    /// is in between then, and `dsync` is the only way to be durable: each write is flushed (msync).
    #[serde(default, skip_serializing_if = "super::is_usual")]
    pub mapped: bool,
    /// Whether a write completes only when the target says that it is durable.
    #[serde(default, skip_serializing_if = "super::is_usual")]
    pub sync: SyncMode,
    /// What the kernel is told of how the page cache will be used; nothing if none.
    #[serde(default, skip_serializing_if = "super::is_usual")]
    pub hint: Option<Hint>,
    /// Whether what was read or written leaves the page cache at once (RWF_DONTCACHE).
    #[serde(default, skip_serializing_if = "super::is_usual")]
    pub uncached: bool,
    /// Whether each write is atomic: if power fails, its place holds all of it or nothing of it
    /// (RWF_ATOMIC).
    #[serde(default, skip_serializing_if = "super::is_usual")]
    pub atomic: bool,
    /// What io_uring is asked for beyond its habits.
    #[serde(default, skip_serializing_if = "super::is_usual")]
    pub ring: RingMode,
}

impl Access {
    /// Past the page cache, as the device has it, and io_uring as it is by itself.
    pub const DIRECT: Self = Self {
        cache: Cache::Direct,
        mapped: false,
        sync: SyncMode::None,
        hint: None,
        uncached: false,
        atomic: false,
        ring: RingMode::USUAL,
    };

    /// The same through the page cache.
    pub const BUFFERED: Self = Self { cache: Cache::Buffered, ..Self::DIRECT };

    /// Whether a write completes only when the target says that it is durable.
    pub fn is_durable(&self) -> bool {
        self.sync != SyncMode::None
    }
}

impl fmt::Display for Access {
    /// "direct I/O", "buffered I/O, write-through", "direct I/O, polled", "mapped I/O".
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cache = match self.cache {
            Cache::Direct => "direct I/O",
            Cache::Buffered if self.mapped => "mapped I/O",
            Cache::Buffered => "buffered I/O",
        };
        let through = match self.sync {
            SyncMode::None => "",
            _ if self.mapped => ", each write flushed (msync)",
            SyncMode::Dsync => ", write-through",
            SyncMode::Sync => ", write-through with metadata (O_SYNC)",
            SyncMode::RwfDsync => ", write-through of each write (RWF_DSYNC)",
            SyncMode::RwfSync => ", write-through of each write with metadata (RWF_SYNC)",
        };
        let hint = self.hint.map_or_else(String::new, |hint| format!(", fadvise {}", hint.name()));
        let uncached =
            if self.uncached { ", leaving the cache at once (RWF_DONTCACHE)" } else { "" };
        let atomic = if self.atomic { ", each write atomic (RWF_ATOMIC)" } else { "" };
        let polled = if self.ring.polled { ", polled" } else { "" };
        let thread = match self.ring.submission_thread {
            None => String::new(),
            Some(SubmissionThread { cpu: None }) => ", submitted by a kernel thread".to_owned(),
            Some(SubmissionThread { cpu: Some(cpu) }) => {
                format!(", submitted by a kernel thread on CPU {cpu}")
            }
        };
        write!(f, "{cache}{hint}{uncached}{through}{atomic}{polled}{thread}")
    }
}

/// Whether the page cache is between the load and the target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Cache {
    /// It is not (O_DIRECT).
    Direct,
    /// It is.
    Buffered,
}

/// When a write completes, and who says so.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SyncMode {
    /// When the target has taken it: a cache may still lose it.
    #[default]
    None,
    /// When its data is durable, and what is needed to find it: the target is opened so (O_DSYNC).
    Dsync,
    /// When all that belongs to the file is durable too, such as its times (O_SYNC).
    Sync,
    /// As `dsync`, said with each write (RWF_DSYNC).
    RwfDsync,
    /// As `sync`, said with each write (RWF_SYNC).
    RwfSync,
}

impl SyncMode {
    /// Every mode that can be asked for.
    pub const ALL: [Self; 5] = [Self::None, Self::Dsync, Self::Sync, Self::RwfDsync, Self::RwfSync];

    /// The name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Dsync => "dsync",
            Self::Sync => "sync",
            Self::RwfDsync => "rwf-dsync",
            Self::RwfSync => "rwf-sync",
        }
    }
}

/// What the kernel is told of how the page cache will be used (posix_fadvise), for the whole of each
/// target, when it is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Hint {
    /// As for any file: the kernel reads ahead where it sees a pattern.
    Normal,
    /// It reads ahead twice as far.
    Sequential,
    /// It reads nothing ahead.
    Random,
    /// What is touched once does not count as used.
    NoReuse,
    /// What the cache holds of the target is written back and dropped before the run.
    DontNeed,
}

impl Hint {
    /// Every hint.
    pub const ALL: [Self; 5] =
        [Self::Normal, Self::Sequential, Self::Random, Self::NoReuse, Self::DontNeed];

    /// The name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Normal => "normal",
            Self::Sequential => "sequential",
            Self::Random => "random",
            Self::NoReuse => "noreuse",
            Self::DontNeed => "dontneed",
        }
    }
}

/// What io_uring is asked for beyond its habits. No other backend can do any of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RingMode {
    /// Whether completions are looked for in the device's own queue rather than announced by its
    /// interrupt (IOPOLL).
    pub polled: bool,
    /// Whether a thread of the kernel takes what is submitted (SQPOLL), and where it runs.
    #[serde(default, skip_serializing_if = "super::is_usual")]
    pub submission_thread: Option<SubmissionThread>,
}

impl RingMode {
    /// Nothing beyond its habits.
    pub const USUAL: Self = Self { polled: false, submission_thread: None };
}

/// A kernel thread, one for each worker, that watches the submission queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SubmissionThread {
    /// The CPU that it is bound to; any if none.
    pub cpu: Option<u32>,
}
