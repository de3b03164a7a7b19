//! What a worker reads and writes next: requests, drawn ahead of their starts.
//!
//! It owns the source and what was drawn from it. When a request starts is not its business.

use crate::pattern::{Request, Source};

/// How many requests are drawn at once, at least: at queue depth 1 to draw them one by one would cost
/// more than what is drawn.
const DRAWN_AHEAD: usize = 64;

/// The requests of one worker.
pub(super) struct Drawn<'a> {
    source: &'a mut dyn Source,
    /// What is drawn, at the end, ...
    requests: Box<[Request]>,
    /// ... and the place of the first that is not started.
    next: usize,
    /// How many are drawn at once, unless more are started.
    ahead: usize,
}

impl<'a> Drawn<'a> {
    /// Nothing yet, for a worker that starts up to `depth` at once.
    pub(super) fn new(source: &'a mut dyn Source, depth: u32) -> Self {
        let most = DRAWN_AHEAD.max(depth as usize);
        Self {
            ahead: if source.ahead() { most } else { 0 },
            source,
            requests: vec![Request::default(); most].into(),
            next: most,
        }
    }

    /// Sees to it that so many are drawn.
    #[inline]
    pub(super) fn prepare(&mut self, count: usize) {
        if self.requests.len() - self.next < count {
            self.draw(count);
        }
    }

    /// The next so many requests, which are drawn.
    #[inline]
    pub(super) fn next(&self, count: usize) -> &[Request] {
        &self.requests[self.next..self.next + count]
    }

    /// The first so many of them start.
    #[inline]
    pub(super) fn take(&mut self, count: usize) {
        self.next += count;
    }

    /// The so many that were taken last.
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
