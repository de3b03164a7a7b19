//! `--trace`: the table of every I/O agrees with the result file, repeats with its seed in virtual
//! time, and stays readable whatever ends the run.

mod common;

use common::{Mount, Place, Running, Table, assert_has, code, stderr, stdout};
use fathom_report::document::Document;

/// Checks that the table has the I/Os that the document counts.
#[track_caller]
fn assert_agree(document: &Document, table: &Table) {
    let ledger = document.trials.iter().map(|trial| trial.ledger());
    let ledger =
        ledger.fold(Default::default(), |sum: fathom_core::measure::Ledger, one| sum.plus(&one));
    let traced = document.trials.iter().map(|trial| trial.traced.as_ref().unwrap());
    let (ios, left_out) =
        traced.fold((0, 0), |(ios, out), one| (ios + one.ios, out + one.left_out));
    assert_eq!(ios, table.column("number").count() as u64);
    assert_eq!(left_out, table.sum("left_out_before"));
    assert_eq!(ios + left_out, ledger.due - ledger.unstarted);
    if left_out == 0 {
        assert_eq!(table.count(["window", ""]), ledger.completed);
        assert_eq!(table.count(["warm-up", ""]), ledger.completed_in_warm_up);
    }
}

const SIMULATED: [&str; 10] =
    ["--duration", "500ms", "--warm-up", "100ms", "-q", "4", "--seed", "5", "--read-share", "60%"];

#[test]
fn a_simulated_run_is_traced_to_the_byte_each_time() {
    let place = Place::new();
    for name in ["a", "b"] {
        let (out, trace) = (format!("{name}.jsonl"), format!("{name}.csv"));
        let args = ["run", "sim:ssd,error-every=50", "--out", &out, "--trace", &trace];
        let output = place.run(&[&args, &SIMULATED[..]].concat());
        assert_eq!(code(&output), 4, "I/Os failed: {}", stderr(&output));
        assert_has(&stdout(&output), &[&format!("trace   {trace}")]);
        let table = Table::read(&place.join(&trace));
        let document = common::read(&place.join(&out));
        assert!(table.count(["window", "EIO"]) > 0);
        assert_agree(&document, &table);
    }
    let bytes = |name| std::fs::read(place.join(name)).unwrap();
    assert_eq!(bytes("a.csv"), bytes("b.csv"));
}

#[test]
fn a_run_on_a_file_is_traced_while_it_goes_on() {
    let place = Place::new();
    place.prepared("data", 1);
    let args = ["run", "data", "-w", "2", "-q", "4", "--buffered", "--trace", "trace.csv"];
    let output = place.run(&[&args[..], &["--duration", "200ms", "--warm-up", "100ms"]].concat());
    // On a busy machine no I/O may complete within the window, which makes it void.
    assert!([0, 4].contains(&code(&output)), "{}", stderr(&output));
    assert_agree(&place.result(), &Table::read(&place.join("trace.csv")));
}

#[test]
fn every_step_of_a_portrait_is_a_trial_of_the_trace() {
    let place = Place::new();
    let args = ["quick", "sim:queue,servers=1", "--trace", "trace.csv", "--out", "a.jsonl"];
    let output = place.run(&[&args[..], &["--duration", "100ms", "--warm-up", "0"]].concat());
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    let (document, table) =
        (common::read(&place.join("a.jsonl")), Table::read(&place.join("trace.csv")));
    assert_agree(&document, &table);
    let mut trials: Vec<&str> = table.column("trial").collect();
    trials.dedup();
    let numbers = (1..=document.trials.len()).map(|number| number.to_string());
    assert!(trials.into_iter().eq(numbers));
}

#[test]
fn nothing_that_exists_is_overwritten_and_nothing_useless_is_left() {
    let place = Place::new();
    std::fs::write(place.join("trace.csv"), "somebody's").unwrap();
    let output = place.run(&[&["run", "sim:ssd", "--trace", "trace.csv"], &SIMULATED[..]].concat());
    assert_eq!(code(&output), 5);
    assert_has(&stderr(&output), &["trace.csv", "never overwritten"]);
    assert_eq!(place.names(), ["trace.csv"]);
    assert_eq!(std::fs::read_to_string(place.join("trace.csv")).unwrap(), "somebody's");
    let twice = ["run", "sim:ssd", "--trace", "a", "--csv", "a"];
    let output = place.run(&[&twice[..], &SIMULATED[..]].concat());
    assert_eq!(code(&output), 2, "{}", stderr(&output));
}

#[test]
fn a_full_disk_ends_the_trace_and_not_the_measurement() {
    let Some(mount) = Mount::tmpfs(1) else { return };
    let place = Place::new();
    let trace = mount.path().join("trace.csv");
    let args = ["run", "sim:ssd", "--out", "a.jsonl", "--trace", trace.to_str().unwrap()];
    let output = place.run(&[&args, &SIMULATED[..]].concat());
    assert_eq!(code(&output), 5, "{}", stderr(&output));
    let told = stderr(&output);
    assert_has(&told, &["trace.csv", "the measurement is whole", "--trace"]);
    let (document, table) = (common::read(&place.join("a.jsonl")), Table::read(&trace));
    let trial = &document.trials[0];
    let traced = trial.traced.as_ref().unwrap();
    assert!(!trial.interrupted && traced.left_out > 0);
    assert_eq!(table.column("number").count() as u64, traced.ios);
    let ledger = trial.ledger();
    assert_eq!(traced.ios + traced.left_out, ledger.due - ledger.unstarted);
    assert!(trial.findings.iter().any(|finding| finding.code == "trace-incomplete"));
}

#[test]
fn ctrl_c_leaves_a_trace_that_agrees_with_what_was_measured() {
    let place = Place::new();
    place.prepared("data", 1);
    let args = ["run", "data", "--buffered", "--trace", "trace.csv", "--duration", "10m"];
    let rest = ["--warm-up", "0", "--rate", "500", "-q", "8"];
    let mut running = Running::start(&mut place.command(&[&args[..], &rest[..]].concat()));
    running.until("random read");
    std::thread::sleep(std::time::Duration::from_millis(500));
    running.signal("INT");
    let (status, said, told) = running.end();
    assert_eq!(status.code(), Some(130), "{said}{told}");
    if !told.contains("nothing was measured") {
        assert_agree(&place.result(), &Table::read(&place.join("trace.csv")));
    }
}
