//! What can be found about the numbers of a trial, and what that makes of them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The result of all findings.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Nothing was found that speaks against the numbers.
    Sound,
    /// The numbers may mean something other than they seem to.
    Suspect,
    /// The numbers do not measure what was asked for.
    Void,
}

/// How much a finding weighs.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Worth knowing.
    Note,
    /// Makes the trial suspect.
    Suspect,
    /// Makes the trial void.
    Void,
}

impl Verdict {
    /// The name for people.
    pub fn name(self) -> &'static str {
        match self {
            Self::Sound => "sound",
            Self::Suspect => "suspect",
            Self::Void => "void",
        }
    }
}

impl Severity {
    /// The name for people.
    pub fn name(self) -> &'static str {
        match self {
            Self::Note => "note",
            Self::Suspect => "suspect",
            Self::Void => "void",
        }
    }
}

/// Something that a reader of the numbers has to know.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// A stable name for programs, such as "io-errors".
    pub code: &'static str,
    /// How much it weighs.
    pub severity: Severity,
    /// The observation, with the figures that it is based on. One sentence.
    pub evidence: String,
    /// The remedy. One sentence.
    pub advice: String,
}

/// A check that could not be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unchecked {
    /// The code that its finding would have had.
    pub code: &'static str,
    /// Why it could not be made.
    pub why: String,
    /// The obstacle.
    pub obstacle: Obstacle,
}

/// The obstacle to a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Obstacle {
    /// This machine: its kernel, its devices, or the rights of the process. The check could have
    /// been made on another machine, so it counts as missing.
    Machine,
    /// The kind of measurement: no machine could make the check, or there is nothing to check.
    Load,
}

impl From<Option<Severity>> for Verdict {
    /// The verdict that follows from the gravest finding.
    fn from(gravest: Option<Severity>) -> Self {
        match gravest {
            Some(Severity::Void) => Self::Void,
            Some(Severity::Suspect) => Self::Suspect,
            Some(Severity::Note) | None => Self::Sound,
        }
    }
}
