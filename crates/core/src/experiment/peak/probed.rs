//! What the probes of one setting come to: the mean of their logarithms, and how well it is known.

/// The normal distribution's one-sided 95 % quantile: a difference of so many standard errors is
/// taken for one.
pub const CERTAIN: f64 = 1.645;

/// A probe is never taken for better known than this, as a share: the slices of one trial do not tell
/// how much the next trial differs, and 3 % is what runs of the published studies differ by. With 1 %
/// a sixth of the searches on their curves ends more than an octave off.
const LEAST_ERROR: f64 = 0.03;

/// Nothing is taken for this, because it has no logarithm.
const NEXT_TO_NOTHING: f64 = 1e-3;

/// The probes of one setting.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Probed {
    /// The logarithms of what they showed.
    levels: Vec<f64>,
    /// The squares of their relative standard errors, added up.
    variance: f64,
}

impl Probed {
    /// Adds a value above 0 and its standard error, in the same unit.
    pub fn add(&mut self, value: f64, standard_error: f64) {
        let value = value.max(NEXT_TO_NOTHING);
        let error = (standard_error / value).clamp(LEAST_ERROR, 1.0);
        self.levels.push(value.ln());
        self.variance += error * error;
    }

    /// How many there were.
    pub fn count(&self) -> usize {
        self.levels.len()
    }

    /// The mean of the logarithms; none without a probe.
    pub fn level(&self) -> Option<f64> {
        let count = self.levels.len();
        (count > 0).then(|| self.levels.iter().sum::<f64>() / count as f64)
    }

    /// The standard error of the level: what the trials say of themselves, or, from three of them
    /// up, how much they differ, whichever is more.
    pub fn standard_error(&self) -> f64 {
        let count = self.levels.len().max(1) as f64;
        let within = self.variance.sqrt() / count;
        let Some(mean) = self.level().filter(|_| self.levels.len() >= 3) else { return within };
        let squares: f64 = self.levels.iter().map(|level| (level - mean).powi(2)).sum();
        within.max((squares / (count - 1.0) / count).sqrt())
    }
}
