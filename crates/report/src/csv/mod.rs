//! The table: a row for each trial, worker, target and direction, then the sums of each stream, if
//! there are several, of each host, if there are several, and of the trial.
//!
//! Quoted as in RFC 4180, with the line ends that Unix tools expect, and so that no spreadsheet
//! treats a name as a formula, and no terminal treats one as a command. A figure that is not known,
//! or that has too few samples, is an empty field and never zero. In a row that sums over workers
//! or targets those columns are empty. For an experiment each row has the place of its trial: its
//! role, its repeat, and its place on each axis. The cells of a latency map, most of which are not
//! trials, have a separate table, and so has the series.

pub mod history;
pub mod series;

use fathom_core::measure::{Direction, Flow, Histogram, Ledger, Upkeep};
use fathom_core::spec::{Arrivals, Cache, Loop, SyncMode};
use fathom_core::{Quantile, printable, stats};

use crate::chart;
use crate::document::{
    Cell, Document, Found, HostTrial, JobsFound, Place, Stream, Trial, Verdict, Worker,
};
use crate::figures::{self, TrialPart};

/// The subject of a row.
struct Row<'a> {
    document: &'a Document,
    /// From 1.
    number: usize,
    trial: &'a Trial,
    /// The part that contains the row: one stream, or all.
    part: TrialPart<'a>,
    /// None when the row sums over several streams.
    stream: Option<&'a Stream>,
    /// None when the row sums over hosts, or one machine applied the load.
    host: Option<&'a HostTrial>,
    /// None when the row sums over workers.
    worker: Option<&'a Worker>,
    /// None when the row sums over targets.
    target: Option<u32>,
    /// None when the row sums over both.
    direction: Option<Direction>,
    /// The kind of upkeep instead of reads and writes.
    upkeep: Option<Upkeep>,
    flow: Flow,
}

/// A column, with its content.
struct Column {
    name: String,
    about: String,
    value: Box<dyn Fn(&Row<'_>) -> String>,
}

fn column(name: &str, about: &str, value: impl Fn(&Row<'_>) -> String + 'static) -> Column {
    Column { name: name.to_owned(), about: about.to_owned(), value: Box::new(value) }
}

/// A document as a table.
pub fn document(document: &Document) -> String {
    let found = document.found();
    if let Some(Found::Jobs(found)) = found {
        return jobs(found);
    }
    let mut columns = all_columns();
    columns.extend(axis_names(document).into_iter().map(axis_column));
    let mut out = String::new();
    push(&mut out, columns.iter().map(|column| column.name.clone()));
    for (place, trial) in document.trials.iter().enumerate() {
        for row in rows(document, place + 1, trial) {
            push(&mut out, columns.iter().map(|column| (column.value)(&row)));
        }
    }
    out
}

/// Another program's jobs as a table: a row for each job and direction.
fn jobs(found: &JobsFound) -> String {
    let quantiles = chart::jobs::QUANTILES;
    let heads = ["job", "direction", "window_seconds", "ios", "iops", "bytes_per_second"];
    let times = ["min", "mean", "max", "deviation"].map(|name| format!("service_time_{name}_ns"));
    let at = quantiles.map(|quantile| format!("service_time_{quantile}_ns"));
    let mut out = String::new();
    let mut all: Vec<String> = heads.map(str::to_owned).to_vec();
    all.extend(times.into_iter().chain(at));
    all.push("options".to_owned());
    push(&mut out, all.into_iter());
    for job in &found.jobs {
        let options = job.options.iter().map(|(name, value)| format!("{name}={value}"));
        let options = options.collect::<Vec<_>>().join(" ");
        for flow in &job.flows {
            let times = &flow.service_time;
            let mut fields = Vec::from([
                job.name.clone(),
                flow.direction.name().to_owned(),
                optional(flow.window_ns.map(|ns| ns as f64 / 1e9)),
                optional(flow.ios),
                optional(flow.iops),
                optional(flow.bandwidth_bytes),
            ]);
            let told = [times.min_ns, times.mean_ns, times.max_ns, times.deviation_ns];
            fields.extend(told.map(optional));
            fields.extend(quantiles.map(|quantile| optional(times.at(quantile))));
            fields.push(options.clone());
            push(&mut out, fields.into_iter());
        }
    }
    out
}

/// Every column's name and content, in order: for the manual. Columns of axes have the axis for
/// AXIS.
pub fn columns() -> Vec<(String, String)> {
    let columns = all_columns().into_iter().chain([axis_column("AXIS".to_owned())]);
    columns.map(|column| (column.name, column.about)).collect()
}

/// The cells of a document's latency map as a table; none if it has no map.
pub fn cells(document: &Document) -> Option<String> {
    let Some(Found::Map(found)) = document.found() else { return None };
    let mut out = String::new();
    let mut heads = ["write", "read", "write_bandwidth_bytes_per_second", "read_rate_iops", "kind"]
        .map(str::to_owned)
        .to_vec();
    for quantile in &found.quantiles {
        heads.push(format!("response_time_{quantile}_ns"));
        heads.push(format!("response_time_{quantile}_half_width_ns"));
    }
    heads.push("doubt".to_owned());
    push(&mut out, heads.into_iter());
    for cell in &found.cells {
        let mut fields = Vec::from([
            cell.write.to_string(),
            cell.read.to_string(),
            optional(found.write_bandwidths.get(cell.write as usize)),
            optional(found.read_rates.get(cell.read as usize)),
            cell.kind.name().to_owned(),
        ]);
        for place in 0..found.quantiles.len() {
            let estimate = cell.response_time_ns.get(place).copied().flatten();
            fields.push(optional(estimate.map(|estimate| format!("{:.1}", estimate.value))));
            let half = estimate.and_then(|estimate| estimate.half_width);
            fields.push(optional(half.map(|half| format!("{half:.1}"))));
        }
        fields.push(optional(cell.doubt_in_words()));
        push(&mut out, fields.into_iter());
    }
    Some(out)
}

/// The axes that the trials lie on, in the order in which they name them.
fn axis_names(document: &Document) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for one in document.trials.iter().flat_map(|trial| &trial.place.coordinates) {
        if !names.contains(&one.axis) {
            names.push(one.axis.clone());
        }
    }
    names
}

fn axis_column(axis: String) -> Column {
    let name = axis_head(&axis);
    let about = "Where the trial lies on an axis of the experiment: a number where it is one, \
                 otherwise as it is typed; empty if it does not lie on it";
    column(&name, about, move |row| place_on(row.trial, &axis))
}

fn axis_head(axis: &str) -> String {
    format!("at_{}", axis.replace('-', "_"))
}

/// Where a trial lies on an axis.
fn place_on(trial: &Trial, axis: &str) -> String {
    let one = trial.place.coordinates.iter().find(|one| one.axis == axis);
    optional(one.map(|one| match one.value {
        Some(value) => value.to_string(),
        None => one.label.clone(),
    }))
}

/// The role of a trial, if it is a part of an experiment.
fn role(trial: &Trial) -> String {
    let part = trial.place != Place::default();
    optional(part.then(|| trial.place.role.name()))
}

fn push(out: &mut String, fields: impl Iterator<Item = String>) {
    for (place, field) in fields.enumerate() {
        if place > 0 {
            out.push(',');
        }
        out.push_str(&self::field(&field));
    }
    out.push('\n');
}

/// A text or a number as a field of a table: of all tables, including traces. A spreadsheet
/// computes a text that begins like a formula, and a formula can start programs, so that such a
/// text gets an apostrophe before it. Control characters are shown with escapes, because tables are
/// read in terminals, too.
pub fn field(text: &str) -> String {
    let formula = begins_like_a_formula(text) && !is_number(text);
    let text = format!("{}{}", if formula { "'" } else { "" }, printable(text));
    match text.contains(['"', ',', ';']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text,
    }
}

/// Some programs ignore a space before it, and East Asian ones accept the wide signs too.
fn begins_like_a_formula(text: &str) -> bool {
    let first = text.trim_start().chars().next();
    let signs = ['=', '+', '-', '@', '|', '%', '＝', '＋', '－', '＠'];
    first.is_some_and(|first| signs.contains(&first)) || text.starts_with(['\t', '\r', '\n'])
}

fn is_number(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    digits.starts_with(|c: char| c.is_ascii_digit()) && text.parse::<f64>().is_ok()
}

fn rows<'a>(document: &'a Document, number: usize, trial: &'a Trial) -> Vec<Row<'a>> {
    let sum = |part: TrialPart<'a>| Row {
        document,
        number,
        trial,
        part,
        stream: None,
        host: None,
        worker: None,
        target: None,
        direction: None,
        upkeep: None,
        flow: Flow::default(),
    };
    let by_host = trial.by_host();
    let mut rows = Vec::new();
    for (place, worker) in trial.workers.iter().enumerate() {
        let part = TrialPart { trial, stream: Some(worker.stream) };
        let host = by_host.iter().find(|(_, own)| own.contains(&place)).map(|(host, _)| *host);
        for cell in &worker.cells {
            let this =
                |other: &Worker, one: &Cell| std::ptr::eq(other, worker) && std::ptr::eq(one, cell);
            let row = || Row {
                stream: trial.point.streams.get(worker.stream as usize),
                host,
                worker: Some(worker),
                target: Some(cell.target),
                ..sum(part)
            };
            for direction in part.columns() {
                rows.push(Row { direction, flow: trial.flow(direction, this), ..row() });
            }
            for what in Upkeep::ALL.into_iter().filter(|&what| cell.upkeep(what).is_some()) {
                rows.push(Row { upkeep: Some(what), flow: trial.upkeep(what, this), ..row() });
            }
        }
    }
    let whole = TrialPart::whole(trial);
    let sums = TrialPart::streams(trial).map(|part| (part, None, 0..trial.workers.len()));
    let of_hosts = by_host.iter().map(|(host, own)| (whole, Some(*host), own.clone()));
    let all = std::iter::once((whole, None, 0..trial.workers.len()));
    for (part, host, own) in sums.chain(of_hosts).chain(all) {
        let mut streams = part.loads();
        let stream = match (streams.next(), streams.next()) {
            (Some(only), None) => Some(only),
            _ => None,
        };
        let own = &trial.workers[own];
        let is_own = |worker: &Worker, _: &Cell| {
            part.has(worker.stream) && own.as_ptr_range().contains(&std::ptr::from_ref(worker))
        };
        let row = || Row { stream, host, ..sum(part) };
        for direction in part.columns() {
            rows.push(Row { direction, flow: trial.flow(direction, is_own), ..row() });
        }
        for (what, _) in part.upkeep() {
            rows.push(Row { upkeep: Some(what), flow: trial.upkeep(what, is_own), ..row() });
        }
    }
    rows
}

impl Row<'_> {
    /// Whether it is the sum of everything in its trial.
    fn is_total(&self) -> bool {
        let is_of_all = self.worker.is_none() && self.host.is_none() && self.part.stream.is_none();
        is_of_all && self.direction_sum()
    }

    /// The host, if the row is the sum of everything that it did.
    fn whole_host(&self) -> Option<&HostTrial> {
        self.host.filter(|_| self.worker.is_none())
    }

    /// Whether it covers every direction of its trial: figures without a direction, such as the
    /// ledger, are in these rows.
    fn direction_sum(&self) -> bool {
        self.upkeep.is_none() && (self.direction.is_none() || self.part.columns().len() == 1)
    }

    /// The name of a target: each host has its own.
    fn target_name(&self, target: u32) -> &str {
        let hosts = &self.document.header.hosts;
        let host = self.host.and_then(|own| hosts.iter().find(|one| one.name == own.host));
        let there = host.and_then(|host| host.targets.get(target as usize));
        there.map_or_else(|| figures::target_name(self.document, target), |target| &target.name)
    }

    /// The ledger, in the rows of a whole trial: a worker has no ledger for each target.
    fn ledger(&self) -> Option<Ledger> {
        self.is_total().then(|| self.trial.ledger())
    }

    fn per_second(&self, amount: u64) -> String {
        optional(figures::per_second(amount, self.trial.window()).map(|rate| format!("{rate:.3}")))
    }
}

fn optional<T: ToString>(value: Option<T>) -> String {
    value.map(|value| value.to_string()).unwrap_or_default()
}

fn all_columns() -> Vec<Column> {
    let mut columns = identity();
    columns.extend(load());
    columns.extend(access());
    columns.extend(amounts());
    columns.extend(times("service_time", "Completed minus submitted", |row| {
        Some(&row.flow.service_time)
    }));
    columns.extend(times(
        "response_time",
        "Completed minus intended start; empty in a closed loop, where it equals the service time",
        |row| row.flow.response_time.as_ref(),
    ));
    columns.extend(accounts());
    columns
}

fn identity() -> Vec<Column> {
    Vec::from([
        column("trial", "The trial's number, from 1", |row| row.number.to_string()),
        column("point", "What people call the point", |row| row.trial.point.name.clone()),
        column(
            "role",
            "What the trial is for: result, preparation, probe, official, validation or sentinel; \
             empty where it is no part of an experiment",
            |row| role(row.trial),
        ),
        column("repeat", "Which of the trials at the same place it is, from 0", |row| {
            row.trial.place.repeat.to_string()
        }),
        column("stream", "The stream; empty in a sum over several", |row| {
            optional(row.stream.map(|stream| stream.name.clone()))
        }),
        column(
            "host",
            "The host; empty in a sum over several, and where one machine applied the load. A host \
             that was lost has no rows",
            |row| optional(row.host.map(|host| &host.host)),
        ),
        column("worker", "The worker's place in its stream; empty in a sum", |row| {
            optional(row.worker.map(|worker| worker.worker))
        }),
        column("target", "The target, by its name on the host; empty in a sum", |row| {
            optional(row.target.map(|target| row.target_name(target)))
        }),
        column("direction", "read, write, total, flush or trim", |row| {
            row.upkeep.map_or(figures::direction_name(row.direction), Upkeep::name).to_owned()
        }),
        column(
            "verdict",
            "sound, suspect or void; that of the host in its sum, otherwise of the trial",
            |row| match row.whole_host() {
                Some(host) => optional(host.verdict.map(Verdict::name)),
                None => row.trial.verdict.name().to_owned(),
            },
        ),
        column(
            "findings",
            "The codes of what was found, with spaces between; those of the host in its sum",
            |row| match row.whole_host() {
                Some(host) => host.doubts.join(" "),
                None => {
                    let codes = row.trial.findings.iter().map(|finding| finding.code.as_str());
                    codes.collect::<Vec<&str>>().join(" ")
                }
            },
        ),
        column("started", "When the window began, RFC 3339, UTC", |row| row.trial.started.clone()),
        column("window_ns", "The window as it was", |row| row.trial.window_ns.to_string()),
        column("interrupted", "Whether the window ended before its time", |row| {
            row.trial.interrupted.to_string()
        }),
    ])
}

fn load() -> Vec<Column> {
    let stream = |value: fn(&Stream) -> String| {
        move |row: &Row<'_>| row.stream.map(value).unwrap_or_default()
    };
    Vec::from([
        column(
            "loop",
            "closed or open",
            stream(|stream| match stream.pacing.is_open() {
                true => "open".to_owned(),
                false => "closed".to_owned(),
            }),
        ),
        column(
            "pattern",
            "How offsets follow each other: sequential, random, zipf 1.1 and so on",
            stream(figures::pattern_names),
        ),
        column(
            "block_size_bytes",
            "Bytes moved by one I/O",
            stream(|stream| stream.block_sizes().largest().0.to_string()),
        ),
        column(
            "read_share",
            "Share of reads, from 0 to 1",
            stream(|stream| stream.read_share().to_string()),
        ),
        column(
            "queue_depth",
            "The most I/Os in flight that the stream allows",
            stream(|stream| stream.pacing.queue_depth().to_string()),
        ),
        column(
            "offered_load_iops",
            "I/Os per second that should start, the mean over the window if they change; open loop",
            |row| {
                let window = row.trial.point.window;
                let offered = row.stream.and_then(|stream| stream.pacing.offered_load(window));
                let machines = if row.host.is_some() { 1 } else { row.trial.machines() };
                optional(offered.map(|load| load.0 * machines as f64))
            },
        ),
        column(
            "course",
            "How the offered load changes over time; open loop",
            stream(|stream| optional(stream.pacing.course())),
        ),
        column(
            "arrivals",
            "uniform or poisson; open loop",
            stream(|stream| match stream.pacing.pace {
                Loop::Open { arrivals: Arrivals::Uniform, .. } => "uniform".to_owned(),
                Loop::Open { arrivals: Arrivals::Poisson, .. } => "poisson".to_owned(),
                Loop::Closed { .. } => String::new(),
            }),
        ),
    ])
}

fn access() -> Vec<Column> {
    let stream = |value: fn(&Stream) -> String| {
        move |row: &Row<'_>| row.stream.map(value).unwrap_or_default()
    };
    Vec::from([
        column(
            "cache",
            "direct or buffered",
            stream(|stream| match stream.access.cache {
                Cache::Direct => "direct".to_owned(),
                Cache::Buffered => "buffered".to_owned(),
            }),
        ),
        column(
            "write_through",
            "Whether writes waited for the medium",
            stream(|stream| stream.access.is_durable().to_string()),
        ),
        column(
            "sync",
            "dsync, sync, rwf_dsync or rwf_sync: how writes were asked to",
            stream(|stream| match stream.access.sync {
                SyncMode::None => String::new(),
                mode => mode.name().replace('-', "_"),
            }),
        ),
        column("backend", "What carried the I/Os", |row| row.trial.backend.name().to_owned()),
    ])
}

fn amounts() -> Vec<Column> {
    Vec::from([
        column("bytes", "Bytes that completed in the window", |row| row.flow.bytes.0.to_string()),
        column("ios", "I/Os that completed in the window", |row| row.flow.ios().to_string()),
        column("bandwidth_bytes_per_second", "Bytes per second", |row| {
            row.per_second(row.flow.bytes.0)
        }),
        column("throughput_iops", "I/Os per second", |row| row.per_second(row.flow.ios())),
        column(
            "throughput_half_width_iops",
            "Half of the 95 % confidence interval; in sums over all workers and targets, of a host \
             in that of both directions",
            |row| {
                let iops = match (row.worker, row.host) {
                    (Some(_), _) => None,
                    (None, Some(host)) => host.iops.filter(|_| row.direction_sum()),
                    (None, None) => row.part.summary(row.direction, &[]).iops,
                };
                let half_width = iops.and_then(|estimate| estimate.half_width);
                optional(half_width.map(|half_width| format!("{half_width:.3}")))
            },
        ),
    ])
}

/// The columns of a distribution: mean, deviation, extremes and every reported percentile.
fn times(
    name: &str,
    about: &str,
    of: for<'a, 'b> fn(&'a Row<'b>) -> Option<&'a Histogram>,
) -> Vec<Column> {
    let decimal = |value: Option<f64>| optional(value.map(|ns| format!("{ns:.1}")));
    let mut columns = Vec::from([
        column(&format!("{name}_mean_ns"), &format!("{about}: mean"), move |row| {
            decimal(of(row).and_then(Histogram::mean))
        }),
        column(
            &format!("{name}_standard_deviation_ns"),
            &format!("{about}: standard deviation"),
            move |row| decimal(of(row).and_then(Histogram::standard_deviation)),
        ),
        column(&format!("{name}_min_ns"), &format!("{about}: smallest"), move |row| {
            optional(of(row).and_then(Histogram::min))
        }),
    ]);
    columns.extend(Quantile::REPORTED.map(|quantile| {
        let about = format!(
            "{about}: {quantile}; empty where fewer than {} values lie beyond it",
            stats::TAIL_SAMPLES
        );
        column(&format!("{name}_{quantile}_ns"), &about, move |row| {
            optional(of(row).and_then(|times| figures::carried(times, quantile)))
        })
    }));
    columns.push(column(&format!("{name}_max_ns"), &format!("{about}: largest"), move |row| {
        optional(of(row).and_then(Histogram::max))
    }));
    columns
}

fn accounts() -> Vec<Column> {
    let ledger = |value: fn(&Ledger) -> u64| {
        move |row: &Row<'_>| optional(row.ledger().map(|ledger| value(&ledger)))
    };
    let of = "in the trial's total row";
    Vec::from([
        column("queue_depth_achieved", &format!("I/Os in flight on average; {of}"), |row| {
            optional(row.is_total().then(|| format!("{:.3}", row.trial.queue_depth())))
        }),
        column("due", &format!("I/Os that should have started, warm-up included; {of}"), {
            ledger(|ledger| ledger.due)
        }),
        column("completed_in_warm_up", &format!("I/Os that completed before the window; {of}"), {
            ledger(|ledger| ledger.completed_in_warm_up)
        }),
        column("failed", &format!("I/Os that failed before the window's end; {of}"), {
            ledger(|ledger| ledger.failed)
        }),
        column("in_flight", &format!("I/Os in flight at the window's end; {of}"), {
            ledger(|ledger| ledger.in_flight)
        }),
        column("lost", &format!("I/Os that never came back; {of}"), ledger(|ledger| ledger.lost)),
        column("unstarted", &format!("I/Os that were due and never started; {of}"), {
            ledger(|ledger| ledger.unstarted)
        }),
        column("cpu_ns_per_io", &format!("CPU time of fathom for each I/O; {of}"), |row| {
            let counters = row.trial.counters.as_ref().filter(|_| row.is_total());
            let per_io = counters.and_then(|counters| {
                let used = counters.process_user_ns as f64 + counters.process_kernel_ns as f64;
                (row.flow.ios() > 0).then(|| used / row.flow.ios() as f64)
            });
            optional(per_io.map(|ns| format!("{ns:.1}")))
        }),
        column(
            "generator_ceiling_iops",
            &format!(
                "I/Os per second that these workers could do with nothing behind the backend; {of}"
            ),
            |row| {
                let ceiling = row.is_total().then(|| figures::ceiling(row.document, row.trial));
                optional(ceiling.flatten().map(|ceiling| format!("{:.0}", ceiling.iops)))
            },
        ),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_quoted_as_rfc_4180_has_it() {
        let mut out = String::new();
        let fields = ["plain", "", "a,b", "say \"x\"", "two\nlines", "x\r\u{1b}[2J\u{9b}\0"]
            .map(str::to_owned);
        push(&mut out, fields.into_iter());
        assert_eq!(out, "plain,,\"a,b\",\"say \"\"x\"\"\",two\\nlines,x\\r\\x1b[2J\\x9b\\x00\n");
    }

    #[test]
    fn no_name_is_a_formula_and_every_number_stays_one() {
        for name in ["=1+1", "+1", "-1+1", "@SUM(A1)", " =1", "＝1", "|x", "-", "+inf", "-inf"] {
            assert_eq!(field(name), format!("'{name}"));
        }
        assert_eq!(field("\t=1"), "'\\t=1");
        assert_eq!(field("\rcalc,x"), "\"'\\rcalc,x\"");
        for number in ["0", "-5", "-0.25", "1e-9", "18446744073709551615", "1.5", ""] {
            assert_eq!(field(number), number);
        }
        for name in ["/dev/sda", "a=b", "sim:ssd", "a-b", "日本"] {
            assert_eq!(field(name), name);
        }
    }

    #[test]
    fn every_column_has_a_name_of_its_own() {
        let columns = columns();
        let names: std::collections::BTreeSet<&String> = columns.iter().map(|(n, _)| n).collect();
        assert_eq!(names.len(), columns.len());
        assert!(columns.iter().all(|(_, about)| !about.is_empty()));
    }
}
