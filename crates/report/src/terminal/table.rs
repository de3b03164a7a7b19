//! A table in as many columns as the terminal has: the table says what is dropped first.

use fathom_core::printable;

use super::text::{paint, push_line, width, wrap};
use super::{Style, verdict_tone};
use crate::page::{Entry, Head, Listed, Spare, Table, TableRow, Tone};

/// The width of the bars.
const BAR: usize = 24;

/// The remaining parts of a table.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fit {
    /// Everything in one row.
    Whole,
    /// The notes of names, and the half-widths, in separate rows.
    TwoRows,
    /// Without the parts that may be dropped.
    Spared,
    /// Also without half-widths.
    Lean,
}

/// A piece of a line: a column of the terminal, of which a column of the table has one or two.
#[derive(Clone, Copy)]
struct Strip {
    /// Spaces before it.
    gap: usize,
    right: bool,
    /// The column of the table, and whether it is its half-widths.
    of: (usize, bool),
    width: usize,
}

/// A cell as text: its text, the text beside it, and their tones.
struct Written {
    text: String,
    half: String,
    tone: Tone,
}

/// Appends a table.
pub fn render(out: &mut String, table: &Table, style: &Style) {
    let named = table.rows.iter().any(|row| match row {
        TableRow::Cells { cells, .. } => {
            cells.iter().any(|cell| matches!(cell, Entry::Name { below, .. } if !below.is_empty()))
        }
        TableRow::Group(_) => false,
    });
    let fits: &[Fit] = match named {
        true => &[Fit::Whole, Fit::TwoRows],
        false => &[Fit::Whole, Fit::Spared, Fit::Lean],
    };
    let all = fits.iter().map(|fit| (*fit, strips(table, *fit)));
    let mut last = None;
    for (fit, strips) in all {
        let fitting = total(&strips) <= style.width;
        last = Some((fit, strips));
        if fitting {
            break;
        }
    }
    let Some((fit, strips)) = last else { return };
    let labels = labels(table);
    for part in parts(strips, labels, style.width) {
        lines(out, table, &part, fit, style);
    }
}

fn total(strips: &[Strip]) -> usize {
    strips.iter().map(|strip| strip.gap + strip.width).sum()
}

/// The number of columns that name a row: the first one, and those after it that hold words only.
fn labels(table: &Table) -> usize {
    let is_words = |column: &usize| {
        let rows = table.rows.iter().filter_map(|row| match row {
            TableRow::Cells { cells, .. } => cells.get(*column),
            TableRow::Group(_) => None,
        });
        rows.clone().next().is_some() && rows.clone().all(|cell| matches!(cell, Entry::Words(_)))
    };
    1 + (1..table.heads.len()).take_while(is_words).count()
}

/// The columns of the terminal in as many tables below each other as they need. The columns that name
/// a row begin each, if they leave room for any of the others; otherwise the first one does.
fn parts(strips: Vec<Strip>, labels: usize, room: usize) -> Vec<Vec<Strip>> {
    let named = |count: usize| {
        let own = strips.iter().filter(move |strip| strip.of.0 < count);
        own.copied().collect::<Vec<Strip>>()
    };
    let others = strips.iter().filter(|strip| labels <= strip.of.0);
    let widest = others.map(|strip| strip.gap + strip.width).max().unwrap_or(0);
    let is_room = total(&named(labels)) + widest <= room;
    let begin = || named(if is_room { labels } else { 1 });
    let first = begin().len();
    let mut parts: Vec<Vec<Strip>> = Vec::new();
    let mut part: Vec<Strip> = begin();
    for strip in strips.iter().skip(first) {
        let is_new = !strip.of.1 && first < part.len();
        if is_new && room < total(&part) + strip.gap + strip.width {
            parts.push(std::mem::replace(&mut part, begin()));
        }
        part.push(*strip);
    }
    parts.push(part);
    parts
}

fn strips(table: &Table, fit: Fit) -> Vec<Strip> {
    let mut strips = Vec::new();
    let groups = table.rows.iter().any(|row| matches!(row, TableRow::Group(_)));
    for (column, head) in table.heads.iter().enumerate() {
        let spared = fit == Fit::Spared || fit == Fit::Lean;
        if spared && head.spare == Spare::Column {
            continue;
        }
        let halves = match fit {
            Fit::Whole => true,
            Fit::TwoRows | Fit::Lean => false,
            Fit::Spared => head.spare != Spare::Halves,
        };
        let cells = table.rows.iter().filter_map(|row| match row {
            TableRow::Cells { tone, cells } => cells.get(column).map(|cell| (cell, *tone)),
            TableRow::Group(_) => None,
        });
        let cells: Vec<Written> = cells.map(|(cell, tone)| written(cell, tone, fit)).collect();
        let widest = |of: &dyn Fn(&Written) -> usize| cells.iter().map(of).max().unwrap_or(0);
        let beside = if halves { widest(&|cell| width(&cell.half)) } else { 0 };
        let below = match fit {
            Fit::TwoRows => widest(&|cell| width(&cell.half)),
            Fit::Whole | Fit::Spared | Fit::Lean => 0,
        };
        let gap = match column {
            0 => usize::from(groups) * 2,
            _ if fit == Fit::Whole && 0 < beside => 3,
            _ => 2,
        };
        let own = widest(&|cell| width(&cell.text)).max(below).max(width(&printable(&head.name)));
        strips.push(Strip { gap, right: !head.words, of: (column, false), width: own });
        if beside > 0 {
            strips.push(Strip { gap: 1, right: false, of: (column, true), width: beside });
        }
    }
    strips
}

/// A cell as text.
fn written(entry: &Entry, tone: Tone, fit: Fit) -> Written {
    let plain = |text: String| Written { text, half: String::new(), tone };
    match entry {
        Entry::Words(text) => plain(printable(text).into_owned()),
        Entry::Name { text, below, .. } => match fit {
            Fit::TwoRows => Written {
                text: printable(text).into_owned(),
                half: format!("    {}", printable(below)),
                tone,
            },
            Fit::Whole | Fit::Spared | Fit::Lean => {
                plain(printable(&format!("{text}, {below}")).into_owned())
            }
        },
        Entry::Figure { text, half } => {
            Written { text: printable(text).into_owned(), half: half.clone(), tone }
        }
        Entry::Bar { share, word } => {
            let length = (share * BAR as f64).round() as usize;
            plain(format!("{} {word}", "#".repeat(length)).trim_end().to_owned())
        }
        Entry::Trials(trials) => plain(Listed::in_words(trials)),
        Entry::Verdict(verdict) => Written {
            text: verdict.name().to_owned(),
            half: String::new(),
            tone: verdict_tone(*verdict),
        },
    }
}

fn lines(out: &mut String, table: &Table, strips: &[Strip], fit: Fit, style: &Style) {
    if table.heads.iter().any(|head| !head.name.is_empty()) {
        let head = |strip: &Strip| {
            let head: &Head = &table.heads[strip.of.0];
            if strip.of.1 { String::new() } else { printable(&head.name).into_owned() }
        };
        line(out, strips, style, |strip| (head(strip), Tone::Quiet));
    }
    for row in &table.rows {
        let (tone, cells) = match row {
            TableRow::Cells { tone, cells } => (*tone, cells),
            TableRow::Group(text) => {
                wrap(out, "", text, Tone::Strong, style);
                continue;
            }
        };
        let cell = |strip: &Strip| cells.get(strip.of.0).map(|cell| written(cell, tone, fit));
        line(out, strips, style, |strip| match (cell(strip), strip.of.1) {
            (Some(cell), false) => (cell.text, cell.tone),
            (Some(cell), true) => (cell.half, Tone::Quiet),
            (None, _) => (String::new(), tone),
        });
        if fit == Fit::TwoRows {
            line(out, strips, style, |strip| {
                (cell(strip).map_or(String::new(), |cell| cell.half), Tone::Quiet)
            });
        }
    }
}

fn line(
    out: &mut String,
    strips: &[Strip],
    style: &Style,
    text: impl Fn(&Strip) -> (String, Tone),
) {
    let mut line = String::new();
    for strip in strips {
        let (text, tone) = text(strip);
        let pad = " ".repeat(strip.width.saturating_sub(width(&text)));
        line.push_str(&" ".repeat(strip.gap));
        let text = paint(tone, &text, style);
        line.push_str(&if strip.right { format!("{pad}{text}") } else { format!("{text}{pad}") });
    }
    push_line(out, &line);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A table of two columns that name a row and several figures, in this many columns.
    fn drawn(columns: usize) -> String {
        let figures = ["IOPS", "MiB/s", "mean", "maximum"].map(Head::figures);
        let heads = [Head::words("pattern"), Head::figures("depth")].into_iter().chain(figures);
        let mut table = Table::new("", heads);
        for (pattern, depth) in [("sequential", "1"), ("random", "16")] {
            let figures = (0..4).map(|_| Entry::figure("123,456"));
            table.row([pattern, depth].map(Entry::words).into_iter().chain(figures));
        }
        let mut out = String::new();
        render(&mut out, &table, &Style { width: columns, color: false });
        out
    }

    #[test]
    fn each_part_of_a_table_begins_with_what_names_its_rows() {
        for (columns, parts, labels) in [(80, 1, 1), (45, 2, 2), (30, 4, 4), (24, 5, 1)] {
            let text = drawn(columns);
            assert_eq!(text.matches("pattern").count(), parts, "{text}");
            assert_eq!(text.matches("  16").count(), labels, "{text}");
        }
    }
}
