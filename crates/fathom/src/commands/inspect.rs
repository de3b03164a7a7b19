//! `fathom inspect`: what a target is, down its device stack, and what follows for a test.

use fathom_engine::host;
use fathom_report::{document, terminal};

use super::shared;
use crate::cli::args::Inspect;
use crate::error::{Error, exit};
use crate::output;

/// Shows it.
///
/// # Errors
///
/// When the target cannot be looked at.
pub fn perform(args: &Inspect) -> Result<u8, Error> {
    if shared::simulated(&args.target).is_some() {
        return Err(Error::target(
            args.target.display().to_string(),
            "a simulated device has nothing below it",
            "see `fathom run sim:help` for what it does",
        ));
    }
    let looked =
        if args.target.is_dir() { host::folder(&args.target) } else { host::target(&args.target) };
    let facts = looked.map_err(|refusal| Error::Refused(refusal.to_string()))?;
    let advice = host::advice(&host::host(), &facts);
    let shown = terminal::target(&document::Target::from(&facts), &advice, &shared::style());
    output::say(shown.trim_end_matches('\n'))?;
    Ok(exit::MEASURED)
}
