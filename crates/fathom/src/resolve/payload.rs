//! The payload, and when it is flushed.

use fathom_core::Bytes;
use fathom_core::measure::Direction;
use fathom_core::spec::{BlockSizes, Flush, Kind, Payload};

use super::regions::exactly;
use crate::cli::described::StreamArgs;
use crate::cli::options::PayloadArgs;
use crate::error::Error;

/// The payload.
pub(super) fn payload(
    args: &StreamArgs,
    sizes: &BlockSizes,
    kinds: &[Kind],
) -> Result<Payload, Error> {
    let typed = &args.load.payload;
    let options = [
        ("--payload", typed.payload.is_some()),
        ("--compressible", typed.compressible.is_some()),
        ("--dedup", typed.dedup.is_some()),
    ];
    let Some((first, _)) = options.iter().find(|(_, typed)| *typed) else {
        return Ok(Payload::UNIQUE);
    };
    if args.load.read_share == 1.0 {
        return Err(Error::option(
            *first,
            "all I/Os are reads, so this has no effect",
            "drop it, or ask for writes with --read-share",
        ));
    }
    let payload = content(typed)?;
    let largest = kinds.iter().map(|kind| kind.block_sizes.largest()).max();
    let block = largest.unwrap_or(Bytes(0)).max(sizes.largest());
    match &payload {
        Payload::Random { dedup, .. } if *dedup > 0.0 => {
            let unit = Bytes(4096);
            let sizes = sizes.of(Direction::Write).iter().map(|one| ("--block-size", one.size));
            let offsets = args.aims.iter().map(|aim| aim.offset.unwrap_or(args.access.offset));
            let offsets = offsets.map(|offset| ("--offset", offset));
            let align = args.load.align.map(|align| ("--align", align));
            for (option, value) in sizes.chain(offsets).chain(align) {
                if !value.0.is_multiple_of(unit.0) {
                    return Err(Error::option(
                        format!("{option} {}", exactly(value)),
                        format!(
                            "with --dedup it is a multiple of {unit}, the block that is repeated"
                        ),
                        format!(
                            "choose {} bytes, or drop --dedup",
                            value.0.next_multiple_of(unit.0)
                        ),
                    ));
                }
            }
        }
        Payload::Pool { size, .. } if *size < block || Payload::LARGEST_POOL < *size => {
            return Err(Error::option(
                format!("--payload pool:{}", exactly(*size)),
                format!(
                    "a pool has from one block of {} to {}",
                    exactly(block),
                    Payload::LARGEST_POOL
                ),
                "choose a size in between",
            ));
        }
        _ => {}
    }
    Ok(payload)
}

/// The payload as typed in up to three options.
///
/// # Errors
///
/// When they contradict each other.
fn content(typed: &PayloadArgs) -> Result<Payload, Error> {
    let random = |option, share: Option<f64>| match (&typed.payload, share) {
        (None | Some(Payload::Random { .. }), share) => Ok(share.unwrap_or(0.0)),
        (Some(_), None) => Ok(0.0),
        (Some(_), Some(_)) => Err(Error::option(
            option,
            "it applies to random data only",
            "drop it, or drop --payload",
        )),
    };
    let compressible = random("--compressible", typed.compressible)?;
    let dedup = random("--dedup", typed.dedup)?;
    Ok(match &typed.payload {
        None | Some(Payload::Random { .. }) => Payload::Random { compressible, dedup },
        Some(other) => other.clone(),
    })
}

/// When the writes are flushed.
pub(super) fn flush(args: &StreamArgs) -> Result<Option<Flush>, Error> {
    let typed = &args.load.flush;
    let (option, every, data_only) = match (typed.fsync, typed.fdatasync) {
        (Some(_), Some(_)) => {
            return Err(Error::option(
                "--fsync",
                "a flush is an fsync or an fdatasync, and --fdatasync is given too",
                "give one of them",
            ));
        }
        (Some(every), None) => ("--fsync", every, false),
        (None, Some(every)) => ("--fdatasync", every, true),
        (None, None) if typed.no_barrier => {
            return Err(Error::option(
                "--no-barrier",
                "nothing is flushed, so this has no effect",
                "drop it, or ask for flushes with --fsync or --fdatasync",
            ));
        }
        (None, None) => return Ok(None),
    };
    let refuse = |problem: &str, remedy: &str| Err(Error::option(option, problem, remedy));
    if args.load.read_share == 1.0 {
        return refuse(
            "all I/Os are reads, so there is nothing to flush",
            "drop it, or ask for writes with --read-share",
        );
    }
    if args.access.polled {
        return refuse("a ring that is polled takes no flushes", "drop it, or drop --polled");
    }
    Ok(Some(Flush { every, data_only, barrier: !typed.no_barrier }))
}
