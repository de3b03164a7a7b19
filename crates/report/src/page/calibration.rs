//! The load generator's ceiling on a host: its table, its clock, its wake-ups, and the meaning of
//! each for a measurement made here.

use fathom_core::measure::Histogram;
use fathom_core::{Quantile, Span};

use super::{Block, Entry, Fact, Head, Page, Sentence, Table, Tone};
use crate::document::{Calibration, CalibrationRow, NullTarget};
use crate::figures;

/// A calibration for people.
pub fn calibration(found: &Calibration) -> Page {
    let mut blocks = Vec::new();
    if !found.rows.is_empty() {
        blocks.push(Block::Table(table(&found.rows)));
    }
    if !found.left_out.is_empty() {
        let fact = |name: &str, text: &str| Fact {
            tone: Tone::Quiet,
            ..Fact::new("left out", format!("{name}: {text}"))
        };
        let facts = found.left_out.iter().map(|one| fact(&one.what, &one.why));
        blocks.push(Block::Facts(facts.collect()));
    }
    blocks.push(Block::section("what follows", Vec::from([Block::List(sentences(found))])));
    let title = "What the load generator itself can do here".to_owned();
    Page {
        title,
        answer: Some(answer(found)),
        figures: None,
        about: Vec::from([Block::Facts(about(found))]),
        outcome: None,
        blocks,
    }
}

fn about(found: &Calibration) -> Vec<Fact> {
    let wake_up = match late(found) {
        Some((asked, late)) => format!(
            "{} sleeps of {} ended {}",
            figures::count(late.count()),
            figures::time(asked.0 as f64),
            quantiles(&late)
        ),
        None => "not measured".to_owned(),
    };
    let made = format!("{}, fathom {}", figures::moment(&found.created), found.fathom_version);
    Vec::from([
        Fact::new("host", figures::host(&found.host)),
        Fact::new("backend", format!("{}: {}", found.backend.name(), found.backend_reason)),
        Fact::new("clock", figures::clock(&found.host.clock)),
        Fact::new("wake-up", wake_up),
        Fact { tone: Tone::Quiet, ..Fact::new("made", made) },
    ])
}

/// How late the sleeps ended, if any was measured.
fn late(found: &Calibration) -> Option<(Span, Histogram)> {
    let wake_up = found.wake_up.as_ref()?;
    let late = wake_up.late.to_histogram();
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

fn table(rows: &[CalibrationRow]) -> Table {
    let caption = "The engine with next to nothing behind it: closed loops of random reads of 4 KiB, \
                   each of them timed and recorded.";
    let heads = ["queue depth", "CPU per I/O", "IOPS", "service time p50", "p99"];
    let mut table = Table::new(caption, heads.map(Head::figures));
    let mut group = None;
    for row in rows {
        if group.replace((row.target, row.workers)) != Some((row.target, row.workers)) {
            table.group(heading(row));
        }
        table.row(cells(row).map(Entry::figure));
    }
    table
}

fn heading(row: &CalibrationRow) -> String {
    let who = match row.workers {
        1 => "1 worker".to_owned(),
        n => format!("{n} workers, each at this queue depth"),
    };
    format!("{}, {who}", figures::null_target(row.target))
}

fn cells(row: &CalibrationRow) -> [String; 5] {
    let times = row.service_time.to_histogram();
    let at = |quantile| {
        let value = figures::carried(&times, Quantile(quantile));
        figures::or_unknown(value.map(|ns| figures::time(ns as f64)))
    };
    let iops = figures::per_second(row.ios, Span(row.window_ns));
    [
        row.queue_depth.to_string(),
        figures::or_unknown(per_io(row).map(figures::time)),
        figures::or_unknown(iops.map(figures::significant)),
        at(0.5),
        at(0.99),
    ]
}

/// CPU time of the workers for each I/O.
fn per_io(row: &CalibrationRow) -> Option<f64> {
    let cpu = row.cpu_ns.filter(|_| row.ios > 0)?;
    Some(cpu as f64 / row.ios as f64)
}

/// The rows of one worker on the simplest target that has any: with a ring, the cost of fathom
/// itself.
fn barest(found: &Calibration) -> (NullTarget, Vec<&CalibrationRow>) {
    let of = |target| -> Vec<&CalibrationRow> {
        found.rows.iter().filter(|row| row.workers == 1 && row.target == target).collect()
    };
    let ring = of(NullTarget::NopRing);
    match ring.is_empty() {
        true => (NullTarget::Zeros, of(NullTarget::Zeros)),
        false => (NullTarget::NopRing, ring),
    }
}

/// The least CPU time of an I/O, with its queue depth.
fn cheapest(rows: &[&CalibrationRow]) -> Option<(f64, u32)> {
    let costs = rows.iter().filter_map(|row| Some((per_io(row)?, row.queue_depth)));
    costs.min_by(|one, other| one.0.total_cmp(&other.0))
}

/// The p50 of the service time at queue depth 1, in nanoseconds.
fn shortest(rows: &[&CalibrationRow]) -> Option<u64> {
    let shallow = rows.iter().find(|row| row.queue_depth == 1)?;
    figures::carried(&shallow.service_time.to_histogram(), Quantile(0.5))
}

/// The two limits of fathom itself: "one worker can do up to 11.5M IOPS here, and the p50 of a
/// service time is 247 ns at least".
fn answer(found: &Calibration) -> Sentence {
    let (_, rows) = barest(found);
    let most = cheapest(&rows).map(|(cost, _)| {
        format!("one worker can do up to {} IOPS here", figures::short_rate(1e9 / cost))
    });
    let shortest = shortest(&rows)
        .map(|ns| format!("the p50 of a service time is {} at least", figures::time(ns as f64)));
    let both: Vec<String> = most.into_iter().chain(shortest).collect();
    match both.as_slice() {
        [] => Sentence::plain("too few I/Os for a figure"),
        both => Sentence { tone: Tone::Strong, text: both.join(", and ") },
    }
}

/// The conclusions for a reader of other numbers from this host.
fn sentences(found: &Calibration) -> Vec<String> {
    let mut sentences = Vec::new();
    let (barest, rows) = barest(found);
    if let Some((cost, depth)) = cheapest(&rows) {
        sentences.push(format!(
            "An I/O costs a worker at least {} of CPU, on {} at queue depth {depth}. A trial that \
             comes to more than half of what its workers can do measures them.",
            figures::time(cost),
            figures::null_target(barest),
        ));
    }
    if let Some(ns) = shortest(&rows) {
        let what = match barest {
            NullTarget::NopRing => "an I/O that does nothing",
            NullTarget::Zeros => "a read of /dev/zero",
        };
        sentences.push(format!(
            "At queue depth 1 {what} takes {} at the p50: no p50 of a service time that is measured in \
             this way can be shorter.",
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
