//! Perf events on the kernel's tracepoints, those that programs in the kernel put out, and what
//! tracefs says about tracepoints. They take root or CAP_PERFMON. Nothing is changed: if tracefs is
//! not mounted, it is opened without mounting it anywhere.
#![expect(unsafe_code, reason = "perf events have no safe wrapper")]

use std::ffi::CStr;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::path::Path;

use rustix::fs::{Mode, OFlags, openat};
use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsmount, fsopen};

/// Where tracefs usually is.
const TRACEFS: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];

/// The kind of an event of the kernel's own, and the one of them that programs put out.
const PERF_TYPE_SOFTWARE: u32 = 1;
const PERF_COUNT_SW_BPF_OUTPUT: u64 = 10;
/// The kind of an event that counts a tracepoint.
const PERF_TYPE_TRACEPOINT: u32 = 2;
const PERF_FLAG_FD_CLOEXEC: u64 = 8;
/// `_IO('$', 0)`.
const PERF_EVENT_IOC_ENABLE: libc::Ioctl = 0x2400;
/// `_IOW('$', 6, char *)`.
const PERF_EVENT_IOC_SET_FILTER: libc::Ioctl = 0x4008_2406;
/// `_IOW('$', 8, u32)`.
const PERF_EVENT_IOC_SET_BPF: libc::Ioctl = 0x4004_2408;

/// `struct perf_event_attr`, as long as it has been since Linux 4.8.
#[derive(Default)]
#[repr(C)]
pub(crate) struct EventAttributes {
    pub(crate) kind: u32,
    pub(crate) size: u32,
    pub(crate) config: u64,
    pub(crate) period: u64,
    pub(crate) sample_kind: u64,
    pub(crate) read_format: u64,
    pub(crate) flags: u64,
    pub(crate) wakeup: u32,
    pub(crate) breakpoint_kind: u32,
    pub(crate) config1: u64,
    pub(crate) config2: u64,
    pub(crate) branch_sample_kind: u64,
    pub(crate) registers_user: u64,
    pub(crate) stack_user: u32,
    pub(crate) clock: i32,
    pub(crate) registers_interrupt: u64,
    pub(crate) aux_watermark: u32,
    pub(crate) stack_max: u16,
    pub(crate) reserved: u16,
}

impl EventAttributes {
    /// Those of an event on a tracepoint with this number.
    pub(crate) fn of_tracepoint(number: u64) -> Self {
        let size = size_of::<Self>() as u32;
        Self { kind: PERF_TYPE_TRACEPOINT, size, config: number, ..Self::default() }
    }

    /// Those of an event that programs in the kernel put out.
    pub(crate) fn of_program_output() -> Self {
        let (kind, config) = (PERF_TYPE_SOFTWARE, PERF_COUNT_SW_BPF_OUTPUT);
        Self { kind, config, ..Self::of_tracepoint(0) }
    }
}

/// The text of a file below tracefs, such as "events/block/block_rq_issue/format".
pub(crate) fn tracefs_text(path: &str) -> io::Result<String> {
    for at in TRACEFS.map(Path::new) {
        match fs::read_to_string(at.join(path)) {
            Ok(text) => return Ok(text),
            // It is mounted, and this kernel has no such file.
            Err(cause) if cause.kind() == io::ErrorKind::NotFound && at.join("events").is_dir() => {
                return Err(cause);
            }
            Err(_) => {}
        }
    }
    from_unmounted_tracefs(path)
}

/// The text, from a tracefs that is mounted nowhere. This takes the privilege to mount.
fn from_unmounted_tracefs(path: &str) -> io::Result<String> {
    let context = fsopen("tracefs", FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_create(&context)?;
    let root = fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, MountAttrFlags::empty())?;
    let file = openat(root, path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
    let mut text = String::new();
    File::from(file).read_to_string(&mut text)?;
    Ok(text)
}

/// Opens an event on one CPU, for any thread that runs there.
pub(crate) fn open(attributes: &EventAttributes, cpu: u32) -> io::Result<File> {
    let (every_thread, no_group) = (-1, -1);
    // SAFETY: the kernel reads the attributes, which are as long as they say.
    let result = unsafe {
        libc::syscall(
            libc::SYS_perf_event_open,
            std::ptr::from_ref(attributes),
            every_thread,
            cpu as i32,
            no_group,
            PERF_FLAG_FD_CLOEXEC,
        )
    };
    match i32::try_from(result) {
        // SAFETY: the kernel has just made this descriptor, and it has no other owner.
        Ok(descriptor @ 0..) => Ok(File::from(unsafe { OwnedFd::from_raw_fd(descriptor) })),
        _ => Err(io::Error::last_os_error()),
    }
}

/// From here on only those hits of its tracepoint count whose fields this expression accepts.
pub(crate) fn filter(event: &File, expression: &CStr) -> io::Result<()> {
    // SAFETY: the filter is a string with a zero at its end, and the kernel copies it.
    done(unsafe { libc::ioctl(event.as_raw_fd(), PERF_EVENT_IOC_SET_FILTER, expression.as_ptr()) })
}

/// An event that was opened disabled begins.
pub(crate) fn enable(event: &File) -> io::Result<()> {
    // SAFETY: the call takes a number.
    done(unsafe { libc::ioctl(event.as_raw_fd(), PERF_EVENT_IOC_ENABLE, 0) })
}

/// Has the kernel run a program whenever the tracepoint of an event is hit, on whichever CPU.
pub(crate) fn run_at(event: &File, program: &File) -> io::Result<()> {
    // SAFETY: the call takes a descriptor.
    done(unsafe { libc::ioctl(event.as_raw_fd(), PERF_EVENT_IOC_SET_BPF, program.as_raw_fd()) })
}

fn done(result: i32) -> io::Result<()> {
    match result {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
