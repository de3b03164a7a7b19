//! Experiments decide and never act: a state machine says which point to run next, from the trials
//! so far, and is tested with invented ones.

mod found;
pub mod map;
mod peak;
mod precondition;
mod reduction;
mod sequence;
mod study;
mod sustain;
mod sweep;
mod throughput;

pub use found::{
    Axis, CellKind, Found, MapCell, MapFound, PeakFound, Probe, Round, Scale, SustainFound,
    SweepFound, Validation,
};
pub use peak::{Objective, PROBES_MAX, Peak, Search, Vary, lowest};
pub use precondition::Precondition;
pub use reduction::ReductionProbe;
pub use sequence::PointSequence;
pub use study::{BestPractice, Circumstances, Drives, Question, Study, completed, tied};
pub use sustain::{ROUNDS_MAX, Sustain, Test, TestSettings, Until, Watch, test_plan};
pub use sweep::curves::again_at_most;
pub use sweep::{Candidate, PassOrder, Sweep, SweepSettings};
pub use throughput::Throughput;

use crate::measure::Record;
use crate::spec::Point;
use crate::trial::{Place, Trial};
use crate::units::Span;
use crate::verdict::Finding;

/// A point that an experiment wants to have run.
#[derive(Clone, Debug, PartialEq)]
pub struct Planned {
    /// What to measure.
    pub point: Point,
    /// Where it stands in the experiment.
    pub place: Place,
    /// How long the targets are left alone before it.
    pub rest: Span,
}

impl From<Point> for Planned {
    fn from(point: Point) -> Self {
        Self { point, place: Place::default(), rest: Span(0) }
    }
}

/// What an experiment wants next.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Run this point.
    Run(Box<Planned>),
    /// Nothing more; this is what it found.
    Done(Conclusion),
}

/// What an experiment found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Conclusion {
    /// In words, one sentence each; empty when the trials speak for themselves.
    pub sentences: Vec<String>,
    /// In figures, for charts and programs; none when the trials speak for themselves.
    pub found: Option<Found>,
}

/// A point that will come whatever the trials before it tell, as far as can be foreseen.
pub struct Foreseen {
    /// The point, as `next` will give it.
    pub planned: Planned,
    /// What `enough` will probably say at its looks, from what is known now.
    pub enough: Box<dyn Fn(&Record) -> bool + Send>,
}

/// What is still ahead of an experiment, as far as it can know.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Forecast {
    /// Points that will probably be run.
    pub points: u32,
    /// The most that there can be.
    pub points_at_most: u32,
    /// Warm-ups, windows and rests that it will probably take.
    pub time: Span,
    /// The most that it can take.
    pub time_at_most: Span,
}

/// When a point is looked at that may be told to be clearly worse before its end: at each quarter of
/// its window, in whole intervals.
fn looks(point: &Point) -> Vec<Span> {
    let interval = point.interval.0.max(1);
    let quarter = |n: u64| Span((point.window.0 / 4 * n).next_multiple_of(interval));
    let mut looks = Vec::from([1, 2, 3].map(quarter));
    looks.dedup();
    looks.retain(|look| *look < point.window);
    looks
}

/// A sequence of points that may depend on the results so far.
///
/// The same trials shown in the same order lead to the same steps: that is how an interrupted
/// experiment is resumed, from the trials that its result file holds.
pub trait Experiment {
    /// The next step, given the trial of the step before: each trial is shown once, in order, and
    /// at the first step there is none. What an experiment will need of a trial later it takes out
    /// now, because the trial itself, whose distributions are megabytes, is then forgotten.
    fn next(&mut self, last: Option<&Trial>) -> Step;

    /// Whether the running point has told enough, asked at each of its looks with the record so far.
    /// Changes nothing: when the trial has ended it is shown to `next` like any other.
    fn enough(&self, _so_far: &Record) -> bool {
        false
    }

    /// The points that come after the running one whatever it tells, in their order and at most so many,
    /// as far as they can be foreseen. For who can run some of them before their turn, as on simulated
    /// devices: a guess that turns out wrong costs time and changes no result.
    fn foreseen(&self, _most: usize) -> Vec<Foreseen> {
        Vec::new()
    }

    /// What speaks against a trial that has just ended and follows from those before it: asked before
    /// `next` sees it. Changes nothing.
    fn doubts(&self, _trial: &Trial) -> Vec<Finding> {
        Vec::new()
    }

    /// Why a trial that has just ended had a load that may be too much for the targets, in one
    /// sentence, if finding that out was what it was for: then what follows from too much load speaks
    /// for no other meaning of its numbers. Asked before `next` sees it, and changes nothing.
    fn meant_to_overload(&self, _trial: &Trial) -> Option<&'static str> {
        None
    }

    /// Why what the IOPS of a trial that has just ended did over its window was to be seen, in one
    /// sentence, if that was what it was for. As above.
    fn meant_to_change(&self, _trial: &Trial) -> Option<&'static str> {
        None
    }

    /// Why what a trial that has just ended wrote was to repeat itself, in one sentence, if that was
    /// what it was for. As above.
    fn meant_to_repeat(&self, _trial: &Trial) -> Option<&'static str> {
        None
    }

    /// What is ahead from here on.
    fn forecast(&self) -> Forecast;

    /// What it would conclude if it ended here.
    fn so_far(&self) -> Conclusion {
        Conclusion::default()
    }
}
