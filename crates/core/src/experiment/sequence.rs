//! The simplest experiment: a fixed list of points, one after another, once or in several passes.

use super::{Conclusion, Experiment, Forecast, Foreseen, Planned, Step};
use crate::spec::Point;
use crate::trial::{Place, Trial};
use crate::units::Span;

/// Runs the given points in their order.
#[derive(Clone, Debug)]
pub struct PointSequence {
    points: Vec<Point>,
    /// How often each point runs.
    repeats: u32,
    /// The number of points that have run.
    done: usize,
}

impl PointSequence {
    /// An experiment of these points, each of which runs once.
    pub fn new(points: Vec<Point>) -> Self {
        Self { points, repeats: 1, done: 0 }
    }

    /// The same, in this many passes over all points, at least one: a drift of the target is then
    /// the same for all of them.
    #[must_use]
    pub fn repeated(self, repeats: u32) -> Self {
        Self { repeats: repeats.max(1), ..self }
    }

    /// The point at a place of the order. Its seed is another one in each pass: the same data could
    /// be deduplicated, and the same offsets could be cached.
    fn at(&self, turn: usize) -> Option<Planned> {
        let (pass, place) = (turn.checked_div(self.points.len())?, turn % self.points.len());
        let repeat = u32::try_from(pass).ok().filter(|repeat| *repeat < self.repeats)?;
        let point = self.points[place].clone();
        let number = (pass * self.points.len()) as u64;
        let point = Point { seed: point.seed.wrapping_add(number), ..point };
        Some(Planned { place: Place { repeat, ..Place::default() }, ..Planned::from(point) })
    }

    /// The places of the order that are left.
    fn left(&self) -> std::ops::Range<usize> {
        self.done..(self.points.len() * self.repeats as usize).max(self.done)
    }
}

impl Experiment for PointSequence {
    fn next(&mut self, last: Option<&Trial>) -> Step {
        self.done += usize::from(last.is_some());
        match self.at(self.done) {
            Some(planned) => Step::Run(Box::new(planned)),
            None => Step::Done(Conclusion::default()),
        }
    }

    fn foreseen(&self, most: usize) -> Vec<Foreseen> {
        // A point that runs once may be the only one on this device for a long time.
        if self.repeats == 1 {
            return Vec::new();
        }
        let turns = (self.done + 1..).map_while(|turn| self.at(turn)).take(most);
        turns.map(|planned| Foreseen { planned, enough: Box::new(|_| false) }).collect()
    }

    fn forecast(&self) -> Forecast {
        let each = self.left().map(|turn| self.points[turn % self.points.len()].time());
        let time = each.fold(Span(0), |sum, time| sum + time);
        let points = self.left().len() as u32;
        Forecast { points, points_at_most: points, time, time_at_most: time }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verdict::testing::Invented;

    fn named(name: &str, seed: u64) -> Point {
        Point { name: name.to_owned(), seed, ..Invented::reads().trial.point }
    }

    fn ahead(points: u32) -> Forecast {
        let time = Span::from_secs(65 * u64::from(points));
        Forecast { points, points_at_most: points, time, time_at_most: time }
    }

    #[test]
    fn each_point_is_run_once_and_in_order() {
        let trial = Invented::reads().trial;
        let mut sequence = PointSequence::new(Vec::from([named("a", 7), named("b", 8)]));
        let run = |name: &str, seed| Step::Run(Box::new(Planned::from(named(name, seed))));
        assert_eq!(sequence.forecast(), ahead(2));
        assert_eq!(sequence.next(None), run("a", 7));
        assert_eq!(sequence.next(Some(&trial)), run("b", 8));
        assert_eq!(sequence.forecast(), ahead(1));
        assert_eq!(sequence.next(Some(&trial)), Step::Done(Conclusion::default()));
        assert_eq!(PointSequence::new(Vec::new()).next(None), Step::Done(Conclusion::default()));
        assert_eq!(PointSequence::new(Vec::new()).forecast(), Forecast::default());
    }

    #[test]
    fn repeats_are_passes_over_all_points_each_with_a_seed_of_its_own() {
        let trial = Invented::reads().trial;
        let points = Vec::from([named("a", 7), named("b", 8)]);
        let mut sequence = PointSequence::new(points).repeated(3);
        assert_eq!(sequence.forecast(), ahead(6));
        let foreseen = sequence.foreseen(usize::MAX);
        let mut ran: Vec<Planned> = Vec::new();
        while let Step::Run(planned) = sequence.next(ran.last().map(|_| &trial)) {
            ran.push(*planned);
            assert_eq!(sequence.forecast(), ahead(7 - ran.len() as u32));
        }
        let order = ran.iter().map(|one| (one.point.name.as_str(), one.place.repeat));
        let passes = [("a", 0), ("b", 0), ("a", 1), ("b", 1), ("a", 2), ("b", 2)];
        assert_eq!(order.collect::<Vec<_>>(), passes);
        let seeds: std::collections::BTreeSet<u64> = ran.iter().map(|one| one.point.seed).collect();
        assert_eq!(seeds.len(), 6);
        assert!(foreseen.iter().map(|one| &one.planned).eq(&ran[1..]));
    }
}
