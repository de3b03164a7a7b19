//! Files that fathom created, remembered by what they are and not by their names: an extended attribute
//! of the file says which file it is and when fathom last wrote to it. A copy, a file of the same name,
//! and one that anybody else has written to since are somebody's data like any other.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::UNIX_EPOCH;

use rustix::fs::{XattrFlags, lgetxattr, lsetxattr};

/// Where it stands.
const ATTRIBUTE: &str = "user.fathom.created";
/// No mark is longer.
const LONGEST: usize = 256;

/// Marks a file that fathom created, as it is now. Where its file system keeps no attributes nothing is
/// remembered, and the next run asks.
pub fn remember(path: &Path) {
    if let Some(mark) = mark(path) {
        let _ = lsetxattr(path, ATTRIBUTE, mark.as_bytes(), XattrFlags::empty());
    }
}

/// Whether fathom created this file, and nobody else has written to it since.
pub fn is_ours(path: &Path) -> bool {
    let mut found = [0; LONGEST];
    let Ok(length) = lgetxattr(path, ATTRIBUTE, &mut found) else { return false };
    mark(path).is_some_and(|mark| found.get(..length) == Some(mark.as_bytes()))
}

/// What tells a file from every other one and from what it was before a write: its inode, when that was
/// made, its length and when it was last written to.
fn mark(path: &Path) -> Option<String> {
    let metadata = fs::symlink_metadata(path).ok().filter(fs::Metadata::is_file)?;
    // An inode's number comes again; when it was made does not.
    let born = metadata.created().ok()?.duration_since(UNIX_EPOCH).ok()?;
    let (inode, length) = (metadata.ino(), metadata.len());
    let (seconds, nanoseconds) = (metadata.mtime(), metadata.mtime_nsec());
    Some(format!("{inode} {} {length} {seconds}.{nanoseconds:09}", born.as_nanos()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file that is marked, on a file system that keeps attributes.
    fn marked() -> (tempfile::TempDir, std::path::PathBuf) {
        let folder = tempfile::tempdir_in("/var/tmp").unwrap();
        let path = folder.path().join("io.dat");
        fs::write(&path, "fathom's").unwrap();
        remember(&path);
        (folder, path)
    }

    #[test]
    fn what_was_created_is_known_again_until_somebody_writes_to_it() {
        let (_folder, path) = marked();
        assert!(is_ours(&path));
        // The same length, so that only the time of the write tells.
        let before = fs::metadata(&path).unwrap().modified().unwrap();
        while fs::metadata(&path).unwrap().modified().unwrap() == before {
            fs::write(&path, "somebody").unwrap();
        }
        assert!(!is_ours(&path));
        remember(&path);
        assert!(is_ours(&path));
    }

    #[test]
    fn a_copy_and_another_file_of_the_name_are_somebodys() {
        let (folder, path) = marked();
        let copy = folder.path().join("copy");
        let copied = std::process::Command::new("cp").arg("-a").args([&path, &copy]).status();
        assert!(copied.unwrap().success() && !is_ours(&copy));
        fs::rename(&copy, &path).unwrap();
        assert!(!is_ours(&path));
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        assert!(!is_ours(&link));
        assert!(!is_ours(&folder.path().join("none")));
    }
}
