//! A latency map that describes a device: its cells, from a file or invented, and the values
//! between them.
//!
//! The file has a line for each cell, with the columns w_idx, r_idx, w_bw_target_Bps, r_iops_target,
//! p50_ns, p95_ns and admissible, which are found by their names; lines that begin with # are left
//! out.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{fmt, fs, io};

/// A known latency map: from a file, or invented.
#[derive(Clone, Debug)]
pub struct StoredMap {
    /// Its source; none if it is invented.
    file: Option<PathBuf>,
    pub(super) cells: Arc<Cells>,
}

impl PartialEq for StoredMap {
    fn eq(&self, other: &Self) -> bool {
        self.file == other.file && self.cells == other.cells
    }
}

impl Default for StoredMap {
    /// An SSD of 100,000 reads or 500 MB/s of writes per second, each of which reduces the other.
    fn default() -> Self {
        Self { file: None, cells: Arc::new(Cells::made_up()) }
    }
}

/// The name of a map without a file.
const MADE_UP: &str = "made-up";

impl fmt::Display for StoredMap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.file {
            Some(file) => write!(f, "{}", file.display()),
            None => f.write_str(MADE_UP),
        }
    }
}

impl StoredMap {
    /// Reads a map that was typed: a file's name, or the name of the invented one.
    pub(super) fn read(text: &str) -> Result<Self, String> {
        if text == MADE_UP {
            return Ok(Self::default());
        }
        let file = Path::new(text);
        Self::parse(file, &content(file)?)
    }

    /// Reads the cells in the text of this file.
    ///
    /// # Errors
    ///
    /// When they are not a map; gives the reason, with the line.
    pub fn parse(file: &Path, text: &str) -> Result<Self, String> {
        Ok(Self { file: Some(file.to_owned()), cells: Arc::new(Cells::parse(text)?) })
    }

    /// Bytes written per second in the last column that has an admissible cell.
    pub fn write_bandwidth_max(&self) -> f64 {
        self.cells.last_column() as f64 * self.cells.write_step
    }

    /// Reads per second in the highest admissible cell without writes.
    pub fn read_rate_max(&self) -> f64 {
        self.cells.highest[0].map_or(0.0, |row| row as f64 * self.cells.read_step)
    }
}

/// The most that is read from a file: a map with the largest possible number of steps is smaller.
const LARGEST: u64 = 128 << 20;

/// The text of a file. A device or a pipe may have no end, and is not opened.
fn content(file: &Path) -> Result<String, String> {
    let unreadable = |error: io::Error| format!("the file cannot be read: {error}");
    if !fs::metadata(file).map_err(unreadable)?.is_file() {
        return Err("this is no file".to_owned());
    }
    let mut text = String::new();
    let open = fs::File::open(file).map_err(unreadable)?;
    open.take(LARGEST + 1).read_to_string(&mut text).map_err(unreadable)?;
    if LARGEST < text.len() as u64 {
        return Err("the file has more than 128 MiB, and no map has".to_owned());
    }
    Ok(text)
}

/// The cells of a map.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Cells {
    /// Bytes per second from column to column.
    pub(super) write_step: f64,
    /// Reads per second from row to row.
    pub(super) read_step: f64,
    /// By column and row: the logarithms of p50 and p95 in nanoseconds, where they are known and the
    /// cell is admissible.
    times: Vec<Vec<Option<[f64; 2]>>>,
    /// By column: the highest admissible row, if there is one.
    highest: Vec<Option<usize>>,
}

/// A line of the file.
struct CellLine {
    column: usize,
    row: usize,
    write: f64,
    read: f64,
    times: [f64; 2],
    admissible: bool,
}

/// The largest number of steps of a map.
const MOST_STEPS: usize = 1000;

impl Cells {
    fn parse(text: &str) -> Result<Self, String> {
        let lines = (1..).zip(text.lines().map(str::trim));
        let mut lines = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
        let (_, head) = lines.next().ok_or("the file has no line")?;
        let names: Vec<&str> = head.split(',').map(str::trim).collect();
        let place = |name: &str| {
            let place = names.iter().position(|one| *one == name);
            place.ok_or_else(|| format!("the first line names no column {name}"))
        };
        let places = [
            place("w_idx")?,
            place("r_idx")?,
            place("w_bw_target_Bps")?,
            place("r_iops_target")?,
            place("p50_ns")?,
            place("p95_ns")?,
            place("admissible")?,
        ];
        let line = |(number, line): (usize, &str)| {
            CellLine::parse(line, &places).map_err(|why| format!("line {number}: {why}"))
        };
        Self::of(&lines.map(line).collect::<Result<Vec<CellLine>, String>>()?)
    }

    fn of(lines: &[CellLine]) -> Result<Self, String> {
        let columns = lines.iter().map(|line| line.column + 1).max().unwrap_or(0);
        let rows = lines.iter().map(|line| line.row + 1).max().unwrap_or(0);
        if columns < 2 || rows < 2 {
            return Err("the map needs at least two columns and two rows".to_owned());
        }
        let step = |of: fn(&CellLine) -> (usize, f64)| {
            let highest = lines.iter().map(of).max_by_key(|&(place, _)| place).unwrap_or((1, 0.0));
            highest.1 / highest.0 as f64
        };
        let (write_step, read_step) =
            (step(|line| (line.column, line.write)), step(|line| (line.row, line.read)));
        if !(write_step > 0.0 && read_step > 0.0) {
            return Err("the targets of the last column and row have to be above zero".to_owned());
        }
        let mut times = vec![vec![None; rows]; columns];
        let mut highest = vec![None; columns];
        for line in lines.iter().filter(|line| line.admissible) {
            if line.times.iter().all(|&time| time >= 1.0) {
                times[line.column][line.row] = Some(line.times.map(f64::ln));
            }
            highest[line.column] = highest[line.column].max(Some(line.row));
        }
        if times.iter().flatten().all(Option::is_none) {
            return Err("no cell is admissible and has times".to_owned());
        }
        Ok(Self { write_step, read_step, times, highest })
    }

    fn made_up() -> Self {
        let line = |(column, row): (usize, usize)| {
            let [write, read] = [column, row].map(|step| step as f64 / 20.0);
            // Full when both together are; p50 and p95 rise towards that, and the writes have the
            // larger effect.
            let load = write.mul_add(0.75, read);
            let busy = 1.0 / (1.05 - load.min(1.0));
            let p50 = 90e3 * (1.0 + 0.15 * busy + write);
            let p95 = p50 * (1.25 + 1.5 * write + 0.03 * busy);
            let admissible = load <= 1.0;
            let (write, read) = (write * 500e6, read * 100e3);
            CellLine { column, row, write, read, times: [p50, p95], admissible }
        };
        let cells = (0..=20).flat_map(|column| (0..=20).map(move |row| (column, row)));
        Self::of(&cells.map(line).collect::<Vec<_>>()).expect("made to be read")
    }

    /// The last column with an admissible cell.
    pub(super) fn last_column(&self) -> usize {
        self.highest.iter().rposition(Option::is_some).unwrap_or(0)
    }

    /// The logarithms of p50 and p95 at a load, in steps.
    pub(super) fn times_at(&self, write: f64, read: f64) -> [f64; 2] {
        let column = (write.floor().max(0.0) as usize).min(self.times.len() - 2);
        let row = (read.floor().max(0.0) as usize).min(self.times[0].len() - 2);
        let (right, up) =
            ((write - column as f64).clamp(0.0, 1.0), (read - row as f64).clamp(0.0, 1.0));
        let mut sum = [0.0; 2];
        let mut weights = 0.0;
        for (x, y) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
            let weight = [1.0 - right, right][x] * [1.0 - up, up][y];
            if let Some(times) = self.times[column + x][row + y] {
                sum = [0, 1].map(|index| sum[index] + weight * times[index]);
                weights += weight;
            }
        }
        match weights > 1e-9 {
            true => sum.map(|sum| sum / weights),
            false => self.nearest(write, read),
        }
    }

    /// Those of the nearest cell that has any, counted in steps.
    fn nearest(&self, write: f64, read: f64) -> [f64; 2] {
        let mut best = (f64::INFINITY, [0.0; 2]);
        for (column, times) in self.times.iter().enumerate() {
            for (row, times) in times.iter().enumerate() {
                let distance = (column as f64 - write).powi(2) + (row as f64 - read).powi(2);
                if let Some(times) = times
                    && distance < best.0
                {
                    best = (distance, *times);
                }
            }
        }
        best.1
    }

    /// The highest rate of reads beside this many steps of writes, in steps.
    pub(super) fn frontier(&self, write: f64) -> f64 {
        let last = self.highest.len() - 1;
        let column = (write.floor().max(0.0) as usize).min(last);
        let of = |column: usize| self.highest[column].map_or(-1.0, |row| row as f64);
        let right = (write - column as f64).clamp(0.0, 1.0);
        let between = of(column) + right * (of((column + 1).min(last)) - of(column));
        (between + BEYOND).max(0.05)
    }
}

/// How many steps behind the last admissible cell the device really ends: clearly more than was
/// shown to be admissible, and clearly less than was shown not to be.
pub(super) const BEYOND: f64 = 0.35;

impl CellLine {
    fn parse(line: &str, places: &[usize; 7]) -> Result<Self, String> {
        let fields: Vec<&str> = line.split(',').map(str::trim).collect();
        let field = |place: usize| fields.get(place).copied().unwrap_or("");
        let number = |place: usize| {
            let text = field(place);
            let number = text.parse::<f64>().ok().filter(|number| number.is_finite());
            number.ok_or_else(|| format!("'{text}' is no number"))
        };
        let step = |place: usize| {
            let text = field(place);
            let step = text.parse::<usize>().ok().filter(|&step| step < MOST_STEPS);
            step.ok_or_else(|| format!("'{text}' is no step below {MOST_STEPS}"))
        };
        let admissible = field(places[6]) == "1";
        // Cells that are not admissible need no times.
        let time = |place: usize| if admissible { number(place) } else { Ok(0.0) };
        Ok(Self {
            column: step(places[0])?,
            row: step(places[1])?,
            write: number(places[2])?,
            read: number(places[3])?,
            times: [time(places[4])?, time(places[5])?],
            admissible,
        })
    }
}
