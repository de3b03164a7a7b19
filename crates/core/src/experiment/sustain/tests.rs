//! Steady states of invented series, and the courses of the tests.

use proptest::prelude::*;

use super::presets::test_plan;
use super::steady::{Lack, Rule, change, gradual, scatter, standing};
use super::*;
use crate::SplitMix64;
use crate::measure::{Direction, WorkerRecord};
use crate::spec::{Limit, Pacing, Region, Workers};
use crate::verdict::testing::Invented;

const MINUTE: Span = Span::from_secs(60);

fn rule(minutes: u64) -> Rule {
    Rule { round: MINUTE, at_least: Span::from_secs(60 * minutes) }
}

/// The smallest number of rounds after which a series counts as steady.
fn steady_after(series: &[f64], minutes: u64) -> Option<usize> {
    (1..=series.len()).find(|n| standing(&series[..*n], &rule(minutes)).lacks.is_none())
}

/// The same by SNIA's rule alone.
fn snia_after(series: &[f64]) -> Option<usize> {
    (1..=series.len()).find(|n| {
        let lacks = standing(&series[..*n], &rule(0)).lacks;
        !matches!(lacks, Some(Lack::Rounds | Lack::Range | Lack::Excursion))
    })
}

fn noisy(seed: u64, share: f64, rounds: usize, level: impl Fn(usize) -> f64) -> Vec<f64> {
    let mut chance = SplitMix64(seed);
    (0..rounds).map(|round| level(round) * (1.0 + share * chance.normal())).collect()
}

#[test]
fn a_burst_is_not_called_steady() {
    // 3000 IOPS for 30 minutes on a credit, then the purchased 500.
    let series = noisy(1, 0.01, 200, |round| if round < 30 { 3000.0 } else { 500.0 });
    assert_eq!(snia_after(&series), Some(5), "which is why it needs more");
    assert_eq!(steady_after(&series, 60), Some(60));
    let found = change(&series[..60]).unwrap();
    assert_eq!(found.at, 30);
    assert!((found.before / 3000.0 - 1.0).abs() < 0.01);
    assert!((found.after / 500.0 - 1.0).abs() < 0.01);
    assert_eq!(standing(&series[..35], &rule(0)).lacks, Some(Lack::Age));
    assert_eq!(standing(&series[..20], &rule(60)).lacks, Some(Lack::Time));
}

#[test]
fn a_drive_that_fills_is_steady_after_its_cliff() {
    let series = noisy(2, 0.02, 120, |round| match round {
        0..12 => 90_000.0,
        12..24 => 90_000.0 - 6_000.0 * (round - 12) as f64,
        _ => 18_000.0,
    });
    let steady = steady_after(&series, 30).unwrap();
    assert!(steady > 40, "{steady}: as long on the new level as before it");
    let cliff = change(&series[..steady]).unwrap();
    assert!((12..26).contains(&cliff.at) && cliff.after < cliff.before, "{cliff:?}");
}

#[test]
fn collections_that_come_and_go_are_never_steady() {
    let sawtooth = noisy(3, 0.01, 200, |round| 10_000.0 + 1_500.0 * (round % 4) as f64);
    assert_eq!(steady_after(&sawtooth, 0), None);
    // A single outlier among the rounds does not restart the count.
    let hiccup = noisy(4, 0.01, 60, |round| if round == 20 { 4_000.0 } else { 10_000.0 });
    assert_eq!(standing(&hiccup[..40], &rule(30)).lacks, None);
    assert_eq!(change(&hiccup[..40]), None);
}

#[test]
fn a_slow_drift_is_not_steady() {
    // Each round is 2 % lower. Five of them pass SNIA's rule.
    let series: Vec<f64> = (0..60).map(|round| 10_000.0 * 0.98f64.powi(round)).collect();
    assert_eq!(snia_after(&series), Some(5));
    assert_eq!(steady_after(&series, 8), None);
}

#[test]
fn steady_noise_is_steady_as_soon_as_the_time_is_over() {
    for seed in 0..50 {
        let series = noisy(seed, 0.02, 120, |_| 5_000.0);
        let steady = steady_after(&series, 60).unwrap();
        assert!((60..70).contains(&steady), "seed {seed}: {steady}");
        assert_eq!(change(&series), None, "seed {seed}");
    }
}

#[test]
fn rounds_that_scatter_are_neither_steady_nor_changed_nor_unsteady() {
    let (mut changed, mut unsteady, mut steady) = (0, 0, 0);
    for seed in 0..200 {
        let series = noisy(seed, 0.10, 25, |_| 5_000.0);
        changed += u32::from(change(&series).is_some());
        unsteady += u32::from(scatter(&series).is_none());
        steady += u32::from(standing(&series, &rule(0)).lacks.is_none());
    }
    // Each may be wrong in at most one of twenty. Five rounds that are alike by chance are not
    // their concern.
    assert!(changed <= 10 && unsteady <= 20, "{changed} {unsteady}");
    assert!(steady <= 60, "{steady}");
    // The same with a step and with a slope.
    for seed in 0..50 {
        let step = noisy(seed, 0.05, 25, |round| if round < 12 { 5_000.0 } else { 3_000.0 });
        let found = change(&step).expect("it is lasting");
        assert!((11..=13).contains(&found.at), "seed {seed}: {found:?}");
        let slope = noisy(seed, 0.03, 25, |round| 5_000.0 * 0.98f64.powi(round as i32));
        assert_eq!((scatter(&slope), change(&slope)), (None, None), "seed {seed}");
        let (first, last) = gradual(&slope).expect("it falls by 38 %");
        assert!((0.5..0.7).contains(&(last / first)), "{first} {last}");
    }
}

proptest! {
    #[test]
    fn no_series_breaks_the_rule(series in prop::collection::vec(0.0f64..1e9, 0..120)) {
        let standing = standing(&series, &rule(10));
        prop_assert!(standing.level_from <= series.len());
        prop_assert_eq!(standing.state.is_none(), series.len() < 5);
        if let Some(found) = change(&series) {
            prop_assert!(found.at >= 2 && found.at + 2 <= series.len());
        }
        if standing.lacks.is_none() {
            prop_assert!(series.len() >= 10 && standing.level_from * 2 <= series.len());
        }
    }
}

/// A point that addresses a region of this size in each of `targets` targets.
fn base(size: u64, targets: u32) -> Point {
    let mut point = Invented::writes().trial.point;
    point.warm_up = Span(0);
    point.window = MINUTE;
    let region = |target| Region { target, offset: Bytes(4096), length: Bytes(size) };
    point.streams[0].regions = (0..targets).map(region).collect();
    point.streams[0].pacing = Pacing::closed(32);
    point.streams[0].workers = Workers::Total(2);
    point
}

/// A trial of the planned point with the given writes per second.
fn trial(planned: &Planned, iops: u64) -> Trial {
    let mut invented = Invented::writes();
    let seconds = planned.point.window.0 / 1_000_000_000;
    let bytes = planned.point.streams[0].block_sizes().smallest().0;
    invented.set_times(1, 1_000_000);
    let flow = &mut invented.worker().cells[0].flows[Direction::Write as usize];
    flow.bytes = Bytes(iops * seconds * bytes);
    for _ in 1..iops * seconds {
        flow.service_time.record(1_000_000_000 / iops);
    }
    invented.trial.record.window = planned.point.window;
    invented.set_series((0..seconds).map(|_| iops));
    Trial { point: planned.point.clone(), place: planned.place.clone(), ..invented.trial }
}

/// Runs a plan against a target with the given write rate per round.
fn run(plan: TestPlan, rate: impl Fn(usize) -> u64) -> (Vec<Planned>, Conclusion) {
    let mut sustain = Sustain::new(plan);
    let mut all = Vec::new();
    let mut last = None;
    loop {
        let ahead = sustain.forecast();
        assert!(ahead.points <= ahead.points_at_most && ahead.time <= ahead.time_at_most);
        match sustain.next(last.as_ref()) {
            Step::Done(conclusion) => return (all, conclusion),
            Step::Run(planned) => {
                last = Some(trial(&planned, rate(sustain.rounds.len())));
                all.push(*planned);
                assert!(all.len() < 20_000, "it does not end");
            }
        }
    }
}

#[test]
fn a_workload_on_a_burst_goes_on_until_the_level_below_is_old_enough() {
    let settings = TestSettings { passes: 0, ..TestSettings::default() };
    let plan = test_plan(Test::Workload, &base(1 << 30, 1), settings);
    let (all, conclusion) = run(plan, |round| if round < 40 { 30 } else { 5 });
    assert_eq!(all.len(), 80);
    let Some(Found::Sustain(found)) = conclusion.found else { panic!("it found something") };
    assert_eq!((found.rounds.len(), found.steady_from), (80, Some(76)));
    assert_eq!(found.level_from, Some(41));
    assert_eq!(found.watched, "IOPS of random write 4 KiB");
    assert_eq!(
        conclusion.sentences,
        [
            "Steady from round 41 on: IOPS of random write 4 KiB, 5 IOPS in rounds 76 to 80, after 80 \
             min of this load (largest minus smallest 0 %, trend 0 % of the mean).",
            "It fell from 30 IOPS to 5 IOPS in round 41, after 40 min and 281.25 MiB written.",
            "A credit or a cache that lasts for longer than 80 min would not show.",
            "Nothing was written beforehand, and the rounds wrote 32 % of the addressed region: a \
             drive that was never full is faster than it will be.",
        ]
    );
}

#[test]
fn a_level_that_is_interrupted_is_not_called_unsteady() {
    let said = |before: usize| {
        let settings = TestSettings { passes: 0, ..TestSettings::default() };
        let mut sustain = Sustain::new(test_plan(Test::Workload, &base(1 << 30, 1), settings));
        let mut last = None;
        for round in 0..=20 {
            let Step::Run(planned) = sustain.next(last.as_ref()) else { panic!("60 rounds") };
            last = Some(trial(&planned, if round < before { 60 } else { 30 }));
        }
        sustain.so_far().sentences[0].clone()
    };
    assert_eq!(
        said(0),
        "Level so far, and not called steady yet: the load has to go on for 60 min, because a burst \
         credit or a cache may last nearly as long; IOPS of random write 4 KiB, last 30 IOPS after 20 \
         rounds (20 min)."
    );
    // It is not level throughout.
    let after_a_fall = "Level since round 7, and not called steady yet: ";
    assert!(said(6).starts_with(after_a_fall), "{}", said(6));
}

#[test]
fn rounds_that_never_settle_end_all_the_same() {
    let settings = TestSettings { passes: 0, at_least: Span(0), ..TestSettings::default() };
    let plan = test_plan(Test::Workload, &base(1 << 30, 1), settings);
    let (all, conclusion) = run(plan, |round| 10 + 10 * (round as u64 % 2));
    assert_eq!(all.len(), ROUNDS_MAX as usize);
    assert!(conclusion.sentences[0].starts_with("Not steady after 25 rounds (25 min): in rounds"));
    let Some(Found::Sustain(found)) = conclusion.found else { panic!("it found something") };
    assert_eq!(found.steady_from, None);
}

#[test]
fn preconditioning_writes_every_region_as_often_as_it_is_told() {
    let base = base((1 << 20) + 4096, 2);
    let settings = TestSettings { passes: 2, at_least: Span(0), ..TestSettings::default() };
    let mut sustain = Sustain::new(test_plan(Test::Workload, &base, settings));
    assert_eq!(sustain.preconditioning(), Bytes(4 << 20));
    let mut written = [0u64; 2];
    let mut last = None;
    while let Step::Run(planned) = sustain.next(last.as_ref()) {
        if planned.place.role != Role::Preparation {
            break;
        }
        // The first target is three times as fast. Each stretch begins where the last one ended. A
        // worker that has written everything repeats one block while the others continue.
        let mut done = trial(&planned, 1);
        let worker = done.record.workers[0].clone();
        done.record.workers.clear();
        for (place, stream) in planned.point.streams.iter().enumerate() {
            assert_eq!(stream.block_sizes().only(), Some(Bytes(128 << 10)));
            let (region, pass) = (stream.regions[0], written[place] % (1 << 20));
            assert_eq!((region.target, region.offset.0), (place as u32, 4096 + pass));
            assert_eq!(region.length.0, (1 << 20) - pass);
            let mut worker = WorkerRecord { stream: place as u32, ..worker.clone() };
            let bytes = ((3 - 2 * place as u64) * (128 << 10)).min(region.length.0);
            worker.cells[0].flows[1].bytes = Bytes(bytes);
            done.record.workers.push(worker);
            match written[place] < 2 << 20 {
                true => assert_eq!(stream.pacing.limit, Some(Limit::Bytes(region.length))),
                false => assert_eq!(stream.pacing.limit, Some(Limit::Ios(1))),
            }
            written[place] = (written[place] + bytes).min(2 << 20);
        }
        last = Some(done);
    }
    assert_eq!(written, [2 << 20; 2]);
    assert_eq!(sustain.preconditioning(), Bytes(0));
}

#[test]
fn preconditioning_on_several_hosts_goes_on_where_the_slowest_is() {
    let settings = TestSettings { passes: 1, at_least: Span(0), ..TestSettings::default() };
    let plan = test_plan(Test::Workload, &base(1 << 20, 1), settings);
    let mut sustain = Sustain::new(plan).on_hosts(3);
    assert_eq!(sustain.preconditioning(), Bytes(1 << 20));
    let (mut last, mut offsets) = (None, Vec::new());
    let round = loop {
        let Step::Run(planned) = sustain.next(last.as_ref()) else { panic!("rounds follow") };
        if planned.place.role != Role::Preparation {
            break planned;
        }
        let region = planned.point.streams[0].regions[0];
        offsets.push(region.offset.0);
        let mut done = trial(&planned, 1);
        let worker = done.record.workers[0].clone();
        // The second host is the slowest.
        done.record.workers = Vec::from([4, 2, 3].map(|quarters: u64| {
            let mut worker = worker.clone();
            worker.cells[0].flows[1].bytes = Bytes((quarters << 18).min(region.length.0));
            worker
        }));
        last = Some(done);
    };
    assert_eq!(offsets, [4096, 4096 + (1 << 19)]);
    let whole = trial(&round, 30);
    sustain.next(Some(&whole));
    // 30 I/Os of 4 KiB in each second of a minute, by three hosts together.
    assert_eq!(sustain.written, [30 * 60 * 4096 / 3]);
    assert!(sustain.watched_in_words().ends_with(", on 3 hosts"));
}

#[test]
fn the_iops_test_has_eight_sizes_by_seven_mixes_and_watches_small_writes() {
    let base = base(1 << 30, 1);
    let settings = TestSettings { passes: 2, ..TestSettings::default() };
    let iops = test_plan(Test::Iops, &base, settings);
    assert_eq!(iops.round.len(), 56);
    let watched = &iops.round[iops.watched].point.streams[0];
    assert_eq!((watched.read_share(), watched.block_sizes().only()), (0.0, Some(Bytes(4096))));
    let labels: Vec<&str> = iops.round[1].coordinates.iter().map(|c| c.label.as_str()).collect();
    assert_eq!(labels, ["128k", "100%"]);
    // The plan leaves out what the target cannot do.
    let settings = TestSettings { smallest_block: Bytes(4096), ..settings };
    let coarse = test_plan(Test::Iops, &base, settings);
    assert_eq!((coarse.round.len(), coarse.watched), (49, 48));
    let times = test_plan(Test::ResponseTime, &base, settings);
    assert_eq!(times.round.len(), 6);
    assert!(times.round.iter().all(|cell| cell.point.streams[0].pacing.queue_depth() == 1));
    let throughput = test_plan(Test::Throughput, &base, settings);
    assert_eq!((throughput.round.len(), throughput.watched), (2, 1));
}

#[test]
fn write_saturation_ends_by_time_or_by_fills_and_names_the_cliff() {
    let settings =
        TestSettings { passes: 0, length: Some(Span::from_secs(1800)), ..TestSettings::default() };
    let saturation = test_plan(Test::WriteSaturation, &base(1 << 30, 1), settings);
    let (all, conclusion) = run(saturation.clone(), |round| if round < 10 { 50 } else { 20 });
    assert_eq!(all.len(), 30);
    assert!(conclusion.sentences[1].starts_with("It fell from 50 IOPS to 20 IOPS in round 11,"));
    let small = test_plan(Test::WriteSaturation, &base(1 << 20, 1), settings);
    let (all, _) = run(small, |_| 10);
    assert_eq!(all.len(), 2, "4 MiB at 10 writes of 4 KiB a second are two minutes");
}

#[test]
fn a_target_on_which_nothing_completes_is_not_steady() {
    assert_eq!(standing(&[0.0; 5], &rule(0)).lacks, Some(Lack::Nothing));
    assert_eq!(standing(&[0.0, 0.0, 0.0, 0.0, 1.0], &rule(0)).lacks, Some(Lack::Range));
}

#[test]
fn scripts_follow_the_rounds() {
    let settings = TestSettings {
        passes: 0,
        at_least: Span(0),
        length: Some(Span::from_secs(600)),
        ..TestSettings::default()
    };
    let base = base(1 << 30, 1);
    let idle = test_plan(Test::HostIdleRecovery, &base, settings);
    let (all, conclusion) = run(idle, |_| 10);
    let sustain = Sustain::new(test_plan(Test::HostIdleRecovery, &base, settings));
    let is_meant = |planned: &Planned| sustain.meant_to_change(&trial(planned, 10)).is_some();
    assert!(!is_meant(&all[0]), "a round is to be steady");
    assert!(is_meant(&all[5]), "a burst is not");
    let rests: Vec<u64> = all.iter().map(|planned| planned.rest.0 / 1_000_000_000).collect();
    let count = |seconds: u64| rests.iter().filter(|rest| **rest == seconds).count();
    assert_eq!((count(0), count(5), count(10), count(50)), (5, 60, 40, 10));
    assert_eq!(
        conclusion.sentences.last().unwrap(),
        "After pauses of 50 s, bursts of 5 s write 10 IOPS, 1.00 times the rate without pauses."
    );
    let cross = test_plan(Test::CrossStimulusRecovery, &base, settings);
    let (all, conclusion) = run(cross, |_| 10);
    assert_eq!(all.len(), 30);
    assert_eq!(conclusion.sentences.len(), 3);
    assert!(conclusion.sentences[1].starts_with("Phase 'small': 80 KiB/s"), "{conclusion:?}");
    let demand = test_plan(Test::DemandIntensity, &base, settings);
    let (all, conclusion) = run(demand, |_| 10);
    assert_eq!(all.len(), 5 + 49);
    let said = &conclusion.sentences[conclusion.sentences.len() - 2..];
    assert!(said[0].ends_with("is 10 IOPS, by 1 worker with 1 in flight."), "{said:?}");
    assert!(said[1].starts_with("Each load was measured once: "), "{said:?}");
}

#[test]
fn a_script_in_which_nothing_completes_has_no_shares_of_nothing() {
    for test in [Test::CrossStimulusRecovery, Test::DemandIntensity, Test::HostIdleRecovery] {
        let settings = TestSettings {
            passes: 0,
            length: Some(Span::from_secs(600)),
            ..TestSettings::default()
        };
        let (_, conclusion) = run(test_plan(test, &base(1 << 30, 1), settings), |_| 0);
        let said = conclusion.sentences.join(" ");
        assert!(!said.contains("NaN") && !said.contains("inf"), "{said}");
    }
}

#[test]
fn what_follows_the_rounds_concludes_nothing_from_noise() {
    let settings = TestSettings {
        passes: 0,
        at_least: Span(0),
        length: Some(Span::from_secs(600)),
        ..TestSettings::default()
    };
    let base = base(1 << 30, 1);
    let (mut told, mut open, mut unsettled) = (0, 0, 0);
    for seed in 1..=20 {
        let chance = std::cell::RefCell::new(SplitMix64(seed));
        let noisy = |_| (100.0 * (0.05 * chance.borrow_mut().normal()).exp()) as u64;
        let (_, conclusion) = run(test_plan(Test::HostIdleRecovery, &base, settings), noisy);
        let bursts = conclusion.sentences.iter().filter(|one| one.starts_with("After pauses "));
        for sentence in bursts {
            match sentence.contains("cannot be distinguished from the rate without pauses") {
                true => open += 1,
                false => told += usize::from(sentence.contains(" times the rate")),
            }
        }
        let noisy = |_| (100.0 * (0.1 * chance.borrow_mut().normal()).exp()) as u64;
        let (_, conclusion) = run(test_plan(Test::CrossStimulusRecovery, &base, settings), noisy);
        let phases = conclusion.sentences.iter().filter(|one| one.starts_with("Phase "));
        let claims = |one: &&String| one.contains(" to settle at") || one.contains("not settled");
        unsettled += phases.filter(claims).count();
    }
    assert!(told <= 2 && 40 <= open, "{told} and {open}");
    assert!(unsettled <= 5, "{unsettled} of 60");
}
