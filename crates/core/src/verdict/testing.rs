//! Invented trials for the tests: a clean trial, in which a test makes one change at a time.

use super::{Finding, Judgement, Severity, judge};
use crate::calibration::{Ceiling, Cost, NullTarget};
use crate::facts::{
    Content, Counters, CpuTime, DeviceCounters, Disk, Extents, FileSystem, Host, IoWq, Layer,
    LayerKind, Memory, Others, Pauses, Queue, Seen, Target, TargetKind,
};
use crate::measure::{
    Cell, CpuWait, Direction, Errors, Flow, Interval, Ledger, Record, Spread, WorkerRecord,
};
use crate::spec::{
    Arrivals, BackendKind, BlockSizes, Kind, Pacing, Point, Region, Stream, Workers,
};
use crate::trial::{Place, Trial};
use crate::units::{Bytes, Rate, Span};

/// A trial with its host and target. It is clean: 60 s of I/Os of 4 KiB at 1000 IOPS, on a file of
/// 100 GiB.
pub(crate) struct Invented {
    pub(crate) trial: Trial,
    pub(crate) host: Host,
    pub(crate) targets: Vec<Target>,
    direction: Direction,
}

const SECONDS: u64 = 60;
const IOS: u64 = 1000 * SECONDS;
const BLOCK: u64 = 4096;
const SIZE: Bytes = Bytes(100 << 30);

impl Invented {
    pub(crate) fn reads() -> Self {
        Self::new(Direction::Read, Pacing::closed(1))
    }

    pub(crate) fn writes() -> Self {
        Self::new(Direction::Write, Pacing::closed(1))
    }

    pub(crate) fn open_reads(rate: f64) -> Self {
        let pacing = Pacing::open(Rate(rate), Arrivals::Poisson, 64);
        Self::new(Direction::Read, pacing)
    }

    fn new(direction: Direction, pacing: Pacing) -> Self {
        let stream = Stream {
            ios: Kind {
                block_sizes: BlockSizes::one(Bytes(BLOCK)),
                read_share: if direction == Direction::Read { 1.0 } else { 0.0 },
                ..Kind::default()
            }
            .into(),
            pacing: pacing.clone(),
            workers: Workers::PerTarget(1),
            ..Stream::reading(
                "main",
                Vec::from([Region { target: 0, offset: Bytes(0), length: SIZE }]),
            )
        };
        let point = Point {
            name: "invented".to_owned(),
            warm_up: Span::from_secs(5),
            interval: Span::from_secs(1),
            ..Point::of(Vec::from([stream]), Span::from_secs(SECONDS))
        };
        let trial = Trial {
            point,
            place: Place::default(),
            backend: BackendKind::Uring,
            backend_reason: String::new(),
            started_unix_ns: 0,
            record: Record {
                window: Span::from_secs(SECONDS),
                interrupted: false,
                ended_early: false,
                workers: Vec::from([worker(&pacing)]),
                series: Vec::new(),
                stretches: Vec::new(),
                buckets: None,
            },
            counters: Some(counters(direction)),
            traced: None,
            breakdown: None,
            hosts: Vec::new(),
            is_void: false,
            doubt: None,
        };
        let cost = |queue_depth, per_io_ns| Cost { queue_depth, per_io_ns };
        let ceiling = Ceiling {
            backend: BackendKind::Uring,
            target: NullTarget::NopRing,
            costs: Vec::from([cost(1, 600.0), cost(32, 110.0)]),
        };
        let host = Host {
            cpus: 4,
            numa_nodes: 1,
            memory: Bytes(16 << 30),
            ceiling: Some(ceiling),
            ..Host::default()
        };
        let mut invented = Self { trial, host, targets: Vec::from([target()]), direction };
        invented.set_times(IOS, 900_000);
        invented.set_series([1000; SECONDS as usize]);
        invented
    }

    pub(crate) fn simulate(&mut self) {
        self.trial.backend = BackendKind::Sim;
        self.trial.counters = None;
        self.targets = Vec::from([Target::simulated("sim:ssd", SIZE)]);
    }

    pub(crate) fn worker(&mut self) -> &mut WorkerRecord {
        &mut self.trial.record.workers[0]
    }

    pub(crate) fn stream(&mut self) -> &mut Stream {
        &mut self.trial.point.streams[0]
    }

    pub(crate) fn target(&mut self) -> &mut Target {
        &mut self.targets[0]
    }

    /// The disk at the bottom of the target.
    pub(crate) fn disk(&mut self) -> &mut Layer {
        &mut self.targets[0].layers[1]
    }

    pub(crate) fn counters(&mut self) -> &mut Counters {
        self.trial.counters.as_mut().expect("this trial has counters")
    }

    /// Sets the time for which the worker waited for a CPU, in few waits.
    pub(crate) fn set_cpu_wait(&mut self, time: Span) {
        self.worker().cpu_wait = Some(CpuWait { time, runs: 100 });
    }

    /// The disk's counters.
    pub(crate) fn device(&mut self) -> &mut DeviceCounters {
        &mut self.counters().devices[0]
    }

    /// Sets the service time of this many I/Os. In an open loop the response time is the same.
    pub(crate) fn set_times(&mut self, ios: u64, service_ns: u64) {
        let direction = self.direction as usize;
        let is_open = self.stream().pacing.is_open();
        let mut flow = Flow::new(is_open);
        flow.bytes = Bytes(ios * BLOCK);
        for _ in 0..ios {
            flow.service_time.record(service_ns);
            if let Some(response_time) = &mut flow.response_time {
                response_time.record(service_ns);
            }
        }
        self.worker().cells[0].flows[direction] = flow;
        // The device counted the same I/Os, with slightly shorter times.
        let Some(device) = self.trial.counters.as_mut().and_then(|c| c.devices.first_mut()) else {
            return;
        };
        let counted = if direction == 0 { &mut device.reads } else { &mut device.writes };
        *counted = ios;
        device.under_way = Some([Span(ios * (service_ns - service_ns / 16)); 2]);
    }

    /// Sets the series: one second for each number of I/Os.
    pub(crate) fn set_series(&mut self, ios: impl IntoIterator<Item = u64>) {
        let direction = self.direction as usize;
        let seconds = ios.into_iter().enumerate().map(|(second, ios)| {
            let mut interval = Interval {
                start: Span::from_secs(second as u64),
                length: Span::from_secs(1),
                ..Interval::default()
            };
            interval.ios[direction] = ios;
            interval.bytes[direction] = Bytes(ios * BLOCK);
            interval
        });
        self.trial.record.series = seconds.collect();
    }

    pub(crate) fn set_region(&mut self, offset: u64, length: u64) {
        self.stream().regions[0] =
            Region { target: 0, offset: Bytes(offset), length: Bytes(length) };
    }

    pub(crate) fn set_block_size(&mut self, bytes: u64) {
        self.stream().kind_mut().block_sizes = BlockSizes::one(Bytes(bytes));
    }

    pub(crate) fn judge(&self) -> Judgement {
        judge(&self.trial, &self.host, &self.targets)
    }

    pub(crate) fn codes(&self) -> Vec<&'static str> {
        self.judge().findings.iter().map(|finding| finding.code).collect()
    }

    /// The finding with this code. Checks that it occurs once, with this severity and in the
    /// required form.
    #[track_caller]
    pub(crate) fn has(&self, code: &str, severity: Severity) -> Finding {
        let judgement = self.judge();
        let mut found = judgement.findings.iter().filter(|finding| finding.code == code);
        let finding = found.next().unwrap_or_else(|| panic!("no {code} in {judgement:#?}"));
        assert_eq!(finding.severity, severity, "{finding:?}");
        assert!(finding.evidence.ends_with('.') && finding.advice.ends_with('.'), "{finding:?}");
        assert!(finding.evidence.contains(|c: char| c.is_ascii_digit()) || is_qualitative(code));
        finding.clone()
    }

    #[track_caller]
    pub(crate) fn has_none_of(&self, codes: &[&str]) {
        let findings = self.judge().findings;
        assert!(findings.iter().all(|finding| !codes.contains(&finding.code)), "{findings:#?}");
    }

    #[track_caller]
    pub(crate) fn is_unchecked(&self, code: &str) {
        let unchecked = self.judge().unchecked;
        assert!(unchecked.iter().any(|one| one.code == code), "{code} not in {unchecked:#?}");
    }
}

/// Whether the finding is about the identity of a target, rather than an amount of something.
fn is_qualitative(code: &str) -> bool {
    [
        "repeating-payload",
        "barriers-off",
        "memory-target",
        "volatile-write-cache",
        "copy-on-write",
        "copy-up",
        "compression",
        "io-priority-ignored",
        "top-of-stack",
        "loop-buffered",
        "array-resync",
        "target-replaced",
        "concurrent-fathom",
    ]
    .contains(&code)
}

fn worker(pacing: &Pacing) -> WorkerRecord {
    WorkerRecord {
        stream: 0,
        worker: 0,
        cells: Vec::from([Cell {
            target: 0,
            flows: [(); 2].map(|()| Flow::new(pacing.is_open())),
            spread: Spread::default(),
            upkeep: None,
        }]),
        ledger: Ledger { due: IOS + 1, completed: IOS, in_flight: 1, ..Ledger::default() },
        errors: Errors::with_room(),
        queue_depth: 0.99,
        start_delay: None,
        cpu: Some(Span::from_secs(6)),
        cpu_wait: Some(CpuWait { time: Span::from_ms(60), runs: IOS }),
        gave_up: false,
        waits: None,
        lag: None,
        whole: None,
    }
}

fn counters(direction: Direction) -> Counters {
    let bytes = |one| if direction == one { Bytes(IOS * BLOCK) } else { Bytes(0) };
    let ios = |one| if direction == one { IOS } else { 0 };
    let cpu = CpuTime {
        user: Span::from_secs(3),
        kernel: Span::from_secs(6),
        idle: Span::from_secs(51),
        steal: Span::from_ms(100),
    };
    Counters {
        cpus: (0..4).map(|number| (number, cpu)).collect(),
        devices: Vec::from([DeviceCounters {
            name: "vda".to_owned(),
            device: (254, 0),
            read_bytes: bytes(Direction::Read),
            written_bytes: bytes(Direction::Write),
            reads: ios(Direction::Read),
            writes: ios(Direction::Write),
            under_way: Some([Span::from_us(850 * IOS); 2]),
            ..DeviceCounters::default()
        }]),
        throttled: Some(Span(0)),
        io_wq: Some(IoWq {
            handed_over: Some(0),
            threads: Some(Vec::new()),
            waits: Some(Vec::new()),
        }),
        memory: Memory { major_faults: Some(3), stalled: Some(Span(0)), ..Memory::default() },
        pauses: Some(Pauses { tells_waiting: true, ..Pauses::default() }),
        targets: Vec::from([Some(Seen { others: Some(Others::default()), ..Seen::default() })]),
        ..Counters::default()
    }
}

fn target() -> Target {
    let disk = Layer {
        name: "vda".to_owned(),
        device: Some((254, 0)),
        kind: LayerKind::Disk,
        size: SIZE,
        queue: Some(Queue {
            scheduler: Some("none".to_owned()),
            nr_requests: Some(256),
            hardware_queues: Some(1),
            logical_sector: Some(Bytes(512)),
            physical_sector: Some(Bytes(4096)),
            max_request: Some(Bytes(1 << 20)),
            volatile_write_cache: Some(false),
            ..Queue::default()
        }),
        disk: Some(Disk::default()),
        ..Layer::default()
    };
    let partition = Layer {
        name: "vda1".to_owned(),
        device: Some((254, 1)),
        kind: LayerKind::Partition,
        size: SIZE,
        members: Vec::from([1]),
        ..Layer::default()
    };
    Target {
        reduction: None,
        name: "data.bin".to_owned(),
        path: "/mnt/data.bin".to_owned(),
        kind: TargetKind::File,
        identity: None,
        disk_sequence: None,
        size: SIZE,
        direct_alignment: Some(Bytes(512)),
        atomic_writes: None,
        file_system: Some(FileSystem { kind: "ext4".to_owned(), ..FileSystem::default() }),
        extents: Some(Extents { written: SIZE, count: 800, ..Extents::default() }),
        content: Some(Content { samples: 128, block: Bytes(4096), ..Content::default() }),
        layers: Vec::from([partition, disk]),
        in_use: Vec::new(),
        namespace: None,
        limits: Vec::new(),
    }
}
