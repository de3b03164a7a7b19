//! How much of a file was ever written. Ranges that were never written read as zeros without
//! reaching the medium, so a measurement that reads them measures the file system alone.

use std::fs::File;

use fathom_core::Bytes;
use fathom_core::facts::Extents;
use rustix::fs::{SeekFrom, seek};

use super::fiemap;

/// The largest number of extents to examine: two seconds' worth. A file in more pieces counts as
/// unknown.
const MOST: u64 = 2_000_000;

/// The most ranges that are kept of one kind; for a file with more only the sums are known.
const RANGES_MAX: usize = 100_000;

/// Ranges in order, as long as there are not too many.
struct Ranges(Option<Vec<(u64, u64)>>);

impl Ranges {
    fn empty() -> Self {
        Self(Some(Vec::new()))
    }

    /// Adds a range behind the others.
    fn add(&mut self, from: u64, to: u64) {
        let Some(ranges) = self.0.as_mut().filter(|_| from < to) else { return };
        let full = ranges.len() == RANGES_MAX;
        match ranges.last_mut() {
            Some(last) if last.1 == from => last.1 = to,
            _ if full => self.0 = None,
            _ => ranges.push((from, to)),
        }
    }
}

/// The written parts of a file; none if its file system cannot report them.
pub(crate) fn extents(file: &File, size: u64, file_system: &str) -> Option<Extents> {
    match file_system {
        // These know no unwritten extents, and nor does FIEMAP, but they do know their holes.
        "tmpfs" | "zfs" => by_seeking(file, size),
        _ => by_map(file, size),
    }
}

fn by_map(file: &File, size: u64) -> Option<Extents> {
    let mut found = Extents::default();
    let (mut never, mut shared) = (Ranges::empty(), Ranges::empty());
    let mut at = 0;
    while found.count <= MOST {
        let batch = fiemap::extents(file, at).ok()?;
        let before = at;
        for extent in &batch {
            // The last extent reaches to the end of its block, beyond the end of the file; the
            // first one of a later batch may begin before where it was asked for.
            let end = extent.start.saturating_add(extent.length).min(size);
            let bytes = end.saturating_sub(extent.start.max(at));
            if bytes == 0 {
                continue;
            }
            found.count += 1;
            let from = extent.start.max(at);
            never.add(at, from);
            match extent.written {
                true => found.written.0 += bytes,
                false => found.unwritten.0 += bytes,
            }
            if !extent.written {
                never.add(from, end);
            }
            if extent.shared {
                found.shared.0 += bytes;
                shared.add(from, end);
            }
            at = end;
        }
        // Without progress, the rest was reserved beyond the end of the file.
        if at == before || size <= at || batch.last().is_none_or(|extent| extent.last) {
            never.add(at, size);
            found.holes = Bytes(size - found.written.0 - found.unwritten.0);
            (found.never_written, found.shared_at) = (never.0, shared.0);
            return Some(found);
        }
    }
    None
}

fn by_seeking(file: &File, size: u64) -> Option<Extents> {
    let mut found = Extents::default();
    let mut never = Ranges::empty();
    let mut at = 0;
    while at < size && found.count <= MOST {
        let start = match seek(file, SeekFrom::Data(at)) {
            Ok(start) => start.min(size),
            Err(rustix::io::Errno::NXIO) => size,
            Err(_) => return None,
        };
        never.add(at, start);
        if start == size {
            break;
        }
        let end = seek(file, SeekFrom::Hole(start)).ok()?.min(size);
        found.count += 1;
        found.written.0 += end - start;
        at = end;
    }
    (found.count <= MOST).then(|| {
        found.holes = Bytes(size - found.written.0);
        (found.never_written, found.shared_at) = (never.0, Some(Vec::new()));
        found
    })
}

#[cfg(test)]
mod tests {
    use std::io::{Seek, SeekFrom, Write};

    use rustix::fs::{FallocateFlags, fallocate};

    use super::*;

    const MIB: u64 = 1 << 20;

    fn written(folder: &std::path::Path) -> Option<(File, Extents)> {
        let mut file = tempfile::tempfile_in(folder).unwrap();
        file.set_len(8 * MIB).unwrap();
        let reserved = fallocate(&file, FallocateFlags::empty(), 4 * MIB, 2 * MIB);
        if let Err(cause) = reserved {
            println!("skipped: no fallocate in {}: {cause}", folder.display());
            return None;
        }
        file.seek(SeekFrom::Start(MIB)).unwrap();
        file.write_all(&Vec::from([7; MIB as usize])).unwrap();
        let kind = if folder == std::path::Path::new("/dev/shm") { "tmpfs" } else { "other" };
        let found = extents(&file, 8 * MIB, kind);
        if found.is_none() {
            println!("skipped: the file system of {} does not tell its extents", folder.display());
        }
        found.map(|found| (file, found))
    }

    #[test]
    fn written_reserved_and_missing_parts_of_a_file_are_told_apart() {
        let Some((file, found)) = written(&std::env::temp_dir()) else { return };
        assert_eq!(found.written.0, MIB, "{found:?}");
        assert_eq!(found.unwritten.0, 2 * MIB, "{found:?}");
        assert_eq!(found.holes.0, 5 * MIB, "{found:?}");
        assert!(2 <= found.count);
        let never = found.never_written.as_ref().unwrap();
        assert_eq!(*never, [(0, MIB), (2 * MIB, 8 * MIB)], "what is reserved beside what is not");
        assert_eq!((found.shared, found.shared_at.unwrap()), (Bytes(0), Vec::new()));
        // The requested size counts, not a whole number of blocks.
        let shorter = extents(&file, MIB + 100, "other").unwrap();
        assert_eq!((shorter.written.0, shorter.holes.0), (100, MIB));
    }

    #[test]
    fn a_file_in_many_pieces_is_read_in_several_batches() {
        let mut file = tempfile::tempfile().unwrap();
        const PIECES: u64 = 1300;
        for piece in 0..PIECES {
            file.seek(SeekFrom::Start(piece * 2 * 65536)).unwrap();
            file.write_all(&[1; 4096]).unwrap();
        }
        let size = PIECES * 2 * 65536;
        file.set_len(size).unwrap();
        let Some(found) = extents(&file, size, "other") else {
            println!("skipped: the file system of temporary files does not tell its extents");
            return;
        };
        assert_eq!(found.written.0 + found.unwritten.0 + found.holes.0, size);
        assert!(PIECES * 4096 <= found.written.0, "{found:?}");
        assert!(PIECES <= found.count, "{found:?}");
        // The batches fit together: nothing is counted twice, and nothing is missing.
        let never: u64 = found.never_written.unwrap().iter().map(|(from, to)| to - from).sum();
        assert_eq!(never, found.unwritten.0 + found.holes.0);
    }

    #[test]
    fn a_file_in_memory_tells_its_holes() {
        let shm = std::path::Path::new("/dev/shm");
        if rustix::fs::statfs(shm).map_or(true, |stat| stat.f_type != 0x0102_1994) {
            println!("skipped: /dev/shm is no tmpfs");
            return;
        }
        let mut file = tempfile::tempfile_in(shm).unwrap();
        file.set_len(4 * MIB).unwrap();
        file.seek(SeekFrom::Start(MIB)).unwrap();
        file.write_all(&Vec::from([7; MIB as usize])).unwrap();
        let found = extents(&file, 4 * MIB, "tmpfs").unwrap();
        assert_eq!((found.written.0, found.holes.0), (MIB, 3 * MIB));
        assert_eq!(found.never_written.unwrap(), [(0, MIB), (2 * MIB, 4 * MIB)]);
    }
}
