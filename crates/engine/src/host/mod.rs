//! Facts about the host and the targets, gathered into the plain data of `fathom_core::facts`.

use std::io;
use std::path::Path;

use fathom_core::facts::{Counters, Host, Target};

/// What is known about this machine.
pub fn host() -> Host {
    Host::default()
}

/// What a target is, down its device stack. Opens nothing for writing.
///
/// # Errors
///
/// When the path cannot be looked at.
pub fn target(_name: &Path) -> io::Result<Target> {
    Err(io::ErrorKind::Unsupported.into())
}

/// The host's counters now; `targets` says which devices are wanted.
pub fn counters(_targets: &[Target]) -> Counters {
    Counters::default()
}
