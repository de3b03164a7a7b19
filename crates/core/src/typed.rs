//! Names and sizes as people see them and type them. A name may hold any byte but zero: newlines, and
//! control sequences of a terminal. In a message it is shown so that neither has an effect; in advice
//! that contains a command it is quoted so that the command can be copied from the screen.

use std::borrow::Cow;
use std::fmt::Write as _;

use crate::units::Bytes;

/// Whether it would control a terminal, end a line, or change the order in which the letters after
/// it are shown.
pub fn steers(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// A text in one line, with escapes such as `\n` and `\x1b` for control characters. Letters of all
/// languages stay unchanged.
pub fn printable(text: &str) -> Cow<'_, str> {
    printable_but(text, |_| false)
}

/// The same for a text of several lines, which may have tabs.
pub fn printable_lines(text: &str) -> Cow<'_, str> {
    printable_but(text, |c| matches!(c, '\n' | '\t'))
}

fn printable_but(text: &str, stays: fn(char) -> bool) -> Cow<'_, str> {
    if !text.contains(|c| steers(c) && !stays(c)) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match c {
            c if !steers(c) || stays(c) => shown.push(c),
            '\t' | '\n' | '\r' => shown.extend(c.escape_default()),
            c if c <= '\u{ff}' => {
                let _ = write!(shown, "\\x{:02x}", u32::from(c));
            }
            c => shown.extend(c.escape_unicode()),
        }
    }
    Cow::Owned(shown)
}

/// Text for an element or an attribute of HTML, SVG or XML. Characters that these do not allow are
/// replaced; characters that would control a terminal or that a reader would change are written as
/// numbers.
pub fn markup(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\0'..='\u{8}' | '\u{b}' | '\u{c}' | '\u{e}'..='\u{1f}' | '\u{fffe}' | '\u{ffff}' => {
                out.push('\u{fffd}');
            }
            c if steers(c) => {
                let _ = write!(out, "&#{};", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out
}

/// A word of a command line, quoted if a shell would change its meaning.
pub fn typed_word(text: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "/._-+=:,@%".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        return text.to_owned();
    }
    if text.contains(steers) {
        return dollar_quoted(text);
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// A word with unprintable characters, as bash, zsh, ksh and now POSIX read it.
fn dollar_quoted(text: &str) -> String {
    let mut word = "$'".to_owned();
    for c in text.chars() {
        match c {
            '\'' | '\\' => word.extend(['\\', c]),
            // Always three digits, because the next character may be a digit too.
            c if steers(c) => c.encode_utf8(&mut [0; 4]).bytes().for_each(|byte| {
                let _ = write!(word, "\\{byte:03o}");
            }),
            c => word.push(c),
        }
    }
    word.push('\'');
    word
}

/// The name of a file, quoted, and in a form that is never an option.
pub fn typed_path(name: &str) -> String {
    match name.starts_with('-') {
        true => typed_word(&format!("./{name}")),
        false => typed_word(name),
    }
}

/// A size without loss, as the value of an option: "100g"; in bytes if no unit divides it.
pub fn typed_size(size: Bytes) -> String {
    let units = [(1 << 40, "t"), (Bytes::GIB, "g"), (Bytes::MIB, "m"), (Bytes::KIB, "k")];
    let whole = |(unit, _): &(u64, &str)| 0 < size.0 && size.0.is_multiple_of(*unit);
    let (unit, name) = units.into_iter().find(whole).unwrap_or((1, ""));
    format!("{}{name}", size.0 / unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_can_be_typed() {
        for size in [0, 1, 1000, 1024, 1536, 3 << 20, 5 << 30, (100 << 30) + 1, 2 << 40] {
            assert_eq!(typed_size(Bytes(size)).parse(), Ok(Bytes(size)), "{size}");
        }
        let short = [512, 1024, 1536 << 20, 100 << 30].map(|size| typed_size(Bytes(size)));
        assert_eq!(short, ["512", "1k", "1536m", "100g"]);
    }

    #[test]
    fn an_odd_name_can_be_typed() {
        for (name, word) in [
            ("/data/a-b_1.dat", "/data/a-b_1.dat"),
            ("my file", "'my file'"),
            ("-x", "./-x"),
            ("-x y", "'./-x y'"),
            ("it's", r"'it'\''s'"),
            ("日本", "日本"),
            ("", "''"),
        ] {
            assert_eq!(typed_path(name), word);
        }
        assert_eq!(typed_word("-d"), "-d");
    }

    #[test]
    fn a_name_that_steers_the_terminal_is_quoted_so_that_it_can_be_typed_and_does_not() {
        assert_eq!(typed_path("a\nb"), r"$'a\012b'");
        assert_eq!(typed_path("-\u{1b}]0;x\u{7}1"), r"$'./-\033]0;x\0071'");
        assert_eq!(typed_path("it's\\\u{9b}"), r"$'it\'s\\\302\233'");
    }

    #[test]
    fn nothing_that_was_typed_becomes_markup() {
        assert_eq!(
            markup("<a href='x'>&\"\u{1b}"),
            "&lt;a href=&#39;x&#39;&gt;&amp;&quot;\u{fffd}"
        );
        assert_eq!(markup("a\tb\n\r\u{85}\u{202e}"), "a&#9;b&#10;&#13;&#133;&#8238;");
    }

    #[test]
    fn a_name_steers_no_terminal_and_forges_no_line() {
        for (name, shown) in [
            ("日本 é ß 'x' \\", "日本 é ß 'x' \\"),
            ("a\nb\r\tc", r"a\nb\r\tc"),
            ("\u{1b}[31mred\u{7}\u{7f}", r"\x1b[31mred\x07\x7f"),
            ("\u{9b}31m\u{85}", r"\x9b31m\x85"),
            ("\u{202e}\u{2028}\u{2066}", r"\u{202e}\u{2028}\u{2066}"),
        ] {
            assert_eq!(printable(name), shown);
            assert_eq!(printable(&printable(name)), shown, "twice is as good as once");
        }
        assert_eq!(printable_lines("a\n\tb\r"), "a\n\tb\\r");
    }
}
