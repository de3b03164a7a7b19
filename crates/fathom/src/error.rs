//! What can go wrong that the user can do something about, and the exit code each of it has.
//!
//! Every message names the target or the option, says what is wrong with the value it got, and
//! what to do. What only we can fix is an assertion: `main` turns it into [`exit::INTERNAL`].

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use fathom_engine::RunError;

/// The exit codes, all in one place. `--help` shows [`exit::HELP`].
pub mod exit {
    /// Measured; the numbers are sound or suspect.
    pub const MEASURED: u8 = 0;
    /// A mistake in fathom itself.
    pub const INTERNAL: u8 = 1;
    /// An option makes no sense, or does not fit its target; nothing was touched.
    pub const USAGE: u8 = 2;
    /// The target or the machine does not allow it; what was measured before that is kept.
    pub const REFUSED: u8 = 3;
    /// Measured, but at least one trial is void.
    pub const VOID: u8 = 4;
    /// A result could not be written or read.
    pub const OUTPUT: u8 = 5;
    /// Ended by a signal: this plus the signal's number, as shells have it.
    pub const SIGNAL: u8 = 128;

    /// The same for people.
    pub const HELP: &str = "\
Exit codes:
  0  measured: sound, or suspect with the doubts printed
  1  a mistake in fathom itself
  2  an option makes no sense, or does not fit its target; nothing was touched
  3  the target or the machine does not allow it; what was measured before, if anything, is kept
  4  measured, but void: the numbers are not what was asked for
  5  a result could not be written or read
  130, 143  ended by Ctrl-C or SIGTERM; what was measured until then is kept";
}

/// What the user can fix.
#[derive(Debug)]
pub enum Error {
    /// An option has a value that cannot be, or contradicts another one.
    Option {
        /// The option as it is typed, with its value if it has one.
        option: String,
        /// What is wrong with it.
        problem: String,
        /// What to do.
        remedy: String,
    },
    /// A target cannot be used.
    Target {
        /// As the user named it.
        target: String,
        /// What is wrong with it.
        problem: String,
        /// What to do.
        remedy: String,
    },
    /// A workload file cannot be followed; shown with the place in it.
    Workload(String),
    /// What was typed cannot be a target, and the engine says all of that itself.
    Mistyped(String),
    /// The engine refused a target, and says all of that itself.
    Refused(String),
    /// The machine cannot run the load.
    Run(RunError),
    /// A result could not be written.
    Write {
        /// Where.
        path: PathBuf,
        /// Why.
        cause: io::Error,
        /// What to do.
        remedy: String,
    },
    /// A result could not be read.
    Read {
        /// Where.
        path: PathBuf,
        /// Why, and what to do.
        problem: String,
    },
    /// A signal ended it.
    Interrupted {
        /// The signal's number.
        signal: i32,
        /// What that means for what was to be made.
        meaning: String,
    },
}

impl Error {
    /// An option that cannot be as it is.
    pub fn option(
        option: impl Into<String>,
        problem: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self::Option { option: option.into(), problem: problem.into(), remedy: remedy.into() }
    }

    /// A target that cannot be used.
    pub fn target(
        target: impl Into<String>,
        problem: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self::Target { target: target.into(), problem: problem.into(), remedy: remedy.into() }
    }

    /// A result that could not be written.
    pub fn write(path: &Path, cause: io::Error, remedy: impl Into<String>) -> Self {
        Self::Write { path: path.to_owned(), cause, remedy: remedy.into() }
    }

    /// A signal that came before anything was measured.
    pub fn nothing_measured(signal: i32) -> Self {
        Self::Interrupted { signal, meaning: "nothing was measured".to_owned() }
    }

    /// The code that the process ends with.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Option { .. } | Self::Mistyped(_) | Self::Workload(_) => exit::USAGE,
            Self::Target { .. } | Self::Refused(_) | Self::Run(_) => exit::REFUSED,
            Self::Write { .. } | Self::Read { .. } => exit::OUTPUT,
            Self::Interrupted { signal, .. } => exit::SIGNAL + *signal as u8,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Option { option, problem, remedy } => write!(f, "{option}: {problem}: {remedy}"),
            Self::Target { target, problem, remedy } => write!(f, "{target}: {problem}: {remedy}"),
            Self::Mistyped(text) | Self::Refused(text) | Self::Workload(text) => f.write_str(text),
            Self::Run(RunError::Backend { backend, cause }) => write!(
                f,
                "--backend {}: it could not be set up ({}): try another one with \
                 --backend auto, aio or sync, or a smaller --queue-depth",
                backend.name(),
                plain(cause)
            ),
            Self::Run(RunError::Thread(cause)) => write!(
                f,
                "a worker thread could not be started ({}): use fewer --workers, or raise the \
                 limit of processes (ulimit -u)",
                plain(cause)
            ),
            Self::Run(RunError::Realtime(cause)) => {
                write!(f, "--realtime: {}; or drop it", plain(cause))
            }
            Self::Run(RunError::Cpu { cpu, cause }) => write!(
                f,
                "--cpus {cpu}: a worker cannot run there ({}): name CPUs of this machine that the \
                 process may use (taskset -p $$)",
                plain(cause)
            ),
            Self::Run(RunError::IoPriority { priority, cause }) => {
                write!(f, "--io-priority {priority}: {}; or drop it", plain(cause))
            }
            Self::Run(RunError::LargePages(cause)) => {
                write!(f, "--large-pages: {}", plain(cause))
            }
            Self::Run(RunError::Payload { path, cause }) => write!(
                f,
                "--payload: {path} cannot be read ({}): name a file with content that you may read",
                plain(cause)
            ),
            Self::Run(hangs @ RunError::Hangs(_)) => write!(f, "{hangs}"),
            Self::Write { path, cause, remedy } => {
                write!(f, "{}: cannot be written ({}): {remedy}", path.display(), plain(cause))
            }
            Self::Read { path, problem } => write!(f, "{}: {problem}", path.display()),
            Self::Interrupted { signal, meaning } => write!(
                f,
                "interrupted by {}: {meaning}",
                match *signal {
                    2 => "Ctrl-C",
                    15 => "SIGTERM",
                    _ => "a signal",
                }
            ),
        }
    }
}

impl std::error::Error for Error {}

/// An error of the system without Rust's "(os error 28)".
pub fn plain(cause: &io::Error) -> String {
    if cause.kind() == io::ErrorKind::AlreadyExists {
        return "it exists already".to_owned();
    }
    let text = cause.to_string();
    match text.find(" (os error") {
        Some(end) => text[..end].to_owned(),
        None => text,
    }
}
