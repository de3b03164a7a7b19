//! Runs a point with invented I/Os: the workers' tallies go through the real collector, without
//! devices, threads or time. So a run of a day can be examined in seconds.

use fathom_core::measure::{Errors, Flow, Ledger, Record, Tally};
use fathom_core::plan;
use fathom_core::spec::Point;
use fathom_core::{Instant, Span};

use crate::collector::{Collector, empty_tally, tallies};
use crate::timetable::Timetable;
use crate::worker::Outcome;

/// The record of a run of `point` in which `fill` invents the work of each worker in each interval
/// of the window: it gets the worker's place among all, the interval's start from that of the
/// window, and its tally to record into. There is no warm-up, and every I/O is accounted for.
pub fn replay(point: &Point, fill: &mut dyn FnMut(usize, Span, &mut Tally)) -> Record {
    let plans = plan::divide(point);
    let mut table = Timetable::of(point, Instant(0));
    table.window_end = Instant(point.window.0);
    table.window_start = table.start;
    let mut collector = Collector::new(&plans, table);
    // As many as a run has, so that it needs as much memory.
    let each = tallies(plans.len());
    let mut tallies: Vec<Vec<Box<Tally>>> =
        plans.iter().map(|plan| (0..each).map(|_| empty_tally(plan)).collect()).collect();
    let mut completed = vec![0; plans.len()];
    for (number, start) in (0..point.window.0).step_by(point.interval.0 as usize).enumerate() {
        for (worker, own) in tallies.iter_mut().enumerate() {
            let tally = &mut own[number % each];
            tally.in_window = true;
            (tally.start, tally.end) = (Instant(start), Instant(start + point.interval.0));
            fill(worker, Span(start), tally);
            completed[worker] += tally.flows.iter().map(Flow::ios).sum::<u64>();
            collector.add(worker, tally);
        }
    }
    let outcome = |completed| Outcome {
        leaves_ios: false,
        ledger: Ledger { due: completed, completed, ..Ledger::default() },
        errors: Errors::default(),
        cpu: None,
        gave_up: false,
        ended: table.window_end,
        waits: None,
        lag: None,
        buckets: None,
    };
    collector.finish(completed.into_iter().map(outcome).collect(), None)
}

#[cfg(test)]
mod tests {
    use fathom_core::Bytes;
    use fathom_core::spec::{Pacing, Region, Stream, Workers};

    use super::*;

    #[test]
    fn what_is_filled_in_is_in_the_record() {
        let stream = Stream {
            pacing: Pacing::closed(2),
            workers: Workers::Total(2),
            ..Stream::reading(
                "invented",
                Vec::from([Region { target: 0, offset: Bytes(0), length: Bytes(1 << 20) }]),
            )
        };
        let point = Point {
            name: "invented".to_owned(),
            warm_up: Span::from_secs(1),
            interval: Span::from_secs(1),
            ..Point::of(Vec::from([stream.clone(), stream]), Span::from_secs(20))
        };
        let record = replay(&point, &mut |worker, start, tally| {
            let flow = &mut tally.flows[0];
            (0..=worker).for_each(|_| flow.service_time.record(1000 + start.0));
            flow.bytes.0 += 4096 * (worker as u64 + 1);
        });
        assert_eq!(record.window, point.window);
        assert_eq!(record.workers.len(), 4);
        assert_eq!(record.ledger().completed, 20 * (1 + 2 + 3 + 4));
        assert!(record.ledger().balances());
        assert_eq!(record.series.len(), 40);
        let last = record.series[39];
        assert_eq!((last.stream, last.start, last.ios), (1, Span::from_secs(19), [3 + 4, 0]));
        assert_eq!(record.total(None).bytes, Bytes(200 * 4096));
    }
}
