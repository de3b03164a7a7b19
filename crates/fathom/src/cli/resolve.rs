//! What was typed becomes what it means for these targets on this machine. Pure: every option that
//! contradicts another one or would have no effect is refused here, before anything is opened.

use fathom_core::facts::{Target, TargetKind};
use fathom_core::plan::worker_count;
use fathom_core::spec::{
    Access, Arrivals, BackendKind, Cache, Pacing, Pattern, Point, Region, RingMode, Stream,
    SubmissionThread, Workers,
};
use fathom_core::{Bytes, Span, typed_path};
use fathom_engine::target::{Overwrite, check_command_size};

use super::args::{AccessArgs, Consent, Run};
use super::values::{Backend, Depth, MOST};
use crate::error::Error;

/// The shortest interval, and so the shortest window.
pub const SHORTEST_INTERVAL: Span = Span::from_ms(100);
/// From here up an interval is a second unless told otherwise.
const LONG_WINDOW: Span = Span::from_secs(60);
/// Queue depth of a closed loop unless told otherwise.
const DEFAULT_DEPTH: u32 = 32;
/// The most in flight of an open loop unless told otherwise ...
const DEFAULT_DEPTH_OPEN: u32 = 1024;
/// ... and the memory that this may take.
const DEFAULT_BUFFERS: Bytes = Bytes(256 * Bytes::MIB);
/// The rates that a load can be offered at, the same for I/Os and for bytes.
const RATES: std::ops::RangeInclusive<f64> = 0.001..=1e9;
/// The most I/Os that may fall due in a run, ...
const MOST_DUE: f64 = 1e12;
/// ... and the most intervals that it may have: what a reader of results takes for possible.
const MOST_INTERVALS: u64 = 1_000_000;
/// What one io_uring can hold.
const RING: u32 = 1 << 15;
/// The largest block: longer I/Os are cut by the kernel anyway.
const LARGEST_BLOCK: Bytes = Bytes(Bytes::GIB);

/// What is to be done, with nothing left to decide.
#[derive(Clone, Debug, PartialEq)]
pub struct Spec {
    /// What to measure, in order.
    pub points: Vec<Point>,
    /// What is known about the targets.
    pub targets: Vec<Target>,
    /// How they are accessed.
    pub access: Access,
    /// What carries the I/Os.
    pub backend: Backend,
    /// What may be written to.
    pub consent: Overwrite,
}

impl Spec {
    /// Whether any point writes.
    pub fn writes(&self) -> bool {
        self.points.iter().flat_map(|point| &point.streams).any(|s| s.read_share < 1.0)
    }

    /// Warm-ups and windows together.
    pub fn time(&self) -> Span {
        self.points.iter().fold(Span(0), |sum, point| sum + point.warm_up + point.window)
    }
}

/// What the resolver knows about the machine.
#[derive(Clone, Copy, Debug)]
pub struct Machine {
    /// The memory that we may use.
    pub memory: Bytes,
    /// A seed that nobody has chosen.
    pub fresh_seed: u64,
    /// The CPUs that we may use; 0 if that is not known.
    pub cpus: u32,
}

/// Settles what a `fathom run` does.
///
/// # Errors
///
/// When an option contradicts another one, has no effect, or does not fit the targets.
pub fn run(args: &Run, targets: Vec<Target>, machine: Machine) -> Result<Spec, Error> {
    let simulated = targets.iter().any(|target| target.kind == TargetKind::Simulated);
    contradictions(args)?;
    if simulated {
        without_effect_in_simulation(args)?;
    }
    let access = Access {
        cache: if args.access.buffered { Cache::Buffered } else { Cache::Direct },
        write_through: args.access.write_through,
        ring: RingMode { polled: args.access.polled, submission_thread: args.access.sqpoll },
    };
    let interval = interval("--duration", args.load.duration, args.load.interval)?;
    let regions = regions(args, &targets, access)?;
    let pacing = pacing(args, regions.len() as u32)?;
    possible_rate(&pacing, args)?;
    let mut stream = Stream {
        name: String::new(),
        regions,
        pattern: args.load.pattern.into(),
        block_size: args.load.block_size,
        read_share: args.load.read_share,
        pacing,
        workers: args.load.workers,
    };
    stream.name = describe(&stream);
    enough_depth(&stream)?;
    enough_cpus(&stream, machine.cpus)?;
    let backend = if simulated { Backend::Named(BackendKind::Sim) } else { args.access.backend };
    enough_memory(&stream, machine.memory)?;
    ring_holds(&stream, backend, access.ring)?;
    own_cpu(&stream, access.ring)?;
    let point = Point {
        name: stream.name.clone(),
        streams: Vec::from([stream]),
        warm_up: args.load.warm_up,
        window: args.load.duration,
        interval,
        seed: args.load.seed.unwrap_or(machine.fresh_seed),
    };
    let consent = permission(&args.consent, args.load.read_share < 1.0, &targets)?;
    Ok(Spec { points: Vec::from([point]), targets, access, backend, consent })
}

/// What cannot be, whatever the targets are.
fn contradictions(args: &Run) -> Result<(), Error> {
    let load = &args.load;
    if load.arrivals.is_some() && load.rate.is_none() {
        return Err(Error::option(
            "--arrivals",
            "a closed loop has no schedule of its own, so this has no effect",
            "drop it, or give the load with --rate",
        ));
    }
    if load.realtime && load.rate.is_none() {
        return Err(Error::option(
            "--realtime",
            "a closed loop has no schedule that another program could make late, and would keep \
             its CPU to itself",
            "drop it, or give the load with --rate",
        ));
    }
    if args.access.write_through && load.read_share == 1.0 {
        return Err(Error::option(
            "--write-through",
            "all I/Os are reads, so this has no effect",
            "drop it, or ask for writes with --read-share",
        ));
    }
    if load.block_size == Bytes(0) || load.block_size > LARGEST_BLOCK {
        return Err(Error::option(
            format!("--block-size {}", load.block_size),
            "a block has from 1 B to 1 GiB",
            "choose a size such as 4k or 1m",
        ));
    }
    if args.access.size == Some(Bytes(0)) {
        return Err(Error::option("--size 0", "there is nothing to address", "drop it"));
    }
    of_io_uring_alone(&args.access)
}

/// Refuses what only io_uring can do where something else is to carry the I/Os, and polling where
/// nothing is to be polled.
fn of_io_uring_alone(access: &AccessArgs) -> Result<(), Error> {
    let typed = [("--polled", access.polled), ("--sqpoll", access.sqpoll.is_some())];
    let Some((option, _)) = typed.iter().find(|(_, typed)| *typed) else { return Ok(()) };
    if let Backend::Named(kind @ (BackendKind::Aio | BackendKind::Sync)) = access.backend {
        return Err(Error::option(
            *option,
            format!("only io_uring can do this, not the {} backend", kind.name()),
            "drop it, or use --backend uring",
        ));
    }
    if access.polled && access.buffered {
        return Err(Error::option(
            "--polled",
            "the page cache completes I/Os by itself, so there is no queue to look into",
            "drop it, or drop --buffered",
        ));
    }
    Ok(())
}

/// What a simulated device knows nothing of.
fn without_effect_in_simulation(args: &Run) -> Result<(), Error> {
    let refuse = |option: &str| {
        Err(Error::option(option, "it has no effect on a simulated device", "drop it"))
    };
    if args.targets.len() > 1 {
        return Err(Error::option(
            args.targets[1].display().to_string(),
            "a simulated device is measured alone",
            "name one target",
        ));
    }
    if args.load.workers != Workers::PerTarget(1) && args.load.workers != Workers::Total(1) {
        return Err(Error::option(
            "--workers",
            "one worker drives all of a simulated device in virtual time",
            "drop it, and say how much is in flight with --queue-depth",
        ));
    }
    if args.access.buffered {
        return refuse("--buffered");
    }
    if args.access.write_through {
        return refuse("--write-through");
    }
    if args.load.realtime {
        return refuse("--realtime");
    }
    if args.access.backend != Backend::Auto {
        return refuse("--backend");
    }
    if args.access.polled {
        return refuse("--polled");
    }
    if args.access.sqpoll.is_some() {
        return refuse("--sqpoll");
    }
    if args.consent.overwrite {
        return refuse("--overwrite");
    }
    if !args.consent.destroy.is_empty() {
        return refuse("--destroy");
    }
    Ok(())
}

/// The interval of the series: the one that was typed, else one that suits the window.
///
/// # Errors
///
/// When the window is not a whole number of intervals.
pub fn interval(option: &str, window: Span, typed: Option<Span>) -> Result<Span, Error> {
    if window < SHORTEST_INTERVAL {
        return Err(Error::option(
            format!("{option} {window}"),
            "a window is at least 100 ms, which is one interval",
            "measure for longer, such as 10s",
        ));
    }
    let fits = |interval: Span| window.0.is_multiple_of(interval.0);
    let interval = match typed {
        Some(interval) => interval,
        None if window >= LONG_WINDOW && fits(Span::from_secs(1)) => Span::from_secs(1),
        None => SHORTEST_INTERVAL,
    };
    if interval < SHORTEST_INTERVAL {
        return Err(Error::option(
            format!("--interval {interval}"),
            "an interval is at least 100 ms",
            "choose 100ms or more",
        ));
    }
    if interval > window {
        return Err(Error::option(
            format!("--interval {interval}"),
            format!("it is longer than the window of {window}"),
            format!("choose a shorter one, or a longer {option}"),
        ));
    }
    if window.0 / interval.0 > MOST_INTERVALS {
        return Err(Error::option(
            format!("{option} {window}"),
            format!("it has more than {MOST_INTERVALS} intervals of {interval}"),
            "measure for less, or choose a longer --interval",
        ));
    }
    if !fits(interval) {
        let below = Span(window.0 - window.0 % interval.0);
        return Err(Error::option(
            format!("{option} {window}"),
            format!("it is no whole number of intervals of {interval}"),
            format!("measure for {below} or {}, or choose another --interval", below + interval),
        ));
    }
    Ok(interval)
}

/// The command that writes a file anew, large enough for any test.
pub fn refill(target: &Target) -> String {
    format!("fathom prepare {} --size 10g --overwrite", typed_path(&target.name))
}

/// The regions, one for each target.
fn regions(args: &Run, targets: &[Target], access: Access) -> Result<Vec<Region>, Error> {
    let block = args.load.block_size;
    let offset = args.access.offset;
    let mut regions = Vec::with_capacity(targets.len());
    for (index, target) in targets.iter().enumerate() {
        if target.size == Bytes(0) {
            return Err(Error::target(
                &target.name,
                "it is empty, so there is nothing to measure",
                format!("fill it with `{}`", refill(target)),
            ));
        }
        if offset >= target.size {
            return Err(Error::option(
                format!("--offset {offset}"),
                format!("{} ends at {}", target.name, target.size),
                "choose a smaller one",
            ));
        }
        let rest = Bytes(target.size.0 - offset.0);
        let length = match args.access.size {
            Some(size) if size > rest => {
                return Err(Error::option(
                    format!("--size {size}"),
                    format!("{} has only {rest} from offset {offset}", target.name),
                    "choose a smaller one, or write a larger file with `fathom prepare`",
                ));
            }
            Some(size) => size,
            None => Bytes(rest.0 - rest.0 % block.0),
        };
        if length < block {
            return Err(Error::option(
                format!("--block-size {block}"),
                format!("it is larger than the region of {} in {}", length.max(rest), target.name),
                "choose a smaller block or a larger region",
            ));
        }
        if !length.0.is_multiple_of(block.0) {
            // 4097 bytes, shown as 4 KiB, would seem to be one.
            return Err(Error::option(
                format!("--size {}", exactly(length)),
                format!("it is no whole number of blocks of {}", exactly(block)),
                format!("choose {} bytes", length.0 - length.0 % block.0),
            ));
        }
        check_command_size(target, block).map_err(|refusal| Error::Refused(refusal.to_string()))?;
        if access.cache == Cache::Direct {
            let alignment = target.direct_alignment.unwrap_or(Bytes(1));
            aligned("--block-size", block, alignment, &target.name)?;
            aligned("--offset", offset, alignment, &target.name)?;
        }
        regions.push(Region { target: index as u32, offset, length });
    }
    Ok(regions)
}

/// Refuses what direct I/O cannot do on this target.
///
/// # Errors
///
/// When the value is no multiple of the alignment.
pub fn aligned(option: &str, value: Bytes, alignment: Bytes, target: &str) -> Result<(), Error> {
    if value.0.is_multiple_of(alignment.0.max(1)) {
        return Ok(());
    }
    Err(Error::option(
        format!("{option} {}", value.0),
        format!("direct I/O on {target} needs a multiple of its sector of {alignment}"),
        format!(
            "choose {} bytes, or go through the page cache with --buffered",
            value.0.next_multiple_of(alignment.0)
        ),
    ))
}

/// A size that nothing is lost of: as people read it if that is the same, else in bytes.
fn exactly(size: Bytes) -> String {
    let shown = size.to_string();
    if shown.parse() == Ok(size) { shown } else { format!("{} bytes", size.0) }
}

fn pacing(args: &Run, targets: u32) -> Result<Pacing, Error> {
    let load = &args.load;
    let workers = match load.workers {
        Workers::PerTarget(n) => u64::from(n) * u64::from(targets),
        Workers::Total(n) => u64::from(n),
    };
    if workers > u64::from(MOST) {
        return Err(Error::option(
            "--workers",
            format!("{workers} threads are more than {MOST}"),
            "use fewer; one for each core is enough",
        ));
    }
    let typed = load.queue_depth.map(|depth| match depth {
        Depth::Stream(n) => u64::from(n),
        Depth::PerWorker(n) => u64::from(n) * workers,
        Depth::PerTarget(n) => u64::from(n) * u64::from(targets),
    });
    let default = match load.rate {
        None => u64::from(DEFAULT_DEPTH),
        Some(_) => u64::from(DEFAULT_DEPTH_OPEN)
            .min(DEFAULT_BUFFERS.0 / load.block_size.0)
            .max(u64::from(DEFAULT_DEPTH)),
    };
    let depth = typed.unwrap_or(default.max(workers));
    let depth = match u32::try_from(depth) {
        Ok(depth) if depth <= MOST => depth,
        _ => {
            return Err(Error::option(
                "--queue-depth",
                format!("{depth} I/Os in flight in all are more than {MOST}"),
                "choose fewer",
            ));
        }
    };
    Ok(match load.rate {
        None => Pacing::Closed { queue_depth: depth },
        Some(rate) => Pacing::Open {
            offered_load: rate.offered(load.block_size),
            arrivals: load.arrivals.map_or(Arrivals::Poisson, Arrivals::from),
            queue_depth_max: depth,
            realtime: load.realtime,
        },
    })
}

/// Refuses a load that no clock can offer, or that is more than can be counted.
fn possible_rate(pacing: &Pacing, args: &Run) -> Result<(), Error> {
    let Pacing::Open { offered_load, .. } = pacing else { return Ok(()) };
    let (block, time) = (args.load.block_size, args.load.warm_up + args.load.duration);
    let rate = offered_load.0;
    if !RATES.contains(&rate) {
        return Err(Error::option(
            "--rate",
            format!("it comes to {rate} I/Os of {block} per second, outside of 0.001 to 1000m"),
            "choose another rate or another --block-size",
        ));
    }
    if rate * time.as_secs_f64() > MOST_DUE {
        return Err(Error::option(
            "--rate",
            format!("{offered_load} for {time} are more than {MOST_DUE} I/Os"),
            "choose a lower rate or a shorter --duration",
        ));
    }
    Ok(())
}

/// Refuses what no io_uring can hold, wherever io_uring may be what carries it.
fn ring_holds(stream: &Stream, backend: Backend, ring: RingMode) -> Result<(), Error> {
    let (depth, workers) = (stream.pacing.queue_depth(), worker_count(stream));
    let each = depth.div_ceil(workers);
    let may_be_uring = matches!(backend, Backend::Auto | Backend::Named(BackendKind::Uring));
    // A submission thread gives the places back some time after it took what was in them.
    let (most, with) = match ring.submission_thread {
        Some(_) => (RING / 2, " with --sqpoll"),
        None => (RING, ""),
    };
    if each <= most || !may_be_uring {
        return Ok(());
    }
    Err(Error::option(
        format!("--queue-depth {depth}"),
        format!("io_uring holds at most {most} I/Os for each worker{with}, not {each}"),
        match ring {
            RingMode::USUAL => "choose fewer, more --workers, or --backend aio",
            _ => "choose fewer, or more --workers",
        },
    ))
}

/// Refuses a CPU for the submission thread that several of them would have to share.
fn own_cpu(stream: &Stream, ring: RingMode) -> Result<(), Error> {
    let workers = worker_count(stream);
    match ring.submission_thread {
        Some(SubmissionThread { cpu: Some(cpu) }) if 1 < workers => Err(Error::option(
            format!("--sqpoll={cpu}"),
            format!(
                "each of the {workers} workers has a thread of its own, and all would share it"
            ),
            "drop the CPU, or use one worker",
        )),
        _ => Ok(()),
    }
}

fn enough_depth(stream: &Stream) -> Result<(), Error> {
    let (depth, workers) = (stream.pacing.queue_depth(), worker_count(stream));
    if depth >= workers {
        return Ok(());
    }
    Err(Error::option(
        format!("--queue-depth {depth}"),
        format!("{workers} workers share it, so some would have nothing to do"),
        format!("use at most {depth} workers in all, or a queue depth from {workers} up"),
    ))
}

/// Refuses real-time priority where it would leave no CPU to everything else: the threads that serve
/// the I/Os, and whoever wants to end the run.
fn enough_cpus(stream: &Stream, cpus: u32) -> Result<(), Error> {
    let Pacing::Open { realtime: true, .. } = stream.pacing else { return Ok(()) };
    let workers = worker_count(stream);
    if workers < cpus || cpus == 0 {
        return Ok(());
    }
    let (problem, remedy) = match cpus {
        1 => ("on the only CPU nothing else could run".to_owned(), "drop it".to_owned()),
        _ => (
            format!("with a worker for each of {cpus} CPUs nothing else could run"),
            format!("use at most {} workers in all, or drop it", cpus - 1),
        ),
    };
    Err(Error::option("--realtime", problem, remedy))
}

fn enough_memory(stream: &Stream, memory: Bytes) -> Result<(), Error> {
    // Buffers are whole pages, and what was read is never written.
    let sets = if 0.0 < stream.read_share && stream.read_share < 1.0 { 2 } else { 1 };
    let page_block = stream.block_size.0.next_multiple_of(4096);
    let buffers = u64::from(stream.pacing.queue_depth()).saturating_mul(sets * page_block);
    if buffers <= memory.0 / 2 {
        return Ok(());
    }
    Err(Error::option(
        format!("--queue-depth {}", stream.pacing.queue_depth()),
        format!(
            "its buffers of {} take {}, more than half of the memory of {memory}",
            stream.block_size,
            Bytes(buffers)
        ),
        "choose a smaller queue depth or block size",
    ))
}

/// What may be written to.
///
/// # Errors
///
/// When writes were asked for and not allowed, or allowed and not asked for.
pub fn permission(typed: &Consent, writes: bool, targets: &[Target]) -> Result<Overwrite, Error> {
    let simulated = targets.iter().any(|target| target.kind == TargetKind::Simulated);
    if !writes && typed.overwrite {
        return Err(Error::option(
            "--overwrite",
            "all I/Os are reads, so this has no effect",
            "drop it, or ask for writes with --read-share",
        ));
    }
    if let (false, Some(name)) = (writes, typed.destroy.first()) {
        return Err(Error::option(
            format!("--destroy {name}"),
            "all I/Os are reads, so this has no effect",
            "drop it, or ask for writes with --read-share",
        ));
    }
    for name in &typed.destroy {
        if !targets.iter().any(|target| &target.name == name) {
            return Err(Error::option(
                format!("--destroy {name}"),
                "this is none of the targets",
                "repeat the target's name exactly as it was given",
            ));
        }
    }
    let allowed = |target: &Target| typed.overwrite || typed.destroy.contains(&target.name);
    match targets.iter().find(|target| !allowed(target)) {
        Some(target) if writes && !simulated => Err(Error::target(
            &target.name,
            "the load writes, and what is there would be lost",
            "allow it with --overwrite, or only read with --read-share 100%",
        )),
        _ => Ok(Overwrite { allowed: typed.overwrite, destroy: typed.destroy.clone() }),
    }
}

/// What people call a stream, such as "random read 4 KiB, queue depth 32".
pub fn describe(stream: &Stream) -> String {
    let pattern = match stream.pattern {
        Pattern::Sequential => "sequential",
        Pattern::Random => "random",
    };
    let percent = stream.read_share * 100.0;
    let mix = if stream.read_share == 1.0 {
        "read".to_owned()
    } else if stream.read_share == 0.0 {
        "write".to_owned()
    } else {
        let round = |share: f64| (share * 100.0).round() / 100.0;
        format!("{}/{} read/write", round(percent), round(100.0 - percent))
    };
    let pace = match stream.pacing {
        Pacing::Closed { queue_depth } => format!("queue depth {queue_depth}"),
        Pacing::Open { offered_load, .. } => format!("offered {offered_load}"),
    };
    format!("{pattern} {mix} {}, {pace}", stream.block_size)
}
