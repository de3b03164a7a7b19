//! The result of the probes of one setting: the mean of their logarithms, and its uncertainty.

use crate::stats::compare::t;
use crate::stats::{UNREPEATED, median};

/// The normal distribution's one-sided 95 % quantile: a difference of this many standard errors
/// counts as one.
pub const CERTAIN: f64 = 1.645;

/// The smallest error of a probe, as a share: the slices of one trial do not show how much the next
/// trial differs, and runs of the published studies differ by 3 %. With 1 % a sixth of the searches
/// on their curves ends more than an octave off.
const LEAST_ERROR: f64 = 0.03;

/// This assumption counts as this many repeats in addition to the actual ones.
const LEAST_DEGREES: f64 = 3.0;

/// Probes of one setting that are further apart than this factor did not measure the same thing: if
/// runs scatter by 10 %, one pair in two hundred is.
pub const ANOTHER_THING: f64 = 1.5;

/// A value of zero counts as this, because zero has no logarithm.
const NEXT_TO_NOTHING: f64 = 1e-3;

/// The probes of one setting.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Probed {
    /// The logarithms of their results.
    levels: Vec<f64>,
    /// Their relative standard errors, from the probes themselves.
    errors: Vec<f64>,
}

impl Probed {
    /// Adds a value above 0 and its standard error, in the same unit.
    pub fn add(&mut self, value: f64, standard_error: f64) {
        let value = value.max(NEXT_TO_NOTHING);
        self.levels.push(value.ln());
        self.errors.push((standard_error / value).clamp(LEAST_ERROR, 1.0));
    }

    /// The number of probes.
    pub fn count(&self) -> usize {
        self.levels.len()
    }

    /// The number of probes that count.
    pub fn kept_count(&self) -> usize {
        self.kept().count()
    }

    /// The mean of the logarithms, without disturbed probes; none without a probe.
    pub fn level(&self) -> Option<f64> {
        let (sum, count) =
            self.kept().fold((0.0, 0.0), |(sum, n), (level, _)| (sum + level, n + 1.0));
        (count > 0.0).then(|| sum / count)
    }

    /// The standard error of the level, if probes differ by `noise` from one to the next: that, or
    /// their own errors, or, if they contradict each other, their distance.
    pub fn standard_error(&self, noise: f64) -> f64 {
        let count = self.kept().count().max(1) as f64;
        let squares: f64 = self.kept().map(|(_, error)| error.max(noise).powi(2)).sum();
        let own = squares.sqrt() / count;
        match self.is_disputed() {
            true => own.max((self.squares() / (count - 1.0).max(1.0) / count).sqrt()),
            false => own,
        }
    }

    /// Whether its probes contradict each other, and no majority says which of them is right.
    pub fn is_disputed(&self) -> bool {
        let agree = agreeing(&self.levels);
        1 < self.count() && agree.iter().all(|agrees| !agrees)
    }

    /// The results of its other probes, as shares of the level: they were affected by something
    /// else. Empty if there is no majority.
    pub fn disturbed(&self) -> Vec<f64> {
        let Some(level) = self.level().filter(|_| !self.is_disputed()) else { return Vec::new() };
        let agree = agreeing(&self.levels);
        let others = self.levels.iter().zip(agree).filter(|(_, agrees)| !agrees);
        others.map(|(other, _)| (other - level).exp()).collect()
    }

    /// The probes that count, with their errors.
    fn kept(&self) -> impl Iterator<Item = (f64, f64)> {
        let agree = agreeing(&self.levels);
        let all = agree.iter().all(|agrees| !agrees);
        let each = self.levels.iter().zip(&self.errors).zip(agree);
        each.filter(move |(_, agrees)| all || *agrees).map(|((level, error), _)| (*level, *error))
    }

    /// The sum of the squared differences of the probes from their level.
    fn squares(&self) -> f64 {
        let level = self.level().unwrap_or(0.0);
        self.kept().map(|(one, _)| (one - level).powi(2)).sum()
    }
}

/// Which of these logarithms agree: those near the median, from three up if they are a majority,
/// and otherwise all or none.
pub fn agreeing(levels: &[f64]) -> Vec<bool> {
    let Some(median) = median(&mut levels.to_vec()) else { return Vec::new() };
    let apart = match levels.len() {
        // Each is half of their distance off the median.
        2 => ANOTHER_THING.ln() / 2.0,
        _ => ANOTHER_THING.ln(),
    };
    let near: Vec<bool> = levels.iter().map(|level| (level - median).abs() <= apart).collect();
    match 2 * near.iter().filter(|near| **near).count() > levels.len() {
        true => near,
        false => vec![false; levels.len()],
    }
}

/// The scatter between probes of one setting, from the repeats alone: for conclusions. A search may
/// decide from an assumption; a conclusion may not.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scatter {
    /// The standard deviation of the logarithms.
    pub deviation: f64,
    /// Its degrees of freedom; none if no setting was repeated and the scatter is assumed.
    pub degrees: Option<usize>,
}

impl Scatter {
    /// By how many standard errors each of this many comparisons may be off, all at once: Student's
    /// quantile for the scatter of the repeats, or the normal distribution's for the assumed
    /// scatter, whichever is more.
    pub fn certain(self, comparisons: usize) -> f64 {
        match self.degrees {
            None => t(comparisons, None),
            Some(_) => {
                let shown = t(comparisons, self.degrees) * self.deviation;
                shown.max(t(comparisons, None) * LEAST_ERROR) / self.noise()
            }
        }
    }

    /// By how many standard errors one difference may be off if only one direction matters.
    pub fn certain_one_sided(self) -> f64 {
        // Student's quantile stays the two-sided one: never too narrow.
        let shown = t(1, self.degrees) * self.deviation;
        match self.degrees {
            None => CERTAIN,
            Some(_) => shown.max(CERTAIN * LEAST_ERROR) / self.noise(),
        }
    }

    /// The error of a probe, as a standard deviation: never less than the smallest one.
    pub fn noise(self) -> f64 {
        self.deviation.max(LEAST_ERROR)
    }
}

/// The scatter over all settings that were probed more than once.
pub fn scatter<'p>(all: impl Iterator<Item = &'p Probed>) -> Scatter {
    let (mut squares, mut degrees) = (0.0, 0);
    for one in all.filter(|one| !one.is_disputed()) {
        squares += one.squares();
        degrees += one.kept().count().saturating_sub(1);
    }
    match degrees {
        0 => Scatter { deviation: UNREPEATED, degrees: None },
        _ => {
            let deviation = (squares / degrees as f64).sqrt();
            Scatter { deviation, degrees: Some(degrees) }
        }
    }
}

/// The scatter between probes of one setting, as a standard deviation of their logarithms: from all
/// settings that were probed more than once, because few repeats of one setting say little about
/// it; disturbed probes do not count.
pub fn noise<'p>(all: impl Iterator<Item = &'p Probed>) -> f64 {
    let (mut squares, mut degrees) = (LEAST_DEGREES * LEAST_ERROR.powi(2), LEAST_DEGREES);
    for one in all.filter(|one| !one.is_disputed()) {
        squares += one.squares();
        degrees += one.kept().count().saturating_sub(1) as f64;
    }
    (squares / degrees).sqrt().max(LEAST_ERROR)
}
