//! The connection to the router.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use super::lines::{FromHost, LineForHost, ROUTER_PROTOCOL, RouterHello, RouterLine, of_agent};
use super::pulse::Pulse;
use crate::agent::message::{AgentAnswer, AgentOrder};
use crate::error::{Error, plain};
use crate::session::unix_ns;

/// Between two questions for the time of a host: a few of them fit into a lease.
const PERIOD: Duration = Duration::from_secs(1);

/// A router that takes no line for this long is taken for dead.
const PATIENCE: Duration = Duration::from_secs(30);

/// A line has at most this many bytes: a trial of a day with many workers has tens of megabytes.
const LONGEST: u64 = 1 << 30;

/// The router, and signs of life of all hosts.
pub struct Router {
    to: Arc<Mutex<UnixStream>>,
    from: Receiver<(usize, FromHost)>,
    names: Arc<[String]>,
    pulses: Arc<Mutex<Vec<Pulse>>>,
    /// Ends the questions once it is gone.
    _asks: Sender<()>,
}

/// The hosts behind a router, by name and by place.
pub struct RouterHosts {
    /// In the router's order.
    pub names: Vec<String>,
    places: HashMap<String, usize>,
}

impl RouterHosts {
    /// Reads the first line of a router.
    ///
    /// # Errors
    ///
    /// When it is none, or of another version, or does not name hosts, each once.
    pub fn read(line: &str) -> Result<Self, Error> {
        let hello: RouterHello = serde_json::from_str(line)
            .map_err(|cause| broken(format!("the router's first line is none ({cause})")))?;
        if hello.router != ROUTER_PROTOCOL {
            let problem = format!(
                "the router has version {}, and this fathom speaks {ROUTER_PROTOCOL}",
                hello.router
            );
            return Err(broken(problem));
        }
        let names = hello.hosts;
        let places: HashMap<String, usize> = names.iter().cloned().zip(0..).collect();
        match places.is_empty() || places.len() < names.len() {
            true => Err(broken("the router names no host, or one of them twice")),
            false => Ok(Self { names, places }),
        }
    }

    /// What a later line says, and of which host; nothing if it says nothing. None if it is no line of a
    /// router.
    pub fn understand(&self, text: &str) -> Option<Option<(usize, FromHost)>> {
        let spoilt = |cause: serde_json::Error| {
            FromHost::Gone(format!("its agent said something that is no message ({cause})"))
        };
        let of = |name: &str, what: FromHost| Some((*self.places.get(name)?, what));
        if let Some((name, said)) = RouterLine::of_agent(text) {
            return Some(of(name, of_agent(said).unwrap_or_else(spoilt)));
        }
        match serde_json::from_str::<RouterLine<'_>>(text) {
            Ok(RouterLine { host, line: Some(said), .. }) => {
                Some(of(&host, of_agent(said.get()).unwrap_or_else(spoilt)))
            }
            Ok(RouterLine { host, gone: Some(why), .. }) => Some(of(&host, FromHost::Gone(why))),
            Ok(_) => Some(None),
            // Its agent has spoilt the line; the others go on.
            Err(cause) => of(named(text)?, spoilt(cause)).map(Some),
        }
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn broken(problem: impl Into<String>) -> Error {
    Error::target("--hosts", problem, "start it with fathom-hosts, which is such a router")
}

impl Router {
    /// Connects to the router behind a socket, and hears which hosts there are.
    ///
    /// # Errors
    ///
    /// When there is none, or it speaks another version.
    pub fn connect(socket: &Path) -> Result<Self, Error> {
        let failed = |cause: std::io::Error| {
            let problem = format!("no router answers at {} ({})", socket.display(), plain(&cause));
            broken(problem)
        };
        let to = UnixStream::connect(socket).map_err(failed)?;
        let from = to.try_clone().map_err(failed)?;
        from.set_read_timeout(Some(PATIENCE)).map_err(failed)?;
        to.set_write_timeout(Some(PATIENCE)).map_err(failed)?;
        let mut from = BufReader::new(from);
        let mut line = String::new();
        from.by_ref().take(LONGEST).read_line(&mut line).map_err(failed)?;
        let hosts = RouterHosts::read(&line)?;
        from.get_ref().set_read_timeout(None).map_err(failed)?;
        let names: Arc<[String]> = hosts.names.clone().into();
        let to = Arc::new(Mutex::new(to));
        let pulses = Arc::new(Mutex::new(names.iter().map(|_| Pulse::new()).collect::<Vec<_>>()));
        let (heard, inbox) = channel();
        let (asks, ended) = channel();
        let spawn = |name: &str, work: Box<dyn FnOnce() + Send>| {
            thread::Builder::new().name(name.to_owned()).spawn(work).map_err(failed)
        };
        let signs = Arc::clone(&pulses);
        spawn("router", Box::new(move || hear(from, &hosts, &signs, &heard)))?;
        let (own, all, signs) = (Arc::clone(&to), Arc::clone(&names), Arc::clone(&pulses));
        spawn("pulse", Box::new(move || ask(&own, &all, &signs, &ended)))?;
        Ok(Self { to, from: inbox, names, pulses, _asks: asks })
    }

    /// The names of the hosts.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Says something to a host's agent. If the router is gone, [`Self::hear`] tells it.
    pub fn say(&self, host: usize, order: &AgentOrder) {
        say(&self.to, &self.names[host], order);
    }

    /// What came next of any host; none if nothing comes for this long.
    ///
    /// # Errors
    ///
    /// When the router is gone.
    pub fn hear(&self, patience: Duration) -> Result<Option<(usize, FromHost)>, Error> {
        match self.from.recv_timeout(patience) {
            Ok(heard) => Ok(Some(heard)),
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => Err(broken("the router is gone")),
        }
    }

    /// Asks a host for its time, besides the questions of each second.
    pub fn ask(&self, host: usize) {
        ask_one(&self.to, &self.names, &self.pulses, host);
    }

    /// The signs of life of a host.
    pub fn pulse<T>(&self, host: usize, look: impl FnOnce(&Pulse) -> T) -> T {
        look(&locked(&self.pulses)[host])
    }
}

fn say(to: &Mutex<UnixStream>, host: &str, order: &AgentOrder) {
    let mut line =
        serde_json::to_string(&LineForHost { host, line: order }).expect("a message is plain data");
    line.push('\n');
    let mut to = locked(to);
    if to.write_all(line.as_bytes()).is_err() {
        // The other end hears of it, and the thread that listens to it.
        let _ = to.shutdown(std::net::Shutdown::Both);
    }
}

/// The lock is not held while the question is written: what waits to be read may have to be read first.
fn ask_one(to: &Mutex<UnixStream>, names: &[String], pulses: &Mutex<Vec<Pulse>>, host: usize) {
    let asked = unix_ns();
    locked(pulses)[host].asks(asked, asked);
    say(to, &names[host], &AgentOrder::Clock { id: asked });
}

/// Asks all hosts for their time, each second, until the router is let go.
fn ask(to: &Mutex<UnixStream>, names: &[String], pulses: &Mutex<Vec<Pulse>>, ended: &Receiver<()>) {
    while let Err(RecvTimeoutError::Timeout) = ended.recv_timeout(PERIOD) {
        (0..names.len()).for_each(|host| ask_one(to, names, pulses, host));
    }
}

/// The host of a line that cannot be read as a whole.
fn named(line: &str) -> Option<&str> {
    Some(line.strip_prefix(r#"{"host":""#)?.split_once('"')?.0)
}

/// Reads the router's lines until its end.
fn hear(
    mut from: BufReader<UnixStream>,
    hosts: &RouterHosts,
    pulses: &Mutex<Vec<Pulse>>,
    heard: &Sender<(usize, FromHost)>,
) {
    let mut bytes = Vec::new();
    loop {
        bytes.clear();
        match from.by_ref().take(LONGEST).read_until(b'\n', &mut bytes) {
            Ok(read) if 0 < read && bytes.last() == Some(&b'\n') => {}
            _ => return,
        }
        let answered = unix_ns();
        let text = String::from_utf8_lossy(&bytes);
        let Some(said) = hosts.understand(&text) else { return };
        let Some((host, what)) = said else { continue };
        let mut pulses = locked(pulses);
        pulses[host].hears();
        if let FromHost::Said(said) = &what
            && let AgentAnswer::Clock { id, unix_ns } = **said
        {
            pulses[host].answers(id, unix_ns, answered);
            continue;
        }
        drop(pulses);
        if heard.send((host, what)).is_err() {
            return;
        }
    }
}
