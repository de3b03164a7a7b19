//! Reads the file of a watch, line by line, in bounded memory: a watch of days takes no more than
//! one of an hour.

use std::collections::BTreeMap;
use std::io::{self, BufRead, Read};

use fathom_core::Span;
use fathom_core::watch::{Busiest, Caused, Counted, History, Observed};

use crate::document::Threshold;

use super::{
    OTHERS, WATCH_FORMAT, WATCH_FORMAT_VERSION, WatchEnd, WatchHeader, WatchLine, WatchStretch,
};

/// The pieces of a history: as many as a chart can show.
const PIECES: usize = 720;
/// The pieces with distributions.
const SLICES: usize = 240;
/// No line is nearly as long; a foreign file may have no newline.
const LONGEST_LINE: u64 = 64 << 20;
/// More programs than these are others: a foreign file may name millions.
const PROGRAMS: usize = 1000;
/// No machine has more disks that are watched at once.
const DISKS: usize = 4096;

/// Why the file cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WatchReadError {
    /// Its first line is not that of a watch.
    NotAWatch,
    /// A later fathom wrote it.
    NewerFormat {
        /// The version it has.
        version: u32,
    },
    /// A line before the last one cannot be read.
    Damaged {
        /// The line's number, from 1.
        line: usize,
        /// What is wrong with it.
        why: String,
    },
}

impl WatchReadError {
    /// What is wrong with the file.
    pub fn problem(&self) -> String {
        match self {
            Self::NotAWatch => "it is no result of `fathom watch`".to_owned(),
            Self::NewerFormat { version } => format!(
                "it has format version {version}, and this fathom reads up to {WATCH_FORMAT_VERSION}"
            ),
            Self::Damaged { line, why } => format!("line {line} is damaged ({why})"),
        }
    }

    /// What to do.
    pub fn remedy(&self) -> &'static str {
        match self {
            Self::NotAWatch => "name a file that `fathom watch --out` wrote",
            Self::NewerFormat { .. } => "use the fathom that wrote it, or a later one",
            Self::Damaged { .. } => {
                "take the file from where it was written, or delete the line to read the others"
            }
        }
    }
}

/// A whole watch.
#[derive(Clone, Debug)]
pub struct WatchedResult {
    /// The first line.
    pub header: WatchHeader,
    /// One for each disk, in the order of the header.
    pub disks: Vec<WatchedDisk>,
    /// The last line; none if the watch was killed or still goes on.
    pub end: Option<WatchEnd>,
    /// Events that the kernel dropped.
    pub lost_events: u64,
    /// The CPU time that watching took.
    pub own_cpu: Span,
    /// The conditions under which it fails. They are not in the file, except on its command line.
    pub conditions: Vec<Threshold>,
}

/// One disk.
#[derive(Clone, Debug)]
pub struct WatchedDisk {
    /// Everything that was counted; none if nothing was.
    pub counted: Option<Counted>,
    /// Everything that was observed; none without events.
    pub observed: Option<Observed>,
    /// Counters over time.
    pub over_time: History<Counted>,
    /// Distributions over time.
    pub slices: History<Observed>,
    /// The busiest minute.
    pub busiest_minute: Busiest,
    /// The busiest hour.
    pub busiest_hour: Busiest,
    /// What each program caused.
    pub programs: BTreeMap<String, Caused>,
    /// When the last interval ended.
    pub end: Span,
}

impl Default for WatchedDisk {
    fn default() -> Self {
        Self {
            counted: None,
            observed: None,
            over_time: History::new(PIECES),
            slices: History::new(SLICES),
            busiest_minute: Busiest::new(Span::from_secs(60)),
            busiest_hour: Busiest::new(Span::from_secs(3600)),
            programs: BTreeMap::new(),
            end: Span(0),
        }
    }
}

impl WatchedResult {
    /// How long it took.
    pub fn length(&self) -> Span {
        let seen = self.disks.iter().map(|disk| disk.end).max().unwrap_or_default();
        self.end.as_ref().map_or(seen, |end| Span(end.length_ns).max(seen))
    }
}

/// Whether a file that begins with these bytes is one of a watch.
pub fn is_watch(beginning: &[u8]) -> bool {
    let start = &beginning[..beginning.len().min(200)];
    let text = String::from_utf8_lossy(start);
    text.split_once("\"format\":").is_some_and(|(_, rest)| {
        rest.trim_start().strip_prefix('"').is_some_and(|rest| rest.starts_with(WATCH_FORMAT))
    })
}

/// Reads a file.
///
/// # Errors
///
/// The outer one if the source fails, the inner one if its content is not that of a watch.
pub fn read_from(source: &mut dyn BufRead) -> io::Result<Result<WatchedResult, WatchReadError>> {
    let mut result: Option<WatchedResult> = None;
    let mut line = Vec::new();
    for number in 1.. {
        line.clear();
        (&mut *source).take(LONGEST_LINE).read_until(b'\n', &mut line)?;
        if line.is_empty() {
            break;
        }
        let is_whole = line.ends_with(b"\n");
        let parsed = match number {
            1 => header(&line).map(|header| result = Some(of(header))),
            _ => further(&line, number, result.as_mut()),
        };
        match parsed {
            Ok(()) => {}
            // The last line of a watch that was killed may be torn.
            Err(WatchReadError::Damaged { .. }) if !is_whole && number > 1 => break,
            Err(error) => return Ok(Err(error)),
        }
    }
    Ok(result.ok_or(WatchReadError::NotAWatch))
}

fn header(line: &[u8]) -> Result<WatchHeader, WatchReadError> {
    // Before the rest, which a later version may have changed.
    #[derive(serde::Deserialize)]
    struct Beginning {
        format: String,
        format_version: u32,
    }
    let not = |_| WatchReadError::NotAWatch;
    let beginning: Beginning = serde_json::from_slice(line).map_err(not)?;
    if beginning.format != WATCH_FORMAT {
        return Err(WatchReadError::NotAWatch);
    }
    if WATCH_FORMAT_VERSION < beginning.format_version {
        return Err(WatchReadError::NewerFormat { version: beginning.format_version });
    }
    let damaged = |why: String| WatchReadError::Damaged { line: 1, why };
    match WatchLine::from_json(line).map_err(|error| damaged(error.to_string()))? {
        WatchLine::Header(header) if header.disks.len() <= DISKS => Ok(*header),
        WatchLine::Header(_) => Err(damaged(format!("it names more than {DISKS} disks"))),
        _ => Err(damaged("it is no header".to_owned())),
    }
}

fn of(header: WatchHeader) -> WatchedResult {
    let disks = header.disks.iter().map(|_| WatchedDisk::default()).collect();
    WatchedResult {
        header,
        disks,
        end: None,
        lost_events: 0,
        own_cpu: Span(0),
        conditions: Vec::new(),
    }
}

fn further(
    line: &[u8],
    number: usize,
    result: Option<&mut WatchedResult>,
) -> Result<(), WatchReadError> {
    let damaged = |why: String| WatchReadError::Damaged { line: number, why };
    let result = result.ok_or(WatchReadError::NotAWatch)?;
    match WatchLine::from_json(line).map_err(|error| damaged(error.to_string()))? {
        WatchLine::Header(_) => Err(damaged("it is a second header".to_owned())),
        WatchLine::Stretch(stretch) => {
            let disk = result.disks.get_mut(stretch.disk as usize);
            let disk = disk.ok_or_else(|| damaged(format!("there is no disk {}", stretch.disk)))?;
            disk.take(&stretch).map_err(damaged)?;
            result.lost_events = result.lost_events.saturating_add(stretch.lost_events);
            result.own_cpu = Span(result.own_cpu.0.saturating_add(stretch.own_cpu_ns));
            Ok(())
        }
        WatchLine::End(end) => {
            result.end = Some(end);
            Ok(())
        }
    }
}

impl WatchedDisk {
    fn take(&mut self, stretch: &WatchStretch) -> Result<(), String> {
        let intervals = stretch.counted.intervals().ok_or("its columns differ in length")?;
        for (start, counted) in intervals {
            let end = self.next(start, counted.length)?;
            self.over_time.push(start, end, counted);
            self.busiest_minute.push(start, end, counted);
            self.busiest_hour.push(start, end, counted);
            self.counted.get_or_insert_default().add(&counted);
        }
        for slice in &stretch.observed {
            let (start, end) = (Span(slice.start_ns), Span(slice.end_ns));
            if end < start {
                return Err("a slice ends before it begins".to_owned());
            }
            let observed = slice.to_observed();
            self.observed.get_or_insert_default().merge(&observed);
            self.slices.push(start, end, observed);
        }
        for program in &stretch.programs {
            let is_full = PROGRAMS <= self.programs.len();
            let is_known = self.programs.contains_key(&program.name);
            let name = if is_full && !is_known { OTHERS } else { &program.name };
            self.programs.entry(name.to_owned()).or_default().add(&program.caused());
        }
        Ok(())
    }

    /// The end of an interval that begins here, if it comes after those before it.
    fn next(&mut self, start: Span, length: Span) -> Result<Span, String> {
        let end = start.0.checked_add(length.0).map(Span);
        let end = end.ok_or("an interval has no end")?;
        if start < self.end || length.0 == 0 {
            return Err("its intervals are not in order".to_owned());
        }
        self.end = end;
        Ok(end)
    }
}

#[cfg(test)]
pub mod tests {
    use fathom_core::Quantile;
    use fathom_core::facts::{Host, LayerKind};

    use super::super::record::tests::lines_of;
    use super::super::{WatchLine, WatchedName};
    use super::*;

    /// The file of a watch of this many seconds, without its last line.
    pub fn file_of(seconds: u64) -> String {
        let header = WatchHeader {
            format: WATCH_FORMAT.to_owned(),
            format_version: WATCH_FORMAT_VERSION,
            fathom_version: "0.1.0".to_owned(),
            command_line: ["fathom", "watch", "sda"].map(str::to_owned).to_vec(),
            created: "2026-11-26T12:00:00Z".to_owned(),
            created_unix_ns: 1_795_694_400_000_000_000,
            interval_ns: 1_000_000_000,
            host: Host::default(),
            disks: Vec::from([WatchedName { name: "sda".to_owned(), kind: LayerKind::Disk }]),
            without_events: None,
        };
        let mut lines = Vec::from([WatchLine::Header(Box::new(header))]);
        lines.extend(lines_of(seconds));
        lines.iter().map(|line| line.to_json() + "\n").collect()
    }

    fn read(text: &str) -> Result<WatchedResult, WatchReadError> {
        read_from(&mut text.as_bytes()).unwrap()
    }

    #[test]
    fn what_was_recorded_is_read_again() {
        let file = file_of(400);
        assert!(is_watch(file.as_bytes()));
        let result = read(&file).unwrap();
        let disk = &result.disks[0];
        let ios = 340 * 5 + 60 * 50;
        assert_eq!(disk.counted.unwrap().reads.ios, ios);
        let observed = disk.observed.as_ref().unwrap();
        assert_eq!(observed.reads.response_time.count(), ios);
        assert_eq!(observed.reads.queue_time.quantile(Quantile(0.5)), Some(10_000));
        let (start, minute) = disk.busiest_minute.best().unwrap();
        assert_eq!((*start, minute.reads.ios), (Span::from_secs(120), 3000));
        assert!(disk.busiest_hour.best().is_none());
        assert_eq!(disk.programs.values().map(Caused::ios).sum::<u64>(), ios);
        assert_eq!(
            (result.length(), result.end, result.lost_events),
            (Span::from_secs(400), None, 1)
        );
    }

    #[test]
    fn a_torn_last_line_is_left_out_and_a_damaged_one_is_named() {
        let file = file_of(130);
        let torn = &file[..file.len() - 40];
        assert_eq!(read(torn).unwrap().disks[0].counted.unwrap().reads.ios, 600);
        let damaged = file.replacen("\"start_ns\":[60", "\"start_ns\":[x", 1);
        let error = read(&damaged).unwrap_err();
        assert!(matches!(error, WatchReadError::Damaged { line: 3, .. }), "{error:?}");
    }

    #[test]
    fn a_contradiction_is_refused() {
        let file = file_of(70);
        let lines: Vec<&str> = file.lines().collect();
        for (bad, problem) in [
            (format!("{}\n{}\n", lines[0], lines[0]), "second header"),
            (format!("{}\n{}\n{}\n", lines[0], lines[2], lines[1]), "not in order"),
            (
                format!("{}\n{}\n", lines[0], lines[1].replace("\"disk\":0", "\"disk\":1")),
                "no disk 1",
            ),
            (
                format!(
                    "{}\n{}\n",
                    lines[0],
                    lines[1].replacen("\"in_flight\":[1,", "\"in_flight\":[", 1)
                ),
                "differ in length",
            ),
            (lines[0].replace("\"format_version\":1", "\"format_version\":9"), "version 9"),
            (lines[0].replace("fathom-watch", "fathom-result"), "no result of"),
            (lines[1].to_owned(), "no result of"),
            (String::new(), "no result of"),
        ] {
            let error = read(&bad).unwrap_err();
            assert!(error.problem().contains(problem), "{}: {problem}", error.problem());
        }
    }
}
