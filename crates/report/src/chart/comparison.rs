//! The charts of a comparison: the distributions of its sides over each other, the ratio of each pair
//! of trials, the curves of experiments, and the ratios of a map.

use std::collections::BTreeMap;

use fathom_core::differences::{figure_in_words, figure_text};
use fathom_core::figures::percent;
use fathom_core::{Span, stats};

use super::trial::{nines, on_nines};
use super::{
    Axis, Chart, Cover, Dot, Form, Heat, HeatCell, Lines, Paint, Palette, Panel, Plot, Scale,
    Series, Shape, labeled, linear_ticks,
};
use crate::comparison::{Compared, ComparedFigure, ComparedPair, ComparedPoint, MeasuredPlace};
use crate::document::Coordinate;
use crate::figures;

/// More plots of one kind than this are too many for a page.
const PANELS: usize = 9;

/// A curve has at least this many values.
const CURVE: usize = 3;

/// An axis of a matrix has at least this many values.
const MATRIX: usize = 4;

/// All charts of a comparison.
pub fn charts(compared: &Compared<'_>) -> Vec<Chart> {
    let mut all: Vec<Chart> = Vec::new();
    all.extend(pair_ratios(compared));
    all.extend(matrices(compared));
    for figure in ["iops", "p99"] {
        all.extend(curves(compared, figure));
    }
    all.extend(distributions(compared));
    all.extend(over_time(compared));
    all
}

fn plain(x: f64, y: f64, about: String) -> Dot {
    Dot::plain(x, Some(y), about)
}

fn chart(name: &str, title: String, caption: String, panels: Vec<Panel>) -> Option<Chart> {
    let chart = Chart { name: name.to_owned(), title, caption, panels, one_at_a_time: false };
    (!chart.panels.is_empty()).then_some(chart)
}

/// The name of a panel: of the point, and of the side where there are several.
fn panel_name(compared: &Compared<'_>, nth: usize, point: &str) -> String {
    match compared.pairs.len() {
        1 => point.to_owned(),
        _ => {
            let side = compared.comparison.against[nth].side as usize;
            format!("{}, {point}", compared.comparison.sides[side].name)
        }
    }
}

/// The distributions of both sides at each point, over each other.
fn distributions(compared: &Compared<'_>) -> Option<Chart> {
    let mut panels = Vec::new();
    let mut left_out = 0;
    for (nth, pairs) in compared.pairs.iter().enumerate() {
        let side = compared.comparison.against[nth].side as usize;
        for pair in pairs {
            let flows = [0, side].into_iter().zip(&pair.flows).zip([Paint::Nth(0), Paint::Nth(1)]);
            let series: Vec<Series> = flows
                .filter_map(|((side, flow), paint)| {
                    let dots = nines(flow.as_ref()?.response_time());
                    let name = compared.comparison.sides[side].name.clone();
                    Some(Series { name, paint, form: Form::Line { dashed: false }, dots })
                })
                .collect();
            if series.is_empty() {
                continue;
            }
            if panels.len() == PANELS {
                left_out += 1;
                continue;
            }
            let title = panel_name(compared, nth, &pair.pair.name);
            panels.push(Panel { title, plot: Plot::Lines(on_nines(series)) });
        }
    }
    let more = match left_out {
        0 => String::new(),
        more => format!(" {more} more points have no plot here; their figures are in the table."),
    };
    let caption = format!(
        "Response time in ms on a logarithmic scale, all trials of a side together; every nine has \
         the same width.{more}"
    );
    chart("distributions", "Distributions of both sides".to_owned(), caption, panels)
}

/// The IOPS over the window, the mean of all trials of a side: where there is one point, because the
/// course of many is not read.
fn over_time(compared: &Compared<'_>) -> Option<Chart> {
    let mut panels = Vec::new();
    for (nth, pairs) in compared.pairs.iter().enumerate() {
        let [only] = pairs.as_slice() else { continue };
        let side = compared.comparison.against[nth].side as usize;
        let sides = [(0, &only.pair.before), (side, &only.pair.after)];
        let series: Vec<Series> = (0..)
            .zip(sides)
            .map(|(paint, (side, measured))| Series {
                name: compared.comparison.sides[side].name.clone(),
                paint: Paint::Nth(paint),
                form: Form::Line { dashed: false },
                dots: mean_rates(measured),
            })
            .filter(|one| 1 < one.dots.len())
            .collect();
        if series.is_empty() || panels.len() == PANELS {
            continue;
        }
        let axis = |title: &str| Axis::plain(title, Scale::FromZero);
        let lines = Lines { x: axis("seconds"), y: axis("IOPS"), band: None, series };
        let title = panel_name(compared, nth, &only.pair.name);
        panels.push(Panel { title, plot: Plot::Lines(lines) });
    }
    let caption = "The mean of all trials of a side, over the measurement window.".to_owned();
    chart("series", "IOPS over time".to_owned(), caption, panels)
}

/// The mean IOPS of several trials at each time of their windows, at most as many as a chart can show.
fn mean_rates(measured: &MeasuredPlace<'_>) -> Vec<Dot> {
    const POINTS: usize = 120;
    let mut slices: BTreeMap<Span, (f64, f64)> = BTreeMap::new();
    for slice in measured.trials.iter().flat_map(|(_, trial)| stats::sums(trial.intervals())) {
        let (ios, seconds) = slices.entry(slice.start).or_default();
        *ios += slice.ios.iter().sum::<u64>() as f64;
        *seconds += slice.length.as_secs_f64();
    }
    let slices: Vec<(Span, (f64, f64))> = slices.into_iter().collect();
    let group = slices.len().div_ceil(POINTS).max(1);
    let piece = |piece: &[(Span, (f64, f64))]| {
        let (ios, seconds) =
            piece.iter().fold((0.0, 0.0), |sum, (_, one)| (sum.0 + one.0, sum.1 + one.1));
        (0.0 < seconds).then(|| plain(piece[0].0.as_secs_f64(), ios / seconds, String::new()))
    };
    slices.chunks(group).filter_map(piece).collect()
}

/// The ratio of each pair of trials, in their order, by the first figure.
fn pair_ratios(compared: &Compared<'_>) -> Option<Chart> {
    let mut panels = Vec::new();
    let mut figure = String::new();
    for (nth, pairs) in compared.pairs.iter().enumerate() {
        for (pair, point) in pairs.iter().zip(&compared.comparison.against[nth].points) {
            let known = pair.pair_ratios.iter().flatten().count();
            if known < 2 || panels.len() == PANELS {
                continue;
            }
            let Some(first) = point.figures.first() else { continue };
            figure = figure_in_words(&first.figure).to_owned();
            let title = panel_name(compared, nth, &pair.pair.name);
            panels.push(Panel { title, plot: Plot::Lines(ratios(pair, first)) });
        }
    }
    let caption = format!(
        "{figure} of the second side divided by that of the first, for each pair of trials in their \
         order. The line is at no difference."
    );
    chart("pairs", format!("{figure} of each pair"), caption, panels)
}

fn ratios(pair: &ComparedPair<'_>, figure: &ComparedFigure) -> Lines {
    let numbered = (1..).zip(&pair.pair_ratios);
    let dots: Vec<Dot> = numbered
        .filter_map(|(number, ratio)| {
            let ratio = (*ratio)?;
            let off = figures::significant(ratio);
            Some(plain(f64::from(number), ratio, format!("pair {number}: {off} times")))
        })
        .collect();
    let last = pair.pair_ratios.len() as f64;
    let level = |at: f64, name: &str, paint: Paint, dashed: bool| Series {
        name: name.to_owned(),
        paint,
        form: Form::Line { dashed },
        dots: vec![plain(0.5, at, String::new()), plain(last + 0.5, at, String::new())],
    };
    let mut series = vec![level(1.0, "no difference", Paint::Muted, true)];
    if let Some(interval) = figure.ratio.and_then(|ratio| ratio.interval()) {
        series.push(level(interval.value, "all together", Paint::Found, false));
        series.push(level(interval.low, "its interval", Paint::Found, true));
        series.push(level(interval.high, "", Paint::Found, true));
    }
    series.push(Series {
        name: "pair".to_owned(),
        paint: Paint::Nth(0),
        form: Form::Dots(Shape::Circle),
        dots,
    });
    let whole = |at: f64| at.fract() == 0.0;
    let ticks = linear_ticks(1.0, last.max(2.0), 6).into_iter().filter(|at| whole(*at)).collect();
    let x = Axis {
        title: "pair".to_owned(),
        scale: Scale::Linear,
        ticks: labeled(ticks),
        range: Some((0.5, last + 0.5)),
    };
    let title = format!("ratio of {}", figure_in_words(&figure.figure));
    let y = Axis::plain(title, Scale::Linear);
    Lines { x, y, band: None, series }
}

/// A matched point with its values on two axes, or on one.
struct Placed<'a> {
    point: &'a ComparedPoint,
    coordinates: &'a [Coordinate],
}

/// The points of one other side that have a place.
fn placed<'a>(compared: &'a Compared<'_>, nth: usize) -> Vec<Placed<'a>> {
    let points = &compared.comparison.against[nth].points;
    let both = compared.pairs[nth].iter().zip(points);
    both.map(|(pair, point)| Placed { point, coordinates: &pair.pair.before.coordinates })
        .filter(|placed| !placed.coordinates.is_empty())
        .collect()
}

/// An axis by its name, with its labels and their values.
type NamedAxis = (String, Vec<(String, Option<f64>)>);

/// The axes of points, each with its labels in the order of their values.
fn axes(points: &[Placed<'_>]) -> Vec<NamedAxis> {
    let mut axes: Vec<NamedAxis> = Vec::new();
    for at in points.iter().flat_map(|one| one.coordinates) {
        let labels = match axes.iter_mut().find(|(name, _)| *name == at.axis) {
            Some((_, labels)) => labels,
            None => {
                axes.push((at.axis.clone(), Vec::new()));
                &mut axes.last_mut().expect("an axis was just added").1
            }
        };
        if !labels.iter().any(|(label, _)| *label == at.label) {
            labels.push((at.label.clone(), at.value));
        }
    }
    for (_, labels) in &mut axes {
        if labels.iter().all(|(_, value)| value.is_some()) {
            labels.sort_by(|one, other| one.1.unwrap_or(0.0).total_cmp(&other.1.unwrap_or(0.0)));
        }
    }
    axes
}

/// A figure along the axis with the most values, a line for each side, and a plot for each combination
/// of the other axes.
fn curves(compared: &Compared<'_>, figure: &str) -> Option<Chart> {
    let mut panels = Vec::new();
    let mut by = String::new();
    for nth in 0..compared.pairs.len() {
        let points = placed(compared, nth);
        let is_curve = |labels: &[(String, Option<f64>)]| {
            CURVE <= labels.len() && labels.iter().all(|(_, value)| value.is_some())
        };
        let axes = axes(&points);
        let Some((axis, _)) =
            axes.iter().filter(|(_, labels)| is_curve(labels)).max_by_key(|(_, all)| all.len())
        else {
            continue;
        };
        by.clone_from(axis);
        let mut groups: Vec<(String, Vec<&Placed<'_>>)> = Vec::new();
        for one in &points {
            let others = one.coordinates.iter().filter(|at| at.axis != *axis);
            let rest: Vec<String> = others.map(|at| format!("{} {}", at.axis, at.label)).collect();
            let name = rest.join(", ");
            match groups.iter_mut().find(|(known, _)| *known == name) {
                Some((_, all)) => all.push(one),
                None => groups.push((name, Vec::from([one]))),
            }
        }
        let side = compared.comparison.against[nth].side as usize;
        let names = [0, side].map(|side| compared.comparison.sides[side].name.as_str());
        for (name, points) in groups {
            let lines = curve(&points, axis, figure, names);
            if panels.len() < PANELS && lines.series.iter().any(|one| CURVE <= one.dots.len()) {
                let title = panel_name(compared, nth, &name);
                panels.push(Panel { title, plot: Plot::Lines(lines) });
            }
        }
    }
    let title = format!("{} of both sides by {by}", figure_in_words(figure));
    let caption = "All trials of a side together.".to_owned();
    chart(&format!("curve-{}", figure.replace('.', "-")), title, caption, panels)
}

fn curve(points: &[&Placed<'_>], axis: &str, figure: &str, names: [&str; 2]) -> Lines {
    let is_time = figure != "iops";
    let series = names.into_iter().enumerate().map(|(side, name)| {
        let dot = |one: &&Placed<'_>| {
            let x = one.coordinates.iter().find(|at| at.axis == axis)?.value?;
            let known = one.point.figures.iter().find(|it| it.figure == figure)?;
            let value = if side == 0 { known.before } else { known.after }?;
            let text = figure_text(figure, value);
            let y = if is_time { value / 1e6 } else { value };
            Some(plain(x, y, format!("{}\n{name}: {text}", one.point.name)))
        };
        let mut dots: Vec<Dot> = points.iter().filter_map(dot).collect();
        dots.sort_by(|one, other| one.x.total_cmp(&other.x));
        let form = Form::Dotted(Shape::nth(side));
        Series { name: name.to_owned(), paint: Paint::Nth(side), form, dots }
    });
    let series: Vec<Series> = series.collect();
    let positions = || series.iter().flat_map(|one| &one.dots).map(|dot| dot.x);
    let (least, most) =
        (positions().fold(f64::INFINITY, f64::min), positions().fold(0.0, f64::max));
    let is_log = 0.0 < least && 8.0 * least <= most;
    let mut ticks: Vec<(f64, String)> = Vec::new();
    for at in points.iter().filter_map(|one| one.coordinates.iter().find(|at| at.axis == axis)) {
        if let Some(value) = at.value.filter(|value| !ticks.iter().any(|(known, _)| known == value))
        {
            ticks.push((value, at.label.clone()));
        }
    }
    ticks.sort_by(|one, other| one.0.total_cmp(&other.0));
    let scale = if is_log { Scale::Log } else { Scale::Linear };
    let x = Axis { title: axis.to_owned(), scale, ticks, range: None };
    let y = match is_time {
        true => Axis::of_ratios(format!("{figure}, ms (logarithmic)"), &series),
        false => Axis::plain("I/Os per second", Scale::FromZero),
    };
    Lines { x, y, band: None, series }
}

/// The ratio of each figure over two axes, where both have several values: a map's or a sweep's.
fn matrices(compared: &Compared<'_>) -> Option<Chart> {
    let mut panels = Vec::new();
    for nth in 0..compared.pairs.len() {
        let points = placed(compared, nth);
        let axes = axes(&points);
        let [across, up] = axes.as_slice() else { continue };
        if across.1.len() < MATRIX || up.1.len() < MATRIX {
            continue;
        }
        let figures = points.first().map(|one| one.point.figures.as_slice()).unwrap_or_default();
        for figure in figures {
            let heat = ratio_heat(&points, [across, up], &figure.figure);
            if heat.cells.iter().any(|cell| cell.value.is_some()) && panels.len() < PANELS {
                let title = panel_name(compared, nth, figure_in_words(&figure.figure));
                panels.push(Panel { title, plot: Plot::Heat(heat) });
            }
        }
    }
    let caption = "The figure of the second side divided by that of the first. A value that is \
                   decided has a dot."
        .to_owned();
    let chart = chart("ratios", "Ratio at each point".to_owned(), caption, panels)?;
    Some(Chart { one_at_a_time: true, ..chart })
}

fn ratio_heat(points: &[Placed<'_>], axes: [&NamedAxis; 2], figure: &str) -> Heat {
    use crate::comparison::Standing;
    let step = |one: &Placed<'_>, axis: &NamedAxis| {
        let at = one.coordinates.iter().find(|at| at.axis == axis.0)?;
        axis.1.iter().position(|(label, _)| *label == at.label)
    };
    let cell = |one: &Placed<'_>| {
        let known = one.point.figures.iter().find(|it| it.figure == figure)?;
        let ratio = known.ratio?;
        let is_decided =
            matches!(known.outcome, Standing::Faster | Standing::Slower | Standing::Same);
        Some(HeatCell {
            x: step(one, axes[0])?,
            y: step(one, axes[1])?,
            value: Some(ratio.value),
            cover: if is_decided { Cover::Dot } else { Cover::Plain },
            text: figures::significant(ratio.value),
            about: format!("{}\n{}", one.point.name, ratio.change().of(figure)),
        })
    };
    let labels = |axis: &NamedAxis| axis.1.iter().map(|(label, _)| label.clone()).collect();
    Heat {
        x_title: axes[0].0.clone(),
        x: labels(axes[0]),
        y_title: axes[1].0.clone(),
        y: labels(axes[1]),
        cells: points.iter().filter_map(cell).collect(),
        title: format!("ratio of {}", figure_in_words(figure)),
        log: true,
        written: axes.iter().all(|axis| axis.1.len() <= 12),
        write: ratio_text,
        signs: Vec::from([(Some(Cover::Dot), "decided"), (Some(Cover::Plain), "not decided")]),
        palette: Palette::Viridis,
        clip: None,
        contours: Vec::new(),
        limits: Vec::new(),
    }
}

/// "1.12", or "0.7 % more" close to one.
fn ratio_text(ratio: f64) -> String {
    match (ratio - 1.0).abs() < 0.01 {
        true if ratio < 1.0 => format!("{} less", percent(1.0 - ratio)),
        true => format!("{} more", percent(ratio - 1.0)),
        false => figures::significant(ratio),
    }
}
