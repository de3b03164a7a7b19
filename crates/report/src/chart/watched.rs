//! The charts of a disk that was watched: its load and its response times over time.

use fathom_core::figures::{number, time};
use fathom_core::watch::{Counted, CountedFlow, HistoryPart, Observed};
use fathom_core::{Quantile, Span};

use super::{
    Axis, Chart, Cover, Dot, Form, Heat, HeatCell, Lines, Paint, Palette, Plot, Scale, Series,
};
use crate::figures::carried;
use crate::watched::WatchedDisk;

/// The columns of the heat map: more cannot be told apart.
const COLUMNS: usize = 96;

/// The unit of a time axis, for a watch of this length: its name, and its nanoseconds.
fn unit(length: Span) -> (&'static str, f64) {
    match length.0 / 1_000_000_000 {
        0..=600 => ("seconds", 1e9),
        601..=18_000 => ("minutes", 6e10),
        _ => ("hours", 3.6e12),
    }
}

/// The charts of a disk, with its number, from 1.
pub fn charts(disk: &WatchedDisk, nth: usize, length: Span) -> Vec<Chart> {
    let chart = |name: &str, title: &str, caption: &str, plot| {
        Chart::of_one(format!("{name}-{nth}"), title, caption, plot)
    };
    let mut charts = Vec::from([
        chart(
            "watched-rates",
            "IOPS over time",
            "Requests per second that the disk completed.",
            Plot::Lines(rates(disk, length)),
        ),
        chart(
            "watched-times",
            "Response time over time",
            "From the making of a request in the block layer to its completion, in ms.",
            Plot::Lines(times(disk, length)),
        ),
        chart(
            "watched-queue",
            "Requests in flight over time",
            "The mean number of requests in the queue and at the device.",
            Plot::Lines(queue(disk, length)),
        ),
        chart(
            "watched-bandwidth",
            "Bandwidth over time",
            "MiB per second.",
            Plot::Lines(bandwidth(disk, length)),
        ),
    ]);
    if let Some(heat) = heat(disk, length) {
        charts.push(chart(
            "watched-heat",
            "Response times over time",
            "Each cell is colored by the number of reads and writes with this response time per second.",
            Plot::Heat(heat),
        ));
    }
    charts
}

fn middle<T>(piece: &HistoryPart<T>, length: Span) -> f64 {
    let middle = (piece.start.0 as f64 + piece.end.0 as f64) / 2.0 / unit(length).1;
    (middle * 1e6).round() / 1e6
}

fn line(name: &str, paint: Paint, values: impl Iterator<Item = (f64, Option<f64>)>) -> Series {
    let dot = |(x, y)| Dot::plain(x, y, "");
    let dots: Vec<Dot> = values.map(dot).collect();
    Series { name: name.to_owned(), paint, form: Form::over_time(&dots, false), dots }
}

/// A line for reads and one for writes.
fn of_counters(
    disk: &WatchedDisk,
    length: Span,
    title: &str,
    value: fn(&Counted, &CountedFlow) -> f64,
) -> Lines {
    let series = [
        ("reads", Paint::Read, (|it| &it.reads) as fn(&Counted) -> &CountedFlow),
        ("writes", Paint::Write, |it| &it.writes),
    ];
    let series = series.map(|(name, paint, flow)| {
        let pieces = disk.over_time.pieces().iter();
        let value = |piece: &HistoryPart<Counted>| {
            let value = value(&piece.figures, flow(&piece.figures));
            (middle(piece, length), Some((value * 1000.0).round() / 1000.0))
        };
        line(name, paint, pieces.map(value))
    });
    Lines {
        x: Axis::plain(unit(length).0, Scale::FromZero),
        y: Axis::plain(title, Scale::FromZero),
        band: None,
        series: Vec::from(series),
    }
}

fn rates(disk: &WatchedDisk, length: Span) -> Lines {
    of_counters(disk, length, "IOPS", |all, flow| all.per_second(flow.ios))
}

fn bandwidth(disk: &WatchedDisk, length: Span) -> Lines {
    let mib = |all: &Counted, flow: &CountedFlow| all.per_second(flow.bytes.0) / 1_048_576.0;
    of_counters(disk, length, "MiB/s", mib)
}

fn queue(disk: &WatchedDisk, length: Span) -> Lines {
    let pieces = disk.over_time.pieces().iter();
    let value = |piece: &HistoryPart<Counted>| {
        (middle(piece, length), Some((piece.figures.mean_queue() * 1000.0).round() / 1000.0))
    };
    Lines {
        x: Axis::plain(unit(length).0, Scale::FromZero),
        y: Axis::plain("requests in flight", Scale::FromZero),
        band: None,
        series: Vec::from([line("", Paint::Total, pieces.map(value))]),
    }
}

/// Percentiles if there are events, means if there are only counters.
fn times(disk: &WatchedDisk, length: Span) -> Lines {
    let mut series = Vec::new();
    if disk.observed.is_some() {
        let observed = |name: &str, paint, value: &dyn Fn(&Observed) -> Option<u64>| {
            let pieces = disk.slices.pieces().iter();
            let at = |piece: &HistoryPart<Observed>| {
                (middle(piece, length), value(&piece.figures).map(|ns| ns as f64 / 1e6))
            };
            line(name, paint, pieces.map(at))
        };
        let p50 = Quantile(0.5);
        let p99 = Quantile(0.99);
        series.extend([
            observed("reads p50", Paint::Low, &|it| carried(&it.reads.response_time, p50)),
            observed("reads p99", Paint::Read, &|it| carried(&it.reads.response_time, p99)),
            observed("writes p50", Paint::Suspect, &|it| carried(&it.writes.response_time, p50)),
            observed("writes p99", Paint::Write, &|it| carried(&it.writes.response_time, p99)),
            observed("longest", Paint::Found, &|it| {
                it.reads.response_time.max().max(it.writes.response_time.max())
            }),
        ]);
    } else {
        let counted = |name: &str, paint, flow: fn(&Counted) -> &CountedFlow| {
            let pieces = disk.over_time.pieces().iter();
            let at = |piece: &HistoryPart<Counted>| {
                (middle(piece, length), flow(&piece.figures).mean_time().map(|ns| ns / 1e6))
            };
            line(name, paint, pieces.map(at))
        };
        series.push(counted("reads, mean", Paint::Read, |it| &it.reads));
        series.push(counted("writes, mean", Paint::Write, |it| &it.writes));
    }
    series.retain(|one: &Series| one.dots.iter().any(|dot| dot.y.is_some()));
    let y = Axis::of_ratios("ms (logarithmic)".to_owned(), &series);
    Lines { x: Axis::plain(unit(length).0, Scale::FromZero), y, band: None, series }
}

/// How often each response time occurred, over time; none without events.
fn heat(disk: &WatchedDisk, length: Span) -> Option<Heat> {
    disk.observed.as_ref()?;
    let pieces = disk.slices.pieces();
    let group = pieces.len().div_ceil(COLUMNS).max(1);
    let columns: Vec<(f64, Vec<(u64, u64)>)> = pieces
        .chunks(group)
        .map(|pieces| {
            let seconds: f64 = pieces.iter().map(|it| (it.end - it.start).as_secs_f64()).sum();
            let buckets = pieces.iter().flat_map(|piece| {
                let flows = [&piece.figures.reads, &piece.figures.writes];
                flows
                    .into_iter()
                    .flat_map(|flow| flow.response_time.to_sparse().buckets().collect::<Vec<_>>())
            });
            (seconds.max(f64::MIN_POSITIVE), buckets.collect())
        })
        .collect();
    let all = || columns.iter().flat_map(|(_, buckets)| buckets.iter().map(|(lower, _)| *lower));
    let steps = steps(all().min()?, all().max()?);
    let (name, scale) = unit(length);
    let starts: Vec<f64> =
        pieces.chunks(group).map(|pieces| pieces[0].start.0 as f64 / scale).collect();
    let x = begins(&starts);
    let mut cells = Vec::new();
    for (column, (seconds, buckets)) in columns.iter().enumerate() {
        let mut counts = vec![0u64; steps.len()];
        for (lower, count) in buckets {
            let row = steps.partition_point(|step| step <= lower).saturating_sub(1);
            counts[row] += count;
        }
        for (row, count) in counts.into_iter().enumerate().filter(|(_, count)| *count > 0) {
            let rate = count as f64 / seconds;
            let from = time(steps[row] as f64);
            cells.push(HeatCell {
                x: column,
                y: row,
                value: Some(rate),
                cover: Cover::Plain,
                text: number(rate),
                about: format!(
                    "{} I/Os per second of {from} and more, from {} {name} on",
                    number(rate),
                    x[column],
                ),
            });
        }
    }
    Some(Heat {
        x_title: format!("{name}, from"),
        x,
        y_title: "response time, from".to_owned(),
        y: steps.iter().map(|step| time(*step as f64)).collect(),
        cells,
        title: "I/Os per second".to_owned(),
        log: true,
        written: false,
        write: number,
        signs: Vec::new(),
        palette: Palette::Viridis,
        clip: None,
        contours: Vec::new(),
        limits: Vec::new(),
    })
}

/// Where the columns begin, with as many decimals as tell neighbors apart.
fn begins(starts: &[f64]) -> Vec<String> {
    let apart = starts.windows(2).map(|pair| pair[1] - pair[0]).fold(f64::INFINITY, f64::min);
    let decimals = match apart {
        0.95.. => 0,
        0.095.. => 1,
        0.0095.. => 2,
        _ => 3,
    };
    starts.iter().map(|start| format!("{start:.decimals$}")).collect()
}

/// The lower ends of the rows: 1, 2 and 5 times each power of ten, from the one below the smallest
/// value to that of the largest.
fn steps(smallest: u64, largest: u64) -> Vec<u64> {
    let decades = (0..19).flat_map(|power| [1, 2, 5].map(|digit| digit * 10_u64.pow(power)));
    let all: Vec<u64> = decades.collect();
    let first = all.partition_point(|step| *step <= smallest).saturating_sub(1);
    let end = all.partition_point(|step| *step <= largest).max(first + 1);
    all[first..end].to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_named_by_their_begin_no_finer_than_they_are_apart() {
        assert_eq!(begins(&[0.0, 1.001, 2.003]), ["0", "1", "2"]);
        assert_eq!(begins(&[0.0, 0.1, 0.2]), ["0.0", "0.1", "0.2"]);
        assert_eq!(begins(&[0.0]), ["0"]);
    }

    #[test]
    fn rows_cover_all_times_and_no_more() {
        assert_eq!(steps(15_000, 90_000), [10_000, 20_000, 50_000]);
        assert_eq!(steps(20_000, 20_000), [20_000]);
        assert_eq!(steps(0, 3), [1, 2]);
        assert!(steps(1, u64::MAX).len() < 60);
    }
}
