//! Reads files that somebody else wrote, up to a limit: a name may lead to a device without an end,
//! to a pipe without a writer, or to a file with a tail of terabytes that takes no room on the
//! disk.

use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{FileTypeExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use fathom_core::Bytes;
use rustix::fs::OFlags;

use crate::error::plain;
use crate::hanging::{Role, patiently};
use crate::signals::Closing;

/// How long a pipe may be silent.
const PATIENCE: Duration = Duration::from_secs(5);
/// The time between two checks of a pipe.
const PAUSE: Duration = Duration::from_millis(10);

/// A file, read to the length that it had when it was opened, or a pipe, read to a limit.
#[derive(Debug)]
pub struct Foreign {
    path: PathBuf,
    file: Closing<File>,
    is_pipe: bool,
    /// Whether any bytes came.
    began: bool,
    left: u64,
    most: Bytes,
}

impl Foreign {
    /// Opens it. No more than `most` may come out of a pipe.
    ///
    /// # Errors
    ///
    /// When it cannot be opened, or is neither a file nor a pipe: the error gives its kind.
    pub fn open(path: &Path, most: Bytes) -> Result<Self, String> {
        let unreadable = |cause: io::Error| format!("it cannot be read ({})", plain(&cause));
        // Examined before it is opened: opening some devices already has an effect.
        let kind = patiently(path, Role::Input, || std::fs::metadata(path));
        let kind = kind.map_err(unreadable)?.file_type();
        let what = if kind.is_dir() {
            Some("a folder")
        } else if kind.is_socket() {
            Some("a socket")
        } else if !kind.is_file() && !kind.is_fifo() {
            Some("a device")
        } else {
            None
        };
        if let Some(what) = what {
            return Err(format!("it is {what}, and only files and pipes are read"));
        }
        // Otherwise a pipe without a writer would block forever.
        let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
        let mut options = OpenOptions::new();
        let options = options.read(true).custom_flags(flags.bits() as i32);
        let file = patiently(path, Role::Input, || options.open(path));
        let file = file.map_err(unreadable)?;
        let now = patiently(path, Role::Input, || file.metadata()).map_err(unreadable)?;
        let is_pipe = now.file_type().is_fifo();
        if !is_pipe && !now.is_file() {
            return Err("it has become another one while it was looked at".to_owned());
        }
        // The kernel's own files report a length of 0, and have content.
        let is_empty = || file.metadata().is_ok_and(|now| now.len() == 0);
        let says_so = || !matches!((&file).read(&mut [0]), Ok(0)) && is_empty();
        if !is_pipe && now.len() == 0 && patiently(path, Role::Input, says_so) {
            return Err("it reports no length, and only files and pipes can be read".to_owned());
        }
        let left = if is_pipe { most.0 } else { now.len() };
        let path = path.to_owned();
        Ok(Self { path, file: file.into(), is_pipe, began: false, left, most })
    }

    /// All of it.
    ///
    /// # Errors
    ///
    /// When it cannot be read, or is longer than the limit.
    pub fn read_all(mut self) -> Result<Vec<u8>, String> {
        let mut bytes = Vec::new();
        if self.most.0 < self.left {
            return Err(format!(
                "it has {}, and none has more than {}",
                Bytes(self.left),
                self.most
            ));
        }
        self.read_to_end(&mut bytes)
            .map_err(|cause| format!("it cannot be read ({})", plain(&cause)))?;
        Ok(bytes)
    }
}

impl Read for Foreign {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.left == 0 {
            return match self.is_pipe {
                // Data that is written to it from here on is left for the next time.
                false => Ok(0),
                true => Err(io::Error::other(format!("{} and more come out of it", self.most))),
            };
        }
        let room = buffer.len().min(usize::try_from(self.left).unwrap_or(usize::MAX));
        let since = Instant::now();
        loop {
            let mut file = &*self.file;
            let read = || file.read(&mut buffer[..room]);
            let length = match patiently(&self.path, Role::Input, read) {
                // Its writer may be late, or there is none.
                Ok(0) if self.is_pipe && !self.began && room > 0 => None,
                Err(cause) if self.is_pipe && cause.kind() == io::ErrorKind::WouldBlock => None,
                other => Some(other?),
            };
            if let Some(length) = length {
                self.began |= length > 0;
                self.left -= length as u64;
                return Ok(length);
            }
            if PATIENCE <= since.elapsed() {
                return Err(io::Error::other(format!(
                    "nothing came out of the pipe for {} s",
                    PATIENCE.as_secs()
                )));
            }
            std::thread::sleep(PAUSE);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_to_its_length_and_no_further_than_it_may_be() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        std::fs::write(&path, "1234").unwrap();
        assert_eq!(Foreign::open(&path, Bytes(4)).unwrap().read_all().unwrap(), b"1234");
        let why = Foreign::open(&path, Bytes(3)).unwrap().read_all().unwrap_err();
        assert!(why.contains("4 B") && why.contains("3 B"), "{why}");
        let mut open = Foreign::open(&path, Bytes(4)).unwrap();
        std::fs::write(&path, "123456").unwrap();
        let mut text = String::new();
        open.read_to_string(&mut text).unwrap();
        assert_eq!(text, "1234", "what was written since is left for the next time");
    }

    #[test]
    fn what_has_no_end_is_not_even_opened() {
        for path in ["/dev/zero", "/dev/null", "/"] {
            let why = Foreign::open(Path::new(path), Bytes(9)).unwrap_err();
            assert!(why.starts_with("it is a "), "{why}");
        }
        let why = Foreign::open(Path::new("/proc/self/maps"), Bytes(9)).unwrap_err();
        assert!(why.starts_with("it reports no length"), "{why}");
        assert!(Foreign::open(Path::new("/nowhere"), Bytes(9)).unwrap_err().contains("No such"));
    }

    #[test]
    fn a_pipe_is_read_to_its_limit() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pipe");
        assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
        for (most, whole) in [(100, true), (99, false)] {
            let own = path.clone();
            // The reader may stop before it has read everything.
            let writer = std::thread::spawn(move || drop(std::fs::write(own, [7; 99])));
            let read = Foreign::open(&path, Bytes(most)).unwrap().read_all();
            assert_eq!(read.is_ok(), whole, "{read:?}");
            writer.join().unwrap();
        }
    }
}
