//! The users of a device or a file, which forbid writing to it.

use std::collections::BTreeSet;
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use fathom_core::facts::InUse;
use rustix::fs::statfs;

use super::loops::{Backing, LoopDevice, Shown, loops};
use super::mounts::{Mount, mounts, unescape};
use super::signature::signatures;
use super::stack::btrfs;
use super::system::{DeviceFolder, Number, System, open_device, split_number};

/// How deep the search goes into devices that are made of other devices.
const DEPTH: u32 = 16;

/// The users of a block device. Its partitions count for a disk; for a partition its disk counts,
/// but not the disk's other partitions. `path` is where the device itself can be opened.
pub(crate) fn of_device(system: &System, device: &DeviceFolder, path: &Path) -> Vec<InUse> {
    let mut usage = Usage::new(system);
    usage.whole(device);
    usage.below(device, 0);
    let claimed = !usage.found.is_empty();
    let name = device.dev_path();
    usage.found.extend(unseen(system, &name, "proc/self/mountinfo", "is mounted", PROC));
    usage.found.extend(unseen_loops(system, &name));
    usage.found.extend(marks(system, device, path));
    // Only asked if nothing explains it: asking claims the device for a moment.
    if !claimed && is_claimed(path, device) {
        usage.found.push(InUse::Exclusive { device: device.dev_path() });
    }
    usage.found
}

/// The users of a block device that this process has open, and perhaps claimed: no one else can
/// claim it then, but other devices may show its content, such as a loop device, which claims
/// nothing.
pub(crate) fn of_open_device(system: &System, device: &DeviceFolder) -> Vec<InUse> {
    let mut usage = Usage::new(system);
    usage.whole(device);
    usage.below(device, 0);
    usage.found
}

/// The numbers of procfs and sysfs in statfs, from linux/magic.h.
const PROC: i64 = 0x9fa0;
const SYS: i64 = 0x6265_6572;

/// The obstacle if a file or folder of the kernel's is missing, for example because /proc is not
/// mounted or is covered by another mount: a missing answer does not count as "no users".
fn unseen(system: &System, name: &str, place: &str, what: &str, magic: i64) -> Option<InUse> {
    let why = match statfs(system.path(place)) {
        Err(cause) => without_number(&cause.into()),
        Ok(found) if system.is_real() && found.f_type != magic => {
            "something else is mounted there".to_owned()
        }
        Ok(_) => return None,
    };
    let why = format!("whether it {what} stands in /{place}: {why}");
    Some(InUse::Unknown { device: name.to_owned(), why })
}

fn unseen_loops(system: &System, name: &str) -> Option<InUse> {
    unseen(system, name, "sys/block", "backs a loop device", SYS)
}

/// The signatures on a device and its partitions.
fn marks(system: &System, device: &DeviceFolder, path: &Path) -> Vec<InUse> {
    let mut found = marks_of(device, path);
    for partition in device.partitions() {
        let path = system.path(format!("/dev/{}", partition.name));
        found.extend(marks_of(&partition, &path));
    }
    found
}

/// A device that cannot be read does not count as one without signatures: it may hold anything.
fn marks_of(device: &DeviceFolder, path: &Path) -> Vec<InUse> {
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

/// The system's message, without Rust's "(os error 5)".
fn without_number(cause: &io::Error) -> String {
    let text = cause.to_string();
    text.split(" (os error").next().unwrap_or_default().to_owned()
}

/// The users of a regular file: swap, a loop device that presents it as a disk, or a file system
/// that is mounted from it without one. A file may have several names (hard links, bind mounts):
/// the file behind the names counts.
pub(crate) fn of_file(system: &System, path: &Path, file: Option<&Metadata>) -> Vec<InUse> {
    let name = path.to_string_lossy();
    // A swap file that cannot be seen from here is no danger: the kernel itself refuses every write
    // to an active one, under any name.
    let swap = swaps(system)
        .into_iter()
        .filter(|swap| is_same(system, (&name, file), swap))
        .map(|_| InUse::Swap { device: name.to_string() });
    let mounts = mounts(system);
    let mounted = mounted(system, &mounts, (&name, file));
    let this = file.map(|file| Candidate::of(system, &mounts, path, file));
    let loops = loops(system).into_iter().filter_map(|one| {
        let holder = one.device.dev_path();
        let unnamed = one.shows == Shown::Unknown && one.name == name;
        if unnamed || this.as_ref().is_some_and(|this| this.is_shown(&one.shows)) {
            return Some(InUse::Holder { device: name.to_string(), holder });
        }
        let fits = this.as_ref()?.may_be_shown(&mounts, &one);
        fits.then(|| InUse::Unknown {
            device: name.to_string(),
            why: format!("{holder} shows a file of just this size, and which one is unknown"),
        })
    });
    let what = "is mounted without a loop device";
    let unseen = unseen(system, &name, "proc/self/mountinfo", what, PROC);
    let unseen = unseen.into_iter().chain(unseen_loops(system, &name));
    swap.chain(mounted).chain(loops).chain(unseen).collect()
}

/// The mount points of file systems that keep their content in this file: EROFS reads images
/// without a loop device, and file systems in user space name their image as the source.
fn mounted(
    system: &System,
    mounts: &[Mount],
    (name, file): (&str, Option<&Metadata>),
) -> Vec<InUse> {
    let shows = |mount: &&Mount| {
        let mut images = mount.image_files();
        mount.device.0 == 0 && images.any(|image| is_same(system, (name, file), image))
    };
    let mounted = |mount: &Mount| InUse::Mounted {
        device: name.to_owned(),
        mount_point: mount.point.clone(),
    };
    mounts.iter().filter(shows).map(mounted).collect()
}

/// Whether a name leads to a file that has another name here.
fn is_same(system: &System, (name, file): (&str, Option<&Metadata>), other: &str) -> bool {
    let leads = || {
        let other = fs::metadata(system.path(other)).ok()?;
        Some((other.dev(), other.ino()) == file.map(|file| (file.dev(), file.ino()))?)
    };
    name == other || leads() == Some(true)
}

/// The properties of a file that are compared with the files of loop devices.
struct Candidate {
    file: Backing,
    /// Whether it is on an overlay.
    overlaid: bool,
    length: u64,
}

impl Candidate {
    fn of(system: &System, mounts: &[Mount], path: &Path, file: &Metadata) -> Self {
        let id = super::mount_id(&system.path(path));
        let mount = super::mount_of(mounts, path, id);
        Self {
            file: Backing::of(system, mounts, path, file),
            overlaid: mount.is_some_and(|mount| mount.kind == "overlay"),
            length: file.len(),
        }
    }

    /// Whether a loop device shows it, under this name, under another one, or through an overlay.
    fn is_shown(&self, shown: &Shown) -> bool {
        matches!(shown, Shown::File { file, .. } if file.is(&self.file))
    }

    /// Whether a loop device whose file is unknown, or lies on an overlay that cannot be followed,
    /// may be one over this file. A file that was removed may live on under another name, so a
    /// search without a result proves nothing, and nothing stops a write behind a loop device's
    /// back. But if every file were suspected, no file could be written on any machine with such a
    /// device: so only files that match are.
    fn may_be_shown(&self, mounts: &[Mount], one: &LoopDevice) -> bool {
        let certain = match one.shows {
            Shown::Device(_) => true,
            Shown::Unknown | Shown::File { by_name: true, .. } => false,
            Shown::File { file, .. } if file.inode.0 == self.file.inode.0 => true,
            Shown::File { file, .. } => {
                let number = split_number(file.inode.0);
                let mount = mounts.iter().find(|mount| mount.device == number);
                let followed = number.0 != 0
                    || file.real.is_some()
                    || mount.is_some_and(|mount| mount.kind != "overlay");
                followed && (!self.overlaid || self.file.real.is_some())
            }
        };
        let offset = one.device.parse::<u64>("loop/offset").unwrap_or(0);
        let limit = one.device.parse::<u64>("loop/sizelimit").unwrap_or(0);
        let rest = self.length.saturating_sub(offset);
        let shown = if limit == 0 { rest } else { rest.min(limit) } / 512 * 512;
        !certain && 0 < shown && shown == one.device.size().0
    }
}

struct Usage<'a> {
    system: &'a System,
    mounts: Vec<Mount>,
    loops: Vec<LoopDevice>,
    /// The device in question, and the layers that show its content: they are not other users.
    own: Vec<Number>,
    /// The devices that were examined already.
    seen: BTreeSet<Number>,
    found: Vec<InUse>,
}

impl<'a> Usage<'a> {
    fn new(system: &'a System) -> Self {
        let (mounts, loops) = (mounts(system), loops(system));
        let (own, seen) = (Vec::new(), BTreeSet::new());
        Self { system, mounts, loops, own, seen, found: Vec::new() }
    }

    /// A device, its partitions, the disk that it is a partition of and those partitions of that
    /// disk which share sectors with it, and the devices that are made of them.
    fn whole(&mut self, device: &DeviceFolder) {
        self.device(device);
        let Some(disk) = device.disk() else { return };
        self.itself(&disk);
        for other in disk.partitions().iter().filter(|other| other.overlaps(device)) {
            self.itself(other);
        }
    }

    /// A device, its partitions, and the devices that are made of them.
    fn device(&mut self, device: &DeviceFolder) {
        self.itself(device);
        for partition in device.partitions() {
            self.itself(&partition);
        }
    }

    fn itself(&mut self, device: &DeviceFolder) {
        // Devices may be made of each other again and again.
        if !self.seen.insert(device.number) {
            return;
        }
        for mount_point in self.mount_points(device) {
            self.add(InUse::Mounted { device: device.dev_path(), mount_point });
        }
        let is_swap = |path: &String| self.system.number_of(path) == Some(device.number);
        if swaps(self.system).iter().any(is_swap) {
            self.add(InUse::Swap { device: device.dev_path() });
        }
        // The kernel does not list a loop device among the holders of the device that it shows.
        let holders = device.linked("holders").into_iter().chain(self.loops_over(device));
        for holder in holders {
            if self.own.contains(&holder.number) {
                continue;
            }
            self.add(InUse::Holder { device: device.dev_path(), holder: holder.dev_path() });
            self.device(&holder);
        }
    }

    /// The devices that a device shows or consists of: a loop device does not claim its backing
    /// device, so that others may use that as well.
    fn below(&mut self, device: &DeviceFolder, depth: u32) {
        if depth == DEPTH {
            return;
        }
        let disk = device.disk().unwrap_or_else(|| device.clone());
        self.own.extend([device.number, disk.number]);
        for slave in device.linked("slaves").into_iter().chain(disk.linked("slaves")) {
            self.below(&slave, depth + 1);
        }
        let Some(one) = self.loops.iter().find(|one| one.device == disk).cloned() else { return };
        let before = self.found.len();
        let name = match one.shows {
            Shown::Device(number) => {
                let Some(shown) = self.system.device(number) else { return };
                self.whole(&shown);
                let path = self.system.path(shown.dev_path());
                if self.found.len() == before && is_claimed(&path, &shown) {
                    self.add(InUse::Exclusive { device: shown.dev_path() });
                }
                self.below(&shown, depth + 1);
                shown.dev_path()
            }
            Shown::File { .. } | Shown::Unknown => {
                self.beside(&one);
                one.name.clone()
            }
        };
        // A message about another device has to show why it concerns this one.
        if before < self.found.len() {
            let holder = one.device.dev_path();
            self.found.insert(before, InUse::Holder { device: name, holder });
        }
    }

    /// The other loop devices over the file of one, and swap on it.
    fn beside(&mut self, one: &LoopDevice) {
        if swaps(self.system).contains(&one.name) {
            self.add(InUse::Swap { device: one.name.clone() });
        }
        let named = fs::metadata(self.system.path(&one.name)).ok();
        for usage in mounted(self.system, &self.mounts, (&one.name, named.as_ref())) {
            self.add(usage);
        }
        let others: Vec<LoopDevice> =
            self.loops.iter().filter(|other| other.device != one.device).cloned().collect();
        for other in others.into_iter().filter(|other| other.shows_same_file(one)) {
            let holder = other.device.dev_path();
            self.add(InUse::Holder { device: one.name.clone(), holder });
            self.device(&other.device);
        }
    }

    /// The loop devices that show a block device, or a part of it, mounted or not.
    fn loops_over(&self, device: &DeviceFolder) -> Vec<DeviceFolder> {
        let shows = |one: &&LoopDevice| one.shows == Shown::Device(device.number);
        self.loops.iter().filter(shows).map(|one| one.device.clone()).collect()
    }

    fn add(&mut self, usage: InUse) {
        if !self.found.contains(&usage) {
            self.found.push(usage);
        }
    }

    /// Its mount points, one for each file system on it.
    fn mount_points(&self, device: &DeviceFolder) -> Vec<String> {
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

/// The files and devices that hold swap.
fn swaps(system: &System) -> Vec<String> {
    let text = system.text("proc/swaps").unwrap_or_default();
    let path = |line: &str| line.split_whitespace().next().map(unescape);
    text.lines().skip(1).filter_map(path).collect()
}

fn is_claimed(path: &Path, device: &DeviceFolder) -> bool {
    open_device(path, device, libc::O_EXCL)
        .is_err_and(|cause| cause.raw_os_error() == Some(libc::EBUSY))
}
