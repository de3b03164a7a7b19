//! Preconditioning: every region is written from its beginning to its end, so many times, in blocks
//! that follow each other. A device that was never full is faster than it will ever be again.
//!
//! It goes in stretches of some minutes, each of which begins where the one before ended: an
//! interruption loses one of them. Pure: stretches go out, what they wrote comes in.

use super::presets::regions;
use crate::measure::{Direction, Record};
use crate::spec::{BlockSizes, Pacing, Pattern, Point, Region, Sequence, Stream, Workers};
use crate::units::{Bytes, Span};

/// How large its blocks are, unless a region is smaller.
const BLOCK: u64 = 128 * Bytes::KIB;
/// How many of them are in flight.
const DEPTH: u32 = 32;
/// The first stretch, which tells how fast it goes.
const FIRST: Span = Span::from_secs(10);
/// The longest stretch.
const LONGEST: Span = Span::from_secs(600);
/// The shortest one.
const SHORTEST: Span = Span::from_secs(1);
/// What is taken for the bandwidth before any is known, ...
const USUAL: f64 = 500e6;
/// ... and for the least that it will be.
const LEAST: f64 = 100e6;

/// What is written beforehand, and how far it is.
#[derive(Clone, Debug)]
pub struct Precondition {
    base: Point,
    passes: u32,
    /// Every target once.
    parts: Vec<Part>,
}

/// The region of one target. One that is finished before the others goes on, so that all stretches
/// run on the same targets.
#[derive(Clone, Debug)]
struct Part {
    /// Whole blocks.
    region: Region,
    /// What was written of it in this pass.
    written: u64,
    /// How many passes are over.
    passes: u32,
    /// Bytes per second in the last stretch.
    bandwidth: Option<f64>,
}

impl Part {
    fn block(&self) -> u64 {
        BLOCK.min(self.region.length.0)
    }

    /// What is left of this pass.
    fn left(&self) -> Region {
        let from = self.written / self.block() * self.block();
        Region {
            offset: Bytes(self.region.offset.0 + from),
            length: Bytes(self.region.length.0 - from),
            ..self.region
        }
    }

    /// Bytes that are still to be written.
    fn bytes(&self, passes: u32) -> u64 {
        let passes = u64::from(passes.saturating_sub(self.passes));
        self.region.length.0.saturating_mul(passes).saturating_sub(self.written)
    }

    fn take(&mut self, bytes: u64, seconds: f64) {
        self.written += bytes;
        if self.written >= self.region.length.0 {
            (self.written, self.passes) = (0, self.passes + 1);
        }
        if seconds > 0.0 && bytes > 0 {
            self.bandwidth = Some(bytes as f64 / seconds);
        }
    }
}

impl Precondition {
    /// So many passes over all that the point addresses.
    pub fn new(base: &Point, passes: u32) -> Self {
        let parts = regions(base).into_iter().map(|region| {
            let block = BLOCK.min(region.length.0);
            let whole = Region { length: Bytes(region.length.0 / block * block), ..region };
            Part { region: whole, written: 0, passes: 0, bandwidth: None }
        });
        Self { base: base.clone(), passes, parts: parts.collect() }
    }

    /// The next stretch; none when all was written.
    pub fn next(&self) -> Option<Point> {
        let lowest = self.parts.iter().map(|part| part.passes).min()?;
        if self.passes <= lowest {
            return None;
        }
        let block = self.parts.iter().map(Part::block).min()?;
        let stream = Stream {
            name: "preconditioning".to_owned(),
            pattern: Pattern::Sequential(Sequence::default()),
            align: None,
            zones: false,
            course: None,
            block_sizes: BlockSizes::one(Bytes(block)),
            read_share: 0.0,
            pacing: Pacing::Closed { queue_depth: DEPTH * self.parts.len() as u32 },
            workers: Workers::PerTarget(1),
            regions: self.parts.iter().map(Part::left).collect(),
            ..self.base.streams.first()?.clone()
        };
        let window = self.stretch();
        let is_long = window >= Span::from_secs(60);
        let interval = if is_long { Span::from_secs(1) } else { Span::from_ms(100) };
        Some(Point {
            name: format!("preconditioning, pass {} of {}", lowest + 1, self.passes),
            streams: Vec::from([stream]),
            warm_up: Span(0),
            window: Span(window.0.next_multiple_of(interval.0)),
            interval,
            ..self.base.clone()
        })
    }

    /// Takes what a stretch wrote.
    pub fn take(&mut self, record: &Record) {
        if record.total(Some(Direction::Write)).bytes == Bytes(0) {
            // It would be tried for ever.
            self.passes = 0;
            return;
        }
        for part in &mut self.parts {
            let target = part.region.target;
            let written = record.sum(Some(Direction::Write), |_, cell| cell.target == target);
            part.take(written.bytes.0, record.window.as_secs_f64());
        }
    }

    /// Bytes that are still to be written.
    pub fn bytes(&self) -> u64 {
        self.parts.iter().map(|part| part.bytes(self.passes)).sum()
    }

    /// How long that probably takes, and how long at most.
    pub fn time(&self) -> (Span, Span) {
        let known: f64 = self.parts.iter().filter_map(|part| part.bandwidth).sum();
        let bytes = self.bytes() as f64;
        let span = |bandwidth: f64| Span((bytes / bandwidth * 1e9) as u64);
        match known > 0.0 {
            true => (span(known), span(known / 2.0)),
            false => (span(USUAL), span(LEAST)),
        }
    }

    /// How many stretches that probably are.
    pub fn stretches(&self) -> u32 {
        let stretches = self.time().0.0.div_ceil(LONGEST.0) as u32;
        let is_unknown = self.parts.iter().all(|part| part.bandwidth.is_none());
        stretches + u32::from(is_unknown && stretches > 0)
    }

    /// Until the first region is at its end, as far as the last stretch tells.
    fn stretch(&self) -> Span {
        let needs = self.parts.iter().filter_map(|part| {
            let left = part.left().length.0 as f64;
            Some(Span((left / part.bandwidth? * 1e9) as u64))
        });
        needs.min().unwrap_or(FIRST).clamp(SHORTEST, LONGEST)
    }
}
