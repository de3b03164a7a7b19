//! Programs that the kernel runs at a tracepoint: bpf(2). No popular crate has the three calls
//! without a compiler or a loader of object files, so this file makes them itself.
#![expect(unsafe_code, reason = "bpf(2) has no safe wrapper")]

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

const BPF_MAP_CREATE: libc::c_long = 0;
const BPF_MAP_UPDATE_ELEM: libc::c_long = 2;
const BPF_PROG_LOAD: libc::c_long = 5;
const BPF_MAP_TYPE_PERF_EVENT_ARRAY: u32 = 4;
const BPF_PROG_TYPE_TRACEPOINT: u32 = 5;

/// What BPF_MAP_CREATE reads of `union bpf_attr`.
#[repr(C)]
struct MapAttributes {
    kind: u32,
    key_size: u32,
    value_size: u32,
    entries: u32,
}

/// What BPF_MAP_UPDATE_ELEM reads of it.
#[repr(C)]
struct ElementAttributes {
    map: u32,
    _padding: u32,
    key: u64,
    value: u64,
    flags: u64,
}

/// What BPF_PROG_LOAD reads of it.
#[repr(C)]
struct ProgramAttributes {
    kind: u32,
    instruction_count: u32,
    instructions: u64,
    license: u64,
    log_level: u32,
    log_size: u32,
    log: u64,
    kernel_version: u32,
    flags: u32,
}

/// A table of the buffers of CPUs, with room for CPUs up to this number.
pub(crate) fn table_of_buffers(last_cpu: u32) -> io::Result<File> {
    let attributes = MapAttributes {
        kind: BPF_MAP_TYPE_PERF_EVENT_ARRAY,
        key_size: 4,
        value_size: 4,
        entries: last_cpu + 1,
    };
    call(BPF_MAP_CREATE, &attributes).and_then(owned)
}

/// Puts the event with a CPU's buffer into the table.
pub(crate) fn put(table: &File, cpu: u32, event: &File) -> io::Result<()> {
    let value = event.as_raw_fd();
    let attributes = ElementAttributes {
        map: table.as_raw_fd() as u32,
        _padding: 0,
        key: std::ptr::from_ref(&cpu).addr() as u64,
        value: std::ptr::from_ref(&value).addr() as u64,
        flags: 0,
    };
    call(BPF_MAP_UPDATE_ELEM, &attributes).map(drop)
}

/// Hands a program for tracepoints to the kernel, which checks it.
pub(crate) fn load(instructions: &[u64]) -> io::Result<File> {
    let attributes = ProgramAttributes {
        kind: BPF_PROG_TYPE_TRACEPOINT,
        instruction_count: instructions.len() as u32,
        instructions: instructions.as_ptr().addr() as u64,
        // The kernel gives its events to such programs alone. This is about the instructions that
        // are loaded; all of them are ours.
        license: c"Dual MIT/GPL".as_ptr().addr() as u64,
        log_level: 0,
        log_size: 0,
        log: 0,
        kernel_version: 0,
        flags: 0,
    };
    call(BPF_PROG_LOAD, &attributes).and_then(owned)
}

fn call<T>(command: libc::c_long, attributes: &T) -> io::Result<libc::c_long> {
    // SAFETY: the kernel reads the attributes, which are as long as the call says, and what they
    // point to: instructions, a string, a key and a value that live until the call returns. What is
    // missing at the end counts as zero.
    let result = unsafe {
        libc::syscall(libc::SYS_bpf, command, std::ptr::from_ref(attributes), size_of::<T>())
    };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

fn owned(descriptor: libc::c_long) -> io::Result<File> {
    let descriptor = i32::try_from(descriptor).map_err(io::Error::other)?;
    // SAFETY: the kernel has just made this descriptor, and it has no other owner.
    Ok(File::from(unsafe { OwnedFd::from_raw_fd(descriptor) }))
}
