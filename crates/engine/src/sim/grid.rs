//! A device whose response times are a latency map: what a search for such a map is tried on, with
//! grids that were measured.
//!
//! The file has a line for each cell, with the columns w_idx, r_idx, w_bw_target_Bps, r_iops_target,
//! p50_ns, p95_ns and admissible, which are found by their names; lines that begin with # are left
//! out. Cells lie at whole steps of write bandwidth (w) and read rate (r).
//!
//! ```text
//! load        the bytes written and the reads that arrived, each over the time since the opening,
//!             at most 10 s of it
//! read        lognormal: ln p50 and ln p95 are bilinear in w and r between the four cells around the
//!             load, of those that are admissible; all independent of each other
//! frontier    h(w): the highest admissible r, straight between the columns
//! reads       at most h(w) + 0.35 steps a second; more waits, and the rest only grows
//! writes      at most the bandwidth of the last column that has an admissible cell + 0.35 steps;
//!             write-time when nothing waits
//! run-noise s each run has its own map: p50 times exp(s z), p95 / p50 times exp(s z'), z normal
//! ```
//!
//! The map's times have the waiting below the frontier in them, so that reads wait for their turn only
//! once more of them arrived than chance explains: than the frontier lets through by a standard
//! deviation of a Poisson count. What they wait by then is what came too much from the start on.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use fathom_core::measure::Direction;
use fathom_core::{Instant, Span};

use super::Device;
use super::agenda::Agenda;
use super::chance::Chance;
use super::parameters::{Field, Parameter};
use crate::backend::Io;

/// What a grid is made of.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// The map.
    pub map: Map,
    /// Standard deviation of a run's p50 from the map's.
    pub p50_noise: f64,
    /// Standard deviation of a run's p95 from the map's.
    pub p95_noise: f64,
    /// What a write takes when nothing waits.
    pub write_time: Span,
}

impl Default for Options {
    fn default() -> Self {
        let write_time = Span::from_us(50);
        Self { map: Map::default(), p50_noise: 0.0, p95_noise: 0.0, write_time }
    }
}

pub(super) const PARAMETERS: [Parameter<Options>; 4] = [
    Parameter {
        name: "file",
        meaning: "the cells, as CSV; made-up ones without it",
        field: |o| Field::Map(&mut o.map),
    },
    Parameter {
        name: "p50-noise",
        meaning: "standard deviation of a run's p50 from the map's",
        field: |o| Field::Share(&mut o.p50_noise, 0.5),
    },
    Parameter {
        name: "p95-noise",
        meaning: "standard deviation of a run's p95 from the map's",
        field: |o| Field::Share(&mut o.p95_noise, 0.5),
    },
    Parameter {
        name: "write-time",
        meaning: "what a write takes when nothing waits",
        field: |o| Field::Time(&mut o.write_time, Span(1), Span::from_secs(10)),
    },
];

/// A latency map that is known: from a file, or made up.
#[derive(Clone, Debug)]
pub struct Map {
    /// Where it is from; none if it is made up.
    file: Option<PathBuf>,
    cells: Arc<Cells>,
}

impl PartialEq for Map {
    fn eq(&self, other: &Self) -> bool {
        self.file == other.file && self.cells == other.cells
    }
}

impl Default for Map {
    /// An SSD of 100,000 reads or 500 MB/s of writes per second, of which each takes from the other.
    fn default() -> Self {
        Self { file: None, cells: Arc::new(Cells::made_up()) }
    }
}

/// What a map without a file is called.
const MADE_UP: &str = "made-up";

impl fmt::Display for Map {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.file {
            Some(file) => write!(f, "{}", file.display()),
            None => f.write_str(MADE_UP),
        }
    }
}

impl Map {
    /// Reads a map that was typed: a file's name, or that of the one that is made up.
    pub(super) fn read(text: &str) -> Result<Self, String> {
        if text == MADE_UP {
            return Ok(Self::default());
        }
        let file = Path::new(text);
        let content = std::fs::read_to_string(file)
            .map_err(|error| format!("the file cannot be read: {error}"))?;
        Ok(Self { file: Some(file.to_owned()), cells: Arc::new(Cells::parse(&content)?) })
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

/// The cells of a map.
#[derive(Clone, Debug, PartialEq)]
struct Cells {
    /// Bytes per second from column to column.
    write_step: f64,
    /// Reads per second from row to row.
    read_step: f64,
    /// By column and row: the logarithms of p50 and p95 in nanoseconds, where they are known and the
    /// cell is admissible.
    times: Vec<Vec<Option<[f64; 2]>>>,
    /// By column: the highest admissible row, if there is one.
    highest: Vec<Option<usize>>,
}

/// A line of the file.
struct Line {
    column: usize,
    row: usize,
    write: f64,
    read: f64,
    times: [f64; 2],
    admissible: bool,
}

/// More steps than this no map has.
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
            Line::parse(line, &places).map_err(|why| format!("line {number}: {why}"))
        };
        Self::of(&lines.map(line).collect::<Result<Vec<Line>, String>>()?)
    }

    fn of(lines: &[Line]) -> Result<Self, String> {
        let columns = lines.iter().map(|line| line.column + 1).max().unwrap_or(0);
        let rows = lines.iter().map(|line| line.row + 1).max().unwrap_or(0);
        if columns < 2 || rows < 2 {
            return Err("the map needs at least two columns and two rows".to_owned());
        }
        let step = |of: fn(&Line) -> (usize, f64)| {
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
            // Full when both together are; p50 and p95 rise on the way there, the writes more so.
            let load = write.mul_add(0.75, read);
            let busy = 1.0 / (1.05 - load.min(1.0));
            let p50 = 90e3 * (1.0 + 0.15 * busy + write);
            let p95 = p50 * (1.25 + 1.5 * write + 0.03 * busy);
            let admissible = load <= 1.0;
            let (write, read) = (write * 500e6, read * 100e3);
            Line { column, row, write, read, times: [p50, p95], admissible }
        };
        let cells = (0..=20).flat_map(|column| (0..=20).map(move |row| (column, row)));
        Self::of(&cells.map(line).collect::<Vec<_>>()).expect("made to be read")
    }

    /// The last column with an admissible cell.
    fn last_column(&self) -> usize {
        self.highest.iter().rposition(Option::is_some).unwrap_or(0)
    }

    /// The logarithms of p50 and p95 at a load, in steps.
    fn times_at(&self, write: f64, read: f64) -> [f64; 2] {
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
    fn frontier(&self, write: f64) -> f64 {
        let last = self.highest.len() - 1;
        let column = (write.floor().max(0.0) as usize).min(last);
        let of = |column: usize| self.highest[column].map_or(-1.0, |row| row as f64);
        let right = (write - column as f64).clamp(0.0, 1.0);
        let between = of(column) + right * (of((column + 1).min(last)) - of(column));
        (between + BEYOND).max(0.05)
    }
}

/// How many steps behind the last admissible cell the device really ends: clearly more than was shown
/// to work, and clearly less than was shown not to.
const BEYOND: f64 = 0.35;

impl Line {
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

/// How far back the load is remembered.
const MEMORY: f64 = 10e9;
/// A load is told from at least so much time: the first I/O is no load yet.
const AT_LEAST: f64 = 1e6;
/// The p95 of a normal distribution.
const Z95: f64 = 1.644_853_626_951_472_7;

/// A rate, over the time since the opening and at most [`MEMORY`] of it.
#[derive(Clone, Copy, Debug, Default)]
struct Rate {
    /// What arrived and is remembered.
    amount: f64,
    /// Until when it was counted, in nanoseconds.
    until: f64,
}

impl Rate {
    fn add(&mut self, amount: f64, now: f64) {
        // What is older than the memory fades.
        if now > MEMORY {
            self.amount *= (-(now - self.until.max(MEMORY)) / MEMORY).exp();
        }
        self.until = now;
        self.amount += amount;
    }

    fn per_second(&self, now: f64) -> f64 {
        let faded = match now > MEMORY {
            true => self.amount * (-(now - self.until.max(MEMORY)) / MEMORY).exp(),
            false => self.amount,
        };
        faded / now.clamp(AT_LEAST, MEMORY) * 1e9
    }
}

/// How often the load is looked at: it changes slowly.
const LOOK: Span = Span::from_ms(1);

/// The map at work.
#[derive(Debug)]
pub(super) struct Grid {
    cells: Arc<Cells>,
    write_time: Span,
    chance: Chance,
    /// What this run has of its own: p50, and p95 over p50, as logarithms.
    own: [f64; 2],
    written: Rate,
    read: Rate,
    next_look: Instant,
    /// ln p50 and sigma of the reads, as of the last look.
    times: [f64; 2],
    /// Nanoseconds from read to read at the frontier, as of the last look.
    read_gap: f64,
    /// Nanoseconds for a byte at the most that can be written.
    byte_time: f64,
    /// When the frontier lets the next read through, and the next write.
    gates: [f64; 2],
    /// Whether reads wait for that.
    overloaded: bool,
}

impl Grid {
    pub fn new(options: &Options, seed: u64) -> Self {
        let cells = Arc::clone(&options.map.cells);
        let mut of_run = Chance::new(seed, 6);
        let p50 = options.p50_noise * of_run.normal();
        let p95 = options.p95_noise * of_run.normal();
        let most = (cells.last_column() as f64 + BEYOND) * cells.write_step;
        Self {
            cells,
            write_time: options.write_time,
            chance: Chance::new(seed, 7),
            own: [p50, p95 - p50],
            written: Rate::default(),
            read: Rate::default(),
            next_look: Instant(0),
            times: [0.0; 2],
            read_gap: 0.0,
            byte_time: 1e9 / most,
            gates: [0.0; 2],
            overloaded: false,
        }
    }

    /// Looks at the load, and finds what it means.
    fn look(&mut self, now: Instant) {
        self.next_look = now + LOOK;
        let cells = &self.cells;
        let most = cells.last_column() as f64 + BEYOND;
        let at = now.0 as f64;
        let write = (self.written.per_second(at) / cells.write_step).min(most);
        let read = self.read.per_second(at) / cells.read_step;
        let frontier = cells.frontier(write);
        let [p50, p95] = cells.times_at(write, read.min(frontier));
        let sigma = ((p95 - p50 + self.own[1]) / Z95).max(0.01);
        self.times = [p50 + self.own[0], sigma];
        self.read_gap = 1e9 / (frontier * cells.read_step);
        let seconds = at.clamp(AT_LEAST, MEMORY) / 1e9;
        let [arrived, let_through] = [read, frontier].map(|rate| rate * cells.read_step * seconds);
        self.overloaded = arrived - let_through > let_through.sqrt();
    }
}

impl Device for Grid {
    fn arrives(&mut self, io: &Io, now: Instant, agenda: &mut Agenda) {
        let at = now.0 as f64;
        if self.next_look <= now {
            self.look(now);
        }
        let (gap, time, waits) = match io.direction {
            Direction::Read => {
                self.read.add(1.0, at);
                let [p50, sigma] = self.times;
                (self.read_gap, (p50 + sigma * self.chance.normal()).exp(), self.overloaded)
            }
            Direction::Write => {
                self.written.add(f64::from(io.length), at);
                (f64::from(io.length) * self.byte_time, self.write_time.0 as f64, true)
            }
        };
        let gate = &mut self.gates[io.direction as usize];
        *gate = gate.max(at) + gap;
        let done = if waits { gate.max(at + time) } else { at + time };
        // To the nearest nanosecond. Nothing here is below zero, and to cut off costs no call.
        agenda.completes(io.slot, Instant((done + 0.5) as u64));
    }

    fn resumes(&mut self, token: u32, _now: Instant, _agenda: &mut Agenda) {
        unreachable!("a grid asked to be called for {token}")
    }
}
