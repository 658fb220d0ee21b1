"""Processes as the kernel shows them: who started whom, what they may do, and who still runs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path


def children(pid: int | None, *words: str) -> list[int]:
    """What any thread of a process started: the commands that hold all these words."""
    found: list[int] = []
    with suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            found += map(int, (task / "children").read_text().split())
    return [child for child in found if set(words) <= set(command(child))]


def descendants(pid: int | None) -> Iterator[int]:
    """Yield every process below one, the deepest first."""
    for child in children(pid):
        yield from descendants(child)
        yield child


def command(pid: int) -> list[str]:
    """Return the words that a process was started with; none when it ended."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_text().rstrip("\0").split("\0")
    return []


def status(pid: int | str) -> dict[str, str]:
    """What the kernel says of a process, line by line.

    Raises:
        OSError: it has ended.
    """
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}


def is_running(pid: int | None) -> bool:
    """True if it is there, and does not only wait to be counted."""
    try:
        return not status(str(pid))["State"].startswith("Z")
    except OSError:
        return False
