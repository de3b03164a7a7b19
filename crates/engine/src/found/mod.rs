//! Opens the file that was examined, and nothing that took its place since. A path is followed
//! once, without links, to a handle that neither reads nor writes. The handle's file is judged, and
//! the same file is then opened to be read or written, wherever its name leads by then.

mod generation;

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::time::UNIX_EPOCH;

use fathom_core::facts::FileIdentity;
use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, open, openat2};
use rustix::io::Errno;

/// A handle of the file at this path, which was resolved before: a link in it was not there when
/// the user named it. The handle can be queried, and opened by [`reopen`].
///
/// # Errors
///
/// When there is no file, or a link has taken the place of a part of the path (ELOOP).
pub(crate) fn find(path: &Path) -> io::Result<File> {
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    // Again and again, because a rename anywhere makes the kernel give up its check.
    for _ in 0..100 {
        match openat2(CWD, path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS) {
            Ok(found) => return Ok(File::from(found)),
            Err(Errno::AGAIN | Errno::INTR) => {}
            // Linux before 5.6, and containers that do not know the call.
            Err(Errno::NOSYS | Errno::PERM) => break,
            Err(cause) => return Err(cause.into()),
        }
    }
    let found: OwnedFd = open(path, flags | OFlags::NOFOLLOW, Mode::empty())?;
    let found = File::from(found);
    match found.metadata()?.is_symlink() {
        true => Err(Errno::LOOP.into()),
        false => Ok(found),
    }
}

/// Opens the file that a handle of this path stands for.
///
/// # Errors
///
/// When it cannot be opened in this way, or, without /proc, another file has taken its place
/// (ELOOP).
pub(crate) fn reopen(
    (found, path): (&File, &Path),
    options: &mut OpenOptions,
    flags: i32,
) -> io::Result<File> {
    const HANDLES: &str = "/proc/self/fd";
    let handle = format!("{HANDLES}/{}", found.as_raw_fd());
    match options.custom_flags(flags | libc::O_CLOEXEC).open(handle) {
        Err(cause) if cause.kind() == io::ErrorKind::NotFound && !Path::new(HANDLES).exists() => {}
        result => return result,
    }
    let file = options.custom_flags(flags | libc::O_CLOEXEC | libc::O_NOFOLLOW).open(path)?;
    match identity(&file)? == identity(found)? {
        true => Ok(file),
        false => Err(Errno::LOOP.into()),
    }
}

/// The identity of an open file.
///
/// # Errors
///
/// When it cannot be queried.
pub fn identity(file: &File) -> io::Result<FileIdentity> {
    let metadata = file.metadata()?;
    let born = metadata.created().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    Ok(FileIdentity {
        device: metadata.dev(),
        inode: metadata.ino(),
        born_ns: born.map(|born| born.as_nanos() as u64),
        generation: generation::of(file, metadata.ino()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::io::Read;
    use std::os::unix::fs::symlink;

    #[test]
    fn a_link_that_took_a_place_is_not_followed_and_a_handle_stays_with_its_file() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        fs::create_dir(root.join("in")).unwrap();
        fs::create_dir(root.join("out")).unwrap();
        let path = root.join("in/file");
        fs::write(&path, "ours").unwrap();
        fs::write(root.join("out/file"), "theirs").unwrap();
        let found = find(&path).unwrap();
        let known = identity(&found).unwrap();
        fs::rename(root.join("in"), root.join("was")).unwrap();
        symlink(root.join("out"), root.join("in")).unwrap();
        assert_eq!(find(&path).unwrap_err().raw_os_error(), Some(libc::ELOOP));
        let mut text = String::new();
        let mut file = reopen((&found, &path), OpenOptions::new().read(true), 0).unwrap();
        file.read_to_string(&mut text).unwrap();
        assert_eq!((text.as_str(), identity(&file).unwrap()), ("ours", known));
        fs::remove_file(root.join("in")).unwrap();
        fs::rename(root.join("out"), root.join("in")).unwrap();
        assert_ne!(identity(&find(&path).unwrap()).unwrap(), known);
    }
}
