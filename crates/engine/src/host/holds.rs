//! The content of a device, for a user who is asked whether it may be lost: the signatures that
//! fathom knows, and the knowledge of the system. An empty answer does not allow anything.

use std::path::Path;
use std::process::{Command, Stdio};

use fathom_core::facts::{InUse, Target};

use super::system::{Number, System};

/// The place of util-linux's blkid. It knows more signatures than fathom does.
const BLKID: [&str; 2] = ["/usr/sbin/blkid", "/sbin/blkid"];

/// The content that is found on a device, such as "/dev/sdb1: ext4", the signatures that fathom
/// knows first.
pub(super) fn of(system: &System, target: &Target) -> Vec<String> {
    let marks = target.in_use.iter().filter_map(|one| match one {
        InUse::Signature { device, kind } => Some(format!("{device}: {kind}")),
        _ => None,
    });
    let mut found: Vec<String> = marks.collect();
    let number = target.layers.first().and_then(|layer| layer.device);
    let path = target.namespace.as_ref().map_or(&target.path, |one| &one.block_device);
    let known = number.map_or_else(Vec::new, |number| by_udev(system, number));
    let (whose, known) = match known.is_empty() {
        true => ("blkid", by_blkid(Path::new(path))),
        false => ("udev", known),
    };
    let is_new = |kind: &String| !found.iter().any(|one| one.ends_with(&format!(": {kind}")));
    let new: Vec<String> = known.into_iter().filter(is_new).collect();
    found.extend(new.into_iter().map(|kind| format!("{path}: {kind}, as {whose} says")));
    found
}

/// The content of udev's database, which is updated when a device appears and when it is closed
/// after a write.
fn by_udev(system: &System, (major, minor): Number) -> Vec<String> {
    let text = system.text(format!("run/udev/data/b{major}:{minor}")).unwrap_or_default();
    values(&text, "E:ID_FS_TYPE=", "E:ID_PART_TABLE_TYPE=")
}

/// The result of blkid, which examines the device now.
fn by_blkid(path: &Path) -> Vec<String> {
    let Some(program) = BLKID.iter().find(|program| Path::new(program).exists()) else {
        return Vec::new();
    };
    let mut command = Command::new(program);
    command.args(["-p", "-o", "export", "--"]).arg(path).stdin(Stdio::null());
    // If it cannot tell, the message says that this proves nothing.
    let Ok(output) = command.output() else { return Vec::new() };
    values(&String::from_utf8_lossy(&output.stdout), "TYPE=", "PTTYPE=")
}

/// The kinds that lines with these beginnings name: of a file system or the like, of a partition
/// table.
fn values(text: &str, kind: &str, table: &str) -> Vec<String> {
    let kinds = text.lines().filter_map(|line| line.strip_prefix(kind)).map(str::to_owned);
    let tables = text.lines().filter_map(|line| line.strip_prefix(table));
    kinds.chain(tables.map(|name| format!("{name} partition table"))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_blkid_and_udev_say_is_read() {
        let text = "DEVNAME=/dev/loop0\nUUID=5\nTYPE=ufs\nUSAGE=filesystem\nPTTYPE=sun\n";
        assert_eq!(values(text, "TYPE=", "PTTYPE="), ["ufs", "sun partition table"]);
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(folder.path().join("run/udev/data")).unwrap();
        let entry = "S:disk/by-id/x\nE:ID_FS_TYPE=VMFS_volume_member\n";
        std::fs::write(folder.path().join("run/udev/data/b8:16"), entry).unwrap();
        assert_eq!(by_udev(&System::at(folder.path()), (8, 16)), ["VMFS_volume_member"]);
        assert_eq!(by_udev(&System::at(folder.path()), (8, 17)), [""; 0]);
    }
}
