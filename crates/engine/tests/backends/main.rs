//! Runs the same battery over all real backends: reads return what was written, nothing is lost,
//! errors and short results are passed on, and deadlines hold.

mod common;

use common::{BLOCK, backend, content, drive, open, open_buffered, run_one, target, wait_some};
use fathom_core::measure::Direction;
use fathom_core::{Bytes, Span};
use fathom_engine::aio::Aio;
use fathom_engine::backend::{Backend, Io, RealBackend};
use fathom_engine::sync::Sync;
use fathom_engine::uring::Uring;
use rustix::io::Errno;
use tempfile::TempDir;

/// Blocks of each target.
const BLOCKS: u64 = 512;

/// Runs every test of the battery with one backend.
macro_rules! battery {
    ($($backend:ident in $module:ident),*) => {$(
        mod $module {
            use super::*;

            #[test]
            fn what_is_written_at_depth_1_is_read_back() {
                if common::works_here::<$backend>() {
                    written_is_read::<$backend>(1, 1);
                }
            }

            #[test]
            fn what_is_written_at_depth_8_is_read_back() {
                if common::works_here::<$backend>() {
                    written_is_read::<$backend>(8, 1);
                }
            }

            #[test]
            fn what_is_written_at_depth_64_is_read_back() {
                if common::works_here::<$backend>() {
                    written_is_read::<$backend>(64, 1);
                }
            }

            #[test]
            fn several_targets_are_told_apart() {
                if common::works_here::<$backend>() {
                    written_is_read::<$backend>(16, 3);
                }
            }

            #[test]
            fn more_slots_than_ios_are_no_trouble() {
                if common::works_here::<$backend>() {
                    written_is_read::<$backend>(300, 1);
                }
            }

            #[test]
            fn a_read_at_the_end_is_short_and_beyond_it_empty() {
                if common::works_here::<$backend>() {
                    short_reads::<$backend>();
                }
            }

            #[test]
            fn errors_are_passed_on_and_hold_nothing_up() {
                if common::works_here::<$backend>() {
                    errors::<$backend>();
                }
            }

            #[test]
            fn a_deadline_in_the_past_does_not_block() {
                if common::works_here::<$backend>() {
                    past_deadline::<$backend>();
                }
            }

            #[test]
            fn a_deadline_without_ios_is_slept_until() {
                if common::works_here::<$backend>() {
                    sleep::<$backend>();
                }
            }

            #[test]
            fn buffers_are_aligned_and_keep_what_was_put_there() {
                if common::works_here::<$backend>() {
                    buffers::<$backend>();
                }
            }

            #[test]
            fn a_backend_that_is_dropped_busy_harms_nobody() {
                if common::works_here::<$backend>() {
                    drop_busy::<$backend>();
                }
            }

            #[test]
            fn a_queue_depth_of_nothing_is_refused() {
                let folder = TempDir::new().unwrap();
                let targets = [target(folder.path(), "target", 4096)];
                assert!($backend::open(&targets, &common::shape(0, BLOCK)).is_err());
            }
        }
    )*};
}

battery!(Uring in uring, Aio in aio, Sync in sync);

/// The offsets of all blocks of a target, in an irregular order.
fn shuffled_offsets(seed: u64) -> impl Iterator<Item = u64> {
    // A multiplier that is 1 modulo 4 and an odd increment visit every residue of a power of two.
    let mut place = seed;
    (0..BLOCKS).map(move |_| {
        place = (place.wrapping_mul(0xD129_0D35) + 12345) % BLOCKS;
        place * u64::from(BLOCK)
    })
}

fn written_is_read<B: RealBackend>(depth: u32, target_count: u32) {
    let folder = TempDir::new().unwrap();
    let targets: Vec<_> = (0..target_count)
        .map(|n| target(folder.path(), &n.to_string(), BLOCKS * u64::from(BLOCK)))
        .collect();
    let mut backend: B = backend(&targets, depth, BLOCK);
    let all = |direction, seed| -> Vec<(u32, Direction, u64)> {
        shuffled_offsets(seed)
            .flat_map(|offset| (0..target_count).map(move |target| (target, direction, offset)))
            .collect()
    };
    let writes = all(Direction::Write, 1);
    let outcome = drive(&mut backend, depth, &writes);
    assert!(outcome.ios.iter().all(|(_, result)| *result == BLOCK as i32));
    assert_eq!(outcome.most_in_flight, writes.len().min(depth as usize));
    let offsets: std::collections::BTreeSet<_> =
        outcome.ios.iter().map(|(io, _)| (io.target, io.offset)).collect();
    assert_eq!(offsets.len(), writes.len());

    // `drive` checks every block that it reads.
    let mut both = all(Direction::Read, 2);
    for (place, io) in all(Direction::Write, 3).into_iter().enumerate().filter(|(n, _)| n % 3 == 0)
    {
        both.insert(place, io);
    }
    let outcome = drive(&mut backend, depth, &both);
    assert!(outcome.ios.iter().all(|(_, result)| *result == BLOCK as i32));
    drop(backend);

    for n in 0..target_count {
        let size = (BLOCKS * u64::from(BLOCK)) as usize;
        assert!(std::fs::read(folder.path().join(n.to_string())).unwrap() == content(n, 0, size));
    }
}

fn short_reads<B: RealBackend>() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("short");
    common::fill(0, &path, 3 * 4096 + 512);
    for target in [open(&path, false), open_buffered(&path)] {
        let targets = [target];
        let mut backend: B = backend(&targets, 4, BLOCK);
        let read =
            |offset| Io { slot: 2, target: 0, direction: Direction::Read, offset, length: BLOCK };
        assert_eq!(run_one(&mut backend, read(2 * 4096)), 4096);
        assert_eq!(run_one(&mut backend, read(3 * 4096)), 512);
        assert!(backend.read_buffer(2)[..512] == content(0, 3 * 4096, 512));
        assert_eq!(run_one(&mut backend, read(4 * 4096)), 0);
    }
}

fn errors<B: RealBackend>() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("target");
    common::fill(0, &path, 64 * 4096);
    let targets = [open(&path, false), open(&path, true)];
    let mut backend: B = backend(&targets, 4, BLOCK);
    let write = Direction::Write;
    let good = Io { slot: 0, target: 1, direction: Direction::Read, offset: 0, length: BLOCK };
    // A write to a file that is open only for reading.
    let forbidden = Io { slot: 1, target: 0, direction: write, offset: 0, length: BLOCK };
    // An offset that is too large for any file.
    let absurd = Io { slot: 2, offset: u64::MAX - 4095, ..good };
    for _ in 0..3 {
        let good_last = Io { slot: 3, offset: 4096, ..good };
        for io in [good, forbidden, absurd, good_last] {
            backend.push(io);
        }
        let mut completions = Vec::with_capacity(4);
        let mut results = [None; 4];
        while results.contains(&None) {
            completions.clear();
            wait_some(&mut backend, &mut completions);
            for completion in &completions {
                let result = results[completion.slot as usize].replace(completion.result);
                assert_eq!(result, None);
            }
        }
        assert_eq!(results[0], Some(4096));
        assert_eq!(results[1], Some(-Errno::BADF.raw_os_error()));
        assert_eq!(results[2], Some(-Errno::INVAL.raw_os_error()));
        assert_eq!(results[3], Some(4096));
    }
    if targets[0].alignment == Bytes(4096) {
        // Most file systems refuse a misaligned direct read; some serve it.
        let result = run_one(&mut backend, Io { offset: 1, ..good });
        assert!(result == -Errno::INVAL.raw_os_error() || result == 4096, "{result}");
    }
}

fn past_deadline<B: RealBackend>() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("target");
    common::fill(0, &path, 64 * 4096);
    let targets = [open(&path, true)];
    let mut backend: B = backend(&targets, 8, BLOCK);
    let mut completions = Vec::with_capacity(8);
    // If these calls waited, neither would ever return.
    backend.wait_and_reap(fathom_core::Instant(0), &mut completions);
    let now = backend.now();
    backend.wait_and_reap(now, &mut completions);
    assert!(completions.is_empty());
    for slot in 0..8 {
        let offset = u64::from(slot) * 4096;
        let io = Io { slot, target: 0, direction: Direction::Read, offset, length: BLOCK };
        backend.push(io);
    }
    // Polling alone starts and completes everything.
    let hang = backend.now() + common::HANG;
    while completions.len() < 8 {
        assert!(backend.now() < hang);
        let now = backend.now();
        backend.wait_and_reap(now, &mut completions);
    }
    let mut slots: Vec<u32> = completions.iter().map(|completion| completion.slot).collect();
    slots.sort_unstable();
    assert_eq!(slots, [0, 1, 2, 3, 4, 5, 6, 7]);
    assert!(completions.iter().all(|completion| completion.result == 4096));
}

fn sleep<B: RealBackend>() {
    let folder = TempDir::new().unwrap();
    let targets = [target(folder.path(), "target", 64 * 4096)];
    for slots in [1, 4] {
        let mut backend: B = backend(&targets, slots, BLOCK);
        let mut completions = Vec::with_capacity(slots as usize);
        for span in [Span::from_us(20), Span::from_us(150), Span::from_ms(20)] {
            let deadline = backend.now() + span;
            // The wait may return early after a signal. No signal comes here, or not forever.
            while backend.now() < deadline {
                backend.wait_and_reap(deadline, &mut completions);
            }
            assert!(completions.is_empty());
        }
        let deadline = backend.now() + Span::from_ms(20);
        backend.wait_and_reap(deadline, &mut completions);
        assert!(backend.now() + Span::from_ms(1) >= deadline, "it slept for less than 19 of 20 ms");
    }
}

fn buffers<B: RealBackend>() {
    let folder = TempDir::new().unwrap();
    let targets = [target(folder.path(), "target", 64 * 4096)];
    for slots in [1, 3] {
        let mut backend: B = backend(&targets, slots, 512);
        let contents: Vec<Vec<u8>> =
            (0..slots).map(|slot| backend.write_buffer(slot).to_vec()).collect();
        assert!(contents.iter().all(|content| content.len() == 512));
        let unlike = (1..slots as usize).all(|slot| contents[slot] != contents[slot - 1]);
        assert!(unlike && contents[0] != [0; 512]);
        for slot in 0..slots {
            assert_eq!(backend.write_buffer(slot).as_ptr().addr() % 4096, 0);
            assert_eq!(backend.read_buffer(slot).as_ptr().addr() % 4096, 0);
            backend.write_buffer(slot).fill(slot as u8);
        }
        assert!((0..slots).all(|slot| backend.write_buffer(slot) == [slot as u8; 512]));
        // Data that was read is never written, because reads use other buffers.
        for slot in 0..slots {
            let io = Io { slot, target: 0, direction: Direction::Read, offset: 0, length: 512 };
            let result = run_one(&mut backend, io);
            assert!(result == 512 || result == -Errno::INVAL.raw_os_error(), "{result}");
            assert_eq!(backend.write_buffer(slot), [slot as u8; 512]);
        }
    }
}

fn drop_busy<B: RealBackend>() {
    let folder = TempDir::new().unwrap();
    let size = 64 << 20;
    let targets = [target(folder.path(), "target", size)];
    for round in 0..20 {
        let mut backend: B = backend(&targets, 8, 1 << 20);
        for slot in 0..8 {
            let io = Io {
                slot,
                target: 0,
                direction: if slot % 2 == 0 { Direction::Read } else { Direction::Write },
                offset: u64::from(slot) << 20,
                length: 1 << 20,
            };
            backend.push(io);
        }
        // In most rounds the I/Os are started; in the others they are dropped unstarted.
        if round % 4 != 0 {
            backend.wait_and_reap(fathom_core::Instant(0), &mut Vec::with_capacity(8));
        }
        drop(backend);
        // Memory that was freed too early would be in use again by now.
        let other = vec![round as u8; 8 << 20];
        std::thread::yield_now();
        assert!(other.iter().all(|byte| *byte == round as u8));
    }
}

#[test]
fn a_ring_takes_a_queue_depth_of_4096() {
    if !common::works_here::<Uring>() {
        return;
    }
    let folder = TempDir::new().unwrap();
    let targets = [target(folder.path(), "target", 4096 * 4096)];
    let mut backend = match Uring::open(&targets, &common::shape(4096, BLOCK)) {
        // The limit of locked memory is lower than such a ring needs. The message says so.
        Err(error) if error.kind() == std::io::ErrorKind::OutOfMemory => {
            assert!(error.to_string().contains("ulimit -l"), "{error}");
            return;
        }
        opened => opened.expect("the kernel makes rings of this size"),
    };
    let writes: Vec<_> = (0..4096).map(|n| (0, Direction::Write, n * 4096)).collect();
    let outcome = drive(&mut backend, 4096, &writes);
    assert_eq!(outcome.most_in_flight, 4096);
    assert!(outcome.ios.iter().all(|(_, result)| *result == BLOCK as i32));
    let reads: Vec<_> = (0..4096).map(|n| (0, Direction::Read, n * 4096)).collect();
    drive(&mut backend, 4096, &reads);
    assert!(Uring::open(&targets, &common::shape(40_000, BLOCK)).is_err());
}

#[test]
fn an_odd_queue_depth_fills_the_ring() {
    if !common::works_here::<Uring>() {
        return;
    }
    let folder = TempDir::new().unwrap();
    let targets = [target(folder.path(), "target", BLOCKS * 4096)];
    let mut backend: Uring = backend(&targets, 37, BLOCK);
    let writes: Vec<_> = (0..BLOCKS).map(|n| (0, Direction::Write, n * 4096)).collect();
    assert_eq!(drive(&mut backend, 37, &writes).most_in_flight, 37);
}

#[test]
#[should_panic(expected = "lent its buffer")]
fn a_buffer_in_flight_is_not_handed_out() {
    let folder = TempDir::new().unwrap();
    let targets = [target(folder.path(), "target", 4096)];
    let mut backend: Sync = backend(&targets, 2, BLOCK);
    let read = Io { slot: 1, target: 0, direction: Direction::Read, offset: 0, length: BLOCK };
    // A helper thread may finish before the buffer is requested, but not a thousand times.
    for _ in 0..1000 {
        backend.push(read);
        backend.wait(fathom_core::Instant(0));
        backend.write_buffer(1);
        // The buffer was no longer lent, so the I/O has come back. Another wait would be for
        // another I/O.
        let mut count = 0;
        backend.reap(|_| count += 1);
        assert_eq!(count, 1);
    }
}
