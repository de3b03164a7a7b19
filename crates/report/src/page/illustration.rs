//! A result as images to post: each has the answer, where it is from, and one drawing.

use super::{Sentence, Table, answer, key_figures};
use crate::chart::grid::{self, Grid};
use crate::chart::{self, Chart};
use crate::document::{Command, Document};
use crate::figures;

/// One image.
#[derive(Clone, Debug)]
pub struct Illustration {
    /// The name in files: "iops".
    pub name: String,
    /// The answer, with the verdict.
    pub answer: Sentence,
    /// Where the figures are from.
    pub source: String,
    /// The figures that matter, as a table of one row; none if the drawing has them.
    pub figures: Option<Table>,
    /// The drawing.
    pub drawing: Subject,
}

/// The drawing of an image.
#[derive(Clone, Debug)]
pub enum Subject {
    /// A chart.
    Chart(Chart),
    /// Large figures.
    Grid(Grid),
}

/// All images of a result: the charts of an experiment, one image of a run or a portrait, and
/// one of the hosts of a run on several.
pub fn illustrations(document: &Document) -> Vec<Illustration> {
    // All images have the same answer, which takes all figures to make.
    let (answer, source) = (answer(document), source(document));
    let image = |name: &str, figures, drawing| Illustration {
        name: name.to_owned(),
        answer: answer.clone(),
        source: source.clone(),
        figures,
        drawing,
    };
    if document.is_experiment() || document.header.imported.is_some() {
        let charts = chart::charts(document).into_iter();
        return charts.map(|one| image(&one.name.clone(), None, Subject::Chart(one))).collect();
    }
    if let ([only], Command::Run) = (document.trials.as_slice(), document.header.command) {
        let run = Subject::Chart(chart::trial::of_run(only));
        let hosts = chart::hosts::charts(only, 1).into_iter();
        let hosts = hosts.map(|chart| image("hosts", None, Subject::Chart(chart)));
        return std::iter::once(image("run", key_figures(document), run)).chain(hosts).collect();
    }
    let grid = grid::of(document).map(Subject::Grid);
    grid.map(|grid| image("grid", None, grid)).into_iter().collect()
}

/// "queue-depth of sim:nvme on vm, 2026-11-21, fathom 0.1.0".
fn source(document: &Document) -> String {
    let header = &document.header;
    let targets = figures::place_names(document);
    let name = match &header.experiment {
        Some(experiment) => experiment.name.clone(),
        None if header.command == Command::Quick => "portrait".to_owned(),
        None => "run".to_owned(),
    };
    let day = header.created.split('T').next().unwrap_or_default();
    let on = match targets.as_slice() {
        [first, _, _, ..] => format!("{first} and {} more", targets.len() - 1),
        few => few.join(", "),
    };
    match (&header.host, &header.imported) {
        (Some(host), _) => {
            format!("{name} of {on} on {}, {day}, fathom {}", host.name, header.fathom_version)
        }
        (None, Some(source)) => {
            let when = source.measured.as_deref().unwrap_or("at an unknown time");
            format!("{on}, measured by {}, {when}", source.program)
        }
        (None, None) => format!("{name} of {on}, {day}, fathom {}", header.fathom_version),
    }
}
