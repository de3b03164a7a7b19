//! Real-time priority for a worker that asks for it: then only the kernel's own threads keep it
//! from starting an I/O that is due.
//!
//! The kernel takes the CPU for tens of milliseconds from real-time threads that use more than
//! their share of a second. So a thread with this priority has to know that share, and to stay
//! below it.

#![expect(unsafe_code, reason = "the policy of a thread has no safe interface")]

use std::fs;
use std::io;

use fathom_core::Refusal;
use rustix::io::Errno;

use crate::target_error::plain;

/// Above every thread of ordinary programs, and below the kernel's own real-time threads, which
/// serve the devices.
const PRIORITY: libc::c_int = 1;
/// The most that a worker uses, in thousandths, even if the kernel sets no limit: otherwise no
/// other thread on that CPU would ever run.
const MOST: u32 = 950;
/// The option that requests it.
const OPTION: &str = "--realtime";
/// With less than this of a CPU no schedule can be kept.
const LEAST: u32 = 200;

/// Gives the calling thread real-time priority (SCHED_FIFO), and returns the share of each second
/// that the kernel leaves to it, in thousandths. Threads that it starts later do not inherit it.
///
/// # Errors
///
/// When this user may not have it, or the kernel leaves too little to it.
pub(crate) fn request() -> Result<u32, Refusal> {
    let share = share(&setting("sched_rt_runtime_us"), &setting("sched_rt_period_us"));
    if share < LEAST {
        return Err(Refusal::denied(
            OPTION,
            format!(
                "the kernel leaves {}.{} % of each CPU to real-time priority",
                share / 10,
                share % 10
            ),
            "set kernel.sched_rt_runtime_us to 950000 with sysctl, or drop it",
        ));
    }
    // The kernel's parameters are the priority alone. The call goes by number, because musl's function
    // of this name always fails: it stands for a process, and the kernel knows only threads.
    let parameters = PRIORITY;
    // SAFETY: the kernel reads the parameters, which are there, and changes this thread's priority.
    let result = unsafe {
        libc::syscall(
            libc::SYS_sched_setscheduler,
            0,
            libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK,
            &raw const parameters,
        )
    };
    match result {
        0 => Ok(share),
        _ => Err(explain(&io::Error::last_os_error())),
    }
}

fn setting(name: &str) -> String {
    fs::read_to_string(format!("/proc/sys/kernel/{name}")).unwrap_or_default()
}

/// The share of a period that real-time threads may run, in thousandths. If the kernel does not
/// report it, it has its defaults.
fn share(runtime_us: &str, period_us: &str) -> u32 {
    match (runtime_us.trim().parse::<i64>(), period_us.trim().parse::<i64>()) {
        (Ok(runtime), Ok(period)) if runtime >= 0 && period > 0 => {
            u32::try_from(runtime.saturating_mul(1000) / period)
                .map_or(MOST, |share| share.min(MOST))
        }
        // A runtime of -1 is no limit.
        _ => MOST,
    }
}

fn explain(error: &io::Error) -> Refusal {
    match error.raw_os_error().map(Errno::from_raw_os_error) {
        Some(Errno::PERM) => Refusal::denied(
            OPTION,
            "this user may not have it",
            "run as root, allow it with `ulimit -r 1` (or LimitRTPRIO=1), give the program the \
             capability CAP_SYS_NICE, or drop it",
        ),
        _ => Refusal::denied(OPTION, plain(error), "drop it"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_share_is_read_as_it_is_written() {
        assert_eq!(share("950000\n", "1000000\n"), 950);
        assert_eq!(share("300000", "1000000"), 300);
        assert_eq!(share("1000000", "1000000"), MOST);
        assert_eq!(share("-1", "1000000"), MOST);
        assert_eq!(share("0", "1000000"), 0);
        assert_eq!(share("", ""), MOST);
        assert_eq!(share("950000", "0"), MOST);
    }

    #[test]
    fn a_refusal_says_who_can_allow_it() {
        let told = explain(&io::Error::from_raw_os_error(libc::EPERM)).to_string();
        for remedy in ["root", "ulimit -r", "CAP_SYS_NICE"] {
            assert!(told.contains(remedy), "{told}");
        }
        let other = explain(&io::Error::from_raw_os_error(libc::EINVAL)).to_string();
        assert_eq!(other, "--realtime: Invalid argument: drop it");
    }

    /// The policy belongs to the thread alone, so other tests are not affected.
    #[test]
    fn who_may_have_it_gets_it_and_its_children_do_not() {
        let policy = || {
            // SAFETY: the call only reads the calling thread's policy.
            unsafe {
                libc::syscall(libc::SYS_sched_getscheduler, 0) as i32 & !libc::SCHED_RESET_ON_FORK
            }
        };
        let seen = std::thread::spawn(move || {
            let granted = request();
            (granted, policy(), std::thread::spawn(policy).join().expect("it only asks"))
        });
        let (granted, own, child) = seen.join().expect("it only asks");
        match granted {
            Ok(share) => {
                assert!((LEAST..=MOST).contains(&share));
                assert_eq!(own, libc::SCHED_FIFO);
            }
            Err(error) => {
                assert_eq!(own, libc::SCHED_OTHER, "{error}");
            }
        }
        assert_eq!(child, libc::SCHED_OTHER);
    }
}
