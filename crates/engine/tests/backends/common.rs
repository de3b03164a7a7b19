//! Helpers of the battery: targets in a temporary folder, content that identifies its place, and a
//! loop that keeps a backend busy.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

use fathom_core::measure::Direction;
use fathom_core::spec::Access;
use fathom_core::{Bytes, Instant, Span};
use fathom_engine::backend::{Backend, Completion, Io, RealBackend, Shape};
use fathom_engine::choose;
use fathom_engine::target::OpenTarget;

/// The block size of the tests.
pub const BLOCK: u32 = 4096;

/// Long enough for every working machine. Only a hang takes this long.
pub const HANG: Span = Span::from_secs(60);

/// The content of `offset` in target `target`. Every word is different.
pub fn content(target: u32, offset: u64, length: usize) -> Vec<u8> {
    (0..length as u64 / 8)
        .flat_map(|word| {
            let place = offset / 8 + word + (u64::from(target) << 56) + 1;
            place.wrapping_mul(0x9E37_79B9_7F4A_7C15).to_le_bytes()
        })
        .collect()
}

/// Creates a file of zeros and opens it for direct I/O, or buffered where that is impossible.
pub fn target(folder: &Path, name: &str, size: u64) -> OpenTarget {
    let path = folder.join(name);
    File::create(&path).unwrap().set_len(size).unwrap();
    open(&path, true)
}

/// Opens a file as a target.
pub fn open(path: &Path, write: bool) -> OpenTarget {
    let size = Bytes(path.metadata().unwrap().len());
    let options = || {
        let mut options = OpenOptions::new();
        options.read(true).write(write);
        options
    };
    let name = path.display().to_string();
    match options().custom_flags(libc::O_DIRECT).open(path) {
        Ok(file) => {
            OpenTarget { name, file: file.into(), size, alignment: Bytes(4096), passthrough: None }
        }
        Err(_) => OpenTarget {
            name,
            file: options().open(path).unwrap().into(),
            size,
            alignment: Bytes(1),
            passthrough: None,
        },
    }
}

/// Opens a file as a target without direct I/O.
pub fn open_buffered(path: &Path) -> OpenTarget {
    let file = OpenOptions::new().read(true).write(true).open(path).unwrap();
    let size = Bytes(path.metadata().unwrap().len());
    OpenTarget {
        name: path.display().to_string(),
        file: file.into(),
        size,
        alignment: Bytes(1),
        passthrough: None,
    }
}

/// Fills a whole file with the content of its offsets.
pub fn fill(target: u32, path: &Path, size: u64) {
    let file = File::create(path).unwrap();
    file.write_all_at(&content(target, 0, size as usize), 0).unwrap();
    file.sync_all().unwrap();
}

/// Waits until one I/O or more have completed.
pub fn wait_some(backend: &mut impl Backend, completions: &mut Vec<Completion>) {
    let hang = backend.now() + HANG;
    while completions.is_empty() {
        let now = backend.now();
        assert!(now < hang, "nothing completed for {HANG}");
        backend.wait_and_reap(hang, completions);
    }
}

/// Runs one I/O and returns its result.
pub fn run_one(backend: &mut impl Backend, io: Io) -> i32 {
    let mut completions = Vec::with_capacity(1);
    backend.push(io);
    wait_some(backend, &mut completions);
    assert_eq!(completions.len(), 1);
    assert_eq!(completions[0].slot, io.slot);
    completions[0].result
}

/// The outcome of the loop below.
pub struct Outcome {
    /// Every I/O with its result, in the order of completion.
    pub ios: Vec<(Io, i32)>,
    /// The highest number of I/Os in flight.
    pub most_in_flight: usize,
}

/// Keeps `depth` I/Os in flight until every one of `todo` (target, direction, offset) has
/// completed. Writes carry the content of their offset, and reads are checked for it.
pub fn drive(
    backend: &mut impl RealBackend,
    depth: u32,
    todo: &[(u32, Direction, u64)],
) -> Outcome {
    let mut free: Vec<u32> = (0..depth).collect();
    let mut slots: Vec<Option<(Io, Instant)>> = vec![None; depth as usize];
    let mut completions = Vec::with_capacity(depth as usize);
    let mut outcome = Outcome { ios: Vec::new(), most_in_flight: 0 };
    let mut rest = todo.iter();
    while outcome.ios.len() < todo.len() {
        while let Some(slot) = free.pop() {
            let Some(&(target, direction, offset)) = rest.next() else {
                free.push(slot);
                break;
            };
            if direction == Direction::Write {
                let content = content(target, offset, BLOCK as usize);
                backend.refresh(slot, BLOCK);
                backend.write_buffer(slot)[..BLOCK as usize].copy_from_slice(&content);
            }
            let io = Io { slot, target, direction, offset, length: BLOCK };
            assert!(slots[slot as usize].replace((io, backend.now())).is_none());
            backend.push(io);
        }
        let in_flight = depth as usize - free.len();
        outcome.most_in_flight = outcome.most_in_flight.max(in_flight);
        completions.clear();
        wait_some(backend, &mut completions);
        assert!(completions.len() <= in_flight);
        for completion in &completions {
            let (io, pushed) = slots[completion.slot as usize].take().expect("it was in flight");
            assert!(pushed <= completion.at && completion.at <= backend.now());
            if io.direction == Direction::Read && completion.result == BLOCK as i32 {
                let buffer = &backend.read_buffer(io.slot)[..BLOCK as usize];
                assert!(buffer == content(io.target, io.offset, BLOCK as usize), "{io:?}");
            }
            outcome.ios.push((io, completion.result));
            free.push(completion.slot);
        }
    }
    assert_eq!(free.len(), depth as usize);
    outcome
}

/// Whether a backend works where the tests run. If not, prints the reason.
pub fn works_here<B: RealBackend>() -> bool {
    let access = Access::DIRECT;
    match choose(Some(B::KIND), access) {
        Ok(_) => true,
        Err(error) => {
            // Writes past the test harness, which hides the output of tests that pass.
            let _ = writeln!(io::stderr(), "SKIPPED: {error}");
            false
        }
    }
}

/// The shape of a backend that reads and writes.
pub fn shape(slots: u32, block_size: u32) -> Shape {
    Shape { slots, block_size, ..Shape::USUAL }
}

/// Opens a backend of the given type that reads and writes.
pub fn backend<B: RealBackend>(targets: &[OpenTarget], slots: u32, block_size: u32) -> B {
    B::open(targets, &shape(slots, block_size))
        .unwrap_or_else(|error| panic!("{}: {error}", B::KIND.name()))
}
