//! A file that grows line by line while a watch goes on. It never overwrites anything.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use crate::error::Error;
use crate::hanging::{Role, patiently};
use crate::{journal, output};

/// The file, or stdout.
#[derive(Debug)]
pub struct NewFile {
    path: PathBuf,
    /// The option that named it.
    option: &'static str,
    /// None for stdout.
    file: Option<File>,
}

impl NewFile {
    /// Creates it; if the path means stdout, that belongs to it from here on.
    ///
    /// # Errors
    ///
    /// When it exists or cannot be created.
    pub fn create(path: &Path, option: &'static str) -> Result<Self, Error> {
        if output::is_stdout(path) {
            output::leave_stdout_to_the_document();
            return Ok(Self { path: path.to_owned(), option, file: None });
        }
        let create = || OpenOptions::new().write(true).create_new(true).open(path);
        let created = patiently(path, Role::Output, create);
        let elsewhere = format!("another place with {option}");
        let file = created.map_err(|cause| journal::not_created(path, cause, &elsewhere))?;
        Ok(Self { path: path.to_owned(), option, file: Some(file) })
    }

    /// Adds a line.
    ///
    /// # Errors
    ///
    /// When it cannot be written; the lines before it are in the file.
    pub fn put(&mut self, mut line: String) -> Result<(), Error> {
        line.push('\n');
        let Some(file) = &mut self.file else { return output::print(line.as_bytes()) };
        let written = patiently(&self.path, Role::Output, || file.write_all(line.as_bytes()));
        written.map_err(|cause| {
            let remedy = format!(
                "free some space or name another place with {}; what was written so far is in it",
                self.option
            );
            Error::write(&self.path, cause, remedy)
        })
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }
}
