//! Whether the workers of all streams have enough work, and this machine enough CPUs, places in
//! rings and memory for them.

use fathom_core::Bytes;
use fathom_core::plan::worker_count;
use fathom_core::spec::{BackendKind, Payload, RingMode, Stream, SubmissionThread};

use super::Machine;
use super::cpus;
use crate::cli::values::Backend;
use crate::error::Error;
use crate::limits::{MOST, RING};

/// Refuses loads that each stream may have but all together may not.
pub(super) fn together(streams: &[Stream], machine: Machine<'_>) -> Result<(), Error> {
    enough_cpus(streams, machine.cpus)?;
    cpus::own_cpus(streams)?;
    let workers: u64 = streams.iter().map(|stream| u64::from(worker_count(stream))).sum();
    if workers > u64::from(MOST) {
        return Err(too_many_workers(workers));
    }
    enough_memory(streams, machine.memory)
}

pub(super) fn enough_depth(stream: &Stream) -> Result<(), Error> {
    let (depth, workers) = (stream.pacing.queue_depth(), worker_count(stream));
    if depth >= workers {
        return Ok(());
    }
    Err(Error::option(
        format!("--queue-depth {depth}"),
        format!("{workers} workers share it, so some would have nothing to do"),
        format!("use {}, or a queue depth from {workers} up", at_most(depth)),
    ))
}

/// At most this many workers, as the remedy for too many.
fn at_most(workers: u32) -> String {
    match workers {
        1 => "one worker in all".to_owned(),
        n => format!("at most {n} workers in all"),
    }
}

pub(super) fn too_deep(depth: u64) -> Error {
    let problem = format!("{depth} I/Os in flight in all are more than {MOST}");
    Error::option("--queue-depth", problem, "choose fewer")
}

pub(super) fn too_many_workers(workers: u64) -> Error {
    Error::option(
        "--workers",
        format!("{workers} threads are more than {MOST}"),
        "use fewer; one for each core is enough",
    )
}

/// Refuses depths that no io_uring can hold, if io_uring may be the backend.
pub(super) fn ring_holds(stream: &Stream, backend: Backend, ring: RingMode) -> Result<(), Error> {
    let (depth, workers) = (stream.pacing.queue_depth(), worker_count(stream));
    let each = depth.div_ceil(workers);
    let may_be_uring = matches!(backend, Backend::Auto | Backend::Named(BackendKind::Uring));
    // A submission thread releases the places some time after it took their entries.
    let (most, with) = match ring.submission_thread {
        Some(_) => (RING / 2, " with --sqpoll"),
        None => (RING, ""),
    };
    if each <= most || !may_be_uring {
        return Ok(());
    }
    Err(Error::option(
        format!("--queue-depth {depth}"),
        format!("io_uring holds at most {most} I/Os for each worker{with}, not {each}"),
        match ring {
            RingMode::USUAL => "choose fewer, or more --workers, or --backend aio",
            _ => "choose fewer, or more --workers",
        },
    ))
}

/// Refuses a CPU for the submission thread that several threads would have to share.
pub(super) fn own_cpu(stream: &Stream, ring: RingMode) -> Result<(), Error> {
    let workers = worker_count(stream);
    match ring.submission_thread {
        Some(SubmissionThread { cpu: Some(cpu) }) if 1 < workers => Err(Error::option(
            format!("--sqpoll={cpu}"),
            format!("the submission threads of {workers} workers would share this CPU"),
            "drop the CPU, or use one worker",
        )),
        _ => Ok(()),
    }
}

/// Refuses real-time priority if it would leave no CPU to everything else: the threads that serve
/// the I/Os, and the user who wants to end the run.
fn enough_cpus(streams: &[Stream], cpus: u32) -> Result<(), Error> {
    let realtime = |stream: &&Stream| stream.pacing.is_realtime();
    let workers: u32 = streams.iter().filter(realtime).map(worker_count).sum();
    if workers == 0 || workers < cpus || cpus == 0 {
        return Ok(());
    }
    let (problem, remedy) = match cpus {
        1 => ("on the only CPU nothing else could run".to_owned(), "drop it".to_owned()),
        _ => (
            format!("with a worker for each of {cpus} CPUs nothing else could run"),
            format!("use {}, or drop it", at_most(cpus - 1)),
        ),
    };
    Err(Error::option("--realtime", problem, remedy))
}

pub(super) fn enough_memory(streams: &[Stream], memory: Bytes) -> Result<(), Error> {
    let pools = pools(streams);
    if pools > memory.0 / 2 {
        return Err(Error::option(
            "--payload pool",
            format!("the pools take {}, more than half of the memory of {memory}", Bytes(pools)),
            "choose a smaller pool",
        ));
    }
    let buffers = buffers(streams).saturating_add(pools);
    if buffers <= memory.0 / 2 {
        return Ok(());
    }
    let [stream] = streams else {
        return Err(Error::option(
            "--queue-depth",
            format!(
                "the buffers of all streams take {}, more than half of the memory of {memory}",
                Bytes(buffers)
            ),
            "choose smaller queue depths or block sizes",
        ));
    };
    Err(Error::option(
        format!("--queue-depth {}", stream.pacing.queue_depth()),
        format!(
            "its buffers of {} take {}, more than half of the memory of {memory}",
            stream.block_sizes().largest(),
            Bytes(buffers)
        ),
        "choose a smaller queue depth or block size",
    ))
}

/// The memory of the streams' buffers. They are whole pages, and data from a read is never written.
pub fn buffers(streams: &[Stream]) -> u64 {
    let of = |stream: &Stream| {
        let sets = if 0.0 < stream.read_share() && stream.read_share() < 1.0 { 2 } else { 1 };
        let page_block = stream.block_sizes().largest().0.next_multiple_of(4096);
        u64::from(stream.pacing.queue_depth()).saturating_mul(sets * page_block)
    };
    streams.iter().map(of).fold(0, u64::saturating_add)
}

/// The memory of the pools from which streams write. Streams with the same pool share it.
pub fn pools(streams: &[Stream]) -> u64 {
    let mut pools: Vec<(&Payload, bool)> = Vec::new();
    for stream in streams.iter().filter(|stream| stream.read_share() < 1.0) {
        let pool = (&stream.payload, stream.workplace.large_pages);
        if matches!(pool.0, Payload::Pool { .. }) && !pools.contains(&pool) {
            pools.push(pool);
        }
    }
    let size = |(payload, _): &(&Payload, bool)| match payload {
        Payload::Pool { size, .. } => size.0,
        _ => 0,
    };
    pools.iter().map(size).fold(0, u64::saturating_add)
}
