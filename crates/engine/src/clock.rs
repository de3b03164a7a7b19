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

/// The length of a calibration: the counter and the kernel's clock are read together to some 50 ns
/// at either end of it, so that their ratio is known to some 10 ppm.
const CALIBRATION: Span = Span::from_ms(10);
/// The largest error of a calibration that is accepted. The kernel's clock itself may be slewed by
/// 500 ppm.
const CALIBRATION_ERROR: f64 = 50e-6;
/// How often a calibration is tried to be as exact: each try is longer by [`CALIBRATION`].
const CALIBRATION_TRIES: u32 = 20;
/// How many readings look for one that nothing has interrupted.
const PAIRS: u32 = 100;

/// A monotonic clock in nanoseconds. All clocks of the process share one origin and one calibration.
#[derive(Clone, Debug)]
pub struct Clock {
    source: ClockSource,
}

#[derive(Clone, Debug)]
enum ClockSource {
    /// The time stamp counter, calibrated against the kernel's clock when the process first asks:
    /// the number of nanoseconds that 2^32 of its steps take. That is exact to 1 in 10^9, much
    /// more than the calibration, and needs one multiplication for a reading. quanta's own scale
    /// needs some ten instructions more, and is wrong by 1 in 1000 if another program gets the CPU
    /// between its last two readings.
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
        match Calibration::measure(&counter) {
            Some(calibration) => {
                Self { source: ClockSource::Counter { counter, scale: calibration.scale } }
            }
            None => Self { source: ClockSource::Monotonic },
        }
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

/// The rate of the time stamp counter.
#[derive(Clone, Copy, Debug)]
struct Calibration {
    /// Nanoseconds of 2^32 steps.
    scale: u64,
    /// The largest relative error of it.
    error: f64,
}

impl Calibration {
    /// Compares the counter with the kernel's clock. `None` if that cannot be done exactly enough
    /// because something interrupts every reading.
    fn measure(counter: &quanta::Clock) -> Option<Self> {
        let begin = Pair::read(counter);
        (0..CALIBRATION_TRIES).find_map(|_| {
            std::thread::sleep(std::time::Duration::from_nanos(CALIBRATION.0));
            let calibration = Self::between(begin, Pair::read(counter))?;
            (calibration.error <= CALIBRATION_ERROR).then_some(calibration)
        })
    }

    /// The rate between two readings of both clocks. `None` if either stood still.
    fn between(begin: Pair, end: Pair) -> Option<Self> {
        let steps = end.counter.checked_sub(begin.counter).filter(|&steps| steps > 0)?;
        let time = end.kernels.checked_sub(begin.kernels).filter(|&time| time > 0)?;
        let scale = (u128::from(time) << 32) / u128::from(steps);
        let error = (begin.width + end.width) as f64 / time as f64;
        Some(Self { scale: u64::try_from(scale).ok()?, error })
    }
}

/// A reading of the time stamp counter and of the kernel's clock.
#[derive(Clone, Copy, Debug)]
struct Pair {
    counter: u64,
    /// The kernel's time before the counter was read.
    kernels: u64,
    /// The largest time by which the counter was read later.
    width: u64,
}

impl Pair {
    /// The closest of many readings: most are apart by two calls, one that was interrupted by
    /// milliseconds.
    fn read(counter: &quanta::Clock) -> Self {
        let read = |_| {
            let kernels = monotonic();
            let counter = counter.raw();
            Self { counter, kernels, width: monotonic().saturating_sub(kernels) }
        };
        (1..PAIRS).map(read).fold(
            read(0),
            |best, next| {
                if next.width < best.width { next } else { best }
            },
        )
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
    fn an_interrupted_reading_does_not_calibrate() {
        let pair = |counter, kernels, width| Pair { counter, kernels, width };
        // 2 GHz: 2^32 steps take 2^31 ns.
        let exact = Calibration::between(pair(0, 500, 50), pair(20_000_000, 10_000_500, 50));
        let exact = exact.expect("both went on");
        assert_eq!((exact.scale, exact.error), (1 << 31, 100.0 / 1e7));
        // The kernel's clock was read, then something else ran for 2 ms, then the counter was read.
        let late = Calibration::between(pair(0, 500, 50), pair(24_000_000, 10_000_500, 2_000_050));
        let late = late.expect("both went on");
        assert!(late.error > CALIBRATION_ERROR, "{late:?}");
        // The error that is told covers the one that was made.
        assert!((1.0 - late.scale as f64 / exact.scale as f64).abs() <= late.error, "{late:?}");
        assert!(Calibration::between(pair(7, 0, 0), pair(7, 10, 0)).is_none());
        assert!(Calibration::between(pair(7, 5, 0), pair(8, 5, 0)).is_none());
    }

    #[test]
    fn two_calibrations_agree_within_their_errors() {
        let counter = quanta::Clock::new();
        let all: Vec<_> = (0..3).filter_map(|_| Calibration::measure(&counter)).collect();
        for (a, b) in all.iter().zip(all.iter().skip(1)) {
            let apart = (a.scale as f64 / b.scale as f64 - 1.0).abs();
            // Between the two the kernel may have slewed its clock.
            assert!(apart <= a.error + b.error + 500e-6, "{a:?} {b:?}");
        }
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
