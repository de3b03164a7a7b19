//! Which disks are watched, and how they are called.

use std::path::Path;

use fathom_core::facts::{Layer, LayerKind};
use fathom_core::watch::DiskStat;

use crate::host::system::{DeviceFolder, System};
use crate::host::{self, stack};
use crate::target_error::TargetError;

/// A disk that can be watched.
#[derive(Clone, Debug)]
pub struct WatchedDisk {
    /// Its usual name without /dev, such as "nvme0n1" or "mapper/data".
    pub name: String,
    /// Major and minor number.
    pub number: (u32, u32),
    /// What it is: "disk", "volume", "RAID array".
    pub kind: LayerKind,
    /// Whether its requests can be seen one by one. A device mapper's volume, a RAID array and zram
    /// have none: they give their I/Os to the disks below, or complete them at once.
    pub has_requests: bool,
    folder: DeviceFolder,
    /// The kernel's number of this very disk, if it gives one.
    sequence: Option<u64>,
}

impl WatchedDisk {
    fn of(folder: DeviceFolder, kind: LayerKind) -> Self {
        let path = folder.dev_path();
        Self {
            name: path.strip_prefix("/dev/").unwrap_or(&path).to_owned(),
            number: folder.number,
            kind,
            has_requests: folder.has("mq"),
            sequence: folder.parse("diskseq"),
            folder,
        }
    }

    /// The disk of this major and minor number, if it is there.
    pub(super) fn numbered(number: (u32, u32)) -> Option<Self> {
        let folder = System::real().device(number)?;
        let kind = stack::kind(&folder);
        Some(Self::of(folder, kind))
    }

    /// Its counters now; none if it is gone, also if another disk has its name.
    pub fn stat(&self) -> Option<DiskStat> {
        let stat = DiskStat::parse(&self.folder.text("stat")?)?;
        (self.folder.parse("diskseq") == self.sequence).then_some(stat)
    }
}

/// All real disks of this machine: those with hardware, or a hypervisor's device, behind them. If
/// there are none, all block devices that have a size.
pub fn disks() -> Vec<WatchedDisk> {
    of_machine(&System::real())
}

fn of_machine(system: &System) -> Vec<WatchedDisk> {
    let with_size = system.block_devices().into_iter().filter(|device| device.size().0 > 0);
    let (real, others): (Vec<_>, Vec<_>) = with_size.partition(|device| device.has("device"));
    let chosen = if real.is_empty() { others } else { real };
    let disk = |device: DeviceFolder| {
        let kind = stack::kind(&device);
        WatchedDisk::of(device, kind)
    };
    chosen.into_iter().map(disk).collect()
}

/// The disks of a device, or below a file or folder, the uppermost first: each layer that has
/// counters. Of a partition it is the whole disk. None for a file system without a disk.
///
/// # Errors
///
/// When it cannot be examined.
pub fn disks_below(path: &Path) -> Result<Vec<WatchedDisk>, TargetError> {
    let system = System::real();
    let target = match path.is_dir() {
        true => host::folder(path)?,
        false => host::target(path)?,
    };
    let layers = target.layers.iter().filter(|layer| layer.kind != LayerKind::Partition);
    let disk = |layer: &Layer| Some(WatchedDisk::of(system.device(layer.device?)?, layer.kind));
    Ok(layers.filter_map(disk).collect())
}
