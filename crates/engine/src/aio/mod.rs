//! Serves I/Os by Linux native AIO, which works in containers that forbid io_uring.
//!
//! It is asynchronous for direct access only: a buffered I/O is served while it is submitted. Never
//! frees memory that the kernel may still write to, and never waits for a hung device when it is
//! dropped: `Lent` leaks a context with I/Os in flight, and its buffers.

#![expect(unsafe_code, reason = "native AIO has no safe interface, and the kernel moves the data")]

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::ptr;

use fathom_core::measure::{Direction, Waits};
use fathom_core::spec::BackendKind;
use fathom_core::{Instant, Span};
use rustix::io::Errno;

use crate::access::CallFlags;
use crate::backend::{Backend, Completion, Io, RealBackend, Shape, Task};
use crate::buffers::lent::Lent;
use crate::buffers::{self, Buffers};
use crate::clock::{self, Clock};
use crate::open_target::OpenTarget;
use crate::pacer::{self, Pace, Pacer, Wait};

/// The kernel's `IOCB_CMD_PREAD` and `IOCB_CMD_PWRITE`.
const COMMANDS: [u16; 2] = [0, 1];
/// Its `IOCB_CMD_FSYNC` and `IOCB_CMD_FDSYNC`, since Linux 4.18.
const FSYNC: u16 = 2;
const FDSYNC: u16 = 3;

/// The kernel's `struct iocb` on little-endian machines; the two words whose order differs on
/// others are zero here.
#[derive(Clone, Copy, Default)]
#[repr(C)]
struct ControlBlock {
    data: u64,
    key: u32,
    rw_flags: u32,
    command: u16,
    priority: i16,
    descriptor: u32,
    address: u64,
    length: u64,
    offset: i64,
    reserved: u64,
    flags: u32,
    event_descriptor: u32,
}

/// The kernel's `struct io_event`.
#[derive(Clone, Copy, Default)]
#[repr(C)]
struct IoEvent {
    data: u64,
    object: u64,
    result: i64,
    result2: i64,
}

const _: () = assert!(size_of::<ControlBlock>() == 64);
const _: () = assert!(size_of::<IoEvent>() == 32);

/// A context of native AIO. Destroying it waits for the I/Os in flight; if there are any, [`Lent`]
/// keeps it from being dropped.
struct Context(libc::c_ulong);

impl Context {
    fn new(events: u32) -> io::Result<Self> {
        let mut id: libc::c_ulong = 0;
        // SAFETY: the kernel writes one word, which exists.
        let result = unsafe { libc::syscall(libc::SYS_io_setup, events, &raw mut id) };
        match result {
            0 => Ok(Self(id)),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: takes a number only; an unknown one is an error without consequence.
        unsafe { libc::syscall(libc::SYS_io_destroy, self.0) };
    }
}

/// The memory that the kernel uses while I/Os are in flight. It is dropped in this order.
struct AioResources {
    context: Context,
    buffers: Buffers,
    /// Open as long as I/Os refer to them by number.
    files: Vec<File>,
}

/// Native AIO.
pub struct Aio {
    /// Neither destroyed nor freed while I/Os are in flight.
    lent: Lent<AioResources>,
    /// Where each slot's buffers are, by direction.
    addresses: Box<[[u64; 2]]>,
    /// One for each slot. The kernel has copied a block when the submitting call returns.
    blocks: Box<[ControlBlock]>,
    /// The blocks that were pushed and that the kernel has not yet taken, from `first_queued` on.
    queue: Vec<*mut ControlBlock>,
    first_queued: usize,
    /// The kernel puts completions here.
    events: Box<[IoEvent]>,
    /// Completed and not yet handed over.
    completed: Vec<Completion>,
    /// The flags of each read and each write.
    flags: CallFlags,
    /// Which slots are in flight. Asserted, because the kernel owns their buffers.
    busy: Box<[bool]>,
    clock: Clock,
    pacer: Pacer,
}

impl RealBackend for Aio {
    const KIND: BackendKind = BackendKind::Aio;

    fn open(targets: &[OpenTarget], shape: &Shape) -> io::Result<Self> {
        let slots = shape.slots;
        if slots == 0 {
            let message = "native AIO takes a queue depth of at least 1 for each worker";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        }
        let buffers = Buffers::new(shape, buffers::alignment(targets)?)?;
        let files: Vec<File> =
            targets.iter().map(|target| target.file.try_clone()).collect::<io::Result<_>>()?;
        let blocks: Box<[ControlBlock]> = (0..slots)
            .map(|slot| ControlBlock { data: u64::from(slot), ..ControlBlock::default() })
            .collect();
        let context = Context::new(slots).map_err(|error| {
            if error.raw_os_error() != Some(Errno::AGAIN.raw_os_error()) {
                return error;
            }
            let message = format!(
                "the kernel has no room for {slots} more native AIO events: raise \
                 fs.aio-max-nr with sysctl, or lower the queue depth"
            );
            io::Error::new(io::ErrorKind::WouldBlock, message)
        })?;
        clock::request_exact_timers();
        let slots = slots as usize;
        Ok(Self {
            addresses: (0..shape.slots)
                .map(|slot| {
                    Direction::BOTH.map(|direction| buffers.address(direction, slot) as u64)
                })
                .collect(),
            lent: Lent::new(AioResources { context, buffers, files }),
            blocks,
            queue: Vec::with_capacity(slots),
            first_queued: 0,
            events: vec![IoEvent::default(); slots].into(),
            completed: Vec::with_capacity(slots),
            flags: shape.flags,
            busy: vec![false; slots].into(),
            clock: Clock::default(),
            pacer: Pacer::new(Clock::default()),
        })
    }

    fn pace(&mut self, pace: Pace) {
        self.pacer.set(pace);
    }

    fn waits(&self) -> Waits {
        self.pacer.facts()
    }

    fn write_buffer(&mut self, slot: u32) -> &mut [u8] {
        assert!(!self.busy[slot as usize]);
        self.lent.buffers.get(Direction::Write, slot)
    }

    fn read_buffer(&mut self, slot: u32) -> &mut [u8] {
        assert!(!self.busy[slot as usize]);
        self.lent.buffers.get(Direction::Read, slot)
    }
}

impl Aio {
    /// Queues a slot's block.
    #[inline]
    fn queue(&mut self, slot: u32) {
        // Blocks that could not be submitted move to the front before the vector would grow.
        if self.queue.len() == self.queue.capacity() {
            self.queue.drain(..self.first_queued);
            self.first_queued = 0;
        }
        self.queue.push(ptr::from_mut(&mut self.blocks[slot as usize]));
    }

    /// Gives the queued blocks to the kernel. An I/O that it refuses completes with its errno;
    /// blocks for which it has no room stay queued. Returns whether an I/O completed.
    #[inline]
    fn submit(&mut self) -> bool {
        let mut refused = false;
        while self.first_queued < self.queue.len() {
            let waiting = &self.queue[self.first_queued..];
            // SAFETY: every pointer is to a block of this backend, whose buffer is neither freed
            // nor handed out until its slot has completed, and not freed at all if it never does.
            let taken = unsafe {
                libc::syscall(
                    libc::SYS_io_submit,
                    self.lent.context.0,
                    waiting.len() as libc::c_long,
                    waiting.as_ptr(),
                )
            };
            if taken > 0 {
                self.first_queued += taken as usize;
                self.lent.lend(taken as usize);
                continue;
            }
            let error = io::Error::last_os_error();
            let errno = error.raw_os_error().map(Errno::from_raw_os_error);
            if taken == 0 || matches!(errno, Some(Errno::AGAIN | Errno::INTR | Errno::NOMEM)) {
                return refused;
            }
            // The kernel stops at the first I/O that it refuses and reports the error of that one.
            let distance = self.queue[self.first_queued].addr() - self.blocks.as_ptr().addr();
            let slot = (distance / size_of::<ControlBlock>()) as u32;
            self.first_queued += 1;
            assert!(std::mem::take(&mut self.busy[slot as usize]));
            let result = -error.raw_os_error().unwrap_or(libc::EIO);
            self.completed.push(Completion { slot, result, at: self.clock.now() });
            refused = true;
        }
        self.queue.clear();
        self.first_queued = 0;
        refused
    }

    /// Collects the completions, all with one time stamp, after waiting for one at most `span`.
    #[inline]
    fn collect(&mut self, span: Span) -> Collected {
        let mut time = libc::timespec {
            tv_sec: (span.0 / 1_000_000_000) as _,
            tv_nsec: (span.0 % 1_000_000_000) as _,
        };
        let at_least: libc::c_long = if span == Span(0) { 0 } else { 1 };
        // SAFETY: the kernel writes at most as many events as there is room for.
        let count = unsafe {
            libc::syscall(
                libc::SYS_io_getevents,
                self.lent.context.0,
                at_least,
                self.events.len() as libc::c_long,
                self.events.as_mut_ptr(),
                &raw mut time,
            )
        };
        if count < 0 {
            let error = io::Error::last_os_error();
            // The others mean that the call itself is wrong, which only we can fix.
            assert!(error.kind() == io::ErrorKind::Interrupted, "io_getevents: {error}");
            return Collected::Interrupted;
        }
        if count == 0 {
            return Collected::Nothing;
        }
        let at = self.clock.now();
        // SAFETY: the kernel gives each of them back once, and has just done so.
        let (_, in_flight) = unsafe { self.lent.parts() };
        assert!(count as usize <= *in_flight);
        *in_flight -= count as usize;
        for event in &self.events[..count as usize] {
            let slot = event.data as u32;
            assert!(std::mem::take(&mut self.busy[slot as usize]));
            self.completed.push(Completion { slot, result: event.result as i32, at });
        }
        Collected::Something
    }
}

/// How the check for completions ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Collected {
    Something,
    Nothing,
    Interrupted,
}

impl Backend for Aio {
    const PREPARES_EARLY: Span = pacer::PREPARES_EARLY;

    #[inline]
    fn now(&mut self) -> Instant {
        self.clock.now()
    }

    #[inline]
    fn refresh(&mut self, slot: u32, length: u32) {
        assert!(!self.busy[slot as usize]);
        if self.lent.buffers.refresh(slot, length) {
            let address = self.lent.buffers.address(Direction::Write, slot);
            self.addresses[slot as usize][Direction::Write as usize] = address as u64;
        }
    }

    #[inline]
    fn push(&mut self, io: Io) {
        assert!(!std::mem::replace(&mut self.busy[io.slot as usize], true));
        assert!(io.length as usize <= self.lent.buffers.length());
        let block = &mut self.blocks[io.slot as usize];
        block.command = match io.direction {
            Direction::Read => COMMANDS[0],
            Direction::Write => COMMANDS[1],
        };
        block.rw_flags = self.flags.0[io.direction as usize];
        block.descriptor = self.lent.files[io.target as usize].as_raw_fd() as u32;
        block.address = self.addresses[io.slot as usize][io.direction as usize];
        block.length = u64::from(io.length);
        // An offset beyond what the kernel can express becomes negative, which it refuses.
        block.offset = io.offset as i64;
        self.queue(io.slot);
    }

    fn push_task(&mut self, slot: u32, target: u32, task: Task) {
        assert!(!std::mem::replace(&mut self.busy[slot as usize], true));
        let block = &mut self.blocks[slot as usize];
        block.command = match task {
            Task::Flush { data_only: false } => FSYNC,
            Task::Flush { data_only: true } => FDSYNC,
            Task::Trim { .. } => unreachable!("native AIO has no trims, and they are refused"),
        };
        block.descriptor = self.lent.files[target as usize].as_raw_fd() as u32;
        (block.address, block.length, block.offset, block.rw_flags) = (0, 0, 0, 0);
        self.queue(slot);
    }

    #[inline]
    fn wait(&mut self, deadline: Instant) {
        self.pacer.begin();
        loop {
            let refused = self.submit();
            // With no I/O in flight there is no completion that could make room for the rest.
            let stuck = !self.queue.is_empty() && self.lent.in_flight() == 0;
            let wait = self.pacer.step(deadline, self.lent.in_flight() > 0);
            let span = match wait {
                Wait::Sleep(span) if !refused && !stuck => span,
                _ => Span(0),
            };
            let collected = self.collect(span);
            if refused || stuck || collected != Collected::Nothing || wait == Wait::Over {
                return;
            }
            if span > Span(0) {
                self.pacer.woke();
            }
            std::hint::spin_loop();
        }
    }

    #[inline]
    fn reap(&mut self, take: impl FnMut(Completion)) {
        self.completed.drain(..).for_each(take);
    }
}

impl Drop for Aio {
    fn drop(&mut self) {
        // Completions in the meantime are not a reason to leak.
        while self.lent.in_flight() > 0 && self.collect(Span(0)) == Collected::Something {
            self.completed.clear();
        }
    }
}

/// Finds out whether native AIO works here: whether contexts can be created and queried.
pub(crate) fn probe() -> io::Result<()> {
    let context = Context::new(1)?;
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    let nothing = ptr::null_mut::<IoEvent>();
    // SAFETY: asks for no event, so that the kernel writes none.
    let result = unsafe {
        libc::syscall(
            libc::SYS_io_getevents,
            context.0,
            0 as libc::c_long,
            0 as libc::c_long,
            nothing,
            &raw mut time,
        )
    };
    let error = io::Error::last_os_error();
    drop(context);
    match result {
        0.. => Ok(()),
        _ => Err(error),
    }
}
