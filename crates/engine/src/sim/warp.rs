//! Device time and virtual time: how stalls and noise affect any device without its knowledge.
//!
//! A device that stands still does no work, so its clock stands still: device time is virtual time
//! without the stalls. An I/O in service when a stall begins completes later by the length of the
//! stall, and I/Os that arrive meanwhile wait. With stalls of length L at S, S + E, S + 2E ...
//!
//! ```text
//! u(t) = t - k L - max(0, min(t - (S + k E), L))   k: stalls that began before the one at t
//! t(u) = u                                          for u < S
//!      = u + L (floor((u - S) / (E - L)) + 1)       else
//! ```
//!
//! Noise then makes the clock run at a speed that differs in each stretch of u, such as a second:
//! `noise` sets it. Throughput over whole stretches varies as the speed does.

use fathom_core::{Instant, Span};

use super::noise::{Noise, Speeds};
use super::parameters::Stall;

/// Converts virtual time into device time and back.
#[derive(Debug)]
pub(super) struct Warp {
    stall: Option<Stall>,
    pace: Option<CurrentSpeed>,
}

/// The stretch that the device is in, with its speed.
#[derive(Clone, Debug)]
struct CurrentSpeed {
    speeds: Speeds,
    /// Device time when the stretch began.
    base: u64,
}

impl Warp {
    /// The identity, unless there are stalls or noise. The run begins this long after its session.
    pub fn new(stall: Option<Stall>, noise: &Noise, seed: u64, began: Span) -> Self {
        let pace = (!noise.is_none())
            .then(|| CurrentSpeed { speeds: Speeds::new(noise, seed, began), base: 0 });
        Self { stall, pace }
    }

    /// Whether device time is virtual time.
    pub fn is_identity(&self) -> bool {
        self.stall.is_none() && self.pace.is_none()
    }

    /// The device time of a virtual time that is not before any asked for earlier.
    pub fn device_time_at(&mut self, at: Instant) -> Instant {
        let awake = self.stall.map_or(at.0, |stall| without_stalls(stall, at.0));
        Instant(self.pace.as_mut().map_or(awake, |pace| pace.advance(awake)))
    }

    /// The virtual time of a device time that is not before the latest `device_time_at`.
    pub fn virtual_time_at(&self, at: Instant) -> Instant {
        let awake = self.pace.as_ref().map_or(at.0, |pace| pace.invert(at.0));
        Instant(self.stall.map_or(awake, |stall| with_stalls(stall, awake)))
    }
}

fn without_stalls(stall: Stall, at: u64) -> u64 {
    at - stall.until(at)
}

fn with_stalls(Stall { start, length, every }: Stall, awake: u64) -> u64 {
    if awake < start.0 {
        return awake;
    }
    let begun = match every {
        Some(Span(every)) => (awake - start.0) / (every - length.0) + 1,
        None => 1,
    };
    awake.saturating_add(begun.saturating_mul(length.0))
}

impl CurrentSpeed {
    fn advance(&mut self, awake: u64) -> u64 {
        let every = self.speeds.every();
        while awake / every > self.speeds.stretch() {
            self.base += self.speeds.length();
            self.speeds.advance();
        }
        self.base + ((awake % every) as f64 * self.speeds.speed()) as u64
    }

    fn invert(&self, device_time: u64) -> u64 {
        let within = |speeds: &Speeds, base: u64| {
            speeds.stretch() * speeds.every()
                + ((device_time - base) as f64 / speeds.speed()).ceil() as u64
        };
        if device_time - self.base < self.speeds.length() {
            return within(&self.speeds, self.base);
        }
        let Self { mut speeds, mut base } = self.clone();
        while device_time - base >= speeds.length() {
            base += speeds.length();
            speeds.advance();
        }
        within(&speeds, base)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn stall(start: u64, length: u64, every: Option<u64>) -> Stall {
        let span = Span::from_ms;
        Stall { start: span(start), length: span(length), every: every.map(span) }
    }

    #[test]
    fn a_stalled_clock_stands_still() {
        let mut warp = Warp::new(Some(stall(10, 5, Some(20))), &Noise::default(), 1, Span(0));
        let device: Vec<u64> = [0, 9, 10, 12, 15, 16, 30, 33, 35, 36]
            .map(|t| warp.device_time_at(Instant(t * MS)).0 / MS)
            .into();
        assert_eq!(device, [0, 9, 10, 10, 10, 11, 25, 25, 25, 26]);
        let back: Vec<u64> =
            [0, 9, 10, 11, 24, 25, 26].map(|u| warp.virtual_time_at(Instant(u * MS)).0 / MS).into();
        assert_eq!(back, [0, 9, 15, 16, 29, 35, 36]);
    }

    #[test]
    fn one_stall_happens_once() {
        let mut warp = Warp::new(Some(stall(10, 5, None)), &Noise::default(), 1, Span(0));
        assert_eq!(warp.device_time_at(Instant(1_000 * MS)), Instant(995 * MS));
        assert_eq!(warp.virtual_time_at(Instant(995 * MS)), Instant(1_000 * MS));
    }

    #[test]
    fn noise_turns_back_to_within_its_rounding() {
        let noise = Noise { within: 0.2, correlation: 0.5, ..Noise::default() };
        let mut warp = Warp::new(None, &noise, 7, Span(0));
        let ahead: Vec<Instant> = (0..50).map(|i| Instant(i * 333 * MS)).collect();
        let there: Vec<Instant> = ahead
            .iter()
            .map(|&u| (u, warp.virtual_time_at(u)))
            .map(|(u, t)| {
                let mut fresh = Warp::new(None, &noise, 7, Span(0));
                let back = fresh.device_time_at(t);
                assert!(back.0.abs_diff(u.0) <= 2, "{u:?} became {back:?}");
                t
            })
            .collect();
        assert!(there.is_sorted());
        assert_ne!(ahead, there);
        // Asking from a later epoch gives the same answer.
        warp.device_time_at(Instant(5_000 * MS));
        assert_eq!(warp.virtual_time_at(ahead[49]), there[49]);
    }
}
