//! The result file of a watch, as it grows.

use std::path::Path;

use fathom_core::Span;
use fathom_engine::host;
use fathom_engine::watch::DiskWatch;
use fathom_report::watched::{
    Recorder, WATCH_FORMAT, WATCH_FORMAT_VERSION, WatchEnd, WatchHeader, WatchLine, WatchedName,
};

use super::Seen;
use super::new_file::NewFile;
use crate::error::Error;
use crate::{output, session};

/// What is known of a watch before it begins.
pub fn header(watch: &DiskWatch, interval: Span) -> WatchHeader {
    let name = |disk: &fathom_engine::watch::WatchedDisk| WatchedName {
        name: disk.name.clone(),
        kind: disk.kind,
    };
    let now = session::unix_ns();
    WatchHeader {
        format: WATCH_FORMAT.to_owned(),
        format_version: WATCH_FORMAT_VERSION,
        fathom_version: env!("CARGO_PKG_VERSION").to_owned(),
        command_line: session::command_line(),
        created: fathom_report::document::rfc3339(now),
        created_unix_ns: now,
        interval_ns: interval.0,
        host: host::host(),
        disks: watch.disks().iter().map(name).collect(),
        without_events: watch.missing().map(ToString::to_string),
    }
}

/// The file.
#[derive(Debug)]
pub struct ResultFile {
    file: NewFile,
    recorder: Recorder,
    /// The time from the beginning to the end of the last interval.
    elapsed: Span,
}

impl ResultFile {
    /// Creates it, with its first line.
    ///
    /// # Errors
    ///
    /// When it exists or cannot be created.
    pub fn create(path: &Path, header: &WatchHeader) -> Result<Self, Error> {
        let mut file = NewFile::create(path, "--out")?;
        file.put(WatchLine::Header(Box::new(header.clone())).to_json())?;
        let recorder = Recorder::new(header.disks.len());
        Ok(Self { file, recorder, elapsed: Span(0) })
    }

    /// Adds an interval.
    ///
    /// # Errors
    ///
    /// When it cannot be written.
    pub fn take(&mut self, seen: &Seen<'_>) -> Result<(), Error> {
        let start = self.elapsed;
        let end = start + seen.interval.length;
        let name = |program| seen.watch.program(program).to_owned();
        for (place, slice) in seen.interval.disks.iter().enumerate() {
            let (counted, observed) = (slice.counted.as_ref(), slice.observed.as_ref());
            self.recorder.take(place, (start, end), counted, observed, &name);
        }
        self.recorder.cost(seen.interval.lost, seen.interval.own_cpu);
        self.elapsed = end;
        self.put(false)
    }

    /// Adds the rest and the end, and says where it is.
    ///
    /// # Errors
    ///
    /// When it cannot be written.
    pub fn end(mut self, exit_code: Option<i32>) -> Result<(), Error> {
        self.put(true)?;
        let end = WatchEnd { length_ns: self.elapsed.0, exit_code };
        self.file.put(WatchLine::End(end).to_json())?;
        let path = self.file.path();
        if !output::is_stdout(path) {
            let typed = fathom_core::typed_path(&path.display().to_string());
            output::note(&format!("result  {}", path.display()));
            output::note(&format!("page    fathom report {typed} --html watch.html"));
        }
        Ok(())
    }

    fn put(&mut self, is_end: bool) -> Result<(), Error> {
        let lines = self.recorder.lines(is_end);
        lines.iter().try_for_each(|line| self.file.put(line.to_json()))
    }
}
