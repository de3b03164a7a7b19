//! The ranges of the targets that a stream addresses.

use fathom_core::facts::{Target, TargetKind};
use fathom_core::spec::{Access, BackendKind, BlockSizes, Cache, Region};
use fathom_core::{Bytes, typed_path};
use fathom_engine::target::check_command_size;

use crate::cli::described::{Aim, StreamArgs};
use crate::cli::values::Backend;
use crate::error::Error;

/// The regions, one for each target.
pub(super) fn regions(
    args: &StreamArgs,
    targets: &[Target],
    access: Access,
    sizes: &BlockSizes,
) -> Result<Vec<Region>, Error> {
    let mut regions = Vec::with_capacity(args.aims.len());
    for aim in &args.aims {
        // Regions are whole multiples of the smallest block, and have room for the largest.
        let sizes = aim.kind.as_ref().map_or(sizes, |kind| &kind.block_sizes);
        let (block, largest) = (sizes.smallest(), sizes.largest());
        let target = &targets[aim.target as usize];
        let offset = aim.offset.unwrap_or(args.access.offset);
        if target.size == Bytes(0) {
            return Err(Error::target(
                &target.name,
                "it is empty, so there is nothing to measure",
                match target.kind {
                    TargetKind::File => format!("fill it with `{}`", refill(target)),
                    _ => "attach or insert a medium".to_owned(),
                },
            ));
        }
        if offset >= target.size {
            return Err(Error::option(
                format!("--offset {offset}"),
                format!("{} ends at {}", target.name, target.size),
                "choose a smaller one",
            ));
        }
        let end = aim.end.map_or(target.size, |end| end.min(target.size));
        let rest = Bytes(end.0.saturating_sub(offset.0));
        let typed = aim.size.or(args.access.size);
        let length = match typed {
            Some(size) if size > rest => {
                return Err(Error::option(
                    format!("--size {size}"),
                    format!("{} has only {rest} from offset {offset}", target.name),
                    "choose a smaller one, or write a larger file with `fathom prepare`",
                ));
            }
            Some(size) => size,
            None if aim.end.is_some() && has_own_step(aim, args) => rest,
            None => Bytes(rest.0 - rest.0 % block.0),
        };
        if length < largest {
            return Err(too_small(typed, rest, largest, &target.name));
        }
        if typed.is_some() && !length.0.is_multiple_of(block.0) {
            // 4097 bytes, shown as 4 KiB, would look valid.
            return Err(Error::option(
                format!("--size {}", exactly(length)),
                format!("it is no whole number of blocks of {}", exactly(block)),
                format!("choose {} bytes", length.0 - length.0 % block.0),
            ));
        }
        for size in sizes.all() {
            check_command_size(target, size)?;
        }
        if access.cache == Cache::Direct {
            let alignment = target.direct_alignment.unwrap_or(Bytes(1));
            for size in sizes.all() {
                aligned("--block-size", size, alignment, &target.name)?;
            }
            aligned("--offset", offset, alignment, &target.name)?;
        }
        regions.push(Region { target: aim.target, offset, length });
    }
    Ok(regions)
}

/// Whether starts are at other distances than whole blocks, so that the last I/O need not end a
/// whole number of blocks from the first.
fn has_own_step(aim: &Aim, args: &StreamArgs) -> bool {
    let (align, pattern) = match &aim.kind {
        Some(kind) => (kind.align, &kind.pattern),
        None => (args.load.align, &args.load.pattern),
    };
    align.or(pattern.stride()).is_some()
}

/// Why a region without room for a block is refused: the typed size, or the available one.
fn too_small(typed: Option<Bytes>, rest: Bytes, block: Bytes, target: &str) -> Error {
    match typed {
        Some(size) => Error::option(
            format!("--size {}", exactly(size)),
            format!("a block of {block} does not fit into it"),
            "choose a larger one, or a smaller --block-size",
        ),
        None => Error::option(
            format!("--block-size {block}"),
            format!("it is larger than the region of {rest} in {target}"),
            "choose a smaller block or a larger region",
        ),
    }
}

/// Refuses trims that are impossible.
pub(super) fn trims(
    args: &StreamArgs,
    targets: &[Target],
    sizes: &BlockSizes,
) -> Result<(), Error> {
    if args.load.trim_share == 0.0 {
        return Ok(());
    }
    let refuse =
        |problem: String, remedy: &str| Err(Error::option("--trim-share", problem, remedy));
    if args.access.backend == Backend::Named(BackendKind::Aio) {
        return refuse(
            "native AIO has no trims".to_owned(),
            "drop it, or use --backend uring or sync",
        );
    }
    if args.access.polled {
        return refuse(
            "a ring that is polled takes no trims".to_owned(),
            "drop it, or drop --polled",
        );
    }
    for aim in &args.aims {
        let target = &targets[aim.target as usize];
        match target.kind {
            TargetKind::CharacterDevice | TargetKind::NvmeGeneric => {
                let problem = format!("{} is a {}", target.name, target.kind.name());
                return refuse(problem, "name files or block devices");
            }
            // The page cache accepts any length, and a discard does not go through it.
            TargetKind::BlockDevice => {
                let sector = target.direct_alignment.unwrap_or(Bytes(512));
                for size in sizes.all() {
                    aligned("--block-size", size, sector, &target.name)?;
                }
            }
            _ => {}
        }
    }
    Ok(())
}

/// Refuses an offset that direct I/O on this target does not support, where there is no other I/O.
///
/// # Errors
///
/// When it is no multiple of the alignment.
pub fn direct_offset(offset: Bytes, target: &Target) -> Result<(), Error> {
    let alignment = target.direct_alignment.unwrap_or(Bytes(1));
    fits_alignment("--offset", (offset, ""), alignment, &target.name)
}

/// Refuses sizes and offsets that direct I/O on this target does not support.
///
/// # Errors
///
/// When the value is no multiple of the alignment.
pub(super) fn aligned(
    option: &str,
    value: Bytes,
    alignment: Bytes,
    target: &str,
) -> Result<(), Error> {
    let otherwise = ", or go through the page cache with --buffered";
    fits_alignment(option, (value, otherwise), alignment, target)
}

fn fits_alignment(
    option: &str,
    (value, otherwise): (Bytes, &str),
    alignment: Bytes,
    target: &str,
) -> Result<(), Error> {
    if value.0.is_multiple_of(alignment.0.max(1)) {
        return Ok(());
    }
    Err(Error::option(
        format!("{option} {}", value.0),
        format!("direct I/O on {target} needs a multiple of its sector of {alignment}"),
        format!("choose {} bytes{otherwise}", value.0.next_multiple_of(alignment.0)),
    ))
}

/// A size without loss: with a unit if that is exact, otherwise in bytes.
pub(super) fn exactly(size: Bytes) -> String {
    let shown = size.to_string();
    if shown.parse() == Ok(size) { shown } else { format!("{} bytes", size.0) }
}

/// The command that writes a file anew, large enough for any test.
pub fn refill(target: &Target) -> String {
    format!("fathom prepare {} --size 10g --overwrite", typed_path(&target.name))
}
