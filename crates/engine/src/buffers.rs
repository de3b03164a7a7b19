//! The memory that I/Os move: aligned buffers for each slot, those for writes filled with what cannot be
//! compressed, so that a target that compresses does not look faster than it is.

use std::io;

use fathom_core::Bytes;
use fathom_core::measure::Direction;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

use crate::backend::Shape;
use crate::target::OpenTarget;

/// The least alignment of a buffer: a page, which every device accepts and which keeps buffers from
/// sharing a page when the kernel pins them.
const PAGE: usize = 4096;

/// One allocation that holds the buffers of all slots.
#[derive(Debug)]
pub(crate) struct Buffers {
    memory: Vec<u8>,
    /// Where the first buffer starts: the allocation itself is not aligned.
    start: usize,
    /// The distance between two buffers, a multiple of the alignment.
    stride: usize,
    length: usize,
    slots: u32,
    /// The place of slot 0's buffer for reads and for writes: the same where all I/Os have one
    /// direction.
    first: [u32; 2],
}

impl Buffers {
    /// Allocates the buffers of a backend, aligned for its targets, and fills those for writes.
    ///
    /// # Errors
    ///
    /// When there is not so much memory.
    pub(crate) fn new(shape: &Shape, alignment: usize) -> io::Result<Self> {
        assert!(alignment.is_power_of_two() && alignment >= PAGE);
        let length = shape.block_size as usize;
        let stride = length.next_multiple_of(alignment);
        let sets = if shape.reads && shape.writes { 2 } else { 1 };
        let out_of_memory = || {
            let message = format!(
                "there is not enough memory for {} buffers of {}: lower the queue depth or the \
                 block size",
                sets * u64::from(shape.slots),
                Bytes(stride as u64)
            );
            io::Error::new(io::ErrorKind::OutOfMemory, message)
        };
        let set = stride.checked_mul(shape.slots as usize).ok_or_else(out_of_memory)?;
        let total = set
            .checked_mul(sets as usize)
            .and_then(|total| total.checked_add(alignment))
            .ok_or_else(out_of_memory)?;
        let mut memory = Vec::new();
        memory.try_reserve_exact(total).map_err(|_| out_of_memory())?;
        // Touches every page, so that none has to be found while I/Os are timed.
        memory.resize(total, 0);
        let start = memory.as_ptr().align_offset(alignment);
        assert!(start < alignment);
        if shape.writes {
            // From the first buffer on, so that the content does not depend on where the
            // allocation is.
            let written = &mut memory[start..start + set];
            Xoshiro256PlusPlus::seed_from_u64(shape.seed).fill_bytes(written);
        }
        let first = [if sets == 2 { shape.slots } else { 0 }, 0];
        Ok(Self { memory, start, stride, length, slots: shape.slots, first })
    }

    /// The place of a slot's buffer among all.
    #[inline]
    pub(crate) fn place(&self, direction: Direction, slot: u32) -> u32 {
        assert!(slot < self.slots);
        self.first[direction as usize] + slot
    }

    /// The buffer that a slot reads into or writes from.
    #[inline]
    pub(crate) fn get(&mut self, direction: Direction, slot: u32) -> &mut [u8] {
        let start = self.start + self.place(direction, slot) as usize * self.stride;
        &mut self.memory[start..start + self.length]
    }

    /// How long each is.
    pub(crate) fn length(&self) -> usize {
        self.length
    }

    /// Where each is, in the order of their places.
    pub(crate) fn addresses(&mut self) -> Vec<*mut u8> {
        let count = self.slots + self.first[0];
        (0..count as usize)
            .map(|place| {
                let start = self.start + place * self.stride;
                self.memory[start..start + self.length].as_mut_ptr()
            })
            .collect()
    }
}

/// What the buffers have to be aligned to for all of these targets.
///
/// # Errors
///
/// When a target asks for what is no power of two.
pub(crate) fn alignment(targets: &[OpenTarget]) -> io::Result<usize> {
    let mut alignment = PAGE;
    for target in targets {
        let wanted = usize::try_from(target.alignment.0).unwrap_or(usize::MAX).max(1);
        if !wanted.is_power_of_two() {
            let message = format!(
                "{} asks for memory aligned to {}, which is no power of two",
                target.name, target.alignment
            );
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        }
        alignment = alignment.max(wanted);
    }
    Ok(alignment)
}

#[cfg(test)]
mod tests {
    use fathom_core::spec::RingMode;

    use super::*;

    fn shape(slots: u32, block_size: u32, reads: bool, writes: bool) -> Shape {
        Shape { slots, block_size, reads, writes, seed: 1, ring: RingMode::USUAL }
    }

    #[test]
    fn buffers_are_aligned_apart_and_unlike_each_other() {
        let mut buffers = Buffers::new(&shape(5, 6000, true, true), 8192).unwrap();
        let addresses = buffers.addresses();
        assert_eq!(addresses.len(), 10);
        let mut contents = Vec::new();
        for slot in 0..5 {
            let place = buffers.place(Direction::Write, slot) as usize;
            let buffer = buffers.get(Direction::Write, slot);
            assert_eq!(buffer.len(), 6000);
            assert_eq!(buffer.as_ptr().addr() % 8192, 0);
            assert_eq!(buffer.as_mut_ptr(), addresses[place]);
            contents.push(buffer.to_vec());
            let place = buffers.place(Direction::Read, slot) as usize;
            let buffer = buffers.get(Direction::Read, slot);
            assert_eq!(buffer.as_mut_ptr(), addresses[place]);
            buffer.fill(7);
        }
        for slot in 0..5 {
            assert_eq!(buffers.get(Direction::Write, slot), contents[slot as usize]);
            assert_eq!(buffers.get(Direction::Read, slot), [7; 6000]);
            assert!((0..slot).all(|other| contents[other as usize] != contents[slot as usize]));
        }
        // Random bytes use every value about equally often: 6000 / 256 is 23.
        let mut counts = [0u32; 256];
        contents[0].iter().for_each(|byte| counts[usize::from(*byte)] += 1);
        assert!(counts.iter().all(|count| *count < 80), "{counts:?}");
    }

    #[test]
    fn one_direction_has_one_buffer_for_each_slot() {
        for (reads, writes) in [(true, false), (false, true)] {
            let mut buffers = Buffers::new(&shape(3, 512, reads, writes), PAGE).unwrap();
            assert_eq!(buffers.addresses().len(), 3);
            let write = buffers.get(Direction::Write, 2).as_mut_ptr();
            assert_eq!(buffers.get(Direction::Read, 2).as_mut_ptr(), write);
        }
    }

    #[test]
    fn the_seed_repeats_the_content() {
        let content = |seed| {
            let shape = Shape { seed, ..shape(2, 512, false, true) };
            Buffers::new(&shape, PAGE).unwrap().get(Direction::Write, 1).to_vec()
        };
        assert_eq!(content(1), content(1));
        assert_ne!(content(1), content(2));
    }

    #[test]
    fn more_than_there_is_memory_is_an_error() {
        let error = Buffers::new(&shape(u32::MAX, u32::MAX, true, true), PAGE).unwrap_err();
        assert!(error.to_string().contains("lower the queue depth"), "{error}");
    }
}
