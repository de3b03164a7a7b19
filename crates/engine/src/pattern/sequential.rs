//! Patterns in which the place of an I/O follows from that of the one before it.

use std::sync::atomic::{AtomicU64, Ordering};

use fathom_core::plan::WorkerPlan;
use fathom_core::spec::{Point, Region, Sequence, Starts, Stream};

use super::{Pattern, Request, Size, distinct};

/// The common part of every region: how far each size advances.
struct RegionSteps {
    /// From the start of an I/O of each size to that of the next one.
    steps: Box<[u64]>,
    /// For each region and each size, the last place from the region's start from which the I/O ends
    /// within the region.
    last: Box<[u64]>,
}

impl RegionSteps {
    fn new(plan: &WorkerPlan, stream: &Stream) -> Self {
        let sizes = distinct(&stream.block_sizes());
        let step = |&size: &u32| match stream.pattern().stride() {
            Some(stride) => stride.0,
            None => u64::from(size),
        };
        let last = |region: &Region| {
            let length = region.length.0;
            let of = move |&size: &u32| {
                length.checked_sub(u64::from(size)).expect("a region holds each block")
            };
            sizes.iter().map(of).collect::<Vec<_>>()
        };
        Self {
            steps: sizes.iter().map(step).collect(),
            last: plan.regions.iter().flat_map(last).collect(),
        }
    }

    /// The step of a size, and its last place in a region.
    #[inline]
    fn of(&self, region: usize, size: Size) -> (u64, u64) {
        (self.steps[size.place], self.last[region * self.steps.len() + size.place])
    }
}

/// A worker's way around a region. All places are counted from the region's start.
struct Walk {
    /// The region's start.
    origin: u64,
    /// Forward: where the next I/O starts. Backward: where the one before it started.
    at: u64,
    /// The first place that can be reached with whole steps.
    phase: u64,
}

/// The places that a worker's walks start from, and the number of steps of a region.
fn starting(plan: &WorkerPlan, stream: &Stream, sequence: Sequence, region: &Region) -> (u64, u64) {
    let smallest = stream.block_sizes().smallest().0;
    let step = sequence.stride.map_or(smallest, |stride| stride.0);
    let count = (region.length.0 - smallest) / step + 1;
    let first = match sequence.starts {
        Starts::Apart(distance) => distance.0 * u64::from(plan.share),
        Starts::Spread => {
            // Backward, a worker begins with the last place of its part and not with the first.
            let parts = u128::from(plan.share) + u128::from(sequence.backward);
            let before = u128::from(count) * parts / u128::from(plan.sharers);
            before as u64 * step
        }
    };
    (first, step)
}

/// Each I/O one step after the one before it, and from the region's start again (where its steps
/// reach it) when it would not fit. Workers that share a region start at equal distances, so that
/// one does not read from a cache what another has just read, or at a given distance.
pub(crate) struct Sequential {
    steps: RegionSteps,
    walks: Box<[Walk]>,
}

impl Sequential {
    pub(super) fn new(plan: &WorkerPlan, stream: &Stream, sequence: Sequence) -> Self {
        let steps = RegionSteps::new(plan, stream);
        // Several sizes without a stride do not return to the same places, so they start again at
        // the very start.
        let regular = steps.steps.len() == 1 || sequence.stride.is_some();
        let begin = |region: &Region| {
            let (at, step) = starting(plan, stream, sequence, region);
            let phase = if regular { at % step } else { 0 };
            Walk { origin: region.offset.0, at, phase }
        };
        let walks = plan.regions.iter().map(begin).collect();
        Self { steps, walks }
    }
}

impl Pattern for Sequential {
    #[inline]
    fn next(&mut self, region: usize, size: Size) -> u64 {
        let (step, last) = self.steps.of(region, size);
        let walk = &mut self.walks[region];
        let at = if walk.at <= last { walk.at } else { walk.phase };
        walk.at = at + step;
        walk.origin + at
    }

    #[inline]
    fn fill(
        &mut self,
        region: usize,
        size: Size,
        into: &mut [Request],
        mut request: impl FnMut(u64) -> Request,
    ) {
        let (step, last) = self.steps.of(region, size);
        let walk = &mut self.walks[region];
        // Copies can stay in registers for the whole batch.
        let (mut at, origin, phase) = (walk.at, walk.origin, walk.phase);
        for place in into {
            at = if at <= last { at } else { phase };
            *place = request(origin + at);
            at += step;
        }
        walk.at = at;
    }
}

/// Each place this many times before the next one: the result of slots that each go through the
/// region by themselves, in step. The I/Os are all of one size.
pub(crate) struct Revisiting {
    once: Sequential,
    visits: u32,
    /// For each region, the latest place and how many visits of it are left.
    places: Box<[(u64, u32)]>,
}

impl Revisiting {
    pub(super) fn new(plan: &WorkerPlan, once: Sequential, visits: u32) -> Self {
        let places = plan.regions.iter().map(|_| (0, 0)).collect();
        Self { once, visits, places }
    }
}

impl Pattern for Revisiting {
    #[inline]
    fn next(&mut self, region: usize, size: Size) -> u64 {
        let (place, left) = &mut self.places[region];
        if *left == 0 {
            (*place, *left) = (self.once.next(region, size), self.visits);
        }
        *left -= 1;
        *place
    }
}

/// Each I/O one step before the one before it, and from the region's end again when there is none.
pub(crate) struct Backward {
    steps: RegionSteps,
    walks: Box<[Walk]>,
    /// For each region and each size, the place where it starts again.
    tops: Box<[u64]>,
}

impl Backward {
    pub(super) fn new(plan: &WorkerPlan, stream: &Stream, sequence: Sequence) -> Self {
        let steps = RegionSteps::new(plan, stream);
        let begin = |region: &Region| {
            let (first, step) = starting(plan, stream, sequence, region);
            let at = match sequence.starts {
                Starts::Spread => first,
                // Its first I/O is one step before this.
                Starts::Apart(_) => first + step,
            };
            Walk { origin: region.offset.0, at, phase: at % step }
        };
        let walks: Box<[Walk]> = plan.regions.iter().map(begin).collect();
        let sizes = steps.steps.len();
        // As forward: several sizes without a stride start again at the very end.
        let regular = sizes == 1 || sequence.stride.is_some();
        let grid = |step: u64| if regular { step } else { 1 };
        let top = |(place, &last): (usize, &u64)| {
            let phase = walks[place / sizes].phase;
            last - last.saturating_sub(phase) % grid(steps.steps[place % sizes])
        };
        let tops = steps.last.iter().enumerate().map(top).collect();
        Self { steps, walks, tops }
    }
}

impl Pattern for Backward {
    #[inline]
    fn next(&mut self, region: usize, size: Size) -> u64 {
        let (step, last) = self.steps.of(region, size);
        let walk = &mut self.walks[region];
        // A place before the region's start then lies beyond its end.
        let at = walk.at.wrapping_sub(step);
        let top = self.tops[region * self.steps.steps.len() + size.place];
        walk.at = if at <= last { at } else { top };
        walk.origin + walk.at
    }
}

/// The next places of interlocked workers, for each stream and each of its regions: one pointer for
/// all of a stream's workers.
pub(crate) struct Pointers(Box<[Box<[Pointer]>]>);

/// The place of the next I/O from the region's start, alone in its cache line.
#[derive(Default)]
#[repr(align(128))]
struct Pointer(AtomicU64);

impl Pointers {
    /// The pointers of every stream of a point, at the start of every region.
    pub(crate) fn new(point: &Point) -> Self {
        let of = |stream: &Stream| stream.regions.iter().map(|_| Pointer::default()).collect();
        Self(point.streams.iter().map(of).collect())
    }
}

/// Each I/O one step after the one that any worker of the stream took before it, and from the region's
/// start again when it would not fit.
pub(crate) struct Interlocked<'a> {
    steps: RegionSteps,
    origins: Box<[u64]>,
    pointers: &'a [Pointer],
}

impl<'a> Interlocked<'a> {
    pub(super) fn new(plan: &WorkerPlan, stream: &Stream, pointers: &'a Pointers) -> Self {
        let first = plan.first_region as usize;
        Self {
            steps: RegionSteps::new(plan, stream),
            origins: plan.regions.iter().map(|region| region.offset.0).collect(),
            pointers: &pointers.0[plan.stream as usize][first..first + plan.regions.len()],
        }
    }
}

impl Pattern for Interlocked<'_> {
    // A place that is drawn and not started would be missing between those that the other workers
    // start.
    const AHEAD: bool = false;

    #[inline]
    fn next(&mut self, region: usize, size: Size) -> u64 {
        let (step, last) = self.steps.of(region, size);
        // No other data is published with a place, so only its own order has to hold.
        let pointer = &self.pointers[region].0;
        let mut seen = pointer.load(Ordering::Relaxed);
        loop {
            let at = if seen <= last { seen } else { 0 };
            let moved = at + step;
            match pointer.compare_exchange_weak(seen, moved, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return self.origins[region] + at,
                Err(now) => seen = now,
            }
        }
    }
}
