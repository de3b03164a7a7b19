//! What was typed for `fathom peak` and `fathom sustain`. One flag, one definition: its help text
//! here is its documentation.

use std::path::PathBuf;

use clap::builder::ArgPredicate;
use clap::{Args as ClapArgs, ValueEnum};
use fathom_core::Span;
use fathom_core::experiment::{Test, Vary, Watch};
use fathom_core::spec::Objective;

use super::options::{Request, Results, StartArgs};
use super::values::{self, Official, Passes};

/// An amount counts from the first I/O, so that a warm-up would take a part of it.
const NO_WARM_UP: [(&str, ArgPredicate, Option<&str>); 2] = [
    ("stop_after", ArgPredicate::IsPresent, Some("0s")),
    ("passes", ArgPredicate::IsPresent, Some("0s")),
];

/// `fathom peak`.
#[derive(Clone, Debug, ClapArgs)]
#[command(
    mut_arg("warm_up", |arg| {
        arg.default_value("1s").default_value_ifs(NO_WARM_UP).help(
            "The load before each window; it is not recorded [none with --stop-after or --passes]",
        )
    }),
    mut_arg("duration", |arg| {
        arg.default_value("5s").help("The window of each probe: the time that is measured")
    }),
    mut_arg("queue_depth", |arg| {
        arg.help(
            "With --vary workers: the I/Os in flight of each worker, such as 4/worker [default: \
             1/worker]. With --objective: the most I/Os in flight, as for `fathom run --rate`"
        )
    }),
    mut_arg("rate", |arg| {
        arg.help("With --objective: the load that the search begins with [default: 1000]")
    }),
)]
pub struct Peak {
    /// What is searched for.
    #[command(flatten)]
    pub search: PeakArgs,
    /// Measure on many hosts at the same time, through the router at this socket. `fathom-hosts`
    /// sets this option. The settings that vary are those of each host
    #[arg(long, value_name = "SOCKET", help_heading = "Hosts")]
    pub hosts: Option<PathBuf>,
    /// What is to be measured.
    #[command(flatten)]
    pub request: Request,
    /// How it begins.
    #[command(flatten)]
    pub start: StartArgs,
    /// Where the results go.
    #[command(flatten)]
    pub results: Results,
}

/// What is searched for.
#[derive(Clone, Debug, ClapArgs)]
#[command(next_help_heading = "Search")]
pub struct PeakArgs {
    /// The setting that rises until the targets are saturated [default: queue-depth]
    #[arg(long, value_enum)]
    pub vary: Option<VaryArg>,
    /// The share of the best throughput that counts as saturated [default: 95%]
    #[arg(long, value_name = "SHARE", allow_hyphen_values = true, value_parser = values::share)]
    pub enough: Option<f64>,
    /// Search for the highest load of an open loop that meets this objective: 'p99<=2ms', with any
    /// percentile from p50 to p99.999
    #[arg(long, value_name = "BOUND", allow_hyphen_values = true,
          value_parser = values::objective)]
    pub objective: Option<Objective>,
    /// With --objective: the precision of the load that is found [default: 5%]
    #[arg(long, value_name = "SHARE", allow_hyphen_values = true, value_parser = values::share)]
    pub tolerance: Option<f64>,
    /// The highest value to try: a queue depth or a number of workers, or with --objective a load
    /// such as 100k [default: queue depth 1024 or 256 workers, or as many as fit; a load of 10
    /// million I/Os per second]
    #[arg(long, value_name = "VALUE", allow_hyphen_values = true)]
    pub up_to: Option<String>,
    /// The window of the official run at the value that was found, or none
    #[arg(long, value_name = "TIME|none", allow_hyphen_values = true, default_value = "5m",
          value_parser = values::official)]
    pub official: Official,
    /// Do not write beforehand to find out whether the target compresses, deduplicates or skips
    /// zeros
    #[arg(long)]
    pub no_probe: bool,
}

/// What rises until the targets are saturated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum VaryArg {
    /// The I/Os in flight
    QueueDepth,
    /// The threads, each with the same number of I/Os in flight
    Workers,
}

impl From<VaryArg> for Vary {
    fn from(typed: VaryArg) -> Self {
        match typed {
            VaryArg::QueueDepth => Self::QueueDepth,
            VaryArg::Workers => Self::Workers,
        }
    }
}

/// `fathom sustain`.
#[derive(Clone, Debug, ClapArgs)]
#[command(
    mut_arg("warm_up", |arg| {
        arg.default_value("1s").default_value_ifs(NO_WARM_UP).help(
            "The load before each window; it is not recorded [none with --stop-after or --passes]",
        )
    }),
    mut_arg("duration", |arg| {
        arg.default_value("1m")
            .help("The window of each point of a round: the time that is measured")
    }),
)]
pub struct Sustain {
    /// How it goes about it.
    #[command(flatten)]
    pub course: SustainArgs,
    /// Measure on many hosts at the same time, through the router at this socket. `fathom-hosts`
    /// sets this option
    #[arg(long, value_name = "SOCKET", help_heading = "Hosts")]
    pub hosts: Option<PathBuf>,
    /// What is to be measured: the targets, and with --test workload the load.
    #[command(flatten)]
    pub request: Request,
    /// How it begins.
    #[command(flatten)]
    pub start: StartArgs,
    /// Where the results go.
    #[command(flatten)]
    pub results: Results,
}

/// How rounds go on until a steady state.
#[derive(Clone, Debug, ClapArgs)]
#[command(next_help_heading = "Rounds")]
pub struct SustainArgs {
    /// The test: workload (the load that -b, --pattern, --read-share and other options describe),
    /// or a SNIA test: iops (8 block sizes x 7 mixes), throughput (128 KiB sequential), latency (3
    /// block sizes x 3 mixes, one I/O at a time), write-saturation (random writes of 4 KiB for 6 h
    /// or 4 times the region), demand-intensity (threads x queue depth), host-idle-recovery (bursts
    /// of writes with longer and longer pauses), cross-stimulus-recovery (large sequential writes,
    /// small random ones, large ones again)
    #[arg(long, value_name = "TEST", default_value = "workload", value_parser = values::test)]
    pub test: Test,
    /// Write the whole region this many times beforehand, or none [default: 2; none for
    /// write-saturation, cross-stimulus-recovery and workloads that only read]
    #[arg(long, value_name = "TIMES|none", allow_hyphen_values = true,
          value_parser = values::passes)]
    pub precondition: Option<Passes>,
    /// The figure that has to be steady: iops, bandwidth, mean (response time), p99 or another
    /// percentile [default: iops; bandwidth for throughput; mean for latency]
    #[arg(long, value_name = "FIGURE", value_parser = values::watch)]
    pub watch: Option<Watch>,
    /// The time that the load has to last before fathom calls it steady: a burst credit or a cache
    /// that lasts longer would not show
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, default_value = "1h")]
    pub at_least: Span,
    /// The most rounds, or twice as many as --at-least takes if that is more
    #[arg(long, value_name = "NUMBER", allow_hyphen_values = true, default_value_t = 25,
          value_parser = values::whole::<u32>(5, 100_000))]
    pub rounds: u32,
    /// The time of write-saturation, of each pause length of host-idle-recovery, or of each phase of
    /// cross-stimulus-recovery [default: 6h; 1h; 8h, 6h, 8h]
    #[arg(long = "for", value_name = "TIME", allow_hyphen_values = true)]
    pub length: Option<Span>,
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::cli::args::{Args, Command};

    #[test]
    fn a_search_with_an_amount_has_no_warm_up_that_takes_it() {
        let warm_up = |command, more: &[&str]| {
            let words = [&["fathom", command, "f"], more].concat();
            let request = match Args::parse_from(words).command {
                Command::Peak(peak) => peak.request,
                Command::Sustain(sustain) => sustain.request,
                _ => unreachable!(),
            };
            request.load.warm_up
        };
        for command in ["peak", "sustain"] {
            assert_eq!(warm_up(command, &[]), Some(Span::from_secs(1)));
            assert_eq!(warm_up(command, &["--stop-after", "1g"]), Some(Span(0)));
            assert_eq!(warm_up(command, &["--passes", "1"]), Some(Span(0)));
            let both = ["--passes", "1", "--warm-up", "2s"];
            assert_eq!(warm_up(command, &both), Some(Span::from_secs(2)));
        }
    }
}
