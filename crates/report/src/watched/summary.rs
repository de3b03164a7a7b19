//! The summary of a watch, for programs that want its figures and no more.

use schemars::JsonSchema;
use serde::Serialize;

use crate::document::{SummaryCondition, SummaryFigures};

/// The answer of a watch with its figures. It follows from the lines of the file, which are the truth.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct WatchSummary {
    /// The version of this form, which is also that of the summary of a run.
    pub summary_version: u32,
    /// The answer in one sentence: the load and the response times of the busiest disk.
    pub answer: String,
    /// When the watch began, in RFC 3339, UTC.
    pub created: String,
    /// How long it took.
    pub length_ns: u64,
    /// The exit code of the command that was watched; null without one.
    pub exit_code: Option<i32>,
    /// Whether the file has its end; false if the watch was killed, or still goes on.
    pub is_complete: bool,
    /// Events that the kernel dropped: times and programs lack them.
    pub lost_events: u64,
    /// The conditions of `--fail-if`, and whether each applies; empty without any.
    pub conditions: Vec<SummaryCondition>,
    /// The disks.
    pub disks: Vec<DiskSummary>,
}

/// A disk in the summary of a watch. No figure has an interval, because fathom did not make the load.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct DiskSummary {
    /// Its usual name without /dev.
    pub name: String,
    /// The share of the time with at least one request in flight, from 0 to 1; null if nothing was counted.
    pub busy: Option<f64>,
    /// Requests in flight on average; null if nothing was counted.
    pub in_flight: Option<f64>,
    /// The share of its requests that events showed, from 0 to 1: percentiles and means are of these. Null
    /// without events, where a mean comes from counters of whole milliseconds.
    pub seen: Option<f64>,
    /// Reads and writes together.
    pub figures: SummaryFigures,
    /// The reads.
    pub reads: SummaryFigures,
    /// The writes.
    pub writes: SummaryFigures,
}
