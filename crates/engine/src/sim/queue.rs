//! Servers behind one queue: the device whose every figure has a closed form.
//!
//! An I/O takes the server that is free first, in the order of arrival, and holds it for a service
//! time S that depends on nothing else. With c servers and a mean of E\[S\]:
//!
//! ```text
//! closed loop, depth n:  X = min(n, c) / E[S]            (S constant, or c = 1, or n <= c)
//!                        N = X R                         (Little; R includes waiting here)
//! open loop, c = 1, Poisson arrivals at rate l, r = l E[S]:
//!   S exponential (M/M/1):  E[R] = E[S] / (1 - r)
//!   S constant    (M/D/1):  E[R] = E[S] (1 + r / (2 (1 - r)))     (Pollaczek and Khinchine)
//! offered load above c / E[S]:  completions stay at c / E[S]; the rest is never started
//! ```

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use fathom_core::{Instant, Span};

use super::Device;
use super::agenda::Agenda;
use super::chance::Chance;
use super::parameters::{Distribution, Field, Parameter};
use crate::backend::Io;

/// The settings of a queue.
#[derive(Clone, Debug, PartialEq)]
pub struct QueueOptions {
    /// I/Os served at the same time.
    pub servers: u32,
    /// Mean time a server spends on an I/O of any length.
    pub service_time: Span,
    /// How service times spread around their mean.
    pub distribution: Distribution,
}

impl Default for QueueOptions {
    fn default() -> Self {
        Self { servers: 8, service_time: Span::from_us(100), distribution: Distribution::Constant }
    }
}

pub(super) const PARAMETERS: [Parameter<QueueOptions>; 3] = [
    Parameter {
        name: "servers",
        meaning: "I/Os served at the same time",
        field: |o| Field::Count(&mut o.servers, 1, 65_536),
    },
    Parameter {
        name: "service-time",
        meaning: "mean time a server spends on an I/O",
        field: |o| Field::Time(&mut o.service_time, Span(1), Span::from_secs(3_600)),
    },
    Parameter {
        name: "distribution",
        meaning: "the distribution of service times around their mean",
        field: |o| Field::Word(&mut o.distribution),
    },
];

/// The servers at work.
#[derive(Debug)]
pub(super) struct Queue {
    /// When each server is free again. An arrival takes the one that is free first, which equals
    /// waiting in one queue if a service time does not depend on the server.
    free: BinaryHeap<Reverse<Instant>>,
    options: QueueOptions,
    chance: Chance,
}

impl Queue {
    pub fn new(options: &QueueOptions, seed: u64) -> Self {
        let free = (0..options.servers).map(|_| Reverse(Instant(0))).collect();
        Self { free, options: options.clone(), chance: Chance::new(seed, 2) }
    }
}

impl Device for Queue {
    fn arrives(&mut self, io: &Io, now: Instant, agenda: &mut Agenda) {
        let mean = self.options.service_time;
        let service_time = match self.options.distribution {
            Distribution::Constant => mean,
            Distribution::Exponential => self.chance.exponential(mean),
        };
        let mut first = self.free.peek_mut().expect("at least one server");
        let done = first.0.max(now) + service_time;
        first.0 = done;
        agenda.completes(io.slot, done);
    }
}
