//! The work of all threads in each interval of a trial: I/Os per second and service times.

use std::collections::BTreeMap;

use fathom_core::Span;
use fathom_core::measure::{self, Direction, Histogram};

use crate::document::Trial;

/// IOPS of an interval, by direction: I/Os of the interval over its full length, although the last
/// one of an interrupted run may be shorter.
pub type Iops = [f64; 2];

/// The IOPS of all threads in each interval of this length.
pub fn series(trial: &Trial, bucket: Span) -> Vec<Iops> {
    if let Some(buckets) = &trial.buckets {
        let iops = |ios: &u64| *ios as f64 / bucket.as_secs_f64();
        let both = buckets.reads.iter().zip(&buckets.writes);
        return both.map(|(reads, writes)| [iops(reads), iops(writes)]).collect();
    }
    let mut buckets: BTreeMap<u64, Iops> = BTreeMap::new();
    for interval in trial.intervals() {
        // A worker that could not report each interval by itself reported several at once.
        let several = (interval.length.0 / bucket.0).max(1);
        for place in 0..several {
            let at = interval.start.0 / bucket.0 + place;
            let sums = buckets.entry(at).or_default();
            for (sum, ios) in sums.iter_mut().zip(interval.ios) {
                *sum += ios as f64 / several as f64 / bucket.as_secs_f64();
            }
        }
    }
    let last = buckets.keys().next_back().map_or(0, |last| last + 1);
    (0..last).map(|at| buckets.get(&at).copied().unwrap_or_default()).collect()
}

/// The service times of an interval, in nanoseconds.
#[derive(Clone, Debug, Default)]
pub struct BucketTimes {
    pub min: u64,
    pub max: u64,
    pub mean: f64,
    /// None if the interval's distribution was not kept.
    pub deviation: Option<f64>,
}

/// The service times of reads and of writes in each interval of this length, of all threads; empty
/// if they were not kept in this form: an open loop keeps only response times, buckets only I/Os.
pub fn bucket_times(trial: &Trial, bucket: Span) -> Vec<[BucketTimes; 2]> {
    let is_whole = |interval: &measure::Interval| interval.length <= bucket;
    if trial.buckets.is_some() || trial.is_open() || !trial.intervals().all(|one| is_whole(&one)) {
        return Vec::new();
    }
    let mut sums: BTreeMap<u64, [(u64, measure::Times); 2]> = BTreeMap::new();
    for interval in trial.intervals() {
        let both = sums.entry(interval.start.0 / bucket.0).or_default();
        for (place, (count, sum)) in both.iter_mut().enumerate() {
            let (ios, times) = (interval.ios[place], interval.times[place]);
            if ios > 0 {
                sum.min = if *count == 0 { times.min } else { sum.min.min(times.min) };
                sum.max = sum.max.max(times.max);
                sum.sum += times.sum;
                *count += ios;
            }
        }
    }
    let deviations = bucket_deviations(trial, bucket);
    let last = sums.keys().next_back().map_or(0, |last| last + 1);
    let told = |at: u64| {
        let both = sums.get(&at).copied().unwrap_or_default();
        [0, 1].map(|place| {
            let (count, times) = both[place];
            BucketTimes {
                min: times.min,
                max: times.max,
                mean: times.sum as f64 / count.max(1) as f64,
                deviation: deviations
                    .as_ref()
                    .map(|all| all.get(&at).map_or(0.0, |one| one[place])),
            }
        })
    };
    (0..last).map(told).collect()
}

/// The standard deviations by place, if the distribution of every interval was kept.
fn bucket_deviations(trial: &Trial, bucket: Span) -> Option<BTreeMap<u64, [f64; 2]>> {
    if !trial.intervals.is_empty() {
        return None;
    }
    let mut times: BTreeMap<u64, [Histogram; 2]> = BTreeMap::new();
    for stretch in trial.stretches() {
        let both = times.entry(stretch.start.0 / bucket.0).or_default();
        for (sum, own) in both.iter_mut().zip(&stretch.response_time) {
            sum.merge_sparse(own);
        }
    }
    let deviation = |times: &Histogram| times.standard_deviation().unwrap_or(0.0);
    Some(times.into_iter().map(|(at, both)| (at, both.each_ref().map(deviation))).collect())
}

/// The standard deviation of a population; 0 for an empty one.
pub fn deviation(values: &[f64]) -> f64 {
    let count = values.len().max(1) as f64;
    let mean = values.iter().sum::<f64>() / count;
    (values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / count).sqrt()
}

/// The IOPS of one direction or of both.
pub fn of(direction: Option<Direction>, series: &[Iops]) -> Vec<f64> {
    let pick = |iops: &Iops| match direction {
        Some(direction) => iops[direction as usize],
        None => iops.iter().sum(),
    };
    series.iter().map(pick).collect()
}
