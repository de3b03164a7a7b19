//! The places of a stream's I/Os within its regions, and their sizes.

use fathom_core::Bytes;
use fathom_core::spec::{BlockSizes, Kind, Pattern, Sequence, Starts, Stream, check_pattern};

use crate::cli::described::StreamArgs;
use crate::cli::options::LoadArgs;
use crate::error::Error;
use crate::limits::LARGEST_BLOCK;

/// The typed pattern, with the other options about it.
pub(super) fn pattern(load: &LoadArgs) -> Result<Pattern, Error> {
    match (load.no_repeat, load.start_distance, &load.pattern) {
        (true, _, pattern) if *pattern != Pattern::RANDOM => Err(Error::option(
            "--no-repeat",
            format!("with {pattern} I/Os, the pattern itself decides which offsets repeat"),
            "drop it, or use --pattern random",
        )),
        (true, Some(_), _) | (false, Some(_), Pattern::Random(_) | Pattern::Mixed { .. }) => {
            Err(Error::option(
                "--start-distance",
                "random I/Os start anywhere",
                "drop it, or use --pattern sequential",
            ))
        }
        (false, Some(_), Pattern::Interlocked { .. } | Pattern::Shuffled) => Err(Error::option(
            "--start-distance",
            "interlocked workers start together, at one pointer",
            "drop it, or use --pattern sequential",
        )),
        (false, Some(Bytes(0)), Pattern::Sequential(_)) => Err(Error::option(
            "--start-distance 0",
            "all workers would do the same I/Os",
            "write a distance such as 1g",
        )),
        (true, None, _) => Ok(Pattern::Shuffled),
        (false, Some(distance), Pattern::Sequential(sequence)) => {
            let starts = Starts::Apart(distance);
            Ok(Pattern::Sequential(Sequence { starts, ..*sequence }))
        }
        (false, None, pattern) => Ok(pattern.clone()),
    }
}

/// Refuses a pattern that contradicts the rest of the stream.
pub(super) fn fits_pattern(stream: &Stream) -> Result<(), Error> {
    Ok(check_pattern(stream)?)
}

/// The typed block sizes, for both directions.
pub(super) fn block_sizes(args: &StreamArgs) -> Result<BlockSizes, Error> {
    let load = &args.load;
    let reads = ("--block-size", &load.block_size);
    let writes = match &load.write_block_size {
        Some(_) if load.read_share == 1.0 => {
            return Err(Error::option(
                "--write-block-size",
                "all I/Os are reads, so this has no effect",
                "drop it, or ask for writes with --read-share",
            ));
        }
        Some(_) if load.read_share == 0.0 => {
            return Err(Error::option(
                "--write-block-size",
                "there are no reads that could have another size",
                "use --block-size",
            ));
        }
        Some(typed) => ("--write-block-size", typed),
        None => reads,
    };
    for (option, sizes) in [reads, writes] {
        sizes.0.iter().try_for_each(|(size, _)| possible_size(option, *size))?;
        let mut seen: Vec<Bytes> = sizes.0.iter().map(|(size, _)| *size).collect();
        seen.sort_unstable();
        if let Some(twice) = seen.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(Error::option(
                option,
                format!("{} is there twice", twice[0]),
                "give it once, with both weights together",
            ));
        }
    }
    Ok(BlockSizes::weighted(&reads.1.0, &writes.1.0))
}

/// Refuses a block of size zero, or one that the kernel would split.
pub(super) fn possible_size(option: &str, size: Bytes) -> Result<(), Error> {
    if size != Bytes(0) && size <= LARGEST_BLOCK {
        return Ok(());
    }
    Err(Error::option(
        format!("{option} {size}"),
        "a block is from 1 B to 1 GiB",
        "choose a size such as 4k or 1m",
    ))
}

/// The I/Os to each target, if they differ from target to target.
pub(super) fn kinds(args: &StreamArgs) -> Result<Vec<Kind>, Error> {
    let kinds: Vec<Kind> = args.aims.iter().filter_map(|aim| aim.kind.clone()).collect();
    for size in kinds.iter().flat_map(|kind| kind.block_sizes.all()) {
        possible_size("--block-size", size)?;
    }
    Ok(kinds)
}
