//! The surface of one quantile over the cells of a latency map, filled in from those that were
//! measured. Pure arithmetic on logarithms; docs/method/map.md says why each step is there.

use std::collections::{BTreeMap, BTreeSet};

use delaunator::{Point as Corner, triangulate};

use super::frontier::Frontier;
use super::grid::{Shape, Spot};

/// A measured value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Known {
    /// The natural logarithm of the response time.
    pub ln: f64,
    /// Its standard error, as a share: that of the logarithm.
    pub error: f64,
}

/// The logarithm of the response time at every admissible cell that was not measured.
pub fn fill(
    shape: Shape,
    frontier: &Frontier,
    known: &BTreeMap<Spot, Known>,
) -> BTreeMap<Spot, f64> {
    let idle: Vec<(usize, f64)> = known
        .iter()
        .filter(|(spot, _)| spot.read == 0)
        .map(|(spot, v)| (spot.write, v.ln))
        .collect();
    let loaded: Vec<(Spot, Known)> =
        known.iter().filter(|(spot, _)| spot.read > 0).map(|(&spot, &v)| (spot, v)).collect();
    let plane = Plane::new(shape, frontier);
    let net = Net::new(loaded.iter().map(|&(spot, v)| (plane.place(spot), v)).collect());
    let unknown = shape.spots().filter(|spot| frontier.admits(*spot) && !known.contains_key(spot));
    let value = |spot: Spot| match spot.read {
        // Single reads find a device that sleeps between them: this row is not an edge of the
        // surface.
        0 => along(&idle, spot.write).or_else(|| net.at(plane.place(spot))),
        _ => net.at(plane.place(spot)),
    };
    unknown.filter_map(|spot| value(spot).map(|ln| (spot, ln))).collect()
}

/// Every admissible cell that was not measured, with the measured ones that it lies between.
pub fn between(
    shape: Shape,
    frontier: &Frontier,
    measured: &BTreeSet<Spot>,
) -> BTreeMap<Spot, Vec<Spot>> {
    let (idle, loaded): (Vec<Spot>, Vec<Spot>) = measured.iter().partition(|spot| spot.read == 0);
    let plane = Plane::new(shape, frontier);
    // The cells around a place do not depend on their values.
    let nothing = Known { ln: 0.0, error: 0.0 };
    let net = Net::new(loaded.iter().map(|&spot| (plane.place(spot), nothing)).collect());
    let unknown = shape.spots().filter(|spot| frontier.admits(*spot) && !measured.contains(spot));
    let of = |spot: Spot| {
        let before = idle.iter().rfind(|one| one.write <= spot.write);
        let after = idle.iter().find(|one| one.write >= spot.write);
        match spot.read == 0 && !idle.is_empty() {
            true => before.into_iter().chain(after).copied().collect(),
            false => {
                let around = net.around(&plane.place(spot)).into_iter();
                around.filter(|(_, share)| *share > 1e-6).map(|(at, _)| loaded[at]).collect()
            }
        }
    };
    unknown.map(|spot| (spot, of(spot))).collect()
}

/// Linear along a row with measured places in rising order; beyond its ends the value of the
/// nearest one.
fn along(row: &[(usize, f64)], place: usize) -> Option<f64> {
    let before = row.iter().rfind(|(at, _)| *at <= place);
    let after = row.iter().find(|(at, _)| *at >= place);
    match (before, after) {
        (Some(&(from, a)), Some(&(to, b))) if to > from => {
            Some(a + (b - a) * (place - from) as f64 / (to - from) as f64)
        }
        (one, other) => one.or(other).map(|&(_, ln)| ln),
    }
}

/// The length of both axes in the plane: the steps of the usual grid, so that its cells are
/// squares.
const SIDE: f64 = 20.0;

/// How much the read axis is stretched towards the frontier. Where a queue builds up, as in M/M/1,
/// the logarithm of the response time is linear in -ln(1 - load); before that it is nearly linear
/// in the load.
const DRAWN_OUT: f64 = 0.3;

/// The divisor of -ln(1 - load), so that one step below the end of the usual grid is 1 on it as
/// well: ln 20.
const TO_ONE: f64 = 3.0;

/// Places the cells so that the surface over them bends as little as possible: the share of the
/// load that the column can carry counts, not the read rate itself.
struct Plane {
    writes: f64,
    /// For each column the read step, as a fraction, at which the target is fully loaded.
    full: Vec<f64>,
}

impl Plane {
    fn new(shape: Shape, frontier: &Frontier) -> Self {
        Self { writes: (shape.writes - 1).max(1) as f64, full: smooth(&frontier.highest) }
    }

    fn place(&self, spot: Spot) -> Corner {
        let load = (spot.read as f64 / self.full[spot.write]).min(0.98);
        let drawn = -(1.0 - load).ln() / TO_ONE;
        Corner {
            x: SIDE * spot.write as f64 / self.writes,
            y: SIDE * ((1.0 - DRAWN_OUT) * load + DRAWN_OUT * drawn),
        }
    }
}

/// How often the frontier is smoothed: over the few columns between two of its steps it settles
/// after far fewer rounds.
const ROUNDS: usize = 50;

/// The true frontier lies anywhere between the last step that is admissible and the next one. This
/// is the smoothest line in between, half a step above: with whole steps, columns of the same load
/// would be placed a step apart.
fn smooth(highest: &[usize]) -> Vec<f64> {
    let mut line: Vec<f64> = highest.iter().map(|&step| step as f64 + 0.5).collect();
    for _ in 0..ROUNDS {
        for place in 1..line.len().saturating_sub(1) {
            let step = highest[place] as f64;
            line[place] = ((line[place - 1] + line[place + 1]) / 2.0).clamp(step, step + 1.0);
        }
    }
    line.iter().map(|step| step + 0.5).collect()
}

/// Measured values with the triangles between them.
struct Net {
    corners: Vec<Corner>,
    values: Vec<f64>,
    triangles: Vec<[usize; 3]>,
}

impl Net {
    fn new(known: Vec<(Corner, Known)>) -> Self {
        let (corners, known): (Vec<Corner>, Vec<Known>) = known.into_iter().unzip();
        let triangles: Vec<[usize; 3]> = triangulate(&corners)
            .triangles
            .chunks_exact(3)
            .map(|three| [three[0], three[1], three[2]])
            .collect();
        let values = quieten(&corners, &known, &triangles);
        Self { corners, values, triangles }
    }

    /// Linear within the triangle around a place; for a place a little outside of all triangles,
    /// its value at the nearest edge.
    fn at(&self, place: Corner) -> Option<f64> {
        let shares = self.around(&place);
        let value = || shares.iter().map(|&(at, share)| share * self.values[at]).sum();
        (!shares.is_empty()).then(value)
    }

    /// The corners of the triangle around a place, and the weight of each.
    fn around(&self, place: &Corner) -> Vec<(usize, f64)> {
        let inside = |weights: &[f64; 3]| weights.iter().copied().fold(f64::INFINITY, f64::min);
        let best = self
            .triangles
            .iter()
            .filter_map(|&three| {
                let weights = shares(three.map(|corner| &self.corners[corner]), place)?;
                Some((three, weights, inside(&weights)))
            })
            .max_by(|a, b| a.2.total_cmp(&b.2));
        let Some((three, weights, _)) = best else {
            return self.nearest(place).map(|at| (at, 1.0)).into_iter().collect();
        };
        let weights = weights.map(|weight| weight.max(0.0));
        let sum: f64 = weights.iter().sum();
        (0..3).map(|at| (three[at], weights[at] / sum)).collect()
    }

    /// The nearest measured cell: if all lie on one line there are no triangles.
    fn nearest(&self, place: &Corner) -> Option<usize> {
        let far = |one: &Corner| (one.x - place.x).powi(2) + (one.y - place.y).powi(2);
        let corners = self.corners.iter().enumerate();
        corners.min_by(|a, b| far(a.1).total_cmp(&far(b.1))).map(|(at, _)| at)
    }
}

/// The barycentric coordinates of a place in a triangle, unless the triangle is a line.
fn shares([a, b, c]: [&Corner; 3], place: &Corner) -> Option<[f64; 3]> {
    let cross =
        |p: &Corner, q: &Corner, r: &Corner| (q.x - p.x) * (r.y - p.y) - (r.x - p.x) * (q.y - p.y);
    let whole = cross(a, b, c);
    // For a triangle of cells this is the area of a hundred thousandth of a cell.
    (whole.abs() > 1e-5).then(|| {
        [cross(place, b, c) / whole, cross(a, place, c) / whole, cross(a, b, place) / whole]
    })
}

/// The comparison of a measured value with the plane through its neighbors.
struct Offset {
    /// By how much it lies above.
    above: f64,
    /// The variance of the plane there, from the errors of the neighbors.
    variance: f64,
}

/// Removes noise from measured values: each moves towards the plane through its neighbors. It moves
/// the more, the better the neighborhood agrees with planes, as far as the noise shows. A value
/// that lies further off than noise explains does not move: a cliff is not noise.
fn quieten(corners: &[Corner], known: &[Known], triangles: &[[usize; 3]]) -> Vec<f64> {
    let mut neighbors: Vec<BTreeSet<usize>> = vec![BTreeSet::new(); corners.len()];
    for three in triangles {
        for at in 0..3 {
            neighbors[three[at]].extend([three[(at + 1) % 3], three[(at + 2) % 3]]);
        }
    }
    let offsets: Vec<Option<Offset>> =
        (0..corners.len()).map(|at| offset(corners, known, at, &neighbors[at])).collect();
    let noise = |at: usize, offset: &Offset| known[at].error.powi(2) + offset.variance;
    let value = |at: usize| {
        let Some(here) = &offsets[at] else { return known[at].ln };
        let mut bends: Vec<f64> = neighbors[at]
            .iter()
            .chain([&at])
            .filter_map(|&one| offsets[one].as_ref().map(|offset| (one, offset)))
            .map(|(one, offset)| {
                (offset.above.powi(2) / MEDIAN_OF_SQUARE - noise(one, offset)).max(0.0)
            })
            .collect();
        let outlying = (here.above.powi(2) - 4.0 * noise(at, here)).max(0.0);
        let bend = upper_median(&mut bends).unwrap_or(0.0).max(outlying);
        let own = known[at].error.powi(2);
        let total = own + here.variance + bend;
        if total > 0.0 { known[at].ln - own / total * here.above } else { known[at].ln }
    };
    (0..corners.len()).map(value).collect()
}

/// The median of the square of a standard normal variable.
const MEDIAN_OF_SQUARE: f64 = 0.455;

fn upper_median(values: &mut [f64]) -> Option<f64> {
    values.sort_unstable_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

/// Compares a value with the plane through its neighbors, weighted by nearness; none if there are
/// too few for a plane.
fn offset(
    corners: &[Corner],
    known: &[Known],
    at: usize,
    neighbors: &BTreeSet<usize>,
) -> Option<Offset> {
    if neighbors.len() < 3 {
        return None;
    }
    let near: Vec<(f64, f64, f64, Known)> = neighbors
        .iter()
        .map(|&one| {
            let (x, y) = (corners[one].x - corners[at].x, corners[one].y - corners[at].y);
            // A quarter of a cell keeps a neighbor that is very near from deciding alone.
            (1.0 / (x * x + y * y + 0.25), x, y, known[one])
        })
        .collect();
    let sum = |f: fn(f64, f64) -> f64| near.iter().map(|&(w, x, y, _)| w * f(x, y)).sum::<f64>();
    let (one, sx, sy, sxy) = (sum(|_, _| 1.0), sum(|x, _| x), sum(|_, y| y), sum(|x, y| x * y));
    // A little is added to the diagonal: neighbors on one line say nothing about the slope across
    // it.
    let ridge = 1e-3 * one;
    let (sxx, syy) = (sum(|x, _| x * x) + ridge, sum(|_, y| y * y) + ridge);
    let (a, b, c) = (sxx * syy - sxy * sxy, sxy * sy - sx * syy, sx * sxy - sxx * sy);
    let determinant = one * a + sx * b + sy * c;
    let share = |&(w, x, y, _): &(f64, f64, f64, Known)| w * (a + b * x + c * y) / determinant;
    let plane: f64 = near.iter().map(|one| share(one) * one.3.ln).sum();
    let variance = near.iter().map(|one| (share(one) * one.3.error).powi(2)).sum();
    Some(Offset { above: known[at].ln - plane, variance })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SplitMix64;

    const SHAPE: Shape = Shape { writes: 21, reads: 21, first_read: 0 };

    fn frontier() -> Frontier {
        Frontier { highest: (0..21).map(|write| 20 - write / 2).collect(), idle: vec![true; 21] }
    }

    fn lattice(value: impl Fn(Spot) -> Known) -> BTreeMap<Spot, Known> {
        let chosen = |spot: &Spot| spot.write.is_multiple_of(5) && spot.read.is_multiple_of(5);
        let admitted = SHAPE.spots().filter(|spot| frontier().admits(*spot));
        admitted.filter(chosen).map(|spot| (spot, value(spot))).collect()
    }

    #[test]
    fn a_surface_that_does_not_bend_is_filled_in_exactly() {
        let frontier = frontier();
        let plane = Plane::new(SHAPE, &frontier);
        let truth = |spot: Spot| {
            let Corner { x, y } = plane.place(spot);
            11.0 + 0.02 * x + 0.05 * y
        };
        let filled = fill(SHAPE, &frontier, &lattice(|s| Known { ln: truth(s), error: 0.04 }));
        assert!(filled.len() > 250);
        for (spot, ln) in filled.iter().filter(|(spot, _)| (5..=8).contains(&spot.read)) {
            assert!((ln - truth(*spot)).abs() < 5e-3, "{spot:?}: {ln} for {}", truth(*spot));
        }
    }

    #[test]
    fn noise_is_taken_out_and_a_cliff_is_not() {
        let mut chance = SplitMix64(3);
        let frontier = frontier();
        let noisy = lattice(|_| Known { ln: 12.0, error: 0.08 })
            .into_iter()
            .map(|(spot, v)| (spot, Known { ln: v.ln + 0.08 * chance.normal(), ..v }))
            .collect();
        let filled = fill(SHAPE, &frontier, &noisy);
        let loaded: Vec<f64> = filled
            .iter()
            .filter(|(spot, _)| spot.read > 0)
            .map(|(_, ln)| (ln - 12.0).powi(2))
            .collect();
        let spread = (loaded.iter().sum::<f64>() / loaded.len() as f64).sqrt();
        assert!(spread < 0.05, "{spread}");
        // Two levels that differ by a factor of e. The step keeps its place.
        let step = |spot: Spot| if spot.write < 8 { 11.0 } else { 12.0 };
        let filled = fill(SHAPE, &frontier, &lattice(|s| Known { ln: step(s), error: 0.04 }));
        assert!((filled[&Spot { write: 2, read: 7 }] - 11.0).abs() < 0.02);
        assert!((filled[&Spot { write: 18, read: 7 }] - 12.0).abs() < 0.02);
    }

    #[test]
    fn a_cell_lies_between_the_measured_ones_around_it() {
        let frontier = frontier();
        let measured = lattice(|_| Known { ln: 0.0, error: 0.0 }).into_keys().collect();
        let between = between(SHAPE, &frontier, &measured);
        let at = |write: usize, read: usize| Spot { write, read };
        assert_eq!(between[&at(7, 0)], [at(5, 0), at(10, 0)]);
        for (spot, others) in &between {
            assert!((1..=3).contains(&others.len()), "{spot:?}: {others:?}");
            assert!(others.iter().all(|other| measured.contains(other)));
        }
        let inner = &between[&at(7, 7)];
        assert!(inner.iter().all(|one| one.write.abs_diff(7) <= 5 && one.read.abs_diff(7) <= 5));
    }

    #[test]
    fn a_few_cells_are_enough_for_an_answer_and_none_for_none() {
        let frontier = frontier();
        let one = BTreeMap::from([(Spot { write: 3, read: 4 }, Known { ln: 9.0, error: 0.0 })]);
        assert!(fill(SHAPE, &frontier, &one).values().all(|&ln| ln == 9.0));
        assert!(fill(SHAPE, &frontier, &BTreeMap::new()).is_empty());
    }
}
