//! Counts the engine's own instructions per I/O with callgrind. Times depend on the machine and on
//! its other users. This figure repeats, so it shows a change of a few instructions in the hot
//! loop.
//!
//! Each load runs twice under valgrind, with windows of different length. The figure is the
//! difference of the instructions divided by the difference of the I/Os: starting, calibrating the
//! clock and ending cost the same in both runs.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::AtomicBool;

use fathom_core::spec::{Arrivals, BackendKind, Kind, Pacing, Pattern, Point, Region, Stream};
use fathom_core::{Bytes, Rate, Span};
use fathom_engine::{Devices, Nobody, run_point};

use crate::engine::{ZEROS, zeros};
use crate::peers::{Profile, build, median, output_of, said};

/// The amount of work of the bench.
#[derive(Clone, Copy, Debug)]
pub struct InstructionSize {
    /// The shorter and the longer window, in milliseconds. Valgrind makes the engine about ten
    /// times slower.
    windows_ms: [u64; 2],
    /// The number of runs of each load; the median counts.
    repeats: usize,
}

impl InstructionSize {
    /// Long enough for figures that repeat within 1 %.
    pub const FULL: Self = Self { windows_ms: [500, 2500], repeats: 3 };
    /// Just enough to run every row.
    #[cfg(test)]
    const SMOKE: Self = Self { windows_ms: [20, 100], repeats: 1 };
}

/// A load whose I/Os are counted.
#[derive(Clone, Debug)]
struct Load {
    name: &'static str,
    backend: BackendKind,
    pattern: Pattern,
    read_share: f64,
    pacing: fn() -> Pacing,
    /// The highest number of instructions that the project allows.
    goal: Option<f64>,
}

const DEEP: Load = Load {
    name: "io_uring, queue depth 32, random reads",
    backend: BackendKind::Uring,
    pattern: Pattern::RANDOM,
    read_share: 1.0,
    pacing: || Pacing::closed(32),
    goal: None,
};

/// Only the first load has a goal.
const LOADS: [Load; 7] = [
    Load { goal: Some(150.0), ..DEEP },
    Load {
        name: "io_uring, queue depth 32, sequential reads",
        pattern: Pattern::SEQUENTIAL,
        ..DEEP
    },
    Load { name: "io_uring, queue depth 32, random, half of them writes", read_share: 0.5, ..DEEP },
    Load { name: "io_uring, queue depth 32, random writes", read_share: 0.0, ..DEEP },
    Load {
        // This rate is more than the engine can reach. A loop that waits for due I/Os spins, and
        // its number of spins says nothing.
        name: "io_uring, queue depth 32, random reads, open loop with Poisson arrivals, behind",
        pacing: || Pacing::open(Rate(10e6), Arrivals::Poisson, 32),
        ..DEEP
    },
    Load { name: "io_uring, queue depth 1, random reads", pacing: || Pacing::closed(1), ..DEEP },
    Load {
        name: "sync, queue depth 1, random reads",
        backend: BackendKind::Sync,
        pacing: || Pacing::closed(1),
        ..DEEP
    },
];

impl Load {
    fn point(&self, window: Span) -> Point {
        let stream = Stream {
            ios: Kind {
                pattern: self.pattern.clone(),
                read_share: self.read_share,
                ..Kind::default()
            }
            .into(),
            pacing: (self.pacing)(),
            ..Stream::reading(
                self.name,
                Vec::from([Region { target: 0, offset: Bytes(0), length: ZEROS }]),
            )
        };
        // One interval, as long as the window, so that both runs merge the same number of
        // intervals.
        Point { interval: window, ..Point::of(Vec::from([stream]), window) }
    }
}

/// The result of a load.
#[derive(Debug)]
struct InstructionRow {
    load: Load,
    /// Instructions per I/O, one figure per repeat.
    instructions: Vec<f64>,
}

/// Everything that was counted.
#[derive(Debug)]
pub struct InstructionCounts {
    rows: Vec<InstructionRow>,
    valgrind: String,
    /// The folder with the profile of the longest run of each load.
    profiles: PathBuf,
}

/// Counts every load. Returns an error if valgrind is missing.
pub fn all(size: InstructionSize, profile: Profile) -> Result<InstructionCounts, String> {
    let valgrind = valgrind()?;
    let program = build("fathom-bench", profile)?;
    let profiles = match program.parent() {
        Some(folder) => folder.join("instructions"),
        None => return Err(format!("{} is in no folder", program.display())),
    };
    fs::create_dir_all(&profiles).map_err(|error| format!("{}: {error}", profiles.display()))?;
    let mut rows = Vec::new();
    for (index, load) in LOADS.into_iter().enumerate() {
        eprintln!("bench: {}", load.name);
        let out = profiles.join(format!("{index}.callgrind"));
        let once = |_| difference(&program, index, size.windows_ms, &out);
        let instructions = (0..size.repeats).map(once).collect::<Result<_, String>>()?;
        rows.push(InstructionRow { load, instructions });
    }
    Ok(InstructionCounts { rows, valgrind, profiles })
}

/// Valgrind's version, or an error that says how to install it.
fn valgrind() -> Result<String, String> {
    output_of("valgrind", &["--version"])
        .map(|version| version.trim().to_owned())
        .map_err(|why| format!("{why}\n  valgrind is missing: apt-get install valgrind"))
}

/// The counts of one run.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Counted {
    instructions: u64,
    ios: u64,
}

impl Counted {
    /// Instructions per I/O, over the additional I/Os of a longer run.
    fn until(self, longer: Self) -> Option<f64> {
        let ios = longer.ios.checked_sub(self.ios).filter(|&ios| ios > 0)?;
        let instructions = longer.instructions.checked_sub(self.instructions).filter(|&n| n > 0)?;
        Some(instructions as f64 / ios as f64)
    }
}

/// Counts a load in a shorter and in a longer window. On a busy machine the longer run may get less
/// CPU time, and so fewer I/Os or instructions. In that case both windows are made longer.
fn difference(
    program: &Path,
    index: usize,
    windows_ms: [u64; 2],
    out: &Path,
) -> Result<f64, String> {
    for doubled in 0..6 {
        let [shorter, longer] =
            windows_ms.map(|window_ms| count(program, index, window_ms << doubled, out));
        if let Some(instructions) = shorter?.until(longer?) {
            return Ok(instructions);
        }
    }
    Err(format!(
        "{}: the machine is too busy: a longer run had fewer I/Os or instructions",
        LOADS[index].name
    ))
}

/// Runs a load under callgrind and reads its counts.
fn count(program: &Path, index: usize, window_ms: u64, out: &Path) -> Result<Counted, String> {
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", &format!("--callgrind-out-file={}", out.display())])
        .arg(program)
        .args([CHILD, &index.to_string(), &window_ms.to_string()])
        .output()
        .map_err(|error| format!("valgrind could not be started: {error}"))?;
    let whole = || {
        let ios = String::from_utf8_lossy(&output.stdout).trim().parse().ok()?;
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        let collected = text.lines().find_map(|line| line.split_once("Collected : "))?.1;
        Some(Counted { instructions: collected.trim().parse().ok()?, ios })
    };
    match whole().filter(|_| output.status.success()) {
        Some(counted) => Ok(counted),
        None => Err(format!("{} under callgrind failed{}", LOADS[index].name, said(&output))),
    }
}

impl InstructionCounts {
    /// The outcome as a table in Markdown.
    pub fn table(&self) -> String {
        let mut text = format!(
            "Counted with callgrind ({}).\n\n| load | user instructions per I/O | goal |\n\
             | --- | --: | --- |\n",
            self.valgrind
        );
        for InstructionRow { load, instructions } in &self.rows {
            let counted = median(instructions.clone());
            let goal = load.goal.map_or("-".to_owned(), |goal| {
                let word = if counted <= goal { "met" } else { "missed" };
                format!("at most {goal:.0}: {word}")
            });
            // Writing to a String cannot fail.
            let _ = writeln!(text, "| {} | {counted:.0} | {goal} |", load.name);
        }
        text
    }

    /// The command that shows where the instructions are.
    pub fn hint(&self) -> String {
        format!(
            "where they are: callgrind_annotate --auto=yes --include=$PWD {}/0.callgrind",
            self.profiles.display()
        )
    }
}

/// The command of the process that is counted, after `bench`.
pub const CHILD: &str = "counted-run";

/// The work of the process under valgrind: it runs a load and prints the number of I/Os.
pub fn child(load: &str, window_ms: &str) -> Result<(), String> {
    let number = |text: &str| text.parse::<u64>().map_err(|error| format!("{text}: {error}"));
    let load = LOADS.get(number(load)? as usize).ok_or("no such load")?;
    let target = zeros()?;
    let point = load.point(Span::from_ms(number(window_ms)?));
    let targets = std::slice::from_ref(&target);
    let devices = Devices::Real { streams: &[targets.to_vec()], backend: load.backend };
    let record = run_point(&point, devices, &AtomicBool::new(false), &mut Nobody)
        .map_err(|error| error.to_string())?;
    let ledger = record.ledger();
    println!("{}", ledger.completed + ledger.in_flight);
    Ok(())
}

#[cfg(test)]
mod tests {
    use fathom_core::spec::Access;

    use super::*;

    #[test]
    fn every_load_is_counted_at_the_smoke_size() {
        if let Err(why) = valgrind() {
            eprintln!("skipped: {why}");
            return;
        }
        let access = Access::DIRECT;
        if let Err(why) = fathom_engine::choose(Some(BackendKind::Uring), access) {
            eprintln!("skipped: {why}");
            return;
        }
        let outcome = all(InstructionSize::SMOKE, Profile::Debug).expect("the loads run");
        assert_eq!(outcome.rows.len(), LOADS.len());
        // On a busy machine the start of a run may cost more than the whole window, and differs
        // from run to run: how many instructions an I/O takes is for the bench to say.
        assert!(outcome.rows.iter().all(|row| row.instructions[0] > 0.0), "{outcome:?}");
        let text = outcome.table();
        assert!(text.contains("| io_uring, queue depth 32, random reads |"), "{text}");
        assert!(outcome.profiles.join("0.callgrind").exists());
    }

    #[test]
    fn the_goal_is_compared_with_the_median() {
        let outcome = |instructions: [f64; 3]| InstructionCounts {
            rows: Vec::from([InstructionRow {
                load: LOADS[0].clone(),
                instructions: instructions.to_vec(),
            }]),
            valgrind: "valgrind-3.19.0".to_owned(),
            profiles: PathBuf::new(),
        };
        let met = outcome([149.0, 160.0, 140.0]).table();
        assert!(met.contains("| 149 | at most 150: met |"), "{met}");
        let missed = outcome([151.0, 160.0, 140.0]).table();
        assert!(missed.contains("| 151 | at most 150: missed |"), "{missed}");
    }

    #[test]
    fn what_both_runs_have_in_common_does_not_count() {
        let shorter = Counted { instructions: 1_000_100, ios: 1 };
        let longer = Counted { instructions: 1_001_100, ios: 11 };
        assert_eq!(shorter.until(longer), Some(100.0));
        assert_eq!(longer.until(shorter), None);
    }
}
