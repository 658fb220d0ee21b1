"""Runs a command with loopback as its only network, and kills all its processes when it ends.

With namespaces the kernel does both: servers on all interfaces are unreachable, a test that opens outside
connections fails, and every process ends with the command or with us. Without them the command runs
unconfined, tests/conftest.py skips such servers, and leftover processes are found by their TMPDIR. Each run
has its own, removed by the next run: until then a failed test's logs can be read.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import signal
import socket
import struct
import sys
import tempfile
import traceback
from collections.abc import Callable
from contextlib import suppress
from fcntl import LOCK_EX, LOCK_NB, flock, ioctl
from pathlib import Path
from typing import IO

# <linux/sched.h>
NEW_MOUNTS, NEW_IPC, NEW_USER, NEW_PIDS, NEW_NET = 0x20000, 0x8000000, 0x10000000, 0x20000000, 0x40000000
ALWAYS = NEW_NET | NEW_IPC | NEW_MOUNTS
# Root without a user namespace, in which it could not become the PostgreSQL user. Some containers forbid a
# second /proc, and so only process namespaces.
CHOICES = (ALWAYS | NEW_PIDS, ALWAYS | NEW_PIDS | NEW_USER, ALWAYS, ALWAYS | NEW_USER)
MS_REC_PRIVATE = 0x44000  # <linux/mount.h>
PR_SET_PDEATHSIG = 1  # <linux/prctl.h>
SIOCSIFFLAGS, IFF_UP = 0x8914, 0x1  # <linux/sockios.h>, <linux/if.h>

_libc = ctypes.CDLL(None, use_errno=True)


def main(command: list[str]) -> int:
    """Run the command; return its exit status, or 128 plus the signal that ended it."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    end_with_parent(signal.SIGTERM)  # when `make` is killed by SIGKILL
    answer = signal.getsignal(signal.SIGINT)

    def become_command() -> int:
        signal.signal(signal.SIGINT, answer)
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # Python ignores it, and ignored signals are inherited
        os.execvp(command[0], command)  # noqa: S606 - becoming the command is the point

    flags = next((choice for choice in CHOICES if is_allowed(choice)), 0)
    folder, _lock = make_folder()
    os.environ["TMPDIR"] = folder
    try:
        return run(flags, become_command)
    finally:
        if not flags & NEW_PIDS:
            end_processes(folder)


def end_with_parent(number: signal.Signals) -> None:
    """Have the kernel send us a signal when our parent ends (Linux only)."""
    if sys.platform == "linux":
        _libc.prctl(PR_SET_PDEATHSIG, number, 0, 0, 0)


def is_allowed(flags: int) -> bool:
    """True if this machine allows these namespaces."""

    def probe() -> int:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())
        return run(flags, lambda: 0)

    return os.waitpid(fork(probe), 0)[1] == 0


def run(flags: int, work: Callable[[], int]) -> int:
    """Run the work in a child in new namespaces; return its exit status once all their processes ended."""
    if flags:
        unshare(flags)

    def first() -> int:
        # Linux divides CPU time among sessions before niceness: in the Makefile's session, which makes all of
        # ours equal, a busy program of the same terminal would leave us none.
        os.setsid()
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        end_with_parent(signal.SIGKILL)
        if flags:
            set_up(flags)
        if not flags & NEW_PIDS:
            return work()
        child = fork(work)  # as process 1 it would have to reap orphans, and default signals would be ignored
        while (ended := os.wait())[0] != child:
            pass
        return exit_status(ended[1])

    child = fork(first)
    # Ctrl-C reaches us, too. Only the command handles it, and pytest prints its summary.
    signal.signal(signal.SIGINT, lambda *_: interrupt(child))
    try:
        return exit_status(os.waitpid(child, 0)[1])
    except SystemExit:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        raise


def interrupt(child: int) -> None:
    """Send SIGINT to the session of a child."""
    with suppress(ProcessLookupError):  # it has ended, or has no session yet
        os.killpg(child, signal.SIGINT)


def fork(work: Callable[[], int]) -> int:
    """Run the work in a child process and return its id."""
    child = os.fork()
    if child == 0:
        status = 126
        try:
            status = work()
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)
    return child


def exit_status(wait_status: int) -> int:
    """Return the exit status like a shell."""
    code = os.waitstatus_to_exitcode(wait_status)
    return code if code >= 0 else 128 - code


def unshare(flags: int) -> None:
    """Enter new namespaces; keep our user id in a user namespace."""
    user, group = os.geteuid(), os.getegid()
    check(_libc.unshare(flags))
    if flags & NEW_USER:
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"{user} {user} 1")
        Path("/proc/self/gid_map").write_text(f"{group} {group} 1")


def set_up(flags: int) -> None:
    """Enable loopback; mount /dev/shm and, with a process namespace, /proc for the new namespaces."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as handle:
        ioctl(handle, SIOCSIFFLAGS, struct.pack("16sH22x", b"lo", IFF_UP))
    check(_libc.mount(b"none", b"/", None, MS_REC_PRIVATE, None))
    check(_libc.mount(b"tmpfs", b"/dev/shm", b"tmpfs", 0, b"mode=1777"))
    if flags & NEW_PIDS:
        check(_libc.mount(b"proc", b"/proc", b"proc", 0, None))


def check(result: int) -> None:
    """Raise OSError if a libc call failed."""
    if result:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def make_folder() -> tuple[str, IO[str]]:
    """Create this run's TMPDIR, locked while the returned file is open; remove those of earlier runs."""
    parent, prefix = Path(tempfile.gettempdir()), f"footnote-tests-{os.getuid()}-"
    with lock(parent / f"{prefix}sweeping", LOCK_EX):  # or another run would remove it before it is locked
        for path in parent.glob(f"{prefix}*/"):
            with suppress(BlockingIOError), lock(path / "running", LOCK_EX | LOCK_NB):
                end_processes(str(path))
                shutil.rmtree(path, ignore_errors=True)
        folder = tempfile.mkdtemp(prefix=prefix)
        Path(folder).chmod(0o711)  # PostgreSQL runs as another user
        return folder, lock(Path(folder) / "running", LOCK_EX)


def lock(path: Path, operation: int) -> IO[str]:
    """Lock a file until it is closed, or until all processes that have it open have ended.

    Raises:
        BlockingIOError: another process holds the lock, and ``operation`` says not to wait.
    """
    file = path.open("w")
    flock(file, operation)
    return file


def end_processes(folder: str) -> None:
    """Kill every process that was started with this TMPDIR."""
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if f"TMPDIR={folder}\0".encode() in (process / "environ").read_bytes():
                os.kill(int(process.name), signal.SIGKILL)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
