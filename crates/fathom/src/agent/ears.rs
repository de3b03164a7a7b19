//! Hears what the coordinator says, and notices when it says nothing.

use std::io::{BufRead, Read};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, channel, sync_channel};
use std::thread;
use std::time::Duration;

use fathom_core::Span;

use super::message::{AgentAnswer, AgentOrder, read};
use super::voice::say;
use crate::session::unix_ns;
use crate::signals;

/// A message has at most this many bytes: a workload file is the longest part of one.
const LONGEST: u64 = 16 << 20;

/// Messages that may wait while a load runs. If there are more, no more are heard, and the lease ends.
const WAITING: usize = 256;

/// How long an orderly end may take where nobody is left to ask for another one.
const ENDING: Duration = Duration::from_secs(30);

/// Why an agent ends whose coordinator wants no more of it.
pub const STOPPED: &str = "The coordinator said stop.";

/// What an agent hears.
#[derive(Debug, PartialEq)]
pub enum Heard {
    /// A message that needs work.
    Message(Box<AgentOrder>),
    /// A line that is no message, and why.
    Nonsense(String),
    /// No more will come: why.
    Gone(String),
}

/// Listens to stdin on a thread of its own, and gives what was heard in its order. Questions for the
/// time are answered there at once. If nothing is heard for as long as the lease, or stdin ends, or
/// the coordinator says stop, a load that runs is ended as by SIGTERM.
///
/// # Errors
///
/// When there cannot be more threads.
pub fn listen(lease: Span) -> std::io::Result<Receiver<Heard>> {
    let (heard, inbox) = sync_channel(WAITING);
    let (alive, signs) = channel::<()>();
    let watch = heard.clone();
    let spawn = |name: &str, work: Box<dyn FnOnce() + Send>| {
        thread::Builder::new().name(name.to_owned()).spawn(work)
    };
    spawn("lease", Box::new(move || expire(&signs, lease, &watch)))?;
    spawn("ears", Box::new(move || hear(std::io::stdin().lock(), &alive, &heard)))?;
    Ok(inbox)
}

/// Waits until no sign of life comes for as long as the lease.
fn expire(signs: &Receiver<()>, lease: Span, heard: &SyncSender<Heard>) {
    loop {
        match signs.recv_timeout(Duration::from_nanos(lease.0)) {
            Ok(()) => {}
            Err(RecvTimeoutError::Timeout) => {
                let why = format!("The coordinator was silent for {lease}.");
                let _ = heard.try_send(Heard::Gone(why));
                signals::ask_to_end();
                break;
            }
            // The other thread says why.
            Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    // A target may hang, or a coordinator that reads nothing any more keeps a message waiting.
    thread::sleep(ENDING);
    signals::insist_on_end();
}

/// Reads lines until the end.
fn hear(mut from: impl BufRead, alive: &Sender<()>, heard: &SyncSender<Heard>) {
    let why = loop {
        let mut line = Vec::new();
        match from.by_ref().take(LONGEST).read_until(b'\n', &mut line) {
            Ok(0) => break "The coordinator is gone.".to_owned(),
            Ok(_) if line.len() as u64 == LONGEST => break "A message is too long.".to_owned(),
            Ok(_) => {}
            Err(cause) => break format!("The coordinator cannot be heard ({cause})."),
        }
        let _ = alive.send(());
        match read(String::from_utf8_lossy(&line).trim()) {
            Ok(AgentOrder::Renew {}) => {}
            Ok(AgentOrder::Clock { id }) => say(&AgentAnswer::Clock { id, unix_ns: unix_ns() }),
            Ok(AgentOrder::Stop {}) => break STOPPED.to_owned(),
            Ok(message) => drop(heard.send(Heard::Message(Box::new(message)))),
            Err(why) => drop(heard.send(Heard::Nonsense(why))),
        }
    };
    let _ = heard.try_send(Heard::Gone(why));
    signals::ask_to_end();
}
