"""Ends or suspends this process at a point of ``storage/crash_points.py``; importing it counts the passes.

``after-seal`` kills the process by SIGKILL at the first pass, ``after-seal:3`` at the third; ``~after-seal``
suspends it by SIGSTOP, like a machine that hangs and resumes after others took over its work.
"""

from __future__ import annotations

import os
import signal
from collections import Counter
from collections.abc import Callable
from functools import partial

from storage.crash_points import ANSWER_POINTS, POINTS, install

# Environment variable with the crash point of a child process.
VARIABLE = "FOOTNOTE_CRASH_AT"

# Passes of this process at each point.
passed: Counter[str] = Counter()

# Point -> fatal pass, and the action taken then.
_last: dict[str, tuple[int, Callable[[], object]]] = {}


def arm(where: str, end: Callable[[], object] | None = None) -> None:
    """Crash at ``name`` or ``name:nth``, counted from now on, or suspend after a ``~``; '' disarms.

    No handler runs, no buffer is flushed and no lease released. ``end``, if given, is called instead, for a
    test that simulates the end of a process.

    Raises:
        ValueError: unknown point, or an invalid number.
    """
    name, _, number = where.removeprefix("~").partition(":")
    if where and (name not in POINTS + ANSWER_POINTS or not (number or "1").isdecimal()):
        raise ValueError(
            f"[~]name or [~]name:nth, with one of these names: {', '.join(POINTS + ANSWER_POINTS)}"
        )
    _last.clear()
    blow = signal.SIGSTOP if where[:1] == "~" else signal.SIGKILL
    _last[name] = passed[name] + int(number or 1), end or partial(os.kill, os.getpid(), blow)


def arm_from_environment() -> None:
    """Take the point from the environment, where the program would refuse it as an unknown setting."""
    arm(os.environ.pop(VARIABLE, ""))


def _pass(point: str) -> None:
    passed[point] += 1
    if point in _last and passed[point] == _last[point][0]:
        _last[point][1]()


install(_pass)
