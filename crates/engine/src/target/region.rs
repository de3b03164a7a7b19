//! Whether the addressed range of a target lies within it and is aligned as direct I/O needs it.

use fathom_core::Bytes;
use fathom_core::facts::Target;
use fathom_core::spec::{Access, Cache};

use crate::target_error::TargetError;

/// Checks that blocks of this size in this region can be read from, or written to, the target.
///
/// # Errors
///
/// When direct I/O needs other multiples, or the region does not fit.
pub fn check_region(
    target: &Target,
    access: Access,
    offset: Bytes,
    length: Bytes,
    block_size: Bytes,
) -> Result<(), TargetError> {
    let name = || target.name.clone();
    check_alignment(target, access, "the block size", block_size)?;
    check_alignment(target, access, "the offset", offset)?;
    let end = Bytes(offset.0.saturating_add(length.0));
    if target.size < end {
        return Err(TargetError::BeyondEnd {
            name: name(),
            kind: target.kind,
            end,
            size: target.size,
        });
    }
    if length < block_size {
        return Err(TargetError::TooSmall { name: name(), length, block_size });
    }
    check_command_size(target, block_size)
}

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

/// Checks that a size or an offset is a multiple of the alignment that direct I/O on the target
/// needs. `what` names it in the error: "the block size".
///
/// # Errors
///
/// When it is not.
pub fn check_alignment(
    target: &Target,
    access: Access,
    what: &'static str,
    value: Bytes,
) -> Result<(), TargetError> {
    let alignment = alignment(target, access);
    if value.0.is_multiple_of(alignment.0) {
        return Ok(());
    }
    Err(TargetError::Misaligned { name: target.name.clone(), what, value, alignment })
}

/// The alignment of offsets and lengths.
pub(super) fn alignment(target: &Target, access: Access) -> Bytes {
    match access.cache {
        Cache::Buffered => Bytes(1),
        Cache::Direct => target.direct_alignment.filter(|size| 0 < size.0).unwrap_or(Bytes(1)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fathom_core::facts::TargetKind;

    fn file() -> Target {
        Target {
            kind: TargetKind::File,
            direct_alignment: Some(Bytes(512)),
            ..Target::simulated("data", Bytes(1 << 20))
        }
    }

    #[test]
    fn a_region_must_fit_the_target_and_its_alignment() {
        let direct = Access::DIRECT;
        let buffered = Access { cache: Cache::Buffered, ..direct };
        let check = |access, offset, length, block_size| {
            check_region(&file(), access, Bytes(offset), Bytes(length), Bytes(block_size))
                .map_err(|error| error.to_string())
        };
        let fails = |result: Result<(), String>, part: &str| {
            let text = result.unwrap_err();
            assert!(text.contains(part), "{text}");
        };
        assert_eq!(check(direct, 0, 1 << 20, 4096), Ok(()));
        assert_eq!(check(direct, 512, (1 << 20) - 512, 512), Ok(()));
        fails(
            check(direct, 0, 1 << 20, 1000),
            "the block size of 1000 bytes is no multiple of 512",
        );
        fails(check(direct, 100, 4096, 512), "the offset of 100 bytes is no multiple of 512");
        assert_eq!(check(buffered, 100, 4096, 1000), Ok(()));
        fails(check(direct, 512, 1 << 20, 512), "data: it has 1 MiB (1048576 bytes)");
        fails(check(direct, 512, u64::MAX, 512), "--size 18446744073709551615");
        fails(check(direct, 0, 512, 4096), "less than one block of 4 KiB");
    }
}
