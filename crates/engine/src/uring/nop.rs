//! A ring whose I/Os do nothing: the same entries as for reads and writes, but with an opcode that
//! the kernel completes at once. Only the cost of fathom and the ring remains, so this gives the
//! ceiling of a worker. It never touches a device.

use std::io;

use fathom_core::measure::{Direction, Waits};
use fathom_core::spec::BackendKind;
use fathom_core::{Bytes, Instant, Span};
use io_uring::opcode::Nop;
use rustix::fs::MemfdFlags;
use rustix::io::Errno;

use super::Uring;
use crate::backend::{Backend, Completion, Io, RealBackend, Shape};
use crate::open_target::OpenTarget;
use crate::pacer::Pace;

/// The kernel completes the entry with its length as the result (IORING_NOP_INJECT_RESULT). From
/// Linux 6.10 on; an older one ignores the flags, and completes it with 0.
const INJECT_RESULT: u32 = 1;

/// How long the kernel may take for an empty operation when the ring is opened.
const PATIENCE: Span = Span::from_secs(10);

/// io_uring with empty operations.
pub struct NopRing {
    ring: Uring,
    /// Bytes that every I/O claims to have moved.
    length: i32,
    /// Whether the kernel itself returns this number.
    injects: bool,
}

impl RealBackend for NopRing {
    const KIND: BackendKind = BackendKind::Uring;

    /// `targets` are only numbers here, but there must be as many as the I/Os will name.
    fn open(targets: &[OpenTarget], shape: &Shape) -> io::Result<Self> {
        Self::open_with(INJECT_RESULT, targets, shape)
    }

    fn write_buffer(&mut self, slot: u32) -> &mut [u8] {
        self.ring.write_buffer(slot)
    }

    fn read_buffer(&mut self, slot: u32) -> &mut [u8] {
        self.ring.read_buffer(slot)
    }

    fn pace(&mut self, pace: Pace) {
        self.ring.pace(pace);
    }

    fn waits(&self) -> Waits {
        self.ring.waits()
    }
}

impl NopRing {
    /// Tests leave the flag out, as if the kernel did not know it.
    fn open_with(flags: u32, targets: &[OpenTarget], shape: &Shape) -> io::Result<Self> {
        let mut ring = Uring::open(targets, shape)?;
        do_nothing(&mut ring, flags);
        let mut nop = Self { ring, length: shape.block_size as i32, injects: true };
        match nop.once()? {
            result if result == nop.length => {}
            0 => nop.injects = false,
            result => return Err(refused(result)),
        }
        Ok(nop)
    }

    /// The kernel's answer to one empty operation.
    fn once(&mut self) -> io::Result<i32> {
        let (direction, length) = (Direction::Read, self.length as u32);
        let mut completions = Vec::with_capacity(1);
        self.ring.push(Io { slot: 0, target: 0, direction, offset: 0, length });
        let deadline = self.ring.now() + PATIENCE;
        while self.ring.now() < deadline {
            self.ring.wait_and_reap(deadline, &mut completions);
            if let Some(completion) = completions.first() {
                return Ok(completion.result);
            }
        }
        Err(io::ErrorKind::TimedOut.into())
    }
}

impl Backend for NopRing {
    const PREPARES_EARLY: Span = Uring::PREPARES_EARLY;

    #[inline]
    fn now(&mut self) -> Instant {
        self.ring.now()
    }

    #[inline]
    fn refresh(&mut self, slot: u32, length: u32) {
        self.ring.refresh(slot, length);
    }

    #[inline]
    fn push(&mut self, io: Io) {
        self.ring.push(io);
    }

    #[inline]
    fn push_all(&mut self, ios: impl Iterator<Item = Io>) {
        self.ring.push_all(ios);
    }

    #[inline]
    fn wait(&mut self, deadline: Instant) {
        self.ring.wait(deadline);
    }

    #[inline]
    fn reap(&mut self, mut take: impl FnMut(Completion)) {
        // The replacement for 0. One loop for both cases, because the compiler does not inline
        // `take` into two loops, and a call for each I/O would be a tenth of the engine's cost.
        let nothing = if self.injects { 0 } else { self.length };
        self.ring.reap(|completion| {
            let result = if completion.result == 0 { nothing } else { completion.result };
            take(Completion { result, ..completion });
        });
    }
}

/// A target for rings with empty operations: an I/O has to name one, and a ring to register it.
pub(crate) fn no_target(size: Bytes) -> io::Result<OpenTarget> {
    let file: std::fs::File =
        rustix::fs::memfd_create("fathom-nothing", MemfdFlags::CLOEXEC)?.into();
    Ok(OpenTarget {
        name: "nothing".to_owned(),
        file: file.into(),
        size,
        alignment: Bytes(1),
        passthrough: None,
    })
}

/// Turns every entry that the ring will send into an empty operation. The rest of it is filled in
/// for each I/O as for reads and writes, and the kernel ignores it.
fn do_nothing(ring: &mut Uring, flags: u32) {
    for prepared in ring.slots.iter_mut().flat_map(|slot| &mut slot.prepared) {
        prepared.opcode.code = Nop::CODE;
        prepared.length.rw_flags = flags;
    }
}

fn refused(result: i32) -> io::Error {
    match result {
        errno if errno < 0 => Errno::from_raw_os_error(-errno).into(),
        moved => io::Error::other(format!("nothing at all moved {moved} bytes")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::uring::tests::here;

    #[test]
    fn nothing_moves_a_whole_block_with_and_without_the_kernels_word_for_it() {
        if !here() {
            return;
        }
        let nothing = no_target(Bytes(1 << 20)).unwrap();
        let shape = Shape { slots: 4, block_size: 512, ..Shape::USUAL };
        for flags in [INJECT_RESULT, 0] {
            let mut ring =
                NopRing::open_with(flags, std::slice::from_ref(&nothing), &shape).unwrap();
            // An older kernel accepts the flag and ignores it.
            assert!(!ring.injects || flags != 0);
            let mut completions = Vec::with_capacity(4);
            for direction in Direction::BOTH {
                for slot in 0..4 {
                    let offset = u64::from(slot) * 512;
                    ring.push(Io { slot, target: 0, direction, offset, length: 512 });
                }
                completions.clear();
                let hang = ring.now() + PATIENCE;
                while completions.len() < 4 {
                    assert!(ring.now() < hang);
                    ring.wait_and_reap(hang, &mut completions);
                }
                assert!(completions.iter().all(|c| c.result == 512), "{completions:?}");
            }
        }
    }
}
