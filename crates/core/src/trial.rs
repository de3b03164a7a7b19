//! What one execution of a point came to, and where it stands in its experiment: what experiments
//! decide by, verdicts judge, and reports show.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::facts::Counters;
use crate::measure::Record;
use crate::spec::{BackendKind, Point};

/// One execution of a point.
#[derive(Clone, Debug, PartialEq)]
pub struct Trial {
    /// What was to be measured.
    pub point: Point,
    /// Where it stands in the experiment.
    pub place: Place,
    /// What carried the I/Os.
    pub backend: BackendKind,
    /// Why that one.
    pub backend_reason: String,
    /// When the window began, in nanoseconds since 1970.
    pub started_unix_ns: u64,
    /// What every I/O did.
    pub record: Record,
    /// What the host counted during the window; absent for a simulated target.
    pub counters: Option<Counters>,
    /// Where every I/O is to be found, if that was asked for.
    pub traced: Option<Traced>,
    /// Whether the verdict on it was void: its figures do not measure what was asked. False until it was
    /// judged.
    pub is_void: bool,
}

/// A trace of a trial: what is in it, and what is not.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Traced {
    /// The file, as it was named.
    pub file: String,
    /// I/Os of the trial in it, those of the warm-up and those after the window included.
    pub ios: u64,
    /// I/Os of the trial that are not, because it could not be written as fast, or at all.
    pub left_out: u64,
}

/// Where a trial stands in its experiment: what charts and tables arrange it by.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Place {
    /// What it is for.
    pub role: Role,
    /// Where it lies on the axes of the experiment, in their order; empty without any.
    pub coordinates: Vec<Coordinate>,
    /// Which of the trials at the same place it is, from 0.
    #[serde(default)]
    pub repeat: u32,
}

impl Place {
    /// Whether it says nothing: a run of one point has no place to tell.
    pub fn is_plain(&self) -> bool {
        *self == Self::default()
    }
}

/// What a trial is for.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// It is one of the results.
    #[default]
    Result,
    /// It brings the target into the state that the results are about.
    Preparation,
    /// A short one that a search is decided by.
    Probe,
    /// The long one at what a search has found.
    Official,
    /// It checks a value that was filled in.
    Validation,
    /// It repeats an earlier one, to see whether the target has changed meanwhile.
    Sentinel,
}

impl Role {
    /// Its name for people and programs.
    pub fn name(self) -> &'static str {
        match self {
            Self::Result => "result",
            Self::Preparation => "preparation",
            Self::Probe => "probe",
            Self::Official => "official",
            Self::Validation => "validation",
            Self::Sentinel => "sentinel",
        }
    }
}

/// A value on an axis.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Coordinate {
    /// The axis, by its name: an option of `fathom run`, such as `queue-depth`.
    pub axis: String,
    /// The value as it was typed or is typed, such as `4k`.
    pub label: String,
    /// The value as a number, where it is one: bytes, I/Os per second, a share from 0 to 1.
    pub value: Option<f64>,
}
