//! `fathom export`: a result in another program's format.

use fathom_report::export;

use super::read_result;
use super::written::put;
use crate::cli::args::{Export, ExportFormat};
use crate::error::{Error, exit};
use crate::output;

/// Writes it to a file, or to stdout.
///
/// # Errors
///
/// When the result cannot be read, does not fit the format, or the file cannot be written.
pub fn perform(args: &Export) -> Result<u8, Error> {
    let document = read_result::read(&args.result)?;
    let text = match args.format {
        ExportFormat::Diskplorer => export::diskplorer::diskplorer(&document),
    };
    let text = text.ok_or_else(|| {
        Error::option(
            "--format diskplorer",
            "the result holds no latency map, and Diskplorer draws nothing else",
            "name a result of `fathom map`",
        )
    })?;
    match &args.out {
        Some(path) => put(path, "export", text)?,
        None => output::print(text.as_bytes())?,
    }
    Ok(exit::MEASURED)
}
