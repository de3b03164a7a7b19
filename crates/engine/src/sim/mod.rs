//! Simulated devices in virtual time.

use std::str::FromStr;

use fathom_core::Bytes;

/// A simulated device and its parameters.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// How large the device is.
    pub size: Bytes,
}

impl FromStr for Options {
    type Err = String;

    /// Reads what follows `sim:`, such as `ssd` or `queue,servers=8,service-time=100us`.
    fn from_str(_text: &str) -> Result<Self, String> {
        Ok(Self { size: Bytes(100 * Bytes::GIB) })
    }
}
/// Placeholder until the simulators land.
pub struct Sim(Vec<(u64, u32)>, u64);
impl Sim {
    /// Opens it.
    pub fn open(_: &Options, n: u32) -> Self {
        Self(Vec::with_capacity(n as usize), 0)
    }
}
use crate::backend::*;
use fathom_core::Instant;
impl Backend for Sim {
    fn now(&mut self) -> Instant {
        Instant(self.1)
    }
    fn buffer(&mut self, _: u32) -> &mut [u8] {
        &mut []
    }
    fn push(&mut self, io: Io) {
        self.0.push((self.1 + 100_000, io.slot));
    }
    fn wait(&mut self, d: Instant, c: &mut Vec<Completion>) {
        self.0.sort();
        match self.0.first().copied() {
            Some((at, slot)) if at <= d.0 => {
                self.0.remove(0);
                self.1 = at.max(self.1);
                c.push(Completion { slot, result: 4096, at: Instant(self.1) })
            }
            _ => self.1 = self.1.max(d.0),
        }
    }
}
