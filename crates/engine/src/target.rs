//! Opens targets, and refuses what must not be touched.

use std::fs::File;

use fathom_core::Bytes;

/// A file or device that is open for a run.
#[derive(Debug)]
pub struct OpenTarget {
    /// As the user named it.
    pub name: String,
    /// The open file.
    pub file: File,
    /// How large it is.
    pub size: Bytes,
    /// What offsets, lengths and memory have to be multiples of; 1 when buffered.
    pub alignment: Bytes,
}
