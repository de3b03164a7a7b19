//! Tests the images that commands draw: each has the answer and the verdict, and its name.

mod common;

use std::path::Path;

use common::{Place, assert_has, code, stderr, stdout};

const SHORT: [&str; 6] = ["--duration", "1s", "--warm-up", "0", "--seed", "5"];

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap()
}

/// The last line that a command says is the answer.
fn answer(said: &str) -> String {
    let lines: Vec<&str> = said.trim_end().split("\n\n").collect();
    lines.last().unwrap().split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The first words in an image, up to its source.
fn drawn(svg: &str, lines: usize) -> String {
    let labels = svg.split("aria-label=\"").skip(1);
    let labels = labels.filter_map(|rest| rest.split('"').next()).take(lines);
    labels.collect::<Vec<_>>().join(" ")
}

#[test]
fn a_run_and_a_portrait_become_images_with_their_answers() {
    let place = Place::new();
    let run = [&["run", "sim:queue", "--svg", "run.svg", "--png", "run.png"], &SHORT[..]].concat();
    let output = place.run(&run);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    let svg = read(&place.join("run.svg"));
    let answer = fathom_core::markup(&answer(&stdout(&output)));
    assert_has(&answer, &["IOPS", "sound"]);
    assert!((1..4).any(|lines| drawn(&svg, lines) == answer), "{answer}: {}", drawn(&svg, 4));
    assert_has(&svg, &["aria-label=\"IOPS over time\"", "aria-label=\"p99\""]);
    let png = std::fs::read(place.join("run.png")).unwrap();
    assert!(png.starts_with(b"\x89PNG\r\n\x1a\n"));

    let quick = [&["quick", "sim:queue,servers=2", "--svg", "q.svg"], &SHORT[..]].concat();
    let output = place.run(&quick);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    let svg = read(&place.join("q.svg"));
    let parts = ["Sequential 1 MiB", "Random 4 KiB", "MB/s", "IOPS", "read", "write"];
    assert_has(&svg, &parts.map(|part| format!("aria-label=\"{part}\"")).each_ref().map(|s| &**s));
}

#[test]
fn several_images_have_names_of_their_own_and_stdout_gets_the_first() {
    let place = Place::new();
    let axis = ["sweep", "sim:queue", "--axis", "queue-depth=1,4", "--svg", "s.svg"];
    let output = place.run(&[&axis[..], &SHORT[..]].concat());
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    let names = place.names();
    assert!(names.iter().any(|name| name == "s-iops.svg"), "{names:?}");
    assert!(!names.iter().any(|name| name == "s.svg"), "{names:?}");
    let result = names.iter().find(|name| name.ends_with(".jsonl")).unwrap();
    let output = place.run(&["report", result, "--svg", "-"]);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    assert_eq!(stdout(&output), read(&place.join("s-iops.svg")));
    // An existing image is refused before anything is measured.
    let output = place.run(&[&["run", "sim:queue", "--svg", "s-iops.svg"], &SHORT[..]].concat());
    assert_ne!(code(&output), 0);
    assert_has(&stderr(&output), &["s-iops.svg"]);
}

#[test]
fn a_study_is_drawn_on_the_axes_of_its_published_figures() {
    let place = Place::new();
    let drives = ["sim:study-access-mix,drive=sas", "sim:study-access-mix,drive=scsi"];
    let study = [&["study", "access-mix"], &drives[..], &SHORT[..]].concat();
    let output = place.run(&[&study[..], &["--repeats", "1", "--svg", "a.svg"]].concat());
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    let svg = read(&place.join("a-bandwidth.svg"));
    let words = ["MB/s", "queue-depth", "sas", "scsi", "read-share 0%, pattern mixed:5%"];
    assert_has(&svg, &words.map(|word| format!("aria-label=\"{word}\"")).each_ref().map(|s| &**s));
}
