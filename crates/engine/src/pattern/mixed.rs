//! Some I/Os at random, the others each at the end of the one before it.

use fathom_core::measure::Direction;
use fathom_core::plan::WorkerPlan;
use fathom_core::spec::Stream;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use rand_xoshiro::{Xoshiro256Plus, Xoshiro256PlusPlus};

use super::grid::StartGrid;
use super::random::Draw;
use super::{ALL, Mix, RegionTurns, Request, Sizes, Source, distinct};

/// A coin for each I/O says whether it is placed at random or continues. So the lengths of
/// sequential runs are geometric. The coin for the direction is tossed only with the first I/O of a
/// run.
pub(crate) struct Mixed<D> {
    turns: RegionTurns,
    /// Of [`ALL`] equally likely values, those that mean a random I/O.
    by_chance: u64,
    coin: Xoshiro256Plus,
    mix: Mix,
    sizes: Sizes,
    grid: StartGrid,
    draw: D,
    /// How far each size advances.
    steps: Box<[u64]>,
    runs: Box<[RegionRun]>,
}

/// The end of a run in a region.
struct RegionRun {
    direction: Direction,
    /// The next offset, and the offset at which it starts again if the region ends before it.
    next: u64,
    start: u64,
    end: u64,
}

impl<D: Draw> Mixed<D> {
    /// `draw` makes the distribution over the starts of each region.
    pub(super) fn new(
        plan: &WorkerPlan,
        stream: &Stream,
        random_share: f64,
        draw: impl FnOnce(&StartGrid, Xoshiro256PlusPlus) -> D,
    ) -> Self {
        let grid = StartGrid::new(plan, stream);
        let mut draw = draw(&grid, Xoshiro256PlusPlus::seed_from_u64(plan.seed));
        let mut mix = Mix::new(stream.read_share(), plan.seed);
        let step = |&size: &u32| match stream.align() {
            Some(align) => u64::from(size).next_multiple_of(align.0),
            None => u64::from(size),
        };
        let smallest = super::Size { place: 0, bytes: 0 };
        let run = |(place, region): (usize, &fathom_core::spec::Region)| RegionRun {
            direction: mix.next(),
            // As if a random I/O had come before the first one.
            next: grid.starts(place, smallest).offset(draw.place(place)),
            start: region.offset.0,
            end: region.offset.0 + region.length.0,
        };
        let runs = plan.regions.iter().enumerate().map(run).collect();
        Self {
            turns: RegionTurns::new(plan, stream),
            by_chance: (random_share * ALL as f64) as u64,
            coin: Xoshiro256Plus::seed_from_u64(plan.seed ^ 0x7275_6e73),
            mix,
            sizes: Sizes::new(&stream.block_sizes(), plan.seed),
            steps: distinct(&stream.block_sizes()).iter().map(step).collect(),
            grid,
            draw,
            runs,
        }
    }
}

impl<D: Draw> Source for Mixed<D> {
    fn draw(&mut self, into: &mut [Request]) {
        for request in into {
            let (region, target) = self.turns.next();
            let run = &mut self.runs[region];
            let by_chance = self.coin.next_u64() >> 1 < self.by_chance;
            if by_chance {
                run.direction = self.mix.next();
            }
            let size = self.sizes.toss(run.direction);
            let offset = if by_chance {
                self.grid.starts(region, size).offset(self.draw.place(region))
            } else if run.next + u64::from(size.bytes) <= run.end {
                run.next
            } else {
                run.start
            };
            run.next = offset + self.steps[size.place];
            *request = Request::new(offset, size.bytes, target, region, run.direction);
        }
    }
}
