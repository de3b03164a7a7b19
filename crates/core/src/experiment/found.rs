//! What experiments found, in figures: what their charts are drawn from beside the trials.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::stats::{Estimate, SteadyState};
use crate::units::Quantile;

/// What an experiment found.
#[derive(Clone, Debug, PartialEq)]
pub enum Found {
    /// By a sweep.
    Sweep(SweepFound),
    /// By a search for the peak.
    Peak(PeakFound),
    /// By a latency map.
    Map(MapFound),
    /// By rounds until a steady state.
    Sustain(SustainFound),
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
    /// At distances that are their ratios: 1, 2, 4, 8.
    Log2,
    /// Side by side: names.
    Categories,
}

/// What a sweep found. Its figures are the trials' own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SweepFound {
    /// The axes, the first one varying slowest.
    pub axes: Vec<Axis>,
    /// Coordinates, by their labels, of points that were cut off because they were clearly worse.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cut_off: Vec<Vec<String>>,
}

/// What a search for the peak found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PeakFound {
    /// What was varied: `queue-depth`, `workers` or `rate`.
    pub axis: String,
    /// What is called throughput here: `iops` or `bandwidth`.
    pub measure: String,
    /// The share of the best throughput that is enough, such as 0.95; with an objective there is
    /// none.
    pub enough: Option<f64>,
    /// The objective in words, such as `p99 <= 2 ms`, if there is one.
    pub objective: Option<String>,
    /// What was probed, by rising value, all probes of a value together.
    pub probes: Vec<Probe>,
    /// The answer; none if there is none, because no probe met the objective.
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
    /// The quantile of the response time that the objective is about, otherwise the median.
    pub response_time_ns: Option<Estimate>,
    /// Whether it meets the objective; none without one.
    pub meets: Option<bool>,
}

/// What a latency map found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MapFound {
    /// The quantiles of the surfaces.
    pub quantiles: Vec<Quantile>,
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
    /// Why the map is not to be relied on, one sentence each; empty if it is.
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
    /// The response time at each of the map's quantiles, in nanoseconds; none where it is not known,
    /// because there were too few samples or the cell is inadmissible.
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

/// How well values that were filled in agree with measurements.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Validation {
    /// The quantile.
    pub quantile: Quantile,
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
    /// The test, such as `write-saturation`.
    pub test: String,
    /// What was watched, such as `IOPS of random writes 4 KiB`.
    pub watched: String,
    /// The rounds, in their order.
    pub rounds: Vec<Round>,
    /// The first of the rounds that make the steady state; none if there was none.
    pub steady_from: Option<u32>,
    /// What the steadiness was judged by, of the last rounds.
    pub steadiness: Option<SteadyState>,
}

/// A round.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Round {
    /// Its number, from 1.
    pub number: u32,
    /// What was watched.
    pub value: Estimate,
}
