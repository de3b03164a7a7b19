//! The result file: append-only, on the disk after every line, so that whatever ends the process
//! leaves every finished trial readable. Never overwrites anything.

use std::fs::{File, Metadata, OpenOptions, TryLockError};
use std::io::{self, BufRead, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use fathom_core::Utc;

use crate::error::Error;
use crate::{output, signals};

/// How a result file's default name ends.
pub const SUFFIX: &str = ".fathom.jsonl";

/// An open result file.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    file: File,
    /// The length up to which every line is whole.
    whole: u64,
    /// Whether one of them is a result.
    results: bool,
    /// Whether stdout gets every line too.
    echo: bool,
}

impl Journal {
    /// Creates the file; with `echo` every line goes to stdout too.
    ///
    /// # Errors
    ///
    /// When it exists or cannot be created.
    pub fn create(path: &Path, echo: bool) -> Result<Self, Error> {
        // Nobody needs a file without a result: until there is one it goes away with us, and only
        // one that was killed leaves it.
        let file = signals::create_doomed(path, OpenOptions::new().read(true).write(true))
            .map_err(|cause| not_created(path, cause, "another place with --out"))?;
        keep_name(path);
        // So that nobody resumes what still goes on. Where a file system has no locks nobody can.
        let _ = file.try_lock();
        Ok(Self { path: path.to_owned(), file, whole: 0, results: false, echo })
    }

    /// Claims a result file to go on with it: before it is read, because what another process still
    /// writes would be cut off.
    ///
    /// # Errors
    ///
    /// When another process still writes it, or it cannot be written.
    pub fn claim(path: &Path) -> Result<File, Error> {
        let failed = |cause| Error::write(path, cause, "change its permissions");
        let refuse =
            |problem: &str| Err(Error::Read { path: path.to_owned(), problem: problem.to_owned() });
        // To open a pipe would wait for somebody who writes to it.
        if path.metadata().is_ok_and(|metadata| !metadata.is_file()) {
            return refuse("it is no file: name a result file");
        }
        let file = OpenOptions::new().read(true).write(true).open(path).map_err(failed)?;
        match file.try_lock() {
            Err(TryLockError::WouldBlock) => {
                refuse("another process still writes it: wait for its end, or stop it")
            }
            _ => Ok(file),
        }
    }

    /// Goes on with a claimed file after its first so many lines; what follows them is cut off: a torn
    /// line, a trial that was interrupted, a conclusion that is none any more.
    ///
    /// # Errors
    ///
    /// When it cannot be written.
    pub fn reopen(path: &Path, file: File, lines: usize) -> Result<Self, Error> {
        let failed = |cause| Error::write(path, cause, "change its permissions");
        let (mut whole, ends) = end_of(&file, lines).map_err(failed)?;
        let cut = || -> io::Result<u64> {
            file.set_len(whole)?;
            (&file).seek(SeekFrom::Start(whole))?;
            if !ends {
                (&file).write_all(b"\n")?;
            }
            file.sync_all()?;
            Ok(whole + u64::from(!ends))
        };
        whole = cut().map_err(failed)?;
        // What it holds is not ours to remove.
        Ok(Self { path: path.to_owned(), file, whole, results: true, echo: false })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether it holds more than what was to be done.
    pub fn holds_results(&self) -> bool {
        self.results
    }

    /// Appends a line and waits until it is on the disk. A line that does not fit is taken back, so
    /// that the file ends with a whole one.
    ///
    /// # Errors
    ///
    /// When the file system cannot take it, or stdout.
    pub fn append(&mut self, line: &str) -> Result<(), Error> {
        if self.results {
            self.keep_whole()?;
        }
        self.write(&|out| out.write_all(line.as_bytes()))
    }

    /// Appends a line that holds a result: `line` writes it, piece by piece where it is long.
    ///
    /// # Errors
    ///
    /// As [`Self::append`].
    pub fn append_result(
        &mut self,
        line: &dyn Fn(&mut dyn Write) -> io::Result<()>,
    ) -> Result<(), Error> {
        self.keep_whole()?;
        self.write(line)?;
        signals::spare(&self.path);
        self.results = true;
        Ok(())
    }

    /// Saves what was measured under another name where somebody has removed the file, moved it, or put
    /// another one in its place: with the last that has it open it would be gone.
    fn keep_whole(&mut self) -> Result<(), Error> {
        let there = std::fs::symlink_metadata(&self.path).ok().zip(self.file.metadata().ok());
        let is_ours = |(there, own): &(Metadata, Metadata)| {
            (there.dev(), there.ino()) == (own.dev(), own.ino())
        };
        if there.as_ref().is_some_and(is_ours) {
            return Ok(());
        }
        let failed = |path: &Path, cause| {
            let remedy = "somebody has removed or replaced the result file while it was written: make \
                          its folder again, or name another place with --out";
            Error::write(path, cause, remedy)
        };
        for number in 1..=100 {
            let mut name = self.path.clone().into_os_string();
            name.push(format!(".saved-{number}"));
            let path = PathBuf::from(name);
            let file = match OpenOptions::new().read(true).write(true).create_new(true).open(&path)
            {
                Ok(file) => file,
                Err(cause) if cause.kind() == io::ErrorKind::AlreadyExists => continue,
                Err(cause) => return Err(failed(&path, cause)),
            };
            let _ = file.try_lock();
            let copy = || -> io::Result<()> {
                (&self.file).seek(SeekFrom::Start(0))?;
                io::copy(&mut (&self.file).take(self.whole), &mut &file)?;
                file.sync_all()
            };
            copy().map_err(|cause| failed(&path, cause))?;
            output::complain(&format!(
                "{} was removed or replaced while it was written: what was measured is saved in {}",
                self.path.display(),
                path.display()
            ));
            // What took its name is not ours, and this one has what was measured.
            signals::spare(&self.path);
            keep_name(&path);
            (self.path, self.file) = (path, file);
            return Ok(());
        }
        Err(failed(&self.path, io::ErrorKind::AlreadyExists.into()))
    }

    fn write(&mut self, line: &dyn Fn(&mut dyn Write) -> io::Result<()>) -> Result<(), Error> {
        let written = write_line(&self.file, line).and_then(|length| {
            self.file.sync_data()?;
            Ok(length)
        });
        match written {
            Ok(length) => self.whole += length,
            Err(cause) => {
                // If even this fails the line stays torn, which every reader accepts.
                let _ = self.file.set_len(self.whole);
                let _ = self.file.seek(SeekFrom::Start(self.whole));
                // What is gone on with stays where it is: `resume` has no --out.
                let remedy = match self.results {
                    true => "what was measured before is in it and can be read; free some space",
                    false => "free some space or name another place with --out",
                };
                return Err(Error::write(&self.path, cause, remedy));
            }
        }
        if self.echo {
            return output::print_with(&|out| write_line(out, line).map(|_| ()));
        }
        Ok(())
    }

    /// Removes a file without a result.
    pub fn discard(self) {
        assert!(!self.results, "what was measured is kept");
        signals::remove(&self.path);
    }
}

/// Where the first so many lines that are not blank end, and whether with a newline.
fn end_of(file: &File, lines: usize) -> io::Result<(u64, bool)> {
    let mut reader = BufReader::with_capacity(BUFFER, file);
    let (mut end, mut found, mut blank, mut last) = (0, 0, true, true);
    while found < lines {
        let part = reader.fill_buf()?;
        if part.is_empty() {
            break;
        }
        let newline = part.iter().position(|&byte| byte == b'\n');
        let length = newline.map_or(part.len(), |place| place + 1);
        blank &= part[..length].iter().all(u8::is_ascii_whitespace);
        last = newline.is_some();
        end += length as u64;
        reader.consume(length);
        if last {
            found += usize::from(!blank);
            blank = true;
        }
    }
    Ok((end, last))
}

/// How much is written at once.
const BUFFER: usize = 64 << 10;

/// Writes a line and its newline, and says how long they are.
fn write_line(out: impl Write, line: &dyn Fn(&mut dyn Write) -> io::Result<()>) -> io::Result<u64> {
    let mut out = Counted { out: BufWriter::with_capacity(BUFFER, out), length: 0 };
    line(&mut out)?;
    out.write_all(b"\n")?;
    out.flush()?;
    Ok(out.length)
}

/// Counts what passes.
struct Counted<W> {
    out: W,
    length: u64,
}

impl<W: Write> Write for Counted<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let length = self.out.write(bytes)?;
        self.length += length as u64;
        Ok(length)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// The error of a result that cannot be created, with `other` as the way out.
pub fn not_created(path: &Path, cause: io::Error, other: &str) -> Error {
    let remedy = match cause.kind() {
        io::ErrorKind::AlreadyExists => {
            "choose another name: results are never overwritten".to_owned()
        }
        io::ErrorKind::NotFound => format!("create its folder, or name {other}"),
        _ => format!("name {other}"),
    };
    Error::write(path, cause, remedy)
}

/// Writes a whole file that does not exist yet.
///
/// # Errors
///
/// When it exists or cannot be written; then nothing of it is left.
pub fn write_new(path: &Path, content: impl AsRef<[u8]>) -> Result<(), Error> {
    let mut file = signals::create_doomed(path, OpenOptions::new().write(true))
        .map_err(|cause| not_created(path, cause, "another place"))?;
    let written = file.write_all(content.as_ref()).and_then(|()| file.sync_all());
    match written {
        Ok(()) => signals::spare(path),
        // Half a report is worth less than none.
        Err(_) => signals::remove(path),
    }
    written.map_err(|cause| Error::write(path, cause, "free some space or name another place"))
}

/// Makes a new name durable, where the file system lets us: after a power cut a file whose data is on
/// the disk may have no name.
fn keep_name(path: &Path) {
    let folder = match path.parent() {
        Some(folder) if folder.as_os_str().is_empty() => Path::new("."),
        Some(folder) => folder,
        None => return,
    };
    // Not every file system can, and a measurement is not refused for that.
    let _ = File::open(folder).and_then(|folder| folder.sync_all());
}

/// The name of a result file: what was done to what, and when.
pub fn default_name(command: &str, target: &str, unix_seconds: u64) -> String {
    let time = utc_compact(unix_seconds);
    match slug(target) {
        slug if slug.is_empty() => format!("{command}-{time}{SUFFIX}"),
        slug => format!("{command}-{slug}-{time}{SUFFIX}"),
    }
}

/// The last part of a target's name, in characters that need no quoting.
fn slug(target: &str) -> String {
    let last = target.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '.' || c == '_' { c } else { '-' };
    let text: String = last.chars().map(plain).take(40).collect();
    text.trim_matches(['-', '.']).to_owned()
}

/// Seconds since 1970 as 20261121T101500Z.
pub fn utc_compact(unix_seconds: u64) -> String {
    let Utc { year, month, day, hour, minute, second } = Utc::from_unix(unix_seconds);
    format!("{year:04}{month:02}{day:02}T{hour:02}{minute:02}{second:02}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_says_what_and_when() {
        assert_eq!(utc_compact(0), "19700101T000000Z");
        assert_eq!(utc_compact(951_782_399), "20000228T235959Z");
        assert_eq!(utc_compact(951_782_400), "20000229T000000Z");
        assert_eq!(utc_compact(1_795_256_100), "20261121T101500Z");
        assert_eq!(
            default_name("quick", "/mnt/data/", 0),
            "quick-data-19700101T000000Z.fathom.jsonl"
        );
        assert_eq!(
            default_name("run", "sim:queue,servers=8", 0),
            "run-sim-queue-servers-8-19700101T000000Z.fathom.jsonl"
        );
        assert_eq!(default_name("quick", "/", 0), "quick-19700101T000000Z.fathom.jsonl");
    }

    #[test]
    fn a_result_is_never_overwritten() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.jsonl");
        let mut journal = Journal::create(&path, false).unwrap();
        journal.append("{}").unwrap();
        let error = Journal::create(&path, false).unwrap_err();
        assert!(error.to_string().contains("never overwritten"), "{error}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "{}\n");
    }

    #[test]
    fn a_result_that_is_removed_or_replaced_is_saved_under_another_name() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.jsonl");
        let mut journal = Journal::create(&path, false).unwrap();
        journal.append("1").unwrap();
        std::fs::remove_file(&path).unwrap();
        journal.append_result(&|out| out.write_all(b"2")).unwrap();
        assert_eq!(std::fs::read_to_string(journal.path()).unwrap(), "1\n2\n");
        let saved = journal.path().to_owned();
        assert!(saved.ends_with("a.jsonl.saved-1") && !path.exists());
        std::fs::rename(&saved, folder.path().join("moved")).unwrap();
        std::fs::write(&saved, "somebody's").unwrap();
        journal.append_result(&|out| out.write_all(b"3")).unwrap();
        assert_eq!(std::fs::read_to_string(journal.path()).unwrap(), "1\n2\n3\n");
        assert_eq!(std::fs::read_to_string(&saved).unwrap(), "somebody's");
    }

    #[test]
    fn a_file_is_gone_on_with_after_its_whole_lines_and_by_one_process() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.jsonl");
        for (text, lines) in
            [("1\n2\n3", 2), ("1\n\n2\n", 2), ("1\n2\n3\n4\n", 2), ("1\n2", 2), ("1\n2\n\0\0", 2)]
        {
            std::fs::write(&path, text).unwrap();
            let claimed = Journal::claim(&path).unwrap();
            let error = Journal::claim(&path).unwrap_err();
            let mut journal = Journal::reopen(&path, claimed, lines).unwrap();
            assert!(error.to_string().contains("another process"), "{error}");
            journal.append("5").unwrap();
            let now = std::fs::read_to_string(&path).unwrap();
            assert_eq!(now.replace("\n\n", "\n"), "1\n2\n5\n", "{text:?}");
        }
    }

    #[test]
    fn a_report_is_whole_or_not_there_and_never_replaces_another() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.html");
        write_new(&path, "mine").unwrap();
        signals::remove(&path);
        let error = write_new(&path, "other").unwrap_err();
        assert!(error.to_string().contains("never overwritten"), "{error}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "mine");
    }

    #[test]
    fn a_line_that_does_not_fit_is_an_error() {
        let mut journal =
            Journal::create(&tempfile::tempdir().unwrap().keep().join("journal"), false).unwrap();
        journal.file = OpenOptions::new().write(true).open("/dev/full").unwrap();
        let error = journal.append("{}").unwrap_err();
        assert_eq!(error.exit_code(), crate::error::exit::OUTPUT);
        assert!(error.to_string().contains("--out"), "{error}");
        std::fs::remove_dir_all(journal.path.parent().unwrap()).unwrap();
    }
}
