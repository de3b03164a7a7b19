//! `fathom map`: the latency map. The search is in core; the meaning of its options is here.

use std::collections::BTreeMap;

use fathom_core::RefusalKind;
use fathom_core::experiment::map::{
    Map, SearchOptions, Settings, Shape, Surface, Trims, cells_at_most,
};
use fathom_core::experiment::{Axis, Scale};
use fathom_core::facts::Target;
use fathom_core::spec::{Pattern, Point, Workers};
use fathom_core::{Bytes, Quantile, Span};
use fathom_report::document::{self, Command};

use super::before::BeforeTrials;
use super::experiment::{self, Ground, Prepared, Writes};
use super::place::{self, Place};
use super::this_machine;
use crate::cli::args::Map as Args;
use crate::cli::described::{Aim, Described, ONLY, StreamArgs};
use crate::cli::options::{AccessArgs, LoadArgs};
use crate::cli::rates::{Offer, Offered, Shares};
use crate::cli::values::{Depth, Sizes};
use crate::error::{Error, exit};
use crate::limits;
use crate::output;
use crate::resolve::{self, Spec};

/// The times and tolerances of cells on a kind of device.
struct Cells {
    /// The time of a cell that is precise enough by then.
    window: Span,
    /// The factor for the longest time.
    longest: u64,
    /// The share of that time from which on a cell is given up if the target falls behind.
    give_up_from: f64,
    /// The share of the offered load by which the target may be behind in a cell that it carries.
    behind: f64,
}

/// On a device that answers in fractions of a millisecond.
const QUICK: Cells =
    Cells { window: Span::from_secs(5), longest: 6, give_up_from: 0.6, behind: 0.03 };

/// On rotating disks: a hundred reads a second need longer for a quantile, and a backlog comes and
/// goes with the elevator.
const TURNING: Cells =
    Cells { window: Span::from_secs(30), longest: 2, give_up_from: 0.4, behind: 0.15 };

/// A shorter cell has too few batches for half-widths.
const SHORTEST_CELL: Span = Span::from_secs(1);

/// A longer one is a separate run.
const LONGEST_CELL: Span = Span::from_secs(24 * 3600);

/// Long blocks, which a device handles one after the other.
const TRIMS_IN_FLIGHT: u32 = 4;

/// A target that does only half of the offered load carries nothing.
const ALLOWED_MOST: f64 = 0.5;

/// The tolerance of further quantiles in multiples of that of the median: tails are noisier.
const TOLERANCES: [(f64, f64); 3] = [(0.5, 1.0), (0.95, 2.0), (1.0, 4.0)];

/// Runs it.
///
/// # Errors
///
/// When the command line, the target or the result file does not allow it.
pub fn perform(args: &Args) -> Result<u8, Error> {
    if place::asks_for_help(&args.target) {
        output::say_text(fathom_engine::sim::help().trim_end())?;
        return Ok(exit::MEASURED);
    }
    args.results.leave_stdout();
    experiment::perform(prepare(args, None)?, &args.start, &args.results)
}

/// Resolves its settings, with the seed of an earlier run if there is one.
///
/// # Errors
///
/// When an option contradicts another one, or the target is not there.
pub fn prepare(args: &Args, seed: Option<u64>) -> Result<Prepared, Error> {
    let host = this_machine::this_host();
    let place = Place::find(std::slice::from_ref(&args.target))?;
    let mut described = describe(args, &place);
    for stream in &mut described.streams {
        stream.load.seed = seed.or(stream.load.seed);
    }
    let spec = resolve::settle(&described, place.facts(), this_machine::machine(&host))
        .map_err(|blame| blame.error)?;
    let (spec, refusal) = resolve::consent::permitted(spec, &described);
    let refusal = refusal.map(in_words_of_a_map);
    let settings = settings(args, &spec)?;
    if settings.trims.is_some() && args.ramp == Span(0) {
        return Err(Error::option(
            "--trim-share",
            "trims follow the writes by the load before the window, and --ramp 0s has none",
            "choose a longer --ramp, such as 5s",
        ));
    }
    if 0 < settings.prefill && matches!(place, Place::Simulated { .. }) {
        return Err(Error::option(
            "--prefill",
            "it has no effect on a simulated device, which is new at each point",
            "drop it",
        ));
    }
    let map = Map::new(settings.clone());
    Ok(Prepared {
        command: Command::Map,
        writes: writes(&map, &settings, &spec.targets),
        about: about(&map, &settings),
        written_before: 0 < settings.prefill,
        described: in_the_document(args, &settings),
        seed: settings.base.seed,
        targets: spec.targets.clone(),
        fleet: None,
        before: BeforeTrials::default(),
        grounds: Vec::from([Ground { place, spec }]),
        which: Box::new(|_| 0),
        experiment: Box::new(map),
        host,
        probes: Vec::new(),
        refusal,
    })
}

/// The most that it writes: by the end of the write axis if that was given, and otherwise by the
/// speed of such targets.
fn writes(map: &Map, settings: &Settings, targets: &[Target]) -> Option<Writes> {
    let (time, before) = (map.full_writing(), map.prefilling());
    let known_before = || (Bytes(0) < before).then(|| Writes::exactly(before, targets));
    if let Some(bandwidth) = settings.write_max {
        let bytes = Bytes((bandwidth * time.as_secs_f64()) as u64);
        let writes = (Bytes(0) < bytes).then(|| Writes::at_most(bytes, targets).beside(before));
        return writes.or_else(known_before);
    }
    let long =
        Point { warm_up: Span(0), cool_down: Span(0), window: time, ..settings.base.clone() };
    let writes = Writes::of(std::iter::once((&long, 1)), targets);
    writes.map(|writes| writes.beside(before)).or_else(known_before)
}

/// A map always writes, unlike other loads.
fn in_words_of_a_map(refusal: Error) -> Error {
    match refusal {
        Error::Refusal(refusal) if refusal.kind == RefusalKind::Denied => Error::target(
            refusal.about,
            "a map is of reads beside writes, and what is there would be lost",
            "allow it with --overwrite",
        ),
        other => other,
    }
}

/// The streams: the writer, the readers, and trims if they were requested.
fn describe(args: &Args, place: &Place) -> Described {
    // In virtual time one thread keeps up with any device.
    let usual = if matches!(place, Place::Simulated { .. }) { 1 } else { 2 };
    let [first, second] = halves(args, place);
    let stream = |name: &str, load: LoadArgs, access: &AccessArgs| StreamArgs {
        name: Some(name.to_owned()),
        aims: Vec::from([Aim::at(args.target.clone())]),
        load: LoadArgs { seed: args.seed, warm_up: Some(args.ramp), ..load },
        access: access.clone(),
        copy: ONLY,
        first_worker: None,
    };
    let writer = LoadArgs {
        block_size: Sizes::one(args.write_block_size),
        read_share: 0.0,
        pattern: Pattern::SEQUENTIAL,
        queue_depth: Some(Depth::Stream(args.write_queue_depth)),
        workers: Workers::Total(1),
        ..LoadArgs::default()
    };
    let reader = LoadArgs {
        block_size: Sizes::one(args.block_size),
        queue_depth: Some(Depth::Stream(args.queue_depth)),
        workers: Workers::Total(args.workers.unwrap_or(usual)),
        ..LoadArgs::default()
    };
    let trims = trim_share(args).map(|_| LoadArgs {
        trim_share: 1.0,
        queue_depth: Some(Depth::Stream(TRIMS_IN_FLIGHT)),
        ..writer.clone()
    });
    let mut streams =
        Vec::from([stream("writer", writer, &second), stream("readers", reader, &first)]);
    streams.extend(trims.map(|trims| stream("trims", trims, &second)));
    Described {
        name: Some("latency map".to_owned()),
        consent: args.consent.clone(),
        ..Described::of(streams)
    }
}

/// The share of the written data that is trimmed, if any is.
fn trim_share(args: &Args) -> Option<f64> {
    args.trim_share.filter(|share| 0.0 < *share)
}

/// The ranges of reads and of writes. With trims each has a half: reads of trimmed data would not
/// reach the medium.
fn halves(args: &Args, place: &Place) -> [AccessArgs; 2] {
    let access = &args.access;
    if trim_share(args).is_none() {
        return [access.clone(), access.clone()];
    }
    let rest =
        place.facts().first().map_or(0, |target| target.size.0.saturating_sub(access.offset.0));
    let unit = args.write_block_size.0.max(args.block_size.0).max(1);
    let half = access.size.map_or(rest, |size| size.0) / 2 / unit * unit;
    let at = |offset: u64| AccessArgs {
        offset: Bytes(offset),
        size: Some(Bytes(half)),
        ..access.clone()
    };
    [at(access.offset.0), at(access.offset.0.saturating_add(half))]
}

fn settings(args: &Args, spec: &Spec) -> Result<Settings, Error> {
    let cells = if spec.targets[0].turns() { TURNING } else { QUICK };
    let (window, window_max) = times(args, &cells)?;
    let maximum = |option: &str, typed: &Option<Offered>, block: Bytes| {
        let Some(offered) = typed else { return Ok(None) };
        let shares = Shares { workers: 1, targets: 1, block: block.0 as f64 };
        match offered.of_stream(shares) {
            Offer::Steady(rate) => {
                let time = args.ramp + window_max;
                resolve::countable(option, rate, (rate.0 * time.as_secs_f64(), time))?;
                Ok(Some(rate.0))
            }
            Offer::Course(_) => Err(Error::option(
                option,
                "the end of an axis is one rate",
                "give one, such as 40k",
            )),
        }
    };
    let write_max = maximum("--write-max", &args.write_max, args.write_block_size)?;
    let read_max = maximum("--read-max", &args.read_max, args.block_size)?;
    let shape = Shape { writes: args.grid.0 as usize, reads: args.grid.1 as usize, first_read: 0 };
    let surfaces = surfaces(args)?;
    let point = &spec.points[0];
    let mut streams = point.streams.iter().cloned();
    let mut next = || streams.next().expect("a writer and readers were described");
    let (writer, reader) = (next(), next());
    let trims = streams.next().zip(trim_share(args));
    Ok(Settings {
        base: Point { interval: limits::SHORTEST_INTERVAL, ..point.clone() },
        writer,
        trims: trims.map(|(stream, share)| Trims { stream, share }),
        reader,
        search: SearchOptions {
            shape,
            surfaces,
            exhaustive: args.exhaustive,
            cells_at_most: cells_at_most(shape),
            seed: point.seed,
        },
        prefill: args.prefill.map_or(0, |typed| typed.0),
        write_max: write_max.map(|rate| rate * args.write_block_size.0 as f64),
        read_max,
        ramp: args.ramp,
        window,
        window_max,
        give_up_from: Span((window.0 as f64 * cells.give_up_from) as u64),
        behind: allowed_error(args, &cells)?,
    })
}

/// The share by which the target may be behind in a cell that it carries.
fn allowed_error(args: &Args, cells: &Cells) -> Result<f64, Error> {
    let share = args.allowed_error.unwrap_or(cells.behind);
    match 0.0 < share && share <= ALLOWED_MOST {
        true => Ok(share),
        false => Err(Error::option(
            format!("--allowed-error {} %", share * 100.0),
            "some I/Os are always under way, and a target that is far behind carries no load",
            "choose more than 0 % and at most 50 %, such as 3%",
        )),
    }
}

/// The usual and the longest time of a cell.
fn times(args: &Args, cells: &Cells) -> Result<(Span, Span), Error> {
    let window = args.cell_time.unwrap_or(cells.window);
    let longest = args.cell_time_max.unwrap_or(Span(window.0.saturating_mul(cells.longest)));
    let whole = |time: Span| time.0.is_multiple_of(limits::SHORTEST_INTERVAL.0);
    if window < SHORTEST_CELL || !whole(window) {
        return Err(Error::option(
            format!("--cell-time {window}"),
            "quantiles need at least a second, in whole intervals of 100 ms",
            "choose 5s or more",
        ));
    }
    if longest < window || !whole(longest) || LONGEST_CELL < longest {
        return Err(Error::option(
            format!("--cell-time-max {longest}"),
            format!(
                "it must be from {window} (--cell-time) to {LONGEST_CELL}, in whole \
                 intervals of 100 ms"
            ),
            format!("choose {window} for cells that all take as long"),
        ));
    }
    Ok((window, longest))
}

/// One for each percentile, in rising order.
fn surfaces(args: &Args) -> Result<Vec<Surface>, Error> {
    if args.tolerance == 0.0 {
        return Err(Error::option(
            "--tolerance 0",
            "no measurement is exact",
            "choose 5%, or 1% with a longer --cell-time-max",
        ));
    }
    let mut quantiles = args.percentiles.clone();
    quantiles.sort_by(|one, two| one.0.total_cmp(&two.0));
    if let Some(twice) = quantiles.windows(2).find(|pair| pair[0] == pair[1]) {
        return Err(Error::option(
            "--percentiles",
            format!("{} is in it twice", twice[0]),
            "name each once, such as 50,95,99",
        ));
    }
    Ok(quantiles.into_iter().map(|quantile| surface(quantile, args.tolerance)).collect())
}

fn surface(quantile: Quantile, tolerance: f64) -> Surface {
    let (_, times) = TOLERANCES
        .into_iter()
        .find(|(up_to, _)| quantile.0 <= *up_to)
        .expect("the last one is the largest quantile");
    Surface { quantile, tolerance: tolerance * times }
}

/// Its description, in words.
fn about(map: &Map, settings: &Settings) -> Vec<String> {
    let Shape { writes, reads, .. } = settings.search.shape;
    let cells = match settings.search.exhaustive {
        true => format!("all {} cells", writes * reads),
        false => {
            let all = writes * reads;
            format!("{} of {all} cells at most", settings.search.cells_at_most.min(all))
        }
    };
    let mut about =
        Vec::from([format!("latency map: {writes} x {reads} steps of write load and read load")]);
    if 0 < settings.prefill {
        about.push(format!(
            "before   everything is written {} in blocks of 128 KiB, {} in all",
            experiment::times(settings.prefill),
            map.prefilling()
        ));
    }
    about.push(format!(
        "cells    {cells}, each {} after {}, up to {} until it is exact enough",
        settings.window, settings.ramp, settings.window_max
    ));
    if let Some(Trims { stream, share }) = &settings.trims {
        about.push(format!(
            "trims    {} % of what is written, {} behind it, in {} from offset {}",
            share * 100.0,
            settings.ramp,
            stream.regions[0].length,
            stream.regions[0].offset
        ));
    }
    about
}

/// The experiment for the result file.
fn in_the_document(args: &Args, settings: &Settings) -> document::Experiment {
    use fathom_core::experiment::map::{READS, WRITES};
    let axis = |name: &str, steps: usize| Axis {
        name: name.to_owned(),
        scale: Scale::Linear,
        labels: (0..steps).map(|step| format!("step {step}")).collect(),
    };
    let Shape { writes, reads, .. } = settings.search.shape;
    let axes = [axis(WRITES, writes), axis(READS, reads)];
    let maximum = |one: Option<f64>| one.map_or("found".to_owned(), |value| value.to_string());
    let percentiles: Vec<String> =
        settings.search.surfaces.iter().map(|one| one.quantile.0.to_string()).collect();
    let pairs = [
        ("grid", format!("{writes}x{reads}")),
        ("percentiles", percentiles.join(",")),
        ("tolerance", args.tolerance.to_string()),
        ("cell-time", settings.window.to_string()),
        ("cell-time-max", settings.window_max.to_string()),
        ("ramp", settings.ramp.to_string()),
        ("allowed-error", settings.behind.to_string()),
        ("trim-share", args.trim_share.unwrap_or(0.0).to_string()),
        ("prefill", settings.prefill.to_string()),
        ("exhaustive", settings.search.exhaustive.to_string()),
        ("write-max", maximum(settings.write_max)),
        ("read-max", maximum(settings.read_max)),
    ];
    document::Experiment {
        name: "map".to_owned(),
        base: settings.base.clone(),
        axes: axes.to_vec(),
        settings: pairs.into_iter().map(|(k, v)| (k.to_owned(), v)).collect::<BTreeMap<_, _>>(),
    }
}
