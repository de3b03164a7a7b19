//! The simplest experiment: a fixed list of points, one after another.

use super::{Conclusion, Experiment, Forecast, Planned, Step};
use crate::spec::Point;
use crate::trial::Trial;
use crate::units::Span;

/// Runs the given points in their order.
#[derive(Clone, Debug)]
pub struct PointSequence {
    points: Vec<Point>,
    /// The number of points that have run.
    done: usize,
}

impl PointSequence {
    /// An experiment of these points.
    pub fn new(points: Vec<Point>) -> Self {
        Self { points, done: 0 }
    }
}

impl Experiment for PointSequence {
    fn next(&mut self, last: Option<&Trial>) -> Step {
        self.done += usize::from(last.is_some());
        match self.points.get(self.done) {
            Some(point) => Step::Run(Box::new(Planned::from(point.clone()))),
            None => Step::Done(Conclusion::default()),
        }
    }

    fn forecast(&self) -> Forecast {
        let left = &self.points[self.done.min(self.points.len())..];
        let time = left.iter().fold(Span(0), |sum, point| sum + point.time());
        let points = left.len() as u32;
        Forecast { points, points_at_most: points, time, time_at_most: time }
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
        let mut sequence = PointSequence::new(Vec::from([named("a"), named("b")]));
        let run = |name: &str| Step::Run(Box::new(Planned::from(named(name))));
        let ahead = |points: u32| {
            let time = Span::from_secs(65 * u64::from(points));
            Forecast { points, points_at_most: points, time, time_at_most: time }
        };
        assert_eq!(sequence.forecast(), ahead(2));
        assert_eq!(sequence.next(None), run("a"));
        assert_eq!(sequence.next(Some(&trial)), run("b"));
        assert_eq!(sequence.forecast(), ahead(1));
        assert_eq!(sequence.next(Some(&trial)), Step::Done(Conclusion::default()));
        assert_eq!(PointSequence::new(Vec::new()).next(None), Step::Done(Conclusion::default()));
    }
}
