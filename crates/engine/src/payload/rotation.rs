//! The buffers through which writes rotate.

use super::dedup::SPREAD;
use super::{Dedup, HEADER, RandomContent, UNIT, fill};
use crate::memory::Deal;

/// The preparation of a unit before it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kept {
    /// It gets a new header.
    Never,
    /// It is written once without a change, because there are duplicates of it.
    Once,
    /// It stays: it is such a duplicate.
    Always,
}

/// How buffers lie in memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Frame {
    /// The length of each.
    pub(crate) length: usize,
    /// The distance from one to the next.
    pub(crate) stride: usize,
}

/// The places of the buffers, and their preparation. A place is counted in bytes from the first
/// one.
#[derive(Debug)]
pub(crate) struct Rotation {
    /// The places that no slot has, as a circle.
    spare: Box<[usize]>,
    /// The index of the next of these places.
    next: usize,
    /// The number of the writer.
    writer: u64,
    /// The number of units that were written.
    written: u64,
    /// For every unit of every buffer; empty if no unit is kept.
    kept: Box<[Kept]>,
    stride: usize,
    units: usize,
}

/// How many buffers each of the sharers of a rotation has, each with this many slots.
pub(crate) fn places(random: &RandomContent, slots: u32, stride: usize, deal: Deal) -> usize {
    let (among, which) = (deal.among as usize, deal.which as usize);
    let all = (random.rotation.0 / stride as u64) as usize;
    all.max(slots as usize * among).saturating_sub(which).div_ceil(among)
}

impl Rotation {
    /// Fills the buffers, and gives the slots the places that come last: writes take the others
    /// first, in their order. The writer's number has to be unique; the seed repeats the content.
    pub(crate) fn new(
        random: &RandomContent,
        Frame { length, stride }: Frame,
        (seed, writer): (u64, u64),
        deal: Deal,
        memory: &mut [u8],
        slots: &mut [usize],
    ) -> Self {
        let &RandomContent { compressible, dedup, commons, .. } = random;
        let units = length.div_ceil(UNIT);
        let places = memory.len() / stride;
        assert!(places >= slots.len());
        let mut kept = Vec::new();
        let mut numbers = Dedup::new(commons);
        let all = places * deal.among as usize;
        for place in 0..all {
            let (which, index) = (place % deal.among as usize, place / deal.among as usize);
            let own = which == deal.which as usize;
            let start = index * stride;
            for unit in 0..units {
                // The units of each sharer's buffers have its share by themselves: short blocks use
                // the first ones alone, and slots are not equally fast.
                let phase = ((which * units + unit) as f64 * SPREAD).fract();
                let duplicate = Dedup::is_duplicate(dedup, index as u64, phase);
                let number = numbers.next(duplicate);
                if !own {
                    continue;
                }
                let first = start + unit * UNIT;
                let content = &mut memory[first..(first + UNIT).min(start + length)];
                fill(seed, number, compressible, content);
                kept.push(match duplicate {
                    _ if dedup == 0.0 => Kept::Never,
                    true => Kept::Always,
                    false if numbers.is_common(number) => Kept::Once,
                    false => Kept::Never,
                });
            }
        }
        if kept.iter().all(|kept| *kept == Kept::Never) {
            kept.clear();
        }
        let spare = places - slots.len();
        slots.iter_mut().enumerate().for_each(|(slot, at)| *at = (spare + slot) * stride);
        Self {
            spare: (0..spare).map(|place| place * stride).collect(),
            next: 0,
            writer,
            written: 0,
            kept: kept.into(),
            stride,
            units,
        }
    }

    /// The place that a slot writes from next, given its last place.
    #[inline]
    pub(crate) fn turn(&mut self, place: usize) -> usize {
        if self.spare.is_empty() {
            return place;
        }
        let next = std::mem::replace(&mut self.spare[self.next], place);
        self.next += 1;
        if self.next == self.spare.len() {
            self.next = 0;
        }
        next
    }

    /// Makes the content at this place different from everything that was written before, except
    /// for the duplicates.
    #[inline]
    pub(crate) fn mark(&mut self, place: usize, buffer: &mut [u8]) {
        if !self.kept.is_empty() {
            return self.mark_some(place, buffer);
        }
        for unit in buffer.chunks_mut(UNIT) {
            self.written += 1;
            head(unit, self.writer, self.written);
        }
    }

    #[inline(never)]
    fn mark_some(&mut self, place: usize, buffer: &mut [u8]) {
        let first = place / self.stride * self.units;
        for (unit, kept) in buffer.chunks_mut(UNIT).zip(&mut self.kept[first..]) {
            match kept {
                Kept::Always => {}
                Kept::Once => *kept = Kept::Never,
                Kept::Never => {
                    self.written += 1;
                    head(unit, self.writer, self.written);
                }
            }
        }
    }
}

#[inline]
fn head(unit: &mut [u8], writer: u64, written: u64) {
    if let Some((header, _)) = unit.split_first_chunk_mut::<HEADER>() {
        header[..8].copy_from_slice(&writer.to_le_bytes());
        header[8..].copy_from_slice(&written.to_le_bytes());
    }
}
