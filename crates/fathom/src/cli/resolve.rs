//! What was typed becomes what it means for these targets on this machine. Pure: every option that
//! contradicts another one or would have no effect is refused here, before anything is opened.

use fathom_core::facts::{CpuPlace, Target, TargetKind};
use fathom_core::measure::Direction;
use fathom_core::plan::{worker_count, zone};
use fathom_core::spec::{
    Access, Active, Arrivals, BackendKind, BlockSizes, Cache, Course, Flush, Limit, Pacing,
    Pattern, Payload, Point, Rated, Region, RestFrom, Rests, RingMode, Sequence, Starts, Stream,
    SubmissionThread, Turns, Workers, Workplace, check_pattern,
};
use fathom_core::{Bytes, Span, typed_path};
use fathom_engine::target::{Overwrite, check_command_size};

use super::access;
#[cfg(test)]
use super::args::Run;
use super::args::{ArrivalsArg, Consent, LoadArgs, PayloadArgs};
use super::described::{Described, StreamArgs};
use super::parts;
use super::places;
use super::rates::{Offer, Offered, Shares};
use super::values::{Backend, Depth, MOST};
use crate::error::Error;

/// The shortest interval, and so the shortest window.
pub const SHORTEST_INTERVAL: Span = Span::from_ms(100);
/// How long is measured unless told otherwise: all of it, or after the stages of a course whose last
/// rate is held.
const DEFAULT_WINDOW: Span = Span::from_secs(30);
/// The same where it ends when something is done.
const LONGEST_UNTIL_DONE: Span = Span::from_secs(86_400);
/// Load before the window unless told otherwise, or something is to be done.
const DEFAULT_WARM_UP: Span = Span::from_secs(3);
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
    /// What carries the I/Os.
    pub backend: Backend,
    /// What may be written to.
    pub consent: Overwrite,
}

impl Spec {
    /// The streams of all points.
    pub fn streams(&self) -> impl Iterator<Item = &Stream> {
        self.points.iter().flat_map(|point| &point.streams)
    }

    /// Whether any point writes.
    pub fn writes(&self) -> bool {
        self.streams().any(Stream::destroys)
    }

    /// Warm-ups and windows together.
    pub fn time(&self) -> Span {
        self.points.iter().fold(Span(0), |sum, point| sum + point.time())
    }
}

/// What the resolver knows about the machine.
#[derive(Clone, Copy, Debug)]
pub struct Machine<'a> {
    /// The memory that we may use; without end where nobody knows.
    pub memory: Bytes,
    /// A seed that nobody has chosen.
    pub fresh_seed: u64,
    /// The CPUs that we may use; 0 if that is not known.
    pub cpus: u32,
    /// Which they are; empty if that is not known.
    pub cpu_places: &'a [CpuPlace],
}

/// What is wrong with a description, and with which of its streams; none if with the whole.
#[derive(Debug)]
pub struct Blame {
    /// The stream's place.
    pub stream: Option<usize>,
    /// What is wrong.
    pub error: Error,
}

/// Settles what a `fathom run` does that has no workload file.
///
/// # Errors
///
/// When an option contradicts another one, has no effect, or does not fit the targets.
#[cfg(test)]
pub fn run(args: &Run, targets: Vec<Target>, machine: Machine<'_>) -> Result<Spec, Error> {
    let described = Described::typed(&args.request);
    let spec = settle(&described, targets, machine).map_err(|blame| blame.error)?;
    permit(spec, &described)
}

/// Settles what a description means for these targets on this machine. Nothing may be written yet.
///
/// # Errors
///
/// When an option contradicts another one, has no effect, or does not fit the targets.
pub fn settle(
    described: &Described,
    targets: Vec<Target>,
    machine: Machine<'_>,
) -> Result<Spec, Blame> {
    let simulated = targets.iter().any(|target| target.kind == TargetKind::Simulated);
    let times = Times::of(described);
    let mut streams = Vec::with_capacity(described.streams.len());
    for (place, typed) in described.streams.iter().enumerate() {
        let resolved = stream(typed, &targets, simulated, machine, times);
        streams.push(resolved.map_err(|error| Blame { stream: Some(place), error })?);
    }
    let whole = |error| Blame { stream: None, error };
    if simulated {
        no_consent_in_simulation(described).map_err(whole)?;
    }
    places::take_turns(&mut streams);
    together(&streams, machine).map_err(whole)?;
    let first = &described.streams[0];
    // What is done within a minute shows in slices that suit a minute.
    let until_done = times.window == LONGEST_UNTIL_DONE && first.load.duration.is_none();
    let typed = first.load.interval.or(until_done.then_some(SHORTEST_INTERVAL));
    let interval = interval("--duration", times.window, typed);
    let point = Point {
        warm_up: times.warm_up,
        cool_down: times.cool_down,
        interval: interval.map_err(whole)?,
        seed: first.load.seed.unwrap_or(machine.fresh_seed),
        rated: Rated { iops: first.load.rated_iops, bandwidth: first.load.rated_bandwidth },
        ..Point::of(streams, times.window)
    };
    let point = match &described.name {
        Some(name) => Point { name: name.clone(), ..point },
        None => point,
    };
    let backend = if simulated { Backend::Named(BackendKind::Sim) } else { first.access.backend };
    Ok(Spec { points: Vec::from([point]), targets, backend, consent: Overwrite::default() })
}

/// Allows a spec to write what the user consents to.
///
/// # Errors
///
/// When it writes what the user does not, or the consent has no effect.
pub fn permit(spec: Spec, described: &Described) -> Result<Spec, Error> {
    let written: Vec<u32> = spec
        .streams()
        .filter(|stream| stream.destroys())
        .flat_map(|stream| stream.regions.iter().map(|region| region.target))
        .collect();
    let consent = permission(
        &described.consent,
        |target| written.contains(&target),
        |target| described.folder_of(target),
        &spec.targets,
    )?;
    Ok(Spec { consent, ..spec })
}

/// The same for who wants to show first what there is to consent to: what would be refused comes
/// beside it, and nothing is allowed then.
pub fn permitted(spec: Spec, described: &Described) -> (Spec, Option<Error>) {
    match permit(spec.clone(), described) {
        Ok(spec) => (spec, None),
        Err(refusal) => (Spec { consent: Overwrite::default(), ..spec }, Some(refusal)),
    }
}

/// The times of a run, which all its streams share.
#[derive(Clone, Copy, Debug)]
struct Times {
    warm_up: Span,
    window: Span,
    cool_down: Span,
}

impl Times {
    fn of(described: &Described) -> Self {
        let first = &described.streams[0].load;
        let limited = described.streams.iter().any(|stream| is_limited(&stream.load));
        Self {
            warm_up: first.warm_up.unwrap_or(match limited {
                true => Span(0),
                false => DEFAULT_WARM_UP,
            }),
            window: first.duration.unwrap_or_else(|| match limited {
                true => LONGEST_UNTIL_DONE,
                false => default_window(described),
            }),
            cool_down: first.cool_down.unwrap_or(Span(0)),
        }
    }
}

/// Until the last course and the last stream have ended, in whole intervals.
fn default_window(described: &Described) -> Span {
    let ends = described.streams.iter().filter_map(|stream| {
        let load = &stream.load;
        let stages = load.rate.as_ref().and_then(Offered::length);
        let lasts = match stages {
            Some((length, false)) => length,
            Some((length, true)) => length + DEFAULT_WINDOW,
            None => DEFAULT_WINDOW,
        };
        let says = stages.is_some() || load.start.is_some();
        load.end.or_else(|| says.then(|| load.start.unwrap_or(Span(0)) + lasts))
    });
    let Some(longest) = ends.max() else { return DEFAULT_WINDOW };
    let unit = described.streams[0].load.interval.unwrap_or(SHORTEST_INTERVAL);
    Span(longest.0.next_multiple_of(unit.0.max(1)))
}

/// Settles what one stream does.
fn stream(
    args: &StreamArgs,
    targets: &[Target],
    simulated: bool,
    machine: Machine<'_>,
    times: Times,
) -> Result<Stream, Error> {
    let parted = parts::settle(args)?;
    let args = parted.as_ref().map_or(args, |(together, _)| together);
    contradictions(args)?;
    if simulated {
        without_effect_in_simulation(args)?;
    }
    let access = access::settle(&args.access, args.load.read_share < 1.0)?;
    let sizes = block_sizes(args)?;
    trims(args, targets, &sizes)?;
    let regions = regions(args, targets, access, &sizes)?;
    let active = active(&args.load, times)?;
    // What is before the start of a stream is no warm-up of it.
    let own = match active.start {
        None => Times { window: active.ends(times.window), ..times },
        Some(start) => {
            Times { warm_up: Span(0), window: active.ends(times.window) - start, ..times }
        }
    };
    let drives = |region: &Region| u64::from(targets[region.target as usize].drives());
    let spread = (regions.len() as u32, regions.iter().map(drives).sum());
    let (pacing, course) = pacing(args, spread, &sizes, own)?;
    possible_rate(&pacing, course.as_ref(), &sizes, own)?;
    let mut stream = Stream {
        pattern: pattern(&args.load)?,
        align: args.load.align,
        zones: args.load.zones,
        turns: match &args.load.weights {
            None => Turns::InTurn,
            Some(weights) => Turns::Weighted(weights.0.clone()),
        },
        payload: payload(args, &sizes)?,
        flush: flush(args)?,
        block_sizes: sizes,
        read_share: args.load.read_share,
        trim_share: args.load.trim_share,
        pacing,
        course,
        rests: rests(&args.load)?,
        active,
        limit: limit(&args.load)?,
        workers: args.load.workers,
        access,
        workplace: Workplace {
            cpus: places::cpus(&args.load, targets, &regions, machine.cpu_places)?,
            io_priority: args.load.io_priority,
            large_pages: args.load.large_pages,
        },
        ..Stream::reading(String::new(), regions)
    };
    if let Some((_, parts)) = &parted {
        stream = stream.with_parts(parts.clone());
    }
    if let (true, (copy, copies @ 2..)) = (stream.zones, args.copy) {
        let unit = stream.alignment();
        stream.regions.iter_mut().for_each(|region| *region = zone(region, unit, copy, copies));
    }
    stream.name = args.name.clone().unwrap_or_else(|| stream.description());
    fits_pattern(&stream, targets, access)?;
    enough_depth(&stream)?;
    rests_fit(&stream)?;
    let backend = if simulated { Backend::Named(BackendKind::Sim) } else { args.access.backend };
    enough_memory(std::slice::from_ref(&stream), machine.memory)?;
    ring_holds(&stream, backend, access.ring)?;
    own_cpu(&stream, access.ring)?;
    Ok(stream)
}

/// Refuses a point that an experiment has made of another one and that this machine cannot hold.
///
/// # Errors
///
/// When it has too much in flight, or too many workers.
pub fn fits(point: &Point, backend: Backend, machine: Machine) -> Result<(), Error> {
    for stream in &point.streams {
        if MOST < stream.pacing.queue_depth() {
            return Err(too_deep(stream.pacing.queue_depth().into()));
        }
        enough_depth(stream)?;
        rests_fit(stream)?;
        ring_holds(stream, backend, stream.access.ring)?;
        own_cpu(stream, stream.access.ring)?;
    }
    together(&point.streams, machine)
}

/// Refuses what each stream may do and all together may not.
fn together(streams: &[Stream], machine: Machine<'_>) -> Result<(), Error> {
    enough_cpus(streams, machine.cpus)?;
    places::own_cpus(streams)?;
    let workers: u64 = streams.iter().map(|stream| u64::from(worker_count(stream))).sum();
    if workers > u64::from(MOST) {
        return Err(too_many_workers(workers));
    }
    enough_memory(streams, machine.memory)
}

/// What cannot be, whatever the targets are.
fn contradictions(args: &StreamArgs) -> Result<(), Error> {
    if args.aims.is_empty() {
        return Err(Error::option(
            "TARGET",
            "there is none",
            "name a file, a block device or a simulated device such as sim:ssd",
        ));
    }
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
    if args.access.size == Some(Bytes(0)) {
        return Err(Error::option("--size 0", "there is nothing to address", "drop it"));
    }
    Ok(())
}

/// Whether a stream may be done before its time.
fn is_limited(load: &LoadArgs) -> bool {
    load.stop_after.is_some() || load.passes.is_some()
}

/// How much the stream does.
fn limit(load: &LoadArgs) -> Result<Option<Limit>, Error> {
    match (load.stop_after, load.passes) {
        (Some(_), Some(_)) => Err(Error::option(
            "--passes",
            "--stop-after says already when the stream is done",
            "drop one of them",
        )),
        (Some(limit), None) => Ok(Some(limit)),
        (None, passes) => Ok(passes.map(Limit::Passes)),
    }
}

/// How a closed loop rests.
fn rests(load: &LoadArgs) -> Result<Rests, Error> {
    let typed = [("--think-time", load.think_time), ("--burst", load.burst)];
    let mut typed = typed.into_iter().filter_map(|(option, rests)| Some((option, rests?)));
    let Some((option, rests)) = typed.next() else { return Ok(Rests::None) };
    if typed.next().is_some() {
        return Err(Error::option(
            "--burst",
            "a loop rests after each I/O or after each burst, not both",
            "drop it, or drop --think-time",
        ));
    }
    match (load.rate.is_some(), rests) {
        (true, Rests::Bursts { .. }) => rests_between_bursts(load, rests),
        (true, _) => Err(Error::option(
            option,
            "a schedule starts the I/Os of an open loop, whatever completes",
            "drop it, or drop --rate; a pause in a course is a stage such as '0 for 5s'",
        )),
        (false, _) => Ok(rests),
    }
}

/// How an open loop rests: by its schedule alone.
fn rests_between_bursts(load: &LoadArgs, rests: Rests) -> Result<Rests, Error> {
    let Rests::Bursts { ios, rest, from } = rests else { return Ok(rests) };
    let refuse = |problem: &str, remedy: String| Err(Error::option("--burst", problem, remedy));
    if from == RestFrom::LastCompletion {
        return refuse(
            "the schedule of an open loop knows of no completions from which a rest could be counted",
            format!(
                "count it from the last start, as in --burst {ios}/start:{}, or drop --rate",
                rest.to_string().replace(' ', "")
            ),
        );
    }
    if load.arrivals != Some(ArrivalsArg::Uniform) {
        return refuse(
            "Poisson arrivals are independent of each other, and those of a burst are not",
            "add --arrivals uniform".to_owned(),
        );
    }
    match load.rate.as_ref().and_then(Offered::length) {
        None => Ok(rests),
        Some(_) => refuse(
            "a course has rests of its own, which this would shift",
            "drop it; a pause in a course is a stage such as '0 for 5s'".to_owned(),
        ),
    }
}

/// Refuses rests in which more falls due than a burst holds: the rate could not be kept.
fn rests_fit(stream: &Stream) -> Result<(), Error> {
    let (Pacing::Open { offered_load, .. }, Rests::Bursts { ios, rest, .. }) =
        (stream.pacing, stream.rests)
    else {
        return Ok(());
    };
    let each = offered_load.0 / f64::from(worker_count(stream));
    let takes = Span((f64::from(ios) / each * 1e9) as u64);
    // Rounding is no reason to refuse a rest that is just as long.
    if rest.0 <= takes.0 + 1 {
        return Ok(());
    }
    Err(Error::option(
        "--burst",
        format!(
            "{ios} I/Os of a worker fall due in {takes}, so with rests of {rest} the rate cannot be \
             kept"
        ),
        "choose larger bursts, shorter rests or a lower --rate",
    ))
}

/// When the stream has load.
fn active(load: &LoadArgs, times: Times) -> Result<Active, Error> {
    let active = Active { start: load.start, end: load.end };
    let typed = [("--start", active.start), ("--end", active.end)];
    for (option, time) in typed.into_iter().filter_map(|(option, time)| Some((option, time?))) {
        let late = if option == "--start" { times.window <= time } else { times.window < time };
        if late {
            return Err(Error::option(
                format!("{option} {time}"),
                format!("the window ends after {}", times.window),
                "choose an earlier time, or a longer --duration",
            ));
        }
    }
    match active.end {
        Some(end) if end <= active.begins() => Err(Error::option(
            format!("--end {end}"),
            format!("the load begins at {}, so there would be none", active.begins()),
            "choose a later time",
        )),
        _ => Ok(active),
    }
}

/// The pattern that was typed, with what other options say about it.
pub fn pattern(load: &LoadArgs) -> Result<Pattern, Error> {
    match (load.no_repeat, load.start_distance, &load.pattern) {
        (true, _, pattern) if *pattern != Pattern::RANDOM => Err(Error::option(
            "--no-repeat",
            format!("{pattern} I/Os say by themselves where they come again"),
            "drop it, or use --pattern random",
        )),
        (true, Some(_), _) | (false, Some(_), Pattern::Random(_) | Pattern::Mixed { .. }) => {
            Err(Error::option(
                "--start-distance",
                "random I/Os start anywhere",
                "drop it, or use --pattern sequential",
            ))
        }
        (false, Some(_), Pattern::Interlocked { .. } | Pattern::Shuffled) => Err(Error::option(
            "--start-distance",
            "interlocked workers start together, at one pointer",
            "drop it, or use --pattern sequential",
        )),
        (false, Some(Bytes(0)), Pattern::Sequential(_)) => Err(Error::option(
            "--start-distance 0",
            "all workers would do the same I/Os",
            "write a distance such as 1g",
        )),
        (true, None, _) => Ok(Pattern::Shuffled),
        (false, Some(distance), Pattern::Sequential(sequence)) => {
            let starts = Starts::Apart(distance);
            Ok(Pattern::Sequential(Sequence { starts, ..*sequence }))
        }
        (false, None, pattern) => Ok(pattern.clone()),
    }
}

/// Refuses a pattern that the rest of the stream leaves no room for, and distances that direct I/O
/// cannot keep.
fn fits_pattern(stream: &Stream, targets: &[Target], access: Access) -> Result<(), Error> {
    check_pattern(stream).map_err(|misfit| {
        Error::option(format!("--{}", misfit.property), misfit.problem, misfit.remedy)
    })?;
    if access.cache == Cache::Buffered {
        return Ok(());
    }
    let parts: Vec<Stream> = (0..stream.parts.len()).map(|place| stream.of_part(place)).collect();
    let each = if parts.is_empty() { std::slice::from_ref(stream) } else { &parts };
    let distances = |stream: &Stream| {
        [
            ("--align", stream.align),
            ("--pattern with a stride of", stream.pattern.stride()),
            ("--start-distance", stream.pattern.start_distance()),
        ]
    };
    let distances: Vec<_> = each.iter().flat_map(distances).collect();
    for region in &stream.regions {
        let target = &targets[region.target as usize];
        let alignment = target.direct_alignment.unwrap_or(Bytes(1));
        for &(option, distance) in &distances {
            aligned(option, distance.unwrap_or(Bytes(0)), alignment, &target.name)?;
        }
    }
    Ok(())
}

/// The block sizes that were typed, for both directions.
pub fn block_sizes(args: &StreamArgs) -> Result<BlockSizes, Error> {
    let load = &args.load;
    let reads = ("--block-size", &load.block_size);
    let writes = match &load.write_block_size {
        Some(_) if load.read_share == 1.0 => {
            return Err(Error::option(
                "--write-block-size",
                "all I/Os are reads, so this has no effect",
                "drop it, or ask for writes with --read-share",
            ));
        }
        Some(_) if load.read_share == 0.0 => {
            return Err(Error::option(
                "--write-block-size",
                "there are no reads that could have another size",
                "use --block-size",
            ));
        }
        Some(typed) => ("--write-block-size", typed),
        None => reads,
    };
    for (option, sizes) in [reads, writes] {
        let impossible =
            sizes.0.iter().find(|(size, _)| *size == Bytes(0) || *size > LARGEST_BLOCK);
        if let Some((size, _)) = impossible {
            return Err(Error::option(
                format!("{option} {size}"),
                "a block has from 1 B to 1 GiB",
                "choose a size such as 4k or 1m",
            ));
        }
        let mut seen: Vec<Bytes> = sizes.0.iter().map(|(size, _)| *size).collect();
        seen.sort_unstable();
        if let Some(twice) = seen.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(Error::option(
                option,
                format!("{} is there twice", twice[0]),
                "give it once, with both weights together",
            ));
        }
    }
    Ok(BlockSizes::weighted(&reads.1.0, &writes.1.0))
}

/// What a simulated device knows nothing of.
fn without_effect_in_simulation(args: &StreamArgs) -> Result<(), Error> {
    let refuse = |option: &str| {
        Err(Error::option(option, "it has no effect on a simulated device", "drop it"))
    };
    if let Some(second) = args.aims.get(1) {
        return Err(Error::option(
            second.path.display().to_string(),
            "a simulated device is measured alone",
            "name one target",
        ));
    }
    access::without_effect_in_simulation(&args.access)?;
    if args.load.trim_share > 0.0 {
        return refuse("--trim-share");
    }
    for (option, typed) in [
        ("--realtime", args.load.realtime),
        ("--cpus", args.load.cpus.is_some()),
        ("--io-priority", args.load.io_priority.is_some()),
        ("--large-pages", args.load.large_pages),
    ] {
        if typed {
            return refuse(option);
        }
    }
    Ok(())
}

/// A simulated device has nothing that could be overwritten.
fn no_consent_in_simulation(described: &Described) -> Result<(), Error> {
    let typed = [
        ("--overwrite", described.consent.overwrite),
        ("--destroy", !described.consent.destroy.is_empty()),
    ];
    match typed.into_iter().find(|(_, typed)| *typed) {
        Some((option, _)) => {
            Err(Error::option(option, "it has no effect on a simulated device", "drop it"))
        }
        None => Ok(()),
    }
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

/// Refuses trims where there can be none.
fn trims(args: &StreamArgs, targets: &[Target], sizes: &BlockSizes) -> Result<(), Error> {
    if args.load.trim_share == 0.0 {
        return Ok(());
    }
    let refuse =
        |problem: String, remedy: &str| Err(Error::option("--trim-share", problem, remedy));
    if args.access.backend == Backend::Named(BackendKind::Aio) {
        return refuse(
            "native AIO has no trims".to_owned(),
            "drop it, or use --backend uring or sync",
        );
    }
    if args.access.polled {
        return refuse(
            "a ring that is polled takes no trims".to_owned(),
            "drop it, or drop --polled",
        );
    }
    for aim in &args.aims {
        let target = &targets[aim.target as usize];
        match target.kind {
            TargetKind::CharacterDevice | TargetKind::NvmeGeneric => {
                let problem = format!("{} is a {}", target.name, target.kind.name());
                return refuse(problem, "name files or block devices");
            }
            // The page cache takes any length, and a discard does not go through it.
            TargetKind::BlockDevice => {
                let sector = target.direct_alignment.unwrap_or(Bytes(512));
                for size in sizes.all() {
                    aligned("--block-size", size, sector, &target.name)?;
                }
            }
            _ => {}
        }
    }
    Ok(())
}

/// When what is written is flushed.
fn flush(args: &StreamArgs) -> Result<Option<Flush>, Error> {
    let typed = &args.load.flush;
    let (option, every, data_only) = match (typed.fsync, typed.fdatasync) {
        (Some(_), Some(_)) => {
            return Err(Error::option(
                "--fsync",
                "a flush is an fsync or an fdatasync, and --fdatasync is there too",
                "give one of them",
            ));
        }
        (Some(every), None) => ("--fsync", every, false),
        (None, Some(every)) => ("--fdatasync", every, true),
        (None, None) if typed.no_barrier => {
            return Err(Error::option(
                "--no-barrier",
                "nothing is flushed, so this has no effect",
                "drop it, or ask for flushes with --fsync or --fdatasync",
            ));
        }
        (None, None) => return Ok(None),
    };
    let refuse = |problem: &str, remedy: &str| Err(Error::option(option, problem, remedy));
    if args.load.read_share == 1.0 {
        return refuse(
            "all I/Os are reads, so there is nothing to flush",
            "drop it, or ask for writes with --read-share",
        );
    }
    if args.access.polled {
        return refuse("a ring that is polled takes no flushes", "drop it, or drop --polled");
    }
    Ok(Some(Flush { every, data_only, barrier: !typed.no_barrier }))
}

/// What is written.
fn payload(args: &StreamArgs, sizes: &BlockSizes) -> Result<Payload, Error> {
    let typed = &args.load.payload;
    let options = [
        ("--payload", typed.payload.is_some()),
        ("--compressible", typed.compressible.is_some()),
        ("--dedup", typed.dedup.is_some()),
    ];
    let Some((first, _)) = options.iter().find(|(_, typed)| *typed) else {
        return Ok(Payload::UNIQUE);
    };
    if args.load.read_share == 1.0 {
        return Err(Error::option(
            *first,
            "all I/Os are reads, so this has no effect",
            "drop it, or ask for writes with --read-share",
        ));
    }
    let payload = content(typed)?;
    let block = sizes.largest();
    match &payload {
        Payload::Random { dedup, .. } if *dedup > 0.0 => {
            let unit = Bytes(4096);
            let sizes = sizes.of(Direction::Write).iter().map(|one| ("--block-size", one.size));
            let offsets = args.aims.iter().map(|aim| aim.offset.unwrap_or(args.access.offset));
            let offsets = offsets.map(|offset| ("--offset", offset));
            let align = args.load.align.map(|align| ("--align", align));
            for (option, value) in sizes.chain(offsets).chain(align) {
                if !value.0.is_multiple_of(unit.0) {
                    return Err(Error::option(
                        format!("{option} {}", exactly(value)),
                        format!(
                            "with --dedup it is a multiple of {unit}, the block that is repeated"
                        ),
                        format!(
                            "choose {} bytes, or drop --dedup",
                            value.0.next_multiple_of(unit.0)
                        ),
                    ));
                }
            }
        }
        Payload::Pool { size, .. } if *size < block || Payload::LARGEST_POOL < *size => {
            return Err(Error::option(
                format!("--payload pool:{}", exactly(*size)),
                format!(
                    "a pool has from one block of {} to {}",
                    exactly(block),
                    Payload::LARGEST_POOL
                ),
                "choose a size such as pool:16m",
            ));
        }
        _ => {}
    }
    Ok(payload)
}

/// The payload as it was typed in up to three options.
///
/// # Errors
///
/// When they contradict each other.
pub fn content(typed: &PayloadArgs) -> Result<Payload, Error> {
    let random = |option, share: Option<f64>| match (&typed.payload, share) {
        (None | Some(Payload::Random { .. }), share) => Ok(share.unwrap_or(0.0)),
        (Some(_), None) => Ok(0.0),
        (Some(_), Some(_)) => Err(Error::option(
            option,
            "only random data can be made so",
            "drop it, or drop --payload",
        )),
    };
    let compressible = random("--compressible", typed.compressible)?;
    let dedup = random("--dedup", typed.dedup)?;
    Ok(match &typed.payload {
        None | Some(Payload::Random { .. }) => Payload::Random { compressible, dedup },
        Some(other) => other.clone(),
    })
}

/// The command that writes a file anew, large enough for any test.
pub fn refill(target: &Target) -> String {
    format!("fathom prepare {} --size 10g --overwrite", typed_path(&target.name))
}

/// The regions, one for each target.
fn regions(
    args: &StreamArgs,
    targets: &[Target],
    access: Access,
    sizes: &BlockSizes,
) -> Result<Vec<Region>, Error> {
    // Regions are whole multiples of the smallest block, and have room for the largest.
    let (block, largest) = (sizes.smallest(), sizes.largest());
    let mut regions = Vec::with_capacity(args.aims.len());
    for aim in &args.aims {
        let target = &targets[aim.target as usize];
        let offset = aim.offset.unwrap_or(args.access.offset);
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
        let length = match aim.size.or(args.access.size) {
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
        if length < largest {
            return Err(too_small(aim.size.or(args.access.size), rest, largest, &target.name));
        }
        if !length.0.is_multiple_of(block.0) {
            // 4097 bytes, shown as 4 KiB, would seem to be one.
            return Err(Error::option(
                format!("--size {}", exactly(length)),
                format!("it is no whole number of blocks of {}", exactly(block)),
                format!("choose {} bytes", length.0 - length.0 % block.0),
            ));
        }
        for size in sizes.all() {
            check_command_size(target, size)
                .map_err(|refusal| Error::Refused(refusal.to_string()))?;
        }
        if access.cache == Cache::Direct {
            let alignment = target.direct_alignment.unwrap_or(Bytes(1));
            for size in sizes.all() {
                aligned("--block-size", size, alignment, &target.name)?;
            }
            aligned("--offset", offset, alignment, &target.name)?;
        }
        regions.push(Region { target: aim.target, offset, length });
    }
    Ok(regions)
}

/// Why a region is refused that holds no block: the size that was typed, or what there is.
fn too_small(typed: Option<Bytes>, rest: Bytes, block: Bytes, target: &str) -> Error {
    match typed {
        Some(size) => Error::option(
            format!("--size {}", exactly(size)),
            format!("a block of {block} does not fit into it"),
            "choose a larger one, or a smaller --block-size",
        ),
        None => Error::option(
            format!("--block-size {block}"),
            format!("it is larger than the region of {rest} in {target}"),
            "choose a smaller block or a larger region",
        ),
    }
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

/// The pacing, with the course of its load if that changes over time.
fn pacing(
    args: &StreamArgs,
    (targets, disks): (u32, u64),
    sizes: &BlockSizes,
    times: Times,
) -> Result<(Pacing, Option<Course>), Error> {
    let load = &args.load;
    let workers = match load.workers {
        Workers::PerTarget(n) => u64::from(n) * u64::from(targets),
        Workers::Total(n) => u64::from(n),
    };
    if workers > u64::from(MOST) {
        return Err(too_many_workers(workers));
    }
    let typed = load.queue_depth.map(|depth| match depth {
        Depth::Stream(n) => u64::from(n),
        Depth::PerWorker(n) => u64::from(n) * workers,
        Depth::PerTarget(n) => u64::from(n) * u64::from(targets),
        Depth::PerDisk(n) => u64::from(n) * disks,
    });
    let default = match load.rate {
        None => u64::from(DEFAULT_DEPTH),
        Some(_) => u64::from(DEFAULT_DEPTH_OPEN)
            .min(DEFAULT_BUFFERS.0 / sizes.largest().0)
            .max(u64::from(DEFAULT_DEPTH)),
    };
    let depth = typed.unwrap_or(default.max(workers));
    let depth = match u32::try_from(depth) {
        Ok(depth) if depth <= MOST => depth,
        _ => return Err(too_deep(depth)),
    };
    let Some(rate) = &load.rate else {
        return Ok((Pacing::Closed { queue_depth: depth }, None));
    };
    let targets = u64::from(targets);
    let offer = rate.of_stream(Shares { workers, targets, block: sizes.mean(load.read_share) });
    let (offered_load, course) = match offer {
        Offer::Steady(rate) => (rate, None),
        Offer::Course(course) => (course.mean(Span(0), times.window), Some(course)),
    };
    let pacing = Pacing::Open {
        offered_load,
        arrivals: load.arrivals.map_or(Arrivals::Poisson, Arrivals::from),
        queue_depth_max: depth,
        realtime: load.realtime,
    };
    Ok((pacing, course))
}

fn too_deep(depth: u64) -> Error {
    let problem = format!("{depth} I/Os in flight in all are more than {MOST}");
    Error::option("--queue-depth", problem, "choose fewer")
}

fn too_many_workers(workers: u64) -> Error {
    Error::option(
        "--workers",
        format!("{workers} threads are more than {MOST}"),
        "use fewer; one for each core is enough",
    )
}

/// Refuses a load that no clock can offer, or that is more than can be counted, and a course that
/// the window has no room for.
fn possible_rate(
    pacing: &Pacing,
    course: Option<&Course>,
    sizes: &BlockSizes,
    times: Times,
) -> Result<(), Error> {
    let Pacing::Open { offered_load, .. } = pacing else { return Ok(()) };
    let refuse = |problem, remedy: &str| Err(Error::option("--rate", problem, remedy));
    let stages = course.map_or(&[][..], Course::stages).iter();
    let typed = stages.flat_map(|stage| [stage.begins, stage.ends]).filter(|rate| rate.0 > 0.0);
    // The mean of a course may be any rate above none.
    let steady = course.is_none().then_some(*offered_load);
    if let Some(rate) = typed.chain(steady).find(|rate| !RATES.contains(&rate.0)) {
        return refuse(
            format!("it comes to {} I/Os of {sizes} per second, outside of 0.001 to 1000m", rate.0),
            "choose another rate or another --block-size",
        );
    }
    let time = times.warm_up + times.window + times.cool_down;
    let due = match course {
        Some(course) => course.after(times.warm_up).ios_before(time),
        None => offered_load.0 * time.as_secs_f64(),
    };
    if due > MOST_DUE {
        return refuse(
            format!("{offered_load} for {time} are more than {MOST_DUE} I/Os"),
            "choose a lower rate or a shorter --duration",
        );
    }
    let Some(course) = course else { return Ok(()) };
    if course.length() > times.window {
        return refuse(
            format!(
                "its stages take {}, and the window ends after {}",
                course.length(),
                times.window
            ),
            "drop --duration, choose a longer one, or choose shorter stages",
        );
    }
    if offered_load.0 <= 0.0 {
        return refuse(
            "it comes to nothing all the time".to_owned(),
            "give a stage a rate above 0",
        );
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
            format!("the submission threads of {workers} workers would share this CPU"),
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
        format!("use {}, or a queue depth from {workers} up", at_most(depth)),
    ))
}

/// So many workers and no more, as the remedy for too many.
fn at_most(workers: u32) -> String {
    match workers {
        1 => "one worker in all".to_owned(),
        n => format!("at most {n} workers in all"),
    }
}

/// Refuses real-time priority where it would leave no CPU to everything else: the threads that serve
/// the I/Os, and whoever wants to end the run.
fn enough_cpus(streams: &[Stream], cpus: u32) -> Result<(), Error> {
    let realtime = |stream: &&Stream| matches!(stream.pacing, Pacing::Open { realtime: true, .. });
    let workers: u32 = streams.iter().filter(realtime).map(worker_count).sum();
    if workers == 0 || workers < cpus || cpus == 0 {
        return Ok(());
    }
    let (problem, remedy) = match cpus {
        1 => ("on the only CPU nothing else could run".to_owned(), "drop it".to_owned()),
        _ => (
            format!("with a worker for each of {cpus} CPUs nothing else could run"),
            format!("use {}, or drop it", at_most(cpus - 1)),
        ),
    };
    Err(Error::option("--realtime", problem, remedy))
}

fn enough_memory(streams: &[Stream], memory: Bytes) -> Result<(), Error> {
    let pools = pools(streams);
    if pools > memory.0 / 2 {
        return Err(Error::option(
            "--payload pool",
            format!(
                "what is written from takes {}, more than half of the memory of {memory}",
                Bytes(pools)
            ),
            "choose a smaller pool",
        ));
    }
    let buffers = buffers(streams).saturating_add(pools);
    if buffers <= memory.0 / 2 {
        return Ok(());
    }
    let [stream] = streams else {
        return Err(Error::option(
            "--queue-depth",
            format!(
                "the buffers of all streams take {}, more than half of the memory of {memory}",
                Bytes(buffers)
            ),
            "choose smaller queue depths or block sizes",
        ));
    };
    Err(Error::option(
        format!("--queue-depth {}", stream.pacing.queue_depth()),
        format!(
            "its buffers of {} take {}, more than half of the memory of {memory}",
            stream.block_sizes.largest(),
            Bytes(buffers)
        ),
        "choose a smaller queue depth or block size",
    ))
}

/// The memory that the buffers of streams take. They are whole pages, and what was read is never
/// written.
pub fn buffers(streams: &[Stream]) -> u64 {
    let of = |stream: &Stream| {
        let sets = if 0.0 < stream.read_share && stream.read_share < 1.0 { 2 } else { 1 };
        let page_block = stream.block_sizes.largest().0.next_multiple_of(4096);
        u64::from(stream.pacing.queue_depth()).saturating_mul(sets * page_block)
    };
    streams.iter().map(of).fold(0, u64::saturating_add)
}

/// The memory that the pools take which streams write from. Streams with the same one have it
/// together.
pub fn pools(streams: &[Stream]) -> u64 {
    let mut pools: Vec<(&Payload, bool)> = Vec::new();
    for stream in streams.iter().filter(|stream| stream.read_share < 1.0) {
        let pool = (&stream.payload, stream.workplace.large_pages);
        if matches!(pool.0, Payload::Pool { .. }) && !pools.contains(&pool) {
            pools.push(pool);
        }
    }
    let size = |(payload, _): &(&Payload, bool)| match payload {
        Payload::Pool { size, .. } => size.0,
        _ => 0,
    };
    pools.iter().map(size).fold(0, u64::saturating_add)
}

/// Whether it is a device of the machine's, which is written to only where its own name is repeated.
pub fn is_device(target: &Target) -> bool {
    matches!(target.kind, TargetKind::BlockDevice | TargetKind::NvmeGeneric)
}

/// Whether a name that was typed is a target's, or where it lies.
fn names(typed: &str, target: &Target) -> bool {
    typed == target.name || typed == target.path
}

/// The same of a folder.
fn names_folder(typed: &str, folder: &str) -> bool {
    let lies = || std::fs::canonicalize(folder).is_ok_and(|path| path.as_os_str() == typed);
    typed == folder || lies()
}

/// What may be written to, given which targets are written and which were found in a folder: these
/// are many, and nobody has seen their names, so that the folder's own has to be repeated.
///
/// # Errors
///
/// When writes were asked for and not allowed, or allowed and not asked for.
pub fn permission<'a>(
    typed: &Consent,
    written: impl Fn(u32) -> bool,
    folder_of: impl Fn(u32) -> Option<&'a str>,
    targets: &[Target],
) -> Result<Overwrite, Error> {
    let simulated = targets.iter().any(|target| target.kind == TargetKind::Simulated);
    let places = || (0u32..).zip(targets);
    let writes = places().any(|(place, _)| written(place));
    if let (false, Some(option)) = (writes, typed.first()) {
        let typed = match typed.named().next().filter(|_| !typed.overwrite) {
            Some((option, name)) => format!("{option} {name}"),
            None => option.to_owned(),
        };
        return Err(Error::option(
            typed,
            "all I/Os are reads, so this has no effect",
            "drop it, or ask for writes with --read-share",
        ));
    }
    for (option, name) in typed.named() {
        let named = |(place, target): (u32, &Target)| {
            names(name, target) || folder_of(place).is_some_and(|folder| names_folder(name, folder))
        };
        if !places().any(named) {
            return Err(Error::option(
                format!("{option} {name}"),
                "this is none of the targets",
                "repeat the target's name exactly as it was given, or where it lies",
            ));
        }
    }
    let destroys = |target: &Target| typed.named().any(|(_, name)| names(name, target));
    let destroys_all = |folder: &str| typed.named().any(|(_, name)| names_folder(name, folder));
    let allowed = |place, target: &Target| match folder_of(place) {
        Some(folder) => destroys_all(folder) || destroys(target),
        // Of a device the engine says what is on it as it refuses.
        None => typed.overwrite || is_device(target) || destroys(target),
    };
    let refused = places().find(|(place, one)| written(*place) && !allowed(*place, one));
    let of_folder = places().any(|(place, _)| folder_of(place).is_some_and(destroys_all));
    match refused.map(|(place, target)| (target, folder_of(place))) {
        Some((_, Some(folder))) => Err(Error::target(
            folder,
            "the load writes, and what all files in this folder hold would be lost",
            format!(
                "allow it by repeating its name in --destroy {}, or only read with \
                 --read-share 100%",
                typed_path(folder)
            ),
        )),
        Some((target, None)) if !simulated => Err(Error::target(
            &target.name,
            "the load writes, and what is there would be lost",
            "allow it with --overwrite, or only read with --read-share 100%",
        )),
        _ => {
            let allowed = typed.overwrite || of_folder;
            let (destroy, destroy_in_use) = (typed.destroy.clone(), typed.destroy_in_use.clone());
            Ok(Overwrite { allowed, destroy, destroy_in_use, ..Overwrite::default() })
        }
    }
}
