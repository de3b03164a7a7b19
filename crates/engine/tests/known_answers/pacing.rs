//! Tests what sets the pace: the offered load is the requested load at every time.

use fathom_core::spec::{
    Active, Arrivals, Course, Limit, Loop, OfferedLoad, RestFrom, Rests, Stage, Workers,
};

use super::*;

/// A course of stages: seconds, and the rates at the beginning and at the end.
fn course(stages: &[(u64, f64, f64)]) -> Course {
    let stage = |&(seconds, begins, ends): &(u64, f64, f64)| Stage {
        lasts: Span::from_secs(seconds),
        begins: Rate(begins),
        ends: Rate(ends),
    };
    Course::new(stages.iter().map(stage).collect())
}

/// Makes an open loop offer this course.
fn change(stream: &mut Stream, course: Course) {
    let Loop::Open { load, .. } = &mut stream.pacing.pace else { panic!("a closed loop") };
    *load = OfferedLoad::Course(course);
}

/// Makes a closed loop rest in this way.
fn rest(stream: &mut Stream, how: Rests) {
    let Loop::Closed { rests, .. } = &mut stream.pacing.pace else { panic!("an open loop") };
    *rests = how;
}

#[test]
fn every_interval_has_the_integral_of_its_course() {
    let course = course(&[(3, 1e3, 1e3), (6, 1e3, 2e4), (2, 0.0, 0.0), (0, 5e3, 5e3)]);
    for arrivals in [Arrivals::Uniform, Arrivals::Poisson] {
        let point = lasting(15, open(1.0, arrivals, 1000));
        let point = Point { warm_up: Span::from_ms(700), interval: Span::from_ms(100), ..point };
        let point = with(point, |stream| change(stream, course.clone()));
        let record = run("queue,servers=64,service-time=100us", &point);
        let mut sum = 0.0;
        for interval in &record.series {
            let end = interval.start + interval.length;
            let expected = course.mean(interval.start, end).0 * interval.length.as_secs_f64();
            // The I/Os in flight at either end, or five standard deviations of a Poisson count.
            let off = (interval.ios[0] as f64 - expected).abs();
            let most = match arrivals {
                Arrivals::Uniform => 4.0,
                Arrivals::Poisson => 4.0 + 5.0 * expected.sqrt(),
            };
            assert!(off <= most, "{arrivals:?} {}: {off} of {expected}", interval.start);
            sum += expected;
        }
        assert_near(record.total(None).ios() as f64, sum, 0.02);
        // 1000/s during the warm-up, as at the start of the course.
        let ledger = record.ledger();
        assert!(ledger.completed_in_warm_up.abs_diff(700) < 100, "{ledger:?}");
        assert_eq!(ledger.unstarted, 0);
    }
}

#[test]
fn what_a_course_offers_beyond_the_target_is_backlog_and_is_worked_off_after_it() {
    // The device can do 10,000/s. 20,000/s for 2 s leave a backlog of 20,000, which takes 4 s at
    // 5,000/s.
    let course = course(&[(2, 5e3, 5e3), (2, 2e4, 2e4), (0, 5e3, 5e3)]);
    let point = lasting(10, open(1.0, Arrivals::Uniform, 8));
    let point = with(point, |stream| change(stream, course));
    let record = run("queue,servers=1,service-time=100us", &point);
    let per_second: Vec<u64> = record.series.iter().map(|interval| interval.ios[0]).collect();
    let expected = [5e3, 5e3, 1e4, 1e4, 1e4, 1e4, 1e4, 1e4, 5e3, 5e3];
    for (ios, expected) in per_second.iter().zip(expected) {
        assert_near(*ios as f64, expected, 0.01);
    }
    // The last I/O of the peak waited for the 20,000 before it.
    assert_near(record.total(None).response_time().max().unwrap() as f64, 2e9, 0.01);
    assert_eq!(record.ledger().unstarted, 0);
}

fn thinking(point: Point, time: Span, exponential: bool) -> Point {
    with(point, |stream| rest(stream, Rests::Think { time, exponential }))
}

#[test]
fn the_interactive_response_time_law_holds() {
    // X = N / (R + Z), whatever R is: without waiting, with a queue, and with random times.
    let exponential = "queue,servers=2,service-time=200us,distribution=exponential";
    for (device, depth, seconds, exact) in [
        ("queue,servers=64,service-time=100us", 1, 60, Some(100e3)),
        ("queue,servers=64,service-time=100us", 64, 2, Some(100e3)),
        ("queue,servers=1,service-time=100us", 32, 30, None),
        (exponential, 16, 60, None),
    ] {
        for (us, drawn) in [(50, false), (1000, false), (1000, true)] {
            let point = thinking(lasting(seconds, closed(depth)), Span::from_us(us), drawn);
            let record = run(device, &point);
            let response = mean(&record.total(None).service_time);
            let law = f64::from(depth) * 1e9 / (response + us as f64 * 1e3);
            assert_near(iops(&record), law, if drawn { 0.02 } else { 0.002 });
            // An I/O in its think time is not in flight: Little's law.
            assert_near(record.queue_depth(), iops(&record) * response / 1e9, 0.002);
            if let Some(exact) = exact {
                assert_near(response, exact, 1e-6);
            }
        }
    }
}

#[test]
fn users_who_think_at_one_server_are_the_machine_repair_model() {
    // M/M/1 with N customers: p0 = 1 / sum N! / (N - k)! (S / Z)^k, X = (1 - p0) / S.
    let device = "queue,servers=1,service-time=1ms,distribution=exponential";
    for (users, think_ms) in [(1, 1.0), (4, 5.0), (10, 8.0)] {
        let ratio = 1.0 / think_ms;
        let mut term = 1.0;
        let mut sum = 1.0;
        for k in 0..users {
            term *= f64::from(users - k) * ratio;
            sum += term;
        }
        let exact = (1.0 - 1.0 / sum) / 1e-3;
        let time = Span::from_us((think_ms * 1e3) as u64);
        let record = run(device, &thinking(lasting(300, closed(users)), time, true));
        assert_near(iops(&record), exact, 0.02);
    }
}

#[test]
fn bursts_come_with_rests_between_them() {
    let device = "queue,servers=4,service-time=100us";
    for (depth, ios, rounds) in [(1, 10, 10), (4, 10, 3), (4, 4, 1), (16, 10, 3), (32, 4, 1)] {
        let point = with(lasting(10, closed(depth)), |stream| {
            rest(
                stream,
                Rests::Bursts { ios, rest: Span::from_ms(2), from: RestFrom::LastCompletion },
            );
        });
        let record = run(device, &point);
        // A burst takes as many rounds of the servers as it needs. Its pause comes after that.
        let cycle = f64::from(rounds) * 100e-6 + 2e-3;
        assert_near(iops(&record), f64::from(ios) / cycle, 0.001);
        assert!(record.ledger().balances());
    }
}

#[test]
fn a_rest_that_begins_with_the_last_start_overlaps_the_last_ios() {
    let device = "queue,servers=4,service-time=100us";
    for (depth, ios, rest_us, cycle_us) in [
        // Ten I/Os one after the other. The rest counts from the last start. The first rest is over
        // before the last I/O ends.
        (1, 10, 50, 1000),
        (1, 10, 2000, 900 + 2000),
        (4, 4, 2000, 2000),
        // Three rounds of four; the last round has two I/Os.
        (4, 10, 2000, 200 + 2000),
    ] {
        let point = with(lasting(10, closed(depth)), |stream| {
            let pause = Span::from_us(rest_us);
            rest(stream, Rests::Bursts { ios, rest: pause, from: RestFrom::LastStart });
        });
        let record = run(device, &point);
        assert_near(iops(&record), f64::from(ios) / (f64::from(cycle_us) * 1e-6), 0.001);
    }
}

#[test]
fn an_open_loop_in_bursts_keeps_its_rate_and_its_rests() {
    for (ios, rest_us) in [(10, 5_000), (10, 10_000), (1, 1_000), (64, 100)] {
        for workers in [1, 4] {
            let rate = 1000.0 * f64::from(workers);
            let point = with(lasting(10, open(rate, Arrivals::Uniform, 1024)), |stream| {
                let rest = Span::from_us(rest_us);
                let Loop::Open { load, .. } = &mut stream.pacing.pace else { panic!("closed") };
                *load = OfferedLoad::Bursts { rate: Rate(rate), ios, rest };
                stream.workers = Workers::Total(workers);
            });
            let record = run("queue,servers=64,service-time=100us", &point);
            let total = record.total(None);
            // I/Os that fall due in the last rest start after the window.
            let waits = f64::from(workers) * (rest_us as f64 * 1e-3 + 1.0);
            assert!((total.ios() as f64 - rate * 10.0).abs() <= waits, "{ios}/{rest_us}");
            // The intended start is the one that the bursts allow.
            assert_eq!(total.response_time().max(), Some(100_000), "{ios}/{rest_us}");
        }
    }
}

#[test]
fn a_stream_has_load_from_its_start_to_its_end_and_nowhere_else() {
    let s = Span::from_secs;
    let active = Active { start: Some(s(3)), end: Some(s(7)) };
    let rises = course(&[(2, 1e3, 3e3)]);
    for (point, expected) in [
        (closed(4), [40e3, 40e3, 40e3, 40e3]),
        (thinking(closed(4), Span::from_us(100), false), [20e3, 20e3, 20e3, 20e3]),
        (open(5e3, Arrivals::Uniform, 64), [5e3, 5e3, 5e3, 5e3]),
        (
            with(open(1.0, Arrivals::Uniform, 64), |stream| change(stream, rises.clone())),
            [1.5e3, 2.5e3, 3e3, 3e3],
        ),
    ] {
        let point = Point { warm_up: s(2), ..lasting(10, point) };
        let record = run("queue,servers=8", &with(point, |stream| stream.pacing.active = active));
        let per_second: Vec<u64> = record.series.iter().map(|interval| interval.ios[0]).collect();
        let idle = |ios: &[u64]| ios.iter().all(|&ios| ios <= 4);
        assert!(idle(&per_second[..3]) && idle(&per_second[7..]), "{per_second:?}");
        for (ios, expected) in per_second[3..7].iter().zip(expected) {
            assert_near(*ios as f64, expected, 0.002);
        }
        let ledger = record.ledger();
        assert_eq!((ledger.completed_in_warm_up, ledger.unstarted), (0, 0));
    }
    // Without its own start the stream also has load in the warm-up.
    let until = Active { start: None, end: Some(s(1)) };
    let point = Point { warm_up: s(2), ..lasting(3, open(1e3, Arrivals::Uniform, 64)) };
    let record = run("queue,servers=8", &with(point, |stream| stream.pacing.active = until));
    assert_eq!(record.ledger().completed_in_warm_up, 2000);
    assert_eq!(record.total(None).ios(), 1000);
}

/// The number of I/Os of a stream, and how many of them came back after the window.
fn done(record: &Record) -> (u64, u64) {
    let ledger = record.ledger();
    (ledger.completed_in_warm_up + ledger.completed + ledger.failed, ledger.in_flight)
}

#[test]
fn a_stream_with_a_limit_does_so_much_to_the_io_and_the_run_ends_with_the_last_of_it() {
    let device = "queue,servers=4,service-time=100us";
    for workers in [1, 3, 8] {
        for (limit, ios) in [
            (Limit::Ios(100_003), 100_003),
            (Limit::Bytes(Bytes(40_000 * 4 * KIB + 1)), 40_001),
            (Limit::Ios(2), 2),
        ] {
            let point = with(lasting(3600, closed(16)), |stream| {
                (stream.workers, stream.pacing.limit) = (Workers::Total(workers), Some(limit));
            });
            let record = run(device, &point);
            assert_eq!(done(&record), (ios, 0), "{limit}");
            assert!(!record.interrupted);
            // Four servers, each busy until its last I/O, plus one nanosecond.
            let rounds = ios.div_ceil(4);
            let least = rounds * 100_000 + 1;
            // Near the end a worker may leave its servers unused.
            assert!((least..least + 5_000_000).contains(&record.window.0), "{}", record.window);
        }
    }
}

#[test]
fn a_pass_covers_every_block_of_the_region_once() {
    for pattern in [Pattern::SEQUENTIAL, Pattern::Interlocked { stride: None }, Pattern::Shuffled] {
        for (workers, passes) in [(1, 1), (4, 1), (4, 2)] {
            let point = with(lasting(60, closed(8)), |stream| {
                stream.regions[0].length = Bytes(1000 * 4 * KIB);
                stream.kind_mut().pattern = pattern.clone();
                (stream.workers, stream.pacing.limit) =
                    (Workers::Total(workers), Some(Limit::Passes(passes)));
            });
            let record = run("queue,servers=8", &point);
            assert_eq!(done(&record), (1000 * u64::from(passes), 0), "{pattern}");
        }
    }
}

#[test]
fn other_streams_go_on_until_those_with_a_limit_are_done() {
    let mut point = lasting(60, closed(2));
    let mut bounded = point.streams[0].clone();
    bounded.pacing.limit = Some(Limit::Ios(50_000));
    point.streams.push(bounded);
    let options = "queue,servers=4,service-time=100us".parse().unwrap();
    let never = AtomicBool::new(false);
    let record = run_point(&point, Devices::Simulated(&options), &never, &mut Nobody).unwrap();
    assert!(record.ledger().balances() && !record.interrupted);
    let of = |stream| record.workers.iter().find(move |worker| worker.stream == stream).unwrap();
    assert_eq!(of(1).ledger.completed, 50_000);
    assert!(of(0).ledger.completed.abs_diff(50_000) <= 4);
    assert_near(record.window.as_secs_f64(), 2.5, 0.001);
    let lengths = |stream| -> u64 {
        record.series.iter().filter(|one| one.stream == stream).map(|one| one.length.0).sum()
    };
    assert_eq!([lengths(0), lengths(1)], [record.window.0; 2]);
}

#[test]
fn blocks_of_several_sizes_stop_with_the_one_that_reaches_the_limit() {
    let sizes = [(Bytes(4 * KIB), 1.0), (Bytes(64 * KIB), 1.0)];
    let point = with(lasting(60, closed(16)), |stream| {
        stream.kind_mut().block_sizes = BlockSizes::weighted(&sizes, &sizes);
        stream.pacing.limit = Some(Limit::Bytes(Bytes(100 * MIB)));
    });
    let options = "queue,servers=4".parse().unwrap();
    let never = AtomicBool::new(false);
    let record = run_point(&point, Devices::Simulated(&options), &never, &mut Nobody).unwrap();
    assert_eq!(done(&record).1, 0);
    let bytes = record.total(None).bytes.0;
    assert!((100 * MIB..100 * MIB + 64 * KIB).contains(&bytes), "{bytes}");
}

#[test]
fn a_time_that_comes_first_ends_a_stream_with_a_limit_as_any_other() {
    let point = with(lasting(2, open(1e3, Arrivals::Uniform, 64)), |stream| {
        stream.pacing.limit = Some(Limit::Ios(10_000));
    });
    let record = run("queue", &point);
    assert_eq!((record.window, record.total(None).ios()), (Span::from_secs(2), 2000));
}

#[test]
fn a_cool_down_changes_nothing_of_what_is_recorded() {
    let s = Span::from_secs;
    let limited = |point, ios| with(point, |stream| stream.pacing.limit = Some(Limit::Ios(ios)));
    let burst = |point| {
        with(point, |stream| {
            rest(
                stream,
                Rests::Bursts { ios: 7, rest: Span::from_us(350), from: RestFrom::LastCompletion },
            );
        })
    };
    let flushed = |point| {
        with(point, |stream| {
            stream.kind_mut().read_share = 0.2;
            stream.flush = Some(fathom_core::spec::Flush::DATA);
        })
    };
    let course = |point| {
        with(point, |stream| {
            change(stream, course(&[(1, 5e3, 1e4), (1, 1e4, 2e4)]));
        })
    };
    let mut together = lasting(2, closed(3));
    together.streams.push(open(9e3, Arrivals::Poisson, 4).streams.remove(0));
    together.streams.push(limited(closed(2), 10_000).streams.remove(0));
    let mut all_done = lasting(60, limited(closed(2), 10_000));
    all_done.streams.push(limited(closed(2), 20_000).streams.remove(0));
    let until = Active { start: Some(Span::from_ms(300)), end: Some(Span::from_ms(1700)) };
    for (what, point) in [
        ("closed", lasting(2, closed(16))),
        ("thinking", thinking(lasting(2, closed(16)), Span::from_us(77), true)),
        ("bursts", burst(lasting(2, closed(4)))),
        ("flushed", flushed(lasting(2, closed(16)))),
        ("uniform", lasting(2, open(2e4, Arrivals::Uniform, 64))),
        ("overloaded", lasting(2, open(5e4, Arrivals::Uniform, 8))),
        ("Poisson, overloaded", lasting(2, open(5e4, Arrivals::Poisson, 8))),
        ("a course", course(lasting(2, open(1.0, Arrivals::Poisson, 8)))),
        ("a part of the time", with(lasting(2, closed(4)), |stream| stream.pacing.active = until)),
        ("a limit", lasting(60, limited(closed(4), 20_000))),
        ("a limit that is not reached", lasting(1, limited(closed(4), 1_000_000))),
        ("several workers", with(lasting(2, closed(16)), |s| s.workers = Workers::Total(4))),
        ("several streams", together),
        ("streams that are done", all_done),
    ] {
        let point = Point { warm_up: Span::from_ms(300), ..point };
        let options = "queue,servers=4,distribution=exponential,error=1%".parse().unwrap();
        let record = |point: &Point| {
            let never = AtomicBool::new(false);
            run_point(point, Devices::Simulated(&options), &never, &mut Nobody).unwrap()
        };
        let without = record(&point);
        let with = record(&Point { cool_down: s(3), ..point });
        assert!(without.ledger().completed > 0, "{what}");
        assert_eq!(without, with, "{what}");
    }
}
