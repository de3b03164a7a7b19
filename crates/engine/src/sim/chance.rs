//! Repeatable random numbers: each part of a device draws from its own stream, so that switching on
//! a fault does not change the service times.

use fathom_core::Span;
use rand_distr::{Distribution, StandardNormal};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

/// A stream of random numbers.
#[derive(Debug)]
pub(super) struct Chance(Xoshiro256PlusPlus);

impl Chance {
    /// The stream of one part of a device; `part` distinguishes the parts.
    pub fn new(seed: u64, part: u64) -> Self {
        Self(Xoshiro256PlusPlus::seed_from_u64(
            seed.wrapping_add(part.wrapping_mul(0x9E37_79B9_7F4A_7C15)),
        ))
    }

    /// Uniform in [0, 1): the upper 53 bits, as many as a fraction has.
    pub fn unit(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 * 2f64.powi(-53)
    }

    /// Uniform over 0..`n`, and 0 if `n` is 0.
    pub fn below(&mut self, n: u64) -> u64 {
        // The product's upper half: biased by less than n / 2^64.
        ((u128::from(self.0.next_u64()) * u128::from(n)) >> 64) as u64
    }

    /// Exponential with this mean.
    pub fn exponential(&mut self, mean: Span) -> Span {
        // One minus the number, because it may be zero but not one, and zero has no logarithm.
        Span((-(1.0 - self.unit()).ln() * mean.0 as f64).round() as u64)
    }

    /// A factor with a mean of 1 and, to first order, this standard deviation: exp(s z - s^2 / 2).
    pub fn speed(&mut self, deviation: f64) -> f64 {
        (deviation * self.normal() - deviation * deviation / 2.0).exp()
    }

    /// Uniform within this share around the mean.
    pub fn around(&mut self, mean: Span, share: f64) -> Span {
        let factor = 1.0 + share * (2.0 * self.unit() - 1.0);
        // To the nearest nanosecond: no value here is below zero, and truncation needs no call.
        Span((mean.0 as f64 * factor + 0.5) as u64)
    }

    /// Normal with mean 0 and standard deviation 1: by a ziggurat, which needs no logarithm, root or
    /// cosine for 99 of 100.
    pub fn normal(&mut self) -> f64 {
        StandardNormal.sample(&mut self.0)
    }
}
