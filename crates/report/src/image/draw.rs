//! From a chart to shapes: the layout.

use super::font::Font;
use super::sheet::{
    Anchor, BLACK, EDGE, Frame, GRAY, GRID, HEADING, INK, MUTED, SHADE, SMALL, Sheet, TEXT, WHITE,
    rgb,
};
use super::{Picture, Pixel, Rgb, heading, numbers};
use crate::chart::{
    Axis, Chart, Cover, Dot, Form, Heat, HeatCell, Lines, NO_VALUES, Panel, Plot, Scale, Series,
    Shape, is_at_the_edge, labeled, linear_ticks, log_ticks,
};
use crate::page::{Illustration, Subject};

/// The size of one plot alone, and of one of several.
const ALONE: (f32, f32) = (912.0, 460.0);
const ONE_OF_SEVERAL: (f32, f32) = (560.0, 380.0);

/// The share of a plot's height that its legend may take at most, as a divisor.
const LEGEND: f32 = 5.0;

/// The height of a row of a legend.
const LEGEND_ROW: f32 = TEXT + 9.0;

/// An illustration as a picture.
pub fn picture(illustration: &Illustration, font: &Font) -> Picture {
    let mut sheet = Sheet { font, shapes: Vec::new() };
    let room = match &illustration.drawing {
        Subject::Chart(chart) => columns_of(chart).1,
        Subject::Grid(_) => ALONE.0,
    };
    let top = heading::draw(&mut sheet, illustration, room);
    let (bottom, words) = match &illustration.drawing {
        Subject::Chart(one) => chart(&mut sheet, one, top, room),
        Subject::Grid(one) => (numbers::grid(&mut sheet, one, top, room), one.caption.clone()),
    };
    let mut y = bottom;
    for line in sheet.wrapped(&words, SMALL, room) {
        y += SMALL + 4.0;
        sheet.text((EDGE, y), SMALL, MUTED, Anchor::Start, &line);
    }
    Picture {
        width: (room + 2.0 * EDGE).ceil(),
        height: (y + EDGE).ceil(),
        title: illustration.answer.text.clone(),
        about: format!("{}. {words}", illustration.source),
        shapes: sheet.shapes,
    }
}

/// The plots of a chart in a row, and the width of all of them.
fn columns_of(chart: &Chart) -> (usize, f32) {
    match chart.panels.len() {
        0 | 1 => (1, ALONE.0),
        _ => (2, ONE_OF_SEVERAL.0 * 2.0 + EDGE),
    }
}

/// A chart with its title and its legend; returns where it ends, and its words.
fn chart(sheet: &mut Sheet<'_>, chart: &Chart, top: f32, room: f32) -> (f32, String) {
    let (columns, _) = columns_of(chart);
    let (width, height) = if columns == 1 { ALONE } else { ONE_OF_SEVERAL };
    let height = chart.panels.iter().map(|panel| panel_height(panel, height)).fold(0.0, f32::max);
    let mut y = top;
    for line in sheet.wrapped(&chart.title, HEADING, room) {
        y += HEADING + 4.0;
        sheet.text((EDGE, y), HEADING, INK, Anchor::Start, &line);
    }
    y = legend(sheet, chart, y + 4.0, (room, height / LEGEND));
    for (nth, panel) in chart.panels.iter().enumerate() {
        let (row, column) = (nth / columns, nth % columns);
        let heading = if chart.panels.len() > 1 { HEADING + 10.0 } else { 0.0 };
        let left = EDGE + column as f32 * (width + EDGE);
        let top = y + row as f32 * (height + heading + EDGE);
        if heading > 0.0 {
            let title = sheet.fitted(&panel.title, HEADING, width);
            sheet.text((left, top + HEADING), HEADING, INK, Anchor::Start, &title);
        }
        let top = top + heading;
        let frame = Frame { left, top, right: left + width, bottom: top + height };
        match &panel.plot {
            Plot::Lines(plot) => lines(sheet, plot, frame),
            Plot::Heat(plot) => heat(sheet, plot, frame),
        }
        if nth + 1 == chart.panels.len() {
            y = frame.bottom + 20.0;
        }
    }
    (y, chart.words_of_picture())
}

/// A plot of many rows of cells is as high as they need.
fn panel_height(panel: &Panel, usual: f32) -> f32 {
    match &panel.plot {
        Plot::Heat(heat) if heat.written => (heat.y.len() as f32 * 40.0 + 70.0).min(900.0),
        Plot::Heat(heat) => usual.max((heat.y.len() as f32 * 17.0 + 70.0).min(1200.0)),
        Plot::Lines(_) => usual,
    }
}

/// What a legend explains.
type LegendEntry = (String, Option<Series>, Option<Cover>);

/// The legend, row by row, in a room of this width and height; returns where the plots begin.
fn legend(sheet: &mut Sheet<'_>, chart: &Chart, top: f32, (width, height): (f32, f32)) -> f32 {
    let entries = legend_entries(chart);
    if entries.is_empty() {
        return top + 8.0;
    }
    let mut rows: Vec<Vec<(f32, LegendEntry)>> = Vec::from([Vec::new()]);
    let mut x = EDGE;
    for (name, series, cover) in entries {
        let name = sheet.fitted(&name, TEXT, width - 52.0);
        let wide = 34.0 + sheet.font.width(&name, TEXT) + 18.0;
        if x > EDGE && x + wide > EDGE + width {
            x = EDGE;
            rows.push(Vec::new());
        }
        rows.last_mut().expect("there is always a row").push((x, (name, series, cover)));
        x += wide;
    }
    let most = ((height / LEGEND_ROW) as usize).max(1);
    let left_out: usize = rows.iter().skip(most).map(Vec::len).sum();
    rows.truncate(most);
    let mut y = top + 14.0;
    for row in &rows {
        row.iter().for_each(|(x, entry)| one_of_legend(sheet, entry, (*x, y)));
        y += LEGEND_ROW;
    }
    if left_out > 0 {
        let text = format!("and {left_out} more, whose names are in the table");
        sheet.text((EDGE, y), TEXT, MUTED, Anchor::Start, &text);
        y += LEGEND_ROW;
    }
    y - 4.0
}

/// What the plots show, each name once.
fn legend_entries(chart: &Chart) -> Vec<LegendEntry> {
    let mut entries: Vec<LegendEntry> = Vec::new();
    for panel in &chart.panels {
        match &panel.plot {
            Plot::Lines(plot) => {
                for one in plot.series.iter().filter(|one| !one.name.is_empty()) {
                    if !entries.iter().any(|(name, _, _)| *name == one.name) {
                        entries.push((one.name.clone(), Some(one.clone()), None));
                    }
                }
            }
            Plot::Heat(plot) => covers(plot, &mut entries),
        }
    }
    entries
}

/// A sample of a line or of a cell, and its name.
fn one_of_legend(sheet: &mut Sheet<'_>, (name, series, cover): &LegendEntry, (x, y): Pixel) {
    let middle = y - 4.5;
    if let Some(series) = series {
        let color = rgb(series.paint);
        let ends = [(x, middle), (x + 28.0, middle)];
        match series.form {
            Form::Line { dashed } => sheet.line(&ends, color, 1.8, dashed.then_some(5.0)),
            Form::Dotted(mark) | Form::Dashed(mark) => {
                let dashed = series.form == Form::Dashed(mark);
                sheet.line(&ends, color, 2.0, dashed.then_some(5.0));
                sheet.mark(mark, (x + 14.0, middle), color);
            }
            Form::Dots(mark) => sheet.mark(mark, (x + 14.0, middle), color),
            Form::Bars => {
                let (left, right) = (x + 8.0, x + 20.0);
                let (top, bottom) = (middle - 5.0, middle + 5.0);
                sheet.area(Frame { left, top, right, bottom }, color);
            }
        }
    }
    let sample = Frame { left: x + 4.0, top: middle - 7.0, right: x + 24.0, bottom: middle + 7.0 };
    match cover {
        Some(Cover::Dot) => sheet.lined(Shape::Circle, (x + 14.0, middle)),
        Some(Cover::Triangle) => sheet.lined(Shape::Triangle, (x + 14.0, middle)),
        Some(Cover::Hatched) => {
            sheet.area(sample, GRAY);
            sheet.hatch(sample);
        }
        Some(Cover::Gray) => sheet.area(sample, GRAY),
        Some(Cover::Plain) | None => {}
    }
    sheet.text((x + 34.0, y), TEXT, INK, Anchor::Start, name);
}

fn covers(heat: &Heat, entries: &mut Vec<LegendEntry>) {
    let names = [
        (Cover::Dot, "measured"),
        (Cover::Triangle, "measured, not precise"),
        (Cover::Hatched, if heat.written { "void" } else { "overloaded" }),
        (Cover::Gray, "beyond"),
    ];
    for (cover, name) in names {
        let is = heat.cells.iter().any(|cell| cell.cover == cover);
        if is && !entries.iter().any(|(other, _, _)| other == name) {
            entries.push((name.to_owned(), None, Some(cover)));
        }
    }
}

/// From values to shares of an axis.
#[derive(Clone, Copy)]
struct Reach {
    low: f64,
    high: f64,
    log: bool,
}

impl Reach {
    fn of(axis: &Axis, values: impl Iterator<Item = (f64, f64)>) -> Self {
        let log = axis.scale == Scale::Log;
        let values = values
            .filter(|(low, high)| low.is_finite() && high.is_finite() && (!log || *low > 0.0));
        let ends = values.reduce(|one, two| (one.0.min(two.0), one.1.max(two.1)));
        let (low, high) = ends.unwrap_or((1.0, 1.0));
        let (low, high) = match (axis.range, axis.scale) {
            (Some(range), _) => range,
            (None, Scale::FromZero) => (low.min(0.0), high.max(f64::MIN_POSITIVE) * 1.06),
            (None, Scale::Log) => {
                let room = (high / low).powf(0.06).max(1.1);
                (low / room, high * room)
            }
            (None, Scale::Linear) => {
                let room = ((high - low) * 0.06).max(high.abs() * 1e-3);
                (low - room, high + room)
            }
        };
        Self { low, high, log }
    }

    fn share(&self, value: f64) -> f32 {
        let on = |value: f64| if self.log { value.max(f64::MIN_POSITIVE).ln() } else { value };
        let span = on(self.high) - on(self.low);
        if span > 0.0 { ((on(value) - on(self.low)) / span) as f32 } else { 0.5 }
    }

    fn ticks(&self, axis: &Axis) -> Vec<(f64, String)> {
        if !axis.ticks.is_empty() {
            let inside = axis.ticks.iter().filter(|(at, _)| (self.low..=self.high).contains(at));
            return inside.cloned().collect();
        }
        let ticks = match self.log {
            true => log_ticks(self.low, self.high),
            false => linear_ticks(self.low, self.high, 6),
        };
        labeled(ticks)
    }
}

/// Where values are drawn.
struct PlotArea {
    frame: Frame,
    x: Reach,
    y: Reach,
}

impl PlotArea {
    fn x(&self, value: f64) -> f32 {
        self.frame.left + self.x.share(value) * (self.frame.right - self.frame.left)
    }

    fn y(&self, value: f64) -> f32 {
        let share = self.y.share(value).clamp(0.0, 1.0);
        self.frame.bottom - share * (self.frame.bottom - self.frame.top)
    }

    fn at(&self, dot: &Dot) -> Option<Pixel> {
        dot.y.map(|y| (self.x(dot.x), self.y(y)))
    }
}

fn lines(sheet: &mut Sheet<'_>, plot: &Lines, outer: Frame) {
    let dots = || plot.series.iter().flat_map(|series| &series.dots);
    let x = Reach::of(&plot.x, dots().map(|dot| (dot.x, dot.x)));
    let y = Reach::of(
        &plot.y,
        dots().filter_map(|dot| {
            let half = dot.half.unwrap_or(0.0);
            dot.y.map(|y| (if plot.y.scale == Scale::Log { y } else { y - half }, y + half))
        }),
    );
    let y_ticks = y.ticks(&plot.y);
    let widest = y_ticks.iter().map(|(_, text)| sheet.font.width(text, SMALL)).fold(0.0, f32::max);
    let frame = Frame {
        left: outer.left + TEXT + 12.0 + widest,
        top: outer.top + 6.0,
        right: outer.right - 8.0,
        bottom: outer.bottom - 44.0,
    };
    let area = PlotArea { frame, x, y };
    if let Some((from, to)) = plot.band {
        let (left, right) = (area.x(from).max(frame.left), area.x(to).min(frame.right));
        sheet.area(Frame { left, right, ..frame }, SHADE);
    }
    axes(sheet, plot, &area, &y_ticks, outer);
    if plot.is_empty() {
        let middle = ((frame.left + frame.right) / 2.0, (frame.top + frame.bottom) / 2.0);
        sheet.text(middle, TEXT, MUTED, Anchor::Middle, NO_VALUES);
    }
    let bars = plot.series.iter().filter(|series| series.form == Form::Bars).count();
    let mut bar = 0;
    for series in &plot.series {
        match series.form {
            Form::Bars => {
                bars_of(sheet, series, &area, bar, bars);
                bar += 1;
            }
            _ => series_of(sheet, series, &area),
        }
    }
}

fn axes(
    sheet: &mut Sheet<'_>,
    plot: &Lines,
    area: &PlotArea,
    y_ticks: &[(f64, String)],
    outer: Frame,
) {
    let frame = area.frame;
    for (value, text) in y_ticks {
        let y = area.y(*value);
        sheet.line(&[(frame.left, y), (frame.right, y)], GRID, 1.0, None);
        sheet.text((frame.left - 6.0, y + 4.0), SMALL, MUTED, Anchor::End, text);
    }
    // A label that would touch the one before it is left out.
    let mut free = f32::NEG_INFINITY;
    for (value, text) in area.x.ticks(&plot.x) {
        let x = area.x(value);
        sheet.line(&[(x, frame.top), (x, frame.bottom)], GRID, 1.0, None);
        let half = sheet.font.width(&text, SMALL) / 2.0;
        if x - half > free {
            sheet.text((x, frame.bottom + 17.0), SMALL, MUTED, Anchor::Middle, &text);
            free = x + half + 5.0;
        }
    }
    let corner = [(frame.left, frame.top), (frame.left, frame.bottom), (frame.right, frame.bottom)];
    sheet.line(&corner, MUTED, 1.0, None);
    let middle = ((frame.left + frame.right) / 2.0, frame.bottom + 38.0);
    sheet.text(middle, TEXT, INK, Anchor::Middle, &plot.x.title);
    let side = (outer.left + TEXT, (frame.top + frame.bottom) / 2.0);
    let title = sheet.fitted(&plot.y.title, TEXT, frame.bottom - frame.top);
    sheet.upwards(side, TEXT, INK, &title);
}

fn error_bar(sheet: &mut Sheet<'_>, area: &PlotArea, dot: &Dot, x: f32, color: Rgb) {
    let (Some(y), Some(half)) = (dot.y, dot.half) else { return };
    let (low, high) = (area.y(y - half), area.y(y + half));
    if (low - high).abs() < 1.5 {
        return;
    }
    sheet.line(&[(x, low), (x, high)], color, 1.3, None);
    for end in [low, high] {
        sheet.line(&[(x - 3.5, end), (x + 3.5, end)], color, 1.3, None);
    }
}

fn series_of(sheet: &mut Sheet<'_>, series: &Series, area: &PlotArea) {
    let color = rgb(series.paint);
    if let Form::Line { .. } | Form::Dotted(_) | Form::Dashed(_) = series.form {
        let dashed = matches!(series.form, Form::Line { dashed: true } | Form::Dashed(_));
        let width = if let Form::Line { .. } = series.form { 1.8 } else { 2.2 };
        for piece in series.dots.split(|dot| dot.y.is_none()) {
            let points: Vec<Pixel> = piece.iter().filter_map(|dot| area.at(dot)).collect();
            if points.len() > 1 {
                sheet.line(&points, color, width, dashed.then_some(6.0));
            }
        }
    }
    for dot in &series.dots {
        let Some(at) = area.at(dot) else { continue };
        error_bar(sheet, area, dot, at.0, color);
        if let Form::Dotted(mark) | Form::Dashed(mark) | Form::Dots(mark) = series.form {
            sheet.mark(mark, at, color);
        }
        if !dot.label.is_empty() {
            let (shift, anchor) = match is_at_the_edge(dot, series) {
                true => (8.0, Anchor::Start),
                false => (-8.0, Anchor::End),
            };
            sheet.text((at.0 + shift, at.1 - 8.0), SMALL, INK, anchor, &dot.label);
        }
    }
}

fn bars_of(sheet: &mut Sheet<'_>, series: &Series, area: &PlotArea, nth: usize, all: usize) {
    let step = area.x(1.0) - area.x(0.0);
    let width = step * 0.7 / all.max(1) as f32;
    for dot in &series.dots {
        let Some((x, y)) = area.at(dot) else { continue };
        let left = x - step * 0.35 + nth as f32 * width;
        let right = left + width - 2.0;
        sheet.area(Frame { left, top: y, right, bottom: area.frame.bottom }, rgb(series.paint));
        let middle = (left + right) / 2.0;
        error_bar(sheet, area, dot, middle, INK);
        let top = dot.y.map_or(y, |value| area.y(value + dot.half.unwrap_or(0.0)));
        sheet.text((middle, top - 6.0), SMALL, INK, Anchor::Middle, &dot.label);
    }
}

fn heat(sheet: &mut Sheet<'_>, plot: &Heat, outer: Frame) {
    let widest = plot.y.iter().map(|text| sheet.font.width(text, SMALL)).fold(0.0, f32::max);
    let frame = Frame {
        left: outer.left + TEXT + 12.0 + widest,
        top: outer.top + 6.0,
        right: outer.right - 84.0,
        bottom: outer.bottom - 44.0,
    };
    let width = (frame.right - frame.left) / plot.x.len().max(1) as f32;
    let height = (frame.bottom - frame.top) / plot.y.len().max(1) as f32;
    let range = plot.range();
    for cell in &plot.cells {
        let left = frame.left + cell.x as f32 * width;
        let bottom = frame.bottom - cell.y as f32 * height;
        let place = Frame { left, top: bottom - height + 1.0, right: left + width - 1.0, bottom };
        one_cell(sheet, plot, cell, place, range);
    }
    contours(sheet, plot, frame, (width, height));
    let mut free = f32::NEG_INFINITY;
    for (nth, text) in plot.x.iter().enumerate() {
        let x = frame.left + (nth as f32 + 0.5) * width;
        let half = sheet.font.width(text, SMALL) / 2.0;
        if x - half > free {
            sheet.text((x, frame.bottom + 17.0), SMALL, MUTED, Anchor::Middle, text);
            free = x + half + 6.0;
        }
    }
    let mut free = f32::INFINITY;
    for (nth, text) in plot.y.iter().enumerate() {
        let y = frame.bottom - (nth as f32 + 0.5) * height + 4.0;
        if y < free {
            sheet.text((frame.left - 6.0, y), SMALL, MUTED, Anchor::End, text);
            free = y - SMALL;
        }
    }
    let middle = ((frame.left + frame.right) / 2.0, frame.bottom + 38.0);
    sheet.text(middle, TEXT, INK, Anchor::Middle, &plot.x_title);
    let side = (outer.left + TEXT, (frame.top + frame.bottom) / 2.0);
    sheet.upwards(side, TEXT, INK, &plot.y_title);
    if let Some(range) = range {
        color_bar(sheet, plot, frame, range);
    }
}

/// Lines of equal values, each with its value on white.
fn contours(sheet: &mut Sheet<'_>, plot: &Heat, frame: Frame, (width, height): (f32, f32)) {
    let at = |(x, y): (f64, f64)| {
        (frame.left + (x as f32 + 0.5) * width, frame.bottom - (y as f32 + 0.5) * height)
    };
    for contour in &plot.contours {
        contour.pieces.iter().for_each(|[from, to]| {
            sheet.line(&[at(*from), at(*to)], BLACK, 1.4, None);
        });
    }
    for contour in &plot.contours {
        let (x, y) = at(contour.at);
        let half = sheet.font.width(&contour.label, SMALL) / 2.0 + 2.0;
        let x = x.clamp(frame.left + half, frame.right - half);
        sheet.area(Frame { left: x - half, top: y - 8.0, right: x + half, bottom: y + 6.0 }, WHITE);
        sheet.text((x, y + 3.0), SMALL, BLACK, Anchor::Middle, &contour.label);
    }
}

fn one_cell(
    sheet: &mut Sheet<'_>,
    plot: &Heat,
    cell: &HeatCell,
    place: Frame,
    range: Option<(f64, f64)>,
) {
    let masked = matches!(cell.cover, Cover::Hatched | Cover::Gray);
    let share = cell.value.zip(range).filter(|_| !masked).map(|(v, range)| plot.share(v, range));
    match share {
        Some(share) => sheet.area(place, plot.color(share)),
        None if masked => sheet.area(place, GRAY),
        None => {}
    }
    let center = ((place.left + place.right) / 2.0, (place.top + place.bottom) / 2.0);
    match cell.cover {
        Cover::Hatched => sheet.hatch(place),
        Cover::Dot => sheet.lined(Shape::Circle, center),
        Cover::Triangle => sheet.lined(Shape::Triangle, center),
        Cover::Plain | Cover::Gray => {}
    }
    if let (true, Some(share)) = (plot.written, share) {
        let color = if plot.palette.is_dark(share) { WHITE } else { BLACK };
        let text = sheet.fitted(&cell.text, SMALL, place.right - place.left);
        sheet.text((center.0, center.1 + 4.0), SMALL, color, Anchor::Middle, &text);
    }
}

fn color_bar(sheet: &mut Sheet<'_>, plot: &Heat, frame: Frame, range: (f64, f64)) {
    let (left, right) = (frame.right + 14.0, frame.right + 28.0);
    let height = frame.bottom - frame.top;
    const STEPS: u16 = 64;
    for step in 0..STEPS {
        let share = f32::from(step) / f32::from(STEPS);
        let bottom = frame.bottom - share * height;
        // A small overlap with the next one, so that no line shows between them.
        let top = (bottom - height / f32::from(STEPS) - 0.6).max(frame.top);
        sheet.area(Frame { left, top, right, bottom }, plot.color(f64::from(share)));
    }
    for (tick, text) in labeled(plot.ticks()) {
        let y = frame.bottom - plot.share(tick, range) as f32 * height;
        sheet.line(&[(right, y), (right + 4.0, y)], MUTED, 1.0, None);
        sheet.text((right + 7.0, y + 4.0), SMALL, MUTED, Anchor::Start, &text);
    }
    sheet.upwards((right + 54.0, (frame.top + frame.bottom) / 2.0), TEXT, INK, &plot.title);
}
