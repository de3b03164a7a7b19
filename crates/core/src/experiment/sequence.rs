//! The simplest experiment: points that were settled beforehand, one after another.

use super::{Conclusion, Experiment, Step, Trial};
use crate::spec::Point;

/// Runs the given points in their order.
#[derive(Clone, Debug)]
pub struct Sequence {
    points: Vec<Point>,
    /// How many of them were run.
    done: usize,
}

impl Sequence {
    /// An experiment of these points.
    pub fn new(points: Vec<Point>) -> Self {
        Self { points, done: 0 }
    }
}

impl Experiment for Sequence {
    fn next(&mut self, last: Option<&Trial>) -> Step {
        self.done += usize::from(last.is_some());
        match self.points.get(self.done) {
            Some(point) => Step::Run(Box::new(point.clone())),
            None => Step::Done(Conclusion::default()),
        }
    }

    fn points(&self) -> usize {
        self.points.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verdict::testing::Invented;

    #[test]
    fn each_point_is_run_once_and_in_order() {
        let trial = Invented::reads().trial;
        let named = |name: &str| Point { name: name.to_owned(), ..trial.point.clone() };
        let mut sequence = Sequence::new(Vec::from([named("a"), named("b")]));
        assert_eq!(sequence.points(), 2);
        assert_eq!(sequence.next(None), Step::Run(Box::new(named("a"))));
        assert_eq!(sequence.next(Some(&trial)), Step::Run(Box::new(named("b"))));
        assert_eq!(sequence.next(Some(&trial)), Step::Done(Conclusion::default()));
        assert_eq!(Sequence::new(Vec::new()).next(None), Step::Done(Conclusion::default()));
    }
}
