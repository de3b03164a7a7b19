//! A sweep: every combination of several settings, repeated, in an order that keeps a drift of the
//! target from looking like the effect of a setting.
//!
//! The combinations are fixed beforehand; nothing is resolved here. The conclusions are in `words`.

mod cost;
pub(super) mod curves;
pub(super) mod order;
pub(super) mod payloads;
mod scaling;
pub(super) mod words;

use super::precondition::Precondition;
use super::throughput::Throughput;
use super::{
    Axis, Conclusion, Experiment, Forecast, Foreseen, Found, Planned, Step, SweepFound, looks,
};
use crate::experiment::throughput::bandwidth_in_words;
use crate::measure::Record;
use crate::spec::Point;
use crate::stats::{self, Comparison, Estimate, Level};
use crate::trial::{Coordinate, Place, Role, Trial};
use crate::units::Span;
use crate::verdict::Finding;
pub use cost::LoadCost;
pub(super) use payloads::is_unique;

/// The axis of the targets.
pub(super) const TARGETS: &str = "targets";

/// One combination of the settings.
#[derive(Clone, Debug, PartialEq)]
pub struct Candidate {
    /// The point to measure. Its seed is the sweep's: each trial gets its own seed from it.
    pub point: Point,
    /// Its place on each of the axes, in their order.
    pub coordinates: Vec<Coordinate>,
    /// Whether it runs once, next to one that runs as often as all others.
    pub once: bool,
}

/// The order in which the combinations run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PassOrder {
    /// Each repeat is a pass over all of them in a different order, by the seed.
    Shuffled,
    /// Each repeat is a pass over all of them in the given order.
    AsGiven,
}

/// The settings of a sweep.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SweepSettings {
    /// How often each combination runs, at least once.
    pub repeats: u32,
    /// The order.
    pub order: PassOrder,
    /// Repeats the order, and with it everything else.
    pub seed: u64,
    /// How long the targets rest between two points.
    pub rest: Span,
    /// How often everything that a point addresses is written before it.
    pub prepare: u32,
    /// Whether points that are clearly worse than the best are cut short and not repeated.
    pub cut_off: bool,
    /// The share of the best throughput that is enough, from 0 to 1: what "saturates" means.
    pub enough: f64,
}

/// A point that is clearly worse gives less than this share of the best, beyond chance.
const CLEARLY: f64 = 0.75;

/// How many times a point may be found clearly worse: at each of its looks, and when it has ended.
const LOOKS: usize = 4;

/// The bandwidth that is assumed for an unknown target, in bytes per second, in the forecast of
/// points that end after an amount.
const ASSUMED_BANDWIDTH: f64 = 500e6;

/// The throughput of one trial, and what else of it is kept.
#[derive(Clone, Copy, Debug, PartialEq)]
struct TrialThroughput {
    value: f64,
    half_width: Option<f64>,
    /// The p99 of its response time in nanoseconds; none if too few I/Os show it.
    p99_ns: Option<f64>,
    /// Its window.
    took: Span,
    /// Its place in the order of trials.
    turn: usize,
    /// Its number among the trials of its point.
    repeat: u32,
    /// Whether the trial was void.
    is_void: bool,
}

/// All combinations, and the results for each.
#[derive(Clone, Debug)]
pub struct Sweep {
    axes: Vec<Axis>,
    candidates: Vec<Candidate>,
    settings: SweepSettings,
    throughput: Throughput,
    /// The order of trials: places in `candidates`, and the repeat of each.
    turns: Vec<(u32, u32)>,
    /// How many of these were fixed beforehand; the rest are measured again.
    passes: usize,
    /// Whether the points to measure again were already determined, and the reason for each.
    again: Option<Vec<usize>>,
    /// The trials of each candidate.
    readings: Vec<Vec<TrialThroughput>>,
    /// The results of each candidate.
    levels: Vec<Option<Level>>,
    /// Candidates that were found clearly worse, and do not run any more.
    cut_off: Vec<bool>,
    /// How many trials of the order are done.
    done: usize,
    /// The running point.
    running: Option<Running>,
}

/// A point that runs at a place of the order.
#[derive(Clone, Debug)]
enum Running {
    /// The preparation before a candidate.
    Preparation(Box<Precondition>),
    /// The candidate of this place.
    Candidate(usize),
}

impl Sweep {
    /// A sweep over these combinations, the first axis varying slowest.
    ///
    /// # Panics
    ///
    /// Without a candidate, or when one has no place on some axis, which resolving a sweep rules out.
    pub fn new(axes: Vec<Axis>, candidates: Vec<Candidate>, settings: SweepSettings) -> Self {
        assert!(!candidates.is_empty() && settings.repeats > 0, "there is something to run");
        assert!(candidates.iter().all(|one| one.coordinates.len() == axes.len()));
        let turns = order::turns(&candidates, &settings);
        Self {
            throughput: Throughput::of(candidates.iter().map(|one| &one.point)),
            passes: turns.len(),
            turns,
            again: None,
            readings: vec![Vec::new(); candidates.len()],
            levels: vec![None; candidates.len()],
            cut_off: vec![false; candidates.len()],
            done: 0,
            running: None,
            axes,
            candidates,
            settings,
        }
    }

    /// The results so far, in the order of the axes: each combination that has a result, with the
    /// result.
    pub fn results(&self) -> impl Iterator<Item = (&Candidate, Level)> {
        let all = self.candidates.iter().zip(&self.levels);
        all.filter_map(|(candidate, level)| Some((candidate, (*level)?)))
    }

    /// A throughput of it, in words.
    pub fn in_words(&self, value: f64) -> String {
        self.throughput.in_words(value)
    }

    /// The same, with a bandwidth also in powers of ten, for a comparison with published figures.
    pub fn in_both_units(&self, value: f64) -> String {
        match self.throughput {
            Throughput::Iops => self.in_words(value),
            Throughput::Bandwidth => bandwidth_in_words(value),
        }
    }

    /// The share of the best throughput that is enough.
    pub fn enough_share(&self) -> f64 {
        self.settings.enough
    }

    /// The axes, the first one varying slowest.
    pub fn axes(&self) -> &[Axis] {
        &self.axes
    }

    /// Whether its runs end with an amount. Their rates leave out the end, in which fewer and fewer I/Os
    /// are in flight.
    pub(in crate::experiment) fn ends_with_an_amount(&self) -> bool {
        let mut streams = self.candidates.iter().flat_map(|one| &one.point.streams);
        streams.all(|stream| stream.pacing.limit.is_some())
    }

    /// The next in order: a candidate, and its repeat.
    fn at(&self, turn: usize) -> Option<(usize, u32)> {
        self.turns.get(turn).map(|&(place, repeat)| (place as usize, repeat))
    }

    /// The probable time of a point. A point that ends after an amount takes as long as before, or
    /// as long as the others did; its window is only an upper bound.
    fn takes(&self, place: usize, others: Option<f64>) -> Span {
        let point = &self.candidates[place].point;
        let whole = point.time();
        let limits = point.streams.iter().map(|stream| Some(stream.pacing.limit?.bytes(stream).0));
        let Some(limits) = limits.collect::<Option<Vec<u64>>>() else { return whole };
        let seconds = took(self.readings[place].iter())
            .or(others)
            .unwrap_or_else(|| limits.iter().sum::<u64>() as f64 / ASSUMED_BANDWIDTH);
        (point.warm_up + Span((seconds * 1e9) as u64)).min(whole)
    }

    /// Takes the trial of a candidate.
    fn take(&mut self, place: usize, trial: &Trial) {
        if let Some(reading) = self.read(&trial.record) {
            let p99_ns = cost::p99_ns(&trial.record);
            let reading = TrialThroughput { is_void: trial.is_void, p99_ns, ..reading };
            // Judged before it counts itself, as at its looks. A point that is measured again is
            // measured to its end. A void trial decides nothing.
            let decides = self.may_cut() && !trial.is_void;
            self.cut_off[place] = decides && self.is_clearly_worse(reading);
            self.readings[place].push(reading);
            self.levels = self.compared();
        }
        self.done += 1;
    }

    /// The results of the trials of each candidate. Void trials do not count, unless all trials of
    /// all candidates are void.
    fn compared(&self) -> Vec<Option<Level>> {
        let all_are = self.readings.iter().flatten().all(|one| one.is_void);
        let shown =
            |one: &TrialThroughput| Estimate { value: one.value, half_width: one.half_width };
        let each = self
            .readings
            .iter()
            .map(|trials| trials.iter().filter(|one| all_are || !one.is_void).map(shown).collect());
        stats::levels(&each.collect::<Vec<Vec<Estimate>>>())
    }

    /// What the load of a candidate costs. Its p99 is that of the middle one of its trials, because
    /// percentiles have no mean.
    fn cost(&self, place: usize) -> LoadCost {
        let counted = self.readings[place].iter().filter(|one| !one.is_void);
        let mut times: Vec<f64> = counted.filter_map(|one| one.p99_ns).collect();
        times.sort_by(f64::total_cmp);
        let middle = times.get(times.len() / 2);
        LoadCost::of(&self.candidates[place].point, middle.copied())
    }

    /// Whether a candidate was measured, and does not count because all of its trials are void.
    fn is_void(&self, place: usize) -> bool {
        let trials = &self.readings[place];
        self.levels[place].is_none() && !trials.is_empty() && trials.iter().all(|one| one.is_void)
    }

    /// Whether the running point may be cut off.
    fn may_cut(&self) -> bool {
        self.settings.cut_off && self.done < self.passes
    }

    /// Whether the running point is measured again, or whether this was already decided.
    fn measure_again(&mut self) -> bool {
        if self.again.is_some() {
            return false;
        }
        let suspects = curves::suspects(self);
        let turns = curves::again(self, &suspects);
        self.turns.extend(&turns);
        self.again = Some(suspects);
        !turns.is_empty()
    }

    /// The preparation of a candidate, if there is one.
    fn preparation(&self, place: usize) -> Option<Box<Precondition>> {
        let passes = self.settings.prepare;
        (0 < passes).then(|| Box::new(Precondition::new(&self.candidates[place].point, passes)))
    }

    /// Another seed for each trial: the same data could be deduplicated, and the same offsets could
    /// be cached.
    fn seed(&self, place: usize, repeat: u32) -> u64 {
        let number = u64::from(repeat) * self.candidates.len() as u64 + place as u64;
        self.candidates[place].point.seed.wrapping_add(number)
    }

    fn planned(&self, place: usize, repeat: u32) -> Planned {
        let Candidate { point, coordinates, .. } = &self.candidates[place];
        let looks = if self.may_cut() { looks(point) } else { Vec::new() };
        let point = Point { seed: self.seed(place, repeat), looks, ..point.clone() };
        let rest = if self.done == 0 { Span(0) } else { self.settings.rest };
        let place = Place { role: Role::Result, coordinates: coordinates.clone(), repeat };
        Planned { point, place, rest }
    }

    /// A stretch of the preparation before a candidate. The rest comes after it.
    fn preparing(&self, place: usize, repeat: u32, stretch: Point) -> Planned {
        let Candidate { point, coordinates, .. } = &self.candidates[place];
        let name = format!("{}: {}", point.name, stretch.name);
        let point = Point { seed: self.seed(place, repeat), name, ..stretch };
        let coordinates = coordinates.clone();
        let place = Place { role: Role::Preparation, coordinates, repeat };
        Planned { point, place, rest: Span(0) }
    }

    fn read(&self, record: &Record) -> Option<TrialThroughput> {
        let Estimate { value, half_width } = self.throughput.read(record)?;
        let at = self.turns.get(self.done).map_or(0, |(_, repeat)| *repeat);
        let took = record.window;
        Some(TrialThroughput {
            value,
            half_width,
            p99_ns: None,
            took,
            turn: self.done,
            repeat: at,
            is_void: false,
        })
    }

    /// Whether a throughput is clearly below the best so far, for any of the candidates and at any
    /// of its looks.
    fn is_clearly_worse(&self, reading: TrialThroughput) -> bool {
        let TrialThroughput { value, half_width: Some(half), .. } = reading else { return false };
        let mine = Estimate { value, half_width: Some(half) };
        let mine = stats::levels(&[Vec::from([mine])])[0];
        // As long as all trials are void, the void ones have levels.
        let counts = |place: usize| self.readings[place].iter().any(|one| !one.is_void);
        let levels = (0..).zip(&self.levels).filter(|(place, _)| counts(*place));
        let best = levels.filter_map(|(_, level)| level.as_ref());
        let best = best.max_by(|one, other| one.cmp_value(other));
        let Some(best) = best else { return false };
        // Zero is less than anything.
        let Some(mine) = mine else { return true };
        let comparisons = LOOKS * self.candidates.len();
        let share = Comparison::for_so_many([mine, *best], comparisons).ratio(&[0], &[1]);
        share.value < CLEARLY && share.is_less()
    }

    fn conclusion(&self) -> Conclusion {
        let coordinates = |place: usize| {
            self.candidates[place].coordinates.iter().map(|one| one.label.clone()).collect()
        };
        let places = || 0..self.candidates.len();
        let saving = payloads::saving(self);
        let is_saved = |place: &usize| {
            !self.readings[*place].is_empty() && payloads::is_saved(self, &saving, *place)
        };
        let found = SweepFound {
            axes: self.axes.clone(),
            cut_off: places().filter(|place| self.cut_off[*place]).map(coordinates).collect(),
            saved: places().filter(is_saved).map(coordinates).collect(),
            all_alike: words::all_alike(self),
        };
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
        loop {
            let Some((place, repeat)) = self.at(self.done) else {
                if self.measure_again() {
                    continue;
                }
                return Step::Done(self.conclusion());
            };
            if self.cut_off[place] && self.done < self.passes {
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
    }

    fn enough(&self, so_far: &Record) -> bool {
        matches!(self.running, Some(Running::Candidate(_)))
            && self.may_cut()
            && self.read(so_far).is_some_and(|reading| self.is_clearly_worse(reading))
    }

    fn foreseen(&self, most: usize) -> Vec<Foreseen> {
        // The points that are cut off, and the time to write everything, follow from the trials.
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
            if self.cut_off[place] && at < self.passes {
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
        let (points, time) = curves::ahead_at_most(self, others);
        Forecast {
            points_at_most: ahead.points + points,
            time_at_most: ahead.time_at_most + time,
            ..ahead
        }
    }

    fn doubts(&self, trial: &Trial) -> Vec<Finding> {
        let Some(Running::Candidate(place)) = self.running else { return Vec::new() };
        payloads::saved(self, place, trial).into_iter().collect()
    }

    fn meant_to_repeat(&self, trial: &Trial) -> Option<&'static str> {
        payloads::varies(&self.axes, trial)
    }

    fn so_far(&self) -> Conclusion {
        self.conclusion()
    }
}

/// The mean time of trials in seconds; none without any.
fn took<'r>(readings: impl Iterator<Item = &'r TrialThroughput>) -> Option<f64> {
    let (sum, count) =
        readings.fold((0.0, 0), |(sum, count), one| (sum + one.took.as_secs_f64(), count + 1));
    (count > 0).then(|| sum / f64::from(count))
}

#[cfg(test)]
mod tests;
