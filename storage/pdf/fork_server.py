"""Preloaded process that forks one sandboxed child per job.

Started as ``python -I -m storage.pdf.fork_server KIND FD``.

A kind is a module of ``KINDS``: ``warm_up()`` loads all that its children need, while files can still be
opened; ``perform(job, source, out)`` is the whole work of a child.

The owner sends jobs over a socket, each with two open files: the PDF to read and the pipe for the result; for
a locked PDF with a third one of passwords, which only the child reads. The process has one thread, no
network, no files, no secrets, and a system call allowlist. When the owner ends, the socket closes, which ends
this process and its children.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import select
import signal
import socket
import sys
from collections.abc import Callable
from typing import Any

from storage.pdf import sandbox

# Kind -> module. Each process imports only one of them, because their libraries conflict.
KINDS = {
    "text": "storage.pdf.child.text_job",
    "layout": "storage.pdf.child.layout_job",
    "ocr": "storage.pdf.child.ocr_job",
    "html": "storage.pdf.child.html_job",
}

Perform = Callable[[dict[str, Any], int, int], None]

MAX_JOB_BYTES = 4096
MAX_FILES = 4096

# First threshold of the cyclic garbage collector. A page has some 10,000 objects and hardly a cycle; with
# Python's default, collections take a third of a reading's time.
GC_THRESHOLD = 50_000


class ForkServer:
    """Forks children, kills them on request, and reports their exit status."""

    def __init__(self, owner: socket.socket, perform: Perform) -> None:
        self._owner = owner
        self._perform = perform
        self._poll = select.poll()
        self._poll.register(owner, select.POLLIN)
        # pidfd -> (pid, job number).
        self._children: dict[int, tuple[int, int]] = {}

    def serve(self) -> None:
        """Serve until the owner ends."""
        while True:
            for handle, _ in self._poll.poll():
                if handle != self._owner.fileno():
                    self._send_end(handle)
                elif not self._handle_message():
                    return

    def _handle_message(self) -> bool:
        """Handle one message of the owner; False if it has ended."""
        message, files, _, _ = socket.recv_fds(self._owner, MAX_JOB_BYTES, 3)
        if not message:
            return False
        job = json.loads(message)
        if job["do"] == "stop":
            for handle, (_, number) in self._children.items():
                if number == job["number"]:
                    signal.pidfd_send_signal(handle, signal.SIGKILL)
        else:
            self._fork(job, *files)
        return True

    def _fork(self, job: dict[str, Any], *files: int) -> None:
        me = os.getpid()
        pid = os.fork()
        if pid == 0:
            _run_child(me, self._perform, job, files)
        for file in files:
            os.close(file)
        # A pidfd can be polled, and never refers to a reused pid.
        handle = os.pidfd_open(pid)
        self._children[handle] = (pid, job["number"])
        self._poll.register(handle, select.POLLIN)

    def _send_end(self, handle: int) -> None:
        pid, number = self._children.pop(handle)
        self._poll.unregister(handle)
        os.close(handle)
        _, status, usage = os.wait4(pid, 0)
        event = {"ended": number, "status": status, "peak": usage.ru_maxrss * 1024}
        self._owner.send(json.dumps(event).encode())


def _run_child(parent: int, perform: Perform, job: dict[str, Any], files: tuple[int, ...]) -> None:
    """Run the job in the child process and exit."""
    status = 1
    source, out, *passwords = files
    try:
        sandbox.terminate_with_parent(parent)
        _close_all_but(*files)
        sandbox.set_resource_limits(job["memory"], job["seconds"])
        sandbox.isolate_job()
        perform({**job, "passwords": next(iter(passwords), None)}, source, out)
        status = 0
    finally:
        os._exit(status)


def _close_all_but(*kept: int) -> None:
    """Close inherited handles: the owner's socket and siblings' pidfds must not reach a child."""
    first = 3
    for file in sorted(kept):
        os.closerange(first, file)
        first = file + 1
    os.closerange(first, MAX_FILES)


def main() -> None:
    """Preload, enter the sandbox, report readiness, and serve."""
    kind, handle = sys.argv[1:]
    owner = socket.socket(fileno=int(handle))
    work = importlib.import_module(KINDS[kind])
    work.warm_up()
    silence = os.open(os.devnull, os.O_WRONLY)
    state = sandbox.enter_sandbox()
    os.dup2(silence, sys.stderr.fileno())
    # Frozen objects are not touched by a child's collections, so their memory stays shared.
    gc.collect()
    gc.freeze()
    gc.set_threshold(GC_THRESHOLD, 10, 10)
    owner.send(json.dumps({"ready": state}).encode())
    ForkServer(owner, work.perform).serve()


if __name__ == "__main__":
    main()
