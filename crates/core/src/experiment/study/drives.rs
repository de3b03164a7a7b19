//! The facts that studies of arrays need about their targets, and the best result on each of them.

use crate::experiment::Candidate;
use crate::experiment::sweep::{Sweep, TARGETS};
use crate::facts::{Target, short_names};
use crate::measure::Direction;
use crate::stats::{Comparison, Level, Ratio};
use crate::trial::Coordinate;

/// A target of a study that compares several.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Drives {
    /// Its name, as on the axis of the targets.
    pub name: String,
    /// Its name without the beginning that the names of all targets share, where sentences have many.
    pub shown: String,
    /// Its structure: "raid5, 4 disks, chunk 64 KiB, full stripe 192 KiB", "single disk".
    pub geometry: String,
    /// The number of disks that it is spread over.
    pub disks: u32,
}

impl Drives {
    /// The facts about the targets of a study.
    pub fn all(targets: &[Target]) -> Vec<Self> {
        let names: Vec<String> = targets.iter().map(|target| target.name.clone()).collect();
        let shown = short_names(&names);
        targets.iter().zip(shown).map(|(target, shown)| Self::of(target, shown)).collect()
    }

    fn of(target: &Target, shown: String) -> Self {
        let disks = target.drives();
        let geometry = match target.array() {
            None => "single disk".to_owned(),
            Some(array) => {
                let mut parts: Vec<String> = array.detail.iter().cloned().collect();
                if !parts.iter().any(|detail| detail.contains(" disks")) {
                    parts.push(format!("{disks} disks"));
                }
                if let Some(stripe) = array.stripe {
                    parts.push(format!("chunk {}", stripe.chunk));
                    parts.push(format!("full stripe {}", stripe.full));
                }
                parts.join(", ")
            }
        };
        Self { name: target.name.clone(), shown, geometry, disks }
    }

    /// The results on it in one direction alone.
    pub(super) fn results<'s>(&self, sweep: &'s Sweep, direction: Direction) -> Vec<Result<'s>> {
        let here = |one: &Candidate| {
            label(one, TARGETS).is_none_or(|label| label == self.name)
                && one.point.streams.iter().all(|s| s.only_direction() == Some(direction))
        };
        sweep.results().filter(|(one, _)| here(one)).collect()
    }
}

/// A combination and the result of its trials.
pub(super) type Result<'a> = (&'a Candidate, Level);

/// The highest of several results.
pub(super) fn best<'a>(results: &[Result<'a>]) -> Option<(&'a Candidate, f64)> {
    let best = results.iter().max_by(|one, other| one.1.cmp_value(&other.1));
    best.map(|(one, level)| (*one, level.estimate.value))
}

/// The ratio of the best of each of these groups to the best of the first, if there is one. The
/// intervals of all differences between two results hold at once, so that groups may be in the
/// order of their results.
pub(super) fn against_first(groups: &[Vec<Result<'_>>]) -> Vec<Option<Ratio>> {
    let pairs: Vec<(usize, usize)> = (0..groups.len()).map(|nth| (nth, 0)).collect();
    any_shares(groups, &pairs)
}

/// The ratio of the best of one group to the best of another, if both exist: for pairs that were
/// chosen by their results.
pub(super) fn any_shares(
    groups: &[Vec<Result<'_>>],
    pairs: &[(usize, usize)],
) -> Vec<Option<Ratio>> {
    let count = groups.iter().map(Vec::len).sum::<usize>();
    shares_of_so_many(groups, pairs, count * count.saturating_sub(1) / 2)
}

/// The same for pairs that were fixed before the measurement: the intervals hold for these at once.
pub(super) fn shares(groups: &[Vec<Result<'_>>], pairs: &[(usize, usize)]) -> Vec<Option<Ratio>> {
    let of = |nth: usize| groups.get(nth).map_or(0, Vec::len);
    let count = pairs.iter().map(|(one, other)| of(*one) * of(*other)).sum();
    shares_of_so_many(groups, pairs, count)
}

fn shares_of_so_many(
    groups: &[Vec<Result<'_>>],
    pairs: &[(usize, usize)],
    count: usize,
) -> Vec<Option<Ratio>> {
    let levels = groups.iter().flatten().map(|(_, level)| *level);
    let compared = Comparison::for_so_many(levels, count);
    let mut from = 0;
    let places = groups.iter().map(|group| {
        let own: Vec<usize> = (from..from + group.len()).collect();
        from += group.len();
        own
    });
    let places: Vec<Vec<usize>> = places.collect();
    let share = |(one, other): &(usize, usize)| {
        let (one, other) = (places.get(*one)?, places.get(*other)?);
        (!one.is_empty() && !other.is_empty()).then(|| compared.ratio(one, other))
    };
    pairs.iter().map(share).collect()
}

/// An interval that is wider than this says nothing.
const TELLS_NOTHING: f64 = 10.0;

/// Whether next to nothing is known of a ratio.
pub(super) fn is_guess(ratio: Ratio) -> bool {
    TELLS_NOTHING * ratio.low < ratio.high
}

/// " (38 to 41 %)"; empty if both ends would look alike, or lie so far apart that they say nothing.
pub(super) fn ends(ratio: Ratio, shown: impl Fn(f64) -> String, unit: &str) -> String {
    match (shown(ratio.low), shown(ratio.high)) {
        (low, high) if low == high || is_guess(ratio) => String::new(),
        (low, high) => format!(" ({low} to {high}{unit})"),
    }
}

/// A share in percent, "38".
pub(super) fn points(share: f64) -> String {
    format!("{:.0}", share * 100.0)
}

/// The place of a result on an axis.
pub(super) fn coordinate<'a>(one: &'a Candidate, axis: &str) -> Option<&'a Coordinate> {
    one.coordinates.iter().find(|coordinate| coordinate.axis == axis)
}

/// The same as it was typed.
pub(super) fn label<'a>(one: &'a Candidate, axis: &str) -> Option<&'a str> {
    coordinate(one, axis).map(|coordinate| coordinate.label.as_str())
}
