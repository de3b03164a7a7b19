//! Throughput against a rising load: the value from which on it is enough, the cost of more, and
//! the points that do not fit the curve. Each conclusion is one decision, from which all its
//! sentences are made.

use super::{Sweep, order};
use crate::experiment::{Axis, Candidate, Scale};
use crate::stats::{Comparison, Level, Ratio};
use crate::trial::Coordinate;
use crate::units::Span;

/// The axes along which a load rises, so that a value can be enough.
const LOADS: [&str; 2] = ["queue-depth", "workers"];

/// A loss that is worth reporting.
const WORTH_SAYING: f64 = 0.05;

/// A point that does not fit a curve gives at most this share of both its neighbors.
const DIP: f64 = 0.9;

/// At most this many points are measured again, besides their neighbors on the curve.
const SUSPECTS_MAX: usize = 3;

/// How often each of them is measured again.
const AGAIN: u32 = 2;

/// A result on a curve.
#[derive(Clone, Copy, Debug)]
pub struct Dot<'a> {
    /// Its place among the candidates.
    pub place: usize,
    /// Its place on the axis of the load.
    pub load: &'a Coordinate,
    /// The result of its trials.
    pub level: Level,
}

/// Results that differ in their load alone, by rising load.
#[derive(Clone, Debug)]
pub struct Curve<'a> {
    /// The common part: the labels on the other axes.
    pub common: Vec<&'a Coordinate>,
    /// The results.
    pub dots: Vec<Dot<'a>>,
    /// Compares them.
    pub compared: Comparison,
}

/// The value from which on a load is enough. The places are those of a curve's results.
#[derive(Clone, Debug, PartialEq)]
pub struct Saturation {
    /// The first that is enough, with its share of the best; none if that cannot be told for any.
    pub enough: Option<(usize, Ratio)>,
    /// Those below it that are not enough, or all that are not.
    pub not: Vec<usize>,
    /// Those below it, or all, for which it cannot be told.
    pub unsure: Vec<usize>,
    /// The share of the best that the last one gives, if it is a loss.
    pub cost: Option<Ratio>,
}

/// A result that is lower than one with less load and one with more.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CurveDip {
    /// Its place on the curve.
    pub at: usize,
    /// The place of the best with less load.
    pub before: usize,
    /// The place of the best with more load.
    pub behind: usize,
    /// Its share of the lower one of these.
    pub share: f64,
}

/// The axis of the load, if the sweep has one with more than two values.
pub fn axis(sweep: &Sweep) -> Option<usize> {
    axis_of(&sweep.axes)
}

fn axis_of(axes: &[Axis]) -> Option<usize> {
    LOADS.iter().find_map(|load| {
        axes.iter().position(|axis| {
            let name = axis.name.rsplit('.').next().unwrap_or_default();
            name == *load && axis.scale != Scale::Categories && axis.labels.len() > 2
        })
    })
}

/// The curves along an axis through these candidates, in the order of their first results.
pub fn along<'a>(
    sweep: &'a Sweep,
    axis: usize,
    wanted: impl Fn(usize, &Candidate) -> bool,
) -> Vec<Curve<'a>> {
    let mut curves: Vec<(Vec<&Coordinate>, Vec<Dot<'a>>)> = Vec::new();
    for (place, candidate) in sweep.candidates.iter().enumerate() {
        let Some(level) = sweep.levels[place].filter(|_| wanted(place, candidate)) else {
            continue;
        };
        let dot = Dot { place, load: &candidate.coordinates[axis], level };
        let others = candidate.coordinates.iter().enumerate().filter(|(at, _)| *at != axis);
        let common: Vec<&Coordinate> = others.map(|(_, one)| one).collect();
        match curves.iter_mut().find(|(known, _)| *known == common) {
            Some((_, dots)) => dots.push(dot),
            None => curves.push((common, Vec::from([dot]))),
        }
    }
    let finished = curves.into_iter().map(|(common, mut dots)| {
        let value = |dot: &Dot<'_>| dot.load.value.unwrap_or(0.0);
        dots.sort_by(|one, other| value(one).total_cmp(&value(other)));
        let compared = Comparison::new(dots.iter().map(|dot| dot.level));
        Curve { common, dots, compared }
    });
    finished.collect()
}

impl Curve<'_> {
    /// The value from which on it gives this share of the best.
    pub fn saturation(&self, enough: f64) -> Saturation {
        let all: Vec<usize> = (0..self.dots.len()).collect();
        let shares = all.iter().map(|one| self.compared.ratio(&[*one], &all));
        let shares: Vec<Ratio> = shares.collect();
        let first = shares.iter().position(|share| enough <= share.low);
        let below = &all[..first.unwrap_or(all.len())];
        let (unsure, not) = below.iter().partition(|one| enough <= shares[**one].high);
        let last = shares.last().filter(|share| share.is_less() && worth(share.value));
        let is_last = first.is_some_and(|first| first + 1 == all.len());
        Saturation {
            enough: first.map(|first| (first, shares[first])),
            not,
            unsure,
            cost: last.filter(|_| !is_last).copied(),
        }
    }

    /// The results that lie below both their neighbors.
    pub fn dips(&self) -> Vec<CurveDip> {
        (1..self.dots.len().saturating_sub(1)).filter_map(|at| self.dip(at)).collect()
    }

    fn dip(&self, at: usize) -> Option<CurveDip> {
        let best = |range: std::ops::Range<usize>| {
            range.max_by(|one, other| self.dots[*one].level.cmp_value(&self.dots[*other].level))
        };
        let (before, behind) = (best(0..at)?, best(at + 1..self.dots.len())?);
        let shares = [before, behind].map(|other| self.compared.ratio(&[at], &[other]));
        let share = shares.iter().map(|share| share.value).fold(0.0, f64::max);
        (shares.iter().all(|share| share.is_less()) && share <= DIP).then_some(CurveDip {
            at,
            before,
            behind,
            share,
        })
    }

    /// The result that falls with more load because of a single trial.
    fn unconfirmed_fall(&self, at: usize) -> Option<f64> {
        let before: Vec<usize> = (0..at).collect();
        if before.is_empty() || 1 < self.dots[at].level.trials {
            return None;
        }
        let share = self.compared.ratio(&[at], &before);
        (share.is_less() && share.value <= DIP).then_some(share.value)
    }
}

fn worth(share: f64) -> bool {
    share <= 1.0 - WORTH_SAYING
}

/// The candidates that do not fit their curves and have to be measured again before any conclusion,
/// the most striking first: those below both their neighbors, those that fall with more load
/// because of a single trial, and those with scattered trials.
pub(super) fn suspects(sweep: &Sweep) -> Vec<usize> {
    let mut found: Vec<(f64, usize)> = Vec::new();
    for curve in repeated(sweep) {
        for (at, dot) in curve.dots.iter().enumerate() {
            let restless = restless(sweep, dot).map(|_| 1.0);
            let share = curve.dip(at).map(|dip| dip.share);
            // A point that was cut off is not repeated: the user asked for the cut-off.
            let is_cut = sweep.cut_off[dot.place];
            let fall = if is_cut { None } else { curve.unconfirmed_fall(at) };
            let share = share.or(fall).or(restless);
            found.extend(share.map(|share| (share, dot.place)));
        }
    }
    found.sort_by(|one, other| one.0.total_cmp(&other.0));
    found.truncate(SUSPECTS_MAX);
    found.into_iter().map(|(_, place)| place).collect()
}

/// The lowest and the highest trial of a result whose trials lie far apart, and further than those
/// of the others.
pub(super) fn restless(sweep: &Sweep, dot: &Dot<'_>) -> Option<(f64, f64)> {
    let (least, most) = range(sweep, dot);
    (dot.level.is_restless && least <= DIP * most).then_some((least, most))
}

/// The lowest and the highest trial of a result.
pub(super) fn range(sweep: &Sweep, dot: &Dot<'_>) -> (f64, f64) {
    let trials = sweep.readings[dot.place].iter().map(|one| one.value);
    trials.fold((f64::INFINITY, 0.0), |(least, most), value| (least.min(value), most.max(value)))
}

/// The curves of the points that run in all passes.
fn repeated(sweep: &Sweep) -> Vec<Curve<'_>> {
    let axis = axis(sweep);
    axis.map_or(Vec::new(), |axis| along(sweep, axis, |_, one| !one.once))
}

/// The order in which these and their neighbors on the curve are measured again.
pub(super) fn again(sweep: &Sweep, suspects: &[usize]) -> Vec<(u32, u32)> {
    let mut places: Vec<u32> = Vec::new();
    for curve in repeated(sweep) {
        for (at, _) in
            curve.dots.iter().enumerate().filter(|(_, dot)| suspects.contains(&dot.place))
        {
            let near = &curve.dots[at.saturating_sub(1)..(at + 2).min(curve.dots.len())];
            places.extend(near.iter().map(|dot| dot.place as u32));
        }
    }
    places.sort_unstable();
    places.dedup();
    let repeats = sweep.settings.repeats;
    // These orders differ from those of the passes and of the points that run once.
    let passes = (0..AGAIN).flat_map(|nth| {
        let how = (sweep.settings.order, sweep.settings.seed);
        let order = order::order(places.len(), repeats + 1 + nth, how).into_iter();
        order.map(|at| (places[at], repeats + nth)).collect::<Vec<_>>()
    });
    passes.collect()
}

/// How many of these may be measured again when all passes are done, and how often each: points
/// that do not fit their curve, and their neighbors.
pub fn again_at_most(axes: &[Axis], candidates: &[Candidate]) -> (usize, u32) {
    let on_curves = match axis_of(axes) {
        Some(_) => candidates.iter().filter(|one| !one.once).count(),
        None => 0,
    };
    (on_curves.min(3 * SUSPECTS_MAX), AGAIN)
}

/// How many trials may follow the passes, the preparation before each included, and how long they
/// may take.
pub(super) fn ahead_at_most(sweep: &Sweep, others: Option<f64>) -> (u32, Span) {
    if sweep.again.is_some() {
        return (0, Span(0));
    }
    let (count, times) = again_at_most(&sweep.axes, &sweep.candidates);
    let each = |place: usize| {
        let before = sweep.preparation(place);
        let (stretches, time) =
            before.map_or((0, Span(0)), |passes| (passes.stretches(), passes.time().1));
        (stretches + 1, time + sweep.settings.rest + sweep.takes(place, others))
    };
    let all = (0..sweep.candidates.len()).map(each);
    let points = all.clone().map(|(points, _)| points).max().unwrap_or(0);
    let time = all.map(|(_, time)| time).max().unwrap_or_default();
    let trials = count as u32 * times;
    (trials * points, Span(time.0 * u64::from(trials)))
}
