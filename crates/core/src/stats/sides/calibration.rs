//! How often two sides that are alike are told apart, and two that differ are: by simulation, with
//! trials that differ more than chance within one of them explains.

use super::{Criterion, Design, Difference, Figure, Looks, Outcome, Sample, decide, difference};
use crate::SplitMix64;
use crate::measure::{Flow, Histogram};
use crate::units::{Bytes, Quantile, Span};

/// The number of simulated comparisons of a kind, and of those that may be wrong: a procedure that
/// is wrong in 1 of 20 exceeds it once in a thousand times.
const SEEDS: u64 = 100;
const WRONG_MAX: u32 = 13;

/// No difference is within it: a strict reading of what is told apart.
const STRICT: Criterion = Criterion { margin: 1e-6, alpha: 0.05 };

const FIGURES: [Figure; 6] = [
    Figure::Iops,
    Figure::Mean,
    Figure::Quantile(Quantile(0.5)),
    Figure::Quantile(Quantile(0.99)),
    Figure::Quantile(Quantile(0.999)),
    Figure::CpuPerIo,
];

/// What makes trials of one side differ.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Noise {
    /// By this standard deviation.
    Normal(f64),
    /// A few are far slower than most.
    Skewed,
    /// In one of ten, half of the I/Os take three times as long.
    Stalls,
    /// As `Normal`, and a fifth slower from the first trial to the last.
    Drift,
}

/// The times within a trial: of a queue, or all nearly the same, so that the trials' distributions do
/// not overlap.
#[derive(Clone, Copy, Debug)]
enum Shape {
    Wide,
    Narrow,
}

/// A closed loop of one I/O for a fiftieth of a second at the least, `at` this part of the session.
fn trial(chance: &mut SplitMix64, (noise, shape): (Noise, Shape), at: f64, scale: f64) -> Sample {
    let (slower, stalled) = match noise {
        Noise::Normal(deviation) => ((deviation * chance.normal()).exp(), 1.0),
        Noise::Skewed => (1.0 + 0.03 * chance.normal().exp(), 1.0),
        Noise::Drift => ((0.03 * chance.normal()).exp() * (1.0 + 0.2 * at), 1.0),
        Noise::Stalls => {
            let stalled = if chance.uniform() < 0.1 { 3.0 } else { 1.0 };
            ((0.01 * chance.normal()).exp(), stalled)
        }
    };
    let mut times = Histogram::default();
    for nth in 0..2000 {
        let time = match shape {
            Shape::Wide => -(1.0 - chance.uniform()).ln(),
            Shape::Narrow => 1.0 + 0.01 * chance.uniform(),
        };
        let stalled = if nth % 2 == 0 { stalled } else { 1.0 };
        times.record((1e5 * scale * slower * stalled * time) as u64);
    }
    Sample {
        window: Span(times.sum() as u64),
        cpu: Some(Span((4e6 * slower) as u64)),
        flow: Flow { bytes: Bytes(4096 * 2000), service_time: times, response_time: None },
    }
}

/// Two sides, of which the second takes `scale` times as long, in the order A B B A.
fn session(
    chance: &mut SplitMix64,
    how: (Noise, Shape),
    [a, b]: [usize; 2],
    scale: f64,
) -> [Vec<Sample>; 2] {
    let mut sides = [Vec::new(), Vec::new()];
    let most = a.max(b);
    for nth in 0..most {
        for turn in 0..2 {
            let side = (nth + turn) % 2;
            if nth < [a, b][side] {
                let at = (2 * nth + turn) as f64 / (2 * most) as f64;
                let scale = if side == 1 { scale } else { 1.0 };
                sides[side].push(trial(chance, how, at, scale));
            }
        }
    }
    sides
}

fn differences(sides: &[Vec<Sample>; 2], design: Design) -> Vec<Option<Difference>> {
    let [a, b] = sides.each_ref().map(|side| side.iter().collect::<Vec<&Sample>>());
    FIGURES.iter().map(|figure| difference(*figure, &a, &b, design).difference).collect()
}

fn is_found(outcome: Outcome) -> bool {
    matches!(outcome, Outcome::Less | Outcome::More)
}

#[test]
fn sides_that_are_alike_are_told_apart_in_one_of_twenty_comparisons_at_most() {
    let noises = [Noise::Normal(0.03), Noise::Skewed, Noise::Stalls, Noise::Drift];
    let sizes = [[3, 3], [5, 5], [10, 10], [20, 20], [3, 12]];
    for (noise, shape) in
        noises.into_iter().flat_map(|one| [(one, Shape::Wide), (one, Shape::Narrow)])
    {
        for size in sizes {
            let designs = [Design::Separate, Design::Paired];
            // Groups of two sizes are not interleaved, so that a drift is between them.
            let is_even = size[0] == size[1];
            let designs = if is_even { &designs[..] } else { &designs[..1] };
            if noise == Noise::Drift && !is_even {
                continue;
            }
            let (mut families, mut single) = ([0; 2], [[0; FIGURES.len()]; 2]);
            for seed in 0..SEEDS {
                let sides = session(&mut SplitMix64(seed), (noise, shape), size, 1.0);
                for (place, design) in designs.iter().enumerate() {
                    let all = differences(&sides, *design);
                    let decisions = decide(&all, STRICT);
                    families[place] +=
                        u32::from(decisions.iter().flatten().any(|one| is_found(one.outcome)));
                    for (count, one) in single[place].iter_mut().zip(&all) {
                        *count += u32::from(one.as_ref().is_some_and(|one| one.p() < 0.05));
                    }
                }
            }
            let case = format!("{noise:?} {shape:?} {size:?}: {families:?} {single:?}");
            let most = families.iter().chain(single.iter().flatten()).max();
            assert!(most <= Some(&WRONG_MAX), "{case} of {SEEDS}");
        }
    }
}

#[test]
fn a_twentieth_is_found_where_trials_scatter_by_a_seventieth() {
    for design in [Design::Separate, Design::Paired] {
        let mut found = [0; FIGURES.len()];
        for seed in 0..SEEDS {
            let how = (Noise::Normal(0.015), Shape::Narrow);
            let sides = session(&mut SplitMix64(seed), how, [10, 10], 1.05);
            let decisions = decide(&differences(&sides, design), Criterion::default());
            for (count, decision) in found.iter_mut().zip(decisions) {
                *count += u32::from(is_found(decision.unwrap().outcome));
            }
        }
        // The CPU time for an I/O is the same.
        let [of_load @ .., cpu] = found;
        assert!(of_load.iter().all(|one| SEEDS as u32 * 9 / 10 <= *one), "{design:?}: {found:?}");
        assert!(cpu <= WRONG_MAX, "{design:?}: {found:?}");
    }
}

/// A figure of trials that scatter by `deviation`.
fn scattered(chance: &mut SplitMix64, count: usize, deviation: f64) -> Vec<f64> {
    (0..count).map(|_| deviation * chance.normal()).collect()
}

fn between(a: &[f64], b: &[f64], design: Design) -> Difference {
    let mean = |of: &[f64]| of.iter().sum::<f64>() / of.len() as f64;
    Difference::new(mean(b) - mean(a), &[a.to_vec(), b.to_vec()], design)
}

fn outcome(difference: Difference, criterion: Criterion) -> Outcome {
    decide(&[Some(difference)], criterion)[0].unwrap().outcome
}

#[test]
fn what_could_have_been_seen_is_found_nine_times_of_ten() {
    for count in [4, 10] {
        let mut found = 0;
        let mut seen: Vec<f64> = Vec::new();
        let mut chance = SplitMix64(19);
        for _ in 0..2000 {
            let [a, b] = [0, 1].map(|_| scattered(&mut chance, count, 0.08));
            let difference = between(&a, &b, Design::Separate);
            seen.extend(difference.could_have_seen(0.05, 0.05f64.ln_1p()));
        }
        seen.sort_by(f64::total_cmp);
        let step = seen[seen.len() / 2].ln_1p();
        for _ in 0..2000 {
            let a = scattered(&mut chance, count, 0.08);
            let mut b = scattered(&mut chance, count, 0.08);
            b.iter_mut().for_each(|one| *one += step);
            let difference = between(&a, &b, Design::Separate);
            found += u32::from(outcome(difference, Criterion::default()) == Outcome::More);
        }
        assert!((1700..=1900).contains(&found), "{count}: {found} of 2000");
    }
}

#[test]
fn as_many_more_trials_as_it_says_decide_within_a_factor_of_two() {
    let criterion = Criterion::default();
    for (deviation, ratio) in [(0.08, 1.0f64), (0.08, 1.1), (0.04, 1.03)] {
        let (mut factors, mut chance) = (Vec::new(), SplitMix64(7));
        while factors.len() < 300 {
            let draw = |chance: &mut SplitMix64, count, step: f64| -> Vec<f64> {
                scattered(chance, count, deviation).into_iter().map(|one| one + step).collect()
            };
            let (mut a, mut b) = (draw(&mut chance, 5, 0.0), draw(&mut chance, 5, ratio.ln()));
            let Outcome::Undecided { more_trials: Some(more), .. } =
                outcome(between(&a, &b, Design::Paired), criterion)
            else {
                continue;
            };
            while matches!(
                outcome(between(&a, &b, Design::Paired), criterion),
                Outcome::Undecided { .. }
            ) {
                a.extend(draw(&mut chance, 1, 0.0));
                b.extend(draw(&mut chance, 1, ratio.ln()));
            }
            factors.push(a.len() as f64 / f64::from(5 + more));
        }
        factors.sort_by(f64::total_cmp);
        let median = factors[factors.len() / 2];
        assert!((0.5..=2.0).contains(&median), "{deviation} {ratio}: {median}");
    }
}

#[test]
fn a_comparison_that_is_looked_at_after_each_pair_is_wrong_in_one_of_twenty_at_most() {
    let (first, last) = (3, 10);
    let looks = Looks::new(0.05, (last - first + 1) as u32);
    let (mut wrong, mut early) = (0, 0);
    for seed in 0..2000 {
        let mut chance = SplitMix64(seed);
        let [a, b] = [0, 1].map(|_| scattered(&mut chance, last, 0.03));
        let stop = (first..=last).find(|count| {
            let alpha = if *count < last { looks.early() } else { looks.last() };
            let difference = between(&a[..*count], &b[..*count], Design::Paired);
            is_found(outcome(difference, Criterion { alpha, ..STRICT }))
        });
        wrong += u32::from(stop.is_some());
        // One that differs by far need not run to the end.
        let b: Vec<f64> = b.iter().map(|one| one + 0.4).collect();
        let difference = between(&a[..6], &b[..6], Design::Paired);
        early +=
            u32::from(is_found(outcome(difference, Criterion { alpha: looks.early(), ..STRICT })));
    }
    assert!(wrong <= 130, "{wrong} of 2000");
    assert!(1800 < early, "{early} of 2000");
}
