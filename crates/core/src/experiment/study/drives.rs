//! What studies of arrays know of their targets, and the best that each of them reached.

use crate::experiment::sweep::Sweep;
use crate::experiment::{Candidate, Coordinate};
use crate::facts::Target;
use crate::measure::Direction;
use crate::stats::Estimate;

/// The axis of the targets.
const TARGETS: &str = "targets";

/// A target of a study that compares several.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Drives {
    /// Its name, as on the axis of the targets.
    pub name: String,
    /// What it is made of: "raid5, 4 disks, chunk 64 KiB, full stripe 192 KiB", "single disk".
    pub geometry: String,
    /// How many disks it is spread over.
    pub disks: u32,
}

impl Drives {
    /// What is known of a target.
    pub fn of(target: &Target) -> Self {
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
        Self { name: target.name.clone(), geometry, disks }
    }

    /// The results on it that go in one direction alone.
    pub(super) fn results<'s>(
        &self,
        sweep: &'s Sweep,
        direction: Direction,
    ) -> Vec<(&'s Candidate, Estimate)> {
        let here = |one: &Candidate| {
            label(one, TARGETS).is_none_or(|label| label == self.name)
                && one.point.streams.iter().all(|s| s.only_direction() == Some(direction))
        };
        sweep.results().filter(|(one, shown)| here(one) && 0.0 < shown.value).collect()
    }
}

/// The highest of several results.
pub(super) fn best<'a>(results: &[(&'a Candidate, Estimate)]) -> Option<(&'a Candidate, f64)> {
    let values = results.iter().map(|(one, shown)| (*one, shown.value));
    values.max_by(|one, other| one.1.total_cmp(&other.1))
}

/// Where a result lies on an axis.
pub(super) fn coordinate<'a>(one: &'a Candidate, axis: &str) -> Option<&'a Coordinate> {
    one.coordinates.iter().find(|coordinate| coordinate.axis == axis)
}

/// The same as it was typed.
pub(super) fn label<'a>(one: &'a Candidate, axis: &str) -> Option<&'a str> {
    coordinate(one, axis).map(|coordinate| coordinate.label.as_str())
}
