//! The search for the peak: in a closed loop the lowest queue depth or number of workers that
//! saturates the targets, or, with an objective, the highest load in an open loop that meets it. Then
//! one long trial at the answer.
//!
//! `knee` and `highest`, which know nothing of trials, decide which value comes next; here values
//! become points and trials become figures.

mod highest;
mod knee;
mod probed;
#[cfg(test)]
mod tests;
mod words;

use super::throughput::Throughput;
use super::{
    Axis, Conclusion, Experiment, Forecast, Found, PeakFound, Planned, Probe, Scale, Step, looks,
};
use crate::measure::Record;
use crate::plan::worker_count;
use crate::spec::{Loop, Objective, OfferedLoad, Point, Stream, Workers};
use crate::stats::{Estimate, TAIL_SAMPLES, Z_95, response_time};
use crate::trial::{Coordinate, Place, Role, Trial};
use crate::units::{Quantile, Rate, Span};
use highest::Highest;
use knee::Knee;
pub use knee::PROBES_MAX;
pub use words::{as_well, falls_short};

/// A load is not carried if more than this share of the I/Os that fell due is left over, and more
/// than `BY_CHANCE` of them.
const LEFT_OVER: f64 = 0.03;

/// The number of I/Os that may be in flight by chance.
const BY_CHANCE: u64 = 10;

/// The longest factor for a probe of a low load, which is made longer so that the objective's
/// quantile can be told.
const LONGEST_PROBE: u64 = 12;

/// The average number of probes of a search for the knee, measured on published curves with 3 % of
/// noise.
const USUAL_PROBES: u32 = 12;

/// The setting that varies in a closed loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Vary {
    /// The I/Os in flight, all streams together.
    QueueDepth,
    /// The workers of the only stream, each with the queue depth that it had.
    Workers,
}

impl Vary {
    /// The name of the option.
    pub fn name(self) -> &'static str {
        match self {
            Self::QueueDepth => "queue-depth",
            Self::Workers => "workers",
        }
    }
}

/// The goal of the search.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Search {
    /// The lowest setting that saturates.
    Saturation {
        /// The setting.
        vary: Vary,
        /// The highest one that may be probed.
        up_to: u32,
        /// The share of the best throughput that is enough, above 0 and below 1.
        enough: f64,
    },
    /// The highest load that meets an objective. The points are open loops, and start at theirs.
    Load {
        /// The objective.
        objective: Objective,
        /// The highest that may be offered, I/Os per second of all streams together.
        up_to: Rate,
        /// The tolerance of the answer, as a share.
        tolerance: f64,
    },
}

/// The search for the peak.
#[derive(Clone, Debug)]
pub struct Peak {
    base: Point,
    search: Search,
    /// The window of the official run, if there is one.
    official: Option<Span>,
    /// The hosts that apply each point together.
    hosts: u32,
    throughput: Throughput,
    state: State,
    /// Every probe, in order.
    probes: Vec<Shown>,
    /// The running value.
    asked: Option<f64>,
    /// The result of the official run, and its value.
    official_shown: Option<Shown>,
    /// Its response time at p50 and at p99, if there are enough samples.
    official_times: [Option<Estimate>; 2],
}

#[derive(Clone, Debug)]
enum State {
    Knee(Knee),
    Highest(Highest),
}

/// The result of a trial at a value.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Shown {
    value: f64,
    throughput: Estimate,
    /// At the objective's quantile, otherwise the median; none if there are too few samples.
    response_time: Option<Estimate>,
    /// Whether the target could not carry the load at all.
    overloaded: bool,
}

impl Shown {
    /// Whether it meets a bound on the response time; none if chance can explain on which side of
    /// the bound it is, or if its half-width is not known.
    fn certainly_meets(&self, bound: Span) -> Option<bool> {
        if self.overloaded {
            return Some(false);
        }
        let Estimate { value, half_width } = self.response_time?;
        let distance = bound.0 as f64 - value;
        (half_width? < distance.abs()).then_some(0.0 < distance)
    }
}

impl Peak {
    /// A search from this point on: it multiplies the point's queue depths, workers or loads.
    ///
    /// # Panics
    ///
    /// When the point's pacing does not match the search, workers are to vary and there are several
    /// streams, or a limit is below the least that the point needs. Resolving rules this out.
    pub fn new(base: Point, search: Search, official: Option<Span>) -> Self {
        let is_load = matches!(search, Search::Load { .. });
        assert!(base.streams.iter().all(|stream| stream.pacing.is_open() == is_load));
        let state = match search {
            Search::Saturation { vary, up_to, enough } => {
                assert!(vary == Vary::QueueDepth || base.streams.len() == 1);
                State::Knee(Knee::new(lowest(&base, vary), up_to, enough))
            }
            Search::Load { objective, up_to, tolerance } => {
                let limits = (LOWEST_LOAD.min(up_to.0), up_to.0);
                let bound = objective.bound.0 as f64;
                State::Highest(Highest::new(limits, offered(&base), bound, tolerance))
            }
        };
        let throughput = Throughput::of([&base]);
        Self {
            base,
            search,
            official,
            hosts: 1,
            throughput,
            state,
            probes: Vec::new(),
            asked: None,
            official_shown: None,
            official_times: [None; 2],
        }
    }

    /// The same by small steps from the lowest setting on, as people search by hand; a search for a
    /// load does not change.
    #[must_use]
    pub fn by_small_steps(mut self) -> Self {
        if let Search::Saturation { vary, up_to, enough } = self.search {
            self.state = State::Knee(Knee::climbing(lowest(&self.base, vary), up_to, enough));
        }
        self
    }

    /// The same on several hosts, each of which applies the point: settings are those of one host, and
    /// throughput that of all together. Nobody sees all hosts while a probe runs, so each lasts to its
    /// end.
    #[must_use]
    pub fn on_hosts(self, hosts: u32) -> Self {
        Self { hosts, ..self }
    }

    /// The largest possible number of probes.
    pub fn probes_at_most(&self) -> u32 {
        match &self.state {
            State::Knee(knee) => knee.probes_at_most() as u32,
            State::Highest(_) => PROBES_MAX as u32,
        }
    }

    /// The axis along which its points differ; its values become known only during the search.
    pub fn axis(&self) -> Axis {
        let scale = Scale::Log2;
        Axis { name: self.axis_name().to_owned(), scale, labels: Vec::new() }
    }

    /// The point at a value of the axis, as a probe.
    pub fn point(&self, value: f64) -> Point {
        let mut point = match self.search {
            Search::Saturation { vary: Vary::QueueDepth, .. } => deep(&self.base, value as u32),
            Search::Saturation { vary: Vary::Workers, .. } => crowded(&self.base, value as u32),
            Search::Load { .. } => loaded(&self.base, value),
        };
        for (stream, base) in point.streams.iter_mut().zip(&self.base.streams) {
            // A name that describes the load gets the description of this load.
            if base.name == base.description(self.base.window) {
                stream.name = stream.description(self.base.window);
            }
        }
        point.name = format!("{}: {}", self.base_name(), self.setting(value));
        if let Search::Load { objective, .. } = self.search {
            point.window = self.probe_window(objective.quantile, value);
        }
        point
    }

    /// The point with the highest value that may be probed: the one that needs most memory.
    pub fn largest(&self) -> Point {
        let value = match self.search {
            Search::Saturation { up_to, .. } => f64::from(up_to),
            Search::Load { up_to, .. } => up_to.0,
        };
        self.point(value)
    }

    fn axis_name(&self) -> &'static str {
        match self.search {
            Search::Saturation { vary, .. } => vary.name(),
            Search::Load { .. } => "rate",
        }
    }

    /// The common part of the points, in words.
    fn base_name(&self) -> String {
        match self.base.streams.as_slice() {
            [only] if self.base.name == only.description(self.base.window) => only.load_in_words(),
            _ => self.base.name.clone(),
        }
    }

    /// "queue depth 8", "1 worker", "41,200 IOPS offered".
    fn setting(&self, value: f64) -> String {
        match self.search {
            Search::Saturation { vary: Vary::QueueDepth, .. } => format!("queue depth {value}"),
            Search::Saturation { vary: Vary::Workers, .. } if value == 1.0 => "1 worker".to_owned(),
            Search::Saturation { vary: Vary::Workers, .. } => format!("{value} workers"),
            Search::Load { .. } => format!("{} IOPS offered", crate::figures::number(value)),
        }
    }

    /// Long enough for twice the samples that the quantile needs at this load.
    fn probe_window(&self, quantile: Quantile, load: f64) -> Span {
        let shortest = self.base.window;
        let samples = 2.0 * TAIL_SAMPLES as f64 / (1.0 - quantile.0).max(1e-9);
        let needed = Span((samples / load * 1e9).min(1e18) as u64);
        let interval = self.base.interval.0.max(1);
        let longest = shortest.0.saturating_mul(LONGEST_PROBE);
        let whole = needed.0.min(longest).next_multiple_of(interval);
        Span(whole.max(shortest.0))
    }

    /// Whether more I/Os have already taken too long than may do so in the whole window.
    fn has_missed(&self, load: f64, objective: &Objective, so_far: &Record) -> bool {
        let total = so_far.total(None);
        let response_time = total.response_time();
        let all = load * self.probe_window(objective.quantile, load).as_secs_f64();
        let too_long = (1.0 - objective.quantile.0) * all / response_time.count() as f64;
        let shortest = (too_long < 1.0).then_some(Quantile(1.0 - too_long));
        let shortest = shortest.and_then(|quantile| response_time.quantile(quantile));
        shortest.is_some_and(|shortest| objective.bound.0 < shortest)
    }

    fn read(&self, value: f64, record: &Record) -> Shown {
        let quantile = match self.search {
            Search::Saturation { .. } => Quantile(0.5),
            Search::Load { objective, .. } => objective.quantile,
        };
        let nothing = Estimate { value: 0.0, half_width: None };
        Shown {
            value,
            throughput: self.throughput.read(record).unwrap_or(nothing),
            response_time: response_time(record, None, None, quantile),
            overloaded: overloaded(record),
        }
    }

    /// Takes the trial of the step before.
    fn take(&mut self, trial: &Trial) {
        let Some(value) = self.asked.take() else { return };
        if trial.has_lost_hosts() {
            // It is measured again.
            return;
        }
        let shown = self.read(value, &trial.record);
        if trial.place.role == Role::Official {
            self.official_shown = Some(shown);
            if let (State::Highest(highest), Search::Load { objective, .. }) =
                (&mut self.state, self.search)
                && let Some(meets) = shown.certainly_meets(objective.bound)
            {
                highest.decide(value, meets);
            }
            self.official_times = words::OFFICIAL_QUANTILES
                .map(|quantile| response_time(&trial.record, None, None, quantile));
            return;
        }
        self.probes.push(shown);
        match (&mut self.state, self.search) {
            (State::Knee(knee), _) => {
                knee.observe(value as u32, shown.throughput.value, error(&shown.throughput));
            }
            (State::Highest(highest), Search::Load { objective, .. }) => {
                let record = &trial.record;
                let time = raw_time(record, objective.quantile);
                let error = shown.response_time.as_ref().map_or(time, error);
                highest.observe(value, time, error, shown.overloaded);
            }
            (State::Highest(_), Search::Saturation { .. }) => unreachable!("a load is searched"),
        }
    }

    /// The load whose official run certainly misses the objective, with what the run has shown.
    fn missed(&self) -> Option<Shown> {
        let Search::Load { objective, .. } = self.search else { return None };
        self.official_shown.filter(|one| one.certainly_meets(objective.bound) == Some(false))
    }

    /// The answer so far.
    fn choice(&self) -> Option<f64> {
        match &self.state {
            State::Knee(knee) => knee.answer().map(|answer| f64::from(answer.choice)),
            State::Highest(highest) => highest.bracket().meets,
        }
    }

    /// Whether chance can explain on which side of the objective the official run at the answer is.
    fn official_is_open(&self) -> bool {
        let Search::Load { objective, .. } = self.search else { return false };
        let official = self.official_shown.filter(|one| self.choice() == Some(one.value));
        official.is_some_and(|one| one.certainly_meets(objective.bound).is_none())
    }

    /// The value to probe next; none from the official run on, even if that leaves a question open.
    fn next_value(&self) -> Option<f64> {
        if self.official_shown.is_some() {
            return None;
        }
        match &self.state {
            State::Knee(knee) => knee.next().map(f64::from),
            State::Highest(highest) => highest.next(),
        }
    }

    fn planned(&self, value: f64, role: Role) -> Planned {
        let mut point = self.point(value);
        let repeat = match (role, self.official) {
            (Role::Official, Some(window)) => {
                (point.window, point.interval) = (window, official_interval(window, &self.base));
                0
            }
            _ => self.probes.iter().filter(|shown| shown.value == value).count() as u32,
        };
        // Other offsets and other data for each trial, so that no data is in a cache only because
        // the trial before has left it there.
        point.seed = self.base.seed.wrapping_add(self.probes.len() as u64);
        if role == Role::Probe && self.hosts == 1 {
            point.looks = looks(&point);
        }
        let coordinate = Coordinate {
            axis: self.axis_name().to_owned(),
            label: format!("{value}"),
            value: Some(value),
        };
        let place = Place { role, coordinates: Vec::from([coordinate]), repeat };
        Planned { point, place, rest: Span(0) }
    }

    fn found(&self) -> PeakFound {
        let mut values: Vec<f64> = self.probes.iter().map(|shown| shown.value).collect();
        values.sort_by(f64::total_cmp);
        values.dedup();
        let probes: Vec<Probe> = values.iter().map(|value| self.probe(*value)).collect();
        let best = probes.iter().map(|probe| probe.throughput);
        let (enough, objective) = match self.search {
            Search::Saturation { enough, .. } => (Some(enough), None),
            Search::Load { objective, .. } => (None, Some(objective.to_string())),
        };
        let equals = match &self.state {
            State::Knee(knee) => knee
                .answer()
                .map_or(Vec::new(), |answer| answer.equals.into_iter().map(f64::from).collect()),
            State::Highest(highest) => highest.equals(),
        };
        PeakFound {
            axis: self.axis_name().to_owned(),
            measure: self.throughput.name().to_owned(),
            enough,
            objective,
            best: best.max_by(|left, right| left.value.total_cmp(&right.value)),
            probes,
            choice: self.choice(),
            equals,
            official_is_open: self.official_is_open(),
        }
    }

    /// All probes of a value together.
    fn probe(&self, value: f64) -> Probe {
        let of: Vec<&Shown> = self.probes.iter().filter(|shown| shown.value == value).collect();
        let throughputs: Vec<Estimate> = of.iter().map(|shown| shown.throughput).collect();
        let times: Vec<Estimate> = of.iter().filter_map(|shown| shown.response_time).collect();
        let meets = match &self.state {
            State::Knee(_) => None,
            State::Highest(highest) => highest.meets(value),
        };
        Probe {
            value,
            trials: of.len() as u32,
            throughput: mean(&throughputs).unwrap_or(Estimate { value: 0.0, half_width: None }),
            response_time_ns: mean(&times),
            meets,
        }
    }
}

impl Experiment for Peak {
    fn next(&mut self, last: Option<&Trial>) -> Step {
        if let Some(trial) = last {
            self.take(trial);
        }
        let next = self.next_value().map(|value| (value, Role::Probe)).or_else(|| {
            let is_due = self.official.is_some() && self.official_shown.is_none();
            Some((self.choice().filter(|_| is_due)?, Role::Official))
        });
        match next {
            Some((value, role)) => {
                self.asked = Some(value);
                Step::Run(Box::new(self.planned(value, role)))
            }
            None => Step::Done(self.so_far()),
        }
    }

    fn enough(&self, so_far: &Record) -> bool {
        // There are no looks at the official run.
        match (&self.state, self.search) {
            (State::Knee(knee), _) => {
                let is_clear = |throughput: Estimate| {
                    throughput.half_width.is_some()
                        && knee.is_clearly_worse(throughput.value, error(&throughput))
                };
                self.throughput.read(so_far).is_some_and(is_clear)
            }
            (State::Highest(_), Search::Load { objective, .. }) => {
                self.asked.is_some_and(|load| self.has_missed(load, &objective, so_far))
            }
            (State::Highest(_), Search::Saturation { .. }) => false,
        }
    }

    fn forecast(&self) -> Forecast {
        let done = self.probes.len() as u32;
        let most = self.probes_at_most() - done;
        let at_most = if self.next_value().is_some() { most } else { 0 };
        let points = at_most.min(USUAL_PROBES.saturating_sub(done).max(1));
        let window = self.base.time();
        let around = self.base.warm_up + self.base.cool_down;
        let longest = match self.search {
            Search::Saturation { .. } => window,
            Search::Load { .. } => around + Span(self.base.window.0.saturating_mul(LONGEST_PROBE)),
        };
        let official = self.official.filter(|_| self.official_shown.is_none());
        let last = official.map_or(Span(0), |window| around + window);
        let times = |span: Span, n: u32| Span(span.0.saturating_mul(n.into())) + last;
        Forecast {
            points: points + u32::from(official.is_some()),
            points_at_most: at_most + u32::from(official.is_some()),
            time: times(window, points),
            time_at_most: times(longest, at_most),
        }
    }

    fn so_far(&self) -> Conclusion {
        Conclusion { sentences: words::sentences(self), found: Some(Found::Peak(self.found())) }
    }
}

/// The lowest load that a search goes down to, I/Os per second.
const LOWEST_LOAD: f64 = 0.1;

/// The lowest setting that a point can have.
pub fn lowest(base: &Point, vary: Vary) -> u32 {
    match vary {
        Vary::QueueDepth => base.streams.iter().map(worker_count).sum(),
        Vary::Workers => 1,
    }
}

/// The load of all streams together, I/Os per second.
fn offered(point: &Point) -> f64 {
    let load =
        |stream: &Stream| stream.pacing.offered_load(point.window).map_or(0.0, |load| load.0);
    point.streams.iter().map(load).sum()
}

/// The point with this many I/Os in flight, shared among its streams in the same proportion, and at
/// least one for each worker.
fn deep(base: &Point, depth: u32) -> Point {
    let depths = base.streams.iter().map(|stream| stream.pacing.queue_depth());
    let total: u64 = depths.clone().map(u64::from).sum();
    let mut left = depth;
    let mut needed: u32 = base.streams.iter().map(worker_count).sum();
    let mut point = base.clone();
    let last = base.streams.len() - 1;
    for (place, (stream, own)) in point.streams.iter_mut().zip(depths).enumerate() {
        let workers = worker_count(stream);
        needed -= workers;
        let share = u64::from(depth) * u64::from(own) / total.max(1);
        let most = left.saturating_sub(needed).max(workers);
        let own = if place == last { most } else { (share as u32).clamp(workers, most) };
        left = left.saturating_sub(own);
        stream.pacing = stream.pacing.closed_at(own);
    }
    point
}

/// The point with this many workers, each with its present queue depth.
fn crowded(base: &Point, workers: u32) -> Point {
    let mut point = base.clone();
    for stream in &mut point.streams {
        let each = stream.pacing.queue_depth().div_ceil(worker_count(stream));
        stream.workers = match stream.workers {
            Workers::PerTarget(_) => Workers::PerTarget(workers),
            Workers::Total(_) => Workers::Total(workers),
        };
        let queue_depth = each.saturating_mul(worker_count(stream));
        stream.pacing = stream.pacing.closed_at(queue_depth);
    }
    point
}

/// The point with this load, shared among its streams in the same proportion.
fn loaded(base: &Point, load: f64) -> Point {
    let factor = load / offered(base);
    let mut point = base.clone();
    for stream in &mut point.streams {
        if let Loop::Open { load: own, .. } = &mut stream.pacing.pace {
            *own = match own {
                // With one stream the offered load is exactly the requested one.
                OfferedLoad::Steady(_) if base.streams.len() == 1 => {
                    OfferedLoad::Steady(Rate(load))
                }
                _ => own.scaled(factor),
            };
        }
    }
    point
}

/// Rounded to a second if possible, because the run is long.
fn official_interval(window: Span, base: &Point) -> Span {
    let second = Span::from_secs(1);
    match window >= Span::from_secs(60) && window.0.is_multiple_of(second.0) {
        true => second,
        false => base.interval,
    }
}

/// Whether more I/Os were left over than may be in flight.
fn overloaded(record: &Record) -> bool {
    let ledger = record.ledger();
    let left = ledger.unstarted + ledger.in_flight + ledger.lost;
    BY_CHANCE < left && LEFT_OVER * (ledger.due as f64) < left as f64
}

/// The quantile in nanoseconds even with few samples: a search decides from the data that it has.
fn raw_time(record: &Record, quantile: Quantile) -> f64 {
    // No I/O completed at all.
    record.total(None).response_time().quantile(quantile).map_or(f64::MAX, |ns| ns as f64)
}

fn error(estimate: &Estimate) -> f64 {
    estimate.half_width.unwrap_or(0.0) / Z_95
}

/// The mean of several trials, with their own error or that from their differences, whichever is
/// more. Trials that contradict a majority are left out, as in the search.
fn mean(estimates: &[Estimate]) -> Option<Estimate> {
    let logarithms: Vec<f64> = estimates.iter().map(|one| one.value.max(1e-3).ln()).collect();
    let agree = probed::agreeing(&logarithms);
    let all = agree.iter().all(|agrees| !agrees);
    let kept = estimates.iter().zip(agree).filter(|(_, agrees)| all || *agrees);
    let estimates: Vec<Estimate> = kept.map(|(one, _)| *one).collect();
    let count = estimates.len() as f64;
    let value = estimates.iter().map(|one| one.value).sum::<f64>() / count;
    let within: Option<f64> = estimates.iter().map(|one| Some(one.half_width?.powi(2))).sum();
    let within = within.map(|squares| squares.sqrt() / count);
    let squares: f64 = estimates.iter().map(|one| (one.value - value).powi(2)).sum();
    let between = Z_95 * (squares / (count - 1.0) / count).sqrt();
    let half_width = match estimates.len() {
        0 => return None,
        1 | 2 => within,
        _ => within.map(|within| within.max(between)),
    };
    Some(Estimate { value, half_width })
}
