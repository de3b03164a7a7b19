//! Tests several workers and several streams on one simulated device, in one virtual time.

use fathom_core::measure::WorkerRecord;
use fathom_core::spec::{Arrivals, Flush, Pacing, Workers};

use super::*;

const S_NS: f64 = 100e3;

/// A queue whose service times are exponential with a mean of 100 us.
fn exponential(servers: u32) -> String {
    format!("queue,servers={servers},service-time=100us,distribution=exponential")
}

/// Several streams for a minute.
fn streams(pacings: &[Pacing]) -> Point {
    let mut point = lasting(60, closed(1));
    let stream = point.streams.remove(0);
    point.streams =
        pacings.iter().cloned().map(|pacing| Stream { pacing, ..stream.clone() }).collect();
    point
}

fn workers(number: u32, point: Point) -> Point {
    with(point, |stream| stream.workers = Workers::Total(number))
}

fn poisson(rate: f64) -> Pacing {
    Pacing::open(Rate(rate), Arrivals::Poisson, 10_000)
}

/// The I/Os of all workers of a stream.
fn of_stream(record: &Record, stream: u32) -> Flow {
    record.sum(None, |worker, _| worker.stream == stream)
}

fn per_second(record: &Record, flow: &Flow) -> f64 {
    flow.ios() as f64 / record.window.as_secs_f64()
}

/// In flight = rate x time, for every worker and for all workers together.
fn assert_little(record: &Record) {
    let check = |flow: &Flow, depth: f64| {
        let rate = per_second(record, flow);
        assert_near(depth, rate * mean(&flow.service_time) / 1e9, 0.005);
    };
    for worker in &record.workers {
        let same =
            |other: &WorkerRecord| (other.stream, other.worker) == (worker.stream, worker.worker);
        check(&record.sum(None, |other, _| same(other)), worker.queue_depth);
    }
    check(&record.total(None), record.queue_depth());
}

#[test]
fn two_closed_loops_share_servers_as_their_depths_do() {
    // All I/Os in flight are alike: X = c / S, and each stream gets its share of it. Each I/O takes
    // n / X.
    let closed = |queue_depth| Pacing::closed(queue_depth);
    for (depths, servers) in [([6, 10], 4), ([1, 15], 8), ([3, 3], 1)] {
        let point = Point { window: Span::from_secs(20), ..streams(&depths.map(closed)) };
        let record = run(&exponential(servers), &point);
        let all = f64::from(servers) / S_NS * 1e9;
        let in_flight = f64::from(depths[0] + depths[1]);
        for (stream, depth) in (0..).zip(depths) {
            let flow = of_stream(&record, stream);
            assert_near(per_second(&record, &flow), all * f64::from(depth) / in_flight, 0.01);
            assert_near(mean(&flow.service_time), in_flight / all * 1e9, 0.01);
        }
        assert_little(&record);
    }
}

#[test]
fn an_open_and_a_closed_loop_share_a_server_as_a_mixed_network_does() {
    // One exponential server. The closed loop always has n I/Os in it, and the open loop takes the
    // share r = l S. Mean value analysis of mixed networks: X = (1 - r) / S for the closed loop,
    // and R = S (1 + n) / (1 - r) for the open one.
    for (depth, rate) in [(1, 2e3), (3, 4e3), (8, 6e3)] {
        let point = streams(&[Pacing::closed(depth), poisson(rate)]);
        let record = run(&exponential(1), &point);
        let left = 1.0 - rate * S_NS / 1e9;
        let (closed, open) = (of_stream(&record, 0), of_stream(&record, 1));
        assert_near(per_second(&record, &closed), left / S_NS * 1e9, 0.01);
        assert_near(mean(&closed.service_time), f64::from(depth) * S_NS / left, 0.01);
        assert_near(per_second(&record, &open), rate, 0.01);
        assert_near(mean(open.response_time()), S_NS * f64::from(1 + depth) / left, 0.03);
        assert_little(&record);
    }
}

#[test]
fn the_poisson_arrivals_of_many_workers_are_those_of_one() {
    // M/M/1 with the sum of the workers' rates.
    for number in [2, 7, 64] {
        let point = workers(number, lasting(100, point(poisson(5e3))));
        let record = run(&exponential(1), &point);
        assert_eq!(record.workers.len(), number as usize);
        assert_near(iops(&record), 5e3, 0.01);
        assert_near(mean(record.total(None).response_time()), 2.0 * S_NS, 0.03);
    }
}

#[test]
fn the_uniform_arrivals_of_many_workers_take_turns() {
    // A server that is busy for 100 us of each 125 us, with four workers in turn: no I/O waits.
    let point = workers(4, lasting(10, open(8e3, Arrivals::Uniform, 16)));
    let record = run("queue,servers=1,service-time=100us", &point);
    assert_eq!(record.total(None).response_time().max(), Some(100_000));
    assert_eq!(record.ledger().due, 80_000);
    assert!(record.workers.iter().all(|worker| worker.ledger.due == 20_000));
}

#[test]
fn many_workers_reach_what_one_does_with_their_slots() {
    for device in ["queue,servers=8", "ssd"] {
        let one = run(device, &closed(32));
        for number in [2, 5, 32] {
            let record = run(device, &workers(number, closed(32)));
            assert_near(iops(&record), iops(&one), 0.02);
            assert_near(record.queue_depth(), 32.0, 1e-6);
        }
    }
}

#[test]
fn a_seed_repeats_the_record_of_many_workers_and_another_does_not() {
    let mixed = |seed| {
        let pacings = [poisson(20e3), Pacing::closed(9), poisson(3e3)];
        let mut point = Point { seed, window: Span::from_secs(2), ..streams(&pacings) };
        for (stream, read_share) in point.streams.iter_mut().zip([1.0, 0.5, 0.0]) {
            stream.kind_mut().read_share = read_share;
            stream.workers = Workers::Total(3);
        }
        point
    };
    for device in ["queue,distribution=exponential,stall=1s+10ms", "ssd,noise=5%", "hdd,error=1%"] {
        assert_eq!(run(device, &mixed(7)), run(device, &mixed(7)), "{device}");
        assert_ne!(run(device, &mixed(7)), run(device, &mixed(8)), "{device}");
    }
}

#[test]
fn a_stream_of_writes_slows_the_reads_of_another_down() {
    let p95 = |write_depth: Option<u32>| {
        let writes = write_depth.map(Pacing::closed);
        let pacings: Vec<Pacing> = std::iter::once(poisson(50e3)).chain(writes).collect();
        let mut point = Point { window: Span::from_secs(2), ..streams(&pacings) };
        point.streams[1..].iter_mut().for_each(|stream| stream.kind_mut().read_share = 0.0);
        quantile(of_stream(&run("ssd", &point), 0).response_time(), 0.95)
    };
    let times = [None, Some(1), Some(32)].map(p95);
    assert!(times.is_sorted_by(|a, b| a < b), "{times:?}");
}

#[test]
fn each_worker_is_in_the_warm_up_and_in_the_window_at_the_same_time() {
    let point = Point { warm_up: Span::from_secs(1), ..workers(4, lasting(2, closed(8))) };
    let record = run("queue,servers=8", &point);
    for worker in &record.workers {
        let ledger = worker.ledger;
        assert!(ledger.completed_in_warm_up.abs_diff(20_000) <= 2, "{ledger:?}");
        assert!(ledger.completed.abs_diff(40_000) <= 2, "{ledger:?}");
        assert_eq!(ledger.in_flight, 2);
    }
}

#[test]
fn what_a_device_keeps_is_lost_for_each_worker_and_the_others_go_on() {
    let record = run("queue,hang-after=500ms", &workers(4, closed(16)));
    assert!(record.workers.iter().all(|worker| worker.ledger.lost == 4));
    // A worker that gets only failures gives up. All of them do, each at its own time.
    let record = run("queue,error=1", &workers(3, lasting(60, closed(3))));
    assert!(record.interrupted && record.workers.iter().all(|worker| worker.gave_up));
}

#[test]
fn stopping_ends_all_workers_at_one_instant() {
    let stop = AtomicBool::new(false);
    let mut observer = Impatient { stop: &stop, slices: 5, seen: Vec::new() };
    let options = "queue".parse().expect("a device");
    let point = workers(5, lasting(60, closed(10)));
    let record = run_point(&point, Devices::Simulated(&options), &stop, &mut observer);
    let record = record.expect("a simulated device can always be opened");
    assert!(record.interrupted && record.ledger().balances());
    assert!(record.window >= Span::from_secs(5) && record.window < Span::from_secs(6));
    // The series contains all counted I/Os, and none after the end.
    assert_eq!(record.total(None).ios(), record.ledger().completed);
    let in_series: u64 = record.series.iter().map(|interval| interval.ios[0]).sum();
    assert_eq!(in_series, record.ledger().completed);
    assert!(record.series.iter().all(|one| one.start + one.length <= record.window));
}

#[test]
fn workers_on_one_device_flush_each_on_its_own() {
    // Four writes at once take 100 us, and a flush takes no time. The load is as fast as without
    // flushes.
    let point = with(workers(2, closed(8)), |stream| {
        stream.kind_mut().read_share = 0.0;
        stream.flush = Some(Flush { every: 4, data_only: true, barrier: true });
    });
    let record = run("queue,servers=8,service-time=100us", &point);
    let writes = record.total(Some(Direction::Write)).ios();
    assert_near(writes as f64, 80_000.0, 0.001);
    for worker in &record.workers {
        let own = |other: &WorkerRecord| other.worker == worker.worker;
        let flushes = record.upkeep(Upkeep::Flush, |other, _| own(other)).ios();
        let writes = record.sum(Some(Direction::Write), |other, _| own(other)).ios();
        assert!((writes / 4).abs_diff(flushes) <= 1, "{writes} writes, {flushes} flushes");
    }
}
