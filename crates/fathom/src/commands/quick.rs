//! `fathom quick`: a portrait of a storage in about a minute.

use std::fs;
use std::path::Path;

use fathom_core::Bytes;
use fathom_core::experiment::{Experiment, Forecast, PointSequence};
use fathom_core::facts::Host;
use fathom_engine::host;
use fathom_engine::target::OpenTarget;
use fathom_report::document::Command;

use super::fill::{self, Limit};
use super::measure::{self, Work};
use super::opened::{self, Opened};
use super::outputs::Outputs;
use super::place::{self, Place};
use super::probe;
use super::{leftovers, preview, this_machine};
use crate::cli::args::Quick;
use crate::commands::portrait::{self, Owner, Portrait, SMALLEST, WRITING_TIME};
use crate::error::Error;
use crate::hanging::{Role, patiently};
use crate::journal::Journal;
use crate::live::{Live, clock};
use crate::resolve::Machine;
use crate::scratch::{self, REGION_START, Scratch};
use crate::session::Outcome;
use crate::{output, signals};

/// Draws it.
///
/// # Errors
///
/// When the command line, the place or the result file does not allow it.
pub fn perform(args: &Quick) -> Result<u8, Error> {
    args.results.leave_stdout();
    let host = this_machine::this_host();
    let machine = this_machine::machine(&host);
    // A user who may not enter the current folder may not ask about "." either, but about its path.
    let is_folder = || fs::canonicalize(&args.path).is_ok_and(|path| path.is_dir());
    let folder =
        place::simulated(&args.path).is_none() && patiently(&args.path, Role::Target, is_folder);
    portrait::fits_the_place(args, folder)?;
    if folder { in_folder(args, &host, machine) } else { on_target(args, &host, machine) }
}

/// On an existing file or device, or a simulated device.
fn on_target(args: &Quick, host: &Host, machine: Machine<'_>) -> Result<u8, Error> {
    let place = Place::find(std::slice::from_ref(&args.path))?;
    let target = place.facts().remove(0);
    let portrait = portrait::portrait(args, target, Owner::User, machine)?;
    let name = portrait.spec.targets[0].name.clone();
    opened::tell_users([(&place, &portrait.spec)]);
    // Targets that must not be written to are refused before the announcement that they are
    // overwritten.
    let opened = opened::open(&place, &portrait.spec)?;
    let (mut outputs, mut journal) = Outputs::create("quick", &name, &args.results, true)?;
    let mut live = live(&portrait, args);
    let to = (&mut journal, &mut outputs);
    let outcome = announce(&portrait, args, &[])
        .and_then(|()| preview::warn_of_void(&portrait.spec, host))
        .and_then(|()| measure((&portrait, args), &opened, host, to, &mut live));
    measure::finish(outcome, &outputs, journal, |_| say_left_out(&portrait))
}

/// In a folder, on a scratch file that is removed afterwards.
fn in_folder(args: &Quick, host: &Host, machine: Machine<'_>) -> Result<u8, Error> {
    leftovers(&args.path, args.remove_leftovers)?;
    let folder = patiently(&args.path, Role::Target, || host::folder(&args.path))?;
    let shown = args.path.display().to_string();
    let available = folder.file_system.as_ref().map(|system| system.available);
    let size = portrait::scratch_size(args.size, machine.memory, available, &shown)?;
    // So that an impossible window is refused before anything is written.
    let mut planned = folder.clone();
    planned.size = Bytes(REGION_START.0 + size.0);
    let owner = Owner::Scratch { start: REGION_START };
    let plan = portrait::portrait(args, planned, owner, machine)?;

    // Results that cannot be written are refused long before there are any.
    let (_, journal) = Outputs::create("quick", &folder.path, &args.results, true)?;
    journal.discard();
    signals::be_orderly();
    let mut live = live(&plan, args);
    let ran = in_scratch(args, host, machine, (&plan, size), &folder.path, &mut live);
    live.finish();
    let Ran { outcome, outputs, journal } = ran?;
    measure::finish(outcome, &outputs, journal, |_| say_left_out(&plan))
}

/// A run with its result file.
struct Ran {
    outcome: Result<Outcome, Error>,
    outputs: Outputs,
    journal: Journal,
}

/// Fills a scratch file and measures on it. The result file is created in between: its header is
/// only known then, and a run that is killed earlier leaves no empty result file.
fn in_scratch(
    args: &Quick,
    host: &Host,
    machine: Machine<'_>,
    (plan, size): (&Portrait, Bytes),
    name: &str,
    live: &mut Live,
) -> Result<Ran, Error> {
    let limit = match args.size {
        Some(_) => Limit::None,
        None => Limit::Time { most: WRITING_TIME, least: SMALLEST },
    };
    let amount = match limit {
        Limit::None => format!("{size}"),
        Limit::Time { .. } => format!("up to {size}, as much as {WRITING_TIME} allow"),
    };
    // A folder in which no file can be created is refused before a portrait is announced.
    let scratch = Scratch::create(&args.path, this_machine::fresh_seed())?;
    announce(plan, args, &[format!("scratch file of {amount}, removed at the end")])?;
    let seed = plan.spec.points[0].seed;
    live.preparation("writing the scratch file");
    fill::scratch(&scratch, size, limit, seed, live)?;
    let place = Place::find(&[scratch.path().to_owned()])?;
    let owner = Owner::Scratch { start: REGION_START };
    let seeded = Quick { seed: Some(seed), ..args.clone() };
    let portrait = portrait::portrait(&seeded, place.facts().remove(0), owner, machine)?;
    let opened = opened::open(&place, &portrait.spec)?;
    still_ours(&scratch, &opened)?;
    let (mut outputs, mut journal) = Outputs::create("quick", name, &args.results, true)?;
    let to = (&mut journal, &mut outputs);
    let outcome = measure((&portrait, args), &opened, host, to, live);
    Ok(Ran { outcome, outputs, journal })
}

/// In a folder that others may write to, somebody may have put a link in the place of the scratch
/// file: its destination must not be written to.
fn still_ours(scratch: &Scratch, opened: &Opened) -> Result<(), Error> {
    let files: &[OpenTarget] = match opened {
        Opened::Real { streams, .. } => &streams[0],
        Opened::Simulated(_) => &[],
    };
    match files {
        [target] if scratch.is(&target.file).unwrap_or(false) => Ok(()),
        _ => Err(Error::target(
            scratch.path().display().to_string(),
            "somebody put something else in the place of the scratch file",
            "name a folder that nobody else writes to",
        )),
    }
}

/// The steps, in as many passes as were asked for.
fn steps(portrait: &Portrait, args: &Quick) -> PointSequence {
    PointSequence::new(portrait.spec.points.clone()).repeated(args.repeated.repeats)
}

fn live(portrait: &Portrait, args: &Quick) -> Live {
    let Forecast { points, time, .. } = steps(portrait, args).forecast();
    Live::new(points as usize, time)
}

fn measure(
    (portrait, args): (&Portrait, &Quick),
    opened: &Opened,
    host: &Host,
    (journal, outputs): (&mut Journal, &mut Outputs),
    live: &mut Live,
) -> Result<Outcome, Error> {
    let mut spec = portrait.spec.clone();
    if !opened.is_simulated() {
        output::say_folded(&preview::backend(opened))?;
    }
    if let Some(mut probe) = portrait.probe.clone() {
        let mut carrier = opened;
        let found = probe::perform(&mut probe, (host, &spec.targets), &mut carrier, live)?;
        spec.targets[0].reduction = Some(found);
    }
    let work = Work {
        command: Command::Quick,
        host,
        spec: &spec,
        opened,
        seed: spec.points[0].seed,
        experiment: &mut steps(portrait, args),
        trace: outputs.trace(),
        watches: false,
    };
    measure::measure(work, journal, live)
}

/// Says which steps were left out, and what would allow them.
fn say_left_out(portrait: &Portrait) -> Result<(), Error> {
    if portrait.left_out == 0 {
        return Ok(());
    }
    let name = &portrait.spec.targets[0].name;
    output::say("")?;
    output::say(&format!(
        "The {} steps that write were left out, because {name} was there before: --overwrite allows \
         them, and what it holds is lost.",
        portrait.left_out
    ))
}

/// The announcement before it starts.
fn announce(portrait: &Portrait, args: &Quick, more: &[String]) -> Result<(), Error> {
    let spec = &portrait.spec;
    let target = &spec.targets[0];
    let each = match args.repeated.repeats {
        1 => String::new(),
        n => format!(", {n} times each"),
    };
    output::say(&format!(
        "portrait of {}: {} steps{each}, {}; seed {}",
        target.path,
        spec.points.len(),
        clock(steps(portrait, args).forecast().time),
        spec.points[0].seed
    ))?;
    for line in more {
        output::say(line)?;
    }
    if let Some(probe) = &portrait.probe {
        output::say_folded(&probe::announcement(probe))?;
    }
    if spec.writes() && more.is_empty() && place::simulated(Path::new(&target.name)).is_none() {
        output::say(&format!(
            "OVERWRITES {}: anywhere in its {}, as much as can be written in that time",
            target.name, target.size
        ))?;
    }
    Ok(())
}

/// Names files that killed runs have left, and removes them if the user agrees.
fn leftovers(folder: &Path, remove: bool) -> Result<(), Error> {
    leftovers::offer_to_remove(&scratch::leftovers(folder), remove)
}
