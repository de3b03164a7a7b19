//! Where I/Os can start in the regions of a worker.

use fathom_core::plan::WorkerPlan;
use fathom_core::spec::{Region, Stream};

use super::{Size, distinct};

/// Where I/Os of one size can start in a region.
#[derive(Clone, Copy, Debug)]
pub(super) struct Starts {
    pub(super) first: u64,
    /// The distance between two of them.
    pub(super) step: u64,
    pub(super) count: u64,
}

impl Starts {
    /// A start by its place. If an I/O of this size would not end within the region from it, the
    /// last start from which it does is used.
    #[inline]
    pub(super) fn offset(self, place: u64) -> u64 {
        self.first + place.min(self.count - 1) * self.step
    }
}

/// The starts of every size in every region: all multiples of the stream's alignment from the region's
/// start, from which the I/O ends within the region.
#[derive(Clone, Debug)]
pub(super) struct StartGrid {
    sizes: usize,
    /// For each region, one for each size; the smallest size, which has the most, comes first.
    starts: Box<[Starts]>,
}

impl StartGrid {
    pub(super) fn new(plan: &WorkerPlan, stream: &Stream) -> Self {
        let step = stream.alignment().0;
        let sizes = distinct(&stream.block_sizes());
        let starts = |region: &Region| {
            let (first, length) = (region.offset.0, region.length.0);
            let of = move |&size: &u32| {
                let rest = length.checked_sub(u64::from(size)).expect("a region holds each block");
                Starts { first, step, count: rest / step + 1 }
            };
            sizes.iter().map(of).collect::<Vec<_>>()
        };
        Self { sizes: sizes.len(), starts: plan.regions.iter().flat_map(starts).collect() }
    }

    /// The starts of a size.
    #[inline]
    pub(super) fn starts(&self, region: usize, size: Size) -> Starts {
        self.starts[region * self.sizes + size.place]
    }

    /// The number of starts for the smallest size, in each region.
    pub(super) fn counts(&self) -> impl Iterator<Item = u64> {
        self.starts.iter().step_by(self.sizes).map(|starts| starts.count)
    }
}
