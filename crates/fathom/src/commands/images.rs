//! Results as image files: which images a result has, and their names.

use std::path::{Path, PathBuf};

use fathom_report::document::Document;
use fathom_report::image;
use fathom_report::page::{Illustration, illustrations};

use crate::error::Error;
use crate::output::is_stdout;

/// A format of images.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    Svg,
    Png,
}

impl Format {
    /// The option that requests it.
    pub fn option(self) -> &'static str {
        match self {
            Self::Svg => "--svg",
            Self::Png => "--png",
        }
    }
}

/// The images of a result, or the one with this name, each with the path of its file.
///
/// # Errors
///
/// When the result has no images, or none of this name.
pub fn images(
    document: &Document,
    format: Format,
    path: &Path,
    name: Option<&str>,
) -> Result<Vec<(PathBuf, Vec<u8>)>, Error> {
    let mut wanted = wanted(document, format, path, name)?;
    if is_stdout(path) {
        // Stdout has room for one: the first is the most informative.
        wanted.truncate(1);
    }
    let alone = wanted.len() == 1;
    let image = |one: &Illustration| {
        let bytes = match format {
            Format::Svg => image::svg(one).into_bytes(),
            Format::Png => image::png(one).map_err(|why| {
                let remedy = "choose another chart with `fathom report --chart`, or --svg";
                Error::option(format!("{} {}", format.option(), path.display()), why, remedy)
            })?,
        };
        let path = if alone { path.to_owned() } else { named(path, &one.name) };
        Ok((path, bytes))
    };
    wanted.iter().map(image).collect()
}

/// The requested images.
fn wanted(
    document: &Document,
    format: Format,
    path: &Path,
    name: Option<&str>,
) -> Result<Vec<Illustration>, Error> {
    let mut all = illustrations(document);
    if all.is_empty() {
        return Err(Error::option(
            format!("{} {}", format.option(), path.display()),
            "the result has no figures to draw",
            "name a result with at least one finished trial",
        ));
    }
    if let Some(name) = name {
        let names: Vec<String> = all.iter().map(|one| one.name.clone()).collect();
        all.retain(|one| one.name == name);
        if all.is_empty() {
            return Err(Error::option(
                format!("--chart {name}"),
                "the result has no such chart",
                format!("choose one of {}", names.join(", ")),
            ));
        }
    }
    Ok(all)
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
