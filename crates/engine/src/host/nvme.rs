//! NVMe generic devices such as /dev/ng0n1: character devices that take NVMe commands directly.
//!
//! Each belongs to a block device with the same data. Size, sectors and everything that forbids
//! writing come from that device's sysfs: an admin command to the device would give the same
//! answers, and might hang if the device does.
#![expect(unsafe_code, reason = "asking a device for its namespace has no safe wrapper")]

use std::ffi::c_void;
use std::fs::File;
use std::path::Path;

use fathom_core::Bytes;
use fathom_core::facts::{Namespace, Target, TargetKind};
use rustix::io::Result as Answer;
use rustix::ioctl::{Ioctl, IoctlOutput, Opcode, ioctl, opcode};

use super::system::{DeviceFolder, Number, System, read_text};
use super::{sector, stack, usage};
use crate::target_error::TargetError;

/// The size of the pieces in which the kernel counts a command's buffer.
const PAGE: u64 = 4096;

/// The name of the NVMe generic device with this number, such as "ng0n1".
pub(super) fn generic_name(system: &System, number: Number) -> Option<String> {
    let name = system.nvme_generic(number)?.name;
    block_name(&name).map(|_| name)
}

/// The block device beside an NVMe generic device: "nvme0n1" for "ng0n1".
fn block_name(name: &str) -> Option<String> {
    let numbers = name.strip_prefix("ng")?;
    let (controller, namespace) = numbers.split_once('n')?;
    let is_number = |text: &str| text.parse::<u32>().is_ok();
    (is_number(controller) && is_number(namespace)).then(|| format!("nvme{numbers}"))
}

/// The facts about an NVMe generic device of this name.
pub(super) fn generic(
    system: &System,
    mut target: Target,
    number: Number,
    name: &str,
) -> Result<Target, TargetError> {
    target.kind = TargetKind::NvmeGeneric;
    let cannot = |target: &Target, cause: String, remedy: &str| TargetError::Passthrough {
        name: target.name.clone(),
        cause,
        remedy: remedy.to_owned(),
    };
    let block = block_name(name).unwrap_or_default();
    let Some(device) = DeviceFolder::at(&system.path("sys/block").join(&block)) else {
        let cause =
            format!("the kernel has no block device {block} beside it, which tells its size");
        return Err(cannot(&target, cause, "measure another namespace (`nvme list`)"));
    };
    if let Some(what) = metadata(&device) {
        let cause = format!("its blocks carry {what}, which commands would have to move too");
        let remedy = format!("measure {}, or format it without (`nvme format`)", device.dev_path());
        return Err(cannot(&target, cause, &remedy));
    }
    let known = device.parse::<u32>("nsid").zip(device.parse::<u64>("queue/logical_block_size"));
    let Some((id, block_size)) = known.filter(|(_, size)| size.is_power_of_two()) else {
        let cause =
            format!("/sys/block/{block} does not tell its number and the size of its blocks");
        return Err(cannot(&target, cause, &format!("measure {}", device.dev_path())));
    };
    let (largest, limit) = largest(&device);
    target.size = device.size();
    target.layers = stack::of_device(system, &device);
    target.direct_alignment = Some(sector(&target.layers).unwrap_or(Bytes(block_size)));
    target.in_use = usage::of_device(system, &device, &system.path(device.dev_path()));
    target.namespace = Some(Namespace {
        device: number,
        id,
        block_device: device.dev_path(),
        logical_block: Bytes(block_size),
        largest,
        limit,
    });
    Ok(target)
}

/// Metadata or protection data of each block, if there is any.
fn metadata(device: &DeviceFolder) -> Option<String> {
    // Since Linux 6.8; before, only the kind of protection shows.
    match device.parse::<u32>("metadata_bytes") {
        Some(0) => return None,
        Some(bytes) => return Some(format!("{bytes} bytes of metadata")),
        None => {}
    }
    let format = read_text(&device.folder.join("integrity/format"))?;
    (!format.is_empty() && format != "none").then(|| format!("metadata ({format})"))
}

/// The most that one command may move, and the limit that sets it. The kernel does not split a
/// passthrough command: it refuses one that is longer. A buffer's pages lie anywhere in memory,
/// each one segment.
fn largest(device: &DeviceFolder) -> (Bytes, &'static str) {
    let kib = device.parse::<u64>("queue/max_hw_sectors_kb");
    let segments = device.parse::<u64>("queue/max_segments");
    let by_size = kib.map_or(u64::MAX, |kib| kib.saturating_mul(Bytes::KIB));
    let by_segments = segments.map_or(u64::MAX, |segments| segments.saturating_mul(PAGE));
    match by_segments < by_size {
        true => (Bytes(by_segments), "queue/max_segments"),
        false => (Bytes(by_size), "queue/max_hw_sectors_kb"),
    }
}

/// The namespace number that an open NVMe generic device itself reports.
pub(crate) fn namespace_of(device: &File) -> Answer<u32> {
    // SAFETY: the ioctl takes no argument and touches no memory of this process.
    unsafe { ioctl(device, NamespaceId) }
}

/// NVME_IOCTL_ID.
struct NamespaceId;

// SAFETY: the opcode is NVME_IOCTL_ID, _IO('N', 0x40), which has no argument: the null pointer is
// not used. Its answer is the call's own result.
unsafe impl Ioctl for NamespaceId {
    type Output = u32;

    const IS_MUTATING: bool = false;

    fn opcode(&self) -> Opcode {
        opcode::none(b'N', 0x40)
    }

    fn as_ptr(&mut self) -> *mut c_void {
        std::ptr::null_mut()
    }

    unsafe fn output_from_ptr(out: IoctlOutput, _: *mut c_void) -> Answer<u32> {
        // The kernel keeps the number as 32 bits without a sign.
        Ok(out.cast_unsigned())
    }
}

/// Claims the block device beside it, as mounting does, so that no one can mount it while its data
/// is written through the generic device.
pub(crate) fn claim(namespace: &Namespace) -> std::io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt;
    let path = Path::new(&namespace.block_device);
    File::options().read(true).custom_flags(libc::O_EXCL | libc::O_CLOEXEC).open(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_generic_devices_have_a_block_device_beside() {
        assert_eq!(block_name("ng0n1").as_deref(), Some("nvme0n1"));
        assert_eq!(block_name("ng12n34").as_deref(), Some("nvme12n34"));
        for name in ["nvme0", "ngn1", "ng0n", "ng0", "null", "ng0n1p1", "ng0c0n1"] {
            assert_eq!(block_name(name), None, "{name}");
        }
    }
}
