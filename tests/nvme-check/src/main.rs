//! Tests whether NVMe commands carry data to the right place: data written with commands is read
//! through the block device and the other way round, in every mode of the ring. A command that
//! fails reports how. It is for the emulated NVMe of the virtual machine's section, and overwrites
//! the beginning of the named devices.
//!
//! `nvme-check /dev/ng0n1 /dev/nvme0n1` prints a sentence for each check that passes. At the first
//! check that fails, it exits with 1.

use std::path::Path;
use std::process::ExitCode;

use fathom_core::measure::{Direction, ErrorKind};
use fathom_core::spec::{Access, RingMode, SubmissionThread, SyncMode};
use fathom_core::{Bytes, Span};
use fathom_engine::backend::{Backend, Io, RealBackend, Shape, failure};
use fathom_engine::host;
use fathom_engine::target::{self, OpenTarget, Opening, Overwrite};
use fathom_engine::uring::{CommandUring, Uring};

const SLOTS: u32 = 8;
const BLOCK: u32 = 8192;
/// A limit in case a device hangs.
const PATIENCE: Span = Span::from_secs(30);

type Checked<T> = Result<T, String>;

fn main() -> ExitCode {
    let names: Vec<String> = std::env::args().skip(1).collect();
    let [generic, block] = names.as_slice() else {
        eprintln!("nvme-check: name the generic device and the block device");
        return ExitCode::FAILURE;
    };
    match check_all(generic, block) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            println!("failed: {why}");
            ExitCode::FAILURE
        }
    }
}

fn check_all(generic: &str, block: &str) -> Checked<()> {
    let modes = [(false, false), (true, false), (false, true), (true, true)];
    for (round, (polled, threaded)) in (1u8..).zip(modes) {
        let submission_thread = threaded.then_some(SubmissionThread { cpu: None });
        let ring = RingMode { polled, submission_thread };
        both_ways(generic, block, ring, round * 16)?;
        println!("data arrives both ways (polled: {polled}, submission thread: {threaded})");
        a_failure_has_its_status(generic, ring)?;
        println!("a failure has its status (polled: {polled}, submission thread: {threaded})");
    }
    claimed_while_open(generic, block)?;
    println!("the block device is claimed while commands may write");
    Ok(())
}

/// Each device writes, and the other one reads that data.
fn both_ways(generic: &str, block: &str, mode: RingMode, mark: u8) -> Checked<()> {
    {
        let target = open(generic, true, mode)?;
        let mut ring: CommandUring = ring(&target, mode)?;
        write(&mut ring, mark)?;
        read(&mut ring, mark)?;
    }
    {
        let target = open(block, true, mode)?;
        let mut ring: Uring = ring(&target, mode)?;
        read(&mut ring, mark)?;
        write(&mut ring, mark + 8)?;
    }
    let target = open(generic, false, mode)?;
    let mut ring: CommandUring = ring(&target, mode)?;
    read(&mut ring, mark + 8)
}

fn open(name: &str, writes: bool, ring: RingMode) -> Checked<OpenTarget> {
    let facts = host::target(Path::new(name)).map_err(|error| error.to_string())?;
    let opening = Opening {
        // Writes that have to be durable are commands with an additional bit.
        access: Access { sync: SyncMode::Dsync, ring, ..Access::DIRECT },
        writes,
        claimed: false,
        overwrite: Overwrite { destroy: Vec::from([name.to_owned()]), ..Overwrite::default() },
    };
    target::open(&facts, &opening).map_err(|error| error.to_string())
}

fn ring<B: RealBackend>(target: &OpenTarget, ring: RingMode) -> Checked<B> {
    let shape = Shape { slots: SLOTS, block_size: BLOCK, ring, ..Shape::USUAL };
    B::open(std::slice::from_ref(target), &shape)
        .map_err(|error| format!("{}: no ring: {error}", target.name))
}

/// The place of a slot's block. Places are far apart and in no order.
fn place(slot: u32) -> u64 {
    u64::from(slot * 5 % SLOTS) * 3 * u64::from(BLOCK) + 4096
}

/// The content of a block. It differs from that of every other block and round, and its two halves
/// differ.
fn content(mark: u8, slot: u32) -> Vec<u8> {
    let byte = |at: u32| mark ^ (slot as u8) ^ (at as u8).wrapping_mul(31) ^ (at >> 8) as u8;
    (0..BLOCK).map(byte).collect()
}

fn write<B: RealBackend>(ring: &mut B, mark: u8) -> Checked<()> {
    for slot in 0..SLOTS {
        ring.refresh(slot, BLOCK);
        ring.write_buffer(slot).copy_from_slice(&content(mark, slot));
    }
    let results = move_all(ring, Direction::Write, place)?;
    whole("a write", &results)
}

fn read<B: RealBackend>(ring: &mut B, mark: u8) -> Checked<()> {
    for slot in 0..SLOTS {
        ring.read_buffer(slot).fill(0xEE);
    }
    let results = move_all(ring, Direction::Read, place)?;
    whole("a read", &results)?;
    for slot in 0..SLOTS {
        if ring.read_buffer(slot) != content(mark, slot) {
            return Err(format!("the block of slot {slot} does not hold what was written"));
        }
    }
    Ok(())
}

fn whole(what: &str, results: &[i32]) -> Checked<()> {
    match results.iter().find(|&&result| result != BLOCK as i32) {
        Some(result) => Err(format!("{what} gave {result}: {:?}", failure(*result))),
        None => Ok(()),
    }
}

/// Runs one I/O in each slot. Returns the results by slot.
fn move_all<B: Backend>(
    ring: &mut B,
    direction: Direction,
    place: impl Fn(u32) -> u64,
) -> Checked<Vec<i32>> {
    for slot in 0..SLOTS {
        ring.push(Io { slot, target: 0, direction, offset: place(slot), length: BLOCK });
    }
    let deadline = ring.now() + PATIENCE;
    let mut completions = Vec::with_capacity(SLOTS as usize);
    while completions.len() < SLOTS as usize {
        if deadline <= ring.now() {
            return Err(format!("only {} I/Os came back", completions.len()));
        }
        ring.wait_and_reap(deadline, &mut completions);
    }
    completions.sort_by_key(|completion| completion.slot);
    Ok(completions.iter().map(|completion| completion.result).collect())
}

/// The device refuses an I/O beyond its end, and its status is passed through.
fn a_failure_has_its_status(generic: &str, mode: RingMode) -> Checked<()> {
    const OUT_OF_RANGE: u16 = 0x080;
    let target = open(generic, false, mode)?;
    let Bytes(end) = target.size;
    let mut ring: CommandUring = ring(&target, mode)?;
    let results = move_all(&mut ring, Direction::Read, |slot| match slot % 2 {
        0 => place(slot),
        _ => end + place(slot),
    })?;
    for (slot, result) in (0..).zip(results) {
        let expected = match (slot % 2, failure(result)) {
            (0, _) => result == BLOCK as i32,
            (_, ErrorKind::Nvme(status)) => status & 0x7FF == OUT_OF_RANGE,
            _ => false,
        };
        if !expected {
            return Err(format!("slot {slot} gave {result}: {:?}", failure(result)));
        }
    }
    Ok(())
}

/// The block device cannot be mounted while its data is written through the generic device.
fn claimed_while_open(generic: &str, block: &str) -> Checked<()> {
    let held = open(generic, true, RingMode::USUAL)?;
    match open(block, true, RingMode::USUAL) {
        Ok(_) => return Err(format!("{block} was opened to be written beside {generic}")),
        Err(why) if why.contains("claimed") => {}
        Err(why) => return Err(why),
    }
    drop(held);
    open(block, true, RingMode::USUAL).map(drop)
}
