//! Distributions over the starts of a region. Each takes constant time and memory, independent of
//! the region's size, and is right for every number of starts.

use fathom_core::plan::WorkerPlan;
use fathom_core::spec::{Extent, HotRange, Order};
use rand_distr::{Distribution, StandardNormal};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::Rng;

use super::ALL;
use super::grid::StartGrid;
use super::permutation::Permutation;
use super::random::{Draw, below};

/// Uniform in [0, 1), in steps of 2^-53.
#[inline]
fn unit(random: &mut Xoshiro256PlusPlus) -> f64 {
    (random.next_u64() >> 11) as f64 * (1.0 / (1_u64 << 53) as f64)
}

/// Every start with the same probability.
pub(crate) struct UniformDraw {
    counts: Box<[u64]>,
    random: Xoshiro256PlusPlus,
}

impl UniformDraw {
    pub(super) fn new(grid: &StartGrid, random: Xoshiro256PlusPlus) -> Self {
        Self { counts: grid.counts().collect(), random }
    }
}

impl Draw for UniformDraw {
    #[inline]
    fn place(&mut self, region: usize) -> u64 {
        below(self.counts[region], self.random.next_u64())
    }
}

/// A distribution over ranks, which are whole numbers from 0.
pub(super) trait Ranks: Send {
    fn rank(&self, random: &mut Xoshiro256PlusPlus) -> u64;
}

/// Gives every rank its start.
pub(crate) struct Ranked<R> {
    /// For each region: the ranks and, unless they are clustered, the starts that they stand for.
    regions: Box<[(R, Option<Permutation>)]>,
    random: Xoshiro256PlusPlus,
}

impl<R: Ranks> Ranked<R> {
    /// `ranks` makes the distribution over this many ranks.
    pub(super) fn new(
        plan: &WorkerPlan,
        order: Order,
        grid: &StartGrid,
        random: Xoshiro256PlusPlus,
        ranks: impl Fn(u64) -> R,
    ) -> Self {
        let region = |count: u64| {
            let starts = match order {
                // All workers agree on the frequent starts.
                Order::Spread => Some(Permutation::of_seed(count, plan.stream_seed)),
                Order::Clustered => None,
            };
            (ranks(count), starts)
        };
        Self { regions: grid.counts().map(region).collect(), random }
    }
}

impl<R: Ranks> Draw for Ranked<R> {
    #[inline]
    fn place(&mut self, region: usize) -> u64 {
        let (ranks, starts) = &self.regions[region];
        let rank = ranks.rank(&mut self.random);
        starts.as_ref().map_or(rank, |starts| starts.at(rank))
    }
}

/// The rank k, counted from 1, with a probability that is proportional to k^-theta, by
/// rejection-inversion: W. Hörmann and G. Derflinger, "Rejection-inversion to generate variates from
/// monotone discrete distributions", ACM TOMACS 6 (3), 1996. It needs little more than one draw and
/// one power for each rank, is exact up to the rounding of floating point, and has no trouble where
/// theta is 1 or near it.
pub(crate) struct Zipf {
    count: f64,
    theta: f64,
    /// The integral of the density one half beyond the first rank, less the probability of that
    /// rank: the lower end of the draws.
    low: f64,
    /// The integral of the density one half beyond the last rank: the upper end of the draws.
    high: f64,
    /// A rank is accepted at once when it is rounded up from a number that is no farther below.
    squeeze: f64,
}

impl Zipf {
    pub(super) fn new(count: u64, theta: f64) -> Self {
        let mut zipf = Self { count: count as f64, theta, low: 0.0, high: 0.0, squeeze: 0.0 };
        zipf.low = zipf.integral(1.5) - 1.0;
        zipf.high = zipf.integral(zipf.count + 0.5);
        zipf.squeeze = 2.0 - zipf.inverse(zipf.integral(2.5) - zipf.density(2.0));
        zipf
    }

    fn density(&self, x: f64) -> f64 {
        x.powf(-self.theta)
    }

    /// The integral of the density from 1 to `x`: (x^(1 - theta) - 1) / (1 - theta), and ln x for a
    /// theta of 1.
    fn integral(&self, x: f64) -> f64 {
        let log = x.ln();
        let power = (1.0 - self.theta) * log;
        // exp_m1 loses nothing near 0, where the quotient is the power's factor itself.
        if power.abs() < 1e-300 { log } else { power.exp_m1() / power * log }
    }

    /// The number whose integral this is.
    fn inverse(&self, integral: f64) -> f64 {
        // Rounding must not take it beyond what any number has.
        let power = (integral * (1.0 - self.theta)).max(-1.0);
        let log = if power.abs() < 1e-300 { 1.0 } else { power.ln_1p() / power };
        (log * integral).exp()
    }
}

impl Ranks for Zipf {
    #[inline]
    fn rank(&self, random: &mut Xoshiro256PlusPlus) -> u64 {
        loop {
            let integral = self.high + unit(random) * (self.low - self.high);
            let exact = self.inverse(integral);
            let rank = (exact + 0.5).floor().clamp(1.0, self.count);
            if rank - exact <= self.squeeze
                || self.integral(rank + 0.5) - self.density(rank) <= integral
            {
                return rank as u64 - 1;
            }
        }
    }
}

/// A part h of the ranks with a probability of 1 - h, and so on within that part: fio's pareto. A
/// rank below x times the count has the probability x^(ln(1 - h) / ln h).
pub(crate) struct Pareto {
    count: u64,
    power: f64,
}

impl Pareto {
    pub(super) fn new(count: u64, h: f64) -> Self {
        Self { count, power: h.ln() / (1.0 - h).ln() }
    }
}

impl Ranks for Pareto {
    #[inline]
    fn rank(&self, random: &mut Xoshiro256PlusPlus) -> u64 {
        let rank = unit(random).powf(self.power) * self.count as f64;
        (rank as u64).min(self.count - 1)
    }
}

/// A bell around a center. A value outside the region is drawn anew; that is at most two of three.
pub(crate) struct Normal {
    counts: Box<[u64]>,
    center: f64,
    deviation: f64,
    random: Xoshiro256PlusPlus,
}

impl Normal {
    pub(super) fn new(
        grid: &StartGrid,
        random: Xoshiro256PlusPlus,
        center: f64,
        deviation: f64,
    ) -> Self {
        Self { counts: grid.counts().collect(), center, deviation, random }
    }
}

impl Draw for Normal {
    #[inline]
    fn place(&mut self, region: usize) -> u64 {
        let count = self.counts[region];
        loop {
            let bell: f64 = StandardNormal.sample(&mut self.random);
            let part = self.center + self.deviation * bell;
            if (0.0..1.0).contains(&part) {
                return ((part * count as f64) as u64).min(count - 1);
            }
        }
    }
}

/// Ranges that each get a given share of the I/Os, and are uniform in themselves.
pub(crate) struct Hot {
    regions: Box<[Box<[StartRange]>]>,
    random: Xoshiro256PlusPlus,
}

/// A range of starts.
#[derive(Clone, Copy, Debug, PartialEq)]
struct StartRange {
    /// The end of its part of [`ALL`] values.
    below: u64,
    first: u64,
    count: u64,
}

impl Hot {
    pub(super) fn new(
        grid: &StartGrid,
        random: Xoshiro256PlusPlus,
        ranges: &[HotRange],
        step: u64,
    ) -> Self {
        let regions = grid.counts().map(|count| parts(ranges, count, step)).collect();
        Self { regions, random }
    }
}

impl Draw for Hot {
    #[inline]
    fn place(&mut self, region: usize) -> u64 {
        let parts = &self.regions[region];
        let chance = self.random.next_u64() >> 1;
        let part = parts[parts.partition_point(|part| part.below <= chance)];
        part.first + below(part.count, self.random.next_u64())
    }
}

/// The ranges as ranges of this many starts, a step apart. A start belongs to the range that it
/// lies in; a range without a start gives its I/Os to the start before it.
fn parts(ranges: &[HotRange], count: u64, step: u64) -> Box<[StartRange]> {
    // Floating point may end just below the intended number.
    let place = |share: f64, size: u64| -> u64 {
        let starts = (share * count as f64 + 1e-6) as u64;
        starts.saturating_add(size / step).min(count)
    };
    let (mut share, mut size, mut left) = (0.0, 0_u64, 1.0);
    let mut found: Vec<(f64, u64, u64)> = Vec::with_capacity(ranges.len() + 1);
    let mut add = |ios: f64, first: u64, end: u64| {
        // The part beyond the region is cut off.
        if ios > 0.0 && first < count {
            found.push((ios, first, end.saturating_sub(first).max(1)));
        }
    };
    for range in ranges {
        let first = place(share, size);
        match range.extent {
            Extent::Share(part) => share += part,
            Extent::Size(bytes) => size = size.saturating_add(bytes.0),
        }
        add(range.io_share, first, place(share, size));
        left -= range.io_share;
    }
    if left > 1e-9 {
        add(left, place(share, size), count);
    }
    let total: f64 = found.iter().map(|(ios, ..)| ios).sum();
    assert!(total > 0.0, "resolving a spec leaves a range within the region");
    let mut below = 0.0;
    let mut parts: Box<[StartRange]> = found
        .into_iter()
        .map(|(ios, first, count)| {
            below += ios / total;
            StartRange { below: (below * ALL as f64) as u64, first, count }
        })
        .collect();
    // Regardless of rounding.
    if let Some(last) = parts.last_mut() {
        last.below = ALL;
    }
    parts
}
