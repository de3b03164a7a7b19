//! The time that a worker has reached, and its record: slice after slice of the series, each with
//! its own tally, and buckets beside them.
//!
//! It owns the worker's time, its timetable and its tally. It knows neither the I/Os nor the
//! receiver of the tallies: the code that moves the time on learns when a slice ends, and hands it
//! over.

use fathom_core::measure::Tally;
use fathom_core::{Instant, Span};

use super::buckets::Buckets;
use crate::timetable::Timetable;
use crate::trace::TracePhase;

/// The time of one worker.
pub(super) struct Slices {
    /// The run's timetable, until the user asks to stop: then the window ends earlier. In the
    /// cool-down its window ends with the cool-down.
    table: Timetable,
    /// The time that the loop has reached: the latest stamp. The depth is integrated until then.
    at: Instant,
    /// The phase of that time, for completions.
    phase: TracePhase,
    /// The slice that the time is in.
    pub(super) tally: Box<Tally>,
    /// The end of that slice.
    slice_end: Instant,
    /// The end of that slice or of the bucket, whichever comes first.
    boundary: Instant,
    buckets: Option<Buckets>,
}

/// The successor of a slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Begins {
    /// The next slice.
    Slice,
    /// The window, and its first slice.
    Window,
    /// None: that was the last one.
    Nothing,
}

impl Slices {
    /// At the start of the timetable.
    pub(super) fn new(table: Timetable, tally: Box<Tally>) -> Self {
        let in_window = table.window_start <= table.start;
        let buckets = table.buckets.map(|length| {
            let window = table.window_end.since(table.window_start);
            Buckets::new(length, window, tally.flows.len())
        });
        let mut slices = Self {
            table,
            at: table.start,
            phase: if in_window { TracePhase::Window } else { TracePhase::WarmUp },
            tally,
            slice_end: table.start,
            boundary: table.start,
            buckets,
        };
        slices.tally.start = table.start;
        slices.tally.in_window = in_window;
        slices.set_boundary(table.start);
        slices
    }

    /// The time that the loop has reached.
    #[inline]
    pub(super) fn at(&self) -> Instant {
        self.at
    }

    /// When the window ends, as far as is known.
    #[inline]
    pub(super) fn window_end(&self) -> Instant {
        self.table.window_end
    }

    /// The end of the current slice.
    #[inline]
    pub(super) fn slice_end(&self) -> Instant {
        self.slice_end
    }

    /// The phase of an I/O that completes now.
    #[inline]
    pub(super) fn phase(&self) -> TracePhase {
        self.phase
    }

    /// Whether the window is over, so that completions are in no distribution.
    #[inline]
    pub(super) fn is_over(&self) -> bool {
        self.phase == TracePhase::After
    }

    /// Whether a slice, a bucket or the window ends by then.
    #[inline]
    pub(super) fn ends_by(&self, to: Instant) -> bool {
        self.boundary <= to
    }

    /// The earliest end that the window can still have: a slice has a length, and counted I/Os stay
    /// in the window.
    pub(super) fn earliest_end(&self) -> Instant {
        self.at.max(self.tally.start + Span(1))
    }

    /// Moves on to a later stamp within the slice, with this many I/Os in flight until then.
    #[inline]
    pub(super) fn move_on(&mut self, to: Instant, in_flight: u64) {
        // The window is not over: its end is a boundary, too.
        self.tally.depth_ns += u128::from(in_flight) * u128::from(to.0 - self.at.0);
        self.at = to;
    }

    /// Moves on to a stamp after the end of slices that are all closed.
    pub(super) fn move_beyond(&mut self, to: Instant, in_flight: u64) {
        self.integrate_depth(to, in_flight);
        if self.table.window_end <= to {
            self.phase = TracePhase::After;
        }
    }

    /// Counts the I/Os in flight from the last stamp to this one, but not after the window.
    pub(super) fn integrate_depth(&mut self, to: Instant, in_flight: u64) {
        let passed = to.min(self.table.window_end).since(self.at).0;
        self.tally.depth_ns += u128::from(in_flight) * u128::from(passed);
        self.at = self.at.max(to);
    }

    /// Closes the slice, if it ended by `at`, with the buckets that end in it. Returns whether it
    /// did: then the tally is to be handed over, and [`Self::begin_next`] comes next.
    pub(super) fn close_next(&mut self, at: Instant, in_flight: u64) -> bool {
        while self.boundary <= at && self.tally.start < self.table.window_end {
            let boundary = self.boundary;
            self.integrate_depth(boundary, in_flight);
            self.count_bucket(boundary);
            if boundary == self.slice_end {
                self.tally.end = boundary;
                return true;
            }
            self.set_boundary(boundary);
        }
        false
    }

    /// Begins the successor of the closed slice. A slice that could not be handed over continues,
    /// but does not leak from the warm-up, which is not recorded anyway, into the window.
    pub(super) fn begin_next(&mut self, is_handed_over: bool) -> Begins {
        let boundary = self.slice_end;
        let opens = boundary == self.table.window_start;
        if is_handed_over {
            self.tally.start = boundary;
        } else if opens {
            self.tally.clear();
            self.tally.start = boundary;
        }
        if opens {
            self.empty_buckets();
            if self.phase == TracePhase::WarmUp {
                self.phase = TracePhase::Window;
            }
        }
        self.tally.in_window = self.table.window_start <= boundary;
        self.set_boundary(boundary);
        match (opens, boundary == self.table.window_end) {
            (true, _) => Begins::Window,
            (false, true) => Begins::Nothing,
            (false, false) => Begins::Slice,
        }
    }

    /// Ends the window there, unless it ends earlier anyway.
    pub(super) fn end_window(&mut self, end: Instant) {
        self.table.window_end = self.table.window_end.min(end);
        self.slice_end = self.slice_end.min(self.table.window_end);
        self.boundary = self.boundary.min(self.table.window_end);
        if self.table.window_end <= self.at {
            self.phase = TracePhase::After;
        }
    }

    /// Ends the last slice where the worker gave up, before its window ended.
    pub(super) fn cut_off(&mut self, end: Instant, in_flight: u64) {
        self.integrate_depth(end, in_flight);
        self.tally.end = end;
    }

    /// Goes on until `end` without recording anything: everything recorded was handed over.
    pub(super) fn cool_down(&mut self, end: Instant) {
        self.table.window_end = end;
        (self.boundary, self.slice_end) = (Instant(u64::MAX), Instant(u64::MAX));
        self.phase = TracePhase::After;
    }

    /// The tally was handed over, and an empty one takes its place.
    pub(super) fn empty_buckets(&mut self) {
        if let Some(buckets) = &mut self.buckets {
            buckets.begin_anew();
        }
    }

    /// The buckets, once nothing more is counted.
    pub(super) fn take_buckets(&mut self) -> Option<Buckets> {
        self.buckets.take()
    }

    /// Finds the end of the next slice or bucket after this instant.
    fn set_boundary(&mut self, at: Instant) {
        let table = &self.table;
        self.slice_end = table.boundary_after(at);
        self.boundary = match &self.buckets {
            Some(buckets) if at >= table.window_start => {
                let ends = buckets.end_after(at.since(table.window_start));
                self.slice_end.min(table.window_start + ends)
            }
            _ => self.slice_end,
        };
    }

    /// Counts what completed since the last time into the bucket that ends there or goes on.
    pub(super) fn count_bucket(&mut self, at: Instant) {
        if let Some(buckets) = self.buckets.as_mut().filter(|_| self.tally.in_window) {
            buckets.count(&self.tally, at.since(self.table.window_start));
        }
    }
}
