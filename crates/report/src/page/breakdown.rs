//! Where the time of a trial's I/Os went, and its slowest I/Os.

use fathom_core::figures::{percent, time};
use fathom_core::watch::{Breakdown, FlowBreakdown, HostThen, Neighbor, Parts, SlowIo};
use fathom_core::{Bytes, Span};

use super::overview::draws_trials;
use super::{Block, Drawing, Entry, Head, Level, Section, Sentence, Spare, Table, Tone};
use crate::chart;
use crate::chart::breakdown::{band_name, names};
use crate::document::{Document, Trial};
use crate::figures::{self, or_unknown};

/// The slowest I/Os that are listed, by the level of the page.
const LISTED: [(Level, usize); 3] = [(Level::Trials, 5), (Level::Full, 20), (Level::Complete, 100)];

/// The I/Os that a band has to have before a sentence is about it.
const IOS_MIN: u64 = 10;

/// The section of a trial, with its number, from 1; none if nobody asked for it.
pub fn section(document: &Document, trial: &Trial, number: usize, level: Level) -> Option<Block> {
    let breakdown = trial.breakdown.as_ref()?;
    let heading = "Where the time went".to_owned();
    let blocks = match &breakdown.missing {
        Some(why) => Vec::from([doubt(format!("This is not known: {why}."))]),
        None => blocks(document, breakdown, number, level),
    };
    Some(Block::Section(Section { heading, blocks, ..Section::default() }))
}

fn blocks(document: &Document, breakdown: &Breakdown, number: usize, level: Level) -> Vec<Block> {
    let mut blocks: Vec<Block> = breakdown.flows.iter().filter_map(sentence).collect();
    blocks.extend(bands(breakdown).map(Block::Table));
    if level == Level::Complete && draws_trials(document) {
        let charts = chart::breakdown::charts(breakdown, number).into_iter().map(Drawing::Chart);
        blocks.push(Block::Charts(charts.collect()));
    }
    blocks.push(Block::quiet(seen(breakdown)));
    blocks.extend(losses(breakdown).map(doubt));
    blocks.extend(slowest(document, breakdown, level));
    blocks
}

fn doubt(text: String) -> Block {
    Block::Text(Sentence { tone: Tone::Doubtful, text })
}

/// The largest part, and its share.
fn largest(parts: &Parts) -> Option<(&'static str, f64)> {
    let whole = parts.service_time().0 as f64;
    let (name, part) = parts.named().into_iter().max_by_key(|(_, part)| *part)?;
    (whole > 0.0).then(|| (name, part.0 as f64 / whole))
}

/// The part that takes most of the time, of all I/Os and of the slowest.
fn sentence(flow: &FlowBreakdown) -> Option<Block> {
    let (name, share) = largest(&flow.whole().sum)?;
    let many = figures::capitalized(names(flow.operation).1);
    let mut text = format!("{many} spent {} of their time {}.", percent(share), in_words(name));
    let slow = flow.bands.last().filter(|band| band.from.0 > 0.0 && IOS_MIN <= band.ios);
    if let Some((band, (name, share))) = slow.and_then(|band| Some((band, largest(&band.sum)?))) {
        let slowest = percent(1.0 - band.from.0);
        let share = percent(share);
        text += &format!(" The slowest {slowest} of them spent {share} {}.", in_words(name));
    }
    Some(Block::Text(Sentence::plain(text)))
}

fn in_words(part: &str) -> &'static str {
    match part {
        "submission" => "in submission, before the block layer had the request",
        "queue" => "in the queue of the block layer",
        "device" => "at the device",
        _ => "in completion, after the device was done",
    }
}

/// The means of each band, by operation.
fn bands(breakdown: &Breakdown) -> Option<Table> {
    if breakdown.flows.iter().all(|flow| flow.ios == 0) {
        return None;
    }
    let heads =
        ["I/Os", "service time", "submission", "queue", "device", "completion"].map(Head::figures);
    let caption = "mean times of the I/Os between percentiles of the service time";
    let mut table = Table::new(caption, [Head::words("")].into_iter().chain(heads));
    for flow in breakdown.flows.iter().filter(|flow| flow.ios > 0) {
        if breakdown.flows.len() > 1 {
            table.group(names(flow.operation).1);
        }
        let whole = (flow.bands.len() > 1).then(|| flow.whole());
        for band in flow.bands.iter().copied().chain(whole) {
            let Some(means) = band.means() else { continue };
            let cells = [Entry::words(band_name(&band)), Entry::figure(figures::count(band.ios))];
            let times = [means.iter().sum()].into_iter().chain(means);
            table.row(cells.into_iter().chain(times.map(|mean: f64| Entry::figure(time(mean)))));
        }
    }
    Some(table)
}

/// Which disks were watched, and of which I/Os the requests were seen.
fn seen(breakdown: &Breakdown) -> String {
    let of = |flow: &FlowBreakdown| {
        let all = flow.ios.saturating_add(flow.without_request);
        let (one, many) = names(flow.operation);
        let what = if all == 1 { one } else { many };
        match flow.without_request {
            0 => format!("all {} {what}", figures::count(all)),
            _ => {
                let share = percent(flow.ios as f64 / all as f64);
                format!("{share} of {} {what}", figures::count(all))
            }
        }
    };
    let flows: Vec<String> = breakdown.flows.iter().map(of).collect();
    let disks = breakdown.disks.join(", ");
    match flows.is_empty() {
        true => format!("No I/O ended in the window; {disks} was watched."),
        false => format!("Requests to {disks} were seen for {}.", flows.join(" and ")),
    }
}

/// What keeps the figures from being those of all I/Os.
fn losses(breakdown: &Breakdown) -> impl Iterator<Item = String> {
    let sum = |of: fn(&FlowBreakdown) -> u64| {
        breakdown.flows.iter().fold(0u64, |sum, flow| sum.saturating_add(of(flow)))
    };
    let without = sum(|flow| flow.without_request);
    let with = sum(|flow| flow.ios);
    let lost = breakdown.lost_events;
    let left_out = breakdown.left_out;
    let lost = (lost > 0).then(|| {
        format!("The kernel dropped {} events; their I/Os are not in it.", figures::count(lost))
    });
    let left_out = (left_out > 0)
        .then(|| format!("{} I/Os came too fast to be looked at.", figures::count(left_out)));
    let without = (lost.is_none() && without > with / 100).then(|| {
        "An I/O has no request if the page cache answered it, if the file system has moved its data, \
         or if an event was missed."
            .to_owned()
    });
    [lost, left_out, without].into_iter().flatten()
}

fn slowest(document: &Document, breakdown: &Breakdown, level: Level) -> Option<Block> {
    let (_, listed) = LISTED.into_iter().rev().find(|(least, _)| *least <= level)?;
    let shown = &breakdown.slowest[..breakdown.slowest.len().min(listed)];
    if shown.is_empty() {
        return None;
    }
    let many_targets = document.header.targets.len() > 1;
    let spare = |name: &str| Head::figures(name).with(Spare::Column);
    let heads = [
        Head::figures("at"),
        Head::words("I/O"),
        Head::figures("offset"),
        spare("length"),
        Head::figures("took"),
        Head::words("mostly"),
        spare("submission"),
        spare("queue"),
        spare("device"),
        spare("completion"),
        spare("in flight"),
        spare("CPUs"),
        Head::words("meanwhile"),
    ];
    let mut table = Table::new("", heads);
    for io in shown {
        let target = many_targets.then(|| figures::target_name(document, io.target));
        table.row(row(io, target));
    }
    let heading = format!("The {} slowest I/Os", shown.len());
    let mut note = "Meanwhile: what other programs did to the disk in its time, and what the host \
                    did around it. It need not be the cause."
        .to_owned();
    if level == Level::Complete {
        note += " In flight: requests of all programs on the disk when it began. CPUs: where it \
                 began, and where the disk's interrupt came.";
    }
    let blocks = Vec::from([Block::Table(table), Block::quiet(note)]);
    Some(match level {
        Level::Complete => Block::folded(heading, blocks),
        _ => Block::section(heading, blocks),
    })
}

fn row(io: &SlowIo, target: Option<&str>) -> Vec<Entry> {
    let (name, _) = names(io.operation);
    let name = target.map_or(name.to_owned(), |target| format!("{name} {target}"));
    let sign = if io.submitted_ns < 0 { "-" } else { "" };
    let at = format!("{sign}{}", time(io.submitted_ns.unsigned_abs() as f64));
    let mut cells = Vec::from([
        Entry::figure(at),
        Entry::words(name),
        Entry::figure(io.offset.0.to_string()),
        Entry::figure(io.length.to_string()),
        Entry::figure(time(io.service_time.0 as f64)),
    ]);
    let Some(request) = &io.request else {
        let unknown = || Entry::figure(or_unknown(None));
        cells.push(Entry::words("no request seen"));
        cells.extend((0..6).map(|_| unknown()));
        cells.push(Entry::words(meanwhile(&io.neighbors, io.host.as_ref())));
        return cells;
    };
    let mostly = largest(&request.parts).map(|(name, share)| format!("{name} {}", percent(share)));
    cells.push(Entry::words(or_unknown(mostly)));
    cells.extend(request.parts.named().map(|(_, part)| Entry::figure(time(part.0 as f64))));
    cells.push(Entry::figure(request.in_flight.to_string()));
    cells.push(Entry::figure(format!("{}, {}", request.began_on_cpu, request.completed_on_cpu)));
    cells.push(Entry::words(meanwhile(&io.neighbors, io.host.as_ref())));
    cells
}

/// What others and the host did.
fn meanwhile(neighbors: &[Neighbor], host: Option<&HostThen>) -> String {
    let neighbor = |it: &Neighbor| {
        let many = if it.ios == 1 { "I/O" } else { "I/Os" };
        format!("{}: {} {many}, {}", it.program, figures::count(it.ios), it.bytes)
    };
    let mut parts: Vec<String> = neighbors.iter().map(neighbor).collect();
    if let Some(host) = host {
        let over = time(host.over.0 as f64);
        let times = [("stolen from the CPUs", host.stolen), ("throttled", host.throttled)];
        let spent = times.into_iter().filter(|(_, time)| *time > Span(0));
        parts.extend(
            spent.map(|(what, spent)| format!("{} {what} in {over}", time(spent.0 as f64))),
        );
        if host.writeback_bytes > Bytes(0) {
            parts.push(format!("{} in writeback", host.writeback_bytes));
        }
    }
    match parts.is_empty() {
        true => "nothing".to_owned(),
        false => parts.join("; "),
    }
}
