//! The charts' figures, in the terms of plotly. Colors are names of the page's own ("@read"), which
//! the page's script replaces, so that they follow light, dark and paper.

use std::collections::BTreeMap;

use fathom_core::measure::{Direction, Histogram};
use fathom_core::{Quantile, Span, stats};
use serde_json::{Value, json};

use crate::document::{Document, Trial};
use crate::figures;

/// The percentiles that are drawn over time, with their colors.
const OVER_TIME: [(Quantile, &str); 3] =
    [(Quantile(0.5), "@low"), (Quantile(0.95), "@middle"), (Quantile(0.99), "@high")];

/// Percentiles of the overview, with their colors.
const OVERVIEW: [(Quantile, &str); 3] =
    [(Quantile(0.5), "@low"), (Quantile(0.99), "@middle"), (Quantile(0.999), "@high")];

/// More points than this blur into each other: neighboring intervals are merged.
const POINTS: usize = 120;

/// A stretch of the window, as one point of a line.
#[derive(Default)]
struct Stretch {
    start: Span,
    length: Span,
    ios: [u64; 2],
    failed: u64,
    response_time: Histogram,
}

/// The series in at most so many stretches as a chart can show, all streams together.
fn stretches(trial: &Trial) -> Vec<Stretch> {
    let series = trial.series();
    let mut lengths: BTreeMap<Span, Span> = BTreeMap::new();
    for interval in &series {
        let length = lengths.entry(interval.start).or_default();
        *length = (*length).max(interval.length);
    }
    let group = lengths.len().div_ceil(POINTS).max(1);
    let mut stretches: Vec<Stretch> = Vec::new();
    let mut place_of: BTreeMap<Span, usize> = BTreeMap::new();
    for (place, (&start, &length)) in lengths.iter().enumerate() {
        if place % group == 0 {
            stretches.push(Stretch { start, ..Stretch::default() });
        }
        stretches[place / group].length += length;
        place_of.insert(start, place / group);
    }
    for interval in &series {
        let stretch = &mut stretches[place_of[&interval.start]];
        stretch.failed += interval.failed;
        for (ios, times) in stretch.ios.iter_mut().zip(&interval.response_time) {
            *ios += times.count();
            stretch.response_time.merge_sparse(times);
        }
    }
    // The rates of a short rest, as an interrupted run has, are noise.
    stretches.retain(|stretch| stretch.length.0 > 0);
    let usual = stats::usual_length(stretches.iter().map(|stretch| stretch.length));
    if stretches.last().is_some_and(|last| last.length.0 < usual.0 / 2) {
        stretches.pop();
    }
    stretches
}

/// All figures of a document: each with the id of the element that it goes into.
pub fn figures(document: &Document) -> Value {
    let mut all = Vec::new();
    if document.trials.len() > 1 {
        all.push(overview(&document.trials));
    }
    for (place, trial) in document.trials.iter().enumerate() {
        let number = place + 1;
        all.push(rates(trial, &format!("rates-{number}")));
        all.push(times(trial, &format!("times-{number}")));
        all.push(distribution(trial, &format!("distribution-{number}")));
    }
    Value::Array(all)
}

/// Text as plotly shows it: it takes markup for markup.
fn plain(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// For every step its IOPS as a bar, and its percentiles as dots.
fn overview(trials: &[Trial]) -> Value {
    let quantiles = OVERVIEW.map(|(quantile, _)| quantile);
    let summaries: Vec<_> =
        trials.iter().map(|trial| figures::summary(trial, None, &quantiles)).collect();
    let names: Vec<String> = trials
        .iter()
        .enumerate()
        .map(|(place, trial)| {
            let (what, pace) = figures::names(trial);
            format!("{} {}<br>{}", place + 1, plain(&what), plain(&pace))
        })
        .collect();
    let iops: Vec<Option<f64>> = summaries.iter().map(|s| s.iops.map(|e| e.value)).collect();
    // At most the value itself, as in the tables: a longer bar would only squeeze all others.
    let halves: Vec<Option<f64>> = summaries
        .iter()
        .map(|s| s.iops.and_then(|e| e.half_width.map(|half| half.min(e.value))))
        .collect();
    let mut data = vec![json!({
        "type": "bar", "orientation": "h", "x": iops, "y": names, "name": "IOPS",
        "marker": {"color": "@read"},
        "error_x": {"type": "data", "array": halves, "color": "@total", "thickness": 1.5},
        "hovertemplate": "%{x:,.0f} IOPS<extra></extra>", "showlegend": false,
    })];
    for (place, (quantile, color)) in OVERVIEW.into_iter().enumerate() {
        let ms: Vec<Option<f64>> =
            summaries.iter().map(|s| s.quantiles[place].map(|e| e.value / 1e6)).collect();
        data.push(json!({
            "type": "scatter", "mode": "markers", "x": ms, "y": names, "xaxis": "x2",
            "name": quantile.to_string(), "marker": {"color": color, "size": 11},
            "hovertemplate": format!("{quantile} %{{x:.3~g}} ms<extra></extra>"),
        }));
    }
    let height = 90 + 46 * trials.len();
    json!({"id": "overview", "data": data, "layout": {
        "height": height,
        "yaxis": {"autorange": "reversed", "ticklabelstandoff": 6},
        "xaxis": {"domain": [0.0, 0.46], "title": {"text": "IOPS"}, "rangemode": "tozero"},
        "xaxis2": {"domain": [0.52, 1.0], "title": {"text": "response time, ms (logarithmic)"},
            "type": "log", "anchor": "y", "dtick": "D2"},
        "legend": {"orientation": "h", "x": 0.52, "y": 1.02, "yanchor": "bottom"}, "bargap": 0.35,
    }})
}

/// The color of a direction.
fn color(direction: Option<Direction>) -> &'static str {
    match direction {
        Some(Direction::Read) => "@read",
        Some(Direction::Write) => "@write",
        None => "@total",
    }
}

fn seconds(start: Span, length: Span) -> f64 {
    // The middle of the interval, to the microsecond.
    let middle = start.0 as f64 + length.0 as f64 / 2.0;
    (middle / 1e3).round() / 1e6
}

/// IOPS over time.
fn rates(trial: &Trial, id: &str) -> Value {
    let stretches = stretches(trial);
    let x: Vec<f64> = stretches.iter().map(|s| seconds(s.start, s.length)).collect();
    let rate = |of: &dyn Fn(&Stretch) -> u64| -> Vec<Option<f64>> {
        let rates = stretches.iter().map(|s| figures::per_second(of(s), s.length));
        rates.map(|rate| rate.map(|rate| (rate * 10.0).round() / 10.0)).collect()
    };
    let lines = figures::columns(trial).into_iter().map(|direction| {
        let y = rate(&|stretch| match direction {
            Some(direction) => stretch.ios[direction as usize],
            None => stretch.ios.iter().sum(),
        });
        json!({
            "type": "scatter", "mode": "lines", "x": x, "y": y,
            "name": figures::direction_name(direction),
            "line": {"color": color(direction), "width": 2},
            "hovertemplate": "%{y:,.0f} IOPS at %{x:.1f} s",
        })
    });
    let mut data: Vec<Value> = lines.collect();
    if stretches.iter().any(|stretch| stretch.failed > 0) {
        data.push(json!({
            "type": "scatter", "mode": "lines", "x": x, "y": rate(&|s| s.failed),
            "name": "failed", "line": {"color": "@void", "width": 2, "dash": "dot"},
            "hovertemplate": "%{y:,.0f} failed in a second, at %{x:.1f} s",
        }));
    }
    json!({"id": id, "data": data, "layout": {
        "xaxis": {"title": {"text": "seconds"}, "rangemode": "tozero"},
        "yaxis": {"title": {"text": "IOPS"}, "rangemode": "tozero"},
    }})
}

/// Percentiles of the response time over time.
fn times(trial: &Trial, id: &str) -> Value {
    let stretches = stretches(trial);
    let x: Vec<f64> = stretches.iter().map(|s| seconds(s.start, s.length)).collect();
    let ms = |ns: u64| ns as f64 / 1e6;
    let mut data: Vec<Value> = Vec::new();
    for (quantile, color) in OVER_TIME {
        let at = |s: &Stretch| figures::carried(&s.response_time, quantile).map(ms);
        let y: Vec<Option<f64>> = stretches.iter().map(at).collect();
        if y.iter().any(Option::is_some) {
            data.push(line(&x, &y, &quantile.to_string(), color));
        }
    }
    let most: Vec<Option<f64>> = stretches.iter().map(|s| s.response_time.max().map(ms)).collect();
    data.push(line(&x, &most, "max", "@top"));
    json!({"id": id, "data": data, "layout": {
        "xaxis": {"title": {"text": "seconds"}, "rangemode": "tozero"},
        "yaxis": {"title": {"text": "ms (logarithmic)"}, "type": "log", "dtick": "D2"},
    }})
}

fn line(x: &[f64], y: &[Option<f64>], name: &str, color: &str) -> Value {
    json!({
        "type": "scatter", "mode": "lines", "x": x, "y": y, "name": name,
        "line": {"color": color, "width": 2},
        "hovertemplate": "%{y:.3~g} ms at %{x:.1f} s",
    })
}

/// Every percentile that the samples carry, on an axis on which each nine has the same width.
fn distribution(trial: &Trial, id: &str) -> Value {
    let mut data = Vec::new();
    let mut last: f64 = 2.0;
    for direction in figures::directions(trial) {
        let flow = trial.total(Some(direction));
        let name = direction.name();
        let mut add = |times: &Histogram, name: String, dash: &str| {
            let (x, y) = nines(times);
            last = x.last().copied().unwrap_or(0.0).max(last);
            data.push(json!({
                "type": "scatter", "mode": "lines", "x": x, "y": y, "name": name,
                "line": {"color": color(Some(direction)), "width": 2, "dash": dash},
                "hovertemplate": "%{y:.3~g} ms",
            }));
        };
        match &flow.response_time {
            Some(response_time) => {
                add(response_time, format!("{name}, response"), "solid");
                add(&flow.service_time, format!("{name}, service"), "dot");
            }
            None => add(&flow.service_time, name.to_owned(), "solid"),
        }
    }
    let ticks: Vec<u32> = (0..=last.ceil() as u32).collect();
    let labels: Vec<String> = ticks
        .iter()
        .map(|&nines| match nines {
            0 => "0 %".to_owned(),
            1 => "90 %".to_owned(),
            2 => "99 %".to_owned(),
            n => format!("99.{} %", "9".repeat(n as usize - 2)),
        })
        .collect();
    json!({"id": id, "data": data, "layout": {
        "xaxis": {"title": {"text": "share of I/Os that were at least as fast"},
            "tickvals": ticks, "ticktext": labels, "range": [0.0, last + 0.1]},
        "yaxis": {"title": {"text": "ms (logarithmic)"}, "type": "log", "dtick": "D2"},
    }})
}

/// Points of the distribution: nines, and milliseconds.
fn nines(times: &Histogram) -> (Vec<f64>, Vec<f64>) {
    (1..=180)
        .map(|step| f64::from(step) / 20.0)
        .filter_map(|nines| {
            let quantile = Quantile(1.0 - 10f64.powf(-nines));
            figures::carried(times, quantile).map(|ns| (nines, ns as f64 / 1e6))
        })
        .unzip()
}
