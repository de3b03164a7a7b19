//! The report of a watch.

use fathom_core::facts::{Answer, LayerKind};
use fathom_core::figures::{number, percent, significant, time};
use fathom_core::measure::Histogram;
use fathom_core::watch::{Busiest, Counted, CountedFlow, Observed, ObservedFlow};
use fathom_core::{Bytes, Quantile, Span, Utc};

use super::about::conditions;
use super::{
    Block, Drawing, Entry, Fact, Head, Level, Page, Section, Sentence, Spare, Spark, Table,
    TableRow, Tone,
};
use crate::chart;
use crate::figures::{self, carried};
use crate::thresholds::{in_answer, outcomes_of_watch};
use crate::watched::{OTHERS, WatchedDisk, WatchedResult};

/// The percentiles in the table.
const QUANTILES: [Quantile; 3] = [Quantile(0.5), Quantile(0.99), Quantile(0.999)];
/// The programs in the table.
const PROGRAMS: usize = 10;

/// The report, with charts where there is room for them.
pub fn watched(result: &WatchedResult, level: Level) -> Page {
    let busiest = most(result);
    Page {
        title: title(result),
        answer: Some(answer_of_watch(result)),
        figures: (level == Level::Complete).then(|| tiles(busiest.map(|(_, disk)| disk))).flatten(),
        about: about(result),
        outcome: None,
        blocks: (0..result.disks.len()).map(|place| section(result, place, level)).collect(),
    }
}

fn title(result: &WatchedResult) -> String {
    let names: Vec<&str> = result.header.disks.iter().map(|disk| disk.name.as_str()).collect();
    let host = &result.header.host.name;
    let on = if host.is_empty() { String::new() } else { format!(" on {host}") };
    match names.as_slice() {
        [first, _, _, _, ..] => format!("watch of {first} and {} more disks{on}", names.len() - 1),
        few => format!("watch of {}{on}", few.join(", ")),
    }
}

/// The disk with the most I/Os, with its place.
fn most(result: &WatchedResult) -> Option<(usize, &WatchedDisk)> {
    let with_ios = |(_, disk): &(usize, &WatchedDisk)| disk.counted.is_some_and(|it| it.ios() > 0);
    let ios = |(_, disk): &(usize, &WatchedDisk)| disk.counted.map_or(0, |it| it.ios());
    result.disks.iter().enumerate().filter(with_ios).max_by_key(ios)
}

/// The answer in one sentence: the load and the response times of the busiest disk, and the conditions
/// that apply.
pub fn answer_of_watch(result: &WatchedResult) -> Sentence {
    let outcomes = outcomes_of_watch(result);
    let holds = |answer| outcomes.iter().any(|one| one.holds == answer);
    let seen = seen(result);
    let tone = match (holds(Answer::Yes), holds(Answer::Unknown)) {
        (true, _) => Tone::Bad,
        (false, true) => Tone::Doubtful,
        (false, false) => seen.tone,
    };
    let parts: Vec<String> = std::iter::once(seen.text).chain(in_answer(&outcomes)).collect();
    Sentence { tone, text: parts.join("; ") }
}

/// The load and the response times of the busiest disk.
fn seen(result: &WatchedResult) -> Sentence {
    let length = result.length();
    let Some((place, disk)) = most(result) else {
        return Sentence { tone: Tone::Quiet, text: format!("no reads or writes in {length}") };
    };
    let Some(counted) = disk.counted else { return Sentence::plain("nothing was counted") };
    let mut text = format!(
        "{}: {} IOPS ({}/s) on average over {length}",
        result.header.disks[place].name,
        number(counted.per_second(counted.ios())),
        Bytes(counted.per_second(counted.reads.bytes.0 + counted.writes.bytes.0) as u64),
    );
    if let Some((start, best)) = disk.busiest_minute.best() {
        let rate = number(best.per_second(best.ios()));
        text += &format!(", {rate} in the busiest minute, from {}", moment(result, *start));
    }
    let observed = disk.observed.as_ref();
    for (name, counted, observed) in [
        ("reads", counted.reads, observed.map(|it| &it.reads)),
        ("writes", counted.writes, observed.map(|it| &it.writes)),
    ] {
        let p99 = observed.and_then(|it| carried(&it.response_time, Quantile(0.99)));
        match (p99, counted.mean_time()) {
            (Some(p99), _) => text += &format!("; {name} p99 {}", time(p99 as f64)),
            (None, Some(mean)) => text += &format!("; {name} mean {}", time(mean)),
            (None, None) => {}
        }
    }
    if let Some((name, share)) = main_program(disk) {
        text += &format!("; {name} caused {} of the observed I/Os", percent(share));
    }
    Sentence { tone: Tone::Strong, text }
}

/// "14:03:20", with the date if the watch took longer than a day.
fn moment(result: &WatchedResult, at: Span) -> String {
    let at = Utc::from_unix((result.header.created_unix_ns.saturating_add(at.0)) / 1_000_000_000);
    let clock = format!("{:02}:{:02}:{:02} UTC", at.hour, at.minute, at.second);
    match Span::from_secs(86_400) < result.length() {
        true => format!("{:04}-{:02}-{:02} {clock}", at.year, at.month, at.day),
        false => clock,
    }
}

/// The figures that stand large beside the answer.
fn tiles(disk: Option<&WatchedDisk>) -> Option<Table> {
    let counted = disk?.counted?;
    let observed = disk?.observed.as_ref();
    let mut all = Vec::from([
        ("IOPS".to_owned(), number(counted.per_second(counted.ios()))),
        ("busy".to_owned(), percent(counted.utilization())),
    ]);
    for (name, flow) in
        [("reads p99", observed.map(|it| &it.reads)), ("writes p99", observed.map(|it| &it.writes))]
    {
        let p99 = flow.and_then(|it| carried(&it.response_time, Quantile(0.99)));
        all.extend(p99.map(|p99| (name.to_owned(), time(p99 as f64))));
    }
    let (heads, cells): (Vec<Head>, Vec<Entry>) =
        all.into_iter().map(|(name, text)| (Head::figures(&name), Entry::figure(text))).unzip();
    let rows = Vec::from([TableRow::Cells { tone: Tone::Plain, cells }]);
    Some(Table { caption: String::new(), heads, rows })
}

fn about(result: &WatchedResult) -> Vec<Block> {
    let header = &result.header;
    let length = result.length();
    let mut facts = Vec::from([
        Fact::new("watched", format!("{} for {length}", figures::moment(&header.created))),
        Fact::new("interval", Span(header.interval_ns).to_string()),
        Fact::new("host", figures::host(&header.host)),
        Fact::new("command", figures::command_line(&header.command_line)),
    ]);
    if let Some(code) = result.end.as_ref().and_then(|end| end.exit_code) {
        facts.push(Fact::new("exit code", code.to_string()));
    }
    let share = result.own_cpu.0 as f64 / length.0.max(1) as f64;
    facts.push(Fact::new("cost", format!("{} of a CPU for watching", percent(share))));
    let mut blocks = Vec::from([Block::Facts(facts)]);
    let mut doubts = Vec::new();
    if let Some(why) = &header.without_events {
        doubts.push(format!(
            "Only the kernel's counters were read, so there are no percentiles and no programs: {why}."
        ));
    }
    if result.lost_events > 0 {
        doubts.push(format!(
            "The kernel dropped {} events. Counts and bytes are exact; times and programs lack these.",
            number(result.lost_events as f64)
        ));
    }
    if result.end.is_none() {
        doubts.push("The file has no end: the watch was killed, or goes on.".to_owned());
    }
    let sentence = |text: String| Block::Text(Sentence { tone: Tone::Doubtful, text });
    blocks.extend(conditions(outcomes_of_watch(result)).map(Block::Text));
    blocks.extend(doubts.into_iter().map(sentence));
    blocks
}

fn section(result: &WatchedResult, place: usize, level: Level) -> Block {
    let (name, disk) = (&result.header.disks[place], &result.disks[place]);
    let heading = match kind(name.kind) {
        "" => name.name.clone(),
        kind => format!("{} ({kind})", name.name),
    };
    let Some(counted) = disk.counted.filter(|it| it.ios() + it.flushes.ios + it.discards.ios > 0)
    else {
        let blocks = Vec::from([Block::quiet("no I/O")]);
        return Block::Section(Section { heading, blocks, ..Section::default() });
    };
    let mut blocks = Vec::from([
        Block::Table(flows(disk, &counted)),
        Block::Text(Sentence::plain(queue(&counted, disk.observed.as_ref()))),
    ]);
    blocks.extend(peaks(result, disk).map(Block::Table));
    blocks.extend(programs(disk).map(Block::Table));
    blocks.push(Block::Spark(spark(disk)));
    if level == Level::Complete {
        let charts = chart::watched::charts(disk, place + 1, result.length());
        blocks.push(Block::Charts(charts.into_iter().map(Drawing::Chart).collect()));
    }
    Block::Section(Section { heading, blocks, ..Section::default() })
}

fn kind(kind: LayerKind) -> &'static str {
    match kind {
        LayerKind::Disk => "",
        LayerKind::Partition => "a partition",
        LayerKind::Md => "software RAID",
        LayerKind::DeviceMapper => "a volume of the device mapper",
        LayerKind::Loop => "a file as a device",
        LayerKind::Zram => "compressed memory",
        LayerKind::Btrfs => "btrfs",
    }
}

fn queue(counted: &Counted, observed: Option<&Observed>) -> String {
    let mut text = format!(
        "{} requests in flight on average; busy {} of the time.",
        significant(counted.mean_queue()),
        percent(counted.utilization())
    );
    if let Some(seen) = observed.and_then(|observed| counted.seen_by(observed)) {
        text += &format!(
            " Times and programs are those of the {} of its requests that events showed.",
            percent(seen)
        );
    }
    text
}

/// The head of a column of figures. A phone shows the throughput and the times.
fn head(name: &str) -> Head {
    const SPARE: [&str; 5] = ["mean size", "merged", "sequential", "queue", "device"];
    let spare = if SPARE.contains(&name) { Spare::Narrow } else { Spare::Nothing };
    Head::figures(name).with(spare)
}

/// A row for each operation that occurred.
fn flows(disk: &WatchedDisk, counted: &Counted) -> Table {
    let has_events = disk.observed.is_some();
    let mut heads = Vec::from([Head::words("")]);
    heads.extend(["IOPS", "MiB/s", "mean size", "merged"].map(head));
    let times: &[&str] = match has_events {
        true => &["sequential", "mean", "queue", "device", "p50", "p99", "p99.9", "longest"],
        false => &["mean"],
    };
    heads.extend(times.iter().copied().map(head));
    let mut table = Table::new("", heads);
    let observed = |flow: fn(&Observed) -> &ObservedFlow| disk.observed.as_ref().map(flow);
    for (name, flow, observed) in [
        ("reads", counted.reads, observed(|it| &it.reads)),
        ("writes", counted.writes, observed(|it| &it.writes)),
        ("discards", counted.discards, observed(|it| &it.discards)),
        ("flushes", counted.flushes, observed(|it| &it.flushes)),
    ] {
        if flow.ios > 0 {
            let mut cells = Vec::from([Entry::words(name)]);
            cells.extend(counts(counted, &flow).map(Entry::figure));
            match observed {
                Some(observed) => cells.extend(of_events(observed).map(Entry::figure)),
                None => cells.push(Entry::figure(shown(flow.mean_time(), time))),
            }
            table.row(cells);
        }
    }
    table
}

fn shown(value: Option<f64>, write: fn(f64) -> String) -> String {
    figures::or_unknown(value.map(write))
}

fn counts(counted: &Counted, flow: &CountedFlow) -> [String; 4] {
    let size = |bytes: f64| Bytes(bytes.round() as u64).to_string();
    [
        number(counted.per_second(flow.ios)),
        significant(figures::mib(counted.per_second(flow.bytes.0))),
        shown(flow.mean_size().filter(|size| *size > 0.0), size),
        shown(flow.merged_share(), percent),
    ]
}

fn of_events(flow: &ObservedFlow) -> [String; 8] {
    let quantile = |times: &Histogram, quantile| carried(times, quantile).map(|ns| ns as f64);
    let [p50, p99, p999] = QUANTILES.map(|one| quantile(&flow.response_time, one));
    [
        shown(flow.sequential_share(), percent),
        shown(flow.response_time.mean(), time),
        shown(flow.queue_time.mean(), time),
        shown(flow.device_time.mean(), time),
        shown(p50, time),
        shown(p99, time),
        shown(p999, time),
        shown(flow.response_time.max().map(|ns| ns as f64), time),
    ]
}

/// The busiest minute and hour.
fn peaks(result: &WatchedResult, disk: &WatchedDisk) -> Option<Table> {
    let heads = ["IOPS", "MiB/s", "reads mean", "writes mean", "in flight", "busy"];
    let heads =
        [Head::words("busiest"), Head::words("from")].into_iter().chain(heads.map(Head::figures));
    let mut table = Table::new("", heads);
    let mut row = |name: &str, busiest: &Busiest| {
        let Some((start, best)) = busiest.best() else { return };
        let bytes = best.reads.bytes.0 + best.writes.bytes.0;
        table.row([
            Entry::words(name),
            Entry::words(moment(result, *start)),
            Entry::figure(number(best.per_second(best.ios()))),
            Entry::figure(significant(figures::mib(best.per_second(bytes)))),
            Entry::figure(shown(best.reads.mean_time(), time)),
            Entry::figure(shown(best.writes.mean_time(), time)),
            Entry::figure(significant(best.mean_queue())),
            Entry::figure(percent(best.utilization())),
        ]);
    };
    row("minute", &disk.busiest_minute);
    row("hour", &disk.busiest_hour);
    (!table.rows.is_empty()).then_some(table)
}

/// The I/Os of all programs.
fn all_ios(disk: &WatchedDisk) -> u64 {
    disk.programs.values().map(|caused| caused.ios()).sum()
}

/// The program with the most I/Os, and its share of those of all programs.
fn main_program(disk: &WatchedDisk) -> Option<(&str, f64)> {
    let (name, caused) = disk.programs.iter().max_by_key(|(_, caused)| caused.ios())?;
    // Those that caused least are one, which has no name. The kernel writes for others.
    let is_a_program = name != OTHERS && !name.starts_with("kworker");
    (0 < caused.ios() && is_a_program)
        .then(|| (name.as_str(), caused.ios() as f64 / all_ios(disk) as f64))
}

/// The programs by their share of the I/Os.
fn programs(disk: &WatchedDisk) -> Option<Table> {
    let mut all: Vec<_> = disk.programs.iter().collect();
    all.sort_by_key(|(_, caused)| std::cmp::Reverse(caused.ios()));
    let sum = all_ios(disk);
    let heads = ["reads", "writes", "read", "written"].map(Head::figures);
    let heads = [Head::words("program"), Head::words("share of I/Os")].into_iter().chain(heads);
    let mut table = Table::new("", heads);
    for (name, caused) in all.into_iter().take(PROGRAMS) {
        let share = caused.ios() as f64 / sum.max(1) as f64;
        table.row([
            Entry::words(name.clone()),
            Entry::Bar { share, word: percent(share) },
            Entry::figure(number(caused.reads as f64)),
            Entry::figure(number(caused.writes as f64)),
            Entry::figure(caused.read_bytes.to_string()),
            Entry::figure(caused.written_bytes.to_string()),
        ]);
    }
    (!table.rows.is_empty()).then_some(table)
}

fn spark(disk: &WatchedDisk) -> Spark {
    let pieces = disk.over_time.pieces();
    let values = pieces.iter().map(|piece| piece.figures.per_second(piece.figures.ios()));
    Spark { title: "IOPS over time".to_owned(), values: values.collect(), mark: None }
}

#[cfg(test)]
mod tests {
    use fathom_core::watch::Caused;

    use super::*;

    #[test]
    fn the_kernel_and_the_rest_are_no_program() {
        let main = |programs: &[(&str, u64)]| {
            let mut disk = WatchedDisk::default();
            for (name, reads) in programs {
                let caused = Caused { reads: *reads, ..Caused::default() };
                disk.programs.insert((*name).to_owned(), caused);
            }
            main_program(&disk).map(|(name, share)| (name.to_owned(), share))
        };
        assert_eq!(main(&[("postgres", 3), ("kworker", 1)]), Some(("postgres".to_owned(), 0.75)));
        assert_eq!(main(&[("postgres", 1), ("kworker", 3)]), None);
        assert_eq!(main(&[("postgres", 1), (OTHERS, 3)]), None);
        assert_eq!(main(&[("postgres", 0)]), None);
        assert_eq!(main(&[]), None);
    }
}
