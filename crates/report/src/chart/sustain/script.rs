//! The points that follow the rounds of a test: more and more demand, or a load that pauses or
//! changes, whose course over time is the subject of the test.

use fathom_core::Quantile;

use super::{Watched, about_trial, is_after_rounds, panel};
use crate::chart::{
    Axis, BARS, Chart, Dot, Form, Lines, Paint, Panel, Plot, Scale, Series, Shape, labeled, loops,
    sweep,
};
use crate::document::{Coordinate, Document, Role, SustainFound, Trial};
use crate::figures;
use crate::results::{QUANTILES, Results, Spot};

/// Tests that have such a part.
const DEMAND: &str = "demand-intensity";
const IDLE: &str = "host-idle-recovery";
const PHASES: &str = "cross-stimulus-recovery";

/// Whether the test goes on when its rounds are over.
pub fn is_one(found: &SustainFound) -> bool {
    [DEMAND, IDLE, PHASES].contains(&found.test.as_str())
}

/// The charts of the points after the rounds; none before the first of them.
pub fn charts(document: &Document, found: &SustainFound) -> Vec<Chart> {
    let results = Results::of_those(document, is_after_rounds);
    if !is_one(found) || results.spots.is_empty() {
        return Vec::new();
    }
    match found.test.as_str() {
        DEMAND => demand(document, &results),
        IDLE => {
            let mut charts = Vec::from([over_time(document, found, Watched::Iops)]);
            let by_pause = sweep::charts(document, &results);
            charts.extend(by_pause.into_iter().filter(|chart| chart.name != "bandwidth"));
            charts
        }
        _ => Vec::from([over_time(document, found, Watched::Bandwidth)]),
    }
}

/// The effect of more and more I/Os in flight: the response time against the throughput, and the
/// throughput against their number, a line for each number of workers.
fn demand(document: &Document, results: &Results<'_>) -> Vec<Chart> {
    let mut charts = Vec::from([price(document, results), outstanding(document, results)]);
    let of_a_sweep = sweep::charts(document, results);
    charts.extend(of_a_sweep.into_iter().filter(|chart| chart.name.ends_with("-matrix")));
    charts
}

/// The number on an axis at a place.
fn number(spot: &Spot<'_>, axis: &str) -> Option<f64> {
    spot.coordinates.iter().find(|one| one.axis == axis).and_then(|one| one.value)
}

/// I/Os in flight of all workers together.
fn in_flight(spot: &Spot<'_>) -> Option<f64> {
    Some(number(spot, "workers")? * number(spot, "queue-depth")?)
}

/// A line for each number of workers, by rising depth, with the figure at each place.
fn by_workers(results: &Results<'_>, dot: impl Fn(&Spot<'_>) -> Option<Dot>) -> Vec<Series> {
    let mut numbers: Vec<f64> =
        results.spots.iter().filter_map(|spot| number(spot, "workers")).collect();
    numbers.sort_by(f64::total_cmp);
    numbers.dedup();
    let line = |(nth, workers): (usize, &f64)| {
        let own = results.spots.iter().filter(|spot| number(spot, "workers") == Some(*workers));
        let mut own: Vec<&Spot<'_>> = own.collect();
        let depth = |spot: &Spot<'_>| number(spot, "queue-depth").unwrap_or(0.0);
        own.sort_by(|one, other| depth(one).total_cmp(&depth(other)));
        let unit = if *workers == 1.0 { "worker" } else { "workers" };
        Series {
            name: format!("{workers} {unit}"),
            paint: Paint::Nth(nth),
            form: Form::Dotted(Shape::nth(nth)),
            dots: own.into_iter().filter_map(&dot).collect(),
        }
    };
    numbers.iter().enumerate().map(line).collect()
}

/// All facts about a place, for a reader who points at it.
fn about(spot: &Spot<'_>) -> String {
    let total = in_flight(spot).map(|total| format!("{total} in flight together\n"));
    format!("{}{}", total.unwrap_or_default(), sweep::about(spot))
}

fn price(document: &Document, results: &Results<'_>) -> Chart {
    let quantiles = QUANTILES.iter().enumerate().take(2);
    let panels = quantiles.map(|(nth, quantile): (usize, &Quantile)| {
        let series = by_workers(results, |spot| {
            let estimate = spot.summary.quantiles[nth]?;
            Some(Dot {
                x: spot.summary.iops?.value,
                y: Some(estimate.value / 1e6),
                half: estimate.half_width.map(|half| half.min(estimate.value * 0.99) / 1e6),
                label: String::new(),
                about: about(spot),
            })
        });
        let x = Axis::plain("IOPS", Scale::FromZero);
        let y = Axis::of_ratios(format!("{quantile}, ms (logarithmic)"), &series);
        let plot = Plot::Lines(Lines { x, y, band: None, series });
        Panel { title: format!("{quantile} of the response time"), plot }
    });
    Chart {
        name: "demand".to_owned(),
        title: "Response time against throughput".to_owned(),
        caption: format!(
            "p50 and p99 of the response time in ms against IOPS, {}; along each line the I/Os in \
             flight of each worker rise. {BARS}",
            loops(document)
        ),
        panels: panels.collect(),
        one_at_a_time: false,
    }
}

fn outstanding(document: &Document, results: &Results<'_>) -> Chart {
    let series = by_workers(results, |spot| {
        let iops = spot.summary.iops?;
        Some(Dot {
            x: in_flight(spot)?,
            y: Some(iops.value),
            half: iops.half_width.map(|half| half.min(iops.value)),
            label: String::new(),
            about: about(spot),
        })
    });
    let mut all: Vec<f64> = series.iter().flat_map(|one| &one.dots).map(|dot| dot.x).collect();
    all.sort_by(f64::total_cmp);
    let most = all.last().copied().unwrap_or(1.0);
    let octaves = (0..31).map(|octave| f64::from(1u32 << octave)).take_while(|one| *one <= most);
    let ticks = octaves.filter(|one| all.first().is_some_and(|least| least <= one));
    let x = Axis {
        title: "I/Os in flight, all workers together".to_owned(),
        scale: Scale::Log,
        ticks: labeled(ticks.collect()),
        range: all.first().map(|least| (least / 1.3, most * 1.3)),
    };
    let y = Axis::plain("IOPS", Scale::FromZero);
    Chart {
        name: "outstanding".to_owned(),
        title: "IOPS by I/Os in flight".to_owned(),
        caption: format!("I/Os per second, {}. {BARS}", loops(document)),
        panels: panel(Lines { x, y, band: None, series }),
        one_at_a_time: false,
    }
}

/// A trial on the axis of time.
struct Moment<'t> {
    trial: &'t Trial,
    /// Its place, in the order of the test; none in the rounds before.
    state: Option<&'t Coordinate>,
    /// The middle of its window, in seconds since the first of them began.
    at: f64,
}

/// The rounds and the points after them in their order. The time is that of the loads and of the
/// pauses that were asked for: no other time passes on a simulated device.
fn moments(document: &Document) -> Vec<Moment<'_>> {
    let mut now = 0.0;
    let trials = document.trials.iter().filter(|trial| trial.place.role == Role::Result);
    let moment = |trial| {
        let state = is_after_rounds(trial).then(|| trial.place.coordinates.first()).flatten();
        let pause = state.filter(|one| one.axis == "idle").and_then(|one| one.value);
        now += pause.unwrap_or(0.0) + trial.point.warm_up.as_secs_f64();
        let at = now + trial.window().as_secs_f64() / 2.0;
        now += trial.window().as_secs_f64() + trial.point.cool_down.as_secs_f64();
        Moment { trial, state, at }
    };
    trials.map(moment).collect()
}

/// A unit in which this many seconds are a few tens or hundreds.
fn unit_of(seconds: f64) -> (f64, &'static str) {
    match seconds {
        all if all <= 600.0 => (1.0, "s"),
        all if all <= 36_000.0 => (60.0, "min"),
        _ => (3600.0, "h"),
    }
}

fn over_time(document: &Document, found: &SustainFound, watched: Watched) -> Chart {
    let moments = moments(document);
    let end = moments.last().map_or(0.0, |last| last.at);
    let (second, unit) = unit_of(end);
    let mut states: Vec<Option<&Coordinate>> = Vec::new();
    for moment in &moments {
        if !states.contains(&moment.state) {
            states.push(moment.state);
        }
    }
    let value = |trial: &Trial| match watched {
        Watched::Bandwidth => figures::per_second(trial.total(None).bytes.0, trial.window()),
        Watched::Iops | Watched::Time => {
            figures::per_second(trial.total(None).ios(), trial.window())
        }
    };
    let line = |(nth, state): (usize, &Option<&Coordinate>)| {
        let own = moments.iter().filter(|moment| moment.state == *state);
        let dots = own.map(|moment| {
            Dot::plain(
                moment.at / second,
                value(moment.trial).map(|value| watched.read(value)),
                about_trial(moment.trial),
            )
        });
        let (name, paint) = match state {
            None => ("rounds before".to_owned(), Paint::Muted),
            Some(one) if one.axis == "idle" => {
                (format!("after pauses of {}", one.label), Paint::Nth(nth))
            }
            Some(one) => {
                let first = moments.iter().find(|moment| moment.state == *state);
                (phase(&one.label, first.map(|moment| moment.trial)), Paint::Nth(nth))
            }
        };
        Series { name, paint, form: Form::Dotted(Shape::nth(nth)), dots: dots.collect() }
    };
    let mut series: Vec<Series> = states.iter().enumerate().map(line).collect();
    series.splice(0..0, steady(found, watched, end / second));
    let (name, title) = match watched {
        Watched::Bandwidth => ("Bandwidth", "MiB/s"),
        Watched::Iops | Watched::Time => ("IOPS", "IOPS"),
    };
    let x = Axis {
        title: format!("time of the loads and pauses, {unit}"),
        scale: Scale::Linear,
        ticks: Vec::new(),
        range: Some((-0.02 * end / second, 1.02 * end / second)),
    };
    let y = Axis::plain(title, Scale::FromZero);
    Chart {
        name: "recovery".to_owned(),
        title: format!("{name} over time"),
        caption: format!(
            "{title} of each trial, {}, in the order in which they were run; the time between them \
             is left out but for pauses that were asked for.",
            loops(document)
        ),
        panels: panel(Lines { x, y, band: None, series }),
        one_at_a_time: false,
    }
}

/// "large: sequential write 1 MiB": a phase with the load of its trials.
fn phase(label: &str, trial: Option<&Trial>) -> String {
    let load = trial.and_then(|trial| trial.point.name.split_once(": "));
    load.map_or(label.to_owned(), |(_, load)| format!("{label}: {load}"))
}

/// The level of the rounds before, from one end to the other.
fn steady(found: &SustainFound, watched: Watched, end: f64) -> Option<Series> {
    let mean = found.steadiness.as_ref()?.mean;
    let name = match found.steady_from {
        Some(_) => "steady state",
        None => "last rounds before, not steady",
    };
    let dot =
        |x: f64| Dot::plain(x, Some(watched.read(mean)), format!("{name}\n{}", watched.text(mean)));
    Some(Series {
        name: name.to_owned(),
        paint: Paint::Ink,
        form: Form::Line { dashed: true },
        dots: Vec::from([dot(0.0), dot(end)]),
    })
}
