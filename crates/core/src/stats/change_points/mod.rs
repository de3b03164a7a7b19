//! Where a series of results changes its level: E-divisive with a permutation test.
//!
//! Nothing is assumed about the distribution of the results. In a series without a change every order
//! of the results is as likely as any other, so that the test errs in 2 % of such series at most,
//! however skewed the results are and whatever outliers they have. It does assume that neighboring
//! results are not alike by themselves: a slow drift shows as several steps.

mod energy;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use statrs::distribution::{Binomial, ContinuousCDF, DiscreteCDF, StudentsT};

use super::Ratio;
use crate::split_mix::SplitMix64;
use energy::{Room, best};

/// A level has at least this many results: one or two are outliers, not a level.
pub const RESULTS_MIN: usize = 3;

/// The longest series that is searched: the time grows with its square.
pub const RESULTS_MAX: usize = 1000;

/// The share of series without a change in which one is found: less than the usual 5 %, because a
/// history is searched again with every new result.
const ALPHA: f64 = 0.02;

/// Orders that a test compares with, as in the paper.
const ORDERS: usize = 199;

/// A change has to be this many times as large as one that Student's t finds in two halves that are
/// known beforehand, because the place is searched: in many results, and more in each of a few.
/// Simulated, see the tests.
const SEARCHED: [f64; 2] = [1.4, 11.0];

/// Where a series changes its level.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ChangePoint {
    /// The number of results before it: the place of the first result of the new level.
    pub at: usize,
    /// The new level divided by the one before it, with its 95 % interval: of the geometric means of
    /// the results up to the neighboring changes.
    pub ratio: Ratio,
    /// The probability that a series without this change looks as if it had one, or less.
    pub p: f64,
}

/// The changes of a series of positive figures, in their order. It is empty for a series that is
/// shorter than two levels, and only the last [`RESULTS_MAX`] results are searched.
///
/// `series` is the number of series that are searched together: with many of them, each has to be
/// the clearer, so that one in which nothing changes is found among all of them in 2 % of cases at
/// most (Bonferroni). `seed` makes the random orders repeatable.
///
/// # Panics
///
/// If a figure is not a positive number.
pub fn change_points(figures: &[f64], series: usize, seed: u64) -> Vec<ChangePoint> {
    assert!(figures.iter().all(|one| 0.0 < *one && one.is_finite()), "figures are positive");
    let skipped = figures.len().saturating_sub(RESULTS_MAX);
    // A change is by a factor.
    let logs: Vec<f64> = figures[skipped..].iter().map(|one| one.ln()).collect();
    let alpha = ALPHA / series.max(1) as f64;
    let found = places(&logs, alpha, SplitMix64(seed));
    let ends: Vec<usize> =
        [0].into_iter().chain(found.iter().map(|one| one.0)).chain([logs.len()]).collect();
    let change = |(nth, &(at, p)): (usize, &(usize, f64))| {
        let ratio = ratio(&logs[ends[nth]..at], &logs[at..ends[nth + 2]]);
        ChangePoint { at: at + skipped, ratio, p }
    };
    found.iter().enumerate().map(change).collect()
}

/// A lasting change, as the logarithm of its factor, that [`change_points`] finds in 8 of 10 series or
/// more, if it begins halfway and they are like this one, in which it found none. None if no change is
/// large enough: of so few results, every order is too likely.
///
/// ```text
/// seen  (1.4 + 11 / n) x s x sqrt(4 / n) x (t(1 - a / 2, n - 2) + t(0.9, n - 2))
/// s     the standard deviation of the logarithms of the n figures
/// a     2 % divided by the number of series
/// ```
///
/// # Panics
///
/// If a figure is not a positive number.
pub fn could_have_found(figures: &[f64], series: usize) -> Option<f64> {
    assert!(figures.iter().all(|one| 0.0 < *one && one.is_finite()), "figures are positive");
    let figures = &figures[figures.len().saturating_sub(RESULTS_MAX)..];
    let alpha = ALPHA / series.max(1) as f64;
    let count = figures.len() as f64;
    // The chance that an order divides the figures as clearly as any change, and then the chance that
    // too many of the tried orders do.
    let half = figures.len() / 2;
    let divisions: f64 = (1..=half).map(|nth| (count - half as f64) / nth as f64 + 1.0).product();
    let (orders, allowed) = orders(alpha);
    let as_clear = Binomial::new((2.0 / divisions).min(1.0), orders as u64).ok()?;
    if figures.len() < 2 * RESULTS_MIN || as_clear.cdf(allowed as u64 - 1) < 0.95 {
        return None;
    }
    let logs: Vec<f64> = figures.iter().map(|one| one.ln()).collect();
    let mean = logs.iter().sum::<f64>() / count;
    let squares: f64 = logs.iter().map(|log| (log - mean).powi(2)).sum();
    let error = (squares / (count - 1.0) * 4.0 / count).sqrt();
    let student = StudentsT::new(0.0, 1.0, count - 2.0).ok()?;
    // The lower tail, because values next to 1 are rounded.
    let searched = SEARCHED[0] + SEARCHED[1] / count;
    Some(-searched * error * (student.inverse_cdf(alpha / 2.0) + student.inverse_cdf(0.1)))
}

/// The places of the changes in order, each with its probability.
fn places(series: &[f64], alpha: f64, mut chance: SplitMix64) -> Vec<(usize, f64)> {
    let mut room = Room::default();
    let mut found: Vec<(usize, f64)> = Vec::new();
    let mut shuffled = series.to_vec();
    loop {
        let mut ends: Vec<usize> = found.iter().map(|one| one.0).chain([0, series.len()]).collect();
        ends.sort_unstable();
        let levels: Vec<(usize, usize)> = ends.windows(2).map(|pair| (pair[0], pair[1])).collect();
        let mut highest = |series: &[f64]| {
            let of = |&(start, end): &(usize, usize)| {
                let candidate = best(&series[start..end], RESULTS_MIN, &mut room)?;
                Some((start + candidate.at, candidate.q))
            };
            levels.iter().filter_map(of).max_by(|one, other| one.1.total_cmp(&other.1))
        };
        let Some((at, q)) = highest(series) else { break };
        // As in the paper, each level is shuffled by itself, and the highest of all counts.
        let (orders, allowed) = orders(alpha);
        let mut as_high = 0;
        for _ in 0..orders {
            levels.iter().for_each(|&(start, end)| shuffle(&mut shuffled[start..end], &mut chance));
            // Sums in another order differ in their last digits.
            let reached = highest(&shuffled).is_some_and(|(_, other)| q * (1.0 - 1e-9) <= other);
            as_high += usize::from(reached || q <= 0.0);
            if allowed <= as_high {
                break;
            }
        }
        if allowed <= as_high {
            break;
        }
        found.push((at, (as_high + 1) as f64 / (orders + 1) as f64));
        shuffled.copy_from_slice(series);
    }
    found.sort_by_key(|one| one.0);
    found
}

/// The orders that a test compares with, and how many of them may not reach the Q of a change.
fn orders(alpha: f64) -> (usize, usize) {
    let orders = ORDERS.max((1.0 / alpha).ceil() as usize - 1);
    // The product of a share and its reciprocal may be less than 1.
    (orders, ((alpha * (orders + 1) as f64).floor() as usize).max(1))
}

/// Puts values in a random order (Fisher and Yates).
fn shuffle(values: &mut [f64], chance: &mut SplitMix64) {
    for last in (1..values.len()).rev() {
        values.swap(last, (chance.share() * (last + 1) as f64) as usize);
    }
}

/// The ratio of two geometric means with its 95 % interval, from the logarithms of the values: by
/// Student's t with the degrees of freedom of Welch and Satterthwaite.
fn ratio(before: &[f64], after: &[f64]) -> Ratio {
    let mean = |logs: &[f64]| logs.iter().sum::<f64>() / logs.len() as f64;
    let error = |logs: &[f64]| {
        let mean = mean(logs);
        let squares: f64 = logs.iter().map(|log| (log - mean).powi(2)).sum();
        squares / (logs.len() - 1) as f64 / logs.len() as f64
    };
    let (one, other) = (error(before), error(after));
    let squared = |error: f64, logs: &[f64]| error.powi(2) / (logs.len() - 1) as f64;
    let degrees = (one + other).powi(2) / (squared(one, before) + squared(other, after));
    // Without any scatter there are no degrees of freedom either.
    let t = StudentsT::new(0.0, 1.0, degrees).map_or(0.0, |t| t.inverse_cdf(0.975));
    Ratio::of_logarithm(mean(after) - mean(before), t * (one + other).sqrt())
}

#[cfg(test)]
mod tests;
