//! How the offsets of a stream follow each other. What exactly each pattern generates stands in
//! METHOD.md, *What the patterns generate*.

use std::fmt;

use super::{Limit, Part, Region, Stream, Turns, Workers};
use crate::plan::sharers;
use crate::units::Bytes;

/// How offsets follow each other.
#[derive(Clone, Debug, PartialEq)]
pub enum Pattern {
    /// One I/O after the other, around the region, each worker by itself.
    Sequential(Sequence),
    /// The same with one pointer in each region, which all workers of the stream move on together:
    /// each place is taken by one of them.
    Interlocked {
        /// From the start of an I/O to that of the next one; if none, each starts where the one
        /// before it ends.
        stride: Option<Bytes>,
    },
    /// By chance, each I/O independently of the others.
    Random(Distribution),
    /// By chance, but no place again before all of them had their turn: every pass over the region is
    /// in a new order.
    Shuffled,
    /// Some I/Os by chance, and the others each where the one before it ended. Such a run is of reads
    /// or of writes alone.
    Mixed {
        /// The share of I/Os that are placed by chance, above 0 and below 1.
        random_share: f64,
        /// Where they go.
        distribution: Distribution,
    },
}

/// How sequential workers go through their region.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sequence {
    /// From the start of an I/O to that of the next one; if none, each starts where the one before
    /// it ends.
    pub stride: Option<Bytes>,
    /// Where workers that share a region start in it.
    pub starts: Starts,
    /// Whether they go from the end of the region towards its start.
    pub backward: bool,
    /// How many I/Os a worker does at each place before it moves on; one if none. With as many as it
    /// has slots it is as if each slot went through the region by itself.
    pub visits: Option<u32>,
}

/// Where workers that share a region start in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Starts {
    /// At equal distances over the whole region.
    #[default]
    Spread,
    /// At this distance from each other, the first one at the region's start; at 0 all workers do
    /// the same I/Os, as DiskSpd's threads do.
    Apart(Bytes),
}

/// How often each place of a region is chosen.
#[derive(Clone, Debug, PartialEq)]
pub enum Distribution {
    /// Equally often.
    Uniform,
    /// The place of rank k with a probability that is proportional to k^-theta.
    Zipf {
        /// From 0, which is uniform, to 10.
        theta: f64,
        /// Which place has which rank.
        order: Order,
    },
    /// A part h of the places gets a part 1 - h of the I/Os, and so on within that part.
    Pareto {
        /// Above 0 and below 1.
        h: f64,
        /// Which place has which rank.
        order: Order,
    },
    /// A bell around a center, without what would lie outside of the region.
    Normal {
        /// In shares of the region, above 0 and at most 1.
        deviation: f64,
        /// In shares of the region, from 0 to 1.
        center: f64,
    },
    /// Ranges from the region's start on, each uniform in itself; the rest of the region gets the
    /// rest of the I/Os.
    Hot(Vec<HotRange>),
}

/// Which place has which rank.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// Places are ranked by chance: what is used often lies everywhere. The seed decides, and all
    /// workers agree.
    #[default]
    Spread,
    /// From the region's start on: what is used often lies together.
    Clustered,
}

/// A part of a region, and how much of the I/Os it gets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HotRange {
    /// The share of the I/Os, from 0 (a hole) to 1.
    pub io_share: f64,
    /// How long the range is.
    pub extent: Extent,
}

/// The length of a range.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Extent {
    /// As a share of the region, above 0 and at most 1.
    Share(f64),
    /// In bytes. What lies beyond the region's end is cut off, and the shares of the I/Os of what is
    /// left are raised in proportion.
    Size(Bytes),
}

/// What rounding may do to a sum of shares.
const ROUNDING: f64 = 1e-9;
/// The steepest zipf: beyond it all I/Os go to one place.
const STEEPEST: f64 = 10.0;

impl Pattern {
    /// One after the other, from separate starts, around the region.
    pub const SEQUENTIAL: Self = Self::Sequential(Sequence {
        stride: None,
        starts: Starts::Spread,
        backward: false,
        visits: None,
    });
    /// Uniform over the region, with repetition.
    pub const RANDOM: Self = Self::Random(Distribution::Uniform);

    /// So large a share of I/Os by chance and the others sequential, where 0 is sequential and 1 is
    /// random.
    pub fn mixed(random_share: f64, distribution: Distribution) -> Self {
        if random_share <= 0.0 {
            Self::SEQUENTIAL
        } else if random_share >= 1.0 {
            Self::Random(distribution)
        } else {
            Self::Mixed { random_share, distribution }
        }
    }

    /// Whether I/Os are placed by chance, at multiples of an alignment.
    pub fn is_aligned(&self) -> bool {
        matches!(self, Self::Random(_) | Self::Shuffled | Self::Mixed { .. })
    }

    /// The distance between two starts, where there is one that does not depend on the block size.
    pub fn stride(&self) -> Option<Bytes> {
        match *self {
            Self::Sequential(Sequence { stride, .. }) | Self::Interlocked { stride } => stride,
            Self::Random(_) | Self::Shuffled | Self::Mixed { .. } => None,
        }
    }

    /// The distance between the starts of two workers, where it was given.
    pub fn start_distance(&self) -> Option<Bytes> {
        match *self {
            Self::Sequential(Sequence { starts: Starts::Apart(distance), .. }) => Some(distance),
            _ => None,
        }
    }
}

/// Why a stream's pattern does not fit the rest of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Misfit {
    /// The property that does not fit, as people write it: `pattern`, `align`, `no-repeat`, `zones`,
    /// `start-distance`, `weights` or `part`.
    pub property: &'static str,
    /// What is wrong.
    pub problem: String,
    /// What to do.
    pub remedy: String,
}

impl fmt::Display for Misfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}: {}", self.property, self.problem, self.remedy)
    }
}

impl Misfit {
    fn new(
        property: &'static str,
        problem: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Result<(), Self> {
        Err(Self { property, problem: problem.into(), remedy: remedy.into() })
    }
}

/// Checks that the stream's pattern can be generated in each of its regions, which hold its largest
/// block.
///
/// # Errors
///
/// When it cannot, or when a property would have no effect.
pub fn check(stream: &Stream) -> Result<(), Misfit> {
    if !stream.kinds.is_empty() {
        check_turns(stream)?;
        return (0..stream.kinds.len()).try_for_each(|place| check(&stream.of_region(place)));
    }
    if !stream.parts.is_empty() {
        if matches!(stream.limit, Some(Limit::Passes(_))) {
            let problem = "parts that are drawn do not go over the target equally often";
            return Misfit::new("part", problem, "end after bytes or I/Os instead of passes");
        }
        let interlocked = |part: &&Part| matches!(part.kind.pattern, Pattern::Interlocked { .. });
        if stream.parts.iter().filter(interlocked).count() > 1 {
            let problem = "interlocked I/Os of several parts would go on at one pointer";
            return Misfit::new("part", problem, "have one part interlocked at most");
        }
        return (0..stream.parts.len()).try_for_each(|place| check(&stream.of_part(place)));
    }
    match &stream.pattern {
        Pattern::Random(distribution) => check_distribution(distribution)?,
        Pattern::Mixed { random_share, distribution } => {
            if !(0.0 < *random_share && *random_share < 1.0) {
                let problem = "a mixed pattern has more than 0% and less than 100% random I/Os";
                return Misfit::new("pattern", problem, "use sequential or random");
            }
            check_distribution(distribution)?;
        }
        Pattern::Sequential(_) | Pattern::Interlocked { .. } | Pattern::Shuffled => {}
    }
    if let Pattern::Sequential(Sequence { visits: Some(visits), backward, .. }) = stream.pattern
        && (visits == 0 || backward || stream.block_sizes.only().is_none())
    {
        let problem = "places are visited several times by I/Os of one size that go forward";
        return Misfit::new("pattern", problem, "use one block size");
    }
    if stream.pattern.stride() == Some(Bytes(0)) {
        return Misfit::new("pattern", "a stride of 0 never moves on", "write strided:64k");
    }
    check_alignment(stream)?;
    check_zones(stream)?;
    check_starts(stream)?;
    check_turns(stream)?;
    stream.regions.iter().try_for_each(|region| check_region(stream, region))
}

fn check_distribution(distribution: &Distribution) -> Result<(), Misfit> {
    match distribution {
        Distribution::Uniform => Ok(()),
        Distribution::Zipf { theta, .. } if !(0.0..=STEEPEST).contains(theta) => {
            Misfit::new("pattern", format!("zipf goes from 0 to {STEEPEST}"), "write zipf:1.1")
        }
        Distribution::Pareto { h, .. } if !(0.0 < *h && *h < 1.0) => {
            Misfit::new("pattern", "pareto is above 0 and below 1", "write pareto:0.2")
        }
        Distribution::Normal { deviation, .. } if !(0.0 < *deviation && *deviation <= 1.0) => {
            let problem = "a standard deviation is above 0% and at most 100%";
            Misfit::new("pattern", problem, "write normal:10%")
        }
        Distribution::Normal { center, .. } if !(0.0..=1.0).contains(center) => {
            Misfit::new("pattern", "a center is from 0% to 100%", "write normal:10%,50%")
        }
        Distribution::Hot(ranges) => check_ranges(ranges),
        Distribution::Zipf { .. } | Distribution::Pareto { .. } | Distribution::Normal { .. } => {
            Ok(())
        }
    }
}

fn check_ranges(ranges: &[HotRange]) -> Result<(), Misfit> {
    const EXAMPLE: &str = "write hot:90%/10%, which gives the other I/Os to the rest of the target";
    let wrong = |problem: &str| Misfit::new("pattern", problem, EXAMPLE);
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

fn check_alignment(stream: &Stream) -> Result<(), Misfit> {
    match stream.align {
        None => Ok(()),
        Some(Bytes(0)) => {
            Misfit::new("align", "every offset is a multiple of something", "write a size above 0")
        }
        Some(_) if !stream.pattern.is_aligned() => Misfit::new(
            "align",
            "sequential I/Os start where the one before them ends, so this has no effect",
            "drop it, or write strided:64k for the distance between two starts",
        ),
        Some(_) => Ok(()),
    }
}

fn check_zones(stream: &Stream) -> Result<(), Misfit> {
    match stream.pattern {
        _ if !stream.zones => Ok(()),
        Pattern::Interlocked { .. } => Misfit::new(
            "zones",
            "interlocked workers share one pointer, so none can have a part of its own",
            "drop it, or use sequential",
        ),
        _ if stream.pattern.start_distance().is_some() => Misfit::new(
            "start-distance",
            "a worker that has a zone of its own starts with it",
            "drop it, or drop zones",
        ),
        // One worker has a zone too, which is all there is: where workers vary, there is one at first.
        _ => Ok(()),
    }
}

fn check_starts(stream: &Stream) -> Result<(), Misfit> {
    match stream.pattern {
        Pattern::Sequential(Sequence { starts: Starts::Apart(_), .. }) if sharers(stream) == 1 => {
            let problem = "one worker serves each region, and starts at its beginning";
            Misfit::new("start-distance", problem, "drop it, or use more workers")
        }
        _ => Ok(()),
    }
}

fn check_turns(stream: &Stream) -> Result<(), Misfit> {
    let Turns::Weighted(weights) = &stream.turns else { return Ok(()) };
    let regions = stream.regions.len();
    let possible = |weight: &f64| weight.is_finite() && *weight > 0.0;
    if !weights.iter().all(possible) {
        let problem = "a weight is a number above 0";
        return Misfit::new(
            "weights",
            problem,
            "write 70,30; or drop the target that gets nothing",
        );
    }
    if weights.len() != regions {
        let problem = format!("{} weights for {regions} targets", weights.len());
        return Misfit::new("weights", problem, "give each target one, in their order");
    }
    if matches!(stream.workers, Workers::PerTarget(_)) {
        let problem = "each worker serves one target alone, so that it has nothing to choose";
        return Misfit::new(
            "weights",
            problem,
            "drop it, or have each worker serve every target, as with 4/total workers",
        );
    }
    if matches!(stream.limit, Some(Limit::Passes(_))) {
        let problem = "targets that are drawn are not gone over equally often";
        return Misfit::new("weights", problem, "drop it, or end after bytes or I/Os");
    }
    Ok(())
}

fn check_region(stream: &Stream, region: &Region) -> Result<(), Misfit> {
    let workers = u64::from(sharers(stream));
    let (largest, length) = (stream.block_sizes.largest(), region.length);
    if stream.zones {
        let unit = stream.alignment().0;
        let zone = Bytes(length.0 / unit / workers * unit);
        if zone < largest {
            return Misfit::new(
                "zones",
                format!("{workers} zones of {zone} in a region of {length} are too small"),
                "use fewer workers, a larger region or a smaller block",
            );
        }
    }
    if let Some(distance) = stream.pattern.start_distance() {
        let last = distance.0.saturating_mul(workers - 1);
        if last.saturating_add(largest.0) > length.0 {
            return Misfit::new(
                "start-distance",
                format!(
                    "the last of {workers} workers would start at {}, beyond the region of {length}",
                    Bytes(last)
                ),
                "choose a smaller one, or fewer workers",
            );
        }
    }
    let places = (length.0 - stream.block_sizes.smallest().0) / stream.alignment().0 + 1;
    if stream.pattern == Pattern::Shuffled && !stream.zones && places < workers {
        return Misfit::new(
            "no-repeat",
            format!("{workers} workers share {places} places, so some would have nothing to do"),
            "use fewer workers or a larger region",
        );
    }
    match &stream.pattern {
        Pattern::Random(Distribution::Hot(ranges))
        | Pattern::Mixed { distribution: Distribution::Hot(ranges), .. } => {
            check_reach(ranges, length)
        }
        _ => Ok(()),
    }
}

/// Whether any range that gets I/Os begins within the region.
fn check_reach(ranges: &[HotRange], length: Bytes) -> Result<(), Misfit> {
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
    Misfit::new(
        "pattern",
        format!("every range that gets I/Os begins beyond the region of {length}"),
        "choose smaller ranges",
    )
}

/// A share for people: "30 %", "0.05 %".
fn percent(share: f64) -> String {
    format!("{} %", (share * 1e8).round() / 1e6)
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let strided = |stride: Bytes| format!("strided {stride}");
        let (name, notes) = match self {
            Self::Sequential(Sequence { stride, starts, backward, visits }) => {
                let (name, stride) = match (backward, stride) {
                    (true, stride) => ("backward".to_owned(), stride.map(strided)),
                    (false, Some(stride)) => (strided(*stride), None),
                    (false, None) => ("sequential".to_owned(), None),
                };
                let apart = match starts {
                    Starts::Spread => None,
                    Starts::Apart(Bytes(0)) => Some("starts together".to_owned()),
                    Starts::Apart(distance) => Some(format!("starts {distance} apart")),
                };
                let visits = visits.map(|visits| format!("each place {visits} times"));
                (name, [stride, apart, visits])
            }
            Self::Interlocked { stride } => {
                ("interlocked".to_owned(), [stride.map(strided), None, None])
            }
            Self::Random(distribution) => return distribution.fmt(f),
            Self::Shuffled => ("non-repeating random".to_owned(), [None, None, None]),
            Self::Mixed { random_share, distribution } => {
                let share = format!("{} {distribution}", percent(*random_share));
                ("mixed".to_owned(), [Some(share), None, None])
            }
        };
        let notes: Vec<String> = notes.into_iter().flatten().collect();
        match notes.is_empty() {
            true => f.write_str(&name),
            false => write!(f, "{name} ({})", notes.join(", ")),
        }
    }
}

impl fmt::Display for Distribution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let order = |order: &Order| match order {
            Order::Spread => "",
            Order::Clustered => "clustered ",
        };
        match self {
            Self::Uniform => f.write_str("random"),
            Self::Zipf { theta, order: by } => write!(f, "{}zipf {theta}", order(by)),
            Self::Pareto { h, order: by } => write!(f, "{}pareto {h}", order(by)),
            Self::Normal { deviation, center } => {
                write!(f, "normal ({} around {})", percent(*deviation), percent(*center))
            }
            Self::Hot(ranges) => {
                let range = |one: &HotRange| format!("{} in {}", percent(one.io_share), one.extent);
                let ranges: Vec<String> = ranges.iter().map(range).collect();
                write!(f, "hot ({})", ranges.join(", "))
            }
        }
    }
}

impl fmt::Display for Extent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Share(share) => f.write_str(&percent(*share)),
            Self::Size(size) => size.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::{BlockSizes, Workers};

    fn stream(pattern: Pattern, workers: u32) -> Stream {
        let region = Region { target: 0, offset: Bytes(0), length: Bytes(1 << 20) };
        Stream {
            pattern,
            block_sizes: BlockSizes::one(Bytes(4096)),
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
        let aligned = |pattern, align| Stream { align: Some(Bytes(align)), ..stream(pattern, 4) };
        let none = Pattern::Interlocked { stride: Some(Bytes(0)) };
        let weighted = |weights: &[f64]| Stream {
            turns: Turns::Weighted(weights.to_vec()),
            ..stream(Pattern::RANDOM, 4)
        };
        for (stream, property, part) in [
            (stream(zipf(-0.1), 4), "pattern", "from 0 to 10"),
            (stream(zipf(f64::NAN), 4), "pattern", "from 0 to 10"),
            (stream(none, 4), "pattern", "never moves on"),
            (weighted(&[1.0, 0.0]), "weights", "above 0"),
            (weighted(&[1.0, f64::NAN]), "weights", "above 0"),
            (weighted(&[1.0, 1.0]), "weights", "2 weights for 1 targets"),
            (Stream { workers: Workers::PerTarget(1), ..weighted(&[1.0]) }, "weights", "alone"),
            (Stream { limit: Some(Limit::Passes(1)), ..weighted(&[1.0]) }, "weights", "equally"),
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
            assert_eq!(misfit.property, property, "{misfit}");
            assert!(misfit.problem.contains(part), "{misfit}");
        }
    }

    fn visiting(visits: u32) -> Pattern {
        Pattern::Sequential(Sequence { visits: Some(visits), ..Sequence::default() })
    }

    #[test]
    fn a_pattern_is_called_by_what_sets_it_apart() {
        let order = Order::Clustered;
        let starts = Starts::Apart(Bytes(1 << 30));
        let stride = Some(Bytes(65_536));
        for (pattern, name) in [
            (Pattern::SEQUENTIAL, "sequential"),
            (Pattern::RANDOM, "random"),
            (Pattern::Shuffled, "non-repeating random"),
            (Pattern::Interlocked { stride: None }, "interlocked"),
            (Pattern::Interlocked { stride }, "interlocked (strided 64 KiB)"),
            (Pattern::mixed(0.0, Distribution::Uniform), "sequential"),
            (Pattern::mixed(1.0, Distribution::Uniform), "random"),
            (Pattern::mixed(0.05, Distribution::Uniform), "mixed (5 % random)"),
            (zipf(1.1), "zipf 1.1"),
            (Pattern::Random(Distribution::Pareto { h: 0.2, order }), "clustered pareto 0.2"),
            (hot(&[(0.9, 0.1), (0.0, 0.4)]), "hot (90 % in 10 %, 0 % in 40 %)"),
            (sized(&[(0.9, 1 << 30)]), "hot (90 % in 1 GiB)"),
            (
                Pattern::Random(Distribution::Normal { deviation: 0.1, center: 0.5 }),
                "normal (10 % around 50 %)",
            ),
            (
                Pattern::Sequential(Sequence { stride, starts, ..Sequence::default() }),
                "strided 64 KiB (starts 1 GiB apart)",
            ),
            (
                Pattern::Sequential(Sequence { stride, backward: true, ..Sequence::default() }),
                "backward (strided 64 KiB)",
            ),
            (visiting(8), "sequential (each place 8 times)"),
        ] {
            assert_eq!(pattern.to_string(), name);
        }
    }
}
