//! Makes a stand-in for a device, and removes it when it is dropped. No stand-in is slower than the
//! compared programs, except the file on a disk.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use super::programs::output_of;

/// The part of /dev/zero that is addressed, in MiB.
const ZEROS_MIB: u32 = 1024;

/// The target of the I/Os.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StandIn {
    /// The kernel's shortest path: a read clears the buffer.
    Zero,
    /// A file whose pages are all in memory.
    PageCache,
    /// A file on the machine's disk.
    Ext4,
    /// A loop device over a file in memory: the block layer without a device.
    Loop,
    /// A file in memory.
    Tmpfs,
}

impl StandIn {
    pub fn name(self) -> &'static str {
        match self {
            Self::Zero => "/dev/zero, buffered",
            Self::PageCache => "page cache",
            Self::Ext4 => "ext4 file, direct",
            Self::Loop => "loop device over tmpfs, direct",
            Self::Tmpfs => "tmpfs file, direct",
        }
    }

    pub fn is_direct(self) -> bool {
        !matches!(self, Self::Zero | Self::PageCache)
    }

    /// The length that is addressed; `file_mib` is the length of files.
    pub fn length_mib(self, file_mib: u32) -> u32 {
        match self {
            Self::Zero => ZEROS_MIB,
            _ => file_mib,
        }
    }

    /// Makes the stand-in in a state in which two consecutive runs behave alike.
    pub fn make(self, scratch: &Scratch) -> Result<Made, String> {
        let mut made = Made { path: PathBuf::from("/dev/zero"), undo: Vec::new() };
        match self {
            Self::Zero => {}
            Self::PageCache => {
                made.fill(scratch, scratch.folder.join("cached"), &["conv=fsync"])?;
                read(&made.path, "iflag=fullblock")?;
            }
            Self::Ext4 => {
                let kind =
                    output_of("findmnt", &["-n", "-o", "FSTYPE", "-T", &text(&scratch.folder)?])?;
                if kind.trim() != "ext4" {
                    return Err(format!(
                        "{} is on {}, not ext4: name a folder on ext4 as FATHOM_TEST_FOLDER",
                        scratch.folder.display(),
                        kind.trim()
                    ));
                }
                let direct = ["oflag=direct", "conv=fsync"];
                made.fill(scratch, scratch.folder.join("direct"), &direct)?;
                // A virtual disk fetches a block from remote storage when it is read for the first
                // time. So the first reads of a region are hundreds of times slower than later
                // ones.
                for _ in 0..3 {
                    read(&made.path, "iflag=direct")?;
                }
            }
            Self::Loop => {
                made.mount_tmpfs(scratch)?;
                let file = text(&made.path)?;
                let device = output_of("losetup", &["--find", "--show", "--direct-io=on", &file])?;
                made.path = PathBuf::from(device.trim());
                made.undo.push(Undo::Detach(made.path.clone()));
            }
            Self::Tmpfs => made.mount_tmpfs(scratch)?,
        }
        if self.is_direct() {
            // A file in tmpfs accepts direct I/O since Linux 6.6.
            let from = format!("if={}", text(&made.path)?);
            output_of("dd", &[&from, "of=/dev/null", "bs=4096", "count=1", "iflag=direct"])
                .map_err(|why| format!("it takes no direct I/O: {why}"))?;
        }
        Ok(made)
    }
}

/// A stand-in that exists until it is dropped.
#[derive(Debug)]
pub struct Made {
    path: PathBuf,
    /// The steps to undo, in the order in which they were done.
    undo: Vec<Undo>,
}

#[derive(Debug)]
enum Undo {
    Remove(PathBuf),
    Unmount(PathBuf),
    Detach(PathBuf),
}

impl Made {
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Fills a file with bytes that no layer can compress.
    fn fill(&mut self, scratch: &Scratch, path: PathBuf, how: &[&str]) -> Result<(), String> {
        self.undo.push(Undo::Remove(path.clone()));
        let to = format!("of={}", text(&path)?);
        let count = format!("count={}", scratch.file_mib);
        let mut arguments = Vec::from(["if=/dev/urandom", "bs=1M", "iflag=fullblock"]);
        arguments.extend([to.as_str(), count.as_str()]);
        arguments.extend(how);
        output_of("dd", &arguments)?;
        self.path = path;
        Ok(())
    }

    /// Mounts a file system in memory and makes a file in it.
    fn mount_tmpfs(&mut self, scratch: &Scratch) -> Result<(), String> {
        let point = scratch.folder.join("tmpfs");
        fs::create_dir_all(&point).map_err(|error| format!("{}: {error}", point.display()))?;
        let size = format!("size={}m,mode=700", scratch.file_mib + 1);
        output_of("mount", &["-t", "tmpfs", "-o", &size, "fathom-peers", &text(&point)?])
            .map_err(|why| format!("{why} (it takes root)"))?;
        self.undo.push(Undo::Unmount(point.clone()));
        self.fill(scratch, point.join("file"), &[])
    }
}

impl Drop for Made {
    fn drop(&mut self) {
        for undo in self.undo.drain(..).rev() {
            let outcome = match &undo {
                Undo::Remove(path) => match fs::remove_file(path) {
                    Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                        Err(format!("{}: {error}", path.display()))
                    }
                    _ => Ok(String::new()),
                },
                Undo::Unmount(path) => output_of("umount", &[&path.to_string_lossy()]),
                Undo::Detach(path) => output_of("losetup", &["--detach", &path.to_string_lossy()]),
            };
            if let Err(why) = outcome {
                eprintln!("bench: left behind: {undo:?}: {why}");
            }
        }
    }
}

/// A folder of this process. It is removed when it is dropped.
#[derive(Debug)]
pub struct Scratch {
    folder: PathBuf,
    file_mib: u32,
}

impl Scratch {
    /// A folder below `parent` for files of `file_mib` MiB.
    pub fn new(parent: PathBuf, file_mib: u32) -> Result<Self, String> {
        // Several benches of one process may run at once, as in its tests.
        static MADE: AtomicU32 = AtomicU32::new(0);
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let folder = parent.join(format!("fathom-peers.{}.{number}", std::process::id()));
        fs::create_dir(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        Ok(Self { folder, file_mib })
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.folder) {
            eprintln!("bench: left behind: {}: {error}", self.folder.display());
        }
    }
}

fn read(path: &Path, how: &str) -> Result<(), String> {
    let from = format!("if={}", text(path)?);
    output_of("dd", &[from.as_str(), "of=/dev/null", "bs=1M", how]).map(|_| ())
}

fn text(path: &Path) -> Result<String, String> {
    match path.to_str() {
        Some(text) => Ok(text.to_owned()),
        None => Err(format!("{} is not UTF-8: choose another folder", path.display())),
    }
}
