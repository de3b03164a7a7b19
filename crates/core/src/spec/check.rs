//! Whether a stream's pattern can be generated in each of its regions, and fits the rest of it.

use super::{
    Distribution, Extent, HotRange, Ios, Kind, Limit, Part, Pattern, Region, Sequence, Starts,
    Stream, Turns, Workers,
};
use crate::Refusal;
use crate::units::Bytes;

/// What rounding may do to a sum of shares.
const ROUNDING: f64 = 1e-9;
/// The steepest zipf: beyond it all I/Os go to one place.
const STEEPEST: f64 = 10.0;

/// Checks that the stream's pattern can be generated in each of its regions, which hold its largest
/// block.
///
/// # Errors
///
/// When it cannot, or when a property would have no effect.
pub fn check(stream: &Stream) -> Result<(), Refusal> {
    match &stream.ios {
        Ios::Alike(kind) => check_alike(stream, kind),
        Ios::ByRegion(kinds) => {
            check_turns(stream)?;
            (0..kinds.len()).try_for_each(|place| check(&stream.of_region(place)))
        }
        Ios::Drawn(parts) => {
            check_parts(stream, parts)?;
            stream.each_kind().iter().try_for_each(check)
        }
    }
}

/// What parts do not go with.
fn check_parts(stream: &Stream, parts: &[Part]) -> Result<(), Refusal> {
    if matches!(stream.pacing.limit, Some(Limit::Passes(_))) {
        let problem = "parts that are drawn do not go over the target equally often";
        return refuse("part", problem, "end after bytes or I/Os instead of passes");
    }
    let interlocked = |part: &&Part| matches!(part.kind.pattern, Pattern::Interlocked { .. });
    if parts.iter().filter(interlocked).count() > 1 {
        let problem = "interlocked I/Os of several parts would go on at one pointer";
        return refuse("part", problem, "have one part interlocked at most");
    }
    Ok(())
}

/// A stream whose I/Os are all of this kind.
fn check_alike(stream: &Stream, kind: &Kind) -> Result<(), Refusal> {
    match &kind.pattern {
        Pattern::Random(distribution) => check_distribution(distribution)?,
        Pattern::Mixed { random_share, distribution } => {
            if !(0.0 < *random_share && *random_share < 1.0) {
                let problem = "a mixed pattern has more than 0% and less than 100% random I/Os";
                return refuse("pattern", problem, "use sequential or random");
            }
            check_distribution(distribution)?;
        }
        Pattern::Sequential(_) | Pattern::Interlocked { .. } | Pattern::Shuffled => {}
    }
    if let Pattern::Sequential(Sequence { visits: Some(visits), backward, .. }) = kind.pattern
        && (visits == 0 || backward || kind.block_sizes.only().is_none())
    {
        let problem = "places are visited several times by I/Os of one size that go forward";
        return refuse("pattern", problem, "use one block size");
    }
    if kind.pattern.stride() == Some(Bytes(0)) {
        return refuse("pattern", "a stride of 0 never moves on", "write strided:64k");
    }
    check_alignment(stream)?;
    check_zones(stream)?;
    check_starts(stream)?;
    check_turns(stream)?;
    stream.regions.iter().try_for_each(|region| check_region(stream, region))
}

pub(super) fn check_distribution(distribution: &Distribution) -> Result<(), Refusal> {
    match distribution {
        Distribution::Uniform => Ok(()),
        Distribution::Zipf { theta, .. } if !(0.0..=STEEPEST).contains(theta) => {
            refuse("pattern", format!("zipf goes from 0 to {STEEPEST}"), "write zipf:1.1")
        }
        Distribution::Pareto { h, .. } if !(0.0 < *h && *h < 1.0) => {
            refuse("pattern", "pareto is above 0 and below 1", "write pareto:0.2")
        }
        Distribution::Normal { deviation, .. } if !(0.0 < *deviation && *deviation <= 1.0) => {
            let problem = "a standard deviation is above 0% and at most 100%";
            refuse("pattern", problem, "write normal:10%")
        }
        Distribution::Normal { center, .. } if !(0.0..=1.0).contains(center) => {
            refuse("pattern", "a center is from 0% to 100%", "write normal:10%,50%")
        }
        Distribution::Hot(ranges) => check_ranges(ranges),
        Distribution::Zipf { .. } | Distribution::Pareto { .. } | Distribution::Normal { .. } => {
            Ok(())
        }
    }
}

fn check_ranges(ranges: &[HotRange]) -> Result<(), Refusal> {
    const EXAMPLE: &str = "write hot:90%/10%, which gives the other I/Os to the rest of the target";
    let wrong = |problem: &str| refuse("pattern", problem, EXAMPLE);
    let (mut ios, mut share, mut sized) = (0.0, 0.0, false);
    for range in ranges {
        if !(0.0..=1.0).contains(&range.io_share) {
            return wrong("a share of the I/Os is from 0% to 100%");
        }
        ios += range.io_share;
        match range.extent {
            Extent::Share(part) if !(0.0 < part && part <= 1.0) => {
                return wrong("a share of the target is above 0% and at most 100%");
            }
            Extent::Size(Bytes(0)) => return wrong("a range of the target is empty"),
            Extent::Share(part) => share += part,
            Extent::Size(_) => sized = true,
        }
    }
    if ranges.is_empty() || ios <= 0.0 && share > 1.0 - ROUNDING {
        return wrong("no range gets any I/Os");
    }
    if ios > 1.0 + ROUNDING {
        return wrong("the ranges get more than 100% of the I/Os");
    }
    if share > 1.0 + ROUNDING {
        return wrong("the ranges are more than 100% of the target");
    }
    if share > 1.0 - ROUNDING && ios < 1.0 - ROUNDING {
        return wrong("the ranges are the whole target and get less than 100% of the I/Os");
    }
    if share > 1.0 - ROUNDING && sized {
        return wrong("shares that are the whole target leave nothing for a size");
    }
    Ok(())
}

fn check_alignment(stream: &Stream) -> Result<(), Refusal> {
    match stream.align() {
        None => Ok(()),
        Some(Bytes(0)) => {
            refuse("align", "every offset is a multiple of something", "write a size above 0")
        }
        Some(_) if !stream.pattern().is_aligned() => refuse(
            "align",
            "sequential I/Os start where the one before them ends, so this has no effect",
            "drop it, or write strided:64k for the distance between two starts",
        ),
        Some(_) => Ok(()),
    }
}

fn check_zones(stream: &Stream) -> Result<(), Refusal> {
    match *stream.pattern() {
        _ if !stream.zones => Ok(()),
        Pattern::Interlocked { .. } => refuse(
            "zones",
            "interlocked workers share one pointer, so none can have a part of its own",
            "drop it, or use sequential",
        ),
        _ if stream.pattern().start_distance().is_some() => refuse(
            "start-distance",
            "a worker that has a zone of its own starts with it",
            "drop it, or drop zones",
        ),
        // One worker has a zone too, which is all there is: where workers vary, there is one at first.
        _ => Ok(()),
    }
}

fn check_starts(stream: &Stream) -> Result<(), Refusal> {
    match *stream.pattern() {
        Pattern::Sequential(Sequence { starts: Starts::Apart(_), .. }) if stream.sharers() == 1 => {
            let problem = "one worker serves each region, and starts at its beginning";
            refuse("start-distance", problem, "drop it, or use more workers")
        }
        _ => Ok(()),
    }
}

fn check_turns(stream: &Stream) -> Result<(), Refusal> {
    let Turns::Weighted(weights) = &stream.turns else { return Ok(()) };
    let regions = stream.regions.len();
    let possible = |weight: &f64| weight.is_finite() && *weight > 0.0;
    if !weights.iter().all(possible) {
        let problem = "a weight is a number above 0";
        return refuse("weights", problem, "write 70,30; or drop the target that gets nothing");
    }
    if weights.len() != regions {
        let problem = format!("{} weights for {regions} targets", weights.len());
        return refuse("weights", problem, "give each target one, in their order");
    }
    if matches!(stream.workers, Workers::PerTarget(_)) {
        let problem = "each worker serves one target alone, so that it has nothing to choose";
        return refuse(
            "weights",
            problem,
            "drop it, or have each worker serve every target, as with 4/total workers",
        );
    }
    if matches!(stream.pacing.limit, Some(Limit::Passes(_))) {
        let problem = "targets that are drawn are not gone over equally often";
        return refuse("weights", problem, "drop it, or end after bytes or I/Os");
    }
    Ok(())
}

fn check_region(stream: &Stream, region: &Region) -> Result<(), Refusal> {
    let workers = u64::from(stream.sharers());
    let (largest, length) = (stream.block_sizes().largest(), region.length);
    if stream.zones {
        let unit = stream.alignment().0;
        let zone = Bytes(length.0 / unit / workers * unit);
        if zone < largest {
            return refuse(
                "zones",
                format!("{workers} zones of {zone} in a region of {length} are too small"),
                "use fewer workers, a larger region or a smaller block",
            );
        }
    }
    if let Some(distance) = stream.pattern().start_distance() {
        let last = distance.0.saturating_mul(workers - 1);
        if last.saturating_add(largest.0) > length.0 {
            return refuse(
                "start-distance",
                format!(
                    "the last of {workers} workers would start at {}, beyond the region of {length}",
                    Bytes(last)
                ),
                "choose a smaller one, or fewer workers",
            );
        }
    }
    let places = (length.0 - stream.block_sizes().smallest().0) / stream.alignment().0 + 1;
    if *stream.pattern() == Pattern::Shuffled && !stream.zones && places < workers {
        return refuse(
            "no-repeat",
            format!("{workers} workers share {places} places, so some would have nothing to do"),
            "use fewer workers or a larger region",
        );
    }
    match stream.pattern() {
        Pattern::Random(Distribution::Hot(ranges))
        | Pattern::Mixed { distribution: Distribution::Hot(ranges), .. } => {
            check_reach(ranges, length)
        }
        _ => Ok(()),
    }
}

/// Whether any range that gets I/Os begins within the region.
fn check_reach(ranges: &[HotRange], length: Bytes) -> Result<(), Refusal> {
    let mut begin = 0.0;
    let mut ios = 0.0;
    for range in ranges {
        if range.io_share > 0.0 && begin < length.0 as f64 {
            return Ok(());
        }
        ios += range.io_share;
        begin += match range.extent {
            Extent::Share(part) => part * length.0 as f64,
            Extent::Size(size) => size.0 as f64,
        };
    }
    if begin < length.0 as f64 && ios < 1.0 - ROUNDING {
        return Ok(());
    }
    refuse(
        "pattern",
        format!("every range that gets I/Os begins beyond the region of {length}"),
        "choose smaller ranges",
    )
}

fn refuse(
    property: &str,
    problem: impl Into<String>,
    remedy: impl Into<String>,
) -> Result<(), Refusal> {
    Err(Refusal::usage(format!("--{property}"), problem, remedy))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::Order;

    fn stream(pattern: Pattern, workers: u32) -> Stream {
        let region = Region { target: 0, offset: Bytes(0), length: Bytes(1 << 20) };
        Stream {
            ios: Kind { pattern, ..Kind::default() }.into(),
            workers: Workers::Total(workers),
            ..Stream::reading("test", Vec::from([region]))
        }
    }

    fn hot(ranges: &[(f64, f64)]) -> Pattern {
        let range = |&(io_share, part)| HotRange { io_share, extent: Extent::Share(part) };
        Pattern::Random(Distribution::Hot(ranges.iter().map(range).collect()))
    }

    fn sized(ranges: &[(f64, u64)]) -> Pattern {
        let range = |&(io_share, size)| HotRange { io_share, extent: Extent::Size(Bytes(size)) };
        Pattern::Random(Distribution::Hot(ranges.iter().map(range).collect()))
    }

    fn zipf(theta: f64) -> Pattern {
        Pattern::Random(Distribution::Zipf { theta, order: Order::Spread })
    }

    fn apart(distance: u64) -> Pattern {
        let starts = Starts::Apart(Bytes(distance));
        Pattern::Sequential(Sequence { starts, ..Sequence::default() })
    }

    fn visiting(visits: u32) -> Pattern {
        Pattern::Sequential(Sequence { visits: Some(visits), ..Sequence::default() })
    }

    #[test]
    fn what_can_be_generated_is_accepted() {
        let order = Order::Clustered;
        for pattern in [
            Pattern::SEQUENTIAL,
            Pattern::RANDOM,
            Pattern::Shuffled,
            Pattern::Interlocked { stride: None },
            Pattern::Mixed { random_share: 0.3, distribution: Distribution::Uniform },
            zipf(0.0),
            zipf(1.0),
            zipf(10.0),
            Pattern::Random(Distribution::Pareto { h: 0.2, order }),
            Pattern::Random(Distribution::Normal { deviation: 0.1, center: 1.0 }),
            hot(&[(0.9, 0.1)]),
            hot(&[(0.9, 0.1), (0.0, 0.4)]),
            hot(&[(0.5, 0.5), (0.5, 0.5)]),
            hot(&[(0.0, 0.5)]),
            sized(&[(0.9, 1 << 30)]),
            sized(&[(0.1, 1 << 19), (0.1, 1 << 19), (0.8, 1)]),
            apart(256 << 10),
        ] {
            assert_eq!(check(&stream(pattern.clone(), 4)), Ok(()), "{pattern:?}");
        }
    }

    #[test]
    fn what_cannot_be_generated_is_refused_by_its_name() {
        let zoned = |pattern, workers| Stream { zones: true, ..stream(pattern, workers) };
        let aligned = |pattern, align| {
            let mut stream = stream(pattern, 4);
            stream.kind_mut().align = Some(Bytes(align));
            stream
        };
        let none = Pattern::Interlocked { stride: Some(Bytes(0)) };
        let weighted = |weights: &[f64]| Stream {
            turns: Turns::Weighted(weights.to_vec()),
            ..stream(Pattern::RANDOM, 4)
        };
        let mut limited = weighted(&[1.0]);
        limited.pacing.limit = Some(Limit::Passes(1));
        for (stream, property, part) in [
            (stream(zipf(-0.1), 4), "pattern", "from 0 to 10"),
            (stream(zipf(f64::NAN), 4), "pattern", "from 0 to 10"),
            (stream(none, 4), "pattern", "never moves on"),
            (weighted(&[1.0, 0.0]), "weights", "above 0"),
            (weighted(&[1.0, f64::NAN]), "weights", "above 0"),
            (weighted(&[1.0, 1.0]), "weights", "2 weights for 1 targets"),
            (Stream { workers: Workers::PerTarget(1), ..weighted(&[1.0]) }, "weights", "alone"),
            (limited, "weights", "equally"),
            (stream(hot(&[]), 4), "pattern", "no range gets any"),
            (stream(hot(&[(0.0, 1.0)]), 4), "pattern", "no range gets any"),
            (stream(hot(&[(0.6, 0.1), (0.6, 0.1)]), 4), "pattern", "more than 100% of the I/Os"),
            (stream(hot(&[(0.6, 0.6), (0.3, 0.6)]), 4), "pattern", "more than 100% of the target"),
            (stream(hot(&[(0.6, 0.5), (0.3, 0.5)]), 4), "pattern", "less than 100% of the I/Os"),
            (stream(sized(&[(0.0, 1 << 20), (0.5, 9)]), 4), "pattern", "beyond the region"),
            (aligned(Pattern::SEQUENTIAL, 4096), "align", "no effect"),
            (aligned(Pattern::RANDOM, 0), "align", "multiple of something"),
            (zoned(Pattern::Interlocked { stride: None }, 4), "zones", "one pointer"),
            (zoned(Pattern::RANDOM, 257), "zones", "too small"),
            (zoned(apart(4096), 4), "start-distance", "starts with it"),
            (stream(apart(512 << 10), 3), "start-distance", "start at 1 MiB"),
            (stream(apart(4096), 1), "start-distance", "one worker"),
            (stream(Pattern::Shuffled, 257), "no-repeat", "257 workers share 256 places"),
            (stream(visiting(0), 1), "pattern", "visited several times"),
        ] {
            let misfit = check(&stream).expect_err(part);
            assert_eq!(misfit.about, format!("--{property}"), "{misfit}");
            assert!(misfit.problem.contains(part), "{misfit}");
        }
    }
}
