//! Which cells of a latency map the target can carry: the highest admissible read step of each
//! column of write load, found with few measurements because more load never helps. Knows nothing
//! of response times.

use std::collections::BTreeMap;

use super::grid::{Reading, Shape, Spot};

/// The knowledge about the end of the admissible cells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frontier {
    /// For each write step the highest admissible read step from 1 up; 0 if there is none.
    pub highest: Vec<usize>,
    /// For each write step whether the cell without reads is admissible.
    pub idle: Vec<bool>,
}

impl Frontier {
    /// Whether a cell counts as admissible.
    pub fn admits(&self, spot: Spot) -> bool {
        match spot.read {
            0 => self.idle[spot.write],
            read => read <= self.highest[spot.write],
        }
    }
}

/// The frontier, or the cell to measure next on the way to it.
pub fn explore(shape: Shape, readings: &BTreeMap<Spot, Reading>) -> Result<Frontier, Spot> {
    let mut known: BTreeMap<usize, usize> = BTreeMap::new();
    for write in halving(shape.writes) {
        let (low, high) = bounds(shape, readings, write);
        if high - low <= 1 {
            known.insert(write, low);
            continue;
        }
        return Err(Spot { write, read: probe(shape, readings, &known, write, (low, high)) });
    }
    let highest: Vec<usize> = known.into_values().collect();
    let idle = idle_row(shape, readings, &highest)?;
    Ok(Frontier { highest, idle })
}

/// How many cells contradict the rule that more load never helps: overloaded ones at or below an
/// admissible one with no less write load.
pub fn contradictions(shape: Shape, readings: &BTreeMap<Spot, Reading>) -> usize {
    let overloaded = readings.iter().filter(|(spot, one)| !one.admissible && spot.read > 0);
    overloaded.filter(|(spot, _)| spot.read <= bounds(shape, readings, spot.write).0).count()
}

/// The columns, both ends first and then always the middle of a gap. Columns between two with the
/// same end need no measurement, and no load is measured entirely early or late, so that a drift of
/// the target does not look like an effect of the load.
fn halving(columns: usize) -> Vec<usize> {
    let last = columns - 1;
    let mut order = Vec::from([0]);
    order.extend((last > 0).then_some(last));
    let mut gaps = std::collections::VecDeque::from([(0, last)]);
    while let Some((from, to)) = gaps.pop_front() {
        if to - from > 1 {
            let middle = (from + to) / 2;
            order.push(middle);
            gaps.extend([(from, middle), (middle, to)]);
        }
    }
    order
}

/// The highest read step of a column that is certainly admissible (0 stands for none), and the
/// lowest one above it that is certainly overloaded. More load never helps: a step that is
/// admissible with more writes is admissible here, and one that is overloaded with fewer writes is
/// overloaded here. If measurements contradict each other the admissible one counts, because the
/// target did carry it.
fn bounds(shape: Shape, readings: &BTreeMap<Spot, Reading>, write: usize) -> (usize, usize) {
    let loaded = || readings.iter().filter(|(spot, _)| spot.read > 0);
    let low = loaded()
        .filter(|(spot, one)| one.admissible && spot.write >= write)
        .map(|(spot, _)| spot.read)
        .max()
        .unwrap_or(0);
    let high = loaded()
        .filter(|(spot, one)| !one.admissible && spot.write <= write && spot.read > low)
        .map(|(spot, _)| spot.read)
        .min()
        .unwrap_or(shape.reads);
    (low, high)
}

/// The read step to measure in a column whose end lies between the bounds: first the end that its
/// neighbors suggest, then away from it by doubling steps, then by halving the rest.
fn probe(
    shape: Shape,
    readings: &BTreeMap<Spot, Reading>,
    known: &BTreeMap<usize, usize>,
    write: usize,
    (low, high): (usize, usize),
) -> usize {
    let guess = expected(shape, known, write).clamp(low + 1, high - 1);
    let column = |admissible: bool| {
        let here = readings.iter().filter(move |(spot, one)| {
            spot.write == write && spot.read > 0 && one.admissible == admissible
        });
        here.map(|(spot, _)| spot.read)
    };
    let read = match (column(true).max(), column(false).min()) {
        (None, None) => guess,
        (Some(top), None) => top + top.abs_diff(guess).max(1),
        (None, Some(bottom)) => bottom.saturating_sub(bottom.abs_diff(guess).max(1)),
        (Some(_), Some(_)) => (low + high) / 2,
    };
    read.clamp(low + 1, high - 1)
}

/// The expected end of a column, from the nearest columns with a known end.
fn expected(shape: Shape, known: &BTreeMap<usize, usize>, write: usize) -> usize {
    let left = known.range(..write).next_back();
    let right = known.range(write + 1..).next();
    match (left, right) {
        (Some((&from, &before)), Some((&to, &after))) => {
            let share = (write - from) as f64 / (to - from) as f64;
            (before as f64 + (after as f64 - before as f64) * share).round() as usize
        }
        // The maximum of the read rate was measured without writes: so the target carries it, or
        // nearly.
        (None, _) => shape.reads - 1,
        // Writes at their maximum leave reads some capacity, and rarely all of it.
        (Some((_, &before)), None) => before / 2,
    }
}

/// If the end of a column is below this read step, it says little about the cell without reads:
/// that cell is so close to the limit of the target that it is measured by itself.
const EDGE: usize = 2;

/// Which cells without reads are admissible, or the one to measure next. They form a separate row:
/// such a cell is measured with single reads, whose rate cannot be missed by a few percent.
fn idle_row(
    shape: Shape,
    readings: &BTreeMap<Spot, Reading>,
    highest: &[usize],
) -> Result<Vec<bool>, Spot> {
    let measured = |write: usize| readings.get(&Spot { write, read: 0 }).map(|one| one.admissible);
    let mut idle = vec![false; shape.writes];
    if shape.first_read > 0 {
        return Ok(idle);
    }
    // Columns that carry no reads at all come last, and among them more load never helps either.
    let first_bare = highest.iter().rposition(|&step| step > 0).map_or(0, |place| place + 1);
    let (mut low, mut high) = (first_bare, shape.writes);
    for write in first_bare..shape.writes {
        match measured(write) {
            Some(true) => low = low.max(write + 1),
            Some(false) if write >= low => high = high.min(write),
            _ => {}
        }
    }
    if low < high {
        return Err(Spot { write: (low + high) / 2, read: 0 });
    }
    for (write, admissible) in idle.iter_mut().enumerate() {
        *admissible = match measured(write) {
            Some(admissible) => admissible,
            None if write >= first_bare => write < low,
            None if highest[write] < EDGE => return Err(Spot { write, read: 0 }),
            None => true,
        };
    }
    Ok(idle)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Explores a staircase. Returns the number of cells that this took, and the frontier.
    fn explored(shape: Shape, truth: impl Fn(Spot) -> bool) -> (usize, Frontier) {
        let mut readings = BTreeMap::new();
        loop {
            match explore(shape, &readings) {
                Ok(frontier) => return (readings.len(), frontier),
                Err(spot) => {
                    let reading = Reading { admissible: truth(spot), ..Reading::default() };
                    assert!(readings.insert(spot, reading).is_none(), "{spot:?} twice");
                }
            }
        }
    }

    const SHAPE: Shape = Shape { writes: 21, reads: 21, first_read: 0 };

    #[test]
    fn every_falling_staircase_is_found_exactly() {
        let mut chance = crate::SplitMix64(7);
        for _ in 0..500 {
            let mut ends: Vec<usize> =
                (0..21).map(|_| (chance.uniform() * 22.0) as usize).collect();
            ends.sort_unstable_by(|a, b| b.cmp(a));
            // An end of 0 admits nothing. An end of 1 admits only the cell without reads.
            let (cells, found) = explored(SHAPE, |spot| spot.read < ends[spot.write]);
            for (write, &end) in ends.iter().enumerate() {
                assert_eq!(found.highest[write], end.saturating_sub(1), "{ends:?}");
                assert_eq!(found.idle[write], end > 0, "{ends:?}");
            }
            assert!(cells <= 80, "{cells} cells for {ends:?}");
        }
    }

    #[test]
    fn a_level_frontier_takes_few_cells_and_a_sloping_one_two_in_each_column() {
        let (level, found) = explored(SHAPE, |spot| spot.read <= 15);
        assert_eq!(found.highest, [15; 21]);
        assert!(level <= 16, "{level}");
        let (sloping, found) = explored(SHAPE, |spot| spot.read + spot.write <= 20);
        assert!((0..21).all(|write| found.highest[write] == 20 - write));
        assert!(sloping <= 55, "{sloping}");
        let (all, _) = explored(SHAPE, |_| true);
        assert!(all <= 14, "{all}");
    }

    #[test]
    fn cells_without_reads_are_measured_where_the_frontier_is_at_its_end() {
        // As on a hard disk: single reads starve in some places.
        let starved = [13, 14, 15];
        let (_, found) = explored(SHAPE, |spot| match spot {
            Spot { write, read: 0 } => write <= 17 && !starved.contains(&write),
            Spot { write, read } => read + write <= 10 || (read == 1 && write <= 16),
        });
        assert!(starved.iter().all(|&write| !found.idle[write]));
        assert_eq!(found.idle.iter().filter(|idle| **idle).count(), 15);
    }

    #[test]
    fn grids_of_other_sizes_are_explored_too() {
        for (writes, reads) in [(1, 1), (1, 21), (2, 2), (5, 9), (41, 11)] {
            let shape = Shape { writes, reads, first_read: 0 };
            let (_, found) = explored(shape, |spot| spot.read * writes + spot.write < reads);
            assert_eq!(found.highest.len(), writes);
        }
    }
}
