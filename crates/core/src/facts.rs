//! What is known about the host and the targets, as plain data. The engine's `host` fills it in;
//! the verdict and the document read it. What could not be found out is `None`, never zero.

use crate::calibration::Ceiling;
use crate::units::{Bytes, Span};

/// The machine that generates the load.
#[derive(Clone, Debug, Default, PartialEq)]
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
    /// Which they are, by their numbers; empty if that is not known.
    pub cpu_places: Vec<CpuPlace>,
    /// NUMA nodes.
    pub numa_nodes: u32,
    /// Memory of the machine.
    pub memory: Bytes,
    /// Memory that the cgroup allows, if less.
    pub memory_limit: Option<Bytes>,
    /// CPUs' worth of time that the cgroup allows, if limited.
    pub cpu_limit: Option<f64>,
    /// The hypervisor or container that we seem to run in.
    pub virtualization: Option<String>,
    /// Whether the process runs as root.
    pub root: bool,
    /// The clock that stamps I/Os.
    pub clock: Clock,
    /// What the load generator can do here at most; none where it was not measured.
    pub ceiling: Option<Ceiling>,
}

/// A CPU that this process may run on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CpuPlace {
    /// Its number.
    pub number: u32,
    /// Its package and its core there: CPUs with the same are siblings that share one core. None where
    /// that is not told.
    pub core: Option<(u32, u32)>,
    /// Its NUMA node; none where that is not told.
    pub node: Option<u32>,
}

/// The clock that stamps I/Os.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Clock {
    /// "tsc" or "CLOCK_MONOTONIC".
    pub source: String,
    /// The smallest step that was seen, in nanoseconds.
    pub resolution_ns: f64,
    /// What one reading costs, in nanoseconds.
    pub cost_ns: f64,
}

/// What kind of thing a target is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TargetKind {
    /// A regular file.
    File,
    /// A block device.
    BlockDevice,
    /// A simulated device.
    Simulated,
    /// A character device such as /dev/zero, for calibration.
    CharacterDevice,
    /// A folder: the place of files that do not exist yet. It can be inspected, not measured.
    Folder,
    /// An NVMe generic device such as /dev/ng0n1, which takes NVMe commands as they are.
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
#[derive(Clone, Debug, PartialEq)]
pub struct Target {
    /// As the user named it.
    pub name: String,
    /// With every link resolved.
    pub path: String,
    /// What it is.
    pub kind: TargetKind,
    /// How large it is. Of a folder, what is free; of a character device, a nominal size.
    pub size: Bytes,
    /// What offsets, lengths and memory of direct I/O have to be multiples of.
    pub direct_alignment: Option<Bytes>,
    /// The file system it is on, if it is a file.
    pub file_system: Option<FileSystem>,
    /// What of the file was ever written, if it is a file and its file system can tell.
    pub extents: Option<Extents>,
    /// The devices below, from the top to the bottom; a layer comes before what it consists of.
    pub layers: Vec<Layer>,
    /// Who uses the target: what forbids writing to it. Of a file it names swap and loop devices.
    pub in_use: Vec<InUse>,
    /// What its commands have to know, if it is an NVMe generic device.
    pub namespace: Option<Namespace>,
}

/// An NVMe namespace, as commands that pass by the block layer have to know it.
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
    /// Which of the kernel's limits that is: "queue/max_hw_sectors_kb".
    pub limit: &'static str,
}

impl Host {
    /// The CPUs' worth of time that this process can have at most.
    pub fn cpu_time(&self) -> f64 {
        let cpus = f64::from(self.cpus);
        self.cpu_limit.map_or(cpus, |limit| limit.min(cpus))
    }
}

impl Target {
    /// A simulated device: nothing below it.
    pub fn simulated(name: &str, size: Bytes) -> Self {
        Self {
            name: name.to_owned(),
            path: name.to_owned(),
            kind: TargetKind::Simulated,
            size,
            direct_alignment: None,
            file_system: None,
            extents: None,
            layers: Vec::new(),
            in_use: Vec::new(),
            namespace: None,
        }
    }

    /// The topmost layer that spreads data over several others, if there is one.
    pub fn array(&self) -> Option<&Layer> {
        self.layers.iter().find(|layer| 1 < layer.members.len())
    }

    /// How many drives it is spread over, as far as can be seen from here: at least one.
    pub fn drives(&self) -> u32 {
        self.array().map_or(1, |array| array.members.len() as u32)
    }

    /// The disks at the bottom.
    pub fn disks(&self) -> impl Iterator<Item = &Layer> {
        self.layers.iter().filter(|layer| layer.members.is_empty())
    }
}

/// The file system that a file is on.
#[derive(Clone, Debug, Default, PartialEq)]
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
    pub size: Bytes,
    /// What an unprivileged process may still use.
    pub available: Bytes,
    /// Whether it was mounted read-only.
    pub read_only: bool,
    /// Whether an overwrite goes to another place (btrfs, zfs, bcachefs and the like).
    pub copy_on_write: bool,
    /// The compression that is switched on, if one is.
    pub compression: Option<String>,
}

/// What of a file was ever written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extents {
    /// Written bytes.
    pub written: Bytes,
    /// Bytes that are reserved and never were written: they read as zeros without the medium.
    pub unwritten: Bytes,
    /// Bytes that are not even reserved.
    pub holes: Bytes,
    /// How many extents there are.
    pub count: u64,
}

/// One device of a target's stack.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Layer {
    /// The kernel's name, such as "md0" or "nvme0n1".
    pub name: String,
    /// Major and minor number; none for what has no device of its own.
    pub device: Option<(u32, u32)>,
    /// What it is.
    pub kind: LayerKind,
    /// How large it is.
    pub size: Bytes,
    /// The places, in the target's list of layers, of what this one consists of.
    pub members: Vec<usize>,
    /// How it spreads data over its members, if it does.
    pub stripe: Option<Stripe>,
    /// Free words on the kind, such as "raid6" or "crypt" or a loop device's file.
    pub detail: Option<String>,
    /// The request queue, for every whole device.
    pub queue: Option<Queue>,
    /// The hardware, for disks.
    pub disk: Option<Disk>,
}

/// What a layer is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LayerKind {
    /// A whole disk, or what looks like one from here.
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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stripe {
    /// What goes to one member before the next one's turn.
    pub chunk: Bytes,
    /// The data of one full stripe: a write of less may have to read first.
    pub full: Bytes,
}

/// A device's request queue.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Queue {
    /// The scheduler in force.
    pub scheduler: Option<String>,
    /// Requests that the block layer holds for each hardware queue.
    pub nr_requests: Option<u32>,
    /// Hardware queues.
    pub hardware_queues: Option<u32>,
    /// The smallest addressable unit.
    pub logical_sector: Option<Bytes>,
    /// What the medium writes at once.
    pub physical_sector: Option<Bytes>,
    /// The size below which the device asks not to be written.
    pub minimum_io: Option<Bytes>,
    /// The size that the device likes best; none if it does not say.
    pub optimal_io: Option<Bytes>,
    /// The largest request the kernel will send.
    pub max_request: Option<Bytes>,
    /// Whether there is a volatile write cache ("write back").
    pub volatile_write_cache: Option<bool>,
    /// The most that can be discarded at once; zero means not at all.
    pub discard_max: Option<Bytes>,
    /// Whether the kernel may poll it.
    pub polling: Option<bool>,
}

/// A disk's hardware.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Disk {
    /// Vendor and model.
    pub model: Option<String>,
    /// Firmware revision.
    pub firmware: Option<String>,
    /// Whether it says that it turns.
    pub rotational: Option<bool>,
    /// The NUMA node it is attached to.
    pub numa_node: Option<u32>,
    /// How it is attached: "nvme", "virtio", "scsi" ...
    pub transport: Option<String>,
    /// Commands the device itself holds at once, where it says so.
    pub device_queue_depth: Option<u32>,
}

/// Why a block device must not be written to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InUse {
    /// It, or a partition of it, is mounted.
    Mounted {
        /// The device that is.
        device: String,
        /// Where.
        mount_point: String,
    },
    /// It, or a partition of it, is swap that is switched on.
    Swap {
        /// The device that is.
        device: String,
    },
    /// Another device is made of it: md, LVM, device mapper.
    Holder {
        /// The device that is held.
        device: String,
        /// The device that holds it.
        holder: String,
    },
    /// It carries the mark of a file system, a RAID member, LVM, swap, a partition table.
    Signature {
        /// The device that does.
        device: String,
        /// What the mark stands for.
        kind: String,
    },
    /// Somebody has it open for himself alone.
    Exclusive {
        /// The device.
        device: String,
    },
    /// Whether it holds data, or is used, cannot be seen: it may be anybody's.
    Unknown {
        /// The device, or the file.
        device: String,
        /// What stands in the way.
        why: String,
    },
}

/// Counters of the host at one moment. Only differences mean anything.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Counters {
    /// One for each CPU that is online, by its number.
    pub cpus: Vec<(u32, CpuTime)>,
    /// One for each disk at the bottom of a target and each device that the target itself is or,
    /// if it is a file, lies on.
    pub devices: Vec<DeviceCounters>,
    /// User CPU time of this process, all threads together, those of io_uring included.
    pub process_user: Span,
    /// Kernel CPU time of this process.
    pub process_kernel: Span,
    /// Time that the cgroup kept us off the CPUs.
    pub throttled: Option<Span>,
    /// Time that threads of ours with real-time priority were ready to run and did not, added up;
    /// only looked at where there are such threads.
    pub realtime_wait: Option<Span>,
    /// What io_uring's own threads did for us; only looked at where io_uring carries the I/Os.
    pub io_wq: Option<IoWq>,
}

/// What io_uring's own threads (io-wq) did for this process. The kernel hands them every I/O that
/// it cannot start without waiting.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IoWq {
    /// I/Os that they were handed, where we may count them.
    pub handed_over: Option<u64>,
    /// Each thread's number and the CPU time that it used. `None` where the kernel does not show
    /// them as threads of ours, before Linux 5.12.
    pub threads: Option<Vec<(u32, Span)>>,
}

impl IoWq {
    /// CPU time of all of them.
    pub fn cpu(&self) -> Option<Span> {
        let threads = self.threads.as_ref()?;
        Some(threads.iter().fold(Span(0), |sum, (_, cpu)| sum + *cpu))
    }

    /// From `earlier` to this. A thread that only this has began in between; what one used that
    /// only the other has, because it ended, is not known and left out.
    fn since(&self, earlier: &Self) -> Self {
        let handed_over = match (self.handed_over, earlier.handed_over) {
            (Some(now), Some(then)) => Some(now.saturating_sub(then)),
            _ => None,
        };
        let threads = match (&self.threads, &earlier.threads) {
            (Some(now), Some(then)) => {
                let before = |id: u32| then.iter().find(|(other, _)| *other == id);
                let used = |&(id, cpu): &(u32, Span)| {
                    (id, before(id).map_or(cpu, |(_, earlier)| cpu - *earlier))
                };
                Some(now.iter().map(used).collect())
            }
            _ => None,
        };
        Self { handed_over, threads }
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
    /// Taken by the hypervisor for somebody else.
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

    /// All of it.
    pub fn total(&self) -> Span {
        self.user + self.kernel + self.idle + self.steal
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
    /// What they read.
    pub read_bytes: Bytes,
    /// Writes that completed.
    pub writes: u64,
    /// What they wrote.
    pub written_bytes: Bytes,
    /// Flushes that completed, where the kernel counts them.
    pub flushes: u64,
}

impl Counters {
    /// What was counted from `earlier` to this; devices and CPUs that only one of them has are
    /// left out.
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
                    flushes: now.flushes.wrapping_sub(then.flushes),
                })
            })
            .collect();
        Self {
            cpus,
            devices,
            process_user: self.process_user - earlier.process_user,
            process_kernel: self.process_kernel - earlier.process_kernel,
            throttled: difference(self.throttled, earlier.throttled),
            realtime_wait: difference(self.realtime_wait, earlier.realtime_wait),
            io_wq: match (&self.io_wq, &earlier.io_wq) {
                (Some(now), Some(then)) => Some(now.since(then)),
                _ => None,
            },
        }
    }
}

/// What passed, where both ends are known.
fn difference(now: Option<Span>, then: Option<Span>) -> Option<Span> {
    Some(now? - then?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_that_began_in_between_count_in_full_and_those_that_ended_not_at_all() {
        let at = |handed_over, threads: &[(u32, u64)]| Counters {
            io_wq: Some(IoWq {
                handed_over,
                threads: Some(threads.iter().map(|(id, cpu)| (*id, Span(*cpu))).collect()),
            }),
            ..Counters::default()
        };
        let then = at(Some(1000), &[(7, 50), (8, 20)]);
        let now = at(Some(1600), &[(8, 25), (9, 300)]);
        let passed = now.since(&then).io_wq.unwrap();
        assert_eq!(passed.handed_over, Some(600));
        assert_eq!(passed.threads, Some(Vec::from([(8, Span(5)), (9, Span(300))])));
        assert_eq!(passed.cpu(), Some(Span(305)));
        assert_eq!(at(Some(1), &[]).since(&at(None, &[])).io_wq.unwrap().handed_over, None);
        assert_eq!(now.since(&Counters::default()).io_wq, None);
    }
}
