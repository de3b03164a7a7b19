//! Invented experiments of each kind, with the difficult cases for charts and tables: repeats, a
//! void trial, a search without an answer, a map with cells of every kind, and rounds that never
//! settle.

use fathom_core::experiment::{Ab, AbSettings, AbSide, Experiment as _, Step};
use fathom_core::measure::Direction;
use fathom_core::spec::{Arrivals, Pacing};
use fathom_core::trial::{Coordinate, Place, Role};
use fathom_core::{Quantile, Span, stats};
use fathom_report::document::{
    Axis, CellKind, Estimate, Experiment, Found, MapCell, MapFound, PeakFound, Probe, Round, Scale,
    SteadyState, SustainFound, SweepFound, Validation,
};

use super::*;

/// The number of I/Os that the invented disk serves at once: no more at any queue depth.
const SERVERS: f64 = 8.0;

/// A short window keeps a document of many trials small.
const WINDOW_S: u64 = 2;

/// A value on an axis of numbers.
fn at(axis: &str, label: &str, value: f64) -> Coordinate {
    Coordinate { axis: axis.to_owned(), label: label.to_owned(), value: Some(value) }
}

/// A value on an axis of names.
fn named(axis: &str, label: &str) -> Coordinate {
    Coordinate { axis: axis.to_owned(), label: label.to_owned(), value: None }
}

fn axis(name: &str, scale: Scale, labels: &[&str]) -> Axis {
    let labels = labels.iter().map(|label| (*label).to_owned()).collect();
    Axis { name: name.to_owned(), scale, labels }
}

fn short(name: &str, stream: Stream, seed: u64) -> Point {
    Point { seed, interval: Span::from_ms(250), ..point(name, stream, WINDOW_S) }
}

/// A trial of a disk that serves eight I/Os at once, each in the given time.
fn served(point: Point, service_ns: f64, place: Place, nth: u64) -> Trial {
    let depth = f64::from(point.streams[0].pacing.queue_depth());
    let busy = depth.min(SERVERS);
    let waits = (depth / SERVERS).max(1.0);
    let speed = Speed {
        iops: busy / service_ns * 1e9,
        service_ns: service_ns * waits,
        unrest: 0.04 + 0.01 * (nth % 4) as f64,
    };
    let started_unix_ns = CREATED_NS + (3 + 4 * nth) * 1_000_000_000;
    Trial { place, started_unix_ns, ..trial(point, speed, nth) }
}

fn sound(trial: &Trial) -> document::Trial {
    document::Trial::new(trial, &Judgement::default())
}

fn judged(trial: &Trial, finding: Finding) -> document::Trial {
    let findings = Vec::from([finding]);
    document::Trial::new(trial, &Judgement { findings, unchecked: Vec::from([unchecked()]) })
}

fn experiment(name: &str, base: &Point, axes: Vec<Axis>, settings: &[(&str, &str)]) -> Experiment {
    let settings = settings.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
    Experiment { name: name.to_owned(), base: base.clone(), axes, settings: settings.collect() }
}

fn concluded(ended: Ended, sentences: &[&str], found: Option<Found>) -> Option<Conclusion> {
    let sentences = sentences.iter().map(|one| (*one).to_owned()).collect();
    Some(Conclusion { ended, sentences, found })
}

/// A sweep over two axes with two repeats, one of which was disturbed, and a point that was cut off.
pub fn sweep() -> Document {
    let blocks = [("4k", 4096.0, 1.6e6), ("16k", 16_384.0, 2.3e6), ("64k", 65_536.0, 4.2e6)];
    let depths = ["1", "4", "8", "32"];
    let axes = Vec::from([
        axis("queue-depth", Scale::Log2, &depths),
        axis("block-size", Scale::Log2, &["4k", "16k", "64k"]),
    ]);
    let base = short("random read 4 KiB", stream(Pattern::RANDOM, 4096, 1.0, closed(1)), 42);
    let mut trials = Vec::new();
    for repeat in 0..2u32 {
        for depth in depths {
            for (label, bytes, service_ns) in blocks {
                if depth == "32" && label == "64k" {
                    continue;
                }
                let nth = trials.len() as u64;
                let pacing = closed(depth.parse().unwrap());
                let name = format!("random read {label}, queue depth {depth}");
                let load = stream(Pattern::RANDOM, bytes as u64, 1.0, pacing);
                let place = Place {
                    role: Role::Result,
                    coordinates: Vec::from([
                        at("queue-depth", depth, depth.parse().unwrap()),
                        at("block-size", label, bytes),
                    ]),
                    repeat,
                };
                let trial = served(short(&name, load, 42 + nth), service_ns, place, nth);
                trials.push(match (depth, label, repeat) {
                    ("32", "4k", 1) => judged(
                        &trial,
                        finding(
                            "other-load",
                            Severity::Suspect,
                            "nvme0n1 did 4,100 I/Os that were not of this run.",
                            "Repeat it when nothing else uses the device.",
                        ),
                    ),
                    _ => sound(&trial),
                });
            }
        }
    }
    let line = ["fathom", "sweep", "/data/test", "--axis", "queue-depth=1..32", "--repeats", "2"];
    let mut header = header(Command::Sweep, &line, &[file("/data/test")], 24);
    header.experiment = Some(experiment("sweep", &base, axes.clone(), &[("repeats", "2")]));
    let sentences = [
        "Queue depth 8 saturates the target with blocks of 4k: 4,883 IOPS, and more does not help.",
        "Queue depth 8 saturates the target with blocks of 64k: 116 MiB/s, and more does not help.",
    ];
    let cut_off = Vec::from([Vec::from(["32".to_owned(), "64k".to_owned()])]);
    let found = Found::Sweep(SweepFound { axes, cut_off, saved: Vec::new(), all_alike: false });
    Document {
        header,
        trials,
        conclusion: concluded(Ended::Completed, &sentences, Some(found)),
        torn: false,
        conditions: Vec::new(),
    }
}

/// A run of three trials, one of which is void.
pub fn repeats() -> Document {
    let load = stream(Pattern::RANDOM, 4096, 1.0, closed(8));
    let trials = (0..3).map(|repeat| {
        let nth = u64::from(repeat);
        let place = Place { repeat, ..Place::default() };
        let point = short("random read 4 KiB, queue depth 8", load.clone(), 42 + nth);
        let trial = served(point, 1.6e6 + 2e4 * nth as f64, place, nth);
        match repeat {
            1 => judged(
                &trial,
                finding(
                    "page-cache",
                    Severity::Void,
                    "98 % of the reads did not reach nvme0n1.",
                    "Use direct I/O.",
                ),
            ),
            _ => sound(&trial),
        }
    });
    let line = ["fathom", "run", "/data/test", "-q", "8", "--repeats", "3"];
    let header = header(Command::Run, &line, &[file("/data/test")], 3);
    let conclusion = concluded(Ended::Completed, &[], None);
    Document { header, trials: trials.collect(), conclusion, torn: false, conditions: Vec::new() }
}

/// Two sides by turns, of which the second takes an eighth longer, with the conclusion of the
/// experiment itself.
pub fn ab() -> Document {
    let load = stream(Pattern::RANDOM, 4096, 1.0, closed(8));
    let base = short("random read 4 KiB, queue depth 8", load, 42);
    let side = |name: &str, target: u32| {
        let mut point = base.clone();
        point.streams[0].regions[0].target = target;
        AbSide { name: name.to_owned(), point }
    };
    let settings = AbSettings { repeats: 10, margin: 0.05 };
    let mut ab = Ab::new([side("/data/a", 0), side("/data/b", 1)], Vec::new(), settings);
    let mut trials = Vec::new();
    let mut last = None;
    let concluded = loop {
        match ab.next(last.as_ref()) {
            Step::Done(concluded) => break concluded,
            Step::Run(planned) => {
                let nth = trials.len() as u64;
                let slower = if planned.place.coordinates[0].label == "B" { 1.125 } else { 1.0 };
                let restless = 1.0 + 0.003 * (nth * 7 % 5) as f64;
                let trial = served(planned.point, 1.6e6 * slower * restless, planned.place, nth);
                trials.push(sound(&trial));
                last = Some(trial);
            }
        }
    };
    let line = ["fathom", "ab", "/data/a", "/data/b", "-q", "8"];
    let mut header = header(Command::Ab, &line, &[file("/data/a"), file("/data/b")], 20);
    let axes = Vec::from([axis("side", Scale::Categories, &["A", "B"])]);
    header.experiment = Some(experiment("ab", &base, axes, &[("repeats", "10")]));
    let conclusion = Conclusion {
        ended: Ended::Completed,
        sentences: concluded.sentences,
        found: concluded.found.as_ref().map(Found::from),
    };
    Document { header, trials, conclusion: Some(conclusion), torn: false, conditions: Vec::new() }
}

/// A sweep over three axes, with a plot for each value of the third.
pub fn cube() -> Document {
    let patterns = [("sequential", Pattern::SEQUENTIAL, 0.9e6), ("random", Pattern::RANDOM, 2.4e6)];
    let axes = Vec::from([
        axis("read-share", Scale::Linear, &["0", "1"]),
        axis("pattern", Scale::Categories, &["sequential", "random"]),
        axis("queue-depth", Scale::Log2, &["1", "8", "32"]),
    ]);
    let base = short("64 KiB", stream(Pattern::RANDOM, 65_536, 0.0, closed(1)), 42);
    let mut trials = Vec::new();
    for (share, slower) in [("0", 1.5), ("1", 1.0)] {
        for (pattern, how, service_ns) in patterns.clone() {
            for depth in ["1", "8", "32"] {
                let nth = trials.len() as u64;
                let reads: f64 = share.parse().unwrap();
                let load = stream(how.clone(), 65_536, reads, closed(depth.parse().unwrap()));
                let place = Place {
                    role: Role::Result,
                    coordinates: Vec::from([
                        at("read-share", share, reads),
                        named("pattern", pattern),
                        at("queue-depth", depth, depth.parse().unwrap()),
                    ]),
                    repeat: 0,
                };
                let point = short(&format!("{pattern}, {depth}"), load, 42 + nth);
                trials.push(sound(&served(point, service_ns * slower, place, nth)));
            }
        }
    }
    let line = ["fathom", "sweep", "/data/test", "--axis", "read-share=0,1"];
    let mut header = header(Command::Sweep, &line, &[file("/data/test")], 12);
    header.experiment = Some(experiment("sweep", &base, axes.clone(), &[]));
    let found =
        Found::Sweep(SweepFound { axes, cut_off: Vec::new(), saved: Vec::new(), all_alike: false });
    Document {
        header,
        trials,
        conclusion: concluded(Ended::Completed, &[], Some(found)),
        torn: false,
        conditions: Vec::new(),
    }
}

/// A sweep over names with a void trial. It was cut off before its last point, so it has no
/// conclusion.
pub fn families() -> Document {
    let patterns = [("sequential", Pattern::SEQUENTIAL, 0.9e6), ("random", Pattern::RANDOM, 2.4e6)];
    let axes = Vec::from([
        axis("pattern", Scale::Categories, &["sequential", "random"]),
        axis("payload", Scale::Categories, &["random", "zeros", "ramp"]),
    ]);
    let base = short("write 64 KiB", stream(Pattern::RANDOM, 65_536, 0.0, closed(4)), 42);
    let mut trials = Vec::new();
    for (pattern, how, service_ns) in patterns {
        for payload in ["random", "zeros", "ramp"] {
            let nth = trials.len() as u64;
            if nth == 5 {
                break;
            }
            let name = format!("{pattern} write 64 KiB, {payload}");
            let load = stream(how.clone(), 65_536, 0.0, closed(4));
            let place = Place {
                role: Role::Result,
                coordinates: Vec::from([named("pattern", pattern), named("payload", payload)]),
                repeat: 0,
            };
            let faster = if payload == "zeros" { 0.4 } else { 1.0 };
            let trial = served(short(&name, load, 42 + nth), service_ns * faster, place, nth);
            trials.push(match nth {
                3 => judged(
                    &trial,
                    finding(
                        "io-errors",
                        Severity::Void,
                        "12 I/Os failed, the first with EIO at offset 28672.",
                        "Look into the kernel's log (dmesg).",
                    ),
                ),
                _ => sound(&trial),
            });
        }
    }
    let line = ["fathom", "sweep", "/data/test", "--axis", "pattern=sequential,random"];
    let mut header = header(Command::Sweep, &line, &[file("/data/test")], 6);
    header.experiment = Some(experiment("sweep", &base, axes, &[]));
    Document { header, trials, conclusion: None, torn: false, conditions: Vec::new() }
}

/// The figures that a search has for a trial, as in the report.
fn probe(value: f64, trial: &Trial, quantile: Quantile, meets: Option<bool>) -> Probe {
    let record = &trial.record;
    let times = stats::response_time(record, None, None, quantile);
    Probe {
        value,
        trials: 1,
        throughput: stats::iops(record, None, None).unwrap(),
        response_time_ns: times,
        meets,
    }
}

/// A search for the saturating depth, with its official run.
pub fn peak() -> Document {
    let mut trials = Vec::new();
    let mut probes = Vec::new();
    let load = |depth| stream(Pattern::RANDOM, 4096, 1.0, closed(depth));
    let place = |role, depth: u32| Place {
        role,
        coordinates: Vec::from([at("queue-depth", &depth.to_string(), f64::from(depth))]),
        repeat: 0,
    };
    for depth in [1, 4, 16, 64, 8, 6, 12] {
        let nth = trials.len() as u64;
        let name = format!("random read 4 KiB, queue depth {depth}");
        let point = short(&name, load(depth), 42 + nth);
        let trial = served(point, 1.6e6, place(Role::Probe, depth), nth);
        probes.push(probe(f64::from(depth), &trial, Quantile(0.5), None));
        trials.push(sound(&trial));
    }
    probes.sort_by(|one, other| one.value.total_cmp(&other.value));
    let official = short("random read 4 KiB, queue depth 8, official", load(8), 99);
    let nth = trials.len() as u64;
    trials.push(sound(&served(official, 1.6e6, place(Role::Official, 8), nth)));
    let best = probes.iter().map(|one| one.throughput).max_by(|a, b| a.value.total_cmp(&b.value));
    let line = ["fathom", "peak", "/data/test", "--official", "5m"];
    let mut header = header(Command::Peak, &line, &[file("/data/test")], 9);
    let base = short("random read 4 KiB", load(1), 42);
    let settings = [("enough", "0.95"), ("official", "5 min")];
    header.experiment = Some(experiment("peak", &base, Vec::new(), &settings));
    let found = Found::Peak(PeakFound {
        axis: "queue-depth".to_owned(),
        measure: "iops".to_owned(),
        enough: Some(0.95),
        objective: None,
        probes,
        choice: Some(8.0),
        equals: Vec::from([8.0, 12.0, 16.0, 64.0]),
        best,
        official_is_open: false,
    });
    let sentences =
        ["Queue depth 8 saturates this target: 4,826 IOPS, p50 1.67 ms (in the probes 100 % \
                      of the best)."];
    Document {
        header,
        trials,
        conclusion: concluded(Ended::Completed, &sentences, Some(found)),
        torn: false,
        conditions: Vec::new(),
    }
}

/// A search for the highest load that meets an objective.
pub fn objective() -> Document {
    let mut trials = Vec::new();
    let mut probes = Vec::new();
    let load = |rate| {
        let pacing = Pacing::open(Rate(rate), Arrivals::Poisson, 64);
        stream(Pattern::RANDOM, 4096, 1.0, pacing)
    };
    for rate in [500.0, 1000.0, 2000.0, 4000.0, 2800.0, 3400.0] {
        let nth = trials.len() as u64;
        let name = format!("random read 4 KiB, {rate} IOPS offered");
        let place = Place {
            role: Role::Probe,
            coordinates: Vec::from([at("rate", &rate.to_string(), rate)]),
            repeat: 0,
        };
        // Times as in M/M/1, with at most 4,400 IOPS.
        let service_ns = 2.2e5 / (1.0 - rate / 4400.0);
        let speed = Speed { iops: rate, service_ns, unrest: 0.02 };
        let trial = Trial { place, ..trial(short(&name, load(rate), 42 + nth), speed, nth) };
        let p99 = Quantile(0.99);
        let known = probe(rate, &trial, p99, None);
        let meets = known.response_time_ns.map(|time| time.value <= 2e6);
        probes.push(Probe { meets, ..known });
        trials.push(sound(&trial));
    }
    probes.sort_by(|one, other| one.value.total_cmp(&other.value));
    let choice = probes.iter().rfind(|one| one.meets == Some(true));
    let (choice, best) = (choice.map(|one| one.value), choice.map(|one| one.throughput));
    let line = ["fathom", "peak", "/data/test", "--axis", "rate", "--objective", "p99<=2ms"];
    let mut header = header(Command::Peak, &line, &[file("/data/test")], 6);
    let base = short("random read 4 KiB", load(500.0), 42);
    header.experiment = Some(experiment("peak", &base, Vec::new(), &[("objective", "p99<=2ms")]));
    let found = Found::Peak(PeakFound {
        axis: "rate".to_owned(),
        measure: "iops".to_owned(),
        enough: None,
        objective: Some("p99 <= 2 ms".to_owned()),
        probes,
        choice,
        equals: choice.into_iter().collect(),
        best,
        official_is_open: false,
    });
    let sentences = ["2,800 IOPS is the highest load at which p99 stays below 2 ms."];
    Document {
        header,
        trials,
        conclusion: concluded(Ended::Completed, &sentences, Some(found)),
        torn: false,
        conditions: Vec::new(),
    }
}

/// A cell of the published map of an AWS i3en.3xlarge.
struct Published {
    write: u32,
    read: u32,
    write_bandwidth: f64,
    read_rate: f64,
    p50: Option<f64>,
    p95: Option<f64>,
    admissible: bool,
}

/// The published figures of Diskplorer's chart.
fn published() -> Vec<Published> {
    let rows = include_str!("i3en.3xlarge.csv").lines().skip(1);
    rows.map(|row| {
        let fields: Vec<&str> = row.split(',').collect();
        Published {
            write: fields[0].parse().unwrap(),
            read: fields[1].parse().unwrap(),
            write_bandwidth: fields[2].parse().unwrap(),
            read_rate: fields[3].parse().unwrap(),
            p50: fields[4].parse().ok(),
            p95: fields[5].parse().ok(),
            admissible: fields[6] == "1",
        }
    })
    .collect()
}

/// The kind that a cell would have in an adaptive map.
fn kind(cell: &Published, border: bool) -> CellKind {
    match cell.admissible {
        true if cell.write.is_multiple_of(5) && cell.read.is_multiple_of(4) => CellKind::Measured,
        true if border && cell.write.is_multiple_of(3) => CellKind::Imprecise,
        true => CellKind::Filled,
        false if border && cell.write.is_multiple_of(2) => CellKind::Overloaded,
        false => CellKind::Beyond,
    }
}

/// The number of steps on each axis of the published map.
const SIDE: u32 = 21;

/// Its cells as in an adaptive map.
fn map_cells(published: &[Published]) -> Vec<MapCell> {
    let admissible = |write: u32, read: u32| {
        published.get((write * SIDE + read) as usize).is_none_or(|cell| cell.admissible)
    };
    published
        .iter()
        .map(|cell| {
            let left = cell.read == 0 || admissible(cell.write, cell.read - 1);
            let right = cell.read + 1 == SIDE || admissible(cell.write, cell.read + 1);
            let kind = kind(cell, if cell.admissible { !right } else { left });
            let half = match kind {
                CellKind::Measured => Some(0.02),
                CellKind::Imprecise => Some(0.14),
                _ => None,
            };
            let known = |value: Option<f64>, times: f64| {
                let value = value.filter(|_| cell.admissible)? * times;
                Some(Estimate { value, half_width: half.map(|half| half * value) })
            };
            let tail = (kind != CellKind::Imprecise).then_some(3.4);
            let response_time_ns = Vec::from([
                known(cell.p50, 1.0),
                known(cell.p95, 1.0),
                known(cell.p95, 1.6),
                tail.and_then(|times| known(cell.p95, times)),
            ]);
            MapCell { write: cell.write, read: cell.read, kind, response_time_ns, doubt: None }
        })
        .collect()
}

/// The trials of three of its cells.
fn map_trials(published: &[Published]) -> Vec<document::Trial> {
    let mut trials = Vec::new();
    for (write, read) in [(5u32, 4u32), (5, 8), (10, 4)] {
        let cell = &published[(write * SIDE + read) as usize];
        let nth = trials.len() as u64;
        let load = stream(Pattern::RANDOM, 4096, 1.0, closed(4));
        let place = Place {
            role: Role::Result,
            coordinates: Vec::from([
                at("write-bandwidth", &cell.write_bandwidth.to_string(), cell.write_bandwidth),
                at("read-rate", &cell.read_rate.to_string(), cell.read_rate),
            ]),
            repeat: 0,
        };
        let point = short(&format!("cell {write}, {read}"), load, 42 + nth);
        trials.push(sound(&served(point, 1e6, place, nth)));
    }
    trials
}

/// A latency map of 21 x 21 cells. p50 and p95 are the published figures. p99 and p99.9 are not
/// published, so they are in proportion to p95. The document has only three of its trials.
pub fn map() -> Document {
    let published = published();
    let steps = |of: fn(&Published) -> (u32, f64)| {
        let mut steps: Vec<(u32, f64)> = published.iter().map(of).collect();
        steps.sort_by_key(|step| step.0);
        steps.dedup_by_key(|step| step.0);
        steps.into_iter().map(|step| step.1).collect::<Vec<f64>>()
    };
    let validation = |quantile: f64, median_error: f64, largest_error: f64| Validation {
        quantile: Quantile(quantile),
        cells: 12,
        median_error,
        largest_error,
    };
    let found = Found::Map(MapFound {
        quantiles: [0.5, 0.95, 0.99, 0.999].map(Quantile).to_vec(),
        write_bandwidths: steps(|cell| (cell.write, cell.write_bandwidth)),
        read_rates: steps(|cell| (cell.read, cell.read_rate)),
        cells: map_cells(&published),
        validation: Vec::from([
            validation(0.5, 0.021, 0.064),
            validation(0.95, 0.043, 0.181),
            validation(0.99, 0.061, 0.222),
        ]),
        drift: Some(0.013),
        doubts: Vec::from(["The p99.9 of 8 cells at the border rests on too few I/Os.".to_owned()]),
    });
    let line = ["fathom", "map", "/dev/nvme0n1", "--destroy", "/dev/nvme0n1"];
    let mut header = header(Command::Map, &line, &[file("/dev/nvme0n1")], 3);
    let base = short("map", stream(Pattern::RANDOM, 4096, 1.0, closed(4)), 42);
    header.experiment = Some(experiment("map", &base, Vec::new(), &[("grid", "21")]));
    let sentences = [
        "The target carries up to 231k reads/s without writes, and up to 972 MiB/s (1019 \
                      MB/s) of writes; reads keep p95 <= 1 ms up to 219k reads/s without writes, up \
                      to 146k reads/s beside half of those writes.",
    ];
    Document {
        header,
        trials: map_trials(&published),
        conclusion: concluded(Ended::Completed, &sentences, Some(found)),
        torn: false,
        conditions: Vec::new(),
    }
}

/// Rounds of writes on a drive whose cache fills. The rate then settles slowly or never.
fn rounds(paces: &[f64]) -> (Vec<document::Trial>, Vec<Round>) {
    let mut rounds = Vec::new();
    let mut trials = Vec::new();
    for (&pace, number) in paces.iter().zip(1u32..) {
        let load = stream(Pattern::RANDOM, 4096, 0.0, closed(8));
        let name = format!("round {number}: random write 4 KiB");
        let place = Place {
            role: Role::Result,
            coordinates: Vec::from([at("round", &number.to_string(), f64::from(number))]),
            repeat: number - 1,
        };
        let nth = u64::from(number);
        let trial = served(short(&name, load, 42 + nth), SERVERS / pace * 1e9, place, nth);
        let value = stats::iops(&trial.record, None, Some(Direction::Write)).unwrap();
        rounds.push(Round { number, value });
        trials.push(sound(&trial));
    }
    (trials, rounds)
}

fn sustained(paces: &[f64], sentence: &str) -> Document {
    let (trials, rounds) = rounds(paces);
    let values: Vec<f64> = rounds.iter().map(|round| round.value.value).collect();
    let state = stats::steady_state(&values).unwrap();
    let steady = state.range <= 0.2 * state.mean && state.excursion <= 0.1 * state.mean;
    let line = ["fathom", "sustain", "/dev/nvme0n1", "--test", "write-saturation"];
    let mut header = header(Command::Sustain, &line, &[file("/dev/nvme0n1")], 25);
    let base = short("random write 4 KiB", stream(Pattern::RANDOM, 4096, 0.0, closed(8)), 42);
    header.experiment =
        Some(experiment("write-saturation", &base, Vec::new(), &[("rounds", "25")]));
    let found = Found::Sustain(SustainFound {
        test: "write-saturation".to_owned(),
        watched: "IOPS of random writes 4 KiB".to_owned(),
        steady_from: steady.then(|| rounds.len() as u32 - 4),
        level_from: None,
        rounds,
        steadiness: Some(SteadyState {
            mean: state.mean,
            range: state.range,
            excursion: state.excursion,
        }),
    });
    Document {
        header,
        trials,
        conclusion: concluded(Ended::Completed, &[sentence], Some(found)),
        torn: false,
        conditions: Vec::new(),
    }
}

/// Rounds of write saturation that reach a steady state.
pub fn sustain() -> Document {
    let paces =
        [4200.0, 4100.0, 3900.0, 2600.0, 1900.0, 1500.0, 1310.0, 1290.0, 1300.0, 1280.0, 1290.0];
    sustained(&paces, "Steady from round 7 on: 1,260 IOPS, 30 % of what the fresh drive did.")
}

/// Rounds of write saturation that reach no steady state.
pub fn restless() -> Document {
    let paces = [4200.0, 1500.0, 3900.0, 1200.0, 3600.0, 1400.0];
    sustained(
        &paces,
        "No steady state within 6 rounds: the last five differ by 114 % of their mean.",
    )
}

/// A test of `sustain` with these trials and this result.
fn tested(
    test: &str,
    axes: Vec<Axis>,
    trials: Vec<document::Trial>,
    found: SustainFound,
) -> Document {
    let line = ["fathom", "sustain", "/dev/nvme0n1", "--test", test];
    let mut header = header(Command::Sustain, &line, &[file("/dev/nvme0n1")], trials.len() as u32);
    let base = short("random write 4 KiB", stream(Pattern::RANDOM, 4096, 0.0, closed(8)), 42);
    header.experiment = Some(experiment(test, &base, axes, &[("test", test)]));
    let sentence = "What the test showed, in words.";
    let found = Some(Found::Sustain(found));
    Document {
        header,
        trials,
        conclusion: concluded(Ended::Completed, &[sentence], found),
        torn: false,
        conditions: Vec::new(),
    }
}

/// Five steady rounds of random writes, which precede the main part of a test.
fn steady_rounds(test: &str) -> (Vec<document::Trial>, SustainFound) {
    let (trials, rounds) = rounds(&[1300.0, 1290.0, 1310.0, 1280.0, 1300.0]);
    let values: Vec<f64> = rounds.iter().map(|round| round.value.value).collect();
    let state = stats::steady_state(&values).unwrap();
    let found = SustainFound {
        test: test.to_owned(),
        watched: "IOPS of random write 4 KiB".to_owned(),
        rounds,
        steady_from: Some(1),
        level_from: None,
        steadiness: Some(SteadyState {
            mean: state.mean,
            range: state.range,
            excursion: state.excursion,
        }),
    };
    (trials, found)
}

/// Increasing demand, in the steady state.
pub fn demand() -> Document {
    let (mut trials, found) = steady_rounds("demand-intensity");
    let axes = Vec::from([
        axis("workers", Scale::Log2, &["8", "2", "1"]),
        axis("queue-depth", Scale::Log2, &["8/worker", "2/worker", "1/worker"]),
    ]);
    for workers in [8u32, 2, 1] {
        for depth in [8u32, 2, 1] {
            let nth = trials.len() as u64;
            let load = stream(Pattern::RANDOM, 4096, 0.0, closed(workers * depth));
            let coordinates = Vec::from([
                at("workers", &workers.to_string(), f64::from(workers)),
                at("queue-depth", &format!("{depth}/worker"), f64::from(depth)),
            ]);
            let place = Place { role: Role::Result, coordinates, repeat: 0 };
            let name = format!("{workers} workers with {depth} in flight each");
            trials.push(sound(&served(short(&name, load, 42 + nth), 6.2e6, place, nth)));
        }
    }
    tested("demand-intensity", axes, trials, found)
}

/// Bursts of writes after pauses of increasing length, in the steady state.
pub fn pauses() -> Document {
    let (mut trials, found) = steady_rounds("host-idle-recovery");
    let axes = Vec::from([axis("idle", Scale::Linear, &["5 s", "50 s"])]);
    for (label, idle, pace) in [("5 s", 5.0, 1500.0), ("50 s", 50.0, 2600.0)] {
        for repeat in 0..3u32 {
            let nth = trials.len() as u64;
            let load = stream(Pattern::RANDOM, 4096, 0.0, closed(8));
            let coordinates = Vec::from([at("idle", label, idle)]);
            let place = Place { role: Role::Result, coordinates, repeat };
            let name = format!("burst {} after {label} idle", repeat + 1);
            let point = short(&name, load, 42 + nth);
            trials.push(sound(&served(point, SERVERS / pace * 1e9, place, nth)));
        }
    }
    tested("host-idle-recovery", axes, trials, found)
}

/// Large writes, small writes, and large writes again that have to recover from the small ones.
pub fn phases() -> Document {
    let axes = Vec::from([axis("phase", Scale::Categories, &["large", "small", "large again"])]);
    let mut trials = Vec::new();
    for (name, block, paces) in [
        ("large", 1u64 << 20, [400.0, 390.0, 395.0]),
        ("small", 8192, [3000.0, 1400.0, 1200.0]),
        ("large again", 1 << 20, [120.0, 300.0, 390.0]),
    ] {
        for (pace, repeat) in paces.into_iter().zip(0u32..) {
            let nth = trials.len() as u64;
            let load = stream(Pattern::RANDOM, block, 0.0, closed(8));
            let place = Place {
                role: Role::Result,
                coordinates: Vec::from([named("phase", name)]),
                repeat,
            };
            let does = format!("{name}, {} of 3: write {} KiB", repeat + 1, block >> 10);
            let point = short(&does, load, 42 + nth);
            trials.push(sound(&served(point, SERVERS / pace * 1e9, place, nth)));
        }
    }
    let found = SustainFound {
        test: "cross-stimulus-recovery".to_owned(),
        watched: String::new(),
        rounds: Vec::new(),
        steady_from: None,
        level_from: None,
        steadiness: None,
    };
    tested("cross-stimulus-recovery", axes, trials, found)
}

/// Rounds of several points each. The value of a round is the mean response time of one of them.
pub fn matrix() -> Document {
    let axes = Vec::from([
        axis("read-share", Scale::Linear, &["100%", "0%"]),
        axis("block-size", Scale::Log2, &["8k", "4k"]),
    ]);
    let (mut trials, mut rounds) = (Vec::new(), Vec::new());
    for number in 1..=6u32 {
        for (share, reads) in [("100%", 1.0), ("0%", 0.0)] {
            for (label, block) in [("8k", 8192u64), ("4k", 4096)] {
                let nth = trials.len() as u64;
                let load = stream(Pattern::RANDOM, block, reads, closed(1));
                let coordinates = Vec::from([
                    at("read-share", share, reads),
                    at("block-size", label, block as f64),
                ]);
                let place = Place { role: Role::Result, coordinates, repeat: number - 1 };
                let name = format!("round {number}: {label}, {share} reads");
                let settles = 1.0 + 1.0 / f64::from(number * number);
                let service_ns = (2e5 - 1e5 * reads) * settles * (block as f64 / 4096.0).sqrt();
                let trial = served(short(&name, load, 42 + nth), service_ns, place, nth);
                if reads == 0.0 && block == 4096 {
                    let value = trial.record.total(None).response_time().mean().unwrap();
                    rounds.push(Round { number, value: Estimate { value, half_width: None } });
                }
                trials.push(sound(&trial));
            }
        }
    }
    let values: Vec<f64> = rounds.iter().map(|round| round.value.value).collect();
    let state = stats::steady_state(&values[1..]).unwrap();
    let found = SustainFound {
        test: "latency".to_owned(),
        watched: "mean response time of random write 4 KiB".to_owned(),
        rounds,
        steady_from: Some(2),
        level_from: None,
        steadiness: Some(SteadyState {
            mean: state.mean,
            range: state.range,
            excursion: state.excursion,
        }),
    };
    tested("latency", axes, trials, found)
}

/// All experiments by name.
pub fn all() -> Vec<(&'static str, Document)> {
    Vec::from([
        ("sweep", sweep()),
        ("repeats", repeats()),
        ("ab", ab()),
        ("cube", cube()),
        ("families", families()),
        ("peak", peak()),
        ("objective", objective()),
        ("map", map()),
        ("sustain", sustain()),
        ("restless", restless()),
        ("demand", demand()),
        ("pauses", pauses()),
        ("phases", phases()),
        ("matrix", matrix()),
    ])
}
