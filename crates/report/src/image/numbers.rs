//! Large figures: the tiles below an answer, and the grid of a portrait.

use super::Rgb;
use super::sheet::{Anchor, EDGE, Frame, HEADING, INK, MUTED, PANEL, SMALL, Sheet, TEXT, rgb};
use crate::chart::grid::{Grid, GridCell, GridRow};
use crate::document::Verdict;
use crate::page::{Entry, Table, TableRow};

/// The colors of the verdicts.
pub const GOOD: Rgb = [21, 107, 61];
pub const DOUBTFUL: Rgb = [138, 90, 0];
pub const BAD: Rgb = [179, 38, 30];

/// The size of the figures in tiles, and in a grid.
const TILE: f32 = 26.0;
const NUMBER: f32 = 38.0;

/// Between tiles, and between cells.
const GAP: f32 = 10.0;

/// Within a tile.
const PAD: f32 = 14.0;

/// The height of a row of a grid.
const ROW: f32 = 92.0;

/// The width of the loads.
const NAMES: f32 = 210.0;

/// Figures side by side, each with its name below it; returns where they end.
pub fn tiles(sheet: &mut Sheet<'_>, table: &Table, top: f32, room: f32) -> f32 {
    let Some(TableRow::Cells { cells, .. }) = table.rows.first() else { return top };
    let width = (room + GAP) / cells.len().max(1) as f32 - GAP;
    let inside = width - 2.0 * PAD;
    let bottom = top + 84.0;
    for (nth, (head, cell)) in table.heads.iter().zip(cells).enumerate() {
        let left = EDGE + nth as f32 * (width + GAP);
        sheet.area(Frame { left, top, right: left + width, bottom }, PANEL);
        let Entry::Figure { text, half } = cell else { continue };
        let text = sheet.fitted(text, TILE, inside);
        sheet.text((left + PAD, top + 38.0), TILE, INK, Anchor::Start, &text);
        let after = sheet.font.width(&text, TILE) + 8.0;
        if after + sheet.font.width(half, SMALL) <= inside {
            sheet.text((left + PAD + after, top + 38.0), SMALL, MUTED, Anchor::Start, half);
        }
        let name = sheet.fitted(&head.name, TEXT, inside);
        sheet.text((left + PAD, top + 64.0), TEXT, MUTED, Anchor::Start, &name);
    }
    bottom + 20.0
}

/// A portrait; returns where it ends.
pub fn grid(sheet: &mut Sheet<'_>, grid: &Grid, top: f32, room: f32) -> f32 {
    let columns = grid.heads.len().max(1) as f32;
    let width = (room - NAMES + GAP) / columns - GAP;
    let left = |column: usize| EDGE + NAMES + column as f32 * (width + GAP);
    let mut y = top;
    // Rows of one cell need no heads.
    if grid.rows.iter().any(|row| row.cells.len() > 1) {
        for (column, head) in grid.heads.iter().enumerate() {
            let middle = left(column) + width / 2.0;
            sheet.text((middle, y + HEADING), HEADING, MUTED, Anchor::Middle, head);
        }
        y += HEADING + 10.0;
    }
    for row in &grid.rows {
        load(sheet, row, y);
        for (column, cell) in row.cells.iter().enumerate() {
            let right = match row.cells.len() {
                1 => EDGE + room,
                _ => left(column) + width,
            };
            let place = Frame { left: left(column), top: y, right, bottom: y + ROW };
            sheet.area(place, PANEL);
            match cell {
                Some(cell) => figure(sheet, cell, place),
                None => {
                    let middle = ((place.left + place.right) / 2.0, y + ROW / 2.0 + 5.0);
                    sheet.text(middle, HEADING, MUTED, Anchor::Middle, "–");
                }
            }
        }
        y += ROW + GAP;
    }
    y
}

/// The load of a row.
fn load(sheet: &mut Sheet<'_>, row: &GridRow, top: f32) {
    let mut y = top + 22.0;
    for line in sheet.wrapped(&row.name, HEADING, NAMES - GAP).iter().take(3) {
        y += HEADING + 3.0;
        sheet.text((EDGE, y), HEADING, INK, Anchor::Start, line);
    }
    for line in sheet.wrapped(&row.below, SMALL, NAMES - GAP).iter().take(2) {
        y += SMALL + 5.0;
        sheet.text((EDGE, y), SMALL, MUTED, Anchor::Start, line);
    }
}

/// A figure over its bar.
fn figure(sheet: &mut Sheet<'_>, cell: &GridCell, place: Frame) {
    let share = cell.share.clamp(0.0, 1.0) as f32;
    let right = place.left + share * (place.right - place.left);
    sheet.area(Frame { right, ..place }, pale(rgb(cell.paint)));
    sheet.area(Frame { right, top: place.bottom - 4.0, ..place }, rgb(cell.paint));
    let (left, inside) = (place.left + PAD, place.right - place.left - 2.0 * PAD);
    let number = sheet.fitted(&cell.text, NUMBER, inside);
    let baseline = place.top + 48.0;
    sheet.text((left, baseline), NUMBER, INK, Anchor::Start, &number);
    let after = left + sheet.font.width(&number, NUMBER) + 8.0;
    sheet.text((after, baseline), HEADING, INK, Anchor::Start, cell.unit);
    let below = sheet.fitted(&cell.below, TEXT, inside);
    sheet.text((left, place.top + 72.0), TEXT, INK, Anchor::Start, &below);
    let (word, color) = match cell.verdict {
        Verdict::Sound => return,
        Verdict::Suspect => ("suspect", DOUBTFUL),
        Verdict::Void => ("void", BAD),
    };
    sheet.text((place.right - PAD, place.top + 22.0), TEXT, color, Anchor::End, word);
}

/// A color that text can be read on.
fn pale([red, green, blue]: Rgb) -> Rgb {
    let pale = |channel: u8| 255 - (255 - channel) / 4;
    [pale(red), pale(green), pale(blue)]
}
