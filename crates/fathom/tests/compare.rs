//! Compares results of simulated devices, whose true difference is known.

mod common;

use std::path::Path;

use common::{Place, assert_has, code, read, stderr, stdout};
use fathom_report::document::{Found, Trial, Verdict};
use serde_json::Value;

/// A device of which every trial differs from the next by 1.5 %, with this service time.
fn device(service_time: &str) -> String {
    format!("sim:queue,servers=4,noise-between=1.5%,service-time={service_time}")
}

/// A sweep over two depths with this many repeats of each.
fn sweep(place: &Place, device: &str, repeats: &str, seed: &str, out: &str) {
    let mut words = Vec::from(["sweep", device, "--axis", "queue-depth=4,16", "-d", "500ms"]);
    words.extend(["--warm-up", "0", "--repeats", repeats, "--seed", seed, "--yes", "--out", out]);
    let output = place.run(&words);
    assert!([0, 4].contains(&code(&output)), "{}", stderr(&output));
}

/// A run of a second.
fn run(place: &Place, device: &str, more: &[&str], out: &str) {
    let words = [&["run", device, "-d", "1s", "--warm-up", "0", "--out", out], more].concat();
    let output = place.run(&words);
    assert!([0, 4].contains(&code(&output)), "{}", stderr(&output));
}

/// The comparison with these words: its exit code, and what it printed.
fn compared(place: &Place, words: &[&str]) -> (i32, String) {
    let output = place.run(&[&["compare"], words].concat());
    (code(&output), format!("{}{}", stdout(&output), stderr(&output)))
}

fn json(place: &Place, words: &[&str]) -> Value {
    let (_, text) = compared(place, &[words, &["--json"]].concat());
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// Changes a result file.
fn edit(path: &Path, change: impl Fn(String) -> String) {
    let text = std::fs::read_to_string(path).unwrap();
    let changed = change(text.clone());
    assert_ne!(text, changed, "the change has no effect");
    std::fs::write(path, changed).unwrap();
}

#[test]
fn a_device_that_is_slower_is_found_with_its_size_and_fails_a_condition() {
    let place = Place::in_memory();
    sweep(&place, &device("100us"), "8", "1", "before.jsonl");
    sweep(&place, &device("110us"), "8", "2", "after.jsonl");
    let (ended, text) = compared(&place, &["before.jsonl", "after.jsonl", "--width", "100"]);
    assert_eq!(ended, 0, "{text}");
    let answer = text.trim_end().lines().rev().take_while(|line| !line.is_empty());
    let answer: Vec<&str> = answer.collect();
    let answer: Vec<&str> = answer.into_iter().rev().collect();
    let answer = answer.join(" ");
    assert!(answer.starts_with("after is slower than before at 2 of 2 points, most at"), "{text}");
    assert_has(&text, &["what differs", "service-time=100us", "service-time=110us"]);
    assert_has(&text, &["measured separately", "trials of each point: 8 before, 8 after"]);

    let whole = json(&place, &["before.jsonl", "after.jsonl"]);
    assert_eq!((&whole["outcome"], &whole["design"]), (&"slower".into(), &"separate".into()));
    let points = whole["against"][0]["points"].as_array().unwrap();
    assert_eq!(points.len(), 2);
    for figure in points.iter().flat_map(|point| point["figures"].as_array().unwrap()) {
        // All times of the slower device are a tenth longer, and its rate is a tenth lower.
        let truth = if figure["figure"] == "iops" { 1.0 / 1.1 } else { 1.1 };
        let ratio = &figure["ratio"];
        let end = |name: &str| ratio[name].as_f64().unwrap();
        assert!(end("low") < end("value") && end("value") < end("high"), "{figure}");
        // The intervals hold together in 95 of 100 comparisons: this one is fixed by its seeds.
        assert!(end("low") <= truth && truth <= end("high"), "{figure}");
        assert_eq!(figure["outcome"], "slower", "{figure}");
    }

    let fails = |condition: &str| {
        compared(&place, &["before.jsonl", "after.jsonl", "--fail-if", condition])
    };
    let (ended, text) = fails("iops worse than 4%");
    assert_eq!(ended, 6, "{text}");
    assert_has(&text, &["fails", "iops worse than 4%: IOPS", "lower"]);
    let (ended, text) = fails("p99 worse than 30%");
    assert_eq!(ended, 0, "{text}");
    assert_has(&text, &["passes all conditions"]);
    let (ended, text) = fails("mean worse than 10%");
    assert_eq!(ended, 7, "{text}");
    assert_has(&text, &["undecided: mean worse than 10%: mean"]);
    // Of several sides it names the one that fails.
    sweep(&place, &device("100us"), "8", "3", "same.jsonl");
    let three = ["before.jsonl", "same.jsonl", "after.jsonl", "--fail-if", "iops worse than 4%"];
    let (ended, text) = compared(&place, &three);
    assert_eq!(ended, 6, "{text}");
    assert_has(&text, &[" in after (and at 1 more)"]);
    // A faster one is no regression.
    let (ended, text) =
        compared(&place, &["after.jsonl", "before.jsonl", "--fail-if", "p99 worse than 1%"]);
    assert_eq!(ended, 0, "{text}");
    assert_eq!(json(&place, &["after.jsonl", "before.jsonl"])["outcome"], "faster");
}

#[test]
fn what_is_alike_is_the_same_and_what_scatters_is_undecided() {
    let place = Place::in_memory();
    sweep(&place, &device("100us"), "10", "1", "a.jsonl");
    sweep(&place, &device("100us"), "10", "2", "b.jsonl");
    let words = ["a.jsonl", "b.jsonl", "--metric", "iops,mean"];
    let whole = json(&place, &words);
    assert_eq!(whole["outcome"], "same", "{whole}");
    let restless = "sim:queue,servers=4,noise-between=15%";
    sweep(&place, restless, "3", "1", "c.jsonl");
    sweep(&place, restless, "3", "2", "d.jsonl");
    let words = ["c.jsonl", "d.jsonl", "--fail-if", "iops worse than 5%"];
    let (ended, text) = compared(&place, &words);
    assert_eq!(ended, 7, "{text}");
    let figure = &json(&place, &words)["against"][0]["points"][0]["figures"][0];
    assert_eq!(figure["outcome"], "undecided");
    assert!(0.05 < figure["could_have_seen"].as_f64().unwrap(), "{figure}");
    assert!(0 < figure["more_trials"].as_u64().unwrap_or(1), "{figure}");
}

#[test]
fn one_trial_on_a_side_is_shown_and_cannot_decide() {
    let place = Place::in_memory();
    run(&place, &device("100us"), &[], "a.jsonl");
    run(&place, &device("300us"), &[], "b.jsonl");
    let (ended, text) = compared(&place, &["a.jsonl", "b.jsonl"]);
    assert_eq!(ended, 0, "{text}");
    assert_has(&text, &["one trial on a side cannot decide", "--repeats 10", "no intervals"]);
    assert!(!text.contains("slower"), "{text}");
    let (ended, text) = compared(&place, &["a.jsonl", "b.jsonl", "--fail-if", "p99 worse than 5%"]);
    assert_eq!(ended, 7, "{text}");
    let figure = &json(&place, &["a.jsonl", "b.jsonl"])["against"][0]["points"][0]["figures"][0];
    assert_eq!((&figure["outcome"], &figure["ratio"]["low"]), (&"one_trial".into(), &Value::Null));
}

#[test]
fn another_workload_is_refused_by_name_unless_the_user_matches_it() {
    let place = Place::in_memory();
    run(&place, "sim:queue", &[], "a.jsonl");
    run(&place, "sim:queue", &["-b", "8k", "-q", "16"], "b.jsonl");
    let (ended, text) = compared(&place, &["a.jsonl", "b.jsonl"]);
    assert_eq!(ended, 8, "{text}");
    let refusal = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert_has(
        &refusal,
        &["cannot be compared", "random reads of 4 KiB; closed loop at queue depth 32, against"],
    );
    let (ended, text) = compared(&place, &["a.jsonl", "b.jsonl", "--match", "order"]);
    assert_eq!(ended, 0, "{text}");
    assert_has(&text, &["workload", "random reads of 8 KiB"]);
    // Their names differ as well.
    assert_eq!(compared(&place, &["a.jsonl", "b.jsonl", "--match", "name"]).0, 8);
    // A condition cannot be checked where a point is missing.
    sweep(&place, "sim:queue", "2", "1", "c.jsonl");
    edit(&place.join("c.jsonl"), |text| text.replace("\"queue_depth\":16", "\"queue_depth\":17"));
    sweep(&place, "sim:queue", "2", "1", "d.jsonl");
    let words = ["c.jsonl", "d.jsonl", "--fail-if", "iops worse than 5%"];
    let (ended, text) = compared(&place, &words);
    assert_eq!(ended, 8, "{text}");
    assert_has(&text, &["Not compared", "queue-depth 16: the workloads differ"]);
    assert_eq!(compared(&place, &words[..2]).0, 0);
}

#[test]
fn void_trials_do_not_count_and_are_named() {
    let place = Place::in_memory();
    sweep(&place, &device("100us"), "3", "1", "a.jsonl");
    sweep(&place, &device("100us"), "3", "2", "b.jsonl");
    let with_void = |count: usize| {
        move |text: String| {
            let void =
                |line: &str| line.replacen("\"verdict\":\"sound\"", "\"verdict\":\"void\"", 1);
            let mut left = count;
            let lines = text.lines().map(|line| {
                let is_one = line.starts_with("{\"line\":\"trial\"")
                    && line.contains("\"axis\":\"queue-depth\",\"label\":\"4\"")
                    && 0 < left;
                left -= usize::from(is_one);
                if is_one { void(line) } else { line.to_owned() }
            });
            lines.collect::<Vec<_>>().join("\n") + "\n"
        }
    };
    edit(&place.join("b.jsonl"), with_void(1));
    let (_, text) = compared(&place, &["a.jsonl", "b.jsonl"]);
    assert_has(&text, &["1 void trials do not count"]);
    let point = &json(&place, &["a.jsonl", "b.jsonl"])["against"][0]["points"][0];
    assert_eq!(point["trials"], serde_json::json!([3, 2]));
    assert_eq!(point["void"][1].as_array().unwrap().len(), 1);
    edit(&place.join("b.jsonl"), with_void(3));
    let (_, text) = compared(&place, &["a.jsonl", "b.jsonl"]);
    assert_has(
        &text,
        &["Not compared", "queue-depth 4: all its trials are void on the second side"],
    );
}

#[test]
fn files_that_cannot_be_compared_get_a_clear_word() {
    let place = Place::in_memory();
    run(&place, "sim:queue", &[], "a.jsonl");
    run(&place, "sim:queue", &["--seed", "2"], "b.jsonl");
    std::fs::copy(place.join("a.jsonl"), place.join("copy.jsonl")).unwrap();
    for words in [["a.jsonl", "a.jsonl"], ["a.jsonl", "copy.jsonl"]] {
        let (ended, text) = compared(&place, &words);
        assert_eq!(ended, 2, "{text}");
        assert_has(&text, &["it is the same result as a.jsonl", "--by AXIS"]);
    }
    let (ended, text) = compared(&place, &["a.jsonl"]);
    assert_eq!(ended, 2, "{text}");
    assert_has(&text, &["one result has nothing to be compared with", "name a second result"]);
    let (ended, text) = compared(&place, &["a.jsonl", "none.jsonl"]);
    assert_eq!(ended, 5, "{text}");
    std::fs::write(place.join("text.jsonl"), "no result\n").unwrap();
    assert_eq!(compared(&place, &["a.jsonl", "text.jsonl"]).0, 5);
    let (ended, text) = compared(&place, &["a.jsonl", "b.jsonl", "--fail-if", "max worse than 5%"]);
    assert_eq!(ended, 2, "{text}");

    // A torn file is read as far as it goes, and the page says so.
    edit(&place.join("copy.jsonl"), |text| {
        let conclusion = text.find("{\"line\":\"conclusion\"").unwrap();
        text[..conclusion + 20].to_owned()
    });
    let (ended, text) = compared(&place, &["copy.jsonl", "b.jsonl"]);
    assert_eq!(ended, 0, "{text}");
    assert_has(&text, &["its last line is torn", "cut off"]);

    edit(&place.join("b.jsonl"), |text| {
        text.replacen("\"measurement_version\":1", "\"measurement_version\":0", 1)
    });
    let (ended, text) = compared(&place, &["a.jsonl", "b.jsonl"]);
    assert_eq!(ended, 8, "{text}");
    assert_has(&text, &["measured in different ways", "measurement versions 1 and 0"]);
}

#[test]
fn the_values_of_an_axis_are_compared_within_one_session() {
    let place = Place::in_memory();
    sweep(&place, &device("100us"), "6", "1", "a.jsonl");
    let whole = json(&place, &["a.jsonl", "--by", "queue-depth", "--metric", "iops,p99"]);
    assert_eq!(whole["design"], "paired");
    assert_eq!(whole["sides"][1]["name"], "queue-depth 16");
    let figures = &whole["against"][0]["points"][0]["figures"];
    // Four servers: four times as deep waits four times as long, at the same rate.
    let value = |place: usize| figures[place]["ratio"]["value"].as_f64().unwrap();
    assert!((value(0) - 1.0).abs() < 0.06 && (value(1) - 4.0).abs() < 0.4, "{figures}");
    assert_eq!(figures[1]["outcome"], "slower");
    let (ended, text) = compared(&place, &["a.jsonl", "--by", "depth"]);
    assert_eq!(ended, 2, "{text}");
    assert_has(&text, &["does not have several values of it", "it has: queue-depth"]);
}

#[test]
fn targets_that_had_their_load_at_the_same_time_are_compared() {
    let place = Place::new();
    let [a, b] = ["a", "b"].map(|name| place.prepared(name, 4));
    let before = [&a, &b].map(|path| std::fs::read(path).unwrap());
    let words = ["run", "a", "b", "-d", "200ms", "--warm-up", "0", "--repeats", "3"];
    let output = place.run(&[&words[..], &["-q", "4", "--out", "two.jsonl"]].concat());
    assert!([0, 4].contains(&code(&output)), "{}", stderr(&output));
    let whole = json(&place, &["two.jsonl", "--by", "target", "--metric", "iops,cpu"]);
    // On a machine where a trial is void, or a target was not read, they are not these figures.
    let result = read(&place.join("two.jsonl"));
    let ios = |one: &Trial, target| one.flow(None, |_, cell| cell.target == target).ios();
    let is_idle = |one: &Trial| ios(one, 0) == 0 || ios(one, 1) == 0;
    if !result.trials.iter().any(|one| one.verdict == Verdict::Void || is_idle(one)) {
        assert_eq!(
            (&whole["sides"][0]["name"], &whole["sides"][1]["name"]),
            (&"a".into(), &"b".into())
        );
        let point = &whole["against"][0]["points"][0];
        assert_eq!(point["trials"], serde_json::json!([3, 3]), "{whole}");
        // CPU time is known of both together alone.
        assert_eq!(point["figures"][1]["before"], Value::Null);
        let both = result.trials.iter().map(|one| (ios(one, 0), ios(one, 1)));
        let (own, others) = both.fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
        let value = |side: &str| point["figures"][0][side].as_f64().unwrap();
        let ratio = value("after") / value("before");
        assert!((ratio / (others as f64 / own as f64) - 1.0).abs() < 1e-6, "{whole}");
    }
    assert!([&a, &b].map(|path| std::fs::read(path).unwrap()) == before, "they were only read");
}

#[test]
fn a_comparison_that_ended_early_keeps_the_level_of_its_look() {
    let place = Place::in_memory();
    let words =
        ["ab", "sim:queue,noise-between=1%", "sim:queue,service-time=120us,noise-between=1%"];
    let rest = ["-d", "200ms", "--warm-up", "0", "--yes", "--seed", "1", "--out", "ab.jsonl"];
    let output = place.run(&[&words[..], &rest].concat());
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    let Some(Found::Ab(found)) = read(&place.join("ab.jsonl")).conclusion.unwrap().found else {
        panic!("two sides were compared")
    };
    assert!(found.ended_early && found.level < 0.01, "{found:?}");
    let whole = json(&place, &["ab.jsonl", "--by", "side"]);
    assert_eq!((&whole["design"], &whole["outcome"]), (&"paired".into(), &"slower".into()));
    assert!((whole["confidence"].as_f64().unwrap() - (1.0 - found.level)).abs() < 1e-12);
}

#[test]
fn a_comparison_in_one_go_has_the_conditions_of_two_sides() {
    let place = Place::in_memory();
    let sides =
        ["ab", "sim:queue,noise-between=1%", "sim:queue,service-time=120us,noise-between=1%"];
    let rest = ["-d", "200ms", "--warm-up", "0", "--yes", "--seed", "1"];
    for (condition, expected) in
        [("iops worse than 5%", 6), ("iops worse than 40%", 0), ("iops worse than 16%", 7)]
    {
        let output = place.run(&[&sides[..], &rest, &["--fail-if", condition]].concat());
        assert_eq!(code(&output), expected, "{condition}: {}", stderr(&output));
        if expected != 0 {
            assert_has(&stderr(&output), &["--fail-if iops worse than", "IOPS", "lower ("]);
        }
    }
    let output = place.run(&[&sides[..], &rest, &["--fail-if", "p50>440us"]].concat());
    assert_eq!(code(&output), 6, "{}", stderr(&output));
    assert_has(&stderr(&output), &["--fail-if 'p50>440us': p50 is ", " with B"]);
    let one = ["run", "sim:queue", "-d", "200ms", "--fail-if", "p99 worse than 5%"];
    let output = place.run(&one);
    assert_eq!(code(&output), 2, "{}", stderr(&output));
    assert_has(&stderr(&output), &["it compares two sides", "fathom ab"]);
    assert_eq!(place.names().iter().filter(|name| name.ends_with(".jsonl")).count(), 4);
}

#[test]
fn every_kind_of_result_is_compared() {
    let place = Place::in_memory();
    for (seed, name) in [("1", "a"), ("2", "b")] {
        let out = |kind: &str| format!("{kind}-{name}.jsonl");
        let words = |text: &str, kind: &str| {
            let out = out(kind);
            let mut all: Vec<&str> = text.split_whitespace().collect();
            all.extend(["--seed", seed, "--out", &out]);
            let output = place.run(&all);
            assert!([0, 4].contains(&code(&output)), "{}", stderr(&output));
        };
        words("quick sim:ssd --duration 200ms --warm-up 0", "quick");
        words("peak sim:ssd --duration 200ms --warm-up 0 --official none --yes", "peak");
        words("map sim:ssd --grid 4x4 --cell-time 1s --yes", "map");
        words(
            "sustain sim:queue,service-time=50ms --duration 1s --at-least 10s --rounds 12 --yes",
            "sustain",
        );
    }
    for (kind, least) in [("quick", 6), ("peak", 4), ("map", 6), ("sustain", 1)] {
        let [a, b] = ["a", "b"].map(|name| format!("{kind}-{name}.jsonl"));
        let (ended, text) = compared(&place, &[&a, &b]);
        assert_eq!(ended, 0, "{kind}: {text}");
        let whole = json(&place, &[&a, &b]);
        let points = whole["against"][0]["points"].as_array().unwrap();
        assert!(least <= points.len(), "{kind}: {text}");
        for figure in &points.iter().map(|one| &one["figures"][0]).collect::<Vec<_>>() {
            assert!(
                figure["before"].is_number() && figure["after"].is_number(),
                "{kind}: {figure}"
            );
        }
    }
    let fio = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/fio/two-jobs.json");
    for (name, factor) in [("a.jsonl", "1"), ("b.jsonl", "2")] {
        let text = std::fs::read_to_string(&fio).unwrap();
        let changed = text.replace("\"timestamp\" : 1", &format!("\"timestamp\" : {factor}"));
        std::fs::write(place.join("fio.json"), changed).unwrap();
        let output = place.run(&["import", "fio.json", "--out", name]);
        assert_eq!(code(&output), 0, "{}", stderr(&output));
    }
    let whole = json(&place, &["a.jsonl", "b.jsonl"]);
    assert_eq!(whole["outcome"], "one_trial", "{whole}");
    let ratio = &whole["against"][0]["points"][0]["figures"][0]["ratio"];
    assert_eq!((&ratio["value"], &ratio["low"]), (&1.0.into(), &Value::Null));
    // A map of a target that carries half has its steps at other loads.
    let slower = ["map", "sim:ssd,channels=16", "--grid", "4x4", "--cell-time", "1s", "--yes"];
    let output = place.run(&[&slower[..], &["--out", "map-c.jsonl"]].concat());
    assert!([0, 4].contains(&code(&output)), "{}", stderr(&output));
    let (ended, text) = compared(&place, &["map-a.jsonl", "map-c.jsonl"]);
    assert_eq!(ended, 8, "{text}");
    assert_has(&text, &["the maps: their steps are not at the same loads", "--match order"]);
    let by_order = ["map-a.jsonl", "map-c.jsonl", "--match", "order"];
    assert_eq!(compared(&place, &by_order).0, 0);
    // Maps as Diskplorer has them: cells with percentiles, and no distributions.
    for name in ["a", "b"] {
        let (map, json, back) =
            (format!("map-{name}.jsonl"), format!("{name}.json"), format!("back-{name}.jsonl"));
        let export = ["export", &map, "--format", "diskplorer", "--out", &json];
        assert_eq!(code(&place.run(&export)), 0);
        let output = place.run(&["import", &json, "--out", &back]);
        assert_eq!(code(&output), 0, "{}", stderr(&output));
    }
    let whole = json(&place, &["back-a.jsonl", "back-b.jsonl"]);
    assert_eq!(whole["outcome"], "one_trial", "{whole}");
    let points = whole["against"][0]["points"].as_array().unwrap();
    let has_p99 = |point: &&Value| {
        let figures = point["figures"].as_array().unwrap();
        figures.iter().any(|one| one["figure"] == "p99" && one["ratio"]["value"].is_number())
    };
    assert!(6 <= points.iter().filter(has_p99).count(), "{whole}");
}

#[test]
fn several_results_are_each_compared_with_the_first() {
    let place = Place::in_memory();
    for (name, service_time, seed) in
        [("a", "100us", "1"), ("b", "100us", "2"), ("c", "130us", "3")]
    {
        sweep(&place, &device(service_time), "8", seed, &format!("{name}.jsonl"));
    }
    let words = ["a.jsonl", "b.jsonl", "c.jsonl", "--metric", "iops,mean"];
    let whole = json(&place, &words);
    let outcomes: Vec<&Value> =
        whole["against"].as_array().unwrap().iter().map(|one| &one["outcome"]).collect();
    assert_eq!(outcomes, ["same", "slower"]);
    let (ended, text) =
        compared(&place, &[&words[..], &["--fail-if", "iops worse than 5%"]].concat());
    assert_eq!(ended, 6, "{text}");
    assert_has(&text, &["b against a", "c against a"]);
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let said = "against a, 1 of 2 sides is slower, 1 is without a difference beyond 5 %; the largest \
                difference is that of c at queue-depth";
    assert_has(&text, &[said]);
}

#[test]
fn reports_are_written_for_people_and_servers_and_never_over_a_file() {
    let place = Place::in_memory();
    sweep(&place, &device("100us"), "5", "1", "a.jsonl");
    sweep(&place, &device("120us"), "5", "2", "b.jsonl");
    let files = ["--html", "c.html", "--junit", "c.xml", "--markdown", "c.md"];
    let (ended, text) = compared(&place, &[&["a.jsonl", "b.jsonl"], &files[..]].concat());
    assert_eq!(ended, 0, "{text}");
    let file = |name: &str| std::fs::read_to_string(place.join(name)).unwrap();
    assert_has(&file("c.html"), &["b is slower than a", "Distributions of both sides"]);
    assert_has(&file("c.md"), &["b is slower than a", "| IOPS |"]);
    let xml = file("c.xml");
    let mut reader = quick_xml::Reader::from_str(&xml);
    let mut cases = 0;
    loop {
        match reader.read_event().unwrap() {
            quick_xml::events::Event::Eof => break,
            quick_xml::events::Event::Start(tag) => {
                cases += usize::from(tag.name().as_ref() == "testcase");
            }
            _ => {}
        }
    }
    assert_eq!(cases, 2, "{xml}");
    assert_has(&xml, &["failures=\"2\"", "<failure message=\"slower: IOPS"]);
    let words = ["a.jsonl", "b.jsonl", "--html", "c.html"];
    let (ended, text) = compared(&place, &words);
    assert_eq!(ended, 5, "{text}");
    assert_has(&text, &["c.html", "never overwritten"]);
    let words = ["a.jsonl", "b.jsonl", "--junit", "-", "--fail-if", "p99 worse than 5%"];
    let output = place.run(&[&["compare"], &words[..]].concat());
    assert_eq!(code(&output), 6);
    assert_has(&stdout(&output), &["<?xml", "tests=\"1\"", "p99 worse than 5%"]);
}
