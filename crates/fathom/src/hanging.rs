//! What hangs in the kernel: nobody waits for it for ever, and the process says what it leaves.
//!
//! The command runs on a thread of its own. The main thread makes no call that may hang: the kernel
//! hands signals to it, where it would leave them with a thread that never comes back to take them, and
//! it ends the process when a call takes too long before there is anything to keep.

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
    let (done, comes) = sync_channel(1);
    let work = move || {
        // Nobody takes it who has stopped to wait.
        let _ = done.try_send(act());
    };
    let builder = thread::Builder::new().name("fathom-opens".to_owned());
    let thread = builder.spawn(work).map_err(|cause| {
        let problem = format!("a thread could not be started ({})", plain(&cause));
        Error::target(target, problem, "raise ulimit -u")
    })?;
    let (begun, mut stopped) = (Instant::now(), None);
    loop {
        match comes.recv_timeout(NAP) {
            Ok(result) => return result,
            Err(RecvTimeoutError::Disconnected) => match thread.join() {
                Err(panic) => std::panic::resume_unwind(panic),
                Ok(()) => unreachable!("it sends before it ends"),
            },
            Err(RecvTimeoutError::Timeout) => {}
        }
        if signals::came().is_some() {
            stopped.get_or_insert(Instant::now());
        }
        let is_over = stopped.is_some_and(|at| PATIENCE_WHEN_STOPPED <= at.elapsed());
        if is_over || PATIENCE <= begun.elapsed() || signals::hurries() {
            leave();
            return Err(Error::target(
                target,
                format!(
                    "the kernel did not answer for {} s while {doing}",
                    begun.elapsed().as_secs()
                ),
                "look at the kernel's log (dmesg) for a device that hangs",
            ));
        }
    }
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
    let threads = threads();
    if !is_any() {
        return;
    }
    let what = match threads {
        0 => "I/Os did not come back".to_owned(),
        1 => "1 thread hangs in a call to the target".to_owned(),
        n => format!("{n} threads hang in calls to the target"),
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
