//! What hangs in the kernel: nobody waits for it for ever, and the process says what it leaves.
//!
//! The command runs on a thread of its own. The main thread makes no call that may hang: the kernel
//! hands signals to it, where it would leave them with a thread that never comes back to take them, and
//! it ends the process when a call takes too long before there is anything to keep.

use std::fmt;
use std::io;
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

use crate::error::{Error, plain};
use crate::signals;

/// How long a target may take to be opened.
const PATIENCE: Duration = Duration::from_secs(30);
/// The same after the user asked to stop.
const PATIENCE_WHEN_STOPPED: Duration = Duration::from_secs(3);
/// How often it is looked whether he did.
const NAP: Duration = Duration::from_millis(50);

/// What the command has for its stack: as much as a main thread usually has, whatever `ulimit -s` says.
const STACK: usize = 8 << 20;
/// How often the main thread looks whether a call takes too long.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// The thread of the command.
static COMMAND: OnceLock<ThreadId> = OnceLock::new();
/// What that thread has asked the kernel, and since when.
static ASKED: Mutex<Option<(Error, Instant)>> = Mutex::new(None);

/// Does a command on a thread of its own, and ends the process where a call of [`patiently`] takes too
/// long.
///
/// # Errors
///
/// When there is no thread to be had.
pub fn supervise(command: impl FnOnce() -> ExitCode + Send + 'static) -> io::Result<ExitCode> {
    let (done, comes) = sync_channel(1);
    let work = move || {
        COMMAND.get_or_init(|| thread::current().id());
        let _ = done.try_send(command());
    };
    let thread = thread::Builder::new().name("command".to_owned()).stack_size(STACK).spawn(work)?;
    loop {
        match comes.recv_timeout(LOOK_EVERY) {
            Ok(code) => return Ok(code),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => match thread.join() {
                Err(panic) => std::panic::resume_unwind(panic),
                Ok(()) => unreachable!("it sends before it ends"),
            },
        }
        let late = asked().take_if(|(_, since)| PATIENCE <= since.elapsed());
        if let Some((error, _)) = late {
            signals::tell(format!("error: {error}"));
            signals::end_with(i32::from(error.exit_code()));
        }
    }
}

fn asked() -> MutexGuard<'static, Option<(Error, Instant)>> {
    ASKED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What a name stands for that a call of the kernel is asked about.
#[derive(Clone, Copy, Debug)]
pub enum Role {
    /// A target, or the place of one.
    Target,
    /// What is read: a result, a workload, what writes are filled from.
    Input,
    /// What is written: a result, a report.
    Output,
}

/// Makes a short call about a path before there is anything to keep. Where the kernel does not answer it,
/// the process ends with an error that names the path.
pub fn patiently<T>(path: &Path, role: Role, call: impl FnOnce() -> T) -> T {
    if COMMAND.get() != Some(&thread::current().id()) {
        return call();
    }
    let problem = format!("the kernel did not answer for {} s", PATIENCE.as_secs());
    let remedy = "look at its log (dmesg) for a device or a server that hangs";
    let error = match role {
        Role::Target => Error::target(path.display().to_string(), problem, remedy),
        Role::Input => Error::file(path, problem, remedy),
        Role::Output => Error::write(path, io::Error::other(problem), remedy),
    };
    let before = asked().replace((error, Instant::now()));
    let answer = call();
    // A call within another begins its patience anew.
    *asked() = before.map(|(error, _)| (error, Instant::now()));
    answer
}

/// Threads of ours that did not come back.
static LEFT: AtomicUsize = AtomicUsize::new(0);

/// Threads that hang in a call to a result file.
static LEFT_BY_RESULTS: AtomicUsize = AtomicUsize::new(0);

/// Why there is no answer.
enum NoAnswer {
    NoThread(io::Error),
    /// None came for so long.
    Hangs(Duration),
}

/// Does something on a thread of its own, and leaves that behind once `is_over` says of the time since
/// that it hangs.
fn elsewhere<T: Send + 'static>(
    name: &str,
    act: impl FnOnce() -> T + Send + 'static,
    mut is_over: impl FnMut(Duration) -> bool,
) -> Result<T, NoAnswer> {
    let (done, comes) = sync_channel(1);
    let work = move || {
        // Nobody takes it who has stopped to wait.
        let _ = done.try_send(act());
    };
    let builder = thread::Builder::new().name(name.to_owned());
    let thread = builder.spawn(work).map_err(NoAnswer::NoThread)?;
    let begun = Instant::now();
    loop {
        match comes.recv_timeout(NAP) {
            Ok(answer) => return Ok(answer),
            Err(RecvTimeoutError::Disconnected) => match thread.join() {
                Err(panic) => std::panic::resume_unwind(panic),
                Ok(()) => unreachable!("it sends before it ends"),
            },
            Err(RecvTimeoutError::Timeout) => {}
        }
        let since = begun.elapsed();
        if is_over(since) {
            return Err(NoAnswer::Hangs(since));
        }
    }
}

/// Since when something is the case that is looked at again and again.
fn lasts(since: &mut Option<Instant>, is: bool) -> Option<Duration> {
    if is {
        since.get_or_insert(Instant::now());
    }
    since.map(|since| since.elapsed())
}

/// Whether something has taken too long that may hang before there is anything to keep.
fn is_too_long() -> impl FnMut(Duration) -> bool {
    let mut stopped = None;
    move |since| {
        let stopped = lasts(&mut stopped, signals::came().is_some());
        PATIENCE <= since
            || signals::hurries()
            || PATIENCE_WHEN_STOPPED <= stopped.unwrap_or_default()
    }
}

/// Does on a thread of its own what may hang, so that whoever asks for it does not.
///
/// # Errors
///
/// Its own, or that it hangs.
pub fn waited_for<T: Send + 'static>(
    target: &str,
    doing: &str,
    act: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    match elsewhere("fathom-opens", act, is_too_long()) {
        Ok(result) => result,
        Err(NoAnswer::NoThread(cause)) => {
            let problem = format!("a thread could not be started ({})", plain(&cause));
            Err(Error::target(target, problem, "raise ulimit -u"))
        }
        Err(NoAnswer::Hangs(since)) => {
            leave();
            Err(Error::target(
                target,
                format!("the kernel did not answer for {} s while {doing}", since.as_secs()),
                "look at the kernel's log (dmesg) for a device that hangs",
            ))
        }
    }
}

/// Lets go of open targets. To close a device may write what is in the page cache, and takes its time.
pub fn let_go<T: Send + 'static>(targets: T, are_files: bool) {
    let mut stopped = None;
    let is_over = move |since| {
        let stopped = lasts(&mut stopped, signals::came().is_some()).unwrap_or_default();
        signals::hurries() || PATIENCE_WHEN_STOPPED <= stopped || are_files && PATIENCE <= since
    };
    // Without a thread they are closed on this one.
    if let Err(NoAnswer::Hangs(_)) = elsewhere("fathom-closes", move || drop(targets), is_over) {
        leave();
    }
}

/// How long a result file may take to take a line: to flush it may be to write all else that is on its
/// way to the same disk.
const PATIENCE_OF_RESULTS: Duration = Duration::from_secs(60);
/// The same after the user asked to stop at once.
const PATIENCE_WHEN_HURRIED: Duration = Duration::from_secs(1);

/// Asks something of a result file on a thread of its own. While there is nothing to keep it is waited
/// for as for anything; later until the user does not want to wait any longer, or for a minute.
///
/// # Errors
///
/// Its own, or that it hangs: [`is_hang`] says so.
pub fn answered<T: Send + 'static>(
    keeps: bool,
    ask: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    let (mut hurried, mut usual) = (None, is_too_long());
    let is_over = move |since| {
        let hurried = lasts(&mut hurried, signals::hurries()).unwrap_or_default();
        let late = PATIENCE_OF_RESULTS <= since || PATIENCE_WHEN_HURRIED <= hurried;
        if keeps { late } else { usual(since) }
    };
    match elsewhere("fathom-keeps", ask, is_over) {
        Ok(answer) => answer,
        Err(NoAnswer::NoThread(cause)) => Err(cause),
        Err(NoAnswer::Hangs(since)) => {
            LEFT_BY_RESULTS.fetch_add(1, Ordering::Relaxed);
            Err(io::Error::other(Hangs(since)))
        }
    }
}

/// A call that did not come back for so long.
#[derive(Debug)]
struct Hangs(Duration);

impl fmt::Display for Hangs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the kernel did not answer for {} s", self.0.as_secs())
    }
}

impl std::error::Error for Hangs {}

/// Whether an error says that a call did not come back.
pub fn is_hang(cause: &io::Error) -> bool {
    cause.get_ref().is_some_and(|inner| inner.is::<Hangs>())
}

/// One more thread hangs in a call to a target.
pub fn leave() {
    LEFT.fetch_add(1, Ordering::Relaxed);
}

/// How many threads hang in calls to a target.
pub fn threads() -> usize {
    fathom_engine::left_behind() + LEFT.load(Ordering::Relaxed)
}

/// Whether something of a target hangs.
pub fn is_any() -> bool {
    threads() > 0 || fathom_engine::leaves_ios()
}

/// Ends the process where something of it hangs: what cannot be taken down is left to the kernel.
/// Comes back where nothing does.
pub fn end_if_any(code: u8) {
    let others = LEFT_BY_RESULTS.load(Ordering::Relaxed) + signals::left();
    let what = match (threads(), others) {
        (0, 0) if !is_any() => return,
        (0, 0) => "I/Os did not come back".to_owned(),
        (1, 0) => "1 thread hangs in a call to the target".to_owned(),
        (n, 0) => format!("{n} threads hang in calls to the target"),
        (0, 1) => "1 thread hangs in a call to a file".to_owned(),
        (n, others) => format!("{} threads hang in calls to files", n + others),
    };
    signals::tell(format!(
        "{what}: everything is written, and process {} ends as soon as the kernel lets go of it",
        std::process::id()
    ));
    signal_hook::low_level::exit(i32::from(code));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_back_is_had_and_so_is_its_error() {
        assert_eq!(waited_for("t", "it was opened", || Ok(7)).unwrap(), 7);
        let failed: Result<(), Error> =
            waited_for("t", "it was opened", || Err(Error::target("t", "no", "none")));
        assert!(failed.unwrap_err().to_string().contains("no"));
    }
}
