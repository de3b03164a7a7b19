//! Reads a journal: every complete line of it, whatever happened to the last one.
//!
//! A result file may come from anywhere, so everything that a renderer relies on (places in lists,
//! the order of buckets, sums that cannot overflow) is checked here, once.

use std::fmt;
use std::io::{self, BufRead, BufReader, Read};

use fathom_core::measure::{bucket_of, bucket_start};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::rows::ROW_MAX;
use super::timeless::Timeless;
use super::{
    Conclusion, Cpu, Distribution, Document, FORMAT, FORMAT_VERSION, Flow, Found, Header, MapCell,
    MapFound, Point, ResultSummary, Target, Trial, Worker,
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

impl ReadError {
    /// What is wrong with the file: a clause about "it".
    pub fn problem(&self) -> String {
        match self {
            Self::Empty => "it is empty: the run ended before it wrote anything".to_owned(),
            Self::NotAResult => "it is no result of fathom".to_owned(),
            Self::TornHeader => {
                "its first line is torn: the run ended before it measured anything".to_owned()
            }
            Self::NewerFormat { version } => format!(
                "it has format version {version}, and this fathom reads up to {FORMAT_VERSION}"
            ),
            Self::Damaged { line, column: Some(column), why } => {
                format!("line {line} is damaged at column {column} ({why})")
            }
            Self::Damaged { line, column: None, why } => {
                format!("line {line} contradicts itself ({why})")
            }
        }
    }

    /// What to do.
    pub fn remedy(&self) -> &'static str {
        match self {
            Self::Empty | Self::TornHeader => "run it again",
            Self::NotAResult => "name a file that `fathom run` or another command wrote",
            Self::NewerFormat { .. } => "use the fathom that wrote it, or a later one",
            Self::Damaged { .. } => {
                "take the file from where it was written, or delete the line to read the others"
            }
        }
    }
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.problem(), self.remedy())
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
pub const START: &[u8] = br#"{"line":"header","format":"fathom-result""#;

/// The most of a line that is read at once. Only a trial's line is ever longer, and it is parsed as
/// it comes, so that a result of many megabytes is not in memory twice.
const WHOLE: usize = 8 << 20;

/// The name of the last line.
const SUMMARY: &str = "summary";

/// How a trial's line starts.
const TRIAL: &[u8] = br#"{"line":"trial","#;

/// Reads a result file.
///
/// A last line that was torn when the run was killed is left out, and the document says so.
///
/// # Errors
///
/// When the file is something else, comes from a later version, or is damaged before its last line.
pub fn read(bytes: &[u8]) -> Result<Document, ReadError> {
    let mut bytes = bytes;
    read_from(&mut bytes).expect("memory can be read")
}

/// Reads a result file from where it is, line by line.
///
/// # Errors
///
/// When it cannot be read; inside, as [`read`].
pub fn read_from(reader: &mut dyn BufRead) -> io::Result<Result<Document, ReadError>> {
    read_lines::<Trial>(reader, WHOLE)
}

/// Reads a result file without what its trials did over time, which is most of it: their series are
/// empty, and are not checked. For the figures of many results.
///
/// # Errors
///
/// As [`read_from`].
pub fn read_timeless(reader: &mut dyn BufRead) -> io::Result<Result<Document, ReadError>> {
    read_lines::<Timeless>(reader, WHOLE)
}

/// `T` is what is kept of a trial's line.
fn read_lines<T: DeserializeOwned + Into<Trial>>(
    reader: &mut dyn BufRead,
    whole: usize,
) -> io::Result<Result<Document, ReadError>> {
    let mut line = Vec::new();
    let mut end = start_line(reader, &mut line, whole)?;
    if is_blank(&line) {
        return Ok(Err(if rest_is_blank(reader)? {
            ReadError::Empty
        } else {
            ReadError::NotAResult
        }));
    }
    if end == End::Open {
        // No header comes near it.
        return Ok(Err(ReadError::NotAResult));
    }
    let header = match read_header(&line, end == End::Newline) {
        Ok(header) => header,
        Err(error) => return Ok(Err(error)),
    };
    let mut document = Document {
        header,
        trials: Vec::new(),
        conclusion: None,
        torn: false,
        conditions: Vec::new(),
    };
    for number in 2.. {
        if end == End::File {
            break;
        }
        end = start_line(reader, &mut line, whole)?;
        let mut zeros = line.contains(&0);
        if zeros {
            // After a crash some file systems show zeros where data never arrived: such a line is torn
            // even when more follows, because nothing was ever written after it. What follows may be
            // terabytes of zeros that take no room.
            document.torn = true;
            break;
        }
        let outcome = match end {
            End::Newline | End::File if is_blank(&line) => continue,
            End::Newline | End::File => read_line::<T>(&line, &mut document),
            End::Open => {
                let mut rest = Rest { start: &line, reader, end, zeros };
                let outcome = read_long_line::<T>(&mut rest, &mut document)?;
                io::copy(&mut rest, &mut io::sink())?;
                (end, zeros) = (rest.end, rest.zeros);
                outcome
            }
        };
        let torn = end == End::File || zeros;
        match outcome {
            Ok(()) => {}
            Err(_) if torn => {
                document.torn = true;
                break;
            }
            Err((column, why)) => {
                return Ok(Err(ReadError::Damaged { line: number, column, why }));
            }
        }
    }
    document.judge_by_conclusion();
    Ok(Ok(document))
}

/// How what was read of a line ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// With the line: it is whole.
    Newline,
    /// With the file: it is whole or torn.
    File,
    /// There is more of it.
    Open,
}

/// Reads a line, or as much of it as is read at once. Its newline is left out.
fn start_line(reader: &mut dyn BufRead, line: &mut Vec<u8>, whole: usize) -> io::Result<End> {
    line.clear();
    reader.take(whole as u64).read_until(b'\n', line)?;
    if line.last() == Some(&b'\n') {
        line.pop();
        return Ok(End::Newline);
    }
    Ok(if line.len() < whole { End::File } else { End::Open })
}

fn is_blank(line: &[u8]) -> bool {
    line.iter().all(u8::is_ascii_whitespace)
}

/// Whether nothing but white space follows.
fn rest_is_blank(reader: &mut dyn BufRead) -> io::Result<bool> {
    loop {
        let part = reader.fill_buf()?;
        if part.is_empty() {
            return Ok(true);
        }
        if !is_blank(part) {
            return Ok(false);
        }
        let length = part.len();
        reader.consume(length);
    }
}

/// A line from its start to its newline, of which the start was read already.
struct Rest<'a> {
    start: &'a [u8],
    reader: &'a mut dyn BufRead,
    end: End,
    /// Whether any byte was zero.
    zeros: bool,
}

impl Read for Rest<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if !self.start.is_empty() {
            return self.start.read(buffer);
        }
        if self.end != End::Open {
            return Ok(0);
        }
        let part = self.reader.fill_buf()?;
        self.zeros |= part.contains(&0);
        // What comes after zeros is not looked at: the line is torn.
        if part.is_empty() || self.zeros {
            self.end = End::File;
            return Ok(0);
        }
        let newline = part.iter().position(|&byte| byte == b'\n');
        let length = newline.unwrap_or(part.len()).min(buffer.len());
        buffer[..length].copy_from_slice(&part[..length]);
        self.reader.consume(length);
        if newline == Some(length) {
            self.reader.consume(1);
            self.end = End::Newline;
        }
        Ok(length)
    }
}

/// Reads a line that is longer than what is read at once, which a trial's may be.
fn read_long_line<T: DeserializeOwned + Into<Trial>>(
    rest: &mut Rest<'_>,
    document: &mut Document,
) -> io::Result<Result<(), LineError>> {
    if document.conclusion.is_some() || !rest.start.starts_with(TRIAL) {
        return Ok(Err((None, "it is too long for anything but a trial".to_owned())));
    }
    let mut json = serde_json::Deserializer::from_reader(BufReader::new(rest));
    let trial = T::deserialize(&mut json).and_then(|trial| json.end().map(|()| trial));
    match trial {
        Ok(trial) => Ok(keep_trial(trial.into(), document)),
        Err(error) if error.is_io() => Err(error.into()),
        Err(error) => Ok(Err(where_and_why(&error))),
    }
}

fn read_header(line: &[u8], complete: bool) -> Result<Header, ReadError> {
    let start: Start = match serde_json::from_slice(line) {
        Ok(start) => start,
        Err(_) if !complete && (line.starts_with(START) || START.starts_with(line)) => {
            return Err(ReadError::TornHeader);
        }
        Err(_) => return Err(ReadError::NotAResult),
    };
    if start.line != "header" || start.format != FORMAT || start.format_version == 0 {
        return Err(ReadError::NotAResult);
    }
    if start.format_version > FORMAT_VERSION {
        return Err(ReadError::NewerFormat { version: start.format_version });
    }
    let damaged = |(column, why)| ReadError::Damaged { line: 1, column, why };
    let header: Header = parse(line).map_err(damaged)?;
    let base = header.experiment.as_ref().map(|experiment| &experiment.base);
    let possible = header.targets.iter().try_for_each(check_target);
    let possible = possible.and_then(|()| base.map_or(Ok(()), Point::possible));
    possible.map_err(|why| damaged((None, why)))?;
    Ok(header)
}

/// Where in the line, and what.
type LineError = (Option<usize>, String);

fn parse<T: DeserializeOwned>(line: &[u8]) -> Result<T, LineError> {
    serde_json::from_slice(line).map_err(|error| where_and_why(&error))
}

fn where_and_why(error: &serde_json::Error) -> LineError {
    let text = error.to_string();
    // The line is always 1 here, and the column is told apart.
    let why = text.split(" at line ").next().unwrap_or(&text).to_owned();
    (Some(error.column()), why)
}

fn keep_trial(trial: Trial, document: &mut Document) -> Result<(), LineError> {
    check_trial(&trial, &document.header).map_err(|why| (None, why))?;
    document.trials.push(trial);
    Ok(())
}

fn read_line<T: DeserializeOwned + Into<Trial>>(
    line: &[u8],
    document: &mut Document,
) -> Result<(), LineError> {
    // Nearly all of a file is trials, whose kind need not be found out first.
    if line.starts_with(TRIAL) && document.conclusion.is_none() {
        return keep_trial(parse::<T>(line)?.into(), document);
    }
    let tag: Tag = parse(line)?;
    if document.conclusion.is_some() && tag.line != SUMMARY {
        return Err((None, "it comes after the conclusion".to_owned()));
    }
    match tag.line.as_str() {
        "trial" => keep_trial(parse::<T>(line)?.into(), document),
        "conclusion" => {
            let conclusion = parse::<Conclusion>(line)?;
            if let Some(Found::Map(found)) = &conclusion.found {
                check_map(found).map_err(|why| (None, why))?;
            }
            document.conclusion = Some(conclusion);
            Ok(())
        }
        // It follows from the lines before, and is not relied on.
        SUMMARY => parse::<ResultSummary>(line).map(drop),
        "header" => Err((None, "it is a second header".to_owned())),
        other => Err((None, format!("there is no line called '{other}'"))),
    }
}

fn check_map(found: &MapFound) -> Result<(), String> {
    let (writes, reads) = (found.write_bandwidths.len(), found.read_rates.len());
    check(writes > 0 && reads > 0, || "its map has no steps".to_owned())?;
    let is_in = |cell: &MapCell| (cell.write as usize) < writes && (cell.read as usize) < reads;
    check(found.cells.iter().all(is_in), || "a cell of its map is outside the grid".to_owned())?;
    let is_whole = |cell: &MapCell| cell.response_time_ns.len() == found.quantiles.len();
    check(found.cells.iter().all(is_whole), || {
        "a cell of its map does not have a response time for each of its percentiles".to_owned()
    })
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
    trial.point.possible()?;
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
    check_rows(trial, &stream)?;
    check_buckets(trial)?;
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
    check_cpu_times(trial)?;
    let cells = trial.workers.iter().flat_map(|worker| &worker.cells);
    let flows = cells.flat_map(|c| [&c.read, &c.write].into_iter().chain(&c.flush).chain(&c.trim));
    let sum = flows.fold((0u128, 0u128), |(bytes, ios), flow| {
        (bytes + u128::from(flow.bytes), ios + u128::from(flow.ios))
    });
    let fits = |(bytes, ios)| bytes < u128::from(LIMIT) && ios < u128::from(LIMIT);
    check(fits(sum) && fits(series) && trial.series.len() < 1 << 20, too_large)
}

/// What CPUs did and what workers waited for them is added up.
fn check_cpu_times(trial: &Trial) -> Result<(), String> {
    let spent = |cpu: &Cpu| [cpu.user_ns, cpu.kernel_ns, cpu.idle_ns, cpu.steal_ns];
    let counters = trial.counters.as_ref();
    let cpus = counters.into_iter().flat_map(|counters| &counters.cpus).flat_map(spent);
    let process = counters.map(|all| [all.process_user_ns, all.process_kernel_ns]);
    let waits = trial.workers.iter().filter_map(|worker| worker.cpu_wait_ns);
    let all = cpus.chain(process.into_iter().flatten()).chain(waits);
    check(u64::try_from(all.map(u128::from).sum::<u128>()).is_ok(), too_large)
}

/// Each bucket has a time and both counts.
fn check_buckets(trial: &Trial) -> Result<(), String> {
    let Some(buckets) = &trial.buckets else { return Ok(()) };
    let count = buckets.reads.len();
    check(buckets.length_ns > 0 && buckets.writes.len() == count, || {
        format!("{count} buckets of {} ns have columns of other lengths", buckets.length_ns)
    })?;
    let mut ios = buckets.reads.iter().chain(&buckets.writes);
    check(count as u64 <= INTERVALS_MAX && ios.all(|&ios| ios < COUNT_LIMIT), too_large)
}

/// Every row has what it says, so that a reader of the row finds all of it.
fn check_rows(trial: &Trial, stream: &impl Fn(u32) -> Result<(), String>) -> Result<(), String> {
    let mut sum = (0u128, 0u128);
    let mut count = 0u64;
    for row in &trial.intervals {
        count = count.saturating_add(row.count);
        stream(row.stream)?;
        let ends =
            row.length_ns.checked_mul(row.count).and_then(|all| all.checked_add(row.start_ns));
        let few = (1..=ROW_MAX as u64).contains(&row.count);
        check(few && ends.is_some(), too_large)?;
        let flows = || row.read.iter().chain(&row.write);
        let fits = |length: usize| length == 0 || length as u64 == row.count;
        let short = fits(row.failed.len()) && fits(row.lag_ns.len());
        check(short && flows().all(|flow| flow.has(row.count)), || {
            format!("a row of {} intervals has columns of other lengths", row.count)
        })?;
        check(row.failed.iter().all(|&failed| failed < COUNT_LIMIT), too_large)?;
        for flow in flows() {
            sum.0 += flow.bytes.iter().map(|&bytes| u128::from(bytes)).sum::<u128>();
            sum.1 += flow.ios.iter().map(|&ios| u128::from(ios)).sum::<u128>();
        }
    }
    let fits = sum.0 < u128::from(LIMIT) && sum.1 < u128::from(LIMIT);
    check(fits && count <= INTERVALS_MAX, too_large)
}

/// As many as two days of eight streams at 100 ms have.
const INTERVALS_MAX: u64 = 1 << 24;

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
        cell.flush.iter().chain(&cell.trim).try_for_each(check_flow)?;
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
    if let Some(whole) = &worker.whole {
        let counts = [whole.reads, whole.writes];
        let bytes = [whole.length_ns, whole.read_bytes, whole.written_bytes];
        check(counts.iter().all(|&n| n < COUNT_LIMIT), too_large)?;
        check(bytes.iter().all(|&n| n < LIMIT), too_large)?;
        check(whole.queue_depth.is_finite(), too_large)?;
    }
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
    let are_buckets =
        times.buckets.iter().all(|&(start, _)| bucket_start(bucket_of(start)) == Some(start));
    check(rising && counts && are_buckets && times.buckets.len() < 1 << 16, bad)?;
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
    check(min <= max && last <= max && sum.contains(&times.sum_ns), bad)?;
    // The smallest value lies in the first bucket, so that no bucket is left out of a sum.
    check(bucket_of(min) == bucket_of(first), bad)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The stored documents, and how much of each is read at once: its header fits, and no trial
    /// does.
    fn stored() -> impl Iterator<Item = (Vec<u8>, usize)> {
        ["quick", "void", "open", "interrupted"].into_iter().map(|name| {
            let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data");
            let bytes = std::fs::read(format!("{folder}/{name}.jsonl")).unwrap();
            let header = bytes.iter().position(|&byte| byte == b'\n').unwrap();
            (bytes, header + 1)
        })
    }

    fn as_it_comes(bytes: &[u8], whole: usize) -> Result<Document, ReadError> {
        // A small buffer, so that lines and buffers end at many different places.
        read_lines::<Trial>(&mut BufReader::with_capacity(61, bytes), whole).unwrap()
    }

    #[test]
    fn a_map_that_does_not_fit_its_grid_is_damaged() {
        let text = include_str!("../../tests/data/map.jsonl");
        let (before, conclusion) = text.split_once("{\"line\":\"conclusion\"").unwrap();
        let conclusion = conclusion.lines().next().unwrap();
        let why = |conclusion: String| {
            let text = format!("{before}{{\"line\":\"conclusion\"{conclusion}\n");
            match read(text.as_bytes()) {
                Err(ReadError::Damaged { why, .. }) => why,
                other => panic!("{other:?}"),
            }
        };
        let outside = conclusion.replacen("\"read\":0", "\"read\":999", 1);
        assert_eq!(why(outside), "a cell of its map is outside the grid");
        let (start, rest) = conclusion.split_once("\"write_bandwidths\":[").unwrap();
        let rest = rest.split_once(']').unwrap().1;
        assert_eq!(why(format!("{start}\"write_bandwidths\":[]{rest}")), "its map has no steps");
        let (start, rest) = conclusion.split_once("\"quantiles\":[").unwrap();
        let more = why(format!("{start}\"quantiles\":[0.1,{rest}"));
        assert!(more.contains("each of its percentiles"), "{more}");
    }

    #[test]
    fn a_line_that_is_parsed_as_it_comes_gives_what_a_whole_one_does() {
        for (bytes, whole) in stored() {
            assert!(!read(&bytes).unwrap().trials.is_empty());
            for length in (whole + 1..bytes.len()).step_by(997).chain([bytes.len()]) {
                assert!(as_it_comes(&bytes[..length], whole) == read(&bytes[..length]), "{length}");
            }
        }
    }

    #[test]
    fn a_result_without_its_series_has_the_same_figures() {
        for (bytes, whole) in stored() {
            let all = read(&bytes).unwrap();
            for whole in [WHOLE, whole] {
                let mut reader = &bytes[..];
                let timeless = read_lines::<Timeless>(&mut reader, whole).unwrap().unwrap();
                assert_eq!(timeless.header, all.header);
                assert_eq!(timeless.trials.len(), all.trials.len());
                for (one, other) in timeless.trials.into_iter().zip(&all.trials) {
                    let series = other.series.clone();
                    assert!(one.series.is_empty() && !series.is_empty());
                    let intervals = other.intervals.clone();
                    let (buckets, breakdown) = (other.buckets.clone(), other.breakdown.clone());
                    assert_eq!(Trial { series, intervals, buckets, breakdown, ..one }, *other);
                }
            }
        }
    }

    #[test]
    fn a_long_line_that_is_damaged_is_told_as_a_short_one_is() {
        for (bytes, whole) in stored() {
            let trial = whole + whole * 3 / 2;
            for (at, byte) in [(trial, b'x'), (trial, b'}'), (trial + 70, 0)] {
                let mut damaged = bytes.clone();
                damaged[at] = byte;
                // The kind of a line is read before the line itself, so with two mistakes the first
                // one reported may differ.
                let known = |outcome: Result<Document, ReadError>| match outcome {
                    Err(ReadError::Damaged { line, column, .. }) => (line, column.is_some()),
                    other => (0, other.is_ok_and(|read| read.torn)),
                };
                assert_eq!(known(as_it_comes(&damaged, whole)), known(read(&damaged)), "{at}");
            }
            // A number that contradicts another number.
            let text = String::from_utf8(bytes).unwrap();
            let contradicting = text.replace("\"ios\":", "\"ios\":1").replace(":1{", ":{");
            let refused = as_it_comes(contradicting.as_bytes(), whole).unwrap_err();
            assert!(matches!(refused, ReadError::Damaged { column: None, .. }), "{refused:?}");
        }
    }

    #[test]
    fn only_a_trial_may_be_long() {
        let (bytes, whole) = stored().next().unwrap();
        let long = format!("{{\"line\":\"conclusion\",{}\n{{}}\n", " ".repeat(whole));
        let bytes = [&bytes[..whole], long.as_bytes()].concat();
        let refused = as_it_comes(&bytes, whole).unwrap_err();
        assert!(matches!(refused, ReadError::Damaged { line: 2, .. }), "{refused:?}");
        let endless = vec![b'{'; 10 * whole];
        assert!(as_it_comes(&endless, whole) == Err(ReadError::NotAResult));
        let blank = vec![b'\n'; 10 * whole];
        assert!(as_it_comes(&blank, whole) == Err(ReadError::Empty));
    }
}
