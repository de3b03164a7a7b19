//! The two helps of each command. `--help` lists every option in its group. `-h` fits a screen of 25
//! lines: it shows the options that most people need, each on one line, and examples to copy.
//!
//! This file only chooses and shortens. It never defines an option.

use std::collections::BTreeMap;
use std::ffi::OsString;

use clap::error::ErrorKind;
use clap::{Arg, ArgAction, ArgMatches, Command};

use crate::error::exit;
use crate::shipped;

/// An option or argument in `-h`: its long name or its id, and its help in a few words.
type Shown = (&'static str, &'static str);

/// The help of one command.
struct Brief {
    /// The words after `fathom`.
    command: &'static str,
    /// The arguments and options that `-h` shows.
    rows: &'static [&'static [Shown]],
    /// Command lines to copy. Both helps show them.
    examples: &'static [&'static str],
}

const TARGETS: &[Shown] = &[("targets", "Files, folders, devices, sim:ssd; first a workload")];
const TARGET: &[Shown] = &[("target", "A file, a block device, or sim:ssd")];
const RESULT: &[Shown] = &[("result", "A result file")];
const LOAD: &[Shown] = &[
    ("block-size", "The bytes that one I/O moves"),
    ("read-share", "The share of reads, such as 70%"),
    ("pattern", "random, sequential, zipf:1.1"),
    ("queue-depth", "The I/Os in flight, all together [default: 32]"),
    ("workers", "The threads for each target"),
    ("rate", "Open loop: start I/Os at this rate: 10k or 1GB/s"),
    ("duration", "The time that is measured [default: 30s]"),
];
/// The load of an experiment that chooses the depth and the rate itself.
const MIX: &[Shown] = &[
    ("block-size", "The bytes that one I/O moves"),
    ("read-share", "The share of reads, such as 70%"),
    ("pattern", "random, sequential, zipf:1.1"),
    ("duration", "The time that is measured"),
];
const PROMISED: &[Shown] = &[("rated-iops", "The IOPS that were promised: 500k")];
const CONSENT: &[Shown] = &[
    ("overwrite", "Allow writes to files that exist"),
    ("destroy", "Allow writes to this device; repeat its name"),
];
const START: &[Shown] =
    &[("plan", "Show what it would do, and start nothing"), ("yes", "Begin without asking")];
const RESULTS: &[Shown] = &[
    ("out", "The result file"),
    ("html", "Write an HTML report"),
    ("fail-if", "Exit code 6 if this holds: 'p99>2ms'"),
];
const OPEN: &[Shown] = &[("open", "Open the HTML report in the browser")];

const SWEEP: &[Shown] = &[
    ("axis", "A setting that varies: queue-depth=1,2,4..256"),
    ("repeats", "How often each combination is measured [default: 1]"),
    ("cut-off", "Give up combinations that are clearly worse"),
];
const PEAK: &[Shown] = &[
    ("vary", "What rises: queue-depth or workers"),
    ("objective", "Find the highest load that meets it: 'p99<=2ms'"),
    ("official", "The window of the last run, or none"),
];
const MAP: &[Shown] = &[
    ("grid", "The steps of both loads"),
    ("exhaustive", "Measure every cell"),
    ("cell-time", "The time of a cell [default: 5s]"),
    ("block-size", "The bytes that one read moves"),
    ("write-block-size", "The bytes that one write moves"),
];

/// All commands that have a help of their own.
const ALL: &[Brief] = &[
    Brief {
        command: "",
        rows: &[],
        examples: &[
            "fathom quick                            # the storage under this folder",
            "fathom prepare test.dat --size 10g      # a file to measure on",
            "fathom run test.dat -b 8k --read-share 70% -q 32 --overwrite",
        ],
    },
    Brief {
        command: "quick",
        rows: &[
            &[
                ("path", "A folder, a file, a device or sim:ssd"),
                ("size", "The size of the scratch file"),
                ("duration", "The time that each step measures"),
                ("repeats", "How often each step is measured"),
                ("buffered", "Use the page cache"),
                ("no-probe", "Do not look for compression beforehand"),
            ],
            PROMISED,
            CONSENT,
            RESULTS,
            OPEN,
        ],
        examples: &[
            "fathom quick                    # the storage under this folder",
            "fathom quick /dev/nvme0n1       # a device; it is only read",
            "fathom quick /mnt/data --size 4g --html portrait.html",
        ],
    },
    Brief {
        command: "run",
        rows: &[TARGETS, LOAD, PROMISED, CONSENT, RESULTS, OPEN],
        examples: &[
            "fathom run test.dat -q 32 -d 10s --repeats 5",
            "fathom run test.dat -b 8k --read-share 70% --overwrite",
            "fathom run /dev/nvme0n1 --rate 10k --html report.html",
        ],
    },
    Brief {
        command: "plan",
        rows: &[TARGETS, LOAD, CONSENT],
        examples: &[
            "fathom plan /dev/nvme0n1 --read-share 0% --destroy /dev/nvme0n1",
            "fathom plan oltp test.dat --set depth=64 --overwrite",
        ],
    },
    Brief {
        command: "sweep",
        rows: &[TARGETS, SWEEP, MIX, CONSENT, START, RESULTS],
        examples: &[
            "fathom sweep test.dat --axis queue-depth=1,2,4..256 --axis block-size=4k,64k",
            "fathom sweep --axis targets=/dev/sda,/dev/sdb -q 32",
            "fathom sweep test.dat --axis read-share=0%..100%/25% --overwrite --plan",
        ],
    },
    Brief {
        command: "ab",
        rows: &[
            &[
                ("targets", "A and B: targets, or 'TARGET --option value'"),
                ("before-a", "Run a command before each trial of A"),
                ("before-b", "Run a command before each trial of B"),
                ("repeats", "The most pairs of trials"),
                ("margin", "What counts as no difference"),
            ],
            &[
                ("block-size", "The bytes that one I/O moves"),
                ("read-share", "The share of reads, such as 70%"),
                ("queue-depth", "The I/Os in flight, all together [default: 32]"),
                ("duration", "The time of each trial [default: 30s]"),
            ],
            CONSENT,
            START,
            &[("out", "The result file"), ("html", "Write an HTML report")],
        ],
        examples: &[
            "fathom ab /dev/sda /dev/sdb -q 32",
            "fathom ab 'test.dat -q 16' 'test.dat -q 32' -d 10s",
            "fathom ab test.dat --before-a 'sync' --before-b 'true' --plan",
        ],
    },
    Brief {
        command: "study",
        rows: &[],
        examples: &[
            "fathom study                    # list them",
            "fathom study latency-map /dev/nvme0n1 --destroy /dev/nvme0n1",
            "fathom study best-practice sim:study-best-practice     # without a disk",
        ],
    },
    Brief {
        command: "study write-concurrency",
        rows: &[TARGETS, SWEEP, CONSENT, START, RESULTS],
        examples: &[
            "fathom study write-concurrency /dev/sdb --destroy /dev/sdb",
            "fathom study write-concurrency test.dat --overwrite --set bytes=2g",
            "fathom study write-concurrency sim:study-write-concurrency",
        ],
    },
    Brief {
        command: "study multi-stream",
        rows: &[TARGETS, SWEEP, CONSENT, START, RESULTS],
        examples: &[
            "fathom study multi-stream /dev/md0 --destroy /dev/md0 --plan",
            "fathom study multi-stream /dev/sdb --destroy /dev/sdb --html streams.html",
            "fathom study multi-stream sim:array,disks=1 sim:array,level=raid5,disks=4",
        ],
    },
    Brief {
        command: "study latency-map",
        rows: &[TARGET, MAP, CONSENT, START, RESULTS],
        examples: &[
            "fathom study latency-map /dev/nvme0n1 --destroy /dev/nvme0n1",
            "fathom study latency-map test.dat --overwrite --html map.html",
            "fathom study latency-map sim:grid --plan",
        ],
    },
    Brief {
        command: "study access-mix",
        rows: &[TARGETS, SWEEP, CONSENT, START, RESULTS],
        examples: &[
            "fathom study access-mix /dev/sdb --destroy /dev/sdb --plan",
            "fathom study access-mix /dev/sdb --destroy /dev/sdb --html mix.html",
            "fathom study access-mix sim:study-access-mix,drive=sas",
        ],
    },
    Brief {
        command: "study best-practice",
        rows: &[TARGETS, PEAK, CONSENT, START, RESULTS],
        examples: &[
            "fathom study best-practice /dev/nvme0n1 --destroy /dev/nvme0n1",
            "fathom study best-practice oltp test.dat --overwrite",
            "fathom study best-practice sim:study-best-practice",
        ],
    },
    Brief {
        command: "resume",
        rows: &[RESULT, CONSENT, &[("html", "Write an HTML report")]],
        examples: &[
            "fathom resume sweep-test.dat-20261122T081500Z.fathom.jsonl",
            "fathom resume map.fathom.jsonl --destroy /dev/nvme0n1 --html map.html",
        ],
    },
    Brief {
        command: "peak",
        rows: &[TARGETS, PEAK, MIX, CONSENT, START, RESULTS],
        examples: &[
            "fathom peak test.dat",
            "fathom peak test.dat --objective 'p99<=2ms'",
            "fathom peak /dev/nvme0n1 --vary workers --official none",
        ],
    },
    Brief {
        command: "sustain",
        rows: &[
            TARGETS,
            &[
                ("test", "workload, iops, ..."),
                ("at-least", "The shortest time of the load"),
                ("rounds", "The most rounds"),
            ],
            MIX,
            CONSENT,
            START,
            RESULTS,
        ],
        examples: &[
            "fathom sustain /dev/nvme0n1 --test iops --destroy /dev/nvme0n1",
            "fathom sustain test.dat --read-share 0% --at-least 10m --overwrite",
            "fathom sustain test.dat --test latency --overwrite --plan",
        ],
    },
    Brief {
        command: "map",
        rows: &[TARGET, MAP, CONSENT, START, RESULTS],
        examples: &[
            "fathom map test.dat --overwrite",
            "fathom map /dev/nvme0n1 --destroy /dev/nvme0n1 --html map.html",
            "fathom map sim:grid --plan",
        ],
    },
    Brief {
        command: "workloads",
        rows: &[&[
            ("name", "The workload to print as TOML"),
            ("schema", "Print the JSON Schema of workload files"),
        ]],
        examples: &["fathom workloads", "fathom workloads oltp > my.toml"],
    },
    Brief {
        command: "inspect",
        rows: &[
            &[
                ("target", "A file, a folder or a block device"),
                ("probe", "Write, to find compression and deduplication"),
            ],
            CONSENT,
        ],
        examples: &["fathom inspect /dev/md0", "fathom inspect test.dat --probe --overwrite"],
    },
    Brief {
        command: "watch",
        rows: &[&[
            ("targets", "Disks, or files and folders on them"),
            ("interval", "The time that each line sums up"),
            ("duration", "End after this time"),
            ("count", "End after this many intervals"),
            ("counters", "Only the kernel's counters: no percentiles"),
            ("plain", "Lines instead of a full screen"),
            ("csv", "Write a table"),
            ("out", "Keep everything in a result file"),
            ("fail-if", "Exit code 6 if this holds for a disk: 'p99>2ms'"),
            ("command", "Watch this command from its start to its end"),
        ]],
        examples: &[
            "fathom watch --count 3          # all real disks",
            "fathom watch /mnt/data/file --duration 2s --out watch.jsonl",
            "fathom watch . -- cp test.dat copy.dat",
        ],
    },
    Brief {
        command: "agent",
        rows: &[&[
            ("lease", "End if nothing is heard for this long"),
            ("out", "The result file of this host"),
            ("results", "The folder of results without a name"),
        ]],
        examples: &["fathom agent --lease 1m        # docs/agent.md describes the messages"],
    },
    Brief {
        command: "prepare",
        rows: &[&[
            ("file", "The file to create"),
            ("size", "The size that the file must have"),
            ("compressible", "The share that compression saves"),
            ("dedup", "The share of the blocks that repeat"),
            ("overwrite", "Allow overwriting a file that does not fit"),
        ]],
        examples: &[
            "fathom prepare test.dat --size 10g",
            "fathom prepare test.dat --size 10g --compressible 50% --overwrite",
        ],
    },
    Brief {
        command: "calibrate",
        rows: &[&[
            ("duration", "The time of each of about ten runs"),
            ("backend", "auto, uring, aio or sync"),
            ("out", "Write the figures as JSON"),
            ("json", "Print the figures as JSON"),
        ]],
        examples: &["fathom calibrate", "fathom calibrate --backend aio --json"],
    },
    Brief {
        command: "report",
        rows: &[
            RESULT,
            &[
                ("html", "Write a self-contained HTML report"),
                ("open", "Open it in the browser"),
                ("markdown", "Write Markdown, or show it"),
                ("csv", "Write the figures of every trial"),
                ("png", "Draw the result as an image"),
                ("summary", "Print the answer and the figures as JSON"),
                ("details", "Show every trial, and what each doubt rests on"),
                ("fail-if", "Exit code 6 if this holds: 'p99>2ms'"),
            ],
        ],
        examples: &[
            "fathom report old.fathom.jsonl",
            "fathom report old.fathom.jsonl --html old.html --open",
            "fathom report old.fathom.jsonl --fail-if 'p99>2ms'",
        ],
    },
    Brief {
        command: "compare",
        rows: &[&[
            ("results", "Result files; the first is what the others are compared with"),
            ("by", "Compare the values of an axis within one result"),
            ("match", "How points belong together"),
            ("margin", "The difference that does not matter"),
            ("metric", "The figures to compare: iops,p99"),
            ("fail-if", "Exit code 6 if this is shown: 'p99 worse than 5%'"),
            ("html", "Write a self-contained HTML report"),
            ("markdown", "Write Markdown for a pull request, or show it"),
            ("junit", "Write JUnit's XML for a CI server"),
            ("json", "Print the comparison as JSON"),
            ("details", "Show every point, and all that differs"),
        ]],
        examples: &[
            "fathom compare before.jsonl after.jsonl",
            "fathom compare before.jsonl after.jsonl --fail-if 'p99 worse than 5%'",
            "fathom compare depths.jsonl --by queue-depth --html depths.html",
        ],
    },
    Brief {
        command: "history",
        rows: &[&[
            ("folder", "A folder with result files"),
            ("metric", "iops, bandwidth, mean, max, or a percentile: p99"),
            ("any-host", "Join the results of different hosts"),
            ("html", "Write a self-contained HTML report"),
            ("open", "Open it in the browser"),
            ("markdown", "Write it as Markdown"),
            ("csv", "Write a row for each result and figure"),
            ("json", "Print it as JSON"),
            ("details", "Name every file that is not used"),
        ]],
        examples: &[
            "fathom history results",
            "fathom history results --metric p99.9 --html history.html",
        ],
    },
    Brief {
        command: "export",
        rows: &[
            RESULT,
            &[("format", "The format: diskplorer"), ("out", "The file to write [default: stdout]")],
        ],
        examples: &["fathom export map.fathom.jsonl --format diskplorer --out map.json"],
    },
    Brief {
        command: "import",
        rows: &[&[("files", "Results of fio or Diskplorer as JSON"), ("out", "The result file")]],
        examples: &[
            "fathom import old-fio.json --out old.fathom.jsonl",
            "fathom report old.fathom.jsonl --html old.html",
        ],
    },
    Brief {
        command: "completions",
        rows: &[&[("shell", "The shell: bash, zsh or fish")]],
        examples: &[
            "fathom completions bash > ~/.local/share/bash-completion/completions/fathom",
            "fathom completions zsh > ~/.zfunc/_fathom            # in $fpath",
            "fathom completions fish > ~/.config/fish/completions/fathom.fish",
        ],
    },
    Brief {
        command: "man",
        rows: &[&[("folder", "A man1 below a folder that `man` searches")]],
        examples: &["fathom man ~/.local/share/man/man1"],
    },
];

/// The commands that `fathom -h` leaves to `--help`.
const LESS_USED: [&str; 12] = [
    "plan",
    "resume",
    "history",
    "map",
    "workloads",
    "calibrate",
    "export",
    "import",
    "agent",
    "completions",
    "man",
    "diskspd",
];

/// The commands that do something useful without any argument.
const NEEDS_NO_ARGUMENT: [&str; 5] = ["quick", "study", "workloads", "calibrate", "agent"];

/// What `fathom --help` explains after its examples.
const NOTES: &str = "\
Sizes are typed as 4k, 12.8MiB, 1g (powers of two) or 500MB; times as 500ms, 30s, 5m.
Nothing that exists is written to unless you say so: a file with --overwrite, a device
with --destroy NAME.";

/// Reads words, the program's name first. Errors show the help that these words ask for: `-h` the
/// short one, as does a command without its arguments.
///
/// # Errors
///
/// When the words cannot be read, or ask for help.
pub fn read(command: &Command, words: &[OsString]) -> Result<ArgMatches, clap::Error> {
    let shortly = || brief(command.clone()).try_get_matches_from(words);
    // No option is spelled -h, and no option of one letter goes without a value, so that -h never
    // stands within another word.
    if words.iter().any(|word| word == "-h") {
        return shortly();
    }
    match complete(command.clone()).try_get_matches_from(words) {
        Err(error) if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            shortly()
        }
        read => read,
    }
}

/// The command with the help of `--help`.
pub fn complete(command: Command) -> Command {
    each(command, "", &|command, help| {
        let examples = examples(help);
        let text = match help.command {
            "" => format!("{examples}\n\n{NOTES}\n\n{}", exit::HELP),
            _ => examples,
        };
        command.after_help(text)
    })
}

/// The whole command line for what is generated from it: manual pages and completions. DiskSpd's
/// command becomes the one that has the options which it reads itself.
pub fn documented(command: Command, diskspd: Command) -> Command {
    let mut command = complete(command).mut_subcommand("diskspd", |listed| {
        let about = listed.get_about().cloned().unwrap_or_default();
        diskspd.name("diskspd").about(about)
    });
    command.build();
    command
}

/// The command with the help of `-h`.
fn brief(command: Command) -> Command {
    each(command, "", &|command, help| {
        let shown = |arg: &Arg| {
            let rows = help.rows.iter().copied().flatten();
            rows.copied().find(|(name, _)| arg.get_long().unwrap_or(arg.get_id().as_str()) == *name)
        };
        let positionals = match command.get_positionals().count() {
            0 => "",
            _ => "{positionals}\n",
        };
        let commands = match command.has_subcommands() {
            true => "{subcommands}\n\n",
            false => "",
        };
        let template = format!(
            "{{about}}\n\n{{usage-heading}} {{usage}}\n\n{commands}{positionals}{{options}}\
             {{after-help}}"
        );
        command
            .mut_args(|arg| match shown(&arg) {
                Some((_, text)) => {
                    let takes_value = arg.get_action().takes_values();
                    arg.help(text).hide_possible_values(takes_value)
                }
                None if arg.get_id() == "help" => arg,
                None => arg.hide(true),
            })
            .mut_subcommands(|inner| match LESS_USED.contains(&inner.get_name()) {
                true => inner.hide(true),
                false => inner,
            })
            .help_template(template)
            .after_help(examples(help))
            // The lines are short, and a narrow terminal breaks them itself.
            .term_width(0)
    })
}

/// Gives every command its help.
fn each(command: Command, path: &str, change: &dyn Fn(Command, &Brief) -> Command) -> Command {
    let Some(help) = ALL.iter().find(|help| help.command == path) else {
        // DiskSpd's command line has its own help.
        return command;
    };
    let needs_more = !NEEDS_NO_ARGUMENT.contains(&path);
    let asks = Arg::new("help")
        .short('h')
        .long("help")
        .action(ArgAction::Help)
        .help("Print help: -h the essentials, --help all");
    let command = command.disable_help_flag(true).arg(asks).arg_required_else_help(needs_more);
    let command = command.mut_subcommands(|inner| {
        let path = format!("{path} {}", inner.get_name()).trim_start().to_owned();
        each(inner, &path, change)
    });
    let command = change(command, help);
    match path.strip_prefix("study ") {
        Some(study) => with_defaults_of(study, command),
        None => command,
    }
}

/// Replaces the defaults of a sweep, a search or a map by those of the study. An option that the study
/// varies or takes from a variable has none.
fn with_defaults_of(study: &str, command: Command) -> Command {
    let lines = shipped::text(study).unwrap_or_default().lines();
    let keys: BTreeMap<&str, &str> = lines.filter_map(|line| line.split_once(" = ")).collect();
    command.mut_args(|arg| {
        let own = arg.get_long().and_then(|name| keys.get(name));
        let Some(value) = own.filter(|_| arg.get_action().takes_values()) else { return arg };
        let text = arg.get_help().map(ToString::to_string).unwrap_or_default();
        let text = text.split(" [default: ").next().unwrap_or_default().to_owned();
        let is_one = !value.contains(['[', '$', '*']) && !value.contains("..");
        let default = match is_one {
            true => format!("[default: {}]", value.trim_matches('"')),
            false => "[default: see below]".to_owned(),
        };
        arg.help(format!("{text} {default}")).hide_default_value(true)
    })
}

fn examples(help: &Brief) -> String {
    let lines: Vec<String> = help.examples.iter().map(|line| format!("  {line}")).collect();
    let settings = match help.command.strip_prefix("study ") {
        Some(study) => format!("\n\n`fathom workloads {study}` shows all settings of the study."),
        None => String::new(),
    };
    format!("Examples:\n{}{settings}", lines.join("\n"))
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::cli::args::Args;

    /// The text that fathom shows to these words.
    fn shown(words: &[&str]) -> String {
        let words: Vec<OsString> = words.iter().map(OsString::from).collect();
        read(&Args::command(), &words).unwrap_err().to_string()
    }

    /// All commands with a help of their own, from the definition.
    fn paths(command: &Command, path: &str, found: &mut Vec<String>) {
        if command.get_name() != "diskspd" {
            found.push(path.to_owned());
            for inner in command.get_subcommands() {
                paths(inner, format!("{path} {}", inner.get_name()).trim_start(), found);
            }
        }
    }

    fn all() -> Vec<String> {
        let mut found = Vec::new();
        paths(&Args::command(), "", &mut found);
        assert!(20 < found.len());
        found
    }

    fn help_of(path: &str, option: &str) -> String {
        let words: Vec<&str> = ["fathom"].into_iter().chain(path.split_whitespace()).collect();
        shown(&[&words[..], &[option]].concat())
    }

    /// The long options whose own lines these are.
    fn options(help: &str) -> Vec<&str> {
        let own = help.lines().filter_map(|line| {
            let margin = line.len() - line.trim_start().len();
            let line = line.trim_start().strip_prefix('-').filter(|_| margin <= 6)?;
            let at = match line.strip_prefix('-') {
                Some(long) => long,
                None => line.split_once(", --")?.1,
            };
            at.split([' ', '[', '=']).next()
        });
        own.collect()
    }

    #[test]
    fn the_short_help_of_every_command_fits_a_screen() {
        for path in all() {
            let help = help_of(&path, "-h");
            let lines = help.trim_end().lines().count();
            assert!(lines <= 25, "fathom {path} -h has {lines} lines:\n{help}");
            for line in help.lines() {
                assert!(line.chars().count() <= 80, "fathom {path} -h: {line}");
            }
            assert!(help.contains(&format!("\n  fathom {path}")), "no example:\n{help}");
            assert!(help.contains("--help"), "{help}");
        }
    }

    #[test]
    fn every_row_of_the_short_help_is_an_option_with_its_own_default() {
        for help in ALL {
            assert!(all().contains(&help.command.to_owned()), "{}", help.command);
            let shown = help_of(help.command, "-h");
            let complete =
                help_of(help.command, "--help").split_whitespace().collect::<Vec<_>>().join(" ");
            for (name, text) in help.rows.iter().copied().flatten() {
                // A study has defaults of its own.
                let is_study = help.command.starts_with("study ");
                let text = if is_study { text.split(" [").next().unwrap() } else { text };
                assert!(shown.contains(text), "{}: {name}: {shown}", help.command);
                if let Some((_, default)) = text.split_once("[default: ") {
                    let default = format!("[default: {}", default.trim_end_matches(']'));
                    assert!(complete.contains(&default), "{}: {name}: {default}", help.command);
                }
            }
        }
    }

    #[test]
    fn a_study_shows_its_own_defaults() {
        for (study, option, default) in [
            ("latency-map", "--cell-time ", "[default: 30s]"),
            ("latency-map", "--block-size ", "[default: 512]"),
            ("access-mix", "--block-size ", "[default: 64k]"),
            ("access-mix", "--duration ", "[default: 10s]"),
            ("write-concurrency", "--block-size ", "[default: see below]"),
        ] {
            for help in ["-h", "--help"] {
                let help = help_of(&format!("study {study}"), help);
                let Some((_, text)) = help.split_once(option) else { continue };
                let own = text.split("\n  -").next().unwrap();
                let own = own.split("\n      --").next().unwrap();
                let own = own.split_whitespace().collect::<Vec<_>>().join(" ");
                assert!(own.contains(default), "{study} {option}: {own}");
            }
        }
    }

    #[test]
    fn no_help_has_an_option_twice_or_an_option_with_two_defaults() {
        for path in all() {
            for option in ["-h", "--help"] {
                let help = help_of(&path, option);
                let found = options(&help);
                for name in &found {
                    let times = found.iter().filter(|other| other == &name).count();
                    assert_eq!(times, 1, "fathom {path} {option}: --{name}:\n{help}");
                }
            }
        }
        let mut commands = Vec::from([complete(Args::command())]);
        while let Some(mut command) = commands.pop() {
            command.build();
            for arg in command.get_arguments() {
                let text = arg.get_help().map(ToString::to_string).unwrap_or_default();
                let takes_value = arg.get_action().takes_values();
                let is_shown = takes_value && !arg.is_hide_default_value_set();
                let own = usize::from(is_shown && !arg.get_default_values().is_empty());
                let defaults = text.matches("[default").count() + own;
                assert!(defaults <= 1, "fathom {}: {arg}: {text}", command.get_name());
            }
            commands.extend(command.get_subcommands().cloned());
        }
    }

    #[test]
    fn the_long_help_has_every_option_in_a_group() {
        let help = help_of("run", "--help");
        for (heading, option) in [
            ("Load:", "--rate"),
            ("Access:", "--sync"),
            ("Consent:", "--destroy"),
            ("Results:", "--trace"),
        ] {
            let (_, group) = help.split_once(&format!("\n{heading}\n")).expect(heading);
            // The next heading is the next line without a margin.
            let group: Vec<&str> =
                group.lines().take_while(|line| line.is_empty() || line.starts_with(' ')).collect();
            let group = group.join("\n");
            assert!(options(&group).contains(&&option[2..]), "{heading} {option}: {group}");
        }
        let command = Args::command();
        let run = command.find_subcommand("run").unwrap();
        for name in run.get_arguments().filter_map(Arg::get_long) {
            assert!(options(&help).contains(&name), "--{name}: {help}");
        }
    }

    #[test]
    fn a_command_without_its_arguments_shows_what_to_type() {
        for path in ["", "run", "plan", "sweep", "peak", "map", "inspect", "study access-mix"] {
            let words: Vec<&str> = ["fathom"].into_iter().chain(path.split_whitespace()).collect();
            let help = shown(&words);
            assert_eq!(help, help_of(path, "-h"), "fathom {path}");
        }
    }
}
