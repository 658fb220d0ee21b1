"""Runs programs in forks of itself: what they import, it has imported already.

Each is a process of its own with nothing but its own environment and files, as one that is started anew; only
the seconds of importing are saved. The server ends when its standard input does.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import pkgutil
import select
import signal
import socket
import sys
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, TextIO

import bot.cli
from bot.cli.main import main as run_command
from bot.core.commands.chat_intents import load_phrases
from harness import clock_jumps, crash_points
from storage.text.token_counts import count_tokens

# What programs import where they need it.
HEAVY = (
    "bot.bootstrap",
    "storage.embeddings.onnx_embedder",
    "storage.sql.migrations.upgrade",
    "storage.index.weaviate.index",
)


def serve(path: str) -> None:
    """Take programs from a socket until the end of standard input."""
    for module in [*(one.name for one in pkgutil.iter_modules(bot.cli.__path__, "bot.cli.")), *HEAVY]:
        importlib.import_module(module)
    count_tokens("loads the vocabulary")
    load_phrases()  # half a second of computing in each program that is asked something
    gc.freeze()  # or each program would copy all of this to look through it for cycles
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen(64)
        print("ready", flush=True)
        while sys.stdin not in select.select([listener, sys.stdin], [], [])[0]:
            connection, _ = listener.accept()
            if os.fork() == 0:
                listener.close()
                _run_and_tell(connection)
                os._exit(0)
            connection.close()
            _reap()
    _reap()


def _reap() -> None:
    """Bury those who have waited for their program: its CPU time is counted then."""
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _run_and_tell(connection: socket.socket) -> None:
    """Start the program of one connection; tell its number, and later how it ended, a line each."""
    told, files, _, _ = socket.recv_fds(connection, 1 << 20, 3)
    job = json.loads(told)
    started = os.fork()
    if started == 0:
        connection.close()
        os._exit(_run(job, files))
    for file in files:
        os.close(file)
    connection.sendall(f"{started}\n".encode())
    _, status = os.waitpid(started, 0)
    connection.sendall(f"{os.waitstatus_to_exitcode(status)}\n".encode())


def _run(job: dict[str, Any], files: Sequence[int]) -> int:
    """Return the program in a session of its own, with its environment and its standard files."""
    os.setsid()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    sys.stdin, sys.stdout, sys.stderr = _standard_streams()
    os.environ.clear()
    os.environ.update(job["environment"])
    try:
        crash_points.arm_from_environment()
        clock_jumps.arm_from_environment()
        return PROGRAMS[job["program"]](job["arguments"])
    except SystemExit as end:  # argparse
        return end.code if isinstance(end.code, int) else 1
    except BaseException:
        traceback.print_exc()
        return 1
    finally:
        sys.stdout.flush()
        sys.stderr.flush()


def _standard_streams() -> tuple[TextIO, TextIO, TextIO]:
    """Standard input, output and error as Python opens them: those of the server remember its own files."""
    lines = os.isatty(1)
    return (
        open(0, closefd=False, encoding="utf-8"),
        open(1, "w", closefd=False, buffering=1 if lines else -1, encoding="utf-8"),
        open(2, "w", closefd=False, buffering=1, encoding="utf-8", errors="backslashreplace"),
    )


def _run_life(name: str, arguments: list[str]) -> int:
    """Return a program of the soak tests; what it imports, only they need."""
    status: int = getattr(importlib.import_module("tools.soak.rounds.life"), name)(arguments)
    return status


PROGRAMS: dict[str, Callable[[list[str]], int]] = {
    "footnote": run_command,
    "life": partial(_run_life, "live_once"),
    "forgetful": partial(_run_life, "serve_forgetfully"),
}


if __name__ == "__main__":
    serve(sys.argv[1])
