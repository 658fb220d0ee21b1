"""Names this process for its leases, and tells whether another one of this machine is surely dead."""

from __future__ import annotations

import os
import socket
from uuid import uuid4


def own_name() -> str:
    """A name that no other process ever has: machine, process, and a part by chance."""
    return f"{socket.gethostname()}:{os.getpid()}:{uuid4().hex[:8]}"


def is_surely_dead(owner: str) -> bool:
    """Whether the process of this name ran on this machine and does not any more."""
    machine, _, process = owner.rpartition(":")[0].rpartition(":")
    if machine != socket.gethostname() or not process.isdecimal():
        return False
    try:
        os.kill(int(process), 0)
    except ProcessLookupError:
        return True
    except OSError:
        return False
    return False
