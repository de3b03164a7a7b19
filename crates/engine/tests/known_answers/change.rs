//! Changes in the window of a simulated device are named by their kind, with the levels and times
//! that the device was given.

use fathom_core::facts::{Host, Target};
use fathom_core::spec::{Arrivals, BackendKind, Limit};
use fathom_core::trial::{Place, Trial};
use fathom_core::verdict::{Finding, Severity, judge};

use super::*;

const OF_CHANGE: [&str; 7] = [
    "credit-exhausted",
    "level-change",
    "not-steady",
    "periodic-stalls",
    "stall",
    "trend",
    "warm-up-too-short",
];

fn window(seconds: u64, point: Point) -> Point {
    Point { window: Span::from_secs(seconds), ..point }
}

/// The changes that are found.
fn found(device: &str, point: &Point) -> Vec<Finding> {
    let trial = Trial {
        point: point.clone(),
        place: Place::default(),
        backend: BackendKind::Sim,
        backend_reason: String::new(),
        started_unix_ns: 0,
        record: run(device, point),
        counters: None,
        traced: None,
        breakdown: None,
        hosts: Vec::new(),
        is_void: false,
        doubt: None,
    };
    let target = Target::simulated(device, Bytes(1 << 30));
    let findings = judge(&trial, &Host::default(), &[target]).findings.into_iter();
    findings.filter(|finding| OF_CHANGE.contains(&finding.code)).collect()
}

#[track_caller]
fn only(device: &str, point: &Point, code: &str) -> String {
    let findings = found(device, point);
    assert_eq!(findings.len(), 1, "{findings:#?}");
    assert_eq!((findings[0].code, findings[0].severity), (code, Severity::Suspect));
    findings[0].evidence.clone()
}

#[test]
fn a_credit_that_runs_out_has_its_levels_and_its_time() {
    for (seconds, credit) in [(10, 3), (20, 12)] {
        let device = format!("burst,rate=500,burst=3000,credit={credit}s");
        let evidence = only(&device, &window(seconds, closed(32)), "credit-exhausted");
        let expected =
            format!("IOPS were 3,0.. until {credit}.0 s of the window and 500 from there");
        let told = evidence.replace("3,000", "3,0..").replace("3,003", "3,0..");
        let told = told.replace("3.00 s", "3.0 s");
        assert!(told.starts_with(&expected), "{evidence}");
    }
}

#[test]
fn a_single_stall_is_named_in_both_loops() {
    for point in [closed(1), closed(16), open(1000.0, Arrivals::Poisson, 1024)] {
        let device = "queue,servers=16,service-time=200us,stall=2s+400ms";
        let evidence = only(device, &window(5, point), "stall");
        let length = evidence
            .strip_prefix("Nothing completed for ")
            .and_then(|rest| rest.split_once(" ms from about ")?.0.parse::<f64>().ok());
        assert_near(length.expect(&evidence), 400.0, 0.01);
        assert!(evidence.contains("about 2.0") || evidence.contains("about 1.9"), "{evidence}");
    }
}

#[test]
fn stalls_that_come_each_second_have_that_period() {
    let device = "queue,servers=16,service-time=200us,stall=300ms+100ms/1s";
    for point in [closed(1), closed(16), open(1000.0, Arrivals::Uniform, 1024)] {
        // With intervals of a tenth of a second, and with intervals of a second, each of which
        // contains a stall.
        let evidence = only(device, &window(8, point.clone()), "periodic-stalls");
        assert!(evidence.contains(" each 1 s: 8 such stalls"), "{evidence}");
        let evidence = only(device, &lasting(60, point), "periodic-stalls");
        assert!(evidence.contains("such stalls took 1"), "{evidence}");
    }
}

#[test]
fn a_device_whose_speed_differs_by_a_tenth_does_not_change() {
    const RUNS: u64 = 40;
    for seconds in [2, 5, 10] {
        let suspect = (0..RUNS).filter(|&seed| {
            let device = format!("queue,servers=4,service-time=1ms,noise=0.1,seed={seed}");
            let findings = found(&device, &window(seconds, closed(4)));
            findings.iter().any(|finding| finding.severity > Severity::Note)
        });
        assert!(suspect.count() <= 1, "{seconds} s");
    }
}

/// I/Os per second before the drain.
fn while_whole(record: &Record) -> f64 {
    let whole = record.workers.iter().filter_map(|worker| worker.whole);
    whole.map(|whole| whole.ios[0] as f64 / whole.length.as_secs_f64()).sum()
}

#[test]
fn the_drain_of_a_limited_load_is_told_apart() {
    // 256 in flight at one server: the drain is the last 256 of 1000 I/Os.
    for workers in [1, 2] {
        let point = with(window(100, closed(256)), |stream| {
            stream.pacing.limit = Some(Limit::Ios(1000));
            stream.workers = Workers::PerTarget(workers);
        });
        let record = run("queue,servers=1,service-time=1ms", &point);
        let whole = record.workers.iter().map(|worker| worker.whole.expect("it has a limit"));
        let depth: f64 = whole.clone().map(|whole| whole.queue_depth).sum();
        assert!(depth > 255.0 && record.queue_depth() < 230.0, "{depth}");
        let ios: u64 = whole.clone().map(|whole| whole.ios[0]).sum();
        assert!(ios.abs_diff(744) <= 2, "{ios}");
        if workers == 1 {
            assert_near(while_whole(&record), 1000.0, 0.01);
        }
        // The ledger and the window include all I/Os.
        assert_eq!(record.total(None).ios(), 1000);
    }
    // 256 I/Os in flight keep the servers busy. At the end fewer and fewer remain.
    let point =
        with(window(100, closed(256)), |stream| stream.pacing.limit = Some(Limit::Ios(600)));
    let record = run("queue,servers=256,service-time=1ms,distribution=exponential", &point);
    let full = record.total(None).ios() as f64 / record.window.as_secs_f64();
    let compared = while_whole(&record);
    assert!(compared > 1.2 * full, "{compared} and {full}");
    // A load without a limit is whole until the window is over.
    assert!(run("queue", &closed(4)).workers.iter().all(|worker| worker.whole.is_none()));
}
