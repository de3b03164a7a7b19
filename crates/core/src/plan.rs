//! How a point is divided among its workers. Pure, so that the work of each thread is known before
//! any of them starts.

use crate::SplitMix64;
use crate::spec::{Flush, Limit, Loop, Point, Region, Stream, Workers};
use crate::units::Bytes;

/// The work of one worker.
#[derive(Clone, Debug, PartialEq)]
pub struct WorkerPlan {
    /// The stream's place in the point.
    pub stream: u32,
    /// The worker's place in its stream, from 0.
    pub worker: u32,
    /// How many workers the stream has: uniform arrivals are spread over them.
    pub workers: u32,
    /// How many workers share these regions with it, itself included.
    pub sharers: u32,
    /// Its place among those that share these regions, from 0: sequential starts are spread by it.
    pub share: u32,
    /// The regions that it reads and writes, one after the other.
    pub regions: Vec<Region>,
    /// The place in the stream's regions of the first of these.
    pub first_region: u32,
    /// Its part of the stream's pace.
    pub pace: Loop,
    /// When it flushes.
    pub flush: Option<Flush>,
    /// Whether it trims.
    pub trims: bool,
    /// Its own seed.
    pub seed: u64,
    /// The seed that all workers of the stream share.
    pub stream_seed: u64,
}

/// How much work one worker has. A limit that is divided beforehand needs no agreement during the
/// run, and is the same in every run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quota {
    /// This many I/Os.
    Ios(u64),
    /// This many bytes: it is done with the I/O that reaches them.
    Bytes(u64),
}

impl WorkerPlan {
    /// The worker's part of its stream's limit, if it has one. If all blocks have one size, the
    /// parts of all workers add up exactly; if sizes differ, each worker is done with the I/O that
    /// reaches its part.
    pub fn quota(&self, stream: &Stream) -> Option<Quota> {
        let part = |total: u64, of: u32, nth: u32| {
            total / u64::from(of) + u64::from(u64::from(nth) < total % u64::from(of))
        };
        let of_all = |total| part(total, self.workers, self.worker);
        let of_regions = |total: u64| part(total, self.sharers, self.share);
        let quota = match (stream.pacing.limit?, stream.block_sizes().only()) {
            (Limit::Ios(ios), _) => Quota::Ios(of_all(ios)),
            (Limit::Bytes(bytes), Some(block)) => Quota::Ios(of_all(bytes.0.div_ceil(block.0))),
            (Limit::Bytes(bytes), None) => Quota::Bytes(of_all(bytes.0)),
            (Limit::Passes(passes), Some(block)) => {
                let blocks: u64 = self.regions.iter().map(|one| one.length.0 / block.0).sum();
                Quota::Ios(of_regions(blocks.saturating_mul(u64::from(passes))))
            }
            (Limit::Passes(passes), None) => {
                let bytes: u64 = self.regions.iter().map(|one| one.length.0).sum();
                Quota::Bytes(of_regions(bytes.saturating_mul(u64::from(passes))))
            }
        };
        Some(quota)
    }
}

/// The number of workers of a stream.
pub fn worker_count(stream: &Stream) -> u32 {
    match stream.workers {
        Workers::PerTarget(n) => n * stream.regions.len() as u32,
        Workers::Total(n) => n,
    }
}

/// Divides every stream of a point among its workers: queue depth as evenly as possible, offered
/// load evenly, and with zones the regions too.
///
/// # Panics
///
/// When a stream has fewer slots of queue depth than workers, which resolving a spec rules out.
pub fn divide(point: &Point) -> Vec<WorkerPlan> {
    let mut plans = Vec::new();
    for (index, stream) in point.streams.iter().enumerate() {
        let workers = worker_count(stream);
        assert!(workers > 0 && stream.pacing.queue_depth() >= workers);
        for worker in 0..workers {
            let sharers = stream.sharers();
            let (regions, first_region, share) = match stream.workers {
                Workers::Total(_) => (stream.regions.clone(), 0, worker),
                Workers::PerTarget(n) => {
                    let region = worker / n;
                    (Vec::from([stream.regions[region as usize]]), region, worker % n)
                }
            };
            let zone = |region: &Region| zone(region, stream.alignment(), share, sharers);
            let (regions, sharers, share) = match stream.zones {
                true => (regions.iter().map(zone).collect(), 1, 0),
                false => (regions, sharers, share),
            };
            plans.push(WorkerPlan {
                stream: index as u32,
                worker,
                workers,
                sharers,
                share,
                regions,
                first_region,
                pace: stream.pacing.pace.share(workers, worker),
                flush: stream.flush,
                trims: stream.trims(),
                seed: worker_seed(point.seed, index as u64, u64::from(worker)),
                // A worker that no stream has.
                stream_seed: worker_seed(point.seed, index as u64, u64::MAX >> 1),
            });
        }
    }
    plans
}

/// The part of a region that belongs to one of several sharers. Parts are whole units of this many
/// bytes, except for the remainder at the region's end, and differ in length by at most one unit
/// (and the remainder).
pub fn zone(region: &Region, unit: Bytes, share: u32, sharers: u32) -> Region {
    let units = u128::from(region.length.0 / unit.0);
    let begin = |share: u32| (units * u128::from(share) / u128::from(sharers)) as u64 * unit.0;
    let start = begin(share);
    let end = if share + 1 == sharers { region.length.0 } else { begin(share + 1) };
    Region {
        target: region.target,
        offset: Bytes(region.offset.0 + start),
        length: Bytes(end - start),
    }
}

/// Mixes the point's seed with the worker's place (SplitMix64), so that neighbouring
/// seeds and neighbouring workers have unrelated offsets.
fn worker_seed(seed: u64, stream: u64, worker: u64) -> u64 {
    let place = stream.wrapping_mul(0xD1B5_4A32_D192_ED03);
    let worker = (worker + 1).wrapping_mul(SplitMix64::STEP);
    SplitMix64::mix(seed.wrapping_add(place).wrapping_add(worker))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::{Arrivals, BlockSizes, Pacing};
    use crate::units::{Rate, Span};

    fn point(workers: Workers, pacing: Pacing, targets: u32) -> Point {
        let region = |target| Region { target, offset: Bytes(0), length: Bytes(1 << 20) };
        Point {
            name: "test".to_owned(),
            interval: Span::from_ms(100),
            seed: 7,
            ..Point::of(
                Vec::from([Stream {
                    pacing,
                    workers,
                    ..Stream::reading("test", (0..targets).map(region).collect())
                }]),
                Span::from_secs(1),
            )
        }
    }

    #[test]
    fn queue_depth_is_divided_without_loss() {
        let plans = divide(&point(Workers::Total(3), Pacing::closed(32), 2));
        let depths: Vec<u32> = plans.iter().map(|p| p.pace.queue_depth()).collect();
        assert_eq!(depths, [11, 11, 10]);
        assert!(plans.iter().all(|p| p.regions.len() == 2 && p.sharers == 3));
    }

    #[test]
    fn workers_per_target_serve_one_target_each() {
        let open = Pacing::open(Rate(1000.0), Arrivals::Poisson, 64);
        let plans = divide(&point(Workers::PerTarget(2), open, 2));
        let targets: Vec<u32> = plans.iter().map(|p| p.regions[0].target).collect();
        assert_eq!(targets, [0, 0, 1, 1]);
        assert_eq!(plans[1].share, 1);
        assert!(plans.iter().all(|p| p.regions.len() == 1 && p.pace.queue_depth() == 16));
        assert!(plans.iter().map(|p| p.first_region).eq([0, 0, 1, 1]));
        let own = plans.iter().map(|p| p.seed);
        let seeds: std::collections::BTreeSet<u64> =
            own.chain(plans.iter().map(|p| p.stream_seed)).collect();
        assert_eq!(seeds.len(), 5, "each worker has its own, and all share one");
    }

    #[test]
    fn zones_are_whole_units_that_lie_side_by_side_and_leave_nothing_out() {
        for (workers, length, unit) in [(1, 1 << 20, 4096), (3, 1 << 20, 4096), (7, 100_000, 512)] {
            let mut point = point(Workers::Total(workers), Pacing::closed(7), 2);
            let stream = &mut point.streams[0];
            stream.zones = true;
            stream.kind_mut().align = Some(Bytes(unit));
            for region in &mut stream.regions {
                (region.offset, region.length) = (Bytes(512), Bytes(length));
            }
            let plans = divide(&point);
            for region in 0..2 {
                let mut next = 512;
                for plan in &plans {
                    let zone = plan.regions[region];
                    assert_eq!((zone.offset.0, zone.target), (next, region as u32));
                    assert!((zone.offset.0 - 512).is_multiple_of(unit));
                    assert!(zone.length.0.abs_diff(length / u64::from(workers)) < 2 * unit);
                    assert_eq!((plan.sharers, plan.share), (1, 0));
                    next += zone.length.0;
                }
                assert_eq!(next, 512 + length);
            }
        }
    }

    fn quotas(limit: Limit, change: impl FnOnce(&mut Stream)) -> Vec<Quota> {
        let region = |target| Region { target, offset: Bytes(0), length: Bytes(101 * 4096) };
        let mut stream = Stream {
            pacing: Pacing { limit: Some(limit), ..Pacing::closed(16) },
            workers: Workers::Total(3),
            ..Stream::reading("bounded", [0, 1].map(region).to_vec())
        };
        change(&mut stream);
        let point = Point::of(Vec::from([stream]), Span::from_secs(1));
        let quota = |plan: &WorkerPlan| plan.quota(&point.streams[0]);
        divide(&point).iter().filter_map(quota).collect()
    }

    #[test]
    fn the_parts_of_all_workers_make_up_the_whole() {
        let ios = |parts: [u64; 3]| parts.map(Quota::Ios).to_vec();
        assert_eq!(quotas(Limit::Ios(1000), |_| {}), ios([334, 333, 333]));
        assert_eq!(quotas(Limit::Ios(2), |_| {}), ios([1, 1, 0]));
        assert_eq!(quotas(Limit::Bytes(Bytes(4096 * 10 + 1)), |_| {}), ios([4, 4, 3]));
        assert_eq!(quotas(Limit::Passes(1), |_| {}), ios([68, 67, 67]));
        // With zones each worker covers its own zone: 33, 34 and 34 of 101 blocks, twice.
        let zoned = quotas(Limit::Passes(1), |stream| stream.zones = true);
        let sum: u64 = zoned
            .iter()
            .map(|quota| match quota {
                Quota::Ios(ios) => *ios,
                Quota::Bytes(_) => 0,
            })
            .sum();
        assert_eq!(sum, 202);
        // A worker with its own target covers that target.
        let own = quotas(Limit::Passes(3), |stream| stream.workers = Workers::PerTarget(1));
        assert_eq!(own, [303, 303].map(Quota::Ios));
        let mixed = quotas(Limit::Bytes(Bytes(100)), |stream| {
            let sizes = [(Bytes(4096), 1.0), (Bytes(8192), 1.0)];
            stream.kind_mut().block_sizes = BlockSizes::weighted(&sizes, &sizes);
        });
        assert_eq!(mixed, [34, 33, 33].map(Quota::Bytes));
    }
}
