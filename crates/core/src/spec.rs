//! What to measure, resolved: after this there is no option that means "default".

use crate::units::{Bytes, Rate, Span};

/// All parameters of one measurement.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// What people call this point, such as "random read 4 KiB, queue depth 32".
    pub name: String,
    /// The workloads that run together, at least one.
    pub streams: Vec<Stream>,
    /// Load before the window, which is not recorded.
    pub warm_up: Span,
    /// The time that is recorded.
    pub window: Span,
    /// The slices of the series, from 100 ms up. The window is a whole number of them.
    pub interval: Span,
    /// Repeats every offset, direction and arrival of the point.
    pub seed: u64,
}

/// One workload with its own pattern, mix and pacing.
#[derive(Clone, Debug, PartialEq)]
pub struct Stream {
    /// What people call this stream.
    pub name: String,
    /// Where it reads and writes, at least one region; each names its target.
    pub regions: Vec<Region>,
    /// How offsets follow each other.
    pub pattern: Pattern,
    /// Bytes moved by one I/O.
    pub block_size: Bytes,
    /// Share of reads, from 0 to 1.
    pub read_share: f64,
    /// What sets the pace.
    pub pacing: Pacing,
    /// How many threads issue the load.
    pub workers: Workers,
}

/// The range of a target that is addressed. Offset and length are multiples of the block size's
/// alignment; the length is at least one block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Region {
    /// The target's place in the list of targets of the run.
    pub target: u32,
    /// Where the region starts.
    pub offset: Bytes,
    /// How long it is.
    pub length: Bytes,
}

/// How offsets follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// Block after block, from a start that is separate for each worker, around the region.
    Sequential,
    /// Uniform over the region's blocks, with replacement.
    Random,
}

/// What sets the pace.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pacing {
    /// A new I/O starts when an old one completes: the target sets the pace.
    Closed {
        /// The most I/Os in flight for the stream, all its workers together.
        queue_depth: u32,
    },
    /// I/Os start on a schedule that does not look at completions: the load sets the pace.
    Open {
        /// I/Os per second that should start, all workers together.
        offered_load: Rate,
        /// How the intended starts follow each other.
        arrivals: Arrivals,
        /// The most I/Os in flight for the stream; more that fall due wait, and their wait counts.
        queue_depth_max: u32,
        /// Whether its workers have real-time priority, so that no other program keeps them from
        /// starting what is due.
        realtime: bool,
    },
}

impl Pacing {
    /// The most I/Os that can be in flight.
    pub fn queue_depth(&self) -> u32 {
        match *self {
            Self::Closed { queue_depth } => queue_depth,
            Self::Open { queue_depth_max, .. } => queue_depth_max,
        }
    }

    /// Whether a schedule starts the I/Os.
    pub fn is_open(&self) -> bool {
        matches!(self, Self::Open { .. })
    }
}

/// How intended starts follow each other in an open loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrivals {
    /// At equal distances.
    Uniform,
    /// Independent of each other: exponential distances.
    Poisson,
}

/// How many threads issue a stream's load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Workers {
    /// So many for each region, each serving that one alone.
    PerTarget(u32),
    /// So many in all, each serving every region in turn.
    Total(u32),
}

/// How a target's data reaches it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// Whether the page cache is in between.
    pub cache: Cache,
    /// Whether a write completes only when the target says that it is durable (O_DSYNC).
    pub write_through: bool,
    /// What io_uring is asked for beyond its habits.
    pub ring: RingMode,
}

/// What io_uring is asked for beyond its habits. No other backend can do any of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RingMode {
    /// Whether completions are looked for in the device's own queue rather than announced by its
    /// interrupt (IOPOLL).
    pub polled: bool,
    /// Whether a thread of the kernel takes what is submitted (SQPOLL), and where it runs.
    pub submission_thread: Option<SubmissionThread>,
}

impl RingMode {
    /// Nothing beyond its habits.
    pub const USUAL: Self = Self { polled: false, submission_thread: None };
}

/// A kernel thread, one for each worker, that watches the submission queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SubmissionThread {
    /// The CPU that it is bound to; any if none.
    pub cpu: Option<u32>,
}

/// Whether the page cache is between the load and the target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cache {
    /// It is not (O_DIRECT).
    Direct,
    /// It is.
    Buffered,
}

/// What carries I/Os to a real target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
