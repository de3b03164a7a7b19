//! Ctrl-C and its relatives. The first one asks for an orderly end: what was measured is kept. The
//! second one, or one that comes while there is nothing to keep, ends the process at once, after
//! the scratch file is removed.

use std::fs::{File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::{Arc, Mutex};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::iterator::Signals;

use crate::error::exit;

/// Set by the first signal; the engine looks at it.
static STOP: AtomicBool = AtomicBool::new(false);
/// The signal that set it, or 0.
static RECEIVED: AtomicI32 = AtomicI32::new(0);
/// Whether there is something to keep, so that the first signal is not the end.
static ORDERLY: AtomicBool = AtomicBool::new(false);
/// Files that must not outlive us.
static DOOMED: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// Starts to listen, on a thread of its own.
///
/// # Errors
///
/// When the handlers or the thread cannot be set up.
pub fn listen() -> io::Result<()> {
    // A limit of file sizes (ulimit -f) is then an error of the write, like a full disk.
    signal_hook::flag::register(SIGXFSZ, Arc::new(AtomicBool::new(false)))?;
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP])?;
    std::thread::Builder::new().name("signals".to_owned()).spawn(move || {
        for signal in signals.forever() {
            received(signal);
        }
    })?;
    Ok(())
}

fn received(signal: i32) {
    let first = !STOP.swap(true, Ordering::SeqCst);
    if first {
        RECEIVED.store(signal, Ordering::SeqCst);
        if ORDERLY.load(Ordering::SeqCst) {
            crate::output::note_text("\nstopping; once more to stop at once");
            return;
        }
    }
    remove_doomed();
    std::process::exit(i32::from(exit::SIGNAL) + signal);
}

/// From here on the first signal asks for an orderly end.
pub fn be_orderly() {
    ORDERLY.store(true, Ordering::SeqCst);
}

/// What the engine looks at.
pub fn stop() -> &'static AtomicBool {
    &STOP
}

/// The signal that came, if one did.
pub fn came() -> Option<i32> {
    match RECEIVED.load(Ordering::SeqCst) {
        0 => None,
        signal => Some(signal),
    }
}

fn doomed() -> std::sync::MutexGuard<'static, Vec<PathBuf>> {
    // A panic while it was held leaves a list of paths, which is as good as any.
    DOOMED.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Creates a file that is removed when a signal or a panic ends the process. What was there before
/// is somebody else's: it is neither opened nor, whatever comes, removed.
///
/// A signal that comes while the file is created waits until it is on the list.
///
/// # Errors
///
/// When it exists or cannot be created.
pub fn create_doomed(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    let mut doomed = doomed();
    let file = options.create_new(true).open(path)?;
    doomed.push(path.to_owned());
    Ok(file)
}

/// Removes a doomed file now.
pub fn remove(path: &Path) {
    let mut doomed = doomed();
    if doomed.iter().any(|other| other == path) {
        // Somebody may have removed it already, which is as well.
        let _ = std::fs::remove_file(path);
        doomed.retain(|other| other != path);
    }
}

/// This file stays, or is gone already.
pub fn spare(path: &Path) {
    doomed().retain(|other| other != path);
}

/// Removes every doomed file.
pub fn remove_doomed() {
    for path in doomed().drain(..) {
        // Somebody may have removed it already; and there is nobody left to tell.
        let _ = std::fs::remove_file(path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_we_created_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let (ours, theirs) = (folder.path().join("ours"), folder.path().join("theirs"));
        std::fs::write(&theirs, "the only copy").unwrap();
        let error = create_doomed(&theirs, OpenOptions::new().write(true)).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
        remove(&theirs);
        create_doomed(&ours, OpenOptions::new().write(true)).unwrap();
        remove(&ours);
        assert!(!ours.exists());
        assert_eq!(std::fs::read_to_string(&theirs).unwrap(), "the only copy");
    }
}
