//! What the load generator itself can do, as the document of its own that `fathom calibrate` writes.

use fathom_core::{calibration, facts};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{BackendKind, Distribution, Host, NullTarget, rfc3339};

/// What a calibration says it is.
pub const CALIBRATION_FORMAT: &str = "fathom-calibration";

/// The format of a calibration that this version writes.
pub const CALIBRATION_FORMAT_VERSION: u32 = 1;

/// All that `fathom calibrate` found: the engine's loop on next to nothing, in closed loops of
/// random reads of 4 KiB.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Calibration {
    /// "fathom-calibration".
    pub format: String,
    /// The version of this format.
    pub format_version: u32,
    /// The version of fathom that ran.
    pub fathom_version: String,
    /// When it began, in RFC 3339, UTC.
    pub created: String,
    /// The same in nanoseconds since 1970.
    pub created_unix_ns: u64,
    /// The machine, its clock included.
    pub host: Host,
    /// What carried the I/Os to real targets here.
    pub backend: BackendKind,
    /// Why that one.
    pub backend_reason: String,
    /// What was run, in this order.
    pub rows: Vec<CalibrationRow>,
    /// How late short sleeps ended; none if that could not be measured.
    pub wake_up: Option<WakeUp>,
    /// What could not be run here.
    pub left_out: Vec<LeftOut>,
}

/// One run of a calibration.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CalibrationRow {
    /// What was read.
    pub target: NullTarget,
    /// I/Os in flight for each worker.
    pub queue_depth: u32,
    /// Threads.
    pub workers: u32,
    /// How long.
    pub window_ns: u64,
    /// I/Os that completed.
    pub ios: u64,
    /// CPU time of the workers; none where other threads did their work.
    pub cpu_ns: Option<u64>,
    /// Completed minus submitted.
    pub service_time: Distribution,
}

/// How late short sleeps ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WakeUp {
    /// How long each sleep should have been.
    pub asked_ns: u64,
    /// From when each should have ended to when it did.
    pub late: Distribution,
}

/// What could not be run, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LeftOut {
    /// What.
    pub what: String,
    /// Why.
    pub why: String,
}

/// What a calibration's document is made of.
#[derive(Clone, Copy, Debug)]
pub struct CalibrationInput<'a> {
    /// The version of fathom.
    pub fathom_version: &'a str,
    /// When it began, in nanoseconds since 1970.
    pub created_unix_ns: u64,
    /// The machine.
    pub host: &'a facts::Host,
    /// What carried the I/Os.
    pub backend: BackendKind,
    /// Why that one.
    pub backend_reason: &'a str,
    /// What was found.
    pub found: &'a calibration::Calibration,
}

impl Calibration {
    /// The document of a calibration.
    pub fn new(input: CalibrationInput<'_>) -> Self {
        let found = input.found;
        Self {
            format: CALIBRATION_FORMAT.to_owned(),
            format_version: CALIBRATION_FORMAT_VERSION,
            fathom_version: input.fathom_version.to_owned(),
            created: rfc3339(input.created_unix_ns),
            created_unix_ns: input.created_unix_ns,
            host: input.host.clone(),
            backend: input.backend,
            backend_reason: input.backend_reason.to_owned(),
            rows: found.rows.iter().map(CalibrationRow::from).collect(),
            wake_up: found.wake_up.as_ref().map(|wake_up| WakeUp {
                asked_ns: wake_up.asked.0,
                late: Distribution::from(&wake_up.late),
            }),
            left_out: found
                .left_out
                .iter()
                .map(|one| LeftOut { what: one.what.clone(), why: one.why.clone() })
                .collect(),
        }
    }

    /// The document as one line of JSON, without a newline at its end.
    pub fn to_json(&self) -> String {
        let json = serde_json::to_string(self);
        super::harmless(json.expect("these types have string keys and no failing parts"))
    }
}

impl From<&calibration::Row> for CalibrationRow {
    fn from(row: &calibration::Row) -> Self {
        Self {
            target: row.target,
            queue_depth: row.queue_depth,
            workers: row.workers,
            window_ns: row.window.0,
            ios: row.ios(),
            cpu_ns: row.cpu.map(|cpu| cpu.0),
            service_time: Distribution::from(&row.service_time),
        }
    }
}

/// The JSON Schema of a calibration, as it is kept in `docs/schema`.
pub fn calibration_schema() -> String {
    let schema = schemars::schema_for!(Calibration);
    let mut text = serde_json::to_string_pretty(&schema).expect("a schema is plain JSON");
    text.push('\n');
    text
}
