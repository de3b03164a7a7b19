//! Preconditioning: every region is written from its beginning to its end, this many times, in
//! consecutive blocks. A device that was never full is faster than it will ever be again.
//!
//! It goes in stretches of at most ten minutes, each of which begins where the one before ended: an
//! interruption loses one of them. A stretch ends with its last I/O, so exactly the requested
//! amount is written. Pure: it returns stretches and takes their results.

use crate::measure::{Direction, Record};
use crate::spec::{
    BlockSizes, Kind, Limit, Pacing, Pattern, Point, Region, Stream, Turns, Workers,
};
use crate::units::{Bytes, Span};

/// The size of its blocks, unless a region is smaller.
const BLOCK: u64 = 128 * Bytes::KIB;
/// The number in flight on each target.
const DEPTH: u32 = 32;
/// The longest stretch.
const LONGEST: Span = Span::from_secs(600);
/// The bandwidth that is assumed before it is known.
const USUAL: f64 = 500e6;
/// The smallest bandwidth that is assumed before it is known.
const LEAST: f64 = 100e6;

/// The regions to write, and the progress.
#[derive(Clone, Debug)]
pub struct Precondition {
    base: Point,
    passes: u32,
    parts: Vec<RegionProgress>,
}

/// A region. One that is finished before the others writes one block in each stretch from then on, so
/// that all stretches run on the same targets.
#[derive(Clone, Debug)]
struct RegionProgress {
    /// Whole blocks.
    region: Region,
    /// Bytes of it that were written in this pass.
    written: u64,
    /// The number of completed passes.
    passes: u32,
    /// Bytes per second in the last stretch.
    bandwidth: Option<f64>,
}

impl RegionProgress {
    fn block(&self) -> u64 {
        BLOCK.min(self.region.length.0)
    }

    /// The rest of this pass.
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
        if self.region.length.0 <= self.written {
            (self.written, self.passes) = (0, self.passes + 1);
        }
        if seconds > 0.0 && bytes > 0 {
            self.bandwidth = Some(bytes as f64 / seconds);
        }
    }

    /// The number of stretches that it needs at this bandwidth.
    fn stretches(&self, passes: u32, bandwidth: f64) -> u32 {
        let pass = Span((self.region.length.0 as f64 / bandwidth * 1e9) as u64);
        let each = pass.0.div_ceil(LONGEST.0).max(1) as u32;
        passes.saturating_sub(self.passes).saturating_mul(each)
    }
}

impl Precondition {
    /// This many passes over everything that the point addresses.
    pub fn new(base: &Point, passes: u32) -> Self {
        let parts = addressed(base).into_iter().map(|region| {
            let block = BLOCK.min(region.length.0);
            let whole = Region { length: Bytes(region.length.0 / block * block), ..region };
            RegionProgress { region: whole, written: 0, passes: 0, bandwidth: None }
        });
        Self { base: base.clone(), passes, parts: parts.collect() }
    }

    /// The next stretch; none when everything is written.
    pub fn next(&self) -> Option<Point> {
        let lowest = self.parts.iter().map(|part| part.passes).min()?;
        if self.passes <= lowest {
            return None;
        }
        let streams: Option<Vec<Stream>> =
            self.parts.iter().map(|part| self.stream(part)).collect();
        Some(Point {
            name: format!("preconditioning, pass {} of {}", lowest + 1, self.passes),
            streams: streams?,
            warm_up: Span(0),
            cool_down: Span(0),
            window: LONGEST,
            interval: Span::from_secs(1),
            looks: Vec::new(),
            ..self.base.clone()
        })
    }

    /// The stream that writes a part, with the access that its target will have later.
    fn stream(&self, part: &RegionProgress) -> Option<Stream> {
        let addresses =
            |stream: &&Stream| stream.regions.iter().any(|one| one.target == part.region.target);
        let (left, is_done) = (part.left(), self.passes <= part.passes);
        let limit = if is_done { Limit::Ios(1) } else { Limit::Bytes(left.length) };
        Some(Stream {
            name: "preconditioning".to_owned(),
            regions: Vec::from([left]),
            turns: Turns::InTurn,
            ios: Kind {
                pattern: Pattern::SEQUENTIAL,
                block_sizes: BlockSizes::one(Bytes(part.block())),
                read_share: 0.0,
                ..Kind::default()
            }
            .into(),
            zones: false,
            trim_share: 0.0,
            flush: None,
            pacing: Pacing { limit: Some(limit), ..Pacing::closed(DEPTH) },
            workers: Workers::Total(1),
            ..self.base.streams.iter().find(addresses)?.clone()
        })
    }

    /// Takes the result of a stretch.
    pub fn take(&mut self, record: &Record) {
        if record.total(Some(Direction::Write)).bytes == Bytes(0) {
            // It would be tried forever.
            self.passes = 0;
            return;
        }
        // Each stream has one worker, on each host if several apply the load. A host that wrote more
        // than another one writes that part again.
        let on_each = record.workers.chunks(self.parts.len());
        for (stream, part) in (0u32..).zip(&mut self.parts) {
            if part.passes < self.passes {
                let written = on_each.clone().map(|own| {
                    let workers = own.iter().filter(|worker| worker.stream == stream);
                    let cells = workers.flat_map(|worker| &worker.cells);
                    cells.map(|cell| cell.flows[Direction::Write as usize].bytes.0).sum::<u64>()
                });
                part.take(written.min().unwrap_or(0), record.window.as_secs_f64());
            }
        }
    }

    /// Bytes that are still to be written.
    pub fn bytes(&self) -> u64 {
        self.parts.iter().map(|part| part.bytes(self.passes)).sum()
    }

    /// The probable and the longest time of that.
    pub fn time(&self) -> (Span, Span) {
        let known: f64 = self.parts.iter().filter_map(|part| part.bandwidth).sum();
        let bytes = self.bytes() as f64;
        let span = |bandwidth: f64| Span((bytes / bandwidth * 1e9) as u64);
        match known > 0.0 {
            true => (span(known), span(known / 2.0)),
            false => (span(USUAL), span(LEAST)),
        }
    }

    /// The probable number of stretches.
    pub fn stretches(&self) -> u32 {
        let usual = USUAL / self.parts.len().max(1) as f64;
        let needed =
            |part: &RegionProgress| part.stretches(self.passes, part.bandwidth.unwrap_or(usual));
        self.parts.iter().map(needed).max().unwrap_or(0)
    }
}

/// Everything that a point addresses, without regions that lie within another of its regions.
fn addressed(base: &Point) -> Vec<Region> {
    let within = |one: &Region, other: &Region| {
        let end = |region: &Region| region.offset.0 + region.length.0;
        one.target == other.target && other.offset <= one.offset && end(one) <= end(other)
    };
    let mut all: Vec<Region> = Vec::new();
    for region in base.streams.iter().flat_map(|stream| &stream.regions) {
        if !all.iter().any(|known| within(region, known)) {
            all.retain(|known| !within(known, region));
            all.push(*region);
        }
    }
    all
}
