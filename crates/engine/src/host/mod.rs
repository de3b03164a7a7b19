//! Facts about the host and the targets, gathered into the plain data of `fathom_core::facts`.
//! Everything is read from /proc and /sys and by opening targets for reading; nothing is changed.

mod advice;
pub(crate) mod bpf;
pub(crate) mod cgroup;
mod content;
pub(crate) mod counters;
mod extents;
pub(crate) mod fiemap;
mod holds;
mod io_wq;
mod loops;
mod machine;
pub(crate) mod mapped;
mod mounts;
pub(crate) mod nvme;
mod pauses;
pub(crate) mod perf;
mod presence;
pub(crate) mod sequence;
mod signature;
pub(crate) mod stack;
pub(crate) mod system;
mod thread_time;
mod usage;
mod users;

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::Path;

use fathom_core::Bytes;
use fathom_core::facts::{Counters, Extents, FileSystem, Host, InUse, Layer, Target, TargetKind};
use rustix::fs::{AtFlags, CWD, IFlags, StatxFlags, fgetxattr, ioctl_getflags, statfs, statx};

use self::cgroup::Groups;
use self::mounts::{Mount, mount_of, mounts};
use self::system::{DeviceFolder, System, split_number};
use crate::target_error::TargetError;
use crate::{access, found};

pub use advice::advice;
pub use content::{ByteRange, contents, of_pool};
pub use io_wq::IoWqWatch;
pub use pauses::PauseWatch;
pub use presence::Presence;
pub(crate) use thread_time::{ThreadTime, own_cpu};
pub use users::{User, users};

/// The nominal size of /dev/zero and the like: they have no size, and a region needs one.
pub const CHARACTER_DEVICE_SIZE: Bytes = Bytes(1 << 40);

/// The facts about this machine, without its clock, which takes time to measure.
pub fn host() -> Host {
    machine::host(&System::real())
}

/// The host's counters now: of each CPU, of the devices that the targets are or lie on and of the
/// disks below, of this process.
pub fn counters(targets: &[Target]) -> Counters {
    counters::counters(&System::real(), targets)
}

/// The kind of a file or device, and its device stack. Opens nothing for writing.
///
/// # Errors
///
/// When the path cannot be examined, or is neither a file nor a device that can be measured.
pub fn target(name: &Path) -> Result<Target, TargetError> {
    let system = System::real();
    let (mut target, found, metadata) = look_at(name)?;
    let kind = metadata.file_type();
    if kind.is_dir() {
        return Err(TargetError::Folder { name: target.name });
    }
    if kind.is_block_device() {
        return block_device(&system, target, split_number(metadata.rdev()));
    }
    if kind.is_char_device() && is_calibration_device(metadata.rdev()) {
        target.kind = TargetKind::CharacterDevice;
        target.size = CHARACTER_DEVICE_SIZE;
        return Ok(target);
    }
    let number = split_number(metadata.rdev());
    if kind.is_char_device()
        && let Some(name) = nvme::generic_name(&system, number)
    {
        return nvme::generic(&system, target, number, &name);
    }
    if !kind.is_file() {
        return Err(TargetError::Special { name: target.name, what: special(&kind) });
    }
    target.identity = found::identity(&found).ok();
    target.size = Bytes(metadata.len());
    add_file_system(&system, &mut target, &metadata);
    refuse_pseudo(&target)?;
    let path = target.path.clone();
    let path = Path::new(&path);
    // A file that may be written but not read is also a valid target; its content stays unknown.
    if let Ok(file) = found::reopen((&found, path), OpenOptions::new().read(true), libc::O_NONBLOCK)
    {
        let kind = target.file_system.as_ref().map_or("", |found| &found.kind);
        target.extents = extents::extents(&file, metadata.len(), kind);
        attributes(&mut target, &file);
    }
    target.in_use = usage::of_file(&system, path, Some(&metadata));
    target.limits = Groups::read(&system).io_limits(&target.layers);
    Ok(target)
}

/// The users of a target that this process has open for writing: a program may have begun to use it
/// since it was examined. Its content does not count, and neither does the use by this process.
pub(crate) fn uses_of_open(target: &Target, file: &File) -> io::Result<Vec<InUse>> {
    let system = System::real();
    let device = |number| system.device(number);
    let uses_of = |device: Option<DeviceFolder>| {
        device.map_or_else(Vec::new, |device| usage::of_open_device(&system, &device))
    };
    Ok(match target.kind {
        TargetKind::File => {
            usage::of_file(&system, Path::new(&target.path), Some(&file.metadata()?))
        }
        TargetKind::BlockDevice => uses_of(device(split_number(file.metadata()?.rdev()))),
        TargetKind::NvmeGeneric => {
            let beside = target.namespace.as_ref().map(|found| &found.block_device);
            uses_of(beside.and_then(|path| device(system.number_of(path)?)))
        }
        _ => Vec::new(),
    })
}

/// The parts of a target that were written so far; none if that cannot be told.
pub fn extents_of(target: &Target) -> Option<Extents> {
    let mut options = OpenOptions::new();
    let file = options.read(true).custom_flags(libc::O_NONBLOCK).open(&target.path).ok()?;
    let metadata = file.metadata().ok()?;
    let kind = target.file_system.as_ref().map_or("", |found| &found.kind);
    metadata.is_file().then(|| extents::extents(&file, metadata.len(), kind)).flatten()
}

/// The facts about a folder for files that do not exist yet: its file system and the layers below.
/// Its size is the free space.
///
/// # Errors
///
/// When the path cannot be examined, or is not a folder.
pub fn folder(name: &Path) -> Result<Target, TargetError> {
    let system = System::real();
    let (mut target, found, metadata) = look_at(name)?;
    if !metadata.is_dir() {
        return Err(TargetError::NoFolder { name: target.name });
    }
    target.kind = TargetKind::Folder;
    add_file_system(&system, &mut target, &metadata);
    refuse_pseudo(&target)?;
    target.size = target.file_system.as_ref().map_or(Bytes(0), |found| found.available);
    target.limits = Groups::read(&system).io_limits(&target.layers);
    if let Ok(file) =
        found::reopen((&found, Path::new(&target.path)), OpenOptions::new().read(true), 0)
    {
        attributes(&mut target, &file);
    }
    Ok(target)
}

/// The number of the mount that a path is on, if the kernel reports it (Linux 5.8), and of its file
/// system otherwise; links are not followed. None if there is no file.
pub fn mount_id(path: &Path) -> Option<u64> {
    let found = statx(CWD, path, AtFlags::SYMLINK_NOFOLLOW, StatxFlags::MNT_ID);
    match found.ok().filter(|found| found.stx_mask & StatxFlags::MNT_ID.bits() != 0) {
        Some(found) => Some(found.stx_mnt_id),
        None => fs::symlink_metadata(path).ok().map(|metadata| metadata.dev()),
    }
}

/// The content that is found on a device, in words: the signatures that fathom knows, and the
/// findings of udev or blkid.
pub(crate) fn holds(target: &Target) -> Vec<String> {
    holds::of(&System::real(), target)
}

/// Whether the block device with this number refuses writes.
pub(crate) fn is_read_only(number: (u32, u32)) -> bool {
    let device = System::real().device(number);
    device.is_some_and(|device| device.parse::<u32>("ro").is_some_and(|ro| ro != 0))
}

/// The path with every link resolved, a handle of the file there, and its metadata.
fn look_at(name: &Path) -> Result<(Target, File, fs::Metadata), TargetError> {
    let shown = name.to_string_lossy().into_owned();
    let failed = |cause| TargetError::from_looking(name, cause);
    let path = fs::canonicalize(name).map_err(failed)?;
    let found = found::find(&path).map_err(|cause| match cause.raw_os_error() {
        Some(libc::ELOOP) => {
            TargetError::Changed { name: shown.clone(), what: "a link has taken its place" }
        }
        _ => failed(cause),
    })?;
    let metadata = found.metadata().map_err(failed)?;
    let Some(path) = path.to_str() else {
        let cause = io::Error::new(io::ErrorKind::InvalidInput, "its name is not UTF-8");
        return Err(TargetError::Open { name: shown, cause });
    };
    let target = Target {
        path: path.to_owned(),
        kind: TargetKind::File,
        ..Target::simulated(&shown, Bytes(0))
    };
    Ok((target, found, metadata))
}

/// /dev/null, /dev/zero and /dev/full, which cost nothing: they serve to measure the cost of fathom
/// itself.
pub(crate) fn is_calibration_device(number: u64) -> bool {
    matches!(split_number(number), (1, 3 | 5 | 7))
}

fn special(kind: &fs::FileType) -> &'static str {
    if kind.is_fifo() {
        "a pipe, which has no blocks to read"
    } else if kind.is_socket() {
        "a socket, which has no blocks to read"
    } else {
        "a character device, which has no blocks to read"
    }
}

fn block_device(
    system: &System,
    mut target: Target,
    number: (u32, u32),
) -> Result<Target, TargetError> {
    let path = target.path.clone();
    let path = Path::new(&path);
    target.kind = TargetKind::BlockDevice;
    let Some(device) = system.device(number) else {
        return Err(match File::open(path) {
            // A container may not show /sys.
            Ok(_) => TargetError::Unseen { name: target.name },
            Err(cause) => TargetError::NoDevice { name: target.name, cause },
        });
    };
    target.size = device.size();
    target.disk_sequence = sequence::of_device(&device);
    target.layers = stack::of_device(system, &device);
    access::ask(&mut target);
    target.direct_alignment = target.direct_alignment.or_else(|| sector(&target.layers));
    target.in_use = usage::of_device(system, &device, path);
    target.limits = Groups::read(system).io_limits(&target.layers);
    Ok(target)
}

fn add_file_system(system: &System, target: &mut Target, metadata: &fs::Metadata) {
    let path = Path::new(&target.path);
    let mounts = mounts(system);
    let mount = mount_of(&mounts, path, mount_id(path));
    target.layers = stack::of_mount(system, mount, split_number(metadata.dev()));
    target.file_system = mount.map(|mount| file_system(mount, path));
    let overlay = mount.filter(|mount| mount.kind == "overlay");
    if let Some((layer, folder)) =
        overlay.and_then(|mount| stack::overlay_layer(system, mount, path))
    {
        target.layers = stack::of_folder(system, &folder);
        if let Some(fs) = &mut target.file_system {
            fs.overlay = Some(layer);
        }
    }
    access::ask(target);
    target.direct_alignment = target.direct_alignment.or_else(|| {
        let own = match mount.map(|mount| mount.kind.as_str()) {
            Some("btrfs" | "bcachefs" | "zfs") => 4096,
            _ => 512,
        };
        Some(Bytes(sector(&target.layers).map_or(own, |sector| own.max(sector.0))))
    });
}

/// /proc, /sys and the like show the kernel, not storage.
fn refuse_pseudo(target: &Target) -> Result<(), TargetError> {
    let kind = target.file_system.as_ref().map(|found| found.kind.as_str());
    match kind.filter(|kind| !mounts::is_storage(kind)) {
        Some(kind) => {
            Err(TargetError::NoStorage { name: target.name.clone(), file_system: kind.to_owned() })
        }
        None => Ok(()),
    }
}

/// The largest logical sector of the layers.
fn sector(layers: &[Layer]) -> Option<Bytes> {
    layers.iter().filter_map(|layer| layer.queue.as_ref()?.logical_sector).max()
}

fn file_system(mount: &Mount, path: &Path) -> FileSystem {
    let space = statfs(path).ok();
    let bytes =
        |blocks: u64| {
            Bytes(blocks.saturating_mul(
                space.map_or(0, |s| block_unit(s.f_frsize as u64, s.f_bsize as u64)),
            ))
        };
    FileSystem {
        kind: mount.kind.clone(),
        source: mount.source.clone(),
        mount_point: mount.point.clone(),
        options: mount.options.clone(),
        size: bytes(space.map_or(0, |space| space.f_blocks)),
        available: bytes(space.map_or(0, |space| space.f_bavail)),
        read_only: mount.read_only(),
        copy_on_write: copies_on_write(mount),
        compression: ["compress", "compress-force", "compression", "compress_algorithm"]
            .iter()
            .find_map(|name| mount.option(name))
            .map(|algorithm| if algorithm.is_empty() { "on" } else { algorithm }.to_owned())
            .filter(|algorithm| !matches!(algorithm.as_str(), "no" | "none" | "off")),
        overlay: None,
    }
}

/// The unit in which a file system counts its blocks: its fragments, if it has them. The other size
/// is the preferred one, which on network file systems is hundreds of times as large.
fn block_unit(fragment: u64, preferred: u64) -> u64 {
    match fragment {
        0 => preferred,
        size => size,
    }
}

fn copies_on_write(mount: &Mount) -> bool {
    let switched_off = mount.option("nodatacow").is_some() || mount.option("nocow").is_some();
    matches!(mount.kind.as_str(), "btrfs" | "zfs" | "bcachefs" | "nilfs2") && !switched_off
}

/// The flag against compression, of linux/fs.h, which rustix has no name for.
const FS_NOCOMP_FL: u32 = 0x400;

/// btrfs and others have settings for one file, or for a folder's new files (`btrfs property set`,
/// `chattr +c`): to compress, not to compress, or to overwrite in place, which also means no
/// compression.
fn attributes(target: &mut Target, file: &File) {
    let Some(file_system) = target.file_system.as_mut() else { return };
    let Ok(flags) = ioctl_getflags(file) else { return };
    if file_system.copy_on_write && flags.contains(IFlags::NOCOW) {
        file_system.copy_on_write = false;
        file_system.compression = None;
    } else if flags.contains(IFlags::COMPRESSED) && compresses(&file_system.kind) {
        let mut algorithm = [0; 16];
        let length = fgetxattr(file, "btrfs.compression", &mut algorithm).unwrap_or(0);
        let algorithm = String::from_utf8_lossy(&algorithm[..length.min(16)]).into_owned();
        let own = if algorithm.is_empty() { "on" } else { &algorithm };
        file_system.compression = Some(format!("{own}, a property of the file"));
    } else if flags.bits() & FS_NOCOMP_FL != 0 && !is_forced(&file_system.options) {
        file_system.compression = None;
    }
}

/// Whether the flag that requests compression has an effect there: ext4 and XFS keep it and ignore
/// it.
fn compresses(kind: &str) -> bool {
    matches!(kind, "btrfs" | "f2fs" | "bcachefs" | "jffs2" | "ubifs" | "nilfs2")
}

/// Whether every file is compressed, regardless of its own settings.
fn is_forced(options: &str) -> bool {
    options.split(',').any(|option| option.starts_with("compress-force"))
}

#[cfg(test)]
mod tests;
