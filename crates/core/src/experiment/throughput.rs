//! The throughput of a comparison: I/Os or bytes per second, whichever is more meaningful, and its
//! words.

use crate::figures::{number, significant};
use crate::measure::Record;
use crate::spec::Point;
use crate::stats::{Estimate, bandwidth, iops};
use crate::units::Bytes;

/// From this mean block size on people think in bytes.
const LARGE_BLOCK: u64 = 64 * Bytes::KIB;

/// The unit of throughput.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Throughput {
    /// I/Os per second.
    Iops,
    /// Bytes per second.
    Bandwidth,
}

impl Throughput {
    /// The more meaningful unit for the compared points: bandwidth if their blocks are large or
    /// differ from stream to stream.
    pub fn of<'p>(points: impl IntoIterator<Item = &'p Point>) -> Self {
        let streams = points.into_iter().flat_map(|point| &point.streams);
        // Exact to the byte: smaller differences do not matter to anyone.
        let mut blocks =
            streams.map(|stream| stream.block_sizes().mean(stream.read_share()).round() as u64);
        let first = blocks.next().unwrap_or(0);
        match first < LARGE_BLOCK && blocks.all(|block| block == first) {
            true => Self::Iops,
            false => Self::Bandwidth,
        }
    }

    /// The name in results.
    pub fn name(self) -> &'static str {
        match self {
            Self::Iops => "iops",
            Self::Bandwidth => "bandwidth",
        }
    }

    /// The throughput of a record, of all streams together.
    pub fn read(self, record: &Record) -> Option<Estimate> {
        match self {
            Self::Iops => iops(record, None, None),
            Self::Bandwidth => bandwidth(record, None, None),
        }
    }

    /// "41,200 IOPS", "856 MiB/s".
    pub fn in_words(self, value: f64) -> String {
        match self {
            Self::Iops => format!("{} IOPS", number(value)),
            Self::Bandwidth => mebibytes_in_words(value),
        }
    }
}

/// "894 MiB/s", "1,905 MiB/s": in the unit and with the digits of tables, so that figures can be
/// compared at a glance. Less than a MiB/s is in KiB/s.
fn mebibytes_in_words(bytes_per_second: f64) -> String {
    match bytes_per_second / Bytes::MIB as f64 {
        mebibytes if 1.0 <= mebibytes => format!("{} MiB/s", significant(mebibytes)),
        _ => format!("{}/s", Bytes(bytes_per_second as u64)),
    }
}

/// "894 MiB/s (937 MB/s)": powers of two, and powers of ten, in which limits are given.
pub fn bandwidth_in_words(bytes_per_second: f64) -> String {
    let decimal = number(bytes_per_second / 1e6);
    format!("{} ({decimal} MB/s)", mebibytes_in_words(bytes_per_second))
}
