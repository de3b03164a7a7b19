//! Runs the paths for older kernels and lower limits on this kernel, and I/Os that never complete.

use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::mpsc::channel;

use tempfile::TempDir;

use super::*;

const SHAPE: Shape = Shape { slots: 5, ..Shape::USUAL };
const HANG: Span = Span::from_secs(60);

fn target(path: &Path) -> OpenTarget {
    let open = |flags| OpenOptions::new().read(true).write(true).custom_flags(flags).open(path);
    let file = open(libc::O_DIRECT).or_else(|_| open(0)).unwrap();
    OpenTarget {
        name: path.display().to_string(),
        file: file.into(),
        size: Bytes(1 << 16),
        alignment: Bytes(1),
        passthrough: None,
    }
}

/// Whether io_uring works here. It may be forbidden where the tests run.
pub(super) fn here() -> bool {
    match probe() {
        Ok(_) => true,
        Err(error) => {
            // Writes past the test harness, which hides the output of tests that pass.
            let _ = writeln!(std::io::stderr(), "SKIPPED: io_uring does not work here: {error}");
            false
        }
    }
}

/// Writes a different byte in each slot and reads it back, three times.
fn round_trips(ring: &mut Uring) {
    let mut completions = Vec::with_capacity(5);
    for round in 0..3u8 {
        for direction in [Direction::Write, Direction::Read] {
            for slot in 0..5 {
                ring.refresh(slot, 4096);
                ring.write_buffer(slot).fill(round * 5 + slot as u8);
                let offset = u64::from(slot) * 4096;
                ring.push(Io { slot, target: 1, direction, offset, length: 4096 });
            }
            completions.clear();
            let hang = ring.now() + HANG;
            while completions.len() < 5 {
                assert!(ring.now() < hang);
                ring.wait_and_reap(hang, &mut completions);
            }
            assert!(completions.iter().all(|c| c.result == 4096), "{completions:?}");
        }
        for slot in 0..5 {
            assert_eq!(ring.read_buffer(slot), [round * 5 + slot as u8; 4096]);
        }
    }
    assert_eq!((ring.lent.ring.queued(), ring.lent.in_flight()), (0, 0));
}

#[test]
fn a_file_in_memory_is_tried_at_once_and_one_on_a_disk_as_it_always_is() {
    use rustix::fs::{OFlags, fcntl_getfl, fstatfs};
    let Ok(folder) = TempDir::new_in("/dev/shm") else {
        let _ = writeln!(std::io::stderr(), "SKIPPED: there is no /dev/shm");
        return;
    };
    if !here() {
        return;
    }
    let paths = ["other", "target"].map(|name| folder.path().join(name));
    for path in &paths {
        std::fs::write(path, vec![0; 1 << 16]).unwrap();
    }
    let is_nonblock =
        |target: &OpenTarget| fcntl_getfl(&target.file).unwrap().contains(OFlags::NONBLOCK);
    // The second setup is the one for kernels before Linux 6.1.
    for (setup, expected) in [(Setup::DeferredDirect, true), (Setup::Cooperative, false)] {
        let targets = [target(&paths[0]), target(&paths[1])];
        let is_tmpfs = fstatfs(&targets[1].file).unwrap().f_type as u32 == 0x0102_1994;
        let mut ring =
            Uring::open_below(Ceiling { setup, ..Ceiling::NONE }, &targets, &SHAPE).unwrap();
        let knows = ring.facts().setup <= Setup::Deferred;
        assert!(!is_nonblock(&targets[1]) || expected);
        if expected && is_tmpfs && knows && !nonblock::something_is_swapped() {
            assert!(targets.iter().all(is_nonblock));
        }
        round_trips(&mut ring);
    }
    // A device node is on a tmpfs as well, but is not a file.
    let zero = std::fs::File::open("/dev/zero").unwrap();
    let zero = OpenTarget {
        name: "/dev/zero".to_owned(),
        file: zero.into(),
        size: Bytes(1 << 20),
        alignment: Bytes(1),
        passthrough: None,
    };
    drop(Uring::open(std::slice::from_ref(&zero), &SHAPE).unwrap());
    assert!(!is_nonblock(&zero));
}

#[test]
fn a_batch_is_a_small_part_of_the_queue() {
    let batches = [1, 16, 31, 32, 64, 128, 32_768].map(batch_of);
    assert_eq!(batches, [1, 1, 1, 2, 4, 8, 8]);
}

#[test]
fn every_setup_and_every_limit_carries_ios() {
    if !here() {
        return;
    }
    let folder = TempDir::new().unwrap();
    for name in ["other", "target"] {
        std::fs::write(folder.path().join(name), vec![0; 1 << 16]).unwrap();
    }
    let targets = ["other", "target"].map(|name| target(&folder.path().join(name)));
    for setup in Setup::ALL {
        for bits in 0..8 {
            let ceiling = Ceiling {
                setup,
                register_buffers: bits & 1 != 0,
                register_files: bits & 2 != 0,
                timed_wait: bits & 4 != 0,
            };
            let mut ring = Uring::open_below(ceiling, &targets, &SHAPE).unwrap();
            let facts = ring.facts();
            assert!(facts.setup >= setup && facts.registered_files <= ceiling.register_files);
            assert!(facts.registered_buffers <= ceiling.register_buffers);
            assert!(facts.timed_wait <= ceiling.timed_wait || facts.setup < Setup::Plain);
            round_trips(&mut ring);

            // A wait for nothing ends at its deadline.
            let deadline = ring.now() + Span::from_ms(3);
            while ring.now() < deadline {
                ring.wait_and_reap(deadline, &mut Vec::new());
            }
        }
    }
}

/// A ring with reads in flight that complete only when data is written to the FIFO.
fn hanging(folder: &TempDir, ceiling: Ceiling) -> (Uring, File) {
    let path = folder.path().join("fifo");
    let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
    rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    let fifo = OpenOptions::new().read(true).write(true).open(&path).unwrap();
    let other_end = fifo.try_clone().unwrap();
    let name = path.display().to_string();
    let targets = [OpenTarget {
        name,
        file: fifo.into(),
        size: Bytes(0),
        alignment: Bytes(1),
        passthrough: None,
    }];
    let mut ring = Uring::open_below(ceiling, &targets, &SHAPE).unwrap();
    for slot in 0..3 {
        ring.push(Io { slot, target: 0, direction: Direction::Read, offset: 0, length: 4096 });
    }
    (ring, other_end)
}

fn ceilings() -> impl Iterator<Item = Ceiling> {
    Setup::ALL.into_iter().flat_map(|setup| {
        [true, false].map(|timed_wait| Ceiling { setup, timed_wait, ..Ceiling::NONE })
    })
}

#[test]
fn ios_that_hang_hold_up_neither_a_wait_nor_a_drop() {
    if !here() {
        return;
    }
    for ceiling in ceilings() {
        let folder = TempDir::new().unwrap();
        let (mut ring, mut other_end) = hanging(&folder, ceiling);
        let mut completions = Vec::with_capacity(5);
        for span in [Span(0), Span::from_us(50), Span::from_ms(2)] {
            let deadline = ring.now() + span;
            while ring.now() < deadline {
                ring.wait_and_reap(deadline, &mut completions);
            }
            ring.wait_and_reap(deadline, &mut completions);
        }
        assert_eq!((completions.len(), ring.lent.ring.queued(), ring.lent.in_flight()), (0, 0, 3));
        // One of them completes after all.
        other_end.write_all(&[9; 100]).unwrap();
        let hang = ring.now() + HANG;
        while completions.is_empty() {
            assert!(ring.now() < hang);
            ring.wait_and_reap(hang, &mut completions);
        }
        assert_eq!((completions.len(), completions[0].result, ring.lent.in_flight()), (1, 100, 2));
        assert_eq!(ring.read_buffer(completions[0].slot)[..100], [9; 100]);
        drop(ring);
        // The kernel now writes to memory that was leaked for this purpose.
        other_end.write_all(&[7; 200]).unwrap();
    }
}

/// Each completion is seen once, even if the code that sees it panics. The I/Os in flight at that
/// time stay valid.
#[test]
fn a_panic_of_who_takes_completions_counts_none_of_them_twice() {
    if !here() {
        return;
    }
    for ceiling in ceilings() {
        let folder = TempDir::new().unwrap();
        let (mut ring, mut other_end) = hanging(&folder, ceiling);
        for slot in 3..5 {
            ring.push(Io { slot, target: 0, direction: Direction::Write, offset: 0, length: 4096 });
        }
        // Two reads receive the data of the two writes. One more stays in flight forever.
        let hang = ring.now() + HANG;
        while ring.lent.ring.completed() < 4 {
            assert!(ring.now() < hang);
            let soon = ring.now() + Span::from_ms(1);
            ring.wait(soon);
            ring.lent.ring.has_completions();
        }
        let mut seen = Vec::new();
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            ring.reap(|completion| {
                seen.push(completion.slot);
                assert!(seen.len() < 2, "on purpose");
            });
        }));
        assert!(panicked.is_err() && seen.len() == 2);
        assert_eq!((ring.lent.in_flight(), ring.lent.ring.completed()), (3, 2));
        ring.reap(|completion| seen.push(completion.slot));
        assert_eq!((ring.lent.in_flight(), ring.lent.ring.completed()), (1, 0));
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen.len(), 4);
        drop(ring);
        // The kernel still writes to the buffer of the third read, which was leaked for it.
        other_end.write_all(&[7; 200]).unwrap();
    }
}

#[test]
fn a_ring_that_is_dropped_idle_gives_everything_back() {
    if !here() {
        return;
    }
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("target");
    std::fs::write(&path, vec![0; 1 << 16]).unwrap();
    // Many more rings than a low limit of locked memory or of open files allows at once.
    for _ in 0..300 {
        let mut ring = Uring::open(&[target(&path)], &SHAPE).unwrap();
        let read = Io { slot: 0, target: 0, direction: Direction::Read, offset: 0, length: 4096 };
        ring.push(read);
        let mut completions = Vec::with_capacity(5);
        while completions.is_empty() {
            let hang = ring.now() + HANG;
            ring.wait_and_reap(hang, &mut completions);
        }
        // Pushed, but never started.
        ring.push(read);
    }
    let rings = std::fs::read_dir("/proc/self/fd").unwrap().filter_map(|entry| {
        std::fs::read_link(entry.ok()?.path()).ok().filter(|to| to.ends_with("[io_uring]"))
    });
    // Rings of other tests that run at the same time; these leak a few.
    assert!(rings.count() < 100);
}

#[test]
fn a_signal_ends_a_wait_early() {
    if !here() {
        return;
    }
    extern "C" fn nothing(_: libc::c_int) {}
    let handler = nothing as extern "C" fn(libc::c_int);
    // SAFETY: the handler does nothing, which is safe at any moment.
    unsafe { libc::signal(libc::SIGURG, handler as libc::sighandler_t) };
    for ceiling in ceilings() {
        let folder = TempDir::new().unwrap();
        let (sender, receiver) = channel();
        let (ended, end) = channel();
        let waiter = std::thread::spawn(move || {
            let (mut ring, _other_end) = hanging(&folder, ceiling);
            // SAFETY: the call only reads this thread's own identifier.
            sender.send(unsafe { libc::pthread_self() }).unwrap();
            let deadline = ring.now() + HANG;
            let mut completions = Vec::with_capacity(5);
            ring.wait_and_reap(deadline, &mut completions);
            ended.send((ring.now() < deadline, completions.len())).unwrap();
        });
        let thread = receiver.recv().unwrap();
        let (early, completed) = loop {
            // SAFETY: the thread has not been joined, so its identifier is valid.
            unsafe { libc::pthread_kill(thread, libc::SIGURG) };
            match end.recv_timeout(std::time::Duration::from_millis(10)) {
                Ok(outcome) => break outcome,
                Err(_) => assert!(!waiter.is_finished(), "the wait panicked"),
            }
        };
        assert!(early && completed == 0);
        waiter.join().unwrap();
    }
}
