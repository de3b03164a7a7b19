//! The report for the browser: one self-contained file.
//!
//! The answer comes first, then the figures, then pictures, then doubts, then their basis. Everything is in the tables, so it
//! can be read without scripts too; the charts are drawn by a library that the file carries. The
//! page may fetch nothing, and may run only the two scripts that its policy names by their hashes:
//! a name in the document cannot become a script.

mod charts;
mod page;
mod plotly;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use fathom_core::{markup, printable};
use serde_json::Value;

use crate::document::Document;
use crate::page::{Level, Page};

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

/// Its license, which has to accompany it.
const LIBRARY_LICENSE: &str = include_str!("PLOTLY-LICENSE");

const STYLE: &str = include_str!("style.css");
const SCRIPT: &str = include_str!("script.js");

/// SHA-256 of the script, and of the library unpacked; a test compares them.
const SCRIPT_HASH: &str = "CAjuNV3xlfx7OKWZqnsx1W/KaUZjaVIjTkHqPnm/QY8=";
const LIBRARY_HASH: &str = "eVQhUIVaUsVnJg4xNwldvit0Tm1wKlyr5n2iRpQvuno=";

/// A document as an HTML file.
pub fn document(document: &Document) -> String {
    document_with(document, &STANDARD.encode(LIBRARY))
}

/// A document as an HTML file without the chart library, whose charts stay empty: for tests that
/// compare the rest.
pub fn document_without_library(document: &Document) -> String {
    document_with(document, "")
}

fn document_with(document: &Document, library: &str) -> String {
    let page = Page::of(document, Level::Complete);
    file(&page, &charts::of_page(&page, &charts::of_steps(document)), library)
}

/// A page that is no document's, as an HTML file: its charts are in it.
pub fn page(page: &Page) -> String {
    file(page, &charts::of_page(page, &[]), &STANDARD.encode(LIBRARY))
}

/// The same without the chart library: for tests of the rest.
pub fn page_without_library(page: &Page) -> String {
    file(page, &charts::of_page(page, &[]), "")
}

fn file(page: &Page, figures: &Value, library: &str) -> String {
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
        title = escape(&page.title),
        body = page::body(page),
        figures = json_in_html(&figures.to_string()),
        license = LIBRARY_LICENSE,
    )
}

/// Text for an element or an attribute, with control characters escaped as for a terminal.
fn escape(text: &str) -> String {
    markup(&printable(text))
}

/// JSON that cannot end its element.
fn json_in_html(json: &str) -> String {
    json.replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026")
}

#[cfg(test)]
mod tests {
    use super::*;
    use sha2::{Digest, Sha256};

    #[test]
    fn the_policy_names_the_scripts_that_are_in_the_file() {
        let hash = |text: &[u8]| STANDARD.encode(Sha256::digest(text));
        assert_eq!(hash(SCRIPT.as_bytes()), SCRIPT_HASH);
        // Unpacking would need a library. The packed file has a fixed hash instead.
        assert_eq!(hash(LIBRARY), "1+s+NjsIxTlWmvVThDUvqDy0eAHgSnmqgZ1cQFcM440=");
    }

    #[test]
    fn nothing_that_was_typed_becomes_markup() {
        assert_eq!(escape("<b>\u{1b}\n"), r"&lt;b&gt;\x1b\n");
        assert_eq!(json_in_html(r#""</script>&""#), r#""\u003c/script\u003e\u0026""#);
    }
}
