//! Loop devices for tests.

#![allow(dead_code, reason = "not every test needs all of it")]

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use fathom_core::facts::Target;
use fathom_engine::host;

/// A path as text.
pub fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// Undoes a step when the test ends, for whatever reason.
pub struct Undo(pub &'static str, pub Vec<String>);

impl Drop for Undo {
    fn drop(&mut self) {
        // A child that another test has just forked holds this program's files until it becomes the
        // program that it is to be, and on a busy machine that takes a while.
        for _ in 0..600 {
            let done = Command::new(self.0).args(&self.1).env("LC_ALL", "C").output();
            match done {
                Ok(done) if String::from_utf8_lossy(&done.stderr).contains("busy") => {
                    thread::sleep(Duration::from_millis(100));
                }
                _ => return,
            }
        }
    }
}

/// Held while the lowest free number is taken, and by a test that frees one to take it again.
pub static NUMBERS: Mutex<()> = Mutex::new(());

/// A loop device over its own file.
pub struct Loop {
    // The first field, so that the device is detached before its file is deleted. Files of other
    // tests may have the same size.
    _detach: Undo,
    /// The folder of the file.
    pub folder: tempfile::TempDir,
    /// The device's node.
    pub device: PathBuf,
}

impl Loop {
    /// A device of this size. Returns `None` and prints the reason if there can be no loop device.
    pub fn new(size: u64, arguments: &[&str]) -> Option<Self> {
        if !rustix::process::geteuid().is_root() {
            println!("skipped: loop devices need root");
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("disk");
        File::create(&file).unwrap().set_len(size).unwrap();
        let alone = NUMBERS.lock().unwrap_or_else(PoisonError::into_inner);
        let output =
            Command::new("losetup").args(["--find", "--show"]).args(arguments).arg(&file).output();
        drop(alone);
        let output = match output {
            Ok(output) if output.status.success() => output,
            other => {
                println!("skipped: no loop device: {other:?}");
                return None;
            }
        };
        let name = String::from_utf8(output.stdout).unwrap().trim().to_owned();
        let detach = Undo("losetup", Vec::from(["--detach".to_owned(), name.clone()]));
        Some(Self { folder, device: PathBuf::from(name), _detach: detach })
    }

    /// The device's name.
    pub fn name(&self) -> &str {
        text(&self.device)
    }

    /// The file that holds its data.
    pub fn file(&self) -> PathBuf {
        self.folder.path().join("disk")
    }

    /// The facts about it.
    pub fn look(&self) -> Target {
        host::target(&self.device).unwrap()
    }
}
