//! An experiment as it stands in the document: what was asked for, where a trial stands in it, and
//! what it found.

use std::collections::BTreeMap;

use fathom_core::experiment as core;
use fathom_core::experiment::{AbFound, Axis, MapFound, PeakFound, SustainFound, SweepFound};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Point, point};

/// An experiment as it was asked for, with every default filled in: who resumes it must ask for the
/// same.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Experiment {
    /// What people call it: the name of a study, a test or a workload; otherwise that of the command.
    pub name: String,
    /// What all its points have in common, as far as no axis says otherwise.
    #[serde(deserialize_with = "point::of_either_version")]
    pub base: Point,
    /// The axes along which its points differ, the first one varying slowest.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub axes: Vec<Axis>,
    /// Its other settings, by the names of their options.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub settings: BTreeMap<String, String>,
}

/// What an experiment found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Found {
    /// By a sweep.
    Sweep(SweepFound),
    /// By a search for the peak.
    Peak(PeakFound),
    /// By a latency map.
    Map(MapFound),
    /// By rounds until a steady state.
    Sustain(SustainFound),
    /// By two sides that alternate.
    Ab(AbFound),
    /// By another program, job by job.
    Jobs(super::JobsFound),
}

impl From<&core::Found> for Found {
    fn from(found: &core::Found) -> Self {
        match found {
            core::Found::Sweep(found) => Self::Sweep(found.clone()),
            core::Found::Peak(found) => Self::Peak(found.clone()),
            core::Found::Map(found) => Self::Map(found.clone()),
            core::Found::Sustain(found) => Self::Sustain(found.clone()),
            core::Found::Ab(found) => Self::Ab(found.clone()),
        }
    }
}
