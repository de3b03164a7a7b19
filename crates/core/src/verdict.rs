//! Whether the numbers can be trusted, with the evidence and what to do about it.
//!
//! A check that cannot be made here says so; it does not pass in silence.

use crate::experiment::Trial;
use crate::facts::{Host, Target};

/// What the findings come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// Nothing was found that speaks against the numbers.
    Sound,
    /// The numbers may mean something else than they seem to.
    Suspect,
    /// The numbers do not measure what was asked.
    Void,
}

/// How much a finding weighs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Worth knowing.
    Note,
    /// Makes the trial suspect.
    Suspect,
    /// Makes the trial void.
    Void,
}

/// Something that a reader of the numbers has to know.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// A stable name for programs, such as "io-errors".
    pub code: &'static str,
    /// How much it weighs.
    pub severity: Severity,
    /// What was found, with the figures it was judged by. One sentence.
    pub evidence: String,
    /// What to do about it. One sentence.
    pub advice: String,
}

/// A check that could not be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unchecked {
    /// The code that its finding would have had.
    pub code: &'static str,
    /// Why it could not be made.
    pub why: String,
}

/// Everything that was found about a trial.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Judgement {
    /// The gravest first.
    pub findings: Vec<Finding>,
    /// What could not be checked.
    pub unchecked: Vec<Unchecked>,
}

impl Judgement {
    /// What the findings come to.
    pub fn verdict(&self) -> Verdict {
        match self.findings.iter().map(|finding| finding.severity).max() {
            Some(Severity::Void) => Verdict::Void,
            Some(Severity::Suspect) => Verdict::Suspect,
            Some(Severity::Note) | None => Verdict::Sound,
        }
    }
}

/// Judges a trial by what is known about the host and the targets.
pub fn judge(_trial: &Trial, _host: &Host, _targets: &[Target]) -> Judgement {
    Judgement::default()
}
