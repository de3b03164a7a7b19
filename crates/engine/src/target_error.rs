//! Why a target cannot be used: the problem and the remedy.

use std::io;
use std::path::Path;
use std::{fmt, fs};

use fathom_core::facts::{InUse, TargetKind};
use fathom_core::typed_path;
use fathom_core::{Bytes, Refusal};

/// Why a target cannot be used. Each variant names the target, the problem and the remedy.
#[derive(Debug)]
pub enum TargetError {
    /// There is no file or device with this name.
    Missing {
        /// As the user named it.
        name: String,
    },
    /// A link leads nowhere.
    DanglingLink {
        /// As the user named it.
        name: String,
        /// The destination of the link.
        to: String,
    },
    /// This user may not examine it, or not open it.
    Denied {
        /// As the user named it.
        name: String,
        /// The action that was tried: "look at", "read", "write".
        what: &'static str,
    },
    /// It is a folder.
    Folder {
        /// As the user named it.
        name: String,
    },
    /// It is not a folder.
    NoFolder {
        /// As the user named it.
        name: String,
    },
    /// It is a pipe, a socket or the like.
    Special {
        /// As the user named it.
        name: String,
        /// Its kind.
        what: &'static str,
    },
    /// It is a part of the kernel that looks like files.
    NoStorage {
        /// As the user named it.
        name: String,
        /// The pseudo file system that contains it.
        file_system: String,
    },
    /// The node has no device behind it.
    NoDevice {
        /// As the user named it.
        name: String,
        /// The error of opening it.
        cause: io::Error,
    },
    /// It is a block device that /sys does not show, so its size and its users are unknown.
    Unseen {
        /// As the user named it.
        name: String,
    },
    /// Its file system, or it itself, is read-only.
    ReadOnly {
        /// As the user named it.
        name: String,
        /// The mount point of its file system, if it is a file.
        mount_point: Option<String>,
    },
    /// It has no data.
    Empty {
        /// As the user named it.
        name: String,
        /// Its kind.
        kind: TargetKind,
    },
    /// It can only be read through the page cache.
    DirectUnsupported {
        /// As the user named it.
        name: String,
        /// Its file system, if known.
        file_system: Option<String>,
    },
    /// It would be overwritten without consent.
    NotNamed {
        /// As the user named it.
        name: String,
        /// Its kind.
        kind: TargetKind,
        /// Its content, as far as it is known.
        holds: Vec<String>,
    },
    /// It would be destroyed while it is in use or needed.
    InUse {
        /// As the user named it.
        name: String,
        /// Its users.
        uses: Vec<InUse>,
    },
    /// NVMe commands cannot be sent to it directly.
    Passthrough {
        /// As the user named it.
        name: String,
        /// The reason.
        cause: String,
        /// The remedy.
        remedy: String,
    },
    /// The requested access does not work with it.
    Unsupported {
        /// As the user named it.
        name: String,
        /// The option that requested it.
        option: String,
        /// The reason.
        cause: String,
        /// The remedy.
        remedy: String,
    },
    /// A block is larger than one NVMe command may move.
    TooLarge {
        /// As the user named it.
        name: String,
        /// The block size.
        block_size: Bytes,
        /// The most that one may.
        largest: Bytes,
        /// The kernel's limit that sets this.
        limit: &'static str,
    },
    /// It has changed since it was examined.
    Changed {
        /// As the user named it.
        name: String,
        /// The difference.
        what: &'static str,
    },
    /// The kernel cannot open it.
    Open {
        /// As the user named it.
        name: String,
        /// The reason.
        cause: io::Error,
    },
}

impl TargetError {
    /// The meaning of a failure to examine a path.
    pub(crate) fn from_looking(name: &Path, cause: io::Error) -> Self {
        let shown = name.to_string_lossy().into_owned();
        match cause.raw_os_error() {
            Some(libc::ENOENT) => match fs::read_link(name) {
                Ok(to) => Self::DanglingLink { name: shown, to: to.to_string_lossy().into_owned() },
                Err(_) => Self::Missing { name: shown },
            },
            Some(libc::EACCES | libc::EPERM) => Self::Denied { name: shown, what: "look at" },
            _ => Self::Open { name: shown, cause },
        }
    }
}

impl TargetError {
    /// The same for people: about the target, with the remedy.
    pub fn refusal(&self) -> Refusal {
        let (problem, remedy) = self.told();
        Refusal::denied(self.name(), problem, remedy)
    }

    /// The target, as the user named it.
    fn name(&self) -> &str {
        match self {
            Self::Missing { name }
            | Self::DanglingLink { name, .. }
            | Self::Denied { name, .. }
            | Self::Folder { name }
            | Self::NoFolder { name }
            | Self::Special { name, .. }
            | Self::NoStorage { name, .. }
            | Self::NoDevice { name, .. }
            | Self::Unseen { name }
            | Self::ReadOnly { name, .. }
            | Self::Empty { name, .. }
            | Self::DirectUnsupported { name, .. }
            | Self::NotNamed { name, .. }
            | Self::InUse { name, .. }
            | Self::Passthrough { name, .. }
            | Self::Unsupported { name, .. }
            | Self::TooLarge { name, .. }
            | Self::Changed { name, .. }
            | Self::Open { name, .. } => name,
        }
    }

    /// The problem and the remedy.
    fn told(&self) -> (String, String) {
        match self {
            Self::Missing { .. }
            | Self::DanglingLink { .. }
            | Self::Folder { .. }
            | Self::NoFolder { .. }
            | Self::Special { .. }
            | Self::NoStorage { .. }
            | Self::NoDevice { .. }
            | Self::Unseen { .. }
            | Self::Empty { .. }
            | Self::Changed { .. } => self.told_of_what_it_is(),
            Self::TooLarge { block_size, largest, limit, .. } => told(
                format!(
                    "blocks of {block_size} are more than one NVMe command to it may move, which is \
                     {largest} by the kernel's {limit}"
                ),
                "choose a smaller block size, or the block device, whose I/Os the kernel cuts",
            ),
            Self::Denied { what, .. } => told(
                format!("this user may not {what} it"),
                "change its permissions (and those of the folders above it), or run fathom as root; \
                 to root, the file's attributes (lsattr) or a container's device rules say no",
            ),
            Self::ReadOnly { mount_point: Some(point), .. } => told(
                format!("it cannot be written to, because {point} is mounted read-only"),
                format!("remount it with `mount -o remount,rw {point}`, or only read"),
            ),
            Self::ReadOnly { name, mount_point: None } => told(
                "it is read-only",
                format!(
                    "switch that off (for a block device `blockdev --setrw {}`), or only read",
                    typed_path(name)
                ),
            ),
            Self::DirectUnsupported { file_system, .. } => {
                let file_system = file_system.as_deref().unwrap_or("its file system");
                told(
                    format!(
                        "it cannot be read past the page cache, because {file_system} has no direct \
                         I/O"
                    ),
                    "add --buffered, or name a file on another file system",
                )
            }
            Self::Passthrough { cause, remedy, .. } => {
                told(format!("it cannot be sent NVMe commands: {cause}"), remedy)
            }
            Self::Unsupported { option, cause, remedy, .. } => {
                told(format!("{option} does not work with it: {cause}"), remedy)
            }
            Self::NotNamed { name, kind, holds } => told_not_named(name, *kind, holds),
            Self::InUse { name, uses } => told_in_use(name, uses),
            Self::Open { cause, .. } => told_open(cause),
        }
    }

    fn told_of_what_it_is(&self) -> (String, String) {
        match self {
            Self::Missing { name } if name.starts_with("/dev/") => {
                told("it does not exist", "list the devices of this machine with `lsblk`")
            }
            Self::Missing { name } => told(
                "it does not exist",
                format!("create it with `fathom prepare {} --size 10g`", typed_path(name)),
            ),
            Self::DanglingLink { to, .. } => told(
                format!("it is a link to {to}, which does not exist"),
                "name what it should lead to",
            ),
            Self::Folder { name } => told(
                "it is a folder",
                format!(
                    "name a file in it, or measure the place with `fathom quick {}`",
                    typed_path(name)
                ),
            ),
            Self::NoFolder { .. } => told("it is no folder", "name the folder that it is in"),
            Self::Special { what, .. } => {
                told(format!("it is {what}"), "name a file or a block device")
            }
            Self::NoStorage { file_system, .. } => told(
                format!(
                    "it is no storage: it is on {file_system}, in which the kernel shows itself"
                ),
                "name a file, a folder or a block device that holds data",
            ),
            Self::NoDevice { cause, .. } => told(
                format!("it has no device behind it ({})", plain(cause)),
                "insert or attach it, or name another; `lsblk` lists them",
            ),
            Self::Unseen { .. } => told(
                "its size and its users are unknown, because /sys/class/block does not show it",
                "run fathom where the kernel's /sys can be seen, or measure a file",
            ),
            Self::Empty { name, kind: TargetKind::File } => told(
                "it is empty",
                format!(
                    "fill it with `fathom prepare {} --size 10g --overwrite`",
                    typed_path(name)
                ),
            ),
            Self::Empty { kind, .. } => told(
                format!("it is a {} without any data", kind.name()),
                "attach or insert a medium",
            ),
            Self::Changed { what, .. } => told(
                format!("it has changed since it was checked ({what})"),
                "see who replaces or resizes it, and start again",
            ),
            _ => unreachable!("only called for the errors above"),
        }
    }
}

impl fmt::Display for TargetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.refusal().fmt(f)
    }
}

impl std::error::Error for TargetError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::NoDevice { cause, .. } | Self::Open { cause, .. } => Some(cause),
            _ => None,
        }
    }
}

/// A problem and its remedy.
fn told(problem: impl Into<String>, remedy: impl Into<String>) -> (String, String) {
    (problem.into(), remedy.into())
}

fn told_open(cause: &io::Error) -> (String, String) {
    let remedy = match cause.raw_os_error() {
        Some(libc::ETXTBSY) => "name another file: this one is a running program or swap",
        Some(libc::ELOOP) => "name the file itself: its links lead in a circle",
        Some(libc::ENOTDIR) => "correct the path: a part of it before the last is no folder",
        Some(libc::ENAMETOOLONG) => "choose a shorter name",
        Some(libc::EMFILE | libc::ENFILE) => {
            "raise the limit of open files with `ulimit -n`, or name fewer targets"
        }
        Some(libc::EIO) => "see `dmesg`: the device fails",
        Some(libc::ESTALE) => "mount its file system again: the file server has forgotten the file",
        None => "rename it, or name a link to it",
        _ => "see whether `dd` can read it, and `dmesg` for what the kernel says",
    };
    told(format!("it cannot be opened ({})", plain(cause)), remedy)
}

fn told_not_named(name: &str, kind: TargetKind, holds: &[String]) -> (String, String) {
    if kind == TargetKind::File {
        return told(
            "it is a file that exists, and this would overwrite it",
            "add --overwrite if its data may be lost",
        );
    }
    told(
        format!("it is a {}, and this would overwrite it; {}", kind.name(), found_on(holds)),
        format!(
            "repeat its name in --destroy {} if whatever it holds may be lost",
            typed_path(name)
        ),
    )
}

fn told_in_use(name: &str, uses: &[InUse]) -> (String, String) {
    // A server's disk may have a hundred mounts; the first few are enough.
    const SHOWN: usize = 4;
    let mut seen: Vec<String> =
        uses.iter().take(SHOWN).map(|usage| Described(usage).to_string()).collect();
    if SHOWN < uses.len() {
        seen.push(format!("and {} more", uses.len() - SHOWN));
    }
    let remedy = match uses.first() {
        Some(InUse::Mounted { mount_point, .. }) => {
            format!("unmount it (`umount {mount_point}`), or measure a file on it")
        }
        Some(InUse::Swap { device }) => format!("switch it off with `swapoff {device}`"),
        Some(InUse::Holder { holder, .. }) => format!("measure {holder}, or stop it first"),
        Some(InUse::Unknown { device, .. }) => {
            format!("see to it that fathom can read {device} and look, and start again")
        }
        Some(InUse::Exclusive { .. } | InUse::Signature { .. }) | None => {
            "close the program that uses it".to_owned()
        }
    };
    let typed = typed_path(name);
    told(
        format!("it must not be written to ({})", seen.join("; ")),
        format!(
            "{remedy}, or repeat its name in --destroy-in-use {typed} to destroy it all the same"
        ),
    )
}

/// An error of the system without Rust's "(os error 28)".
pub fn plain(cause: &io::Error) -> String {
    if cause.kind() == io::ErrorKind::AlreadyExists {
        return "it exists already".to_owned();
    }
    let text = cause.to_string();
    match text.find(" (os error") {
        Some(end) => text[..end].to_owned(),
        None => text,
    }
}

/// The content that was found on a device, as far as it is known. Finding none proves nothing.
fn found_on(holds: &[String]) -> String {
    match holds {
        [] => "no known mark was found on it, which is no proof that it holds nothing".to_owned(),
        _ => format!("found on it: {}", holds.join("; ")),
    }
}

/// The use of a device, in words.
pub(crate) struct Described<'a>(pub(crate) &'a InUse);

impl fmt::Display for Described<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            InUse::Mounted { device, mount_point } => {
                write!(f, "{device} is mounted on {mount_point}")
            }
            InUse::Swap { device } => write!(f, "{device} is swap"),
            InUse::Holder { device, holder } => write!(f, "{device} is part of {holder}"),
            InUse::Signature { device, kind } => write!(f, "{device} holds data: {kind}"),
            InUse::Exclusive { device } => write!(f, "another program has claimed {device}"),
            InUse::Unknown { device, why } => {
                write!(f, "it cannot be seen whether {device} holds data or is used ({why})")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_most_important_uses_are_listed() {
        let mounted = |n: u32| InUse::Mounted {
            device: format!("/dev/sda{n}"),
            mount_point: format!("/mnt/{n}"),
        };
        let uses = (1..=9).map(mounted).collect();
        let text = TargetError::InUse { name: "/dev/sda".to_owned(), uses }.to_string();
        assert!(text.contains("/dev/sda1 is mounted on /mnt/1; "), "{text}");
        assert!(text.contains("; and 5 more): unmount it (`umount /mnt/1`)"), "{text}");
        assert!(text.contains("--destroy-in-use /dev/sda"), "{text}");
    }
}
