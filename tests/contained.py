"""Runs a program as a container runtime does: contained.py ROOT USER ANSWER PROGRAM ARGUMENTS...

ROOT becomes its root and ROOT/data its working folder. It has the number USER, no capabilities and no
environment. The kernel answers the system calls of io_uring with ANSWER, such as EPERM.
"""

import ctypes
import errno
import os
import struct
import sys

# The calls have these numbers on every architecture: setup, enter, register.
URING = (425, 426, 427)
# From linux/prctl.h, linux/capability.h, linux/seccomp.h and linux/bpf_common.h.
PR_SET_SECCOMP, PR_CAPBSET_DROP, PR_SET_NO_NEW_PRIVS = 22, 24, 38
CAPABILITIES = 64
FILTER = 2
LOAD, JUMP_IF_EQUAL, RETURN = 0x20, 0x15, 0x06
ALLOWED, REFUSED = 0x7FFF0000, 0x00050000


def prctl(*numbers):
    """The system call of this name; it returns whether it succeeded."""
    call = ctypes.CDLL(None, use_errno=True).prctl
    return call(*(ctypes.c_ulong(number) for number in (*numbers, 0, 0, 0, 0)[:5])) == 0


def forbid(calls, answer):
    """Makes the kernel give this answer to these calls, permanently."""

    def statement(code, value, unequal=0):
        return struct.pack("=HBBI", code, 0, unequal, value)

    # The number of the call is the first word of the filter's input.
    program = statement(LOAD, 0)
    for call in calls:
        program += statement(JUMP_IF_EQUAL, call, 1) + statement(RETURN, REFUSED | answer)
    program += statement(RETURN, ALLOWED)
    kept = ctypes.create_string_buffer(program, len(program))
    header = struct.pack("@HP", len(program) // 8, ctypes.addressof(kept))
    header = ctypes.create_string_buffer(header, len(header))
    assert prctl(PR_SET_SECCOMP, FILTER, ctypes.addressof(header))


def main():
    """Becomes the program."""
    root, user, answer, *command = sys.argv[1:]
    os.chroot(root)
    os.chdir("/data")
    for capability in range(CAPABILITIES):
        # Those that the kernel does not know cannot be dropped.
        prctl(PR_CAPBSET_DROP, capability)
    os.setgroups([])
    os.setresgid(int(user), int(user), int(user))
    os.setresuid(int(user), int(user), int(user))
    assert prctl(PR_SET_NO_NEW_PRIVS, 1)
    forbid(URING, getattr(errno, answer))
    # ./test finds a section's processes by this variable.
    kept = {name: os.environ[name] for name in ("FATHOM_TESTBED",) if name in os.environ}
    os.execve(command[0], command, kept)


main()
