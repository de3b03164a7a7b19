//! Comparison of two sides, each a group of trials of one workload: which has more, and whether the
//! trials can tell.
//!
//! The unit is a trial, because nothing within a trial shows how much two trials differ. The figure
//! of a side is the figure of its merged trials: a quantile of the merged distribution, never a
//! mean of quantiles. How far it may be off comes from the trials' own figures, with Student's t on
//! their logarithms: Welch's for two groups (Biometrika 34, 1947), the paired one for trials that
//! were interleaved. The method is in docs/method/comparison.md.

mod decide;
mod difference;
mod looks;

pub use decide::{Criterion, Decision, Outcome, decide};
pub use difference::{Design, Difference, SideBySide, difference};
pub use looks::Looks;

use super::carries;
use crate::measure::Flow;
use crate::units::{Quantile, Span};

/// What a comparison keeps of a trial.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// The I/Os of its window, of all streams and both directions.
    pub flow: Flow,
    /// The length of its window.
    pub window: Span,
    /// The CPU time that it took, if that is known.
    pub cpu: Option<Span>,
}

/// What is compared.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Figure {
    /// I/Os per second.
    Iops,
    /// Bytes per second.
    Bandwidth,
    /// The mean of the response time, in nanoseconds.
    Mean,
    /// A quantile of the response time, in nanoseconds.
    Quantile(Quantile),
    /// CPU time for each I/O, in nanoseconds.
    CpuPerIo,
}

impl Figure {
    /// Its name for programs and on the command line: "iops", "p99.9", "cpu".
    pub fn key(self) -> String {
        match self {
            Self::Iops => "iops".to_owned(),
            Self::Bandwidth => "bandwidth".to_owned(),
            Self::Mean => "mean".to_owned(),
            Self::Quantile(quantile) => quantile.to_string(),
            Self::CpuPerIo => "cpu".to_owned(),
        }
    }

    /// The figure of trials as if they were one: counts over the total time, means and quantiles of
    /// the merged distribution of the response time, which in a closed loop is the service time.
    ///
    /// None without a trial, if the figure is zero, if a trial lacks its CPU time, and for a
    /// quantile that the merged trials have too few I/Os for.
    pub fn of(self, samples: &[&Sample]) -> Option<f64> {
        let value = match self {
            Self::Quantile(quantile) => {
                let mut merged = Flow::default();
                samples.iter().for_each(|one| merged.merge(&one.flow));
                let times = merged.response_time();
                times.quantile(quantile).filter(|_| carries(times, quantile))? as f64
            }
            _ => self.share(samples)?,
        };
        (value.is_finite() && 0.0 < value).then_some(value)
    }

    /// A figure that is one sum over another.
    fn share(self, samples: &[&Sample]) -> Option<f64> {
        let sum = |of: &dyn Fn(&Sample) -> f64| samples.iter().map(|one| of(one)).sum::<f64>();
        let ios = sum(&|one| one.flow.ios() as f64);
        let seconds = sum(&|one| one.window.as_secs_f64());
        Some(match self {
            Self::Iops => ios / seconds,
            Self::Bandwidth => sum(&|one| one.flow.bytes.0 as f64) / seconds,
            Self::Mean => sum(&|one| one.flow.response_time().sum() as f64) / ios,
            Self::CpuPerIo => {
                let cpu: Option<Vec<f64>> =
                    samples.iter().map(|one| one.cpu.map(|cpu| cpu.0 as f64)).collect();
                cpu?.iter().sum::<f64>() / ios
            }
            Self::Quantile(_) => return None,
        })
    }

    /// The figure of one trial, however few I/Os lie beyond a quantile.
    fn of_one(self, sample: &Sample) -> Option<f64> {
        match self {
            Self::Quantile(quantile) => {
                let value = sample.flow.response_time().quantile(quantile)?;
                (0 < value).then_some(value as f64)
            }
            _ => self.of(&[sample]),
        }
    }

    /// Whether more of it is better: of throughput, and not of time.
    pub fn more_is_better(self) -> bool {
        matches!(self, Self::Iops | Self::Bandwidth)
    }

    /// The standard deviation of the rounding of a difference between two logarithms of the figure.
    /// The buckets of a distribution are 1/128 of a value wide, and all trials may be rounded alike.
    fn rounding(self) -> f64 {
        const BUCKET: f64 = 1.0 / 128.0;
        match self {
            Self::Quantile(_) => BUCKET * (2.0f64 / 12.0).sqrt(),
            _ => 0.0,
        }
    }
}

#[cfg(test)]
mod agreement;
#[cfg(test)]
mod calibration;
#[cfg(test)]
mod tests;
