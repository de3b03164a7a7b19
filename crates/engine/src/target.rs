//! Opens targets, and refuses what must not be touched.
//!
//! A file that exists is not written to unless overwriting was allowed, and a block device never
//! unless its own name is repeated as one to destroy, whatever is found on it. What is in use is not
//! written to even then, unless its name is repeated as one to destroy in use. Nothing is ever
//! created or truncated here. What was judged is compared with what was opened, and a device that
//! is written to is claimed, so that nobody can mount it in between.

use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Seek, SeekFrom};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use fathom_core::Bytes;
use fathom_core::facts::{FileIdentity, InUse, Namespace, OverlayLayer, Target, TargetKind};
use fathom_core::spec::{Access, Cache};
use fathom_core::typed_path;

use crate::{access, found, host};

/// A file or device that is open for a run. A clone is the same open file.
#[derive(Clone, Debug)]
pub struct OpenTarget {
    /// As the user named it.
    pub name: String,
    /// The open file.
    pub file: Arc<File>,
    /// How large it is.
    pub size: Bytes,
    /// What offsets, lengths and memory have to be multiples of; 1 when buffered.
    pub alignment: Bytes,
    /// What NVMe commands have to say, where they reach the target as they are.
    pub passthrough: Option<Passthrough>,
}

/// What every NVMe command to a target says.
#[derive(Clone, Debug)]
pub struct Passthrough {
    /// The namespace.
    pub namespace: u32,
    /// The power of two that a logical block's size is.
    pub block_shift: u32,
    /// Whether a write completes only when it is durable.
    pub force_unit_access: bool,
    /// The block device with the same data, claimed as long as it may be written to.
    _claim: Option<Arc<File>>,
}

#[cfg(test)]
impl Passthrough {
    /// Of a namespace that is nowhere.
    pub(crate) fn invented(namespace: u32, block_shift: u32, force_unit_access: bool) -> Self {
        Self { namespace, block_shift, force_unit_access, _claim: None }
    }
}

/// How a target is to be opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Opening {
    /// How data reaches the target.
    pub access: Access,
    /// Whether it will be written to.
    pub writes: bool,
    /// Whether the run has claimed it already, because it is open for writing in another way.
    pub claimed: bool,
    /// What the user allowed.
    pub overwrite: Overwrite,
}

/// What may be written to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Overwrite {
    /// Whether the existing files among the targets may be.
    pub allowed: bool,
    /// Files that may be because fathom made them, whatever has their names now.
    pub made: Vec<FileIdentity>,
    /// Targets that may be destroyed whatever is on them, as long as nobody uses them.
    pub destroy: Vec<String>,
    /// Targets that may be destroyed even though somebody uses them, or may do so unseen.
    pub destroy_in_use: Vec<String>,
}

impl Overwrite {
    /// Whether this file may be overwritten, as far as nobody uses it.
    pub fn allows(&self, file: &Target) -> bool {
        let made = file.identity.is_some_and(|identity| self.made.contains(&identity));
        self.allowed || made || self.destroys(file)
    }

    /// Whether the user repeated this target's name, or another name of the same thing.
    fn destroys(&self, target: &Target) -> bool {
        names(&self.destroy, target) || self.destroys_in_use(target)
    }

    /// The same of a target that is in use.
    fn destroys_in_use(&self, target: &Target) -> bool {
        names(&self.destroy_in_use, target)
    }
}

fn names(names: &[String], target: &Target) -> bool {
    names.iter().any(|name| {
        *name == target.name
            || fs::canonicalize(name).is_ok_and(|path| path == Path::new(&target.path))
    })
}

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

    /// What a failure to open a target means.
    fn from_opening(target: &Target, opening: &Opening, cause: io::Error) -> Self {
        let name = target.name.clone();
        let what = if opening.writes { "write" } else { "read" };
        let mount_point = target.file_system.as_ref().map(|found| found.mount_point.clone());
        match cause.raw_os_error() {
            Some(libc::ENOENT) => Self::Missing { name },
            Some(libc::EACCES | libc::EPERM) => Self::Denied { name, what },
            Some(libc::EROFS) => Self::ReadOnly { name, mount_point },
            Some(libc::EISDIR) => Self::Folder { name },
            Some(libc::ENXIO | libc::ENODEV | libc::ENOMEDIUM) => Self::NoDevice { name, cause },
            Some(libc::EBUSY) => {
                let device = target.path.clone();
                Self::InUse { name, uses: Vec::from([InUse::Exclusive { device }]) }
            }
            _ => Self::Open { name, cause },
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
                let typed = typed(name);
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
                    typed(name)
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
                typed(name)
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
                            typed(name),
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

/// A name as it can be typed in a shell.
pub(crate) fn typed(name: &str) -> String {
    typed_path(name)
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
        typed(name)
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
    let (remedy, typed) = (capitalized(&remedy), typed(name));
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

/// Checks that blocks of this size in this region can be read from, or written to, the target.
///
/// # Errors
///
/// When direct I/O needs other multiples, or the region does not fit.
pub fn check_region(
    target: &Target,
    access: Access,
    offset: Bytes,
    length: Bytes,
    block_size: Bytes,
) -> Result<(), TargetError> {
    let name = || target.name.clone();
    check_alignment(target, access, "the block size", block_size)?;
    check_alignment(target, access, "the offset", offset)?;
    let end = Bytes(offset.0.saturating_add(length.0));
    if target.size < end {
        return Err(TargetError::BeyondEnd {
            name: name(),
            kind: target.kind,
            end,
            size: target.size,
        });
    }
    if length < block_size {
        return Err(TargetError::TooSmall { name: name(), length, block_size });
    }
    check_command_size(target, block_size)
}

/// Checks that one NVMe command can move a block, where commands reach the target as they are.
///
/// # Errors
///
/// When it cannot.
pub fn check_command_size(target: &Target, block_size: Bytes) -> Result<(), TargetError> {
    match &target.namespace {
        Some(namespace) if namespace.largest < block_size => Err(TargetError::TooLarge {
            name: target.name.clone(),
            block_size,
            largest: namespace.largest,
            limit: namespace.limit,
        }),
        _ => Ok(()),
    }
}

/// Checks that a size or an offset is a multiple of what direct I/O on the target needs. `what`
/// names it in the error: "the block size".
///
/// # Errors
///
/// When it is not.
pub fn check_alignment(
    target: &Target,
    access: Access,
    what: &'static str,
    value: Bytes,
) -> Result<(), TargetError> {
    let alignment = alignment(target, access);
    if value.0.is_multiple_of(alignment.0) {
        return Ok(());
    }
    Err(TargetError::Misaligned { name: target.name.clone(), what, value, alignment })
}

/// What offsets and lengths have to be multiples of.
fn alignment(target: &Target, access: Access) -> Bytes {
    match access.cache {
        Cache::Buffered => Bytes(1),
        Cache::Direct => target.direct_alignment.filter(|size| 0 < size.0).unwrap_or(Bytes(1)),
    }
}

/// Opens a target as it was looked at. Neither creates nor truncates anything.
///
/// # Errors
///
/// When it cannot be opened so, and when it would be written to and must not be.
pub fn open(target: &Target, opening: &Opening) -> Result<OpenTarget, TargetError> {
    judge(target, opening)?;
    let is_character = matches!(target.kind, TargetKind::CharacterDevice | TargetKind::NvmeGeneric);
    let in_use = opening.overwrite.destroys_in_use(target);
    // Claiming is what mounting does too: from here on nobody can.
    let claims =
        target.kind == TargetKind::BlockDevice && opening.writes && !opening.claimed && !in_use;
    let flags = access::open_flags(opening.access, opening.writes, !is_character)
        | if claims { libc::O_EXCL } else { 0 };
    let found =
        found::find(Path::new(&target.path)).map_err(|cause| match cause.raw_os_error() {
            Some(libc::ELOOP) => TargetError::Changed {
                name: target.name.clone(),
                what: "a link has taken its place",
            },
            _ => TargetError::from_opening(target, opening, cause),
        })?;
    confirm(target, &found)?;
    let file = open_with(target, opening, (&found, flags))?;
    confirm_disk(target, &file)?;
    if opening.writes && is_copied_up(target) {
        note_copy(target, &found)?;
    }
    prepare_cache(target, opening, &file)?;
    let passthrough = match &target.namespace {
        Some(namespace) => Some(pass_through(target, namespace, opening, &file)?),
        None => None,
    };
    Ok(OpenTarget {
        name: target.name.clone(),
        file: Arc::new(file),
        size: target.size,
        alignment: alignment(target, opening.access),
        passthrough,
    })
}

/// Tells the kernel what the access says of the page cache, and sees whether it can.
fn prepare_cache(target: &Target, opening: &Opening, file: &File) -> Result<(), TargetError> {
    let access = opening.access;
    let refuse = |option: String, cause, remedy: &str| TargetError::Unsupported {
        name: target.name.clone(),
        option,
        cause,
        remedy: remedy.to_owned(),
    };
    if let Some(hint) = access.hint {
        access::advise(file, hint).map_err(|cause| {
            let option = format!("--fadvise {}", hint.name());
            refuse(option, format!("the kernel does not take it ({cause})"), "drop it")
        })?;
    }
    if access.uncached {
        access::probe_uncached(file).map_err(|cause| {
            let remedy = "drop it, or name a file on XFS, ext4 or Btrfs with a newer kernel";
            refuse("--dontcache".to_owned(), cause, remedy)
        })?;
    }
    if access.mapped {
        crate::sync::probe_mapping(file, opening.writes).map_err(|cause| {
            let cause = format!("it cannot be mapped into memory ({cause})");
            refuse("--mmap".to_owned(), cause, "drop it, or add --buffered instead")
        })?;
    }
    Ok(())
}

/// Settles what the commands to an NVMe generic device say. What is written through it is the data
/// of the block device beside, so that one is claimed as if it were opened itself.
fn pass_through(
    target: &Target,
    namespace: &Namespace,
    opening: &Opening,
    file: &File,
) -> Result<Passthrough, TargetError> {
    let name = || target.name.clone();
    let id = host::nvme::namespace_of(file).map_err(|cause| TargetError::Passthrough {
        name: name(),
        cause: format!("the device does not tell its namespace ({cause})"),
        remedy: format!("measure {}", namespace.block_device),
    })?;
    if id != namespace.id {
        return Err(TargetError::Changed { name: name(), what: "it is another namespace" });
    }
    let claims = opening.writes && !opening.claimed && !opening.overwrite.destroys_in_use(target);
    let claim = match claims.then(|| host::nvme::claim(namespace)) {
        None => None,
        Some(Ok(claim)) => Some(Arc::new(claim)),
        Some(Err(cause)) if cause.raw_os_error() == Some(libc::EBUSY) => {
            let device = namespace.block_device.clone();
            return Err(TargetError::InUse {
                name: name(),
                uses: Vec::from([InUse::Exclusive { device }]),
            });
        }
        Some(Err(cause)) => {
            return Err(TargetError::Passthrough {
                name: name(),
                cause: format!(
                    "{}, which has the same data, cannot be claimed ({cause})",
                    namespace.block_device
                ),
                remedy: "see that its node is there and that this user may read it".to_owned(),
            });
        }
    };
    Ok(Passthrough {
        namespace: id,
        block_shift: namespace.logical_block.0.trailing_zeros(),
        force_unit_access: opening.access.is_durable(),
        _claim: claim,
    })
}

fn open_with(
    target: &Target,
    opening: &Opening,
    (found, flags): (&File, i32),
) -> Result<File, TargetError> {
    let try_open = |flags| {
        found::reopen(
            (found, Path::new(&target.path)),
            OpenOptions::new().read(true).write(opening.writes),
            flags,
        )
    };
    try_open(flags).map_err(|cause| {
        let only_direct = flags & libc::O_DIRECT != 0
            && cause.raw_os_error() == Some(libc::EINVAL)
            && try_open(flags & !libc::O_DIRECT).is_ok();
        match only_direct {
            true => TargetError::DirectUnsupported {
                name: target.name.clone(),
                file_system: target.file_system.as_ref().map(|found| found.kind.clone()),
            },
            false => TargetError::from_opening(target, opening, cause),
        }
    })
}

/// Decides by what is known, before anything is opened.
///
/// # Errors
///
/// When the target cannot be opened so, or must not be written to.
pub fn judge(target: &Target, opening: &Opening) -> Result<(), TargetError> {
    let name = || target.name.clone();
    match target.kind {
        TargetKind::Folder => return Err(TargetError::Folder { name: name() }),
        TargetKind::Simulated => {
            return Err(TargetError::Special { name: name(), what: "a simulated device" });
        }
        TargetKind::NvmeGeneric if opening.access.cache == Cache::Buffered => {
            return Err(TargetError::Passthrough {
                name: name(),
                cause: "there is no page cache on their way".to_owned(),
                remedy: "drop --buffered, or measure the block device".to_owned(),
            });
        }
        TargetKind::CharacterDevice if opening.writes && target.path != "/dev/null" => {
            return Err(TargetError::Special {
                name: name(),
                what: "a character device, and writing to it measures nothing",
            });
        }
        _ => {}
    }
    if target.size.0 == 0 {
        return Err(TargetError::Empty { name: name(), kind: target.kind });
    }
    if !opening.writes || target.kind == TargetKind::CharacterDevice {
        return Ok(());
    }
    if let Some(found) = target.file_system.as_ref().filter(|found| found.read_only) {
        let mount_point = Some(found.mount_point.clone());
        return Err(TargetError::ReadOnly { name: name(), mount_point });
    }
    let number = target.layers.first().and_then(|layer| layer.device);
    let is_device = matches!(target.kind, TargetKind::BlockDevice | TargetKind::NvmeGeneric);
    if is_device && number.is_some_and(host::is_read_only) {
        return Err(TargetError::ReadOnly { name: name(), mount_point: None });
    }
    let uses: Vec<InUse> = target.uses().cloned().collect();
    if !uses.is_empty() && !opening.overwrite.destroys_in_use(target) {
        return Err(TargetError::InUse { name: name(), uses });
    }
    // No list of marks is complete: nothing that is found, or not found, spares a device its name.
    let allowed = match is_device {
        true => opening.overwrite.destroys(target),
        false => opening.overwrite.allows(target),
    };
    match allowed {
        true => Ok(()),
        false => Err(TargetError::NotNamed {
            name: name(),
            kind: target.kind,
            holds: host::holds(target),
        }),
    }
}

/// Compares what is there now with what was looked at.
fn confirm(target: &Target, found: &File) -> Result<(), TargetError> {
    let failed = |cause| TargetError::Open { name: target.name.clone(), cause };
    let metadata = found.metadata().map_err(failed)?;
    let identity = found::identity(found).map_err(failed)?;
    let changed = |what| Err(TargetError::Changed { name: target.name.clone(), what });
    let kind = metadata.file_type();
    match target.kind {
        TargetKind::BlockDevice => {
            let number = metadata.rdev();
            let number = (rustix::fs::major(number), rustix::fs::minor(number));
            if !kind.is_block_device() {
                return changed("it was a block device");
            }
            if target.layers.first().and_then(|layer| layer.device) != Some(number) {
                return changed("it is another device");
            }
        }
        TargetKind::NvmeGeneric => {
            let number = metadata.rdev();
            let number = (rustix::fs::major(number), rustix::fs::minor(number));
            let same = target.namespace.as_ref().is_some_and(|it| it.device == number);
            if !kind.is_char_device() || !same {
                return changed("it is another device");
            }
        }
        TargetKind::CharacterDevice
            if !kind.is_char_device() || !host::is_calibration_device(metadata.rdev()) =>
        {
            return changed("it is another device");
        }
        TargetKind::File if !kind.is_file() => return changed("it was a file"),
        TargetKind::File
            if target.identity != Some(identity) && copy_of(target) != Some(identity) =>
        {
            return changed("another file has taken its place");
        }
        TargetKind::File if metadata.len() < target.size.0 => {
            return changed("it has become smaller");
        }
        _ => {}
    }
    Ok(())
}

/// Compares the disk that was opened with the one that was looked at. Only an open disk can be asked,
/// and from here on no other one gets its device number.
fn confirm_disk(target: &Target, file: &File) -> Result<(), TargetError> {
    let changed = |what| Err(TargetError::Changed { name: target.name.clone(), what });
    if target.kind != TargetKind::BlockDevice {
        return Ok(());
    }
    if target.disk_sequence.is_some() && host::sequence::of_open(file) != target.disk_sequence {
        return changed("another disk has got its device number");
    }
    let size = { file }.seek(SeekFrom::End(0));
    match size {
        Ok(size) if size == target.size.0 => Ok(()),
        Ok(_) => changed("it has another size"),
        Err(cause) => Err(TargetError::Open { name: target.name.clone(), cause }),
    }
}

/// What files of an overlay's lower layer became as this process opened them for writing: a file is
/// another one once it was copied up, and what is there now has to be that copy.
static COPIES: Mutex<Vec<(FileIdentity, FileIdentity)>> = Mutex::new(Vec::new());

/// The copy of a file of a lower layer that this process has made.
fn copy_of(target: &Target) -> Option<FileIdentity> {
    let copies = COPIES.lock().unwrap_or_else(PoisonError::into_inner);
    copies.iter().find(|(was, _)| target.identity == Some(*was)).map(|(_, is)| *is)
}

/// Notes what a file has become by being opened for writing. Its handle was judged before, and stays
/// with the file that it is copied to.
fn note_copy(target: &Target, found: &File) -> Result<(), TargetError> {
    let failed = |cause| TargetError::Open { name: target.name.clone(), cause };
    let now = found::identity(found).map_err(failed)?;
    if let Some(was) = target.identity.filter(|was| *was != now && copy_of(target).is_none()) {
        COPIES.lock().unwrap_or_else(PoisonError::into_inner).push((was, now));
    }
    Ok(())
}

/// Whether a file is copied to another place before it is first written to.
fn is_copied_up(target: &Target) -> bool {
    let layer = target.file_system.as_ref().and_then(|found| found.overlay);
    layer == Some(OverlayLayer::Lower)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOTHING: Overwrite = Overwrite {
        allowed: false,
        made: Vec::new(),
        destroy: Vec::new(),
        destroy_in_use: Vec::new(),
    };
    const READ: Opening =
        Opening { access: Access::DIRECT, writes: false, claimed: false, overwrite: NOTHING };

    fn file() -> Target {
        Target {
            kind: TargetKind::File,
            direct_alignment: Some(Bytes(512)),
            ..Target::simulated("data", Bytes(1 << 20))
        }
    }

    #[test]
    fn what_the_kernel_answers_becomes_an_error_that_users_understand() {
        let meaning = |errno, writes| {
            let opening = Opening { writes, ..READ };
            let cause = io::Error::from_raw_os_error(errno);
            TargetError::from_opening(&file(), &opening, cause).to_string()
        };
        for (errno, writes, part) in [
            (libc::ENOENT, false, "fathom prepare data"),
            (libc::EACCES, false, "may not read data"),
            (libc::EPERM, true, "may not write data"),
            (libc::EROFS, true, "read-only"),
            (libc::EISDIR, true, "is a folder"),
            (libc::ENXIO, false, "no device behind it"),
            (libc::ENOMEDIUM, false, "insert"),
            (libc::EBUSY, true, "another program has claimed"),
            (libc::ETXTBSY, true, "running program or swap"),
            (libc::EMFILE, false, "ulimit -n"),
            (libc::EIO, false, "dmesg"),
        ] {
            let text = meaning(errno, writes);
            assert!(text.contains("data") && text.contains(part), "{text}");
        }
    }

    #[test]
    fn a_region_must_fit_the_target_and_its_alignment() {
        let direct = READ.access;
        let buffered = Access { cache: Cache::Buffered, ..direct };
        let check = |access, offset, length, block_size| {
            check_region(&file(), access, Bytes(offset), Bytes(length), Bytes(block_size))
                .map_err(|error| error.to_string())
        };
        let fails = |result: Result<(), String>, part: &str| {
            let text = result.unwrap_err();
            assert!(text.contains(part), "{text}");
        };
        assert_eq!(check(direct, 0, 1 << 20, 4096), Ok(()));
        assert_eq!(check(direct, 512, (1 << 20) - 512, 512), Ok(()));
        fails(
            check(direct, 0, 1 << 20, 1000),
            "the block size of 1000 bytes is no multiple of 512",
        );
        fails(check(direct, 100, 4096, 512), "the offset of 100 bytes is no multiple of 512");
        assert_eq!(check(buffered, 100, 4096, 1000), Ok(()));
        fails(check(direct, 512, 1 << 20, 512), "data has 1 MiB (1048576 bytes)");
        fails(check(direct, 512, u64::MAX, 512), "--size 18446744073709551615");
        fails(check(direct, 0, 512, 4096), "less than one block of 4 KiB");
    }

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
