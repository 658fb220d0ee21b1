"""Where the kills of a round fall, decided by its seed."""

from __future__ import annotations

from itertools import cycle, islice

from storage.crash_points import POINTS

RANDOM, SERVER, GHOST = "at random", "the index itself", "woken as a ghost"

HALTS = ("after-claim", "after-reading-file", "before-write", "after-batch", "before-seal")
# Where a life may hang beyond its lease: it holds no lock there, so that others go on. After the last one it
# would have nothing more to do than to flip what its heir has removed meanwhile.
WORST_HALT = "after-seal"
# Points that only come where a file was taken away.
TAKES = {"before-delete", "after-delete", "amid-purge", "after-purge"}
# Points that come seldom by themselves.
TIDIES = {"amid-purge", "after-purge", "amid-reconcile"}
# Points that need something that has been published.
LATE = TAKES | TIDIES


def targets(seed: int, kills: int, *, has_server: bool) -> list[str]:
    """What each kill aims at: one in five at random, one a ghost, the rest the crash points in turn.

    Each seed goes on with the points where the one before it stopped; those that need something
    published come last. Where the index is a server, one kill in five is its own: one in ten over all pairs.
    """
    aims = [_slot(number, kills, has_server=has_server) for number in range(kills)]
    points = aims.count("")
    first = seed * points % len(POINTS)
    turn = iter(sorted(islice(cycle(POINTS), first, first + points), key=LATE.__contains__))
    return [aim or next(turn) for aim in aims]


def halt(seed: int) -> str:
    """Where the ghost of a round hangs: every other time at the worst place."""
    return WORST_HALT if seed % 2 else HALTS[seed // 2 % len(HALTS)]


def _slot(number: int, kills: int, *, has_server: bool) -> str:
    """'' for a crash point."""
    if number % 5 == 0:
        return RANDOM
    if number % 5 == 2 and has_server:
        return SERVER
    return GHOST if number == kills // 2 + 1 else ""
