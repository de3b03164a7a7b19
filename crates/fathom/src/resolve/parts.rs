//! The parts of a stream whose I/Os are not all alike, and their common properties.

use fathom_core::measure::Direction;
use fathom_core::spec::{Ios, Kind, Part, Stream};

use super::pattern;
use crate::cli::described::StreamArgs;
use crate::cli::parts::PartArg;
use crate::cli::values::Sizes;
use crate::error::Error;

/// The parts of a stream, and the stream with their common properties; none if all its I/Os are
/// alike.
///
/// # Errors
///
/// When the shares do not add up, or an option cannot be combined with parts.
pub fn settle(args: &StreamArgs) -> Result<Option<(StreamArgs, Vec<Part>)>, Error> {
    let load = &args.load;
    if load.part.is_empty() {
        return Ok(None);
    }
    for (option, typed, remedy) in [
        ("--align", load.align.is_some(), "write align=4k in the parts that it is for"),
        ("--no-repeat", load.no_repeat, "drop it"),
        ("--start-distance", load.start_distance.is_some(), "drop it"),
    ] {
        if typed {
            return Err(Error::option(option, "each part has a pattern of its own", remedy));
        }
    }
    whole(&load.part)?;
    let part = |typed: &PartArg| -> Result<Part, Error> {
        Ok(Part { weight: typed.weight, kind: kind(typed, args)? })
    };
    let parts: Vec<Part> = load.part.iter().map(part).collect::<Result<_, _>>()?;
    let ios = Ios::Drawn(parts.clone());
    let all = Stream { ios, ..Stream::reading(String::new(), Vec::new()) };
    let sizes = |direction| {
        Sizes(all.block_sizes().of(direction).iter().map(|one| (one.size, one.share)).collect())
    };
    let mut together = args.clone();
    let load = &mut together.load;
    load.pattern = parts[0].kind.pattern.clone();
    load.read_share = all.read_share();
    (load.block_size, load.write_block_size) = match all.only_direction() {
        Some(direction) => (sizes(direction), None),
        None => (sizes(Direction::Read), Some(sizes(Direction::Write))),
    };
    Ok(Some((together, parts)))
}

/// Refuses shares that do not add up to 100 %, and shares together with weights.
fn whole(parts: &[PartArg]) -> Result<(), Error> {
    let percents = parts.iter().filter(|part| part.is_percent).count();
    if percents > 0 && percents < parts.len() {
        return Err(Error::option(
            "--part",
            "some shares have a % and some have none",
            "write it with all or with none",
        ));
    }
    let sum: f64 = parts.iter().map(|part| part.weight).sum();
    if percents > 0 && (sum - 100.0).abs() > 1e-6 {
        return Err(Error::option(
            "--part",
            format!("the shares add up to {sum} %, not 100 %"),
            "change them, or drop the % to give weights",
        ));
    }
    Ok(())
}

/// The I/Os of a part, with the stream's settings for the rest.
fn kind(part: &PartArg, stream: &StreamArgs) -> Result<Kind, Error> {
    let mut own = stream.clone();
    let load = &mut own.load;
    load.read_share = part.read_share.unwrap_or(load.read_share);
    if let Some(sizes) = &part.block_size {
        load.block_size = sizes.clone();
        load.write_block_size = None;
    }
    // The stream may have a block size for writes that this part does not have.
    if load.read_share == 1.0 {
        load.write_block_size = None;
    } else if load.read_share == 0.0
        && let Some(writes) = load.write_block_size.take()
    {
        load.block_size = writes;
    }
    load.write_block_size = part.write_block_size.clone().or(load.write_block_size.take());
    if let Some(pattern) = &part.pattern {
        load.pattern = pattern.clone();
    }
    Ok(Kind {
        pattern: pattern::pattern(load)?,
        align: part.align,
        block_sizes: pattern::block_sizes(&own)?,
        read_share: own.load.read_share,
    })
}
