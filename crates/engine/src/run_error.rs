//! Why a point cannot be run at all, as far as the target is not the cause.

use std::fmt;
use std::io;

use fathom_core::spec::BackendKind;
use fathom_core::{Refusal, Span};

use crate::target_error::plain;

/// Why a point could not be run at all.
#[derive(Debug)]
pub enum RunError {
    /// A backend could not be set up.
    Backend {
        /// The backend.
        backend: BackendKind,
        /// The reason.
        cause: io::Error,
    },
    /// A thread could not be started.
    Thread(io::Error),
    /// A backend was not set up within the time limit.
    Hangs(Span),
    /// A worker may not run on its CPU.
    Cpu {
        /// The CPU's number.
        cpu: u32,
        /// The reason.
        cause: io::Error,
    },
    /// The machine does not provide what an option requests: a priority, large pages.
    Refused(Refusal),
    /// The payload of a stream could not be made.
    Payload {
        /// Its source.
        path: String,
        /// The reason.
        cause: io::Error,
    },
}

impl RunError {
    /// The same for people: about the option that requested it, with the remedy.
    pub fn refusal(&self) -> Refusal {
        match self {
            Self::Backend { backend, cause } => Refusal::denied(
                format!("--backend {}", backend.name()),
                format!("it could not be set up ({})", plain(cause)),
                "try another one with --backend auto, aio or sync, or a smaller --queue-depth",
            ),
            Self::Thread(cause) => Refusal::denied(
                "--workers",
                format!("a worker thread could not be started ({})", plain(cause)),
                "use fewer, or raise the limit of processes (ulimit -u)",
            ),
            Self::Hangs(waited) => Refusal::denied(
                "the targets",
                format!("they did not answer for {waited} while the workers were set up"),
                "look at the kernel's log (dmesg) for a device that hangs",
            ),
            Self::Cpu { cpu, cause } => Refusal::denied(
                format!("--cpus {cpu}"),
                format!("a worker cannot run there ({})", plain(cause)),
                "name CPUs of this machine that the process may use (taskset -p $$)",
            ),
            Self::Refused(refusal) => refusal.clone(),
            Self::Payload { path, cause } => Refusal::denied(
                "--payload",
                format!("{path} cannot be read ({})", plain(cause)),
                "name a file with content that you may read",
            ),
        }
    }
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.refusal().fmt(f)
    }
}

impl std::error::Error for RunError {}
