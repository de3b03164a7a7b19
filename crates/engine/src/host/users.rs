//! Which other processes have a target open or locked. Names and the numbers of inodes are compared
//! first: a further query of a process's file may hang if its file system does, and only a file
//! with the target's own number is queried.

use std::collections::{BTreeMap, HashMap};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use fathom_core::facts::{Target, TargetKind};

use super::system::{Number, System, read_text, split_number};

/// A process that has a target open, or a lock on it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct User {
    /// Its number.
    pub process: u32,
    /// Its name, as the kernel has it.
    pub name: String,
    /// Whether it has it open to write.
    pub writes: bool,
    /// Whether it holds a lock on it.
    pub locks: bool,
}

/// For each target, the other processes that have it open, under any name, or hold locks on it, as
/// far as this user may see. A device is also recognized by another node of it, if that lies in
/// /dev.
pub fn users(targets: &[&Target]) -> Vec<Vec<User>> {
    of(&System::real(), targets, std::process::id())
}

/// By the place of a target and the process's number: whether it writes and whether it locks.
type Found = BTreeMap<(usize, u32), (bool, bool)>;

fn of(system: &System, targets: &[&Target], own: u32) -> Vec<Vec<User>> {
    let mut found = Found::new();
    opened(system, targets, &mut found);
    locked(system, targets, &mut found);
    let mut users = vec![Vec::new(); targets.len()];
    for ((place, process), (writes, locks)) in found {
        // A lock outlives the process that took it if another process has the same open file.
        let name = system.text(format!("proc/{process}/comm"));
        if let Some(name) = name.filter(|_| process != own) {
            users[place].push(User { process, name, writes, locks });
        }
    }
    users
}

/// The properties of targets that are compared with the processes' open files, each with its
/// target's place.
struct Known<'a> {
    paths: HashMap<&'a OsStr, usize>,
    /// Files by their inodes and file systems.
    files: HashMap<(u64, u64), usize>,
    /// Block devices by their numbers.
    devices: HashMap<Number, usize>,
}

impl<'a> Known<'a> {
    fn of(targets: &[&'a Target]) -> Self {
        let paths = |(target, place): (&&'a Target, usize)| (OsStr::new(&target.path), place);
        let file = |(target, place): (&&Target, usize)| {
            target.identity.map(|one| ((one.inode, one.device), place))
        };
        let device = |(target, place): (&&Target, usize)| {
            let number = target.layers.first().and_then(|layer| layer.device);
            number.filter(|_| target.kind == TargetKind::BlockDevice).map(|number| (number, place))
        };
        let places = || targets.iter().zip(0..);
        Self {
            paths: places().map(paths).collect(),
            files: places().filter_map(file).collect(),
            devices: places().filter_map(device).collect(),
        }
    }

    /// The target that a process has open whose descriptor's link leads to this path.
    fn place(&self, leads: &Path, link: &Path, facts: &Path) -> Option<usize> {
        if let Some(place) = self.paths.get(leads.as_os_str()) {
            return Some(*place);
        }
        if leads.starts_with("/dev") && !self.devices.is_empty() {
            let number = fs::metadata(link).ok()?.rdev();
            if let Some(place) = self.devices.get(&split_number(number)) {
                return Some(*place);
            }
        }
        if !leads.is_absolute() || self.files.is_empty() {
            return None;
        }
        // Available since Linux 5.14.
        let text = read_text(facts)?;
        let inode: u64 =
            text.lines().find_map(|line| line.strip_prefix("ino:"))?.trim().parse().ok()?;
        self.files.keys().find(|(own, _)| *own == inode)?;
        let file = fs::metadata(link).ok()?;
        self.files.get(&(file.ino(), file.dev())).copied()
    }
}

/// The open files of processes.
fn opened(system: &System, targets: &[&Target], found: &mut Found) {
    let known = Known::of(targets);
    for process in system.names("proc").into_iter().filter_map(|name| name.parse::<u32>().ok()) {
        let folder = system.path(format!("proc/{process}"));
        for entry in fs::read_dir(folder.join("fd")).into_iter().flatten().flatten() {
            let Ok(leads) = fs::read_link(entry.path()) else { continue };
            let facts = folder.join("fdinfo").join(entry.file_name());
            let Some(place) = known.place(&leads, &entry.path(), &facts) else { continue };
            let writes = writes(&facts);
            found.entry((place, process)).or_default().0 |= writes;
        }
    }
}

/// Whether a file was opened for writing, by the kernel's flags.
fn writes(facts: &Path) -> bool {
    let text = read_text(facts).unwrap_or_default();
    let flags = text.lines().find_map(|line| line.strip_prefix("flags:"));
    let mode = flags.and_then(|flags| i32::from_str_radix(flags.trim(), 8).ok());
    mode.is_some_and(|mode| mode & libc::O_ACCMODE != libc::O_RDONLY)
}

/// The locks of processes. A lock of an open file description names no process.
fn locked(system: &System, targets: &[&Target], found: &mut Found) {
    let named = |(target, place): (&&Target, usize)| {
        let identity = target.identity?;
        let (major, minor) = split_number(identity.device);
        Some((format!("{major:02x}:{minor:02x}:{}", identity.inode), place))
    };
    let places: HashMap<String, usize> = targets.iter().zip(0..).filter_map(named).collect();
    let text = system.text("proc/locks").unwrap_or_default();
    for line in text.lines() {
        let mut words = line.split_whitespace().filter(|word| *word != "->").skip(4);
        let process = words.next().and_then(|word| word.parse().ok());
        let place = words.next().and_then(|file| places.get(file));
        if let Some((process, place)) = process.zip(place) {
            found.entry((*place, process)).or_default().1 = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::process::{Command, Stdio};

    #[test]
    fn who_has_a_file_open_or_locked_is_found() {
        let folder = tempfile::tempdir_in("/var/tmp").unwrap();
        let path = folder.path().join("data");
        std::fs::write(&path, "data").unwrap();
        let target = crate::host::target(&path).unwrap();
        // Our own open files are not counted as other users.
        let _own = File::options().write(true).open(&path).unwrap();
        assert_eq!(users(&[&target]), [[]]);
        let reads = File::open(&path).unwrap();
        let mut child = Command::new("sleep").arg("60").stdin(Stdio::from(reads)).spawn().unwrap();
        let found = users(&[&target]).remove(0);
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(
            matches!(&found[..], [User { writes: false, locks: false, process, .. }]
            if *process == child.id()),
            "{found:?}"
        );
        // Through another name of the same file.
        let link = folder.path().join("link");
        std::fs::hard_link(&path, &link).unwrap();
        let reads = File::open(&link).unwrap();
        let mut child = Command::new("sleep").arg("60").stdin(Stdio::from(reads)).spawn().unwrap();
        let found = users(&[&target]).remove(0);
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(
            matches!(&found[..], [User { process, .. }] if *process == child.id()),
            "{found:?}"
        );
        // Seen as if from another process.
        let lock = File::open(&path).unwrap();
        lock.lock().unwrap();
        let found = of(&System::real(), &[&target], 0).remove(0);
        let own = found.iter().find(|user| user.process == std::process::id());
        assert!(own.is_some_and(|user| user.writes && user.locks), "{found:?}");
    }
}
