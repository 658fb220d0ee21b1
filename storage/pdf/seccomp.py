"""Seccomp: the kernel allows a list of system calls and refuses every other one with EPERM.

The lists are the calls that reading, layout, OCR and rendering were observed to make, and those that Python
and the C library may make in addition. No file is opened, no socket made, no program started, no signal sent.
Calls of another architecture, including x32, kill the process: their numbers have other meanings.
https://docs.kernel.org/userspace-api/seccomp_filter.html
"""

from __future__ import annotations

import ctypes
import os
import platform
from collections.abc import Sequence

_PR_SET_SECCOMP, _MODE_FILTER = 22, 2
# machine -> (audit architecture, index of its number in the tables).
_ARCHITECTURES = {"x86_64": (0xC000003E, 0), "aarch64": (0xC00000B7, 1)}
_X32 = 0x40000000

# Name -> numbers on x86_64 and aarch64; None if the machine has no such call.
_JOB_CALLS = {
    # I/O on open files.
    "read": (0, 63), "write": (1, 64), "readv": (19, 65), "writev": (20, 66), "pread64": (17, 67),
    "pwrite64": (18, 68), "lseek": (8, 62), "close": (3, 57), "close_range": (436, 436), "dup": (32, 23),
    "dup2": (33, None), "dup3": (292, 24), "fcntl": (72, 25), "fstat": (5, 80), "newfstatat": (262, 79),
    "poll": (7, None), "ppoll": (271, 73), "select": (23, None), "pselect6": (270, 72),
    # Memory.
    "brk": (12, 214), "mmap": (9, 222), "munmap": (11, 215), "mremap": (25, 216), "mprotect": (10, 226),
    "madvise": (28, 233),
    # Exit, signals and locks of the process itself.
    "exit": (60, 93), "exit_group": (231, 94), "restart_syscall": (219, 128), "rt_sigaction": (13, 134),
    "rt_sigprocmask": (14, 135), "rt_sigreturn": (15, 139), "sigaltstack": (131, 132), "futex": (202, 98),
    "set_robust_list": (273, 99), "get_robust_list": (274, 100), "rseq": (334, 293),
    "set_tid_address": (218, 96), "membarrier": (324, 283),
    # Time, random numbers, and information about the process itself.
    "clock_gettime": (228, 113), "clock_getres": (229, 114), "clock_nanosleep": (230, 115),
    "nanosleep": (35, 101), "gettimeofday": (96, 169), "time": (201, None), "times": (100, 153),
    "getrandom": (318, 278), "getrusage": (98, 165), "getpid": (39, 172), "getppid": (110, 173),
    "gettid": (186, 178), "getuid": (102, 174), "geteuid": (107, 175), "getgid": (104, 176),
    "getegid": (108, 177), "sched_yield": (24, 124), "sched_getaffinity": (204, 123), "getcpu": (309, 168),
    "getpriority": (140, 141), "sysinfo": (99, 179), "uname": (63, 160),
}  # fmt: skip

# Name -> (numbers, the argument that must be 0): allowed for the calling process only.
_SELF_CALLS = {"setpriority": ((141, 140), 1), "prlimit64": ((302, 261), 0)}
# tgkill, which ``abort`` uses to signal its own process.
_ABORT = (234, 131)

_SERVER_CALLS = {
    # Forking a child per job, and the child's own confinement.
    "clone": (56, 220), "wait4": (61, 260), "pidfd_open": (434, 434), "pidfd_send_signal": (424, 424),
    "prctl": (157, 167), "landlock_create_ruleset": (444, 444), "landlock_restrict_self": (446, 446),
    # The owner's socket.
    "recvmsg": (47, 212), "sendmsg": (46, 211), "sendto": (44, 206), "recvfrom": (45, 207),
    "getsockname": (51, 204), "getpeername": (52, 205), "tgkill": _ABORT,
}  # fmt: skip

_LOAD, _EQUAL, _HAS_BITS, _RETURN = 0x20, 0x15, 0x45, 0x06
_ALLOW, _REFUSE, _KILL = 0x7FFF0000, 0x00050001, 0x80000000
# Offsets in ``struct seccomp_data``; an argument takes eight bytes, its lower half first.
_NUMBER, _ARCHITECTURE, _ARGUMENTS = 0, 4, 16

Step = tuple[int, int, int, int]


class _Filter(ctypes.Structure):
    _fields_ = (
        ("code", ctypes.c_ushort),
        ("jt", ctypes.c_ubyte),
        ("jf", ctypes.c_ubyte),
        ("k", ctypes.c_uint),
    )


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("filters", ctypes.POINTER(_Filter)))


def allow_server_calls() -> bool:
    """Allow a fork server the calls of its children, and those for forking, ending and confining them.

    ``PR_SET_NO_NEW_PRIVS`` must be set.

    Returns:
        True if the filter is active; False on machines other than x86_64 and aarch64.
    """
    return _install({**_JOB_CALLS, **_SERVER_CALLS}, {})


def allow_job_calls() -> bool:
    """Allow a child the calls of its job: no new process or thread, no signal except to itself.

    ``PR_SET_NO_NEW_PRIVS`` must be set.

    Returns:
        True if the filter is active; False on machines other than x86_64 and aarch64.
    """
    return _install(_JOB_CALLS, {_ABORT: (0, os.getpid())})


def _install(calls: dict[str, tuple[int, int | None]], own: dict[tuple[int, int], tuple[int, int]]) -> bool:
    found = _ARCHITECTURES.get(platform.machine())
    if found is None:
        return False
    architecture, place = found
    own = {**{numbers: (argument, 0) for numbers, argument in _SELF_CALLS.values()}, **own}
    steps: list[Step] = [
        (_LOAD, 0, 0, _ARCHITECTURE),
        (_EQUAL, 1, 0, architecture),
        (_RETURN, 0, 0, _KILL),
        (_LOAD, 0, 0, _NUMBER),
        (_HAS_BITS, 0, 1, _X32),
        (_RETURN, 0, 0, _KILL),
    ]
    for numbers in calls.values():
        if (number := numbers[place]) is not None:
            steps += [(_EQUAL, 0, 1, number), (_RETURN, 0, 0, _ALLOW)]
    for numbers, (argument, value) in own.items():
        steps += [
            (_EQUAL, 0, 4, numbers[place]),
            (_LOAD, 0, 0, _ARGUMENTS + 8 * argument),
            (_EQUAL, 0, 1, value),
            (_RETURN, 0, 0, _ALLOW),
            (_RETURN, 0, 0, _REFUSE),
        ]
    return _load([*steps, (_RETURN, 0, 0, _REFUSE)])


def _load(steps: Sequence[Step]) -> bool:
    filters = (_Filter * len(steps))(*(_Filter(*step) for step in steps))
    program = _Program(len(steps), filters)
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    return bool(prctl(_PR_SET_SECCOMP, _MODE_FILTER, ctypes.byref(program), 0, 0) == 0)
