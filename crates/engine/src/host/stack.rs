//! The devices below a target, from sysfs: partition, array, volume, loop, disk, with the facts
//! about the queue and the hardware of each.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use fathom_core::Bytes;
use fathom_core::facts::{ArrayState, Disk, Layer, LayerKind, OverlayLayer, Queue, Stripe};

use super::mounts::{Mount, mount_of, mounts};
use super::system::{DeviceFolder, Number, System, read_names, read_text, split_number};

/// The amount that btrfs puts on one member before the next one follows.
const BTRFS_CHUNK: u64 = 64 << 10;

/// A btrfs that is mounted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Btrfs {
    /// Its folder in sysfs.
    folder: PathBuf,
    /// Its members.
    pub(crate) members: Vec<DeviceFolder>,
}

/// Every btrfs that is mounted.
pub(crate) fn btrfs(system: &System) -> Vec<Btrfs> {
    let all = system.path("sys/fs/btrfs");
    let read = |name: &String| {
        let folder = all.join(name);
        let devices = folder.join("devices");
        let members: Vec<DeviceFolder> = read_names(&devices)
            .iter()
            .filter_map(|name| DeviceFolder::at(&devices.join(name)))
            .collect();
        (!members.is_empty()).then_some(Btrfs { folder, members })
    };
    read_names(&all).iter().filter_map(read).collect()
}

impl Btrfs {
    /// How data is spread: "single", "raid1" ...
    fn profile(&self) -> Option<String> {
        let data = self.folder.join("allocation/data");
        read_names(&data).into_iter().find(|name| data.join(name).join("total_bytes").exists())
    }

    fn stripe(&self) -> Option<Stripe> {
        let members = self.members.len() as u64;
        let data = match self.profile()?.as_str() {
            "raid0" => members,
            "raid10" => members / 2,
            "raid5" => members.saturating_sub(1),
            "raid6" => members.saturating_sub(2),
            _ => return None,
        };
        stripe(BTRFS_CHUNK, data)
    }

    fn name(&self) -> String {
        let label = read_text(&self.folder.join("label")).filter(|label| !label.is_empty());
        let id = || self.folder.file_name().map(|name| name.to_string_lossy().into_owned());
        label.or_else(id).unwrap_or_default()
    }
}

/// The layers below a block device, itself first.
pub(crate) fn of_device(system: &System, device: &DeviceFolder) -> Vec<Layer> {
    let mut builder = Builder::new(system);
    builder.add(device);
    builder.finish()
}

/// The layers below a file system; `device` is what stat says of a file on it.
pub(crate) fn of_mount(system: &System, mount: Option<&Mount>, device: Number) -> Vec<Layer> {
    let mut builder = Builder::new(system);
    builder.add_file_system(mount, device);
    builder.finish()
}

/// The layer of an overlay that holds a file, and the folder that is that layer. None if it cannot
/// be seen: in a container the folders are not visible.
pub(crate) fn overlay_layer(
    system: &System,
    mount: &Mount,
    path: &Path,
) -> Option<(OverlayLayer, PathBuf)> {
    let below = path.strip_prefix(&mount.point).ok()?;
    let holds = |folder: &str| {
        let folder = system.path(folder);
        folder.join(below).symlink_metadata().is_ok().then_some(folder)
    };
    if let Some(folder) = mount.option("upperdir").and_then(holds) {
        return Some((OverlayLayer::Upper, folder));
    }
    // Mounted by the newer system call, each layer is an option of its own.
    let one_by_one = mount.options_called("lowerdir+");
    let lower = mount.option("lowerdir").unwrap_or_default().split(':');
    let mut lower = lower.filter(|folder| !folder.is_empty()).chain(one_by_one);
    Some((OverlayLayer::Lower, lower.find_map(holds)?))
}

/// The layers below a file of an overlay that lies in this folder.
pub(crate) fn of_folder(system: &System, folder: &Path) -> Vec<Layer> {
    let mut builder = Builder::new(system);
    builder.add_folder(folder);
    builder.finish()
}

/// Collects layers from the bottom up, so that reversing them puts each before its members even
/// where two partitions share a disk.
struct Builder<'a> {
    system: &'a System,
    layers: Vec<Layer>,
    /// The place of each device; none while it is being added.
    places: BTreeMap<Number, Option<usize>>,
}

impl<'a> Builder<'a> {
    fn new(system: &'a System) -> Self {
        Self { system, layers: Vec::new(), places: BTreeMap::new() }
    }

    fn finish(mut self) -> Vec<Layer> {
        let last = self.layers.len().saturating_sub(1);
        self.layers.reverse();
        for layer in &mut self.layers {
            for member in &mut layer.members {
                *member = last - *member;
            }
        }
        self.layers
    }

    /// Adds a device and its members, and returns its place.
    fn add(&mut self, device: &DeviceFolder) -> Option<usize> {
        if let Some(&place) = self.places.get(&device.number) {
            return place;
        }
        self.places.insert(device.number, None);
        let mut layer = layer(self.system, device);
        layer.members = match layer.kind {
            LayerKind::Loop => self.add_backing_file(device),
            _ => {
                let disk = device.disk();
                let below = disk.map_or_else(|| device.linked("slaves"), |disk| Vec::from([disk]));
                self.add_all(&below)
            }
        };
        let place = self.layers.len();
        self.layers.push(layer);
        self.places.insert(device.number, Some(place));
        Some(place)
    }

    /// The last first, so that after the reversal the first stands first.
    fn add_all(&mut self, devices: &[DeviceFolder]) -> Vec<usize> {
        let mut places: Vec<usize> =
            devices.iter().rev().filter_map(|device| self.add(device)).collect();
        places.reverse();
        places
    }

    fn add_backing_file(&mut self, device: &DeviceFolder) -> Vec<usize> {
        let Some(file) = device.text("loop/backing_file") else { return Vec::new() };
        let file = self.system.path(file);
        match fs::metadata(&file) {
            // A loop device may lie on a device as well.
            Ok(metadata) if metadata.file_type().is_block_device() => {
                self.add_numbers(&[split_number(metadata.rdev())])
            }
            Ok(metadata) => {
                let mounts = mounts(self.system);
                let mount = mount_of(&mounts, &file, None);
                self.add_file_system(mount, split_number(metadata.dev()))
            }
            Err(_) => Vec::new(),
        }
    }

    fn add_file_system(&mut self, mount: Option<&Mount>, number: Number) -> Vec<usize> {
        if let Some(device) = self.system.device(number) {
            return self.add_all(&[device]);
        }
        let Some(mount) = mount else { return Vec::new() };
        let sources = mount.source_devices(self.system);
        match mount.kind.as_str() {
            "btrfs" => {
                let holds = |fs: &Btrfs| fs.members.iter().any(|m| sources.contains(&m.number));
                match btrfs(self.system).into_iter().find(holds) {
                    Some(fs) => self.add_btrfs(&fs),
                    None => self.add_numbers(&sources),
                }
            }
            // For a folder, or a file whose layer cannot be seen: writes go to the upper layer.
            "overlay" => self.add_upper(mount),
            _ => self.add_numbers(&sources),
        }
    }

    /// The file system that a folder is on.
    fn add_folder(&mut self, folder: &Path) -> Vec<usize> {
        let Ok(metadata) = fs::metadata(folder) else { return Vec::new() };
        let mounts = mounts(self.system);
        let below = mount_of(&mounts, folder, None).filter(|below| below.kind != "overlay");
        self.add_file_system(below, split_number(metadata.dev()))
    }

    fn add_numbers(&mut self, numbers: &[Number]) -> Vec<usize> {
        let devices: Vec<DeviceFolder> =
            numbers.iter().filter_map(|number| self.system.device(*number)).collect();
        self.add_all(&devices)
    }

    fn add_btrfs(&mut self, fs: &Btrfs) -> Vec<usize> {
        let members = self.add_all(&fs.members);
        if members.len() == 1 {
            return members;
        }
        let size = fs.members.iter().map(|member| member.size().0).sum();
        let profile = fs.profile().unwrap_or_else(|| "profile unknown".to_owned());
        self.layers.push(Layer {
            name: fs.name(),
            kind: LayerKind::Btrfs,
            size: Bytes(size),
            members,
            stripe: fs.stripe(),
            detail: Some(format!("{profile}, {} devices", fs.members.len())),
            ..Layer::default()
        });
        Vec::from([self.layers.len() - 1])
    }

    /// Writes through an overlay go to its upper folder, if that can be seen from here.
    fn add_upper(&mut self, mount: &Mount) -> Vec<usize> {
        let Some(upper) = mount.option("upperdir").map(|upper| self.system.path(upper)) else {
            return Vec::new();
        };
        let Ok(metadata) = fs::metadata(&upper) else { return Vec::new() };
        let number = split_number(metadata.dev());
        if number == mount.device {
            return Vec::new();
        }
        let mounts = mounts(self.system);
        let below = mount_of(&mounts, &upper, None).filter(|below| below.kind != "overlay");
        self.add_file_system(below, number)
    }
}

fn layer(system: &System, device: &DeviceFolder) -> Layer {
    let kind = kind(device);
    let whole = kind != LayerKind::Partition;
    let queue = whole.then(|| queue(device));
    let mut layer = Layer {
        name: device.name.clone(),
        device: Some(device.number),
        kind,
        size: device.size(),
        members: Vec::new(),
        stripe: match kind {
            LayerKind::Md => md_stripe(device),
            LayerKind::DeviceMapper => queue.as_ref().and_then(|queue| dm_stripe(device, queue)),
            _ => None,
        },
        detail: detail(system, device, kind),
        begins_at: match kind {
            LayerKind::Partition => {
                device.parse::<u64>("start").map(|sector| Bytes(sector.saturating_mul(512)))
            }
            LayerKind::Loop => device.parse("loop/offset").map(Bytes),
            _ => None,
        },
        direct: device.parse::<u32>("loop/dio").map(|direct| direct != 0),
        array: array_state(device),
        queue,
        disk: (kind == LayerKind::Disk).then(|| disk(device)),
    };
    let turns = layer.turns();
    if let Some(disk) = &mut layer.disk {
        disk.rotational = turns;
    }
    layer
}

/// What a block device is.
pub(crate) fn kind(device: &DeviceFolder) -> LayerKind {
    if device.has("partition") {
        LayerKind::Partition
    } else if device.has("md") {
        LayerKind::Md
    } else if device.has("dm") {
        LayerKind::DeviceMapper
    } else if device.name.starts_with("loop") {
        LayerKind::Loop
    } else if device.name.starts_with("zram") {
        LayerKind::Zram
    } else {
        LayerKind::Disk
    }
}

fn detail(system: &System, device: &DeviceFolder, kind: LayerKind) -> Option<String> {
    match kind {
        LayerKind::Md => md_detail(device),
        LayerKind::DeviceMapper => dm_detail(device),
        LayerKind::Loop => device.text("loop/backing_file"),
        LayerKind::Zram => device.text("comp_algorithm").map(|text| in_brackets(&text)),
        LayerKind::Disk => nvme_paths(system, device),
        LayerKind::Partition | LayerKind::Btrfs => None,
    }
}

fn md_detail(device: &DeviceFolder) -> Option<String> {
    let mut detail = device.text("md/level")?;
    if let Some(disks) = device.parse::<u32>("md/raid_disks") {
        detail += &format!(", {disks} disks");
    }
    let state = array_state(device)?;
    if 0 < state.missing {
        detail += &format!(", degraded: {} missing", state.missing);
    }
    if let Some(action) = state.action {
        detail += &format!(", {action} is going on");
    }
    Some(detail)
}

/// Whether an array is complete and idle; none if the device is not an array.
pub(crate) fn array_state(device: &DeviceFolder) -> Option<ArrayState> {
    device.has("md").then(|| ArrayState {
        name: device.name.clone(),
        missing: device.parse("md/degraded").unwrap_or(0),
        action: device
            .text("md/sync_action")
            .filter(|action| !matches!(action.as_str(), "idle" | "frozen")),
    })
}

fn md_stripe(device: &DeviceFolder) -> Option<Stripe> {
    let chunk: u64 = device.parse("md/chunk_size")?;
    let disks: u64 = device.parse("md/raid_disks")?;
    let data = match device.text("md/level")?.as_str() {
        "raid0" => disks,
        "raid4" | "raid5" => disks.saturating_sub(1),
        "raid6" => disks.saturating_sub(2),
        "raid10" => {
            // The low byte counts near copies, the next one far copies.
            let layout: u64 = device.parse("md/layout").unwrap_or(0x102);
            let copies = (layout & 0xff).max(1) * (layout >> 8 & 0xff).max(1);
            return Some(Stripe { chunk: Bytes(chunk), full: Bytes(chunk * disks / copies) })
                .filter(|_| 0 < chunk && copies < disks);
        }
        _ => return None,
    };
    stripe(chunk, data)
}

fn stripe(chunk: u64, data: u64) -> Option<Stripe> {
    (0 < chunk && 1 < data)
        .then(|| Stripe { chunk: Bytes(chunk), full: Bytes(chunk.saturating_mul(data)) })
}

/// sysfs does not have the device mapper's table; a striped volume shows in its preferred sizes.
fn dm_stripe(device: &DeviceFolder, queue: &Queue) -> Option<Stripe> {
    let (chunk, full) = (queue.minimum_io?, queue.optimal_io?);
    let striped = 1 < device.linked("slaves").len()
        && 4096 < chunk.0
        && chunk < full
        && full.0.is_multiple_of(chunk.0);
    striped.then_some(Stripe { chunk, full })
}

fn dm_detail(device: &DeviceFolder) -> Option<String> {
    let name = device.text("dm/name")?;
    let uuid = device.text("dm/uuid").unwrap_or_default();
    let what = match uuid.split('-').next().unwrap_or_default() {
        "LVM" => "lvm ",
        "CRYPT" => "crypt ",
        "mpath" => "multipath ",
        "DMRAID" => "dmraid ",
        "stratis" => "stratis ",
        "VDO" => "vdo ",
        part if part.starts_with("part") => "partition ",
        _ => "",
    };
    Some(format!("{what}{name}"))
}

/// The paths of an NVMe namespace that has several, which the kernel hides behind one device.
fn nvme_paths(system: &System, device: &DeviceFolder) -> Option<String> {
    let (subsystem, namespace) = device.name.strip_prefix("nvme")?.split_once('n')?;
    let stem = format!("nvme{subsystem}c");
    let end = format!("n{namespace}");
    let paths: Vec<String> = system
        .names("sys/block")
        .into_iter()
        .filter(|name| {
            let controller = name.strip_prefix(&stem).and_then(|rest| rest.strip_suffix(&end));
            controller.is_some_and(|number| number.parse::<u32>().is_ok())
        })
        .collect();
    match paths.len() {
        0 => None,
        1 => Some(format!("1 path: {}", paths[0])),
        n => Some(format!("{n} paths: {}", paths.join(", "))),
    }
}

/// The word in brackets among alternatives: "none [mq-deadline]" is "mq-deadline".
fn in_brackets(text: &str) -> String {
    let chosen = text.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
    chosen.map_or(text, |(chosen, _)| chosen).to_owned()
}

fn queue(device: &DeviceFolder) -> Queue {
    let bytes = |attribute: &str| device.parse::<u64>(&format!("queue/{attribute}")).map(Bytes);
    let hardware_queues = read_names(&device.folder.join("mq")).len() as u32;
    Queue {
        scheduler: device.text("queue/scheduler").map(|text| in_brackets(&text)),
        nr_requests: device.parse("queue/nr_requests").filter(|_| 0 < hardware_queues),
        hardware_queues: (0 < hardware_queues).then_some(hardware_queues),
        logical_sector: bytes("logical_block_size"),
        physical_sector: bytes("physical_block_size"),
        minimum_io: bytes("minimum_io_size").filter(|size| 0 < size.0),
        optimal_io: bytes("optimal_io_size").filter(|size| 0 < size.0),
        max_request: bytes("max_sectors_kb").map(|kib| Bytes(kib.0.saturating_mul(1024))),
        max_segments: device.parse("queue/max_segments").filter(|most| 0 < *most),
        volatile_write_cache: device.text("queue/write_cache").map(|text| text == "write back"),
        write_cache_told: write_cache_told(device),
        fua: device.parse::<u32>("queue/fua").map(|fua| fua != 0),
        discard_max: bytes("discard_max_bytes"),
        polling: device.parse::<u32>("queue/io_poll").map(|polls| polls != 0),
        counts: counts(device),
    }
}

/// Whether the kernel counts the device's I/Os. It does not count those of a RAM disk, even if
/// older kernels say so in its queue.
fn counts(device: &DeviceFolder) -> Option<bool> {
    let is_ram = device
        .name
        .strip_prefix("ram")
        .is_some_and(|number| number.bytes().all(|byte| byte.is_ascii_digit()));
    match is_ram {
        true => Some(false),
        false => device.parse::<u32>("queue/iostats").map(|counts| counts != 0),
    }
}

/// Whether the device or its driver reports a volatile write cache, besides queue/write_cache,
/// which any administrator may write to: virtio's and SCSI's cache_type. A loop device always
/// begins with a cache if it can be written to, because its file has one.
fn write_cache_told(device: &DeviceFolder) -> Option<bool> {
    let folder = device.folder.join("device/scsi_disk");
    let scsi = read_names(&folder)
        .iter()
        .find_map(|name| read_text(&folder.join(name).join("cache_type")));
    let told = device.text("cache_type").or(scsi);
    let is_loop = device.text("loop/backing_file").is_some()
        && device.text("ro").is_some_and(|read_only| read_only == "0");
    told.map(|text| text.contains("write back")).or(is_loop.then_some(true))
}

fn disk(device: &DeviceFolder) -> Disk {
    let words: Vec<String> = ["device/vendor", "device/model", "device/name"]
        .iter()
        .filter_map(|attribute| device.text(attribute))
        // A virtio or PCI vendor is a number, which helps nobody; "ATA" is not a vendor.
        .filter(|word| !word.starts_with("0x") && word != "ATA")
        .collect();
    let below = fs::canonicalize(device.folder.join("device")).ok();
    let numa = |folder: &Path| read_text(&folder.join("numa_node"))?.parse::<i32>().ok();
    Disk {
        model: (!words.is_empty()).then(|| words.join(" ")),
        firmware: ["device/firmware_rev", "device/rev", "device/fwrev"]
            .iter()
            .find_map(|attribute| device.text(attribute)),
        rotational: device.parse::<u32>("queue/rotational").map(|turns| turns != 0),
        numa_node: below
            .iter()
            .flat_map(|folder| folder.ancestors())
            .find_map(numa)
            .and_then(|node| u32::try_from(node).ok()),
        transport: transport(device, below.as_deref()),
        device_queue_depth: device.parse("device/queue_depth"),
    }
}

fn transport(device: &DeviceFolder, below: Option<&Path>) -> Option<String> {
    let Some(below) = below else {
        // Not hardware: a driver that makes a disk out of other devices has their names.
        let stem = device.name.trim_end_matches(|c: char| c.is_ascii_digit());
        let known = ["ram", "nullb", "nbd", "rbd", "pmem", "drbd", "bcache", "nvme"];
        return known.iter().find(|name| stem.starts_with(*name)).map(|name| (*name).to_owned());
    };
    if device.name.starts_with("nvme") {
        let controller = read_names(below)
            .iter()
            .map(|name| below.join(name))
            .find_map(|folder| read_text(&folder.join("transport")));
        return match device.text("device/transport").or(controller).as_deref() {
            None | Some("pcie") => Some("nvme".to_owned()),
            Some(other) => Some(format!("nvme over {other}")),
        };
    }
    let steps: Vec<String> = below.iter().map(|step| step.to_string_lossy().into_owned()).collect();
    let passes = |start: &str| {
        steps.iter().any(|step| {
            step.strip_prefix(start)
                .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit() || c == '-'))
        })
    };
    let subsystem = fs::canonicalize(device.folder.join("device/subsystem")).ok();
    let subsystem = subsystem.and_then(|path| Some(path.file_name()?.to_str()?.to_owned()));
    let special = [
        ("usb", "usb"),
        ("ata", "sata"),
        ("session", "iscsi"),
        ("end_device", "sas"),
        ("rport", "fc"),
    ];
    match special.iter().find(|(start, _)| passes(start)) {
        Some((_, name)) => Some((*name).to_owned()),
        None if passes("virtio") => Some("virtio".to_owned()),
        None => subsystem,
    }
}
