//! The CPU time of threads of this process, and their waiting for a CPU. A thread that is ready to
//! run and does not run is on a CPU's run queue: other threads delay it there, and its work, such
//! as seeing that an I/O has completed, is late by as much.

use fathom_core::Span;
use fathom_core::measure::CpuWait;
use rustix::fs::{Mode, OFlags};
use rustix::time::{ClockId, clock_gettime};

use super::system::System;

/// Longer than the three numbers of the kernel.
const LINE: usize = 64;

/// The CPU time of a thread since it began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ThreadTime {
    /// On a CPU.
    pub(crate) cpu: Span,
    /// Ready to run, and not on one; none if the kernel does not report it.
    pub(crate) wait: Option<CpuWait>,
}

impl ThreadTime {
    /// That of the calling thread now. Allocates nothing, and takes some microseconds.
    pub(crate) fn own() -> Self {
        let wait = own_wait();
        Self { cpu: own_cpu(), wait }
    }

    /// The difference since `earlier`.
    pub(crate) fn since(self, earlier: Self) -> Self {
        let wait = self.wait.zip(earlier.wait).map(|(now, then)| now.since(then));
        Self { cpu: self.cpu - earlier.cpu, wait }
    }
}

/// CPU time that the calling thread has used.
pub(crate) fn own_cpu() -> Span {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Span(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}

/// How long the calling thread was kept off the CPUs.
fn own_wait() -> Option<CpuWait> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    let file = rustix::fs::open(c"/proc/thread-self/schedstat", flags, Mode::empty()).ok()?;
    let mut line = [0; LINE];
    let length = rustix::io::read(&file, &mut line).ok()?;
    wait_in(std::str::from_utf8(&line[..length]).ok()?)
}

/// How long a thread of this process was kept off the CPUs.
pub(super) fn wait_of(system: &System, id: u32) -> Option<CpuWait> {
    wait_in(&system.text(format!("proc/self/task/{id}/schedstat"))?)
}

/// The kernel's numbers: time on a CPU, time of waiting for one, number of runs. All are zero if
/// the kernel was built without them.
fn wait_in(schedstat: &str) -> Option<CpuWait> {
    let mut fields = schedstat.split_whitespace().map(|field| field.parse::<u64>().ok());
    let (_, waited, ran) = (fields.next()??, fields.next()??, fields.next()??);
    (ran > 0).then_some(CpuWait { time: Span(waited), runs: ran })
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Barrier};

    use super::*;

    #[test]
    fn a_kernel_that_does_not_count_is_told_from_a_thread_that_never_waited() {
        let waited = |time, runs| Some(CpuWait { time: Span(time), runs });
        assert_eq!(wait_in("5000000 1200 7\n"), waited(1200, 7));
        assert_eq!(wait_in("0 0 1\n"), waited(0, 1));
        assert_eq!(wait_in("0 0 0\n"), None);
        assert_eq!(wait_in("5000000\n"), None);
        assert_eq!(wait_in(""), None);
    }

    /// Two threads that are bound to one CPU and never sleep take turns. Whatever else runs there,
    /// the one that ends last has waited for most of the time that the other ran.
    #[test]
    fn a_thread_waits_for_as_long_as_another_has_its_cpu() {
        let allowed = rustix::thread::sched_getaffinity(None).unwrap();
        let first = (0..rustix::thread::CpuSet::MAX_CPU).find(|&cpu| allowed.is_set(cpu)).unwrap();
        let tie = move || {
            let mut one = rustix::thread::CpuSet::new();
            one.set(first);
            rustix::thread::sched_setaffinity(None, &one).unwrap();
        };
        let both = Arc::new(Barrier::new(2));
        let spin = move |both: Arc<Barrier>| {
            tie();
            both.wait();
            let before = ThreadTime::own();
            while ThreadTime::own().since(before).cpu < Span::from_ms(100) {}
            ThreadTime::own().since(before)
        };
        let with = Arc::clone(&both);
        let other = std::thread::spawn(move || spin(with));
        let here = std::thread::spawn(move || spin(both)).join().unwrap();
        let there = other.join().unwrap();
        let (Some(one), Some(two)) = (here.wait, there.wait) else {
            println!("skipped: this kernel does not count how long threads wait");
            return;
        };
        assert!(Span::from_ms(20) < one.time.max(two.time), "{here:?} {there:?}");
    }
}
