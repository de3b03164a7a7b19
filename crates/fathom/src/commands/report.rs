//! `fathom report`: shows a result file again, as text, HTML, CSV or images.

use std::path::{Path, PathBuf};

use fathom_report::chart::{self, Chart};
use fathom_report::document::{Document, Verdict};
use fathom_report::summary::summary;
use fathom_report::{csv, figures, image, markdown, terminal};

use super::written::{is_stdout, put};
use super::{outputs, read_result};
use crate::cli::args::Report;
use crate::cli::options::Reports;
use crate::error::{Error, exit};
use crate::output;

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
    };
    let others = [&args.cells, &args.svg, &args.png].into_iter().flatten().map(PathBuf::as_path);
    let files: Vec<&Path> = written.paths().chain(others).collect();
    let writes = !files.is_empty();
    check(args, writes)?;
    if files.iter().any(|path| is_stdout(path)) {
        output::leave_stdout_to_the_document();
    }
    outputs::distinct(files)?;
    let document = read_result::read(&args.result)?;
    if args.summary {
        let json = serde_json::to_string_pretty(&summary(&document));
        let json = json.expect("these types have string keys and no failing parts");
        output::say_text(&json)?;
        return judged(args, &document);
    }
    let images = images(args, &document)?;
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
        let mut style = outputs::style();
        if let Some(width) = args.width {
            style.width = usize::from(width);
        }
        let text = terminal::document(&document, level, &style);
        output::say_text(text.trim_end_matches('\n'))?;
        output::say("")?;
        outputs::say_answer(&document, &style)?;
    }
    judged(args, &document)
}

/// The exit code: with thresholds that of the command which measured.
fn judged(args: &Report, document: &Document) -> Result<u8, Error> {
    if args.fail_if.is_empty() {
        return Ok(exit::MEASURED);
    }
    outputs::holds(document, &args.fail_if, &[])?;
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

/// The requested images, with their paths.
fn images(args: &Report, document: &Document) -> Result<Vec<(PathBuf, Vec<u8>)>, Error> {
    let asked = [("--svg", &args.svg), ("--png", &args.png)];
    let mut images = Vec::new();
    for (option, path) in asked {
        let Some(path) = path else { continue };
        let charts = wanted(args, document, option, path)?;
        let alone = charts.len() == 1;
        for chart in charts {
            let subtitle = subtitle(document);
            let bytes = match option {
                "--svg" => image::svg(&chart, &subtitle).into_bytes(),
                _ => image::png(&chart, &subtitle).map_err(|why| {
                    Error::option(
                        format!("{option} {}", path.display()),
                        why,
                        "choose another chart with --chart, or --svg",
                    )
                })?,
            };
            let path = if alone { path.clone() } else { named(path, &chart.name) };
            images.push((path, bytes));
        }
    }
    Ok(images)
}

/// The requested charts.
fn wanted(
    args: &Report,
    document: &Document,
    option: &str,
    path: &Path,
) -> Result<Vec<Chart>, Error> {
    let mut charts = chart::charts(document);
    if charts.is_empty() {
        return Err(Error::option(
            format!("{option} {}", path.display()),
            "the result has no charts of an experiment",
            "name a result of sweep, peak, map or sustain; --html draws those of every run",
        ));
    }
    if let Some(name) = &args.chart {
        let names: Vec<String> = charts.iter().map(|chart| chart.name.clone()).collect();
        charts.retain(|chart| chart.name == *name);
        if charts.is_empty() {
            return Err(Error::option(
                format!("--chart {name}"),
                "the result has no such chart",
                format!("choose one of {}", names.join(", ")),
            ));
        }
    }
    Ok(charts)
}

/// The name of one of several images: `sweep.svg` becomes `sweep-iops.svg`.
fn named(path: &Path, chart: &str) -> PathBuf {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let name = match path.extension() {
        Some(extension) => format!("{stem}-{chart}.{}", extension.to_string_lossy()),
        None => format!("{stem}-{chart}"),
    };
    path.with_file_name(name)
}

/// The note in an image about the source of its figures.
fn subtitle(document: &Document) -> String {
    let header = &document.header;
    let targets = figures::place_names(document);
    let name = header.experiment.as_ref().map_or("run", |experiment| experiment.name.as_str());
    let day = header.created.split('T').next().unwrap_or_default();
    let on = match targets.as_slice() {
        [first, _, _, ..] => format!("{first} and {} more", targets.len() - 1),
        few => few.join(", "),
    };
    match (&header.host, &header.imported) {
        (Some(host), _) => {
            format!("{name} of {on} on {}, {day}, fathom {}", host.name, header.fathom_version)
        }
        (None, Some(source)) => {
            let when = source.measured.as_deref().unwrap_or("at an unknown time");
            format!("{on}, measured by {}, {when}", source.program)
        }
        (None, None) => format!("{name} of {on}, {day}, fathom {}", header.fathom_version),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_of_several_images_has_a_name_of_its_own() {
        let name = |path: &str| named(Path::new(path), "p99").display().to_string();
        assert_eq!(name("out/sweep.svg"), "out/sweep-p99.svg");
        assert_eq!(name("sweep"), "sweep-p99");
        assert_eq!(name("a.b.png"), "a.b-p99.png");
    }
}
