//! The memory of buffers: the allocator's, or large pages, which the host has to have reserved. It
//! is one stretch either way, so that the hot loop sees no difference.

#![expect(unsafe_code, reason = "large pages have no safe interface")]

use std::fs;
use std::io;
use std::ptr::NonNull;

use fathom_core::{Bytes, Refusal};
use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};

/// The file in which the host reports the size of its large pages, and how many are free.
const MEMINFO: &str = "/proc/meminfo";

/// Memory that is present: every page of it was touched, so that no page fault occurs while I/Os
/// are timed.
#[derive(Debug)]
pub(crate) struct Memory {
    start: NonNull<u8>,
    length: usize,
    owner: Owner,
}

/// Which of all buffers belong to one slot that has its own, if slots do not share.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Deal {
    /// The number of sharers: each has every n-th buffer.
    pub(crate) among: u32,
    /// The place of this one.
    pub(crate) which: u32,
}

impl Deal {
    /// All belong to one.
    pub(crate) const ALL: Self = Self { among: 1, which: 0 };
}

/// The option that requests large pages, which gives the total number in errors.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Purpose {
    /// The buffers of one of several sharers that have a worker's buffers together.
    Buffers(Deal),
    /// The memory that all workers write from.
    Pool,
}

/// The owner to which it returns.
#[derive(Debug)]
enum Owner {
    /// The allocator.
    Allocator {
        /// The capacity of its Vec.
        capacity: usize,
    },
    /// The kernel.
    Kernel,
}

// SAFETY: it is owned, as a Vec is. The kernel may still have parts of it, and it does not matter
// which thread asks for the others.
unsafe impl Send for Memory {}
// SAFETY: sharers only read it, as with a Vec that is shared.
unsafe impl Sync for Memory {}

impl Memory {
    /// This many zeros; none if there is too little memory.
    pub(crate) fn usual(length: usize) -> Option<Self> {
        let mut memory = Vec::new();
        memory.try_reserve_exact(length).ok()?;
        memory.resize(length, 0);
        let mut memory = std::mem::ManuallyDrop::new(memory);
        let capacity = memory.capacity();
        let start = NonNull::new(memory.as_mut_ptr()).expect("a Vec's pointer is never null");
        Some(Self { start, length, owner: Owner::Allocator { capacity } })
    }

    /// At least this many zeros in large pages.
    ///
    /// # Errors
    ///
    /// When fewer of them are free than needed.
    pub(crate) fn large(length: usize, purpose: Purpose) -> io::Result<Self> {
        let pages = Pages::of(&fs::read_to_string(MEMINFO).unwrap_or_default());
        let Some(page) = pages.size.filter(|&size| size > 0) else {
            return Err(refused("this kernel has none".to_owned(), "drop it".to_owned()));
        };
        let Some(whole) = length.max(1).checked_next_multiple_of(page) else {
            return Err(pages.too_few(length, purpose));
        };
        // SAFETY: a new mapping at an address that the kernel chooses touches no other memory.
        let start = unsafe {
            mmap_anonymous(
                std::ptr::null_mut(),
                whole,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::PRIVATE | MapFlags::HUGETLB | MapFlags::POPULATE,
            )
        };
        match start.ok().and_then(|start| NonNull::new(start.cast::<u8>())) {
            Some(start) => Ok(Self { start, length: whole, owner: Owner::Kernel }),
            None => Err(pages.too_few(whole, purpose)),
        }
    }

    /// A part of it, for reading. With [`Memory::address`] the kernel may have other parts
    /// meanwhile, so that no code here makes a reference to all of it.
    #[inline]
    pub(crate) fn part(&self, start: usize, length: usize) -> &[u8] {
        let address = self.address(start, length);
        // SAFETY: this many bytes exist, are initialized, and are borrowed as `self` is. A caller
        // that gave the kernel this part to write to asks for it after it has come back: a backend
        // asserts that the slot to which it belongs is not in flight.
        unsafe { std::slice::from_raw_parts(address, length) }
    }

    /// A part of it, for changes.
    #[inline]
    pub(crate) fn part_mut(&mut self, start: usize, length: usize) -> &mut [u8] {
        let address = self.address(start, length);
        // SAFETY: as above, and no other code here has another part of it while `self` is borrowed
        // for change. The kernel has none of these bytes, as above.
        unsafe { std::slice::from_raw_parts_mut(address, length) }
    }

    /// The address of a part of it, for the kernel, which reads and writes it behind the compiler's
    /// back.
    #[inline]
    pub(crate) fn address(&self, start: usize, length: usize) -> *mut u8 {
        assert!(start <= self.length && length <= self.length - start);
        // SAFETY: it lies within the allocation.
        unsafe { self.start.as_ptr().add(start) }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        match self.owner {
            Owner::Allocator { capacity } => {
                // SAFETY: these are the parts of the Vec that was taken apart when this was made.
                drop::<Vec<u8>>(unsafe {
                    Vec::from_raw_parts(self.start.as_ptr(), self.length, capacity)
                });
            }
            Owner::Kernel => {
                // SAFETY: the whole mapping, which has no other references any more.
                let _ = unsafe { munmap(self.start.as_ptr().cast(), self.length) };
            }
        }
    }
}

/// The message that large pages are not available, within the error of a backend that asked for
/// them.
fn refused(problem: String, remedy: String) -> io::Error {
    let refusal = Refusal::denied("--large-pages", problem, remedy);
    io::Error::new(io::ErrorKind::OutOfMemory, refusal)
}

/// The remedy if large pages caused the failure.
pub(crate) fn no_large_pages(error: &io::Error) -> Option<&Refusal> {
    error.get_ref()?.downcast_ref()
}

/// The host's report on its large pages.
#[derive(Debug, PartialEq, Eq)]
struct Pages {
    /// In bytes; none without any.
    size: Option<usize>,
    /// How many are free and not reserved.
    free: u64,
    /// The number of all.
    total: u64,
}

impl Pages {
    fn of(meminfo: &str) -> Self {
        let number = |name: &str| {
            let line = meminfo.lines().find_map(|line| line.strip_prefix(name))?;
            line.split_whitespace().next()?.parse::<u64>().ok()
        };
        let free = number("HugePages_Free:").unwrap_or(0);
        Self {
            size: number("Hugepagesize:").and_then(|kib| usize::try_from(kib * 1024).ok()),
            free: free.saturating_sub(number("HugePages_Rsvd:").unwrap_or(0)),
            total: number("HugePages_Total:").unwrap_or(0),
        }
    }

    fn too_few(&self, length: usize, purpose: Purpose) -> io::Error {
        let size = self.size.unwrap_or(1).max(1);
        let (what, deal, beside) = match purpose {
            Purpose::Buffers(deal) => {
                ("the buffers of a worker need", deal, "as many more for every further worker")
            }
            Purpose::Pool => ("the payload needs", Deal::ALL, "more for the buffers"),
        };
        let each = length.div_ceil(size) as u64;
        let needed = each * u64::from(deal.among);
        // The sharers before this one have theirs.
        let missing = (each * u64::from(deal.among - deal.which)).saturating_sub(self.free).max(1);
        let problem = format!(
            "{what} {needed} {} of {}, and {missing} {} missing",
            if needed == 1 { "page" } else { "pages" },
            Bytes(size as u64),
            if missing == 1 { "is" } else { "are" },
        );
        let reserved = self.total + missing;
        let remedy = format!(
            "reserve them with `sysctl vm.nr_hugepages={reserved}` (and {beside}), or drop it"
        );
        refused(problem, remedy)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_allocators_memory_is_zeros_that_can_be_written() {
        let mut memory = Memory::usual(10_000).unwrap();
        assert!(memory.length == 10_000 && memory.part(0, 10_000).iter().all(|&byte| byte == 0));
        memory.part_mut(9_999, 1)[0] = 7;
        assert_eq!(memory.part(0, 10_000).iter().map(|&byte| u64::from(byte)).sum::<u64>(), 7);
        assert_eq!(Memory::usual(0).unwrap().length, 0);
        assert!(Memory::usual(usize::MAX).is_none());
    }

    #[test]
    fn too_few_large_pages_say_how_many_and_how_to_have_them() {
        let meminfo = "MemTotal: 100 kB\nHugePages_Total:      10\nHugePages_Free:        5\n\
                       HugePages_Rsvd:        2\nHugepagesize:       2048 kB\n";
        let pages = Pages::of(meminfo);
        assert_eq!(pages, Pages { size: Some(2 << 20), free: 3, total: 10 });
        let error = pages.too_few(7 << 20, Purpose::Buffers(Deal::ALL));
        assert!(no_large_pages(&error).is_some());
        assert!(no_large_pages(&io::Error::other("x")).is_none());
        let told = error.to_string();
        assert!(told.contains("worker need 4 pages of 2 MiB, and 1 is missing"), "{told}");
        assert!(told.contains("sysctl vm.nr_hugepages=11"), "{told}");
        // Sixteen workers need one page each. The fifth one to come finds three free pages, so nine
        // are missing.
        let told = pages.too_few(1, Purpose::Buffers(Deal { among: 16, which: 4 })).to_string();
        assert!(told.contains("need 16 pages of 2 MiB, and 9 are missing"), "{told}");
        assert!(told.contains("sysctl vm.nr_hugepages=19"), "{told}");
        let told = pages.too_few(8 << 20, Purpose::Pool).to_string();
        assert!(told.contains("the payload needs 4 pages of 2 MiB, and 1 is missing"), "{told}");
        assert_eq!(Pages::of(""), Pages { size: None, free: 0, total: 0 });
    }

    /// Where huge pages can be reserved, which takes root, the test reserves some. Elsewhere the
    /// error has to be helpful.
    #[test]
    fn large_pages_are_had_or_refused() {
        const RESERVED: &str = "/proc/sys/vm/nr_hugepages";
        let before = fs::read_to_string(RESERVED).unwrap_or_default();
        let more = before.trim().parse::<u64>().unwrap_or(0) + 4;
        let could = fs::write(RESERVED, more.to_string()).is_ok();
        let found = Memory::large((2 << 20) + 1, Purpose::Pool);
        match &found {
            Ok(memory) => {
                let all = memory.part(0, memory.length);
                assert!(memory.length > 2 << 20 && all.iter().all(|&byte| byte == 0));
                assert!(all.as_ptr().addr().is_multiple_of(2 << 20));
            }
            Err(error) => {
                let told = error.to_string();
                assert!(told.contains("drop it"), "{told}");
                let free = Pages::of(&fs::read_to_string(MEMINFO).unwrap_or_default()).free;
                assert!(free < 2, "{free} are free: {told}");
            }
        }
        drop(found);
        if could {
            fs::write(RESERVED, before).unwrap();
        }
    }
}
