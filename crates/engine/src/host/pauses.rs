//! Detects when the process, or the whole machine, was stopped: times in which no thread of it ran
//! and none waited for a CPU. I/Os in flight then look slow, although the target is not to blame.
//!
//! A separate thread sleeps twenty times a second and examines each sleep. A sleep that ended late
//! was either followed by a wait for a CPU, which the kernel counts to the nanosecond, or the
//! thread did not run for another reason. A process that is stopped (SIGSTOP, a freezer, a
//! debugger) is woken to stop, so that its threads leave the CPU once more than they went to sleep.
//! If the machine stood still, only the timer was late. The workers have no cost from this.
#![expect(unsafe_code, reason = "what a thread did has no safe wrapper")]

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use fathom_core::Span;
use fathom_core::facts::{Pause, PauseKind, Pauses};
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::time::{ClockId, clock_gettime};

use super::thread_time::ThreadTime;

/// The length of a sleep. As long as the collector's, which wakes up as often.
const NAP: Span = Span::from_ms(50);
/// A shorter lateness does not count as a pause: it may be an interrupt, or the hypervisor's own
/// scheduling.
const SHORTEST: Span = Span::from_ms(20);
/// This many are kept; of others only the total time.
const KEPT: usize = 16;

/// Watches until it is asked for the result.
#[derive(Debug)]
pub struct PauseWatch {
    /// Written to when it is to end.
    over: Arc<OwnedFd>,
    thread: JoinHandle<Pauses>,
}

impl PauseWatch {
    /// Begins to watch.
    ///
    /// # Errors
    ///
    /// When no thread can be started.
    pub fn start() -> io::Result<Self> {
        let over = Arc::new(eventfd(0, EventfdFlags::CLOEXEC)?);
        let until = Arc::clone(&over);
        let builder = thread::Builder::new().name("fathom-watch".to_owned()).stack_size(64 << 10);
        let thread = builder.spawn(move || watch(&until))?;
        Ok(Self { over, thread })
    }

    /// The pauses until now; empty if its thread has failed.
    pub fn end(self) -> Option<Pauses> {
        // If it could not be written to, the thread would not wake up and end.
        rustix::io::write(&self.over, &1u64.to_ne_bytes()).ok()?;
        self.thread.join().ok()
    }
}

fn watch(over: &OwnedFd) -> Pauses {
    let began = Moment::now();
    let mut pauses = Pauses { found: Vec::with_capacity(KEPT), ..Pauses::default() };
    let mut last = began;
    let mut is_over = false;
    while !is_over {
        is_over = nap(over);
        let now = Moment::now();
        pauses.tells_waiting = now.time.wait.is_some();
        if let Some((kind, length)) = now.pause_since(&last) {
            let after = last.monotonic - began.monotonic;
            if pauses.found.len() < KEPT {
                pauses.found.push(Pause { kind, after, length });
            } else {
                pauses.others += length;
            }
        }
        last = now;
    }
    pauses
}

/// Sleeps for a nap, or until it is woken for its result, and then no sleep is late. By poll,
/// because the kernel's freezer wakes a thread from that; it freezes a thread that waits for a
/// futex or a timer without waking it, and the count of its switches would not show that.
fn nap(over: &OwnedFd) -> bool {
    let timeout = Timespec { tv_sec: 0, tv_nsec: NAP.0 as i64 };
    let mut events = [PollFd::new(over, PollFlags::IN)];
    poll(&mut events, Some(&timeout)).is_ok_and(|ready| ready > 0)
}

/// The observations of the thread when it wakes up.
#[derive(Clone, Copy, Debug, Default)]
struct Moment {
    /// The time of the clock that stands still while the machine is suspended.
    monotonic: Span,
    /// The time of the clock that continues meanwhile.
    boot: Span,
    time: ThreadTime,
    /// How often the thread left the CPU voluntarily: to sleep, or to stop.
    left: i64,
    /// How often it had to wait for a page of memory to be read.
    major_faults: i64,
}

impl Moment {
    fn now() -> Self {
        let (left, major_faults) = own_usage();
        Self {
            monotonic: clock(ClockId::Monotonic),
            boot: clock(ClockId::Boottime),
            time: ThreadTime::own(),
            left,
            major_faults,
        }
    }

    /// The cause that kept the thread from waking up in time, apart from other threads, and its
    /// shortest possible length: the rest of the sleep in which it began is not included.
    fn pause_since(&self, last: &Self) -> Option<(PauseKind, Span)> {
        let slept = self.monotonic - last.monotonic;
        let suspended = (self.boot - last.boot) - slept;
        if suspended >= SHORTEST {
            return Some((PauseKind::Suspended, suspended));
        }
        let passed = self.time.since(last.time);
        let length = slept - NAP - passed.cpu - passed.wait.map_or(Span(0), |wait| wait.time);
        if length < SHORTEST || self.major_faults > last.major_faults {
            return None;
        }
        match (self.left - last.left, passed.wait) {
            (2.., _) => Some((PauseKind::Process, length)),
            (_, Some(_)) => Some((PauseKind::Machine, length)),
            // It may have waited for a CPU.
            (_, None) => None,
        }
    }
}

fn clock(id: ClockId) -> Span {
    let time = clock_gettime(id);
    Span(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}

/// How often the calling thread left the CPU voluntarily, and how often it waited for a page.
fn own_usage() -> (i64, i64) {
    // SAFETY: all fields are numbers, for which zero is a value.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: the kernel fills in the structure at the given address.
    unsafe { libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage) };
    (usage.ru_nvcsw, usage.ru_majflt)
}

#[cfg(test)]
mod tests {
    use fathom_core::measure::CpuWait;

    use super::*;

    /// A sleep of `ms`, in which the thread waited for a CPU for `wait` and left the CPU `left`
    /// times.
    fn slept(ms: u64, wait: Option<u64>, left: i64) -> Option<(PauseKind, Span)> {
        let time = |wait: Option<u64>| ThreadTime {
            cpu: Span(0),
            wait: wait.map(|ms| CpuWait { time: Span::from_ms(ms), runs: 1 }),
        };
        let before = Moment { time: time(wait.map(|_| 0)), ..Moment::default() };
        let span = Span::from_ms(ms);
        let after = Moment { monotonic: span, boot: span, time: time(wait), left, ..before };
        after.pause_since(&before)
    }

    #[test]
    fn a_late_sleep_is_told_by_what_made_it_late() {
        use PauseKind::{Machine, Process};
        assert_eq!(slept(50, Some(0), 1), None);
        assert_eq!(slept(69, Some(0), 2), None);
        // Other threads had the CPU.
        assert_eq!(slept(1050, Some(1000), 1), None);
        assert_eq!(slept(1050, Some(1000), 2), None);
        // The process was stopped, and waited for a CPU when it could continue.
        assert_eq!(slept(2050, Some(300), 2), Some((Process, Span::from_ms(1700))));
        assert_eq!(slept(2050, Some(0), 1), Some((Machine, Span::from_secs(2))));
        // Without the kernel's count, only a stop can be recognized.
        assert_eq!(slept(2050, None, 2), Some((Process, Span::from_secs(2))));
        assert_eq!(slept(2050, None, 1), None);
    }

    #[test]
    fn a_page_that_had_to_be_read_is_no_pause_and_a_sleeping_machine_is_one() {
        let after = |moment: Moment| moment.pause_since(&Moment::default());
        let late = Moment {
            monotonic: Span::from_ms(200),
            boot: Span::from_ms(200),
            time: ThreadTime { cpu: Span(0), wait: Some(CpuWait::default()) },
            left: 3,
            major_faults: 1,
        };
        assert_eq!(after(late), None);
        let asleep = Moment { boot: Span::from_secs(9), left: 1, ..late };
        assert_eq!(after(asleep), Some((PauseKind::Suspended, Span::from_ms(8800))));
    }

    #[test]
    fn a_watch_that_is_ended_says_what_it_saw_at_once() {
        let watch = PauseWatch::start().unwrap();
        let pauses = watch.end().unwrap();
        assert!(pauses.found.iter().all(|one| one.kind != PauseKind::Suspended), "{pauses:?}");
    }
}
