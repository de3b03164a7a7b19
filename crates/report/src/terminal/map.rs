//! A latency map in the terminal: its surfaces as tables of figures, and what it says in words. The
//! trials, which can be hundreds, are counted and not shown.

use std::collections::BTreeMap;

use super::text::{Align, Table, Tint, push_line, wrap};
use super::{Style, head, tail, verdict_tint};
use crate::document::{CellKind, Document, Found, MapCell, MapFound, Verdict};

/// Columns of one cell: "1.23m*" and the space before it.
const CELL: usize = 7;
/// Columns before the first one: the read rate.
const LEAD: usize = 10;
/// The last quantile whose surface is shown: further out a map knows few cells.
const SHOWN: f64 = 0.95;

/// A map, or what there is of one.
pub fn map(document: &Document, style: &Style) -> String {
    let mut out = String::new();
    head(&mut out, document, style);
    push_line(&mut out, "");
    let found = document.conclusion.as_ref().and_then(|conclusion| conclusion.found.as_ref());
    if let Some(Found::Map(found)) = found {
        let shown = found.quantiles.iter().take_while(|quantile| **quantile <= SHOWN).count();
        for place in 0..shown.max(1).min(found.quantiles.len()) {
            surface(&mut out, found, place, style);
            push_line(&mut out, "");
        }
        wrap(&mut out, "", LEGEND, Tint::Dim, style);
        push_line(&mut out, "");
    }
    verdicts(&mut out, document, style);
    tail(&mut out, document, style);
    out
}

const LEGEND: &str = "Read rates by write bandwidths; u and m are microseconds and milliseconds. \
                      * was measured, ? was measured and is not precise, the others were filled in; \
                      x was measured and not carried, . cannot be carried either.";

fn surface(out: &mut String, found: &MapFound, place: usize, style: &Style) {
    let percent = (found.quantiles[place] * 1e14).round() / 1e12;
    wrap(out, "", &format!("response time of reads, p{percent}"), Tint::Bold, style);
    // As many columns as fit, at even distances, the last one among them.
    let room = (style.width.saturating_sub(LEAD) / CELL).max(2);
    let every = found.write_bandwidths.len().saturating_sub(1).div_ceil(room - 1).max(1);
    let last = found.write_bandwidths.len().saturating_sub(1);
    let columns: Vec<usize> = (0..found.write_bandwidths.len())
        .filter(|write| (last - write).is_multiple_of(every))
        .collect();
    let cells: BTreeMap<(u32, u32), &MapCell> =
        found.cells.iter().map(|cell| ((cell.write, cell.read), cell)).collect();
    let mut table = Table::new(&vec![(Align::Right, 1); columns.len() + 1]);
    for (read, rate) in found.read_rates.iter().enumerate().rev() {
        let mut row = vec![(format!("{}/s", short(*rate)), Tint::Plain)];
        row.extend(columns.iter().map(|&write| {
            let cell = cells.get(&(write as u32, read as u32));
            cell.map_or((String::new(), Tint::Plain), |cell| told(cell, place))
        }));
        table.tinted(row);
    }
    let mut names = vec![(String::new(), Tint::Plain)];
    names.extend(
        columns
            .iter()
            .map(|&write| (format!("{}B", short(found.write_bandwidths[write])), Tint::Plain)),
    );
    table.tinted(names);
    table.render(out, style);
}

/// A cell in a few characters.
fn told(cell: &MapCell, place: usize) -> (String, Tint) {
    let time = cell.response_time_ns.get(place).copied().flatten().map(|one| time(one.value));
    let time = |mark: &str| format!("{}{mark}", time.clone().unwrap_or_else(|| "-".to_owned()));
    match cell.kind {
        CellKind::Measured => (time("*"), Tint::Bold),
        CellKind::Imprecise => (time("?"), Tint::Doubtful),
        CellKind::Filled => (time(" "), Tint::Plain),
        CellKind::Overloaded => ("x ".to_owned(), Tint::Bad),
        CellKind::Beyond => (". ".to_owned(), Tint::Dim),
    }
}

/// "142u", "1.23m", "2.1s".
fn time(ns: f64) -> String {
    match ns {
        ns if ns < 999_500.0 => digits(ns / 1e3, "u"),
        ns if ns < 999.5e6 => digits(ns / 1e6, "m"),
        ns => digits(ns / 1e9, "s"),
    }
}

fn digits(value: f64, unit: &str) -> String {
    let decimals = match value {
        value if value < 9.995 => 2,
        value if value < 99.95 => 1,
        _ => 0,
    };
    format!("{value:.decimals$}{unit}")
}

/// "850M", "40.5k".
fn short(value: f64) -> String {
    match value {
        value if value < 999.5 => format!("{value:.0}"),
        value if value < 999_500.0 => digits(value / 1e3, "k"),
        value if value < 999.5e6 => digits(value / 1e6, "M"),
        value => digits(value / 1e9, "G"),
    }
}

/// How many trials there are of each verdict; `fathom report --csv` has each.
fn verdicts(out: &mut String, document: &Document, style: &Style) {
    for verdict in [Verdict::Sound, Verdict::Suspect, Verdict::Void] {
        let count = document.trials.iter().filter(|trial| trial.verdict == verdict).count();
        if count > 0 {
            let text = format!("{count} trials are {}", verdict.name());
            wrap(out, "", &text, verdict_tint(verdict), style);
        }
    }
}
