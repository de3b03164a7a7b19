//! The limits of the I/Os to a target: their alignment, and their size.

use fathom_core::Bytes;
use fathom_core::facts::Target;
use fathom_core::spec::{Access, Cache};

use crate::target_error::TargetError;

/// Checks that one NVMe command can move a block, if commands reach the target directly.
///
/// # Errors
///
/// When it cannot.
pub fn check_command_size(target: &Target, block_size: Bytes) -> Result<(), TargetError> {
    match &target.namespace {
        Some(namespace) if namespace.largest < block_size => Err(TargetError::TooLarge {
            name: target.name.clone(),
            block_size,
            largest: namespace.largest,
            limit: namespace.limit,
        }),
        _ => Ok(()),
    }
}

/// The alignment of offsets and lengths.
pub(super) fn alignment(target: &Target, access: Access) -> Bytes {
    match access.cache {
        Cache::Buffered => Bytes(1),
        Cache::Direct => target.direct_alignment.filter(|size| 0 < size.0).unwrap_or(Bytes(1)),
    }
}
