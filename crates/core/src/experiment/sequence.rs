//! The simplest experiment: points that were settled beforehand, one after another.

use super::{Conclusion, Experiment, Step, Trial};
use crate::spec::Point;

/// Runs the given points in their order.
#[derive(Clone, Debug)]
pub struct Sequence {
    points: Vec<Point>,
}

impl Sequence {
    /// An experiment of these points.
    pub fn new(points: Vec<Point>) -> Self {
        Self { points }
    }
}

impl Experiment for Sequence {
    fn next(&mut self, history: &[Trial]) -> Step {
        match self.points.get(history.len()) {
            Some(point) => Step::Run(Box::new(point.clone())),
            None => Step::Done(Conclusion::default()),
        }
    }

    fn points(&self) -> usize {
        self.points.len()
    }
}
