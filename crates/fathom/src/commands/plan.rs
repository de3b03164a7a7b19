//! `fathom plan`: what `run` would do with the same words. Opens nothing for writing and starts
//! nothing; ends with an error if `run` would.

use fathom_core::facts::Host;
use fathom_core::measure::Direction;
use fathom_core::spec::BackendKind;
use fathom_engine::sim;
use fathom_report::figures;

use super::place;
use super::preview;
use super::{opened, settled};
use crate::cli::args::Plan;
use crate::cli::values::Backend;
use crate::error::{Error, exit};
use crate::output;
use crate::resolve::{self, Spec};
use crate::workload::Asked;

/// More targets than this are counted, not listed.
const TARGETS_SHOWN: usize = 8;

/// Shows it.
///
/// # Errors
///
/// When the run would be refused.
pub fn perform(args: &Plan) -> Result<u8, Error> {
    let request = &args.request;
    if request.targets.iter().any(|path| place::asks_for_help(path)) {
        output::say_text(sim::help().trim_end())?;
        return Ok(exit::MEASURED);
    }
    let mut asked = Asked::read(request)?;
    let (place, host, spec) = settled::settle(&mut asked)?;
    show(&asked, &spec, &host, args.repeated.repeats)?;
    // Shown before the refusal, so that the user sees what needs consent.
    let spec =
        resolve::consent::permit(spec, &asked.described).map_err(|e| asked.explain_whole(e))?;
    opened::judge(&place, &spec)?;
    opened::tell_users([(&place, &spec)]);
    output::say("nothing was opened for writing, and nothing started: `fathom run` would begin")?;
    Ok(exit::MEASURED)
}

fn show(asked: &Asked, spec: &Spec, host: &Host, repeats: u32) -> Result<(), Error> {
    let say = |text: String| output::say_folded(&text);
    let point = &spec.points[0];
    let from = asked.source().map(|source| format!(" (from {source})")).unwrap_or_default();
    say(format!("{}{from}", point.name))?;
    for target in spec.targets.iter().take(TARGETS_SHOWN) {
        let stack = figures::stack(target);
        say(format!("target   {}: {stack}", target.name))?;
    }
    if TARGETS_SHOWN < spec.targets.len() {
        say(format!("         and {} more", spec.targets.len() - TARGETS_SHOWN))?;
    }
    for stream in &point.streams {
        say(format!("stream   {}", stream.name))?;
        let pacing = figures::pacing(stream, point.window);
        say(format!("         {}; {pacing}", figures::load(stream)))?;
        say(format!("         {}; {}", preview::workers(stream), stream.access))?;
        if let Some(workplace) = figures::workplace(stream) {
            say(format!("         {workplace}"))?;
        }
        for region in stream.regions.iter().take(TARGETS_SHOWN) {
            let target = &spec.targets[region.target as usize];
            say(format!("         {}: {}", target.name, preview::region(target, region)))?;
        }
        if TARGETS_SHOWN < stream.regions.len() {
            say(format!("         and {} more", stream.regions.len() - TARGETS_SHOWN))?;
        }
        let writes = match stream.does(Direction::Write) {
            true => preview::amount(point, stream, repeats),
            false => "nothing".to_owned(),
        };
        let trims = if stream.trims() { ", and trims" } else { "" };
        say(format!("         writes {writes}{trims}"))?;
    }
    if let Some(offered) = preview::offered_together(point) {
        say(format!("offers   {offered}"))?;
    }
    say(format!("takes    {}", preview::duration(point, repeats)))?;
    let backend = match spec.backend {
        Backend::Auto => "the best one that works here",
        Backend::Named(kind) => kind.name(),
    };
    say(format!("backend  {backend}"))?;
    if spec.backend != Backend::Named(BackendKind::Sim) {
        preview::overwritten(spec, repeats).into_iter().try_for_each(say)?;
    }
    foreseen(spec, host)
}

/// The doubts that there will be in any case.
fn foreseen(spec: &Spec, host: &Host) -> Result<(), Error> {
    let found = preview::foreseen(spec, host);
    match found.is_empty() {
        true => output::say("doubts   none that can be foreseen"),
        false => preview::say_foreseen(&found),
    }
}
