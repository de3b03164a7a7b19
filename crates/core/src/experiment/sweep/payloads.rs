//! Whether data that repeats itself is written faster than random data: what a target that compresses,
//! deduplicates or leaves out zeros gives away, once both were measured.

use super::{Reading, Sweep};
use crate::experiment::{Coordinate, Trial};
use crate::spec::{Payload, Point, Stream};
use crate::stats::Estimate;
use crate::verdict::{Finding, Severity};

/// Faster than random data by this factor, both at the unfavorable ends of their intervals, is much.
const MUCH: f64 = 1.2;

/// The finding about a trial with data that repeats itself, if the same with random data was measured
/// before and was much slower.
pub(super) fn saved(sweep: &Sweep, place: usize, trial: &Trial) -> Option<Finding> {
    if !is_repeating(&sweep.candidates[place].point) {
        return None;
    }
    let random = sweep.estimate(counterpart(sweep, place)?)?;
    let shown = sweep.read(&trial.record)?;
    let Reading { value, half_width, .. } = shown;
    if !much_faster(Estimate { value, half_width }, random) {
        return None;
    }
    Some(Finding {
        code: "repeating-data-faster",
        severity: Severity::Void,
        evidence: format!(
            "Data that repeats itself was written at {}, {:.2} times as fast as random data at the \
             same settings ({}).",
            sweep.in_words(shown.value),
            shown.value / random.value,
            sweep.in_words(random.value),
        ),
        advice:
            "The target, or something on the way to it, compresses, deduplicates or leaves such \
                 data out: measure with random data."
                .to_owned(),
    })
}

/// Whether the figures of a candidate are those of data that the target saves, as far as is known by
/// now: its trials may have come before those with random data.
pub(super) fn is_saved(sweep: &Sweep, place: usize) -> bool {
    let random = || sweep.estimate(counterpart(sweep, place)?);
    let shown = sweep.estimate(place);
    is_repeating(&sweep.candidates[place].point)
        && shown.zip(random()).is_some_and(|(shown, random)| much_faster(shown, random))
}

/// The same settings with data of which nothing can be saved.
fn counterpart(sweep: &Sweep, place: usize) -> Option<usize> {
    let others = |coordinates: &[Coordinate]| {
        let others = coordinates.iter().filter(|one| !is_payload(&one.axis));
        others.map(|one| (one.axis.clone(), one.label.clone())).collect::<Vec<_>>()
    };
    let wanted = others(&sweep.candidates[place].coordinates);
    let mut all = sweep.candidates.iter();
    all.position(|one| is_unique(&one.point) && others(&one.coordinates) == wanted)
}

/// Whether an axis is that of the payload, of one stream or of all.
fn is_payload(axis: &str) -> bool {
    axis.rsplit('.').next() == Some("payload")
}

fn much_faster(shown: Estimate, random: Estimate) -> bool {
    let half = |half: Option<f64>| half.unwrap_or(0.0);
    let slowest = shown.value - half(shown.half_width);
    MUCH * (random.value + half(random.half_width)) < slowest
}

fn written(point: &Point) -> impl Iterator<Item = &Stream> {
    point.streams.iter().filter(|stream| stream.read_share < 1.0)
}

/// Whether all that a point writes repeats itself.
pub(in crate::experiment) fn is_repeating(point: &Point) -> bool {
    let repeats = |stream: &Stream| matches!(stream.payload, Payload::Zeros | Payload::Pattern(_));
    written(point).next().is_some() && written(point).all(repeats)
}

/// Whether nothing can be saved of anything that a point writes.
pub(in crate::experiment) fn is_unique(point: &Point) -> bool {
    written(point).next().is_some() && written(point).all(|one| one.payload == Payload::UNIQUE)
}
