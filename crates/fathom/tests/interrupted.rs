//! Ctrl-C, SIGTERM and kill -9 at any time: the measured results stay readable, and scratch files
//! are removed.

mod common;

use std::process::Command;
use std::time::Duration;

use common::{Place, Running, assert_has, code, read, stderr, stdout};
use fathom_report::document::{self, Ended};

/// Long enough that the test's signal always comes before its end.
const LONG: [&str; 6] = ["--duration", "10m", "--warm-up", "0", "--size", "64m"];

fn quick(place: &Place, more: &[&str]) -> Command {
    place.command(&[&["quick"], more].concat())
}

fn scratch_files(place: &Place) -> Vec<String> {
    place.names().into_iter().filter(|name| name.starts_with(".fathom-scratch-")).collect()
}

/// Waits until the condition holds, however long that takes on a slow machine.
fn wait_for(what: &str, mut holds: impl FnMut() -> bool) {
    for _ in 0..6000 {
        if holds() {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("after a minute: {what}");
}

#[test]
fn ctrl_c_keeps_what_was_measured_and_removes_the_scratch_file() {
    for (signal, exit) in [("INT", 130), ("TERM", 143), ("HUP", 129)] {
        let place = Place::new();
        let mut running = Running::start(&mut quick(&place, &LONG));
        running.until("step 1/6");
        wait_for("a scratch file", || scratch_files(&place).len() == 1);
        // Long enough for some intervals to end. Otherwise less is kept.
        std::thread::sleep(Duration::from_millis(500));
        running.signal(signal);
        let (status, said, told) = running.end();
        assert_eq!(status.code(), Some(exit), "{said}{told}");
        assert_has(&told, &["stopping"]);
        assert_eq!(scratch_files(&place), Vec::<String>::new());
        if told.contains("nothing was measured") {
            // The machine was so slow that the window had not begun.
            assert_eq!(place.names(), Vec::<String>::new());
            continue;
        }
        let document = place.result();
        assert_eq!(document.conclusion.as_ref().unwrap().ended, Ended::Interrupted);
        assert_eq!(document.trials.len(), 1);
        assert!(document.trials.iter().all(|trial| trial.interrupted));
        assert!(document.trials.iter().all(|trial| trial.window_ns < 600_000_000_000));
    }
}

#[test]
fn what_was_ignored_when_it_started_stays_so() {
    let place = Place::new();
    place.prepared("data", 1);
    let mut command = Command::new("env");
    command.args(["--ignore-signal=HUP", "--default-signal=INT", env!("CARGO_BIN_EXE_fathom")]);
    command.args(["run", "data", "--warm-up", "1h", "-d", "1s"]).current_dir(place.path());
    let mut running = Running::start_as_it_is(&mut command);
    running.until("random read");
    running.signal("HUP");
    running.signal("INT");
    let (status, _, told) = running.end();
    // The message names the first signal that it received.
    assert_eq!(status.code(), Some(130), "{told}");
}

#[test]
fn ctrl_c_in_the_first_warm_up_leaves_nothing_and_says_so() {
    let long = ["--warm-up", "1h", "--duration", "1s"];
    let run: Vec<&str> = [&["run", "data"], &long[..]].concat();
    let in_folder: Vec<&str> = [&["quick", "--size", "1m"], &long[..]].concat();
    let on_file: Vec<&str> = [&["quick", "data"], &long[..]].concat();
    for (args, until) in [(run, "random read"), (in_folder, "step 1/6"), (on_file, "step 1/3")] {
        let place = Place::new();
        place.prepared("data", 1);
        let mut running = Running::start(&mut place.command(&args));
        running.until(until);
        running.signal("INT");
        let (status, said, told) = running.end();
        assert_eq!(status.code(), Some(130), "{args:?}: {told}");
        assert_has(&told, &["error: interrupted by Ctrl-C: nothing was measured"]);
        assert!(!said.contains("result  ") && !said.contains("report  "), "{said}");
        assert_eq!(place.names(), ["data"], "{args:?}: {told}");
    }
}

#[test]
fn killed_while_the_scratch_file_is_written_it_leaves_no_empty_result() {
    let place = Place::new();
    let mut running = Running::start(&mut quick(&place, &["--size", "8g", "--out", "r.jsonl"]));
    wait_for("a scratch file or the end", || {
        scratch_files(&place).len() == 1 || running.has_ended()
    });
    if running.has_ended() {
        eprintln!("skipped: there is no room for 8 GiB");
        return;
    }
    let left = scratch_files(&place);
    running.kill();
    assert_eq!(place.names(), left);
}

#[test]
fn killed_in_the_first_warm_up_it_leaves_a_result_that_can_be_read() {
    let place = Place::new();
    place.prepared("data", 1);
    let args = ["run", "data", "--warm-up", "1h", "--out", "r.jsonl"];
    let mut running = Running::start(&mut place.command(&args));
    running.until("random read");
    running.kill();
    let document = read(&place.join("r.jsonl"));
    assert!(document.trials.is_empty() && document.conclusion.is_none());
    assert_eq!(document.header.targets[0].name, "data");
}

#[test]
fn ctrl_c_while_the_scratch_file_is_written_leaves_nothing() {
    let place = Place::new();
    // The file is too large to be written before the signal arrives. The test is skipped if there
    // is no room for it.
    let mut running = Running::start(&mut quick(&place, &["--size", "8g"]));
    wait_for("a scratch file or the end", || {
        scratch_files(&place).len() == 1 || running.has_ended()
    });
    if running.has_ended() {
        eprintln!("skipped: there is no room for 8 GiB");
        return;
    }
    running.signal("INT");
    let (status, said, told) = running.end();
    assert_eq!(status.code(), Some(130), "{said}{told}");
    assert_eq!(place.names(), Vec::<String>::new(), "{told}");
}

#[test]
fn a_second_ctrl_c_ends_at_once_and_still_removes_the_scratch_file() {
    let place = Place::new();
    let mut running = Running::start(&mut quick(&place, &LONG));
    running.until("step 1/6");
    running.signal("INT");
    running.until("stopping");
    running.signal("INT");
    let (status, ..) = running.end();
    assert_eq!(status.code(), Some(130));
    assert_eq!(scratch_files(&place), Vec::<String>::new());
    // Without a result there is no file. With one, the file is readable.
    if !place.names().is_empty() {
        assert_eq!(place.result().trials.len(), 1);
    }
}

#[test]
fn what_a_killed_run_has_left_is_named_and_removed_on_request() {
    let place = Place::new();
    let mut running = Running::start(&mut quick(&place, &LONG));
    running.until("step 1/6");
    let left = scratch_files(&place);
    assert_eq!(left.len(), 1);

    // While fathom runs, its scratch file is not a leftover.
    let short = ["--size", "1m", "--duration", "100ms", "--warm-up", "0"];
    let output = quick(&place, &short).output().unwrap();
    assert!(!stderr(&output).contains("was killed"), "{}", stderr(&output));
    running.kill();

    let output = quick(&place, &short).output().unwrap();
    assert_has(&stderr(&output), &["was killed", &left[0], "65 MiB", "--remove-leftovers"]);
    assert_eq!(scratch_files(&place), left, "nobody agreed to remove it");
    let output = quick(&place, &[&short[..], &["--remove-leftovers"]].concat()).output().unwrap();
    assert_has(&stderr(&output), &["removed", &left[0]]);
    assert_eq!(scratch_files(&place), Vec::<String>::new());
}

#[test]
fn a_run_killed_at_any_moment_leaves_every_finished_trial_readable() {
    let place = Place::new();
    place.prepared("data", 1);
    for round in 0..8u64 {
        let out = format!("{round}.jsonl");
        let args = ["data", "--overwrite", "--duration", "100ms", "--warm-up", "0", "--out", &out];
        let mut running = Running::start(&mut quick(&place, &args));
        running.until("step 1/6");
        std::thread::sleep(Duration::from_millis(round * 90));
        running.kill();
        let bytes = std::fs::read(place.join(&out)).unwrap();
        let whole = bytes.iter().filter(|&&byte| byte == b'\n').count();
        let document = document::read(&bytes).unwrap();
        // The last line, of a run that had ended before, sums up.
        let is_summary = |line: &&[u8]| line.starts_with(br#"{"line":"summary""#);
        let summaries = bytes.split_inclusive(|&byte| byte == b'\n').filter(is_summary).count();
        let lines =
            1 + document.trials.len() + usize::from(document.conclusion.is_some()) + summaries;
        assert_eq!(lines, whole, "every whole line is read");
        let output = place.run(&["report", &out]);
        assert_eq!(code(&output), 0, "{}", stderr(&output));
        assert_has(&stdout(&output), &["data"]);
    }
}

#[test]
fn ctrl_c_leaves_no_half_prepared_file() {
    let place = Place::new();
    let mut running = Running::start(&mut place.command(&["prepare", "f", "--size", "8g"]));
    wait_for("a growing file or the end", || !place.names().is_empty() || running.has_ended());
    if running.has_ended() {
        eprintln!("skipped: there is no room for 8 GiB");
        return;
    }
    assert!(!place.join("f").exists(), "it gets its name when it is whole");
    running.signal("INT");
    let (status, _, told) = running.end();
    assert_eq!(status.code(), Some(130), "{told}");
    assert_has(&told, &["interrupted by Ctrl-C: f was not made"]);
    assert_eq!(place.names(), Vec::<String>::new());
}

#[test]
fn what_a_killed_prepare_has_left_is_named_and_removed_on_request() {
    let place = Place::new();
    let mut running = Running::start(&mut place.command(&["prepare", "f", "--size", "8g"]));
    wait_for("a growing file or the end", || !place.names().is_empty() || running.has_ended());
    if running.has_ended() {
        eprintln!("skipped: there is no room for 8 GiB");
        return;
    }
    let left = place.names();
    running.kill();
    assert_eq!(place.names(), left);
    let mine = format!("{}x", left[0]);
    std::fs::write(place.join(&mine), "not ours: no process has this number").unwrap();

    let output = place.run(&["prepare", "f", "--size", "1m"]);
    assert_has(&stderr(&output), &["was killed", &left[0], "--remove-leftovers"]);
    assert!(place.names().contains(&left[0]), "nobody agreed to remove it");
    let output = place.run(&["prepare", "f", "--size", "1m", "--remove-leftovers"]);
    assert_has(&stderr(&output), &["removed", &left[0]]);
    assert_eq!(place.names(), [mine.as_str(), "f"]);
}

#[test]
fn an_interrupted_simulation_keeps_the_part_that_it_ran() {
    // On a slow machine it takes longer until the window begins.
    for pause in [Duration::from_millis(100), Duration::from_secs(2), Duration::from_secs(20)] {
        let place = Place::new();
        let args = ["run", "sim:queue", "-d", "365d", "--interval", "1d", "--out", "r.jsonl"];
        let mut running = Running::start(&mut place.command(&args));
        running.until("random read");
        std::thread::sleep(pause);
        running.signal("INT");
        let (status, _, told) = running.end();
        assert_eq!(status.code(), Some(130), "{told}");
        if !told.contains("nothing was measured") {
            let document = read(&place.join("r.jsonl"));
            assert_eq!(document.conclusion.unwrap().ended, Ended::Interrupted);
            return;
        }
    }
    panic!("in 20 s the window did not begin");
}
