//! Load that is not there all the time: a stream that begins later, ends earlier, or is done after
//! an amount.

use fathom_core::Instant;
use fathom_core::plan::Quota;

use super::Schedule;
use crate::pattern::Request;

/// A schedule between its bounds.
pub(crate) struct Bounded<S> {
    inner: S,
    from: Instant,
    until: Instant,
    ios_left: u64,
    bytes_left: u64,
    begun: bool,
    /// No more I/Os will start.
    over: bool,
    /// Whether it may be done before its time.
    is_limited: bool,
}

/// The remaining bytes, for requests whose bytes do not matter.
const ANY: u64 = u64::MAX;

impl<S> Bounded<S> {
    /// The inner schedule from one instant to before another, with at most the quota; an open one
    /// begins at the first instant.
    pub(crate) fn new(inner: S, from: Instant, until: Instant, quota: Option<Quota>) -> Self {
        let (ios_left, bytes_left) = match quota {
            None => (u64::MAX, ANY),
            Some(Quota::Ios(ios)) => (ios, ANY),
            Some(Quota::Bytes(bytes)) => (u64::MAX, bytes),
        };
        let over = until <= from || ios_left == 0 || bytes_left == 0;
        let is_limited = quota.is_some();
        Self { inner, from, until, ios_left, bytes_left, begun: false, over, is_limited }
    }
}

impl<S: Schedule> Schedule for Bounded<S> {
    const OPEN: bool = S::OPEN;
    const RESTS: bool = S::RESTS;
    const BOUNDED: bool = true;

    #[inline]
    fn take(&mut self, now: Instant) -> Option<Instant> {
        if self.over || now < self.from {
            return None;
        }
        self.begun = true;
        let intended = self.inner.take(now)?;
        if self.until <= intended {
            self.over = true;
            return None;
        }
        self.ios_left -= 1;
        self.over = self.ios_left == 0;
        Some(intended)
    }

    #[inline]
    fn next_due(&self) -> Instant {
        match (self.over, self.begun) {
            (true, _) => Instant(u64::MAX),
            (false, true) => self.inner.next_due(),
            (false, false) => self.from,
        }
    }

    fn untaken(&mut self, end: Instant) -> u64 {
        match self.over {
            true => 0,
            false => self.inner.untaken(end.min(self.until)).min(self.ios_left),
        }
    }

    fn overdue(&self, at: Instant) -> u64 {
        match self.over {
            true => 0,
            false => self.inner.overdue(at.min(self.until)).min(self.ios_left),
        }
    }

    #[inline]
    fn came_back(&mut self, at: Instant) {
        self.inner.came_back(at);
    }

    #[inline]
    fn grant(&mut self, requests: &[Request]) -> usize {
        if self.bytes_left == ANY {
            return requests.len();
        }
        let mut granted = 0;
        while self.bytes_left > 0 && granted < requests.len() {
            let length = u64::from(requests[granted].length());
            self.bytes_left = self.bytes_left.saturating_sub(length);
            granted += 1;
        }
        self.over |= self.bytes_left == 0;
        granted
    }

    fn is_limited(&self) -> bool {
        self.is_limited
    }

    #[inline]
    fn is_done(&self) -> bool {
        self.is_limited && self.over
    }
}

#[cfg(test)]
mod tests {
    use fathom_core::Rate;

    use super::*;
    use crate::schedule::{ClosedLoop, OpenLoop, Steady, UniformArrivals};

    fn bounded<S>(inner: S, from: u64, until: u64, quota: Option<Quota>) -> Bounded<S> {
        Bounded::new(inner, Instant(from), Instant(until), quota)
    }

    #[test]
    fn a_load_has_a_beginning_and_an_end() {
        let mut closed = bounded(ClosedLoop, 10, 20, None);
        assert_eq!((closed.take(Instant(9)), closed.next_due()), (None, Instant(10)));
        assert_eq!(closed.take(Instant(10)), Some(Instant(10)));
        assert_eq!(closed.take(Instant(19)), Some(Instant(19)));
        assert_eq!((closed.take(Instant(20)), closed.next_due()), (None, Instant(u64::MAX)));
        assert_eq!(closed.untaken(Instant(100)), 0);
        let open = || {
            let arrivals = UniformArrivals::new(Steady::new(Rate(1e8)), 0.0);
            bounded(OpenLoop::new(Instant(100), arrivals), 100, 200, None)
        };
        assert_eq!((open().next_due(), open().untaken(Instant(1000))), (Instant(100), 10));
        assert_eq!(open().untaken(Instant(150)), 5);
        let mut late = open();
        assert_eq!(std::iter::from_fn(|| late.take(Instant(1000))).count(), 10);
        assert_eq!((late.next_due(), late.untaken(Instant(1000))), (Instant(u64::MAX), 0));
    }

    #[test]
    fn a_quota_ends_a_load_to_the_io() {
        let mut five = bounded(ClosedLoop, 0, 1000, Some(Quota::Ios(5)));
        assert!(!five.is_done());
        assert_eq!(std::iter::from_fn(|| five.take(Instant(1))).count(), 5);
        assert!(five.is_done() && five.next_due() == Instant(u64::MAX));
        assert!(bounded(ClosedLoop, 0, 1000, Some(Quota::Ios(0))).is_done());
        // A schedule that ends by its time is over, but never done.
        assert!(!bounded(ClosedLoop, 5, 5, None).is_done());
        let arrivals = UniformArrivals::new(Steady::new(Rate(1e8)), 0.0);
        let mut open = bounded(OpenLoop::new(Instant(0), arrivals), 0, 1000, Some(Quota::Ios(7)));
        assert_eq!(open.untaken(Instant(1000)), 7);
    }
}
