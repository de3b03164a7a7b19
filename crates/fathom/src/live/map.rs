//! The latency map so far, drawn in the terminal while it is measured, with the cell that runs.

use fathom_core::experiment::map::{READS, WRITES};
use fathom_core::experiment::{Conclusion, Found, Planned};
use fathom_report::document::{Experiment, MapFound};
use fathom_report::terminal::{self, Style};

/// Whether an experiment is drawn in this way: a latency map, of any study.
pub fn is_one(described: &Experiment) -> bool {
    [WRITES, READS].iter().all(|name| described.axes.iter().any(|axis| axis.name == **name))
}

/// Lines that the last minute, the step and its bar take, and one that stays free.
const BELOW: usize = 6;

/// The content of the picture.
#[derive(Debug, Default)]
pub struct MapSoFar {
    found: Option<MapFound>,
    /// The cell that runs, by its places in both axes.
    running: Option<(usize, usize)>,
}

impl MapSoFar {
    /// The present knowledge, and the next cell.
    pub fn take(&mut self, planned: &Planned, so_far: Conclusion) {
        let Some(Found::Map(found)) = &so_far.found else { return };
        let value = |nth: usize| planned.place.coordinates.get(nth).and_then(|one| one.value);
        let place = |steps: &[f64], nth: usize| {
            let own = value(nth)?;
            steps.iter().position(|step| *step == own)
        };
        let running = (place(&found.write_bandwidths, 0), place(&found.read_rates, 1));
        self.running = running.0.zip(running.1);
        self.found = Some(found.clone());
    }

    /// The picture, each line ending with a newline; none before a cell is known.
    pub fn draw(&self, width: usize, height: usize) -> Option<String> {
        let color = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        let style = Style { width, color };
        let lines = height.saturating_sub(BELOW);
        let text = terminal::map_so_far(self.found.as_ref()?, self.running, lines, &style);
        (!text.is_empty()).then_some(text)
    }
}
