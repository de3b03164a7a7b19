//! The results of a worker when it is done.

use fathom_core::measure::{Errors, Ledger, Waits};
use fathom_core::{Instant, Span};

use super::buckets::Buckets;
use crate::host::ThreadTime;

/// The results of a worker besides its tallies.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) ledger: Ledger,
    pub(crate) errors: Errors,
    /// The CPU time of its thread in the window.
    pub(crate) cpu: Option<ThreadTime>,
    pub(crate) gave_up: bool,
    /// The actual end of the window.
    pub(crate) ended: Instant,
    /// How it waited, if time is real.
    pub(crate) waits: Option<Waits>,
    /// How far an open loop was behind at the end.
    pub(crate) lag: Option<Span>,
    /// The I/Os of each bucket, if they were counted.
    pub(crate) buckets: Option<Buckets>,
    /// Whether some of its I/Os never came back, so that the kernel may still have them.
    pub(crate) leaves_ios: bool,
}
