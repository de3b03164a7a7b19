//! The created files, in memory.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::sync::{Mutex, MutexGuard};

use fuser::INodeNo;

/// The inode number of the first such file. The root and `data` come before it.
const FIRST: u64 = 3;

/// All created files.
#[derive(Debug, Default)]
pub struct Kept {
    files: Mutex<Files>,
}

#[derive(Debug, Default)]
struct Files {
    names: BTreeMap<OsString, u64>,
    /// The contents, including those of removed files, which may still be open.
    contents: BTreeMap<u64, Vec<u8>>,
}

impl Kept {
    fn files(&self) -> MutexGuard<'_, Files> {
        self.files.lock().expect("no thread panics with it")
    }

    /// The file with this name.
    pub fn find(&self, name: &OsStr) -> Option<INodeNo> {
        self.files().names.get(name).copied().map(INodeNo)
    }

    /// Creates a file. `None` if the name exists already.
    pub fn create(&self, name: &OsStr) -> Option<INodeNo> {
        let mut files = self.files();
        if name == "data" || files.names.contains_key(name) {
            return None;
        }
        let node = FIRST + files.contents.len() as u64;
        files.names.insert(name.to_owned(), node);
        files.contents.insert(node, Vec::new());
        Some(INodeNo(node))
    }

    /// Removes a name; false if there is no such name.
    pub fn remove(&self, name: &OsStr) -> bool {
        self.files().names.remove(name).is_some()
    }

    /// The length of a file.
    pub fn length(&self, node: INodeNo) -> Option<u64> {
        self.files().contents.get(&node.0).map(|content| content.len() as u64)
    }

    /// Truncates a file, or extends it with zeros.
    pub fn truncate(&self, node: INodeNo, length: u64) {
        if let Some(content) = self.files().contents.get_mut(&node.0) {
            content.resize(usize::try_from(length).expect("in memory"), 0);
        }
    }

    /// A part of a file, up to its end.
    pub fn read(&self, node: INodeNo, offset: u64, length: u32) -> Vec<u8> {
        let files = self.files();
        let content = files.contents.get(&node.0).map_or(&[][..], Vec::as_slice);
        let begin = usize::try_from(offset).expect("in memory").min(content.len());
        let end = content.len().min(begin + length as usize);
        content[begin..end].to_vec()
    }

    /// Writes a part of a file; false if there is no such file.
    pub fn write(&self, node: INodeNo, offset: u64, data: &[u8]) -> bool {
        let mut files = self.files();
        let Some(content) = files.contents.get_mut(&node.0) else { return false };
        let begin = usize::try_from(offset).expect("in memory");
        if content.len() < begin + data.len() {
            content.resize(begin + data.len(), 0);
        }
        content[begin..begin + data.len()].copy_from_slice(data);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_can_be_read_until_its_name_and_its_readers_are_gone() {
        let kept = Kept::default();
        let node = kept.create(OsStr::new("a")).unwrap();
        assert_eq!(kept.create(OsStr::new("a")), None);
        assert!(kept.write(node, 2, b"xyz") && !kept.write(INodeNo(99), 0, b"x"));
        assert_eq!(kept.read(node, 1, 3), b"\0xy");
        kept.truncate(node, 3);
        assert_eq!((kept.length(node), kept.find(OsStr::new("a"))), (Some(3), Some(node)));
        assert!(kept.remove(OsStr::new("a")) && !kept.remove(OsStr::new("a")));
        assert_eq!(kept.read(node, 0, 9), b"\0\0x");
    }
}
