//! `fathom completions`: what a shell completes, from the command line's definition.

use crate::cli::args::{Args, Completions};
use crate::error::{Error, exit};
use crate::output;

/// Prints it.
///
/// # Errors
///
/// When stdout does not take it.
pub fn perform(args: &Completions) -> Result<u8, Error> {
    let mut text = Vec::new();
    clap_complete::generate(args.shell, &mut Args::documented(), "fathom", &mut text);
    output::print(&text)?;
    Ok(exit::MEASURED)
}
