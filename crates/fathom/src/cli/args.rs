//! What was typed. One flag, one definition: its help text here is its documentation.
//!
//! What begins with a hyphen is still the value of an option that takes one, so that `-b -4k` is
//! told that -4k is no size, not that there is no option -4.

use std::path::PathBuf;

use clap::{Args as ClapArgs, Parser, Subcommand, ValueEnum};
use fathom_core::spec::{self, SubmissionThread, Workers};
use fathom_core::{Bytes, Span};

use super::values::{self, Backend, Depth, Load};
use crate::error::exit;

const EXAMPLES: &str = "\
Examples:
  fathom quick                          a portrait of the storage under this folder, in a minute
  fathom quick /dev/nvme0n1             the same of a device; only reads
  fathom prepare test.dat --size 10g    a file with unique data to measure on
  fathom run test.dat -b 8k --read-share 70% -q 32 --overwrite
                                        a closed loop: 32 I/Os in flight
  fathom run test.dat --rate 10k        an open loop: 10,000 I/Os per second, whatever completes

Sizes are typed as 4k, 12.8MiB, 1g (powers of two) or 500MB; times as 500ms, 30s, 5m.
Nothing is written to a file or device that exists unless --overwrite says so.";

/// The storage performance lab: applies any load, measures every I/O, knows when its numbers lie.
#[derive(Debug, Parser)]
#[command(
    name = "fathom",
    version,
    max_term_width = 100,
    disable_help_subcommand = true,
    after_help = const_str(),
    arg_required_else_help = true
)]
pub struct Args {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// Examples and exit codes, in the order in which people need them.
fn const_str() -> String {
    format!("{EXAMPLES}\n\n{}", exit::HELP)
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Draw a portrait of the storage under a folder, or of a file or device, in about a minute
    Quick(Quick),
    /// Run one workload on files, block devices or a simulated device
    Run(Run),
    /// Show what a target is, down its device stack, and what follows for a test
    Inspect(Inspect),
    /// Create a file and really write it, with unique data, to measure on
    Prepare(Prepare),
    /// Measure what fathom itself can do on this host, in a few seconds
    Calibrate(Calibrate),
    /// Show the report of a result file again, or write it as HTML or CSV
    Report(Report),
}

/// Where the results go.
#[derive(Clone, Debug, Default, ClapArgs)]
#[command(next_help_heading = "Results")]
pub struct Results {
    /// The result file [default: named after the target and the time, in the current folder]
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Write a self-contained HTML report
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Write the figures as CSV
    #[arg(long, value_name = "FILE")]
    pub csv: Option<PathBuf>,
    /// Print the document (JSON Lines) to stdout and everything else to stderr
    #[arg(long)]
    pub json: bool,
}

/// What may be written to.
#[derive(Clone, Debug, Default, ClapArgs)]
#[command(next_help_heading = "Consent")]
pub struct Consent {
    /// Allow writes to the targets: what they hold is lost
    #[arg(long)]
    pub overwrite: bool,
    /// Allow writes to this device even though it carries data or is in use; repeats its name
    #[arg(long, value_name = "NAME")]
    pub destroy: Vec<String>,
}

/// `fathom quick`.
#[derive(Clone, Debug, ClapArgs)]
pub struct Quick {
    /// A folder (a scratch file is made in it and removed again), a file or device (only read,
    /// unless --overwrite), or a simulated device such as sim:ssd
    #[arg(default_value = ".")]
    pub path: PathBuf,
    /// Size of the scratch file [default: twice the memory, from 1 to 8 GiB, at most a quarter of
    /// the free space, and only as much as can be written in 15 s]
    #[arg(long, value_name = "SIZE", allow_hyphen_values = true, value_parser = values::size)]
    pub size: Option<Bytes>,
    /// Load before each window, which is not recorded
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, default_value = "1s")]
    pub warm_up: Span,
    /// The window of each step: how long is measured
    #[arg(short, long, value_name = "TIME", allow_hyphen_values = true, default_value = "6s")]
    pub duration: Span,
    /// Go through the page cache, where the file system has no direct I/O
    #[arg(long)]
    pub buffered: bool,
    /// What carries the I/Os: auto, uring, aio, sync
    #[arg(long, value_name = "NAME", default_value = "auto", value_parser = values::backend)]
    pub backend: Backend,
    /// Repeats the offsets and the data of an earlier run [default: a new one each time]
    #[arg(long, value_name = "NUMBER", allow_hyphen_values = true, value_parser = values::seed)]
    pub seed: Option<u64>,
    /// Remove scratch files in the folder that a killed run has left, without asking
    #[arg(long)]
    pub remove_leftovers: bool,
    /// What may be written to.
    #[command(flatten)]
    pub consent: Consent,
    /// Where the results go.
    #[command(flatten)]
    pub results: Results,
}

/// `fathom run`.
#[derive(Clone, Debug, ClapArgs)]
pub struct Run {
    /// Files, block devices or NVMe generic devices (/dev/ng0n1), or one simulated device such as
    /// sim:ssd (`fathom run sim:help`)
    #[arg(required = true, value_name = "TARGET")]
    pub targets: Vec<PathBuf>,
    /// The load.
    #[command(flatten)]
    pub load: LoadArgs,
    /// How the targets are accessed.
    #[command(flatten)]
    pub access: AccessArgs,
    /// What may be written to.
    #[command(flatten)]
    pub consent: Consent,
    /// Where the results go.
    #[command(flatten)]
    pub results: Results,
}

/// The load that is applied.
#[derive(Clone, Debug, ClapArgs)]
#[command(next_help_heading = "Load")]
pub struct LoadArgs {
    /// Bytes moved by one I/O
    #[arg(short, long, value_name = "SIZE", allow_hyphen_values = true,
          default_value = "4k", value_parser = values::size)]
    pub block_size: Bytes,
    /// Share of reads: 70% or 0.7
    #[arg(long, value_name = "SHARE", allow_hyphen_values = true,
          default_value = "100%", value_parser = values::share)]
    pub read_share: f64,
    /// How offsets follow each other
    #[arg(long, value_enum, default_value = "random")]
    pub pattern: PatternArg,
    /// The most I/Os in flight, all workers and targets together: 32; or 8/worker, 8/target
    /// [default: 32, or one for each worker if there are more; with --rate 1024, or as many as fit
    /// into 256 MiB of memory]
    #[arg(short, long, value_name = "DEPTH", allow_hyphen_values = true,
          value_parser = values::depth)]
    pub queue_depth: Option<Depth>,
    /// Threads for each target: 4 (or 4/target); or 4/total, each of which serves every target
    #[arg(short, long, value_name = "WORKERS", allow_hyphen_values = true,
          default_value = "1", value_parser = values::workers)]
    pub workers: Workers,
    /// Open loop: start I/Os at this rate, whatever completes: 10k (I/Os per second) or 100MiB/s
    #[arg(long, value_name = "RATE", allow_hyphen_values = true, value_parser = values::load)]
    pub rate: Option<Load>,
    /// How the starts of an open loop follow each other [default: poisson]
    #[arg(long, value_enum)]
    pub arrivals: Option<ArrivalsArg>,
    /// Give the workers of an open loop real-time priority (SCHED_FIFO), so that no other program
    /// makes them late
    #[arg(long)]
    pub realtime: bool,
    /// Load before the window, which is not recorded
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, default_value = "3s")]
    pub warm_up: Span,
    /// The window: how long is measured
    #[arg(short, long, value_name = "TIME", allow_hyphen_values = true, default_value = "30s")]
    pub duration: Span,
    /// Slices of the series over time, from 100ms [default: 1s from a duration of one minute up,
    /// else 100ms]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub interval: Option<Span>,
    /// Repeats the offsets, directions and arrivals of an earlier run [default: a new one each
    /// time]
    #[arg(long, value_name = "NUMBER", allow_hyphen_values = true, value_parser = values::seed)]
    pub seed: Option<u64>,
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
    /// A write completes only when the target says that it is durable (O_DSYNC)
    #[arg(long)]
    pub write_through: bool,
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

/// How offsets follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum PatternArg {
    /// Uniform over the region
    Random,
    /// Block after block, around the region
    Sequential,
}

impl From<PatternArg> for spec::Pattern {
    fn from(typed: PatternArg) -> Self {
        match typed {
            PatternArg::Random => Self::Random,
            PatternArg::Sequential => Self::Sequential,
        }
    }
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

/// `fathom inspect`.
#[derive(Clone, Debug, ClapArgs)]
pub struct Inspect {
    /// A file, a folder or a block device
    pub target: PathBuf,
}

/// `fathom prepare`.
#[derive(Clone, Debug, ClapArgs)]
pub struct Prepare {
    /// The file to create; one that already fits is used again
    pub file: PathBuf,
    /// How large it has to be
    #[arg(long, value_name = "SIZE", allow_hyphen_values = true, value_parser = values::size)]
    pub size: Bytes,
    /// Threads that write
    #[arg(long, value_name = "NUMBER", allow_hyphen_values = true, default_value_t = 4,
          value_parser = clap::value_parser!(u32).range(1..=64))]
    pub writers: u32,
    /// Bytes that one write moves
    #[arg(short, long, value_name = "SIZE", allow_hyphen_values = true,
          default_value = "1m", value_parser = values::size)]
    pub block_size: Bytes,
    /// Repeats the data of an earlier file [default: a new one each time]
    #[arg(long, value_name = "NUMBER", allow_hyphen_values = true, value_parser = values::seed)]
    pub seed: Option<u64>,
    /// Allow writing a file that exists and does not fit: what it holds is lost
    #[arg(long)]
    pub overwrite: bool,
    /// Remove what a killed `prepare` of this file has left, without asking
    #[arg(long)]
    pub remove_leftovers: bool,
}

/// `fathom calibrate`.
#[derive(Clone, Debug, ClapArgs)]
pub struct Calibrate {
    /// How long each of some ten runs takes, from 10ms to 60s
    #[arg(short, long, value_name = "TIME", allow_hyphen_values = true, default_value = "200ms")]
    pub duration: Span,
    /// What carries the I/Os: auto, uring, aio, sync
    #[arg(long, value_name = "NAME", default_value = "auto", value_parser = values::backend)]
    pub backend: Backend,
    /// Write what was found as JSON [default: nothing is written]
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Print what was found as JSON to stdout and everything else to stderr
    #[arg(long)]
    pub json: bool,
}

/// `fathom report`.
#[derive(Clone, Debug, ClapArgs)]
pub struct Report {
    /// A result file
    pub result: PathBuf,
    /// Write a self-contained HTML report instead of showing it
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Write the figures as CSV instead of showing it
    #[arg(long, value_name = "FILE")]
    pub csv: Option<PathBuf>,
    /// Columns of the terminal report [default: as wide as the terminal]
    #[arg(long, value_name = "COLUMNS", allow_hyphen_values = true,
          value_parser = clap::value_parser!(u16).range(80..=1000))]
    pub width: Option<u16>,
}
