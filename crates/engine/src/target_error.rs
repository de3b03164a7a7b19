//! Why a target cannot be used: what is wrong, and what the user can do about it.

use std::io;
use std::path::Path;
use std::{fmt, fs};

use fathom_core::Bytes;
use fathom_core::facts::{InUse, TargetKind};
use fathom_core::typed_path;

/// Why a target cannot be used. Each names the target, what is wrong and the remedy.
#[derive(Debug)]
pub enum TargetError {
    /// There is nothing with this name.
    Missing {
        /// As the user named it.
        name: String,
    },
    /// A link leads to nothing.
    DanglingLink {
        /// As the user named it.
        name: String,
        /// Where it leads.
        to: String,
    },
    /// This user may not look at it, or not open it.
    Denied {
        /// As the user named it.
        name: String,
        /// What was tried: "look at", "read", "write".
        what: &'static str,
    },
    /// It is a folder.
    Folder {
        /// As the user named it.
        name: String,
    },
    /// It is no folder.
    NoFolder {
        /// As the user named it.
        name: String,
    },
    /// It is a pipe, a socket or the like.
    Special {
        /// As the user named it.
        name: String,
        /// What it is.
        what: &'static str,
    },
    /// It is a part of the kernel that looks like files.
    NoStorage {
        /// As the user named it.
        name: String,
        /// The pseudo file system it is on.
        file_system: String,
    },
    /// The node has no device behind it.
    NoDevice {
        /// As the user named it.
        name: String,
        /// What opening it says.
        cause: io::Error,
    },
    /// Its file system, or it itself, is read-only.
    ReadOnly {
        /// As the user named it.
        name: String,
        /// Where its file system is mounted, if it is a file.
        mount_point: Option<String>,
    },
    /// It has no data.
    Empty {
        /// As the user named it.
        name: String,
        /// What it is.
        kind: TargetKind,
    },
    /// It can only be read through the page cache.
    DirectUnsupported {
        /// As the user named it.
        name: String,
        /// Its file system, if known.
        file_system: Option<String>,
    },
    /// A size or an offset is no multiple of what direct I/O needs.
    Misaligned {
        /// As the user named it.
        name: String,
        /// Which: "the block size", "the offset".
        what: &'static str,
        /// Its value.
        value: Bytes,
        /// What it has to be a multiple of.
        alignment: Bytes,
    },
    /// The region reaches beyond the end.
    BeyondEnd {
        /// As the user named it.
        name: String,
        /// What it is.
        kind: TargetKind,
        /// Where the region ends.
        end: Bytes,
        /// How large the target is.
        size: Bytes,
    },
    /// The region has no room for one block.
    TooSmall {
        /// As the user named it.
        name: String,
        /// The region's length.
        length: Bytes,
        /// The block size.
        block_size: Bytes,
    },
    /// It would be overwritten, which nobody allowed.
    NotNamed {
        /// As the user named it.
        name: String,
        /// What it is.
        kind: TargetKind,
        /// What it holds, as far as that is known.
        holds: Vec<String>,
    },
    /// It would be destroyed while somebody uses it or counts on it.
    InUse {
        /// As the user named it.
        name: String,
        /// By whom.
        uses: Vec<InUse>,
    },
    /// NVMe commands cannot be sent to it as they are.
    Passthrough {
        /// As the user named it.
        name: String,
        /// Why.
        cause: String,
        /// What to do.
        remedy: String,
    },
    /// What was asked for does not work with it.
    Unsupported {
        /// As the user named it.
        name: String,
        /// The option that asked for it.
        option: String,
        /// Why it does not work.
        cause: String,
        /// What to do.
        remedy: String,
    },
    /// A block is more than one NVMe command may move.
    TooLarge {
        /// As the user named it.
        name: String,
        /// The block size.
        block_size: Bytes,
        /// The most that one may.
        largest: Bytes,
        /// Which of the kernel's limits that is.
        limit: &'static str,
    },
    /// It is not what it was when it was looked at.
    Changed {
        /// As the user named it.
        name: String,
        /// What differs.
        what: &'static str,
    },
    /// The kernel cannot open it.
    Open {
        /// As the user named it.
        name: String,
        /// Why.
        cause: io::Error,
    },
}

impl TargetError {
    /// What a failure to look at a path means.
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

impl fmt::Display for TargetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing { .. } | Self::DanglingLink { .. } | Self::NoDevice { .. } => {
                self.fmt_missing(f)
            }
            Self::Denied { name, what } => write!(
                f,
                "this user may not {what} {name}: change its permissions (and those of the folders \
                 above it), or run fathom as root; to root, a container's device rules say no"
            ),
            Self::Folder { .. }
            | Self::NoFolder { .. }
            | Self::Special { .. }
            | Self::NoStorage { .. } => self.fmt_kind(f),
            Self::ReadOnly { name, mount_point: Some(point) } => write!(
                f,
                "{name} cannot be written to, because {point} is mounted read-only: remount it with \
                 `mount -o remount,rw {point}`, or only read"
            ),
            Self::ReadOnly { name, mount_point: None } => write!(
                f,
                "{name} is read-only: switch that off (for a block device `blockdev --setrw {name}`), \
                 or only read"
            ),
            Self::Empty { name, kind: TargetKind::File } => {
                let typed = typed_path(name);
                write!(
                    f,
                    "{name} is empty: fill it with `fathom prepare {typed} --size 10g --overwrite`"
                )
            }
            Self::Empty { name, kind } => {
                write!(
                    f,
                    "{name} is a {} without any data: attach or insert what it should hold",
                    kind.name()
                )
            }
            Self::DirectUnsupported { name, file_system } => {
                let file_system = file_system.as_deref().unwrap_or("its file system");
                write!(
                    f,
                    "{name} cannot be read past the page cache, because {file_system} has no direct \
                     I/O: add --buffered, or name a file on another file system"
                )
            }
            Self::Misaligned { .. }
            | Self::BeyondEnd { .. }
            | Self::TooSmall { .. }
            | Self::TooLarge { .. } => self.fmt_region(f),
            Self::Passthrough { name, cause, remedy } => {
                write!(f, "{name} cannot be sent NVMe commands: {cause}: {remedy}")
            }
            Self::Unsupported { name, option, cause, remedy } => {
                write!(f, "{option} does not work with {name}: {cause}: {remedy}")
            }
            Self::NotNamed { name, kind, holds } => fmt_not_named(f, name, *kind, holds),
            Self::InUse { name, uses } => fmt_in_use(f, name, uses),
            Self::Changed { name, what } => write!(
                f,
                "{name} is not what it was a moment ago ({what}): see who replaces or resizes it, and \
                 start again"
            ),
            Self::Open { name, cause } => fmt_open(f, name, cause),
        }
    }
}

impl TargetError {
    fn fmt_missing(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing { name } if name.starts_with("/dev/") => {
                write!(f, "{name} does not exist: `lsblk` lists the devices of this machine")
            }
            Self::Missing { name } => {
                write!(
                    f,
                    "{name} does not exist: create it with `fathom prepare {} --size 10g`",
                    typed_path(name)
                )
            }
            Self::DanglingLink { name, to } => {
                write!(
                    f,
                    "{name} is a link to {to}, which does not exist: name what it should lead to"
                )
            }
            Self::NoDevice { name, cause } => write!(
                f,
                "{name} has no device behind it ({cause}): insert or attach it, or name another; \
                 `lsblk` lists them"
            ),
            _ => unreachable!("only called for the errors above"),
        }
    }

    fn fmt_kind(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Folder { name } => write!(
                f,
                "{name} is a folder: name a file in it, or measure the place with `fathom quick {}`",
                typed_path(name)
            ),
            Self::NoFolder { name } => {
                write!(f, "{name} is no folder: name the folder that it is in")
            }
            Self::Special { name, what } => {
                write!(f, "{name} is {what}: name a file or a block device")
            }
            Self::NoStorage { name, file_system } => write!(
                f,
                "{name} is no storage: it is on {file_system}, in which the kernel shows itself; name \
                 a file, a folder or a block device that holds data"
            ),
            _ => unreachable!("only called for the errors above"),
        }
    }

    fn fmt_region(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Misaligned { name, what, value, alignment } => write!(
                f,
                "{what} of {} bytes is no multiple of {} bytes, which direct I/O on {name} needs: \
                 choose such a multiple, or add --buffered",
                value.0, alignment.0
            ),
            Self::BeyondEnd { name, kind, end, size } => {
                write!(
                    f,
                    "{name} has {size} ({} bytes), but the region ends at {end} ({} bytes): choose a \
                     smaller --size or --offset",
                    size.0, end.0
                )?;
                match kind {
                    TargetKind::File => {
                        write!(
                            f,
                            ", or write a larger one with `fathom prepare {} --size {} --overwrite`",
                            typed_path(name),
                            end.0
                        )
                    }
                    _ => Ok(()),
                }
            }
            Self::TooSmall { name, length, block_size } => write!(
                f,
                "the region of {name} is {length} ({} bytes) long, which is less than one block of \
                 {block_size}: choose a larger --size or a smaller --block-size",
                length.0
            ),
            Self::TooLarge { name, block_size, largest, limit } => write!(
                f,
                "blocks of {block_size} are more than one NVMe command to {name} may move, which is \
                 {largest} by the kernel's {limit}: choose a smaller block size, or the block device, \
                 whose I/Os the kernel cuts"
            ),
            _ => unreachable!("only called for the errors above"),
        }
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

fn fmt_open(f: &mut fmt::Formatter<'_>, name: &str, cause: &io::Error) -> fmt::Result {
    let remedy = match cause.raw_os_error() {
        Some(libc::ETXTBSY) => "it is a running program or swap: name another file",
        Some(libc::ELOOP) => "its links lead in a circle: name the file itself",
        Some(libc::ENOTDIR) => "a part of the path before the last is no folder: correct the path",
        Some(libc::ENAMETOOLONG) => "choose a shorter name",
        Some(libc::EMFILE | libc::ENFILE) => {
            "too many files are open: raise the limit with `ulimit -n`, or name fewer targets"
        }
        Some(libc::EIO) => "the device fails: see `dmesg`",
        Some(libc::ESTALE) => "the file server has forgotten it: mount its file system again",
        None => "rename it, or name a link to it",
        _ => "see whether `dd` can read it, and `dmesg` for what the kernel says",
    };
    let cause = cause.to_string();
    let cause = cause.split(" (os error").next().unwrap_or_default();
    write!(f, "{name} cannot be opened ({cause}): {remedy}")
}

fn fmt_not_named(
    f: &mut fmt::Formatter<'_>,
    name: &str,
    kind: TargetKind,
    holds: &[String],
) -> fmt::Result {
    if kind == TargetKind::File {
        return write!(
            f,
            "{name} is a file that exists, and this would overwrite it: add --overwrite if its data \
             may be lost"
        );
    }
    write!(
        f,
        "{name} is a {}, and this would overwrite it; {}: repeat its name in --destroy {} if whatever \
         it holds may be lost",
        kind.name(),
        found_on(holds),
        typed_path(name)
    )
}

fn fmt_in_use(f: &mut fmt::Formatter<'_>, name: &str, uses: &[InUse]) -> fmt::Result {
    write!(f, "{name} must not be written to: ")?;
    // A server's disk may have a hundred mounts; the first few are reason enough.
    const SHOWN: usize = 4;
    for (index, usage) in uses.iter().take(SHOWN).enumerate() {
        let separator = if index == 0 { "" } else { "; " };
        write!(f, "{separator}{}", Described(usage))?;
    }
    if SHOWN < uses.len() {
        write!(f, "; and {} more", uses.len() - SHOWN)?;
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
    let (remedy, typed) = (capitalized(&remedy), typed_path(name));
    write!(
        f,
        ". {remedy}, or repeat its name in --destroy-in-use {typed} to destroy it all the same"
    )
}

/// What was found on a device, as far as that is known. That nothing was is no proof.
fn found_on(holds: &[String]) -> String {
    match holds {
        [] => "no known mark was found on it, which is no proof that it holds nothing".to_owned(),
        _ => format!("found on it: {}", holds.join("; ")),
    }
}

struct Described<'a>(&'a InUse);

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

fn capitalized(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
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
        assert!(text.contains("; and 5 more. Unmount it (`umount /mnt/1`)"), "{text}");
        assert!(text.contains("--destroy-in-use /dev/sda"), "{text}");
    }
}
