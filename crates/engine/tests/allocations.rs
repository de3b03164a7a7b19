//! Pushing and waiting do not allocate once a backend is open: a counting allocator sees no
//! allocation on any thread.
//!
//! This is a program with one test, because the allocator would count other tests too.

#![expect(unsafe_code, reason = "an allocator is unsafe by definition")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::sync::atomic::{AtomicU64, Ordering};

use fathom_core::measure::Direction;
use fathom_core::{Bytes, Span};
use fathom_engine::aio::Aio;
use fathom_engine::backend::{Completion, Io, RealBackend, Shape};
use fathom_engine::sync::Sync;
use fathom_engine::target::OpenTarget;
use fathom_engine::uring::Uring;

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

struct Counting;

// SAFETY: the system's allocator does all the work.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // The harness has the program's first thread, and says there that a test takes long.
        // SAFETY: both calls only return a number.
        if unsafe { libc::gettid() != libc::getpid() } {
            ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        }
        // SAFETY: the caller's guarantees hold for this call too.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's guarantees hold for this call too.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const BLOCKS: u64 = 256;

/// Keeps `slots` I/Os in flight until `count` have completed. A third of them are writes.
fn run(backend: &mut impl RealBackend, slots: u32, count: u64, completions: &mut Vec<Completion>) {
    let mut started = 0;
    let mut completed = 0;
    let io = |slot, number: u64| Io {
        slot,
        target: (number % 2) as u32,
        direction: if number.is_multiple_of(3) { Direction::Write } else { Direction::Read },
        offset: number * 7 % BLOCKS * 4096,
        length: 4096,
    };
    for slot in 0..slots {
        backend.push(io(slot, started));
        started += 1;
    }
    while completed < count {
        // Far, near and past deadlines take different paths.
        let now = backend.now();
        let deadline = match completed % 3 {
            0 => now + Span::from_secs(60),
            1 => now + Span::from_us(30),
            _ => now,
        };
        completions.clear();
        backend.wait_and_reap(deadline, completions);
        for completion in completions.iter() {
            assert_eq!(completion.result, 4096);
            completed += 1;
            if started < count {
                backend.push(io(completion.slot, started));
                started += 1;
            }
        }
    }
}

fn check<B: RealBackend>(targets: &[OpenTarget]) {
    for slots in [1, 16] {
        let shape = Shape { slots, ..Shape::USUAL };
        let mut backend = match B::open(targets, &shape) {
            Ok(backend) => backend,
            Err(error) => {
                let _ = writeln!(
                    io::stderr(),
                    "SKIPPED: {} cannot be opened here: {error}",
                    B::KIND.name()
                );
                return;
            }
        };
        let mut completions = Vec::with_capacity(slots as usize);
        run(&mut backend, slots, 200, &mut completions);
        let before = ALLOCATIONS.load(Ordering::Relaxed);
        run(&mut backend, slots, 2000, &mut completions);
        let allocated = ALLOCATIONS.load(Ordering::Relaxed) - before;
        assert_eq!(allocated, 0, "{} with {slots} slots", B::KIND.name());
    }
}

#[test]
fn no_backend_allocates_while_it_works() {
    let folder = tempfile::TempDir::new().unwrap();
    let targets = ["a", "b"].map(|name| {
        let path = folder.path().join(name);
        std::fs::write(&path, vec![1; (BLOCKS * 4096) as usize]).unwrap();
        let open =
            |flags| OpenOptions::new().read(true).write(true).custom_flags(flags).open(&path);
        let file = open(libc::O_DIRECT).or_else(|_| open(0)).unwrap();
        let name = path.display().to_string();
        OpenTarget {
            name,
            file: file.into(),
            size: Bytes(BLOCKS * 4096),
            alignment: Bytes(4096),
            passthrough: None,
        }
    });
    check::<Uring>(&targets);
    check::<Aio>(&targets);
    check::<Sync>(&targets);
    let before = ALLOCATIONS.load(Ordering::Relaxed);
    drop(std::hint::black_box(Box::new(1)));
    assert!(ALLOCATIONS.load(Ordering::Relaxed) > before, "the allocator does not count");
}
