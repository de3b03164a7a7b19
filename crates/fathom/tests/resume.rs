//! A killed experiment continues from its result file, and ends as if it had never been killed.

mod common;

use std::fs;

use common::{Place, assert_has, code, stderr, stdout};
use fathom_report::document::{self, Document, Ended};

const SWEEP: [&str; 11] = [
    "sweep",
    "sim:ssd",
    "--axis",
    "queue-depth=1,2,4",
    "--repeats=2",
    "--duration=200ms",
    "--warm-up=100ms",
    "--seed=7",
    "--rest=1s",
    "--out",
    "r.jsonl",
];

fn read(bytes: &[u8]) -> Document {
    document::read(bytes).expect("it is a result")
}

/// The trials without the time of day.
fn timeless(document: &Document) -> Vec<document::Trial> {
    let timeless = |trial: &document::Trial| document::Trial {
        started: String::new(),
        started_unix_ns: 0,
        ..trial.clone()
    };
    document.trials.iter().map(timeless).collect()
}

#[test]
fn whatever_a_kill_leaves_of_a_sweep_is_gone_on_with_to_the_same_end() {
    goes_on_to_the_same_end("sweep", &SWEEP);
}

#[test]
fn whatever_a_kill_leaves_of_a_prepared_sweep_is_gone_on_with_to_the_same_end() {
    let words = ["--prepare=2", "--cut-off", "--size=4m", "--read-share=0%"];
    goes_on_to_the_same_end("sweep", &[&SWEEP[..], &words].concat());
}

#[test]
fn whatever_a_kill_leaves_of_a_search_is_gone_on_with_to_the_same_end() {
    let device = "sim:queue,servers=8,service-time=100us,noise=3%";
    let words = ["--duration=300ms", "--warm-up=100ms", "--official=1s", "--seed=7"];
    let peak = [&["peak", device, "--out=r.jsonl"], &words[..]].concat();
    goes_on_to_the_same_end("peak", &peak);
    let objective = ["--objective=p99<=2ms", "--tolerance=20%"];
    goes_on_to_the_same_end("peak", &[&peak[..], &objective].concat());
}

/// The probe's result is in every finding, with its figures. The probe is not repeated.
#[test]
fn a_search_that_was_killed_keeps_what_its_probe_has_told() {
    let device = "sim:ssd,compresses=90%,noise-between=3%";
    let load = ["--read-share=0%", "--up-to=16", "--seed=7", "--out=r.jsonl"];
    let times = ["--duration=200ms", "--warm-up=0s", "--official=200ms"];
    let peak = killed_and_resumed("peak", &[&["peak", device], &load[..], &times[..]].concat(), 7);
    let told =
        |trial: &document::Trial| trial.findings.iter().any(|one| one.code == "data-reduction");
    assert!(peak.trials.iter().all(told));
}

#[test]
fn whatever_a_kill_leaves_of_rounds_is_gone_on_with_to_the_same_end() {
    let words = ["--read-share=0%", "--size=8m", "--duration=100ms", "--warm-up=0s"];
    let sustain = ["sustain", "sim:ssd", "--at-least=600ms", "--seed=7", "--out=r.jsonl"];
    goes_on_to_the_same_end("workload", &[&sustain[..], &words].concat());
}

/// A map decides by the lag of a cell whether the target carries it, and by half-widths when it
/// ends.
#[test]
fn a_map_that_was_killed_decides_as_if_it_had_not_been() {
    let words = "map sim:queue,servers=1,service-time=1ms,distribution=exponential --grid 4x4 \
                 --write-block-size 4k --queue-depth 64 --write-queue-depth 16 --cell-time 2s \
                 --seed 3 --out r.jsonl";
    let words: Vec<&str> = words.split_whitespace().collect();
    let map = killed_and_resumed("map", &words, 7);
    let ended_early = |trial: &&document::Trial| trial.ended_early;
    let given_up = |trial: &document::Trial| trial.window_ns < 2_000_000_000;
    let early: Vec<&document::Trial> = map.trials.iter().filter(ended_early).collect();
    assert!(early.iter().any(|trial| given_up(trial)), "none was given up");
    assert!(early.iter().any(|trial| !given_up(trial)), "none was precise in time");
    let lags = map.trials.iter().flat_map(|trial| &trial.series).filter_map(|one| one.lag_ns);
    assert!(lags.max() > Some(100_000_000));
}

/// Runs an experiment, then cuts its result at various lengths. Each time, resuming has to give the
/// same end.
fn goes_on_to_the_same_end(name: &str, words: &[&str]) {
    killed_and_resumed(name, words, 1);
}

/// The same for every `every`-th of the lengths.
fn killed_and_resumed(name: &str, words: &[&str], every: usize) -> Document {
    let place = Place::new();
    let output = place.command(words).output().unwrap();
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    let path = place.path().join("r.jsonl");
    let whole = fs::read(&path).unwrap();
    let expected = read(&whole);
    assert!(expected.trials.len() > 5, "{}", stdout(&output));
    let header = whole.iter().position(|&byte| byte == b'\n').unwrap();
    // A kill leaves the beginning of the file: up to the end of a line, or up to any other place.
    // After a crash of the machine, zeros may follow.
    let ends = whole.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at);
    let mut lengths: Vec<usize> = ends.flat_map(|at| [at, at + 1, at + 2]).collect();
    lengths.extend((header + 1..whole.len()).step_by(whole.len() / 17));
    // Every length up to the end of the conclusion, after which nothing is left to do: the summary
    // follows from the lines before it.
    let concluded = whole[..whole.len() - 1].iter().rposition(|&byte| byte == b'\n').unwrap();
    lengths.retain(|&length| header < length && length < concluded);
    for (number, length) in lengths.into_iter().step_by(every).enumerate() {
        let mut left = whole[..length].to_vec();
        if number % 3 == 0 {
            left.extend([0; 100]);
        }
        let kept = read(&left).trials.len();
        fs::write(&path, &left).unwrap();
        let output = place.command(&["resume", "r.jsonl"]).output().unwrap();
        assert_eq!(code(&output), 0, "{length}: {}", stderr(&output));
        let points = expected.header.planned_points;
        let are = if kept == 1 { "is" } else { "are" };
        let said = format!("resumes {name}: {kept} of {points} points {are} measured");
        assert_has(&stdout(&output), &[&said]);
        let bytes = fs::read(&path).unwrap();
        let document = read(&bytes);
        assert!(timeless(&document) == timeless(&expected), "{length}");
        assert_eq!(document.conclusion, expected.conclusion, "{length}");
        let lines = whole.iter().take(length).filter(|&&byte| byte == b'\n').count();
        let same = whole.iter().enumerate().filter(|(_, b)| **b == b'\n').nth(lines - 1);
        let same = same.map_or(0, |(at, _)| at + 1).min(length);
        assert!(bytes[..same] == whole[..same], "what was finished stays as it was");
    }
    expected
}

#[test]
fn what_cannot_go_on_is_refused_with_the_reason() {
    let place = Place::new();
    let refused = |expected: &str| {
        let output = place.command(&["resume", "r.jsonl"]).output().unwrap();
        assert_eq!(code(&output), 5, "{}", stderr(&output));
        assert_has(&stderr(&output), &[expected]);
    };
    let output = place.command(&SWEEP).output().unwrap();
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    refused("it is finished: show it with `fathom report`");

    let path = place.path().join("r.jsonl");
    let whole = fs::read_to_string(&path).unwrap();
    let lines: Vec<&str> = whole.lines().collect();
    let begun = format!("{}\n{}\n", lines[0], lines[1]);
    let size = format!("\"size_bytes\":{}", read(whole.as_bytes()).header.targets[0].size.0);
    for (old, new, expected) in [
        ("\"--duration=200ms\"", "\"--duration=300ms\"", "base.window_ns was 200000000, and is 3"),
        ("\"--repeats=2\"", "\"--repeats=3\"", "settings.repeats was \"2\", and is \"3\""),
        ("queue-depth=1,2,4", "queue-depth=1,2,8", "axes.0.labels.2 was \"4\", and is \"8\""),
        (size.as_str(), "\"size_bytes\":4096", "another target now: its size was 4096 bytes"),
        ("\"identities\":[\"\"]", "\"identities\":[\"inode 1\"]", "its identity was inode 1, and"),
        ("\"identities\":[\"\"]", "\"identities\":[]", "what makes each target itself"),
        ("\"measurement_version\":1", "\"measurement_version\":0", "measures in another way"),
        ("\"format_version\":2", "\"format_version\":1", "began it in format version 1, and"),
        ("\"--repeats=2\"", "\"--repaets=2\"", "does not understand its command line"),
    ] {
        assert!(begun.contains(old), "{old}");
        fs::write(&path, begun.replacen(old, new, 1)).unwrap();
        refused(expected);
    }
    // A trial that differs from the one that the seed gives.
    let mut other = begun.clone();
    other.push_str(lines[3]);
    fs::write(&path, other + "\n").unwrap();
    refused("trial 2 would be another one now: ");

    fs::remove_file(&path).unwrap();
    let run = ["run", "sim:ssd", "--duration=200ms", "--warm-up=0s", "--out=r.jsonl"];
    assert_eq!(code(&place.command(&run).output().unwrap()), 0);
    refused("a run is no experiment that can go on");
}

#[test]
fn a_sweep_that_writes_needs_a_yes_where_nobody_can_be_asked() {
    let place = Place::new();
    place.prepared("data", 1);
    let words = ["sweep", "data", "--read-share=0%", "--axis=queue-depth=1,2", "--overwrite"];
    let rest = ["--duration=100ms", "--warm-up=0s", "--out=r.jsonl"];
    let sweep = |more: &[&str]| place.command(&[&words[..], &rest[..], more].concat()).output();
    let output = sweep(&[]).unwrap();
    assert_eq!(code(&output), 2);
    assert_has(&stderr(&output), &["--yes: it writes to data, and there is no terminal to ask at"]);
    let output = sweep(&["--plan"]).unwrap();
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    assert_has(&stdout(&output), &["OVERWRITES data: writes at most", "nothing started"]);
    // The consent needed is shown before it is given.
    let words: Vec<&str> = words.into_iter().filter(|word| *word != "--overwrite").collect();
    for (more, shown) in [(&["--plan"][..], true), (&[], false)] {
        let output = place.command(&[&words[..], &rest, more].concat()).output().unwrap();
        assert_eq!(code(&output), 3);
        assert_has(&stderr(&output), &["allow it with --overwrite"]);
        assert_eq!(stdout(&output).contains("OVERWRITES data: writes at most"), shown);
    }
    assert!(!place.path().join("r.jsonl").exists());
    let output = sweep(&["--yes"]).unwrap();
    assert!([0, 4].contains(&code(&output)), "{}", stderr(&output));
    let document = place.result();
    assert_eq!(document.conclusion.unwrap().ended, Ended::Completed);
    assert!(document.header.identities[0].starts_with("inode "));
}

#[test]
fn consent_and_the_places_of_reports_are_taken_from_nobodys_file() {
    let place = Place::new();
    place.prepared("data", 1);
    let words =
        ["sweep", "data", "--read-share=0%", "--axis=queue-depth=1,2", "--overwrite", "--yes"];
    let rest =
        ["--duration=100ms", "--warm-up=0s", "--out=r.jsonl", "--html=r.html", "--csv=r.csv"];
    let output = place.command(&[&words[..], &rest].concat()).output().unwrap();
    assert!([0, 4].contains(&code(&output)), "{}", stderr(&output));
    let path = place.path().join("r.jsonl");
    let whole = fs::read_to_string(&path).unwrap();
    let begun: String = whole.split_inclusive('\n').take(2).collect();
    fs::write(&path, &begun).unwrap();
    for report in ["r.html", "r.csv"] {
        fs::remove_file(place.path().join(report)).unwrap();
    }
    let data = fs::read(place.path().join("data")).unwrap();
    let resume = |more: &[&str]| place.command(&[&["resume", "r.jsonl"], more].concat()).output();
    let output = resume(&[]).unwrap();
    assert_eq!(code(&output), 3, "{}", stderr(&output));
    let [html, csv, data_path] =
        ["r.html", "r.csv", "data"].map(|name| place.path().canonicalize().unwrap().join(name));
    let line = format!(
        "`fathom resume r.jsonl --overwrite --html {} --csv {}`",
        html.display(),
        csv.display()
    );
    let said = stderr(&output).split_whitespace().collect::<Vec<_>>().join(" ");
    assert_has(&said, &["a result file consents to nothing", &line]);
    assert_has(&stdout(&output), &[&format!("OVERWRITES {}: writes at most", data_path.display())]);
    assert_eq!(fs::read_to_string(&path).unwrap(), begun, "a refusal changes nothing");
    assert!(fs::read(place.path().join("data")).unwrap() == data);
    // Another file with the same name is another target, even if its inode number is the same.
    fs::rename(place.path().join("data"), place.path().join("kept")).unwrap();
    fs::copy(place.path().join("kept"), place.path().join("data")).unwrap();
    let output = resume(&["--overwrite"]).unwrap();
    assert_has(&stderr(&output), &["data is another target now: its identity was inode"]);
    fs::rename(place.path().join("kept"), place.path().join("data")).unwrap();
    let output = resume(&["--overwrite", "--csv", "other.csv"]).unwrap();
    assert!([0, 4].contains(&code(&output)), "{}", stderr(&output));
    assert_eq!(read(&fs::read(&path).unwrap()).trials.len(), 2);
    assert!(place.path().join("other.csv").exists());
    assert!(!place.path().join("r.html").exists() && !place.path().join("r.csv").exists());
}

#[test]
fn a_result_that_another_process_writes_is_refused_before_it_is_read() {
    let place = Place::new();
    let output = place.command(&SWEEP).output().unwrap();
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    let path = place.path().join("r.jsonl");
    let held = fs::File::open(&path).unwrap();
    held.lock().unwrap();
    // The content of the file is not checked: it may change a moment later.
    fs::write(&path, "torn").unwrap();
    let output = place.command(&["resume", "r.jsonl"]).output().unwrap();
    assert_eq!(code(&output), 5);
    assert_has(&stderr(&output), &["another process still writes it"]);
    assert_eq!(fs::read_to_string(&path).unwrap(), "torn");
}
