//! A document in the format of DiskSpd's results, for people and as XML. Data that DiskSpd prints
//! and the document does not hold comes in separately: the profile as it was typed, and the thread
//! of DiskSpd that each worker stands for.
//!
//! Times are service times, as DiskSpd's latencies are. A percentile is the smallest value whose
//! cumulative count is at least its share of all.

mod processors;
mod rows;
mod series;
mod text;
mod xml;

use fathom_core::Span;

use crate::document::Document;

/// The requested settings, as far as DiskSpd prints them and the document does not contain them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Profile {
    /// The beginning of the result: the command line and the input parameters of the text, the
    /// `<Profile>` element of the XML. It ends with a newline.
    pub description: String,
    /// One for each time span; each trial of the document is one of them, in this order.
    pub time_spans: Vec<TimeSpan>,
}

/// One measurement of a profile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimeSpan {
    /// Whether times are printed (`-L`).
    pub service_times: bool,
    /// The intervals over which IOPS are compared (`-D`), in a whole number of milliseconds above 0;
    /// none if they are not.
    pub io_bucket: Option<Span>,
    /// The number of its threads.
    pub threads: u32,
    /// I/Os in flight of each thread, if the number is for all targets together (`-O`).
    pub requests: Option<u32>,
    /// The threads of each stream of the point.
    pub streams: Vec<ThreadGroup>,
    /// Shares of I/Os by place (`-rd`), with their ranges on the targets.
    pub distributions: Vec<RangeShares>,
}

/// The threads that a stream stands for, and their targets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadGroup {
    /// The number of the thread for its first worker; the others follow.
    pub first_thread: u32,
    /// The path of the target of each of its regions, as it was typed.
    pub paths: Vec<String>,
}

/// The shares of random I/Os for the parts of a target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RangeShares {
    /// The target's path, as it was typed.
    pub path: String,
    /// The threads that used it, rising.
    pub threads: Vec<u32>,
    /// Percent of the I/Os, and the range from one byte to below another; without holes.
    pub ranges: Vec<(u32, u64, u64)>,
}

/// The result as DiskSpd prints it for people, with all of its tables in its order.
pub fn text(document: &Document, profile: &Profile) -> String {
    text::results(document, profile)
}

/// The result as DiskSpd prints it with `-Rxml`.
pub fn xml(document: &Document, profile: &Profile) -> String {
    xml::results(document, profile)
}

/// A size in DiskSpd's format: `64KiB` if it is a whole number of a unit, otherwise two decimals
/// (`1.50KiB`), and below 1 KiB the bytes alone.
pub fn size(bytes: u64) -> String {
    const UNITS: [(u32, &str); 5] =
        [(50, "PiB"), (40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")];
    let Some((shift, name)) = UNITS.into_iter().find(|(shift, _)| bytes >> shift > 0) else {
        return bytes.to_string();
    };
    match bytes.trailing_zeros() >= shift {
        true => format!("{}{name}", bytes >> shift),
        false => format!("{:.2}{name}", bytes as f64 / (1u64 << shift) as f64),
    }
}
