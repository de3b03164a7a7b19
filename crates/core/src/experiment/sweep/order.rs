//! The order of a sweep: passes over all candidates, each in a different order, and the points that
//! run once next to the points that they are compared with.

use super::{Candidate, PassOrder, SweepSettings};
use crate::SplitMix64;

/// The whole order: places, and the repeat of each. There is a pass for each repeat. The points
/// that run once are spread over the passes. Each stands next to the candidate that differs from it
/// least, alternately before and after it, so that no drift of the target looks like its effect.
pub(super) fn turns(candidates: &[Candidate], settings: &SweepSettings) -> Vec<(u32, u32)> {
    let places = |once: bool| {
        let all = (0u32..).zip(candidates).filter(move |(_, one)| one.once == once);
        all.map(|(place, _)| place).collect::<Vec<u32>>()
    };
    let (often, once) = (places(false), places(true));
    let shuffled = |places: &[u32], number: u32| {
        let order = order(places.len(), number, (settings.order, settings.seed)).into_iter();
        order.map(|at| places[at]).collect::<Vec<u32>>()
    };
    let once = shuffled(&once, settings.repeats);
    if often.is_empty() {
        return once.into_iter().map(|place| (place, 0)).collect();
    }
    let mut beside: Vec<Vec<(u32, u32)>> = vec![Vec::new(); settings.repeats as usize];
    for (pass, place) in (0..settings.repeats).cycle().zip(once) {
        let partner = often.iter().min_by_key(|other| {
            distance(&candidates[**other as usize], &candidates[place as usize])
        });
        beside[pass as usize].extend(partner.map(|partner| (*partner, place)));
    }
    let mut turns = Vec::new();
    let mut is_first = false;
    for (repeat, beside) in (0u32..).zip(beside) {
        for place in shuffled(&often, repeat) {
            let own = beside.iter().filter(|(partner, _)| *partner == place);
            let mut after = Vec::new();
            for (_, once) in own {
                is_first = !is_first;
                if is_first {
                    turns.push((*once, 0));
                } else {
                    after.push((*once, 0));
                }
            }
            turns.push((place, repeat));
            turns.extend(after);
        }
    }
    turns
}

/// On how many axes two candidates differ.
fn distance(one: &Candidate, other: &Candidate) -> usize {
    let both = one.coordinates.iter().zip(&other.coordinates);
    both.filter(|(one, other)| one.label != other.label).count()
}

/// The order of a pass (Fisher and Yates).
pub(in crate::experiment) fn order(
    count: usize,
    pass: u32,
    (order, seed): (PassOrder, u64),
) -> Vec<usize> {
    let mut places: Vec<usize> = (0..count).collect();
    if order == PassOrder::Shuffled {
        let pass = (u64::from(pass) + 1).wrapping_mul(SplitMix64::STEP);
        let mut chance = SplitMix64(seed ^ pass);
        for left in (1..count).rev() {
            let other = (u128::from(chance.draw()) * (left as u128 + 1)) >> 64;
            places.swap(left, other as usize);
        }
    }
    places
}
