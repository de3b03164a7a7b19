//! Paint and wrapping for a terminal of a given width.

use fathom_core::printable;

use super::Style;
use crate::page::Tone;

/// The text in this tone, if the style has color. Control characters are shown with escapes.
pub fn paint(tone: Tone, text: &str, style: &Style) -> String {
    let text = &*printable(text);
    let code = match tone {
        Tone::Plain => return text.to_owned(),
        Tone::Strong => "1",
        Tone::Quiet => "2",
        Tone::Good => "32",
        Tone::Doubtful => "33",
        Tone::Bad => "1;31",
    };
    match style.color && !text.is_empty() {
        true => format!("\x1b[{code}m{text}\x1b[0m"),
        false => text.to_owned(),
    }
}

/// The number of columns of a text.
pub fn width(text: &str) -> usize {
    text.chars().count()
}

/// A text padded with spaces to this many columns.
pub fn padded(text: &str, columns: usize) -> String {
    let text = printable(text);
    format!("{text}{}", " ".repeat(columns.saturating_sub(width(&text)).max(1)))
}

/// Appends a text, wrapped at the style's width: the first line after `first`, the others with the
/// same indentation.
pub fn wrap(out: &mut String, first: &str, text: &str, tone: Tone, style: &Style) {
    let indent = width(first);
    let room = style.width.saturating_sub(indent).max(20);
    let mut line = String::new();
    let mut lead = first.to_owned();
    let text = printable(text);
    for word in text.split_whitespace() {
        if !line.is_empty() && width(&line) + 1 + width(word) > room {
            push_line(out, &format!("{lead}{}", paint(tone, &line, style)));
            lead = " ".repeat(indent);
            line.clear();
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    push_line(out, &format!("{lead}{}", paint(tone, &line, style)));
}

/// Appends a line without spaces at its end.
pub fn push_line(out: &mut String, line: &str) {
    out.push_str(line.trim_end());
    out.push('\n');
}
