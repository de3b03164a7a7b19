//! How fast a device is from one time to the next: the cause of differences between the trials of a
//! session, and between the seconds of a trial, while the load stays the same.
//!
//! The speed is drawn anew for each stretch k of the length E (`noise-every`), t in its middle:
//!
//! ```text
//! f(k)    = b w(k) d(t) (1 - h o(k))
//! b       = exp(s z - s^2 / 2)             s: noise-between, z drawn once for each run
//! w(k)    = exp(s z(k) - s^2 / 2)          s: noise, z(k) = r z(k - 1) + sqrt(1 - r^2) e(k), r: noise-correlation
//! d(t)    = (1 + c) ^ (t / T)              drift=c/T
//! o(k)                                     the part of the stretch in which others use the device (foreign),
//!                                          h: foreign-share, what they take of it
//! ```
//!
//! z and e are normal, so that the mean of b and w is 1 and their standard deviation is s to first
//! order. For drift and foreign load t counts from the start of the session: trials of one
//! experiment follow each other in it, in any order. Everything else counts from the start of the
//! run.

use std::f64::consts::LN_2;

use fathom_core::Span;

use super::chance::Chance;
use super::parameters::{Drift, Field, Parameter, Stall};

/// How the speed of a device changes.
#[derive(Clone, Debug, PartialEq)]
pub struct Noise {
    /// Standard deviation of the speed from one stretch of a run to the next.
    pub within: f64,
    /// How long a speed lasts.
    pub every: Span,
    /// Correlation of the speeds of neighboring stretches.
    pub correlation: f64,
    /// Standard deviation of the speed from run to run.
    pub between: f64,
    /// How the speed changes over the session.
    pub drift: Option<Drift>,
    /// When other programs use the device, in the time of the session.
    pub foreign: Option<Stall>,
    /// The share of it that they use.
    pub foreign_share: f64,
}

impl Default for Noise {
    fn default() -> Self {
        Self {
            within: 0.0,
            every: Span::from_secs(1),
            correlation: 0.0,
            between: 0.0,
            drift: None,
            foreign: None,
            foreign_share: 0.5,
        }
    }
}

/// Session times count only the load of its trials, in the order in which they run.
pub(super) const PARAMETERS: [Parameter<Noise>; 7] = [
    Parameter {
        name: "noise",
        meaning: "standard deviation of the speed within a run, from one noise-every to the next",
        field: |o| Field::Share(&mut o.within, 0.5),
    },
    Parameter {
        name: "noise-every",
        meaning: "the time that a speed lasts, for noise, drift and foreign load",
        field: |o| Field::Time(&mut o.every, Span::from_ms(1), Span::from_secs(3600)),
    },
    Parameter {
        name: "noise-correlation",
        meaning: "correlation of the noise of one noise-every with the next",
        field: |o| Field::Share(&mut o.correlation, 0.99),
    },
    Parameter {
        name: "noise-between",
        meaning: "standard deviation of the device's speed from run to run",
        field: |o| Field::Share(&mut o.between, 0.5),
    },
    Parameter {
        name: "drift",
        meaning: "the change of the device's speed over the session",
        field: |o| Field::Drift(&mut o.drift),
    },
    Parameter {
        name: "foreign",
        meaning: "other programs use the device from START (of the session) for LENGTH, again each \
                  EVERY",
        field: |o| Field::Stall(&mut o.foreign),
    },
    Parameter {
        name: "foreign-share",
        meaning: "the share of its speed that other programs take",
        field: |o| Field::Share(&mut o.foreign_share, 0.99),
    },
];

impl Noise {
    /// Whether the device always has the same speed.
    pub fn is_none(&self) -> bool {
        let Self { within, between, drift, foreign, .. } = self;
        *within == 0.0 && *between == 0.0 && drift.is_none() && foreign.is_none()
    }
}

/// The speeds of a run, stretch by stretch from the first one on.
#[derive(Clone, Debug)]
pub(super) struct Speeds {
    noise: Noise,
    seed: u64,
    /// The time of the session at which the run began.
    began: Span,
    /// That of the run.
    between: f64,
    /// The stretch that it is in, from 0.
    stretch: u64,
    /// Its random part.
    z: f64,
    /// Its speed.
    speed: f64,
}

impl Speeds {
    /// The speeds of a run with this seed which begins this long after the session began.
    pub fn new(noise: &Noise, seed: u64, began: Span) -> Self {
        let between = Chance::new(seed, 999).speed(noise.between);
        let mut speeds =
            Self { noise: noise.clone(), seed, began, between, stretch: 0, z: 0.0, speed: 1.0 };
        speeds.z = speeds.drawn();
        speeds.speed = speeds.now();
        speeds
    }

    /// The number of the stretch, from 0.
    pub fn stretch(&self) -> u64 {
        self.stretch
    }

    /// How fast the device is: 1 is the described speed.
    pub fn speed(&self) -> f64 {
        self.speed
    }

    /// How long a stretch lasts, in nanoseconds.
    pub fn every(&self) -> u64 {
        self.noise.every.0
    }

    /// How far the device gets in the stretch, in nanoseconds of device time.
    pub fn length(&self) -> u64 {
        ((self.every() as f64 * self.speed) as u64).max(1)
    }

    /// The next stretch.
    pub fn advance(&mut self) {
        self.stretch += 1;
        if self.noise.within > 0.0 {
            let r = self.noise.correlation;
            self.z = r * self.z + (1.0 - r * r).sqrt() * self.drawn();
        }
        self.speed = self.now();
    }

    /// The random part of the stretch alone: it depends only on its number.
    fn drawn(&self) -> f64 {
        match self.noise.within {
            0.0 => 0.0,
            _ => Chance::new(self.seed, 1_000 + self.stretch).normal(),
        }
    }

    fn now(&self) -> f64 {
        let Noise { within, every, drift, foreign, foreign_share, .. } = &self.noise;
        let begins = self.began.0 + self.stretch * every.0;
        let middle = (begins + every.0 / 2) as f64;
        let drifted = drift.map_or(1.0, |drift| {
            ((1.0 + drift.change).ln() * middle / drift.over.0 as f64).clamp(-MOST, MOST).exp()
        });
        let taken = foreign.map_or(0.0, |foreign| {
            let busy = foreign.until(begins + every.0) - foreign.until(begins);
            foreign_share * busy as f64 / every.0 as f64
        });
        let chance = (within * self.z - within * within / 2.0).exp();
        self.between * chance * drifted * (1.0 - taken)
    }
}

/// No drift makes a device more than a thousand times faster or slower.
const MOST: f64 = 10.0 * LN_2;

#[cfg(test)]
mod tests {
    use super::*;

    fn speeds(noise: &Noise, seed: u64, began: Span, count: usize) -> Vec<f64> {
        let mut speeds = Speeds::new(noise, seed, began);
        let mut next = || {
            let speed = speeds.speed();
            speeds.advance();
            speed
        };
        (0..count).map(|_| next()).collect()
    }

    fn mean_and_deviation(values: &[f64]) -> (f64, f64) {
        let n = values.len() as f64;
        let mean = values.iter().sum::<f64>() / n;
        let squares = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>();
        (mean, (squares / (n - 1.0)).sqrt())
    }

    #[test]
    fn noise_has_its_mean_its_deviation_and_its_correlation() {
        for correlation in [0.0, 0.8] {
            let noise = Noise { within: 0.1, correlation, ..Noise::default() };
            let speeds = speeds(&noise, 3, Span(0), 100_000);
            let (mean, deviation) = mean_and_deviation(&speeds);
            assert!((mean - 1.0).abs() < 0.004, "{mean}");
            assert!((deviation - 0.1).abs() < 0.003, "{deviation}");
            let pairs = speeds.windows(2).map(|two| (two[0] - mean) * (two[1] - mean));
            let found = pairs.sum::<f64>() / 1e5 / deviation.powi(2);
            assert!((found - correlation).abs() < 0.02, "{found}");
        }
    }

    #[test]
    fn runs_differ_by_their_seeds_and_not_within() {
        let noise = Noise { between: 0.1, ..Noise::default() };
        let runs: Vec<f64> = (0..20_000).map(|seed| speeds(&noise, seed, Span(0), 1)[0]).collect();
        let (mean, deviation) = mean_and_deviation(&runs);
        assert!((mean - 1.0).abs() < 0.004 && (deviation - 0.1).abs() < 0.003);
        let within = speeds(&noise, 7, Span(0), 10);
        assert!(within.iter().all(|speed| *speed == within[0]));
    }

    #[test]
    fn drift_and_foreign_load_follow_the_time_of_the_session() {
        let drift = Some(Drift { change: -0.5, over: Span::from_secs(100) });
        let noise = Noise { drift, ..Noise::default() };
        let whole = speeds(&noise, 1, Span(0), 100);
        assert!((whole[0] - 0.5f64.powf(0.005)).abs() < 1e-12);
        assert!((whole[99] - 0.5f64.powf(0.995)).abs() < 1e-12);
        // A later trial continues at its time in the session, whatever its seed.
        assert_eq!(speeds(&noise, 9, Span::from_secs(40), 60), whole[40..]);
        let foreign = Stall {
            start: Span::from_ms(2_500),
            length: Span::from_secs(2),
            every: Some(Span::from_secs(5)),
        };
        let noise = Noise { foreign: Some(foreign), foreign_share: 0.4, ..Noise::default() };
        let found = speeds(&noise, 1, Span::from_secs(1), 8);
        let expected = [1.0, 0.8, 0.6, 0.8, 1.0, 1.0, 0.8, 0.6];
        assert!(found.iter().zip(expected).all(|(one, other)| (one - other).abs() < 1e-12));
    }
}
