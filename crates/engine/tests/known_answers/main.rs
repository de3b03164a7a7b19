//! Tests the real loop against simulated devices whose answers follow from theory.
//!
//! Everything here runs in virtual time from fixed seeds. It gives the same figures on every
//! machine, however busy, and an hour of load takes seconds. Each tolerance fits the question.
//! Where chance is involved, it is several standard deviations of the figure.

mod change;
mod looks;
mod models;
mod pacing;
mod peak;
mod together;

use std::sync::atomic::{AtomicBool, Ordering};

use fathom_core::measure::{Direction, ErrorKind, Flow, Histogram, IoError, Record, Upkeep};
use fathom_core::spec::{
    Arrivals, BlockSizes, Kind, Pacing, Pattern, Point, Region, Stream, Workers,
};
use fathom_core::{Bytes, Quantile, Rate, Span};
use fathom_engine::{Devices, Nobody, Observer, Progress, run_point, sim};

const KIB: u64 = Bytes::KIB;
const MIB: u64 = Bytes::MIB;
const MS: f64 = 1e6;

/// Random reads of 4 KiB over 1 GiB, for a second, without warm-up.
fn point(pacing: Pacing) -> Point {
    Point {
        name: "known answer".to_owned(),
        interval: Span::from_ms(100),
        ..Point::of(
            Vec::from([Stream {
                ios: Kind { block_sizes: BlockSizes::one(Bytes(4 * KIB)), ..Kind::default() }
                    .into(),
                pacing,
                ..Stream::reading(
                    "load",
                    Vec::from([Region { target: 0, offset: Bytes(0), length: Bytes(1 << 30) }]),
                )
            }]),
            Span::from_secs(1),
        )
    }
}

fn closed(queue_depth: u32) -> Point {
    point(Pacing::closed(queue_depth))
}

fn open(offered_load: f64, arrivals: Arrivals, queue_depth_max: u32) -> Point {
    point(Pacing::open(Rate(offered_load), arrivals, queue_depth_max))
}

/// A point that lasts the given seconds, with an interval of the series for each second.
fn lasting(seconds: u64, point: Point) -> Point {
    Point { window: Span::from_secs(seconds), interval: Span::from_secs(1), ..point }
}

/// A point with a change to its only stream.
fn with(mut point: Point, change: impl FnOnce(&mut Stream)) -> Point {
    change(&mut point.streams[0]);
    point
}

/// Runs the point, and checks what must hold for every record.
fn run(device: &str, point: &Point) -> Record {
    let options = device.parse().expect(device);
    let never = AtomicBool::new(false);
    let record = run_point(point, Devices::Simulated(&options), &never, &mut Nobody);
    let record = record.expect("a simulated device can always be opened");
    check_books(point, &record);
    record
}

fn check_books(point: &Point, record: &Record) {
    let ledger = record.ledger();
    assert!(ledger.balances(), "{ledger:?}");
    let total = record.total(None);
    let upkeep = Upkeep::ALL.map(|what| record.upkeep(what, |_, _| true).ios());
    assert_eq!(total.ios() + upkeep.iter().sum::<u64>(), ledger.completed);
    assert_eq!(total.bytes.0, total.ios() * point.streams[0].block_sizes().largest().0);
    assert_eq!(total.response_time().count(), total.ios());
    let reads_and_writes = Direction::BOTH.map(|one| record.total(Some(one)).ios());
    assert_eq!(reads_and_writes.iter().sum::<u64>(), total.ios());
    let in_series = record.series.iter().flat_map(|interval| interval.bytes);
    assert_eq!(in_series.map(|bytes| bytes.0).sum::<u64>(), total.bytes.0);
    let lengths: u64 = record.series.iter().map(|interval| interval.length.0).sum();
    assert_eq!(lengths, point.streams.len() as u64 * record.window.0);
    assert!(record.errors() >= ledger.failed + ledger.lost);
    let slots: u32 = point.streams.iter().map(|stream| stream.pacing.queue_depth()).sum();
    assert!(record.queue_depth() <= f64::from(slots) + 1e-9);
}

fn iops(record: &Record) -> f64 {
    record.total(None).ios() as f64 / record.window.as_secs_f64()
}

/// Nanoseconds.
fn mean(histogram: &Histogram) -> f64 {
    histogram.mean().expect("something was recorded")
}

/// Nanoseconds.
fn quantile(histogram: &Histogram, quantile: f64) -> f64 {
    histogram.quantile(Quantile(quantile)).expect("something was recorded") as f64
}

#[track_caller]
fn assert_near(measured: f64, expected: f64, share: f64) {
    let off = measured / expected - 1.0;
    assert!(off.abs() <= share, "{measured} instead of {expected}: off by {:.3} %", off * 100.0);
}

// Closed loops.

#[test]
fn a_closed_loop_reaches_its_depth_over_the_service_time_up_to_the_servers() {
    for (depth, expected) in [(1, 10e3), (2, 20e3), (8, 80e3), (32, 80e3)] {
        let record = run("queue,servers=8,service-time=100us", &closed(depth));
        assert_near(iops(&record), expected, 0.01);
        // The service time is the depth divided by the IOPS: more than 8 I/Os take turns at the 8
        // servers.
        let service_time = mean(&record.total(None).service_time);
        assert_near(service_time, f64::from(depth) / expected * 1e9, 0.01);
    }
}

#[test]
fn a_closed_loop_of_exponential_servers_does_not_depend_on_its_luck() {
    // There are as many servers as I/Os in flight, and each server is busy all the time.
    let device = "queue,servers=4,service-time=100us,distribution=exponential";
    assert_near(iops(&run(device, &lasting(20, closed(4)))), 40e3, 0.01);
}

#[test]
fn littles_law_holds_in_every_loop_on_every_device() {
    let exponential = "queue,servers=4,service-time=200us,distribution=exponential";
    for (device, point) in [
        ("queue", closed(3)),
        ("queue", closed(32)),
        (exponential, closed(16)),
        (exponential, open(15e3, Arrivals::Poisson, 1_000)),
        ("ssd", closed(64)),
        ("ssd", with(closed(16), |stream| stream.kind_mut().read_share = 0.5)),
        ("ssd", open(100e3, Arrivals::Uniform, 100)),
        ("hdd", lasting(20, closed(8))),
    ] {
        let record = run(device, &lasting(20, point));
        let formula = iops(&record) * mean(&record.total(None).service_time) / 1e9;
        assert_near(record.queue_depth(), formula, 0.002);
    }
}

// Open loops: M/M/1 and M/D/1.

/// The number of I/Os with which the mean of an M/M/1 queue at a load of 0.8 has a standard error
/// of 0.45 %. Its asymptotic variance is r (2 + 5 r - 4 r^2 + r^3) / (1 - r)^4 per I/O.
const ENOUGH: f64 = 4e6;

fn single_server(distribution: &str, load: f64, queue_depth_max: u32) -> Flow {
    let device = format!("queue,servers=1,service-time=100us,distribution={distribution}");
    let rate = load / 100e-6;
    let seconds = (ENOUGH / rate).ceil() as u64;
    let mut point = lasting(seconds, open(rate, Arrivals::Poisson, queue_depth_max));
    point.warm_up = Span::from_secs(1);
    let record = run(&device, &point);
    assert_near(iops(&record), rate, 0.005);
    // I/Os that wait outside the device when the window ends are unstarted: at most the tail of the
    // queue.
    assert!(record.ledger().unstarted < 100);
    assert!(queue_depth_max == 1 || record.ledger().unstarted == 0);
    record.total(None)
}

#[test]
fn mm1_response_time_is_the_service_time_over_one_minus_the_load() {
    for load in [0.3, 0.5, 0.8] {
        // The queue depth is larger than such a queue ever gets, so no I/O waits outside. The time
        // at the device is the whole response time.
        let flow = single_server("exponential", load, 4096);
        let formula = 100e3 / (1.0 - load);
        assert_near(mean(flow.response_time()), formula, 0.02);
        assert_eq!(&flow.service_time, flow.response_time());
        // The distribution is exponential, too.
        for q in [0.5, 0.9, 0.99] {
            assert_near(quantile(flow.response_time(), q), -formula * (1.0 - q).ln(), 0.03);
        }
    }
}

#[test]
fn waiting_outside_is_in_the_response_time_and_not_in_the_service_time() {
    for load in [0.5, 0.8] {
        // One at a time at the device: the queue is on our side, and the user's wait is the same.
        let flow = single_server("exponential", load, 1);
        assert_near(mean(flow.response_time()), 100e3 / (1.0 - load), 0.02);
        assert_near(mean(&flow.service_time), 100e3, 0.01);
    }
}

#[test]
fn md1_response_time_is_that_of_pollaczek_and_khinchine() {
    for load in [0.3, 0.5, 0.8] {
        for (depth, service_is_response) in [(4096, true), (1, false)] {
            let flow = single_server("constant", load, depth);
            let formula = 100e3 * (1.0 + load / (2.0 * (1.0 - load)));
            assert_near(mean(flow.response_time()), formula, 0.02);
            let service_time = if service_is_response { formula } else { 100e3 };
            assert_near(mean(&flow.service_time), service_time, 0.02);
        }
    }
}

#[test]
fn uniform_arrivals_below_capacity_never_wait() {
    let record = run("queue,servers=1,service-time=100us", &open(9e3, Arrivals::Uniform, 64));
    let total = record.total(None);
    assert_eq!(total.response_time().max(), Some(100_000));
    assert!((8_999..=9_000).contains(&total.ios()), "{}", total.ios());
}

// Stalls and overload.

#[test]
fn a_stall_is_in_the_p99_of_the_response_time_and_not_of_the_service_time() {
    // 20 s at 2000 I/Os per second with one second of stall: 2000 of 40,000 I/Os fall due in the
    // stall. Afterwards the device works off the queue at m I/Os per second, and 2000 m / (m -
    // 2000) I/Os have waited in all. Their response times decrease evenly from one second to zero.
    // So 1 % of all I/Os, 400, took at least 1 s (1 - 400 / (2000 m / (m - 2000))).
    //
    // The number of I/Os with a long service time depends on queue_depth_max: only the I/Os in
    // flight at the start of the stall have one. While these are less than 1 % of all I/Os, the p99
    // of the service time does not show the stall. With a maximum of 4000 it shows the same as the
    // response time, because every waiting I/O was at the device.
    let point = |depth| lasting(20, open(2e3, Arrivals::Uniform, depth));
    let device = "queue,servers=8,service-time=100us,stall=5s+1s";
    for (depth, most) in [(1, 10e3), (32, 80e3), (256, 80e3)] {
        let total = run(device, &point(depth)).total(None);
        let waited = 2000.0 * most / (most - 2000.0);
        let formula = 1e9 * (1.0 - 400.0 / waited);
        assert_near(quantile(total.response_time(), 0.99), formula, 0.01);
        // The queue at the device is full when the device works again.
        assert!(quantile(&total.service_time, 0.99) <= 4.0 * MS);
        // The longest time is in both: I/Os in flight when the stall began.
        assert_near(total.service_time.max().expect("some") as f64, 1e9, 0.01);
    }
    let total = run(device, &point(4000)).total(None);
    assert_near(quantile(&total.service_time, 0.99), 800.0 * MS, 0.02);
    assert_eq!(&total.service_time, total.response_time());
}

#[test]
fn a_closed_loop_hides_a_stall_and_its_series_shows_it() {
    let device = "queue,servers=1,service-time=1ms,stall=5s+1s";
    let record = run(device, &lasting(20, closed(1)));
    assert_near(quantile(&record.total(None).service_time, 0.999), MS, 0.005);
    assert_near(iops(&record), 950.0, 0.01);
    let bytes: Vec<u64> = record.series.iter().map(|one| one.bytes[0].0 / (4 * KIB)).collect();
    assert_eq!(bytes.len(), 20);
    assert!(bytes[5] <= 1, "{bytes:?}");
    assert!(bytes[..5].iter().chain(&bytes[6..]).all(|&n| n >= 999), "{bytes:?}");
}

#[test]
fn stalls_that_repeat_take_their_share() {
    let device = "queue,servers=1,service-time=1ms,stall=0s+100ms/1s";
    assert_near(iops(&run(device, &lasting(20, closed(1)))), 900.0, 0.01);
}

#[test]
fn an_offered_load_above_capacity_is_counted_as_unstarted() {
    // 120,000 per second are offered for 10 s and 80,000 are served. The rest is the difference,
    // less the I/Os in flight at the end. An I/O that completes after t fell due at t 80 / 120, so
    // response times rise to a third of the time. At the device no I/O takes longer than 32 / 80 k.
    let device = "queue,servers=8,service-time=100us";
    let record = run(device, &lasting(10, open(120e3, Arrivals::Uniform, 32)));
    let ledger = record.ledger();
    assert_eq!(ledger.due, 1_200_000);
    assert_eq!(ledger.in_flight, 32);
    assert!(ledger.completed.abs_diff(800_000) <= 16, "{ledger:?}");
    assert!(ledger.unstarted.abs_diff(1_200_000 - 800_000 - 32) <= 16, "{ledger:?}");
    let total = record.total(None);
    assert_near(total.response_time().max().expect("some") as f64, 10e9 / 3.0, 0.001);
    assert_near(quantile(total.response_time(), 0.5), 10e9 / 6.0, 0.01);
    assert_eq!(total.service_time.max(), Some(400_000));
    // The generator was never late: the target was behind.
    let delay = record.workers[0].start_delay.as_ref().unwrap();
    assert!(delay.generator.max().unwrap_or(0) == 0);
    assert_near(delay.target.max().expect("some") as f64, 10e9 / 3.0, 0.001);
}

#[test]
fn overload_in_the_warm_up_counts_too() {
    let mut point = lasting(4, open(20e3, Arrivals::Poisson, 4));
    point.warm_up = Span::from_secs(2);
    let ledger = run("queue,servers=1,service-time=100us", &point).ledger();
    assert!(ledger.completed_in_warm_up.abs_diff(20_000) <= 2, "{ledger:?}");
    assert!(ledger.completed.abs_diff(40_000) <= 2, "{ledger:?}");
    // Poisson: 120,000 due, within five standard deviations.
    assert!(ledger.due.abs_diff(120_000) < 5 * 347, "{ledger:?}");
    assert_eq!(ledger.in_flight, 4);
    assert!(ledger.unstarted.abs_diff(ledger.due - 60_000 - 4) <= 4, "{ledger:?}");
}

// Faults.

fn first_errors(record: &Record) -> &[IoError] {
    &record.workers[0].errors.first
}

#[test]
fn every_error_is_counted_and_the_first_are_kept_in_full() {
    let region = Region { target: 0, offset: Bytes(8 * MIB), length: Bytes(MIB) };
    let point = with(closed(4), |stream| stream.regions = Vec::from([region]));
    let record = run("queue,error-every=100", &point);
    let ledger = record.ledger();
    assert_eq!(record.errors(), ledger.due / 100);
    assert!(ledger.failed.abs_diff(record.errors()) <= 1);
    assert_eq!(first_errors(&record).len(), 64);
    for (index, error) in first_errors(&record).iter().enumerate() {
        assert_eq!(error.kind, ErrorKind::Errno(5));
        assert_eq!((error.target, error.direction), (0, Direction::Read));
        assert_eq!(error.length, Bytes(4 * KIB));
        let inside = error.offset.0 - region.offset.0;
        assert!(inside < MIB && inside.is_multiple_of(4 * KIB), "{error:?}");
        // The hundredth, two hundredth ... I/O, with 4 at a time and a hundred microseconds each.
        assert_eq!(error.at_ns, (index as i64 + 1) * 2_500_000);
    }
}

#[test]
fn errors_short_reads_and_zero_bytes_come_in_their_shares() {
    let device = "queue,error=1%,short=2%,zero=3%";
    let point = with(lasting(5, closed(8)), |stream| {
        stream.kind_mut().block_sizes = BlockSizes::one(Bytes(8 * KIB))
    });
    let record = run(device, &point);
    let ledger = record.ledger();
    // Six standard deviations of a binomial share of 6 % of 400,000.
    let failed = ledger.failed as f64 / ledger.due as f64;
    assert!((failed - 0.06).abs() < 6.0 * (0.06f64 * 0.94 / 400e3).sqrt(), "{failed}");
    let kinds: Vec<ErrorKind> = first_errors(&record).iter().map(|error| error.kind).collect();
    assert!(kinds.contains(&ErrorKind::Errno(5)), "{kinds:?}");
    assert!(kinds.contains(&ErrorKind::Short(0)), "{kinds:?}");
    let short = |kind: &ErrorKind| matches!(kind, ErrorKind::Short(bytes) if *bytes > 0);
    assert!(kinds.iter().any(short), "{kinds:?}");
    assert!(!kinds.iter().any(|kind| matches!(kind, ErrorKind::Short(8192..))), "{kinds:?}");
}

#[test]
fn writes_fail_and_are_never_short() {
    let point = with(closed(8), |stream| stream.kind_mut().read_share = 0.0);
    let record = run("queue,short=1", &point);
    assert_eq!(record.errors(), 0);
    assert_eq!(record.total(Some(Direction::Read)).ios(), 0);
    let record = run("queue,error=10%,short=0.9", &point);
    let kinds: Vec<_> = first_errors(&record).iter().map(|e| (e.kind, e.direction)).collect();
    assert!(kinds.iter().all(|kind| *kind == (ErrorKind::Errno(5), Direction::Write)));
    assert!(record.ledger().completed > 0);
}

#[test]
fn what_a_device_that_hangs_keeps_is_lost_and_named() {
    let record = run("queue,hang-after=500ms", &closed(16));
    let ledger = record.ledger();
    assert_eq!(ledger.lost, 16);
    assert_eq!(record.errors(), 16);
    assert!(first_errors(&record).iter().all(|error| error.kind == ErrorKind::Lost));
    assert!(ledger.completed.abs_diff(40_000) <= 16, "{ledger:?}");
    assert!(record.series[6..].iter().all(|interval| interval.bytes[0] == Bytes(0)));
    // In an open loop I/Os continue to fall due behind those that hang.
    let record = run("queue,hang-after=500ms", &open(10e3, Arrivals::Uniform, 16));
    let ledger = record.ledger();
    assert_eq!((ledger.due, ledger.lost), (10_000, 16));
    assert!(ledger.unstarted.abs_diff(5_000 - 16) <= 16, "{ledger:?}");
}

#[test]
fn a_hang_in_a_deep_queue_is_accounted_for() {
    let record = run("queue,hang-after=500ms", &open(50e3, Arrivals::Poisson, 100_000));
    let ledger = record.ledger();
    assert!(ledger.lost > 20_000 && ledger.unstarted == 0, "{ledger:?}");
    assert_eq!(record.errors(), ledger.lost);
}

#[test]
fn a_device_that_only_fails_is_given_up() {
    let record = run("queue,error=1", &lasting(60, closed(1)));
    assert!(record.workers[0].gave_up && record.interrupted);
    assert!(record.window < Span::from_secs(60));
    assert_eq!(record.total(None).ios(), 0);
}

#[test]
fn buckets_need_not_fit_the_intervals_and_hold_every_io() {
    let mixed = |s: &mut Stream| {
        s.kind_mut().read_share = 0.6;
        s.workers = Workers::Total(3);
    };
    let device = "queue,servers=8,service-time=100us";
    let point = Point { buckets: Some(Span::from_ms(30)), ..with(closed(8), mixed) };
    let record = run(device, &point);
    let buckets = record.buckets.as_ref().expect("they were asked for");
    assert_eq!((buckets.length, buckets.ios.len()), (Span::from_ms(30), 34));
    for direction in Direction::BOTH {
        let sum: u64 = buckets.ios.iter().map(|ios| ios[direction as usize]).sum();
        assert_eq!(sum, record.total(Some(direction)).ios());
    }
    // Eight servers complete 80 I/Os in a millisecond. The last bucket has only 10 ms.
    let all: Vec<u64> = buckets.ios.iter().map(|[reads, writes]| reads + writes).collect();
    assert!(all[..33].iter().all(|&ios| (2392..=2408).contains(&ios)), "{all:?}");
    assert!((792..=808).contains(&all[33]), "{all:?}");
    for cell in record.workers.iter().flat_map(|worker| &worker.cells) {
        let mean = (cell.flows[0].ios() + cell.flows[1].ios()) as f64 / 34.0;
        let deviation = (cell.spread.squares[2] / 34.0 - mean * mean).sqrt();
        // All buckets are alike but the last, which has a third of the I/Os of each other one.
        let expected = mean * 34.0 / (33.0 + 1.0 / 3.0) * (2.0 / 3.0) * (33.0_f64).sqrt() / 34.0;
        assert_eq!(cell.spread.intervals, 34);
        assert_near(deviation, expected, 0.02);
    }
    // Nothing else changes.
    let without = run(device, &Point { buckets: None, ..point.clone() });
    assert_eq!(without.series, record.series);
    assert_eq!(without.total(None), record.total(None));
}

// Chance and offsets.

#[test]
fn a_seed_repeats_a_record_and_another_seed_does_not() {
    let seeded = |seed| Point { seed, ..open(20e3, Arrivals::Poisson, 64) };
    for device in ["queue,distribution=exponential", "ssd,noise=5%", "hdd,error=1%"] {
        assert_eq!(run(device, &seeded(7)), run(device, &seeded(7)), "{device}");
        assert_ne!(run(device, &seeded(7)), run(device, &seeded(8)), "{device}");
        let other = format!("{device},seed=2");
        assert_ne!(run(device, &seeded(7)), run(&other, &seeded(7)), "{device}");
    }
}

#[test]
fn noise_differs_between_trials_of_one_device() {
    let of_trial = |seed| iops(&run("queue,noise=5%", &Point { seed, ..lasting(4, closed(8)) }));
    let trials: Vec<f64> = (1..=30).map(of_trial).collect();
    let mean = trials.iter().sum::<f64>() / 30.0;
    let deviation = (trials.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / 29.0).sqrt();
    // Four seconds with 5 % each: 2.5 % between trials.
    assert_near(mean, 80e3, 0.02);
    assert_near(deviation, 0.025 * 80e3, 0.5);
}

#[test]
fn reads_have_their_share_within_binomial_bounds() {
    for share in [0.0, 0.05, 0.5, 0.7, 1.0] {
        let record =
            run("queue", &with(lasting(5, closed(8)), |s| s.kind_mut().read_share = share));
        let ios = record.total(None).ios() as f64;
        let reads = record.total(Some(Direction::Read)).ios() as f64;
        let bound = 5.0 * (share * (1.0 - share) / ios).sqrt();
        assert!((reads / ios - share).abs() <= bound, "{share}: {reads} of {ios}");
    }
}

/// The offsets of the first I/Os. Every I/O fails, so all offsets are kept.
fn offsets(region: Region, pattern: Pattern, block_size: u64) -> Vec<u64> {
    let point = with(closed(1), |stream| {
        stream.regions = Vec::from([region]);
        stream.kind_mut().pattern = pattern;
        stream.kind_mut().block_sizes = BlockSizes::one(Bytes(block_size));
    });
    let record = run("queue,error=1", &point);
    first_errors(&record).iter().map(|error| error.offset.0).collect()
}

#[test]
fn offsets_stay_in_their_region_and_are_aligned_to_blocks() {
    let region = Region { target: 0, offset: Bytes(3 * MIB), length: Bytes(10 * 64 * KIB + 512) };
    let random = offsets(region, Pattern::RANDOM, 64 * KIB);
    assert_eq!(random.len(), 64);
    let block = |offset: &u64| (offset - 3 * MIB) / (64 * KIB);
    assert!(random.iter().all(|o| *o >= 3 * MIB && (o - 3 * MIB).is_multiple_of(64 * KIB)));
    assert!(random.iter().all(|offset| block(offset) < 10));
    let distinct: std::collections::BTreeSet<u64> = random.iter().map(block).collect();
    assert!(distinct.len() >= 8, "64 random blocks of 10 leave few out: {distinct:?}");
    let sequential = offsets(region, Pattern::SEQUENTIAL, 64 * KIB);
    let blocks: Vec<u64> = sequential.iter().map(block).collect();
    assert_eq!(blocks, (0..64).map(|i| i % 10).collect::<Vec<u64>>());
}

#[test]
fn regions_take_turns() {
    let at = |mib| Region { target: 0, offset: Bytes(mib * MIB), length: Bytes(MIB) };
    let point = with(closed(1), |stream| stream.regions = Vec::from([at(0), at(100)]));
    let record = run("queue,error=1", &point);
    let halves = first_errors(&record).iter().map(|error| error.offset.0 >= 100 * MIB);
    assert!(halves.enumerate().all(|(index, upper)| upper == (index % 2 == 1)));
}

// Drives through the loop.

fn everywhere(size: u64, point: Point) -> Point {
    with(point, |stream| stream.regions[0].length = Bytes(size))
}

#[test]
fn a_simulated_ssd_looks_like_an_nvme_drive() {
    let whole = |point| everywhere(1_000_000_000_000, point);
    let alone = run("ssd", &whole(closed(1))).total(None);
    assert_near(quantile(&alone.service_time, 0.5), 90e3, 0.03);
    assert_near(iops(&run("ssd", &whole(closed(128)))), 600e3, 0.05);
    let large = with(closed(8), |stream| {
        stream.kind_mut().block_sizes = BlockSizes::one(Bytes(MIB));
        stream.kind_mut().pattern = Pattern::SEQUENTIAL;
    });
    let record = run("ssd", &whole(lasting(2, large)));
    assert_near(record.total(None).bytes.0 as f64 / 2.0, 3e9, 0.01);
}

#[test]
fn reads_of_an_ssd_are_slower_under_writes() {
    let read_p99 = |share| {
        let point = with(lasting(3, open(100e3, Arrivals::Poisson, 256)), |s| {
            s.kind_mut().read_share = share
        });
        quantile(&run("ssd", &point).total(Some(Direction::Read)).service_time, 0.99)
    };
    let quantiles = [1.0, 0.9, 0.5].map(read_p99);
    assert!(quantiles.is_sorted(), "{quantiles:?}");
    assert!(quantiles[2] > 2.0 * quantiles[0], "{quantiles:?}");
}

#[test]
fn collections_of_an_ssd_show_in_the_tail() {
    let longest = |device| {
        let point = with(lasting(5, open(200e3, Arrivals::Uniform, 4096)), |stream| {
            stream.kind_mut().read_share = 0.5;
        });
        run(device, &point).total(Some(Direction::Read)).service_time.max().expect("some")
    };
    assert!(longest("ssd,collect-every=256m,collect-time=30ms") > 25_000_000);
    assert!(longest("ssd,collect-time=0s") < 10_000_000);
}

#[test]
fn a_simulated_hdd_gains_by_depth_and_by_order() {
    let whole = |point| everywhere(4_000_000_000_000, lasting(60, point));
    let alone = run("hdd", &whole(closed(1)));
    let p50 = quantile(&alone.total(None).service_time, 0.5);
    assert!((8.0 * MS..=14.0 * MS).contains(&p50), "{p50}");
    let deep = run("hdd", &whole(closed(32)));
    assert!(iops(&deep) > 2.0 * iops(&alone));
    let stream = with(closed(1), |stream| {
        stream.kind_mut().block_sizes = BlockSizes::one(Bytes(MIB));
        stream.kind_mut().pattern = Pattern::SEQUENTIAL;
    });
    let record = run("hdd", &whole(stream.clone()));
    assert_near(record.total(None).bytes.0 as f64 / 60.0, 180e6, 0.01);
    let random = with(stream, |stream| stream.kind_mut().pattern = Pattern::RANDOM);
    let record = run("hdd", &whole(random));
    assert!(record.total(None).bytes.0 as f64 / 60.0 < 90e6);
}

// The run itself.

#[test]
fn an_hour_of_load_ends_with_every_io_accounted_for() {
    let record = run("queue", &lasting(3_600, open(10e3, Arrivals::Uniform, 64)));
    assert_eq!(record.window, Span::from_secs(3_600));
    assert_eq!(record.series.len(), 3_600);
    assert_eq!(record.ledger().due, 36_000_000);
    assert_near(iops(&record), 10e3, 1e-6);
}

#[test]
fn the_warm_up_is_in_no_figure() {
    let mut point = lasting(2, closed(1));
    point.warm_up = Span::from_secs(3);
    // The device is slow only during the warm-up.
    let record = run("queue,servers=1,service-time=1ms,stall=500ms+2s", &point);
    let ledger = record.ledger();
    assert!(ledger.completed_in_warm_up.abs_diff(1_000) <= 1, "{ledger:?}");
    assert_near(iops(&record), 1_000.0, 0.001);
    assert_eq!(record.total(None).service_time.max(), Some(1_000_000));
}

/// Stops the run once it has seen `slices` intervals.
struct Impatient<'a> {
    stop: &'a AtomicBool,
    slices: u32,
    seen: Vec<Progress>,
}

impl Observer for Impatient<'_> {
    fn progress(&mut self, progress: &Progress) {
        self.seen.push(progress.clone());
        if self.seen.len() == self.slices as usize {
            self.stop.store(true, Ordering::Relaxed);
        }
    }
}

#[test]
fn a_run_that_is_stopped_says_so_and_keeps_what_it_has() {
    let stop = AtomicBool::new(false);
    let mut observer = Impatient { stop: &stop, slices: 5, seen: Vec::new() };
    let options = "queue".parse().expect("a device");
    let point = lasting(60, closed(8));
    let record = run_point(&point, Devices::Simulated(&options), &stop, &mut observer);
    let record = record.expect("a simulated device can always be opened");
    assert!(record.interrupted);
    check_books(&point, &record);
    assert!(record.window >= Span::from_secs(5) && record.window < Span::from_secs(6));
    let whole = &observer.seen[..5];
    assert!(
        whole.iter().all(|slice| (slice.last_second.iops - 80e3).abs() < 100.0 && slice.in_window)
    );
    assert_eq!(observer.seen[4].elapsed, Span::from_secs(5));
    assert_eq!(observer.seen[4].total, Span::from_secs(60));
}
