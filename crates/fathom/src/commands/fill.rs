//! Writing unique data: the scratch file of `quick` and the file of `prepare`.

use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use fathom_core::{Bytes, Span};
use fathom_engine::prefill::{self, PrefillError};

use crate::error::{Error, plain};
use crate::hanging;
use crate::live::Live;
use crate::scratch::{REGION_START, Scratch};
use crate::signals;

/// The time over which the speed is averaged.
const SPEED_PERIOD: Span = Span::from_secs(1);

/// When to stop before everything is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// Never.
    None,
    /// After this time, if at least this much is written.
    Time {
        /// The time limit.
        most: Span,
        /// The amount that has to be written in any case.
        least: Bytes,
    },
}

impl Limit {
    fn reached(self, elapsed: Span, written: Bytes) -> bool {
        match self {
            Self::None => false,
            Self::Time { most, least } => elapsed >= most && written >= least,
        }
    }

    /// The time until it is done, at this speed in bytes per second.
    fn left(self, elapsed: Span, remaining: Bytes, speed: f64) -> Option<Span> {
        let by_size = (speed > 0.0).then(|| Span((remaining.0 as f64 / speed * 1e9) as u64));
        match self {
            Self::None => by_size,
            Self::Time { most, .. } => Some(by_size.unwrap_or(most).min(most - elapsed)),
        }
    }
}

/// Writes a range of a file, and returns how much of it. If the target hangs, the process ends.
///
/// # Errors
///
/// When the disk is full or fails, or a signal came.
pub fn range(
    (path, file): (&Path, &File),
    (from, to): (Bytes, Bytes),
    options: prefill::Prefilling,
    limit: Limit,
    live: &mut Live,
) -> Result<Bytes, Error> {
    let began = Instant::now();
    let stop = AtomicBool::new(false);
    let size = Bytes(to.0.saturating_sub(from.0));
    let at_once = options.block.0.saturating_mul(u64::from(options.writers));
    let mut speed = Speed::default();
    let mut heard = None;
    let mut progress = |written: Bytes| {
        let elapsed = Span(began.elapsed().as_nanos() as u64);
        if limit.reached(elapsed, written) || signals::came().is_some() {
            stop.store(true, Ordering::Relaxed);
        }
        let flushes = written == size || stop.load(Ordering::Relaxed);
        if heard.replace((written, flushes)) != Some((written, flushes)) {
            hanging::goes_on(if flushes { written.0 } else { at_once });
        }
        let now = speed.at(elapsed, written);
        let remaining = Bytes(size.0.saturating_sub(written.0));
        live.written(written, size, now, limit.left(elapsed, remaining, now));
    };
    let fill = || prefill::prefill(file, from, to, options, &stop, &mut progress);
    let outcome = hanging::writing(path, fill);
    if let Some(signal) = signals::came() {
        return Err(Error::nothing_measured(signal));
    }
    let prefilled = outcome.map_err(|error| not_written(path, &error))?;
    let seconds = began.elapsed().as_secs_f64().max(0.001);
    let rate = crate::live::bandwidth(prefilled.written.0 as f64 / seconds);
    live.done(&format!("{} in {seconds:.1} s, {rate}", prefilled.written));
    Ok(prefilled.written)
}

/// Writes the measured part of a scratch file, and returns its length: whole MiB.
///
/// # Errors
///
/// As [`range`].
pub fn scratch(
    scratch: &Scratch,
    size: Bytes,
    limit: Limit,
    seed: u64,
    live: &mut Live,
) -> Result<Bytes, Error> {
    let options = prefill::Prefilling {
        writers: 4,
        block: Bytes(Bytes::MIB),
        seed,
        compressible: 0.0,
        dedup: 0.0,
    };
    let bounds = (REGION_START, Bytes(REGION_START.0 + size.0));
    let written = range((scratch.path(), scratch.file()), bounds, options, limit, live)?;
    scratch.cut(written).map_err(|cause| failed(scratch.path(), &cause))?;
    Ok(written)
}

/// The speed over the last second or so.
#[derive(Debug, Default)]
struct Speed {
    since: Span,
    written: Bytes,
    last: f64,
}

impl Speed {
    fn at(&mut self, now: Span, written: Bytes) -> f64 {
        let time = now - self.since;
        let rate = (written.0 - self.written.0) as f64 / time.as_secs_f64().max(0.001);
        if time >= SPEED_PERIOD || self.last == 0.0 {
            *self = Self { since: now, written, last: rate };
        }
        self.last
    }
}

fn not_written(path: &Path, error: &PrefillError) -> Error {
    if !error.is_full() {
        return failed(path, &error.cause);
    }
    Error::target(
        path.display().to_string(),
        format!("the disk is full: no room left after {}", error.written),
        "free some space, or choose a smaller --size",
    )
}

/// The meaning of a failure to write.
pub fn failed(path: &Path, cause: &io::Error) -> Error {
    let (problem, remedy) = match cause.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            ("the disk is full".to_owned(), "free some space, or choose a smaller --size")
        }
        io::ErrorKind::FileTooLarge => (
            "its file system cannot hold a file of this size".to_owned(),
            "choose a smaller --size, or another file system",
        ),
        // A thread for a writer could not be started: a write to such a file never returns this.
        io::ErrorKind::WouldBlock => {
            (format!("no thread could be started ({})", plain(cause)), hanging::MORE_THREADS)
        }
        _ => (
            format!("writing it failed ({})", plain(cause)),
            "look at the kernel's messages (dmesg) for the device's errors",
        ),
    };
    Error::target(path.display().to_string(), problem, remedy)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slow_disk_ends_after_its_time_and_its_least() {
        let limit = Limit::Time { most: Span::from_secs(15), least: Bytes(64) };
        assert!(!limit.reached(Span::from_secs(14), Bytes(1000)));
        assert!(!limit.reached(Span::from_secs(20), Bytes(63)));
        assert!(limit.reached(Span::from_secs(15), Bytes(64)));
        assert!(!Limit::None.reached(Span::from_secs(1000), Bytes(1000)));
    }

    #[test]
    fn the_time_left_is_the_shorter_of_size_and_limit() {
        let limit = Limit::Time { most: Span::from_secs(15), least: Bytes(64) };
        let left = |speed| limit.left(Span::from_secs(5), Bytes(1000), speed);
        assert_eq!(left(1000.0), Some(Span::from_secs(1)));
        assert_eq!(left(1.0), Some(Span::from_secs(10)));
        assert_eq!(Limit::None.left(Span(0), Bytes(1000), 0.0), None);
    }

    #[test]
    fn the_speed_is_that_of_the_last_second() {
        let mut speed = Speed::default();
        assert_eq!(speed.at(Span::from_secs(1), Bytes(100)), 100.0);
        assert_eq!(speed.at(Span::from_ms(1500), Bytes(1000)), 100.0);
        assert_eq!(speed.at(Span::from_secs(2), Bytes(400)), 300.0);
    }
}
