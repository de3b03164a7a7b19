//! Each trial in full: its load, its figures, and the account of every I/O.

use std::collections::BTreeSet;

use fathom_core::Quantile;
use fathom_core::measure::{Direction, Flow, Histogram};

use super::breakdown;
use super::hosts;
use super::overview::{self, draws_trials};
use super::{Block, Drawing, Entry, Fact, Head, Level, Remark, Section, Sentence, Table, Tone};
use crate::chart;
use crate::document::{Cell, Counters, Document, Stream, Trial, Worker};
use crate::figures::{self, OfferedLoad, TrialPart, direction_name, or_unknown, plus_minus};

/// More rows than this are summed by target; of more CPUs and threads only the busiest are shown.
const ROWS_SHOWN: usize = 16;

/// The number of errors that are listed.
const ERRORS_SHOWN: usize = 10;

/// A list of more trials than this is closed: below it stand the target and the host.
const LISTED: usize = 60;

/// All trials. If there are many, each is closed until the reader opens it.
pub fn sections(document: &Document, level: Level) -> Vec<Block> {
    let trials = document.trials.iter().zip(1..);
    let sections = trials.map(|(trial, number)| section(document, level, trial, number));
    if draws_trials(document) {
        return sections.collect();
    }
    let text = "There are too many to draw what each of them did over time. `fathom run` with the \
                options of one of them draws it.";
    let mut blocks = Vec::new();
    if level == Level::Complete {
        blocks.push(Block::quiet(text));
    }
    match document.trials.len() {
        0..=LISTED => blocks.extend(sections),
        count => {
            let heading = format!("All {} trials in full", figures::count(count as u64));
            blocks.push(Block::folded(heading, sections.collect()));
        }
    }
    Vec::from([Block::section("Trial by trial", blocks)])
}

fn section(document: &Document, level: Level, trial: &Trial, number: usize) -> Block {
    let all = (document.header.planned_points as usize).max(document.trials.len());
    let heading = match all {
        0 | 1 => trial.point.name.clone(),
        _ => format!("{number} of {all}: {}", trial.point.name),
    };
    let mut blocks = load(document, trial);
    if document.trials.len() > 1 && !trial.findings.is_empty() && Level::Full <= level {
        let remarks = trial.findings.iter().map(Remark::of);
        blocks.push(Block::Remarks(remarks.collect()));
    }
    blocks.push(Block::Figures(overview::figures_of_part(TrialPart::whole(trial))));
    blocks.extend(hosts::of_trial(trial, level));
    if level == Level::Complete && draws_trials(document) && 1 < trial.hosts.len() {
        let charts = chart::hosts::charts(trial, number).into_iter().map(Drawing::Chart);
        blocks.push(Block::Charts(charts.collect()));
    }
    blocks.extend(streams(trial));
    if level == Level::Complete && draws_trials(document) {
        let charts = chart::trial::charts(trial, number).into_iter().map(Drawing::Chart);
        blocks.push(Block::Charts(charts.collect()));
    }
    blocks.extend(flows(document, trial, level));
    let parts = || TrialPart::streams(trial).chain([TrialPart::whole(trial)]);
    blocks.extend(parts().map(percentiles));
    blocks.extend(breakdown::section(document, trial, number, level));
    if Level::Full <= level {
        blocks.push(Block::folded("Where every I/O went", accounts(document, trial)));
        let processors = processors(trial, level);
        if !processors.is_empty() {
            blocks.push(Block::folded("CPUs and devices during the window", processors));
        }
    }
    blocks.extend(errors(document, trial));
    Block::Section(Section {
        heading,
        trial: Some(number),
        verdict: Some(trial.verdict),
        folded: !draws_trials(document),
        blocks,
    })
}

/// The load.
fn load(document: &Document, trial: &Trial) -> Vec<Block> {
    let many = trial.point.streams.len() > 1;
    let stream = |stream: &Stream| {
        let name = if many { format!("{}: ", stream.name) } else { String::new() };
        let regions = stream.regions.iter();
        let targets: Vec<&str> =
            regions.map(|region| figures::target_name(document, region.target)).collect();
        let words = figures::stream_in_words(trial, stream);
        let each = hosts::on_each(trial);
        Block::text(format!("{name}{words}, on {}{each}", shortened(&targets)))
    };
    let mut blocks: Vec<Block> = trial.point.streams.iter().map(stream).collect();
    blocks.push(Block::text(figures::way(trial)));
    blocks.push(Block::quiet(format!(
        "window {}{}, {}; began {}; seed {}",
        trial.window(),
        figures::asked(trial),
        figures::before_and_after(trial),
        figures::moment(&trial.started),
        trial.point.seed
    )));
    blocks
}

fn shortened(names: &[&str]) -> String {
    match names {
        [first, second, third, rest @ ..] if !rest.is_empty() => {
            format!("{first}, {second}, {third} and {} more", rest.len())
        }
        few => few.join(", "),
    }
}

/// The work of each stream, if there are several.
fn streams(trial: &Trial) -> Option<Block> {
    if trial.point.streams.len() < 2 {
        return None;
    }
    let heads = [Head::words(""), Head::words("percentiles of the")];
    let mut table = Table::new("", heads.into_iter().chain(overview::figure_heads()));
    for part in TrialPart::streams(trial) {
        let names = [part.name(), figures::time_name(part)].map(Entry::words);
        let figures = overview::figures_of(&part.summary(None, &overview::QUANTILES));
        table.row(names.into_iter().chain(figures));
    }
    Some(Block::Table(table))
}

/// The subject of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    stream: u32,
    target: u32,
    worker: Option<u32>,
}

/// The rows of a trial: by stream, worker and target if they are few, else by stream and target.
fn keys(trial: &Trial) -> Vec<Key> {
    let key = |worker: &Worker, cell: &Cell| Key {
        stream: worker.stream,
        target: cell.target,
        // Workers of several hosts have the same numbers.
        worker: trial.hosts.is_empty().then_some(worker.worker),
    };
    let workers = trial.workers.iter();
    let keys = workers.flat_map(|worker| worker.cells.iter().map(move |cell| key(worker, cell)));
    let keys: BTreeSet<Key> = keys.collect();
    match keys.len() <= ROWS_SHOWN {
        true => keys.into_iter().collect(),
        false => {
            let sums = keys.into_iter().map(|key| Key { worker: None, ..key });
            sums.collect::<BTreeSet<Key>>().into_iter().collect()
        }
    }
}

fn belongs(key: Key, worker: &Worker, cell: &Cell) -> bool {
    let same_worker = key.worker.is_none_or(|number| number == worker.worker);
    key.stream == worker.stream && key.target == cell.target && same_worker
}

/// Bytes, I/Os and rates, for each worker and target, for each stream and in total.
fn flows(document: &Document, trial: &Trial, level: Level) -> Vec<Block> {
    let caption = format!("measured (times are service times{})", deviation(trial));
    let heads = ["bytes", "I/Os", "MiB/s", "IOPS", "mean", "std dev"].map(Head::figures);
    let mut table = Table::new(caption, [Head::words("")].into_iter().chain(heads));
    let keys = keys(trial);
    let shown = if level == Level::Complete { keys.len() } else { keys.len().min(ROWS_SHOWN) };
    if keys.len() > 1 {
        let streams: Vec<TrialPart<'_>> = TrialPart::streams(trial).collect();
        let parts = if streams.is_empty() { Vec::from([TrialPart::whole(trial)]) } else { streams };
        for part in parts {
            flows_of(&mut table, document, part, (&keys, shown));
        }
        table.group("all");
    }
    sums(&mut table, TrialPart::whole(trial));
    let hidden = keys.len() - shown;
    let summed = keys.iter().any(|key| key.worker.is_none());
    let note = match hidden {
        0 if summed => Some(format!("{} workers, summed by target", trial.workers.len())),
        0 => None,
        hidden => Some(format!("{hidden} more targets are in the sums only")),
    };
    [Block::Table(table)].into_iter().chain(note.map(Block::quiet)).collect()
}

/// The rows of a stream's keys, as far as they are shown, and their sum.
fn flows_of(table: &mut Table, document: &Document, part: TrialPart<'_>, keys: (&[Key], usize)) {
    let (trial, (keys, shown)) = (part.trial, keys);
    let own = || keys.iter().filter(|key| part.has(key.stream));
    // The only row of a stream is the stream's own.
    let only = part.stream.is_some() && own().count() == 1;
    for key in keys[..shown].iter().filter(|key| part.has(key.stream) && !only) {
        table.group(label(document, trial, *key));
        for direction in part.columns() {
            let flow = trial.flow(direction, |worker, cell| belongs(*key, worker, cell));
            table.row(flow_row(trial, direction_name(direction), &flow, String::new()));
        }
    }
    match (part.stream, own().next()) {
        (Some(_), Some(key)) if only => table.group(label(document, trial, *key)),
        (Some(_), _) => table.group(format!("{}, all", part.name())),
        (None, _) => return,
    }
    sums(table, part);
}

/// The rows of a stream or of all, with their half-widths.
fn sums(table: &mut Table, part: TrialPart<'_>) {
    for direction in part.columns() {
        let half = plus_minus(part.summary(direction, &[]).iops.as_ref());
        let flow = part.flow(direction);
        table.row(flow_row(part.trial, direction_name(direction), &flow, half));
    }
    // I/Os that move no data, after the sums that do not include them.
    for (what, flow) in part.upkeep() {
        table.row(flow_row(part.trial, what.name(), &flow, String::new()));
    }
}

fn deviation(trial: &Trial) -> String {
    match figures::iops_deviation(trial, None).filter(|_| trial.total(None).ios() > 0) {
        Some(deviation) => format!(
            "; IOPS vary by {} over intervals of {}",
            figures::significant(deviation),
            trial.point.interval
        ),
        None => String::new(),
    }
}

fn label(document: &Document, trial: &Trial, key: Key) -> String {
    let mut parts = Vec::new();
    if trial.point.streams.len() > 1 {
        parts.push(trial.point.streams[key.stream as usize].name.clone());
    }
    parts.extend(key.worker.map(|worker| format!("worker {worker}")));
    if document.header.targets.len() > 1 {
        parts.push(figures::target_name(document, key.target).to_owned());
    }
    parts.join(", ")
}

fn flow_row(trial: &Trial, name: &str, flow: &Flow, half: String) -> [Entry; 7] {
    let rate = |amount| figures::per_second(amount, trial.window());
    let bandwidth = rate(flow.bytes.0).map(|bytes| figures::significant(figures::mib(bytes)));
    let iops = or_unknown(rate(flow.ios()).map(figures::significant));
    let times = &flow.service_time;
    [
        Entry::words(name),
        Entry::figure(flow.bytes.to_string()),
        Entry::figure(figures::count(flow.ios())),
        Entry::figure(or_unknown(bandwidth)),
        Entry::Figure { text: iops, half },
        Entry::figure(or_unknown(times.mean().map(figures::time))),
        Entry::figure(or_unknown(times.standard_deviation().map(figures::time))),
    ]
}

/// The percentiles of a stream or of all: of the service time, and in an open loop of the response
/// time and of the start delay too.
fn percentiles(part: TrialPart<'_>) -> Block {
    let directions = part.columns();
    let mut flows: Vec<Flow> = directions.iter().map(|&direction| part.flow(direction)).collect();
    let halves = half_widths(part, &flows, &directions);
    let mut names: Vec<&str> = directions.iter().map(|&d| direction_name(d)).collect();
    for (what, flow) in part.upkeep() {
        names.push(what.name());
        flows.push(flow);
    }
    let most = flows.iter().map(Flow::ios).max().unwrap_or(0);
    let whose = match part.trial.point.streams.len() {
        1 => String::new(),
        _ => format!(": {}", part.name()),
    };
    let service: Vec<&Histogram> = flows.iter().map(|flow| &flow.service_time).collect();
    let mut blocks = Vec::new();
    if part.is_open() {
        let response: Vec<&Histogram> = flows.iter().map(Flow::response_time).collect();
        let closed = match part.loads().all(|stream| stream.pacing.is_open()) {
            true => "",
            false => " (in a closed loop: from the submission)",
        };
        let caption = format!("response time: from the intended start{closed}");
        blocks.extend(percentiles_of(caption, &names, &response, &halves));
        let caption = "service time: from the submission".to_owned();
        blocks.extend(percentiles_of(caption, &names, &service, &[]));
        if let Some(delay) = part.start_delay() {
            let caption = "start delay: from the intended start to the submission".to_owned();
            let parts = [("target was behind", &delay.target), ("generator", &delay.generator)];
            let (names, times): (Vec<&str>, Vec<&Histogram>) =
                parts.into_iter().filter(|(_, times)| times.count() > 0).unzip();
            blocks.extend(percentiles_of(caption, &names, &times, &[]));
        }
    } else {
        let caption = "service time (closed loop: the response time equals it)".to_owned();
        blocks.extend(percentiles_of(caption, &names, &service, &halves));
    }
    Block::folded(format!("Percentiles of {} I/Os{whose}", figures::count(most)), blocks)
}

/// For each column the half-width of each percentile.
fn half_widths(
    part: TrialPart<'_>,
    flows: &[Flow],
    columns: &[Option<Direction>],
) -> Vec<Vec<String>> {
    let series = part.stretches();
    let of = |(flow, &direction): (&Flow, &Option<Direction>)| {
        let quantiles = &Quantile::REPORTED;
        let estimates = figures::quantile_estimates(flow, &series, direction, quantiles);
        estimates.iter().map(|estimate| plus_minus(estimate.as_ref())).collect()
    };
    flows.iter().zip(columns).map(of).collect()
}

fn percentiles_of(
    caption: String,
    names: &[&str],
    times: &[&Histogram],
    half_widths: &[Vec<String>],
) -> Vec<Block> {
    let heads = [Head::words("")].into_iter().chain(names.iter().map(|name| Head::figures(name)));
    let mut table = Table::new(caption, heads);
    let text = |value: Option<u64>| or_unknown(value.map(|ns| figures::time(ns as f64)));
    let exact = |name: &str, of: fn(&Histogram) -> Option<u64>| {
        let values = times.iter().map(|times| Entry::figure(text(of(times))));
        [Entry::words(name)].into_iter().chain(values).collect::<Vec<Entry>>()
    };
    table.row(exact("min", Histogram::min));
    let mut withheld = None;
    for (place, quantile) in Quantile::REPORTED.into_iter().enumerate() {
        let values: Vec<Option<u64>> =
            times.iter().map(|times| figures::carried(times, quantile)).collect();
        if quantile.0 > 0.5 && values.iter().all(Option::is_none) {
            withheld = Some(quantile);
            break;
        }
        let cells = values.into_iter().enumerate().map(|(column, value)| {
            let half = half_widths.get(column).and_then(|half| half.get(place));
            Entry::Figure { text: text(value), half: half.cloned().unwrap_or_default() }
        });
        table.row([Entry::words(quantile.to_string())].into_iter().chain(cells));
    }
    table.row(exact("max", Histogram::max));
    let most = times.iter().map(|times| times.count()).max().unwrap_or(0);
    let withheld = withheld.map(|quantile| {
        Block::quiet(format!(
            "{quantile} and beyond: not enough samples ({} in all, and {} have to lie beyond)",
            figures::count(most),
            fathom_core::stats::TAIL_SAMPLES
        ))
    });
    [Block::Table(table)].into_iter().chain(withheld).collect()
}

/// "log: ", in front of facts about a stream; empty if there is only one.
fn whose(part: TrialPart<'_>) -> String {
    match (part.stream, part.trial.point.streams.len()) {
        (None, 1) => String::new(),
        _ => format!("{}: ", part.name()),
    }
}

/// Queue depth, offered load, ledger, and the load generator's ceiling.
fn accounts(document: &Document, trial: &Trial) -> Vec<Block> {
    let parts = || TrialPart::streams(trial).chain([TrialPart::whole(trial)]);
    let mut facts: Vec<Fact> = parts().map(in_flight).collect();
    facts.extend(parts().filter_map(offered));
    facts.push(ledger(trial));
    let ceiling = figures::ceiling(document, trial).filter(|_| !figures::is_contended(trial));
    facts.extend(ceiling.map(|ceiling| {
        let words = figures::ceiling_in_words(&ceiling, trial);
        Fact::new("ceiling", format!("the load generator could have done {words}"))
    }));
    Vec::from([Block::Facts(facts)])
}

fn in_flight(part: TrialPart<'_>) -> Fact {
    let depth: u32 = part.loads().map(|stream| stream.pacing.queue_depth()).sum();
    let depth = depth as usize * part.trial.machines();
    let achieved: f64 = part.workers().map(|worker| worker.queue_depth).sum();
    let asked = if part.is_open() { "up to" } else { "of" };
    let achieved = figures::significant(achieved);
    let text = format!("{}{achieved} in flight on average, {asked} {depth} asked", whose(part));
    Fact::new("queue depth", text)
}

fn offered(part: TrialPart<'_>) -> Option<Fact> {
    let OfferedLoad { offered, achieved } = part.offered()?;
    let workers = part.workers().filter(|worker| part.is_open_loop(worker));
    let unstarted: u64 = workers.map(|worker| worker.ledger.unstarted).sum();
    let mut text = format!("{}{} IOPS offered", whose(part), figures::significant(offered));
    if let Some(achieved) = achieved {
        text += &format!(", {} achieved", figures::significant(achieved));
        let share = achieved / offered;
        if share.is_finite() {
            text += &format!(" ({})", figures::percent(share));
        }
    }
    text += &format!(", {} never started", figures::count(unstarted));
    Some(Fact::new("load", text))
}

/// The account of every I/O.
fn ledger(trial: &Trial) -> Fact {
    let l = trial.ledger();
    let parts = [
        (l.completed_in_warm_up, "completed in the warm-up"),
        (l.completed, "completed in the window"),
        (l.failed, "failed"),
        (l.in_flight, "in flight at the end"),
        (l.lost, "lost"),
        (l.unstarted, "never started"),
    ];
    let parts: Vec<String> = parts
        .into_iter()
        .filter(|&(n, _)| n > 0)
        .map(|(n, what)| format!("{} {what}", figures::count(n)))
        .collect();
    let off = if l.balances() { "" } else { " (THIS DOES NOT ADD UP: please report it)" };
    let text = match parts.is_empty() {
        true => "0 I/Os due".to_owned(),
        false => format!("{} I/Os due = {}{off}", figures::count(l.due), parts.join(" + ")),
    };
    Fact::new("ledger", text)
}

/// CPUs, the workers' threads and devices.
fn processors(trial: &Trial, level: Level) -> Vec<Block> {
    let mut blocks = Vec::new();
    if let Some(counters) = &trial.counters {
        let mut facts = Vec::from([Fact::new("CPU", used(trial, counters))]);
        facts.extend(counters.devices.iter().map(|device| {
            let text = format!("{}: {}, as the kernel counted", device.name, device.in_words());
            Fact::new("device", text)
        }));
        blocks.push(Block::Facts(facts));
        blocks.extend(cores(counters, level));
        blocks.extend(threads(trial));
    }
    blocks
}

/// The CPU time of fathom, and that of other programs.
fn used(trial: &Trial, counters: &Counters) -> String {
    let used = counters.process_user_ns as f64 + counters.process_kernel_ns as f64;
    let mut text = format!(
        "fathom used {} user and {} kernel time",
        figures::time(counters.process_user_ns as f64),
        figures::time(counters.process_kernel_ns as f64)
    );
    let ios = trial.total(None).ios();
    if ios > 0 {
        text += &format!(": {} per I/O", figures::time(used / ios as f64));
    }
    if let Some(cpu) = figures::io_wq_cpu(counters) {
        text += &format!("; {cpu} of it in io_uring's own threads");
    }
    if let Some(throttled) = counters.throttled_ns.filter(|&ns| ns > 0) {
        text +=
            &format!("; its cgroup kept it off the CPUs for {}", figures::time(throttled as f64));
    }
    if let Some(others) = figures::others_cpu(counters, &trial.workers) {
        text += &format!("; {others}");
    }
    text
}

fn cores(counters: &Counters, level: Level) -> Vec<Block> {
    if counters.cpus.is_empty() {
        return Vec::new();
    }
    let heads = ["user", "kernel", "idle", "steal"].map(Head::figures);
    let mut table = Table::new("", [Head::words("core")].into_iter().chain(heads));
    let mut cores: Vec<_> = counters.cpus.iter().collect();
    if cores.len() > ROWS_SHOWN && level < Level::Complete {
        cores.sort_by_key(|core| core.idle_ns);
        cores.truncate(ROWS_SHOWN);
        cores.sort_by_key(|core| core.cpu);
    }
    for core in &cores {
        let parts = [core.user_ns, core.kernel_ns, core.idle_ns, core.steal_ns].map(|ns| ns as f64);
        let total: f64 = parts.iter().sum();
        let share = |ns: f64| (total > 0.0).then(|| figures::percent(ns / total));
        let shares = parts.map(|ns| Entry::figure(or_unknown(share(ns))));
        table.row([Entry::words(core.cpu.to_string())].into_iter().chain(shares));
    }
    let hidden = counters.cpus.len() - cores.len();
    let note = (hidden > 0).then(|| format!("and {hidden} cores that were less busy"));
    [Block::Table(table)].into_iter().chain(note.map(Block::quiet)).collect()
}

/// How much of a CPU each worker used, and how long it waited for one. If there are too many to
/// show, the busiest: if one of them is at its limit, it limits its stream.
fn threads(trial: &Trial) -> Vec<Block> {
    let share = |ns: Option<u64>| {
        let window = trial.window_ns.max(1) as f64;
        let share = ns.map(|ns| figures::percent((ns as f64 / window).min(1.0)));
        Entry::figure(or_unknown(share))
    };
    let mut workers: Vec<_> = trial.workers.iter().filter(|one| one.cpu_ns.is_some()).collect();
    let all = workers.len();
    if all == 0 {
        return Vec::new();
    }
    if all > ROWS_SHOWN {
        workers.sort_by_key(|worker| std::cmp::Reverse(worker.cpu_ns));
        workers.truncate(ROWS_SHOWN);
        workers.sort_by_key(|worker| (worker.stream, worker.worker));
    }
    let heads = ["tied to", "busy", "waited"].map(Head::figures);
    let mut table = Table::new("", [Head::words("thread")].into_iter().chain(heads));
    for worker in &workers {
        let name = match trial.point.streams.get(worker.stream as usize) {
            Some(stream) if trial.point.streams.len() > 1 => {
                format!("{}, {}", stream.name, worker.worker)
            }
            _ => worker.worker.to_string(),
        };
        let tied = worker.pinned_cpu.map_or("any".to_owned(), |cpu| format!("CPU {cpu}"));
        let shares = [share(worker.cpu_ns), share(worker.cpu_wait_ns)];
        table.row([Entry::words(name), Entry::figure(tied)].into_iter().chain(shares));
    }
    let hidden = all - workers.len();
    let note = (hidden > 0).then(|| format!("and {hidden} threads that were less busy"));
    [Block::Table(table)].into_iter().chain(note.map(Block::quiet)).collect()
}

/// The first I/Os that failed, and whether workers gave up.
fn errors(document: &Document, trial: &Trial) -> Option<Block> {
    let count = trial.errors();
    if count == 0 {
        return None;
    }
    let mut first: Vec<_> = trial.workers.iter().flat_map(|worker| &worker.errors.first).collect();
    first.sort_by_key(|error| error.at_ns);
    let told = first.into_iter().take(ERRORS_SHOWN).map(|error| {
        let when = if error.at_ns < 0 { "before the window" } else { "into the window" };
        format!(
            "{} {when}: {} of {} at offset {} of {}: {}",
            figures::time(error.at_ns.unsigned_abs() as f64),
            error.what(),
            error.length,
            error.offset.0,
            figures::target_name(document, error.target),
            figures::failure(error.kind)
        )
    });
    let mut blocks = Vec::from([Block::List(told.collect())]);
    let gave_up = trial.workers.iter().filter(|worker| worker.gave_up).count();
    if gave_up > 0 {
        let who = figures::counted_workers(gave_up as u64);
        let text = format!("{who} gave up after a long series of failed I/Os");
        blocks.push(Block::Text(Sentence { tone: Tone::Bad, text }));
    }
    // The ledger ends with the window.
    let after = match count.saturating_sub(trial.ledger().failed) {
        0 => String::new(),
        n => format!(", {} of them after the window", figures::count(n)),
    };
    let heading = format!("{} I/Os failed{after}; the first of them", figures::count(count));
    Some(Block::section(heading, blocks))
}
