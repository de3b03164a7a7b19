//! The cells of a latency map, and the results of their measurements.

use crate::experiment::CellDoubt;
use crate::findings::Verdict;
use crate::stats::Estimate;

/// The size of a grid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Steps of the write load, the one without writes included; at least 1.
    pub writes: usize,
    /// Steps of the read load, the one without reads included; at least 1.
    pub reads: usize,
    /// The first read step that can be measured: 0, or 1 if the grid has no cells without reads.
    pub first_read: usize,
}

impl Shape {
    /// Every cell, column by column.
    pub fn spots(self) -> impl Iterator<Item = Spot> {
        (0..self.writes).flat_map(move |write| {
            (self.first_read..self.reads).map(move |read| Spot { write, read })
        })
    }
}

/// A cell, by its steps of both loads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Spot {
    /// The step of the write load.
    pub write: usize,
    /// The step of the read load.
    pub read: usize,
}

/// The result of a measurement of a cell.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reading {
    /// Whether the target carried both loads.
    pub admissible: bool,
    /// Whether the half-widths are within the tolerances.
    pub precise: bool,
    /// The response time at each of the map's quantiles in nanoseconds, if it is known.
    pub response_times: Vec<Option<Estimate>>,
    /// The doubt about its trial, if there is one.
    pub doubt: Option<CellDoubt>,
}

impl Reading {
    /// Whether its response times count: the target carried both loads, and the trial is not void.
    pub fn counts(&self) -> bool {
        self.admissible && !self.is_void()
    }

    /// Whether its trial is void.
    pub fn is_void(&self) -> bool {
        self.doubt.as_ref().is_some_and(|doubt| doubt.verdict == Verdict::Void)
    }
}
