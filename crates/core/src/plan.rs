//! How a point is divided among its workers. Pure, so that what each thread does is known before
//! any of them starts.

use crate::spec::{Pacing, Point, Region, Stream, Workers};
use crate::units::Rate;

/// What one worker does.
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
    /// Where it reads and writes, in turn.
    pub regions: Vec<Region>,
    /// Its part of the stream's pacing.
    pub pacing: Pacing,
    /// Its own seed.
    pub seed: u64,
}

/// The number of workers of a stream.
pub fn worker_count(stream: &Stream) -> u32 {
    match stream.workers {
        Workers::PerTarget(n) => n * stream.regions.len() as u32,
        Workers::Total(n) => n,
    }
}

/// Divides every stream of a point among its workers: queue depth as evenly as it can be, offered
/// load evenly.
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
            let (regions, sharers, share) = match stream.workers {
                Workers::Total(n) => (stream.regions.clone(), n, worker),
                Workers::PerTarget(n) => {
                    (Vec::from([stream.regions[(worker / n) as usize]]), n, worker % n)
                }
            };
            plans.push(WorkerPlan {
                stream: index as u32,
                worker,
                workers,
                sharers,
                share,
                regions,
                pacing: share_of(stream.pacing, workers, worker),
                seed: worker_seed(point.seed, index as u64, u64::from(worker)),
            });
        }
    }
    plans
}

fn share_of(pacing: Pacing, workers: u32, worker: u32) -> Pacing {
    let slots = |total: u32| total / workers + u32::from(worker < total % workers);
    match pacing {
        Pacing::Closed { queue_depth } => Pacing::Closed { queue_depth: slots(queue_depth) },
        Pacing::Open { offered_load, arrivals, queue_depth_max, realtime } => Pacing::Open {
            offered_load: Rate(offered_load.0 / f64::from(workers)),
            arrivals,
            queue_depth_max: slots(queue_depth_max),
            realtime,
        },
    }
}

/// Mixes the point's seed with the worker's place (SplitMix64's finaliser), so that neighbouring
/// seeds and neighbouring workers have unrelated offsets.
fn worker_seed(seed: u64, stream: u64, worker: u64) -> u64 {
    let mut z = seed
        .wrapping_add(stream.wrapping_mul(0xD1B5_4A32_D192_ED03))
        .wrapping_add((worker + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15));
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::{Arrivals, Pattern};
    use crate::units::{Bytes, Span};

    fn point(workers: Workers, pacing: Pacing, targets: u32) -> Point {
        let region = |target| Region { target, offset: Bytes(0), length: Bytes(1 << 20) };
        Point {
            name: "test".to_owned(),
            streams: Vec::from([Stream {
                name: "test".to_owned(),
                regions: (0..targets).map(region).collect(),
                pattern: Pattern::Random,
                block_size: Bytes(4096),
                read_share: 1.0,
                pacing,
                workers,
            }]),
            warm_up: Span(0),
            window: Span::from_secs(1),
            interval: Span::from_ms(100),
            seed: 7,
        }
    }

    #[test]
    fn queue_depth_is_divided_without_loss() {
        let plans = divide(&point(Workers::Total(3), Pacing::Closed { queue_depth: 32 }, 2));
        let depths: Vec<u32> = plans.iter().map(|p| p.pacing.queue_depth()).collect();
        assert_eq!(depths, [11, 11, 10]);
        assert!(plans.iter().all(|p| p.regions.len() == 2 && p.sharers == 3));
    }

    #[test]
    fn workers_per_target_serve_one_target_each() {
        let open = Pacing::Open {
            offered_load: Rate(1000.0),
            arrivals: Arrivals::Poisson,
            queue_depth_max: 64,
            realtime: false,
        };
        let plans = divide(&point(Workers::PerTarget(2), open, 2));
        let targets: Vec<u32> = plans.iter().map(|p| p.regions[0].target).collect();
        assert_eq!(targets, [0, 0, 1, 1]);
        assert_eq!(plans[1].share, 1);
        assert!(plans.iter().all(|p| p.regions.len() == 1 && p.pacing.queue_depth() == 16));
        let seeds: std::collections::BTreeSet<u64> = plans.iter().map(|p| p.seed).collect();
        assert_eq!(seeds.len(), 4);
    }
}
