//! The options that several commands have. One flag, one definition: its help text here is its
//! documentation.

use std::path::PathBuf;

use clap::{Args as ClapArgs, ValueEnum};
use fathom_core::spec::{
    self, Hint, IoPriority, Limit, Pattern, Rests, SubmissionThread, SyncMode, Workers,
};
use fathom_core::{Bytes, Rate, Span, typed_path};
use fathom_report::document::Threshold;

use super::parts::{self, PartArg};
use super::patterns;
use super::rates::{self, Offered};
use super::thresholds::threshold;
use super::values::{self, Backend, Cpus, Depth, Sizes, Weights};

/// What is to be measured, on what.
#[derive(Clone, Debug, ClapArgs)]
pub struct Request {
    /// Files, folders (all files in them), block devices, NVMe generic devices (/dev/ng0n1), or one
    /// simulated device such as sim:ssd (`fathom run sim:help` lists them). A workload may come
    /// first: a file that ends in .toml, or a name that `fathom workloads` lists
    #[arg(value_name = "[WORKLOAD] TARGET")]
    pub targets: Vec<PathBuf>,
    /// The workload, a file or a name, if it does not come before the targets
    #[arg(long, value_name = "WORKLOAD")]
    pub workload: Option<String>,
    /// Set a variable of the workload: depth=32
    #[arg(long, value_name = "NAME=VALUE")]
    pub set: Vec<String>,
    /// In a folder, include the files on other file systems that are mounted below it
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
    /// All options that were typed, with their values as typed.
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

/// How often a point is measured.
#[derive(Clone, Copy, Debug, ClapArgs)]
pub struct Repeated {
    /// Measure this many times, and show all trials as one result, whose half-widths come from the
    /// scatter of the trials. `fathom compare` needs several trials to decide
    #[arg(long, value_name = "NUMBER", allow_hyphen_values = true, default_value_t = 1,
          hide_default_value = true, value_parser = values::whole::<u32>(1, 1000))]
    pub repeats: u32,
}

/// The load that is applied.
#[derive(Clone, Debug, ClapArgs)]
#[command(next_help_heading = "Load")]
pub struct LoadArgs {
    /// The bytes that one I/O moves: 4k; or several sizes by weight: 4k/60,64k/40
    #[arg(short, long, value_name = "SIZE", allow_hyphen_values = true,
          default_value = "4k", value_parser = values::sizes)]
    pub block_size: Sizes,
    /// The bytes that one write moves, in the same forms as --block-size [default: as for reads]
    #[arg(long, value_name = "SIZE", allow_hyphen_values = true, value_parser = values::sizes)]
    pub write_block_size: Option<Sizes>,
    /// The share of reads: 70% or 0.7
    #[arg(long, value_name = "SHARE", allow_hyphen_values = true,
          default_value = "100%", value_parser = values::share)]
    pub read_share: f64,
    /// The share of trims among all I/Os: 5%, or 100% for trims alone; the read share applies to
    /// the other I/Os. A trim punches a hole into a file or discards a range of a block device,
    /// which destroys its data
    #[arg(long, value_name = "SHARE", allow_hyphen_values = true,
          default_value = "0%", value_parser = values::share)]
    pub trim_share: f64,
    /// The order of the offsets: random, sequential, backward, strided:64k, interlocked (all
    /// workers share one pointer), mixed:30% (30 % random, the rest sequential), zipf:1.1,
    /// pareto:0.2, normal:10%,50%, hot:90%/10%,0%/40% (share of I/Os/share of the target) or
    /// hot:90%/10g
    #[arg(long, value_name = "PATTERN", allow_hyphen_values = true,
          default_value = "random", value_parser = patterns::pattern)]
    pub pattern: Pattern,
    /// The offsets of random I/Os are multiples of this size [default: the smallest block size]
    #[arg(long, value_name = "SIZE", allow_hyphen_values = true, value_parser = values::size)]
    pub align: Option<Bytes>,
    /// With --pattern random: address every block once before any block again, each time in another
    /// order
    #[arg(long)]
    pub no_repeat: bool,
    /// I/Os of several kinds: the share of a kind and its properties, once for each kind: --part
    /// '80% block-size=8k read-share=67%' --part '20% block-size=64k pattern=sequential'. The kind
    /// of each I/O is drawn by chance. A kind may have block-size, write-block-size, read-share,
    /// pattern and align; the options of the load give the rest
    #[arg(long, value_name = "PART", value_parser = parts::part)]
    pub part: Vec<PartArg>,
    /// Give each worker a zone of its own in every target
    #[arg(long)]
    pub zones: bool,
    /// The distance between the starts of two sequential workers [default: spread evenly]
    #[arg(long, value_name = "SIZE", allow_hyphen_values = true, value_parser = values::size)]
    pub start_distance: Option<Bytes>,
    /// What is written.
    #[command(flatten)]
    pub payload: PayloadArgs,
    /// When what is written is flushed.
    #[command(flatten)]
    pub flush: FlushArgs,
    /// The most I/Os in flight, for all workers and targets together: 32; or 8/worker, 8/target,
    /// 8/disk (for each disk that an array is seen to be spread over) [default: 32, or the number
    /// of workers if that is larger; with --rate 1024, or the number that fits into 256 MiB of
    /// memory]
    #[arg(short, long, value_name = "DEPTH", allow_hyphen_values = true,
          value_parser = values::depth)]
    pub queue_depth: Option<Depth>,
    /// The threads for each target: 4 or 4/target; or 4/total, of which each serves every target
    #[arg(short, long, value_name = "WORKERS", allow_hyphen_values = true,
          default_value = "1", value_parser = values::workers)]
    pub workers: Workers,
    /// If a worker serves several targets, draw the target of each I/O by these weights, one for
    /// each target in order: 70,30 [default: the targets take turns]
    #[arg(long, value_name = "WEIGHTS", allow_hyphen_values = true, value_parser = values::weights)]
    pub weights: Option<Weights>,
    /// Open loop: start I/Os at this rate, however many complete: 10k (I/Os per second) or
    /// 100MiB/s, for all workers and targets together; or 10k/worker, 10k/target. Or a course of
    /// steps and ramps, which begins with the window: '1k for 10s, to 50k over 60s, 50k'. Or a
    /// share of a load that several streams make up: '30% of 10k'
    #[arg(long, value_name = "RATE", allow_hyphen_values = true, value_parser = rates::offered)]
    pub rate: Option<Offered>,
    /// Closed loop: each I/O in flight rests between its completion and the next start, as a user
    /// thinks: 1ms; or exponential:1ms, a random time with this mean
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = values::think_time)]
    pub think_time: Option<Rests>,
    /// Closed loop: each worker starts a number of I/Os, waits for all of them, and rests:
    /// 16/100ms; 16/start:100ms begins the rest with the last start. The second form also works
    /// with --rate and --arrivals uniform: I/Os that are due in a rest start at its end
    #[arg(long, value_name = "IOS/REST", allow_hyphen_values = true, value_parser = values::bursts)]
    pub burst: Option<Rests>,
    /// The times between the starts of an open loop [default: poisson]
    #[arg(long, value_enum)]
    pub arrivals: Option<ArrivalsArg>,
    /// Give the workers of an open loop real-time priority (SCHED_FIFO), so that no other program
    /// makes them late
    #[arg(long)]
    pub realtime: bool,
    /// Pin each worker to a CPU: 0-3,8 (these, in turn), node:0 (those of a NUMA node), nodes (one
    /// node after the other), cores (one CPU of each core first, then their siblings), device
    /// (those of the NUMA node that the device is attached to) [default: any CPU]
    #[arg(long, value_name = "CPUS", value_parser = values::cpus)]
    pub cpus: Option<Cpus>,
    /// The priority of the I/Os, for schedulers that use it: realtime:0 to realtime:7,
    /// best-effort:0 to best-effort:7 (0 is the highest), or idle [default: that of the process]
    #[arg(long, value_name = "CLASS", value_parser = values::io_priority)]
    pub io_priority: Option<IoPriority>,
    /// Put the buffers into large pages, which the host must have reserved (vm.nr_hugepages)
    #[arg(long)]
    pub large_pages: bool,
    /// End the stream after this amount: 10g, or 1m ios. The run ends when all streams with such a
    /// limit have ended
    #[arg(long, value_name = "AMOUNT", allow_hyphen_values = true, value_parser = values::stop_after)]
    pub stop_after: Option<Limit>,
    /// End the stream when it has gone over its regions this many times
    #[arg(long, value_name = "NUMBER", allow_hyphen_values = true,
          value_parser = values::whole::<u32>(1, 1_000_000))]
    pub passes: Option<u32>,
    /// The load before the window; it is not recorded [default: 3s; none with --stop-after or
    /// --passes]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub warm_up: Option<Span>,
    /// The window: the time that is measured [default: 30s; the end of the course if --rate has
    /// one, or of --start and --end; with --stop-after or --passes the end of the streams, at most
    /// 24h]
    #[arg(short, long, value_name = "TIME", allow_hyphen_values = true)]
    pub duration: Option<Span>,
    /// The load after the window; it is not recorded. Streams continue, except those that
    /// --stop-after or --passes has ended [default: none]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub cool_down: Option<Span>,
    /// Begin the load of the stream, and its course, this long after the window begins [default:
    /// with the warm-up]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub start: Option<Span>,
    /// End the load of the stream this long after the window begins [default: with the window, or
    /// the cool-down]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub end: Option<Span>,
    /// The intervals of the series over time, at least 100ms [default: 1s from a window of one
    /// minute on, otherwise 100ms]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub interval: Option<Span>,
    /// Repeat the offsets, directions and arrivals of an earlier run [default: a new seed each
    /// time]
    #[arg(long, value_name = "NUMBER", allow_hyphen_values = true, value_parser = values::seed)]
    pub seed: Option<u64>,
    /// What the targets are said to do.
    #[command(flatten)]
    pub promised: Promised,
}

/// What the maker or the operator of the targets says that they do, all together.
#[derive(Clone, Copy, Debug, Default, ClapArgs)]
pub struct Promised {
    /// The IOPS that all targets together are rated at: 80k. The answer says whether they are
    /// reached; a faster result is doubted. A promise that is not kept gives exit code 6
    #[arg(long, value_name = "RATE", allow_hyphen_values = true, value_parser = rates::rated_iops)]
    pub rated_iops: Option<Rate>,
    /// The bandwidth that all targets together are rated at: 800MB/s
    #[arg(long, value_name = "BANDWIDTH", allow_hyphen_values = true,
          value_parser = rates::rated_bandwidth)]
    pub rated_bandwidth: Option<Bytes>,
    /// The response time that was promised: 'p99<=1ms', with any percentile from p50 to p99.999
    #[arg(long = "promised-latency", value_name = "BOUND", allow_hyphen_values = true, value_parser = values::objective)]
    pub promised_time: Option<spec::Objective>,
}

impl Promised {
    /// As a point has it.
    pub fn rated(self) -> spec::Rated {
        spec::Rated {
            iops: self.rated_iops,
            bandwidth: self.rated_bandwidth,
            response_time: self.promised_time,
        }
    }
}

/// When what is written is flushed.
#[derive(Clone, Debug, Default, ClapArgs)]
pub struct FlushArgs {
    /// Flush a target with everything that belongs to it (fsync) after this many writes of a worker
    /// to it, once they have completed
    #[arg(long, value_name = "WRITES", allow_hyphen_values = true,
          value_parser = values::whole::<u32>(1, u32::MAX))]
    pub fsync: Option<u32>,
    /// Flush only the data of the target (fdatasync) after this many writes
    #[arg(long, value_name = "WRITES", allow_hyphen_values = true,
          value_parser = values::whole::<u32>(1, u32::MAX))]
    pub fdatasync: Option<u32>,
    /// Continue when a flush has started, instead of when it has completed
    #[arg(long)]
    pub no_barrier: bool,
}

/// What is written.
#[derive(Clone, Debug, Default, ClapArgs)]
pub struct PayloadArgs {
    /// The data that is written: random (no two blocks of 4 KiB are alike), zeros, ramp (the bytes
    /// 00 to FF, repeated), hex:DEADBEEF (these bytes, repeated), pool:16m (each I/O takes a random
    /// place of 16 MiB of random data), pool:16m,FILE (the same with the content of a file)
    /// [default: random]
    #[arg(long, value_name = "CONTENT", value_parser = values::payload)]
    pub payload: Option<spec::Payload>,
    /// The share of the random data that compression saves: 50% [default: 0%]
    #[arg(long, value_name = "SHARE", allow_hyphen_values = true, value_parser = values::share)]
    pub compressible: Option<f64>,
    /// The share of the blocks of 4 KiB that repeat an earlier one: 30% [default: 0%]
    #[arg(long, value_name = "SHARE", allow_hyphen_values = true, value_parser = values::share)]
    pub dedup: Option<f64>,
}

/// How the targets are accessed.
#[derive(Clone, Debug, ClapArgs)]
#[command(next_help_heading = "Access")]
pub struct AccessArgs {
    /// The start of the region that is addressed, in every target
    #[arg(long, value_name = "SIZE", allow_hyphen_values = true,
          default_value = "0", value_parser = values::size)]
    pub offset: Bytes,
    /// The size of the region, in every target [default: to the end]
    #[arg(long, value_name = "SIZE", allow_hyphen_values = true, value_parser = values::size)]
    pub size: Option<Bytes>,
    /// With --hosts: how the hosts divide the region [default: each host has all of it]
    #[arg(long, value_name = "HOW")]
    pub by_host: Option<ByHost>,
    /// Use the page cache instead of direct I/O
    #[arg(long)]
    pub buffered: bool,
    /// Map the targets into memory, through the page cache. An I/O is then a copy by the sync
    /// backend instead of a system call, and msync makes a durable write (--sync dsync)
    #[arg(long)]
    pub mmap: bool,
    /// A write completes only when it is durable: the same as --sync dsync
    #[arg(long)]
    pub write_through: bool,
    /// When a write becomes durable: none (at some later time), dsync (before it completes,
    /// O_DSYNC), sync (together with everything that belongs to the file, O_SYNC). rwf-dsync and
    /// rwf-sync ask for it with each write instead of when the target is opened [default: none]
    #[arg(long, value_name = "MODE", value_parser = values::sync_mode)]
    pub sync: Option<SyncMode>,
    /// With --buffered or --mmap: tell the kernel how the page cache will be used: normal,
    /// sequential, random, noreuse, or dontneed (drop the target's pages before the run)
    #[arg(long, value_name = "HINT", value_parser = values::hint)]
    pub fadvise: Option<Hint>,
    /// With --buffered: drop the pages of each I/O from the page cache at once (RWF_DONTCACHE,
    /// Linux 6.14)
    #[arg(long)]
    pub dontcache: bool,
    /// Make each write atomic: after a power failure its place holds all of it or nothing of it
    /// (RWF_ATOMIC, Linux 6.11). It needs direct I/O and one block size, a power of two that the
    /// target allows
    #[arg(long)]
    pub atomic: bool,
    /// The backend that carries the I/Os: auto, uring, aio or sync
    #[arg(long, value_name = "NAME", default_value = "auto", value_parser = values::backend)]
    pub backend: Backend,
    /// Let io_uring poll the device's queue for completions instead of waiting for its interrupt
    /// (IOPOLL); the driver needs poll queues
    #[arg(long)]
    pub polled: bool,
    /// Give each worker a kernel thread that submits its I/Os (SQPOLL), on any CPU, or on the given
    /// CPU; the thread keeps a CPU busy
    #[arg(long, value_name = "CPU", num_args = 0..=1, require_equals = true,
          default_missing_value = "any", value_parser = values::submission_thread)]
    pub sqpoll: Option<SubmissionThread>,
}

/// How hosts divide a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ByHost {
    /// Each host has a zone of its own, one beside the other
    Zones,
    /// The hosts take the blocks by turns: host k of N, from 0, has blocks k, k + N, k + 2N, ...
    Blocks,
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
    /// Allow writes to files that exist: their data is lost
    #[arg(long)]
    pub overwrite: bool,
    /// Allow writes to this device, whatever it holds; repeat its name. The name of a folder allows
    /// writes to all files in it
    #[arg(long, value_name = "NAME")]
    pub destroy: Vec<String>,
    /// Allow writes to this device or file although it is in use: mounted, swap, part of an array
    /// or of another device, or claimed by a program. What uses it may crash
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
    /// Show what it would do, without starting or writing anything
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
    /// Open the HTML report in the browser when it is written: with xdg-open, or with the program in
    /// $BROWSER
    #[arg(long)]
    pub open: bool,
    /// Write the report as Markdown, for issues and wikis
    #[arg(long, value_name = "FILE")]
    pub markdown: Option<PathBuf>,
    /// Write the figures as CSV
    #[arg(long, value_name = "FILE")]
    pub csv: Option<PathBuf>,
    /// Write the series over time as CSV: a row for each trial, stream, interval and direction
    #[arg(long, value_name = "FILE")]
    pub csv_series: Option<PathBuf>,
    /// Draw the result as SVG, with the answer and the verdict; several charts of an experiment
    /// each become FILE-NAME.svg
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
    /// Draw the result as PNG, with the answer and the verdict; several charts of an experiment
    /// each become FILE-NAME.png
    #[arg(long, value_name = "FILE")]
    pub png: Option<PathBuf>,
}

/// Where the results go.
#[derive(Clone, Debug, Default, ClapArgs)]
#[command(next_help_heading = "Results")]
pub struct Results {
    /// The result file [default: named after the target and the time, in the folder of --results]
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// The folder of results without a name of their own [default: FATHOM_RESULTS, or the current
    /// folder]
    #[arg(long, value_name = "FOLDER", conflicts_with = "out")]
    pub results: Option<PathBuf>,
    /// The reports beside it.
    #[command(flatten)]
    pub written: Reports,
    /// Write every I/O as a row of a CSV table, best on a device that is not measured
    #[arg(long, value_name = "FILE")]
    pub trace: Option<PathBuf>,
    /// Print the document (JSON Lines) to stdout and everything else to stderr
    #[arg(long)]
    pub json: bool,
    /// Show also where every I/O went, what the CPUs did, and the evidence of each doubt
    #[arg(long)]
    pub details: bool,
    /// End with exit code 6 if this holds for a result: 'p99>2ms', 'mean>1ms', 'max>1s', 'iops<50k',
    /// 'bandwidth<1GB/s', suspect or void; for `ab` also 'p99 worse than 5%', with exit code 7 if
    /// that is undecided; several are possible
    #[arg(long, value_name = "CONDITION", value_parser = threshold)]
    pub fail_if: Vec<Threshold>,
}

impl Request {
    /// The options of the load and the access that were typed.
    pub fn load_in_words(&self) -> impl Iterator<Item = Typed> {
        let own = Self::load_options();
        self.typed.iter().filter(move |typed| own.contains(&typed.name)).cloned()
    }

    /// The names of all options of the load and the access.
    pub fn load_options() -> Vec<String> {
        let command = AccessArgs::augment_args(alone::<LoadArgs>());
        command.get_arguments().filter_map(|one| one.get_long().map(str::to_owned)).collect()
    }
}

/// The command line of these options alone.
pub fn alone<T: ClapArgs>() -> clap::Command {
    let command = clap::Command::new("fathom").no_binary_name(true).disable_help_flag(true);
    T::augment_args(command)
}

/// What options are that nobody typed: each default stands at its option alone.
fn untyped<T: ClapArgs>() -> T {
    let matches = alone::<T>().try_get_matches_from(std::iter::empty::<&str>());
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
