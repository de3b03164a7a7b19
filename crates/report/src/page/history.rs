//! The report of a history.

use fathom_core::figures::percent;

use super::{
    Block, Drawing, Entry, Fact, Head, Level, Page, Section, Sentence, Spark, Table, Tone,
};
use crate::chart::history::of_series;
use crate::figures;
use crate::history::{
    History, HistoryChange, HistoryGroup, HistorySeries, HistoryValue, NotUsed, capital, moment,
    moved,
};

/// The characters of the line that stands for a series: more results are summed up.
const COLUMNS: usize = 72;

/// The series without a change that have a section of their own; of more, each has a line.
const STEADY_SHOWN: usize = 2;

/// The files that are named if not everything is.
const FILES: usize = 5;

/// The characters of a day in RFC 3339: "2026-03-01".
const DAY: usize = 10;

/// The facts that differ at a change in the table.
const FACTS: usize = 12;

/// The report, with charts where there is room for them.
pub fn history(history: &History, level: Level) -> Page {
    let changed = history.groups.iter().any(HistoryGroup::has_changed);
    let worse = history.groups.iter().flat_map(|group| &group.series);
    let worse = worse.flat_map(|series| &series.changes).any(|change| !change.better);
    let tone = match (changed, worse) {
        (true, true) => Tone::Doubtful,
        _ => Tone::Strong,
    };
    let mut nth = 0;
    let targets_differ = history.groups.windows(2).any(|pair| pair[0].target != pair[1].target);
    let mut blocks: Vec<Block> = Vec::new();
    for group in &history.groups {
        let heading = match targets_differ {
            true => format!("{} on {}", group.workload, group.target),
            false => group.workload.clone(),
        };
        let blocks_of = section(group, level, &mut nth);
        blocks.push(Block::Section(Section { heading, blocks: blocks_of, ..Section::default() }));
    }
    blocks.extend(not_used("Trials that do not count", &history.left_out, level));
    blocks.extend(not_used("Files that were skipped", &history.skipped, level));
    Page {
        title: format!("History: {}", history.folder),
        answer: Some(Sentence { tone, text: history.answer.clone() }),
        figures: None,
        about: about(history),
        outcome: None,
        blocks,
    }
}

fn about(history: &History) -> Vec<Block> {
    let values = history.groups.iter().flat_map(|group| &group.series);
    let created = values.flat_map(|series| &series.values).map(|value| &value.created);
    let ends = created.clone().min().zip(created.max());
    let mut facts = Vec::from([Fact::new(
        "results",
        format!("{} in {}", figures::count(history.results as u64), history.folder),
    )]);
    facts.extend(ends.map(|(first, last)| {
        let text = format!("{} to {}", figures::moment(first), figures::moment(last));
        Fact::new("time", text)
    }));
    Vec::from([Block::Facts(facts)])
}

fn section(group: &HistoryGroup, level: Level, nth: &mut usize) -> Vec<Block> {
    let mut blocks = Vec::from([Block::Facts(Vec::from([
        Fact::new("target", group.target.clone()),
        Fact::new("results", figures::count(group.results as u64)),
    ]))]);
    let (changed, steady): (Vec<&HistorySeries>, Vec<&HistorySeries>) =
        group.series.iter().partition(|series| !series.changes.is_empty());
    let (shown, listed) = match steady.len() <= STEADY_SHOWN && 1 < group.results {
        true => (steady, Vec::new()),
        false => (Vec::new(), steady),
    };
    for series in changed.into_iter().chain(shown) {
        *nth += 1;
        blocks.extend(of_one(series, level, *nth));
    }
    match listed.is_empty() {
        true => {}
        false if group.is_short() => {
            blocks.push(Block::quiet("There are too few results to find a change reliably."));
        }
        false => {
            let lines: Vec<String> = listed.iter().map(|series| series.sentence.clone()).collect();
            blocks.push(Block::section("Without a change", Vec::from([Block::List(lines)])));
        }
    }
    blocks
}

/// A series: the sentence, the chart, the levels, and what differs at each change.
fn of_one(series: &HistorySeries, level: Level, nth: usize) -> Vec<Block> {
    let point = match series.point.as_str() {
        "" => String::new(),
        point => format!("{point}: "),
    };
    let name = format!("{point}{}", series.figure.name());
    let mut blocks = Vec::from([Block::text(series.sentence.clone())]);
    // Too few to test are still worth a look.
    if 1 < series.values.len() {
        match level {
            Level::Complete => {
                let chart = Drawing::Chart(of_series(series, nth));
                blocks.push(Block::Charts(Vec::from([chart])));
            }
            // Between its lowest and its highest figure, noise would look like changes.
            _ if series.changes.is_empty() => {}
            _ => blocks.extend(spark(series)),
        }
    }
    if !series.changes.is_empty() {
        blocks.push(Block::Table(levels(series)));
        blocks.extend(facts(series));
    }
    Vec::from([Block::section(capital(&name), blocks)])
}

/// The series as a line of characters between its lowest and its highest figure.
fn spark(series: &HistorySeries) -> Vec<Block> {
    let chunk = series.values.len().div_ceil(COLUMNS).max(1);
    let mean = |values: &[HistoryValue]| {
        values.iter().map(|one| one.value).sum::<f64>() / values.len() as f64
    };
    let means: Vec<f64> = series.values.chunks(chunk).map(mean).collect();
    let low = means.iter().copied().fold(f64::INFINITY, f64::min);
    let high = means.iter().copied().fold(0.0, f64::max);
    if high <= low {
        return Vec::new();
    }
    let largest = series.changes.iter().max_by(|one, other| {
        let size = |change: &HistoryChange| change.ratio.value.ln().abs();
        size(one).total_cmp(&size(other))
    });
    let mark = largest.map(|change| {
        (change.at / chunk, format!("{}: {}", moment(series, change), moved(change.ratio)))
    });
    let values = means.iter().map(|mean| (mean - low) / (high - low)).collect();
    let each = match chunk {
        1 => "each result".to_owned(),
        many => format!("the mean of {many} results"),
    };
    let text = format!(
        "The line shows {each}, from {} (lowest) to {} (highest); it does not begin at zero.",
        series.figure.text(low),
        series.figure.text(high)
    );
    let title = format!("{} over time", series.figure.name());
    Vec::from([Block::Spark(Spark { title, values, mark }), Block::quiet(text)])
}

/// A row for each level.
fn levels(series: &HistorySeries) -> Table {
    let mean = match series.figure.name() {
        name if name.starts_with("the ") => name.trim_start_matches("the ").to_owned(),
        name => name,
    };
    let heads = [
        Head::words("from"),
        Head::figures("results"),
        Head::figures(&mean),
        Head::words("change"),
        Head::figures("chance"),
    ];
    let mut table = Table::new("", heads);
    for (place, level) in series.levels.iter().enumerate() {
        let change = place.checked_sub(1).map(|before| &series.changes[before]);
        let from = match change {
            Some(change) => moment(series, change),
            None => series.values[level.first].created.chars().take(DAY).collect(),
        };
        let tone = match change {
            Some(change) if !change.better => Tone::Doubtful,
            Some(_) => Tone::Good,
            None => Tone::Plain,
        };
        table.toned(
            tone,
            [
                Entry::words(from),
                Entry::figure(figures::count(level.results as u64)),
                Entry::figure(series.figure.text(level.mean)),
                Entry::words(change.map_or(String::new(), |change| moved(change.ratio))),
                Entry::figure(
                    change.map_or(String::new(), |change| format!("≤ {}", percent(change.p))),
                ),
            ],
        );
    }
    table
}

/// What differs at each change.
fn facts(series: &HistorySeries) -> Vec<Block> {
    let mut blocks = Vec::new();
    for change in &series.changes {
        let when = moment(series, change);
        if change.facts.is_empty() {
            blocks.push(Block::quiet(format!("On {when} no known fact changed.")));
            continue;
        }
        let heads = [Head::words("fact"), Head::words("before"), Head::words("after")];
        let mut table = Table::new(format!("What changed on {when}"), heads);
        for fact in change.facts.iter().take(FACTS) {
            table.row([&fact.name, &fact.before, &fact.after].map(Entry::words));
        }
        blocks.push(Block::Table(table));
        match change.facts.len().saturating_sub(FACTS) {
            0 => {}
            more => blocks.push(Block::quiet(format!("{more} more facts are in --json."))),
        }
    }
    blocks
}

/// The files or trials that are not used, each with the reason.
fn not_used(heading: &str, all: &[NotUsed], level: Level) -> Option<Block> {
    let line = |one: &NotUsed| format!("{}: {}", one.file, one.why);
    let shown = if level < Level::Full { FILES } else { all.len() };
    let mut blocks = Vec::from([Block::List(all.iter().take(shown).map(line).collect())]);
    match all.len().saturating_sub(shown) {
        0 => {}
        more => blocks.push(Block::quiet(format!("and {more} more; --details names all of them"))),
    }
    (!all.is_empty()).then(|| Block::section(heading, blocks))
}
