//! The points of a round with several points: the approach of each to its level, and all of them in
//! the rounds that count. And the response times of rounds with one point.

use fathom_core::Quantile;

use super::{ROUND, Watched, about_trial, ends, panel, ticks, window};
use crate::chart::looks::looks;
use crate::chart::{
    Axis, BARS, Chart, Dot, Form, Lines, Paint, Scale, Series, Shape, loops, sweep,
};
use crate::document::{Coordinate, Document, Role, SustainFound, Trial};
use crate::figures;
use crate::results::{QUANTILES, Results};

/// With more points in a round than this, not all are drawn round by round: only those with as many
/// reads as the watched one.
const LINES: usize = 9;

/// With fewer results than this, there is only the table.
const WORTH_A_CHART: usize = 4;

/// All points of the last rounds, if there are several.
pub fn of_the_last_rounds(document: &Document, found: &SustainFound) -> Vec<Chart> {
    let results = of_the_window(document, found);
    if results.spots.len() < WORTH_A_CHART {
        return Vec::new();
    }
    let mut charts = sweep::charts(document, &results);
    if Watched::of(found) == Watched::Time {
        // A test of times is about times.
        charts.retain(|chart| chart.name != "bandwidth");
        charts.sort_by_key(|chart| !chart.name.starts_with('p'));
        charts.splice(0..0, sweep::matrices_of_times(document, &results));
    }
    charts
}

/// The course of the rounds beside the watched figure: all their points, or the times of the I/Os
/// of the only one.
pub fn by_round(document: &Document, found: &SustainFound) -> Chart {
    let trials: Vec<&Trial> =
        document.trials.iter().filter(|trial| is_of_a_round(trial, found)).collect();
    match trials.iter().any(|trial| is_alone(trial)) {
        true => times(document, found, &trials),
        false => convergence(document, found, &trials),
    }
}

/// All points of the rounds that decide the steadiness, each over these rounds together.
pub fn of_the_window<'d>(document: &'d Document, found: &SustainFound) -> Results<'d> {
    let numbers: Vec<u32> = window(found).iter().map(|round| round.number).collect();
    Results::of_those(document, |trial| {
        is_of_a_round(trial, found) && !is_alone(trial) && numbers.contains(&number(trial))
    })
}

/// The round of a trial that is part of one.
fn number(trial: &Trial) -> u32 {
    trial.place.repeat.saturating_add(1)
}

/// Whether a trial belongs to a round that was finished. Used for tests that do nothing after the
/// rounds, or whose rounds have one point.
fn is_of_a_round(trial: &Trial, found: &SustainFound) -> bool {
    let after = super::script::is_one(found) && !is_alone(trial);
    let is_known = found.rounds.iter().any(|round| round.number == number(trial));
    trial.place.role == Role::Result && !after && is_known
}

/// Whether its round has no other point.
fn is_alone(trial: &Trial) -> bool {
    trial.place.coordinates.iter().any(|one| one.axis == ROUND)
}

/// How long the I/Os of each round took.
fn times(document: &Document, found: &SustainFound, trials: &[&Trial]) -> Chart {
    let line = |(nth, quantile): (usize, &Quantile)| {
        let dots = trials.iter().map(|trial| {
            let estimate = figures::summary(trial, None, &[*quantile]).quantiles[0];
            Dot {
                x: f64::from(number(trial)),
                y: estimate.map(|estimate| estimate.value / 1e6),
                half: estimate
                    .and_then(|e| e.half_width.map(|half| half.min(e.value * 0.99) / 1e6)),
                label: String::new(),
                about: about_trial(trial),
            }
        });
        let form = Form::Dotted(Shape::nth(nth));
        Series { name: quantile.to_string(), paint: Paint::Nth(nth), form, dots: dots.collect() }
    };
    let series: Vec<Series> = QUANTILES.iter().enumerate().map(line).collect();
    Chart {
        name: "times".to_owned(),
        title: "Response time by round".to_owned(),
        caption: format!(
            "Percentiles of the response time in ms, on a logarithmic scale, {}. {BARS}",
            loops(document)
        ),
        panels: panel(Lines {
            x: x_axis(found),
            y: Axis::of_ratios("response time, ms (logarithmic)".to_owned(), &series),
            band: None,
            series,
        }),
        one_at_a_time: false,
    }
}

fn x_axis(found: &SustainFound) -> Axis {
    Axis {
        title: ROUND.to_owned(),
        scale: Scale::Linear,
        ticks: ticks(&found.rounds),
        range: ends(&found.rounds),
    }
}

/// The watched figure, also for the other points, round by round.
fn convergence(document: &Document, found: &SustainFound, trials: &[&Trial]) -> Chart {
    let watched = Watched::of(found);
    let mut cells: Vec<(&[Coordinate], Vec<&Trial>)> = Vec::new();
    for trial in trials {
        let place = trial.place.coordinates.as_slice();
        match cells.iter_mut().find(|(known, _)| *known == place) {
            Some((_, own)) => own.push(*trial),
            None => cells.push((place, Vec::from([*trial]))),
        }
    }
    let all = cells.len();
    let is_a_write = |(place, _): &(&[Coordinate], Vec<&Trial>)| {
        place.iter().any(|one| one.axis == "read-share" && one.value == Some(0.0))
    };
    if LINES < all && cells.iter().any(is_a_write) {
        cells.retain(is_a_write);
    }
    let left_out = match all - cells.len() {
        0 => String::new(),
        _ => " The points that only write; the others are in the table.".to_owned(),
    };
    let quantile = found.watched.split_whitespace().next().and_then(quantile_of);
    let names: Vec<String> = cells
        .iter()
        .map(|(place, _)| {
            let name = place.iter().map(|one| format!("{} {}", one.axis, one.label));
            name.collect::<Vec<_>>().join(", ")
        })
        .collect();
    let looks = looks(&names, false);
    let line = |(nth, (_, trials)): (usize, &(&[Coordinate], Vec<&Trial>))| {
        let dots = trials.iter().map(|trial| {
            Dot::plain(
                f64::from(number(trial)),
                value(trial, watched, quantile),
                about_trial(trial),
            )
        });
        let (paint, form) = looks[nth];
        Series { name: names[nth].clone(), paint, form, dots: dots.collect() }
    };
    let series: Vec<Series> = cells.iter().enumerate().map(line).collect();
    let what = match watched {
        Watched::Iops => "I/Os per second (logarithmic)".to_owned(),
        Watched::Bandwidth => "MiB/s (logarithmic)".to_owned(),
        Watched::Time => match quantile {
            Some(quantile) => format!("{quantile} of the response time, ms (logarithmic)"),
            None => "mean response time, ms (logarithmic)".to_owned(),
        },
    };
    Chart {
        name: "convergence".to_owned(),
        title: "Every point by round".to_owned(),
        caption: format!("{what}, {}.{left_out}", loops(document)),
        panels: panel(Lines {
            x: x_axis(found),
            y: Axis::of_ratios(what, &series),
            band: None,
            series,
        }),
        one_at_a_time: false,
    }
}

/// "p99" as a quantile.
fn quantile_of(word: &str) -> Option<Quantile> {
    let percent: f64 = word.strip_prefix('p')?.parse().ok()?;
    (0.0..100.0).contains(&percent).then_some(Quantile(percent / 100.0))
}

/// The watched figure of a trial.
fn value(trial: &Trial, watched: Watched, quantile: Option<Quantile>) -> Option<f64> {
    let value = match (watched, quantile) {
        (Watched::Iops, _) => figures::per_second(trial.total(None).ios(), trial.window())?,
        (Watched::Bandwidth, _) => figures::per_second(trial.total(None).bytes.0, trial.window())?,
        (Watched::Time, None) => trial.total(None).response_time().mean()?,
        (Watched::Time, Some(quantile)) => {
            figures::carried(trial.total(None).response_time(), quantile)? as f64
        }
    };
    Some(watched.read(value)).filter(|value| *value > 0.0)
}
