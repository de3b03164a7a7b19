//! Writes every byte of a range of a file or device, so that a test finds data there: blocks that
//! were never written read as zeros without reaching the medium, and equal or compressible ones may
//! take no space.
//!
//! Every byte is random, unless another content was requested, and follows from the seed and its
//! offset alone. Several writers take blocks in the order of the offsets, so that a file grows from
//! its start to its end.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use fathom_core::Bytes;
use fathom_core::measure::Direction;
use rustix::fs::{FallocateFlags, OFlags};
use rustix::io::Errno;

use crate::backend::Shape;
use crate::buffers::Buffers;
use crate::payload::{self, Dedup};

/// Content follows from the seed and the number of the page. Direct blocks begin and end on a page:
/// only a few devices that require whole blocks need more.
const PAGE: u64 = 4096;

/// How often the caller learns the progress.
const PROGRESS: Duration = Duration::from_millis(100);

/// The settings of writing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Prefilling {
    /// The number of threads that write, at least one.
    pub writers: u32,
    /// The size of each write, a multiple of 4 KiB.
    pub block: Bytes,
    /// Repeats the content.
    pub seed: u64,
    /// The share of each block of 4 KiB that a compressor saves, from 0 to 1.
    pub compressible: f64,
    /// The share of these blocks that equal one before them, from 0 to 1.
    pub dedup: f64,
}

/// The result of writing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prefilled {
    /// The bytes written: fewer than requested only if it was stopped.
    pub written: Bytes,
    /// Whether it bypassed the page cache. If that is impossible, it went through it.
    pub direct: bool,
    /// Whether it was stopped before the end.
    pub stopped: bool,
}

/// Why a range could not be written.
#[derive(Debug)]
pub struct PrefillError {
    /// The bytes that were written before, all writers together.
    pub written: Bytes,
    /// The error.
    pub cause: io::Error,
}

impl PrefillError {
    /// Whether there is no more room: on the device, or in a quota.
    pub fn is_full(&self) -> bool {
        let errno = self.cause.raw_os_error().map(Errno::from_raw_os_error);
        matches!(errno, Some(Errno::NOSPC | Errno::DQUOT))
    }
}

impl fmt::Display for PrefillError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.is_full() {
            true => write!(f, "there is no room left after {}", self.written),
            false => write!(f, "writing failed after {}: {}", self.written, self.cause),
        }
    }
}

impl std::error::Error for PrefillError {}

/// Writes data from byte `from` up to byte `to` of a file that is open for writing, and has the
/// device make it durable. `progress` is called on this thread with the bytes written so far.
///
/// # Errors
///
/// When there is no room or the device fails. The data written until then stays.
///
/// # Panics
///
/// When the options name no writer or a block that is not a multiple of 4 KiB.
pub fn prefill(
    file: &File,
    from: Bytes,
    to: Bytes,
    options: Prefilling,
    stop: &AtomicBool,
    progress: &mut dyn FnMut(Bytes),
) -> Result<Prefilled, PrefillError> {
    assert!(options.writers > 0);
    assert!(options.block.0 > 0 && options.block.0.is_multiple_of(PAGE));
    let failed = |written, cause| PrefillError { written: Bytes(written), cause };
    reserve(file, from.0, to.0).map_err(|cause| failed(0, cause))?;
    let task =
        SharedState::new(file, from.0, to.0, options, stop).map_err(|cause| failed(0, cause))?;
    let outcome = task.run(progress);
    let written = task.written.load(Ordering::Relaxed);
    outcome.and_then(|()| file.sync_all()).map_err(|cause| failed(written, cause))?;
    let stopped = written < to.0.saturating_sub(from.0);
    assert!(!stopped || stop.load(Ordering::Relaxed));
    let direct = task.direct.is_some() && !task.refused();
    Ok(Prefilled { written: Bytes(written), direct, stopped })
}

/// Reserves the range, if the file system can: too little room shows before anything is written,
/// and the file is in few pieces.
fn reserve(file: &File, from: u64, to: u64) -> io::Result<()> {
    let facts = file.metadata()?;
    if !facts.is_file() || to <= from {
        return Ok(());
    }
    let reserved = rustix::io::retry_on_intr(|| {
        rustix::fs::fallocate(file, FallocateFlags::empty(), from, to - from)
    });
    match reserved {
        // Over old data a file system may ask for more room than writing will need.
        Err(Errno::NOSPC | Errno::DQUOT) if to <= facts.len() => Ok(()),
        Err(errno @ (Errno::NOSPC | Errno::DQUOT | Errno::FBIG)) => Err(errno.into()),
        // It only helps, and not every file system supports it.
        _ => Ok(()),
    }
}

/// The shared state of all writers.
struct SharedState<'a> {
    /// The file without the page cache, if possible.
    direct: Option<File>,
    /// The file through the page cache, for partial pages and if nothing else is possible.
    buffered: File,
    to: u64,
    options: Prefilling,
    stop: &'a AtomicBool,
    /// Where the next block starts.
    next: AtomicU64,
    written: AtomicU64,
    /// Whether the device refused a direct write and the rest goes through the page cache.
    through_cache: AtomicBool,
    /// Whether a writer failed, so that the others can stop.
    failed: AtomicBool,
}

impl<'a> SharedState<'a> {
    fn new(
        file: &File,
        from: u64,
        to: u64,
        options: Prefilling,
        stop: &'a AtomicBool,
    ) -> io::Result<Self> {
        // A descriptor's flags belong to all its duplicates, so that the file is opened anew. Its
        // path may be gone; this one leads to it anyway.
        let path = format!("/proc/self/fd/{}", file.as_raw_fd());
        let open = |flags: OFlags| {
            let mut open = OpenOptions::new();
            open.write(true).custom_flags(flags.bits() as i32).open(&path)
        };
        let buffered = match open(OFlags::empty()) {
            Ok(buffered) => buffered,
            Err(_) => file.try_clone()?,
        };
        Ok(Self {
            direct: open(OFlags::DIRECT).ok(),
            buffered,
            to,
            options,
            stop,
            next: AtomicU64::new(from),
            written: AtomicU64::new(0),
            through_cache: AtomicBool::new(false),
            failed: AtomicBool::new(false),
        })
    }

    /// Runs the writers and reports their progress until the last one has ended.
    fn run(&self, progress: &mut dyn FnMut(Bytes)) -> io::Result<()> {
        thread::scope(|scope| {
            let (sender, outcomes) = channel();
            for writer in 0..self.options.writers {
                let outcome = sender.clone();
                let spawned = thread::Builder::new().name(format!("writer {writer}")).spawn_scoped(
                    scope,
                    move || {
                        let result = self.write();
                        if result.is_err() {
                            self.failed.store(true, Ordering::Relaxed);
                        }
                        // The caller listens until every sender is dropped.
                        let _ = outcome.send(result);
                    },
                );
                match spawned {
                    Ok(_) => {}
                    // Fewer writers are slower, not worse.
                    Err(_) if writer > 0 => break,
                    Err(error) => return Err(error),
                }
            }
            drop(sender);
            self.listen(&outcomes, progress)
        })
    }

    fn listen(
        &self,
        outcomes: &Receiver<io::Result<()>>,
        progress: &mut dyn FnMut(Bytes),
    ) -> io::Result<()> {
        let mut first_failure = Ok(());
        loop {
            match outcomes.recv_timeout(PROGRESS) {
                Ok(outcome) => first_failure = first_failure.and(outcome),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            progress(Bytes(self.written.load(Ordering::Relaxed)));
        }
        first_failure
    }

    /// Takes blocks and writes them until there are none left.
    fn write(&self) -> io::Result<()> {
        let block_size =
            u32::try_from(self.options.block.0).map_err(|_| io::ErrorKind::InvalidInput)?;
        // Its content is made below, block by block.
        let shape = Shape { block_size, reads: true, writes: false, ..Shape::USUAL };
        let mut buffers = Buffers::new(&shape, PAGE as usize)?;
        let buffer = buffers.get(Direction::Read, 0);
        while !self.stop.load(Ordering::Relaxed) && !self.failed.load(Ordering::Relaxed) {
            let Some((start, end)) = self.take() else { return Ok(()) };
            let first_page = start / PAGE * PAGE;
            let content = &mut buffer[..(end.next_multiple_of(PAGE) - first_page) as usize];
            fill(self.options, first_page, content);
            self.write_block(&content[(start - first_page) as usize..], start, end)?;
        }
        Ok(())
    }

    /// The next block. Its end is a multiple of the page size, except at the end of the range.
    fn take(&self) -> Option<(u64, u64)> {
        let end_of = |start: u64| (start / PAGE * PAGE + self.options.block.0).min(self.to);
        let next = |start: u64| (start < self.to).then(|| end_of(start));
        let start = self.next.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next).ok()?;
        Some((start, end_of(start)))
    }

    /// Writes `content` from `start` to `end`: whole pages without the page cache, the rest through
    /// it.
    fn write_block(&self, content: &[u8], start: u64, end: u64) -> io::Result<()> {
        let first_whole = start.next_multiple_of(PAGE).min(end);
        let last_whole = (end / PAGE * PAGE).max(first_whole);
        let part = |from: u64, to: u64| &content[(from - start) as usize..(to - start) as usize];
        self.write_part(&self.buffered, part(start, first_whole), start)?;
        self.write_pages(part(first_whole, last_whole), first_whole)?;
        self.write_part(&self.buffered, part(last_whole, end), last_whole)
    }

    fn write_pages(&self, content: &[u8], start: u64) -> io::Result<()> {
        let mut rest = content;
        if let Some(direct) = self.direct.as_ref().filter(|_| !self.refused()) {
            match self.write_some(direct, &mut rest, start) {
                // The device has larger sectors, or the file system promised more than it can do,
                // or the last write ended within a sector because there is hardly room.
                Err(error) if error.raw_os_error() == Some(Errno::INVAL.raw_os_error()) => {
                    self.through_cache.store(true, Ordering::Relaxed);
                }
                result => return result,
            }
        }
        self.write_part(&self.buffered, rest, start + (content.len() - rest.len()) as u64)
    }

    fn refused(&self) -> bool {
        self.through_cache.load(Ordering::Relaxed)
    }

    fn write_part(&self, file: &File, mut content: &[u8], start: u64) -> io::Result<()> {
        self.write_some(file, &mut content, start)
    }

    /// Writes and counts all of `rest`, or leaves in it the part that could not be written.
    fn write_some(&self, file: &File, rest: &mut &[u8], mut start: u64) -> io::Result<()> {
        while !rest.is_empty() {
            match file.write_at(rest, start) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(moved) => {
                    *rest = &rest[moved..];
                    start += moved as u64;
                    self.written.fetch_add(moved as u64, Ordering::Relaxed);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// The content of whole pages from `offset` on.
fn fill(options: Prefilling, offset: u64, content: &mut [u8]) {
    let Prefilling { seed, compressible, dedup, .. } = options;
    let mut numbers = Dedup::after(offset / PAGE, dedup, payload::COMMONS);
    for (page, content) in (offset / PAGE..).zip(content.chunks_mut(PAGE as usize)) {
        let number = numbers.next(Dedup::is_duplicate(dedup, page, 0.0));
        payload::fill(seed, number, compressible, content);
    }
}
