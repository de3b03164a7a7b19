//! Searches on the published curves and on curves of every kind.

use proptest::prelude::*;

use super::highest::{Bracket, Highest};
use super::knee::{Knee, KneeAnswer, PROBES_MAX, REPEATS_MAX};
use super::{Peak, Search, Vary, as_well, falls_short};
use crate::SplitMix64;
use crate::experiment::{Conclusion, Experiment, Found, PeakFound, Planned, Probe, Step};
use crate::hosts::{HostTrial, LostHost};
use crate::measure::{Histogram, Stretch};
use crate::spec::{Objective, Pacing, Point, Workers};
use crate::stats::Estimate;
use crate::trial::{Role, Trial};
use crate::units::{Bytes, Quantile, Rate, Span};
use crate::verdict::testing::Invented;

const WRITE_CONCURRENCY: &str = include_str!("../../../tests/data/write-concurrency.csv");
const ACCESS_MIX: &str = include_str!("../../../tests/data/access-mix.csv");

/// Published throughput by setting: rising settings, one figure each.
#[derive(Clone, Debug)]
struct Curve {
    name: String,
    points: Vec<(f64, f64)>,
}

impl Curve {
    fn of(name: &str, points: &[(u32, f64)]) -> Self {
        let points = points.iter().map(|&(setting, value)| (f64::from(setting), value)).collect();
        Self { name: name.to_owned(), points }
    }

    /// A straight line on logarithmic scales between two settings. The slope below the first
    /// setting is that between the first two. The curve is constant above the last.
    fn at(&self, setting: f64) -> f64 {
        let last = self.points.len() - 1;
        let right = self.points.partition_point(|point| point.0 < setting).clamp(1, last.max(1));
        let ((x0, y0), (x1, y1)) = (self.points[right - 1], self.points[right]);
        let place = ((setting / x0).ln() / (x1 / x0).ln()).min(1.0);
        y0 * (y1 / y0).powf(place)
    }

    /// The lowest setting that reaches the share `enough` of the best.
    fn knee(&self, highest: u32, enough: f64) -> u32 {
        let settings = || 1..=highest;
        let best = settings().map(|setting| self.at(setting.into())).fold(0.0, f64::max);
        settings().find(|&setting| self.at(setting.into()) >= enough * best).unwrap()
    }
}

fn rows(text: &str) -> impl Iterator<Item = Vec<&str>> {
    let lines = text.lines().filter(|line| !line.starts_with('#')).skip(1);
    lines.map(|line| line.split(',').collect())
}

/// The study of concurrent writes: one curve for each payload and block size.
fn write_concurrency() -> Vec<Curve> {
    let mut runs: Vec<(String, u32, f64)> = Vec::new();
    for row in rows(WRITE_CONCURRENCY) {
        let name = format!("{} {}", row[0], row[1]);
        runs.push((name, row[4].parse().unwrap(), row[6].parse().unwrap()));
    }
    let mut names: Vec<String> = runs.iter().map(|run| run.0.clone()).collect();
    names.dedup();
    let curve = |name: String| {
        let mut settings: Vec<u32> =
            runs.iter().filter(|run| run.0 == name).map(|run| run.1).collect();
        settings.dedup();
        let mean = |setting: u32| {
            let of = runs.iter().filter(|run| run.0 == name && run.1 == setting);
            let values: Vec<f64> = of.map(|run| run.2).collect();
            (setting, values.iter().sum::<f64>() / values.len() as f64)
        };
        Curve::of(&name, &settings.iter().map(|&setting| mean(setting)).collect::<Vec<_>>())
    };
    names.into_iter().map(curve).collect()
}

/// The study of access mixes: one curve for each drive and share.
fn access_mix() -> Vec<Curve> {
    let curve = |row: Vec<&str>| {
        let value = |place: usize| row[place].parse::<f64>().unwrap();
        let name = format!("{} {} {}", row[0], row[1], row[2]);
        Curve::of(&name, &[(1, value(3)), (2, value(4)), (3, value(5))])
    };
    rows(ACCESS_MIX).map(curve).collect()
}

/// Searches on a curve. Each probe has a random error, as real runs have, and no probe shows its
/// size.
fn search(mut knee: Knee, curve: impl Fn(f64) -> f64, noise: f64, seed: u64) -> (KneeAnswer, Knee) {
    let mut chance = SplitMix64(seed);
    let mut asked: Vec<u32> = Vec::new();
    while let Some(setting) = knee.next() {
        asked.push(setting);
        assert!(asked.len() <= PROBES_MAX, "{asked:?}");
        let value = curve(setting.into()) * (noise * chance.normal()).exp();
        knee.observe(setting, value, 0.0);
    }
    let repeats = |setting| asked.iter().filter(|one| **one == setting).count();
    assert!(asked.iter().all(|&setting| repeats(setting) <= REPEATS_MAX), "{asked:?}");
    (knee.answer().expect("something was probed"), knee)
}

#[test]
fn the_published_knees_are_found() {
    let large = [(1, 565.0), (2, 897.0), (8, 937.0), (32, 888.0), (256, 840.0)];
    let middle = [(1, 505.0), (2, 824.0), (8, 786.0), (32, 875.0)];
    let small = [(2, 562.0), (4, 619.0), (8, 702.0), (32, 481.0)];
    for (points, enough, knee) in
        [(&large[..], 0.95, 2), (&middle[..], 0.90, 2), (&small[..], 0.95, 8)]
    {
        let curve = Curve::of("published", points);
        let (answer, _) = search(Knee::new(1, 256, enough), |x| curve.at(x), 0.0, 1);
        assert_eq!(answer.choice, knee, "{points:?}: {answer:?}");
        assert!(answer.equals.contains(&knee) && !answer.rises_at_the_end);
    }
}

#[test]
fn on_the_published_curves_with_noise_the_answer_is_within_an_octave() {
    let curves: Vec<Curve> = write_concurrency().into_iter().chain(access_mix()).collect();
    assert_eq!(curves.len(), 4 + 16);
    let (mut within, mut all, mut most, mut probes) = (0, 0, 0, 0);
    for curve in &curves {
        let truth = f64::from(curve.knee(256, 0.95));
        let mut missed = 0;
        for seed in 0..200 {
            let (answer, knee) = search(Knee::new(1, 256, 0.95), |x| curve.at(x), 0.03, seed);
            let octaves = (f64::from(answer.choice) / truth).log2().abs();
            missed += u32::from(octaves > 1.0);
            probes += knee.probes();
            most = most.max(knee.probes());
        }
        within += 200 - missed;
        all += 200;
        // In this curve the lowest setting gives exactly 5 % less than the best, so both answers
        // are right.
        let is_on_the_edge = curve.name == "write 0 SCSI";
        assert!(missed <= if is_on_the_edge { 60 } else { 20 }, "{}: {missed} of 200", curve.name);
    }
    assert!(f64::from(within) >= 0.97 * f64::from(all), "{within} of {all}");
    assert!(most <= 15, "{most} probes");
    println!("{within} of {all}, {} probes on average", probes as f64 / f64::from(all));
}

/// A curve of one kind, by two parameters from 0 to 1.
fn kind(which: u8, a: f64, b: f64) -> impl Fn(f64) -> f64 {
    let (knee, level) = ((a * 9.0).exp2(), 1.0 + 1e6 * b);
    move |x: f64| match which {
        // Monotone, flat, falling.
        0 => level * x / (x + knee),
        1 => level,
        2 => level / x.sqrt(),
        // One peak, a staircase, zero.
        3 => level * (x / knee).min(knee / x).powf(0.1 + b),
        4 => level * (x.log2() / (1.0 + 3.0 * b)).floor().exp2(),
        _ => 0.0,
    }
}

proptest! {
    #[test]
    fn every_search_ends_within_its_bounds(
        which in 0u8..6, a in 0.0f64..1.0, b in 0.0f64..1.0, noise in 0.0f64..0.5,
        lowest in 1u32..50, span in 0u32..100_000, enough in 0.5f64..0.99, seed in any::<u64>(),
    ) {
        let highest = lowest + span;
        let curve = kind(which, a, b);
        let asked = std::cell::RefCell::new(Vec::new());
        let probed = |x: f64| { asked.borrow_mut().push(x); curve(x) };
        let (answer, knee) = search(Knee::new(lowest, highest, enough), probed, noise, seed);
        let within = |x: f64| f64::from(lowest) <= x && x <= f64::from(highest);
        prop_assert!(asked.borrow().iter().all(|x| within(*x)));
        prop_assert!(answer.equals.contains(&answer.choice) && answer.equals.is_sorted());
        prop_assert!(answer.equals.iter().all(|x| within(f64::from(*x))));
        prop_assert!(knee.probes() <= PROBES_MAX && knee.next().is_none());
        // Without noise a saturating curve is found within an octave.
        if which == 0 && noise < 1e-3 && highest >= 4096 {
            let truth = (1..=highest).find(|x| curve((*x).into()) >= enough * curve(highest.into()));
            let octaves = (f64::from(answer.choice) / f64::from(truth.unwrap().max(lowest))).log2();
            prop_assert!(octaves.abs() <= 1.01, "{answer:?} {truth:?}");
        }
    }

    #[test]
    fn every_search_for_a_load_ends_within_its_bounds(
        lowest in 0.01f64..1e3, span in 1.0f64..1e6, start in 0.01f64..1e7, capacity in 0.1f64..1e8,
        noise in 0.0f64..0.5, tolerance in 0.01f64..0.3, seed in any::<u64>(),
    ) {
        let limits = (lowest, lowest * span);
        let mut search = Highest::new(limits, start, 1e6, tolerance);
        let mut chance = SplitMix64(seed);
        while let Some(load) = search.next() {
            prop_assert!(limits.0 <= load && load <= limits.1, "{load} outside of {limits:?}");
            prop_assert!(search.probes() < PROBES_MAX);
            let time = 1e6 * (load / capacity) * (noise * chance.normal()).exp();
            search.observe(load, time, time * noise, load > 1.5 * capacity);
        }
        let bracket = search.bracket();
        if let (Some(meets), Some(misses)) = (bracket.meets, bracket.misses) {
            prop_assert!(meets < misses);
        }
        let equals = search.equals();
        prop_assert!(equals.is_sorted());
        prop_assert!(bracket.meets.is_none_or(|meets| equals.contains(&meets)));
    }
}

/// The response time of an M/M/1 queue at a quantile: -ln(1 - q) S / (1 - rho).
fn mm1(load: f64, capacity: f64, quantile: f64) -> f64 {
    match load < capacity {
        true => -(1.0 - quantile).ln() / (capacity - load) * 1e9,
        false => 1e12,
    }
}

#[test]
fn the_highest_load_that_meets_an_objective_is_found() {
    // p99 <= 2 ms of a queue that serves 50,000 per second: ln(100) / (50,000 - x) = 2 ms.
    for (capacity, bound_ms) in [(50_000.0, 2.0), (200.0, 100.0), (2e6, 0.1), (120.0, 50.0)] {
        let truth = capacity - 100f64.ln() / (bound_ms * 1e-3);
        for (noise, seed) in [(0.0, 1), (0.05, 2), (0.05, 3), (0.1, 4)] {
            let mut search = Highest::new((1.0, 1e9), 1000.0, bound_ms * 1e6, 0.05);
            let mut chance = SplitMix64(seed);
            while let Some(load) = search.next() {
                let time = mm1(load, capacity, 0.99) * (noise * chance.normal()).exp();
                search.observe(load, time, time * noise, capacity < load);
            }
            let bracket = search.bracket();
            let (meets, misses) = (bracket.meets.unwrap(), bracket.misses.unwrap());
            let is_narrow = misses <= meets * 1.06;
            assert!(is_narrow || search.probes() == PROBES_MAX, "{bracket:?}");
            if noise == 0.0 {
                assert!(meets <= truth && truth <= misses, "{bracket:?} for {truth}");
            }
            assert!((meets / truth - 1.0).abs() < 0.3, "{bracket:?} for {truth}");
        }
    }
}

/// The ends between which the answer certainly is have to hold its true value in 19 of 20 searches,
/// and have to be near enough to be of use: not those of all loads that were probed.
#[test]
fn the_certain_ends_hold_the_truth_and_leave_out_what_cannot_be_the_answer() {
    const SEARCHES: u64 = 200;
    // An M/M/1 queue of 50,000 per second, and p99 <= 1 ms.
    let (capacity, truth) = (50_000.0, 50_000.0 - 100f64.ln() * 1e3);
    // The noise of the time, and that of the speed, which matters most near saturation.
    for (of_time, of_speed) in [(0.03, 0.0), (0.1, 0.0), (0.25, 0.0), (0.02, 0.02)] {
        let (mut wrong, mut far) = (0, 0);
        for seed in 0..SEARCHES {
            let mut search = Highest::new((1.0, 1e9), 1000.0, 1e6, 0.05);
            let mut chance = SplitMix64(seed);
            while let Some(load) = search.next() {
                let speed = (of_speed * chance.normal()).exp();
                let time = mm1(load * speed, capacity, 0.99) * (of_time * chance.normal()).exp();
                search.observe(load, time, 0.0, capacity < load);
            }
            let told = search.told();
            wrong += u32::from(told.meets.is_some_and(|load| truth < load));
            wrong += u32::from(told.misses.is_some_and(|load| load <= truth));
            far += u32::from(told.meets.is_none_or(|load| load < truth / 4.0));
            assert!(search.equals().iter().all(|load| told.meets.is_none_or(|low| low <= *load)));
            assert!(search.equals().iter().all(|load| told.misses.is_none_or(|high| *load < high)));
        }
        let noise = (of_time, of_speed);
        assert!(20 * u64::from(wrong) <= SEARCHES, "{wrong} of {SEARCHES} at {noise:?}");
        assert!(20 * u64::from(far) <= SEARCHES, "{far} of {SEARCHES} at {noise:?}");
    }
}

/// Loads that clearly meet the objective below others that do are not the answer, however much the
/// probes near saturation differ.
#[test]
fn loads_count_together_with_their_neighbors() {
    let mut search = Highest::new((1.0, 1e6), 1000.0, 20.0, 0.05);
    let probes = [
        (1000.0, 9.3),
        (2000.0, 9.1),
        (2830.0, 9.3),
        (3360.0, 12.4),
        (3670.0, 13.5),
        (3670.0, 16.0),
        (3670.0, 11.5),
        (3830.0, 17.0),
        (3830.0, 25.0),
        (3830.0, 18.0),
        (3830.0, 14.0),
        (4000.0, 40.0),
        (4000.0, 48.0),
    ];
    probes.into_iter().for_each(|(load, time)| search.observe(load, time, 0.0, false));
    let bracket = |meets, misses| Bracket { meets: Some(meets), misses: Some(misses) };
    assert_eq!(search.bracket(), bracket(3830.0, 4000.0));
    assert_eq!(search.told(), bracket(3670.0, 4000.0));
    assert_eq!(search.equals(), [3670.0, 3830.0]);
    // A long trial decides.
    let mut missed = search.clone();
    missed.decide(3830.0, false);
    assert_eq!([missed.bracket(), missed.told()], [bracket(3670.0, 3830.0); 2]);
    assert_eq!((missed.equals(), missed.meets(3830.0)), (Vec::from([3670.0]), Some(false)));
    search.decide(3830.0, true);
    assert_eq!((search.told(), search.equals()), (bracket(3830.0, 4000.0), Vec::from([3830.0])));
}

#[test]
fn an_objective_that_nothing_meets_has_no_answer_and_one_that_all_meets_has_the_highest() {
    let mut never = Highest::new((10.0, 1e6), 1000.0, 1e9, 0.05);
    while let Some(load) = never.next() {
        never.observe(load, 2e9, 0.0, false);
    }
    let least = never.bracket();
    assert_eq!((least.meets, least.misses, never.equals()), (None, Some(10.0), Vec::new()));
    let mut always = Highest::new((10.0, 1e6), 1000.0, 1.0, 0.05);
    while let Some(load) = always.next() {
        always.observe(load, 0.5, 0.0, false);
    }
    let most = always.bracket();
    assert_eq!((most.meets, most.misses, always.meets(1000.0)), (Some(1e6), None, Some(true)));
}

/// A point that is probed for five seconds.
fn base(depth: u32) -> Point {
    let mut point = Invented::writes().trial.point;
    (point.warm_up, point.window) = (Span::from_secs(1), Span::from_secs(5));
    point.streams[0].pacing = Pacing::closed(depth);
    point.streams[0].name = point.streams[0].description(point.window);
    point.name.clone_from(&point.streams[0].name);
    point
}

/// A trial of a point with the given IOPS and time per I/O.
fn trial(planned: &Planned, iops: u64, time_ns: u64) -> Trial {
    let mut invented = match planned.point.streams[0].pacing.is_open() {
        true => Invented::open_reads(1000.0),
        false => Invented::writes(),
    };
    let seconds = planned.point.window.0 / 1_000_000_000;
    let ios = iops * seconds;
    invented.set_times(ios, time_ns);
    invented.set_series((0..seconds).map(|_| iops));
    invented.trial.record.window = planned.point.window;
    let ledger = &mut invented.worker().ledger;
    (ledger.completed, ledger.due) = (ios, ios + 1);
    if let Some(offered_load) = planned.point.streams[0].pacing.offered_load(planned.point.window) {
        ledger.due = (offered_load.0 * seconds as f64) as u64 + 1;
        ledger.unstarted = ledger.due.saturating_sub(ios + 1);
    }
    Trial { point: planned.point.clone(), place: planned.place.clone(), ..invented.trial }
}

/// Runs a search on a target that gives the IOPS and the time per I/O of each point.
fn run(
    mut peak: Peak,
    target: impl Fn(&Point) -> (u64, u64),
) -> (Vec<Planned>, PeakFound, Conclusion) {
    let (mut all, mut last) = (Vec::new(), None);
    loop {
        let ahead = peak.forecast();
        assert!(ahead.points <= ahead.points_at_most && ahead.time <= ahead.time_at_most);
        match peak.next(last.as_ref()) {
            Step::Done(conclusion) => {
                let Some(Found::Peak(found)) = conclusion.found.clone() else {
                    panic!("it found something")
                };
                return (all, found, conclusion);
            }
            Step::Run(planned) => {
                let (iops, time) = target(&planned.point);
                last = Some(trial(&planned, iops, time));
                all.push(*planned);
                assert!(all.len() <= PROBES_MAX + 1);
            }
        }
    }
}

const FIVE_MINUTES: Span = Span::from_secs(300);

#[test]
fn a_queue_saturates_at_its_servers() {
    // Eight servers, 10 ms each: 100 IOPS for each I/O in flight, up to 800.
    let search = Search::Saturation { vary: Vary::QueueDepth, up_to: 256, enough: 0.95 };
    let peak = Peak::new(base(32), search, Some(FIVE_MINUTES));
    let (all, found, conclusion) = run(peak, |point| {
        let depth = u64::from(point.streams[0].pacing.queue_depth());
        (100 * depth.min(8), 10_000_000 * depth.max(8) / 8)
    });
    assert_eq!((found.choice, found.equals.as_slice()), (Some(8.0), &[8.0][..]));
    assert_eq!((found.axis.as_str(), found.measure.as_str()), ("queue-depth", "iops"));
    assert!(found.probes.is_sorted_by(|a, b| a.value < b.value));
    let official = all.last().unwrap();
    assert_eq!((official.place.role, official.point.window), (Role::Official, FIVE_MINUTES));
    assert_eq!(official.point.streams[0].name, "random write 4 KiB, queue depth 8");
    assert_eq!(all[0].point.name, "random write 4 KiB: queue depth 1");
    assert_eq!(
        conclusion.sentences,
        [
            "Queue depth 8 saturates this target: 800 IOPS, p50 10.0 ms (in the probes 100 % of the \
             best; more does not help).",
            "The official run of 5 min at queue depth 8: 800 IOPS ± 0 %. Its response time: p50 10.0 ms, \
             p99 10.0 ms.",
        ]
    );
}

#[test]
fn on_several_hosts_settings_are_those_of_each_and_a_probe_without_a_host_is_made_again() {
    // Each of three hosts has eight servers of its own.
    let search = Search::Saturation { vary: Vary::QueueDepth, up_to: 256, enough: 0.95 };
    let mut peak = Peak::new(base(1), search, Some(FIVE_MINUTES)).on_hosts(3);
    let (mut last, mut all) = (None, 0);
    let conclusion = loop {
        match peak.next(last.as_ref()) {
            Step::Done(conclusion) => break conclusion,
            Step::Run(planned) => {
                assert_eq!(planned.point.looks, [], "each probe lasts to its end");
                let depth = planned.point.streams[0].pacing.queue_depth();
                let whole = trial(&planned, 3 * 100 * u64::from(depth.min(8)), 10_000_000);
                let lost = LostHost { why: "it died".to_owned(), after: None };
                let hosts = Vec::from([HostTrial::lost("b", lost)]);
                let less = trial(&planned, 1, 10_000_000);
                let before = peak.so_far();
                let again = peak.next(Some(&Trial { hosts, is_void: true, ..less }));
                assert_eq!(again, Step::Run(planned));
                assert_eq!(peak.so_far(), before, "what lacks a host says nothing");
                last = Some(whole);
                all += 1;
            }
        }
    };
    assert!(all > 5, "{all}");
    let said = conclusion.sentences.join(" ");
    assert!(said.starts_with(
        "Queue depth 8 on each of 3 hosts (24 in all) saturates their targets: 2,400"
    ));
    assert!(
        said.contains("The official run of 5 min at queue depth 8 on each host: 2,400"),
        "{said}"
    );
}

#[test]
fn what_the_official_run_does_not_keep_up_is_said() {
    let search = Search::Saturation { vary: Vary::QueueDepth, up_to: 64, enough: 0.95 };
    let peak = Peak::new(base(1), search, Some(FIVE_MINUTES));
    // The credit lasts as long as a probe.
    let (_, _, conclusion) = run(peak, |point| match point.window {
        FIVE_MINUTES => (100, 10_000_000),
        _ => (800, 10_000_000),
    });
    let first =
        "Queue depth 1 saturates this target: 100 IOPS, 88 % less than in its probes, p50 10.0 ms ";
    assert!(conclusion.sentences[0].starts_with(first), "{conclusion:?}");
    assert_eq!(
        conclusion.sentences[1],
        "The official run of 5 min at queue depth 1: 100 IOPS ± 0 %, 88 % less than its probes: for \
         that long the target does not keep it up, or something else used it meanwhile. Its response \
         time: p50 10.0 ms, p99 10.0 ms."
    );
}

/// 98 % of the best at a fifth of the response time: a user who waits for I/Os has to be told.
#[test]
fn what_could_be_the_answer_as_well_is_said_with_its_response_time() {
    let of = |p50_us: [f64; 4], equals: &[f64]| {
        let estimate = |value: f64| Estimate { value, half_width: Some(value / 100.0) };
        let settings = [128.0, 256.0, 512.0, 1024.0].into_iter().zip(p50_us);
        let probe = |(value, us): (f64, f64)| Probe {
            value,
            trials: 2,
            throughput: estimate(7e5),
            response_time_ns: Some(estimate(us * 1e3)),
            meets: None,
        };
        as_well(&PeakFound {
            axis: "queue-depth".to_owned(),
            measure: "iops".to_owned(),
            enough: Some(0.95),
            objective: None,
            probes: settings.map(probe).collect(),
            choice: Some(256.0),
            equals: equals.to_vec(),
            best: None,
            official_is_open: false,
        })
    };
    let times = [160.0, 270.0, 600.0, 1300.0];
    let above =
        "512 or 1,024 may be needed to be sure of 95 % of the best, at 2.2 to 4.8 times the p50";
    assert_eq!(of(times, &[256.0, 512.0, 1024.0]), [above]);
    let below = "128 may be enough, at 0.59 times the p50";
    assert_eq!(of(times, &[128.0, 256.0]), [below]);
    assert_eq!(of(times, &[256.0]), [""; 0]);
    // Chance can explain the difference.
    let alike = [160.0, 270.0, 274.0, 1300.0];
    assert_eq!(of(alike, &[256.0, 512.0]), ["512 may be needed to be sure of 95 % of the best"]);
}

/// An eighth of the best in one probe is no answer, and no proof either.
#[test]
fn what_gave_far_too_little_in_one_probe_is_named_and_is_no_answer() {
    let mut knee = super::knee::Knee::new(1, 16, 0.95);
    for (depth, iops) in [(1, 100.0), (4, 400.0), (16, 800.0), (8, 800.0), (8, 800.0), (16, 800.0)]
    {
        knee.observe(depth, iops, 1.0);
    }
    let answer = knee.answer().unwrap();
    assert_eq!((answer.choice, answer.equals), (8, Vec::from([8])));
    let shares: Vec<(u32, String)> = knee
        .unproven()
        .into_iter()
        .map(|(depth, share)| (depth, crate::figures::percent(share)))
        .collect();
    assert_eq!(shares, [(1, "13 %".to_owned()), (4, "50 %".to_owned())]);
    let said = "1 and 4 gave 13 % and 50 % of the best, in one probe each: the probes cannot tell \
                whether they were disturbed.";
    assert_eq!(super::words::unproven(&knee.unproven()).as_deref(), Some(said));
    // A second probe of the nearest one is enough: it is too little, and so is what is below it.
    knee.observe(4, 400.0, 1.0);
    assert_eq!(knee.unproven(), []);
}

#[test]
fn what_the_highest_setting_costs_is_said_and_chance_is_not() {
    let said = |curve: &[(u32, f64)]| {
        let search = Search::Saturation { vary: Vary::QueueDepth, up_to: 64, enough: 0.95 };
        let curve = Curve::of("curve", curve);
        let (_, _, conclusion) = run(Peak::new(base(1), search, None), |point| {
            let depth = point.streams[0].pacing.queue_depth();
            (curve.at(depth.into()).round() as u64, 1_000_000)
        });
        conclusion.sentences[0].clone()
    };
    let falls = said(&[(1, 1000.0), (4, 990.0), (16, 800.0), (64, 700.0)]);
    assert!(falls.ends_with("; more does not help, 16 costs 13 to 25 %)."), "{falls}");
    // The lowest of many equal settings. With noise of 3 % the loss is not worth a sentence.
    let flat = said(&[(1, 1000.0), (2, 930.0), (4, 1010.0), (16, 960.0), (64, 1000.0)]);
    assert!(flat.ends_with("; more does not help)."), "{flat}");
}

/// A search on a target of eight servers. In the first `probes` probes at queue depth 64, the
/// target gives only an eighth.
fn held_up(probes: u32) -> (Vec<u64>, Vec<String>) {
    let search = Search::Saturation { vary: Vary::QueueDepth, up_to: 256, enough: 0.95 };
    let left = std::cell::Cell::new(probes);
    let (all, found, conclusion) = run(Peak::new(base(1), search, None), |point| {
        let depth = u64::from(point.streams[0].pacing.queue_depth());
        let is_held_up = depth == 64 && 0 < left.get();
        left.set(left.get() - u32::from(is_held_up));
        (100 * if is_held_up { 1 } else { depth.min(8) }, 10_000_000)
    });
    assert_eq!((found.choice, found.equals.as_slice()), (Some(8.0), &[8.0][..]));
    let depth = |planned: &Planned| u64::from(planned.point.streams[0].pacing.queue_depth());
    (all.iter().map(depth).collect(), conclusion.sentences)
}

#[test]
fn a_probe_that_was_held_up_is_probed_again_and_named() {
    let (depths, sentences) = held_up(1);
    assert_eq!(depths.iter().filter(|depth| **depth == 64).count(), 3, "{depths:?}");
    let expected = [
        "Queue depth 8 saturates this target: 800 IOPS, p50 10.0 ms (100 % of the best; more does not \
         help).",
        "At queue depth 64 1 of 3 probes gave 13 % of the others' throughput, and is left out: something \
         else used the target then, or held it up.",
    ];
    assert_eq!(sentences, expected);
}

#[test]
fn a_setting_below_both_sides_is_named_and_the_answer_does_not_hang_on_it() {
    let (depths, sentences) = held_up(100);
    assert!(depths.iter().filter(|depth| **depth == 64).count() >= 2, "{depths:?}");
    let dip = &sentences[1];
    assert!(dip.starts_with("Not monotonic: queue depth 64 gives 8"), "{dip}");
    assert!(dip.ends_with(" % less than settings below and above it do, in 2 probes."), "{dip}");
    assert!(!sentences[0].contains("costs"), "{sentences:?}");
}

#[test]
fn what_is_better_than_the_answer_costs_nothing() {
    let search = Search::Saturation { vary: Vary::QueueDepth, up_to: 64, enough: 0.9 };
    let curve = Curve::of("rising", &[(1, 500.0), (2, 870.0), (4, 880.0), (8, 950.0), (64, 940.0)]);
    let (_, found, conclusion) = run(Peak::new(base(1), search, None), |point| {
        let depth = point.streams[0].pacing.queue_depth();
        (curve.at(depth.into()).round() as u64, 1_000_000)
    });
    assert_eq!(found.choice, Some(2.0));
    let expected = "Queue depth 2 saturates this target: 870 IOPS, p50 1.00 ms (92 % of the best; \
                    more than 8 does not help).";
    assert_eq!(conclusion.sentences[0], expected);
    // It is above the 90 % that were asked for. Where it is not, only scatter made it the answer.
    assert!(!falls_short(&found));
    assert!(falls_short(&PeakFound { enough: Some(0.95), ..found }));
}

#[test]
fn the_published_sentence_is_said_of_the_published_curve() {
    let mut point = base(1);
    point.streams[0].kind_mut().block_sizes = crate::spec::BlockSizes::one(Bytes(1 << 20));
    point.streams[0].workers = Workers::Total(1);
    let search = Search::Saturation { vary: Vary::Workers, up_to: 256, enough: 0.95 };
    let large = [(1, 565.0), (2, 897.0), (8, 937.0), (32, 888.0), (256, 840.0)];
    let curve = Curve::of("12.8 MB", &large);
    let (all, found, conclusion) = run(Peak::new(point, search, None), |point| {
        let Workers::Total(workers) = point.streams[0].workers else { panic!("in all") };
        assert_eq!(point.streams[0].pacing.queue_depth(), workers);
        (curve.at(workers.into()).round() as u64, 1_000_000)
    });
    assert!(all.iter().all(|planned| planned.place.role == Role::Probe));
    assert_eq!(found.choice, Some(2.0));
    let sentence = &conclusion.sentences[0];
    assert!(
        sentence.starts_with("2 writers saturate this target: ") && sentence.contains("(96 % of"),
        "{sentence}"
    );
    // The loss at 64 is 5.9 %. Two probes of each setting may differ by that much.
    assert!(sentence.ends_with(" does not help)."), "{sentence}");
}

#[test]
fn a_target_that_is_never_saturated_says_so() {
    let search = Search::Saturation { vary: Vary::QueueDepth, up_to: 16, enough: 0.95 };
    let (_, found, conclusion) = run(Peak::new(base(1), search, None), |point| {
        (100 * u64::from(point.streams[0].pacing.queue_depth()), 10_000_000)
    });
    assert_eq!(found.choice, Some(16.0));
    assert_eq!(
        conclusion.sentences[0],
        "Nothing up to queue depth 16 saturates this target: it gives 1,600 IOPS, p50 10.0 ms, and \
         more may gain. Go on with --up-to 64."
    );
}

#[test]
fn an_objective_is_met_up_to_a_load() {
    let mut point = base(1);
    point.streams[0].pacing = Pacing::open(Rate(100.0), crate::spec::Arrivals::Poisson, 1024);
    point.streams[0].name = point.streams[0].description(point.window);
    let objective = Objective { quantile: Quantile(0.99), bound: Span::from_ms(2) };
    let search = Search::Load { objective, up_to: Rate(1e6), tolerance: 0.05 };
    let peak = Peak::new(point, search, Some(FIVE_MINUTES));
    let (all, found, conclusion) = run(peak, |point| {
        let offered_load = point.streams[0].pacing.offered_load(point.window).expect("open");
        // An M/M/1 queue of 5000 per second: ln(100) / (5000 - x) = 2 ms at 2697.
        let load = offered_load.0.min(5000.0);
        ((load.round()) as u64, mm1(load, 5000.0, 0.99).min(1e9) as u64)
    });
    let choice = found.choice.unwrap();
    assert!(choice <= 2697.0 && 2697.0 <= choice * 1.06, "{found:?}");
    assert_eq!(found.objective.as_deref(), Some("p99 <= 2 ms"));
    assert!(found.probes.iter().all(|probe| probe.meets == Some(probe.value < 2697.0)));
    // At 100 per second it takes 20 s to have twice the samples that p99 needs.
    assert_eq!(all[0].point.window, Span::from_secs(20));
    assert!(all[1].point.window >= Span::from_secs(5));
    let [first, doubt, official] = conclusion.sentences.as_slice() else {
        panic!("{conclusion:?}")
    };
    let bracket = "As far as the probes can tell, that load is at least 2,260 IOPS and less than 2,810 IOPS, ";
    assert!(doubt.starts_with(bracket), "{doubt}");
    assert_eq!(found.equals.first(), Some(&2260.0));
    assert!(first.starts_with("The highest load at which p99 <= 2 ms is 2,"), "{first}");
    // Without a half-width its official run leaves it open.
    let by_its_probes = " IOPS by its probes (p99 1.9";
    assert!(first.contains(by_its_probes) && first.contains(" misses it (p99 2."), "{first}");
    assert!(first.contains(", and its official run leaves it open (p99 1.9"), "{first}");
    assert!(found.official_is_open);
    assert!(official.ends_with("to say whether it meets it."), "{official}");
    assert_eq!(all.last().unwrap().place.role, Role::Official);
}

/// A search for the highest load at which p99 <= 2 ms, with an official run. The target gives the p99
/// in microseconds of a load, and whether the run is the official one.
fn with_official_run(p99_us: impl Fn(f64, bool) -> u64) -> (PeakFound, Vec<String>) {
    with_official_run_of(true, p99_us)
}

/// The same; the p99 of the official run has a half-width or not.
fn with_official_run_of(
    half_width: bool,
    p99_us: impl Fn(f64, bool) -> u64,
) -> (PeakFound, Vec<String>) {
    let mut point = base(1);
    point.streams[0].pacing = Pacing::open(Rate(1000.0), crate::spec::Arrivals::Poisson, 1024);
    point.streams[0].name = point.streams[0].description(point.window);
    let objective = Objective { quantile: Quantile(0.99), bound: Span::from_ms(2) };
    let search = Search::Load { objective, up_to: Rate(1e5), tolerance: 0.05 };
    let mut peak = Peak::new(point, search, Some(FIVE_MINUTES));
    let (mut last, mut officials) = (None, 0);
    while let Step::Run(planned) = peak.next(last.as_ref()) {
        let load = planned.place.coordinates[0].value.unwrap();
        let is_official = planned.place.role == Role::Official;
        officials += u32::from(is_official);
        let p99 = 1000 * p99_us(load, is_official);
        let mut ended = trial(&planned, load.round() as u64, p99);
        // A stretch for each second, so that the p99 has a half-width.
        let seconds = planned.point.window.0 / 1_000_000_000;
        let mut times = Histogram::default();
        times.record_many(p99, ended.record.total(None).ios() / seconds);
        let stretch = |nth: u64| Stretch {
            stream: 0,
            start: Span::from_secs(nth),
            length: Span::from_secs(1),
            failed: 0,
            bytes: [Bytes(0); 2],
            response_time: [times.to_sparse(), Histogram::default().to_sparse()],
            lag: None,
        };
        if half_width || !is_official {
            ended.record.stretches = (0..seconds).map(stretch).collect();
        }
        last = Some(ended);
    }
    assert_eq!(officials, 1, "nothing is probed after it, and it is not repeated");
    assert_eq!(peak.forecast().points_at_most, 0);
    let Conclusion { sentences, found: Some(Found::Peak(found)) } = peak.so_far() else {
        panic!("it found something")
    };
    (found, sentences)
}

/// 1.5 ms up to 2,600 IOPS, and 3 ms above.
fn up_to_2600(load: f64) -> u64 {
    if load <= 2600.0 { 1500 } else { 3000 }
}

#[test]
fn an_official_run_that_meets_the_objective_confirms_the_answer() {
    let (found, sentences) = with_official_run(|load, _| up_to_2600(load));
    let choice = found.choice.unwrap();
    assert!((2470.0..=2600.0).contains(&choice), "{found:?}");
    assert_eq!(found.equals, [choice]);
    let [first, official] = sentences.as_slice() else { panic!("{sentences:?}") };
    assert!(first.starts_with("The highest load at which p99 <= 2 ms is 2,"), "{first}");
    assert!(official.ends_with(" IOPS ± 0 %, p99 1.50 ms; it meets the objective."), "{official}");
}

#[test]
fn a_load_whose_official_run_misses_the_objective_is_not_the_answer() {
    let (confirmed, _) = with_official_run(|load, _| up_to_2600(load));
    let (found, sentences) =
        with_official_run(|load, is_official| if is_official { 3000 } else { up_to_2600(load) });
    let (missed, choice) = (confirmed.choice.unwrap(), found.choice.unwrap());
    let below = found.probes.iter().rfind(|probe| probe.value < missed).unwrap();
    assert_eq!((choice, below.meets), (below.value, Some(true)));
    let at = found.probes.iter().find(|probe| probe.value == missed).unwrap();
    assert_eq!((at.meets, found.equals.contains(&missed)), (Some(false), false));
    let [first, official] = sentences.as_slice() else { panic!("{sentences:?}") };
    let [choice, missed] = [choice, missed].map(crate::figures::number);
    assert_eq!(
        *first,
        format!(
            "The highest load at which p99 <= 2 ms is between {choice} IOPS, which meets it in its \
             probes (p99 1.50 ms), and {missed} IOPS, whose official run misses it (p99 3.00 ms)."
        )
    );
    assert!(official.ends_with("; it misses the objective, which its probes met."), "{official}");
}

#[test]
fn an_official_run_too_close_to_the_objective_leaves_the_answer_open() {
    let (found, sentences) =
        with_official_run_of(
            false,
            |load, is_official| {
                if is_official { 2100 } else { up_to_2600(load) }
            },
        );
    assert!(found.official_is_open);
    let choice = crate::figures::number(found.choice.unwrap());
    let first = format!(
        "The highest load at which p99 <= 2 ms is {choice} IOPS by its probes (p99 1.50 ms), and its \
         official run leaves it open (p99 2.10 ms); "
    );
    assert!(sentences[0].starts_with(&first), "{sentences:?}");
    let open = "; that is too close to the objective to say whether it meets it.";
    assert!(sentences.last().unwrap().ends_with(open), "{sentences:?}");
}

#[test]
fn if_the_official_run_of_the_lowest_load_misses_the_objective_there_is_no_answer() {
    let (found, sentences) =
        with_official_run(
            |load, is_official| {
                if is_official || 1000.0 < load { 3000 } else { 1500 }
            },
        );
    assert_eq!((found.choice, found.equals.as_slice()), (None, &[][..]));
    assert_eq!(
        sentences[0],
        "No load that was probed meets p99 <= 2 ms for long: the lowest, 1,000 IOPS, meets it in its \
         probes, but its official run misses it (p99 3.00 ms)."
    );
}

#[test]
fn an_objective_that_no_load_meets_is_given_up_where_nothing_waits() {
    let mut point = base(1);
    point.streams[0].pacing = Pacing::open(Rate(1000.0), crate::spec::Arrivals::Poisson, 1024);
    let objective = Objective { quantile: Quantile(0.99), bound: Span::from_us(10) };
    let search = Search::Load { objective, up_to: Rate(1e6), tolerance: 0.05 };
    // Each I/O takes 100 us, however low the load is.
    let (all, found, conclusion) = run(Peak::new(point, search, None), |point| {
        let offered_load = point.streams[0].pacing.offered_load(point.window).expect("open");
        (offered_load.0.round() as u64, 100_000)
    });
    assert_eq!((found.choice, all.len()), (None, 3), "{found:?}");
    let sentence = &conclusion.sentences[0];
    assert!(sentence.starts_with("No load meets p99 <= 10 us: even 62.5 IOPS miss"), "{sentence}");
    assert!(!sentence.contains("carries"), "{sentence}");
}

#[test]
fn depth_is_shared_as_the_streams_share_it() {
    let mut point = base(30);
    let second = point.streams[0].clone();
    point.streams.push(second);
    point.streams[1].pacing = Pacing::closed(10);
    point.streams[1].workers = Workers::Total(2);
    let depths = |depth: u32| -> Vec<u32> {
        super::deep(&point, depth).streams.iter().map(|s| s.pacing.queue_depth()).collect()
    };
    assert_eq!(super::lowest(&point, Vary::QueueDepth), 3);
    assert_eq!([depths(3), depths(4), depths(8), depths(40)], [[1, 2], [2, 2], [6, 2], [30, 10]]);
    proptest!(|(depth in 3u32..10_000)| prop_assert_eq!(depths(depth).iter().sum::<u32>(), depth));
}

#[test]
fn by_small_steps_no_setting_below_the_peak_is_left_out() {
    let (answer, knee) = search(Knee::climbing(4, 4096, 0.95), |x| x.min(150.0), 0.0, 1);
    assert_eq!((answer.choice, answer.rises_at_the_end), (192, false));
    let probed: Vec<u32> = [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96].map(|n| 4 * n).to_vec();
    // The answer and the setting below it are probed once more.
    assert_eq!(knee.probes(), probed.len() + 2);
    let (answer, _) = search(Knee::climbing(1, 20, 0.95), |x| x, 0.0, 1);
    assert_eq!((answer.choice, answer.rises_at_the_end), (20, true));
}
