//! Measures how exactly an open loop keeps its schedule: the rate that it offers against the
//! requested rate, how late it starts due I/Os, and what that costs. The target is /dev/zero, which
//! is fast enough, so the figures show the generator. Where fio is installed, it runs the same load
//! for comparison.
//!
//! A smoke size runs in `cargo test`. No test checks the times: the schedule alone determines which
//! I/Os fall due.

use std::fmt::Write as _;
use std::fs::File;
use std::process::Command;
use std::sync::atomic::AtomicBool;

use fathom_core::measure::{Record, StartDelay};
use fathom_core::spec::{Arrivals, BackendKind, Loop, OfferedLoad, Pacing, Point, Region, Stream};
use fathom_core::{Bytes, Quantile, Rate, Span};
use fathom_engine::target::OpenTarget;
use fathom_engine::{Devices, Nobody, run_point};
use serde_json::Value;

/// I/Os per second.
const RATES: [f64; 4] = [1e3, 1e4, 5e4, 1.5e5];
/// The part of /dev/zero that is addressed.
const ZEROS: Bytes = Bytes(1 << 30);
/// The maximum number of I/Os in flight, for both programs.
const DEPTH: u32 = 32;

/// The amount of work of the bench.
#[derive(Clone, Copy, Debug)]
pub struct OpenLoopSize {
    /// The window of each run.
    window: Span,
    /// The load before the window.
    warm_up: Span,
    /// Whether fio runs too.
    peers: bool,
}

impl OpenLoopSize {
    /// Long enough for reliable figures.
    pub const FULL: Self =
        Self { window: Span::from_secs(5), warm_up: Span::from_ms(500), peers: true };
    /// Just enough to run every row.
    #[cfg(test)]
    const SMOKE: Self = Self { window: Span::from_ms(200), warm_up: Span(0), peers: false };
}

/// The program that makes the load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Generator {
    Fathom,
    /// With real-time priority, so that the generator's own delays are visible on a machine with
    /// other users.
    FathomRealtime,
    Fio,
}

impl Generator {
    fn name(self) -> &'static str {
        match self {
            Self::Fathom => "fathom",
            Self::FathomRealtime => "fathom --realtime",
            Self::Fio => "fio",
        }
    }
}

/// The result of one run.
#[derive(Debug)]
pub struct OpenLoopRow {
    generator: Generator,
    arrivals: Arrivals,
    asked: f64,
    /// The I/Os that fell due, or that fio started.
    offered: u64,
    /// The time in which they fell due.
    seconds: f64,
    /// How late the generator started them, and how many could not start because the target was
    /// behind. fio does not report this.
    lateness: Option<StartDelay>,
    /// CPU time as a share of one CPU.
    cpu_share: f64,
}

/// Runs every row that this machine allows.
pub fn all(size: OpenLoopSize) -> Result<Vec<OpenLoopRow>, String> {
    let name = "/dev/zero".to_owned();
    let file = File::open(&name).map_err(|error| format!("{name}: {error}"))?;
    let target =
        OpenTarget { name, file: file.into(), size: ZEROS, alignment: Bytes(1), passthrough: None };
    let mut rows = Vec::new();
    let mut generators = Vec::from([Generator::Fathom, Generator::FathomRealtime]);
    generators.extend(size.peers.then_some(Generator::Fio));
    for generator in generators {
        for arrivals in [Arrivals::Uniform, Arrivals::Poisson] {
            for asked in RATES {
                let row = match generator {
                    Generator::Fio => fio(arrivals, asked, size),
                    _ => fathom(&target, generator, arrivals, asked, size),
                };
                // A machine may forbid one of them. The others still get their lines.
                match row {
                    Ok(row) => rows.push(row),
                    Err(why) => eprintln!("left out: {}: {why}", generator.name()),
                }
            }
        }
    }
    Ok(rows)
}

fn fathom(
    target: &OpenTarget,
    generator: Generator,
    arrivals: Arrivals,
    asked: f64,
    size: OpenLoopSize,
) -> Result<OpenLoopRow, String> {
    let stream = Stream {
        pacing: Pacing::of(Loop::Open {
            load: OfferedLoad::Steady(Rate(asked)),
            arrivals,
            queue_depth_max: DEPTH,
            realtime: generator == Generator::FathomRealtime,
        }),
        ..Stream::reading(
            "random read 4 KiB",
            Vec::from([Region { target: 0, offset: Bytes(0), length: ZEROS }]),
        )
    };
    let point = Point {
        warm_up: size.warm_up,
        interval: Span::from_ms(100),
        ..Point::of(Vec::from([stream]), size.window)
    };
    let targets = std::slice::from_ref(target);
    let devices = Devices::Real { streams: &[targets.to_vec()], backend: BackendKind::Uring };
    let record = run_point(&point, devices, &AtomicBool::new(false), &mut Nobody)
        .map_err(|error| error.to_string())?;
    Ok(of_record(&record, generator, arrivals, asked, point.warm_up + point.window))
}

fn of_record(
    record: &Record,
    generator: Generator,
    arrivals: Arrivals,
    asked: f64,
    time: Span,
) -> OpenLoopRow {
    let mut lateness = StartDelay::default();
    let delays = record.workers.iter().filter_map(|worker| worker.start_delay.as_ref());
    delays.for_each(|delay| lateness.merge(delay));
    let cpu: f64 =
        record.workers.iter().filter_map(|worker| worker.cpu).map(Span::as_secs_f64).sum();
    OpenLoopRow {
        generator,
        arrivals,
        asked,
        offered: record.ledger().due,
        seconds: time.as_secs_f64(),
        lateness: Some(lateness),
        cpu_share: cpu / record.window.as_secs_f64(),
    }
}

/// Runs fio with the same load. Its linear process starts I/Os at equal intervals as long as
/// completions keep up.
fn fio(arrivals: Arrivals, asked: f64, size: OpenLoopSize) -> Result<OpenLoopRow, String> {
    let process = match arrivals {
        Arrivals::Uniform => "linear",
        Arrivals::Poisson => "poisson",
    };
    let output = Command::new("fio")
        .args(["--name=peer", "--thread", "--readonly", "--rw=randread", "--bs=4k"])
        .args(["--filename=/dev/zero", "--size=1g", "--norandommap", "--invalidate=0"])
        .args(["--ioengine=io_uring", "--time_based", "--output-format=json", "--eta=never"])
        .arg(format!("--iodepth={DEPTH}"))
        .arg(format!("--runtime={}ms", size.window.0 / 1_000_000))
        .arg(format!("--rate_iops={asked}"))
        .arg(format!("--rate_process={process}"))
        .output()
        .map_err(|error| format!("it could not be started ({error}): apt-get install fio"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    of_fio(&text, arrivals, asked).map_err(|why| {
        format!("{why} ({}): {}", output.status, String::from_utf8_lossy(&output.stderr))
    })
}

fn of_fio(text: &str, arrivals: Arrivals, asked: f64) -> Result<OpenLoopRow, String> {
    // fio writes its warnings to the same stream, before the document.
    let begin = text.find('{').ok_or("no JSON")?;
    let read: Value = serde_json::from_str(&text[begin..]).map_err(|error| error.to_string())?;
    let job = &read["jobs"][0];
    let number = |value: &Value, name: &str| {
        value[name].as_f64().ok_or_else(|| format!("its JSON has no number {name:?}"))
    };
    Ok(OpenLoopRow {
        generator: Generator::Fio,
        arrivals,
        asked,
        offered: number(&job["read"], "total_ios")? as u64,
        seconds: number(job, "job_runtime")? / 1000.0,
        lateness: None,
        cpu_share: (number(job, "usr_cpu")? + number(job, "sys_cpu")?) / 100.0,
    })
}

impl OpenLoopRow {
    /// The difference between the offered and the requested load, in percent.
    fn deviation(&self) -> f64 {
        (self.offered as f64 / (self.asked * self.seconds) - 1.0) * 100.0
    }

    /// The same difference, in standard errors of a Poisson count.
    fn standard_errors(&self) -> f64 {
        let expected = self.asked * self.seconds;
        (self.offered as f64 - expected) / expected.sqrt()
    }

    fn write(&self, text: &mut String) {
        let (arrivals, errors) = match self.arrivals {
            Arrivals::Uniform => ("uniform", "-".to_owned()),
            Arrivals::Poisson => ("Poisson", format!("{:+.1}", self.standard_errors())),
        };
        let lateness = self.lateness.as_ref();
        let at = |quantile: f64| {
            let value = lateness.and_then(|late| late.generator.quantile(Quantile(quantile)));
            time(value)
        };
        // Writing to a String cannot fail.
        let _ = writeln!(
            text,
            "| {} | {arrivals} | {} | {:+.3} % | {errors} | {} | {} | {} | {} | {} | {:.0} % |",
            self.generator.name(),
            self.asked,
            self.deviation(),
            at(0.5),
            at(0.99),
            at(0.999),
            time(lateness.and_then(|late| late.generator.max())),
            lateness.map_or("-".to_owned(), |late| late.target.count().to_string()),
            self.cpu_share * 100.0,
        );
    }
}

fn time(ns: Option<u64>) -> String {
    ns.map_or("-".to_owned(), |ns| Span(ns).to_string())
}

/// The rows as a table in Markdown.
pub fn table(rows: &[OpenLoopRow]) -> String {
    let mut text = String::from(
        "| generator | arrivals | asked per second | offered against asked | standard errors \
         | late: p50 | p99 | p99.9 | max | target behind | CPU |\n\
         | --- | --- | --: | --: | --: | --: | --: | --: | --: | --: | --: |\n",
    );
    rows.iter().for_each(|row| row.write(&mut text));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rate_is_offered_as_asked_at_the_smoke_size() {
        let access = fathom_core::spec::Access::DIRECT;
        if let Err(why) = fathom_engine::choose(Some(BackendKind::Uring), access) {
            eprintln!("skipped: {why}");
            return;
        }
        let rows = all(OpenLoopSize::SMOKE).expect("the rows run");
        let plain = rows.iter().filter(|row| row.generator == Generator::Fathom);
        assert_eq!(plain.count(), 2 * RATES.len());
        for row in &rows {
            // The schedule alone determines which I/Os fall due, however slow the machine is.
            match row.arrivals {
                Arrivals::Uniform => assert!(row.deviation().abs() < 0.1, "{row:?}"),
                Arrivals::Poisson => assert!(row.standard_errors().abs() < 3.0, "{row:?}"),
            }
        }
        let text = table(&rows);
        assert_eq!(text.lines().count(), rows.len() + 2);
        assert!(text.contains("| fathom | Poisson | 150000 | "), "{text}");
    }

    #[test]
    fn fios_json_says_what_it_offered() {
        let output = r#"fio: a warning
{"jobs": [{"job_runtime": 5000, "usr_cpu": 10.5, "sys_cpu": 39.5, "read": {"total_ios": 5250}}]}"#;
        let row = of_fio(output, Arrivals::Poisson, 1000.0).expect("it is complete");
        assert!((row.deviation() - 5.0).abs() < 1e-9 && (row.cpu_share - 0.5).abs() < 1e-9);
        assert!((row.standard_errors() - 250.0 / 5000_f64.sqrt()).abs() < 1e-9);
        assert!(table(&[row]).contains("| fio | Poisson | 1000 | +5.000 % | +3.5 | - | - |"));
        assert!(of_fio("nothing", Arrivals::Uniform, 1.0).is_err());
    }
}
