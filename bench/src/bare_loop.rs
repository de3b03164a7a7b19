//! Compares the engine with a loop that only submits and reaps. The difference is the cost of
//! measuring on top of the ring.
//!
//! The bare loop uses the engine's ring (its flags, a registered file, registered buffers) and
//! submits the same entries again and again: no offsets, no timestamps, no histograms, no slots.
//! Both run in this process on one CPU, alternately in the order A B B A. The bench compares the
//! thread's CPU time per I/O.

#![expect(unsafe_code, reason = "the kernel writes to the buffers of a ring")]

use std::fmt::Write as _;
use std::io;
use std::os::fd::AsRawFd;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant as WallInstant};

use fathom_core::Span;
use fathom_core::measure::Record;
use fathom_core::spec::BackendKind;
use fathom_engine::{Devices, Nobody, calibrate, run_point};
use io_uring::types::Fixed;
use io_uring::{IoUring, opcode, squeue};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use rustix::time::{ClockId, clock_gettime};

use crate::engine::{ZEROS, random_reads, zeros};
use crate::peers::{median, spread};

/// The size of an I/O in bytes.
const BLOCK: usize = 4096;
/// The highest allowed cost of the engine, as a multiple of the cost of the bare loop.
const GOAL: f64 = 1.08;
/// The number of batches between two readings of the clock. At this number the readings cost almost
/// nothing.
const LOOK: u32 = 64;

/// The amount of work of the bench.
#[derive(Clone, Copy, Debug)]
pub struct RingSize {
    /// Pairs of runs for each row.
    pairs: u32,
    /// How long each run is.
    run: Span,
}

impl RingSize {
    /// Long enough for reliable figures.
    pub const FULL: Self = Self { pairs: 41, run: Span::from_ms(300) };
    /// Just enough to run every row.
    #[cfg(test)]
    const SMOKE: Self = Self { pairs: 1, run: Span::from_ms(20) };
}

/// What an entry does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Work {
    /// Nothing: the kernel completes it at once.
    Nothing,
    /// Reads a block of /dev/zero.
    Zeros,
}

impl Work {
    fn name(self) -> &'static str {
        match self {
            Self::Nothing => "NOP ring",
            Self::Zeros => "/dev/zero, buffered",
        }
    }
}

/// Only full batches have a goal.
const ROWS: [(Work, u32, Option<f64>); 4] = [
    (Work::Nothing, 32, Some(GOAL)),
    (Work::Zeros, 32, Some(GOAL)),
    (Work::Nothing, 1, None),
    (Work::Zeros, 1, None),
];

/// A completed comparison.
#[derive(Debug)]
struct RingRow {
    work: Work,
    queue_depth: u32,
    goal: Option<f64>,
    /// CPU time per I/O in nanoseconds, of the engine and of the bare loop.
    pairs: Vec<[f64; 2]>,
}

/// Everything that was measured.
#[derive(Debug)]
pub struct RingComparisons {
    rows: Vec<RingRow>,
    size: RingSize,
}

/// Runs every comparison.
pub fn all(size: RingSize) -> Result<RingComparisons, String> {
    let mut rows = Vec::new();
    for (work, queue_depth, goal) in ROWS {
        eprintln!("bench: {}, queue depth {queue_depth}", work.name());
        let mut bare = None;
        let pairs = alternate(
            size.pairs,
            || engine(work, queue_depth, size.run),
            || bare_loop(&mut bare, work, queue_depth, size.run),
        )?;
        rows.push(RingRow { work, queue_depth, goal, pairs });
    }
    Ok(RingComparisons { rows, size })
}

/// Runs two measurements alternately in the order A B B A, so that a drift of the machine favors
/// neither. They run on their own thread, which is bound to one CPU.
pub fn alternate(
    pairs: u32,
    mut a: impl FnMut() -> Result<f64, String> + Send,
    mut b: impl FnMut() -> Result<f64, String> + Send,
) -> Result<Vec<[f64; 2]>, String> {
    let mut on_one_cpu = move || {
        bind_to_last_cpu().map_err(|error| format!("the thread could not be bound: {error}"))?;
        let mut pair = |number| -> Result<[f64; 2], String> {
            if number % 2 == 0 {
                let first = a()?;
                return Ok([first, b()?]);
            }
            let first = b()?;
            Ok([a()?, first])
        };
        (0..pairs).map(&mut pair).collect()
    };
    match std::thread::scope(|scope| scope.spawn(&mut on_one_cpu).join()) {
        Ok(measured) => measured,
        Err(panic) => std::panic::resume_unwind(panic),
    }
}

/// Binds the calling thread to the last CPU that it may run on. Its child threads inherit this, so
/// the engine's worker is bound too. The first CPU serves interrupts.
fn bind_to_last_cpu() -> rustix::io::Result<()> {
    let allowed = sched_getaffinity(None)?;
    let mut one = CpuSet::new();
    if let Some(last) = (0..CpuSet::MAX_CPU).rev().find(|&cpu| allowed.is_set(cpu)) {
        one.set(last);
        sched_setaffinity(None, &one)?;
    }
    Ok(())
}

/// The CPU time per I/O of the bare loop. The thread that uses the ring also makes it.
fn bare_loop(
    bare: &mut Option<BareLoop>,
    work: Work,
    queue_depth: u32,
    run: Span,
) -> Result<f64, String> {
    let mut opened = match bare.take() {
        Some(opened) => opened,
        None => BareLoop::open(work, queue_depth)
            .map_err(|error| format!("the bare loop's ring could not be made: {error}"))?,
    };
    let cost = opened.run(run).map_err(|error| format!("the bare loop failed: {error}"));
    *bare = Some(opened);
    cost
}

/// The CPU time per I/O of the engine, with all its distributions.
fn engine(work: Work, queue_depth: u32, run: Span) -> Result<f64, String> {
    let record = match work {
        Work::Nothing => calibrate::nop_ring(queue_depth, 1, run),
        Work::Zeros => {
            let target = zeros()?;
            let point = random_reads(queue_depth, ZEROS, run);
            let targets = std::slice::from_ref(&target);
            let devices =
                Devices::Real { streams: &[targets.to_vec()], backend: BackendKind::Uring };
            run_point(&point, devices, &AtomicBool::new(false), &mut Nobody)
        }
    };
    let record = record.map_err(|error| error.to_string())?;
    worker_cpu_ns(&record).ok_or_else(|| "the engine's run has no I/O or no CPU time".to_owned())
}

/// The CPU time per I/O of the only worker.
pub fn worker_cpu_ns(record: &Record) -> Option<f64> {
    let cpu = record.workers.first()?.cpu?;
    let completed = record.ledger().completed;
    (completed > 0 && record.errors() == 0).then(|| cpu.0 as f64 / completed as f64)
}

/// A ring, and the entries that it submits again and again.
struct BareLoop {
    /// Declared before the buffers, because fields are dropped in order: the ring is closed first.
    ring: IoUring,
    entries: Vec<squeue::Entry>,
    _buffers: Vec<u8>,
}

impl BareLoop {
    fn open(work: Work, queue_depth: u32) -> io::Result<Self> {
        let ring = build_ring(queue_depth)?;
        let count = queue_depth as usize;
        let mut buffers = vec![1; (count + 1) * BLOCK];
        let start = buffers.as_ptr().align_offset(BLOCK);
        let addresses: Vec<*mut u8> = buffers[start..start + count * BLOCK]
            .chunks_exact_mut(BLOCK)
            .map(<[u8]>::as_mut_ptr)
            .collect();
        let vectors: Vec<libc::iovec> = addresses
            .iter()
            .map(|address| libc::iovec { iov_base: address.cast(), iov_len: BLOCK })
            .collect();
        let target = zeros().map_err(io::Error::other)?;
        ring.submitter().register_files(&[target.file.as_raw_fd()])?;
        // SAFETY: the buffers are freed after the ring, and nothing is in flight when it is closed.
        unsafe { ring.submitter().register_buffers(&vectors) }?;
        let entry = |(slot, address): (u16, &*mut u8)| match work {
            Work::Nothing => opcode::Nop::new().build(),
            Work::Zeros => {
                let length = BLOCK as u32;
                opcode::ReadFixed::new(Fixed(0), *address, length, slot).build()
            }
        };
        let entries = (0..).zip(&addresses).map(entry).collect();
        Ok(Self { ring, entries, _buffers: buffers })
    }

    /// Submits and reaps whole batches for the given time. Returns the CPU time per I/O.
    fn run(&mut self, time: Span) -> io::Result<f64> {
        let end = WallInstant::now() + Duration::from_nanos(time.0);
        let before = thread_cpu_ns();
        let mut ios = 0;
        while WallInstant::now() < end {
            for _ in 0..LOOK {
                ios += self.batch()?;
            }
        }
        Ok((thread_cpu_ns() - before) as f64 / ios as f64)
    }

    #[inline]
    fn batch(&mut self) -> io::Result<u64> {
        // SAFETY: the entries' buffers live as long as the ring. The code below waits for every I/O
        // in flight, whatever its result.
        let pushed = unsafe { self.ring.submission().push_multiple(&self.entries) };
        assert!(pushed.is_ok(), "the queue has room for a batch");
        let (mut open, mut failure) = (self.entries.len(), None);
        while open > 0 {
            match self.ring.submit_and_wait(1) {
                Err(error) if error.kind() != io::ErrorKind::Interrupted => {
                    panic!("io_uring_enter refused a ring that works: {error}")
                }
                _ => {}
            }
            for completion in self.ring.completion() {
                open -= 1;
                if completion.result() < 0 {
                    failure = Some(-completion.result());
                }
            }
        }
        match failure {
            None => Ok(self.entries.len() as u64),
            Some(errno) => Err(io::Error::from_raw_os_error(errno)),
        }
    }
}

/// A ring like the engine's, or a plain ring if the kernel does not know the engine's flags.
fn build_ring(entries: u32) -> io::Result<IoUring> {
    let mut builder = IoUring::builder();
    builder.setup_coop_taskrun().setup_taskrun_flag().setup_submit_all();
    builder.setup_single_issuer().setup_defer_taskrun().setup_no_sqarray();
    builder.build(entries).or_else(|error| match error.raw_os_error() {
        Some(libc::EINVAL) => IoUring::new(entries),
        _ => Err(error),
    })
}

/// The CPU time of the calling thread, in nanoseconds.
fn thread_cpu_ns() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

impl RingComparisons {
    /// The outcome as a table in Markdown.
    pub fn table(&self) -> String {
        let RingSize { pairs, run } = self.size;
        let mut text = format!(
            "Medians of {pairs} pairs of runs of {} s; lowest and highest ratio in brackets.\n\n\
             | stand-in | queue depth | CPU per I/O: engine | bare loop | engine / bare loop | goal |\n\
             | --- | --: | --: | --: | --- | --- |\n",
            run.0 as f64 / 1e9
        );
        for row in &self.rows {
            let of = |index: usize| median(row.pairs.iter().map(|pair| pair[index]).collect());
            let mut ratios: Vec<f64> =
                row.pairs.iter().map(|[engine, bare]| engine / bare).collect();
            ratios.sort_by(f64::total_cmp);
            let goal = row.goal.map_or("-".to_owned(), |goal| {
                let word = if median(ratios.clone()) <= goal { "met" } else { "missed" };
                format!("at most {goal:.2}: {word}")
            });
            // Writing to a String cannot fail.
            let _ = writeln!(
                text,
                "| {} | {} | {:.1} ns | {:.1} ns | {} | {goal} |",
                row.work.name(),
                row.queue_depth,
                of(0),
                of(1),
                spread(&ratios),
            );
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use fathom_core::spec::Access;

    use super::*;

    #[test]
    fn the_engine_and_the_bare_loop_run_at_the_smoke_size() {
        let access = Access::DIRECT;
        if let Err(why) = fathom_engine::choose(Some(BackendKind::Uring), access) {
            eprintln!("skipped: {why}");
            return;
        }
        let outcome = all(RingSize::SMOKE).expect("the loops run");
        assert_eq!(outcome.rows.len(), ROWS.len());
        let costs = outcome.rows.iter().flat_map(|row| row.pairs.iter().flatten());
        assert!(costs.copied().all(|cost| cost > 0.0), "{outcome:?}");
        let text = outcome.table();
        assert!(text.contains("| NOP ring | 32 |"), "{text}");
    }

    #[test]
    fn the_goal_is_a_limit_for_the_median_of_the_ratios() {
        let table = |engine: f64| {
            let pairs = Vec::from([[engine, 100.0], [500.0, 100.0], [100.0, 100.0]]);
            let row = RingRow { work: Work::Nothing, queue_depth: 32, goal: Some(1.08), pairs };
            RingComparisons { rows: Vec::from([row]), size: RingSize::SMOKE }.table()
        };
        assert!(table(108.0).contains("| 1.08 (1.00 to 5.00) | at most 1.08: met |"));
        assert!(table(109.0).contains("| at most 1.08: missed |"));
    }
}
