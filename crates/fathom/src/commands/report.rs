//! `fathom report`: a result file again, as text, HTML or CSV.

use fathom_report::document::{Command, Document};
use fathom_report::terminal;

use super::shared;
use crate::cli::args::Report;
use crate::error::{Error, exit};
use crate::output;

/// Shows or writes it.
///
/// # Errors
///
/// When the result cannot be read, or a report not be written.
pub fn perform(args: &Report) -> Result<u8, Error> {
    let writes = args.html.is_some() || args.csv.is_some();
    if let (true, Some(width)) = (writes, args.width) {
        return Err(Error::option(
            format!("--width {width}"),
            "it has no effect on a file",
            "drop it, or --html and --csv",
        ));
    }
    shared::distinct([&None, &args.html, &args.csv])?;
    let document = shared::read(&args.result)?;
    shared::write_reports(&document, args.html.as_deref(), args.csv.as_deref())?;
    if !writes {
        let mut style = shared::style();
        if let Some(width) = args.width {
            style.width = usize::from(width);
        }
        output::say(render(&document, &style).trim_end_matches('\n'))?;
    }
    Ok(exit::MEASURED)
}

/// The terminal report that the command which wrote the document shows.
pub fn render(document: &Document, style: &terminal::Style) -> String {
    match document.header.command {
        Command::Quick => terminal::portrait(document, style),
        Command::Map => terminal::map(document, style),
        Command::Run | Command::Sweep | Command::Peak | Command::Sustain => {
            terminal::document(document, style)
        }
    }
}
