//! Tests looks at a record before its window is over, and windows that end because of a look.

use fathom_core::measure::Ledger;
use fathom_core::spec::{Arrivals, Pacing, Workers};

use super::*;

/// Keeps what it is shown, and ends the window at the look with this number.
struct Looker {
    enough_at: usize,
    seen: Vec<Record>,
}

impl Observer for Looker {
    fn look(&mut self, so_far: &Record) -> bool {
        self.seen.push(so_far.clone());
        self.seen.len() == self.enough_at
    }
}

/// The record, and the records that were shown on the way.
fn looked_at(device: &str, point: &Point, enough_at: usize) -> (Record, Vec<Record>) {
    let options = device.parse().expect(device);
    let mut looker = Looker { enough_at, seen: Vec::new() };
    let never = AtomicBool::new(false);
    let record = run_point(point, Devices::Simulated(&options), &never, &mut looker);
    (record.expect("a simulated device can always be opened"), looker.seen)
}

/// An open stream and a closed one, with several workers each, that can be looked at each second.
fn mixed() -> Point {
    let mut point = lasting(6, open(30e3, Arrivals::Poisson, 64));
    let closed = Pacing::closed(6);
    let mut mixed = Stream { pacing: closed, ..point.streams[0].clone() };
    mixed.kind_mut().read_share = 0.5;
    point.streams.push(mixed);
    point.streams.iter_mut().for_each(|stream| stream.workers = Workers::Total(3));
    point.warm_up = Span::from_ms(500);
    point.looks = (1..6).map(Span::from_secs).collect();
    point
}

const DEVICES: [&str; 4] =
    ["queue,servers=3,distribution=exponential", "queue,error=1%,service-time=50us", "ssd", "hdd"];

#[test]
fn a_window_that_ends_early_is_the_window_of_that_length() {
    for device in DEVICES {
        for single in [false, true] {
            let mut point = mixed();
            if single {
                point.streams.truncate(1);
                point.streams[0].workers = Workers::Total(1);
            }
            let (early, seen) = looked_at(device, &point, 3);
            assert!(early.ended_early && !early.interrupted, "{device}");
            assert_eq!((early.window, seen.len()), (Span::from_secs(3), 3));
            let short = Point { window: Span::from_secs(3), looks: Vec::new(), ..point };
            let whole = run(device, &short);
            assert!(!whole.ended_early);
            assert!(whole == Record { ended_early: false, ..early }, "{device}");
        }
    }
}

#[test]
fn a_look_shows_the_record_as_if_the_window_had_ended_there() {
    for device in DEVICES {
        let point = mixed();
        let (whole, seen) = looked_at(device, &point, 0);
        assert!(whole == run(device, &Point { looks: Vec::new(), ..point.clone() }), "{device}");
        assert_eq!(seen.len(), 5);
        for (seconds, so_far) in (1..).zip(&seen) {
            let ended = run(
                device,
                &Point { window: Span::from_secs(seconds), looks: Vec::new(), ..point.clone() },
            );
            assert_eq!((so_far.window, so_far.interrupted), (ended.window, false));
            assert!(so_far.total(None) == ended.total(None));
            assert!(so_far.series == ended.series && so_far.stretches == ended.stretches);
            assert_eq!(so_far.backlog(1), None);
            let [shown, real] = [so_far, &ended].map(|record| record.backlog(0).expect("open"));
            assert_eq!((shown.lag, shown.growth), (real.lag, real.growth));
            for (shown, real) in so_far.workers.iter().zip(&ended.workers) {
                assert_eq!(shown.queue_depth, real.queue_depth);
                // The number of Poisson arrivals that are left is not counted before the end.
                let known = |ledger: Ledger| Ledger { due: 0, unstarted: 0, ..ledger };
                assert_eq!(known(shown.ledger), known(real.ledger));
                assert!(shown.ledger.balances());
            }
        }
    }
}

#[test]
fn a_backlog_grows_by_what_is_not_served() {
    // The load is half more than the device serves. After the window it is behind by a third of the
    // time.
    let mut point = lasting(10, open(120e3, Arrivals::Uniform, 32));
    point.looks = Vec::from([2, 6].map(Span::from_secs));
    let device = "queue,servers=8,service-time=100us";
    let (record, seen) = looked_at(device, &point, 0);
    for (record, seconds) in [(&seen[0], 2.0), (&seen[1], 6.0), (&record, 10.0)] {
        let backlog = record.backlog(0).expect("an open loop");
        assert_near(backlog.lag.as_secs_f64(), seconds / 3.0, 0.001);
        assert_near(backlog.growth, 1.0 / 3.0, 0.001);
        assert_near(backlog.unstarted as f64, 40e3 * seconds, 0.001);
    }
    // If everything is served, there is no backlog.
    let (record, _) = looked_at(device, &lasting(10, open(60e3, Arrivals::Uniform, 32)), 0);
    let backlog = record.backlog(0).expect("an open loop");
    assert_eq!((backlog.lag, backlog.unstarted, backlog.growth), (Span(0), 0, 0.0));
    // A stall that is over: the rest of its backlog shrinks.
    let stalled = format!("{device},stall=3s+2s");
    let backlog = run(&stalled, &lasting(10, open(60e3, Arrivals::Uniform, 32))).backlog(0);
    let backlog = backlog.expect("an open loop");
    assert!(backlog.lag > Span(0) && backlog.growth < 0.0, "{backlog:?}");
}
