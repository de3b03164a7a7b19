//! The findings of a latency map: its surfaces, and their reliability.

use super::{Block, Drawing, Entry, Head, Level, Sentence, Table, Tone};
use crate::chart;
use crate::chart::map::Told;
use crate::document::{CellKind, Document, MapFound};
use crate::figures::{self, or_unknown};

/// The doubts, the surfaces, and their reliability.
pub fn map(document: &Document, found: &MapFound, level: Level) -> Vec<Block> {
    // Facts that the conclusion has already need not be repeated.
    let said = document.conclusion.iter().flat_map(|last| &last.sentences);
    let said: Vec<&String> = said.collect();
    let unsaid = |doubt: &&String| !said.iter().any(|said| said.contains(doubt.as_str()));
    let doubt = |text: &String| Block::Text(Sentence { tone: Tone::Doubtful, text: text.clone() });
    let mut blocks: Vec<Block> = found.doubts.iter().filter(unsaid).map(doubt).collect();
    let charts = chart::map::charts(document, found);
    if !charts.is_empty() {
        blocks.push(Block::Charts(charts.into_iter().map(Drawing::Chart).collect()));
    }
    if !found.validation.is_empty() {
        blocks.push(Block::Table(validation(found)));
    }
    blocks.extend(found.drift.map(|drift| Block::text(drift_in_words(drift))));
    if level == Level::Complete {
        let time = Told::of(document).time;
        blocks.extend(found.quantiles.iter().enumerate().map(|(nth, quantile)| {
            let heading = format!("{} of the {time} in every cell", quantile);
            let text = "Writes in MiB/s to the right, reads in IOPS downwards. •: measured; ?: \
                        measured, not precise; ×: overloaded; –: beyond what the target carries; \
                        !: suspect.";
            let blocks = [Block::quiet(text), Block::Table(surface(found, nth))];
            Block::folded(heading, Vec::from(blocks))
        }));
    }
    blocks
}

/// The errors of the filled-in cells.
fn validation(found: &MapFound) -> Table {
    let heads = ["cells", "median error", "largest"].map(Head::figures);
    let first = Head::words("filled-in cells against measurements");
    let mut table = Table::new("", [first].into_iter().chain(heads));
    for one in &found.validation {
        table.row([
            Entry::words(one.quantile.to_string()),
            Entry::figure(one.cells.to_string()),
            Entry::figure(figures::percent(one.median_error)),
            Entry::figure(figures::percent(one.largest_error)),
        ]);
    }
    table
}

/// The change of the cells that were measured again.
fn drift_in_words(drift: f64) -> String {
    if drift.abs() < 5e-4 {
        return "The response times of cells that were measured again at the end were the same."
            .to_owned();
    }
    let word = if drift < 0.0 { "shorter" } else { "longer" };
    format!(
        "The response times of cells that were measured again at the end were {} {word}, on average.",
        figures::percent(drift.abs())
    )
}

/// A quantile of every cell: the bandwidth of the writes to the right, the rate of the reads
/// downwards.
fn surface(found: &MapFound, nth: usize) -> Table {
    let mib = |bandwidth: &f64| figures::axis_rate(figures::mib(*bandwidth));
    let heads = found.write_bandwidths.iter().map(|one| Head::figures(&mib(one)));
    let mut table = Table::new("", [Head::words("")].into_iter().chain(heads));
    for (read, rate) in found.read_rates.iter().enumerate() {
        let cell = |write: usize| {
            let at = |cell: &&crate::document::MapCell| {
                (cell.write as usize, cell.read as usize) == (write, read)
            };
            let Some(cell) = found.cells.iter().find(at) else { return Entry::words("") };
            let value = cell.response_time_ns.get(nth).copied().flatten();
            let value = or_unknown(value.map(|value| figures::time(value.value)));
            let mark = if cell.counts() && cell.doubt.is_some() { " !" } else { "" };
            Entry::figure(match cell.kind {
                _ if cell.is_void() => "void".to_owned(),
                CellKind::Overloaded => "×".to_owned(),
                CellKind::Beyond => "–".to_owned(),
                CellKind::Measured => format!("{value} •{mark}"),
                CellKind::Imprecise => format!("{value} ?{mark}"),
                CellKind::Filled => format!("{value}{mark}"),
            })
        };
        let row = (0..found.write_bandwidths.len()).map(cell);
        let label = Entry::words(figures::axis_rate(*rate));
        table.row([label].into_iter().chain(row));
    }
    table
}
