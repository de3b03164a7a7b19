//! How a stream's data reached its targets, as it stands in the document and in words.

use std::fmt;

use fathom_core::spec;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How a stream's data reached its targets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Access {
    /// Whether the page cache was in between.
    pub cache: Cache,
    /// Whether I/Os were copies from and to the mapped target.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub mapped: bool,
    /// Whether a write completed only when the target said that it was durable (O_DSYNC; msync where
    /// it was mapped).
    pub write_through: bool,
    /// How that was asked for, where it was; with `write_through` alone, when the target was opened
    /// (O_DSYNC).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sync: Option<SyncMode>,
    /// What the kernel was told of how the page cache would be used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<Hint>,
    /// Whether what was read or written left the page cache at once (RWF_DONTCACHE).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub uncached: bool,
    /// Whether each write was atomic (RWF_ATOMIC).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub atomic: bool,
    /// Whether completions were looked for in the device's own queue (IOPOLL).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub polled: bool,
    /// The kernel's threads that took what was submitted (SQPOLL), one for each worker; none if the
    /// workers submitted by themselves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub submission_thread: Option<SubmissionThread>,
}

/// A kernel thread that watches a submission queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SubmissionThread {
    /// The CPU that it was bound to; any if none.
    pub cpu: Option<u32>,
}

/// When a write was durable, and who said so.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SyncMode {
    /// Its data, when it completed: the target was opened so (O_DSYNC).
    Dsync,
    /// All that belongs to the file, when it completed (O_SYNC).
    Sync,
    /// As `dsync`, said with each write (RWF_DSYNC).
    RwfDsync,
    /// As `sync`, said with each write (RWF_SYNC).
    RwfSync,
}

impl SyncMode {
    /// The name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Dsync => "dsync",
            Self::Sync => "sync",
            Self::RwfDsync => "rwf_dsync",
            Self::RwfSync => "rwf_sync",
        }
    }

    fn of(mode: spec::SyncMode) -> Option<Self> {
        match mode {
            spec::SyncMode::None => None,
            spec::SyncMode::Dsync => Some(Self::Dsync),
            spec::SyncMode::Sync => Some(Self::Sync),
            spec::SyncMode::RwfDsync => Some(Self::RwfDsync),
            spec::SyncMode::RwfSync => Some(Self::RwfSync),
        }
    }
}

/// What the kernel was told of how the page cache would be used (posix_fadvise).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Hint {
    /// As for any file.
    Normal,
    /// To read ahead twice as far.
    Sequential,
    /// To read nothing ahead.
    Random,
    /// That what is touched once does not count as used.
    NoReuse,
    /// To drop what it held of the target before the run.
    DontNeed,
}

impl Hint {
    fn of(hint: spec::Hint) -> Self {
        match hint {
            spec::Hint::Normal => Self::Normal,
            spec::Hint::Sequential => Self::Sequential,
            spec::Hint::Random => Self::Random,
            spec::Hint::NoReuse => Self::NoReuse,
            spec::Hint::DontNeed => Self::DontNeed,
        }
    }

    /// As it is typed.
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

/// Whether the page cache was between the load and the target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Cache {
    /// It was not (O_DIRECT).
    Direct,
    /// It was.
    Buffered,
}

impl From<spec::Access> for Access {
    fn from(access: spec::Access) -> Self {
        Self {
            cache: match access.cache {
                spec::Cache::Direct => Cache::Direct,
                spec::Cache::Buffered => Cache::Buffered,
            },
            mapped: access.mapped,
            write_through: access.is_durable(),
            sync: SyncMode::of(access.sync),
            hint: access.hint.map(Hint::of),
            uncached: access.uncached,
            atomic: access.atomic,
            polled: access.ring.polled,
            submission_thread: access
                .ring
                .submission_thread
                .map(|thread| SubmissionThread { cpu: thread.cpu }),
        }
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
            _ if self.mapped && self.write_through => ", each write flushed (msync)",
            _ if self.mapped => "",
            None | Some(SyncMode::Dsync) if self.write_through => ", write-through",
            None | Some(SyncMode::Dsync) => "",
            Some(SyncMode::Sync) => ", write-through with metadata (O_SYNC)",
            Some(SyncMode::RwfDsync) => ", write-through of each write (RWF_DSYNC)",
            Some(SyncMode::RwfSync) => ", write-through of each write with metadata (RWF_SYNC)",
        };
        let hint = self.hint.map_or_else(String::new, |hint| format!(", fadvise {}", hint.name()));
        let uncached =
            if self.uncached { ", leaving the cache at once (RWF_DONTCACHE)" } else { "" };
        let atomic = if self.atomic { ", each write atomic (RWF_ATOMIC)" } else { "" };
        let polled = if self.polled { ", polled" } else { "" };
        let thread = match self.submission_thread {
            None => String::new(),
            Some(SubmissionThread { cpu: None }) => ", submitted by a kernel thread".to_owned(),
            Some(SubmissionThread { cpu: Some(cpu) }) => {
                format!(", submitted by a kernel thread on CPU {cpu}")
            }
        };
        write!(f, "{cache}{hint}{uncached}{through}{atomic}{polled}{thread}")
    }
}
