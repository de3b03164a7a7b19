//! How many I/Os were handed to the ring's own threads (io-wq), and the CPU time of those threads.
//!
//! The best source is the kernel's tracepoint, counted by a perf event on each CPU: it costs
//! nothing if no I/O is handed over. An event on the worker's thread would be simpler, but makes
//! each of its context switches 0.4 to 0.7 us more expensive. Counting takes a privilege that few
//! users have besides root. The threads themselves are visible to everybody, since Linux 5.12.
#![expect(unsafe_code, reason = "the ring's queue has no safe wrapper")]

use std::ffi::CString;
use std::fs::File;
use std::io::{self, Read};

use fathom_core::Span;
use fathom_core::facts::IoWq;
use io_uring::{IoUring, opcode, squeue};

use super::counters::online_cpus;
use super::perf::{self, EventAttributes};
use super::system::System;
use super::thread_time::wait_of;

/// The file with the tracepoint's number, below tracefs.
const TRACEPOINT: &str = "events/io_uring/io_uring_queue_async_work/id";
/// The kernel's names for those threads: with the number of the thread that submits behind it.
const NAME: &str = "iou-wrk-";
/// And for the threads that submit the entries of a ring.
const SUBMITTER: &str = "iou-sqp-";
/// The longest filter that names every thread; the kernel takes less than a page.
const FILTER_MAX: usize = 4000;

/// Watches the ring's own threads for a session.
#[derive(Debug, Default)]
pub struct IoWqWatch {
    /// Determined when it is first needed, so that no run starts later because of it.
    means: Option<Allowed>,
    /// One for each CPU, for the threads that existed when they were made.
    events: Vec<File>,
}

/// The method that this kernel and the privileges allow.
#[derive(Debug)]
struct Allowed {
    tracepoint: Option<Tracepoint>,
    /// Whether the threads belong to the process rather than to the kernel.
    shows_threads: bool,
}

/// A tracepoint that can be counted.
#[derive(Debug)]
struct Tracepoint {
    number: u64,
    /// Counts nothing, and keeps the tracepoint in use: the last user to leave it waits for tens of
    /// milliseconds, which is longer than some points.
    _keeper: File,
}

impl IoWqWatch {
    /// Begins to count for the threads that this process has now. To be called when the workers
    /// exist.
    pub fn aim(&mut self) {
        let means = self.means.get_or_insert_with(Allowed::find);
        self.events.clear();
        let Some(tracepoint) = &means.tracepoint else { return };
        // Counting none is better than counting some.
        self.events = tracepoint.count(&thread_ids()).unwrap_or_default();
    }

    /// The I/Os that were handed over since this was aimed, and the threads that exist now.
    pub fn read(&self) -> IoWq {
        let shows_threads = self.means.as_ref().is_some_and(|means| means.shows_threads);
        IoWq {
            handed_over: match self.events.is_empty() {
                true => None,
                false => sum(&self.events).ok(),
            },
            threads: shows_threads.then(|| threads(&System::real())),
            waits: shows_threads.then(|| waits(&System::real())),
        }
    }
}

impl Allowed {
    fn find() -> Self {
        let ring = IoUring::new(2);
        let shows_threads =
            ring.as_ref().is_ok_and(|ring| ring.params().is_feature_native_workers());
        let tracepoint = ring.and_then(|ring| Tracepoint::find().and_then(|it| it.tested(ring)));
        Self { tracepoint: tracepoint.ok(), shows_threads }
    }
}

impl Tracepoint {
    fn find() -> io::Result<Self> {
        let number = perf::tracefs_text(TRACEPOINT)?.trim().parse().map_err(io::Error::other)?;
        let keeper = perf::open(&EventAttributes::of_tracepoint(number), first_cpu())?;
        Ok(Self { number, _keeper: keeper })
    }

    /// Counts on every CPU the I/Os that these threads hand over.
    fn count(&self, threads: &[u32]) -> io::Result<Vec<File>> {
        let filter = filter(threads);
        online_cpus()
            .into_iter()
            .map(|cpu| {
                let event = perf::open(&EventAttributes::of_tracepoint(self.number), cpu)?;
                perf::filter(&event, &filter)?;
                Ok(event)
            })
            .collect()
    }

    /// This, if it sees an I/O that is handed over on purpose. A thread's number in a container is
    /// not the one that the kernel filters by, and a counter that cannot see one I/O would call
    /// every run clean.
    fn tested(self, mut ring: IoUring) -> io::Result<Self> {
        let own = rustix::thread::gettid().as_raw_nonzero().get() as u32;
        let events = self.count(&[own])?;
        let before = sum(&events)?;
        let entry = opcode::Nop::new().build().flags(squeue::Flags::ASYNC);
        // SAFETY: an operation that does nothing has no memory that must outlive it.
        let pushed = unsafe { ring.submission().push(&entry) };
        pushed.map_err(io::Error::other)?;
        rustix::io::retry_on_intr(|| {
            ring.submit_and_wait(1).map_err(|error| {
                rustix::io::Errno::from_io_error(&error).unwrap_or(rustix::io::Errno::IO)
            })
        })?;
        match sum(&events)? - before {
            1 => Ok(self),
            seen => Err(io::Error::other(format!("of one I/O that was handed over it saw {seen}"))),
        }
    }
}

fn sum(events: &[File]) -> io::Result<u64> {
    events.iter().try_fold(0u64, |sum, mut event| {
        let mut count = [0; 8];
        event.read_exact(&mut count)?;
        Ok(sum.wrapping_add(u64::from_ne_bytes(count)))
    })
}

/// The filter that names the threads for the kernel. If there are too many to name each, it is the
/// range from the first to the last: those of one process are mostly next to each other.
fn filter(threads: &[u32]) -> CString {
    let each: Vec<String> = threads.iter().map(|id| format!("common_pid=={id}")).collect();
    let mut text = each.join("||");
    if FILTER_MAX < text.len() {
        let first = threads.iter().min().copied().unwrap_or_default();
        let last = threads.iter().max().copied().unwrap_or_default();
        text = format!("common_pid>={first}&&common_pid<={last}");
    }
    CString::new(text).expect("numbers and operators contain no zero")
}

/// The threads of this process.
fn thread_ids() -> Vec<u32> {
    System::real().names("proc/self/task").iter().filter_map(|name| name.parse().ok()).collect()
}

/// Threads of this process whose name begins so.
fn named(system: &System, name: &str) -> Vec<u32> {
    let ids = system.names("proc/self/task").into_iter().filter_map(|name| name.parse().ok());
    let is_named = |id: &u32| {
        let own = system.text(format!("proc/self/task/{id}/comm"));
        own.is_some_and(|own| own.starts_with(name))
    };
    ids.filter(is_named).collect()
}

/// How long each of the rings' threads was ready to run and did not run, as far as the kernel
/// reports it.
fn waits(system: &System) -> Vec<(u32, Span)> {
    let ids = [named(system, NAME), named(system, SUBMITTER)].concat();
    ids.into_iter().filter_map(|id| Some((id, wait_of(system, id)?.time))).collect()
}

/// The ring's own threads and their CPU time.
fn threads(system: &System) -> Vec<(u32, Span)> {
    // Time on a CPU, time that it waited for one, how often it ran.
    let cpu = |id: u32| -> Option<Span> {
        let text = system.text(format!("proc/self/task/{id}/schedstat"))?;
        Some(Span(text.split_whitespace().next()?.parse().ok()?))
    };
    named(system, NAME).into_iter().filter_map(|id| Some((id, cpu(id)?))).collect()
}

fn first_cpu() -> u32 {
    online_cpus().first().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_filter_names_each_thread_or_their_range() {
        assert_eq!(filter(&[7, 31]).as_c_str(), c"common_pid==7||common_pid==31");
        let many: Vec<u32> = (70_000..70_500).collect();
        assert_eq!(filter(&many).as_c_str(), c"common_pid>=70000&&common_pid<=70499");
        let most: Vec<u32> = (4_000_000..4_000_160).collect();
        assert!(filter(&most).to_bytes().starts_with(b"common_pid==4000000||"));
        assert!(filter(&most).count_bytes() < 4095);
    }

    #[test]
    fn the_rings_threads_are_told_from_others_by_their_name() {
        let folder = tempfile::tempdir().unwrap();
        let tasks = folder.path().join("proc/self/task");
        for (id, name, times) in [
            (100, "fathom", "9000 1 2"),
            (101, "fathom-0", "8000 1 2"),
            (102, "iou-wrk-101", "1200 34 5"),
            (103, "iou-wrk-101", "300 0 1"),
            (104, "iou-sqp-101", "7000 1 2"),
        ] {
            let task = tasks.join(id.to_string());
            fs::create_dir_all(&task).unwrap();
            fs::write(task.join("comm"), format!("{name}\n")).unwrap();
            fs::write(task.join("schedstat"), format!("{times}\n")).unwrap();
        }
        let found = threads(&System::at(folder.path()));
        assert_eq!(found, [(102, Span(1200)), (103, Span(300))]);
        let waited = waits(&System::at(folder.path()));
        assert_eq!(waited, [(102, Span(34)), (103, Span(0)), (104, Span(1))]);
        // The thread ended between the reading of its name and of its time.
        fs::remove_file(tasks.join("102/schedstat")).unwrap();
        assert_eq!(threads(&System::at(folder.path())), [(103, Span(300))]);
        assert_eq!(waits(&System::at(folder.path())), [(103, Span(0)), (104, Span(1))]);
    }

    /// Submits operations that do nothing and asks the kernel to hand them over.
    fn hand_over(ring: &mut IoUring, count: u32) {
        for _ in 0..count {
            let entry = opcode::Nop::new().build().flags(squeue::Flags::ASYNC);
            // SAFETY: as above, no memory is involved.
            unsafe { ring.submission().push(&entry) }.unwrap();
        }
        ring.submit_and_wait(count as usize).unwrap();
        assert_eq!(ring.completion().count(), count as usize);
    }

    #[test]
    fn what_is_handed_over_is_counted_or_at_least_seen() {
        let Ok(mut ring) = IoUring::new(64) else {
            println!("skipped: io_uring does not work here");
            return;
        };
        let mut watch = IoWqWatch::default();
        assert_eq!(watch.read(), IoWq::default());
        watch.aim();
        let before = watch.read();
        hand_over(&mut ring, 60);
        let after = watch.read();
        match (before.handed_over, after.handed_over) {
            (Some(before), Some(after)) => assert_eq!(after - before, 60),
            counted => {
                assert_eq!(counted, (None, None));
                println!("skipped: only root can count what is handed over");
            }
        }
        // Its threads wait some seconds for more work before they end.
        match after.threads {
            Some(threads) => {
                assert!(threads.iter().any(|(_, cpu)| *cpu > Span(0)), "{threads:?}");
            }
            None => assert!(!ring.params().is_feature_native_workers()),
        }
        // Aiming again restarts the watch, which then counts what is there now.
        watch.aim();
        let before = watch.read().handed_over;
        hand_over(&mut ring, 1);
        assert_eq!(watch.read().handed_over, before.map(|before| before + 1));
    }
}
