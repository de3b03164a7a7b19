//! What `fathom watch` shows and writes of each interval.

pub mod lines;
mod new_file;
pub mod result;
pub mod screen;
pub mod sum;
pub mod table;

use fathom_core::watch::{CountedFlow, ObservedFlow};
use fathom_core::{Quantile, Span};
use fathom_engine::watch::{DiskWatch, WatchedInterval, WatchedSlice};

/// An interval, with all that is needed to show it.
#[derive(Clone, Copy, Debug)]
pub struct Seen<'a> {
    /// Its end, in nanoseconds since 1970.
    pub at_unix_ns: u64,
    /// The names of the disks.
    pub disks: &'a [String],
    /// Knows the names of the programs.
    pub watch: &'a DiskWatch,
    /// What happened in it.
    pub interval: &'a WatchedInterval,
}

/// Reads or writes of a disk in an interval, from the best source of each figure.
#[derive(Clone, Copy, Debug)]
pub struct Flow<'a> {
    counted: CountedFlow,
    observed: Option<&'a ObservedFlow>,
    length: Span,
}

impl<'a> Flow<'a> {
    /// The reads of a disk; none if its counters are not there.
    pub fn reads(slice: &'a WatchedSlice) -> Option<Self> {
        let counted = slice.counted?;
        let observed = slice.observed.as_ref().map(|observed| &observed.reads);
        Some(Self { counted: counted.reads, observed, length: counted.length })
    }

    /// The writes of a disk; none if its counters are not there.
    pub fn writes(slice: &'a WatchedSlice) -> Option<Self> {
        let counted = slice.counted?;
        let observed = slice.observed.as_ref().map(|observed| &observed.writes);
        Some(Self { counted: counted.writes, observed, length: counted.length })
    }

    fn per_second(&self, number: u64) -> f64 {
        number as f64 / self.length.as_secs_f64().max(f64::MIN_POSITIVE)
    }

    /// I/Os per second.
    pub fn iops(&self) -> f64 {
        self.per_second(self.counted.ios)
    }

    /// Bytes per second.
    pub fn bandwidth(&self) -> f64 {
        self.per_second(self.counted.bytes.0)
    }

    /// The mean bytes of a request.
    pub fn mean_size(&self) -> Option<f64> {
        self.counted.mean_size()
    }

    /// The share of I/Os that were merged into others.
    pub fn merged(&self) -> Option<f64> {
        self.counted.merged_share()
    }

    /// The mean response time in nanoseconds: of the events, which have it to the nanosecond; of the
    /// counters if there are no events.
    pub fn mean(&self) -> Option<f64> {
        self.observed.and_then(|it| it.response_time.mean()).or_else(|| self.counted.mean_time())
    }

    /// A percentile of the response time in nanoseconds; none without events, and none if fewer than
    /// ten requests are above it.
    pub fn percentile(&self, quantile: Quantile) -> Option<u64> {
        let times = &self.observed?.response_time;
        let carries = times.count() as f64 * (1.0 - quantile.0) >= 10.0 || quantile.0 <= 0.5;
        times.quantile(quantile).filter(|_| carries)
    }

    /// The longest response time in nanoseconds.
    pub fn longest(&self) -> Option<u64> {
        self.observed?.response_time.max()
    }

    /// The mean time before the driver got the request, in nanoseconds.
    pub fn mean_queue_time(&self) -> Option<f64> {
        self.observed?.queue_time.mean()
    }

    /// The mean time with the driver and the device, in nanoseconds.
    pub fn mean_device_time(&self) -> Option<f64> {
        self.observed?.device_time.mean()
    }

    /// The share of requests that began where another one had ended.
    pub fn sequential(&self) -> Option<f64> {
        self.observed?.sequential_share()
    }
}

#[cfg(test)]
pub mod made {
    //! An interval that was made up, for the tests of what shows it.

    use fathom_core::watch::{BlockRequest, Counted, CountedFlow, Observed, Operation};
    use fathom_core::{Bytes, Instant, Span};
    use fathom_engine::watch::{WatchedInterval, WatchedSlice};

    /// A second with 2,000 reads of 4 KiB that took 100 us, 10 of which waited, and 50 writes of
    /// 64 KiB that took 3 ms.
    pub fn busy() -> WatchedInterval {
        let flow = |ios, merged, size, time| CountedFlow {
            ios,
            merged,
            bytes: Bytes(ios * size),
            time: Span::from_us(ios * time),
        };
        let counted = Counted {
            length: Span::from_secs(1),
            reads: flow(2000, 0, 4096, 100),
            writes: flow(50, 150, 65536, 3000),
            in_flight: 3,
            busy: Span::from_ms(320),
            weighted: Span::from_ms(350),
            ..Counted::default()
        };
        let mut observed = Observed::default();
        let request = |operation, sectors: u64, number: u64, us| BlockRequest {
            device: (8, 0),
            operation,
            sector: number * sectors,
            bytes: sectors * 512,
            program: 0,
            sequential: operation == Operation::Write,
            failed: false,
            queued: Some(Instant(0)),
            issued: Some(Instant(1000)),
            completed: Instant(us * 1000u64),
            cpus: (0, 0),
        };
        (0..2000).for_each(|number| observed.take(&request(Operation::Read, 8, number, 100)));
        (0..50).for_each(|number| observed.take(&request(Operation::Write, 128, number, 3000)));
        let slice = WatchedSlice { counted: Some(counted), observed: Some(observed) };
        WatchedInterval {
            length: Span::from_secs(1),
            disks: Vec::from([slice]),
            lost: 0,
            own_cpu: Span::from_ms(12),
        }
    }
}
