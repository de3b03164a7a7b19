//! The device of DiskSpd's published example: 4 KiB at random, 30 % of them writes, with 128 in
//! flight. Its response times were published percentile by percentile.
//!
//! Each I/O takes a time drawn from the published times for its direction, times a factor for the
//! number in flight with it, at any number:
//!
//! ```text
//! q(u)         the published percentiles of its direction, straight between them
//! mean(n)      max(fastest, n / 241,863 per second)
//! an I/O       q(u) x mean(n) / 0.527 ms, u uniform; 0.527 ms is the mean of q over 70 % reads and
//!              30 % writes, so that these do n / mean(n) I/Os per second with n in flight
//! ```
//!
//! So its times are published only with 128 in flight; with fewer it behaves like a queue with that
//! capacity.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use fathom_core::measure::Direction;
use fathom_core::{Instant, Span};

use super::Device;
use super::agenda::Agenda;
use super::chance::Chance;
use super::parameters::{Field, Parameter};
use crate::backend::Io;

/// The settings of the device.
#[derive(Clone, Debug, PartialEq)]
pub struct BestPracticeOptions {
    /// The mean response time without queueing.
    pub fastest: Span,
}

impl Default for BestPracticeOptions {
    fn default() -> Self {
        Self { fastest: Span::from_us(200) }
    }
}

pub(super) const PARAMETERS: [Parameter<BestPracticeOptions>; 1] = [Parameter {
    name: "fastest",
    meaning: "the mean response time of an I/O that waits for no other; it is not published",
    field: |o| Field::Time(&mut o.fastest, Span::from_us(1), Span::from_secs(1)),
}];

/// The published I/Os per second.
const CAPACITY: f64 = 241_862.71;

/// Shares of the I/Os, and the milliseconds that they take at most: reads and writes.
const PUBLISHED: [(f64, f64, f64); 13] = [
    (0.0, 0.202, 0.185),
    (0.25, 0.391, 0.420),
    (0.5, 0.450, 0.483),
    (0.75, 0.553, 0.596),
    (0.9, 0.766, 0.812),
    (0.95, 0.936, 0.974),
    (0.99, 1.486, 1.521),
    (0.999, 2.454, 2.485),
    (0.9999, 8.010, 7.650),
    (0.999_99, 24.608, 24.539),
    (0.999_999, 42.137, 35.227),
    (0.999_999_9, 42.775, 42.122),
    (0.999_999_99, 42.775, 42.122),
];

/// Milliseconds of a published row.
fn published(direction: Direction, row: usize) -> f64 {
    match direction {
        Direction::Read => PUBLISHED[row].1,
        Direction::Write => PUBLISHED[row].2,
    }
}

/// The time in nanoseconds that this share of the I/Os takes at most.
fn quantile(direction: Direction, share: f64) -> f64 {
    let last = PUBLISHED.len() - 2;
    let row = PUBLISHED.iter().rposition(|row| row.0 <= share).unwrap_or(0).min(last);
    let along = (share - PUBLISHED[row].0) / (PUBLISHED[row + 1].0 - PUBLISHED[row].0);
    let [low, high] = [row, row + 1].map(|row| published(direction, row));
    (low + (high - low) * along.clamp(0.0, 1.0)) * 1e6
}

/// The mean of the drawn times, in nanoseconds.
fn mean(direction: Direction) -> f64 {
    let part = |row: usize| {
        let share = PUBLISHED[row + 1].0 - PUBLISHED[row].0;
        share * (published(direction, row) + published(direction, row + 1)) / 2.0
    };
    (0..PUBLISHED.len() - 1).map(part).sum::<f64>() * 1e6
}

/// The mean of the published load, 70 % of it reads.
fn mean_of_both() -> f64 {
    0.7 * mean(Direction::Read) + 0.3 * mean(Direction::Write)
}

/// The device at work.
#[derive(Debug)]
pub(super) struct Times {
    fastest: f64,
    mean: f64,
    /// When those in flight are done, in nanoseconds.
    ends: BinaryHeap<Reverse<u64>>,
    chance: Chance,
}

impl Times {
    pub fn new(options: &BestPracticeOptions, slots: u32, seed: u64) -> Self {
        Self {
            fastest: options.fastest.0 as f64,
            mean: mean_of_both(),
            ends: BinaryHeap::with_capacity(slots as usize + 1),
            chance: Chance::new(seed, 9),
        }
    }
}

impl Device for Times {
    fn arrives(&mut self, io: &Io, now: Instant, agenda: &mut Agenda) {
        while self.ends.peek().is_some_and(|Reverse(end)| *end <= now.0) {
            self.ends.pop();
        }
        let in_flight = self.ends.len() + 1;
        let wanted = self.fastest.max(in_flight as f64 / CAPACITY * 1e9);
        let drawn = quantile(io.direction, self.chance.unit());
        let took = drawn * wanted / self.mean;
        let end = now + Span((took.round() as u64).max(1));
        self.ends.push(Reverse(end.0));
        agenda.completes(io.slot, end);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn its_times_are_the_published_ones() {
        let path =
            concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/data/studies/diskspd-example.txt");
        let text = std::fs::read_to_string(path).unwrap();
        let mut rows = 0;
        for line in text.lines() {
            let cells: Vec<&str> = line.split(',').collect();
            let share = match cells[0] {
                "min" => 0.0,
                "25th" => 0.25,
                "50th" => 0.5,
                "75th" => 0.75,
                "90th" => 0.9,
                "95th" => 0.95,
                "99th" => 0.99,
                "3-nines" => 0.999,
                "4-nines" => 0.9999,
                "5-nines" => 0.999_99,
                "6-nines" => 0.999_999,
                "7-nines" => 0.999_999_9,
                _ => continue,
            };
            for (direction, cell) in [(Direction::Read, 1), (Direction::Write, 2)] {
                let published = cells[cell].parse::<f64>().unwrap() * 1e6;
                let here = quantile(direction, share);
                assert!((here / published - 1.0).abs() < 1e-6, "{line}: {here}");
            }
            rows += 1;
        }
        assert_eq!(rows, 12);
        // The published mean of both together is 0.528 ms.
        assert!((mean_of_both() / 528e3 - 1.0).abs() < 0.005, "{}", mean_of_both());
    }
}
