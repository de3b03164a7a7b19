//! Which I/Os start next, and until when to wait for the next one.
//!
//! It owns the schedule, the drawn requests, and the gate that flushes close. It takes the I/Os
//! that are due and queues them; other parts own the slots, the stamps and the record.

use fathom_core::measure::{Direction, StartDelay, Upkeep};
use fathom_core::{Instant, Span};

use super::drawn::Drawn;
use super::flushing::{Flushing, Next};
use super::slots::Slots;
use super::{Assignment, STOP_CHECK};
use crate::backend::{Backend, Io, Task};
use crate::pattern::{Request, Source};
use crate::schedule::Schedule;

/// The part of one worker that starts the I/Os.
pub(super) struct Starter<'a, S> {
    schedule: S,
    drawn: Drawn<'a>,
    /// Whether there will be writes.
    writes: bool,
    /// Whether there will be trims.
    trims: bool,
    /// When the I/Os that are about to start were due, in their order. Open loops only.
    dues: Box<[Instant]>,
    /// When a slot last became free after none was: I/Os that fell due before then had to wait for
    /// the target, not for us. Open loops only.
    full_until: Instant,
    /// Whether the last batch was as large as the backend takes them, so that more may be due.
    more: bool,
    flushing: Option<Flushing>,
    /// How many I/Os may start before the next check for a flush.
    gate: usize,
    supply: Supply,
}

/// The progress of a worker with a limited number of I/Os.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Supply {
    /// Some have not started.
    Lasts,
    /// The last of them has started.
    Drains,
    /// All are done, or the worker gave up, and this was reported.
    Done,
}

/// I/Os that start together.
#[derive(Clone, Copy)]
pub(super) struct Batch {
    /// How many.
    pub(super) count: usize,
    /// They were taken early, and are not to start before then.
    pub(super) not_before: Instant,
}

impl<'a, S: Schedule> Starter<'a, S> {
    /// A starter that has started nothing yet.
    pub(super) fn new(job: &Assignment<'_>, schedule: S, source: &'a mut dyn Source) -> Self {
        let depth = job.plan.pace.queue_depth();
        let regions = job.plan.regions.len();
        let flushing = job.plan.flush.map(|flush| Flushing::new(flush, regions, depth as usize));
        Self {
            schedule,
            drawn: Drawn::new(source, depth),
            writes: job.writes,
            trims: job.plan.trims,
            dues: vec![Instant(0); if S::OPEN { depth as usize } else { 0 }].into(),
            full_until: job.timetable.start,
            more: false,
            gate: flushing.as_ref().map_or(usize::MAX, Flushing::allows),
            flushing,
            supply: Supply::Lasts,
        }
    }

    /// Whether the worker flushes.
    #[inline]
    pub(super) fn flushes(&self) -> bool {
        self.flushing.is_some()
    }

    /// Whether nothing may start before a check for a flush.
    pub(super) fn is_shut(&self) -> bool {
        self.gate == 0
    }

    /// Takes as many of the I/Os that are due as there are free slots, as the backend takes at
    /// once, and as may start before the next check for a flush. I/Os that fall due when the window
    /// is over, or later, are not taken.
    #[inline]
    pub(super) fn take_due<B: Backend>(
        &mut self,
        now: Instant,
        slots: &Slots,
        window_end: Instant,
        batch: usize,
    ) -> Batch {
        let free = slots.free();
        let most = free.min(self.gate.min(batch));
        let (mut count, mut not_before) = (0, Instant(0));
        if let Some(intended) = self.take_early::<B>(now, slots, window_end) {
            self.dues[0] = intended;
            (count, not_before) = (1, intended);
        }
        while count < most {
            let Some(intended) = self.schedule.take(now) else { break };
            if S::OPEN {
                self.dues[count] = intended;
            }
            count += 1;
        }
        self.more = count >= batch && count < free;
        if count > 0 {
            self.drawn.prepare(count);
            if S::BOUNDED {
                count = self.schedule.grant(self.drawn.next(count));
            }
            self.drawn.take(count);
        }
        Batch { count, not_before }
    }

    /// Takes the next I/O shortly before it is due, if no I/O is in flight whose completion could
    /// be missed meanwhile: its preparation then does not make it late.
    #[inline]
    fn take_early<B: Backend>(
        &mut self,
        now: Instant,
        slots: &Slots,
        window_end: Instant,
    ) -> Option<Instant> {
        if !S::OPEN || B::PREPARES_EARLY == Span(0) || slots.in_flight() > 0 {
            return None;
        }
        // I/Os that fall due at the end of the window or later are never started.
        let last = Instant(window_end.0 - 1);
        self.schedule.take((now + B::PREPARES_EARLY).min(last))
    }

    /// The requests of the I/Os that were taken last.
    #[inline]
    pub(super) fn taken(&self, count: usize) -> &[Request] {
        self.drawn.latest(count)
    }

    /// When the I/Os were due that were taken last.
    #[inline]
    pub(super) fn dues(&self, count: usize) -> &[Instant] {
        &self.dues[..count]
    }

    /// Queues the I/Os that were taken last in the next free slots.
    #[inline]
    pub(super) fn queue(&self, count: usize, slots: &Slots, backend: &mut impl Backend) {
        let (slots, requests) = (slots.next(count), self.taken(count));
        if self.trims {
            return queue_with_trims(slots, requests, backend);
        }
        let batch = || slots.iter().zip(requests);
        if self.writes {
            for (&slot, request) in batch() {
                if request.direction() == Direction::Write {
                    backend.refresh(slot, request.length());
                }
            }
        }
        backend.push_all(batch().map(|(&slot, request)| io(slot, request)));
    }

    /// Records how late the I/Os that were taken last started.
    #[inline]
    pub(super) fn note_delays(&self, count: usize, submitted: Instant, late: &mut StartDelay) {
        for &intended in self.dues(count) {
            let whose = match self.full_until <= intended {
                true => &mut late.generator,
                false => &mut late.target,
            };
            whose.record(submitted.since(intended).0);
        }
    }

    /// The next step for flushes, now that the loop has reached `at`.
    pub(super) fn next_flush(&mut self, now: Instant, slots: &Slots, at: Instant) -> Next {
        let Some(flushing) = &mut self.flushing else { return Next::Nothing };
        let next = flushing.look(slots, at);
        if next == Next::Passed {
            // I/Os that fell due meanwhile had to wait for the target, not for us.
            self.full_until = self.full_until.max(now);
        }
        self.gate = flushing.allows();
        next
    }

    /// Queues the flush that is due in this slot.
    pub(super) fn queue_flush(&mut self, slot: u32, target: u32, backend: &mut impl Backend) {
        let Some(flushing) = &mut self.flushing else { return };
        backend.push_task(slot, target, flushing.start(slot));
        self.gate = flushing.allows();
    }

    /// I/Os that fall due before then have to wait for the target, not for us: the target was full,
    /// or a flush kept everything else back.
    #[inline]
    pub(super) fn note_full(&mut self, until: Instant) {
        self.full_until = self.full_until.max(until);
    }

    /// Counts the I/Os that were taken last towards the next flush.
    pub(super) fn count_for_flush(&mut self, count: usize) {
        if let Some(flushing) = &mut self.flushing {
            flushing.count(self.drawn.latest(count));
            self.gate = flushing.allows();
        }
    }

    /// An I/O completed or failed.
    #[inline]
    pub(super) fn come_back(&mut self, request: Request, at: Instant) {
        // The schedule did not give the flushes, and knows nothing of them.
        if S::RESTS && request.upkeep() != Some(Upkeep::Flush) {
            self.schedule.came_back(at);
        }
    }

    /// Until when to wait if no I/O completes.
    #[inline]
    pub(super) fn deadline<B: Backend>(
        &self,
        now: Instant,
        slots: &Slots,
        slice_end: Instant,
    ) -> Instant {
        if self.more {
            // Queued I/Os are started, and completions taken, before the next batch.
            return now;
        }
        // A bucket ends when the event after its end comes: no worker wakes up for it.
        let look = slice_end.min(now + STOP_CHECK);
        if slots.free() == 0 || self.gate == 0 {
            return look;
        }
        let due = self.schedule.next_due();
        match S::OPEN && slots.in_flight() == 0 {
            true => look.min(Instant(due.0.saturating_sub(B::PREPARES_EARLY.0))),
            false => look.min(due),
        }
    }

    /// How long the oldest I/O that is due and not started has been due.
    pub(super) fn lag(&self, at: Instant) -> Option<Span> {
        S::OPEN.then(|| Span(at.0.saturating_sub(self.schedule.next_due().0)))
    }

    /// About how many I/Os are due and not started.
    pub(super) fn overdue(&self, at: Instant) -> u64 {
        self.schedule.overdue(at)
    }

    /// How many I/Os fell due before then and never started.
    pub(super) fn unstarted(&mut self, end: Instant) -> u64 {
        self.schedule.untaken(end)
    }

    /// Whether all of a limited number of I/Os have been started.
    #[inline]
    pub(super) fn is_exhausted(&self) -> bool {
        S::BOUNDED && self.schedule.is_done()
    }

    /// Whether the last of a limited number of I/Os has just started. Returns true once.
    #[inline]
    pub(super) fn begins_to_drain(&mut self) -> bool {
        let begins = self.supply == Supply::Lasts && self.is_exhausted();
        if begins {
            self.supply = Supply::Drains;
        }
        begins
    }

    /// Whether a limited number of I/Os is done, with this many in flight. Returns true once.
    #[inline]
    pub(super) fn becomes_done(&mut self, in_flight: u64) -> bool {
        let done =
            S::BOUNDED && self.supply != Supply::Done && in_flight == 0 && self.is_exhausted();
        if done {
            self.supply = Supply::Done;
        }
        done
    }

    /// The worker gives up. Returns whether others would wait for I/Os that it will never do.
    pub(super) fn give_up(&mut self) -> bool {
        let waits = S::BOUNDED && self.supply != Supply::Done && self.schedule.is_limited();
        if waits {
            self.supply = Supply::Done;
        }
        waits
    }
}

#[inline]
fn io(slot: u32, request: &Request) -> Io {
    let (target, direction) = (request.target(), request.direction());
    Io { slot, target, direction, offset: request.offset, length: request.length() }
}

/// Queues I/Os of which some are trims.
#[inline(never)]
fn queue_with_trims(slots: &[u32], requests: &[Request], backend: &mut impl Backend) {
    for (&slot, request) in slots.iter().zip(requests) {
        if request.upkeep().is_some() {
            let (offset, length) = (request.offset, request.length());
            backend.push_task(slot, request.target(), Task::Trim { offset, length });
            continue;
        }
        if request.direction() == Direction::Write {
            backend.refresh(slot, request.length());
        }
        backend.push(io(slot, request));
    }
}
