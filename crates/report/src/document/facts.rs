//! The host's and the targets' facts as they stand in the document. What could not be found out is
//! `null`, never zero.

use fathom_core::{Bytes, facts};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Ceiling, Reduction};

/// The machine that generated the load.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Host {
    /// The host's name.
    pub name: String,
    /// Kernel release, such as "6.18.44".
    pub kernel: String,
    /// Operating system, as /etc/os-release names it.
    pub os: Option<String>,
    /// CPU model.
    pub cpu_model: Option<String>,
    /// CPUs that the process could run on.
    pub cpus: u32,
    /// Where each of them is; none in results of versions before 0.1.0 was finished.
    #[serde(default)]
    pub cpu_places: Vec<CpuPlace>,
    /// NUMA nodes.
    pub numa_nodes: u32,
    /// Memory of the machine.
    pub memory_bytes: u64,
    /// Memory that the cgroup allowed, if less.
    pub memory_limit_bytes: Option<u64>,
    /// CPUs' worth of time that the cgroup allowed, if limited.
    pub cpu_limit: Option<f64>,
    /// The hypervisor or container that it seemed to run in.
    pub virtualization: Option<String>,
    /// Whether the process ran as root.
    pub root: bool,
    /// The clock that stamped the I/Os.
    pub clock: Clock,
    /// What the load generator could do here at most, measured before the first I/O; none where it
    /// was not measured.
    pub ceiling: Option<Ceiling>,
    /// How the process ranked against others; none in results of versions that did not look.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rank: Option<Rank>,
}

/// How the process ranked against others where they wanted the same CPU or disk.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Rank {
    /// Its nice value: 0 unless somebody chose another one, 19 is the last.
    pub nice: i32,
    /// The policy of the scheduler, if it is one that gives way to others: "batch", "idle".
    pub policy: Option<String>,
    /// The priority of its I/Os, if one was set, such as "idle" or "best-effort:7".
    pub io_priority: Option<String>,
    /// The nice value of its session, where the kernel groups the sessions (autogroup).
    pub session_nice: Option<i32>,
    /// The least weight of its cgroups for CPU time, as a share of the default; none if it was the
    /// default or not told.
    pub cpu_weight: Option<f64>,
}

/// Where a CPU is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CpuPlace {
    /// Its number.
    pub number: u32,
    /// Its package, which is its socket.
    pub package: Option<u32>,
    /// Its core in the package: CPUs that share both are siblings on one core.
    pub core: Option<u32>,
    /// Its NUMA node.
    pub node: Option<u32>,
}

/// The clock that stamped the I/Os.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Clock {
    /// "tsc" or "CLOCK_MONOTONIC".
    pub source: String,
    /// The smallest step that was seen.
    pub resolution_ns: f64,
    /// What one reading cost.
    pub cost_ns: f64,
}

/// What kind of thing a target is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TargetKind {
    /// A regular file.
    File,
    /// A block device.
    BlockDevice,
    /// A simulated device.
    Simulated,
    /// A character device such as /dev/zero, for calibration.
    CharacterDevice,
    /// A folder: the place of files that do not exist yet. It is only inspected.
    Folder,
    /// An NVMe generic device, which takes NVMe commands as they are, past the block layer.
    NvmeGeneric,
}

/// A target and everything below it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Target {
    /// As the user named it.
    pub name: String,
    /// With every link resolved.
    pub path: String,
    /// What it is.
    pub kind: TargetKind,
    /// How large it is.
    pub size_bytes: u64,
    /// What offsets, lengths and memory of direct I/O have to be multiples of.
    pub direct_alignment_bytes: Option<u64>,
    /// The file system it is on, if it is a file.
    pub file_system: Option<FileSystem>,
    /// What of the file was ever written, if it is a file and its file system can tell.
    pub extents: Option<Extents>,
    /// What samples of what was read are like, taken before the run; none where none were taken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<Content>,
    /// What a probe of writes has told of what it makes of data of which something can be saved; none
    /// where there was no probe.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reduction: Option<Reduction>,
    /// The devices below, from the top to the bottom; a layer comes before what it consists of.
    pub layers: Vec<Layer>,
    /// Who used the target, if it is a block device.
    pub in_use: Vec<InUse>,
    /// What the control groups of the process allowed it at the devices below.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub limits: Vec<IoLimit>,
}

/// What a control group allowed the process at a device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct IoLimit {
    /// The kernel's name of the device.
    pub device: String,
    /// What was limited: "read-bandwidth", "write-bandwidth" (bytes per second), "read-iops",
    /// "write-iops" (per second), "latency" (microseconds) or "weight".
    pub kind: String,
    /// The figure.
    pub value: u64,
    /// The file that said so.
    pub file: String,
}

/// The file system that a file is on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FileSystem {
    /// "ext4", "xfs", "btrfs", "tmpfs", "fuse" ...
    pub kind: String,
    /// What is mounted.
    pub source: String,
    /// Where it is mounted.
    pub mount_point: String,
    /// Mount options, as /proc/self/mountinfo has them.
    pub options: String,
    /// Its size.
    pub size_bytes: u64,
    /// What an unprivileged process could still use.
    pub available_bytes: u64,
    /// Whether it was mounted read-only.
    pub read_only: bool,
    /// Whether an overwrite goes to another place.
    pub copy_on_write: bool,
    /// The compression that was switched on, if one was.
    pub compression: Option<String>,
}

/// What of a file was ever written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Extents {
    /// Written bytes.
    pub written_bytes: u64,
    /// Bytes that are reserved and never were written: they read as zeros without the medium.
    pub unwritten_bytes: u64,
    /// Bytes that are not even reserved.
    pub holes_bytes: u64,
    /// How many extents there are.
    pub count: u64,
    /// Bytes in which other files, snapshots or other places of the file had a part.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub shared_bytes: u64,
}

/// What older files do not have is not written where there is nothing of it.
fn is_zero(bytes: &u64) -> bool {
    *bytes == 0
}

/// What samples of a target's content are like, taken before the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Content {
    /// Blocks that were read, each at another place.
    pub samples: u32,
    /// How large each was.
    pub block_bytes: u64,
    /// Those of zeros alone.
    pub zeros: u32,
    /// Those full of a pattern of at most 512 bytes that is not zeros.
    pub patterned: u32,
    /// Those of the others that equal another one.
    pub equal: u32,
    /// The share of what is neither that an entropy coder saves, in the mean, from 0 to 1.
    pub compressible: f64,
}

/// What a layer of a target's device stack is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LayerKind {
    /// A whole disk, or what looks like one from here.
    Disk,
    /// A partition.
    Partition,
    /// A software RAID array.
    Md,
    /// A device-mapper device: LVM, crypt, multipath.
    DeviceMapper,
    /// A file presented as a device.
    Loop,
    /// Compressed memory.
    Zram,
    /// Several devices under one btrfs.
    Btrfs,
}

/// One device of a target's stack.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Layer {
    /// The kernel's name, such as "md0" or "nvme0n1".
    pub name: String,
    /// Major and minor number; none for what has no device of its own.
    pub device: Option<(u32, u32)>,
    /// What it is.
    pub kind: LayerKind,
    /// How large it is.
    pub size_bytes: u64,
    /// The places, in the target's list of layers, of what this one consists of.
    pub members: Vec<usize>,
    /// How it spreads data over its members, if it does.
    pub stripe: Option<Stripe>,
    /// Free words on the kind, such as "raid6" or "crypt" or a loop device's file.
    pub detail: Option<String>,
    /// Where it began on what it consists of, if it was a partition or a loop device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub begins_at_bytes: Option<u64>,
    /// Whether a loop device went past the page cache to its file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub direct: Option<bool>,
    /// The request queue, for every whole device.
    pub queue: Option<Queue>,
    /// The hardware, for disks.
    pub disk: Option<Disk>,
}

/// How an array spreads data over its members.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Stripe {
    /// What goes to one member before the next one's turn.
    pub chunk_bytes: u64,
    /// The data of one full stripe: a write of less may have to read first.
    pub full_bytes: u64,
}

/// A device's request queue.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Queue {
    /// The scheduler in force.
    pub scheduler: Option<String>,
    /// Requests that the block layer holds for each hardware queue.
    pub nr_requests: Option<u32>,
    /// Hardware queues.
    pub hardware_queues: Option<u32>,
    /// The smallest addressable unit.
    pub logical_sector_bytes: Option<u64>,
    /// What the medium writes at once.
    pub physical_sector_bytes: Option<u64>,
    /// The size below which the device asks not to be written.
    pub minimum_io_bytes: Option<u64>,
    /// The size that the device likes best; none if it does not say.
    pub optimal_io_bytes: Option<u64>,
    /// The largest request the kernel will send.
    pub max_request_bytes: Option<u64>,
    /// Whether there is a volatile write cache ("write back").
    pub volatile_write_cache: Option<bool>,
    /// Whether there is one by what the device itself or its driver says, where that can be seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write_cache_told: Option<bool>,
    /// Whether writes can be made durable one by one (FUA).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fua: Option<bool>,
    /// The most that can be discarded at once; zero means not at all.
    pub discard_max_bytes: Option<u64>,
    /// Whether the kernel may poll it.
    pub polling: Option<bool>,
    /// Whether the kernel counted its I/Os.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counts: Option<bool>,
}

/// A disk's hardware.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Disk {
    /// Vendor and model.
    pub model: Option<String>,
    /// Firmware revision.
    pub firmware: Option<String>,
    /// Whether it turns, where that is known: what a virtual disk says of it is a default.
    pub rotational: Option<bool>,
    /// The NUMA node it is attached to.
    pub numa_node: Option<u32>,
    /// How it is attached: "nvme", "virtio", "scsi" ...
    pub transport: Option<String>,
    /// Commands the device itself holds at once, where it says so.
    pub device_queue_depth: Option<u32>,
}

/// Who used a block device: what forbids writing to it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "use", rename_all = "snake_case")]
pub enum InUse {
    /// It, or a partition of it, was mounted.
    Mounted {
        /// The device that was.
        device: String,
        /// Where.
        mount_point: String,
    },
    /// It, or a partition of it, was swap that was switched on.
    Swap {
        /// The device that was.
        device: String,
    },
    /// Another device was made of it: md, LVM, device mapper.
    Holder {
        /// The device that was held.
        device: String,
        /// The device that held it.
        holder: String,
    },
    /// It carried the mark of a file system, a RAID member, LVM, swap, a partition table.
    Signature {
        /// The device that did.
        device: String,
        /// What the mark stands for.
        kind: String,
    },
    /// Somebody had it open for himself alone.
    Exclusive {
        /// The device.
        device: String,
    },
    /// Whether it held data, or was used, could not be seen.
    Unknown {
        /// The device, or the file.
        device: String,
        /// What stood in the way.
        why: String,
    },
}

fn bytes(bytes: Option<Bytes>) -> Option<u64> {
    bytes.map(|bytes| bytes.0)
}

impl From<&facts::CpuPlace> for CpuPlace {
    fn from(place: &facts::CpuPlace) -> Self {
        let facts::CpuPlace { number, core, node } = *place;
        Self {
            number,
            package: core.map(|(package, _)| package),
            core: core.map(|(_, core)| core),
            node,
        }
    }
}

impl From<&facts::Host> for Host {
    fn from(host: &facts::Host) -> Self {
        Self {
            name: host.name.clone(),
            kernel: host.kernel.clone(),
            os: host.os.clone(),
            cpu_model: host.cpu_model.clone(),
            cpus: host.cpus,
            cpu_places: host.cpu_places.iter().map(CpuPlace::from).collect(),
            numa_nodes: host.numa_nodes,
            memory_bytes: host.memory.0,
            memory_limit_bytes: bytes(host.memory_limit),
            cpu_limit: host.cpu_limit,
            virtualization: host.virtualization.clone(),
            root: host.root,
            clock: Clock {
                source: host.clock.source.clone(),
                resolution_ns: host.clock.resolution_ns,
                cost_ns: host.clock.cost_ns,
            },
            ceiling: host.ceiling.as_ref().map(Ceiling::from),
            rank: Some(Rank {
                nice: host.rank.nice,
                policy: host.rank.policy.clone(),
                io_priority: host.rank.io.map(|priority| priority.to_string()),
                session_nice: host.rank.session_nice,
                cpu_weight: host.rank.cpu_weight,
            }),
        }
    }
}

impl From<&facts::Target> for Target {
    fn from(target: &facts::Target) -> Self {
        Self {
            name: target.name.clone(),
            path: target.path.clone(),
            kind: match target.kind {
                facts::TargetKind::File => TargetKind::File,
                facts::TargetKind::BlockDevice => TargetKind::BlockDevice,
                facts::TargetKind::Simulated => TargetKind::Simulated,
                facts::TargetKind::CharacterDevice => TargetKind::CharacterDevice,
                facts::TargetKind::Folder => TargetKind::Folder,
                facts::TargetKind::NvmeGeneric => TargetKind::NvmeGeneric,
            },
            size_bytes: target.size.0,
            direct_alignment_bytes: bytes(target.direct_alignment),
            file_system: target.file_system.as_ref().map(FileSystem::from),
            extents: target.extents.as_ref().map(Extents::from),
            content: target.content.as_ref().map(Content::from),
            reduction: target.reduction.as_ref().map(Reduction::from),
            layers: target.layers.iter().map(Layer::from).collect(),
            in_use: target.in_use.iter().map(InUse::from).collect(),
            limits: target.limits.iter().map(IoLimit::from).collect(),
        }
    }
}

impl From<&facts::IoLimit> for IoLimit {
    fn from(limit: &facts::IoLimit) -> Self {
        Self {
            device: limit.device.clone(),
            kind: limit.kind.name().to_owned(),
            value: limit.value,
            file: limit.file.clone(),
        }
    }
}

impl From<&facts::FileSystem> for FileSystem {
    fn from(fs: &facts::FileSystem) -> Self {
        Self {
            kind: fs.kind.clone(),
            source: fs.source.clone(),
            mount_point: fs.mount_point.clone(),
            options: fs.options.clone(),
            size_bytes: fs.size.0,
            available_bytes: fs.available.0,
            read_only: fs.read_only,
            copy_on_write: fs.copy_on_write,
            compression: fs.compression.clone(),
        }
    }
}

impl From<&facts::Content> for Content {
    fn from(content: &facts::Content) -> Self {
        Self {
            samples: content.samples,
            block_bytes: content.block.0,
            zeros: content.zeros,
            patterned: content.patterned,
            equal: content.equal,
            compressible: content.compressible,
        }
    }
}

impl From<&facts::Extents> for Extents {
    fn from(extents: &facts::Extents) -> Self {
        Self {
            written_bytes: extents.written.0,
            unwritten_bytes: extents.unwritten.0,
            holes_bytes: extents.holes.0,
            count: extents.count,
            shared_bytes: extents.shared.0,
        }
    }
}

impl From<&facts::Layer> for Layer {
    fn from(layer: &facts::Layer) -> Self {
        Self {
            name: layer.name.clone(),
            device: layer.device,
            kind: match layer.kind {
                facts::LayerKind::Disk => LayerKind::Disk,
                facts::LayerKind::Partition => LayerKind::Partition,
                facts::LayerKind::Md => LayerKind::Md,
                facts::LayerKind::DeviceMapper => LayerKind::DeviceMapper,
                facts::LayerKind::Loop => LayerKind::Loop,
                facts::LayerKind::Zram => LayerKind::Zram,
                facts::LayerKind::Btrfs => LayerKind::Btrfs,
            },
            size_bytes: layer.size.0,
            members: layer.members.clone(),
            stripe: layer.stripe.map(|s| Stripe { chunk_bytes: s.chunk.0, full_bytes: s.full.0 }),
            detail: layer.detail.clone(),
            begins_at_bytes: bytes(layer.begins_at),
            direct: layer.direct,
            queue: layer.queue.as_ref().map(Queue::from),
            disk: layer
                .disk
                .as_ref()
                .map(|disk| Disk { rotational: layer.turns(), ..Disk::from(disk) }),
        }
    }
}

impl From<&facts::Queue> for Queue {
    fn from(queue: &facts::Queue) -> Self {
        Self {
            scheduler: queue.scheduler.clone(),
            nr_requests: queue.nr_requests,
            hardware_queues: queue.hardware_queues,
            logical_sector_bytes: bytes(queue.logical_sector),
            physical_sector_bytes: bytes(queue.physical_sector),
            minimum_io_bytes: bytes(queue.minimum_io),
            optimal_io_bytes: bytes(queue.optimal_io),
            max_request_bytes: bytes(queue.max_request),
            volatile_write_cache: queue.volatile_write_cache,
            write_cache_told: queue.write_cache_told,
            fua: queue.fua,
            discard_max_bytes: bytes(queue.discard_max),
            polling: queue.polling,
            counts: queue.counts,
        }
    }
}

impl From<&facts::Disk> for Disk {
    fn from(disk: &facts::Disk) -> Self {
        Self {
            model: disk.model.clone(),
            firmware: disk.firmware.clone(),
            rotational: disk.rotational,
            numa_node: disk.numa_node,
            transport: disk.transport.clone(),
            device_queue_depth: disk.device_queue_depth,
        }
    }
}

impl From<&facts::InUse> for InUse {
    fn from(in_use: &facts::InUse) -> Self {
        match in_use.clone() {
            facts::InUse::Mounted { device, mount_point } => Self::Mounted { device, mount_point },
            facts::InUse::Swap { device } => Self::Swap { device },
            facts::InUse::Holder { device, holder } => Self::Holder { device, holder },
            facts::InUse::Signature { device, kind } => Self::Signature { device, kind },
            facts::InUse::Exclusive { device } => Self::Exclusive { device },
            facts::InUse::Unknown { device, why } => Self::Unknown { device, why },
        }
    }
}

impl TargetKind {
    /// The name for people.
    pub fn name(self) -> &'static str {
        match self {
            Self::File => "file",
            Self::BlockDevice => "block device",
            Self::Simulated => "simulated device",
            Self::CharacterDevice => "character device",
            Self::Folder => "folder",
            Self::NvmeGeneric => "NVMe generic device",
        }
    }
}

impl LayerKind {
    /// The name for people.
    pub fn name(self) -> &'static str {
        match self {
            Self::Disk => "disk",
            Self::Partition => "partition",
            Self::Md => "md array",
            Self::DeviceMapper => "device mapper",
            Self::Loop => "loop device",
            Self::Zram => "zram",
            Self::Btrfs => "btrfs",
        }
    }
}

impl Target {
    /// The disks at the bottom.
    pub fn disks(&self) -> impl Iterator<Item = &Layer> {
        self.layers.iter().filter(|layer| layer.members.is_empty())
    }
}
