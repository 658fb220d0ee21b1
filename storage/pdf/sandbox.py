"""Sandbox of processes that open untrusted files: network, files, privileges, system calls, memory, CPU.

Linux only; each step that a kernel or container refuses is reported, not hidden. Runs in the fork server
(irrevocably, inherited by every child) and in each child. A machine may refuse namespaces and an empty root;
Landlock and the system call filter work for an ordinary user and in containers, too.
"""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import struct
import tempfile

from storage.pdf import landlock, seccomp

NOBODY = 65534

_PR_SET_PDEATHSIG, _PR_SET_NO_NEW_PRIVS = 1, 38
_CLONE_NEWUSER, _CLONE_NEWNET = 0x10000000, 0x40000000
_CAPABILITY_VERSION_3 = 0x20080522

_libc = ctypes.CDLL(None, use_errno=True)


def enter_sandbox() -> dict[str, str]:
    """Drop network, files, privileges and most system calls; the process must have a single thread.

    Returns:
        ``network``: closed by 'namespace' or 'filter', or 'open'; ``files``: 'none' (an empty root), denied
        by 'landlock' or by 'filter', or 'readable'; ``calls``: 'listed' or 'any'.
    """
    _libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    in_namespace = _unshare(_CLONE_NEWNET) or _unshare(_CLONE_NEWUSER | _CLONE_NEWNET)
    has_empty_root = _chroot_to_empty()
    _drop_privileges()
    is_restricted = landlock.restrict()
    is_filtered = seccomp.allow_server_calls()
    by_filter = "filter" if is_filtered else None
    return {
        "network": "namespace" if in_namespace else by_filter or "open",
        "files": "none" if has_empty_root else "landlock" if is_restricted else by_filter or "readable",
        "calls": "listed" if is_filtered else "any",
    }


def isolate_job() -> None:
    """Drop the fork server's rights in a child: the server and its other children become unreachable."""
    landlock.restrict()
    seccomp.allow_job_calls()


def _unshare(what: int) -> bool:
    return hasattr(_libc, "unshare") and _libc.unshare(what) == 0


def _chroot_to_empty() -> bool:
    """Make an empty, already deleted directory the root directory."""
    try:
        with tempfile.TemporaryDirectory() as empty:
            os.chdir(empty)
        os.chroot(".")
    except OSError:
        os.chdir("/")
        return False
    return True


def _drop_privileges() -> None:
    """Switch from root to nobody, and drop the capabilities gained in a user namespace."""
    if os.geteuid() == 0:
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)
    header, nothing = struct.pack("Ii", _CAPABILITY_VERSION_3, 0), bytes(24)
    _libc.capset(header, nothing)


def terminate_with_parent(parent: int) -> None:
    """Have the kernel kill this process when its parent, which has a single thread, ends."""
    if hasattr(_libc, "prctl"):
        _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    # The parent may have died before prctl took effect.
    if os.getppid() != parent:
        os._exit(1)


def set_resource_limits(memory: int, seconds: int) -> None:
    """Set resource limits: ``memory`` bytes of address space, ``seconds`` of CPU, no files, no children."""
    for what, most in (
        (resource.RLIMIT_AS, memory),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_NOFILE, 16),
        (resource.RLIMIT_NPROC, 0),
        (resource.RLIMIT_CORE, 0),
    ):
        resource.setrlimit(what, (most, most))
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 2))  # SIGXCPU comes first and tells the cause
