//! A run against a simulated device: one worker on the calling thread, in virtual time.

use std::sync::atomic::{AtomicBool, Ordering};

use fathom_core::Instant;
use fathom_core::measure::{Record, Tally};
use fathom_core::plan::WorkerPlan;
use fathom_core::spec::Point;

use super::{Observer, drive_plan, timetable};
use crate::collector::Collector;
use crate::pattern::Pointers;
use crate::sim::{self, Sim};
use crate::worker::{Job, Sink};

/// Merges on the spot: virtual time stands still meanwhile.
struct LocalSink<'a, 'b> {
    collector: Collector<'a>,
    observer: &'b mut dyn Observer,
}

impl Sink for LocalSink<'_, '_> {
    fn hand_over(&mut self, tally: &mut Box<Tally>) -> bool {
        if let Some(progress) = self.collector.add(0, tally) {
            self.observer.progress(&progress);
        }
        true
    }
}

/// Runs the point in virtual time.
///
/// # Panics
///
/// When the point has more than one worker: each would have a clock of its own.
pub(super) fn run(
    point: &Point,
    plans: &[WorkerPlan],
    options: &sim::Options,
    stop: &AtomicBool,
    observer: &mut dyn Observer,
) -> Record {
    let [plan] = plans else { panic!("a simulated device has one worker, not {}", plans.len()) };
    let stream = &point.streams[plan.stream as usize];
    let timetable = timetable(point, Instant(0));
    let job = Job {
        plan,
        writes: stream.read_share < 1.0,
        timetable,
        cpu: || None,
        stopped: &|| stop.load(Ordering::Relaxed),
        agree_on_end: &|now| now,
    };
    let mut sink = LocalSink { collector: Collector::new(plans, timetable), observer };
    let mut backend = Sim::open(&options.for_run(point.seed), plan.pacing.queue_depth());
    let pointers = Pointers::new(point);
    let outcome = drive_plan(&job, stream, &pointers, &mut backend, &mut sink);
    sink.collector.finish(Vec::from([outcome]))
}
