//! A page for the terminal. Every line fits the given width as far as its words do, and text from
//! the document cannot control the terminal. The verdict comes at the end: the last line is seen
//! first.

mod heat;
mod table;
mod text;

pub use heat::so_far as map_so_far;

use fathom_core::printable;

use crate::chart::{Chart, Plot};
use crate::document::{Finding, Severity, Verdict};
use crate::page::{
    self, Block, Drawing, Fact, Level, Outcome, Page, Remark, Section, Sentence, Spark, Tone,
};
use text::{paint, push_line, width, wrap};

/// The properties of the terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Style {
    /// Columns of the terminal.
    pub width: usize,
    /// Whether it shows color.
    pub color: bool,
}

impl Default for Style {
    fn default() -> Self {
        Self { width: 80, color: false }
    }
}

/// A document at a level.
pub fn document(document: &crate::document::Document, level: Level, style: &Style) -> String {
    page(&Page::of(document, level), style)
}

/// The answer of a document, which is said last of all.
pub fn answer(document: &crate::document::Document, style: &Style) -> String {
    let mut out = String::new();
    sentence(&mut out, &page::answer(document), style);
    out
}

/// A sentence by itself, without a newline at its end.
pub fn line(one: &Sentence, style: &Style) -> String {
    let mut out = String::new();
    sentence(&mut out, one, style);
    out.trim_end_matches('\n').to_owned()
}

/// A page.
pub fn page(page: &Page, style: &Style) -> String {
    let mut out = String::new();
    wrap(&mut out, "", &page.title, Tone::Strong, style);
    blocks(&mut out, &page.about, style);
    if let Some(outcome) = page.outcome.as_ref().filter(|one| !one.conclusion.is_empty()) {
        gap(&mut out);
        outcome.conclusion.iter().for_each(|one| sentence(&mut out, one, style));
    }
    blocks(&mut out, &page.blocks, style);
    page.outcome.iter().for_each(|one| worth(&mut out, one, style));
    out
}

/// Findings by themselves.
pub fn findings(findings: &[Finding], style: &Style) -> String {
    let mut out = String::new();
    findings.iter().for_each(|one| remark(&mut out, &Remark::of(one), style));
    out
}

/// The verdict.
fn worth(out: &mut String, outcome: &Outcome, style: &Style) {
    gap(out);
    let tone = outcome.verdict.map_or(Tone::Strong, verdict_tone);
    let text = format!("{}: {}", outcome.name, outcome.sentence);
    wrap(out, "", &text, tone, style);
    match outcome.explains {
        true => outcome.remarks.iter().for_each(|one| remark(out, one, style)),
        false => brief(out, &outcome.remarks, style),
    }
    outcome.unchecked.iter().for_each(|one| sentence(out, one, style));
}

/// The gravest doubts, one line each.
fn brief(out: &mut String, remarks: &[Remark], style: &Style) {
    if remarks.is_empty() {
        return;
    }
    let (gravest, folded) = Remark::folded(remarks);
    for one in gravest {
        labelled(out, one.severity, &one.short, style);
    }
    let more = match folded {
        None => String::new(),
        Some((_, more)) => format!("and {more}; "),
    };
    let text = format!("{more}`fathom report RESULT --details` shows the evidence and the advice.");
    wrap(out, "           ", &text, Tone::Quiet, style);
}

fn verdict_tone(verdict: Verdict) -> Tone {
    match verdict {
        Verdict::Sound => Tone::Good,
        Verdict::Suspect => Tone::Doubtful,
        Verdict::Void => Tone::Bad,
    }
}

fn severity_tone(severity: Severity) -> Tone {
    match severity {
        Severity::Note => Tone::Plain,
        Severity::Suspect => Tone::Doubtful,
        Severity::Void => Tone::Bad,
    }
}

/// An empty line, unless there is one.
fn gap(out: &mut String) {
    if !out.is_empty() && !out.ends_with("\n\n") {
        out.push('\n');
    }
}

fn blocks(out: &mut String, blocks: &[Block], style: &Style) {
    let mut before: Option<&Block> = None;
    for one in blocks {
        if before.is_some_and(|before| is_apart(before, one)) {
            gap(out);
        }
        block(out, one, style);
        before = Some(one);
    }
}

/// Whether an empty line separates two blocks. A paragraph below a table or a picture explains it;
/// a block with a caption stands alone.
fn is_apart(before: &Block, block: &Block) -> bool {
    let is_figure =
        matches!(before, Block::Table(_) | Block::Charts(_) | Block::Spark(_) | Block::Figures(_));
    match block {
        Block::Text(_) => false,
        Block::Table(one) if !one.caption.is_empty() => true,
        Block::Figures(_) | Block::Spark(_) => true,
        _ => is_figure,
    }
}

fn block(out: &mut String, block: &Block, style: &Style) {
    match block {
        Block::Section(one) => section(out, one, style),
        Block::Text(one) => sentence(out, one, style),
        Block::Facts(all) => facts(out, all, style),
        Block::List(all) => all.iter().for_each(|one| wrap(out, "- ", one, Tone::Plain, style)),
        Block::Remarks(all) => all.iter().for_each(|one| remark(out, one, style)),
        Block::Table(one) | Block::Figures(one) => {
            if !one.caption.is_empty() {
                wrap(out, "", &one.caption, Tone::Plain, style);
            }
            table::render(out, one, style);
        }
        Block::Charts(all) => {
            for one in all {
                if let Drawing::Chart(one) = one {
                    push_chart(out, one, style);
                }
            }
        }
        Block::Spark(one) => spark(out, one, style),
        Block::Tree(lines) => {
            for (depth, one) in lines {
                wrap(out, &"  ".repeat(*depth), &one.text, one.tone, style);
            }
        }
    }
}

/// A heading with its section, and the verdict beside it.
fn section(out: &mut String, section: &Section, style: &Style) {
    gap(out);
    let mut heading = String::new();
    wrap(&mut heading, "", &section.heading, Tone::Strong, style);
    out.push_str(heading.trim_end_matches('\n'));
    if let Some(verdict) = section.verdict {
        out.push_str(&format!("  {}", paint(verdict_tone(verdict), verdict.name(), style)));
    }
    out.push('\n');
    blocks(out, &section.blocks, style);
}

fn sentence(out: &mut String, sentence: &Sentence, style: &Style) {
    wrap(out, "", &sentence.text, sentence.tone, style);
}

/// Names and their descriptions, in two columns.
fn facts(out: &mut String, facts: &[Fact], style: &Style) {
    let longest = facts.iter().map(|fact| width(&fact.name)).max().unwrap_or(0);
    // Beside a very long name there would be no room.
    let column = longest.min(style.width / 3);
    let mut before = "";
    for fact in facts {
        // Several of one name are named once.
        let name = if fact.name == before { "" } else { fact.name.as_str() };
        wrap(out, &text::padded(name, column + 2), &fact.text, fact.tone, style);
        before = &fact.name;
    }
}

/// A finding: the evidence, then the remedy.
fn remark(out: &mut String, remark: &Remark, style: &Style) {
    labelled(out, remark.severity, &remark.text, style);
    if !remark.advice.is_empty() {
        wrap(out, "           ", &remark.advice, Tone::Quiet, style);
    }
}

/// A severity, and the text beside it.
fn labelled(out: &mut String, severity: Severity, text: &str, style: &Style) {
    let name = severity.name();
    let mut lines = String::new();
    wrap(&mut lines, &format!("  {name:<9}"), text, Tone::Plain, style);
    let painted = paint(severity_tone(severity), name, style);
    out.push_str(&lines.replacen(name, &painted, 1));
}

/// The character graphics for a chart: cells, unless a table has their figures.
pub fn chart(chart: &Chart, style: &Style) -> String {
    let mut out = String::new();
    push_chart(&mut out, chart, style);
    out
}

fn push_chart(out: &mut String, chart: &Chart, style: &Style) {
    let heats = chart.panels.iter().filter_map(|panel| match &panel.plot {
        Plot::Heat(heat) if !heat.written => Some((panel.title.as_str(), heat)),
        Plot::Heat(_) | Plot::Lines(_) => None,
    });
    let mut any = false;
    for (title, heat) in heats {
        gap(out);
        let title = format!("{title} {}", lowered(&chart.title));
        wrap(out, "", title.trim_start(), Tone::Strong, style);
        heat::surface(out, heat, style);
        any = true;
    }
    if any {
        gap(out);
        wrap(out, "", &chart.words_of_characters(heat::sign), Tone::Quiet, style);
    }
}

/// A title within a sentence.
fn lowered(title: &str) -> String {
    let mut letters = title.chars();
    let first = letters.next().map(|letter| letter.to_lowercase().to_string());
    format!("{}{}", first.unwrap_or_default(), letters.as_str())
}

/// The heights of a sparkline.
const SPARKS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Values in a line; the last ones, if there is no room for all: they are the ones that count.
fn spark(out: &mut String, spark: &Spark, style: &Style) {
    let highest = spark.values.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
    let height = |value: &f64| SPARKS[((value / highest * 8.0).ceil() as usize).clamp(1, 8) - 1];
    let hidden = spark.values.len().saturating_sub(style.width);
    let hidden = if hidden == 0 { 0 } else { hidden + 1 };
    let cut = if hidden == 0 { "" } else { "…" };
    gap(out);
    push_line(
        out,
        &format!("{cut}{}", spark.values[hidden..].iter().map(height).collect::<String>()),
    );
    if let Some((from, words)) = &spark.mark {
        let words = printable(words);
        let place = from.saturating_sub(hidden) + usize::from(0 < hidden);
        let text = match place + 2 + words.len() <= style.width {
            true => format!("{}└ {words}", " ".repeat(place)),
            false => {
                format!("{}{words} ┘", " ".repeat(place.saturating_sub(words.len() + 1)))
            }
        };
        push_line(out, &text);
    }
}
