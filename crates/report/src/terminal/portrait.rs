//! The portrait of a storage: one table, a row for each step, then the doubts, each said once.

use fathom_core::Quantile;
use fathom_core::facts::{Answer, Reduction};

use super::text::{Align, Table, Tint, push_line, wrap};
use super::{Style, finding, tail, verdict_tint};
use crate::document::{BackendKind, Document, Trial, Verdict};
use crate::figures::{self, Summary, plus_minus};

/// From this width on a step takes one row; below, its half-widths stand in a second one.
const ROOMY: usize = 112;

/// The percentiles of the table.
const QUANTILES: [Quantile; 3] = [Quantile(0.5), Quantile(0.99), Quantile(0.999)];

/// A portrait of the storage that the document's steps measured.
pub fn portrait(document: &Document, style: &Style) -> String {
    let mut out = String::new();
    for target in &document.header.targets {
        wrap(&mut out, "", figures::place_name(target), Tint::Bold, style);
        wrap(&mut out, "", &figures::stack(target), Tint::Plain, style);
        // What it saves on stands with the doubts about each step.
        let reduction = target.reduction;
        for sentence in reduction
            .filter(|one| one.reduces() != Answer::Yes)
            .iter()
            .flat_map(Reduction::sentences)
        {
            wrap(&mut out, "", &sentence, Tint::Dim, style);
        }
    }
    push_line(&mut out, "");
    if !document.trials.is_empty() {
        table(&mut out, document, style);
        wrap(&mut out, "", &legend(&document.trials), Tint::Dim, style);
        if let Some(text) = ceiling(document) {
            wrap(&mut out, "", &text, Tint::Dim, style);
        }
        push_line(&mut out, "");
        doubts(&mut out, &document.trials, style);
    }
    tail(&mut out, document, style);
    out
}

/// What the columns mean, and which loop it was.
fn legend(trials: &[Trial]) -> String {
    let open = trials.iter().filter(|trial| trial.is_open()).count();
    let time = match open {
        0 => "service times; closed loop at the queue depth",
        n if n == trials.len() => "response times; open loop",
        _ => "response times, which in the closed loops equal the service times",
    };
    let backend = trials[0].backend;
    let access = figures::same_access(&trials[0]);
    let access = access.unwrap_or_else(|| "access by stream".to_owned());
    let how = match trials.iter().all(|trial| trial.backend == backend) {
        true if backend == BackendKind::Sim => "virtual time".to_owned(),
        true => format!("{access} through {}", backend.name()),
        false => access,
    };
    format!("p50, p99, p99.9: {time}; {how}. ±: half of the 95 % interval.")
}

/// How far the load generator was from its own limit, in the step that came nearest to it.
fn ceiling(document: &Document) -> Option<String> {
    let trials = document.trials.iter().enumerate();
    let known = trials.filter_map(|(place, trial)| {
        let ceiling = figures::ceiling(document, trial)?;
        Some((place + 1, ceiling.times?, ceiling.target))
    });
    let (step, times, target) = known.min_by(|one, other| one.1.total_cmp(&other.1))?;
    let many = document.trials.len() > 1;
    let least = if many { "at least " } else { "" };
    let nearest = if many { format!(" (step {step} is the nearest)") } else { String::new() };
    Some(format!(
        "The generator could have done {least}{}{nearest}: on {} instead of the target.",
        figures::times_as_many(times),
        figures::null_target(target),
    ))
}

fn table(out: &mut String, document: &Document, style: &Style) {
    let roomy = style.width >= ROOMY;
    let mut columns = vec![(Align::Right, 0), (Align::Left, 1)];
    for place in 0..5 {
        columns.push((Align::Right, if place == 0 || roomy { 3 } else { 2 }));
        if roomy {
            columns.push((Align::Left, 1));
        }
    }
    columns.push((Align::Left, 2));
    let mut table = Table::new(&columns);
    let heads = ["IOPS", "MiB/s", "p50", "p99", "p99.9"].into_iter();
    let heads = heads.flat_map(|head| match roomy {
        true => vec![head.to_owned(), String::new()],
        false => vec![head.to_owned()],
    });
    table.row(Tint::Dim, [String::new(), String::new()].into_iter().chain(heads));
    for (place, trial) in document.trials.iter().enumerate() {
        let summary = figures::summary(trial, None, &QUANTILES);
        let number = (format!("{}", place + 1), Tint::Dim);
        let (name, second) = figures::names(trial);
        let verdict = match trial.verdict {
            Verdict::Sound => (String::new(), Tint::Plain),
            other => (other.name().to_owned(), verdict_tint(other)),
        };
        let (values, halves) = cells(&summary);
        if roomy {
            let name = format!("{name}, {second}");
            let pairs = values.into_iter().zip(halves);
            let cells = pairs.flat_map(|(value, half)| [(value, Tint::Plain), (half, Tint::Dim)]);
            table.tinted([number, (name, Tint::Plain)].into_iter().chain(cells).chain([verdict]));
        } else {
            let cells = values.into_iter().map(|value| (value, Tint::Plain));
            table.tinted([number, (name, Tint::Plain)].into_iter().chain(cells).chain([verdict]));
            let halves = halves.into_iter().map(|half| (half, Tint::Dim));
            let start = [(String::new(), Tint::Plain), (format!("  {second}"), Tint::Dim)];
            table.tinted(start.into_iter().chain(halves));
        }
    }
    table.render(out, style);
}

/// The values of a row and their half-widths.
fn cells(summary: &Summary) -> (Vec<String>, Vec<String>) {
    let rate = |value: Option<f64>| value.map_or("-".to_owned(), figures::short_rate);
    let bandwidth = summary.bandwidth.map(|estimate| figures::mib(estimate.value));
    let mut values = vec![
        rate(summary.iops.map(|estimate| estimate.value)),
        bandwidth.map_or("-".to_owned(), figures::rate),
    ];
    let mut halves =
        vec![plus_minus(summary.iops.as_ref()), plus_minus(summary.bandwidth.as_ref())];
    for estimate in &summary.quantiles {
        values.push(estimate.map_or("-".to_owned(), |estimate| figures::time(estimate.value)));
        halves.push(plus_minus(estimate.as_ref()));
    }
    (values, halves)
}

/// Every finding once, with the steps that have it; the gravest first.
pub(super) fn doubts(out: &mut String, trials: &[Trial], style: &Style) {
    let groups = figures::doubts(trials);
    if groups.is_empty() {
        let all = trials.iter().flat_map(|trial| &trial.unchecked).count();
        let text = if all == 0 { "No doubts" } else { "No doubts in what could be checked" };
        let text = format!("{text}{}.", figures::left_open(trials));
        wrap(out, "", &text, Tint::Good, style);
        return;
    }
    push_line(out, &Tint::Bold.paint("doubts", style));
    for doubt in groups {
        finding(out, doubt.finding, &doubt.whose, style);
    }
    let missing = figures::missing_checks(trials);
    if !missing.is_empty() {
        let text =
            format!("not checked: {}; `fathom report --details` says why.", missing.join(", "));
        wrap(out, "  ", &text, Tint::Dim, style);
    }
}
