//! `fathom report` of a watch: shows it again, as text, HTML or Markdown.

use fathom_report::page::{Level, watched};
use fathom_report::watched::WatchedResult;
use fathom_report::{html, markdown};

use super::written::put;
use super::{browser, outputs};
use crate::cli::args::Report;
use crate::error::{Error, exit};
use crate::output;

/// Shows or writes it.
///
/// # Errors
///
/// When an option needs trials, or a report cannot be written.
pub fn perform(args: &Report, result: &WatchedResult) -> Result<u8, Error> {
    check(args)?;
    if let Some(path) = &args.html {
        put(path, "report", html::page(&watched(result, Level::Complete)))?;
        if args.open {
            browser::open(path);
        }
    }
    match &args.markdown {
        Some(Some(path)) => put(path, "report", markdown::page(&watched(result, Level::Full)))?,
        Some(None) => {
            let text = markdown::page(&watched(result, Level::Full));
            output::say_text(text.trim_end_matches('\n'))?;
        }
        None if args.html.is_none() => outputs::show(&watched(result, Level::Short), args.width)?,
        None => {}
    }
    Ok(exit::MEASURED)
}

/// Refuses options that need trials.
fn check(args: &Report) -> Result<(), Error> {
    let given = [
        ("--csv", args.csv.is_some()),
        ("--csv-series", args.csv_series.is_some()),
        ("--cells", args.cells.is_some()),
        ("--svg", args.svg.is_some()),
        ("--png", args.png.is_some()),
        ("--summary", args.summary),
        ("--fail-if", !args.fail_if.is_empty()),
    ];
    match given.into_iter().find(|(_, given)| *given) {
        None => Ok(()),
        Some((option, _)) => Err(Error::option(
            option,
            format!("{} is of a watch, which has no trials", args.result.display()),
            "drop it; --html and --markdown show all figures, and `fathom watch --csv` writes them",
        )),
    }
}
