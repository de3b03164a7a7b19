//! A comparison in plain data: what `--json` prints, and what every other output is made of.

use fathom_core::differences::RatioInWords;
use fathom_core::facts::Answer;
use fathom_core::stats::Ratio;
use schemars::JsonSchema;
use serde::Serialize;

use super::facts::FactDifference;
use crate::document::Command;

/// The version of this form.
pub const COMPARISON_VERSION: u32 = 1;

/// Two or more sides, each but the first compared with the first.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Comparison {
    /// The version of this form.
    pub comparison_version: u32,
    /// The answer in one sentence.
    pub answer: String,
    /// The answer in a word: that of the only comparison, or the gravest of several.
    pub outcome: Standing,
    /// The difference, as a share, below which it does not matter.
    pub margin: f64,
    /// The share of such comparisons in which all intervals hold.
    pub confidence: f64,
    /// Whether the trials of the sides are pairs of one session, or of separate sessions.
    pub design: DesignName,
    /// The sides, the one that the others are compared with first.
    pub sides: Vec<Side>,
    /// Each other side against the first.
    pub against: Vec<Against>,
    /// The conditions of `--fail-if`; empty without any.
    pub requirements: Vec<RequirementOutcome>,
}

/// How the trials of the two sides belong together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DesignName {
    /// Each trial of one side has a partner on the other side, measured in the same session.
    Paired,
    /// The sides were measured separately: what changed in between is part of the difference.
    Separate,
}

/// One side of a comparison.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Side {
    /// Its name here.
    pub name: String,
    /// Its result file; null if all sides are in one.
    pub file: Option<String>,
    /// The command that measured it.
    pub command: Command,
    /// When its run began, in RFC 3339, UTC.
    pub created: String,
    /// Its targets.
    pub targets: Vec<String>,
    /// What is wrong with the file; empty if nothing is.
    pub doubts: Vec<String>,
}

/// A side against the first one.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Against {
    /// The side's place in the list of sides.
    pub side: u32,
    /// The answer in one sentence.
    pub answer: String,
    /// The answer in a word.
    pub outcome: Standing,
    /// What differs between the two: host, target, kernel, options.
    pub differences: Vec<FactDifference>,
    /// The points that were compared.
    pub points: Vec<ComparedPoint>,
    /// The points that were not compared.
    pub refused: Vec<RefusedPoint>,
}

/// An answer in a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    /// No difference beyond the margin.
    Same,
    /// Faster, and nothing of it slower.
    Faster,
    /// Too few trials, or too much scatter.
    Undecided,
    /// One trial on a side: its scatter is unknown.
    OneTrial,
    /// Some figures or points are faster and others slower.
    Mixed,
    /// Slower, and nothing of it faster.
    Slower,
    /// Nothing could be compared.
    NotComparable,
}

/// A point that was measured on both sides.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ComparedPoint {
    /// Its name.
    pub name: String,
    /// The answer in a word.
    pub outcome: Standing,
    /// The trials that count, of the first side and of the other.
    pub trials: [u32; 2],
    /// The numbers of void trials, which do not count.
    pub void: [Vec<u32>; 2],
    /// The number of suspect trials among those that count.
    pub suspect: [u32; 2],
    /// What is not the same in the two loads.
    pub differs: Vec<String>,
    /// Its figures.
    pub figures: Vec<ComparedFigure>,
}

/// A point that was not compared.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct RefusedPoint {
    /// Its name.
    pub name: String,
    /// Why.
    pub why: String,
    /// Whether the first side has it: then a condition cannot be checked there.
    pub is_expected: bool,
}

/// A figure of a point on both sides.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ComparedFigure {
    /// Its name: `iops`, `bandwidth`, `mean`, `p99`, `cpu`.
    pub figure: String,
    /// Of all trials of the first side together: I/Os or bytes per second, or nanoseconds; null if
    /// there are too few samples.
    pub before: Option<f64>,
    /// Of all trials of the other side together.
    pub after: Option<f64>,
    /// The second divided by the first, with its interval; null if one is unknown. With one trial on a
    /// side the interval is from 0 to infinity, which is null as well.
    pub ratio: Option<KnownRatio>,
    /// The answer in a word.
    pub outcome: Standing,
    /// The smallest difference, as a share, that would have been found in 9 of 10 such comparisons;
    /// null if the scatter is unknown.
    pub could_have_seen: Option<f64>,
    /// How many more trials on each side would decide, as far as the scatter so far tells; null if it
    /// is decided or nothing is known.
    pub more_trials: Option<u32>,
}

/// A ratio, with its interval if there is one.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct KnownRatio {
    /// The ratio.
    pub value: f64,
    /// The lower end of its interval.
    pub low: Option<f64>,
    /// The upper end.
    pub high: Option<f64>,
}

impl KnownRatio {
    /// As it is put into words.
    pub fn change(self) -> RatioInWords {
        RatioInWords { value: self.value, interval: self.interval() }
    }

    /// The interval, if it is known.
    pub fn interval(self) -> Option<Ratio> {
        Some(Ratio { value: self.value, low: self.low?, high: self.high? })
    }
}

/// A condition of `--fail-if` and what became of it.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct RequirementOutcome {
    /// As it was typed.
    pub typed: String,
    /// Whether it holds, which fails the comparison: `yes` if the interval shows it, `no` if the
    /// interval excludes it, and unknown otherwise.
    pub holds: Answer,
    /// Where and how much, in words.
    pub text: String,
}

impl RefusedPoint {
    /// One that the first side has.
    pub(super) fn of(name: String, why: String) -> Self {
        Self { name, why, is_expected: true }
    }
}

impl Standing {
    /// The word for people.
    pub fn word(self, margin: f64) -> String {
        match self {
            Self::Same => {
                format!("no difference beyond {}", fathom_core::figures::percent(margin))
            }
            Self::Faster => "faster".to_owned(),
            Self::Undecided => "undecided".to_owned(),
            Self::OneTrial => "cannot decide".to_owned(),
            Self::Mixed => "faster and slower".to_owned(),
            Self::Slower => "slower".to_owned(),
            Self::NotComparable => "not comparable".to_owned(),
        }
    }
}

impl Comparison {
    /// It as JSON, in one line.
    pub fn to_json(&self) -> String {
        let json = serde_json::to_string_pretty(self);
        crate::document::harmless(json.expect("these types have string keys and no failing parts"))
    }
}

/// The JSON Schema of a comparison.
pub fn comparison_schema() -> String {
    let schema = schemars::schema_for!(Comparison);
    let mut text = serde_json::to_string_pretty(&schema).expect("a schema is plain data");
    text.push('\n');
    text
}
