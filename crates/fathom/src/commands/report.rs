//! `fathom report`: shows a result file again, as text, HTML, CSV or images.

use std::path::{Path, PathBuf};

use fathom_report::document::{Document, Threshold, Verdict};
use fathom_report::page::Page;
use fathom_report::summary::summary;
use fathom_report::{csv, markdown};

use super::images::{self, Format};
use super::read_result::ReadResult;
use super::written::put;
use super::{outputs, read_result, report_watch};
use crate::cli::args::{Args, Report};
use crate::cli::options::Reports;
use crate::error::{Error, exit};
use crate::output::{self, is_stdout};

/// Shows or writes it.
///
/// # Errors
///
/// When the result cannot be read, or a report not be written.
pub fn perform(args: &Report) -> Result<u8, Error> {
    let markdown = args.markdown.as_ref();
    let written = Reports {
        html: args.html.clone(),
        markdown: markdown.cloned().flatten(),
        csv: args.csv.clone(),
        csv_series: args.csv_series.clone(),
        // Only here a chart can be chosen.
        svg: None,
        png: None,
        open: args.open,
    };
    written.check_open()?;
    let others = [&args.cells, &args.svg, &args.png].into_iter().flatten().map(PathBuf::as_path);
    let files: Vec<&Path> = written.paths().chain(others).collect();
    let writes = !files.is_empty();
    check(args, writes)?;
    if files.iter().any(|path| is_stdout(path)) {
        output::leave_stdout_to_the_document();
    }
    outputs::distinct(files)?;
    let mut document = match read_result::read_any(&args.result)? {
        ReadResult::Document(document) => *document,
        ReadResult::Watch(watch) => return report_watch::perform(args, *watch),
    };
    document.conditions = conditions(args, &document)?;
    if args.summary {
        let json = serde_json::to_string_pretty(&summary(&document));
        let json = json.expect("these types have string keys and no failing parts");
        output::say_text(&json)?;
        return judged(args, &document);
    }
    let mut images = Vec::new();
    for (format, path) in [(Format::Svg, &args.svg), (Format::Png, &args.png)] {
        if let Some(path) = path {
            images.extend(images::images(&document, format, path, args.chart.as_deref())?);
        }
    }
    let cells = cells(args, &document)?;
    let level = outputs::level(&document, args.details);
    written.write(&document, level)?;
    if let Some((path, table)) = cells {
        put(path, "cells", table)?;
    }
    for (path, image) in images {
        put(&path, "image", image)?;
    }
    if markdown.is_some_and(Option::is_none) {
        output::say_text(markdown::document(&document, level).trim_end_matches('\n'))?;
    } else if !writes {
        outputs::show(&Page::of(&document, level), args.width)?;
    }
    judged(args, &document)
}

/// The conditions under which the result fails: those that were typed now, or those with which it was
/// measured.
fn conditions(args: &Report, document: &Document) -> Result<Vec<Threshold>, Error> {
    outputs::have_sides(document, &args.fail_if)?;
    Ok(match args.fail_if.is_empty() {
        false => args.fail_if.clone(),
        true => Args::recorded_conditions(&document.header.command_line),
    })
}

/// The exit code: with thresholds that of the command which measured.
fn judged(args: &Report, document: &Document) -> Result<u8, Error> {
    if args.fail_if.is_empty() {
        return Ok(exit::MEASURED);
    }
    outputs::holds(document)?;
    Ok(if document.verdict() == Some(Verdict::Void) { exit::VOID } else { exit::MEASURED })
}

/// Refuses options without an effect.
fn check(args: &Report, writes: bool) -> Result<(), Error> {
    let useless = |option: String, remedy: &str| {
        Err(Error::option(option, "it has no effect on a file", remedy))
    };
    if let (true, Some(width)) = (writes || args.markdown.is_some(), args.width) {
        let remedy = "drop it, or --html, --markdown, --csv, --cells, --svg and --png";
        return useless(format!("--width {width}"), remedy);
    }
    if writes && args.details && args.markdown.is_none() {
        return useless("--details".to_owned(), "drop it: files have all details anyway");
    }
    match &args.chart {
        Some(name) if args.svg.is_none() && args.png.is_none() => Err(Error::option(
            format!("--chart {name}"),
            "there is no image to draw it in",
            "add --svg FILE or --png FILE",
        )),
        _ => Ok(()),
    }
}

/// The table of a map's cells, with its path.
fn cells<'a>(args: &'a Report, document: &Document) -> Result<Option<(&'a Path, String)>, Error> {
    let Some(path) = args.cells.as_deref() else { return Ok(None) };
    match csv::cells(document) {
        Some(table) => Ok(Some((path, table))),
        None => Err(Error::option(
            format!("--cells {}", path.display()),
            "the result holds no finished latency map",
            "name a result of `fathom map`, or take --csv for its trials",
        )),
    }
}
