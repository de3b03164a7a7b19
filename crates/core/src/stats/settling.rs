//! Whether a series has settled: warm-up truncation, steady state, trend.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::t_95;

/// SNIA's measurement window: this many rounds.
pub const ROUNDS: usize = 5;

/// The largest difference of two rounds, as a share of their mean.
pub const RANGE_MAX: f64 = 0.2;

/// The most that the best-fit line may rise or fall over the rounds, as a share of their mean.
pub const EXCURSION_MAX: f64 = 0.1;

/// Observations that MSER-5 takes together.
const MSER_BATCH: usize = 5;

/// Fewer observations than this cannot show a warm-up.
pub const MSER_MIN: usize = 4 * MSER_BATCH;

/// How much of a series belongs to the warm-up.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WarmUp {
    /// The number of observations to leave out at the start.
    pub truncate: usize,
    /// Whether the rest looks settled: the minimum is not at the last place of the search, half of
    /// the series.
    pub settled: bool,
    /// The statistic at its minimum: the sum of squares over the squared number of groups.
    pub statistic: f64,
    /// The mean of the rest.
    pub mean: f64,
}

/// The end of the warm-up, by MSER-5 (White, Cobb and Spratt, "A comparison of five steady-state
/// truncation heuristics for simulation", 2000): groups of five observations, and the number d of
/// groups to leave out, at most half of them, for which the sum of squared deviations of the rest
/// over the square of their number is least. Meant for means over 100 ms.
///
/// None for fewer than twenty observations. Observations after the last whole group are ignored.
pub fn mser5(series: &[f64]) -> Option<WarmUp> {
    let groups: Vec<f64> = series
        .chunks_exact(MSER_BATCH)
        .map(|group| group.iter().sum::<f64>() / MSER_BATCH as f64)
        .collect();
    if series.len() < MSER_MIN || groups.iter().any(|value| !value.is_finite()) {
        return None;
    }
    let last = groups.len() / 2;
    let rests = rests(&groups);
    let mut best = (0, rests[0]);
    for (truncate, &candidate) in rests.iter().enumerate().take(last + 1).skip(1) {
        // Only a clearly smaller value counts: rounding must not cut a constant series.
        if candidate.0 < best.1.0 * (1.0 - 1e-9) {
            best = (truncate, candidate);
        }
    }
    let (truncate, (statistic, mean)) = best;
    Some(WarmUp { truncate: truncate * MSER_BATCH, settled: truncate < last, statistic, mean })
}

/// For each group the sum of squares over the squared number of groups, and the mean, from it to the
/// last: in one pass from the end (Welford, 1962), because a day has 17,280 groups.
fn rests(groups: &[f64]) -> Vec<(f64, f64)> {
    let (mut mean, mut squares) = (0.0, 0.0);
    let mut rests = vec![(0.0, 0.0); groups.len()];
    for (count, (rest, value)) in (1u32..).zip(rests.iter_mut().zip(groups).rev()) {
        let count = f64::from(count);
        let deviation = value - mean;
        mean += deviation / count;
        squares += deviation * (value - mean);
        *rest = (squares / (count * count), mean);
    }
    rests
}

/// A straight line through a series, by least squares.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Trend {
    /// The change from one observation to the next.
    pub slope: f64,
    /// Half of the slope's 95 % confidence interval; it treats the deviations from the line as
    /// independent. Absent for two observations.
    pub slope_half_width: Option<f64>,
    /// The line at the first observation.
    pub first: f64,
    /// The line at the last observation.
    pub last: f64,
}

impl Trend {
    /// Whether zero is outside the slope's confidence interval.
    pub fn is_significant(&self) -> bool {
        self.slope_half_width.is_some_and(|half_width| self.slope.abs() > half_width)
    }
}

/// The straight line that fits the series best; none for fewer than two observations.
pub fn linear_trend(series: &[f64]) -> Option<Trend> {
    if series.len() < 2 || series.iter().any(|value| !value.is_finite()) {
        return None;
    }
    let count = series.len() as f64;
    let center = (count - 1.0) / 2.0;
    let mean = series.iter().sum::<f64>() / count;
    let offsets = || series.iter().enumerate().map(|(k, value)| (k as f64 - center, value));
    let spread: f64 = offsets().map(|(x, _)| x * x).sum();
    let slope = offsets().map(|(x, value)| x * (value - mean)).sum::<f64>() / spread;
    let residual: f64 = offsets().map(|(x, value)| (value - mean - slope * x).powi(2)).sum();
    let freedom = series.len() - 2;
    let slope_half_width = match freedom {
        0 => None,
        _ => t_95(freedom).map(|t| t * (residual / freedom as f64 / spread).sqrt()),
    };
    let (first, last) = (mean - slope * center, mean + slope * center);
    Some(Trend { slope, slope_half_width, first, last })
}

/// The means of [`ROUNDS`] contiguous parts of a series, of nearly the same length; none for a
/// shorter series.
pub fn rounds(series: &[f64]) -> Option<[f64; ROUNDS]> {
    if series.len() < ROUNDS {
        return None;
    }
    let edge = |k: usize| k * series.len() / ROUNDS;
    Some(std::array::from_fn(|k| {
        let round = &series[edge(k)..edge(k + 1)];
        round.iter().sum::<f64>() / round.len() as f64
    }))
}

/// The figures of the steady-state rule.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SteadyState {
    /// The mean of the rounds.
    pub mean: f64,
    /// The difference of the largest and the smallest round.
    pub range: f64,
    /// How far the best-fit line rises or falls from the first round to the last: |slope| x 4.
    pub excursion: f64,
}

/// The steady-state rule of the SNIA Solid State Storage Performance Test Specification 2.0.2
/// over its five rounds: max - min at most 20 % of the mean, and the excursion of the best-fit line
/// at most 10 % of it. Judges the last [`ROUNDS`] values; none for fewer.
pub fn steady_state(rounds: &[f64]) -> Option<SteadyState> {
    let first = rounds.len().checked_sub(ROUNDS)?;
    let rounds = &rounds[first..];
    let trend = linear_trend(rounds)?;
    let largest = rounds.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let smallest = rounds.iter().copied().fold(f64::INFINITY, f64::min);
    Some(SteadyState {
        mean: rounds.iter().sum::<f64>() / ROUNDS as f64,
        range: largest - smallest,
        excursion: trend.slope.abs() * (ROUNDS - 1) as f64,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SplitMix64;
    use proptest::prelude::*;

    #[test]
    fn a_warm_up_is_cut_where_it_ends() {
        let mut chance = SplitMix64(1);
        let series: Vec<f64> = (0..200)
            .map(|k| if k < 30 { 200.0 - 3.0 * f64::from(k) } else { 100.0 } + chance.normal())
            .collect();
        let warm_up = mser5(&series).unwrap();
        assert!((25..=40).contains(&warm_up.truncate), "{warm_up:?}");
        assert!(warm_up.settled);
        assert!((warm_up.mean - 100.0).abs() < 1.0, "{warm_up:?}");
    }

    #[test]
    fn a_series_that_falls_all_the_time_has_not_settled() {
        let falling: Vec<f64> = (0..100).map(|k| 1000.0 / (1.0 + f64::from(k))).collect();
        let warm_up = mser5(&falling).unwrap();
        assert_eq!((warm_up.truncate, warm_up.settled), (50, false));
    }

    #[test]
    fn degenerate_series_have_no_warm_up() {
        assert_eq!(mser5(&[]), None);
        assert_eq!(mser5(&[1.0; 19]), None);
        assert_eq!(mser5(&[f64::NAN; 40]), None);
        for constant in [0.0, 0.1, 1e9] {
            let warm_up = mser5(&[constant; 60]).unwrap();
            assert_eq!((warm_up.truncate, warm_up.settled), (0, true));
        }
    }

    #[test]
    fn a_line_is_found_again() {
        let trend = linear_trend(&[1.0, 3.0, 5.0, 7.0]).unwrap();
        assert_eq!((trend.slope, trend.first, trend.last), (2.0, 1.0, 7.0));
        assert!(trend.is_significant());
        // By hand: mean 3, slope 0.5 x ((-1) x 1 + 1 x 4) ... = 1, residuals 1/3, -2/3, 1/3.
        let bent = linear_trend(&[2.0, 2.0, 4.0]).unwrap();
        assert!((bent.slope - 1.0).abs() < 1e-12);
        let half_width = bent.slope_half_width.unwrap();
        assert!((half_width - 12.706 * (2.0f64 / 3.0 / 2.0).sqrt()).abs() < 1e-3, "{half_width}");
        assert!(!bent.is_significant());
        assert_eq!(linear_trend(&[1.0]), None);
        assert_eq!(linear_trend(&[1.0, 2.0]).unwrap().slope_half_width, None);
        assert!(!linear_trend(&[0.0; 9]).unwrap().is_significant());
    }

    fn is_steady(rounds: &[f64]) -> bool {
        let state = steady_state(rounds).unwrap();
        state.range <= RANGE_MAX * state.mean && state.excursion <= EXCURSION_MAX * state.mean
    }

    #[test]
    fn the_snia_rule_has_two_bounds() {
        // Slope 2.5 a round: the excursion is 10 on a mean of 100, and just steady.
        let line = steady_state(&[95.0, 97.5, 100.0, 102.5, 105.0]).unwrap();
        assert_eq!((line.mean, line.range, line.excursion), (100.0, 10.0, 10.0));
        assert!(is_steady(&[95.0, 97.5, 100.0, 102.5, 105.0]));
        assert!(!is_steady(&[94.0, 97.0, 100.0, 103.0, 106.0]));
        // No slope, but a range of 20 or of 21.
        assert!(steady_state(&[100.0, 110.0, 90.0, 110.0, 90.0]).is_some());
        assert!(steady_state(&[100.0, 110.0, 100.0, 90.0, 100.0]).unwrap().range <= 20.0);
        assert!(!is_steady(&[100.0, 90.0, 111.0, 100.0, 99.0]));
        // Only the last five are judged.
        assert!(is_steady(&[1.0, 1.0, 100.0, 100.0, 100.0, 100.0, 100.0]));
        assert_eq!(steady_state(&[1.0; 4]), None);
        assert!(is_steady(&[0.0; 5]));
    }

    #[test]
    fn rounds_share_the_series_evenly() {
        assert_eq!(rounds(&[1.0; 4]), None);
        assert_eq!(
            rounds(&[1.0, 1.0, 2.0, 2.0, 3.0, 3.0, 4.0, 4.0, 5.0, 7.0]),
            Some([1.0, 2.0, 3.0, 4.0, 6.0])
        );
        assert_eq!(rounds(&[1.0, 2.0, 3.0, 4.0, 5.0, 7.0]), Some([1.0, 2.0, 3.0, 4.0, 6.0]));
    }

    proptest! {
        #[test]
        fn no_series_gives_nan(series in prop::collection::vec(0.0f64..1e12, 0..120)) {
            if let Some(warm_up) = mser5(&series) {
                prop_assert!(warm_up.statistic.is_finite() && warm_up.mean.is_finite());
                prop_assert!(warm_up.truncate <= series.len() / 2);
            }
            if let Some(state) = steady_state(&series) {
                prop_assert!(state.mean.is_finite() && state.excursion.is_finite());
            }
            if let Some(trend) = linear_trend(&series) {
                prop_assert!(trend.slope.is_finite() && trend.first.is_finite());
            }
        }
    }
}
