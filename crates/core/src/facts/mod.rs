//! The facts about the host and the targets, as plain data. The engine's `host` fills them in; the
//! verdict and the document read them. A fact that could not be found out is `None`, never zero.

mod names;
mod reduction;

pub use names::{SEPARATORS, short_names};
pub use reduction::{Answer, MUCH, Reduction, Saving};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::calibration::Ceiling;
use crate::spec::IoPriority;
use crate::units::{Bytes, Span};

/// The machine that generates the load.
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
    /// CPUs that this process may run on.
    pub cpus: u32,
    /// The numbers of these CPUs; empty if they are not known.
    #[serde(default)]
    pub cpu_places: Vec<CpuPlace>,
    /// NUMA nodes.
    pub numa_nodes: u32,
    /// Memory of the machine.
    #[serde(rename = "memory_bytes")]
    pub memory: Bytes,
    /// The memory that the cgroup allows, if that is less.
    #[serde(rename = "memory_limit_bytes")]
    pub memory_limit: Option<Bytes>,
    /// CPUs' worth of time that the cgroup allows, if limited.
    pub cpu_limit: Option<f64>,
    /// The hypervisor or container in which fathom seems to run.
    pub virtualization: Option<String>,
    /// Whether the process runs as root.
    pub root: bool,
    /// The clock that stamps I/Os.
    pub clock: Clock,
    /// The load generator's ceiling on this host; none if it was not measured.
    pub ceiling: Option<Ceiling>,
    /// The rank of this process among others; the usual one in results of versions that did not
    /// record it.
    #[serde(default)]
    pub rank: Rank,
}

/// The rank of this process among others that want the same CPU or disk.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Rank {
    /// Its nice value: 0 unless it was changed, 19 is the lowest rank.
    pub nice: i32,
    /// The scheduling policy, if it yields to others: "batch", "idle".
    pub policy: Option<String>,
    /// The priority of its I/Os, if one was set.
    #[serde(rename = "io_priority", with = "priority_as_text")]
    #[schemars(with = "Option<String>")]
    pub io: Option<IoPriority>,
    /// The nice value of its session, if the kernel groups the sessions (autogroup).
    pub session_nice: Option<i32>,
    /// The smallest weight of its cgroups for CPU time, as a share of the default; none if it is
    /// the default or unknown.
    pub cpu_weight: Option<f64>,
}

/// A CPU that this process may run on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CpuPlace {
    /// Its number.
    pub number: u32,
    /// Its package, which is its socket; none if it is unknown.
    pub package: Option<u32>,
    /// Its core in the package: CPUs that share both are siblings on one core.
    pub core: Option<u32>,
    /// Its NUMA node; none if it is unknown.
    pub node: Option<u32>,
}

impl CpuPlace {
    /// Its package and its core there: CPUs with the same pair are siblings on one core. None if
    /// they are unknown.
    pub fn whole_core(&self) -> Option<(u32, u32)> {
        self.package.zip(self.core)
    }
}

/// The clock that stamps I/Os.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Clock {
    /// "tsc" or "CLOCK_MONOTONIC".
    pub source: String,
    /// The smallest step that was observed, in nanoseconds.
    pub resolution_ns: f64,
    /// The cost of one reading, in nanoseconds.
    pub cost_ns: f64,
}

/// The kind of a target.
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
    /// A folder, for files that do not exist yet. It can be inspected, not measured.
    Folder,
    /// An NVMe generic device such as /dev/ng0n1, which takes NVMe commands directly.
    NvmeGeneric,
}

impl TargetKind {
    /// The name in messages and in the document.
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

/// A target and everything below it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Target {
    /// As the user named it.
    pub name: String,
    /// With every link resolved.
    pub path: String,
    /// Its kind.
    pub kind: TargetKind,
    /// The file's identity, if it is a file.
    #[serde(skip)]
    pub identity: Option<FileIdentity>,
    /// The sequence number that the kernel gave the disk when it appeared. No other disk gets the
    /// same number before the next boot. None if the kernel gives none, as before Linux 5.15.
    #[serde(skip)]
    pub disk_sequence: Option<u64>,
    /// Its size. For a folder, the free space; for a character device, a nominal size.
    #[serde(rename = "size_bytes")]
    pub size: Bytes,
    /// Offsets, lengths and memory of direct I/O have to be multiples of these.
    #[serde(rename = "direct_alignment_bytes")]
    pub direct_alignment: Option<Bytes>,
    /// The writes to it that can be atomic; none if no write can, or if the kernel does not report
    /// it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub atomic_writes: Option<AtomicWrites>,
    /// The file system that holds it, if it is a file.
    pub file_system: Option<FileSystem>,
    /// The parts of the file that were ever written, if it is a file and its file system reports
    /// them.
    pub extents: Option<Extents>,
    /// What samples of the data that the run reads look like; none if no samples were taken, or
    /// none could be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<Content>,
    /// The result of a probe with writes: how the target treats data of which something can be
    /// saved; none without a probe.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reduction: Option<Reduction>,
    /// The devices below, from the top to the bottom; a layer comes before its members.
    pub layers: Vec<Layer>,
    /// The users of the target, anything else that forbids writing to it, and the signatures found
    /// on a device. For a file these are swap and loop devices.
    pub in_use: Vec<InUse>,
    /// What its commands need to know, if it is an NVMe generic device.
    #[serde(skip)]
    pub namespace: Option<Namespace>,
    /// The limits that control groups of this process set on the devices below.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub limits: Vec<IoLimit>,
}

/// The identity of a file: another file that takes its name has another identity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileIdentity {
    /// The number of its file system.
    pub device: u64,
    /// The number of its inode, which may be reused once the file is removed.
    pub inode: u64,
    /// The inode's time of birth, in nanoseconds since 1970; none if the file system does not
    /// record it.
    pub born_ns: Option<u64>,
    /// The inode's generation, which distinguishes it from earlier inodes with its number; none if
    /// the file system does not report one.
    pub generation: Option<u32>,
}

impl FileIdentity {
    /// What distinguishes this file from all others with its number; none if the file system
    /// reports nothing of the kind.
    pub fn birth(&self) -> Option<String> {
        let born = self.born_ns.map(|born| format!("born {born} ns after 1970"));
        born.or_else(|| self.generation.map(|generation| format!("generation {generation}")))
    }
}

/// A limit that a control group of this process sets on a device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct IoLimit {
    /// The kernel's name of the device, such as "sda".
    pub device: String,
    /// The quantity that is limited.
    pub kind: IoLimitKind,
    /// The figure, in the unit of its kind.
    pub value: u64,
    /// The file that contains the limit.
    pub file: String,
}

/// The quantities that a control group can limit at a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum IoLimitKind {
    /// Bytes read per second.
    ReadBandwidth,
    /// Bytes written per second.
    WriteBandwidth,
    /// Reads per second.
    ReadIops,
    /// Writes per second.
    WriteIops,
    /// The response time in microseconds: if this group misses it, others are held back
    /// (io.latency).
    #[serde(rename = "latency")]
    TargetTime,
    /// The share of the device relative to other groups, usually 100 (io.weight, io.bfq.weight).
    Weight,
}

impl IoLimitKind {
    /// The name in the document.
    pub fn name(self) -> &'static str {
        match self {
            Self::ReadBandwidth => "read-bandwidth",
            Self::WriteBandwidth => "write-bandwidth",
            Self::ReadIops => "read-iops",
            Self::WriteIops => "write-iops",
            Self::TargetTime => "latency",
            Self::Weight => "weight",
        }
    }
}

/// An NVMe namespace, with the facts that commands need which bypass the block layer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Namespace {
    /// Major and minor number of the generic device.
    pub device: (u32, u32),
    /// The number that every command names.
    pub id: u32,
    /// The block device with the same data, such as "/dev/nvme0n1".
    pub block_device: String,
    /// The size of a logical block, in which commands count.
    pub logical_block: Bytes,
    /// The most that one command may move.
    pub largest: Bytes,
    /// The kernel's limit that sets this: "queue/max_hw_sectors_kb".
    pub limit: &'static str,
}

/// An I/O priority as people write it, such as "idle" or "best-effort:7".
mod priority_as_text {
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use crate::spec::IoPriority;

    pub fn serialize<S: Serializer>(
        priority: &Option<IoPriority>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        priority.map(|priority| priority.to_string()).serialize(serializer)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<IoPriority>, D::Error> {
        let text = Option::<String>::deserialize(deserializer)?;
        text.map(|text| text.parse().map_err(D::Error::custom)).transpose()
    }
}

impl Host {
    /// The most CPUs' worth of time that this process can have.
    pub fn cpu_time(&self) -> f64 {
        let cpus = f64::from(self.cpus);
        self.cpu_limit.map_or(cpus, |limit| limit.min(cpus))
    }
}

/// The writes that can be atomic, as the file system or the device reports them
/// (STATX_WRITE_ATOMIC): those with a size that is a power of two from the smallest to the largest,
/// at a multiple of that size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AtomicWrites {
    /// The smallest size.
    #[serde(rename = "smallest_bytes")]
    pub smallest: Bytes,
    /// The largest size.
    #[serde(rename = "largest_bytes")]
    pub largest: Bytes,
}

impl AtomicWrites {
    /// The limits that the kernel reports; none if it reports that no write can be atomic.
    pub fn of(smallest: Bytes, largest: Bytes) -> Option<Self> {
        (Bytes(0) < smallest && smallest <= largest).then_some(Self { smallest, largest })
    }

    /// Whether a write of this size can be atomic.
    pub fn allow(&self, size: Bytes) -> bool {
        size.0.is_power_of_two() && self.smallest <= size && size <= self.largest
    }
}

impl Target {
    /// A simulated device: it has no layers below.
    pub fn simulated(name: &str, size: Bytes) -> Self {
        Self {
            name: name.to_owned(),
            path: name.to_owned(),
            kind: TargetKind::Simulated,
            identity: None,
            disk_sequence: None,
            size,
            direct_alignment: None,
            atomic_writes: None,
            file_system: None,
            extents: None,
            content: None,
            reduction: None,
            layers: Vec::new(),
            in_use: Vec::new(),
            namespace: None,
            limits: Vec::new(),
        }
    }

    /// The users of the target, including users that cannot be seen, but not the signatures that
    /// were found on it, because data need not be in use.
    pub fn uses(&self) -> impl Iterator<Item = &InUse> {
        self.in_use.iter().filter(|one| !matches!(one, InUse::Signature { .. }))
    }

    /// The topmost layer that spreads data over several others, if there is one.
    pub fn array(&self) -> Option<&Layer> {
        self.layers.iter().find(|layer| 1 < layer.members.len())
    }

    /// The number of drives that it is spread over, as far as can be seen from here: at least one.
    pub fn drives(&self) -> u32 {
        self.array().map_or(1, |array| array.members.len() as u32)
    }

    /// Whether all disks at its bottom are known to be rotating disks.
    pub fn turns(&self) -> bool {
        let mut disks = self.disks().peekable();
        disks.peek().is_some() && disks.all(|disk| disk.turns() == Some(true))
    }

    /// The disks at the bottom.
    pub fn disks(&self) -> impl Iterator<Item = &Layer> {
        self.layers.iter().filter(|layer| layer.members.is_empty())
    }
}

/// The file system that holds a file.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FileSystem {
    /// "ext4", "xfs", "btrfs", "tmpfs", "fuse" ...
    pub kind: String,
    /// The source of the mount.
    pub source: String,
    /// Where it is mounted.
    pub mount_point: String,
    /// Mount options, as /proc/self/mountinfo has them.
    pub options: String,
    /// Its size.
    #[serde(rename = "size_bytes")]
    pub size: Bytes,
    /// The space that an unprivileged process may still use.
    #[serde(rename = "available_bytes")]
    pub available: Bytes,
    /// Whether it was mounted read-only.
    pub read_only: bool,
    /// Whether an overwrite goes to another place (btrfs, zfs, bcachefs and the like).
    pub copy_on_write: bool,
    /// The compression that is switched on, if one is.
    pub compression: Option<String>,
    /// The layer of an overlay that holds the file; none if the layers cannot be seen, or it is not
    /// an overlay.
    #[serde(skip)]
    pub overlay: Option<OverlayLayer>,
}

/// A layer of an overlay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OverlayLayer {
    /// The layer that takes writes.
    Upper,
    /// A layer that is never written to: a file in it is copied up before the first write to it.
    Lower,
}

/// Which parts of a file were ever written.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Extents {
    /// Written bytes.
    #[serde(rename = "written_bytes")]
    pub written: Bytes,
    /// Bytes that are reserved but were never written: they read as zeros without reaching the
    /// medium.
    #[serde(rename = "unwritten_bytes")]
    pub unwritten: Bytes,
    /// Bytes that are not even reserved.
    #[serde(rename = "holes_bytes")]
    pub holes: Bytes,
    /// The number of extents.
    pub count: u64,
    /// Bytes that are shared with other files, snapshots or other places of the file: a write puts
    /// them elsewhere.
    #[serde(rename = "shared_bytes", default, skip_serializing_if = "Bytes::is_zero")]
    pub shared: Bytes,
    /// The ranges that were never written, from offset to offset, in order; none if they are not
    /// known.
    #[serde(skip)]
    pub never_written: Option<Vec<(u64, u64)>>,
    /// The ranges that are shared; none if they are not known.
    #[serde(skip)]
    pub shared_at: Option<Vec<(u64, u64)>>,
}

impl Extents {
    /// How many bytes of these ranges, which are in order and do not overlap, were never written;
    /// none if those places are not known.
    pub fn never_written_of(&self, ranges: &[(u64, u64)]) -> Option<Bytes> {
        Some(common(self.never_written.as_ref()?, ranges))
    }

    /// How many bytes of these ranges are shared; none if those places are not known.
    pub fn shared_of(&self, ranges: &[(u64, u64)]) -> Option<Bytes> {
        Some(common(self.shared_at.as_ref()?, ranges))
    }
}

/// Bytes that two lists of ranges have in common, each in order and without overlaps.
fn common(some: &[(u64, u64)], others: &[(u64, u64)]) -> Bytes {
    let (mut first, mut second, mut sum) = (0, 0, 0);
    while let (Some(one), Some(other)) = (some.get(first), others.get(second)) {
        sum += one.1.min(other.1).saturating_sub(one.0.max(other.0));
        match one.1 <= other.1 {
            true => first += 1,
            false => second += 1,
        }
    }
    Bytes(sum)
}

/// What samples of a target's content look like, taken before a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Content {
    /// Blocks that were read, each at a different place.
    pub samples: u32,
    /// The size of each.
    #[serde(rename = "block_bytes")]
    pub block: Bytes,
    /// Those that are all zeros.
    pub zeros: u32,
    /// Those that consist of a pattern of at most 512 bytes that is not zeros.
    pub patterned: u32,
    /// Those of the others that equal another block.
    pub equal: u32,
    /// The share of the remaining blocks that an entropy coder saves, on average: from 0 to 1.
    pub compressible: f64,
}

impl Content {
    /// Samples that repeat themselves or each other.
    pub fn repeating(&self) -> u32 {
        self.zeros + self.patterned + self.equal
    }
}

/// One device of a target's stack.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Layer {
    /// The kernel's name, such as "md0" or "nvme0n1".
    pub name: String,
    /// Major and minor number; none for a layer without its own device.
    pub device: Option<(u32, u32)>,
    /// Its kind.
    pub kind: LayerKind,
    /// Its size.
    #[serde(rename = "size_bytes")]
    pub size: Bytes,
    /// Its members, by their places in the target's list of layers.
    pub members: Vec<usize>,
    /// How it spreads data over its members, if it does.
    pub stripe: Option<Stripe>,
    /// A free-text detail of the kind, such as "raid6" or "crypt" or a loop device's file.
    pub detail: Option<String>,
    /// Where it begins on the layer below, if it is a partition or a loop device.
    #[serde(rename = "begins_at_bytes", default, skip_serializing_if = "Option::is_none")]
    pub begins_at: Option<Bytes>,
    /// Whether a loop device accesses its file without the page cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub direct: Option<bool>,
    /// Whether an array is complete and idle.
    #[serde(skip)]
    pub array: Option<ArrayState>,
    /// The request queue, for every whole device.
    pub queue: Option<Queue>,
    /// The hardware, for disks.
    pub disk: Option<Disk>,
}

impl Layer {
    /// Whether it is a disk that a hypervisor presents, as far as it reports that.
    pub fn is_virtual(&self) -> bool {
        let Some(disk) = &self.disk else { return false };
        let model = disk.model.as_deref().unwrap_or_default();
        let marks = ["QEMU", "VBOX", "Virtual", "VMware", "Amazon", "Google", "Msft"];
        matches!(disk.transport.as_deref(), Some("virtio" | "xen" | "vbd" | "vmbus" | "hyperv"))
            || self.name.starts_with("xvd")
            || marks.iter().any(|mark| model.contains(mark))
    }

    /// Whether it is a rotating disk; none if this is unknown. For a virtual disk, a loop device
    /// and the like the kernel's flag is only a default and not a fact.
    pub fn turns(&self) -> Option<bool> {
        let is_real = self.kind == LayerKind::Disk && !self.is_virtual();
        self.disk.as_ref().filter(|_| is_real)?.rotational
    }
}

/// The kind of a layer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LayerKind {
    /// A whole disk, or a device that looks like one from here.
    #[default]
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

impl LayerKind {
    /// The name in messages and in the document.
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

/// How an array spreads data over its members.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Stripe {
    /// The amount that goes to one member before the next one follows.
    #[serde(rename = "chunk_bytes")]
    pub chunk: Bytes,
    /// The data of one full stripe: a write of less may need reads first.
    #[serde(rename = "full_bytes")]
    pub full: Bytes,
}

/// A device's request queue.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Queue {
    /// The scheduler in force.
    pub scheduler: Option<String>,
    /// Requests that the block layer holds for each hardware queue.
    pub nr_requests: Option<u32>,
    /// Hardware queues.
    pub hardware_queues: Option<u32>,
    /// The smallest addressable unit.
    #[serde(rename = "logical_sector_bytes")]
    pub logical_sector: Option<Bytes>,
    /// The smallest unit that the medium writes.
    #[serde(rename = "physical_sector_bytes")]
    pub physical_sector: Option<Bytes>,
    /// The size below which the device asks not to be written.
    #[serde(rename = "minimum_io_bytes")]
    pub minimum_io: Option<Bytes>,
    /// The size that the device prefers; none if it does not report one.
    #[serde(rename = "optimal_io_bytes")]
    pub optimal_io: Option<Bytes>,
    /// The largest request that the kernel sends.
    #[serde(rename = "max_request_bytes")]
    pub max_request: Option<Bytes>,
    /// The largest number of memory segments in a request.
    #[serde(skip)]
    pub max_segments: Option<u32>,
    /// Whether there is a volatile write cache ("write back"), by the kernel's setting.
    pub volatile_write_cache: Option<bool>,
    /// Whether there is one according to the device itself or its driver, if that can be seen
    /// besides the kernel's setting.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write_cache_told: Option<bool>,
    /// Whether writes can be made durable one by one (FUA), which the kernel counts as no flushes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fua: Option<bool>,
    /// The most that can be discarded at once; zero means not at all.
    #[serde(rename = "discard_max_bytes")]
    pub discard_max: Option<Bytes>,
    /// Whether the kernel may poll it.
    pub polling: Option<bool>,
    /// Whether the kernel counts its I/Os (queue/iostats).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counts: Option<bool>,
}

/// A disk's hardware.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Disk {
    /// Vendor and model.
    pub model: Option<String>,
    /// Firmware revision.
    pub firmware: Option<String>,
    /// Whether it turns, where that is known: what a virtual disk says of it is the kernel's default.
    pub rotational: Option<bool>,
    /// The NUMA node it is attached to.
    pub numa_node: Option<u32>,
    /// How it is attached: "nvme", "virtio", "scsi" ...
    pub transport: Option<String>,
    /// The number of commands that the device itself holds at once, if it reports it.
    pub device_queue_depth: Option<u32>,
}

/// Why a block device must not be written to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "use", rename_all = "snake_case")]
pub enum InUse {
    /// It, or a partition of it, is mounted.
    Mounted {
        /// The device that is.
        device: String,
        /// The mount point.
        mount_point: String,
    },
    /// It, or a partition of it, is active swap.
    Swap {
        /// The device that is.
        device: String,
    },
    /// Another device is built on it: md, LVM, device mapper.
    Holder {
        /// The device that is held.
        device: String,
        /// The device that holds it.
        holder: String,
    },
    /// It carries the signature of a file system, a RAID member, LVM, swap, a partition table.
    Signature {
        /// The device that carries it.
        device: String,
        /// The meaning of the signature.
        kind: String,
    },
    /// A program has opened it exclusively.
    Exclusive {
        /// The device.
        device: String,
    },
    /// fathom cannot see whether it holds data or is in use: it may be anybody's.
    Unknown {
        /// The device, or the file.
        device: String,
        /// The obstacle.
        why: String,
    },
}

/// Counters of the host at one moment. Only differences have a meaning.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Counters {
    /// The longest delay with which they were read after an end of the window; in a difference, the
    /// sum of both delays.
    pub late: Span,
    /// One for each CPU that is online, by its number.
    pub cpus: Vec<(u32, CpuTime)>,
    /// One for each disk at the bottom of a target, and for each device that is a target or holds a
    /// file that is one.
    pub devices: Vec<DeviceCounters>,
    /// User CPU time of this process, all threads together, those of io_uring included.
    pub process_user: Span,
    /// Kernel CPU time of this process.
    pub process_kernel: Span,
    /// Time for which the cgroup kept the process off the CPUs.
    pub throttled: Option<Span>,
    /// The work of io_uring's own threads for this process; only recorded if io_uring carries the
    /// I/Os.
    pub io_wq: Option<IoWq>,
    /// The cost of memory.
    pub memory: Memory,
    /// The program that traces the process, such as "gdb (4711)".
    pub tracer: Option<String>,
    /// Times in which the process or the machine did not run; known only for a window, and none if
    /// they were not recorded.
    pub pauses: Option<Pauses>,
    /// The software RAID arrays below the targets, as they are at that moment.
    pub arrays: Vec<ArrayState>,
    /// The journals of the file systems that the targets are on.
    pub journals: Vec<Journal>,
    /// The observed state of each target, by its place; none for a target that was not examined.
    pub targets: Vec<Option<Seen>>,
}

/// The observed state of a target at one moment or, in a difference, how it changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// Whether its path names another file than the one that was opened, or none.
    pub replaced: bool,
    /// The time of the last change of its content, in nanoseconds since 1970; in a difference, by
    /// how much it moved.
    pub modified_ns: u64,
    /// Its size; in a difference, by how much it changed. A device has no size here: it is zero.
    pub size: Bytes,
    /// Other fathom processes that have it open; none if this is unknown.
    pub others: Option<Others>,
}

/// Other fathom processes at a target.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Others {
    /// Whether there is one.
    pub present: bool,
    /// Whether one writes to it.
    pub writing: bool,
}

impl Seen {
    /// The change from `earlier` to this.
    pub fn since(&self, earlier: &Self) -> Self {
        let either = |(now, then): (Others, Others)| Others {
            present: now.present || then.present,
            writing: now.writing || then.writing,
        };
        Self {
            replaced: self.replaced,
            modified_ns: self.modified_ns.abs_diff(earlier.modified_ns),
            size: Bytes(self.size.0.abs_diff(earlier.size.0)),
            others: self.others.zip(earlier.others).map(either),
        }
    }
}

/// Whether a software RAID array is complete and idle.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ArrayState {
    /// The kernel's name, such as "md0".
    pub name: String,
    /// The number of missing disks.
    pub missing: u32,
    /// Its own activity, such as "resync" or "recover"; none if it is idle.
    pub action: Option<String>,
}

impl ArrayState {
    /// The state of an array over some time: missing disks and activity at either end of it.
    fn since(&self, earlier: &Self) -> Self {
        Self {
            name: self.name.clone(),
            missing: self.missing.max(earlier.missing),
            action: self.action.clone().or_else(|| earlier.action.clone()),
        }
    }
}

/// The work of a file system's journal. Only differences have a meaning, except for the size, which
/// is a mean.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Journal {
    /// The file system: "ext4", "xfs".
    pub file_system: String,
    /// The device that it is on, by the kernel's name.
    pub device: String,
    /// Transactions that were committed, or writes of the log.
    pub commits: u64,
    /// The bytes that the journal wrote for them: for ext4 by the mean of all transactions since it
    /// was mounted.
    pub bytes: Bytes,
}

impl Journal {
    fn since(&self, earlier: &Self) -> Self {
        Self {
            file_system: self.file_system.clone(),
            device: self.device.clone(),
            commits: self.commits.saturating_sub(earlier.commits),
            bytes: Bytes(self.bytes.0.saturating_sub(earlier.bytes.0)),
        }
    }
}

/// The work of io_uring's own threads (io-wq) for this process. The kernel hands them every I/O
/// that it cannot start without waiting.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IoWq {
    /// I/Os that were handed to them, if fathom may count them.
    pub handed_over: Option<u64>,
    /// Each thread's number and the CPU time that it used. `None` if the kernel does not show them
    /// as threads of the process, before Linux 5.12.
    pub threads: Option<Vec<(u32, Span)>>,
    /// For each thread of the rings, submission threads (SQPOLL) included: its number, and how long
    /// it was ready to run and did not run. `None` if the kernel does not show them.
    pub waits: Option<Vec<(u32, Span)>>,
}

impl IoWq {
    /// The CPU time of all of them.
    pub fn cpu(&self) -> Option<Span> {
        let threads = self.threads.as_ref()?;
        Some(threads.iter().fold(Span(0), |sum, (_, cpu)| sum + *cpu))
    }

    /// How long all threads of the rings together were ready to run and did not run.
    pub fn wait(&self) -> Option<Span> {
        let waits = self.waits.as_ref()?;
        Some(waits.iter().fold(Span(0), |sum, (_, wait)| sum + *wait))
    }

    /// The difference from `earlier` to this. A thread that only this one has began in between. The
    /// time of a thread that only the earlier one has is unknown, because it ended, and is left
    /// out.
    fn since(&self, earlier: &Self) -> Self {
        let handed_over = match (self.handed_over, earlier.handed_over) {
            (Some(now), Some(then)) => Some(now.saturating_sub(then)),
            _ => None,
        };
        let of_each = |now: &Option<Vec<(u32, Span)>>, then: &Option<Vec<(u32, Span)>>| {
            let then = then.as_ref()?;
            let passed = |&(id, time): &(u32, Span)| {
                let before = then.iter().find(|(other, _)| *other == id);
                (id, before.map_or(time, |(_, earlier)| time - *earlier))
            };
            Some(now.as_ref()?.iter().map(passed).collect())
        };
        Self {
            handed_over,
            threads: of_each(&self.threads, &earlier.threads),
            waits: of_each(&self.waits, &earlier.waits),
        }
    }
}

/// Times in the window in which the process, or the machine, did not run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pauses {
    /// The first of them.
    pub found: Vec<Pause>,
    /// The total length of all others.
    pub others: Span,
    /// Whether the kernel reports how long a thread waits for a CPU; if not, a machine that stood
    /// still cannot be told from a busy one.
    pub tells_waiting: bool,
}

/// A time in which no thread of the process ran, although it did not wait for a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Pause {
    /// What stood still.
    pub kind: PauseKind,
    /// The earliest time at which it began, from the start of the window; at most 50 ms before it
    /// did.
    #[serde(rename = "after_ns")]
    pub after: Span,
    /// Its shortest possible length; at most 50 ms less than the true one.
    #[serde(rename = "length_ns")]
    pub length: Span,
}

/// What stood still.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PauseKind {
    /// The process was stopped: by a signal, a freezer, a debugger.
    Process,
    /// The machine, or a CPU of it, did not run: a virtual machine that was paused.
    Machine,
    /// The machine was suspended, which the kernel itself reports.
    Suspended,
}

/// The cost of memory in the window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Memory {
    /// Pages of this process that had to be read before it could go on; none if this is unknown.
    pub major_faults: Option<u64>,
    /// Bytes that the machine read from swap.
    #[serde(rename = "swapped_in_bytes")]
    pub swapped_in: Option<Bytes>,
    /// Bytes that it wrote there.
    #[serde(rename = "swapped_out_bytes")]
    pub swapped_out: Option<Bytes>,
    /// Time in which some thread of the cgroup, or of the machine if the cgroup's time is unknown,
    /// waited for memory.
    #[serde(rename = "stalled_ns")]
    pub stalled: Option<Span>,
}

impl Memory {
    fn since(self, earlier: Self) -> Self {
        let bytes =
            |now: Option<Bytes>, then: Option<Bytes>| Some(Bytes(now?.0.saturating_sub(then?.0)));
        let faults = self.major_faults.zip(earlier.major_faults);
        Self {
            major_faults: faults.map(|(now, then)| now.saturating_sub(then)),
            swapped_in: bytes(self.swapped_in, earlier.swapped_in),
            swapped_out: bytes(self.swapped_out, earlier.swapped_out),
            stalled: difference(self.stalled, earlier.stalled),
        }
    }
}

/// How a CPU spent its time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuTime {
    /// In programs.
    pub user: Span,
    /// In the kernel, interrupts included.
    pub kernel: Span,
    /// Idle, or waiting for I/O.
    pub idle: Span,
    /// Taken by the hypervisor for other guests.
    pub steal: Span,
}

impl CpuTime {
    /// The time from `earlier` to this.
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            user: self.user - earlier.user,
            kernel: self.kernel - earlier.kernel,
            idle: self.idle - earlier.idle,
            steal: self.steal - earlier.steal,
        }
    }

    /// The sum of all.
    pub fn total(&self) -> Span {
        self.user + self.kernel + self.idle + self.steal
    }

    /// The time that other programs used, if the process used this much.
    pub fn others(&self, own: Span) -> Span {
        self.user + self.kernel - own
    }
}

/// A device's counters, as /proc/diskstats has them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeviceCounters {
    /// The kernel's name.
    pub name: String,
    /// Major and minor number.
    pub device: (u32, u32),
    /// Reads that completed.
    pub reads: u64,
    /// The bytes of these reads.
    pub read_bytes: Bytes,
    /// Writes that completed.
    pub writes: u64,
    /// The bytes of these writes.
    pub written_bytes: Bytes,
    /// The time that its reads, and its writes, spent in the block layer, added up; the kernel
    /// reports it in milliseconds. None if it was not recorded.
    pub under_way: Option<[Span; 2]>,
    /// Reads and writes that the block layer merged with a neighbor, so that both count as one.
    /// None if they were not recorded.
    pub merged: Option<[u64; 2]>,
    /// Flushes that completed, if the kernel counts them.
    pub flushes: u64,
    /// The memory that it needs for its data, if it is compressed memory (zram): for a window, at
    /// its end.
    pub held: Option<Bytes>,
}

impl Counters {
    /// CPU time of this process.
    pub fn process(&self) -> Span {
        self.process_user + self.process_kernel
    }

    /// The time of the chosen CPUs together; none if no CPU is chosen.
    pub fn cpu_time(&self, chosen: impl Fn(u32) -> bool) -> Option<CpuTime> {
        let cpus = self.cpus.iter().filter(|(cpu, _)| chosen(*cpu));
        let sum = cpus.fold(CpuTime::default(), |sum, (_, cpu)| CpuTime {
            user: sum.user + cpu.user,
            kernel: sum.kernel + cpu.kernel,
            idle: sum.idle + cpu.idle,
            steal: sum.steal + cpu.steal,
        });
        (sum.total() > Span(0)).then_some(sum)
    }

    /// The counts from `earlier` to this; devices and CPUs that only one of the two has are left
    /// out.
    pub fn since(&self, earlier: &Self) -> Self {
        let cpus = self
            .cpus
            .iter()
            .filter_map(|(cpu, now)| {
                let (_, then) = earlier.cpus.iter().find(|(other, _)| other == cpu)?;
                Some((*cpu, now.since(then)))
            })
            .collect();
        let devices = self
            .devices
            .iter()
            .filter_map(|now| {
                let then = earlier.devices.iter().find(|other| other.device == now.device)?;
                Some(DeviceCounters {
                    name: now.name.clone(),
                    device: now.device,
                    reads: now.reads.wrapping_sub(then.reads),
                    read_bytes: Bytes(now.read_bytes.0.wrapping_sub(then.read_bytes.0)),
                    writes: now.writes.wrapping_sub(then.writes),
                    written_bytes: Bytes(now.written_bytes.0.wrapping_sub(then.written_bytes.0)),
                    under_way: now
                        .under_way
                        .zip(then.under_way)
                        .map(|(now, then)| [now[0] - then[0], now[1] - then[1]]),
                    merged: now
                        .merged
                        .zip(then.merged)
                        .map(|(now, then)| [0, 1].map(|way| now[way].wrapping_sub(then[way]))),
                    flushes: now.flushes.wrapping_sub(then.flushes),
                    held: now.held,
                })
            })
            .collect();
        Self {
            late: self.late + earlier.late,
            cpus,
            devices,
            process_user: self.process_user - earlier.process_user,
            process_kernel: self.process_kernel - earlier.process_kernel,
            throttled: difference(self.throttled, earlier.throttled),
            io_wq: match (&self.io_wq, &earlier.io_wq) {
                (Some(now), Some(then)) => Some(now.since(then)),
                _ => None,
            },
            arrays: paired(&self.arrays, &earlier.arrays, |array| &array.name, ArrayState::since),
            targets: (self.targets.iter().zip(&earlier.targets))
                .map(|(now, then)| Some(now.as_ref()?.since(then.as_ref()?)))
                .collect(),
            journals: paired(&self.journals, &earlier.journals, |one| &one.device, Journal::since),
            memory: self.memory.since(earlier.memory),
            tracer: self.tracer.clone().or_else(|| earlier.tracer.clone()),
            pauses: self.pauses.clone(),
        }
    }
}

/// The difference of everything that both moments have, by its name.
fn paired<T>(now: &[T], then: &[T], name: fn(&T) -> &String, since: fn(&T, &T) -> T) -> Vec<T> {
    now.iter()
        .filter_map(|one| Some(since(one, then.iter().find(|other| name(other) == name(one))?)))
        .collect()
}

/// The difference, if both ends are known.
fn difference(now: Option<Span>, then: Option<Span>) -> Option<Span> {
    Some(now? - then?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_atomic_write_has_a_power_of_two_within_the_limits() {
        let limits = AtomicWrites::of(Bytes(4096), Bytes(65_536)).unwrap();
        for (size, allowed) in
            [(2048, false), (4096, true), (12_288, false), (65_536, true), (131_072, false)]
        {
            assert_eq!(limits.allow(Bytes(size)), allowed, "{size}");
        }
        // The values that ext4 reports for a disk without atomic writes, and values that make no
        // sense.
        assert_eq!(AtomicWrites::of(Bytes(0), Bytes(0)), None);
        assert_eq!(AtomicWrites::of(Bytes(8192), Bytes(4096)), None);
    }

    #[test]
    fn what_never_was_written_is_counted_where_it_is_asked_for() {
        let known = Extents {
            never_written: Some(Vec::from([(10, 20), (30, 40), (50, 60)])),
            ..Extents::default()
        };
        for (ranges, bytes) in [
            (&[(0, 100)][..], 30),
            (&[(0, 10), (20, 30)], 0),
            (&[(15, 35)], 10),
            (&[(0, 12), (18, 31), (59, 70)], 6),
            (&[], 0),
        ] {
            assert_eq!(known.never_written_of(ranges), Some(Bytes(bytes)), "{ranges:?}");
        }
        assert_eq!(Extents::default().never_written_of(&[(0, 1)]), None);
    }

    #[test]
    fn what_a_virtual_disk_or_a_loop_device_says_of_turning_is_no_fact() {
        let layer = |name: &str, kind, transport: Option<&str>, model: Option<&str>| Layer {
            name: name.to_owned(),
            kind,
            disk: Some(Disk {
                rotational: Some(true),
                transport: transport.map(str::to_owned),
                model: model.map(str::to_owned),
                ..Disk::default()
            }),
            ..Layer::default()
        };
        use LayerKind::{Disk as Whole, Loop};
        assert_eq!(layer("sda", Whole, Some("sata"), Some("ST4000")).turns(), Some(true));
        for (name, kind, transport, model) in [
            ("vda", Whole, Some("virtio"), None),
            ("xvda", Whole, None, None),
            ("sda", Whole, Some("scsi"), Some("Msft Virtual Disk")),
            ("loop0", Loop, None, None),
        ] {
            let layer = layer(name, kind, transport, model);
            assert_eq!(layer.turns(), None, "{name}");
            let target = Target { layers: Vec::from([layer]), ..Target::simulated("t", Bytes(1)) };
            assert!(!target.turns());
        }
    }

    #[test]
    fn threads_that_began_in_between_count_in_full_and_those_that_ended_not_at_all() {
        let at = |handed_over, threads: &[(u32, u64)]| Counters {
            io_wq: Some(IoWq {
                handed_over,
                threads: Some(threads.iter().map(|(id, cpu)| (*id, Span(*cpu))).collect()),
                waits: Some(threads.iter().map(|(id, cpu)| (*id, Span(*cpu / 5))).collect()),
            }),
            ..Counters::default()
        };
        let then = at(Some(1000), &[(7, 50), (8, 20)]);
        let now = at(Some(1600), &[(8, 25), (9, 300)]);
        let passed = now.since(&then).io_wq.unwrap();
        assert_eq!(passed.handed_over, Some(600));
        assert_eq!(passed.threads, Some(Vec::from([(8, Span(5)), (9, Span(300))])));
        assert_eq!(passed.cpu(), Some(Span(305)));
        assert_eq!(passed.wait(), Some(Span(61)));
        assert_eq!(at(Some(1), &[]).since(&at(None, &[])).io_wq.unwrap().handed_over, None);
        assert_eq!(now.since(&Counters::default()).io_wq, None);
    }
}
