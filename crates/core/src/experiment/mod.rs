//! Experiments decide and never act: a state machine says which point to run next, from the trials
//! so far, and is tested with invented ones.

mod sequence;

pub use sequence::Sequence;

use crate::facts::Counters;
use crate::measure::Record;
use crate::spec::{BackendKind, Point};

/// One execution of a point.
#[derive(Clone, Debug, PartialEq)]
pub struct Trial {
    /// What was to be measured.
    pub point: Point,
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
}

/// What an experiment wants next.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Run this point.
    Run(Box<Point>),
    /// Nothing more; this is what it found.
    Done(Conclusion),
}

/// What an experiment found, in words.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Conclusion {
    /// One sentence each; empty when the trials speak for themselves.
    pub sentences: Vec<String>,
}

/// A sequence of points that may depend on the results so far.
pub trait Experiment {
    /// The next step, given the trial of the step before: each trial is shown once, in order, and
    /// at the first step there is none. What an experiment will need of a trial later it takes out
    /// now, because the trial itself, whose distributions are megabytes, is then forgotten.
    fn next(&mut self, last: Option<&Trial>) -> Step;

    /// How many points there will be in all, as far as that is known.
    fn points(&self) -> usize;
}
