//! A latency map in characters: a surface for each quantile that is read without color, and with
//! color shows the same more finely.

use fathom_core::Quantile;

use super::Style;
use super::text::{Align, Table, Tint, push_line, wrap};
use crate::chart::map::Told;
use crate::chart::scale_color;
use crate::document::{CellKind, Document, Estimate, MapCell, MapFound};
use crate::figures;

/// From fast to slow: each covers more of its place than the one before.
const LEVELS: [char; 8] = ['.', ':', '-', '=', '+', '*', '#', '%'];

/// Columns before the cells.
const MARGIN: usize = 9;

/// The surfaces of a map, and how far it can be relied on, as far as no sentence has said so.
pub fn map(
    out: &mut String,
    (document, found): (&Document, &MapFound),
    said: &[String],
    style: &Style,
) {
    let unsaid = |doubt: &&String| !said.iter().any(|said| said.contains(doubt.as_str()));
    for doubt in found.doubts.iter().filter(unsaid) {
        wrap(out, "", doubt, Tint::Doubtful, style);
    }
    for (nth, quantile) in found.quantiles.iter().enumerate() {
        surface(out, found, nth, *quantile, style);
        push_line(out, "");
    }
    let Told { time, how } = Told::of(document);
    let filled = match found.cells.iter().any(|cell| cell.kind == CellKind::Filled) {
        true => " The others were filled in.",
        false => "",
    };
    let text = format!(
        "Writes in MiB/s upwards, reads in IOPS to the right. The {time}, {how}. ': measured. ?: \
         measured, not precise. x: overloaded. _: too few I/Os to tell. Nothing: the target cannot \
         carry it.{filled}"
    );
    wrap(out, "", &text, Tint::Dim, style);
    push_line(out, "");
    validation(out, found, style);
}

/// The logarithms of the smallest and the largest value.
fn range(found: &MapFound, nth: usize) -> Option<(f64, f64)> {
    let values = found.cells.iter().filter_map(|cell| value(cell, nth)).map(f64::ln);
    values.fold(None, |range, value| {
        let (low, high) = range.unwrap_or((value, value));
        Some((low.min(value), high.max(value)))
    })
}

fn value(cell: &MapCell, nth: usize) -> Option<f64> {
    let estimate: Option<Estimate> = cell.response_time_ns.get(nth).copied().flatten();
    estimate.map(|estimate| estimate.value).filter(|value| value.is_finite() && *value > 0.0)
}

fn share(value: f64, (low, high): (f64, f64)) -> f64 {
    if high > low { ((value.ln() - low) / (high - low)).clamp(0.0, 1.0) } else { 0.0 }
}

fn level(share: f64) -> usize {
    ((share * LEVELS.len() as f64) as usize).min(LEVELS.len() - 1)
}

/// The first surface of a map that is being measured, in so many lines at most, with the cell that
/// runs, by its places in both axes; nothing before anything is known.
pub fn so_far(
    found: &MapFound,
    running: Option<(usize, usize)>,
    lines: usize,
    style: &Style,
) -> String {
    let mut out = String::new();
    let (Some(range), Some(quantile)) = (range(found, 0), found.quantiles.first()) else {
        return out;
    };
    // The axis and what the letters mean need three.
    let each = found.write_bandwidths.len().div_ceil(lines.saturating_sub(3).max(1)).max(1);
    grid(&mut out, found, (0, range), (each, running), style);
    let ends = [range.0, range.1].map(|end| figures::time(end.exp()));
    let text = format!(
        "{} so far: {} {} to {} {}; ' measured, x overloaded, @ runs",
        *quantile,
        LEVELS[0],
        ends[0],
        LEVELS[LEVELS.len() - 1],
        ends[1]
    );
    push_line(&mut out, &Tint::Dim.paint(&text, style));
    out
}

fn surface(out: &mut String, found: &MapFound, nth: usize, quantile: Quantile, style: &Style) {
    push_line(out, &Tint::Bold.paint(&format!("{quantile} of the reads"), style));
    let Some(range) = range(found, nth) else {
        push_line(out, "  not known: too few I/Os");
        return;
    };
    grid(out, found, (nth, range), (1, None), style);
    legend(out, range, style);
}

/// The cells of a surface above their axis: every so many rows, and the cell that runs.
fn grid(
    out: &mut String,
    found: &MapFound,
    (nth, range): (usize, (f64, f64)),
    (each_row, running): (usize, Option<(usize, usize)>),
    style: &Style,
) {
    let columns = found.read_rates.len();
    let room = style.width.saturating_sub(MARGIN).max(1);
    // Where there is no room for all, every so many are shown.
    let each = columns.div_ceil(room).max(1);
    let width = (room / columns.div_ceil(each).max(1)).clamp(1, 3);
    let shown = |one: (usize, usize)| (one.0 - one.0 % each_row, one.1 - one.1 % each);
    let running = running.map(shown);
    let rows = found.write_bandwidths.iter().enumerate().step_by(each_row);
    for (write, bandwidth) in rows.rev() {
        let mut line = format!("{:>7}  ", label(figures::mib(*bandwidth)));
        for read in (0..columns).step_by(each) {
            let cell = found
                .cells
                .iter()
                .find(|cell| (cell.write as usize, cell.read as usize) == (write, read));
            match running == Some((write, read)) {
                true => line.push_str(&format!("{:^width$}", '@')),
                false => line.push_str(&painted(cell, nth, range, width, style)),
            }
        }
        push_line(out, &line);
    }
    push_line(out, &axis(found, each, width));
}

/// A cell in so many columns.
fn painted(
    cell: Option<&MapCell>,
    nth: usize,
    range: (f64, f64),
    width: usize,
    style: &Style,
) -> String {
    let Some(cell) = cell else { return " ".repeat(width) };
    let share = value(cell, nth).map(|value| share(value, range));
    let (letter, mark) = match (cell.kind, share) {
        (CellKind::Beyond, _) => (' ', ' '),
        (CellKind::Overloaded, _) => ('x', ' '),
        (_, None) => ('_', ' '),
        (CellKind::Measured, Some(share)) => (LEVELS[level(share)], '\''),
        (CellKind::Imprecise, Some(share)) => (LEVELS[level(share)], '?'),
        (CellKind::Filled, Some(share)) => (LEVELS[level(share)], ' '),
    };
    let text: String = match width {
        1 => letter.to_string(),
        2 => [letter, mark].iter().collect(),
        _ => [' ', letter, mark].iter().collect(),
    };
    let known = !matches!(cell.kind, CellKind::Beyond | CellKind::Overloaded);
    match share.filter(|_| known && style.color) {
        Some(share) => colored(&text, share),
        None => text,
    }
}

/// A text on the color of a share, of the 256 that nearly every terminal has.
fn colored(text: &str, share: f64) -> String {
    let [red, green, blue] = scale_color(share).map(|part| (u32::from(part) * 5 + 127) / 255);
    let ink = if share < 0.6 { 15 } else { 16 };
    format!("\x1b[38;5;{ink};48;5;{}m{text}\x1b[0m", 16 + 36 * red + 6 * green + blue)
}

fn label(value: f64) -> String {
    if value == 0.0 { "0".to_owned() } else { figures::short_rate(value) }
}

/// The read rates below the cells, as many as there is room for.
fn axis(found: &MapFound, each: usize, width: usize) -> String {
    let mut line = " ".repeat(MARGIN);
    for (place, read) in (0..found.read_rates.len()).step_by(each).enumerate() {
        let at = MARGIN + place * width + width / 2;
        let text = label(found.read_rates[read]);
        let start = at.saturating_sub(text.len() / 2);
        if line.len() == MARGIN || start >= line.len() + 3 {
            line.push_str(&" ".repeat(start.saturating_sub(line.len())));
            line.push_str(&text);
        }
    }
    line
}

/// What each level stands for.
fn legend(out: &mut String, (low, high): (f64, f64), style: &Style) {
    let edge = |step: usize| {
        let share = step as f64 / LEVELS.len() as f64;
        figures::time((low + (high - low) * share).exp())
    };
    let part = |step: usize| {
        let from = if step == 0 { format!("{} ", edge(0)) } else { String::new() };
        format!("{} {from}to {}", LEVELS[step], edge(step + 1))
    };
    // Two lines, so that no entry is broken.
    for half in [0..LEVELS.len() / 2, LEVELS.len() / 2..LEVELS.len()] {
        let parts: Vec<String> = half.map(part).collect();
        let line = format!("{}{}", " ".repeat(MARGIN), parts.join("   "));
        push_line(out, &Tint::Dim.paint(&line, style));
    }
}

/// How much the cells that were measured again had changed.
pub fn drift_in_words(drift: f64) -> String {
    if drift.abs() < 5e-4 {
        return "Cells that were measured again at the end took as long as before.".to_owned();
    }
    let word = if drift < 0.0 { "shorter" } else { "longer" };
    format!(
        "Cells that were measured again at the end took {} {word} than before, in the mean.",
        figures::percent(drift.abs())
    )
}

fn validation(out: &mut String, found: &MapFound, style: &Style) {
    if !found.validation.is_empty() {
        let mut table = Table::new(&[
            (Align::Left, 0),
            (Align::Right, 3),
            (Align::Right, 3),
            (Align::Right, 3),
        ]);
        let heads = ["filled in against measured", "cells", "median error", "largest"];
        table.row(Tint::Dim, heads.map(str::to_owned));
        for one in &found.validation {
            table.row(
                Tint::Plain,
                [
                    one.quantile.to_string(),
                    one.cells.to_string(),
                    figures::percent(one.median_error),
                    figures::percent(one.largest_error),
                ],
            );
        }
        table.render(out, style);
    }
    if let Some(drift) = found.drift {
        let text = drift_in_words(drift);
        wrap(out, "", &text, Tint::Plain, style);
    }
    push_line(out, "");
}
