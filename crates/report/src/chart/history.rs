//! The chart of a figure over many results: each result, the levels, and where they change.

use fathom_core::Utc;

use super::{Axis, Chart, Dot, Form, Lines, Paint, Plot, Scale, Series, Shape};
use crate::document::Metric;
use crate::figures;
use crate::history::{HistorySeries, HistoryValue};

/// A day in nanoseconds.
const DAY: f64 = 86_400e9;

/// The axis of values covers at least this share of the highest one.
const SPAN: f64 = 0.1;

/// A shorter time, in days, has seconds at its ends.
const MINUTES: f64 = 10.0 / 1440.0;

/// The most dates below the axis.
const DATES: usize = 5;

/// The unit of a figure: its name on the axis, and what the value is divided by.
fn unit(metric: Metric) -> (String, f64) {
    match metric {
        Metric::Iops => ("IOPS".to_owned(), 1.0),
        Metric::Bandwidth => ("bandwidth, MB/s".to_owned(), 1e6),
        Metric::Mean => ("mean response time, ms".to_owned(), 1e6),
        Metric::Max => ("longest response time, ms".to_owned(), 1e6),
        Metric::Quantile(quantile) => (format!("{quantile}, ms"), 1e6),
    }
}

/// The chart of a series, with its number among all, from 1.
pub fn of_series(series: &HistorySeries, nth: usize) -> Chart {
    let (name, divisor) = unit(series.figure);
    let x = |value: &HistoryValue| value.created_unix_ns as f64 / DAY;
    let dot = |value: &HistoryValue, about: String| {
        Dot::plain(x(value), Some(value.value / divisor), about)
    };
    let about = |value: &HistoryValue| {
        let text = series.figure.text(value.value);
        format!("{text}\n{}\n{}", figures::moment(&value.created), value.file)
    };
    let line = |name: &str, paint, form, dots| Series { name: name.to_owned(), paint, form, dots };
    let results = series.values.iter().map(|value| dot(value, about(value))).collect();
    let mut all = Vec::from([line("result", Paint::Muted, Form::Dots(Shape::Point), results)]);
    for (place, level) in series.levels.iter().enumerate() {
        let ends = [level.first, level.first + level.results - 1];
        let ends = ends.map(|end| Dot {
            y: Some(level.mean / divisor),
            ..dot(&series.values[end], series.figure.text(level.mean))
        });
        let name = if place == 0 { "level" } else { "" };
        all.push(line(name, Paint::Read, Form::Line { dashed: false }, Vec::from(ends)));
    }
    let changes = series.changes.iter().map(|change| {
        let value = &series.values[change.at];
        let words = format!("{}\n{}", crate::history::moved(change.ratio), about(value));
        dot(value, words)
    });
    let changes: Vec<Dot> = changes.collect();
    if !changes.is_empty() {
        all.push(line(
            "first result after a change",
            Paint::Found,
            Form::Dots(Shape::Ring),
            changes,
        ));
    }
    let point = if series.point.is_empty() { String::new() } else { format!("{}: ", series.point) };
    Chart::of_one(
        format!("history-{nth}"),
        format!("{point}{} over time", crate::history::capital(&series.figure.name())),
        "Each dot is a result. The line is the geometric mean between two changes.".to_owned(),
        Plot::Lines(Lines {
            x: dates(&series.values),
            y: Axis {
                title: name,
                scale: Scale::Linear,
                ticks: Vec::new(),
                range: range(&series.values).map(|(low, high)| (low / divisor, high / divisor)),
            },
            band: None,
            series: all,
        }),
    )
}

/// The ends of the axis of values, some room around them: noise does not fill it.
fn range(values: &[HistoryValue]) -> Option<(f64, f64)> {
    let ends = values.iter().map(|one| (one.value, one.value));
    let (low, high) = ends.reduce(|one, two| (one.0.min(two.0), one.1.max(two.1)))?;
    let room = (0.1 * (high - low)).max((SPAN * high - (high - low)) / 2.0);
    Some(((low - room).max(0.0), high + room))
}

/// The axis of time, in days since 1970, with a few dates.
fn dates(values: &[HistoryValue]) -> Axis {
    let ends = values.first().zip(values.last());
    let [first, last] = ends.map_or([0.0, 0.0], |(first, last)| {
        [first, last].map(|value| value.created_unix_ns as f64 / DAY)
    });
    let span = last - first;
    // At midnight if there are enough of them; otherwise at whole hours, or at both ends.
    let steps = [1.0 / 24.0, 0.25, 1.0, 2.0, 7.0, 14.0, 30.0, 61.0, 91.0, 182.0, 365.0, 1826.0];
    let step = steps.into_iter().find(|step| span / step <= DATES as f64);
    let step = step.unwrap_or(span / DATES as f64);
    let ticks = (0..=2 * DATES).map(|nth| ((first / step).ceil() + nth as f64) * step);
    let mut ticks: Vec<f64> = ticks.take_while(|at| *at <= last).collect();
    if ticks.len() < 2 {
        ticks = Vec::from([first, last]);
        ticks.dedup();
    }
    let text = |at: f64| {
        let utc = Utc::from_unix((at * 86_400.0).round() as u64);
        match (step < 1.0, span < 1.0) {
            (true, true) if span < MINUTES => {
                format!("{:02}:{:02}:{:02}", utc.hour, utc.minute, utc.second)
            }
            (true, true) => format!("{:02}:{:02}", utc.hour, utc.minute),
            (true, false) => format!("{:02}-{:02} {:02}:00", utc.month, utc.day, utc.hour),
            _ => format!("{:04}-{:02}-{:02}", utc.year, utc.month, utc.day),
        }
    };
    let room = (span * 0.03).max(1.0 / 86_400.0);
    Axis {
        title: "date (UTC)".to_owned(),
        scale: Scale::Linear,
        ticks: ticks.into_iter().map(|at| (at, text(at))).collect(),
        range: Some((first - room, last + room)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(hours: &[u64]) -> Vec<HistoryValue> {
        let value = |hour: &u64| HistoryValue {
            file: String::new(),
            created: String::new(),
            created_unix_ns: (20_000 * 24 + hour) * 3_600_000_000_000,
            value: 1.0,
        };
        hours.iter().map(value).collect()
    }

    #[test]
    fn a_difference_of_a_thousandth_looks_like_one() {
        let values: Vec<HistoryValue> = [1000.0, 1001.0]
            .into_iter()
            .flat_map(|value| {
                values(&[0]).into_iter().map(move |one| HistoryValue { value, ..one })
            })
            .collect();
        let (low, high) = range(&values).unwrap();
        assert!((94.0..=106.0).contains(&(high - low)) && low < 1000.0 && 1001.0 < high);
        assert_eq!(range(&[]), None);
    }

    #[test]
    fn dates_are_round_and_few() {
        let texts = |hours: &[u64]| -> Vec<String> {
            dates(&values(hours)).ticks.into_iter().map(|tick| tick.1).collect()
        };
        assert_eq!(texts(&[0, 4]), ["00:00", "01:00", "02:00", "03:00", "04:00"]);
        assert_eq!(texts(&[5, 100]), ["2024-10-05", "2024-10-06", "2024-10-07", "2024-10-08"]);
        assert!((2..=6).contains(&texts(&[5, 24 * 214]).len()), "{:?}", texts(&[5, 24 * 214]));
        assert_eq!(texts(&[7]).len(), 1);
        assert!(texts(&[]).len() < 2);
    }
}
