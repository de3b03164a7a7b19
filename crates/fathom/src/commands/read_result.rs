//! Reads result files: one that was named, was claimed, or has just been written.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::Path;

use fathom_core::Bytes;
use fathom_report::document::{self, Document};
use fathom_report::watched::{self, WatchedResult};

use crate::error::{Error, plain};
use crate::foreign::Foreign;
use crate::journal::Journal;

/// What a file of fathom's holds.
pub enum ReadResult {
    /// Trials.
    Document(Box<Document>),
    /// What `fathom watch` saw.
    Watch(Box<WatchedResult>),
}

/// Reads a result file of either kind.
///
/// # Errors
///
/// When it cannot be read or is none.
pub fn read_any(path: &Path) -> Result<ReadResult, Error> {
    let mut reader = open(path)?;
    let beginning = reader.fill_buf().map_err(|cause| unreadable(path, &cause))?;
    if !watched::is_watch(beginning) {
        return Ok(ReadResult::Document(Box::new(read_from(path, &mut reader)?)));
    }
    let outcome = watched::read_from(&mut reader).map_err(|cause| unreadable(path, &cause))?;
    let watch = outcome.map_err(|error| Error::file(path, error.problem(), error.remedy()))?;
    Ok(ReadResult::Watch(Box::new(watch)))
}

fn open(path: &Path) -> Result<BufReader<Foreign>, Error> {
    let file = Foreign::open(path, PIPE_LIMIT).map_err(|why| Error::file(path, why, NAME))?;
    Ok(BufReader::with_capacity(READ_BUFFER, file))
}

/// Reads a result file.
///
/// # Errors
///
/// When it cannot be read or is not one.
pub fn read(path: &Path) -> Result<Document, Error> {
    read_from(path, &mut open(path)?)
}

/// The result of a run, even if another file has its name by now.
///
/// # Errors
///
/// When it cannot be read.
pub fn document(journal: &mut Journal) -> Result<Document, Error> {
    let path = journal.path().to_owned();
    let mut reader = journal.reader().map_err(|cause| unreadable(&path, &cause))?;
    read_from(&path, &mut reader)
}

/// Reads a result file that was claimed.
///
/// # Errors
///
/// As [`read`].
pub fn read_claimed(path: &Path, file: &File) -> Result<Document, Error> {
    read_from(path, &mut BufReader::with_capacity(READ_BUFFER, file))
}

fn read_from(path: &Path, reader: &mut dyn BufRead) -> Result<Document, Error> {
    let outcome = document::read_from(reader).map_err(|cause| unreadable(path, &cause))?;
    outcome.map_err(|error| Error::file(path, error.problem(), error.remedy()))
}

fn unreadable(path: &Path, cause: &io::Error) -> Error {
    Error::file(path, format!("it cannot be read ({})", plain(cause)), NAME)
}

/// The remedy if a result cannot be read.
const NAME: &str = "name a result file";

/// No result is nearly as large; a pipe may have no end.
const PIPE_LIMIT: Bytes = Bytes(Bytes::GIB);

/// How much is read at once.
const READ_BUFFER: usize = 256 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claimed_result_is_read_and_not_what_has_taken_its_name() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.jsonl");
        std::fs::write(&path, "").unwrap();
        let claimed = Journal::claim(&path).unwrap();
        let before = read_claimed(&path, &claimed).unwrap_err().to_string();
        std::fs::remove_file(&path).unwrap();
        std::fs::write(&path, "somebody's").unwrap();
        assert_ne!(read(&path).unwrap_err().to_string(), before);
        assert_eq!(read_claimed(&path, &claimed).unwrap_err().to_string(), before);
    }
}
