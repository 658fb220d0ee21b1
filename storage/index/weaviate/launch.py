"""Launcher of the Weaviate child: ties its life to its parent's, then executes the server.

Run as ``python launch.py PARENT_PID BINARY ARGUMENT...``. Imports nothing of ours, so that it starts in
milliseconds.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1


def terminate_with_parent(parent: int) -> None:
    """Have the kernel send SIGTERM when the parent dies, however it dies (Linux only).

    Elsewhere a child outlives a killed parent until the next start ends it, by the state file.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    # The parent may have died before prctl took effect.
    if os.getppid() != parent:
        sys.exit("the parent died before its child had started")


def main(arguments: list[str]) -> None:
    """Replace this process by the server."""
    parent, *command = arguments
    terminate_with_parent(int(parent))
    os.execv(command[0], command)  # noqa: S606 - no shell


if __name__ == "__main__":
    main(sys.argv[1:])
