"""What a program that opens strangers' files gives up: network, files, rights, memory and time.

Linux only; each step that a kernel or container refuses is reported, not hidden. Runs in the
parent (for good, inherited by every child) and in each child.
"""

from __future__ import annotations

import ctypes
import os
import platform
import resource
import signal
import struct
import tempfile

NOBODY = 65534

_PR_SET_PDEATHSIG, _PR_SET_SECCOMP, _PR_SET_NO_NEW_PRIVS = 1, 22, 38
_CLONE_NEWUSER, _CLONE_NEWNET = 0x10000000, 0x40000000
_CAPABILITY_VERSION_3 = 0x20080522
_SOCKET_CALL = {"x86_64": (0xC000003E, 41), "aarch64": (0xC00000B7, 198)}
"""machine -> (audit architecture, number of socket())."""

_libc = ctypes.CDLL(None, use_errno=True)


def isolate() -> dict[str, str]:
    """Give up network, files and rights; the process must have a single thread.

    Returns:
        ``network``: closed by 'namespace' or 'filter', or 'open'; ``files``: 'none' or 'readable'.
    """
    _libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    in_namespace = _unshare(_CLONE_NEWNET) or _unshare(_CLONE_NEWUSER | _CLONE_NEWNET)
    files = "none" if _leave_files() else "readable"
    _drop_rights()
    network = "namespace" if in_namespace else "filter" if _refuse_sockets() else "open"
    return {"network": network, "files": files}


def _unshare(what: int) -> bool:
    return hasattr(_libc, "unshare") and _libc.unshare(what) == 0


def _leave_files() -> bool:
    """Make an empty directory, already deleted, the root of everything this process can name."""
    try:
        with tempfile.TemporaryDirectory() as empty:
            os.chdir(empty)
        os.chroot(".")
    except OSError:
        os.chdir("/")
        return False
    return True


def _drop_rights() -> None:
    """Stop being root, and drop the capabilities that a user namespace gave."""
    if os.geteuid() == 0:
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)
    header, nothing = struct.pack("Ii", _CAPABILITY_VERSION_3, 0), bytes(24)
    _libc.capset(header, nothing)


class _Filter(ctypes.Structure):
    _fields_ = (
        ("code", ctypes.c_ushort),
        ("jt", ctypes.c_ubyte),
        ("jf", ctypes.c_ubyte),
        ("k", ctypes.c_uint),
    )


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("filters", ctypes.POINTER(_Filter)))


def _refuse_sockets() -> bool:
    """Let the kernel refuse socket() with EPERM: seccomp needs no rights, so it works in containers."""
    known = _SOCKET_CALL.get(platform.machine())
    if known is None or not hasattr(_libc, "prctl"):
        return False
    architecture, call = known
    load, equal, leave = 0x20, 0x15, 0x06
    allow, refuse, kill = 0x7FFF0000, 0x00050001, 0x80000000
    steps = (
        (load, 0, 0, 4),  # the caller's architecture
        (equal, 1, 0, architecture),
        (leave, 0, 0, kill),
        (load, 0, 0, 0),  # the number of the system call
        (equal, 0, 1, call),
        (leave, 0, 0, refuse),
        (leave, 0, 0, allow),
    )
    filters = (_Filter * len(steps))(*(_Filter(*step) for step in steps))
    program = _Program(len(steps), filters)
    return bool(_libc.prctl(_PR_SET_SECCOMP, 2, ctypes.byref(program), 0, 0) == 0)


def terminate_with_parent(parent: int) -> None:
    """End this process when its parent ends, however that ends; the parent has a single thread."""
    if hasattr(_libc, "prctl"):
        _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)


def limit(memory: int, seconds: int) -> None:
    """Bound this process: ``memory`` bytes of address space, ``seconds`` of CPU, no files, no children."""
    for what, most in (
        (resource.RLIMIT_AS, memory),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_NOFILE, 16),
        (resource.RLIMIT_NPROC, 0),
        (resource.RLIMIT_CORE, 0),
    ):
        resource.setrlimit(what, (most, most))
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 2))  # first SIGXCPU, which says why
