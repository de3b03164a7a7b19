//! Parts for the project's benches: the parts of the loop one by one, and the loop with a part left
//! out. Hidden, because it has no other use and no stable interface.

use std::io;
use std::sync::atomic::AtomicBool;

use fathom_core::measure::{Record, Waits};
use fathom_core::plan;
use fathom_core::spec::{Arrivals, BackendKind, Point};
use fathom_core::{Bytes, Instant, Rate, Span};

use crate::backend::{Backend, Completion, Io, RealBackend, Shape};
use crate::memory::Deal;
use crate::open_target::OpenTarget;
use crate::pacer::Pace;
use crate::pattern::{Pointers, Request, source};
use crate::payload::{Frame, RandomContent, Rotation};
use crate::run_error::RunError;
use crate::run_point::{Observer, run_on};
use crate::schedule::{OpenLoop, PoissonArrivals, Schedule, Steady, UniformArrivals};
use crate::uring::Uring;

/// Bytes of a block whose payload is refreshed.
const BLOCK: usize = 4096;
/// Requests that are drawn at once.
const BATCH: usize = 64;

/// Draws at least `count` requests of the point's only worker, and gives how many, and their
/// offsets' sum so that none can be left out.
#[must_use]
pub fn draw_requests(point: &Point, count: u64) -> (u64, u64) {
    let plans = plan::divide(point);
    let pointers = Pointers::new(point);
    let mut source = source(&point.streams[0], &plans[0], &pointers);
    let mut batch = [Request::default(); BATCH];
    let (mut drawn, mut sum) = (0, 0_u64);
    while drawn < count {
        source.draw(&mut batch);
        drawn += BATCH as u64;
        sum = batch.iter().fold(sum, |sum, request| sum.wrapping_add(request.offset));
    }
    (drawn, sum)
}

/// Gives `count` blocks of 4 KiB a payload that no block before them had, rotating through this
/// many buffers. Returns the buffers.
#[must_use]
pub fn refresh_payloads(buffers: usize, count: u64) -> Vec<u8> {
    let mut memory = vec![1; buffers * BLOCK];
    let frame = Frame { length: BLOCK, stride: BLOCK };
    let random = RandomContent { compressible: 0.0, dedup: 0.0, commons: 1, rotation: Bytes(0) };
    let mut slots = [0];
    let mut rotation = Rotation::new(&random, frame, (1, 1), Deal::ALL, &mut memory, &mut slots);
    for _ in 0..count {
        slots[0] = rotation.turn(slots[0]);
        rotation.mark(slots[0], &mut memory[slots[0]..slots[0] + BLOCK]);
    }
    memory
}

/// Takes `count` arrivals from a schedule, and returns when the last one was due.
#[must_use]
pub fn take_arrivals(arrivals: Arrivals, rate: Rate, count: u64) -> Instant {
    fn last(mut schedule: impl Schedule, count: u64) -> Instant {
        // The end of time: every arrival is due.
        (0..count).filter_map(|_| schedule.take(Instant(u64::MAX))).last().unwrap_or(Instant(0))
    }
    match arrivals {
        Arrivals::Uniform => {
            last(OpenLoop::new(Instant(0), UniformArrivals::new(Steady::new(rate), 0.0)), count)
        }
        Arrivals::Poisson => {
            last(OpenLoop::new(Instant(0), PoissonArrivals::new(Steady::new(rate), 1)), count)
        }
    }
}

/// Runs a point by io_uring as [`crate::run_point`] does, but writes the initial content of the
/// buffers: the difference is the cost of the unique payload. Only for targets that store nothing.
///
/// # Errors
///
/// As [`crate::run_point`].
///
/// # Panics
///
/// As [`crate::run_point`].
pub fn run_with_constant_payload(
    point: &Point,
    targets: &[OpenTarget],
    stop: &AtomicBool,
    observer: &mut dyn Observer,
) -> Result<Record, RunError> {
    run_on::<ConstantPayload>(point, targets, stop, observer)
}

/// io_uring whose buffers the loop cannot refresh.
struct ConstantPayload(Uring);

impl RealBackend for ConstantPayload {
    const KIND: BackendKind = BackendKind::Uring;

    fn open(targets: &[OpenTarget], shape: &Shape) -> io::Result<Self> {
        Uring::open(targets, shape).map(Self)
    }

    fn write_buffer(&mut self, slot: u32) -> &mut [u8] {
        self.0.write_buffer(slot)
    }

    fn read_buffer(&mut self, slot: u32) -> &mut [u8] {
        self.0.read_buffer(slot)
    }

    fn pace(&mut self, pace: Pace) {
        self.0.pace(pace);
    }

    fn waits(&self) -> Waits {
        self.0.waits()
    }
}

impl Backend for ConstantPayload {
    const PREPARES_EARLY: Span = Uring::PREPARES_EARLY;

    #[inline]
    fn now(&mut self) -> Instant {
        self.0.now()
    }

    #[inline]
    fn refresh(&mut self, _: u32, _: u32) {}

    #[inline]
    fn push(&mut self, io: Io) {
        self.0.push(io);
    }

    #[inline]
    fn wait(&mut self, deadline: Instant) {
        self.0.wait(deadline);
    }

    #[inline]
    fn reap(&mut self, take: impl FnMut(Completion)) {
        self.0.reap(take);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn every_refreshed_block_is_unlike_the_others() {
        let memory = refresh_payloads(5, 12);
        let blocks: HashSet<&[u8]> = memory.chunks(BLOCK).collect();
        assert_eq!(blocks.len(), 5);
    }

    #[test]
    fn arrivals_come_at_the_rate() {
        let uniform = take_arrivals(Arrivals::Uniform, Rate(1e6), 1_000_001);
        assert_eq!(uniform, Instant(1_000_000_000));
        let poisson = take_arrivals(Arrivals::Poisson, Rate(1e6), 1_000_000);
        // Five standard deviations of the sum of a million gaps.
        assert!(poisson.0.abs_diff(1_000_000_000) < 5_000_000, "{poisson:?}");
    }
}
