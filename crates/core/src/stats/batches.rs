//! Half-widths from batches of contiguous intervals.
//!
//! Neighboring intervals resemble each other, and a half-width that treats them as independent is
//! far too small. The values of long enough batches are nearly independent (batch means: Conway
//! 1963; Law, Simulation Modeling and Analysis, section 9.5.3); if they are still correlated,
//! neighbors are merged.

use std::collections::BTreeMap;
use std::ops::Range;

use super::series::grouped;
use super::{Estimate, Z_95, carries, t_95};
use crate::measure::{Direction, Histogram, Stretch};
use crate::units::{Quantile, Span};

/// How many batches a series is cut into; a shorter one has one batch for each interval.
pub const BATCHES: usize = 20;

/// Fewer batches than this do not show their spread.
pub const BATCHES_MIN: usize = 4;

/// Above this lag-1 correlation of the batches, neighbors are merged.
pub const CORRELATION_MAX: f64 = 0.3;

/// A correlation above this counts as this: a few batches cannot tell it from 1.
const LEFT_MAX: f64 = 0.9;

/// The histogram's buckets are at most 1/128 of their value wide.
const RESOLUTION: f64 = 1.0 / 256.0;

/// The value of a batch, and its weight: the number of intervals that it stands for, or its length.
#[derive(Clone, Copy, Debug)]
struct Batch {
    weight: f64,
    value: f64,
}

/// The mean of a figure of the intervals (such as IOPS), with its half-width by batch means.
pub fn mean(series: &[f64]) -> Option<Estimate> {
    if series.is_empty() || series.iter().any(|value| !value.is_finite()) {
        return None;
    }
    let value = series.iter().sum::<f64>() / series.len() as f64;
    let batches = cut(series.len())
        .map(|range| {
            let weight = range.len() as f64;
            Batch { weight, value: series[range].iter().sum::<f64>() / weight }
        })
        .collect();
    let half_width = half_width(&levels(batches, |left, right| {
        let weight = left.weight + right.weight;
        let value = (left.weight * left.value + right.weight * right.value) / weight;
        Batch { weight, value }
    }));
    Some(Estimate { value, half_width })
}

/// A rate over the whole window (I/Os or bytes per second), exact, with the half-width that its
/// series gives.
pub fn rate(total: u64, window: Span, series: &[f64]) -> Option<Estimate> {
    if window == Span(0) {
        return None;
    }
    let half_width = mean(series).and_then(|mean| mean.half_width);
    Some(Estimate { value: total as f64 / window.as_secs_f64(), half_width })
}

/// A quantile of the response time of one direction or of both, in nanoseconds. See [`quantiles`].
pub fn quantile(
    whole: &Histogram,
    series: &[&Stretch],
    direction: Option<Direction>,
    quantile: Quantile,
) -> Option<Estimate> {
    quantiles(whole, series, direction, &[quantile]).pop().flatten()
}

/// Quantiles of the response time of one direction or of both, in nanoseconds.
///
/// The value is that of the whole histogram, and is withheld if the tail holds too few samples. The
/// half-width is the larger of the batches' (on the logarithm of their quantiles) and the binomial
/// one (the values at the ranks np +- 1.96 sqrt(np(1-p))), and never below the histogram's
/// resolution. It is absent if the series has fewer than [`BATCHES_MIN`] stretches: the binomial
/// one alone treats the I/Os as independent, which they are not on real devices.
///
/// `series` holds the stretches that `whole` is the sum of, of one stream or of several.
pub fn quantiles(
    whole: &Histogram,
    series: &[&Stretch],
    direction: Option<Direction>,
    quantiles: &[Quantile],
) -> Vec<Option<Estimate>> {
    let slices = grouped(series.iter().copied());
    let batches: Vec<(f64, Histogram)> = cut(slices.len())
        .map(|range| {
            let slices = &slices[range];
            (length(slices), merged(slices.iter().flat_map(|(_, slice)| slice), direction))
        })
        .collect();
    let levels = levels(batches, |left, right| {
        let mut sum = left.1.clone();
        sum.merge(&right.1);
        (left.0 + right.0, sum)
    });
    quantiles.iter().map(|&quantile| estimate(whole, &levels, quantile)).collect()
}

/// The stretches that half-widths of quantiles are computed from: each batch as one stretch of each
/// stream. [`quantiles`] gives for them what it gives for all. A caller that needs no finer
/// distributions over time keeps these.
pub fn batched(series: &[Stretch]) -> Vec<Stretch> {
    let slices = grouped(series);
    let batch = |range: Range<usize>| {
        let mut streams: BTreeMap<u32, Stretch> = BTreeMap::new();
        for stretch in slices[range].iter().flat_map(|(_, slice)| slice) {
            match streams.get_mut(&stretch.stream) {
                Some(sum) => sum.merge(stretch),
                None => drop(streams.insert(stretch.stream, (*stretch).clone())),
            }
        }
        streams.into_values()
    };
    let mut batches: Vec<Stretch> = cut(slices.len()).flat_map(batch).collect();
    batches.sort_by_key(|stretch| (stretch.start, stretch.stream));
    batches
}

/// How long some slices are together.
fn length(slices: &[(Span, Vec<&Stretch>)]) -> f64 {
    let of = |stretches: &[&Stretch]| stretches.iter().map(|one| one.length.0).max().unwrap_or(0);
    slices.iter().map(|(_, stretches)| of(stretches) as f64).sum()
}

fn merged<'a>(
    stretches: impl Iterator<Item = &'a &'a Stretch>,
    direction: Option<Direction>,
) -> Histogram {
    let mut sum = Histogram::default();
    for stretch in stretches {
        for one in Direction::BOTH {
            if direction.is_none_or(|wanted| wanted == one) {
                sum.merge_sparse(&stretch.response_time[one as usize]);
            }
        }
    }
    sum
}

fn estimate(
    whole: &Histogram,
    levels: &[Vec<(f64, Histogram)>],
    quantile: Quantile,
) -> Option<Estimate> {
    if !carries(whole, quantile) {
        return None;
    }
    let value = whole.quantile(quantile)? as f64;
    // A level with an empty batch has no quantile there: the level above, where neighbors are
    // merged, may have one.
    let logarithms: Vec<Vec<Batch>> = levels
        .iter()
        .filter_map(|batches| {
            let log = |(weight, batch): &(f64, Histogram)| {
                let value = (batch.quantile(quantile)?.max(1) as f64).ln();
                Some(Batch { weight: *weight, value })
            };
            batches.iter().map(log).collect()
        })
        .collect();
    let half_width = half_width(&logarithms).map(|logarithmic| {
        let batches = value.max(1.0) * logarithmic.exp_m1();
        batches.max(binomial(whole, quantile, value)).max(resolution(whole, value))
    });
    Some(Estimate { value, half_width })
}

/// The larger distance from the value to those at the ends of the binomial interval of its rank.
fn binomial(whole: &Histogram, quantile: Quantile, value: f64) -> f64 {
    let count = whole.count() as f64;
    let rank = count * quantile.0;
    let spread = Z_95 * (rank * (1.0 - quantile.0)).sqrt();
    let at = |rank: f64| {
        let rank = rank.clamp(1.0, count) as u64;
        whole.value_at_rank(rank).map_or(value, |value| value as f64)
    };
    (value - at((rank - spread).floor())).max(at((rank + spread).ceil()) - value)
}

/// Half a bucket, if the values differ at all.
fn resolution(whole: &Histogram, value: f64) -> f64 {
    let range = whole.max().unwrap_or(0) - whole.min().unwrap_or(0);
    match value < 256.0 {
        true => 0.0,
        false => (value * RESOLUTION).min(range as f64),
    }
}

/// Divides this many intervals into at most [`BATCHES`] contiguous batches of nearly the same
/// length.
fn cut(intervals: usize) -> impl Iterator<Item = Range<usize>> {
    let batches = intervals.min(BATCHES);
    (0..batches).map(move |k| k * intervals / batches..(k + 1) * intervals / batches)
}

/// The batches, then pairs of them, then pairs of those, while enough remain.
fn levels<T>(batches: Vec<T>, merge: impl Fn(&T, &T) -> T) -> Vec<Vec<T>> {
    let mut levels = Vec::from([batches]);
    while levels[levels.len() - 1].len() >= 2 * BATCHES_MIN {
        let finest = &levels[levels.len() - 1];
        let mut pairs: Vec<T> =
            finest.chunks_exact(2).map(|pair| merge(&pair[0], &pair[1])).collect();
        if finest.len() % 2 == 1 {
            // The odd one out joins the last pair.
            let last = pairs.len() - 1;
            pairs[last] = merge(&pairs[last], &finest[finest.len() - 1]);
        }
        levels.push(pairs);
    }
    levels
}

/// The half-width of the first level with uncorrelated batches, or of the last level.
///
/// The remaining correlation widens it: the mean of a first-order autoregressive series has (1 + r)
/// / (1 - r) times the variance that independent values would give. In simulations this raises the
/// coverage of strongly correlated series from 0.91 to 0.94 and costs independent ones 0.01 of
/// theirs.
fn half_width(levels: &[Vec<Batch>]) -> Option<f64> {
    let independent = levels.iter().find(|batches| lag_1(batches) <= CORRELATION_MAX);
    let batches = independent.or(levels.last())?;
    let left = lag_1(batches).clamp(0.0, LEFT_MAX);
    Some(t_interval(batches)? * ((1.0 + left) / (1.0 - left)).sqrt())
}

/// Student's interval for the mean of batches that stand for different numbers of intervals: the
/// deviations are weighted by them. With equal weights it is t x sd / sqrt(batches).
fn t_interval(batches: &[Batch]) -> Option<f64> {
    if batches.len() < BATCHES_MIN {
        return None;
    }
    let mean = weighted_mean(batches);
    let weights: f64 = batches.iter().map(|batch| batch.weight).sum();
    let squares: f64 = batches.iter().map(|b| b.weight * (b.value - mean).powi(2)).sum();
    let variance = squares / (batches.len() - 1) as f64 / weights;
    Some(t_95(batches.len() - 1)? * variance.sqrt())
}

fn weighted_mean(batches: &[Batch]) -> f64 {
    let weights: f64 = batches.iter().map(|batch| batch.weight).sum();
    batches.iter().map(|batch| batch.weight * batch.value).sum::<f64>() / weights
}

/// The correlation of each batch with the next; zero where they do not differ.
fn lag_1(batches: &[Batch]) -> f64 {
    if batches.len() < 2 {
        return 0.0;
    }
    let mean = batches.iter().map(|batch| batch.value).sum::<f64>() / batches.len() as f64;
    let deviation = |batch: &Batch| batch.value - mean;
    let squares: f64 = batches.iter().map(|batch| deviation(batch).powi(2)).sum();
    let products: f64 =
        batches.windows(2).map(|pair| deviation(&pair[0]) * deviation(&pair[1])).sum();
    match squares > 0.0 {
        true => products / squares,
        false => 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SplitMix64;
    use crate::units::Bytes;
    use proptest::prelude::*;

    fn half_width_of(series: &[f64]) -> Option<f64> {
        mean(series).and_then(|mean| mean.half_width)
    }

    #[test]
    fn the_mean_of_a_few_intervals_by_hand() {
        // Mean 5, sample variance 20/3, t(3) = 3.1824: 3.1824 x sqrt(20 / 3 / 4).
        let estimate = mean(&[2.0, 8.0, 6.0, 4.0]).unwrap();
        assert_eq!(estimate.value, 5.0);
        assert!((estimate.half_width.unwrap() - 4.1085).abs() < 1e-3, "{estimate:?}");
        assert_eq!(half_width_of(&[2.0, 8.0, 6.0]), None);
        assert_eq!(mean(&[]), None);
        assert_eq!(mean(&[f64::NAN; 9]), None);
    }

    #[test]
    fn forty_intervals_make_twenty_batches() {
        // Pairs of 0 and 2: every batch has the mean 1, despite the spread of the intervals.
        let series: Vec<f64> = (0..40).map(|k| f64::from(k % 2) * 2.0).collect();
        assert_eq!(mean(&series), Some(Estimate { value: 1.0, half_width: Some(0.0) }));
    }

    #[test]
    fn correlated_batches_are_merged() {
        // A slow wave: batches resemble their neighbors, so fewer and wider batches are used.
        let wave: Vec<f64> = (0..60).map(|k| (f64::from(k) / 6.0).sin()).collect();
        let naive = {
            let batches: Vec<Batch> =
                wave.iter().map(|&value| Batch { weight: 1.0, value }).collect();
            t_interval(&batches).unwrap()
        };
        assert!(half_width_of(&wave).unwrap() > 1.5 * naive);
    }

    #[test]
    fn merging_halves_until_too_few_are_left() {
        let sizes = |n: usize| -> Vec<usize> {
            levels((0..n).collect(), |left, _| *left).iter().map(Vec::len).collect()
        };
        assert_eq!(sizes(20), [20, 10, 5]);
        assert_eq!(sizes(19), [19, 9, 4]);
        assert_eq!(sizes(7), [7]);
        let weights: Vec<Vec<usize>> = levels(Vec::from([1; 9]), |left, right| left + right);
        assert_eq!(weights[1], [2, 2, 2, 3]);
    }

    #[test]
    fn constant_series_are_certain() {
        for value in [0.0, 7.0] {
            assert_eq!(mean(&[value; 30]), Some(Estimate { value, half_width: Some(0.0) }));
        }
        assert_eq!(mean(&[3.0]), Some(Estimate { value: 3.0, half_width: None }));
    }

    #[test]
    fn a_rate_is_exact_and_borrows_the_series_half_width() {
        let estimate = rate(1000, Span::from_secs(4), &[240.0, 260.0, 250.0, 250.0]).unwrap();
        assert_eq!(estimate.value, 250.0);
        assert_eq!(estimate.half_width, half_width_of(&[240.0, 260.0, 250.0, 250.0]));
        assert_eq!(rate(1, Span(0), &[]), None);
    }

    /// The share of simulated series whose interval contains the true mean, zero.
    fn coverage(runs: u64, length: usize, correlation: f64) -> f64 {
        let covered = (0..runs)
            .filter(|&seed| {
                let mut chance = SplitMix64(seed * 7919);
                let innovation = (1.0 - correlation * correlation).sqrt();
                let mut value = chance.normal();
                let series: Vec<f64> = (0..length)
                    .map(|_| {
                        value = correlation * value + innovation * chance.normal();
                        value
                    })
                    .collect();
                let estimate = mean(&series).unwrap();
                estimate.value.abs() <= estimate.half_width.unwrap()
            })
            .count();
        covered as f64 / runs as f64
    }

    #[test]
    fn the_mean_is_covered() {
        for length in [10, 25, 60, 300] {
            let independent = coverage(2000, length, 0.0);
            assert!((0.93..=0.98).contains(&independent), "{independent} of {length}");
        }
        let correlated = coverage(2000, 300, 0.8);
        assert!((0.92..=0.98).contains(&correlated), "{correlated}");
        let short = coverage(2000, 60, 0.6);
        assert!((0.90..=0.98).contains(&short), "{short}");
    }

    fn intervals(of: impl IntoIterator<Item = Vec<u64>>) -> Vec<Stretch> {
        of.into_iter()
            .enumerate()
            .map(|(second, times)| {
                let mut histogram = Histogram::default();
                times.iter().for_each(|&time| histogram.record(time));
                Stretch {
                    start: Span::from_secs(second as u64),
                    length: Span::from_secs(1),
                    bytes: [Bytes(times.len() as u64 * 4096), Bytes(0)],
                    response_time: [histogram.to_sparse(), Default::default()],
                    ..Stretch::default()
                }
            })
            .collect()
    }

    fn judged(series: &[Stretch], q: f64) -> Option<Estimate> {
        let series: Vec<&Stretch> = series.iter().collect();
        let whole = merged(series.iter(), Some(Direction::Read));
        quantile(&whole, &series, Some(Direction::Read), Quantile(q))
    }

    /// Exponential times with a scale that varies from interval to interval. The result is the
    /// share of runs whose interval contains the quantile of the whole process.
    fn quantile_coverage(q: f64, wander: f64, correlation: f64) -> f64 {
        let runs = 400;
        // The stationary quantile, from one very long run.
        let simulate = |seed: u64, length: usize, ios: usize| {
            let mut chance = SplitMix64(seed * 104_729 + 1);
            let mut state = chance.normal();
            let innovation = (1.0 - correlation * correlation).sqrt();
            intervals((0..length).map(|_| {
                state = correlation * state + innovation * chance.normal();
                let scale = 100_000.0 * (wander * state).exp();
                (0..ios).map(|_| (-chance.uniform().ln() * scale) as u64).collect()
            }))
        };
        let truth = judged(&simulate(12345, 20_000, 20), q).unwrap().value;
        let covered = (0..runs)
            .filter(|&seed| {
                let estimate = judged(&simulate(seed, 60, 40), q).unwrap();
                (estimate.value - truth).abs() <= estimate.half_width.unwrap()
            })
            .count();
        covered as f64 / runs as f64
    }

    #[test]
    fn quantiles_are_covered() {
        for q in [0.5, 0.9, 0.99] {
            let independent = quantile_coverage(q, 0.0, 0.0);
            assert!((0.93..=0.995).contains(&independent), "{independent} at {q}");
            let wandering = quantile_coverage(q, 0.2, 0.5);
            assert!((0.88..=0.995).contains(&wandering), "{wandering} at {q}");
        }
    }

    #[test]
    fn half_a_run_at_twice_the_time_is_very_uncertain() {
        // The binomial half-width of the median of 40,000 I/Os is almost zero. The batches show the
        // real uncertainty.
        let series = intervals((0..40).map(|second| {
            let base = if second % 8 < 4 { 100_000 } else { 220_000 };
            (0..1000).map(|k| base + k * 10).collect()
        }));
        let estimate = judged(&series, 0.5).unwrap();
        assert!(estimate.half_width.unwrap() > 0.15 * estimate.value, "{estimate:?}");
    }

    #[test]
    fn stretches_of_several_intervals_give_the_half_widths_of_these() {
        let mut chance = SplitMix64(7);
        let fine = intervals((0..2400).map(|_| {
            let base = 100_000.0 * (1.0 + 0.1 * chance.normal());
            (0..40).map(|k| (base * (1.0 + f64::from(k) / 40.0)) as u64).collect()
        }));
        let mut series = crate::measure::Series::new(Span::from_secs(1));
        fine.iter().for_each(|interval| series.add(interval.clone()));
        let (_, stretches) = series.finish();
        assert_eq!(stretches.len(), 600);
        for q in [0.5, 0.99] {
            assert_eq!(judged(&stretches, q), judged(&fine, q));
            assert!(judged(&fine, q).unwrap().half_width.is_some());
        }
    }

    #[test]
    fn quantiles_that_the_tail_does_not_carry_are_withheld() {
        let series = intervals((0..10).map(|_| (0..90).map(|k| 1000 + k).collect()));
        assert!(judged(&series, 0.5).unwrap().half_width.is_some());
        assert_eq!(judged(&series, 0.99), None);
        assert_eq!(judged(&[], 0.5), None);
    }

    #[test]
    fn degenerate_intervals_do_not_hurt() {
        // One interval: a value without a half-width.
        let one = intervals([Vec::from([5000; 100])]);
        assert_eq!(judged(&one, 0.5), Some(Estimate { value: 5000.0, half_width: None }));
        // Zeros and constants are certain.
        let zeros = intervals((0..30).map(|_| Vec::from([0; 10])));
        assert_eq!(judged(&zeros, 0.5), Some(Estimate { value: 0.0, half_width: Some(0.0) }));
        // Intervals in which nothing completed are merged away, or leave no half-width.
        let gaps =
            intervals((0..20).map(|k| Vec::from([900 + k; 40].split_at(40 * (k as usize % 2)).0)));
        assert!(judged(&gaps, 0.5).unwrap().half_width.is_some());
        let burst = intervals(
            (0..20).map(|k| Vec::from([900; 40].split_at(if k == 0 { 40 } else { 0 }).0)),
        );
        assert_eq!(judged(&burst, 0.5).unwrap().half_width, None);
    }

    #[test]
    fn batches_alone_give_the_half_widths_that_all_stretches_give() {
        let mut chance = SplitMix64(5);
        for length in [3, 19, 20, 21, 30, 57, 300] {
            let mut series = Vec::new();
            for stream in 0..2 {
                let times = (0..length).map(|_| {
                    let slow = 1000 + chance.draw() % 500;
                    (0..50).map(|_| slow + chance.draw() % 3000).collect()
                });
                series.extend(intervals(times).into_iter().map(|one| Stretch { stream, ..one }));
            }
            let batches = batched(&series);
            assert_eq!(batches.len(), 2 * length.min(BATCHES));
            assert!(batches.is_sorted_by_key(|one| (one.start, one.stream)));
            for stream in [None, Some(0), Some(1)] {
                let own = |all| own(all, stream);
                let (all, few) = (own(&series), own(&batches));
                let length = |of: &[&Stretch]| of.iter().map(|one| one.length.0).sum::<u64>();
                assert_eq!(length(&all), length(&few));
                let whole = merged(all.iter(), None);
                let quantile = |of| quantile(&whole, of, None, Quantile(0.9)).unwrap();
                assert_eq!(quantile(&all), quantile(&few));
            }
            // As they are: a second time changes nothing.
            assert_eq!(batched(&batches), batches);
        }
    }

    fn own(series: &[Stretch], stream: Option<u32>) -> Vec<&Stretch> {
        series.iter().filter(|one| stream.is_none_or(|stream| stream == one.stream)).collect()
    }

    #[test]
    fn both_directions_of_several_streams_are_one_distribution() {
        let mut series = intervals((0..8).map(|_| Vec::from([1000; 20])));
        let mut writes = intervals((0..8).map(|_| Vec::from([3000; 60])));
        writes.iter_mut().for_each(|interval| {
            interval.stream = 1;
            interval.response_time.swap(0, 1);
        });
        series.append(&mut writes);
        let series: Vec<&Stretch> = series.iter().collect();
        for (direction, median) in
            [(Some(Direction::Read), 1000), (Some(Direction::Write), 3000), (None, 3000)]
        {
            let whole = merged(series.iter(), direction);
            let estimate = quantile(&whole, &series, direction, Quantile(0.5)).unwrap();
            assert!((estimate.value - f64::from(median)).abs() <= 0.004 * f64::from(median));
            assert!(estimate.half_width.is_some());
        }
    }

    proptest! {
        #[test]
        fn no_series_gives_nan(series in prop::collection::vec(0.0f64..1e12, 0..90)) {
            if let Some(estimate) = mean(&series) {
                prop_assert!(estimate.value.is_finite());
                prop_assert!(estimate.half_width.is_none_or(|h| h.is_finite() && h >= 0.0));
                prop_assert_eq!(estimate.half_width.is_some(), series.len() >= BATCHES_MIN);
            }
        }

        #[test]
        fn a_half_width_scales_with_its_series(
            series in prop::collection::vec(1.0f64..1e6, 4..60), factor in 0.001f64..1000.0
        ) {
            let scaled: Vec<f64> = series.iter().map(|value| value * factor).collect();
            let (one, other) = (half_width_of(&series).unwrap(), half_width_of(&scaled).unwrap());
            prop_assert!((one * factor - other).abs() <= 1e-6 * other.max(1e-3));
        }

        #[test]
        fn no_intervals_give_nan(
            times in prop::collection::vec(
                prop::collection::vec(prop::sample::select(&[0, 1, 300, u64::MAX]), 0..30), 0..30),
            q in 0.0f64..=1.0
        ) {
            if let Some(estimate) = judged(&intervals(times), q) {
                prop_assert!(estimate.value.is_finite());
                prop_assert!(estimate.half_width.is_none_or(|h| h.is_finite() && h >= 0.0));
            }
        }
    }
}
