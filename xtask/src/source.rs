//! Reads Rust source well enough to separate code from comments and text, because a rule about code
//! must not report the sentence that explains it.

/// The code of a source file. Comments and the contents of string literals become spaces, and line
/// breaks stay, so that offsets and line numbers match the file.
pub fn code_only(text: &str) -> String {
    let mut scanner = Scanner { rest: text, out: String::with_capacity(text.len()) };
    while !scanner.rest.is_empty() {
        scanner.step();
    }
    scanner.out
}

struct Scanner<'a> {
    rest: &'a str,
    out: String,
}

impl Scanner<'_> {
    fn step(&mut self) {
        let after_name = self.out.ends_with(|c: char| c.is_alphanumeric() || c == '_');
        if self.rest.starts_with("//") {
            self.blank(self.rest.find('\n').unwrap_or(self.rest.len()));
        } else if self.rest.starts_with("/*") {
            self.blank(block_comment(self.rest));
        } else if let Some(length) = raw_text(self.rest).filter(|_| !after_name) {
            self.blank(length);
        } else if self.rest.starts_with('"') {
            self.blank(quoted(self.rest));
        } else if let Some(length) = character(self.rest) {
            self.blank(length);
        } else {
            let next = self.rest.chars().next().map_or(0, char::len_utf8);
            self.out.push_str(&self.rest[..next]);
            self.rest = &self.rest[next..];
        }
    }

    fn blank(&mut self, length: usize) {
        for byte in self.rest[..length].bytes() {
            self.out.push(if byte == b'\n' { '\n' } else { ' ' });
        }
        self.rest = &self.rest[length..];
    }
}

/// The length of the block comment at the start. Block comments nest.
fn block_comment(text: &str) -> usize {
    let (mut depth, mut at) = (0_usize, 0);
    let bytes = text.as_bytes();
    while at < bytes.len() {
        match (bytes[at], bytes.get(at + 1)) {
            (b'/', Some(b'*')) => (depth, at) = (depth + 1, at + 2),
            (b'*', Some(b'/')) => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
        if depth == 0 {
            return at;
        }
    }
    bytes.len()
}

/// The length of the string literal with escapes at the start.
fn quoted(text: &str) -> usize {
    let bytes = text.as_bytes();
    let mut at = 1;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 2,
            b'"' => return at + 1,
            _ => at += 1,
        }
    }
    bytes.len()
}

/// The length of the raw string literal (`r"…"`, `br#"…"#`) at the start, if there is one.
fn raw_text(text: &str) -> Option<usize> {
    let after_prefix = ["br", "cr", "r"].iter().find_map(|prefix| text.strip_prefix(prefix))?;
    let opened = after_prefix.trim_start_matches('#');
    let hashes = after_prefix.len() - opened.len();
    let content = opened.strip_prefix('"')?;
    let end = format!("\"{}", "#".repeat(hashes));
    let start = text.len() - content.len();
    Some(content.find(&end).map_or(text.len(), |found| start + found + end.len()))
}

/// The length of the character literal at the start, if there is one. A lifetime is not one.
fn character(text: &str) -> Option<usize> {
    let content = text.strip_prefix('\'')?;
    let first = content.chars().next()?;
    if first == '\\' {
        // The escaped character itself may be a quote, so the search starts after it.
        return content.get(2..)?.find('\'').map(|found| 1 + 2 + found + 1);
    }
    content[first.len_utf8()..].starts_with('\'').then(|| first.len_utf8() + 2)
}

/// The names and keywords in some code, with their line numbers.
pub fn words(code: &str) -> impl Iterator<Item = (usize, &str)> {
    code.lines().enumerate().flat_map(|(index, line)| {
        line.split(|c: char| !(c.is_alphanumeric() || c == '_'))
            .filter(|word| !word.is_empty())
            .map(move |word| (index + 1, word))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words_of(text: &str) -> Vec<String> {
        words(&code_only(text)).map(|(line, word)| format!("{line}:{word}")).collect()
    }

    #[test]
    fn comments_and_text_are_not_code() {
        assert_eq!(words_of("a // b\nc /* d /* e */ f */ g"), ["1:a", "2:c", "2:g"]);
        assert_eq!(words_of(r#"let a = "b \" c"; d"#), ["1:let", "1:a", "1:d"]);
        assert_eq!(words_of("x(r#\"a \" b\nc\"#); y(br\"z\")"), ["1:x", "2:y"]);
    }

    #[test]
    fn lifetimes_are_code_and_characters_are_not() {
        assert_eq!(words_of("fn f<'a>(x: &'a str)"), ["1:fn", "1:f", "1:a", "1:x", "1:a", "1:str"]);
        assert_eq!(words_of(r"a('x', '\'', '\u{41}', '\n') b"), ["1:a", "1:b"]);
        assert_eq!(words_of("a('\"') b"), ["1:a", "1:b"]);
    }

    #[test]
    fn lines_stay_where_they_were() {
        let text = "a\n/* b\n */ c \"d\ne\" f";
        assert_eq!(code_only(text).len(), text.len());
        assert_eq!(words_of(text), ["1:a", "3:c", "4:f"]);
    }
}
