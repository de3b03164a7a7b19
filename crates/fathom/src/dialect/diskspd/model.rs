//! The content of a DiskSpd command line or XML profile, in DiskSpd's own terms and complete: every
//! default is filled in, and there are no contradictions.

/// All settings of one invocation of DiskSpd.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Profile {
    /// I/Os of a thread for each dot of progress; 0: no dots.
    pub progress: u32,
    /// DiskSpd's bit mask of experiments (`-:`); 0: none.
    pub experiment_flags: u32,
    /// The format of the result.
    pub result_format: ResultFormat,
    /// `-v`.
    pub verbose: bool,
    /// `-vs`: statistics of the threads' waits.
    pub verbose_stats: bool,
    /// The files that exist before the first time span.
    pub precreate: Precreate,
    /// The switches of [`ETW`], if event tracing is on.
    pub etw: Option<[bool; ETW.len()]>,
    /// One after the other; at least one.
    pub time_spans: Vec<TimeSpan>,
}

/// The format of the result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ResultFormat {
    /// `-Rtext`.
    #[default]
    Text,
    /// `-Rxml`.
    Xml,
}

/// The files that are created before the first time span rather than at the start of their own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Precreate {
    /// None.
    #[default]
    None,
    /// All, with the largest size that a time span gives them.
    UseMaxSize,
    /// Those that have the same size in every time span.
    ConstantSizes,
    /// The same, ignoring time spans without a size.
    ConstantOrZeroSizes,
}

/// The switches of event tracing: the element's name in a profile, and the option.
pub const ETW: [(&str, &str); 12] = [
    ("Process", "PROCESS"),
    ("Thread", "THREAD"),
    ("ImageLoad", "IMAGE_LOAD"),
    ("DiskIO", "DISK_IO"),
    ("MemoryPageFaults", "MEMORY_PAGE_FAULTS"),
    ("MemoryHardFaults", "MEMORY_HARD_FAULTS"),
    ("Network", "NETWORK"),
    ("Registry", "REGISTRY"),
    ("UsePagedMemory", "p"),
    ("UsePerfTimer", "q"),
    ("UseSystemTimer", "s"),
    ("UseCyclesCounter", "c"),
];

/// One measurement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimeSpan {
    /// `-x`: completion routines rather than completion ports.
    pub completion_routines: bool,
    /// `-L`: the service times are measured.
    pub service_times: bool,
    /// `-D`: the IOPS of every interval are kept.
    pub iops_deviation: bool,
    /// The length of such an interval, in milliseconds; at least 1.
    pub io_bucket_ms: u32,
    /// The measured time, in seconds; at least 1.
    pub duration_s: u32,
    /// Seconds of load before it.
    pub warm_up_s: u32,
    /// Seconds of load after it.
    pub cool_down_s: u32,
    /// The threads.
    pub threads: Threads,
    /// The CPUs of the threads.
    pub affinity: Affinity,
    /// Thread i draws from seed + i.
    pub seed: u32,
    /// `-Zr`: the payload is drawn anew for every I/O, unless the target says otherwise.
    pub random_write_data: bool,
    /// At least one.
    pub targets: Vec<Target>,
}

/// The threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Threads {
    /// `-t`: each target has separate threads.
    PerTarget,
    /// `-F`: each thread does I/Os on all targets, as many on each as its `-o` says.
    Total(u32),
    /// `-F` and `-O`: each thread keeps a fixed number in flight, and draws the target of each I/O
    /// by the targets' weights.
    Pool {
        /// In total.
        threads: u32,
        /// I/Os in flight of each.
        outstanding: u32,
    },
}

impl Threads {
    /// Their number, if it does not depend on the targets.
    pub fn total(self) -> Option<u32> {
        match self {
            Self::PerTarget => None,
            Self::Total(threads) | Self::Pool { threads, .. } => Some(threads),
        }
    }
}

/// The CPUs of the threads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Affinity {
    /// On one CPU after the other, from the lowest.
    RoundRobin,
    /// The system chooses.
    Off,
    /// On these, one after the other.
    Explicit(Vec<Cpu>),
}

/// One of Windows' CPUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cpu {
    /// Its processor group.
    pub group: u16,
    /// Its number in the group.
    pub number: u8,
}

/// A target and its I/Os.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// A file, `#1` for a disk, `X:` for a volume, `*1` for a placeholder for a target on the
    /// command line.
    pub path: String,
    /// Bytes of an I/O, from 1 to 4 GiB - 2.
    pub block_size: u32,
    /// The offset in bytes from which I/Os are done.
    pub base: u64,
    /// The offset in bytes at which the last I/O ends at the latest; above `base`.
    pub max_offset: Option<u64>,
    /// The file is created anew with this many bytes.
    pub create_size: Option<u64>,
    /// The hint to the system when it is opened.
    pub hints: Hints,
    /// The buffers are in large pages.
    pub large_pages: bool,
    /// The system's cache.
    pub cache: Cache,
    /// A write is durable when it completes.
    pub write_through: bool,
    /// Whether I/Os are done by copying from and to the mapped file.
    pub mapping: Mapping,
    /// The payload.
    pub payload: Payload,
    /// The place of I/Os.
    pub access: Access,
    /// Percent of the I/Os that are writes, a coin for each; 0 to 100.
    pub write_percent: u32,
    /// I/Os in flight of each thread; 1: synchronous.
    pub outstanding: u32,
    /// Its number of threads, with [`Threads::PerTarget`]; at least 1.
    pub threads: u32,
    /// Pauses between bursts of I/Os.
    pub burst: Option<Burst>,
    /// A limit for each thread.
    pub throttle: Throttle,
    /// For the system's scheduler.
    pub priority: Priority,
    /// The share of this target among the weights of all, with [`Threads::Pool`].
    pub weight: u32,
    /// The threads that use this target, with [`Threads::Pool`]; none: all of them.
    pub thread_targets: Vec<ThreadTarget>,
}

/// The hint to the system when a target is opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hints {
    /// `-fs`.
    pub sequential: bool,
    /// `-fr`.
    pub random: bool,
    /// `-ft`: it need not reach the disk.
    pub temporary: bool,
}

/// The system's cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Cache {
    /// Used.
    #[default]
    Cached,
    /// `-Sr`: not on this side of a remote file system.
    LocalOff,
    /// `-Su`: bypassed.
    Off,
}

/// Whether I/Os are done by copying from and to the mapped file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mapping {
    /// By system calls.
    #[default]
    Off,
    /// `-Sm`: by copying.
    On(Flush),
}

/// How a write to a mapped file becomes durable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Flush {
    /// Nothing.
    #[default]
    None,
    /// `-Nv`: FlushViewOfFile.
    ViewOfFile,
    /// `-Nn`: RtlFlushNonVolatileMemory.
    NonVolatileMemory,
    /// `-Ni`: the same without waiting for its end.
    NonVolatileMemoryNoDrain,
}

/// The payload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Payload {
    /// The bytes 0 to 255 again and again, or what `-Zr` says.
    Pattern,
    /// Zeros.
    Zero,
    /// From random offsets of a buffer.
    Pool {
        /// Of the buffer, in bytes; at least a block.
        size: u64,
        /// The content of the buffer, repeated; random data if there is none.
        file: Option<String>,
    },
}

/// The place of I/Os.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Access {
    /// One after the other.
    Sequential {
        /// From the start of one to the start of the next, in bytes; at least 1.
        stride: u64,
        /// The order of I/Os.
        order: Order,
        /// Thread k starts at k times this many bytes; 0: all at the same place.
        thread_stride: u64,
    },
    /// Drawn.
    Random {
        /// Percent of the I/Os whose offset is drawn, a coin for each; 1 to 100. The others follow
        /// the one before them.
        percent: u32,
        /// Offsets are multiples of it, in bytes; at least 1.
        alignment: u64,
        /// Uniform, if there is none.
        distribution: Option<Distribution>,
    },
}

/// The order of sequential I/Os.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Each thread has its own pointer.
    PerThread,
    /// `-si`: all threads share one.
    Interlocked,
    /// `-p`: every slot of the queue has its own.
    Parallel,
}

/// The shares of random I/Os for the parts of a target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Distribution {
    /// The unit of the spans.
    pub unit: SpanUnit,
    /// From the beginning of the target; the shares make 100.
    pub ranges: Vec<Range>,
}

/// The unit of the parts of a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpanUnit {
    /// Percent of the target; they make 100.
    Percent,
    /// Bytes, each at least a block.
    Bytes,
}

/// A part of a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// Percent of the random I/Os; 0: a hole.
    pub io: u32,
    /// Its length. 0 bytes, for the last: to the end of the target.
    pub span: u64,
}

/// Pauses between bursts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Burst {
    /// I/Os of a burst, for each thread; at least 1.
    pub ios: u32,
    /// Milliseconds between two of them; at least 1.
    pub think_time_ms: u32,
}

/// A limit for each thread on this target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Throttle {
    /// None.
    Off,
    /// Bytes in a millisecond; at least 1.
    BytesPerMs(u64),
    /// I/Os in a second; at least 1.
    Iops(u64),
}

/// For the system's scheduler.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Priority {
    /// 1.
    VeryLow,
    /// 2.
    Low,
    /// 3.
    #[default]
    Normal,
}

impl Priority {
    /// Its number.
    pub fn number(self) -> u32 {
        match self {
            Self::VeryLow => 1,
            Self::Low => 2,
            Self::Normal => 3,
        }
    }

    /// The priority with a number.
    pub fn from_number(number: u64) -> Option<Self> {
        [Self::VeryLow, Self::Low, Self::Normal]
            .into_iter()
            .find(|priority| u64::from(priority.number()) == number)
    }
}

/// A thread that uses a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreadTarget {
    /// Its number, from 0.
    pub thread: u32,
    /// The weight of the target for this thread, if it differs.
    pub weight: Option<u32>,
}
