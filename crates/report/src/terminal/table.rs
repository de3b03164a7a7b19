//! A table in as many columns as the terminal has: the table says what is dropped first.

use fathom_core::printable;

use super::text::{paint, push_line, width, wrap};
use super::{Style, verdict_tone};
use crate::page::{Entry, Head, Spare, Table, TableRow, Tone};

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
    for part in parts(strips, style.width) {
        lines(out, table, &part, fit, style);
    }
}

fn total(strips: &[Strip]) -> usize {
    strips.iter().map(|strip| strip.gap + strip.width).sum()
}

/// The columns of the terminal in as many tables below each other as they need; the first column
/// begins each.
fn parts(strips: Vec<Strip>, room: usize) -> Vec<Vec<Strip>> {
    let mut parts: Vec<Vec<Strip>> = Vec::new();
    let mut part: Vec<Strip> = Vec::new();
    let first = strips.first().map(|one| Strip { of: one.of, ..*one });
    for strip in strips {
        let is_new = !strip.of.1 && 1 < part.len();
        if is_new && room < total(&part) + strip.gap + strip.width {
            let begins = first.iter().map(|one| Strip { of: one.of, ..*one }).collect();
            parts.push(std::mem::replace(&mut part, begins));
        }
        part.push(strip);
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
        Entry::Trials(trials) => {
            let numbers: Vec<String> = trials.iter().map(|(nth, _)| nth.to_string()).collect();
            plain(numbers.join(" "))
        }
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
