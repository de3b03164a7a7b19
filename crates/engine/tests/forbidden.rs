//! Where io_uring is forbidden, fathom says what forbids it and uses another backend. The tests use a
//! seccomp filter like that of containers, which is permanent: so each test runs this same program as
//! a child.
//!
//! The sysctl that switches io_uring off applies to the whole machine, where other programs need it.
//! The child that finds it switched off has a file in its place, and a filter that answers as the
//! kernel would.

#![expect(unsafe_code, reason = "a seccomp filter is installed by a bare system call")]

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::process::Command;

use fathom_core::Bytes;
use fathom_core::measure::Direction;
use fathom_core::spec::{Access, BackendKind};
use fathom_engine::aio::Aio;
use fathom_engine::backend::{Io, RealBackend, Shape};
use fathom_engine::choose;
use fathom_engine::sync::Sync;
use fathom_engine::target::OpenTarget;
use fathom_engine::uring::Uring;
use rustix::mount::{MountPropagationFlags, mount_bind, mount_change};
use rustix::thread::{UnshareFlags, unshare_unsafe};

const SYSCTL: &str = "/proc/sys/kernel/io_uring_disabled";

/// Tells the child which system calls to forbid.
const FORBID: &str = "FATHOM_TEST_FORBID";

/// The child prints this if all checks passed, so that a child that did nothing does not pass.
const HELD: &str = "everything held under the filter";

const DIRECT: Access = Access::DIRECT;
const BUFFERED: Access = Access::BUFFERED;

/// A file with a known byte at its start, opened as a target.
fn target(folder: &tempfile::TempDir) -> OpenTarget {
    let path = folder.path().join("target");
    fs::write(&path, vec![42; 1 << 16]).unwrap();
    let open = |flags| OpenOptions::new().read(true).write(true).custom_flags(flags).open(&path);
    let file = open(libc::O_DIRECT).or_else(|_| open(0)).unwrap();
    let name = path.display().to_string();
    OpenTarget {
        name,
        file: file.into(),
        size: Bytes(1 << 16),
        alignment: Bytes(4096),
        passthrough: None,
    }
}

/// Four slots.
fn shape() -> Shape {
    Shape { slots: 4, ..Shape::USUAL }
}

/// A backend opens and carries I/Os.
fn works<B: RealBackend>() {
    let folder = tempfile::TempDir::new().unwrap();
    let targets = [target(&folder)];
    let mut backend = B::open(&targets, &shape()).unwrap();
    backend.refresh(1, 4096);
    backend.write_buffer(1).fill(43);
    let io = |slot, direction, offset| Io { slot, target: 0, direction, offset, length: 4096 };
    backend.push(io(0, Direction::Read, 0));
    backend.push(io(1, Direction::Write, 8192));
    let mut completions = Vec::with_capacity(4);
    while completions.len() < 2 {
        let deadline = backend.now() + fathom_core::Span::from_secs(60);
        backend.wait_and_reap(deadline, &mut completions);
        assert!(backend.now() < deadline);
    }
    assert!(completions.iter().all(|completion| completion.result == 4096), "{completions:?}");
    assert!(backend.read_buffer(0).iter().all(|byte| *byte == 42));
    let mut written = [0; 4096];
    File::open(&targets[0].name).unwrap().read_exact_at(&mut written, 8192).unwrap();
    assert_eq!(written, [43; 4096]);
}

/// Puts a file in the place of the sysctl, for this thread alone: it says that io_uring is switched off.
fn show_switched_off(folder: &tempfile::TempDir) -> io::Result<()> {
    let says = folder.path().join("io_uring_disabled");
    fs::write(&says, "2\n")?;
    // SAFETY: a mount namespace has no effect on the memory of this process.
    unsafe { unshare_unsafe(UnshareFlags::NEWNS) }?;
    mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)?;
    Ok(mount_bind(&says, SYSCTL)?)
}

fn holds_switched_off(targets: &[OpenTarget]) {
    let cause = "io_uring is switched off here (kernel.io_uring_disabled = 2)";
    let direct = choose(None, DIRECT).unwrap();
    assert_eq!(direct.kind, BackendKind::Aio);
    assert_eq!(direct.reason, format!("{cause}: using native AIO"));
    let buffered = choose(None, BUFFERED).unwrap();
    assert_eq!(buffered.kind, BackendKind::Sync);
    assert!(buffered.reason.starts_with(cause), "{}", buffered.reason);
    let refusal = choose(Some(BackendKind::Uring), DIRECT).unwrap_err().to_string();
    assert!(refusal.contains(cause), "{refusal}");
    assert!(refusal.contains("sysctl kernel.io_uring_disabled=0"), "{refusal}");
    let opened = Uring::open(targets, &shape()).map(|_| ());
    assert_eq!(opened.unwrap_err().kind(), io::ErrorKind::PermissionDenied);
}

/// Makes the kernel answer these system calls with an errno on this thread, permanently.
fn forbid(calls: &[libc::c_long], errno: i32) {
    let statement = |code: u32, k: u32| libc::sock_filter { code: code as u16, jt: 0, jf: 0, k };
    // The number of the system call is the first word of a filter's input.
    let mut filter = Vec::from([statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0)]);
    for call in calls {
        filter.push(libc::sock_filter {
            code: (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16,
            jt: 0,
            jf: 1,
            k: *call as u32,
        });
        let answer = libc::SECCOMP_RET_ERRNO | errno as u32;
        filter.push(statement(libc::BPF_RET | libc::BPF_K, answer));
    }
    filter.push(statement(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ALLOW));
    let program =
        libc::sock_fprog { len: filter.len() as libc::c_ushort, filter: filter.as_mut_ptr() };
    // SAFETY: the call takes only numbers.
    let sealed = unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) };
    assert_eq!(sealed, 0);
    // SAFETY: the program and its filter outlive the call, which copies them.
    let installed =
        unsafe { libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program) };
    assert_eq!(installed, 0, "{}", io::Error::last_os_error());
}

const URING: [libc::c_long; 3] =
    [libc::SYS_io_uring_setup, libc::SYS_io_uring_enter, libc::SYS_io_uring_register];
const AIO: [libc::c_long; 2] = [libc::SYS_io_setup, libc::SYS_io_submit];

/// Runs `child_under_a_filter` in its own process.
fn under_a_filter(what: &str) {
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "child_under_a_filter", "--nocapture"])
        .env(FORBID, what)
        .output()
        .unwrap();
    let (out, err) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && out.contains(HELD), "{}\n{out}\n{err}", output.status);
}

#[test]
fn with_io_uring_switched_off_native_aio_is_used_and_the_sysctl_is_named() {
    under_a_filter("uring, switched off");
}

#[test]
fn under_a_filter_that_denies_io_uring_native_aio_is_used() {
    under_a_filter("uring, EPERM");
}

#[test]
fn under_a_filter_that_denies_that_io_uring_exists_native_aio_is_used() {
    under_a_filter("uring, ENOSYS");
}

#[test]
fn under_a_filter_that_denies_the_use_of_rings_alone_native_aio_is_used() {
    under_a_filter("enter, EPERM");
}

#[test]
fn under_a_filter_that_denies_native_aio_too_blocking_calls_are_used() {
    under_a_filter("both, EPERM");
}

/// Does nothing unless it runs in the child of the tests above.
#[test]
fn child_under_a_filter() {
    let Ok(what) = std::env::var(FORBID) else { return };
    if what == "uring, switched off" {
        let folder = tempfile::TempDir::new().unwrap();
        let targets = [target(&folder)];
        match show_switched_off(&folder) {
            Ok(()) => {
                forbid(&URING, libc::EPERM);
                holds_switched_off(&targets);
            }
            Err(error) => {
                let why = format!("SKIPPED: io_uring switched off, because of {SYSCTL}: {error}");
                writeln!(io::stderr(), "{why}").unwrap();
            }
        }
        writeln!(io::stdout(), "{HELD}").unwrap();
        return;
    }
    let both = [URING.as_slice(), AIO.as_slice()].concat();
    match what.as_str() {
        "uring, EPERM" => forbid(&URING, libc::EPERM),
        "uring, ENOSYS" => forbid(&URING, libc::ENOSYS),
        "enter, EPERM" => forbid(&[libc::SYS_io_uring_enter], libc::EPERM),
        "both, EPERM" => forbid(&both, libc::EPERM),
        other => panic!("{other}"),
    }
    // With ENOSYS, a kernel without the sysctl looks the same as one without io_uring.
    let hidden = what == "uring, ENOSYS" && !fs::exists(SYSCTL).unwrap();
    let switched_off = fs::read_to_string(SYSCTL).is_ok_and(|value| value.trim() == "2");
    let cause = if hidden {
        "a seccomp filter hides io_uring here"
    } else {
        "io_uring is forbidden here by a seccomp filter"
    };
    let choice = choose(None, DIRECT).unwrap();
    let expected = switched_off || choice.reason.starts_with(cause);
    assert!(expected, "{}", choice.reason);
    let refusal = choose(Some(BackendKind::Uring), DIRECT).unwrap_err().to_string();
    assert!(refusal.contains("or let --backend auto find one that works"), "{refusal}");
    assert_eq!(choose(None, BUFFERED).unwrap().kind, BackendKind::Sync);
    if what == "both, EPERM" {
        assert_eq!(choice.kind, BackendKind::Sync);
        let and = "native AIO is forbidden here by a seccomp filter: using pread and pwrite";
        assert!(choice.reason.ends_with(and), "{}", choice.reason);
        assert!(choose(Some(BackendKind::Aio), DIRECT).is_err());
    } else {
        assert_eq!(choice.kind, BackendKind::Aio);
        assert!(choice.reason.ends_with(": using native AIO"), "{}", choice.reason);
        works::<Aio>();
    }
    works::<Sync>();
    writeln!(io::stdout(), "{HELD}").unwrap();
}
