//! Cells in characters: a picture that can be read without color, and that shows finer differences
//! with color.

use super::Style;
use super::text::{paint, push_line};
use crate::chart::{self, Cover, Heat, HeatCell, Palette, scale_color};
use crate::document::MapFound;
use crate::page::Tone;

/// From low to high: each fills more of its place than the one before.
const LEVELS: [char; 8] = ['.', ':', '-', '=', '+', '*', '#', '%'];

/// Columns before the cells.
const MARGIN: usize = 9;

/// The name of a cell's mark; none for a cell without a value.
pub fn sign(cover: Option<Cover>) -> &'static str {
    match cover {
        Some(Cover::Dot) => "'",
        Some(Cover::Triangle) => "?",
        Some(Cover::Plain) => "No mark",
        Some(Cover::Hatched) => "x",
        Some(Cover::Gray) => "Nothing",
        None => "_",
    }
}

/// The first surface of a map that is being measured, in at most this many lines, with the running
/// cell, by its write and its read step; empty before any cell is known.
pub fn so_far(
    found: &MapFound,
    running: Option<(usize, usize)>,
    lines: usize,
    style: &Style,
) -> String {
    let mut out = String::new();
    let Some(quantile) = found.quantiles.first().copied() else { return out };
    let heat = chart::map::surface(found, 0, quantile);
    let Some((low, high)) = heat.range() else { return out };
    // The axis and the meaning of the letters need three.
    let each = heat.y.len().div_ceil(lines.saturating_sub(3).max(1)).max(1);
    // Reads are upwards.
    let running = running.map(|(write, read)| (read, write));
    grid(&mut out, &heat, (low, high), (each, running), style);
    let text = format!(
        "{quantile} so far: {} {} to {} {}; ' measured, x overloaded, @ runs",
        LEVELS[0],
        (heat.write)(low),
        LEVELS[LEVELS.len() - 1],
        (heat.write)(high)
    );
    push_line(&mut out, &paint(Tone::Quiet, &text, style));
    out
}

/// All cells above their axis, and the meaning of each letter.
pub fn surface(out: &mut String, heat: &Heat, style: &Style) {
    let Some(range) = heat.range() else {
        push_line(out, "  not known: too few I/Os");
        return;
    };
    push_line(out, &format!("  up: {}; to the right: {}", heat.y_title, heat.x_title));
    grid(out, heat, range, (1, None), style);
    legend(out, heat, range, style);
}

/// Every n-th row of cells, and the running cell, by its row and its column.
fn grid(
    out: &mut String,
    heat: &Heat,
    range: (f64, f64),
    (each_row, running): (usize, Option<(usize, usize)>),
    style: &Style,
) {
    let columns = heat.x.len();
    let room = style.width.saturating_sub(MARGIN).max(1);
    // If there is no room for all, every n-th is shown.
    let each = columns.div_ceil(room).max(1);
    let width = (room / columns.div_ceil(each).max(1)).clamp(1, 3);
    let shown = |one: (usize, usize)| (one.0 - one.0 % each_row, one.1 - one.1 % each);
    let running = running.map(shown);
    for (y, label) in heat.y.iter().enumerate().step_by(each_row).rev() {
        let mut line = format!("{label:>7}  ");
        for x in (0..columns).step_by(each) {
            let cell = heat.cells.iter().find(|cell| (cell.y, cell.x) == (y, x));
            match running == Some((y, x)) {
                true => line.push_str(&format!("{:^width$}", '@')),
                false => line.push_str(&painted(cell, heat, range, width, style)),
            }
        }
        push_line(out, &line);
    }
    push_line(out, &axis(heat, each, width));
}

/// A cell in this many columns.
fn painted(
    cell: Option<&HeatCell>,
    heat: &Heat,
    range: (f64, f64),
    width: usize,
    style: &Style,
) -> String {
    let Some(cell) = cell else { return " ".repeat(width) };
    let shown = |value: &f64| value.is_finite() && (!heat.log || *value > 0.0);
    let share = cell.value.filter(shown).map(|value| heat.share(value, range));
    let level = |share: f64| LEVELS[((share * LEVELS.len() as f64) as usize).min(LEVELS.len() - 1)];
    let (letter, mark) = match (cell.cover, share) {
        (Cover::Gray, _) => (' ', ' '),
        (Cover::Hatched, _) => ('x', ' '),
        (_, None) => ('_', ' '),
        (Cover::Dot, Some(share)) => (level(share), '\''),
        (Cover::Triangle, Some(share)) => (level(share), '?'),
        (Cover::Plain, Some(share)) => (level(share), ' '),
    };
    let text: String = match width {
        1 => letter.to_string(),
        2 => [letter, mark].iter().collect(),
        _ => [' ', letter, mark].iter().collect(),
    };
    let known = !matches!(cell.cover, Cover::Gray | Cover::Hatched);
    match share.filter(|_| known && style.color) {
        Some(share) => colored(&text, heat.palette, share),
        None => text,
    }
}

/// A text on the color of a share, from the 256 that nearly every terminal has.
fn colored(text: &str, palette: Palette, share: f64) -> String {
    let [red, green, blue] =
        scale_color(palette, share).map(|part| (u32::from(part) * 5 + 127) / 255);
    let ink = if palette.is_dark(share) { 15 } else { 16 };
    format!("\x1b[38;5;{ink};48;5;{}m{text}\x1b[0m", 16 + 36 * red + 6 * green + blue)
}

/// The labels below the cells, as many as fit.
fn axis(heat: &Heat, each: usize, width: usize) -> String {
    let mut line = " ".repeat(MARGIN);
    for (place, text) in heat.x.iter().step_by(each).enumerate() {
        let at = MARGIN + place * width + width / 2;
        let start = at.saturating_sub(text.len() / 2);
        if line.len() == MARGIN || start >= line.len() + 3 {
            line.push_str(&" ".repeat(start.saturating_sub(line.len())));
            line.push_str(text);
        }
    }
    line
}

/// The meaning of each level.
fn legend(out: &mut String, heat: &Heat, (low, high): (f64, f64), style: &Style) {
    let edge = |step: usize| {
        let share = step as f64 / LEVELS.len() as f64;
        let value = match heat.log {
            true => (low.ln() + (high.ln() - low.ln()) * share).exp(),
            false => low + (high - low) * share,
        };
        (heat.write)(value)
    };
    let part = |step: usize| {
        let from = if step == 0 { format!("{} ", edge(0)) } else { String::new() };
        format!("{} {from}to {}", LEVELS[step], edge(step + 1))
    };
    if edge(0) == edge(LEVELS.len()) {
        let line = format!("{}{} {}", " ".repeat(MARGIN), LEVELS[0], edge(0));
        return push_line(out, &paint(Tone::Quiet, &line, style));
    }
    // Two lines, so that no entry is broken.
    for half in [0..LEVELS.len() / 2, LEVELS.len() / 2..LEVELS.len()] {
        let parts: Vec<String> = half.map(part).collect();
        let line = format!("{}{}", " ".repeat(MARGIN), parts.join("   "));
        push_line(out, &paint(Tone::Quiet, &line, style));
    }
}
