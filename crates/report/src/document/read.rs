//! Reads a journal: every complete line of it, whatever happened to the last one.
//!
//! A result file may come from anywhere, so everything that a renderer relies on (places in lists,
//! the order of buckets, sums that cannot overflow) is checked here, once.

use std::fmt;

use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::{
    Conclusion, Distribution, Document, FORMAT, FORMAT_VERSION, Flow, Header, Target, Trial, Worker,
};

/// Why a file cannot be read as a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReadError {
    /// There is nothing in it.
    Empty,
    /// It is something else.
    NotAResult,
    /// The run ended before its header was written in full.
    TornHeader,
    /// A later fathom wrote it.
    NewerFormat {
        /// The version it has.
        version: u32,
    },
    /// A line before the last one cannot be read.
    Damaged {
        /// The line's number, from 1.
        line: usize,
        /// The column, from 1; none if the line is JSON and contradicts itself.
        column: Option<usize>,
        /// What is wrong there.
        why: String,
    },
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str(
                "the file is empty: the run ended before it wrote anything, so run it again",
            ),
            Self::NotAResult => f.write_str(
                "this is not a fathom result: give a file that `fathom run` or `fathom quick` wrote",
            ),
            Self::TornHeader => f.write_str(
                "the first line is torn: the run ended before it measured anything, so run it again",
            ),
            Self::NewerFormat { version } => write!(
                f,
                "the result has format version {version}, and this fathom reads up to \
                 {FORMAT_VERSION}: use the fathom that wrote it, or a later one"
            ),
            Self::Damaged { line, column: Some(column), why } => write!(
                f,
                "line {line} is damaged at column {column} ({why}): take the file from where it \
                 was written, or delete the line to read the others"
            ),
            Self::Damaged { line, column: None, why } => write!(
                f,
                "line {line} contradicts itself ({why}): take the file from where it was written, \
                 or delete the line to read the others"
            ),
        }
    }
}

impl std::error::Error for ReadError {}

/// What every line says it is.
#[derive(Deserialize)]
struct Tag {
    line: String,
}

/// What is known of a header before its version is.
#[derive(Deserialize)]
struct Start {
    line: String,
    format: String,
    format_version: u32,
}

/// How every result file starts.
const START: &[u8] = br#"{"line":"header","format":"fathom-result""#;

/// Reads a result file.
///
/// A last line that was torn when the run was killed is left out, and the document says so.
///
/// # Errors
///
/// When the file is something else, comes from a later version, or is damaged before its last line.
pub fn read(bytes: &[u8]) -> Result<Document, ReadError> {
    if bytes.iter().all(u8::is_ascii_whitespace) {
        return Err(ReadError::Empty);
    }
    let mut lines = bytes.split(|&byte| byte == b'\n').enumerate().peekable();
    let (_, first) = lines.next().ok_or(ReadError::Empty)?;
    let header = read_header(first, lines.peek().is_some())?;
    let mut document = Document { header, trials: Vec::new(), conclusion: None, torn: false };
    while let Some((index, line)) = lines.next() {
        if line.iter().all(u8::is_ascii_whitespace) {
            continue;
        }
        // After a crash some file systems show zeros where data never arrived: such a line is torn
        // even when more follows, because nothing was ever written after it.
        let torn = lines.peek().is_none() || line.contains(&0);
        match read_line(line, &mut document) {
            Ok(()) => {}
            Err(_) if torn => {
                document.torn = true;
                break;
            }
            Err((column, why)) => {
                return Err(ReadError::Damaged { line: index + 1, column, why });
            }
        }
    }
    Ok(document)
}

fn read_header(line: &[u8], complete: bool) -> Result<Header, ReadError> {
    let start: Start = match serde_json::from_slice(line) {
        Ok(start) => start,
        Err(_) if !complete && (line.starts_with(START) || START.starts_with(line)) => {
            return Err(ReadError::TornHeader);
        }
        Err(_) => return Err(ReadError::NotAResult),
    };
    if start.line != "header" || start.format != FORMAT {
        return Err(ReadError::NotAResult);
    }
    if start.format_version > FORMAT_VERSION {
        return Err(ReadError::NewerFormat { version: start.format_version });
    }
    let damaged = |(column, why)| ReadError::Damaged { line: 1, column, why };
    let header: Header = parse(line).map_err(damaged)?;
    header.targets.iter().try_for_each(check_target).map_err(|why| damaged((None, why)))?;
    Ok(header)
}

/// Where in the line, and what.
type LineError = (Option<usize>, String);

fn parse<T: DeserializeOwned>(line: &[u8]) -> Result<T, LineError> {
    serde_json::from_slice(line).map_err(|error| {
        let text = error.to_string();
        // The line is always 1 here, and the column is told apart.
        let why = text.split(" at line ").next().unwrap_or(&text).to_owned();
        (Some(error.column()), why)
    })
}

fn read_line(line: &[u8], document: &mut Document) -> Result<(), LineError> {
    if document.conclusion.is_some() {
        return Err((None, "it comes after the conclusion".to_owned()));
    }
    let tag: Tag = parse(line)?;
    match tag.line.as_str() {
        "trial" => {
            let trial: Trial = parse(line)?;
            check_trial(&trial, &document.header).map_err(|why| (None, why))?;
            document.trials.push(trial);
            Ok(())
        }
        "conclusion" => {
            document.conclusion = Some(parse::<Conclusion>(line)?);
            Ok(())
        }
        "header" => Err((None, "it is a second header".to_owned())),
        other => Err((None, format!("there is no line called '{other}'"))),
    }
}

fn check(holds: bool, why: impl Fn() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(why()) }
}

fn check_target(target: &Target) -> Result<(), String> {
    let layers = target.layers.len();
    for (place, layer) in target.layers.iter().enumerate() {
        let after = layer.members.iter().all(|&member| member > place && member < layers);
        check(after, || {
            format!("{} of target {} has members that are not below it", layer.name, target.name)
        })?;
    }
    Ok(())
}

fn check_trial(trial: &Trial, header: &Header) -> Result<(), String> {
    let targets = header.targets.len();
    let streams = trial.point.streams.len();
    let known = |target: u32| check((target as usize) < targets, || no_target(target));
    let stream = |stream: u32| {
        check((stream as usize) < streams, || format!("the point has no stream {stream}"))
    };
    check(streams > 0, || "the point has no stream".to_owned())?;
    for region in trial.point.streams.iter().flat_map(|stream| &stream.regions) {
        known(region.target)?;
    }
    // So that sums over workers stay far from an overflow.
    check(trial.workers.len() < 1 << 20, || "too many workers".to_owned())?;
    for worker in &trial.workers {
        stream(worker.stream)?;
        worker.cells.iter().try_for_each(|cell| known(cell.target))?;
        worker.errors.first.iter().try_for_each(|error| known(error.target))?;
        check_worker(worker)?;
    }
    let mut series = (0u128, 0u128);
    for interval in &trial.series {
        stream(interval.stream)?;
        check(interval.start_ns.checked_add(interval.length_ns).is_some(), too_large)?;
        check(interval.failed < COUNT_LIMIT, too_large)?;
        for flow in interval.read.iter().chain(&interval.write) {
            check_distribution(&flow.response_time)?;
            series.0 += u128::from(flow.bytes);
            series.1 += u128::from(flow.response_time.count());
        }
    }
    let flows = trial.workers.iter().flat_map(|w| &w.cells).flat_map(|c| [&c.read, &c.write]);
    let sum = flows.fold((0u128, 0u128), |(bytes, ios), flow| {
        (bytes + u128::from(flow.bytes), ios + u128::from(flow.ios))
    });
    let fits = |(bytes, ios)| bytes < u128::from(LIMIT) && ios < u128::from(LIMIT);
    check(fits(sum) && fits(series) && trial.series.len() < 1 << 20, too_large)
}

/// No count and no sum of a real run comes near these, and what is added up stays below 2^64.
const LIMIT: u64 = 1 << 62;
const COUNT_LIMIT: u64 = 1 << 42;

fn no_target(target: u32) -> String {
    format!("the header has no target {target}")
}

fn too_large() -> String {
    "a number is beyond every limit".to_owned()
}

fn check_worker(worker: &Worker) -> Result<(), String> {
    check(worker.cells.len() < 1 << 20, || "too many targets for one worker".to_owned())?;
    for cell in &worker.cells {
        check_flow(&cell.read)?;
        check_flow(&cell.write)?;
    }
    if let Some(delay) = &worker.start_delay {
        check_distribution(&delay.generator)?;
        check_distribution(&delay.target)?;
    }
    let l = &worker.ledger;
    let parts =
        [l.due, l.completed_in_warm_up, l.completed, l.failed, l.in_flight, l.lost, l.unstarted];
    check(parts.iter().all(|&n| n < COUNT_LIMIT), too_large)?;
    check(worker.errors.count < COUNT_LIMIT, too_large)?;
    check(worker.queue_depth.is_finite(), too_large)
}

fn check_flow(flow: &Flow) -> Result<(), String> {
    check_distribution(&flow.service_time)?;
    flow.response_time.iter().try_for_each(check_distribution)?;
    check(flow.bytes < LIMIT, too_large)?;
    let count = flow.service_time.count();
    check(flow.ios == count, || format!("{} I/Os, and a service time of {count}", flow.ios))
}

fn check_distribution(times: &Distribution) -> Result<(), String> {
    let bad = || "a distribution contradicts itself".to_owned();
    let rising = times.buckets.windows(2).all(|pair| pair[0].0 < pair[1].0);
    let counts = times.buckets.iter().all(|&(_, n)| n > 0 && n < COUNT_LIMIT);
    check(rising && counts && times.buckets.len() < 1 << 16, bad)?;
    let (first, last) = match (times.buckets.first(), times.buckets.last()) {
        (Some(first), Some(last)) => (first.0, last.0),
        _ => {
            let empty = times.min_ns.is_none() && times.max_ns.is_none() && times.sum_ns == 0;
            return check(empty, bad);
        }
    };
    let (min, max) = (times.min_ns.ok_or_else(bad)?, times.max_ns.ok_or_else(bad)?);
    let count = u128::from(times.count());
    let sum = u128::from(min) * count..=u128::from(max) * count;
    check(first <= min && min <= max && last <= max && sum.contains(&times.sum_ns), bad)?;
    // The smallest value lies in the first bucket, so that no bucket is left out of a sum.
    check(times.buckets.get(1).is_none_or(|second| min < second.0), bad)
}
