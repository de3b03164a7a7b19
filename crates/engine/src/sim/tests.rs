//! Simulated devices driven directly, without the hot loop.

use super::*;
use fathom_core::Bytes;
use fathom_core::measure::Direction;

fn open(text: &str, slots: u32) -> Sim {
    Sim::open(&text.parse().expect(text), slots)
}

fn read(slot: u32, offset: u64) -> Io {
    Io { slot, target: 0, direction: Direction::Read, offset, length: 4096 }
}

const LATER: Instant = Instant(u64::MAX);

/// When each I/O completed that a closed loop of random reads kept in flight.
fn closed_loop(text: &str, depth: u32, length: u32, ios: usize) -> Vec<Completion> {
    let mut sim = open(text, depth);
    let blocks = text.parse::<Options>().expect(text).size.0 / u64::from(length);
    let mut chance = chance::Chance::new(42, 42);
    let mut all: Vec<Completion> = Vec::new();
    let mut batch = Vec::with_capacity(depth as usize);
    let mut free: Vec<u32> = (0..depth).collect();
    while all.len() < ios {
        for slot in free.drain(..) {
            let offset = chance.below(blocks) * u64::from(length);
            sim.push(Io { length, ..read(slot, offset) });
        }
        sim.wait(LATER, &mut batch);
        free.extend(batch.iter().map(|completion| completion.slot));
        all.append(&mut batch);
    }
    all
}

#[test]
fn wait_returns_all_of_an_instant_and_stops_at_the_deadline() {
    let mut sim = open("queue,servers=2,service-time=100us", 3);
    let mut done = Vec::new();
    (0..3).for_each(|slot| sim.push(read(slot, 0)));
    sim.wait(Instant(60_000), &mut done);
    assert!(done.is_empty());
    assert_eq!(sim.now(), Instant(60_000));
    sim.wait(LATER, &mut done);
    let slots: Vec<u32> = done.iter().map(|c| c.slot).collect();
    assert_eq!((slots, sim.now()), (Vec::from([0, 1]), Instant(100_000)));
    assert!(done.iter().all(|c| c.at == Instant(100_000) && c.result == 4096));
    done.clear();
    // A deadline that has passed starts what is queued and does not wait.
    sim.push(read(0, 0));
    sim.wait(Instant(0), &mut done);
    assert!(done.is_empty());
    assert_eq!(sim.now(), Instant(100_000));
    sim.wait(Instant(200_000), &mut done);
    assert_eq!(done.len(), 2);
}

#[test]
fn an_idle_device_moves_to_the_deadline() {
    let mut sim = open("queue", 1);
    sim.wait(Instant(7), &mut Vec::new());
    assert_eq!(sim.now(), Instant(7));
    assert!(sim.buffer(0).is_empty());
}

#[test]
fn nothing_comes_back_from_a_device_that_hangs() {
    let mut sim = open("queue,servers=1,service-time=100us,hang-after=150us", 2);
    let mut done = Vec::new();
    sim.push(read(0, 0));
    sim.push(read(1, 0));
    sim.wait(Instant(1_000_000), &mut done);
    sim.wait(Instant(1_000_000), &mut done);
    assert_eq!(done.len(), 1);
    assert_eq!(sim.now(), Instant(1_000_000));
}

#[test]
fn a_stall_delays_what_is_in_service_and_what_arrives() {
    let mut sim = open("queue,servers=1,service-time=100us,stall=50us+1ms", 2);
    let mut done = Vec::new();
    sim.push(read(0, 0));
    sim.wait(Instant(500_000), &mut done);
    sim.push(read(1, 0));
    sim.wait(LATER, &mut done);
    sim.wait(LATER, &mut done);
    let at: Vec<u64> = done.iter().map(|c| c.at.0).collect();
    assert_eq!(at, [1_100_000, 1_200_000]);
}

#[test]
fn what_lies_behind_the_end_is_not_there() {
    let mut sim = open("queue,size=1m", 3);
    let mut done = Vec::new();
    sim.push(read(0, Bytes::MIB - 1024));
    sim.push(read(1, Bytes::MIB));
    sim.push(Io { direction: Direction::Write, ..read(2, Bytes::MIB) });
    sim.wait(LATER, &mut done);
    let results: Vec<i32> = done.iter().map(|c| c.result).collect();
    assert_eq!(results, [1024, 0, -28]);
}

#[test]
fn each_fault_happens_in_its_share_and_moves_no_time() {
    let ios = 100_000;
    let plain = closed_loop("queue,distribution=exponential", 4, 4096, ios);
    let faulty =
        closed_loop("queue,distribution=exponential,error=0.1,short=0.2,zero=0.3", 4, 4096, ios);
    assert!(plain.iter().zip(&faulty).all(|(a, b)| (a.at, a.slot) == (b.at, b.slot)));
    let share = |wanted: fn(i32) -> bool| {
        faulty.iter().filter(|c| wanted(c.result)).count() as f64 / faulty.len() as f64
    };
    // Six standard deviations of a share are below 0.01 here.
    assert!((share(|r| r == -5) - 0.1).abs() < 0.01);
    assert!((share(|r| r == 0) - 0.3).abs() < 0.01);
    assert!((share(|r| r > 0 && r < 4096) - 0.2).abs() < 0.01);
    assert!(faulty.iter().all(|c| c.result < 0 || c.result % 512 == 0));
}

#[test]
fn every_nth_fails_exactly() {
    let done = closed_loop("queue,servers=1,error-every=10", 1, 4096, 100);
    let failed: Vec<usize> = (0..100).filter(|&i| done[i].result == -5).collect();
    assert_eq!(failed, [9, 19, 29, 39, 49, 59, 69, 79, 89, 99]);
}

#[test]
fn noise_changes_whole_seconds_around_the_same_mean() {
    let text = "queue,servers=1,service-time=1ms,noise=10%";
    let done = closed_loop(text, 1, 4096, 400_000);
    let mut seconds = [0u32; 380];
    for completion in &done {
        if let Some(count) = seconds.get_mut((completion.at.0 / 1_000_000_000) as usize) {
            *count += 1;
        }
    }
    let mean = seconds.iter().map(|&n| f64::from(n)).sum::<f64>() / 380.0;
    let variance = seconds.iter().map(|&n| (f64::from(n) - mean).powi(2)).sum::<f64>() / 379.0;
    assert!((mean - 1000.0).abs() < 30.0, "{mean}");
    assert!((variance.sqrt() - 100.0).abs() < 20.0, "{}", variance.sqrt());
}

#[test]
fn a_seed_repeats_a_device_and_another_does_not() {
    let run = |text: &str| closed_loop(text, 8, 4096, 2_000);
    for device in ["queue,distribution=exponential"] {
        assert_eq!(run(device), run(device));
        assert_ne!(run(device), run(&format!("{device},seed=2")));
    }
}

#[test]
fn a_closed_loop_on_a_queue_has_its_closed_form() {
    for (depth, iops) in [(1, 10e3), (2, 20e3), (8, 80e3), (32, 80e3)] {
        let done = closed_loop("queue,servers=8,service-time=100us", depth, 4096, 10_000);
        let elapsed = done.last().expect("some").at.since(Instant(0));
        let measured = done.len() as f64 / elapsed.as_secs_f64();
        assert!((measured / iops - 1.0).abs() < 0.01, "depth {depth}: {measured}");
    }
}
