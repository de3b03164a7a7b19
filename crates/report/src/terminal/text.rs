//! Paint, wrapping and tables for a terminal of a given width.

use fathom_core::printable;

use super::Style;

/// How a piece of text stands out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tint {
    /// Not at all.
    #[default]
    Plain,
    /// A heading or a figure that matters most.
    Bold,
    /// What supports a figure.
    Dim,
    /// All is well.
    Good,
    /// To be doubted.
    Doubtful,
    /// Wrong.
    Bad,
}

impl Tint {
    /// The text in this tint, if the style has color. Whatever else would steer the terminal is shown
    /// instead.
    pub fn paint(self, text: &str, style: &Style) -> String {
        let text = &*printable(text);
        let code = match self {
            Self::Plain => return text.to_owned(),
            Self::Bold => "1",
            Self::Dim => "2",
            Self::Good => "32",
            Self::Doubtful => "33",
            Self::Bad => "1;31",
        };
        match style.color && !text.is_empty() {
            true => format!("\x1b[{code}m{text}\x1b[0m"),
            false => text.to_owned(),
        }
    }
}

/// How many columns a text takes.
pub fn width(text: &str) -> usize {
    text.chars().count()
}

/// Appends a text, wrapped at the style's width: the first line after `first`, the others after
/// as many spaces.
pub fn wrap(out: &mut String, first: &str, text: &str, tint: Tint, style: &Style) {
    let indent = width(first);
    let room = style.width.saturating_sub(indent).max(20);
    let mut line = String::new();
    let mut lead = first.to_owned();
    let text = printable(text);
    for word in text.split_whitespace() {
        if !line.is_empty() && width(&line) + 1 + width(word) > room {
            push_line(out, &format!("{lead}{}", tint.paint(&line, style)));
            lead = " ".repeat(indent);
            line.clear();
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    push_line(out, &format!("{lead}{}", tint.paint(&line, style)));
}

/// Appends a line without spaces at its end.
pub fn push_line(out: &mut String, line: &str) {
    out.push_str(line.trim_end());
    out.push('\n');
}

/// Where a column's text stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Align {
    /// At the left: words.
    Left,
    /// At the right: figures.
    Right,
}

/// A table whose columns are as wide as their widest cell.
#[derive(Debug)]
pub struct Table {
    columns: Vec<Align>,
    /// Spaces before each column.
    gaps: Vec<usize>,
    rows: Vec<TableRow>,
}

#[derive(Debug)]
enum TableRow {
    /// A cell for each column.
    Cells(Vec<(String, Tint)>),
    /// A line across the table, which no column has to be as wide as.
    Heading(String),
}

impl Table {
    /// An empty table of these columns, each after so many spaces.
    pub fn new(columns: &[(Align, usize)]) -> Self {
        Self {
            columns: columns.iter().map(|&(align, _)| align).collect(),
            gaps: columns.iter().map(|&(_, gap)| gap).collect(),
            rows: Vec::new(),
        }
    }

    /// Adds a row, all in one tint. Missing cells stay empty.
    pub fn row(&mut self, tint: Tint, cells: impl IntoIterator<Item = String>) {
        self.tinted(cells.into_iter().map(|cell| (cell, tint)));
    }

    /// Adds a row whose cells have tints of their own.
    pub fn tinted(&mut self, cells: impl IntoIterator<Item = (String, Tint)>) {
        let cells =
            cells.into_iter().map(|(text, tint)| (printable(&text).into_owned(), tint)).collect();
        self.rows.push(TableRow::Cells(cells));
    }

    /// Adds a line across the table.
    pub fn heading(&mut self, text: &str) {
        self.rows.push(TableRow::Heading(printable(text).into_owned()));
    }

    fn widths(&self) -> Vec<usize> {
        (0..self.columns.len())
            .map(|column| {
                let cells = self.rows.iter().filter_map(|row| match row {
                    TableRow::Cells(cells) => cells.get(column),
                    TableRow::Heading(_) => None,
                });
                cells.map(|(text, _)| width(text)).max().unwrap_or(0)
            })
            .collect()
    }

    /// How many columns of the terminal its longest row takes.
    pub fn width(&self) -> usize {
        self.widths().iter().sum::<usize>() + self.gaps.iter().sum::<usize>()
    }

    /// Appends the table.
    pub fn render(&self, out: &mut String, style: &Style) {
        let widths = self.widths();
        for row in &self.rows {
            let cells = match row {
                TableRow::Cells(cells) => cells,
                TableRow::Heading(text) => {
                    push_line(out, &format!("  {}", Tint::Bold.paint(text, style)));
                    continue;
                }
            };
            let mut line = String::new();
            for (column, (text, tint)) in cells.iter().enumerate() {
                let pad = " ".repeat(widths[column] - width(text));
                line.push_str(&" ".repeat(self.gaps[column]));
                match self.columns[column] {
                    Align::Left => line.push_str(&format!("{}{pad}", tint.paint(text, style))),
                    Align::Right => line.push_str(&format!("{pad}{}", tint.paint(text, style))),
                }
            }
            push_line(out, &line);
        }
    }
}
