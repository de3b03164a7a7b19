//! What another program measured, as far as its result tells it. These numbers were not made by
//! fathom: they have no verdict and no half-widths, and the percentiles are those that were told.

use std::collections::BTreeMap;

use fathom_core::Quantile;
use fathom_core::measure::Direction;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Where results are from that another program measured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Source {
    /// The program, as it calls itself: "fio-3.33".
    pub program: String,
    /// The files that were read.
    pub files: Vec<String>,
    /// When it measured, in its own words; none where it does not say.
    pub measured: Option<String>,
    /// What it measured, by the names that it was told; empty where it does not say.
    pub targets: Vec<String>,
}

/// The jobs of another program.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct JobsFound {
    /// In their order there.
    pub jobs: Vec<Job>,
}

/// A job of another program.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Job {
    /// Its name there.
    pub name: String,
    /// What it was told to do, in that program's words: for all its jobs, and for this one.
    pub options: BTreeMap<String, String>,
    /// The error that it ended with, as a number of that program's; none where it does not say.
    pub error: Option<i64>,
    /// What it did in each direction in which it did anything.
    pub flows: Vec<JobFlow>,
}

/// I/Os of one direction of a job. What was not told is none.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct JobFlow {
    /// Which.
    pub direction: Direction,
    /// How long it went on.
    pub window_ns: Option<u64>,
    /// I/Os that completed.
    pub ios: Option<u64>,
    /// I/Os per second.
    pub iops: Option<f64>,
    /// Bytes per second.
    pub bandwidth_bytes: Option<f64>,
    /// From the submission to the completion.
    pub service_time: JobTimes,
}

/// What was told of a time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct JobTimes {
    /// How many values it is of.
    pub count: Option<u64>,
    /// The smallest.
    pub min_ns: Option<f64>,
    /// The largest.
    pub max_ns: Option<f64>,
    /// The mean.
    pub mean_ns: Option<f64>,
    /// The standard deviation.
    pub deviation_ns: Option<f64>,
    /// The quantiles that were told, each from 0 to 1 with its time in nanoseconds, rising.
    pub quantiles: Vec<(f64, f64)>,
    /// The distribution, if it was told: the middle of each bucket in nanoseconds and how many values
    /// it holds, rising.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub buckets: Vec<(u64, u64)>,
}

/// As many values have to lie beyond a quantile as in every other report.
const BEYOND: f64 = 10.0;

impl JobTimes {
    /// A quantile in nanoseconds: as it was told, or from the distribution; none where neither is
    /// known, or too few values lie beyond it.
    pub fn at(&self, quantile: Quantile) -> Option<f64> {
        let beyond = |count: u64| count as f64 * (1.0 - quantile.0);
        if self.count.is_some_and(|count| beyond(count) + 1e-6 < BEYOND) {
            return None;
        }
        let same = |told: &&(f64, f64)| (told.0 - quantile.0).abs() < 1e-9;
        let told = self.quantiles.iter().find(same).map(|told| told.1);
        told.or_else(|| self.counted_out(quantile))
    }

    fn counted_out(&self, quantile: Quantile) -> Option<f64> {
        let count: u64 = self.buckets.iter().fold(0, |sum, one| sum.saturating_add(one.1));
        let rank = (quantile.0 * count as f64).ceil().max(1.0) as u64;
        let mut seen = 0u64;
        let bucket = self.buckets.iter().find(|(_, held)| {
            seen = seen.saturating_add(*held);
            rank <= seen
        });
        bucket.map(|(middle, _)| *middle as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quantile_is_what_was_told_or_follows_from_the_buckets_or_is_not_known() {
        let told = JobTimes {
            count: Some(1000),
            quantiles: Vec::from([(0.5, 100.0), (0.99, 300.0), (0.999, 400.0)]),
            ..JobTimes::default()
        };
        let at = |times: &JobTimes, quantile: f64| times.at(Quantile(quantile));
        assert_eq!(
            [0.5, 0.75, 0.99, 0.999].map(|q| at(&told, q)),
            [
                Some(100.0),
                None,
                Some(300.0),
                // One value lies beyond it.
                None
            ]
        );
        let buckets = Vec::from([(90, 400), (110, 350), (310, 250)]);
        let told = JobTimes { buckets, ..told };
        assert_eq!(
            [0.5, 0.75, 0.76].map(|q| at(&told, q)),
            [Some(100.0), Some(110.0), Some(310.0)]
        );
        // Without a count, the result is the stored quantile.
        let told = JobTimes { count: None, ..told };
        assert_eq!(at(&told, 0.999), Some(400.0));
    }
}
