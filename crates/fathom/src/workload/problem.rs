//! A problem in a workload file, shown at its place.

use std::ops::Range;

use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};
use fathom_core::printable;

/// A text that was read.
#[derive(Clone, Debug)]
pub struct Source {
    /// Its name for people: its path, or the name of a workload.
    pub name: String,
    /// Its content.
    pub text: String,
}

/// A piece of a source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct At {
    /// The source's place in the list of all.
    pub source: usize,
    /// From one byte to another.
    pub span: Range<usize>,
}

/// A problem, its place, and the remedy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The problem, in a line.
    pub title: String,
    /// Its place, if it has one.
    pub at: Option<At>,
    /// The remark at the place.
    pub label: String,
    /// The remedy; may be empty.
    pub help: String,
}

impl Problem {
    /// A problem.
    pub fn new(title: impl Into<String>, at: Option<At>, label: impl Into<String>) -> Self {
        Self { title: title.into(), at, label: label.into(), help: String::new() }
    }

    /// The same with the remedy.
    pub fn help(self, help: impl Into<String>) -> Self {
        Self { help: help.into(), ..self }
    }

    /// The message for people, with the text underlined.
    pub fn render(&self, sources: &[Source], color: bool) -> String {
        // The message must not control the terminal; the source itself is shown without control
        // characters.
        let [title, label, help] =
            [&self.title, &self.label, &self.help].map(|text| printable(text).into_owned());
        let title = Level::ERROR.primary_title(title);
        let mut group = match self.at.as_ref().and_then(|at| Some((at, sources.get(at.source)?))) {
            Some((at, source)) => {
                let end = at.span.end.min(source.text.len());
                let span = at.span.start.min(end)..end;
                let mark = AnnotationKind::Primary.span(span).label(label);
                let path = printable(&source.name).into_owned();
                title.element(Snippet::source(&source.text).path(path).annotation(mark))
            }
            None if label.is_empty() => Group::with_title(title),
            None => Group::with_title(title).element(Level::NOTE.message(label)),
        };
        if !help.is_empty() {
            group = group.element(Level::HELP.message(help));
        }
        let renderer = if color { Renderer::styled() } else { Renderer::plain() };
        renderer.render(&[group]).to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_place_is_underlined_and_named_by_line_and_column() {
        let text = "name = 'x'\nblock_size = '4k'\n";
        let source = Source { name: "w.toml".to_owned(), text: text.to_owned() };
        let at = At { source: 0, span: 11..21 };
        let problem = Problem::new("there is no key 'block_size'", Some(at), "not known");
        let shown = problem.help("write block-size").render(&[source], false);
        assert_eq!(
            shown,
            "error: there is no key 'block_size'\n \
             --> w.toml:2:1\n  \
              |\n\
             2 | block_size = '4k'\n  \
              | ^^^^^^^^^^ not known\n  \
              |\n  \
              = help: write block-size"
        );
    }
}
