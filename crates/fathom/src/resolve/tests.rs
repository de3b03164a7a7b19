//! One flag, one test: the effect of each flag on the spec, and the text of each refusal. A flag
//! without a row here fails a test.

use clap::{CommandFactory, Parser};
use fathom_core::facts::{AtomicWrites, CpuPlace, Target, TargetKind};
use fathom_core::measure::Direction;
use fathom_core::spec::{
    Access, Active, Arrivals, BackendKind, BlockSizes, Cache, Distribution, Flush, Hint,
    IoPriority, Limit, Loop, Objective, Order, Pacing, Pattern, Payload, Point, Rated, RestFrom,
    Rests, RingMode, Stream, SubmissionThread, SyncMode, Turns, Workers, Workplace,
};
use fathom_core::{Bytes, Quantile, Rate, Span};

use super::derived::derived;
use super::{Machine, Spec, consent, direct_offset, settle};
use crate::cli::args::{Args, Command};
use crate::cli::described::{Described, HostPlace};
use crate::cli::options::Request;
use crate::cli::values::Backend;
use crate::commands::portrait::{self, Owner, Portrait};
use crate::error::Error;

const MACHINE: Machine<'_> =
    Machine { memory: Bytes(8 * Bytes::GIB), fresh_seed: 4711, cpus: 4, cpu_places: &CPUS };

/// Two cores with two siblings each, on one node.
const CPUS: [CpuPlace; 4] = [cpu(0), cpu(1), cpu(2), cpu(3)];

const fn cpu(number: u32) -> CpuPlace {
    CpuPlace { number, package: Some(0), core: Some(number / 2), node: Some(0) }
}

/// A file of 1 GiB on a disk with sectors of 512 bytes, or the simulated device with this name.
fn target(name: &str) -> Target {
    let mut target = Target::simulated(name, Bytes(Bytes::GIB));
    if !name.starts_with("sim:") {
        target.kind = TargetKind::File;
        target.direct_alignment = Some(Bytes(512));
        target.atomic_writes = AtomicWrites::of(Bytes(4096), Bytes(65_536));
    }
    target
}

fn parse(words: &[&str]) -> Result<Command, String> {
    let line = std::iter::once("fathom").chain(words.iter().copied());
    Args::try_parse_from(line).map(|args| args.command).map_err(|error| error.to_string())
}

fn run(words: &[&str]) -> Result<Spec, String> {
    let Command::Run(args) = parse(&[&["run"], words].concat())? else { unreachable!() };
    let targets = args.request.targets.iter().map(|path| target(&path.to_string_lossy())).collect();
    settled(&args.request, targets).map_err(|error| error.to_string())
}

/// The meaning of a request without a workload.
fn settled(request: &Request, targets: Vec<Target>) -> Result<Spec, Error> {
    let described = Described::typed(request);
    let spec = settle(&described, targets, MACHINE).map_err(|blame| blame.error)?;
    consent::permit(spec, &described)
}

fn quick_on(owner: Owner, words: &[&str]) -> Result<Portrait, String> {
    let Command::Quick(args) = parse(&[&["quick"], words].concat())? else { unreachable!() };
    let folder = owner != Owner::User;
    portrait::fits_the_place(&args, folder)
        .and_then(|()| {
            let target = target(&args.path.to_string_lossy());
            portrait::portrait(&args, target, owner, MACHINE)
        })
        .map_err(|error| error.to_string())
}

fn point(spec: &Spec) -> &Point {
    &spec.points[0]
}

fn stream(spec: &Spec) -> &Stream {
    &point(spec).streams[0]
}

/// I/Os per second that an open loop should start.
fn offered(spec: &Spec) -> f64 {
    stream(spec).pacing.offered_load(point(spec).window).map_or(0.0, |load| load.0)
}

fn depth(spec: &Spec) -> u32 {
    stream(spec).pacing.queue_depth()
}

/// The flag, a command line with it, and the condition that the spec has to satisfy.
type Row = (&'static str, &'static [&'static str], fn(&Spec) -> bool);

const RUN: &[Row] = &[
    ("", &["f"], |s| {
        stream(s).block_sizes().only() == Some(Bytes(4096))
            && stream(s).read_share() == 1.0
            && *stream(s).pattern() == Pattern::RANDOM
            && stream(s).pacing == Pacing::closed(32)
            && stream(s).workers == Workers::PerTarget(1)
            && stream(s).regions[0].length == Bytes(Bytes::GIB)
            && point(s).warm_up == Span::from_secs(3)
            && point(s).window == Span::from_secs(30)
            && point(s).cool_down == Span(0)
            && point(s).interval == Span::from_ms(100)
            && point(s).seed == 4711
            && point(s).name == "random read 4 KiB, queue depth 32"
            && stream(s).access.cache == Cache::Direct
            && !stream(s).access.is_durable()
            && s.backend == Backend::Auto
            && !s.writes()
    }),
    ("block-size", &["f", "-b", "12.8MiB"], |s| {
        stream(s).block_sizes().only() == Some(Bytes(3277 * 4096))
    }),
    ("block-size", &["f", "-b", "4k/60,64k/40"], |s| {
        let sizes = &stream(s).block_sizes();
        let reads: Vec<(u64, f64)> =
            sizes.of(Direction::Read).iter().map(|one| (one.size.0, one.share)).collect();
        reads == [(4096, 0.6), (65_536, 0.4)] && sizes.mean(1.0) == 4096.0 * 0.6 + 65_536.0 * 0.4
    }),
    (
        "write-block-size",
        &[
            "f",
            "-b",
            "8k",
            "--write-block-size",
            "64k/3,128k/1",
            "--read-share",
            "0.7",
            "--overwrite",
        ],
        |s| {
            let sizes = &stream(s).block_sizes();
            sizes.of(Direction::Read).len() == 1
                && sizes.of(Direction::Write)[0].share == 0.75
                && (sizes.smallest(), sizes.largest()) == (Bytes(8192), Bytes(128 << 10))
        },
    ),
    ("block-size", &["f", "--block-size", "64k"], |s| {
        stream(s).block_sizes().only() == Some(Bytes(65_536))
    }),
    ("read-share", &["f", "--read-share", "70%", "--overwrite"], |s| {
        stream(s).read_share() == 0.7 && point(s).name.starts_with("random 70/30 read/write 4 KiB")
    }),
    ("read-share", &["f", "--read-share", "0", "--overwrite"], |s| {
        stream(s).read_share() == 0.0 && point(s).name.starts_with("random write")
    }),
    ("pattern", &["f", "--pattern", "sequential"], |s| *stream(s).pattern() == Pattern::SEQUENTIAL),
    ("pattern", &["f", "--pattern", "zipf:1.1"], |s| {
        let zipf = Distribution::Zipf { theta: 1.1, order: Order::Spread };
        *stream(s).pattern() == Pattern::Random(zipf)
            && point(s).name == "zipf 1.1 read 4 KiB, queue depth 32"
    }),
    ("pattern", &["f", "--pattern", "strided:64k"], |s| {
        stream(s).pattern().stride() == Some(Bytes(65_536))
            && point(s).name == "strided 64 KiB read 4 KiB, queue depth 32"
    }),
    ("align", &["f", "--align", "512"], |s| stream(s).align() == Some(Bytes(512))),
    ("align", &["f"], |s| stream(s).align().is_none() && stream(s).alignment() == Bytes(4096)),
    ("align", &["f", "--buffered", "--align", "100"], |s| stream(s).alignment() == Bytes(100)),
    ("no-repeat", &["f", "--no-repeat"], |s| {
        *stream(s).pattern() == Pattern::Shuffled
            && point(s).name == "non-repeating random read 4 KiB, queue depth 32"
    }),
    ("zones", &["f", "--zones", "-w", "4"], |s| stream(s).zones),
    ("zones", &["f"], |s| !stream(s).zones),
    ("weights", &["f", "g", "--weights", "7,3", "-w", "4/total"], |s| {
        stream(s).turns == Turns::Weighted(Vec::from([7.0, 3.0]))
    }),
    ("weights", &["f", "g", "-w", "4/total"], |s| stream(s).turns == Turns::InTurn),
    (
        "part",
        &[
            "f",
            "g",
            "--part",
            "3 block-size=8k",
            "--part",
            "1 read-share=0% pattern=sequential",
            "-w",
            "2",
            "--overwrite",
        ],
        |s| {
            let (stream, shares) =
                (stream(s), [0, 1].map(|place| stream(s).ios.kinds()[place].read_share));
            shares == [1.0, 0.0]
                && (stream.read_share(), stream.regions.len()) == (0.75, 2)
                && stream.block_sizes().largest() == Bytes(8192)
                && stream.name
                    == "75 % random read 8 KiB, 25 % sequential write 4 KiB, queue depth 32"
        },
    ),
    (
        "part",
        &[
            "f",
            "--write-block-size",
            "64k",
            "--part",
            "1 read-share=50%",
            "--part",
            "1",
            "--overwrite",
        ],
        |s| {
            let sizes = |place: usize| &stream(s).ios.kinds()[place].block_sizes;
            sizes(0).of(Direction::Write)[0].size == Bytes(65_536)
                && sizes(1).only() == Some(Bytes(4096))
        },
    ),
    // A single worker has a zone too: the whole region.
    ("zones", &["f", "--zones"], |s| stream(s).zones),
    ("queue-depth", &["f", "g", "--queue-depth", "8/disk"], |s| depth(s) == 16),
    ("start-distance", &["f", "--pattern", "backward", "--start-distance", "1m", "-w", "4"], |s| {
        stream(s).pattern().start_distance() == Some(Bytes(Bytes::MIB))
            && matches!(stream(s).pattern(), Pattern::Sequential(sequence) if sequence.backward)
    }),
    ("payload", &["f", "--read-share", "0", "--overwrite"], |s| {
        stream(s).payload == Payload::Random { compressible: 0.0, dedup: 0.0 }
    }),
    ("payload", &["f", "--read-share", "0", "--overwrite", "--payload", "zeros"], |s| {
        stream(s).payload == Payload::Zeros
    }),
    ("payload", &["f", "--read-share", "50%", "--overwrite", "--payload", "pool:1m,g"], |s| {
        let file = Some("g".into());
        stream(s).payload == Payload::Pool { size: Bytes(Bytes::MIB), file }
    }),
    // All workers share it.
    (
        "payload",
        &["f", "--read-share", "0", "--overwrite", "--payload", "pool:3g", "-w", "9"],
        |s| stream(s).payload == Payload::Pool { size: Bytes(3 * Bytes::GIB), file: None },
    ),
    ("compressible", &["f", "--read-share", "0", "--overwrite", "--compressible", "50%"], |s| {
        stream(s).payload == Payload::Random { compressible: 0.5, dedup: 0.0 }
    }),
    (
        "dedup",
        &["f", "--read-share", "0", "--overwrite", "--payload", "random", "--dedup", "0.3"],
        |s| stream(s).payload == Payload::Random { compressible: 0.0, dedup: 0.3 },
    ),
    ("queue-depth", &["f", "-q", "7"], |s| depth(s) == 7),
    ("queue-depth", &["f", "g", "-w", "3", "--queue-depth", "8/worker"], |s| depth(s) == 48),
    ("queue-depth", &["f", "g", "-w", "3", "--queue-depth", "8/target"], |s| depth(s) == 16),
    ("workers", &["f", "g", "-w", "4"], |s| stream(s).workers == Workers::PerTarget(4)),
    ("workers", &["f", "g", "--workers", "4/total"], |s| stream(s).workers == Workers::Total(4)),
    ("workers", &["f", "--workers", "40"], |s| depth(s) == 40),
    ("rate", &["f", "--rate", "10k"], |s| {
        let arrivals = Arrivals::Poisson;
        let offered_load = Rate(10_000.0);
        stream(s).pacing == Pacing::open(offered_load, arrivals, 1024)
    }),
    ("rate", &["f", "--rate", "100MiB/s", "-b", "1m"], |s| {
        let arrivals = Arrivals::Poisson;
        let offered_load = Rate(100.0);
        stream(s).pacing == Pacing::open(offered_load, arrivals, 256)
    }),
    ("rate", &["f", "g", "-w", "3", "--rate", "10k/worker"], |s| offered(s) == 60_000.0),
    ("rate", &["f", "g", "-w", "3", "--rate", "10k/target"], |s| offered(s) == 20_000.0),
    ("rate", &["f", "--rate", "1k for 10s, to 3k over 10s, 3k"], |s| {
        let course = stream(s).pacing.course().map(ToString::to_string);
        // 30 s of the constant rate at the end are measured too.
        course.as_deref() == Some("1000/s for 10 s, to 3000/s over 10 s, 3000/s")
            && (point(s).window, offered(s)) == (Span::from_secs(50), 2400.0)
            && point(s).name == "random read 4 KiB, offered 2,400/s on average"
    }),
    ("rate", &["f", "--rate", "1k for 1.05s", "--interval", "300ms"], |s| {
        (point(s).window, point(s).interval) == (Span::from_ms(1200), Span::from_ms(300))
    }),
    ("rate", &["f", "--rate", "0 to 2k over 5s", "-d", "5s"], |s| offered(s) == 1000.0),
    ("think-time", &["f", "--think-time", "1ms", "-q", "4"], |s| {
        stream(s).pacing.rests() == Rests::Think { time: Span::from_ms(1), exponential: false }
            && point(s).name == "random read 4 KiB, queue depth 4, think time 1 ms"
    }),
    ("burst", &["f", "--burst", "16/100ms"], |s| {
        stream(s).pacing.rests()
            == Rests::Bursts { ios: 16, rest: Span::from_ms(100), from: RestFrom::LastCompletion }
    }),
    ("start", &["f", "--start", "10s", "-d", "20s"], |s| {
        stream(s).pacing.active == Active { start: Some(Span::from_secs(10)), end: None }
    }),
    ("start", &["f", "--start", "10s", "--rate", "1k for 20s"], |s| {
        point(s).window == Span::from_secs(30) && offered(s) == 1000.0
    }),
    ("end", &["f", "--start", "5s", "--end", "10s"], |s| {
        point(s).window == Span::from_secs(10)
            && stream(s).pacing.active.end == Some(Span::from_secs(10))
    }),
    ("stop-after", &["f", "--stop-after", "10m"], |s| {
        stream(s).pacing.limit == Some(Limit::Bytes(Bytes(10 << 20)))
            && (point(s).warm_up, point(s).window) == (Span(0), Span::from_secs(86_400))
            && point(s).interval == Span::from_ms(100)
    }),
    ("stop-after", &["f", "--stop-after", "1k ios", "-d", "60s", "--warm-up", "1s"], |s| {
        stream(s).pacing.limit == Some(Limit::Ios(1000))
            && (point(s).warm_up, point(s).window) == (Span::from_secs(1), Span::from_secs(60))
            && point(s).interval == Span::from_secs(1)
    }),
    ("passes", &["f", "--passes", "2"], |s| stream(s).pacing.limit == Some(Limit::Passes(2))),
    ("queue-depth", &["f", "-q", "65536", "--backend", "aio"], |s| depth(s) == 65_536),
    ("queue-depth", &["sim:queue", "-q", "65536"], |s| depth(s) == 65_536),
    ("payload", &["sim:ssd", "--payload", "zeros", "--read-share", "0"], |s| {
        stream(s).payload == Payload::Zeros
    }),
    ("workers", &["sim:queue", "-w", "2"], |s| stream(s).workers == Workers::PerTarget(2)),
    ("rate", &["f", "--rate", "1k", "-q", "64"], |s| depth(s) == 64),
    ("burst", &["f", "--rate", "1k", "--arrivals", "uniform", "--burst", "4/start:2ms"], |s| {
        point(s).name
            == "random read 4 KiB, offered 1,000/s, bursts of 4 I/Os by each worker with rests of 2 ms \
                from the last start"
    }),
    ("arrivals", &["f", "--rate", "1k", "--arrivals", "uniform"], |s| {
        matches!(stream(s).pacing.pace, Loop::Open { arrivals: Arrivals::Uniform, .. })
    }),
    ("cpus", &["f"], |s| stream(s).workplace == Workplace::default()),
    ("cpus", &["f", "--cpus", "3,0-1"], |s| stream(s).workplace.cpus == [3, 0, 1]),
    ("cpus", &["f", "--cpus", "cores"], |s| stream(s).workplace.cpus == [0, 2, 1, 3]),
    ("cpus", &["f", "--cpus", "nodes"], |s| stream(s).workplace.cpus == [0, 2, 1, 3]),
    ("cpus", &["f", "--cpus", "node:0"], |s| stream(s).workplace.cpus == [0, 2, 1, 3]),
    ("io-priority", &["f", "--io-priority", "best-effort:7"], |s| {
        stream(s).workplace.io_priority == Some(IoPriority::BestEffort(7))
    }),
    ("large-pages", &["f", "--large-pages"], |s| stream(s).workplace.large_pages),
    ("realtime", &["f", "--rate", "1k", "--realtime"], |s| stream(s).pacing.is_realtime()),
    ("warm-up", &["f", "--warm-up", "500ms"], |s| point(s).warm_up == Span::from_ms(500)),
    ("cool-down", &["f", "--cool-down", "2s"], |s| {
        point(s).cool_down == Span::from_secs(2) && s.time() == Span::from_secs(35)
    }),
    ("warm-up", &["f", "--warm-up", "0"], |s| point(s).warm_up == Span(0)),
    ("duration", &["f", "-d", "5m"], |s| {
        point(s).window == Span::from_secs(300) && point(s).interval == Span::from_secs(1)
    }),
    ("interval", &["f", "--interval", "500ms"], |s| point(s).interval == Span::from_ms(500)),
    ("seed", &["f", "--seed", "7"], |s| point(s).seed == 7),
    ("rated-iops", &["f", "--rated-iops", "80k"], |s| {
        point(s).rated == Rated { iops: Some(Rate(80e3)), ..Rated::default() }
    }),
    ("rated-bandwidth", &["f", "--rated-bandwidth", "800MB/s"], |s| {
        point(s).rated == Rated { bandwidth: Some(Bytes(800_000_000)), ..Rated::default() }
    }),
    ("promised-latency", &["f", "--promised-latency", "p99<=1ms"], |s| {
        let promised = Objective { quantile: Quantile(0.99), bound: Span::from_ms(1) };
        point(s).rated.response_time == Some(promised)
    }),
    ("offset", &["f", "--offset", "1m"], |s| {
        let region = stream(s).regions[0];
        region.offset == Bytes(Bytes::MIB) && region.length == Bytes(Bytes::GIB - Bytes::MIB)
    }),
    ("size", &["f", "--size", "64k"], |s| stream(s).regions[0].length == Bytes(65_536)),
    ("size", &["f", "-b", "3k"], |s| {
        stream(s).regions[0].length == Bytes(Bytes::GIB / 3072 * 3072)
    }),
    ("buffered", &["f", "--buffered"], |s| stream(s).access.cache == Cache::Buffered),
    ("buffered", &["f", "--buffered", "-b", "100"], |s| {
        stream(s).block_sizes().only() == Some(Bytes(100))
    }),
    ("trim-share", &["f", "--trim-share", "100%", "--overwrite"], |s| {
        stream(s).trims_alone() && s.writes() && stream(s).load_in_words() == "random trim 4 KiB"
    }),
    ("fsync", &["f", "--fsync", "4", "--read-share", "0", "--overwrite"], |s| {
        stream(s).flush == Some(Flush { every: 4, data_only: false, barrier: true })
    }),
    ("fdatasync", &["f", "--fdatasync", "1", "--read-share", "0", "--overwrite"], |s| {
        stream(s).flush == Some(Flush::DATA)
    }),
    (
        "no-barrier",
        &["f", "--fdatasync", "1", "--no-barrier", "--read-share", "0", "--overwrite"],
        |s| stream(s).flush == Some(Flush { barrier: false, ..Flush::DATA }),
    ),
    ("sync", &["f", "--sync", "rwf-sync", "--read-share", "0", "--overwrite"], |s| {
        stream(s).access.sync == SyncMode::RwfSync
    }),
    ("fadvise", &["f", "--buffered", "--fadvise", "random"], |s| {
        stream(s).access.hint == Some(Hint::Random)
    }),
    ("mmap", &["f", "--mmap"], |s| stream(s).access == Access { mapped: true, ..Access::BUFFERED }),
    (
        "mmap",
        &[
            "f",
            "--mmap",
            "--write-through",
            "--fadvise",
            "random",
            "--read-share",
            "0",
            "--overwrite",
        ],
        |s| stream(s).access.is_durable() && stream(s).access.hint == Some(Hint::Random),
    ),
    ("dontcache", &["f", "--buffered", "--dontcache"], |s| stream(s).access.uncached),
    ("atomic", &["f", "--read-share", "50%", "-b", "16k", "--atomic", "--overwrite"], |s| {
        stream(s).access.atomic
    }),
    ("write-through", &["f", "--write-through", "--read-share", "0", "--overwrite"], |s| {
        stream(s).access.is_durable()
    }),
    // A simulated write is durable when it completes.
    ("sync", &["sim:queue", "--sync", "dsync", "--read-share", "0"], |s| {
        stream(s).access.sync == SyncMode::Dsync
    }),
    ("backend", &["f", "--backend", "aio"], |s| s.backend == Backend::Named(BackendKind::Aio)),
    ("backend", &["sim:queue"], |s| s.backend == Backend::Named(BackendKind::Sim)),
    ("polled", &["f"], |s| stream(s).access.ring == RingMode::USUAL),
    ("polled", &["f", "--polled"], |s| stream(s).access.ring.polled),
    ("sqpoll", &["--sqpoll", "f"], |s| {
        stream(s).access.ring.submission_thread == Some(SubmissionThread { cpu: None })
    }),
    ("sqpoll", &["f", "--sqpoll=3", "--backend", "uring"], |s| {
        stream(s).access.ring.submission_thread == Some(SubmissionThread { cpu: Some(3) })
    }),
    ("overwrite", &["f", "--overwrite", "--read-share", "50%"], |s| {
        s.consent.allowed && s.consent.destroy.is_empty() && s.writes()
    }),
    ("destroy", &["f", "--destroy", "f", "--read-share", "50%"], |s| {
        s.consent.destroy == ["f"] && !s.consent.allowed
    }),
    ("destroy-in-use", &["f", "--destroy-in-use", "f", "--read-share", "50%"], |s| {
        s.consent.destroy_in_use == ["f"] && !s.consent.allowed
    }),
    ("overwrite", &["sim:queue", "--read-share", "50%"], |s| s.writes()),
];

/// A command line, and the parts of its refusal: the problem and the remedy.
const RUN_REFUSALS: &[(&[&str], &[&str])] = &[
    (&[], &["TARGET"]),
    (&["f", "--nonsense"], &["--nonsense"]),
    (&["f", "--read-share", "70"], &["--read-share", "unit is missing", "70% or 0.7"]),
    (&["f", "--block-size", "4x"], &["--block-size", "4x", "4k"]),
    (&["f", "-b", "4k/60,64k"], &["--block-size", "'64k' has no weight", "4k/60,64k/40"]),
    (&["f", "-b", "4k/60%,64k/30%"], &["--block-size", "90 %", "100 %"]),
    (&["f", "-b", "4k/60%,64k/40"], &["--block-size", "all or with none"]),
    (&["f", "-b", "4k/0,64k/1"], &["--block-size", "'0' is no weight"]),
    (&["f", "-b", "4k/1,8k/2,4k/1"], &["--block-size", "4 KiB is there twice"]),
    (&["f", "-b", "4k/1,1000/1"], &["--block-size 1000", "multiple", "--buffered"]),
    (&["f", "--write-block-size", "8k"], &["--write-block-size", "all I/Os are reads"]),
    (
        &["f", "--write-block-size", "8k", "--read-share", "0", "--overwrite"],
        &["--write-block-size", "no reads", "use --block-size"],
    ),
    (&["f", "--block-size", "0"], &["--block-size 0 B", "4k or 1m"]),
    (&["f", "--block-size", "2g"], &["--block-size 2 GiB", "1 GiB"]),
    (&["f", "--block-size", "100"], &["--block-size 100", "multiple", "--buffered"]),
    (&["f", "--offset", "100"], &["--offset 100", "choose 512 bytes", "--buffered"]),
    (&["f", "--offset", "1g"], &["--offset 1 GiB", "f ends at 1 GiB"]),
    (&["f", "--size", "2g"], &["--size 2 GiB", "only 1 GiB", "fathom prepare"]),
    (&["f", "--size", "0"], &["--size 0", "drop it"]),
    (&["f", "--size", "5k"], &["--size 5 KiB", "whole number of blocks", "4096 bytes"]),
    (&["f", "--size", "4097"], &["--size 4097 bytes", "blocks of 4 KiB", "4096 bytes"]),
    (&["f", "--size", "4k", "-b", "8k"], &["--size 4 KiB", "block of 8 KiB", "--block-size"]),
    (&["f", "--queue-depth", "0"], &["--queue-depth", "32, 8/worker, 8/target or 8/disk"]),
    (&["f", "--queue-depth", "8/thread"], &["/thread", "8/worker"]),
    (&["f", "-w", "9", "-q", "8"], &["--queue-depth 8", "9 workers share it"]),
    (&["f", "g", "-w", "65536", "-q", "8"], &["--workers", "131072 threads"]),
    (&["f", "-w", "65536", "-q", "2/worker"], &["--queue-depth", "131072"]),
    (&["f", "-q", "32768", "-b", "1m"], &["--queue-depth 32768", "memory of 8 GiB"]),
    (
        // Both sets of buffers count: 4.5 GiB of 8 GiB.
        &["f", "-q", "36864", "-b", "64k", "--read-share", "50%", "--overwrite"],
        &["--queue-depth 36864", "take 4.5 GiB", "memory of 8 GiB"],
    ),
    (&["f", "--arrivals", "uniform"], &["--arrivals", "no schedule", "--rate"]),
    (&["f", "--realtime"], &["--realtime", "closed loop", "--rate"]),
    (&["f", "--cpus", "1,4"], &["--cpus 4", "CPU 0-3 of this machine", "taskset"]),
    (&["f", "--cpus", "node:1"], &["--cpus node:1", "no CPU of NUMA node 1, only of 0"]),
    (
        &["f", "--rate", "1k", "--realtime", "-w", "3", "--cpus", "0-1"],
        &["--cpus", "3 workers with real-time priority would share 2", "--realtime"],
    ),
    (&["sim:queue", "--cpus", "0"], &["--cpus", "simulated", "drop it"]),
    (&["sim:queue", "--io-priority", "idle"], &["--io-priority", "simulated", "drop it"]),
    (&["sim:queue", "--large-pages"], &["--large-pages", "simulated", "drop it"]),
    (
        &["f", "--rate", "1k", "--realtime", "-w", "4"],
        &["--realtime", "4 CPUs", "at most 3 workers"],
    ),
    (&["sim:queue", "--rate", "1k", "--realtime"], &["--realtime", "simulated", "drop it"]),
    (&["f", "--rate", "1B/s", "-b", "1m"], &["--rate", "0.001 to 1000m", "--block-size"]),
    (&["f", "--rate", "8PB/s"], &["--rate", "0.001 to 1000m"]),
    (&["f", "--rate", "1000m", "-d", "1h"], &["--rate", "1,000,000,000,000 I/Os", "time"]),
    (&["f", "-d", "30h", "--interval", "100ms"], &["1000000 intervals of 100 ms", "--interval"]),
    (&["f", "--rate", "10k/s"], &["--rate", "could mean", "10KiB/s"]),
    (&["f", "--rate", "1k for 1m", "-d", "30s"], &["--rate", "take 60 s", "after 30 s", "longer"]),
    (&["f", "--rate", "0 for 1m"], &["--rate", "0 all the time", "above 0"]),
    (&["f", "--rate", "1k for 1s, 1B/s", "-b", "1m"], &["--rate", "0.001 to 1000m"]),
    (&["f", "--rate", "1000m for 1h"], &["--rate", "1,000,000,000,000 I/Os", "time"]),
    (&["f", "--passes", "2", "--stop-after", "1g"], &["--passes", "--stop-after already says"]),
    (&["f", "--stop-after", "0"], &["--stop-after", "nothing", "10g"]),
    (&["f", "--think-time", "1ms", "--burst", "2/1ms"], &["--burst", "not both"]),
    (&["f", "--think-time", "1ms", "--rate", "1k"], &["--think-time", "open loop", "--rate"]),
    (
        &["f", "--burst", "2/1ms", "--rate", "1k"],
        &["--burst", "no rest can begin with a completion", "2/start:1ms"],
    ),
    (
        &["f", "--burst", "2/start:1ms", "--rate", "1k"],
        &["--burst", "Poisson", "--arrivals uniform"],
    ),
    (
        &["f", "--burst", "2/start:1ms", "--rate", "1k for 5s", "--arrivals", "uniform"],
        &["--burst", "course"],
    ),
    (
        &["f", "--burst", "2/start:3ms", "--rate", "1k", "--arrivals", "uniform"],
        &["--burst", "2 I/Os", "2 ms", "3 ms"],
    ),
    (&["f", "--start", "30s", "-d", "30s"], &["--start 30 s", "ends after 30 s", "--duration"]),
    (&["f", "--end", "31s", "-d", "30s"], &["--end 31 s", "ends after 30 s"]),
    (&["f", "--start", "5s", "--end", "5s", "-d", "30s"], &["--end 5 s", "begins at 5 s", "later"]),
    (&["f", "--rate", "1k, 2k"], &["--rate", "'1k' is not the last stage", "1k for 10s"]),
    (&["f", "--duration", "50ms"], &["--duration 50 ms", "at least 100 ms"]),
    (&["f", "--duration", "1.25s"], &["--duration 1.25 s", "1.2 s or 1.3 s"]),
    (&["f", "--interval", "10ms"], &["--interval 10 ms", "at least 100 ms"]),
    (&["f", "--interval", "1m"], &["--interval 60 s", "longer than the window of 30 s"]),
    (&["f", "--interval", "7s"], &["no whole number of intervals of 7 s", "28 s or 35 s"]),
    (&["f", "--write-through"], &["--write-through", "all I/Os are reads", "drop it"]),
    (&["f", "--trim-share", "5%"], &["f: the load writes", "--overwrite"]),
    (&["f", "--trim-share", "100%"], &["f: the load writes", "--overwrite"]),
    (&["f", "--trim-share", "5%", "--backend", "aio"], &["--trim-share", "native AIO"]),
    (&["f", "--trim-share", "5%", "--polled"], &["--trim-share", "drop --polled"]),
    (&["sim:queue", "--trim-share", "5%"], &["--trim-share", "simulated", "drop it"]),
    (&["f", "--fsync", "4"], &["--fsync", "nothing to flush", "--read-share"]),
    (&["f", "--fsync", "0", "--read-share", "0"], &["--fsync", "0"]),
    (
        &["f", "--fsync", "4", "--fdatasync", "4", "--read-share", "0"],
        &["--fsync", "--fdatasync is given too", "one of them"],
    ),
    (&["f", "--no-barrier"], &["--no-barrier", "no effect", "--fdatasync"]),
    (&["f", "--fsync", "4", "--read-share", "0", "--polled"], &["--fsync", "drop --polled"]),
    (&["f", "--sync", "sync"], &["--sync sync", "all I/Os are reads", "drop it"]),
    (&["f", "--sync", "always"], &["--sync", "rwf-dsync and rwf-sync"]),
    (
        &["f", "--sync", "sync", "--write-through", "--read-share", "0"],
        &["--write-through", "--sync sync is given too", "one of them"],
    ),
    (&["f", "--fadvise", "random"], &["--fadvise", "no effect", "--buffered"]),
    (&["f", "--buffered", "--fadvise", "willneed"], &["--fadvise", "about 1 MiB", "sequential"]),
    (&["f", "--buffered", "--fadvise", "often"], &["--fadvise", "noreuse and dontneed"]),
    (&["f", "--dontcache"], &["--dontcache", "no effect", "--buffered"]),
    (&["f", "--atomic"], &["--atomic", "all I/Os are reads"]),
    (&["f", "--atomic", "--read-share", "0", "--buffered"], &["--atomic", "direct I/O"]),
    (&["f", "--atomic", "--read-share", "0", "--mmap"], &["--atomic", "--mmap"]),
    (&["f", "--atomic", "--read-share", "0", "-b", "12k"], &["--atomic", "64 KiB, not of 12 KiB"]),
    (&["f", "--atomic", "--read-share", "0", "-b", "2k"], &["--atomic", "from 4 KiB"]),
    (&["f", "--atomic", "--read-share", "0", "-b", "128k"], &["--atomic", "not of 128 KiB"]),
    (
        &["f", "--atomic", "--read-share", "50%", "-b", "4k", "--write-block-size", "16k"],
        &["--atomic", "one --block-size"],
    ),
    (
        &["f", "--atomic", "--read-share", "0", "-b", "16k", "--align", "4k"],
        &["--atomic", "--align 4 KiB", "choose 16384 bytes"],
    ),
    (
        &["f", "--atomic", "--read-share", "0", "-b", "16k", "--offset", "4k"],
        &["--atomic", "--offset 4 KiB"],
    ),
    (&["sim:queue", "--atomic"], &["--atomic", "simulated", "drop it"]),
    (&["f", "--mmap", "--backend", "uring"], &["--mmap", "copies", "--backend sync"]),
    (&["f", "--mmap", "--dontcache"], &["--dontcache", "--mmap"]),
    (&["f", "--mmap", "--sqpoll"], &["--sqpoll", "--mmap"]),
    (
        &["f", "--mmap", "--sync", "sync", "--read-share", "0", "--overwrite"],
        &["--sync sync", "msync", "--sync dsync"],
    ),
    (&["sim:queue", "--mmap"], &["--mmap", "simulated", "drop it"]),
    (&["sim:queue", "--dontcache"], &["--dontcache", "simulated", "drop it"]),
    (&["sim:queue", "--fadvise", "normal"], &["--fadvise", "simulated", "drop it"]),
    (&["f", "--read-share", "50%"], &["f: the load writes", "--overwrite"]),
    (&["f", "--payload", "zeros"], &["--payload", "all I/Os are reads", "drop it"]),
    (&["f", "--compressible", "50%"], &["--compressible", "all I/Os are reads", "drop it"]),
    (&["f", "--dedup", "50%"], &["--dedup", "all I/Os are reads", "drop it"]),
    (&["f", "--payload", "noise"], &["--payload", "'noise' is unknown", "hex:DEADBEEF"]),
    (&["f", "--payload", "hex:123"], &["--payload", "pairs", "hex:DEADBEEF"]),
    (&["f", "--compressible", "50"], &["--compressible", "unit is missing", "50%"]),
    (
        &["f", "--read-share", "0", "--payload", "zeros", "--dedup", "30%"],
        &["--dedup", "random data only", "drop --payload"],
    ),
    (
        &["f", "--read-share", "0", "--payload", "pool:4k", "-b", "8k"],
        &["--payload pool:4 KiB", "from one block of 8 KiB to 1 TiB", "in between"],
    ),
    (
        &["f", "--read-share", "0", "--payload", "pool:2t"],
        &["--payload pool:2 TiB", "to 1 TiB", "in between"],
    ),
    (
        &["f", "--read-share", "0", "--payload", "pool:5g"],
        &["--payload pool", "take 5 GiB, more than half of the memory of 8 GiB", "smaller pool"],
    ),
    (
        &["f", "--read-share", "0", "--payload", "pool:3g", "-b", "64m"],
        &["--queue-depth 32", "memory of 8 GiB"],
    ),
    (
        &["f", "--read-share", "0", "--dedup", "30%", "-b", "512"],
        &["--block-size 512 B", "--dedup", "choose 4096 bytes"],
    ),
    (
        &["f", "--read-share", "0", "--dedup", "30%", "--offset", "512"],
        &["--offset 512 B", "--dedup", "4096 bytes"],
    ),
    (&["sim:queue", "--payload", "zeros"], &["--payload", "all I/Os are reads", "drop it"]),
    (&["f", "g", "--read-share", "0", "--destroy", "f"], &["g: the load writes"]),
    (&["f", "--overwrite"], &["--overwrite", "all I/Os are reads", "drop it"]),
    (&["f", "--destroy", "f"], &["--destroy f", "all I/Os are reads", "drop it"]),
    (&["f", "--read-share", "0", "--destroy", "h"], &["--destroy h", "not one of the targets"]),
    (&["f", "--destroy-in-use", "f"], &["--destroy-in-use f", "all I/Os are reads", "drop it"]),
    (
        &["f", "--read-share", "0", "--overwrite", "--destroy-in-use", "h"],
        &["--destroy-in-use h", "not one of the targets"],
    ),
    (&["f", "--backend", "mmap"], &["--backend", "auto, uring, aio and sync"]),
    (&["f", "--rated-iops", "800MB/s"], &["--rated-iops", "write 80k"]),
    (&["f", "--rated-bandwidth", "80k"], &["--rated-bandwidth", "write 800MB/s"]),
    (&["f", "--rated-bandwidth", "1MB/s/worker"], &["--rated-bandwidth", "write 800MB/s"]),
    (&["f", "--seed", "x"], &["--seed", "whole number"]),
    (&["f", "--seed", "-1"], &["--seed", "'-1'", "from 0 to"]),
    (&["f", "-b", "-4k"], &["--block-size", "'-4k'", "write a size"]),
    (&["f", "-d", "-1s"], &["--duration", "'-1s'", "write a time"]),
    (&["f", "--rate", "-5"], &["--rate", "'-5'", "write 10k"]),
    (&["f", "--read-share", "-1%"], &["--read-share", "'-1%'", "70% or 0.7"]),
    (&["f", "-q", "65536"], &["--queue-depth 65536", "32768", "--backend aio"]),
    (&["f", "-q", "32768", "--sqpoll"], &["--queue-depth 32768", "16384", "with --sqpoll"]),
    (&["f", "--polled", "--backend", "aio"], &["--polled", "only io_uring", "--backend uring"]),
    (&["f", "--sqpoll", "--backend", "sync"], &["--sqpoll", "not the sync backend"]),
    (&["f", "--polled", "--buffered"], &["--polled", "page cache", "drop --buffered"]),
    (&["f", "--sqpoll=x"], &["--sqpoll", "'x' is no CPU", "--sqpoll=3"]),
    (&["f", "--sqpoll=1", "-w", "2"], &["--sqpoll=1", "2 workers", "one worker"]),
    (&["f", "--pattern", "zigzag"], &["--pattern", "random", "sequential"]),
    (&["f", "--pattern", "zipff:1.1"], &["--pattern", "did you mean zipf?", "zipf:1.1"]),
    (&["f", "--pattern", "zipf:11"], &["--pattern", "from 0 to 10", "zipf:1.1"]),
    (&["f", "--pattern", "pareto:1"], &["--pattern", "below 1", "pareto:0.2"]),
    (&["f", "--pattern", "normal:0%"], &["--pattern", "above 0%", "normal:10%"]),
    (&["f", "--pattern", "hot:90%/60%,10%/60%"], &["--pattern", "more than 100% of the target"]),
    (&["f", "--pattern", "hot:0%/1g,1%/1g"], &["--pattern", "beyond the region of 1 GiB"]),
    (&["f", "--pattern", "strided:1000"], &["--pattern", "1000", "choose 1024", "--buffered"]),
    (&["f", "--align", "100"], &["--align 100", "choose 512 bytes", "--buffered"]),
    (&["f", "--align", "0"], &["--align", "above 0"]),
    (&["f", "--align", "4k", "--pattern", "sequential"], &["--align", "no effect", "strided:64k"]),
    (&["f", "--no-repeat", "--pattern", "zipf:1.1"], &["--no-repeat", "zipf", "--pattern random"]),
    (
        &["f", "--no-repeat", "--size", "8k", "-w", "3"],
        &["--no-repeat", "3 workers share 2 places"],
    ),
    (&["f", "--zones", "-w", "2", "--pattern", "interlocked"], &["--zones", "one pointer"]),
    (&["f", "--zones", "-w", "3", "--size", "8k"], &["--zones", "too small", "fewer workers"]),
    (&["f", "g", "--weights", "7,3"], &["--weights", "serves one target alone", "4/total"]),
    (&["f", "--part", "70%", "--part", "20%"], &["--part", "add up to 90 %", "change them"]),
    (&["f", "--part", "70%", "--part", "2"], &["--part", "some have none", "with none"]),
    (&["f", "--part", "7", "--align", "4k"], &["--align", "pattern of its own", "in the parts"]),
    (&["f", "--part", "7", "--passes", "2"], &["--part", "equally often", "bytes or I/Os"]),
    (
        &["f", "--part", "1 pattern=interlocked", "--part", "2 pattern=interlocked"],
        &["--part", "one pointer", "at most"],
    ),
    (&["f", "--part", "1 pattern=sequential align=4k"], &["--align"]),
    (&["f", "--part", "1 block-size=0"], &["--block-size", "from 1 B"]),
    (
        &["f", "g", "--weights", "7", "-w", "1/total"],
        &["--weights", "1 weights for 2 targets", "in their order"],
    ),
    (
        &["f", "g", "--weights", "7,3", "-w", "1/total", "--passes", "2"],
        &["--weights", "not gone over equally often", "bytes or I/Os"],
    ),
    (&["f", "--start-distance", "1m"], &["--start-distance", "anywhere", "sequential"]),
    (
        &["f", "--start-distance", "1m", "--pattern", "interlocked"],
        &["--start-distance", "at one pointer"],
    ),
    (
        &["f", "--start-distance", "512m", "--pattern", "sequential", "-w", "4"],
        &["--start-distance", "beyond the region of 1 GiB", "choose a smaller one"],
    ),
    (
        &["f", "--start-distance", "100", "--pattern", "sequential", "-w", "4"],
        &["--start-distance 100", "choose 512 bytes"],
    ),
    (&["sim:queue", "f"], &["measured alone"]),
    (&["sim:queue", "--buffered"], &["--buffered", "simulated", "drop it"]),
    (&["sim:queue", "--backend", "aio"], &["--backend", "simulated", "drop it"]),
    (&["sim:queue", "--polled"], &["--polled", "simulated", "drop it"]),
    (&["sim:queue", "--sqpoll"], &["--sqpoll", "simulated", "drop it"]),
    (&["sim:queue", "--overwrite", "--read-share", "0"], &["--overwrite", "simulated"]),
    (&["sim:queue", "--destroy", "f", "--read-share", "0"], &["--destroy", "simulated"]),
    (
        &["sim:queue", "--destroy-in-use", "f", "--read-share", "0"],
        &["--destroy-in-use", "simulated"],
    ),
];

#[test]
fn every_flag_of_run_does_what_it_says() {
    for (flag, words, holds) in RUN {
        let spec = run(words).unwrap_or_else(|error| panic!("{words:?}: {error}"));
        assert!(holds(&spec), "--{flag}: {words:?} gave {spec:#?}");
    }
}

#[test]
fn what_knows_only_direct_io_does_not_advise_the_page_cache() {
    let target =
        Target { direct_alignment: Some(Bytes(512)), ..Target::simulated("data", Bytes(1 << 20)) };
    assert!(direct_offset(Bytes(1024), &target).is_ok());
    let refused = direct_offset(Bytes(1), &target).unwrap_err().to_string();
    assert!(refused.contains("--offset 1") && refused.contains("choose 512 bytes"), "{refused}");
    assert!(!refused.contains("--buffered"), "{refused}");
}

#[test]
fn every_refusal_of_run_says_what_to_do() {
    let mut missing = String::new();
    for (words, parts) in RUN_REFUSALS {
        let error = run(words).expect_err(&format!("{words:?} is refused"));
        for part in parts.iter().filter(|part| !error.contains(**part)) {
            missing += &format!("{words:?}: '{part}' is missing in: {error}\n");
        }
    }
    assert!(missing.is_empty(), "{missing}");
}

#[test]
fn an_empty_file_is_nothing_to_measure() {
    let Ok(Command::Run(args)) = parse(&["run", "f"]) else { unreachable!() };
    let mut empty = target("f");
    empty.size = Bytes(0);
    let error = settled(&args.request, Vec::from([empty])).unwrap_err();
    assert!(error.to_string().contains("fathom prepare f"), "{error}");
    assert_eq!(error.exit_code(), crate::error::exit::REFUSED);
}

const SCRATCH: Owner = Owner::Scratch { start: Bytes(Bytes::MIB) };

#[test]
fn quick_draws_six_steps_in_its_scratch_file() {
    let portrait = quick_on(SCRATCH, &["."]).unwrap();
    let names: Vec<&str> = portrait.spec.points.iter().map(|p| p.name.as_str()).collect();
    assert_eq!(
        names,
        [
            "sequential read 1 MiB, queue depth 8",
            "sequential write 1 MiB, queue depth 8",
            "random read 4 KiB, queue depth 1",
            "random read 4 KiB, queue depth 32",
            "random write 4 KiB, queue depth 32",
            "random 70/30 read/write 8 KiB, queue depth 32",
        ]
    );
    assert_eq!(portrait.left_out, 0);
    assert_eq!(portrait.spec.time(), Span::from_secs(42));
    let starts_after_the_marker = |p: &Point| p.streams[0].regions[0].offset == Bytes(Bytes::MIB);
    assert!(portrait.spec.points.iter().all(starts_after_the_marker));
}

#[test]
fn quick_only_reads_what_was_there_unless_told_otherwise() {
    let portrait = quick_on(Owner::User, &["f"]).unwrap();
    assert_eq!((portrait.spec.points.len(), portrait.left_out), (3, 3));
    assert!(!portrait.spec.writes() && !portrait.spec.consent.allowed);
    let portrait = quick_on(Owner::User, &["f", "--overwrite"]).unwrap();
    assert_eq!((portrait.spec.points.len(), portrait.left_out), (6, 0));
    let portrait = quick_on(Owner::User, &["f", "--destroy", "f"]).unwrap();
    assert_eq!(portrait.spec.consent.destroy, ["f"]);
    let portrait = quick_on(Owner::User, &["sim:queue"]).unwrap();
    assert_eq!((portrait.spec.points.len(), portrait.left_out), (6, 0));
}

#[test]
fn quick_probes_what_it_may_write_past_the_page_cache_unless_told_otherwise() {
    let probes = |owner, words: &[&str]| quick_on(owner, words).unwrap().probe.is_some();
    assert!(probes(SCRATCH, &["."]) && probes(Owner::User, &["f", "--overwrite"]));
    assert!(!probes(Owner::User, &["f"]) && !probes(SCRATCH, &[".", "--buffered"]));
    assert!(!probes(SCRATCH, &[".", "--no-probe"]));
}

const QUICK: &[Row] = &[
    ("warm-up", &["--warm-up", "2s"], |s| point(s).warm_up == Span::from_secs(2)),
    ("duration", &["--duration", "300ms"], |s| point(s).window == Span::from_ms(300)),
    ("buffered", &["--buffered"], |s| stream(s).access.cache == Cache::Buffered),
    ("backend", &["--backend", "sync"], |s| s.backend == Backend::Named(BackendKind::Sync)),
    ("seed", &["--seed", "7"], |s| point(s).seed == 7 && s.points[1].seed == 8),
    // Each promise is compared with the steps that it is about.
    ("rated-iops", &["--rated-iops", "80k"], |s| {
        promised(s, |rated| rated.iops.is_some()) == [3, 4, 5]
    }),
    ("rated-bandwidth", &["--rated-bandwidth", "1GB/s"], |s| {
        promised(s, |rated| rated.bandwidth.is_some()) == [0, 1]
    }),
    ("promised-latency", &["--promised-latency", "p99<=1ms"], |s| {
        promised(s, |rated| rated.response_time.is_some()) == [2]
    }),
];

/// The steps that carry a promise.
fn promised(spec: &Spec, carries: fn(&Rated) -> bool) -> Vec<usize> {
    let steps = spec.points.iter().enumerate();
    steps.filter(|(_, point)| carries(&point.rated)).map(|(step, _)| step).collect()
}

#[test]
fn quick_refuses_what_direct_ios_of_its_steps_cannot_reach() {
    let Ok(Command::Quick(args)) = parse(&["quick", "f"]) else { unreachable!() };
    let mut coarse = target("f");
    coarse.direct_alignment = Some(Bytes(16_384));
    let draw = |args: &_| portrait::portrait(args, coarse.clone(), Owner::User, MACHINE);
    let error = draw(&args).unwrap_err().to_string();
    assert!(error.contains("a multiple of its sector of 16 KiB"), "{error}");
    assert!(error.contains("--buffered"), "{error}");
    let Ok(Command::Quick(args)) = parse(&["quick", "f", "--buffered"]) else { unreachable!() };
    assert!(draw(&args).is_ok());
}

#[test]
fn every_flag_of_quick_does_what_it_says() {
    for (flag, words, holds) in QUICK {
        let spec = quick_on(SCRATCH, words).unwrap().spec;
        assert!(holds(&spec), "--{flag}: {words:?} gave {spec:#?}");
    }
}

#[test]
fn every_refusal_of_quick_says_what_to_do() {
    for (owner, words, parts) in [
        (SCRATCH, &[".", "--overwrite"] as &[&str], &["--overwrite", "scratch", "drop it"]),
        (SCRATCH, &[".", "--destroy", "x"], &["--destroy", "scratch", "drop it"]),
        (SCRATCH, &[".", "--duration", "10ms"], &["--duration", "100 ms", "longer"]),
        (SCRATCH, &[".", "--backend", "sim"], &["--backend", "auto", "aio"]),
        (Owner::User, &["f", "--size", "1g"], &["--size", "scratch", "folder"]),
        (Owner::User, &["f", "--remove-leftovers"], &["--remove-leftovers", "folder", "drop it"]),
        (Owner::User, &["f", "--destroy", "g"], &["--destroy g", "not one of", "repeat"]),
        (Owner::User, &["sim:queue", "--overwrite"], &["--overwrite", "simulated", "drop it"]),
        (Owner::User, &["sim:queue", "--buffered"], &["--buffered", "simulated", "drop it"]),
    ] {
        let error = quick_on(owner, words).expect_err(&format!("{words:?} is refused"));
        for part in parts {
            assert!(error.contains(part), "{words:?}: '{part}' is missing in: {error}");
        }
    }
}

/// Flags that need the built program, and are tested in `tests/`.
const END_TO_END: [&str; 26] = [
    "hosts",
    "repeats",
    // It means nothing on one machine.
    "by-host",
    "workload",
    "set",
    "out",
    "results",
    "html",
    "open",
    "markdown",
    "csv",
    "csv-series",
    "svg",
    "png",
    "trace",
    "watch",
    "json",
    "details",
    "fail-if",
    "help",
    "version",
    "remove-leftovers",
    "overwrite",
    "destroy",
    "destroy-in-use",
    "across-mounts",
];

#[test]
fn every_flag_has_a_row() {
    for (command, rows) in [("run", RUN), ("quick", QUICK)] {
        let args = Args::command();
        let found = args.find_subcommand(command).expect("there is such a command");
        for flag in found.get_arguments().filter_map(|argument| argument.get_long()) {
            // These flags control what is done before the points. They have their own tests.
            let before = command == "quick" && ["size", "no-probe"].contains(&flag);
            let tested = rows.iter().any(|(tested, ..)| *tested == flag);
            assert!(
                tested || before || END_TO_END.contains(&flag),
                "`fathom {command} --{flag}` has no test"
            );
        }
    }
}

#[test]
fn the_command_line_is_well_formed() {
    Args::command().debug_assert();
}

#[test]
fn a_point_that_an_experiment_made_does_nothing_that_its_words_do_not_describe() {
    let spec = run(&["a", "-q", "4", "--offset", "1m", "--size", "64m"]).unwrap();
    let with = |change: &dyn Fn(&mut Stream)| {
        let mut made = point(&spec).clone();
        change(&mut made.streams[0]);
        derived(spec.clone(), made, MACHINE).map_err(|error| error.to_string())
    };
    let deeper = with(&|stream| stream.pacing = Pacing::closed(64)).unwrap();
    assert_eq!(point(&deeper).streams[0].pacing.queue_depth(), 64);
    let within = with(&|stream| stream.regions[0].length = Bytes(Bytes::MIB)).unwrap();
    assert_eq!(point(&within).streams[0].regions[0].length, Bytes(Bytes::MIB));
    let refused = |part: &str, change: &dyn Fn(&mut Stream)| {
        let text = with(change).unwrap_err();
        assert!(text.contains(part), "{part}: {text}");
    };
    let beyond = "which the words do not";
    refused(beyond, &|stream| stream.regions[0].offset = Bytes(0));
    refused(beyond, &|stream| stream.regions[0].length = Bytes(65 * Bytes::MIB));
    refused(beyond, &|stream| stream.regions[0].length = Bytes(u64::MAX - Bytes::MIB));
    refused(beyond, &|stream| stream.regions[0].target = 1);
    let otherwise = "differs from those of the words";
    refused(otherwise, &|stream| stream.trim_share = 0.5);
    refused(otherwise, &|stream| stream.zones = true);
    refused(otherwise, &|stream| stream.regions[0].length = Bytes(512));
    refused(otherwise, &|stream| stream.kind_mut().align = Some(Bytes(8192)));
    refused(otherwise, &|stream| stream.kind_mut().block_sizes = BlockSizes::one(Bytes(65 << 20)));
    refused(otherwise, &|stream| stream.access.cache = Cache::Buffered);
    let file = Some("/etc/shadow".into());
    let pool = Payload::Pool { size: Bytes(Bytes::MIB), file };
    refused(otherwise, &|stream| stream.payload = pool.clone());
    refused(otherwise, &|stream| stream.workplace.io_priority = Some(IoPriority::RealTime(0)));
    refused("no region", &|stream| stream.regions.clear());
    refused("--queue-depth", &|stream| stream.pacing = Pacing::closed(u32::MAX));
}

/// The region of a host with these words, and the distance of its I/Os.
fn divided(number: u32, hosts: u32, words: &[&str]) -> Result<(u64, u64, u64), String> {
    let Ok(Command::Run(args)) = parse(&[&["run", "f"], words].concat()) else { unreachable!() };
    let described =
        Described { host: Some(HostPlace { number, hosts }), ..Described::typed(&args.request) };
    let spec = settle(&described, Vec::from([target("f")]), MACHINE);
    let spec = spec.map_err(|blame| blame.error.to_string())?;
    let stream = &spec.points[0].streams[0];
    let step = stream.pattern().stride().or(stream.align()).unwrap_or_default();
    Ok((stream.regions[0].offset.0, stream.regions[0].length.0, step.0))
}

#[test]
fn hosts_have_zones_side_by_side_or_blocks_in_turn() {
    let range = ["--offset", "8k", "--size", "44k"];
    let zones = |number| divided(number, 3, &[&range[..], &["--by-host", "zones"]].concat());
    // 11 blocks: 3, 4 and 4.
    assert_eq!(zones(0), Ok((8192, 3 * 4096, 0)));
    assert_eq!(zones(1), Ok((8192 + 3 * 4096, 4 * 4096, 0)));
    assert_eq!(zones(2), Ok((8192 + 7 * 4096, 4 * 4096, 0)));
    for pattern in ["random", "sequential", "backward", "interlocked", "zipf:1.1", "mixed:30%"] {
        let load = ["--by-host", "blocks", "--pattern", pattern];
        let blocks = |number| divided(number, 3, &[&range[..], &load].concat());
        // 9 of them: from its first block to the end of its third one.
        for number in 0..3 {
            let start = 8192 + u64::from(number) * 4096;
            assert_eq!(blocks(number), Ok((start, 7 * 4096, 3 * 4096)), "{pattern}");
        }
    }
    assert_eq!(divided(0, 1, &["--by-host", "blocks"]), Ok((0, Bytes::GIB, 0)));
}

#[test]
fn what_hosts_cannot_divide_is_refused() {
    for (words, parts) in [
        (&["--by-host", "zones", "--size", "8k"][..], &["3 hosts", "8 KiB", "fewer hosts"][..]),
        (&["--by-host", "blocks", "--size", "8k"], &["3 hosts", "8 KiB"]),
        (&["--by-host", "blocks", "-b", "4k/1,8k/1"], &["several sizes", "--by-host zones"]),
        (&["--by-host", "blocks", "--pattern", "strided:64k"], &["distance of their own"]),
        (&["--by-host", "blocks", "--align", "8k"], &["distance of their own"]),
        (&["--by-host", "blocks", "--zones", "-w", "2"], &["--zones"]),
    ] {
        let why = divided(1, 3, words).unwrap_err();
        assert!(parts.iter().all(|part| why.contains(part)), "{words:?}: {why}");
    }
    let why = run(&["f", "--by-host", "zones"]).unwrap_err();
    assert!(why.contains("one machine applies the load"), "{why}");
}
