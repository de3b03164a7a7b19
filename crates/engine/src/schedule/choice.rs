//! Which schedule a stream's pacing asks for: the last choice before the hot loop.

use fathom_core::Instant;
use fathom_core::plan::WorkerPlan;
use fathom_core::spec::{self, Pacing, Stream};

use super::{Arrivals, ClosedLoop, Growth, OpenLoop, Poisson, Schedule, Stages, Steady, Uniform};
use crate::worker::Timetable;

/// What is done with the schedule of a worker, whichever it is.
pub(crate) trait WithSchedule {
    /// What comes of it.
    type Output;

    /// Does it.
    fn with<S: Schedule + 'static>(self, schedule: S) -> Self::Output;
}

/// Makes the schedule of a worker of this stream.
pub(crate) fn scheduled<W: WithSchedule>(
    stream: &Stream,
    plan: &WorkerPlan,
    table: Timetable,
    what: W,
) -> W::Output {
    match (plan.pacing, &stream.course) {
        (Pacing::Closed { .. }, _) => what.with(ClosedLoop),
        (Pacing::Open { offered_load, arrivals, .. }, None) => {
            open(plan, arrivals, Steady::new(offered_load), table.start, what)
        }
        (Pacing::Open { arrivals, .. }, Some(course)) => {
            // The course begins with the window.
            let own = course.scaled(1.0 / f64::from(plan.workers));
            let growth = Stages::new(&own.after(table.window_start.since(table.start)));
            open(plan, arrivals, growth, table.start, what)
        }
    }
}

/// An open loop whose load grows so from `start` on.
fn open<G: Growth + 'static, W: WithSchedule>(
    plan: &WorkerPlan,
    arrivals: spec::Arrivals,
    growth: G,
    start: Instant,
    what: W,
) -> W::Output {
    fn from<A: Arrivals + 'static, W: WithSchedule>(
        start: Instant,
        arrivals: A,
        what: W,
    ) -> W::Output {
        what.with(OpenLoop::new(start, arrivals))
    }
    match arrivals {
        spec::Arrivals::Uniform => {
            let phase = f64::from(plan.worker) / f64::from(plan.workers);
            from(start, Uniform::new(growth, phase), what)
        }
        spec::Arrivals::Poisson => from(start, Poisson::new(growth, plan.seed), what),
    }
}
