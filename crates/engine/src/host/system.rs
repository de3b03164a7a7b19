//! The source of the facts: /proc, /sys and /etc under one root, so that a machine with arrays,
//! volumes and disks that this one lacks can be laid out in a folder and tested.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use fathom_core::Bytes;

/// Major and minor number.
pub(crate) type Number = (u32, u32);

/// A machine's /proc, /sys and /etc.
#[derive(Clone, Debug)]
pub(crate) struct System {
    root: PathBuf,
}

impl System {
    /// This machine.
    pub(crate) fn real() -> Self {
        Self { root: PathBuf::from("/") }
    }

    /// Whether it is this machine, so that facts that do not come from files apply to it too.
    pub(crate) fn is_real(&self) -> bool {
        self.root == Path::new("/")
    }

    /// The machine that is laid out in a folder.
    #[cfg(test)]
    pub(crate) fn at(root: &Path) -> Self {
        Self { root: root.to_owned() }
    }

    /// The path on this machine of a path on that machine.
    pub(crate) fn path(&self, path: impl AsRef<Path>) -> PathBuf {
        let path = path.as_ref();
        self.root.join(path.strip_prefix("/").unwrap_or(path))
    }

    /// The content of a small file, without the white space around it.
    pub(crate) fn text(&self, path: impl AsRef<Path>) -> Option<String> {
        read_text(&self.path(path))
    }

    /// The names in a folder, sorted; none if it cannot be read.
    pub(crate) fn names(&self, folder: impl AsRef<Path>) -> Vec<String> {
        read_names(&self.path(folder))
    }

    /// The number of the block device with this path, such as "/dev/sda1".
    pub(crate) fn number_of(&self, path: &str) -> Option<Number> {
        if let Ok(metadata) = fs::metadata(self.path(path)) {
            return metadata.file_type().is_block_device().then(|| split_number(metadata.rdev()));
        }
        // The node may be missing in a container, and is missing in a laid-out machine: the name
        // decides.
        let name = path.strip_prefix("/dev/")?;
        let by_name = self.path("sys/class/block").join(name.replace('/', "!"));
        DeviceFolder::at(&by_name).map(|device| device.number).or_else(|| {
            let mapped = name.strip_prefix("mapper/")?;
            self.block_devices().into_iter().find_map(|device| {
                (device.text("dm/name").as_deref() == Some(mapped)).then_some(device.number)
            })
        })
    }

    /// Every whole block device.
    pub(crate) fn block_devices(&self) -> Vec<DeviceFolder> {
        let folder = self.path("sys/block");
        read_names(&folder).iter().filter_map(|name| DeviceFolder::at(&folder.join(name))).collect()
    }

    /// The device with this number.
    pub(crate) fn device(&self, (major, minor): Number) -> Option<DeviceFolder> {
        let by_number = self.path(format!("sys/dev/block/{major}:{minor}"));
        DeviceFolder::at(&by_number).or_else(|| self.in_class("sys/class/block", (major, minor)))
    }

    /// The folder of the NVMe generic device with this number.
    pub(crate) fn nvme_generic(&self, (major, minor): Number) -> Option<DeviceFolder> {
        let by_number = self.path(format!("sys/dev/char/{major}:{minor}"));
        DeviceFolder::at(&by_number)
            .or_else(|| self.in_class("sys/class/nvme-generic", (major, minor)))
    }

    /// The device of a class with this number. Container runtimes such as Podman hide the folders of
    /// /sys/dev, which have the numbers, but not the classes.
    fn in_class(&self, class: &str, number: Number) -> Option<DeviceFolder> {
        // File systems without a device have the major number 0.
        if number.0 == 0 {
            return None;
        }
        let folder = self.path(class);
        let names = read_names(&folder).into_iter();
        let mut devices = names.filter_map(|name| DeviceFolder::at(&folder.join(name)));
        devices.find(|device| device.number == number)
    }
}

/// A device's folder in sysfs, usually a block device's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DeviceFolder {
    /// The folder, with every link resolved.
    pub(crate) folder: PathBuf,
    /// The kernel's name.
    pub(crate) name: String,
    /// Major and minor number.
    pub(crate) number: Number,
}

impl DeviceFolder {
    /// The device whose folder, or link to it, this is.
    pub(crate) fn at(link: &Path) -> Option<Self> {
        let folder = fs::canonicalize(link).ok()?;
        let number = parse_number(&read_text(&folder.join("dev"))?)?;
        // sysfs writes the slash in names such as cciss/c0d0 as an exclamation mark.
        let name = folder.file_name()?.to_str()?.replace('!', "/");
        Some(Self { folder, name, number })
    }

    /// The content of an attribute.
    pub(crate) fn text(&self, attribute: &str) -> Option<String> {
        read_text(&self.folder.join(attribute)).filter(|text| !text.is_empty())
    }

    /// The content of an attribute, as a number.
    pub(crate) fn parse<T: FromStr>(&self, attribute: &str) -> Option<T> {
        self.text(attribute)?.parse().ok()
    }

    /// Its size; sysfs counts in units of 512 bytes, independent of the sectors.
    pub(crate) fn size(&self) -> Bytes {
        Bytes(self.parse::<u64>("size").unwrap_or(0).saturating_mul(512))
    }

    /// Whether a folder or file of this name is in its folder.
    pub(crate) fn has(&self, attribute: &str) -> bool {
        self.folder.join(attribute).exists()
    }

    /// The devices to which the links in a folder lead: "slaves" or "holders".
    pub(crate) fn linked(&self, folder: &str) -> Vec<Self> {
        let folder = self.folder.join(folder);
        read_names(&folder).iter().filter_map(|name| Self::at(&folder.join(name))).collect()
    }

    /// Its partitions.
    pub(crate) fn partitions(&self) -> Vec<Self> {
        let mut partitions: Vec<Self> = read_names(&self.folder)
            .iter()
            .map(|name| self.folder.join(name))
            .filter(|folder| folder.join("partition").exists())
            .filter_map(|folder| Self::at(&folder))
            .collect();
        partitions.sort_by_key(|partition| partition.parse::<u32>("partition"));
        partitions
    }

    /// The disk that it is a partition of.
    pub(crate) fn disk(&self) -> Option<Self> {
        if !self.has("partition") {
            return None;
        }
        Self::at(self.folder.parent()?)
    }

    /// Whether two partitions of a disk have sectors in common, such as those of a BSD label and
    /// the partition that holds it, or those of a wrong table.
    pub(crate) fn overlaps(&self, other: &Self) -> bool {
        let sectors = |device: &Self| {
            let start: u64 = device.parse("start")?;
            Some(start..start.saturating_add(device.parse("size")?))
        };
        match (sectors(self), sectors(other)) {
            (Some(one), Some(two)) => one.start.max(two.start) < one.end.min(two.end),
            _ => false,
        }
    }

    /// Its usual name: /dev/mapper/NAME for the device mapper, otherwise the kernel's name.
    pub(crate) fn dev_path(&self) -> String {
        match self.text("dm/name") {
            Some(name) => format!("/dev/mapper/{name}"),
            None => format!("/dev/{}", self.name),
        }
    }
}

/// Opens the node of a device for reading, if it is the node of that device.
pub(crate) fn open_device(path: &Path, device: &DeviceFolder, flags: i32) -> io::Result<File> {
    let file = OpenOptions::new().read(true).custom_flags(flags | libc::O_NONBLOCK).open(path)?;
    let metadata = file.metadata()?;
    let same =
        metadata.file_type().is_block_device() && split_number(metadata.rdev()) == device.number;
    if same { Ok(file) } else { Err(io::Error::other("it is not the node of this device")) }
}

/// Splits a device number as stat has it.
pub(crate) fn split_number(number: u64) -> Number {
    (rustix::fs::major(number), rustix::fs::minor(number))
}

/// Reads "8:1".
pub(crate) fn parse_number(text: &str) -> Option<Number> {
    let (major, minor) = text.trim().split_once(':')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

/// The content of a small file, without the white space around it.
pub(crate) fn read_text(path: &Path) -> Option<String> {
    let bytes = fs::read(path).ok()?;
    Some(
        String::from_utf8_lossy(&bytes)
            .trim_matches(|c: char| c.is_whitespace() || c == '\0')
            .to_owned(),
    )
}

/// The names in a folder, sorted so that numbers count: sda2 before sda10.
pub(crate) fn read_names(folder: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let mut names: Vec<String> =
        entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect();
    names.sort_by_key(|name| {
        let digits = name.len() - name.trim_end_matches(|c: char| c.is_ascii_digit()).len();
        let (stem, number) = name.split_at(name.len() - digits);
        (stem.to_owned(), number.parse::<u64>().unwrap_or(0))
    });
    names
}
