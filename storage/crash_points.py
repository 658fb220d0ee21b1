"""Named places at which a process can be told to die, as if somebody had pulled the plug.

The journey of a PDF passes all of them. ``FOOTNOTE_CRASH_AT=after-seal`` ends the process by SIGKILL
the first time it gets there, ``after-seal:3`` the third time; ``~after-seal`` halts it there by SIGSTOP,
as a machine that hangs and comes back to work that others do by then. Without it a point costs one addition.
"""

from __future__ import annotations

import os
import signal
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Literal, get_args

from storage.errors import SettingsError

VARIABLE = "FOOTNOTE_CRASH_AT"

Point = Literal[
    "before-copy",  # a settled file is about to be copied out of its folder
    "after-copy",  # its bytes lie in the blob store's temporary place
    "after-adopt",  # they are a blob, which SQL does not know yet
    "after-store",  # SQL knows document and version
    "after-claim",  # a step is leased and has not begun
    "after-parse",  # the limited child has read the PDF; nothing is kept of it yet
    "after-reading-file",  # the reading's files are there; SQL still waits for them
    "after-layout",  # a full reading's pages and chunks are there, its vectors are not
    "after-vectors",  # a batch of chunks, or of their sentences, got its vectors
    "before-write",  # nothing of a publication is in the index
    "after-batch",  # a batch of it is
    "before-seal",  # all of it is, uncounted
    "after-seal",  # it is counted; the old publication still answers
    "after-flip",  # the new one answers
    "before-removal",  # a retired publication is about to leave the index
    "after-removal",  # the index has forgotten it; SQL has not written that down
    "before-delete",  # a file is surely gone; its document still answers
    "after-delete",  # it does not any more
    "amid-purge",  # a blob of a deleted document is gone, and SQL could still roll back
    "after-purge",  # its contents are gone from SQL; the readings' files are still there
    "amid-reconcile",  # some of the differences are mended
]
POINTS: tuple[str, ...] = get_args(Point)

passed: Counter[str] = Counter()
"""How often this process came to each point."""

_last: dict[str, tuple[int, Callable[[], object]]] = {}
"""The pass at a point that will be the last thing this process does, and what it does to itself there."""


def arm(where: str, end: Callable[[], object] | None = None) -> None:
    """Die at ``name`` or ``name:nth``, counted from now on, or halt there after a ``~``; '' disarms.

    ``end``, if given, is called there instead: for a test that ends a life without its process.

    Raises:
        SettingsError: there is no such point, or the number is none.
    """
    name, _, number = where.removeprefix("~").partition(":")
    if where and (name not in POINTS or not (number or "1").isdecimal()):
        raise SettingsError(
            f"{VARIABLE} takes [~]name or [~]name:nth, with one of these names: {', '.join(POINTS)}"
        )
    _last.clear()
    blow = signal.SIGSTOP if where[:1] == "~" else signal.SIGKILL
    _last[name] = passed[name] + int(number or 1), end or partial(os.kill, os.getpid(), blow)


def reach(point: Point) -> None:
    """Die here if that was asked for: no handler runs, nothing is flushed, no lease is given back."""
    passed[point] += 1
    if point in _last and passed[point] == _last[point][0]:
        _last[point][1]()


arm(os.environ.get(VARIABLE, ""))
