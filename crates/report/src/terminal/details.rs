//! A run in full: for each point what the load was, what it measured, and what that is worth.

use std::collections::BTreeMap;

use fathom_core::measure::{Direction, Flow, Histogram};
use fathom_core::{Bytes, Quantile, Span};

use super::text::{Align, Table, Tint, push_line, wrap};
use super::{Style, finding, head, tail, unchecked, verdict_tint};
use crate::document::{Cell, Document, Stream, Trial, Verdict, Worker};
use crate::figures::{self, Part, direction_name, plus_minus};

/// More rows than this are summed by target, unless the style asks for all workers.
const ROWS_SHOWN: usize = 16;

/// A document in full.
pub fn document(document: &Document, style: &Style) -> String {
    let mut out = String::new();
    head(&mut out, document, style);
    for (place, trial) in document.trials.iter().enumerate() {
        push_line(&mut out, "");
        one(&mut out, document, place, trial, style);
    }
    push_line(&mut out, "");
    let before = out.len();
    unchecked(&mut out, &document.trials, style);
    tail(&mut out, document, style);
    if out.len() == before {
        out.pop();
    }
    out
}

fn one(out: &mut String, document: &Document, place: usize, trial: &Trial, style: &Style) {
    let points = (document.header.planned_points as usize).max(document.trials.len());
    let number = if points > 1 { format!("{} of {points}  ", place + 1) } else { String::new() };
    wrap(out, &number, &trial.point.name, Tint::Bold, style);
    load(out, document, trial, style);
    push_line(out, "");
    verdict(out, trial, style);
    push_line(out, "");
    flows(out, document, trial, style);
    push_line(out, "");
    distributions(out, trial, style);
    push_line(out, "");
    accounts(out, document, trial, style);
}

/// What the load was.
fn load(out: &mut String, document: &Document, trial: &Trial, style: &Style) {
    let many = trial.point.streams.len() > 1;
    for stream in &trial.point.streams {
        let name = if many { format!("{}: ", stream.name) } else { String::new() };
        let targets: Vec<&str> =
            stream.regions.iter().map(|r| figures::target_name(document, r.target)).collect();
        let text = format!(
            "{name}{}, on {}",
            figures::stream_in_words(trial, stream),
            shortened(&targets)
        );
        wrap(out, "  ", &text, Tint::Plain, style);
    }
    wrap(out, "  ", &figures::way(trial), Tint::Plain, style);
    let asked = figures::asked(trial);
    let window = format!(
        "window {}{asked}, {}; began {}; seed {}",
        trial.window(),
        figures::before_and_after(trial),
        trial.started,
        trial.point.seed
    );
    wrap(out, "  ", &window, Tint::Dim, style);
}

fn shortened(names: &[&str]) -> String {
    match names {
        [first, second, third, rest @ ..] if !rest.is_empty() => {
            format!("{first}, {second}, {third} and {} more", rest.len())
        }
        few => few.join(", "),
    }
}

fn verdict(out: &mut String, trial: &Trial, style: &Style) {
    let name = verdict_tint(trial.verdict).paint(trial.verdict.name(), style);
    let why = if trial.findings.is_empty() { ": nothing speaks against the numbers" } else { "" };
    // A doubt says to read on; that nothing was found says so only with this.
    let open = match trial.verdict {
        Verdict::Sound => figures::left_open([trial]),
        Verdict::Suspect | Verdict::Void => String::new(),
    };
    push_line(out, &format!("verdict {name}{open}{why}"));
    for one in &trial.findings {
        finding(out, one, "", style);
    }
}

/// Whose row it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    stream: u32,
    target: u32,
    worker: Option<u32>,
}

/// The rows of a trial: by stream, worker and target if they are few, else by stream and target.
fn keys(trial: &Trial, all_workers: bool) -> Vec<Key> {
    let mut keys = BTreeMap::new();
    for worker in &trial.workers {
        for cell in &worker.cells {
            let worker_of = Some(worker.worker);
            keys.insert(Key { stream: worker.stream, target: cell.target, worker: worker_of }, ());
        }
    }
    if keys.len() > ROWS_SHOWN && !all_workers {
        keys = keys.into_keys().map(|key| (Key { worker: None, ..key }, ())).collect();
    }
    keys.into_keys().collect()
}

fn belongs(key: Key, worker: &Worker, cell: &Cell) -> bool {
    let same_worker = key.worker.is_none_or(|number| number == worker.worker);
    key.stream == worker.stream && key.target == cell.target && same_worker
}

/// Bytes, I/Os and rates, for each worker and target, for each stream and in total.
fn flows(out: &mut String, document: &Document, trial: &Trial, style: &Style) {
    let mut columns = [(Align::Right, 2); 8];
    columns[0] = (Align::Left, 2);
    let mut table = Table::new(&columns);
    let heads = ["", "bytes", "I/Os", "MiB/s", "IOPS", "+/-", "mean", "std dev"];
    table.row(Tint::Dim, heads.map(str::to_owned));
    let keys = keys(trial, style.all_workers);
    let shown = if style.all_workers { keys.len() } else { keys.len().min(ROWS_SHOWN) };
    if keys.len() > 1 {
        let streams: Vec<Part<'_>> = Part::streams(trial).collect();
        for part in if streams.is_empty() { vec![Part::whole(trial)] } else { streams } {
            let own = || keys.iter().filter(|key| part.has(key.stream));
            let rows: Vec<&Key> = keys[..shown].iter().filter(|k| part.has(k.stream)).collect();
            // The only row of a stream is the stream's own.
            let only = part.stream.is_some() && own().count() == 1;
            for key in rows.into_iter().filter(|_| !only) {
                table.heading(&label(document, trial, *key));
                for direction in part.columns() {
                    let flow = trial.flow(direction, |worker, cell| belongs(*key, worker, cell));
                    let name = direction_name(direction);
                    table.row(Tint::Plain, flow_row(trial, name, &flow, String::new()));
                }
            }
            match (part.stream, own().next()) {
                (Some(_), Some(key)) if only => table.heading(&label(document, trial, *key)),
                (Some(_), _) => table.heading(&format!("{}, all", part.name())),
                (None, _) => continue,
            }
            sums(&mut table, part);
        }
        table.heading("all");
    }
    sums(&mut table, Part::whole(trial));
    push_line(out, &format!("measured (times are service times{})", deviation(trial)));
    table.render(out, style);
    let hidden = keys.len() - shown;
    if hidden > 0 {
        push_line(out, &format!("  {hidden} more targets are in the sums only"));
    } else if keys.iter().any(|key| key.worker.is_none()) {
        push_line(out, &format!("  {} workers, summed by target", trial.workers.len()));
    }
}

/// The rows of a stream or of all, with their half-widths.
fn sums(table: &mut Table, part: Part<'_>) {
    for direction in part.columns() {
        let summary = part.summary(direction, &[]);
        let half = plus_minus(summary.iops.as_ref()).replace('±', "");
        let name = direction_name(direction);
        let row = flow_row(part.trial, name, &part.flow(direction), half);
        table.row(Tint::Plain, row);
    }
    for (what, flow) in part.upkeep() {
        let row = flow_row(part.trial, what.name(), &flow, String::new());
        table.row(Tint::Plain, row);
    }
}

fn deviation(trial: &Trial) -> String {
    match figures::iops_deviation(trial, None).filter(|_| trial.total(None).ios() > 0) {
        Some(deviation) => format!(
            "; IOPS vary by {} over intervals of {}",
            figures::rate(deviation),
            fathom_core::Span(trial.point.interval_ns)
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

fn flow_row(trial: &Trial, name: &str, flow: &Flow, half: String) -> [String; 8] {
    let none = || "-".to_owned();
    let rate = |amount| figures::per_second(amount, trial.window());
    let mean = flow.service_time.mean().map(figures::time);
    let deviation = flow.service_time.standard_deviation().map(figures::time);
    [
        format!("  {name}"),
        flow.bytes.to_string(),
        figures::count(flow.ios()),
        rate(flow.bytes.0).map_or_else(none, |bytes| figures::rate(figures::mib(bytes))),
        rate(flow.ios()).map_or_else(none, figures::rate),
        half,
        mean.unwrap_or_else(none),
        deviation.unwrap_or_else(none),
    ]
}

/// The percentile tables, of each stream where there are several, and of all.
fn distributions(out: &mut String, trial: &Trial, style: &Style) {
    for part in Part::streams(trial) {
        push_line(out, &Tint::Bold.paint(&format!("stream {}", part.name()), style));
        distributions_of(out, part, style);
        push_line(out, "");
    }
    if trial.point.streams.len() > 1 {
        push_line(out, &Tint::Bold.paint("all streams", style));
    }
    distributions_of(out, Part::whole(trial), style);
}

/// Service time, and in an open loop response time and start delay too.
fn distributions_of(out: &mut String, part: Part<'_>, style: &Style) {
    let columns = part.columns();
    let mut flows: Vec<Flow> = columns.iter().map(|&direction| part.flow(direction)).collect();
    let halves = half_widths(part, &flows, &columns);
    let mut names: Vec<&str> = columns.iter().map(|&d| direction_name(d)).collect();
    for (what, flow) in part.upkeep() {
        names.push(what.name());
        flows.push(flow);
    }
    let service: Vec<&Histogram> = flows.iter().map(|flow| &flow.service_time).collect();
    if part.is_open() {
        let response: Vec<&Histogram> = flows.iter().map(Flow::response_time).collect();
        let closed = match part.loads().all(|stream| stream.pacing.is_open()) {
            true => "",
            false => " (in a closed loop: from the submission)",
        };
        push_line(out, &format!("response time: from the intended start{closed}"));
        percentiles(out, &names, &response, &halves, style);
        push_line(out, "");
        push_line(out, "service time: from the submission");
        percentiles(out, &names, &service, &[], style);
        if let Some(delay) = part.start_delay() {
            push_line(out, "");
            push_line(out, "start delay: from the intended start to the submission");
            let parts = [("target was behind", &delay.target), ("generator", &delay.generator)];
            let parts: Vec<_> = parts.into_iter().filter(|(_, times)| times.count() > 0).collect();
            let names: Vec<&str> = parts.iter().map(|(name, _)| *name).collect();
            let times: Vec<&Histogram> = parts.iter().map(|(_, times)| *times).collect();
            percentiles(out, &names, &times, &[], style);
        }
    } else {
        push_line(out, "service time (closed loop: the response time equals it)");
        percentiles(out, &names, &service, &halves, style);
    }
}

/// For each column the half-width of each percentile.
fn half_widths(part: Part<'_>, flows: &[Flow], columns: &[Option<Direction>]) -> Vec<Vec<String>> {
    let series = part.stretches();
    let of = |(flow, &direction): (&Flow, &Option<Direction>)| {
        let quantiles = &Quantile::REPORTED;
        let estimates = figures::quantile_estimates(flow, &series, direction, quantiles);
        estimates.iter().map(|estimate| plus_minus(estimate.as_ref())).collect()
    };
    flows.iter().zip(columns).map(of).collect()
}

fn percentiles(
    out: &mut String,
    names: &[&str],
    times: &[&Histogram],
    half_widths: &[Vec<String>],
    style: &Style,
) {
    let mut columns = vec![(Align::Left, 2)];
    columns.extend(times.iter().flat_map(|_| [(Align::Right, 3), (Align::Left, 1)]));
    let mut table = Table::new(&columns);
    let heads = names.iter().flat_map(|name| [(*name).to_owned(), String::new()]);
    table.row(Tint::Dim, std::iter::once(String::new()).chain(heads));
    let cell = |value: Option<u64>| value.map_or("-".to_owned(), |ns| figures::time(ns as f64));
    let plain = |name: &str, values: Vec<Option<u64>>| {
        let cells = values.into_iter().flat_map(|value| [cell(value), String::new()]);
        std::iter::once(name.to_owned()).chain(cells).collect::<Vec<_>>()
    };
    table.row(Tint::Plain, plain("min", times.iter().map(|t| t.min()).collect()));
    let mut withheld = None;
    for (place, quantile) in Quantile::REPORTED.into_iter().enumerate() {
        let values: Vec<Option<u64>> =
            times.iter().map(|t| figures::carried(t, quantile)).collect();
        if quantile.0 > 0.5 && values.iter().all(Option::is_none) {
            withheld = Some(quantile);
            break;
        }
        let mut row = vec![(quantile.to_string(), Tint::Plain)];
        for (column, value) in values.into_iter().enumerate() {
            let half = half_widths.get(column).and_then(|half| half.get(place));
            row.push((cell(value), Tint::Plain));
            row.push((half.cloned().unwrap_or_default(), Tint::Dim));
        }
        table.tinted(row);
    }
    let last: Vec<Option<u64>> = times.iter().map(|t| t.max()).collect();
    table.row(Tint::Plain, plain("max", last));
    table.render(out, style);
    let most = times.iter().map(|t| t.count()).max().unwrap_or(0);
    if let Some(quantile) = withheld {
        let text = format!(
            "{quantile} and beyond: not enough samples ({} in all, and {} have to lie beyond)",
            figures::count(most),
            fathom_core::stats::TAIL_SAMPLES
        );
        wrap(out, "  ", &text, Tint::Dim, style);
    }
}

/// Queue depth, ledger, CPU, devices and errors.
fn accounts(out: &mut String, document: &Document, trial: &Trial, style: &Style) {
    for part in Part::streams(trial).chain([Part::whole(trial)]) {
        in_flight(out, part, style);
    }
    for part in Part::streams(trial).chain([Part::whole(trial)]) {
        offered(out, part, style);
    }
    ceiling(out, document, trial, style);
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
    wrap(out, "ledger       ", &text, Tint::Plain, style);
    cpu(out, trial, style);
    devices(out, trial, style);
    errors(out, document, trial, style);
}

/// "log: ", in front of what is said of a stream; nothing where there is only one.
fn whose(part: Part<'_>) -> String {
    match (part.stream, part.trial.point.streams.len()) {
        (None, 1) => String::new(),
        _ => format!("{}: ", part.name()),
    }
}

fn in_flight(out: &mut String, part: Part<'_>, style: &Style) {
    let depth: u32 = part.loads().map(|stream| stream.pacing.queue_depth()).sum();
    let achieved: f64 = part.workers().map(|worker| worker.queue_depth).sum();
    let asked = if part.is_open() { "up to" } else { "of" };
    let text = format!(
        "{}{} in flight on average, {asked} {depth} asked",
        whose(part),
        figures::significant(achieved)
    );
    wrap(out, "queue depth  ", &text, Tint::Plain, style);
}

fn offered(out: &mut String, part: Part<'_>, style: &Style) {
    let trial = part.trial;
    let offered = |stream: &Stream| stream.offered(Span(0), trial.window());
    let loads: Vec<f64> = part.loads().filter_map(offered).collect();
    // The sum over one open loop among closed ones is that one's.
    if loads.is_empty()
        || (part.stream.is_none() && trial.point.streams.len() > 1 && loads.len() < 2)
    {
        return;
    }
    let offered: f64 = loads.iter().sum();
    let open = |worker: &Worker| {
        part.has(worker.stream) && trial.point.streams[worker.stream as usize].pacing.is_open()
    };
    let achieved =
        figures::per_second(trial.flow(None, |worker, _| open(worker)).ios(), trial.window());
    let workers = trial.workers.iter().filter(|worker| open(worker));
    let unstarted: u64 = workers.map(|worker| worker.ledger.unstarted).sum();
    let mut text = format!("{}{} IOPS offered", whose(part), figures::rate(offered));
    if let Some(achieved) = achieved {
        let share = figures::percent(achieved / offered);
        text += &format!(", {} achieved ({share})", figures::rate(achieved));
    }
    text += &format!(", {} never started", figures::count(unstarted));
    wrap(out, "load         ", &text, Tint::Plain, style);
}

/// What the load generator could have done: whether it, and not the target, was the limit.
fn ceiling(out: &mut String, document: &Document, trial: &Trial, style: &Style) {
    let Some(ceiling) = figures::ceiling(document, trial) else { return };
    let text =
        format!("the generator could have done {}", figures::ceiling_in_words(&ceiling, trial));
    wrap(out, "ceiling      ", &text, Tint::Plain, style);
}

fn cpu(out: &mut String, trial: &Trial, style: &Style) {
    let Some(counters) = &trial.counters else { return };
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
    wrap(out, "CPU          ", &text, Tint::Plain, style);
    let mut table = Table::new(&[
        (Align::Left, 13),
        (Align::Right, 2),
        (Align::Right, 2),
        (Align::Right, 2),
        (Align::Right, 2),
    ]);
    table.row(Tint::Dim, ["core", "user", "kernel", "idle", "steal"].map(str::to_owned));
    let mut cores: Vec<_> = counters.cpus.iter().collect();
    if cores.len() > ROWS_SHOWN && !style.all_workers {
        cores.sort_by_key(|core| core.idle_ns);
        cores.truncate(ROWS_SHOWN);
        cores.sort_by_key(|core| core.cpu);
    }
    for core in &cores {
        let parts = [core.user_ns, core.kernel_ns, core.idle_ns, core.steal_ns].map(|ns| ns as f64);
        let total: f64 = parts.iter().sum();
        let share =
            |ns: f64| if total > 0.0 { figures::percent(ns / total) } else { "-".to_owned() };
        let shares = parts.map(share);
        table.row(Tint::Plain, std::iter::once(format!("{}", core.cpu)).chain(shares));
    }
    if !counters.cpus.is_empty() {
        table.render(out, style);
    }
    let hidden = counters.cpus.len() - cores.len();
    if hidden > 0 {
        push_line(out, &format!("             and {hidden} cores that were less busy"));
    }
    threads(out, trial, style);
}

/// How much of a CPU each worker used, and for how long it had to wait for one. Of more than can be
/// shown the busiest: where one of them has no more to give, it limits what its stream can do.
fn threads(out: &mut String, trial: &Trial, style: &Style) {
    let share = |ns: Option<u64>| {
        let window = trial.window_ns.max(1) as f64;
        ns.map_or("-".to_owned(), |ns| figures::percent((ns as f64 / window).min(1.0)))
    };
    let mut workers: Vec<_> = trial.workers.iter().filter(|one| one.cpu_ns.is_some()).collect();
    let all = workers.len();
    if all == 0 {
        return;
    }
    if all > ROWS_SHOWN && !style.all_workers {
        workers.sort_by_key(|worker| std::cmp::Reverse(worker.cpu_ns));
        workers.truncate(ROWS_SHOWN);
        workers.sort_by_key(|worker| (worker.stream, worker.worker));
    }
    let mut columns = [(Align::Right, 2); 4];
    columns[0] = (Align::Left, 13);
    let mut table = Table::new(&columns);
    table.row(Tint::Dim, ["thread", "tied to", "busy", "waited"].map(str::to_owned));
    for worker in &workers {
        let name = match trial.point.streams.get(worker.stream as usize) {
            Some(stream) if trial.point.streams.len() > 1 => {
                format!("{}, {}", stream.name, worker.worker)
            }
            _ => worker.worker.to_string(),
        };
        let tied = worker.pinned_cpu.map_or("any".to_owned(), |cpu| format!("CPU {cpu}"));
        table.row(Tint::Plain, [name, tied, share(worker.cpu_ns), share(worker.cpu_wait_ns)]);
    }
    table.render(out, style);
    if workers.len() < all {
        push_line(
            out,
            &format!("             and {} threads that were less busy", all - workers.len()),
        );
    }
}

fn devices(out: &mut String, trial: &Trial, style: &Style) {
    for device in trial.counters.iter().flat_map(|counters| &counters.devices) {
        let text = format!("{}: {}, as the kernel counted", device.name, device.in_words());
        wrap(out, "device       ", &text, Tint::Plain, style);
    }
}

/// How many errors are shown one by one.
const ERRORS_SHOWN: usize = 5;

fn errors(out: &mut String, document: &Document, trial: &Trial, style: &Style) {
    let count = trial.errors();
    if count == 0 {
        return;
    }
    let text = format!("{} I/Os failed; the first of them:", figures::count(count));
    wrap(out, "errors       ", &text, Tint::Bad, style);
    let mut first: Vec<_> = trial.workers.iter().flat_map(|worker| &worker.errors.first).collect();
    first.sort_by_key(|error| error.at_ns);
    for error in first.into_iter().take(ERRORS_SHOWN) {
        let sign = if error.at_ns < 0 { "-" } else { "" };
        let text = format!(
            "{sign}{} {} of {} at offset {} of {}: {}",
            figures::time(error.at_ns.unsigned_abs() as f64),
            error.what(),
            Bytes(error.length_bytes),
            error.offset_bytes,
            figures::target_name(document, error.target),
            figures::failure(error.failure)
        );
        wrap(out, "             ", &text, Tint::Plain, style);
    }
    let gave_up = trial.workers.iter().filter(|worker| worker.gave_up).count();
    if gave_up > 0 {
        let who = if gave_up == 1 { "1 worker".to_owned() } else { format!("{gave_up} workers") };
        let text = format!("{who} gave up, because one I/O after the other failed");
        wrap(out, "             ", &text, Tint::Bad, style);
    }
}
