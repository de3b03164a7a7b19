//! An array of identical disks: the costs and gains of striping, mirrors and parity.
//!
//! Chunk k of the array, with n disks, the share of the data d and the parity p of a row:
//!
//! ```text
//! raid0    disk k mod n
//! raid1    reads: one disk; writes: all disks
//! raid10   pair k mod n/2; reads from one disk of the pair, writes to both
//! raid5    d = n - 1, p = 1; raid6: d = n - 2, p = 2. The parity moves on by a disk with each row.
//!          A write of a whole row writes n chunks. Of any other row it first reads the old data and
//!          the old parity, then writes both (read, modify, write): 2 (1 + p) I/Os for one chunk.
//! ```
//!
//! Mirrored SSDs are read in alternation, chunk by chunk. Of mirrored hard disks the one with the
//! nearest head is read, as Linux's md does: a disk that reads a sequence goes on with it.
//!
//! An I/O is done when its last part is. Each disk works off its parts in the order of arrival:
//!
//! ```text
//! ssd   16 parts at once, 80 us for a read and 20 us for a write, then its length at 500 MB/s, one
//!       part after the other
//! hdd   one part after the other: length at 150 MB/s, and before it
//!       - where it begins up to a turn behind the end of the last one (1.25 MB), which went the same
//!         way: what lies between at 150 MB/s, because the medium passes under the head. Such a
//!         sequence is read ahead by up to 8 MiB.
//!       - otherwise a seek of 0.8 ms + 14.2 ms x the root of the share of the disk moved over, and a
//!         turn of up to 8.33 ms
//!       and 50 us more until it is with the host
//! most, random parts of one chunk, with x I/Os per second of a disk:
//!       reads n x;  writes raid0 n x, raid1 x, raid10 n x / 2, raid5 n x / 4, raid6 n x / 6
//! most, sequential, whole rows, with b bytes per second of a disk:
//!       reads of s streams: raid0 n b; of SSDs n b; of hard disks raid5 (n - 1) b and raid6 (n - 2) b,
//!       because they pass over the parity, raid1 b and raid10 n b / 2 for one stream, and n b for as
//!       many as there are mirrors;  writes raid0 n b, raid1 b, raid10 n b / 2, raid5 (n - 1) b, raid6
//!       (n - 2) b
//! ```

use std::ops::Range;

use fathom_core::facts::{self, Layer, LayerKind, Stripe};
use fathom_core::measure::Direction;
use fathom_core::{Bytes, Instant, Span};

use super::Device;
use super::agenda::Agenda;
use super::chance::Chance;
use super::parameters::{Field, Parameter, Word};
use crate::backend::Io;

/// The settings of an array.
#[derive(Clone, Debug, PartialEq)]
pub struct ArrayOptions {
    /// The layout of the data on the disks.
    pub level: Level,
    /// The number of disks.
    pub disks: u32,
    /// The amount on one disk before the next one follows.
    pub chunk: Bytes,
    /// The kind of the disks.
    pub disk: Disk,
    /// The controller's cache; nothing for none.
    pub cache: Bytes,
}

impl Default for ArrayOptions {
    fn default() -> Self {
        let chunk = Bytes(64 * Bytes::KIB);
        Self { level: Level::Raid0, disks: 4, chunk, disk: Disk::Ssd, cache: Bytes(0) }
    }
}

/// The layout of the data on the disks of an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// Striped.
    Raid0,
    /// The same on all disks.
    Raid1,
    /// Striped, with one parity.
    Raid5,
    /// Striped, with two parities.
    Raid6,
    /// Striped over pairs of mirrors.
    Raid10,
}

impl Word for Level {
    const WHAT: &'static str = "level";
    const ALL: &'static [(Self, &'static str)] = &[
        (Self::Raid0, "raid0"),
        (Self::Raid1, "raid1"),
        (Self::Raid5, "raid5"),
        (Self::Raid6, "raid6"),
        (Self::Raid10, "raid10"),
    ];
}

impl Level {
    /// The smallest number of disks.
    fn fewest(self) -> u32 {
        match self {
            Self::Raid0 => 1,
            Self::Raid1 => 2,
            Self::Raid5 => 3,
            Self::Raid6 | Self::Raid10 => 4,
        }
    }

    /// How many of this many disks hold their own data.
    fn with_data(self, disks: u32) -> u64 {
        match self {
            Self::Raid1 => 1,
            Self::Raid10 => u64::from(disks) / 2,
            level => u64::from(disks) - level.parity(),
        }
    }

    /// Disks of a row that hold parity.
    fn parity(self) -> u64 {
        match self {
            Self::Raid5 => 1,
            Self::Raid6 => 2,
            Self::Raid0 | Self::Raid1 | Self::Raid10 => 0,
        }
    }
}

/// The kind of an array's disks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disk {
    /// Solid-state drives.
    Ssd,
    /// Hard disks.
    Hdd,
}

impl Word for Disk {
    const WHAT: &'static str = "disk";
    const ALL: &'static [(Self, &'static str)] = &[(Self::Ssd, "ssd"), (Self::Hdd, "hdd")];
}

/// The largest cache of a controller.
const CACHE_MAX: Bytes = Bytes(16 * Bytes::GIB);

pub(super) const PARAMETERS: [Parameter<ArrayOptions>; 5] = [
    Parameter {
        name: "level",
        meaning: "the layout of the data on the disks",
        field: |o| Field::Word(&mut o.level),
    },
    Parameter {
        name: "disks",
        meaning: "the number of disks",
        field: |o| Field::Count(&mut o.disks, 1, 256),
    },
    Parameter {
        name: "chunk",
        meaning: "the bytes on one disk before the next disk follows",
        field: |o| Field::Size(&mut o.chunk, Bytes(4096), Bytes(Bytes::GIB)),
    },
    Parameter { name: "disk", meaning: "the kind of disk", field: |o| Field::Word(&mut o.disk) },
    Parameter {
        name: "cache",
        meaning: "the cache of a controller: it acknowledges writes until it is full, and serves \
                  reads of the data in it; 0 for none, or at least 1m",
        field: |o| Field::Size(&mut o.cache, Bytes(0), CACHE_MAX),
    },
];

impl ArrayOptions {
    /// Whether they go together.
    pub(super) fn check(&self) -> Result<(), String> {
        let (level, fewest) = (self.level.word(), self.level.fewest());
        if self.disks < fewest {
            return Err(format!("disks={}: {level} needs at least {fewest} of them", self.disks));
        }
        if self.level == Level::Raid10 && !self.disks.is_multiple_of(2) {
            return Err(format!(
                "disks={}: raid10 has pairs of disks; make it an even number",
                self.disks
            ));
        }
        if 0 < self.cache.0 && self.cache.0 < Bytes::MIB {
            return Err(format!("cache={}: make it 0, for none, or at least 1m", self.cache));
        }
        Ok(())
    }
}

impl ArrayOptions {
    /// Its structure, as the layers of a real array would report it: the array, and its disks.
    pub(super) fn layers(&self, size: Bytes) -> Vec<Layer> {
        let with_data = self.level.with_data(self.disks);
        let full = Bytes(self.chunk.0 * with_data);
        let array = Layer {
            name: "sim".to_owned(),
            kind: LayerKind::Md,
            size,
            members: (1..=self.disks as usize).collect(),
            stripe: (1 < with_data).then_some(Stripe { chunk: self.chunk, full }),
            detail: Some(format!("{}, {} disks", self.level.word(), self.disks)),
            ..Layer::default()
        };
        let disk = |number: u32| Layer {
            name: format!("sim-disk{number}"),
            size: Bytes(size.0 / with_data),
            disk: Some(facts::Disk {
                rotational: Some(self.disk == Disk::Hdd),
                ..facts::Disk::default()
            }),
            ..Layer::default()
        };
        std::iter::once(array).chain((0..self.disks).map(disk)).collect()
    }
}

/// The number of parts that an SSD of an array handles at once.
const UNITS: usize = 16;

/// The nanoseconds that a hard disk needs for a byte, and for one rotation.
const HDD_BYTE: f64 = 1e9 / 150e6;
const TURN: f64 = 60e9 / 7200.0;

/// The bytes of a sequence that a hard disk reads ahead.
const READ_AHEAD: f64 = (8 * Bytes::MIB) as f64;

/// A disk of the array. All times are nanoseconds.
#[derive(Clone, Debug)]
struct MemberDisk {
    kind: Disk,
    size: f64,
    /// When each of its units is free; a hard disk has one.
    units: [f64; UNITS],
    /// When its interface is free.
    interface: f64,
    /// Where the last part ended, and its direction.
    end: u64,
    direction: Direction,
}

impl MemberDisk {
    /// Serves a part, and returns when it is done.
    fn serve(
        &mut self,
        direction: Direction,
        part: StripePart,
        now: f64,
        chance: &mut Chance,
    ) -> f64 {
        match self.kind {
            Disk::Ssd => {
                let time = if direction == Direction::Read { 80e3 } else { 20e3 };
                let unit = self.units.iter_mut().min_by(|a, b| a.total_cmp(b));
                let unit = unit.expect("a drive has units");
                *unit = unit.max(now) + time;
                self.interface = self.interface.max(*unit) + part.length as f64 * 2.0;
                self.interface
            }
            Disk::Hdd => self.turn_to(direction, part, now, chance),
        }
    }

    /// Serves a part on the one arm of a hard disk, and returns when it is done.
    fn turn_to(
        &mut self,
        direction: Direction,
        part: StripePart,
        now: f64,
        chance: &mut Chance,
    ) -> f64 {
        let ahead = part.offset.checked_sub(self.end).map(|between| between as f64 * HDD_BYTE);
        let ahead = ahead.filter(|time| *time <= TURN && direction == self.direction);
        let from = match (ahead, direction) {
            (Some(_), Direction::Read) => self.units[0].max(now - READ_AHEAD * HDD_BYTE),
            _ => self.units[0].max(now),
        };
        let approach = ahead.unwrap_or_else(|| {
            let moved = part.offset.abs_diff(self.end) as f64 / self.size;
            0.8e6 + 14.2e6 * moved.min(1.0).sqrt() + chance.unit() * TURN
        });
        (self.end, self.direction) = (part.offset + part.length, direction);
        self.units[0] = from + approach + part.length as f64 * HDD_BYTE;
        self.units[0].max(now) + 50e3
    }
}

/// A part of an I/O on one disk.
#[derive(Clone, Copy, Debug)]
struct StripePart {
    offset: u64,
    length: u64,
}

/// The array at work.
#[derive(Debug)]
pub(super) struct Array {
    level: Level,
    chunk: u64,
    members: Vec<MemberDisk>,
    /// By slot: the write for which old data and parity are being read.
    writes: Vec<(u64, u64)>,
    chance: Chance,
}

impl Array {
    pub fn new(options: &ArrayOptions, size: Bytes, slots: u32, seed: u64) -> Self {
        let with_data = options.level.with_data(options.disks);
        let member = MemberDisk {
            kind: options.disk,
            size: size.0 as f64 / with_data as f64,
            units: [0.0; UNITS],
            interface: 0.0,
            end: 0,
            direction: Direction::Read,
        };
        Self {
            level: options.level,
            chunk: options.chunk.0,
            members: vec![member; options.disks as usize],
            writes: vec![(0, 0); slots as usize],
            chance: Chance::new(seed, 8),
        }
    }

    /// Serves a part on a disk, and returns the later of two ends.
    fn serve(
        &mut self,
        disk: u64,
        direction: Direction,
        part: StripePart,
        now: f64,
        end: f64,
    ) -> f64 {
        let member = &mut self.members[disk as usize];
        member.serve(direction, part, now, &mut self.chance).max(end)
    }

    /// The chunks of an I/O: number, offset within it, length.
    fn chunks(&self, offset: u64, length: u64) -> impl Iterator<Item = (u64, u64, u64)> + use<> {
        let chunk = self.chunk;
        let end = offset + length.max(1);
        (offset / chunk..end.div_ceil(chunk)).map(move |number| {
            let from = offset.max(number * chunk);
            (number, from - number * chunk, end.min((number + 1) * chunk) - from)
        })
    }

    /// The place of a chunk in an array with parity: row, disk of its data, first disk of its
    /// parity.
    fn in_row(&self, number: u64) -> (u64, u64, u64) {
        let (disks, parity) = (self.members.len() as u64, self.level.parity());
        let (row, place) = (number / (disks - parity), number % (disks - parity));
        let first_parity = disks - 1 - row % disks;
        (row, (first_parity + parity + place) % disks, first_parity)
    }

    fn read(&mut self, offset: u64, length: u64, now: f64) -> f64 {
        let (disks, chunk) = (self.members.len() as u64, self.chunk);
        let mut end = now;
        for (number, within, length) in self.chunks(offset, length) {
            let (disk, row) = match self.level {
                Level::Raid0 => (number % disks, number / disks),
                Level::Raid1 => (self.mirror(0..disks, number, within), number),
                Level::Raid10 => {
                    let (pair, row) = (number % (disks / 2), number / (disks / 2));
                    (self.mirror(2 * pair..2 * pair + 2, row, within), row)
                }
                Level::Raid5 | Level::Raid6 => {
                    let (row, disk, _) = self.in_row(number);
                    (disk, row)
                }
            };
            let part = StripePart { offset: row * chunk + within, length };
            end = self.serve(disk, Direction::Read, part, now, end);
        }
        end
    }

    /// Which of these disks, which all hold it, reads from a chunk in this row.
    fn mirror(&self, of: Range<u64>, row: u64, within: u64) -> u64 {
        let turn = of.start + row % (of.end - of.start);
        let offset = row * self.chunk + within;
        let way = |disk: &u64| self.members[*disk as usize].end.abs_diff(offset);
        match self.members[turn as usize].kind {
            Disk::Ssd => turn,
            Disk::Hdd => of.min_by_key(way).unwrap_or(turn),
        }
    }

    /// Writes to striped and mirrored disks.
    fn write(&mut self, offset: u64, length: u64, now: f64) -> f64 {
        let (disks, chunk) = (self.members.len() as u64, self.chunk);
        let mut end = now;
        for (number, within, length) in self.chunks(offset, length) {
            let (copies, row) = match self.level {
                Level::Raid1 => (0..disks, number),
                Level::Raid10 => {
                    let pair = number % (disks / 2);
                    (2 * pair..2 * pair + 2, number / (disks / 2))
                }
                _ => (number % disks..number % disks + 1, number / disks),
            };
            let part = StripePart { offset: row * chunk + within, length };
            for disk in copies {
                end = self.serve(disk, Direction::Write, part, now, end);
            }
        }
        end
    }

    /// One of the two steps of a write with parity: reads the old data, or writes. Returns the end,
    /// and whether there was anything to do.
    fn with_parity(
        &mut self,
        offset: u64,
        length: u64,
        direction: Direction,
        now: f64,
    ) -> (f64, bool) {
        let (disks, parity) = (self.members.len() as u64, self.level.parity());
        let row_length = (disks - parity) * self.chunk;
        let (mut end, mut any) = (now, false);
        let mut parity_of = None;
        for (number, within, part_length) in self.chunks(offset, length) {
            let (row, disk, first_parity) = self.in_row(number);
            let whole = offset <= row * row_length && (row + 1) * row_length <= offset + length;
            if whole && direction == Direction::Read {
                continue;
            }
            any = true;
            let part = StripePart { offset: row * self.chunk + within, length: part_length };
            end = self.serve(disk, direction, part, now, end);
            // The parity of a row once, as long as the longest of its parts may be.
            if parity_of != Some(row) {
                parity_of = Some(row);
                let part = match length <= self.chunk && within + length <= self.chunk {
                    true => part,
                    false => StripePart { offset: row * self.chunk, length: self.chunk },
                };
                for extra in 0..parity {
                    end = self.serve((first_parity + extra) % disks, direction, part, now, end);
                }
            }
        }
        (end, any)
    }
}

impl Array {
    /// The unit that has to be written completely to be cheap: a row of an array with parity.
    pub fn row(&self) -> u64 {
        match self.level.parity() {
            0 => 1,
            parity => (self.members.len() as u64 - parity) * self.chunk,
        }
    }

    /// Begins a write. Returns when it is done, or when the old data has been read and it
    /// continues.
    pub fn begins_write(&mut self, offset: u64, length: u64, now: f64) -> (f64, bool) {
        if self.level.parity() == 0 {
            return (self.write(offset, length, now), false);
        }
        match self.with_parity(offset, length, Direction::Read, now) {
            (read, true) => (read, true),
            (_, false) => (self.ends_write(offset, length, now), false),
        }
    }

    /// Continues a write with parity, and returns when it is done.
    pub fn ends_write(&mut self, offset: u64, length: u64, now: f64) -> f64 {
        self.with_parity(offset, length, Direction::Write, now).0
    }
}

impl Device for Array {
    fn arrives(&mut self, io: &Io, now: Instant, agenda: &mut Agenda) {
        let (offset, length, at) = (io.offset, u64::from(io.length), now.0 as f64);
        let end = match io.direction {
            Direction::Read => self.read(offset, length, at),
            Direction::Write => match self.begins_write(offset, length, at) {
                (end, false) => end,
                (read, true) => {
                    self.writes[io.slot as usize] = (offset, length);
                    return agenda.resumes(io.slot, Instant(read.ceil() as u64));
                }
            },
        };
        agenda.completes(io.slot, Instant(end.ceil() as u64).max(now + Span(1)));
    }

    /// The old data has been read.
    fn resumes(&mut self, slot: u32, now: Instant, agenda: &mut Agenda) {
        let (offset, length) = self.writes[slot as usize];
        let end = self.ends_write(offset, length, now.0 as f64);
        agenda.completes(slot, Instant(end.ceil() as u64));
    }
}
