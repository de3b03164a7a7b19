//! Reports as files: their kinds, their names, and how each is written.

use std::path::{Path, PathBuf};

use fathom_core::typed_path;
use fathom_report::document::Document;
use fathom_report::page::Level;
use fathom_report::{csv, html, markdown};

use super::browser;
use super::images::{Format, images};
use crate::cli::options::{Reports, Results};
use crate::error::Error;
use crate::output::is_stdout;
use crate::{journal, output};

/// A kind of report.
struct ReportKind {
    option: &'static str,
    /// The text before its file's name when it is written.
    label: &'static str,
    place: fn(&Reports) -> &Option<PathBuf>,
    write: Write,
}

/// How a kind of report is written.
enum Write {
    /// As one text.
    Text(fn(&Document, Level) -> String),
    /// As images.
    Images(Format),
}

const KINDS: [ReportKind; 6] = [
    ReportKind {
        option: "--html",
        label: "report",
        place: |written| &written.html,
        write: Write::Text(|document, _| html::document(document)),
    },
    ReportKind {
        option: "--markdown",
        label: "report",
        place: |written| &written.markdown,
        write: Write::Text(markdown::document),
    },
    ReportKind {
        option: "--csv",
        label: "table",
        place: |written| &written.csv,
        write: Write::Text(|document, _| csv::document(document)),
    },
    ReportKind {
        option: "--csv-series",
        label: "series",
        place: |written| &written.csv_series,
        write: Write::Text(|document, _| csv::series::document(document)),
    },
    ReportKind {
        option: "--svg",
        label: "image",
        place: |written| &written.svg,
        write: Write::Images(Format::Svg),
    },
    ReportKind {
        option: "--png",
        label: "image",
        place: |written| &written.png,
        write: Write::Images(Format::Png),
    },
];

/// Writes a file that does not exist yet and says its name after the label; or prints to stdout.
///
/// # Errors
///
/// When the file exists, or the bytes have no room.
pub fn put(path: &Path, label: &str, bytes: impl AsRef<[u8]>) -> Result<(), Error> {
    if is_stdout(path) {
        return output::print(bytes.as_ref());
    }
    journal::write_new(path, bytes)?;
    output::say(&format!("{label:<7} {}", path.display()))
}

impl Results {
    /// Leaves stdout to a document if one goes there, so that all else goes to stderr.
    pub fn leave_stdout(&self) {
        if self.json || self.written.paths().any(is_stdout) {
            output::leave_stdout_to_the_document();
        }
    }
}

impl Reports {
    fn each(&self) -> impl Iterator<Item = (&'static ReportKind, &Path)> {
        KINDS.iter().filter_map(|kind| Some((kind, (kind.place)(self).as_deref()?)))
    }

    /// The requested files.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        self.each().map(|(_, path)| path)
    }

    /// The options that request them, as they are typed, each with a space before it.
    pub fn in_words(&self) -> String {
        let typed = self.each().map(|(kind, path)| {
            format!(" {} {}", kind.option, typed_path(&path.display().to_string()))
        });
        let open = if self.open { " --open" } else { "" };
        typed.chain([open.to_owned()]).collect()
    }

    /// Refuses `--open` if it will not be possible.
    ///
    /// # Errors
    ///
    /// When no HTML report is written to a file, or nothing here can open one.
    pub fn check_open(&self) -> Result<(), Error> {
        match self.open {
            true => browser::check(self.html.as_deref().filter(|path| !is_stdout(path))),
            false => Ok(()),
        }
    }

    /// The same, with every path changed; a report without a path is not written.
    ///
    /// # Errors
    ///
    /// When a path cannot be changed.
    pub fn each_as<E>(
        &self,
        change: impl Fn(&Path) -> Result<Option<PathBuf>, E>,
    ) -> Result<Self, E> {
        let changed = |path: &Option<PathBuf>| path.as_deref().map_or(Ok(None), &change);
        Ok(Self {
            html: changed(&self.html)?,
            markdown: changed(&self.markdown)?,
            csv: changed(&self.csv)?,
            csv_series: changed(&self.csv_series)?,
            svg: changed(&self.svg)?,
            png: changed(&self.png)?,
            open: self.open,
        })
    }

    /// Writes the requested reports, at a level if there is a choice. A table is not lost because
    /// the page found no room.
    ///
    /// # Errors
    ///
    /// When one of them cannot be written.
    pub fn write(&self, document: &Document, level: Level) -> Result<(), Error> {
        let write = |(kind, path): (&ReportKind, &Path)| match kind.write {
            Write::Text(text) => put(path, kind.label, text(document, level)),
            Write::Images(format) => images(document, format, path, None)?
                .iter()
                .try_for_each(|(path, image)| put(path, kind.label, image)),
        };
        let all: Vec<Result<(), Error>> = self.each().map(write).collect();
        let written: Result<(), Error> = all.into_iter().collect();
        if let (Ok(()), true, Some(html)) = (&written, self.open, &self.html) {
            browser::open(html);
        }
        written
    }
}
