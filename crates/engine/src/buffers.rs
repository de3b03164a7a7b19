//! The memory that I/Os move: one aligned buffer for each slot, filled with what cannot be
//! compressed, so that a target that compresses does not look faster than it is.

use std::io;

use fathom_core::Bytes;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

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
}

impl Buffers {
    /// Allocates and fills buffers for `slots` I/Os of up to `length` bytes.
    ///
    /// # Errors
    ///
    /// When there is not so much memory.
    pub(crate) fn new(slots: u32, length: Bytes, alignment: usize, seed: u64) -> io::Result<Self> {
        assert!(alignment.is_power_of_two() && alignment >= PAGE);
        let out_of_memory = || {
            let message = format!(
                "there is not enough memory for {slots} buffers of {length}: lower the queue depth \
                 or the block size"
            );
            io::Error::new(io::ErrorKind::OutOfMemory, message)
        };
        let length = usize::try_from(length.0).map_err(|_| out_of_memory())?;
        let stride = length.checked_next_multiple_of(alignment).ok_or_else(out_of_memory)?;
        let total = stride
            .checked_mul(slots as usize)
            .and_then(|total| total.checked_add(alignment))
            .ok_or_else(out_of_memory)?;
        let mut memory = Vec::new();
        memory.try_reserve_exact(total).map_err(|_| out_of_memory())?;
        memory.resize(total, 0);
        let start = memory.as_ptr().align_offset(alignment);
        assert!(start < alignment);
        // From the first buffer on, so that the content does not depend on where the allocation is.
        Xoshiro256PlusPlus::seed_from_u64(seed).fill_bytes(&mut memory[start..]);
        Ok(Self { memory, start, stride, length, slots })
    }

    /// The buffer of a slot.
    #[inline]
    pub(crate) fn get(&mut self, slot: u32) -> &mut [u8] {
        assert!(slot < self.slots);
        let start = self.start + slot as usize * self.stride;
        &mut self.memory[start..start + self.length]
    }

    /// How many buffers there are.
    pub(crate) fn slots(&self) -> u32 {
        self.slots
    }

    /// How long each is.
    pub(crate) fn length(&self) -> usize {
        self.length
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
    use super::*;

    #[test]
    fn buffers_are_aligned_apart_and_unlike_each_other() {
        let mut buffers = Buffers::new(5, Bytes(6000), 8192, 1).unwrap();
        let mut contents = Vec::new();
        for slot in 0..5 {
            let buffer = buffers.get(slot);
            assert_eq!(buffer.len(), 6000);
            assert_eq!(buffer.as_ptr().addr() % 8192, 0);
            contents.push(buffer.to_vec());
        }
        for slot in 0..5 {
            assert_eq!(buffers.get(slot), contents[slot as usize]);
            assert!((0..slot).all(|other| contents[other as usize] != contents[slot as usize]));
        }
        // Random bytes use every value about equally often: 6000 / 256 is 23.
        let mut counts = [0u32; 256];
        contents[0].iter().for_each(|byte| counts[usize::from(*byte)] += 1);
        assert!(counts.iter().all(|count| *count < 80), "{counts:?}");
    }

    #[test]
    fn the_seed_repeats_the_content() {
        let content = |seed| Buffers::new(2, Bytes(512), PAGE, seed).unwrap().get(1).to_vec();
        assert_eq!(content(1), content(1));
        assert_ne!(content(1), content(2));
    }

    #[test]
    fn more_than_there_is_memory_is_an_error() {
        for (slots, length) in [(4096, u64::MAX), (u32::MAX, 1 << 40), (2, 1 << 62)] {
            let error = Buffers::new(slots, Bytes(length), PAGE, 1).unwrap_err();
            assert!(error.to_string().contains("lower the queue depth"), "{error}");
        }
    }
}
