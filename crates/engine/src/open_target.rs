//! A target that is open for a run, and the facts that backends need about it.

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
    /// Its size.
    pub size: Bytes,
    /// Offsets, lengths and memory have to be multiples of these; 1 when buffered.
    pub alignment: Bytes,
    /// The common part of NVMe commands, if they reach the target directly.
    pub passthrough: Option<Passthrough>,
}

/// The common part of every NVMe command to a target.
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
    /// The facts of an invented namespace.
    pub(crate) fn invented(namespace: u32, block_shift: u32, force_unit_access: bool) -> Self {
        Self { namespace, block_shift, force_unit_access, _claim: None }
    }
}
