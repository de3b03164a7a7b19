//! The trace file: every I/O of a run as a line of a table, which any tool that reads CSV can read.
//! It is written during the run and never overwrites anything.
//!
//! A trace that cannot be written any further does not end the measurement: missing I/Os are
//! counted, and reported at the end.
//! The file system of the trace may hang: only threads that can be left behind make calls to the file.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use fathom_core::Span;
use fathom_core::errno;
use fathom_core::facts::Target;
use fathom_core::measure::{ErrorKind, Upkeep};
use fathom_core::trial::Traced;
use fathom_engine::trace::{TracePhase, TracedIo, TracedIos, Tracer};
use fathom_report::csv;

use crate::error::Error;
use crate::hanging::{Role, patiently};
use crate::signals::Closing;
use crate::{hanging, journal, signals};

/// The first line: the names of the columns. docs/trace.md describes them.
pub const COLUMNS: &str = "trial,stream,worker,number,target,direction,offset_bytes,length_bytes,\
    start_ns,response_time_ns,service_time_ns,phase,moved_bytes,error,left_out_before\n";

/// The size of each write.
const BUFFER: usize = 256 << 10;
/// No line of numbers is this long.
const LINE: usize = 512;

/// An open trace file.
#[derive(Debug)]
pub struct TraceFile {
    path: PathBuf,
    /// Only threads of their own make calls to it.
    file: Arc<Closing<File>>,
    /// Complete lines that are not written yet.
    buffer: Vec<u8>,
    /// The number of these lines.
    buffered: u64,
    /// The length up to which every line is complete.
    whole: u64,
    /// Lines in the file, but for the first one.
    lines: u64,
    /// Trials that were begun.
    trials: u32,
    /// The error that keeps it from being written any further.
    failure: Option<io::Error>,
}

/// Writes the I/Os of one trial.
#[derive(Debug)]
pub struct TrialTrace<'a> {
    trace: &'a mut TraceFile,
    /// Its number.
    trial: u32,
    /// The targets as text in a line.
    targets: Vec<String>,
    /// Lines that were in the file before.
    before: u64,
    left_out: u64,
}

impl TraceFile {
    /// Creates the file, with its first line.
    ///
    /// # Errors
    ///
    /// When it exists or cannot be created, or stdout is named.
    pub fn create(path: &Path) -> Result<Self, Error> {
        journal::is_a_file("--trace", path)?;
        let create = || signals::create_doomed(path, OpenOptions::new().write(true));
        let file = patiently(path, Role::Output, create)
            .map_err(|cause| journal::not_created(path, cause, "another place with --trace"))?;
        let mut buffer = Vec::with_capacity(BUFFER + LINE);
        buffer.extend_from_slice(COLUMNS.as_bytes());
        Ok(Self {
            path: path.to_owned(),
            file: Arc::new(file.into()),
            buffer,
            buffered: 0,
            whole: 0,
            lines: 0,
            trials: 0,
            failure: None,
        })
    }

    /// Begins the next trial.
    pub fn trial(&mut self, targets: &[Target]) -> TrialTrace<'_> {
        self.trials += 1;
        let before = self.lines;
        TrialTrace {
            trial: self.trials,
            targets: targets.iter().map(|target| csv::field(&target.name)).collect(),
            before,
            left_out: 0,
            trace: self,
        }
    }

    /// Reports the path of the trace, once it is on the disk.
    ///
    /// # Errors
    ///
    /// When it could not be written completely.
    pub fn close(&self) -> Result<String, Error> {
        let cause = match &self.failure {
            None => {
                let file = Arc::clone(&self.file);
                hanging::on_the_disk(self.whole, move || file.sync_all()).err()
            }
            Some(cause) => Some(cause.raw_os_error().map_or_else(
                || io::Error::new(cause.kind(), cause.to_string()),
                io::Error::from_raw_os_error,
            )),
        };
        let Some(cause) = cause else { return Ok(format!("trace   {}", self.path.display())) };
        let helps = match cause.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                "free some space or name another place with --trace"
            }
            _ => "name another place with --trace",
        };
        let lines = self.lines;
        let kept = format!(
            "the measurement is whole, and the first {lines} I/Os of its trace are in this file; {helps}"
        );
        Err(Error::write(&self.path, cause, kept))
    }

    /// Writes the remaining lines. Returns how many could not be written.
    fn flush(&mut self) -> u64 {
        let lines = std::mem::take(&mut self.buffered);
        let buffer = std::mem::take(&mut self.buffer);
        if buffer.is_empty() {
            return lines;
        }
        let length = buffer.len() as u64;
        match self.written(buffer) {
            Ok(()) => {
                self.whole += length;
                self.lines += lines;
                if self.lines > 0 {
                    signals::spare(&self.path);
                }
                0
            }
            Err(cause) => {
                self.failure = Some(cause);
                lines
            }
        }
    }

    /// Writes complete lines and leaves an empty buffer. After an error the file ends with a complete line,
    /// and there is no buffer.
    fn written(&mut self, mut buffer: Vec<u8>) -> io::Result<()> {
        let (file, whole) = (Arc::clone(&self.file), self.whole);
        self.buffer = hanging::answered(true, move || {
            (&**file).write_all(&buffer).inspect_err(|_| {
                // If even this fails the last line stays torn.
                let _ = file.set_len(whole);
            })?;
            buffer.clear();
            Ok(buffer)
        })?;
        Ok(())
    }
}

impl Drop for TraceFile {
    /// A trace without a line has no use.
    fn drop(&mut self) {
        signals::remove(&self.path);
    }
}

impl TrialTrace<'_> {
    /// Ends the trial: returns how many I/Os are in the file, and how many are not.
    pub fn end(self) -> Traced {
        let left_out = self.left_out + self.trace.flush();
        let ios = self.trace.lines - self.before;
        Traced { file: self.trace.path.display().to_string(), ios, left_out }
    }
}

impl Tracer for TrialTrace<'_> {
    fn take(&mut self, ios: &TracedIos<'_>) {
        let whose = [self.trial, ios.stream(), ios.worker()];
        for io in ios.iter() {
            self.left_out += io.left_out;
            if self.trace.failure.is_some() {
                self.left_out += 1;
                continue;
            }
            let target = &self.targets[io.target as usize];
            line(&mut self.trace.buffer, whose, target, &io);
            self.trace.buffered += 1;
            if BUFFER <= self.trace.buffer.len() {
                self.left_out += self.trace.flush();
            }
        }
    }
}

/// Appends the line of an I/O of this trial, stream and worker.
fn line(out: &mut Vec<u8>, whose: [u32; 3], target: &str, io: &TracedIo) {
    whose.into_iter().for_each(|place| number(out, u64::from(place)));
    number(out, io.number);
    word(out, target);
    word(out, io.upkeep.map_or(io.direction.name(), Upkeep::name));
    number(out, io.offset);
    number(out, u64::from(io.length));
    if io.start_ns < 0 {
        out.push(b'-');
    }
    number(out, io.start_ns.unsigned_abs());
    for time in [io.response_time, io.service_time] {
        known(out, time.map(|Span(ns)| ns));
    }
    word(out, phase(io.phase));
    let moved = match io.failure {
        None => Some(io.length),
        Some(ErrorKind::Short(bytes)) => Some(bytes),
        Some(_) => None,
    };
    known(out, moved.map(u64::from));
    match io.failure {
        None => out.push(b','),
        Some(kind) => word(out, &error(kind)),
    }
    number(out, io.left_out);
    *out.last_mut().expect("a number was just written") = b'\n';
}

fn phase(phase: TracePhase) -> &'static str {
    match phase {
        TracePhase::WarmUp => "warm-up",
        TracePhase::Window => "window",
        TracePhase::After => "after",
        TracePhase::CoolDown => "cool-down",
    }
}

/// How an I/O failed, in one word.
fn error(kind: ErrorKind) -> String {
    match kind {
        ErrorKind::Errno(errno) => match errno::meaning(errno).name {
            Some(name) => name.to_owned(),
            None => format!("errno-{errno}"),
        },
        ErrorKind::Nvme(status) => format!("nvme-{status:#06x}"),
        ErrorKind::Short(_) => "short".to_owned(),
        ErrorKind::Lost => "lost".to_owned(),
    }
}

fn word(out: &mut Vec<u8>, word: &str) {
    out.extend_from_slice(word.as_bytes());
    out.push(b',');
}

/// A number, or an empty field.
fn known(out: &mut Vec<u8>, value: Option<u64>) {
    match value {
        Some(value) => number(out, value),
        None => out.push(b','),
    }
}

/// A number in decimal digits. The library's formatting takes several times as long, and at a million
/// I/Os per second a CPU more.
fn number(out: &mut Vec<u8>, mut value: u64) {
    let mut digits = [0; 20];
    let mut first = digits.len();
    loop {
        first -= 1;
        digits[first] = b'0' + (value % 10) as u8;
        value /= 10;
        if value == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[first..]);
    out.push(b',');
}

#[cfg(test)]
mod tests {
    use fathom_core::measure::Direction;

    use super::*;

    const IO: TracedIo = TracedIo {
        number: 7,
        target: 0,
        direction: Direction::Write,
        upkeep: None,
        offset: 1 << 40,
        length: 4096,
        start_ns: -1_000_000_001,
        response_time: Some(Span(90_000)),
        service_time: Some(Span(80_000)),
        phase: TracePhase::WarmUp,
        failure: None,
        left_out: 0,
    };

    fn told(io: &TracedIo) -> String {
        let mut out = Vec::new();
        line(&mut out, [1, 0, 3], "\"a,b\"", io);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_line_holds_what_the_columns_promise() {
        assert_eq!(
            told(&IO),
            "1,0,3,7,\"a,b\",write,1099511627776,4096,-1000000001,90000,80000,warm-up,4096,,0\n"
        );
        let columns = COLUMNS.trim_end().split(',').count();
        let plain = told(&IO).replace("\"a,b\"", "a");
        assert_eq!(plain.trim_end().split(',').count(), columns);
    }

    #[test]
    fn what_is_not_known_is_empty_and_never_zero() {
        let lost = TracedIo {
            response_time: None,
            service_time: None,
            phase: TracePhase::After,
            failure: Some(ErrorKind::Lost),
            left_out: u64::MAX,
            ..IO
        };
        assert!(told(&lost).ends_with(",,,after,,lost,18446744073709551615\n"), "{}", told(&lost));
        for (failure, end) in [
            (ErrorKind::Errno(5), ",,EIO,0\n"),
            (ErrorKind::Errno(199), ",,errno-199,0\n"),
            (ErrorKind::Nvme(0x281), ",,nvme-0x0281,0\n"),
            (ErrorKind::Short(512), ",512,short,0\n"),
        ] {
            let text = told(&TracedIo { failure: Some(failure), ..IO });
            assert!(text.ends_with(end), "{text}");
        }
    }

    #[test]
    fn numbers_are_whole() {
        for value in [0, 9, 10, 1_234_567_890, u64::MAX] {
            let mut out = Vec::new();
            number(&mut out, value);
            assert_eq!(String::from_utf8(out).unwrap(), format!("{value},"));
        }
    }

    #[test]
    fn a_trace_without_a_line_goes_away_and_never_takes_the_place_of_another() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("trace.csv");
        drop(TraceFile::create(&path).unwrap());
        assert!(!path.exists());
        std::fs::write(&path, "somebody's").unwrap();
        let error = TraceFile::create(&path).unwrap_err().to_string();
        assert!(error.contains("never overwritten"), "{error}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "somebody's");
    }
}
