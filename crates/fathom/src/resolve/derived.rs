//! A point that an experiment elsewhere made of a load that was described here. It comes past the
//! resolver, so it may differ from what that made of the words only in what an experiment varies: how
//! much is in flight, how many workers, how fast, how long, which part of the range, and I/Os of one size
//! in random or in sequential order.

use fathom_core::spec::{Ios, Pattern, Point, Region, Stream, Workers};

use super::{Machine, Spec, access, fits, pattern, times};
use crate::error::Error;

/// The spec with this point in the place of its own.
///
/// # Errors
///
/// When the point is impossible here, or differs in more than that.
pub fn derived(spec: Spec, point: Point, machine: Machine<'_>) -> Result<Spec, Error> {
    let refuse =
        |problem: String| Err(Error::option("point", problem, "make it of the load of the words"));
    if let Err(problem) = point.possible() {
        return refuse(problem);
    }
    let own = &spec.points[0];
    if point.buckets != own.buckets || !point.looks.is_empty() {
        return refuse("it has buckets or looks of its own".to_owned());
    }
    times::interval("point", point.window, Some(point.interval))?;
    for stream in &point.streams {
        if let Some(region) = stream.regions.iter().find(|region| !is_described(&spec, region)) {
            return refuse(format!(
                "stream {} addresses {} bytes from {} on of target {}, which the words do not",
                stream.name, region.length.0, region.offset.0, region.target
            ));
        }
        if !spec.streams().any(|own| is_like(own, stream)) {
            return refuse(format!(
                "stream {} differs from those of the words in its access, its payload, where it runs, or \
                 what I/Os it has",
                stream.name
            ));
        }
        pattern::fits_pattern(stream)?;
        access::fits(stream, &spec.targets)?;
    }
    fits(&point, spec.backend, machine)?;
    Ok(Spec { points: Vec::from([point]), ..spec })
}

/// Whether a range is within one that the spec addresses.
fn is_described(spec: &Spec, region: &Region) -> bool {
    let end = |region: &Region| region.offset.0.saturating_add(region.length.0);
    spec.streams().flat_map(|stream| &stream.regions).any(|own| {
        own.target == region.target && own.offset <= region.offset && end(region) <= end(own)
    })
}

/// Whether a stream differs from a described one in nothing but what experiments vary.
fn is_like(own: &Stream, stream: &Stream) -> bool {
    let fixed = |stream: &Stream| (stream.access, stream.payload.clone(), stream.workplace.clone());
    let blocks = stream.ios.kinds().into_iter().flat_map(|kind| kind.block_sizes.all());
    let largest = blocks.max().unwrap_or_default();
    // Each of them needs room for a block in its zone.
    let sharing = match stream.workers {
        _ if !stream.zones => 1,
        Workers::PerTarget(workers) => workers,
        Workers::Total(workers) => workers.div_ceil(stream.regions.len() as u32),
    };
    let sharing = u64::from(sharing);
    let is_plain = |ios: &Ios| match ios {
        Ios::Alike(kind) => {
            (kind.pattern == Pattern::RANDOM || kind.pattern == Pattern::SEQUENTIAL)
                && kind.align.is_none()
                && kind.block_sizes.all().all(|size| pattern::possible_size("point", size).is_ok())
        }
        _ => false,
    };
    fixed(own) == fixed(stream)
        && (own.ios == stream.ios || is_plain(&stream.ios))
        && stream.regions.iter().all(|region| largest.0.saturating_mul(sharing) <= region.length.0)
        && (stream.trim_share == 0.0 || stream.trim_share == own.trim_share)
        && (stream.flush.is_none() || stream.flush == own.flush)
        && (!stream.zones || own.zones)
        && stream.pacing.active == own.pacing.active
}
