//! Agreement with independent implementations: scipy, statsmodels and benchstat, whose results are
//! in tests/data/sides. agree.py beside them wrote those of the first two.

use super::difference::Design;
use super::{Criterion, Difference, Outcome, decide};

const STUDENT: &str = include_str!("../../../tests/data/sides/student.csv");
const HOLM: &str = include_str!("../../../tests/data/sides/holm.csv");
const BENCHSTAT: &str = include_str!("../../../tests/data/sides/benchstat.csv");

/// The lines of a table below its remark and its heading.
fn rows(table: &'static str) -> impl Iterator<Item = Vec<&'static str>> {
    table.lines().skip(2).map(|line| line.split(',').collect())
}

fn number(text: &str) -> f64 {
    text.parse().unwrap_or_else(|_| panic!("{text} is a number"))
}

fn numbers(text: &str) -> Vec<f64> {
    text.split(' ').map(number).collect()
}

fn logarithms(text: &str) -> Vec<f64> {
    numbers(text).into_iter().map(f64::ln).collect()
}

/// Of groups whose merged figures have the same ratio as the means over their trials.
fn between(a: &[f64], b: &[f64], design: Design) -> Difference {
    let mean = |of: &[f64]| of.iter().sum::<f64>() / of.len() as f64;
    Difference::new(mean(b) - mean(a), &[a.to_vec(), b.to_vec()], design)
}

#[test]
fn t_tests_intervals_and_equivalence_are_those_of_scipy_and_statsmodels() {
    let (mut count, mut same) = (0, 0);
    for row in rows(STUDENT) {
        let [design, a, b, figures @ ..] = row.as_slice() else { panic!("{row:?}") };
        let design = if *design == "paired" { Design::Paired } else { Design::Separate };
        let difference = between(&logarithms(a), &logarithms(b), design);
        let ratio = difference.interval(0.05);
        let ours = [difference.p(), difference.scatter().1, ratio.low, ratio.high];
        for (ours, theirs) in ours.iter().zip(figures) {
            let theirs = number(theirs);
            assert!(
                (ours - theirs).abs() <= 1e-6 * theirs.abs() + 1e-9,
                "{ours} {theirs}: {row:?}"
            );
        }
        // An interval of 95 % has 2.5 % on each side, the level of each one-sided test.
        let is_equivalent = number(figures[4]) <= 0.025;
        let outcome = decide(&[Some(difference)], Criterion::default())[0].unwrap().outcome;
        assert_eq!(outcome == Outcome::Same, is_equivalent, "{outcome:?}: {row:?}");
        (count, same) = (count + 1, same + u32::from(is_equivalent));
    }
    assert!(100 <= count && 10 <= same && same <= count - 10, "{same} of {count}");
}

#[test]
fn what_holm_rejects_is_what_statsmodels_rejects() {
    let (mut rejected, mut kept) = (0, 0);
    for row in rows(HOLM) {
        let p: Vec<Option<f64>> = numbers(row[0]).into_iter().map(Some).collect();
        let levels = super::decide::holm(&p, 0.05);
        for ((p, level), theirs) in p.iter().zip(levels).zip(row[1].split(' ')) {
            assert_eq!(p.unwrap() <= level, theirs == "1", "{row:?}");
            *(if theirs == "1" { &mut rejected } else { &mut kept }) += 1;
        }
    }
    assert!(10 < rejected && 10 < kept, "{rejected} {kept}");
}

/// benchstat compares medians with a rank test, so that its verdicts agree and not its figures.
#[test]
fn where_benchstat_shows_a_difference_it_is_found_and_where_it_shows_none_there_is_none() {
    for row in rows(BENCHSTAT) {
        let [name, old, new, delta] = row.as_slice() else { panic!("{row:?}") };
        let difference = between(&logarithms(old), &logarithms(new), Design::Separate);
        let decision = decide(&[Some(difference)], Criterion::default())[0].unwrap();
        let ratio = decision.ratio;
        if delta.is_empty() {
            assert!(
                ratio.may_be_nothing() && decision.outcome == Outcome::Same,
                "{name}: {ratio:?}"
            );
        } else {
            let theirs = 1.0 + number(delta) / 100.0;
            assert!(ratio.low <= theirs && theirs <= ratio.high, "{name}: {theirs} in {ratio:?}");
            let lower = theirs < 1.0;
            assert_eq!(
                decision.outcome,
                if lower { Outcome::Less } else { Outcome::More },
                "{name}"
            );
        }
    }
}
