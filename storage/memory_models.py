"""What a thread remembers: the values that the memory takes and gives."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID


@dataclass(frozen=True, slots=True)
class Turn:
    """A question of a thread with its answer, as the questions after it may lean on them."""

    question: str
    standalone: str
    """What was searched for: the question itself, unless it leaned on the turns before it."""
    answer: str
    documents: frozenset[UUID] = frozenset()
    """Those that the answer cited."""


@dataclass(frozen=True, slots=True)
class NewTurn:
    """A turn that is to be remembered."""

    key: str
    """Id of its question, which is remembered once, however often it is answered."""
    channel_id: int
    thread: str
    """Within its channel; '' is the channel's running conversation."""
    question: str
    standalone: str
    answer: str
    versions: tuple[int, ...]
    """Versions that the answer cited."""
    asked_at: datetime
