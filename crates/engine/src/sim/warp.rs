//! Device time against virtual time: how stalls and noise act on any device without its knowledge.
//!
//! A device that stands still does no work, so its clock stands still: device time is virtual time
//! without the stalls. What is in service when a stall begins completes later by the length of the
//! stall, and what arrives meanwhile waits. With stalls of length L at S, S + E, S + 2E ...
//!
//! ```text
//! u(t) = t - k L - max(0, min(t - (S + k E), L))   k: stalls that began before the one at t
//! t(u) = u                                          for u < S
//!      = u + L (floor((u - S) / (E - L)) + 1)       else
//! ```
//!
//! Noise then makes the clock run at a speed f that is drawn anew for each second of u:
//! f = exp(s z - s^2 / 2) with z normal, so that its mean is 1 and its standard deviation is s to
//! first order. Throughput over whole seconds varies as f does.

use fathom_core::{Instant, Span};

use super::chance::Chance;
use super::parameters::Stall;

/// How long a speed lasts.
const EPOCH_NS: u64 = 1_000_000_000;

/// Turns virtual time into device time and back.
#[derive(Debug)]
pub(super) struct Warp {
    stall: Option<Stall>,
    noise: Option<Noise>,
}

/// The second that the device is in, with its speed.
#[derive(Debug)]
struct Noise {
    seed: u64,
    deviation: f64,
    epoch: u64,
    /// Device time when the epoch began.
    base: u64,
    speed: f64,
}

impl Warp {
    /// The identity, unless there are stalls or noise.
    pub fn new(stall: Option<Stall>, noise: f64, seed: u64) -> Self {
        let noise = (noise > 0.0).then(|| {
            let speed = speed(seed, 0, noise);
            Noise { seed, deviation: noise, epoch: 0, base: 0, speed }
        });
        Self { stall, noise }
    }

    /// Whether device time is virtual time.
    pub fn is_identity(&self) -> bool {
        self.stall.is_none() && self.noise.is_none()
    }

    /// The device time of a virtual time that is not before any asked for earlier.
    pub fn device_time_at(&mut self, at: Instant) -> Instant {
        let awake = self.stall.map_or(at.0, |stall| without_stalls(stall, at.0));
        Instant(self.noise.as_mut().map_or(awake, |noise| noise.advance(awake)))
    }

    /// The virtual time of a device time that is not before the latest `device_time_at`.
    pub fn virtual_time_at(&self, at: Instant) -> Instant {
        let awake = self.noise.as_ref().map_or(at.0, |noise| noise.invert(at.0));
        Instant(self.stall.map_or(awake, |stall| with_stalls(stall, awake)))
    }
}

fn without_stalls(Stall { start, length, every }: Stall, at: u64) -> u64 {
    if at < start.0 {
        return at;
    }
    let since = at - start.0;
    let (begun, within) = match every {
        Some(Span(every)) => (since / every, since % every),
        None => (0, since),
    };
    at - begun * length.0 - within.min(length.0)
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

/// The speed of an epoch depends on nothing but its number: it is the same whoever asks, when.
fn speed(seed: u64, epoch: u64, deviation: f64) -> f64 {
    Chance::new(seed, 1_000 + epoch).speed(deviation)
}

/// How far device time gets in an epoch.
fn epoch_length(speed: f64) -> u64 {
    (EPOCH_NS as f64 * speed) as u64
}

impl Noise {
    fn advance(&mut self, awake: u64) -> u64 {
        while awake / EPOCH_NS > self.epoch {
            self.base += epoch_length(self.speed);
            self.epoch += 1;
            self.speed = speed(self.seed, self.epoch, self.deviation);
        }
        self.base + ((awake % EPOCH_NS) as f64 * self.speed) as u64
    }

    fn invert(&self, device_time: u64) -> u64 {
        let (mut epoch, mut base, mut now) = (self.epoch, self.base, self.speed);
        while device_time - base >= epoch_length(now) {
            base += epoch_length(now);
            epoch += 1;
            now = speed(self.seed, epoch, self.deviation);
        }
        epoch * EPOCH_NS + ((device_time - base) as f64 / now).ceil() as u64
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
        let mut warp = Warp::new(Some(stall(10, 5, Some(20))), 0.0, 1);
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
        let mut warp = Warp::new(Some(stall(10, 5, None)), 0.0, 1);
        assert_eq!(warp.device_time_at(Instant(1_000 * MS)), Instant(995 * MS));
        assert_eq!(warp.virtual_time_at(Instant(995 * MS)), Instant(1_000 * MS));
    }

    #[test]
    fn noise_turns_back_to_within_its_rounding() {
        let mut warp = Warp::new(None, 0.2, 7);
        let ahead: Vec<Instant> = (0..50).map(|i| Instant(i * 333 * MS)).collect();
        let there: Vec<Instant> = ahead
            .iter()
            .map(|&u| (u, warp.virtual_time_at(u)))
            .map(|(u, t)| {
                let mut fresh = Warp::new(None, 0.2, 7);
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

    #[test]
    fn noise_has_its_mean_and_deviation() {
        let speeds: Vec<f64> = (0..20_000).map(|epoch| speed(3, epoch, 0.1)).collect();
        let mean = speeds.iter().sum::<f64>() / 20_000.0;
        let variance = speeds.iter().map(|f| (f - mean).powi(2)).sum::<f64>() / 19_999.0;
        assert!((mean - 1.0).abs() < 0.003, "{mean}");
        assert!((variance.sqrt() - 0.1).abs() < 0.003, "{}", variance.sqrt());
    }
}
