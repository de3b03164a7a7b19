//! What the events of a disk's requests come to.

use std::collections::BTreeMap;

use super::event::Operation;
use super::pairing::BlockRequest;
use crate::measure::Histogram;
use crate::units::Bytes;

/// The requests of one operation. All times are in nanoseconds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ObservedFlow {
    /// Requests whose completion was seen.
    pub ios: u64,
    /// Their bytes.
    pub bytes: Bytes,
    /// Those that began where another one had ended.
    pub sequential: u64,
    /// Those that the device failed.
    pub failed: u64,
    /// From the block layer's making of the request to its completion.
    pub response_time: Histogram,
    /// The part of it before the driver got the request.
    pub queue_time: Histogram,
    /// The part of it with the driver and the device.
    pub device_time: Histogram,
}

impl ObservedFlow {
    fn take(&mut self, request: &BlockRequest) {
        self.ios += 1;
        self.bytes.0 += request.bytes;
        self.sequential += u64::from(request.sequential);
        self.failed += u64::from(request.failed);
        for (histogram, time) in [
            (&mut self.response_time, request.response_time()),
            (&mut self.queue_time, request.queue_time()),
            (&mut self.device_time, request.device_time()),
        ] {
            if let Some(time) = time {
                histogram.record(time.0);
            }
        }
    }

    /// The share that began where another one had ended.
    pub fn sequential_share(&self) -> Option<f64> {
        (self.ios > 0).then(|| self.sequential as f64 / self.ios as f64)
    }

    /// Adds what another time has.
    pub fn merge(&mut self, other: &Self) {
        self.ios += other.ios;
        self.bytes.0 += other.bytes.0;
        self.sequential += other.sequential;
        self.failed += other.failed;
        self.response_time.merge(&other.response_time);
        self.queue_time.merge(&other.queue_time);
        self.device_time.merge(&other.device_time);
    }
}

/// What one program caused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Caused {
    /// Reads.
    pub reads: u64,
    /// Writes.
    pub writes: u64,
    /// Bytes that were read.
    pub read_bytes: Bytes,
    /// Bytes that were written.
    pub written_bytes: Bytes,
}

impl Caused {
    /// What a request is of it; nothing unless it reads or writes.
    pub fn of(request: &BlockRequest) -> Self {
        let bytes = Bytes(request.bytes);
        match request.operation {
            Operation::Read => Self { reads: 1, read_bytes: bytes, ..Self::default() },
            Operation::Write => Self { writes: 1, written_bytes: bytes, ..Self::default() },
            Operation::Discard | Operation::Flush | Operation::Other => Self::default(),
        }
    }

    /// Adds what another time has.
    pub fn add(&mut self, other: &Self) {
        self.reads += other.reads;
        self.writes += other.writes;
        self.read_bytes.0 += other.read_bytes.0;
        self.written_bytes.0 += other.written_bytes.0;
    }

    /// Reads and writes.
    pub fn ios(&self) -> u64 {
        self.reads + self.writes
    }
}

/// What the events of a disk say about a time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Observed {
    /// Reads.
    pub reads: ObservedFlow,
    /// Writes.
    pub writes: ObservedFlow,
    /// Discards.
    pub discards: ObservedFlow,
    /// Flushes.
    pub flushes: ObservedFlow,
    /// Requests without data: an fsync begins as a write of nothing, of which the block layer makes a
    /// flush. The counters count them as writes.
    pub without_data: u64,
    /// What each program caused, by the number that the source of the events gave it.
    pub programs: BTreeMap<u32, Caused>,
}

impl Observed {
    /// Takes a request that is complete.
    pub fn take(&mut self, request: &BlockRequest) {
        let flow = match request.operation {
            Operation::Read => &mut self.reads,
            Operation::Write => &mut self.writes,
            Operation::Discard => &mut self.discards,
            Operation::Flush => &mut self.flushes,
            Operation::Other => return,
        };
        flow.take(request);
        let one = Caused::of(request);
        if one.ios() > 0 {
            self.programs.entry(request.program).or_default().add(&one);
        }
    }

    /// The reads, writes and discards whose completion was seen.
    pub fn ios(&self) -> u64 {
        self.reads.ios + self.writes.ios + self.discards.ios
    }

    /// Adds what another time has.
    pub fn merge(&mut self, other: &Self) {
        self.reads.merge(&other.reads);
        self.writes.merge(&other.writes);
        self.discards.merge(&other.discards);
        self.flushes.merge(&other.flushes);
        self.without_data += other.without_data;
        for (program, caused) in &other.programs {
            self.programs.entry(*program).or_default().add(caused);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Instant;

    fn request(operation: Operation, bytes: u64, program: u32) -> BlockRequest {
        BlockRequest {
            device: (8, 0),
            operation,
            sector: 0,
            bytes,
            program,
            sequential: program == 1,
            failed: false,
            queued: Some(Instant(100)),
            issued: Some(Instant(130)),
            completed: Instant(230),
            cpus: (0, 0),
        }
    }

    #[test]
    fn each_operation_and_each_program_has_its_own_account() {
        let mut observed = Observed::default();
        observed.take(&request(Operation::Read, 4096, 1));
        observed.take(&request(Operation::Write, 8192, 1));
        observed.take(&request(Operation::Write, 512, 2));
        observed.take(&request(Operation::Flush, 0, 2));
        observed.take(&request(Operation::Other, 0, 3));
        assert_eq!((observed.reads.ios, observed.writes.ios, observed.flushes.ios), (1, 2, 1));
        assert_eq!(observed.writes.bytes, Bytes(8704));
        assert_eq!(observed.writes.sequential_share(), Some(0.5));
        assert_eq!(observed.reads.queue_time.max(), Some(30));
        assert_eq!(observed.reads.device_time.max(), Some(100));
        assert_eq!(observed.reads.response_time.max(), Some(130));
        let one = observed.programs[&1];
        assert_eq!((one.reads, one.writes, one.written_bytes), (1, 1, Bytes(8192)));
        assert_eq!(observed.programs.keys().copied().collect::<Vec<_>>(), [1, 2]);
        let mut twice = observed.clone();
        twice.merge(&observed);
        assert_eq!((twice.writes.ios, twice.programs[&2].writes), (4, 2));
        assert_eq!(twice.reads.response_time.count(), 2);
    }

    #[test]
    fn a_request_whose_start_was_not_seen_has_no_time_in_the_queue() {
        let mut observed = Observed::default();
        observed.take(&BlockRequest { queued: None, ..request(Operation::Read, 4096, 1) });
        assert_eq!(observed.reads.queue_time.count(), 0);
        assert_eq!(observed.reads.response_time.max(), Some(100));
    }
}
