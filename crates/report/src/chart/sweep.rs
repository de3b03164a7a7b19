//! The charts of a sweep: a line for each value of the second axis, a plot for each value of the
//! others, bars if there are only names. Over the number of hosts also the growth that would be
//! ideal.

use fathom_core::facts::short_names;
use fathom_core::stats::Estimate;

use super::looks::looks;
use super::scaling::{self, FewestHosts};
use super::{
    Axis, BARS, Chart, Cover, Dot, Form, Heat, HeatCell, Lines, Palette, Panel, Plot, Scale,
    Series, loops, marks,
};
use crate::document::{Command, Document, Verdict};
use crate::figures::{self, plus_minus};
use crate::results::{QUANTILES, Results, Spot};

/// More plots than this in one chart would be too small to read: the rest is in the table.
const PANELS: usize = 16;

/// Axes with at least this many values each have a matrix too.
const MATRIX: usize = 3;

/// Fewer values than this do not make a meaningful line.
const A_LINE: usize = 4;

/// The axis of a measured figure, whose values include their unit.
const TARGETS: &str = "targets";

/// The ideal line ends at this multiple of the highest value, or it would flatten all others.
const ABOVE: f64 = 1.5;

/// The note on an axis of ratios; bars have none.
const LOGARITHMIC: &str = " (logarithmic)";

/// Reads a figure from all trials at one place.
type Reading = Box<dyn Fn(&Spot<'_>) -> Option<Estimate>>;

/// A figure that is drawn.
struct DrawnFigure {
    name: String,
    title: String,
    axis: String,
    log: bool,
    of: Reading,
    text: fn(f64) -> String,
    ideal: Option<Ideal>,
}

/// What a figure would be by the number of hosts if nothing limited it.
enum Ideal {
    /// As many times more as there are more hosts.
    Grows(FewestHosts),
    /// All of what the fewest hosts do.
    Whole,
}

/// The role of each axis.
struct Arrangement {
    /// The horizontal axis.
    x: usize,
    /// A line or a bar for each of its values.
    lines: Option<usize>,
    /// A plot for each combination of theirs.
    panels: Vec<usize>,
}

/// All charts of results.
pub fn charts(document: &Document, results: &Results<'_>) -> Vec<Chart> {
    if results.spots.is_empty() {
        return Vec::new();
    }
    let arrangement = Arrangement::of(document, results);
    let figures = figures(document, results);
    let mut charts: Vec<Chart> =
        figures.iter().map(|figure| chart(document, results, &arrangement, figure)).collect();
    let wide = |axis: &usize| results.axes[*axis].labels.len() >= MATRIX;
    if let (true, Some(lines), []) =
        (wide(&arrangement.x), arrangement.lines.filter(wide), arrangement.panels.as_slice())
    {
        let of = |figure| matrix(document, results, arrangement.x, lines, figure);
        charts.extend(figures.iter().take(1).map(of));
    }
    charts
}

/// The mean and the largest response time, each in a matrix of two axes: the figures of a test of
/// times. None with more axes or fewer.
pub fn matrices_of_times(document: &Document, results: &Results<'_>) -> Vec<Chart> {
    let arrangement = Arrangement::of(document, results);
    let (Some(lines), []) = (arrangement.lines, arrangement.panels.as_slice()) else {
        return Vec::new();
    };
    let figure = |name: &str, words: &str, of: Reading| DrawnFigure {
        name: name.to_owned(),
        title: format!("Response time, {words}"),
        axis: format!("{words}, ms"),
        log: false,
        of: Box::new(move |spot| of(spot).map(milliseconds)),
        text: |ms| figures::time(ms * 1e6),
        ideal: None,
    };
    let exact = |value: f64| Estimate { value, half_width: None };
    let mean: Reading = Box::new(move |spot| spot.mean_and_max.map(|(mean, _)| exact(mean)));
    let max: Reading = Box::new(move |spot| spot.mean_and_max.map(|(_, max)| exact(max as f64)));
    [figure("mean", "mean", mean), figure("max", "maximum", max)]
        .iter()
        .map(|figure| matrix(document, results, arrangement.x, lines, figure))
        .collect()
}

impl Arrangement {
    /// The axis of numbers with the most values is the horizontal one, so that its line can be
    /// followed; if it is short, a longer axis of names. Targets are compared side by side.
    /// A study has the horizontal axis of its published figures, and the number of hosts is one.
    fn of(document: &Document, results: &Results<'_>) -> Self {
        let published = published_axis(document);
        let length = |axis: usize| results.axes[axis].labels.len();
        let all: Vec<usize> = (0..results.axes.len()).filter(|axis| length(*axis) > 1).collect();
        let is_targets = |axis: &usize| results.axes[*axis].name == TARGETS;
        // The first of several with the same length.
        let longest = |axes: &dyn Fn(&usize) -> bool| {
            all.iter().copied().filter(|axis| axes(axis)).rev().max_by_key(|axis| length(*axis))
        };
        let numbers = longest(&|axis| results.is_numeric(*axis));
        let names = longest(&|axis| !results.is_numeric(*axis) && !is_targets(axis));
        let x = match (numbers, names) {
            (Some(numbers), Some(names))
                if length(numbers) < A_LINE && length(numbers) < length(names) =>
            {
                names
            }
            (numbers, names) => numbers.or(names).or(all.first().copied()).unwrap_or(0),
        };
        let published =
            all.iter().copied().find(|axis| published == Some(&results.axes[*axis].name));
        let x = published.or(scaling::axis(results)).unwrap_or(x);
        let rest: Vec<usize> = all.into_iter().filter(|axis| *axis != x).collect();
        let lines = rest.iter().copied().find(is_targets).or(rest.first().copied());
        let panels = rest.into_iter().filter(|axis| Some(*axis) != lines).collect();
        Self { x, lines, panels }
    }
}

/// The study whose figures were published on an axis of their own, if this is one.
fn study(document: &Document) -> Option<&str> {
    let is_study = document.header.command == Command::Study;
    document.header.experiment.as_ref().filter(|_| is_study).map(|one| one.name.as_str())
}

/// The horizontal axis of a study's published figures, which have a line for each drive.
fn published_axis(document: &Document) -> Option<&'static str> {
    match study(document)? {
        // "Promise VTrak J300s", AnandTech, 2007: by I/Os in flight, a plot for each mix.
        "access-mix" => Some("queue-depth"),
        // Reviews of arrays show how the throughput follows the number of streams.
        "multi-stream" => Some("workers"),
        _ => None,
    }
}

fn figures(document: &Document, results: &Results<'_>) -> Vec<DrawnFigure> {
    let mut figures = Vec::new();
    // If all blocks are large and alike, readers want to know the bytes.
    if results.blocks_differ() || !results.is_about_bytes() {
        figures.push(DrawnFigure {
            name: "iops".to_owned(),
            title: "IOPS".to_owned(),
            axis: "I/Os per second".to_owned(),
            log: false,
            of: Box::new(|spot| spot.summary.iops),
            text: figures::significant,
            ideal: None,
        });
    }
    if results.is_about_bytes() {
        // Published figures are in MB/s.
        let (scale, unit) = match published_axis(document) {
            Some(_) => (1e-6, "MB/s"),
            None => (figures::mib(1.0), "MiB/s"),
        };
        let scaled = move |estimate: Estimate| Estimate {
            value: estimate.value * scale,
            half_width: estimate.half_width.map(|half| half * scale),
        };
        figures.push(DrawnFigure {
            name: "bandwidth".to_owned(),
            title: "Bandwidth".to_owned(),
            axis: unit.to_owned(),
            log: false,
            of: Box::new(move |spot| spot.summary.bandwidth.map(scaled)),
            text: figures::significant,
            ideal: None,
        });
    }
    if let Some(axis) = scaling::axis(results) {
        let efficiency = efficiency(results, axis, figures[0].name == "iops");
        for figure in &mut figures {
            figure.ideal = Some(Ideal::Grows(FewestHosts::of(results, axis, &figure.of)));
        }
        figures.push(efficiency);
    }
    for (nth, quantile) in QUANTILES.iter().enumerate().take(2) {
        figures.push(DrawnFigure {
            name: quantile.to_string().replace('.', "-"),
            title: format!("Response time, {quantile}"),
            axis: format!("{quantile}, ms{LOGARITHMIC}"),
            log: true,
            of: Box::new(move |spot| spot.summary.quantiles[nth].map(milliseconds)),
            text: |ms| figures::time(ms * 1e6),
            ideal: None,
        });
    }
    figures
}

/// What each host does, compared with each of the fewest hosts.
fn efficiency(results: &Results<'_>, axis: usize, in_ios: bool) -> DrawnFigure {
    let figure = move |spot: &Spot<'_>| match in_ios {
        true => spot.summary.iops,
        false => spot.summary.bandwidth,
    };
    let fewest = FewestHosts::of(results, axis, figure);
    let whose = match fewest.hosts() {
        Some(few) if few != 1.0 => format!("each of {few} does"),
        _ => "1 does alone".to_owned(),
    };
    DrawnFigure {
        name: "efficiency".to_owned(),
        title: "Efficiency".to_owned(),
        axis: format!("each host, % of what {whose}"),
        log: false,
        of: Box::new(move |spot| fewest.share(spot, figure(spot)?)),
        text: |share| format!("{share:.0} %"),
        ideal: Some(Ideal::Whole),
    }
}

fn milliseconds(estimate: Estimate) -> Estimate {
    Estimate { value: estimate.value / 1e6, half_width: estimate.half_width.map(|h| h / 1e6) }
}

/// All facts about a place, for a reader who points at it.
pub fn about(spot: &Spot<'_>) -> String {
    let mut lines = Vec::from([spot.name()]);
    let rate = |estimate: Option<Estimate>, unit: &str, value: fn(f64) -> f64| {
        let estimate = estimate?;
        let text = figures::significant(value(estimate.value));
        Some(format!("{text} {unit} {}", plus_minus(Some(&estimate))))
    };
    lines.extend(rate(spot.summary.iops, "IOPS", |value| value));
    lines.extend(rate(spot.summary.bandwidth, "MiB/s", figures::mib));
    for (quantile, estimate) in QUANTILES.iter().zip(&spot.summary.quantiles) {
        lines.extend(estimate.as_ref().map(|estimate| {
            let text = figures::time(estimate.value);
            format!("{quantile} {text} {}", plus_minus(Some(estimate)))
        }));
    }
    let numbers: Vec<String> = spot.trials.iter().map(|(number, _)| number.to_string()).collect();
    let trials = if numbers.len() == 1 { "trial" } else { "trials" };
    lines.push(format!("{trials} {}: {}", numbers.join(", "), spot.verdict.name()));
    lines.iter().map(|line| line.trim_end()).collect::<Vec<_>>().join("\n")
}

fn chart(
    document: &Document,
    results: &Results<'_>,
    arrangement: &Arrangement,
    figure: &DrawnFigure,
) -> Chart {
    let keys = |spot: &Spot<'_>| -> Vec<usize> {
        arrangement.panels.iter().map(|axis| spot.steps[*axis]).collect()
    };
    let mut panels: Vec<Vec<usize>> = results.spots.iter().map(keys).collect();
    panels.sort();
    panels.dedup();
    let all = panels.len();
    panels.truncate(PANELS);
    let range = (panels.len() > 1).then(|| common_range(results, figure)).flatten();
    let panel = |key: Vec<usize>| {
        let spots: Vec<&Spot<'_>> = results.spots.iter().filter(|spot| keys(spot) == key).collect();
        let title = arrangement.panels.iter().zip(&key).map(|(axis, step)| {
            let axis = &results.axes[*axis];
            format!("{} {}", axis.name, axis.labels[*step])
        });
        let title = title.collect::<Vec<_>>().join(", ");
        let lines = lines(results, arrangement, figure, &spots, range);
        Panel { title, plot: Plot::Lines(lines) }
    };
    let x = &results.axes[arrangement.x].name;
    let by =
        arrangement.lines.map_or(String::new(), |axis| format!(" and {}", results.axes[axis].name));
    let axis_title = match results.is_numeric(arrangement.x) {
        true => figure.axis.clone(),
        false => figure.axis.replace(LOGARITHMIC, ""),
    };
    let most = results.spots.iter().map(|spot| spot.counted).max().unwrap_or(1);
    let repeats = match most {
        0 | 1 => String::new(),
        most => format!(" Each value is that of up to {most} repeats together."),
    };
    let left_out = match all > PANELS {
        true => format!(" The first {PANELS} of {all} plots; the others are in the table."),
        false => String::new(),
    };
    Chart {
        name: figure.name.clone(),
        title: format!("{} by {x}{by}", figure.title),
        caption: format!("{axis_title}, {}. {BARS}{repeats}{left_out}", loops(document)),
        panels: panels.into_iter().map(panel).collect(),
        one_at_a_time: false,
    }
}

/// One range for all plots of a chart, so that they can be compared.
fn common_range(results: &Results<'_>, figure: &DrawnFigure) -> Option<(f64, f64)> {
    let values = results.spots.iter().filter_map(|spot| (figure.of)(spot));
    let ends = values.map(|estimate| {
        let half = estimate.half_width.unwrap_or(0.0).min(estimate.value);
        match figure.log {
            true => Axis::ends_of_ratio(estimate.value, half),
            false => (0.0, estimate.value + half),
        }
    });
    let (low, high) = ends.reduce(|one, two| (one.0.min(two.0), one.1.max(two.1)))?;
    match figure.log {
        true if low > 0.0 => Some((low / 1.3, high * 1.3)),
        true => None,
        false => Some((0.0, high * 1.05)),
    }
}

fn lines(
    results: &Results<'_>,
    arrangement: &Arrangement,
    figure: &DrawnFigure,
    spots: &[&Spot<'_>],
    range: Option<(f64, f64)>,
) -> Lines {
    let axis = &results.axes[arrangement.x];
    let numeric = results.is_numeric(arrangement.x);
    let scale = match (numeric, axis.scale) {
        (true, crate::document::Scale::Log2) => Scale::Log,
        _ => Scale::Linear,
    };
    let dot = |spot: &Spot<'_>| {
        let estimate = (figure.of)(spot);
        Dot {
            x: results.position(arrangement.x, spot),
            y: estimate.map(|estimate| estimate.value),
            half: estimate.and_then(|e| e.half_width.map(|half| half.min(e.value))),
            label: String::new(),
            about: about(spot),
        }
    };
    let labels = match arrangement.lines {
        Some(axis) => results.axes[axis].labels.clone(),
        None => Vec::from([String::new()]),
    };
    let by = arrangement.lines.map(|axis| results.axes[axis].name.as_str());
    let names = if by == Some(TARGETS) { short_names(&labels) } else { labels.clone() };
    let looks = looks(&names, arrangement.lines.is_some_and(|axis| results.is_numeric(axis)));
    let series = names.iter().enumerate().filter_map(|(nth, label)| {
        let own = spots
            .iter()
            .filter(|spot| arrangement.lines.is_none_or(|axis| spot.steps[axis] == nth));
        let dots: Vec<Dot> = own
            .filter(|spot| !numeric || !spot.is_void())
            .map(|spot| if numeric { dot(spot) } else { bar(dot(spot), spot) })
            .filter(|dot| dot.y.is_some())
            .collect();
        let name = match by {
            Some(TARGETS) => label.clone(),
            Some(axis) => format!("{axis} {label}"),
            None => String::new(),
        };
        let (paint, form) = looks[nth];
        let form = if numeric { form } else { Form::Bars };
        (!dots.is_empty()).then_some(Series { name, paint, form, dots })
    });
    let mut series: Vec<Series> = series.collect();
    let x_range = x_range(results, arrangement.x, scale);
    // Below everything else.
    series.splice(0..0, ideal(results, arrangement, (figure, range), spots, x_range));
    // With bars there are words instead.
    let doubted = spots.iter().filter(|spot| numeric && spot.verdict != Verdict::Sound);
    series.extend(marks(doubted.map(|spot| (spot.verdict, spot.is_void(), dot(spot)))));
    Lines {
        x: Axis {
            title: match scale {
                Scale::Log => format!("{}{LOGARITHMIC}", axis.name),
                _ => axis.name.clone(),
            },
            scale,
            ticks: results.ticks(arrangement.x),
            range: x_range,
        },
        y: y_axis(figure, numeric, range, &series),
        band: None,
        series,
    }
}

/// The lines of what would be ideal, over the range of the hosts; none for any other axis.
fn ideal(
    results: &Results<'_>,
    arrangement: &Arrangement,
    (figure, range): (&DrawnFigure, Option<(f64, f64)>),
    spots: &[&Spot<'_>],
    x_range: Option<(f64, f64)>,
) -> Vec<Series> {
    let hosts = results.spots.iter().map(|spot| results.position(arrangement.x, spot));
    let most = hosts.fold(0.0, f64::max);
    let values = spots.iter().filter_map(|spot| (figure.of)(spot)).map(|one| one.value);
    // Plots with a common range end there.
    let highest = range.map_or_else(|| values.fold(0.0, f64::max) * ABOVE, |(_, high)| high);
    match (&figure.ideal, x_range) {
        (Some(Ideal::Grows(fewest)), _) => fewest.ideal(spots, most, highest),
        (Some(Ideal::Whole), Some(range)) => Vec::from([scaling::whole(range)]),
        _ => Vec::new(),
    }
}

/// Over the range of all results, so that the plots of a chart are alike, with some room at the
/// ends.
fn x_range(results: &Results<'_>, x: usize, scale: Scale) -> Option<(f64, f64)> {
    if !results.is_numeric(x) {
        return Some((-0.6, results.axes[x].labels.len() as f64 - 0.4));
    }
    let values = results.spots.iter().map(|spot| results.position(x, spot));
    let ends = values.map(|value| (value, value));
    let (low, high) = ends.reduce(|one, two| (one.0.min(two.0), one.1.max(two.1)))?;
    match scale {
        Scale::Log => {
            let room = (high / low).powf(0.06).max(1.1);
            Some((low / room, high * room))
        }
        Scale::Linear | Scale::FromZero => {
            let room = ((high - low) * 0.06).max(high.abs() * 1e-3);
            Some((low - room, high + room))
        }
    }
}

/// A bar itself shows a doubt, and has no height if it does not count.
fn bar(dot: Dot, spot: &Spot<'_>) -> Dot {
    match spot.verdict {
        Verdict::Sound => dot,
        _ if spot.is_void() => Dot { y: Some(0.0), half: None, label: "void".to_owned(), ..dot },
        Verdict::Suspect | Verdict::Void => Dot { label: "suspect".to_owned(), ..dot },
    }
}

/// The vertical axis: by ratios if the figure needs it and no bar has to begin at zero.
fn y_axis(
    figure: &DrawnFigure,
    numeric: bool,
    range: Option<(f64, f64)>,
    series: &[Series],
) -> Axis {
    let title = figure.axis.clone();
    if figure.log && numeric {
        let axis = Axis::of_ratios(title, series);
        return match range {
            Some((low, high)) => {
                let ticks = super::labeled(super::log_ticks(low, high));
                Axis { range, ticks, ..axis }
            }
            None => axis,
        };
    }
    let title = title.replace(LOGARITHMIC, "");
    Axis { title, scale: Scale::FromZero, ticks: Vec::new(), range: range.filter(|_| !figure.log) }
}

/// The steps of an axis, in rising order if they are numbers, independent of their order on the
/// command line.
fn rising(results: &Results<'_>, axis: usize) -> Vec<usize> {
    let mut steps: Vec<usize> = (0..results.axes[axis].labels.len()).collect();
    if results.is_numeric(axis) {
        let value = |step: usize| {
            let spot = results.spots.iter().find(|spot| spot.steps[axis] == step);
            spot.map_or(f64::INFINITY, |spot| results.position(axis, spot))
        };
        steps.sort_by(|one, other| value(*one).total_cmp(&value(*other)));
    }
    steps
}

/// The figure in a matrix of two axes.
fn matrix(
    document: &Document,
    results: &Results<'_>,
    x: usize,
    y: usize,
    figure: &DrawnFigure,
) -> Chart {
    let (right, up) = (rising(results, x), rising(results, y));
    let cells = results.spots.iter().map(|spot| {
        let estimate = (figure.of)(spot).filter(|_| !spot.is_void());
        let mark = match spot.verdict {
            Verdict::Sound => "",
            Verdict::Suspect | Verdict::Void => " ?",
        };
        HeatCell {
            x: right.iter().position(|step| *step == spot.steps[x]).unwrap_or(0),
            y: up.iter().position(|step| *step == spot.steps[y]).unwrap_or(0),
            value: estimate.map(|estimate| estimate.value),
            cover: if spot.is_void() { Cover::Hatched } else { Cover::Plain },
            text: estimate
                .map(|estimate| format!("{}{mark}", (figure.text)(estimate.value)))
                .unwrap_or_default(),
            about: about(spot),
        }
    });
    let labels = |axis: usize, steps: &[usize]| -> Vec<String> {
        steps.iter().map(|step| results.axes[axis].labels[*step].clone()).collect()
    };
    let heat = Heat {
        x_title: results.axes[x].name.clone(),
        x: labels(x, &right),
        y_title: results.axes[y].name.clone(),
        y: labels(y, &up),
        cells: cells.collect(),
        title: figure.axis.clone(),
        log: false,
        written: true,
        write: figure.text,
        signs: Vec::new(),
        palette: Palette::Viridis,
        clip: None,
        contours: Vec::new(),
        limits: Vec::new(),
    };
    Chart::of_one(
        format!("{}-matrix", figure.name),
        format!("{}: {} and {}", figure.title, results.axes[x].name, results.axes[y].name),
        format!("{}, {}. Hatched: void. A question mark: suspect.", figure.axis, loops(document)),
        Plot::Heat(heat),
    )
}
