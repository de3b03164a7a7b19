//! Whether rounds have reached a steady state, over plain numbers.
//!
//! SNIA's rule considers five rounds and ignores all before them: a device that lives on a credit
//! or a cache passes it while these last. So three conditions are added, about the rounds before
//! and about the time. docs/method/sustain.md has all of them with their reasons.

use crate::stats::compare::t;
use crate::stats::{
    EXCURSION_MAX, RANGE_MAX, ROUNDS, SteadyState, Trend, linear_trend, steady_state,
};
use crate::units::Span;

/// The settings by which rounds are judged beyond SNIA's rule.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rule {
    /// How long a round loads the targets.
    pub round: Span,
    /// How long the load must have gone on before the rounds can be called steady: credits and
    /// caches that last longer do not show.
    pub at_least: Span,
}

/// The state of the rounds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Standing {
    /// The figures of the last five; none for fewer.
    pub state: Option<SteadyState>,
    /// The first round of the level of the last rounds, from 0.
    pub level_from: usize,
    /// Why it is not steady; none if it is.
    pub lacks: Option<Lack>,
}

/// The condition for a steady state that is not met, the first one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lack {
    /// There are fewer than five rounds.
    Rounds,
    /// In the last five rounds no I/O completed, and waiting will not change that.
    Nothing,
    /// The largest and the smallest of five are too far apart.
    Range,
    /// The best line through five rises or falls too much.
    Excursion,
    /// The level has not lasted for as long as the time before it.
    Age,
    /// Over the whole level it rises or falls too much.
    Drift,
    /// Over the whole level it might rise or fall too much, because its rounds scatter.
    Scatter,
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
    } else if may_drift(level) {
        Some(Lack::Scatter)
    } else if time < rule.at_least {
        Some(Lack::Time)
    } else {
        None
    };
    Standing { state: Some(state), level_from, lacks }
}

impl Standing {
    /// The first round of the level, from 0, if it is steady and no round of it is off.
    pub fn unbroken_from(&self, rounds: &[f64]) -> Option<usize> {
        let state = self.state.filter(|_| self.lacks.is_none())?;
        let is_unbroken = rounds[self.level_from..].iter().all(|one| is_on(*one, &state));
        is_unbroken.then_some(self.level_from)
    }
}

/// Whether a round is on the level of the last five.
fn is_on(value: f64, state: &SteadyState) -> bool {
    (value - state.mean).abs() <= RANGE_MAX * state.mean
}

/// The first of the rounds on the level of the last five. A single round that is off does not end
/// the level.
fn level_from(rounds: &[f64], state: &SteadyState) -> usize {
    let is_on = |value: f64| is_on(value, state);
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

/// Whether the best line through all of them rises or falls by more than five may, beyond chance.
fn drifts(level: &[f64]) -> bool {
    let Some(trend) = linear_trend(level) else { return false };
    let mean = level.iter().sum::<f64>() / level.len() as f64;
    let excursion = (trend.last - trend.first).abs();
    trend.is_significant() && excursion > EXCURSION_MAX * mean
}

/// Whether the best line through all of them, at the unfavorable end of its interval, rises or
/// falls by more than the largest and the smallest of five may be apart: rounds that scatter could
/// hide this.
fn may_drift(level: &[f64]) -> bool {
    let Some(trend) = linear_trend(level) else { return true };
    let Some(half) = trend.slope_half_width else { return true };
    let mean = level.iter().sum::<f64>() / level.len() as f64;
    let most = (trend.slope.abs() + half) * (level.len() - 1) as f64;
    most > RANGE_MAX * mean
}

/// The scatter of rounds without a lasting change and without a trend, as a share of their mean;
/// none if there is one of these, or fewer rounds than a steady state takes. Rounds before a
/// lasting change do not count.
///
/// If the largest and the smallest of five are far apart, or a line through them rises, this is
/// then caused by their scatter, and says nothing about the target's state.
pub fn scatter(rounds: &[f64]) -> Option<f64> {
    let level = &rounds[change(rounds).map_or(0, |change| change.at)..];
    let trend = linear_trend(level).filter(|_| ROUNDS <= level.len())?;
    let mean = level.iter().sum::<f64>() / level.len() as f64;
    let squares: f64 = level.iter().map(|value| (value - mean).powi(2)).sum();
    let share = (squares / (level.len() - 1) as f64).sqrt() / mean;
    let is_chance = !trend.is_significant() && 0.0 < mean && change(level).is_none();
    is_chance.then_some(share)
}

/// The largest lasting change of all, if two levels fit better than one: the split with the least
/// squares, each side at least two rounds, whose means are further apart than steady rounds may be,
/// than the rounds scatter, and than chance explains for the largest of this many splits.
pub fn change(rounds: &[f64]) -> Option<Change> {
    let mean = |part: &[f64]| part.iter().sum::<f64>() / part.len() as f64;
    let squares = |part: &[f64]| {
        let mean = mean(part);
        part.iter().map(|value| (value - mean).powi(2)).sum::<f64>()
    };
    let places = 2..rounds.len().saturating_sub(1);
    let splits = places.len();
    let cost = |at: usize| squares(&rounds[..at]) + squares(&rounds[at..]);
    let at = places.min_by(|left, right| cost(*left).total_cmp(&cost(*right)))?;
    let (before, after) = (mean(&rounds[..at]), mean(&rounds[at..]));
    let count = rounds.len();
    let scatter = (cost(at) / (count - 1) as f64).sqrt();
    let difference = (before - after).abs();
    let error =
        (cost(at) / (count - 2) as f64 * (1.0 / at as f64 + 1.0 / (count - at) as f64)).sqrt();
    // If a line fits better, there is no time of change.
    let is_gradual = linear_trend(rounds).is_some_and(|line| residual(rounds, &line) < cost(at));
    let is_one = !is_gradual
        && difference > RANGE_MAX * before.max(after)
        && difference > 2.0 * scatter
        && difference > t(splits, Some(count - 2)) * error;
    is_one.then_some(Change { at, before, after })
}

/// The sum of the squared distances of rounds from a line through them.
fn residual(rounds: &[f64], line: &Trend) -> f64 {
    let at = |round: usize| line.first + line.slope * round as f64;
    rounds.iter().enumerate().map(|(round, value)| (value - at(round)).powi(2)).sum()
}

/// The ends of the rise or fall of a line through all rounds, if it exceeds the distance that
/// steady rounds may have, beyond chance, and there is no time at which it happened.
pub fn gradual(rounds: &[f64]) -> Option<(f64, f64)> {
    let line =
        linear_trend(rounds).filter(|line| ROUNDS <= rounds.len() && line.is_significant())?;
    let most = line.first.max(line.last);
    let is_much = RANGE_MAX * most < (line.last - line.first).abs();
    (is_much && change(rounds).is_none()).then_some((line.first, line.last))
}
