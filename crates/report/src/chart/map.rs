//! The chart of a latency map: a surface for each quantile.

use fathom_core::Quantile;
use fathom_core::figures::number;

use super::contours::contours;
use super::{Chart, Cover, Heat, HeatCell, Limit, Palette, Panel, Plot};
use crate::document::{CellKind, Document, MapCell, MapFound};
use crate::figures::{self, plus_minus};

/// Times above this many times the shortest have one color, so that one overloaded cell does not
/// take the colors from all others. Maps of this kind are published so.
const CLIP: f64 = 50.0;

/// The meaning of a map's times, and the origin of its loads, as far as they are known.
pub struct Told {
    /// The figure of the surfaces: "response time".
    pub time: &'static str,
    /// How it was measured, as the end of a sentence.
    pub how: &'static str,
}

impl Told {
    /// For this map: fathom's own, even if it comes back from an export, or another program's.
    pub fn of(document: &Document) -> Self {
        let source = document.header.imported.as_ref();
        // An export has the name of the program that measured it.
        match source.is_none_or(|source| source.program.starts_with("fathom ")) {
            true => Self { time: "response time", how: "open loops" },
            false => Self {
                time: "service time",
                how: "as fio tells it (clat), from the submission to the completion: what an I/O \
                      waited before it could be submitted is not in it. The loads are those that \
                      fio was told to keep; how far it catches up after a stall is not told",
            },
        }
    }
}

/// The chart of a map; none without cells.
pub fn charts(document: &Document, found: &MapFound) -> Vec<Chart> {
    if found.cells.is_empty() || found.quantiles.is_empty() {
        return Vec::new();
    }
    let surfaces = found.quantiles.iter().enumerate();
    let mut surfaces: Vec<(Quantile, Heat)> =
        surfaces.map(|(nth, quantile)| (*quantile, surface(found, nth, *quantile))).collect();
    let steps = steps(&surfaces);
    for (nth, (quantile, heat)) in surfaces.iter_mut().enumerate() {
        let asked = Asked { found, nth, quantile: *quantile };
        heat.limits = steps.iter().map(|ms| asked.within(heat, *ms)).collect();
    }
    let panel = |(quantile, heat): (Quantile, Heat)| Panel {
        title: quantile.to_string(),
        plot: Plot::Heat(heat),
    };
    let Told { time, how } = Told::of(document);
    Vec::from([Chart {
        name: "map".to_owned(),
        title: format!("{} of reads beside writes", figures::capitalized(time)),
        caption: format!(
            "The {time} of the reads, on a logarithmic scale, by the bandwidth of the writes (to \
             the right) and the rate of the reads (upwards); {how}."
        ),
        panels: surfaces.into_iter().map(panel).collect(),
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

/// A quantile of every cell.
pub fn surface(found: &MapFound, nth: usize, quantile: Quantile) -> Heat {
    let cells = found.cells.iter().map(|cell| {
        let estimate = cell.response_time_ns.get(nth).copied().flatten();
        HeatCell {
            x: cell.write as usize,
            y: cell.read as usize,
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
    // A letter for thousands does not go with MiB.
    let mib = |bytes: &f64| match figures::mib(*bytes) {
        large if 1000.0 <= large => number(large),
        small => figures::axis_rate(small),
    };
    let mut heat = Heat {
        x_title: "writes, MiB/s".to_owned(),
        x: found.write_bandwidths.iter().map(mib).collect(),
        y_title: "reads, IOPS".to_owned(),
        y: found.read_rates.iter().map(|rate| figures::axis_rate(*rate)).collect(),
        cells: cells.collect(),
        title: format!("{quantile}, ms"),
        log: true,
        written: false,
        write: |ms| figures::time(ms * 1e6),
        signs: signs(found),
        palette: Palette::Cool,
        clip: Some(CLIP),
        contours: Vec::new(),
        limits: Vec::new(),
    };
    heat.contours = contours(&heat, |ms| figures::time(ms * 1e6));
    heat
}

/// The limits that readers can ask for: the same ones for all quantiles, in ms.
fn steps(surfaces: &[(Quantile, Heat)]) -> Vec<f64> {
    let ranges = surfaces.iter().filter_map(|(_, heat)| heat.range());
    let Some((low, high)) = ranges.reduce(|one, two| (one.0.min(two.0), one.1.max(two.1))) else {
        return Vec::new();
    };
    let powers = low.log10().floor() as i32..=high.log10().ceil() as i32;
    let all = powers
        .flat_map(|power| [1.0, 1.5, 2.0, 3.0, 5.0, 7.0].map(|times| times * 10f64.powi(power)));
    all.filter(|step| (low..=high * 1.5).contains(step)).collect()
}

/// The surface that a reader asks for what can be had.
struct Asked<'a> {
    found: &'a MapFound,
    /// The place of its quantile.
    nth: usize,
    quantile: Quantile,
}

impl Asked<'_> {
    /// What can be had within a limit: the ends of both loads, and the most of both together. Only
    /// cells that count are had. "Perhaps" if the cell is not precise, and its doubt if it has one.
    fn within(&self, heat: &Heat, ms: f64) -> Limit {
        let text = figures::time(ms * 1e6);
        let fits = |cell: &&MapCell| {
            let time = cell.response_time_ns.get(self.nth).copied().flatten();
            cell.counts() && time.is_some_and(|time| time.value / 1e6 <= ms)
        };
        let cells = || self.found.cells.iter().filter(fits);
        let load = |cell: &MapCell| {
            let reads = format!("{} reads per second", heat.y[cell.read as usize]);
            let perhaps = if cell.kind == CellKind::Imprecise { "perhaps " } else { "" };
            let beside = match cell.write as usize {
                0 => "without writes".to_owned(),
                write => format!("beside {} MiB/s of writes", heat.x[write]),
            };
            format!("{perhaps}{reads} {beside}{}", cell.caveat())
        };
        let most_reads = cells().max_by_key(|cell| (cell.read, cell.write));
        let most_writes = cells().max_by_key(|cell| (cell.write, cell.read));
        let most = cells().max_by_key(|cell| (cell.write * cell.read, cell.doubt.is_none()));
        let mut loads: Vec<&MapCell> = Vec::new();
        for cell in [most_reads, most, most_writes].into_iter().flatten() {
            if !loads.contains(&cell) {
                loads.push(cell);
            }
        }
        let words: Vec<String> = loads.into_iter().map(load).collect();
        let answer = match words.as_slice() {
            [] => "no load of the map".to_owned(),
            [only] => only.clone(),
            [first @ .., last] => format!("{}, or {last}", first.join(", ")),
        };
        Limit { value: ms, answer: format!("{} <= {text}: {answer}.", self.quantile), text }
    }
}

/// The meaning of its cells' marks.
fn signs(found: &MapFound) -> Vec<(Option<Cover>, &'static str)> {
    let is = |kind| found.cells.iter().any(|cell| cell.kind == kind);
    let mut signs = Vec::from([(Some(Cover::Dot), "measured")]);
    if is(CellKind::Imprecise) {
        signs.push((Some(Cover::Triangle), "measured, and not precise"));
    }
    if is(CellKind::Filled) {
        signs.push((Some(Cover::Plain), "filled in from its neighbors"));
    }
    if is(CellKind::Overloaded) {
        signs.push((Some(Cover::Hatched), "measured, and the target could not carry the load"));
    }
    if is(CellKind::Beyond) {
        let meaning = "not measured, because the target cannot carry less than that";
        signs.push((Some(Cover::Gray), meaning));
    }
    signs.push(match found.cells.iter().any(MapCell::is_void) {
        true => (None, "too few I/Os to tell, or a void trial"),
        false => (None, "too few I/Os to tell"),
    });
    signs
}

fn about(found: &MapFound, cell: &MapCell) -> String {
    let read = found.read_rates.get(cell.read as usize).copied().unwrap_or(f64::NAN);
    let write = found.write_bandwidths.get(cell.write as usize).copied().unwrap_or(f64::NAN);
    let mut lines = Vec::from([
        format!("reads {} IOPS", figures::significant(read)),
        format!("writes {} MiB/s", figures::significant(figures::mib(write))),
    ]);
    for (quantile, estimate) in found.quantiles.iter().zip(&cell.response_time_ns) {
        let text = match estimate {
            Some(estimate) => {
                format!("{} {}", figures::time(estimate.value), plus_minus(Some(estimate)))
            }
            None => "not known".to_owned(),
        };
        lines.push(format!("{quantile} {}", text.trim_end()));
    }
    lines.push(kind_name(cell.kind).to_owned());
    lines.extend(cell.doubt_in_words());
    lines.join("\n")
}
