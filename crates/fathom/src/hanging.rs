//! Calls that hang in the kernel: the process does not wait for them forever, and reports what it
//! leaves behind.
//!
//! The command runs on a separate thread. The main thread makes no call that may hang: the kernel
//! delivers signals to it, which it would otherwise leave with a thread that never takes them, and
//! the main thread ends the process when a call takes too long before there is anything to keep.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
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
/// The slowest disk, in bytes per second.
const SLOWEST: u64 = 1_000_000;

/// The time limit of a call that moves this many bytes to a disk. The disk may have to write other data
/// first.
fn patience_with(bytes: u64) -> Duration {
    PATIENCE_OF_RESULTS + Duration::from_secs(bytes / SLOWEST)
}

/// The thread of the command.
static COMMAND: OnceLock<ThreadId> = OnceLock::new();
/// The call of that thread to the kernel.
static ASKED: Mutex<Option<Unanswered>> = Mutex::new(None);

/// A call to the kernel that has not returned.
struct Unanswered {
    path: PathBuf,
    role: Role,
    /// The time limit.
    patience: Duration,
    /// The part of the time limit that is left.
    left: Duration,
}

impl Unanswered {
    fn new(path: &Path, role: Role, patience: Duration) -> Self {
        // The first check may follow at once.
        Self { path: path.to_owned(), role, patience, left: patience + LOOK_EVERY }
    }

    /// The error for a call that does not return.
    fn error(&self) -> Error {
        let problem = format!("the kernel did not answer for {} s", self.patience.as_secs());
        let remedy = "look at its log (dmesg) for a device or a server that hangs";
        match self.role {
            Role::Target => Error::target(self.path.display().to_string(), problem, remedy),
            Role::Input => Error::file(&self.path, problem, remedy),
            Role::Output => Error::write(&self.path, io::Error::other(problem), remedy),
        }
    }

    /// Takes the time that has passed from what is left, and returns whether nothing is left.
    fn is_late(&mut self, passed: Duration) -> bool {
        self.left = self.left.saturating_sub(passed);
        self.left.is_zero()
    }
}

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
    let mut looked = Instant::now();
    loop {
        match comes.recv_timeout(LOOK_EVERY) {
            Ok(code) => return Ok(code),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => match thread.join() {
                Err(panic) => std::panic::resume_unwind(panic),
                Ok(()) => unreachable!("it sends before it ends"),
            },
        }
        // More time passes only while this process is stopped, as by Ctrl-Z. That time does not count.
        let passed = looked.elapsed().min(LOOK_EVERY * 2);
        looked = Instant::now();
        let late = asked().take_if(|asked| asked.is_late(passed));
        if let Some(error) = late.map(|asked| asked.error()) {
            signals::tell(format!("error: {error}"));
            signals::end_with(i32::from(error.exit_code()));
        }
    }
}

fn asked() -> MutexGuard<'static, Option<Unanswered>> {
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
    asking(Unanswered::new(path, role, PATIENCE), call)
}

/// The same for a long call that writes to a target. Each call of [`goes_on`] renews the time limit.
pub fn writing<T>(path: &Path, call: impl FnOnce() -> T) -> T {
    asking(Unanswered::new(path, Role::Target, patience_with(0)), call)
}

/// Renews the time limit of the current call, whose next step moves this many bytes.
pub fn goes_on(bytes: u64) {
    if is_command()
        && let Some(asked) = &mut *asked()
    {
        asked.patience = patience_with(bytes);
        asked.left = asked.patience;
    }
}

fn asking<T>(ask: Unanswered, call: impl FnOnce() -> T) -> T {
    if !is_command() {
        return call();
    }
    let before = asked().replace(ask);
    let answer = call();
    // A call within another has a new time limit.
    *asked() = before.map(|asked| Unanswered { left: asked.patience, ..asked });
    answer
}

fn is_command() -> bool {
    COMMAND.get() == Some(&thread::current().id())
}

/// The remedy if no thread can be started.
pub const MORE_THREADS: &str = "raise ulimit -u, or pids.max of the control group";

/// Threads of the process that did not come back.
static LEFT: AtomicUsize = AtomicUsize::new(0);

/// Threads that hang in a call to a result file.
static LEFT_BY_RESULTS: AtomicUsize = AtomicUsize::new(0);

/// How many targets the calls to the kernel have come through.
static COME_THROUGH: AtomicUsize = AtomicUsize::new(0);

/// Says that a call of [`waited_for`] has come through one of its targets: each of them has the whole
/// patience. On a busy machine thousands of files take longer than that together, and none of them hangs.
pub fn come_through() {
    COME_THROUGH.fetch_add(1, Ordering::Relaxed);
}

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
    let mut begun = Instant::now();
    let mut come_through = COME_THROUGH.load(Ordering::Relaxed);
    loop {
        match comes.recv_timeout(NAP) {
            Ok(answer) => return Ok(answer),
            Err(RecvTimeoutError::Disconnected) => match thread.join() {
                Err(panic) => std::panic::resume_unwind(panic),
                Ok(()) => unreachable!("it sends before it ends"),
            },
            Err(RecvTimeoutError::Timeout) => {}
        }
        let now = COME_THROUGH.load(Ordering::Relaxed);
        if now != come_through {
            (come_through, begun) = (now, Instant::now());
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
            Err(Error::target(target, problem, MORE_THREADS))
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
    let (mut late, mut usual) = (is_late(PATIENCE_OF_RESULTS), is_too_long());
    kept(ask, move |since| if keeps { late(since) } else { usual(since) })
}

/// Flushes a file to which this many bytes were written. All of them may still be in memory.
///
/// # Errors
///
/// As [`answered`].
pub fn on_the_disk(
    bytes: u64,
    ask: impl FnOnce() -> io::Result<()> + Send + 'static,
) -> io::Result<()> {
    kept(ask, is_late(patience_with(bytes)))
}

/// Whether a call has taken too long, if there is something to keep.
fn is_late(patience: Duration) -> impl FnMut(Duration) -> bool {
    let mut hurried = None;
    move |since| {
        let hurried = lasts(&mut hurried, signals::hurries()).unwrap_or_default();
        patience <= since || PATIENCE_WHEN_HURRIED <= hurried
    }
}

fn kept<T: Send + 'static>(
    ask: impl FnOnce() -> io::Result<T> + Send + 'static,
    is_over: impl FnMut(Duration) -> bool,
) -> io::Result<T> {
    match elsewhere("fathom-keeps", ask, is_over) {
        Ok(answer) => answer,
        Err(NoAnswer::NoThread(cause)) => {
            Err(io::Error::other(format!("no thread could be started: {}", plain(&cause))))
        }
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
    fn a_call_that_goes_on_is_late_only_after_its_patience() {
        let mut asked = Unanswered::new(Path::new("t"), Role::Target, Duration::from_secs(3));
        let late = [0; 5].map(|_| asked.is_late(LOOK_EVERY));
        assert_eq!(late, [false, false, false, true, true]);
        assert!(asked.error().to_string().contains("did not answer for 3 s"));
        assert_eq!(patience_with(0), PATIENCE_OF_RESULTS);
        assert_eq!(patience_with(90_000_000), PATIENCE_OF_RESULTS + Duration::from_secs(90));
    }

    #[test]
    fn each_target_that_a_call_comes_through_has_the_whole_patience() {
        let longest = std::sync::Arc::new(Mutex::new(Duration::ZERO));
        let seen = std::sync::Arc::clone(&longest);
        let many = || {
            for _ in 0..10 {
                thread::sleep(NAP * 2);
                come_through();
            }
        };
        let begun = Instant::now();
        let is_over = move |since: Duration| {
            let mut longest = seen.lock().unwrap();
            *longest = since.max(*longest);
            false
        };
        assert!(elsewhere("many", many, is_over).is_ok());
        assert!(*longest.lock().unwrap() < begun.elapsed() - NAP * 2, "{longest:?}");
    }

    #[test]
    fn what_comes_back_is_had_and_so_is_its_error() {
        assert_eq!(waited_for("t", "it was opened", || Ok(7)).unwrap(), 7);
        let failed: Result<(), Error> =
            waited_for("t", "it was opened", || Err(Error::target("t", "no", "none")));
        assert!(failed.unwrap_err().to_string().contains("no"));
    }
}
