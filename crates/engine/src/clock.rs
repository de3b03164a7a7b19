//! The clock that stamps I/Os to real targets, and the wake-up of a thread that sleeps by it.
//!
//! The time stamp counter is read if the kernel itself keeps time by it; otherwise (an unstable
//! counter, a hypervisor's clock, another architecture) the kernel is asked. fathom never judges by
//! itself whether a counter can be trusted.

use std::num::NonZeroU64;
use std::sync::OnceLock;

use fathom_core::measure::Histogram;
use fathom_core::{Instant, Quantile, Span, facts};
use rustix::thread::NanosleepRelativeResult;
use rustix::time::{ClockId, Timespec};

/// The file in which the kernel names its clock source.
const CLOCK_SOURCE: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";

/// The length of a sleep that measures the wake-up: longer than idle CPUs of virtual machines go on
/// polling before they really stop (200 us), so that it shows the usual case.
pub(crate) const TRIAL_SLEEP: Span = Span::from_us(300);
/// The number of such sleeps that suffices for a run, in less than 3 ms.
const TRIAL_SLEEPS: u32 = 8;

/// How often the clock is read to learn its resolution and cost: enough to see a step of any clock,
/// in a fraction of a millisecond.
const READINGS: u32 = 10_000;

/// A monotonic clock in nanoseconds. All clocks of the process share one origin and one calibration.
#[derive(Clone, Debug)]
pub struct Clock {
    source: ClockSource,
}

#[derive(Clone, Debug)]
enum ClockSource {
    /// The time stamp counter, calibrated against the kernel's clock when the process first asks:
    /// the number of nanoseconds that 2^32 of its steps take. That is exact to 1 in 10^9, a
    /// thousand times as exact as the calibration, and needs one multiplication for a reading;
    /// quanta's own scale, which may be shifted by any amount, needs some ten instructions more.
    Counter { counter: quanta::Clock, scale: u64 },
    /// The kernel's monotonic clock.
    Monotonic,
}

impl Default for Clock {
    fn default() -> Self {
        static CLOCK: OnceLock<Clock> = OnceLock::new();
        CLOCK.get_or_init(Self::choose).clone()
    }
}

impl Clock {
    fn choose() -> Self {
        let kernel_trusts_tsc = cfg!(target_arch = "x86_64")
            && std::fs::read_to_string(CLOCK_SOURCE).is_ok_and(|name| name.trim() == "tsc");
        if !kernel_trusts_tsc {
            return Self { source: ClockSource::Monotonic };
        }
        let counter = quanta::Clock::new();
        // quanta asks the CPU as well, and falls back to the kernel's clock silently. Its readings
        // then lie between two of that clock.
        let before = monotonic();
        let reading = counter.raw();
        let after = monotonic();
        if before <= reading && reading <= after {
            return Self { source: ClockSource::Monotonic };
        }
        let scale = counter.delta_as_nanos(0, 1 << 32);
        Self { source: ClockSource::Counter { counter, scale } }
    }

    /// The current time.
    #[inline]
    pub fn now(&self) -> Instant {
        match &self.source {
            ClockSource::Counter { counter, scale } => {
                let scaled = u128::from(counter.raw()) * u128::from(*scale);
                Instant((scaled >> 32) as u64)
            }
            ClockSource::Monotonic => Instant(monotonic()),
        }
    }

    /// The kind of the clock, its smallest step, and the cost of a reading. Takes less than a
    /// millisecond.
    pub fn measure(&self) -> facts::Clock {
        let mut smallest_step = u64::MAX;
        let started = self.now();
        let mut last = started;
        for _ in 0..READINGS {
            let now = self.now();
            let step = now.since(last).0;
            if step > 0 {
                smallest_step = smallest_step.min(step);
            }
            last = now;
        }
        let elapsed = last.since(started).0;
        let source = match self.source {
            ClockSource::Counter { .. } => "tsc",
            ClockSource::Monotonic => "CLOCK_MONOTONIC",
        };
        facts::Clock {
            source: source.to_owned(),
            // A clock that stood still all the time has steps of at least the duration of the
            // readings.
            resolution_ns: smallest_step.min(elapsed.max(1)) as f64,
            cost_ns: elapsed as f64 / f64::from(READINGS),
        }
    }
}

/// The median wake-up of this host, measured when the process first asks and then kept. Takes some
/// milliseconds.
pub fn wake_up() -> Span {
    static WAKE_UP: OnceLock<Span> = OnceLock::new();
    *WAKE_UP.get_or_init(|| {
        let late = late_sleeps(TRIAL_SLEEPS);
        // If signals cut every one of them short, the pacer has to learn by itself.
        Span(late.quantile(Quantile(0.5)).unwrap_or_default())
    })
}

/// Sleeps this often for [`TRIAL_SLEEP`] and measures how late the sleeps end, in nanoseconds, with
/// timers as exact as those of a worker. A sleep that a signal cuts short does not count.
pub(crate) fn late_sleeps(sleeps: u32) -> Histogram {
    let before = rustix::thread::current_timer_slack();
    request_exact_timers();
    let clock = Clock::default();
    let mut late = Histogram::default();
    for _ in 0..sleeps {
        let due = clock.now() + TRIAL_SLEEP;
        let slept = rustix::thread::nanosleep(&timespec(TRIAL_SLEEP));
        if matches!(slept, NanosleepRelativeResult::Ok) {
            late.record(clock.now().since(due).0);
        }
    }
    if let Ok(slack) = before {
        let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(slack));
    }
    late
}

/// Has the kernel wake this thread as exactly as it can, if allowed. Without it a sleep ends up to
/// 50 us later, which its margin then has to cover.
pub(crate) fn request_exact_timers() {
    // A sandbox may forbid it; then the wake-ups are a little later, nothing else.
    let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
}

/// The kernel's monotonic clock, in nanoseconds.
pub(crate) fn monotonic() -> u64 {
    let time = rustix::time::clock_gettime(ClockId::Monotonic);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

pub(crate) fn timespec(span: Span) -> Timespec {
    Timespec { tv_sec: (span.0 / 1_000_000_000) as i64, tv_nsec: (span.0 % 1_000_000_000) as i64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_agrees_with_the_kernels() {
        let clock = Clock::default();
        let (ours, kernels) = (clock.now(), monotonic());
        std::thread::sleep(std::time::Duration::from_millis(50));
        // Read in the opposite order. A pause in between makes our interval the shorter one, so the
        // bound below needs to allow for it only upward.
        let (kernels, ours) = (monotonic() - kernels, clock.now().since(ours).0);
        assert!(
            ours as f64 > kernels as f64 * 0.999,
            "{ours} ns of ours, {kernels} of the kernel's"
        );
    }

    #[test]
    fn the_clock_never_goes_backwards() {
        let clock = Clock::default();
        let mut last = clock.now();
        for _ in 0..100_000 {
            let now = clock.now();
            assert!(last <= now);
            last = now;
        }
    }

    #[test]
    fn a_measured_clock_has_a_step_and_a_cost() {
        for clock in [Clock::default(), Clock { source: ClockSource::Monotonic }] {
            let facts = clock.measure();
            assert!(["tsc", "CLOCK_MONOTONIC"].contains(&facts.source.as_str()));
            assert!(facts.resolution_ns >= 1.0 && facts.cost_ns > 0.0, "{facts:?}");
        }
    }

    #[test]
    fn every_sleep_is_counted_and_the_threads_timers_stay_as_they_were() {
        let before = rustix::thread::current_timer_slack().ok();
        assert_eq!(late_sleeps(3).count(), 3);
        assert_eq!(late_sleeps(0).count(), 0);
        assert_eq!(rustix::thread::current_timer_slack().ok(), before);
        assert_eq!(wake_up(), wake_up());
    }
}
