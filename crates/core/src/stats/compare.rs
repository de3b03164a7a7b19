//! Comparison of settings that were measured several times: how well each is known, and which of
//! their differences chance can explain.
//!
//! If one takes the highest of many figures, the lowest, or the largest difference, noise looks
//! like an effect. So the intervals of all differences in one conclusion hold at once in 95 of 100
//! experiments (Dunn, "Multiple comparisons among means", Journal of the American Statistical
//! Association 56, 1961). This covers any choice that is made from them afterwards. The formulas
//! are in docs/method/estimates.md.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use statrs::distribution::{ContinuousCDF, FisherSnedecor, Normal, StudentsT};

use super::{Estimate, Z_95};

/// How much trials are assumed to differ if none was repeated: a standard deviation, as a share. It
/// stands for runs that differ by 10 % by themselves while the target drifts by 20 %.
pub const UNREPEATED: f64 = 0.12;

/// The share of conclusions that may be wrong: 1 of 20.
const ALPHA: f64 = 0.05;

/// The result of the trials of one setting.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Level {
    /// The mean of its trials, as it is shown.
    pub estimate: Estimate,
    /// The number of trials.
    pub trials: u32,
    /// Whether they lie significantly further apart than those of the other settings.
    pub is_restless: bool,
    /// The standard error of the mean, as a share of it, for comparisons.
    error: f64,
    /// The degrees of freedom of the standard error; none if it was assumed and not estimated.
    degrees: Option<usize>,
}

impl Level {
    /// The same in another unit.
    #[must_use]
    pub fn divided_by(self, unit: f64) -> Self {
        let Estimate { value, half_width } = self.estimate;
        let half_width = half_width.map(|half| half / unit);
        Self { estimate: Estimate { value: value / unit, half_width }, ..self }
    }

    /// That of the inverse figure: the lowest time is the highest of them.
    #[must_use]
    pub fn inverse(self) -> Self {
        let Estimate { value, half_width } = self.estimate;
        let half_width = half_width.map(|half| half / value / value);
        Self { estimate: Estimate { value: 1.0 / value, half_width }, ..self }
    }

    /// Which of two has the higher value.
    pub fn cmp_value(&self, other: &Self) -> Ordering {
        self.estimate.value.total_cmp(&other.estimate.value)
    }
}

/// The scatter of the trials of a setting.
#[derive(Clone, Copy, Debug)]
struct RepeatSpread {
    /// The sum of the squares of their relative deviations from their mean.
    squares: f64,
    degrees: usize,
}

/// The level of each setting, from the figures of its trials; none without a trial, or if the
/// figures are zero.
///
/// The scatter of repeats comes from all settings together, because few repeats of one setting say
/// little about it. If the repeats of a setting lie significantly further apart than those of the
/// others, only its own repeats count for it, so that one stall makes this setting uncertain, and
/// not all.
///
/// The half-widths hold for all settings at once in 95 of 100 experiments, because readers pick the
/// highest or the lowest of them.
pub fn levels(settings: &[Vec<Estimate>]) -> Vec<Option<Level>> {
    let means: Vec<Option<f64>> = settings.iter().map(|trials| mean(trials)).collect();
    let spreads: Vec<Option<RepeatSpread>> =
        settings.iter().zip(&means).map(|(trials, mean)| spread(trials, (*mean)?)).collect();
    let (pooled, is_restless) = pooled(&spreads);
    let count = means.iter().flatten().count();
    let levels = settings.iter().zip(&means).zip(spreads.iter().zip(is_restless));
    levels
        .map(|((trials, mean), (own, is_restless))| {
            let own = own.filter(|_| is_restless);
            let level = level((trials, (*mean)?), own.or(pooled), count);
            Some(Level { is_restless, ..level })
        })
        .collect()
}

fn mean(trials: &[Estimate]) -> Option<f64> {
    let mean = trials.iter().map(|one| one.value).sum::<f64>() / trials.len() as f64;
    (mean.is_finite() && 0.0 < mean).then_some(mean)
}

fn spread(trials: &[Estimate], mean: f64) -> Option<RepeatSpread> {
    let squares = trials.iter().map(|one| (one.value / mean - 1.0).powi(2)).sum();
    (1 < trials.len()).then(|| RepeatSpread { squares, degrees: trials.len() - 1 })
}

/// The common scatter of all settings, and the settings that are left out of it: those that scatter
/// by more than the others by an F test, at 5 % for all of them.
fn pooled(spreads: &[Option<RepeatSpread>]) -> (Option<RepeatSpread>, Vec<bool>) {
    let mut restless = vec![false; spreads.len()];
    let count = spreads.iter().flatten().count().max(1) as f64;
    loop {
        let calm = spreads.iter().zip(&restless).filter(|(_, restless)| !**restless);
        let all = sum(calm.filter_map(|(one, _)| *one));
        let mut found = false;
        for (one, restless) in spreads.iter().zip(&mut restless) {
            let Some(own) = one.filter(|_| !*restless) else { continue };
            let others = RepeatSpread {
                squares: all.squares - own.squares,
                degrees: all.degrees - own.degrees,
            };
            *restless = exceeds(own, others, ALPHA / count);
            found |= *restless;
        }
        if !found {
            return ((0 < all.degrees).then_some(all), restless);
        }
    }
}

fn sum(spreads: impl Iterator<Item = RepeatSpread>) -> RepeatSpread {
    spreads.fold(RepeatSpread { squares: 0.0, degrees: 0 }, |sum, one| RepeatSpread {
        squares: sum.squares + one.squares,
        degrees: sum.degrees + one.degrees,
    })
}

/// Whether a variance exceeds that of the others by more than chance explains.
fn exceeds(own: RepeatSpread, others: RepeatSpread, alpha: f64) -> bool {
    // Rounding is not scatter.
    const NOTHING: f64 = 1e-18;
    if others.degrees == 0 || own.squares < NOTHING {
        return false;
    }
    let ratio = own.variance() / others.variance().max(NOTHING);
    let f = FisherSnedecor::new(own.degrees as f64, others.degrees as f64);
    f.is_ok_and(|f| f.sf(ratio) < alpha)
}

impl RepeatSpread {
    fn variance(self) -> f64 {
        self.squares / self.degrees as f64
    }
}

/// The half-width is the larger of those from the repeats and from the trials themselves, for one
/// of this many settings.
fn level(
    (trials, mean): (&[Estimate], f64),
    spread: Option<RepeatSpread>,
    settings: usize,
) -> Level {
    let n = trials.len() as f64;
    let within: Option<f64> = trials.iter().map(|one| one.half_width.map(|half| half * half)).sum();
    let within = within.map(|squares| squares.sqrt() / n);
    let among = spread.map(|spread| {
        t(settings, Some(spread.degrees)) * spread.variance().sqrt() * mean / n.sqrt()
    });
    let all_at_once = t(settings, None) / Z_95;
    let half_width = match (within.map(|half| half * all_at_once), among) {
        (Some(within), Some(among)) => Some(within.max(among)),
        (one, other) => one.or(other),
    };
    let mut scatter = spread.map_or(0.0, |spread| spread.variance().sqrt());
    if trials.len() == 1 {
        // A setting that was not repeated may be the one that was disturbed.
        scatter = scatter.max(UNREPEATED);
    }
    Level {
        estimate: Estimate { value: mean, half_width },
        trials: trials.len() as u32,
        is_restless: false,
        error: (scatter / n.sqrt()).max(within.unwrap_or(0.0) / mean / Z_95),
        degrees: spread.map(|spread| spread.degrees),
    }
}

/// A ratio of two throughputs with the ends of its interval: from 0 up, and infinite if nothing is
/// known.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Ratio {
    /// The measured ratio.
    pub value: f64,
    /// The lower end of the interval.
    pub low: f64,
    /// The upper end of the interval.
    pub high: f64,
}

impl Ratio {
    /// From its logarithm and the half-width of that.
    pub(crate) fn of_logarithm(value: f64, half: f64) -> Self {
        Self { value: value.exp(), low: (value - half).exp(), high: (value + half).exp() }
    }

    /// The inverse ratio.
    #[must_use]
    pub fn inverse(self) -> Self {
        Self { value: 1.0 / self.value, low: 1.0 / self.high, high: 1.0 / self.low }
    }

    /// Whether it is below 1, beyond chance.
    pub fn is_less(self) -> bool {
        self.high < 1.0
    }

    /// Whether it is above 1, beyond chance.
    pub fn is_more(self) -> bool {
        1.0 < self.low
    }

    /// Whether chance could explain the difference.
    pub fn may_be_nothing(self) -> bool {
        !self.is_less() && !self.is_more()
    }
}

/// The highest of several levels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HighestLevel {
    /// Its place among them.
    pub place: usize,
    /// The places of the others that cannot be told from it, the highest first. All others are lower.
    pub equals: Vec<usize>,
}

/// A level can be named as the highest if its figure is at least this share of the highest figure.
const NEARLY_AS_HIGH: f64 = 0.95;

/// The levels that one conclusion compares; the intervals of all differences between two of them
/// hold at once.
#[derive(Clone, Debug)]
pub struct Comparison {
    /// The logarithm of each, its standard error, and the number of standard errors by which it may
    /// be off.
    levels: Vec<(f64, f64, f64)>,
}

impl Comparison {
    /// Of these levels.
    pub fn new(levels: impl IntoIterator<Item = Level>) -> Self {
        let levels: Vec<Level> = levels.into_iter().collect();
        let pairs = levels.len() * levels.len().saturating_sub(1) / 2;
        Self::for_so_many(levels, pairs)
    }

    /// Of these levels, if only this many pairs are compared: their number has to be settled before
    /// the results are known.
    pub fn for_so_many(levels: impl IntoIterator<Item = Level>, pairs: usize) -> Self {
        let mut known: BTreeMap<Option<usize>, f64> = BTreeMap::new();
        let mut critical = |degrees| *known.entry(degrees).or_insert_with(|| t(pairs, degrees));
        let level =
            |level: Level| (level.estimate.value.ln(), level.error, critical(level.degrees));
        Self { levels: levels.into_iter().map(level).collect() }
    }

    /// The ratio of the best of these to the best of those. A level may be among both.
    ///
    /// The identity max(a) - max(b) = the largest over a of the smallest over b of a - b also holds
    /// for the ends of their intervals, because these hold all at once.
    ///
    /// # Panics
    ///
    /// When one side is empty.
    pub fn ratio(&self, these: &[usize], those: &[usize]) -> Ratio {
        assert!(!these.is_empty() && !those.is_empty(), "there is something to compare");
        let best = |of: &dyn Fn(f64, f64) -> f64| {
            let least = |&one: &usize| {
                let all = those.iter().map(|&other| {
                    let (difference, half) = self.difference(one, other);
                    of(difference, half)
                });
                all.fold(f64::INFINITY, f64::min)
            };
            these.iter().map(least).fold(f64::NEG_INFINITY, f64::max).exp()
        };
        Ratio {
            value: best(&|difference, _| difference),
            low: best(&|difference, half| difference - half),
            high: best(&|difference, half| difference + half),
        }
    }

    /// The highest of them; none if there are none.
    ///
    /// Readers use the setting that is named. So of those that may be the highest and whose figures
    /// are nearly as high, it is the one that comes first by this order: the one that costs least. Of
    /// equal ones it is the highest, and of equally high ones the first.
    pub fn highest(&self, order: impl Fn(usize, usize) -> Ordering) -> Option<HighestLevel> {
        let value = |one: usize| self.levels[one].0;
        let by_value = |one: usize, other: usize| value(other).total_cmp(&value(one));
        let all = || 0..self.levels.len();
        let top = all().min_by(|one, other| by_value(*one, *other))?;
        let is_lower = |one: usize, than: usize| self.ratio(&[one], &[than]).is_less();
        let may_be = |one: &usize| *one == top || all().all(|other| !is_lower(*one, other));
        let nearly = all().filter(|one| value(top) + NEARLY_AS_HIGH.ln() <= value(*one));
        let place = nearly
            .filter(may_be)
            .min_by(|one, other| order(*one, *other).then(by_value(*one, *other)))?;
        let mut equals: Vec<usize> =
            all().filter(|one| *one != place && !is_lower(*one, place)).collect();
        equals.sort_by(|one, other| by_value(*one, *other));
        Some(HighestLevel { place, equals })
    }

    /// The ratio of the best of these to a figure that is known beforehand, such as a rating.
    ///
    /// # Panics
    ///
    /// When there is nothing to compare.
    pub fn against(&self, these: &[usize], figure: f64) -> Ratio {
        assert!(!these.is_empty(), "there is something to compare");
        let best = |sign: f64| {
            let ends = these.iter().map(|&one| {
                let (level, error, t) = self.levels[one];
                level + sign * t * error
            });
            ends.fold(f64::NEG_INFINITY, f64::max).exp() / figure
        };
        Ratio { value: best(0.0), low: best(-1.0), high: best(1.0) }
    }

    /// The difference of the logarithms of two levels, and its half-width.
    fn difference(&self, one: usize, other: usize) -> (f64, f64) {
        if one == other {
            return (0.0, 0.0);
        }
        let ((one, error, t), (other, others_error, others_t)) =
            (self.levels[one], self.levels[other]);
        // The fewer degrees of freedom of the two: never too narrow.
        (one - other, t.max(others_t) * error.hypot(others_error))
    }

    /// The smallest difference, as a share, that can be told between two levels that are known as
    /// well as the best-known two; none with fewer than two.
    pub fn resolution(&self) -> Option<f64> {
        let mut halves: Vec<f64> = self.levels.iter().map(|(_, error, t)| error * t).collect();
        halves.sort_by(f64::total_cmp);
        match halves.as_slice() {
            [one, other, ..] => Some(one.hypot(*other).exp_m1()),
            _ => None,
        }
    }
}

/// The mean ratio of one value of a setting to another over the same other settings, from the
/// levels at both: one of this many comparisons. None without a pair.
///
/// If trials were not in random order, a drift of the target affects all pairs alike, and their
/// mean is known no better than each of them.
pub fn contrast(pairs: &[(Level, Level)], comparisons: usize, by_chance: bool) -> Option<Ratio> {
    let count = pairs.len() as f64;
    let (mut sum, mut squares, mut least) = (0.0, 0.0, None);
    for (one, other) in pairs {
        sum += (one.estimate.value / other.estimate.value).ln();
        squares += one.error.powi(2) + other.error.powi(2);
        for degrees in [one.degrees, other.degrees].into_iter().flatten() {
            least = Some(least.map_or(degrees, |known: usize| known.min(degrees)));
        }
    }
    let error = (squares / count).sqrt() / if by_chance { count.sqrt() } else { 1.0 };
    (!pairs.is_empty()).then(|| Ratio::of_logarithm(sum / count, t(comparisons, least) * error))
}

/// The mean ratio of pairs of trials, from the logarithms of their ratios, with an interval from
/// their scatter; none for fewer than two pairs, which do not show the scatter. It is one of this
/// many comparisons.
pub fn of_pairs(logarithms: &[f64], looks: usize) -> Option<Ratio> {
    let count = logarithms.len();
    if count < 2 {
        return None;
    }
    let mean = logarithms.iter().sum::<f64>() / count as f64;
    let squares: f64 = logarithms.iter().map(|one| (one - mean).powi(2)).sum();
    let error = (squares / (count - 1) as f64 / count as f64).sqrt();
    mean.is_finite().then(|| Ratio::of_logarithm(mean, t(looks, Some(count - 1)) * error))
}

/// Student's two-sided quantile that all of this many comparisons stay within in 95 of 100
/// experiments (Bonferroni's inequality); the normal distribution's if the error is not estimated.
pub(crate) fn t(comparisons: usize, degrees: Option<usize>) -> f64 {
    let beyond = ALPHA / 2.0 / comparisons.max(1) as f64;
    // The lower tail, because values next to 1 are rounded.
    let lower = match degrees {
        Some(degrees) => StudentsT::new(0.0, 1.0, degrees as f64).map(|t| t.inverse_cdf(beyond)),
        None => Ok(Normal::standard().inverse_cdf(beyond)),
    };
    lower.map_or(f64::INFINITY, |lower| -lower)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SplitMix64;

    fn exact(value: f64) -> Estimate {
        Estimate { value, half_width: None }
    }

    /// The number of experiments, each with its own seed, and the number of them that may be wrong.
    /// A procedure that is wrong in 1 of 20 exceeds it once in a thousand times.
    const SEEDS: u64 = 400;
    const WRONG_MAX: u32 = 34;

    /// Trials of `count` settings with the same true rate, `repeats` of each, in passes. There is
    /// noise between trials, and a drift from the first to the last.
    fn alike(
        chance: &mut SplitMix64,
        count: usize,
        repeats: usize,
        how: (f64, f64),
    ) -> Vec<Vec<Estimate>> {
        let (noise, drift) = how;
        let mut settings: Vec<Vec<Estimate>> = vec![Vec::new(); count];
        for pass in 0..repeats {
            let mut order: Vec<usize> = (0..count).collect();
            for left in (1..count).rev() {
                order.swap(left, (chance.uniform() * (left + 1) as f64) as usize);
            }
            for (turn, place) in order.into_iter().enumerate() {
                let at = (pass * count + turn) as f64 / (repeats * count) as f64;
                let value = 1000.0 * (1.0 - drift * at) * (noise * chance.normal()).exp();
                settings[place].push(exact(value));
            }
        }
        settings
    }

    fn known(settings: &[Vec<Estimate>]) -> Vec<Level> {
        levels(settings).into_iter().flatten().collect()
    }

    #[test]
    fn critical_values_equal_the_tables() {
        // Student's t with 1 and 2 degrees of freedom in closed form, otherwise the values of the
        // tables; and the normal distribution's.
        let beyond = |comparisons: f64| 0.025 / comparisons;
        let one = |n: f64| 1.0 / (std::f64::consts::PI * beyond(n)).tan();
        let two = |n: f64| {
            let p = 1.0 - 2.0 * beyond(n);
            p * (2.0 / (1.0 - p * p)).sqrt()
        };
        for n in [1, 3, 36, 4950, 1_000_000] {
            let [t1, t2] = [1, 2].map(|degrees| t(n, Some(degrees)));
            assert!((t1 / one(n as f64) - 1.0).abs() < 1e-3, "{n}: {t1}");
            assert!((t2 / two(n as f64) - 1.0).abs() < 1e-3, "{n}: {t2}");
        }
        for (n, degrees, table) in [
            (1, Some(18), 2.1009),
            (5, Some(10), 3.1693),
            (25, Some(30), 3.3852),
            (1, None, 1.9600),
        ] {
            assert!((t(n, degrees) - table).abs() < 2e-3, "{n} {degrees:?}: {}", t(n, degrees));
        }
    }

    #[test]
    fn the_highest_is_the_one_that_costs_least_of_those_that_may_be_it() {
        let trials = |mean: f64| [0.999, 1.0, 1.001].map(|one| exact(mean * one)).to_vec();
        let named = |means: &[f64], costs: &[u32]| {
            let settings: Vec<Vec<Estimate>> = means.iter().map(|mean| trials(*mean)).collect();
            let compared = Comparison::new(known(&settings));
            compared.highest(|one, other| costs[one].cmp(&costs[other])).unwrap()
        };
        let found = |place, equals: &[usize]| HighestLevel { place, equals: equals.to_vec() };
        assert_eq!(named(&[500.0, 1000.0, 1000.0, 1000.0], &[1, 2, 4, 8]), found(1, &[2, 3]));
        assert_eq!(named(&[1000.0, 1000.0, 1000.0], &[8, 2, 4]), found(1, &[0, 2]));
        // What is lower beyond chance is not named, however little it costs.
        assert_eq!(named(&[980.0, 1000.0], &[1, 8]), found(1, &[]));
        // A figure that is clearly lower is not named even if chance could explain it.
        let one = |value: f64| Vec::from([exact(value)]);
        let compared = Comparison::new(known(&[one(800.0), one(1000.0), one(960.0)]));
        assert_eq!(compared.highest(|one, other| one.cmp(&other)), Some(found(1, &[2, 0])));
        assert_eq!(Comparison::new([]).highest(|_, _| Ordering::Equal), None);
        let level = known(&[trials(200.0)])[0].inverse();
        assert!((level.estimate.value - 0.005).abs() < 1e-12);
    }

    #[test]
    fn settings_that_are_alike_are_told_apart_in_one_of_twenty_experiments_at_most() {
        for (count, repeats) in [(2, 2), (9, 1), (9, 2), (9, 3), (24, 3)] {
            for how in [(0.03, 0.0), (0.1, 0.0), (0.03, 0.1), (0.1, 0.2)] {
                let wrong = (0..SEEDS).filter(|seed| {
                    let levels = known(&alike(&mut SplitMix64(*seed), count, repeats, how));
                    let all: Vec<usize> = (0..levels.len()).collect();
                    let compared = Comparison::new(levels);
                    all.iter().any(|one| compared.ratio(&[*one], &all).is_less())
                });
                let wrong = wrong.count() as u32;
                assert!(wrong <= WRONG_MAX, "{count} x {repeats}, {how:?}: {wrong} of {SEEDS}");
            }
        }
    }

    #[test]
    fn the_share_of_the_best_is_covered_and_a_large_effect_is_found() {
        let truth = [0.25, 0.5, 0.8, 0.9, 0.95, 1.0, 0.98, 0.9];
        let (mut covered, mut found) = (0, 0);
        for seed in 0..SEEDS {
            let mut chance = SplitMix64(seed);
            let mut settings = alike(&mut chance, truth.len(), 3, (0.03, 0.0));
            for (trials, share) in settings.iter_mut().zip(truth) {
                trials.iter_mut().for_each(|one| one.value *= share);
            }
            let all: Vec<usize> = (0..truth.len()).collect();
            let compared = Comparison::new(known(&settings));
            let shares: Vec<Ratio> = all.iter().map(|one| compared.ratio(&[*one], &all)).collect();
            let holds = |(share, truth): (&Ratio, f64)| share.low <= truth && truth <= share.high;
            covered += u32::from(shares.iter().zip(truth).all(holds));
            found += u32::from(shares[..3].iter().all(|share| share.is_less()));
        }
        assert!(SEEDS as u32 - covered <= WRONG_MAX, "{covered}");
        assert!(found as u64 > SEEDS * 9 / 10, "{found}");
    }

    #[test]
    fn one_trial_of_each_is_told_apart_where_runs_that_differ_by_an_eighth_would_not_explain_it() {
        let of = |values: &[f64]| {
            Comparison::new(known(
                &values.iter().map(|one| Vec::from([exact(*one)])).collect::<Vec<_>>(),
            ))
        };
        let compared = of(&[100.0, 130.0, 210.0]);
        assert!(compared.ratio(&[0], &[1]).may_be_nothing());
        assert!(compared.ratio(&[0], &[2]).is_less() && compared.ratio(&[2], &[0, 1]).is_more());
        // exp(2.394 x 0.12 x sqrt(2)) - 1.
        assert!(
            (compared.resolution().unwrap() - 0.501).abs() < 2e-3,
            "{:?}",
            compared.resolution()
        );
        assert_eq!(of(&[100.0]).resolution(), None);
    }

    #[test]
    fn a_restless_setting_makes_itself_uncertain_and_no_other() {
        let calm = |level: f64| Vec::from([0.99, 1.0, 1.01].map(|one| exact(level * one)));
        let mut settings = Vec::from([calm(500.0), calm(900.0), calm(1000.0), calm(990.0)]);
        settings.push(Vec::from([125.0, 1000.0, 1000.0].map(exact)));
        let compared = Comparison::new(known(&settings));
        assert!(compared.ratio(&[1], &[2]).is_less() && compared.ratio(&[0], &[1]).is_less());
        assert!(compared.ratio(&[4], &[2]).may_be_nothing());
        let half = |level: &Level| level.estimate.half_width.unwrap() / level.estimate.value;
        let levels = known(&settings);
        assert!(half(&levels[1]) < 0.03 && 0.5 < half(&levels[4]), "{levels:?}");
    }

    #[test]
    fn the_mean_ratio_of_pairs_needs_two_of_them() {
        assert_eq!(of_pairs(&[], 1), None);
        assert_eq!(of_pairs(&[0.5], 1), None);
        // Mean 0.2, standard error 0.1: t(1) = 12.706.
        let ratio = of_pairs(&[0.1, 0.3], 1).unwrap();
        assert!(
            (ratio.value.ln() - 0.2).abs() < 1e-9 && (ratio.low.ln() - 0.2 + 1.2706).abs() < 1e-3
        );
        assert!(of_pairs(&[0.69, 0.7, 0.68, 0.69], 12).unwrap().is_more());
    }

    #[test]
    fn a_contrast_is_known_better_with_more_pairs_unless_a_drift_is_in_all() {
        let level = |value| known(&[Vec::from([exact(value)])])[0];
        let pairs = [(level(200.0), level(100.0)), (level(400.0), level(200.0))];
        let shuffled = contrast(&pairs, 1, true).unwrap();
        // 1.96 x 0.12 x sqrt(2) / sqrt(2).
        assert!((shuffled.value - 2.0).abs() < 1e-9);
        assert!(((2.0 / shuffled.low).ln() - 0.2352).abs() < 1e-3, "{shuffled:?}");
        let given = contrast(&pairs, 1, false).unwrap();
        assert!(((2.0 / given.low).ln() - 0.3326).abs() < 1e-3, "{given:?}");
        assert_eq!(contrast(&[], 1, true), None);
    }
}
