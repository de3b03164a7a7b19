//! A target as memory: I/Os are copies from and to its mapping, which the page cache is behind.
//!
//! What a system call answers with an error is a signal here: a page that cannot be read, or that lies
//! behind the end of a file that somebody has cut off, raises SIGBUS in the copy. A handler then puts
//! an empty page in its place, so that the copy comes to its end, and leaves word; the I/O is counted
//! as failed, and the target is mapped there again. A copy that meets no such page costs nothing.
//!
//! Between the two the page is empty for all slots of the worker: one that copies from or to the same
//! page at that moment does not see that it is lost.

#![expect(unsafe_code, reason = "mappings and signal handlers have no safe interface")]

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::ptr::NonNull;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering, compiler_fence};

use fathom_core::spec::Hint;
use rustix::fs::FileType;
use rustix::io::Errno;

/// A target that is mapped from its start.
pub(super) struct Mapping {
    start: NonNull<u8>,
    length: usize,
    file: File,
    protection: i32,
    /// Set when the target could not be mapped again where a page was lost.
    broken: AtomicBool,
}

// SAFETY: the mapping stays where it is until it is dropped, and is reached by copies alone.
unsafe impl Send for Mapping {}
// SAFETY: as above. Copies of several threads may meet: what they leave is then any of it, as with
// writes of several processes, and nobody relies on what is read.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps so many bytes of a target.
    ///
    /// # Errors
    ///
    /// When the target, or the kernel, cannot be mapped so.
    pub(super) fn new(
        file: &File,
        length: u64,
        writes: bool,
        hint: Option<Hint>,
    ) -> io::Result<Self> {
        watch()?;
        let length = usize::try_from(length).map_err(|_| Errno::NOMEM)?;
        let protection = libc::PROT_READ | if writes { libc::PROT_WRITE } else { 0 };
        let file = file.try_clone()?;
        // SAFETY: a new mapping at an address that the kernel chooses touches no other memory.
        let start = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                length,
                protection,
                libc::MAP_SHARED,
                file.as_raw_fd(),
                0,
            )
        };
        let Some(start) = NonNull::new(start.cast::<u8>()).filter(|_| start != libc::MAP_FAILED)
        else {
            return Err(io::Error::last_os_error());
        };
        let mapping = Self { start, length, file, protection, broken: AtomicBool::new(false) };
        let advice = match hint {
            Some(Hint::Sequential) => libc::MADV_SEQUENTIAL,
            Some(Hint::Random) => libc::MADV_RANDOM,
            _ => libc::MADV_NORMAL,
        };
        // SAFETY: the mapping that was just made.
        match unsafe { libc::madvise(start.as_ptr().cast(), length, advice) } {
            0 => Ok(mapping),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Copies what the target holds there into the buffer. Gives the bytes that moved, or a negative
    /// errno.
    #[inline]
    pub(super) fn read(&self, offset: u64, buffer: &mut [u8]) -> i32 {
        let length = buffer.len();
        self.copy(offset, length, |at| {
            // SAFETY: `copy` sees to it that so many bytes are mapped there, and they are not the
            // buffer's.
            unsafe { std::ptr::copy_nonoverlapping(at, buffer.as_mut_ptr(), length) }
        })
    }

    /// Copies the data to there, and if asked waits until it is durable. Gives the bytes that moved,
    /// or a negative errno.
    #[inline]
    pub(super) fn write(&self, offset: u64, data: &[u8], flushes: bool) -> i32 {
        let moved = self.copy(offset, data.len(), |at| {
            // SAFETY: as for reading, and the mapping may be written to: who only reads has no writes.
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

    /// A page of the copy could not be had: maps the target there again, and says why as far as that
    /// can be seen.
    #[cold]
    fn fail(&self, offset: usize, length: usize) -> i32 {
        let page = PAGE.load(Ordering::Relaxed);
        let first = offset - offset % page;
        // SAFETY: whole pages of this mapping, from one that lies in it.
        let mapped = unsafe {
            libc::mmap(
                self.start.as_ptr().add(first).cast(),
                offset + length - first,
                self.protection,
                libc::MAP_SHARED | libc::MAP_FIXED,
                self.file.as_raw_fd(),
                first as libc::off_t,
            )
        };
        if mapped == libc::MAP_FAILED {
            // What is copied to there from now on would go nowhere.
            self.broken.store(true, Ordering::Relaxed);
        }
        let end = rustix::fs::fstat(&self.file).ok().and_then(|facts| {
            let is_file = FileType::from_raw_mode(facts.st_mode).is_file();
            is_file.then_some(facts.st_size as usize)
        });
        match end {
            // As a system call answers behind the end of a file.
            Some(end) if end < offset + length => end.saturating_sub(offset) as i32,
            _ => -libc::EIO,
        }
    }

    /// Waits until what was written there is durable; else gives the errno.
    fn flush(&self, offset: usize, length: usize) -> Result<(), i32> {
        let page = PAGE.load(Ordering::Relaxed);
        let first = offset - offset % page;
        // SAFETY: whole pages of this mapping, from one that lies in it.
        let result = unsafe {
            let at = self.start.as_ptr().add(first).cast();
            libc::msync(at, offset + length - first, libc::MS_SYNC)
        };
        match result {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO)),
        }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the whole mapping, which nobody copies from or to any more: all of them borrow it.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.length) };
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

/// The memory that a thread copies from or to, for the handler, which may come in the middle of it.
struct Watched {
    start: AtomicUsize,
    end: AtomicUsize,
    /// Whether a page of it could not be had.
    lost: AtomicBool,
}

thread_local! {
    static WATCHED: Watched = const {
        Watched { start: AtomicUsize::new(0), end: AtomicUsize::new(0), lost: AtomicBool::new(false) }
    };
}

impl Watched {
    /// Does something to this memory. Says whether all of it could be had.
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
        // A fault is told by its page, which may begin before the copy does.
        let page = PAGE.load(Ordering::Relaxed);
        start & !(page - 1) <= at && at < end
    }
}

/// The size of a page.
static PAGE: AtomicUsize = AtomicUsize::new(4096);

/// What SIGBUS did before.
static BEFORE: OnceLock<libc::sigaction> = OnceLock::new();

/// Installs the handler, once for the process.
fn watch() -> io::Result<()> {
    static INSTALLED: OnceLock<Result<(), i32>> = OnceLock::new();
    let installed = INSTALLED.get_or_init(|| {
        PAGE.store(rustix::param::page_size(), Ordering::Relaxed);
        // SAFETY: all zeros are a valid sigaction, and the kernel reads and writes no more than that.
        unsafe {
            let mut before: libc::sigaction = std::mem::zeroed();
            if libc::sigaction(libc::SIGBUS, std::ptr::null(), &raw mut before) != 0 {
                return Err(libc::EINVAL);
            }
            // There before the handler is, which may need it at once.
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

/// A page could not be had. In a copy an empty one takes its place; anywhere else it is what it was
/// before: the instruction comes again, to whoever saw to it until now.
extern "C" fn on_bus_error(signal: i32, info: *mut libc::siginfo_t, _context: *mut libc::c_void) {
    // SAFETY: the kernel hands over a valid description of the signal.
    let at = unsafe { (*info).si_addr() } as usize;
    let replaced = WATCHED.with(|watched| {
        if !watched.holds(at) {
            return false;
        }
        let page = PAGE.load(Ordering::Relaxed);
        // SAFETY: the page belongs to the mapping that is copied from or to. A plain system call is
        // all that happens here, and what it leaves in errno nobody reads after a copy.
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
    // SAFETY: what was there before this handler was.
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
        // The first 4 KiB of these are there.
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
