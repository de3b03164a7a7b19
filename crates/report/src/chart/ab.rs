//! The charts of two sides that alternate: the ratio of each pair in their order, and the distributions
//! of both sides over each other.

use fathom_core::measure::Histogram;
use fathom_core::{Quantile, stats};

use super::{
    Axis, Chart, Dot, Form, Lines, Paint, Plot, Scale, Series, Shape, labeled, linear_ticks, trial,
};
use crate::document::{AbFound, Document, Role, Trial, Verdict};
use crate::figures::{self, TrialPart};
use crate::results::{Results, Spot};

/// The ratios that are drawn: throughput, the middle and the tail.
const TIMES: [Quantile; 2] = [Quantile(0.5), Quantile(0.99)];

/// Both charts; none before there is a trial of each side.
pub fn charts(document: &Document, found: &AbFound) -> Vec<Chart> {
    let results = Results::of(document, &[Role::Result]);
    let [a, b] = results.spots.as_slice() else { return Vec::new() };
    let time = figures::time_name(TrialPart::whole(a.first()));
    Vec::from([
        chart(
            "ratios",
            "B/A of each pair".to_owned(),
            format!(
                "Each pair has one ratio. Dashed lines: no difference, and the margin of {}.",
                figures::percent(found.margin)
            ),
            ratios(found, a, b),
        ),
        chart(
            "distributions",
            format!("Distribution of the {time} on both sides"),
            "All trials of a side together. Each further nine of the percentile (90, 99, 99.9 %) has the same width.".to_owned(),
            overlaid([("A", a), ("B", b)].map(|(name, spot)| (name.to_owned(), times(spot)))),
        ),
    ])
}

fn chart(name: &str, title: String, caption: String, lines: Lines) -> Chart {
    Chart::of_one(name, title, caption, Plot::Lines(lines))
}

/// The response times of all trials of a side that count.
fn times(spot: &Spot<'_>) -> Histogram {
    let mut sum = Histogram::default();
    for trial in spot.counted_trials() {
        sum.merge(trial.total(None).response_time());
    }
    sum
}

/// Distributions over each other, each with its name.
fn overlaid(sides: impl IntoIterator<Item = (String, Histogram)>) -> Lines {
    let series = sides.into_iter().enumerate().map(|(nth, (name, times))| Series {
        name,
        paint: Paint::Nth(nth),
        form: Form::Line { dashed: false },
        dots: trial::nines(&times),
    });
    trial::on_nines(series.collect())
}

/// The ratio of each pair, in their order.
fn ratios(found: &AbFound, a: &Spot<'_>, b: &Spot<'_>) -> Lines {
    let pairs: Vec<[&Trial; 2]> = a
        .trials
        .iter()
        .filter_map(|(_, one)| {
            let partner = b.trials.iter().find(|(_, two)| two.place.repeat == one.place.repeat)?;
            Some([*one, partner.1])
        })
        .collect();
    let line = |name: String, nth: usize, of: &dyn Fn(&Trial) -> Option<f64>| Series {
        name,
        paint: Paint::Nth(nth),
        form: Form::Dotted(Shape::nth(nth)),
        dots: pairs.iter().filter_map(|pair| ratio(*pair, of)).collect(),
    };
    let mut series = Vec::from([line("IOPS".to_owned(), 0, &iops)]);
    for (nth, quantile) in (1..).zip(TIMES) {
        series.push(line(quantile.to_string(), nth, &|trial| at(trial, quantile)));
    }
    series.retain(|one| !one.dots.is_empty());
    let last = pairs.iter().map(|[one, _]| number(one)).fold(2.0, f64::max);
    let margin = 1.0 + found.margin;
    for (name, level) in [("", 1.0 / margin), ("", 1.0), ("margin", margin)] {
        let dot = |x: f64| Dot::plain(x, Some(level), "");
        series.push(Series {
            name: name.to_owned(),
            paint: if level == 1.0 { Paint::Ink } else { Paint::Muted },
            form: Form::Line { dashed: true },
            dots: Vec::from([dot(1.0), dot(last)]),
        });
    }
    let whole = |at: &f64| at.fract() == 0.0;
    let x = Axis {
        title: "pair".to_owned(),
        scale: Scale::Linear,
        ticks: labeled(linear_ticks(1.0, last, 6).into_iter().filter(whole).collect()),
        range: Some((0.5, last + 0.5)),
    };
    let y = Axis::of_ratios("B/A (logarithmic)".to_owned(), &series);
    Lines { x, y, band: None, series }
}

/// The number of a trial's pair, from 1.
fn number(trial: &Trial) -> f64 {
    f64::from(trial.place.repeat) + 1.0
}

fn ratio([a, b]: [&Trial; 2], of: &dyn Fn(&Trial) -> Option<f64>) -> Option<Dot> {
    let (one, two) = (of(a)?, of(b)?);
    let ratio = two / one;
    let void = [a, b].iter().any(|trial| trial.verdict == Verdict::Void);
    let mark = if void { ", void" } else { "" };
    let about = format!(
        "pair {}{mark}, from {}: {ratio:.3}",
        number(a),
        figures::moment(&a.started.clone().min(b.started.clone()))
    );
    ratio.is_finite().then(|| Dot::plain(number(a), Some(ratio), about))
}

fn iops(trial: &Trial) -> Option<f64> {
    figures::per_second(trial.total(None).ios(), trial.window()).filter(|rate| 0.0 < *rate)
}

fn at(trial: &Trial, quantile: Quantile) -> Option<f64> {
    let flow = trial.total(None);
    let times = flow.response_time();
    times.quantile(quantile).filter(|_| stats::carries(times, quantile)).map(|ns| ns as f64)
}
