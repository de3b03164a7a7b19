//! Samples of a target's content: read before a run, without the page cache if possible, so that a
//! run that reads nothing but zeros or one block over and over is detected.
//!
//! Never writes, never reads more than some hundred blocks, and never takes long.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::time::{Duration, Instant};

use fathom_core::Bytes;
use fathom_core::facts::{Content, Target, TargetKind};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use rustix::fs::{Advice, fadvise};

/// The size of a sample: the unit in which devices look for equal blocks.
const UNIT: u64 = 4096;
/// Samples of a target, at most.
const SAMPLES: usize = 256;
/// Samples of all targets together, at most, if there are many.
const SAMPLES_OF_ALL: usize = 2048;
/// A target among many has at least this many.
const SAMPLES_LEAST: usize = 4;
/// With fewer samples of a target than this, sampling goes on beyond its usual time.
const SAMPLES_ENOUGH: usize = 64;
/// The time for all targets together, and the longest time if too few blocks were read by then.
const TIME: Duration = Duration::from_millis(100);
const TIME_MOST: Duration = Duration::from_secs(1);
/// A block counts as patterned if it repeats itself after this many bytes or fewer.
const PERIOD_MAX: usize = 512;
/// The share that an entropy coder saves of random bytes by chance is less than this.
const BY_CHANCE: f64 = 0.03;

/// A range of a target: from one byte up to another.
pub type ByteRange = (u64, u64);

/// Samples of the targets' content in these ranges, which may overlap: none for a target of which
/// no block could be read in time.
pub fn contents(targets: &[(&Target, Vec<ByteRange>)], seed: u64) -> Vec<Option<Content>> {
    let start = Instant::now();
    let count = targets.len().max(1);
    let most = (SAMPLES_OF_ALL / count).clamp(SAMPLES_LEAST, SAMPLES);
    let enough = (SAMPLES_ENOUGH / count).max(SAMPLES_LEAST);
    let sample = |(place, (target, ranges)): (usize, &(&Target, Vec<ByteRange>))| {
        // The time that one target does not use goes to the next ones.
        let turn = |time: Duration| start + time * (place as u32 + 1) / count as u32;
        let limits = Limits { enough, until: turn(TIME), at_most: turn(TIME_MOST) };
        let offsets = offsets(target, ranges, most, seed.wrapping_add(place as u64));
        let blocks = read(target, &offsets, limits).unwrap_or_default();
        let block = Bytes(block_size(target));
        (!blocks.is_empty()).then(|| Content { block, ..judge(&blocks) })
    };
    targets.iter().enumerate().map(sample).collect()
}

/// Samples of this file, from which a pool of this size is filled, as far as the pool reaches.
///
/// # Errors
///
/// When it cannot be read.
pub fn of_pool(path: &Path, size: Bytes, seed: u64) -> io::Result<Content> {
    let file = File::open(path)?;
    let length = file.metadata()?.len().min(size.0);
    let mut blocks = Vec::new();
    for offset in places(&[(0, length)], UNIT, SAMPLES, seed) {
        let mut block = vec![0; UNIT as usize];
        file.read_exact_at(&mut block, offset)?;
        blocks.push(block);
    }
    Ok(judge(&blocks))
}

/// When to stop reading samples.
#[derive(Clone, Copy)]
struct Limits {
    enough: usize,
    until: Instant,
    at_most: Instant,
}

fn block_size(target: &Target) -> u64 {
    target.direct_alignment.map_or(UNIT, |alignment| alignment.0.max(UNIT).next_multiple_of(UNIT))
}

/// The places to sample, within the target's size.
fn offsets(target: &Target, ranges: &[ByteRange], most: usize, seed: u64) -> Vec<u64> {
    let size = target.size.0;
    let within = |&(from, to): &ByteRange| (from.min(size), to.min(size));
    let mut ranges: Vec<ByteRange> = ranges.iter().map(within).collect();
    ranges.sort_unstable();
    let mut apart: Vec<ByteRange> = Vec::with_capacity(ranges.len());
    for (from, to) in ranges {
        let from = apart.last().map_or(from, |last| from.max(last.1));
        if from < to {
            apart.push((from, to));
        }
    }
    places(&apart, block_size(target), most, seed)
}

/// Whole blocks of the ranges, which do not overlap, each once and in random order: all of them if
/// they are no more than `most`; otherwise half of them at random, each followed by the one at a
/// distance of a large power of two, so that content that repeats itself after any smaller power of
/// two has equal pairs.
fn places(ranges: &[ByteRange], block: u64, most: usize, seed: u64) -> Vec<u64> {
    let whole = |&(from, to): &ByteRange| {
        let first = from.next_multiple_of(block);
        (first, to.saturating_sub(first) / block)
    };
    let ranges: Vec<(u64, u64)> = ranges.iter().map(whole).collect();
    let total: u64 = ranges.iter().map(|(_, blocks)| blocks).sum();
    let offset = |mut number: u64| {
        for &(first, blocks) in &ranges {
            if number < blocks {
                return first + number * block;
            }
            number -= blocks;
        }
        unreachable!("the number is below the total")
    };
    let mut chance = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut below = |limit: u64| ((u128::from(chance.next_u64()) * u128::from(limit)) >> 64) as u64;
    let mut numbers: Vec<u64> = Vec::with_capacity(most);
    if total <= most as u64 {
        numbers.extend(0..total);
        for left in (1..numbers.len()).rev() {
            numbers.swap(left, below(left as u64 + 1) as usize);
        }
        return numbers.into_iter().map(offset).collect();
    }
    let far = 1 << (total / 2).ilog2();
    for _ in 0..most / 2 {
        let number = below(total);
        for number in [number, (number + far) % total] {
            if !numbers.contains(&number) {
                numbers.push(number);
            }
        }
    }
    numbers.into_iter().map(offset).collect()
}

/// Reads the blocks, as many as there is time for. A block that cannot be read is left out: the run
/// will report the error itself.
fn read(target: &Target, offsets: &[u64], limits: Limits) -> io::Result<Vec<Vec<u8>>> {
    let Some(path) = path(target) else { return Ok(Vec::new()) };
    let size = block_size(target) as usize;
    let open = |flags: i32| {
        OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK | flags).open(path)
    };
    let file = match open(libc::O_DIRECT) {
        Ok(file) => file,
        Err(_) => {
            let file = open(0)?;
            // So that only the blocks themselves get into the page cache. Only a hint.
            let _ = fadvise(&file, 0, None, Advice::Random);
            file
        }
    };
    // `align_offset` takes powers of two alone, and not every alignment is one.
    let alignment = size.next_power_of_two();
    let mut memory = vec![0u8; alignment + size];
    let start = memory.as_ptr().align_offset(alignment);
    let buffer = &mut memory[start..start + size];
    let mut blocks = Vec::with_capacity(offsets.len());
    for &offset in offsets {
        if file.read_exact_at(buffer, offset).is_ok() {
            blocks.push(buffer.to_vec());
        }
        let now = Instant::now();
        if limits.at_most <= now || (limits.until <= now && limits.enough <= blocks.len()) {
            break;
        }
    }
    Ok(blocks)
}

/// The file to open for the data of a target; none for a target without data.
fn path(target: &Target) -> Option<&Path> {
    match target.kind {
        TargetKind::File | TargetKind::BlockDevice => Some(Path::new(&target.path)),
        TargetKind::NvmeGeneric => {
            target.namespace.as_ref().map(|namespace| Path::new(&namespace.block_device))
        }
        TargetKind::Simulated | TargetKind::CharacterDevice | TargetKind::Folder => None,
    }
}

/// The properties of blocks, each from another place.
fn judge(blocks: &[Vec<u8>]) -> Content {
    let mut content =
        Content { samples: blocks.len() as u32, block: Bytes(UNIT), ..Content::default() };
    let mut seen: HashMap<&[u8], u32> = HashMap::new();
    for block in blocks {
        if block.iter().all(|&byte| byte == 0) {
            content.zeros += 1;
        } else if period(block).is_some() {
            content.patterned += 1;
        } else {
            *seen.entry(block).or_default() += 1;
        }
    }
    content.equal = seen.values().filter(|&&times| 1 < times).sum();
    let others: Vec<f64> = seen.keys().map(|block| saved(block)).collect();
    content.compressible = match others.is_empty() {
        true => 0.0,
        false => others.iter().sum::<f64>() / others.len() as f64,
    };
    content
}

/// The period of a block, if it is so short that the block is full of a pattern (the failure
/// function of Knuth, Morris and Pratt).
fn period(block: &[u8]) -> Option<usize> {
    let mut borders = vec![0usize; block.len()];
    let mut border = 0;
    for at in 1..block.len() {
        while 0 < border && block[border] != block[at] {
            border = borders[border - 1];
        }
        border += usize::from(block[border] == block[at]);
        borders[at] = border;
    }
    let period = block.len() - borders.last()?;
    (period <= PERIOD_MAX.min(block.len() / 2)).then_some(period)
}

/// The share of a block that an entropy coder saves: 1 - H / 8, with H the entropy of its bytes in
/// bits (Shannon 1948). A share that chance explains counts as zero.
fn saved(block: &[u8]) -> f64 {
    let mut counts = [0u32; 256];
    block.iter().for_each(|&byte| counts[usize::from(byte)] += 1);
    let total = block.len() as f64;
    let bits: f64 = counts
        .iter()
        .filter(|&&count| 0 < count)
        .map(|&count| f64::from(count) / total)
        .map(|share| -share * share.log2())
        .sum();
    Some(1.0 - bits / 8.0).filter(|saved| BY_CHANCE < *saved).unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn random(seed: u64, length: usize) -> Vec<u8> {
        let mut bytes = vec![0; length];
        Xoshiro256PlusPlus::seed_from_u64(seed).fill_bytes(&mut bytes);
        bytes
    }

    /// Makes a file with this content a target, and returns what samples of these ranges show.
    fn of_file(bytes: &[u8], ranges: &[ByteRange]) -> Content {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(bytes).unwrap();
        let path = file.path().display().to_string();
        let target = Target {
            kind: TargetKind::File,
            path,
            ..Target::simulated("file", Bytes(bytes.len() as u64))
        };
        contents(&[(&target, ranges.to_vec())], 7).remove(0).expect("it can be read")
    }

    const MIB: usize = 1 << 20;

    #[test]
    fn random_bytes_are_unlike_and_hold_nothing_to_save() {
        let found = of_file(&random(1, 4 * MIB), &[(0, u64::MAX)]);
        assert!(SAMPLES_LEAST as u32 <= found.samples, "{found:?}");
        let expected = Content { samples: found.samples, block: Bytes(UNIT), ..Content::default() };
        assert_eq!(found, expected);
    }

    #[test]
    fn zeros_and_patterns_are_told_apart() {
        let found = of_file(&vec![0; MIB], &[(0, u64::MAX)]);
        assert_eq!((found.zeros, found.patterned, found.equal), (found.samples, 0, 0));
        let ramp: Vec<u8> = (0..MIB).map(|at| at as u8).collect();
        for patterned in [vec![0x5A; MIB], ramp, b"dead beef 123".repeat(MIB / 13)] {
            let found = of_file(&patterned, &[(0, u64::MAX)]);
            assert_eq!((found.zeros, found.patterned, found.equal), (0, found.samples, 0));
        }
    }

    #[test]
    fn a_block_over_and_over_is_found_whatever_its_size() {
        for size in [4096, 65_536, MIB, 3 * 4096] {
            let bytes = random(2, size).repeat((16 * MIB).div_ceil(size));
            let found = of_file(&bytes, &[(0, u64::MAX)]);
            // The number of samples depends on the machine; it is at least four.
            assert!(found.samples <= 2 || 2 <= found.equal, "{size}: {found:?}");
            assert_eq!((found.zeros, found.patterned), (0, 0));
        }
    }

    #[test]
    fn only_the_ranges_are_looked_at() {
        let mut bytes = vec![0; 2 * MIB];
        bytes[MIB..].copy_from_slice(&random(3, MIB));
        let (first, second) = ((0, MIB as u64), (MIB as u64, 2 * MIB as u64));
        let found = of_file(&bytes, &[first, (4096, 9999)]);
        assert_eq!(found.zeros, found.samples);
        assert_eq!(of_file(&bytes, &[second]).zeros, 0);
    }

    #[test]
    fn what_a_compressor_saves_is_between_nothing_and_all() {
        let text: Vec<u8> =
            (0..MIB).map(|at| b'a' + (random(at as u64 / 4096, 1)[0] % 4)).collect();
        // Every block consists of one letter, so it is a pattern.
        assert_eq!(of_file(&text, &[(0, u64::MAX)]).compressible, 0.0);
        let letters: Vec<u8> = random(4, MIB).iter().map(|byte| b'a' + byte % 4).collect();
        let found = of_file(&letters, &[(0, u64::MAX)]);
        // Four letters need two of eight bits.
        assert!((0.74..0.76).contains(&found.compressible), "{found:?}");
    }

    #[test]
    fn places_are_whole_blocks_of_the_ranges_each_once() {
        for (ranges, most) in [
            (Vec::from([(0, 40_960)]), 256),
            (Vec::from([(100, 50_000), (1 << 20, 5 << 20)]), 64),
            (Vec::from([(0, 1 << 40)]), 256),
            (Vec::from([(0, 4095)]), 8),
            (Vec::new(), 8),
        ] {
            let places = places(&ranges, UNIT, most, 9);
            assert!(places.len() <= most);
            let inside = |at: &u64| ranges.iter().any(|(from, to)| from <= at && at + UNIT <= *to);
            assert!(places.iter().all(|at| at.is_multiple_of(UNIT) && inside(at)), "{places:?}");
            let mut unique = places.clone();
            unique.sort_unstable();
            unique.dedup();
            assert_eq!(unique.len(), places.len());
        }
    }

    #[test]
    fn a_pool_is_judged_by_the_file_that_it_comes_from() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(&vec![0; MIB]).unwrap();
        file.write_all(&random(5, MIB)).unwrap();
        let found = |size| of_pool(file.path(), Bytes(size), 1).unwrap();
        let (half, whole) = (found(MIB as u64), found(1 << 40));
        assert_eq!(half.zeros, half.samples);
        assert!(0 < whole.zeros && whole.zeros < whole.samples, "{whole:?}");
    }
}
