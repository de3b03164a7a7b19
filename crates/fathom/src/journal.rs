//! The result file: append-only, and on the disk after every line, so that every finished trial
//! stays readable however the process ends. Never overwrites anything. If the file does not accept
//! a line, or another program has changed it, only unavoidable data is lost: the rest is saved
//! elsewhere.

use std::cell::Cell;
use std::fs::{File, Metadata, OpenOptions, TryLockError};
use std::io::{self, BufRead, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use fathom_core::Utc;
use fathom_report::document;

use crate::error::{Error, plain};
use crate::hanging::{Role, patiently};
use crate::output::is_stdout;
use crate::signals::Closing;
use crate::{hanging, output, signals};

/// The end of a result file's default name.
pub const SUFFIX: &str = ".fathom.jsonl";

/// The part of a file name between the name of a result and a number: the file holds the lines that the
/// result could not take.
const SAVED: &str = ".saved-";

/// Writes a line, piece by piece if it is long.
type Line<'a> = &'a dyn Fn(&mut dyn Write) -> io::Result<()>;

/// An open result file.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    /// Called on separate threads: its file system may hang.
    file: Arc<Closing<File>>,
    /// The file system that it is on; 0 if unknown.
    device: u64,
    /// The first line, which makes any later one readable: if another program truncates the file,
    /// it is the only line that can be written again.
    header: Vec<u8>,
    /// The end of each line.
    ends: Vec<u64>,
    /// All lines, if no file accepts them any more.
    memory: Option<Vec<u8>>,
    /// Whether one of them is a result.
    results: bool,
    /// Whether there is one, or is about to be one.
    keeps: bool,
    /// Whether stdout gets every line too.
    echo: bool,
    /// The results that are not at their destination, and their present place.
    trouble: Option<Error>,
}

/// Why lines cannot stay in place.
enum Harm {
    /// The file accepts no more data.
    Full(io::Error),
    /// The file was removed or moved, or another one has its name.
    Gone,
    /// Another program has truncated it or written to it.
    Changed,
    /// It does not answer.
    Hangs(io::Error),
}

impl Harm {
    fn of(cause: io::Error) -> Self {
        if hanging::is_hang(&cause) { Self::Hangs(cause) } else { Self::Full(cause) }
    }
}

impl Journal {
    /// Creates the file; with `echo` every line goes to stdout too.
    ///
    /// # Errors
    ///
    /// When it exists or cannot be created, or stdout is named.
    pub fn create(path: &Path, echo: bool) -> Result<Self, Error> {
        is_a_file("--out", path)?;
        // A file without a result has no use: until there is one it is removed when the process
        // ends, and only a killed process leaves it.
        let create = || signals::create_doomed(path, &mut options());
        let file = patiently(path, Role::Output, create)
            .map_err(|cause| not_created(path, cause, "another place with --out"))?;
        // So that no process resumes a result that is still being written. On a file system without
        // locks this is impossible.
        let _ = patiently(path, Role::Output, || {
            keep_name(path);
            file.try_lock()
        });
        Ok(Self { echo, ..Self::of(path, file) })
    }

    fn of(path: &Path, file: File) -> Self {
        let device = patiently(path, Role::Output, || file.metadata());
        Self {
            device: device.map_or(0, |own| own.dev()),
            path: path.to_owned(),
            file: Arc::new(file.into()),
            header: Vec::new(),
            ends: Vec::new(),
            memory: None,
            results: false,
            keeps: false,
            echo: false,
            trouble: None,
        }
    }

    /// Claims a result file to continue it: before it is read, because lines that another process
    /// still writes would be cut off.
    ///
    /// # Errors
    ///
    /// When another process still writes it, or it cannot be written.
    pub fn claim(path: &Path) -> Result<File, Error> {
        let failed = |cause| Error::write(path, cause, "let this user write to it");
        // Opening a pipe would wait for a writer.
        if path.metadata().is_ok_and(|metadata| !metadata.is_file()) {
            return Err(Error::file(path, "it is no file", "name a result file"));
        }
        let file = options().open(path).map_err(failed)?;
        match file.try_lock() {
            Err(TryLockError::WouldBlock) => Err(Error::file(
                path,
                "another process still writes it",
                "wait for its end, or stop it",
            )),
            _ => Ok(file),
        }
    }

    /// Continues a claimed file after its first lines, this many; everything after them is cut off:
    /// a torn line, a trial that was interrupted, a conclusion that is no longer valid.
    ///
    /// # Errors
    ///
    /// When it cannot be written.
    pub fn reopen(path: &Path, file: File, lines: usize) -> Result<Self, Error> {
        let failed = |cause| Error::write(path, cause, "let this user write to it");
        // Its content is not ours to remove.
        let mut journal = Self { results: true, keeps: true, ..Self::of(path, file) };
        patiently(path, Role::Output, || journal.cut(lines)).map_err(failed)?;
        Ok(journal)
    }

    fn cut(&mut self, lines: usize) -> io::Result<()> {
        let (ends, is_ended) = ends_of(&self.file, lines)?;
        self.ends = ends;
        self.file.set_len(self.whole())?;
        if !is_ended {
            (&**self.file).write_all(b"\n")?;
            self.ends.iter_mut().rev().take(1).for_each(|end| *end += 1);
        }
        self.file.sync_all()?;
        self.header = vec![0; self.ends.first().map_or(0, |end| *end as usize)];
        self.file.read_exact_at(&mut self.header, 0)
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether it holds more than the header.
    pub fn holds_results(&self) -> bool {
        self.results
    }

    /// Whether it is in a file: results in memory do not outlive the process, so it makes no sense
    /// to measure more.
    pub fn is_saved(&self) -> bool {
        self.memory.is_none()
    }

    /// All of its content.
    pub fn reader(&mut self) -> io::Result<Box<dyn BufRead + '_>> {
        if let Some(harm) = self.harm().filter(|_| self.results) {
            self.save_elsewhere(harm, None);
        }
        if let Some(memory) = &self.memory {
            return Ok(Box::new(memory.as_slice()));
        }
        (&**self.file).seek(SeekFrom::Start(0))?;
        let lines = (&**self.file).take(self.whole());
        Ok(Box::new(BufReader::with_capacity(BUFFER, lines)))
    }

    /// Whether all of it is at the user's destination.
    ///
    /// # Errors
    ///
    /// When the file, or stdout, has not accepted all of it: says which part is where.
    pub fn outcome(&mut self) -> Result<(), Error> {
        self.trouble.take().map_or(Ok(()), Err)
    }

    /// Appends a line and waits until it is on the disk. A line that does not fit is removed again,
    /// so that the file ends with a complete one.
    ///
    /// # Errors
    ///
    /// When the file system or stdout cannot accept it and there is no result yet. With a result it
    /// goes where there is room.
    pub fn append(&mut self, line: &str) -> Result<(), Error> {
        let line: Line<'_> = &|out| out.write_all(line.as_bytes());
        if self.results {
            self.keep(line);
            return Ok(());
        }
        let remedy = "free some space or name another place with --out";
        self.write(line).map_err(|cause| Error::write(&self.path, cause, remedy))?;
        self.print(line)
    }

    /// Appends a line that holds a result: `line` writes it, piece by piece if it is long. If the
    /// file does not accept it, another one does, or memory.
    pub fn append_result(&mut self, line: Line<'_>) {
        self.keep(line);
    }

    fn keep(&mut self, line: Line<'_>) {
        self.keeps = true;
        let lines = self.ends.len();
        let harm = self.harm().or_else(|| self.write(line).err().map(Harm::of));
        // Once more, because another program may have truncated it at that moment.
        match harm.or_else(|| self.harm()) {
            Some(harm) => {
                self.ends.truncate(lines);
                self.save_elsewhere(harm, Some(line));
            }
            None => signals::spare(&self.path),
        }
        self.results = true;
        // The content of the file stays, and so do later lines: stdout is reported at the end.
        if let Err(error) = self.print(line) {
            output::note_folded(&error.to_string());
            self.echo = false;
            self.trouble.get_or_insert(error);
        }
    }

    fn print(&self, line: Line<'_>) -> Result<(), Error> {
        match self.echo {
            true => output::print_with(&|out| write_line(out, line).map(|_| ())),
            false => Ok(()),
        }
    }

    fn write(&mut self, line: Line<'_>) -> io::Result<()> {
        if let Some(memory) = &mut self.memory {
            return write_line(memory, line).map(|_| ());
        }
        let out = Patient::new(self);
        let written = write_line(&out, line).and_then(|length| {
            out.ask(|file| file.sync_data())?;
            Ok(length)
        });
        let whole = self.whole();
        let length = written.inspect_err(|cause| {
            // If even this fails the line stays torn, which every reader accepts.
            if !hanging::is_hang(cause) {
                let _ = out.ask(move |file| file.set_len(whole));
            }
        })?;
        if self.ends.is_empty() {
            write_line(&mut self.header, line)?;
        }
        self.ends.push(self.whole() + length);
        Ok(())
    }

    /// The length up to which every line is complete.
    fn whole(&self) -> u64 {
        self.ends.last().copied().unwrap_or(0)
    }

    /// What another program has done to the file. A file without a name is gone once it is closed.
    fn harm(&self) -> Option<Harm> {
        if self.memory.is_some() {
            return None;
        }
        let path = self.path.clone();
        let ask = move |file: &File| {
            let own = file.metadata()?;
            let is_ours = |there: Metadata| (there.dev(), there.ino()) == (own.dev(), own.ino());
            Ok((own.len(), std::fs::symlink_metadata(path).is_ok_and(is_ours)))
        };
        match Patient::new(self).ask(ask) {
            Ok((length, true)) => (length != self.whole()).then_some(Harm::Changed),
            Err(cause) if hanging::is_hang(&cause) => Some(Harm::Hangs(cause)),
            Ok((_, false)) | Err(_) => Some(Harm::Gone),
        }
    }

    /// Saves the results, and the next line, in another file, or in memory if no file has room, and
    /// reports it.
    fn save_elsewhere(&mut self, harm: Harm, line: Option<Line<'_>>) {
        let hangs = matches!(harm, Harm::Hangs(_));
        // A file that does not answer keeps its lines, and may answer one day.
        let kept = if hangs { &[] } else { self.remains() };
        let lost = if hangs { 0 } else { self.ends.len().max(1) - kept.len().max(1) };
        let (old, had_results) = (self.path.clone(), self.results);
        let copy = |out: &mut dyn Write| self.copy(kept, line, out);
        let usable = |folder: &PathBuf| !hangs || is_elsewhere(folder, self.device);
        // The path of the file itself is already known.
        let saved = places(&old)
            .skip(usize::from(hangs))
            .filter(usable)
            .find_map(|folder| copied(&folder, &old, &copy).ok());
        let mut memory = Vec::new();
        let ends = match &saved {
            Some((_, _, ends)) => ends.clone(),
            // Only lines that can no longer be read are missing.
            None => copy(&mut memory).unwrap_or_default(),
        };
        self.trouble =
            Some(told(&old, &harm, lost, saved.as_ref().map(|(path, ..)| path.as_path())));
        self.trouble.iter().for_each(|trouble| output::note_folded(&trouble.to_string()));
        match harm {
            // A file without a result has no use, and is ours.
            Harm::Full(_) if !had_results => signals::remove(&old),
            Harm::Full(_) | Harm::Gone | Harm::Changed | Harm::Hangs(_) => signals::spare(&old),
        }
        match saved {
            Some((path, file, _)) => (self.path, self.file) = (path, Arc::new(file.into())),
            None => self.memory = Some(memory),
        }
        self.ends = ends;
    }

    /// The ends of the lines that are still in the file as they were written.
    fn remains(&self) -> &[u64] {
        let mut first = vec![0; self.header.len()];
        let begins = self.file.read_exact_at(&mut first, 0).is_ok() && first == self.header;
        let length = self.file.metadata().map_or(0, |own| own.len());
        let count = self.ends.iter().take_while(|end| begins && **end <= length).count();
        &self.ends[..count]
    }

    /// Writes the kept lines, at least the header, and another one: returns the end of each.
    fn copy(
        &self,
        kept: &[u64],
        line: Option<Line<'_>>,
        out: &mut dyn Write,
    ) -> io::Result<Vec<u64>> {
        let mut ends = kept.to_vec();
        match kept.last() {
            Some(end) => {
                (&**self.file).seek(SeekFrom::Start(0))?;
                io::copy(&mut (&**self.file).take(*end), out)?;
            }
            None => {
                out.write_all(&self.header)?;
                ends.push(self.header.len() as u64);
            }
        }
        if let Some(line) = line {
            let begins = ends.last().copied().unwrap_or(0);
            ends.push(begins + write_line(out, line)?);
        }
        Ok(ends)
    }

    /// Removes a file without a result.
    pub fn discard(self) {
        assert!(!self.results, "what was measured is kept");
        signals::remove(&self.path);
    }
}

/// Writes to a result file, and queries it, on separate threads.
struct Patient<'a> {
    file: &'a Arc<Closing<File>>,
    /// Whether there is something to keep.
    keeps: bool,
    /// Whether it was given up: the rest of a buffer must not be waited for once more.
    hangs: Cell<bool>,
}

impl<'a> Patient<'a> {
    fn new(journal: &'a Journal) -> Self {
        Self { file: &journal.file, keeps: journal.keeps, hangs: Cell::new(false) }
    }
}

impl Patient<'_> {
    fn ask<T: Send + 'static>(
        &self,
        ask: impl FnOnce(&File) -> io::Result<T> + Send + 'static,
    ) -> io::Result<T> {
        if self.hangs.get() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        let file = Arc::clone(self.file);
        let answer = hanging::answered(self.keeps, move || ask(&file));
        self.hangs.set(answer.as_ref().is_err_and(hanging::is_hang));
        answer
    }
}

impl Write for &Patient<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let own = bytes.to_vec();
        self.ask(move |mut file| file.write_all(&own))?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Whether a folder is on another file system than this one, which hangs.
fn is_elsewhere(folder: &Path, hangs: u64) -> bool {
    let own = folder.to_owned();
    hanging::answered(true, move || own.metadata()).is_ok_and(|found| found.dev() != hangs)
}

/// Whether a file is a result of fathom, by its name or by its beginning. A file that cannot be
/// read is not: it cannot be a target either.
pub fn is_result(path: &Path) -> bool {
    let named = path.file_name().is_some_and(|name| name.to_string_lossy().ends_with(SUFFIX));
    named || begins_as_result(path).is_ok_and(|begins| begins)
}

fn begins_as_result(path: &Path) -> io::Result<bool> {
    let mut first = [0; document::START.len()];
    File::open(path)?.read_exact(&mut first)?;
    Ok(first == document::START)
}

/// Whether a file is a result that a fathom process writes now and has locked.
pub fn is_being_written(path: &Path) -> bool {
    let locked = |file: File| matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock));
    is_result(path) && File::open(path).is_ok_and(locked)
}

/// How a result file is opened. Every write goes to its end: otherwise a write after a truncation
/// by another program would leave a hole as long as the lost data.
fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).append(true);
    options
}

/// The places to save results that cannot stay in theirs, the best place first.
fn places(path: &Path) -> impl Iterator<Item = PathBuf> {
    let beside = std::path::absolute(path).ok().and_then(|path| Some(path.parent()?.to_owned()));
    let here = std::env::current_dir().ok();
    beside.into_iter().chain(here).chain([std::env::temp_dir()])
}

/// The name of the result whose lines a file has taken over, by the name of that file.
pub fn saved_from(path: &Path) -> Option<PathBuf> {
    let name = path.file_name()?.to_str()?;
    let (old, number) = name.rsplit_once(SAVED)?;
    number.parse::<u32>().is_ok().then(|| PathBuf::from(old))
}

/// A new file in a folder, named after another one, with the data that `copy` writes.
fn copied(
    folder: &Path,
    old: &Path,
    copy: &dyn Fn(&mut dyn Write) -> io::Result<Vec<u64>>,
) -> io::Result<(PathBuf, File, Vec<u64>)> {
    for number in 1..=100 {
        let mut name = old.file_name().unwrap_or_default().to_owned();
        name.push(format!("{SAVED}{number}"));
        let path = folder.join(name);
        let mut file = match signals::create_doomed(&path, &mut options()) {
            Err(cause) if cause.kind() == io::ErrorKind::AlreadyExists => continue,
            created => created?,
        };
        let _ = file.try_lock();
        let ends = copy(&mut file).and_then(|ends| file.sync_all().map(|()| ends));
        match &ends {
            Ok(_) => signals::spare(&path),
            Err(_) => signals::remove(&path),
        }
        keep_name(&path);
        return ends.map(|ends| (path, file, ends));
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

/// The problem with a result, and its present place.
fn told(old: &Path, harm: &Harm, lost: usize, saved: Option<&Path>) -> Error {
    let cause = match harm {
        Harm::Full(cause) => io::Error::new(cause.kind(), plain(cause)),
        Harm::Gone => io::Error::other("somebody has removed, moved or replaced it"),
        Harm::Changed => io::Error::other("somebody else has cut it off or written to it"),
        Harm::Hangs(cause) => io::Error::other(cause.to_string()),
    };
    let lines = if lost == 1 { "line that was in it is" } else { "lines that were in it are" };
    let lost = if lost == 0 { String::new() } else { format!("{lost} {lines} lost; ") };
    Error::write(
        old,
        cause,
        match saved {
            Some(path) if matches!(harm, Harm::Hangs(_)) => format!(
                "what it took until then is in it; what is measured from then on is saved in {}",
                path.display()
            ),
            Some(path) => format!("{lost}what was measured is saved in {}", path.display()),
            None => format!(
                "{lost}what was measured cannot be saved in its folder, the current folder or the \
                 temporary folder: it ends here, and its result is only shown; free some space"
            ),
        },
    )
}

/// The ends of the first lines, this many, that are not blank, and whether the last one ends with a
/// newline.
fn ends_of(file: &File, lines: usize) -> io::Result<(Vec<u64>, bool)> {
    let mut source = file;
    source.seek(SeekFrom::Start(0))?;
    let mut reader = BufReader::with_capacity(BUFFER, source);
    let (mut ends, mut end, mut blank, mut is_ended) = (Vec::new(), 0, true, true);
    while ends.len() < lines {
        let part = reader.fill_buf()?;
        if part.is_empty() {
            ends.extend((!blank).then_some(end));
            break;
        }
        let newline = part.iter().position(|&byte| byte == b'\n');
        let length = newline.map_or(part.len(), |place| place + 1);
        blank &= part[..length].iter().all(u8::is_ascii_whitespace);
        is_ended = newline.is_some();
        end += length as u64;
        reader.consume(length);
        if is_ended {
            ends.extend((!blank).then_some(end));
            blank = true;
        }
    }
    Ok((ends, is_ended))
}

/// The size of each write.
const BUFFER: usize = 64 << 10;

/// Writes a line and its newline, and returns their length.
fn write_line(out: impl Write, line: &dyn Fn(&mut dyn Write) -> io::Result<()>) -> io::Result<u64> {
    let mut out = Counted { out: BufWriter::with_capacity(BUFFER, out), length: 0 };
    line(&mut out)?;
    out.write_all(b"\n")?;
    out.flush()?;
    Ok(out.length)
}

/// Counts the bytes that pass.
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

/// The error for a result that cannot be created, with `other` as the remedy.
pub fn not_created(path: &Path, cause: io::Error, other: &str) -> Error {
    let remedy = match cause.kind() {
        io::ErrorKind::AlreadyExists => {
            "choose another name: files are never overwritten".to_owned()
        }
        io::ErrorKind::NotFound => format!("create its folder, or name {other}"),
        io::ErrorKind::PermissionDenied => {
            format!("let this user write in its folder, or name {other}")
        }
        _ => format!("name {other}"),
    };
    Error::write(path, cause, remedy)
}

/// Refuses stdout as the place of what is written while it is measured.
///
/// # Errors
///
/// When it is stdout.
pub fn is_a_file(option: &str, path: &Path) -> Result<(), Error> {
    if !is_stdout(path) {
        return Ok(());
    }
    Err(Error::option(
        format!("{option} {}", path.display()),
        "it is kept in a file, so that it survives an abort",
        "name a file",
    ))
}

/// Writes a whole file that does not exist yet.
///
/// # Errors
///
/// When it exists or cannot be written; then no part of it is left.
pub fn write_new(path: &Path, content: impl AsRef<[u8]>) -> Result<(), Error> {
    let create = || signals::create_doomed(path, OpenOptions::new().write(true));
    let mut file = patiently(path, Role::Output, create)
        .map_err(|cause| not_created(path, cause, "another place"))?;
    let written = patiently(path, Role::Output, || {
        file.write_all(content.as_ref()).and_then(|()| file.sync_all())
    });
    signals::close(file);
    match written {
        Ok(()) => signals::spare(path),
        // Half a report is worth less than none.
        Err(_) => signals::remove(path),
    }
    written.map_err(|cause| Error::write(path, cause, "free some space or name another place"))
}

/// Makes a new name durable, if the file system allows it: after a power cut a file whose data is
/// on the disk may have no name.
fn keep_name(path: &Path) {
    let folder = match path.parent() {
        Some(folder) if folder.as_os_str().is_empty() => Path::new("."),
        Some(folder) => folder,
        None => return,
    };
    // Not every file system can, and a measurement is not refused for that.
    let _ = File::open(folder).and_then(|folder| folder.sync_all());
}

/// The name of a result file: the command, the target and the time.
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
        journal.append_result(&|out| out.write_all(b"2"));
        assert_eq!(std::fs::read_to_string(journal.path()).unwrap(), "1\n2\n");
        let saved = journal.path().to_owned();
        assert!(saved.ends_with("a.jsonl.saved-1") && !path.exists());
        std::fs::rename(&saved, folder.path().join("moved")).unwrap();
        std::fs::write(&saved, "somebody's").unwrap();
        journal.append_result(&|out| out.write_all(b"3"));
        assert_eq!(std::fs::read_to_string(journal.path()).unwrap(), "1\n2\n3\n");
        assert_eq!(std::fs::read_to_string(&saved).unwrap(), "somebody's");
    }

    fn text(journal: &mut Journal) -> String {
        let mut text = String::new();
        journal.reader().unwrap().read_to_string(&mut text).unwrap();
        text
    }

    #[test]
    fn a_result_is_known_by_its_name_or_its_beginning_and_while_it_is_written() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        let mut journal = Journal::create(&path, false).unwrap();
        journal.append(&String::from_utf8_lossy(document::START)).unwrap();
        journal.append_result(&|out| out.write_all(b"1"));
        assert!(is_result(&path) && is_being_written(&path));
        drop(journal);
        assert!(is_result(&path) && !is_being_written(&path));
        for (name, content, result) in [
            ("data", "data", false),
            ("empty", "", false),
            ("torn.fathom.jsonl", "\0\0", true),
            ("jsonl", "{\"line\":\"header\"}", false),
        ] {
            let path = folder.path().join(name);
            std::fs::write(&path, content).unwrap();
            let file = File::open(&path).unwrap();
            file.lock().unwrap();
            assert_eq!((is_result(&path), is_being_written(&path)), (result, result), "{name}");
        }
    }

    /// A journal with a header and a trial, in its own folder.
    fn begun(folder: &Path) -> Journal {
        std::fs::create_dir_all(folder).unwrap();
        let mut journal = Journal::create(&folder.join("a.jsonl"), false).unwrap();
        journal.append("header").unwrap();
        journal.append_result(&|out| out.write_all(b"1"));
        journal
    }

    #[test]
    fn of_a_result_that_is_cut_off_all_is_saved_that_is_left() {
        let root = tempfile::tempdir().unwrap();
        for (place, (left, saved, told)) in [
            ("header\n1\n", "header\n1\n2\n", ""),
            ("header\n1\nsomebody's", "header\n1\n2\n", "is saved in"),
            ("header\n", "header\n2\n", "1 line that was in it is lost"),
            ("header", "header\n2\n", "1 line that was in it is lost"),
            ("", "header\n2\n", "1 line that was in it is lost"),
            ("somebody's own", "header\n2\n", "1 line that was in it is lost"),
        ]
        .into_iter()
        .enumerate()
        {
            let mut journal = begun(&root.path().join(place.to_string()));
            let path = journal.path().to_owned();
            // Rewritten in place, as a shell's `>` does it.
            std::fs::write(&path, left).unwrap();
            journal.append_result(&|out| out.write_all(b"2"));
            assert_eq!(text(&mut journal), saved, "{left:?}");
            assert_eq!(std::fs::read_to_string(journal.path()).unwrap(), saved);
            let outcome = journal.outcome().map_err(|error| error.to_string());
            match told {
                "" => assert_eq!((outcome, journal.path()), (Ok(()), &*path)),
                told => {
                    assert!(outcome.unwrap_err().contains(told), "{left:?}");
                    assert_eq!(std::fs::read_to_string(&path).unwrap(), left);
                }
            }
        }
    }

    #[test]
    fn a_result_whose_folder_is_gone_or_moved_is_saved_in_another_one() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("folder");
        for remove in [true, false] {
            let mut journal = begun(&folder);
            match remove {
                true => std::fs::remove_dir_all(&folder).unwrap(),
                false => std::fs::rename(&folder, root.path().join("moved")).unwrap(),
            }
            journal.append_result(&|out| out.write_all(b"2"));
            assert_eq!(text(&mut journal), "header\n1\n2\n");
            let path = journal.path().to_owned();
            assert!(path.exists() && !path.starts_with(root.path()), "{path:?}");
            let error = journal.outcome().unwrap_err();
            assert_eq!(error.exit_code(), crate::error::exit::OUTPUT);
            assert!(error.to_string().contains(&*path.display().to_string()), "{error}");
            std::fs::remove_file(path).unwrap();
        }
    }

    #[test]
    fn what_no_file_takes_is_kept_to_be_shown() {
        let folder = tempfile::tempdir().unwrap();
        let mut journal = Journal::create(&folder.path().join("a.jsonl"), false).unwrap();
        journal.append("header").unwrap();
        let path = journal.path().to_owned();
        // The write itself fails, so every file fails, and the last attempt goes to memory.
        let tries = std::cell::Cell::new(0);
        journal.append_result(&|out| {
            tries.set(tries.get() + 1);
            match tries.get() <= 1 + places(&path).count() {
                true => Err(io::ErrorKind::StorageFull.into()),
                false => out.write_all(b"1"),
            }
        });
        journal.append("end").unwrap();
        assert_eq!(text(&mut journal), "header\n1\nend\n");
        assert!(!journal.is_saved() && journal.holds_results());
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "nothing is left over");
        let error = journal.outcome().unwrap_err().to_string();
        assert!(error.contains("its result is only shown"), "{error}");
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
        let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
        journal.file = Arc::new(full.into());
        let error = journal.append("{}").unwrap_err();
        assert_eq!(error.exit_code(), crate::error::exit::OUTPUT);
        assert!(error.to_string().contains("--out"), "{error}");
        std::fs::remove_dir_all(journal.path.parent().unwrap()).unwrap();
    }
}
