//! A comparison as JUnit's XML, which CI servers read: a test for each condition, or for each point if
//! there are no conditions.

use std::fmt::Write as _;

use fathom_core::facts::Answer;
use fathom_core::{markup, printable};

use super::model::{Comparison, Standing};

/// What became of a test.
enum Test {
    Passed,
    Failed,
    /// Neither: undecided.
    Skipped,
    /// It could not be made.
    Errored,
}

/// A comparison as JUnit's XML.
pub fn junit(comparison: &Comparison) -> String {
    let tests = tests(comparison);
    let count =
        |wanted: fn(&Test) -> bool| tests.iter().filter(|(_, test, _)| wanted(test)).count();
    let mut out = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    let _ = writeln!(
        out,
        "<testsuites><testsuite name=\"fathom compare\" tests=\"{}\" failures=\"{}\" skipped=\"{}\" \
         errors=\"{}\">",
        tests.len(),
        count(|test| matches!(test, Test::Failed)),
        count(|test| matches!(test, Test::Skipped)),
        count(|test| matches!(test, Test::Errored)),
    );
    for (name, test, text) in &tests {
        let (name, text) = (escape(name), escape(text));
        let _ = write!(out, "<testcase classname=\"fathom.compare\" name=\"{name}\">");
        let _ = match test {
            Test::Passed => write!(out, "<system-out>{text}</system-out>"),
            Test::Failed => write!(out, "<failure message=\"{text}\"/>"),
            Test::Skipped => write!(out, "<skipped message=\"{text}\"/>"),
            Test::Errored => write!(out, "<error message=\"{text}\"/>"),
        };
        out.push_str("</testcase>\n");
    }
    out.push_str("</testsuite></testsuites>\n");
    out
}

fn escape(text: &str) -> String {
    markup(&printable(text))
}

fn tests(comparison: &Comparison) -> Vec<(String, Test, String)> {
    let mut all: Vec<(String, Test, String)> = Vec::new();
    for one in &comparison.requirements {
        let test = match one.holds {
            Answer::Yes => Test::Failed,
            Answer::No => Test::Passed,
            Answer::Unknown => Test::Skipped,
        };
        all.push((one.typed.clone(), test, one.text.clone()));
    }
    for against in &comparison.against {
        let side = &comparison.sides[against.side as usize].name;
        if comparison.requirements.is_empty() {
            all.extend(against.points.iter().map(|point| {
                let test = match point.outcome {
                    Standing::Same | Standing::Faster => Test::Passed,
                    Standing::Slower | Standing::Mixed => Test::Failed,
                    Standing::Undecided | Standing::OneTrial => Test::Skipped,
                    Standing::NotComparable => Test::Errored,
                };
                let words = super::words::point_in_words(point, comparison.margin);
                (format!("{side}: {}", point.name), test, words)
            }));
        }
        let expected = against.refused.iter().filter(|one| one.is_expected);
        all.extend(
            expected.map(|one| (format!("{side}: {}", one.name), Test::Errored, one.why.clone())),
        );
    }
    all
}
