//! Files that fathom created, remembered by their identity and not by their names: an extended
//! attribute of the file says which file it is and when fathom last wrote to it. A copy, another
//! file of the same name, and a file that another program has written to since are treated like any
//! other data.
//!
//! It does not detect a program that writes to the file while fathom does, or that writes within
//! [`SLACK`] of the end of that and puts the time of the last write back.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use fathom_core::facts::FileIdentity;
use fathom_engine::found;
use rustix::fs::{OFlags, XattrFlags, fgetxattr, fsetxattr};

use crate::session;

/// The name of the attribute.
const ATTRIBUTE: &str = "user.fathom.created";
/// How much later than its mark a file may have been changed, in seconds: marking is itself a
/// change, on a machine that may be busy. A program that puts the time of a write back changes the
/// file once more, and nobody can put that time back.
const SLACK: i64 = 10;
/// The longest mark.
const LONGEST: usize = 256;

/// Marks a file that fathom created, in its present state, if it still has this name. If its file
/// system has no attributes, nothing is remembered, and the next run asks for consent.
pub fn remember(path: &Path, made: FileIdentity) {
    let Some((file, identity)) = open(path) else { return };
    let now = (session::unix_ns() / 1_000_000_000) as i64;
    if let Some(mark) = mark(&file, identity, now).filter(|_| identity == made) {
        let _ = fsetxattr(&file, ATTRIBUTE, mark.as_bytes(), XattrFlags::empty());
    }
}

/// Its identity, if fathom created it and no other program has written to it since.
pub fn ours(path: &Path) -> Option<FileIdentity> {
    let (file, identity) = open(path)?;
    let mut found = [0; LONGEST];
    let length = fgetxattr(&file, ATTRIBUTE, &mut found).ok()?;
    let found = std::str::from_utf8(found.get(..length)?).ok()?;
    let marked: i64 = found.rsplit(' ').next()?.parse().ok()?;
    let untouched = file.metadata().ok()?.ctime().checked_sub(marked)? <= SLACK;
    (untouched && found == mark(&file, identity, marked)?).then_some(identity)
}

/// The file of this name, not a link, and its identity.
fn open(path: &Path) -> Option<(File, FileIdentity)> {
    // Nobody writes to a pipe so that it can be opened.
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path).ok()?;
    let identity = found::identity(&file).ok()?;
    file.metadata().is_ok_and(|metadata| metadata.is_file()).then_some((file, identity))
}

/// The data that distinguish a file from every other one and from its state before a write: its
/// inode, the inode's birth or generation, its length, the time of the last write, and the time of
/// the mark.
fn mark(file: &File, identity: FileIdentity, marked: i64) -> Option<String> {
    let metadata = file.metadata().ok()?;
    let (seconds, nanoseconds) = (metadata.mtime(), metadata.mtime_nsec());
    let (inode, birth, length) = (identity.inode, identity.birth()?, metadata.len());
    Some(format!("{inode} {birth} {length} {seconds}.{nanoseconds:09} {marked}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn identity(path: &Path) -> FileIdentity {
        found::identity(&File::open(path).unwrap()).unwrap()
    }

    fn is_ours(path: &Path) -> bool {
        ours(path).is_some()
    }

    /// A marked file on a file system that keeps extended attributes.
    fn marked() -> (tempfile::TempDir, std::path::PathBuf) {
        let folder = tempfile::tempdir_in("/var/tmp").unwrap();
        let path = folder.path().join("io.dat");
        fs::write(&path, "fathom's").unwrap();
        remember(&path, identity(&path));
        (folder, path)
    }

    #[test]
    fn what_was_created_is_known_again_until_somebody_writes_to_it() {
        let (_folder, path) = marked();
        assert!(is_ours(&path));
        // The same length, so that only the modification time differs.
        let before = fs::metadata(&path).unwrap().modified().unwrap();
        while fs::metadata(&path).unwrap().modified().unwrap() == before {
            fs::write(&path, "somebody").unwrap();
        }
        assert!(!is_ours(&path));
        remember(&path, identity(&path));
        assert!(is_ours(&path));
    }

    #[test]
    fn a_change_since_it_was_marked_is_seen_whatever_the_time_of_the_write() {
        let (_folder, path) = marked();
        let (file, identity) = open(&path).unwrap();
        let now = (session::unix_ns() / 1_000_000_000) as i64;
        // As if it was marked long ago, with the same modification time since.
        for (marked, known) in [(now, true), (now - 10 * SLACK, false)] {
            let mark = mark(&file, identity, marked).unwrap();
            fsetxattr(&file, ATTRIBUTE, mark.as_bytes(), XattrFlags::empty()).unwrap();
            assert_eq!(is_ours(&path), known);
        }
    }

    #[test]
    fn a_copy_and_another_file_of_the_name_are_somebodys() {
        let (folder, path) = marked();
        let copy = folder.path().join("copy");
        let copied = std::process::Command::new("cp").arg("-a").args([&path, &copy]).status();
        assert!(copied.unwrap().success() && !is_ours(&copy));
        let made = identity(&path);
        fs::rename(&copy, &path).unwrap();
        assert!(!is_ours(&path));
        remember(&path, made);
        assert!(!is_ours(&path), "what took the name of a file is not marked in its stead");
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        assert!(!is_ours(&link));
        assert!(!is_ours(&folder.path().join("none")));
    }
}
