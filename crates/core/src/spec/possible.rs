//! Whether a point that was read from a file can be one: the file may be anybody's, and what reports
//! show and compute relies on this. What can be measured is another question, which resolving answers.

use super::check::check_distribution;
use super::{Distribution, Flush, Ios, Kind, Limit, Loop, OfferedLoad, Pattern, Payload};
use super::{Pacing, Point, Region, Rests, Stream, Turns, Workers};
use crate::units::{Bytes, Rate};

/// The largest weight: the sum of many such is still a number.
const HEAVIEST: f64 = 1e300;

/// The highest rate per second: sums and products of such are still numbers.
const FASTEST: f64 = 1e18;

impl Point {
    /// Says what of it cannot be.
    ///
    /// # Errors
    ///
    /// When something cannot.
    pub fn possible(&self) -> Result<(), String> {
        holds(!self.streams.is_empty(), "the point has no stream")?;
        let rated = self.rated.iops.is_none_or(is_a_rate);
        holds(rated, "what the targets are rated at is no rate")?;
        let time = self.rated.response_time.is_none_or(|promised| is_share(promised.quantile.0));
        holds(time, "the promised percentile is none")?;
        let depth = |stream: &Stream| u64::from(stream.pacing.queue_depth());
        let depths: u64 = self.streams.iter().map(depth).sum();
        holds(u32::try_from(depths).is_ok(), "its queue depths are too large")?;
        self.streams.iter().try_for_each(|stream| {
            possible(stream).map_err(|why| format!("stream {}: {why}", stream.name))
        })
    }
}

fn holds(holds: bool, why: &str) -> Result<(), String> {
    if holds { Ok(()) } else { Err(why.to_owned()) }
}

fn is_share(share: f64) -> bool {
    (0.0..=1.0).contains(&share)
}

/// A weight that is as good as nothing would vanish when it is multiplied with a share.
fn is_weight(weight: f64) -> bool {
    (f64::MIN_POSITIVE..=HEAVIEST).contains(&weight)
}

fn is_a_rate(rate: Rate) -> bool {
    rate.0 > 0.0 && rate.0 <= FASTEST
}

fn possible(stream: &Stream) -> Result<(), String> {
    possible_regions(stream)?;
    possible_ios(stream)?;
    holds(is_share(stream.trim_share), "its share of trims is none")?;
    let payload = match &stream.payload {
        Payload::Random { compressible, dedup } => is_share(*compressible) && is_share(*dedup),
        Payload::Zeros => true,
        Payload::Pattern(bytes) => !bytes.is_empty(),
        Payload::Pool { size, .. } => *size > Bytes(0),
    };
    holds(payload, "its payload cannot be")?;
    let flushes = stream.flush.is_none_or(|Flush { every, .. }| every > 0);
    holds(flushes, "it flushes after 0 writes")?;
    let (Workers::PerTarget(workers) | Workers::Total(workers)) = stream.workers;
    holds(workers > 0, "it has no worker")?;
    possible_pacing(&stream.pacing)
}

fn possible_regions(stream: &Stream) -> Result<(), String> {
    let regions = &stream.regions;
    holds(!regions.is_empty(), "it has no region")?;
    let end = |region: &Region| region.offset.0.checked_add(region.length.0);
    let ends = regions.iter().try_fold(0, |sum: u64, region| sum.checked_add(end(region)?));
    holds(ends.is_some(), "its regions are too large")?;
    holds(regions.iter().all(|region| region.length > Bytes(0)), "a region of it is empty")?;
    match &stream.turns {
        Turns::InTurn => Ok(()),
        Turns::Weighted(weights) => {
            let each = weights.iter().all(|weight| is_weight(*weight));
            holds(each && weights.len() == regions.len(), "its regions have weights that cannot be")
        }
    }
}

fn possible_ios(stream: &Stream) -> Result<(), String> {
    match &stream.ios {
        Ios::Alike(_) => {}
        Ios::ByRegion(kinds) => {
            holds(
                kinds.len() == stream.regions.len(),
                "not each of its regions has a kind of I/Os",
            )?;
        }
        Ios::Drawn(parts) => {
            let weights = parts.iter().all(|part| is_weight(part.weight));
            holds(weights && !parts.is_empty(), "its parts have weights that cannot be")?;
        }
    }
    stream.ios.kinds().into_iter().try_for_each(possible_kind)
}

fn possible_kind(kind: &Kind) -> Result<(), String> {
    holds(is_share(kind.read_share), "its share of reads is none")?;
    holds(kind.align != Some(Bytes(0)), "its offsets are multiples of 0")?;
    match &kind.pattern {
        Pattern::Random(distribution) => possible_distribution(distribution),
        Pattern::Mixed { random_share, distribution } => {
            holds(is_share(*random_share), "its share of I/Os by chance is none")?;
            possible_distribution(distribution)
        }
        Pattern::Sequential(_) | Pattern::Interlocked { .. } | Pattern::Shuffled => Ok(()),
    }
}

fn possible_distribution(distribution: &Distribution) -> Result<(), String> {
    check_distribution(distribution).map_err(|refusal| refusal.problem)
}

fn possible_pacing(pacing: &Pacing) -> Result<(), String> {
    holds(pacing.queue_depth() > 0, "its queue depth is 0")?;
    let limit = match pacing.limit {
        Some(Limit::Ios(0) | Limit::Bytes(Bytes(0)) | Limit::Passes(0)) => false,
        Some(_) | None => true,
    };
    holds(limit, "it is done before it begins")?;
    let offered = match &pacing.pace {
        Loop::Open {
            load: OfferedLoad::Steady(rate) | OfferedLoad::Bursts { rate, .. }, ..
        } => is_a_rate(*rate),
        Loop::Open { load: OfferedLoad::Course(course), .. } => course.highest().0 <= FASTEST,
        Loop::Closed { .. } => true,
    };
    holds(offered, "the load that it offers is none")?;
    let bursts = !matches!(pacing.rests(), Rests::Bursts { ios: 0, .. });
    holds(bursts, "a burst of it has no I/O")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::{Arrivals, Course, Part, Stage};
    use crate::units::Span;

    fn point() -> Point {
        let region = |target| Region { target, offset: Bytes(0), length: Bytes(1 << 20) };
        let stream = Stream::reading("load", (0..2).map(region).collect());
        Point::of(Vec::from([stream]), Span::from_secs(1))
    }

    #[test]
    fn what_could_make_a_report_fail_is_refused() {
        assert_eq!(point().possible(), Ok(()));
        type Spoil = fn(&mut Stream);
        let spoil: [(Spoil, &str); 20] = [
            (|stream| stream.regions.clear(), "no region"),
            (|stream| stream.regions[1].offset = Bytes(u64::MAX), "too large"),
            (|stream| stream.regions[0].length = Bytes(0), "empty"),
            (|stream| stream.turns = Turns::Weighted(vec![1.0]), "weights"),
            (|stream| stream.turns = Turns::Weighted(vec![1.0, f64::NAN]), "weights"),
            (|stream| stream.turns = Turns::Weighted(vec![1.0, 0.0]), "weights"),
            (|stream| stream.turns = Turns::Weighted(vec![1.0, f64::MAX]), "weights"),
            (|stream| stream.ios = Ios::ByRegion(vec![Kind::default()]), "each of its regions"),
            (|stream| stream.ios = Ios::Drawn(Vec::new()), "parts"),
            (
                |stream| {
                    stream.ios = Ios::Drawn(vec![Part { weight: -1.0, kind: Kind::default() }]);
                },
                "parts",
            ),
            (|stream| stream.kind_mut().read_share = 1.5, "share of reads"),
            (|stream| stream.kind_mut().align = Some(Bytes(0)), "multiples"),
            (|stream| stream.trim_share = f64::NAN, "trims"),
            (|stream| stream.payload = Payload::Pattern(Box::from([])), "payload"),
            (|stream| stream.workers = Workers::Total(0), "worker"),
            (|stream| stream.pacing = Pacing::closed(0), "queue depth"),
            (
                |stream| stream.pacing = Pacing::open(Rate(0.0), Arrivals::Uniform, 1),
                "load that it offers",
            ),
            (|stream| stream.pacing = Pacing::open(Rate(1e308), Arrivals::Uniform, 1), "offers"),
            (
                |stream| {
                    let stage = Stage::steady(Rate(1e308), Span::from_secs(1));
                    let load = OfferedLoad::Course(Course::new(Vec::from([stage])));
                    stream.pacing = Pacing::of(Loop::Open {
                        load,
                        arrivals: Arrivals::Uniform,
                        queue_depth_max: 1,
                        realtime: false,
                    });
                },
                "offers",
            ),
            (|stream| stream.pacing.limit = Some(Limit::Passes(0)), "done before"),
        ];
        for (spoil, part) in spoil {
            let mut point = point();
            spoil(&mut point.streams[0]);
            let why = point.possible().expect_err(part);
            assert!(why.starts_with("stream load: ") && why.contains(part), "{why}");
        }
        let mut none = point();
        none.streams.clear();
        assert!(none.possible().is_err());
        let mut deep = point();
        deep.streams[0].pacing = Pacing::closed(u32::MAX);
        deep.streams.push(deep.streams[0].clone());
        assert!(deep.possible().unwrap_err().contains("too large"));
    }
}
