//! Measures the memory that a run of a day needs, and that its report needs.
//!
//! The real collector, record, verdict and document receive invented tallies of 24 hours with 8
//! streams and intervals of a second. Service times come from a lognormal distribution whose scale
//! drifts, so that a direction of an interval occupies 200 to 300 buckets. Each part runs in its
//! own process. The kernel reports the peak of each process.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{BufReader, BufWriter, Write};
use std::path::Path;
use std::process::Command;

use fathom_core::facts::{Host, Target};
use fathom_core::measure::Tally;
use fathom_core::spec::{BackendKind, Kind, Point, Region, Stream};
use fathom_core::trial::{Place, Trial};
use fathom_core::verdict::judge;
use fathom_core::{Bytes, Span, SplitMix64};
use fathom_engine::replay;
use fathom_report::document::{self, DistributionForm, Header, HeaderInput, Line};
use fathom_report::page::Level;
use fathom_report::terminal::{self, Style};
use fathom_report::{csv, html};

/// The length of the run, in seconds.
const DAY: u64 = 86_400;
const STREAMS: usize = 8;
/// I/Os of a stream in an interval: enough to occupy as many buckets as a far larger number would.
const IOS: usize = 600;
/// The number of service times that are drawn beforehand. Drawing one for every I/O would take
/// minutes.
const DRAWN: usize = 1 << 16;

/// Runs the bench and returns a table of the peaks.
pub fn bench() -> Result<String, String> {
    let folder = std::env::temp_dir().join(format!("fathom-memory-{}", std::process::id()));
    fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let table = table(&folder, DAY);
    // The folder is below the one for temporary files, and holds nothing else of value.
    let _ = fs::remove_dir_all(&folder);
    table
}

fn table(folder: &Path, seconds: u64) -> Result<String, String> {
    let mut text = String::from(
        "| 24 h, 8 streams, intervals of 1 s | peak until the document is written | the document | \
         peak of the whole run | peak of `report` with HTML and table | the page |\n\
         | --- | --: | --: | --: | --: | --: |\n",
    );
    for (name, read_share) in [("reads", 1.0), ("70 % reads, 30 % writes", 0.7)] {
        let result = folder.join(format!("{read_share}.jsonl"));
        let run = child(&["run", &seconds.to_string(), &read_share.to_string()], &result)?;
        let report = child(&["report"], &result)?;
        let size = |path: &Path| fs::metadata(path).map_or(0, |metadata| metadata.len());
        let mb = |bytes: u64| format!("{:.1} MB", bytes as f64 / 1e6);
        let ([record, whole], [report]) = (peaks(&run)?, peaks(&report)?);
        // Writing to a String cannot fail.
        let _ = writeln!(
            text,
            "| {name} | {} | {} | {} | {} | {} |",
            mb(record),
            mb(size(&result)),
            mb(whole),
            mb(report),
            mb(size(&result.with_extension("html"))),
        );
    }
    Ok(text)
}

/// Runs a part in its own process.
fn child(part: &[&str], result: &Path) -> Result<String, String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let output = Command::new(program)
        .arg("memory")
        .args(part)
        .arg(result)
        .output()
        .map_err(|error| error.to_string())?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
    }
}

/// The numbers that a part printed.
fn peaks<const N: usize>(printed: &str) -> Result<[u64; N], String> {
    let numbers: Vec<u64> = printed.split_whitespace().flat_map(str::parse).collect();
    numbers.try_into().map_err(|_| format!("{N} peaks were to be told, not '{}'", printed.trim()))
}

/// Runs one part, in the process that was started for it. Returns the text to print.
pub fn part(arguments: &[&str]) -> Result<String, String> {
    match arguments {
        ["run", seconds, read_share, result] => {
            let seconds = seconds.parse().map_err(|error| format!("{seconds}: {error}"))?;
            let share = read_share.parse().map_err(|error| format!("{read_share}: {error}"))?;
            write(seconds, share, Path::new(result))?;
            let written = peak()?;
            // At its end a run reads its own document and shows it.
            terminal::document(&read(Path::new(result))?, Level::Full, &Style::default());
            Ok(format!("{written} {}\n", peak()?))
        }
        ["report", result] => {
            report(Path::new(result))?;
            Ok(format!("{}\n", peak()?))
        }
        other => Err(format!("bench memory has no part {other:?}")),
    }
}

/// The peak memory of this process, in bytes.
fn peak() -> Result<u64, String> {
    let status = fs::read_to_string("/proc/self/status").map_err(|error| error.to_string())?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|line| line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok());
    kib.map(|kib| kib * 1024).ok_or_else(|| "the kernel tells no VmHWM".to_owned())
}

/// Lognormal around 100 us: nine in ten lie between 44 and 228 us.
fn service_time(chance: &mut SplitMix64) -> f64 {
    100_000.0 * (0.5 * chance.normal()).exp()
}

fn point(seconds: u64, read_share: f64) -> Point {
    let stream = |number: usize| Stream {
        ios: Kind { read_share, ..Kind::default() }.into(),
        ..Stream::reading(
            format!("stream {number}"),
            Vec::from([Region { target: 0, offset: Bytes(0), length: Bytes(1 << 40) }]),
        )
    };
    Point {
        name: "24 hours".to_owned(),
        interval: Span::from_secs(1),
        ..Point::of((0..STREAMS).map(stream).collect(), Span::from_secs(seconds))
    }
}

/// A run of the given number of seconds, from its tallies to its document.
fn write(seconds: u64, read_share: f64, result: &Path) -> Result<(), String> {
    let mut chance = SplitMix64(1);
    let drawn: Vec<f64> = (0..DRAWN).map(|_| service_time(&mut chance)).collect();
    let reads = (IOS as f64 * read_share) as usize;
    let fill = &mut |_: usize, _: Span, tally: &mut Tally| {
        let scale = 1.0 + 0.2 * chance.uniform();
        let ios = IOS - (chance.draw() % 50) as usize;
        for number in 0..ios {
            let flow = &mut tally.flows[usize::from(reads <= number)];
            flow.service_time.record((drawn[chance.draw() as usize % DRAWN] * scale) as u64);
            flow.bytes.0 += 4096;
        }
    };
    let point = point(seconds, read_share);
    let record = replay(&point, fill);
    let trial = Trial {
        point,
        place: Place::default(),
        backend: BackendKind::Sim,
        backend_reason: "the tallies are invented".to_owned(),
        started_unix_ns: 0,
        record,
        counters: None,
        traced: None,
        breakdown: None,
        hosts: Vec::new(),
        is_void: false,
        doubt: None,
    };
    let targets = [Target::simulated("invented", Bytes(1 << 40))];
    let host = Host::default();
    let judgement = judge(&trial, &host, &targets);
    let header = Header::new(HeaderInput {
        fathom_version: env!("CARGO_PKG_VERSION"),
        command: document::Command::Run,
        command_line: &[],
        created_unix_ns: 0,
        seed: 1,
        host: Some(&host),
        hosts: &[],
        targets: &targets,
        planned_points: 1,
        experiment: None,
        identities: &[],
        working_directory: None,
    });
    let write = || {
        let mut out = BufWriter::new(File::create_new(result)?);
        writeln!(out, "{}", Line::Header(Box::new(header)).to_json())?;
        document::write_trial(&mut out, &trial, &judgement, DistributionForm::Pairs)?;
        out.write_all(b"\n")?;
        out.flush()
    };
    write().map_err(|error: std::io::Error| format!("{}: {error}", result.display()))
}

fn read(result: &Path) -> Result<document::Document, String> {
    let failed = |why: &dyn std::fmt::Display| format!("{}: {why}", result.display());
    let file = File::open(result).map_err(|error| failed(&error))?;
    let read = document::read_from(&mut BufReader::new(file)).map_err(|error| failed(&error))?;
    read.map_err(|error| failed(&error))
}

/// Makes everything that `fathom report` can make from a result.
fn report(result: &Path) -> Result<(), String> {
    let document = read(result)?;
    let put = |extension: &str, text: String| {
        let path = result.with_extension(extension);
        fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))
    };
    put("txt", terminal::document(&document, Level::Full, &Style::default()))?;
    put("csv", csv::document(&document))?;
    put("html", html::document(&document))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_and_its_reports_work_at_a_smoke_size() {
        let folder =
            std::env::temp_dir().join(format!("fathom-memory-test-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let result = folder.join("smoke.jsonl");
        let name = result.to_str().unwrap();
        let seconds = 700;
        let [written, whole] =
            peaks(&part(&["run", &seconds.to_string(), "0.7", name]).unwrap()).unwrap();
        let [reported] = peaks(&part(&["report", name]).unwrap()).unwrap();
        assert!(0 < written && written <= whole && whole <= reported);
        let document = read(&result).unwrap();
        let trial = &document.trials[0];
        assert_eq!(trial.intervals().count() as u64, seconds * STREAMS as u64);
        assert!(trial.series.len() < 600 * STREAMS);
        // The number of buckets is about what the bench states.
        let buckets: Vec<usize> = trial
            .series
            .iter()
            .flat_map(|one| &one.read)
            .map(|f| f.response_time.buckets.len())
            .collect();
        let mean = buckets.iter().sum::<usize>() / buckets.len();
        assert!((200..=400).contains(&mean), "{mean}");
        assert!(result.with_extension("html").exists());
        assert!(part(&["other"]).is_err());
        fs::remove_dir_all(&folder).unwrap();
    }
}
