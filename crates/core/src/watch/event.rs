//! One event of the block layer, as its tracepoints tell it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::units::Instant;

/// What a request does.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Operation {
    /// It reads data.
    Read,
    /// It writes data; appending to a zone is a write, too.
    Write,
    /// It discards data, or erases it securely.
    Discard,
    /// It flushes the cache of the device.
    Flush,
    /// It does something else: a command of the driver, an operation on a zone.
    Other,
}

impl Operation {
    /// The operation in the kernel's letters, such as "R", "WS", "FWFS" or "FF". In front of a write
    /// an F asks for a flush before it, and behind it for one after it (`blk_fill_rwbs`).
    pub fn from_letters(letters: &[u8]) -> Self {
        let (flushes, rest) = match letters {
            [b'F', rest @ ..] => (true, rest),
            all => (false, all),
        };
        match rest.first() {
            Some(b'R') => Self::Read,
            Some(b'W') => Self::Write,
            Some(b'D') => Self::Discard,
            // "ZA" appends; all other letters after Z manage zones.
            Some(b'Z') if rest.get(1) == Some(&b'A') => Self::Write,
            _ if flushes => Self::Flush,
            _ => Self::Other,
        }
    }
}

/// How far a request has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockStage {
    /// The block layer has made the request. It may wait in a queue from now on.
    Queued,
    /// It was given to the driver of the device.
    Issued,
    /// The driver gave it back to the queue.
    Requeued,
    /// An I/O was put in front of it. The event has the sectors of that I/O.
    Fronted,
    /// It became a part of another request, and will not be seen again.
    Merged,
    /// The device has completed it, or a part of it.
    Completed,
}

impl BlockEvent {
    /// Whether a request without data has ended: an fsync begins as a write of nothing, which the
    /// block layer turns into a flush.
    pub fn ends_without_data(&self) -> bool {
        self.stage == BlockStage::Completed
            && self.sectors == 0
            && self.operation == Operation::Write
    }
}

/// One event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockEvent {
    /// When, by the kernel's monotonic clock.
    pub at: Instant,
    /// The disk: major and minor number. Requests always name the whole disk, not a partition.
    pub device: (u32, u32),
    /// What the request does.
    pub operation: Operation,
    /// How far it has come.
    pub stage: BlockStage,
    /// Its first sector of 512 bytes on the disk.
    pub sector: u64,
    /// The number of its sectors; 0 for a flush.
    pub sectors: u32,
    /// Whether the device has failed it.
    pub failed: bool,
    /// The program that was running on the CPU: a number that the source of the events gave it.
    pub program: u32,
    /// The CPU on which it happened.
    pub cpu: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_letters_name_the_operation() {
        use Operation::{Discard, Flush, Other, Read, Write};
        for (letters, operation) in [
            ("R", Read),
            ("RAM", Read),
            ("WS", Write),
            ("WFS", Write),
            ("FWFS", Write),
            ("FF", Flush),
            ("F", Flush),
            ("D", Discard),
            ("DE", Discard),
            ("ZA", Write),
            ("ZR", Other),
            ("N", Other),
            ("", Other),
        ] {
            assert_eq!(Operation::from_letters(letters.as_bytes()), operation, "{letters}");
        }
    }
}
