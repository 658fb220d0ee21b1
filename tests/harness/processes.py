"""Processes according to /proc: children, status, and whether they run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path


def children(pid: int | None, *words: str) -> list[int]:
    """Return the children of all threads of a process whose command lines contain these words."""
    found: list[int] = []
    with suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            found += map(int, (task / "children").read_text().split())
    return [child for child in found if set(words) <= set(command(child))]


def descendants(pid: int | None) -> Iterator[int]:
    """Yield every descendant, deepest first."""
    for child in children(pid):
        yield from descendants(child)
        yield child


def command(pid: int) -> list[str]:
    """Return the command line of a process; empty when it ended."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_text().rstrip("\0").split("\0")
    return []


def status(pid: int | str) -> dict[str, str]:
    """Return /proc/PID/status as a dict.

    Raises:
        OSError: it has ended.
    """
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}


def is_running(pid: int | None) -> bool:
    """True if a process exists and is no zombie."""
    try:
        return not status(str(pid))["State"].startswith("Z")
    except OSError:
        return False
