//! What `fathom watch --out` keeps, in a versioned form of its own: it has no trials, because
//! fathom made none of the load.
//!
//! The file is an append-only journal in JSON Lines: a header, a line for each disk and stretch of
//! time, an end. Times end in `_ns` and sizes in `_bytes`. Distributions are kept whole, so a reader
//! chooses the percentile.

mod read;
mod record;
mod summary;

use fathom_core::facts::{Host, LayerKind};
use fathom_core::watch::{Caused, Counted, CountedFlow, Observed, ObservedFlow};
use fathom_core::{Bytes, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::document::{self, Distribution};

pub use read::{WatchReadError, WatchedDisk, WatchedResult, is_watch, read_from};
pub use record::Recorder;
pub use summary::{DiskSummary, WatchSummary};

/// What the first line of such a file says it is.
pub const WATCH_FORMAT: &str = "fathom-watch";

/// The format that this version writes. It rises with every change that an older reader would
/// misunderstand; a field that is added is none.
pub const WATCH_FORMAT_VERSION: u32 = 1;

/// The name of the programs that caused least, together.
pub(crate) const OTHERS: &str = "others";

/// One line of the file.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(tag = "line", rename_all = "snake_case")]
pub enum WatchLine {
    /// The first line.
    Header(Box<WatchHeader>),
    /// One disk in one stretch of time.
    Stretch(Box<WatchStretch>),
    /// The last line; absent when the watch was killed.
    End(WatchEnd),
}

/// What was watched, and by what.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WatchHeader {
    /// "fathom-watch".
    pub format: String,
    /// The version of this format.
    pub format_version: u32,
    /// The version of fathom that watched.
    pub fathom_version: String,
    /// The command line, word by word, as it was typed.
    pub command_line: Vec<String>,
    /// When the watch began, in RFC 3339, UTC.
    pub created: String,
    /// The same in nanoseconds since 1970. All other times are from here on.
    pub created_unix_ns: u64,
    /// The length of an interval, as it was asked for.
    pub interval_ns: u64,
    /// The machine.
    pub host: Host,
    /// The disks; lines name them by their place here.
    pub disks: Vec<WatchedName>,
    /// Why there are no distributions and programs; none if there are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub without_events: Option<String>,
}

/// A disk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WatchedName {
    /// Its usual name without /dev.
    pub name: String,
    /// What it is.
    pub kind: LayerKind,
}

/// One disk in one stretch of time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WatchStretch {
    /// Its place in the header.
    pub disk: u32,
    /// What the kernel's counters say, interval by interval.
    pub counted: CountedColumns,
    /// What the events say: one entry for each interval at first, and for several of them later.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub observed: Vec<ObservedSlice>,
    /// What each program caused in the whole stretch; those that caused least are one, "others".
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub programs: Vec<ProgramShare>,
    /// Events that the kernel dropped, of all disks together. It stands in the lines of the first
    /// disk.
    #[serde(default)]
    pub lost_events: u64,
    /// The CPU time that watching took, in the lines of the first disk.
    #[serde(default)]
    pub own_cpu_ns: u64,
}

/// Counters as columns: each list has an entry for each interval.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CountedColumns {
    /// The begin.
    pub start_ns: Vec<u64>,
    /// The length.
    pub length_ns: Vec<u64>,
    /// Requests in flight at the end.
    pub in_flight: Vec<u64>,
    /// The time during which at least one request was in flight.
    pub busy_ns: Vec<u64>,
    /// The sum of the times that requests were in flight.
    pub weighted_ns: Vec<u64>,
    /// Reads.
    pub reads: FlowColumns,
    /// Writes.
    pub writes: FlowColumns,
    /// Discards.
    pub discards: FlowColumns,
    /// Flushes.
    pub flushes: FlowColumns,
}

/// Counters of one operation as columns.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FlowColumns {
    /// Requests that became complete.
    pub ios: Vec<u64>,
    /// I/Os that were merged into others.
    pub merged: Vec<u64>,
    /// Their bytes.
    pub bytes: Vec<u64>,
    /// The sum of their response times; the kernel counts milliseconds.
    pub time_ns: Vec<u64>,
}

/// What the events say about a time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ObservedSlice {
    /// Its begin.
    pub start_ns: u64,
    /// Its end.
    pub end_ns: u64,
    /// Reads.
    #[serde(default, skip_serializing_if = "ObservedTimes::is_empty")]
    pub reads: ObservedTimes,
    /// Writes.
    #[serde(default, skip_serializing_if = "ObservedTimes::is_empty")]
    pub writes: ObservedTimes,
    /// Discards.
    #[serde(default, skip_serializing_if = "ObservedTimes::is_empty")]
    pub discards: ObservedTimes,
    /// Flushes.
    #[serde(default, skip_serializing_if = "ObservedTimes::is_empty")]
    pub flushes: ObservedTimes,
    /// Requests without data, which the counters count as writes.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub without_data: u64,
}

fn is_zero(value: &u64) -> bool {
    *value == 0
}

/// The requests of one operation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ObservedTimes {
    /// Requests whose completion was seen.
    pub ios: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Those that began where another one had ended.
    pub sequential: u64,
    /// Those that the device failed.
    pub failed: u64,
    /// From the making of the request to its completion.
    pub response_time: Distribution,
    /// The part of it before the driver got the request.
    pub queue_time: Distribution,
    /// The part of it with the driver and the device.
    pub device_time: Distribution,
}

/// What one program caused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProgramShare {
    /// Its name.
    pub name: String,
    /// Reads.
    pub reads: u64,
    /// Writes.
    pub writes: u64,
    /// Bytes that were read.
    pub read_bytes: u64,
    /// Bytes that were written.
    pub written_bytes: u64,
}

/// The end of a watch.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WatchEnd {
    /// How long it took.
    pub length_ns: u64,
    /// The exit code of the command that was watched; none without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
}

impl WatchLine {
    /// Reads a line. The kind comes first, because serde cannot look ahead over large numbers.
    ///
    /// # Errors
    ///
    /// When it is none of these lines.
    pub fn from_json(line: &[u8]) -> serde_json::Result<Self> {
        #[derive(Deserialize)]
        struct FirstField {
            line: LineKind,
        }
        #[derive(Deserialize)]
        #[serde(rename_all = "snake_case")]
        enum LineKind {
            Header,
            Stretch,
            End,
        }
        Ok(match serde_json::from_slice::<FirstField>(line)?.line {
            LineKind::Header => Self::Header(serde_json::from_slice(line)?),
            LineKind::Stretch => Self::Stretch(serde_json::from_slice(line)?),
            LineKind::End => Self::End(serde_json::from_slice(line)?),
        })
    }

    /// The line, without a newline at its end.
    pub fn to_json(&self) -> String {
        let json = serde_json::to_string(self);
        document::harmless(json.expect("these types have string keys and no failing parts"))
    }
}

impl CountedColumns {
    /// Adds an interval.
    pub fn push(&mut self, start: Span, counted: &Counted) {
        self.start_ns.push(start.0);
        self.length_ns.push(counted.length.0);
        self.in_flight.push(counted.in_flight);
        self.busy_ns.push(counted.busy.0);
        self.weighted_ns.push(counted.weighted.0);
        self.reads.push(&counted.reads);
        self.writes.push(&counted.writes);
        self.discards.push(&counted.discards);
        self.flushes.push(&counted.flushes);
    }

    /// The intervals, each with its begin; none if the columns differ in length.
    pub fn intervals(&self) -> Option<Vec<(Span, Counted)>> {
        (0..self.start_ns.len())
            .map(|place| {
                let counted = Counted {
                    length: Span(*self.length_ns.get(place)?),
                    reads: self.reads.at(place)?,
                    writes: self.writes.at(place)?,
                    discards: self.discards.at(place)?,
                    flushes: self.flushes.at(place)?,
                    in_flight: *self.in_flight.get(place)?,
                    busy: Span(*self.busy_ns.get(place)?),
                    weighted: Span(*self.weighted_ns.get(place)?),
                };
                Some((Span(self.start_ns[place]), counted))
            })
            .collect()
    }
}

impl FlowColumns {
    fn push(&mut self, flow: &CountedFlow) {
        self.ios.push(flow.ios);
        self.merged.push(flow.merged);
        self.bytes.push(flow.bytes.0);
        self.time_ns.push(flow.time.0);
    }

    fn at(&self, place: usize) -> Option<CountedFlow> {
        Some(CountedFlow {
            ios: *self.ios.get(place)?,
            merged: *self.merged.get(place)?,
            bytes: Bytes(*self.bytes.get(place)?),
            time: Span(*self.time_ns.get(place)?),
        })
    }
}

impl ObservedSlice {
    /// Of what was observed between two times.
    pub fn new(start: Span, end: Span, observed: &Observed) -> Self {
        Self {
            start_ns: start.0,
            end_ns: end.0,
            reads: ObservedTimes::from(&observed.reads),
            writes: ObservedTimes::from(&observed.writes),
            discards: ObservedTimes::from(&observed.discards),
            flushes: ObservedTimes::from(&observed.flushes),
            without_data: observed.without_data,
        }
    }

    /// As the core has it, without programs.
    pub fn to_observed(&self) -> Observed {
        Observed {
            reads: self.reads.to_flow(),
            writes: self.writes.to_flow(),
            discards: self.discards.to_flow(),
            flushes: self.flushes.to_flow(),
            without_data: self.without_data,
            ..Observed::default()
        }
    }
}

impl ObservedTimes {
    fn is_empty(&self) -> bool {
        self.ios == 0
    }

    fn to_flow(&self) -> ObservedFlow {
        ObservedFlow {
            ios: self.ios,
            bytes: Bytes(self.bytes),
            sequential: self.sequential,
            failed: self.failed,
            response_time: self.response_time.to_histogram(),
            queue_time: self.queue_time.to_histogram(),
            device_time: self.device_time.to_histogram(),
        }
    }
}

impl From<&ObservedFlow> for ObservedTimes {
    fn from(flow: &ObservedFlow) -> Self {
        Self {
            ios: flow.ios,
            bytes: flow.bytes.0,
            sequential: flow.sequential,
            failed: flow.failed,
            response_time: Distribution::from(&flow.response_time).coded(),
            queue_time: Distribution::from(&flow.queue_time).coded(),
            device_time: Distribution::from(&flow.device_time).coded(),
        }
    }
}

impl ProgramShare {
    /// As the core has it.
    pub fn caused(&self) -> Caused {
        Caused {
            reads: self.reads,
            writes: self.writes,
            read_bytes: Bytes(self.read_bytes),
            written_bytes: Bytes(self.written_bytes),
        }
    }

    /// Of what a program with this name caused.
    pub fn new(name: impl Into<String>, caused: &Caused) -> Self {
        Self {
            name: name.into(),
            reads: caused.reads,
            writes: caused.writes,
            read_bytes: caused.read_bytes.0,
            written_bytes: caused.written_bytes.0,
        }
    }
}

/// The JSON Schema of the summary.
pub fn watch_summary_schema() -> String {
    let schema = schemars::schema_for!(WatchSummary);
    let text = serde_json::to_string_pretty(&schema);
    text.expect("a schema has string keys and no failing parts") + "\n"
}

/// The JSON Schema of a line of the file.
pub fn watch_schema() -> String {
    let schema = schemars::schema_for!(WatchLine);
    let text = serde_json::to_string_pretty(&schema);
    text.expect("a schema has string keys and no failing parts") + "\n"
}
