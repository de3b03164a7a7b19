//! Workload files: TOML that describes one or several streams. A file becomes the same description
//! as the options of the command line, and goes through the same checks; a problem is shown at its
//! place in the file.
//!
//! Never in a file: consent to overwrite anything, and the destinations of results.

pub mod file;
pub mod keys;
pub mod load;
pub mod problem;
pub mod schema;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

use crate::cli::axes::{self, RANDOM_SHARE, STREAMS, TARGETS};
use crate::cli::described::{Aim, Described};
use crate::cli::options::{AccessArgs, LoadArgs, Request, Typed};
use crate::cli::values::nearest;
use crate::error::Error;
use crate::hanging::{Role, patiently};
use crate::output;
use crate::resolve::Blame;
use crate::shipped;

use keys::Table;
use load::{Loaded, SweepTable};
use problem::Problem;

/// The requested settings, and their places, if they are in a file.
#[derive(Debug)]
pub struct Asked {
    /// The description.
    pub described: Described,
    /// The places of its values.
    loaded: Option<Loaded>,
}

impl Asked {
    /// Reads the requested settings: the options alone, or a workload with its targets.
    ///
    /// # Errors
    ///
    /// When the workload cannot be used, or an option contradicts it.
    pub fn read(args: &Request) -> Result<Self, Error> {
        let template = Template::read(args)?;
        template.is_of(None)?;
        template.describe(&[])
    }

    /// The same for the text of a workload of this name. If it describes an experiment, that is the
    /// caller's, and this its load.
    ///
    /// # Errors
    ///
    /// As [`Asked::read`].
    pub fn read_text(args: &Request, name: &str, text: &str) -> Result<Self, Error> {
        Template::of_text(args, name, text)?.describe(&[])
    }

    /// The same for an experiment whose options may be in this table of the workload.
    ///
    /// # Errors
    ///
    /// As [`Asked::read`].
    pub fn read_for(args: &Request, table: Table) -> Result<Self, Error> {
        let template = Template::read(args)?;
        template.is_of(Some(table))?;
        template.describe(&[])
    }

    /// The words of the command line for an experiment's table, overridden by the typed options;
    /// none without such a table.
    pub fn words_of(&self, table: Table, typed: &[Typed]) -> Option<Vec<String>> {
        let said = self.loaded.as_ref()?.table(table)?;
        let is_typed = |key: &String| typed.iter().any(|typed| typed.name == *key);
        let said = said.iter().filter(|(key, _)| !is_typed(key));
        let mut words: Vec<String> = said.flat_map(|(_, words)| words.clone()).collect();
        let keys = table.keys();
        let is_key = |typed: &&Typed| keys.iter().any(|arg| arg.get_long() == Some(&typed.name));
        words.extend(typed.iter().filter(is_key).map(Typed::word));
        Some(words)
    }

    /// The same, with this workload if none was named.
    ///
    /// # Errors
    ///
    /// As [`Asked::read`].
    pub fn read_or(args: &Request, otherwise: &str) -> Result<Self, Error> {
        Template::read_or(args, Some(otherwise))?.describe(&[])
    }

    /// The error in terms of the file: about a value in a file with its place.
    pub fn explain(&self, blame: Blame) -> Error {
        match &self.loaded {
            Some(loaded) => loaded.explain(blame),
            None => blame.error,
        }
    }

    /// The same for an error that concerns the whole.
    pub fn explain_whole(&self, error: Error) -> Error {
        self.explain(Blame { stream: None, error })
    }

    /// The workload's name in messages, if there is one.
    pub fn source(&self) -> Option<&str> {
        self.loaded.as_ref().map(Loaded::name)
    }
}

/// The requested settings, before it is known what varies: all points of an experiment are made
/// from these.
#[derive(Debug)]
pub struct Template<'a> {
    args: &'a Request,
    targets: &'a [PathBuf],
    loaded: Option<Loaded>,
}

/// The settings of a point that replace the requested ones: the name of an axis, and a value as
/// typed.
pub type Setting<'a> = (&'a str, &'a str);

impl<'a> Template<'a> {
    /// Reads the requested settings.
    ///
    /// # Errors
    ///
    /// When the workload cannot be used.
    pub fn read(args: &'a Request) -> Result<Self, Error> {
        Self::read_or(args, None)
    }

    /// The same, with this workload if none was named.
    ///
    /// # Errors
    ///
    /// As [`Template::read`].
    pub fn read_or(args: &'a Request, otherwise: Option<&str>) -> Result<Self, Error> {
        let (reference, targets) = divide(args)?;
        let Some(reference) = reference.or(otherwise.map(ToOwned::to_owned)) else {
            if let Some(set) = args.set.first() {
                return Err(Error::option(
                    format!("--set {set}"),
                    "there is no workload that has variables",
                    "drop it, or name a workload",
                ));
            }
            return Ok(Self { args, targets, loaded: None });
        };
        Ok(Self { args, targets, loaded: Some(Loaded::read(&reference, &args.set)?) })
    }

    /// The text of a workload file of this name as requested settings.
    ///
    /// # Errors
    ///
    /// When it cannot be parsed.
    pub fn of_text(args: &'a Request, name: &str, text: &str) -> Result<Self, Error> {
        let loaded = Some(Loaded::of_text(name, text)?);
        Ok(Self { args, targets: &args.targets, loaded })
    }

    /// Refuses a workload that describes an experiment, unless it is one with this table.
    pub fn is_of(&self, own: Option<Table>) -> Result<(), Error> {
        let Some(loaded) = &self.loaded else { return Ok(()) };
        let has = |table: &Table| loaded.table(*table).is_some();
        if own.as_ref().is_some_and(has) {
            return Ok(());
        }
        let (problem, remedy) = match Table::ALL.into_iter().find(has) {
            _ if loaded.sweep().is_some() => (
                "it describes a sweep of many points",
                "run it with `fathom sweep`, and see what that would do with --plan",
            ),
            None => return Ok(()),
            Some(Table::Map) => {
                ("it describes a latency map", "run it with `fathom study latency-map`")
            }
            Some(Table::Peak) => ("it describes a search for a peak", "run it with `fathom peak`"),
            Some(Table::Sustain) => {
                ("it describes rounds until a steady state", "run it with `fathom sustain`")
            }
        };
        Err(Error::option(loaded.name(), problem, remedy))
    }

    /// The sweep in the workload, if there is one.
    pub fn sweep(&self) -> Option<&SweepTable> {
        self.loaded.as_ref()?.sweep()
    }

    /// The typed targets.
    pub fn targets(&self) -> &'a [PathBuf] {
        self.targets
    }

    /// The name of the workload, if there is one.
    pub fn name(&self) -> Option<&str> {
        self.loaded.as_ref().map(Loaded::title)
    }

    /// Its description with these settings.
    ///
    /// # Errors
    ///
    /// When a setting is not an option, or its value is invalid.
    pub fn describe(&self, settings: &[Setting<'_>]) -> Result<Asked, Error> {
        let named = settings.iter().find(|(axis, _)| *axis == TARGETS);
        let named: Vec<PathBuf> = match named {
            // Parameters of a simulated device may have a plus in them, and so may a file's name.
            Some((_, one)) if one.starts_with("sim:") || is_there(Path::new(one)) => {
                Vec::from([PathBuf::from(one)])
            }
            Some((_, several)) => several.split('+').map(PathBuf::from).collect(),
            None => self.targets.to_vec(),
        };
        let settings = settings.iter().filter(|(axis, _)| *axis != TARGETS).copied();
        let (copies, settings): (Vec<Setting<'_>>, Vec<Setting<'_>>) =
            settings.partition(|(axis, _)| self.copies_streams(axis));
        let mut asked = match &self.loaded {
            Some(loaded) => {
                let mut loaded = loaded.clone();
                let described = loaded.describe(self.args, &named, &settings)?;
                Asked { described, loaded: Some(loaded) }
            }
            None => {
                let mut args = Request { targets: named, ..self.args.clone() };
                if !settings.is_empty() {
                    (args.load, args.access) = overridden(self.args, &settings)?;
                }
                Asked { described: Described::typed(&args), loaded: None }
            }
        };
        for (axis, label) in copies {
            let count = axes::copies(label).map_err(|why| {
                Error::option(format!("--axis {axis}={label}"), why, "choose how many run together")
            })?;
            let place = asked.loaded.as_ref().map_or(Ok(0), |loaded| loaded.copied(axis))?;
            asked.described.copy(place, count);
        }
        Ok(asked)
    }

    /// Whether an axis is the number of a stream's copies. A variable of this name is a variable, and
    /// without a workload there are no streams with names.
    fn copies_streams(&self, axis: &str) -> bool {
        match &self.loaded {
            Some(loaded) => axes::counts_streams(axis) && !loaded.has_variable(axis),
            None => axis == STREAMS,
        }
    }
}

/// The typed options, with the varying ones replaced.
fn overridden(args: &Request, settings: &[Setting<'_>]) -> Result<(LoadArgs, AccessArgs), Error> {
    let names = keys::names();
    let mut words: Vec<String> = Vec::new();
    for typed in args.typed.iter().filter(|typed| names.contains(&typed.name)) {
        if settings.iter().any(|(axis, _)| option_of(axis) == typed.name) {
            return Err(Error::option(
                format!("--{}", typed.name),
                "it is an axis as well",
                "drop one of the two",
            ));
        }
        words.push(typed.word());
    }
    let mut varied: Vec<&str> = settings.iter().map(|(axis, _)| option_of(axis)).collect();
    varied.sort_unstable();
    if varied.windows(2).any(|pair| pair[0] == pair[1]) {
        return Err(Error::option(
            format!("--axis {RANDOM_SHARE}"),
            "it is a pattern, and the pattern is an axis as well",
            "drop one of the two",
        ));
    }
    for (axis, label) in settings {
        words.extend(setting_words(axis, axis, label)?);
    }
    keys::read(&words).map_err(|why| Error::option("--axis", why, "choose other values"))
}

/// The option that an axis sets.
fn option_of(axis: &str) -> &str {
    if axis == RANDOM_SHARE { "pattern" } else { axis }
}

/// The command-line words of a setting for `fathom run`.
fn setting_words(axis: &str, key: &str, label: &str) -> Result<Vec<String>, Error> {
    let refuse = |why: String| {
        Error::option(format!("--axis {axis}={label}"), why, "choose a value that it can have")
    };
    if key == RANDOM_SHARE {
        let pattern = axes::pattern_of(label).map_err(refuse)?;
        return keys::words("pattern", &file::Value::Text(pattern)).map_err(refuse);
    }
    let names = keys::names();
    if !names.iter().any(|name| name == key) {
        let known = names.iter().map(String::as_str).chain([TARGETS, STREAMS, RANDOM_SHARE]);
        let called = axes::otherwise_called(key);
        let remedy = match nearest(key, known) {
            _ if called.is_some() => format!("write '{}'", called.unwrap_or_default()),
            Some(near) => format!("write '{near}'"),
            None => "choose an option of `fathom run`, targets, streams or random-share".to_owned(),
        };
        return Err(Error::option(format!("--axis {axis}"), "there is no such option", remedy));
    }
    keys::words(key, &file::Value::Text(label.to_owned())).map_err(refuse)
}

/// The named workload, if there is one, and the targets.
fn divide(args: &Request) -> Result<(Option<String>, &[PathBuf]), Error> {
    if let Some(named) = &args.workload {
        return Ok((Some(named.clone()), &args.targets));
    }
    if let Some(job) = args.targets.iter().find(|target| is_job_file(target)) {
        return Err(Error::option(
            job.display().to_string(),
            "fathom does not run the job files of fio",
            "describe the load in a workload file (docs/workloads.md), or on the command line",
        ));
    }
    let Some((first, rest)) = args.targets.split_first() else {
        return Ok((None, &args.targets));
    };
    let Some(name) = first.to_str() else { return Ok((None, &args.targets)) };
    if shipped::text(name).is_some() {
        // Both meanings are possible, and only the user knows.
        return match is_there(first) {
            true => Err(Error::option(
                name,
                "it is a workload, and it is here as well",
                format!("write ./{name} for what is here, or --workload {name}"),
            )),
            false => Ok((Some(name.to_owned()), rest)),
        };
    }
    // Any other file with this ending is an ordinary target.
    let is_file = || load::text_of(first).is_ok();
    if name.ends_with(".toml") && (is_file() || !is_there(first)) {
        return Ok((Some(name.to_owned()), rest));
    }
    if is_there(first) || name.contains('/') {
        return Ok((None, &args.targets));
    }
    // A new file is made by `prepare`, so this is hardly meant to be one. Alone it may be a target that is
    // missing, such as vdb.
    let (most, short) = if rest.is_empty() { (1, 4) } else { (2, 3) };
    let near = |known: &&str| {
        short <= name.len().min(known.len()) && strsim::damerau_levenshtein(name, known) <= most
    };
    match shipped::names().find(near) {
        Some(near) => Err(Error::option(
            name,
            "it is neither here nor a workload",
            format!("did you mean {near}? `fathom workloads` lists them all"),
        )),
        None => Ok((None, &args.targets)),
    }
}

/// Whether it is a job file of fio, or the name of one that is not here. Any other file with this ending is
/// an ordinary target.
fn is_job_file(path: &Path) -> bool {
    let Some(name) = path.to_str().filter(|name| name.ends_with(".fio")) else { return false };
    let has_section = |text: String| text.lines().any(|line| line.trim_start().starts_with('['));
    match load::text_of(path) {
        Ok(text) => has_section(text),
        Err(_) => !name.contains('/') && !is_there(path),
    }
}

fn is_there(path: &Path) -> bool {
    patiently(path, Role::Target, || path.exists())
}

/// A problem as an error, as stderr can show it.
fn refuse(problem: &Problem, sources: &[problem::Source]) -> Error {
    Error::Workload(problem.render(sources, output::error_color()))
}

/// The typed targets, for a stream.
fn typed_aims(targets: &[PathBuf]) -> Vec<Aim> {
    targets.iter().cloned().map(Aim::at).collect()
}

/// The folder that contains a file.
fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}
