//! Calls that hang in the kernel: the process does not wait for them forever, and reports what it
//! leaves behind.
//!
//! The command runs on a separate thread. The main thread makes no call that may hang: the kernel
//! delivers signals to it, which it would otherwise leave with a thread that never takes them, and
//! the main thread ends the process when a call takes too long before there is anything to keep.

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
/// The time between two checks for such a request.
const NAP: Duration = Duration::from_millis(50);

/// The stack of the command: as large as that of a main thread usually is, with any `ulimit -s`.
const STACK: usize = 8 << 20;
/// The time between two checks of the main thread for a call that takes too long.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// The thread of the command.
static COMMAND: OnceLock<ThreadId> = OnceLock::new();
/// The call of that thread to the kernel, and its start.
static ASKED: Mutex<Option<(Error, Instant)>> = Mutex::new(None);

/// Runs a command on a separate thread, and ends the process if a call of [`patiently`] takes too
/// long.
///
/// # Errors
///
/// When no thread is available.
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

/// The role of a name in a call to the kernel.
#[derive(Clone, Copy, Debug)]
pub enum Role {
    /// A target, or the place of one.
    Target,
    /// A file that is read: a result, a workload, the source of a payload.
    Input,
    /// A file that is written: a result, a report.
    Output,
}

/// Makes a short call about a path before there is anything to keep. If the kernel does not answer,
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
    // A call within another has a new time limit.
    *asked() = before.map(|(error, _)| (error, Instant::now()));
    answer
}

/// Threads of the process that did not come back.
static LEFT: AtomicUsize = AtomicUsize::new(0);

/// Threads that hang in a call to a result file.
static LEFT_BY_RESULTS: AtomicUsize = AtomicUsize::new(0);

/// Why there is no answer.
enum NoAnswer {
    NoThread(io::Error),
    /// None came for this long.
    Hangs(Duration),
}

/// Runs something on a separate thread, and abandons it once `is_over` says for the time since its
/// start that it hangs.
fn elsewhere<T: Send + 'static>(
    name: &str,
    act: impl FnOnce() -> T + Send + 'static,
    mut is_over: impl FnMut(Duration) -> bool,
) -> Result<T, NoAnswer> {
    let (done, comes) = sync_channel(1);
    let work = move || {
        // There is no receiver if the wait has ended.
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

/// Since when a condition holds that is checked again and again.
fn lasts(since: &mut Option<Instant>, is: bool) -> Option<Duration> {
    if is {
        since.get_or_insert(Instant::now());
    }
    since.map(|since| since.elapsed())
}

/// Whether a call that may hang has taken too long, before there is anything to keep.
fn is_too_long() -> impl FnMut(Duration) -> bool {
    let mut stopped = None;
    move |since| {
        let stopped = lasts(&mut stopped, signals::came().is_some());
        PATIENCE <= since
            || signals::hurries()
            || PATIENCE_WHEN_STOPPED <= stopped.unwrap_or_default()
    }
}

/// Runs something that may hang on a separate thread, so that the caller does not hang.
///
/// # Errors
///
/// Its own error, or that it hangs.
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

/// Closes open targets. Closing a device may write the content of the page cache, and takes time.
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

/// How long a result file may take for a line: flushing it may require writing everything else that
/// is on its way to the same disk.
const PATIENCE_OF_RESULTS: Duration = Duration::from_secs(60);
/// The same after the user asked to stop at once.
const PATIENCE_WHEN_HURRIED: Duration = Duration::from_secs(1);

/// Makes a call to a result file on a separate thread. While there is nothing to keep, the wait is
/// the usual one; later it lasts until the user does not want to wait any longer, or for a minute.
///
/// # Errors
///
/// Its own error, or that it hangs: [`is_hang`] tells which.
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

/// A call that did not come back for this long.
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

/// Whether a call to a target hangs.
pub fn is_any() -> bool {
    threads() > 0 || fathom_engine::leaves_ios()
}

/// Ends the process if a call of it hangs: resources that cannot be released are left to the
/// kernel. Returns if none does.
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
