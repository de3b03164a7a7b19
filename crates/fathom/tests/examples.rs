//! Runs every example with the commands in its own comments, and every shipped workload as it is
//! printed.
//!
//! The targets are files with the same names in a folder of the test, and every second is shortened
//! to ten milliseconds. Nothing else is changed.

mod common;

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use common::{Place, code, stderr, stdout};
use fathom_report::document::Verdict;

const EXAMPLES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples");

/// The targets of the examples beside those of every page, and their sizes here, in MiB. Nothing was
/// written to them, so reads of them are judged void.
const TARGETS: [(&str, u64); 11] = [
    ("pictures/a", 1),
    ("pictures/below/b", 1),
    ("dev/nvme0n1", 16),
    ("dev/nvme1n1p2", 16),
    // A region of this target begins at 900 GiB.
    ("dev/sdb", 1 << 20),
    ("data/test/iobw.tst", 16),
    ("data/test/unique.dat", 16),
    ("data/test/reducible.dat", 16),
    ("data/test/pool.dat", 16),
    ("data/test/zeros.dat", 16),
    ("data/tmp/temporary.dat", 16),
];

/// A folder with the examples and their targets.
fn place() -> Place {
    let place = Place::with_stand_ins(&TARGETS);
    std::fs::create_dir(place.join("examples")).unwrap();
    for (name, text) in examples() {
        std::fs::write(place.join("examples").join(name), here(&text)).unwrap();
    }
    place
}

/// The names and texts of the workload files. Those of the studies have their own test.
fn examples() -> Vec<(String, String)> {
    let entries = std::fs::read_dir(EXAMPLES).unwrap().map(|entry| entry.unwrap().path());
    let entries = entries.filter(|path| path.extension().is_some_and(|end| end == "toml"));
    let read = |path: &Path| {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        (name, std::fs::read_to_string(path).unwrap())
    };
    let mut all: Vec<(String, String)> = entries.map(|path| read(&path)).collect();
    all.sort();
    assert!(all.len() >= 19);
    all
}

/// The text with targets of this folder and shorter times.
fn here(text: &str) -> String {
    let line = |line: &str| match line.trim_start().starts_with('#') {
        true => line.to_owned(),
        false => shorter(&local(line)),
    };
    text.lines().map(|one| line(one) + "\n").collect()
}

fn local(text: &str) -> String {
    // Here the device is a file.
    let text = text.replace("--destroy /dev/nvme0n1", "--overwrite");
    text.replace("/data/", "data/").replace("/dev/", "dev/")
}

/// "30s" as "300ms", and "2m" as "1200ms" if it is a time and not a size.
fn shorter(line: &str) -> String {
    let is_time = ["duration", "start", "end", "warm-up", "rest"]
        .iter()
        .any(|key| line.trim_start().starts_with(&format!("{key} =")));
    let mut out = String::new();
    let mut digits = String::new();
    let mut rest = line.chars().peekable();
    while let Some(one) = rest.next() {
        if one.is_ascii_digit() {
            digits.push(one);
            continue;
        }
        let ends = rest.peek().is_none_or(|next| !next.is_ascii_alphanumeric() && *next != '/');
        match (one, digits.parse::<u64>()) {
            ('s', Ok(seconds)) if ends => out += &format!("{}ms", seconds * 10),
            ('m', Ok(minutes)) if ends && is_time => out += &format!("{}ms", minutes * 600),
            _ => out.extend(digits.chars().chain([one])),
        }
        digits.clear();
    }
    out + &digits
}

/// The commands in an example that say how to run it.
fn commands(text: &str) -> Vec<Vec<String>> {
    let lines = text.lines().filter_map(|line| line.strip_prefix("#   fathom "));
    // The text after several spaces is an explanation.
    let words = |line: &str| -> Vec<String> {
        let command = line.split("   ").next().unwrap_or_default();
        command.split_whitespace().map(local).collect()
    };
    lines.map(words).collect()
}

#[test]
fn times_are_shortened_and_sizes_are_not() {
    assert_eq!(
        shorter("rate = \"1k for 30s, to 20k over 60s\""),
        "rate = \"1k for 300ms, to 20k over 600ms\""
    );
    assert_eq!(shorter("duration = \"2m\""), "duration = \"1200ms\"");
    assert_eq!(shorter("block-size = \"1m\""), "block-size = \"1m\"");
    assert_eq!(shorter("rate = \"500MB/s\" # 4ms"), "rate = \"500MB/s\" # 4ms");
}

/// The number of examples that run at once, each with its own targets. Most of the time they wait.
const AT_ONCE: usize = 4;

#[test]
fn every_example_runs_with_the_commands_in_its_comments() {
    let examples = examples();
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                while let Some((name, text)) = examples.get(next.fetch_add(1, Ordering::Relaxed)) {
                    runs_with_the_commands_in_its_comments(name, text);
                }
            });
        }
    });
}

fn runs_with_the_commands_in_its_comments(name: &str, text: &str) {
    let place = place();
    let commands = commands(text);
    assert!(!commands.is_empty(), "{name} does not say how it is run");
    // Here the devices are files, and --overwrite would allow writes to them.
    let is_short = |line: &str| line.contains(" /dev/") && line.contains("--overwrite");
    assert!(!text.lines().any(is_short), "{name}: a device is written to with --destroy");
    for (number, command) in commands.iter().enumerate() {
        assert!(command[1] == format!("examples/{name}"), "{name}: {command:?}");
        let words: Vec<&str> = command.iter().map(String::as_str).collect();
        let out = format!("{name}-{number}.jsonl");
        // The commands are unchanged. Only the place of the results is added, and the answer of a
        // user.
        let more: &[&str] = match words[0] {
            "plan" => &[],
            "sweep" if words.contains(&"--plan") => &[],
            "sweep" => &["--yes", "--out", &out],
            _ => &["--out", &out],
        };
        let output = place.run(&[&words[..], more].concat());
        let told = stderr(&output);
        if name == "polled.toml" {
            // Polling works only in some places: most drivers have no queue that can be polled.
            assert!([0, 4].contains(&code(&output)) || told.contains("poll"), "{told}");
            continue;
        }
        // A plan ends like a run without consent.
        let unasked = words[0] == "plan" && code(&output) == 3 && told.contains("--overwrite");
        assert!([0, 4].contains(&code(&output)) || unasked, "{name}: {words:?}: {told}");
        if more.is_empty() {
            continue;
        }
        let document = common::read(&place.join(&out));
        let ios: u64 = document.trials.iter().map(|trial| trial.total(None).ios()).sum();
        // A window of a tenth of a second may be too short on a busy machine.
        let is_void = document.trials.iter().all(|trial| trial.verdict == Verdict::Void);
        assert!(ios > 0 || is_void, "{name}: nothing was measured");
        for trial in &document.trials {
            assert!(trial.errors() == 0 && !trial.interrupted, "{name}: {}", trial.point.name);
        }
    }
}

#[test]
fn every_workload_that_ships_is_printed_as_toml_that_runs_as_it_is() {
    let place = Place::new();
    let listed = stdout(&place.run(&["workloads"]));
    let names = "oltp data-warehouse tempdb log vdi video backup web boot-storm";
    for name in names.split(' ') {
        assert!(listed.lines().any(|line| line.starts_with(name)), "{name} in {listed}");
        let printed = place.run(&["workloads", name]);
        assert_eq!(code(&printed), 0);
        let file = format!("{name}.toml");
        std::fs::write(place.join(&file), &printed.stdout).unwrap();
        let out = format!("{name}.jsonl");
        let run = ["sim:ssd", "-d", "1s", "--warm-up", "100ms", "--seed", "1", "--out", &out];
        let output = place.run(&[&["run", &file], &run[..]].concat());
        assert_eq!(code(&output), 0, "{name}: {}", stderr(&output));
        let document = common::read(&place.join(&out));
        let load = |stream: &fathom_report::document::Stream| stream.name.clone();
        let streams: Vec<String> = document.trials[0].point.streams.iter().map(load).collect();
        assert!(!streams.is_empty() && document.trials[0].total(None).ios() > 0, "{name}");
        // Run by its name, it gives the same result.
        let by_name = format!("{name}-by-name.jsonl");
        let run = ["sim:ssd", "-d", "1s", "--warm-up", "100ms", "--seed", "1", "--out", &by_name];
        let output = place.run(&[&["run", name], &run[..]].concat());
        assert_eq!(code(&output), 0, "{name}: {}", stderr(&output));
        let again = common::read(&place.join(&by_name));
        let ios =
            |document: &fathom_report::document::Document| document.trials[0].total(None).ios();
        assert_eq!(ios(&document), ios(&again), "{name}");
    }
}
