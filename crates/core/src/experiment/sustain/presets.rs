//! The tests of the SNIA Solid State Storage Performance Test Specification 2.0.2: the points of a
//! round, the watched figure, and the points that follow the rounds.

use super::{ROUNDS_MAX, RoundPoint, TestPlan, Until, Watch};
use crate::experiment::Planned;
use crate::spec::{BlockSizes, Kind, Pattern, Point, Region, Sequence, Turns, Workers};
use crate::trial::{Coordinate, Place, Role};
use crate::typed::typed_size;
use crate::units::{Bytes, Span};

/// The block sizes of the IOPS test, in its order.
pub const BLOCK_SIZES: [Bytes; 8] = [
    Bytes(1024 * Bytes::KIB),
    Bytes(128 * Bytes::KIB),
    Bytes(64 * Bytes::KIB),
    Bytes(32 * Bytes::KIB),
    Bytes(16 * Bytes::KIB),
    Bytes(8 * Bytes::KIB),
    Bytes(4 * Bytes::KIB),
    Bytes(512),
];

/// The shares of reads of the IOPS test, in its order.
pub const MIXES: [f64; 7] = [1.0, 0.95, 0.65, 0.5, 0.35, 0.05, 0.0];

/// The block sizes of the latency test.
const TIME_SIZES: [Bytes; 3] = [Bytes(8 * Bytes::KIB), Bytes(4 * Bytes::KIB), Bytes(512)];
/// The shares of reads of the latency test.
const TIME_MIXES: [f64; 3] = [1.0, 0.65, 0.0];

/// The threads, and the I/Os in flight of each, of the demand intensity test.
const DEMAND: [u32; 7] = [32, 16, 8, 6, 4, 2, 1];

/// The length of the pauses between bursts, and of a burst.
const IDLE: [Span; 5] = [
    Span::from_secs(5),
    Span::from_secs(10),
    Span::from_secs(15),
    Span::from_secs(25),
    Span::from_secs(50),
];
const BURST: Span = Span::from_secs(5);

/// The coordinate of a burst: the pause before it.
pub(super) const IDLE_AXIS: &str = "idle";
/// The coordinate of a point that follows another load.
pub(super) const PHASE_AXIS: &str = "phase";

/// The length of an idle state, of a phase of large sequential writes, of a phase of small random
/// ones, and of the whole write saturation, unless an option sets it.
const IDLE_STATE: Span = Span::from_secs(3600);
const LARGE_PHASE: Span = Span::from_secs(8 * 3600);
const SMALL_PHASE: Span = Span::from_secs(6 * 3600);
const SATURATION: Span = Span::from_secs(6 * 3600);
/// This many times the capacity ends a write saturation before its time.
const SATURATION_FILLS: u64 = 4;

/// The block of the sequential throughput test.
const THROUGHPUT_BLOCK: Bytes = Bytes(128 * Bytes::KIB);
/// The block size for steady states.
const SMALL: Bytes = Bytes(4 * Bytes::KIB);

/// A test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Test {
    /// Rounds of the workload that was given.
    Workload,
    /// IOPS: eight block sizes by seven mixes.
    Iops,
    /// Throughput: 128 KiB sequential reads and writes.
    Throughput,
    /// Latency: three block sizes by three mixes, one I/O at a time.
    ResponseTime,
    /// Write saturation: random writes of 4 KiB until the drive was filled several times.
    WriteSaturation,
    /// Demand intensity: threads by queue depth, in the steady state.
    DemandIntensity,
    /// Host idle recovery: bursts of writes with growing pauses, in the steady state.
    HostIdleRecovery,
    /// Cross stimulus recovery: large sequential writes, small random ones, and large ones again.
    CrossStimulusRecovery,
}

impl Test {
    /// All, in the order of the help.
    pub const ALL: [Self; 8] = [
        Self::Workload,
        Self::Iops,
        Self::Throughput,
        Self::ResponseTime,
        Self::WriteSaturation,
        Self::DemandIntensity,
        Self::HostIdleRecovery,
        Self::CrossStimulusRecovery,
    ];

    /// The name on the command line and in results.
    pub fn name(self) -> &'static str {
        match self {
            Self::Workload => "workload",
            Self::Iops => "iops",
            Self::Throughput => "throughput",
            Self::ResponseTime => "latency",
            Self::WriteSaturation => "write-saturation",
            Self::DemandIntensity => "demand-intensity",
            Self::HostIdleRecovery => "host-idle-recovery",
            Self::CrossStimulusRecovery => "cross-stimulus-recovery",
        }
    }

    /// Whether it has a part with a selectable length besides its rounds.
    pub fn has_length(self) -> bool {
        use Test::{CrossStimulusRecovery, HostIdleRecovery, WriteSaturation};
        matches!(self, WriteSaturation | HostIdleRecovery | CrossStimulusRecovery)
    }

    /// How often everything is written beforehand, unless an option says so: write saturation
    /// begins with the existing content, because it shows how a drive fills.
    pub fn passes(self) -> u32 {
        match self {
            Self::WriteSaturation | Self::CrossStimulusRecovery => 0,
            _ => 2,
        }
    }

    /// The watched figure, unless an option sets it.
    pub fn watch(self) -> Watch {
        match self {
            Self::Throughput | Self::CrossStimulusRecovery => Watch::Bandwidth,
            Self::ResponseTime => Watch::MeanTime,
            _ => Watch::Iops,
        }
    }
}

/// The settings of a test.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TestSettings {
    /// How often everything is written beforehand.
    pub passes: u32,
    /// The watched figure.
    pub watch: Watch,
    /// How long the load has to go on before the rounds can be called steady.
    pub at_least: Span,
    /// The most rounds.
    pub rounds: u32,
    /// The length of the part with a selectable length; if none, the specification's length.
    pub length: Option<Span>,
    /// The smallest block that the targets accept.
    pub smallest_block: Bytes,
}

impl Default for TestSettings {
    fn default() -> Self {
        Self {
            passes: 2,
            watch: Watch::Iops,
            at_least: Span::from_secs(3600),
            rounds: ROUNDS_MAX,
            length: None,
            smallest_block: Bytes(512),
        }
    }
}

/// The points of a test on the targets of this point, with its queue depth and workers where the
/// test leaves them open, and with trials as long as its window.
///
/// # Panics
///
/// When the point has no stream, which resolving it rules out.
pub fn test_plan(test: Test, base: &Point, settings: TestSettings) -> TestPlan {
    let round = match test {
        Test::Workload => Vec::from([RoundPoint { point: base.clone(), coordinates: Vec::new() }]),
        Test::Iops => matrix(base, &BLOCK_SIZES, &MIXES, settings.smallest_block, None),
        Test::ResponseTime => {
            matrix(base, &TIME_SIZES, &TIME_MIXES, settings.smallest_block, Some(1))
        }
        Test::Throughput => Vec::from([
            sequential(base, THROUGHPUT_BLOCK, 1.0),
            sequential(base, THROUGHPUT_BLOCK, 0.0),
        ]),
        Test::DemandIntensity => {
            let cell = demand(base, DEMAND[0], DEMAND[0]);
            Vec::from([RoundPoint { coordinates: Vec::new(), ..cell }])
        }
        Test::WriteSaturation | Test::HostIdleRecovery => Vec::from([small_writes(base)]),
        Test::CrossStimulusRecovery => Vec::new(),
    };
    let capacity: u64 = regions(base).iter().map(|region| region.length.0).sum();
    let until = match test {
        Test::WriteSaturation => Until::Over {
            time: settings.length.unwrap_or(SATURATION),
            bytes: Bytes(capacity.saturating_mul(SATURATION_FILLS)),
        },
        _ => Until::Steady { rounds: settings.rounds },
    };
    TestPlan {
        test: test.name().to_owned(),
        passes: settings.passes,
        watched: watched(test, &round),
        round,
        watch: settings.watch,
        at_least: settings.at_least,
        until,
        script: script(test, base, settings.length),
    }
}

/// The place of the watched point: writes of 4 KiB alone, or the nearest to that.
fn watched(test: Test, round: &[RoundPoint]) -> usize {
    let is_it = |cell: &RoundPoint| {
        let stream = &cell.point.streams[0];
        let block = stream.block_sizes().smallest();
        stream.read_share() == 0.0 && (test == Test::Throughput || block >= SMALL)
    };
    // Sizes fall, so the last one that is large enough is the nearest.
    round.iter().rposition(is_it).unwrap_or(0)
}

fn script(test: Test, base: &Point, length: Option<Span>) -> Vec<Planned> {
    match test {
        Test::DemandIntensity => {
            let pairs = DEMAND.iter().flat_map(|&threads| DEMAND.map(|depth| (threads, depth)));
            let cells = pairs.map(|(threads, depth)| demand(base, threads, depth));
            cells.map(|cell| planned(cell, Span(0), 0)).collect()
        }
        Test::HostIdleRecovery => {
            let state = length.unwrap_or(IDLE_STATE);
            IDLE.iter().flat_map(|&idle| idle_state(base, idle, state)).collect()
        }
        Test::CrossStimulusRecovery => cross_stimulus(base, length),
        _ => Vec::new(),
    }
}

/// Bursts of small writes, each after a pause of this length, for about the time `state`.
fn idle_state(base: &Point, idle: Span, state: Span) -> Vec<Planned> {
    let bursts = (state.0 / (idle + BURST).0).max(1);
    let burst = |number: u64| {
        let RoundPoint { mut point, .. } = small_writes(base);
        point.warm_up = Span(0);
        point.window = BURST;
        point.interval = Span::from_ms(100);
        point.name = format!("burst {} after {idle} idle", number + 1);
        let coordinates = Vec::from([coordinate(IDLE_AXIS, idle.to_string(), idle.as_secs_f64())]);
        planned(RoundPoint { point, coordinates }, idle, number as u32)
    };
    (0..bursts).map(burst).collect()
}

/// Large sequential writes, small random ones, large ones again, in trials as long as the base's.
fn cross_stimulus(base: &Point, length: Option<Span>) -> Vec<Planned> {
    let large = sequential(base, Bytes(1024 * Bytes::KIB), 0.0);
    let small = random(base, Bytes(8 * Bytes::KIB), 0.0);
    let phases = [
        ("large", large.clone(), LARGE_PHASE),
        ("small", small, SMALL_PHASE),
        ("large again", large, LARGE_PHASE),
    ];
    let mut all = Vec::new();
    for (name, cell, usual) in phases {
        let trials = (length.unwrap_or(usual).0 / cell.point.window.0.max(1)).max(1);
        for number in 0..trials {
            let mut point = cell.point.clone();
            point.name = format!("{name}, {} of {trials}: {}", number + 1, point.name);
            point.warm_up = Span(0);
            let coordinates = Vec::from([Coordinate {
                axis: PHASE_AXIS.to_owned(),
                label: name.to_owned(),
                value: None,
            }]);
            all.push(planned(RoundPoint { point, coordinates }, Span(0), number as u32));
        }
    }
    all
}

fn planned(cell: RoundPoint, rest: Span, repeat: u32) -> Planned {
    let place = Place { role: Role::Result, coordinates: cell.coordinates, repeat };
    Planned { point: cell.point, place, rest }
}

/// Random I/Os of every size and mix, the mix varying slowest, as in the specification.
fn matrix(
    base: &Point,
    sizes: &[Bytes],
    mixes: &[f64],
    smallest: Bytes,
    depth: Option<u32>,
) -> Vec<RoundPoint> {
    let shortest = regions(base).iter().map(|region| region.length).min().unwrap_or(SMALL);
    let sizes = sizes.iter().filter(|size| smallest <= **size && **size <= shortest);
    let cells = mixes.iter().flat_map(|mix| sizes.clone().map(|size| random(base, *size, *mix)));
    cells
        .map(|mut cell| {
            if let Some(depth) = depth {
                let stream = &mut cell.point.streams[0];
                stream.workers = Workers::Total(1);
                stream.pacing = stream.pacing.closed_at(depth);
            }
            cell.named()
        })
        .collect()
}

fn small_writes(base: &Point) -> RoundPoint {
    let mut cell = random(base, SMALL, 0.0);
    cell.coordinates.clear();
    cell
}

/// Random writes of 4 KiB by this many threads with this many in flight each.
fn demand(base: &Point, threads: u32, depth: u32) -> RoundPoint {
    let mut cell = random(base, SMALL, 0.0);
    let stream = &mut cell.point.streams[0];
    stream.workers = Workers::Total(threads);
    stream.pacing = stream.pacing.closed_at(threads * depth);
    cell.coordinates = Vec::from([
        coordinate("workers", threads.to_string(), threads.into()),
        coordinate("queue-depth", format!("{depth}/worker"), depth.into()),
    ]);
    let mut cell = cell.named();
    cell.point.name = format!("{threads} workers with {depth} in flight each");
    cell
}

fn random(base: &Point, block: Bytes, read_share: f64) -> RoundPoint {
    shaped(base, Pattern::RANDOM, block, read_share)
}

fn sequential(base: &Point, block: Bytes, read_share: f64) -> RoundPoint {
    shaped(base, Pattern::Sequential(Sequence::default()), block, read_share)
}

/// The base with other I/Os: one stream over everything that it addresses.
fn shaped(base: &Point, pattern: Pattern, block: Bytes, read_share: f64) -> RoundPoint {
    let mut point = base.clone();
    point.streams.truncate(1);
    let stream = &mut point.streams[0];
    stream.regions = regions(base)
        .into_iter()
        .map(|region| {
            let block = block.0.min(region.length.0);
            Region { length: Bytes(region.length.0 / block * block), ..region }
        })
        .collect();
    (stream.zones, stream.turns) = (false, Turns::InTurn);
    let shortest = stream.regions.iter().map(|region| region.length).min().unwrap_or(block);
    let block_sizes = BlockSizes::one(block.min(shortest));
    stream.ios = Kind { pattern, block_sizes, read_share, ..Kind::default() }.into();
    let label = typed_size(block);
    let coordinates = Vec::from([
        coordinate("block-size", label, block.0 as f64),
        coordinate("read-share", format!("{}%", (read_share * 100.0).round()), read_share),
    ]);
    RoundPoint { point, coordinates }.named()
}

impl RoundPoint {
    /// Named after what it does.
    fn named(mut self) -> Self {
        let stream = &mut self.point.streams[0];
        stream.name = stream.description(self.point.window);
        self.point.name.clone_from(&stream.name);
        self
    }
}

/// Everything that a point addresses, each target once.
pub fn regions(base: &Point) -> Vec<Region> {
    let mut regions: Vec<Region> = Vec::new();
    for region in base.streams.iter().flat_map(|stream| &stream.regions) {
        if regions.iter().all(|known| known.target != region.target) {
            regions.push(*region);
        }
    }
    regions
}

fn coordinate(axis: &str, label: String, value: f64) -> Coordinate {
    Coordinate { axis: axis.to_owned(), label, value: Some(value) }
}
