//! What a load costs its user: of points that cannot be told from the highest, the answer names the
//! one that costs least, because a reader will use it.

use std::cmp::Ordering;

use crate::measure::Record;
use crate::spec::Point;
use crate::stats;
use crate::units::Quantile;

/// Times that differ by a smaller factor are not worth less throughput.
const STEP: f64 = 1.1;

/// The percentile of the response time that counts.
const TAIL: Quantile = Quantile(0.99);

/// What a load costs its user.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LoadCost {
    /// The most I/Os in flight in closed loops. In open loops the schedule decides how many are.
    in_flight: u64,
    /// The p99 of the response time in nanoseconds; none if too few I/Os show it.
    p99_ns: Option<f64>,
}

impl LoadCost {
    /// That of a point, with the p99 of its response time in nanoseconds.
    pub fn of(point: &Point, p99_ns: Option<f64>) -> Self {
        let closed = point.streams.iter().filter(|stream| !stream.pacing.is_open());
        let in_flight = closed.map(|stream| u64::from(stream.pacing.queue_depth())).sum();
        Self { in_flight, p99_ns }
    }

    /// Which of two costs less: the one with fewer I/Os in flight, then the one whose p99 is clearly
    /// shorter.
    pub fn compare(&self, other: &Self) -> Ordering {
        let step = |one: &Self| one.p99_ns.map_or(i64::MAX, |ns| (ns.ln() / STEP.ln()) as i64);
        self.in_flight.cmp(&other.in_flight).then(step(self).cmp(&step(other)))
    }

    /// How many times as long the longest p99 of these is; none if it is about as long or unknown.
    pub(super) fn times_as_long(&self, others: impl Iterator<Item = Self>) -> Option<f64> {
        let longest = others.filter_map(|one| one.p99_ns).reduce(f64::max)?;
        self.p99_ns.map(|own| longest / own).filter(|times| STEP < *times)
    }
}

/// The p99 of the response time of a trial in nanoseconds.
pub(super) fn p99_ns(record: &Record) -> Option<f64> {
    let whole = record.total(None);
    let times = whole.response_time();
    let known = stats::carries(times, TAIL).then(|| times.quantile(TAIL)).flatten();
    known.map(|ns| ns as f64)
}
