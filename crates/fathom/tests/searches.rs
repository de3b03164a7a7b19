//! `fathom peak` and `fathom sustain` from their command lines to their conclusions, on simulated
//! devices whose answers follow from their parameters.

mod common;

use common::{Place, code, stderr, stdout};
use fathom_report::document::{Found, Role};

#[test]
fn a_queue_of_eight_servers_saturates_at_eight() {
    let place = Place::new();
    let words = ["peak", "sim:queue,servers=8,service-time=100us", "--official", "10s", "--seed", "1"];
    let output = place.run(&words);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    let document = place.result();
    let conclusion = document.conclusion.as_ref().unwrap();
    let Some(Found::Peak(found)) = &conclusion.found else { panic!("{conclusion:?}") };
    assert_eq!((found.choice, found.equals.as_slice()), (Some(8.0), &[8.0][..]));
    assert_eq!(found.axis, "queue-depth");
    let best = found.best.unwrap().value;
    assert!((best / 80_000.0 - 1.0).abs() < 0.01, "servers / service time: {best}");
    let last = document.trials.last().unwrap();
    assert_eq!((last.place.role, last.point.window_ns), (Role::Official, 10_000_000_000));
    let probes = document.trials.iter().filter(|trial| trial.place.role == Role::Probe);
    assert!(probes.count() <= 15);
    assert!(stdout(&output).contains("Queue depth 8 saturates this target"), "{}", stdout(&output));
}

#[test]
fn the_highest_load_that_meets_an_objective_is_below_the_capacity_and_near_it() {
    let place = Place::new();
    let objective = ["--objective", "p99<=2ms", "--official", "none", "--seed", "1"];
    let device = "sim:queue,servers=8,service-time=100us";
    let output = place.run(&[&["peak", device][..], &objective].concat());
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    let conclusion = place.result().conclusion.unwrap();
    let Some(Found::Peak(found)) = &conclusion.found else { panic!("{conclusion:?}") };
    let choice = found.choice.unwrap();
    assert!((70_000.0..80_000.0).contains(&choice), "{found:?}");
    assert_eq!(found.objective.as_deref(), Some("p99 <= 2 ms"));
    assert!(conclusion.sentences[0].contains(" misses it (p99 "), "{conclusion:?}");
}

#[test]
fn rounds_go_on_for_as_long_as_they_have_to_and_then_end() {
    let place = Place::new();
    let output = place.run(&[
        "sustain",
        "sim:queue",
        "--read-share",
        "0%",
        "--size",
        "1g",
        "-d",
        "1s",
        "--warm-up",
        "0s",
        "--at-least",
        "8s",
        "--precondition",
        "none",
        "--seed",
        "1",
    ]);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    let document = place.result();
    let conclusion = document.conclusion.as_ref().unwrap();
    let Some(Found::Sustain(found)) = &conclusion.found else { panic!("{conclusion:?}") };
    assert_eq!((found.rounds.len(), found.steady_from), (8, Some(4)));
    assert_eq!(found.watched, "IOPS of random write 4 KiB");
    assert!(conclusion.sentences[0].starts_with("Steady: "), "{conclusion:?}");
}

#[test]
fn a_test_that_writes_needs_consent_and_has_its_own_load() {
    let place = Place::new();
    place.prepared("data", 4);
    let refused = |words: &[&str], exit: i32, what: &str| {
        let output = place.run(words);
        assert_eq!(code(&output), exit, "{}", stderr(&output));
        assert!(stderr(&output).contains(what), "{}", stderr(&output));
    };
    refused(&["sustain", "data", "--test", "iops"], 3, "allow it with --overwrite");
    let of_its_own = ["sustain", "sim:ssd", "--test", "iops", "-b", "4k"];
    refused(&of_its_own, 2, "the test iops says it by itself");
    refused(&["sustain", "sim:ssd", "--for", "1h"], 2, "--for: ");
    refused(&["peak", "sim:ssd", "-q", "4"], 2, "it is what is searched for");
    refused(&["peak", "sim:ssd", "--rate", "4"], 2, "a closed loop, which has no rate");
    refused(&["peak", "sim:ssd", "--objective", "mean<=1ms"], 2, "a mean hides");
}
