//! A device whose response times are a latency map: for trying a search for such a map, on grids
//! that were measured.
//!
//! Cells lie at whole steps of write bandwidth (w) and read rate (r).
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
//! The map's times include the waiting below the frontier. So reads wait only once more of them
//! have arrived than chance explains: than the frontier lets through, by a standard deviation of a
//! Poisson count. They then wait for all excess arrivals since the start.

use std::sync::Arc;

use fathom_core::measure::Direction;
use fathom_core::{Instant, Span};

use super::Device;
use super::agenda::Agenda;
use super::chance::Chance;
use super::parameters::{Field, Parameter};
use super::stored_map::{BEYOND, Cells, StoredMap};
use crate::backend::Io;

/// The settings of a grid.
#[derive(Clone, Debug, PartialEq)]
pub struct GridOptions {
    /// The map.
    pub map: StoredMap,
    /// Standard deviation of a run's p50 from the map's.
    pub p50_noise: f64,
    /// Standard deviation of a run's p95 from the map's.
    pub p95_noise: f64,
    /// The time of a write when nothing waits.
    pub write_time: Span,
}

impl Default for GridOptions {
    fn default() -> Self {
        let write_time = Span::from_us(50);
        Self { map: StoredMap::default(), p50_noise: 0.0, p95_noise: 0.0, write_time }
    }
}

pub(super) const PARAMETERS: [Parameter<GridOptions>; 4] = [
    Parameter {
        name: "file",
        meaning: "the cells, as CSV; without it, invented ones",
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
        meaning: "the time of a write when nothing waits",
        field: |o| Field::Time(&mut o.write_time, Span(1), Span::from_secs(10)),
    },
];

/// The time over which the load is remembered.
const MEMORY: f64 = 10e9;
/// A load is computed over at least this much time: the first I/O alone is not a load.
const AT_LEAST: f64 = 1e6;
/// The p95 of a normal distribution.
const Z95: f64 = 1.644_853_626_951_472_7;

/// A rate, over the time since the device was opened and at most [`MEMORY`] of it.
#[derive(Clone, Copy, Debug, Default)]
struct Rate {
    /// The remembered arrivals.
    amount: f64,
    /// The time up to which they were counted, in nanoseconds.
    until: f64,
}

impl Rate {
    fn add(&mut self, amount: f64, now: f64) {
        // Arrivals beyond the memory fade.
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

/// How often the load is computed: it changes slowly.
const LOOK: Span = Span::from_ms(1);

/// The map at work.
#[derive(Debug)]
pub(super) struct Grid {
    cells: Arc<Cells>,
    write_time: Span,
    chance: Chance,
    /// The deviations of this run: p50, and p95 over p50, as logarithms.
    own: [f64; 2],
    written: Rate,
    read: Rate,
    next_look: Instant,
    /// ln p50 and sigma of the reads, at the last computation.
    times: [f64; 2],
    /// Nanoseconds from read to read at the frontier, at the last computation.
    read_gap: f64,
    /// Nanoseconds for a byte at the highest write bandwidth.
    byte_time: f64,
    /// When the frontier lets the next read through, and the next write.
    gates: [f64; 2],
    /// Whether reads wait for that.
    overloaded: bool,
}

impl Grid {
    pub fn new(options: &GridOptions, seed: u64) -> Self {
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

    /// Computes the load, and looks up its times.
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
        // To the nearest nanosecond. No value here is below zero, and truncation needs no call.
        agenda.completes(io.slot, Instant((done + 0.5) as u64));
    }
}
