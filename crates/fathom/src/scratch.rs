//! The scratch file of `quick`: recognized by its name, its marker and its lock, so that a leftover
//! of a killed run can be told from a file in use, and from somebody's data.
//!
//! Its first MiB holds the marker and is never measured.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::iter;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use fathom_core::Bytes;

use crate::error::Error;
use crate::hanging::{Role, patiently};
use crate::signals;
use crate::signals::Closing;

/// The beginning of every scratch file's name.
const PREFIX: &str = ".fathom-scratch-";
/// The beginning of every scratch file's content.
const MARKER: &[u8] = b"fathom scratch file: safe to remove when no fathom is running\n";

/// The start of the measured part: after the marker, aligned for any device.
pub const REGION_START: Bytes = Bytes(Bytes::MIB);

/// A scratch file that is ours: locked while it lives, removed when dropped.
#[derive(Debug)]
pub struct Scratch {
    path: PathBuf,
    file: Closing<File>,
}

impl Scratch {
    /// Makes one in `folder`, which holds only the marker.
    ///
    /// # Errors
    ///
    /// When the folder does not allow it.
    pub fn create(folder: &Path, id: u64) -> Result<Self, Error> {
        let path = folder.join(format!("{PREFIX}{}-{:08x}", std::process::id(), id as u32));
        Self::marked(path).map_err(|cause| refused(folder, &cause))
    }

    fn marked(path: PathBuf) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).mode(0o600);
        let file = patiently(&path, Role::Target, || signals::create_doomed(&path, &mut options))?;
        // From here on dropping removes it.
        let scratch = Self { path, file: file.into() };
        match scratch.file().try_lock() {
            Ok(()) => {}
            // A file system without locks: a leftover cannot be told from a file in use there, and
            // `leftovers` does not call it one.
            Err(TryLockError::Error(_)) => {}
            Err(TryLockError::WouldBlock) => return Err(io::ErrorKind::ResourceBusy.into()),
        }
        let mut first = vec![0u8; REGION_START.0 as usize];
        first[..MARKER.len()].copy_from_slice(MARKER);
        patiently(&scratch.path, Role::Target, || {
            let mut file = scratch.file();
            file.write_all(&first)?;
            file.sync_all()
        })?;
        Ok(scratch)
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether this is the scratch file, opened once more, and not another one with its name.
    ///
    /// # Errors
    ///
    /// When one of them cannot be examined.
    pub fn is(&self, other: &File) -> io::Result<bool> {
        let (own, other) = (self.file().metadata()?, other.metadata()?);
        Ok((own.dev(), own.ino()) == (other.dev(), other.ino()))
    }

    /// The open file.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Cuts off everything after the region of this length.
    ///
    /// # Errors
    ///
    /// When the file system does not allow it.
    pub fn cut(&self, region: Bytes) -> io::Result<()> {
        self.file().set_len(REGION_START.0 + region.0)?;
        self.file().sync_all()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        signals::remove(&self.path);
    }
}

fn refused(folder: &Path, cause: &io::Error) -> Error {
    let (problem, remedy) = match cause.kind() {
        io::ErrorKind::PermissionDenied => (
            "no scratch file can be made in it (permission denied)".to_owned(),
            "name a folder that you may write to, or a file or device to read",
        ),
        io::ErrorKind::ReadOnlyFilesystem => (
            "no scratch file can be made in it (the file system is read-only)".to_owned(),
            "name another folder, or a file or device to read",
        ),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => (
            "no scratch file can be made in it (no space left)".to_owned(),
            "free some space, or name another folder",
        ),
        _ => (
            format!("no scratch file can be made in it ({})", crate::error::plain(cause)),
            "name another folder, or a file or device to read",
        ),
    };
    Error::target(folder.display().to_string(), problem, remedy)
}

/// A scratch file that is no longer in use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leftover {
    /// Its path.
    pub path: PathBuf,
    /// The space that it takes.
    pub size: Bytes,
    /// Its intended use.
    kind: LeftoverKind,
}

/// The origin of a leftover.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LeftoverKind {
    /// A scratch file of `quick`: its marker says so.
    Scratch,
    /// A file that `prepare` had not finished: it holds the user's content, and no marker.
    Growing,
}

/// The leftovers of killed runs in `folder`: files with fathom's name and marker (or no content
/// yet) that no process has locked.
pub fn leftovers(folder: &Path) -> Vec<Leftover> {
    abandoned_in(folder, LeftoverKind::Scratch, is_our_name)
}

/// The leftovers of killed runs of `prepare` in `folder` for files whose name begins like this:
/// files that no process has locked, with the number of a process at the end of the name.
pub fn growing_leftovers(folder: &Path, prefix: &str) -> Vec<Leftover> {
    abandoned_in(folder, LeftoverKind::Growing, |name| {
        let id = name.strip_prefix(prefix).unwrap_or_default();
        !id.is_empty() && id.bytes().all(|digit| digit.is_ascii_digit())
    })
}

fn abandoned_in(
    folder: &Path,
    kind: LeftoverKind,
    is_ours: impl Fn(&str) -> bool,
) -> Vec<Leftover> {
    let Ok(mut entries) = patiently(folder, Role::Target, || std::fs::read_dir(folder)) else {
        return Vec::new();
    };
    let mut found: Vec<Leftover> =
        iter::from_fn(|| patiently(folder, Role::Target, || entries.next()))
            .filter_map(|entry| {
                let entry = entry.ok()?;
                let ours = entry.file_name().to_str().is_some_and(&is_ours);
                (ours && entry.file_type().ok()?.is_file()).then(|| entry.path())
            })
            .filter_map(|path| {
                let looked = patiently(&path, Role::Target, || abandoned(&path, kind));
                let (_, size) = looked.ok()??;
                Some(Leftover { path, size, kind })
            })
            .collect();
    found.sort_by(|a, b| a.path.cmp(&b.path));
    found
}

fn is_our_name(name: &str) -> bool {
    let Some((pid, id)) = name.strip_prefix(PREFIX).and_then(|rest| rest.split_once('-')) else {
        return false;
    };
    !pid.is_empty()
        && pid.chars().all(|c| c.is_ascii_digit())
        && id.len() == 8
        && id.chars().all(|c| c.is_ascii_hexdigit())
}

/// The open and locked file and its size, if it is a scratch file that is not in use.
fn abandoned(path: &Path, kind: LeftoverKind) -> io::Result<Option<(File, Bytes)>> {
    let file = OpenOptions::new().read(true).open(path)?;
    let metadata = file.metadata()?;
    if kind == LeftoverKind::Scratch && metadata.len() > 0 {
        let mut first = Vec::new();
        (&file).take(MARKER.len() as u64).read_to_end(&mut first)?;
        // A marker whose write was cut off by a power loss reads as zeros, or is too short.
        if !MARKER.starts_with(&first) && first.iter().any(|&byte| byte != 0) {
            return Ok(None);
        }
    }
    match file.try_lock() {
        Ok(()) => Ok(Some((file, Bytes(metadata.blocks() * 512)))),
        Err(_) => Ok(None),
    }
}

/// Removes a leftover, after one more check that it is one.
///
/// # Errors
///
/// When it came into use in between, or the file system does not allow it.
pub fn remove(leftover: &Leftover) -> io::Result<()> {
    match abandoned(&leftover.path, leftover.kind)? {
        // The lock is held until it is gone, so that no process takes it up in between.
        Some((_locked, _)) => std::fs::remove_file(&leftover.path),
        None => Err(io::ErrorKind::ResourceBusy.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scratch_file_in_use_is_no_leftover_and_an_abandoned_one_is() {
        let folder = tempfile::tempdir().unwrap();
        let scratch = Scratch::create(folder.path(), 7).unwrap();
        assert_eq!(leftovers(folder.path()), []);
        let copy = folder.path().join(".fathom-scratch-1-0000abcd");
        std::fs::copy(scratch.path(), &copy).unwrap();
        let path = scratch.path().to_owned();
        drop(scratch);
        assert!(!path.exists());
        let found = leftovers(folder.path());
        assert_eq!(found.iter().map(|l| &l.path).collect::<Vec<_>>(), [&copy]);
        remove(&found[0]).unwrap();
        assert_eq!(leftovers(folder.path()), []);
    }

    #[test]
    fn a_file_that_took_the_name_of_a_scratch_file_is_not_taken_for_it() {
        let folder = tempfile::tempdir().unwrap();
        let scratch = Scratch::create(folder.path(), 7).unwrap();
        assert!(scratch.is(&File::open(scratch.path()).unwrap()).unwrap());
        let theirs = folder.path().join("theirs");
        std::fs::write(&theirs, "the only copy").unwrap();
        std::fs::remove_file(scratch.path()).unwrap();
        std::os::unix::fs::symlink(&theirs, scratch.path()).unwrap();
        assert!(!scratch.is(&File::open(scratch.path()).unwrap()).unwrap());
        drop(scratch);
        assert_eq!(std::fs::read_to_string(&theirs).unwrap(), "the only copy");
    }

    #[test]
    fn a_file_with_the_name_of_a_new_scratch_file_stays() {
        let folder = tempfile::tempdir().unwrap();
        let name = format!("{PREFIX}{}-{:08x}", std::process::id(), 9);
        let theirs = folder.path().join(name);
        std::fs::write(&theirs, "the only copy").unwrap();
        Scratch::create(folder.path(), 9).unwrap_err();
        assert_eq!(std::fs::read_to_string(&theirs).unwrap(), "the only copy");
    }

    #[test]
    fn somebodys_file_is_never_called_a_leftover() {
        let folder = tempfile::tempdir().unwrap();
        for name in [".fathom-scratch-1-0000abcd", ".fathom-scratch-x-0000abcd", ".fathom-scratch-"]
        {
            std::fs::write(
                folder.path().join(name),
                "my thesis, the only copy, not a marker, long enough to be read in full by anybody",
            )
            .unwrap();
        }
        std::fs::write(folder.path().join(".fathom-scratch-1-0000abd0"), "short").unwrap();
        std::fs::create_dir(folder.path().join(".fathom-scratch-1-0000abce")).unwrap();
        std::os::unix::fs::symlink("/etc/passwd", folder.path().join(".fathom-scratch-1-0000abcf"))
            .unwrap();
        assert_eq!(leftovers(folder.path()), []);
    }

    #[test]
    fn a_file_that_was_killed_before_its_marker_is_a_leftover() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join(".fathom-scratch-12-00000001"), "").unwrap();
        assert_eq!(leftovers(folder.path()).len(), 1);
    }
}
