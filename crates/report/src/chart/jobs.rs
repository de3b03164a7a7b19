//! The charts of another program's jobs: throughput and service times, job by job.

use fathom_core::Quantile;
use fathom_core::measure::Direction;

use super::{Axis, Chart, Dot, Form, Lines, Paint, Panel, Plot, Scale, Series, Shape};
use crate::document::{Document, Job, JobFlow, JobsFound};
use crate::figures;

/// The percentiles in the charts and in the tables.
pub const QUANTILES: [Quantile; 4] =
    [Quantile(0.5), Quantile(0.95), Quantile(0.99), Quantile(0.999)];

/// With more jobs than this, not every job has a label.
const LABELED: usize = 24;

/// With more numbers than this, not every number has a label: the ticks are round.
const NAMED: usize = 12;

/// The place of a job, and whether it is a number from its name.
struct Places {
    numeric: bool,
    at: Vec<f64>,
}

/// The figures of a flow.
type FlowFigure<'f> = &'f dyn Fn(&JobFlow) -> Option<f64>;

/// All charts of jobs; none if no job did any I/O.
pub fn charts(document: &Document, found: &JobsFound) -> Vec<Chart> {
    let places = Places::of(found);
    let by = document.header.imported.as_ref().map_or("", |source| source.program.as_str());
    let chart = |name: &str, title: &str, unit: &str, panels: Vec<Panel>| Chart {
        name: name.to_owned(),
        title: format!("{title} by job"),
        caption: format!("{unit}, as {by} told it; how exactly it is known was not told."),
        panels,
        one_at_a_time: false,
    };
    let rate = |title: &str, of: FlowFigure<'_>| {
        let lines = throughput(found, &places, title, of);
        Vec::from([Panel { title: String::new(), plot: Plot::Lines(lines) }])
    };
    let mut charts = Vec::from([
        chart("iops", "IOPS", "I/Os per second", rate("I/Os per second", &|flow| flow.iops)),
        chart(
            "bandwidth",
            "Bandwidth",
            "MiB/s",
            rate("MiB/s", &|flow| flow.bandwidth_bytes.map(figures::mib)),
        ),
    ]);
    let panels: Vec<Panel> = Direction::BOTH
        .into_iter()
        .filter_map(|direction| times(found, &places, direction))
        .collect();
    let unit = "Service time, ms (logarithmic)";
    charts.push(chart("service-time", "Service time", unit, panels));
    let has_any = |chart: &Chart| {
        chart.panels.iter().any(|panel| match &panel.plot {
            Plot::Lines(lines) => !lines.series.is_empty(),
            Plot::Heat(_) => false,
        })
    };
    charts.retain(has_any);
    charts
}

impl Places {
    /// The number in a job's name, if all jobs have one: Diskplorer names them by their queue
    /// depth. Otherwise its place in the list.
    fn of(found: &JobsFound) -> Self {
        let number = |job: &Job| job.name.trim().parse::<f64>().ok().filter(|n| n.is_finite());
        let numbers: Option<Vec<f64>> = found.jobs.iter().map(number).collect();
        let rising = |numbers: &Vec<f64>| {
            numbers.len() > 1
                && numbers[0] > 0.0
                && numbers.windows(2).all(|pair| pair[0] < pair[1])
        };
        match numbers.filter(rising) {
            Some(at) => Self { numeric: true, at },
            None => {
                Self { numeric: false, at: (0..found.jobs.len()).map(|nth| nth as f64).collect() }
            }
        }
    }

    fn axis(&self, found: &JobsFound) -> Axis {
        let title = "job".to_owned();
        let (first, last) =
            (self.at.first().copied().unwrap_or(0.0), self.at.last().copied().unwrap_or(0.0));
        if !self.numeric {
            let each = self.at.len().div_ceil(LABELED).max(1);
            let names = found.jobs.iter().map(|job| job.name.clone());
            let ticks = self.at.iter().copied().zip(names).step_by(each).collect();
            let range = Some((first - 0.6, last + 0.6));
            return Axis { title, scale: Scale::Linear, ticks, range };
        }
        match last / first >= 8.0 {
            true => {
                let room = (last / first).powf(0.06);
                let names = found.jobs.iter().map(|job| job.name.trim().to_owned());
                // Many names would overlap.
                let ticks = match self.at.len() <= NAMED {
                    true => self.at.iter().copied().zip(names).collect(),
                    false => super::labeled(super::log_ticks(first, last)),
                };
                let range = Some((first / room, last * room));
                Axis { title, scale: Scale::Log, ticks, range }
            }
            false => Axis::plain(title, Scale::Linear),
        }
    }

    fn form(&self, nth: usize) -> Form {
        if self.numeric { Form::Dotted(Shape::nth(nth)) } else { Form::Bars }
    }
}

/// A line or bars for each direction.
fn throughput(found: &JobsFound, places: &Places, title: &str, of: FlowFigure<'_>) -> Lines {
    let series = Direction::BOTH.into_iter().enumerate();
    let series = series.filter_map(|(nth, direction)| {
        let dots = dots(found, places, direction, of);
        let name = if nth == 0 { "read" } else { "write" }.to_owned();
        let form = places.form(nth);
        (!dots.is_empty()).then_some(Series { name, paint: Paint::Nth(nth), form, dots })
    });
    Lines {
        x: places.axis(found),
        y: Axis::plain(title, Scale::FromZero),
        band: None,
        series: series.collect(),
    }
}

/// The percentiles of a direction; none if none is known.
fn times(found: &JobsFound, places: &Places, direction: Direction) -> Option<Panel> {
    let series = QUANTILES.into_iter().enumerate().filter_map(|(nth, quantile)| {
        let of = |flow: &JobFlow| flow.service_time.at(quantile).map(|ns| ns / 1e6);
        let dots = dots(found, places, direction, &of);
        // Bars of times would have to begin at zero, which this axis does not have.
        let form = match places.form(nth) {
            Form::Bars => Form::Dots(Shape::nth(nth)),
            form => form,
        };
        let name = quantile.to_string();
        (!dots.is_empty()).then_some(Series { name, paint: Paint::Nth(nth), form, dots })
    });
    let series: Vec<Series> = series.collect();
    let title = match direction {
        Direction::Read => "reads",
        Direction::Write => "writes",
    };
    let y = Axis::of_ratios("service time, ms (logarithmic)".to_owned(), &series);
    (!series.is_empty()).then(|| Panel {
        title: title.to_owned(),
        plot: Plot::Lines(Lines { x: places.axis(found), y, band: None, series }),
    })
}

fn dots(found: &JobsFound, places: &Places, direction: Direction, of: FlowFigure<'_>) -> Vec<Dot> {
    let each = found.jobs.iter().zip(&places.at);
    each.filter_map(|(job, x)| {
        let flow = job.flows.iter().find(|flow| flow.direction == direction)?;
        let y = Some(of(flow)?);
        Some(Dot::plain(*x, y, about(job, flow)))
    })
    .collect()
}

/// All facts about a job in one direction, line by line.
fn about(job: &Job, flow: &JobFlow) -> String {
    let mut lines = Vec::from([format!("{}, {}s", job.name, flow.direction.name())]);
    lines.extend(flow.iops.map(|iops| format!("{} IOPS", figures::significant(iops))));
    let mib = flow.bandwidth_bytes.map(figures::mib);
    lines.extend(mib.map(|mib| format!("{} MiB/s", figures::significant(mib))));
    for quantile in QUANTILES {
        let time = flow.service_time.at(quantile);
        lines.extend(time.map(|ns| format!("{quantile} {}", figures::time(ns))));
    }
    lines.join("\n")
}
