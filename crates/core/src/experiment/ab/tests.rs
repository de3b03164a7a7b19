//! Comparisons of invented sides with known differences.

use super::*;
use crate::SplitMix64;
use crate::units::Bytes;
use crate::verdict::testing::Invented;

/// A comparison of two sides with the same load.
fn ab(repeats: u32) -> Ab {
    let side = |name: &str| AbSide { name: name.to_owned(), point: Invented::reads().trial.point };
    Ab::new([side("a"), side("b")], Vec::new(), AbSettings { repeats, margin: 0.05 })
}

/// The trial of a point on a device of this speed: 1 is 1000 IOPS with 1 to 2 ms each.
fn trial(planned: &Planned, speed: f64) -> Trial {
    static BASE: std::sync::OnceLock<Trial> = std::sync::OnceLock::new();
    let mut trial = BASE.get_or_init(|| Invented::reads().trial).clone();
    let flow = &mut trial.record.workers[0].cells[0].flows[0];
    *flow = crate::measure::Flow::new(false);
    for step in 0..1000 {
        let ns = 1e6 * (1.0 + f64::from(step) / 1000.0) / speed;
        flow.service_time.record_many(ns as u64, (60.0 * speed) as u64);
    }
    flow.bytes = Bytes(flow.ios() * 4096);
    Trial { point: planned.point.clone(), place: planned.place.clone(), ..trial }
}

/// Runs it with a speed for each side and pair. Returns the points that ran and the conclusion.
fn run(ab: &mut Ab, mut speed: impl FnMut(usize, u32) -> f64) -> (Vec<Planned>, Conclusion) {
    let mut ran: Vec<Planned> = Vec::new();
    let mut last = None;
    loop {
        match ab.next(last.as_ref()) {
            Step::Done(conclusion) => return (ran, conclusion),
            Step::Run(planned) => {
                let side = usize::from(planned.place.coordinates[0].label == "B");
                last = Some(trial(&planned, speed(side, planned.place.repeat)));
                ran.push(*planned);
            }
        }
    }
}

/// Normal noise with this standard deviation, around 1.
fn noise(seed: u64, deviation: f64) -> impl FnMut() -> f64 {
    let mut chance = SplitMix64(seed);
    move || {
        let uniform = || chance.draw() as f64 / 2f64.powi(64);
        let sum: f64 = std::iter::repeat_with(uniform).take(12).sum();
        1.0 + deviation * (sum - 6.0)
    }
}

fn found(conclusion: &Conclusion) -> &AbFound {
    let Some(Found::Ab(found)) = &conclusion.found else { panic!("{conclusion:?}") };
    found
}

#[test]
fn the_sides_take_turns_at_being_first() {
    let mut ab = ab(4);
    let foreseen = ab.foreseen(usize::MAX);
    assert_eq!((ab.forecast().points, ab.forecast().time), (8, Span::from_secs(8 * 65)));
    let mut noise = noise(1, 0.2);
    let (ran, _) = run(&mut ab, |_, _| noise());
    let order: String = ran.iter().map(|one| one.place.coordinates[0].label.as_str()).collect();
    assert_eq!(order, "ABBAABBA");
    let repeats: Vec<u32> = ran.iter().map(|one| one.place.repeat).collect();
    assert_eq!(repeats, [0, 0, 1, 1, 2, 2, 3, 3]);
    let seeds: std::collections::BTreeSet<u64> = ran.iter().map(|one| one.point.seed).collect();
    assert_eq!((seeds.len(), ab.forecast()), (8, Forecast::default()));
    assert!(foreseen.iter().map(|one| &one.planned).eq(&ran[1..]));
}

#[test]
fn a_difference_of_ten_percent_is_found_and_ends_it_early() {
    for seed in 0..20 {
        let mut noise = noise(seed, 0.01);
        let (ran, conclusion) = run(&mut ab(20), |side, pair| {
            // A drift of a tenth over the whole is in both.
            let drift = 1.0 - 0.005 * f64::from(pair);
            [1.0, 0.9][side] * drift * noise()
        });
        let found = found(&conclusion);
        assert!(found.ended_early && ran.len() < 30, "{} trials", ran.len());
        assert_eq!(found.pairs as usize * 2, ran.len());
        let iops = &found.figures[0];
        let ratio = iops.ratio.unwrap();
        assert!(ratio.low < 0.9 && 0.9 < ratio.high && ratio.high < 1.0, "{ratio:?}");
        assert_eq!((iops.figure.as_str(), iops.answer), ("iops", SideAnswer::Worse));
        let p99 = found.figures.iter().find(|one| one.figure == "p99").unwrap();
        assert_eq!(p99.answer, SideAnswer::Worse);
        let [answer, sides, pairs] = conclusion.sentences.as_slice() else {
            panic!("{:?}", conclusion.sentences)
        };
        assert!(answer.starts_with("B is slower than A: IOPS ") && answer.contains(" lower ("));
        assert!(answer.contains("p99 ") && answer.contains(" longer"), "{answer}");
        assert_eq!(sides, "A is a, B is b.");
        assert!(
            pairs.starts_with("It ended after ") && pairs.contains(" of 20 at most"),
            "{pairs}"
        );
    }
}

#[test]
fn sides_that_are_alike_are_told_apart_in_few_comparisons() {
    let mut alarms = 0;
    for seed in 0..100 {
        let mut noise = noise(1000 + seed, 0.03);
        let (_, conclusion) = run(&mut ab(8), |_, _| noise());
        let differs =
            |one: &ComparedFigure| matches!(one.answer, SideAnswer::Worse | SideAnswer::Better);
        alarms += u32::from(found(&conclusion).figures.iter().any(differs));
    }
    assert!(alarms <= 5, "{alarms}");
}

#[test]
fn sides_that_are_alike_are_said_to_be_if_their_trials_agree() {
    let mut noise = noise(3, 0.004);
    let (ran, conclusion) = run(&mut ab(20), |_, _| noise());
    let first = &conclusion.sentences[0];
    assert!(
        first.starts_with("There is no difference beyond 5 % between A and B: IOPS "),
        "{first}"
    );
    assert!(found(&conclusion).ended_early && ran.len() < 20, "{}", ran.len());
    assert!(found(&conclusion).figures.iter().all(|one| one.answer == SideAnswer::Same));
    assert!(!found(&conclusion).is_undecided());
}

#[test]
fn few_trials_that_scatter_decide_nothing_and_tell_how_many_would() {
    let speeds = [[1.0, 0.95], [1.04, 1.02], [0.98, 0.95]];
    let (ran, conclusion) = run(&mut ab(3), |side, pair| speeds[pair as usize][side]);
    assert_eq!(ran.len(), 6);
    let found = found(&conclusion);
    assert!(!found.ended_early);
    let iops = &found.figures[0];
    assert_eq!(iops.answer, SideAnswer::Undecided);
    let more = iops.more_pairs.unwrap();
    assert!(0 < more && iops.could_have_seen.unwrap() > 0.03);
    let [answer, .., last] = conclusion.sentences.as_slice() else { panic!() };
    assert!(found.is_undecided());
    let most = found.figures.iter().filter_map(|one| one.more_pairs).max().unwrap();
    // The difference that was measured, of the figures that matter most, and what would decide.
    assert!(answer.starts_with("Undecided: B against A: IOPS 2.8 % lower (14 "), "{answer}");
    assert!(answer.contains(" higher), p99 3"), "{answer}");
    assert!(!answer.contains("mean") && !answer.contains("p50"), "{answer}");
    assert!(answer.ends_with(&format!("; about {most} more pairs would decide.")), "{answer}");
    assert!(last.starts_with(&format!("About {most} more pairs would decide")), "{last}");
    assert!(last.ends_with(&format!("--repeats {}.", 3 + most)), "{last}");
}

#[test]
fn a_void_trial_takes_its_partner_with_it() {
    let mut ab = ab(4);
    let mut last = None;
    while let Step::Run(planned) = ab.next(last.as_ref()) {
        let is_void = (planned.place.repeat, &*planned.place.coordinates[0].label) == (1, "B");
        // Its figure would change the answer.
        let speed = if is_void { 9.0 } else { 1.0 };
        last = Some(Trial { is_void, ..trial(&planned, speed) });
    }
    let Conclusion { sentences, found: Some(Found::Ab(found)) } = ab.so_far() else { panic!() };
    assert_eq!((found.pairs, found.void_pairs), (3, 1));
    assert_eq!(found.figures[0].a, found.figures[0].b);
    assert!(sentences[2].contains("1 pair is left out, because a trial of it is void"));

    let mut ab = self::ab(2);
    let mut last = None;
    while let Step::Run(planned) = ab.next(last.as_ref()) {
        last = Some(Trial { is_void: true, ..trial(&planned, 1.0) });
    }
    let Conclusion { sentences, found: Some(Found::Ab(found)) } = ab.so_far() else { panic!() };
    assert!(sentences[0].starts_with("A and B cannot be compared") && found.is_undecided());
}

#[test]
fn the_same_trials_lead_to_the_same_steps() {
    let mut draw = noise(5, 0.01);
    let speeds: Vec<[f64; 2]> = (0..20).map(|_| [draw(), 0.93 * draw()]).collect();
    let (ran, conclusion) = run(&mut ab(20), |side, pair| speeds[pair as usize][side]);
    assert!(found(&conclusion).ended_early);
    // It may have been interrupted after each trial.
    for seen in [1, 5, ran.len() - 1] {
        let mut again = ab(20);
        let mut last: Option<Trial> = None;
        for planned in &ran[..seen] {
            let Step::Run(step) = again.next(last.as_ref()) else { panic!("it goes on") };
            assert_eq!(*step, *planned);
            let side = usize::from(planned.place.coordinates[0].label == "B");
            last = Some(trial(planned, speeds[planned.place.repeat as usize][side]));
        }
        let Step::Run(step) = again.next(last.as_ref()) else { panic!("it goes on") };
        assert_eq!(*step, ran[seen]);
    }
}

#[test]
fn each_figure_is_told_in_the_direction_of_its_change() {
    let figure = |name: &str, answer, ratio: [f64; 3]| ComparedFigure {
        figure: name.to_owned(),
        a: Some(1.0),
        b: Some(1.0),
        ratio: Some(Ratio { value: ratio[0], low: ratio[1], high: ratio[2] }),
        answer,
        could_have_seen: (answer == SideAnswer::Undecided).then_some(0.08),
        more_pairs: None,
    };
    for (one, words) in [
        (figure("iops", SideAnswer::Worse, [0.9, 0.88, 0.93]), "IOPS 10 % lower (7 to 12 %)"),
        (figure("iops", SideAnswer::Better, [1.5, 1.4, 1.6]), "IOPS 50 % higher (40 to 60 %)"),
        (
            figure("p99", SideAnswer::Worse, [2.5, 2.25, 2.75]),
            "p99 2.50 times as long (2.25 to 2.75)",
        ),
        (figure("p99.9", SideAnswer::Better, [0.5, 0.5, 0.5]), "p99.9 50 % shorter"),
        (figure("mean", SideAnswer::Same, [1.0, 0.996, 1.012]), "mean -0.4 to +1.2 %"),
        (
            figure("p99", SideAnswer::Undecided, [1.0, 0.8, 1.2]),
            "p99 unchanged (20 % shorter to 20 % longer)",
        ),
        (
            figure("iops", SideAnswer::Undecided, [0.945, 0.87, 1.025]),
            "IOPS 5.5 % lower (13 % lower to 2.5 % higher)",
        ),
        (figure("iops", SideAnswer::Undecided, [0.97, 0.94, 0.99]), "IOPS 3 % lower (1 to 6 %)"),
    ] {
        assert_eq!(one.in_words(), words);
    }
}

/// A slow side has too few I/Os for the percentiles that the other one has. More pairs would not help.
#[test]
fn a_figure_that_one_side_lacks_is_not_taken_for_undecided() {
    let mut noise = noise(3, 0.004);
    let (_, conclusion) = run(&mut ab(20), |_, _| noise());
    let mut found = found(&conclusion).clone();
    let tail = found.figures.iter_mut().find(|one| one.figure == "p99.9").unwrap();
    (tail.b, tail.ratio, tail.answer) = (None, None, SideAnswer::Undecided);
    let sentences = words::sentences(&found);
    assert!(sentences[0].starts_with("There is no difference beyond 5 %"), "{sentences:?}");
    assert!(sentences[0].ends_with("; p99.9 known of one side only."), "{sentences:?}");
    assert!(sentences[2].ends_with("because every figure that both sides have was decided."));
    assert!(sentences[3].starts_with("Longer trials, with --duration, "), "{sentences:?}");
    assert!(!found.is_undecided());
    let iops = found.figures.iter_mut().find(|one| one.figure == "iops").unwrap();
    (iops.answer, iops.more_pairs) = (SideAnswer::Undecided, Some(3));
    let sentences = words::sentences(&found);
    assert!(sentences[3].starts_with("About 3 more pairs would decide"), "{sentences:?}");
    assert!(sentences[4].starts_with("Longer trials, with --duration, "), "{sentences:?}");
    assert!(found.is_undecided());
}
