//! What sets the pace of a stream: what starts its I/Os, when it rests, when it has load, and when it
//! is done.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Active, Course, Limit, RestFrom, Rests};
use crate::units::{Rate, Span};

/// What sets the pace of a stream.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Pacing {
    /// What starts its I/Os.
    #[serde(rename = "loop")]
    pub pace: Loop,
    /// When it has load; a course begins then too.
    #[serde(default, skip_serializing_if = "super::is_usual")]
    pub active: Active,
    /// How much it does before it is done; no limit if none. The run ends when every stream with a
    /// limit is done.
    #[serde(default, skip_serializing_if = "super::is_usual")]
    pub limit: Option<Limit>,
}

/// What starts I/Os: of a stream, or of one of its workers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Loop {
    /// A new I/O starts when an old one completes: the target sets the pace.
    Closed {
        /// The most I/Os in flight, all workers together.
        queue_depth: u32,
        /// What it waits for besides completions.
        #[serde(default, skip_serializing_if = "super::is_usual")]
        rests: Rests,
    },
    /// I/Os start on a schedule that does not look at completions: the load sets the pace.
    Open {
        /// How many should start, all workers together.
        #[serde(rename = "offered_load")]
        load: OfferedLoad,
        /// How the intended starts follow each other.
        arrivals: Arrivals,
        /// The most I/Os in flight, all workers together; more that fall due wait, and their wait
        /// counts.
        queue_depth_max: u32,
        /// Whether its workers have real-time priority, so that no other program keeps them from
        /// starting what is due.
        realtime: bool,
    },
}

/// The I/Os per second that an open loop should start, all its workers together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OfferedLoad {
    /// The same all the time.
    #[serde(rename = "steady_iops")]
    Steady(Rate),
    /// The same over each burst and the rest after it. What falls due in a rest starts when that is
    /// over. A rest begins with the last start of a burst, and the I/Os of a burst take at least as
    /// long to fall due as the rest lasts, so that the rate is kept.
    Bursts {
        /// I/Os per second.
        #[serde(rename = "rate_iops")]
        rate: Rate,
        /// I/Os of a burst of one worker, at least 1.
        ios: u32,
        /// From the end of a burst to the first start of the next.
        #[serde(rename = "rest_ns")]
        rest: Span,
    },
    /// It changes over time. The course begins with the window, or where the load begins later, with
    /// the load. A warm-up has the rate that the course begins with.
    Course(Course),
}

/// How intended starts follow each other in an open loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Arrivals {
    /// At equal distances.
    Uniform,
    /// Independent of each other: exponential distances.
    Poisson,
}

impl Pacing {
    /// A closed loop that never rests, has load all the time and no limit.
    pub const fn closed(queue_depth: u32) -> Self {
        Self::of(Loop::Closed { queue_depth, rests: Rests::None })
    }

    /// An open loop with a steady load all the time, without a limit and real-time priority.
    pub const fn open(rate: Rate, arrivals: Arrivals, queue_depth_max: u32) -> Self {
        let load = OfferedLoad::Steady(rate);
        Self::of(Loop::Open { load, arrivals, queue_depth_max, realtime: false })
    }

    /// This pace all the time, without a limit.
    pub const fn of(pace: Loop) -> Self {
        Self { pace, active: Active::ALWAYS, limit: None }
    }

    /// A closed loop of this queue depth that rests and ends as this pacing does.
    pub fn closed_at(&self, queue_depth: u32) -> Self {
        Self { pace: Loop::Closed { queue_depth, rests: self.rests() }, ..self.clone() }
    }

    /// The most I/Os that can be in flight.
    pub fn queue_depth(&self) -> u32 {
        self.pace.queue_depth()
    }

    /// Whether a schedule starts the I/Os.
    pub fn is_open(&self) -> bool {
        self.pace.is_open()
    }

    /// Whether its workers have real-time priority.
    pub fn is_realtime(&self) -> bool {
        self.pace.is_realtime()
    }

    /// How its workers rest.
    pub fn rests(&self) -> Rests {
        self.pace.rests()
    }

    /// How its load changes over time, where it does.
    pub fn course(&self) -> Option<&Course> {
        match &self.pace {
            Loop::Open { load: OfferedLoad::Course(course), .. } => Some(course),
            _ => None,
        }
    }

    /// The mean of the offered load while it has load in a window of this length; none in a closed
    /// loop.
    pub fn offered_load(&self, window: Span) -> Option<Rate> {
        let Loop::Open { load, .. } = &self.pace else { return None };
        let (begins, ends) = self.active.part(Span(0), window);
        Some(load.mean(ends - begins))
    }

    /// The rate that the load of an open loop begins with, which a warm-up has; none in a closed loop.
    pub fn begins_with(&self) -> Option<Rate> {
        let Loop::Open { load, .. } = &self.pace else { return None };
        Some(load.mean(Span(0)))
    }

    /// I/Os that fall due in an open loop from one time of the window to another, in fractions of one;
    /// none in a closed loop.
    pub fn offered(&self, from: Span, to: Span) -> Option<f64> {
        let Loop::Open { load, .. } = &self.pace else { return None };
        let (begins, ends) = self.active.part(from, to);
        Some(match load {
            OfferedLoad::Steady(rate) | OfferedLoad::Bursts { rate, .. } => {
                rate.0 * (ends - begins).as_secs_f64()
            }
            OfferedLoad::Course(course) => {
                let origin = self.active.begins();
                course.ios_before(ends - origin) - course.ios_before(begins - origin)
            }
        })
    }

    /// I/Os per second that should start, on average from one time of the window to another, times
    /// without load included; none in a closed loop.
    pub fn offered_rate(&self, from: Span, to: Span) -> Option<Rate> {
        match (to - from).as_secs_f64() {
            0.0 => self.offered_load(to),
            seconds => self.offered(from, to).map(|ios| Rate(ios / seconds)),
        }
    }

    /// Whether its load changes over time, or is not there all the time.
    pub fn changes(&self) -> bool {
        self.course().is_some() || self.active != Active::ALWAYS
    }

    /// How it rests, when it has load and when it is done, in words for the end of a sentence; nothing
    /// where a completion or a schedule starts the next I/O all the time.
    pub fn rests_in_words(&self) -> String {
        let mut words = String::new();
        if self.rests() != Rests::None {
            words += &format!(", {}", self.rests());
        }
        if self.active != Active::ALWAYS {
            words += &format!(", {}", self.active);
        }
        if let Some(limit) = self.limit {
            words += &format!(", done after {limit}");
        }
        words
    }

    /// Whether it has load all the time.
    pub fn is_always_active(&self) -> bool {
        self.active == Active::ALWAYS && self.limit.is_none()
    }
}

impl Loop {
    /// The most I/Os that can be in flight.
    pub fn queue_depth(&self) -> u32 {
        match *self {
            Self::Closed { queue_depth, .. } => queue_depth,
            Self::Open { queue_depth_max, .. } => queue_depth_max,
        }
    }

    /// Whether a schedule starts the I/Os.
    pub fn is_open(&self) -> bool {
        matches!(self, Self::Open { .. })
    }

    /// Whether its workers have real-time priority.
    pub fn is_realtime(&self) -> bool {
        matches!(self, Self::Open { realtime: true, .. })
    }

    /// How its workers rest.
    pub fn rests(&self) -> Rests {
        match *self {
            Self::Closed { rests, .. } => rests,
            Self::Open { load: OfferedLoad::Bursts { ios, rest, .. }, .. } => {
                Rests::Bursts { ios, rest, from: RestFrom::LastStart }
            }
            Self::Open { .. } => Rests::None,
        }
    }

    /// The part of one of several workers: of the queue depth as evenly as it can be, and of the
    /// offered load.
    pub fn share(&self, workers: u32, worker: u32) -> Self {
        let slots = |total: u32| total / workers + u32::from(worker < total % workers);
        match *self {
            Self::Closed { queue_depth, rests } => {
                Self::Closed { queue_depth: slots(queue_depth), rests }
            }
            Self::Open { ref load, arrivals, queue_depth_max, realtime } => Self::Open {
                load: load.share(workers),
                arrivals,
                queue_depth_max: slots(queue_depth_max),
                realtime,
            },
        }
    }
}

impl OfferedLoad {
    /// The mean rate from its beginning to this time.
    pub fn mean(&self, until: Span) -> Rate {
        match self {
            Self::Steady(rate) | Self::Bursts { rate, .. } => *rate,
            Self::Course(course) => course.mean(Span(0), until),
        }
    }

    /// The same with every rate multiplied.
    pub fn scaled(&self, factor: f64) -> Self {
        self.with_rates(|rate| Rate(rate.0 * factor), |course| course.scaled(factor))
    }

    fn share(&self, workers: u32) -> Self {
        let workers = f64::from(workers);
        self.with_rates(|rate| Rate(rate.0 / workers), |course| course.scaled(1.0 / workers))
    }

    fn with_rates(
        &self,
        steady: impl FnOnce(Rate) -> Rate,
        course: impl FnOnce(&Course) -> Course,
    ) -> Self {
        match *self {
            Self::Steady(rate) => Self::Steady(steady(rate)),
            Self::Bursts { rate, ios, rest } => Self::Bursts { rate: steady(rate), ios, rest },
            Self::Course(ref own) => Self::Course(course(own)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::Stage;
    use crate::units::Bytes;

    const BURSTS: OfferedLoad =
        OfferedLoad::Bursts { rate: Rate(900.0), ios: 4, rest: Span(1_000_000) };

    fn offering(load: OfferedLoad) -> Pacing {
        Pacing::of(Loop::Open {
            load,
            arrivals: Arrivals::Uniform,
            queue_depth_max: 8,
            realtime: true,
        })
    }

    /// The load rises from 0 to 1000/s in 10 s and then stays there.
    fn rising() -> OfferedLoad {
        let stage = Stage { lasts: Span::from_secs(10), begins: Rate(0.0), ends: Rate(1000.0) };
        OfferedLoad::Course(Course::new(Vec::from([stage])))
    }

    #[test]
    fn the_mean_of_a_load_is_that_of_the_time_that_it_has_load_in() {
        let s = Span::from_secs;
        let mut rising = offering(rising());
        assert_eq!(rising.offered_load(s(10)), Some(Rate(500.0)));
        assert_eq!(rising.offered_load(s(20)), Some(Rate(750.0)));
        assert_eq!(rising.begins_with(), Some(Rate(0.0)));
        rising.active = Active { start: Some(s(10)), end: Some(s(20)) };
        assert_eq!(rising.offered_load(s(30)), Some(Rate(500.0)));
        assert_eq!(rising.offered(s(0), s(30)), Some(5000.0));
        assert_eq!(offering(BURSTS).offered_load(s(3)), Some(Rate(900.0)));
        assert_eq!(Pacing::closed(4).offered_load(s(3)), None);
    }

    #[test]
    fn a_worker_has_its_share_of_the_load_and_of_the_depth() {
        let depths = |pacing: &Pacing| [0, 1, 2].map(|nth| pacing.pace.share(3, nth).queue_depth());
        assert_eq!(depths(&Pacing::closed(8)), [3, 3, 2]);
        assert_eq!(depths(&offering(BURSTS)), [3, 3, 2]);
        let share = |load| match offering(load).pace.share(3, 2) {
            Loop::Open { load, .. } => load.mean(Span::from_secs(10)).0,
            Loop::Closed { .. } => panic!("an open loop"),
        };
        assert_eq!(share(BURSTS), 300.0);
        assert!((share(rising()) - 500.0 / 3.0).abs() < 1e-9);
    }

    #[test]
    fn a_loop_that_becomes_closed_rests_and_ends_as_before() {
        let limit = Some(Limit::Bytes(Bytes(4096)));
        let open = Pacing { limit, ..offering(BURSTS) };
        let closed = open.closed_at(5);
        assert_eq!((closed.queue_depth(), closed.limit, closed.is_open()), (5, limit, false));
        assert_eq!(closed.rests(), open.rests());
        assert!(!closed.is_realtime() && open.is_realtime());
    }
}
