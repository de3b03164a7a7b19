//! The experiments of the bench. Each one runs on a device whose truth is known, with trials as
//! short as possible.

use fathom_core::experiment::map::{Map, SearchOptions, Settings, Shape, Surface, cells_at_most};
use fathom_core::experiment::{
    Axis, BestPractice, Candidate, Circumstances, Drives, Experiment, PassOrder, Peak, Question,
    Scale, Search, Study, Sustain, Sweep, SweepSettings, Test, TestSettings, Vary, test_plan,
};
use fathom_core::spec::{
    Arrivals, BlockSizes, Distribution, Kind, Objective, Pacing, Pattern, Payload, Point, Region,
    Stream, Workers,
};
use fathom_core::trial::Coordinate;
use fathom_core::{Bytes, Quantile, Rate, Span};
use fathom_engine::sim;

use super::judge::{self, Judge};
use super::lab::{Noise, TARGETS, WINDOW};

/// An experiment with its devices.
pub struct Case {
    /// Its name in the table.
    pub name: &'static str,
    /// The devices of its targets, without noise.
    pub devices: Vec<sim::Options>,
    /// Makes the experiment for a seed.
    pub experiment: fn(u64) -> Box<dyn Experiment>,
    /// Judges its sentences.
    pub judge: Judge,
    /// The noises that would remove the property that the device is known for.
    pub without: &'static [Noise],
}

fn device(text: &str) -> sim::Options {
    text.parse().unwrap_or_else(|why| panic!("{text}: {why}"))
}

/// All cases.
pub fn all() -> Vec<Case> {
    let mut all = sweeps();
    all.extend(searches());
    all.extend(rounds());
    all.extend(studies());
    all
}

/// The rate rises to queue depth 8, where it is 97 % of the rate at 16 and above.
const KNEE: &str = "table,points=1:60MB/s+2:110MB/s+4:160MB/s+8:194MB/s+16:200MB/s+256:200MB/s";
/// Every depth has the same rate.
const FLAT: &str = "table,points=1:200MB/s+256:200MB/s";
/// The rate is highest at depth 4, and a fifth lower at the last depth.
const FALLING: &str =
    "table,points=1:100MB/s+2:160MB/s+4:200MB/s+16:196MB/s+64:180MB/s+256:160MB/s";
/// The rate rises with each depth.
const RISING: &str = "table,points=1:10MB/s+256:200MB/s";

/// A case on one device, with every noise.
fn case(
    name: &'static str,
    text: &str,
    experiment: fn(u64) -> Box<dyn Experiment>,
    judge: Judge,
) -> Case {
    Case { name, devices: Vec::from([device(text)]), experiment, judge, without: &[] }
}

fn sweeps() -> Vec<Case> {
    Vec::from([
        case("sweep: depth, a knee", KNEE, depths, judge::sweep),
        case("sweep: depth, flat", FLAT, depths, judge::sweep),
        case("sweep: depth, falling", FALLING, depths, judge::sweep),
        case("sweep: payload, not compressed", KNEE, payloads, judge::sweep),
        case(
            "sweep: payload, compressed",
            &format!("{KNEE},compresses=50%"),
            payloads,
            judge::compressed_sweep,
        ),
        case("sweep: block size, all alike", FLAT, blocks, judge::sweep),
        case("sweep: depth by block size", KNEE, depths_and_blocks, judge::sweep),
    ])
}

fn searches() -> Vec<Case> {
    Vec::from([
        case("peak: a knee at 8", KNEE, peak, judge::peak_at_8),
        case("peak: flat", FLAT, peak, judge::peak_at_1),
        case("peak: falling from 4", FALLING, peak, judge::peak_at_4),
        case("peak: rising", RISING, peak, judge::peak_rising),
        case(
            "peak: p99 <= 50 ms",
            "queue,servers=1,service-time=2ms,distribution=exponential",
            peak_load,
            judge::peak_load,
        ),
        case("best-practice: a knee at 8", KNEE, best_practice, judge::peak_at_8),
        case("map", "queue,servers=1,service-time=500us,distribution=exponential", map, judge::map),
    ])
}

fn rounds() -> Vec<Case> {
    const LEVEL: &str = "queue,servers=4,service-time=20ms";
    let step = format!("{LEVEL},foreign=150s+10h,foreign-share=50%");
    let snia = |name, experiment| Case {
        name,
        devices: Vec::from([device(LEVEL)]),
        experiment,
        judge: judge::sustain_level,
        without: &[],
    };
    Vec::from([
        Case {
            name: "sustain: level",
            devices: Vec::from([device(LEVEL)]),
            experiment: sustain,
            judge: judge::sustain_level,
            without: &[],
        },
        snia("SNIA: host idle recovery", host_idle),
        snia("SNIA: cross stimulus recovery", cross_stimulus),
        snia("SNIA: demand intensity", demand_intensity),
        Case {
            name: "sustain: half from round 16 on",
            devices: Vec::from([device(&step)]),
            experiment: sustain,
            judge: judge::sustain_step,
            without: &[Noise::Burst, Noise::Drift],
        },
    ])
}

fn studies() -> Vec<Case> {
    let one = |name, devices: &[&str], experiment, judge| Case {
        name,
        devices: devices.iter().map(|text| device(text)).collect(),
        experiment,
        judge,
        without: &[],
    };
    let zeros = format!("{KNEE},compresses=50%");
    Vec::from([
        one("write-concurrency", &[KNEE], write_concurrency, judge::write_concurrency),
        one(
            "write-concurrency, compressed",
            &[&zeros],
            write_concurrency,
            judge::write_concurrency_compressed,
        ),
        one("multi-stream", &STREAMS, multi_stream, judge::multi_stream),
        one("multi-stream, not repeated", &STREAMS, multi_stream_once, judge::multi_stream),
        one("access-mix", &MIXES, access_mix, judge::access_mix),
        one("access-mix, not repeated", &MIXES, access_mix_once, judge::access_mix),
    ])
}

/// A disk; an array of four disks that is four times as fast from two streams on; and an array that
/// is three times as fast.
const STREAMS: [&str; 3] = [
    "table,points=1:10MB/s+32:10MB/s",
    "table,points=1:20MB/s+2:40MB/s+32:40MB/s",
    "table,points=1:20MB/s+2:30MB/s+32:30MB/s",
];

const MIXES: [&str; 2] =
    ["study-access-mix,drive=sas,disks=4", "study-access-mix,drive=scsi,disks=4"];

fn region(target: u32) -> Region {
    Region { target, offset: Bytes(0), length: Bytes(1 << 30) }
}

/// A closed loop of writes.
fn writing(block: u64, depth: u32, seed: u64) -> Point {
    let stream = Stream {
        ios: Kind {
            block_sizes: BlockSizes::one(Bytes(block)),
            read_share: 0.0,
            pattern: Pattern::RANDOM,
            ..Kind::default()
        }
        .into(),
        pacing: Pacing::closed(depth),
        ..Stream::reading("load", Vec::from([region(0)]))
    };
    Point { seed: seed << 32, ..Point::of(Vec::from([stream]), WINDOW) }
}

fn with(mut point: Point, change: impl FnOnce(&mut Stream)) -> Point {
    change(&mut point.streams[0]);
    point
}

fn at(axis: &str, label: impl ToString, value: Option<f64>) -> Coordinate {
    Coordinate { axis: axis.to_owned(), label: label.to_string(), value }
}

fn candidate(point: Point, coordinates: Vec<Coordinate>) -> Candidate {
    Candidate { point, coordinates, once: false }
}

fn axis(name: &str, scale: Scale, labels: &[&str]) -> Axis {
    let labels = labels.iter().map(|label| (*label).to_owned()).collect();
    Axis { name: name.to_owned(), scale, labels }
}

fn sweep(axes: Vec<Axis>, candidates: Vec<Candidate>, seed: u64) -> Sweep {
    Sweep::new(axes, candidates, sweep_settings(seed))
}

fn sweep_settings(seed: u64) -> SweepSettings {
    SweepSettings {
        repeats: 3,
        order: PassOrder::Shuffled,
        seed,
        rest: Span(0),
        prepare: 0,
        cut_off: false,
        enough: 0.95,
    }
}

const MIB: u64 = Bytes::MIB;
const DEPTHS: [&str; 7] = ["1", "2", "4", "8", "16", "32", "64"];

fn depth_of(label: &str) -> u32 {
    label.parse().expect("depths are numbers")
}

fn depth_at(label: &str) -> Coordinate {
    at("queue-depth", label, Some(f64::from(depth_of(label))))
}

fn depths(seed: u64) -> Box<dyn Experiment> {
    let one =
        |label: &&str| candidate(writing(MIB, depth_of(label), seed), Vec::from([depth_at(label)]));
    let candidates = DEPTHS.iter().map(one).collect();
    Box::new(sweep(Vec::from([axis("queue-depth", Scale::Log2, &DEPTHS)]), candidates, seed))
}

fn payload(zeros: bool) -> Payload {
    if zeros { Payload::Zeros } else { Payload::UNIQUE }
}

fn payloads(seed: u64) -> Box<dyn Experiment> {
    const FEW: [&str; 4] = ["1", "4", "16", "64"];
    let mut candidates = Vec::new();
    for (label, zeros) in [("random", false), ("zeros", true)] {
        for depth in FEW {
            let point = writing(MIB, depth_of(depth), seed);
            let point = with(point, |stream| stream.payload = payload(zeros));
            let place = Vec::from([at("payload", label, None), depth_at(depth)]);
            candidates.push(candidate(point, place));
        }
    }
    let axes = Vec::from([
        axis("payload", Scale::Categories, &["random", "zeros"]),
        axis("queue-depth", Scale::Log2, &FEW),
    ]);
    Box::new(sweep(axes, candidates, seed))
}

const BLOCKS: [(&str, u64); 4] =
    [("256k", MIB / 4), ("512k", MIB / 2), ("1m", MIB), ("2m", 2 * MIB)];

fn blocks(seed: u64) -> Box<dyn Experiment> {
    let one = |(label, block): &(&str, u64)| {
        let place = Vec::from([at("block-size", label, Some(*block as f64))]);
        candidate(writing(*block, 8, seed), place)
    };
    let axes = Vec::from([axis("block-size", Scale::Log2, &BLOCKS.map(|(label, _)| label))]);
    Box::new(sweep(axes, BLOCKS.iter().map(one).collect(), seed))
}

fn depths_and_blocks(seed: u64) -> Box<dyn Experiment> {
    let mut candidates = Vec::new();
    for depth in DEPTHS {
        for (label, block) in &BLOCKS[1..] {
            let place = Vec::from([depth_at(depth), at("block-size", label, Some(*block as f64))]);
            candidates.push(candidate(writing(*block, depth_of(depth), seed), place));
        }
    }
    let axes = Vec::from([
        axis("queue-depth", Scale::Log2, &DEPTHS),
        axis("block-size", Scale::Log2, &["512k", "1m", "2m"]),
    ]);
    Box::new(sweep(axes, candidates, seed))
}

const SATURATION: Search = Search::Saturation { vary: Vary::QueueDepth, up_to: 256, enough: 0.95 };
const OFFICIAL: Span = Span::from_secs(10);

fn peak(seed: u64) -> Box<dyn Experiment> {
    Box::new(Peak::new(writing(MIB, 1, seed), SATURATION, Some(OFFICIAL)))
}

fn best_practice(seed: u64) -> Box<dyn Experiment> {
    let base = writing(MIB, 1, seed);
    let peak = Peak::new(base.clone(), SATURATION, Some(OFFICIAL)).by_small_steps();
    let circumstances =
        Circumstances { cpus: 1, memory: None, content: None, official: Some(OFFICIAL) };
    Box::new(BestPractice::new(peak, base, circumstances))
}

fn peak_load(seed: u64) -> Box<dyn Experiment> {
    let base = with(writing(4096, 1, seed), |stream| {
        stream.pacing = Pacing::open(Rate(100.0), Arrivals::Poisson, 256);
    });
    let objective = Objective { quantile: Quantile(0.99), bound: Span::from_ms(50) };
    let search = Search::Load { objective, up_to: Rate(1e6), tolerance: 0.05 };
    Box::new(Peak::new(base, search, Some(OFFICIAL)))
}

fn sustain(seed: u64) -> Box<dyn Experiment> {
    let base = Point { window: Span::from_secs(10), ..writing(4096, 4, seed) };
    let settings =
        TestSettings { passes: 0, at_least: Span::from_secs(200), ..TestSettings::default() };
    Box::new(Sustain::new(test_plan(Test::Workload, &base, settings)))
}

fn host_idle(seed: u64) -> Box<dyn Experiment> {
    snia(Test::HostIdleRecovery, seed)
}

fn cross_stimulus(seed: u64) -> Box<dyn Experiment> {
    snia(Test::CrossStimulusRecovery, seed)
}

fn demand_intensity(seed: u64) -> Box<dyn Experiment> {
    snia(Test::DemandIntensity, seed)
}

fn snia(test: Test, seed: u64) -> Box<dyn Experiment> {
    let base = Point { window: Span::from_secs(10), ..writing(4096, 4, seed) };
    let settings = TestSettings {
        passes: 0,
        at_least: Span::from_secs(100),
        length: Some(Span::from_secs(120)),
        ..TestSettings::default()
    };
    Box::new(Sustain::new(test_plan(test, &base, settings)))
}

/// A grid of write loads by read loads. The writer takes up to half of the device, the readers
/// nearly all of it.
fn map(seed: u64) -> Box<dyn Experiment> {
    let base = writing(4096, 64, seed);
    let mut reader = Stream {
        name: "readers".to_owned(),
        pacing: Pacing::open(Rate(1.0), Arrivals::Poisson, 256),
        workers: Workers::Total(1),
        ..base.streams[0].clone()
    };
    reader.kind_mut().read_share = 1.0;
    let mut writer = Stream {
        name: "writer".to_owned(),
        workers: Workers::Total(1),
        pacing: Pacing::open(Rate(1.0), Arrivals::Uniform, 64),
        ..base.streams[0].clone()
    };
    writer.kind_mut().pattern = Pattern::SEQUENTIAL;
    let shape = Shape { writes: 6, reads: 6, first_read: 0 };
    let surfaces = Vec::from([
        Surface { quantile: Quantile(0.5), tolerance: 0.05 },
        Surface { quantile: Quantile(0.95), tolerance: 0.10 },
        Surface { quantile: Quantile(0.99), tolerance: 0.20 },
    ]);
    let cells_at_most = cells_at_most(shape);
    Box::new(Map::new(Settings {
        search: SearchOptions { shape, surfaces, exhaustive: false, cells_at_most, seed },
        base,
        writer,
        reader,
        write_max: Some(800.0 * 4096.0),
        read_max: Some(1900.0),
        ramp: Span::from_secs(1),
        window: Span::from_secs(3),
        window_max: Span::from_secs(9),
        give_up_from: Span::from_secs(2),
        behind: 0.03,
        prefill: 0,
        trims: None,
    }))
}

fn write_concurrency(seed: u64) -> Box<dyn Experiment> {
    const WRITERS: [&str; 6] = ["1", "2", "4", "8", "16", "64"];
    let mut candidates = Vec::new();
    for (label, zeros) in [("random", false), ("zeros", true)] {
        for (block, bytes) in [("512k", MIB / 2), ("1m", MIB)] {
            for depth in WRITERS {
                let point = writing(bytes, depth_of(depth), seed);
                let point = with(point, |stream| {
                    stream.payload = payload(zeros);
                    stream.kind_mut().pattern = Pattern::SEQUENTIAL;
                });
                let place = Vec::from([
                    at("payload", label, None),
                    at("block-size", block, Some(bytes as f64)),
                    depth_at(depth),
                ]);
                candidates.push(Candidate { once: zeros, ..candidate(point, place) });
            }
        }
    }
    let axes = Vec::from([
        axis("payload", Scale::Categories, &["random", "zeros"]),
        axis("block-size", Scale::Log2, &["512k", "1m"]),
        axis("queue-depth", Scale::Log2, &WRITERS),
    ]);
    let settings = SweepSettings { enough: 0.9, ..sweep_settings(seed) };
    let sweep = Sweep::new(axes, candidates, settings);
    Box::new(Study::new(sweep, Question::WriteConcurrency))
}

/// The names of the targets of a study, with their numbers of disks and their descriptions.
const ARRAYS: [(&str, u32, &str); 3] =
    [("disk", 1, "single disk"), ("raid0", 4, "raid0, 4 disks"), ("raid5", 4, "raid5, 4 disks")];

fn multi_stream(seed: u64) -> Box<dyn Experiment> {
    multi_streams(seed, 3)
}

fn multi_stream_once(seed: u64) -> Box<dyn Experiment> {
    multi_streams(seed, 1)
}

fn multi_streams(seed: u64, repeats: u32) -> Box<dyn Experiment> {
    let mut candidates = Vec::new();
    for (target, (name, _, _)) in ARRAYS.iter().enumerate() {
        for (label, share) in [("100%", 1.0), ("0%", 0.0)] {
            for workers in 1..=4u32 {
                for each in ["1/worker", "8/worker"] {
                    let depth = workers * if each == "1/worker" { 1 } else { 8 };
                    let point = with(writing(64 << 10, depth, seed), |stream| {
                        stream.kind_mut().read_share = share;
                        stream.kind_mut().pattern = Pattern::SEQUENTIAL;
                        stream.workers = Workers::Total(workers);
                    });
                    candidates.push(candidate(
                        point,
                        Vec::from([
                            at(TARGETS, name, Some(target as f64)),
                            at("read-share", label, Some(share)),
                            at("workers", workers, Some(f64::from(workers))),
                            at("queue-depth", each, Some(f64::from(depth))),
                        ]),
                    ));
                }
            }
        }
    }
    let axes = Vec::from([
        axis(TARGETS, Scale::Categories, &ARRAYS.map(|(name, ..)| name)),
        axis("read-share", Scale::Linear, &["100%", "0%"]),
        axis("workers", Scale::Linear, &["1", "2", "3", "4"]),
        axis("queue-depth", Scale::Log2, &["1/worker", "8/worker"]),
    ]);
    let drives = ARRAYS.map(|(name, disks, geometry)| Drives {
        name: name.to_owned(),
        shown: name.to_owned(),
        geometry: geometry.to_owned(),
        disks,
    });
    let settings = SweepSettings { repeats, ..sweep_settings(seed) };
    let sweep = Sweep::new(axes, candidates, settings);
    Box::new(Study::new(sweep, Question::MultiStream(drives.into())))
}

fn access_mix(seed: u64) -> Box<dyn Experiment> {
    access_mixes(seed, 3)
}

fn access_mix_once(seed: u64) -> Box<dyn Experiment> {
    access_mixes(seed, 1)
}

fn access_mixes(seed: u64, repeats: u32) -> Box<dyn Experiment> {
    let patterns = [
        ("sequential", Pattern::SEQUENTIAL),
        ("mixed:5%", Pattern::Mixed { random_share: 0.05, distribution: Distribution::Uniform }),
        ("mixed:20%", Pattern::Mixed { random_share: 0.2, distribution: Distribution::Uniform }),
        ("random", Pattern::RANDOM),
    ];
    let mut candidates = Vec::new();
    for (target, name) in ["sas", "scsi"].into_iter().enumerate() {
        for (label, share) in [("100%", 1.0), ("0%", 0.0)] {
            for (mix, pattern) in &patterns {
                for (each, depth) in [("1/disk", 4), ("2/disk", 8), ("3/disk", 12)] {
                    let point = with(writing(64 << 10, depth, seed), |stream| {
                        stream.kind_mut().read_share = share;
                        stream.kind_mut().pattern = pattern.clone();
                    });
                    candidates.push(candidate(
                        point,
                        Vec::from([
                            at(TARGETS, name, Some(target as f64)),
                            at("read-share", label, Some(share)),
                            at("pattern", mix, None),
                            at("queue-depth", each, Some(f64::from(depth))),
                        ]),
                    ));
                }
            }
        }
    }
    let axes = Vec::from([
        axis(TARGETS, Scale::Categories, &["sas", "scsi"]),
        axis("read-share", Scale::Linear, &["100%", "0%"]),
        axis("pattern", Scale::Categories, &patterns.clone().map(|(name, _)| name)),
        axis("queue-depth", Scale::Log2, &["1/disk", "2/disk", "3/disk"]),
    ]);
    let drives = ["sas", "scsi"].map(|name| Drives {
        name: name.to_owned(),
        shown: name.to_owned(),
        geometry: "4 disks".to_owned(),
        disks: 4,
    });
    let settings = SweepSettings { repeats, ..sweep_settings(seed) };
    let sweep = Sweep::new(axes, candidates, settings);
    Box::new(Study::new(sweep, Question::AccessMix(drives.into())))
}
