//! Whether rounds have come to a steady state, over plain numbers.
//!
//! SNIA's rule looks at five rounds and at nothing before them: a device that lives on a credit or a
//! cache passes it while these last. So three conditions are added, of what was before and how long it
//! took. METHOD.md has all of them with their reasons.

use crate::stats::{EXCURSION_MAX, RANGE_MAX, ROUNDS, SteadyState, linear_trend, steady_state};
use crate::units::Span;

/// What rounds are judged by beyond SNIA's rule.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rule {
    /// How long a round loads the targets.
    pub round: Span,
    /// How long the load must have gone on before anything is called steady: credits and caches that
    /// last longer do not show.
    pub at_least: Span,
}

/// What rounds have come to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Standing {
    /// What the last five are judged by; none for fewer.
    pub state: Option<SteadyState>,
    /// The first round of the level that the last rounds are on, from 0.
    pub level_from: usize,
    /// Why it is not steady; none if it is.
    pub lacks: Option<Lack>,
}

/// What is missing for a steady state, the first that is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lack {
    /// There are fewer than five rounds.
    Rounds,
    /// In the last five nothing was moved at all, and that never changes.
    Nothing,
    /// The largest and the smallest of five are too far apart.
    Range,
    /// The best line through five rises or falls too much.
    Excursion,
    /// The level has not lasted for as long as all that was before it.
    Age,
    /// Over the whole level it rises or falls too much.
    Drift,
    /// The load has not gone on for long enough.
    Time,
}

/// A lasting change from one level to another.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Change {
    /// The first round on the new level, from 0.
    pub at: usize,
    /// The mean before it.
    pub before: f64,
    /// The mean from it on.
    pub after: f64,
}

/// Judges the rounds so far, in their order.
pub fn standing(rounds: &[f64], rule: &Rule) -> Standing {
    let Some(state) = steady_state(rounds) else {
        return Standing { state: None, level_from: 0, lacks: Some(Lack::Rounds) };
    };
    let level_from = level_from(rounds, &state);
    let (before, level) = rounds.split_at(level_from);
    let time = Span(rule.round.0.saturating_mul(rounds.len() as u64));
    let lacks = if state.mean <= 0.0 {
        Some(Lack::Nothing)
    } else if state.range > RANGE_MAX * state.mean {
        Some(Lack::Range)
    } else if state.excursion > EXCURSION_MAX * state.mean {
        Some(Lack::Excursion)
    } else if level.len() < before.len().max(ROUNDS) {
        Some(Lack::Age)
    } else if drifts(level) {
        Some(Lack::Drift)
    } else if time < rule.at_least {
        Some(Lack::Time)
    } else {
        None
    };
    Standing { state: Some(state), level_from, lacks }
}

/// The first of the rounds that are on the level of the last five. One round by itself that is not
/// does not end it.
fn level_from(rounds: &[f64], state: &SteadyState) -> usize {
    let is_on = |value: f64| (value - state.mean).abs() <= RANGE_MAX * state.mean;
    let mut from = rounds.len() - ROUNDS;
    while from > 0 {
        if is_on(rounds[from - 1]) {
            from -= 1;
        } else if from > 1 && is_on(rounds[from - 2]) {
            from -= 2;
        } else {
            break;
        }
    }
    from
}

/// Whether the best line through all of them rises or falls by more than five may, and that cannot be
/// chance.
fn drifts(level: &[f64]) -> bool {
    let Some(trend) = linear_trend(level) else { return false };
    let mean = level.iter().sum::<f64>() / level.len() as f64;
    let excursion = (trend.last - trend.first).abs();
    trend.is_significant() && excursion > EXCURSION_MAX * mean
}

/// The largest lasting change of all, where two levels tell more than one: the split with the least
/// squares, each side at least two rounds, whose means are further apart than steady rounds may be
/// and than the rounds scatter.
pub fn change(rounds: &[f64]) -> Option<Change> {
    let mean = |part: &[f64]| part.iter().sum::<f64>() / part.len() as f64;
    let squares = |part: &[f64]| {
        let mean = mean(part);
        part.iter().map(|value| (value - mean).powi(2)).sum::<f64>()
    };
    let places = 2..rounds.len().saturating_sub(1);
    let cost = |at: usize| squares(&rounds[..at]) + squares(&rounds[at..]);
    let at = places.min_by(|left, right| cost(*left).total_cmp(&cost(*right)))?;
    let (before, after) = (mean(&rounds[..at]), mean(&rounds[at..]));
    let scatter = (cost(at) / (rounds.len() - 1) as f64).sqrt();
    let difference = (before - after).abs();
    let is_one = difference > RANGE_MAX * before.max(after) && difference > 2.0 * scatter;
    is_one.then_some(Change { at, before, after })
}
