//! Three answers, never two, for all figures of a comparison at once.

use super::Difference;
use crate::stats::Ratio;

/// What counts as a difference, and how often one may be found where there is none.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Criterion {
    /// The largest share by which figures may differ and still count as the same: above 0.
    pub margin: f64,
    /// The share of comparisons, with all their figures, that may find a difference by chance.
    pub alpha: f64,
}

impl Default for Criterion {
    /// 5 % of a figure, in 1 of 20 comparisons.
    fn default() -> Self {
        Self { margin: 0.05, alpha: 0.05 }
    }
}

/// The answer in one figure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Decision {
    /// The ratio B/A with its interval at the level at which the figure was decided. Nothing is
    /// known of it with one trial on a side: it is from 0 to infinity.
    pub ratio: Ratio,
    /// The answer.
    pub outcome: Outcome,
}

/// One of three answers, or that there was no question.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Outcome {
    /// B has less than A: the interval lies below 1, and not within the margin.
    Less,
    /// B has more than A: the interval lies above 1, and not within the margin.
    More,
    /// No difference beyond the margin: the interval lies within it.
    Same,
    /// The trials cannot tell.
    Undecided {
        /// The smallest difference, as a share of A, that 9 of 10 comparisons with such a scatter
        /// would have found; none if there is none.
        could_have_seen: Option<f64>,
        /// The number of further trials of each side that would decide, if the ratio stays what it
        /// is; none if a thousand would not.
        more_trials: Option<u32>,
    },
    /// One trial on a side: nothing shows how much its trials differ.
    OneTrial,
}

/// Decides all figures of one comparison; none where the difference is not known.
///
/// At most a share `alpha` of comparisons finds a difference in any of its figures where there is
/// none (Holm, "A simple sequentially rejective multiple test procedure", Scandinavian Journal of
/// Statistics 6, 1979). An interval that lies within the margin is an equivalence by two one-sided
/// tests, each at half of its level (Schuirmann, Journal of Pharmacokinetics and Biopharmaceutics
/// 15, 1987).
pub fn decide(differences: &[Option<Difference>], criterion: Criterion) -> Vec<Option<Decision>> {
    let p: Vec<Option<f64>> = differences
        .iter()
        .map(|one| one.as_ref().filter(|one| one.is_repeated()).map(Difference::p))
        .collect();
    let levels = holm(&p, criterion.alpha);
    let all = differences.iter().zip(levels);
    all.map(|(one, level)| one.as_ref().map(|one| decided(one, level, criterion))).collect()
}

/// The level at which each is decided: alpha over the number of those that were not yet found to
/// differ when its turn came, or when the first was not found to.
pub(super) fn holm(p: &[Option<f64>], alpha: f64) -> Vec<f64> {
    let mut order: Vec<(usize, f64)> =
        p.iter().enumerate().filter_map(|(place, p)| Some((place, (*p)?))).collect();
    order.sort_by(|one, other| one.1.total_cmp(&other.1));
    let mut levels = vec![alpha; p.len()];
    let mut left = order.len();
    for (place, p) in order {
        levels[place] = alpha / left as f64;
        if p <= levels[place] && 1 < left {
            left -= 1;
        }
    }
    levels
}

fn decided(difference: &Difference, level: f64, criterion: Criterion) -> Decision {
    let margin = criterion.margin.ln_1p();
    let ratio = difference.interval(level);
    let is_within = -margin <= ratio.low.ln() && ratio.high.ln() <= margin;
    let outcome = match () {
        () if !difference.is_repeated() => Outcome::OneTrial,
        () if is_within => Outcome::Same,
        () if ratio.is_less() => Outcome::Less,
        () if ratio.is_more() => Outcome::More,
        () => Outcome::Undecided {
            could_have_seen: difference.could_have_seen(level, margin),
            more_trials: difference.more_trials(level, margin),
        },
    };
    Decision { ratio, outcome }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_figure_has_the_level_of_its_turn() {
        let levels = holm(&[Some(0.04), Some(0.001), None, Some(0.02), Some(0.012)], 0.05);
        // 0.001 <= 0.05 / 4 and 0.012 <= 0.05 / 3, but 0.05 / 2 < 0.026.
        assert_eq!(levels, [0.05, 0.0125, 0.05, 0.025, 0.05 / 3.0]);
        let levels = holm(&[Some(0.04), Some(0.001), Some(0.026)], 0.05);
        assert_eq!(levels, [0.025, 0.05 / 3.0, 0.025]);
        assert_eq!(holm(&[Some(0.5)], 0.05), [0.05]);
    }
}
