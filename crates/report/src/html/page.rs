//! A page in plain HTML: everything except what the scripts draw.

use super::{escape, plotly, put};
use crate::chart::{self, Chart, Panel, Plot};
use crate::document::{Severity, Verdict};
use crate::page::{
    Block, Drawing, Entry, Fact, Head, Listed, Outcome, Page, Remark, Section, Sentence, Spare,
    Table, TableRow, Tone,
};

/// Tables with this many columns have smaller type.
const MANY: usize = 11;

/// A longer option may be broken, so that it fits a phone.
const OPTION: usize = 24;

/// The body of the page.
pub fn body(page: &Page) -> String {
    let mut out = String::new();
    put!(out, "<header>\n<p class=\"brand\">fathom</p>\n<h1>{}</h1>\n", escape(&page.title));
    if let Some(one) = &page.answer {
        put!(out, "<p class=\"answer{}\">{}</p>\n", tone_class(one.tone), words(&one.text));
    }
    page.figures.iter().for_each(|one| tiles(&mut out, one));
    out.push_str("</header>\n<main>\n");
    let tone = page.answer.as_ref().map(|one| one.tone);
    let (pictures, rest) = pictures_first(page);
    blocks(&mut out, &pictures, (1, &page.title));
    page.outcome.iter().for_each(|one| outcome(&mut out, one, tone));
    blocks(&mut out, &page.about, (1, &page.title));
    blocks(&mut out, &rest, (1, &page.title));
    out.push_str(
        "</main>\n<footer>This file is complete: it loads nothing. The charts are drawn by plotly.js (MIT \
         licence, inside).</footer>\n",
    );
    out
}

/// The first section up to its pictures, which stand above the doubts, and the other blocks. None stands
/// above the doubts of a void result, or where the page begins without pictures.
fn pictures_first(page: &Page) -> (Vec<Block>, Vec<Block>) {
    let is_void = page.outcome.as_ref().is_none_or(|one| one.verdict == Some(Verdict::Void));
    let all = page.blocks.clone();
    let [Block::Section(first), others @ ..] = all.as_slice() else { return (Vec::new(), all) };
    let pictures = first.blocks.iter().position(|one| matches!(one, Block::Charts(_)));
    let Some(pictures) = pictures.filter(|_| !is_void && !first.folded) else {
        return (Vec::new(), all);
    };
    let (above, below) = first.blocks.split_at(pictures + 1);
    let above = Section { blocks: above.to_vec(), ..first.clone() };
    let below = Block::section(format!("{}: details", first.heading), below.to_vec());
    let below = Some(below).filter(|_| pictures + 1 < first.blocks.len());
    (Vec::from([Block::Section(above)]), below.into_iter().chain(others.iter().cloned()).collect())
}

/// The verdict. Below an answer that is no good news a sound one is not green.
fn outcome(out: &mut String, outcome: &Outcome, answer: Option<Tone>) {
    let is_green = answer.is_none_or(|tone| tone == Tone::Good);
    let colored = outcome.verdict.filter(|one| *one != Verdict::Sound || is_green);
    let class = colored.map_or("note", Verdict::name);
    put!(out, "<section class=\"verdict {class}\">\n<strong>{}</strong>\n", escape(&outcome.name));
    put!(out, "<p>{}</p>\n", words(&outcome.sentence));
    outcome.conclusion.iter().for_each(|one| sentence(out, one));
    remarks(out, &outcome.remarks);
    outcome.unchecked.iter().for_each(|one| sentence(out, one));
    out.push_str("</section>\n");
}

/// The class of an answer's tone, with a space before it.
fn tone_class(tone: Tone) -> &'static str {
    match tone {
        Tone::Good => " is-sound",
        Tone::Doubtful => " is-suspect",
        Tone::Bad => " is-void",
        Tone::Plain | Tone::Strong | Tone::Quiet => "",
    }
}

/// The blocks below a heading.
fn blocks(out: &mut String, blocks: &[Block], (depth, heading): (usize, &str)) {
    for one in blocks {
        block(out, one, (depth, heading));
    }
}

fn block(out: &mut String, block: &Block, (depth, heading): (usize, &str)) {
    match block {
        Block::Section(one) => section(out, one, depth),
        Block::Text(one) => sentence(out, one),
        Block::Facts(all) => facts(out, all),
        Block::List(all) => {
            out.push_str("<ul>\n");
            all.iter().for_each(|one| put!(out, "<li>{}</li>\n", words(one)));
            out.push_str("</ul>\n");
        }
        Block::Remarks(all) => remarks(out, all),
        Block::Table(one) | Block::Figures(one) => table(out, one, heading),
        Block::Charts(all) => {
            charts(out, all);
            if depth < 3 {
                no_charts(out);
            }
        }
        // A chart shows it.
        Block::Spark(_) => {}
        Block::Tree(lines) => {
            out.push_str("<pre>");
            for (depth, one) in lines {
                put!(out, "{}{}\n", "  ".repeat(*depth), escape(&one.text));
            }
            out.push_str("</pre>\n");
        }
    }
}

/// A heading with its section; it is closed if it is folded.
fn section(out: &mut String, section: &Section, depth: usize) {
    let id = section.trial.map_or(String::new(), |number| format!(" id=\"{}\"", anchor(number)));
    let class = section.trial.map_or("", |_| " class=\"trial\"");
    let verdict = section.verdict.map_or(String::new(), |verdict| chip(verdict.name()));
    let heading = format!("{}{verdict}", escape(&section.heading));
    let level = (depth + 1).min(4);
    let (begin, end) = match (section.folded, depth) {
        (true, _) => {
            (format!("<details{class}><summary{id}>{heading}</summary>\n"), "</details>\n")
        }
        (false, 1) => (format!("<section{class}{id}>\n<h2>{heading}</h2>\n"), "</section>\n"),
        (false, _) => (format!("<div{class}{id}>\n<h{level}>{heading}</h{level}>\n"), "</div>\n"),
    };
    out.push_str(&begin);
    blocks(out, &section.blocks, (depth + 1, &section.heading));
    out.push_str(end);
}

fn sentence(out: &mut String, sentence: &Sentence) {
    let class = match sentence.tone {
        Tone::Plain | Tone::Good | Tone::Doubtful | Tone::Bad => "",
        Tone::Strong => " class=\"strong\"",
        Tone::Quiet => " class=\"muted small\"",
    };
    put!(out, "<p{class}>{}</p>\n", words(&sentence.text));
}

/// A sentence. Browsers break lines behind hyphens, and `--` alone at the end of one is no option.
fn words(text: &str) -> String {
    let word = |word: &str| match word.contains("--") && word.chars().count() <= OPTION {
        true => format!("<span class=\"option\">{}</span>", escape(word)),
        false => escape(word),
    };
    text.split(' ').map(word).collect::<Vec<String>>().join(" ")
}

fn facts(out: &mut String, facts: &[Fact]) {
    out.push_str("<dl>\n");
    for fact in facts {
        put!(out, "<dt>{}</dt><dd>{}</dd>\n", escape(&fact.name), escape(&fact.text));
    }
    out.push_str("</dl>\n");
}

fn remarks(out: &mut String, remarks: &[Remark]) {
    if remarks.is_empty() {
        return;
    }
    let (gravest, folded) = Remark::folded(remarks);
    list_of_remarks(out, gravest);
    if let Some((rest, more)) = folded {
        put!(out, "<details class=\"more\"><summary>{more}</summary>\n");
        list_of_remarks(out, rest);
        out.push_str("</details>\n");
    }
}

/// A line for each, which the reader opens for the evidence and the remedy.
fn list_of_remarks(out: &mut String, remarks: &[Remark]) {
    out.push_str("<ul class=\"remarks\">\n");
    for one in remarks {
        put!(
            out,
            "<li><details><summary>{} {}</summary><p>{}</p><p class=\"advice\">{}</p></details></li>\n",
            chip(Severity::name(one.severity)),
            escape(&one.short),
            words(&one.text),
            words(&one.advice)
        );
    }
    out.push_str("</ul>\n");
}

/// A chip with a verdict's or a severity's name.
fn chip(name: &str) -> String {
    format!("<span class=\"chip {name}\">{name}</span>")
}

/// The anchor of a trial.
fn anchor(number: usize) -> String {
    format!("trial-{number}")
}

/// A table; without a caption it has the name of the section that it stands in.
fn table(out: &mut String, table: &Table, heading: &str) {
    // This many columns would push the last one out of the page.
    let many = if MANY <= table.heads.len() { " many" } else { "" };
    // A table that is wider than a phone scrolls, also with the keyboard.
    let (name, caption) = match table.caption.as_str() {
        "" => (format!("table: {}", escape(heading)), String::new()),
        own => {
            let own = escape(own);
            (format!("table: {own}"), format!("<caption>{own}</caption>\n"))
        }
    };
    put!(
        out,
        "<div class=\"scroll figures{many}\" tabindex=\"0\" role=\"group\" \
         aria-label=\"{name}\"><table>\n{caption}<thead><tr>"
    );
    for head in &table.heads {
        match head.name.as_str() {
            "" => put!(out, "<td{}></td>", column_class(head)),
            name => put!(out, "<th scope=\"col\"{}>{}</th>", column_class(head), escape(name)),
        }
    }
    out.push_str("</tr></thead>\n<tbody>\n");
    for row in &table.rows {
        match row {
            TableRow::Group(text) => put!(
                out,
                "<tr class=\"group\"><td colspan=\"{}\">{}</td></tr>\n",
                table.heads.len(),
                escape(text)
            ),
            TableRow::Cells { tone, cells } => {
                let strong = if *tone == Tone::Strong { " class=\"strong\"" } else { "" };
                put!(out, "<tr{strong}>");
                for (place, (cell, head)) in cells.iter().zip(&table.heads).enumerate() {
                    let (class, text) = (column_class(head), entry(cell));
                    // A row whose first cell is a figure has no name.
                    match place {
                        0 if head.words => put!(out, "<th scope=\"row\"{class}>{text}</th>"),
                        _ => put!(out, "<td{class}>{text}</td>"),
                    }
                }
                // Missing cells at the end become one empty cell.
                if let 1.. = table.heads.len().saturating_sub(cells.len()) {
                    put!(out, "<td colspan=\"{}\"></td>", table.heads.len() - cells.len());
                }
                out.push_str("</tr>\n");
            }
        }
    }
    out.push_str("</tbody></table></div>\n");
}

/// The class of a column's cells. A narrow screen leaves out what the head says can be left out.
fn column_class(head: &Head) -> &'static str {
    match (head.words, head.spare) {
        (true, Spare::Nothing | Spare::Halves) => " class=\"words\"",
        (true, Spare::Column | Spare::Narrow) => " class=\"words spare\"",
        (false, Spare::Nothing) => "",
        (false, Spare::Halves) => " class=\"spare-halves\"",
        (false, Spare::Column | Spare::Narrow) => " class=\"spare\"",
    }
}

/// The content of a cell.
fn entry(entry: &Entry) -> String {
    match entry {
        Entry::Words(text) => escape(text),
        Entry::Name { text, below, trial } => format!(
            "<a href=\"#{}\">{}</a><span class=\"pace\">{}</span>",
            anchor(*trial),
            escape(text),
            escape(below)
        ),
        Entry::Figure { text, half } if half.is_empty() => escape(text),
        Entry::Figure { text, half } => {
            format!("{}<span class=\"half\">{}</span>", escape(text), escape(half))
        }
        Entry::Bar { share, word } => {
            let width = share * 100.0;
            format!("<span class=\"bar\" style=\"width:{width:.1}%\"></span>{}", escape(word))
        }
        Entry::Trials(trials) => {
            let link = |one: &Listed| match one.trial {
                Some(trial) => {
                    format!("<a href=\"#{}\">{}</a>", anchor(trial), escape(&one.text))
                }
                None => escape(&one.text),
            };
            trials.iter().map(link).collect::<Vec<_>>().join(" ")
        }
        Entry::Verdict(verdict) => chip(verdict.name()),
    }
}

/// The figures that matter, large, each with its name.
fn tiles(out: &mut String, table: &Table) {
    out.push_str("<dl class=\"tiles\">\n");
    for row in &table.rows {
        let TableRow::Cells { cells, .. } = row else { continue };
        for (head, cell) in table.heads.iter().zip(cells) {
            let Entry::Figure { text, half } = cell else { continue };
            put!(
                out,
                "<div><dt>{}</dt><dd>{}<small>{}</small></dd></div>\n",
                escape(&head.name),
                escape(text),
                escape(half)
            );
        }
    }
    out.push_str("</dl>\n");
}

/// The placeholder for the charts of a section, as long as no script has drawn them.
fn no_charts(out: &mut String) {
    let why =
        "The charts need scripts and a browser of 2023 or later; the tables hold the figures.";
    put!(out, "<p class=\"no-charts muted small\">{why}</p>\n");
    put!(out, "<noscript><p class=\"muted small\">{why}</p></noscript>\n");
}

/// The elements that the charts are drawn into.
fn charts(out: &mut String, drawings: &[Drawing]) {
    out.push_str("<div class=\"charts\">\n");
    let whole: Vec<bool> = drawings.iter().map(is_whole).collect();
    // Two stand side by side; one that would be alone in its row gets all of it.
    let mut left = true;
    for (nth, drawing) in drawings.iter().enumerate() {
        let alone = left && whole.get(nth + 1).is_none_or(|next| *next);
        let wide = whole[nth] || alone;
        left = wide || !left;
        let wide = if wide { " wide" } else { "" };
        match drawing {
            Drawing::Chart(one) => chart(out, one, wide),
            Drawing::Named { id, title, .. } => {
                let words = format!("{title}. The table of this section has its figures.");
                put!(
                    out,
                    "<figure class=\"chart{wide}\"><figcaption><h3>{}</h3></figcaption>{}</figure>\n",
                    escape(title),
                    place(id, "", &words)
                );
            }
        }
    }
    out.push_str("</div>\n");
}

/// The element that a plot is drawn into: for a screen reader a picture with a text.
fn place(id: &str, class: &str, words: &str) -> String {
    format!(
        "<div id=\"{id}\" class=\"{class}\" role=\"img\" aria-label=\"{}\"></div>",
        escape(words)
    )
}

fn chart(out: &mut String, chart: &Chart, wide: &str) {
    let ids = plotly::ids(chart);
    let tall = if is_tall(chart) { "tall" } else { "drawn" };
    let caption = format!(
        "<h3>{}</h3><p class=\"muted small\">{}</p>",
        escape(&chart.title),
        escape(&chart.words_of_picture())
    );
    let words = |panel: &Panel| {
        let title = [chart.title.as_str(), panel.title.as_str()];
        let title: Vec<&str> = title.into_iter().filter(|text| !text.is_empty()).collect();
        format!("{}: {}", title.join(", "), panel.in_words())
    };
    let [id] = ids.as_slice() else {
        put!(out, "<div class=\"chart{wide}\">{caption}</div>\n");
        for (id, panel) in ids.iter().zip(&chart.panels) {
            put!(
                out,
                "<figure class=\"chart\"><figcaption><h4>{}</h4></figcaption>{}</figure>\n",
                escape(&panel.title),
                place(id, tall, &words(panel))
            );
        }
        return;
    };
    put!(out, "<figure class=\"chart{wide}\"><figcaption>{caption}</figcaption>");
    if chart.one_at_a_time && chart.panels.len() > 1 {
        choice(out, chart, id);
    }
    let first = chart.panels.get(chart.first()).map(words).unwrap_or_default();
    put!(out, "{}</figure>\n", place(id, tall, &first));
}

/// The buttons that show one of the plots, and the limit that readers can set.
fn choice(out: &mut String, chart: &Chart, id: &str) {
    let first = chart.first();
    put!(out, "<div class=\"choice\" role=\"group\" aria-label=\"Percentile\">");
    for (nth, panel) in chart.panels.iter().enumerate() {
        put!(
            out,
            "<button type=\"button\" data-chart=\"{id}\" data-plot=\"{nth}\" \
             aria-pressed=\"{}\">{}</button>",
            nth == first,
            escape(&panel.title)
        );
    }
    out.push_str("</div>\n");
    let Some(Plot::Heat(heat)) = chart.panels.get(first).map(|panel| &panel.plot) else { return };
    // One ms, if it is among them.
    let off = |limit: &chart::Limit| limit.value.ln().abs();
    let usual = heat.limits.iter().enumerate().min_by(|one, two| off(one.1).total_cmp(&off(two.1)));
    let Some((nth, limit)) = usual else { return };
    put!(
        out,
        "<div class=\"ask\"><label for=\"{id}-limit\">What can I have within</label>\
         <input type=\"range\" id=\"{id}-limit\" data-chart=\"{id}\" min=\"0\" max=\"{}\" \
         step=\"1\" value=\"{nth}\" aria-valuetext=\"{}\">\
         <output for=\"{id}-limit\" id=\"{id}-answer\">{}</output></div>\n",
        heat.limits.len() - 1,
        escape(&limit.text),
        escape(&limit.answer)
    );
}

/// Rounds and cells need the whole width; so do charts with many horizontal values.
fn is_whole(drawing: &Drawing) -> bool {
    let chart = match drawing {
        Drawing::Named { wide, .. } => return *wide,
        Drawing::Chart(chart) => chart,
    };
    plotly::ids(chart).len() > 1
        || chart.panels.iter().any(|panel| match &panel.plot {
            Plot::Heat(heat) => heat.x.len() > if heat.written { 5 } else { 8 },
            // Many names need many rows at half of the width.
            Plot::Lines(lines) => lines.x.ticks.len() > 14 || lines.series.len() > 6,
        })
}

fn is_tall(chart: &Chart) -> bool {
    let tall = |plot: &Plot| matches!(plot, Plot::Heat(heat) if heat.y.len() > 12);
    chart.panels.iter().any(|panel| tall(&panel.plot))
}
