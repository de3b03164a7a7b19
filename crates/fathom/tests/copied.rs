//! Runs the commands that people copy: every `fathom` in the README, in the pages of docs, and among
//! the examples of every help.
//!
//! A shell reads each line as it is written, and a stand-in for fathom takes down its arguments. Then
//! fathom gets these arguments, with files in place of the devices and with short times. What would
//! take hours is planned instead. Nothing else is changed.

mod common;

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;
use std::process::{Command, Output};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use common::{Place, code, stderr, stdout};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// The pages whose blocks of commands are run.
const PAGES: [&str; 14] = [
    "README.md",
    "docs/ab.md",
    "docs/ci.md",
    "docs/compare.md",
    "docs/diskspd.md",
    "docs/install.md",
    "docs/trace.md",
    "docs/watch.md",
    "docs/workloads.md",
    "docs/studies/access-mix.md",
    "docs/studies/best-practice.md",
    "docs/studies/latency-map.md",
    "docs/studies/multi-stream.md",
    "docs/studies/write-concurrency.md",
];

/// The commands of one line, each with its arguments.
#[derive(Clone, Debug)]
struct Line {
    from: String,
    text: String,
    commands: Vec<Vec<String>>,
}

/// The lines of a page's shell blocks that begin with fathom, and the commands in the README's
/// table.
fn lines_of_page(page: &str) -> Vec<String> {
    let text = std::fs::read_to_string(Path::new(ROOT).join(page)).unwrap();
    let text = text.replace("\\\n", " ");
    let mut lines = Vec::new();
    let mut in_block = false;
    for line in text.lines() {
        if line.starts_with("```") {
            in_block = line == "```sh";
        } else if in_block && line.starts_with("fathom ") {
            lines.push(line.to_owned());
        } else if page == "README.md" && line.starts_with("| ") {
            let code = line.split('`').skip(1).step_by(2);
            lines.extend(code.filter(|code| code.starts_with("fathom ")).map(ToOwned::to_owned));
        }
    }
    lines
}

/// The names of the commands that a help lists.
fn listed(help: &str) -> Vec<String> {
    let (_, list) = help.split_once("\nCommands:\n").unwrap();
    let names = list.lines().take_while(|line| !line.is_empty());
    let names = names.filter_map(|line| line.split_whitespace().next());
    names.filter(|name| *name != "help").map(ToOwned::to_owned).collect()
}

/// The examples of both helps of every command.
fn lines_of_help(place: &Place) -> Vec<(String, String)> {
    let top = listed(&stdout(&place.run(&["--help"])));
    let studies = listed(&stdout(&place.run(&["study", "--help"])));
    assert!(15 < top.len() && studies.len() == 5, "{top:?} {studies:?}");
    let mut all: Vec<Vec<&str>> = Vec::from([Vec::new()]);
    all.extend(top.iter().map(|name| Vec::from([name.as_str()])));
    all.extend(studies.iter().map(|name| Vec::from(["study", name.as_str()])));
    let mut lines = Vec::new();
    for words in all {
        // DiskSpd has an option -h of its own.
        let asks: &[&str] = if words == ["diskspd"] { &["--help"] } else { &["-h", "--help"] };
        for option in asks {
            let output = place.run(&[&words[..], &[option]].concat());
            assert_eq!(code(&output), 0, "{words:?} {option}: {}", stderr(&output));
            let help = stdout(&output);
            let examples = help.lines().filter_map(|line| line.strip_prefix("  "));
            let examples = examples.filter(|line| line.starts_with("fathom "));
            let from = format!("fathom {} {option}", words.join(" "));
            lines.extend(examples.map(|line| (from.clone(), line.to_owned())));
        }
    }
    lines
}

/// Every line, read by a shell.
fn lines() -> Vec<Line> {
    let place = Place::new();
    for folder in [".local/share/bash-completion/completions", ".zfunc", ".config/fish/completions"]
    {
        std::fs::create_dir_all(place.join("home").join(folder)).unwrap();
    }
    let mut all: Vec<(String, String)> = lines_of_help(&place);
    for page in PAGES {
        let found = lines_of_page(page);
        assert!(!found.is_empty(), "{page} has no commands");
        all.extend(found.into_iter().map(|line| (page.to_owned(), line)));
    }
    let mut known = BTreeSet::new();
    all.retain(|(_, line)| known.insert(line.split(" #").next().unwrap().trim().to_owned()));
    let read = all.into_iter().map(|(from, text)| {
        let commands = read_by_a_shell(&place, &text);
        assert!(!commands.is_empty() && commands.iter().all(|words| !words.is_empty()), "{text}");
        Line { from, text, commands }
    });
    read.collect()
}

/// The arguments of each fathom in a line, as bash divides it.
fn read_by_a_shell(place: &Place, line: &str) -> Vec<Vec<String>> {
    let taken = place.join("taken-down");
    let _ = std::fs::remove_file(&taken);
    let mut script = "fathom() { printf '%s\\0' \"$@\" '' >>taken-down; }\n".to_owned();
    writeln!(script, "{line}").unwrap();
    // A relative home makes a relative path of ~, which is the same in every folder of this test.
    let mut bash = Command::new("bash");
    let output = bash.args(["-ec", &script]).env("HOME", "home").current_dir(place.path()).output();
    let output = output.unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{line}: {}", stderr(&output));
    let bytes = std::fs::read_to_string(&taken).unwrap();
    let commands = bytes.trim_end_matches('\0').split("\0\0");
    commands.map(|words| words.split('\0').map(ToOwned::to_owned).collect()).collect()
}

/// The targets beside those of every page, with their sizes here in MiB.
const TARGETS: [(&str, u64); 7] = [
    ("io.dat", 16),
    ("dev/nvme0n1", 256),
    ("dev/ng0n1", 16),
    ("dev/sda", 256),
    ("dev/sdb", 256),
    ("dev/md0", 256),
    ("mnt/data/file", 1),
];

/// A folder with everything that the examples name.
fn place() -> Place {
    let place = Place::with_stand_ins(&TARGETS);
    for folder in ["mnt/g", "mnt/other", "examples", "data/tmp"] {
        std::fs::create_dir_all(place.join(folder)).unwrap();
    }
    let read = |name: &str| std::fs::read_to_string(Path::new(ROOT).join(name)).unwrap();
    let database = read("examples/database.toml").replace("/data/", "data/");
    std::fs::write(place.join("examples/database.toml"), database).unwrap();
    std::fs::write(place.join("my.toml"), "block-size = \"8k\"\n").unwrap();
    std::fs::write(place.join("old-fio.json"), read("tests/data/fio/two-jobs.json")).unwrap();
    place
}

/// A word with a stand-in for the devices and folders of another machine.
fn here(word: &str) -> String {
    word.replace("/dev/", "dev/").replace("/mnt/", "mnt/")
}

/// The arguments with a file wherever a device is named: a file has no `--destroy`.
fn on_files(words: &[String]) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    let mut rest = words.iter();
    while let Some(word) = rest.next() {
        if word == "--destroy" {
            rest.next();
            if !out.iter().any(|word| word == "--overwrite") {
                out.push("--overwrite".to_owned());
            }
        } else {
            out.push(here(word));
        }
    }
    out
}

/// The arguments with another value of an option.
fn with(mut words: Vec<String>, options: &[&str], value: &str) -> Vec<String> {
    match words.iter().position(|word| options.contains(&word.as_str())) {
        Some(at) => words[at + 1] = value.to_owned(),
        None => words.extend([options[0].to_owned(), value.to_owned()]),
    }
    words
}

/// The arguments that fathom gets here.
fn shortened(words: &[String]) -> Vec<String> {
    let words = on_files(words);
    let has = |option: &str| words.iter().any(|word| word == option);
    let simulated = words.iter().any(|word| word.starts_with("sim:"));
    match words[0].as_str() {
        // Virtual time is short already.
        "run" if simulated => words,
        "run" => with(with(words, &["--duration", "-d"], "100ms"), &["--warm-up"], "10ms"),
        "quick" => {
            let words = with(with(words, &["--duration"], "100ms"), &["--warm-up"], "10ms");
            let file = words.iter().any(|word| word.starts_with("dev/"));
            if file { words } else { with(words, &["--size"], "64m") }
        }
        // What follows -- is another program's.
        "watch" if has("--") => words,
        "watch" => {
            with(with(words, &["--duration", "-d"], "300ms"), &["--interval", "-i"], "100ms")
        }
        "prepare" => with(words, &["--size"], "4m"),
        "calibrate" => with(words, &["--duration"], "10ms"),
        "inspect" if has("--probe") => with(words, &["--size"], "2m"),
        "sweep" | "ab" | "peak" | "map" | "sustain" if !has("--plan") => {
            [&words[..], &["--plan".to_owned()]].concat()
        }
        "study" if words.len() > 1 && !has("--plan") => {
            [&words[..], &["--plan".to_owned()]].concat()
        }
        // The profile alone, as text.
        "diskspd" if !has("-Rp") => [&words[..1], &["-Rp".to_owned()], &words[1..]].concat(),
        _ => words,
    }
}

/// Makes what the command reads, or removes what it creates.
fn prepare(place: &Place, words: &[String]) {
    let file = || words.iter().skip(1).find(|word| !word.starts_with('-')).unwrap();
    match words[0].as_str() {
        "prepare" if !words.iter().any(|word| word == "--overwrite") => {
            std::fs::remove_file(place.join(file())).unwrap();
        }
        "resume" => interrupted(place, file(), words.iter().any(|word| word == "--overwrite")),
        "report" if !place.join(file()).exists() => {
            let run = ["run", "sim:ssd", "-d", "2s", "--warm-up", "0s", "--out", file()];
            assert_eq!(code(&place.run(&run)), 0);
        }
        "compare" => {
            let of_axis = words.iter().any(|word| word == "--by");
            let results = words.iter().filter(|word| word.ends_with(".jsonl"));
            for (seed, name) in ["1", "2"].into_iter().zip(results) {
                let sweep: &[&str] = match of_axis {
                    true => &["--axis", "queue-depth=8,32", "--yes"],
                    false => &["--axis", "queue-depth=8", "--yes"],
                };
                let first =
                    ["sweep", "sim:queue,noise-between=1%", "-d", "200ms", "--repeats", "3"];
                let rest = ["--warm-up", "0", "--seed", seed, "--out", name];
                let output = place.run(&[&first[..], sweep, &rest].concat());
                assert!([0, 4].contains(&code(&output)), "{}", stderr(&output));
            }
        }
        "history" if !place.join(file()).exists() => {
            std::fs::create_dir(place.join(file())).unwrap();
            let out = format!("{}/1.fathom.jsonl", file());
            let run = ["run", "sim:ssd", "-d", "2s", "--warm-up", "0s", "--out", &out];
            assert_eq!(code(&place.run(&run)), 0);
        }
        "export" => {
            let map = ["map", "sim:grid", "--grid", "3x3", "--yes", "--out", file()];
            let output = place.run(&map);
            assert!([0, 4].contains(&code(&output)), "{}", stderr(&output));
        }
        "diskspd" => {
            let profile = place.run(&["diskspd", "-Rpxml", "-b4K", "-c1M", "io.dat"]);
            std::fs::write(place.join("profile.xml"), &profile.stdout).unwrap();
        }
        _ => {}
    }
}

/// A result of a sweep that ended after the first of its points.
fn interrupted(place: &Place, name: &str, writes: bool) {
    let target = if writes { "dev/nvme0n1" } else { "test.dat" };
    let mut sweep = Vec::from(["sweep", target, "--axis", "queue-depth=1,2", "-d", "100ms"]);
    sweep.extend(["--warm-up", "10ms", "--yes", "--out", name]);
    if writes {
        sweep.extend(["--read-share", "0%", "--overwrite"]);
    }
    let output = place.run(&sweep);
    assert!([0, 4].contains(&code(&output)), "{}", stderr(&output));
    let text = std::fs::read_to_string(place.join(name)).unwrap();
    let trials = text.lines().take_while(|line| !line.starts_with("{\"line\":\"trial\""));
    let kept: Vec<&str> = text.lines().take(trials.count() + 1).collect();
    std::fs::write(place.join(name), kept.join("\n") + "\n").unwrap();
}

/// Whether fathom did what the words ask for. Nothing was written to the files that it reads, so
/// that a measurement may be void.
fn did_it(words: &[String], output: &Output) -> bool {
    let told = stderr(output);
    match code(output) {
        0 | 4 => true,
        // A plan ends like a run without consent.
        3 if words[0] == "plan" => told.contains("--overwrite"),
        // Polling works only in some places: most drivers have no queue that can be polled.
        2 | 3 if words.iter().any(|word| word == "--polled") => told.contains("poll"),
        // The condition of the example holds for what stands in for its result.
        6 | 7 => words.iter().any(|word| word == "--fail-if"),
        _ => false,
    }
}

/// Runs a line.
///
/// # Errors
///
/// When a command of it does not do what it says: gives the command and fathom's answer.
fn runs(line: &Line) -> Result<(), String> {
    let place = place();
    for words in &line.commands {
        let short = shortened(words);
        prepare(&place, &short);
        let args: Vec<&str> = short.iter().map(String::as_str).collect();
        // The browser of the test sees a report and ends.
        let output = place.command(&args).env("BROWSER", "true").output().unwrap();
        let why = format!("{}: `{}`\n{args:?}: {}", line.from, line.text, stderr(&output));
        let silent = stdout(&output).is_empty() && stderr(&output).is_empty();
        let has_file = short.iter().any(|word| word == "--out");
        if !did_it(words, &output) || silent && !has_file {
            return Err(why);
        }
    }
    Ok(())
}

/// The number of lines that are run at once. Most of the time they wait.
const AT_ONCE: usize = 4;

#[test]
fn every_command_that_people_copy_runs_as_it_is_written() {
    let lines = lines();
    assert!(70 < lines.len(), "{}", lines.len());
    let next = AtomicUsize::new(0);
    let failed = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                while let Some(line) = lines.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if let Err(why) = runs(line) {
                        failed.lock().unwrap().push(why);
                    }
                }
            });
        }
    });
    let failed = failed.into_inner().unwrap();
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

#[test]
fn a_command_with_a_mistake_is_found() {
    let place = Place::new();
    let commands =
        read_by_a_shell(&place, "fathom run test.dat --no-such-option 'a b' && fathom x");
    assert_eq!(commands, [Vec::from(["run", "test.dat", "--no-such-option", "a b"]), ["x"].into()]);
    let line = Line { from: "here".to_owned(), text: String::new(), commands };
    assert!(runs(&line).unwrap_err().contains("--no-such-option"));
}
