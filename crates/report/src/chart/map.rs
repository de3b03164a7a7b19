//! The chart of a latency map: a surface for each quantile.

use fathom_core::Quantile;

use super::{Cell, Chart, Cover, Heat, Panel, Plot};
use crate::document::{CellKind, Document, MapCell, MapFound};
use crate::figures::{self, plus_minus};

/// The chart of a map; none without cells.
pub fn charts(_document: &Document, found: &MapFound) -> Vec<Chart> {
    if found.cells.is_empty() || found.quantiles.is_empty() {
        return Vec::new();
    }
    let panel = |(nth, quantile): (usize, &f64)| {
        let quantile = Quantile(*quantile);
        Panel { title: quantile.to_string(), plot: Plot::Heat(surface(found, nth, quantile)) }
    };
    Vec::from([Chart {
        name: "map".to_owned(),
        title: "Response time of reads beside writes".to_owned(),
        caption: "Response time of the reads in ms, in colors of a logarithmic scale, by their \
                  rate (to the right) and the bandwidth of the writes (upwards); open loops. A dot: \
                  measured. A triangle: measured, and not precise. No mark: filled in from its \
                  neighbors. Hatched: measured, and the target could not carry the load. Gray: \
                  not measured, because the target cannot carry less than that. White: too few \
                  I/Os to tell."
            .to_owned(),
        panels: found.quantiles.iter().enumerate().map(panel).collect(),
        one_at_a_time: true,
    }])
}

/// How a cell is known, in words.
pub fn kind_name(kind: CellKind) -> &'static str {
    match kind {
        CellKind::Measured => "measured",
        CellKind::Imprecise => "measured, not precise",
        CellKind::Filled => "filled in",
        CellKind::Overloaded => "measured, overloaded",
        CellKind::Beyond => "not measured, beyond what the target carries",
    }
}

fn surface(found: &MapFound, nth: usize, quantile: Quantile) -> Heat {
    let cells = found.cells.iter().map(|cell| {
        let estimate = cell.response_time_ns.get(nth).copied().flatten();
        Cell {
            x: cell.read as usize,
            y: cell.write as usize,
            value: estimate.map(|estimate| estimate.value / 1e6),
            cover: match cell.kind {
                CellKind::Measured => Cover::Dot,
                CellKind::Imprecise => Cover::Triangle,
                CellKind::Filled => Cover::Plain,
                CellKind::Overloaded => Cover::Hatched,
                CellKind::Beyond => Cover::Gray,
            },
            text: estimate.map(|one| figures::time(one.value)).unwrap_or_default(),
            about: about(found, cell),
        }
    });
    let mib = |bytes: &f64| axis_rate(figures::mib(*bytes));
    Heat {
        x_title: "reads, IOPS".to_owned(),
        x: found.read_rates.iter().map(|rate| axis_rate(*rate)).collect(),
        y_title: "writes, MiB/s".to_owned(),
        y: found.write_bandwidths.iter().map(mib).collect(),
        cells: cells.collect(),
        title: format!("{quantile}, ms"),
        log: true,
        written: false,
    }
}

/// A rate as a label: nothing is 0 and not 0.00.
fn axis_rate(rate: f64) -> String {
    if rate == 0.0 { "0".to_owned() } else { figures::short_rate(rate) }
}

fn about(found: &MapFound, cell: &MapCell) -> String {
    let read = found.read_rates.get(cell.read as usize).copied().unwrap_or(f64::NAN);
    let write = found.write_bandwidths.get(cell.write as usize).copied().unwrap_or(f64::NAN);
    let mut lines = Vec::from([
        format!("reads {} IOPS", figures::rate(read)),
        format!("writes {} MiB/s", figures::rate(figures::mib(write))),
    ]);
    for (quantile, estimate) in found.quantiles.iter().zip(&cell.response_time_ns) {
        let text = match estimate {
            Some(estimate) => format!(
                "{} {}",
                figures::time(estimate.value),
                plus_minus(Some(&estimate.to_core()))
            ),
            None => "not known".to_owned(),
        };
        lines.push(format!("{} {}", Quantile(*quantile), text.trim_end()));
    }
    lines.push(kind_name(cell.kind).to_owned());
    lines.join("\n")
}
