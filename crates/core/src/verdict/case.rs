//! The input of every check: the trial, the host and the targets, and the questions that several
//! checks ask about them.

use crate::facts::{Host, Layer, Target, TargetKind};
use crate::measure::{Direction, Flow, Upkeep, WorkerRecord};
use crate::plan::worker_count;
use crate::spec::{BackendKind, Cache, Region, Stream};
use crate::trial::Trial;
use crate::units::{Bytes, Span, count};

pub(super) struct Case<'a> {
    pub(super) trial: &'a Trial,
    pub(super) host: &'a Host,
    pub(super) targets: &'a [Target],
}

impl<'a> Case<'a> {
    pub(super) fn is_simulated(&self) -> bool {
        self.trial.backend == BackendKind::Sim
            || self.used().any(|(_, target)| target.kind == TargetKind::Simulated)
    }

    /// Whether no stream goes through the page cache.
    pub(super) fn is_direct(&self) -> bool {
        self.streams().iter().all(|stream| stream.access.cache == Cache::Direct)
    }

    /// Whether every stream goes through the page cache.
    pub(super) fn is_buffered(&self) -> bool {
        self.streams().iter().all(is_buffered)
    }

    pub(super) fn streams(&self) -> &'a [Stream] {
        &self.trial.point.streams
    }

    /// Whether the point does any I/O of that direction.
    pub(super) fn does(&self, direction: Direction) -> bool {
        self.streams().iter().any(|stream| stream_does(stream, direction))
    }

    /// The targets that the point touches, with their places; others may be listed beside them.
    pub(super) fn used(&self) -> impl Iterator<Item = (u32, &'a Target)> {
        let targets = (0u32..).zip(self.targets);
        targets.filter(|(place, _)| self.regions().any(|(_, region)| region.target == *place))
    }

    /// Every region, with the stream that it belongs to.
    pub(super) fn regions(&self) -> impl Iterator<Item = (&'a Stream, &'a Region)> {
        self.streams()
            .iter()
            .flat_map(|stream| stream.regions.iter().map(move |region| (stream, region)))
    }

    /// The workers of a stream, by its place.
    pub(super) fn workers(&self, stream: usize) -> impl Iterator<Item = &'a WorkerRecord> {
        let workers = self.trial.record.workers.iter();
        workers.filter(move |worker| worker.stream as usize == stream)
    }

    /// For each worker, the CPU to which it is tied, if it is.
    pub(super) fn tied_cpus(&self) -> impl Iterator<Item = Option<u32>> + use<'a> {
        let workers = |stream: &'a Stream| {
            (0..worker_count(stream)).map(move |worker| stream.workplace.cpu(worker))
        };
        self.streams().iter().flat_map(workers)
    }

    /// The I/Os of the workers in one direction, at each target.
    pub(super) fn flows(&self, direction: Direction) -> impl Iterator<Item = &'a Flow> {
        let cells = self.trial.record.workers.iter().flat_map(|worker| &worker.cells);
        cells.map(move |cell| &cell.flows[direction as usize])
    }

    /// The stream in words, if there are several: " of stream 'log'".
    pub(super) fn of_stream(&self, stream: &Stream) -> String {
        match self.streams().len() {
            1 => String::new(),
            _ => format!(" of stream '{}'", stream.name),
        }
    }

    /// A target's name, as the user gave it.
    pub(super) fn name(&self, target: u32) -> &'a str {
        self.targets.get(target as usize).map_or("a target that is not listed", |t| &t.name)
    }

    /// The bytes of a target that the chosen streams address, each counted once.
    pub(super) fn footprint(&self, target: u32, chosen: impl Fn(&Stream) -> bool) -> Bytes {
        Bytes(self.ranges(target, chosen).iter().map(|(from, to)| to - from).sum())
    }

    /// The ranges of a target that the chosen streams address, in order and without overlaps.
    pub(super) fn ranges(&self, target: u32, chosen: impl Fn(&Stream) -> bool) -> Vec<(u64, u64)> {
        let mut ranges: Vec<(u64, u64)> = self
            .regions()
            .filter(|(stream, region)| region.target == target && chosen(stream))
            .map(|(_, region)| (region.offset.0, region.offset.0.saturating_add(region.length.0)))
            .collect();
        ranges.sort_unstable();
        let mut merged: Vec<(u64, u64)> = Vec::new();
        for (from, to) in ranges {
            match merged.last_mut() {
                Some(last) if from <= last.1 => last.1 = last.1.max(to),
                _ => merged.push((from, to)),
            }
        }
        merged
    }

    /// Bytes that completed in the window at a target.
    pub(super) fn bytes(&self, target: u32, direction: Direction) -> u64 {
        let cells = self.trial.record.workers.iter().flat_map(|worker| &worker.cells);
        let here = cells.filter(|cell| cell.target == target);
        here.map(|cell| cell.flows[direction as usize].bytes.0).sum()
    }

    /// I/Os that completed in the window at a target.
    pub(super) fn ios(&self, target: u32, direction: Direction) -> u64 {
        let cells = self.trial.record.workers.iter().flat_map(|worker| &worker.cells);
        let here = cells.filter(|cell| cell.target == target);
        here.map(|cell| cell.flows[direction as usize].ios()).sum()
    }

    /// Whether a range is both read and trimmed.
    pub(super) fn reads_what_it_trims(&self) -> bool {
        let end = |region: &Region| region.offset.0.saturating_add(region.length.0);
        let overlap = |one: &Region, other: &Region| {
            one.target == other.target && one.offset.0 < end(other) && other.offset.0 < end(one)
        };
        let trimmed = || self.regions().filter(|(stream, _)| stream.trims());
        let mut read = self.regions().filter(|(stream, _)| stream.does(Direction::Read));
        read.any(|(_, region)| trimmed().any(|(_, other)| overlap(region, other)))
    }

    /// How much upkeep of a kind completed in the window.
    pub(super) fn upkeep(&self, what: Upkeep, of: impl Fn(&WorkerRecord) -> bool) -> u64 {
        self.trial.record.upkeep(what, |worker, _| of(worker)).ios()
    }

    /// The disks and other bottom layers of the targets that the point touches.
    pub(super) fn disks(&self) -> impl Iterator<Item = &'a Layer> {
        self.used().flat_map(|(_, target)| target.disks())
    }
}

/// Whether a stream goes through the page cache.
pub(super) fn is_buffered(stream: &Stream) -> bool {
    stream.access.cache == Cache::Buffered
}

/// Whether a stream does any I/O of that direction.
pub(super) fn stream_does(stream: &Stream, direction: Direction) -> bool {
    stream.does(direction)
}

/// A part of a time.
pub(super) fn share(part: Span, whole: Span) -> f64 {
    part.0 as f64 / whole.0 as f64
}

/// "1 read", "2 reads".
pub(super) fn counted(number: u64, noun: &str) -> String {
    match number {
        1 => format!("1 {noun}"),
        _ => format!("{} {noun}s", count(number)),
    }
}

/// A list of names: "sda, sdb".
pub(super) fn listed<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let mut unique: Vec<&str> = Vec::new();
    for name in names {
        if !unique.contains(&name) {
            unique.push(name);
        }
    }
    unique.join(", ")
}
