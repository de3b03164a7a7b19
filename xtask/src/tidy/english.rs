//! The rule for English in STYLE.md that a search can check: a sentence names the number, and the
//! person or the thread.

use std::path::Path;

use super::Broken;

/// Words that leave the thing unnamed, and what to write instead.
const UNCLEAR: [(&str, &str); 2] =
    [("so many", "name the number"), ("whoever", "name the person, the program or the thread")];

/// The files that are about these words.
const ABOUT_THEM: [&str; 2] = ["STYLE.md", "xtask/src/tidy/english.rs"];

/// Unclear words in the comments, the strings and the prose of a file, also across a line break.
pub(super) fn unclear(path: &Path, text: &str) -> Broken {
    let mut broken = Vec::new();
    if ABOUT_THEM.iter().any(|about| path == Path::new(about)) {
        return broken;
    }
    let lines: Vec<&str> = text.lines().map(content).collect();
    for (index, line) in lines.iter().enumerate() {
        let next = lines.get(index + 1).copied().unwrap_or_default();
        let both = format!("{line} {next}").to_ascii_lowercase();
        for (words, remedy) in UNCLEAR {
            let begins_here = |at: usize| at < line.len() && is_whole(&both, at, words.len());
            if both.match_indices(words).any(|(at, _)| begins_here(at)) {
                broken.push((index + 1, format!("`{words}`: {remedy}")));
            }
        }
    }
    broken
}

/// A line without the signs of a comment, and without the one that continues a string.
fn content(line: &str) -> &str {
    line.trim_start_matches(|c: char| c.is_whitespace() || "/!*#".contains(c))
        .trim_end_matches(|c: char| c.is_whitespace() || c == '\\')
}

/// Whether no letter is right before or after these bytes.
fn is_whole(text: &str, at: usize, length: usize) -> bool {
    !text[..at].ends_with(char::is_alphanumeric)
        && !text[at + length..].starts_with(char::is_alphanumeric)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_names_the_number_and_the_person() {
        let lines = |path: &str, text: &str| -> Vec<usize> {
            unclear(Path::new(path), text).into_iter().map(|(line, _)| line).collect()
        };
        assert_eq!(lines("a.md", "It ends after so many.\nAlso many, and does so. Many do."), [1]);
        assert_eq!(lines("a.rs", "x\n    /// It ends after so\n    /// many.\n// Whoever"), [2, 4]);
        assert_eq!(lines("a.rs", "f(\"it has so \\\n   many\");"), [1]);
        assert_eq!(lines("STYLE.md", "the person, not \"whoever\""), [0; 0]);
    }
}
