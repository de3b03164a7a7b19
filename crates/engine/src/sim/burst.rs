//! A device with a burst credit, like many disks in clouds: fast until the credit is used up.
//!
//! A token bucket: each I/O takes a token, rate tokens arrive each second, and the bucket holds
//! (burst - rate) credit of them; it is full when the device is opened. I/Os start at most at the
//! rate of burst, and each then takes the service time, with any number in flight.
//!
//! ```text
//! deep enough, from a full bucket:  burst I/Os per second for credit, then rate
//! depth n, the service time S:      at most n / S
//! idle for t:                       the credit is longer by t rate / (burst - rate), up to credit
//! ```

use fathom_core::{Instant, Span};

use super::Device;
use super::agenda::Agenda;
use super::parameters::{Field, Parameter};
use crate::backend::Io;

/// The settings of a device with a burst credit.
#[derive(Clone, Debug, PartialEq)]
pub struct BurstOptions {
    /// The sustained I/Os per second.
    pub rate: u32,
    /// I/Os per second while there is credit.
    pub burst: u32,
    /// How long a full credit lasts at the rate of burst.
    pub credit: Span,
    /// The time of an I/O after its start.
    pub service_time: Span,
}

impl Default for BurstOptions {
    fn default() -> Self {
        Self {
            rate: 500,
            burst: 3_000,
            credit: Span::from_secs(1_800),
            service_time: Span::from_us(500),
        }
    }
}

pub(super) const PARAMETERS: [Parameter<BurstOptions>; 4] = [
    Parameter {
        name: "rate",
        meaning: "sustained I/Os per second",
        field: |o| Field::Count(&mut o.rate, 1, 10_000_000),
    },
    Parameter {
        name: "burst",
        meaning: "I/Os per second while there is credit; more than rate",
        field: |o| Field::Count(&mut o.burst, 1, 10_000_000),
    },
    Parameter {
        name: "credit",
        meaning: "the time that a full credit lasts at the rate of burst",
        field: |o| Field::Time(&mut o.credit, Span(0), Span::from_secs(864_000)),
    },
    Parameter {
        name: "service-time",
        meaning: "the time of an I/O after its start",
        field: |o| Field::Time(&mut o.service_time, Span(1), Span::from_secs(10)),
    },
];

impl BurstOptions {
    /// Whether they go together.
    pub(super) fn check(&self) -> Result<(), String> {
        match self.rate < self.burst {
            true => Ok(()),
            false => Err(format!(
                "burst={} is not more than rate={}: there would be no burst; make it more",
                self.burst, self.rate
            )),
        }
    }
}

/// The bucket at work. All times are nanoseconds.
#[derive(Debug)]
pub(super) struct Burst {
    service_time: Span,
    /// Tokens that arrive in a nanosecond.
    inflow: f64,
    /// From one start to the next at the rate of burst.
    gap: f64,
    full: f64,
    tokens: f64,
    /// The time of the last start, at which the tokens were counted.
    last: f64,
}

impl Burst {
    pub fn new(options: &BurstOptions) -> Self {
        let [rate, burst] = [options.rate, options.burst].map(f64::from);
        let full = ((burst - rate) * options.credit.as_secs_f64()).max(1.0);
        let gap = 1e9 / burst;
        let service_time = options.service_time;
        // The first one starts at once.
        Self { service_time, inflow: rate / 1e9, gap, full, tokens: full, last: -gap }
    }
}

impl Device for Burst {
    fn arrives(&mut self, io: &Io, now: Instant, agenda: &mut Agenda) {
        let mut start = (now.0 as f64).max(self.last + self.gap);
        let tokens = (self.tokens + (start - self.last) * self.inflow).min(self.full);
        let missing = (1.0 - tokens).max(0.0);
        start += missing / self.inflow;
        self.tokens = tokens + missing - 1.0;
        self.last = start;
        agenda.completes(io.slot, Instant(start.round() as u64) + self.service_time);
    }
}
