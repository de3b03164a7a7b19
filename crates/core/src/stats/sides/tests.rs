//! What the figures of groups of trials are, and each of the answers.

use super::*;
use crate::measure::Histogram;
use crate::units::Bytes;

/// A trial of a second with a number of I/Os of 4 KiB of each of these times.
fn trial(times: &[(u64, u64)]) -> Sample {
    let mut service_time = Histogram::default();
    times.iter().for_each(|(value, count)| service_time.record_many(*value, *count));
    let bytes = Bytes(4096 * service_time.count());
    Sample {
        flow: Flow { bytes, service_time, response_time: None },
        window: Span::from_secs(1),
        cpu: Some(Span(1000 * times.iter().map(|(_, count)| count).sum::<u64>())),
    }
}

fn refs(samples: &[Sample]) -> Vec<&Sample> {
    samples.iter().collect()
}

/// Trials with these numbers of I/Os.
fn with(counts: &[u64]) -> Vec<Sample> {
    counts.iter().map(|count| trial(&[(100_000, *count)])).collect()
}

fn outcome(figure: Figure, a: &[Sample], b: &[Sample], design: Design) -> Outcome {
    let sides = difference(figure, &refs(a), &refs(b), design);
    decide(&[sides.difference], Criterion::default())[0].unwrap().outcome
}

const P99: Figure = Figure::Quantile(Quantile(0.99));

#[test]
fn the_figure_of_a_group_is_that_of_its_merged_trials() {
    let group = [trial(&[(100, 900), (200, 100)]), trial(&[(200, 3000)])];
    let of = |figure: Figure| figure.of(&refs(&group));
    assert_eq!(of(Figure::Iops), Some(2000.0));
    assert_eq!(of(Figure::Bandwidth), Some(2000.0 * 4096.0));
    // 900 of 4000 at 100 ns: the median of the second trial, and the mean of all I/Os.
    assert_eq!(of(Figure::Quantile(Quantile(0.5))), Some(200.0));
    assert_eq!(of(Figure::Quantile(Quantile(0.2))), Some(100.0));
    assert_eq!(of(Figure::Mean), Some(177.5));
    assert_eq!(of(Figure::CpuPerIo), Some(1000.0));
}

#[test]
fn a_figure_that_cannot_be_told_is_none() {
    assert_eq!(Figure::Iops.of(&[]), None);
    assert_eq!(Figure::Mean.of(&refs(&with(&[0, 0]))), None);
    assert_eq!(Figure::Iops.of(&refs(&with(&[0]))), None);
    // Nine values beyond it in each of two trials: too few for one, enough for both.
    let tail = [trial(&[(100, 891), (900, 9)]), trial(&[(100, 891), (900, 9)])];
    assert_eq!(P99.of(&[&tail[0]]), None);
    assert_eq!(P99.of(&refs(&tail)), Some(100.0));
    let mut unknown = with(&[100, 100]);
    unknown[1].cpu = None;
    assert_eq!(Figure::CpuPerIo.of(&refs(&unknown)), None);
    let sides = difference(Figure::CpuPerIo, &refs(&unknown), &refs(&tail), Design::Separate);
    assert_eq!((sides.b.is_some(), &sides.difference), (true, &None));
    assert_eq!(decide(&[sides.difference], Criterion::default()), [None]);
}

#[test]
fn three_answers_and_one_trial() {
    let a = with(&[1000, 1010, 990, 1005]);
    let lower = with(&[900, 905, 893, 901]);
    for design in [Design::Separate, Design::Paired] {
        assert_eq!(outcome(Figure::Iops, &a, &lower, design), Outcome::Less);
        assert_eq!(outcome(Figure::Iops, &lower, &a, design), Outcome::More);
        assert_eq!(outcome(Figure::Iops, &a, &a, design), Outcome::Same);
        assert_eq!(outcome(Figure::Iops, &a, &lower[..1], design), Outcome::OneTrial);
        let restless = with(&[700, 1300, 900, 1100]);
        let undecided = outcome(Figure::Iops, &a, &restless, design);
        let Outcome::Undecided { could_have_seen, more_trials } = undecided else {
            panic!("{undecided:?}")
        };
        assert!(0.3 < could_have_seen.unwrap() && 20 < more_trials.unwrap(), "{undecided:?}");
    }
}

#[test]
fn a_difference_that_is_sure_and_within_the_margin_is_none_beyond_it() {
    let (a, b) = (with(&[1000, 1001, 999]), with(&[1020, 1021, 1019]));
    let sides = difference(Figure::Iops, &refs(&a), &refs(&b), Design::Separate);
    let decision = decide(std::slice::from_ref(&sides.difference), Criterion::default());
    let Decision { ratio, outcome } = decision[0].unwrap();
    assert!(ratio.is_more() && outcome == Outcome::Same, "{ratio:?}");
    let strict = Criterion { margin: 0.01, ..Criterion::default() };
    assert_eq!(decide(&[sides.difference], strict)[0].unwrap().outcome, Outcome::More);
}

#[test]
fn pairs_take_a_drift_out_and_leave_a_trial_without_a_partner_out() {
    let a = with(&[1000, 1100, 1200, 1300, 1400, 99_999]);
    let b = with(&[902, 989, 1081, 1168, 1261]);
    assert_eq!(outcome(Figure::Iops, &a, &b, Design::Paired), Outcome::Less);
    let sides = difference(Figure::Iops, &refs(&a), &refs(&b), Design::Paired);
    assert_eq!((sides.a, sides.difference.unwrap().trials()), (Some(1200.0), [5, 5]));
    let separate = outcome(Figure::Iops, &a[..5], &b, Design::Separate);
    assert!(matches!(separate, Outcome::Undecided { .. }), "{separate:?}");
}

#[test]
fn one_stalled_trial_among_calm_ones_decides_nothing_about_the_tail() {
    let calm = |time: u64| trial(&[(time, 990), (2 * time, 10)]);
    let a: Vec<Sample> = (0..10).map(|one| calm(100_000 + 100 * one)).collect();
    let mut b = a.clone();
    b[4] = trial(&[(100_000, 500), (50_000_000, 500)]);
    let sides = difference(P99, &refs(&a), &refs(&b), Design::Separate);
    assert!(100.0 < sides.b.unwrap() / sides.a.unwrap());
    let found = outcome(P99, &a, &b, Design::Separate);
    assert!(matches!(found, Outcome::Undecided { .. }), "{found:?}");
}

#[test]
fn a_trial_without_a_single_io_leaves_everything_open() {
    let (a, b) = (with(&[1000, 1001, 999]), with(&[1000, 0, 1000]));
    for figure in [Figure::Iops, Figure::Mean] {
        let sides = difference(figure, &refs(&a), &refs(&b), Design::Separate);
        let decision = decide(&[sides.difference], Criterion::default())[0].unwrap();
        assert_eq!((decision.ratio.low, decision.ratio.high), (0.0, f64::INFINITY));
        let nothing = Outcome::Undecided { could_have_seen: None, more_trials: None };
        assert_eq!(decision.outcome, nothing);
    }
}

#[test]
fn a_difference_of_one_bucket_is_rounding() {
    let (a, b) = (vec![trial(&[(100_000, 2000)]); 5], vec![trial(&[(100_500, 2000)]); 5]);
    let strict = Criterion { margin: 0.001, alpha: 0.05 };
    let sides = difference(P99, &refs(&a), &refs(&b), Design::Separate);
    let decision = decide(&[sides.difference], strict)[0].unwrap();
    assert!(matches!(decision.outcome, Outcome::Undecided { .. }), "{decision:?}");
}
