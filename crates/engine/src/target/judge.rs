//! Which targets may be written to, by the user's consent and by the facts before a target is
//! opened.

use std::fs;
use std::path::Path;

use fathom_core::facts::{FileIdentity, InUse, Target, TargetKind};
use fathom_core::spec::Cache;

use super::Opening;
use crate::host;
use crate::open_target::OpenTarget;
use crate::target_error::TargetError;

/// The user's consent to writes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Overwrite {
    /// Whether existing files among the targets may be overwritten.
    pub allowed: bool,
    /// Files that may be overwritten because fathom made them, identified by their inodes.
    pub made: Vec<FileIdentity>,
    /// Targets that may be destroyed with any content, as long as they are not in use.
    pub destroy: Vec<String>,
    /// Targets that may be destroyed even though they are in use, or may be in use unseen.
    pub destroy_in_use: Vec<String>,
}

impl Overwrite {
    /// Whether this file may be overwritten, as long as it is not in use.
    pub fn allows(&self, file: &Target) -> bool {
        let made = file.identity.is_some_and(|identity| self.made.contains(&identity));
        self.allowed || made || self.destroys(file)
    }

    /// Whether the user repeated this target's name, or another name of the same thing.
    pub(super) fn destroys(&self, target: &Target) -> bool {
        names(&self.destroy, target) || self.destroys_in_use(target)
    }

    /// The same for a target that is in use.
    pub(super) fn destroys_in_use(&self, target: &Target) -> bool {
        names(&self.destroy_in_use, target)
    }
}

fn names(names: &[String], target: &Target) -> bool {
    names.iter().any(|name| {
        *name == target.name
            || fs::canonicalize(name).is_ok_and(|path| path == Path::new(&target.path))
    })
}

/// Checks whether a target that is open for writing, and that had no users when it was judged, is
/// in use by now.
///
/// # Errors
///
/// When it is in use without the user's consent, or this cannot be told any more.
pub fn judge_again(
    target: &Target,
    open: &OpenTarget,
    overwrite: &Overwrite,
) -> Result<(), TargetError> {
    if overwrite.destroys_in_use(target) {
        return Ok(());
    }
    let name = || target.name.clone();
    let uses = host::uses_of_open(target, &open.file)
        .map_err(|cause| TargetError::Open { name: name(), cause })?;
    match uses.is_empty() {
        true => Ok(()),
        false => Err(TargetError::InUse { name: name(), uses }),
    }
}

/// Decides from the facts, before anything is opened.
///
/// # Errors
///
/// When the target cannot be opened in this way, or must not be written to.
pub fn judge(target: &Target, opening: &Opening) -> Result<(), TargetError> {
    let name = || target.name.clone();
    match target.kind {
        TargetKind::Folder => return Err(TargetError::Folder { name: name() }),
        TargetKind::Simulated => {
            return Err(TargetError::Special { name: name(), what: "a simulated device" });
        }
        TargetKind::NvmeGeneric if opening.access.cache == Cache::Buffered => {
            return Err(TargetError::Passthrough {
                name: name(),
                cause: "there is no page cache on their way".to_owned(),
                remedy: "drop --buffered, or measure the block device".to_owned(),
            });
        }
        TargetKind::CharacterDevice if opening.writes && target.path != "/dev/null" => {
            return Err(TargetError::Special {
                name: name(),
                what: "a character device, and writing to it measures nothing",
            });
        }
        _ => {}
    }
    if target.size.0 == 0 {
        return Err(TargetError::Empty { name: name(), kind: target.kind });
    }
    if !opening.writes || target.kind == TargetKind::CharacterDevice {
        return Ok(());
    }
    if let Some(found) = target.file_system.as_ref().filter(|found| found.read_only) {
        let mount_point = Some(found.mount_point.clone());
        return Err(TargetError::ReadOnly { name: name(), mount_point });
    }
    let number = target.layers.first().and_then(|layer| layer.device);
    let is_device = matches!(target.kind, TargetKind::BlockDevice | TargetKind::NvmeGeneric);
    if is_device && number.is_some_and(host::is_read_only) {
        return Err(TargetError::ReadOnly { name: name(), mount_point: None });
    }
    let uses: Vec<InUse> = target.uses().cloned().collect();
    if !uses.is_empty() && !opening.overwrite.destroys_in_use(target) {
        return Err(TargetError::InUse { name: name(), uses });
    }
    // No list of signatures is complete: with or without a finding, a device needs its name in the
    // consent.
    let allowed = match is_device {
        true => opening.overwrite.destroys(target),
        false => opening.overwrite.allows(target),
    };
    match allowed {
        true => Ok(()),
        false => Err(TargetError::NotNamed {
            name: name(),
            kind: target.kind,
            holds: host::holds(target),
        }),
    }
}
