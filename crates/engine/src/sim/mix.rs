//! The devices of the published study of access mixes: arrays of four families of drives, whose
//! bandwidth with blocks of 64 KiB was published for four shares of sequential access and for one to
//! three I/Os in flight per disk.
//!
//! The array handles one I/O after the other, in the order of arrival. It determines by itself how
//! many of the last I/Os jumped, that is, did not begin where the one before them ended:
//!
//! ```text
//! j           the share of jumps among the last 8192 I/Os, the older ones counting less and less
//! d           I/Os in flight / disks, from 1 to 3
//! an I/O      length / X(j, d)
//! X(j, d)     as published at j of 0 %, 5 % (4 to 6), 20 % (18 to 22) and 100 %, and d of 1, 2 and 3;
//!             between them straight in d, and 1 / X straight in j; of reads and of writes each
//! ```
//!
//! For reads the tables with 0 % and 5 % of jumps are known here; with more, reads are assumed to
//! be like writes, which those of real drives are not.
//!
//! From J. Clark and D. Muysson, "Promise VTrak J300s", AnandTech, 2 February 2007,
//! <https://www.anandtech.com/show/2164>: twelve drives of each family.

use std::collections::VecDeque;

use fathom_core::facts::{Layer, LayerKind};
use fathom_core::measure::Direction;
use fathom_core::{Bytes, Instant, Span};

use super::Device;
use super::agenda::Agenda;
use super::parameters::{Field, Parameter, Word};
use crate::backend::Io;

/// The published array.
#[derive(Clone, Debug, PartialEq)]
pub struct AccessMixOptions {
    /// The family of its drives.
    pub drive: DriveFamily,
    /// How many drives.
    pub disks: u32,
}

impl Default for AccessMixOptions {
    fn default() -> Self {
        Self { drive: DriveFamily::Sas, disks: 12 }
    }
}

/// A family of drives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DriveFamily {
    /// SAS.
    Sas,
    /// SATA II.
    SataTwo,
    /// SATA I.
    SataOne,
    /// Parallel SCSI.
    Scsi,
}

impl Word for DriveFamily {
    const WHAT: &'static str = "drive";
    const ALL: &'static [(Self, &'static str)] = &[
        (Self::Sas, "sas"),
        (Self::SataTwo, "sata2"),
        (Self::SataOne, "sata1"),
        (Self::Scsi, "scsi"),
    ];
}

pub(super) const PARAMETERS: [Parameter<AccessMixOptions>; 2] = [
    Parameter {
        name: "drive",
        meaning: "the family of its drives",
        field: |o| Field::Word(&mut o.drive),
    },
    Parameter {
        name: "disks",
        meaning: "the number of drives; 12 were published, with up to three I/Os in flight on each",
        field: |o| Field::Count(&mut o.disks, 1, 256),
    },
];

impl AccessMixOptions {
    /// Its structure, as the layers of a real array would report it.
    pub(super) fn layers(&self, size: Bytes) -> Vec<Layer> {
        let array = Layer {
            name: "sim".to_owned(),
            kind: LayerKind::Md,
            size,
            members: (1..=self.disks as usize).collect(),
            detail: Some(format!("{}, {} disks", self.drive.word(), self.disks)),
            ..Layer::default()
        };
        let disk = |number: u32| Layer {
            name: format!("sim-disk{number}"),
            size: Bytes(size.0 / u64::from(self.disks)),
            ..Layer::default()
        };
        std::iter::once(array).chain((0..self.disks).map(disk)).collect()
    }
}

/// The ranges that count as the published shares of jumps: from and to.
const JUMPS: [(f64, f64); 4] = [(0.0, 0.0), (0.04, 0.06), (0.18, 0.22), (1.0, 1.0)];

impl DriveFamily {
    /// MB/s of reads at each share of jumps, with one, two and three in flight per disk.
    fn reads(self) -> [[f64; 3]; 4] {
        let [_, _, much, all] = self.writes();
        let [none, few] = match self {
            Self::Sas => [[536.0, 536.0, 540.0], [254.0, 323.0, 356.0]],
            Self::SataTwo => [[370.0, 374.0, 407.0], [138.0, 178.0, 194.0]],
            Self::SataOne => [[356.0, 333.0, 348.0], [132.0, 167.0, 182.0]],
            Self::Scsi => [[129.0, 128.0, 126.0], [93.0, 119.0, 126.0]],
        };
        [none, few, much, all]
    }

    /// The same of writes.
    fn writes(self) -> [[f64; 3]; 4] {
        match self {
            Self::Sas => [
                [329.0, 333.0, 333.0],
                [111.0, 122.0, 134.0],
                [85.0, 93.0, 98.0],
                [90.0, 94.0, 94.0],
            ],
            Self::SataTwo => [
                [242.0, 245.0, 245.0],
                [189.0, 188.0, 188.0],
                [114.0, 118.0, 121.0],
                [59.0, 61.0, 62.0],
            ],
            Self::SataOne => {
                [[201.0, 201.0, 202.0], [69.0, 72.0, 74.0], [32.0, 33.0, 33.0], [24.0, 25.0, 25.0]]
            }
            Self::Scsi => {
                [[96.0, 96.0, 95.0], [83.0, 85.0, 84.0], [61.0, 62.0, 61.0], [38.0, 38.0, 40.0]]
            }
        }
    }
}

/// This many I/Os are remembered: with them, shares of 5 % and 20 % stay within the range that
/// counts as such.
const MEMORY: f64 = 8192.0;

/// The array at work.
#[derive(Debug)]
pub(super) struct AccessMix {
    /// MB/s of reads and of writes, by the share of jumps and by the depth.
    published: [[[f64; 3]; 4]; 2],
    disks: f64,
    /// Where the last I/O ended.
    end: u64,
    /// The share of jumps among the remembered I/Os.
    jumps: f64,
    seen: f64,
    /// When those in flight are done, in nanoseconds, the first one first.
    ends: VecDeque<u64>,
}

impl AccessMix {
    pub fn new(options: &AccessMixOptions, slots: u32) -> Self {
        Self {
            published: [options.drive.reads(), options.drive.writes()],
            disks: f64::from(options.disks),
            end: 0,
            jumps: 0.0,
            seen: 0.0,
            ends: VecDeque::with_capacity(slots as usize + 1),
        }
    }

    /// Nanoseconds for a byte.
    fn cost(&self, direction: Direction, in_flight: usize) -> f64 {
        let published = &self.published[usize::from(direction == Direction::Write)];
        let depth = (in_flight as f64 / self.disks).clamp(1.0, 3.0) - 1.0;
        let (below, part) = ((depth as usize).min(1), depth - depth.floor().min(1.0));
        let cost = |row: usize| {
            let row = published[row];
            1e3 / (row[below] + (row[below + 1] - row[below]) * part)
        };
        let row = JUMPS.iter().rposition(|(from, _)| *from <= self.jumps).unwrap_or(0).min(2);
        let (from, to) = (JUMPS[row].1, JUMPS[row + 1].0);
        let along = (self.jumps - from) / (to - from);
        cost(row) + (cost(row + 1) - cost(row)) * along.clamp(0.0, 1.0)
    }
}

impl Device for AccessMix {
    fn arrives(&mut self, io: &Io, now: Instant, agenda: &mut Agenda) {
        let jumped = if io.offset == self.end { 0.0 } else { 1.0 };
        self.end = io.offset + u64::from(io.length);
        self.seen = (self.seen + 1.0).min(MEMORY);
        self.jumps += (jumped - self.jumps) / self.seen;
        while self.ends.front().is_some_and(|end| *end <= now.0) {
            self.ends.pop_front();
        }
        let start = self.ends.back().copied().unwrap_or(0).max(now.0);
        let took = f64::from(io.length) * self.cost(io.direction, self.ends.len() + 1);
        let end = Instant(start) + Span((took.round() as u64).max(1));
        self.ends.push_back(end.0);
        agenda.completes(io.slot, end);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn its_figures_are_the_published_ones() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/data/studies/access-mix.csv");
        let text = std::fs::read_to_string(path).unwrap();
        let mut rows = 0;
        let is_row = |line: &&str| line.starts_with("write,") || line.starts_with("read,");
        for line in text.lines().filter(is_row) {
            let cells: Vec<&str> = line.split(',').collect();
            let drive = match cells[2] {
                "SAS" => DriveFamily::Sas,
                "SATA II" => DriveFamily::SataTwo,
                "SATA I" => DriveFamily::SataOne,
                _ => DriveFamily::Scsi,
            };
            let way = if cells[0] == "read" { Direction::Read } else { Direction::Write };
            let mut mix = AccessMix::new(&AccessMixOptions { drive, disks: 4 }, 16);
            mix.jumps = 1.0 - cells[1].parse::<f64>().unwrap() / 100.0;
            for depth in 1..=3 {
                let published: f64 = cells[2 + depth].parse().unwrap();
                let here = 1e3 / mix.cost(way, 4 * depth);
                assert!((here / published - 1.0).abs() < 1e-6, "{line}: {depth}: {here}");
            }
            rows += 1;
        }
        assert_eq!(rows, 24);
    }
}
