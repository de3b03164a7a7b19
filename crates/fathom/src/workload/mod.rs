//! Workload files: TOML that says what one or several streams do. A file becomes the same
//! description as the options of the command line do, and goes through the same checks; what is wrong
//! with it is shown where it is written.
//!
//! Never in a file: consent to overwrite anything, and where results go.

pub mod file;
pub mod keys;
pub mod load;
pub mod problem;
pub mod schema;
pub mod shipped;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

use crate::cli::args::Request;
use crate::cli::described::{Aim, Described};
use crate::cli::resolve::Blame;
use crate::error::Error;
use crate::output;

use load::Loaded;
use problem::Problem;

/// What was asked for, and where it is written, if it is in a file.
#[derive(Debug)]
pub struct Asked {
    /// The description.
    pub described: Described,
    /// Where its values are.
    loaded: Option<Loaded>,
}

impl Asked {
    /// Reads what was asked for: the options alone, or a workload with its targets.
    ///
    /// # Errors
    ///
    /// When the workload cannot be followed, or an option does not go with it.
    pub fn read(args: &Request) -> Result<Self, Error> {
        let (reference, targets) = divide(args)?;
        let Some(reference) = reference else {
            if let Some(set) = args.set.first() {
                return Err(Error::option(
                    format!("--set {set}"),
                    "there is no workload that has variables",
                    "drop it, or name a workload",
                ));
            }
            return Ok(Self { described: Described::typed(args), loaded: None });
        };
        let mut loaded = Loaded::read(&reference, &args.set)?;
        let described = loaded.describe(args, targets)?;
        Ok(Self { described, loaded: Some(loaded) })
    }

    /// The error as it concerns what the user wrote: of a value in a file with its place.
    pub fn explain(&self, blame: Blame) -> Error {
        match &self.loaded {
            Some(loaded) => loaded.explain(blame),
            None => blame.error,
        }
    }

    /// The same of an error that concerns the whole.
    pub fn explain_whole(&self, error: Error) -> Error {
        self.explain(Blame { stream: None, error })
    }

    /// What the workload is called in messages, if there is one.
    pub fn source(&self) -> Option<&str> {
        self.loaded.as_ref().map(Loaded::name)
    }
}

/// The workload that was named, if one was, and the targets.
fn divide(args: &Request) -> Result<(Option<String>, &[PathBuf]), Error> {
    if let Some(named) = &args.workload {
        return Ok((Some(named.clone()), &args.targets));
    }
    let Some((first, rest)) = args.targets.split_first() else {
        return Ok((None, &args.targets));
    };
    let Some(name) = first.to_str() else { return Ok((None, &args.targets)) };
    if shipped::text(name).is_some() {
        // It could be meant either way, and only the user knows.
        return match first.exists() {
            true => Err(Error::option(
                name,
                "it is a workload, and it is here as well",
                format!("write ./{name} for what is here, or --workload {name}"),
            )),
            false => Ok((Some(name.to_owned()), rest)),
        };
    }
    // Whatever else ends so is as good a target as any.
    let is_file = || first.is_file() && std::fs::read_to_string(first).is_ok();
    match name.ends_with(".toml") && (is_file() || !first.exists()) {
        true => Ok((Some(name.to_owned()), rest)),
        false => Ok((None, &args.targets)),
    }
}

/// A problem as an error, as stderr can show it.
fn refuse(problem: &Problem, sources: &[file::Source]) -> Error {
    Error::Workload(problem.render(sources, output::error_color()))
}

/// The targets that were typed, for a stream.
fn typed_aims(targets: &[PathBuf]) -> Vec<Aim> {
    targets.iter().cloned().map(Aim::at).collect()
}

/// The folder that a file is in.
fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}
