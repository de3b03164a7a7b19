//! Experiments decide and never act: a state machine says which point to run next, based on the
//! trials so far. Tests give it invented trials.

pub mod ab;
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

pub use ab::{Ab, AbSettings, AbSide};
pub use found::{
    AbFound, Axis, CellDoubt, CellKind, ComparedFigure, Found, MapCell, MapFound, PeakFound, Probe,
    Round, Scale, SideAnswer, SustainFound, SweepFound, Validation,
};
pub use peak::{PROBES_MAX, Peak, Search, Vary, as_well, falls_short, lowest};
pub use precondition::Precondition;
pub use reduction::ReductionProbe;
pub use sequence::PointSequence;
pub use study::{BestPractice, Circumstances, Drives, Question, Study, completed, tied};
pub use sustain::{ROUND, ROUNDS_MAX, Sustain, Test, TestSettings, Until, Watch, test_plan};
pub use sweep::curves::again_at_most;
pub use sweep::{Candidate, LoadCost, PassOrder, Sweep, SweepSettings};
pub use throughput::Throughput;

use crate::measure::Record;
use crate::spec::Point;
use crate::trial::{Place, Trial};
use crate::units::Span;
use crate::verdict::Finding;

/// A point that an experiment wants to have run.
#[derive(Clone, Debug, PartialEq)]
pub struct Planned {
    /// The point to measure.
    pub point: Point,
    /// Its place in the experiment.
    pub place: Place,
    /// How long the targets are left alone before it.
    pub rest: Span,
}

impl From<Point> for Planned {
    fn from(point: Point) -> Self {
        Self { point, place: Place::default(), rest: Span(0) }
    }
}

/// The next step of an experiment.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Run this point.
    Run(Box<Planned>),
    /// No more points; these are the findings.
    Done(Conclusion),
}

/// The findings of an experiment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Conclusion {
    /// In words, one sentence each; empty if the trials need no conclusion.
    pub sentences: Vec<String>,
    /// In figures, for charts and programs; none if the trials need no conclusion.
    pub found: Option<Found>,
}

/// A point that will come independently of the results before it, as far as it can be foreseen.
pub struct Foreseen {
    /// The point, as `next` will give it.
    pub planned: Planned,
    /// The probable answers of `enough` at its looks, from present knowledge.
    pub enough: Box<dyn Fn(&Record) -> bool + Send>,
}

/// The remaining part of an experiment, as far as it is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Forecast {
    /// Points that will probably be run.
    pub points: u32,
    /// The largest possible number of points.
    pub points_at_most: u32,
    /// The probable time of warm-ups, windows and rests.
    pub time: Span,
    /// The longest possible time.
    pub time_at_most: Span,
}

/// The looks at a point that may be found clearly worse before its end: at each quarter of its
/// window, in whole intervals.
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
/// The same trials shown in the same order lead to the same steps. So an interrupted experiment can
/// be resumed from the trials that its result file holds.
pub trait Experiment {
    /// The next step, given the trial of the step before: each trial is shown once, in order, and
    /// at the first step there is none. An experiment takes out now all that it will need of a
    /// trial later, because the trial itself, with megabytes of distributions, is then dropped.
    fn next(&mut self, last: Option<&Trial>) -> Step;

    /// Whether the running point has shown enough, asked at each of its looks with the record so
    /// far. This does not change the experiment: when the trial has ended it is shown to `next`
    /// like any other.
    fn enough(&self, _so_far: &Record) -> bool {
        false
    }

    /// The points that come after the running one independently of its result, in their order and
    /// at most this many, as far as they can be foreseen. A session on simulated devices runs some
    /// of them ahead: a wrong guess costs time and changes no result.
    fn foreseen(&self, _most: usize) -> Vec<Foreseen> {
        Vec::new()
    }

    /// The findings against a trial that has just ended that follow from the trials before it.
    /// Asked before `next` sees the trial. This does not change the experiment.
    fn doubts(&self, _trial: &Trial) -> Vec<Finding> {
        Vec::new()
    }

    /// Why a trial that has just ended had a load that may be too much for the targets, in one
    /// sentence, if that was its purpose: then the consequences of too much load do not make its
    /// numbers doubtful. Asked before `next` sees the trial. This does not change the experiment.
    fn meant_to_overload(&self, _trial: &Trial) -> Option<&'static str> {
        None
    }

    /// Why the change of a trial's IOPS over its window was to be observed, in one sentence, if
    /// that was the purpose of the trial, which has just ended. As above.
    fn meant_to_change(&self, _trial: &Trial) -> Option<&'static str> {
        None
    }

    /// Why the payload of a trial that has just ended was to repeat itself, in one sentence, if
    /// that was its purpose. As above.
    fn meant_to_repeat(&self, _trial: &Trial) -> Option<&'static str> {
        None
    }

    /// The remaining part from here on.
    fn forecast(&self) -> Forecast;

    /// The conclusion if it ended here.
    fn so_far(&self) -> Conclusion {
        Conclusion::default()
    }
}
