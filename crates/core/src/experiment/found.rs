//! The findings of experiments, in figures: their charts are drawn from these and from the trials.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::findings::Verdict;
use crate::stats::{Estimate, Ratio, SteadyState};
use crate::units::Quantile;
use crate::verdict::code_in_words;

/// The findings of an experiment.
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
    /// By two sides that alternate.
    Ab(AbFound),
}

/// An axis of an experiment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Axis {
    /// Its name: an option of `fathom run`, such as `queue-depth`.
    pub name: String,
    /// The spacing of its values.
    pub scale: Scale,
    /// Its values as they are typed, in their order.
    pub labels: Vec<String>,
}

/// The spacing of an axis's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Scale {
    /// By their differences.
    Linear,
    /// By their ratios: 1, 2, 4, 8.
    Log2,
    /// Evenly, as names.
    Categories,
}

/// The findings of a sweep. Its figures are the trials' own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SweepFound {
    /// The axes, the first one varying slowest.
    pub axes: Vec<Axis>,
    /// Coordinates, by their labels, of points that were cut off because they were clearly worse.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cut_off: Vec<Vec<String>>,
    /// Coordinates, by their labels, of points that wrote data that repeats itself much faster than
    /// random data: their figures say nothing about the medium, whenever they were measured.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub saved: Vec<Vec<String>>,
    /// Whether the trials scatter so much that no point can be told from another.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub all_alike: bool,
}

/// The findings of a search for the peak.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PeakFound {
    /// What was varied: `queue-depth`, `workers` or `rate`.
    pub axis: String,
    /// What throughput means here: `iops` or `bandwidth`.
    pub measure: String,
    /// The share of the best throughput that is enough, such as 0.95; with an objective there is
    /// none.
    pub enough: Option<f64>,
    /// The objective in words, such as `p99 <= 2 ms`, if there is one.
    pub objective: Option<String>,
    /// The values that were probed, in rising order, all probes of a value together.
    pub probes: Vec<Probe>,
    /// The answer; none if no load met the objective.
    pub choice: Option<f64>,
    /// The values that cannot be told from the answer, including the answer.
    pub equals: Vec<f64>,
    /// The best throughput of all.
    pub best: Option<Estimate>,
    /// Whether chance can explain on which side of the objective the official run at the answer was, or
    /// too few I/Os leave that open.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub official_is_open: bool,
}

/// The knowledge of a search about one value.
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

/// The findings of a latency map.
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
    /// The mean change, as a share, of the first quantile at the cells that were measured again at
    /// the end; below zero if it became shorter.
    pub drift: Option<f64>,
    /// Why the map is not to be relied on, one sentence each; empty if it can be relied on.
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
    /// The response time at each of the map's quantiles, in nanoseconds; none if it is not known,
    /// because there were too few samples or the target does not carry the cell.
    pub response_time_ns: Vec<Option<Estimate>>,
    /// The doubt about its trial or, if it was filled in, about a trial next to it; none if there is
    /// none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub doubt: Option<CellDoubt>,
}

/// The doubt about a cell of a latency map.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CellDoubt {
    /// Suspect or void. No answer rests on a void cell.
    pub verdict: Verdict,
    /// The code of the gravest finding about the trial, such as `foreign-io`.
    pub code: String,
}

impl MapCell {
    /// Whether an answer may rest on it: the target carries it, and its trial is not void.
    pub fn counts(&self) -> bool {
        let carried =
            matches!(self.kind, CellKind::Measured | CellKind::Imprecise | CellKind::Filled);
        carried && !self.is_void()
    }

    /// Whether its trial is void.
    pub fn is_void(&self) -> bool {
        self.doubt.as_ref().is_some_and(|doubt| doubt.verdict == Verdict::Void)
    }

    /// "suspect: other programs used the disk"; none without a doubt.
    pub fn doubt_in_words(&self) -> Option<String> {
        let CellDoubt { verdict, code } = self.doubt.as_ref()?;
        let (verdict, words) = (verdict.name(), code_in_words(code));
        Some(match self.kind {
            CellKind::Filled => format!("filled in from a {verdict} one: {words}"),
            _ => format!("{verdict}: {words}"),
        })
    }

    /// What an answer says that rests on this cell, right behind it: " (that cell is suspect: other
    /// programs used the disk)"; empty without a doubt.
    pub fn caveat(&self) -> String {
        let caveat = |words| format!(" (that cell is {words})");
        self.doubt_in_words().map(caveat).unwrap_or_default()
    }

    /// The cell with the most of a load among those on which an answer may rest, preferably one
    /// without a doubt.
    pub fn with_most<'c>(
        cells: impl IntoIterator<Item = &'c Self>,
        load: impl Fn(&Self) -> u32,
    ) -> Option<&'c Self> {
        let cells = cells.into_iter().filter(|cell| cell.counts());
        cells.max_by_key(|cell| (load(cell), cell.doubt.is_none()))
    }
}

/// How a cell of a latency map is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CellKind {
    /// It was measured.
    Measured,
    /// It was measured for the longest allowed time, and is still not precise.
    Imprecise,
    /// It was filled in from its neighbors.
    Filled,
    /// It was measured, and the target could not carry the load.
    Overloaded,
    /// It was not measured, because the target cannot carry a smaller load.
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

/// The findings of rounds until a steady state.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SustainFound {
    /// The test, such as `write-saturation`.
    pub test: String,
    /// The watched figure, such as `IOPS of random writes 4 KiB`.
    pub watched: String,
    /// The rounds, in their order.
    pub rounds: Vec<Round>,
    /// The first of the rounds that make the steady state; none if there was none.
    pub steady_from: Option<u32>,
    /// The first round from which on all are on the level of the steady state; none if there was no
    /// steady state, or if a round in between is off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub level_from: Option<u32>,
    /// The figures of the last rounds that decide whether they are steady.
    pub steadiness: Option<SteadyState>,
}

/// A round.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Round {
    /// Its number, from 1.
    pub number: u32,
    /// The watched figure.
    pub value: Estimate,
}

/// The findings of two sides that alternate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AbFound {
    /// What A and B are: a target, or words of a command line.
    pub sides: Vec<String>,
    /// The options in which they differ, with both values; empty if their targets or what was done
    /// before them is all that differs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub differs: Vec<String>,
    /// How many pairs of trials count.
    pub pairs: u32,
    /// How many pairs do not, because a trial of them is void.
    #[serde(default)]
    pub void_pairs: u32,
    /// How many pairs there would have been at most.
    pub pairs_at_most: u32,
    /// Whether it ended before that, because every figure was decided.
    pub ended_early: bool,
    /// The largest share by which figures may differ and still count as the same.
    pub margin: f64,
    /// The share of such comparisons that finds a difference where there is none, at the look at
    /// which this one ended.
    pub level: f64,
    /// The figures.
    pub figures: Vec<ComparedFigure>,
}

/// A figure of two sides.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ComparedFigure {
    /// Which: iops, bandwidth (bytes per second), mean and percentiles such as p99 (of the response
    /// time, in nanoseconds), cpu (nanoseconds for each I/O).
    pub figure: String,
    /// That of all trials of A that count, together.
    pub a: Option<f64>,
    /// That of B.
    pub b: Option<f64>,
    /// B/A, with its interval at the level at which the figure was decided; none if the interval is
    /// not known.
    pub ratio: Option<Ratio>,
    /// The answer.
    pub answer: SideAnswer,
    /// The smallest difference, as a share, that 9 of 10 such comparisons would have found, if it is
    /// undecided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub could_have_seen: Option<f64>,
    /// How many more pairs would decide, if it is undecided; none if very many would not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub more_pairs: Option<u32>,
}

/// Whether a side is better in a figure than the other one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SideAnswer {
    /// B is worse than A.
    Worse,
    /// B is better than A.
    Better,
    /// There is no difference beyond the margin.
    Same,
    /// The trials cannot tell.
    Undecided,
}
