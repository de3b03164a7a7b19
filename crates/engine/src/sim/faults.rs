//! Faults on request. Failing changes an I/O's result and never its time: a failed I/O takes as
//! long as a good one. Stalls change its time, in `warp`; a hang suppresses every completion from
//! then on, in `agenda`.
//!
//! One draw u, uniform in [0, 1), decides each I/O: it fails with EIO if u < error, returns zero
//! bytes if it is a read and u - error < zero, and fewer bytes than requested if it is a read and
//! u - error - zero < short. So each fault occurs in exactly its share.

use fathom_core::Span;
use fathom_core::measure::Direction;

use super::chance::Chance;
use super::parameters::{Field, Parameter, Stall};
use crate::backend::Io;

/// EIO: the medium or the way to it failed.
const EIO: i32 = 5;
/// ENOSPC: the answer of a block device to a write beyond its end.
const ENOSPC: i32 = 28;
/// A short read ends on a multiple of this, like one from a disk.
const SECTOR: u32 = 512;

/// The faults.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Faults {
    /// Share of I/Os that fail with EIO.
    pub error: f64,
    /// One of this many I/Os, in the order of their arrival, fails with EIO.
    pub error_every: Option<u64>,
    /// Share of reads that return fewer bytes than requested, at least a sector.
    pub short: f64,
    /// Share of reads that return no byte and no error.
    pub zero: f64,
    /// The times in which the device does not answer.
    pub stall: Option<Stall>,
    /// The time from which on the device never answers.
    pub hang_after: Option<Span>,
}

/// Times count from the opening of the device, warm-up included.
pub(super) const PARAMETERS: [Parameter<Faults>; 6] = [
    Parameter {
        name: "error",
        meaning: "share of I/Os that fail with EIO",
        field: |o| Field::Share(&mut o.error, 1.0),
    },
    Parameter {
        name: "error-every",
        meaning: "each Nth I/O fails with EIO",
        field: |o| Field::Every(&mut o.error_every),
    },
    Parameter {
        name: "short",
        meaning: "share of reads that give fewer bytes than asked",
        field: |o| Field::Share(&mut o.short, 1.0),
    },
    Parameter {
        name: "zero",
        meaning: "share of reads that give no byte and no error, as after unplugging",
        field: |o| Field::Share(&mut o.zero, 1.0),
    },
    Parameter {
        name: "stall",
        meaning: "nothing moves from START (from the opening) for LENGTH, again each EVERY",
        field: |o| Field::Stall(&mut o.stall),
    },
    Parameter {
        name: "hang-after",
        meaning: "nothing completes any more, this long after the opening",
        field: |o| Field::After(&mut o.hang_after),
    },
];

impl Faults {
    /// Whether they go together.
    pub(super) fn check(&self) -> Result<(), String> {
        let sum = self.error + self.short + self.zero;
        if sum > 1.0 {
            return Err(format!("error, short and zero add up to {sum}; keep their sum at most 1"));
        }
        Ok(())
    }
}

/// Decides the result of each I/O.
#[derive(Debug)]
pub(super) struct Outcomes {
    faults: Faults,
    size: u64,
    arrived: u64,
    chance: Chance,
}

impl Outcomes {
    /// The faults of a device of this size.
    pub fn new(faults: &Faults, size: u64, seed: u64) -> Self {
        Self { faults: faults.clone(), size, arrived: 0, chance: Chance::new(seed, 1) }
    }

    /// The bytes that move, or a negative errno.
    pub fn of(&mut self, io: &Io) -> i32 {
        self.arrived += 1;
        if self.faults.error_every.is_some_and(|every| self.arrived.is_multiple_of(every)) {
            return -EIO;
        }
        let Faults { error, short, zero, .. } = self.faults;
        if error + short + zero > 0.0 {
            let u = self.chance.unit();
            if u < error {
                return -EIO;
            }
            if io.direction == Direction::Read && u < error + zero {
                return 0;
            }
            if io.direction == Direction::Read && u < error + zero + short {
                return self.part_of(io.length);
            }
        }
        self.within_the_device(io)
    }

    /// A whole number of sectors that is less than requested and not zero; half of a request of one
    /// sector.
    fn part_of(&mut self, length: u32) -> i32 {
        let sectors = length.div_ceil(SECTOR) - 1;
        match sectors {
            0 => as_result(length / 2),
            _ => as_result((1 + self.chance.below(u64::from(sectors)) as u32) * SECTOR),
        }
    }

    /// The behavior of a block device: there is nothing beyond its end.
    fn within_the_device(&self, io: &Io) -> i32 {
        let left = self.size.saturating_sub(io.offset);
        match io.direction {
            _ if u64::from(io.length) <= left => as_result(io.length),
            Direction::Write if left == 0 => -ENOSPC,
            Direction::Read | Direction::Write => as_result(left as u32),
        }
    }
}

fn as_result(bytes: u32) -> i32 {
    i32::try_from(bytes).expect("an I/O of less than 2 GiB")
}
