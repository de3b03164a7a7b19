//! Whether the system has enough for a run: threads, open files, address space. A run that needs
//! more is refused before anything starts, with the limit's name; in the middle of a run it would
//! be an abort.

use std::path::Path;

use fathom_core::Bytes;
use fathom_core::measure::Tally;
use fathom_core::plan::worker_count;
use fathom_core::spec::{BackendKind, Stream, Workers};
use rustix::process::{Resource, getrlimit};

use crate::error::Error;
use crate::resolve;

/// Files that a process has open before it opens a target, with some for the kernel's own.
const FILES: u64 = 16;
/// The files that a worker opens: a ring and the descriptor that wakes it.
const FILES_A_WORKER: u64 = 3;
/// Threads besides the workers.
const THREADS: u64 = 8;
/// Address space of the program itself, with its libraries and the result it builds.
const PROGRAM: u64 = 64 << 20;
/// The stack that the main thread needs to read the command line, with a reserve.
const MAIN_STACK: u64 = 1 << 20;
/// Address space of a worker's stack, and of a thread that makes only one call.
const STACK: u64 = 2 << 20;
const HELPER_STACK: u64 = 128 << 10;
/// Pieces of the address space of a thread: two stacks, each with a guard.
const PIECES_A_THREAD: u64 = 4;
/// The memory of a distribution that never grows; one that grows takes memory for its values.
const ROOMY: u64 = 58 << 10;
const GROWING: u64 = 4 << 10;
/// Tallies of a worker: the one that it fills, the one that is merged, and those in between.
const TALLIES: u64 = 4;

/// Refuses streams that run together on this backend if there is not enough room for them here.
///
/// # Errors
///
/// When a limit of the system is too small; names it.
pub fn check(streams: &[Stream], backend: BackendKind) -> Result<(), Error> {
    SystemLimits::here().check(Needs::of(streams, backend))
}

/// Refuses to begin if the address space or the stack is smaller than the program itself needs: it
/// could not even report an error, because a failed allocation or a full stack is an abort.
///
/// # Errors
///
/// When `ulimit -v` or `ulimit -s` allows less.
pub fn check_program() -> Result<(), Error> {
    let least = [
        (Resource::As, PROGRAM, "ulimit -v", "address space"),
        (Resource::Stack, MAIN_STACK, "ulimit -s", "stack"),
    ];
    for (resource, least, name, what) in least {
        if let Some(limit) = getrlimit(resource).current.filter(|limit| *limit < least) {
            let (limit, least) = (Bytes(limit), Bytes(least));
            let problem = format!("it allows {limit} of {what}, and fathom alone takes {least}");
            return Err(Error::target(name, problem, "raise it"));
        }
    }
    Ok(())
}

/// The available resources.
#[derive(Clone, Copy, Debug)]
struct SystemLimits {
    /// Threads that may still be started, and the limit's name.
    threads: Option<(u64, &'static str)>,
    /// Pieces that the address space may consist of.
    pieces: Option<u64>,
    /// Files that may be open.
    files: Option<u64>,
    /// Address space.
    space: Option<u64>,
    /// Usable memory; none if it is unknown.
    memory: Option<u64>,
}

/// The needs of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Needs {
    workers: u64,
    helpers: u64,
    files: u64,
    /// Memory of distributions, of stacks and of buffers.
    tallies: u64,
    buffers: u64,
}

impl SystemLimits {
    /// Those of this process. An unknown limit is no limit.
    fn here() -> Self {
        let number =
            |path: &str| -> Option<u64> { std::fs::read_to_string(path).ok()?.trim().parse().ok() };
        let is_root = rustix::process::geteuid().is_root();
        let threads = [
            (number("/proc/sys/kernel/threads-max"), "kernel.threads-max"),
            (number("/proc/sys/kernel/pid_max"), "kernel.pid_max"),
            (getrlimit(Resource::Nproc).current.filter(|_| !is_root), "ulimit -u"),
            (pids_max(), "pids.max of the control group"),
        ];
        let system = rustix::system::sysinfo();
        let memory = system.totalram.saturating_mul(u64::from(system.mem_unit));
        let known = threads.into_iter().filter_map(|(limit, name)| Some((limit?, name)));
        Self {
            threads: known.min(),
            pieces: number("/proc/sys/vm/max_map_count"),
            files: getrlimit(Resource::Nofile).current,
            space: getrlimit(Resource::As).current,
            // The group's own limit is checked where buffers are counted.
            memory: Some(memory).filter(|memory| *memory > 0),
        }
    }

    /// Refuses needs that exceed a resource.
    fn check(&self, needs: Needs) -> Result<(), Error> {
        let refuse = |what: String, remedy: &str| {
            Err(Error::option("this load", what, format!("{remedy}; nothing was started")))
        };
        let threads = needs.workers + needs.helpers + THREADS;
        if let Some((limit, name)) = self.threads.filter(|(limit, _)| *limit < threads) {
            let what = format!("it needs {threads} threads, and {name} allows {limit}");
            return refuse(
                what,
                "use fewer --workers, a smaller --queue-depth, or --backend uring",
            );
        }
        let pieces = threads.saturating_mul(PIECES_A_THREAD);
        if let Some(limit) = self.pieces.filter(|limit| *limit < pieces) {
            let what = format!(
                "its {threads} threads need {pieces} pieces of memory, and vm.max_map_count allows \
                 {limit}"
            );
            return refuse(what, "use a smaller --queue-depth or --backend uring");
        }
        if let Some(limit) = self.files.filter(|limit| *limit < needs.files) {
            let what = format!("it opens {} files, and ulimit -n allows {limit}", needs.files);
            return refuse(what, "raise it, or use fewer targets or --workers");
        }
        let memory = needs.tallies.saturating_add(needs.buffers);
        if let Some(limit) = self.memory.filter(|limit| limit / 2 < memory) {
            let what = format!(
                "what it counts of each target and its buffers take {}, more than half of the \
                 memory of {}",
                Bytes(memory),
                Bytes(limit)
            );
            return refuse(what, "use fewer targets or --workers");
        }
        let stacks = (needs.workers + THREADS) * STACK + needs.helpers * HELPER_STACK;
        let space = PROGRAM.saturating_add(stacks).saturating_add(memory);
        if let Some(limit) = self.space.filter(|limit| *limit < space) {
            let what = format!(
                "it may take {} of address space, and ulimit -v allows {}",
                Bytes(space),
                Bytes(limit)
            );
            return refuse(what, "raise it, or use fewer targets or --workers");
        }
        Ok(())
    }
}

impl Needs {
    /// Of these streams, which run together.
    fn of(streams: &[Stream], backend: BackendKind) -> Self {
        let mut needs = Self { files: FILES, ..Self::default() };
        for stream in streams {
            let (workers, regions) = (u64::from(worker_count(stream)), stream.regions.len() as u64);
            let own = match stream.workers {
                Workers::PerTarget(_) => 1,
                Workers::Total(_) => regions,
            };
            let open = if stream.pacing.is_open() { 2 } else { 1 };
            let size = if own <= Tally::ROOMY as u64 { ROOMY } else { GROWING };
            needs.workers += workers;
            needs.files += regions + workers * FILES_A_WORKER;
            needs.tallies = needs.tallies.saturating_add(
                workers.saturating_mul(own).saturating_mul(2 * open * TALLIES * size),
            );
            let depth = u64::from(stream.pacing.queue_depth());
            if backend == BackendKind::Sync && workers < depth {
                needs.helpers += depth;
            }
        }
        match backend {
            // All workers of a simulated device are one thread, and nothing is read or written.
            BackendKind::Sim => Self { tallies: needs.tallies, ..Self::default() },
            _ => {
                let buffers = resolve::workers::buffers(streams)
                    .saturating_add(resolve::workers::pools(streams));
                Self { buffers, ..needs }
            }
        }
    }
}

/// How many threads the control group may have, if it has a limit: the smallest of its own and of
/// those around it.
fn pids_max() -> Option<u64> {
    let groups = std::fs::read_to_string("/proc/self/cgroup").ok()?;
    let within = |line: &str| match line.split_once(":pids:/") {
        Some((_, path)) => Some(Path::new("/sys/fs/cgroup/pids").join(path)),
        None => line.strip_prefix("0::/").map(|path| Path::new("/sys/fs/cgroup").join(path)),
    };
    let limits = groups.lines().filter_map(within).flat_map(|folder| {
        let above = folder.ancestors().take_while(|above| above.starts_with("/sys/fs/cgroup"));
        let limit = |above: &Path| std::fs::read_to_string(above.join("pids.max")).ok();
        above.filter_map(limit).filter_map(|text| text.trim().parse().ok()).collect::<Vec<u64>>()
    });
    limits.min()
}

#[cfg(test)]
mod tests {
    use fathom_core::Bytes;
    use fathom_core::spec::{Pacing, Region};

    use super::*;

    const PLENTY: SystemLimits = SystemLimits {
        threads: Some((32_768, "kernel.pid_max")),
        pieces: Some(65_530),
        files: Some(1 << 20),
        space: None,
        memory: Some(8 << 30),
    };

    fn stream(targets: u32, workers: Workers, queue_depth: u32) -> Stream {
        let region = |target| Region { target, offset: Bytes(0), length: Bytes(1 << 20) };
        let regions = (0..targets).map(region).collect();
        let pacing = Pacing::closed(queue_depth);
        Stream { workers, pacing, ..Stream::reading("test", regions) }
    }

    fn refusal(limits: SystemLimits, stream: Stream, backend: BackendKind) -> String {
        let needs = Needs::of(&[stream], backend);
        limits.check(needs).map_or_else(|error| error.to_string(), |()| "fits".to_owned())
    }

    #[test]
    fn what_does_not_fit_is_refused_by_the_name_of_the_limit() {
        let deep = || stream(1, Workers::PerTarget(1), 32_768);
        let usual = || stream(1, Workers::PerTarget(1), 32);
        let (uring, sync) = (BackendKind::Uring, BackendKind::Sync);
        assert_eq!(refusal(PLENTY, usual(), sync), "fits");
        assert_eq!(refusal(PLENTY, deep(), uring), "fits");
        let why = refusal(PLENTY, deep(), sync);
        assert!(why.contains("kernel.pid_max allows 32768"), "{why}");
        let why = refusal(SystemLimits { threads: None, ..PLENTY }, deep(), sync);
        assert!(why.contains("vm.max_map_count allows 65530"), "{why}");
        for (limits, name) in [
            (SystemLimits { threads: Some((1, "ulimit -u")), ..PLENTY }, "ulimit -u allows 1"),
            (SystemLimits { files: Some(4), ..PLENTY }, "ulimit -n allows 4"),
            (SystemLimits { space: Some(32 << 20), ..PLENTY }, "ulimit -v allows 32 MiB"),
        ] {
            let why = refusal(limits, usual(), uring);
            assert!(why.contains(name) && why.contains("nothing was started"), "{why}");
        }
        // An unknown limit is no limit.
        let unknown =
            SystemLimits { threads: None, pieces: None, files: None, space: None, memory: None };
        assert_eq!(refusal(unknown, deep(), sync), "fits");
    }

    #[test]
    fn many_targets_take_what_is_counted_of_them() {
        let folder = || stream(4096, Workers::Total(2), 32);
        assert_eq!(refusal(PLENTY, folder(), BackendKind::Uring), "fits");
        let why = refusal(PLENTY, stream(4096, Workers::Total(500), 500), BackendKind::Uring);
        assert!(why.contains("half of the memory of 8 GiB"), "{why}");
    }
}
