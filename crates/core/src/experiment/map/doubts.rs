//! Why a latency map is not to be relied on, each reason with its figures and a remedy. Judges a
//! finished search and does not change it.

use super::search::CellSearch;
use crate::experiment::{CellKind, MapCell};
use crate::figures::percent;

/// The change of the sentinels from which on there is a doubt.
const DRIFT: f64 = 0.10;

/// The share of neighbors at which more load makes the median much shorter, from which on there is
/// a doubt. By chance it is one in a thousand; of the stored maps the one that is known to be
/// erratic has 5 to 10 %, and no other one more than 3 %.
const FALLING: f64 = 0.04;

/// The share of measured cells that stayed imprecise from which on there is a doubt.
const IMPRECISE: f64 = 0.25;

/// The number of cells that contradict each other about the load that the target carries, from
/// which on there is a doubt: a single one can be chance at the very frontier, and each is a
/// misclassified cell.
const CONTRADICTIONS: usize = 2;

/// The doubts about a map, one sentence each; none if it is to be relied on.
pub fn doubts(search: &CellSearch, surfaces: &[super::Surface], cells: &[MapCell]) -> Vec<String> {
    let mut doubts = Vec::new();
    for (place, surface) in surfaces.iter().enumerate() {
        if let Some(error) = search.misses(place) {
            doubts.push(format!(
                "The cells that were filled in are off by {} at {} (median of those that were \
                 checked), and {} are allowed: measure with --exhaustive.",
                percent(error.exp_m1()),
                surface.quantile,
                percent(surface.tolerance),
            ));
        }
    }
    let (falling, pairs) = search.falling();
    if pairs > 0 && falling as f64 > FALLING * pairs as f64 {
        doubts.push(format!(
            "Reads become faster under more load at {falling} of {pairs} neighboring cells: \
             something other than this load decides about their response times, and what lies \
             between measured cells is unknown. Look for other load on the target and for power \
             saving, or measure with --exhaustive."
        ));
    }
    if let Some((change, error)) = search.drift()
        && change.abs() > (1.0 + DRIFT).ln().max(2.0 * error)
    {
        let word = if change > 0.0 { "longer" } else { "shorter" };
        doubts.push(format!(
            "Cells that were measured again at the end took {} {word} than before: the target \
             changed meanwhile. Let it settle (precondition it, or let it rest) and measure again.",
            percent(change.exp_m1().abs()),
        ));
    }
    let carried = |cell: &&MapCell| matches!(cell.kind, CellKind::Measured | CellKind::Imprecise);
    let imprecise = cells.iter().filter(|cell| cell.kind == CellKind::Imprecise).count();
    let measured = cells.iter().filter(carried).count();
    if imprecise as f64 > IMPRECISE * measured as f64 {
        doubts.push(format!(
            "{imprecise} of {measured} measured cells are not as precise as asked for: allow more \
             time for each with --cell-time-max.",
        ));
    }
    match search.contradictions() {
        cells if cells > CONTRADICTIONS => doubts.push(format!(
            "The target did not carry {cells} cells although it carried more load elsewhere: where \
             its limit lies changes with time."
        )),
        _ => {}
    }
    doubts
}
