//! What the load generator itself can do on a host: its table, its clock, its wake-ups, and what each
//! of them means for a measurement made here.

use fathom_core::measure::Histogram;
use fathom_core::{Quantile, Span};

use super::Style;
use super::text::{Align, Table, Tint, push_line, wrap};
use crate::document::{Calibration, CalibrationRow, NullTarget};
use crate::figures;

/// A calibration for people.
pub fn calibration(found: &Calibration, style: &Style) -> String {
    let mut out = String::new();
    head(&mut out, found, style);
    if !found.rows.is_empty() {
        push_line(&mut out, "");
        let about = "The engine with next to nothing behind it: closed loops of random reads of 4 \
                     KiB, each of them timed and recorded.";
        wrap(&mut out, "", about, Tint::Bold, style);
        table(&mut out, &found.rows, style);
    }
    left_out(&mut out, found, style);
    push_line(&mut out, "");
    push_line(&mut out, &Tint::Bold.paint("what follows", style));
    for sentence in sentences(found) {
        wrap(&mut out, "  - ", &sentence, Tint::Plain, style);
    }
    out
}

fn head(out: &mut String, found: &Calibration, style: &Style) {
    let host = &found.host;
    let mut facts = vec![format!("{}: Linux {}, {} CPUs", host.name, host.kernel, host.cpus)];
    facts.extend(host.cpu_model.clone());
    facts.push(figures::memory(host.memory));
    facts.extend(host.virtualization.clone());
    wrap(out, "host      ", &facts.join(", "), Tint::Plain, style);
    let backend = format!("{}: {}", found.backend.name(), found.backend_reason);
    wrap(out, "backend   ", &backend, Tint::Plain, style);
    let clock = format!(
        "{}: a reading costs {}, its smallest step is {}",
        host.clock.source,
        figures::time(host.clock.cost_ns),
        figures::time(host.clock.resolution_ns)
    );
    wrap(out, "clock     ", &clock, Tint::Plain, style);
    let wake_up = match late(found) {
        Some((asked, late)) => format!(
            "{} sleeps of {} ended {}",
            figures::count(late.count()),
            figures::time(asked.0 as f64),
            quantiles(&late)
        ),
        None => "not measured".to_owned(),
    };
    wrap(out, "wake-up   ", &wake_up, Tint::Plain, style);
    let made = format!("{}, fathom {}", found.created, found.fathom_version);
    wrap(out, "made      ", &made, Tint::Dim, style);
}

/// How late the sleeps ended, if any was measured.
fn late(found: &Calibration) -> Option<(Span, Histogram)> {
    let wake_up = found.wake_up.as_ref()?;
    let mut late = Histogram::default();
    late.merge_sparse(&wake_up.late.to_sparse());
    (late.count() > 0).then_some((Span(wake_up.asked_ns), late))
}

/// "late by 35 us at the p50, 58 us at the p99 and 170 us at most".
fn quantiles(late: &Histogram) -> String {
    let at = |quantile: Quantile| {
        let value = figures::carried(late, quantile)?;
        Some(format!("{} at the {quantile}", figures::time(value as f64)))
    };
    let parts: Vec<String> = [Quantile(0.5), Quantile(0.99)].into_iter().filter_map(at).collect();
    let max = late.max().map_or("?".to_owned(), |ns| figures::time(ns as f64));
    match parts.is_empty() {
        true => format!("late by {max} at most"),
        false => format!("late by {} and {max} at most", parts.join(", ")),
    }
}

fn table(out: &mut String, rows: &[CalibrationRow], style: &Style) {
    let gap = if style.width >= 100 { 4 } else { 2 };
    let right = (Align::Right, gap);
    let mut table = Table::new(&[(Align::Right, 4), right, right, right, right]);
    let heads = ["queue depth", "CPU per I/O", "IOPS", "service time p50", "p99"];
    table.row(Tint::Dim, heads.map(str::to_owned));
    let mut group = None;
    for row in rows {
        if group.replace((row.target, row.workers)) != Some((row.target, row.workers)) {
            table.heading(&heading(row));
        }
        table.row(Tint::Plain, cells(row));
    }
    table.render(out, style);
}

fn heading(row: &CalibrationRow) -> String {
    let who = match row.workers {
        1 => "1 worker".to_owned(),
        n => format!("{n} workers, each at this queue depth"),
    };
    format!("{}, {who}", figures::null_target(row.target))
}

fn cells(row: &CalibrationRow) -> [String; 5] {
    let mut times = Histogram::default();
    times.merge_sparse(&row.service_time.to_sparse());
    let none = || "-".to_owned();
    let at = |quantile| {
        figures::carried(&times, Quantile(quantile))
            .map_or_else(none, |ns| figures::time(ns as f64))
    };
    [
        row.queue_depth.to_string(),
        per_io(row).map_or_else(none, figures::time),
        figures::per_second(row.ios, Span(row.window_ns)).map_or_else(none, figures::short_rate),
        at(0.5),
        at(0.99),
    ]
}

/// CPU time of the workers for each I/O.
fn per_io(row: &CalibrationRow) -> Option<f64> {
    let cpu = row.cpu_ns.filter(|_| row.ios > 0)?;
    Some(cpu as f64 / row.ios as f64)
}

fn left_out(out: &mut String, found: &Calibration, style: &Style) {
    if found.left_out.is_empty() {
        return;
    }
    push_line(out, "");
    for one in &found.left_out {
        wrap(out, "left out  ", &format!("{}: {}", one.what, one.why), Tint::Dim, style);
    }
}

/// What a reader of other numbers from this host may conclude.
fn sentences(found: &Calibration) -> Vec<String> {
    let mut sentences = Vec::new();
    let alone = found.rows.iter().filter(|row| row.workers == 1);
    let alone: Vec<&CalibrationRow> = alone.collect();
    // The barest target that there is a row of: with a ring, what fathom itself costs.
    let barest = match alone.iter().any(|row| row.target == NullTarget::NopRing) {
        true => NullTarget::NopRing,
        false => NullTarget::Zeros,
    };
    let bare: Vec<&CalibrationRow> = alone.into_iter().filter(|row| row.target == barest).collect();
    let cheapest = bare.iter().filter_map(|row| Some((per_io(row)?, row.queue_depth)));
    if let Some((cost, depth)) = cheapest.min_by(|one, other| one.0.total_cmp(&other.0)) {
        sentences.push(format!(
            "One worker can do up to {} IOPS: {} of CPU for each, on {} at queue depth {depth}. A \
             trial that comes to more than half of what its workers can do measures them.",
            figures::short_rate(1e9 / cost),
            figures::time(cost),
            figures::null_target(barest),
        ));
    }
    let shallow = bare.iter().find(|row| row.queue_depth == 1);
    let shortest = shallow.and_then(|row| {
        let mut times = Histogram::default();
        times.merge_sparse(&row.service_time.to_sparse());
        figures::carried(&times, Quantile(0.5))
    });
    if let Some(ns) = shortest {
        let what = match barest {
            NullTarget::NopRing => "an I/O that does nothing",
            NullTarget::Zeros => "a read of /dev/zero",
        };
        sentences.push(format!(
            "No service time can be shorter than {what} takes here at queue depth 1, which is {} at \
             the p50.",
            figures::time(ns as f64)
        ));
    }
    if let Some(median) = late(found).and_then(|(_, late)| figures::carried(&late, Quantile(0.5))) {
        sentences.push(format!(
            "A timer wakes a thread {} late at the p50: this is why an open loop spins shortly \
             before an I/O falls due.",
            figures::time(median as f64)
        ));
    }
    sentences
}
