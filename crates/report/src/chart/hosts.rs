//! The figures of each host in a trial of many, with the hosts that are unlike the others.

use fathom_core::facts::short_names;
use fathom_core::hosts::outliers;
use fathom_core::stats::{Estimate, median};

use super::{Axis, Chart, Dot, Form, Lines, Paint, Panel, Plot, Scale, Series, Shape};
use crate::document::{HostTrial, Trial};
use crate::figures::{self, TrialPart, plus_minus};

/// The names of more hosts than this do not fit below an axis.
const NAMED: usize = 12;

/// A figure of a host.
struct HostFigure {
    title: String,
    axis: &'static str,
    is_ratio: bool,
    of: fn(&HostTrial) -> Option<Estimate>,
    /// From the figure's unit to that of the axis.
    scale: f64,
}

/// A chart of the throughput and the tail of each host, with the trial's number, from 1; none if fewer
/// than two applied the load.
pub fn charts(trial: &Trial, number: usize) -> Vec<Chart> {
    let hosts: Vec<&HostTrial> = trial.hosts.iter().collect();
    if hosts.len() < 2 {
        return Vec::new();
    }
    let time = figures::time_name(TrialPart::whole(trial));
    let all = [
        HostFigure {
            title: "IOPS".to_owned(),
            axis: "I/Os per second",
            is_ratio: false,
            of: |host| host.iops,
            scale: 1.0,
        },
        HostFigure {
            title: format!("p99 of the {time}"),
            axis: "p99, ms (logarithmic)",
            is_ratio: true,
            of: |host| host.p99,
            scale: 1e-6,
        },
    ];
    let panels = all.iter().map(|figure| Panel {
        title: figure.title.clone(),
        plot: Plot::Lines(lines(&hosts, figure)),
    });
    Vec::from([Chart {
        name: format!("hosts-{number}"),
        title: "Each host".to_owned(),
        caption: "Error bars are 95 % confidence intervals. A ring: a host unlike the others."
            .to_owned(),
        panels: panels.collect(),
        one_at_a_time: false,
    }])
}

fn lines(hosts: &[&HostTrial], figure: &HostFigure) -> Lines {
    let scaled = |estimate: Estimate| Estimate {
        value: estimate.value * figure.scale,
        half_width: estimate.half_width.map(|half| half * figure.scale),
    };
    let measured: Vec<(usize, Estimate)> = hosts
        .iter()
        .enumerate()
        .filter_map(|(place, host)| Some((place, scaled((figure.of)(host)?))))
        .collect();
    let dot = |(place, estimate): (usize, Estimate)| Dot {
        x: place as f64,
        y: Some(estimate.value),
        half: estimate.half_width.map(|half| half.min(estimate.value)),
        label: String::new(),
        about: about(hosts[place]),
    };
    let series = |name: &str, paint, form, dots: Vec<Dot>| {
        let series = Series { name: name.to_owned(), paint, form, dots };
        (!series.dots.is_empty()).then_some(series)
    };
    let last = hosts.len() as f64 - 1.0;
    let mut values: Vec<f64> = measured.iter().map(|(_, one)| one.value).collect();
    let middle = if values.len() < 3 { None } else { median(&mut values) };
    let middle = middle.map(|value| {
        let end = |x: f64| Dot { x, half: None, ..dot((0, Estimate { value, half_width: None })) };
        let dots = [end(-0.4), end(last + 0.4)];
        dots.map(|dot| Dot { about: String::new(), ..dot }).to_vec()
    });
    let values: Vec<Estimate> = measured.iter().map(|(_, one)| *one).collect();
    let unlike = outliers(&values).into_iter().map(|one| measured[one.place]);
    let unlike = unlike.map(|(place, one)| Dot {
        half: None,
        label: hosts[place].host.clone(),
        ..dot((place, one))
    });
    // Zero has no place on an axis of ratios.
    let lost = hosts.iter().enumerate().filter(|(_, host)| host.lost.is_some() && !figure.is_ratio);
    let nothing = Estimate { value: 0.0, half_width: None };
    let lost = lost.map(|(place, _)| dot((place, nothing)));
    let series = [
        middle.and_then(|dots| series("median", Paint::Muted, Form::Line { dashed: true }, dots)),
        series(
            "",
            Paint::Nth(0),
            Form::Dots(Shape::Circle),
            measured.iter().map(|one| dot(*one)).collect(),
        ),
        series("unlike the others", Paint::Suspect, Form::Dots(Shape::Ring), unlike.collect()),
        series("lost", Paint::Void, Form::Dots(Shape::Cross), lost.collect()),
    ];
    let series: Vec<Series> = series.into_iter().flatten().collect();
    let y = match figure.is_ratio {
        true => Axis::of_ratios(figure.axis.to_owned(), &series),
        false => Axis::plain(figure.axis.to_owned(), Scale::FromZero),
    };
    Lines { x: host_axis(hosts), y, band: None, series }
}

/// The hosts by their names, or by their places in the list where they are many.
fn host_axis(hosts: &[&HostTrial]) -> Axis {
    let is_named = hosts.len() <= NAMED;
    let names: Vec<String> = hosts.iter().map(|host| host.host.clone()).collect();
    let ticks = short_names(&names).into_iter().enumerate();
    Axis {
        title: if is_named { "host" } else { "host, by its place in the list from 0" }.to_owned(),
        scale: Scale::Linear,
        ticks: ticks.map(|(place, name)| (place as f64, name)).filter(|_| is_named).collect(),
        range: Some((-0.6, hosts.len() as f64 - 0.4)),
    }
}

/// All facts about a host, for a reader who points at it.
fn about(host: &HostTrial) -> String {
    let mut lines = Vec::from([host.host.clone()]);
    let mut add = |name: &str, estimate: Option<Estimate>, text: fn(f64) -> String| {
        lines.extend(estimate.map(|one| {
            format!("{name} {} {}", text(one.value), plus_minus(Some(&one))).trim_end().to_owned()
        }));
    };
    add("IOPS", host.iops, figures::significant);
    add("p50", host.p50, figures::time);
    add("p99", host.p99, figures::time);
    lines.push(match (&host.lost, host.verdict) {
        (Some(lost), _) => format!("lost: {}", lost.why),
        (None, verdict) => verdict.map_or("unknown", |one| one.name()).to_owned(),
    });
    lines.join("\n")
}
