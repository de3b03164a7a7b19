//! Tests what a user gets from `fathom calibrate`: a table, a document if requested, and no other
//! file.

mod common;

use common::{Place, assert_has, code, stderr, stdout};
use fathom_report::document::CALIBRATION_FORMAT;

#[test]
fn a_calibration_is_shown_and_nothing_is_written() {
    let place = Place::new();
    let output = place.run(&["calibrate", "--duration", "10ms"]);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    assert_has(&stdout(&output), &["backend", "clock", "wake-up", "/dev/zero, 1 worker", "IOPS"]);
    // The last paragraph is the answer.
    let text = stdout(&output);
    let answer = text.trim_end().rsplit("\n\n").next().expect("split yields something");
    let can_be = ["one worker can do up to ", "too few I/Os for a figure"];
    assert!(can_be.iter().any(|start| answer.starts_with(start)), "{text}");
    assert!(stderr(&output).is_empty(), "{}", stderr(&output));
    assert!(place.names().is_empty());
}

#[test]
fn a_calibration_is_a_document_on_stdout_and_in_the_file_that_was_named() {
    let place = Place::new();
    let args = ["calibrate", "--backend", "sync", "--duration", "10ms", "--json", "--out", "found"];
    let output = place.run(&args);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    let text = stdout(&output);
    assert_eq!(std::fs::read_to_string(place.join("found")).unwrap(), text);
    assert_eq!(text.lines().count(), 1);
    let start = format!(r#"{{"format":"{CALIBRATION_FORMAT}","format_version":1,"#);
    assert!(text.starts_with(&start), "{text}");
    assert_has(&text, &[r#""backend":"sync""#, r#""target":"zeros""#, "needs io_uring"]);
    assert!(!text.contains("nop_ring"), "{text}");
    assert_has(&stderr(&output), &["wake-up", "left out"]);
    // The file is not overwritten, and this is checked before anything is measured.
    let again = place.run(&args);
    assert_eq!(code(&again), 5, "{}", stderr(&again));
    assert!(stdout(&again).is_empty());
    assert_eq!(std::fs::read_to_string(place.join("found")).unwrap(), text);
    let alone = place.run(&["calibrate", "--backend", "sync", "--duration", "10ms", "--out", "-"]);
    assert!(stdout(&alone).starts_with(&start) && stdout(&alone).lines().count() == 1);
    assert_eq!(place.names(), ["found"]);
}

#[test]
fn a_calibration_that_cannot_be_is_refused() {
    let place = Place::new();
    for duration in ["0", "9ms", "2m"] {
        let output = place.run(&["calibrate", "--duration", duration]);
        assert_eq!(code(&output), 2, "{}", stderr(&output));
        assert_has(&stderr(&output), &["--duration", "from 10 ms"]);
    }
    let output = place.run(&["calibrate", "--backend", "sim"]);
    assert!([2, 3].contains(&code(&output)), "{}", stderr(&output));
}
