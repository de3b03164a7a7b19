//! A page as Markdown, for issues and wikis: GitHub's dialect, which other programs read as well.
//! Characters of a name that would be markup are escaped, and character graphics are in code
//! blocks.

use fathom_core::{markup, printable};

use crate::chart::{Chart, Plot};
use crate::document::Document;
use crate::page::{
    Block, Drawing, Entry, Level, Listed, Outcome, Page, Remark, Section, Sentence, Table,
    TableRow, Tone,
};
use crate::terminal::{self, Style};

/// A document at a level.
pub fn document(document: &Document, level: Level) -> String {
    page(&Page::of(document, level.folding()))
}

/// A page.
pub fn page(page: &Page) -> String {
    let mut out = format!("# {}\n", escape(&page.title));
    let answer = page.answer.iter();
    answer.for_each(|one| paragraph(&mut out, &format!("**{}**", escape(&one.text))));
    blocks(&mut out, &page.about, 1);
    page.outcome.iter().for_each(|one| outcome(&mut out, one));
    blocks(&mut out, &page.blocks, 1);
    out
}

/// The verdict, first of all.
fn outcome(out: &mut String, outcome: &Outcome) {
    let (name, sentence) = (escape(&outcome.name), escape(&outcome.sentence));
    paragraph(out, &format!("> **{name}:** {sentence}"));
    outcome.conclusion.iter().for_each(|one| text(out, one));
    remarks(out, &outcome.remarks);
    outcome.unchecked.iter().for_each(|one| text(out, one));
}

fn blocks(out: &mut String, blocks: &[Block], depth: usize) {
    blocks.iter().for_each(|one| block(out, one, depth));
}

fn block(out: &mut String, block: &Block, depth: usize) {
    match block {
        Block::Section(one) => section(out, one, depth),
        Block::Text(one) => text(out, one),
        Block::Facts(all) => {
            let line =
                |(name, text): (&str, &str)| format!("**{}:** {}", escape(name), escape(text));
            list(out, all.iter().map(|fact| line((&fact.name, &fact.text))));
        }
        Block::List(all) => list(out, all.iter().map(|one| escape(one))),
        Block::Remarks(all) => remarks(out, all),
        Block::Table(one) | Block::Figures(one) => table(out, one),
        Block::Charts(all) => {
            for one in all {
                if let Drawing::Chart(one) = one {
                    chart(out, one);
                }
            }
        }
        // The table below it says the same.
        Block::Spark(_) => {}
        Block::Tree(lines) => {
            let line = |(depth, one): &(usize, Sentence)| {
                format!("{}{}\n", "  ".repeat(*depth), printable(&one.text))
            };
            code(out, &lines.iter().map(line).collect::<String>());
        }
    }
}

/// An empty line and a paragraph.
fn paragraph(out: &mut String, text: &str) {
    out.push('\n');
    out.push_str(text);
    out.push('\n');
}

fn text(out: &mut String, sentence: &Sentence) {
    let text = escape(&sentence.text);
    paragraph(out, &if sentence.tone == Tone::Strong { format!("**{text}**") } else { text });
}

fn list(out: &mut String, lines: impl Iterator<Item = String>) {
    out.push('\n');
    lines.for_each(|line| out.push_str(&format!("- {line}\n")));
}

fn remarks(out: &mut String, remarks: &[Remark]) {
    if remarks.is_empty() {
        return;
    }
    list(
        out,
        remarks.iter().map(|one| {
            let advice = match one.advice.as_str() {
                "" => String::new(),
                advice => format!(" *{}*", escape(advice)),
            };
            format!("**{}:** {}{advice}", one.severity.name(), escape(&one.text))
        }),
    );
}

/// A heading with its section; it is closed if it is folded.
fn section(out: &mut String, section: &Section, depth: usize) {
    let verdict = section.verdict.map_or(String::new(), |verdict| format!(" ({})", verdict.name()));
    match section.folded {
        true => {
            let heading = guarded(&markup(&printable(&section.heading)));
            let summary = format!("<details><summary>{heading}{verdict}</summary>");
            paragraph(out, &summary);
            blocks(out, &section.blocks, depth);
            paragraph(out, "</details>");
        }
        false => {
            let marks = "#".repeat((depth + 1).min(6));
            paragraph(out, &format!("{marks} {}{verdict}", escape(&section.heading)));
            blocks(out, &section.blocks, depth + 1);
        }
    }
}

fn table(out: &mut String, table: &Table) {
    if !table.caption.is_empty() {
        paragraph(out, &escape(&table.caption));
    }
    out.push('\n');
    let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
    out.push_str(&line(table.heads.iter().map(|head| escape(&head.name)).collect()));
    let rule = |words: bool| if words { ":--" } else { "--:" }.to_owned();
    out.push_str(&line(table.heads.iter().map(|head| rule(head.words)).collect()));
    for row in &table.rows {
        let (tone, cells) = match row {
            TableRow::Group(text) => {
                out.push_str(&line(Vec::from([format!("**{}**", escape(text))])));
                continue;
            }
            TableRow::Cells { tone, cells } => (*tone, cells),
        };
        let cell = |cell: &Entry| match entry(cell) {
            text if tone == Tone::Strong && !text.is_empty() => format!("**{text}**"),
            text => text,
        };
        out.push_str(&line(cells.iter().map(cell).collect()));
    }
}

/// The content of a cell.
fn entry(entry: &Entry) -> String {
    match entry {
        Entry::Words(text) => escape(text),
        Entry::Name { text, below, .. } => escape(&format!("{}, {below}", text.trim_start())),
        Entry::Figure { text, half } => escape(format!("{text} {half}").trim_end()),
        Entry::Bar { word, .. } => escape(word),
        Entry::Trials(trials) => Listed::in_words(trials),
        Entry::Verdict(verdict) => verdict.name().to_owned(),
    }
}

/// The character graphics for a chart, as in the terminal.
fn chart(out: &mut String, chart: &Chart) {
    let drawn = chart.panels.iter().any(|panel| match &panel.plot {
        Plot::Heat(heat) => !heat.written,
        Plot::Lines(_) => false,
    });
    if drawn {
        code(out, &terminal::chart(chart, &Style::default()));
    }
}

/// Unchanged text, inside a fence that it cannot end.
fn code(out: &mut String, text: &str) {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    paragraph(out, &format!("{fence}text\n{}\n{fence}", text.trim_matches('\n')));
}

/// Text in a line, without markup: neither Markdown's nor HTML's, and without anything that breaks
/// a table.
fn escape(text: &str) -> String {
    let text = printable(text);
    let text = text.trim();
    let mut out = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        if matches!(
            c,
            '\\' | '`' | '*' | '_' | '{' | '}' | '[' | ']' | '<' | '>' | '|' | '&' | '~' | '$'
        ) {
            out.push('\\');
        }
        out.push(c);
    }
    guarded(&begun(out))
}

/// A text whose beginning does not form a list, a heading or a rule.
fn begun(text: String) -> String {
    let rest = text.trim_start_matches(|c: char| c.is_ascii_digit());
    let at = text.len() - rest.len();
    let mut letters = rest.chars();
    match (letters.next(), letters.next()) {
        (Some('.' | ')'), None | Some(' ')) if 0 < at => format!("{}\\{rest}", &text[..at]),
        (Some('#' | '+' | '-' | '=' | ':'), _) if at == 0 => format!("\\{text}"),
        _ => text,
    }
}

/// A text without mentions and links: an invisible comment separates the sign from the name.
fn guarded(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        out.push(c);
        if matches!(c, '@' | '#') {
            out.push_str("<!-- -->");
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_was_typed_becomes_markup() {
        for (text, shown) in [
            ("a|b`c`", r"a\|b\`c\`"),
            ("<img src=x>&lt;", r"\<img src=x\>\&lt;"),
            ("*a* _b_ [c](d) ~e~ $f$", r"\*a\* \_b\_ \[c\](d) \~e\~ \$f\$"),
            ("a\nb\u{1b}[2J", r"a\\nb\\x1b\[2J"),
            ("1. a", r"1\. a"),
            ("2.65 ms", "2.65 ms"),
            ("- a", r"\- a"),
            ("---", r"\---"),
            ("4,200 ±1%", "4,200 ±1%"),
            ("@all #1", "@<!-- -->all #<!-- -->1"),
        ] {
            assert_eq!(escape(text), shown);
        }
    }

    #[test]
    fn a_block_of_code_ends_where_it_is_to_end() {
        let mut out = String::new();
        code(&mut out, "a\n````\nb\n");
        assert_eq!(out, "\n`````text\na\n````\nb\n`````\n");
    }
}
