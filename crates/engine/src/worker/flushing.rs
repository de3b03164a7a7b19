//! When a worker flushes: after this many of its writes to a target, and once these have completed.
//!
//! Until then, and with a barrier until the flush itself has completed, the worker starts nothing
//! else. A worker without flushes never uses this. It owns the count of writes before each flush;
//! the caller starts the flushes.

use fathom_core::Instant;
use fathom_core::measure::Direction;
use fathom_core::spec::Flush;

use super::slots::{Slots, Started};
use crate::backend::Task;
use crate::pattern::Request;

/// The flushes of one worker.
pub(super) struct Flushing {
    flush: Flush,
    /// For each region, how many writes may start before its next flush.
    left: Box<[u32]>,
    state: State,
    /// Which slots are in flight, at the last check.
    busy: Box<[bool]>,
}

/// The state of the next flush.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Writes are counted.
    Counting,
    /// All writes before it have started.
    Due {
        /// Of this region's target.
        region: usize,
        /// When the last of these writes had completed, if it has.
        since: Option<Instant>,
    },
    /// It is in flight, and nothing else starts.
    InFlight {
        /// In this slot.
        slot: u32,
    },
}

/// The next step for flushes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// None: writes are counted, or the worker has to wait.
    Nothing,
    /// A barrier's flush has completed, so that other I/Os may start again.
    Passed,
    /// This region is to be flushed; the flush has been due since then.
    Flush {
        /// The region's place in the worker's plan.
        region: usize,
        /// Since when.
        since: Instant,
    },
}

impl Flushing {
    pub(super) fn new(flush: Flush, regions: usize, slots: usize) -> Self {
        assert!(flush.every > 0);
        Self {
            flush,
            left: vec![flush.every; regions].into(),
            state: State::Counting,
            busy: vec![false; slots].into(),
        }
    }

    /// How many I/Os may start before the next check for a flush: not more than there are writes
    /// left before one, in case all of them are writes.
    pub(super) fn allows(&self) -> usize {
        match self.state {
            State::Counting => self.left.iter().min().map_or(usize::MAX, |&left| left as usize),
            State::Due { .. } | State::InFlight { .. } => 0,
        }
    }

    /// Counts what has started.
    pub(super) fn count(&mut self, started: &[Request]) {
        for request in started.iter().filter(|request| is_write(request)) {
            let region = request.region();
            self.left[region] -= 1;
            if self.left[region] == 0 {
                // There are at most as many writes as are left before the next flush, so the last
                // one makes one flush due, and never two.
                assert!(self.state == State::Counting);
                self.left[region] = self.flush.every;
                self.state = State::Due { region, since: None };
            }
        }
    }

    /// Checks for completions, now that the loop has reached `at`, and returns the next step. A
    /// flush to start is returned until [`Self::start`] is called for it.
    pub(super) fn look(&mut self, slots: &Slots, at: Instant) -> Next {
        slots.note_busy(&mut self.busy);
        match self.state {
            State::Counting => Next::Nothing,
            State::InFlight { slot } if self.busy[slot as usize] => Next::Nothing,
            State::InFlight { .. } => {
                self.state = State::Counting;
                Next::Passed
            }
            State::Due { region, since } => {
                let busy = (0..).zip(&self.busy).filter(|(_, busy)| **busy);
                let is_write = |Started { request, .. }: &Started| is_write(request);
                if busy.map(|(slot, _)| slots.get(slot)).any(is_write) {
                    return Next::Nothing;
                }
                let since = since.unwrap_or(at);
                self.state = State::Due { region, since: Some(since) };
                match slots.free() {
                    0 => Next::Nothing,
                    _ => Next::Flush { region, since },
                }
            }
        }
    }

    /// The flush that was due starts in this slot. Returns the task for the target.
    pub(super) fn start(&mut self, slot: u32) -> Task {
        let Flush { data_only, barrier, .. } = self.flush;
        self.state = match barrier {
            true => State::InFlight { slot },
            false => State::Counting,
        };
        Task::Flush { data_only }
    }
}

fn is_write(request: &Request) -> bool {
    request.upkeep().is_none() && request.direction() == Direction::Write
}

#[cfg(test)]
mod tests {
    use fathom_core::measure::{Ledger, Tally, Upkeep};
    use fathom_core::plan::divide;
    use fathom_core::spec::{self, Arrivals, Pacing, Point, Region, Stream};
    use fathom_core::{Bytes, Rate, Span};

    use super::*;
    use crate::backend::{Backend, Completion, Io, Task};
    use crate::pattern::Pointers;
    use crate::run_point::drive_plan;
    use crate::timetable::Timetable;
    use crate::worker::{Assignment, Sink};

    fn of(every: u32, regions: usize) -> Flushing {
        Flushing::new(Flush { every, ..Flush::DATA }, regions, 4)
    }

    fn write(region: usize) -> Request {
        Request::new(0, 4096, 0, region, Direction::Write)
    }

    #[test]
    fn a_flush_is_due_after_so_many_writes_and_no_read_counts() {
        let mut flushing = of(3, 1);
        assert_eq!(flushing.allows(), 3);
        flushing.count(&[Request::new(0, 4096, 0, 0, Direction::Read), write(0)]);
        assert_eq!((flushing.allows(), flushing.state), (2, State::Counting));
        flushing.count(&[write(0), write(0)]);
        assert_eq!(flushing.allows(), 0);
        assert_eq!(flushing.state, State::Due { region: 0, since: None });
    }

    #[test]
    fn each_target_has_flushes_of_its_own() {
        let mut flushing = of(2, 2);
        flushing.count(&[write(0), write(1)]);
        assert_eq!(flushing.allows(), 1);
        flushing.count(&[write(1)]);
        assert_eq!(flushing.state, State::Due { region: 1, since: None });
        flushing.state = State::Counting;
        assert_eq!(flushing.allows(), 1, "the first target has one write to go");
    }

    /// Reads take 150 us, and everything else takes 100 us. The spy records what was pushed, and
    /// what was in flight at that time.
    #[derive(Default)]
    struct Spy {
        now: Instant,
        in_flight: Vec<(Instant, Completion, Kind)>,
        completed: Vec<Completion>,
        pushed: Vec<(Kind, Vec<Kind>)>,
    }

    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum Kind {
        Read,
        Write,
        Flush,
    }

    impl Spy {
        fn take(&mut self, slot: u32, result: u32, what: Kind) {
            let others = self.in_flight.iter().map(|(.., what)| *what).collect();
            self.pushed.push((what, others));
            let at = self.now + Span::from_us(if what == Kind::Read { 150 } else { 100 });
            self.in_flight.push((at, Completion { slot, result: result as i32, at }, what));
        }
    }

    impl Backend for Spy {
        fn now(&mut self) -> Instant {
            self.now
        }

        fn refresh(&mut self, _: u32, _: u32) {}

        fn push(&mut self, io: Io) {
            let what = if io.direction == Direction::Read { Kind::Read } else { Kind::Write };
            self.take(io.slot, io.length, what);
        }

        fn push_task(&mut self, slot: u32, target: u32, task: Task) {
            assert_eq!((target, task), (3, Task::Flush { data_only: true }));
            self.take(slot, task.whole(), Kind::Flush);
        }

        fn wait(&mut self, deadline: Instant) {
            let next = self.in_flight.iter().map(|(at, ..)| *at).min();
            self.now = self.now.max(next.unwrap_or(deadline).min(deadline));
            let now = self.now;
            let (back, rest) = self.in_flight.drain(..).partition(|(at, ..)| *at <= now);
            self.in_flight = rest;
            let back: Vec<(Instant, Completion, Kind)> = back;
            self.completed.extend(back.into_iter().map(|(_, completion, _)| completion));
        }

        fn reap(&mut self, take: impl FnMut(Completion)) {
            self.completed.drain(..).for_each(take);
        }
    }

    struct Keep(Vec<Tally>);

    impl Sink for Keep {
        fn hand_over(&mut self, tally: &mut Box<Tally>) -> bool {
            self.0.push((**tally).clone());
            tally.clear();
            true
        }
    }

    /// Runs the loop for a second with 8 in flight. Returns what it did, and how many I/Os of each
    /// kind completed.
    fn run(flush: Flush, read_share: f64, pacing: Pacing) -> (Spy, Ledger, [u64; 3]) {
        let region = Region { target: 3, offset: Bytes(0), length: Bytes(1 << 20) };
        let stream = Stream {
            ios: spec::Kind { read_share, ..spec::Kind::default() }.into(),
            flush: Some(flush),
            pacing,
            ..Stream::reading("test", Vec::from([region]))
        };
        let point = Point::of(Vec::from([stream]), Span::from_secs(1));
        let plan = &divide(&point)[0];
        let timetable = Timetable::of(&point, Instant(0));
        let job = Assignment {
            plan,
            writes: true,
            timetable,
            cpu: || None,
            ends_early: &|| false,
            stopped: &|| false,
            agree_on_end: &|now| now,
            done: &|_| {},
        };
        let (mut spy, mut sink) = (Spy::default(), Keep(Vec::new()));
        let pointers = Pointers::new(&point);
        let outcome = drive_plan(&job, &point.streams[0], &pointers, &mut spy, &mut sink);
        let sum = |flow: &dyn Fn(&Tally) -> u64| sink.0.iter().map(flow).sum();
        let completed = [
            sum(&|tally| tally.flows[0].ios()),
            sum(&|tally| tally.flows[1].ios()),
            sum(&|tally| tally.upkeep[Upkeep::Flush as usize].ios()),
        ];
        assert_eq!(outcome.ledger.completed, completed.iter().sum::<u64>());
        (spy, outcome.ledger, completed)
    }

    const DEPTH: Pacing = Pacing::closed(8);

    /// Each flush comes after `every` writes, none of which is still in flight.
    fn holds(spy: &Spy, every: u32, barrier: bool) {
        let mut writes = 0;
        for (what, in_flight) in &spy.pushed {
            assert!(!barrier || !in_flight.contains(&Kind::Flush), "{what:?} beside a flush");
            match what {
                Kind::Read => {}
                Kind::Write => writes += 1,
                Kind::Flush => {
                    assert_eq!(std::mem::take(&mut writes), every);
                    assert!(!in_flight.contains(&Kind::Write), "{in_flight:?}");
                }
            }
        }
    }

    #[test]
    fn a_barrier_keeps_everything_else_behind_the_flush() {
        let (spy, ledger, [_, writes, flushes]) =
            run(Flush { every: 4, ..Flush::DATA }, 0.0, DEPTH);
        holds(&spy, 4, true);
        // Four writes at once, then the flush: 200 us. Completions at the end are not counted.
        assert_eq!((writes, flushes, ledger.failed), (20_000, 4_999, 0));
    }

    #[test]
    fn without_a_barrier_a_flush_and_the_next_writes_run_together() {
        let flush = Flush { every: 4, barrier: false, data_only: true };
        let (spy, _, [_, writes, flushes]) = run(flush, 0.0, DEPTH);
        holds(&spy, 4, false);
        assert!((39_990..=40_000).contains(&writes), "{writes}");
        assert!(writes / 4 - flushes <= 2);
    }

    #[test]
    fn reads_neither_count_nor_have_to_come_back_before_a_flush() {
        for barrier in [true, false] {
            let flush = Flush { every: 3, barrier, data_only: true };
            let (spy, _, [reads, writes, flushes]) = run(flush, 0.7, DEPTH);
            holds(&spy, 3, barrier);
            assert!(reads > writes && flushes > 100);
            let beside = |(what, others): &&(Kind, Vec<Kind>)| {
                *what == Kind::Flush && others.contains(&Kind::Read)
            };
            assert!(spy.pushed.iter().any(|one| beside(&one)));
        }
    }

    #[test]
    fn an_open_loop_offers_its_writes_and_flushes_besides() {
        let pacing = Pacing::open(Rate(1000.0), Arrivals::Uniform, 8);
        let (spy, ledger, [_, writes, flushes]) = run(Flush::DATA, 0.0, pacing);
        holds(&spy, 1, true);
        assert_eq!((writes, flushes), (1000, 1000));
        assert_eq!((ledger.due, ledger.unstarted), (2000, 0));
    }
}
