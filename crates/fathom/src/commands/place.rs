//! The targets, found by name and examined: files and devices, or a simulated device.

use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use fathom_core::Bytes;
use fathom_core::facts::Target;
use fathom_engine::{host, sim};

use crate::error::Error;
use crate::hanging::{self, Role, patiently};

/// The beginning of every simulated target's name.
const SIMULATED: &str = "sim:";

/// The targets, found and examined, not yet open.
#[derive(Clone, Debug)]
pub enum Place {
    /// A simulated device.
    Simulated {
        /// The facts about it.
        facts: Box<Target>,
        /// Its options.
        options: Box<sim::Options>,
    },
    /// Files and devices.
    Real(Vec<Target>),
}

/// The text after `sim:`, if this names a simulated device.
pub fn simulated(path: &Path) -> Option<&str> {
    path.to_str()?.strip_prefix(SIMULATED)
}

/// Whether this asks for the list of simulated devices.
pub fn asks_for_help(path: &Path) -> bool {
    simulated(path).is_some_and(|text| text == "help" || text.is_empty())
}

/// The alignment of a target's I/Os, if it is known and not the smallest one.
pub fn logical_block(target: &Path) -> Option<Bytes> {
    let facts = match simulated(target) {
        Some(_) => None,
        // A problem with it is reported in the full examination.
        None => patiently(target, Role::Target, || host::target(target)).ok(),
    };
    facts?.direct_alignment.filter(|alignment| Bytes(512) < *alignment)
}

impl Place {
    /// Examines the named targets.
    ///
    /// # Errors
    ///
    /// When a target does not exist, cannot be one, or was named twice.
    pub fn find(paths: &[PathBuf]) -> Result<Self, Error> {
        let name = paths.first().map_or_else(String::new, |path| path.display().to_string());
        let paths = paths.to_vec();
        hanging::waited_for(&name, "it was looked at", move || Self::find_here(&paths))
    }

    fn find_here(paths: &[PathBuf]) -> Result<Self, Error> {
        let mut targets = Vec::new();
        let mut seen: Vec<(Identity, String)> = Vec::new();
        for path in paths {
            let name = path.display().to_string();
            if let Some(text) = simulated(path) {
                if paths.len() > 1 {
                    return Err(Error::option(
                        name,
                        "a simulated device is measured alone",
                        "name one target",
                    ));
                }
                let options: sim::Options = text.parse().map_err(|why: String| {
                    Error::option(&name, why, "see what there is with `fathom run sim:help`")
                })?;
                let layers = options.layers();
                let facts = Target { layers, ..Target::simulated(&name, options.size) };
                let facts = Box::new(facts);
                return Ok(Self::Simulated { facts, options: Box::new(options) });
            }
            let facts = host::target(path)?;
            let identity = Identity::of(&facts);
            if let Some((_, other)) = seen.iter().find(|(other, _)| *other == identity) {
                return Err(Error::option(
                    name,
                    format!("it is the same as {other}"),
                    "name every target once",
                ));
            }
            seen.push((identity, name));
            targets.push(facts);
            hanging::come_through();
        }
        Ok(Self::Real(targets))
    }

    /// The facts about the targets.
    pub fn facts(&self) -> Vec<Target> {
        match self {
            Self::Simulated { facts, .. } => Vec::from([Target::clone(facts)]),
            Self::Real(targets) => targets.clone(),
        }
    }
}

/// What makes two names the same target, as far as can be told.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Identity {
    File { device: u64, inode: u64 },
    Device(u64),
    Path(String),
}

impl Identity {
    fn of(target: &Target) -> Self {
        match std::fs::metadata(&target.path) {
            Ok(metadata) if metadata.file_type().is_block_device() => Self::Device(metadata.rdev()),
            Ok(metadata) => Self::File { device: metadata.dev(), inode: metadata.ino() },
            // It disappeared after it was examined, and opening it will report that.
            Err(_) => Self::Path(target.path.clone()),
        }
    }
}
