//! The mounts, from /proc/self/mountinfo.

use std::path::Path;

use super::system::{Number, System, parse_number};

/// One line of mountinfo.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mount {
    /// The mount's id in statx.
    pub(crate) id: u64,
    /// The file system's device; anonymous (major 0) for a file system on no device or on several.
    pub(crate) device: Number,
    /// The folder of the file system that is mounted.
    pub(crate) root: String,
    /// The mount point.
    pub(crate) point: String,
    /// The options of the mount and of its file system, without repetition.
    pub(crate) options: String,
    /// The kind of the file system.
    pub(crate) kind: String,
    /// The source of the mount.
    pub(crate) source: String,
}

impl Mount {
    /// The value of an option such as "compress=zstd:3"; empty for one without a value.
    pub(crate) fn option(&self, name: &str) -> Option<&str> {
        self.options_called(name).next()
    }

    /// The values of all options with this name, in their order.
    pub(crate) fn options_called(&self, name: &str) -> impl Iterator<Item = &str> {
        self.options.split(',').filter_map(move |option| {
            let (key, value) = option.split_once('=').unwrap_or((option, ""));
            (key == name).then_some(value)
        })
    }

    /// Whether it, or its file system, is read-only.
    pub(crate) fn read_only(&self) -> bool {
        self.option("ro").is_some()
    }

    /// The paths of files that may hold the content that it shows: its source, and the additional
    /// files of an EROFS.
    pub(crate) fn image_files(&self) -> impl Iterator<Item = &str> {
        let besides = self.options.split(',').filter_map(|option| option.strip_prefix("device="));
        std::iter::once(self.source.as_str()).chain(besides).filter(|path| path.starts_with('/'))
    }

    /// The block devices that its source names; bcachefs names several.
    pub(crate) fn source_devices(&self, system: &System) -> Vec<Number> {
        self.source
            .split(':')
            .filter(|path| path.starts_with("/dev/"))
            .filter_map(|path| system.number_of(path))
            .collect()
    }
}

/// File systems that are windows into the kernel: their files have no blocks, report no size, and
/// may have any effect when they are written to.
const NO_STORAGE: &[&str] = &[
    "binder",
    "binfmt_misc",
    "bpf",
    "cgroup",
    "cgroup2",
    "configfs",
    "cpuset",
    "debugfs",
    "devpts",
    "efivarfs",
    "fusectl",
    "mqueue",
    "nfsd",
    "nsfs",
    "proc",
    "pstore",
    "resctrl",
    "rpc_pipefs",
    "securityfs",
    "selinuxfs",
    "smackfs",
    "sysfs",
    "tracefs",
    "xenfs",
];

/// Whether a file system of this kind stores data.
pub(crate) fn is_storage(kind: &str) -> bool {
    !NO_STORAGE.contains(&kind)
}

/// Every mount of this process's namespace, in the order they were made.
pub(crate) fn mounts(system: &System) -> Vec<Mount> {
    let text = system.text("proc/self/mountinfo").unwrap_or_default();
    text.lines().filter_map(parse_line).collect()
}

/// The mount that a path is on: by its id if statx reports it, otherwise the last of those with the
/// longest mount point.
pub(crate) fn mount_of<'a>(mounts: &'a [Mount], path: &Path, id: Option<u64>) -> Option<&'a Mount> {
    if let Some(mount) = mounts.iter().find(|mount| Some(mount.id) == id) {
        return Some(mount);
    }
    mounts
        .iter()
        .filter(|mount| path.starts_with(&mount.point))
        .max_by_key(|mount| mount.point.len())
}

fn parse_line(line: &str) -> Option<Mount> {
    // "36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=continue"
    let (left, right) = line.split_once(" - ")?;
    let mut left = left.split(' ');
    let id = left.next()?.parse().ok()?;
    let device = parse_number(left.nth(1)?)?;
    let root = unescape(left.next()?);
    let point = unescape(left.next()?);
    let own = left.next()?;
    let mut right = right.split(' ');
    let kind = unescape(right.next()?);
    let source = unescape(right.next()?);
    let own_read_only = own.split(',').any(|option| option == "ro");
    let mut options: Vec<&str> = own.split(',').collect();
    for option in right.next().unwrap_or_default().split(',').filter(|option| !option.is_empty()) {
        // A read-only mount of a writable file system says "ro" first and "rw" then.
        let contradicts = option == "rw" && own_read_only;
        if !contradicts && !options.contains(&option) {
            options.push(option);
        }
    }
    if options.contains(&"ro") {
        options.retain(|option| *option != "rw");
    }
    Some(Mount { id, device, root, point, options: unescape(&options.join(",")), kind, source })
}

/// Undoes the kernel's escapes: "\040" is a space.
pub(crate) fn unescape(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, tail)) = rest.split_first() {
        let octal = (first == b'\\' && 3 <= tail.len())
            .then(|| std::str::from_utf8(&tail[..3]).ok())
            .flatten()
            .and_then(|digits| u8::from_str_radix(digits, 8).ok());
        match octal {
            Some(byte) => {
                bytes.push(byte);
                rest = &tail[3..];
            }
            None => {
                bytes.push(first);
                rest = tail;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_with_optional_fields_and_spaces_is_read() {
        let mount = parse_line(
            r"36 35 8:1 /sub /mnt/my\040disk ro,noatime master:1 shared:2 - btrfs /dev/sda1 rw,compress=zstd:3",
        )
        .unwrap();
        assert_eq!((mount.id, mount.device), (36, (8, 1)));
        assert_eq!(mount.point, "/mnt/my disk");
        assert_eq!(mount.root, "/sub");
        assert_eq!(mount.options, "ro,noatime,compress=zstd:3");
        assert_eq!(mount.option("compress"), Some("zstd:3"));
        assert!(mount.read_only());
        let overlay = "36 35 0:9 / /m rw - overlay none rw,lowerdir+=/a,lowerdir+=/b,upperdir=/c";
        let overlay = parse_line(overlay).unwrap();
        let lower = overlay.options_called("lowerdir+");
        assert_eq!(lower.collect::<Vec<_>>(), ["/a", "/b"]);
    }

    #[test]
    fn the_longest_and_latest_mount_point_wins_without_an_id() {
        let line = |id: u64, point: &str| {
            parse_line(&format!("{id} 1 8:{id} / {point} rw - ext4 /dev/sda{id} rw")).unwrap()
        };
        let mounts = [line(1, "/"), line(2, "/data"), line(3, "/data"), line(4, "/database")];
        let of = |path: &str, id| mount_of(&mounts, Path::new(path), id).map(|mount| mount.id);
        assert_eq!(of("/data/file", None), Some(3));
        assert_eq!(of("/data/file", Some(2)), Some(2));
        assert_eq!(of("/etc/passwd", None), Some(1));
    }
}
