//! An experiment: a table with a row for each place on its axes, all trials there together, then the
//! doubts, each said once, and what was concluded.

use fathom_core::Quantile;

use super::text::{Align, Table, Tint, push_line, wrap};
use super::{Style, head, portrait, tail, verdict_tint};
use crate::document::{Document, Role, Trial, Verdict};
use crate::figures::{self, plus_minus};

/// The percentiles of the table.
const QUANTILES: [Quantile; 2] = [Quantile(0.5), Quantile(0.99)];

/// An experiment with its trials by their places, and its conclusion.
pub fn experiment(document: &Document, style: &Style) -> String {
    let mut out = String::new();
    head(&mut out, document, style);
    push_line(&mut out, "");
    if !document.trials.is_empty() {
        table(&mut out, document, style);
        wrap(&mut out, "", &legend(&document.trials), Tint::Dim, style);
        push_line(&mut out, "");
        portrait::doubts(&mut out, &document.trials, style);
        push_line(&mut out, "");
    }
    tail(&mut out, document, style);
    out
}

/// The trials at one place.
struct Row<'a> {
    /// Where it stands in the order of the axes.
    order: Vec<usize>,
    trials: Vec<&'a Trial>,
}

/// The trials by their places: in the order of the axes' values, and of their first trials where an
/// axis has no such value. Each role by itself.
fn rows(document: &Document) -> Vec<Row<'_>> {
    let axes = document.header.experiment.as_ref().map_or(&[][..], |one| &one.axes);
    let mut rows: Vec<Row<'_>> = Vec::new();
    for (number, trial) in document.trials.iter().enumerate() {
        let place = &trial.place;
        let same = |row: &&mut Row<'_>| {
            let known = &row.trials[0].place;
            known.role == place.role && known.coordinates == place.coordinates
        };
        // What has no place on an axis stands by itself.
        let found = rows.iter_mut().find(same).filter(|_| !place.coordinates.is_empty());
        if let Some(row) = found {
            row.trials.push(trial);
            continue;
        }
        let on_axis = |one: &crate::document::Coordinate| {
            let axis = axes.iter().find(|axis| axis.name == one.axis)?;
            axis.labels.iter().position(|label| *label == one.label)
        };
        let places: Option<Vec<usize>> = place.coordinates.iter().map(on_axis).collect();
        let order = places.filter(|places| !places.is_empty());
        rows.push(Row {
            order: order.unwrap_or(Vec::from([usize::MAX, number])),
            trials: Vec::from([trial]),
        });
    }
    rows.sort_by(|one, other| one.order.cmp(&other.order));
    rows
}

fn table(out: &mut String, document: &Document, style: &Style) {
    let rows = rows(document);
    let axes: Vec<String> = rows
        .iter()
        .map(|row| &row.trials[0].place.coordinates)
        .max_by_key(|coordinates| coordinates.len())
        .map(|coordinates| coordinates.iter().map(|one| one.axis.clone()).collect())
        .unwrap_or_default();
    let roles = rows.iter().any(|row| row.trials[0].place.role != Role::Result);
    let mut columns = vec![(Align::Right, 2); axes.len().max(1)];
    if roles {
        columns.push((Align::Left, 2));
    }
    columns.extend([(Align::Right, 2), (Align::Right, 2), (Align::Left, 1)]);
    columns.extend([(Align::Right, 2), (Align::Right, 2), (Align::Right, 2), (Align::Left, 2)]);
    let mut table = Table::new(&columns);
    let mut heads = if axes.is_empty() { vec![String::new()] } else { axes.clone() };
    if roles {
        heads.push(String::new());
    }
    heads.extend(["n", "IOPS", "", "MiB/s", "p50", "p99", ""].map(str::to_owned));
    table.row(Tint::Dim, heads);
    for row in &rows {
        table.tinted(cells(row, axes.len(), roles));
    }
    table.render(out, style);
}

/// A row's cells: where it lies, then its figures.
fn cells(row: &Row<'_>, axes: usize, roles: bool) -> Vec<(String, Tint)> {
    let first = row.trials[0];
    let place = &first.place;
    let mut cells: Vec<(String, Tint)> =
        place.coordinates.iter().map(|one| (one.label.clone(), Tint::Plain)).collect();
    if cells.is_empty() {
        cells.push((first.point.name.clone(), Tint::Plain));
    }
    cells.resize(axes.max(1), (String::new(), Tint::Plain));
    if roles {
        cells.push((role(place.role).to_owned(), Tint::Dim));
    }
    let seconds: f64 = row.trials.iter().map(|trial| trial.window().as_secs_f64()).sum();
    let mut whole = first.total(None);
    row.trials[1..].iter().for_each(|trial| whole.merge(&trial.total(None)));
    let rate = |amount: f64| (seconds > 0.0).then(|| amount / seconds);
    let shown = |value: Option<f64>| value.map_or("-".to_owned(), figures::short_rate);
    cells.push((row.trials.len().to_string(), Tint::Dim));
    cells.push((shown(rate(whole.ios() as f64)), Tint::Bold));
    cells.push((uncertainty(row), Tint::Dim));
    let mib = rate(whole.bytes.0 as f64).map(figures::mib);
    cells.push((mib.map_or("-".to_owned(), figures::rate), Tint::Plain));
    for quantile in QUANTILES {
        let time = figures::carried(whole.response_time(), quantile);
        cells.push((time.map_or("-".to_owned(), |ns| figures::time(ns as f64)), Tint::Plain));
    }
    let gravest = row.trials.iter().map(|trial| trial.verdict).max().unwrap_or(Verdict::Sound);
    cells.push(match gravest {
        Verdict::Sound => (String::new(), Tint::Plain),
        other => (other.name().to_owned(), verdict_tint(other)),
    });
    cells
}

/// Of one trial half of its interval, of several half of what they range over.
fn uncertainty(row: &Row<'_>) -> String {
    if let [only] = row.trials.as_slice() {
        return plus_minus(figures::summary(only, None, &[]).iops.as_ref());
    }
    let rates = row.trials.iter().filter_map(|trial| {
        let seconds = trial.window().as_secs_f64();
        (seconds > 0.0).then(|| trial.total(None).ios() as f64 / seconds)
    });
    let (low, high) = rates.fold((f64::INFINITY, 0.0), |(low, high): (f64, f64), rate| {
        (low.min(rate), high.max(rate))
    });
    match high > 0.0 && low.is_finite() {
        true => format!("±{}", figures::percent((high - low) / (high + low))),
        false => String::new(),
    }
}

fn role(role: Role) -> &'static str {
    match role {
        Role::Result => "",
        Role::Preparation => "preparation",
        Role::Probe => "probe",
        Role::Official => "official",
        Role::Validation => "validation",
        Role::Sentinel => "sentinel",
    }
}

/// What the columns mean.
fn legend(trials: &[Trial]) -> String {
    let open = trials.iter().filter(|trial| trial.is_open()).count();
    let time = match open {
        0 => "service times; closed loop at the queue depth",
        n if n == trials.len() => "response times; open loop",
        _ => "response times, which in the closed loops equal the service times",
    };
    format!(
        "n: trials. p50, p99: {time}, of all trials together. ±: half of the 95 % interval; of \
         several trials half of what they range over."
    )
}
