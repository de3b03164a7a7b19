//! The latency map as an experiment: the maxima of both loads, then the cells that the search asks
//! for, as points of a sequential writer and random readers. Decides nothing about which cells.

use super::grid::{Reading, Shape};
use super::search::{Ask, CellSearch, Options, SENTINELS, Surface};
use super::{doubts, words};
use crate::experiment::precondition::Precondition;
use crate::experiment::{
    CellDoubt, Conclusion, Experiment, Forecast, Foreseen, Found, MapFound, Planned, Step,
};
use crate::measure::{Direction, Ledger, Record};
use crate::spec::{Active, Arrivals, BlockSizes, Pacing, Point, Stream, Workers};
use crate::stats::{Estimate, bandwidth, iops, response_time};
use crate::trial::{Coordinate, Place, Role, Trial};
use crate::units::{Bytes, Quantile, Rate, Span};
use crate::verdict::{Verdict, backlog_grows};

/// The axis of the write load.
pub const WRITES: &str = "write-bandwidth";
/// The axis of the read load.
pub const READS: &str = "read-rate";
/// The axis of the probes for the maxima.
pub const DEPTH: &str = "queue-depth";

/// The settings of a latency map.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// The common part of all points: name, interval, seed. Its streams are not used.
    pub base: Point,
    /// The stream that writes: one block size; its pacing is set for each cell.
    pub writer: Stream,
    /// The trims of the written data, if there are any.
    pub trims: Option<Trims>,
    /// The stream that reads: one block size; its pacing is set for each cell, and its queue depth
    /// is kept.
    pub reader: Stream,
    /// The cells.
    pub search: Options,
    /// How often the addressed range is written before everything else.
    pub prefill: u32,
    /// The maximum of the write load in bytes per second; found if none.
    pub write_max: Option<f64>,
    /// The maximum of the read load in I/Os per second; found if none.
    pub read_max: Option<f64>,
    /// Load before each window, which is not recorded.
    pub ramp: Span,
    /// How long a cell is measured if it is precise by then.
    pub window: Span,
    /// How long a cell is measured at most.
    pub window_max: Span,
    /// The time from which on a cell is given up if the target falls behind.
    pub give_up_from: Span,
    /// The share of the offered load by which the target may be behind in a cell that it carries.
    pub behind: f64,
}

/// Trims beside the writes: each covers data that its cell has written a ramp before.
#[derive(Clone, Debug, PartialEq)]
pub struct Trims {
    /// The stream that trims: its pacing and its blocks are set for each cell.
    pub stream: Stream,
    /// The share of the written data that is trimmed, above 0 and at most 1.
    pub share: f64,
}

/// The least reads per second: the rate of a cell without a read load, which shows its response
/// time.
const SINGLE_READS: f64 = 10.0;

/// How long a probe for a maximum is measured: the maxima are only the ends of the axes.
const PROBE: Span = Span::from_secs(3);

/// The queue depths of the probes, until one gains no more than [`GAIN`]. Reads of a large SSD need
/// hundreds in flight; a sequential writer of large blocks few.
const WRITE_DEPTHS: [u32; 4] = [1, 4, 16, 64];
const READ_DEPTHS: [u32; 5] = [4, 16, 64, 256, 1024];

/// A gain of four times the queue depth that is too small to go on.
const GAIN: f64 = 0.05;

/// A response time at a quantile this high is trusted from this many samples on: p99.9 with 200
/// values beyond it.
const FAR: f64 = 0.999;
const FAR_SAMPLES: u64 = 200_000;

/// The last quantile that a cell has to be precise at.
const PRECISE_AT: f64 = 0.99;

/// The looks at a cell, in multiples of its shortest time: with 5 s at 5, 7, 10, 14, 20 and 30 s.
const LOOKS: [f64; 6] = [1.0, 1.4, 2.0, 2.8, 4.0, 6.0];

/// A target that falls behind is given up from this lag on: this long, and this many times the
/// shortest response time. Less may be a hiccup.
const LAG: Span = Span::from_ms(100);
const LAG_TIMES: f64 = 20.0;

/// The latency map.
#[derive(Clone, Debug)]
pub struct Map {
    settings: Settings,
    stage: MapStage,
}

#[derive(Clone, Debug)]
enum MapStage {
    /// Writing the whole range.
    Prefill(Precondition),
    /// Probing for a maximum.
    Climb(Climb),
    /// Measuring cells.
    Cells(Box<Cells>),
    /// There is no map to measure, for this reason.
    Nothing(String),
}

/// Rising queue depths of one load alone.
#[derive(Clone, Debug)]
struct Climb {
    direction: Direction,
    /// The place of the next depth.
    next: usize,
    best: f64,
    /// The write maximum, once it is known.
    write_max: Option<f64>,
    /// The median response time of reads at the smallest depth, in nanoseconds.
    calm: Option<f64>,
}

/// The cells and their loads.
#[derive(Clone, Debug)]
struct Cells {
    write_max: f64,
    read_max: f64,
    search: CellSearch,
    /// The median response time of reads when they were probed with few in flight.
    calm: Option<f64>,
    /// The cell that runs.
    running: Option<Ask>,
}

impl Map {
    /// A map without measurements.
    ///
    /// # Panics
    ///
    /// Without a cell or a quantile, which resolving the options rules out.
    pub fn new(settings: Settings) -> Self {
        let stage = match settings.prefill {
            0 => MapStage::first(&settings),
            _ => MapStage::Prefill(prefill(&settings)),
        };
        Self { settings, stage }
    }

    /// Bytes that are written before everything else.
    pub fn prefilling(&self) -> Bytes {
        Bytes(prefill(&self.settings).bytes())
    }

    /// The longest time of its writes, if all of them ran at the full write load: the probes for
    /// it, and as many cells as it may measure, those with the most writes.
    pub fn full_writing(&self) -> Span {
        let Settings { search, ramp, window_max, write_max, .. } = &self.settings;
        let (_, most) = CellSearch::new(search.clone()).ahead();
        let steps = (search.shape.writes - 1).max(1) as f64;
        let again = [1.0; SENTINELS];
        let mut shares: Vec<f64> =
            search.shape.spots().map(|spot| spot.write as f64 / steps).chain(again).collect();
        shares.sort_by(|one, other| other.total_cmp(one));
        let cells = shares.iter().take(most).sum::<f64>() * (*ramp + *window_max).0 as f64;
        let probes = if write_max.is_none() { WRITE_DEPTHS.len() as u64 } else { 0 };
        Span(cells as u64 + probes * (*ramp + PROBE).0)
    }

    /// Takes in the trial of the step before.
    fn take(&mut self, trial: &Trial) {
        let Self { settings, stage } = self;
        match stage {
            MapStage::Prefill(left) => left.take(&trial.record),
            MapStage::Climb(climb) => {
                let found = climb.measured(&trial.record);
                let gain = found / climb.best - 1.0;
                climb.best = climb.best.max(found);
                let median = || response_time(&trial.record, None, None, Quantile(0.5));
                climb.calm = climb.calm.or_else(|| median().map(|time| time.value));
                let last = climb.next == climb.depths(settings).count();
                if gain > GAIN && !last {
                    return;
                }
                let (direction, best, write_max) = (climb.direction, climb.best, climb.write_max);
                let calm = climb.calm;
                *stage = match (direction, settings.read_max, write_max) {
                    _ if best <= 0.0 => MapStage::Nothing(format!(
                        "No {} completed: there is no map.",
                        direction.name()
                    )),
                    (Direction::Write, Some(read_max), _) => {
                        MapStage::cells(settings, (best, read_max), None)
                    }
                    (Direction::Write, None, _) => {
                        MapStage::Climb(Climb::new(Direction::Read, Some(best)))
                    }
                    (Direction::Read, _, write_max) => {
                        MapStage::cells(settings, (write_max.unwrap_or_default(), best), calm)
                    }
                };
            }
            MapStage::Cells(cells) => {
                if let Some(ask) = cells.running.take() {
                    let reading = reading(settings, cells.shortest(), &trial.record);
                    cells.search.tell(ask, Reading { doubt: doubt(trial), ..reading });
                }
            }
            MapStage::Nothing(_) => {}
        }
    }

    fn conclude(&self) -> Conclusion {
        match &self.stage {
            MapStage::Prefill(_) | MapStage::Climb(_) => Conclusion::default(),
            MapStage::Nothing(why) => {
                Conclusion { sentences: Vec::from([why.clone()]), found: None }
            }
            MapStage::Cells(cells) => {
                let found = cells.found(&self.settings);
                let sentences = words::sentences(&found, &|place| cells.search.scatter(place));
                Conclusion { sentences, found: Some(Found::Map(found)) }
            }
        }
    }
}

/// The whole range that the cells address, written this often.
fn prefill(settings: &Settings) -> Precondition {
    let streams = Vec::from([settings.writer.clone(), settings.reader.clone()]);
    Precondition::new(&Point { streams, ..settings.base.clone() }, settings.prefill)
}

impl MapStage {
    /// The step after everything that has to be written is written.
    fn first(settings: &Settings) -> Self {
        let climb = |direction, write_max| Self::Climb(Climb::new(direction, write_max));
        match (settings.write_max, settings.read_max) {
            (Some(write_max), Some(read_max)) => Self::cells(settings, (write_max, read_max), None),
            (None, _) => climb(Direction::Write, None),
            (write_max, None) => climb(Direction::Read, write_max),
        }
    }

    fn cells(settings: &Settings, (write_max, read_max): (f64, f64), calm: Option<f64>) -> Self {
        let search = CellSearch::new(settings.search.clone());
        Self::Cells(Box::new(Cells { write_max, read_max, search, calm, running: None }))
    }
}

impl Experiment for Map {
    fn next(&mut self, last: Option<&Trial>) -> Step {
        if let Some(trial) = last {
            self.take(trial);
        }
        if let MapStage::Prefill(left) = &self.stage {
            if let Some(point) = left.next() {
                let place = Place { role: Role::Preparation, ..Place::default() };
                return Step::Run(Box::new(Planned { point, place, rest: Span(0) }));
            }
            self.stage = MapStage::first(&self.settings);
        }
        let planned = match &mut self.stage {
            MapStage::Prefill(_) => None,
            MapStage::Climb(climb) => Some(climb.planned(&self.settings)),
            MapStage::Cells(cells) => {
                cells.running = cells.search.ask();
                cells.running.map(|ask| cells.planned(ask, &self.settings))
            }
            MapStage::Nothing(_) => None,
        };
        match planned {
            Some(planned) => Step::Run(Box::new(planned)),
            None => Step::Done(self.conclude()),
        }
    }

    fn enough(&self, so_far: &Record) -> bool {
        match &self.stage {
            MapStage::Cells(cells) => {
                cells.running.is_some() && enough(&self.settings, cells.shortest(), so_far)
            }
            MapStage::Prefill(_) | MapStage::Climb(_) | MapStage::Nothing(_) => false,
        }
    }

    fn foreseen(&self, most: usize) -> Vec<Foreseen> {
        let MapStage::Cells(cells) = &self.stage else { return Vec::new() };
        let foreseen = |ask| {
            let (settings, shortest) = (self.settings.clone(), cells.shortest());
            let planned = cells.planned(ask, &self.settings);
            let enough = move |so_far: &Record| enough(&settings, shortest, so_far);
            Foreseen { planned, enough: Box::new(enough) }
        };
        cells.search.foreseen(most).into_iter().map(foreseen).collect()
    }

    fn meant_to_overload(&self, trial: &Trial) -> Option<&'static str> {
        let Self { settings, stage } = self;
        match stage {
            MapStage::Climb(_) => Some(
                "A probe for the end of an axis goes as deep as it gains: no cell rests on it.",
            ),
            MapStage::Cells(cells) => {
                let reading = reading(settings, cells.shortest(), &trial.record);
                match (reading.admissible, reading.precise) {
                    (false, _) => Some(
                        "The map marks this cell as one that the target does not carry, and shows \
                         no response time there.",
                    ),
                    (true, false) => Some(
                        "The map marks this cell as not precise: near the limit of the target \
                         response times change with the time for which they are measured.",
                    ),
                    (true, true) => None,
                }
            }
            MapStage::Prefill(_) | MapStage::Nothing(_) => None,
        }
    }

    fn forecast(&self) -> Forecast {
        let settings = &self.settings;
        let (cells, cells_at_most) = match &self.stage {
            MapStage::Cells(cells) => cells.search.ahead(),
            MapStage::Prefill(_) | MapStage::Climb(_) => {
                CellSearch::new(settings.search.clone()).ahead()
            }
            MapStage::Nothing(_) => (0, 0),
        };
        let probes = match &self.stage {
            MapStage::Prefill(_) => match MapStage::first(settings) {
                MapStage::Climb(climb) => climb.ahead(settings),
                _ => 0,
            },
            MapStage::Climb(climb) => climb.ahead(settings),
            MapStage::Cells(_) | MapStage::Nothing(_) => 0,
        };
        let (stretches, [before, before_at_most]) = match &self.stage {
            MapStage::Prefill(left) => (left.stretches(), <[Span; 2]>::from(left.time())),
            _ => (0, [Span(0); 2]),
        };
        let time = |cells: usize, window: Span| {
            Span(
                (settings.ramp + window).0 * cells as u64
                    + (settings.ramp + PROBE).0 * probes as u64,
            )
        };
        Forecast {
            points: (cells + probes) as u32 + stretches,
            points_at_most: (cells_at_most + probes) as u32 + stretches.saturating_mul(6),
            time: time(cells, settings.window) + before,
            time_at_most: time(cells_at_most, settings.window_max) + before_at_most,
        }
    }

    fn so_far(&self) -> Conclusion {
        self.conclude()
    }
}

impl Climb {
    fn new(direction: Direction, write_max: Option<f64>) -> Self {
        Self { direction, next: 0, best: 0.0, write_max, calm: None }
    }

    fn stream<'s>(&self, settings: &'s Settings) -> &'s Stream {
        match self.direction {
            Direction::Write => &settings.writer,
            Direction::Read => &settings.reader,
        }
    }

    /// The queue depths for which there is memory.
    fn depths(&self, settings: &Settings) -> impl Iterator<Item = u32> {
        let most = self.stream(settings).pacing.queue_depth();
        let depths = match self.direction {
            Direction::Write => &WRITE_DEPTHS[..],
            Direction::Read => &READ_DEPTHS[..],
        };
        let depths: Vec<u32> =
            depths.iter().copied().filter(|&depth| depth <= most || depth == depths[0]).collect();
        depths.into_iter()
    }

    /// Probes still to come, reads after writes.
    fn ahead(&self, settings: &Settings) -> usize {
        let here = self.depths(settings).count().saturating_sub(self.next);
        match (self.direction, settings.read_max) {
            (Direction::Write, None) => here + READ_DEPTHS.len(),
            _ => here,
        }
    }

    fn planned(&mut self, settings: &Settings) -> Planned {
        let queue_depth = self.depths(settings).nth(self.next).unwrap_or(1);
        self.next += 1;
        let stream = self.stream(settings);
        // No worker without a slot.
        let workers = match stream.workers {
            Workers::Total(most) => Workers::Total(most.min(queue_depth)),
            per_target => per_target,
        };
        let stream =
            Stream { pacing: stream.pacing.closed_at(queue_depth), workers, ..stream.clone() };
        let name = format!("{}s alone, queue depth {queue_depth}", self.direction.name());
        let streams = Vec::from([stream]);
        let coordinate = Coordinate {
            axis: DEPTH.to_owned(),
            label: queue_depth.to_string(),
            value: Some(f64::from(queue_depth)),
        };
        Planned {
            point: Point {
                name,
                streams,
                warm_up: settings.ramp,
                window: PROBE,
                ..settings.base.clone()
            },
            place: Place { role: Role::Probe, coordinates: Vec::from([coordinate]), repeat: 0 },
            rest: Span(0),
        }
    }

    /// Bytes per second of writes, or I/Os per second of reads.
    fn measured(&self, record: &Record) -> f64 {
        let found = match self.direction {
            Direction::Write => bandwidth(record, None, Some(Direction::Write)),
            Direction::Read => iops(record, None, Some(Direction::Read)),
        };
        found.map_or(0.0, |one| one.value)
    }
}

impl Cells {
    /// Bytes written per second in a column.
    fn bandwidth(&self, shape: Shape, write: usize) -> f64 {
        self.write_max * write as f64 / (shape.writes - 1).max(1) as f64
    }

    /// Reads per second in a row.
    fn rate(&self, shape: Shape, read: usize) -> f64 {
        self.read_max * read as f64 / (shape.reads - 1).max(1) as f64
    }

    /// Each cell has other offsets and arrivals than the others, but the same ones when a resume
    /// runs it again. A sentinel has its own: a cache may still hold the data that was read the
    /// first time.
    fn seed(&self, settings: &Settings, Ask { spot, role }: Ask) -> u64 {
        let Shape { writes, reads, .. } = settings.search.shape;
        let again = if role == Role::Sentinel { writes * reads } else { 0 };
        settings.base.seed.wrapping_add((spot.write * reads + spot.read + again) as u64)
    }

    fn planned(&self, Ask { spot, role }: Ask, settings: &Settings) -> Planned {
        let shape = settings.search.shape;
        let (bandwidth, rate) = (self.bandwidth(shape, spot.write), self.rate(shape, spot.read));
        let open = |stream: &Stream, offered_load: f64, arrivals: Arrivals| Stream {
            pacing: Pacing::open(Rate(offered_load), arrivals, stream.pacing.queue_depth()),
            ..stream.clone()
        };
        let mut streams = Vec::new();
        if spot.write > 0 {
            let block = settings.writer.block_sizes().largest().0 as f64;
            streams.push(open(&settings.writer, bandwidth / block, Arrivals::Uniform));
            streams.extend(trimmer(settings, bandwidth));
        }
        // A single worker is enough for single reads; one of many workers would read only once a
        // second.
        let mut reader = open(&settings.reader, rate.max(SINGLE_READS), Arrivals::Poisson);
        if spot.read == 0 {
            reader.workers = Workers::Total(1);
        }
        streams.push(reader);
        let (writes, reads) = (words::bandwidth(bandwidth), words::rate(rate));
        let coordinate = |axis: &str, label: &str, value: f64| Coordinate {
            axis: axis.to_owned(),
            label: label.to_owned(),
            value: Some(value),
        };
        let coordinates =
            Vec::from([coordinate(WRITES, &writes, bandwidth), coordinate(READS, &reads, rate)]);
        Planned {
            point: Point {
                name: format!("{reads} reads/s beside {writes} of writes"),
                streams,
                warm_up: settings.ramp,
                window: settings.window_max,
                looks: looks(settings),
                seed: self.seed(settings, Ask { spot, role }),
                ..settings.base.clone()
            },
            place: Place { role, coordinates, repeat: u32::from(role == Role::Sentinel) },
            rest: Span(0),
        }
    }

    /// The shortest median response time of reads so far, the probes included.
    fn shortest(&self) -> Option<f64> {
        let both = self.calm.into_iter().chain(self.search.shortest());
        both.min_by(f64::total_cmp)
    }

    fn found(&self, settings: &Settings) -> MapFound {
        let Options { shape, surfaces, .. } = &settings.search;
        let cells = self.search.cells();
        MapFound {
            quantiles: surfaces.iter().map(|one| one.quantile).collect(),
            write_bandwidths: (0..shape.writes).map(|step| self.bandwidth(*shape, step)).collect(),
            read_rates: (0..shape.reads).map(|step| self.rate(*shape, step)).collect(),
            validation: self.search.validation(),
            drift: self.search.drift().map(|(change, _)| change.exp_m1()),
            doubts: doubts(&self.search, surfaces, &cells),
            cells,
        }
    }
}

/// The longest trim: a larger one would not be spread over the cell.
const LONGEST_TRIM: u64 = 256 * Bytes::MIB;

/// The trims beside writes of this many bytes per second. They begin with the window, at the place
/// where the writes began with the ramp, so they follow the writes at the distance of one ramp.
/// Their blocks are half of that distance, so that no trim covers data that is not yet written.
fn trimmer(settings: &Settings, bandwidth: f64) -> Option<Stream> {
    let Trims { stream, share } = settings.trims.as_ref()?;
    let unit = settings.writer.block_sizes().largest().0;
    let ahead = bandwidth * settings.ramp.as_secs_f64();
    let region = stream.regions.iter().map(|region| region.length.0).min().unwrap_or(unit);
    let most = LONGEST_TRIM.min(region).max(unit);
    let block = ((ahead / 2.0) as u64).clamp(unit, most) / unit * unit;
    let rate = Rate(share * bandwidth / block as f64);
    let mut trims = stream.clone();
    trims.kind_mut().block_sizes = BlockSizes::one(Bytes(block));
    Some(Stream {
        pacing: Pacing {
            active: Active { start: Some(Span(0)), ..Active::ALWAYS },
            ..Pacing::open(rate, Arrivals::Uniform, stream.pacing.queue_depth())
        },
        ..trims
    })
}

/// Whether a cell is known well enough, or known to be too much for the target.
fn enough(settings: &Settings, shortest: Option<f64>, so_far: &Record) -> bool {
    let is_known = || is_carried(settings, so_far) && is_precise(&settings.search.surfaces, so_far);
    (settings.give_up_from <= so_far.window && falls_behind(settings, shortest, so_far))
        || (settings.window <= so_far.window && is_known())
}

/// The looks at a cell: one early, for a target that is far from carrying it, and then one each
/// time that half-widths have become much smaller.
fn looks(settings: &Settings) -> Vec<Span> {
    let interval = settings.base.interval.0;
    let times = LOOKS.map(|times| (settings.window.0 as f64 * times).round() as u64);
    let mut looks: Vec<Span> = std::iter::once(settings.give_up_from.0)
        .chain(times)
        .map(|time| Span(time.div_ceil(interval) * interval))
        .filter(|look| Span(0) < *look && *look < settings.window_max)
        .collect();
    looks.sort_unstable();
    looks.dedup();
    looks
}

/// The result of a trial of a cell.
fn reading(settings: &Settings, shortest: Option<f64>, record: &Record) -> Reading {
    // Before its shortest time a cell ends only if it is too much for the target.
    let given_up = record.ended_early && record.window < settings.window;
    let carried = !given_up
        && 0 < streams(record)
        && is_carried(settings, record)
        && !falls_behind(settings, shortest, record);
    if !carried {
        return Reading::default();
    }
    let surfaces = &settings.search.surfaces;
    let response_times = surfaces.iter().map(|one| known(record, one.quantile)).collect();
    let precise = is_precise(surfaces, record) && !has_backlog(settings, shortest, record);
    Reading { admissible: true, precise, response_times, doubt: None }
}

/// The doubt about a trial of a cell, as its verdict has it.
fn doubt(trial: &Trial) -> Option<CellDoubt> {
    let verdict = if trial.is_void { Verdict::Void } else { Verdict::Suspect };
    trial.doubt.map(|code| CellDoubt { verdict, code: code.to_owned() })
}

/// Whether the backlog of a stream grows: then the response times grow with the time for which they
/// are measured, however narrow their intervals are. It grows by the rule of the verdict, or by a lag
/// that is more than a hiccup: a stream that begins to fall behind late in the window has few
/// unstarted I/Os at its end.
fn has_backlog(settings: &Settings, shortest: Option<f64>, record: &Record) -> bool {
    let own = || known(record, settings.search.surfaces[0].quantile).map(|time| time.value);
    let lags = shortest.or_else(own).is_some_and(|time| grows_beyond(LAG_TIMES * time, record));
    let window = record.window.as_secs_f64() / (settings.ramp + record.window).as_secs_f64();
    lags || (0..streams(record)).any(|stream| {
        let ledger = ledger(record, stream);
        backlog_grows(ledger.unstarted, ledger.due as f64 * window)
    })
}

/// Whether nearly all I/Os that were due are done, in each stream.
fn is_carried(settings: &Settings, record: &Record) -> bool {
    (0..streams(record)).all(|stream| {
        let ledger = ledger(record, stream);
        // I/Os in flight count too: a deep queue absorbs a long backlog before any I/O stays
        // unstarted. A single I/O that has just begun is not a backlog.
        let waiting = (ledger.unstarted + ledger.in_flight).saturating_sub(1);
        let behind = waiting + ledger.lost + ledger.failed;
        behind as f64 <= settings.behind * ledger.due as f64
    })
}

/// Whether a stream is far behind its schedule and falls further behind.
fn falls_behind(settings: &Settings, shortest: Option<f64>, record: &Record) -> bool {
    let gone = (settings.ramp + record.window).0 as f64;
    let far = [LAG.0 as f64, LAG_TIMES * shortest.unwrap_or(0.0), settings.behind * gone];
    grows_beyond(far.into_iter().fold(0.0, f64::max), record)
}

/// Whether the lag of a stream is at least this long, in nanoseconds, and longer than in the middle of
/// the window.
fn grows_beyond(far: f64, record: &Record) -> bool {
    (0..streams(record)).any(|stream| {
        let backlog = record.backlog(stream);
        backlog.is_some_and(|one| far <= one.lag.0 as f64 && 0.0 < one.growth)
    })
}

/// How many streams a record has; the readers are the last one.
fn streams(record: &Record) -> u32 {
    record.workers.iter().map(|worker| worker.stream + 1).max().unwrap_or(0)
}

fn ledger(record: &Record, stream: u32) -> Ledger {
    let of = record.workers.iter().filter(|worker| worker.stream == stream);
    of.fold(Ledger::default(), |sum, worker| sum.plus(&worker.ledger))
}

/// The number of reads that a cell's response times come from.
fn samples(record: &Record) -> u64 {
    let Some(readers) = streams(record).checked_sub(1) else { return 0 };
    record.sum(Some(Direction::Read), |worker, _| worker.stream == readers).ios()
}

fn known(record: &Record, quantile: Quantile) -> Option<Estimate> {
    let readers = streams(record).checked_sub(1)?;
    if FAR <= quantile.0 && samples(record) < FAR_SAMPLES {
        return None;
    }
    response_time(record, Some(readers), Some(Direction::Read), quantile)
}

/// Whether every quantile up to p99 is known within its tolerance. A quantile with too few samples
/// is withheld and not imprecise, except the first one, without which a cell is useless.
fn is_precise(surfaces: &[Surface], record: &Record) -> bool {
    surfaces.iter().enumerate().filter(|(_, one)| one.quantile.0 <= PRECISE_AT).all(
        |(place, surface)| match known(record, surface.quantile) {
            Some(time) => {
                time.half_width.is_some_and(|half| half <= surface.tolerance * time.value)
            }
            None => place > 0,
        },
    )
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::experiment::CellKind;
    use crate::measure::{Histogram, SparseHistogram, Stretch};
    use crate::spec::{Loop, Region};
    use crate::verdict::testing::Invented;

    fn settings() -> Settings {
        let reads = Invented::open_reads(1000.0).trial;
        let closed = Pacing::closed(64);
        let stream = Stream { pacing: closed, ..reads.point.streams[0].clone() };
        let mut writer = Stream { name: "writer".to_owned(), ..stream.clone() };
        writer.kind_mut().read_share = 0.0;
        let surface = |quantile, tolerance| Surface { quantile: Quantile(quantile), tolerance };
        let shape = Shape { writes: 5, reads: 5, first_read: 0 };
        Settings {
            base: reads.point.clone(),
            writer,
            reader: Stream { workers: Workers::Total(2), ..stream },
            search: Options {
                shape,
                surfaces: Vec::from([surface(0.5, 0.05), surface(0.95, 0.1), surface(0.999, 0.2)]),
                exhaustive: false,
                cells_at_most: super::super::cells_at_most(shape),
                seed: 7,
            },
            prefill: 0,
            trims: None,
            write_max: None,
            read_max: None,
            ramp: Span::from_secs(1),
            window: Span::from_secs(5),
            window_max: Span::from_secs(30),
            give_up_from: Span::from_secs(3),
            behind: 0.03,
        }
    }

    /// The trial of a planned point. It has 1000 I/Os per second at any load. If `carried` is
    /// false, the load is too high and the trial falls behind its schedule.
    fn measured(planned: Planned, carried: bool) -> Trial {
        let writes = planned.point.streams.iter().all(|stream| stream.read_share() == 0.0);
        let invented = if writes { Invented::writes() } else { Invented::open_reads(1000.0) };
        let mut trial = invented.trial;
        if !carried {
            let ledger = &mut trial.record.workers[0].ledger;
            ledger.unstarted = ledger.due / 2;
        }
        Trial { point: planned.point, place: planned.place, ..trial }
    }

    fn run(mut map: Map, carried: impl Fn(f64, f64) -> bool) -> (Vec<Planned>, Conclusion) {
        let (mut planned, mut last): (Vec<Planned>, Option<Trial>) = (Vec::new(), None);
        // The forecast points, by their index. Each of them comes, whatever the trials show.
        let mut foreseen: BTreeMap<usize, Planned> = BTreeMap::new();
        loop {
            let ahead = map.forecast();
            match map.next(last.as_ref()) {
                Step::Done(conclusion) => return (planned, conclusion),
                Step::Run(next) => {
                    assert!(0 < ahead.points && ahead.points <= ahead.points_at_most);
                    let value =
                        |at: usize| next.place.coordinates.get(at).and_then(|one| one.value);
                    let fits = carried(value(0).unwrap_or(0.0), value(1).unwrap_or(0.0));
                    assert!(foreseen.get(&planned.len()).is_none_or(|one| *one == *next));
                    let later = map.foreseen(3).into_iter().map(|one| one.planned);
                    foreseen.extend((planned.len() + 1..).zip(later));
                    planned.push((*next).clone());
                    last = Some(measured(*next, fits));
                }
            }
        }
    }

    #[test]
    fn maxima_are_probed_and_the_cells_lie_between_them() {
        let (planned, conclusion) =
            run(Map::new(settings()), |writes, reads| writes / 4_096_000.0 + reads / 1000.0 <= 1.0);
        let probes: Vec<&str> = planned
            .iter()
            .take_while(|one| one.place.role == Role::Probe)
            .map(|one| one.point.name.as_str())
            .collect();
        // Depth gains nothing, so two of each are enough.
        assert_eq!(
            probes,
            [
                "writes alone, queue depth 1",
                "writes alone, queue depth 4",
                "reads alone, queue depth 4",
                "reads alone, queue depth 16",
            ]
        );
        let Some(Found::Map(found)) = conclusion.found else { panic!("no map") };
        assert_eq!(
            found.write_bandwidths,
            [0.0, 1_024_000.0, 2_048_000.0, 3_072_000.0, 4_096_000.0]
        );
        assert_eq!(found.read_rates, [0.0, 250.0, 500.0, 750.0, 1000.0]);
        for cell in &found.cells {
            let carried = !matches!(cell.kind, CellKind::Overloaded | CellKind::Beyond);
            assert_eq!(carried, cell.write + cell.read <= 4, "{cell:?}");
            // 60,000 samples are too few for p99.9 as a map requires it.
            assert_eq!(cell.response_time_ns[2], None);
        }
    }

    #[test]
    fn everything_is_written_before_the_map_as_often_as_was_asked_for() {
        let mut settings = Settings { prefill: 2, ..settings() };
        let region = Region { length: Bytes(512 << 20), ..settings.writer.regions[0] };
        settings.writer.regions = Vec::from([region]);
        settings.reader.regions = Vec::from([region]);
        let map = Map::new(settings.clone());
        assert_eq!(map.prefilling(), Bytes(1 << 30), "what both address counts once");
        let plain = Map::new(Settings { prefill: 0, ..settings }).forecast();
        let ahead = map.forecast();
        assert!(plain.points < ahead.points && plain.time < ahead.time);
        let (planned, conclusion) = run(map, |_, _| true);
        let is_before = |one: &&Planned| one.place.role == Role::Preparation;
        let before: Vec<&Planned> = planned.iter().take_while(is_before).collect();
        assert!(!before.is_empty() && planned.iter().filter(is_before).count() == before.len());
        for one in before {
            assert!(one.point.streams.iter().all(|stream| stream.read_share() == 0.0));
        }
        assert_eq!(planned.iter().find(|one| !is_before(one)).unwrap().place.role, Role::Probe);
        assert!(matches!(conclusion.found, Some(Found::Map(_))));
    }

    #[test]
    fn trims_follow_the_writes_of_their_cell_by_a_ramp() {
        let mut settings = settings();
        let stream =
            Stream { trim_share: 1.0, name: "trims".to_owned(), ..settings.writer.clone() };
        settings.trims = Some(Trims { stream, share: 0.5 });
        let (planned, _) = run(Map::new(settings), |_, _| true);
        let is_cell = |one: &&Planned| matches!(one.place.role, Role::Result | Role::Validation);
        let mut trimmed = 0;
        for one in planned.iter().filter(is_cell) {
            let bandwidth = one.place.coordinates[0].value.unwrap();
            let trims = one.point.streams.iter().filter(|stream| stream.trims_alone());
            let trims: Vec<&Stream> = trims.collect();
            assert_eq!(trims.len(), usize::from(bandwidth > 0.0), "{}", one.point.name);
            for stream in trims {
                trimmed += 1;
                assert_eq!(stream.pacing.active.start, Some(Span(0)), "it begins with the window");
                let block = stream.block_sizes().largest().0 as f64;
                let rate = stream.pacing.offered(Span(0), one.point.window).unwrap();
                let share = rate * block / (bandwidth * one.point.window.as_secs_f64());
                assert!((share - 0.5).abs() < 1e-9, "{share}");
                // The block is at most half of the writer's lead.
                assert!(block <= bandwidth * one.point.warm_up.as_secs_f64() / 2.0, "{block}");
            }
            assert!(one.point.streams.last().unwrap().does(Direction::Read));
        }
        assert!(trimmed > 4);
        assert!(planned.iter().filter(|one| !is_cell(one)).all(|one| {
            one.place.role != Role::Probe || one.point.streams.iter().all(|stream| !stream.trims())
        }));
    }

    #[test]
    fn a_cell_is_a_writer_at_its_bandwidth_and_readers_at_their_rate() {
        let settings =
            Settings { write_max: Some(8_192_000.0), read_max: Some(400.0), ..settings() };
        let (planned, _) = run(Map::new(settings), |_, _| true);
        let loads = |planned: &Planned| -> Vec<(f64, Arrivals)> {
            let each = planned.point.streams.iter().map(|stream| match &stream.pacing.pace {
                Loop::Open { load, arrivals, .. } => (load.mean(Span(0)).0, *arrivals),
                Loop::Closed { .. } => panic!("a closed loop"),
            });
            each.collect()
        };
        let full =
            planned.iter().find(|one| one.point.name == "400 reads/s beside 8.19MB/s of writes");
        let expected = [(2000.0, Arrivals::Uniform), (400.0, Arrivals::Poisson)];
        assert_eq!(loads(full.unwrap()), expected);
        let idle = planned.iter().find(|one| one.point.name == "0 reads/s beside 0B/s of writes");
        let idle = idle.unwrap();
        assert_eq!(loads(idle), [(SINGLE_READS, Arrivals::Poisson)]);
        assert_eq!(idle.point.streams[0].workers, Workers::Total(1));
        assert_eq!(
            (idle.point.warm_up, idle.point.window),
            (Span::from_secs(1), Span::from_secs(30))
        );
        assert_eq!(idle.point.looks, [3, 5, 7, 10, 14, 20].map(Span::from_secs));
        let seeds: std::collections::BTreeSet<u64> = planned
            .iter()
            .filter(|p| p.place.role != Role::Sentinel)
            .map(|p| p.point.seed)
            .collect();
        let cells = planned.iter().filter(|p| p.place.role != Role::Sentinel).count();
        assert_eq!(seeds.len(), cells);
    }

    #[test]
    fn only_probes_and_cells_that_are_marked_were_meant_to_be_too_much() {
        let mut map = Map::new(settings());
        let Step::Run(planned) = map.next(None) else { panic!("nothing to run") };
        assert!(map.meant_to_overload(&measured(*planned, true)).is_some(), "a probe");
        let known = Settings { write_max: Some(8_192_000.0), read_max: Some(400.0), ..settings() };
        let mut map = Map::new(known);
        let Step::Run(planned) = map.next(None) else { panic!("nothing to run") };
        let cell = |carried| {
            let record = Record { workers: Vec::new(), ..so_far(&map, &planned, 5, Span(0)) };
            let trial = measured((*planned).clone(), carried);
            // Its response times are those of a device with a constant service time.
            let record = Record { workers: trial.record.workers.clone(), ..record };
            map.meant_to_overload(&Trial { record, ..trial })
        };
        assert_eq!(cell(true), None);
        assert!(cell(false).unwrap().contains("does not carry"));
        // A backlog of 2 % is carried, and grows.
        let mut behind = measured((*planned).clone(), true);
        let record = so_far(&map, &planned, 5, Span(0));
        let ledger = &mut behind.record.workers[0].ledger;
        ledger.unstarted = ledger.due / 50;
        behind.record = Record { workers: behind.record.workers.clone(), ..record };
        assert!(map.meant_to_overload(&behind).unwrap().contains("not precise"));
        // A lag of 12 ms is long where reads take 0.1 ms, and a hiccup where they take 0.9 ms.
        let lags = |shortest: f64| {
            let record = so_far(&map, &planned, 5, Span::from_ms(12));
            reading(&map.settings, Some(shortest), &record).precise
        };
        assert_eq!([1e5, 9e5].map(lags), [false, true]);
        let mut erratic = measured((*planned).clone(), true);
        erratic.record.stretches.clear();
        assert!(map.meant_to_overload(&erratic).unwrap().contains("not precise"));
    }

    #[test]
    fn a_target_that_does_nothing_has_no_map() {
        let mut map = Map::new(settings());
        let Step::Run(planned) = map.next(None) else { panic!("nothing to run") };
        let mut trial = measured(*planned, true);
        trial.record.workers.clear();
        let Step::Done(conclusion) = map.next(Some(&trial)) else { panic!("goes on") };
        assert_eq!(conclusion.sentences, ["No write completed: there is no map."]);
    }

    #[test]
    fn it_writes_no_more_than_its_cells_with_the_most_writes() {
        let written = |exhaustive: bool, cells_at_most: usize, write_max: Option<f64>| {
            let search = Options { exhaustive, cells_at_most, ..settings().search };
            Map::new(Settings { search, write_max, ..settings() }).full_writing()
        };
        // Five columns of five cells, with 0 to 4 quarters of the load, and three once more.
        let cell = 31_000;
        let all = Span::from_ms(cell * 5 * (1 + 2 + 3 + 4) / 4 + cell * 3);
        let known = Some(1e6);
        assert_eq!(written(true, 1, known), all);
        assert_eq!(written(true, 1, None).0 - written(true, 1, known).0, 4 * 4_000_000_000);
        // The three cells and the five of the last column, then one with three quarters of the
        // load.
        assert_eq!(written(false, 9, known), Span::from_ms(cell * 8 + cell * 3 / 4));
        assert_eq!(written(false, 1000, known), all);
    }

    /// The trial of a running cell, after the given time. Its lag is `lag` at the end and half of
    /// that in the middle.
    fn so_far(map: &Map, planned: &Planned, seconds: u64, lag: Span) -> Record {
        assert!(matches!(&map.stage, MapStage::Cells(cells) if cells.running.is_some()));
        let mut record = measured(planned.clone(), true).record;
        record.window = Span::from_secs(seconds);
        record.series.retain(|one| one.start < record.window);
        for one in &mut record.series {
            let share = (one.start + one.length).0 as f64 / record.window.0 as f64;
            one.lag = Some(Span((lag.0 as f64 * share) as u64));
        }
        record.workers.iter_mut().for_each(|worker| worker.lag = Some(lag));
        let mut times = Histogram::default();
        times.record_many(900_000, 100);
        let stretch = |nth: u64| Stretch {
            start: Span::from_ms(100 * nth),
            length: Span::from_ms(100),
            response_time: [times.to_sparse(), SparseHistogram::default()],
            ..Stretch::default()
        };
        record.stretches = (0..10 * seconds).map(stretch).collect();
        record
    }

    #[test]
    fn a_cell_ends_when_it_is_precise_or_hopeless() {
        let settings =
            Settings { write_max: Some(8_192_000.0), read_max: Some(400.0), ..settings() };
        let mut map = Map::new(settings.clone());
        let Step::Run(planned) = map.next(None) else { panic!("nothing to run") };
        let at = |seconds: u64, lag: Span| map.enough(&so_far(&map, &planned, seconds, lag));
        // The precision suffices, but the rule does not apply before its time.
        assert_eq!([3, 5].map(|seconds| at(seconds, Span(0))), [false, true]);
        // The lag is too short to be more than a hiccup; it is long enough; it is too small a share
        // of the time that has passed.
        for (seconds, lag, hopeless) in [(3, 99, false), (3, 121, true), (4, 149, false)] {
            assert_eq!(at(seconds, Span::from_ms(lag)), hopeless, "{lag} ms after {seconds} s");
        }
        // A cell that was given up was not carried, even if no ledger has its backlog.
        let mut record = so_far(&map, &planned, 3, Span::from_ms(500));
        record.ended_early = true;
        assert!(!reading(&settings, None, &record).admissible);
        assert!(reading(&settings, None, &so_far(&map, &planned, 5, Span(0))).admissible);
        // A lag that shrinks is being caught up.
        let mut record = so_far(&map, &planned, 3, Span::from_ms(500));
        record.series.iter_mut().for_each(|one| one.lag = Some(Span::from_ms(900)));
        assert!(!map.enough(&record));
        // 150 ms are little compared with response times of 10 ms.
        let record = so_far(&map, &planned, 3, Span::from_ms(150));
        assert!(falls_behind(&settings, Some(1e6), &record));
        assert!(!falls_behind(&settings, Some(1e7), &record));
    }
}
