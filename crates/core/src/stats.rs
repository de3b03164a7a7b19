//! Estimates: a value, its half-width, and what it rests on.

use crate::measure::{Histogram, Interval};
use crate::units::Quantile;

/// A value with its uncertainty.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The value.
    pub value: f64,
    /// Half of its 95 % confidence interval, in the same unit; absent when there is too little to
    /// tell.
    pub half_width: Option<f64>,
}

/// A quantile is only shown when at least this many values lie beyond it.
pub const TAIL_SAMPLES: u64 = 10;

/// Whether at least [`TAIL_SAMPLES`] values lie beyond the quantile.
pub fn carries(histogram: &Histogram, quantile: Quantile) -> bool {
    let beyond = histogram.count() as f64 * (1.0 - quantile.0).min(quantile.0);
    // Half a sample of slack: 1 - 0.99 is a little below 0.01 in binary.
    beyond + 0.5 >= TAIL_SAMPLES as f64
}

/// The mean of a figure of the intervals (such as IOPS), with its half-width by batch means.
pub fn mean(_series: &[f64]) -> Option<Estimate> {
    None
}

/// A quantile of the response time, with its half-width by batches of intervals.
pub fn quantile(
    _whole: &Histogram,
    _series: &[&Interval],
    _quantile: Quantile,
) -> Option<Estimate> {
    None
}
