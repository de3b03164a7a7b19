//! Measures how often a comparison of two sides is wrong: sides that are alike, on simulated devices
//! with noise between trials and on a real file, and sides that differ by 5 %. The engine runs
//! every trial, in the order A B B A.

use std::fmt::Write as _;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Instant;

use fathom_core::measure::Record;
use fathom_core::spec::{Access, BackendKind};
use fathom_core::stats::{
    Criterion, Design, Figure, Outcome, Sample, decide, difference, standard_deviation,
};
use fathom_core::{Bytes, Quantile, Span, SplitMix64};
use fathom_engine::target::{self, Opening, Overwrite};
use fathom_engine::{Devices, Nobody, host, run_point, sim};

use crate::engine::random_reads;
use crate::peers::{Scratch, StandIn, folder, stops_on_signals};

/// The figures that are compared, as one family.
const FIGURES: [(Figure, &str); 5] = [
    (Figure::Iops, "IOPS"),
    (Figure::Mean, "mean"),
    (Figure::Quantile(Quantile(0.5)), "p50"),
    (Figure::Quantile(Quantile(0.99)), "p99"),
    (Figure::Quantile(Quantile(0.999)), "p99.9"),
];

/// The level of a comparison.
const ALPHA: f64 = 0.05;

/// The amount of work of the bench.
#[derive(Clone, Copy, Debug)]
pub struct CompareSize {
    /// Comparisons on simulated devices, of each kind.
    simulated: u64,
    /// Comparisons on the real file.
    real: u64,
    /// The length of a trial on a simulated device, in virtual time.
    window: Span,
    /// Cells of the map.
    cells: usize,
}

impl CompareSize {
    /// This many comparisons of each kind.
    pub fn of(comparisons: u64) -> Self {
        Self { simulated: comparisons, real: comparisons.min(Self::FULL.real), ..Self::FULL }
    }

    /// Enough to tell 5 % from 8 %.
    pub const FULL: Self =
        Self { simulated: 500, real: 100, window: Span::from_ms(200), cells: 441 };
    /// Just enough to run every row.
    #[cfg(test)]
    const SMOKE: Self = Self { simulated: 6, real: 2, window: Span::from_ms(100), cells: 9 };
}

/// What makes the trials of a simulated device differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Trials {
    Normal,
    Skewed,
    Drifting,
    /// By 1.5 %, and the second side takes 5 % longer.
    Slower,
}

impl Trials {
    fn name(self) -> &'static str {
        match self {
            Self::Normal => "normal, 3 %",
            Self::Skewed => "skewed: 3 % x a log-normal, a few far slower",
            Self::Drifting => "drifting: 3 %, and a fifth slower at the end",
            Self::Slower => "B 5 % slower, normal, 1.5 %",
        }
    }

    /// The device of one trial of a side, `began` after the session's start.
    fn device(self, seed: u64, side: usize, began: Span, session: Span) -> sim::Options {
        // Half of the devices have times of all magnitudes, and half have times that are nearly
        // alike, so that the trials' distributions hardly overlap.
        let alike = "queue,servers=8,noise=2%,noise-every=1ms";
        let text = match seed.is_multiple_of(2) && self != Self::Slower {
            true => "queue,servers=8,distribution=exponential",
            false => alike,
        };
        let mut options: sim::Options = text.parse().unwrap_or_else(|why| panic!("{text}: {why}"));
        let mut chance = SplitMix64(seed ^ (began.0 << 8));
        let mut time = 100e3;
        match self {
            Self::Normal => options.noise.between = 0.03,
            Self::Skewed => time *= 1.0 + 0.03 * chance.normal().exp(),
            Self::Drifting => {
                options.noise.between = 0.03;
                options.noise.drift = Some(sim::Drift { change: -0.2, over: session });
            }
            Self::Slower => {
                options.noise.between = 0.015;
                time *= if side == 1 { 1.05 } else { 1.0 };
            }
        }
        if let sim::Model::Queue(queue) = &mut options.model {
            queue.service_time = Span(time as u64);
        }
        sim::Options { seed: seed.wrapping_mul(1_000_003) + 17, ..options }.at(began)
    }
}

/// What is kept of a trial.
fn sample(record: &Record) -> Sample {
    let cpu: Option<u64> = record.workers.iter().map(|one| one.cpu.map(|cpu| cpu.0)).sum();
    Sample { flow: record.total(None), window: record.window, cpu: cpu.map(Span) }
}

/// Runs this many trials of each of two sides, in the order A B B A.
fn interleaved(
    each: usize,
    mut run: impl FnMut(usize, usize) -> Result<Sample, String>,
) -> Result<[Vec<Sample>; 2], String> {
    let mut sides = [Vec::new(), Vec::new()];
    for nth in 0..each {
        for turn in 0..2 {
            let side = (nth + turn) % 2;
            sides[side].push(run(side, 2 * nth + turn)?);
        }
    }
    Ok(sides)
}

fn simulated(
    trials: Trials,
    (each, window): (usize, Span),
    seed: u64,
) -> Result<[Vec<Sample>; 2], String> {
    let session = Span(window.0 * 2 * each as u64);
    interleaved(each, |side, nth| {
        let device = trials.device(seed, side, Span(window.0 * nth as u64), session);
        let mut point = random_reads(8, device.size, window);
        // What chance decides in a run of a device follows from both seeds.
        point.seed = seed * 1000 + nth as u64;
        let never = AtomicBool::new(false);
        let record = run_point(&point, Devices::Simulated(&device), &never, &mut Nobody);
        record.map(|record| sample(&record)).map_err(|error| error.to_string())
    })
}

/// How many comparisons found a difference.
#[derive(Clone, Debug, Default)]
struct Found {
    comparisons: u32,
    /// In any of the figures, decided together.
    any: u32,
    /// In each of them, decided together.
    together: [u32; FIGURES.len()],
    /// In each of them, decided alone.
    alone: [u32; FIGURES.len()],
    /// The standard deviation of the trials of the first side, as a share, added up.
    scatter: [f64; FIGURES.len()],
}

impl Found {
    fn add(&mut self, sides: &[Vec<Sample>; 2], design: Design, margin: f64) {
        let [a, b] = sides.each_ref().map(|side| side.iter().collect::<Vec<&Sample>>());
        let all = FIGURES.map(|(figure, _)| difference(figure, &a, &b, design).difference);
        let criterion = Criterion { margin, alpha: ALPHA };
        let outcomes = |of| {
            let is_found = |outcome| matches!(outcome, Outcome::Less | Outcome::More);
            // A slow machine has too few I/Os for the highest percentile.
            let decisions = decide(of, criterion).into_iter();
            decisions
                .map(|one| u32::from(one.is_some_and(|one| is_found(one.outcome))))
                .collect::<Vec<u32>>()
        };
        let together = outcomes(&all);
        self.comparisons += 1;
        self.any += u32::from(together.contains(&1));
        for (place, found) in together.into_iter().enumerate() {
            self.together[place] += found;
            self.alone[place] += outcomes(&all[place..=place])[0];
            let own = a.iter().filter_map(|one| FIGURES[place].0.of(&[one])).map(f64::ln);
            let own: Vec<f64> = own.collect();
            let of_all = own.len() as f64 / (own.len() as f64 - 1.0);
            self.scatter[place] += standard_deviation(&own).unwrap_or(0.0) * of_all.sqrt();
        }
    }

    fn share(&self, count: u32) -> f64 {
        f64::from(count) / f64::from(self.comparisons) * 100.0
    }

    /// A line of the table of false alarms.
    fn alarms(&self, what: &str) -> String {
        let alone = self.alone.map(|count| format!("{:.1} %", self.share(count)));
        let any = self.share(self.any);
        let goal = if any <= 100.0 * ALPHA { "met" } else { "missed" };
        let count = self.comparisons;
        let row = format!("| {what} | {count} | {any:.1} %: {goal} | {} |\n", alone.join(" | "));
        eprint!("{row}");
        row
    }

    /// Lines of the table of differences that are there.
    fn power(&self, what: &str) -> String {
        let cells = |of: &dyn Fn(usize) -> f64| {
            let all = (0..FIGURES.len()).map(|place| format!("{:.1} %", of(place)));
            all.collect::<Vec<String>>().join(" | ")
        };
        let count = f64::from(self.comparisons);
        let rows = format!(
            "| {what}: found | {} |\n| scatter of its trials | {} |\n",
            cells(&|place| self.share(self.together[place])),
            cells(&|place| self.scatter[place] / count * 100.0),
        );
        eprint!("{rows}");
        rows
    }
}

/// The name of a design, in the tables.
const DESIGNS: [(Design, &str); 2] = [(Design::Paired, "pairs"), (Design::Separate, "two groups")];

/// No difference is within it: every difference that is found counts.
const NO_MARGIN: f64 = 1e-6;

/// All comparisons on simulated devices of a kind, for each design, on all CPUs.
fn compared(
    trials: Trials,
    (each, size, margin): (usize, CompareSize, f64),
    stopped: &AtomicBool,
) -> Result<[Found; 2], String> {
    let (next, found) = (AtomicU64::new(0), Mutex::new(Ok([Found::default(), Found::default()])));
    let work = || loop {
        let seed = next.fetch_add(1, Ordering::Relaxed);
        if size.simulated <= seed || stopped.load(Ordering::Relaxed) {
            break;
        }
        let sides = simulated(trials, (each, size.window), seed);
        let mut found = found.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        match (sides, &mut *found) {
            (Ok(sides), Ok(found)) => {
                for (found, (design, _)) in found.iter_mut().zip(DESIGNS) {
                    found.add(&sides, design, margin);
                }
            }
            (Err(why), found) => *found = Err(why),
            (Ok(_), Err(_)) => {}
        }
    };
    thread::scope(|scope| {
        let threads = thread::available_parallelism().map_or(1, usize::from);
        (0..threads).for_each(|_| drop(scope.spawn(work)));
    });
    go_on(stopped)?;
    found.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner)
}

fn go_on(stopped: &AtomicBool) -> Result<(), String> {
    match stopped.load(Ordering::Relaxed) {
        true => Err("interrupted; everything that was made is removed".to_owned()),
        false => Ok(()),
    }
}

/// The trials of a comparison on the real file, of each side, and their length.
const REAL: (usize, Span) = (5, Span::from_ms(100));

/// The length of the real file.
const FILE_MIB: u32 = 64;

/// Comparisons of a file with itself: on the disk if it takes direct I/O, or else in the page cache.
fn real(size: CompareSize, stopped: &AtomicBool) -> Result<(&'static str, [Found; 2]), String> {
    let scratch = Scratch::new(folder(), FILE_MIB)?;
    let (stand_in, made) = match StandIn::Ext4.make(&scratch) {
        Ok(made) => (StandIn::Ext4, made),
        Err(why) => {
            eprintln!("bench: {}: {why}", StandIn::Ext4.name());
            (StandIn::PageCache, StandIn::PageCache.make(&scratch)?)
        }
    };
    let access = if stand_in.is_direct() { Access::DIRECT } else { Access::BUFFERED };
    let facts = host::target(made.path()).map_err(|error| error.to_string())?;
    let opening =
        Opening { access, writes: false, claimed: false, overwrite: Overwrite::default() };
    let open = [Vec::from([target::open(&facts, &opening).map_err(|error| error.to_string())?])];
    let choice = fathom_engine::choose(None, access).map_err(|error| error.to_string())?;
    let (each, window) = REAL;
    let point = random_reads(8, Bytes(u64::from(FILE_MIB) << 20), window);
    let mut found = [Found::default(), Found::default()];
    let devices = |backend: BackendKind| Devices::Real { streams: &open, backend };
    for _ in 0..size.real {
        let sides = interleaved(each, |_, _| {
            go_on(stopped)?;
            let record = run_point(&point, devices(choice.kind), stopped, &mut Nobody);
            record.map(|record| sample(&record)).map_err(|error| error.to_string())
        })?;
        for (found, (design, _)) in found.iter_mut().zip(DESIGNS) {
            found.add(&sides, design, NO_MARGIN);
        }
    }
    Ok((stand_in.name(), found))
}

/// The seconds that the comparison of two maps takes, each cell with three trials a side.
fn map_seconds(size: CompareSize) -> Result<f64, String> {
    let sides = simulated(Trials::Normal, (3, size.window), 1)?;
    let [a, b] = sides.each_ref().map(|side| side.iter().collect::<Vec<&Sample>>());
    let began = Instant::now();
    let mut differences = Vec::new();
    for _ in 0..size.cells {
        let figures = FIGURES.map(|(figure, _)| figure).into_iter().chain([Figure::Bandwidth]);
        differences
            .extend(figures.map(|figure| difference(figure, &a, &b, Design::Separate).difference));
    }
    let decisions = decide(&differences, Criterion::default());
    assert_eq!(decisions.len(), size.cells * (FIGURES.len() + 1));
    Ok(began.elapsed().as_secs_f64())
}

/// Runs every comparison and returns the tables in Markdown.
///
/// # Errors
///
/// When a trial cannot run, or somebody interrupts the bench.
pub fn all(size: CompareSize) -> Result<String, String> {
    let stopped = stops_on_signals()?;
    let names = FIGURES.map(|(_, name)| name).join(" | ");
    let mut text = format!(
        "Two sides that are alike. The column *any of five* has the comparisons that found a \
         difference in any of the five figures, decided together at 5 %; the others have each figure decided \
         alone. Without a margin, so that every difference counts.\n\n\
         | trials | comparisons | any of five, goal at most 5 % | {names} |\n\
         | --- | --: | --- |{}\n",
        " --: |".repeat(FIGURES.len())
    );
    for trials in [Trials::Normal, Trials::Skewed, Trials::Drifting] {
        for each in [5, 10] {
            eprintln!("bench: compare, {}, {each} a side", trials.name());
            let found = compared(trials, (each, size, NO_MARGIN), &stopped)?;
            for (found, (_, design)) in found.iter().zip(DESIGNS) {
                let what = format!("simulated, {}; {each} a side, {design}", trials.name());
                text.push_str(&found.alarms(&what));
            }
        }
    }
    let slower = compared(Trials::Slower, (10, size, Criterion::default().margin), &stopped)?;
    let slower: Vec<String> =
        slower.iter().zip(DESIGNS).map(|(found, (_, design))| found.power(design)).collect();
    eprintln!("bench: compare, a real file");
    let (name, found) = real(size, &stopped)?;
    for (found, (_, design)) in found.iter().zip(DESIGNS) {
        let (each, _) = REAL;
        text.push_str(&found.alarms(&format!("{name}; {each} a side, {design}")));
    }
    // Writing to a String cannot fail.
    let _ = writeln!(
        text,
        "\nA difference that is there, beyond a margin of 5 % or not within it, in the five figures \
         together. The goal is 90 % where trials scatter by 1.5 %.\n\n\
         | {}; 10 a side | {names} |\n| --- |{}",
        Trials::Slower.name(),
        " --: |".repeat(FIGURES.len())
    );
    text.push_str(&slower.concat());
    let _ = writeln!(
        text,
        "\nA comparison of two maps of {} cells, three trials a side, six figures: {:.2} s (goal: 2 s).",
        size.cells,
        map_seconds(size)?
    );
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sides_are_compared_on_simulated_devices_and_on_a_file() {
        let table = all(CompareSize::SMOKE).expect("the comparisons run");
        for part in
            ["normal, 3 %; 5 a side, pairs | 6 |", "; 5 a side, two groups | 2 |", "9 cells"]
        {
            assert!(table.contains(part), "{part} is missing in:\n{table}");
        }
    }

    #[test]
    fn trials_alternate_and_a_slower_side_is_found() {
        let sides = simulated(Trials::Slower, (10, Span::from_ms(200)), 3).expect("it runs");
        let mut found = Found::default();
        found.add(&sides, Design::Paired, Criterion::default().margin);
        assert_eq!((found.comparisons, found.any, found.together[0]), (1, 1, 1));
        // The trials of a side differ.
        assert!(found.scatter.iter().all(|one| (0.003..0.05).contains(one)), "{found:?}");
        let mut order = Vec::new();
        let ran = interleaved(2, |side, nth| {
            order.push((side, nth));
            Ok(sides[side][nth / 2].clone())
        });
        assert!(ran.is_ok_and(|sides| sides.iter().all(|side| side.len() == 2)));
        assert_eq!(order, [(0, 0), (1, 1), (1, 2), (0, 3)]);
    }
}
