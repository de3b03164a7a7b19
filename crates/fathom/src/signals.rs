//! Ctrl-C and its relatives. The first one asks for an orderly end: what was measured is kept. The
//! second one, or one that comes while there is nothing to keep, ends the process at once, after
//! the scratch file is removed.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
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
            crate::output::note("\nstopping; once more to stop at once");
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

/// This file is removed when a signal or a panic ends the process.
pub fn doom(path: &Path) {
    doomed().push(path.to_owned());
}

/// This file stays, or is gone already.
pub fn spare(path: &Path) {
    doomed().retain(|other| other != path);
}

/// Removes every doomed file.
pub fn remove_doomed() {
    for path in doomed().drain(..) {
        // It may never have been created; and there is nobody left to tell.
        let _ = std::fs::remove_file(path);
    }
}
