//! E-divisive against another implementation, and its errors on series of which the truth is known.

use super::*;

/// Published series with the answers of Apache Otava 0.8.0 (its `PairDistanceCalculator` for the
/// first candidate and its Q, and `ChangePointDetector` with 200 permutations at 1 %), by the program
/// in data/e-divisive.py. "nile" is the flow of the Nile from 1871 to 1970 (Cobb, Biometrika 65,
/// 1978). "intervals" and "recovery" are from the tests of MongoDB's signal-processing-algorithms,
/// which give the same places and, for "intervals", the same Q; "steps" is from those of Otava.
const PUBLISHED: &str = include_str!("data/e-divisive.txt");

struct Published {
    name: &'static str,
    values: Vec<f64>,
    at: usize,
    q: f64,
    found: Vec<usize>,
}

fn published() -> Vec<Published> {
    let numbers = |text: &str| -> Vec<f64> {
        text.split_whitespace().map(|number| number.parse().unwrap()).collect()
    };
    let one = |line: &'static str| {
        let parts: Vec<&str> = line.split(':').collect();
        let [name, values, at, q, found] = parts[..] else { panic!("{line}") };
        Published {
            name,
            values: numbers(values),
            at: at.trim().parse().unwrap(),
            q: q.trim().parse().unwrap(),
            found: numbers(found).into_iter().map(|place| place as usize).collect(),
        }
    };
    PUBLISHED.lines().filter(|line| !line.starts_with('#')).map(one).collect()
}

#[test]
fn the_first_candidate_is_that_of_another_implementation() {
    let all = published();
    assert_eq!(all.len(), 6);
    for one in all {
        let found = best(&one.values, 1, &mut Room::default()).unwrap();
        assert_eq!(found.at, one.at, "{}", one.name);
        assert!((found.q / one.q - 1.0).abs() < 1e-9, "{}: {} and {}", one.name, found.q, one.q);
    }
}

#[test]
fn the_changes_are_those_of_another_implementation() {
    // At the same 1 %, but with at least three values on a level.
    for one in published() {
        let places: Vec<usize> =
            places(&one.values, 0.01, SplitMix64(1)).iter().map(|place| place.0).collect();
        assert_eq!(places, one.found, "{}", one.name);
    }
}

/// Noise of a share, around 1.
fn noise(kind: usize, share: f64, chance: &mut SplitMix64) -> f64 {
    match kind {
        0 => (share * chance.normal()).exp(),
        // Skewed: never much faster, sometimes much slower.
        1 => (-share * -chance.uniform().ln()).exp(),
        // One in ten is far out.
        2 if chance.share() < 0.1 => (-10.0 * share * chance.uniform()).exp(),
        2 => (share * chance.normal()).exp(),
        // A tail without a variance.
        _ => (share * chance.normal() / chance.normal().abs().max(1e-3)).exp(),
    }
}

#[test]
fn a_series_without_a_change_seldom_has_one() {
    let mut chance = SplitMix64(19);
    for kind in 0..4 {
        let found = (0..200).filter(|&seed| {
            let figures: Vec<f64> =
                (0..30).map(|_| 1000.0 * noise(kind, 0.02, &mut chance)).collect();
            !change_points(&figures, 1, seed).is_empty()
        });
        // Two of 100, and what chance adds to four of 200 in one of 1,000 cases.
        let found = found.count();
        assert!(found <= 11, "{found} of 200 with noise {kind}");
    }
}

#[test]
fn many_series_without_a_change_have_none_together() {
    let mut chance = SplitMix64(23);
    let families = (0..20).filter(|&seed| {
        (0..20).any(|_| {
            let figures: Vec<f64> = (0..20).map(|_| noise(0, 0.02, &mut chance)).collect();
            !change_points(&figures, 20, seed).is_empty()
        })
    });
    // Without the correction one of three families would have one.
    assert!(families.count() <= 4);
}

#[test]
fn a_step_is_found_where_it_is_with_its_size() {
    let mut chance = SplitMix64(5);
    let (mut found, mut held) = (0, 0);
    for seed in 0..50 {
        let figure = |nth: usize| if nth < 25 { 1000.0 } else { 950.0 };
        let figures: Vec<f64> =
            (0..40).map(|nth| figure(nth) * noise(0, 0.015, &mut chance)).collect();
        let changes = change_points(&figures, 1, seed);
        let Some(change) = changes.iter().find(|one| one.at.abs_diff(25) <= 2) else { continue };
        found += 1;
        held += usize::from(change.ratio.low <= 0.95 && 0.95 <= change.ratio.high);
        assert!(change.ratio.is_less() && change.p <= 0.05);
    }
    assert!(46 <= found && 42 <= held, "{found} found, {held} intervals hold");
}

#[test]
fn a_change_that_is_taken_back_is_found_twice() {
    let mut chance = SplitMix64(6);
    let figure = |nth: usize| if (40..50).contains(&nth) { 880.0 } else { 1000.0 };
    let figures: Vec<f64> = (0..100).map(|nth| figure(nth) * noise(1, 0.01, &mut chance)).collect();
    let changes = change_points(&figures, 1, 7);
    assert_eq!(changes.iter().map(|one| one.at).collect::<Vec<_>>(), [40, 50]);
    assert!(changes[0].ratio.is_less() && changes[1].ratio.is_more());
}

#[test]
fn what_could_have_been_found_is_found_where_it_is() {
    let mut chance = SplitMix64(8);
    for (results, together) in [(11, 1), (13, 2), (16, 4), (24, 1), (24, 4), (80, 2), (200, 2)] {
        for kind in 0..3 {
            let (mut tested, mut found) = (0, 0);
            for seed in 0..100 {
                let mut series = |change: f64| -> Vec<f64> {
                    let level = |nth: usize| if nth < results / 2 { 0.0 } else { change };
                    let figure = |nth: usize| level(nth).exp() * noise(kind, 0.02, &mut chance);
                    (0..results).map(figure).collect()
                };
                let figures = series(0.0);
                if !change_points(&figures, together, seed).is_empty() {
                    continue;
                }
                let change = could_have_found(&figures, together).unwrap();
                tested += 1;
                let changes = change_points(&series(-change), together, seed);
                let is_there = |one: &ChangePoint| {
                    one.at.abs_diff(results / 2) <= results / 8 && one.ratio.is_less()
                };
                found += usize::from(changes.iter().any(is_there));
            }
            let what = format!("{found} of {tested}, {results} results, noise {kind}");
            assert!(90 < tested && 4 * tested <= 5 * found, "{what}");
        }
    }
}

#[test]
fn any_number_of_series_can_be_searched_together() {
    let figures: Vec<f64> = (0..30).map(|nth| if nth < 15 { 1.0 } else { 2.0 }).collect();
    for together in 1..=2000 {
        assert!(could_have_found(&figures, together).is_some());
        let (orders, allowed) = orders(ALPHA / together as f64);
        assert!(1 <= allowed && allowed <= orders / 40, "{together}: {allowed} of {orders}");
    }
    // 491 x 2 % / 491 is less than 2 % by its last digit.
    assert_eq!(change_points(&figures, 491, 1).len(), 1);
}

#[test]
fn few_results_could_not_show_any_change() {
    let even = |count: usize| Vec::from([7.0; 1000])[..count].to_vec();
    let could = |count: usize, series: usize| could_have_found(&even(count), series).is_some();
    // One in ten orders of six, one in 35 of eight, one in 126 of ten are divided like a change.
    assert!(!could(0, 1) && !could(6, 1) && !could(8, 1) && !could(10, 1) && could(11, 1));
    assert!(!could(12, 2) && could(13, 2) && !could(15, 4) && could(16, 4) && could(1000, 1000));
}

#[test]
fn nothing_changes_in_a_constant_or_a_short_series() {
    assert!(change_points(&[], 1, 1).is_empty());
    assert!(change_points(&[7.0; 100], 1, 1).is_empty());
    assert!(change_points(&[1.0, 1.0, 9.0, 9.0, 9.0], 1, 1).is_empty());
    // Of 20 orders of six values, one in ten is divided like this.
    assert!(change_points(&[1.0, 1.0, 1.0, 9.0, 9.0, 9.0], 1, 1).is_empty());
    let simulated: Vec<f64> = (0..20).map(|nth| if nth < 10 { 8.0 } else { 2.0 }).collect();
    let [change] = change_points(&simulated, 1, 1)[..] else { panic!("one change") };
    assert_eq!(change.at, 10);
    let Ratio { value, low, high } = change.ratio;
    assert!([value, low, high].iter().all(|end| (end - 0.25).abs() < 1e-12), "{change:?}");
}

#[test]
fn of_a_very_long_series_the_end_is_searched() {
    let mut figures = Vec::from([1.0; 500]);
    figures.extend([2.0; RESULTS_MAX / 2]);
    figures.extend([3.0; RESULTS_MAX / 2]);
    let places: Vec<usize> = change_points(&figures, 1, 3).iter().map(|one| one.at).collect();
    assert_eq!(places, [500 + RESULTS_MAX / 2]);
}
