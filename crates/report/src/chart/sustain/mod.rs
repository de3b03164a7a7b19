//! The charts of rounds until a steady state: every round, the figures that decide the steadiness,
//! and the subject of the test: the other points of its rounds, or the points that came after them.

mod cells;
mod script;

use fathom_core::experiment::ROUND;
use fathom_core::stats;

use super::{Axis, BARS, Chart, Dot, Form, Lines, Paint, Panel, Plot, Scale, Series, Shape, loops};
use crate::document::{Document, Role, Round, SteadyState, SustainFound, Trial};
use crate::figures;
use crate::results::{QUANTILES, Results};

/// All charts of a test, its subject first.
pub fn charts(document: &Document, found: &SustainFound) -> Vec<Chart> {
    let mut charts = script::charts(document, found);
    if found.rounds.is_empty() {
        return charts;
    }
    charts.extend(cells::of_the_last_rounds(document, found));
    charts.push(all(document, found));
    if let (Some(steadiness), [_, _, ..]) = (&found.steadiness, window(found)) {
        charts.push(closely(document, found, steadiness));
    }
    charts.push(cells::by_round(document, found));
    charts
}

/// The watched figure, in its usual unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Watched {
    /// I/Os per second.
    Iops,
    /// MiB per second, from bytes per second.
    Bandwidth,
    /// Milliseconds, from nanoseconds.
    Time,
}

impl Watched {
    /// The figure that decides for these rounds: their own words begin with it.
    pub fn of(found: &SustainFound) -> Self {
        match found.watched.split_whitespace().next() {
            None | Some("IOPS") => Self::Iops,
            Some("bandwidth") => Self::Bandwidth,
            // The mean of the response time, or a quantile of it.
            Some(_) => Self::Time,
        }
    }

    /// A value in the unit of the chart.
    fn read(self, value: f64) -> f64 {
        match self {
            Self::Iops => value,
            Self::Bandwidth => figures::mib(value),
            Self::Time => value / 1e6,
        }
    }

    /// The title of its axis.
    fn title(self) -> &'static str {
        match self {
            Self::Iops => "IOPS",
            Self::Bandwidth => "MiB/s",
            Self::Time => "ms",
        }
    }

    /// The title of its column, whose values have their units.
    pub fn head(self) -> &'static str {
        match self {
            Self::Iops => "IOPS",
            Self::Bandwidth => "bandwidth",
            Self::Time => "time",
        }
    }

    /// A value with its unit if the title does not say it: "4,200", "812 MiB/s", "1.20 ms".
    pub fn text(self, value: f64) -> String {
        match self {
            Self::Iops => figures::significant(value),
            Self::Bandwidth => format!("{} MiB/s", figures::significant(figures::mib(value))),
            Self::Time => figures::time(value),
        }
    }
}

/// The results of a test beside the watched figure, for its tables: the points after the rounds, or
/// all points of the last rounds; none if there are no others.
pub fn beside<'d>(document: &'d Document, found: &SustainFound) -> Option<Results<'d>> {
    let results = match script::is_one(found) {
        true => Results::of_those(document, is_after_rounds),
        false => cells::of_the_window(document, found),
    };
    (results.spots.len() > 1).then_some(results)
}

/// The heading of the table from [`beside`].
pub fn beside_in_words(found: &SustainFound) -> String {
    match (script::is_one(found), window(found)) {
        (false, [first, .., last]) => {
            format!("All points in rounds {} to {} together", first.number, last.number)
        }
        (false, _) => "All points".to_owned(),
        (true, []) => "The phases".to_owned(),
        (true, _) => "After the rounds".to_owned(),
    }
}

/// Whether a trial comes after the rounds of a test; used for tests that have such trials.
fn is_after_rounds(trial: &Trial) -> bool {
    let coordinates = &trial.place.coordinates;
    trial.place.role == Role::Result && coordinates.iter().all(|one| one.axis != ROUND)
}

fn all(document: &Document, found: &SustainFound) -> Chart {
    let band = level_from(found).map(|from| {
        let last = found.rounds.last().map_or(from, |round| round.number);
        (f64::from(from) - 0.5, f64::from(last) + 0.5)
    });
    let steady = match band {
        Some(_) => "The steady state is shaded.",
        None => "No steady state was found.",
    };
    Chart {
        name: "rounds".to_owned(),
        title: figures::capitalized(&format!("{} by round", found.watched)),
        caption: format!("{}, {}. {BARS} {steady}", Watched::of(found).title(), loops(document)),
        panels: panel(Lines {
            x: x_axis(&found.rounds),
            y: y_axis(found, Scale::FromZero),
            band,
            series: Vec::from([series_of(found, &found.rounds)]),
        }),
        one_at_a_time: false,
    }
}

/// The last rounds, on an axis that shows their differences.
fn closely(document: &Document, found: &SustainFound, steadiness: &SteadyState) -> Chart {
    let window = window(found);
    let ends = (f64::from(window[0].number), f64::from(window[window.len() - 1].number));
    let mut series = judgement(found, steadiness, window, ends);
    series.push(series_of(found, window));
    let values = series.iter().flat_map(|one| &one.dots).filter_map(|dot| {
        let half = dot.half.unwrap_or(0.0);
        dot.y.map(|y| (y - half, y + half))
    });
    let range = values.reduce(|one, two| (one.0.min(two.0), one.1.max(two.1)));
    let room = range.map_or(0.0, |(low, high)| (high - low) * 0.08);
    let range = range.map(|(low, high)| ((low - room).max(0.0), high + room));
    Chart {
        name: "window".to_owned(),
        title: "The rounds that steadiness is judged by".to_owned(),
        caption: format!(
            "{}: {}, {}; the axis does not begin at zero. {BARS} Rounds are steady if the highest and \
             the lowest are at most 20 % of the mean apart, as the two limits are, and if the best fit \
             rises or falls by at most 10 % of the mean.",
            figures::capitalized(&found.watched),
            Watched::of(found).title(),
            loops(document)
        ),
        panels: panel(Lines {
            x: x_axis(window),
            y: Axis { range, ..y_axis(found, Scale::Linear) },
            band: None,
            series,
        }),
        one_at_a_time: false,
    }
}

fn panel(lines: Lines) -> Vec<Panel> {
    Vec::from([Panel { title: String::new(), plot: Plot::Lines(lines) }])
}

fn x_axis(rounds: &[Round]) -> Axis {
    Axis {
        title: "round".to_owned(),
        scale: Scale::Linear,
        ticks: ticks(rounds),
        range: ends(rounds),
    }
}

fn y_axis(found: &SustainFound, scale: Scale) -> Axis {
    let title = Watched::of(found).title().to_owned();
    Axis::plain(title, scale)
}

fn series_of(found: &SustainFound, rounds: &[Round]) -> Series {
    let watched = Watched::of(found);
    let dots = rounds.iter().map(|round| Dot {
        x: f64::from(round.number),
        y: Some(watched.read(round.value.value)),
        half: round.value.half_width.map(|half| watched.read(half.min(round.value.value))),
        label: String::new(),
        about: format!(
            "round {}\n{}\n{} {}",
            round.number,
            found.watched,
            watched.text(round.value.value),
            figures::plus_minus(Some(&round.value))
        ),
    });
    let form = Form::Dotted(Shape::Circle);
    Series { name: "rounds".to_owned(), paint: Paint::Nth(0), form, dots: dots.collect() }
}

/// The first round from which on all are steady: those that decide it, and those before them on the
/// same level.
pub fn level_from(found: &SustainFound) -> Option<u32> {
    found.level_from.or(found.steady_from)
}

/// The rounds that decide the steadiness.
pub fn window(found: &SustainFound) -> &[Round] {
    let from = found.rounds.len().saturating_sub(stats::ROUNDS);
    let steady = found
        .steady_from
        .and_then(|from| found.rounds.iter().position(|round| round.number == from));
    &found.rounds[steady.unwrap_or(from)..]
}

fn judgement(
    found: &SustainFound,
    steadiness: &SteadyState,
    window: &[Round],
    ends: (f64, f64),
) -> Vec<Series> {
    let watched = Watched::of(found);
    let values: Vec<f64> = window.iter().map(|round| round.value.value).collect();
    let lowest = values.iter().copied().fold(f64::INFINITY, f64::min);
    let highest = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let line = |name: &str, from: f64, to: f64, paint, dashed| {
        let dot = |x, y: f64| {
            Dot::plain(x, Some(watched.read(y)), format!("{name}\n{}", watched.text(y)))
        };
        let dots = Vec::from([dot(ends.0, from), dot(ends.1, to)]);
        Series { name: name.to_owned(), paint, form: Form::Line { dashed }, dots }
    };
    let (under, over) = (steadiness.mean * 0.9, steadiness.mean * 1.1);
    let mut lines = Vec::from([
        line("limits, 20 % apart", under, under, Paint::Suspect, true),
        line("", over, over, Paint::Suspect, true),
        line("smallest and largest", lowest, lowest, Paint::Muted, true),
        line("", highest, highest, Paint::Muted, true),
        line("mean", steadiness.mean, steadiness.mean, Paint::Ink, false),
    ]);
    if let Some(trend) = stats::linear_trend(&values) {
        lines.push(line("best fit", trend.first, trend.last, Paint::Found, false));
    }
    lines
}

/// A label at every round, or at every n-th.
fn ticks(rounds: &[Round]) -> Vec<(f64, String)> {
    let each = rounds.len().div_ceil(20).max(1);
    let shown = rounds.iter().step_by(each);
    shown.map(|round| (f64::from(round.number), round.number.to_string())).collect()
}

fn ends(rounds: &[Round]) -> Option<(f64, f64)> {
    let (first, last) = (rounds.first()?, rounds.last()?);
    Some((f64::from(first.number) - 0.6, f64::from(last.number) + 0.6))
}

/// All facts about a trial, for a reader who points at it.
fn about_trial(trial: &Trial) -> String {
    let summary = figures::summary(trial, None, &QUANTILES);
    let mut lines = Vec::from([trial.point.name.clone()]);
    lines.extend(summary.iops.map(|estimate| {
        format!(
            "{} IOPS {}",
            figures::significant(estimate.value),
            figures::plus_minus(Some(&estimate))
        )
    }));
    lines.extend(summary.bandwidth.map(|estimate| {
        let mib = figures::significant(figures::mib(estimate.value));
        format!("{mib} MiB/s {}", figures::plus_minus(Some(&estimate)))
    }));
    for (quantile, estimate) in QUANTILES.iter().zip(&summary.quantiles) {
        lines.extend(estimate.map(|estimate| {
            let half = figures::plus_minus(Some(&estimate));
            format!("{quantile} {} {half}", figures::time(estimate.value))
        }));
    }
    lines.push(trial.verdict.name().to_owned());
    lines.iter().map(|line| line.trim_end()).collect::<Vec<_>>().join("\n")
}
