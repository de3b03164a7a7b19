//! How exactly an open loop keeps its schedule: what it offers against what was asked, how late it
//! starts what is due, and what that costs. On /dev/zero, which can do it, so that what is seen is
//! the generator; and fio with the same load beside it, where it is installed.
//!
//! A smoke size runs in `cargo test`. No test looks at the times: what falls due follows from the
//! schedule alone.

use std::fmt::Write as _;
use std::fs::File;
use std::process::Command;
use std::sync::atomic::AtomicBool;

use fathom_core::measure::{Record, StartDelay};
use fathom_core::spec::{Arrivals, BackendKind, Loop, OfferedLoad, Pacing, Point, Region, Stream};
use fathom_core::{Bytes, Quantile, Rate, Span};
use fathom_engine::target::OpenTarget;
use fathom_engine::{Devices, run_point};
use serde_json::Value;

use crate::engine::Nobody;

/// I/Os per second.
const RATES: [f64; 4] = [1e3, 1e4, 5e4, 1.5e5];
/// As much of /dev/zero as is addressed.
const ZEROS: Bytes = Bytes(1 << 30);
/// The most in flight, for both programs.
const DEPTH: u32 = 32;

/// How much of everything there is.
#[derive(Clone, Copy, Debug)]
pub struct OpenLoopSize {
    /// How long each run is measured.
    window: Span,
    /// Load before it.
    warm_up: Span,
    /// Whether fio runs beside it.
    peers: bool,
}

impl OpenLoopSize {
    /// Long enough for figures.
    pub const FULL: Self =
        Self { window: Span::from_secs(5), warm_up: Span::from_ms(500), peers: true };
    /// Just enough to run every row.
    #[cfg(test)]
    const SMOKE: Self = Self { window: Span::from_ms(200), warm_up: Span(0), peers: false };
}

/// Who makes the load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Generator {
    Fathom,
    /// With real-time priority, so that it can be seen on a machine that others use too.
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

/// What one run came to.
#[derive(Debug)]
pub struct OpenLoopRow {
    generator: Generator,
    arrivals: Arrivals,
    asked: f64,
    /// I/Os that fell due, or that fio started.
    offered: u64,
    /// In so much time.
    seconds: f64,
    /// How late the generator started them, and how many could not start because the target was
    /// behind. fio does not tell.
    lateness: Option<StartDelay>,
    /// Of one CPU.
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
                // A machine may forbid one of them; the others are still worth their lines.
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

/// fio with the same load. Its linear process starts I/Os at equal distances as long as completions
/// keep up.
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
    // fio writes its warnings ahead of the document, to the same place.
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
    /// How far what was offered lies from what was asked, in percent.
    fn deviation(&self) -> f64 {
        (self.offered as f64 / (self.asked * self.seconds) - 1.0) * 100.0
    }

    /// The same in standard errors of a Poisson count.
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
            // What falls due follows from the schedule, however slow the machine is.
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
