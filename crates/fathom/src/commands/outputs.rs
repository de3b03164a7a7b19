//! The destinations of results: their names, fixed before anything is measured, and their content
//! at the end.

use std::convert::Infallible;
use std::io;
use std::path::{Path, PathBuf};

use fathom_core::facts::Answer;
use fathom_core::{typed_path, typed_word};
use fathom_report::document::{Command, Document, Line, Threshold};
use fathom_report::page::{Level, Page, Sentence};
use fathom_report::promises::promises;
use fathom_report::summary::summary;
use fathom_report::terminal;
use fathom_report::thresholds::{
    is_judged, lacks_a_host, of_two_sides, outcomes, outcomes_of_watch,
};
use fathom_report::watched::WatchedResult;

use super::read_result;
use crate::cli::options::{Reports, Results};
use crate::error::Error;
use crate::hanging::{Role, patiently};
use crate::journal::{self, Journal};
use crate::output::{self, is_stdout};
use crate::session;
use crate::trace::TraceFile;

/// The properties of the terminal report here.
pub fn style() -> terminal::Style {
    terminal::Style { width: output::width(), color: output::color() }
}

/// Those of the answer, which is one line for a program that reads it.
fn style_of_answer() -> terminal::Style {
    terminal::Style { width: output::columns().unwrap_or(usize::MAX), ..style() }
}

/// Shows a page in the terminal, in this width if somebody asked for one, and its answer last.
///
/// # Errors
///
/// When stdout does not take it.
pub fn show(page: &Page, width: Option<u16>) -> Result<(), Error> {
    let mut style = style();
    style.width = width.map_or(style.width, usize::from);
    output::say_text(terminal::page(page, &style).trim_end_matches('\n'))?;
    let Some(answer) = &page.answer else { return Ok(()) };
    if width.is_none() {
        return say_last(answer);
    }
    output::say("")?;
    output::say_text(&terminal::line(answer, &style))
}

/// Says an answer, which is the last that is said.
///
/// # Errors
///
/// When stdout does not take it.
pub fn say_last(answer: &Sentence) -> Result<(), Error> {
    output::say("")?;
    output::say_text(&terminal::line(answer, &style_of_answer()))
}

/// The destinations of the results, fixed before anything is measured.
#[derive(Debug)]
pub struct Outputs {
    written: Reports,
    trace: Option<TraceFile>,
    fail_if: Vec<Threshold>,
    details: bool,
}

/// How much a report says.
pub fn level(document: &Document, details: bool) -> Level {
    if details { Level::Full } else { Level::usual(document) }
}

impl Outputs {
    /// Determines the names and creates the result file.
    ///
    /// # Errors
    ///
    /// When a file exists or cannot be created.
    pub fn create(
        command: &str,
        target: &str,
        typed: &Results,
        html_beside: bool,
    ) -> Result<(Self, Journal), Error> {
        if command != "ab"
            && let Some(one) = of_two_sides(&typed.fail_if).first()
        {
            return Err(without_sides(&one.typed));
        }
        let beside = typed.out.as_deref().filter(|_| html_beside).map(html_name);
        if typed.json && typed.written.paths().any(is_stdout) {
            return Err(Error::option(
                "--json",
                "it and a report would both go to stdout",
                "give the report a file of its own",
            ));
        }
        let html = typed.written.html.clone().or(beside);
        let written = Reports { html, ..typed.written.clone() };
        let others = typed.out.iter().chain(&typed.trace).map(PathBuf::as_path);
        distinct(written.paths().chain(others))?;
        written.paths().try_for_each(free)?;
        let (out, journal) = match &typed.out {
            Some(path) => (path.clone(), Journal::create(path, typed.json)?),
            None => create_named(command, target, typed)?,
        };
        let html = written.html.or_else(|| html_beside.then(|| html_name(&out)));
        let written = Reports { html, ..written };
        let html = written.html.as_deref();
        let trace = html
            .map_or(Ok(()), free)
            .and_then(|()| written.check_open())
            .and_then(|()| typed.trace.as_deref().map(TraceFile::create).transpose());
        match trace {
            Ok(trace) => {
                let (fail_if, details) = (typed.fail_if.clone(), typed.details);
                Ok((Self { written, trace, fail_if, details }, journal))
            }
            Err(taken) => {
                journal.discard();
                Err(taken)
            }
        }
    }

    /// The trace, if one was requested.
    pub fn trace(&mut self) -> Option<&mut TraceFile> {
        self.trace.as_mut()
    }

    /// The destinations of the results of a run that was interrupted. Its result file exists; for a
    /// report that also exists, a message says how to write it anew.
    pub fn resumed(typed: &Results) -> Self {
        let free = |path: &Path| {
            if free(path).is_ok() {
                return Ok::<_, Infallible>(Some(path.to_owned()));
            }
            output::note(&format!(
                "{} cannot be written anew: `fathom report` writes it to another place",
                path.display()
            ));
            Ok(None)
        };
        let written = typed.written.each_as(free).unwrap_or_default();
        Self { written, trace: None, fail_if: Vec::new(), details: typed.details }
    }

    /// The same, which fails under these conditions.
    #[must_use]
    pub fn failing_if(self, fail_if: Vec<Threshold>) -> Self {
        Self { fail_if, ..self }
    }

    /// The options that request the reports, as they are typed, each with a space before it.
    pub fn in_words(&self) -> String {
        self.written.in_words()
    }

    /// Shows and writes the result. Each output gets it, even if another one fails. The answer comes
    /// last of all, behind what else there is to say.
    ///
    /// # Errors
    ///
    /// When the result is not at its destination, or a report cannot be written.
    pub fn finish(
        &self,
        journal: &mut Journal,
        also: impl FnOnce(&Journal) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let conditions = self.fail_if.clone();
        let document = Document { conditions, ..read_result::document(journal)? };
        let level = level(&document, self.details);
        let text = terminal::document(&document, level, &style());
        let shown = output::say_text(text.trim_end_matches('\n'));
        let written = self.write(journal, &document);
        let said = also(journal);
        let answered = output::say("").and_then(|()| say_answer(&document));
        written.and(shown).and(said).and(answered)
    }

    /// Reports the path of the result file, and writes the requested reports beside it.
    ///
    /// # Errors
    ///
    /// As [`Self::finish`].
    pub fn write(&self, journal: &mut Journal, document: &Document) -> Result<(), Error> {
        let summary = Line::Summary(Box::new(summary(document))).to_json();
        journal.append_result(&|out| out.write_all(summary.as_bytes()));
        let result = format!("result  {}", journal.path().display());
        let said = match journal.is_saved() {
            true => output::say("").and_then(|()| output::say(&result)),
            false => Ok(()),
        };
        let said = said.and(self.say_page(journal));
        let reports = self.written.write(document, level(document, self.details));
        let trace = self.trace.as_ref().map_or(Ok(()), |trace| output::say(&trace.close()?));
        let kept = holds(document);
        journal.outcome().and(said).and(reports).and(trace).and(kept)
    }

    /// Says which command makes the page of this result, if none was asked for.
    fn say_page(&self, journal: &Journal) -> Result<(), Error> {
        if self.written.html.is_some() || !journal.is_saved() {
            return Ok(());
        }
        let typed = |path: &Path| typed_path(&path.display().to_string());
        let (result, page) = (typed(journal.path()), typed(&html_name(journal.path())));
        output::say(&format!("page    fathom report {result} --html {page}"))
    }
}

/// Whether a result that is not void stays within all conditions, and keeps what was promised.
///
/// # Errors
///
/// When it has crossed one, or has not kept a promise, or that is undecided. A result that is void, or
/// that was not finished, has an exit code of its own.
pub fn holds(document: &Document) -> Result<(), Error> {
    if !is_judged(document) {
        return Ok(());
    }
    let (conditions, promises) = (outcomes(document), promises(document));
    let of = |wanted: Answer| {
        let those = conditions.iter().filter(move |one| one.holds == wanted);
        those.map(|one| one.text.clone())
    };
    let lost = (lacks_a_host(document) && !promises.is_empty())
        .then(|| "a host was lost: whether the promises are kept is unknown".to_owned());
    let broken = promises.iter().filter(|one| one.kept == Answer::No).map(|one| one.text.clone());
    let broken = broken.chain(lost);
    decided(of(Answer::Yes).chain(broken).collect(), of(Answer::Unknown).collect())
}

/// Whether a watch stays within all its conditions.
///
/// # Errors
///
/// When it does not, or when that is undecided.
pub fn watch_holds(result: &WatchedResult) -> Result<(), Error> {
    let outcomes = outcomes_of_watch(result);
    let of = |wanted: Answer| {
        let those = outcomes.iter().filter(|one| one.holds == wanted);
        those.map(|one| one.text.clone()).collect()
    };
    decided(of(Answer::Yes), of(Answer::Unknown))
}

fn decided(failed: Vec<String>, undecided: Vec<String>) -> Result<(), Error> {
    match (failed.is_empty(), undecided.is_empty()) {
        (false, _) => Err(Error::Failed(failed)),
        (true, false) => Err(Error::Undecided(undecided)),
        (true, true) => Ok(()),
    }
}

/// Refuses conditions on two sides for a result that has one.
///
/// # Errors
///
/// When there are such conditions.
pub fn have_sides(document: &Document, fail_if: &[Threshold]) -> Result<(), Error> {
    match of_two_sides(fail_if).first() {
        Some(one) if document.header.command != Command::Ab => Err(without_sides(&one.typed)),
        _ => Ok(()),
    }
}

fn without_sides(typed: &str) -> Error {
    Error::option(
        format!("--fail-if {}", typed_word(typed)),
        "it compares two sides, and there is one",
        "use it with `fathom ab` or `fathom compare`, or give a bound: 'p99>2ms'",
    )
}

/// Says the answer.
///
/// # Errors
///
/// When stdout does not take it.
pub fn say_answer(document: &Document) -> Result<(), Error> {
    output::say_text(terminal::answer(document, &style_of_answer()).trim_end_matches('\n'))?;
    output::has_answered();
    Ok(())
}

/// Says where the figures from before a failure are, or removes a file without a result.
pub fn after_failure(journal: Journal) {
    if !journal.holds_results() {
        journal.discard();
    } else if journal.is_saved() {
        let path = journal.path().display().to_string();
        output::note(&format!(
            "what was measured until then is in {}: show it with `fathom report {}`",
            path,
            typed_path(&path)
        ));
    }
}

/// Refuses two results in the same file, even with different spellings of its name.
///
/// # Errors
///
/// When there are two.
pub fn distinct<'p>(paths: impl IntoIterator<Item = &'p Path>) -> Result<(), Error> {
    let place = |path: &Path| {
        if is_stdout(path) {
            return (PathBuf::new(), None);
        }
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let folder = folder.unwrap_or(Path::new("."));
        // A missing folder is refused when the file is created.
        let found = patiently(path, Role::Output, || folder.canonicalize());
        let folder = found.unwrap_or(folder.to_owned());
        (folder, path.file_name().map(ToOwned::to_owned))
    };
    let paths: Vec<&Path> = paths.into_iter().collect();
    let twice = paths.iter().enumerate().find(|(index, path)| {
        let before = &paths[..*index];
        before.iter().any(|earlier| place(earlier) == place(path))
    });
    let Some((_, path)) = twice else { return Ok(()) };
    Err(Error::option(
        path.display().to_string(),
        "two of --out, --html, --csv and the others name this file",
        "give each a file of its own",
    ))
}

/// Refuses an existing file before a measurement is wasted.
///
/// # Errors
///
/// When it exists, or its folder does not.
pub fn free(path: &Path) -> Result<(), Error> {
    if is_stdout(path) {
        return Ok(());
    }
    match patiently(path, Role::Output, || path.symlink_metadata()) {
        Ok(_) => Err(Error::write(
            path,
            io::ErrorKind::AlreadyExists.into(),
            "choose another name: files are never overwritten",
        )),
        Err(_) => {
            let folder = match path.parent() {
                Some(folder) if folder.as_os_str().is_empty() => Path::new("."),
                Some(folder) => folder,
                None => Path::new("/"),
            };
            match patiently(path, Role::Output, || folder.metadata()) {
                Ok(metadata) if metadata.is_dir() => Ok(()),
                Ok(_) => Err(Error::write(
                    path,
                    io::ErrorKind::NotADirectory.into(),
                    "name a file in a folder",
                )),
                Err(cause) => Err(Error::write(path, cause, "create its folder first")),
            }
        }
    }
}

/// The folder of results without a name of their own, and where it was named; the current one if it
/// was not.
///
/// # Errors
///
/// When it is no folder. It is not created: it may be on a file system that is not mounted.
fn folder_of(typed: &Results) -> Result<PathBuf, Error> {
    let (named, folder) = match &typed.results {
        Some(folder) => ("--results", folder.clone()),
        None => match std::env::var_os("FATHOM_RESULTS").filter(|name| !name.is_empty()) {
            Some(folder) => ("FATHOM_RESULTS", PathBuf::from(folder)),
            None => return Ok(PathBuf::new()),
        },
    };
    if patiently(&folder, Role::Output, || folder.is_dir()) {
        return Ok(folder);
    }
    let remedy = match patiently(&folder, Role::Output, || folder.exists()) {
        true => "name a folder".to_owned(),
        false => {
            let typed = typed_path(&folder.display().to_string());
            format!("create it with `mkdir -p {typed}`, or name another one")
        }
    };
    let problem = format!("{named} names it as the place of results, and it is no folder");
    Err(Error::file(&folder, problem, remedy))
}

/// Creates a result file under its default name; a number distinguishes two results of one second.
fn create_named(command: &str, target: &str, typed: &Results) -> Result<(PathBuf, Journal), Error> {
    let folder = folder_of(typed)?;
    let name = journal::default_name(command, target, session::unix_ns() / 1_000_000_000);
    let stem = name.trim_end_matches(journal::SUFFIX).to_owned();
    let mut path = folder.join(&name);
    for number in 2.. {
        match Journal::create(&path, typed.json) {
            Ok(journal) => return Ok((path, journal)),
            Err(error) => match patiently(&path, Role::Output, || path.symlink_metadata()) {
                Ok(_) if number < 1000 => {
                    path = folder.join(format!("{stem}-{number}{}", journal::SUFFIX));
                }
                _ => return Err(error),
            },
        }
    }
    unreachable!("the last number returns")
}

/// The HTML report beside a result file.
fn html_name(out: &Path) -> PathBuf {
    let text = out.to_string_lossy();
    let stem = text.strip_suffix(journal::SUFFIX).or_else(|| text.strip_suffix(".jsonl"));
    PathBuf::from(format!("{}.html", stem.unwrap_or(&text)))
}
