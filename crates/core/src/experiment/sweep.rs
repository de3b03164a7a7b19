//! A sweep: every combination of several settings, repeated, in an order that keeps a drift of the
//! target from looking like the effect of a setting.
//!
//! The combinations were settled beforehand; nothing is looked up here. What it concludes is in
//! `words`.

mod payloads;
mod words;

use super::precondition::Precondition;
use super::throughput::Throughput;
use super::{
    Axis, Conclusion, Coordinate, Experiment, Forecast, Foreseen, Found, Place, Planned, Role,
    Step, SweepFound, Trial, looks,
};
use crate::measure::Record;
use crate::spec::Point;
use crate::stats::{self, Estimate};
use crate::units::Span;
use crate::verdict::Finding;
pub(super) use payloads::{is_repeating, is_unique};

/// One combination of the settings.
#[derive(Clone, Debug, PartialEq)]
pub struct Candidate {
    /// What to measure. Its seed is the sweep's: each trial gets one of its own from it.
    pub point: Point,
    /// Where it lies on each of the axes, in their order.
    pub coordinates: Vec<Coordinate>,
    /// Whether it is run once, when all others have been run as often as they are.
    pub once: bool,
}

/// In which order the combinations are run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Each repeat is a pass over all of them in another order, by the seed.
    Shuffled,
    /// Each repeat is a pass over all of them as they were given.
    AsGiven,
}

/// How a sweep goes about it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    /// How often each combination is run, at least once.
    pub repeats: u32,
    /// In which order.
    pub order: Order,
    /// Repeats the order, and with it everything else.
    pub seed: u64,
    /// How long the targets are left alone between two points.
    pub rest: Span,
    /// How often all that a point addresses is written before it.
    pub prepare: u32,
    /// Whether points that are clearly worse than the best are cut short and not repeated.
    pub cut_off: bool,
    /// The share of the best throughput that is enough, from 0 to 1: what "saturates" means.
    pub enough: f64,
}

/// A point is clearly worse when the upper end of its interval is below this share of the lower end
/// of the best one's: repeats scatter by more than the intervals of a trial say.
const CLEARLY: f64 = 0.75;

/// What a target that nothing is known of yet is taken to move, in bytes per second, when a forecast
/// is made of points that end when so much is moved.
const ASSUMED_BANDWIDTH: f64 = 500e6;

/// The throughput of one trial, which is all that is kept of it.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Reading {
    value: f64,
    half_width: Option<f64>,
    /// Its window.
    took: Span,
}

/// All combinations, and what is known about each.
#[derive(Clone, Debug)]
pub struct Sweep {
    axes: Vec<Axis>,
    candidates: Vec<Candidate>,
    settings: Settings,
    throughput: Throughput,
    /// What is run, in its order: places in `candidates`, and which of its repeats each is.
    turns: Vec<(u32, u32)>,
    /// The trials of each candidate.
    readings: Vec<Vec<Reading>>,
    /// Candidates that were found clearly worse, and are run no more.
    cut_off: Vec<bool>,
    /// How many of the turns were dealt with.
    done: usize,
    /// What is running.
    running: Option<Running>,
}

/// What runs at a place of the passes.
#[derive(Clone, Debug)]
enum Running {
    /// What is written before a candidate is measured.
    Preparation(Precondition),
    /// The candidate of this place.
    Candidate(usize),
}

impl Sweep {
    /// A sweep over these combinations, the first axis varying slowest.
    ///
    /// # Panics
    ///
    /// Without a candidate, or when one has no place on some axis, which resolving a sweep rules out.
    pub fn new(axes: Vec<Axis>, candidates: Vec<Candidate>, settings: Settings) -> Self {
        assert!(!candidates.is_empty() && settings.repeats > 0, "there is something to run");
        assert!(candidates.iter().all(|one| one.coordinates.len() == axes.len()));
        Self {
            throughput: Throughput::of(candidates.iter().map(|one| &one.point)),
            turns: turns(&candidates, &settings),
            readings: vec![Vec::new(); candidates.len()],
            cut_off: vec![false; candidates.len()],
            done: 0,
            running: None,
            axes,
            candidates,
            settings,
        }
    }

    /// What is known so far, in the order of the axes: each combination that has a result, with what
    /// it came to.
    pub fn results(&self) -> impl Iterator<Item = (&Candidate, Estimate)> {
        let known = |place| Some((&self.candidates[place], self.estimate(place)?));
        (0..self.candidates.len()).filter_map(known)
    }

    /// A throughput of it, in words.
    pub fn in_words(&self, value: f64) -> String {
        self.throughput.in_words(value)
    }

    /// The share of the best throughput that is enough.
    pub fn enough_share(&self) -> f64 {
        self.settings.enough
    }

    /// The axes, the first one varying slowest.
    pub fn axes(&self) -> &[Axis] {
        &self.axes
    }

    /// What has its turn: a candidate, and which of its repeats.
    fn at(&self, turn: usize) -> Option<(usize, u32)> {
        self.turns.get(turn).map(|&(place, repeat)| (place as usize, repeat))
    }

    /// How long a turn will probably take. What ends when so much is done takes as long as it did
    /// before, or as the others did; its window is no bound that anybody reckons with.
    fn takes(&self, place: usize, others: Option<f64>) -> Span {
        let point = &self.candidates[place].point;
        let whole = point.time();
        let limits = point.streams.iter().map(|stream| Some(stream.limit?.bytes(stream).0));
        let Some(limits) = limits.collect::<Option<Vec<u64>>>() else { return whole };
        let seconds = took(self.readings[place].iter())
            .or(others)
            .unwrap_or_else(|| limits.iter().sum::<u64>() as f64 / ASSUMED_BANDWIDTH);
        (point.warm_up + Span((seconds * 1e9) as u64)).min(whole)
    }

    /// Takes the trial of a candidate.
    fn take(&mut self, place: usize, trial: &Trial) {
        if let Some(reading) = self.read(&trial.record) {
            // Judged before it counts itself, as it was at its looks.
            let cut = self.settings.cut_off && self.is_clearly_worse(reading);
            self.cut_off[place] |= cut;
            self.readings[place].push(reading);
        }
        self.done += 1;
    }

    /// What is written before a candidate, if anything is.
    fn preparation(&self, place: usize) -> Option<Precondition> {
        let passes = self.settings.prepare;
        (0 < passes).then(|| Precondition::new(&self.candidates[place].point, passes))
    }

    /// Another seed for each trial: the same data again could be deduplicated, and the same offsets
    /// again be cached.
    fn seed(&self, place: usize, repeat: u32) -> u64 {
        let number = u64::from(repeat) * self.candidates.len() as u64 + place as u64;
        self.candidates[place].point.seed.wrapping_add(number)
    }

    fn planned(&self, place: usize, repeat: u32) -> Planned {
        let Candidate { point, coordinates, .. } = &self.candidates[place];
        let looks = if self.settings.cut_off { looks(point) } else { Vec::new() };
        let point = Point { seed: self.seed(place, repeat), looks, ..point.clone() };
        let rest = if self.done == 0 { Span(0) } else { self.settings.rest };
        let place = Place { role: Role::Result, coordinates: coordinates.clone(), repeat };
        Planned { point, place, rest }
    }

    /// A stretch of what is written before a candidate. The rest is after it.
    fn preparing(&self, place: usize, repeat: u32, stretch: Point) -> Planned {
        let Candidate { point, coordinates, .. } = &self.candidates[place];
        let name = format!("{}: {}", point.name, stretch.name);
        let point = Point { seed: self.seed(place, repeat), name, ..stretch };
        let coordinates = coordinates.clone();
        let place = Place { role: Role::Preparation, coordinates, repeat };
        Planned { point, place, rest: Span(0) }
    }

    fn read(&self, record: &Record) -> Option<Reading> {
        let Estimate { value, half_width } = self.throughput.read(record)?;
        Some(Reading { value, half_width, took: record.window })
    }

    /// Whether a throughput is clearly below the best so far.
    fn is_clearly_worse(&self, reading: Reading) -> bool {
        let Some(best) = self.best() else { return false };
        let (Some(mine), Some(half)) = (reading.half_width, best.half_width) else { return false };
        reading.value + mine < CLEARLY * (best.value - half)
    }

    /// The highest throughput of any candidate.
    fn best(&self) -> Option<Estimate> {
        let estimates = (0..self.candidates.len()).filter_map(|place| self.estimate(place));
        estimates.max_by(|one, other| one.value.total_cmp(&other.value))
    }

    /// The throughput of a candidate over its trials. What they scatter by is taken from all
    /// candidates together, because few repeats of one say little about it.
    fn estimate(&self, place: usize) -> Option<Estimate> {
        let readings = &self.readings[place];
        let n = readings.len() as f64;
        let value = mean(readings)?;
        let within = readings.iter().filter_map(|one| one.half_width).map(|half| half * half);
        let within: Vec<f64> = within.collect();
        let within = (within.len() == readings.len())
            .then(|| (within.iter().sum::<f64>() / n).sqrt() / n.sqrt());
        let among = self.scatter().and_then(|(scatter, degrees)| {
            Some(stats::t_95(degrees)? * scatter * value / n.sqrt())
        });
        let half_width = match (within, among) {
            (Some(within), Some(among)) => Some(within.max(among)),
            (one, other) => one.or(other),
        };
        Some(Estimate { value, half_width })
    }

    /// What the trials of a candidate scatter by, as a share of its mean, pooled over all candidates,
    /// and its degrees of freedom; none where nothing was repeated.
    fn scatter(&self) -> Option<(f64, usize)> {
        let mut squares = 0.0;
        let mut degrees = 0;
        for readings in self.readings.iter().filter(|readings| readings.len() > 1) {
            let Some(mean) = mean(readings).filter(|mean| *mean > 0.0) else { continue };
            squares += readings.iter().map(|one| (one.value / mean - 1.0).powi(2)).sum::<f64>();
            degrees += readings.len() - 1;
        }
        (degrees > 0).then(|| ((squares / degrees as f64).sqrt(), degrees))
    }

    fn conclusion(&self) -> Conclusion {
        let coordinates = |place: usize| {
            self.candidates[place].coordinates.iter().map(|one| one.label.clone()).collect()
        };
        let cut_off = (0..self.candidates.len()).filter(|place| self.cut_off[*place]);
        let found =
            SweepFound { axes: self.axes.clone(), cut_off: cut_off.map(coordinates).collect() };
        Conclusion { sentences: words::sentences(self), found: Some(Found::Sweep(found)) }
    }
}

impl Experiment for Sweep {
    fn next(&mut self, last: Option<&Trial>) -> Step {
        let mut preparation = None;
        match (self.running.take(), last) {
            (Some(Running::Preparation(mut running)), Some(trial)) => {
                running.take(&trial.record);
                preparation = Some(running);
            }
            (Some(Running::Candidate(place)), Some(trial)) => self.take(place, trial),
            _ => {}
        }
        while let Some((place, repeat)) = self.at(self.done) {
            if self.cut_off[place] {
                self.done += 1;
                continue;
            }
            let preparation = preparation.take().or_else(|| self.preparation(place));
            let stretch = preparation.and_then(|one| Some((one.next()?, one)));
            return Step::Run(Box::new(match stretch {
                Some((point, preparation)) => {
                    self.running = Some(Running::Preparation(preparation));
                    self.preparing(place, repeat, point)
                }
                None => {
                    self.running = Some(Running::Candidate(place));
                    self.planned(place, repeat)
                }
            }));
        }
        Step::Done(self.conclusion())
    }

    fn enough(&self, so_far: &Record) -> bool {
        matches!(self.running, Some(Running::Candidate(_)))
            && self.settings.cut_off
            && self.read(so_far).is_some_and(|reading| self.is_clearly_worse(reading))
    }

    fn foreseen(&self, most: usize) -> Vec<Foreseen> {
        // What is cut off, and how long it takes to write everything, follows from the trials.
        if self.settings.cut_off || 0 < self.settings.prepare {
            return Vec::new();
        }
        let turns = (self.done + 1..).map_while(|turn| self.at(turn)).take(most);
        let foreseen = |(place, repeat)| {
            let planned = Planned { rest: self.settings.rest, ..self.planned(place, repeat) };
            Foreseen { planned, enough: Box::new(|_| false) }
        };
        turns.map(foreseen).collect()
    }

    fn forecast(&self) -> Forecast {
        let mut ahead = Forecast::default();
        let others = took(self.readings.iter().flatten());
        for (at, (place, _)) in
            (self.done..self.turns.len()).filter_map(|at| Some((at, self.at(at)?)))
        {
            if self.cut_off[place] {
                continue;
            }
            let preparation = match &self.running {
                Some(Running::Preparation(running)) if at == self.done => Some(running.clone()),
                Some(Running::Candidate(_)) if at == self.done => None,
                _ => self.preparation(place),
            };
            if let Some(preparation) = preparation {
                let (time, time_at_most) = preparation.time();
                ahead.points += preparation.stretches();
                ahead.time += time;
                ahead.time_at_most += time_at_most;
            }
            let rest = if at == 0 { Span(0) } else { self.settings.rest };
            ahead.points += 1;
            let takes = rest + self.takes(place, others);
            ahead.time += takes;
            ahead.time_at_most += takes;
        }
        Forecast { points_at_most: ahead.points, ..ahead }
    }

    fn doubts(&self, trial: &Trial) -> Vec<Finding> {
        let Some(Running::Candidate(place)) = self.running else { return Vec::new() };
        payloads::saved(self, place, trial).into_iter().collect()
    }

    fn so_far(&self) -> Conclusion {
        self.conclusion()
    }
}

fn mean(readings: &[Reading]) -> Option<f64> {
    let sum: f64 = readings.iter().map(|one| one.value).sum();
    (!readings.is_empty()).then(|| sum / readings.len() as f64)
}

/// Seconds that trials took in the mean; none without any.
fn took<'r>(readings: impl Iterator<Item = &'r Reading>) -> Option<f64> {
    let (sum, count) =
        readings.fold((0.0, 0), |(sum, count), one| (sum + one.took.as_secs_f64(), count + 1));
    (count > 0).then(|| sum / f64::from(count))
}

/// Everything that is run, in its order: a pass for each repeat, and then what is run once.
fn turns(candidates: &[Candidate], settings: &Settings) -> Vec<(u32, u32)> {
    let places = |once: bool| {
        let all = (0u32..).zip(candidates).filter(move |(_, one)| one.once == once);
        all.map(|(place, _)| place).collect::<Vec<u32>>()
    };
    let (often, once) = (places(false), places(true));
    let pass = |places: &[u32], number: u32, repeat: u32| {
        let order = order(places.len(), number, settings).into_iter();
        order.map(|at| (places[at], repeat)).collect::<Vec<_>>()
    };
    let passes = (0..settings.repeats).flat_map(|repeat| pass(&often, repeat, repeat));
    passes.chain(pass(&once, settings.repeats, 0)).collect()
}

/// The order of a pass (Fisher and Yates).
fn order(count: usize, pass: u32, settings: &Settings) -> Vec<usize> {
    let mut places: Vec<usize> = (0..count).collect();
    if settings.order == Order::Shuffled {
        let mut chance = Chance(settings.seed ^ (u64::from(pass) + 1).wrapping_mul(GOLDEN));
        for left in (1..count).rev() {
            let other = (u128::from(chance.next()) * (left as u128 + 1)) >> 64;
            places.swap(left, other as usize);
        }
    }
    places
}

const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;

/// SplitMix64: a seed gives the same order on every machine, for ever.
struct Chance(u64);

impl Chance {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(GOLDEN);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }
}

#[cfg(test)]
mod tests;
