//! A target that is open for a run, and what backends have to know of it.

use std::fs::File;
use std::sync::Arc;

use fathom_core::Bytes;

/// A file or device that is open for a run. A clone is the same open file.
#[derive(Clone, Debug)]
pub struct OpenTarget {
    /// As the user named it.
    pub name: String,
    /// The open file.
    pub file: Arc<File>,
    /// How large it is.
    pub size: Bytes,
    /// What offsets, lengths and memory have to be multiples of; 1 when buffered.
    pub alignment: Bytes,
    /// What NVMe commands have to say, where they reach the target as they are.
    pub passthrough: Option<Passthrough>,
}

/// What every NVMe command to a target says.
#[derive(Clone, Debug)]
pub struct Passthrough {
    /// The namespace.
    pub namespace: u32,
    /// The power of two that a logical block's size is.
    pub block_shift: u32,
    /// Whether a write completes only when it is durable.
    pub force_unit_access: bool,
    /// The block device with the same data, claimed as long as it may be written to.
    pub(crate) _claim: Option<Arc<File>>,
}

#[cfg(test)]
impl Passthrough {
    /// Of a namespace that is nowhere.
    pub(crate) fn invented(namespace: u32, block_shift: u32, force_unit_access: bool) -> Self {
        Self { namespace, block_shift, force_unit_access, _claim: None }
    }
}
