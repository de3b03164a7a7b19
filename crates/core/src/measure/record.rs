//! The record of a run of a point: the full distributions of each worker and target, the series of
//! each stream, and ledgers in which every I/O is accounted for.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Histogram, Interval, Stretch};
use crate::units::{Bytes, Instant, Span};

/// Whether an I/O reads or writes.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "IoDirection")]
pub enum Direction {
    /// Target to memory.
    Read,
    /// Memory to target.
    Write,
}

impl Direction {
    /// Both, in the order in which they are stored.
    pub const BOTH: [Self; 2] = [Self::Read, Self::Write];

    /// The name in messages and in the document.
    pub fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
        }
    }
}

/// An I/O that moves no data. It has separate distributions, and is in no sum of reads and writes.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Upkeep {
    /// Makes earlier writes durable.
    Flush,
    /// Tells the target that a range is no longer needed.
    Trim,
}

impl Upkeep {
    /// All, in the order in which they are stored.
    pub const ALL: [Self; 2] = [Self::Flush, Self::Trim];

    /// The name in messages and in the document.
    pub fn name(self) -> &'static str {
        match self {
            Self::Flush => "flush",
            Self::Trim => "trim",
        }
    }
}

/// I/Os of one direction, or of one kind of upkeep.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Flow {
    /// Bytes that completed in the window.
    pub bytes: Bytes,
    /// Completed minus submitted, for each I/O that completed in the window.
    pub service_time: Histogram,
    /// Completed minus intended start. Absent in a closed loop, which has no separate intended
    /// start: there it equals the service time.
    pub response_time: Option<Histogram>,
}

impl Flow {
    /// An empty flow, with response times if the loop is open.
    pub fn new(open_loop: bool) -> Self {
        Self { response_time: open_loop.then(Histogram::default), ..Self::default() }
    }

    /// An empty flow that never allocates again.
    fn roomy(open_loop: bool) -> Self {
        let response_time = open_loop.then(Histogram::roomy);
        Self { service_time: Histogram::roomy(), response_time, ..Self::default() }
    }

    /// I/Os that completed in the window.
    pub fn ios(&self) -> u64 {
        self.service_time.count()
    }

    /// The response time, which in a closed loop is the service time.
    pub fn response_time(&self) -> &Histogram {
        self.response_time.as_ref().unwrap_or(&self.service_time)
    }

    /// Adds everything that `other` holds. The sum has separate response times only if both have
    /// them.
    pub fn merge(&mut self, other: &Self) {
        match (&mut self.response_time, &other.response_time) {
            (Some(mine), Some(theirs)) => mine.merge(theirs),
            (Some(mine), None) => mine.merge(&other.service_time),
            (None, Some(theirs)) => {
                let mut mine = self.service_time.clone();
                mine.merge(theirs);
                self.response_time = Some(mine);
            }
            (None, None) => {}
        }
        self.service_time.merge(&other.service_time);
        self.bytes.0 += other.bytes.0;
    }

    /// Removes everything.
    pub fn clear(&mut self) {
        self.bytes = Bytes(0);
        self.service_time.clear();
        if let Some(response_time) = &mut self.response_time {
            response_time.clear();
        }
    }
}

/// The I/Os of one worker at one target.
#[derive(Clone, Debug, PartialEq)]
pub struct Cell {
    /// The target's place in the list of targets of the run.
    pub target: u32,
    /// Reads and writes, by [`Direction`] as an index.
    pub flows: [Flow; 2],
    /// How unevenly its I/Os were spread over the intervals, or over the buckets if its point has them.
    pub spread: Spread,
    /// Flushes and trims, by [`Upkeep`] as an index; none if its stream has neither.
    pub upkeep: Option<Box<[Flow; 2]>>,
}

/// How unevenly I/Os were spread over the intervals or buckets of the window: all that a standard
/// deviation of the IOPS needs, in the same memory for a day as for a second.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Spread {
    /// The number of intervals.
    pub intervals: u64,
    /// The squares of the I/Os of each interval, added up: of reads, of writes, and of both.
    pub squares: [f64; 3],
}

impl Spread {
    /// Adds the reads and the writes of this many intervals. If a worker could not tell them apart,
    /// they are taken to be alike.
    pub fn add(&mut self, intervals: u64, [reads, writes]: [u64; 2]) {
        let intervals = intervals.max(1);
        self.intervals += intervals;
        for (sum, ios) in self.squares.iter_mut().zip([reads, writes, reads + writes]) {
            *sum += (ios as f64).powi(2) / intervals as f64;
        }
    }
}

/// The I/Os of one worker in one interval: filled by the hot loop, handed over whole, merged by the
/// collector.
#[derive(Clone, Debug, PartialEq)]
pub struct Tally {
    /// When the interval began.
    pub start: Instant,
    /// When it ended.
    pub end: Instant,
    /// Whether it lies in the window, rather than in the warm-up or after the end.
    pub in_window: bool,
    /// Reads, then writes, of each region of the worker's plan, in its order.
    pub flows: Vec<Flow>,
    /// Flushes, then trims, of each region; empty if the worker does neither.
    pub upkeep: Vec<Flow>,
    /// I/Os that failed in the interval.
    pub failed: u64,
    /// In-flight I/Os integrated over the interval, in I/O nanoseconds.
    pub depth_ns: u128,
    /// Submitted minus intended start; none in a closed loop, which has no intended start.
    pub start_delay: Option<StartDelay>,
    /// The worker's ledger as it would be if the window had ended with the interval.
    pub ledger: Ledger,
    /// How long the oldest I/O that was due and not started had been due at the interval's end; none
    /// in a closed loop, which is never behind.
    pub lag: Option<Span>,
    /// The state when the last of a limited number of I/Os started, if that was in the interval.
    pub last_start: Option<LastStart>,
}

/// The state of an interval when a worker had started the last of its I/Os: from then on fewer and
/// fewer are in flight.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LastStart {
    /// The time of this start.
    pub at: Instant,
    /// I/Os that had completed, by direction.
    pub ios: [u64; 2],
    /// Bytes that had completed, by direction.
    pub bytes: [Bytes; 2],
    /// In-flight I/Os integrated until then, in I/O nanoseconds.
    pub depth_ns: u128,
}

/// The work of a worker while its load was complete: until it started the last of a limited number
/// of I/Os. After that comes the drain, in which fewer and fewer are in flight.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Whole {
    /// How long that was, from the start of the window.
    pub length: Span,
    /// I/Os that completed in that time, by direction.
    pub ios: [u64; 2],
    /// Bytes that completed in that time, by direction.
    pub bytes: [Bytes; 2],
    /// I/Os in flight, averaged over that time.
    pub queue_depth: f64,
}

/// How late I/Os of an open loop started, by cause.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StartDelay {
    /// A slot was free when the I/O fell due: the generator was late.
    pub generator: Histogram,
    /// No slot was free: the target was behind.
    pub target: Histogram,
}

impl StartDelay {
    /// Adds everything that `other` holds.
    pub fn merge(&mut self, other: &Self) {
        self.generator.merge(&other.generator);
        self.target.merge(&other.target);
    }

    /// Removes everything.
    pub fn clear(&mut self) {
        self.generator.clear();
        self.target.clear();
    }
}

impl Tally {
    /// An empty tally for a worker with this many regions, which may flush or trim.
    pub fn new(regions: usize, open_loop: bool, upkeep: bool) -> Self {
        Self::of(regions, open_loop, upkeep, Flow::new)
    }

    /// The same for the hot loop, which must not allocate: there is memory for every distribution
    /// from the start. With more than [`Self::ROOMY`] regions this would take gigabytes, and a
    /// distribution without I/Os would take as much as any other. Then a distribution grows at the
    /// first time of a new magnitude, and keeps its memory.
    pub fn ready(regions: usize, open_loop: bool, upkeep: bool) -> Self {
        let flow = if regions <= Self::ROOMY { Flow::roomy } else { Flow::new };
        let delay = || StartDelay { generator: Histogram::roomy(), target: Histogram::roomy() };
        let start_delay = open_loop.then(delay);
        Self { start_delay, ..Self::of(regions, open_loop, upkeep, flow) }
    }

    /// This many regions have their memory before the run begins.
    pub const ROOMY: usize = 16;

    fn of(regions: usize, open_loop: bool, upkeep: bool, flow: fn(bool) -> Flow) -> Self {
        let flows = |count: usize| (0..count).map(|_| flow(open_loop)).collect();
        Self {
            start: Instant(0),
            end: Instant(0),
            in_window: false,
            flows: flows(2 * regions),
            upkeep: flows(if upkeep { 2 * regions } else { 0 }),
            failed: 0,
            depth_ns: 0,
            start_delay: open_loop.then(StartDelay::default),
            ledger: Ledger::default(),
            lag: open_loop.then(Span::default),
            last_start: None,
        }
    }

    /// Notes that the last of a limited number of I/Os starts now.
    #[cold]
    pub fn note_last_start(&mut self, at: Instant) {
        self.last_start = Some(self.sums(at));
    }

    /// The state of the interval at that time.
    pub fn sums(&self, at: Instant) -> LastStart {
        let sums = |of: &dyn Fn(&Flow) -> u64| {
            let own = |direction| self.flows.iter().skip(direction).step_by(2).map(of).sum();
            [0, 1].map(|direction| -> u64 { own(direction) })
        };
        let bytes = sums(&|flow| flow.bytes.0).map(Bytes);
        let (ios, depth_ns) = (sums(&Flow::ios), self.depth_ns);
        LastStart { at, ios, bytes, depth_ns }
    }

    /// The place of the first flow of upkeep, with any number of regions.
    pub const UPKEEP: usize = 1 << 15;

    /// The flow at a place: those of upkeep begin at [`Tally::UPKEEP`].
    #[inline]
    pub fn flow_mut(&mut self, place: usize) -> &mut Flow {
        match self.flows.get_mut(place) {
            Some(flow) => flow,
            None => &mut self.upkeep[place - Self::UPKEEP],
        }
    }

    /// Removes everything but keeps the shape.
    pub fn clear(&mut self) {
        self.flows.iter_mut().chain(&mut self.upkeep).for_each(Flow::clear);
        self.failed = 0;
        self.depth_ns = 0;
        self.last_start = None;
        self.start_delay.iter_mut().for_each(StartDelay::clear);
    }
}

/// Every I/O of a worker, from the first to the last, warm-up included. In a closed loop an I/O is
/// due when it is started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Ledger {
    /// I/Os that should have started before the window's end.
    pub due: u64,
    /// I/Os that completed in full before the window began.
    pub completed_in_warm_up: u64,
    /// I/Os that completed in full in the window.
    pub completed: u64,
    /// I/Os that failed before the window's end.
    pub failed: u64,
    /// I/Os that were in flight at the window's end and came back later, whether they succeeded or
    /// not. They are in no distribution.
    pub in_flight: u64,
    /// I/Os that did not come back while the worker waited for them.
    pub lost: u64,
    /// I/Os that were due and never started.
    pub unstarted: u64,
}

impl Ledger {
    /// Whether every I/O is accounted for.
    pub fn balances(&self) -> bool {
        let seen = self.completed_in_warm_up
            + self.completed
            + self.failed
            + self.in_flight
            + self.lost
            + self.unstarted;
        self.due == seen
    }

    /// The sum of two.
    pub fn plus(&self, other: &Self) -> Self {
        Self {
            due: self.due + other.due,
            completed_in_warm_up: self.completed_in_warm_up + other.completed_in_warm_up,
            completed: self.completed + other.completed,
            failed: self.failed + other.failed,
            in_flight: self.in_flight + other.in_flight,
            lost: self.lost + other.lost,
            unstarted: self.unstarted + other.unstarted,
        }
    }
}

/// How an I/O failed.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "Failure")]
pub enum ErrorKind {
    /// The kernel answered with this errno.
    Errno(i32),
    /// The device answered with this NVMe status, if commands reach it directly.
    #[serde(rename = "nvme_status")]
    Nvme(u16),
    /// Fewer bytes moved than requested: this many. An unplugged device moves zero bytes.
    #[serde(rename = "short_bytes")]
    Short(u32),
    /// The I/O did not come back while the worker waited for it.
    Lost,
}

/// One I/O that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct IoError {
    /// The target's place in the list of targets of the run.
    pub target: u32,
    /// Whether it was a read or a write.
    pub direction: Direction,
    /// The kind of upkeep, if it moved no data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upkeep: Option<Upkeep>,
    /// Its offset.
    #[serde(rename = "offset_bytes")]
    pub offset: Bytes,
    /// The number of bytes requested.
    #[serde(rename = "length_bytes")]
    pub length: Bytes,
    /// The failure.
    #[serde(rename = "failure")]
    pub kind: ErrorKind,
    /// When it came back, or when it started if it never did, from the start of the window;
    /// negative in the warm-up. Nanoseconds.
    pub at_ns: i64,
}

impl IoError {
    /// Its kind, in one word.
    pub fn what(&self) -> &'static str {
        self.upkeep.map_or(self.direction.name(), Upkeep::name)
    }
}

/// The I/Os of a worker that failed: all are counted, the first ones are kept.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Errors {
    /// The number of all failures, including those of the warm-up and those after the window.
    pub count: u64,
    /// The first of them, at most 64.
    pub first: Vec<IoError>,
}

impl Errors {
    /// How many are kept in full.
    pub const KEPT: usize = 64;

    /// Room for all failures that will be kept, so that adding never allocates.
    pub fn with_room() -> Self {
        Self { first: Vec::with_capacity(Self::KEPT), count: 0 }
    }

    /// Counts one, and keeps it while there is room.
    pub fn add(&mut self, error: IoError) {
        self.count += 1;
        if self.first.len() < Self::KEPT {
            self.first.push(error);
        }
    }
}

/// How a worker spent the time until an I/O completed or fell due.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Waits {
    /// The margin at the end: how long before a due time it stopped sleeping and spun, as learned
    /// from the wake-ups of this host.
    #[serde(rename = "margin_ns")]
    pub margin: Span,
    /// How long it spun while I/Os were in flight before it slept; zero if it slept at once.
    #[serde(rename = "spin_in_flight_ns")]
    pub spin_in_flight: Span,
}

/// The time for which a thread waited for a CPU: it was ready to run and not running, because
/// others were, or because its wake-up takes time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuWait {
    /// The total time.
    pub time: Span,
    /// How often it was put on a CPU.
    pub runs: u64,
}

impl CpuWait {
    /// The difference since `earlier`.
    pub fn since(self, earlier: Self) -> Self {
        Self { time: self.time - earlier.time, runs: self.runs.saturating_sub(earlier.runs) }
    }
}

/// The work of one worker over the whole window.
#[derive(Clone, Debug, PartialEq)]
pub struct WorkerRecord {
    /// The stream's place in the point.
    pub stream: u32,
    /// The worker's place in its stream.
    pub worker: u32,
    /// One for each target that it served.
    pub cells: Vec<Cell>,
    /// The account of all its I/Os.
    pub ledger: Ledger,
    /// Those that failed.
    pub errors: Errors,
    /// I/Os in flight, averaged over the window.
    pub queue_depth: f64,
    /// How late its I/Os started; none in a closed loop.
    pub start_delay: Option<StartDelay>,
    /// CPU time that the worker's own thread used in the window, where the backend can tell.
    pub cpu: Option<Span>,
    /// The time for which that thread waited for a CPU in the window; none if the kernel or the
    /// backend does not report it.
    pub cpu_wait: Option<CpuWait>,
    /// It stopped early because a long series of I/Os failed without a success.
    pub gave_up: bool,
    /// How it waited; none on a simulated device, whose time needs no waiting.
    pub waits: Option<Waits>,
    /// How long the oldest I/O that was due and not started had been due at the window's end; none in
    /// a closed loop.
    pub lag: Option<Span>,
    /// Its work until it had started all of a limited number of I/Os; none if its load went on
    /// until the window's end, or had ended before the window began.
    pub whole: Option<Whole>,
}

/// How far a stream is behind its schedule at the end of the recorded time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Backlog {
    /// I/Os that were due and not started, all its workers together.
    pub unstarted: u64,
    /// How long the oldest of them had been due, of the worker that is furthest behind.
    pub lag: Span,
    /// By how much the lag grew in each second of the second half of the window, in seconds; below
    /// zero if it shrank. If a target serves a share s of the offered load, this is 1 - s.
    pub growth: f64,
}

/// The record of a run of a point.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// The actual window; shorter than requested if the run was interrupted, ended early, or was
    /// done before.
    pub window: Span,
    /// Whether it ended before its time without having reached its goal.
    pub interrupted: bool,
    /// Whether it ended before its time because its observer had seen enough: the record is
    /// complete for the actual window.
    pub ended_early: bool,
    /// One for each worker, by stream and worker.
    pub workers: Vec<WorkerRecord>,
    /// The series in plain numbers, by start and stream: one for each interval and stream.
    pub series: Vec<Interval>,
    /// The series with its distributions, by start and stream: a long run has fewer of these, and
    /// each is the sum of several intervals.
    pub stretches: Vec<Stretch>,
    /// The I/Os of each bucket, if its point has buckets.
    pub buckets: Option<Buckets>,
}

/// I/Os that completed in each bucket of the window, all workers together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Buckets {
    /// How long each is; the last one may be shorter.
    pub length: Span,
    /// Reads and writes, by [`Direction`] as an index, from the start of the window.
    pub ios: Vec<[u64; 2]>,
}

impl Record {
    /// The sum over all workers and targets, of one direction or of both.
    pub fn total(&self, direction: Option<Direction>) -> Flow {
        self.sum(direction, |_, _| true)
    }

    /// The sum over the cells of those workers and targets that `keep` names.
    pub fn sum(
        &self,
        direction: Option<Direction>,
        keep: impl Fn(&WorkerRecord, &Cell) -> bool,
    ) -> Flow {
        let mut sum: Option<Flow> = None;
        for worker in &self.workers {
            for cell in worker.cells.iter().filter(|cell| keep(worker, cell)) {
                for one in Direction::BOTH {
                    if direction.is_some_and(|wanted| wanted != one) {
                        continue;
                    }
                    let flow = &cell.flows[one as usize];
                    match &mut sum {
                        Some(sum) => sum.merge(flow),
                        None => sum = Some(flow.clone()),
                    }
                }
            }
        }
        sum.unwrap_or_default()
    }

    /// The sum of one kind of upkeep over the cells that `keep` names.
    pub fn upkeep(&self, what: Upkeep, keep: impl Fn(&WorkerRecord, &Cell) -> bool) -> Flow {
        let mut sum: Option<Flow> = None;
        for worker in &self.workers {
            for cell in worker.cells.iter().filter(|cell| keep(worker, cell)) {
                let Some(flows) = &cell.upkeep else { continue };
                match &mut sum {
                    Some(sum) => sum.merge(&flows[what as usize]),
                    None => sum = Some(flows[what as usize].clone()),
                }
            }
        }
        sum.unwrap_or_default()
    }

    /// The ledger of all workers.
    pub fn ledger(&self) -> Ledger {
        self.workers.iter().fold(Ledger::default(), |sum, worker| sum.plus(&worker.ledger))
    }

    /// How far a stream is behind its schedule; none for a closed loop.
    pub fn backlog(&self, stream: u32) -> Option<Backlog> {
        let workers = || self.workers.iter().filter(|worker| worker.stream == stream);
        let lag = workers().filter_map(|worker| worker.lag).max()?;
        let half = Span(self.window.0 / 2);
        let end = |interval: &&Interval| interval.start + interval.length;
        let first_half = self.series.iter().filter(|one| one.stream == stream && end(one) <= half);
        let (since, before) = match first_half.max_by_key(end) {
            Some(interval) => (end(&interval), interval.lag.unwrap_or_default()),
            None => (Span(0), Span(0)),
        };
        let passed = self.window.as_secs_f64() - since.as_secs_f64();
        let grown = lag.as_secs_f64() - before.as_secs_f64();
        Some(Backlog {
            unstarted: workers().map(|worker| worker.ledger.unstarted).sum(),
            lag,
            growth: if passed > 0.0 { grown / passed } else { 0.0 },
        })
    }

    /// For how long the load was complete, from the start of the window: until the first of the
    /// workers that `keep` names had started all its I/Os. None if one of them went on until the
    /// window's end.
    pub fn whole(&self, keep: impl Fn(&WorkerRecord) -> bool) -> Option<Span> {
        let own = self.workers.iter().filter(|worker| keep(worker) && worker.ledger.due > 0);
        let ends = own.map(|worker| worker.whole.map(|whole| whole.length));
        ends.collect::<Option<Vec<Span>>>()?.into_iter().min()
    }

    /// I/Os that failed, at any time.
    pub fn errors(&self) -> u64 {
        self.workers.iter().map(|worker| worker.errors.count).sum()
    }

    /// I/Os in flight, averaged over the window, all workers together.
    pub fn queue_depth(&self) -> f64 {
        self.workers.iter().map(|worker| worker.queue_depth).sum()
    }
}
