//! Tests the simulated devices that experiments are tried on: they do what their descriptions say.

use fathom_core::spec::{Arrivals, Limit, Payload, Workers};

use super::*;

const MB: f64 = 1e6;

fn blocks(size: u64, point: Point) -> Point {
    with(point, |stream| {
        stream.kind_mut().block_sizes = BlockSizes::one(Bytes(size));
        stream.regions[0].length = Bytes(size * 10_000);
    })
}

fn writes(point: Point) -> Point {
    with(point, |stream| stream.kind_mut().read_share = 0.0)
}

fn sequential(point: Point) -> Point {
    with(point, |stream| stream.kind_mut().pattern = Pattern::SEQUENTIAL)
}

/// Bytes per second.
fn bandwidth(record: &Record) -> f64 {
    record.total(None).bytes.0 as f64 / record.window.as_secs_f64()
}

// Tables.

#[test]
fn a_table_gives_its_throughput_at_every_depth() {
    let device = "table,size=100g,points=2:200MB/s+8:800MB/s+32:400MB/s";
    let between = (200.0 * 800.0f64).sqrt();
    for (depth, mb) in [(1, 100.0), (2, 200.0), (4, between), (8, 800.0), (32, 400.0), (64, 400.0)]
    {
        for workers in [1, depth.min(2)] {
            let point = blocks(256 * KIB, lasting(5, closed(depth)));
            let point = with(point, |stream| stream.workers = Workers::Total(workers));
            let record = run(device, &point);
            assert_near(bandwidth(&record), mb * MB, 0.002);
            let time = mean(&record.total(None).service_time);
            assert_near(time, f64::from(depth) * 256.0 * 1024.0 / (mb * MB) * 1e9, 0.005);
        }
    }
}

#[test]
fn a_table_has_a_speed_of_its_own_in_each_run() {
    let of_run = |seed, depth| {
        let point = Point { seed, ..blocks(MIB, lasting(1, closed(depth))) };
        bandwidth(&run("table,run-noise=3%,points=1:1GB/s", &point)) / 1e9
    };
    let runs: Vec<f64> = (0..400).map(|seed| of_run(seed, 1)).collect();
    let mean = runs.iter().sum::<f64>() / 400.0;
    let deviation = (runs.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / 399.0).sqrt();
    // Four standard errors of each figure.
    assert!((mean - 1.0).abs() < 0.006, "{mean}");
    assert!((deviation - 0.03).abs() < 0.0045, "{deviation}");
    assert_eq!(of_run(7, 1), of_run(7, 1));
}

#[test]
fn a_table_in_an_open_loop_serves_as_many_as_it_can() {
    let point = blocks(MIB, lasting(5, open(2000.0, Arrivals::Uniform, 64)));
    let record = run("table,points=1:500MB/s+16:1GB/s", &point);
    assert_near(bandwidth(&record), 1e9, 0.01);
    let growth = record.backlog(0).expect("an open loop").growth;
    assert_near(growth, 1.0 - 1e9 / (2000.0 * MIB as f64), 0.01);
}

#[test]
fn the_study_of_concurrent_writes_has_its_published_figures() {
    let random = [(1, 565.0), (2, 884.0), (8, 937.0), (32, 893.0), (256, 840.0)];
    let zeros = [(1, 1270.0), (2, 1453.0), (32, 1439.0), (256, 1383.0)];
    for (payload, curve) in [(Payload::UNIQUE, &random[..]), (Payload::Zeros, &zeros[..])] {
        for &(depth, mb) in curve {
            let point = sequential(writes(blocks(12_800_000, lasting(20, closed(depth)))));
            let point = with(point, |stream| stream.payload = payload.clone());
            let record = run("study-write-concurrency", &point);
            // Within a block.
            assert_near(bandwidth(&record), mb * MB, 0.002);
        }
    }
    for (size, depth, mb) in [(MIB, 1, 505.0), (MIB, 32, 875.0), (256 * KIB, 8, 702.0)] {
        let record =
            run("study-write-concurrency", &writes(blocks(size, lasting(5, closed(depth)))));
        assert_near(bandwidth(&record), mb * MB, 0.002);
    }
}

// Bursts, cliffs, and devices that save.

#[test]
fn a_burst_lasts_as_long_as_its_credit_and_comes_back_by_resting() {
    let device = "burst,rate=500,burst=3000,credit=6s,service-time=1ms";
    let record = run(device, &lasting(20, closed(32)));
    let ios: Vec<u64> = record.series.iter().map(|interval| interval.ios[0]).collect();
    assert!(ios[..6].iter().all(|&ios| ios.abs_diff(3000) <= 4), "{ios:?}");
    assert!(ios[7..].iter().all(|&ios| ios.abs_diff(500) <= 1), "{ios:?}");
    // Below the rate the credit is never used up. One I/O in flight is limited by its service time.
    let record = run(device, &lasting(20, open(450.0, Arrivals::Uniform, 32)));
    assert_eq!(record.total(None).response_time().max(), Some(1_000_000));
    assert_near(iops(&run(device, &lasting(2, closed(1)))), 1000.0, 0.001);
}

#[test]
fn a_write_cache_that_is_full_is_a_cliff() {
    // 2 GB/s flow in, and 8 x 16 KiB per 500 us flow out. The cache is full after 4 GiB / (2 -
    // 0.262) GB/s = 2.47 s.
    let device = "ssd,cache=4g,channels=8,program-time=500us,jitter=0,collect-time=0ns,\
                  write-bandwidth=2GB/s";
    let point = blocks(MIB, lasting(6, closed(16)));
    let record = run(device, &sequential(writes(point)));
    let rates: Vec<f64> = record.series.iter().map(|interval| interval.bytes[1].0 as f64).collect();
    let drained = 8.0 * 16.0 * 1024.0 / 500e-6;
    assert_near(rates[1], 2e9, 0.01);
    assert!(rates[3..].iter().all(|rate| (rate / drained - 1.0).abs() < 0.02), "{rates:?}");
}

#[test]
fn a_device_that_saves_is_faster_by_what_it_saves() {
    let of = |saves: &str, payload: Payload| {
        let device =
            format!("ssd,cache=64g,write-bandwidth=1GB/s,collect-time=0ns,overhead=0ns,{saves}");
        let point = sequential(writes(blocks(MIB, lasting(2, closed(8)))));
        bandwidth(&run(&device, &with(point, |stream| stream.payload = payload)))
    };
    let half = |compressible, dedup| Payload::Random { compressible, dedup };
    // The share of each byte that is moved by a device that compresses, that deduplicates, and that
    // skips zeros.
    for (payload, moved) in [
        (Payload::UNIQUE, [1.0, 1.0, 1.0]),
        (Payload::Zeros, [0.4, 0.4, 0.4]),
        (Payload::ramp(), [0.4, 0.4, 1.0]),
        (half(0.5, 0.0), [0.7, 1.0, 1.0]),
        (half(0.5, 0.5), [0.7, 0.7, 1.0]),
    ] {
        for (saves, moved) in ["compresses", "deduplicates", "skips-zeros"].into_iter().zip(moved) {
            assert_near(of(&format!("{saves}=0.6"), payload.clone()), 1e9 / moved, 0.01);
        }
    }
    assert_near(of("compresses=0.6,deduplicates=0.5", half(0.5, 0.5)), 1e9 / (0.7 * 0.75), 0.01);
}

// Arrays.

/// The result of an array, as a multiple of the result of one of its disks.
fn of_a_disk(array: &str, disk: &str, what: impl Fn(&str) -> f64) -> f64 {
    let one = what(&format!("array,level=raid0,disks=1,chunk=64k,disk={disk}"));
    what(&format!("array,{array},chunk=64k,disk={disk}")) / one
}

#[test]
fn random_chunks_on_an_array_cost_what_its_level_says() {
    for disk in ["ssd", "hdd"] {
        let of = |array: &str, write: bool| {
            of_a_disk(array, disk, |device| {
                let point = lasting(30, blocks(64 * KIB, closed(256)));
                let point = with(point, |stream| stream.regions[0].length = Bytes(100_000_000_000));
                // Writes must cost as much as reads, so that I/Os are counted.
                iops(&run(device, &if write { writes(point) } else { point }))
            })
        };
        for (array, disks) in [
            ("level=raid0,disks=4", 4.0),
            ("level=raid10,disks=4", 4.0),
            ("level=raid5,disks=5", 5.0),
        ] {
            assert_near(of(array, false), disks, 0.06);
        }
        for (array, share) in [
            ("level=raid0,disks=4", 4.0),
            ("level=raid1,disks=2", 1.0),
            ("level=raid10,disks=4", 2.0),
        ] {
            assert_near(of(array, true), share, 0.06);
        }
    }
    // A hard disk reads and writes at the same speed. A chunk takes 4 I/Os with one parity, and 6
    // with two.
    let parity = |array: &str| {
        of_a_disk(array, "hdd", |device| {
            let point = writes(lasting(60, blocks(64 * KIB, closed(256))));
            iops(&run(device, &with(point, |s| s.regions[0].length = Bytes(100_000_000_000))))
        })
    };
    assert_near(parity("level=raid5,disks=6"), 6.0 / 4.0, 0.1);
    assert_near(parity("level=raid6,disks=6"), 6.0 / 6.0, 0.1);
}

#[test]
fn whole_rows_on_an_array_go_at_the_speed_of_its_data_disks() {
    for (array, row, share) in [
        ("level=raid0,disks=4", 256, 4.0),
        ("level=raid1,disks=2", 64, 1.0),
        ("level=raid10,disks=4", 128, 2.0),
        ("level=raid5,disks=4", 192, 3.0),
        ("level=raid6,disks=6", 256, 4.0),
    ] {
        for disk in ["ssd", "hdd"] {
            let disks = of_a_disk(array, disk, |device| {
                // Each I/O has whole rows, the same number for all disks, so that each disk gets
                // the same load.
                let rows = if device.contains("disks=1,") { 64 } else { row };
                let point = sequential(writes(blocks(16 * rows * KIB, lasting(10, closed(8)))));
                bandwidth(&run(device, &point))
            });
            assert_near(disks, share, 0.05);
        }
    }
}

/// The read bandwidth of an array as a multiple of that of one of its disks, with `streams` streams
/// that each have a zone.
fn reads_of_a_disk(array: &str, streams: u32, in_flight: u32, block: u64) -> f64 {
    let one_of_them = |device: &str| {
        let streams = if device.contains("disks=1,") { 1 } else { streams };
        let mut point = lasting(5, sequential(closed(in_flight)));
        point.warm_up = Span::from_secs(2);
        let stream = point.streams.pop().expect("a point has a stream");
        let zone = |nth: u32| {
            let mut stream = stream.clone();
            stream.kind_mut().block_sizes = BlockSizes::one(Bytes(block));
            stream.regions[0].offset = Bytes(u64::from(nth) * 100_000_000_000);
            stream.regions[0].length = Bytes(block * 1_000_000);
            stream
        };
        point.streams = (0..streams).map(zone).collect();
        bandwidth(&of_cell(device, &point))
    };
    of_a_disk(array, "hdd", one_of_them)
}

#[test]
fn hard_disks_of_an_array_read_sequences_as_fast_as_those_that_hold_the_data() {
    for (array, disks) in [
        ("level=raid0,disks=4", 4.0),
        ("level=raid1,disks=2", 1.0),
        ("level=raid10,disks=4", 2.0),
        // The disks skip the parity.
        ("level=raid5,disks=4", 3.0),
        ("level=raid6,disks=6", 4.0),
    ] {
        // Large blocks, and one small block at a time, which is read ahead.
        assert_near(reads_of_a_disk(array, 1, 8, 1 << 20), disks, 0.02);
        assert_near(reads_of_a_disk(array, 1, 1, 64 * KIB), disks, 0.02);
    }
    // With mirrors, each stream has a mirror for itself.
    assert_near(reads_of_a_disk("level=raid1,disks=2", 2, 8, 1 << 20), 2.0, 0.02);
    assert_near(reads_of_a_disk("level=raid1,disks=3", 3, 8, 1 << 20), 3.0, 0.02);
    assert_near(reads_of_a_disk("level=raid10,disks=4", 2, 8, 1 << 20), 4.0, 0.02);
    // Streams that alternate on the same disks cause seeks.
    for array in ["level=raid0,disks=4", "level=raid5,disks=4"] {
        let [one, two] = [1, 2].map(|streams| reads_of_a_disk(array, streams, 1, 64 * KIB));
        assert!(two < one / 2.0, "{array}: {one} and {two}");
    }
}

/// Hard disks behind a controller's cache of 64 MiB.
const CACHED: &str = "array,level=raid5,disks=4,disk=hdd,cache=64m";

#[test]
fn a_cache_takes_its_size_at_once_and_then_what_the_disks_take() {
    // Whole rows of 192 KiB: 3 x 150 MB/s, plus 64 MiB.
    let point = sequential(writes(blocks(16 * 192 * KIB, lasting(10, closed(8)))));
    let bytes = run(CACHED, &point).total(None).bytes.0 as f64;
    assert_near(bytes, 10.0 * 450e6 + 64.0 * MIB as f64, 0.01);
    // Data that fits into the cache costs only the link: 20 us, and 64 KiB at 4 GB/s.
    let small = with(writes(blocks(64 * KIB, closed(1))), |stream| {
        stream.pacing.limit = Some(Limit::Bytes(Bytes(32 * MIB)));
    });
    let times = run(CACHED, &lasting(60, small)).total(None).service_time.clone();
    assert_near(times.quantile(Quantile(1.0)).unwrap() as f64, 20e3 + 65_536.0 / 4.0, 0.01);
}

#[test]
fn a_cache_makes_rows_of_small_sequential_writes() {
    let steady = |device: &str| {
        let mut point = sequential(writes(blocks(64 * KIB, lasting(5, closed(1)))));
        point.streams[0].regions[0].length = Bytes(100_000_000_000);
        point.warm_up = Span::from_secs(2);
        bandwidth(&run(device, &point))
    };
    assert_near(steady(CACHED), 450e6, 0.02);
    let without = steady("array,level=raid5,disks=4,disk=hdd");
    assert!(without < 10e6, "{without}");
    // A partial row is read first, whether the write was acknowledged early or not.
    let random = |device: &str| {
        let point = with(writes(blocks(64 * KIB, lasting(60, closed(32)))), |stream| {
            stream.regions[0].length = Bytes(100_000_000_000);
        });
        iops(&run(device, &Point { warm_up: Span::from_secs(60), ..point }))
    };
    assert_near(random(CACHED) / random("array,level=raid5,disks=4,disk=hdd"), 1.0, 0.1);
}

#[test]
fn reads_of_what_is_in_a_cache_never_get_to_the_disks() {
    let hits = |region: u64| {
        let mut point = with(blocks(4 * KIB, lasting(60, closed(1))), |stream| {
            stream.regions[0].length = Bytes(region * MIB);
        });
        point.warm_up = Span::from_secs(60);
        let times = run("array,disk=hdd,cache=1m", &point).total(None).service_time.clone();
        // 20 us and 4 KiB at 4 GB/s; the disks need at least 50 us.
        let is_fast = |share: &f64| times.quantile(Quantile(*share)).unwrap() < 30_000;
        (1..=1000).map(|nth| f64::from(nth) / 1000.0).filter(is_fast).count() as f64 / 1000.0
    };
    assert_eq!(hits(1), 1.0);
    assert_near(hits(2), 0.5, 0.05);
    assert_near(hits(4), 0.25, 0.1);
}

// Maps.

/// Writes at the given bandwidth, in blocks of 128 KiB, and Poisson reads of 4 KiB at the given
/// rate.
fn cell(write: f64, read: f64) -> Point {
    let mut point = lasting(10, open(read, Arrivals::Poisson, 10_000));
    let size = 128 * KIB;
    let written = with(open(write / size as f64, Arrivals::Uniform, 1000), |stream| {
        stream.kind_mut().block_sizes = BlockSizes::one(Bytes(size));
        stream.kind_mut().pattern = Pattern::SEQUENTIAL;
        stream.kind_mut().read_share = 0.0;
    });
    point.streams.extend(written.streams);
    point.warm_up = Span::from_secs(1);
    point
}

/// The record of a cell. It skips the checks of `run`, which expect equal streams.
fn of_cell(device: &str, point: &Point) -> Record {
    let options = device.parse().expect(device);
    let never = AtomicBool::new(false);
    let record = run_point(point, Devices::Simulated(&options), &never, &mut Nobody);
    record.expect("a simulated device can always be opened")
}

fn reads(record: &Record) -> Histogram {
    record.total(Some(Direction::Read)).response_time().clone()
}

/// A map of 5 x 5 cells: p50 and p95 rise by known factors with each step. Cells beyond the
/// diagonal are not admissible.
fn map_file(folder: &std::path::Path) -> String {
    let mut text = String::from(
        "# made for a test\nw_idx,r_idx,w_bw_target_Bps,r_iops_target,w_bw_Bps,r_iops,p50_ns,p95_ns,\
         p99_ns,p999_ns,admissible,source\n",
    );
    for w in 0..=4 {
        for r in 0..=4 {
            let p50 = 100e3 * 1.2f64.powi(w) * 1.1f64.powi(r);
            let p95 = p50 * 2.0 * 1.1f64.powi(w);
            let admissible = u8::from(w + r <= 5);
            text += &format!(
                "{w},{r},{},{},,,{p50:.0},{p95:.0},,,{admissible},test\n",
                w * 50_000_000,
                r * 5_000
            );
        }
    }
    let path = folder.join("map.csv");
    std::fs::write(&path, text).expect("a temporary folder");
    path.display().to_string()
}

#[test]
fn a_grid_has_the_times_of_its_cells_and_between_them() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let device = format!("grid,file={}", map_file(folder.path()));
    for (w, r) in [(0.0, 2.0), (1.0, 4.0), (3.0, 2.0), (4.0, 1.0), (1.5, 2.5), (0.5, 4.0)] {
        let record = of_cell(&device, &cell((w * 50e6f64).max(1.0), r * 5e3));
        let times = reads(&record);
        let p50 = 100e3 * 1.2f64.powf(w) * 1.1f64.powf(r);
        assert_near(quantile(&times, 0.5), p50, 0.025);
        assert_near(quantile(&times, 0.95), p50 * 2.0 * 1.1f64.powf(w), 0.03);
        let backlog = record.backlog(0).expect("an open loop");
        assert!(backlog.lag < Span::from_ms(1), "{w} {r}: {backlog:?}");
        assert_near(times.count() as f64 / 10.0, r * 5e3, 0.02);
    }
}

#[test]
fn beyond_its_frontier_a_grid_falls_behind() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let device = format!("grid,file={}", map_file(folder.path()));
    // Beside 3 steps of writes, 2.35 steps of reads are served.
    let mut point = cell(150e6, 15e3);
    point.streams[0].pacing = open(15e3, Arrivals::Poisson, 64).streams[0].pacing.clone();
    let backlog = of_cell(&device, &point).backlog(0).expect("an open loop");
    assert_near(backlog.growth, 1.0 - 2.35 / 3.0, 0.1);
    assert!(backlog.lag > Span::from_secs(1), "{backlog:?}");
    // All four columns have admissible cells. No device serves 5 steps of writes.
    let mut point = cell(250e6, 5e3);
    point.streams[1].pacing =
        open(250e6 / (128.0 * 1024.0), Arrivals::Uniform, 64).streams[0].pacing.clone();
    let backlog = of_cell(&device, &point).backlog(1).expect("an open loop");
    assert_near(backlog.growth, 1.0 - 4.35 / 5.0, 0.05);
}

#[test]
fn the_closed_loops_that_look_for_a_grids_ends_find_them() {
    let record = run("grid", &lasting(5, closed(256)));
    assert_near(iops(&record), 20.35 * 5e3, 0.01);
    let record = run("grid", &sequential(writes(blocks(128 * KIB, lasting(5, closed(32))))));
    assert_near(bandwidth(&record), 20.35 * 25e6, 0.01);
}

#[test]
fn a_grid_has_noise_of_its_own_in_each_run() {
    let runs = 150;
    let of_run = |seed| {
        let mut point = Point { seed, window: Span::from_secs(1), ..cell(100e6, 20e3) };
        point.warm_up = Span(0);
        let times = reads(&of_cell("grid,p50-noise=4%,p95-noise=8%", &point));
        [0.5, 0.95].map(|q| quantile(&times, q).ln())
    };
    let all: Vec<[f64; 2]> = (0..runs).map(of_run).collect();
    for (index, expected) in [(0, 0.04), (1, 0.08)] {
        let values = || all.iter().map(|one| one[index]);
        let mean = values().sum::<f64>() / runs as f64;
        let deviation =
            (values().map(|x| (x - mean).powi(2)).sum::<f64>() / (runs - 1) as f64).sqrt();
        // Four standard errors of a standard deviation.
        assert_near(deviation, expected, 4.0 / (2.0 * runs as f64).sqrt());
    }
}

#[test]
fn a_file_that_is_no_map_is_refused_with_the_line() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("map.csv");
    let good = std::fs::read_to_string(map_file(folder.path())).expect("it was written");
    for (text, part) in [
        (String::new(), "no line"),
        (good.replace("p95_ns", "p90_ns"), "no column p95_ns"),
        (good.replace(",5000,", ",fast,"), "line 4: 'fast' is no number"),
        (good.lines().take(3).collect::<Vec<_>>().join("\n"), "two columns and two rows"),
    ] {
        std::fs::write(&path, text).expect("a temporary folder");
        let device = format!("grid,file={}", path.display());
        let why = device.parse::<fathom_engine::sim::Options>().expect_err("no map");
        assert!(why.contains(part) && why.contains("file="), "{why}");
    }
    let why = "grid,file=/no/such/map".parse::<fathom_engine::sim::Options>().expect_err("no file");
    assert!(why.contains("cannot be read"), "{why}");
}
