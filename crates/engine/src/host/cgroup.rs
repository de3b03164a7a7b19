//! The limits of the control groups of this process: version 1, version 2, and both at once.

use std::path::{Path, PathBuf};

use fathom_core::facts::{IoLimit, IoLimitKind, Layer};
use fathom_core::{Bytes, Span};

use super::mounts::{Mount, mounts};
use super::system::{Number, System, parse_number, read_text};

/// Version 1 writes about 8 EiB if there is no limit; no machine has that much.
const NO_LIMIT: u64 = 1 << 60;

/// The default weight of every group.
const USUAL_WEIGHT: u64 = 100;

/// The files of version 1 with limits of devices, each a line "8:16 1048576".
const FIRST_IO: [(&str, IoLimitKind); 4] = [
    ("blkio.throttle.read_bps_device", IoLimitKind::ReadBandwidth),
    ("blkio.throttle.write_bps_device", IoLimitKind::WriteBandwidth),
    ("blkio.throttle.read_iops_device", IoLimitKind::ReadIops),
    ("blkio.throttle.write_iops_device", IoLimitKind::WriteIops),
];

/// The keys of version 2's io.max.
const UNIFIED_IO: [(&str, IoLimitKind); 4] = [
    ("rbps", IoLimitKind::ReadBandwidth),
    ("wbps", IoLimitKind::WriteBandwidth),
    ("riops", IoLimitKind::ReadIops),
    ("wiops", IoLimitKind::WriteIops),
];

/// The folders of this process's groups, each with its parents.
pub(crate) struct Groups {
    /// Of version 2.
    unified: Vec<PathBuf>,
    /// Of version 1's memory controller.
    memory: Vec<PathBuf>,
    /// Of version 1's CPU controller.
    cpu: Vec<PathBuf>,
    /// Of version 1's controller of block devices.
    block: Vec<PathBuf>,
}

impl Groups {
    /// This process's groups.
    pub(crate) fn read(system: &System) -> Self {
        let mounts = mounts(system);
        let text = system.text("proc/self/cgroup").unwrap_or_default();
        let mut groups =
            Self { unified: Vec::new(), memory: Vec::new(), cpu: Vec::new(), block: Vec::new() };
        for line in text.lines() {
            // "4:memory:/user.slice"; version 2 has the number 0 and no controllers.
            let mut fields = line.splitn(3, ':');
            let (Some(_), Some(controllers), Some(path)) =
                (fields.next(), fields.next(), fields.next())
            else {
                continue;
            };
            let has = |name: &str| controllers.split(',').any(|controller| controller == name);
            if controllers.is_empty() {
                groups.unified = folders(system, &mounts, "cgroup2", None, path);
            }
            // Several controllers may share a hierarchy.
            let of_version_1 = [
                ("memory", &mut groups.memory),
                ("cpu", &mut groups.cpu),
                ("blkio", &mut groups.block),
            ];
            for (name, group) in of_version_1.into_iter().filter(|(name, _)| has(name)) {
                *group = folders(system, &mounts, "cgroup", Some(name), path);
            }
        }
        groups
    }

    /// The least memory that any of them allows.
    pub(crate) fn memory_limit(&self) -> Option<Bytes> {
        let limit = |folder: &PathBuf, file: &str| {
            read_text(&folder.join(file))?.parse().ok().filter(|limit| *limit < NO_LIMIT)
        };
        let unified = self.unified.iter().filter_map(|folder| limit(folder, "memory.max"));
        let first = self.memory.iter().filter_map(|folder| limit(folder, "memory.limit_in_bytes"));
        unified.chain(first).min().map(Bytes)
    }

    /// The fewest CPUs' worth of time that any of them allows.
    pub(crate) fn cpu_limit(&self) -> Option<f64> {
        let unified = self.unified.iter().filter_map(|folder| {
            let text = read_text(&folder.join("cpu.max"))?;
            let (quota, period) = text.split_once(' ')?;
            share(quota, period)
        });
        let first = self.cpu.iter().filter_map(|folder| {
            let quota = read_text(&folder.join("cpu.cfs_quota_us"))?;
            share(&quota, &read_text(&folder.join("cpu.cfs_period_us"))?)
        });
        unified.chain(first).min_by(f64::total_cmp)
    }

    /// Their limits on these layers' devices. In version 2 every group around this process's own
    /// counts; in version 1 the kernel considers its own alone.
    pub(crate) fn io_limits(&self, layers: &[Layer]) -> Vec<IoLimit> {
        let first = self.block.iter().take(1).flat_map(|folder| {
            FIRST_IO.iter().flat_map(move |&(name, kind)| first_io(folder, name, kind))
        });
        let unified = self.unified.iter().flat_map(|folder| unified_io(folder));
        let mut found = Vec::new();
        for (number, kind, value, file) in first.chain(unified) {
            let named = layers.iter().filter(|layer| match number {
                Some(number) => layer.device == Some(number),
                // A weight for all devices counts where the disks are.
                None => layer.members.is_empty() && layer.device.is_some(),
            });
            for layer in named {
                let (device, file) = (layer.name.clone(), file.display().to_string());
                let limit = IoLimit { device, kind, value, file };
                if !found.contains(&limit) {
                    found.push(limit);
                }
            }
        }
        found
    }

    /// How long some thread has waited for memory: in the own group if it reports this, otherwise
    /// on the machine.
    pub(crate) fn memory_stalled(&self, system: &System) -> Option<Span> {
        let own = self.unified.first().and_then(|own| read_text(&own.join("memory.pressure")));
        let text = own.or_else(|| system.text("proc/pressure/memory"))?;
        // "some avg10=0.00 avg60=0.00 avg300=0.00 total=0", the total in microseconds.
        let line = text.lines().find(|line| line.starts_with("some "))?;
        let us: u64 = line.rsplit_once("total=")?.1.trim().parse().ok()?;
        Some(Span(us.saturating_mul(1000)))
    }

    /// The smallest weight that any of them gives its threads relative to its neighbors, as a share
    /// of the default; none if that is the default or more.
    pub(crate) fn cpu_weight(&self) -> Option<f64> {
        let number =
            |folder: &PathBuf, file: &str| read_text(&folder.join(file))?.parse::<f64>().ok();
        let unified = self.unified.iter().filter_map(|folder| {
            // A group that is idle has next to no weight, regardless of its setting.
            match number(folder, "cpu.idle") {
                Some(1.0) => Some(0.0),
                _ => Some(number(folder, "cpu.weight")? / 100.0),
            }
        });
        let first =
            self.cpu.iter().filter_map(|folder| Some(number(folder, "cpu.shares")? / 1024.0));
        unified.chain(first).min_by(f64::total_cmp).filter(|weight| *weight < 1.0)
    }

    /// How long they kept this process and its siblings off the CPUs.
    pub(crate) fn throttled(&self) -> Option<Span> {
        let value = |folder: &PathBuf, key: &str| {
            let text = read_text(&folder.join("cpu.stat"))?;
            let line = text.lines().find_map(|line| line.strip_prefix(key))?;
            line.trim().parse::<u64>().ok()
        };
        let unified = self.unified.iter().filter_map(|folder| value(folder, "throttled_usec "));
        let first = self.cpu.iter().filter_map(|folder| value(folder, "throttled_time "));
        unified
            .map(|us| us.saturating_mul(1000))
            .chain(first)
            .reduce(|sum, ns| sum.saturating_add(ns))
            .map(Span)
    }
}

/// A limit in a file of a group: of which device (of all if none), of which quantity, the figure,
/// the file.
type FoundLimit = (Option<Number>, IoLimitKind, u64, PathBuf);

/// The limits in a file of version 1.
fn first_io(folder: &Path, name: &str, kind: IoLimitKind) -> Vec<FoundLimit> {
    let file = folder.join(name);
    let text = read_text(&file).unwrap_or_default();
    let limit = |line: &str| {
        let (number, value) = line.split_once(' ')?;
        let value = value.trim().parse().ok().filter(|value| 0 < *value && *value < NO_LIMIT)?;
        Some((Some(parse_number(number)?), kind, value, file.clone()))
    };
    text.lines().filter_map(limit).collect()
}

/// The limits of a group of version 2.
fn unified_io(folder: &Path) -> Vec<FoundLimit> {
    let mut found = Vec::new();
    let file = folder.join("io.max");
    for line in read_text(&file).unwrap_or_default().lines() {
        // "8:16 rbps=2097152 wbps=max riops=max wiops=120"
        let mut words = line.split_whitespace();
        let Some(number) = words.next().and_then(parse_number) else { continue };
        let keyed = words.filter_map(|word| word.split_once('='));
        found.extend(keyed.filter_map(|(key, value)| {
            let (_, kind) = UNIFIED_IO.iter().find(|(name, _)| *name == key)?;
            Some((Some(number), *kind, value.parse().ok()?, file.clone()))
        }));
    }
    let file = folder.join("io.latency");
    for line in read_text(&file).unwrap_or_default().lines() {
        // "8:16 target=75000"
        let Some((number, target)) = line.split_once(" target=") else { continue };
        let (number, target) = (parse_number(number), target.trim().parse().ok());
        if let (Some(number), Some(target)) = (number, target.filter(|target| 0 < *target)) {
            found.push((Some(number), IoLimitKind::TargetTime, target, file.clone()));
        }
    }
    for name in ["io.weight", "io.bfq.weight"] {
        let file = folder.join(name);
        for line in read_text(&file).unwrap_or_default().lines() {
            // "default 100", "8:16 200"
            let Some((number, value)) = line.split_once(' ') else { continue };
            let value = value.trim().parse().ok().filter(|value| *value != USUAL_WEIGHT);
            let number = match number {
                "default" => Some(None),
                number => parse_number(number).map(Some),
            };
            if let (Some(number), Some(value)) = (number, value) {
                found.push((number, IoLimitKind::Weight, value, file.clone()));
            }
        }
    }
    found
}

/// Quota over period; "max" and -1 are no limit.
fn share(quota: &str, period: &str) -> Option<f64> {
    let quota: f64 = quota.trim().parse().ok()?;
    let period: f64 = period.trim().parse().ok()?;
    (0.0 < quota && 0.0 < period).then(|| quota / period)
}

/// The folder of a group and of every group around it, as far as they can be seen from here.
fn folders(
    system: &System,
    mounts: &[Mount],
    kind: &str,
    controller: Option<&str>,
    path: &str,
) -> Vec<PathBuf> {
    let serves = |mount: &&Mount| {
        mount.kind == kind && controller.is_none_or(|name| mount.option(name).is_some())
    };
    let Some(mount) = mounts.iter().find(serves) else { return Vec::new() };
    // A container sees its own group mounted as if it were the top.
    let below = match mount.root.as_str() {
        "/" => path,
        root => path.strip_prefix(root).unwrap_or(""),
    };
    let top = system.path(&mount.point);
    let own = top.join(below.trim_start_matches('/'));
    let mut found: Vec<PathBuf> = own
        .ancestors()
        .take_while(|folder| folder.starts_with(&top))
        .map(|folder| folder.to_owned())
        .collect();
    // The parents of a group in another namespace ("/../x") are not visible here.
    found.retain(|folder| folder.is_dir());
    found
}
