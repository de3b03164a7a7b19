//! Points that are measured several times: one result of all trials, and each trial on request.

mod common;

use std::collections::BTreeSet;

use common::{Place, assert_has, code, read, stderr, stdout};
use fathom_core::measure::Flow;
use fathom_core::{Quantile, Span};
use fathom_report::document::{Document, Ended};
use serde_json::Value;

/// A device whose trials differ with their seeds.
const DEVICE: &str = "sim:ssd";
const LOAD: [&str; 7] = ["-q", "4", "-d", "1s", "--warm-up=0s", "--seed", "7"];

fn measured(place: &Place, more: &[&str]) -> (Document, String) {
    let words = [&["run", DEVICE][..], &LOAD, &["--out", "result.jsonl"], more].concat();
    let output = place.run(&words);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    (read(&place.join("result.jsonl")), stdout(&output))
}

fn summary(place: &Place) -> Value {
    let output = place.run(&["report", "result.jsonl", "--summary"]);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// All I/Os of all trials together, and their windows.
fn together(document: &Document) -> (Flow, Span) {
    let mut flow = Flow::new(false);
    document.trials.iter().for_each(|trial| flow.merge(&trial.total(None)));
    (flow, document.trials.iter().fold(Span(0), |sum, trial| sum + trial.window()))
}

/// The IOPS of each trial.
fn each(document: &Document) -> Vec<f64> {
    let rate = |ios: u64, window: Span| ios as f64 / window.as_secs_f64();
    document.trials.iter().map(|one| rate(one.total(None).ios(), one.window())).collect()
}

#[test]
fn several_trials_are_one_result_with_the_figures_of_all() {
    let place = Place::in_memory();
    let (document, said) = measured(&place, &["--repeats", "4", "--csv", "table.csv"]);
    let places = document.trials.iter().map(|one| (one.place.repeat, one.place.coordinates.len()));
    assert_eq!(places.collect::<Vec<_>>(), [(0, 0), (1, 0), (2, 0), (3, 0)]);
    let seeds: BTreeSet<u64> = document.trials.iter().map(|one| one.point.seed).collect();
    assert_eq!((seeds.len(), document.header.planned_points), (4, 4));
    assert_has(
        &said,
        &["simulates 4 s: 4 times no warm-up, 1 s window", "queue depth 4, 4 trials: "],
    );

    let summary = summary(&place);
    let [only] = summary["results"].as_array().unwrap().as_slice() else { panic!("{summary}") };
    assert_eq!(only["trials"], 4);
    assert_eq!(only["figures"], summary["figures"]);
    let (flow, window) = together(&document);
    let figure = |name: &str| only["figures"][name]["value"].as_f64().unwrap();
    assert!((figure("iops") - flow.ios() as f64 / window.as_secs_f64()).abs() < 1e-6);
    let p99 = flow.service_time.quantile(Quantile(0.99)).unwrap();
    assert_eq!(figure("p99_ns"), p99 as f64);
    // Student's t with 3 degrees of freedom, from the scatter of the trials, or from within them if
    // that is larger.
    let each = each(&document);
    let mean = each.iter().sum::<f64>() / 4.0;
    let variance = each.iter().map(|one| (one - mean).powi(2)).sum::<f64>() / 3.0;
    let half = only["figures"]["iops"]["half_width"].as_f64().unwrap();
    assert!(3.18 * (variance / 4.0).sqrt() <= half * 1.001, "{half} {each:?}");

    let table = std::fs::read_to_string(place.join("table.csv")).unwrap();
    let totals = table.lines().filter(|line| line.contains(",,,read,")).count();
    assert_eq!(totals, 4, "each trial has its rows:\n{table}");
    let details = stdout(&place.run(&["report", "result.jsonl", "--details"]));
    assert_has(&details, &["1 of 4: ", "4 of 4: "]);
    assert!(!said.contains("1 of 4: "), "each trial is there on request:\n{said}");
    let page = place.run(&["report", "result.jsonl", "--html", "page.html"]);
    assert_eq!(code(&page), 0, "{}", stderr(&page));
    let page = std::fs::read_to_string(place.join("page.html")).unwrap();
    assert_has(&page, &["queue depth 4, 4 trials: ", "3 of 4: "]);
}

#[test]
fn the_first_of_several_trials_is_what_a_single_one_would_be() {
    let (several, single) = (Place::in_memory(), Place::in_memory());
    let (several, _) = measured(&several, &["--repeats", "2"]);
    let (single, _) = measured(&single, &[]);
    assert_eq!(several.trials[0].workers, single.trials[0].workers);
    assert_ne!(several.trials[1].workers, single.trials[0].workers);
}

#[test]
fn a_condition_is_one_of_all_trials_together() {
    let place = Place::in_memory();
    let (document, _) = measured(&place, &["--repeats", "5"]);
    let (flow, window) = together(&document);
    let all = flow.ios() as f64 / window.as_secs_f64();
    let lowest = each(&document).into_iter().fold(f64::INFINITY, f64::min);
    assert!(lowest < all);
    let judged = |bound: f64| {
        let condition = format!("iops<{bound}");
        code(&place.run(&["report", "result.jsonl", "--fail-if", &condition]))
    };
    // A single trial would fail at the first.
    assert_eq!((judged((lowest + all) / 2.0), judged(all * 1.01)), (0, 6));
}

#[test]
fn a_percentile_is_as_uncertain_as_the_trials_scatter() {
    let place = Place::in_memory();
    let device = "sim:queue,service-time=2ms,noise-between=4%";
    let words = ["run", device, "-q", "16", "-d", "2s", "--repeats", "10", "--seed", "7"];
    let output = place.run(&[&words[..], &["--out", "result.jsonl"]].concat());
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    let summary = summary(&place);
    // Within a trial all times are alike. Student's interval of ten trials is 0.72 times their scatter.
    for figure in ["iops", "p50_ns", "p99_ns", "p99_9_ns"] {
        let of = |part: &str| summary["figures"][figure][part].as_f64().unwrap();
        let share = of("half_width") / of("value");
        assert!((0.01..0.06).contains(&share), "{figure}: {share}");
    }
}

#[test]
fn a_portrait_is_repeated_in_passes() {
    let place = Place::in_memory();
    let words = ["quick", DEVICE, "-d", "200ms", "--warm-up=0s", "--repeats", "3", "--no-probe"];
    let output = place.run(&words);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    let said = stdout(&output);
    assert_has(&said, &["6 steps, 3 times each, 4 s;", "; 3 trials of each step"]);
    let document = place.result();
    let names = document.trials.iter().map(|trial| trial.point.name.as_str());
    let names: Vec<&str> = names.collect();
    assert_eq!((names.len(), &names[..6], &names[..6]), (18, &names[6..12], &names[12..]));
    let repeats = document.trials.iter().map(|trial| trial.place.repeat);
    assert_eq!(repeats.collect::<Vec<u32>>(), [[0; 6], [1; 6], [2; 6]].concat());
}

#[test]
fn a_result_that_was_cut_off_is_one_of_the_trials_that_it_has() {
    let place = Place::in_memory();
    measured(&place, &["--repeats", "5"]);
    let path = place.join("result.jsonl");
    let text = std::fs::read_to_string(&path).unwrap();
    let lines: Vec<&str> = text.lines().take(3).collect();
    std::fs::write(&path, lines.join("\n") + "\n").unwrap();
    let output = place.run(&["report", "result.jsonl"]);
    assert_has(&stdout(&output), &["queue depth 4, 2 trials: ", "cut off after 2 of 5 trials"]);
    let document = read(&path);
    assert!(document.conclusion.is_none_or(|end| end.ended != Ended::Completed));
    let refused = place.run(&["resume", "result.jsonl"]);
    assert_eq!(code(&refused), 5);
    assert_has(&stderr(&refused), &["a run is no experiment that can go on"]);
}

#[test]
fn a_plan_has_the_time_and_the_writes_of_all_trials() {
    let place = Place::with_stand_ins(&[]);
    let load = ["plan", "test.dat", "--rate", "1k", "--read-share=0%", "--overwrite"];
    let times = ["-d", "10s", "--warm-up=0s", "--repeats", "3"];
    let output = place.run(&[&load[..], &times].concat());
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    // 1000 writes of 4 KiB each second, for 30 s.
    let parts =
        ["takes    30 s: 3 times no warm-up, 10 s window", "OVERWRITES test.dat: up to 117"];
    assert_has(&stdout(&output), &parts);
    let refused = place.run(&["run", "test.dat", "--repeats", "0"]);
    assert_eq!(code(&refused), 2);
}
