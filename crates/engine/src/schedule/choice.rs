//! Which schedule a stream's pacing asks for: the last choice before the hot loop.

use fathom_core::plan::{Quota, WorkerPlan};
use fathom_core::spec::{self, Loop, OfferedLoad, Pacing, Rests, Stream};
use fathom_core::{Instant, Span};

use super::{
    Any, Bounded, Bursts, ClosedLoop, Gathered, Growth, OpenLoop, PoissonArrivals, Schedule,
    Stages, Steady, ThinkTime, UniformArrivals,
};
use crate::timetable::Timetable;

/// An action with a worker's schedule, of any type.
pub(crate) trait WithSchedule {
    /// Whether schedules with a relevant cost have their own type at compile time.
    const TUNED: bool = false;
    /// The result.
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
    if W::TUNED && stream.pacing.is_always_active() {
        match plan.pace {
            Loop::Closed { rests: Rests::None, .. } => return what.with(ClosedLoop),
            Loop::Open { load: OfferedLoad::Steady(rate), arrivals, .. } => {
                return open(plan, arrivals, Steady::new(rate), table.start, what);
            }
            Loop::Closed { .. } | Loop::Open { .. } => {}
        }
    }
    match plan.pace {
        Loop::Closed { .. } => what.with(any::<false>(stream, plan, table)),
        Loop::Open { .. } => what.with(any::<true>(stream, plan, table)),
    }
}

/// Makes the same schedule, as one of which the loop knows only whether it is open.
fn any<const OPEN: bool>(stream: &Stream, plan: &WorkerPlan, table: Timetable) -> Any<OPEN> {
    let Pacing { active, .. } = &stream.pacing;
    if stream.pacing.is_always_active() {
        return paced(plan, table, Boxed::<OPEN>);
    }
    let quota = plan.quota(stream);
    let at = |time: Span| table.window_start + time;
    let from = active.start.map_or(table.start, at);
    let until = active.end.map_or(table.load_end(), at);
    // Everything that follows the start of the run, such as a course, follows the start of the
    // stream.
    let window_start = if active.start.is_some() { from } else { table.window_start };
    let own = Timetable { start: from, window_start, ..table };
    paced(plan, own, InBounds { from, until, quota, what: Boxed::<OPEN> })
}

/// Has the loop know only whether a schedule is open.
struct Boxed<const OPEN: bool>;

impl<const OPEN: bool> WithSchedule for Boxed<OPEN> {
    type Output = Any<OPEN>;

    fn with<S: Schedule + 'static>(self, schedule: S) -> Any<OPEN> {
        Any::new(schedule)
    }
}

/// Makes the schedule for the worker's pace.
fn paced<W: WithSchedule>(plan: &WorkerPlan, table: Timetable, what: W) -> W::Output {
    match plan.pace {
        Loop::Closed { queue_depth, rests } => match rests {
            Rests::None => what.with(ClosedLoop),
            Rests::Think { time, exponential } => {
                what.with(ThinkTime::new(queue_depth, time, exponential.then_some(plan.seed)))
            }
            Rests::Bursts { ios, rest, from } => what.with(Bursts::new(ios, rest, from)),
        },
        Loop::Open { ref load, arrivals, .. } => match load {
            OfferedLoad::Steady(rate) => {
                open(plan, arrivals, Steady::new(*rate), table.start, what)
            }
            OfferedLoad::Bursts { rate, ios, rest } => {
                open(plan, arrivals, Gathered::new(*rate, *ios, *rest), table.start, what)
            }
            OfferedLoad::Course(course) => {
                // The course begins with the window.
                let lead = table.window_start.since(table.start);
                open(plan, arrivals, Stages::new(&course.after(lead)), table.start, what)
            }
        },
    }
}

/// Limits a schedule to the time from one instant to another, and to a quota.
struct InBounds<W> {
    from: Instant,
    until: Instant,
    quota: Option<Quota>,
    what: W,
}

impl<W: WithSchedule> WithSchedule for InBounds<W> {
    type Output = W::Output;

    fn with<S: Schedule + 'static>(self, schedule: S) -> W::Output {
        self.what.with(Bounded::new(schedule, self.from, self.until, self.quota))
    }
}

/// An open loop whose load grows like this from `start` on.
fn open<G: Growth + 'static, W: WithSchedule>(
    plan: &WorkerPlan,
    arrivals: spec::Arrivals,
    growth: G,
    start: Instant,
    what: W,
) -> W::Output {
    match arrivals {
        spec::Arrivals::Uniform => {
            let phase = f64::from(plan.worker) / f64::from(plan.workers);
            what.with(OpenLoop::new(start, UniformArrivals::new(growth, phase)))
        }
        spec::Arrivals::Poisson => {
            what.with(OpenLoop::new(start, PoissonArrivals::new(growth, plan.seed)))
        }
    }
}
