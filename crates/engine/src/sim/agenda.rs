//! The future events: the one heap that every simulated device shares.
//!
//! A device computes in device time, which a stall or noise bends relative to virtual time; the
//! agenda converts one into the other, so that no device knows about stalls. Its capacity is fixed
//! when it is opened: it never allocates.
//!
//! Most devices complete most I/Os in an order that they know when they enter them: behind a queue
//! or an interface each ends after the one before. Those completions form a line and never go
//! through the heap.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use fathom_core::{Instant, Span};

use super::warp::Warp;

/// An event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Event {
    /// Its virtual time.
    pub at: Instant,
    /// Its device time.
    pub device_time: Instant,
    /// Its kind.
    pub what: EventKind,
}

/// The kind of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EventKind {
    /// The I/O in this slot completes.
    Completes(u32),
    /// The device wants to be called again, with a number that it chose.
    Resumes(u32),
}

/// An event as one number: from the top its virtual time, how many were entered before it, and its
/// kind. So events of one instant happen in the order in which they were entered, unless the count
/// began anew between them, as it does after 2^32.
///
/// A number goes through the heap in two registers. A struct of several fields would be read as a
/// whole right after it was written in parts, and the processor would wait until it is in the
/// cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Entry(u128);

/// The bit that distinguishes a resumption from a completion.
const RESUMES: u32 = 1 << 31;

impl Entry {
    #[inline(always)]
    fn new(at: Instant, order: u32, what: u32) -> Self {
        Self(u128::from(at.0) << 64 | u128::from(order) << 32 | u128::from(what))
    }

    #[inline(always)]
    fn at(self) -> Instant {
        Instant((self.0 >> 64) as u64)
    }

    #[inline(always)]
    fn what(self) -> u32 {
        self.0 as u32
    }
}

/// Events at device times that are not virtual times: the entry has the place here instead of the
/// event's kind.
#[derive(Debug)]
struct Warped {
    events: Box<[(u32, Instant)]>,
    free: Vec<u32>,
}

impl Warped {
    fn new(capacity: usize) -> Self {
        let events = vec![(0, Instant(0)); capacity].into();
        Self { events, free: (0..capacity as u32).collect() }
    }

    fn keep(&mut self, what: u32, device_time: Instant) -> u32 {
        let place = self.free.pop().expect("there is a place for each event");
        self.events[place as usize] = (what, device_time);
        place
    }

    fn take(&mut self, place: u32) -> (u32, Instant) {
        self.free.push(place);
        self.events[place as usize]
    }
}

/// The future events.
#[derive(Debug)]
pub(super) struct Agenda {
    /// The first one is the greatest, as the heap wants it.
    heap: BinaryHeap<Reverse<Entry>>,
    /// Completions of which each was entered as later than the one before it.
    line: VecDeque<Entry>,
    capacity: usize,
    order: u32,
    /// The virtual time that has been reached: no event is entered before it.
    now: Instant,
    warp: Warp,
    /// Where device time is not virtual time.
    warped: Option<Warped>,
    /// The time from which on no events happen any more.
    hang: Option<Instant>,
}

impl Agenda {
    /// An empty one with room for this many events.
    pub fn new(capacity: usize, warp: Warp, hang_after: Option<Span>) -> Self {
        Self {
            heap: BinaryHeap::with_capacity(capacity),
            line: VecDeque::with_capacity(capacity),
            capacity,
            order: 0,
            now: Instant(0),
            warped: (!warp.is_identity()).then(|| Warped::new(capacity)),
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
        assert!(slot < RESUMES, "slot {slot} has no number of its own");
        let Some(entry) = self.enter(slot, device_time) else { return };
        match self.line.back().is_none_or(|&last| last < entry) {
            true => self.line.push_back(entry),
            false => self.heap.push(Reverse(entry)),
        }
    }

    /// The device is called again then, in device time, with `token`.
    #[inline]
    pub fn resumes(&mut self, token: u32, device_time: Instant) {
        assert!(token < RESUMES, "token {token} has no number of its own");
        let Some(entry) = self.enter(token | RESUMES, device_time) else { return };
        self.heap.push(Reverse(entry));
    }

    /// Makes an entry of it, unless no events happen any more.
    #[inline(always)]
    fn enter(&mut self, what: u32, device_time: Instant) -> Option<Entry> {
        // Converting device time back may round to just before now.
        let at = self.warp.virtual_time_at(device_time).max(self.now);
        if self.hang.is_some_and(|hang| at >= hang) {
            return None;
        }
        let entered = self.heap.len() + self.line.len();
        assert!(entered < self.capacity, "a device entered more events than it announced");
        self.order = self.order.wrapping_add(1);
        let what = match &mut self.warped {
            None => what,
            Some(warped) => warped.keep(what, device_time),
        };
        Some(Entry::new(at, self.order, what))
    }

    /// The next event, if it happens until then.
    #[inline]
    pub fn next_until(&mut self, limit: Instant) -> Option<Event> {
        let entry = match (self.line.front(), self.heap.peek()) {
            (Some(first), Some(Reverse(top))) if top < first => self.pop_until(limit),
            (Some(first), _) if first.at() <= limit => self.line.pop_front(),
            (Some(_), _) => None,
            (None, _) => self.pop_until(limit),
        }?;
        let at = entry.at();
        let (what, device_time) = match &mut self.warped {
            None => (entry.what(), at),
            Some(warped) => warped.take(entry.what()),
        };
        let what = match what & RESUMES {
            0 => EventKind::Completes(what),
            _ => EventKind::Resumes(what ^ RESUMES),
        };
        Some(Event { at, device_time, what })
    }

    #[inline]
    fn pop_until(&mut self, limit: Instant) -> Option<Entry> {
        match self.heap.peek() {
            Some(Reverse(entry)) if entry.at() <= limit => self.heap.pop().map(|Reverse(top)| top),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::chance::Chance;
    use crate::sim::noise::Noise;

    #[test]
    fn what_stands_in_line_and_what_is_in_the_heap_happen_in_one_order() {
        for spread in [1, 10, 1_000] {
            let mut agenda = Agenda::new(200, Warp::new(None, &Noise::default(), 1, Span(0)), None);
            let mut chance = Chance::new(spread, 0);
            let (mut entered, mut happened) = (Vec::new(), Vec::new());
            for token in 0..5_000 {
                // Each in turn, at random times: many fall on the same instant.
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
                        let (EventKind::Completes(token) | EventKind::Resumes(token)) = event.what;
                        happened.push((event.at, token));
                    }
                }
            }
            let rest = std::iter::from_fn(|| agenda.next_until(Instant(u64::MAX)));
            happened.extend(rest.map(|event| match event.what {
                EventKind::Completes(token) | EventKind::Resumes(token) => (event.at, token),
            }));
            entered.sort_unstable();
            assert_eq!(happened, entered, "{spread}");
        }
    }
}
