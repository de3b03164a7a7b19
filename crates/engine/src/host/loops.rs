//! The loop devices that are attached, and the file or block device that each of them shows, from
//! the kernel itself. The name of that file in sysfs says little: it may be covered by a mount,
//! removed, or mean another file in this mount namespace.

#![expect(unsafe_code, reason = "what a loop device shows has no safe interface")]

use std::fs::{self, File, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::ioctl::{Getter, Opcode, ioctl};

use super::mounts::{Mount, mount_of, mounts};
use super::stack;
use super::system::{DeviceFolder, Number, System, open_device, split_number};

/// A file by the numbers of its file system and of its inode.
type Inode = (u64, u64);

/// A file that may be reached by other paths, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Backing {
    /// Itself.
    pub(super) inode: Inode,
    /// The file of a layer behind it, if it is a file of an overlay.
    pub(super) real: Option<Inode>,
}

impl Backing {
    /// The file that has this path.
    pub(super) fn of(system: &System, mounts: &[Mount], path: &Path, file: &Metadata) -> Self {
        let inode = (file.dev(), file.ino());
        Self { inode, real: layered(system, mounts, path) }
    }

    /// Whether a write to one is a write to the other.
    pub(super) fn is(&self, other: &Self) -> bool {
        let others = [Some(other.inode), other.real];
        others.contains(&Some(self.inode)) || self.real.is_some() && others.contains(&self.real)
    }
}

/// An attached loop device.
#[derive(Clone, Debug)]
pub(super) struct LoopDevice {
    /// Itself.
    pub(super) device: DeviceFolder,
    /// The path of the file or device that it shows, as sysfs has it.
    pub(super) name: String,
    /// The file or device that it shows.
    pub(super) shows: Shown,
}

/// The content of a loop device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shown {
    /// A block device.
    Device(Number),
    /// A file.
    File {
        /// Its identity.
        file: Backing,
        /// Whether it was found by its name, because the kernel could not be asked.
        by_name: bool,
    },
    /// An unknown file: the kernel cannot be asked, and its name leads nowhere.
    Unknown,
}

impl LoopDevice {
    /// Whether another one shows the same file.
    pub(super) fn shows_same_file(&self, other: &Self) -> bool {
        match (self.shows, other.shows) {
            (Shown::File { file, .. }, Shown::File { file: other, .. }) => file.is(&other),
            (Shown::Unknown, Shown::Unknown) => self.name == other.name,
            _ => false,
        }
    }
}

/// Every loop device that is attached.
pub(super) fn loops(system: &System) -> Vec<LoopDevice> {
    let mounts = mounts(system);
    let attached = |device: DeviceFolder| {
        let text = fs::read(device.folder.join("loop/backing_file")).ok()?;
        let text = String::from_utf8_lossy(&text).into_owned();
        // A name may end with a blank: only the newline is not part of it.
        let name = text.strip_suffix('\n').unwrap_or(&text).to_owned();
        let shows = shown(system, &mounts, &device, &name);
        (!name.is_empty()).then_some(LoopDevice { device, name, shows })
    };
    system.block_devices().into_iter().filter_map(attached).collect()
}

fn shown(system: &System, mounts: &[Mount], device: &DeviceFolder, name: &str) -> Shown {
    let named = fs::metadata(system.path(name)).ok();
    // The numbers of a node do not apply to a machine that is laid out in a folder.
    let asked = system.is_real().then(|| ask(device).ok()).flatten();
    match (asked, named) {
        (Some(Asked { device: Some(number), .. }), _) => Shown::Device(number),
        (Some(Asked { inode, .. }), named) => {
            // Another file may have its name by now.
            let file = named
                .filter(|named| (named.dev(), named.ino()) == inode)
                .map(|named| Backing::of(system, mounts, Path::new(name), &named));
            Shown::File { file: file.unwrap_or(Backing { inode, real: None }), by_name: false }
        }
        (None, Some(named)) if named.is_file() => {
            let file = Backing::of(system, mounts, Path::new(name), &named);
            Shown::File { file, by_name: true }
        }
        (None, _) => system.number_of(name).map_or(Shown::Unknown, Shown::Device),
    }
}

/// The file of a layer behind a file of an overlay, if it is one.
fn layered(system: &System, mounts: &[Mount], path: &Path) -> Option<Inode> {
    let id = super::mount_id(&system.path(path));
    let mount = mount_of(mounts, path, id).filter(|mount| mount.kind == "overlay")?;
    let (_, folder) = stack::overlay_layer(system, mount, path)?;
    let file = fs::metadata(folder.join(path.strip_prefix(&mount.point).ok()?)).ok()?;
    Some((file.dev(), file.ino()))
}

/// The kernel's answer for a loop device.
#[derive(Clone, Copy, Debug)]
struct Asked {
    inode: Inode,
    device: Option<Number>,
}

fn ask(device: &DeviceFolder) -> io::Result<Asked> {
    let node = open_device(Path::new(&device.dev_path()), device, 0)?;
    let status = status(&node)?;
    let shown = split_number(status.shown_device);
    Ok(Asked {
        inode: (status.file_system, status.inode),
        device: (shown != (0, 0)).then_some(shown),
    })
}

/// `struct loop_info64` of linux/loop.h.
#[repr(C)]
#[derive(Clone, Copy)]
struct Status {
    /// The number of the file's file system.
    file_system: u64,
    inode: u64,
    /// The device's number, if the file is a device.
    shown_device: u64,
    /// Its offset, its limit, its number, its flags and its name, which are not used.
    rest: [u64; 26],
}

/// LOOP_GET_STATUS64, which dates from before ioctl numbers contained the length of an answer.
const GET_STATUS: Opcode = 0x4c05;

fn status(node: &File) -> io::Result<Status> {
    // SAFETY: the call writes one `struct loop_info64`, and `Status` is as long as that.
    Ok(unsafe { ioctl(node, Getter::<GET_STATUS, Status>::new()) }?)
}

const _: () = assert!(size_of::<Status>() == 232, "linux/loop.h");
