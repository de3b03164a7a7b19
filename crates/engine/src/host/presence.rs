//! Whether another fathom process is at the same targets, and whether they are still the ones that
//! were opened.
//!
//! Each run marks its targets with locks on two bytes that no file reaches: one means that it is
//! there, one that it writes. They are shared locks of the open file description, which do not
//! restrict other programs and vanish with the process; a request for an exclusive lock shows
//! whether another process has such a lock.
#![expect(unsafe_code, reason = "locks of open file descriptions have no safe wrapper")]

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use fathom_core::Bytes;
use fathom_core::facts::{Others, Seen, Target, TargetKind};

/// The place of the marks: below the largest offset, and far beyond any possible content.
const PRESENT: i64 = 0x7FFF_0FA7_0000_0000;
const WRITING: i64 = PRESENT + 1;

/// Targets that are marked at most: each takes an open file.
const MARKED_MAX: usize = 64;

/// The shortest time between two checks for other processes: a run may have thousands of short
/// intervals.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// The longest time for a check of the targets: the measurement does not wait for a target that
/// hangs.
const PATIENCE: Duration = Duration::from_secs(if cfg!(test) { 60 } else { 1 });

/// The open files by which other processes see this run, and through which it observes its targets.
/// A separate thread owns them, so that a target that hangs stops only that thread.
#[derive(Debug, Default)]
pub struct Presence {
    /// None if nothing is marked, and while a check hangs.
    watcher: Option<Watcher>,
    targets: usize,
    hangs: bool,
    looked: Option<Instant>,
}

/// The observations of targets, by their places.
type Sight = Vec<Option<Seen>>;

/// The thread that checks.
#[derive(Debug)]
struct Watcher {
    /// Whether a complete observation was requested, and not only a check for other processes.
    asks: Sender<bool>,
    sees: Receiver<Sight>,
}

#[derive(Debug)]
struct WatchedTarget {
    file: File,
    path: String,
    /// Whether locks show other processes.
    locked: bool,
    /// The processes that it has noticed so far.
    noticed: Others,
}

impl Presence {
    /// Marks targets; `use_of` says for a target's place whether it is used, and then whether it is
    /// written to.
    pub fn take(targets: &[Target], use_of: &dyn Fn(usize) -> Option<bool>) -> Self {
        let mark = |(place, target): (usize, &Target)| {
            let writes = use_of(place)?;
            let storage = matches!(target.kind, TargetKind::File | TargetKind::BlockDevice);
            (storage && place < MARKED_MAX).then(|| WatchedTarget::take(target, writes)).flatten()
        };
        let marks: Vec<Option<WatchedTarget>> = targets.iter().enumerate().map(mark).collect();
        let is_any = marks.iter().any(Option::is_some);
        // Without a thread the checks say that they cannot be made.
        let watcher = is_any.then(|| Watcher::start(marks).ok()).flatten();
        Self { watcher, targets: targets.len(), ..Self::default() }
    }

    /// Checks for other processes, so that those that come and go are noticed too. Costs a few
    /// calls a target, four times a second at most.
    pub fn look(&mut self) {
        if self.looked.is_none_or(|last| LOOK_EVERY <= last.elapsed()) {
            self.ask(false);
            self.looked = Some(Instant::now());
        }
    }

    /// The observation of the targets now, and the processes that were noticed there so far.
    pub fn seen(&mut self) -> Vec<Option<Seen>> {
        self.ask(true).unwrap_or_else(|| vec![None; self.targets])
    }

    /// Whether a check of a target hangs: then there are no further observations.
    pub fn hangs(&self) -> bool {
        self.hangs
    }

    fn ask(&mut self, all: bool) -> Option<Sight> {
        let watcher = self.watcher.as_ref()?;
        let sight = watcher.asks.send(all).ok().map(|()| watcher.sees.recv_timeout(PATIENCE));
        match sight {
            Some(Ok(sight)) => Some(sight),
            _ => {
                self.hangs = true;
                self.watcher = None;
                None
            }
        }
    }
}

impl Drop for Presence {
    /// Waits until the marks are gone: the next trial would take them for another process's.
    fn drop(&mut self) {
        if let Some(Watcher { asks, sees }) = self.watcher.take() {
            drop(asks);
            let _ = sees.recv_timeout(PATIENCE);
        }
    }
}

impl Watcher {
    fn start(mut marks: Vec<Option<WatchedTarget>>) -> io::Result<Self> {
        let (asks, asked) = channel();
        let (tells, sees) = channel();
        let work = move || {
            for all in asked {
                let look = |mark: &mut Option<WatchedTarget>| match (mark, all) {
                    (Some(mark), true) => mark.seen(),
                    (Some(mark), false) => {
                        mark.look();
                        None
                    }
                    (None, _) => None,
                };
                if tells.send(marks.iter_mut().map(look).collect()).is_err() {
                    break;
                }
            }
            // A receiver that waits for this end waits for the marks to be gone.
            drop(marks);
            drop(tells);
        };
        thread::Builder::new().name("fathom-sees".to_owned()).spawn(work)?;
        Ok(Self { asks, sees })
    }
}

impl WatchedTarget {
    /// None where the target cannot be read.
    fn take(target: &Target, writes: bool) -> Option<Self> {
        let flags = libc::O_CLOEXEC | libc::O_NONBLOCK | libc::O_NOFOLLOW;
        let file = OpenOptions::new().read(true).custom_flags(flags).open(&target.path).ok()?;
        // A lock on a server takes as long as the server likes.
        let local = match &target.file_system {
            Some(fs) => !target.layers.is_empty() || matches!(&*fs.kind, "tmpfs" | "ramfs"),
            None => true,
        };
        let locked =
            local && mark(&file, PRESENT).is_ok() && (!writes || mark(&file, WRITING).is_ok());
        Some(Self { file, path: target.path.clone(), locked, noticed: Others::default() })
    }

    fn look(&mut self) {
        let is_marked = |offset| self.locked && is_marked(&self.file, offset).unwrap_or(false);
        let (present, writing) = (is_marked(PRESENT), is_marked(WRITING));
        self.noticed.present |= present;
        self.noticed.writing |= writing;
    }

    fn seen(&mut self) -> Option<Seen> {
        self.look();
        let own = self.file.metadata().ok()?;
        let same = fs::metadata(&self.path).is_ok_and(|there| {
            // Another node of the same device is the same target.
            match own.file_type().is_block_device() {
                true => there.file_type().is_block_device() && there.rdev() == own.rdev(),
                false => (there.dev(), there.ino()) == (own.dev(), own.ino()),
            }
        });
        let modified = i128::from(own.mtime()) * 1_000_000_000 + i128::from(own.mtime_nsec());
        Some(Seen {
            replaced: !same,
            modified_ns: u64::try_from(modified).unwrap_or(0),
            size: Bytes(own.len()),
            others: self.locked.then_some(self.noticed),
        })
    }
}

fn lock_at(kind: i32, offset: i64) -> libc::flock {
    libc::flock {
        l_type: kind as libc::c_short,
        l_whence: libc::SEEK_SET as libc::c_short,
        l_start: offset,
        l_len: 1,
        l_pid: 0,
    }
}

/// Takes a shared lock on the byte at an offset.
fn mark(file: &File, offset: i64) -> io::Result<()> {
    let lock = lock_at(libc::F_RDLCK, offset);
    // SAFETY: the descriptor is open for as long as `file` lives, and the kernel only reads `lock`,
    // which lives until the call returns.
    match unsafe { libc::fcntl(file.as_raw_fd(), libc::F_OFD_SETLK, &raw const lock) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Whether another process has a lock on the byte at an offset.
fn is_marked(file: &File, offset: i64) -> io::Result<bool> {
    let mut lock = lock_at(libc::F_WRLCK, offset);
    // SAFETY: the descriptor is open for as long as `file` lives, and `lock`, into which the kernel
    // writes the owner of the lock, has no other borrower until the call returns.
    match unsafe { libc::fcntl(file.as_raw_fd(), libc::F_OFD_GETLK, &raw mut lock) } {
        0 => Ok(i32::from(lock.l_type) != libc::F_UNLCK),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn target(path: &std::path::Path) -> Target {
        Target { kind: TargetKind::File, ..Target::simulated(path.to_str().unwrap(), Bytes(8)) }
    }

    fn take(path: &std::path::Path, writes: bool) -> Presence {
        Presence::take(&[target(path)], &|_| Some(writes))
    }

    fn seen(presence: &mut Presence) -> Seen {
        presence.seen()[0].clone().unwrap()
    }

    #[test]
    fn two_runs_on_one_file_see_each_other_and_what_they_do() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("data");
        fs::write(&path, "12345678").unwrap();
        let others = |present, writing| Some(Others { present, writing });
        let mut reader = take(&path, false);
        assert_eq!(seen(&mut reader).others, others(false, false), "its own marks are its own");
        let mut other = take(&path, false);
        assert_eq!(seen(&mut other).others, others(true, false));
        drop(other);
        assert_eq!(seen(&mut reader).others, others(false, false), "nobody looked meanwhile");
        let mut writer = take(&path, true);
        assert_eq!(seen(&mut writer).others, others(true, false));
        reader.look();
        drop(writer);
        assert_eq!(seen(&mut reader).others, others(true, true), "who has gone was noticed");
        assert_eq!(seen(&mut take(&path, true)).others, others(true, false));
        // Other programs can still lock the file.
        let file = File::open(&path).unwrap();
        file.try_lock().unwrap();
    }

    #[test]
    fn a_file_that_is_replaced_or_written_meanwhile_is_seen() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("data");
        fs::write(&path, "12345678").unwrap();
        let mut presence = take(&path, false);
        let before = seen(&mut presence);
        assert!(!before.replaced);
        assert_eq!(
            seen(&mut presence).since(&before),
            Seen { others: before.others, ..Seen::default() }
        );
        OpenOptions::new().append(true).open(&path).unwrap().write_all(b"9").unwrap();
        let later = fs::FileTimes::new().set_modified(std::time::SystemTime::now());
        File::options().append(true).open(&path).unwrap().set_times(later).unwrap();
        let written = seen(&mut presence).since(&before);
        assert!(0 < written.modified_ns && written.size == Bytes(1), "{written:?}");
        fs::rename(&path, folder.path().join("old")).unwrap();
        assert!(seen(&mut presence).replaced, "there is nothing");
        fs::write(&path, "12345678").unwrap();
        assert!(seen(&mut presence).replaced, "there is another one");
        fs::rename(folder.path().join("old"), &path).unwrap();
        assert!(!seen(&mut presence).replaced);
    }

    #[test]
    fn what_is_not_used_or_cannot_be_read_is_not_marked() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("data");
        fs::write(&path, "12345678").unwrap();
        assert_eq!(Presence::take(&[target(&path)], &|_| None).seen(), [None]);
        assert_eq!(take(&folder.path().join("none"), false).seen(), [None]);
        assert_eq!(Presence::default().seen(), []);
    }
}
