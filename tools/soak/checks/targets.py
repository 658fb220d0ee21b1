"""Targets of the kills of a round, decided by its seed."""

from __future__ import annotations

from itertools import cycle, islice

from storage.crash_points import POINTS

RANDOM, SERVER, GHOST = "at random", "the index itself", "woken as a ghost"

HALTS = ("after-claim", "after-reading-file", "before-write", "after-batch", "before-seal")
# Points where a process may hang beyond its lease, because it holds no lock there and others go on. After the
# last point it would only flip what its successor has removed.
WORST_HALT = "after-seal"
# Points that are only reached if a file was removed.
TAKES = {"before-delete", "after-delete", "amid-purge", "after-purge"}
# Points that are rarely reached on their own.
TIDIES = {"amid-purge", "after-purge", "amid-reconcile"}
# Points that need a publication.
LATE = TAKES | TIDIES


def targets(seed: int, kills: int, *, has_server: bool) -> list[str]:
    """Return the target of each kill: one in five at random, one ghost, the rest crash points in turn.

    Each seed continues with the points where the previous one stopped; points that need a publication come
    last. With an index server, one kill in five is the server's: one in ten over all pairs.
    """
    aims = [_slot(number, kills, has_server=has_server) for number in range(kills)]
    points = aims.count("")
    first = seed * points % len(POINTS)
    turn = iter(sorted(islice(cycle(POINTS), first, first + points), key=LATE.__contains__))
    return [aim or next(turn) for aim in aims]


def halt(seed: int) -> str:
    """Return where the ghost of a round hangs: every other time at the worst point."""
    return WORST_HALT if seed % 2 else HALTS[seed // 2 % len(HALTS)]


def _slot(number: int, kills: int, *, has_server: bool) -> str:
    """Return the kind of a kill; '' for a crash point."""
    if number % 5 == 0:
        return RANDOM
    if number % 5 == 2 and has_server:
        return SERVER
    return GHOST if number == kills // 2 + 1 else ""
