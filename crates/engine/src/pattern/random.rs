//! Patterns in which each I/O goes to a random place.

use fathom_core::plan::WorkerPlan;
use fathom_core::spec::Stream;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use rand_xoshiro::{Xoshiro256Plus, Xoshiro256PlusPlus};

use super::grid::{StartGrid, Starts};
use super::permutation::Permutation;
use super::{Pattern, Request, Size};

/// Chooses a random start in a region, independently of those before it.
pub(super) trait Draw: Send {
    /// The place of a start among those of the smallest size.
    fn place(&mut self, region: usize) -> u64;
}

/// A number below `count`, each as likely as the others to within count / 2^64, without a division: the
/// high half of the product. It rests on the upper bits of the random number, which is what
/// xoshiro256+ is for: the lowest three are linear, and would matter in a region of 2^61 blocks.
#[inline]
pub(super) fn below(count: u64, random: u64) -> u64 {
    ((u128::from(random) * u128::from(count)) >> 64) as u64
}

/// Uniform over all starts from which an I/O ends within the region, with repetition.
pub(crate) struct Random {
    grid: StartGrid,
    random: Xoshiro256Plus,
}

impl Random {
    pub(crate) fn new(plan: &WorkerPlan, stream: &Stream) -> Self {
        Self {
            grid: StartGrid::new(plan, stream),
            random: Xoshiro256Plus::seed_from_u64(plan.seed),
        }
    }
}

#[inline]
fn uniform(starts: Starts, random: &mut Xoshiro256Plus) -> u64 {
    starts.first + below(starts.count, random.next_u64()) * starts.step
}

impl Pattern for Random {
    #[inline]
    fn next(&mut self, region: usize, size: Size) -> u64 {
        uniform(self.grid.starts(region, size), &mut self.random)
    }

    #[inline]
    fn fill(
        &mut self,
        region: usize,
        size: Size,
        into: &mut [Request],
        mut request: impl FnMut(u64) -> Request,
    ) {
        let starts = self.grid.starts(region, size);
        // A copy can stay in registers for the whole batch.
        let mut random = self.random.clone();
        for place in into {
            *place = request(uniform(starts, &mut random));
        }
        self.random = random;
    }
}

/// Over the starts of the smallest size, by a distribution; if an I/O would not end within the
/// region from its start, it moves back to the last one from which it does.
pub(crate) struct Scattered<D> {
    grid: StartGrid,
    draw: D,
}

impl<D: Draw> Scattered<D> {
    /// `draw` makes the distribution over this many starts in each region.
    pub(super) fn new(
        plan: &WorkerPlan,
        stream: &Stream,
        draw: impl FnOnce(&StartGrid, Xoshiro256PlusPlus) -> D,
    ) -> Self {
        let grid = StartGrid::new(plan, stream);
        let draw = draw(&grid, Xoshiro256PlusPlus::seed_from_u64(plan.seed));
        Self { grid, draw }
    }
}

impl<D: Draw> Pattern for Scattered<D> {
    #[inline]
    fn next(&mut self, region: usize, size: Size) -> u64 {
        self.grid.starts(region, size).offset(self.draw.place(region))
    }
}

/// Every start once in random order, then all of them again in another order.
///
/// The workers that share a region deal its starts out between them, one to each in turn, and keep
/// theirs. So together they reach each of them, no worker reaches another worker's start, and the
/// I/Os of a worker do not depend on the pace of the others.
pub(crate) struct Shuffled {
    grid: StartGrid,
    decks: Box<[Deck]>,
    sharers: u64,
    share: u64,
    random: Xoshiro256PlusPlus,
}

/// A worker's starts in a region.
struct Deck {
    count: u64,
    dealt: u64,
    order: Permutation,
}

impl Shuffled {
    pub(super) fn new(plan: &WorkerPlan, stream: &Stream) -> Self {
        let grid = StartGrid::new(plan, stream);
        let (sharers, share) = (u64::from(plan.sharers), u64::from(plan.share));
        let mut random = Xoshiro256PlusPlus::seed_from_u64(plan.seed);
        let deck = |all: u64| {
            assert!(share < all, "resolving a spec gives each worker a start");
            let count = (all - share).div_ceil(sharers);
            Deck { count, dealt: 0, order: Permutation::new(count, &mut random) }
        };
        let decks = grid.counts().map(deck).collect();
        Self { grid, decks, sharers, share, random }
    }
}

impl Pattern for Shuffled {
    #[inline]
    fn next(&mut self, region: usize, size: Size) -> u64 {
        let deck = &mut self.decks[region];
        if deck.dealt == deck.count {
            deck.dealt = 0;
            deck.order = Permutation::new(deck.count, &mut self.random);
        }
        let place = self.share + deck.order.at(deck.dealt) * self.sharers;
        deck.dealt += 1;
        self.grid.starts(region, size).offset(place)
    }
}
