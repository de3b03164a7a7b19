//! Turns a description into its meaning for these targets on this machine, for every front end:
//! options, a workload file, or another tool's words. Pure: every setting that contradicts another
//! one or would have no effect is refused here, before anything is opened.
//!
//! Refusals call a setting by its option (`--queue-depth`). A front end with other names replaces
//! that.

mod access;
pub mod by_host;
pub mod consent;
mod cpus;
pub mod derived;
mod pacing;
mod parts;
mod pattern;
pub mod payload;
pub mod regions;
#[cfg(test)]
mod tests;
pub mod times;
pub mod workers;

use fathom_core::facts::{CpuPlace, Target, TargetKind};
use fathom_core::plan::zone;
use fathom_core::spec::{BackendKind, Ios, Kind, Point, Region, Stream, Turns, Workplace};
use fathom_core::{Bytes, Span};
use fathom_engine::target::Overwrite;

use crate::cli::described::{Described, HostPlace, StreamArgs};
use crate::cli::values::Backend;
use crate::error::Error;
use crate::limits::{LONGEST_UNTIL_DONE, MOST, SHORTEST_INTERVAL};
pub use pacing::countable;
pub use regions::direct_offset;
use times::Times;

/// The settings of a command, complete.
#[derive(Clone, Debug, PartialEq)]
pub struct Spec {
    /// The points, in order.
    pub points: Vec<Point>,
    /// The facts about the targets.
    pub targets: Vec<Target>,
    /// What carries the I/Os.
    pub backend: Backend,
    /// The consent to writes.
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

/// The facts about the machine that the resolver needs.
#[derive(Clone, Copy, Debug)]
pub struct Machine<'a> {
    /// The usable memory; unlimited if it is unknown.
    pub memory: Bytes,
    /// A random seed.
    pub fresh_seed: u64,
    /// The usable CPUs; 0 if their number is not known.
    pub cpus: u32,
    /// Their numbers; empty if they are not known.
    pub cpu_places: &'a [CpuPlace],
}

/// A problem of a description, and the stream that it concerns; none if it concerns the whole.
#[derive(Debug)]
pub struct Blame {
    /// The stream's place.
    pub stream: Option<usize>,
    /// The problem.
    pub error: Error,
}

/// Resolves a description for these targets on this machine. Consent comes later.
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
        let resolved = stream(typed, &targets, (simulated, described.host), machine, times);
        streams.push(resolved.map_err(|error| Blame { stream: Some(place), error })?);
    }
    let whole = |error| Blame { stream: None, error };
    if simulated {
        consent::no_consent_in_simulation(described).map_err(whole)?;
    }
    cpus::take_turns(&mut streams, described.streams.iter().map(|stream| stream.first_worker));
    workers::together(&streams, machine).map_err(whole)?;
    let first = &described.streams[0];
    // A run within a minute has slices that suit a minute.
    let until_done = times.window == LONGEST_UNTIL_DONE && first.load.duration.is_none();
    let typed = first.load.interval.or(until_done.then_some(SHORTEST_INTERVAL));
    let interval = times::interval("--duration", times.window, typed);
    let point = Point {
        warm_up: times.warm_up,
        cool_down: times.cool_down,
        interval: interval.map_err(whole)?,
        seed: first.load.seed.unwrap_or(machine.fresh_seed),
        buckets: described.buckets,
        rated: first.load.promised.rated(),
        ..Point::of(streams, times.window)
    };
    let point = match &described.name {
        Some(name) => Point { name: name.clone(), ..point },
        None => point,
    };
    let backend = if simulated { Backend::Named(BackendKind::Sim) } else { first.access.backend };
    Ok(Spec { points: Vec::from([point]), targets, backend, consent: Overwrite::default() })
}

/// Resolves one stream.
fn stream(
    args: &StreamArgs,
    targets: &[Target],
    (simulated, host): (bool, Option<HostPlace>),
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
    let sizes = pattern::block_sizes(args)?;
    let kinds = pattern::kinds(args)?;
    regions::trims(args, targets, &sizes)?;
    let regions = regions::regions(args, targets, access, &sizes)?;
    let active = times::active(&args.load, times)?;
    // The time before the start of a stream is not a warm-up of it.
    let own = match active.start {
        None => Times { window: active.ends(times.window), ..times },
        Some(start) => {
            Times { warm_up: Span(0), window: active.ends(times.window) - start, ..times }
        }
    };
    let drives = |region: &Region| u64::from(targets[region.target as usize].drives());
    let spread = (regions.len() as u32, regions.iter().map(drives).sum());
    let pacing = pacing::pacing(args, spread, &sizes, (own, active))?;
    let pattern = pattern::pattern(&args.load)?;
    let payload = payload::payload(args, &sizes, &kinds)?;
    let (align, read_share) = (args.load.align, args.load.read_share);
    let mut stream = Stream {
        ios: match &parted {
            Some((_, parts)) => Ios::Drawn(parts.clone()),
            None if kinds.is_empty() => {
                Kind { pattern, align, block_sizes: sizes, read_share }.into()
            }
            None => Ios::ByRegion(kinds),
        },
        zones: args.load.zones,
        turns: match &args.load.weights {
            None => Turns::InTurn,
            Some(weights) => Turns::Weighted(weights.0.clone()),
        },
        payload,
        flush: payload::flush(args)?,
        trim_share: args.load.trim_share,
        pacing,
        workers: args.load.workers,
        access,
        workplace: Workplace {
            cpus: cpus::cpus(&args.load, targets, &regions, machine.cpu_places)?,
            io_priority: args.load.io_priority,
            large_pages: args.load.large_pages,
        },
        ..Stream::reading(String::new(), regions)
    };
    if let (true, (copy, copies @ 2..)) = (stream.zones, args.copy) {
        let unit = stream.alignment();
        stream.regions.iter_mut().for_each(|region| *region = zone(region, unit, copy, copies));
    }
    if let Some(how) = args.access.by_host {
        by_host::divide(&mut stream, how, host)?;
    }
    stream.name = args.name.clone().unwrap_or_else(|| stream.description(times.window));
    pattern::fits_pattern(&stream)?;
    access::fits(&stream, targets)?;
    workers::enough_depth(&stream)?;
    pacing::rests_fit(&stream)?;
    let backend = if simulated { Backend::Named(BackendKind::Sim) } else { args.access.backend };
    workers::enough_memory(std::slice::from_ref(&stream), machine.memory)?;
    workers::ring_holds(&stream, backend, access.ring)?;
    workers::own_cpu(&stream, access.ring)?;
    Ok(stream)
}

/// Refuses a point that an experiment has derived from another one and that this machine cannot
/// hold.
///
/// # Errors
///
/// When it has too much in flight, or too many workers.
pub fn fits(point: &Point, backend: Backend, machine: Machine) -> Result<(), Error> {
    for stream in &point.streams {
        if MOST < stream.pacing.queue_depth() {
            return Err(workers::too_deep(stream.pacing.queue_depth().into()));
        }
        workers::enough_depth(stream)?;
        pacing::rests_fit(stream)?;
        workers::ring_holds(stream, backend, stream.access.ring)?;
        workers::own_cpu(stream, stream.access.ring)?;
    }
    workers::together(&point.streams, machine)
}

/// Contradictions that do not depend on the targets.
fn contradictions(args: &StreamArgs) -> Result<(), Error> {
    if args.aims.is_empty() {
        return Err(Error::option(
            "TARGET",
            "there is none",
            "name a file, a block device or a simulated device, as in `fathom run sim:ssd`; \
             `fathom prepare test.dat --size 10g` makes a file to measure on",
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

/// Settings without a meaning for a simulated device.
fn without_effect_in_simulation(args: &StreamArgs) -> Result<(), Error> {
    if let Some(second) = args.aims.get(1) {
        return Err(Error::option(
            second.path.display().to_string(),
            "a simulated device is measured alone",
            "name one target",
        ));
    }
    let (load, access) = (&args.load, &args.access);
    // The sync mode has a meaning there: a write is durable when it completes, in any mode.
    let typed = [
        ("--buffered", access.buffered),
        ("--mmap", access.mmap),
        ("--fadvise", access.fadvise.is_some()),
        ("--dontcache", access.dontcache),
        ("--atomic", access.atomic),
        ("--backend", access.backend != Backend::Auto),
        ("--polled", access.polled),
        ("--sqpoll", access.sqpoll.is_some()),
        ("--trim-share", load.trim_share > 0.0),
        ("--realtime", load.realtime),
        ("--cpus", load.cpus.is_some()),
        ("--io-priority", load.io_priority.is_some()),
        ("--large-pages", load.large_pages),
    ];
    match typed.into_iter().find(|(_, typed)| *typed) {
        Some((option, _)) => Err(no_effect_in_simulation(option)),
        None => Ok(()),
    }
}

/// The refusal of an option that only a real target knows.
fn no_effect_in_simulation(option: &str) -> Error {
    Error::option(option, "it has no effect on a simulated device", "drop it")
}
