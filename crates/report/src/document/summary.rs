//! The summary: the last line of a result file, for programs that want its figures and no more.

use std::collections::BTreeMap;

use fathom_core::facts::Answer;
use fathom_core::stats::Estimate;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Command, Ended, Verdict};

/// The version of the summary's form.
pub const SUMMARY_VERSION: u32 = 1;

/// The answer of a result with its figures. It follows from the other lines, which are the truth.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ResultSummary {
    /// The version of this form.
    pub summary_version: u32,
    /// The answer in one sentence: figures, verdict, gravest doubt.
    pub answer: String,
    /// The command that ran.
    pub command: Command,
    /// When the run began, in RFC 3339, UTC.
    pub created: String,
    /// The targets' names.
    pub targets: Vec<String>,
    /// The hosts that applied the load together; absent where one machine did.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<String>,
    /// How the run ended; null if it was cut off, or still goes on.
    pub ended: Option<Ended>,
    /// The gravest verdict; null if nothing was judged.
    pub verdict: Option<Verdict>,
    /// The codes of the doubts, the gravest first: of all findings that make a trial void or suspect.
    pub doubts: Vec<String>,
    /// The codes of the findings that are notes.
    pub notes: Vec<String>,
    /// The promises, each with the figure beside it; empty where nothing was promised.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub promises: Vec<SummaryPromise>,
    /// The conditions of `--fail-if`, and whether each applies; empty without any, and for a result that is
    /// void or was not finished.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<SummaryCondition>,
    /// The figures of the only result, or of the one that an experiment chose; null if there is no
    /// such result.
    pub figures: Option<SummaryFigures>,
    /// Every result: a trial of `run` or `quick`, a point of an experiment.
    pub results: Vec<SummaryResult>,
}

/// One result of a summary.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SummaryResult {
    /// What ran: the name of its point.
    pub name: String,
    /// Its value on each axis of an experiment, as it was typed.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub coordinates: BTreeMap<String, String>,
    /// The number of trials behind the figures.
    pub trials: usize,
    /// The gravest verdict of its trials.
    pub verdict: Verdict,
    /// The figures.
    pub figures: SummaryFigures,
    /// What each host did, where one trial of several hosts is behind the figures.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<SummaryHost>,
}

/// What one of several hosts did.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SummaryHost {
    /// Its name.
    pub host: String,
    /// Why its trial is missing; null if it is there.
    pub lost: Option<String>,
    /// The verdict of its own trial; null if it was lost.
    pub verdict: Option<Verdict>,
    /// The codes of the findings about its own trial, the gravest first.
    pub doubts: Vec<String>,
    /// Its figures; null if it was lost. The mean and the 99.9th percentile have no interval.
    pub figures: Option<SummaryFigures>,
}

/// A promise beside the result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SummaryPromise {
    /// The figure, what was promised, and whether it was kept.
    pub text: String,
    /// Whether it was kept; unknown where the result does not decide it.
    pub kept: Answer,
}

/// A condition under which a result fails.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SummaryCondition {
    /// As it was typed.
    pub typed: String,
    /// What became of it.
    pub text: String,
    /// Whether it applies, so that the result fails; unknown where the result does not decide it.
    pub applies: Answer,
}

/// The figures of a result, of all its streams and both directions together, each with half of its
/// 95 % interval. Null where there are too few samples.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SummaryFigures {
    /// I/Os per second.
    pub iops: Option<Estimate>,
    /// Bytes per second.
    pub bandwidth_bytes_per_second: Option<Estimate>,
    /// The mean response time; in a closed loop the service time.
    pub mean_ns: Option<Estimate>,
    /// The median.
    pub p50_ns: Option<Estimate>,
    /// The 99th percentile.
    pub p99_ns: Option<Estimate>,
    /// The 99.9th percentile.
    pub p99_9_ns: Option<Estimate>,
}
