//! What the control groups of this process allow: version 1, version 2, and both at once.

use std::path::PathBuf;

use fathom_core::{Bytes, Span};

use super::mounts::{Mount, mounts};
use super::system::{System, read_text};

/// What version 1 writes where there is no limit is about 8 EiB; no machine has that much.
const NO_LIMIT: u64 = 1 << 60;

/// The folders of this process's groups, each with its parents.
pub(crate) struct Groups {
    /// Of version 2.
    unified: Vec<PathBuf>,
    /// Of version 1's memory controller.
    memory: Vec<PathBuf>,
    /// Of version 1's CPU controller.
    cpu: Vec<PathBuf>,
}

impl Groups {
    /// This process's groups.
    pub(crate) fn read(system: &System) -> Self {
        let mounts = mounts(system);
        let text = system.text("proc/self/cgroup").unwrap_or_default();
        let mut groups = Self { unified: Vec::new(), memory: Vec::new(), cpu: Vec::new() };
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
            } else if has("memory") {
                groups.memory = folders(system, &mounts, "cgroup", Some("memory"), path);
            } else if has("cpu") {
                groups.cpu = folders(system, &mounts, "cgroup", Some("cpu"), path);
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
    // The parents of a group in another namespace ("/../x") are not ours to see.
    found.retain(|folder| folder.is_dir());
    found
}
