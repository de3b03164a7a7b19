//! Whole numbers below a count in an order that a key decides, computed one by one: there is no table,
//! however large the region is.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

/// Steps of mixing: enough for the tests below, which check where numbers occur and how far
/// neighbors are apart.
const ROUNDS: usize = 6;

/// An order of the whole numbers below a count.
///
/// Every step of mixing can be undone, so that it is a permutation of the numbers with as many bits
/// as the count needs: multiplying by an odd number, adding, and folding the upper half of the bits
/// into the lower one. A result that is not below the count is mixed again until it is ("cycle
/// walking", J. Black and P. Rogaway, "Ciphers with arbitrary finite domains", 2002): less than
/// once for each number, on average.
#[derive(Clone, Debug)]
pub(super) struct Permutation {
    count: u64,
    mask: u64,
    fold: u32,
    /// The multipliers and the addends.
    keys: [(u64, u64); ROUNDS],
}

impl Permutation {
    /// # Panics
    ///
    /// When the count is zero.
    pub(super) fn new(count: u64, random: &mut Xoshiro256PlusPlus) -> Self {
        assert!(count > 0);
        let bits = u64::BITS - (count - 1).leading_zeros();
        Self {
            count,
            mask: u64::MAX.checked_shr(u64::BITS - bits).unwrap_or(0),
            fold: bits.div_ceil(2).max(1),
            keys: std::array::from_fn(|_| (random.next_u64() | 1, random.next_u64())),
        }
    }

    /// The order that this seed decides.
    pub(super) fn of_seed(count: u64, seed: u64) -> Self {
        Self::new(count, &mut Xoshiro256PlusPlus::seed_from_u64(seed))
    }

    /// The number at this place in the order; both are below the count.
    #[inline]
    pub(super) fn at(&self, place: u64) -> u64 {
        debug_assert!(place < self.count);
        let mut number = self.mix(place);
        while self.count <= number {
            number = self.mix(number);
        }
        number
    }

    #[inline]
    fn mix(&self, mut number: u64) -> u64 {
        for (factor, term) in self.keys {
            number = number.wrapping_mul(factor).wrapping_add(term) & self.mask;
            number ^= number >> self.fold;
        }
        number
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pattern::testing::assert_chi_squared;

    fn order(count: u64, seed: u64) -> Vec<u64> {
        let permutation = Permutation::of_seed(count, seed);
        (0..count).map(|place| permutation.at(place)).collect()
    }

    #[test]
    fn every_number_comes_once() {
        for count in (1..300).chain([511, 512, 513, 1000, 65_535, 65_537]) {
            let mut all = order(count, count + 7);
            all.sort_unstable();
            assert!(all.into_iter().eq(0..count), "{count}");
        }
        // The largest possible region is too large for a list, but its numbers stay below the
        // count.
        for count in [u64::MAX, (1 << 63) + 1] {
            let permutation = Permutation::of_seed(count, 3);
            assert!((0..1000).all(|place| permutation.at(place) < count));
        }
    }

    #[test]
    fn a_seed_repeats_an_order_and_another_one_gives_another() {
        assert_eq!(order(1000, 1), order(1000, 1));
        let same = order(1000, 1).iter().zip(order(1000, 2)).filter(|(a, b)| **a == *b).count();
        assert!(same < 10, "{same} of 1000 at the same place");
    }

    #[test]
    fn every_number_is_at_every_place_as_often() {
        const SEEDS: u64 = 20_000;
        for count in [2, 3, 5, 10, 60] {
            let mut seen = vec![0_u64; (count * count) as usize];
            for seed in 0..SEEDS {
                for (place, number) in order(count, seed).into_iter().enumerate() {
                    seen[place * count as usize + number as usize] += 1;
                }
            }
            let expected = vec![SEEDS as f64 / count as f64; seen.len()];
            assert_chi_squared(&seen, &expected);
        }
    }

    #[test]
    fn a_few_numbers_come_in_every_order() {
        let mut seen = std::collections::HashMap::new();
        for seed in 0..24_000 {
            *seen.entry(order(4, seed)).or_insert(0) += 1;
        }
        assert_eq!(seen.len(), 24);
        // Some are more frequent than others, because there are few numbers to mix with.
        assert!(seen.values().all(|times| (500..2000).contains(times)), "{seen:?}");
    }

    #[test]
    fn neighbors_land_anywhere() {
        // The count is not a power of two, so some numbers are mixed again.
        const COUNT: u64 = 1_000_003;
        for seed in 0..5 {
            let order = order(COUNT, seed);
            let part = |number: u64| (number * 64 / COUNT) as usize;
            // The places of the numbers of each 64th of the order, and the distances between
            // neighbors.
            let mut places = vec![0_u64; 64 * 64];
            let mut distances = vec![0_u64; 64];
            for (place, pair) in order.windows(2).enumerate() {
                places[part(place as u64) * 64 + part(pair[0])] += 1;
                distances[part((pair[1] + COUNT - pair[0]) % COUNT)] += 1;
            }
            let all = (COUNT - 1) as f64;
            assert_chi_squared(&distances, &[all / 64.0; 64]);
            // Without repetition each part is filled more evenly than by independent draws.
            assert_chi_squared(&places, &vec![all / 4096.0; 4096]);
        }
    }
}
