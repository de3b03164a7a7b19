//! The result of one execution of a point, and its place in its experiment: experiments decide from
//! it, verdicts judge it, reports show it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::facts::Counters;
use crate::hosts::HostTrial;
use crate::measure::Record;
use crate::spec::{BackendKind, Point};
use crate::watch::Breakdown;

/// One execution of a point.
#[derive(Clone, Debug, PartialEq)]
pub struct Trial {
    /// The point that was to be measured.
    pub point: Point,
    /// Its place in the experiment.
    pub place: Place,
    /// The backend that carried the I/Os.
    pub backend: BackendKind,
    /// The reason for this backend.
    pub backend_reason: String,
    /// When the window began, in nanoseconds since 1970.
    pub started_unix_ns: u64,
    /// The record of all I/Os.
    pub record: Record,
    /// The host's counts during the window; absent for a simulated target.
    pub counters: Option<Counters>,
    /// The trace of its I/Os, if one was requested.
    pub traced: Option<Traced>,
    /// Where the time of its I/Os went, if that was asked for.
    pub breakdown: Option<Breakdown>,
    /// What each host did, if several hosts applied the load.
    pub hosts: Vec<HostTrial>,
    /// Whether its verdict was void: its figures do not measure what was asked for. False until it
    /// is judged.
    pub is_void: bool,
    /// The code of the gravest finding that makes it suspect or void; none if it is sound, and until
    /// it is judged.
    pub doubt: Option<&'static str>,
}

impl Trial {
    /// Whether the trial of a host is missing.
    pub fn has_lost_hosts(&self) -> bool {
        self.hosts.iter().any(|host| host.lost.is_some())
    }
}

/// A trace of a trial: how much of it is there, and how much is missing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Traced {
    /// The file, as it was named.
    pub file: String,
    /// I/Os of the trial in it, those of the warm-up and those after the window included.
    pub ios: u64,
    /// I/Os of the trial that are missing, because the trace could not be written fast enough, or
    /// at all.
    pub left_out: u64,
}

/// The place of a trial in its experiment: charts and tables arrange trials by it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Place {
    /// Its purpose.
    pub role: Role,
    /// Its coordinates on the axes of the experiment, in their order; empty without any.
    pub coordinates: Vec<Coordinate>,
    /// Its number among the trials at the same place, from 0.
    #[serde(default)]
    pub repeat: u32,
}

impl Place {
    /// Whether it is empty: a run of one point has no place to record.
    pub fn is_plain(&self) -> bool {
        *self == Self::default()
    }
}

/// The purpose of a trial.
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
    /// It prepares the state of the target for the results.
    Preparation,
    /// A short trial that guides a search.
    Probe,
    /// The long trial at the answer of a search.
    Official,
    /// It checks a value that was filled in.
    Validation,
    /// It repeats an earlier trial, to see whether the target has changed meanwhile.
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
    /// The value as a number, if it has one: bytes, I/Os per second, a share from 0 to 1.
    pub value: Option<f64>,
}

impl Coordinate {
    /// "queue-depth 8, block-size 4k".
    pub fn in_words<'a>(all: impl IntoIterator<Item = &'a Self>) -> String {
        let words = all.into_iter().map(|at| format!("{} {}", at.axis, at.label));
        words.collect::<Vec<_>>().join(", ")
    }
}
