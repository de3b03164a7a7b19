//! The I/Os that a worker has in flight: its slots, and which of them are free.
//!
//! It owns the slots alone. Other parts decide when an I/O may start, and record its outcome.

use fathom_core::Instant;

use crate::pattern::Request;

/// One I/O, as long as it is in flight and until its slot is taken again.
#[derive(Clone, Copy, Default)]
pub(super) struct Started {
    /// When it should have started; without meaning in a closed loop.
    pub(super) intended: Instant,
    /// When it was submitted.
    pub(super) submitted: Instant,
    /// Its request.
    pub(super) request: Request,
}

/// The slots of one worker: as many as its queue depth.
pub(super) struct Slots {
    all: Box<[Started]>,
    /// The slots' numbers. The first `free` are free, and the latest started ones lie behind them.
    order: Box<[u32]>,
    free: usize,
}

impl Slots {
    /// All of them free.
    pub(super) fn new(depth: u32) -> Self {
        Self {
            all: vec![Started::default(); depth as usize].into(),
            order: (0..depth).rev().collect(),
            free: depth as usize,
        }
    }

    /// How many there are.
    #[inline]
    pub(super) fn count(&self) -> usize {
        self.all.len()
    }

    /// How many are free.
    #[inline]
    pub(super) fn free(&self) -> usize {
        self.free
    }

    /// How many I/Os are in flight.
    #[inline]
    pub(super) fn in_flight(&self) -> u64 {
        (self.all.len() - self.free) as u64
    }

    /// The I/O of a slot: the one in flight, or the last one.
    #[inline]
    pub(super) fn get(&self, slot: u32) -> &Started {
        &self.all[slot as usize]
    }

    /// The free slots that the next I/Os, this many, will have.
    #[inline]
    pub(super) fn next(&self, count: usize) -> &[u32] {
        &self.order[self.free - count..self.free]
    }

    /// The slots of the I/Os that were started last, this many, if none came back since.
    #[inline]
    pub(super) fn latest(&self, count: usize) -> &[u32] {
        &self.order[self.free..self.free + count]
    }

    /// These I/Os start in the next free slots, which are reported one by one.
    #[inline]
    pub(super) fn start(
        &mut self,
        requests: &[Request],
        submitted: Instant,
        mut starts: impl FnMut(u32),
    ) {
        let end = self.free;
        self.free -= requests.len();
        for (&slot, &request) in self.order[self.free..end].iter().zip(requests) {
            starts(slot);
            let slot = &mut self.all[slot as usize];
            slot.request = request;
            slot.submitted = submitted;
        }
    }

    /// Keeps the due times of the I/Os that were started last.
    #[inline]
    pub(super) fn note_intended(&mut self, intended: &[Instant]) {
        let slots = &self.order[self.free..self.free + intended.len()];
        for (&slot, &intended) in slots.iter().zip(intended) {
            self.all[slot as usize].intended = intended;
        }
    }

    /// Puts a slot behind the first `free`, which are free. It is not counted among them until
    /// [`Self::set_free`]: a loop over many completions keeps the count in a register.
    #[inline]
    pub(super) fn put_back(&mut self, free: usize, slot: u32) {
        self.order[free] = slot;
    }

    /// Counts the slots that were put back until now.
    #[inline]
    pub(super) fn set_free(&mut self, free: usize) {
        self.free = free;
    }

    /// Frees a slot.
    pub(super) fn free_one(&mut self, slot: u32) {
        self.put_back(self.free, slot);
        self.free += 1;
    }

    /// By slot, whether its I/O is in flight.
    pub(super) fn busy(&self) -> Box<[bool]> {
        let mut busy: Box<[bool]> = vec![false; self.count()].into();
        self.note_busy(&mut busy);
        busy
    }

    /// The same, for a caller with its own memory.
    pub(super) fn note_busy(&self, busy: &mut [bool]) {
        busy.fill(true);
        self.order[..self.free].iter().for_each(|&slot| busy[slot as usize] = false);
    }
}
