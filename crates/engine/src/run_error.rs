//! Why a point cannot be run at all, as far as it is not the target's fault.

use std::fmt;
use std::io;

use fathom_core::Span;
use fathom_core::spec::{BackendKind, IoPriority};

/// Why a point could not be run at all.
#[derive(Debug)]
pub enum RunError {
    /// A backend could not be set up.
    Backend {
        /// Which.
        backend: BackendKind,
        /// Why.
        cause: io::Error,
    },
    /// A thread could not be started.
    Thread(io::Error),
    /// A backend was not set up for so long that nobody waits any more.
    Hangs(Span),
    /// A worker did not get real-time priority.
    Realtime(io::Error),
    /// A worker may not run where it should.
    Cpu {
        /// The CPU's number.
        cpu: u32,
        /// Why.
        cause: io::Error,
    },
    /// A worker's I/Os did not get their priority.
    IoPriority {
        /// Which.
        priority: IoPriority,
        /// Why.
        cause: io::Error,
    },
    /// There are too few large pages for a worker's buffers.
    LargePages(io::Error),
    /// What a stream is to write could not be had.
    Payload {
        /// Where it is.
        path: String,
        /// Why.
        cause: io::Error,
    },
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Backend { backend, cause } => {
                write!(f, "the {} backend could not be set up: {cause}", backend.name())
            }
            Self::Thread(cause) => write!(f, "a worker thread could not be started: {cause}"),
            Self::Hangs(waited) => write!(
                f,
                "the targets did not answer for {waited} while the workers were set up: look at the \
                 kernel's log (dmesg) for a device that hangs"
            ),
            Self::Realtime(cause) => write!(f, "real-time priority cannot be had: {cause}"),
            Self::Cpu { cpu, cause } => write!(
                f,
                "a worker cannot run on CPU {cpu}: {cause}; choose a CPU of this machine that the \
                 process may run on (taskset -p $$)"
            ),
            Self::IoPriority { priority, cause } => {
                write!(f, "the I/O priority {priority} cannot be had: {cause}")
            }
            Self::LargePages(cause) => write!(f, "large pages cannot be had: {cause}"),
            Self::Payload { path, cause } => {
                write!(f, "what is to be written cannot be read from {path}: {cause}")
            }
        }
    }
}

impl std::error::Error for RunError {}
