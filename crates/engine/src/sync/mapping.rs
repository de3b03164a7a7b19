//! A target as memory: I/Os are copies from and to its mapping, which is backed by the page cache.
//!
//! An error of a system call is a signal here: a page that cannot be read, or that lies beyond the
//! end of a file that another program has truncated, raises SIGBUS in the copy. A handler then puts
//! an empty page in its place, so that the copy can finish, and records this; the I/O counts as
//! failed, and the target is mapped there again. A copy without such a page has no cost.
//!
//! Between the two the page is empty for all slots of the worker: one that copies from or to the
//! same page at that moment does not see that it is lost.

#![expect(unsafe_code, reason = "mappings and signal handlers have no safe interface")]

use std::fs::File;
use std::io;
use std::ptr::NonNull;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering, compiler_fence};

use fathom_core::spec::Hint;
use rustix::fs::FileType;
use rustix::io::Errno;
use rustix::mm::{Advice, MapFlags, MsyncFlags, ProtFlags, madvise, mmap, msync, munmap};

/// A target that is mapped from its start.
pub(super) struct Mapping {
    start: NonNull<u8>,
    length: usize,
    file: File,
    protection: ProtFlags,
    /// Set when the target could not be mapped again at a lost page.
    broken: AtomicBool,
}

// SAFETY: the mapping stays in place until it is dropped, and is accessed by copies alone.
unsafe impl Send for Mapping {}
// SAFETY: as above. Copies of several threads may meet: the result is then a mixture, as with
// writes of several processes, and no code relies on the data.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps this many bytes of a target.
    ///
    /// # Errors
    ///
    /// When the target, or the kernel, does not support this mapping.
    pub(super) fn new(
        file: &File,
        length: u64,
        writes: bool,
        hint: Option<Hint>,
    ) -> io::Result<Self> {
        watch()?;
        let length = usize::try_from(length).map_err(|_| Errno::NOMEM)?;
        let protection = match writes {
            true => ProtFlags::READ | ProtFlags::WRITE,
            false => ProtFlags::READ,
        };
        let file = file.try_clone()?;
        // SAFETY: a new mapping at an address that the kernel chooses touches no other memory.
        let start =
            unsafe { mmap(std::ptr::null_mut(), length, protection, MapFlags::SHARED, &file, 0) }?;
        let start = NonNull::new(start.cast::<u8>()).ok_or(Errno::NOMEM)?;
        let mapping = Self { start, length, file, protection, broken: AtomicBool::new(false) };
        let advice = match hint {
            Some(Hint::Sequential) => Advice::Sequential,
            Some(Hint::Random) => Advice::Random,
            _ => Advice::Normal,
        };
        // SAFETY: the mapping that was just made.
        unsafe { madvise(start.as_ptr().cast(), length, advice) }?;
        Ok(mapping)
    }

    /// Copies the target's data there into the buffer. Returns the bytes that moved, or a negative
    /// errno.
    #[inline]
    pub(super) fn read(&self, offset: u64, buffer: &mut [u8]) -> i32 {
        let length = buffer.len();
        self.copy(offset, length, |at| {
            // SAFETY: `copy` ensures that this many bytes are mapped there, and they are not the
            // buffer's.
            unsafe { std::ptr::copy_nonoverlapping(at, buffer.as_mut_ptr(), length) }
        })
    }

    /// Copies the data to there, and waits until it is durable if requested. Returns the bytes that
    /// moved, or a negative errno.
    #[inline]
    pub(super) fn write(&self, offset: u64, data: &[u8], flushes: bool) -> i32 {
        let moved = self.copy(offset, data.len(), |at| {
            // SAFETY: as for reading, and the mapping is writable: without writes this is not
            // called.
            unsafe { std::ptr::copy_nonoverlapping(data.as_ptr(), at, data.len()) }
        });
        match flushes && moved == data.len() as i32 {
            true => self.flush(offset as usize, data.len()).map_or_else(|errno| -errno, |()| moved),
            false => moved,
        }
    }

    #[inline]
    fn copy(&self, offset: u64, length: usize, act: impl FnOnce(*mut u8)) -> i32 {
        let offset = offset as usize;
        assert!(offset <= self.length && length <= self.length - offset);
        if self.broken.load(Ordering::Relaxed) {
            return -libc::EIO;
        }
        // SAFETY: it lies within the mapping.
        let at = unsafe { self.start.as_ptr().add(offset) };
        match WATCHED.with(|watched| watched.during(at, length, || act(at))) {
            true => length as i32,
            false => self.fail(offset, length),
        }
    }

    /// A page of the copy was lost: maps the target there again, and returns the cause as far as it
    /// can be seen.
    #[cold]
    fn fail(&self, offset: usize, length: usize) -> i32 {
        let page = PAGE.load(Ordering::Relaxed);
        let first = offset - offset % page;
        // SAFETY: whole pages of this mapping, from one that lies in it.
        let mapped = unsafe {
            mmap(
                self.start.as_ptr().add(first).cast(),
                offset + length - first,
                self.protection,
                MapFlags::SHARED | MapFlags::FIXED,
                &self.file,
                first as u64,
            )
        };
        if mapped.is_err() {
            // Data that is copied to there from now on would be lost.
            self.broken.store(true, Ordering::Relaxed);
        }
        let end = rustix::fs::fstat(&self.file).ok().and_then(|facts| {
            let is_file = FileType::from_raw_mode(facts.st_mode).is_file();
            is_file.then_some(facts.st_size as usize)
        });
        match end {
            // Like the answer of a system call beyond the end of a file.
            Some(end) if end < offset + length => end.saturating_sub(offset) as i32,
            _ => -libc::EIO,
        }
    }

    /// Waits until the data written there is durable; otherwise returns the errno.
    fn flush(&self, offset: usize, length: usize) -> Result<(), i32> {
        let page = PAGE.load(Ordering::Relaxed);
        let first = offset - offset % page;
        // SAFETY: whole pages of this mapping, from one that lies in it.
        let done = unsafe {
            let at = self.start.as_ptr().add(first).cast();
            msync(at, offset + length - first, MsyncFlags::SYNC)
        };
        done.map_err(Errno::raw_os_error)
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the whole mapping, which no copy uses any more: all of them borrow it.
        let _ = unsafe { munmap(self.start.as_ptr().cast(), self.length) };
    }
}

/// Finds out whether a target can be mapped.
///
/// # Errors
///
/// With the kernel's answer, when it cannot.
pub(crate) fn probe(file: &File, writes: bool) -> io::Result<()> {
    Mapping::new(file, rustix::param::page_size() as u64, writes, None).map(drop)
}

/// The memory that a thread copies from or to, for the handler, which may interrupt the copy.
struct Watched {
    start: AtomicUsize,
    end: AtomicUsize,
    /// Whether a page of it was lost.
    lost: AtomicBool,
}

thread_local! {
    static WATCHED: Watched = const {
        Watched { start: AtomicUsize::new(0), end: AtomicUsize::new(0), lost: AtomicBool::new(false) }
    };
}

impl Watched {
    /// Runs an operation on this memory. Returns whether all of it was available.
    #[inline]
    fn during(&self, at: *mut u8, length: usize, act: impl FnOnce()) -> bool {
        self.start.store(at as usize, Ordering::Relaxed);
        self.end.store(at as usize + length, Ordering::Relaxed);
        // The handler runs on this thread: it is enough that the compiler keeps the order.
        compiler_fence(Ordering::SeqCst);
        act();
        compiler_fence(Ordering::SeqCst);
        self.end.store(0, Ordering::Relaxed);
        !self.lost.swap(false, Ordering::Relaxed)
    }

    /// Whether this thread copies from or to there.
    fn holds(&self, at: usize) -> bool {
        let (start, end) = (self.start.load(Ordering::Relaxed), self.end.load(Ordering::Relaxed));
        // A fault is reported by its page, which may begin before the copy does.
        let page = PAGE.load(Ordering::Relaxed);
        start & !(page - 1) <= at && at < end
    }
}

/// The size of a page.
static PAGE: AtomicUsize = AtomicUsize::new(4096);

/// The previous disposition of SIGBUS.
static BEFORE: OnceLock<libc::sigaction> = OnceLock::new();

/// Installs the handler, once for the process.
fn watch() -> io::Result<()> {
    static INSTALLED: OnceLock<Result<(), i32>> = OnceLock::new();
    let installed = INSTALLED.get_or_init(|| {
        PAGE.store(rustix::param::page_size(), Ordering::Relaxed);
        // SAFETY: all zeros are a valid sigaction, and the kernel reads and writes no more than
        // that.
        unsafe {
            let mut before: libc::sigaction = std::mem::zeroed();
            if libc::sigaction(libc::SIGBUS, std::ptr::null(), &raw mut before) != 0 {
                return Err(libc::EINVAL);
            }
            // Stored before the handler is installed, which may need it at once.
            let _ = BEFORE.set(before);
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = on_bus_error as *const () as usize;
            action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
            match libc::sigaction(libc::SIGBUS, &raw const action, std::ptr::null_mut()) {
                0 => Ok(()),
                _ => Err(libc::EINVAL),
            }
        }
    });
    installed.map_err(io::Error::from_raw_os_error)
}

/// A page was lost. During a copy an empty one takes its place; anywhere else the previous
/// disposition is restored: the instruction runs again, and the previous handler gets the signal.
extern "C" fn on_bus_error(signal: i32, info: *mut libc::siginfo_t, _context: *mut libc::c_void) {
    // SAFETY: the kernel hands over a valid description of the signal.
    let at = unsafe { (*info).si_addr() } as usize;
    let replaced = WATCHED.with(|watched| {
        if !watched.holds(at) {
            return false;
        }
        let page = PAGE.load(Ordering::Relaxed);
        // SAFETY: the page belongs to the mapping that is copied from or to. Only a plain system
        // call happens here, and no code reads errno after a copy.
        let put = unsafe {
            libc::mmap(
                (at & !(page - 1)) as *mut libc::c_void,
                page,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED,
                -1,
                0,
            )
        };
        watched.lost.store(true, Ordering::Relaxed);
        put != libc::MAP_FAILED
    });
    if replaced {
        return;
    }
    // SAFETY: the disposition from before this handler.
    unsafe {
        match BEFORE.get() {
            Some(before) => libc::sigaction(signal, before, std::ptr::null_mut()),
            None => libc::signal(signal, libc::SIG_DFL) as i32,
        };
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::FileExt;

    use super::*;

    fn file(length: u64) -> File {
        let file = tempfile::tempfile().unwrap();
        file.set_len(length).unwrap();
        file
    }

    #[test]
    fn what_is_copied_is_in_the_file() {
        let file = file(1 << 20);
        let mapping = Mapping::new(&file, 1 << 20, true, Some(Hint::Random)).unwrap();
        assert_eq!(mapping.write(5000, &[7; 9000], true), 9000);
        let mut read = [0; 9000];
        file.read_exact_at(&mut read, 5000).unwrap();
        assert_eq!(read, [7; 9000]);
        file.write_all_at(&[3; 10], 100).unwrap();
        let mut read = [0; 10];
        assert_eq!(mapping.read(100, &mut read), 10);
        assert_eq!(read, [3; 10]);
    }

    #[test]
    fn a_file_that_is_cut_off_gives_short_ios_and_is_whole_again_when_it_grows() {
        let file = file(64 << 10);
        let mapping = Mapping::new(&file, 64 << 10, true, None).unwrap();
        let mut buffer = [9; 16 << 10];
        file.set_len(20 << 10).unwrap();
        // Only the first 4 KiB of this block exist.
        assert_eq!(mapping.read(16 << 10, &mut buffer), 4 << 10);
        assert_eq!(mapping.write(16 << 10, &buffer, true), 4 << 10);
        assert_eq!(mapping.read(32 << 10, &mut buffer), 0);
        assert_eq!(mapping.write(32 << 10, &[1; 4096], false), 0);
        assert_eq!(mapping.read(0, &mut buffer), 16 << 10);
        file.set_len(64 << 10).unwrap();
        assert_eq!(mapping.write(32 << 10, &[5; 4096], true), 4096);
        let mut read = [0; 4096];
        file.read_exact_at(&mut read, 32 << 10).unwrap();
        assert_eq!(read, [5; 4096]);
    }

    #[test]
    fn threads_that_meet_such_pages_at_once_each_have_their_own_word() {
        let file = file(1 << 20);
        let mappings = [0; 4].map(|_| Mapping::new(&file, 1 << 20, false, None).unwrap());
        file.set_len(512 << 10).unwrap();
        std::thread::scope(|scope| {
            for (thread, mapping) in (0_u64..).zip(&mappings) {
                scope.spawn(move || {
                    let mut buffer = [0; 4096];
                    for round in 0..200 {
                        let block = (thread * 37 + round) % 256;
                        let whole = if block < 128 { 4096 } else { 0 };
                        assert_eq!(mapping.read(block * 4096, &mut buffer), whole);
                    }
                });
            }
        });
    }

    #[test]
    fn what_cannot_be_mapped_says_so() {
        let null = File::open("/dev/null").unwrap();
        assert_eq!(probe(&null, false).unwrap_err().raw_os_error(), Some(libc::ENODEV));
    }
}
