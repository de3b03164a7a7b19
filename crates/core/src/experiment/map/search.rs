//! Which cells of a latency map to measure, and the conclusions for the others: a state machine
//! over small numbers, which runs over a stored grid in a millisecond. Knows nothing of points and
//! trials.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::frontier::{self, Frontier};
use super::grid::{Reading, Shape, Spot};
use super::surface::{self, Known};
use crate::SplitMix64;
use crate::experiment::{CellDoubt, CellKind, MapCell, Validation};
use crate::stats::{Estimate, Z_95, median};
use crate::trial::Role;
use crate::units::Quantile;

/// A quantile of the map and the precision that it needs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Surface {
    /// The quantile.
    pub quantile: Quantile,
    /// The half-width that is enough, and the error of cells that were not measured, as a share.
    pub tolerance: f64,
}

/// The settings of a search.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// The grid.
    pub shape: Shape,
    /// The quantiles, at least one. The first ones up to p95 decide where to measure: higher
    /// quantiles have too few samples to tell a slope from chance.
    pub surfaces: Vec<Surface>,
    /// Whether every cell is measured.
    pub exhaustive: bool,
    /// The most measurements, including those that check other cells.
    pub cells_at_most: usize,
    /// Repeats the order and the choice of the checked cells.
    pub seed: u64,
}

/// A cell to measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ask {
    /// The cell.
    pub spot: Spot,
    /// The reason: a result, a validation or a sentinel.
    pub role: Role,
}

/// How many measurements a grid with this many write steps may take: two in each column for the
/// frontier, and 58 for the surface and for its checks. With the usual 21 columns that is 100: with
/// cells of 6 s each a map takes 10 minutes, 25 times less than 441 cells of 35 s.
pub fn cells_at_most(shape: Shape) -> usize {
    2 * shape.writes + 58
}

/// Where both loads are measured first, as shares of the axes: both ends, the step above the lower
/// end (the surface bends there), and quarters.
const LATTICE: [f64; 5] = [0.0, 0.25, 0.5, 0.75, 1.0];

/// Two measured neighbors that are two steps apart are close enough if they differ by at most this
/// many tolerances; at larger distances by less, with the square root of the distance, because more
/// cells between depend on them. If the surface rises steadily, a line between them misses a cell
/// by at most half of such a jump, and typically by a fifth.
const JUMP: f64 = 5.0;

/// Cells that are measured to check filled-in values.
const VALIDATIONS: usize = 8;

/// Cells that are measured again at the end.
pub(super) const SENTINELS: usize = 3;

/// The last quantile that decides where to measure.
const DECIDES: f64 = 0.95;

/// The search for the cells to measure.
#[derive(Clone, Debug)]
pub struct CellSearch {
    options: Options,
    readings: BTreeMap<Spot, Reading>,
    stage: SearchStage,
    /// The divisor of a jump: 1, or 1/2 after a validation that failed.
    fineness: f64,
    /// The cells that checked the others: how far off the surface was, in logarithms.
    checked: Vec<Checked>,
    /// The cells that were measured again: their first and their second values.
    again: Vec<(Reading, Reading)>,
}

#[derive(Clone, Debug)]
enum SearchStage {
    /// First the cells of a list, and then the next stage.
    List(VecDeque<Spot>, Next),
    /// Until the frontier is known.
    Frontier,
    /// Until no jump is too large.
    Refine,
    /// These cells, with the values that are expected there.
    Validate(VecDeque<(Spot, Vec<Option<f64>>)>),
    /// These cells once more.
    Sentinels(VecDeque<Spot>),
    /// No more measurements.
    Done,
}

#[derive(Clone, Copy, Debug)]
enum Next {
    Refine,
    Sentinels,
}

/// A cell that was first filled in and then measured.
#[derive(Clone, Debug)]
struct Checked {
    /// For each quantile the difference of the logarithms, and the standard error of the measurement.
    errors: Vec<Option<(f64, f64)>>,
    /// Whether it belongs to the latest round: earlier rounds checked a coarser surface.
    latest: bool,
}

impl CellSearch {
    /// A search without measurements.
    ///
    /// # Panics
    ///
    /// Without a cell or a quantile, which resolving the options rules out.
    pub fn new(options: Options) -> Self {
        assert!(options.shape.writes > 0 && options.shape.first_read < options.shape.reads);
        assert!(!options.surfaces.is_empty());
        let stage = match options.exhaustive {
            true => {
                let all = shuffled(options.shape.spots().collect(), options.seed);
                SearchStage::List(all, Next::Sentinels)
            }
            false => SearchStage::Frontier,
        };
        Self {
            options,
            readings: BTreeMap::new(),
            stage,
            fineness: 1.0,
            checked: Vec::new(),
            again: Vec::new(),
        }
    }

    /// The cell to measure next; none if the map is complete. The same cell until its result is
    /// known.
    pub fn ask(&mut self) -> Option<Ask> {
        let result = |spot| Some(Ask { spot, role: Role::Result });
        loop {
            self.stage = match &self.stage {
                SearchStage::List(spots, next) => match spots.front() {
                    Some(&spot) => return result(spot),
                    None => match next {
                        Next::Refine => SearchStage::Refine,
                        Next::Sentinels => SearchStage::Sentinels(self.sentinels()),
                    },
                },
                SearchStage::Frontier => {
                    match frontier::explore(self.options.shape, &self.readings) {
                        Err(spot) => return result(spot),
                        Ok(frontier) => SearchStage::List(self.lattice(&frontier), Next::Refine),
                    }
                }
                SearchStage::Refine => match self.refined().filter(|_| self.left() > 0) {
                    Some(spot) => return result(spot),
                    None => SearchStage::Validate(self.to_validate()),
                },
                SearchStage::Validate(spots) => match spots.front() {
                    Some(&(spot, _)) => return Some(Ask { spot, role: Role::Validation }),
                    None if self.fineness == 1.0 && self.fails() && self.left() > 0 => {
                        self.fineness = 2.0;
                        self.checked.iter_mut().for_each(|one| one.latest = false);
                        SearchStage::Refine
                    }
                    None => SearchStage::Sentinels(self.sentinels()),
                },
                SearchStage::Sentinels(spots) => match spots.front() {
                    Some(&spot) => return Some(Ask { spot, role: Role::Sentinel }),
                    None => SearchStage::Done,
                },
                SearchStage::Done => return None,
            };
        }
    }

    /// The cells that come after the one that was asked for last, as far as they do not depend on
    /// its result; at most this many.
    pub fn foreseen(&self, most: usize) -> Vec<Ask> {
        let as_ask = |role| move |spot: &Spot| Ask { spot: *spot, role };
        match &self.stage {
            SearchStage::List(spots, _) => {
                spots.iter().skip(1).take(most).map(as_ask(Role::Result)).collect()
            }
            SearchStage::Validate(spots) => {
                let spots = spots.iter().map(|(spot, _)| spot);
                spots.skip(1).take(most).map(as_ask(Role::Validation)).collect()
            }
            SearchStage::Sentinels(spots) => {
                spots.iter().skip(1).take(most).map(as_ask(Role::Sentinel)).collect()
            }
            SearchStage::Frontier | SearchStage::Refine | SearchStage::Done => Vec::new(),
        }
    }

    /// Takes the result of the cell that `ask` named.
    pub fn tell(&mut self, ask: Ask, reading: Reading) {
        match &mut self.stage {
            SearchStage::List(spots, _) => {
                spots.pop_front();
            }
            SearchStage::Validate(spots) => {
                if let Some((_, expected)) = spots.pop_front().filter(|_| reading.counts()) {
                    self.checked.push(Checked::new(&expected, &reading));
                }
            }
            SearchStage::Sentinels(spots) => {
                spots.pop_front();
                let first = self.readings.get(&ask.spot).filter(|first| first.counts());
                if let Some(first) = first.filter(|_| !reading.is_void()) {
                    self.again.push((first.clone(), reading));
                }
                return;
            }
            SearchStage::Frontier | SearchStage::Refine | SearchStage::Done => {}
        }
        self.readings.insert(ask.spot, reading);
    }

    /// The shortest response time so far at the first quantile, in nanoseconds.
    pub fn shortest(&self) -> Option<f64> {
        let carried = self.readings.values().filter(|one| one.counts());
        carried
            .filter_map(|one| one.response_times.first().copied().flatten())
            .map(|time| time.value)
            .min_by(f64::total_cmp)
    }

    /// How many measurements are left for the surface, without those for its checks.
    fn left(&self) -> usize {
        self.options.cells_at_most.saturating_sub(self.readings.len() + VALIDATIONS + SENTINELS)
    }

    /// Measurements that are still to come: probably, and at most.
    pub fn ahead(&self) -> (usize, usize) {
        let all = self.options.shape.spots().count();
        let most = match self.options.exhaustive {
            true => all + SENTINELS,
            false => self.options.cells_at_most.min(all + SENTINELS),
        };
        let most = most.saturating_sub(self.readings.len() + self.again.len());
        let probable = match &self.stage {
            SearchStage::List(spots, Next::Sentinels) => spots.len() + SENTINELS,
            SearchStage::Validate(spots) => spots.len() + SENTINELS,
            SearchStage::Sentinels(spots) => spots.len(),
            SearchStage::Done => 0,
            // On the grids that it was tried with it took four fifths of the most, or more.
            _ => most,
        };
        (probable.min(most), most)
    }

    /// The frontier as far as the measured cells show it: if they leave it open, the highest step
    /// that was carried.
    fn frontier(&self) -> Frontier {
        let shape = self.options.shape;
        match frontier::explore(shape, &self.readings) {
            Ok(frontier) if !self.options.exhaustive => frontier,
            _ => {
                let carried = |write: usize| {
                    let here = self
                        .readings
                        .range(Spot { write, read: 0 }..Spot { write: write + 1, read: 0 });
                    here.filter(|(_, one)| one.admissible).map(|(spot, _)| spot.read).max()
                };
                let highest = (0..shape.writes).map(|write| carried(write).unwrap_or(0)).collect();
                let idle = (0..shape.writes).map(|write| carried(write).is_some()).collect();
                Frontier { highest, idle }
            }
        }
    }

    /// The first cells of the surface, in random order.
    fn lattice(&self, frontier: &Frontier) -> VecDeque<Spot> {
        let shape = self.options.shape;
        let steps = |count: usize| -> Vec<usize> {
            let last = count - 1;
            let mut steps: Vec<usize> =
                LATTICE.iter().map(|share| (share * last as f64).round() as usize).collect();
            steps.push(1.min(last));
            steps.sort_unstable();
            steps.dedup();
            steps
        };
        let mut spots = Vec::new();
        for write in steps(shape.writes) {
            let reads = steps(shape.reads).into_iter().chain([frontier.highest[write]]);
            spots.extend(reads.map(|read| Spot { write, read }));
        }
        spots.sort_unstable();
        spots.dedup();
        spots.retain(|spot| {
            spot.read >= shape.first_read
                && frontier.admits(*spot)
                && !self.readings.contains_key(spot)
        });
        shuffled(spots, self.options.seed)
    }

    /// The quantiles that decide, by their place.
    fn deciding(&self) -> impl Iterator<Item = (usize, f64)> {
        let surfaces = self.options.surfaces.iter().enumerate();
        surfaces
            .filter(|(place, one)| *place == 0 || one.quantile.0 <= DECIDES)
            .map(|(place, one)| (place, one.tolerance))
    }

    /// The middle between the two neighbors with the largest jump, if it is too large.
    fn refined(&self) -> Option<Spot> {
        let frontier = self.frontier();
        let jump = |(a, one): Told<'_>, (b, other): Told<'_>| {
            let gap = (b.write - a.write) + (b.read - a.read);
            let middle = Spot { write: (a.write + b.write) / 2, read: (a.read + b.read) / 2 };
            if gap < 2 || self.readings.contains_key(&middle) || !frontier.admits(middle) {
                return None;
            }
            let largest = self
                .deciding()
                .filter_map(|(place, tolerance)| {
                    Some((one.known(place)?.ln - other.known(place)?.ln).abs() / (JUMP * tolerance))
                })
                .fold(0.0, f64::max);
            Some((largest * (gap as f64 / 2.0).sqrt() * self.fineness, middle))
        };
        let pairs = self.neighbors().into_iter().filter_map(|(a, b)| jump(a, b));
        let largest = pairs.max_by(|a, b| a.0.total_cmp(&b.0).then(b.1.cmp(&a.1)))?;
        (largest.0 > 1.0).then_some(largest.1)
    }

    /// Pairs of cells with reads that were measured and carried, with no such cell between them, in
    /// a row or in a column; the one with less load first.
    fn neighbors(&self) -> Vec<(Told<'_>, Told<'_>)> {
        let mut carried: Vec<Told<'_>> = self
            .readings
            .iter()
            .filter(|(spot, one)| spot.read > 0 && one.counts())
            .map(|(&spot, one)| (spot, one))
            .collect();
        let mut pairs = Vec::new();
        let columns = carried.windows(2).filter(|two| two[0].0.write == two[1].0.write);
        pairs.extend(columns.map(|two| (two[0], two[1])));
        carried.sort_by_key(|(spot, _)| (spot.read, spot.write));
        let rows = carried.windows(2).filter(|two| two[0].0.read == two[1].0.read);
        pairs.extend(rows.map(|two| (two[0], two[1])));
        pairs
    }

    /// Random cells that were not measured, with the values of the surfaces there.
    fn to_validate(&self) -> VecDeque<(Spot, Vec<Option<f64>>)> {
        let filled = self.filled();
        let frontier = self.frontier();
        let unknown = self.options.shape.spots().filter(|spot| {
            spot.read > 0 && frontier.admits(*spot) && !self.readings.contains_key(spot)
        });
        let seed = self.options.seed ^ self.readings.len() as u64;
        shuffled(unknown.collect(), seed)
            .into_iter()
            .take(VALIDATIONS)
            .map(|spot| (spot, filled.iter().map(|one| one.get(&spot).copied()).collect()))
            .collect()
    }

    /// The surfaces at the cells that were not measured, as logarithms.
    fn filled(&self) -> Vec<BTreeMap<Spot, f64>> {
        let frontier = self.frontier();
        let known = |place: usize| {
            let carried = self.readings.iter().filter(|(_, one)| one.counts());
            carried.filter_map(|(&spot, one)| Some((spot, one.known(place)?))).collect()
        };
        let shape = self.options.shape;
        let between = self.between(&frontier);
        let filled = |place: usize| {
            let known: BTreeMap<Spot, Known> = known(place);
            let mut filled = surface::fill(shape, &frontier, &known);
            // Next to a cell with too few samples for a high quantile there is no value to take:
            // the nearest cell that has one may be at the frontier, where it is a hundred times as
            // long. The first quantile guides the search, and has the samples.
            filled.retain(|spot, _| {
                let mut beside = between.get(spot).into_iter().flatten();
                place == 0 || beside.all(|other| known.contains_key(other))
            });
            filled
        };
        (0..self.options.surfaces.len()).map(filled).collect()
    }

    /// Every cell that is filled in, with the measured ones that it lies between.
    fn between(&self, frontier: &Frontier) -> BTreeMap<Spot, Vec<Spot>> {
        let measured = self.readings.iter().filter(|(_, one)| one.counts());
        let measured: BTreeSet<Spot> = measured.map(|(&spot, _)| spot).collect();
        surface::between(self.options.shape, frontier, &measured)
    }

    /// The doubt about a cell: that of its own trial, or of one of those that it lies between.
    fn doubt(&self, spot: Spot, between: &BTreeMap<Spot, Vec<Spot>>) -> Option<CellDoubt> {
        let own = |spot: &Spot| self.readings.get(spot).and_then(|one| one.doubt.clone());
        match self.readings.contains_key(&spot) {
            true => own(&spot),
            false => between.get(&spot).into_iter().flatten().find_map(own),
        }
    }

    /// Three measured cells: with little load, with medium load, and with much; not so close to the
    /// frontier that a little more load has a large effect.
    fn sentinels(&self) -> VecDeque<Spot> {
        let frontier = self.frontier();
        let Shape { writes, .. } = self.options.shape;
        let calm = |spot: &Spot| spot.read > 0 && spot.read * 5 <= frontier.highest[spot.write] * 4;
        let candidates: Vec<Spot> = self
            .readings
            .iter()
            .filter(|(spot, one)| one.counts() && one.known(0).is_some() && calm(spot))
            .map(|(&spot, _)| spot)
            .collect();
        let mut chosen = Vec::new();
        for (write, share) in [(0, 0.25), (writes / 2, 0.5), (writes * 3 / 4, 0.7)] {
            let read = (share * frontier.highest[write] as f64) as usize;
            let distance = |spot: &Spot| spot.write.abs_diff(write) + spot.read.abs_diff(read);
            let free = candidates.iter().filter(|spot| !chosen.contains(*spot));
            chosen.extend(free.min_by_key(|spot| distance(spot)).copied());
        }
        VecDeque::from(chosen)
    }

    /// Whether the checked cells show that the surfaces are not good enough.
    fn fails(&self) -> bool {
        self.deciding().any(|(place, _)| self.exceeds(place))
    }

    /// Whether the median error of a quantile is more than its tolerance.
    fn exceeds(&self, place: usize) -> bool {
        self.latest(place).is_some_and(|one| one.median > one.allowed)
    }

    /// The median error of a quantile, if the checked cells leave little doubt that it exceeds its
    /// tolerance: if half of all cells were further off, this many or more would be one in seven by
    /// chance (a standard deviation of the binomial).
    pub(super) fn misses(&self, place: usize) -> Option<f64> {
        let CheckErrors { median, allowed, all } = self.latest(place)?;
        let count = all.len() as f64;
        let beyond = all.iter().filter(|error| **error > allowed).count() as f64;
        (beyond >= count / 2.0 + count.sqrt() / 2.0).then_some(median)
    }

    /// The errors of a quantile in the latest round. The compared cells have errors themselves,
    /// which are allowed for.
    fn latest(&self, place: usize) -> Option<CheckErrors> {
        let latest = self.checked.iter().filter(|one| one.latest);
        let (mut all, mut own): (Vec<f64>, Vec<f64>) =
            latest.filter_map(|one| one.errors[place]).unzip();
        let noise = MEDIAN_OF_NORMAL * median(&mut own)?;
        let allowed = self.options.surfaces[place].tolerance.hypot(noise);
        Some(CheckErrors { median: median(&mut all)?, allowed, all })
    }

    /// How well the surfaces agree with the cells that checked them, for each quantile.
    pub fn validation(&self) -> Vec<Validation> {
        let of = |place: usize, quantile: Quantile| {
            let mut errors: Vec<f64> = self
                .checked
                .iter()
                .filter(|one| one.latest)
                .filter_map(|one| one.errors[place])
                .map(|(error, _)| error.exp_m1())
                .collect();
            let largest_error = errors.iter().copied().fold(0.0, f64::max);
            let cells = errors.len() as u32;
            Some(Validation { quantile, cells, median_error: median(&mut errors)?, largest_error })
        };
        let surfaces = self.options.surfaces.iter().enumerate();
        surfaces.filter_map(|(place, one)| of(place, one.quantile)).collect()
    }

    /// The mean change of the response times of the first quantile at the end, over the cells that
    /// were measured again: the logarithm, and half of its half-width. The half-width comes from
    /// the cells' own ones or from the differences between their changes, whichever is more: the
    /// usual difference between two measurements of a cell is not drift.
    pub(super) fn drift(&self) -> Option<(f64, f64)> {
        let changes: Vec<(f64, f64)> = self
            .again
            .iter()
            .filter_map(|(first, last)| {
                let (first, last) = (first.known(0)?, last.known(0)?);
                Some((last.ln - first.ln, first.error.powi(2) + last.error.powi(2)))
            })
            .collect();
        let count = changes.len() as f64;
        let (sum, variance) =
            changes.iter().fold((0.0, 0.0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
        let mean = sum / count;
        let squares: f64 = changes.iter().map(|one| (one.0 - mean).powi(2)).sum();
        // Of three changes that differ only by chance, one in ten has a mean of three standard
        // errors.
        let among = match changes.len() {
            0 | 1 => 0.0,
            _ => 1.5 * (squares / (count - 1.0) / count).sqrt(),
        };
        (count > 0.0).then(|| (mean, (variance.sqrt() / count).max(among)))
    }

    /// The scatter of two measurements of a cell at a quantile, as a standard deviation of one of
    /// their logarithms: the half-widths of single measurements do not contain it. None if no cell
    /// was measured again.
    pub(super) fn scatter(&self, place: usize) -> Option<f64> {
        let change = |(first, last): &(Reading, Reading)| {
            Some((last.known(place)?.ln - first.known(place)?.ln).powi(2))
        };
        let changes: Vec<f64> = self.again.iter().filter_map(change).collect();
        let mean = changes.iter().sum::<f64>() / changes.len() as f64;
        (!changes.is_empty()).then(|| (mean / 2.0).sqrt())
    }

    /// The share of measured neighbors at which more load makes the median much shorter, by more
    /// than a fifth and by more than chance explains.
    pub(super) fn falling(&self) -> (usize, usize) {
        let pairs: Vec<(Known, Known)> = self
            .neighbors()
            .into_iter()
            .filter_map(|((_, one), (_, other))| Some((one.known(0)?, other.known(0)?)))
            .collect();
        let falls = |(less, more): &&(Known, Known)| {
            less.ln - more.ln > 0.22_f64.max(3.0 * less.error.hypot(more.error))
        };
        (pairs.iter().filter(falls).count(), pairs.len())
    }

    /// How many measured cells contradict the rule that more load never helps.
    pub(super) fn contradictions(&self) -> usize {
        frontier::contradictions(self.options.shape, &self.readings)
    }

    /// The measurements.
    pub fn readings(&self) -> &BTreeMap<Spot, Reading> {
        &self.readings
    }

    /// All cells as they are now known, column by column.
    pub fn cells(&self) -> Vec<MapCell> {
        let (frontier, filled) = (self.frontier(), self.filled());
        let between = self.between(&frontier);
        let cell = |spot: Spot| {
            let none = || vec![None; self.options.surfaces.len()];
            let (kind, response_time_ns) = match self.readings.get(&spot) {
                Some(one) if !one.admissible => (CellKind::Overloaded, none()),
                Some(one) => {
                    let kind = if one.precise { CellKind::Measured } else { CellKind::Imprecise };
                    let times = || one.response_times.clone();
                    (kind, if one.is_void() { none() } else { times() })
                }
                None if !frontier.admits(spot) => (CellKind::Beyond, none()),
                None => {
                    let value = |one: &BTreeMap<Spot, f64>| {
                        one.get(&spot).map(|ln| Estimate { value: ln.exp(), half_width: None })
                    };
                    (CellKind::Filled, filled.iter().map(value).collect())
                }
            };
            let doubt = self.doubt(spot, &between);
            let (write, read) = (spot.write as u32, spot.read as u32);
            MapCell { write, read, kind, response_time_ns, doubt }
        };
        self.options.shape.spots().map(cell).collect()
    }
}

/// A cell and its result.
type Told<'a> = (Spot, &'a Reading);

/// The result of a round of checks for one quantile.
struct CheckErrors {
    median: f64,
    /// The largest error that is within the tolerance.
    allowed: f64,
    all: Vec<f64>,
}

/// The median of the absolute value of a standard normal variable.
const MEDIAN_OF_NORMAL: f64 = 0.6745;

impl Reading {
    /// The logarithm of a response time; none if it is not known. A value without a half-width
    /// counts as exact to a twentieth: there is always some noise.
    fn known(&self, place: usize) -> Option<Known> {
        let time = self.response_times.get(place).copied().flatten()?;
        let error = time.half_width.map_or(0.05, |half| half / time.value / Z_95);
        (time.value > 0.0).then(|| Known { ln: time.value.ln(), error })
    }
}

impl Checked {
    fn new(expected: &[Option<f64>], reading: &Reading) -> Self {
        let error = |(place, expected): (usize, &Option<f64>)| {
            let known = reading.known(place)?;
            expected.map(|ln| ((known.ln - ln).abs(), known.error))
        };
        Self { errors: expected.iter().enumerate().map(error).collect(), latest: true }
    }
}

/// In random order, which the seed repeats (SplitMix64, Fisher and Yates).
fn shuffled<T>(mut items: Vec<T>, seed: u64) -> VecDeque<T> {
    let mut chance = SplitMix64(seed);
    for last in (1..items.len()).rev() {
        items.swap(last, (chance.draw() % (last as u64 + 1)) as usize);
    }
    VecDeque::from(items)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SplitMix64;
    use crate::experiment::map::doubts;
    use crate::findings::Verdict;

    fn options(writes: usize, reads: usize) -> Options {
        let shape = Shape { writes, reads, first_read: 0 };
        let surfaces = Vec::from([
            Surface { quantile: Quantile(0.5), tolerance: 0.05 },
            Surface { quantile: Quantile(0.95), tolerance: 0.10 },
        ]);
        Options { cells_at_most: cells_at_most(shape), shape, surfaces, exhaustive: false, seed: 1 }
    }

    /// A device that reads and writes share, as a queue with one server. Its response time is the
    /// service time divided by the free share of the device.
    fn queue(options: &Options, spot: Spot) -> Option<f64> {
        let share = |step: usize, steps: usize| step as f64 / (steps - 1).max(1) as f64;
        let load = 0.9 * share(spot.write, options.shape.writes)
            + 0.98 * share(spot.read, options.shape.reads);
        (load < 1.0).then(|| 100_000.0 / (1.0 - load))
    }

    /// Searches to the end. `told` gives the reading of a cell, from the request and the number of
    /// earlier requests.
    fn searched(
        options: Options,
        mut told: impl FnMut(Ask, usize) -> Option<[f64; 2]>,
    ) -> (Vec<Ask>, CellSearch) {
        let mut search = CellSearch::new(options);
        let mut asked: Vec<Ask> = Vec::new();
        let mut foreseen: BTreeMap<usize, Ask> = BTreeMap::new();
        while let Some(ask) = search.ask() {
            assert_eq!(*foreseen.get(&asked.len()).unwrap_or(&ask), ask, "foreseen was another");
            foreseen.extend((asked.len() + 1..).zip(search.foreseen(3)));
            assert_eq!(search.ask(), Some(ask), "asked twice for the same");
            let known = asked.iter().filter(|one| one.spot == ask.spot).count();
            assert!(known == 0 || ask.role == Role::Sentinel, "{ask:?} again");
            let reading = match told(ask, asked.len()) {
                Some(values) => {
                    let time = |(value, noise): (f64, f64)| {
                        Some(Estimate { value, half_width: Some(1.96 * noise * value) })
                    };
                    let response_times = values.into_iter().zip([0.04, 0.08]).map(time).collect();
                    Reading { admissible: true, precise: true, response_times, doubt: None }
                }
                None => Reading::default(),
            };
            let (probable, most) = search.ahead();
            assert!(0 < probable && probable <= most, "{ask:?}: {probable} of {most}");
            search.tell(ask, reading);
            asked.push(ask);
        }
        assert_eq!((search.ahead().0, search.ask()), (0, None));
        (asked, search)
    }

    fn noisy(chance: &mut SplitMix64, value: f64) -> [f64; 2] {
        [0.04, 0.08].map(|noise| value * (noise * chance.normal()).exp() * (1.0 + 10.0 * noise))
    }

    fn doubted(search: &CellSearch) -> Vec<String> {
        doubts(search, &search.options.surfaces, &search.cells())
    }

    #[test]
    fn a_queue_is_mapped_well_on_grids_of_all_sizes() {
        for (writes, reads) in [(1, 1), (1, 5), (2, 2), (5, 21), (11, 11), (21, 21), (41, 31)] {
            let options = options(writes, reads);
            let mut chance = SplitMix64(11);
            let (asked, search) = searched(options.clone(), |ask, _| {
                queue(&options, ask.spot).map(|value| noisy(&mut chance, value))
            });
            assert!(asked.len() <= options.cells_at_most, "{} for {writes} x {reads}", asked.len());
            let mut errors = Vec::new();
            for cell in search.cells() {
                let spot = Spot { write: cell.write as usize, read: cell.read as usize };
                let truth = queue(&options, spot);
                let carried = !matches!(cell.kind, CellKind::Overloaded | CellKind::Beyond);
                assert_eq!(carried, truth.is_some(), "{spot:?} of {writes} x {reads}");
                if let (CellKind::Filled, Some(value)) = (cell.kind, cell.response_time_ns[0]) {
                    errors.push((value.value / 1.4 / truth.unwrap() - 1.0).abs());
                }
            }
            assert!(median(&mut errors).unwrap_or(0.0) < 0.04, "{writes} x {reads}");
            assert!(doubted(&search).is_empty(), "{writes} x {reads}: {:?}", doubted(&search));
        }
    }

    #[test]
    fn void_trials_are_in_no_response_time_and_suspect_ones_are_named() {
        let options = options(21, 21);
        let is_void = |spot: Spot| spot.write == 5;
        let is_suspect = |spot: Spot| spot.write == 10;
        let mut search = CellSearch::new(options.clone());
        while let Some(ask) = search.ask() {
            let verdict = match ask.spot {
                spot if is_void(spot) => Some(Verdict::Void),
                spot if is_suspect(spot) => Some(Verdict::Suspect),
                _ => None,
            };
            let wrong = if is_void(ask.spot) { 100.0 } else { 1.0 };
            let value = queue(&options, ask.spot).map(|value| wrong * value);
            let time = value.map(|value| Estimate { value, half_width: Some(0.02 * value) });
            search.tell(
                ask,
                Reading {
                    admissible: value.is_some(),
                    precise: true,
                    response_times: Vec::from([time; 2]),
                    doubt: verdict
                        .map(|verdict| CellDoubt { verdict, code: "foreign-io".to_owned() }),
                },
            );
        }
        assert!(doubted(&search).is_empty(), "{:?}", doubted(&search));
        let cells = search.cells();
        let void: Vec<&MapCell> = cells.iter().filter(|cell| cell.is_void()).collect();
        assert!(!void.is_empty() && void.iter().all(|cell| cell.write == 5 && !cell.counts()));
        assert!(void.iter().all(|cell| cell.response_time_ns == [None, None]));
        let named = |kind| {
            let mut suspect = cells.iter().filter_map(|cell| {
                let words = cell.doubt_in_words().filter(|_| cell.counts())?;
                (cell.kind == kind).then_some((cell.write, words))
            });
            suspect.next()
        };
        let measured = (10, "suspect: other programs used the disk".to_owned());
        assert_eq!(named(CellKind::Measured), Some(measured));
        let (_, filled) = named(CellKind::Filled).unwrap();
        assert_eq!(filled, "filled in from a suspect one: other programs used the disk");
        for cell in cells.iter().filter(|cell| cell.kind == CellKind::Filled) {
            let spot = Spot { write: cell.write as usize, read: cell.read as usize };
            let (time, truth) = (cell.response_time_ns[0].unwrap(), queue(&options, spot).unwrap());
            assert!((time.value / truth).ln().abs() < 0.5, "{cell:?} for {truth}");
        }
    }

    #[test]
    fn an_exhaustive_map_measures_every_cell_once_in_an_order_by_chance() {
        let options = Options { exhaustive: true, ..options(21, 21) };
        let (asked, search) =
            searched(options.clone(), |ask, _| queue(&options, ask.spot).map(|value| [value; 2]));
        assert_eq!((asked.len(), search.readings().len()), (441 + SENTINELS, 441));
        let falls = asked.windows(2).filter(|two| two[1].spot < two[0].spot).count();
        assert!((150..290).contains(&falls), "{falls}");
        assert!(search.cells().iter().all(|cell| cell.kind != CellKind::Filled));
    }

    #[test]
    fn all_cells_of_an_exhaustive_map_are_foreseen() {
        let options = Options { exhaustive: true, ..options(21, 21) };
        let mut search = CellSearch::new(options.clone());
        let first = search.ask();
        let (asked, _) =
            searched(options.clone(), |ask, _| queue(&options, ask.spot).map(|value| [value; 2]));
        assert_eq!(first, Some(asked[0]));
        assert_eq!(search.foreseen(500), asked[1..441]);
        assert_eq!(search.foreseen(2), asked[1..3]);
    }

    #[test]
    fn the_same_answers_lead_to_the_same_questions_and_another_seed_to_others() {
        let with = |seed: u64| {
            let options = Options { seed, ..options(21, 21) };
            searched(options.clone(), |ask, _| queue(&options, ask.spot).map(|value| [value; 2])).0
        };
        assert_eq!(with(1), with(1));
        assert_ne!(with(1), with(2));
    }

    #[test]
    fn a_target_that_changes_meanwhile_is_doubted() {
        let options = options(21, 21);
        let (_, search) = searched(options.clone(), |ask, before| {
            queue(&options, ask.spot).map(|value| [value * (1.0 + 0.005 * before as f64); 2])
        });
        assert!(doubted(&search).iter().any(|one| one.contains("measured again")));
        assert!(search.drift().unwrap().0 > 0.1);
    }

    #[test]
    fn response_times_that_do_not_follow_from_the_load_are_doubted() {
        let mut chance = SplitMix64(5);
        let (_, search) = searched(options(21, 21), |_, _| {
            let value = 100_000.0 * (1.5 * chance.uniform()).exp();
            Some([value, 2.0 * value])
        });
        let doubts = doubted(&search);
        assert!(doubts.iter().any(|one| one.contains("faster under more load")), "{doubts:?}");
        assert!(doubts.iter().any(|one| one.contains("filled in are off")), "{doubts:?}");
    }

    #[test]
    fn a_target_that_carries_nothing_has_an_empty_map() {
        let (asked, search) = searched(options(21, 21), |_, _| None);
        assert!(asked.len() < 30, "{}", asked.len());
        let carried = |cell: &MapCell| cell.kind == CellKind::Filled;
        assert!(!search.cells().iter().any(carried));
    }
}
