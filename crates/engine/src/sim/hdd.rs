//! A hard disk: one arm, one spindle, a window of requests to choose from, and a buffer.
//!
//! The disk is y = 0 .. tracks long, in revolutions: a track is one revolution, and its whole number
//! is the cylinder. The outer tracks hold more, so bandwidth falls linearly over the cylinders from
//! outer to inner. With f the share of the disk before an offset, o and i the two bandwidths, and T
//! the time of a revolution:
//!
//! ```text
//! tracks      = size / (T (o + i) / 2)
//! y(f)        = tracks f (o + i) / (o + sqrt(o^2 - f (o^2 - i^2)))
//! bandwidth   = o - (o - i) y / tracks
//! seek        = seek-min + (seek-max - seek-min) sqrt(|cylinders moved| / tracks); 0 on the cylinder
//! rotation    = T frac(y - angle of the spindle after the seek)
//! transfer    = T (y at the end - y at the start)
//! alone       = seek + rotation + transfer + overhead
//! random, depth 1, mean = seek-min + (seek-max - seek-min) 8/15 + T/2 + transfer + overhead
//! ```
//!
//! Of the oldest ncq requests the disk takes the one that it reaches first, by seek and rotation;
//! one that it has passed over for longer than patience goes before. The rest wait in the order of
//! arrival.
//!
//! A request that begins where the last one ended, in the same direction, belongs to a stream and
//! needs neither seek nor rotation: the disk reads ahead of it, and takes writes ahead of the
//! medium, by up to the buffer. With B the buffer's time at the medium, and m when the medium is
//! done with the stream so far:
//!
//! ```text
//! read    m := max(m, now - B) + transfer     completes at max(now, m) + overhead
//! write   m := max(m, now) + transfer         completes at max(now, m - B) + overhead
//! ```

use std::collections::VecDeque;

use fathom_core::measure::Direction;
use fathom_core::{Bytes, Instant, Span};

use super::Device;
use super::agenda::Agenda;
use super::chance::Chance;
use super::parameters::{Field, Parameter};
use crate::backend::Io;

/// The settings of a hard disk.
#[derive(Clone, Debug, PartialEq)]
pub struct HddOptions {
    /// Revolutions per minute.
    pub rpm: u32,
    /// A seek to the next cylinder.
    pub seek_min: Span,
    /// A seek over the whole disk.
    pub seek_max: Span,
    /// Bytes per second on the outermost track.
    pub outer_bandwidth: Bytes,
    /// Bytes per second on the innermost track.
    pub inner_bandwidth: Bytes,
    /// Requests that the disk chooses among.
    pub ncq: u32,
    /// How long the disk passes a request over for nearer ones.
    pub patience: Span,
    /// How far a stream may be ahead of the host or of the medium.
    pub buffer: Bytes,
    /// The time that the controller adds to each I/O.
    pub overhead: Span,
}

impl Default for HddOptions {
    fn default() -> Self {
        Self {
            rpm: 7_200,
            seek_min: Span::from_us(800),
            seek_max: Span::from_us(15_000),
            outer_bandwidth: Bytes(180_000_000),
            inner_bandwidth: Bytes(90_000_000),
            ncq: 32,
            patience: Span::from_secs(1),
            buffer: Bytes(8 * Bytes::MIB),
            overhead: Span::from_us(50),
        }
    }
}

/// The slowest and the fastest medium.
const BANDWIDTH: (Bytes, Bytes) = (Bytes(1_000_000), Bytes(10_000_000_000));

pub(super) const PARAMETERS: [Parameter<HddOptions>; 9] = [
    Parameter {
        name: "rpm",
        meaning: "revolutions per minute",
        field: |o| Field::Count(&mut o.rpm, 60, 100_000),
    },
    Parameter {
        name: "seek-min",
        meaning: "seek to the next cylinder",
        field: |o| Field::Time(&mut o.seek_min, Span(0), Span::from_secs(1)),
    },
    Parameter {
        name: "seek-max",
        meaning: "seek over the whole disk; at least seek-min",
        field: |o| Field::Time(&mut o.seek_max, Span(0), Span::from_secs(1)),
    },
    Parameter {
        name: "outer-bandwidth",
        meaning: "bandwidth at the disk's start",
        field: |o| Field::Bandwidth(&mut o.outer_bandwidth, BANDWIDTH.0, BANDWIDTH.1),
    },
    Parameter {
        name: "inner-bandwidth",
        meaning: "bandwidth at the disk's end; at most outer-bandwidth",
        field: |o| Field::Bandwidth(&mut o.inner_bandwidth, BANDWIDTH.0, BANDWIDTH.1),
    },
    Parameter {
        name: "ncq",
        meaning: "length of the queue from which the disk takes the nearest request; 1: no choice",
        field: |o| Field::Count(&mut o.ncq, 1, 256),
    },
    Parameter {
        name: "patience",
        meaning: "the longest time that the disk passes a request over for nearer ones",
        field: |o| Field::Time(&mut o.patience, Span(0), Span::from_secs(3_600)),
    },
    Parameter {
        name: "buffer",
        meaning: "the bytes that a sequential stream may be ahead of the host or of the medium",
        field: |o| Field::Size(&mut o.buffer, Bytes(0), Bytes(Bytes::GIB)),
    },
    Parameter {
        name: "overhead",
        meaning: "the controller's time for each I/O",
        field: |o| Field::Time(&mut o.overhead, Span(0), Span::from_secs(10)),
    },
];

impl HddOptions {
    /// Whether they go together.
    pub(super) fn check(&self) -> Result<(), String> {
        if self.seek_max < self.seek_min {
            return Err(format!(
                "seek-max is {} and seek-min is {}: make seek-max the larger one",
                self.seek_max, self.seek_min
            ));
        }
        if self.outer_bandwidth < self.inner_bandwidth {
            return Err(format!(
                "outer-bandwidth is {}/s and inner-bandwidth is {}/s: make the outer one the \
                 larger one",
                self.outer_bandwidth, self.inner_bandwidth
            ));
        }
        Ok(())
    }
}

/// The places on the disk.
#[derive(Clone, Copy, Debug)]
struct Geometry {
    size: f64,
    tracks: f64,
    outer: f64,
    inner: f64,
    /// Nanoseconds of a revolution.
    revolution: f64,
    seek_min: f64,
    seek_span: f64,
    /// The spindle's angle at the opening, in revolutions.
    phase: f64,
}

impl Geometry {
    fn new(options: &HddOptions, size: Bytes, seed: u64) -> Self {
        let revolution = 60e9 / f64::from(options.rpm);
        let (outer, inner) = (options.outer_bandwidth.0 as f64, options.inner_bandwidth.0 as f64);
        let mean_track = (outer + inner) / 2.0 * revolution / 1e9;
        Self {
            size: size.0 as f64,
            tracks: size.0 as f64 / mean_track,
            outer,
            inner,
            revolution,
            seek_min: options.seek_min.0 as f64,
            seek_span: (options.seek_max - options.seek_min).0 as f64,
            phase: Chance::new(seed, 4).unit(),
        }
    }

    /// The place of an offset, in revolutions from the disk's start.
    fn place(&self, offset: u64) -> f64 {
        let f = (offset as f64 / self.size).min(1.0);
        let (o, i) = (self.outer, self.inner);
        self.tracks * f * (o + i) / (o + (o * o - f * (o * o - i * i)).max(0.0).sqrt())
    }

    /// Bytes per nanosecond there.
    fn bandwidth(&self, place: f64) -> f64 {
        (self.outer - (self.outer - self.inner) * place / self.tracks) / 1e9
    }

    fn seek(&self, from: f64, to: f64) -> f64 {
        let cylinders = (from.floor() - to.floor()).abs();
        match cylinders {
            0.0 => 0.0,
            _ => self.seek_min + self.seek_span * (cylinders / self.tracks).min(1.0).sqrt(),
        }
    }

    /// From `now` until the sector at `place` comes by.
    fn rotation(&self, place: f64, now: f64) -> f64 {
        (place - now / self.revolution - self.phase).rem_euclid(1.0) * self.revolution
    }

    /// Seek and rotation together.
    fn approach(&self, from: f64, to: f64, now: Instant) -> f64 {
        let seek = self.seek(from, to);
        seek + self.rotation(to, now.0 as f64 + seek)
    }
}

/// A request in the disk's window.
#[derive(Clone, Copy, Debug)]
struct WindowRequest {
    slot: u32,
    direction: Direction,
    offset: u64,
    length: u32,
    /// Where it begins, in revolutions.
    place: f64,
    /// When it entered the window.
    entered: Instant,
}

/// The disk's last action.
#[derive(Clone, Copy, Debug)]
struct Last {
    direction: Direction,
    /// The offset after it.
    end: u64,
}

/// The disk at work.
#[derive(Debug)]
pub(super) struct Hdd {
    options: HddOptions,
    geometry: Geometry,
    /// The requests that the disk chooses among, by age.
    window: Vec<WindowRequest>,
    /// The requests without a place in the window yet, by age.
    waiting: VecDeque<WindowRequest>,
    busy: bool,
    /// Where the head is, in revolutions.
    head: f64,
    /// When the medium is done with all accepted requests.
    medium: Instant,
    last: Option<Last>,
}

impl Hdd {
    pub fn new(options: &HddOptions, size: Bytes, slots: u32, seed: u64) -> Self {
        Self {
            geometry: Geometry::new(options, size, seed),
            window: Vec::with_capacity(options.ncq as usize),
            waiting: VecDeque::with_capacity(slots as usize),
            busy: false,
            head: 0.0,
            medium: Instant(0),
            last: None,
            options: options.clone(),
        }
    }

    fn continues(&self, request: &WindowRequest) -> bool {
        self.last
            .is_some_and(|last| last.end == request.offset && last.direction == request.direction)
    }

    /// The place in the window of the next request: the oldest if it has waited too long, otherwise
    /// the one that continues the stream, otherwise the one that is reached first.
    fn choose(&self, now: Instant) -> Option<usize> {
        let oldest = self.window.first()?;
        if self.options.patience < now.since(oldest.entered) {
            return Some(0);
        }
        let from = now.max(self.medium);
        let cost = |request: &WindowRequest| match self.continues(request) {
            true => 0.0,
            false => self.geometry.approach(self.head, request.place, from),
        };
        let costs = self.window.iter().map(cost).enumerate();
        costs.min_by(|a, b| a.1.total_cmp(&b.1)).map(|(index, _)| index)
    }

    /// Serves the next request, if one waits.
    fn serve(&mut self, now: Instant, agenda: &mut Agenda) {
        let Some(index) = self.choose(now) else { return };
        let request = self.window.remove(index);
        let next = self.waiting.pop_front();
        self.window.extend(next.map(|next| WindowRequest { entered: now, ..next }));
        let end = request.offset + u64::from(request.length);
        let end_place = self.geometry.place(end);
        let transfer =
            Span(((end_place - request.place) * self.geometry.revolution).round() as u64);
        let done = match self.continues(&request) {
            true => self.stream(&request, transfer, now),
            false => {
                let from = now.max(self.medium);
                let approach = self.geometry.approach(self.head, request.place, from);
                self.medium = from + Span(approach.round() as u64) + transfer;
                self.medium
            }
        };
        self.head = end_place;
        self.last = Some(Last { direction: request.direction, end });
        self.busy = true;
        agenda.completes(request.slot, done + self.options.overhead);
        agenda.resumes(0, done);
    }

    /// Continues a stream, and returns when the request is done.
    fn stream(&mut self, request: &WindowRequest, transfer: Span, now: Instant) -> Instant {
        let bandwidth = self.geometry.bandwidth(request.place);
        let ahead = (self.options.buffer.0 as f64 / bandwidth) as u64;
        match request.direction {
            Direction::Read => {
                self.medium = self.medium.max(Instant(now.0.saturating_sub(ahead))) + transfer;
                self.medium.max(now)
            }
            Direction::Write => {
                self.medium = self.medium.max(now) + transfer;
                Instant(self.medium.0.saturating_sub(ahead)).max(now)
            }
        }
    }
}

impl Device for Hdd {
    fn arrives(&mut self, io: &Io, now: Instant, agenda: &mut Agenda) {
        let request = WindowRequest {
            slot: io.slot,
            direction: io.direction,
            offset: io.offset,
            length: io.length,
            place: self.geometry.place(io.offset),
            entered: now,
        };
        if self.window.len() < self.options.ncq as usize {
            self.window.push(request);
        } else {
            self.waiting.push_back(request);
        }
        if !self.busy {
            self.serve(now, agenda);
        }
    }

    fn own_events(&self) -> usize {
        // The arm is free again.
        1
    }

    fn resumes(&mut self, _token: u32, now: Instant, agenda: &mut Agenda) {
        self.busy = false;
        self.serve(now, agenda);
    }
}
