//! Serves I/Os by io_uring: one system call starts the queued I/Os and waits for completions.
//!
//! Files and buffers are registered if the kernel allows it. The ring belongs to the thread that
//! opened it. It never allocates after it was opened, and never frees memory that the kernel may
//! still write to: `Lent` leaks a ring that is dropped with I/Os in flight, and its buffers.

#![expect(
    unsafe_code,
    reason = "the kernel reads and writes the buffers behind the compiler's back"
)]

mod commands;
mod entries;
mod memory;
mod modes;
mod nonblock;
mod nop;
mod ring;
mod setup;
#[cfg(test)]
mod tests;

use std::fs::File;
use std::io;
use std::marker::PhantomData;
use std::os::fd::{AsRawFd, RawFd};

use fathom_core::measure::{Direction, Waits};
use fathom_core::spec::{BackendKind, RingMode};
use fathom_core::{Bytes, Instant, Span};
use io_uring::types::Timespec;
use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use rustix::thread::NanosleepRelativeResult;

pub use commands::Commands;
pub use entries::{Entries, Files};
use memory::Share;
pub(crate) use modes::{options, try_out};
pub(crate) use nop::{NopRing, no_target};
use ring::Ring;
pub use setup::Setup;
pub(crate) use setup::probe;

use crate::access::TrimWay;
use crate::backend::{Backend, Completion, Io, RealBackend, Shape, Task};
use crate::buffers::lent::Lent;
use crate::buffers::{self, Buffers};
use crate::clock::{self, Clock};
use crate::open_target::OpenTarget;
use crate::pacer::{self, Pace, Pacer, Wait};

/// How much memory this user may have locked or registered; none if there is no limit.
pub(crate) fn lockable() -> Option<u64> {
    memory::limit()
}

/// The largest number of entries of a submission queue.
const MOST_ENTRIES: u32 = 32_768;

/// How often fathom tests whether I/Os complete while they are started. If they do not, the second
/// call costs less than 1 % of them all.
const LOOK_EVERY: u32 = 64;

/// How many I/Os one call starts at most if they do not complete while they are started. The kernel
/// holds a batch back until its last I/O is prepared, which takes some microseconds for each: a
/// device that serves a whole batch before it reports any completion would be idle meanwhile. With
/// 32 at once a virtual disk did 15 % less than with 8; a call for each 8 adds an eighth of a call
/// to each.
const BATCH: usize = 8;

/// The part of a queue that may be held back for a batch: with a sixteenth a virtual disk's median
/// is the same as with I/Os that start one by one. With 8 of 16 it was 6 % more, in the kernel's
/// own count too.
const HELD_BACK: u32 = 16;

/// io_uring with reads and writes of files and block devices.
pub type Uring = UringOf<Files>;

/// io_uring with NVMe commands to NVMe generic devices.
pub type CommandUring = UringOf<Commands>;

/// io_uring, with entries of one kind.
pub struct UringOf<E: Entries> {
    /// Neither closed nor freed while I/Os are in flight. Entries that a submission thread can see
    /// count as taken by the kernel.
    lent: Lent<RingResources<E>>,
    slots: Box<[Slot<E>]>,
    /// The facts about each target that an entry needs.
    targets: Box<[E::Aim]>,
    /// How to trim each target.
    trims: Box<[TrimWay]>,
    /// Whether an I/O had completed when the last start returned.
    completes_inline: bool,
    /// How many I/Os one call starts if none had.
    batch: usize,
    /// The number of waits, for a test now and then.
    waits: u32,
    way: CompletionWay,
    /// How many of the queued entries a submission thread could see at the last check.
    shown: usize,
    clock: Clock,
    pacer: Pacer,
    facts: Facts,
    /// A ring with a single issuer must not move to another thread.
    _thread: PhantomData<*const ()>,
}

/// The memory that the kernel uses while I/Os are in flight. It is dropped in this order.
struct RingResources<E: Entries> {
    ring: Ring<E>,
    /// The ring may know them as registered.
    buffers: Buffers,
    /// The lockable memory of registered buffers, as long as they exist.
    share: Option<Share>,
    /// Open as long as the ring refers to them by number.
    _files: Vec<File>,
}

/// The features that this kernel and this user's limits allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Facts {
    /// How the ring was set up.
    pub setup: Setup,
    /// Whether the buffers are registered: not with little lockable memory (RLIMIT_MEMLOCK).
    pub registered_buffers: bool,
    /// Whether the files are registered.
    pub registered_files: bool,
    /// Whether one call can both wait and watch the time. Linux 5.11.
    pub timed_wait: bool,
}

/// How a ring's completions become visible.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CompletionWay {
    /// The kernel puts them into the ring by itself, or when it is entered.
    Usual,
    /// The kernel polls the devices' queues for them each time it is entered (IOPOLL).
    Polled,
    /// A thread of the kernel takes the submissions, and polls for completions if necessary
    /// (SQPOLL).
    Threaded,
}

impl CompletionWay {
    fn of(mode: RingMode) -> Self {
        match mode {
            RingMode { submission_thread: Some(_), .. } => Self::Threaded,
            RingMode { polled: true, .. } => Self::Polled,
            RingMode::USUAL => Self::Usual,
        }
    }
}

/// The best setup that a ring may use. Tests lower it to use the paths of older kernels.
#[derive(Clone, Copy, Debug)]
struct Ceiling {
    setup: Setup,
    register_buffers: bool,
    register_files: bool,
    timed_wait: bool,
}

impl Ceiling {
    const NONE: Self = Self {
        setup: Setup::DeferredDirect,
        register_buffers: true,
        register_files: true,
        timed_wait: true,
    };
}

/// A place for an I/O.
#[derive(Debug)]
struct Slot<E: Entries> {
    /// By direction.
    prepared: [E::Prepared; 2],
    /// The length of the I/O that is in flight, or 0. Asserted, because the kernel owns its buffer
    /// then.
    in_flight: u32,
}

/// Why a call into the kernel ended early.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Entered {
    /// It did not.
    Fully,
    /// The time ran out.
    TimeOut,
    /// A signal came, or the kernel is short of a resource that completions release.
    Early,
}

impl<E: Entries> RealBackend for UringOf<E> {
    const KIND: BackendKind = BackendKind::Uring;

    fn open(targets: &[OpenTarget], shape: &Shape) -> io::Result<Self> {
        Self::open_below(Ceiling::NONE, targets, shape)
    }

    fn write_buffer(&mut self, slot: u32) -> &mut [u8] {
        assert!(self.slots[slot as usize].in_flight == 0);
        self.lent.buffers.get(Direction::Write, slot)
    }

    fn read_buffer(&mut self, slot: u32) -> &mut [u8] {
        assert!(self.slots[slot as usize].in_flight == 0);
        self.lent.buffers.get(Direction::Read, slot)
    }

    fn pace(&mut self, pace: Pace) {
        self.pacer.set(pace);
    }

    fn waits(&self) -> Waits {
        self.pacer.facts()
    }
}

impl<E: Entries> RingResources<E> {
    /// Registers the buffers if the limits allow it.
    fn register_buffers(&mut self) {
        let areas = self.buffers.areas();
        let bytes = areas.iter().map(|(_, length)| *length as u64).sum();
        let Some(share) = Share::take(bytes) else { return };
        let vectors: Vec<libc::iovec> = areas
            .iter()
            .map(|(address, length)| libc::iovec { iov_base: address.cast(), iov_len: *length })
            .collect();
        // SAFETY: the buffers are freed after the ring, or never: this drops them in this order.
        let registered = unsafe { self.ring.submitter().register_buffers(&vectors) };
        self.share = registered.ok().map(|()| share);
    }
}

impl<E: Entries> UringOf<E> {
    /// How this ring works.
    pub fn facts(&self) -> Facts {
        self.facts
    }

    fn open_below(ceiling: Ceiling, targets: &[OpenTarget], shape: &Shape) -> io::Result<Self> {
        let slots = shape.slots;
        let entries = entries_for(shape)?;
        let buffers = Buffers::new(shape, buffers::alignment(targets)?)?;
        let (ring, setup) = setup::build_best::<E>(ceiling.setup, entries, shape.ring)
            .map_err(|error| explain(error, slots))?;
        let has_timed_wait = ring.params().is_feature_ext_arg();
        // Registering a file records what the ring can do with it.
        nonblock::spare_hand_over(targets, setup);
        let files: Vec<File> =
            targets.iter().map(|target| target.file.try_clone()).collect::<io::Result<_>>()?;
        let descriptors: Vec<RawFd> = files.iter().map(AsRawFd::as_raw_fd).collect();
        let trims: Box<[TrimWay]> =
            targets.iter().map(|target| TrimWay::of(&target.file)).collect::<io::Result<_>>()?;
        // From here on everything that the ring may know is dropped after it, in any case.
        let means = RingResources { ring: Ring::new(ring), buffers, share: None, _files: files };
        let mut lent = Lent::new(means);
        // Registering fails for lack of lockable memory or table space, or on an older kernel. The
        // I/Os are the same without it, each slightly more expensive.
        let registered_files =
            ceiling.register_files && lent.ring.submitter().register_files(&descriptors).is_ok();
        if ceiling.register_buffers {
            lent.register_buffers();
        }
        let facts = Facts {
            setup,
            registered_buffers: lent.share.is_some(),
            registered_files,
            timed_wait: setup < Setup::Plain || (ceiling.timed_wait && has_timed_wait),
        };
        clock::request_exact_timers();
        let length = shape.block_size;
        let prepared = |slot, direction| {
            let address = lent.buffers.address(direction, slot);
            let area = lent.buffers.area(direction, slot);
            let rw_flags = shape.flags.0[direction as usize];
            let buffer = entries::Buffer { slot, direction, address, length, area, rw_flags };
            E::prepare(&buffer, facts)
        };
        // If files are registered the ring knows them by their place, otherwise by their
        // descriptor.
        let number = |(place, target)| match registered_files {
            true => E::aim_at(target, place as i32),
            false => E::aim_at(target, descriptors[place]),
        };
        let slot_of = |slot| Slot {
            prepared: Direction::BOTH.map(|direction| prepared(slot, direction)),
            in_flight: 0,
        };
        let all: Box<[Slot<E>]> = (0..slots).map(slot_of).collect();
        Ok(Self {
            lent,
            slots: all,
            targets: targets.iter().enumerate().map(number).collect(),
            trims,
            completes_inline: false,
            batch: batch_of(slots),
            waits: 0,
            way: CompletionWay::of(shape.ring),
            shown: 0,
            clock: Clock::default(),
            pacer: Pacer::new(Clock::default()),
            facts,
            _thread: PhantomData,
        })
    }

    /// Whether to start the queued entries in a separate call, before another one that waits: if
    /// I/Os complete while they are started, waiting is not needed and costs a sixth of an I/O.
    /// Otherwise this is tried now and then.
    #[inline]
    fn looks_first(&mut self) -> bool {
        self.waits = self.waits.wrapping_add(1);
        self.completes_inline || self.waits.is_multiple_of(LOOK_EVERY)
    }

    /// Starts the queued entries and lets the kernel handle deferred work, without waiting. Enters
    /// the kernel only if there is one or the other, I/Os that it has to poll for, or a thread to
    /// be woken.
    #[inline]
    fn start(&mut self) -> Entered {
        let is_needed = match self.way {
            CompletionWay::Usual => self.lent.ring.queued() > 0 || self.lent.ring.has_work(),
            CompletionWay::Polled => self.lent.ring.queued() > 0 || self.lent.in_flight() > 0,
            // The call itself checks whether its thread sleeps.
            CompletionWay::Threaded => self.lent.in_flight() > 0,
        };
        if !is_needed {
            return Entered::Fully;
        }
        let result = self.lent.ring.submit();
        self.entered(result)
    }

    /// Starts the queued entries and waits for a completion, at most `span`.
    #[inline]
    fn start_and_sleep(&mut self, span: Span) -> Entered {
        if self.way == CompletionWay::Polled {
            return self.start_and_look(span);
        }
        if !self.facts.timed_wait {
            return self.start_and_poll(span);
        }
        let time =
            Timespec::new().sec(span.0 / 1_000_000_000).nsec((span.0 % 1_000_000_000) as u32);
        let result = self.lent.ring.submit_and_wait(&time);
        self.entered(result)
    }

    /// Starts the queued entries and polls for completions once. Waiting in the kernel would last
    /// as long as the device likes, because the kernel does not check the time there. With nothing
    /// to poll for it sleeps.
    fn start_and_look(&mut self, span: Span) -> Entered {
        if self.lent.ring.queued() == 0 && self.lent.in_flight() == 0 {
            return match rustix::thread::nanosleep(&clock::timespec(span)) {
                NanosleepRelativeResult::Ok => Entered::TimeOut,
                _ => Entered::Early,
            };
        }
        match self.start() {
            // Polling means to check again at once.
            Entered::Fully => Entered::TimeOut,
            early => early,
        }
    }

    /// Shows the pushed entries to the submission thread, and wakes the thread if it sleeps. A call
    /// that a signal cuts short is repeated by the wait.
    fn show_to_thread(&mut self) {
        self.lent.lend(self.lent.ring.queued() - self.shown);
        self.look_at_thread();
        self.start();
    }

    /// Reads which places the submission thread has released.
    fn look_at_thread(&mut self) {
        self.lent.ring.publish();
        self.shown = self.lent.ring.queued();
    }

    /// The same in two calls, for kernels whose one call cannot watch the time. They have plain
    /// rings only; on others a poll would not see that there is work.
    fn start_and_poll(&mut self, span: Span) -> Entered {
        let started = self.start();
        if started != Entered::Fully || self.lent.ring.has_completions() {
            return started;
        }
        // SAFETY: the ring, and so its descriptor, is open until this backend is dropped.
        let ring = unsafe { std::os::fd::BorrowedFd::borrow_raw(self.lent.ring.as_raw_fd()) };
        let mut readable = [PollFd::from_borrowed_fd(ring, PollFlags::IN)];
        match rustix::event::poll(&mut readable, Some(&clock::timespec(span))) {
            Ok(0) => Entered::TimeOut,
            Ok(_) => Entered::Fully,
            Err(_) => Entered::Early,
        }
    }

    /// Starts the entries that the kernel can see, and waits for a completion or until `deadline`.
    #[inline]
    fn wait_for_completions(&mut self, deadline: Instant) {
        self.pacer.begin();
        loop {
            if self.has_started_all() && self.lent.ring.has_completions() {
                return;
            }
            if !self.has_started_all() && self.looks_first() {
                self.start();
                self.completes_inline = self.lent.ring.has_completions();
                match self.completes_inline {
                    true => return,
                    false => continue,
                }
            }
            let wait =
                self.pacer.step(deadline, self.lent.ring.queued() > 0 || self.lent.in_flight() > 0);
            let entered = match wait {
                Wait::Over | Wait::Spin => self.start(),
                Wait::Sleep(span) => self.start_and_sleep(span),
            };
            if self.lent.ring.has_completions() || wait == Wait::Over || entered == Entered::Early {
                return;
            }
            match wait {
                // A call that started something reports that and does not report a signal.
                Wait::Sleep(_) if self.pacer.woke() && entered == Entered::Fully => return,
                _ => std::hint::spin_loop(),
            }
        }
    }

    /// Whether the kernel, or its thread, has everything that was pushed.
    #[inline]
    fn has_started_all(&self) -> bool {
        self.lent.ring.queued() == 0 || self.way == CompletionWay::Threaded
    }

    fn entered(&mut self, result: io::Result<usize>) -> Entered {
        match result {
            // Entries that its thread can see were counted when they were shown.
            Ok(_) if self.way == CompletionWay::Threaded => Entered::Fully,
            Ok(taken) => {
                self.lent.lend(taken);
                // The kernel has moved on in the queue.
                self.lent.ring.publish();
                if self.lent.ring.queued() == 0 { Entered::Fully } else { Entered::Early }
            }
            Err(error) => match error.raw_os_error().map(Errno::from_raw_os_error) {
                Some(Errno::TIME) => Entered::TimeOut,
                Some(Errno::INTR | Errno::AGAIN | Errno::BUSY | Errno::NOMEM) => Entered::Early,
                // The others mean that the call itself is wrong, which only we can fix.
                _ => panic!("io_uring_enter refused a ring that works: {error}"),
            },
        }
    }
}

impl<E: Entries> Backend for UringOf<E> {
    const PREPARES_EARLY: Span = pacer::PREPARES_EARLY;

    #[inline]
    fn now(&mut self) -> Instant {
        self.clock.now()
    }

    #[inline]
    fn batch(&self) -> usize {
        match self.completes_inline {
            true => usize::MAX,
            false => self.batch,
        }
    }

    #[inline]
    fn refresh(&mut self, slot: u32, length: u32) {
        let Self { slots, lent, facts, .. } = self;
        let buffers = &mut lent.buffers;
        let slot_of = &mut slots[slot as usize];
        assert!(slot_of.in_flight == 0);
        if buffers.refresh(slot, length) {
            let address = buffers.address(Direction::Write, slot);
            let area = match facts.registered_buffers {
                true => buffers.area(Direction::Write, slot),
                false => 0,
            };
            E::move_to(&mut slot_of.prepared[Direction::Write as usize], address, area);
        }
    }

    #[inline]
    fn push(&mut self, io: Io) {
        self.push_all(std::iter::once(io));
    }

    #[inline]
    fn push_all(&mut self, ios: impl Iterator<Item = Io>) {
        let Self { lent, slots, targets, .. } = self;
        let length = lent.buffers.length();
        let ring = &mut lent.ring;
        // Most workers have one target, which then need not be looked up.
        match &**targets {
            [target] => queue(ring, slots, length, ios, |io| {
                debug_assert!(io.target == 0);
                target
            }),
            targets => queue(ring, slots, length, ios, |io| &targets[io.target as usize]),
        }
    }

    fn push_task(&mut self, slot: u32, target: u32, task: Task) {
        let place = &mut self.slots[slot as usize];
        assert!(place.in_flight == 0);
        place.in_flight = task.whole();
        let place = target as usize;
        let entry = E::task(&self.targets[place], slot, task, self.trims[place], self.facts);
        // SAFETY: a task has no buffer.
        unsafe { self.lent.ring.push(&entry) };
    }

    #[inline]
    fn wait(&mut self, deadline: Instant) {
        if self.way != CompletionWay::Threaded {
            self.lent.ring.publish();
            return self.wait_for_completions(deadline);
        }
        self.show_to_thread();
        self.wait_for_completions(deadline);
        // The places of completed entries are needed for the next ones.
        self.look_at_thread();
    }

    /// All with one time stamp.
    #[inline]
    fn reap(&mut self, mut take: impl FnMut(Completion)) {
        if self.lent.ring.completed() == 0 {
            return;
        }
        let at = self.clock.now();
        let slots = &mut *self.slots;
        // SAFETY: the ring removes what it hands over, and the kernel gave back exactly these
        // entries.
        let (means, in_flight) = unsafe { self.lent.parts() };
        means.ring.take_completed(in_flight, |entry| {
            let slot = E::slot(&entry);
            // SAFETY: the kernel gives back the number of a slot that an entry was pushed with, and
            // there are as many slots as there were then.
            let place = unsafe { slots.get_unchecked_mut(slot as usize) };
            let result = E::result(&entry, std::mem::take(&mut place.in_flight));
            take(Completion { slot, result, at });
        });
    }
}

impl<E: Entries> Drop for UringOf<E> {
    fn drop(&mut self) {
        // I/Os that have completed in the meantime are not a reason to leak. Entries that were
        // queued and not taken must not start now.
        if self.has_started_all() {
            self.start();
        }
        if self.lent.ring.has_completions() {
            self.reap(|_| ());
        }
    }
}

/// How many I/Os one call starts if this many may be in flight.
fn batch_of(slots: u32) -> usize {
    ((slots / HELD_BACK) as usize).clamp(1, BATCH)
}

/// How many entries the submission queue needs.
fn entries_for(shape: &Shape) -> io::Result<u32> {
    // A submission thread releases places only when it has taken all entries that it saw, and by
    // then some of those may have completed and been pushed again.
    let each = if shape.ring.submission_thread.is_some() { 2 } else { 1 };
    let most = MOST_ENTRIES / each;
    if (1..=most).contains(&shape.slots) {
        return Ok(shape.slots.next_power_of_two() * each);
    }
    let message = format!(
        "io_uring takes a queue depth from 1 to {most} for each worker here, not {}",
        shape.slots
    );
    Err(io::Error::new(io::ErrorKind::InvalidInput, message))
}

/// Puts I/Os into the submission queue, each with the facts about its target.
#[inline]
fn queue<'a, E: Entries>(
    ring: &mut Ring<E>,
    slots: &mut [Slot<E>],
    length: usize,
    ios: impl Iterator<Item = Io>,
    aim: impl Fn(&Io) -> &'a E::Aim,
) {
    let entries = ios.map(|io| {
        assert!(
            (1..=length).contains(&(io.length as usize)),
            "an I/O has a length, and not more than its buffer"
        );
        let slot = &mut slots[io.slot as usize];
        assert!(slot.in_flight == 0);
        slot.in_flight = io.length;
        E::entry(&slot.prepared[io.direction as usize], aim(&io), io)
    });
    // SAFETY: an entry's buffer belongs to a slot that is marked busy. It is neither freed nor handed
    // out until the entry has completed, and not freed at all if it never does.
    unsafe { ring.push_all(entries) };
}

/// The remedy if a ring could not be made.
fn explain(error: io::Error, slots: u32) -> io::Error {
    match (error.raw_os_error().map(Errno::from_raw_os_error), memory::limit()) {
        (Some(Errno::NOMEM), Some(limit)) => {
            let message = format!(
                "there is too little lockable memory for a ring of {slots} entries (ulimit -l is \
                 {}): raise it, lower the queue depth, or use --backend aio",
                Bytes(limit)
            );
            io::Error::new(io::ErrorKind::OutOfMemory, message)
        }
        _ => error,
    }
}
