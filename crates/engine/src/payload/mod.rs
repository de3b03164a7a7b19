//! The payload: by default no two blocks of 4 KiB are equal, none can be compressed, and none
//! resembles another one that a compressor could see together with it.
//!
//! Random bytes for every write would cost more than the rest of the loop. So each worker has more
//! buffers than it has slots, all different, and its writes rotate through them: the content of a
//! buffer comes again only after megabytes of other data. Before each write every 4 KiB gets a new
//! header, so that no block ever equals another one, at the cost of 16 bytes in 4096.

mod dedup;
mod rotation;

use std::fs::File;
use std::io::{self, Read};
use std::ops::Deref;
use std::sync::Arc;

use fathom_core::Bytes;
use fathom_core::spec::{self, Region};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

use crate::memory::{Memory, Purpose};
pub(crate) use dedup::Dedup;
pub(crate) use rotation::{Frame, Rotation, places};

/// The unit in which devices look for equal blocks.
pub(crate) const UNIT: usize = 4096;

/// The header that makes a unit unique: the writer, and the number of units that it had written.
const HEADER: usize = 16;

/// The buffers for writes of all workers of a run together. The content of one comes again only
/// after this much: more than zstd looks back at its default level, and of random writes that lie
/// in the same 128 KiB only one in seventy resembles another.
const ROTATION: Bytes = Bytes(8 * Bytes::MIB);
/// The least share of a worker.
const ROTATION_MIN: Bytes = Bytes(Bytes::MIB);

/// The number of different blocks that all duplicates are taken from, at most: few enough to be
/// found again soon, and more than a compressor sees together.
pub(crate) const COMMONS: u64 = 256;
/// The number of blocks that a common block stands for in the region, at least: if most of the data
/// is overwritten, the first remaining block of each kind is not a duplicate.
const BLOCKS_PER_COMMON: u64 = 128;

/// The content of the buffers for writes, and its change between two writes.
#[derive(Clone, Debug, PartialEq)]
pub enum Content {
    /// Random bytes in units of 4 KiB.
    Random(RandomContent),
    /// These bytes over and over, from the start of each buffer. They never change.
    Repeated(Arc<[u8]>),
    /// Each write takes its bytes from a random place in this pool.
    Pool(Arc<Pool>),
}

/// The bytes that all workers of a stream write from. They begin at a page and never change.
#[derive(Debug)]
pub struct Pool {
    memory: Memory,
    start: usize,
    length: usize,
}

/// Random bytes of which a share can be saved.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RandomContent {
    /// The share of each unit that a compressor saves.
    pub compressible: f64,
    /// The share of units that equal one before them.
    pub dedup: f64,
    /// The number of different units that all those are copies of.
    pub commons: u64,
    /// The total length of the buffers in the rotation, unless there are more slots.
    pub rotation: Bytes,
}

impl Content {
    /// Random bytes of which no compressor saves anything, and no two units alike.
    pub const RANDOM: Self = Self::Random(RandomContent {
        compressible: 0.0,
        dedup: 0.0,
        commons: 1,
        rotation: ROTATION_MIN,
    });

    /// Makes the payload of a stream's workers; a pool is in large pages if these were requested.
    ///
    /// # Errors
    ///
    /// When the source file cannot be read, or is empty, and when there is too little memory.
    pub(crate) fn load(payload: &spec::Payload, seed: u64, large_pages: bool) -> io::Result<Self> {
        Ok(match payload {
            spec::Payload::Random { compressible, dedup } => Self::Random(RandomContent {
                compressible: *compressible,
                dedup: *dedup,
                commons: COMMONS,
                rotation: ROTATION,
            }),
            spec::Payload::Zeros => Self::Repeated(Arc::from([0])),
            spec::Payload::Pattern(bytes) => Self::Repeated(Arc::from(&**bytes)),
            spec::Payload::Pool { size, file: None } => {
                let mut pool = Pool::zeros(*size, large_pages)?;
                Xoshiro256PlusPlus::seed_from_u64(seed).fill_bytes(pool.bytes_mut());
                Self::Pool(Arc::new(pool))
            }
            spec::Payload::Pool { size, file: Some(path) } => {
                let mut file = File::open(path)?;
                let mut pool = Pool::zeros(*size, large_pages)?;
                pool.fill_from(&mut file)?;
                Self::Pool(Arc::new(pool))
            }
        })
    }

    /// The part of it for one of this many workers, which write to these regions.
    pub(crate) fn share(&self, workers: u32, regions: &[Region], lockable: Option<u64>) -> Self {
        let mut own = self.clone();
        if let Self::Random(RandomContent { commons, rotation, .. }) = &mut own {
            let workers = u64::from(workers.max(1));
            let units = regions.iter().map(|region| region.length.0).sum::<u64>() / UNIT as u64;
            *commons = (units / (BLOCKS_PER_COMMON * workers)).clamp(1, COMMONS);
            // Buffers that are registered with a ring count against the limit of lockable memory,
            // of which they may have half.
            let all = lockable.map_or(rotation.0, |limit| rotation.0.min(limit / 16 * 7));
            *rotation = Bytes((all / workers).clamp(ROTATION_MIN.0.min(all), rotation.0));
        }
        own
    }
}

impl Pool {
    fn zeros(size: Bytes, large_pages: bool) -> io::Result<Self> {
        let out_of_memory = || {
            let message =
                format!("there is not enough memory for a pool of {size}: choose a smaller one");
            io::Error::new(io::ErrorKind::OutOfMemory, message)
        };
        let length = usize::try_from(size.0).map_err(|_| out_of_memory())?;
        let whole = length.checked_add(UNIT).ok_or_else(out_of_memory)?;
        let memory = match large_pages {
            true => Memory::large(whole, Purpose::Pool)?,
            false => Memory::usual(whole).ok_or_else(out_of_memory)?,
        };
        let start = memory.address(0, 0).align_offset(UNIT);
        Ok(Self { memory, start, length })
    }

    /// A pool of these bytes.
    #[cfg(test)]
    pub(crate) fn of(bytes: &[u8]) -> Self {
        let mut pool = Self::zeros(Bytes(bytes.len() as u64), false).expect("there is memory");
        pool.bytes_mut().copy_from_slice(bytes);
        pool
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        self.memory.part_mut(self.start, self.length)
    }

    /// Fills it from a reader; a shorter source repeats until it is full.
    fn fill_from(&mut self, source: &mut impl Read) -> io::Result<()> {
        let bytes = self.bytes_mut();
        let mut read = 0;
        while read < bytes.len() {
            match source.read(&mut bytes[read..]) {
                Ok(0) => break,
                Ok(more) => read += more,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        if read == 0 {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "it is empty"));
        }
        while read < bytes.len() {
            // All existing content, so that it doubles; a whole number of times the source.
            let more = read.min(bytes.len() - read);
            bytes.copy_within(..more, read);
            read += more;
        }
        Ok(())
    }
}

impl Deref for Pool {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        self.memory.part(self.start, self.length)
    }
}

impl PartialEq for Pool {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

/// Fills a unit: the first part is random and follows from the seed and its number; the rest, as
/// much as a compressor is to save, is zeros.
pub(crate) fn fill(seed: u64, number: u64, compressible: f64, unit: &mut [u8]) {
    let random = (unit.len() as f64 * (1.0 - compressible)).round() as usize;
    let (random, rest) = unit.split_at_mut(random.max(HEADER).min(unit.len()));
    let mark = (number + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    Xoshiro256PlusPlus::seed_from_u64(seed ^ mark).fill_bytes(random);
    rest.fill(0);
}
