//! What will happen when: the one heap that every simulated device shares.
//!
//! A device reckons in device time, which a stall or noise bends against virtual time; the agenda
//! turns one into the other, so that no device knows about stalls. Its capacity is given at the
//! opening: it never allocates.
//!
//! Most devices complete most I/Os in an order that they know when they enter them: behind a queue or
//! an interface each ends after the one before. Those stand in a line and never go through the heap.

use std::cmp::Ordering;
use std::collections::{BinaryHeap, VecDeque};

use fathom_core::{Instant, Span};

use super::warp::Warp;

/// Something that will happen. The one that happens first is the greatest, as the heap wants it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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

impl Event {
    /// Whether it happens before another one.
    #[inline(always)]
    fn is_before(&self, other: &Self) -> bool {
        // Hardly two are of the same nanosecond, so that this branch costs nothing and what it leads
        // to is no branch. To compare all fields in turn would be one that nobody can predict.
        match self.at == other.at {
            false => self.at < other.at,
            true => (self.device_time, self.order) < (other.device_time, other.order),
        }
    }
}

impl Ord for Event {
    fn cmp(&self, other: &Self) -> Ordering {
        let key = |event: &Self| (event.at, event.device_time, event.order);
        key(other).cmp(&key(self))
    }
}

impl PartialOrd for Event {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }

    // These are what the heap asks, for each of its levels. No two events are of the same order.
    #[inline(always)]
    fn lt(&self, other: &Self) -> bool {
        other.is_before(self)
    }

    #[inline(always)]
    fn le(&self, other: &Self) -> bool {
        !self.is_before(other)
    }

    #[inline(always)]
    fn gt(&self, other: &Self) -> bool {
        self.is_before(other)
    }

    #[inline(always)]
    fn ge(&self, other: &Self) -> bool {
        !other.is_before(self)
    }
}

/// What will happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum What {
    /// The I/O in this slot completes.
    Completes(u32),
    /// The device wants to be called again, with a number of its own choice.
    Resumes(u32),
}

/// What will happen when.
#[derive(Debug)]
pub(super) struct Agenda {
    heap: BinaryHeap<Event>,
    /// Completions of which each was entered as later than the one before it.
    line: VecDeque<Event>,
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
            line: VecDeque::with_capacity(capacity),
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
    #[inline]
    pub fn completes(&mut self, slot: u32, device_time: Instant) {
        let Some(event) = self.enter(What::Completes(slot), device_time) else { return };
        match self.line.back().is_none_or(|last| last.is_before(&event)) {
            true => self.line.push_back(event),
            false => self.heap.push(event),
        }
    }

    /// The device is called again then, in device time, with `token`.
    #[inline]
    pub fn resumes(&mut self, token: u32, device_time: Instant) {
        let Some(event) = self.enter(What::Resumes(token), device_time) else { return };
        self.heap.push(event);
    }

    /// Makes an event of it, unless nothing happens any more.
    #[inline]
    fn enter(&mut self, what: What, device_time: Instant) -> Option<Event> {
        // Turning device time back may round to just before now.
        let at = self.warp.virtual_time_at(device_time).max(self.now);
        if self.hang.is_some_and(|hang| at >= hang) {
            return None;
        }
        let entered = self.heap.len() + self.line.len();
        assert!(entered < self.capacity, "a device entered more events than it announced");
        self.order += 1;
        Some(Event { at, device_time, order: self.order, what })
    }

    /// What happens next, if it happens until then.
    #[inline]
    pub fn next_until(&mut self, limit: Instant) -> Option<Event> {
        match (self.line.front(), self.heap.peek()) {
            (Some(first), Some(top)) if top.is_before(first) => self.pop_until(limit),
            (Some(first), _) if first.at <= limit => self.line.pop_front(),
            (Some(_), _) => None,
            (None, _) => self.pop_until(limit),
        }
    }

    #[inline]
    fn pop_until(&mut self, limit: Instant) -> Option<Event> {
        match self.heap.peek() {
            Some(event) if event.at <= limit => self.heap.pop(),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::chance::Chance;

    #[test]
    fn what_stands_in_line_and_what_is_in_the_heap_happen_in_one_order() {
        for spread in [1, 10, 1_000] {
            let mut agenda = Agenda::new(200, Warp::new(None, 0.0, 1), None);
            let mut chance = Chance::new(spread, 0);
            let (mut entered, mut happened) = (Vec::new(), Vec::new());
            for token in 0..5_000 {
                // Everybody in turn, and as late as chance has it: many at the same instant.
                let at = Instant(agenda.now().0 + chance.below(spread));
                entered.push((at, token));
                match chance.below(2) {
                    0 => agenda.completes(token, at),
                    _ => agenda.resumes(token, at),
                }
                if chance.below(4) == 0 || token % 150 == 149 {
                    let limit = Instant(agenda.now().0 + spread * u64::from(token % 150 == 149));
                    while let Some(event) = agenda.next_until(limit) {
                        agenda.advance(event.at);
                        let (What::Completes(token) | What::Resumes(token)) = event.what;
                        happened.push((event.at, token));
                    }
                }
            }
            let rest = std::iter::from_fn(|| agenda.next_until(Instant(u64::MAX)));
            happened.extend(rest.map(|event| match event.what {
                What::Completes(token) | What::Resumes(token) => (event.at, token),
            }));
            entered.sort_unstable();
            assert_eq!(happened, entered, "{spread}");
        }
    }
}
