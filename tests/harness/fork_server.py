"""Runs programs in forks of itself, so that their imports are done already.

Each is a process with only its own environment and files, like a newly started one; only the seconds of
importing are saved. The server ends when its standard input is closed.
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
from bot.chat.commands.chat_intents import load_phrases
from bot.cli.main import main as run_command
from harness import clock_jumps, crash_points
from storage.text.token_counts import count_tokens

# Modules that programs import lazily.
HEAVY = (
    "bot.bootstrap",
    "storage.embeddings.onnx_embedder",
    "storage.sql.migrations.upgrade",
    "storage.index.weaviate.index",
)


def serve(path: str) -> None:
    """Accept programs from a socket until the end of standard input."""
    for module in [*(one.name for one in pkgutil.iter_modules(bot.cli.__path__, "bot.cli.")), *HEAVY]:
        importlib.import_module(module)
    count_tokens("loads the vocabulary")
    load_phrases()  # half a second of CPU in each program that answers a question
    gc.freeze()  # otherwise each program would copy all of this when collecting garbage
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
    """Reap finished children, which counts their CPU time."""
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _run_and_tell(connection: socket.socket) -> None:
    """Start the program of a connection; send its pid, and later its exit status, a line each."""
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
    """Run the program in a new session, with its environment and standard files; return its status."""
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
    except SystemExit as end:  # raised by argparse
        return end.code if isinstance(end.code, int) else 1
    except BaseException:
        traceback.print_exc()
        return 1
    finally:
        sys.stdout.flush()
        sys.stderr.flush()


def _standard_streams() -> tuple[TextIO, TextIO, TextIO]:
    """Open standard input, output and error as Python does; the server's own objects refer to its files."""
    lines = os.isatty(1)
    return (
        open(0, closefd=False, encoding="utf-8"),
        open(1, "w", closefd=False, buffering=1 if lines else -1, encoding="utf-8"),
        open(2, "w", closefd=False, buffering=1, encoding="utf-8", errors="backslashreplace"),
    )


def _run_life(name: str, arguments: list[str]) -> int:
    """Run a program of the soak tests, whose imports only they need."""
    status: int = getattr(importlib.import_module("tools.soak.rounds.life"), name)(arguments)
    return status


PROGRAMS: dict[str, Callable[[list[str]], int]] = {
    "footnote": run_command,
    "life": partial(_run_life, "live_once"),
    "forgetful": partial(_run_life, "serve_forgetfully"),
}


if __name__ == "__main__":
    serve(sys.argv[1])
