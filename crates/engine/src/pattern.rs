//! How offsets follow each other. A new access pattern is a type here that implements [`Pattern`],
//! a variant in `fathom_core::spec::Pattern`, and a line in `run_point`'s choice.

use fathom_core::plan::WorkerPlan;
use fathom_core::spec::Region;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

/// Chooses the offset of each I/O.
pub(crate) trait Pattern {
    /// The offset of the next I/O in the region with this place in the worker's plan, in bytes from
    /// the target's start.
    fn next(&mut self, region: usize) -> u64;
}

/// The first block of a region and how many whole ones it has.
#[derive(Clone, Copy, Debug)]
struct Blocks {
    start: u64,
    count: u64,
}

impl Blocks {
    fn of(region: &Region, block_size: u64) -> Self {
        Self { start: region.offset.0, count: region.length.0 / block_size }
    }
}

/// Uniform over the region's blocks, with replacement.
pub(crate) struct Random {
    block_size: u64,
    regions: Vec<Blocks>,
    random: Xoshiro256PlusPlus,
}

impl Random {
    pub(crate) fn new(plan: &WorkerPlan, block_size: u64) -> Self {
        Self {
            block_size,
            regions: plan.regions.iter().map(|region| Blocks::of(region, block_size)).collect(),
            random: Xoshiro256PlusPlus::seed_from_u64(plan.seed),
        }
    }
}

impl Pattern for Random {
    #[inline]
    fn next(&mut self, region: usize) -> u64 {
        let blocks = self.regions[region];
        // The high half of the product is uniform over the blocks to within count / 2^64, without
        // a division.
        let block = (u128::from(self.random.next_u64()) * u128::from(blocks.count)) >> 64;
        blocks.start + block as u64 * self.block_size
    }
}

/// Block after block around the region. Workers that share a region start at equal distances, so
/// that they do not read each other's footsteps from a cache.
pub(crate) struct Sequential {
    block_size: u64,
    regions: Vec<(Blocks, u64)>,
}

impl Sequential {
    pub(crate) fn new(plan: &WorkerPlan, block_size: u64) -> Self {
        let begin = |region: &Region| {
            let blocks = Blocks::of(region, block_size);
            let first =
                u128::from(blocks.count) * u128::from(plan.share) / u128::from(plan.sharers);
            (blocks, first as u64)
        };
        Self { block_size, regions: plan.regions.iter().map(begin).collect() }
    }
}

impl Pattern for Sequential {
    #[inline]
    fn next(&mut self, region: usize) -> u64 {
        let (blocks, next) = &mut self.regions[region];
        let block = *next;
        *next += 1;
        if *next == blocks.count {
            *next = 0;
        }
        blocks.start + block * self.block_size
    }
}

/// Tosses the coin for each I/O's direction, independently of its offset.
pub(crate) struct Mix {
    /// Of 2^63 equally likely values, those that mean a read: so a share of 1 is always a read.
    reads: u64,
    random: Xoshiro256PlusPlus,
}

impl Mix {
    pub(crate) fn new(read_share: f64, seed: u64) -> Self {
        Self {
            reads: (read_share * (1u64 << 63) as f64) as u64,
            random: Xoshiro256PlusPlus::seed_from_u64(seed ^ 0x6d69_7800),
        }
    }

    #[inline]
    pub(crate) fn is_read(&mut self) -> bool {
        self.random.next_u64() >> 1 < self.reads
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fathom_core::Bytes;
    use fathom_core::spec::Pacing;

    fn plan(share: u32, sharers: u32) -> WorkerPlan {
        let region = Region { target: 0, offset: Bytes(8192), length: Bytes(10 * 4096 + 100) };
        WorkerPlan {
            stream: 0,
            worker: share,
            workers: sharers,
            sharers,
            share,
            regions: Vec::from([region]),
            pacing: Pacing::Closed { queue_depth: 1 },
            seed: 5,
        }
    }

    #[test]
    fn sequential_workers_start_apart_and_go_around_the_whole_blocks() {
        let mut second = Sequential::new(&plan(1, 2), 4096);
        let offsets: Vec<u64> = (0..11).map(|_| second.next(0)).collect();
        let expected: Vec<u64> =
            [5, 6, 7, 8, 9, 0, 1, 2, 3, 4, 5].iter().map(|block| 8192 + block * 4096).collect();
        assert_eq!(offsets, expected);
    }

    #[test]
    fn random_offsets_cover_the_region_evenly_and_never_leave_it() {
        let mut random = Random::new(&plan(0, 1), 4096);
        let mut hits = [0u32; 10];
        for _ in 0..100_000 {
            let offset = random.next(0) - 8192;
            assert_eq!(offset % 4096, 0);
            hits[(offset / 4096) as usize] += 1;
        }
        // Chi-squared with 9 degrees of freedom: 27.9 is the 0.1 % limit.
        let chi: f64 = hits.iter().map(|&n| (f64::from(n) - 1e4).powi(2) / 1e4).sum();
        assert!(chi < 27.9, "{hits:?}");
    }

    #[test]
    fn the_mix_is_exact_at_its_ends_and_binomial_between() {
        for (share, lowest, highest) in
            [(0.0, 0, 0), (1.0, 100_000, 100_000), (0.7, 69_400, 70_600)]
        {
            let mut mix = Mix::new(share, 3);
            let reads = (0..100_000).filter(|_| mix.is_read()).count();
            assert!((lowest..=highest).contains(&reads), "{share}: {reads}");
        }
    }
}
