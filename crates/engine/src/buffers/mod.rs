//! The memory that I/Os move: aligned buffers for each slot; those for writes are filled with the
//! payload.
//!
//! A slot always reads into the same buffer. It may write from another place each time: the next
//! one of a rotation, or any place of a pool that all workers share.

pub(crate) mod lent;

use std::io;
use std::sync::Arc;

use fathom_core::Bytes;
use fathom_core::measure::Direction;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

use crate::backend::Shape;
use crate::memory::{Deal, Memory, Purpose};
use crate::open_target::OpenTarget;
use crate::payload::{Content, Frame, Pool, Rotation, places};

/// The least alignment of a buffer: a page, which every device accepts and which keeps buffers from
/// sharing a page when the kernel pins them.
const PAGE: usize = 4096;

/// The alignment that direct I/O requires of memory and lengths on all usual devices.
const SECTOR: usize = 512;

/// The most that a ring registers as one buffer.
const AREA: usize = 1 << 30;

/// One allocation that holds the buffers of all slots.
#[derive(Debug)]
pub(crate) struct Buffers {
    memory: Memory,
    /// The start of the first buffer: the allocation itself is not aligned.
    start: usize,
    frame: Frame,
    slots: u32,
    /// The length of all buffers for reads together.
    reads: usize,
    /// The length of all buffers for writes together, which lie behind those for reads.
    writes: usize,
    areas: Areas,
    /// The place among the buffers for writes, or in the pool, from which each slot writes.
    places: Box<[usize]>,
    refill: Refill,
}

/// How the memory is divided into the areas that a ring registers. Settled once: every write from
/// another place asks for its area.
#[derive(Debug)]
struct Areas {
    /// The length of an area of buffers.
    length: usize,
    /// The number of areas with buffers for reads. The others come after them.
    of_reads: usize,
    /// The distance between the starts of the areas of a pool. None if a ring cannot register it.
    pool_step: Option<usize>,
}

/// The preparation of a slot's buffer for a write.
#[derive(Debug)]
enum Refill {
    /// Nothing.
    Stay,
    /// The slot takes the next one.
    Rotate(Rotation),
    /// The slot takes any place of the pool.
    Wander {
        /// The pool.
        pool: Arc<Pool>,
        /// Chooses the place.
        random: Xoshiro256PlusPlus,
        /// The number of places, a sector apart.
        room: usize,
    },
}

impl Buffers {
    /// Allocates the buffers of a backend, aligned for its targets, and fills those for writes.
    ///
    /// # Errors
    ///
    /// When there is too little memory.
    pub(crate) fn new(shape: &Shape, alignment: usize) -> io::Result<Self> {
        Self::dealt(shape, alignment, Deal::ALL)
    }

    /// The same for one of several sharers that have one worker's buffers together.
    ///
    /// # Errors
    ///
    /// When there is too little memory.
    pub(crate) fn dealt(shape: &Shape, alignment: usize, deal: Deal) -> io::Result<Self> {
        assert!(alignment.is_power_of_two() && alignment >= PAGE);
        let length = shape.block_size as usize;
        let frame = Frame { length, stride: length.next_multiple_of(alignment) };
        let out_of_memory = || {
            let message = format!(
                "there is not enough memory for {} buffers of {}: lower the queue depth or the \
                 block size",
                u64::from(shape.reads) * u64::from(shape.slots)
                    + u64::from(shape.writes) * u64::from(shape.slots),
                Bytes(frame.stride as u64)
            );
            io::Error::new(io::ErrorKind::OutOfMemory, message)
        };
        let set = frame.stride.checked_mul(shape.slots as usize).ok_or_else(out_of_memory)?;
        let reads = if shape.reads { set } else { 0 };
        let writes = match (&shape.content, shape.writes) {
            (_, false) => 0,
            (Content::Random(random), true) => places(random, shape.slots, frame.stride, deal)
                .checked_mul(frame.stride)
                .ok_or_else(out_of_memory)?,
            (Content::Repeated(_), true) => set,
            // It lies elsewhere, and exists already.
            (Content::Pool(_), true) => 0,
        };
        let total = reads
            .checked_add(writes)
            .and_then(|total| total.checked_add(alignment))
            .ok_or_else(out_of_memory)?;
        let memory = match shape.large_pages {
            true => Memory::large(total, Purpose::Buffers(deal))?,
            false => Memory::usual(total).ok_or_else(out_of_memory)?,
        };
        let start = memory.address(0, 0).align_offset(alignment);
        assert!(start < alignment);
        let mut buffers = Self {
            memory,
            start,
            frame,
            slots: shape.slots,
            reads,
            writes,
            areas: Areas::new(frame, reads, &shape.content),
            places: vec![0; shape.slots as usize].into(),
            refill: Refill::Stay,
        };
        if shape.writes {
            buffers.fill(shape, deal);
        }
        Ok(buffers)
    }

    /// Fills the buffers for writes.
    fn fill(&mut self, shape: &Shape, deal: Deal) {
        // From the first buffer on, so that the content does not depend on where the allocation is.
        let first = self.start + self.reads;
        let written = self.memory.part_mut(first, self.writes);
        let seed = shape.seed;
        // An odd factor keeps the seeds of neighboring slots and workers apart.
        let writer = seed ^ u64::from(deal.which).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let stride = self.frame.stride;
        self.refill = match &shape.content {
            Content::Random(random) => {
                let seeds = (seed, writer);
                let places = &mut self.places;
                Refill::Rotate(Rotation::new(random, self.frame, seeds, deal, written, places))
            }
            Content::Repeated(bytes) => {
                for (slot, buffer) in written.chunks_mut(stride).enumerate() {
                    buffer.iter_mut().zip(bytes.iter().cycle()).for_each(|(to, from)| *to = *from);
                    self.places[slot] = slot * stride;
                }
                Refill::Stay
            }
            Content::Pool(pool) => {
                assert!(self.frame.length <= pool.len(), "a pool has room for a block");
                Refill::Wander {
                    room: (pool.len() - self.frame.length) / SECTOR + 1,
                    pool: Arc::clone(pool),
                    random: Xoshiro256PlusPlus::seed_from_u64(writer),
                }
            }
        };
    }

    /// Prepares a write of this many bytes: gives the slot other content, if there is any. Returns
    /// whether the slot's buffer is somewhere else now.
    #[inline]
    pub(crate) fn refresh(&mut self, slot: u32, length: u32) -> bool {
        let place = &mut self.places[slot as usize];
        match &mut self.refill {
            Refill::Stay => false,
            Refill::Rotate(rotation) => {
                *place = rotation.turn(*place);
                let first = self.start + self.reads + *place;
                rotation.mark(*place, self.memory.part_mut(first, length as usize));
                true
            }
            Refill::Wander { random, room, .. } => {
                let chosen = (u128::from(random.next_u64()) * *room as u128) >> 64;
                *place = chosen as usize * SECTOR;
                true
            }
        }
    }

    /// The start of a slot's buffer, counted from the first one; data from a pool lies elsewhere.
    #[inline]
    fn offset(&self, direction: Direction, slot: u32) -> usize {
        assert!(slot < self.slots);
        match direction {
            Direction::Read if 0 < self.reads => slot as usize * self.frame.stride,
            // A slot without writes has no buffer for writes, and one without reads has none for
            // reads.
            Direction::Write if self.writes == 0 => slot as usize * self.frame.stride,
            Direction::Read | Direction::Write => self.reads + self.places[slot as usize],
        }
    }

    /// The buffer that a slot reads into or writes from; the content of a pool must not be changed.
    #[inline]
    pub(crate) fn get(&mut self, direction: Direction, slot: u32) -> &mut [u8] {
        let is_shared = matches!(self.refill, Refill::Wander { .. });
        assert!(direction == Direction::Read || !is_shared, "all workers write what is in a pool");
        let start = self.start + self.offset(direction, slot);
        self.memory.part_mut(start, self.frame.length)
    }

    /// The data that a slot writes.
    #[inline]
    pub(crate) fn content(&self, slot: u32) -> &[u8] {
        if let Refill::Wander { pool, .. } = &self.refill {
            let place = self.places[slot as usize];
            return &pool[place..place + self.frame.length];
        }
        let start = self.start + self.offset(Direction::Write, slot);
        self.memory.part(start, self.frame.length)
    }

    /// The place that it reads into or writes from.
    #[inline]
    pub(crate) fn address(&self, direction: Direction, slot: u32) -> *mut u8 {
        match &self.refill {
            // A write takes data out of it and changes nothing. A slot without reads has no place
            // for reads, and uses none.
            Refill::Wander { .. } if direction == Direction::Write || self.reads == 0 => {
                self.content(slot).as_ptr().cast_mut()
            }
            // No reference, which would claim exclusive access.
            _ => {
                let start = self.start + self.offset(direction, slot);
                self.memory.address(start, self.frame.length)
            }
        }
    }

    /// The length of each.
    #[inline]
    pub(crate) fn length(&self) -> usize {
        self.frame.length
    }

    /// All memory in the areas that a ring can register, each buffer whole in one of them; none if
    /// blocks of a pool are too long for that.
    pub(crate) fn areas(&self) -> Vec<(*mut u8, usize)> {
        let Areas { length, pool_step, .. } = self.areas;
        let parts = |from: usize, to: usize| {
            (from..to).step_by(length).map(move |start| (start, length.min(to - start)))
        };
        let written = parts(self.reads, self.reads + self.writes);
        let mut areas: Vec<(*mut u8, usize)> = parts(0, self.reads)
            .chain(written)
            .map(|(start, length)| (self.memory.address(self.start + start, length), length))
            .collect();
        if let Refill::Wander { pool, .. } = &self.refill {
            let Some(step) = pool_step else { return Vec::new() };
            let last = pool.len() - self.frame.length;
            areas.extend((0..=last / step).map(|area| {
                let from = area * step;
                (pool[from..].as_ptr().cast_mut(), AREA.min(pool.len() - from))
            }));
        }
        areas
    }

    /// The area that contains a slot's buffer.
    #[inline]
    pub(crate) fn area(&self, direction: Direction, slot: u32) -> u16 {
        let Areas { length, of_reads, pool_step } = self.areas;
        let area = match &self.refill {
            Refill::Wander { .. } if direction == Direction::Write || self.reads == 0 => {
                of_reads + pool_step.map_or(0, |step| self.places[slot as usize] / step)
            }
            _ => {
                let offset = self.offset(direction, slot);
                match offset.checked_sub(self.reads) {
                    None => offset / length,
                    Some(written) => of_reads + written / length,
                }
            }
        };
        area as u16
    }
}

impl Areas {
    /// For buffers of this shape, this many bytes of them for reads, and for a pool, if there is
    /// one.
    fn new(frame: Frame, reads: usize, content: &Content) -> Self {
        let length = (AREA / frame.stride).max(1) * frame.stride;
        let pool_step = match content {
            Content::Pool(pool) => frame.overlapping(pool.len()),
            Content::Random(_) | Content::Repeated(_) => None,
        };
        Self { length, of_reads: reads.div_ceil(length), pool_step }
    }
}

impl Frame {
    /// The distance between the starts of the areas in which a pool of this length is registered: a
    /// buffer may be anywhere in it, so that areas overlap by one. None if that is impossible.
    fn overlapping(&self, pool: usize) -> Option<usize> {
        match pool <= AREA {
            true => Some(usize::MAX),
            false => {
                Some((AREA.checked_sub(self.length)?) / SECTOR * SECTOR).filter(|&s| s > AREA / 4)
            }
        }
    }
}

/// The alignment that buffers need for all of these targets.
///
/// # Errors
///
/// When a target asks for an alignment that is not a power of two.
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
    use std::collections::HashSet;
    use std::sync::Arc;

    use super::*;
    use crate::payload::RandomContent;

    fn shape(slots: u32, block_size: u32, reads: bool, writes: bool) -> Shape {
        Shape { slots, block_size, reads, writes, ..Shape::USUAL }
    }

    fn writing(slots: u32, block_size: u32, content: Content) -> Shape {
        Shape { content, ..shape(slots, block_size, false, true) }
    }

    fn random(compressible: f64, dedup: f64, rotation: u64) -> Content {
        Content::Random(RandomContent {
            compressible,
            dedup,
            commons: 64,
            rotation: Bytes(rotation),
        })
    }

    #[test]
    fn buffers_are_aligned_apart_and_unlike_each_other() {
        let mut buffers = Buffers::new(&shape(5, 6000, true, true), 8192).unwrap();
        let mut contents = Vec::new();
        for slot in 0..5 {
            buffers.refresh(slot, 6000);
            let address = buffers.address(Direction::Write, slot);
            let buffer = buffers.get(Direction::Write, slot);
            assert_eq!(buffer.len(), 6000);
            assert_eq!(buffer.as_ptr().addr() % 8192, 0);
            assert_eq!(buffer.as_mut_ptr(), address);
            contents.push(buffer.to_vec());
            let address = buffers.address(Direction::Read, slot);
            let buffer = buffers.get(Direction::Read, slot);
            assert_eq!(buffer.as_mut_ptr(), address);
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
    fn every_buffer_lies_in_its_area() {
        let pool = Content::Pool(Arc::new(Pool::of(&[1; 10_000])));
        for content in [Content::RANDOM, Content::Repeated(Arc::from([3, 4])), pool] {
            for (reads, writes) in [(true, false), (false, true), (true, true)] {
                let shape = Shape { content: content.clone(), ..shape(3, 4096, reads, writes) };
                let mut buffers = Buffers::new(&shape, PAGE).unwrap();
                let areas = buffers.areas();
                for (slot, direction) in (0..300).map(|n| (n % 3, Direction::BOTH[n as usize % 2]))
                {
                    buffers.refresh(slot, 4096);
                    let (start, length) = areas[usize::from(buffers.area(direction, slot))];
                    let at = buffers.address(direction, slot).addr() - start.addr();
                    assert!(at + 4096 <= length, "{direction:?}: {at} of {length}");
                }
            }
        }
    }

    #[test]
    fn the_seed_repeats_the_content() {
        let content = |seed| {
            let shape = Shape { seed, ..shape(2, 512, false, true) };
            let mut buffers = Buffers::new(&shape, PAGE).unwrap();
            buffers.refresh(1, 512);
            buffers.get(Direction::Write, 1).to_vec()
        };
        assert_eq!(content(1), content(1));
        assert_ne!(content(1), content(2));
    }

    #[test]
    fn more_than_there_is_memory_is_an_error() {
        let error = Buffers::new(&shape(u32::MAX, u32::MAX, true, true), PAGE).unwrap_err();
        assert!(error.to_string().contains("lower the queue depth"), "{error}");
    }

    /// The content of `count` writes of these lengths, with slots in an irregular order.
    fn written(parts: &mut [Buffers], slots: u32, lengths: &[u32], count: usize) -> Vec<Vec<u8>> {
        let mut units = Vec::new();
        for i in 0..count {
            let turn = (i * 7 / 3) as u32 % (slots * parts.len() as u32);
            let (part, slot) = (&mut parts[(turn / slots) as usize], turn % slots);
            let length = lengths[i % lengths.len()];
            part.refresh(slot, length);
            let buffer = &part.get(Direction::Write, slot)[..length as usize];
            units.extend(buffer.chunks(4096).map(<[u8]>::to_vec));
        }
        units
    }

    /// The share of units that equal an earlier unit.
    fn duplicates(units: &[Vec<u8>]) -> f64 {
        let different: HashSet<&Vec<u8>> = units.iter().collect();
        1.0 - different.len() as f64 / units.len() as f64
    }

    #[test]
    fn no_block_is_ever_written_twice() {
        for (slots, block, rotation) in [(1, 4096, 0), (3, 12_800, 1 << 18), (8, 512, 1 << 14)] {
            let shape = writing(slots, block, random(0.0, 0.0, rotation));
            let mut buffers = [Buffers::new(&shape, PAGE).unwrap()];
            let units = written(&mut buffers, slots, &[block], 600);
            assert_eq!(units.iter().collect::<HashSet<_>>().len(), units.len());
        }
    }

    #[test]
    fn slots_never_share_a_buffer_and_take_all_in_turn() {
        let shape = writing(4, 4096, random(0.0, 0.0, 16 * 4096));
        let mut buffers = Buffers::new(&shape, PAGE).unwrap();
        let mut used = HashSet::new();
        for write in 0..100 {
            buffers.refresh(write % 3, 4096);
            used.insert(buffers.address(Direction::Write, write % 3));
            let now: HashSet<_> =
                (0..4).map(|slot| buffers.address(Direction::Write, slot)).collect();
            assert_eq!(now.len(), 4);
        }
        // One slot was never free.
        assert_eq!(used.len(), 15);
    }

    #[test]
    fn what_is_written_at_different_times_does_not_resemble_each_other() {
        let shape = writing(1, 4096, random(0.0, 0.0, 1 << 20));
        let mut buffers = [Buffers::new(&shape, PAGE).unwrap()];
        let units = written(&mut buffers, 1, &[4096], 256);
        let bodies: HashSet<&[u8]> = units.iter().map(|unit| &unit[16..48]).collect();
        assert_eq!(bodies.len(), 256);
    }

    #[test]
    fn the_share_of_duplicates_is_as_asked_from_the_start_on() {
        for dedup in [0.05, 0.3, 0.5, 0.9] {
            for (slots, block) in [(1, 4096), (32, 4096), (4, 16_384), (1, 131_072), (8, 131_072)] {
                for count in [200, 3000] {
                    let shape = writing(slots, block, random(0.5, dedup, 4 << 20));
                    let mut buffers = [Buffers::new(&shape, PAGE).unwrap()];
                    let count = (count / (block as usize / 4096)).max(8);
                    let units = written(&mut buffers, slots, &[block], count);
                    let share = duplicates(&units);
                    let text = format!("{dedup} {slots} {block} {count}: {share}");
                    assert!((share - dedup).abs() <= 0.01 + 2.0 / units.len() as f64, "{text}");
                }
            }
        }
    }

    #[test]
    fn blocks_of_several_sizes_have_the_share_too() {
        let shape = writing(8, 65_536, random(0.0, 0.3, 8 << 20));
        let mut buffers = [Buffers::new(&shape, PAGE).unwrap()];
        let units = written(&mut buffers, 8, &[4096, 65_536, 4096, 4096, 8192, 4096], 6000);
        assert!((duplicates(&units) - 0.3).abs() < 0.02, "{}", duplicates(&units));
    }

    #[test]
    fn slots_that_have_their_own_buffers_have_the_share_together() {
        let shape = writing(1, 8192, random(0.0, 0.3, 4 << 20));
        let deal = |which| Buffers::dealt(&shape, PAGE, Deal { among: 8, which }).unwrap();
        let mut parts: Vec<Buffers> = (0..8).map(deal).collect();
        // All parts, and some of them as if the others were never free.
        for some in [0..8, 2..4, 7..8] {
            let units = written(&mut parts[some], 1, &[8192], 4000);
            assert!((duplicates(&units) - 0.3).abs() < 0.01, "{}", duplicates(&units));
        }
    }

    #[test]
    fn what_repeats_begins_anew_in_every_buffer() {
        let shape = writing(2, 10, Content::Repeated(Arc::from([1, 2, 3])));
        let mut buffers = Buffers::new(&shape, PAGE).unwrap();
        for slot in [0, 1, 0] {
            assert!(!buffers.refresh(slot, 10));
            assert_eq!(buffers.get(Direction::Write, slot), [1, 2, 3, 1, 2, 3, 1, 2, 3, 1]);
        }
    }

    #[test]
    fn a_pool_gives_what_is_at_any_of_its_places() {
        let bytes: Vec<u8> = (0..4096u32).flat_map(u32::to_le_bytes).collect();
        let pool = Arc::new(Pool::of(&bytes));
        let shape = writing(2, 4096, Content::Pool(Arc::clone(&pool)));
        let mut buffers = Buffers::new(&shape, PAGE).unwrap();
        let mut places = HashSet::new();
        for write in 0..1000 {
            assert!(buffers.refresh(write % 2, 512));
            let address = buffers.address(Direction::Write, write % 2);
            let buffer = buffers.content(write % 2);
            assert_eq!(buffer.as_ptr(), address.cast_const());
            let place = pool.windows(8).position(|window| window == &buffer[..8]).unwrap();
            assert_eq!(buffer, &pool[place..place + 4096]);
            assert!(place.is_multiple_of(512));
            places.insert(place);
        }
        // From the first to the last place where a block fits.
        assert_eq!(places.len(), (16_384 - 4096) / 512 + 1);
    }

    #[test]
    fn every_place_of_a_large_pool_is_in_an_area_of_its_own_ring() {
        for length in [4096, 65_536, AREA / 2] {
            let frame = Frame { length, stride: length };
            let pool = 3 * AREA + 512;
            let step = frame.overlapping(pool).unwrap();
            for place in [0, step - 512, step, AREA - length, 2 * step + 512, pool - length] {
                let from = place / step * step;
                assert!(from <= place && place + length <= from + AREA.min(pool - from), "{place}");
            }
        }
        assert_eq!(Frame { length: AREA, stride: AREA }.overlapping(2 * AREA), None);
    }
}
