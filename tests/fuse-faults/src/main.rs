//! A file system for the tests with one file, `data`. The file is slow, short, stalled, full or
//! broken as the command line says. It is real to the kernel and to fathom: errors come through the
//! same system calls as those of a failing disk.
//!
//! Data written to `data` is counted and dropped. Other files can be created, and are kept in
//! memory (`kept.rs`).

mod kept;

use std::ffi::OsStr;
use std::mem;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use fuser::{
    BsdFileFlags, Config, Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags,
    Generation, INodeNo, InitFlags, KernelConfig, LockOwner, MountOption, OpenFlags, ReplyAttr,
    ReplyCreate, ReplyData, ReplyDirectory, ReplyEmpty, ReplyEntry, ReplyOpen, ReplyStatfs,
    ReplyWrite, Request, TimeOrNow, WriteFlags,
};
use kept::Kept;

const USAGE: &str = "\
usage: fuse-faults MOUNTPOINT OPTION=NUMBER...

  size=BYTES         the size of the file (default 64 MiB)
  delay-us=N         every I/O takes N us
  eio-at=OFFSET      reads and writes that touch this byte fail with EIO
  eio-length=BYTES   the number of bytes that fail from there on (default 1)
  short-at=OFFSET    reads that begin here or behind bring half of the requested bytes
  empty-at=OFFSET    reads that begin here or behind bring nothing, like an unplugged disk's
  stall-at=N         from the Nth I/O on, one I/O stalls
  stall-ms=N         the length of a stall (default 1000)
  stall-every-ms=N   every N ms after the first I/O, all I/Os stall for stall-ms
  step-after-ms=N    from N ms after the first I/O on, every I/O takes step-us instead of delay-us
  step-us=N          the time of an I/O then (default 0)
  ramp-us=N          every I/O takes N us longer for each second since the first I/O
  serial=1           one I/O at a time: each waits for all before it
  full-after=BYTES   writes fail with ENOSPC after this many bytes
  hang-at=N          from the Nth I/O on none is ever answered
  hang-all-at=N      from the Nth I/O on nothing at all is ever answered; 0: nothing of the file is
  hang-open=N        from the Nth open on none is ever answered
  hang-fsync=1       no fsync is ever answered
  hang-close=1       no close is ever answered
  hang-stat=N        from the Nth time on that attributes are asked for, none are ever told
  hang-unlink=1      nothing that is removed is ever answered
  hang-kept-at=N     from the Nth write to a created file on none is ever answered
  armed=0            none of hang-close, hang-stat, hang-unlink and hang-kept-at counts or hangs
                     before somebody has looked for a file `arm`
  cached=1           the file can be mapped, and what was read stays in memory
  die-after=N        the server ends itself at the Nth I/O, without an answer
";

const DATA: INodeNo = INodeNo(2);
const TTL: Duration = Duration::from_secs(1);

/// The faults and their times; `u64::MAX` means never.
#[derive(Clone, Debug)]
struct Faults {
    size: u64,
    delay: Duration,
    eio_at: u64,
    eio_length: u64,
    short_at: u64,
    empty_at: u64,
    stall_at: u64,
    stall: Duration,
    stall_every: Duration,
    step_after: Duration,
    step: Duration,
    ramp: Duration,
    serial: bool,
    full_after: u64,
    hang_at: u64,
    hang_all_at: u64,
    hang_open: u64,
    hang_fsync: bool,
    hang_close: bool,
    hang_stat: u64,
    hang_unlink: bool,
    hang_kept_at: u64,
    armed: bool,
    cached: bool,
    die_after: u64,
}

impl Default for Faults {
    fn default() -> Self {
        Self {
            size: 64 << 20,
            delay: Duration::ZERO,
            eio_at: u64::MAX,
            eio_length: 1,
            short_at: u64::MAX,
            empty_at: u64::MAX,
            stall_at: u64::MAX,
            stall: Duration::from_secs(1),
            stall_every: Duration::MAX,
            step_after: Duration::MAX,
            step: Duration::ZERO,
            ramp: Duration::ZERO,
            serial: false,
            full_after: u64::MAX,
            hang_at: u64::MAX,
            hang_all_at: u64::MAX,
            hang_open: u64::MAX,
            hang_fsync: false,
            hang_close: false,
            hang_stat: u64::MAX,
            hang_unlink: false,
            hang_kept_at: u64::MAX,
            armed: true,
            cached: false,
            die_after: u64::MAX,
        }
    }
}

impl Faults {
    fn parse(options: &[String]) -> Result<Self, String> {
        let mut faults = Self::default();
        for option in options {
            let (name, value) = option.split_once('=').ok_or(format!("{option}: no number"))?;
            let value: u64 = value.parse().map_err(|error| format!("{option}: {error}"))?;
            match name {
                "size" => faults.size = value,
                "delay-us" => faults.delay = Duration::from_micros(value),
                "eio-at" => faults.eio_at = value,
                "eio-length" => faults.eio_length = value,
                "short-at" => faults.short_at = value,
                "empty-at" => faults.empty_at = value,
                "stall-at" => faults.stall_at = value,
                "stall-ms" => faults.stall = Duration::from_millis(value),
                "stall-every-ms" => faults.stall_every = Duration::from_millis(value),
                "step-after-ms" => faults.step_after = Duration::from_millis(value),
                "step-us" => faults.step = Duration::from_micros(value),
                "ramp-us" => faults.ramp = Duration::from_micros(value),
                "serial" => faults.serial = value == 1,
                "full-after" => faults.full_after = value,
                "hang-at" => faults.hang_at = value,
                "hang-all-at" => faults.hang_all_at = value,
                "hang-open" => faults.hang_open = value,
                "hang-fsync" => faults.hang_fsync = value == 1,
                "hang-close" => faults.hang_close = value == 1,
                "hang-stat" => faults.hang_stat = value,
                "hang-unlink" => faults.hang_unlink = value == 1,
                "hang-kept-at" => faults.hang_kept_at = value,
                "armed" => faults.armed = value == 1,
                "cached" => faults.cached = value == 1,
                "die-after" => faults.die_after = value,
                _ => return Err(format!("{option}: no such option")),
            }
        }
        Ok(faults)
    }

    /// The delay of an I/O that begins at this time after the first one.
    fn delay_at(&self, since: Duration) -> Duration {
        let delay = if since < self.step_after { self.delay } else { self.step };
        let delay = delay + self.ramp.mul_f64(since.as_secs_f64());
        // During a stall: until its end.
        let behind = match self.stall_every {
            Duration::ZERO | Duration::MAX => Duration::MAX,
            _ if since < self.stall_every => Duration::MAX,
            every => Duration::from_secs_f64(since.as_secs_f64() % every.as_secs_f64()),
        };
        delay.max(self.stall.saturating_sub(behind))
    }

    /// Whether an I/O touches the broken part.
    fn breaks(&self, offset: u64, length: u64) -> bool {
        offset < self.eio_at.saturating_add(self.eio_length)
            && self.eio_at < offset.saturating_add(length)
    }
}

struct Faulty {
    faults: Faults,
    hangs: AtomicBool,
    armed: AtomicBool,
    ios: AtomicU64,
    opens: AtomicU64,
    /// The number of requests for attributes.
    stats: AtomicU64,
    /// The number of writes to created files.
    kept_writes: AtomicU64,
    written: AtomicU64,
    kept: Kept,
    first: OnceLock<Instant>,
    /// The time at which the previous I/O is answered, if I/Os are served one at a time.
    free: Mutex<Option<Instant>>,
}

impl Faulty {
    /// Counts an I/O and returns the delay of its answer. `None` if it waits forever.
    fn begin(&self) -> Option<Duration> {
        let io = self.ios.fetch_add(1, Ordering::Relaxed) + 1;
        if io >= self.faults.hang_at.min(self.faults.hang_all_at) {
            self.say_that_it_hangs();
            return None;
        }
        if io >= self.faults.die_after {
            // Aborts without destructors, so nothing is unmounted. A killed server looks like this.
            std::process::abort();
        }
        let now = Instant::now();
        let delay = match io == self.faults.stall_at {
            true => self.faults.stall,
            false => self.faults.delay_at(now.duration_since(*self.first.get_or_init(|| now))),
        };
        if !self.faults.serial {
            return Some(delay);
        }
        let mut free = self.free.lock().expect("no thread panics with it");
        let end = free.map_or(now, |free| free.max(now)) + delay;
        *free = Some(end);
        Some(end.duration_since(now))
    }

    /// Whether the whole server has stopped answering.
    fn is_gone(&self) -> bool {
        let gone = self.ios.load(Ordering::Relaxed) >= self.faults.hang_all_at;
        if gone {
            self.say_that_it_hangs();
        }
        gone
    }

    /// Prints this once, for a test that waits for it.
    fn say_that_it_hangs(&self) {
        if !self.hangs.swap(true, Ordering::Relaxed) {
            eprintln!("fuse-faults: hangs");
        }
    }

    fn attributes(&self, node: INodeNo) -> Option<FileAttr> {
        let (kind, size, perm) = match node {
            INodeNo::ROOT => (FileType::Directory, 0, 0o755),
            DATA => (FileType::RegularFile, self.faults.size, 0o666),
            _ => (FileType::RegularFile, self.kept.length(node)?, 0o666),
        };
        Some(FileAttr {
            ino: node,
            size,
            // All blocks are allocated, so that the file does not look sparse.
            blocks: size.div_ceil(512),
            atime: UNIX_EPOCH,
            mtime: UNIX_EPOCH,
            ctime: UNIX_EPOCH,
            crtime: UNIX_EPOCH,
            kind,
            perm,
            nlink: 1,
            uid: 0,
            gid: 0,
            rdev: 0,
            blksize: 4096,
            flags: 0,
        })
    }

    /// Answers a request for attributes, or never answers.
    fn tell_attributes(&self, node: INodeNo, reply: ReplyAttr) {
        let counts = node != INodeNo::ROOT && self.is_armed();
        let asked = self.stats.fetch_add(u64::from(counts), Ordering::Relaxed) + 1;
        let hangs = counts && self.faults.hang_stat <= asked;
        if hangs {
            self.say_that_it_hangs();
        }
        if hangs || node != INodeNo::ROOT && self.is_gone() {
            return mem::forget(reply);
        }
        match self.attributes(node) {
            Some(attributes) => reply.attr(&self.ttl(), &attributes),
            None => reply.error(Errno::ENOENT),
        }
    }

    fn is_armed(&self) -> bool {
        self.armed.load(Ordering::Relaxed)
    }

    /// How long the kernel may cache attributes: not at all if requests for them hang.
    fn ttl(&self) -> Duration {
        if self.faults.hang_stat == u64::MAX { TTL } else { Duration::ZERO }
    }

    /// The flags with which every file is opened.
    fn flags(&self) -> FopenFlags {
        match self.faults.cached {
            true => FopenFlags::empty(),
            false => FopenFlags::FOPEN_DIRECT_IO | FopenFlags::FOPEN_PARALLEL_DIRECT_WRITES,
        }
    }

    /// Handles a write to a created file.
    fn keep(&self, node: INodeNo, (offset, data): (u64, &[u8]), reply: ReplyWrite) {
        let writes = self.kept_writes.fetch_add(u64::from(self.is_armed()), Ordering::Relaxed) + 1;
        if self.is_armed() && self.faults.hang_kept_at <= writes {
            self.say_that_it_hangs();
            return mem::forget(reply);
        }
        match self.kept.write(node, offset, data) {
            true => reply.written(data.len() as u32),
            false => reply.error(Errno::ENOENT),
        }
    }
}

/// Answers at once or from a separate thread, so that a slow I/O delays no other.
fn answer_after(delay: Duration, answer: impl FnOnce() + Send + 'static) {
    if delay.is_zero() {
        answer();
    } else {
        thread::spawn(move || {
            thread::sleep(delay);
            answer();
        });
    }
}

impl Filesystem for Faulty {
    fn init(&mut self, _: &Request, config: &mut KernelConfig) -> std::io::Result<()> {
        // Without this flag the kernel sends the I/Os of one file one after another. An older
        // kernel does not know it, which changes the speed of a test but not its outcome.
        let _ = config.add_capabilities(InitFlags::FUSE_ASYNC_DIO);
        Ok(())
    }

    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        if self.is_gone() {
            return mem::forget(reply);
        }
        if name == "arm" {
            self.armed.store(true, Ordering::Relaxed);
        }
        let node = match name.to_str() {
            _ if parent != INodeNo::ROOT => None,
            Some("data") => Some(DATA),
            _ => self.kept.find(name),
        };
        match node.and_then(|node| self.attributes(node)) {
            Some(found) => reply.entry(&self.ttl(), &found, Generation(0)),
            None => reply.error(Errno::ENOENT),
        }
    }

    fn create(
        &self,
        _: &Request,
        parent: INodeNo,
        name: &OsStr,
        _: u32,
        _: u32,
        _: i32,
        reply: ReplyCreate,
    ) {
        if self.is_gone() {
            return mem::forget(reply);
        }
        let node = if parent == INodeNo::ROOT { self.kept.create(name) } else { None };
        match node.and_then(|node| self.attributes(node)) {
            Some(new) => {
                reply.created(&self.ttl(), &new, Generation(0), FileHandle(0), self.flags());
            }
            None => reply.error(Errno::EEXIST),
        }
    }

    fn unlink(&self, _: &Request, _: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        if self.faults.hang_unlink && self.is_armed() || self.is_gone() {
            self.say_that_it_hangs();
            return mem::forget(reply);
        }
        match self.kept.remove(name) {
            true => reply.ok(),
            false => reply.error(Errno::ENOENT),
        }
    }

    fn setattr(
        &self,
        _: &Request,
        node: INodeNo,
        _: Option<u32>,
        _: Option<u32>,
        _: Option<u32>,
        size: Option<u64>,
        _: Option<TimeOrNow>,
        _: Option<TimeOrNow>,
        _: Option<SystemTime>,
        _: Option<FileHandle>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        if let Some(size) = size {
            self.kept.truncate(node, size);
        }
        self.tell_attributes(node, reply);
    }

    fn getattr(&self, _: &Request, node: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        self.tell_attributes(node, reply);
    }

    fn open(&self, _: &Request, _: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        if self.is_gone() {
            return mem::forget(reply);
        }
        if self.opens.fetch_add(1, Ordering::Relaxed) + 1 >= self.faults.hang_open {
            self.say_that_it_hangs();
            return mem::forget(reply);
        }
        reply.opened(FileHandle(0), self.flags());
    }

    fn read(
        &self,
        _: &Request,
        node: INodeNo,
        _: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        if node != DATA {
            return reply.data(&self.kept.read(node, offset, size));
        }
        // Dropping a reply would send an error.
        let Some(delay) = self.begin() else { return mem::forget(reply) };
        let asked = u64::from(size).min(self.faults.size.saturating_sub(offset));
        let broken = self.faults.breaks(offset, asked);
        let brought = match offset {
            offset if self.faults.empty_at <= offset => 0,
            offset if self.faults.short_at <= offset => asked / 2,
            _ => asked,
        };
        answer_after(delay, move || {
            if broken {
                reply.error(Errno::EIO);
            } else {
                reply.data(&vec![0xA5; usize::try_from(brought).unwrap_or(0)]);
            }
        });
    }

    fn write(
        &self,
        _: &Request,
        node: INodeNo,
        _: FileHandle,
        offset: u64,
        data: &[u8],
        _: WriteFlags,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        if node != DATA {
            return self.keep(node, (offset, data), reply);
        }
        let Some(delay) = self.begin() else { return mem::forget(reply) };
        let length = u32::try_from(data.len()).unwrap_or(u32::MAX);
        let broken = self.faults.breaks(offset, u64::from(length));
        let before = self.written.fetch_add(u64::from(length), Ordering::Relaxed);
        let full = before.saturating_add(u64::from(length)) > self.faults.full_after;
        answer_after(delay, move || match (broken, full) {
            (true, _) => reply.error(Errno::EIO),
            (_, true) => reply.error(Errno::ENOSPC),
            _ => reply.written(length),
        });
    }

    fn fsync(&self, _: &Request, _: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        if self.faults.hang_fsync || self.is_gone() {
            self.say_that_it_hangs();
            return mem::forget(reply);
        }
        reply.ok();
    }

    fn flush(&self, _: &Request, _: INodeNo, _: FileHandle, _: LockOwner, reply: ReplyEmpty) {
        let hangs = self.faults.hang_close && self.is_armed();
        if hangs {
            self.say_that_it_hangs();
        }
        if hangs || self.is_gone() {
            return mem::forget(reply);
        }
        reply.ok();
    }

    fn statfs(&self, _: &Request, _: INodeNo, reply: ReplyStatfs) {
        reply.statfs(1 << 20, 1 << 19, 1 << 19, 2, 0, 4096, 255, 4096);
    }

    fn readdir(
        &self,
        _: &Request,
        node: INodeNo,
        _: FileHandle,
        offset: u64,
        mut reply: ReplyDirectory,
    ) {
        if node != INodeNo::ROOT {
            return reply.error(Errno::ENOTDIR);
        }
        let entries = [
            (INodeNo::ROOT, FileType::Directory, "."),
            (INodeNo::ROOT, FileType::Directory, ".."),
            (DATA, FileType::RegularFile, "data"),
        ];
        for (next, (node, kind, name)) in (1..).zip(entries) {
            if next > offset && reply.add(node, next, kind, name) {
                break;
            }
        }
        reply.ok();
    }
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (mountpoint, options) = match arguments.split_first() {
        Some((mountpoint, options)) if !mountpoint.starts_with('-') => (mountpoint, options),
        _ => {
            eprint!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    let faults = match Faults::parse(options) {
        Ok(faults) => faults,
        Err(message) => {
            eprintln!("fuse-faults: {message}");
            return ExitCode::from(2);
        }
    };
    let faulty = Faulty {
        hangs: AtomicBool::new(false),
        armed: AtomicBool::new(faults.armed),
        faults,
        ios: AtomicU64::new(0),
        opens: AtomicU64::new(0),
        stats: AtomicU64::new(0),
        kept_writes: AtomicU64::new(0),
        kept: Kept::default(),
        written: AtomicU64::new(0),
        first: OnceLock::new(),
        free: Mutex::new(None),
    };
    let mut config = Config::default();
    config.mount_options =
        vec![MountOption::FSName("fuse-faults".to_owned()), MountOption::DefaultPermissions];
    match fuser::mount(faulty, mountpoint, &config) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("fuse-faults: {mountpoint}: {error}");
            ExitCode::FAILURE
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_numbers_with_known_names() {
        let parse = |options: &[&str]| {
            Faults::parse(&options.iter().map(|&option| option.to_owned()).collect::<Vec<_>>())
        };
        let faults = parse(&["eio-at=8192", "eio-length=4096", "delay-us=5"]).expect("valid");
        assert!(faults.breaks(8192, 1) && faults.breaks(4096, 4097) && faults.breaks(12287, 1));
        assert!(!faults.breaks(4096, 4096) && !faults.breaks(12288, 4096));
        assert_eq!(faults.delay, Duration::from_micros(5));
        assert!(!parse(&[]).expect("valid").breaks(0, u64::MAX - 1));
        assert!(parse(&["eio-at"]).is_err() && parse(&["eio-at=x"]).is_err());
        assert!(parse(&["nonsense=1"]).is_err());
    }

    #[test]
    fn a_delay_changes_when_it_was_told_to() {
        let ms = Duration::from_millis;
        let step = Faults { delay: ms(1), step_after: ms(500), step: ms(7), ..Faults::default() };
        assert_eq!([step.delay_at(ms(499)), step.delay_at(ms(500))], [ms(1), ms(7)]);
        let ramp = Faults { delay: ms(1), ramp: ms(4), ..Faults::default() };
        assert_eq!([ramp.delay_at(ms(0)), ramp.delay_at(ms(1500))], [ms(1), ms(7)]);
        let stalls = Faults { stall_every: ms(1000), stall: ms(100), ..Faults::default() };
        let at = |since| stalls.delay_at(ms(since)).as_millis();
        assert_eq!([at(0), at(999), at(1000), at(1150), at(2000)], [0, 0, 100, 0, 100]);
    }
}
