//! The options that several commands have. One flag, one definition: its help text here is its
//! documentation.

use std::path::PathBuf;

use clap::{Args as ClapArgs, ValueEnum};
use fathom_core::spec::{
    self, Hint, IoPriority, Limit, Pattern, Rests, SubmissionThread, SyncMode, Workers,
};
use fathom_core::{Bytes, Rate, Span, typed_path};

use super::parts::{self, PartArg};
use super::patterns;
use super::rates::{self, Offered};
use super::values::{self, Backend, Cpus, Depth, Sizes, Weights};

/// What is to be measured, on what.
#[derive(Clone, Debug, ClapArgs)]
pub struct Request {
    /// Files, folders (all files in them), block devices or NVMe generic devices (/dev/ng0n1), or
    /// one simulated device such as sim:ssd (`fathom run sim:help`). Before them may stand a
    /// workload: a file that ends in .toml, or a name that `fathom workloads` lists
    #[arg(value_name = "[WORKLOAD] TARGET")]
    pub targets: Vec<PathBuf>,
    /// The workload, a file or a name, where it does not stand before the targets
    #[arg(long, value_name = "WORKLOAD")]
    pub workload: Option<String>,
    /// Gives a variable of the workload another value: depth=32
    #[arg(long, value_name = "NAME=VALUE")]
    pub set: Vec<String>,
    /// Of a folder take the files of what is mounted below it, too
    #[arg(long)]
    pub across_mounts: bool,
    /// The load.
    #[command(flatten)]
    pub load: LoadArgs,
    /// How the targets are accessed.
    #[command(flatten)]
    pub access: AccessArgs,
    /// What may be written to.
    #[command(flatten)]
    pub consent: Consent,
    /// The options of the load and the access that were typed, with their values as typed.
    #[arg(skip)]
    pub typed: Vec<Typed>,
}

/// An option that was typed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Typed {
    /// Its name without the hyphens.
    pub name: String,
    /// Its value; none if it has none.
    pub value: Option<String>,
}

impl Typed {
    /// It as one word of a command line.
    pub fn word(&self) -> String {
        match &self.value {
            Some(value) => format!("--{}={value}", self.name),
            None => format!("--{}", self.name),
        }
    }
}

/// The load that is applied.
#[derive(Clone, Debug, ClapArgs)]
#[command(next_help_heading = "Load")]
pub struct LoadArgs {
    /// Bytes moved by one I/O: 4k; or several sizes by weight, such as 4k/60,64k/40
    #[arg(short, long, value_name = "SIZE", allow_hyphen_values = true,
          default_value = "4k", value_parser = values::sizes)]
    pub block_size: Sizes,
    /// The same for writes alone [default: as for reads]
    #[arg(long, value_name = "SIZE", allow_hyphen_values = true, value_parser = values::sizes)]
    pub write_block_size: Option<Sizes>,
    /// Share of reads: 70% or 0.7
    #[arg(long, value_name = "SHARE", allow_hyphen_values = true,
          default_value = "100%", value_parser = values::share)]
    pub read_share: f64,
    /// Share of trims of all I/Os: 5%, or 100% for trims alone; the read share is of the others. A trim punches a hole into a
    /// file, or discards a range of a block device: what it holds is lost
    #[arg(long, value_name = "SHARE", allow_hyphen_values = true,
          default_value = "0%", value_parser = values::share)]
    pub trim_share: f64,
    /// How offsets follow each other: random, sequential, backward, strided:64k, interlocked (the
    /// workers share one pointer), mixed:30% (30 % random, the rest sequential), zipf:1.1,
    /// pareto:0.2, normal:10%,50%, hot:90%/10%,0%/40% (I/Os/target) or hot:90%/10g
    #[arg(long, value_name = "PATTERN", allow_hyphen_values = true,
          default_value = "random", value_parser = patterns::pattern)]
    pub pattern: Pattern,
    /// Random offsets are multiples of this [default: the smallest block size]
    #[arg(long, value_name = "SIZE", allow_hyphen_values = true, value_parser = values::size)]
    pub align: Option<Bytes>,
    /// With --pattern random: no block again before all had their turn, then in another order
    #[arg(long)]
    pub no_repeat: bool,
    /// I/Os that are not all alike: a share and what its I/Os are, once for each part:
    /// --part '80% block-size=8k read-share=67%' --part '20% block-size=64k pattern=sequential'. The
    /// part of each I/O is drawn by chance; what it does not say is as for the others [also:
    /// write-block-size, align]
    #[arg(long, value_name = "PART", value_parser = parts::part)]
    pub part: Vec<PartArg>,
    /// Each worker has a part of every target to itself
    #[arg(long)]
    pub zones: bool,
    /// Sequential workers start at this distance from each other [default: spread evenly]
    #[arg(long, value_name = "SIZE", allow_hyphen_values = true, value_parser = values::size)]
    pub start_distance: Option<Bytes>,
    /// What is written.
    #[command(flatten)]
    pub payload: PayloadArgs,
    /// When what is written is flushed.
    #[command(flatten)]
    pub flush: FlushArgs,
    /// The most I/Os in flight, all workers and targets together: 32; or 8/worker, 8/target,
    /// 8/disk (for each disk that an array is seen to be spread over)
    /// [default: 32, or one for each worker if there are more; with --rate 1024, or as many as fit
    /// into 256 MiB of memory]
    #[arg(short, long, value_name = "DEPTH", allow_hyphen_values = true,
          value_parser = values::depth)]
    pub queue_depth: Option<Depth>,
    /// Threads for each target: 4 (or 4/target); or 4/total, each of which serves every target
    #[arg(short, long, value_name = "WORKERS", allow_hyphen_values = true,
          default_value = "1", value_parser = values::workers)]
    pub workers: Workers,
    /// Of workers that serve several targets each I/O goes to one by chance, by these weights, one for
    /// each target in their order: 70,30 [default: the targets take turns]
    #[arg(long, value_name = "WEIGHTS", allow_hyphen_values = true, value_parser = values::weights)]
    pub weights: Option<Weights>,
    /// Open loop: start I/Os at this rate, whatever completes: 10k (I/Os per second) or 100MiB/s,
    /// all workers and targets together; or 10k/worker, 10k/target. Or a course of steps and ramps,
    /// which begins with the window: '1k for 10s, to 50k over 60s, 50k'. Or a share of such a load,
    /// which several streams make up: '30% of 10k'
    #[arg(long, value_name = "RATE", allow_hyphen_values = true, value_parser = rates::offered)]
    pub rate: Option<Offered>,
    /// Closed loop: each of the I/Os in flight rests between a completion and its next start, as a
    /// user thinks: 1ms; or exponential:1ms, by chance with this mean
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = values::think_time)]
    pub think_time: Option<Rests>,
    /// Closed loop: each worker starts so many I/Os, has all of them complete, and rests: 16/100ms; or
    /// rests from the last start on: 16/start:100ms. With --rate and --arrivals uniform the latter
    /// has what falls due in a rest start when that is over
    #[arg(long, value_name = "IOS/REST", allow_hyphen_values = true, value_parser = values::bursts)]
    pub burst: Option<Rests>,
    /// How the starts of an open loop follow each other [default: poisson]
    #[arg(long, value_enum)]
    pub arrivals: Option<ArrivalsArg>,
    /// Give the workers of an open loop real-time priority (SCHED_FIFO), so that no other program
    /// makes them late
    #[arg(long)]
    pub realtime: bool,
    /// Tie each worker to a CPU: 0-3,8 (these, in turn), node:0 (those of a NUMA node), nodes (of one
    /// node after the other), cores (one of each core first, then their siblings), device (those of
    /// the NUMA node that the device is attached to) [default: any]
    #[arg(long, value_name = "CPUS", value_parser = values::cpus)]
    pub cpus: Option<Cpus>,
    /// The priority of the I/Os, for schedulers that look at it: realtime:0 to realtime:7,
    /// best-effort:0 to best-effort:7 (0 is the first), or idle [default: that of the process]
    #[arg(long, value_name = "CLASS", value_parser = values::io_priority)]
    pub io_priority: Option<IoPriority>,
    /// Put the buffers into large pages, of which the host has to have reserved enough
    /// (vm.nr_hugepages)
    #[arg(long)]
    pub large_pages: bool,
    /// The stream is done after so much: 10g, or 1m ios; the run ends when all that can be are
    #[arg(long, value_name = "AMOUNT", allow_hyphen_values = true, value_parser = values::stop_after)]
    pub stop_after: Option<Limit>,
    /// The stream is done when it has gone over its regions so often
    #[arg(long, value_name = "NUMBER", allow_hyphen_values = true,
          value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub passes: Option<u32>,
    /// Load before the window, which is not recorded [default: 3s; none with --stop-after or
    /// --passes]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub warm_up: Option<Span>,
    /// The window: how long is measured [default: 30s; where --rate has stages or a stream --start or
    /// --end, until they are over; with --stop-after or --passes until that is done, at most 24h]
    #[arg(short, long, value_name = "TIME", allow_hyphen_values = true)]
    pub duration: Option<Span>,
    /// Load after the window, which is not recorded: streams go on as they were, but for those that
    /// have done what --stop-after or --passes says [default: none]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub cool_down: Option<Span>,
    /// The load begins so long after the window does, and so does a course [default: with the
    /// warm-up]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub start: Option<Span>,
    /// The load ends so long after the window began [default: with the window, or the cool-down]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub end: Option<Span>,
    /// Slices of the series over time, from 100ms [default: 1s from a duration of one minute up,
    /// else 100ms]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub interval: Option<Span>,
    /// Repeats the offsets, directions and arrivals of an earlier run [default: a new one each
    /// time]
    #[arg(long, value_name = "NUMBER", allow_hyphen_values = true, value_parser = values::seed)]
    pub seed: Option<u64>,
    /// What all targets together are rated at, I/Os per second: 80k; who is faster is doubted
    #[arg(long, value_name = "RATE", allow_hyphen_values = true, value_parser = rates::rated_iops)]
    pub rated_iops: Option<Rate>,
    /// The same in bytes: 800MB/s
    #[arg(long, value_name = "BANDWIDTH", allow_hyphen_values = true,
          value_parser = rates::rated_bandwidth)]
    pub rated_bandwidth: Option<Bytes>,
}

/// When what is written is flushed.
#[derive(Clone, Debug, Default, ClapArgs)]
pub struct FlushArgs {
    /// After so many writes of a worker to a target, once they have completed, flush all that
    /// belongs to the target (fsync)
    #[arg(long, value_name = "WRITES", allow_hyphen_values = true,
          value_parser = clap::value_parser!(u32).range(1..))]
    pub fsync: Option<u32>,
    /// The same of its data alone (fdatasync)
    #[arg(long, value_name = "WRITES", allow_hyphen_values = true,
          value_parser = clap::value_parser!(u32).range(1..))]
    pub fdatasync: Option<u32>,
    /// The worker goes on once a flush has started, instead of when it has completed
    #[arg(long)]
    pub no_barrier: bool,
}

/// What is written.
#[derive(Clone, Debug, Default, ClapArgs)]
pub struct PayloadArgs {
    /// What is written: random (no two blocks of 4 KiB alike), zeros, ramp (the bytes 00 to FF over
    /// and over), hex:DEADBEEF (these bytes over and over), pool:16m (each I/O from a random place
    /// in so much random data), pool:16m,FILE (the same with a file's content) [default: random]
    #[arg(long, value_name = "CONTENT", value_parser = values::payload)]
    pub payload: Option<spec::Payload>,
    /// The share of the random data that a compressor saves: 50% [default: 0%]
    #[arg(long, value_name = "SHARE", allow_hyphen_values = true, value_parser = values::share)]
    pub compressible: Option<f64>,
    /// The share of blocks of 4 KiB that equal one written before: 30% [default: 0%]
    #[arg(long, value_name = "SHARE", allow_hyphen_values = true, value_parser = values::share)]
    pub dedup: Option<f64>,
}

/// How the targets are accessed.
#[derive(Clone, Debug, ClapArgs)]
#[command(next_help_heading = "Access")]
pub struct AccessArgs {
    /// Where the region that is addressed starts, in every target
    #[arg(long, value_name = "SIZE", allow_hyphen_values = true,
          default_value = "0", value_parser = values::size)]
    pub offset: Bytes,
    /// How long it is, in every target [default: to the end]
    #[arg(long, value_name = "SIZE", allow_hyphen_values = true, value_parser = values::size)]
    pub size: Option<Bytes>,
    /// Go through the page cache instead of direct I/O
    #[arg(long)]
    pub buffered: bool,
    /// Map the targets into memory, through the page cache: I/Os are copies from and to there instead
    /// of system calls, by the sync backend; a durable write (--sync dsync) is flushed by msync
    #[arg(long)]
    pub mmap: bool,
    /// A write completes only when the target says that it is durable: the same as --sync dsync
    #[arg(long)]
    pub write_through: bool,
    /// When a write is durable: none (some time later), dsync (before it completes, O_DSYNC), sync
    /// (with all that belongs to the file, O_SYNC); rwf-dsync and rwf-sync say the same with each
    /// write instead of when the target is opened [default: none]
    #[arg(long, value_name = "MODE", value_parser = values::sync_mode)]
    pub sync: Option<SyncMode>,
    /// With --buffered or --mmap, what the kernel is told of how the page cache will be used: normal,
    /// sequential, random, noreuse, or dontneed (what it holds of the target is dropped before the
    /// run)
    #[arg(long, value_name = "HINT", value_parser = values::hint)]
    pub fadvise: Option<Hint>,
    /// With --buffered, what was read or written leaves the page cache at once (RWF_DONTCACHE,
    /// Linux 6.14)
    #[arg(long)]
    pub dontcache: bool,
    /// What carries the I/Os: auto, uring, aio, sync
    #[arg(long, value_name = "NAME", default_value = "auto", value_parser = values::backend)]
    pub backend: Backend,
    /// io_uring looks for completions in the device's queue instead of waiting for its interrupt
    /// (IOPOLL); the device's driver needs poll queues
    #[arg(long)]
    pub polled: bool,
    /// A kernel thread for each worker takes what io_uring is given (SQPOLL), on any CPU or on this
    /// one; it keeps a CPU busy by itself
    #[arg(long, value_name = "CPU", num_args = 0..=1, require_equals = true,
          default_missing_value = "any", value_parser = values::submission_thread)]
    pub sqpoll: Option<SubmissionThread>,
}

/// How the starts of an open loop follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ArrivalsArg {
    /// At equal distances
    Uniform,
    /// Independent of each other
    Poisson,
}

impl From<ArrivalsArg> for spec::Arrivals {
    fn from(typed: ArrivalsArg) -> Self {
        match typed {
            ArrivalsArg::Uniform => Self::Uniform,
            ArrivalsArg::Poisson => Self::Poisson,
        }
    }
}

/// What may be written to.
#[derive(Clone, Debug, Default, ClapArgs)]
#[command(next_help_heading = "Consent")]
pub struct Consent {
    /// Allow writes to files that exist: what they hold is lost
    #[arg(long)]
    pub overwrite: bool,
    /// Allow writes to this device, whatever it holds; repeats its name. A folder's name stands for
    /// all files in it
    #[arg(long, value_name = "NAME")]
    pub destroy: Vec<String>,
    /// Allow writes to this device or file although something uses it: it is mounted, swap, part of an
    /// array or another device, or claimed by a program. What uses it may crash
    #[arg(long, value_name = "NAME")]
    pub destroy_in_use: Vec<String>,
}

impl Consent {
    /// The first of its options that was typed.
    pub fn first(&self) -> Option<&'static str> {
        let typed = [
            ("--overwrite", self.overwrite),
            ("--destroy", !self.destroy.is_empty()),
            ("--destroy-in-use", !self.destroy_in_use.is_empty()),
        ];
        typed.into_iter().find(|(_, typed)| *typed).map(|(option, _)| option)
    }

    /// The targets that are named, each with the option that names it.
    pub fn named(&self) -> impl Iterator<Item = (&'static str, &String)> {
        let destroy = self.destroy.iter().map(|name| ("--destroy", name));
        destroy.chain(self.destroy_in_use.iter().map(|name| ("--destroy-in-use", name)))
    }

    /// The options as they are typed, each with a space before it.
    pub fn in_words(&self) -> String {
        let overwrite = if self.overwrite { " --overwrite" } else { "" };
        let named = self.named().map(|(option, name)| format!(" {option} {}", typed_path(name)));
        format!("{overwrite}{}", named.collect::<String>())
    }
}

/// How an experiment begins.
#[derive(Clone, Debug, Default, ClapArgs)]
#[command(next_help_heading = "Start")]
pub struct StartArgs {
    /// Begin without asking
    #[arg(long)]
    pub yes: bool,
    /// Show what it would do: nothing starts, and nothing is written
    #[arg(long, conflicts_with = "yes")]
    pub plan: bool,
}

/// The reports that are written as files.
#[derive(Clone, Debug, Default, ClapArgs)]
#[command(next_help_heading = "Results")]
pub struct Reports {
    /// Write a self-contained HTML report
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Write the report as Markdown, for issues and wikis
    #[arg(long, value_name = "FILE")]
    pub markdown: Option<PathBuf>,
    /// Write the figures as CSV
    #[arg(long, value_name = "FILE")]
    pub csv: Option<PathBuf>,
    /// Write the series over time as CSV: a row for each trial, stream, interval and direction
    #[arg(long, value_name = "FILE")]
    pub csv_series: Option<PathBuf>,
}

/// Where the results go.
#[derive(Clone, Debug, Default, ClapArgs)]
#[command(next_help_heading = "Results")]
pub struct Results {
    /// The result file [default: named after the target and the time, in the current folder]
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// The reports beside it.
    #[command(flatten)]
    pub written: Reports,
    /// Write every single I/O as a line of a table (CSV), best on another device than the targets
    #[arg(long, value_name = "FILE")]
    pub trace: Option<PathBuf>,
    /// Print the document (JSON Lines) to stdout and everything else to stderr
    #[arg(long)]
    pub json: bool,
}

/// What options are that nobody typed: each default stands at its option alone.
fn untyped<T: ClapArgs>() -> T {
    let command = T::augment_args(clap::Command::new("fathom").no_binary_name(true));
    let matches = command.try_get_matches_from(std::iter::empty::<&str>());
    let read = matches.and_then(|matches| T::from_arg_matches(&matches));
    read.expect("every option has a default or is optional")
}

impl Default for LoadArgs {
    fn default() -> Self {
        untyped()
    }
}

impl Default for AccessArgs {
    fn default() -> Self {
        untyped()
    }
}
