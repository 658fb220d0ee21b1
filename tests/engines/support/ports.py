"""Ports for servers that a test starts."""

from __future__ import annotations

import os
import random
import socket
from collections import deque
from contextlib import suppress

# Below the kernel's ephemeral ports; EACH ports for each process of a parallel run.
FIRST, EACH = 20_000, 3_000

# Ports handed out recently, where nothing may listen yet.
_given: deque[int] = deque(maxlen=100)


def free_port() -> int:
    """Return a free loopback port that no other process of this run hands out."""
    number = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    start = FIRST + number % 4 * EACH
    for port in random.sample(range(start, start + EACH), EACH):
        if port in _given:
            continue
        with suppress(OSError), socket.socket() as probe:
            probe.bind(("127.0.0.1", port))
            _given.append(port)
            return port
    raise OSError(f"no port from {start} on is free")
