//! The difference of two sides in one figure, and how far chance explains it.

use statrs::distribution::{ContinuousCDF, StudentsT};

use super::{Figure, Sample};
use crate::stats::Ratio;

/// How the trials of two sides belong together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Design {
    /// Two groups, of any sizes.
    Separate,
    /// The k-th trial of each side ran next to each other in one session, so that a drift is in
    /// both. Trials without a partner at the end of the longer side are not used.
    Paired,
}

/// A figure of two sides.
#[derive(Clone, Debug, PartialEq)]
pub struct SideBySide {
    /// The figure of the first side; none where [`Figure::of`] gives none.
    pub a: Option<f64>,
    /// The figure of the second side.
    pub b: Option<f64>,
    /// The difference of the two; none if one of them is not known.
    pub difference: Option<Difference>,
}

/// The difference of two sides in one figure, as the logarithm of the ratio B/A.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// From the merged trials of each side.
    merged: f64,
    /// The mean over the trials, from the logarithms of their own figures.
    among: f64,
    /// The trials' scatter: one group of pairs, or two groups of trials.
    groups: Vec<Repeated>,
    /// The standard deviation of what rounding adds.
    rounding: f64,
    trials: [usize; 2],
}

/// Logarithms that scatter around their mean.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Repeated {
    /// The variance of one of them; infinite if one of them is not known.
    variance: f64,
    count: usize,
}

impl Repeated {
    fn of(logarithms: &[f64]) -> (f64, Self) {
        let count = logarithms.len();
        let mean = logarithms.iter().sum::<f64>() / count as f64;
        let squares: f64 = logarithms.iter().map(|one| (one - mean).powi(2)).sum();
        let variance = squares / count.saturating_sub(1) as f64;
        let variance = if variance.is_finite() { variance } else { f64::INFINITY };
        (mean, Self { variance, count })
    }

    /// The square of the standard error of their mean.
    fn square(self) -> f64 {
        self.variance / self.count as f64
    }
}

/// Two sides, each a group of trials, in one figure.
pub fn difference(figure: Figure, a: &[&Sample], b: &[&Sample], design: Design) -> SideBySide {
    let pairs = a.len().min(b.len());
    let (a, b) = match design {
        Design::Separate => (a, b),
        Design::Paired => (&a[..pairs], &b[..pairs]),
    };
    let sides = [a, b].map(|side| figure.of(side));
    let difference = match sides {
        [Some(figure_a), Some(figure_b)] => {
            // A trial without the figure makes the scatter infinite.
            let logarithms = [a, b].map(|side| -> Vec<f64> {
                side.iter().map(|one| figure.of_one(one).map_or(f64::NAN, f64::ln)).collect()
            });
            let difference = Difference::new((figure_b / figure_a).ln(), &logarithms, design);
            Some(Difference { rounding: figure.rounding(), ..difference })
        }
        _ => None,
    };
    SideBySide { a: sides[0], b: sides[1], difference }
}

impl Difference {
    /// From the logarithm of the ratio of the merged figures, and the logarithms of the trials' own.
    pub(super) fn new(merged: f64, [a, b]: &[Vec<f64>; 2], design: Design) -> Self {
        let (among, groups) = match design {
            Design::Paired => {
                let pairs: Vec<f64> = a.iter().zip(b).map(|(a, b)| b - a).collect();
                let (mean, group) = Repeated::of(&pairs);
                (mean, Vec::from([group]))
            }
            Design::Separate => {
                let ((a, of_a), (b, of_b)) = (Repeated::of(a), Repeated::of(b));
                (b - a, Vec::from([of_a, of_b]))
            }
        };
        let among = if among.is_finite() { among } else { merged };
        Self { merged, among, groups, rounding: 0.0, trials: [a.len(), b.len()] }
    }

    /// The number of trials of each side that were used.
    pub fn trials(&self) -> [usize; 2] {
        self.trials
    }

    /// Whether both sides have the two trials without which nothing shows how much trials differ.
    pub fn is_repeated(&self) -> bool {
        self.trials.iter().all(|count| 2 <= *count)
    }

    /// The standard error of the mean over the trials, and its degrees of freedom: from the pairs,
    /// or from the scatter of each group (Welch and Satterthwaite).
    pub(super) fn scatter(&self) -> (f64, f64) {
        let squares: f64 = self.groups.iter().map(|group| group.square()).sum();
        let parts = self.groups.iter();
        let parts: f64 =
            parts.map(|group| group.square().powi(2) / (group.count as f64 - 1.0)).sum();
        let degrees = squares * squares / parts;
        // Without scatter, or with an infinite one, all deviations are alike.
        let degrees = if degrees.is_finite() { degrees } else { self.pooled().1 };
        (squares.sqrt().hypot(self.rounding), degrees)
    }

    /// The same from one scatter that all groups have in common.
    fn pooled(&self) -> (f64, f64) {
        let freedom = |group: &Repeated| group.count as f64 - 1.0;
        let degrees: f64 = self.groups.iter().map(freedom).sum();
        let squares = self.groups.iter().map(|group| freedom(group) * group.variance).sum::<f64>();
        let each: f64 = self.groups.iter().map(|group| 1.0 / group.count as f64).sum();
        ((squares / degrees * each).sqrt().hypot(self.rounding), degrees)
    }

    /// The probability of a difference at least as large, in either direction, if there is none.
    ///
    /// It counts how far the nearer of the two estimates is from none: the merged trials' and the
    /// mean over the trials. Both have to show the difference, so that it is found by chance no more
    /// often than with Student's t alone, however few of the trials make up the tail.
    pub fn p(&self) -> f64 {
        let nearest = self.nearest();
        if nearest == 0.0 || !self.is_repeated() {
            return 1.0;
        }
        let of = |(error, degrees): (f64, f64)| {
            StudentsT::new(0.0, 1.0, degrees)
                .map_or(1.0, |student| 2.0 * student.cdf(-nearest / error))
        };
        of(self.scatter()).max(of(self.pooled()))
    }

    /// The ratio B/A with its interval, which holds in all but `alpha` of comparisons: from the
    /// smaller of the two estimates to the larger, with Student's half-width at both ends.
    pub fn interval(&self, alpha: f64) -> Ratio {
        let half = self.half(alpha);
        Ratio {
            value: self.merged.exp(),
            low: (self.merged.min(self.among) - half).exp(),
            high: (self.merged.max(self.among) + half).exp(),
        }
    }

    /// The larger of Student's half-widths at this level, with a scatter for each group and with a
    /// common one; infinite if nothing shows the scatter. The first alone is too small where one
    /// group is much smaller than the other, and the second where their scatters differ.
    fn half(&self, alpha: f64) -> f64 {
        let of = |(error, degrees): (f64, f64)| match error {
            0.0 => 0.0,
            _ if error.is_finite() => error * quantile_t(1.0 - alpha / 2.0, degrees),
            _ => f64::INFINITY,
        };
        if self.is_repeated() { of(self.scatter()).max(of(self.pooled())) } else { f64::INFINITY }
    }

    /// How far the nearer estimate is from none; zero if they lie on both sides of it.
    fn nearest(&self) -> f64 {
        let (merged, among) = (self.merged, self.among);
        if 0.0 < merged * among { merged.abs().min(among.abs()) } else { 0.0 }
    }

    /// The smallest difference, as a share, that 9 of 10 comparisons with such a scatter find at
    /// this level, beyond this margin (a logarithm); none if they find none.
    pub(super) fn could_have_seen(&self, alpha: f64, margin: f64) -> Option<f64> {
        let (error, degrees) = self.scatter();
        let by_chance = error * quantile_t(0.9, degrees);
        let half = self.half(alpha);
        // The interval has to end above none, and beyond the margin.
        let seen = (half + by_chance).max(margin - half + by_chance);
        seen.is_finite().then(|| seen.exp_m1())
    }

    /// How many more trials of each side would decide, if the estimates stay and the scatter is what
    /// it seems: none if [`MORE_MAX`] would not.
    pub(super) fn more_trials(&self, alpha: f64, margin: f64) -> Option<u32> {
        let furthest = self.merged.abs().max(self.among.abs());
        let enough = self.nearest().max(margin - furthest);
        let decides = |more: u32| self.with_more(more).half(alpha) < enough;
        let mut above = 1;
        while !decides(above) {
            above *= 2;
            if MORE_MAX < above {
                return None;
            }
        }
        let mut below = above / 2;
        while below + 1 < above {
            let middle = u32::midpoint(below, above);
            if decides(middle) { above = middle } else { below = middle }
        }
        Some(above)
    }

    fn with_more(&self, more: u32) -> Self {
        let mut with = self.clone();
        with.groups.iter_mut().for_each(|group| group.count += more as usize);
        with
    }
}

/// As many more trials as anybody would run.
const MORE_MAX: u32 = 1024;

/// Student's quantile, for a probability of at least a half.
fn quantile_t(probability: f64, degrees: f64) -> f64 {
    // The lower tail, because values next to 1 are rounded.
    StudentsT::new(0.0, 1.0, degrees)
        .map_or(f64::INFINITY, |student| -student.inverse_cdf(1.0 - probability))
}
