//! The figures of a disk over a whole watch.

use fathom_core::Quantile;
use fathom_core::measure::{Direction, Histogram};
use fathom_core::watch::CountedFlow;

use super::carried;
use crate::watched::WatchedDisk;

/// The figures of the reads or the writes of a disk, or of both together, over a whole watch.
#[derive(Clone, Debug)]
pub struct DiskFigures {
    /// Requests per second.
    pub iops: f64,
    /// Bytes per second.
    pub bandwidth: f64,
    /// The mean response time in nanoseconds: of the events, or else of the counters, which count whole
    /// milliseconds.
    pub mean: Option<f64>,
    /// The requests.
    pub ios: u64,
    seen: Option<f64>,
    times: Histogram,
}

impl DiskFigures {
    /// Of one direction, or of both; none if nothing was counted.
    pub fn of(disk: &WatchedDisk, direction: Option<Direction>) -> Option<Self> {
        let counted = disk.counted?;
        let chosen = |one: &Direction| direction.is_none_or(|only| only == *one);
        let mut sum = CountedFlow::default();
        let mut times = Histogram::default();
        for one in Direction::BOTH.iter().filter(|one| chosen(one)) {
            let (flow, observed) = match one {
                Direction::Read => (&counted.reads, disk.observed.as_ref().map(|it| &it.reads)),
                Direction::Write => (&counted.writes, disk.observed.as_ref().map(|it| &it.writes)),
            };
            sum.add(flow);
            if let Some(observed) = observed {
                times.merge(&observed.response_time);
            }
        }
        Some(Self {
            iops: counted.per_second(sum.ios),
            bandwidth: counted.per_second(sum.bytes.0),
            mean: times.mean().or_else(|| sum.mean_time()),
            ios: sum.ios,
            seen: disk.observed.as_ref().and_then(|observed| counted.seen_by(observed)),
            times,
        })
    }

    /// The share of the disk's requests whose times events showed; none if they showed no time.
    pub fn seen(&self) -> Option<f64> {
        self.seen.filter(|_| 0 < self.times.count())
    }

    /// A percentile of the response times; none if fewer than ten are above it.
    pub fn quantile(&self, quantile: Quantile) -> Option<f64> {
        carried(&self.times, quantile).map(|ns| ns as f64)
    }

    /// The longest response time; none without events.
    pub fn longest(&self) -> Option<f64> {
        self.times.max().map(|ns| ns as f64)
    }
}
