"""What an admin's glossary says: a term, and the words that documents have for it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class GlossaryEntry:
    """One line of a glossary."""

    term: str
    """As people say it: ``PTO``."""
    words: tuple[str, ...]
    """As documents say it: ``paid time off``, ``vacation``."""
    is_mutual: bool = False
    """Term and words stand for one another; else the words for the term only."""
