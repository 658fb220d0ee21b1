"""Drop the privileges that the PDF reader drops, then try to use them: PORT FILE HOW.

HOW is ``as it is``; ``user``: as an unprivileged user, if run by root; ``no namespaces``: the same where the
kernel refuses namespaces, as Docker's own filter does; ``landlock`` or ``calls``: with that one alone.
"""

from __future__ import annotations

import ctypes
import json
import os
import platform
import socket
import sys
from collections.abc import Callable

from storage.pdf import landlock, sandbox, seccomp

# Attaches without stopping the tracee; the tracee is released when the tracer exits.
PTRACE_SEIZE = 0x4206
CALLS = {"x86_64": {"unshare": 272, "io_uring": 425}, "aarch64": {"unshare": 97, "io_uring": 425}}
NUMBERS = CALLS[platform.machine()]
X32_GETPID = 0x40000000 | 39
libc = ctypes.CDLL(None, use_errno=True)


def done(result: int) -> str:
    return "done" if result >= 0 else errno_name(ctypes.get_errno())


def errno_name(number: int) -> str:
    return type(OSError(number, "")).__name__


def tried(attempt: Callable[[], object]) -> str:
    try:
        attempt()
    except OSError as error:
        return type(error).__name__
    return "done"


def attempts(port: int, path: str) -> dict[str, str]:
    parent, new = os.getppid(), f"{path}.new"
    return {
        "read a file": tried(lambda: os.close(os.open(path, os.O_RDONLY))),
        "write a file": tried(lambda: os.close(os.open(new, os.O_WRONLY | os.O_CREAT))),
        "list a folder": tried(lambda: os.listdir("/")),
        "connect": tried(lambda: connect(port)),
        "signal the owner": tried(lambda: os.kill(parent, 0)),
        "trace the owner": done(libc.ptrace(PTRACE_SEIZE, parent, None, None)),
        "start a process": tried(fork),
        "io_uring": done(libc.syscall(NUMBERS["io_uring"], 4, ctypes.create_string_buffer(120))),
    }


def connect(port: int) -> None:
    with socket.socket() as client:
        client.connect(("127.0.0.1", port))


def fork() -> None:
    if child := os.fork():
        os.waitpid(child, 0)
    else:
        os._exit(0)


def refuse_namespaces() -> None:
    """Install a seccomp filter like a container's, before this process applies ours."""
    libc.prctl(38, 1, 0, 0, 0)
    load, equal, leave = 0x20, 0x15, 0x06
    steps = [
        (load, 0, 0, 0),
        (equal, 0, 1, NUMBERS["unshare"]),
        (leave, 0, 0, 0x00050001),
        (leave, 0, 0, 0x7FFF0000),
    ]
    assert seccomp._load(steps)


def give_up(how: str) -> dict[str, str]:
    if how == "landlock":
        libc.prctl(38, 1, 0, 0, 0)
        return {"landlock": str(landlock.restrict())}
    if how == "calls":
        libc.prctl(38, 1, 0, 0, 0)
        return {"calls": str(seccomp.allow_server_calls())}
    return sandbox.enter_sandbox()


def in_a_child(work: Callable[[], object], pipe: tuple[int, int]) -> tuple[object, int]:
    """Run `work` in a forked child; return its result and exit status."""
    result, sink = pipe
    child = os.fork()
    if child == 0:
        try:
            os.write(sink, json.dumps(work()).encode())
        finally:
            os._exit(0)
    os.close(sink)
    told = os.read(result, 65536)
    return json.loads(told or b"null"), os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def main() -> None:
    port, path, how = int(sys.argv[1]), sys.argv[2], sys.argv[3]
    if how in ("user", "no namespaces") and os.geteuid() == 0:
        os.setgroups([])
        os.setgid(1000)
        os.setuid(1000)
        libc.prctl(4, 1, 0, 0, 0)  # PR_SET_DUMPABLE: changing the user had forbidden tracing
    if how == "no namespaces":
        refuse_namespaces()
    pipes = [os.pipe() for _ in range(3)]  # no pipe can be created after confinement
    before, _ = in_a_child(lambda: attempts(port, path), pipes[0])
    state = give_up(how)

    def job() -> dict[str, str]:
        if how not in ("landlock", "calls"):
            sandbox.isolate_job()
        elif how == "calls":
            seccomp.allow_job_calls()
        else:
            landlock.restrict()
        return attempts(port, path)

    after, _ = in_a_child(job, pipes[1])
    _, x32 = in_a_child(lambda: libc.syscall(X32_GETPID), pipes[2])
    is_root = os.geteuid() == 0
    print(json.dumps({"before": before, "after": after, "state": state, "root": is_root, "x32": x32}))


if __name__ == "__main__":
    main()
