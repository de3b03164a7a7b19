//! A part of a trial, and its summary: the figures that every renderer shows of it.

use fathom_core::measure::{Direction, Flow, Histogram, StartDelay, Stretch, Upkeep};
use fathom_core::stats::Estimate;
use fathom_core::{Bytes, Quantile, Span, stats};

use crate::document::{Cell, Stream, Trial, Worker};

/// A quantile, if enough values lie beyond it.
pub fn carried(times: &Histogram, quantile: Quantile) -> Option<u64> {
    match stats::carries(times, quantile) {
        true => times.quantile(quantile),
        false => None,
    }
}

/// The results of a trial: of one of its streams, or of all together.
#[derive(Clone, Copy, Debug)]
pub struct TrialPart<'a> {
    /// The trial.
    pub trial: &'a Trial,
    /// The stream's place; none for all.
    pub stream: Option<u32>,
}

/// The load of open loops, in I/Os per second.
#[derive(Clone, Copy, Debug)]
pub struct OfferedLoad {
    /// What was to be issued, by all machines together.
    pub offered: f64,
    /// What completed; none if the window has no length.
    pub achieved: Option<f64>,
}

impl<'a> TrialPart<'a> {
    /// All of a trial.
    pub fn whole(trial: &'a Trial) -> Self {
        Self { trial, stream: None }
    }

    /// Each stream of a trial by itself, where there are several.
    pub fn streams(trial: &'a Trial) -> impl Iterator<Item = Self> {
        let count = match trial.point.streams.len() {
            1 => 0,
            several => several as u32,
        };
        (0..count).map(move |stream| Self { trial, stream: Some(stream) })
    }

    /// The stream's name; "all streams" for all.
    pub fn name(&self) -> &'a str {
        match self.stream {
            Some(stream) => &self.trial.point.streams[stream as usize].name,
            None => "all streams",
        }
    }

    /// Whether a stream is in it.
    pub fn has(&self, stream: u32) -> bool {
        self.stream.is_none_or(|own| own == stream)
    }

    /// The point.
    pub fn loads(&self) -> impl Iterator<Item = &'a Stream> {
        let part = *self;
        let streams = (0u32..).zip(&self.trial.point.streams);
        streams.filter(move |(place, _)| part.has(*place)).map(|(_, stream)| stream)
    }

    /// Its workers.
    pub fn workers(&self) -> impl Iterator<Item = &'a Worker> {
        let part = *self;
        self.trial.workers.iter().filter(move |worker| part.has(worker.stream))
    }

    /// Whether there is an open loop in it.
    pub fn is_open(&self) -> bool {
        self.loads().any(|stream| stream.pacing.is_open())
    }

    /// The load that its open loops were to issue, and what of it completed. There is none without an
    /// open loop, and none for a whole trial in which a single open loop runs beside others.
    pub fn offered(&self) -> Option<OfferedLoad> {
        let (trial, window) = (self.trial, self.trial.window());
        let offered =
            |stream: &Stream| stream.pacing.offered_rate(Span(0), window).map(|rate| rate.0);
        let loads: Vec<f64> = self.loads().filter_map(offered).collect();
        // The sum over one open loop among closed ones is that of the open loop.
        let is_one_of_several =
            self.stream.is_none() && trial.point.streams.len() > 1 && loads.len() < 2;
        if loads.is_empty() || is_one_of_several {
            return None;
        }
        // Flushes come with the writes, and are not part of the load.
        let is_open = |worker: &Worker, _: &Cell| self.is_open_loop(worker);
        let done = trial.flow(None, is_open).ios() + trial.upkeep(Upkeep::Trim, is_open).ios();
        Some(OfferedLoad {
            offered: loads.iter().sum::<f64>() * trial.machines() as f64,
            achieved: super::per_second(done, window),
        })
    }

    /// Whether this worker is of an open loop in it.
    pub fn is_open_loop(&self, worker: &Worker) -> bool {
        let stream = &self.trial.point.streams[worker.stream as usize];
        self.has(worker.stream) && stream.pacing.is_open()
    }

    /// The directions of its load: those that were asked for, and those that happened.
    pub fn directions(&self) -> Vec<Direction> {
        let asked = |direction| self.loads().any(|stream| stream.does(direction));
        let happened = |direction| {
            let mut cells = self.workers().flat_map(|worker| &worker.cells);
            cells.any(|cell| cell.flow(direction).ios > 0)
        };
        Direction::BOTH.into_iter().filter(|&d| asked(d) || happened(d)).collect()
    }

    /// The columns of a table of distributions: each direction, and their total if there are two. None
    /// where there are only trims.
    pub fn columns(&self) -> Vec<Option<Direction>> {
        let directions = self.directions();
        let trims = directions.is_empty() && self.loads().any(Stream::trims_alone);
        let total = (directions.len() != 1 && !trims).then_some(None);
        directions.into_iter().map(Some).chain(total).collect()
    }

    /// The sum over it, of one direction or of both.
    pub fn flow(&self, direction: Option<Direction>) -> Flow {
        self.trial.flow(direction, |worker, _| self.has(worker.stream))
    }

    /// The sums of its I/Os that move no data, of each kind that there was.
    pub fn upkeep(&self) -> Vec<(Upkeep, Flow)> {
        let sum = |what| (what, self.trial.upkeep(what, |worker, _| self.has(worker.stream)));
        Upkeep::ALL.into_iter().map(sum).filter(|(_, flow)| flow.ios() > 0).collect()
    }

    /// How late the I/Os of its open loops started.
    pub fn start_delay(&self) -> Option<StartDelay> {
        self.trial.start_delay(|worker| self.has(worker.stream))
    }

    /// Its series with distributions.
    pub fn stretches(&self) -> Vec<Stretch> {
        self.trial.stretches_of(|stream| self.has(stream))
    }

    /// Its figures, of one direction or of both together.
    pub fn summary(&self, direction: Option<Direction>, quantiles: &[Quantile]) -> Summary {
        let own = self.trial.intervals_of(|stream| self.has(stream));
        let slices = stats::slices(own);
        let flow = self.flow(direction);
        let iops = stats::iops_series(&slices, direction);
        let bandwidth = stats::bandwidth_series(&slices, direction);
        let window = self.trial.window();
        Summary {
            iops: stats::rate(flow.ios(), window, &iops),
            bandwidth: stats::rate(flow.bytes.0, window, &bandwidth),
            quantiles: quantile_estimates(&flow, &self.stretches(), direction, quantiles),
        }
    }
}

/// The directions of a trial's load.
pub fn directions(trial: &Trial) -> Vec<Direction> {
    TrialPart::whole(trial).directions()
}

/// The columns of a table of a whole trial's distributions.
pub fn columns(trial: &Trial) -> Vec<Option<Direction>> {
    TrialPart::whole(trial).columns()
}

/// The name of a column or row of a direction.
pub fn direction_name(direction: Option<Direction>) -> &'static str {
    direction.map_or("total", Direction::name)
}

/// A trial's figures with their half-widths.
#[derive(Clone, Debug)]
pub struct Summary {
    /// I/Os per second.
    pub iops: Option<Estimate>,
    /// Bytes per second.
    pub bandwidth: Option<Estimate>,
    /// Response time at the requested quantiles; in a closed loop the service time.
    pub quantiles: Vec<Option<Estimate>>,
}

/// Summarizes one direction of a trial, or both together.
pub fn summary(trial: &Trial, direction: Option<Direction>, quantiles: &[Quantile]) -> Summary {
    TrialPart::whole(trial).summary(direction, quantiles)
}

/// Quantiles of the response time with their half-widths, as far as the samples carry them.
pub fn quantile_estimates(
    flow: &Flow,
    series: &[Stretch],
    direction: Option<Direction>,
    quantiles: &[Quantile],
) -> Vec<Option<Estimate>> {
    let series: Vec<&Stretch> = series.iter().collect();
    stats::quantiles(flow.response_time(), &series, direction, quantiles)
}

/// The standard deviation over the intervals of I/Os per second.
pub fn iops_deviation(trial: &Trial, direction: Option<Direction>) -> Option<f64> {
    let slices = stats::slices(trial.intervals());
    match slices.len() {
        0 | 1 => None,
        _ => stats::standard_deviation(&stats::iops_series(&slices, direction)),
    }
}

/// What a trial with a fixed amount moved: its direction, or none of reads and writes, its bytes, and
/// the time that they took. None for any other trial.
pub fn fixed_amount(trial: &Trial) -> Option<(Option<Direction>, Bytes, Span)> {
    let [stream] = trial.point.streams.as_slice() else { return None };
    stream.pacing.limit?;
    let bytes = trial.total(None).bytes;
    (0 < bytes.0 && !stream.trims_alone()).then(|| (stream.only_direction(), bytes, trial.window()))
}

/// The result of a trial with a fixed amount, in a line; none for any other.
pub fn completed(trial: &Trial) -> Option<String> {
    let (direction, bytes, took) = fixed_amount(trial)?;
    fathom_core::experiment::completed(direction, bytes.0, took)
}

/// The kind of times in the tables of a part.
pub fn time_name(part: TrialPart<'_>) -> &'static str {
    if part.is_open() { "response time" } else { "service time" }
}
