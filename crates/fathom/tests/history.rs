//! `fathom history` on result files of real runs on a simulated device.

mod common;

use std::fs;

use common::{Place, assert_has, code, stderr, stdout};
use serde_json::Value;

/// Runs with a different seed each, a day apart.
const RUNS: u64 = 12;

/// The first value of a key after some text, replaced.
fn with(text: &str, after: &str, key: &str, value: &str) -> String {
    let from = text.find(after).unwrap();
    let start = from + text[from..].find(&format!("\"{key}\":")).unwrap() + key.len() + 3;
    let end = start + text[start..].find([',', '}']).unwrap();
    format!("{}{value}{}", &text[..start], &text[end..])
}

/// The number that a key has after some text.
fn number(text: &str, after: &str, key: &str) -> u64 {
    let from = text.find(after).unwrap();
    let start = from + text[from..].find(&format!("\"{key}\":")).unwrap() + key.len() + 3;
    text[start..].split([',', '}']).next().unwrap().parse().unwrap()
}

/// A folder with results of twelve days, the last six of them with fewer IOPS and another kernel:
/// real results, whose dates and windows are changed.
fn twelve_days() -> Place {
    let place = Place::new();
    fs::create_dir_all(place.join("results/spring")).unwrap();
    for day in 1..=RUNS {
        let folder = if day <= 3 { "results/spring" } else { "results" };
        let file = format!("{folder}/{day:02}.fathom.jsonl");
        let seed = day.to_string();
        let run =
            ["run", "sim:ssd", "-d", "1s", "--warm-up", "0s", "--seed", &seed, "--out", &file];
        let output = place.run(&run);
        assert_eq!(code(&output), 0, "{}", stderr(&output));
        let text = fs::read_to_string(place.join(&file)).unwrap();
        // 2026-03-01 02:00 UTC and the days after it.
        let created = (1_772_330_400 + 86_400 * (day - 1)) * 1_000_000_000;
        let text = with(&text, "{", "created", &format!("\"2026-03-{day:02}T02:00:00.000Z\""));
        let mut text = with(&text, "{", "created_unix_ns", &created.to_string());
        if RUNS / 2 < day {
            let trial = "\"started_unix_ns\"";
            let window = number(&text, trial, "window_ns") * 5 / 4;
            text = with(&text, trial, "window_ns", &window.to_string());
            text = with(&text, "{", "kernel", "\"7.0.1\"");
        }
        fs::write(place.join(&file), text).unwrap();
    }
    place
}

#[test]
fn results_of_a_folder_are_shown_with_their_change_and_what_cannot_be_used_is_named() {
    let place = twelve_days();
    let first = fs::read_to_string(place.join("results/04.fathom.jsonl")).unwrap();
    let write = |name: &str, text: &str| fs::write(place.join(name), text).unwrap();
    write("results/copy.jsonl", &first);
    write("results/empty.jsonl", "");
    write("results/foreign.jsonl", "{\"level\":\"info\"}\n");
    write("results/newer.jsonl", &with(&first, "{", "format_version", "99"));
    write("results/notes.txt", "not ours");
    write("results/torn.jsonl", &first[..first.len() / 2]);
    let output = place.run(&["history", "results", "--width", "80", "--details"]);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    let text = stdout(&output);
    assert_has(
        &text,
        &[
            "results  12 in results",
            "IOPS changed once in 12 results: on 2026-03-07 it fell by 20 %",
            "to 7.0.1.",
            "p99: no change was found in 12 results",
            "- copy.jsonl: it is the same result as",
            "- empty.jsonl: it is empty",
            "- foreign.jsonl: it is no result of fathom",
            "- newer.jsonl: it has format version 99",
            "- torn.jsonl: it has no finished trial",
        ],
    );
    assert!(!text.contains("notes.txt"), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
}

#[test]
fn a_history_goes_to_files_and_programs() {
    let place = twelve_days();
    let files = ["--html", "h.html", "--markdown", "h.md", "--csv", "h.csv", "--metric", "iops"];
    let output = place.run(&[&["history", "results"][..], &files].concat());
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    assert_has(&stdout(&output), &["report  h.html", "report  h.md", "table   h.csv"]);
    let html = fs::read_to_string(place.join("h.html")).unwrap();
    assert_has(&html, &["<title>History: results</title>", "\"chart-history-1\"", "2026-03-07"]);
    let markdown = fs::read_to_string(place.join("h.md")).unwrap();
    assert_has(&markdown, &["IOPS changed once in 12 results", "kernel"]);
    let table = fs::read_to_string(place.join("h.csv")).unwrap();
    assert_eq!(table.lines().count() as u64, RUNS + 1);
    assert!(table.contains("spring/01.fathom.jsonl"), "{table}");

    let output = place.run(&["history", "results", "--json", "--metric", "bandwidth"]);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    let json: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(json["history_version"], 1);
    let series = &json["groups"][0]["series"][0];
    assert_eq!(series["metric"], "bandwidth");
    assert_eq!(series["values"].as_array().unwrap().len() as u64, RUNS);
    let change = &series["changes"][0];
    assert_eq!((&change["at"], &change["better"]), (&6.into(), &false.into()));
    let ratio = change["ratio"]["value"].as_f64().unwrap();
    assert!((ratio - 0.8).abs() < 0.02, "{ratio}");
    assert_eq!(change["facts"][0]["name"], "kernel");
    assert_eq!(change["facts"][0]["after"], "7.0.1");
}

#[test]
fn what_is_no_folder_of_results_is_told() {
    let place = Place::new();
    fs::create_dir(place.join("none")).unwrap();
    fs::write(place.join("file"), "x").unwrap();
    let output = place.run(&["history", "none"]);
    assert_eq!(code(&output), 0);
    assert_has(&stdout(&output), &["There are no results in none that have figures."]);
    for (folder, why) in [("missing", "cannot be read"), ("file", "it is no folder")] {
        let output = place.run(&["history", folder]);
        assert_ne!(code(&output), 0);
        assert_has(&stderr(&output), &[folder, why, "name a folder with result files"]);
    }
    let output = place.run(&["history", "none", "--metric", "speed"]);
    assert_has(&stderr(&output), &["speed", "write iops, bandwidth, mean, max or p99"]);
}
