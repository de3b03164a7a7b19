//! When the parts of a run begin and end.

use fathom_core::spec::Point;
use fathom_core::{Instant, Span};

/// The instants of a run, the same for all its workers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Timetable {
    /// The first I/O may start.
    pub(crate) start: Instant,
    /// The warm-up ends, the window begins.
    pub(crate) window_start: Instant,
    /// The window ends.
    pub(crate) window_end: Instant,
    /// How long the load goes on after the window.
    pub(crate) cool_down: Span,
    /// The length of the series' slices.
    pub(crate) interval: Span,
    /// The length of the buckets in which I/Os are also counted, if there are any.
    pub(crate) buckets: Option<Span>,
}

impl Timetable {
    /// The timetable of a run of `point` that starts at `start`.
    pub(crate) fn of(point: &Point, start: Instant) -> Self {
        let window_start = start + point.warm_up;
        assert!(point.interval.0 > 0 && point.window.0.is_multiple_of(point.interval.0));
        assert!(point.buckets.is_none_or(|buckets| buckets > Span(0)));
        let fits = |look: &Span| look.0 > 0 && look.0.is_multiple_of(point.interval.0);
        assert!(point.looks.iter().all(fits) && point.looks.is_sorted());
        Self {
            start,
            window_start,
            window_end: window_start + point.window,
            cool_down: point.cool_down,
            interval: point.interval,
            buckets: point.buckets,
        }
    }

    /// When the last I/O may start, if the window ends there.
    pub(crate) fn load_end(&self) -> Instant {
        self.window_end + self.cool_down
    }

    /// The boundary between two intervals that comes after `at`, or the end. Boundaries lie at whole
    /// intervals from the start of the window, in both directions.
    pub(crate) fn boundary_after(&self, at: Instant) -> Instant {
        let interval = self.interval.0;
        if at >= self.window_start {
            let passed = (at.0 - self.window_start.0) / interval;
            return Instant(self.window_start.0 + (passed + 1) * interval).min(self.window_end);
        }
        let left = (self.window_start.0 - at.0 - 1) / interval;
        Instant(self.window_start.0 - left * interval)
    }
}
