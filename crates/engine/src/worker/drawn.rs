//! The next reads and writes of a worker: requests, drawn ahead of their starts.
//!
//! It owns the source and the drawn requests. Other parts decide when a request starts.

use crate::pattern::{Request, Source};

/// How many requests are drawn at once, at least: at queue depth 1, drawing them one by one would
/// cost more than the draw itself.
const DRAWN_AHEAD: usize = 64;

/// The requests of one worker.
pub(super) struct Drawn<'a> {
    source: &'a mut dyn Source,
    /// Memory for requests. The drawn ones are at its end.
    requests: Box<[Request]>,
    /// The place of the first request that is not started.
    next: usize,
    /// How many are drawn at once, unless more are started.
    ahead: usize,
}

impl<'a> Drawn<'a> {
    /// Empty, for a worker that starts up to `depth` at once.
    pub(super) fn new(source: &'a mut dyn Source, depth: u32) -> Self {
        let most = DRAWN_AHEAD.max(depth as usize);
        Self {
            ahead: if source.ahead() { most } else { 0 },
            source,
            requests: vec![Request::default(); most].into(),
            next: most,
        }
    }

    /// Ensures that this many are drawn.
    #[inline]
    pub(super) fn prepare(&mut self, count: usize) {
        if self.requests.len() - self.next < count {
            self.draw(count);
        }
    }

    /// The next requests, this many, which are drawn.
    #[inline]
    pub(super) fn next(&self, count: usize) -> &[Request] {
        &self.requests[self.next..self.next + count]
    }

    /// The first ones, this many, start.
    #[inline]
    pub(super) fn take(&mut self, count: usize) {
        self.next += count;
    }

    /// The ones that were taken last, this many.
    #[inline]
    pub(super) fn latest(&self, count: usize) -> &[Request] {
        &self.requests[self.next - count..self.next]
    }

    /// Draws as many requests as are started now, or else as many as there is room for.
    #[inline(never)]
    fn draw(&mut self, count: usize) {
        let first = self.requests.len() - self.ahead.max(count);
        let left = self.requests.len() - self.next;
        self.requests.copy_within(self.next.., first);
        self.source.draw(&mut self.requests[first + left..]);
        self.next = first;
    }
}
