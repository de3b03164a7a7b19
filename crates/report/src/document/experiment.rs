//! An experiment as it stands in the document: what was asked for, where a trial stands in it, and
//! what it found.

use std::collections::BTreeMap;

use fathom_core::experiment as core;
use fathom_core::{stats, trial};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Point;

/// An experiment as it was asked for, with every default filled in: who resumes it must ask for the
/// same.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Experiment {
    /// What people call it: the name of a study, a test or a workload; otherwise that of the command.
    pub name: String,
    /// What all its points have in common, as far as no axis says otherwise.
    pub base: Point,
    /// The axes along which its points differ, the first one varying slowest.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub axes: Vec<Axis>,
    /// Its other settings, by the names of their options.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub settings: BTreeMap<String, String>,
}

/// An axis of an experiment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Axis {
    /// Its name: an option of `fathom run`, such as `queue-depth`.
    pub name: String,
    /// How its values lie.
    pub scale: Scale,
    /// Its values as they are typed, in their order.
    pub labels: Vec<String>,
}

/// How the values of an axis lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Scale {
    /// At distances that are their differences.
    Linear,
    /// At distances that are their ratios.
    Log2,
    /// Side by side: names.
    Categories,
}

/// Where a trial stands in its experiment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Place {
    /// What it is for.
    pub role: Role,
    /// Where it lies on the axes of the experiment, in their order.
    pub coordinates: Vec<Coordinate>,
    /// Which of the trials at the same place it is, from 0.
    #[serde(default)]
    pub repeat: u32,
}

/// What a trial is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
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

/// A value on an axis.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Coordinate {
    /// The axis, by its name.
    pub axis: String,
    /// The value as it is typed.
    pub label: String,
    /// The value as a number, where it is one: bytes, I/Os per second, a share from 0 to 1.
    pub value: Option<f64>,
}

/// A figure with half of its 95 % confidence interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Estimate {
    /// The figure.
    pub value: f64,
    /// Half of its interval; none if it cannot be told.
    pub half_width: Option<f64>,
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
    /// By another program, job by job.
    Jobs(super::JobsFound),
}

/// What a sweep found; its figures are the trials' own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SweepFound {
    /// The axes, the first one varying slowest.
    pub axes: Vec<Axis>,
    /// Coordinates of points that were cut off because they were clearly worse.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cut_off: Vec<Vec<String>>,
}

/// What a search for the peak found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PeakFound {
    /// What was varied: `queue-depth`, `workers` or `rate`.
    pub axis: String,
    /// What is called throughput: `iops` or `bandwidth`, in bytes per second.
    pub measure: String,
    /// The share of the best throughput that is enough.
    pub enough: Option<f64>,
    /// The objective in words, if there is one.
    pub objective: Option<String>,
    /// What was probed, by rising value.
    pub probes: Vec<Probe>,
    /// The answer, if there is one.
    pub choice: Option<f64>,
    /// The values that cannot be told from the answer, itself included.
    pub equals: Vec<f64>,
    /// The best throughput of all.
    pub best: Option<Estimate>,
}

/// What a search knows about one value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Probe {
    /// The value on the axis.
    pub value: f64,
    /// How often it was probed.
    pub trials: u32,
    /// I/Os or bytes per second.
    pub throughput: Estimate,
    /// The response time at the objective's quantile, otherwise the median.
    pub response_time_ns: Option<Estimate>,
    /// Whether it meets the objective; none without one.
    pub meets: Option<bool>,
}

/// What a latency map found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MapFound {
    /// The quantiles of the surfaces, from 0 to 1.
    pub quantiles: Vec<f64>,
    /// The steps of the write bandwidth, in bytes per second.
    pub write_bandwidths: Vec<f64>,
    /// The steps of the read rate, in I/Os per second.
    pub read_rates: Vec<f64>,
    /// All cells, row by row of the write bandwidth.
    pub cells: Vec<MapCell>,
    /// How well the cells that were filled in agree with measurements, for each quantile.
    pub validation: Vec<Validation>,
    /// How much the first quantile at the cells that were measured again at the end had changed, in the
    /// mean, as a share; below zero where it became shorter.
    pub drift: Option<f64>,
    /// Why the map is not to be relied on; empty if it is.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub doubts: Vec<String>,
}

/// A cell of a latency map.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MapCell {
    /// The place of its write bandwidth.
    pub write: u32,
    /// The place of its read rate.
    pub read: u32,
    /// How it is known.
    pub kind: CellKind,
    /// The response time at each of the map's quantiles, where it is known.
    pub response_time_ns: Vec<Option<Estimate>>,
}

/// How a cell of a latency map is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CellKind {
    /// It was measured.
    Measured,
    /// It was measured for as long as is allowed, and is still not precise.
    Imprecise,
    /// It was filled in from its neighbors.
    Filled,
    /// It was measured, and the target could not carry the load.
    Overloaded,
    /// It was not measured, because the target cannot carry less than that.
    Beyond,
}

/// How well values that were filled in agree with measurements.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Validation {
    /// The quantile, from 0 to 1.
    pub quantile: f64,
    /// How many cells were compared.
    pub cells: u32,
    /// The median of the errors, as a share.
    pub median_error: f64,
    /// The largest of the errors, as a share.
    pub largest_error: f64,
}

/// What rounds until a steady state found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SustainFound {
    /// The test.
    pub test: String,
    /// What was watched.
    pub watched: String,
    /// The rounds, in their order.
    pub rounds: Vec<Round>,
    /// The first of the rounds that make the steady state; none if there was none.
    pub steady_from: Option<u32>,
    /// What the steadiness was judged by, of the last rounds.
    pub steadiness: Option<Steadiness>,
}

/// A round.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Round {
    /// Its number, from 1.
    pub number: u32,
    /// What was watched.
    pub value: Estimate,
}

/// What the steadiness of rounds is judged by.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Steadiness {
    /// The mean of the rounds.
    pub mean: f64,
    /// Largest minus smallest, in the same unit.
    pub range: f64,
    /// What the best-fit line rises or falls by from the first to the last of them.
    pub excursion: f64,
}

impl From<&core::Axis> for Axis {
    fn from(axis: &core::Axis) -> Self {
        let scale = match axis.scale {
            core::Scale::Linear => Scale::Linear,
            core::Scale::Log2 => Scale::Log2,
            core::Scale::Categories => Scale::Categories,
        };
        Self { name: axis.name.clone(), scale, labels: axis.labels.clone() }
    }
}

impl From<&trial::Place> for Place {
    fn from(place: &trial::Place) -> Self {
        let coordinate = |one: &trial::Coordinate| Coordinate {
            axis: one.axis.clone(),
            label: one.label.clone(),
            value: one.value,
        };
        Self {
            role: match place.role {
                trial::Role::Result => Role::Result,
                trial::Role::Preparation => Role::Preparation,
                trial::Role::Probe => Role::Probe,
                trial::Role::Official => Role::Official,
                trial::Role::Validation => Role::Validation,
                trial::Role::Sentinel => Role::Sentinel,
            },
            coordinates: place.coordinates.iter().map(coordinate).collect(),
            repeat: place.repeat,
        }
    }
}

impl Place {
    /// Whether it says nothing: a run of one point has no place to tell.
    pub(super) fn is_plain(&self) -> bool {
        *self == Self::default()
    }
}

impl From<&stats::Estimate> for Estimate {
    fn from(estimate: &stats::Estimate) -> Self {
        Self { value: estimate.value, half_width: estimate.half_width }
    }
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

impl CellKind {
    /// Its name for people and programs.
    pub fn name(self) -> &'static str {
        match self {
            Self::Measured => "measured",
            Self::Imprecise => "imprecise",
            Self::Filled => "filled",
            Self::Overloaded => "overloaded",
            Self::Beyond => "beyond",
        }
    }
}

impl Estimate {
    /// As the core has it.
    pub fn to_core(self) -> stats::Estimate {
        stats::Estimate { value: self.value, half_width: self.half_width }
    }
}

impl From<&core::Found> for Found {
    fn from(found: &core::Found) -> Self {
        match found {
            core::Found::Sweep(found) => Self::Sweep(SweepFound {
                axes: found.axes.iter().map(Axis::from).collect(),
                cut_off: found.cut_off.clone(),
            }),
            core::Found::Peak(found) => Self::Peak(PeakFound::from(found)),
            core::Found::Map(found) => Self::Map(MapFound::from(found)),
            core::Found::Sustain(found) => Self::Sustain(SustainFound::from(found)),
        }
    }
}

impl From<&core::PeakFound> for PeakFound {
    fn from(found: &core::PeakFound) -> Self {
        let probe = |one: &core::Probe| Probe {
            value: one.value,
            trials: one.trials,
            throughput: Estimate::from(&one.throughput),
            response_time_ns: one.response_time_ns.as_ref().map(Estimate::from),
            meets: one.meets,
        };
        Self {
            axis: found.axis.clone(),
            measure: found.measure.clone(),
            enough: found.enough,
            objective: found.objective.clone(),
            probes: found.probes.iter().map(probe).collect(),
            choice: found.choice,
            equals: found.equals.clone(),
            best: found.best.as_ref().map(Estimate::from),
        }
    }
}

impl From<&core::MapFound> for MapFound {
    fn from(found: &core::MapFound) -> Self {
        let cell = |one: &core::MapCell| MapCell {
            write: one.write,
            read: one.read,
            kind: match one.kind {
                core::CellKind::Measured => CellKind::Measured,
                core::CellKind::Imprecise => CellKind::Imprecise,
                core::CellKind::Filled => CellKind::Filled,
                core::CellKind::Overloaded => CellKind::Overloaded,
                core::CellKind::Beyond => CellKind::Beyond,
            },
            response_time_ns: one
                .response_time_ns
                .iter()
                .map(|time| time.as_ref().map(Estimate::from))
                .collect(),
        };
        let validation = |one: &core::Validation| Validation {
            quantile: one.quantile.0,
            cells: one.cells,
            median_error: one.median_error,
            largest_error: one.largest_error,
        };
        Self {
            quantiles: found.quantiles.iter().map(|quantile| quantile.0).collect(),
            write_bandwidths: found.write_bandwidths.clone(),
            read_rates: found.read_rates.clone(),
            cells: found.cells.iter().map(cell).collect(),
            validation: found.validation.iter().map(validation).collect(),
            drift: found.drift,
            doubts: found.doubts.clone(),
        }
    }
}

impl From<&core::SustainFound> for SustainFound {
    fn from(found: &core::SustainFound) -> Self {
        let round =
            |one: &core::Round| Round { number: one.number, value: Estimate::from(&one.value) };
        Self {
            test: found.test.clone(),
            watched: found.watched.clone(),
            rounds: found.rounds.iter().map(round).collect(),
            steady_from: found.steady_from,
            steadiness: found.steadiness.map(|one| Steadiness {
                mean: one.mean,
                range: one.range,
                excursion: one.excursion,
            }),
        }
    }
}
