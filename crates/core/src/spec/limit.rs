//! When a stream is done by itself: after so many I/Os, bytes, or passes over its regions.

use std::fmt;

use super::Stream;
use crate::plan::WorkerPlan;
use crate::units::Bytes;

/// How much a stream does, all its workers together and counted from its first I/O, before it is
/// done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// So many I/Os, at least 1.
    Ios(u64),
    /// So many bytes, at least 1: it is done with the I/O that reaches them.
    Bytes(Bytes),
    /// As much as its regions hold, so many times over, at least once.
    Passes(u32),
}

/// How much one worker does. What is divided beforehand needs no agreement while it runs, and is the
/// same in every run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quota {
    /// So many I/Os.
    Ios(u64),
    /// So many bytes: it is done with the I/O that reaches them.
    Bytes(u64),
}

impl Limit {
    /// A worker's part. Where all blocks have one size, the parts of all workers make up the whole to
    /// the I/O; where sizes differ, each worker is done with the I/O that reaches its part.
    pub fn quota(self, stream: &Stream, plan: &WorkerPlan) -> Quota {
        let part = |total: u64, of: u32, nth: u32| {
            total / u64::from(of) + u64::from(u64::from(nth) < total % u64::from(of))
        };
        let of_all = |total| part(total, plan.workers, plan.worker);
        let of_regions = |total: u64| part(total, plan.sharers, plan.share);
        match (self, stream.block_sizes.only()) {
            (Self::Ios(ios), _) => Quota::Ios(of_all(ios)),
            (Self::Bytes(bytes), Some(block)) => Quota::Ios(of_all(bytes.0.div_ceil(block.0))),
            (Self::Bytes(bytes), None) => Quota::Bytes(of_all(bytes.0)),
            (Self::Passes(passes), Some(block)) => {
                let blocks: u64 = plan.regions.iter().map(|one| one.length.0 / block.0).sum();
                Quota::Ios(of_regions(blocks.saturating_mul(u64::from(passes))))
            }
            (Self::Passes(passes), None) => {
                let bytes: u64 = plan.regions.iter().map(|one| one.length.0).sum();
                Quota::Bytes(of_regions(bytes.saturating_mul(u64::from(passes))))
            }
        }
    }

    /// About how many bytes a stream moves until it is done.
    pub fn bytes(self, stream: &Stream) -> Bytes {
        match self {
            Self::Ios(ios) => {
                Bytes((ios as f64 * stream.block_sizes.mean(stream.read_share)) as u64)
            }
            Self::Bytes(bytes) => bytes,
            Self::Passes(passes) => {
                let all: u64 = stream.regions.iter().map(|region| region.length.0).sum();
                Bytes(all.saturating_mul(u64::from(passes)))
            }
        }
    }
}

impl fmt::Display for Limit {
    /// "1000 I/Os", "10 GiB", "2 passes".
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ios(1) => f.write_str("1 I/O"),
            Self::Ios(ios) => write!(f, "{ios} I/Os"),
            Self::Bytes(bytes) => write!(f, "{bytes}"),
            Self::Passes(1) => f.write_str("1 pass"),
            Self::Passes(passes) => write!(f, "{passes} passes"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::divide;
    use crate::spec::{BlockSizes, Pacing, Point, Region, Workers};
    use crate::units::Span;

    fn quotas(limit: Limit, change: impl FnOnce(&mut Stream)) -> Vec<Quota> {
        let region = |target| Region { target, offset: Bytes(0), length: Bytes(101 * 4096) };
        let mut stream = Stream {
            pacing: Pacing::Closed { queue_depth: 16 },
            workers: Workers::Total(3),
            ..Stream::reading("bounded", [0, 1].map(region).to_vec())
        };
        change(&mut stream);
        let point = Point::of(Vec::from([stream]), Span::from_secs(1));
        let quota = |plan: &WorkerPlan| limit.quota(&point.streams[0], plan);
        divide(&point).iter().map(quota).collect()
    }

    #[test]
    fn the_parts_of_all_workers_make_up_the_whole() {
        let ios = |parts: [u64; 3]| parts.map(Quota::Ios).to_vec();
        assert_eq!(quotas(Limit::Ios(1000), |_| {}), ios([334, 333, 333]));
        assert_eq!(quotas(Limit::Ios(2), |_| {}), ios([1, 1, 0]));
        assert_eq!(quotas(Limit::Bytes(Bytes(4096 * 10 + 1)), |_| {}), ios([4, 4, 3]));
        assert_eq!(quotas(Limit::Passes(1), |_| {}), ios([68, 67, 67]));
        // In zones each worker goes over its own: of 101 blocks 33, 34 and 34, twice.
        let zoned = quotas(Limit::Passes(1), |stream| stream.zones = true);
        let sum: u64 = zoned
            .iter()
            .map(|quota| match quota {
                Quota::Ios(ios) => *ios,
                Quota::Bytes(_) => 0,
            })
            .sum();
        assert_eq!(sum, 202);
        // A worker that has a target to itself goes over that one.
        let own = quotas(Limit::Passes(3), |stream| stream.workers = Workers::PerTarget(1));
        assert_eq!(own, [303, 303].map(Quota::Ios));
        let mixed = quotas(Limit::Bytes(Bytes(100)), |stream| {
            let sizes = [(Bytes(4096), 1.0), (Bytes(8192), 1.0)];
            stream.block_sizes = BlockSizes::weighted(&sizes, &sizes);
        });
        assert_eq!(mixed, [34, 33, 33].map(Quota::Bytes));
    }
}
