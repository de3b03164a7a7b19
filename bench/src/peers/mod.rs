//! Measures the cost of an I/O with fathom and with fio, side by side on the same stand-ins for a
//! device. On a machine with other users, figures from different times cannot be compared. So runs
//! of the two programs alternate, and the result is the ratio of such pairs.
//!
//! A smoke size runs in `cargo test`, so that the bench cannot rot. No test checks the times.

mod programs;
mod stand_in;

use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use fathom_core::Span;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use programs::{Cost, Job, Peer, Programs};
pub use programs::{Profile, build, output_of, said};
pub use stand_in::{Scratch, StandIn};

/// The amount of work of the bench.
#[derive(Clone, Copy, Debug)]
pub struct PeerSize {
    /// Pairs of runs for each row.
    pairs: u32,
    /// The length of each run.
    run: Span,
    /// The size of the files, in MiB.
    file_mib: u32,
}

impl PeerSize {
    /// Long enough for reliable figures.
    pub const FULL: Self = Self { pairs: 11, run: Span::from_secs(2), file_mib: 256 };
    /// Just enough to run every row.
    #[cfg(test)]
    const SMOKE: Self = Self { pairs: 1, run: Span::from_ms(200), file_mib: 16 };
}

/// One comparison.
#[derive(Clone, Copy, Debug)]
struct Comparison {
    stand_in: StandIn,
    queue_depth: u32,
    peer: Peer,
    goal: Option<Goal>,
}

/// The goal that fathom has to reach.
#[derive(Clone, Copy, Debug)]
struct Goal {
    /// fio's CPU time for each I/O, as a multiple of fathom's.
    cpu: f64,
    /// fathom's IOPS, as a multiple of fio's.
    iops: Option<f64>,
}

const fn comparison(stand_in: StandIn, queue_depth: u32, peer: Peer) -> Comparison {
    Comparison { stand_in, queue_depth, peer, goal: None }
}

const fn goal(cpu: f64) -> Option<Goal> {
    Some(Goal { cpu, iops: None })
}

/// Comparisons on the same stand-in are adjacent, because it is made once for all of them.
const COMPARISONS: [Comparison; 10] = [
    Comparison { goal: goal(4.5), ..comparison(StandIn::Zero, 32, Peer::Defaults) },
    comparison(StandIn::Zero, 32, Peer::NoRandomMap),
    comparison(StandIn::Zero, 32, Peer::AllPercentiles),
    Comparison { goal: goal(1.5), ..comparison(StandIn::Zero, 32, Peer::Tuned) },
    Comparison { goal: goal(1.5), ..comparison(StandIn::Zero, 1, Peer::Psync) },
    comparison(StandIn::Zero, 1, Peer::PsyncNoRandomMap),
    Comparison { goal: goal(1.15), ..comparison(StandIn::PageCache, 32, Peer::Tuned) },
    Comparison {
        goal: Some(Goal { cpu: 2.0, iops: Some(1.0) }),
        ..comparison(StandIn::Ext4, 32, Peer::Defaults)
    },
    comparison(StandIn::Loop, 32, Peer::Defaults),
    comparison(StandIn::Tmpfs, 32, Peer::Defaults),
];

/// A completed comparison.
#[derive(Debug)]
struct PeerRow {
    comparison: Comparison,
    /// The costs of fathom and fio, from adjacent runs.
    pairs: Vec<[Cost; 2]>,
}

/// Everything that was measured, and everything that could not be measured.
#[derive(Debug)]
pub struct PeerComparisons {
    rows: Vec<PeerRow>,
    left_out: Vec<String>,
    size: PeerSize,
    setting: String,
}

/// Runs every comparison that this machine allows. Returns an error if fio is missing.
pub fn all(size: PeerSize, profile: Profile) -> Result<PeerComparisons, String> {
    let programs = Programs::find(profile)?;
    let stopped = stops_on_signals()?;
    let scratch = Scratch::new(folder(), size.file_mib)?;
    let mut rows = Vec::new();
    let mut left_out = Vec::new();
    for group in COMPARISONS.chunk_by(|a, b| a.stand_in == b.stand_in) {
        let stand_in = group[0].stand_in;
        let target = match stand_in.make(&scratch) {
            Ok(target) => target,
            Err(why) => {
                left_out.push(format!("{}: {why}", stand_in.name()));
                continue;
            }
        };
        for &comparison in group {
            eprintln!(
                "bench: {}, queue depth {}, fio {}",
                stand_in.name(),
                comparison.queue_depth,
                comparison.peer.name()
            );
            let job = Job {
                path: target.path(),
                is_direct: stand_in.is_direct(),
                length_mib: stand_in.length_mib(size.file_mib),
                queue_depth: comparison.queue_depth,
                run: size.run,
                scratch: scratch.folder(),
            };
            let pairs = pairs(&programs, &job, comparison.peer, size.pairs, &stopped)?;
            rows.push(PeerRow { comparison, pairs });
        }
    }
    let setting = format!("{}, pinned to CPU {}", programs.fio_version(), programs.cpu());
    Ok(PeerComparisons { rows, left_out, size, setting })
}

/// Runs both programs alternately in the order A B B A, so that a drift of the machine favors
/// neither.
fn pairs(
    programs: &Programs,
    job: &Job<'_>,
    peer: Peer,
    count: u32,
    stopped: &AtomicBool,
) -> Result<Vec<[Cost; 2]>, String> {
    let mut pairs = Vec::new();
    for pair in 0..count {
        let (fathom, fio) = if pair % 2 == 0 {
            let fathom = programs.fathom(job, peer);
            (fathom, programs.fio(job, peer))
        } else {
            let fio = programs.fio(job, peer);
            (programs.fathom(job, peer), fio)
        };
        // A run that a signal cut short is not a measurement. It is no failure of the program
        // either.
        if stopped.load(Ordering::Relaxed) {
            return Err("interrupted; everything that was made is removed".to_owned());
        }
        pairs.push([fathom?, fio?]);
    }
    Ok(pairs)
}

/// Becomes true at the first signal. With this handler, a bench survives Ctrl-C and its guards
/// clean up.
pub fn stops_on_signals() -> Result<Arc<AtomicBool>, String> {
    let stopped = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        signal_hook::flag::register(signal, Arc::clone(&stopped))
            .map_err(|error| format!("signals cannot be handled: {error}"))?;
    }
    Ok(stopped)
}

/// The folder for files. It is on a disk, as the tests' folder is.
pub fn folder() -> PathBuf {
    std::env::var_os("FATHOM_TEST_FOLDER").map_or(PathBuf::from("/var/tmp"), PathBuf::from)
}

/// The load average of the last minute.
pub fn load_average() -> String {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split_whitespace().next().unwrap_or("unknown").to_owned()
}

impl PeerComparisons {
    /// The outcome as a table in Markdown, with its notes.
    pub fn table(&self) -> String {
        let PeerSize { pairs, run, .. } = self.size;
        let mut text = format!(
            "{}; medians of {pairs} pairs of runs of {} s; lowest and highest ratio in brackets.\n\n",
            self.setting,
            run.0 as f64 / 1e9
        );
        text.push_str(HEAD);
        for row in &self.rows {
            row.write(&mut text);
        }
        for why in &self.left_out {
            // Writing to a String cannot fail.
            let _ = write!(text, "\nLeft out: {why}.\n");
        }
        text
    }
}

const HEAD: &str = "\
| stand-in | queue depth | fio | CPU per I/O: fathom | fio | fio / fathom | goal \
| IOPS: fathom | fio | fathom / fio | whole process: fathom | fio |
| --- | --: | --- | --: | --: | --- | --- | --: | --: | --- | --: | --: |
";

impl PeerRow {
    fn write(&self, text: &mut String) {
        let Comparison { stand_in, queue_depth, peer, goal } = self.comparison;
        let of = |index: usize, figure: fn(&Cost) -> f64| {
            median(self.pairs.iter().map(|pair| figure(&pair[index])).collect())
        };
        let cpu = |index| format!("{:.0} ns", of(index, |cost| cost.cpu_ns));
        let iops = |index| format!("{:.0}", of(index, |cost| cost.iops));
        let process = |index| format!("{:.0} ns", of(index, |cost| cost.process_ns));
        let cpu_ratio = self.ratios(|[fathom, fio]| fio.cpu_ns / fathom.cpu_ns);
        let iops_ratio = self.ratios(|[fathom, fio]| fathom.iops / fio.iops);
        let goals = goal.map_or("-".to_owned(), |goal| {
            let iops = goal.iops.map(|iops| format!(", IOPS {}", met(&iops_ratio, iops)));
            format!("{}{}", met(&cpu_ratio, goal.cpu), iops.unwrap_or_default())
        });
        let _ = writeln!(
            text,
            "| {} | {queue_depth} | {} | {} | {} | {} | {goals} | {} | {} | {} | {} | {} |",
            stand_in.name(),
            peer.name(),
            cpu(0),
            cpu(1),
            spread(&cpu_ratio),
            iops(0),
            iops(1),
            spread(&iops_ratio),
            process(0),
            process(1),
        );
    }

    /// The ratio of each pair, in rising order.
    fn ratios(&self, ratio: impl Fn(&[Cost; 2]) -> f64) -> Vec<f64> {
        let mut ratios: Vec<f64> = self.pairs.iter().map(ratio).collect();
        ratios.sort_by(f64::total_cmp);
        ratios
    }
}

/// The median: the middle value, or the mean of the two in the middle.
pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() {
        0 => f64::NAN,
        odd if odd % 2 == 1 => values[middle],
        _ => f64::midpoint(values[middle - 1], values[middle]),
    }
}

/// The median of sorted values, with the lowest and the highest.
pub fn spread(sorted: &[f64]) -> String {
    let ends = sorted.first().zip(sorted.last());
    let (lowest, highest) = ends.unwrap_or((&f64::NAN, &f64::NAN));
    format!("{:.2} ({lowest:.2} to {highest:.2})", median(sorted.to_vec()))
}

fn met(ratios: &[f64], goal: f64) -> String {
    let word = if goal <= median(ratios.to_vec()) { "met" } else { "missed" };
    format!("{goal:.2} {word}")
}

#[cfg(test)]
mod tests {
    use fathom_core::spec::{Access, BackendKind};

    use super::*;

    #[test]
    fn fathom_and_fio_run_on_every_stand_in_at_the_smoke_size() {
        if let Err(why) = programs::fio_is_there() {
            eprintln!("skipped: {why}");
            return;
        }
        let access = Access::DIRECT;
        if let Err(why) = fathom_engine::choose(Some(BackendKind::Uring), access) {
            eprintln!("skipped: {why}");
            return;
        }
        let outcome = all(PeerSize::SMOKE, Profile::Debug).expect("the programs run");
        for why in &outcome.left_out {
            eprintln!("skipped: {why}");
        }
        let stand_ins_left_out = outcome.left_out.len();
        assert!(!outcome.rows.is_empty());
        let made = outcome.rows.chunk_by(|a, b| a.comparison.stand_in == b.comparison.stand_in);
        assert_eq!(made.count() + stand_ins_left_out, 5);
        for cost in outcome.rows.iter().flat_map(|row| row.pairs.iter().flatten()) {
            // fio counts CPU time in milliseconds, and on a busy machine does less than one's work.
            assert!(cost.cpu_ns.is_finite() && cost.iops > 0.0, "{cost:?}");
        }
        let text = outcome.table();
        assert!(text.contains("/dev/zero, buffered | 32 | io_uring, defaults |"), "{text}");
        assert!(text.contains("pinned to CPU"), "{text}");
    }

    fn cost(cpu_ns: f64, iops: f64) -> Cost {
        Cost { cpu_ns, iops, process_ns: cpu_ns }
    }

    #[test]
    fn ratios_are_those_of_the_pairs_and_not_of_the_medians() {
        let pairs = [(100.0, 400.0), (200.0, 400.0), (1_000.0, 3_000.0)];
        let pairs = pairs.map(|(fathom, fio)| [cost(fathom, 1e6), cost(fio, 1.25e6)]);
        let zero = comparison(StandIn::Zero, 32, Peer::Defaults);
        let goal = Some(Goal { cpu: 2.5, iops: Some(1.0) });
        let row = PeerRow { comparison: Comparison { goal, ..zero }, pairs: pairs.to_vec() };
        let mut text = String::new();
        row.write(&mut text);
        assert!(text.contains("| 200 ns | 400 ns | 3.00 (2.00 to 4.00) |"), "{text}");
        assert!(text.contains("| 2.50 met, IOPS 1.00 missed | 1000000 | 1250000 |"), "{text}");
    }

    #[test]
    fn the_median_lies_in_the_middle() {
        assert_eq!(median(Vec::from([3.0, 1.0, 2.0])), 2.0);
        assert_eq!(median(Vec::from([4.0, 1.0, 2.0, 3.0])), 2.5);
        assert!(median(Vec::new()).is_nan());
    }
}
