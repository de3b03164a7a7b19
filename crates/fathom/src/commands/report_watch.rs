//! `fathom report` of a watch: shows it again, as text, HTML, Markdown or JSON.

use fathom_core::typed_word;
use fathom_report::page::{Level, watched};
use fathom_report::summary::summary_of_watch;
use fathom_report::watched::WatchedResult;
use fathom_report::{html, markdown};

use super::written::put;
use super::{browser, outputs};
use crate::cli::args::{Args, Report};
use crate::cli::thresholds::on_watch;
use crate::error::{Error, exit};
use crate::output;

/// Shows or writes it.
///
/// # Errors
///
/// When an option needs trials, or a report cannot be written.
pub fn perform(args: &Report, result: WatchedResult) -> Result<u8, Error> {
    check(args)?;
    let result = &with_conditions(args, result)?;
    if args.summary {
        let json = serde_json::to_string_pretty(&summary_of_watch(result));
        let json = json.expect("these types have string keys and no failing parts");
        output::say_text(&json)?;
        return judged(args, result);
    }
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
    judged(args, result)
}

/// With the conditions that were typed now, or those with which it was watched.
fn with_conditions(args: &Report, result: WatchedResult) -> Result<WatchedResult, Error> {
    for one in &args.fail_if {
        on_watch(one).map_err(|why| {
            let option = format!("--fail-if {}", typed_word(&one.typed));
            Error::option(option, why, "give a figure and a bound: 'p99>2ms'")
        })?;
    }
    let conditions = match args.fail_if.is_empty() {
        false => args.fail_if.clone(),
        true => Args::recorded_conditions(&result.header.command_line),
    };
    Ok(WatchedResult { conditions, ..result })
}

/// The exit code: with conditions that were typed now, whether they hold.
fn judged(args: &Report, result: &WatchedResult) -> Result<u8, Error> {
    if !args.fail_if.is_empty() {
        outputs::watch_holds(result)?;
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
