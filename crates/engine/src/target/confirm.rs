//! Compares the opened target with the judged one: it may have been replaced in between.

use std::fs::File;
use std::io::{Seek, SeekFrom};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::sync::{Mutex, PoisonError};

use fathom_core::facts::{FileIdentity, OverlayLayer, Target, TargetKind};

use crate::target_error::TargetError;
use crate::{found, host};

/// Compares the present file with the examined one.
pub(super) fn confirm(target: &Target, found: &File) -> Result<(), TargetError> {
    let failed = |cause| TargetError::Open { name: target.name.clone(), cause };
    let metadata = found.metadata().map_err(failed)?;
    let identity = found::identity(found).map_err(failed)?;
    let changed = |what| Err(TargetError::Changed { name: target.name.clone(), what });
    let kind = metadata.file_type();
    match target.kind {
        TargetKind::BlockDevice => {
            let number = metadata.rdev();
            let number = (rustix::fs::major(number), rustix::fs::minor(number));
            if !kind.is_block_device() {
                return changed("it was a block device");
            }
            if target.layers.first().and_then(|layer| layer.device) != Some(number) {
                return changed("it is another device");
            }
        }
        TargetKind::NvmeGeneric => {
            let number = metadata.rdev();
            let number = (rustix::fs::major(number), rustix::fs::minor(number));
            let same = target.namespace.as_ref().is_some_and(|it| it.device == number);
            if !kind.is_char_device() || !same {
                return changed("it is another device");
            }
        }
        TargetKind::CharacterDevice
            if !kind.is_char_device() || !host::is_calibration_device(metadata.rdev()) =>
        {
            return changed("it is another device");
        }
        TargetKind::File if !kind.is_file() => return changed("it was a file"),
        TargetKind::File
            if target.identity != Some(identity) && copy_of(target) != Some(identity) =>
        {
            return changed("another file has taken its place");
        }
        TargetKind::File if metadata.len() < target.size.0 => {
            return changed("it has become smaller");
        }
        _ => {}
    }
    Ok(())
}

/// Compares the opened disk with the examined one. Only an open disk can be queried, and while it
/// is open no other disk gets its device number.
pub(super) fn confirm_disk(target: &Target, file: &File) -> Result<(), TargetError> {
    let changed = |what| Err(TargetError::Changed { name: target.name.clone(), what });
    if target.kind != TargetKind::BlockDevice {
        return Ok(());
    }
    if target.disk_sequence.is_some() && host::sequence::of_open(file) != target.disk_sequence {
        return changed("another disk has got its device number");
    }
    let size = { file }.seek(SeekFrom::End(0));
    match size {
        Ok(size) if size == target.size.0 => Ok(()),
        Ok(_) => changed("it has another size"),
        Err(cause) => Err(TargetError::Open { name: target.name.clone(), cause }),
    }
}

/// The copies of files in an overlay's lower layer that this process made by opening them for
/// writing: a file has another identity after it was copied up, and the present file has to be that
/// copy.
static COPIES: Mutex<Vec<(FileIdentity, FileIdentity)>> = Mutex::new(Vec::new());

/// The copy of a file of a lower layer that this process has made.
fn copy_of(target: &Target) -> Option<FileIdentity> {
    let copies = COPIES.lock().unwrap_or_else(PoisonError::into_inner);
    copies.iter().find(|(was, _)| target.identity == Some(*was)).map(|(_, is)| *is)
}

/// Records the identity of a file after it was opened for writing. Its handle was judged before,
/// and follows the file to its copy.
pub(super) fn note_copy(target: &Target, found: &File) -> Result<(), TargetError> {
    let failed = |cause| TargetError::Open { name: target.name.clone(), cause };
    let now = found::identity(found).map_err(failed)?;
    if let Some(was) = target.identity.filter(|was| *was != now && copy_of(target).is_none()) {
        COPIES.lock().unwrap_or_else(PoisonError::into_inner).push((was, now));
    }
    Ok(())
}

/// Whether a file is copied to another place before the first write to it.
pub(super) fn is_copied_up(target: &Target) -> bool {
    let layer = target.file_system.as_ref().and_then(|found| found.overlay);
    layer == Some(OverlayLayer::Lower)
}
