//! A portrait in large figures: a row for each step, reads and writes side by side, a bar behind
//! each figure. Steps in sequence are compared in MB/s, steps at random in IOPS.

use super::Paint;
use crate::document::{Command, Document, Stream, Verdict};
use crate::figures::{self, Summary, plus_minus};
use crate::results::{QUANTILES, Results, Spot};

/// More rows than this are not a picture.
const ROWS: usize = 24;

/// Figures in rows and columns.
#[derive(Clone, Debug)]
pub struct Grid {
    /// The columns.
    pub heads: Vec<String>,
    /// The rows.
    pub rows: Vec<GridRow>,
    /// What the figures and the bars are.
    pub caption: String,
}

/// A row of a grid.
#[derive(Clone, Debug)]
pub struct GridRow {
    /// Its load.
    pub name: String,
    /// The pace of its load.
    pub below: String,
    /// A cell for each column; a single one has the place of all.
    pub cells: Vec<Option<GridCell>>,
}

/// A figure of a grid.
#[derive(Clone, Debug)]
pub struct GridCell {
    /// The figure.
    pub text: String,
    /// Its unit.
    pub unit: &'static str,
    /// Half of its interval, and the tail of the response time.
    pub below: String,
    /// Its share of the largest figure in the same unit.
    pub share: f64,
    /// Its color.
    pub paint: Paint,
    /// The verdict on it.
    pub verdict: Verdict,
}

/// The grid of a portrait, or of several points that belong to no experiment; none without trials.
pub fn of(document: &Document) -> Option<Grid> {
    let mut measured: Vec<Step<'_>> =
        Results::of_points(document).spots.into_iter().map(Step::of).collect();
    if measured.is_empty() {
        return None;
    }
    for in_bytes in [true, false] {
        let own = || measured.iter().filter(|one| one.in_bytes == in_bytes);
        let most = own().map(|one| one.value).fold(0.0, f64::max);
        let alike = measured.iter_mut().filter(|one| one.in_bytes == in_bytes);
        alike.for_each(|one| one.share = if most > 0.0 { one.value / most } else { 0.0 });
    }
    let mut rows: Vec<(Load, GridRow)> = Vec::new();
    for one in measured.iter().take(ROWS) {
        one.put(&mut rows, document.header.command == Command::Quick);
    }
    let units = "Bars compare steps in the same unit. ±: half of the 95 % interval.";
    let left_out = match measured.len().saturating_sub(ROWS) {
        0 => String::new(),
        more => format!(" {more} more points are in the table."),
    };
    Some(Grid {
        heads: ["read", "write"].map(str::to_owned).into(),
        rows: rows.into_iter().map(|(_, row)| row).collect(),
        caption: format!("{units}{left_out}"),
    })
}

/// Steps with the same key are the reads and the writes of one load.
type Load = (String, u32);

/// A point with the figure that it is compared in.
struct Step<'t> {
    spot: Spot<'t>,
    in_bytes: bool,
    value: f64,
    share: f64,
}

impl<'t> Step<'t> {
    fn of(spot: Spot<'t>) -> Self {
        let in_bytes = figures::is_in_sequence(spot.first());
        let estimate = if in_bytes { spot.summary.bandwidth } else { spot.summary.iops };
        let value = estimate.map_or(0.0, |one| one.value);
        Self { spot, in_bytes, value, share: 0.0 }
    }

    /// Adds it beside the other direction of the same load, if that is there already.
    fn put(&self, rows: &mut Vec<(Load, GridRow)>, paired: bool) {
        let trial = self.spot.first();
        let (name, pace) = figures::names(trial);
        let alone = match trial.point.streams.as_slice() {
            [stream] if paired => direction(stream).map(|column| (stream, column)),
            _ => None,
        };
        let Some((stream, column)) = alone else {
            let cells = Vec::from([Some(self.cell(Paint::Total))]);
            let shown = figures::capitalized(&name);
            rows.push(((name, 0), GridRow { name: shown, below: pace, cells }));
            return;
        };
        let block = stream.block_sizes().largest();
        let load = format!("{} {block}", figures::pattern_names(stream));
        let key = (load.clone(), figures::queue_depth(trial));
        let cell = self.cell([Paint::Read, Paint::Write][column]);
        let beside = rows.iter_mut().find(|(other, row)| *other == key && row.cells.len() == 2);
        match beside.map(|(_, row)| &mut row.cells[column]) {
            Some(free @ None) => *free = Some(cell),
            _ => {
                let mut cells = Vec::from([None, None]);
                cells[column] = Some(cell);
                let name = figures::capitalized(&load);
                rows.push((key, GridRow { name, below: pace, cells }));
            }
        }
    }

    fn cell(&self, paint: Paint) -> GridCell {
        let Summary { iops, bandwidth, quantiles } = &self.spot.summary;
        let estimate = if self.in_bytes { bandwidth } else { iops };
        let scale = if self.in_bytes { 1e6 } else { 1.0 };
        let tail = quantiles[1].map(|one| format!("{} {}", QUANTILES[1], figures::time(one.value)));
        let below = [Some(plus_minus(estimate.as_ref())), tail].into_iter().flatten();
        let below: Vec<String> = below.filter(|text| !text.is_empty()).collect();
        GridCell {
            text: figures::or_unknown(estimate.map(|one| figures::significant(one.value / scale))),
            unit: if self.in_bytes { "MB/s" } else { "IOPS" },
            below: below.join(", "),
            share: self.share,
            paint,
            verdict: self.spot.verdict,
        }
    }
}

/// The column of a stream that only reads, 0, or only writes, 1.
fn direction(stream: &Stream) -> Option<usize> {
    let kinds = stream.ios.kinds();
    let all = |share: f64| kinds.iter().all(|kind| kind.read_share == share);
    [1.0, 0.0].into_iter().position(all)
}
