//! Who uses a device or a file: what forbids writing to it.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::Path;

use fathom_core::facts::InUse;

use super::mounts::{Mount, mounts, unescape};
use super::signature::signatures;
use super::stack::btrfs;
use super::system::{Device, System, split_number};

/// How deep devices are looked for that are made of other devices.
const DEPTH: u32 = 16;

/// Who uses a block device. Its partitions count for a disk; for a partition its disk counts, but
/// not the disk's other partitions. `path` is where the device itself can be opened.
pub(crate) fn of_device(system: &System, device: &Device, path: &Path) -> Vec<InUse> {
    let mut usage = Usage { system, mounts: mounts(system), found: Vec::new() };
    usage.device(device, 0);
    if let Some(disk) = device.disk() {
        usage.itself(&disk, 0);
    }
    let claimed = !usage.found.is_empty();
    usage.found.extend(unseen(system, &device.dev_path(), "proc/self/mountinfo", "is mounted"));
    usage.found.extend(marks(system, device, path));
    // Only asked when nothing explains it: asking claims the device for a moment.
    if !claimed && is_claimed(path, device) {
        usage.found.push(InUse::Exclusive { device: device.dev_path() });
    }
    usage.found
}

/// What cannot be seen because a file or folder of the kernel's is not there, as where /proc is not
/// mounted: it is not taken for nothing.
fn unseen(system: &System, name: &str, place: &str, what: &str) -> Option<InUse> {
    let cause = fs::metadata(system.path(place)).err()?;
    Some(InUse::Unknown {
        device: name.to_owned(),
        why: format!("whether it {what} stands in /{place}: {}", without_number(&cause)),
    })
}

/// The marks that a device and its partitions carry.
fn marks(system: &System, device: &Device, path: &Path) -> Vec<InUse> {
    let mut found = marks_of(device, path);
    for partition in device.partitions() {
        let path = system.path(format!("/dev/{}", partition.name));
        found.extend(marks_of(&partition, &path));
    }
    found
}

/// A device that cannot be read is not one without marks: it may hold anything.
fn marks_of(device: &Device, path: &Path) -> Vec<InUse> {
    let unknown = |cause: &io::Error| InUse::Unknown {
        device: device.dev_path(),
        why: format!("{}: {}", path.display(), without_number(cause)),
    };
    let file = match open_device(path, device, 0) {
        Ok(file) => file,
        Err(cause) => return Vec::from([unknown(&cause)]),
    };
    let (kinds, failure) = signatures(&file, device.size().0);
    kinds
        .into_iter()
        .map(|kind| InUse::Signature { device: device.dev_path(), kind: kind.to_owned() })
        .chain(failure.as_ref().map(unknown))
        .collect()
}

/// What the system says, without Rust's "(os error 5)".
fn without_number(cause: &io::Error) -> String {
    let text = cause.to_string();
    text.split(" (os error").next().unwrap_or_default().to_owned()
}

/// Who uses a regular file: swap, or a loop device that presents it as a disk. A file may have
/// several names (hard links, bind mounts): what counts is which file they lead to.
pub(crate) fn of_file(system: &System, path: &Path, file: Option<&Metadata>) -> Vec<InUse> {
    let name = path.to_string_lossy();
    // A swap file that cannot be seen from here needs no guess: the kernel itself refuses every
    // write to an active one, whatever its name.
    let swap = swaps(system)
        .into_iter()
        .filter(|swap| is_same(system, (&name, file), swap) == Some(true))
        .map(|_| InUse::Swap { device: name.to_string() });
    let loops = system.block_devices().into_iter().filter_map(|device| {
        let backing = device.text("loop/backing_file")?;
        match is_same(system, (&name, file), &backing) {
            Some(true) => {
                Some(InUse::Holder { device: name.to_string(), holder: device.dev_path() })
            }
            Some(false) => None,
            None => may_back(&device, file?.len()).then(|| InUse::Unknown {
                device: name.to_string(),
                why: format!(
                    "{} is a file of just this size, {backing}, which is not to be found",
                    device.dev_path()
                ),
            }),
        }
    });
    swap.chain(loops).chain(unseen(system, &name, "sys/block", "backs a loop device")).collect()
}

/// Whether another name leads to the same file; none if nothing can be found there.
fn is_same(system: &System, (name, file): (&str, Option<&Metadata>), other: &str) -> Option<bool> {
    if name == other {
        return Some(true);
    }
    let other = fs::metadata(system.path(other)).ok()?;
    Some((other.dev(), other.ino()) == file.map(|file| (file.dev(), file.ino()))?)
}

/// Whether a loop device, whose file was removed or is in another mount namespace, may be one over
/// a file of this length. A file that was removed may live on under another name, so not to be found
/// proves nothing, and nothing stops a write behind a loop device's back. That every file were
/// suspected would forbid writing on any machine with such a device: only those are that fit.
fn may_back(device: &Device, length: u64) -> bool {
    let offset = device.parse::<u64>("loop/offset").unwrap_or(0);
    let limit = device.parse::<u64>("loop/sizelimit").unwrap_or(0);
    let rest = length.saturating_sub(offset);
    let shown = if limit == 0 { rest } else { rest.min(limit) };
    0 < shown && shown - shown % 512 == device.size().0
}

struct Usage<'a> {
    system: &'a System,
    mounts: Vec<Mount>,
    found: Vec<InUse>,
}

impl Usage<'_> {
    /// A device, its partitions, and what is made of them.
    fn device(&mut self, device: &Device, depth: u32) {
        self.itself(device, depth);
        for partition in device.partitions() {
            self.itself(&partition, depth);
        }
    }

    fn itself(&mut self, device: &Device, depth: u32) {
        for mount_point in self.mount_points(device) {
            self.add(InUse::Mounted { device: device.dev_path(), mount_point });
        }
        let is_swap = |path: &String| self.system.number_of(path) == Some(device.number);
        if swaps(self.system).iter().any(is_swap) {
            self.add(InUse::Swap { device: device.dev_path() });
        }
        // The kernel does not note a loop device among the holders of what it shows.
        let holders = device.linked("holders").into_iter().chain(self.loops_over(device));
        for holder in holders {
            self.add(InUse::Holder { device: device.dev_path(), holder: holder.dev_path() });
            if depth < DEPTH {
                self.device(&holder, depth + 1);
            }
        }
    }

    /// The loop devices that show a block device, or a part of it, mounted or not.
    fn loops_over(&self, device: &Device) -> Vec<Device> {
        let shows = |one: &Device| {
            let backing = one.text("loop/backing_file");
            backing.is_some_and(|path| self.system.number_of(&path) == Some(device.number))
        };
        self.system.block_devices().into_iter().filter(shows).collect()
    }

    fn add(&mut self, usage: InUse) {
        if !self.found.contains(&usage) {
            self.found.push(usage);
        }
    }

    /// Where it is mounted, once for each file system on it.
    fn mount_points(&self, device: &Device) -> Vec<String> {
        let uses = |mount: &&Mount| {
            mount.device == device.number
                || mount.device.0 == 0 && mount.source_devices(self.system).contains(&device.number)
        };
        if let Some(mount) = self.mounts.iter().find(uses) {
            return Vec::from([mount.point.clone()]);
        }
        // Of a btrfs on several devices mountinfo names only one.
        let file_system = btrfs(self.system)
            .into_iter()
            .find(|fs| fs.members.iter().any(|member| member.number == device.number));
        let Some(file_system) = file_system else { return Vec::new() };
        let uses = |mount: &&Mount| {
            let sources = mount.source_devices(self.system);
            file_system.members.iter().any(|member| sources.contains(&member.number))
        };
        let point = self.mounts.iter().find(uses).map(|mount| mount.point.clone());
        Vec::from([point.unwrap_or_else(|| "a place that cannot be seen from here".to_owned())])
    }
}

/// The files and devices that are swapped to.
fn swaps(system: &System) -> Vec<String> {
    let text = system.text("proc/swaps").unwrap_or_default();
    let path = |line: &str| line.split_whitespace().next().map(unescape);
    text.lines().skip(1).filter_map(path).collect()
}

/// Opens the node of a device to read, if that is the device that it stands for.
fn open_device(path: &Path, device: &Device, flags: i32) -> io::Result<File> {
    let file = OpenOptions::new().read(true).custom_flags(flags | libc::O_NONBLOCK).open(path)?;
    let metadata = file.metadata()?;
    let same =
        metadata.file_type().is_block_device() && split_number(metadata.rdev()) == device.number;
    if same { Ok(file) } else { Err(io::Error::other("it is not the node of this device")) }
}

fn is_claimed(path: &Path, device: &Device) -> bool {
    open_device(path, device, libc::O_EXCL)
        .is_err_and(|cause| cause.raw_os_error() == Some(libc::EBUSY))
}
