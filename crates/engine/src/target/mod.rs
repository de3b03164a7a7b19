//! Opens targets, and refuses what must not be touched.
//!
//! An existing file is not written to unless overwriting was allowed, and a block device only if
//! its own name is repeated as one to destroy, with or without known content. A target in use is
//! not written to even then, unless its name is repeated as one to destroy in use. Nothing is ever
//! created or truncated here. The judged target is compared with the opened one, and a device that
//! is written to is claimed, so that it cannot be mounted in between.

mod confirm;
mod judge;
mod region;
mod trims;

use std::fs::{File, OpenOptions};
use std::io;
use std::path::Path;
use std::sync::Arc;

use fathom_core::facts::{InUse, Namespace, Target, TargetKind};
use fathom_core::spec::Access;

use confirm::{confirm, confirm_disk, is_copied_up, note_copy};
use region::alignment;

pub use judge::{Overwrite, judge, judge_again};
pub use region::check_command_size;
pub use trims::probe_trim;

pub use crate::open_target::{OpenTarget, Passthrough};
pub use crate::target_error::TargetError;
use crate::{access, found, host};

/// How a target is to be opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Opening {
    /// The access to the target.
    pub access: Access,
    /// Whether it will be written to.
    pub writes: bool,
    /// Whether the run has claimed it already, because it is open for writing with another access.
    pub claimed: bool,
    /// The user's consent.
    pub overwrite: Overwrite,
}

/// Opens a target that was examined. Neither creates nor truncates anything.
///
/// # Errors
///
/// When it cannot be opened in this way, and when it would be written to without consent.
pub fn open(target: &Target, opening: &Opening) -> Result<OpenTarget, TargetError> {
    judge(target, opening)?;
    let is_character = matches!(target.kind, TargetKind::CharacterDevice | TargetKind::NvmeGeneric);
    let in_use = opening.overwrite.destroys_in_use(target);
    // Mounting claims a device in the same way: from here on it cannot be mounted.
    let claims =
        target.kind == TargetKind::BlockDevice && opening.writes && !opening.claimed && !in_use;
    let flags = access::open_flags(opening.access, opening.writes, !is_character)
        | if claims { libc::O_EXCL } else { 0 };
    let found =
        found::find(Path::new(&target.path)).map_err(|cause| match cause.raw_os_error() {
            Some(libc::ELOOP) => TargetError::Changed {
                name: target.name.clone(),
                what: "a link has taken its place",
            },
            _ => failed_to_open(target, opening, cause),
        })?;
    confirm(target, &found)?;
    let file = open_with(target, opening, (&found, flags))?;
    confirm_disk(target, &file)?;
    if opening.writes && is_copied_up(target) {
        note_copy(target, &found)?;
    }
    prepare_cache(target, opening, &file)?;
    let passthrough = match &target.namespace {
        Some(namespace) => Some(pass_through(target, namespace, opening, &file)?),
        None => None,
    };
    Ok(OpenTarget {
        name: target.name.clone(),
        file: Arc::new(file),
        size: target.size,
        alignment: alignment(target, opening.access),
        passthrough,
    })
}

/// Gives the kernel the access's advice on the page cache, and finds out whether it is supported.
fn prepare_cache(target: &Target, opening: &Opening, file: &File) -> Result<(), TargetError> {
    let access = opening.access;
    let refuse = |option: String, cause, remedy: &str| TargetError::Unsupported {
        name: target.name.clone(),
        option,
        cause,
        remedy: remedy.to_owned(),
    };
    if let Some(hint) = access.hint {
        access::advise(file, hint).map_err(|cause| {
            let option = format!("--fadvise {}", hint.name());
            refuse(option, format!("the kernel does not take it ({cause})"), "drop it")
        })?;
    }
    if access.uncached {
        access::probe_uncached(file).map_err(|cause| {
            let remedy = "drop it, or name a file on XFS, ext4 or Btrfs with a newer kernel";
            refuse("--dontcache".to_owned(), cause, remedy)
        })?;
    }
    if access.mapped {
        crate::sync::probe_mapping(file, opening.writes).map_err(|cause| {
            let cause = format!("it cannot be mapped into memory ({cause})");
            refuse("--mmap".to_owned(), cause, "drop it, or add --buffered instead")
        })?;
    }
    Ok(())
}

/// Determines the common part of the commands to an NVMe generic device. A write through it changes
/// the data of the block device beside it, so that one is claimed as if it were opened itself.
fn pass_through(
    target: &Target,
    namespace: &Namespace,
    opening: &Opening,
    file: &File,
) -> Result<Passthrough, TargetError> {
    let name = || target.name.clone();
    let id = host::nvme::namespace_of(file).map_err(|cause| TargetError::Passthrough {
        name: name(),
        cause: format!("the device does not tell its namespace ({cause})"),
        remedy: format!("measure {}", namespace.block_device),
    })?;
    if id != namespace.id {
        return Err(TargetError::Changed { name: name(), what: "it is another namespace" });
    }
    let claims = opening.writes && !opening.claimed && !opening.overwrite.destroys_in_use(target);
    let claim = match claims.then(|| host::nvme::claim(namespace)) {
        None => None,
        Some(Ok(claim)) => Some(Arc::new(claim)),
        Some(Err(cause)) if cause.raw_os_error() == Some(libc::EBUSY) => {
            let device = namespace.block_device.clone();
            return Err(TargetError::InUse {
                name: name(),
                uses: Vec::from([InUse::Exclusive { device }]),
            });
        }
        Some(Err(cause)) => {
            return Err(TargetError::Passthrough {
                name: name(),
                cause: format!(
                    "{}, which has the same data, cannot be claimed ({cause})",
                    namespace.block_device
                ),
                remedy: "see that its node is there and that this user may read it".to_owned(),
            });
        }
    };
    Ok(Passthrough {
        namespace: id,
        block_shift: namespace.logical_block.0.trailing_zeros(),
        force_unit_access: opening.access.is_durable(),
        _claim: claim,
    })
}

fn open_with(
    target: &Target,
    opening: &Opening,
    (found, flags): (&File, i32),
) -> Result<File, TargetError> {
    let try_open = |flags| {
        found::reopen(
            (found, Path::new(&target.path)),
            OpenOptions::new().read(true).write(opening.writes),
            flags,
        )
    };
    try_open(flags).map_err(|cause| {
        let only_direct = flags & libc::O_DIRECT != 0
            && cause.raw_os_error() == Some(libc::EINVAL)
            && try_open(flags & !libc::O_DIRECT).is_ok();
        match only_direct {
            true => TargetError::DirectUnsupported {
                name: target.name.clone(),
                file_system: target.file_system.as_ref().map(|found| found.kind.clone()),
            },
            false => failed_to_open(target, opening, cause),
        }
    })
}

/// The meaning of a failure to open a target.
fn failed_to_open(target: &Target, opening: &Opening, cause: io::Error) -> TargetError {
    let name = target.name.clone();
    let what = if opening.writes { "write" } else { "read" };
    let mount_point = target.file_system.as_ref().map(|found| found.mount_point.clone());
    match cause.raw_os_error() {
        Some(libc::ENOENT) => TargetError::Missing { name },
        Some(libc::EACCES | libc::EPERM) => TargetError::Denied { name, what },
        Some(libc::EROFS) => TargetError::ReadOnly { name, mount_point },
        Some(libc::EISDIR) => TargetError::Folder { name },
        Some(libc::ENXIO | libc::ENODEV | libc::ENOMEDIUM) => TargetError::NoDevice { name, cause },
        Some(libc::EBUSY) => {
            let device = target.path.clone();
            TargetError::InUse { name, uses: Vec::from([InUse::Exclusive { device }]) }
        }
        _ => TargetError::Open { name, cause },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fathom_core::Bytes;

    const NOTHING: Overwrite = Overwrite {
        allowed: false,
        made: Vec::new(),
        destroy: Vec::new(),
        destroy_in_use: Vec::new(),
    };
    const READ: Opening =
        Opening { access: Access::DIRECT, writes: false, claimed: false, overwrite: NOTHING };

    fn file() -> Target {
        Target {
            kind: TargetKind::File,
            direct_alignment: Some(Bytes(512)),
            ..Target::simulated("data", Bytes(1 << 20))
        }
    }

    #[test]
    fn what_the_kernel_answers_becomes_an_error_that_users_understand() {
        let meaning = |errno, writes| {
            let opening = Opening { writes, ..READ };
            let cause = io::Error::from_raw_os_error(errno);
            failed_to_open(&file(), &opening, cause).to_string()
        };
        for (errno, writes, part) in [
            (libc::ENOENT, false, "fathom prepare data"),
            (libc::EACCES, false, "data: this user may not read it"),
            (libc::EPERM, true, "data: this user may not write it"),
            (libc::EROFS, true, "read-only"),
            (libc::EISDIR, true, "is a folder"),
            (libc::ENXIO, false, "no device behind it"),
            (libc::ENOMEDIUM, false, "insert"),
            (libc::EBUSY, true, "another program has claimed"),
            (libc::ETXTBSY, true, "running program or swap"),
            (libc::EMFILE, false, "ulimit -n"),
            (libc::EIO, false, "dmesg"),
        ] {
            let text = meaning(errno, writes);
            assert!(text.contains("data") && text.contains(part), "{text}");
        }
    }
}
