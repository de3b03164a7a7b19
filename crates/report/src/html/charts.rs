//! The charts' figures for plotly. Colors are names of the page's own ("@read"), which the page's
//! script replaces, so that they follow light, dark and paper.

use std::collections::BTreeMap;

use fathom_core::measure::{Direction, Histogram, Interval, SparseHistogram};
use fathom_core::{Quantile, Span, stats};
use serde_json::{Value, json};

use super::plotly;
use crate::chart;
use crate::document::{Document, Trial};
use crate::figures;

/// The percentiles over time, with their colors.
const OVER_TIME: [(Quantile, &str); 3] =
    [(Quantile(0.5), "@low"), (Quantile(0.95), "@middle"), (Quantile(0.99), "@high")];

/// Percentiles of the overview, with their colors.
const OVERVIEW: [(Quantile, &str); 3] =
    [(Quantile(0.5), "@low"), (Quantile(0.99), "@middle"), (Quantile(0.999), "@high")];

/// More points than this cannot be distinguished: neighbors are merged.
const POINTS: usize = 120;

/// A piece of the window, as one point of a line.
struct Piece<T> {
    start: Span,
    length: Span,
    /// Its figures.
    of: T,
}

/// The window in at most as many pieces as a chart can show, from slices in order: their starts and
/// lengths, and how to add each to its piece.
fn pieces<S, T: Default>(
    slices: &[S],
    span: impl Fn(&S) -> (Span, Span),
    add: impl Fn(&mut T, &S),
) -> Vec<Piece<T>> {
    let group = slices.len().div_ceil(POINTS).max(1);
    let piece = |slices: &[S]| {
        let mut of = T::default();
        slices.iter().for_each(|slice| add(&mut of, slice));
        let length = slices.iter().fold(Span(0), |sum, slice| sum + span(slice).1);
        Piece { start: span(&slices[0]).0, length, of }
    };
    let mut pieces: Vec<Piece<T>> = slices.chunks(group).map(piece).collect();
    // The rates of a short remainder, as in an interrupted run, are noise.
    pieces.retain(|piece| piece.length.0 > 0);
    let usual = stats::usual_length(pieces.iter().map(|piece| piece.length));
    if pieces.last().is_some_and(|last| last.length.0 < usual.0 / 2) {
        pieces.pop();
    }
    pieces
}

/// The figures of the rates.
#[derive(Default)]
struct Rates {
    ios: [u64; 2],
    failed: u64,
    /// The lowest and the highest IOPS of its intervals, reads and writes together.
    range: Option<(f64, f64)>,
}

/// Rates over time, all streams together.
fn rates_over_time(trial: &Trial) -> Vec<Piece<Rates>> {
    let slices = stats::sums(trial.intervals());
    let usual = stats::usual_length(slices.iter().map(|slice| slice.length));
    pieces(
        &slices,
        |slice| (slice.start, slice.length),
        |rates: &mut Rates, slice| {
            rates.failed += slice.failed;
            rates.ios.iter_mut().zip(slice.ios).for_each(|(sum, ios)| *sum += ios);
            // A short remainder has no meaningful rate.
            if slice.length.0 >= usual.0 / 2 {
                let iops = slice.iops(None);
                let (low, high) = rates.range.unwrap_or((iops, iops));
                rates.range = Some((low.min(iops), high.max(iops)));
            }
        },
    )
}

/// Response times over time, all streams together.
fn times_over_time(trial: &Trial) -> Vec<Piece<Histogram>> {
    let mut slices: BTreeMap<Span, (Span, Vec<SparseHistogram>)> = BTreeMap::new();
    for stretch in trial.stretches() {
        let (length, times) = slices.entry(stretch.start).or_default();
        *length = (*length).max(stretch.length);
        times.extend(stretch.response_time);
    }
    let slices: Vec<_> = slices.into_iter().collect();
    pieces(
        &slices,
        |(start, (length, _))| (*start, *length),
        |sum: &mut Histogram, (_, (_, times))| times.iter().for_each(|one| sum.merge_sparse(one)),
    )
}

/// All figures of a document: each with the id of its element.
pub fn figures(document: &Document) -> Value {
    let mut all: Vec<Value> = chart::charts(document).iter().flat_map(plotly::figures).collect();
    if document.trials.len() > 1 && !document.is_experiment() {
        all.push(overview(&document.trials));
    }
    if !crate::page::draws_trials(document) {
        return Value::Array(all);
    }
    for (place, trial) in document.trials.iter().enumerate() {
        let number = place + 1;
        all.push(rates(trial, &format!("rates-{number}")));
        all.push(times(trial, &format!("times-{number}")));
        all.push(distribution(trial, &format!("distribution-{number}")));
    }
    Value::Array(all)
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
            format!("{} {}<br>{}", place + 1, plotly::plain(&what), plotly::plain(&pace))
        })
        .collect();
    let iops: Vec<Option<f64>> = summaries.iter().map(|s| s.iops.map(|e| e.value)).collect();
    // At most the value itself, as in the tables: a longer bar would only compress all others.
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
    let shown = summaries.iter().flat_map(|s| s.quantiles.iter().flatten());
    let shown = shown.map(|estimate| estimate.value / 1e6);
    let mut times = plotly::log_axis("response time, ms (logarithmic)", shown);
    times["domain"] = json!([0.52, 1.0]);
    times["anchor"] = json!("y");
    json!({"id": "overview", "data": data, "layout": {
        "height": height,
        "yaxis": {"autorange": "reversed", "ticklabelstandoff": 6},
        "xaxis": {"domain": [0.0, 0.46], "title": {"text": "IOPS"}, "rangemode": "tozero"},
        "xaxis2": times,
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
    let pieces = rates_over_time(trial);
    let x: Vec<f64> = pieces.iter().map(|piece| seconds(piece.start, piece.length)).collect();
    let tenths = |rate: f64| (rate * 10.0).round() / 10.0;
    let rate = |of: &dyn Fn(&Rates) -> u64| -> Vec<Option<f64>> {
        let rates = pieces.iter().map(|piece| figures::per_second(of(&piece.of), piece.length));
        rates.map(|rate| rate.map(tenths)).collect()
    };
    let lines = figures::columns(trial).into_iter().map(|direction| {
        let y = rate(&|rates| match direction {
            Some(direction) => rates.ios[direction as usize],
            None => rates.ios.iter().sum(),
        });
        json!({
            "type": "scatter", "mode": "lines", "x": x, "y": y,
            "name": figures::direction_name(direction),
            "line": {"color": color(direction), "width": 2},
            "hovertemplate": "%{y:,.0f} IOPS at %{x:.1f} s",
        })
    });
    let mut data: Vec<Value> = lines.collect();
    // A point that stands for several intervals shows their extremes: a stall of a second must show
    // in a day.
    if pieces.iter().any(|piece| piece.of.range.is_some_and(|(low, high)| low < high)) {
        for (name, highest) in [("lowest interval", false), ("highest interval", true)] {
            let of = |(low, high): (f64, f64)| tenths(if highest { high } else { low });
            let y: Vec<Option<f64>> = pieces.iter().map(|piece| piece.of.range.map(of)).collect();
            data.push(json!({
                "type": "scatter", "mode": "lines", "x": x, "y": y, "name": name,
                "line": {"color": "@total", "width": 1, "dash": "dot"},
                "hovertemplate": "%{y:,.0f} IOPS near %{x:.1f} s",
            }));
        }
    }
    if let Some(y) = offered_over_time(trial, &pieces) {
        data.push(json!({
            "type": "scatter", "mode": "lines", "x": x, "y": y, "name": "offered",
            "line": {"color": "@total", "width": 1, "dash": "dash"},
            "hovertemplate": "%{y:,.0f} IOPS offered at %{x:.1f} s",
        }));
    }
    if pieces.iter().any(|piece| piece.of.failed > 0) {
        data.push(json!({
            "type": "scatter", "mode": "lines", "x": x, "y": rate(&|rates| rates.failed),
            "name": "failed", "line": {"color": "@void", "width": 2, "dash": "dot"},
            "hovertemplate": "%{y:,.0f} failed in a second, at %{x:.1f} s",
        }));
    }
    data.extend(changes(trial));
    json!({"id": id, "data": data, "layout": {
        "xaxis": {"title": {"text": "seconds"}, "rangemode": "tozero"},
        "yaxis": {"title": {"text": "IOPS"}, "rangemode": "tozero"},
    }})
}

/// If there is a doubt about the trial because of a change: a line at each level, and a mark at
/// each stall.
fn changes(trial: &Trial) -> Vec<Value> {
    let told = |codes: &[&str]| trial.findings.iter().any(|one| codes.contains(&&*one.code));
    let levels = told(&["credit-exhausted", "level-change"]);
    let stalls = told(&["stall", "periodic-stalls"]);
    if !levels && !stalls {
        return Vec::new();
    }
    let mut data = Vec::new();
    for (place, stream) in trial.point.streams.iter().enumerate() {
        let own = |number: u32| number as usize == place;
        let times = trial.flow(None, |worker, _| own(worker.stream));
        let series: Vec<Interval> = trial.intervals_of(own).collect();
        let changes = stats::Changes::of(&series, times.response_time(), stream.pacing.is_open());
        let of_stream = match trial.point.streams.len() {
            1 => String::new(),
            _ => format!(" of {}", plotly::plain(&stream.name)),
        };
        if levels && changes.levels.len() > 1 {
            data.push(level_lines(&changes.levels, &of_stream));
        }
        if stalls && !changes.stalls.each.is_empty() {
            data.push(stall_marks(&changes.stalls.each, &of_stream));
        }
    }
    data
}

/// A line at each level, from its beginning to its end.
fn level_lines(levels: &[stats::Plateau], of_stream: &str) -> Value {
    let ends = |level: &stats::Plateau| {
        let at = |instant: Span| Some((instant.as_secs_f64() * 1e3).round() / 1e3);
        [at(level.start), at(level.end), None]
    };
    let tenths = |level: &stats::Plateau| Some((level.mean * 10.0).round() / 10.0);
    let x: Vec<Option<f64>> = levels.iter().flat_map(ends).collect();
    let y: Vec<Option<f64>> =
        levels.iter().flat_map(|level| [tenths(level), tenths(level), None]).collect();
    json!({
        "type": "scatter", "mode": "lines", "x": x, "y": y, "name": format!("level{of_stream}"),
        "line": {"color": "@suspect", "width": 2, "dash": "dash"},
        "hovertemplate": "level %{y:,.0f} IOPS",
    })
}

/// A mark in the middle of each stall.
fn stall_marks(stalls: &[stats::Stall], of_stream: &str) -> Value {
    let x: Vec<f64> = stalls.iter().map(|stall| seconds(stall.start, stall.length)).collect();
    let lengths: Vec<String> = stalls.iter().map(|stall| stall.length.to_string()).collect();
    json!({
        "type": "scatter", "mode": "markers", "x": x, "y": vec![0; x.len()], "text": lengths,
        "name": format!("stall{of_stream}"),
        "marker": {"color": "@void", "size": 10, "symbol": "triangle-up"},
        "hovertemplate": "nothing completed for %{text}, at %{x:.1f} s",
    })
}

/// The offered load over time, if it changed: of all open loops together.
fn offered_over_time(trial: &Trial, pieces: &[Piece<Rates>]) -> Option<Vec<f64>> {
    let streams = &trial.point.streams;
    if !streams.iter().any(|stream| stream.pacing.is_open() && stream.pacing.changes()) {
        return None;
    }
    let offered = |piece: &Piece<Rates>| {
        let (from, to) = (piece.start, piece.start + piece.length);
        let offered = streams.iter().filter_map(|stream| stream.pacing.offered_rate(from, to));
        let sum: f64 = offered.map(|rate| rate.0).sum();
        (sum * 10.0).round() / 10.0
    };
    Some(pieces.iter().map(offered).collect())
}

/// Percentiles of the response time over time.
fn times(trial: &Trial, id: &str) -> Value {
    let pieces = times_over_time(trial);
    let x: Vec<f64> = pieces.iter().map(|piece| seconds(piece.start, piece.length)).collect();
    let ms = |ns: u64| ns as f64 / 1e6;
    let mut data: Vec<Value> = Vec::new();
    for (quantile, color) in OVER_TIME {
        let at = |piece: &Piece<Histogram>| figures::carried(&piece.of, quantile).map(ms);
        let y: Vec<Option<f64>> = pieces.iter().map(at).collect();
        if y.iter().any(Option::is_some) {
            data.push(line(&x, &y, &quantile.to_string(), color));
        }
    }
    let most: Vec<Option<f64>> = pieces.iter().map(|piece| piece.of.max().map(ms)).collect();
    data.push(line(&x, &most, "max", "@top"));
    let axis = plotly::log_axis("ms (logarithmic)", drawn(&data).into_iter());
    json!({"id": id, "data": data, "layout": {
        "xaxis": {"title": {"text": "seconds"}, "rangemode": "tozero"}, "yaxis": axis,
    }})
}

/// The values of all lines.
fn drawn(data: &[Value]) -> Vec<f64> {
    let all = data.iter().filter_map(|line| line["y"].as_array()).flatten();
    all.filter_map(Value::as_f64).collect()
}

fn line(x: &[f64], y: &[Option<f64>], name: &str, color: &str) -> Value {
    json!({
        "type": "scatter", "mode": "lines", "x": x, "y": y, "name": name,
        "line": {"color": color, "width": 2},
        "hovertemplate": "%{y:.3~g} ms at %{x:.1f} s",
    })
}

/// Every percentile with enough samples, on an axis on which each nine has the same width.
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
    let axis = plotly::log_axis("ms (logarithmic)", drawn(&data).into_iter());
    json!({"id": id, "data": data, "layout": {
        "xaxis": {"title": {"text": "share of I/Os that were at least as fast"},
            "tickvals": ticks, "ticktext": labels, "range": [0.0, last + 0.1]},
        "yaxis": axis,
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
