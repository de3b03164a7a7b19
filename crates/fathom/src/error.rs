//! Errors that the user can do something about, and the exit code of each.
//!
//! Every message names the target or the option, the problem with its value, and the remedy. An
//! error that only we can fix is an assertion: `main` turns it into [`exit::INTERNAL`].

use std::fmt;
use std::io;
use std::path::Path;

use fathom_core::{Refusal, RefusalKind};
use fathom_engine::RunError;
pub use fathom_engine::plain;
use fathom_engine::target::TargetError;

/// The exit codes, all in one place. `--help` shows [`exit::HELP`].
pub mod exit {
    /// Measured; the numbers are sound or suspect.
    pub const MEASURED: u8 = 0;
    /// A mistake in fathom itself.
    pub const INTERNAL: u8 = 1;
    /// An option is invalid, or does not fit its target; nothing was touched.
    pub const USAGE: u8 = 2;
    /// The target or the machine does not allow it; earlier measurements are kept.
    pub const REFUSED: u8 = 3;
    /// Measured, but at least one trial is void.
    pub const VOID: u8 = 4;
    /// A result could not be written or read.
    pub const OUTPUT: u8 = 5;
    /// Measured, but a condition of `--fail-if` holds, or a promise was not kept.
    pub const FAILED: u8 = 6;
    /// Compared or watched, and no condition of `--fail-if` is shown to hold, but one is undecided.
    pub const UNDECIDED: u8 = 7;
    /// Compared, and something is not comparable.
    pub const NOT_COMPARABLE: u8 = 8;
    /// Ended by a signal: this plus the signal's number, as in shells.
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
  6  measured, and a condition of --fail-if holds, or a promise is not kept
  7  compared or watched, and a condition of --fail-if is undecided
  8  compared, and something is not comparable
  130, 143  ended by Ctrl-C or SIGTERM; what was measured until then is kept";
}

/// An error that the user can fix.
#[derive(Debug)]
pub enum Error {
    /// A thing, its problem, and the remedy.
    Refusal(Refusal),
    /// A workload file cannot be used; shown with the place in it.
    Workload(String),
    /// What the user named as failure: each condition of `--fail-if` that holds, as it was typed and
    /// why, and each promise that was not kept.
    Failed(Vec<String>),
    /// Conditions of `--fail-if` that the figures do not decide.
    Undecided(Vec<String>),
    /// Results that cannot be compared, and why.
    NotComparable(String),
    /// A signal ended it.
    Interrupted {
        /// The signal's number.
        signal: i32,
        /// The consequence for the file that was being made.
        meaning: String,
    },
}

impl Error {
    /// An option with a value that cannot be used.
    pub fn option(
        option: impl Into<String>,
        problem: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Refusal::usage(option, problem, remedy).into()
    }

    /// A target that cannot be used.
    pub fn target(
        target: impl Into<String>,
        problem: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Refusal::denied(target, problem, remedy).into()
    }

    /// A file that cannot be read or written.
    pub fn file(path: &Path, problem: impl Into<String>, remedy: impl Into<String>) -> Self {
        Refusal::file(path.display().to_string(), problem, remedy).into()
    }

    /// A file that cannot be written.
    pub fn write(path: &Path, cause: io::Error, remedy: impl Into<String>) -> Self {
        Self::file(path, format!("it cannot be written ({})", plain(&cause)), remedy)
    }

    /// A signal that came before anything was measured.
    pub fn nothing_measured(signal: i32) -> Self {
        Self::Interrupted { signal, meaning: "nothing was measured".to_owned() }
    }

    /// The code that the process ends with.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Workload(_) => exit::USAGE,
            Self::Refusal(refusal) => match refusal.kind {
                RefusalKind::Usage => exit::USAGE,
                RefusalKind::Denied => exit::REFUSED,
                RefusalKind::File => exit::OUTPUT,
            },
            Self::Failed(_) => exit::FAILED,
            Self::Undecided(_) => exit::UNDECIDED,
            Self::NotComparable(_) => exit::NOT_COMPARABLE,
            Self::Interrupted { signal, .. } => exit::SIGNAL + *signal as u8,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refusal(refusal) => refusal.fmt(f),
            Self::Workload(text) | Self::NotComparable(text) => f.write_str(text),
            Self::Failed(all) => f.write_str(&all.join("; ")),
            Self::Undecided(all) => write!(f, "undecided: {}", all.join("; ")),
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

impl From<Refusal> for Error {
    fn from(refusal: Refusal) -> Self {
        Self::Refusal(refusal)
    }
}

impl From<TargetError> for Error {
    fn from(error: TargetError) -> Self {
        error.refusal().into()
    }
}

impl From<RunError> for Error {
    fn from(error: RunError) -> Self {
        error.refusal().into()
    }
}
