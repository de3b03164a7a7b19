//! Tests the search for the peak against published curves. Each curve is the table of a simulated
//! device whose bandwidth differs by 3 % from run to run. Every probe is a run on that device.

use std::num::NonZero;
use std::thread;

use fathom_core::experiment::{Experiment, Found, PROBES_MAX, Peak, Search, Step, Vary};
use fathom_core::spec::BackendKind;
use fathom_core::trial::{Place, Trial};

use super::*;

const WRITE_CONCURRENCY: &str = include_str!("../../../core/tests/data/write-concurrency.csv");
const ACCESS_MIX: &str = include_str!("../../../core/tests/data/access-mix.csv");
const SEEDS: u64 = 200;
const DEEPEST: u32 = 256;

/// Bandwidth in MB/s by rising concurrency, with the name of the measurement.
type Curve = (String, Vec<(u32, f64)>);

fn rows(text: &str) -> impl Iterator<Item = Vec<&str>> {
    let lines = text.lines().filter(|line| !line.starts_with('#')).skip(1);
    lines.map(|line| line.split(',').collect())
}

/// One curve for each payload and block size. Each is the mean of its runs.
fn write_concurrency() -> Vec<Curve> {
    let run = |row: Vec<&str>| {
        let name = format!("{} {}", row[0], row[1]);
        (name, row[4].parse::<u32>().unwrap(), row[6].parse::<f64>().unwrap())
    };
    let runs: Vec<(String, u32, f64)> = rows(WRITE_CONCURRENCY).map(run).collect();
    let mean = |runs: &[(String, u32, f64)]| {
        let sum: f64 = runs.iter().map(|run| run.2).sum();
        (runs[0].1, sum / runs.len() as f64)
    };
    let curve = |runs: &[(String, u32, f64)]| {
        let points = runs.chunk_by(|one, other| one.1 == other.1).map(mean);
        (runs[0].0.clone(), points.collect())
    };
    runs.chunk_by(|one, other| one.0 == other.0).map(curve).collect()
}

/// One curve for each drive and share.
fn access_mix() -> Vec<Curve> {
    let curve = |row: Vec<&str>| {
        let value = |place: usize| row[place].parse().unwrap();
        let points = (1..).zip(3..6).map(|(depth, place)| (depth, value(place)));
        (format!("{} {} {}", row[0], row[1], row[2]), points.collect())
    };
    rows(ACCESS_MIX).map(curve).collect()
}

/// The bandwidth of the device with this number of I/Os in flight.
fn at(points: &[(u32, f64)], in_flight: u32) -> f64 {
    let next = points.partition_point(|point| point.0 <= in_flight);
    let before = next.checked_sub(1).map(|place| points[place]);
    match (before, points.get(next)) {
        (None, first) => first.map_or(0.0, |&(n, rate)| rate * f64::from(in_flight) / f64::from(n)),
        (Some((_, rate)), None) => rate,
        (Some((low, slow)), Some(&(high, fast))) => {
            let ln = |n: u32| f64::from(n).ln();
            slow * (fast / slow).powf((ln(in_flight) - ln(low)) / (ln(high) - ln(low)))
        }
    }
}

/// The lowest setting that reaches 95 % of the best.
fn truth(points: &[(u32, f64)]) -> u32 {
    let best = (1..=DEEPEST).map(|depth| at(points, depth)).fold(0.0, f64::max);
    (1..=DEEPEST).find(|&depth| at(points, depth) >= 0.95 * best).unwrap()
}

/// The curve scaled to a best of 200 I/Os per second. The place of the knee does not depend on
/// this, but the time that the test takes does.
fn device(points: &[(u32, f64)], seed: u64) -> sim::Options {
    let best = points.iter().map(|point| point.1).fold(0.0, f64::max);
    let bytes = |rate: f64| (rate / best * 200.0 * MIB as f64).round();
    let points = points.iter().map(|&(n, rate)| format!("{n}:{}/s", bytes(rate)));
    let points: Vec<String> = points.collect();
    let text = format!("table,points={},run-noise=3%,seed={seed}", points.join("+"));
    text.parse().expect(&text)
}

/// The answer and the number of probes.
fn search(device: &sim::Options, seed: u64) -> (f64, usize) {
    let mut base = with(closed(1), |stream| {
        stream.kind_mut().block_sizes = BlockSizes::one(Bytes(MIB));
        stream.kind_mut().read_share = 0.0;
    });
    base.seed = seed << 32;
    let search = Search::Saturation { vary: Vary::QueueDepth, up_to: DEEPEST, enough: 0.95 };
    let mut peak = Peak::new(base, search, None);
    let (mut last, mut probes) = (None, 0);
    loop {
        let planned = match peak.next(last.as_ref()) {
            Step::Run(planned) => *planned,
            Step::Done(conclusion) => {
                let Some(Found::Peak(found)) = conclusion.found else { panic!("{conclusion:?}") };
                return (found.choice.expect("something was probed"), probes);
            }
        };
        probes += 1;
        let mut watcher = Enough(&peak);
        let never = AtomicBool::new(false);
        let devices = Devices::Simulated(device);
        let record = run_point(&planned.point, devices, &never, &mut watcher).unwrap();
        last = Some(Trial {
            place: Place::default(),
            point: planned.point,
            backend: BackendKind::Sim,
            backend_reason: String::new(),
            started_unix_ns: 0,
            record,
            counters: None,
            traced: None,
            breakdown: None,
            hosts: Vec::new(),
            is_void: false,
            doubt: None,
        });
    }
}

/// Ends a probe that has shown enough, as a session does.
struct Enough<'a>(&'a Peak);

impl Observer for Enough<'_> {
    fn look(&mut self, so_far: &Record) -> bool {
        self.0.enough(so_far)
    }
}

/// The number of searches on a curve that end within an octave of the truth, the highest number of
/// probes, and the sum of all probes.
fn searches(points: &[(u32, f64)]) -> (u64, usize, usize) {
    let truth = f64::from(truth(points));
    let (mut within, mut most, mut all) = (0, 0, 0);
    for seed in 1..=SEEDS {
        let (answer, probes) = search(&device(points, seed), seed);
        within += u64::from((answer / truth).log2().abs() <= 1.0);
        (most, all) = (most.max(probes), all + probes);
    }
    (within, most, all)
}

#[test]
fn on_devices_with_the_published_curves_the_answer_is_within_an_octave() {
    let curves: Vec<Curve> = write_concurrency().into_iter().chain(access_mix()).collect();
    assert_eq!(curves.len(), 4 + 16);
    let threads = thread::available_parallelism().map_or(1, NonZero::get);
    let share = curves.chunks(curves.len().div_ceil(threads));
    let found: Vec<(u64, usize, usize)> = thread::scope(|scope| {
        let part = |part: &'_ [Curve]| part.iter().map(|one| searches(&one.1)).collect::<Vec<_>>();
        let parts: Vec<_> = share.map(|chunk| scope.spawn(move || part(chunk))).collect();
        parts.into_iter().flat_map(|part| part.join().unwrap()).collect()
    });
    let each = curves.iter().zip(&found);
    let lines = each.map(|((name, _), (within, most, _))| format!("{name}: {within}, {most}"));
    let lines = lines.collect::<Vec<_>>().join("\n");
    let all = SEEDS * curves.len() as u64;
    let within: u64 = found.iter().map(|one| one.0).sum();
    let most = found.iter().map(|one| one.1).max().unwrap();
    let probes: usize = found.iter().map(|one| one.2).sum();
    println!("{lines}\n{within} of {all}, {:.1} probes on average", probes as f64 / all as f64);
    assert!(within as f64 >= 0.97 * all as f64, "{within} of {all}\n{lines}");
    assert!(most <= PROBES_MAX && PROBES_MAX <= 15, "{most} probes");
}
