//! The steps of `quick`, and the size of its scratch file. Pure.

use fathom_core::Refusal;
use fathom_core::experiment::ReductionProbe;
use fathom_core::facts::{Target, TargetKind};
use fathom_core::spec::{Access, BackendKind, Pattern, Region, Workers};
use fathom_core::{Bytes, Span};
use fathom_engine::target::Overwrite;

use crate::cli::args::Quick;
use crate::cli::described::Described;
use crate::cli::options::{AccessArgs, LoadArgs, Promised};
use crate::cli::values::{Backend, Depth, Sizes};
use crate::error::Error;
use crate::resolve::{self, Machine, Spec};

/// The smallest useful scratch file.
pub const SMALLEST: Bytes = Bytes(64 * Bytes::MIB);
/// The default size of a scratch file, at least and at most.
const USUAL: (Bytes, Bytes) = (Bytes(Bytes::GIB), Bytes(8 * Bytes::GIB));
/// The part of the minute that writing a scratch file may take.
pub const WRITING_TIME: Span = Span::from_secs(15);

/// One step of the portrait.
#[derive(Clone, Debug, PartialEq)]
struct Shape {
    pattern: Pattern,
    block_size: Bytes,
    read_share: f64,
    queue_depth: u32,
}

/// The steps: the loads of a file server, a log, a lone reader, a busy reader, a busy writer and a
/// database.
const SHAPES: [Shape; 6] = [
    Shape::new(Pattern::SEQUENTIAL, Bytes::MIB, 1.0, 8),
    Shape::new(Pattern::SEQUENTIAL, Bytes::MIB, 0.0, 8),
    Shape::new(Pattern::RANDOM, 4 * Bytes::KIB, 1.0, 1),
    Shape::new(Pattern::RANDOM, 4 * Bytes::KIB, 1.0, 32),
    Shape::new(Pattern::RANDOM, 4 * Bytes::KIB, 0.0, 32),
    Shape::new(Pattern::RANDOM, 8 * Bytes::KIB, 0.7, 32),
];

impl Shape {
    const fn new(pattern: Pattern, block_size: u64, read_share: f64, queue_depth: u32) -> Self {
        Self { pattern, block_size: Bytes(block_size), read_share, queue_depth }
    }

    fn writes(&self) -> bool {
        self.read_share < 1.0
    }

    /// What of the promises it can be compared with: a device's IOPS are those of random I/Os, its
    /// bandwidth is that of sequential ones, and its response time is that of an idle device.
    fn comparable(&self, promised: Promised) -> Promised {
        let random = self.pattern == Pattern::RANDOM;
        let alone = self.queue_depth == 1;
        Promised {
            rated_iops: promised.rated_iops.filter(|_| random && !alone),
            rated_bandwidth: promised.rated_bandwidth.filter(|_| !random),
            promised_time: promised.promised_time.filter(|_| random && alone),
        }
    }

    /// It on a target from this offset on.
    fn described(&self, args: &Quick, offset: Bytes, seed: u64) -> Described {
        let load = LoadArgs {
            block_size: Sizes::one(self.block_size),
            read_share: self.read_share,
            pattern: self.pattern.clone(),
            queue_depth: Some(Depth::Stream(self.queue_depth)),
            workers: Workers::Total(1),
            warm_up: Some(args.warm_up),
            duration: Some(args.duration),
            seed: Some(seed),
            promised: self.comparable(args.promised),
            ..LoadArgs::default()
        };
        let access = AccessArgs {
            offset,
            buffered: args.buffered,
            backend: args.backend,
            ..AccessArgs::default()
        };
        Described::one_stream(Vec::from([args.path.clone()]), load, access)
    }
}

/// The steps to measure, and those that are left out.
#[derive(Clone, Debug, PartialEq)]
pub struct Portrait {
    /// The steps.
    pub spec: Spec,
    /// Steps that would write to targets without consent.
    pub left_out: usize,
    /// The probe before them: whether the target saves on data. None if nothing may be written, or
    /// only to the page cache.
    pub probe: Option<ReductionProbe>,
}

/// The owner of the target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// Ours: a scratch file, whose first bytes are not measured.
    Scratch {
        /// The start of the measured part.
        start: Bytes,
    },
    /// The user's.
    User,
}

/// Determines the steps on a target.
///
/// # Errors
///
/// When an option has no effect or the target does not fit.
pub fn portrait(
    args: &Quick,
    target: Target,
    owner: Owner,
    machine: Machine<'_>,
) -> Result<Portrait, Error> {
    let simulated = target.kind == TargetKind::Simulated;
    if simulated {
        without_effect_in_simulation(args)?;
    }
    let start = match owner {
        Owner::Scratch { start } => start,
        Owner::User => Bytes(0),
    };
    let free_to_write = simulated || owner != Owner::User || consents(args);
    let shapes: Vec<Shape> =
        SHAPES.into_iter().filter(|shape| free_to_write || !shape.writes()).collect();
    let seed = args.seed.unwrap_or(machine.fresh_seed);
    let access = if args.buffered { Access::BUFFERED } else { Access::DIRECT };
    let mut points = Vec::with_capacity(shapes.len());
    for (index, shape) in (0..).zip(&shapes) {
        let step = shape.described(args, start, seed.wrapping_add(index));
        let spec = resolve::settle(&step, Vec::from([target.clone()]), machine)
            .map_err(|blame| in_words_of_a_portrait(blame.error, shape, &target))?;
        points.extend(spec.points);
    }
    let room = Region { target: 0, offset: start, length: Bytes(target.size.0 - start.0) };
    let probe = (free_to_write && !args.buffered && !args.no_probe)
        // The data of its trials must differ from that of the steps.
        .then(|| ReductionProbe::new(room, &target, access, !seed))
        .flatten();
    let consent = match owner {
        // fathom made it and holds it: it cannot be another program's file of the same size.
        Owner::Scratch { .. } => {
            let name = Vec::from([target.name.clone()]);
            Overwrite { allowed: true, destroy_in_use: name, ..Overwrite::default() }
        }
        Owner::User => resolve::consent::permission(
            &args.consent,
            |_| consents(args) || simulated,
            |_| None,
            std::slice::from_ref(&target),
        )?,
    };
    let spec = Spec {
        points,
        targets: Vec::from([target]),
        backend: if simulated { Backend::Named(BackendKind::Sim) } else { args.backend },
        consent,
    };
    Ok(Portrait { left_out: SHAPES.len() - shapes.len(), probe, spec })
}

fn consents(args: &Quick) -> bool {
    args.consent.first().is_some()
}

/// The steps are fixed: if one does not fit the target, another block size is not an option.
fn in_words_of_a_portrait(error: Error, step: &Shape, target: &Target) -> Error {
    let block = step.block_size;
    match error {
        Error::Refusal(Refusal { about, problem, .. }) if about.starts_with("--block-size") => {
            let remedy = if target.size < block {
                format!("fill it with `{}`", resolve::regions::refill(target))
            } else {
                "go through the page cache with --buffered, or run other loads with `fathom run`"
                    .to_owned()
            };
            Error::target(&target.name, format!("a block of {block}: {problem}"), remedy)
        }
        other => other,
    }
}

/// Refuses options that only make sense for a folder, or only for an existing target.
///
/// # Errors
///
/// When such an option was typed.
pub fn fits_the_place(args: &Quick, folder: bool) -> Result<(), Error> {
    let refuse = |option: &str, problem: &str| Err(Error::option(option, problem, "drop it"));
    if folder {
        return match args.consent.first() {
            Some(option) => refuse(option, "in a folder only fathom's own scratch file is written"),
            None => Ok(()),
        };
    }
    if args.size.is_some() {
        return Err(Error::option(
            "--size",
            "it is the size of the scratch file, and there is none on an existing target",
            "drop it, or name a folder",
        ));
    }
    if args.remove_leftovers {
        return refuse("--remove-leftovers", "scratch files are looked for in a folder");
    }
    Ok(())
}

fn without_effect_in_simulation(args: &Quick) -> Result<(), Error> {
    let typed = [("--buffered", args.buffered), ("--backend", args.backend != Backend::Auto)];
    let typed = typed.iter().find(|(_, typed)| *typed).map(|(option, _)| *option);
    match typed.or(args.consent.first()) {
        Some(option) => {
            Err(Error::option(option, "it has no effect on a simulated device", "drop it"))
        }
        None => Ok(()),
    }
}

/// The size of the measured part of a scratch file.
///
/// Without `--size`: twice the memory, from 1 to 8 GiB, so that no cache of the machine holds it;
/// at most a quarter of the free space; whole MiB. How much of it is written in [`WRITING_TIME`] is
/// determined while it is written.
///
/// # Errors
///
/// When there is not enough space.
pub fn scratch_size(
    typed: Option<Bytes>,
    memory: Bytes,
    available: Option<Bytes>,
    folder: &str,
) -> Result<Bytes, Error> {
    let whole = |bytes: u64| Bytes(bytes - bytes % Bytes::MIB);
    match typed {
        Some(size) if size < Bytes(Bytes::MIB) => Err(Error::option(
            format!("--size {size}"),
            "a scratch file has at least 1 MiB",
            format!("choose {SMALLEST} or more"),
        )),
        Some(size) => match available {
            // The marker's MiB comes on top.
            Some(available) if size.0.saturating_add(Bytes::MIB) > available.0 => {
                Err(Error::option(
                    format!("--size {size}"),
                    format!("{folder} has only {available} free"),
                    "choose a smaller one, or free some space",
                ))
            }
            _ => Ok(whole(size.0)),
        },
        None => {
            let usual = memory.0.saturating_mul(2).clamp(USUAL.0.0, USUAL.1.0);
            let size = match available {
                Some(available) => usual.min(available.0 / 4),
                None => usual,
            };
            if size < SMALLEST.0 {
                return Err(Error::target(
                    folder,
                    format!(
                        "a scratch file of {SMALLEST} would take more than a quarter of the {} \
                         that are free",
                        available.unwrap_or_default()
                    ),
                    "free some space, choose a size with --size, or name another folder",
                ));
            }
            Ok(whole(size))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: u64 = Bytes::GIB;

    #[test]
    fn a_scratch_file_suits_the_memory_and_the_space() {
        let size = |memory: u64, available: u64| {
            scratch_size(None, Bytes(memory), Some(Bytes(available)), "/data")
        };
        assert_eq!(size(16 * GIB, 1000 * GIB).unwrap(), Bytes(8 * GIB));
        assert_eq!(size(2 * GIB, 1000 * GIB).unwrap(), Bytes(4 * GIB));
        assert_eq!(size(GIB / 4, 1000 * GIB).unwrap(), Bytes(GIB));
        assert_eq!(size(16 * GIB, 8 * GIB).unwrap(), Bytes(2 * GIB));
        assert_eq!(size(16 * GIB, GIB / 4).unwrap(), SMALLEST);
        let error = size(16 * GIB, GIB / 5).unwrap_err();
        assert!(error.to_string().contains("/data: a scratch file of 64 MiB"), "{error}");
        assert!(scratch_size(None, Bytes(u64::MAX), None, "/").is_ok());
    }

    #[test]
    fn a_typed_size_only_has_to_fit() {
        let size = |typed: u64, available: u64| {
            scratch_size(Some(Bytes(typed)), Bytes(GIB), Some(Bytes(available)), "/data")
        };
        assert_eq!(size(20 * GIB, 30 * GIB).unwrap(), Bytes(20 * GIB));
        assert_eq!(size(2 * Bytes::MIB + 5, GIB).unwrap(), Bytes(2 * Bytes::MIB));
        assert!(size(GIB, GIB).unwrap_err().to_string().contains("only 1 GiB free"));
        assert!(size(1000, GIB).is_err());
    }
}
