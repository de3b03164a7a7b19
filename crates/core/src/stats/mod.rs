//! Estimates: a value, its half-width, and its basis.
//!
//! Everything here is a pure function of the measurement and returns the figures that it is based
//! on. No function returns NaN: a figure that cannot be told is `None`. The formulas and their
//! sources are in docs/method/estimates.md and docs/method/steadiness.md.

mod batches;
mod change_points;
mod changes;
pub(crate) mod compare;
mod levels;
mod record;
mod series;
mod settling;
mod sides;
mod stalls;

pub use batches::{
    BATCHES, BATCHES_MIN, CORRELATION_MAX, batched, mean, quantile, quantiles, rate,
};
pub use change_points::{ChangePoint, RESULTS_MAX, RESULTS_MIN, change_points, could_have_found};
pub use changes::Changes;
pub use compare::{Comparison, HighestLevel, Level, Ratio, UNREPEATED, contrast, levels, of_pairs};
pub use levels::{LEVEL_MIN, Noise, Plateau, SeriesPiece, plateaus};
pub use record::{bandwidth, iops, response_time};
pub use series::{
    Slice, bandwidth_series, iops_series, slices, standard_deviation, sums, usual_length,
};
pub use settling::{
    EXCURSION_MAX, MSER_MIN, RANGE_MAX, ROUNDS, SteadyState, Trend, WarmUp, linear_trend, mser5,
    rounds, steady_state,
};
pub use sides::{
    Criterion, Decision, Design, Difference, Figure, Looks, Outcome, Sample, SideBySide, decide,
    difference,
};
pub use stalls::{STALL_MIN, Stall, Stalls, stalls};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use statrs::distribution::{ContinuousCDF, StudentsT};

use crate::measure::Histogram;
use crate::units::Quantile;

/// A value with its uncertainty.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Estimate {
    /// The value.
    pub value: f64,
    /// Half of its 95 % confidence interval, in the same unit; absent if there is too little data.
    pub half_width: Option<f64>,
}

/// The normal distribution's two-sided 95 % quantile: a half-width in standard errors.
pub const Z_95: f64 = 1.96;

/// A quantile is only shown when at least this many values lie beyond it.
pub const TAIL_SAMPLES: u64 = 10;

/// Whether at least [`TAIL_SAMPLES`] values lie beyond the quantile.
pub fn carries(histogram: &Histogram, quantile: Quantile) -> bool {
    let beyond = histogram.count() as f64 * (1.0 - quantile.0).min(quantile.0);
    // Half a sample of slack: 1 - 0.99 is a little below 0.01 in binary.
    beyond + 0.5 >= TAIL_SAMPLES as f64
}

/// The two-sided 95 % quantile of Student's t with this many degrees of freedom.
pub(crate) fn t_95(degrees_of_freedom: usize) -> Option<f64> {
    let t = StudentsT::new(0.0, 1.0, degrees_of_freedom as f64).ok()?;
    Some(t.inverse_cdf(0.975))
}

/// The middle value, or the mean of the two in the middle; sorts the values. None of none.
pub fn median(values: &mut [f64]) -> Option<f64> {
    values.sort_unstable_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() {
        0 => None,
        odd if odd % 2 == 1 => Some(values[middle]),
        _ => Some(f64::midpoint(values[middle - 1], values[middle])),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn student_t_equals_the_tables() {
        for (degrees, table) in [(3, 3.1824), (4, 2.7764), (9, 2.2622), (19, 2.0930)] {
            assert!((t_95(degrees).unwrap() - table).abs() < 1e-4, "{degrees}");
        }
    }

    #[test]
    fn a_quantile_is_carried_by_ten_values_beyond_it() {
        let mut histogram = Histogram::default();
        (0..999).for_each(|value| histogram.record(value));
        assert!(carries(&histogram, Quantile(0.5)));
        assert!(!carries(&histogram, Quantile(0.999)));
        histogram.record(0);
        assert!(carries(&histogram, Quantile(0.99)));
        assert!(!carries(&Histogram::default(), Quantile(0.5)));
    }
}
