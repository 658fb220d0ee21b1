"""Landlock: the kernel refuses a process every file, connection and signal beyond its own domain.

It needs no rights and no namespaces, so it holds for an ordinary user and in containers (Linux 5.13; ports
since 6.7, signals and abstract sockets since 6.12). What was opened before stays usable.
https://docs.kernel.org/userspace-api/landlock.html
"""

from __future__ import annotations

import ctypes
import os
import struct

# Numbers of the system calls, the same on every machine.
_CREATE_RULESET, _RESTRICT_SELF = 444, 446
_ASK_VERSION = 1

# Version of the interface -> how many rights on files it knows: execute, write, read, list and so on.
_FILE_RIGHTS = {1: 13, 2: 14, 3: 15, 5: 16}
# Binding and connecting of TCP ports.
_PORTS_SINCE, _PORTS = 4, 0b11
# Abstract sockets and signals of processes outside.
_SCOPES_SINCE, _SCOPES = 6, 0b11

_libc = ctypes.CDLL(None, use_errno=True)


def version() -> int:
    """Return the version of Landlock's interface that this kernel has; 0 where there is none."""
    return max(0, int(_libc.syscall(_CREATE_RULESET, None, 0, _ASK_VERSION)))


def restrict() -> bool:
    """Allow this process, and all that it starts, no file and nothing else that Landlock knows, for good.

    ``PR_SET_NO_NEW_PRIVS`` must be set. A second call shuts the process off from its first domain, too.

    Returns:
        Whether the kernel did it.
    """
    known = version()
    if not known:
        return False
    rights = (1 << max(count for since, count in _FILE_RIGHTS.items() if since <= known)) - 1
    ports = _PORTS if known >= _PORTS_SINCE else 0
    scopes = _SCOPES if known >= _SCOPES_SINCE else 0
    # Older kernels take the longer structure as long as what they do not know is zero.
    attributes = struct.pack("=QQQ", rights, ports, scopes)
    ruleset = _libc.syscall(_CREATE_RULESET, attributes, len(attributes), 0)
    if ruleset < 0:
        return False
    try:
        return bool(_libc.syscall(_RESTRICT_SELF, ruleset, 0) == 0)
    finally:
        os.close(ruleset)
