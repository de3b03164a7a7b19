//! How offsets follow each other. A new access pattern is a type here that implements [`Pattern`],
//! a variant in `fathom_core::spec::Pattern`, and a line in `run_point`'s choice.
//!
//! The hot loop takes requests in batches from a [`Source`]. So it need not be compiled anew for every
//! pattern, and what a pattern is costs one indirect call for a batch.

use fathom_core::measure::Direction;
use fathom_core::plan::WorkerPlan;
use fathom_core::spec::Region;
use rand_xoshiro::Xoshiro256Plus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

/// What an I/O will do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Request {
    /// Where, in bytes from the target's start.
    pub(crate) offset: u64,
    /// The target's place in the list of targets of the run.
    pub(crate) target: u32,
    /// The region's place in the worker's plan and the direction, together: without padding a
    /// request is copied at once.
    lane: u32,
}

impl Request {
    #[inline]
    fn new(offset: u64, target: u32, region: usize, direction: Direction) -> Self {
        Self { offset, target, lane: (region as u32) << 1 | direction as u32 }
    }

    /// The region's place in the worker's plan.
    #[cfg(test)]
    fn region(self) -> usize {
        (self.lane >> 1) as usize
    }

    /// The place of its flow in the worker's tally.
    #[inline]
    pub(crate) fn flow(self) -> usize {
        self.lane as usize
    }

    /// Whether it reads or writes.
    #[inline]
    pub(crate) fn direction(self) -> Direction {
        if self.lane & 1 == 0 { Direction::Read } else { Direction::Write }
    }
}

/// Draws the requests of a worker.
pub(crate) trait Source {
    /// The next requests. How many are drawn at once changes none of them.
    fn draw(&mut self, into: &mut [Request]);
}

/// A pattern in each of a worker's regions, taken in turn, with a mix of reads and writes.
pub(crate) struct Requests<P> {
    pattern: P,
    mix: Mix,
    targets: Box<[u32]>,
    turn: usize,
}

impl<P: Pattern> Requests<P> {
    pub(crate) fn new(plan: &WorkerPlan, pattern: P, read_share: f64) -> Self {
        Self {
            pattern,
            mix: Mix::new(read_share, plan.seed),
            targets: plan.regions.iter().map(|region| region.target).collect(),
            turn: 0,
        }
    }

    #[inline]
    fn draw_with(
        &mut self,
        into: &mut [Request],
        mut direction: impl FnMut(&mut Mix) -> Direction,
    ) {
        if let [target] = *self.targets {
            let mix = &mut self.mix;
            let request = |offset| Request::new(offset, target, 0, direction(mix));
            return self.pattern.fill(0, into, request);
        }
        for request in into {
            let region = self.turn;
            self.turn += 1;
            if self.turn == self.targets.len() {
                self.turn = 0;
            }
            let offset = self.pattern.next(region);
            *request = Request::new(offset, self.targets[region], region, direction(&mut self.mix));
        }
    }
}

impl<P: Pattern> Source for Requests<P> {
    fn draw(&mut self, into: &mut [Request]) {
        // No coin is tossed whose outcome is certain.
        match self.mix.certain() {
            Some(direction) => self.draw_with(into, |_| direction),
            None => self.draw_with(into, Mix::toss),
        }
    }
}

/// Chooses the offset of each I/O.
pub(crate) trait Pattern {
    /// The offset of the next I/O in the region with this place in the worker's plan, in bytes from
    /// the target's start.
    fn next(&mut self, region: usize) -> u64;

    /// Makes a whole batch of requests from the next offsets in one region.
    #[inline]
    fn fill(
        &mut self,
        region: usize,
        into: &mut [Request],
        mut request: impl FnMut(u64) -> Request,
    ) {
        into.iter_mut().for_each(|place| *place = request(self.next(region)));
    }
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
    random: Xoshiro256Plus,
}

impl Random {
    pub(crate) fn new(plan: &WorkerPlan, block_size: u64) -> Self {
        Self {
            block_size,
            regions: plan.regions.iter().map(|region| Blocks::of(region, block_size)).collect(),
            random: Xoshiro256Plus::seed_from_u64(plan.seed),
        }
    }
}

impl Pattern for Random {
    #[inline]
    fn next(&mut self, region: usize) -> u64 {
        uniform(self.regions[region], self.block_size, &mut self.random)
    }

    #[inline]
    fn fill(
        &mut self,
        region: usize,
        into: &mut [Request],
        mut request: impl FnMut(u64) -> Request,
    ) {
        let (blocks, block_size) = (self.regions[region], self.block_size);
        // A copy can stay in registers for the whole batch.
        let mut random = self.random.clone();
        for place in into {
            *place = request(uniform(blocks, block_size, &mut random));
        }
        self.random = random;
    }
}

#[inline]
fn uniform(blocks: Blocks, block_size: u64, random: &mut Xoshiro256Plus) -> u64 {
    // The high half of the product is uniform over the blocks to within count / 2^64, without a
    // division. It rests on the upper bits of the random number, which is what this generator is for:
    // the lowest three are linear, and would matter in a region of 2^61 blocks.
    let block = (u128::from(random.next_u64()) * u128::from(blocks.count)) >> 64;
    blocks.start + block as u64 * block_size
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

/// How many values a toss can have, so that a share of 1 is always a read.
const ALL: u64 = 1 << 63;

/// Tosses the coin for each I/O's direction, independently of its offset.
pub(crate) struct Mix {
    /// Of [`ALL`] equally likely values, those that mean a read.
    reads: u64,
    random: Xoshiro256Plus,
}

impl Mix {
    pub(crate) fn new(read_share: f64, seed: u64) -> Self {
        Self {
            reads: (read_share * ALL as f64) as u64,
            random: Xoshiro256Plus::seed_from_u64(seed ^ 0x6d69_7800),
        }
    }

    /// The direction of every I/O, where there is only one.
    fn certain(&self) -> Option<Direction> {
        match self.reads {
            0 => Some(Direction::Write),
            ALL => Some(Direction::Read),
            _ => None,
        }
    }

    #[inline]
    fn toss(&mut self) -> Direction {
        if self.random.next_u64() >> 1 < self.reads { Direction::Read } else { Direction::Write }
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
            let reads = (0..100_000).filter(|_| mix.toss() == Direction::Read).count();
            assert!((lowest..=highest).contains(&reads), "{share}: {reads}");
        }
    }

    #[test]
    fn requests_are_the_same_however_many_are_drawn_at_once() {
        let mut plan = plan(0, 1);
        plan.regions.push(Region { target: 7, offset: Bytes(1 << 20), length: Bytes(1 << 20) });
        let draw = |share: f64, at_once: &[usize]| -> Vec<Request> {
            let mut source = Requests::new(&plan, Random::new(&plan, 4096), share);
            let mut drawn = Vec::new();
            for &count in at_once {
                let mut block = vec![Request::default(); count];
                source.draw(&mut block);
                drawn.extend(block);
            }
            drawn
        };
        for share in [0.0, 0.3, 1.0] {
            let at_once = draw(share, &[120]);
            assert_eq!(draw(share, &[1; 120]), at_once);
            assert_eq!(draw(share, &[64, 7, 49]), at_once);
            let reads = at_once.iter().filter(|r| r.direction() == Direction::Read).count();
            assert!([(0.0, 0), (1.0, 120)].iter().all(|&(s, n)| share != s || reads == n));
            let regions = at_once.iter().map(|request| (request.region(), request.target));
            assert!(regions.eq([(0, 0), (1, 7)].into_iter().cycle().take(120)));
        }
    }
}
