//! What will happen when: the one heap that every simulated device shares.
//!
//! A device reckons in device time, which a stall or noise bends against virtual time; the agenda
//! turns one into the other, so that no device knows about stalls. Its capacity is given at the
//! opening: it never allocates.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use fathom_core::{Instant, Span};

use super::warp::Warp;

/// Something that will happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Event {
    /// When, in virtual time.
    pub at: Instant,
    /// When, in device time.
    pub device_time: Instant,
    /// Events of one instant happen in the order in which they were entered.
    order: u64,
    /// What.
    pub what: What,
}

/// What will happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum What {
    /// The I/O in this slot completes.
    Completes(u32),
    /// The device wants to be called again, with a number of its own choice.
    Resumes(u32),
}

/// What will happen when.
#[derive(Debug)]
pub(super) struct Agenda {
    heap: BinaryHeap<Reverse<Event>>,
    capacity: usize,
    order: u64,
    /// The virtual time that has been reached: nothing is entered before it.
    now: Instant,
    warp: Warp,
    /// From when on nothing happens any more.
    hang: Option<Instant>,
}

impl Agenda {
    /// An empty one with room for so many events.
    pub fn new(capacity: usize, warp: Warp, hang_after: Option<Span>) -> Self {
        Self {
            heap: BinaryHeap::with_capacity(capacity),
            capacity,
            order: 0,
            now: Instant(0),
            warp,
            hang: hang_after.map(|span| Instant(0) + span),
        }
    }

    /// The virtual time.
    pub fn now(&self) -> Instant {
        self.now
    }

    /// Moves on; never back.
    pub fn advance(&mut self, to: Instant) {
        self.now = self.now.max(to);
    }

    /// The device time of now.
    pub fn device_now(&mut self) -> Instant {
        self.warp.device_time_at(self.now)
    }

    /// The I/O in `slot` completes then, in device time.
    pub fn completes(&mut self, slot: u32, device_time: Instant) {
        self.enter(What::Completes(slot), device_time);
    }

    /// The device is called again then, in device time, with `token`.
    pub fn resumes(&mut self, token: u32, device_time: Instant) {
        self.enter(What::Resumes(token), device_time);
    }

    fn enter(&mut self, what: What, device_time: Instant) {
        // Turning device time back may round to just before now.
        let at = self.warp.virtual_time_at(device_time).max(self.now);
        if self.hang.is_some_and(|hang| at >= hang) {
            return;
        }
        assert!(self.heap.len() < self.capacity, "a device entered more events than it announced");
        self.order += 1;
        self.heap.push(Reverse(Event { at, device_time, order: self.order, what }));
    }

    /// What happens next, if it happens until then.
    pub fn next_until(&mut self, limit: Instant) -> Option<Event> {
        match self.heap.peek() {
            Some(Reverse(event)) if event.at <= limit => self.heap.pop().map(|Reverse(e)| e),
            _ => None,
        }
    }
}
