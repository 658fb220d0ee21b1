"""Ends or halts this process at a named point of ``storage/crash_points.py``; importing it counts the passes.

``after-seal`` ends the process by SIGKILL the first time it gets there, ``after-seal:3`` the third time;
``~after-seal`` halts it there by SIGSTOP, as a machine that hangs and comes back to work others do by then.
"""

from __future__ import annotations

import os
import signal
from collections import Counter
from collections.abc import Callable
from functools import partial

from storage.crash_points import ANSWER_POINTS, POINTS, install

# Where a process that the tests start is told its point.
VARIABLE = "FOOTNOTE_CRASH_AT"

# How often this process came to each point.
passed: Counter[str] = Counter()

# The pass at a point that will be the last thing this process does, and what it does to itself there.
_last: dict[str, tuple[int, Callable[[], object]]] = {}


def arm(where: str, end: Callable[[], object] | None = None) -> None:
    """Die at ``name`` or ``name:nth``, counted from now on, or halt there after a ``~``; '' disarms.

    No handler runs there, nothing is flushed, no lease is given back. ``end``, if given, is called there
    instead: for a test that ends a life without its process.

    Raises:
        ValueError: there is no such point, or the number is none.
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
    """Take the point out of the environment, where the program would refuse it as an unknown setting."""
    arm(os.environ.pop(VARIABLE, ""))


def _pass(point: str) -> None:
    passed[point] += 1
    if point in _last and passed[point] == _last[point][0]:
        _last[point][1]()


install(_pass)
