//! Which backend carries the I/Os on this host, and why.
//!
//! io_uring is best and often forbidden: by a sysctl, by a container's seccomp filter, by an old
//! kernel. So every backend is tried before it is chosen, and the reason goes into the document.

use std::io;

use fathom_core::Refusal;
use fathom_core::facts::Target;
use fathom_core::spec::{Access, BackendKind, Cache, RingMode, SubmissionThread};
use rustix::io::Errno;

use crate::backend::Unusable;
use crate::open_target::OpenTarget;
use crate::target_error::plain;
use crate::{aio, uring};

/// A backend that works here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// Its kind.
    pub kind: BackendKind,
    /// The reason, as part of a sentence for people.
    pub reason: String,
}

/// A refusal of a backend: about the options that it cannot support here, such as "--polled", or
/// about the backend itself if it cannot be used at all.
fn refuse(kind: BackendKind, options: Option<&str>, why: Unusable) -> Refusal {
    let Unusable { cause, remedy } = why;
    match options {
        Some(options) => Refusal::denied(options, cause, remedy),
        None => Refusal::denied(
            format!("the {} backend", kind.name()),
            format!("it cannot be used: {cause}"),
            remedy,
        ),
    }
}

/// Chooses a backend that works here: the requested one, or else the best one.
///
/// # Errors
///
/// When the requested one does not work here.
pub fn choose(requested: Option<BackendKind>, access: Access) -> Result<Choice, Refusal> {
    choose_from(requested, access.cache, &Here)
}

/// The access of a stream to its targets.
#[derive(Clone, Debug)]
pub struct Way<'a> {
    /// The access.
    pub access: Access,
    /// The facts about each target, and the target opened for this access.
    pub targets: Vec<(&'a Target, &'a OpenTarget)>,
}

/// Chooses the backend for these streams, as [`choose`] does, and tries the modes of io_uring and
/// the commands of NVMe generic devices that their access needs.
///
/// # Errors
///
/// When the requested backend does not work here, or does not support the access.
pub fn choose_for(requested: Option<BackendKind>, ways: &[Way<'_>]) -> Result<Choice, Refusal> {
    if ways.iter().any(|way| way.access.mapped) {
        return choose_for_mappings(requested);
    }
    let targets = || ways.iter().flat_map(|way| &way.targets).map(|(_, open)| *open);
    let commands = targets().find(|target| target.passthrough.is_some());
    if commands.is_none() && ways.iter().all(|way| way.access.ring == RingMode::USUAL) {
        // The same backend carries all streams: one that suits the page cache too.
        let buffered = ways.iter().find(|way| way.access.cache == Cache::Buffered);
        let access = buffered.or(ways.first()).map_or(Access::DIRECT, |way| way.access);
        return choose(requested, access);
    }
    let kind = requested.unwrap_or(BackendKind::Uring);
    if let (true, Some(target)) = (kind != BackendKind::Uring, commands) {
        let cause = format!("it sends no NVMe commands, and {} takes nothing else", target.name);
        let remedy = "use --backend uring, or measure the block device";
        return Err(refuse(kind, None, Unusable::new(cause, remedy)));
    }
    assert!(kind == BackendKind::Uring, "the command line refuses modes of other backends");
    let plain = targets().find(|target| target.passthrough.is_none());
    if let (Some(commands), Some(plain)) = (commands, plain) {
        let cause = format!(
            "{} takes NVMe commands and {} takes none, and a ring carries one or the other",
            commands.name, plain.name
        );
        let remedy = "measure them one after the other";
        return Err(refuse(kind, None, Unusable::new(cause, remedy)));
    }
    if let Err(Unusable { cause, remedy }) = Here.uring() {
        let remedy = format!("{remedy}; no other backend can do what is asked");
        return Err(refuse(kind, None, Unusable::new(cause, remedy)));
    }
    let mut found = Vec::new();
    for (index, way) in ways.iter().enumerate() {
        let mode = way.access.ring;
        let tried = |name: &str| {
            let before = ways[..index].iter().filter(|other| other.access.ring == mode);
            before.flat_map(|other| &other.targets).any(|(_, open)| open.name == name)
        };
        let new = way.targets.iter().filter(|(_, open)| !tried(&open.name)).copied();
        match uring::try_out(new, mode) {
            Ok(Some(ring)) => found.push((mode, ring)),
            Ok(None) => {}
            Err(why) => {
                // With commands, the commands may be the part that does not work.
                let options = commands.is_none().then(|| uring::options(mode));
                return Err(refuse(kind, options, why));
            }
        }
    }
    let reasons =
        found.into_iter().map(|(mode, ring)| reason_of_mode(mode, commands.is_some(), ring));
    let mut reasons: Vec<String> = reasons.collect();
    reasons.dedup();
    let reason =
        format!("io_uring works here as asked: {}", reasons.join("; for another stream: "));
    Ok(Choice { kind, reason })
}

/// Copies need no system call, and the backend that copies carries the other streams too.
fn choose_for_mappings(requested: Option<BackendKind>) -> Result<Choice, Refusal> {
    match requested {
        None | Some(BackendKind::Sync) => Ok(Choice {
            kind: BackendKind::Sync,
            reason: "mapped targets are read and written by copying".to_owned(),
        }),
        Some(kind) => {
            let cause =
                "mapped targets (--mmap) are read and written by copying, which it does not do";
            let why = Unusable::new(cause, "use --backend sync, or drop --mmap");
            Err(refuse(kind, None, why))
        }
    }
}

/// The mode of io_uring that was requested and that works here.
fn reason_of_mode(mode: RingMode, commands: bool, ring: uring::Facts) -> String {
    let mut parts = Vec::new();
    if commands {
        parts.push("NVMe commands past the block layer".to_owned());
    }
    if mode.polled {
        parts.push("completions polled for in the device's queue (IOPOLL)".to_owned());
    }
    match mode.submission_thread {
        Some(SubmissionThread { cpu: Some(cpu) }) => {
            parts.push(format!("a submission thread of the kernel on CPU {cpu} (SQPOLL)"));
        }
        Some(SubmissionThread { cpu: None }) => {
            parts.push("a submission thread of the kernel for each worker (SQPOLL)".to_owned());
        }
        None => {}
    }
    parts.push(ring.setup.to_string());
    parts.join("; ")
}

/// The source of the answer whether a backend works. Tests answer like other hosts.
trait Probes {
    fn uring(&self) -> Result<String, Unusable>;
    fn aio(&self) -> Result<(), Unusable>;
}

fn choose_from(
    requested: Option<BackendKind>,
    cache: Cache,
    probes: &impl Probes,
) -> Result<Choice, Refusal> {
    let Some(kind) = requested else {
        return Ok(best(cache, probes));
    };
    let refused = |Unusable { cause, remedy }| {
        let remedy = format!("{remedy}, or let --backend auto find one that works");
        refuse(kind, None, Unusable::new(cause, remedy))
    };
    let reason = match kind {
        BackendKind::Uring => {
            let setup = probes.uring().map_err(refused)?;
            format!("io_uring was asked for ({setup})")
        }
        BackendKind::Aio => {
            probes.aio().map_err(refused)?;
            match cache {
                Cache::Direct => "native AIO was asked for".to_owned(),
                Cache::Buffered => {
                    "native AIO was asked for, although it serves buffered I/Os one \
                                    after the other"
                        .to_owned()
                }
            }
        }
        BackendKind::Sync => "pread and pwrite were asked for".to_owned(),
        BackendKind::Sim => {
            let remedy = "name a sim: target, such as sim:ssd, or leave out --backend";
            let why = Unusable::new("it does not reach real targets", remedy);
            return Err(refuse(kind, None, why));
        }
    };
    Ok(Choice { kind, reason })
}

fn best(cache: Cache, probes: &impl Probes) -> Choice {
    let no_uring = match probes.uring() {
        Ok(setup) => {
            let reason = format!("io_uring works here ({setup})");
            return Choice { kind: BackendKind::Uring, reason };
        }
        Err(why) => why.cause,
    };
    if cache == Cache::Buffered {
        let reason = format!(
            "{no_uring}: using pread and pwrite, because native AIO serves buffered I/Os one after \
             the other"
        );
        return Choice { kind: BackendKind::Sync, reason };
    }
    match probes.aio() {
        Ok(()) => {
            Choice { kind: BackendKind::Aio, reason: format!("{no_uring}: using native AIO") }
        }
        Err(no_aio) => Choice {
            kind: BackendKind::Sync,
            reason: format!("{no_uring}; {}: using pread and pwrite", no_aio.cause),
        },
    }
}

/// This host.
struct Here;

impl Probes for Here {
    fn uring(&self) -> Result<String, Unusable> {
        match uring::probe() {
            Ok(setup) => Ok(setup.to_string()),
            Err(error) => Err(no_uring_because(&error, sysctl("io_uring_disabled"), filtered())),
        }
    }

    fn aio(&self) -> Result<(), Unusable> {
        aio::probe().map_err(|error| no_aio_because(&error, filtered()))
    }
}

fn no_uring_because(error: &io::Error, disabled: Option<u64>, filtered: bool) -> Unusable {
    let errno = error.raw_os_error().map(Errno::from_raw_os_error);
    match (errno, disabled) {
        (Some(Errno::PERM), Some(level @ 1..)) => Unusable::new(
            format!("io_uring is switched off here (kernel.io_uring_disabled = {level})"),
            "switch it on with sysctl kernel.io_uring_disabled=0",
        ),
        // The sysctl exists only if the kernel has io_uring, so its use is forbidden here.
        (Some(Errno::PERM | Errno::ACCESS), _) | (Some(Errno::NOSYS), Some(_)) if filtered => {
            Unusable::new(
                "io_uring is forbidden here by a seccomp filter, as in many containers",
                "run outside the container or allow io_uring_setup, io_uring_enter and \
                 io_uring_register in its seccomp profile",
            )
        }
        (Some(Errno::PERM | Errno::ACCESS), _) => Unusable::new(
            "io_uring is forbidden here by a security policy",
            "allow io_uring in the policy of this host",
        ),
        // Kernels before Linux 6.6 have io_uring without the sysctl, and a filter may give the answer
        // of a kernel that has neither.
        (Some(Errno::NOSYS), None) if filtered => Unusable::new(
            "a seccomp filter hides io_uring here, as in many containers, or this kernel has none",
            "use a kernel from Linux 5.6 on that has it, and allow io_uring_setup, io_uring_enter \
             and io_uring_register in the container's seccomp profile",
        ),
        (Some(Errno::NOSYS), _) => Unusable::new(
            "this kernel has no io_uring",
            "use a kernel from Linux 5.6 on that has it",
        ),
        (Some(Errno::NOMEM), _) => Unusable::new(
            "there is too little lockable memory for io_uring",
            "raise it with ulimit -l",
        ),
        _ => Unusable::new(
            format!("io_uring does not work here ({})", plain(error)),
            "use a kernel from Linux 5.6 on",
        ),
    }
}

fn no_aio_because(error: &io::Error, filtered: bool) -> Unusable {
    match error.raw_os_error().map(Errno::from_raw_os_error) {
        Some(Errno::AGAIN) => Unusable::new(
            "all native AIO contexts are in use (fs.aio-nr has reached fs.aio-max-nr)",
            "raise it with sysctl fs.aio-max-nr=1048576",
        ),
        Some(Errno::PERM | Errno::ACCESS | Errno::NOSYS) if filtered => Unusable::new(
            "native AIO is forbidden here by a seccomp filter",
            "allow io_setup, io_submit, io_getevents and io_destroy in the seccomp profile",
        ),
        Some(Errno::NOSYS) => Unusable::new(
            "this kernel has no native AIO",
            "use a kernel that is built with CONFIG_AIO",
        ),
        _ => Unusable::new(
            format!("native AIO does not work here ({})", plain(error)),
            "use another backend",
        ),
    }
}

fn sysctl(name: &str) -> Option<u64> {
    std::fs::read_to_string(format!("/proc/sys/kernel/{name}")).ok()?.trim().parse().ok()
}

/// Whether a seccomp filter watches this thread.
fn filtered() -> bool {
    std::fs::read_to_string("/proc/thread-self/status")
        .is_ok_and(|status| status.lines().any(|line| line == "Seccomp:\t2"))
}

#[cfg(test)]
mod tests {
    use fathom_core::Bytes;

    use super::*;
    use crate::open_target::Passthrough;

    struct Host {
        uring: Result<(), (Errno, Option<u64>)>,
        aio: Result<(), Errno>,
        filtered: bool,
    }

    impl Probes for Host {
        fn uring(&self) -> Result<String, Unusable> {
            match self.uring {
                Ok(()) => Ok("plain ring".to_owned()),
                Err((errno, disabled)) => {
                    Err(no_uring_because(&errno.into(), disabled, self.filtered))
                }
            }
        }

        fn aio(&self) -> Result<(), Unusable> {
            self.aio.map_err(|errno| no_aio_because(&errno.into(), self.filtered))
        }
    }

    const ALL_WORKS: Host = Host { uring: Ok(()), aio: Ok(()), filtered: false };

    fn switched_off() -> Host {
        Host { uring: Err((Errno::PERM, Some(2))), ..ALL_WORKS }
    }

    fn auto(cache: Cache, host: &Host) -> (BackendKind, String) {
        let choice = choose_from(None, cache, host).unwrap();
        (choice.kind, choice.reason)
    }

    #[test]
    fn auto_takes_the_best_that_works_and_says_why() {
        let (kind, reason) = auto(Cache::Direct, &ALL_WORKS);
        assert_eq!(
            (kind, reason.as_str()),
            (BackendKind::Uring, "io_uring works here (plain ring)")
        );

        let (kind, reason) = auto(Cache::Direct, &switched_off());
        assert_eq!(kind, BackendKind::Aio);
        assert_eq!(
            reason,
            "io_uring is switched off here (kernel.io_uring_disabled = 2): using native AIO"
        );

        let filtered =
            Host { uring: Err((Errno::NOSYS, Some(0))), aio: Err(Errno::PERM), filtered: true };
        let (kind, reason) = auto(Cache::Direct, &filtered);
        assert_eq!(kind, BackendKind::Sync);
        assert_eq!(
            reason,
            "io_uring is forbidden here by a seccomp filter, as in many containers; native AIO is \
             forbidden here by a seccomp filter: using pread and pwrite"
        );

        let old = Host { uring: Err((Errno::NOSYS, None)), ..ALL_WORKS };
        assert_eq!(
            auto(Cache::Direct, &old),
            (BackendKind::Aio, "this kernel has no io_uring: using native AIO".to_owned())
        );

        let old_and_filtered = Host { filtered: true, ..old };
        assert_eq!(
            auto(Cache::Direct, &old_and_filtered).1,
            "a seccomp filter hides io_uring here, as in many containers, or this kernel has none: \
             using native AIO"
        );
    }

    #[test]
    fn buffered_access_passes_over_native_aio() {
        assert_eq!(auto(Cache::Buffered, &ALL_WORKS).0, BackendKind::Uring);
        let (kind, reason) = auto(Cache::Buffered, &switched_off());
        assert_eq!(kind, BackendKind::Sync);
        assert!(reason.contains("one after the other"), "{reason}");
        let choice = choose_from(Some(BackendKind::Aio), Cache::Buffered, &ALL_WORKS).unwrap();
        assert!(choice.reason.contains("one after the other"), "{}", choice.reason);
    }

    #[test]
    fn what_was_asked_for_is_taken_or_refused_with_a_remedy() {
        for kind in [BackendKind::Uring, BackendKind::Aio, BackendKind::Sync] {
            assert_eq!(choose_from(Some(kind), Cache::Direct, &ALL_WORKS).unwrap().kind, kind);
        }
        let error = choose_from(Some(BackendKind::Uring), Cache::Direct, &switched_off());
        assert_eq!(
            error.unwrap_err().to_string(),
            "the uring backend: it cannot be used: io_uring is switched off here \
             (kernel.io_uring_disabled = 2): switch it on with sysctl kernel.io_uring_disabled=0, \
             or let --backend auto find one that works"
        );
        let full = Host { aio: Err(Errno::AGAIN), ..ALL_WORKS };
        let error = choose_from(Some(BackendKind::Aio), Cache::Direct, &full).unwrap_err();
        assert!(error.to_string().contains("sysctl fs.aio-max-nr"), "{error}");
        assert!(choose_from(Some(BackendKind::Sim), Cache::Direct, &ALL_WORKS).is_err());
    }

    fn target(name: &str, commands: bool) -> OpenTarget {
        OpenTarget {
            name: name.to_owned(),
            file: tempfile::tempfile().unwrap().into(),
            size: Bytes(1 << 20),
            alignment: Bytes(1),
            passthrough: commands.then(|| Passthrough::invented(1, 9, false)),
        }
    }

    fn refused(requested: Option<BackendKind>, targets: &[OpenTarget]) -> String {
        let facts: Vec<Target> =
            targets.iter().map(|target| Target::simulated(&target.name, target.size)).collect();
        let way = Way { access: Access::DIRECT, targets: facts.iter().zip(targets).collect() };
        choose_for(requested, &[way]).unwrap_err().to_string()
    }

    #[test]
    fn commands_are_refused_to_backends_that_send_none() {
        let targets = [target("file", false), target("/dev/ng0n1", true)];
        for kind in [BackendKind::Aio, BackendKind::Sync] {
            assert_eq!(
                refused(Some(kind), &targets),
                format!(
                    "the {} backend: it cannot be used: it sends no NVMe commands, and /dev/ng0n1 takes \
                     nothing else: use --backend uring, or measure the block device",
                    kind.name()
                )
            );
        }
    }

    #[test]
    fn one_ring_does_not_carry_commands_and_plain_ios() {
        for order in [[true, false], [false, true]] {
            let name = |commands| if commands { "/dev/ng0n1" } else { "file" };
            let targets = order.map(|commands| target(name(commands), commands));
            assert_eq!(
                refused(None, &targets),
                "the uring backend: it cannot be used: /dev/ng0n1 takes NVMe commands and file takes \
                 none, and a ring carries one or the other: measure them one after the other"
            );
        }
    }

    #[test]
    fn what_takes_no_commands_is_refused_after_one_was_tried() {
        // Where io_uring is forbidden, the refusal gives that reason as well.
        let told = refused(None, &[target("not-nvme", true)]);
        assert!(told.starts_with("the uring backend: it cannot be used: "), "{told}");
        if uring::probe().is_ok() {
            assert!(told.contains("does not take NVMe commands for not-nvme"), "{told}");
        }
    }

    #[test]
    fn a_mode_that_does_not_work_is_told_by_its_option() {
        let why = Unusable::new("vda cannot be polled", "drop --polled");
        let refusal = refuse(BackendKind::Uring, Some("--polled"), why);
        assert_eq!(refusal.to_string(), "--polled: vda cannot be polled: drop --polled");
    }

    #[test]
    fn the_reason_names_every_mode_that_was_asked_for() {
        let ring = uring::Facts {
            setup: uring::Setup::Plain,
            registered_buffers: true,
            registered_files: true,
            timed_wait: true,
        };
        for (thread, told) in [(Some(3), "on CPU 3 (SQPOLL)"), (None, "for each worker (SQPOLL)")] {
            let thread = Some(SubmissionThread { cpu: thread });
            let ring_mode = RingMode { polled: true, submission_thread: thread };
            let reason = reason_of_mode(ring_mode, true, ring);
            for part in ["NVMe commands", "(IOPOLL)", told] {
                assert!(reason.contains(part), "{reason} lacks {part}");
            }
        }
    }
}
