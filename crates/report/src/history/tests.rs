//! Histories of results that are made from the stored documents: a shorter window of the same I/Os
//! has more IOPS.

use std::io::BufReader;

use fathom_core::facts::TargetKind;
use fathom_core::{Quantile, SplitMix64};

use super::*;
use crate::document::{Document, Layer, LayerKind, Verdict, read_timeless, rfc3339};
use crate::page::{Level, history};
use crate::terminal::{self, Style};
use crate::{csv, html};

/// 2026-01-01 00:00:00 UTC.
const START_NS: u64 = 1_767_225_600_000_000_000;
const DAY_NS: u64 = 86_400_000_000_000;

fn stored(name: &str) -> Document {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data");
    let file = std::fs::File::open(format!("{folder}/{name}.jsonl")).unwrap();
    read_timeless(&mut BufReader::new(file)).unwrap().unwrap()
}

/// The same result of another day, with this many times the IOPS.
fn on(day: usize, faster: f64, document: &Document) -> Document {
    let mut document = document.clone();
    let created = START_NS + day as u64 * DAY_NS;
    (document.header.created_unix_ns, document.header.created) = (created, rfc3339(created));
    document.header.seed = Some(day as u64);
    for trial in &mut document.trials {
        trial.window_ns = (trial.window_ns as f64 / faster) as u64;
        trial.point.seed = day as u64;
        trial.verdict = Verdict::Sound;
    }
    document
}

fn iops() -> HistoryRequest {
    HistoryRequest { metrics: Vec::from([Metric::Iops]), any_host: false }
}

fn entry(file: &str, document: Document, request: &HistoryRequest) -> HistoryEntry {
    HistoryEntry::of(file, document, request).unwrap()
}

/// 40 results, of which the last 15 have a lower rate and another kernel.
fn slower() -> Vec<HistoryEntry> {
    let mut chance = SplitMix64(3);
    let base = stored("open");
    let one = |day: usize| {
        let noise = (0.01 * chance.normal()).exp();
        let mut document = on(day, noise * if day < 25 { 1.0 } else { 0.88 }, &base);
        if 25 <= day {
            document.header.host.as_mut().unwrap().kernel = "6.19.1".to_owned();
        }
        entry(&format!("{day:02}.jsonl"), document, &iops())
    };
    (0..40).map(one).collect()
}

#[test]
fn a_change_is_told_with_its_day_its_size_and_what_changed_there() {
    let found = History::of("results", slower(), Vec::new());
    let [group] = &found.groups[..] else { panic!("{found:#?}") };
    let [series] = &group.series[..] else { panic!("{group:#?}") };
    let [change] = &series.changes[..] else { panic!("{:#?}", series.changes) };
    assert_eq!((found.results, change.at, change.better), (40, 25, false));
    assert!(change.ratio.low < 0.88 && 0.88 < change.ratio.high && change.p <= 0.02);
    let known: Vec<&str> = change.facts.iter().map(|fact| fact.name.as_str()).collect();
    assert_eq!(known, ["kernel"]);
    for part in [
        "IOPS changed once in 40 results: on 2026-01-26 it fell by 1",
        " %), where the kernel changed from 6.18.44 to 6.19.1.",
    ] {
        assert!(found.answer.contains(part), "{}", found.answer);
    }
    assert_eq!(series.levels.iter().map(|level| level.results).collect::<Vec<_>>(), [25, 15]);
    let table = csv::history::document(&found);
    assert_eq!(table.lines().count(), 41);
    assert_eq!(table.lines().filter(|line| !line.ends_with(",,,,")).count(), 2, "{table}");
}

#[test]
fn the_order_of_the_files_does_not_matter() {
    let mut entries = slower();
    let found = History::of("results", entries.clone(), Vec::new());
    entries.reverse();
    entries.swap(3, 30);
    assert_eq!(History::of("results", entries, Vec::new()), found);
}

#[test]
fn results_that_do_not_count_are_named_and_why() {
    let base = stored("open");
    let mut entries: Vec<HistoryEntry> =
        (0..8).map(|day| entry(&format!("{day}.jsonl"), on(day, 1.0, &base), &iops())).collect();
    entries.push(entry("copy.jsonl", on(7, 1.0, &base), &iops()));
    let mut other = on(8, 1.0, &base);
    other.header.measurement_version = 0;
    entries.push(entry("older.jsonl", other, &iops()));
    let mut void = on(9, 1.0, &base);
    void.trials[0].verdict = Verdict::Void;
    entries.push(entry("void.jsonl", void, &iops()));
    let mut half = on(10, 1.0, &base);
    half.torn = true;
    entries.push(entry("half.jsonl", half, &iops()));
    let torn = NotUsed { file: "torn.jsonl".to_owned(), why: "it is torn".to_owned() };
    let found = History::of("results", entries, Vec::from([torn]));
    let names = |all: &[NotUsed]| all.iter().map(|one| one.file.clone()).collect::<Vec<_>>();
    assert_eq!(names(&found.skipped), ["copy.jsonl", "older.jsonl", "torn.jsonl"]);
    assert_eq!(names(&found.left_out), ["half.jsonl", "void.jsonl"]);
    assert!(found.left_out[0].why.contains("torn"), "{:?}", found.left_out);
    assert_eq!(found.results, 9);
    assert!(found.skipped[0].why.ends_with("7.jsonl"), "{:?}", found.skipped);
    assert!(found.skipped[1].why.contains("measurement version 0"), "{:?}", found.skipped);
    // Of nine results, too many orders are as clear as a change.
    let few = "9 results in results, and too few of the same workload on the same target to tell of \
               changes.";
    assert_eq!(found.answer, few);
    let mut empty = on(1, 1.0, &base);
    empty.trials.clear();
    assert!(HistoryEntry::of("e", empty, &iops()).unwrap_err().contains("no finished trial"));
}

#[test]
fn results_of_a_device_belong_together_and_those_of_files_only_on_their_host() {
    let base = stored("open");
    let of = |host: &str, serial: Option<&str>, any_host: bool, day: usize| {
        let mut document = on(day, 1.0, &base);
        document.header.host.as_mut().unwrap().name = host.to_owned();
        document.header.targets.truncate(1);
        document.header.identities = Vec::from(["inode 7".to_owned()]);
        if let Some(serial) = serial {
            let target = &mut document.header.targets[0];
            target.kind = TargetKind::BlockDevice;
            target.name = format!("/dev/sd{day}");
            target.layers = Vec::from([Layer { kind: LayerKind::Disk, ..Layer::default() }]);
            document.header.identities = Vec::from([format!("wwid w, serial {serial}")]);
        }
        entry(&format!("{day}"), document, &HistoryRequest { any_host, ..iops() })
    };
    let groups = |entries: Vec<HistoryEntry>| History::of("r", entries, Vec::new()).groups.len();
    let device = Some("S1");
    assert_eq!(groups(Vec::from([of("a", None, false, 0), of("b", None, false, 1)])), 2);
    assert_eq!(groups(Vec::from([of("a", None, true, 0), of("b", None, true, 1)])), 1);
    assert_eq!(groups(Vec::from([of("a", device, false, 0), of("b", device, false, 1)])), 1);
    assert_eq!(groups(Vec::from([of("a", device, false, 0), of("a", Some("S2"), false, 1)])), 2);
}

#[test]
fn of_many_points_only_those_that_changed_are_shown_in_full() {
    let base = stored("quick");
    let mut chance = SplitMix64(8);
    let mut entries = Vec::new();
    for day in 0..30 {
        let mut document = on(day, 1.0, &base);
        for (nth, trial) in document.trials.iter_mut().enumerate() {
            let level = if nth == 2 && 12 <= day { 0.9 } else { 1.0 };
            let faster = level * (0.01 * chance.normal()).exp();
            trial.window_ns = (trial.window_ns as f64 / faster) as u64;
        }
        entries.push(entry(&format!("{day}.jsonl"), document, &iops()));
    }
    let found = History::of("results", entries, Vec::new());
    let series = &found.groups[0].series;
    assert_eq!(series.len(), base.trials.len());
    let changed: Vec<&HistorySeries> =
        series.iter().filter(|one| !one.changes.is_empty()).collect();
    assert_eq!(changed.len(), 1);
    assert_eq!(changed[0].point, base.trials[2].point.name);
    let page = history(&found, Level::Short);
    let text = terminal::page(&page, &Style { width: 80, color: false });
    let tables = text.lines().filter(|line| line.contains("chance")).count();
    assert_eq!(tables, 1, "{text}");
    assert!(text.contains("Without a change"), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    assert!(text.contains("2026-01-13: fell by"), "{text}");
    let page = html::page_without_library(&history(&found, Level::Complete));
    assert!(page.contains("\"chart-history-1\"") && !page.contains("\"chart-history-2\""));
}

#[test]
fn an_open_loop_is_followed_by_its_times_and_a_closed_loop_by_its_rate() {
    let metrics = |name: &str| -> Vec<String> {
        let entry = entry("a", stored(name), &HistoryRequest::default());
        entry.points[0].figures.iter().map(|figure| figure.0.typed()).collect()
    };
    assert_eq!(metrics("open"), ["mean", "p99"]);
    assert_eq!(metrics("quick"), ["iops", "p99"]);
}

#[test]
fn a_folder_without_results_says_so() {
    let none = History::of("results", Vec::new(), Vec::new());
    assert_eq!(none.answer, "There are no results in results that have figures.");
    let base = stored("open");
    let few = (0..3).map(|day| entry(&format!("{day}"), on(day, 1.0, &base), &iops())).collect();
    let few = History::of("results", few, Vec::new());
    assert!(few.answer.contains("too few"), "{}", few.answer);
    assert!(few.to_json().contains("\"history_version\": 1"));
}

#[test]
fn results_that_are_too_few_to_test_are_named_beside_the_others_and_drawn() {
    let base = stored("open");
    let of = |target: &str, number: usize| -> Vec<HistoryEntry> {
        let one = |day: usize| {
            let mut document = on(day, 1.0 + 0.01 * (day % 3) as f64, &base);
            // Another seed, or they would be copies.
            document.header.seed = Some(1000 * day as u64 + u64::from(target.as_bytes()[6]));
            document.header.targets.truncate(1);
            let path = &mut document.header.targets[0];
            (path.path, path.name) = (target.to_owned(), target.to_owned());
            entry(&format!("{target}-{day}.jsonl"), document, &iops())
        };
        (0..number).map(one).collect()
    };
    let found = |parts: &[(&str, usize)]| {
        let entries = parts.iter().flat_map(|(target, number)| of(target, *number));
        History::of("results", entries.collect(), Vec::new())
    };
    let two = found(&[("/data/a", 12), ("/data/b", 5)]);
    let said = "No change was found in 12 results, on average IOPS 4,044 (a second half that \
                is 4.6 % lower would very likely show); 5 results of another target are too few to tell.";
    assert_eq!(two.answer, said);
    let both = found(&[("/data/a", 12), ("/data/b", 12), ("/data/c", 1), ("/data/d", 2)]);
    let said = "No change was found in 24 results on 2 targets; 3 results of other targets are too few \
                to tell.";
    assert_eq!(both.answer, said);

    // Each section names its target, and two results are enough for a chart.
    let text = terminal::page(&history(&both, Level::Short), &Style { width: 200, color: false });
    for target in ["/data/a", "/data/b", "/data/c", "/data/d"] {
        let heading = format!(" on {target}");
        assert!(
            text.lines().any(|line| line.contains("run: ") && line.contains(&heading)),
            "{text}"
        );
    }
    let page = html::page_without_library(&history(&both, Level::Complete));
    let charts = (1..=4).filter(|nth| page.contains(&format!("\"chart-history-{nth}\"")));
    assert_eq!(charts.count(), 3, "all but the single result");
    assert!(page.contains("IOPS: 2 results, too few to find a change."));
}

#[test]
fn a_figure_that_few_results_have_is_no_level() {
    let base = stored("open");
    let p99 = Metric::Quantile(Quantile(0.99));
    let request = HistoryRequest { metrics: Vec::from([Metric::Iops, p99]), any_host: false };
    let one = |day: usize| {
        let document = on(day, 1.0 + 0.01 * (day % 3) as f64, &base);
        let mut one = entry(&format!("{day}.jsonl"), document, &request);
        if 3 <= day {
            one.points[0].figures[1].1 = None;
        }
        one
    };
    let found = History::of("results", (0..16).map(one).collect(), Vec::new());
    let start = "No change was found in 16 results, on average IOPS 4,0";
    assert!(found.answer.starts_with(start) && !found.answer.contains("p99"), "{}", found.answer);
    let said = &found.groups[0].series[1].sentence;
    assert_eq!(said, "p99: 3 results, too few to find a change.");
}

#[test]
fn sizes_are_told_in_percent_and_large_ones_in_times() {
    for (value, low, high, text) in [
        (0.88, 0.85, 0.91, "fell by 12 % (9 to 15 %)"),
        (1.05, 1.02, 1.08, "rose by 5 % (2 to 8 %)"),
        (3.2, 3.0, 3.4, "rose to 3.20 times (3.00 to 3.40)"),
        (0.25, 0.25, 0.25, "fell by 75 %"),
        (1.01, 0.99, 1.03, "rose by 1 % (-1 to 3 %)"),
    ] {
        assert_eq!(moved(Ratio { value, low, high }), text);
    }
    assert_eq!(Metric::Quantile(Quantile(0.999)).typed(), "p99.9");
}
