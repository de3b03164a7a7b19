//! How late a thread that sleeps is woken here: what an idle worker of an open loop has to allow for,
//! and what every program on this host pays that waits for a timer.

use fathom_core::Span;
use fathom_core::calibration::WakeUp;
use fathom_core::measure::Histogram;

use crate::clock::{self, Clock};

/// Long enough that the CPU really goes to sleep, short enough that many of them fit.
const SLEEP: Span = Span::from_us(300);

/// Sleeps so many times and says how late it was woken. None where sleeping is not possible.
pub fn wake_up(sleeps: u32) -> Option<WakeUp> {
    // On a thread of its own, because exact timers stay asked for.
    let thread = std::thread::Builder::new().name("fathom-wake-up".to_owned());
    thread.spawn(move || sleep_often(sleeps)).ok()?.join().ok()
}

fn sleep_often(sleeps: u32) -> WakeUp {
    clock::request_exact_timers();
    let clock = Clock::default();
    let mut late = Histogram::default();
    for _ in 0..sleeps {
        let due = clock.now() + SLEEP;
        let slept = rustix::thread::nanosleep(&clock::timespec(SLEEP));
        // A sleep that a signal cut short says nothing about waking up.
        if matches!(slept, rustix::thread::NanosleepRelativeResult::Ok) {
            late.record(clock.now().since(due).0);
        }
    }
    WakeUp { asked: SLEEP, late }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_sleep_is_counted() {
        let wake_up = wake_up(5).unwrap();
        assert_eq!((wake_up.asked, wake_up.late.count()), (SLEEP, 5));
        assert_eq!(super::wake_up(0).unwrap().late.count(), 0);
    }
}
