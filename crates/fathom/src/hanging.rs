//! What hangs in the kernel: nobody waits for it for ever, and the process says what it leaves.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use crate::error::Error;
use crate::{output, signals};

/// How long a target may take to be opened.
const PATIENCE: Duration = Duration::from_secs(30);
/// The same after the user asked to stop.
const PATIENCE_WHEN_STOPPED: Duration = Duration::from_secs(3);
/// How often it is looked whether he did.
const NAP: Duration = Duration::from_millis(50);

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
        Error::Refused(format!("a thread could not be started: {cause}: raise ulimit -u"))
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
            LEFT.fetch_add(1, Ordering::Relaxed);
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
    output::note(&format!(
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
            waited_for("t", "it was opened", || Err(Error::Refused("no".to_owned())));
        assert!(failed.unwrap_err().to_string().contains("no"));
    }
}
