//! Measures the cost of never writing the same block twice. Random writes with the unique payload
//! alternate with the same writes from a constant buffer, on one CPU.
//!
//! The targets do very little with the data, so the payload's share of the cost is as large as it
//! can be. On a real device a write costs many times more.

use std::fmt::Write as _;
use std::fs::File;
use std::sync::atomic::AtomicBool;

use fathom_core::spec::{BackendKind, Point};
use fathom_core::{Bytes, Span};
use fathom_engine::target::OpenTarget;
use fathom_engine::{Devices, Nobody, bench, run_point};
use rustix::fs::{MemfdFlags, OFlags, fcntl_setfl, memfd_create};

use crate::bare_loop::{alternate, worker_cpu_ns};
use crate::engine::{ZEROS, open_device, random_reads};
use crate::peers::{median, spread};

/// The highest allowed cost of the unique payload, as a multiple of the cost of the constant one.
const GOAL: f64 = 1.1;
/// The length of the file in memory.
const FILE: Bytes = Bytes(64 << 20);
/// Full batches, as in the comparison of reads.
const QUEUE_DEPTH: u32 = 32;

/// The amount of work of the bench.
#[derive(Clone, Copy, Debug)]
pub struct PayloadSize {
    /// Pairs of runs for each row.
    pairs: u32,
    /// The length of each run.
    run: Span,
}

impl PayloadSize {
    /// Long enough for reliable figures.
    pub const FULL: Self = Self { pairs: 41, run: Span::from_ms(300) };
    /// Just enough to run every row.
    #[cfg(test)]
    const SMOKE: Self = Self { pairs: 1, run: Span::from_ms(20) };
}

/// The target of the writes.
#[derive(Clone, Copy, Debug)]
enum WriteTarget {
    /// The kernel does not look at the data: no write can cost less.
    Zero,
    /// The kernel copies the block into the file's memory.
    Memory,
}

impl WriteTarget {
    fn name(self) -> &'static str {
        match self {
            Self::Zero => "/dev/zero, which drops what is written",
            Self::Memory => "a file in memory (memfd), non-blocking",
        }
    }

    fn open(self) -> Result<OpenTarget, String> {
        match self {
            Self::Zero => open_device("/dev/zero"),
            Self::Memory => file_in_memory().map_err(|error| format!("memfd: {error}")),
        }
    }
}

/// Makes a file in memory. It is non-blocking, because otherwise io_uring would hand its I/Os to
/// other threads.
fn file_in_memory() -> std::io::Result<OpenTarget> {
    let file: File = memfd_create("fathom-payload", MemfdFlags::CLOEXEC)?.into();
    file.set_len(FILE.0)?;
    fcntl_setfl(&file, OFlags::NONBLOCK)?;
    Ok(OpenTarget {
        name: "memory".to_owned(),
        file: file.into(),
        size: FILE,
        alignment: Bytes(1),
        passthrough: None,
    })
}

/// Runs every comparison and returns the table in Markdown.
pub fn all(size: PayloadSize) -> Result<String, String> {
    let mut text = format!(
        "Medians of {} pairs of runs of {} s; lowest and highest ratio in brackets.\n\n\
         | random writes of 4 KiB to | queue depth | CPU per I/O: unique payload | constant | \
         unique / constant | goal |\n| --- | --: | --: | --: | --- | --- |\n",
        size.pairs,
        size.run.0 as f64 / 1e9
    );
    for stand_in in [WriteTarget::Zero, WriteTarget::Memory] {
        eprintln!("bench: payload, {}", stand_in.name());
        let target = stand_in.open()?;
        let point = writes(target.size, size.run);
        let pairs =
            alternate(size.pairs, || run(&point, &target, false), || run(&point, &target, true))?;
        row(&mut text, stand_in, &pairs);
    }
    Ok(text)
}

fn row(text: &mut String, stand_in: WriteTarget, pairs: &[[f64; 2]]) {
    let of = |index: usize| median(pairs.iter().map(|pair| pair[index]).collect());
    let mut ratios: Vec<f64> = pairs.iter().map(|[unique, constant]| unique / constant).collect();
    ratios.sort_by(f64::total_cmp);
    let word = if median(ratios.clone()) <= GOAL { "met" } else { "missed" };
    // Writing to a String cannot fail.
    let _ = writeln!(
        text,
        "| {} | {QUEUE_DEPTH} | {:.1} ns | {:.1} ns | {} | at most {GOAL:.2}: {word} |",
        stand_in.name(),
        of(0),
        of(1),
        spread(&ratios),
    );
}

fn writes(size: Bytes, window: Span) -> Point {
    let mut point = random_reads(QUEUE_DEPTH, size.min(ZEROS), window);
    point.streams[0].kind_mut().read_share = 0.0;
    point
}

fn run(point: &Point, target: &OpenTarget, constant: bool) -> Result<f64, String> {
    let targets = std::slice::from_ref(target);
    let stop = AtomicBool::new(false);
    let record = if constant {
        bench::run_with_constant_payload(point, targets, &stop, &mut Nobody)
    } else {
        let devices = Devices::Real { streams: &[targets.to_vec()], backend: BackendKind::Uring };
        run_point(point, devices, &stop, &mut Nobody)
    };
    let record = record.map_err(|error| error.to_string())?;
    worker_cpu_ns(&record).ok_or_else(|| format!("{}: no I/O or no CPU time", target.name))
}

#[cfg(test)]
mod tests {
    use fathom_core::spec::Access;

    use super::*;

    #[test]
    fn both_payloads_are_written_at_the_smoke_size() {
        let access = Access::DIRECT;
        if let Err(why) = fathom_engine::choose(Some(BackendKind::Uring), access) {
            eprintln!("skipped: {why}");
            return;
        }
        // On a busy machine a worker may get no CPU in a window as short as this.
        let text = (0..20).find_map(|_| all(PayloadSize::SMOKE).ok()).expect("the writes run");
        assert_eq!(text.lines().count(), 6, "{text}");
        assert!(!text.contains("NaN"), "{text}");
    }

    #[test]
    fn the_constant_payload_stays_and_the_unique_one_does_not() {
        use std::os::unix::fs::FileExt;
        let access = Access::DIRECT;
        if let Err(why) = fathom_engine::choose(Some(BackendKind::Uring), access) {
            eprintln!("skipped: {why}");
            return;
        }
        // The file has few blocks, so that each one is written often. Blocks that were not written
        // are still zeros.
        let written = |constant: bool| {
            let target = file_in_memory().expect("there is memory");
            let point = writes(Bytes(64 * 4096), Span::from_ms(100));
            run(&point, &target, constant).expect("the writes run");
            let mut memory = vec![0; 64 * 4096];
            target.file.read_exact_at(&mut memory, 0).expect("it is that long");
            let blocks = memory.chunks(4096).filter(|block| block.iter().any(|&byte| byte > 0));
            let all: Vec<&[u8]> = blocks.collect();
            let different: std::collections::HashSet<&[u8]> = all.iter().copied().collect();
            (all.len(), different.len())
        };
        let (all, different) = written(true);
        assert!(all > 0 && different <= QUEUE_DEPTH as usize, "{different} of {all}");
        let (all, different) = written(false);
        assert!(all > 0 && different == all, "{different} of {all}");
    }

    #[test]
    fn the_goal_is_a_limit_for_the_median_of_the_ratios() {
        let table = |unique: f64| {
            let mut text = String::new();
            let pairs = [[unique, 100.0], [500.0, 100.0], [100.0, 100.0]];
            row(&mut text, WriteTarget::Zero, &pairs);
            text
        };
        assert!(table(110.0).contains("| at most 1.10: met |"));
        assert!(table(111.0).contains("| at most 1.10: missed |"));
    }
}
