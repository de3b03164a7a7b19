//! Commands that the user wants to have run before trials, through a shell of this machine: what
//! makes the sides of a comparison differ, if fathom itself does not set it.

use std::io::{self, PipeReader, Read};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use fathom_core::experiment::Planned;
use fathom_core::experiment::ab::SIDE;
use fathom_core::{printable, typed_word};
use rustix::process::{Pid, Signal, kill_process};

use crate::error::{Error, plain};
use crate::signals;

/// How soon the end of a command, or a signal, is seen.
const NAP: Duration = Duration::from_millis(20);
/// How long a command may go on after a signal.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long the rest of its output may take. What it has left in the background keeps the pipe open.
const REST: Duration = Duration::from_secs(1);
/// The most bytes of a line that are shown.
const SHOWN: usize = 200;

/// The commands before trials, each with the label of its side. Often empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BeforeTrials(Vec<(String, String)>);

impl BeforeTrials {
    /// Commands, each with the label of its side.
    pub fn new<'a>(commands: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let owned = |(side, command): (&str, &str)| (side.to_owned(), command.to_owned());
        Self(commands.into_iter().map(owned).collect())
    }

    /// The command before a trial, if there is one.
    pub fn of(&self, planned: &Planned) -> Option<(&str, &str)> {
        let side = planned.place.coordinates.iter().find(|one| one.axis == SIDE)?;
        let own = self.0.iter().find(|(label, _)| *label == side.label)?;
        Some((&own.0, &own.1))
    }

    /// As options of `fathom ab` and `fathom resume`, each with a space before it.
    pub fn in_words(&self) -> String {
        let word = |(side, command): &(String, String)| {
            format!(" {} {}", option(side), typed_word(command))
        };
        self.0.iter().map(word).collect()
    }
}

/// The option with the command of a side.
fn option(side: &str) -> String {
    format!("--before-{}", side.to_ascii_lowercase())
}

/// Runs the command of a side to its end. What it says is kept off the screen.
///
/// # Errors
///
/// When it cannot be started or fails, or the user stopped it.
pub fn run(side: &str, command: &str) -> Result<(), Error> {
    let about = format!("{} {}", option(side), typed_word(command));
    let refuse = |problem: String| {
        let remedy = "make it succeed when `sh -c` runs it here, and begin again";
        Err(Error::target(about.clone(), problem, remedy))
    };
    let (mut child, last_line) = match start(command) {
        Ok(started) => started,
        Err(cause) => return refuse(format!("it cannot be started ({})", plain(&cause))),
    };
    let status = match wait(&mut child) {
        Ok(status) => status,
        Err(cause) => return refuse(format!("its end cannot be seen ({})", plain(&cause))),
    };
    if let Some(signal) = signals::came() {
        return Err(Error::nothing_measured(signal));
    }
    if status.success() {
        return Ok(());
    }
    let said = match last_line.recv_timeout(REST).unwrap_or_default() {
        line if line.is_empty() => "it said nothing".to_owned(),
        line => format!("its last line was: {line}"),
    };
    let ended = match (status.code(), status.signal()) {
        (Some(code), _) => format!("it ended with exit status {code}"),
        (None, Some(signal)) => format!("signal {signal} ended it"),
        (None, None) => "it failed".to_owned(),
    };
    refuse(format!("{ended}, and {said}"))
}

/// Starts a command; its last line comes when its output ends.
fn start(command: &str) -> io::Result<(Child, Receiver<String>)> {
    let (output, input) = io::pipe()?;
    let child = Command::new("sh")
        .args(["-c", command])
        .stdin(Stdio::null())
        .stdout(input.try_clone()?)
        .stderr(input)
        .spawn()?;
    let (tell, told) = channel();
    let read = move || {
        // Nobody waits for it if the command succeeded.
        let _ = tell.send(last_line(output));
    };
    thread::Builder::new().name("before".to_owned()).spawn(read)?;
    Ok((child, told))
}

/// The last line that is not empty, as a message can show it. However much it is, only this is kept.
fn last_line(mut output: PipeReader) -> String {
    let (mut last, mut line) = (Vec::new(), Vec::new());
    let mut buffer = [0; 4096];
    while let Ok(length @ 1..) = output.read(&mut buffer) {
        for &byte in &buffer[..length] {
            match byte {
                b'\n' if line.iter().all(u8::is_ascii_whitespace) => line.clear(),
                b'\n' => last = std::mem::take(&mut line),
                _ if line.len() < SHOWN => line.push(byte),
                _ => {}
            }
        }
    }
    let is_empty = line.iter().all(u8::is_ascii_whitespace);
    let text = String::from_utf8_lossy(if is_empty { &last } else { &line }).into_owned();
    printable(text.trim()).into_owned()
}

/// Waits for its end. It hears Ctrl-C itself; any other signal to this process ends it, too.
fn wait(child: &mut Child) -> io::Result<ExitStatus> {
    let mut asked: Option<Instant> = None;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        match (signals::came(), asked) {
            (Some(_), None) => {
                asked = Some(Instant::now());
                if let Ok(pid) = i32::try_from(child.id())
                    && let Some(pid) = Pid::from_raw(pid)
                {
                    // It may have ended meanwhile.
                    let _ = kill_process(pid, Signal::TERM);
                }
            }
            (Some(_), Some(since)) if PATIENCE < since.elapsed() || signals::hurries() => {
                child.kill()?;
            }
            _ => {}
        }
        thread::sleep(NAP);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_is_told_with_the_command_its_status_and_its_last_line() {
        assert!(run("A", "echo all is well; echo >&2 indeed").is_ok());
        let told = |command| run("A", command).unwrap_err().to_string();
        assert_eq!(
            told("echo one; echo two >&2; echo; exit 3"),
            "--before-a 'echo one; echo two >&2; echo; exit 3': it ended with exit status 3, and \
             its last line was: two: make it succeed when `sh -c` runs it here, and begin again"
        );
        assert!(told("exit 1").contains("exit status 1, and it said nothing:"));
        assert!(told("kill -9 $$").contains("signal 9 ended it, and it said nothing:"));
        // What it leaves behind does not keep anybody waiting.
        assert!(told("sleep 60 & exit 4").contains("exit status 4"));
        let long = told("printf 'x%.0s' $(seq 1000); printf '\\033[2J'; exit 5");
        assert!(long.contains(&"x".repeat(SHOWN)) && !long.contains(&"x".repeat(SHOWN + 1)));
    }
}
