//! What the observer of a run learns, and when: the phases as they begin, and the looks at the
//! record so far.

use fathom_core::spec::Point;
use fathom_core::{Instant, Span};

use super::early_end::{EarlyEnd, STOP_LEAD};
use super::{Observer, Phase};
use crate::collector::Collector;
use crate::timetable::Timetable;

/// A worker that has not reported for this many intervals after a look is not waited for.
const OVERDUE: u64 = 3;

/// The next phase and its beginning.
pub(super) struct Phases<'a> {
    pub(super) table: Timetable,
    end: &'a EarlyEnd,
    pub(super) next: Option<Phase>,
}

impl<'a> Phases<'a> {
    /// All of a run with this timetable.
    pub(super) fn new(table: Timetable, end: &'a EarlyEnd) -> Self {
        Self { table, end, next: Some(Phase::WarmUp) }
    }

    /// The next phase and its beginning, as far as it is known now.
    pub(super) fn next(&self) -> Option<(Phase, Instant)> {
        let end = self.end.get().unwrap_or(Instant(u64::MAX)).min(self.table.window_end);
        match self.next? {
            Phase::WarmUp => Some((Phase::WarmUp, self.table.start)),
            // A window that would begin at the end or later never does.
            Phase::WindowOpens if end <= self.table.window_start => None,
            Phase::WindowOpens => Some((Phase::WindowOpens, self.table.window_start)),
            Phase::WindowCloses => Some((Phase::WindowCloses, end)),
        }
    }

    /// How long the load still goes on after the window.
    pub(super) fn cools_for(&self, now: Instant) -> Option<Span> {
        let end = self.end.get().unwrap_or(Instant(u64::MAX)).min(self.table.window_end);
        let left = (end + self.table.cool_down).since(now);
        (self.next.is_none() && left > Span(0)).then_some(left)
    }

    /// Names every phase that has begun by now.
    pub(super) fn announce(&mut self, now: &dyn Fn() -> Instant, observer: &mut dyn Observer) {
        while let Some((phase, begins)) = self.next() {
            // Read anew for each, because an observer may take time.
            let now = now();
            if now < begins {
                break;
            }
            observer.phase(phase, now.since(begins));
            self.next = match phase {
                Phase::WarmUp => Some(Phase::WindowOpens),
                Phase::WindowOpens => Some(Phase::WindowCloses),
                Phase::WindowCloses => None,
            };
        }
    }
}

/// The times at which the observer sees the record so far.
pub(super) struct Looks<'a> {
    table: Timetable,
    end: &'a EarlyEnd,
    /// The future ones, the last one first.
    left: Vec<Instant>,
}

impl<'a> Looks<'a> {
    pub(super) fn new(point: &Point, table: Timetable, end: &'a EarlyEnd) -> Self {
        let left = point.looks.iter().rev().map(|&look| table.window_start + look).collect();
        Self { table, end, left }
    }

    /// Shows the record for every look whose time has come, as soon as all workers have reported up
    /// to that time, or should have long ago. If it is enough, the window ends at an interval's end
    /// that every worker will learn of in time.
    pub(super) fn show(
        &mut self,
        now: &dyn Fn() -> Instant,
        collector: &mut Collector<'_>,
        observer: &mut dyn Observer,
    ) {
        let patience = Span(OVERDUE * self.table.interval.0);
        while let Some(look) =
            self.left.pop_if(|look| *look <= collector.told_until() || *look + patience <= now())
        {
            if self.end.get().is_some() || !observer.look(&collector.so_far(look)) {
                continue;
            }
            let end = self.table.boundary_after(now() + STOP_LEAD);
            if end < self.table.window_end && self.end.agree(end) == end {
                collector.end_early(end);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_that_is_cut_off_closes_at_its_early_end_and_one_never_reached_never_opens() {
        let table = Timetable {
            start: Instant(10),
            window_start: Instant(20),
            window_end: Instant(100),
            cool_down: Span(0),
            interval: Span(10),
            buckets: None,
        };
        let begun = |end: Option<u64>, now: u64| {
            let early = EarlyEnd::new();
            if let Some(end) = end {
                early.agree(Instant(end));
            }
            let mut phases = Phases::new(table, &early);
            let mut seen = Seen(Vec::new());
            phases.announce(&|| Instant(now), &mut seen);
            seen.0.into_iter().map(|(phase, _)| phase).collect::<Vec<_>>()
        };
        let all = [Phase::WarmUp, Phase::WindowOpens, Phase::WindowCloses];
        assert_eq!(begun(None, 99), all[..2]);
        assert_eq!(begun(None, 100), all);
        assert_eq!(begun(Some(50), 50), all);
        assert_eq!(begun(Some(15), 100), all[..1]);
        assert_eq!(begun(None, 9), []);
    }

    #[test]
    fn each_phase_is_told_how_long_ago_it_began_when_it_is_told() {
        let table = Timetable {
            start: Instant(10),
            window_start: Instant(20),
            window_end: Instant(100),
            cool_down: Span(0),
            interval: Span(10),
            buckets: None,
        };
        let end = EarlyEnd::new();
        let mut phases = Phases::new(table, &end);
        let mut seen = Seen(Vec::new());
        // The observer takes 15 units of time for each phase.
        let readings = std::cell::Cell::new(10);
        let now = || Instant(readings.replace(readings.get() + 15));
        phases.announce(&now, &mut seen);
        assert_eq!(seen.0, [(Phase::WarmUp, Span(0)), (Phase::WindowOpens, Span(5))]);
    }

    struct Seen(Vec<(Phase, Span)>);

    impl Observer for Seen {
        fn phase(&mut self, phase: Phase, ago: Span) {
            self.0.push((phase, ago));
        }
    }
}
