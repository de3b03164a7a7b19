//! Ctrl-C and its relatives. The first one asks for an orderly end: the measurements are kept. The
//! second one asks for that at once, without waiting for any I/O. If the process has not ended soon
//! after, or a third one comes, or one comes while there is nothing to keep, the process ends
//! immediately, after the scratch file is removed.

use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::ops::Deref;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel, sync_channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::iterator::Signals;

use crate::error::exit;

/// Set by the first signal; the engine checks it.
static STOP: AtomicBool = AtomicBool::new(false);
/// The signal that set it, or 0.
static RECEIVED: AtomicI32 = AtomicI32::new(0);
/// Set by the second one.
static HURRIES: AtomicBool = AtomicBool::new(false);
/// Whether there is something to keep, so that the first signal is not the end.
static ORDERLY: AtomicBool = AtomicBool::new(false);
/// How long the process may take to end after the second one: until then the thread that measures
/// writes its results.
const LATE: Duration = Duration::from_millis(4500);
/// How long it may take to remove files that must not outlive the process.
const REMOVING: Duration = Duration::from_secs(2);
/// How long the reader of the last message may take.
const TELLING: Duration = Duration::from_millis(500);
/// Files that must not outlive the process, each held open: no other file can have its inode's
/// number as long.
static DOOMED: Mutex<Vec<(PathBuf, File)>> = Mutex::new(Vec::new());

/// Starts to listen, on a thread of its own.
///
/// # Errors
///
/// When the handlers or the thread cannot be set up.
pub fn listen() -> io::Result<()> {
    // A limit of file sizes (ulimit -f) is then an error of the write, like a full disk.
    signal_hook::flag::register(SIGXFSZ, Arc::new(AtomicBool::new(false)))?;
    // A signal that was ignored when the process started stays ignored: for `nohup`, and for
    // background jobs of shells.
    let ignored = ignored();
    let heard = [SIGINT, SIGTERM, SIGHUP].into_iter().filter(|it| ignored >> (it - 1) & 1 == 0);
    let mut signals = Signals::new(heard)?;
    std::thread::Builder::new().name("signals".to_owned()).spawn(move || {
        for signal in signals.forever() {
            received(signal);
        }
    })?;
    Ok(())
}

/// The signals that this process ignores, a bit for each; none if they are unknown.
fn ignored() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}

fn received(signal: i32) {
    let first = !STOP.swap(true, Ordering::SeqCst);
    if first {
        RECEIVED.store(signal, Ordering::SeqCst);
        if ORDERLY.load(Ordering::SeqCst) {
            tell("\nstopping; once more to stop at once".to_owned());
            return;
        }
    }
    let second = ORDERLY.load(Ordering::SeqCst) && !HURRIES.swap(true, Ordering::SeqCst);
    if second {
        let late = move || {
            std::thread::sleep(LATE);
            tell(format!(
                "something hangs in the kernel: process {} ends as soon as that lets go of it",
                std::process::id()
            ));
            end(signal);
        };
        // Without a thread it ends now.
        if std::thread::Builder::new().name("late".to_owned()).spawn(late).is_ok() {
            return;
        }
    }
    end(signal);
}

/// Asks for an orderly end, as SIGTERM does.
pub fn ask_to_end() {
    if !STOP.swap(true, Ordering::SeqCst) {
        RECEIVED.store(SIGTERM, Ordering::SeqCst);
    }
}

/// Asks for an end at once, as a second SIGTERM does.
pub fn insist_on_end() {
    ask_to_end();
    received(SIGTERM);
}

/// Prints on stderr, as far as it accepts output: a stopped terminal, or a pipe that is not read,
/// must not keep anybody from ending the process.
pub fn tell(text: String) {
    within(TELLING, "tells", move || crate::output::note_text(&text));
}

/// Removes files that must not outlive the process, as far as that does not hang, and ends the
/// process.
fn end(signal: i32) {
    end_with(i32::from(exit::SIGNAL) + signal);
}

/// The same with another code.
pub fn end_with(code: i32) {
    // Without a thread it is removed by the next run.
    within(REMOVING, "removes", || remove_each(REMOVING));
    signal_hook::low_level::exit(code);
}

/// Runs something on a separate thread, and waits for it no longer than this. Returns whether it
/// hangs.
fn within(limit: Duration, name: &str, act: impl FnOnce() + Send + 'static) -> bool {
    let (done, waits) = sync_channel(1);
    let work = move || {
        act();
        let _ = done.try_send(());
    };
    let begun = std::thread::Builder::new().name(name.to_owned()).spawn(work).is_ok();
    begun && waits.recv_timeout(limit) == Err(RecvTimeoutError::Timeout)
}

/// Threads that hang while they close or remove files.
static LEFT: AtomicUsize = AtomicUsize::new(0);

/// The number of them.
pub fn left() -> usize {
    LEFT.load(Ordering::Relaxed)
}

/// Closes files, or objects with open files. The server of a file may never answer, and then the
/// wait ends.
pub fn close<T: Send + 'static>(files: T) {
    close_after(move || drop(files));
}

/// Closed in this way once it is dropped.
#[derive(Debug)]
pub struct Closing<T: Send + 'static>(Option<T>);

impl<T: Send> From<T> for Closing<T> {
    fn from(file: T) -> Self {
        Self(Some(file))
    }
}

impl<T: Send> Deref for Closing<T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.0.as_ref().expect("it is there until it is dropped")
    }
}

impl<T: Send> Drop for Closing<T> {
    fn drop(&mut self) {
        close(self.0.take());
    }
}

fn close_after(act: impl FnOnce() + Send + 'static) {
    if within(REMOVING, "closes", act) {
        LEFT.fetch_add(1, Ordering::Relaxed);
    }
}

/// Whether the user does not want to wait any longer.
pub fn hurries() -> bool {
    HURRIES.load(Ordering::SeqCst)
}

/// From here on the first signal asks for an orderly end.
pub fn be_orderly() {
    ORDERLY.store(true, Ordering::SeqCst);
}

/// The flag that the engine checks.
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

fn doomed() -> std::sync::MutexGuard<'static, Vec<(PathBuf, File)>> {
    // A panic with the lock held leaves a list of files, which is still valid.
    DOOMED.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Creates a file that is removed when a signal or a panic ends the process. An existing file
/// belongs to somebody else: it is neither opened nor removed in any case.
///
/// A signal that comes while the file is created waits until it is on the list.
///
/// # Errors
///
/// When it exists or cannot be created.
pub fn create_doomed(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    let mut doomed = doomed();
    let file = options.create_new(true).open(path)?;
    doomed.push((path.to_owned(), file.try_clone()?));
    Ok(file)
}

/// Removes a doomed file now.
pub fn remove(path: &Path) {
    let mut doomed = doomed();
    if let Some(place) = doomed.iter().position(|(other, _)| other == path) {
        let (path, file) = doomed.remove(place);
        let act = move || remove_ours(&path, file);
        drop(doomed);
        close_after(act);
    }
}

/// Removes a file that fathom created, unless it has another name by now, or none: a file that took
/// its name belongs to somebody else.
fn remove_ours(path: &Path, file: File) {
    let there = std::fs::symlink_metadata(path).ok().zip(file.metadata().ok());
    let same =
        |(one, other): &(Metadata, Metadata)| (one.dev(), one.ino()) == (other.dev(), other.ino());
    if there.as_ref().is_some_and(same) {
        // There is no user left to inform.
        let _ = std::fs::remove_file(path);
    }
}

/// This file stays, or is gone already.
pub fn spare(path: &Path) {
    let spared: Vec<_> = doomed().extract_if(.., |(other, _)| other == path).collect();
    if !spared.is_empty() {
        close(spared);
    }
}

/// Removes every doomed file.
pub fn remove_doomed() {
    remove_each(REMOVING);
}

/// Each on a separate thread: one that hangs does not keep any other from being removed.
fn remove_each(limit: Duration) {
    let (done, comes) = channel();
    let list: Vec<_> = doomed().drain(..).collect();
    for (path, file) in list {
        let done = done.clone();
        let act = move || {
            remove_ours(&path, file);
            let _ = done.send(());
        };
        // Without a thread it is removed by the next run.
        let _ = std::thread::Builder::new().name("removes".to_owned()).spawn(act);
    }
    drop(done);
    let begun = Instant::now();
    // Until the last of them has ended.
    while comes.recv_timeout(limit.saturating_sub(begun.elapsed())).is_ok() {}
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
        create_doomed(&ours, OpenOptions::new().write(true)).unwrap();
        std::fs::remove_file(&ours).unwrap();
        std::fs::write(&ours, "what took its name").unwrap();
        remove(&ours);
        assert_eq!(std::fs::read_to_string(&ours).unwrap(), "what took its name");
    }
}
