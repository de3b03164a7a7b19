//! `fathom history`: the results in a folder over time, and where they changed.

use std::fs;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use fathom_core::Bytes;
use fathom_report::document::read_timeless;
use fathom_report::history::{History, HistoryEntry, HistoryRequest, NotUsed};
use fathom_report::page::{Level, history};
use fathom_report::{csv, html, markdown, watched};

use super::written::put;
use super::{browser, outputs};
use crate::cli::args::HistoryArgs;
use crate::error::{Error, exit, plain};
use crate::foreign::Foreign;
use crate::hanging::{Role, patiently};
use crate::output::{self, is_stdout};

/// The end of the names of result files.
const EXTENSION: &str = "jsonl";

/// The most files that are read.
const FILES_MAX: usize = 100_000;

/// The most threads that read: the disk is soon the limit.
const READERS_MAX: usize = 8;

/// How much is read at once.
const READ_BUFFER: usize = 256 << 10;

/// Shows or writes it.
///
/// # Errors
///
/// When the folder cannot be read, or a report cannot be written.
pub fn perform(args: &HistoryArgs) -> Result<u8, Error> {
    let written = [&args.html, &args.markdown, &args.csv];
    let written: Vec<&Path> = written.into_iter().flatten().map(PathBuf::as_path).collect();
    if args.open {
        browser::check(args.html.as_deref().filter(|path| !is_stdout(path)))?;
    }
    if args.json || written.iter().any(|path| is_stdout(path)) {
        output::leave_stdout_to_the_document();
    }
    outputs::distinct(written.iter().copied())?;
    let found = read(args)?;
    if let Some(path) = &args.html {
        put(path, "report", html::page(&history(&found, Level::Complete)))?;
        if args.open {
            browser::open(path);
        }
    }
    if let Some(path) = &args.markdown {
        put(path, "report", markdown::page(&history(&found, Level::Full)))?;
    }
    if let Some(path) = &args.csv {
        put(path, "table", csv::history::document(&found))?;
    }
    if args.json {
        output::print(format!("{}\n", found.to_json()).as_bytes())?;
    } else if written.is_empty() {
        let level = if args.details { Level::Full } else { Level::Short };
        outputs::show(&history(&found, level), args.width)?;
    }
    Ok(exit::MEASURED)
}

/// Reads all results of the folder.
fn read(args: &HistoryArgs) -> Result<History, Error> {
    let files = files(&args.folder)?;
    let request = HistoryRequest { metrics: args.metric.clone(), any_host: args.any_host };
    let next = AtomicUsize::new(0);
    let read_some = || {
        let mut own = Vec::new();
        while let Some(path) = files.get(next.fetch_add(1, Ordering::Relaxed)) {
            let name = path.strip_prefix(&args.folder).unwrap_or(path).display().to_string();
            let entry = entry(path, &name, &request);
            own.push(entry.map_err(|why| NotUsed { file: name, why }));
        }
        own
    };
    let readers = thread::available_parallelism().map_or(1, usize::from).clamp(1, READERS_MAX);
    let all: Vec<Result<HistoryEntry, NotUsed>> = thread::scope(|scope| {
        let others: Vec<_> = (1..readers).map(|_| scope.spawn(read_some)).collect();
        let mut all = read_some();
        for other in others {
            all.extend(other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        }
        all
    });
    let (mut entries, mut skipped) = (Vec::new(), Vec::new());
    for one in all {
        match one {
            Ok(entry) => entries.push(entry),
            Err(not_used) => skipped.push(not_used),
        }
    }
    Ok(History::of(&args.folder.display().to_string(), entries, skipped))
}

/// What is kept of a file; otherwise why it is skipped.
fn entry(path: &Path, name: &str, request: &HistoryRequest) -> Result<HistoryEntry, String> {
    let unreadable = |cause: io::Error| format!("it cannot be read ({})", plain(&cause));
    if !fs::metadata(path).map_err(unreadable)?.is_file() {
        return Err("it is no file".to_owned());
    }
    let file = Foreign::open(path, Bytes(0))?;
    let mut reader = BufReader::with_capacity(READ_BUFFER, file);
    if watched::is_watch(reader.fill_buf().map_err(unreadable)?) {
        return Err("it is of a watch, which has no trials".to_owned());
    }
    let document = read_timeless(&mut reader).map_err(unreadable)?;
    HistoryEntry::of(name, document.map_err(|error| error.problem())?, request)
}

/// The files of a folder and of the folders in it that have the name of a result. Links to folders
/// are not followed, because they may lead back.
fn files(folder: &Path) -> Result<Vec<PathBuf>, Error> {
    let remedy = "name a folder with result files; `fathom report` shows a single one";
    let refused = |path: &Path, cause: &io::Error| {
        Error::file(path, format!("it cannot be read ({})", plain(cause)), remedy)
    };
    let known = patiently(folder, Role::Input, || fs::metadata(folder));
    if !known.map_err(|cause| refused(folder, &cause))?.is_dir() {
        return Err(Error::file(folder, "it is no folder", remedy));
    }
    let mut found = Vec::new();
    let mut folders = Vec::from([folder.to_owned()]);
    while let Some(folder) = folders.pop() {
        let entries = patiently(&folder, Role::Input, || {
            fs::read_dir(&folder)?.collect::<io::Result<Vec<fs::DirEntry>>>()
        });
        for entry in entries.map_err(|cause| refused(&folder, &cause))? {
            let path = entry.path();
            let kind = entry.file_type().map_err(|cause| refused(&path, &cause))?;
            if kind.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == EXTENSION) {
                found.push(path);
            }
        }
        if FILES_MAX < found.len() {
            let problem = format!("it has more than {FILES_MAX} files named *.{EXTENSION}");
            return Err(Error::file(&folder, problem, "name one of the folders in it"));
        }
    }
    found.sort();
    Ok(found)
}
