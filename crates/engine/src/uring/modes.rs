//! Whether the requested mode of io_uring works with these targets. One read of each target finds
//! out, because there is no other reliable sign that a driver can be polled, a thread be created or
//! a command be sent. A refusal gives the obstacle and the remedy.

use std::io;

use fathom_core::Span;
use fathom_core::facts::{Layer, Target};
use fathom_core::measure::{Direction, ErrorKind};
use fathom_core::spec::{RingMode, SubmissionThread};
use rustix::io::Errno;

use super::{Commands, Entries, Facts, Files, UringOf};
use crate::backend::{Backend, Io, RealBackend, Shape, Unusable, failure};
use crate::open_target::OpenTarget;

/// How long one read may take. A longer time is not caused by the mode, and is left to the
/// measurement.
const PATIENCE: Span = Span::from_secs(5);

/// The smallest read.
const SECTOR: u64 = 512;

/// Reads once from each target in the requested mode, and reports how the rings were set up.
///
/// # Errors
///
/// When the kernel, the user's rights, a file system or a driver do not allow the mode. A read that
/// fails as it would in any mode is not an error here: the run will report it. Without a target
/// there is no answer.
pub(crate) fn try_out<'a>(
    targets: impl Iterator<Item = (&'a Target, &'a OpenTarget)>,
    mode: RingMode,
) -> Result<Option<Facts>, Unusable> {
    let mut found = None;
    for (facts, target) in targets {
        if mode.polled {
            pollable(facts)?;
        }
        let one = std::slice::from_ref(target);
        let (ring, result) = match target.passthrough {
            Some(_) => read_once::<Commands>(one, mode),
            None => read_once::<Files>(one, mode),
        }
        .map_err(|cause| no_ring_because(&cause, target, mode))?;
        if let Some(result) = result {
            understand(result, target, mode)?;
        }
        found = Some(ring);
    }
    Ok(found)
}

/// The result of one read of the target's beginning; none if it took too long.
fn read_once<E: Entries>(
    target: &[OpenTarget],
    mode: RingMode,
) -> io::Result<(Facts, Option<i32>)> {
    let length = target[0].alignment.0.max(SECTOR) as u32;
    let shape = Shape { block_size: length, writes: false, ring: mode, ..Shape::USUAL };
    let mut ring = UringOf::<E>::open(target, &shape)?;
    ring.push(Io { slot: 0, target: 0, direction: Direction::Read, offset: 0, length });
    let deadline = ring.now() + PATIENCE;
    let mut completions = Vec::with_capacity(1);
    while completions.is_empty() && ring.now() < deadline {
        ring.wait_and_reap(deadline, &mut completions);
    }
    Ok((ring.facts(), completions.first().map(|completion| completion.result)))
}

/// Refuses targets that the kernel would not poll, as far as sysfs shows it. Older kernels accept
/// such I/Os and silently complete them by interrupts.
fn pollable(target: &Target) -> Result<(), Unusable> {
    let has_none =
        |layer: &&Layer| layer.queue.as_ref().is_some_and(|queue| queue.polling == Some(false));
    match target.layers.iter().rev().find(has_none) {
        Some(layer) => Err(Unusable {
            cause: format!(
                "{0} cannot be polled: its driver has set up no queue for it \
                 (/sys/block/{0}/queue/io_poll is 0)",
                layer.name
            ),
            remedy: poll_queues(&layer.name),
        }),
        None => Ok(()),
    }
}

/// How to make a driver set up queues for polling.
fn poll_queues(device: &str) -> String {
    let drivers = [("nvme", "nvme"), ("vd", "virtio_blk"), ("nullb", "null_blk")];
    match drivers.iter().find(|(stem, _)| device.starts_with(stem)) {
        Some((_, driver)) => format!(
            "load the driver with them ({driver}.poll_queues=1 on the kernel's command line, or as an \
             option of the module), or drop --polled"
        ),
        None => "measure a device whose driver can (NVMe can), or drop --polled".to_owned(),
    }
}

/// The meaning of a failure to set up a ring in this mode, if the usual mode works.
fn no_ring_because(cause: &io::Error, target: &OpenTarget, mode: RingMode) -> Unusable {
    let errno = cause.raw_os_error().map(Errno::from_raw_os_error);
    match (errno, mode.submission_thread) {
        (Some(Errno::INVAL), Some(SubmissionThread { cpu: Some(cpu) })) => Unusable {
            cause: format!("the submission thread cannot run on CPU {cpu}"),
            remedy:
                "name a CPU that is online and that this process may use (`nproc --all`, `taskset \
                     -p $$`), or none"
                    .to_owned(),
        },
        (Some(Errno::PERM | Errno::ACCESS), Some(_)) => Unusable {
            cause:
                "this user may have no submission thread, which kernels before Linux 5.13 give to \
                    root alone"
                    .to_owned(),
            remedy: "run fathom as root, or drop --sqpoll".to_owned(),
        },
        (Some(Errno::INVAL), _) if target.passthrough.is_some() => too_old_for_commands(target),
        _ => Unusable {
            cause: format!("io_uring cannot be set up as asked ({cause})"),
            remedy: format!("drop {}", options(mode)),
        },
    }
}

fn too_old_for_commands(target: &OpenTarget) -> Unusable {
    Unusable {
        cause: format!("this kernel does not take NVMe commands for {} by io_uring", target.name),
        remedy: "use Linux 6.1 or later, or measure the block device".to_owned(),
    }
}

/// The options that request a mode, as they are typed.
pub(crate) fn options(mode: RingMode) -> &'static str {
    match (mode.polled, mode.submission_thread) {
        (true, Some(_)) => "--polled and --sqpoll",
        (true, None) => "--polled",
        (false, Some(_)) => "--sqpoll",
        (false, None) => "what was asked",
    }
}

/// Distinguishes the failures that the mode causes from those of any I/O to this target.
fn understand(result: i32, target: &OpenTarget, mode: RingMode) -> Result<(), Unusable> {
    let ErrorKind::Errno(errno) = failure(result) else { return Ok(()) };
    match Errno::from_raw_os_error(errno) {
        Errno::PERM | Errno::ACCESS if target.passthrough.is_some() => Err(Unusable {
            cause: format!("this user may send no NVMe commands to {}", target.name),
            remedy: "run fathom as root (CAP_SYS_ADMIN), or measure the block device".to_owned(),
        }),
        Errno::INVAL | Errno::OPNOTSUPP if mode.polled => Err(Unusable {
            cause: format!(
                "{} cannot be polled: its file system or its driver does not know how",
                target.name
            ),
            remedy: "measure a file or a device on NVMe with poll queues (nvme.poll_queues=1), or \
                     drop --polled"
                .to_owned(),
        }),
        Errno::INVAL | Errno::OPNOTSUPP | Errno::NOTTY if target.passthrough.is_some() => {
            Err(too_old_for_commands(target))
        }
        Errno::BADF if mode.submission_thread.is_some() => Err(Unusable {
            cause:
                "this kernel's submission threads take registered files only, and these could not \
                    be registered"
                    .to_owned(),
            remedy:
                "raise the limit of open files (`ulimit -n`), use Linux 5.11 or later, or drop \
                     --sqpoll"
                    .to_owned(),
        }),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use fathom_core::Bytes;
    use fathom_core::facts::Queue;

    use super::*;
    use crate::backend::nvme_failure;
    use crate::open_target::Passthrough;

    const POLLED: RingMode = RingMode { polled: true, submission_thread: None };

    fn threaded(cpu: Option<u32>) -> RingMode {
        RingMode { polled: false, submission_thread: Some(SubmissionThread { cpu }) }
    }

    fn target(commands: bool) -> OpenTarget {
        OpenTarget {
            name: "/dev/x".to_owned(),
            file: tempfile::tempfile().unwrap().into(),
            size: Bytes(1 << 20),
            alignment: Bytes(1),
            passthrough: commands.then(|| Passthrough::invented(1, 9, false)),
        }
    }

    fn layer(name: &str, polling: Option<bool>) -> Layer {
        let queue = Some(Queue { polling, ..Queue::default() });
        Layer { name: name.to_owned(), queue, ..Layer::default() }
    }

    fn says(refusal: &Unusable, cause: &str, remedy: &str) {
        assert!(refusal.cause.contains(cause), "{refusal:?} lacks {cause}");
        assert!(refusal.remedy.contains(remedy), "{refusal:?} lacks {remedy}");
    }

    #[test]
    fn a_device_without_a_queue_for_polling_is_refused_with_its_drivers_option() {
        let mut target = Target::simulated("t", Bytes(1 << 20));
        for known in [Some(true), None] {
            target.layers = Vec::from([layer("nvme0n1", known)]);
            assert!(pollable(&target).is_ok());
        }
        for (name, remedy) in [
            ("nvme0n1", "nvme.poll_queues=1"),
            ("vda", "virtio_blk.poll_queues=1"),
            ("nullb0", "null_blk.poll_queues=1"),
            ("sda", "a device whose driver can"),
        ] {
            // The disk is the device without a queue, whatever lies on top of it.
            target.layers = Vec::from([layer("dm-0", None), layer(name, Some(false))]);
            let refusal = pollable(&target).unwrap_err();
            says(&refusal, &format!("{name} cannot be polled"), remedy);
            says(&refusal, &format!("/sys/block/{name}/queue/io_poll"), "drop --polled");
        }
    }

    #[test]
    fn a_ring_that_cannot_be_had_says_what_stands_in_the_way() {
        let refused = |errno: Errno, commands, mode| {
            no_ring_because(&io::Error::from(errno), &target(commands), mode)
        };
        says(&refused(Errno::INVAL, false, threaded(Some(99))), "on CPU 99", "nproc --all");
        for errno in [Errno::PERM, Errno::ACCESS] {
            says(&refused(errno, false, threaded(None)), "no submission thread", "as root");
        }
        says(&refused(Errno::INVAL, true, RingMode::USUAL), "NVMe commands for /dev/x", "6.1");
        says(&refused(Errno::NOMEM, false, POLLED), "cannot be set up", "drop --polled");
        let both = RingMode { polled: true, ..threaded(None) };
        says(&refused(Errno::NOMEM, false, both), "cannot be set up", "--polled and --sqpoll");
        says(&refused(Errno::NOMEM, false, threaded(None)), "cannot be set up", "drop --sqpoll");
    }

    #[test]
    fn the_mode_is_blamed_only_for_what_it_causes() {
        let understood = |errno: Errno, commands, mode| {
            understand(-errno.raw_os_error(), &target(commands), mode)
        };
        let refused = |errno, commands, mode| understood(errno, commands, mode).unwrap_err();
        says(&refused(Errno::OPNOTSUPP, false, POLLED), "/dev/x cannot be polled", "drop --polled");
        says(&refused(Errno::ACCESS, true, RingMode::USUAL), "may send no NVMe", "CAP_SYS_ADMIN");
        says(&refused(Errno::NOTTY, true, RingMode::USUAL), "this kernel does not take", "6.1");
        says(&refused(Errno::BADF, false, threaded(None)), "registered files", "drop --sqpoll");
        for (errno, mode) in [
            (Errno::IO, POLLED),
            (Errno::INVAL, threaded(None)),
            (Errno::BADF, POLLED),
            (Errno::PERM, RingMode::USUAL),
        ] {
            assert!(understood(errno, false, mode).is_ok(), "{errno:?}");
        }
        // I/Os that came back, complete or short, and I/Os that the device itself refused.
        for result in [512, 0, nvme_failure(0x81)] {
            assert!(understand(result, &target(true), POLLED).is_ok(), "{result}");
        }
    }
}
