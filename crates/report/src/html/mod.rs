//! The report for the browser: one file that needs nothing else.
//!
//! The verdict comes first, then the figures, then what they rest on. Everything is in the tables,
//! so it reads without scripts too; the charts are drawn by a library that the file carries. The
//! page may fetch nothing, and may run only the two scripts that its policy names by their hashes:
//! a name in the document cannot become a script.

mod charts;
mod experiment;
mod page;
mod plotly;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::document::{Document, Verdict};
use crate::figures;

/// Appends to a string, which cannot fail.
macro_rules! put {
    ($out:expr, $($part:tt)*) => {{
        use std::fmt::Write as _;
        let _ = write!($out, $($part)*);
    }};
}
use put;

/// plotly.js 4.1.1, the distribution with cartesian charts only, packed with gzip -9.
const LIBRARY: &[u8] = include_bytes!("plotly-cartesian.min.js.gz");

/// Its licence, which has to go wherever it goes.
const LIBRARY_LICENSE: &str = include_str!("PLOTLY-LICENSE");

const STYLE: &str = include_str!("style.css");
const SCRIPT: &str = include_str!("script.js");

/// SHA-256 of the script, and of the library unpacked; a test compares them.
const SCRIPT_HASH: &str = "b7yexWlCn4iwOLlS6iBTtG0Ke3Qe+7VqKw6bKO0E89w=";
const LIBRARY_HASH: &str = "eVQhUIVaUsVnJg4xNwldvit0Tm1wKlyr5n2iRpQvuno=";

/// A document as an HTML file.
pub fn document(document: &Document) -> String {
    document_with(document, &STANDARD.encode(LIBRARY))
}

/// A document as an HTML file without the chart library, whose charts stay empty: for tests that
/// compare what else is in it.
pub fn document_without_library(document: &Document) -> String {
    document_with(document, "")
}

fn document_with(document: &Document, library: &str) -> String {
    let policy = format!(
        "default-src 'none'; base-uri 'none'; form-action 'none'; img-src data: blob:; \
         style-src 'unsafe-inline'; script-src 'sha256-{SCRIPT_HASH}' 'sha256-{LIBRARY_HASH}'"
    );
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{policy}\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"referrer\" content=\"no-referrer\">\n\
         <title>{title}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n{body}\
         <script type=\"application/json\" id=\"figures\">{figures}</script>\n\
         <!-- plotly.js 4.1.1\n{license}-->\n\
         <script type=\"text/plain\" id=\"library\">{library}</script>\n\
         <script>{SCRIPT}</script>\n</body>\n</html>\n",
        title = escape(&title(document)),
        body = page::body(document),
        figures = json_in_html(&charts::figures(document).to_string()),
        license = LIBRARY_LICENSE,
    )
}

/// What the page is called.
fn title(document: &Document) -> String {
    let names = figures::place_names(document);
    let on = match names.as_slice() {
        [] => "nothing".to_owned(),
        [one] => (*one).to_owned(),
        [first, rest @ ..] => format!("{first} and {} more", rest.len()),
    };
    match document.header.command {
        crate::document::Command::Quick => format!("Storage portrait: {on}"),
        crate::document::Command::Run => format!("Storage run: {on}"),
        crate::document::Command::Sweep => format!("Storage sweep: {on}"),
        crate::document::Command::Peak => format!("Storage peak: {on}"),
        crate::document::Command::Map => format!("Latency map: {on}"),
        crate::document::Command::Sustain => format!("Sustained storage load: {on}"),
        crate::document::Command::Study => {
            let name = document.header.experiment.as_ref().map(|one| one.name.as_str());
            format!("Storage study {}: {on}", name.unwrap_or_default())
        }
        crate::document::Command::Import => format!("Imported results: {on}"),
    }
}

/// Text for an element or an attribute.
fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            // Neither HTML nor a reader has a use for the others.
            c if fathom_core::steers(c) && c != '\n' && c != '\t' => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

/// JSON that cannot end the element that it stands in.
fn json_in_html(json: &str) -> String {
    json.replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026")
}

fn verdict_class(verdict: Verdict) -> &'static str {
    verdict.name()
}

/// A chip with a verdict's or a severity's name.
fn chip(name: &str) -> String {
    format!("<span class=\"chip {name}\">{name}</span>")
}

/// A value with its half-width.
fn with_half(value: &str, half: &str) -> String {
    match half.is_empty() {
        true => format!("<td>{}</td>", escape(value)),
        false => format!("<td>{}<span class=\"half\">{}</span></td>", escape(value), escape(half)),
    }
}

/// A number that may not be known.
fn or_dash(value: Option<String>) -> String {
    value.unwrap_or_else(|| "–".to_owned())
}

/// What stands where the charts of a section would be, as long as no script has drawn them.
fn no_charts(out: &mut String) {
    let why =
        "The charts need scripts and a browser of 2023 or later; the tables hold the figures.";
    put!(out, "<p class=\"no-charts muted small\">{why}</p>\n");
    put!(out, "<noscript><p class=\"muted small\">{why}</p></noscript>\n");
}

/// The anchor of a trial.
fn anchor(number: usize) -> String {
    format!("trial-{number}")
}

/// A time that may not be known.
fn time(ns: Option<f64>) -> String {
    or_dash(ns.map(figures::time))
}

#[cfg(test)]
mod tests {
    use super::*;
    use sha2::{Digest, Sha256};

    #[test]
    fn the_policy_names_the_scripts_that_are_in_the_file() {
        let hash = |text: &[u8]| STANDARD.encode(Sha256::digest(text));
        assert_eq!(hash(SCRIPT.as_bytes()), SCRIPT_HASH);
        // Unpacking needs a library of its own: the packed one has a fixed hash instead.
        assert_eq!(hash(LIBRARY), "1+s+NjsIxTlWmvVThDUvqDy0eAHgSnmqgZ1cQFcM440=");
    }

    #[test]
    fn nothing_that_was_typed_becomes_markup() {
        assert_eq!(
            escape("<a href='x'>&\"\u{1b}"),
            "&lt;a href=&#39;x&#39;&gt;&amp;&quot;\u{fffd}"
        );
        assert_eq!(json_in_html(r#""</script>&""#), r#""\u003c/script\u003e\u0026""#);
    }
}
