//! What was typed. One flag, one definition: its help text here is its documentation.
//!
//! What begins with a hyphen is still the value of an option that takes one, so that `-b -4k` is
//! told that -4k is no size, not that there is no option -4.

use std::borrow::Cow;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::parser::ValueSource;
use clap::{
    ArgAction, ArgMatches, Args as ClapArgs, CommandFactory, FromArgMatches, Parser, Subcommand,
    ValueEnum,
};
use fathom_core::{Bytes, Quantile, Span, printable, typed_path, typed_word};
use fathom_report::document::{Metric, Threshold};

use super::axes::{self, AxisArg};
use super::comparing::Compare;
use super::habits;
use super::help;
use super::options::{
    AccessArgs, Consent, Promised, Repeated, Reports, Request, Results, StartArgs, Typed,
};
use super::rates::{self, Offered};
use super::searches::{Peak, Sustain};
use super::thresholds::{metric, threshold, watch_threshold};
use super::values::{self, Backend, Passes};
use crate::error::exit;
use crate::output;
use crate::shipped;

/// Measure storage: apply any load, record every I/O, check the numbers
#[derive(Debug, Parser)]
#[command(name = "fathom", version, max_term_width = 100)]
pub struct Args {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The words that this process was started with. Under the name of diskspd, as a link gives it, it is
/// what scripts call by that name.
fn words_of_this_process() -> Vec<OsString> {
    let mut words: Vec<OsString> = std::env::args_os().collect();
    let name = words.first().and_then(|name| Path::new(name).file_stem());
    if name.is_some_and(|name| name.eq_ignore_ascii_case("diskspd")) {
        words.splice(..1, ["fathom", "diskspd"].map(OsString::from));
    }
    words
}

/// Ends the process with what clap has to say to these words: help, or what is wrong with them. It
/// repeats words as they are, among lines of its own; so it is asked `again` with the words made
/// printable.
pub fn answer(
    error: &clap::Error,
    words: &[OsString],
    again: &dyn Fn(&[OsString]) -> Option<clap::Error>,
) -> ! {
    if let Some(answer) = own_words(error, words) {
        output::note_folded(&format!("error: {answer}"));
        std::process::exit(i32::from(exit::USAGE));
    }
    let shown = |word: &OsString| OsString::from(&*printable(&word.to_string_lossy()));
    let harmless: Vec<OsString> = words.iter().map(shown).collect();
    let twin = again(&harmless).filter(|twin| twin.kind() == error.kind());
    let text = twin.as_ref().unwrap_or(error).render();
    let styled = |color: bool| match color {
        true => text.ansi().to_string(),
        false => text.to_string(),
    };
    match error.use_stderr() {
        true => output::note_text(styled(output::error_color()).trim_end_matches('\n')),
        // Who does not read help to its end misses nothing of ours.
        false => drop(output::say_text(styled(output::color()).trim_end_matches('\n'))),
    }
    std::process::exit(error.exit_code())
}

/// What is wrong with words, in one line.
pub fn in_one_line(error: &clap::Error) -> String {
    own_words(error, &[]).unwrap_or_else(|| {
        let text = error.to_string();
        text.lines().next().unwrap_or_default().trim_start_matches("error: ").to_owned()
    })
}

/// The words of fathom, where they say more than those of clap.
fn own_words(error: &clap::Error, words: &[OsString]) -> Option<String> {
    habit(error).or_else(|| no_command(error, words)).or_else(|| bad_value(error))
}

/// What is wrong with a value, as in every other refusal. Clap would name the value twice.
fn bad_value(error: &clap::Error) -> Option<String> {
    if error.kind() != ErrorKind::ValueValidation {
        return None;
    }
    let of = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.as_str()),
        _ => None,
    };
    let (option, value) = (of(ContextKind::InvalidArg)?, of(ContextKind::InvalidValue)?);
    let why = std::error::Error::source(error)?.to_string();
    let why = match why.strip_prefix(&format!("'{value}' ")) {
        Some(rest) => format!("it {rest}"),
        None => why,
    };
    let option = option.split(' ').next().unwrap_or(option);
    Some(format!("{option} {}: {why}", typed_word(value)))
}

/// The answer to an option that people know from another tool.
fn habit(error: &clap::Error) -> Option<String> {
    if error.kind() != ErrorKind::UnknownArgument {
        return None;
    }
    let Some(ContextValue::String(option)) = error.get(ContextKind::InvalidArg) else {
        return None;
    };
    let answer = habits::answer(option)?;
    Some(format!("{}: there is no such option here: {answer}", printable(option)))
}

/// The answer to a word that is no command or no study. It may be a workload or a target.
fn no_command(error: &clap::Error, words: &[OsString]) -> Option<String> {
    if error.kind() != ErrorKind::InvalidSubcommand {
        return None;
    }
    let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidSubcommand) else {
        return None;
    };
    let before = words.iter().rposition(|one| one == word.as_str()).unwrap_or(0);
    let is_study = words[..before].iter().any(|one| one == "study");
    let commands = Args::command();
    let studies = commands.find_subcommand("study").filter(|_| is_study);
    let (what, list) = match is_study {
        true => ("study", "`fathom study` lists the studies"),
        false => ("command", "`fathom --help` lists the commands"),
    };
    let known = studies.unwrap_or(&commands).get_subcommands().map(clap::Command::get_name);
    let remedy = if shipped::names().any(|name| name == word) {
        format!("apply this load with `fathom run {word} TARGET`")
    } else if shipped::studies().any(|name| name == word) {
        format!("run this study with `fathom study {word} TARGET`")
    } else if word.contains(['/', '.', ':']) && !is_study {
        format!("measure a target with `fathom run {}`", typed_path(word))
    } else if is_study && commands.find_subcommand(word).is_some() {
        format!("`fathom {word}` is a command of its own, and {list}")
    } else if let Some(near) = values::nearest(word, known) {
        format!("did you mean {near}? {list}")
    } else {
        list.to_owned()
    };
    Some(format!("{}: there is no such {what}: {remedy}", printable(word)))
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Measure the storage under a folder, a file or a device in a minute
    Quick(Quick),
    /// Run a workload on files, block devices or a simulated device
    Run(Run),
    /// Show what `run` would do with the same arguments; start nothing
    Plan(Plan),
    /// Measure every combination of several settings, and find the best
    Sweep(Sweep),
    /// Compare two targets or settings by turns, until the answer is clear
    Ab(Box<Ab>),
    /// Run one of the classic studies, or list them
    Study(Study),
    /// Continue an interrupted experiment from its result file
    Resume(Resume),
    /// Find the depth that saturates, or the load that meets an objective
    Peak(Box<Peak>),
    /// Repeat a load for hours until it is steady; has the SNIA tests
    Sustain(Box<Sustain>),
    /// Map the response time of reads beside writes, at every load
    Map(Map),
    /// List the workloads that come with fathom, or print one to start from
    Workloads(Workloads),
    /// Show what a target is, and every device below it
    Inspect(Inspect),
    /// Watch what any program does to the disks, second by second
    Watch(Watch),
    /// Be one host of a test over many hosts: apply loads that another program requests
    Agent(Agent),
    /// Create a file to measure on, and write all of it with unique data
    Prepare(Prepare),
    /// Measure the limits of fathom itself on this host, in a few seconds
    Calibrate(Calibrate),
    /// Show a result file's report, or write it as HTML, Markdown or CSV
    Report(Report),
    /// Compare results: say which is slower, or that the trials cannot tell
    Compare(Compare),
    /// Show the results in a folder over time, and where they changed
    History(HistoryArgs),
    /// Write a result in the format of another program
    Export(Export),
    /// Convert results of fio or Diskplorer into a result file
    Import(Import),
    /// Print the completions of fathom for bash, zsh, fish, elvish or powershell
    Completions(Completions),
    /// Write the manual pages into a folder
    Man(Man),
    /// Run a command line of DiskSpd 2.2 as it stands in scripts, and print DiskSpd's result
    #[command(disable_help_flag = true)]
    Diskspd(Diskspd),
}

/// `fathom diskspd`. What DiskSpd's words mean is the dialect's business.
#[derive(Clone, Debug, ClapArgs)]
pub struct Diskspd {
    /// DiskSpd's command line, and fathom's own options, which begin with two hyphens
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGS")]
    pub words: Vec<OsString>,
}

/// Run a command line of DiskSpd 2.2 as it stands in scripts, and print DiskSpd's result. These
/// options are fathom's own; those of DiskSpd follow.
#[derive(Clone, Debug, Parser)]
#[command(
    name = "fathom diskspd",
    disable_version_flag = true,
    max_term_width = 100,
    override_usage = "fathom diskspd [OPTIONS] ARGS",
    after_help = concat!("\
ARGS is a command line of DiskSpd 2.2. It may begin with DiskSpd's name. A link to fathom that is
named diskspd takes ARGS directly. fathom runs the command line and prints DiskSpd's result. Stderr
is silent unless there is a warning, stderr is a terminal, or -v asks for more.

", include_str!("../dialect/diskspd/help.txt"))
)]
pub struct DiskspdOwn {
    /// The local path of a Windows drive, volume, disk or share: 'G:=/mnt/g', '#1=/dev/sdb'
    #[arg(long, value_name = "FROM=TO", allow_hyphen_values = true)]
    pub map: Vec<String>,
    #[command(flatten)]
    pub consent: Consent,
    #[command(flatten)]
    pub results: Results,
}

/// `fathom watch`.
#[derive(Clone, Debug, ClapArgs)]
pub struct Watch {
    /// Disks, or files and folders on them: /dev/nvme0n1, sda, /var/lib/postgresql. For a
    /// partition, the whole disk is watched [default: all real disks]
    #[arg(value_name = "TARGET")]
    pub targets: Vec<PathBuf>,
    /// The time that each line, row and point in a chart sums up
    #[arg(short, long, value_name = "TIME", allow_hyphen_values = true, default_value = "1s",
          value_parser = values::watch_interval)]
    pub interval: Span,
    /// End after this time [default: until Ctrl-C]
    #[arg(short, long, value_name = "TIME", allow_hyphen_values = true)]
    pub duration: Option<Span>,
    /// End after this many intervals
    #[arg(short, long, value_name = "NUMBER", allow_hyphen_values = true,
          value_parser = values::whole::<u32>(1, u32::MAX))]
    pub count: Option<u32>,
    /// Read only the kernel's counters, which cost nothing and need no privilege: means, but no
    /// percentiles and no programs
    #[arg(long)]
    pub counters: bool,
    /// Print a line for each disk and interval, as without a terminal
    #[arg(long)]
    pub plain: bool,
    /// Write a table with a row for each interval
    #[arg(long, value_name = "FILE")]
    pub csv: Option<PathBuf>,
    /// Name the columns of --csv as typeperf does: \\HOST\PhysicalDisk(sda)\Avg. Disk sec/Read
    #[arg(long, requires = "csv")]
    pub typeperf_names: bool,
    /// Keep everything in a result file, which `fathom report` shows
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// End with exit code 6 if this holds for a disk over the whole watch, reads and writes together:
    /// 'p99>2ms', 'mean>1ms', 'max>1s', 'iops<50k', 'bandwidth<1GB/s'; with exit code 7 if that is
    /// undecided; several are possible. The exit code of a COMMAND that fails comes first
    #[arg(long, value_name = "CONDITION", value_parser = watch_threshold)]
    pub fail_if: Vec<Threshold>,
    /// A command, which is watched from its start to its end. fathom ends with its exit code
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

/// `fathom agent`.
#[derive(Clone, Debug, ClapArgs)]
pub struct Agent {
    /// End if the other program is silent for this long: the load stops, and the result file says so
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, default_value = "5s",
          value_parser = values::lease)]
    pub lease: Span,
    /// The result file of this host [default: named after the first target and the time, in the
    /// folder of --results]
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// The folder of results without a name of their own [default: FATHOM_RESULTS, or the current
    /// folder]
    #[arg(long, value_name = "FOLDER", conflicts_with = "out")]
    pub results: Option<PathBuf>,
}

/// `fathom completions`.
#[derive(Clone, Debug, ClapArgs)]
pub struct Completions {
    /// The shell
    pub shell: clap_complete::Shell,
}

/// `fathom man`.
#[derive(Clone, Debug, ClapArgs)]
pub struct Man {
    /// The folder for the pages: man1 in a folder that `man` searches. Existing pages are not
    /// replaced
    pub folder: PathBuf,
}

/// `fathom quick`.
#[derive(Clone, Debug, ClapArgs)]
pub struct Quick {
    /// A folder (a scratch file is created in it and removed again), a file or device (only read,
    /// unless --overwrite is given), or a simulated device such as sim:ssd
    #[arg(default_value = ".")]
    pub path: PathBuf,
    /// The size of the scratch file [default: twice the memory, but 1 to 8 GiB, at most a quarter
    /// of the free space, and at most what can be written in 15 s]
    #[arg(long, value_name = "SIZE", allow_hyphen_values = true, value_parser = values::size)]
    pub size: Option<Bytes>,
    /// The load before each window; it is not recorded
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, default_value = "1s")]
    pub warm_up: Span,
    /// The window of each step: the time that is measured
    #[arg(short, long, value_name = "TIME", allow_hyphen_values = true, default_value = "6s")]
    pub duration: Span,
    /// How often.
    #[command(flatten)]
    pub repeated: Repeated,
    /// Use the page cache; for file systems without direct I/O
    #[arg(long)]
    pub buffered: bool,
    /// The backend that carries the I/Os: auto, uring, aio or sync
    #[arg(long, value_name = "NAME", default_value = "auto", value_parser = values::backend)]
    pub backend: Backend,
    /// Repeat the offsets and the data of an earlier run [default: a new seed each time]
    #[arg(long, value_name = "NUMBER", allow_hyphen_values = true, value_parser = values::seed)]
    pub seed: Option<u64>,
    /// Do not write beforehand to find out whether the target compresses, deduplicates or skips
    /// zeros
    #[arg(long)]
    pub no_probe: bool,
    /// Remove scratch files that a killed run has left in the folder, without asking
    #[arg(long)]
    pub remove_leftovers: bool,
    /// What the target is said to do. IOPS are compared with random steps, the bandwidth with
    /// sequential ones, and the response time with one I/O at a time.
    #[command(flatten)]
    pub promised: Promised,
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
    /// How often.
    #[command(flatten)]
    pub repeated: Repeated,
    /// What is to be measured.
    #[command(flatten)]
    pub request: Request,
    /// Watch the disk's requests too: where the time of the I/Os went, and what the slowest hundred
    /// waited for. Needs root, or CAP_BPF and CAP_PERFMON, and costs CPU time
    #[arg(long, help_heading = "Results")]
    pub watch: bool,
    /// Apply the load on many hosts at the same time, through the router at this socket.
    /// `fathom-hosts` sets this option
    #[arg(long, value_name = "SOCKET", help_heading = "Hosts")]
    pub hosts: Option<PathBuf>,
    /// Where the results go.
    #[command(flatten)]
    pub results: Results,
}

/// `fathom plan`.
#[derive(Clone, Debug, ClapArgs)]
pub struct Plan {
    /// How often.
    #[command(flatten)]
    pub repeated: Repeated,
    /// What is to be measured.
    #[command(flatten)]
    pub request: Request,
    /// Show what each of many hosts would do, through the router at this socket. `fathom-hosts
    /// check` sets this option
    #[arg(long, value_name = "SOCKET", help_heading = "Hosts")]
    pub hosts: Option<PathBuf>,
}

/// `fathom sweep`.
#[derive(Clone, Debug, ClapArgs)]
pub struct Sweep {
    /// A setting that varies: NAME=VALUES, once for each axis. NAME is an option of `fathom run`
    /// (users.rate is the rate of the stream `users`), a variable of the workload, targets, streams
    /// (how many copies of the stream run together), or random-share (0% is sequential, 100% is
    /// random). VALUES are a list (4k,64k), a range (1..8, 0%..100%/25%), a range by factors
    /// (1..256*2), or the beginning of a series (1,2,4..256); a+b measures two targets together
    #[arg(long, value_name = "NAME=VALUES", value_parser = axes::axis, help_heading = "Sweep")]
    pub axis: Vec<AxisArg>,
    /// How it goes about it.
    #[command(flatten)]
    pub course: SweepArgs,
    /// Measure on many hosts at the same time, through the router at this socket. `fathom-hosts`
    /// sets this option. With it, `hosts` is an axis: hosts=1,2,4..N
    #[arg(long, value_name = "SOCKET", help_heading = "Hosts")]
    pub hosts: Option<PathBuf>,
    /// What is measured, except where an axis says otherwise.
    #[command(flatten)]
    pub request: Request,
    /// How it begins.
    #[command(flatten)]
    pub start: StartArgs,
    /// Where the results go.
    #[command(flatten)]
    pub results: Results,
}

/// `fathom ab`.
#[derive(Clone, Debug, ClapArgs)]
#[command(override_usage = "fathom ab [OPTIONS] [WORKLOAD] A [B]")]
pub struct Ab {
    /// Run this command by `sh -c` on this machine before each trial of A: what makes A differ from
    /// B, if no option of fathom does. If it fails, everything ends
    #[arg(long, value_name = "COMMAND", help_heading = "Comparison")]
    pub before_a: Option<String>,
    /// Run this command in the same way before each trial of B. A may be the only target if
    /// --before-a or --before-b is given
    #[arg(long, value_name = "COMMAND", help_heading = "Comparison")]
    pub before_b: Option<String>,
    /// The largest number of pairs of trials, at least 2. The comparison ends earlier once every
    /// figure is decided
    #[arg(long, value_name = "NUMBER", allow_hyphen_values = true, default_value_t = 10,
          value_parser = values::whole::<u32>(2, 1000), help_heading = "Comparison")]
    pub repeats: u32,
    /// The largest share by which figures may differ and still count as the same
    #[arg(long, value_name = "SHARE", allow_hyphen_values = true, default_value = "5%",
          value_parser = values::share, help_heading = "Comparison")]
    pub margin: f64,
    /// The sides, and the load of both. A side in quotes may have options of its own: 'test.dat -q 4'.
    #[command(flatten)]
    pub request: Request,
    /// How it begins.
    #[command(flatten)]
    pub start: StartArgs,
    /// Where the results go.
    #[command(flatten)]
    pub results: Results,
}

/// `fathom study`.
#[derive(Clone, Debug, ClapArgs)]
pub struct Study {
    /// Which; without one they are listed.
    #[command(subcommand)]
    pub which: Option<StudyOf>,
}

/// The classic studies, each with the options of the experiment that it is.
#[derive(Clone, Debug, Subcommand)]
pub enum StudyOf {
    /// How many writers saturate a target? Are zeros too fast?
    WriteConcurrency(Box<Sweep>),
    /// How do arrays scale with their disks under 1 to 4 streams?
    MultiStream(Box<Sweep>),
    /// How long do reads take beside every write load?
    #[command(name = "latency-map")]
    Map(Box<StudyMap>),
    /// What does random access among sequential access cost?
    AccessMix(Box<Sweep>),
    /// What does a workload reach, as DiskSpd's guide measures it?
    BestPractice(Box<Peak>),
}

/// `fathom study latency-map`.
#[derive(Clone, Debug, ClapArgs)]
pub struct StudyMap {
    /// The map, as far as the spec does not say it.
    #[command(flatten)]
    pub map: Map,
    /// A workload file of your own with a `[map]` table
    #[arg(long, value_name = "FILE", help_heading = "Map")]
    pub workload: Option<String>,
    /// The options that were typed.
    #[arg(skip)]
    pub typed: Vec<Typed>,
}

/// How a sweep goes about it: the keys of `[sweep]` in a workload file, too.
#[derive(Clone, Debug, Default, ClapArgs)]
#[command(next_help_heading = "Sweep")]
pub struct SweepArgs {
    /// The number of times each combination is measured [default: 1]
    #[arg(long, value_name = "NUMBER", allow_hyphen_values = true,
          value_parser = values::whole::<u32>(1, 1000))]
    pub repeats: Option<u32>,
    /// The order of the combinations: shuffled, differently in each repeat, or as they are given
    /// [default: shuffled]
    #[arg(long, value_enum)]
    pub order: Option<OrderArg>,
    /// The pause between two points, without load [default: 0s]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub rest: Option<Span>,
    /// Before each point, write the region that it addresses this many times, from beginning to end
    /// in blocks of 128 KiB, so that every point finds the same state [default: none]
    #[arg(long, value_name = "TIMES|none", allow_hyphen_values = true,
          value_parser = values::passes)]
    pub prepare: Option<Passes>,
    /// End a point early and do not repeat it if it is clearly worse than the best
    #[arg(long)]
    pub cut_off: bool,
    /// Measure this value of an axis only once, beside the same settings with another value, in a
    /// random repeat: payload=zeros
    #[arg(long, value_name = "NAME=VALUE", value_parser = axes::value)]
    pub once: Vec<(String, String)>,
    /// The share of the best throughput that counts as saturated [default: 95%]
    #[arg(long, value_name = "SHARE", allow_hyphen_values = true, value_parser = values::share)]
    pub enough: Option<f64>,
}

/// The order of a sweep's combinations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum OrderArg {
    /// A different order in each repeat, by the seed, so that a drift is not taken for an effect
    Shuffled,
    /// The first axis varies slowest
    AsGiven,
}

/// `fathom resume`.
#[derive(Clone, Debug, ClapArgs)]
pub struct Resume {
    /// The result file of an experiment that Ctrl-C, a crash or a reboot interrupted
    pub result: PathBuf,
    /// Continue on the hosts, through the router at this socket. `fathom-hosts resume` sets this
    /// option
    #[arg(long, value_name = "SOCKET", help_heading = "Hosts")]
    pub hosts: Option<PathBuf>,
    /// The command before each trial of A. Type it again: fathom runs no command from a result file
    #[arg(long, value_name = "COMMAND")]
    pub before_a: Option<String>,
    /// The command before each trial of B. Type it again: fathom runs no command from a result file
    #[arg(long, value_name = "COMMAND")]
    pub before_b: Option<String>,
    /// What may be written to. It is given again, because a result file consents to nothing.
    #[command(flatten)]
    pub consent: Consent,
    /// The reports beside it.
    #[command(flatten)]
    pub written: Reports,
}

impl Args {
    /// Reads the command line of this process; ends the process if that cannot be read.
    pub fn read() -> Self {
        let words = words_of_this_process();
        let read = |words: &[OsString]| {
            let matches = help::read(&Self::command(), words);
            matches.and_then(|matches| Self::from_matches(&matches))
        };
        read(&words).unwrap_or_else(|error| answer(&error, &words, &|words| read(words).err()))
    }

    /// The whole command line, as manual pages and completions show it.
    pub fn documented() -> clap::Command {
        help::documented(Self::command(), DiskspdOwn::command())
    }

    /// Reads words that were typed once, the program's name first.
    ///
    /// # Errors
    ///
    /// When this version does not understand them.
    pub fn reread(words: &[String]) -> Result<Self, clap::Error> {
        Self::from_matches(&Self::command().try_get_matches_from(words)?)
    }

    /// The consent and the outputs of an experiment's command line.
    pub fn of_experiment(&mut self) -> Option<(&mut Consent, &mut Results)> {
        match &mut self.command {
            Command::Sweep(args) => Some((&mut args.request.consent, &mut args.results)),
            Command::Ab(args) => Some((&mut args.request.consent, &mut args.results)),
            Command::Peak(args) => Some((&mut args.request.consent, &mut args.results)),
            Command::Sustain(args) => Some((&mut args.request.consent, &mut args.results)),
            Command::Map(args) => Some((&mut args.consent, &mut args.results)),
            Command::Study(Study { which: Some(which) }) => match which {
                StudyOf::WriteConcurrency(sweep)
                | StudyOf::MultiStream(sweep)
                | StudyOf::AccessMix(sweep) => {
                    Some((&mut sweep.request.consent, &mut sweep.results))
                }
                StudyOf::Map(study) => Some((&mut study.map.consent, &mut study.map.results)),
                StudyOf::BestPractice(peak) => Some((&mut peak.request.consent, &mut peak.results)),
            },
            _ => None,
        }
    }

    /// The conditions under which the result of this command line fails.
    pub fn fail_if(mut self) -> Vec<Threshold> {
        let results = match &mut self.command {
            Command::Run(run) => Some(&mut run.results),
            Command::Quick(quick) => Some(&mut quick.results),
            Command::Watch(watch) => return std::mem::take(&mut watch.fail_if),
            _ => self.of_experiment().map(|(_, results)| results),
        };
        results.map(|results| std::mem::take(&mut results.fail_if)).unwrap_or_default()
    }

    /// The conditions under which the result of a recorded command line fails. A line that this version does
    /// not know has none that it knows.
    pub fn recorded_conditions(words: &[String]) -> Vec<Threshold> {
        Self::reread(words).map(Self::fail_if).unwrap_or_default()
    }

    fn from_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut args = Self::from_arg_matches(matches)?;
        let typed_of = match &mut args.command {
            Command::Run(run) => &mut run.request.typed,
            Command::Sweep(sweep) => &mut sweep.request.typed,
            Command::Ab(ab) => &mut ab.request.typed,
            Command::Peak(peak) => &mut peak.request.typed,
            Command::Sustain(sustain) => &mut sustain.request.typed,
            Command::Plan(plan) => &mut plan.request.typed,
            Command::Study(Study { which: Some(which) }) => match which {
                StudyOf::WriteConcurrency(sweep)
                | StudyOf::MultiStream(sweep)
                | StudyOf::AccessMix(sweep) => &mut sweep.request.typed,
                StudyOf::Map(study) => &mut study.typed,
                StudyOf::BestPractice(peak) => &mut peak.request.typed,
            },
            _ => return Ok(args),
        };
        // The innermost of them has the options.
        let (mut command, mut matches) = (&Self::command(), matches);
        while let Some((name, inner)) = matches.subcommand() {
            command = command.find_subcommand(name).expect("it was read with this definition");
            matches = inner;
        }
        *typed_of = typed(command, matches);
        Ok(args)
    }
}

/// The options with a long name that were typed.
fn typed(command: &clap::Command, matches: &ArgMatches) -> Vec<Typed> {
    let mut found = Vec::new();
    for option in command.get_arguments() {
        let (Some(name), id) = (option.get_long(), option.get_id().as_str()) else { continue };
        if matches.value_source(id) != Some(ValueSource::CommandLine) {
            continue;
        }
        let values = matches.get_raw(id).filter(|_| option.get_action().takes_values());
        let values = values.into_iter().flatten().map(|value| value.to_string_lossy());
        let values: Vec<String> = values.map(Cow::into_owned).collect();
        let mut add = |value| found.push(Typed { name: name.to_owned(), value });
        match (option.get_action(), option.get_value_delimiter()) {
            (_, Some(delimiter)) => add(Some(values.join(&delimiter.to_string()))),
            (ArgAction::Append, None) => values.into_iter().for_each(|value| add(Some(value))),
            (_, None) => add(values.into_iter().next_back()),
        }
    }
    found
}

/// `fathom workloads`.
#[derive(Clone, Debug, ClapArgs)]
pub struct Workloads {
    /// The workload to print as TOML
    pub name: Option<String>,
    /// Print the JSON Schema of workload files, for editors
    #[arg(long)]
    pub schema: bool,
}

/// `fathom map`.
#[derive(Clone, Debug, ClapArgs)]
pub struct Map {
    /// A file, a block device, or a simulated device such as sim:ssd
    pub target: PathBuf,
    /// The number of steps of the write load and of the read load, including no load
    #[arg(long, value_name = "WRITESxREADS", default_value = "21x21", value_parser = values::grid,
          help_heading = "Map")]
    pub grid: (u32, u32),
    /// The percentiles of the response time of reads
    #[arg(long, value_name = "LIST", default_value = "50,95,99,99.9", value_delimiter = ',',
          value_parser = values::percentile, help_heading = "Map")]
    pub percentiles: Vec<Quantile>,
    /// Measure every cell, including those that follow from the others
    #[arg(long, help_heading = "Map")]
    pub exhaustive: bool,
    /// The time after which a cell ends if it is exact enough [default: 5s; 30s for a hard disk]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, help_heading = "Map")]
    pub cell_time: Option<Span>,
    /// The time after which a cell ends in any case [default: six times --cell-time; twice for a
    /// hard disk]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, help_heading = "Map")]
    pub cell_time_max: Option<Span>,
    /// The precision of the median; p95 may be half as precise, p99 a quarter
    #[arg(long, value_name = "SHARE", allow_hyphen_values = true, default_value = "5%",
          value_parser = values::share, help_heading = "Map")]
    pub tolerance: f64,
    /// The share by which the target may fall behind the offered load in a cell that it carries
    /// [default: 3%; 15% for a hard disk]
    #[arg(long, value_name = "SHARE", allow_hyphen_values = true, value_parser = values::share,
          help_heading = "Map")]
    pub allowed_error: Option<f64>,
    /// Before the map, write the region that it addresses this many times, from beginning to end in
    /// blocks of 128 KiB, so that no read finds unwritten blocks [default: none]
    #[arg(long, value_name = "TIMES|none", allow_hyphen_values = true,
          value_parser = values::passes, help_heading = "Map")]
    pub prefill: Option<Passes>,
    /// Trim sequentially beside the writes; the share of the written bytes, 100% as in Diskplorer.
    /// The trims follow the writes of their cell in the load before its window (--ramp). Reads then
    /// use the first half of the region, and writes and trims the second half [default: none]
    #[arg(long, value_name = "SHARE", allow_hyphen_values = true, value_parser = values::share,
          help_heading = "Map")]
    pub trim_share: Option<f64>,
    /// The end of the write axis, such as 800MB/s [default: the bandwidth of writes alone]
    #[arg(long, value_name = "BANDWIDTH", value_parser = rates::offered, help_heading = "Map")]
    pub write_max: Option<Offered>,
    /// The end of the read axis in reads per second, such as 200k [default: the rate of reads
    /// alone]
    #[arg(long, value_name = "RATE", value_parser = rates::offered, help_heading = "Map")]
    pub read_max: Option<Offered>,
    /// The load before each window; it is not recorded
    #[arg(
        long,
        value_name = "TIME",
        allow_hyphen_values = true,
        default_value = "1s",
        help_heading = "Map"
    )]
    pub ramp: Span,
    /// The bytes that one read moves
    #[arg(short, long, value_name = "SIZE", allow_hyphen_values = true,
          default_value = "4k", value_parser = values::size, help_heading = "Load")]
    pub block_size: Bytes,
    /// The bytes that one write moves
    #[arg(long, value_name = "SIZE", allow_hyphen_values = true,
          default_value = "128k", value_parser = values::size, help_heading = "Load")]
    pub write_block_size: Bytes,
    /// The most reads in flight. Reads that are due beyond it wait, and their wait counts
    #[arg(short, long, value_name = "DEPTH", default_value_t = 1024,
          value_parser = values::whole::<u32>(1, u32::MAX), help_heading = "Load")]
    pub queue_depth: u32,
    /// The most writes in flight
    #[arg(long, value_name = "DEPTH", default_value_t = 64,
          value_parser = values::whole::<u32>(1, u32::MAX), help_heading = "Load")]
    pub write_queue_depth: u32,
    /// The threads that read; one more writes [default: 2; 1 on a simulated device, which has
    /// virtual time]
    #[arg(short, long, value_name = "NUMBER",
          value_parser = values::whole::<u32>(1, u32::MAX), help_heading = "Load")]
    pub workers: Option<u32>,
    /// Repeat the offsets, the arrivals and the order of an earlier map [default: a new seed each
    /// time]
    #[arg(long, value_name = "NUMBER", allow_hyphen_values = true, value_parser = values::seed,
          help_heading = "Load")]
    pub seed: Option<u64>,
    /// How the target is accessed.
    #[command(flatten)]
    pub access: AccessArgs,
    /// What may be written to.
    #[command(flatten)]
    pub consent: Consent,
    /// How it begins.
    #[command(flatten)]
    pub start: StartArgs,
    /// Where the results go.
    #[command(flatten)]
    pub results: Results,
}

/// `fathom inspect`.
#[derive(Clone, Debug, ClapArgs)]
pub struct Inspect {
    /// A file, a folder or a block device; with --probe also a simulated device
    pub target: PathBuf,
    /// Find out by writing whether the target compresses, deduplicates or skips zeros. The probe
    /// writes unique data, compressible data and zeros in turns for about 13 s, at most 3.25 GiB in
    /// a region of 128 MiB. It destroys what is there, so it needs --overwrite or --destroy
    #[arg(long)]
    pub probe: bool,
    /// The start of the region that the probe writes to [default: 0]
    #[arg(long, value_name = "SIZE", allow_hyphen_values = true, requires = "probe",
          value_parser = values::size)]
    pub offset: Option<Bytes>,
    /// The size of that region [default: 128 MiB, which is also the most]
    #[arg(long, value_name = "SIZE", allow_hyphen_values = true, requires = "probe",
          value_parser = values::size)]
    pub size: Option<Bytes>,
    /// What may be written to.
    #[command(flatten)]
    pub consent: Consent,
}

/// `fathom prepare`.
#[derive(Clone, Debug, ClapArgs)]
pub struct Prepare {
    /// The file to create; a file that already fits is used again
    pub file: PathBuf,
    /// The size that the file must have
    #[arg(long, value_name = "SIZE", allow_hyphen_values = true, value_parser = values::size)]
    pub size: Bytes,
    /// The number of threads that write
    #[arg(long, value_name = "NUMBER", allow_hyphen_values = true, default_value_t = 4,
          value_parser = values::whole::<u32>(1, 64))]
    pub writers: u32,
    /// The bytes that one write moves
    #[arg(short, long, value_name = "SIZE", allow_hyphen_values = true,
          default_value = "1m", value_parser = values::size)]
    pub block_size: Bytes,
    /// The share of the data that compression saves: 50%
    #[arg(long, value_name = "SHARE", allow_hyphen_values = true,
          default_value = "0%", value_parser = values::share)]
    pub compressible: f64,
    /// The share of the blocks of 4 KiB that repeat an earlier one: 30%
    #[arg(long, value_name = "SHARE", allow_hyphen_values = true,
          default_value = "0%", value_parser = values::share)]
    pub dedup: f64,
    /// Repeat the data of an earlier file [default: a new seed each time]
    #[arg(long, value_name = "NUMBER", allow_hyphen_values = true, value_parser = values::seed)]
    pub seed: Option<u64>,
    /// Allow overwriting a file that exists and does not fit: its data is lost
    #[arg(long)]
    pub overwrite: bool,
    /// Remove what a killed `prepare` of this file has left, without asking
    #[arg(long)]
    pub remove_leftovers: bool,
}

/// `fathom calibrate`.
#[derive(Clone, Debug, ClapArgs)]
pub struct Calibrate {
    /// The time of each of about ten runs, from 10ms to 60s
    #[arg(short, long, value_name = "TIME", allow_hyphen_values = true, default_value = "200ms")]
    pub duration: Span,
    /// The backend that carries the I/Os: auto, uring, aio or sync
    #[arg(long, value_name = "NAME", default_value = "auto", value_parser = values::backend)]
    pub backend: Backend,
    /// Write the figures as JSON [default: no file]
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Print the figures as JSON to stdout and everything else to stderr
    #[arg(long)]
    pub json: bool,
}

/// `fathom export`.
#[derive(Clone, Debug, ClapArgs)]
pub struct Export {
    /// A result file
    pub result: PathBuf,
    /// The format
    #[arg(long, value_enum)]
    pub format: ExportFormat,
    /// The file to write [default: stdout]
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
}

/// Formats of other programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ExportFormat {
    /// A latency map as JSON for the chart script of Diskplorer (latency-postprocess.py)
    Diskplorer,
}

/// `fathom import`.
#[derive(Clone, Debug, ClapArgs)]
pub struct Import {
    /// The output of fio with --output-format=json or json+, or of Diskplorer. The jobs of several
    /// files become one result
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// The result file [default: named after the first file and the time, in the folder of --results]
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// The folder of results without a name of their own [default: FATHOM_RESULTS, or the current
    /// folder]
    #[arg(long, value_name = "FOLDER", conflicts_with = "out")]
    pub results: Option<PathBuf>,
    /// The share by which a cell of Diskplorer's may miss its rates and still count as carried
    #[arg(long, value_name = "SHARE", allow_hyphen_values = true, default_value = "3%",
          value_parser = values::share)]
    pub allowed_error: f64,
}

/// `fathom history`.
#[derive(Clone, Debug, ClapArgs)]
pub struct HistoryArgs {
    /// A folder with result files (*.jsonl); its subfolders are read, too
    pub folder: PathBuf,
    /// The figure to follow: iops, bandwidth, mean, max, or a percentile such as p99; several are
    /// possible [default: iops and p99; mean and p99 of an open loop]
    #[arg(long, value_name = "NAME", value_parser = metric)]
    pub metric: Vec<Metric>,
    /// Join the results of different hosts, whose files have the same path
    #[arg(long)]
    pub any_host: bool,
    /// Write a self-contained HTML report instead of showing the report
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Open the HTML report in the browser when it is written: with xdg-open, or with the program in
    /// $BROWSER
    #[arg(long)]
    pub open: bool,
    /// Write the report as Markdown instead of showing it
    #[arg(long, value_name = "FILE")]
    pub markdown: Option<PathBuf>,
    /// Write a table with a row for each result and figure instead of showing the report
    #[arg(long, value_name = "FILE")]
    pub csv: Option<PathBuf>,
    /// Print the history as JSON
    #[arg(long, conflicts_with_all = ["details", "width"])]
    pub json: bool,
    /// Name every file and trial that is not used
    #[arg(long)]
    pub details: bool,
    /// The columns of the report in the terminal [default: the width of the terminal]
    #[arg(long, value_name = "COLUMNS", allow_hyphen_values = true,
          value_parser = values::whole::<u16>(80, 1000))]
    pub width: Option<u16>,
}

/// `fathom report`.
#[derive(Clone, Debug, ClapArgs)]
pub struct Report {
    /// A result file
    pub result: PathBuf,
    /// Write a self-contained HTML report instead of showing the report
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Open the HTML report in the browser when it is written: with xdg-open, or with the program in
    /// $BROWSER
    #[arg(long)]
    pub open: bool,
    /// Write the report as Markdown, for issues and wikis; without FILE, show it as Markdown
    #[arg(long, value_name = "FILE", num_args = 0..=1)]
    pub markdown: Option<Option<PathBuf>>,
    /// Print the summary as JSON: the answer, the verdict, and the figures of each result, or of each
    /// disk that was watched
    #[arg(long, conflicts_with_all = ["html", "markdown", "csv", "csv_series", "cells", "svg", "png", "details", "width", "open"])]
    pub summary: bool,
    /// Write the figures of every trial as CSV instead of showing the report
    #[arg(long, value_name = "FILE")]
    pub csv: Option<PathBuf>,
    /// Write the series over time as CSV instead of showing the report: a row for each trial,
    /// stream, interval and direction
    #[arg(long, value_name = "FILE")]
    pub csv_series: Option<PathBuf>,
    /// Write the cells of a latency map as CSV instead of showing the report
    #[arg(long, value_name = "FILE")]
    pub cells: Option<PathBuf>,
    /// Draw the result as SVG; several charts of an experiment each become FILE-NAME.svg
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
    /// Draw the result as PNG; several charts of an experiment each become FILE-NAME.png
    #[arg(long, value_name = "FILE")]
    pub png: Option<PathBuf>,
    /// The chart that --svg and --png write; an unknown name lists the charts
    #[arg(long, value_name = "NAME")]
    pub chart: Option<String>,
    /// Show every trial in full, and the evidence of each doubt with advice
    #[arg(long)]
    pub details: bool,
    /// End with exit code 6 if this holds for a result or a watched disk: 'p99>2ms', 'mean>1ms',
    /// 'max>1s', 'iops<50k', 'bandwidth<1GB/s'; for a result alone: suspect or void; for `ab` alone:
    /// 'p99 worse than 5%'; with exit code 7 if it is undecided; several are possible
    #[arg(long, value_name = "CONDITION", value_parser = threshold)]
    pub fail_if: Vec<Threshold>,
    /// The columns of the report in the terminal [default: the width of the terminal]
    #[arg(long, value_name = "COLUMNS", allow_hyphen_values = true,
          value_parser = values::whole::<u16>(80, 1000))]
    pub width: Option<u16>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_that_is_refused_is_named_once() {
        for (words, said) in [
            (["-q", "0"], "--queue-depth 0: it is no number from 1 to"),
            (["-b", "4x"], "--block-size 4x: 'x' is not a unit of size"),
            (["--sync", "dsinc"], "--sync dsinc: it is unknown (did you mean 'dsync'?)"),
            (["--fail-if", "p99>2"], "--fail-if 'p99>2': '2' has no unit"),
        ] {
            let line =
                ["fathom", "run", "sim:ssd"].iter().chain(&words).map(|word| (*word).to_owned());
            let error = Args::reread(&line.collect::<Vec<_>>()).unwrap_err();
            let text = in_one_line(&error);
            assert!(text.starts_with(said), "{text}");
        }
    }
}
