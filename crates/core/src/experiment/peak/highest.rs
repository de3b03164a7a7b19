//! The search for the highest load that meets an objective, over plain numbers: it decides which
//! load to offer next, and gives the answer. It never sees a trial.
//!
//! It starts with a load and goes up by fours until the objective is missed (or down, until it is
//! met), then halves the ratio between the highest load that meets it and the lowest that misses
//! it. If noise leaves these two open, they are probed again.
//!
//! What is certain rests on one assumption: less load is not slower. So a load meets the objective
//! if higher ones do, and its probes and theirs count together.

use super::knee::{PROBES_MAX, REPEATS_MAX};
use super::probed::{self, Probed, Scatter};
use crate::stats::Z_95;

/// The size of the first steps.
const STRIDE: f64 = 4.0;

/// With fewer I/Os in flight than this on average, none waits for another: less load is not faster.
const ALONE: f64 = 0.01;

/// A gap of this many tolerances next to a certain load is searched.
const WIDE: i32 = 4;

/// The two loads around the answer are probed this often.
const CONFIRMED: usize = 2;

/// The search for the highest load that meets an objective.
#[derive(Clone, Debug)]
pub struct Highest {
    /// The largest response time that meets the objective.
    bound: f64,
    /// The range of loads that can be offered.
    limits: (f64, f64),
    /// The load to start with.
    start: f64,
    /// The answer is known when the lowest load that misses is at most this many times the highest
    /// that meets.
    resolution: f64,
    /// By rising load.
    seen: Vec<ProbedLoad>,
    /// A load of which a long trial has shown whether it meets the objective.
    official: Option<(f64, bool)>,
}

#[derive(Clone, Debug)]
struct ProbedLoad {
    load: f64,
    probed: Probed,
    /// How many of the probes the target could not carry.
    overloaded: usize,
}

/// The knowledge of a search.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bracket {
    /// The highest load that meets the objective together with all loads below it; none if no load
    /// does.
    pub meets: Option<f64>,
    /// The lowest load above it that misses it; none if no load does.
    pub misses: Option<f64>,
}

impl Highest {
    /// A search between these loads, from `start` on, which ends when it has the answer within the
    /// share `tolerance`.
    ///
    /// # Panics
    ///
    /// When the limits are empty, or there is no tolerance.
    pub fn new(limits: (f64, f64), start: f64, bound: f64, tolerance: f64) -> Self {
        assert!(0.0 < limits.0 && limits.0 <= limits.1 && limits.1.is_finite());
        assert!(0.0 < tolerance && tolerance < 1.0 && bound > 0.0);
        let start = start.clamp(limits.0, limits.1);
        Self {
            bound,
            limits,
            start,
            resolution: 1.0 / (1.0 - tolerance),
            seen: Vec::new(),
            official: None,
        }
    }

    /// The load to offer next; none when the answer is final.
    pub fn next(&self) -> Option<f64> {
        if self.probes() >= PROBES_MAX {
            return None;
        }
        self.unexplored().or_else(|| self.doubtful()).or_else(|| self.gap())
    }

    /// Takes the result of a load: the response time at the objective's quantile with its standard
    /// error, and whether the target could not carry the load at all.
    pub fn observe(&mut self, load: f64, time: f64, standard_error: f64, overloaded: bool) {
        let place = self.seen.partition_point(|seen| seen.load < load);
        if self.seen.get(place).is_none_or(|seen| seen.load != load) {
            let new = ProbedLoad { load, probed: Probed::default(), overloaded: 0 };
            self.seen.insert(place, new);
        }
        let seen = &mut self.seen[place];
        seen.probed.add(time, standard_error);
        seen.overloaded += usize::from(overloaded);
    }

    /// Takes what a long trial of a load has shown beyond chance. It counts for more than all probes
    /// of this load, because the objective is to be met for long.
    pub fn decide(&mut self, load: f64, meets: bool) {
        self.official = Some((load, meets));
    }

    /// The number of probes.
    pub fn probes(&self) -> usize {
        self.seen.iter().map(|seen| seen.probed.count()).sum()
    }

    /// Whether a load meets the objective, by its long trial or by all its probes; none without a
    /// probe.
    pub fn meets(&self, load: f64) -> Option<bool> {
        let seen = self.seen.iter().find(|seen| seen.load == load)?;
        Some(self.is_met(seen))
    }

    /// Whether most of the probes of a load were more than the target could carry.
    pub fn is_overloaded(&self, load: f64) -> bool {
        let seen = self.seen.iter().find(|seen| seen.load == load);
        seen.is_some_and(|seen| seen.probed.count() < 2 * seen.overloaded)
    }

    /// The present knowledge.
    pub fn bracket(&self) -> Bracket {
        let met = self.met();
        Bracket {
            meets: met.checked_sub(1).map(|last| self.seen[last].load),
            misses: self.seen.get(met).map(|seen| seen.load),
        }
    }

    /// The loads that could be the answer as well, as far as the probes can tell, including the
    /// answer, in rising order.
    pub fn equals(&self) -> Vec<f64> {
        let Some(choice) = self.bracket().meets else { return Vec::new() };
        let told = self.told();
        let is_between = |load: f64| {
            told.meets.is_none_or(|meets| meets <= load)
                && told.misses.is_none_or(|misses| load < misses)
        };
        let all = self.seen.iter().map(|seen| seen.load);
        all.filter(|load| is_between(*load) || *load == choice).collect()
    }

    /// The loads between which the answer lies: the highest up to the choice that certainly meets
    /// the objective, and the lowest above it that certainly misses it.
    pub fn told(&self) -> Bracket {
        let (all, met) = (self.seen.len(), self.met());
        let is = |group: &[ProbedLoad], meets: bool| self.certainty(group) == Some(meets);
        let meets = (0..met).rev().find(|first| {
            let mut ends = first + 1..=all;
            ends.any(|end| is(&self.seen[*first..end], true))
        });
        let misses = (met..all).find(|last| {
            let mut starts = 0..=*last;
            starts.any(|start| is(&self.seen[start..=*last], false))
        });
        let load = |place: usize| self.seen[place].load;
        Bracket { meets: meets.map(load), misses: misses.map(load) }
    }

    /// The scatter between probes of one load, from the repeats.
    pub fn scatter(&self) -> Scatter {
        probed::scatter(self.seen.iter().map(|seen| &seen.probed))
    }

    /// Whether these neighbors meet the objective together, by the mean of all their probes; none if
    /// chance can explain on which side of the objective they are. If they meet it, so does the
    /// lowest of them; if they miss it, so does the highest.
    ///
    /// The two ends of an answer are two comparisons, however many loads there are: what is said of
    /// a load near the answer is also said of all loads that are further away.
    fn certainty(&self, group: &[ProbedLoad]) -> Option<bool> {
        let official = self.official.filter(|(load, _)| group.iter().any(|one| one.load == *load));
        match (group, official) {
            ([_], Some((_, meets))) => return Some(meets),
            // Its probes no longer count.
            (_, Some(_)) => return None,
            ([only], None) if self.is_overloaded(only.load) => return Some(false),
            _ => {}
        }
        let scatter = self.scatter();
        // The sum over all probes of their distance from the objective, and its variance.
        let (mut sum, mut variance) = (0.0, 0.0);
        for seen in group {
            let level = seen.probed.level().filter(|_| !seen.probed.is_disputed())?;
            let kept = seen.probed.kept_count() as f64;
            sum += kept * (level - self.bound.ln());
            variance += (kept * seen.probed.standard_error(scatter.noise())).powi(2);
        }
        (scatter.certain(2) * variance.sqrt() < sum.abs()).then_some(sum <= 0.0)
    }

    /// A load in the gap next to a certain load, if the gap is wide.
    fn gap(&self) -> Option<f64> {
        let told = self.told();
        let Bracket { meets: Some(meets), misses: Some(misses) } = self.bracket() else {
            return None;
        };
        let next = |from: f64| self.seen.iter().map(|seen| seen.load).find(|load| from < *load);
        let before = |to: f64| self.seen.iter().rev().map(|seen| seen.load).find(|load| *load < to);
        let below =
            told.meets.filter(|load| *load < meets).and_then(|load| Some((load, next(load)?)));
        let above =
            told.misses.filter(|load| misses < *load).and_then(|load| Some((before(load)?, load)));
        let wide = |(low, high): &(f64, f64)| self.resolution.powi(WIDE) < high / low;
        let middle = |(low, high): (f64, f64)| round((low * high).sqrt());
        below.filter(wide).or(above.filter(wide)).map(middle)
    }

    /// How many loads meet the objective together with all loads below them.
    fn met(&self) -> usize {
        self.seen.iter().take_while(|seen| self.is_met(seen)).count()
    }

    fn is_met(&self, seen: &ProbedLoad) -> bool {
        if let Some((_, meets)) = self.official.filter(|(load, _)| *load == seen.load) {
            return meets;
        }
        let carried = 2 * seen.overloaded <= seen.probed.count();
        carried && seen.probed.level().is_some_and(|level| level <= self.bound.ln())
    }

    /// Whether another probe may change the result.
    fn is_open(&self, seen: &ProbedLoad) -> bool {
        let Some(level) = seen.probed.level() else { return true };
        let distance = (level - self.bound.ln()).abs();
        let noise = probed::noise(self.seen.iter().map(|seen| &seen.probed));
        let is_carried = 2 * seen.overloaded <= seen.probed.count();
        let is_near = distance < Z_95 * seen.probed.standard_error(noise);
        seen.probed.is_disputed() || is_carried && is_near
    }

    /// Whether the I/Os of the lowest load have the target to themselves, by Little's law.
    fn is_alone(&self) -> bool {
        let lowest = self.seen.first().filter(|seen| seen.overloaded == 0);
        let time = |seen: &ProbedLoad| Some(seen.probed.level()?.exp() / 1e9);
        lowest.is_some_and(|seen| time(seen).is_some_and(|time| seen.load * time < ALONE))
    }

    fn unexplored(&self) -> Option<f64> {
        let (lowest, highest) = self.limits;
        let next = match self.bracket() {
            Bracket { meets: None, misses: None } => self.start,
            Bracket { meets: None, misses: Some(least) } if least <= lowest => return None,
            Bracket { meets: None, misses: Some(_) } if self.is_alone() => return None,
            Bracket { meets: None, misses: Some(least) } => round(least / STRIDE).max(lowest),
            Bracket { meets: Some(most), misses: None } if highest <= most => return None,
            Bracket { meets: Some(most), misses: None } => round(most * STRIDE).min(highest),
            Bracket { meets: Some(most), misses: Some(least) } => {
                if least <= most * self.resolution {
                    return None;
                }
                round((most * least).sqrt())
            }
        };
        // If it rounds to a known load, there is no load in between to ask for.
        self.seen.iter().all(|seen| seen.load != next).then_some(next)
    }

    /// One of the two loads around the answer, if another probe of it may change the answer.
    fn doubtful(&self) -> Option<f64> {
        let Bracket { meets, misses } = self.bracket();
        let is_between = meets.is_some() && misses.is_some();
        let bounds = [meets, misses].into_iter().flatten();
        let mut open: Vec<&ProbedLoad> = bounds
            .filter_map(|load| self.seen.iter().find(|seen| seen.load == load))
            .filter(|seen| match seen.probed.count() {
                ..CONFIRMED if is_between => true,
                count => self.is_open(seen) && count < REPEATS_MAX,
            })
            .collect();
        open.sort_by_key(|seen| seen.probed.count());
        open.first().map(|seen| seen.load)
    }
}

/// To three digits, the way people state a load.
fn round(load: f64) -> f64 {
    let unit = 10f64.powf(load.log10().floor() - 2.0);
    (load / unit).round() * unit
}
