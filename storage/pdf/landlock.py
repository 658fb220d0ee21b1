"""Landlock: the kernel denies a process every file, connection and signal outside its own domain.

It needs neither privileges nor namespaces, so it works for an ordinary user and in containers (Linux 5.13;
ports since 6.7, signals and abstract sockets since 6.12). Files opened before stay usable.
https://docs.kernel.org/userspace-api/landlock.html
"""

from __future__ import annotations

import ctypes
import os
import struct

# System call numbers, the same on every architecture.
_CREATE_RULESET, _RESTRICT_SELF = 444, 446
_ASK_VERSION = 1

# ABI version -> number of file access rights: execute, write, read, list and so on.
_FILE_RIGHTS = {1: 13, 2: 14, 3: 15, 5: 16}
# Binding and connecting TCP ports.
_PORTS_SINCE, _PORTS = 4, 0b11
# Abstract sockets, and signals to processes outside.
_SCOPES_SINCE, _SCOPES = 6, 0b11

_libc = ctypes.CDLL(None, use_errno=True)


def version() -> int:
    """Return the kernel's Landlock ABI version; 0 if there is none."""
    return max(0, int(_libc.syscall(_CREATE_RULESET, None, 0, _ASK_VERSION)))


def restrict() -> bool:
    """Deny this process and its children all files and everything else Landlock covers, irrevocably.

    ``PR_SET_NO_NEW_PRIVS`` must be set. A second call also denies access to the process's first domain.

    Returns:
        True if the kernel enforces it.
    """
    known = version()
    if not known:
        return False
    rights = (1 << max(count for since, count in _FILE_RIGHTS.items() if since <= known)) - 1
    ports = _PORTS if known >= _PORTS_SINCE else 0
    scopes = _SCOPES if known >= _SCOPES_SINCE else 0
    # Older kernels accept the longer structure if the fields unknown to them are zero.
    attributes = struct.pack("=QQQ", rights, ports, scopes)
    ruleset = _libc.syscall(_CREATE_RULESET, attributes, len(attributes), 0)
    if ruleset < 0:
        return False
    try:
        return bool(_libc.syscall(_RESTRICT_SELF, ruleset, 0) == 0)
    finally:
        os.close(ruleset)
