//! Turns the typed options about access into their meaning: contradictions and options without an
//! effect are refused here.

use fathom_core::Bytes;
use fathom_core::facts::Target;
use fathom_core::spec::{Access, BackendKind, Cache, Kind, Region, RingMode, Stream, SyncMode};

use super::regions::{aligned, exactly};
use crate::cli::options::AccessArgs;
use crate::cli::values::Backend;
use crate::error::Error;

/// The access of a stream to its targets, given whether it writes.
///
/// # Errors
///
/// When an option contradicts another one or has no effect.
pub fn settle(typed: &AccessArgs, writes: bool) -> Result<Access, Error> {
    of_io_uring_alone(typed)?;
    of_the_page_cache(typed)?;
    of_mappings(typed)?;
    Ok(Access {
        cache: if typed.buffered || typed.mmap { Cache::Buffered } else { Cache::Direct },
        mapped: typed.mmap,
        sync: sync_mode(typed, writes)?,
        hint: typed.fadvise,
        uncached: typed.dontcache,
        atomic: atomic(typed, writes)?,
        ring: RingMode { polled: typed.polled, submission_thread: typed.sqpoll },
    })
}

/// Refuses an access that a target of the stream does not support: with direct I/O distances have
/// to be multiples of the target's alignment.
///
/// # Errors
///
/// When there is such a target.
pub fn fits(stream: &Stream, targets: &[Target]) -> Result<(), Error> {
    if stream.access.cache == Cache::Buffered {
        return Ok(());
    }
    let distances = |kind: &Kind| {
        [
            ("--align", kind.align),
            ("--pattern with a stride of", kind.pattern.stride()),
            ("--start-distance", kind.pattern.start_distance()),
        ]
    };
    let distances: Vec<_> = stream.ios.kinds().into_iter().flat_map(distances).collect();
    for (place, region) in stream.regions.iter().enumerate() {
        let target = &targets[region.target as usize];
        if stream.access.atomic {
            let own = stream.of_region(place).ios;
            let writes = own.kinds().into_iter().filter(|kind| kind.read_share < 1.0);
            for kind in writes {
                allows_atomic(kind, target, region)?;
            }
        }
        let alignment = target.direct_alignment.unwrap_or(Bytes(1));
        for &(option, distance) in &distances {
            aligned(option, distance.unwrap_or(Bytes(0)), alignment, &target.name)?;
        }
    }
    Ok(())
}

fn sync_mode(typed: &AccessArgs, writes: bool) -> Result<SyncMode, Error> {
    let (option, mode) = match (typed.write_through, typed.sync) {
        (true, Some(mode)) => {
            return Err(Error::option(
                "--write-through",
                format!("it means --sync dsync, and --sync {} is given too", mode.name()),
                "give one of them",
            ));
        }
        (true, None) => ("--write-through".to_owned(), SyncMode::Dsync),
        (false, Some(mode)) => (format!("--sync {}", mode.name()), mode),
        (false, None) => return Ok(SyncMode::None),
    };
    if mode != SyncMode::None && !writes {
        return Err(Error::option(
            option,
            "all I/Os are reads, so this has no effect",
            "drop it, or ask for writes with --read-share",
        ));
    }
    Ok(mode)
}

/// Whether each write is atomic.
fn atomic(typed: &AccessArgs, writes: bool) -> Result<bool, Error> {
    let refuse = |problem: &str, remedy: &str| Err(Error::option("--atomic", problem, remedy));
    match typed.atomic {
        false => Ok(false),
        true if !writes => refuse(
            "all I/Os are reads, so this has no effect",
            "drop it, or ask for writes with --read-share",
        ),
        true if typed.buffered => refuse(
            "the page cache writes whole pages at a time of its own: only direct I/O is atomic",
            "drop it, or drop --buffered",
        ),
        true if typed.mmap => {
            refuse("it applies to system calls, and --mmap makes none", "drop one of them")
        }
        true => Ok(true),
    }
}

/// Refuses atomic writes that a target does not allow, or that would cross one of its boundaries.
fn allows_atomic(kind: &Kind, target: &Target, region: &Region) -> Result<(), Error> {
    let refuse = |problem: String, remedy: String| Err(Error::option("--atomic", problem, remedy));
    if let Some(namespace) = &target.namespace {
        return refuse(
            format!("a command to {} does not say that it is atomic", target.name),
            format!("measure {}, or drop it", namespace.block_device),
        );
    }
    let Some(limits) = target.atomic_writes else {
        return refuse(
            format!("{} allows no atomic writes, or this kernel does not tell", target.name),
            "drop it, or name a target that allows them, such as an NVMe disk with a power-fail \
             atomic write unit, or a file on XFS or ext4 on one"
                .to_owned(),
        );
    };
    let Some(block) = kind.block_sizes.only() else {
        return refuse(
            format!(
                "I/Os of {} begin at places that only some of them may be at",
                kind.block_sizes
            ),
            "give reads and writes one --block-size".to_owned(),
        );
    };
    if !limits.allow(block) {
        return refuse(
            format!(
                "{} allows atomic writes of a power of two from {} to {}, not of {}",
                target.name,
                limits.smallest,
                limits.largest,
                exactly(block)
            ),
            "choose such a --block-size".to_owned(),
        );
    }
    let distances = [
        ("--offset", Some(region.offset)),
        ("--align", kind.align),
        ("--pattern with a stride of", kind.pattern.stride()),
        ("--start-distance", kind.pattern.start_distance()),
    ];
    for (option, distance) in distances {
        let distance = distance.unwrap_or(Bytes(0));
        if !distance.0.is_multiple_of(block.0) {
            return refuse(
                format!(
                    "an atomic write begins at a multiple of its size, {block}, and {option} {} is \
                     none",
                    exactly(distance)
                ),
                format!("choose {} bytes", distance.0.next_multiple_of(block.0)),
            );
        }
    }
    Ok(())
}

/// Refuses options about the page cache if it is not used.
fn of_the_page_cache(typed: &AccessArgs) -> Result<(), Error> {
    let asked = [("--fadvise", typed.fadvise.is_some()), ("--dontcache", typed.dontcache)];
    match asked.iter().find(|(_, asked)| *asked && !typed.buffered && !typed.mmap) {
        Some((option, _)) => Err(Error::option(
            *option,
            "direct I/O goes past the page cache, so this has no effect",
            "drop it, or add --buffered",
        )),
        None => Ok(()),
    }
}

/// Refuses options that only system calls support if I/Os are copies.
fn of_mappings(typed: &AccessArgs) -> Result<(), Error> {
    if !typed.mmap {
        return Ok(());
    }
    let refuse =
        |option: String, problem: &str, remedy: &str| Err(Error::option(option, problem, remedy));
    if let Backend::Named(kind @ (BackendKind::Aio | BackendKind::Uring)) = typed.backend {
        return refuse(
            "--mmap".to_owned(),
            &format!(
                "only the sync backend copies from and to mapped targets, not {}",
                kind.name()
            ),
            "drop it, or use --backend sync",
        );
    }
    if let Some(mode @ (SyncMode::Sync | SyncMode::RwfDsync | SyncMode::RwfSync)) = typed.sync {
        return refuse(
            format!("--sync {}", mode.name()),
            "only msync makes writes to a mapped target durable",
            "use --sync dsync",
        );
    }
    let of_calls = [
        ("--dontcache", typed.dontcache),
        ("--polled", typed.polled),
        ("--sqpoll", typed.sqpoll.is_some()),
    ];
    match of_calls.iter().find(|(_, asked)| *asked) {
        Some((option, _)) => refuse(
            (*option).to_owned(),
            "it applies to system calls, and --mmap makes none",
            "drop one of them",
        ),
        None => Ok(()),
    }
}

/// Refuses options that only io_uring supports if another backend is requested, and polling if
/// there is nothing to poll.
fn of_io_uring_alone(access: &AccessArgs) -> Result<(), Error> {
    let typed = [("--polled", access.polled), ("--sqpoll", access.sqpoll.is_some())];
    let Some((option, _)) = typed.iter().find(|(_, typed)| *typed) else { return Ok(()) };
    if let Backend::Named(kind @ (BackendKind::Aio | BackendKind::Sync)) = access.backend {
        return Err(Error::option(
            *option,
            format!("only io_uring can do this, not the {} backend", kind.name()),
            "drop it, or use --backend uring",
        ));
    }
    if access.polled && access.buffered {
        return Err(Error::option(
            "--polled",
            "the page cache completes I/Os by itself, so there is no queue to look into",
            "drop it, or drop --buffered",
        ));
    }
    Ok(())
}
