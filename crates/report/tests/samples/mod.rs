//! Invented runs, from which the stored documents of the golden tests are made. They are
//! repeatable, need no device, and each one has a difficult case for a renderer.

pub mod experiments;
pub mod hosts;

use fathom_core::calibration::{Ceiling, Cost, NullTarget};
use fathom_core::facts::{
    Clock, Counters, CpuPlace, CpuTime, DeviceCounters, Disk, Extents, FileSystem, Host, InUse,
    IoWq, Layer, LayerKind, Memory, Pauses, Queue, Rank, Target, TargetKind,
};
use fathom_core::measure::{
    Cell, CpuWait, Direction, ErrorKind, Errors, Flow, Interval, IoError, Ledger, Record,
    SparseHistogram, Spread, StartDelay, Stretch, Waits, WorkerRecord,
};
use fathom_core::plan::{WorkerPlan, divide};
use fathom_core::spec::{
    Access, Arrivals, BackendKind, BlockSizes, Course, Kind, Loop, OfferedLoad, Pacing, Pattern,
    Point, Region, Stage, Stream, SyncMode, Workers,
};
use fathom_core::trial::{Place, Trial};
use fathom_core::verdict::{Finding, Judgement, Obstacle, Severity, Unchecked};
use fathom_core::watch::{
    BlockRequest, Breakdown, DiskRange, HostLook, Matching, Operation, OwnIo,
};
use fathom_core::{Bytes, Instant, Rate, Span, SplitMix64};
use fathom_report::document::{
    self, Command, Conclusion, Document, Ended, Header, HeaderInput, Line,
};

/// 2026-11-21 09:30:00 UTC.
const CREATED_NS: u64 = 1_795_253_400_000_000_000;

/// Uses only sums and products of random numbers, so it is the same on every machine.
struct Chance(SplitMix64);

impl Chance {
    fn next(&mut self) -> u64 {
        self.0.draw()
    }

    fn uniform(&mut self) -> f64 {
        self.0.share()
    }

    /// A service time around `base`, with a tail.
    fn time(&mut self, base: f64) -> u64 {
        let bell: f64 = (0..4).map(|_| self.uniform() - 0.5).sum();
        let tail = match self.next() % 4000 {
            0 => 24.0,
            1..=12 => 5.0,
            13..=90 => 2.0,
            _ => 1.0,
        };
        (base * (1.0 + 0.3 * bell) * tail) as u64
    }
}

/// The speed of an invented target.
#[derive(Clone, Copy)]
struct Speed {
    iops: f64,
    service_ns: f64,
    /// How much slower one interval may be than another, as a share.
    unrest: f64,
}

pub fn host() -> Host {
    Host {
        name: "lab-7".to_owned(),
        kernel: "6.18.44".to_owned(),
        os: Some("Debian GNU/Linux 12 (bookworm)".to_owned()),
        cpu_model: Some("AMD EPYC 7543 32-Core Processor".to_owned()),
        cpus: 8,
        cpu_places: (0..8)
            .map(|number| CpuPlace {
                number,
                package: Some(0),
                core: Some(number % 4),
                node: Some(0),
            })
            .collect(),
        numa_nodes: 1,
        memory: Bytes(32 << 30),
        memory_limit: None,
        cpu_limit: None,
        virtualization: Some("kvm".to_owned()),
        root: true,
        clock: Clock { source: "tsc".to_owned(), resolution_ns: 0.5, cost_ns: 9.6 },
        ceiling: Some(Ceiling {
            backend: BackendKind::Uring,
            target: NullTarget::NopRing,
            costs: [(1, 247.4), (32, 87.25)]
                .map(|(queue_depth, per_io_ns)| Cost { queue_depth, per_io_ns })
                .to_vec(),
        }),
        rank: Rank::default(),
    }
}

pub fn nvme() -> Layer {
    Layer {
        name: "nvme0n1".to_owned(),
        device: Some((259, 0)),
        kind: LayerKind::Disk,
        size: Bytes(960_197_124_096),
        queue: Some(Queue {
            scheduler: Some("none".to_owned()),
            nr_requests: Some(1023),
            hardware_queues: Some(8),
            logical_sector: Some(Bytes(512)),
            physical_sector: Some(Bytes(4096)),
            minimum_io: Some(Bytes(4096)),
            optimal_io: None,
            max_request: Some(Bytes(128 << 10)),
            max_segments: None,
            volatile_write_cache: Some(true),
            write_cache_told: None,
            fua: None,
            discard_max: Some(Bytes(2 << 40)),
            polling: Some(false),
            counts: None,
        }),
        disk: Some(Disk {
            model: Some("SAMSUNG MZQL2960HCJR-00A07".to_owned()),
            firmware: Some("GDC5602Q".to_owned()),
            rotational: Some(false),
            numa_node: Some(0),
            transport: Some("nvme".to_owned()),
            device_queue_depth: None,
        }),
        ..Layer::default()
    }
}

fn partition() -> Layer {
    Layer {
        name: "nvme0n1p2".to_owned(),
        device: Some((259, 2)),
        kind: LayerKind::Partition,
        size: Bytes(900 << 30),
        members: Vec::from([1]),
        ..Layer::default()
    }
}

pub fn file(name: &str) -> Target {
    Target {
        name: name.to_owned(),
        path: name.to_owned(),
        kind: TargetKind::File,
        identity: None,
        disk_sequence: None,
        size: Bytes(8 << 30),
        direct_alignment: Some(Bytes(512)),
        atomic_writes: None,
        file_system: Some(FileSystem {
            kind: "ext4".to_owned(),
            source: "/dev/nvme0n1p2".to_owned(),
            mount_point: "/data".to_owned(),
            options: "rw,relatime".to_owned(),
            size: Bytes(885 << 30),
            available: Bytes(412 << 30),
            ..FileSystem::default()
        }),
        extents: Some(Extents { written: Bytes(8 << 30), count: 64, ..Extents::default() }),
        content: None,
        reduction: None,
        layers: Vec::from([partition(), nvme()]),
        in_use: Vec::new(),
        namespace: None,
        limits: Vec::new(),
    }
}

fn stream(pattern: Pattern, block: u64, read_share: f64, pacing: Pacing) -> Stream {
    Stream {
        ios: Kind {
            pattern,
            block_sizes: BlockSizes::one(Bytes(block)),
            read_share,
            ..Kind::default()
        }
        .into(),
        pacing,
        ..Stream::reading(
            "main",
            Vec::from([Region { target: 0, offset: Bytes(0), length: Bytes(8 << 30) }]),
        )
    }
}

fn point(name: &str, stream: Stream, seconds: u64) -> Point {
    Point {
        name: name.to_owned(),
        warm_up: Span::from_secs(2),
        interval: Span::from_ms(500),
        seed: 42,
        ..Point::of(Vec::from([stream]), Span::from_secs(seconds))
    }
}

fn closed(queue_depth: u32) -> Pacing {
    Pacing::closed(queue_depth)
}

/// The workers of a point before they start.
fn idle_workers(point: &Point) -> Vec<WorkerRecord> {
    let open = point.streams[0].pacing.is_open();
    let cell = |region: &Region| Cell {
        target: region.target,
        flows: [Flow::new(open), Flow::new(open)],
        spread: Spread::default(),
        upkeep: None,
    };
    let worker = |plan: WorkerPlan| WorkerRecord {
        stream: plan.stream,
        worker: plan.worker,
        cells: plan.regions.iter().map(cell).collect(),
        ledger: Ledger::default(),
        errors: Errors::default(),
        queue_depth: 0.0,
        start_delay: plan.pace.is_open().then(StartDelay::default),
        cpu: Some(Span::from_ms(300)),
        cpu_wait: Some(CpuWait { time: Span::from_us(1800), runs: 900 }),
        gave_up: false,
        lag: None,
        whole: None,
        waits: Some(Waits {
            margin: Span::from_us(60),
            spin_in_flight: Span::from_us(if open { 1500 } else { 0 }),
        }),
    };
    divide(point).into_iter().map(worker).collect()
}

/// Runs a point on an invented target. There is one stream, and all its workers are alike.
fn run(point: Point, speed: Speed, window: Span) -> Record {
    let stream = &point.streams[0];
    let open = stream.pacing.is_open();
    let seed = point.seed ^ stream.block_sizes().largest().0;
    let mut chance = Chance(SplitMix64(seed ^ u64::from(stream.pacing.queue_depth())));
    let mut workers = idle_workers(&point);
    let mut stretches = Vec::new();
    for place in 0..window.0 / point.interval.0 {
        let pace = 1.0 - speed.unrest * chance.uniform();
        let mut sums = [Flow::new(false), Flow::new(false)];
        for number in 0..(speed.iops * pace * point.interval.as_secs_f64()) as usize {
            let direction = usize::from(chance.uniform() >= stream.read_share());
            let service = chance.time(speed.service_ns / pace);
            let delay = if open { chance.time(3000.0) } else { 0 };
            let count = workers.len();
            let worker = &mut workers[number % count];
            let cells = worker.cells.len();
            let flow = &mut worker.cells[number / count % cells].flows[direction];
            flow.bytes.0 += stream.block_sizes().largest().0;
            flow.service_time.record(service);
            if let Some(response_time) = &mut flow.response_time {
                response_time.record(service + delay);
                worker.start_delay.get_or_insert_default().generator.record(delay);
            }
            worker.queue_depth += service as f64 / window.0 as f64;
            sums[direction].bytes.0 += stream.block_sizes().largest().0;
            sums[direction].service_time.record(service + delay);
        }
        stretches.push(Stretch {
            stream: 0,
            start: Span(place * point.interval.0),
            length: point.interval,
            bytes: [sums[0].bytes, sums[1].bytes],
            failed: 0,
            response_time: sums.map(|sum| match sum.ios() {
                0 => SparseHistogram::default(),
                _ => sum.service_time.to_sparse(),
            }),
            lag: None,
        });
    }
    for worker in &mut workers {
        let completed = worker.cells.iter().flat_map(|cell| &cell.flows).map(Flow::ios).sum();
        worker.ledger = Ledger {
            due: completed + 900,
            completed_in_warm_up: 898,
            completed,
            in_flight: 2,
            ..Ledger::default()
        };
    }
    let series = stretches.iter().map(Stretch::interval).collect();
    Record {
        window,
        interrupted: false,
        ended_early: false,
        workers,
        series,
        stretches,
        buckets: None,
    }
}

fn counters(window: Span) -> Counters {
    let cpu = |share: u64| CpuTime {
        user: Span(window.0 * share / 100),
        kernel: Span(window.0 * share / 50),
        idle: Span(window.0 * (100 - 3 * share) / 100),
        steal: Span(0),
    };
    Counters {
        late: Span::from_ms(2),
        cpus: (0..8).map(|number| (number, cpu(u64::from(number % 4) + 1))).collect(),
        devices: Vec::from([DeviceCounters {
            name: "nvme0n1".to_owned(),
            device: (259, 0),
            reads: 50_000,
            read_bytes: Bytes(50_000 * 4096),
            writes: 120,
            written_bytes: Bytes(120 * 4096),
            under_way: Some([Span::from_secs(5), Span::from_ms(12)]),
            merged: None,
            flushes: 3,
            held: None,
        }]),
        process_user: Span(window.0 / 20),
        process_kernel: Span(window.0 / 10),
        throttled: Some(Span(0)),
        arrays: Vec::new(),
        journals: Vec::new(),
        targets: Vec::new(),
        io_wq: Some(IoWq {
            handed_over: Some(0),
            threads: Some(Vec::new()),
            waits: Some(Vec::new()),
        }),
        memory: Memory {
            major_faults: Some(0),
            swapped_in: Some(Bytes(0)),
            swapped_out: Some(Bytes(0)),
            stalled: Some(Span(0)),
        },
        tracer: None,
        pauses: Some(Pauses { tells_waiting: true, ..Pauses::default() }),
    }
}

fn trial(point: Point, speed: Speed, nth: u64) -> Trial {
    let window = point.window;
    Trial {
        record: run(point.clone(), speed, window),
        point,
        place: Place::default(),
        backend: BackendKind::Uring,
        backend_reason: "the kernel has every feature that is used".to_owned(),
        started_unix_ns: CREATED_NS + (3 + 12 * nth) * 1_000_000_000,
        counters: Some(counters(window)),
        traced: None,
        breakdown: None,
        hosts: Vec::new(),
        is_void: false,
        doubt: None,
    }
}

fn header(command: Command, line: &[&str], targets: &[Target], planned_points: u32) -> Header {
    let command_line: Vec<String> = line.iter().map(|word| (*word).to_owned()).collect();
    Header::new(HeaderInput {
        fathom_version: "0.1.0",
        command,
        command_line: &command_line,
        created_unix_ns: CREATED_NS,
        seed: 42,
        host: Some(&host()),
        hosts: &[],
        targets,
        planned_points,
        experiment: None,
        working_directory: None,
        identities: &[],
    })
}

fn finding(code: &'static str, severity: Severity, evidence: &str, advice: &str) -> Finding {
    Finding { code, severity, evidence: evidence.to_owned(), advice: advice.to_owned() }
}

fn unchecked() -> Unchecked {
    Unchecked {
        code: "device-cache",
        why: "the device does not say how large its cache is".to_owned(),
        obstacle: Obstacle::Machine,
    }
}

/// Only a header: the run was killed before the end of its first trial.
pub fn empty() -> Document {
    let line = ["fathom", "run", "/data/test", "--block-size", "4k"];
    Document {
        header: header(Command::Run, &line, &[file("/data/test")], 1),
        trials: Vec::new(),
        conclusion: None,
        torn: false,
        conditions: Vec::new(),
    }
}

/// A portrait with nothing worse than notes.
pub fn quick() -> Document {
    let steps = [
        ("sequential read 1 MiB", Pattern::SEQUENTIAL, 1 << 20, 1.0, 8, 3200.0),
        ("sequential write 1 MiB", Pattern::SEQUENTIAL, 1 << 20, 0.0, 8, 1400.0),
        ("random read 4 KiB", Pattern::RANDOM, 4096, 1.0, 1, 1150.0),
        ("random read 4 KiB", Pattern::RANDOM, 4096, 1.0, 32, 12_000.0),
        ("random write 4 KiB", Pattern::RANDOM, 4096, 0.0, 32, 8600.0),
        ("database: random 8 KiB, 70 % reads", Pattern::RANDOM, 8192, 0.7, 32, 7900.0),
    ];
    let mut trials = Vec::new();
    for (nth, (name, pattern, block, read_share, depth, iops)) in steps.into_iter().enumerate() {
        let point = point(name, stream(pattern, block, read_share, closed(depth)), 10);
        let service_ns = f64::from(depth) / iops * 1e9;
        let trial = trial(point, Speed { iops, service_ns, unrest: 0.08 }, nth as u64);
        let mut judgement =
            Judgement { unchecked: Vec::from([unchecked()]), ..Judgement::default() };
        judgement.findings.push(finding(
            "small-footprint",
            Severity::Note,
            "The region is 8 GiB, a quarter of the memory of 32 GiB.",
            "For a claim about the device, test more than twice the memory with --size.",
        ));
        if read_share < 1.0 {
            judgement.findings.push(finding(
                "volatile-write-cache",
                Severity::Note,
                "nvme0n1 has a volatile write cache, and writes did not wait for the medium.",
                "Add --write-through to measure durable writes.",
            ));
        }
        trials.push(document::Trial::new(&trial, &judgement));
    }
    Document {
        header: header(Command::Quick, &["fathom", "quick"], &[file("/data/.fathom-scratch")], 6),
        trials,
        conclusion: Some(Conclusion {
            ended: Ended::Completed,
            sentences: Vec::new(),
            found: None,
        }),
        torn: false,
        conditions: Vec::new(),
    }
}

/// An open loop on two targets with a load above their capacity.
pub fn open() -> Document {
    let pacing = Pacing::open(Rate(5000.0), Arrivals::Poisson, 64);
    let mut stream = stream(Pattern::RANDOM, 8192, 0.7, pacing);
    stream.workers = Workers::PerTarget(2);
    stream.regions.push(Region { target: 1, offset: Bytes(1 << 20), length: Bytes(4 << 30) });
    let point = point("random 8 KiB, 70 % reads, 5,000 IOPS offered", stream, 10);
    let speed = Speed { iops: 4700.0, service_ns: 640_000.0, unrest: 0.3 };
    let mut trial = trial(point, speed, 0);
    for worker in &mut trial.record.workers {
        for nth in 0..500 {
            let delay = worker.start_delay.get_or_insert_default();
            delay.target.record(2_000_000 + nth * 40_000);
        }
        worker.ledger.unstarted = 120;
        worker.ledger.due += 120;
    }
    if let Some(counters) = &mut trial.counters {
        let threads = Vec::from([(4711, Span::from_ms(7)), (4712, Span::from_ms(2))]);
        counters.io_wq = Some(IoWq { handed_over: Some(812), threads: Some(threads), waits: None });
    }
    let findings = Vec::from([
        finding(
            "overload",
            Severity::Suspect,
            "480 of 50,000 I/Os that fell due were never started: the targets did 4,004 of the \
             5,000 IOPS that were offered.",
            "Offer less load to see the response time that users would see.",
        ),
        finding(
            "io-wq",
            Severity::Note,
            "812 of 40040 I/Os (2 %) went through io_uring's own threads (io-wq), which used 9 ms \
             of CPU time: the kernel could not start them without waiting, and their service time \
             contains the way to another thread and back.",
            "Take the service time for that of io_uring with its threads.",
        ),
        finding(
            "short-window",
            Severity::Note,
            "The window was 10 s.",
            "Measure for 60 s or more.",
        ),
    ]);
    let judgement = Judgement { findings, unchecked: Vec::from([unchecked()]) };
    let line = ["fathom", "run", "/data/a", "/dev/sdb", "--rate", "5k", "--mix", "70"];
    let mut device = file("/dev/sdb");
    device.kind = TargetKind::BlockDevice;
    device.file_system = None;
    device.extents = None;
    device.in_use.push(InUse::Holder { device: "sdb".to_owned(), holder: "md0".to_owned() });
    device.in_use.push(InUse::Unknown {
        device: "/dev/sdb".to_owned(),
        why: "Input/output error".to_owned(),
    });
    Document {
        header: header(Command::Run, &line, &[file("/data/a"), device], 1),
        trials: Vec::from([document::Trial::new(&trial, &judgement)]),
        conclusion: Some(Conclusion {
            ended: Ended::Completed,
            sentences: Vec::from(["The offered load is above what the targets can do.".to_owned()]),
            found: None,
        }),
        torn: false,
        conditions: Vec::new(),
    }
}

/// Names that a renderer must not treat as markup, as formulas or as terminal commands.
pub const EVIL: [&str; 2] =
    ["/data/</script><script>alert(\"x\")</script>, 'a' & b", "=cmd|'\u{1b}[31m/evil\"\r\n"];

/// Writes of many workers. Every third write failed.
pub fn void() -> Document {
    let mut stream = stream(Pattern::RANDOM, 4096, 0.0, closed(48));
    stream.workers = Workers::Total(24);
    stream.regions.push(Region { target: 1, offset: Bytes(0), length: Bytes(8 << 30) });
    let mut point = point("random write 4 KiB, queue depth 48", stream, 3);
    point.name.push_str(" </script><b>");
    let speed = Speed { iops: 900.0, service_ns: 4_000_000.0, unrest: 0.5 };
    let mut trial = trial(point, speed, 0);
    trial.backend = BackendKind::Sync;
    trial.backend_reason = "io_uring is switched off here (kernel.io_uring_disabled=2)".to_owned();
    trial.counters = None;
    let kinds = [
        ErrorKind::Errno(5),
        ErrorKind::Errno(28),
        ErrorKind::Short(512),
        ErrorKind::Short(0),
        ErrorKind::Lost,
        ErrorKind::Errno(9999),
    ];
    for (place, worker) in trial.record.workers.iter_mut().enumerate() {
        for nth in 0..3 {
            worker.errors.add(IoError {
                upkeep: None,
                target: (nth % 2) as u32,
                direction: Direction::Write,
                offset: Bytes(4096 * (place as u64 + 7)),
                length: Bytes(4096),
                kind: kinds[(place + nth) % kinds.len()],
                at_ns: (place as i64 - 1) * 50_000_000 + nth as i64,
            });
        }
        worker.ledger.failed = 3;
        worker.ledger.due += 3;
        worker.gave_up = place == 0;
        worker.cpu = None;
    }
    trial.record.series.iter_mut().for_each(|interval| interval.failed = 12);
    trial.record.stretches.iter_mut().for_each(|stretch| stretch.failed = 12);
    let judgement = Judgement {
        findings: Vec::from([finding(
            "io-errors",
            Severity::Void,
            "72 I/Os failed, the first with EIO at offset 28672 of /data/</script>.",
            "Look into the kernel's log (dmesg) and replace or repair the target.",
        )]),
        unchecked: Vec::from([Unchecked {
            code: "other-load",
            why: "the kernel's counters could not be read".to_owned(),
            obstacle: Obstacle::Machine,
        }]),
    };
    let line = ["fathom", "run", EVIL[0], EVIL[1], "--read-share", "0", "--workers", "24"];
    Document {
        header: header(Command::Run, &line, &[file(EVIL[0]), file(EVIL[1])], 1),
        trials: Vec::from([document::Trial::new(&trial, &judgement)]),
        conclusion: Some(Conclusion { ended: Ended::Failed, sentences: Vec::new(), found: None }),
        torn: false,
        conditions: Vec::new(),
    }
}

/// Where the time of 4,000 invented I/Os went: most of it at the device, but for the slowest, which
/// waited in a queue behind another program's.
fn breakdown(window: Span) -> Breakdown {
    let mut chance = Chance(SplitMix64(7));
    let mut matching = Matching::default();
    for number in 0..window.0 / 100_000_000 + 2 {
        matching.host(HostLook {
            at: Instant(number * 100_000_000),
            stolen: Span(number / 7 * 10_000_000),
            throttled: Span(0),
            writeback: Bytes(if number % 9 == 4 { 12 << 20 } else { 0 }),
        });
    }
    let ios = 4000;
    for number in 0..ios {
        let operation = if number % 4 == 3 { Operation::Write } else { Operation::Read };
        let submitted = Instant(number * (window.0 / ios));
        let waits = if number % 150 == 77 { chance.time(3_000_000.0) } else { 900 };
        let queued = submitted + Span(chance.time(2_400.0));
        let issued = queued + Span(waits);
        let completed = issued + Span(chance.time(80_000.0));
        let piece = DiskRange { device: (259, 0), sector: number * 8, sectors: 8 };
        let request = BlockRequest {
            device: piece.device,
            operation,
            sector: piece.sector,
            bytes: 4096,
            program: 0,
            sequential: false,
            failed: false,
            queued: Some(queued),
            issued: Some(issued),
            completed,
            cpus: ((number % 4) as u32, (number % 3) as u32),
        };
        if waits > 900 {
            matching.others(&BlockRequest { program: 1, bytes: 1 << 20, ..request });
        }
        if number != 77 {
            matching.own(&request);
        }
        matching.io(OwnIo {
            operation,
            target: 0,
            offset: Bytes(number * 4096),
            length: Bytes(4096),
            submitted_ns: submitted.0 as i64,
            submitted,
            completed: completed + Span(4_000),
            piece: Some(piece),
            others: Vec::new(),
        });
    }
    let breakdown = matching.end(|number| ["fathom", "kworker"][number as usize].to_owned());
    Breakdown { disks: Vec::from(["nvme0n1".to_owned()]), lost_events: 12, ..breakdown }
}

/// A run whose requests were watched.
pub fn parted() -> Document {
    let stream = stream(Pattern::RANDOM, 4096, 0.75, closed(4));
    let point = point("random 75/25 read/write 4 KiB, queue depth 4", stream, 10);
    let speed = Speed { iops: 400.0, service_ns: 90_000.0, unrest: 0.02 };
    let mut trial = trial(point, speed, 0);
    trial.breakdown = Some(breakdown(trial.point.window));
    let judgement = Judgement { findings: Vec::new(), unchecked: Vec::new() };
    let line = ["fathom", "run", "/data/a", "--overwrite", "--read-share", "75%", "--watch"];
    Document {
        header: header(Command::Run, &line, &[file("/data/a")], 1),
        trials: Vec::from([document::Trial::new(&trial, &judgement)]),
        conclusion: Some(Conclusion {
            ended: Ended::Completed,
            sentences: Vec::new(),
            found: None,
        }),
        torn: false,
        conditions: Vec::new(),
    }
}

/// Two streams at once, each with its own target, loop and access.
pub fn streams() -> Document {
    let mut data = stream(Pattern::RANDOM, 8192, 0.7, closed(16));
    data.name = "data".to_owned();
    data.workers = Workers::Total(2);
    let stage = |seconds, begins, ends| Stage {
        lasts: Span::from_secs(seconds),
        begins: Rate(begins),
        ends: Rate(ends),
    };
    let stages = [stage(5, 250.0, 250.0), stage(5, 250.0, 1250.0)];
    let pacing = Pacing::of(Loop::Open {
        load: OfferedLoad::Course(Course::new(stages.to_vec())),
        arrivals: Arrivals::Uniform,
        queue_depth_max: 64,
        realtime: false,
    });
    let mut log = stream(Pattern::SEQUENTIAL, 4096, 0.0, pacing);
    log.name = "log".to_owned();
    log.regions[0].target = 1;
    log.access.sync = SyncMode::Dsync;
    let speed = Speed { iops: 500.0, service_ns: 900_000.0, unrest: 0.1 };
    let second = run(point("", log.clone(), 10), speed, Span::from_secs(10));
    let speed = Speed { iops: 3000.0, service_ns: 700_000.0, unrest: 0.2 };
    let mut both = trial(point("shop", data, 10), speed, 0);
    both.point.streams.push(log);
    let record = &mut both.record;
    record.workers.extend(second.workers.into_iter().map(|one| WorkerRecord { stream: 1, ..one }));
    record.series.extend(second.series.into_iter().map(|one| Interval { stream: 1, ..one }));
    record.stretches.extend(second.stretches.into_iter().map(|one| Stretch { stream: 1, ..one }));
    let line = ["fathom", "run", "shop.toml", "--overwrite"];
    let judgement = Judgement { findings: Vec::new(), unchecked: Vec::from([unchecked()]) };
    Document {
        header: header(Command::Run, &line, &[file("/data/a"), file("/data/log")], 1),
        trials: Vec::from([document::Trial::new(&both, &judgement)]),
        conclusion: Some(Conclusion {
            ended: Ended::Completed,
            sentences: Vec::new(),
            found: None,
        }),
        torn: false,
        conditions: Vec::new(),
    }
}

/// A run that Ctrl-C ended. It has too few I/Os for most percentiles.
pub fn interrupted() -> Document {
    let mut point = point(
        "random read 4 KiB, queue depth 1",
        stream(Pattern::RANDOM, 4096, 1.0, closed(1)),
        300,
    );
    point.interval = Span::from_ms(100);
    point.streams[0].access = Access { sync: SyncMode::Dsync, ..Access::BUFFERED };
    let speed = Speed { iops: 400.0, service_ns: 2_400_000.0, unrest: 0.1 };
    let window = Span::from_ms(700);
    let record = Record { interrupted: true, ..run(point.clone(), speed, window) };
    let trial = Trial {
        record,
        point,
        place: Place::default(),
        backend: BackendKind::Sim,
        backend_reason: "the target is simulated".to_owned(),
        started_unix_ns: CREATED_NS + 2_500_000_000,
        counters: None,
        traced: None,
        breakdown: None,
        hosts: Vec::new(),
        is_void: false,
        doubt: None,
    };
    let judgement = Judgement {
        findings: Vec::from([finding(
            "interrupted",
            Severity::Suspect,
            "The window was cut off after 700 ms of 5 min.",
            "Let the run end.",
        )]),
        unchecked: Vec::new(),
    };
    let line = ["fathom", "run", "sim:hdd", "--duration", "5m"];
    Document {
        header: header(Command::Run, &line, &[Target::simulated("sim:hdd", Bytes(1 << 40))], 1),
        trials: Vec::from([document::Trial::new(&trial, &judgement)]),
        conclusion: Some(Conclusion {
            ended: Ended::Interrupted,
            sentences: Vec::new(),
            found: None,
        }),
        torn: false,
        conditions: Vec::new(),
    }
}

/// The bytes of the journal: those that were read, or those that a run would have written.
pub fn bytes(document: &Document) -> Vec<u8> {
    let header = Line::Header(Box::new(document.header.clone()));
    let trials = document.trials.iter().map(|trial| Line::Trial(Box::new(trial.clone())));
    let conclusion =
        document.conclusion.iter().map(|last| Line::Conclusion(Box::new(last.clone())));
    let lines = std::iter::once(header).chain(trials).chain(conclusion);
    lines.flat_map(|line| (line.to_json() + "\n").into_bytes()).collect()
}

/// The bytes of a portrait. Its fourth trial was being written when the power failed.
pub fn torn() -> Vec<u8> {
    let whole = quick();
    let kept = Document { trials: whole.trials[..3].to_vec(), conclusion: None, ..whole.clone() };
    let mut torn = bytes(&kept);
    let longer = Document { trials: whole.trials[..4].to_vec(), conclusion: None, ..whole };
    let end = torn.len() + 1234;
    torn.extend_from_slice(&bytes(&longer)[torn.len()..end]);
    torn
}

/// Every stored document by name.
pub fn all() -> Vec<(&'static str, Vec<u8>)> {
    Vec::from([
        ("empty", bytes(&empty())),
        ("quick", bytes(&quick())),
        ("open", bytes(&open())),
        ("streams", bytes(&streams())),
        ("void", bytes(&void())),
        ("parted", bytes(&parted())),
        ("torn", torn()),
        ("interrupted", bytes(&interrupted())),
        ("hosts", bytes(&hosts::run_on_hosts())),
        ("scaling", bytes(&hosts::scaling())),
    ])
    .into_iter()
    .chain(experiments::all().into_iter().map(|(name, document)| (name, bytes(&document))))
    .collect()
}
