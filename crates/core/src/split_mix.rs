//! A source of random numbers that a seed repeats on every machine.

/// SplitMix64 (Steele, Lea and Flood, 2014), from this state on. For orders, simulations and tests;
/// a generator of the engine draws the offsets of I/Os.
#[derive(Clone, Debug)]
pub struct SplitMix64(pub u64);

impl SplitMix64 {
    /// The increment of the state: 2^64 over the golden ratio, odd.
    pub const STEP: u64 = 0x9E37_79B9_7F4A_7C15;

    /// Mixes all bits of a number, so that neighboring numbers become unrelated.
    pub const fn mix(number: u64) -> u64 {
        let mixed = (number ^ (number >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// The next number.
    pub const fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(Self::STEP);
        Self::mix(self.0)
    }

    /// Uniform, from 0 and below 1.
    pub fn share(&mut self) -> f64 {
        (self.draw() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Uniform, above 0 and below 1.
    pub fn uniform(&mut self) -> f64 {
        self.share() + f64::EPSILON / 4.0
    }

    /// Standard normal (Box and Muller).
    pub fn normal(&mut self) -> f64 {
        let radius = (-2.0 * self.uniform().ln()).sqrt();
        radius * (std::f64::consts::TAU * self.uniform()).cos()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_are_those_of_the_published_program() {
        let mut chance = SplitMix64(1_234_567);
        let drawn: [u64; 3] = std::array::from_fn(|_| chance.draw());
        assert_eq!(
            drawn,
            [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]
        );
    }
}
