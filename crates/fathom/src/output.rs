//! All output: no other code writes to stdout or stderr, and `xtask tidy` checks this. If a reader
//! has gone away (`| head`), this is not a reason to end a measurement, nor to panic as `println!`
//! would: output that can no longer be printed is dropped.
//!
//! Every message may hold a name from somebody else, and a name may hold newlines and control
//! sequences. So a text is one line unless it comes from a renderer ([`say_text`], [`note_text`]),
//! which has made its names printable, and even then only color passes to the terminal.

use std::borrow::Cow;
use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use fathom_core::{printable, printable_lines};

use crate::error::Error;

/// Whether stdout belongs to the document alone.
static STDOUT_IS_THE_DOCUMENTS: AtomicBool = AtomicBool::new(false);

/// Whether a file's name stands for stdout: `-`, or the device that leads there.
pub fn is_stdout(path: &Path) -> bool {
    path == Path::new("-") || path == Path::new("/dev/stdout")
}

/// From here on `say` goes to stderr.
pub fn leave_stdout_to_the_document() {
    STDOUT_IS_THE_DOCUMENTS.store(true, Ordering::SeqCst);
}

/// Whether only warnings are printed.
static ONLY_WARNINGS: AtomicBool = AtomicBool::new(false);

/// From here on `say` is silent, and so is the live view: scripts that have both outputs in one
/// file find only the document there.
pub fn tell_only_warnings() {
    ONLY_WARNINGS.store(true, Ordering::SeqCst);
}

/// Whether only warnings are printed.
pub fn tells_only_warnings() -> bool {
    ONLY_WARNINGS.load(Ordering::SeqCst)
}

/// Whether the reader of stdout has gone away.
static READER_IS_GONE: AtomicBool = AtomicBool::new(false);

/// Whether the reader of stdout has gone away: for a command that does nothing but print.
pub fn reader_is_gone() -> bool {
    READER_IS_GONE.load(Ordering::SeqCst)
}

/// Whether `say` goes to a terminal.
pub fn is_terminal() -> bool {
    if STDOUT_IS_THE_DOCUMENTS.load(Ordering::SeqCst) {
        io::stderr().is_terminal()
    } else {
        io::stdout().is_terminal()
    }
}

/// Whether color is welcome there.
pub fn color() -> bool {
    let set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    is_terminal() && !set("NO_COLOR") && std::env::var_os("TERM").is_none_or(|t| t != "dumb")
}

/// Whether color is welcome on stderr.
pub fn error_color() -> bool {
    let set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let able = std::env::var_os("TERM").is_none_or(|term| term != "dumb");
    io::stderr().is_terminal() && !set("NO_COLOR") && able
}

/// Prints a line that the user asked for.
///
/// # Errors
///
/// When stdout cannot accept it, for any reason except that its reader has gone.
pub fn say(line: &str) -> Result<(), Error> {
    say_text(&printable(line))
}

/// Prints lines of a renderer, with a newline at their end.
///
/// # Errors
///
/// As [`say`].
pub fn say_text(text: &str) -> Result<(), Error> {
    if tells_only_warnings() {
        return Ok(());
    }
    if STDOUT_IS_THE_DOCUMENTS.load(Ordering::SeqCst) {
        note_text(text);
        return Ok(());
    }
    print(format!("{}\n", harmless(text, color())).as_bytes())
}

/// Prints a document to stdout unchanged: the writers of JSON and XML escape control characters.
///
/// # Errors
///
/// As [`say`].
pub fn print(bytes: &[u8]) -> Result<(), Error> {
    print_with(&|out| out.write_all(bytes))
}

/// Prints the document that `write` writes to stdout.
///
/// # Errors
///
/// As [`say`].
pub fn print_with(write: &dyn Fn(&mut dyn Write) -> io::Result<()>) -> Result<(), Error> {
    let mut stdout = io::stdout().lock();
    match write(&mut stdout).and_then(|()| stdout.flush()) {
        Err(cause) if cause.kind() != io::ErrorKind::BrokenPipe => {
            Err(Error::write(Path::new("stdout"), cause, "send it to a place that has room for it"))
        }
        Err(_) => {
            READER_IS_GONE.store(true, Ordering::SeqCst);
            Ok(())
        }
        Ok(()) => Ok(()),
    }
}

/// Prints progress, in a line on stderr.
pub fn note(line: &str) {
    note_text(&printable(line));
}

/// Prints lines of a renderer on stderr.
pub fn note_text(text: &str) {
    // If stderr is gone, there is no place to report it.
    let _ = writeln!(io::stderr().lock(), "{}", harmless(text, error_color()));
}

/// Whether a user is there, is asked, and agrees; none if there is no user.
pub fn ask(question: &str) -> Option<bool> {
    if !(io::stdin().is_terminal() && io::stderr().is_terminal()) {
        return None;
    }
    // If it cannot be asked, nothing was answered.
    let _ = write!(io::stderr(), "{} [y/N] ", printable(question));
    let mut answer = String::new();
    let read = io::stdin().read_line(&mut answer);
    Some(read.is_ok() && matches!(answer.trim(), "y" | "Y" | "yes"))
}

/// Text of several lines without control sequences except color, if color is welcome.
fn harmless(text: &str, color: bool) -> Cow<'_, str> {
    if !color {
        return printable_lines(text);
    }
    let mut parts = text.split('\u{1b}');
    let mut shown = printable_lines(parts.next().unwrap_or_default()).into_owned();
    for part in parts {
        let is_code = |c: char| c.is_ascii_digit() || c == ';';
        let paints = part.strip_prefix('[').map(|rest| rest.trim_start_matches(is_code));
        shown.push_str(match paints.is_some_and(|rest| rest.starts_with('m')) {
            true => "\u{1b}",
            false => r"\x1b",
        });
        shown.push_str(&printable_lines(part));
    }
    Cow::Owned(shown)
}

/// Whether the answer was printed.
static IS_ANSWERED: AtomicBool = AtomicBool::new(false);

/// Remembers that the answer was printed with [`say`].
pub fn has_answered() {
    IS_ANSWERED.store(true, Ordering::SeqCst);
}

/// Whether the answer was printed on the terminal that shows errors.
pub fn answer_is_seen() -> bool {
    IS_ANSWERED.load(Ordering::SeqCst) && is_terminal() && io::stderr().is_terminal()
}

/// Prints a line on stderr, wrapped between words on a terminal: the terminal itself would break
/// inside words.
pub fn note_folded(line: &str) {
    match terminal_size::terminal_size_of(io::stderr()) {
        Some((columns, _)) => note_text(&folded(&printable(line), usize::from(columns.0))),
        None => note(line),
    }
}

/// Prints a sentence as [`say`] does, wrapped between words on a terminal.
///
/// # Errors
///
/// As [`say`].
pub fn say_folded(line: &str) -> Result<(), Error> {
    match is_terminal() {
        true => say_text(&folded(&printable(line), width())),
        false => say(line),
    }
}

/// A line in lines of this many columns, wrapped at its spaces. A longer word stays whole. Text in
/// a second column after a name stays in its column.
fn folded(text: &str, columns: usize) -> String {
    let named = text.find("  ").filter(|end| *end < COLUMN && !text[..*end].contains(' '));
    let column = named.map_or(0, |end| end + text[end..].chars().take_while(|c| *c == ' ').count());
    let column = if column * 2 < columns { column } else { 0 };
    let mut out = String::new();
    let mut used = 0;
    for (index, word) in text.split(' ').enumerate() {
        let room = word.chars().count();
        if used > column && used + 1 + room > columns {
            out.push('\n');
            out.push_str(&" ".repeat(column));
            used = column;
        } else if index > 0 {
            out.push(' ');
            used += 1;
        }
        out.push_str(word);
        used += room;
    }
    out
}

/// A longer name has no separate column.
const COLUMN: usize = 24;

/// Columns and lines of the terminal on stderr, or 80 and 24 if it is not one.
pub fn error_size() -> (usize, usize) {
    let size = terminal_size::terminal_size_of(io::stderr());
    size.map_or((80, 24), |(columns, lines)| {
        (usize::from(columns.0).max(40), usize::from(lines.0).max(8))
    })
}

/// Columns of the terminal to which `say` goes, or 100 without one.
pub fn width() -> usize {
    columns().unwrap_or(100)
}

/// Columns of the terminal to which `say` goes; none without one.
pub fn columns() -> Option<usize> {
    let size = if STDOUT_IS_THE_DOCUMENTS.load(Ordering::SeqCst) {
        terminal_size::terminal_size_of(io::stderr())
    } else {
        terminal_size::terminal_size_of(io::stdout())
    };
    size.map(|(columns, _)| usize::from(columns.0).max(40))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_what_a_renderer_wrote_nothing_but_color_reaches_the_terminal() {
        let text = "\u{1b}[1;31mred\u{1b}[0m\n\ttab \u{1b}]0;title\u{7} \u{1b}[2J \u{1b}[3 \u{9b}1m \u{1b}";
        let shown = r"]0;title\x07 \x1b[2J \x1b[3 \x9b1m \x1b";
        assert_eq!(harmless(text, true), format!("\u{1b}[1;31mred\u{1b}[0m\n\ttab \\x1b{shown}"));
        assert!(!harmless(text, false).contains('\u{1b}'));
    }

    #[test]
    fn a_long_line_is_broken_between_words_and_loses_nothing() {
        assert_eq!(folded("one two three", 8), "one two\nthree");
        assert_eq!(folded("one two three", 7), "one two\nthree");
        assert_eq!(folded("one two three", 13), "one two three");
        assert_eq!(folded("a/word/that/is/too/long b", 8), "a/word/that/is/too/long\nb");
        // Two spaces in a name are kept.
        assert_eq!(folded("a  b", 40), "a  b");
        assert_eq!(folded("", 40), "");
        // Words behind a name have their own column if there is room.
        assert_eq!(folded("axis  one two three", 14), "axis  one two\n      three");
        assert_eq!(folded("axis  one two", 8), "axis \none two");
    }
}
