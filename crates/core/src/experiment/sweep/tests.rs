//! Sweeps over invented devices, whose answers are known.

use std::collections::BTreeMap;

use super::*;
use crate::experiment::Scale;
use crate::spec::BlockSizes;
use crate::stats::testing::Chance;
use crate::units::Bytes;
use crate::verdict::testing::Invented;

const SETTINGS: Settings = Settings {
    repeats: 3,
    order: Order::Shuffled,
    seed: 7,
    rest: Span::from_secs(10),
    prepare: 0,
    cut_off: false,
    enough: 0.9,
};

fn axis(name: &str, labels: &[&str]) -> Axis {
    let labels = labels.iter().map(|label| (*label).to_owned()).collect();
    Axis { name: name.to_owned(), scale: Scale::Log2, labels }
}

/// Every combination of block sizes and depths.
fn grid(blocks: &[(&str, u64)], depths: &[&str], settings: Settings) -> Sweep {
    let labels: Vec<&str> = blocks.iter().map(|block| block.0).collect();
    let coordinate = |axis: &str, label: &str, value: f64| Coordinate {
        axis: axis.to_owned(),
        label: label.to_owned(),
        value: Some(value),
    };
    let mut candidates = Vec::new();
    for (label, size) in blocks {
        for depth in depths {
            let mut point = Invented::writes().trial.point;
            point.streams[0].block_sizes = BlockSizes::one(Bytes(*size));
            let coordinates = Vec::from([
                coordinate("block-size", label, *size as f64),
                coordinate("queue-depth", depth, depth.parse().unwrap()),
            ]);
            candidates.push(Candidate { point, coordinates, once: false });
        }
    }
    Sweep::new(
        Vec::from([axis("block-size", &labels), axis("queue-depth", depths)]),
        candidates,
        settings,
    )
}

/// Runs a sweep on a device with this bandwidth at a place: what was run, and what was concluded.
fn run(sweep: &mut Sweep, mut device: impl FnMut(&Place) -> f64) -> (Vec<Planned>, Conclusion) {
    let mut ran: Vec<Planned> = Vec::new();
    let mut last = None;
    // What was said to come, by its place.
    let mut foreseen: BTreeMap<usize, Planned> = BTreeMap::new();
    loop {
        let ahead = sweep.forecast();
        match sweep.next(last.as_ref()) {
            Step::Done(conclusion) => {
                assert_eq!(sweep.forecast(), Forecast::default());
                return (ran, conclusion);
            }
            Step::Run(planned) => {
                assert!(ahead.points > 0 && ahead.points_at_most < 10_000);
                assert!(foreseen.get(&ran.len()).is_none_or(|one| *one == *planned));
                let later = sweep.foreseen(3).into_iter().map(|one| one.planned);
                foreseen.extend((ran.len() + 1..).zip(later));
                last = Some(trial(&planned, device(&planned.place)));
                ran.push(*planned);
            }
        }
    }
}

fn trial(planned: &Planned, bandwidth: f64) -> Trial {
    let mut invented = Invented::writes();
    let bytes = (bandwidth * 60.0) as u64;
    invented.worker().cells[0].flows[1].bytes = Bytes(bytes);
    for interval in &mut invented.trial.record.series {
        interval.bytes[1] = Bytes(bytes / 60);
    }
    Trial { point: planned.point.clone(), place: planned.place.clone(), ..invented.trial }
}

fn labels(place: &Place) -> (String, String) {
    (place.coordinates[0].label.clone(), place.coordinates[1].label.clone())
}

#[test]
fn every_pass_has_every_point_once_and_another_order() {
    let mut sweep = grid(&[("4k", 4096), ("64k", 65536)], &["1", "2", "4", "8"], SETTINGS);
    assert_eq!((sweep.forecast().points, sweep.forecast().time), (24, time(24, 23)));
    let (ran, _) = run(&mut sweep, |_| 1e6);
    assert_eq!(ran.len(), 24);
    let mut orders = Vec::new();
    for (repeat, pass) in ran.chunks(8).enumerate() {
        assert!(pass.iter().all(|one| one.place.repeat == repeat as u32));
        let order: Vec<_> = pass.iter().map(|one| labels(&one.place)).collect();
        let mut sorted = order.clone();
        sorted.sort();
        sorted.dedup();
        assert_eq!(sorted.len(), 8);
        orders.push(order);
    }
    assert!(orders[0] != orders[1] && orders[1] != orders[2] && orders[0] != orders[2]);
    let seeds: std::collections::BTreeSet<u64> = ran.iter().map(|one| one.point.seed).collect();
    assert_eq!(seeds.len(), 24);
    let mut again = grid(&[("4k", 4096), ("64k", 65536)], &["1", "2", "4", "8"], SETTINGS);
    assert!(matches!(again.next(None), Step::Run(_)));
    let foreseen: Vec<Planned> = again.foreseen(100).into_iter().map(|one| one.planned).collect();
    assert!(foreseen == ran[1..]);
    assert_eq!(ran[0].rest, Span(0));
    assert!(ran[1..].iter().all(|one| one.rest == Span::from_secs(10)));
}

fn time(points: u64, rests: u64) -> Span {
    Span::from_secs(65 * points + 10 * rests)
}

#[test]
fn the_same_seed_gives_the_same_order_and_as_given_is_as_given() {
    let depths = ["1", "2", "4", "8", "16"];
    let order = |settings| {
        let (ran, _) = run(&mut grid(&[("4k", 4096)], &depths, settings), |_| 1e6);
        ran.iter().map(|one| labels(&one.place).1).collect::<Vec<_>>()
    };
    assert_eq!(order(SETTINGS), order(SETTINGS));
    assert_ne!(order(SETTINGS), order(Settings { seed: 8, ..SETTINGS }));
    let given = order(Settings { order: Order::AsGiven, repeats: 2, ..SETTINGS });
    assert_eq!(given, [depths, depths].concat());
}

/// A block, its bytes, and the throughput at each concurrency.
type Published = (&'static str, u64, &'static [(&'static str, f64)]);

/// The published runs of the study `write-concurrency`, in MB/s.
const PUBLISHED: [Published; 3] = [
    ("256k", 256 << 10, &[("2", 562.0), ("4", 619.0), ("8", 702.0), ("32", 481.0)]),
    ("1m", 1 << 20, &[("1", 505.0), ("2", 824.0), ("8", 786.0), ("32", 875.0)]),
    (
        "12.8MB",
        12_800_000,
        &[("1", 565.0), ("2", 897.0), ("8", 937.0), ("32", 888.0), ("256", 840.0)],
    ),
];

#[test]
fn the_published_study_comes_to_its_known_answers() {
    for (label, size, curve) in PUBLISHED {
        let depths: Vec<&str> = curve.iter().map(|one| one.0).collect();
        let mut sweep = grid(&[(label, size)], &depths, SETTINGS);
        let device: BTreeMap<&str, f64> = curve.iter().copied().collect();
        let mut chance = Chance(1);
        let (_, conclusion) = run(&mut sweep, |place| {
            let rate = device[place.coordinates[1].label.as_str()];
            rate * 1e6 * (1.0 + 0.005 * chance.normal())
        });
        let said = conclusion.sentences.join("\n");
        let answer = if label == "256k" { "8" } else { "2" };
        let enough = format!("block-size {label}: queue-depth {answer} is enough");
        assert!(said.contains(&enough), "{label}: {said}");
        if label == "12.8MB" {
            assert!(said.contains("The best is block-size 12.8MB, queue-depth 8: "), "{said}");
            let costs = ["9", "10", "11"].map(|percent| format!("256 costs {percent}"));
            assert!(costs.iter().any(|cost| said.contains(cost)), "{said}");
        }
    }
}

#[test]
fn what_repeats_cannot_tell_apart_is_named() {
    let mut sweep = grid(&[("1m", 1 << 20)], &["1", "2", "4", "8"], SETTINGS);
    let (_, conclusion) = run(&mut sweep, |place| {
        let rate = if labels(place).1 == "1" { 500e6 } else { 900e6 };
        rate * (1.0 + 0.02 * (f64::from(place.repeat) - 1.0))
    });
    let same = &conclusion.sentences[1];
    assert!(same.starts_with("These cannot be told from it: "), "{:?}", conclusion.sentences);
    assert_eq!(same.matches("queue-depth").count(), 2, "{same}");
    assert!(!same.contains("queue-depth 1;") && !same.contains("queue-depth 1."), "{same}");
    let Some(Found::Sweep(found)) = conclusion.found else { panic!("a sweep finds") };
    assert_eq!((found.axes.len(), found.cut_off.len()), (2, 0));
}

#[test]
fn the_axis_that_matters_most_is_named_with_its_factor() {
    let blocks = [("4k", 4096), ("64k", 65536)];
    let mut sweep = grid(&blocks, &["1", "2", "4"], SETTINGS);
    let (_, conclusion) = run(&mut sweep, |place| match labels(place).0.as_str() {
        "4k" => 100e6,
        _ => 800e6 * (1.0 + 0.1 * place.coordinates[1].value.unwrap()),
    });
    let said = conclusion.sentences.join("\n");
    assert!(said.contains("block-size matters most"), "{said}");
    // (880 x 960 x 1120)^(1/3) / 100, and sqrt(1120 / 880).
    assert!(said.contains("by a factor of 9.82"), "{said}");
    assert!(said.contains("along queue-depth by 1.13"), "{said}");
}

#[test]
fn a_clearly_worse_point_is_cut_short_and_not_repeated() {
    let settings = Settings { cut_off: true, order: Order::AsGiven, ..SETTINGS };
    let mut sweep = grid(&[("1m", 1 << 20)], &["8", "4", "2", "1"], settings);
    let device = |place: &Place| 100e6 * place.coordinates[1].value.unwrap();
    let (ran, conclusion) = run(&mut sweep, device);
    // All once; then only the best.
    assert_eq!(ran.len(), 4 + 2);
    assert!(ran[4..].iter().all(|one| labels(&one.place).1 == "8"));
    let Some(Found::Sweep(found)) = &conclusion.found else { panic!("a sweep finds") };
    assert_eq!(found.cut_off.len(), 3);
    assert!(conclusion.sentences.last().unwrap().starts_with("3 points were cut off"));

    // And at its looks.
    let mut sweep = grid(&[("1m", 1 << 20)], &["8", "4"], settings);
    let Step::Run(first) = sweep.next(None) else { panic!("there is a point") };
    let so_far = |rate| trial(&first, rate).record;
    assert!(!sweep.enough(&so_far(1.0)), "nothing is known yet");
    sweep.next(Some(&trial(&first, 800e6)));
    assert!(sweep.enough(&so_far(400e6)) && !sweep.enough(&so_far(790e6)));
    let unasked = Settings { cut_off: false, ..settings };
    let mut sweep = grid(&[("1m", 1 << 20)], &["8", "4"], unasked);
    sweep.next(None);
    sweep.next(Some(&trial(&first, 800e6)));
    assert!(!sweep.enough(&so_far(400e6)));
}

#[test]
fn one_trial_of_a_point_says_what_it_does_not_know() {
    let settings = Settings { repeats: 1, ..SETTINGS };
    let mut sweep = grid(&[("1m", 1 << 20)], &["1", "2", "4"], settings);
    let (_, conclusion) = run(&mut sweep, |place| 100e6 * place.coordinates[1].value.unwrap());
    assert!(conclusion.sentences[0].ends_with("(1 trial)."), "{:?}", conclusion.sentences);
    let end = "queue-depth 4 is the best of them (381.47 MiB/s), and more may gain.";
    assert!(conclusion.sentences.iter().any(|one| one.ends_with(end)), "{conclusion:?}");
    assert_eq!(sweep.so_far(), conclusion);
    let fresh = grid(&[("1m", 1 << 20)], &["1", "2", "4"], settings);
    assert!(fresh.so_far().sentences.is_empty());
}

#[test]
fn what_is_run_once_comes_last_and_is_not_repeated() {
    let mut sweep = grid(&[("4k", 4096), ("8k", 8192)], &["1", "2", "4"], SETTINGS);
    for one in &mut sweep.candidates {
        one.once = one.coordinates[0].label == "8k";
    }
    sweep.turns = turns(&sweep.candidates, &sweep.settings);
    let (ran, _) = run(&mut sweep, |_| 1e6);
    let blocks: Vec<&str> = ran.iter().map(|one| one.place.coordinates[0].label.as_str()).collect();
    assert_eq!(blocks[..9], ["4k"; 9]);
    assert_eq!(blocks[9..], ["8k"; 3]);
    assert!(ran[9..].iter().all(|one| one.place.repeat == 0));
}

#[test]
fn data_that_repeats_itself_is_doubted_where_it_is_much_faster_than_random_data() {
    for (factor, found) in [(1.0, 0), (1.15, 0), (2.0, 1)] {
        let mut sweep = grid(&[("random", 65536), ("zeros", 65536)], &["1", "2"], SETTINGS);
        sweep.axes[0].name = "payload".to_owned();
        for one in &mut sweep.candidates {
            one.coordinates[0].axis = "payload".to_owned();
            if one.coordinates[0].label == "zeros" {
                one.once = true;
                one.point.streams[0].payload = crate::spec::Payload::Zeros;
            }
        }
        sweep.turns = turns(&sweep.candidates, &sweep.settings);
        let mut last = None;
        let mut doubts = Vec::new();
        while let Step::Run(planned) = sweep.next(last.as_ref()) {
            let is_random = planned.place.coordinates[0].label == "random";
            let ended = trial(&planned, if is_random { 1e8 } else { factor * 1e8 });
            let found = sweep.doubts(&ended);
            assert!(found.is_empty() || !is_random);
            doubts.extend(found);
            last = Some(ended);
        }
        assert_eq!(doubts.len(), 2 * found, "{factor}: {doubts:?}");
        // Nor is it the best then, and what it is left out for is said.
        let said = sweep.so_far().sentences;
        assert_eq!(said[0].starts_with("The best is payload random, "), found == 1, "{said:?}");
        let left_out =
            said.iter().any(|one| one.starts_with("Not counted are 2 points: data that"));
        assert_eq!(left_out, found == 1, "{said:?}");
        for one in doubts {
            assert_eq!(
                (one.code, one.severity),
                ("repeating-data-faster", crate::verdict::Severity::Void)
            );
            assert!(one.evidence.contains("2.00 times as fast"), "{}", one.evidence);
        }
    }
}
