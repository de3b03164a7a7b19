//! The identity of a target, beyond its name: the disk that is called /dev/sdb after a reboot may
//! be another one. Only properties that stay the same across reboots are used.

use std::fs;

use fathom_core::facts::{LayerKind, Target};

/// The files in which the kernel identifies a block device, the best first.
const ATTRIBUTES: [&str; 9] = [
    "wwid",
    "device/wwid",
    "device/serial",
    "serial",
    "dm/uuid",
    "md/uuid",
    "loop/backing_file",
    "device/model",
    "partition",
];

/// A target's identity in words; empty if it is unknown.
pub fn of(target: &Target) -> String {
    let mut parts = Vec::new();
    if let Some(identity) = target.identity {
        parts.push(format!("inode {}", identity.inode));
        // An inode's number may be reused; its time of birth is not.
        parts.extend(identity.birth());
    }
    // A partition is a number on the disk below it.
    for layer in &target.layers {
        parts.extend(attributes(&layer.name));
        if layer.kind != LayerKind::Partition {
            break;
        }
    }
    parts.join(", ")
}

/// The kernel's identification of a block device.
fn attributes(name: &str) -> impl Iterator<Item = String> + '_ {
    ATTRIBUTES.iter().filter_map(move |attribute| {
        // A directory of sysfs has '!' where the device's name has '/'.
        let path = format!("/sys/class/block/{}/{attribute}", name.replace('/', "!"));
        let value = fs::read_to_string(path).ok()?;
        let value = value.split_whitespace().collect::<Vec<_>>().join(" ");
        (!value.is_empty()).then(|| format!("{attribute} {value}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use fathom_core::Bytes;

    #[test]
    fn another_file_of_the_same_name_is_another_target() {
        let folder = tempfile::tempdir_in("/var/tmp").unwrap();
        let path = folder.path().join("a");
        assert_eq!(of(&Target::simulated("sim:queue", Bytes(1))), "");
        let look = || of(&fathom_engine::host::target(&path).unwrap());
        fs::write(&path, "1").unwrap();
        let first = look();
        assert!(first.starts_with("inode "), "{first}");
        assert_eq!(look(), first);
        // The inode number of a deleted file is reused for the next file.
        fs::remove_file(&path).unwrap();
        fs::write(&path, "2").unwrap();
        assert_ne!(look(), first);
    }
}
