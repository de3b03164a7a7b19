//! Runs `fathom peak` and `fathom sustain` from their command lines to their conclusions, on
//! simulated devices whose answers follow from their parameters.

mod common;

use common::{Place, code, stderr, stdout};
use fathom_core::measure::Direction;
use fathom_report::document::{Found, Role, Trial};

#[test]
fn a_queue_of_eight_servers_saturates_at_eight() {
    let place = Place::new();
    let words =
        ["peak", "sim:queue,servers=8,service-time=100us", "--official", "10s", "--seed", "1"];
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
    assert_eq!((last.place.role, last.point.window.0), (Role::Official, 10_000_000_000));
    let probes = document.trials.iter().filter(|trial| trial.place.role == Role::Probe);
    assert!(probes.count() <= 15);
    assert!(stdout(&output).contains("Queue depth 8 saturates this target"), "{}", stdout(&output));
}

#[test]
fn the_number_of_workers_is_searched_for_as_the_depth_is() {
    let place = Place::new();
    // The published curve of 12.8 MB: 2 writers reach 96 % of what 8 do.
    let device = "sim:table,points=1:565MB/s+2:897MB/s+8:937MB/s+32:888MB/s+256:840MB/s";
    let load = ["--read-share=0%", "-b", "12800000", "--official=none", "--seed", "1"];
    let output = place.run(&[&["peak", device, "--vary", "workers"][..], &load].concat());
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    let document = place.result();
    let Some(Found::Peak(found)) = document.conclusion.unwrap().found else { panic!("a peak") };
    assert_eq!((found.choice, found.axis.as_str()), (Some(2.0), "workers"));
    assert_eq!(found.measure, "bandwidth");
    let said = stdout(&output);
    let parts =
        ["2 writers saturate this target: ", " MiB/s, p50 ", " (96 % of the best; more than"];
    assert!(parts.iter().all(|part| said.contains(part)), "{said}");
    // A setting that is clearly worse is not probed to its end; the best one is.
    let is_cut = |workers: f64| {
        let of = document
            .trials
            .iter()
            .filter(move |trial| trial.place.coordinates[0].value == Some(workers));
        of.map(|trial| trial.ended_early).collect::<Vec<bool>>()
    };
    assert!(is_cut(2.0).iter().all(|cut| !cut), "{:?}", is_cut(2.0));
}

#[test]
fn what_is_clearly_worse_than_the_best_is_cut_off() {
    let place = Place::new();
    // From 4 in flight on, each additional I/O costs bandwidth.
    let device = "sim:table,points=1:400MB/s+4:900MB/s+16:400MB/s+64:200MB/s";
    let words = ["peak", device, "-b", "64k", "--official=none", "--seed", "1"];
    let output = place.run(&words);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    let document = place.result();
    let Some(Found::Peak(found)) = &document.conclusion.as_ref().unwrap().found else {
        panic!("a peak")
    };
    assert_eq!(found.choice, Some(4.0));
    let windows = document.trials.iter().map(|trial| {
        (trial.place.coordinates[0].value.unwrap(), trial.window_ns, trial.ended_early)
    });
    for (depth, window, cut) in windows {
        let expected = if depth > 4.0 { (1_300_000_000, true) } else { (5_000_000_000, false) };
        // The first probes have no others to compare with.
        let is_first = depth <= 4.0;
        assert!(is_first || (window, cut) == expected, "{depth}: {window} {cut}");
        assert!(depth != 4.0 || !cut);
    }

    let sweep = ["sweep", device, "--axis", "queue-depth=4,16,64", "-b", "64k", "--cut-off"];
    let course = ["--order=as-given", "--repeats=2", "-d", "4s", "--warm-up", "0s", "--seed", "1"];
    let place = Place::new();
    let output = place.run(&[&sweep[..], &course].concat());
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    let trials = place.result().trials;
    let seen: Vec<(u64, bool)> =
        trials.iter().map(|trial| (trial.window_ns / 1_000_000_000, trial.ended_early)).collect();
    assert_eq!(seen, [(4, false), (1, true), (1, true), (4, false)]);
}

#[test]
fn every_test_of_snia_comes_to_its_end_and_has_written_twice_before() {
    for test in ["iops", "throughput", "latency", "demand-intensity", "host-idle-recovery"] {
        let place = Place::new();
        let words = ["sustain", "sim:queue,servers=4,size=64m", "--test", test, "--seed=1"];
        let mut more = Vec::from(["-d", "100ms", "--warm-up", "0s", "--at-least", "0s"]);
        if test == "host-idle-recovery" {
            more.extend(["--for", "1m"]);
        }
        let output = place.run(&[&words[..], &more].concat());
        assert!([0, 4].contains(&code(&output)), "{test}: {}", stderr(&output));
        let document = place.result();
        let conclusion = document.conclusion.as_ref().unwrap();
        assert!(conclusion.sentences[0].starts_with("Steady"), "{test}: {conclusion:?}");
        let before = document.trials.iter().filter(|one| one.place.role == Role::Preparation);
        let written = |trial: &Trial| trial.record().total(Some(Direction::Write)).bytes.0;
        assert_eq!(before.map(written).sum::<u64>(), 2 * (64 << 20), "{test}");
    }
    for test in ["write-saturation", "cross-stimulus-recovery"] {
        let place = Place::new();
        let words = ["sustain", "sim:queue,servers=4,size=64m", "--test", test, "--for", "5s"];
        let output = place.run(&[&words[..], &["-d", "1s", "--warm-up", "0s"]].concat());
        assert!([0, 4].contains(&code(&output)), "{test}: {}", stderr(&output));
        let trials = place.result().trials;
        assert!(trials.iter().all(|one| one.place.role == Role::Result), "{test}");
    }
}

#[test]
fn what_ends_when_so_much_is_written_is_not_said_to_write_for_all_the_time_it_has() {
    let place = Place::new();
    let file = place.prepared("a.dat", 4);
    let file = file.to_str().unwrap();
    let test = ["--test", "write-saturation", "--overwrite", "--plan"];
    let output = place.run(&[&["sustain", file][..], &test].concat());
    let shown = stdout(&output) + &stderr(&output);
    // Six hours of writes on any disk are terabytes. 16 MiB and a round of a minute are not.
    let line = shown.lines().find(|line| line.contains("writes at most about ")).unwrap();
    assert!(line.contains(" GiB, ") && shown.contains("until 16 MiB are written"), "{shown}");
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
    assert!(conclusion.sentences[0].contains(" misses it"), "{conclusion:?}");
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
    assert!(conclusion.sentences[0].starts_with("Steady"), "{conclusion:?}");
    let caution = "The simulated device is a new one at each point: a credit or a cache that lasts for \
                   longer than 1 s does not show.";
    assert!(conclusion.sentences.iter().any(|one| one == caution), "{conclusion:?}");
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
    for [option, value] in [["-b", "4k"], ["--part", "1 read-share=0%"]] {
        let of_its_own = ["sustain", "sim:ssd", "--test", "iops", option, value];
        refused(&of_its_own, 2, "the test iops sets it");
    }
    refused(&["sustain", "sim:ssd", "--for", "1h"], 2, "--for: ");
    refused(&["peak", "sim:ssd", "-q", "4"], 2, "the search varies it");
    refused(&["peak", "sim:ssd", "--rate", "4"], 2, "a closed loop, which has no rate");
    refused(&["peak", "sim:ssd", "--objective", "mean<=1ms"], 2, "a mean hides");
    let long = ["--objective", "p99<=1ms", "--up-to", "1000m", "--official", "24h"];
    refused(&[&["peak", "sim:ssd"], &long[..]].concat(), 2, "more than 1,000,000,000,000 I/Os");
}

#[test]
fn the_forecast_of_a_sweep_holds_what_may_be_measured_again() {
    let place = Place::new();
    place.prepared("data", 16);
    let load = ["-b", "4k", "--read-share=0%", "--stop-after", "10m", "--overwrite", "--plan"];
    let plan = |axis: &str| {
        let output = place.run(&[&["sweep", "data", "--axis", axis], &load[..]].concat());
        assert_eq!(code(&output), 0, "{}", stderr(&output));
        stdout(&output)
    };
    // Each point of a curve may be measured twice more: three trials become nine of 10 MiB.
    let curve = plan("queue-depth=1,2,4");
    assert!(curve.contains("writes at most 90 MiB"), "{curve}");
    // Two values do not make a curve.
    let flat = plan("queue-depth=1,2");
    assert!(flat.contains("writes 20 MiB"), "{flat}");
}
