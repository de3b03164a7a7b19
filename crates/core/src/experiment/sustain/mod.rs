//! Rounds until a steady state: the targets are preconditioned, then the same points run round
//! after round until the watched figure no longer changes. In some tests a script of points
//! follows, which examines the steady state.
//!
//! `steady` decides over plain numbers when the rounds are steady; `presets` contains the SNIA
//! tests.

mod presets;
mod steady;
#[cfg(test)]
mod tests;
mod words;

use super::precondition::Precondition;
use super::{Conclusion, Experiment, Forecast, Found, Planned, Round, Step, SustainFound};
use crate::figures::number;
use crate::measure::Record;
use crate::spec::{BackendKind, Point, Stream};
use crate::stats::{Estimate, ROUNDS, bandwidth, iops, response_time};
use crate::trial::{Coordinate, Place, Role, Trial};
use crate::units::{Bytes, Quantile, Span};
pub use presets::{Test, TestSettings, test_plan};
use steady::{Lack, Rule, Standing, standing};

/// The axis of rounds that have one point each.
pub const ROUND: &str = "round";

/// SNIA's largest number of rounds; more if this many take less time than the load has to go on
/// for.
pub const ROUNDS_MAX: u32 = 25;

/// The watched figure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Watch {
    /// I/Os per second.
    Iops,
    /// Bytes per second.
    Bandwidth,
    /// The mean response time.
    MeanTime,
    /// A quantile of the response time.
    Time(Quantile),
}

impl Watch {
    fn read(self, record: &Record) -> Option<Estimate> {
        match self {
            Self::Iops => iops(record, None, None),
            Self::Bandwidth => bandwidth(record, None, None),
            Self::Time(quantile) => response_time(record, None, None, quantile),
            Self::MeanTime => {
                let value = record.total(None).response_time().mean()?;
                Some(Estimate { value, half_width: None })
            }
        }
    }

    /// "IOPS", "mean response time".
    fn name(self) -> String {
        match self {
            Self::Iops => "IOPS".to_owned(),
            Self::Bandwidth => "bandwidth".to_owned(),
            Self::MeanTime => "mean response time".to_owned(),
            Self::Time(quantile) => format!("{quantile} of the response time"),
        }
    }
}

/// A point of every round.
#[derive(Clone, Debug, PartialEq)]
pub struct RoundPoint {
    /// The point to measure.
    pub point: Point,
    /// Its place on the axes of the test.
    pub coordinates: Vec<Coordinate>,
}

/// When the rounds end.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Until {
    /// When they are steady, or this many are done.
    Steady {
        /// The most rounds.
        rounds: u32,
    },
    /// After this time, or this many bytes written, steady or not.
    Over {
        /// The time.
        time: Span,
        /// The bytes.
        bytes: Bytes,
    },
}

/// The settings of a test, complete.
#[derive(Clone, Debug, PartialEq)]
pub struct TestPlan {
    /// The name of the test.
    pub test: String,
    /// How often the whole addressed range is written beforehand.
    pub passes: u32,
    /// The points of a round, in their order; none if the test consists of its script alone.
    pub round: Vec<RoundPoint>,
    /// The place in the round of the watched point.
    pub watched: usize,
    /// The watched figure of it.
    pub watch: Watch,
    /// How long the load has to go on before the rounds can be called steady.
    pub at_least: Span,
    /// When the rounds end.
    pub until: Until,
    /// The points after the rounds, in this order.
    pub script: Vec<Planned>,
}

/// Rounds until a steady state.
#[derive(Clone, Debug)]
pub struct Sustain {
    plan: TestPlan,
    /// The hosts that apply each point together.
    hosts: u32,
    /// Whether the target is simulated, and so a new one at each point.
    is_simulated: bool,
    preparation: Option<Precondition>,
    /// The watched figure, round by round.
    rounds: Vec<Round>,
    /// Bytes written up to the end of each round, without the preparation; by each of several hosts.
    written: Vec<u64>,
    written_now: u64,
    /// How many points of the running round are done, and the watched figure in it.
    in_round: usize,
    watched_now: Option<Estimate>,
    /// The results of the script's trials, as many as are done.
    script: Vec<ScriptResult>,
    /// Whether the running point prepares.
    prepares: bool,
}

/// The result of a trial of the script.
#[derive(Clone, Debug, PartialEq)]
struct ScriptResult {
    labels: Vec<String>,
    iops: f64,
    bandwidth: f64,
    p99_ns: Option<f64>,
}

impl Sustain {
    /// The experiment.
    ///
    /// # Panics
    ///
    /// When the watched point is not in the round.
    pub fn new(plan: TestPlan) -> Self {
        assert!(plan.round.is_empty() || plan.watched < plan.round.len());
        let base = plan.round.first().map(|cell| &cell.point);
        let base = base.or(plan.script.first().map(|planned| &planned.point));
        let preparation = base.filter(|_| 0 < plan.passes);
        let preparation = preparation.map(|base| Precondition::new(base, plan.passes));
        Self {
            preparation,
            rounds: Vec::new(),
            written: Vec::new(),
            written_now: 0,
            in_round: 0,
            watched_now: None,
            script: Vec::new(),
            prepares: false,
            hosts: 1,
            is_simulated: false,
            plan,
        }
    }

    /// The same on several hosts, each of which applies the point: settings, and bytes that are
    /// written, are those of one host, and rates those of all together.
    #[must_use]
    pub fn on_hosts(self, hosts: u32) -> Self {
        Self { hosts, ..self }
    }

    /// Its settings.
    pub fn plan(&self) -> &TestPlan {
        &self.plan
    }

    /// Every point that it runs, once each: all of them have to fit, and may write.
    pub fn points(&self) -> Vec<Point> {
        let preparation = self.preparation.as_ref().and_then(Precondition::next);
        let round = self.plan.round.iter().map(|cell| cell.point.clone());
        let script = self.plan.script.iter().map(|planned| planned.point.clone());
        preparation.into_iter().chain(round).chain(script).collect()
    }

    /// Bytes that preconditioning writes.
    pub fn preconditioning(&self) -> Bytes {
        Bytes(self.preparation.as_ref().map_or(0, Precondition::bytes))
    }

    fn round_time(&self) -> Span {
        let times = self.plan.round.iter().map(|cell| cell.point.time());
        times.fold(Span(0), |sum, time| sum + time)
    }

    fn rule(&self) -> Rule {
        Rule { round: self.round_time(), at_least: self.plan.at_least }
    }

    fn values(&self) -> Vec<f64> {
        self.rounds.iter().map(|round| round.value.value).collect()
    }

    fn standing(&self) -> Standing {
        standing(&self.values(), &self.rule())
    }

    /// The largest possible number of rounds: if time or bytes end them, as many as the time
    /// allows.
    pub fn rounds_at_most(&self) -> u32 {
        let round = self.round_time().0.max(1);
        match self.plan.until {
            Until::Steady { rounds } => {
                let needed = self.plan.at_least.0.div_ceil(round);
                // The same number again, for a change on the way.
                rounds.max(needed.saturating_mul(2).min(u64::from(u32::MAX)) as u32)
            }
            Until::Over { time, .. } => time.0.div_ceil(round).max(1) as u32,
        }
    }

    fn rounds_are_over(&self) -> bool {
        let done = self.rounds.len() as u32;
        if self.plan.round.is_empty() || self.rounds_at_most() <= done {
            return true;
        }
        match self.plan.until {
            Until::Steady { .. } => matches!(self.standing().lacks, None | Some(Lack::Nothing)),
            Until::Over { bytes, .. } => {
                self.written.last().is_some_and(|written| bytes.0 <= *written)
            }
        }
    }

    /// Takes the trial of the step before.
    fn take(&mut self, trial: &Trial) {
        let prepared = std::mem::take(&mut self.prepares);
        self.is_simulated = trial.backend == BackendKind::Sim;
        if trial.has_lost_hosts() {
            // It is measured again.
            return;
        }
        if prepared {
            if let Some(preparation) = &mut self.preparation {
                preparation.take(&trial.record);
            }
            return;
        }
        if self.rounds_are_over() {
            self.script.push(shown(trial));
            return;
        }
        let writes = trial.record.total(Some(crate::measure::Direction::Write));
        self.written_now += writes.bytes.0 / u64::from(self.hosts);
        if self.in_round == self.plan.watched {
            self.watched_now = self.plan.watch.read(&trial.record);
        }
        self.in_round += 1;
        if self.in_round == self.plan.round.len() {
            let nothing = Estimate { value: 0.0, half_width: None };
            let value = self.watched_now.take().unwrap_or(nothing);
            self.rounds.push(Round { number: self.rounds.len() as u32 + 1, value });
            self.written.push(self.written_now);
            self.in_round = 0;
        }
    }

    fn next_planned(&mut self) -> Option<Planned> {
        let number = self.rounds.len() as u64;
        if let Some(point) = self.preparation.as_ref().and_then(Precondition::next) {
            self.prepares = true;
            let place = Place { role: Role::Preparation, ..Place::default() };
            return Some(Planned { point, place, rest: Span(0) });
        }
        if !self.rounds_are_over() {
            let RoundPoint { point, coordinates } = &self.plan.round[self.in_round];
            let mut point = point.clone();
            point.name = format!("round {}: {}", number + 1, point.name);
            // Other offsets and data in every round: cached data would not be a measurement.
            point.seed = point.seed.wrapping_add(number);
            let mut coordinates = coordinates.clone();
            if coordinates.is_empty() {
                // The place of a round of one point is its place in time.
                coordinates.push(Coordinate {
                    axis: ROUND.to_owned(),
                    label: (number + 1).to_string(),
                    value: Some((number + 1) as f64),
                });
            }
            let place = Place { role: Role::Result, coordinates, repeat: number as u32 };
            return Some(Planned { point, place, rest: Span(0) });
        }
        let mut planned = self.plan.script.get(self.script.len())?.clone();
        planned.point.seed = planned.point.seed.wrapping_add(number + self.script.len() as u64);
        Some(planned)
    }

    fn found(&self) -> SustainFound {
        let standing = self.standing();
        let is_steady = standing.lacks.is_none();
        SustainFound {
            test: self.plan.test.clone(),
            watched: self.watched_in_words(),
            rounds: self.rounds.clone(),
            steady_from: is_steady.then(|| (self.rounds.len() - ROUNDS) as u32 + 1),
            level_from: standing.unbroken_from(&self.values()).map(|from| from as u32 + 1),
            steadiness: standing.state,
        }
    }

    /// "IOPS of random write 4 KiB".
    pub fn watched_in_words(&self) -> String {
        let Some(cell) = self.plan.round.get(self.plan.watched) else {
            return String::new();
        };
        let what: Vec<String> = cell.point.streams.iter().map(Stream::load_in_words).collect();
        let on = match self.hosts {
            1 => String::new(),
            hosts => format!(", on {} hosts", number(hosts.into())),
        };
        format!("{} of {}{on}", self.plan.watch.name(), what.join(" with "))
    }
}

impl Experiment for Sustain {
    fn next(&mut self, last: Option<&Trial>) -> Step {
        if let Some(trial) = last {
            self.take(trial);
        }
        match self.next_planned() {
            Some(planned) => Step::Run(Box::new(planned)),
            None => Step::Done(self.so_far()),
        }
    }

    fn meant_to_change(&self, trial: &Trial) -> Option<&'static str> {
        let varies = |axis| trial.place.coordinates.iter().any(|one| one.axis == axis);
        match (varies(presets::IDLE_AXIS), varies(presets::PHASE_AXIS)) {
            (true, _) => {
                Some("How a burst after a pause differs from the steady state is the test.")
            }
            (_, true) => Some("How the rate changes after the phase before is the test."),
            _ => None,
        }
    }

    fn forecast(&self) -> Forecast {
        let mut ahead = Forecast::default();
        if let Some(preparation) = &self.preparation {
            let (time, time_at_most) = preparation.time();
            ahead = Forecast {
                points: preparation.stretches(),
                points_at_most: preparation.stretches().saturating_mul(6),
                time,
                time_at_most,
            };
        }
        let (done, most) = (self.rounds.len() as u32, self.rounds_at_most());
        if !self.rounds_are_over() {
            let needed = self.plan.at_least.0.div_ceil(self.round_time().0.max(1)) as u32;
            let usual = match self.plan.until {
                Until::Steady { .. } => needed.max(ROUNDS as u32).clamp(done + 1, most),
                Until::Over { .. } => most,
            };
            let cells = self.plan.round.len() as u32;
            let points = |rounds: u32| (rounds - done) * cells - self.in_round as u32;
            let time = |rounds: u32| {
                let done = self.plan.round[..self.in_round].iter();
                let done = done.map(|cell| cell.point.time());
                let all = Span(
                    self.round_time().0.saturating_mul((rounds - self.rounds.len() as u32).into()),
                );
                done.fold(all, |all, one| all - one)
            };
            ahead.points += points(usual);
            ahead.points_at_most = ahead.points_at_most.saturating_add(points(most));
            ahead.time += time(usual);
            ahead.time_at_most += time(most);
        }
        for planned in self.plan.script.iter().skip(self.script.len()) {
            let time = planned.rest + planned.point.time();
            ahead.points += 1;
            ahead.points_at_most += 1;
            ahead.time += time;
            ahead.time_at_most += time;
        }
        ahead
    }

    fn so_far(&self) -> Conclusion {
        Conclusion { sentences: words::sentences(self), found: Some(Found::Sustain(self.found())) }
    }
}

fn shown(trial: &Trial) -> ScriptResult {
    let value = |estimate: Option<Estimate>| estimate.map_or(0.0, |estimate| estimate.value);
    let labels = trial.place.coordinates.iter().map(|one| one.label.clone()).collect();
    let p99 = response_time(&trial.record, None, None, Quantile(0.99));
    ScriptResult {
        labels,
        iops: value(iops(&trial.record, None, None)),
        bandwidth: value(bandwidth(&trial.record, None, None)),
        p99_ns: p99.map(|estimate| estimate.value),
    }
}
