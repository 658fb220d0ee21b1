"""Hostile files by number: the same seed and number always give the same kind, name and bytes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from random import Random

from tools.hostile.hostile_active import ACTIVE, LOCKS
from tools.hostile.hostile_bombs import HEAVY, LIGHT
from tools.hostile.hostile_damage import DAMAGES, damaged
from tools.hostile.hostile_foreign import FOREIGN
from tools.hostile.hostile_texts import TEXTS
from tools.hostile.hostile_trees import LONG, TREES

LIVE, REFUSED, EITHER = "live", "quarantined", ""

# Odd prefixes of file names.
NAMES = (
    "plain", "räksmörgås", "\u202egnp.evil", "\u2066isolated", "new\nline", "tab\t", "emoji 🧨",
    "'; DROP TABLE document;--", "$(reboot)", "<b>bold</b>", "a" * 200, "-rf", "con", "%2e%2e%2f",
    "ﬁ ligature", "e\u0301", "{0}%s", "=1+1", "nul\x01",
)  # fmt: skip


@dataclass(frozen=True)
class Kind:
    """Kind of hostile file, with its expected outcome."""

    make: Callable[[Random], bytes]
    # Relative frequency among many files.
    weight: float
    ends: str = EITHER


_ENDS = {
    **dict.fromkeys(FOREIGN, REFUSED),
    **dict.fromkeys(["no pages", "5,001 pages", "password", "page loop", "double deflate bomb"], REFUSED),
    **dict.fromkeys(["turned and cropped", "owner's password", "5,000 pages"], LIVE),
    **dict.fromkeys(["hidden text", "markers as text", "odd titles", "scripts", "launch actions"], LIVE),
    **dict.fromkeys(["attached files", "forms", "outline loop", "paths", "headings", "huge image"], LIVE),
}


def _kinds(makers: dict[str, Callable[[Random], bytes]], weight: float) -> dict[str, Kind]:
    return {name: Kind(make, weight, _ENDS.get(name, EITHER)) for name, make in makers.items()}


KINDS = {
    **_kinds(FOREIGN, 3),
    **_kinds({name: partial(damaged, name) for name in DAMAGES}, 40),
    **_kinds(TREES, 4),
    **_kinds(TEXTS, 8),
    **_kinds(ACTIVE, 8),
    **_kinds(LOCKS, 8),
    **_kinds(LIGHT, 0.5),
    **_kinds(LONG, 0.3),
    **_kinds(HEAVY, 0.3),
}


@dataclass(frozen=True)
class Case:
    """A hostile file."""

    number: int
    kind: str
    name: str
    data: bytes


def case(seed: int, number: int) -> Case:
    """Return the file of this number: first one of each kind, then weighted at random."""
    rng = Random(f"{seed} {number}")
    names = list(KINDS)
    if number < len(names):
        kind = names[number]
    else:
        (kind,) = rng.choices(names, [one.weight for one in KINDS.values()])
    return Case(number, kind, f"{rng.choice(NAMES)} {number}.pdf", KINDS[kind].make(rng))
