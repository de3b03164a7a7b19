//! Measures the cost of fathom itself: nanoseconds of engine time per I/O, and the parts that make
//! a report. The engine's figure is the one that guards the product, because a load generator that
//! is slower than its target measures itself.
//!
//! Each bench has a smoke size that runs in `cargo test`, so that the bench cannot rot. No test
//! checks the times.

use std::fmt::Write as _;
use std::fs;
use std::hint::black_box;
use std::sync::atomic::AtomicBool;
use std::time::Instant as WallInstant;

use fathom_core::measure::{Histogram, Record};
use fathom_core::spec::{
    Arrivals, BackendKind, Distribution, Extent, HotRange, Order, Pacing, Pattern, Point, Region,
    Stream,
};
use fathom_core::trial::{Place, Trial};
use fathom_core::verdict::Judgement;
use fathom_core::{Bytes, Quantile, Rate, Span};
use fathom_engine::target::OpenTarget;
use fathom_engine::{Devices, Nobody, run_point, sim};
use fathom_report::document::{self, Line};

/// The amount of work of the benches.
#[derive(Clone, Copy, Debug)]
pub struct EngineSize {
    /// The window of a run in virtual time.
    simulated: Span,
    /// The window of a run in real time.
    real: Span,
    /// The number of repetitions of a small operation.
    repeats: u32,
}

impl EngineSize {
    /// Long enough for reliable figures.
    pub const FULL: Self =
        Self { simulated: Span::from_secs(10), real: Span::from_secs(3), repeats: 2_000 };
    /// Just enough to run every line.
    #[cfg(test)]
    pub const SMOKE: Self =
        Self { simulated: Span::from_ms(100), real: Span::from_ms(100), repeats: 2 };
}

/// One line of the table.
#[derive(Debug)]
pub struct EngineRow {
    /// The operation.
    pub what: String,
    /// Real time per operation, in nanoseconds.
    pub wall_ns: f64,
    /// CPU time per operation, user and kernel, in nanoseconds. `None` if the work was too short to
    /// measure it.
    pub cpu_ns: Option<f64>,
    /// The number of operations.
    pub count: u64,
}

/// Runs every bench.
pub fn all(size: EngineSize) -> Result<Vec<EngineRow>, String> {
    let mut rows = Vec::new();
    for (name, depth) in [("queue depth 1", 1), ("queue depth 32", 32)] {
        rows.push(simulated(&format!("engine, simulated null device, {name}"), depth, size)?.0);
    }
    let target = zeros()?;
    for backend in [BackendKind::Uring, BackendKind::Aio, BackendKind::Sync] {
        for depth in [1, 32] {
            // A machine may forbid a backend. The other backends still get their lines.
            match real(&target, backend, depth, size) {
                Ok(row) => rows.push(row),
                Err(why) => eprintln!("left out: {why}"),
            }
        }
    }
    rows.extend(parts(size));
    rows.extend(histogram(size));
    rows.extend(documents(size)?);
    Ok(rows)
}

/// The rows as a table in Markdown.
pub fn table(rows: &[EngineRow]) -> String {
    let mut text =
        String::from("| what | real time | CPU time | repeated |\n| --- | --: | --: | --: |\n");
    for row in rows {
        let cpu = row.cpu_ns.map_or("-".to_owned(), nanoseconds);
        let wall = nanoseconds(row.wall_ns);
        // Writing to a String cannot fail.
        let _ = writeln!(text, "| {} | {wall} | {cpu} | {} |", row.what, row.count);
    }
    text
}

fn nanoseconds(value: f64) -> String {
    match value {
        value if value < 10_000.0 => format!("{value:.1} ns"),
        value if value < 10_000_000.0 => format!("{:.1} us", value / 1e3),
        value => format!("{:.1} ms", value / 1e6),
    }
}

/// User and kernel CPU time of the process, including its ended threads, in nanoseconds. The kernel
/// reports it in hundredths of a second, which is enough for work that takes seconds.
fn process_cpu_ns() -> Option<u64> {
    cpu_ns([11, 12])
}

/// The same for all children that have ended and were waited for.
pub fn children_cpu_ns() -> Option<u64> {
    cpu_ns([13, 14])
}

/// The sum of two fields of the process's line, counted from the end of the program's name.
fn cpu_ns(fields: [usize; 2]) -> Option<u64> {
    let text = fs::read_to_string("/proc/self/stat").ok()?;
    // The second field is the program's name in brackets, which may contain any characters.
    let values: Vec<&str> = text.rsplit_once(')')?.1.split_whitespace().collect();
    let ticks = |index: usize| values.get(index)?.parse::<u64>().ok();
    Some((ticks(fields[0])? + ticks(fields[1])?) * 10_000_000)
}

/// Below this, hundredths of a second are too coarse.
const CPU_WORTH_TELLING_NS: f64 = 200e6;

/// Does the work and returns the time per operation.
fn timed<T>(what: &str, work: impl FnOnce() -> (u64, T)) -> (EngineRow, T) {
    let (cpu, wall) = (process_cpu_ns(), WallInstant::now());
    let (count, result) = work();
    let wall_ns = wall.elapsed().as_nanos() as f64;
    let cpu_ns = process_cpu_ns()
        .zip(cpu)
        .map(|(end, start)| end.saturating_sub(start) as f64)
        .filter(|&cpu_ns| cpu_ns >= CPU_WORTH_TELLING_NS);
    let each = |total: f64| total / count.max(1) as f64;
    (
        EngineRow {
            what: what.to_owned(),
            wall_ns: each(wall_ns),
            cpu_ns: cpu_ns.map(each),
            count,
        },
        result,
    )
}

/// One worker that reads blocks of 4 KiB at random, at the given queue depth.
pub fn random_reads(queue_depth: u32, length: Bytes, window: Span) -> Point {
    let region = Region { target: 0, offset: Bytes(0), length };
    let stream = Stream {
        pacing: Pacing::closed(queue_depth),
        ..Stream::reading("random read 4 KiB", Vec::from([region]))
    };
    Point::of(Vec::from([stream]), window)
}

/// The engine alone. The device answers in virtual time and costs one heap operation per I/O.
fn simulated(
    what: &str,
    depth: u32,
    size: EngineSize,
) -> Result<(EngineRow, (Point, Record)), String> {
    // There are as many servers as I/Os in flight. Each I/O takes 1 us of virtual time, so a second
    // has enough of them.
    let options: sim::Options = format!("queue,servers={depth},service-time={depth}us").parse()?;
    let point = random_reads(depth, options.size, size.simulated);
    let stop = AtomicBool::new(false);
    let (row, record) = timed(what, || {
        let record = run_point(&point, Devices::Simulated(&options), &stop, &mut Nobody);
        (record.as_ref().map_or(0, |record| record.ledger().completed), record)
    });
    Ok((row, (point, record.map_err(|error| error.to_string())?)))
}

/// The kernel's shortest path: it clears the buffer and completes the read. A file in memory does
/// not work here, because io_uring hands such files to its worker threads.
pub fn zeros() -> Result<OpenTarget, String> {
    open_device("/dev/zero")
}

/// Opens a device of the kernel that keeps no data. It accepts writes too.
pub fn open_device(name: &str) -> Result<OpenTarget, String> {
    let file = fs::File::options().read(true).write(true).open(name);
    let file = file.map_err(|error| format!("{name}: {error}"))?;
    Ok(OpenTarget {
        name: name.to_owned(),
        file: file.into(),
        size: ZEROS,
        alignment: Bytes(1),
        passthrough: None,
    })
}

/// The part of it that is addressed.
pub const ZEROS: Bytes = Bytes(1 << 30);

/// The engine, a backend and the kernel's shortest path.
fn real(
    target: &OpenTarget,
    backend: BackendKind,
    depth: u32,
    size: EngineSize,
) -> Result<EngineRow, String> {
    let what = format!("engine, {} on /dev/zero, queue depth {depth}", backend.name());
    let point = random_reads(depth, ZEROS, size.real);
    let targets = std::slice::from_ref(target);
    let stop = AtomicBool::new(false);
    let (row, record) = timed(&what, || {
        let devices = Devices::Real { streams: &[targets.to_vec()], backend };
        let record = run_point(&point, devices, &stop, &mut Nobody);
        (record.as_ref().map_or(0, |record| record.ledger().completed), record)
    });
    record.map(|_| row).map_err(|error| error.to_string())
}

/// The parts of the loop that can run on their own.
fn parts(size: EngineSize) -> Vec<EngineRow> {
    let count = u64::from(size.repeats) * 1000;
    let mut rows = Vec::new();
    let zipf = Distribution::Zipf { theta: 1.1, order: Order::Spread };
    let hot_range = HotRange { io_share: 0.9, extent: Extent::Share(0.1) };
    let hot = Distribution::Hot(Vec::from([hot_range]));
    for (name, pattern, read_share) in [
        ("requests, random", Pattern::RANDOM, 1.0),
        ("requests, random, half of them writes", Pattern::RANDOM, 0.5),
        ("requests, sequential", Pattern::SEQUENTIAL, 1.0),
        ("requests, random without repetition", Pattern::Shuffled, 1.0),
        ("requests, interlocked", Pattern::Interlocked { stride: None }, 1.0),
        ("requests, zipf 1.1", Pattern::Random(zipf), 1.0),
        ("requests, hot ranges", Pattern::Random(hot), 1.0),
        ("requests, mixed", Pattern::mixed(0.3, Distribution::Uniform), 1.0),
    ] {
        let mut point = random_reads(32, ZEROS, Span::from_ms(100));
        point.streams[0].kind_mut().pattern = pattern;
        point.streams[0].kind_mut().read_share = read_share;
        let draw = || fathom_engine::bench::draw_requests(black_box(&point), count);
        rows.push(timed(name, draw).0);
    }
    let refresh = || (count, fathom_engine::bench::refresh_payloads(32, black_box(count)));
    rows.push(timed("payload, refresh 4 KiB", refresh).0);
    for (name, arrivals) in [
        ("schedule, next of uniform arrivals", Arrivals::Uniform),
        ("schedule, next of Poisson arrivals", Arrivals::Poisson),
    ] {
        let rate = Rate(1e6);
        let take =
            || (count, fathom_engine::bench::take_arrivals(arrivals, rate, black_box(count)));
        let (row, last) = timed(name, take);
        black_box(last);
        rows.push(row);
    }
    rows
}

fn histogram(size: EngineSize) -> Vec<EngineRow> {
    let values: Vec<u64> =
        (0..1000_u64).map(|n| 50_000 + n.wrapping_mul(2_654_435_761) % 200_000).collect();
    let mut one = Histogram::default();
    let (record, ()) = timed("histogram, record a value", || {
        for _ in 0..size.repeats {
            for &value in &values {
                one.record(black_box(value));
            }
        }
        (u64::from(size.repeats) * values.len() as u64, ())
    });
    let mut sum = Histogram::default();
    let (merge, ()) = timed("histogram, merge another", || {
        for _ in 0..size.repeats {
            sum.merge(black_box(&one));
        }
        (u64::from(size.repeats), ())
    });
    let (quantile, ()) = timed("histogram, p99.9", || {
        for _ in 0..size.repeats {
            black_box(black_box(&sum).quantile(Quantile(0.999)));
        }
        (u64::from(size.repeats), ())
    });
    Vec::from([record, merge, quantile])
}

/// Writes and reads the document of a trial of usual length.
fn documents(size: EngineSize) -> Result<Vec<EngineRow>, String> {
    let (_, (point, record)) = simulated("", 32, size)?;
    let trial = Trial {
        point,
        place: Place::default(),
        backend: BackendKind::Sim,
        backend_reason: "the target is simulated".to_owned(),
        started_unix_ns: 0,
        record,
        counters: None,
        traced: None,
        breakdown: None,
        hosts: Vec::new(),
        is_void: false,
        doubt: None,
    };
    let judgement = Judgement { findings: Vec::new(), unchecked: Vec::new() };
    let repeats = size.repeats.div_ceil(100);
    let (write, line) = timed("document, write a trial of 10 s", || {
        let mut line = String::new();
        for _ in 0..repeats {
            line = Line::Trial(Box::new(document::Trial::new(&trial, &judgement))).to_json();
        }
        (u64::from(repeats), line)
    });
    if line.is_empty() {
        return Err("a trial was written as nothing".to_owned());
    }
    let path = crate::root().join("crates/report/tests/data/quick.jsonl");
    let bytes = fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    let (read, stored) = timed("document, read a result of quick", || {
        for _ in 1..repeats {
            black_box(document::read(black_box(&bytes)).is_ok());
        }
        (u64::from(repeats), document::read(&bytes))
    });
    let stored = stored.map_err(|error| error.to_string())?;
    let (render, ()) = timed("HTML, render that result", || {
        for _ in 0..repeats {
            black_box(fathom_report::html::document(black_box(&stored)));
        }
        (u64::from(repeats), ())
    });
    Ok(Vec::from([write, read, render]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bench_runs_at_its_smoke_size() {
        let rows = all(EngineSize::SMOKE).expect("the benches run");
        assert!(rows.iter().all(|row| row.count > 0 && row.wall_ns > 0.0), "{rows:?}");
        let text = table(&rows);
        assert_eq!(text.lines().count(), rows.len() + 2);
        assert!(
            text.contains("simulated null device") && text.contains("schedule, next of Poisson")
        );
    }

    #[test]
    fn times_are_written_in_their_own_unit() {
        assert_eq!(nanoseconds(4.25), "4.2 ns");
        assert_eq!(nanoseconds(12_345.0), "12.3 us");
        assert_eq!(nanoseconds(12_345_678.0), "12.3 ms");
    }
}
