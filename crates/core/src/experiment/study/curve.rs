//! Throughput against a load that rises: from where on it is enough, and what more of it costs.

use crate::experiment::{Candidate, Coordinate};
use crate::stats::Estimate;

/// A result on a curve.
#[derive(Clone, Copy, Debug)]
pub(super) struct Dot<'a> {
    pub(super) load: &'a Coordinate,
    pub(super) throughput: Estimate,
}

/// Results that differ in their load alone, by rising load.
#[derive(Clone, Debug)]
pub(super) struct Curve<'a> {
    /// What they have in common: the labels on the other axes.
    pub(super) common: Vec<&'a Coordinate>,
    pub(super) dots: Vec<Dot<'a>>,
}

/// Where a curve is flat.
#[derive(Clone, Copy, Debug)]
pub(super) struct Knee<'a> {
    /// The first that is enough.
    pub(super) enough: Dot<'a>,
    /// Its share of the best.
    pub(super) share: f64,
    /// Whether there is none behind it.
    pub(super) is_last: bool,
    /// What the last one costs, as a share of the best, where that is more than chance.
    pub(super) cost: Option<(&'a Coordinate, f64)>,
}

/// A loss at the end of a curve that is worth a word.
const WORTH_SAYING: f64 = 0.05;

/// The curves along an axis, in the order of their first results.
pub(super) fn along<'a>(
    results: impl Iterator<Item = (&'a Candidate, Estimate)>,
    axis: &str,
) -> Vec<Curve<'a>> {
    let mut curves: Vec<Curve<'a>> = Vec::new();
    for (candidate, throughput) in results {
        let is_load = |one: &&Coordinate| one.axis == axis;
        let Some(load) = candidate.coordinates.iter().find(is_load) else { continue };
        let others = candidate.coordinates.iter().filter(|one| !is_load(one));
        let common: Vec<&Coordinate> = others.collect();
        let dot = Dot { load, throughput };
        match curves.iter_mut().find(|curve| curve.common == common) {
            Some(curve) => curve.dots.push(dot),
            None => curves.push(Curve { common, dots: Vec::from([dot]) }),
        }
    }
    let value = |dot: &Dot<'_>| dot.load.value.unwrap_or(0.0);
    for curve in &mut curves {
        curve.dots.sort_by(|one, other| value(one).total_cmp(&value(other)));
    }
    curves
}

impl<'a> Curve<'a> {
    /// The label on one of the other axes.
    pub(super) fn label(&self, axis: &str) -> Option<&'a str> {
        self.common.iter().find(|one| one.axis == axis).map(|one| one.label.as_str())
    }

    /// The highest throughput.
    pub(super) fn best(&self) -> Option<Dot<'a>> {
        let by = |one: &&Dot<'a>, other: &&Dot<'a>| {
            one.throughput.value.total_cmp(&other.throughput.value)
        };
        self.dots.iter().max_by(by).copied()
    }

    /// From where on it gives this share of the best.
    pub(super) fn knee(&self, share: f64) -> Option<Knee<'a>> {
        let best = self.best().filter(|best| 0.0 < best.throughput.value)?;
        let place = self
            .dots
            .iter()
            .position(|dot| share * best.throughput.value <= dot.throughput.value)?;
        let (enough, last) = (self.dots[place], *self.dots.last()?);
        let lost = 1.0 - last.throughput.value / best.throughput.value;
        let half = |dot: Dot<'_>| dot.throughput.half_width.unwrap_or(0.0);
        let chance = half(last).hypot(half(best)) / best.throughput.value;
        Some(Knee {
            enough,
            share: enough.throughput.value / best.throughput.value,
            is_last: place + 1 == self.dots.len(),
            cost: (WORTH_SAYING.max(chance) <= lost).then_some((last.load, lost)),
        })
    }
}
