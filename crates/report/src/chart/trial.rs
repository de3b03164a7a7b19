//! The charts of one trial: throughput and response times over its window, and the distribution of
//! the response times.

use std::collections::BTreeMap;

use fathom_core::measure::{Direction, Histogram, Interval, SparseHistogram};
use fathom_core::{Quantile, Span, stats};

use super::{Axis, Chart, Dot, Form, Lines, Paint, Panel, Plot, Scale, Series, Shape};
use crate::document::Trial;
use crate::figures::{self, TrialPart};

/// The percentiles over time, with their colors.
const OVER_TIME: [(Quantile, Paint); 3] =
    [(Quantile(0.5), Paint::Low), (Quantile(0.95), Paint::Middle), (Quantile(0.99), Paint::High)];

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

/// The charts of a trial, with its number, from 1: over time, then the distribution.
pub fn charts(trial: &Trial, number: usize) -> Vec<Chart> {
    let time = figures::time_name(TrialPart::whole(trial));
    let over_time = format!("{} over time", figures::capitalized(time));
    let distribution_title = format!("Distribution of the {time}");
    let chart = |name: &str, title: String, caption: &str, lines| {
        Chart::of_one(format!("{name}-{number}"), title, caption, Plot::Lines(lines))
    };
    let throughput = "I/Os per second over the measurement window.";
    let times = "Percentiles in ms, on a logarithmic scale.";
    let distribution = "Each further nine of the percentile (90, 99, 99.9 %) has the same width.";
    Vec::from([
        chart("rates", "IOPS over time".to_owned(), throughput, rates(trial)),
        chart("times", over_time, times, times_of(trial)),
        chart("distribution", distribution_title, distribution, nines_of(trial)),
    ])
}

/// A run in one chart: its throughput over time beside its distribution.
pub fn of_run(trial: &Trial) -> Chart {
    let time = figures::time_name(TrialPart::whole(trial));
    let panel = |title: String, lines| Panel { title, plot: Plot::Lines(lines) };
    Chart {
        name: "run".to_owned(),
        title: String::new(),
        caption: String::new(),
        panels: Vec::from([
            panel("IOPS over time".to_owned(), rates(trial)),
            panel(format!("Distribution of the {time}"), nines_of(trial)),
        ]),
        one_at_a_time: false,
    }
}

/// The color of a direction.
fn paint(direction: Option<Direction>) -> Paint {
    match direction {
        Some(Direction::Read) => Paint::Read,
        Some(Direction::Write) => Paint::Write,
        None => Paint::Total,
    }
}

fn seconds(start: Span, length: Span) -> f64 {
    // The middle of the interval, to the microsecond.
    let middle = start.0 as f64 + length.0 as f64 / 2.0;
    (middle / 1e3).round() / 1e6
}

fn tenths(rate: f64) -> f64 {
    (rate * 10.0).round() / 10.0
}

/// A value that needs no more words than its axes have.
fn plain((x, y): (f64, Option<f64>)) -> Dot {
    Dot::plain(x, y, "")
}

/// A line over time.
fn over_time(
    name: impl Into<String>,
    (paint, dashed): (Paint, bool),
    values: impl Iterator<Item = (f64, Option<f64>)>,
) -> Series {
    let dots: Vec<Dot> = values.map(plain).collect();
    Series { name: name.into(), paint, form: Form::over_time(&dots, dashed), dots }
}

/// IOPS over time.
fn rates(trial: &Trial) -> Lines {
    let pieces = rates_over_time(trial);
    let at = |piece: &Piece<Rates>| seconds(piece.start, piece.length);
    let rate = |piece: &Piece<Rates>, count| figures::per_second(count, piece.length).map(tenths);
    let line = |direction: Option<Direction>| {
        let count = |rates: &Rates| match direction {
            Some(direction) => rates.ios[direction as usize],
            None => rates.ios.iter().sum(),
        };
        let values = pieces.iter().map(|piece| (at(piece), rate(piece, count(&piece.of))));
        over_time(figures::direction_name(direction), (paint(direction), false), values)
    };
    let mut series: Vec<Series> = figures::columns(trial).into_iter().map(line).collect();
    // A point that stands for several intervals shows their extremes: a stall of a second must show
    // in a day.
    if pieces.iter().any(|piece| piece.of.range.is_some_and(|(low, high)| low < high)) {
        for (name, highest) in [("lowest interval", false), ("highest interval", true)] {
            let of = |(low, high): (f64, f64)| tenths(if highest { high } else { low });
            let values = pieces.iter().map(|piece| (at(piece), piece.of.range.map(of)));
            series.push(over_time(name, (Paint::Total, true), values));
        }
    }
    if let Some(offered) = offered_over_time(trial, &pieces) {
        let values = pieces.iter().zip(offered).map(|(piece, rate)| (at(piece), Some(rate)));
        series.push(over_time("offered", (Paint::Total, true), values));
    }
    if pieces.iter().any(|piece| piece.of.failed > 0) {
        let values = pieces.iter().map(|piece| (at(piece), rate(piece, piece.of.failed)));
        series.push(over_time("failed", (Paint::Void, true), values));
    }
    series.extend(changes(trial));
    let y = Axis::plain("IOPS", Scale::FromZero);
    Lines { x: Axis::plain("seconds", Scale::FromZero), y, band: None, series }
}

/// If there is a doubt about the trial because of a change: a line at each level, and a mark at
/// each stall.
fn changes(trial: &Trial) -> Vec<Series> {
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
            _ => format!(" of {}", stream.name),
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
fn level_lines(levels: &[stats::Plateau], of_stream: &str) -> Series {
    let thousandths = |instant: Span| (instant.as_secs_f64() * 1e3).round() / 1e3;
    let ends = |level: &stats::Plateau| {
        let mean = Some(tenths(level.mean));
        let end = thousandths(level.end);
        // The gap after it.
        [(thousandths(level.start), mean), (end, mean), (end, None)]
    };
    let name = format!("level{of_stream}");
    over_time(name, (Paint::Suspect, true), levels.iter().flat_map(ends))
}

/// A mark in the middle of each stall.
fn stall_marks(stalls: &[stats::Stall], of_stream: &str) -> Series {
    let mark = |stall: &stats::Stall| {
        let x = seconds(stall.start, stall.length);
        let about = format!("nothing completed for {}, at {x:.1} s", stall.length);
        Dot::plain(x, Some(0.0), about)
    };
    Series {
        name: format!("stall{of_stream}"),
        paint: Paint::Void,
        form: Form::Dots(Shape::Triangle),
        dots: stalls.iter().map(mark).collect(),
    }
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
        let sum: f64 = offered.map(|rate| rate.0).sum::<f64>() * trial.machines() as f64;
        (sum * 10.0).round() / 10.0
    };
    Some(pieces.iter().map(offered).collect())
}

/// Percentiles of the response time over time.
fn times_of(trial: &Trial) -> Lines {
    let pieces = times_over_time(trial);
    let at = |piece: &Piece<Histogram>| seconds(piece.start, piece.length);
    let ms = |ns: u64| ns as f64 / 1e6;
    let mut series: Vec<Series> = Vec::new();
    for (quantile, paint) in OVER_TIME {
        let of = |piece: &Piece<Histogram>| figures::carried(&piece.of, quantile).map(ms);
        let values = pieces.iter().map(|piece| (at(piece), of(piece)));
        let line = over_time(quantile.to_string(), (paint, false), values);
        if line.dots.iter().any(|dot| dot.y.is_some()) {
            series.push(line);
        }
    }
    let most = pieces.iter().map(|piece| (at(piece), piece.of.max().map(ms)));
    series.push(over_time("max", (Paint::Found, false), most));
    let y = Axis::of_ratios("ms (logarithmic)".to_owned(), &series);
    Lines { x: Axis::plain("seconds", Scale::FromZero), y, band: None, series }
}

/// Every percentile with enough samples, on an axis on which each nine has the same width.
fn nines_of(trial: &Trial) -> Lines {
    let mut series: Vec<Series> = Vec::new();
    for direction in figures::directions(trial) {
        let flow = trial.total(Some(direction));
        let name = direction.name();
        let mut add = |times: &Histogram, name: String, dashed: bool| {
            let (paint, form) = (paint(Some(direction)), Form::Line { dashed });
            series.push(Series { name, paint, form, dots: nines(times) });
        };
        match &flow.response_time {
            Some(response_time) => {
                add(response_time, format!("{name}, response"), false);
                add(&flow.service_time, format!("{name}, service"), true);
            }
            None => add(&flow.service_time, name.to_owned(), false),
        }
    }
    on_nines(series)
}

/// Distributions on an axis on which each nine has the same width.
pub(super) fn on_nines(series: Vec<Series>) -> Lines {
    let last = series.iter().flat_map(|one| &one.dots).map(|dot| dot.x).fold(2.0, f64::max);
    let label = |nines: u32| match nines {
        0 => "0 %".to_owned(),
        1 => "90 %".to_owned(),
        2 => "99 %".to_owned(),
        n => format!("99.{} %", "9".repeat(n as usize - 2)),
    };
    let x = Axis {
        title: "share of I/Os that were at least as fast".to_owned(),
        scale: Scale::Linear,
        ticks: (0..=last.ceil() as u32).map(|nines| (f64::from(nines), label(nines))).collect(),
        range: Some((0.0, last + 0.1)),
    };
    let y = Axis::of_ratios("ms (logarithmic)".to_owned(), &series);
    Lines { x, y, band: None, series }
}

/// Points of the distribution: nines, and milliseconds.
pub(super) fn nines(times: &Histogram) -> Vec<Dot> {
    let steps = (1..=180).map(|step| f64::from(step) / 20.0);
    let dots = steps.filter_map(|nines| {
        let ns = figures::carried(times, Quantile(1.0 - 10f64.powf(-nines)))?;
        Some(plain((nines, Some(ns as f64 / 1e6))))
    });
    dots.collect()
}
