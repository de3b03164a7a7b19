//! `fathom inspect`: the kind of a target, its device stack, and the conclusions for a test.

use fathom_core::Bytes;
use fathom_core::facts::{Target, TargetKind};
use fathom_core::spec::{Payload, Region};
use fathom_core::verdict;
use fathom_engine::host;
use fathom_report::page;

use super::place::{self, Place};
use super::probe::Probing;
use super::{outputs, this_machine};
use crate::cli::args::Inspect;
use crate::cli::values::Backend;
use crate::error::{Error, exit};
use crate::hanging;
use crate::output;
use crate::resolve;

/// Shows it.
///
/// # Errors
///
/// When the target cannot be examined, or must not be written to by the probe.
pub fn perform(args: &Inspect) -> Result<u8, Error> {
    if let Some(option) = args.consent.first().filter(|_| !args.probe) {
        let problem = "to look at a target writes nothing";
        return Err(Error::option(option, problem, "drop it, or add --probe"));
    }
    let is_simulated = place::simulated(&args.target).is_some();
    let mut facts = match is_simulated {
        true if args.probe => Place::find(std::slice::from_ref(&args.target))?.facts().remove(0),
        true => {
            return Err(Error::target(
                args.target.display().to_string(),
                "a simulated device has nothing below it",
                "see `fathom run sim:help` for what it does, or use --probe to see whether it \
                 saves on data",
            ));
        }
        false => looked_at(args)?,
    };
    let mut advice = match is_simulated {
        true => Vec::new(),
        false => host::advice(&host::host(), &facts),
    };
    if args.probe {
        let reduction = probed(args, &facts)?;
        let found = verdict::reduced(&facts, &reduction, &Payload::UNIQUE);
        advice.extend(found.map(|found| format!("{} {}", found.evidence, found.advice)));
        facts.reduction = Some(reduction);
    }
    outputs::show(&page::target(&facts, &advice), None)?;
    Ok(exit::MEASURED)
}

fn looked_at(args: &Inspect) -> Result<Target, Error> {
    let path = args.target.clone();
    let look = move || {
        let looked = if path.is_dir() { host::folder(&path) } else { host::target(&path) };
        let mut facts = looked?;
        facts.content = host::contents(&[(&facts, Vec::from([(0, facts.size.0)]))], 1).remove(0);
        Ok(facts)
    };
    hanging::waited_for(&args.target.display().to_string(), "it was looked at", look)
}

/// The result of the probe, within the region that was named.
fn probed(args: &Inspect, facts: &Target) -> Result<fathom_core::facts::Reduction, Error> {
    if facts.kind == TargetKind::Folder {
        return Err(Error::option(
            "--probe",
            format!("{} is a folder", facts.name),
            "name a file in it that may be overwritten, or let `fathom quick` probe it with a \
             scratch file",
        ));
    }
    let offset = args.offset.unwrap_or(Bytes(0));
    let room = Bytes(facts.size.0.saturating_sub(offset.0));
    let length = args.size.unwrap_or(room);
    if room < length {
        return Err(Error::option(
            format!("--size {length}"),
            format!("{} has {room} from offset {offset} on", facts.name),
            "choose less",
        ));
    }
    let region = Region { target: 0, offset, length };
    let place = Place::find(std::slice::from_ref(&args.target))?;
    let probing = Probing::new(region, place, Backend::Auto, this_machine::fresh_seed())?;
    output::say_folded(&probing.announcement())?;
    let is_simulated = facts.kind == TargetKind::Simulated;
    if let Some(option) = args.consent.first().filter(|_| is_simulated) {
        let problem = "it has no effect on a simulated device";
        return Err(Error::option(option, problem, "drop it"));
    }
    let targets = std::slice::from_ref(facts);
    let consent = resolve::consent::permission(&args.consent, |_| true, |_| None, targets)?;
    probing.perform(consent)
}
