//! `fathom compare`: two results or more, point by point, with an answer.

use std::path::{Path, PathBuf};

use fathom_core::facts::Answer;
use fathom_core::stats::Figure;
use fathom_core::{Quantile, typed_word};
use fathom_report::comparison::{self, Comparison, Question, Sides, Standing};
use fathom_report::document::Document;
use fathom_report::page::{self, Level};
use fathom_report::{html, markdown};

use super::read_result::{self, ReadResult};
use super::written::put;
use super::{browser, outputs};
use crate::cli::comparing::Compare;
use crate::error::{Error, exit};
use crate::output::{self, is_stdout};

/// What is compared unless something else is asked for.
const FIGURES: [Figure; 5] = [
    Figure::Iops,
    Figure::Mean,
    Figure::Quantile(Quantile(0.5)),
    Figure::Quantile(Quantile(0.99)),
    Figure::Quantile(Quantile(0.999)),
];

/// The axis of targets that had their load at the same time.
const TARGET: &str = "target";

/// The axis of a sweep over targets.
const TARGETS: &str = "targets";

/// Compares the results.
///
/// # Errors
///
/// When a result cannot be read or compared, or an output not be written.
pub fn perform(args: &Compare) -> Result<u8, Error> {
    let files: Vec<&Path> = [&args.html, &args.junit]
        .into_iter()
        .flatten()
        .chain(args.markdown.iter().flatten())
        .map(PathBuf::as_path)
        .collect();
    if args.open {
        browser::check(args.html.as_deref().filter(|path| !is_stdout(path)))?;
    }
    outputs::distinct(files.iter().copied())?;
    files.iter().try_for_each(|path| outputs::free(path))?;
    if args.json || files.iter().any(|path| is_stdout(path)) {
        output::leave_stdout_to_the_document();
    }
    let documents = read(args)?;
    let compared = comparison::compare(sides(args, &documents)?, &question(args));
    show(args, &compared)?;
    Ok(code(&compared.comparison))
}

/// The exit code: a failed condition, then what cannot be compared, then what is undecided.
fn code(of: &Comparison) -> u8 {
    let any = |wanted: Answer| of.requirements.iter().any(|one| one.holds == wanted);
    let is_missing = of.against.iter().flat_map(|one| &one.refused).any(|one| one.is_expected);
    let asked = !of.requirements.is_empty();
    if any(Answer::Yes) {
        exit::FAILED
    } else if of.against.iter().any(|one| one.points.is_empty())
        || of.outcome == Standing::NotComparable
        || (asked && is_missing)
    {
        exit::NOT_COMPARABLE
    } else if any(Answer::Unknown) {
        exit::UNDECIDED
    } else {
        exit::MEASURED
    }
}

fn question(args: &Compare) -> Question {
    let mut figures = args.metric.clone();
    for one in &args.fail_if {
        if !figures.contains(&one.figure) {
            figures.push(one.figure);
        }
    }
    if figures.is_empty() {
        figures = FIGURES.to_vec();
    }
    Question { figures, margin: args.margin, requirements: args.fail_if.clone() }
}

/// Reads the results, and refuses what is the same twice or was measured in another way.
fn read(args: &Compare) -> Result<Vec<Document>, Error> {
    let mut all: Vec<Document> = Vec::new();
    for (nth, path) in args.results.iter().enumerate() {
        let document = match read_result::read_any(path)? {
            ReadResult::Document(document) => *document,
            ReadResult::Watch(_) => {
                let problem = "it is of a watch, which has no trials";
                return Err(Error::file(path, problem, "name results that fathom measured"));
            }
        };
        for (other, before) in args.results[..nth].iter().zip(&all) {
            if before.header == document.header {
                return Err(Error::option(
                    path.display().to_string(),
                    format!("it is the same result as {}", other.display()),
                    "name two results, or one with --by AXIS",
                ));
            }
            let versions = [before, &document].map(|one| one.header.measurement_version);
            if versions[0] != versions[1] {
                return Err(Error::NotComparable(format!(
                    "{} and {} were measured in different ways (measurement versions {} and {}), so \
                     that their figures cannot be compared: measure both with the same fathom",
                    other.display(),
                    path.display(),
                    versions[0],
                    versions[1]
                )));
            }
        }
        all.push(document);
    }
    Ok(all)
}

/// The sides: the files, or the values of an axis of the only one.
fn sides<'a>(args: &Compare, documents: &'a [Document]) -> Result<Sides<'a>, Error> {
    let Some(axis) = &args.by else {
        if let [only] = documents {
            return Err(alone(&args.results[0], only));
        }
        let names = names(&args.results);
        let files: Vec<(String, String, &Document)> = args
            .results
            .iter()
            .zip(names)
            .zip(documents)
            .map(|((path, name), document)| (name, path.display().to_string(), document))
            .collect();
        return Ok(comparison::of_files(&files, args.way.into()));
    };
    let [document] = documents else {
        return Err(Error::option(
            format!("--by {}", typed_word(axis)),
            format!("it compares within one result, and {} are named", documents.len()),
            "name one result, or drop --by",
        ));
    };
    let found = match axis.as_str() {
        TARGET => comparison::by_target(document)
            .or_else(|| comparison::by_axis(document, TARGET))
            .or_else(|| comparison::by_axis(document, TARGETS)),
        axis => comparison::by_axis(document, axis),
    };
    found.ok_or_else(|| {
        let problem = format!("{} does not have several values of it", args.results[0].display());
        let remedy = match axes(document).as_slice() {
            [] => "it has one side only: name a second result".to_owned(),
            names => format!("it has: {}", names.join(", ")),
        };
        Error::option(format!("--by {}", typed_word(axis)), problem, remedy)
    })
}

/// What a result can be compared by.
fn axes(document: &Document) -> Vec<String> {
    let mut names: Vec<String> =
        comparison::axes(document).into_iter().map(|(name, _)| name).collect();
    if 1 < document.header.targets.len() {
        names.push(TARGET.to_owned());
    }
    names
}

/// One result and no axis.
fn alone(path: &Path, document: &Document) -> Error {
    Error::option(
        path.display().to_string(),
        "one result has nothing to be compared with",
        match axes(document).as_slice() {
            [] => "name a second result".to_owned(),
            names => format!("name a second result, or add --by AXIS ({})", names.join(", ")),
        },
    )
}

/// The names of the sides: the files without their folders and their ends, as long as these tell them
/// apart.
fn names(paths: &[PathBuf]) -> Vec<String> {
    let short = |path: &PathBuf| {
        let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
        let stem = name.strip_suffix(crate::journal::SUFFIX);
        stem.or_else(|| name.strip_suffix(".jsonl")).map(ToOwned::to_owned).unwrap_or(name)
    };
    let names: Vec<String> = paths.iter().map(short).collect();
    let mut distinct = names.clone();
    distinct.sort();
    distinct.dedup();
    match distinct.len() == names.len() {
        true => names,
        false => paths.iter().map(|path| path.display().to_string()).collect(),
    }
}

/// Shows it, and writes what was asked for.
fn show(args: &Compare, compared: &comparison::Compared<'_>) -> Result<(), Error> {
    if let Some(path) = &args.html {
        put(path, "report", html::page(&page::comparison(compared, Level::Complete)))?;
        if args.open {
            browser::open(path);
        }
    }
    if let Some(path) = &args.junit {
        put(path, "junit", comparison::junit(&compared.comparison))?;
    }
    let level = if args.details { Level::Full } else { Level::Short };
    if args.json {
        let json = compared.comparison.to_json();
        return output::print(format!("{json}\n").as_bytes());
    }
    let page = page::comparison(compared, level);
    match &args.markdown {
        Some(Some(path)) => put(path, "report", markdown::page(&page))?,
        Some(None) => return output::say_text(markdown::page(&page).trim_end_matches('\n')),
        None => {}
    }
    outputs::show(&page, args.width)
}
