//! The ceiling of the load generator on a host, as plain data, and its comparison with a trial: a
//! generator that is the bottleneck measures itself.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::measure::Histogram;
use crate::spec::BackendKind;
use crate::units::Span;

/// The target of a calibration: as little as possible behind the real loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum NullTarget {
    /// Entries that io_uring completes at once: only the cost of fathom and the ring.
    NopRing,
    /// /dev/zero through the page cache's path: the shortest path through the kernel that clears
    /// the memory of the read.
    Zeros,
}

impl NullTarget {
    /// The name in messages and in the document.
    pub fn name(self) -> &'static str {
        match self {
            Self::NopRing => "NOP ring",
            Self::Zeros => "/dev/zero",
        }
    }
}

/// The results of `fathom calibrate`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Calibration {
    /// The runs, in their order.
    pub rows: Vec<Row>,
    /// How late short sleeps end; none if that could not be measured.
    pub wake_up: Option<WakeUp>,
    /// The runs that could not be made here.
    pub left_out: Vec<LeftOut>,
}

/// One run of the engine on next to nothing: a closed loop of random reads of 4 KiB.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// The target of the reads.
    pub target: NullTarget,
    /// I/Os in flight for each worker.
    pub queue_depth: u32,
    /// Threads.
    pub workers: u32,
    /// How long.
    pub window: Span,
    /// CPU time of the workers in the window; none where other threads do their work.
    pub cpu: Option<Span>,
    /// Completed minus submitted, of every I/O.
    pub service_time: Histogram,
}

impl Row {
    /// I/Os that completed in the window.
    pub fn ios(&self) -> u64 {
        self.service_time.count()
    }
}

/// A run that could not be made, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftOut {
    /// The run.
    pub what: String,
    /// The reason.
    pub why: String,
}

/// How late short sleeps end.
#[derive(Clone, Debug, PartialEq)]
pub struct WakeUp {
    /// How long each sleep should have been.
    pub asked: Span,
    /// From the moment when each sleep should have ended to the moment when it did.
    pub late: Histogram,
}

/// The ceiling of one worker: the cost of an I/O with nothing behind the backend.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Ceiling {
    /// The backend that carried the I/Os.
    pub backend: BackendKind,
    /// The target of the I/Os.
    pub target: NullTarget,
    /// The cost at some queue depths, in rising order.
    pub costs: Vec<Cost>,
}

/// The cost of an I/O for a worker.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Cost {
    /// I/Os in flight for the worker.
    pub queue_depth: u32,
    /// CPU time of the worker for each I/O, in nanoseconds.
    pub per_io_ns: f64,
}

/// The part of a stream's load that the generator's ceiling depends on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Demand {
    /// Its workers.
    pub workers: u32,
    /// Its I/Os in flight, all workers together.
    pub queue_depth: u32,
    /// Whether a schedule starts its I/Os. Then they start one by one as they fall due, with any
    /// number in flight.
    pub open: bool,
    /// CPU time that its workers spent on each I/O, in nanoseconds, if it is known. This cost
    /// counts even if the calibration found a higher one: the CPUs may have been asleep.
    pub spent_ns: Option<f64>,
}

impl Demand {
    /// The I/Os that one of its workers can start and reap with one call.
    fn batch(self) -> u32 {
        match self.open {
            true => 1,
            false => (self.queue_depth / self.workers.max(1)).max(1),
        }
    }
}

impl Ceiling {
    /// The cost of an I/O for a worker with this many in flight; none if it was not measured.
    ///
    /// All I/Os that a call into the kernel starts and reaps share its cost, so the cost is `a + b
    /// / depth`. Between two measured depths this line gives the cost. Beyond them the nearest
    /// depth gives it, except for calls that block a thread: with more in flight the work is done
    /// in another way.
    pub fn per_io_ns(&self, queue_depth: u32) -> Option<f64> {
        let inverse = |depth: u32| 1.0 / f64::from(depth.max(1));
        let (first, last) = (self.costs.first()?, self.costs.last()?);
        if queue_depth <= first.queue_depth {
            return Some(first.per_io_ns);
        }
        if queue_depth >= last.queue_depth {
            let known = queue_depth == last.queue_depth || self.backend != BackendKind::Sync;
            return known.then_some(last.per_io_ns);
        }
        let pair = self.costs.windows(2).find(|pair| queue_depth <= pair[1].queue_depth)?;
        let (shallow, deep) = (pair[0], pair[1]);
        let range = inverse(shallow.queue_depth) - inverse(deep.queue_depth);
        let part = (inverse(queue_depth) - inverse(deep.queue_depth)) / range;
        Some(deep.per_io_ns + part * (shallow.per_io_ns - deep.per_io_ns))
    }

    /// The most I/Os per second that the workers of these streams can do together, on this many
    /// CPUs' worth of time: more workers than CPUs do no more. None if it is not known.
    pub fn iops(&self, streams: &[Demand], cpus: f64) -> Option<f64> {
        let workers: f64 = streams.iter().map(|stream| f64::from(stream.workers)).sum();
        if workers <= 0.0 || cpus <= 0.0 {
            return None;
        }
        let mut sum = 0.0;
        for stream in streams {
            let found = self.per_io_ns(stream.batch()).filter(|ns| *ns > 0.0)?;
            let spent = stream.spent_ns.filter(|ns| *ns > 0.0);
            let per_io_ns = spent.map_or(found, |spent| spent.min(found));
            sum += f64::from(stream.workers) * 1e9 / per_io_ns;
        }
        Some(sum * (cpus / workers).min(1.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ceiling(backend: BackendKind, costs: &[(u32, f64)]) -> Ceiling {
        let cost = |&(queue_depth, per_io_ns)| Cost { queue_depth, per_io_ns };
        let target = NullTarget::NopRing;
        Ceiling { backend, target, costs: costs.iter().map(cost).collect() }
    }

    fn closed(workers: u32, queue_depth: u32) -> Demand {
        Demand { workers, queue_depth, open: false, spent_ns: None }
    }

    #[test]
    fn a_batch_shares_the_cost_of_its_call() {
        // 90 ns for each I/O and 320 for each call.
        let ceiling = ceiling(BackendKind::Uring, &[(1, 410.0), (32, 100.0)]);
        for (depth, cost) in [(1, 410.0), (2, 250.0), (8, 130.0), (32, 100.0), (1000, 100.0)] {
            assert_eq!(ceiling.per_io_ns(depth).map(f64::round), Some(cost), "depth {depth}");
        }
        assert_eq!(ceiling.per_io_ns(0), Some(410.0));
    }

    #[test]
    fn three_depths_are_followed_piece_by_piece() {
        let ceiling = ceiling(BackendKind::Aio, &[(1, 400.0), (4, 220.0), (16, 100.0)]);
        for (depth, cost) in [(2, 280.0), (4, 220.0), (8, 140.0), (16, 100.0)] {
            assert_eq!(ceiling.per_io_ns(depth).map(f64::round), Some(cost), "depth {depth}");
        }
    }

    #[test]
    fn what_was_not_measured_is_not_known() {
        assert_eq!(ceiling(BackendKind::Uring, &[]).per_io_ns(1), None);
        let inline = ceiling(BackendKind::Sync, &[(1, 500.0)]);
        assert_eq!(inline.iops(&[closed(2, 2)], 4.0), Some(4e6));
        assert_eq!(inline.iops(&[closed(2, 4)], 4.0), None);
        assert_eq!(inline.iops(&[closed(2, 2), closed(1, 8)], 4.0), None);
    }

    #[test]
    fn workers_add_up_as_far_as_there_are_cpus() {
        let ceiling = ceiling(BackendKind::Uring, &[(1, 400.0), (32, 100.0)]);
        let iops = |streams: &[Demand], cpus| ceiling.iops(streams, cpus).map(f64::round);
        assert_eq!(iops(&[closed(1, 32)], 8.0), Some(1e7));
        assert_eq!(iops(&[closed(4, 128)], 8.0), Some(4e7));
        assert_eq!(iops(&[closed(4, 128)], 2.0), Some(2e7));
        assert_eq!(iops(&[closed(1, 32)], 0.5), Some(5e6));
        assert_eq!(iops(&[closed(1, 32), closed(1, 1)], 8.0), Some(12_500_000.0));
        assert_eq!(iops(&[], 8.0), None);
        assert_eq!(iops(&[closed(1, 32)], 0.0), None);
    }

    #[test]
    fn an_open_loop_starts_one_by_one_however_deep_it_may_go() {
        let ceiling = ceiling(BackendKind::Uring, &[(1, 400.0), (32, 100.0)]);
        let open = Demand { workers: 2, queue_depth: 1024, open: true, spent_ns: None };
        assert_eq!(ceiling.iops(&[open], 8.0), Some(5e6));
    }

    #[test]
    fn what_workers_did_they_can_do() {
        let ceiling = ceiling(BackendKind::Uring, &[(1, 400.0), (32, 100.0)]);
        let spent = |spent_ns| Demand { spent_ns, ..closed(1, 32) };
        assert_eq!(ceiling.iops(&[spent(Some(50.0))], 1.0), Some(2e7));
        for slower in [Some(2000.0), Some(0.0), None] {
            assert_eq!(ceiling.iops(&[spent(slower)], 1.0), Some(1e7));
        }
    }
}
