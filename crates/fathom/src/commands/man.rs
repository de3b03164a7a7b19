//! `fathom man`: the manual pages, one for each command, from the command line's definition.

use std::path::Path;

use clap::Command;
use clap_mangen::Man as Page;

use crate::cli::args::{Args, Man};
use crate::error::{Error, exit};
use crate::{journal, output};

/// Writes them.
///
/// # Errors
///
/// When a page exists or cannot be written.
pub fn perform(args: &Man) -> Result<u8, Error> {
    std::fs::create_dir_all(&args.folder).map_err(|cause| {
        Error::write(&args.folder, cause, "name a folder that you may write to")
    })?;
    let written = pages(&Args::documented(), &args.folder)?;
    output::say(&format!("{written} pages in {}", args.folder.display()))?;
    Ok(exit::MEASURED)
}

/// Writes the pages of a command and of those below it, and returns their number.
fn pages(command: &Command, folder: &Path) -> Result<usize, Error> {
    let page = Page::new(command.clone());
    let mut text = Vec::new();
    page.render(&mut text).expect("memory takes every byte");
    journal::write_new(&folder.join(page.get_filename()), text)?;
    let inner = command.get_subcommands().filter(|inner| inner.get_name() != "help");
    inner.map(|inner| pages(inner, folder)).try_fold(1, |sum, pages| Ok(sum + pages?))
}
