//! How offsets follow each other. A new access pattern is a type here that implements [`Pattern`],
//! a variant in `fathom_core::spec::Pattern`, and a line in [`source`]. One of `fathom_core`'s
//! distributions is a type in `distribution` that implements `Draw`, and a line in [`over`].
//!
//! The hot loop takes requests in batches from a [`Source`]. So it need not be compiled anew for
//! every pattern, and the pattern costs one indirect call for a batch.

mod distribution;
mod grid;
mod mixed;
mod permutation;
mod random;
mod sequential;
#[cfg(test)]
pub(crate) mod testing;

use fathom_core::Bytes;
use fathom_core::measure::{Direction, Tally, Upkeep};
use fathom_core::plan::WorkerPlan;
use fathom_core::spec::{self, BlockSizes, Distribution, Ios, Part, Region, Stream};
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use rand_xoshiro::{Xoshiro256Plus, Xoshiro256PlusPlus};

use distribution::{Hot, Normal, Pareto, Ranked, UniformDraw, Zipf};
use grid::StartGrid;
use mixed::Mixed;
pub(crate) use random::Random;
use random::{Draw, Scattered, Shuffled};
pub(crate) use sequential::Pointers;
use sequential::{Backward, Interlocked, Revisiting, Sequential};

/// The request of an I/O.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Request {
    /// Its offset, in bytes from the target's start.
    pub(crate) offset: u64,
    what: What,
}

/// The common part of I/Os of one kind, in one word that is compared and copied at once: from the
/// lowest bit, the bytes (32 bits), the target's place in the list of targets of the run (16), and
/// the lane (16), which is the region's place in the worker's plan and the direction. The highest
/// bit is set for upkeep, whose kind takes the place of the direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct What(u64);

impl What {
    /// No I/O is of this kind: it has no bytes.
    pub(crate) const NOTHING: Self = Self(0);

    /// How many bytes.
    #[inline]
    pub(crate) fn length(self) -> u32 {
        self.0 as u32
    }

    /// The place of its flow in the worker's tally.
    #[inline]
    pub(crate) fn flow(self) -> usize {
        (self.0 >> 48) as usize
    }
}

/// The most targets of a run, and the most regions of a stream.
pub(crate) const MOST_REGIONS: usize = 1 << 14;

impl Request {
    #[inline]
    pub(crate) fn new(
        offset: u64,
        length: u32,
        target: u16,
        region: usize,
        direction: Direction,
    ) -> Self {
        let lane = (region as u64) << 1 | direction as u64;
        Self { offset, what: What(u64::from(length) | u64::from(target) << 32 | lane << 48) }
    }

    /// A flush of the target of a region: it has no place and no length, so that the same
    /// comparison as for reads and writes tells whether it completed in full.
    pub(crate) fn flush(target: u32, region: usize) -> Self {
        let lane = (Tally::UPKEEP as u64) | (region as u64) << 1 | Upkeep::Flush as u64;
        Self { offset: 0, what: What(u64::from(target) << 32 | lane << 48) }
    }

    /// A trim of the range that it would have read or written.
    fn into_trim(self) -> Self {
        let lane = (Tally::UPKEEP as u64) | Upkeep::Trim as u64;
        Self { what: What(self.what.0 | lane << 48), ..self }
    }

    /// Its kind, if it moves no data.
    #[inline]
    pub(crate) fn upkeep(self) -> Option<Upkeep> {
        match (self.what.0 >> 63, self.what.0 >> 48 & 1) {
            (0, _) => None,
            (_, 0) => Some(Upkeep::Flush),
            _ => Some(Upkeep::Trim),
        }
    }

    /// All of it except the place.
    #[inline]
    pub(crate) fn what(self) -> What {
        self.what
    }

    /// How many bytes.
    #[inline]
    pub(crate) fn length(self) -> u32 {
        self.what.length()
    }

    /// The target's place in the list of targets of the run.
    #[inline]
    pub(crate) fn target(self) -> u32 {
        u32::from((self.what.0 >> 32) as u16)
    }

    /// The region's place in the worker's plan.
    #[inline]
    pub(crate) fn region(self) -> usize {
        (self.what.0 >> 49) as usize & (MOST_REGIONS - 1)
    }

    /// Whether it reads or writes.
    #[inline]
    pub(crate) fn direction(self) -> Direction {
        if self.what.0 >> 48 & 1 == 0 { Direction::Read } else { Direction::Write }
    }
}

/// Draws the requests of a worker. A thread that takes over from a worker that hangs uses it on
/// another thread.
pub(crate) trait Source: Send {
    /// The next requests. The number that is drawn at once changes none of them.
    fn draw(&mut self, into: &mut [Request]);

    /// Whether more may be drawn than is started at once. Workers that share the next place take
    /// only what they start.
    fn ahead(&self) -> bool {
        true
    }
}

/// Makes the source of the requests of a worker of this stream. Interlocked workers share the
/// pointers.
pub(crate) fn source<'a>(
    stream: &Stream,
    plan: &WorkerPlan,
    pointers: &'a Pointers,
) -> Box<dyn Source + 'a> {
    let source: Box<dyn Source + 'a> = match &stream.ios {
        Ios::Alike(_) => moving(stream, plan, pointers),
        Ios::ByRegion(_) => Box::new(Kinds::new(stream, plan, pointers)),
        Ios::Drawn(parts) => Box::new(Parts::new(stream, parts, plan, pointers)),
    };
    match stream.trims() {
        false => source,
        true => Box::new(Trimming::new(source, stream.trim_share, plan.seed)),
    }
}

/// Draws the requests to each region from a separate source, because they differ.
struct Kinds<'a> {
    sources: Box<[Box<dyn Source + 'a>]>,
    turns: RegionTurns,
}

impl<'a> Kinds<'a> {
    fn new(stream: &Stream, plan: &WorkerPlan, pointers: &'a Pointers) -> Self {
        assert!(stream.regions.len() == plan.regions.len());
        let own = |(place, region): (usize, &Region)| {
            let plan = WorkerPlan {
                regions: Vec::from([*region]),
                first_region: plan.first_region + place as u32,
                // An odd factor keeps the seeds of the regions apart.
                seed: plan.seed ^ (place as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15),
                ..plan.clone()
            };
            moving(&stream.of_region(place), &plan, pointers)
        };
        let sources = plan.regions.iter().enumerate().map(own).collect();
        Self { sources, turns: RegionTurns::new(plan, stream) }
    }
}

impl Source for Kinds<'_> {
    fn draw(&mut self, into: &mut [Request]) {
        for request in into {
            let (region, _) = self.turns.next();
            self.sources[region].draw(std::slice::from_mut(request));
            request.what.0 |= (region as u64) << 49;
        }
    }

    fn ahead(&self) -> bool {
        self.sources.iter().all(|source| source.ahead())
    }
}

/// Draws each request from the source of a part, which is chosen by the parts' weights,
/// independently of everything else. Each part continues from its own last request, as if there
/// were no others.
struct Parts<'a> {
    sources: Box<[Box<dyn Source + 'a>]>,
    draw: Draws,
}

impl<'a> Parts<'a> {
    fn new(stream: &Stream, parts: &[Part], plan: &WorkerPlan, pointers: &'a Pointers) -> Self {
        let own = |(place, stream): (usize, &Stream)| {
            // An odd factor keeps the seeds of the parts apart.
            let seed = plan.seed ^ (place as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
            moving(stream, &WorkerPlan { seed, ..plan.clone() }, pointers)
        };
        let weights: Vec<f64> = parts.iter().map(|part| part.weight).collect();
        Self {
            sources: stream.each_kind().iter().enumerate().map(own).collect(),
            draw: Draws::new(&weights, plan.seed ^ 0x7061_7274),
        }
    }
}

impl Source for Parts<'_> {
    fn draw(&mut self, into: &mut [Request]) {
        for request in into {
            self.sources[self.draw.next()].draw(std::slice::from_mut(request));
        }
    }

    fn ahead(&self) -> bool {
        self.sources.iter().all(|source| source.ahead())
    }
}

/// Turns a share of another source's requests into trims of the same places, by an independent coin
/// for each.
struct Trimming<'a> {
    source: Box<dyn Source + 'a>,
    /// Of [`ALL`] equally likely values, those that mean a trim.
    trims: u64,
    random: Xoshiro256Plus,
}

impl<'a> Trimming<'a> {
    fn new(source: Box<dyn Source + 'a>, share: f64, seed: u64) -> Self {
        let random = Xoshiro256Plus::seed_from_u64(seed ^ 0x7472_696d);
        Self { source, trims: (share * ALL as f64) as u64, random }
    }
}

impl Source for Trimming<'_> {
    fn draw(&mut self, into: &mut [Request]) {
        self.source.draw(into);
        for request in into {
            if self.random.next_u64() >> 1 < self.trims {
                *request = request.into_trim();
            }
        }
    }

    fn ahead(&self) -> bool {
        self.source.ahead()
    }
}

/// Makes the source of reads and writes.
fn moving<'a>(stream: &Stream, plan: &WorkerPlan, pointers: &'a Pointers) -> Box<dyn Source + 'a> {
    fn boxed<'a, P: Pattern + 'a>(
        plan: &WorkerPlan,
        stream: &Stream,
        pattern: P,
    ) -> Box<dyn Source + 'a> {
        Box::new(Requests::new(plan, stream, pattern))
    }
    match stream.pattern() {
        spec::Pattern::Sequential(sequence) if sequence.backward => {
            boxed(plan, stream, Backward::new(plan, stream, *sequence))
        }
        spec::Pattern::Sequential(sequence) => {
            let once = Sequential::new(plan, stream, *sequence);
            match sequence.visits {
                None => boxed(plan, stream, once),
                Some(visits) => boxed(plan, stream, Revisiting::new(plan, once, visits)),
            }
        }
        spec::Pattern::Interlocked { .. } => {
            boxed(plan, stream, Interlocked::new(plan, stream, pointers))
        }
        spec::Pattern::Random(Distribution::Uniform) => {
            boxed(plan, stream, Random::new(plan, stream))
        }
        spec::Pattern::Shuffled => boxed(plan, stream, Shuffled::new(plan, stream)),
        spec::Pattern::Random(distribution) => over(distribution, stream, plan, None),
        spec::Pattern::Mixed { random_share, distribution } => {
            over(distribution, stream, plan, Some(*random_share))
        }
    }
}

/// Makes the source of requests over a distribution: all of them, or this share of them.
fn over(
    distribution: &Distribution,
    stream: &Stream,
    plan: &WorkerPlan,
    random_share: Option<f64>,
) -> Box<dyn Source> {
    fn placed<D: Draw + 'static>(
        stream: &Stream,
        plan: &WorkerPlan,
        random_share: Option<f64>,
        draw: impl FnOnce(&StartGrid, Xoshiro256PlusPlus) -> D,
    ) -> Box<dyn Source> {
        match random_share {
            None => {
                let pattern = Scattered::new(plan, stream, draw);
                Box::new(Requests::new(plan, stream, pattern))
            }
            Some(random_share) => Box::new(Mixed::new(plan, stream, random_share, draw)),
        }
    }
    match *distribution {
        Distribution::Uniform => placed(stream, plan, random_share, UniformDraw::new),
        Distribution::Zipf { theta, order } => {
            placed(stream, plan, random_share, |grid, random| {
                Ranked::new(plan, order, grid, random, |count| Zipf::new(count, theta))
            })
        }
        Distribution::Pareto { h, order } => placed(stream, plan, random_share, |grid, random| {
            Ranked::new(plan, order, grid, random, |count| Pareto::new(count, h))
        }),
        Distribution::Normal { deviation, center } => {
            placed(stream, plan, random_share, |grid, random| {
                Normal::new(grid, random, center, deviation)
            })
        }
        Distribution::Hot(ref ranges) => placed(stream, plan, random_share, |grid, random| {
            Hot::new(grid, random, ranges, stream.alignment().0)
        }),
    }
}

/// A pattern in each of a worker's regions, with a mix of reads and writes and of
/// block sizes.
pub(crate) struct Requests<P> {
    pattern: P,
    mix: Mix,
    sizes: Sizes,
    turns: RegionTurns,
}

/// Chooses the next of a worker's regions: each in turn, or a random one.
struct RegionTurns {
    /// The target of each region.
    targets: Box<[u16]>,
    turn: usize,
    draw: Option<Draws>,
}

/// Draws regions or parts by their weights, independently of everything else.
struct Draws {
    /// For each the end of its part of [`ALL`] values.
    ends: Box<[u64]>,
    random: Xoshiro256Plus,
}

impl RegionTurns {
    /// # Panics
    ///
    /// When there are more targets or regions than a request can name, which resolving a spec rules
    /// out.
    fn new(plan: &WorkerPlan, stream: &Stream) -> Self {
        assert!(plan.regions.len() <= MOST_REGIONS);
        let target = |region: &Region| {
            u16::try_from(region.target).expect("a request can name every target of a run")
        };
        let draw = match &stream.turns {
            spec::Turns::InTurn => None,
            spec::Turns::Weighted(weights) => {
                assert!(weights.len() == plan.regions.len());
                Some(Draws::new(weights, plan.seed ^ 0x7475_726e))
            }
        };
        Self { targets: plan.regions.iter().map(target).collect(), turn: 0, draw }
    }

    /// The place of the next region, and its target.
    #[inline]
    fn next(&mut self) -> (usize, u16) {
        if let Some(draw) = &mut self.draw {
            let region = draw.next();
            return (region, self.targets[region]);
        }
        let region = self.turn;
        self.turn += 1;
        if self.turn == self.targets.len() {
            self.turn = 0;
        }
        (region, self.targets[region])
    }
}

impl Draws {
    fn new(weights: &[f64], seed: u64) -> Self {
        let total: f64 = weights.iter().sum();
        let mut below = 0.0;
        let mut end = |weight: &f64| {
            below += weight;
            (below / total * ALL as f64) as u64
        };
        let mut ends: Box<[u64]> = weights.iter().map(&mut end).collect();
        // Regardless of rounding.
        if let Some(last) = ends.last_mut() {
            *last = ALL;
        }
        Self { ends, random: Xoshiro256Plus::seed_from_u64(seed) }
    }

    #[inline]
    fn next(&mut self) -> usize {
        let chance = self.random.next_u64() >> 1;
        self.ends.partition_point(|end| *end <= chance)
    }
}

impl<P: Pattern> Requests<P> {
    pub(crate) fn new(plan: &WorkerPlan, stream: &Stream, pattern: P) -> Self {
        Self {
            pattern,
            mix: Mix::new(stream.read_share(), plan.seed),
            sizes: Sizes::new(&stream.block_sizes(), plan.seed),
            turns: RegionTurns::new(plan, stream),
        }
    }

    #[inline]
    fn draw_with(
        &mut self,
        into: &mut [Request],
        mut direction: impl FnMut(&mut Mix) -> Direction,
        mut size: impl FnMut(&mut Sizes, Direction) -> Size,
    ) {
        for request in into {
            let (region, target) = self.turns.next();
            let direction = direction(&mut self.mix);
            let size = size(&mut self.sizes, direction);
            let offset = self.pattern.next(region, size);
            *request = Request::new(offset, size.bytes, target, region, direction);
        }
    }

    /// The same where there is one region and one size: most workloads, and the fastest ones.
    #[inline]
    fn draw_plain(
        &mut self,
        size: Size,
        into: &mut [Request],
        mut direction: impl FnMut(&mut Mix) -> Direction,
    ) {
        let (mix, target) = (&mut self.mix, self.turns.targets[0]);
        let request = |offset| Request::new(offset, size.bytes, target, 0, direction(mix));
        self.pattern.fill(0, size, into, request);
    }
}

impl<P: Pattern> Source for Requests<P> {
    fn draw(&mut self, into: &mut [Request]) {
        // No coin is tossed whose outcome is certain.
        match (self.sizes.certain(), self.mix.certain(), self.turns.targets.len()) {
            (Some(size), Some(direction), 1) => self.draw_plain(size, into, |_| direction),
            (Some(size), None, 1) => self.draw_plain(size, into, Mix::toss),
            (Some(size), _, _) => self.draw_with(into, Mix::next, |_, _| size),
            (None, _, _) => self.draw_with(into, Mix::next, Sizes::toss),
        }
    }

    fn ahead(&self) -> bool {
        P::AHEAD
    }
}

/// One of a stream's block sizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Size {
    /// Its place among them, at which a pattern keeps values that it computed beforehand.
    pub(crate) place: usize,
    /// The size itself.
    pub(crate) bytes: u32,
}

/// The block sizes of a stream without repetition, in the order in which a [`Size`] counts them.
pub(crate) fn distinct(sizes: &BlockSizes) -> Vec<u32> {
    let size = |bytes: Bytes| u32::try_from(bytes.0).expect("a block is smaller than 4 GiB");
    let mut distinct: Vec<u32> = sizes.all().map(size).collect();
    distinct.sort_unstable();
    distinct.dedup();
    distinct
}

/// Tosses the die for each I/O's size, independently of everything else.
struct Sizes {
    /// For reads and for writes: the sizes, each with the end of its part of [`ALL`] values.
    parts: [Box<[(u64, Size)]>; 2],
    random: Xoshiro256Plus,
}

impl Sizes {
    fn new(sizes: &BlockSizes, seed: u64) -> Self {
        let distinct = distinct(sizes);
        let parts = |direction| {
            let mut below = 0.0;
            let mut parts: Box<[(u64, Size)]> = sizes
                .of(direction)
                .iter()
                .map(|one| {
                    below += one.share;
                    let bytes = one.size.0 as u32;
                    let place = distinct.binary_search(&bytes).expect("all sizes are there");
                    ((below * ALL as f64) as u64, Size { place, bytes })
                })
                .collect();
            // Regardless of rounding.
            if let Some((end, _)) = parts.last_mut() {
                *end = ALL;
            }
            parts
        };
        Self {
            parts: Direction::BOTH.map(parts),
            random: Xoshiro256Plus::seed_from_u64(seed ^ 0x7369_7a65),
        }
    }

    /// The size of every I/O, where there is only one.
    fn certain(&self) -> Option<Size> {
        match &self.parts {
            [reads, writes] if reads.len() == 1 && writes.len() == 1 => {
                (reads[0].1 == writes[0].1).then_some(reads[0].1)
            }
            _ => None,
        }
    }

    #[inline]
    fn toss(&mut self, direction: Direction) -> Size {
        let parts = &self.parts[direction as usize];
        if let [(_, only)] = **parts {
            return only;
        }
        let chance = self.random.next_u64() >> 1;
        let part = parts.iter().find(|(end, _)| chance < *end);
        part.expect("the last part ends behind every value").1
    }
}

/// Chooses the offset of each I/O.
pub(crate) trait Pattern: Send {
    /// Whether offsets may be drawn long before they are used.
    const AHEAD: bool = true;

    /// The offset of the next I/O, which has this size, in the region with this place in the worker's
    /// plan, in bytes from the target's start.
    fn next(&mut self, region: usize, size: Size) -> u64;

    /// Makes a whole batch of requests from the next offsets in one region.
    #[inline]
    fn fill(
        &mut self,
        region: usize,
        size: Size,
        into: &mut [Request],
        mut request: impl FnMut(u64) -> Request,
    ) {
        into.iter_mut().for_each(|place| *place = request(self.next(region, size)));
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

    /// The next direction, certain or not.
    #[inline]
    fn next(&mut self) -> Direction {
        self.certain().unwrap_or_else(|| self.toss())
    }

    #[inline]
    fn toss(&mut self) -> Direction {
        if self.random.next_u64() >> 1 < self.reads { Direction::Read } else { Direction::Write }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fathom_core::spec::{Kind, Pacing, Sequence};

    const KIB4: Size = Size { place: 0, bytes: 4096 };

    fn plan(share: u32, sharers: u32) -> WorkerPlan {
        let region = Region { target: 0, offset: Bytes(8192), length: Bytes(10 * 4096 + 100) };
        WorkerPlan {
            stream: 0,
            worker: share,
            workers: sharers,
            sharers,
            share,
            regions: Vec::from([region]),
            pace: Pacing::closed(1).pace,
            seed: 5,
            stream_seed: 5,
            first_region: 0,
            flush: None,
            trims: false,
        }
    }

    fn reads() -> Stream {
        Stream::reading("test", Vec::new())
    }

    #[test]
    fn sequential_workers_start_apart_and_go_around_the_whole_blocks() {
        let mut second = Sequential::new(&plan(1, 2), &reads(), Sequence::default());
        let offsets: Vec<u64> = (0..11).map(|_| second.next(0, KIB4)).collect();
        let expected: Vec<u64> =
            [5, 6, 7, 8, 9, 0, 1, 2, 3, 4, 5].iter().map(|block| 8192 + block * 4096).collect();
        assert_eq!(offsets, expected);
    }

    #[test]
    fn random_offsets_cover_the_region_evenly_and_never_leave_it() {
        let mut random = Random::new(&plan(0, 1), &reads());
        let mut hits = [0u32; 10];
        for _ in 0..100_000 {
            let offset = random.next(0, KIB4) - 8192;
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

    /// Three sizes for reads, another size for writes.
    fn mixed_stream() -> Stream {
        let weights = [(Bytes(4096), 5.0), (Bytes(8192), 3.0), (Bytes(16384), 2.0)];
        Stream {
            ios: Kind {
                block_sizes: BlockSizes::weighted(&weights, &[(Bytes(12288), 1.0)]),
                read_share: 0.6,
                ..Kind::default()
            }
            .into(),
            ..Stream::reading("mixed", Vec::new())
        }
    }

    #[test]
    fn sizes_come_in_their_shares_independently_of_the_direction() {
        let (plan, stream) = (plan(0, 1), mixed_stream());
        let random = Random::new(&plan, &stream);
        let mut source = Requests::new(&plan, &stream, random);
        let mut drawn = vec![Request::default(); 100_000];
        source.draw(&mut drawn);
        let count = |direction, length| {
            let is = |one: &&Request| one.direction() == direction && one.length() == length;
            drawn.iter().filter(is).count() as f64
        };
        // Five standard deviations of a binomial count.
        for (direction, length, share) in [
            (Direction::Read, 4096, 0.30),
            (Direction::Read, 8192, 0.18),
            (Direction::Read, 16384, 0.12),
            (Direction::Write, 12288, 0.40),
            (Direction::Write, 4096, 0.0),
        ] {
            let allowed = 5.0 * f64::sqrt(1e5 * share * (1.0 - share));
            let found = count(direction, length);
            assert!((found - 1e5 * share).abs() <= allowed, "{direction:?} {length}: {found}");
        }
    }

    #[test]
    fn every_size_stays_in_the_region_and_can_start_everywhere_it_fits() {
        let (plan, stream) = (plan(0, 1), mixed_stream());
        let end = 8192 + 10 * 4096 + 100;
        let random = Random::new(&plan, &stream);
        let mut source = Requests::new(&plan, &stream, random);
        let mut drawn = vec![Request::default(); 10_000];
        source.draw(&mut drawn);
        assert!(drawn.iter().all(|one| (one.offset - 8192).is_multiple_of(4096)));
        assert!(drawn.iter().all(|one| one.offset + u64::from(one.length()) <= end));
        for (length, starts) in [(4096, 10), (8192, 9), (12288, 8), (16384, 7)] {
            let of_length = drawn.iter().filter(|one| one.length() == length);
            let seen: std::collections::HashSet<u64> = of_length.map(|one| one.offset).collect();
            assert_eq!(seen.len(), starts, "{length}");
        }
    }

    #[test]
    fn a_sequential_stream_of_several_sizes_continues_where_it_ended_until_one_does_not_fit() {
        let (plan, stream) = (plan(0, 1), mixed_stream());
        let end = 8192 + 10 * 4096 + 100;
        let sequential = Sequential::new(&plan, &stream, Sequence::default());
        let mut source = Requests::new(&plan, &stream, sequential);
        let mut drawn = vec![Request::default(); 1000];
        source.draw(&mut drawn);
        let mut next = 8192;
        for one in drawn {
            let fits = next + u64::from(one.length()) <= end;
            assert_eq!(one.offset, if fits { next } else { 8192 });
            next = one.offset + u64::from(one.length());
        }
    }

    #[test]
    fn requests_are_the_same_however_many_are_drawn_at_once() {
        let mut plan = plan(0, 1);
        plan.regions.push(Region { target: 7, offset: Bytes(1 << 20), length: Bytes(1 << 20) });
        let draw = |share: f64, at_once: &[usize]| -> Vec<Request> {
            let mut stream = reads();
            stream.kind_mut().read_share = share;
            let random = Random::new(&plan, &stream);
            let mut source = Requests::new(&plan, &stream, random);
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
            let regions = at_once.iter().map(|request| (request.region(), request.target()));
            assert!(regions.eq([(0, 0), (1, 7)].into_iter().cycle().take(120)));
        }
    }
}
