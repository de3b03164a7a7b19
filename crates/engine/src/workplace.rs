//! The CPU of a worker and the priority of its I/Os: set on the worker's own thread before it
//! allocates memory, so that its memory is near its CPU, and before its backend starts other
//! threads, which inherit both.
//!
//! The kernel gives every I/O the priority of the thread that submits it, with any backend: it is
//! read when an I/O is taken, not when a thread of io_uring carries it out.

#![expect(unsafe_code, reason = "the priority of I/Os has no safe interface")]

use std::io;

use fathom_core::Refusal;
use fathom_core::spec::{IoPriority, Workplace};
use rustix::io::Errno;
use rustix::thread::CpuSet;

use crate::run_error::RunError;
use crate::target_error::plain;

/// The thread that calls (IOPRIO_WHO_PROCESS, with 0 as its number).
const THIS_THREAD: (libc::c_int, libc::c_int) = (1, 0);
/// The place of the class in a priority.
const CLASS_SHIFT: u32 = 13;

/// Turns the calling thread into the worker with this number in its stream.
///
/// # Errors
///
/// When it may not run on its CPU, or its I/Os may not have their priority.
pub(crate) fn settle(workplace: &Workplace, worker: u32) -> Result<(), RunError> {
    if let Some(cpu) = workplace.cpu(worker) {
        pin(cpu).map_err(|cause| RunError::Cpu { cpu, cause })?;
    }
    if let Some(priority) = workplace.io_priority {
        prioritize(priority).map_err(RunError::Refused)?;
    }
    Ok(())
}

fn pin(cpu: u32) -> io::Result<()> {
    let mut set = CpuSet::new();
    if CpuSet::MAX_CPU <= cpu as usize {
        return Err(Errno::INVAL.into());
    }
    set.set(cpu as usize);
    Ok(rustix::thread::sched_setaffinity(None, &set)?)
}

fn prioritize(priority: IoPriority) -> Result<(), Refusal> {
    // SAFETY: three numbers go in, and nothing but the priority of this thread changes.
    let result = unsafe {
        libc::syscall(libc::SYS_ioprio_set, THIS_THREAD.0, THIS_THREAD.1, number(priority))
    };
    match result {
        0 => Ok(()),
        _ => Err(explain(priority, &io::Error::last_os_error())),
    }
}

/// The priority of the calling thread's I/Os; none if it was not set.
pub(crate) fn own_io_priority() -> Option<IoPriority> {
    // SAFETY: two numbers go in, and nothing changes.
    let priority = unsafe { libc::syscall(libc::SYS_ioprio_get, THIS_THREAD.0, THIS_THREAD.1) };
    from_number(u32::try_from(priority).ok()?)
}

/// The meaning of the kernel's number: the class, and the level in the three lowest bits.
fn from_number(priority: u32) -> Option<IoPriority> {
    let level = (priority & 7) as u8;
    match priority >> CLASS_SHIFT {
        1 => Some(IoPriority::RealTime(level)),
        2 => Some(IoPriority::BestEffort(level)),
        3 => Some(IoPriority::Idle),
        _ => None,
    }
}

/// The priority as the kernel has it.
fn number(priority: IoPriority) -> libc::c_int {
    let (class, level) = match priority {
        IoPriority::RealTime(level) => (1, level),
        IoPriority::BestEffort(level) => (2, level),
        // It has no levels.
        IoPriority::Idle => (3, 0),
    };
    class << CLASS_SHIFT | libc::c_int::from(level)
}

fn explain(priority: IoPriority, error: &io::Error) -> Refusal {
    let option = format!("--io-priority {priority}");
    match error.raw_os_error().map(Errno::from_raw_os_error) {
        Some(Errno::PERM) => Refusal::denied(
            option,
            "this user may not have it",
            "run as root, give the program the capability CAP_SYS_NICE, or choose best-effort or \
             idle",
        ),
        _ => Refusal::denied(option, plain(error), "choose another one, or drop it"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The CPUs and the I/O priority of a separate thread after it settled, and those of a thread
    /// that it starts.
    fn settled(workplace: Workplace, worker: u32) -> Result<[(u32, i64); 2], String> {
        let seen = || {
            // SAFETY: the call only reads the calling thread's priority.
            let priority =
                unsafe { libc::syscall(libc::SYS_ioprio_get, THIS_THREAD.0, THIS_THREAD.1) };
            let set = rustix::thread::sched_getaffinity(None).unwrap();
            (set.count(), priority)
        };
        let thread = std::thread::spawn(move || {
            settle(&workplace, worker).map_err(|error| error.to_string())?;
            Ok([seen(), std::thread::spawn(seen).join().unwrap()])
        });
        thread.join().unwrap()
    }

    #[test]
    fn a_priority_is_read_as_it_is_written() {
        for one in [IoPriority::RealTime(0), IoPriority::BestEffort(7), IoPriority::Idle] {
            assert_eq!(from_number(number(one) as u32), Some(one));
        }
        assert_eq!(from_number(0), None);
    }

    #[test]
    fn a_worker_and_its_helpers_stay_on_its_cpu() {
        let set = rustix::thread::sched_getaffinity(None).unwrap();
        let cpus: Vec<u32> =
            (0..CpuSet::MAX_CPU as u32).filter(|&cpu| set.is_set(cpu as usize)).collect();
        let workplace = Workplace { cpus: cpus.clone(), ..Workplace::default() };
        for worker in [0, cpus.len() as u32] {
            assert_eq!(workplace.cpu(worker), Some(cpus[0]));
            let [own, helper] = settled(workplace.clone(), worker).unwrap();
            assert_eq!((own.0, helper.0), (1, 1));
        }
        assert_eq!(settled(Workplace::default(), 0).unwrap()[0].0, cpus.len() as u32);
    }

    #[test]
    fn a_cpu_that_is_not_there_is_named() {
        for cpu in [1000, 70_000] {
            let workplace = Workplace { cpus: Vec::from([cpu]), ..Workplace::default() };
            let told = settled(workplace, 0).unwrap_err();
            assert!(told.contains(&format!("--cpus {cpu}: ")), "{told}");
        }
    }

    #[test]
    fn ios_have_the_priority_that_was_asked_for() {
        for (priority, expected) in
            [(IoPriority::BestEffort(7), 2 << 13 | 7), (IoPriority::Idle, 3 << 13)]
        {
            let io_priority = Some(priority);
            let [own, helper] =
                settled(Workplace { io_priority, ..Workplace::default() }, 0).unwrap();
            assert_eq!((own.1, helper.1), (expected, expected));
        }
        assert_eq!(number(IoPriority::RealTime(3)), 1 << 13 | 3);
        let denied = io::Error::from_raw_os_error(libc::EPERM);
        let told = explain(IoPriority::RealTime(3), &denied).to_string();
        assert!(told.contains("root") && told.contains("best-effort"), "{told}");
    }
}
