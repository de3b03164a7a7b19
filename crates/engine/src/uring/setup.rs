//! Makes a ring with the best setup of this kernel, and finds out whether it works at all.

use std::fmt;
use std::io;
use std::thread;
use std::time::Duration;

use fathom_core::spec::{RingMode, SubmissionThread};
use io_uring::{IoUring, Probe, opcode};
use rustix::io::Errno;

use super::entries::{Entries, Files, KernelRing};

/// The kernel destroys a closed ring some time later, and until then its memory counts against the
/// limit. So a ring that finds too little memory tries again this often,
const PATIENCE: u32 = 25;
/// after such a pause: a second together, where freeing takes some tens of milliseconds.
const PAUSE: Duration = Duration::from_millis(40);

/// A submission thread that finds no entries for this long goes to sleep, and has to be woken.
/// Longer than the pauses of any load for which such a thread makes sense.
const THREAD_IDLE_MS: u32 = 1000;

/// How a ring was set up. The order is the order in which they are tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Setup {
    /// One thread submits, completions are handled when it asks for them, and the submission queue
    /// has no indirection. Linux 6.6.
    DeferredDirect,
    /// One thread submits and completions are handled when it asks for them. Linux 6.1.
    Deferred,
    /// Completions are handled when the thread enters the kernel anyway. Linux 5.19.
    Cooperative,
    /// Completions interrupt the thread.
    Plain,
}

impl Setup {
    /// Every setup, the best first.
    pub const ALL: [Self; 4] =
        [Self::DeferredDirect, Self::Deferred, Self::Cooperative, Self::Plain];

    /// Makes a ring with exactly this setup.
    pub(super) fn build<E: Entries>(
        self,
        entries: u32,
        mode: RingMode,
    ) -> io::Result<KernelRing<E>> {
        let mut builder = IoUring::<E::Submission, E::Completion>::builder();
        if mode.polled {
            builder.setup_iopoll();
        }
        if let Some(SubmissionThread { cpu }) = mode.submission_thread {
            builder.setup_sqpoll(THREAD_IDLE_MS);
            cpu.map(|cpu| builder.setup_sqpoll_cpu(cpu));
        }
        if self < Self::Plain {
            // With the flag in memory a spinning thread sees that there is work without entering
            // the kernel to ask. With "submit all", one I/O that the kernel refuses does not hold
            // back those behind it.
            builder.setup_coop_taskrun().setup_taskrun_flag().setup_submit_all();
        }
        if self < Self::Cooperative {
            builder.setup_single_issuer().setup_defer_taskrun();
        }
        if self == Self::DeferredDirect {
            builder.setup_no_sqarray();
        }
        builder.build(entries)
    }
}

impl fmt::Display for Setup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::DeferredDirect => "single issuer, deferred task work, no index array",
            Self::Deferred => "single issuer, deferred task work",
            Self::Cooperative => "cooperative task work",
            Self::Plain => "plain ring",
        })
    }
}

/// Makes a ring with the best setup that this kernel accepts, from `first` on.
pub(super) fn build_best<E: Entries>(
    first: Setup,
    entries: u32,
    mode: RingMode,
) -> io::Result<(KernelRing<E>, Setup)> {
    // If another thread submits, these flags do not apply: the kernel refuses both together.
    let first = match mode.submission_thread {
        Some(_) => Setup::Plain,
        None => first,
    };
    let mut patience = PATIENCE;
    let mut refusal = io::Error::from(Errno::INVAL);
    for setup in Setup::ALL.into_iter().filter(|setup| *setup >= first) {
        loop {
            let error = match setup.build::<E>(entries, mode) {
                Ok(ring) => return Ok((ring, setup)),
                Err(error) => error,
            };
            match error.raw_os_error().map(Errno::from_raw_os_error) {
                // This kernel does not know one of the flags.
                Some(Errno::INVAL) => {
                    refusal = error;
                    break;
                }
                Some(Errno::NOMEM) if patience > 0 => {
                    patience -= 1;
                    thread::sleep(PAUSE);
                }
                _ => return Err(error),
            }
        }
    }
    Err(refusal)
}

/// Finds out whether io_uring works here, by using a small ring once: a sandbox may allow creating
/// a ring and forbid using it.
pub(crate) fn probe() -> io::Result<Setup> {
    let (mut ring, setup) = build_best::<Files>(Setup::DeferredDirect, 4, RingMode::USUAL)?;
    let mut known = Probe::new();
    let too_old = || {
        io::Error::new(io::ErrorKind::Unsupported, "this kernel's io_uring is older than Linux 5.6")
    };
    ring.submitter().register_probe(&mut known).map_err(|error| {
        match error.raw_os_error() == Some(Errno::INVAL.raw_os_error()) {
            true => too_old(),
            false => error,
        }
    })?;
    if !known.is_supported(opcode::Read::CODE) || !known.is_supported(opcode::Write::CODE) {
        return Err(too_old());
    }
    let nothing = opcode::Nop::new().build();
    // SAFETY: an entry that does nothing has no buffer.
    let pushed = unsafe { ring.submission().push(&nothing) };
    assert!(pushed.is_ok());
    loop {
        match ring.submit_and_wait(1) {
            Ok(_) => break,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    let completed = ring.completion().next().map(|completion| completion.result());
    match completed {
        Some(0) => Ok(setup),
        Some(errno) => Err(io::Error::from_raw_os_error(-errno)),
        None => Err(io::Error::other("a ring that was told to do nothing never did it")),
    }
}
