//! Where the time of I/Os went, from the fastest to the slowest.

use fathom_core::figures::{percent, time};
use fathom_core::watch::{Band, Breakdown, FlowBreakdown, Operation, Parts};

use super::{Axis, Chart, Dot, Form, Lines, Paint, Plot, Scale, Series};
use crate::figures;

/// The operation, for one of its I/Os and for several.
pub fn names(operation: Operation) -> (&'static str, &'static str) {
    match operation {
        Operation::Read => ("read", "reads"),
        Operation::Write => ("write", "writes"),
        Operation::Discard => ("trim", "trims"),
        Operation::Flush => ("flush", "flushes"),
        Operation::Other => ("other", "others"),
    }
}

/// "p50 to p90".
pub fn band_name(band: &Band) -> String {
    match (band.from.0, band.to.0) {
        (0.0, 1.0) => "all".to_owned(),
        (0.0, _) => format!("up to {}", band.to),
        (_, 1.0) => format!("above {}", band.from),
        _ => format!("{} to {}", band.from, band.to),
    }
}

/// A chart for each operation with several bands.
pub fn charts(breakdown: &Breakdown, number: usize) -> Vec<Chart> {
    let with_bands = breakdown.flows.iter().filter(|flow| flow.bands.len() > 1);
    let chart = |flow: &FlowBreakdown| {
        let (one, many) = names(flow.operation);
        Chart::of_one(
            format!("parts-{one}-{number}"),
            format!("Where the time of {many} went"),
            "Share of the service time, from the fastest I/Os at the left to the slowest."
                .to_owned(),
            Plot::Lines(shares(flow)),
        )
    };
    with_bands.map(chart).collect()
}

fn shares(flow: &FlowBreakdown) -> Lines {
    let names = Parts::default().named().map(|(name, _)| name);
    let series = names.into_iter().enumerate().map(|(part, name)| {
        let dots = flow.bands.iter().enumerate().filter_map(|(place, band)| {
            let means = band.means()?;
            let whole: f64 = means.iter().sum();
            let share = means[part] / whole.max(1.0);
            let about = format!(
                "{}, {} I/Os\n{name}: {} of {}, {}",
                band_name(band),
                figures::count(band.ios),
                time(means[part]),
                time(whole),
                percent(share)
            );
            let y = Some(share * 100.0);
            Some(Dot::plain(place as f64, y, about))
        });
        Series {
            name: name.to_owned(),
            paint: Paint::Nth(part),
            form: Form::Bars,
            dots: dots.collect(),
        }
    });
    let ticks = flow.bands.iter().enumerate();
    Lines {
        x: Axis {
            title: "percentiles of the service time".to_owned(),
            scale: Scale::Linear,
            ticks: ticks.map(|(place, band)| (place as f64, band_name(band))).collect(),
            range: Some((-0.6, flow.bands.len() as f64 - 0.4)),
        },
        y: Axis {
            title: "% of the service time".to_owned(),
            scale: Scale::FromZero,
            ticks: Vec::new(),
            range: Some((0.0, 100.0)),
        },
        band: None,
        series: series.collect(),
    }
}
