//! The conditions under which a result fails, such as a p99 above 2 ms.

use fathom_core::Quantile;
use fathom_core::stats::Figure;

use super::Verdict;

/// A condition under which a result fails.
#[derive(Clone, Debug, PartialEq)]
pub struct Threshold {
    /// As it was typed.
    pub typed: String,
    /// What it means.
    pub condition: Condition,
}

/// What makes a result fail.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Condition {
    /// A figure is above the bound.
    Above(Metric, f64),
    /// A figure is below the bound.
    Below(Metric, f64),
    /// The verdict is this one or a graver one.
    Verdict(Verdict),
    /// A figure of side B is shown to be worse than that of side A by more than this share: of a result
    /// with two sides alone.
    Worse(Figure, f64),
}

/// A figure of a result, of all streams and both directions together.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Metric {
    /// I/Os per second.
    Iops,
    /// Bytes per second.
    Bandwidth,
    /// The mean response time in nanoseconds.
    Mean,
    /// The longest one.
    Max,
    /// A quantile of it.
    Quantile(Quantile),
}
