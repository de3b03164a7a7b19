//! The curve so far, drawn in the terminal while an experiment runs: throughput along one axis, a row
//! of bars for each combination of the others.

use fathom_core::figures::number;
use fathom_core::stats::{bandwidth, iops};
use fathom_core::trial::{Coordinate, Role, Trial};
use fathom_core::{Bytes, printable};
use fathom_report::document::{Experiment, Scale};

/// The most rows: the latest ones are shown.
const ROWS: usize = 8;
/// The most columns for the name of a row.
const NAME: usize = 28;
/// From zero to the highest.
pub(super) const BARS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// The content of the picture.
#[derive(Debug)]
pub struct Curve {
    /// The axis that runs from left to right, by its place.
    along: usize,
    /// Its name in the trials so far; a requested axis has its own.
    axis: String,
    /// The expected values, if they are known, with its name.
    foreseen: (String, Vec<String>),
    /// Its values, in their order; unexpected ones are inserted at their place.
    columns: Vec<Column>,
    /// Whether bytes are more meaningful than I/Os.
    bytes: bool,
    rows: Vec<Row>,
}

#[derive(Debug)]
struct Column {
    label: String,
    /// Where it lies, if it was not foreseen and is a number.
    value: Option<f64>,
}

#[derive(Debug)]
struct Row {
    name: String,
    /// Sum and number of the trials, for each column.
    sums: Vec<(f64, u32)>,
}

impl Curve {
    /// An empty picture. The longest axis of numbers runs from left to right.
    pub fn new(described: &Experiment) -> Self {
        let axes = described.axes.iter().enumerate();
        let longest = axes.max_by_key(|(place, axis)| {
            (axis.scale != Scale::Categories, axis.labels.len(), std::cmp::Reverse(*place))
        });
        let blocks = described.base.streams.iter().map(|stream| stream.block_sizes().largest());
        let varies = described.axes.iter().any(|axis| axis.name.ends_with("block-size"));
        let foreseen = longest.map(|(_, axis)| (axis.name.clone(), axis.labels.clone()));
        Self {
            along: longest.map_or(0, |(place, _)| place),
            axis: String::new(),
            foreseen: foreseen.unwrap_or_default(),
            columns: Vec::new(),
            bytes: varies || blocks.max() >= Some(Bytes(65_536)),
            rows: Vec::new(),
        }
    }

    /// Adds a trial. A trial without a place on an axis is not a part of the curve.
    pub fn add(&mut self, trial: &Trial) {
        let coordinates = &trial.place.coordinates;
        let Some(own) = coordinates.get(self.along) else { return };
        if trial.place.role == Role::Preparation {
            return;
        }
        let value = match self.bytes {
            true => bandwidth(&trial.record, None, None),
            false => iops(&trial.record, None, None),
        };
        let Some(value) = value else { return };
        if self.axis != own.axis {
            self.turn_to(&own.axis);
        }
        let column = self.columns.iter().position(|column| column.label == own.label);
        let column = column.unwrap_or_else(|| self.insert(own));
        let others = coordinates.iter().enumerate().filter(|(place, _)| *place != self.along);
        let name: Vec<&str> = others.map(|(_, one)| one.label.as_str()).collect();
        let name = printable(&name.join(" ")).into_owned();
        // The row of the latest trial stands last.
        let mut row = match self.rows.iter().position(|row| row.name == name) {
            Some(place) => self.rows.remove(place),
            None => Row { name, sums: Vec::new() },
        };
        row.sums.resize(self.columns.len().max(row.sums.len()), (0.0, 0));
        row.sums[column].0 += value.value;
        row.sums[column].1 += 1;
        self.rows.push(row);
    }

    /// Begins again along another axis: points after rounds have nothing to do with the rounds'
    /// numbers.
    fn turn_to(&mut self, axis: &str) {
        axis.clone_into(&mut self.axis);
        self.rows.clear();
        let (name, labels) = &self.foreseen;
        let labels = labels.iter().filter(|_| name == axis);
        self.columns = labels.map(|label| Column { label: label.clone(), value: None }).collect();
    }

    /// A new column, before those of larger values.
    fn insert(&mut self, own: &Coordinate) -> usize {
        let is_below = |column: &Column| match (column.value, own.value) {
            (Some(known), Some(value)) => known < value,
            _ => true,
        };
        let place = self.columns.partition_point(is_below);
        self.columns.insert(place, Column { label: own.label.clone(), value: own.value });
        for row in self.rows.iter_mut().filter(|row| place < row.sums.len()) {
            row.sums.insert(place, (0.0, 0));
        }
        place
    }

    /// The rows, each ending with a newline, in this many columns; empty before the first trial.
    pub fn draw(&self, width: usize) -> String {
        let best = |row: &Row| {
            let means = row.sums.iter().map(|&(sum, n)| sum / f64::from(n.max(1)));
            means.enumerate().max_by(|a, b| a.1.total_cmp(&b.1)).unwrap_or((0, 0.0))
        };
        let most = self.rows.iter().map(|row| best(row).1).fold(0.0, f64::max);
        if most <= 0.0 {
            return String::new();
        }
        let shown = &self.rows[self.rows.len().saturating_sub(ROWS)..];
        let longest = shown.iter().map(|row| row.name.chars().count()).max().unwrap_or(0);
        let name_width = longest.min(NAME);
        let room = width.saturating_sub(name_width + 2 + 28).max(1);
        let cell = (room / self.columns.len().max(1)).clamp(1, 3);
        // The latest ones are visible even if not all fit, for example the rounds of a day.
        let is_known = |row: &Row| row.sums.iter().rposition(|&(_, n)| n > 0);
        let last = self.rows.iter().filter_map(is_known).max().unwrap_or(0);
        let first = (last + 1).saturating_sub(room);
        let mut out = String::new();
        for row in shown {
            let name: String = row.name.chars().take(NAME).collect();
            let bars: String = (first..self.columns.len().min(first + room))
                .map(|column| match row.sums.get(column) {
                    Some(&(sum, n)) if n > 0 => {
                        let height = (sum / f64::from(n) / most * 8.0).round().clamp(1.0, 8.0);
                        BARS[height as usize].to_string().repeat(cell)
                    }
                    _ => "·".repeat(cell),
                })
                .collect();
            let (column, value) = best(row);
            let label = printable(&self.columns[column].label);
            let value = match self.bytes {
                true => super::bandwidth(value),
                false => format!("{} IOPS", number(value)),
            };
            out += &format!("{name:<name_width$} {bars} {value} at {label}\n");
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(name: &str, values: &[f64]) -> Row {
        let sums = values.iter().map(|&value| (value, u32::from(value > 0.0))).collect();
        Row { name: name.to_owned(), sums }
    }

    /// A curve without values.
    fn along(labels: &[&str]) -> Curve {
        let labels: Vec<String> = labels.iter().map(|label| (*label).to_owned()).collect();
        let mut curve = Curve {
            along: 0,
            axis: String::new(),
            foreseen: ("queue-depth".to_owned(), labels),
            columns: Vec::new(),
            bytes: false,
            rows: Vec::new(),
        };
        curve.turn_to("queue-depth");
        curve
    }

    #[test]
    fn another_axis_begins_anew() {
        let mut curve = Curve { rows: Vec::from([row("", &[100.0])]), ..along(&["1", "2"]) };
        assert_eq!(curve.draw(80), " ███··· 100 IOPS at 1\n");
        curve.turn_to("round");
        assert_eq!((curve.draw(80).as_str(), curve.columns.len()), ("", 0));
        curve.turn_to("queue-depth");
        assert_eq!(curve.columns.len(), 2);
    }

    #[test]
    fn what_nobody_foresaw_comes_in_where_it_lies() {
        let rows = Vec::from([row("", &[])]);
        let mut curve = Curve { rows, ..along(&[]) };
        for (value, height) in [(1.0, 100.0), (4.0, 400.0), (16.0, 800.0), (2.0, 200.0)] {
            let label = format!("{value}");
            let own = Coordinate { axis: "queue-depth".to_owned(), label, value: Some(value) };
            let place = curve.insert(&own);
            let row = &mut curve.rows[0];
            row.sums.resize(curve.columns.len().max(row.sums.len()), (0.0, 0));
            row.sums[place] = (height, 1);
        }
        assert_eq!(curve.draw(80), " ▁▁▁▂▂▂▄▄▄███ 800 IOPS at 16\n");
        // If there are many values, the last ones are shown.
        let many: Vec<f64> = (1..=100).map(f64::from).collect();
        let labels: Vec<String> = many.iter().map(ToString::to_string).collect();
        let labels: Vec<&str> = labels.iter().map(String::as_str).collect();
        let rows = Vec::from([row("", &many)]);
        let curve = Curve { rows, ..along(&labels) };
        assert_eq!(curve.draw(40), " ▇▇▇███████ 100 IOPS at 100\n");
    }

    #[test]
    fn a_curve_is_drawn_as_far_as_it_is_known_and_fits() {
        let rows = Vec::from([row("4k", &[100.0, 200.0, 400.0, 0.0]), row("64k", &[800.0])]);
        let curve = Curve { rows, ..along(&["1", "2", "4", "8"]) };
        let expected = "\
4k  ▁▁▁▂▂▂▄▄▄··· 400 IOPS at 4
64k ███········· 800 IOPS at 1
";
        assert_eq!(curve.draw(80), expected);
        assert!(curve.draw(40).lines().all(|line| line.chars().count() <= 40));
        let none = Curve { rows: Vec::new(), ..curve };
        assert_eq!(none.draw(80), "");
    }
}
