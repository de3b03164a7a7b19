//! Simulated devices in virtual time: tests check the hot loop on them against known answers, and
//! users try an experiment on them before it touches a disk.
//!
//! No code here reads a clock or sleeps: [`Sim`] owns the time and moves it to the next event. An
//! I/O costs a few operations on a heap, and there is no allocation after a device is opened.

mod agenda;
mod array;
mod burst;
mod cache;
mod chance;
mod curve;
mod faults;
mod grid;
mod hdd;
mod mix;
mod noise;
mod options;
mod parameters;
mod queue;
mod shown;
mod ssd;
mod stored_map;
mod table;
mod times;
mod warp;

use std::fmt;
use std::ops::Range;

use fathom_core::Instant;
use fathom_core::measure::Direction;
use fathom_core::spec::Payload;

use crate::backend::{Backend, Completion, Io, Task};
use agenda::{Agenda, EventKind};
use array::Array;
use burst::Burst;
use cache::Cached;
use faults::Outcomes;
use grid::Grid;
use hdd::Hdd;
use mix::AccessMix;
use queue::Queue;
use ssd::Ssd;
use table::BandwidthTable;
use times::Times;
use warp::Warp;

pub use array::{ArrayOptions, Disk, Level};
pub use burst::BurstOptions;
pub use curve::Curve;
pub use faults::Faults;
pub use grid::GridOptions;
pub use hdd::HddOptions;
pub use noise::Noise;
pub use options::{Model, Options, help};
pub use parameters::{Distribution, Drift, Stall};
pub use queue::QueueOptions;
pub use ssd::SsdOptions;
pub use stored_map::StoredMap;
pub use table::{TableOptions, WriteConcurrency};

/// A model that serves I/Os. It computes in device time, which never goes back.
trait Device: fmt::Debug + Send {
    /// An I/O arrives. The device enters its completion into the agenda, now or when it is called
    /// again.
    fn arrives(&mut self, io: &Io, now: Instant, agenda: &mut Agenda);

    /// The writes of these slots could be saved to this share, by a device that saves.
    fn writes(&mut self, slots: Range<u32>, saved: f64) {
        let _ = (slots, saved);
    }

    /// The time has come at which the device asked to be called.
    fn resumes(&mut self, token: u32, _now: Instant, _agenda: &mut Agenda) {
        unreachable!("{self:?} asked to be called for {token}")
    }

    /// Events that it may have waiting besides one for each slot.
    fn own_events(&self) -> usize {
        0
    }
}

/// A simulated device that is open, with its own virtual time from zero.
#[derive(Debug)]
pub struct Sim {
    device: Box<dyn Device>,
    agenda: Agenda,
    outcomes: Outcomes,
    queued: Vec<Io>,
    /// Completed and not yet handed over.
    completed: Vec<Completion>,
    /// Flushes that wait for the writes before them: their slots, and the number of writes before.
    flushes: Vec<(u32, u64)>,
    /// The number of the write in each slot.
    writes: Vec<Option<u64>>,
    /// The number of all writes.
    written: u64,
    /// The result of the I/O in each slot; empty for a free slot.
    results: Vec<Option<i32>>,
    /// By slot: the share of the bytes of a write that the device moves.
    moved: Box<[f64]>,
    /// The shares that it saves: of compressible data, of duplicates, and of zeros.
    saves: [f64; 3],
}

/// The device of a model, at work.
fn device(options: &Options, slots: u32) -> Box<dyn Device> {
    let Options { size, seed, model, .. } = options;
    match model {
        Model::Queue(queue) => Box::new(Queue::new(queue, *seed)),
        Model::Ssd(ssd) => Box::new(Ssd::new(ssd, slots, *seed)),
        Model::Hdd(hdd) => Box::new(Hdd::new(hdd, *size, slots, *seed)),
        Model::Array(options) => {
            let array = Array::new(options, *size, slots, *seed);
            match options.cache.0 {
                0 => Box::new(array),
                _ => Box::new(Cached::new(array, options.cache, slots)),
            }
        }
        Model::Burst(burst) => Box::new(Burst::new(burst)),
        Model::Table(table) => Box::new(BandwidthTable::new(table, slots, *seed)),
        Model::Grid(grid) => Box::new(Grid::new(grid, *seed)),
        Model::WriteConcurrency(study) => {
            Box::new(BandwidthTable::write_concurrency(study, slots, *seed))
        }
        Model::AccessMix(mix) => Box::new(AccessMix::new(mix, slots)),
        Model::BestPractice(times) => Box::new(Times::new(times, slots, *seed)),
    }
}

impl Sim {
    /// Opens a device for at most this many I/Os in flight.
    pub fn open(options: &Options, slots: u32) -> Self {
        let Options { size, seed, faults, noise, began, .. } = options;
        let device = device(options, slots);
        let events = slots as usize + device.own_events();
        let warp = Warp::new(faults.stall, noise, *seed, *began);
        Self {
            agenda: Agenda::new(events, warp, faults.hang_after),
            outcomes: Outcomes::new(faults, size.0, *seed),
            device,
            queued: Vec::with_capacity(slots as usize),
            completed: Vec::with_capacity(slots as usize),
            results: (0..slots).map(|_| None).collect(),
            flushes: Vec::with_capacity(slots as usize),
            writes: (0..slots).map(|_| None).collect(),
            written: 0,
            moved: vec![1.0; slots as usize].into(),
            saves: [options.compresses, options.deduplicates, options.skips_zeros],
        }
    }

    /// Sets the payload of these slots. Until then it is data of which nothing can be saved.
    pub fn writes(&mut self, slots: Range<u32>, payload: &Payload) {
        // The shares of it that are compressible, duplicates, and zeros.
        let could = match payload {
            Payload::Zeros => [1.0, 1.0, 1.0],
            Payload::Pattern(_) => [1.0, 1.0, 0.0],
            Payload::Random { compressible, dedup } => [*compressible, *dedup, 0.0],
            // The content of a file is not known here.
            Payload::Pool { .. } => [0.0; 3],
        };
        let moved: f64 = self.saves.iter().zip(could).map(|(saves, of)| 1.0 - saves * of).product();
        let saved = 1.0 - could.iter().map(|of| 1.0 - of).product::<f64>();
        self.moved[slots.start as usize..slots.end as usize].fill(moved);
        self.device.writes(slots, saved);
    }

    fn start_queued(&mut self) {
        if self.queued.is_empty() {
            return self.finish_flushes();
        }
        let now = self.agenda.device_now();
        for io in self.queued.drain(..) {
            if io.direction == Direction::Write {
                self.writes[io.slot as usize] = Some(self.written);
                self.written += 1;
            }
            let result = self.outcomes.of(&io);
            let before = self.results[io.slot as usize].replace(result);
            assert!(before.is_none(), "slot {} was started while it was in flight", io.slot);
            let io = match io.direction {
                Direction::Read => io,
                Direction::Write => Io { length: scaled(&io, &self.moved), ..io },
            };
            self.device.arrives(&io, now, &mut self.agenda);
        }
        self.finish_flushes();
    }

    /// Completes the flushes whose writes have all completed: a completed write is durable on a
    /// simulated device.
    #[inline]
    fn finish_flushes(&mut self) {
        if !self.flushes.is_empty() {
            self.finish_some_flushes();
        }
    }

    #[cold]
    fn finish_some_flushes(&mut self) {
        let at = self.agenda.now();
        let oldest = self.writes.iter().flatten().min().copied().unwrap_or(u64::MAX);
        let back = self.flushes.extract_if(.., |(_, writes)| *writes <= oldest);
        self.completed.extend(back.map(|(slot, _)| Completion { slot, result: 0, at }));
    }
}

impl Sim {
    /// Moves the time to the next completion in an urgent slot, and handles everything of that
    /// instant, or to the deadline.
    #[inline]
    pub fn wait_for(&mut self, deadline: Instant, is_urgent: impl Fn(u32) -> bool) {
        self.start_queued();
        let mut limit = match self.completed.iter().any(|one| is_urgent(one.slot)) {
            true => self.agenda.now(),
            false => deadline.max(self.agenda.now()),
        };
        while let Some(event) = self.agenda.next_until(limit) {
            self.agenda.advance(event.at);
            match event.what {
                EventKind::Resumes(token) => {
                    let device = &mut self.device;
                    device.resumes(token, event.device_time, &mut self.agenda);
                }
                EventKind::Completes(slot) => {
                    let result = self.results[slot as usize].take();
                    let result = result.expect("only what is in flight completes");
                    self.completed.push(Completion { slot, result, at: event.at });
                    self.writes[slot as usize] = None;
                    let others = self.completed.len();
                    self.finish_flushes();
                    if is_urgent(slot)
                        || self.completed[others..].iter().any(|one| is_urgent(one.slot))
                    {
                        // From here on only events of the same instant.
                        limit = event.at;
                    }
                }
            }
        }
        // The last event is available now, even if no worker waits for it.
        self.agenda.advance(limit);
    }
}

/// The bytes that a device handles if it saves some of them: at least one.
fn scaled(io: &Io, moved: &[f64]) -> u32 {
    match moved[io.slot as usize] {
        1.0 => io.length,
        share => ((f64::from(io.length) * share).round() as u32).max(1),
    }
}

impl Backend for Sim {
    fn now(&mut self) -> Instant {
        self.agenda.now()
    }

    fn refresh(&mut self, _: u32, _: u32) {}

    fn push(&mut self, io: Io) {
        assert!(
            self.queued.len() < self.results.len(),
            "more I/Os were pushed than there are slots"
        );
        self.queued.push(io);
    }

    fn push_task(&mut self, slot: u32, _target: u32, task: Task) {
        match task {
            Task::Trim { .. } => unreachable!("trims of simulated devices are refused"),
            Task::Flush { .. } => {
                let queued = self.queued.iter().filter(|io| io.direction == Direction::Write);
                self.flushes.push((slot, self.written + queued.count() as u64));
            }
        }
    }

    fn wait(&mut self, deadline: Instant) {
        self.wait_for(deadline, |_| true);
    }

    fn reap(&mut self, take: impl FnMut(Completion)) {
        self.completed.drain(..).for_each(take);
    }
}

#[cfg(test)]
mod tests;
