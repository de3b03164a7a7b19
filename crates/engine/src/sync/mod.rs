//! Serves I/Os by pread and pwrite, which work everywhere, or by copying from and to a mapping of the
//! target, one thread for each slot.
//!
//! With one slot the worker's own thread makes the call, as a simple program would. With more, each
//! slot has a helper thread, and handing an I/O over costs two wake-ups: those are part of the
//! service time, because a program that works this way also has them. An I/O's buffer moves to the
//! helper and back, so that no memory is shared and no code is unsafe.

mod calls;
mod helper;
mod mapping;

use std::io;
use std::sync::Arc;

use fathom_core::measure::{Direction, Waits};
use fathom_core::spec::BackendKind;
use fathom_core::{Instant, Span};

use crate::backend::{Backend, Completion, Io, RealBackend, Shape, Task};
use crate::buffers::{self, Buffers};
use crate::clock::{self, Clock};
use crate::memory::Deal;
use crate::open_target::OpenTarget;
use crate::pacer::{self, Pace, Pacer, Wait};
use calls::{Calls, Work};
pub(crate) use calls::{discard, punch};
use helper::{Helper, Job, Outbox};
pub(crate) use mapping::probe as probe_mapping;

/// pread and pwrite.
pub struct Sync {
    /// Each slot's buffer, while the slot is not in flight.
    buffers: Box<[Option<Buffers>]>,
    buffer_length: usize,
    /// Pushed and not yet started.
    queue: Vec<Work>,
    /// Completed and not yet handed over.
    completed: Vec<Completion>,
    service: Service,
    clock: Clock,
    pacer: Pacer,
}

/// The threads that make the calls.
enum Service {
    /// The thread that waits.
    Inline(Arc<Calls>),
    /// One thread for each slot.
    Helpers { helpers: Vec<Helper>, outbox: Arc<Outbox> },
}

impl RealBackend for Sync {
    const KIND: BackendKind = BackendKind::Sync;

    fn open(targets: &[OpenTarget], shape: &Shape) -> io::Result<Self> {
        let slots = shape.slots;
        if slots == 0 {
            let message = "pread and pwrite take a queue depth of at least 1 for each worker";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        }
        let alignment = buffers::alignment(targets)?;
        let calls = Arc::new(Calls::new(targets, shape)?);
        let own = Shape { slots: 1, ..shape.clone() };
        let buffers: Box<[Option<Buffers>]> = (0..slots)
            .map(|slot| {
                let deal = Deal { among: slots, which: slot };
                Buffers::dealt(&own, alignment, deal).map(Some)
            })
            .collect::<io::Result<_>>()?;
        clock::request_exact_timers();
        let clock = Clock::default();
        let service = match slots {
            1 => Service::Inline(calls),
            _ => {
                let outbox = Arc::new(Outbox::new(slots));
                let helpers = helper::start_all(slots, &calls, &outbox, &clock)?;
                Service::Helpers { helpers, outbox }
            }
        };
        Ok(Self {
            buffers,
            buffer_length: shape.block_size as usize,
            queue: Vec::with_capacity(slots as usize),
            completed: Vec::with_capacity(slots as usize),
            service,
            pacer: Pacer::new(clock.clone()),
            clock,
        })
    }

    /// Helper threads would share the table again.
    fn prepare_thread(shape: &Shape) {
        if shape.slots == 1 {
            calls::own_table_of_files();
        }
    }

    fn write_buffer(&mut self, slot: u32) -> &mut [u8] {
        self.at_home(slot).get(Direction::Write, 0)
    }

    fn read_buffer(&mut self, slot: u32) -> &mut [u8] {
        self.at_home(slot).get(Direction::Read, 0)
    }

    fn pace(&mut self, pace: Pace) {
        self.pacer.set(pace);
    }

    fn waits(&self) -> Waits {
        self.pacer.facts()
    }
}

impl Sync {
    #[inline]
    fn at_home(&mut self, slot: u32) -> &mut Buffers {
        self.buffers[slot as usize].as_mut().expect("a slot in flight has lent its buffer")
    }

    /// Hands over the pushed I/Os, and waits for a helper that is done.
    #[inline(never)]
    fn wait_for_helpers(&mut self, deadline: Instant) {
        let Service::Helpers { helpers, outbox } = &mut self.service else {
            unreachable!("the worker's own thread makes the calls")
        };
        for work in self.queue.drain(..) {
            let slot = work.slot() as usize;
            let buffer = self.buffers[slot].take();
            let buffer = buffer.expect("a slot is pushed once until it completes");
            helpers[slot].hand_over(Job { work, buffer });
        }
        let in_flight = self.buffers.iter().any(Option::is_none);
        loop {
            if outbox.reap(&mut self.buffers, &mut self.completed) {
                return;
            }
            match self.pacer.step(deadline, in_flight) {
                Wait::Over => return,
                Wait::Spin => std::hint::spin_loop(),
                Wait::Sleep(span) => {
                    outbox.sleep(span);
                    self.pacer.woke();
                }
            }
        }
    }
}

impl Backend for Sync {
    const PREPARES_EARLY: Span = pacer::PREPARES_EARLY;

    #[inline]
    fn now(&mut self) -> Instant {
        self.clock.now()
    }

    #[inline]
    fn refresh(&mut self, slot: u32, length: u32) {
        self.at_home(slot).refresh(0, length);
    }

    #[inline]
    fn push(&mut self, io: Io) {
        assert!(self.buffers[io.slot as usize].is_some());
        assert!(io.length as usize <= self.buffer_length);
        assert!(self.queue.len() < self.buffers.len());
        self.queue.push(Work::Move(io));
    }

    fn push_task(&mut self, slot: u32, target: u32, task: Task) {
        assert!(self.buffers[slot as usize].is_some());
        assert!(self.queue.len() < self.buffers.len());
        self.queue.push(Work::Task { slot, target, task });
    }

    #[inline]
    fn wait(&mut self, deadline: Instant) {
        self.pacer.begin();
        let Service::Inline(calls) = &self.service else { return self.wait_for_helpers(deadline) };
        // Served in place: a copy would be read before its parts have reached the cache.
        let Some(work) = self.queue.first() else { return self.pacer.sleep_until(deadline) };
        let buffer = self.buffers[0].as_mut().expect("an inline I/O lends no buffer");
        let (slot, result) = (work.slot(), calls.serve(work, buffer));
        let at = self.clock.now();
        self.queue.clear();
        self.completed.push(Completion { slot, result, at });
    }

    #[inline]
    fn reap(&mut self, take: impl FnMut(Completion)) {
        self.completed.drain(..).for_each(take);
    }
}

impl Drop for Sync {
    fn drop(&mut self) {
        match &mut self.service {
            Service::Inline(_) => {}
            Service::Helpers { helpers, outbox } => {
                // I/Os that have completed in the meantime return their buffers.
                outbox.reap(&mut self.buffers, &mut self.completed);
                // A helper that has its buffer is in a call that may never return. It is left
                // alone, and ends when the call does.
                let idle: Vec<bool> = self.buffers.iter().map(Option::is_some).collect();
                helper::stop_all(helpers.drain(..).zip(idle));
            }
        }
    }
}
