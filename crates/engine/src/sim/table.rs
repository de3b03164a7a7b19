//! A device whose throughput against concurrency is a table: for trying a search for the best queue
//! depth, on published or invented curves.
//!
//! It handles one I/O after the other, in the order of arrival, at the bandwidth that the table
//! gives for the number in flight. With X(n) that bandwidth and L the length of an I/O:
//!
//! ```text
//! closed loop, depth n:  X(n) / L I/Os per second, from the first one on
//!                        R = n L / X(n)                    (Little)
//! open loop:             a birth and death process with the rates X(k) / L
//! between points:        a straight line in the logarithms of both
//! below the first:       X(n) = n X(first) / first;  above the last: X(last)
//! run-noise s:           each run has all of X multiplied by exp(s z - s^2 / 2), z normal
//! ```
//!
//! The next I/O begins a nanosecond after the one before it has ended, so that the I/O that a
//! closed loop starts at that instant counts among those in flight.

use std::collections::VecDeque;
use std::ops::Range;

use fathom_core::measure::Direction;
use fathom_core::{Bytes, Instant, Span};

use super::Device;
use super::agenda::Agenda;
use super::chance::Chance;
use super::curve::Curve;
use super::parameters::{Field, Parameter};
use crate::backend::Io;

/// The settings of a table.
#[derive(Clone, Debug, PartialEq)]
pub struct TableOptions {
    /// Bandwidth against concurrency.
    pub points: Curve,
    /// Standard deviation of the bandwidth from one run to the next, as a share of it.
    pub run_noise: f64,
}

impl Default for TableOptions {
    fn default() -> Self {
        let points = [(1, 200), (4, 600), (16, 1000), (64, 1000)];
        let points = points.map(|(in_flight, mb)| (in_flight, Bytes(mb * 1_000_000)));
        Self { points: Curve::new(points.into()).expect("they rise"), run_noise: 0.0 }
    }
}

pub(super) const PARAMETERS: [Parameter<TableOptions>; 2] = [
    Parameter {
        name: "points",
        meaning: "bandwidth by the I/Os in flight, straight in logarithms between points",
        field: |o| Field::Curve(&mut o.points),
    },
    Parameter {
        name: "run-noise",
        meaning: "standard deviation of the bandwidth from run to run",
        field: |o| Field::Share(&mut o.run_noise, 0.5),
    },
];

/// The settings of the device of the published study of concurrent writes, for blocks of three
/// sizes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WriteConcurrency {
    /// Standard deviation of the bandwidth from one run to the next, as a share of it.
    pub run_noise: f64,
}

pub(super) const WRITE_CONCURRENCY_PARAMETERS: [Parameter<WriteConcurrency>; 1] = [Parameter {
    name: "run-noise",
    meaning: "standard deviation of the bandwidth from run to run",
    field: |o| Field::Share(&mut o.run_noise, 0.5),
}];

/// Concurrency and MB/s.
type Points = &'static [(u32, u64)];

/// The curves of tests/data/studies/write-concurrency.csv: concurrency and MB/s (10^6: the file
/// says that its unit differs from its name), the median of the runs if there are several. By block
/// size: of random data, and of zeros if those were measured.
const PUBLISHED: [(u64, Points, Points); 3] = [
    (256 * 1024, &[(2, 562), (4, 619), (8, 702), (32, 481)], &[]),
    (1024 * 1024, &[(1, 505), (2, 824), (8, 786), (32, 875)], &[]),
    (
        12_800_000,
        &[(1, 565), (2, 884), (8, 937), (32, 893), (256, 840)],
        &[(1, 1270), (2, 1453), (32, 1439), (256, 1383)],
    ),
];

/// Blocks of a size and their curves.
#[derive(Clone, Debug)]
struct Family {
    length: u32,
    random: Curve,
    /// For data that could be saved entirely; as for random data if it was not measured.
    saved: Option<Curve>,
}

impl Family {
    fn published() -> Vec<Self> {
        let curve = |points: Points| {
            let points = points.iter().map(|&(n, mb)| (n, Bytes(mb * 1_000_000))).collect();
            Curve::new(points).expect("published points rise")
        };
        let family = |(length, random, saved): (u64, Points, Points)| Self {
            length: length as u32,
            random: curve(random),
            saved: (!saved.is_empty()).then(|| curve(saved)),
        };
        PUBLISHED.into_iter().map(family).collect()
    }
}

/// An I/O that waits or is served.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    slot: u32,
    length: u32,
    /// The family whose curves give the bytes per second.
    family: u32,
    /// The place of the bandwidth between the curve of random data, 0, and that of data that can be
    /// saved, 1.
    saved: f64,
}

/// The table at work.
#[derive(Debug)]
pub(super) struct BandwidthTable {
    families: Vec<Family>,
    speed: f64,
    waiting: VecDeque<Waiting>,
    busy: bool,
    /// By slot: the share of its writes that could be saved.
    saved: Box<[f64]>,
}

impl BandwidthTable {
    pub fn new(options: &TableOptions, slots: u32, seed: u64) -> Self {
        // The only family: every length is its own.
        let family = Family { length: 4096, random: options.points.clone(), saved: None };
        Self::of(Vec::from([family]), options.run_noise, slots, seed)
    }

    pub fn write_concurrency(options: &WriteConcurrency, slots: u32, seed: u64) -> Self {
        Self::of(Family::published(), options.run_noise, slots, seed)
    }

    fn of(families: Vec<Family>, run_noise: f64, slots: u32, seed: u64) -> Self {
        Self {
            families,
            speed: Chance::new(seed, 5).speed(run_noise),
            waiting: VecDeque::with_capacity(slots as usize),
            busy: false,
            saved: vec![0.0; slots as usize].into(),
        }
    }

    /// The family whose length is nearest, as a ratio.
    fn family(&self, length: u32) -> u32 {
        let off = |family: &Family| (f64::from(family.length) / f64::from(length)).ln().abs();
        let offs = self.families.iter().map(off).enumerate();
        offs.min_by(|a, b| a.1.total_cmp(&b.1)).map_or(0, |(place, _)| place as u32)
    }

    /// Bytes per second for the next I/O.
    fn bandwidth(&self, next: &Waiting) -> f64 {
        let in_flight = self.waiting.len() as u32;
        let family = &self.families[next.family as usize];
        let random = family.random.bandwidth(in_flight);
        let saved = family.saved.as_ref().map_or(random, |curve| curve.bandwidth(in_flight));
        self.speed * random.powf(1.0 - next.saved) * saved.powf(next.saved)
    }
}

impl Device for BandwidthTable {
    fn writes(&mut self, slots: Range<u32>, saved: f64) {
        self.saved[slots.start as usize..slots.end as usize].fill(saved);
    }

    fn arrives(&mut self, io: &Io, now: Instant, agenda: &mut Agenda) {
        let family = self.family(io.length);
        let saved = match io.direction {
            Direction::Read => 0.0,
            Direction::Write => self.saved[io.slot as usize],
        };
        self.waiting.push_back(Waiting { slot: io.slot, length: io.length, family, saved });
        if !self.busy {
            self.busy = true;
            agenda.resumes(BEGINS, now + Span(1));
        }
    }

    fn own_events(&self) -> usize {
        // The next I/O begins, or the served one ends.
        1
    }

    fn resumes(&mut self, token: u32, now: Instant, agenda: &mut Agenda) {
        if token == ENDS {
            self.waiting.pop_front();
            self.busy = !self.waiting.is_empty();
            if self.busy {
                agenda.resumes(BEGINS, now + Span(1));
            }
            return;
        }
        let Some(next) = self.waiting.front() else { return };
        let time = f64::from(next.length) / self.bandwidth(next) * 1e9;
        // The nanosecond before it began belongs to it.
        let done = now + Span((time.round() as u64).saturating_sub(1).max(1));
        agenda.completes(next.slot, done);
        agenda.resumes(ENDS, done);
    }
}

/// The next I/O begins.
const BEGINS: u32 = 0;
/// The served I/O has ended.
const ENDS: u32 = 1;
