//! Tests simulated devices directly, without the hot loop.

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

/// The completions of a closed loop of random reads.
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
        sim.wait_and_reap(LATER, &mut batch);
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
    sim.wait_and_reap(Instant(60_000), &mut done);
    assert!(done.is_empty());
    assert_eq!(sim.now(), Instant(60_000));
    sim.wait_and_reap(LATER, &mut done);
    let slots: Vec<u32> = done.iter().map(|c| c.slot).collect();
    assert_eq!((slots, sim.now()), (Vec::from([0, 1]), Instant(100_000)));
    assert!(done.iter().all(|c| c.at == Instant(100_000) && c.result == 4096));
    done.clear();
    // A deadline that has passed starts what is queued and does not wait.
    sim.push(read(0, 0));
    sim.wait_and_reap(Instant(0), &mut done);
    assert!(done.is_empty());
    assert_eq!(sim.now(), Instant(100_000));
    sim.wait_and_reap(Instant(200_000), &mut done);
    assert_eq!(done.len(), 2);
}

#[test]
fn an_idle_device_moves_to_the_deadline() {
    let mut sim = open("queue", 1);
    sim.wait_and_reap(Instant(7), &mut Vec::new());
    assert_eq!(sim.now(), Instant(7));
}

#[test]
fn nothing_comes_back_from_a_device_that_hangs() {
    let mut sim = open("queue,servers=1,service-time=100us,hang-after=150us", 2);
    let mut done = Vec::new();
    sim.push(read(0, 0));
    sim.push(read(1, 0));
    sim.wait_and_reap(Instant(1_000_000), &mut done);
    sim.wait_and_reap(Instant(1_000_000), &mut done);
    assert_eq!(done.len(), 1);
    assert_eq!(sim.now(), Instant(1_000_000));
}

#[test]
fn a_stall_delays_what_is_in_service_and_what_arrives() {
    let mut sim = open("queue,servers=1,service-time=100us,stall=50us+1ms", 2);
    let mut done = Vec::new();
    sim.push(read(0, 0));
    sim.wait_and_reap(Instant(500_000), &mut done);
    sim.push(read(1, 0));
    sim.wait_and_reap(LATER, &mut done);
    sim.wait_and_reap(LATER, &mut done);
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
    sim.wait_and_reap(LATER, &mut done);
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
    for device in ["queue,distribution=exponential", "ssd", "hdd"] {
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

/// A load with more properties than random reads: the time of each completion, and the end.
struct Load {
    depth: u32,
    length: u32,
    ios: usize,
    sequential: bool,
    /// The number of writing slots among four.
    writers: u32,
}

struct Measured {
    reads: Vec<u64>,
    writes: Vec<u64>,
    elapsed: f64,
    bytes: f64,
}

impl Measured {
    fn bandwidth(&self) -> f64 {
        self.bytes / self.elapsed
    }

    fn iops(&self) -> f64 {
        (self.reads.len() + self.writes.len()) as f64 / self.elapsed
    }
}

fn mean(times: &[u64]) -> f64 {
    times.iter().sum::<u64>() as f64 / times.len() as f64
}

/// The value that this share of the values does not exceed.
fn quantile(times: &[u64], share: f64) -> u64 {
    let mut sorted = times.to_vec();
    sorted.sort_unstable();
    sorted[((sorted.len() as f64 * share) as usize).min(sorted.len() - 1)]
}

fn measure(text: &str, load: &Load) -> Measured {
    let mut sim = open(text, load.depth);
    let blocks = text.parse::<Options>().expect(text).size.0 / u64::from(load.length);
    let mut chance = chance::Chance::new(42, 42);
    let mut next = 0;
    let mut started = vec![Instant(0); load.depth as usize];
    let mut free: Vec<u32> = (0..load.depth).collect();
    let mut batch = Vec::new();
    let (mut reads, mut writes) = (Vec::new(), Vec::new());
    while reads.len() + writes.len() < load.ios {
        for slot in free.drain(..) {
            next += 1;
            let block = if load.sequential { (next - 1) % blocks } else { chance.below(blocks) };
            let write = slot % 4 < load.writers;
            let direction = if write { Direction::Write } else { Direction::Read };
            started[slot as usize] = sim.now();
            let offset = block * u64::from(load.length);
            sim.push(Io { slot, target: 0, direction, offset, length: load.length });
        }
        sim.wait_and_reap(LATER, &mut batch);
        for done in batch.drain(..) {
            let took = done.at.since(started[done.slot as usize]).0;
            let times = if done.slot % 4 < load.writers { &mut writes } else { &mut reads };
            times.push(took);
            free.push(done.slot);
        }
    }
    let bytes = (reads.len() + writes.len()) as f64 * f64::from(load.length);
    Measured { reads, writes, elapsed: sim.now().0 as f64 / 1e9, bytes }
}

const RANDOM_READS: Load =
    Load { depth: 1, length: 4096, ios: 20_000, sequential: false, writers: 0 };

/// Whether a figure is within this share of the formula's value.
fn near(measured: f64, formula: f64, share: f64) -> bool {
    (measured / formula - 1.0).abs() <= share
}

#[test]
fn the_default_ssd_is_a_decent_nvme_drive() {
    let one = measure("ssd", &RANDOM_READS);
    assert!(near(mean(&one.reads), 90e3, 0.03), "{}", mean(&one.reads));
    let deep = measure("ssd", &Load { depth: 128, ios: 300_000, ..RANDOM_READS });
    assert!(near(deep.iops(), 600e3, 0.05), "{}", deep.iops());
    let large = Load { depth: 16, length: 1 << 20, sequential: true, ios: 5_000, writers: 0 };
    assert!(near(measure("ssd", &large).bandwidth(), 3e9, 0.01));
}

#[test]
fn an_ssd_has_the_figures_of_its_formulas() {
    let device = "ssd,channels=4,page=4k,read-time=100us,jitter=0,overhead=5us,\
                  read-bandwidth=1GB/s,write-bandwidth=500MB,program-time=200us,cache=1m,\
                  collect-time=0s";
    // An I/O alone: read-time + length / read-bandwidth + overhead for reads, and length /
    // write-bandwidth + overhead for writes.
    let read = measure(device, &RANDOM_READS);
    assert_eq!(quantile(&read.reads, 1.0), 100_000 + 4_096 + 5_000);
    let write = measure(device, &Load { ios: 100, writers: 4, ..RANDOM_READS });
    assert_eq!(quantile(&write.writes, 1.0), 8_192 + 5_000);
    // Four pages use four channels in parallel. Eight take two turns.
    for (length, turns) in [(16 << 10, 1), (32 << 10, 2)] {
        let read = measure(device, &Load { length, ..RANDOM_READS });
        let expected = turns * 100_000 + u64::from(length) + 5_000;
        assert_eq!(quantile(&read.reads, 0.5), expected, "{length}");
    }
    // The maximum: channels / read-time for reads, and the programs of all channels for writes.
    let deep = measure(device, &Load { depth: 128, ios: 50_000, ..RANDOM_READS });
    assert!(near(deep.iops(), 4.0 / 100e-6, 0.02), "{}", deep.iops());
    let sustained = measure(device, &Load { depth: 32, ios: 50_000, writers: 4, ..RANDOM_READS });
    assert!(near(sustained.iops(), 4.0 / 200e-6, 0.02), "{}", sustained.iops());
    // The interface is the limit if it is slower.
    let narrow = format!("{device},channels=1024");
    assert!(narrow.parse::<Options>().is_err(), "a parameter given twice");
    let narrow = device.replace("channels=4", "channels=1024");
    let load = Load { depth: 64, length: 1 << 20, ios: 2_000, ..RANDOM_READS };
    assert!(near(measure(&narrow, &load).bandwidth(), 1e9, 0.01));
    let load = Load { writers: 4, ..load };
    assert!(near(measure(&narrow, &load).bandwidth(), 500e6, 0.01));
}

#[test]
fn an_ssd_reads_slower_while_it_programs() {
    let alone = measure("ssd", &Load { depth: 4, ios: 100_000, ..RANDOM_READS });
    let mixed = measure("ssd", &Load { depth: 4, ios: 100_000, writers: 2, ..RANDOM_READS });
    assert!(mean(&mixed.reads) > 1.1 * mean(&alone.reads));
    assert!(quantile(&mixed.reads, 0.99) > 3 * quantile(&alone.reads, 0.99));
    // A read waits for at most one program, unless there is a collection.
    let calm = "ssd,collect-time=0ns,jitter=0";
    let mixed = measure(calm, &Load { depth: 2, ios: 100_000, writers: 1, ..RANDOM_READS });
    assert!(quantile(&mixed.reads, 1.0) <= 500_000 + 2 * 78_000 + 10_000 + 3_000);
}

#[test]
fn a_collection_is_a_stall_in_the_tail_of_an_ssd() {
    let load = Load { depth: 4, length: 128 << 10, ios: 40_000, sequential: true, writers: 2 };
    let with = measure("ssd,collect-every=256m,collect-time=20ms", &load);
    let without = measure("ssd,collect-every=256m,collect-time=0ms", &load);
    assert!(quantile(&with.reads, 1.0) > 15_000_000, "{}", quantile(&with.reads, 1.0));
    assert!(quantile(&without.reads, 1.0) < 5_000_000, "{}", quantile(&without.reads, 1.0));
}

#[test]
fn an_ssd_leaves_neither_reads_nor_writes_waiting_for_ever() {
    // There are far more reads than the channels can serve, but the cache still drains.
    let load = Load { depth: 256, ios: 200_000, writers: 1, ..RANDOM_READS };
    let both = measure("ssd,cache=64k", &load);
    assert!(both.writes.len() > 1_000 && both.reads.len() > 1_000);
    assert!(quantile(&both.writes, 1.0) < 1_000_000_000);
}

#[test]
fn the_default_hdd_is_a_disk_of_7200_revolutions() {
    let one = measure("hdd", &RANDOM_READS);
    let median = quantile(&one.reads, 0.5);
    assert!((8_000_000..=14_000_000).contains(&median), "{median}");
    // seek-min + 8/15 of the span of seek times + half a revolution + transfer + overhead.
    let formula = 800e3 + 14_200e3 * 8.0 / 15.0 + 60e9 / 7200.0 / 2.0 + 30e3 + 50e3;
    assert!(near(mean(&one.reads), formula, 0.03), "{} for {formula}", mean(&one.reads));
    let outer = Load { length: 1 << 20, sequential: true, ios: 2_000, ..RANDOM_READS };
    assert!(near(measure("hdd", &outer).bandwidth(), 180e6, 0.01));
    let writes = Load { writers: 4, ..outer };
    assert!(near(measure("hdd", &writes).bandwidth(), 180e6, 0.01));
}

#[test]
fn an_hdd_gains_by_depth_because_it_chooses_the_nearest() {
    let at = |text: &str, depth| measure(text, &Load { depth, ios: 5_000, ..RANDOM_READS }).iops();
    let iops = [1, 4, 16, 32].map(|depth| at("hdd", depth));
    assert!(iops.is_sorted(), "{iops:?}");
    assert!(iops[3] > 2.0 * iops[0], "{iops:?}");
    // Without a choice of requests there is nothing to gain.
    assert!(near(at("hdd,ncq=1", 32), iops[0], 0.03));
    // No request is passed over for longer than the patience plus the service time of the others in
    // the queue.
    let load = Load { depth: 32, ios: 20_000, ..RANDOM_READS };
    let waited = quantile(&measure("hdd", &load).reads, 1.0);
    assert!(waited < 1_600_000_000, "{waited}");
}

#[test]
fn an_hdd_is_slower_at_its_inner_end() {
    // A disk of 1 GiB that is read from start to end: the bandwidths of the first to the last 16
    // MiB.
    let mut sim = open("hdd,size=1g,overhead=0ns", 1);
    let mut ends = Vec::from([Instant(0)]);
    let mut done = Vec::new();
    for block in 0..64 {
        sim.push(Io { length: 16 << 20, ..read(0, block * (16 << 20)) });
        sim.wait_and_reap(LATER, &mut done);
        ends.push(sim.now());
    }
    let bandwidth = |i: usize| (16 << 20) as f64 / ends[i + 1].since(ends[i]).as_secs_f64();
    let all: Vec<f64> = (1..64).map(bandwidth).collect();
    assert!(all.is_sorted_by(|a, b| a > b), "{all:?}");
    assert!(near(all[0], 180e6, 0.02) && near(all[62], 90e6, 0.02), "{all:?}");
}

#[test]
fn a_random_request_ends_the_stream_of_an_hdd() {
    let mut sim = open("hdd", 1);
    let mut done = Vec::new();
    let mut took = |offset| {
        let before = sim.now();
        sim.push(read(0, offset));
        sim.wait_and_reap(LATER, &mut done);
        sim.now().since(before).0
    };
    took(0);
    assert!(took(4096) < 100_000);
    assert!(took(2_000_000_000_000) > 5_000_000);
    assert!(took(8192) > 5_000_000);
    assert!(took(12_288) < 100_000);
}

#[test]
fn contradictory_devices_are_refused() {
    for (text, part) in [
        ("ssd,cache=4k", "at least a page"),
        ("hdd,seek-min=20ms", "make seek-max the larger one"),
        ("hdd,inner-bandwidth=200MB/s", "make the outer one the larger one"),
    ] {
        let why = text.parse::<Options>().expect_err(text);
        assert!(why.contains(part), "{why}");
    }
}
